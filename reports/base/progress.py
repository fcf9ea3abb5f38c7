"""Progress on stderr: one line with what is running now, and a line per finished case when stderr is not a terminal."""

from __future__ import annotations

import time
from threading import RLock
from typing import Any

from .plain_text import plain
from .sources import escaped


class Progress:
    """A rich status line, a context manager. `hear(file, case, what)` is what the runner calls, from any thread."""

    def __init__(self, quiet: bool = False) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False)
        self.quiet = quiet
        self.live = not quiet and self.console.is_terminal
        self.status: Any = self.console.status("starting") if self.live else None
        self.running: dict[tuple[str, str], str] = {}
        self.total = self.done = 0
        self.lock = RLock()
        self.started = time.monotonic()

    def __enter__(self) -> Progress:
        if self.status is not None:
            self.status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is not None:
            self.status.stop()

    def hear(self, file: str, case: str, what: Any) -> None:
        """A stage name, a list of cases, or the end of a case (its `lift` field)."""
        with self.lock:
            self._hear(file, case, what)

    def _hear(self, file: str, case: str, what: Any) -> None:
        if isinstance(what, list):
            self.total += len(what)
        elif isinstance(what, str) and what.startswith("stage:"):
            self.running[file, case] = what.removeprefix("stage:")
        else:
            self._finish(file, case, str(what))
        if self.status is not None:
            self.status.update(self._line())

    def _finish(self, file: str, case: str, what: str) -> None:
        self.running.pop((file, case), None)
        self.done += 1
        if not self.live and not self.quiet:
            self.say(f"{escaped(file)}{case and f'::{case}'}: {what.splitlines()[0]}")

    def _line(self) -> str:
        now = ", ".join(f"{case or escaped(file)} ({stage})" for (file, case), stage in self.running.items())
        return plain(f"{self.done}/{self.total} cases, {time.monotonic() - self.started:.0f} s  {now}")

    def say(self, text: str) -> None:
        """One line on stderr, unless quiet."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """One line on stderr."""
        self.console.print(plain(text), markup=False, soft_wrap=True)

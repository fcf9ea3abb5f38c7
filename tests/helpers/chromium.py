"""A headless Chromium, spoken to over its DevTools pipe: what a page logs, asks for and shows."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
         "--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars")  # fmt: skip


def found() -> str | None:
    """The path of a Chromium on this machine."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. `events`: what DevTools has told since it was opened, as (method, parameters)."""

    def __init__(self, to: int, from_: int) -> None:
        self.to, self.from_ = to, from_
        self.sent = 0
        self.buffer = b""
        self.session = ""
        self.events: list[tuple[str, dict[str, Any]]] = []

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command. Raises RuntimeError for one that is an error."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.sent:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self.events.append((answer.get("method", ""), answer.get("params", {})))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            piece = os.read(self.from_, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(message))

    def open(self, url: str, width: int = 1280, dark: bool = False) -> None:
        """Loads the page in a new tab of that width, and waits until it is there."""
        self.session = ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.ask("Page.navigate", url=url)
        deadline = time.monotonic() + 20
        while "Page.loadEventFired" not in [m for m, _ in self.events] and time.monotonic() < deadline:
            self.evaluate("new Promise(done => setTimeout(done, 50))")
        self.evaluate("document.fonts.ready.then(() => true)")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        done = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return done["result"].get("value")

    def messages(self) -> list[str]:
        """What stands in the page's console: scripts, errors, blocked styles and requests."""
        told = [p["entry"]["text"] for m, p in self.events if m == "Log.entryAdded"]
        return told + [m for m, _ in self.events if m in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown")]

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        return [p["request"]["url"] for m, p in self.events if m == "Network.requestWillBeSent"]

    def picture(self, path: Path) -> None:
        """The whole page as PNG."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own, ended afterwards."""
    path = found()
    assert path is not None
    (to_read, to), (from_, from_write) = os.pipe(), os.pipe()

    def descriptors() -> None:
        """The browser reads commands from 3 and writes answers to 4."""
        for fd, given in [(3, high[0]), (4, high[1])]:
            os.dup2(given, fd)

    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_read, from_write)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={profile}"], close_fds=False, preexec_fn=descriptors,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (to_read, from_write, *high):
            os.close(fd)
        try:
            yield Browser(to, from_)
        finally:
            process.terminate()
            process.wait(10)
            os.close(to)
            os.close(from_)

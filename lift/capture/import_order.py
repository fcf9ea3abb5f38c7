"""Where modules are found once the folder of a case file is on `sys.path`, first, as it is for a script.

The folder comes first for the user's own code alone. All other code, as that of PyTorch, which imports much of what it
needs late, finds what is installed: a file z3.py or queue.py beside the case is not the solver or the queue.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType

from .places import is_own


class Installed(MetaPathFinder):
    """Finds modules outside of the user's folders, for code that is not the user's. The finders after this
    one find those that only these folders have."""

    def __init__(self) -> None:
        self.folders: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if path is not None or _asked_by_user() else self.elsewhere(name)

    def elsewhere(self, name: str) -> ModuleSpec | None:
        """A module of this name outside of the user's folders."""
        found = PathFinder.find_spec(name, [p for p in sys.path if os.path.realpath(p) not in self.folders])
        return found if found is not None and found.loader is not None else None  # without one: a plain folder


def first(folder: str) -> Installed:
    """Puts a folder of the user's first on the path. The folder that the command runs in is the user's too: Python puts
    it there for `python -m trilift`."""
    sys.path.insert(0, folder)
    finder = next((f for f in sys.meta_path if isinstance(f, Installed)), None)
    if finder is None:
        finder = Installed()
        sys.meta_path.insert(sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else 0, finder)
    for own in (folder, os.curdir):
        with suppress(OSError):  # the current folder may be gone
            finder.folders.add(os.path.realpath(own))
    return finder


def _asked_by_user() -> bool:
    """Whether the import that is going on is a statement, or a call of importlib's, in the user's own code."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_importing(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and is_own(os.path.abspath(frame.f_code.co_filename))


def _is_importing(file: str) -> bool:
    return file.startswith("<frozen importlib") or file == importlib.__file__

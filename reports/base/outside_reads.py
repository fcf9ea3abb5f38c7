"""The reads of Python code from the machine while a user's file is loaded and its cases run: files, also those that are
not there, folders that it lists, variables of the environment. A result rests on them as it rests on the modules that
were imported.

    open, listdir, scandir, import    audit events of Python (PEP 578); of an import, the places before the one where
                                      the module was found, or all
    stat, lstat, access               those of `os`, which tell what they are asked
    os.environ                        its data

The reads of programs in another language are not seen.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps

VARIABLE = "$"  # begins the name of a variable of the environment; paths are absolute
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
QUESTIONS = ("stat", "lstat", "access")
LISTING = ("os.listdir", "os.scandir")
IMPORTS = "<frozen importlib"  # lists the folders of the path: what it finds there is imported, and counted as a module
UNTOLD = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "PYTEST_CURRENT_TEST"}  # how to print, not what
COUNTED = ("_TRILIFT_", "TRITON_")  # begin names by which our processes find each other, and those of settings


class Reads:
    """`read`: paths and names in the order in which they were read first; `made`: those that were written before;
    `imports`: the first names of modules, with the folders of the path then."""

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.made: set[str] = set()
        self.imports: dict[str, tuple[str, ...]] = {}
        self.is_on = False

    def watch(self) -> None:
        """From now on; what was read before counts no longer."""
        self.read, self.made, self.imports = {}, set(), {}
        if not self.is_on:
            self.is_on = True
            sys.addaudithook(self.hear)
            os.environ._data = os.environb._data = _Variables(os.environ._data, self)  # type: ignore[attr-defined]
            for name in QUESTIONS:
                self.replace(name)

    def replace(self, name: str) -> None:
        """A function of `os` by one that notes its path, also in the sets that say what the function can do."""
        plain = getattr(os, name)
        told = self.telling(plain)
        setattr(os, name, told)
        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if plain in able:
                able.add(told)

    def telling(self, question: Callable[..., object]) -> Callable[..., object]:
        """A function about a path, which notes the path, unless that is a folder: something else in it may change."""

        @wraps(question)
        def told(path: object, *args: object, **options: object) -> object:
            try:
                found = question(path, *args, **options)
            except OSError:
                self.note(path, False)
                raise
            if not (isinstance(found, os.stat_result) and stat.S_ISDIR(found.st_mode)):
                self.note(path, False)
            return found

        return told

    def hear(self, event: str, args: tuple[object, ...]) -> None:
        """An audit event."""
        if event == "open":
            path, _, flags = args
            self.note(path, isinstance(flags, int) and bool(flags & WRITING))
        elif event in LISTING and not sys._getframe(1).f_code.co_filename.startswith(IMPORTS):
            self.note(args[0] or ".", False)
        elif event == "os.mkdir":
            self.note(args[0], True)
        elif event == "import" and isinstance(args[0], str) and isinstance(args[2], list):
            self.imports.setdefault(args[0].partition(".")[0], tuple(map(str, args[2])))

    def missing(self) -> Iterator[str]:
        """Of each import, the places where the module was looked for before it was found."""
        for name, folders in self.imports.items():
            for folder in folders:
                places = [os.path.abspath(os.path.join(folder, name, "__init__.py"))]
                places.append(os.path.abspath(os.path.join(folder, name + ".py")))
                if any(map(os.path.lexists, places)):
                    break
                yield from places

    def note(self, path: object, is_made: bool) -> None:
        """A path that is read, or made; a number is that of a file which is open already."""
        if isinstance(path, (str, bytes, os.PathLike)):
            name = os.path.abspath(os.fsdecode(path))
            if is_made:
                self.made.add(name)
            elif name not in self.made:
                self.read[name] = None

    def variable(self, name: str, is_made: bool) -> None:
        """A variable of the environment that is read, or set."""
        if is_made:
            self.made.add(VARIABLE + name)
        elif VARIABLE + name not in self.made and name not in UNTOLD and not name.startswith(COUNTED):
            self.read[VARIABLE + name] = None


class _Variables(dict[bytes, bytes]):
    """The data of os.environ, which tells what is read and set."""

    def __init__(self, data: Mapping[bytes, bytes], reads: Reads) -> None:
        super().__init__(data)
        self.reads = reads

    def __getitem__(self, key: bytes) -> bytes:
        self.reads.variable(os.fsdecode(key), False)
        return super().__getitem__(key)

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self.reads.variable(os.fsdecode(key), True)
        super().__setitem__(key, value)

    def __delitem__(self, key: bytes) -> None:
        self.reads.variable(os.fsdecode(key), True)
        super().__delitem__(key)


READS = Reads()

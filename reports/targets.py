"""TARGET: `file.py`, `file.py::case`, `module:case`, a folder or a `.ttir` file."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

DECORATED = re.compile(r"^@\w*case\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """A file and the cases asked for; () means all of its cases. `only`: of these, if not empty, those so named."""

    file: str
    cases: tuple[str, ...] = ()
    only: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Named:
    """One thing: a case or function `name` of a file or module; "" means the only case there is."""

    where: str
    name: str
    is_module: bool = False

    def __str__(self) -> str:
        return f"{self.where}{':' if self.is_module else '::'}{self.name}" if self.name else self.where


def single(text: str) -> Named:
    """`file.py::name`, `file.py` with one case, `module:name` or a `.ttir` file. Raises click.UsageError."""
    path, _, name = text.partition("::")
    if os.path.isfile(path):
        return Named(path, name)
    if os.path.isdir(path):
        raise click.UsageError(f"{path} is a folder: name one case, as in file.py::case")
    module, colon, name = text.partition(":")
    if colon and name and os.sep not in module and not module.endswith(".py"):
        _module_file(module)
        return Named(module, name, True)
    raise click.UsageError(f"no such file or module: {path}")


def resolve(targets: Iterable[str]) -> list[Target]:
    """Files in the order given, each once, with the names asked for. Raises click.UsageError for what is not there."""
    merged: dict[str, list[str] | None] = {}
    for text in targets:
        for target in _one(text):
            names = merged.setdefault(target.file, [])
            if not target.cases or names is None:
                merged[target.file] = None
            else:
                names += [n for n in target.cases if n not in names]
    return [Target(file, tuple(names or ())) for file, names in merged.items()]


def _one(text: str) -> list[Target]:
    path, _, name = text.partition("::")
    if os.path.isdir(path):
        return _folder(Path(path))
    if os.path.isfile(path):
        return [Target(path, (name,) if name else ())]
    module, colon, name = text.partition(":")
    if colon and os.sep not in module and not module.endswith(".py"):
        return [Target(_module_file(module), (name,))]
    raise click.UsageError(f"no such file, folder or module: {path}")


def _folder(folder: Path) -> list[Target]:
    """The Python files below a folder that decorate a case, and its .ttir files, in the order of their names."""
    found = sorted(
        p for pattern in ("*.py", "*.ttir") for p in folder.rglob(pattern) if not _hidden(p.relative_to(folder))
    )
    return [Target(str(p)) for p in found if p.suffix == ".ttir" or DECORATED.search(p.read_text(errors="replace"))]


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _module_file(module: str) -> str:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as e:
        raise click.UsageError(f"cannot find module {module}: {e}") from None
    if spec is None or not spec.origin:
        raise click.UsageError(f"no module named {module}")
    return os.path.relpath(spec.origin) if spec.origin.startswith(os.getcwd()) else spec.origin

"""TARGET: `file.py`, `file.py::case`, `module:case`, a folder or a `.ttir` file."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from trilift.lift.runtime.files import unreadable

from .sources import escaped, split

DECORATED = re.compile(r"^@\w*case\b", re.MULTILINE)
IMPORTS = re.compile(r"^\s*(?:from|import)\s+(?:tri)?lift\b", re.MULTILINE)
VENV = "pyvenv.cfg"  # marks a virtual environment
SKIPPED = ("tests", "test", "benchmarks", "benchmark", "examples", "node_modules", "build")  # folders without kernels


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
    path, name = split(text)
    if os.path.isfile(path):
        return Named(path, name)
    if os.path.isdir(path):
        raise click.UsageError(f"{path} is a folder: name one case, as in file.py::case")
    module, colon, name = text.partition(":")
    if colon and name and os.sep not in module and not module.endswith(".py"):
        _module_file(module)
        return Named(module, name, True)
    raise click.UsageError(f"no such file or module: {escaped(path)}")


def resolve(targets: Iterable[str], cases_only: bool = False) -> list[Target]:
    """Files in the order given, each once, with the names asked for; with `cases_only` without those that mention no
    case. Raises click.UsageError for what is not there."""
    merged: dict[str, list[str] | None] = {}
    for text in targets:
        for target in _one(text):
            if cases_only and not (target.cases or mentions_case(Path(target.file))):
                continue
            names = merged.setdefault(target.file, [])
            if not target.cases or names is None:
                merged[target.file] = None
            else:
                names += [n for n in target.cases if n not in names]
    return [Target(file, tuple(names or ())) for file, names in merged.items()]


def _one(text: str) -> list[Target]:
    path, name = split(text)
    if os.path.isdir(path):
        return _folder(Path(path))
    if os.path.isfile(path) or os.path.lexists(path):
        return [Target(path, (name,) if name else ())]
    module, colon, name = text.partition(":")
    if colon and os.sep not in module and not module.endswith(".py"):
        return [Target(_module_file(module), (name,))]
    if (roots := _package(text)) is not None:
        return [t for root in roots for t in (_folder(root) if root.is_dir() else [Target(_shown(str(root)))])]
    raise click.UsageError(f"no such file, folder, package or module: {escaped(path)}")


def _package(name: str) -> list[Path] | None:
    """The folders of a package that can be imported under this name, or the file of a module. It is not imported."""
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return [Path(p) for p in dict.fromkeys(spec.submodule_search_locations)]
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else None


def sources(text: str) -> list[str]:
    """The Python files that a target means, those without a case too."""
    path = split(text)[0]
    roots = [Path(path)] if os.path.exists(path) else _package(text) or []
    found = (p for root in roots for p in (sorted(_walk(root)) if root.is_dir() else [root]))
    python = (p for p in found if p.suffix == ".py" and not unreadable(p))
    return [str(p) for p in python if not any(_skipped(p, root) for root in roots)]


def _walk(root: Path) -> Iterator[Path]:
    """The files below a folder, without hidden folders and virtual environments."""
    for folder, folders, names in os.walk(root):
        kept = (d for d in folders if not d.startswith(".") and not os.path.exists(os.path.join(folder, d, VENV)))
        folders[:] = sorted(kept)
        yield from (Path(folder, n) for n in names)


def _skipped(path: Path, root: Path) -> bool:
    """Tests, and what is hidden, below a folder."""
    parts = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()
    return any(p in SKIPPED or p.startswith((".", "__")) for p in parts)


def mentions_case(path: Path) -> bool:
    """Whether a file may have a case: a launch description of Triton IR, or Python that imports trilift."""
    return path.suffix == ".ttir" or bool(unreadable(path)) or bool(IMPORTS.search(_text(path)))


def _folder(folder: Path) -> list[Target]:
    """The Python files below a folder that decorate a case, and its .ttir files, in the order of their names; also
    those that cannot be read, which is an error where they are run."""
    found = sorted(p for p in _walk(folder) if p.suffix in (".py", ".ttir") and not _hidden(p.relative_to(folder)))
    return [Target(str(p)) for p in found if p.suffix == ".ttir" or unreadable(p) or DECORATED.search(_text(p))]


def _text(path: Path) -> str:
    return path.read_text(errors="replace")


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _module_file(module: str) -> str:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as e:
        raise click.UsageError(f"cannot find module {module}: {e}") from None
    if spec is None or not spec.origin:
        raise click.UsageError(f"no module named {module}")
    return _shown(spec.origin)


def _shown(path: str) -> str:
    return os.path.relpath(path) if path.startswith(os.getcwd()) else path

"""Users' source files as reports show them: a path that others can follow, a line, the function that it stands in."""

from __future__ import annotations

import ast
import linecache
import os
import tokenize
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a file: its qualified name, its first line (of its decorators, if any) and its last."""

    name: str
    first: int
    last: int


def split(text: str) -> tuple[str, str]:
    """The file and the name in file::name, "" for none. A file may have two colons in its own name."""
    path, colons, name = text.rpartition("::")
    if not colons or os.path.lexists(text):
        return text, ""
    if os.path.lexists(path):
        return path, name
    path, _, name = text.partition("::")
    return path, name


def relative(file: str) -> str:
    """The path from the working directory if it is below it, with slashes; else the path as it is; `escaped`."""
    path = os.path.normpath(file) if file else ""
    inside = os.path.relpath(path) if os.path.isabs(path) else path
    shown = Path(path if inside.startswith("..") else inside).as_posix() if path else ""
    return escaped(shown)


def escaped(path: str) -> str:
    """The path, with escapes for what cannot be printed: a name with a newline would be another line of a report."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in path)


def local(x: Any) -> Any:
    """The same data, its texts without the path of the working directory; but for scripts, which run anywhere."""
    if isinstance(x, dict):
        return {k: v if k == "script" else local(v) for k, v in x.items()}
    if isinstance(x, list):
        return [local(v) for v in x]
    return x.replace(os.getcwd().rstrip(os.sep) + os.sep, "") if isinstance(x, str) else x


def lines(file: str) -> list[str]:
    """The lines of a file without their ends; none if it cannot be read.

    A file on disk is read as it is now: `linecache` keeps the text of a module that a traceback named for good, and
    under a relative path it may be another folder's.
    """
    from trilift.lift.runtime.files import unreadable

    if os.path.exists(file) and unreadable(Path(file)):  # a pipe would be waited for
        return []
    try:
        with tokenize.open(file) as text:
            found = list(text)
    except (OSError, SyntaxError, ValueError):
        found = linecache.getlines(file)
    return [line.rstrip("\r\n") for line in found]


def line(file: str, number: int) -> str:
    """One line, "" where there is none."""
    text = lines(file)
    return text[number - 1] if 0 < number <= len(text) else ""


def function(file: str, number: int) -> Function | None:
    """The innermost function around a line."""
    around = [f for f in _functions("\n".join(lines(file))) if f.first <= number <= f.last]
    return max(around, key=lambda f: f.first, default=None)


@lru_cache(maxsize=64)
def _functions(text: str) -> tuple[Function, ...]:
    """All functions in a text, those of classes and of functions too."""
    try:
        return tuple(_within(ast.parse(text), ""))
    except (SyntaxError, ValueError):
        return ()


def _within(node: ast.AST, prefix: str) -> list[Function]:
    found = []
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        name = f"{prefix}{child.name}" if named else prefix.rstrip(".")  # type: ignore[attr-defined]
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            found.append(Function(name, first, child.end_lineno or first))
        found += _within(child, f"{name}." if name else "")
    return found

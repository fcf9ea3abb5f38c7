"""The helpers that a text needs, copied from helpers.py: those it names and those that these name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Helper:
    """One definition of helpers.py with the comments above it. `uses`: every name in it."""

    name: str
    source: str
    uses: frozenset[str]
    heading: str  # of the section it stands in


@cache
def helpers() -> tuple[Helper, ...]:
    """All of them, in their order."""
    text = files(__package__).joinpath("helpers.py").read_text(encoding="utf-8")
    lines, found, end, heading = text.split("\n"), [], 0, ""
    for node in ast.parse(text).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        above = [line for line in lines[end:first] if line.startswith("#")]
        heading = next((line for line in reversed(above) if line.startswith("# ----")), heading)
        comments = [line for line in above if not line.startswith(("# ----", "# mypy"))]
        end = node.end_lineno or first + 1
        if (name := _defined(node)) is not None:
            source = "\n".join([*comments, *lines[first:end]])
            found.append(Helper(name, source, names(source), heading))
    return tuple(found)


def imports() -> str:
    """The import statements of helpers.py; those that a file does not use are taken out of it afterwards."""
    text = files(__package__).joinpath("helpers.py").read_text(encoding="utf-8")
    nodes = [n for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(n) for n in nodes if getattr(n, "module", "") != "__future__")


def _defined(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


def names(text: str) -> frozenset[str]:
    """The identifiers of a Python text, and its attributes."""
    nodes = list(ast.walk(ast.parse(text)))
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name))


def needed(text: str, never: Iterable[str] = ()) -> list[Helper]:
    """The helpers that a text uses, in their order, without those that it replaces."""
    wanted, by_name = set(names(text)), {h.name: h for h in helpers() if h.name not in set(never)}
    while more := {u for n in wanted & set(by_name) for u in by_name[n].uses} - wanted:
        wanted |= more
    return [h for h in by_name.values() if h.name in wanted]

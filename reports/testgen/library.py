"""The helpers that a text needs, copied from helpers.py: those it names and those that these name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from trilift.verify.runs.input_table import VALUES


@dataclass(frozen=True, slots=True)
class Helper:
    """One definition of helpers.py with the comments above it. `uses`: every name in it."""

    name: str
    source: str
    uses: frozenset[str]
    heading: str  # of the section it stands in

    @property
    def is_constant(self) -> bool:
        """Whether it is neither a function nor a class."""
        return not re.search(r"^(def|class) ", self.source, re.MULTILINE)


TABLE, HERE = "input_table.py", "# Here stand the definitions of verify/runs/input_table.py."
HELPERS, INTERPRETER, DEVICE = "helpers.py", "interpreter.py", "device.py"


@cache
def helpers(file: str = HELPERS) -> tuple[Helper, ...]:
    """All of a file, in their order."""
    text = _text(file)
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


@cache
def defined() -> frozenset[str]:
    """The names of the helpers of all files."""
    return frozenset(h.name for file in (HELPERS, INTERPRETER, DEVICE) for h in helpers(file))


def _text(file: str) -> str:
    """The source of a file, with the table of inputs where it says that it stands."""
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    table = files(f"{__package__.split('.')[0]}.verify.runs").joinpath(TABLE).read_text(encoding="utf-8")
    values = "".join(f'    "{name}": {fill.__name__},\n' for name, fill in VALUES.items())
    functions = table[table.index("\ndef ") : table.index("\n# ----")].strip()
    return text.replace(HERE, f"{functions}\n\n\nVALUES = {{\n{values}}}")


def imports() -> list[str]:
    """The import statements of all files; those that a text does not use are taken out of it afterwards."""
    nodes = [n for file in (HELPERS, INTERPRETER, DEVICE) for n in ast.parse(_text(file)).body]
    found = [n for n in nodes if isinstance(n, ast.Import) or (isinstance(n, ast.ImportFrom) and not n.level)]
    return list(dict.fromkeys(ast.unparse(n) for n in found if getattr(n, "module", "") != "__future__"))


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


def immediate(text: str) -> frozenset[str]:
    """The names that a text uses while it is imported: not those in bodies of functions."""
    return frozenset(n.id for node in ast.parse(text).body for n in _evaluated(node) if isinstance(n, ast.Name))


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.FunctionDef(decorator_list=decorators, args=args):
            inner: list[ast.AST | None] = [*decorators, *args.defaults, *args.kw_defaults]
        case ast.Lambda(args=args):
            inner = [*args.defaults, *args.kw_defaults]
        case ast.AnnAssign(target=target, value=value):
            inner = [target, value]
        case _:
            inner = list(ast.iter_child_nodes(node))
    yield node
    for n in inner:
        if n is not None:
            yield from _evaluated(n)


def first(text: str, found: Sequence[Helper]) -> list[Helper]:
    """Those of the helpers that must stand before a text, because it uses them while it is imported."""
    by_name, wanted = {h.name: h for h in found}, set(immediate(text))
    while more := {u for n in wanted & set(by_name) for u in _used(by_name[n])} - wanted:
        wanted |= more
    return [h for h in found if h.name in wanted]


def _used(h: Helper) -> frozenset[str]:
    """The names that a helper uses when it is defined, and a function when it is called."""
    return h.uses if h.source.lstrip("@").startswith("def ") else immediate(h.source)


def needed(text: str, file: str = HELPERS) -> list[Helper]:
    """The helpers of a file that a text uses, in their order."""
    wanted, by_name = set(names(text)), {h.name: h for h in helpers(file)}
    while more := {u for n in wanted & set(by_name) for u in by_name[n].uses} - wanted:
        wanted |= more
    return [h for h in by_name.values() if h.name in wanted]

"""State that code of the host reads beside its arguments: globals and closures that may hold something else in
another process, or at another time.

FLAG["neg"]                  a dict, list or set
linear.weight                a tensor, or a module of PyTorch
OPTIONS.fast                 a number or text of an object of the host's own class
HOPPER = capability() >= 9   a number or text that a call or a branch gave when the module was imported, or that
                             `global` names in a function

A number that its module writes down (`BLOCK = 64`) is code, and so is what a function around the code has made, unless
the file changes something of that name.
"""

from __future__ import annotations

import ast
import dis
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import NamedTuple

import torch

from ...capture.recorder import is_host
from ...errors import TriliftError

PLAIN = (bool, int, float, str, bytes)
CONTAINERS = (dict, list, set, bytearray)
GLOBAL, FREE = frozenset(["LOAD_GLOBAL", "LOAD_NAME"]), frozenset(["LOAD_DEREF", "LOAD_CLASSDEREF"])
ATTRIBUTE = frozenset(["LOAD_ATTR", "LOAD_METHOD"])
CHANGING = {
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard", "fill_", "copy_", "zero_",
}  # fmt: skip
IMPORTS_FOLLOWED = 4  # a name imported from a module that imported it, and so on
LONGEST_TEXT = 40  # characters of a value that is printed


class Chain(NamedTuple):
    """`base.a.b` in the code of a function; `free`: base is a name of the function around it."""

    base: str
    attributes: tuple[str, ...]
    free: bool


@cache
def chains(code: CodeType) -> tuple[Chain, ...]:
    """The globals and closures that the code loads, with the attributes that it loads from them at once."""
    found: dict[Chain, None] = {}
    last: Chain | None = None
    for i in dis.get_instructions(code):
        if i.opname in GLOBAL | FREE:
            last = Chain(str(i.argval), (), i.opname in FREE)
        elif i.opname in ATTRIBUTE and last is not None:
            last = last._replace(attributes=(*last.attributes, str(i.argval)))
        elif i.opname != "CACHE":
            last = None
        if last is not None:
            found[last] = None
    longest = {c for c in found if not any(_within(c, d) for d in found)}
    return tuple(c for c in found if c in longest)


def _within(c: Chain, d: Chain) -> bool:
    same = (c.base, c.free) == (d.base, d.free)
    return same and len(c.attributes) < len(d.attributes) and d.attributes[: len(c.attributes)] == c.attributes


class Watch:
    """Which of that the functions read that are seen in a run."""

    def __init__(self) -> None:
        self.seen: set[CodeType] = set()
        self.inner: set[str] = set()  # prefixes of the names of functions that a seen function has made

    def notes(self, frame: FrameType) -> list[str]:
        """Sentences on the state that the function of a frame reads; at its first call only."""
        code = frame.f_code
        if code in self.seen:
            return []
        self.seen.add(code)
        made_now = any(code.co_qualname.startswith(p) for p in self.inner)
        self.inner.add(f"{code.co_qualname}.<locals>.")
        return [
            said
            for c in chains(code)
            if not c.free or (not made_now and _bindings(code.co_filename).changed & {c.base, *c.attributes})
            if (said := _said(c, frame.f_locals if c.free else frame.f_globals, frame.f_globals))
        ]


def read_in(call: Callable[[], object], files: Collection[str]) -> list[str]:
    """The sentences on all that the code of these files reads while `call` runs, until it ends or raises one of our
    errors. Raises what else it raises."""
    watch, found = Watch(), dict[str, None]()

    def see(frame: FrameType, event: str, arg: object) -> None:  # noqa: ARG001
        if event == "call" and frame.f_code.co_filename in files:
            found.update(dict.fromkeys(watch.notes(frame)))

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        with suppress(TriliftError):
            call()
    finally:
        sys.setprofile(before)
    return list(found)


def _said(c: Chain, space: Mapping[str, object], module: Mapping[str, object]) -> str:
    """The sentence on a chain, as far as the first object on it that may change; "" where there is none."""
    if c.base not in space:
        return ""
    x, path, owner = space[c.base], c.base, None
    home = str(module.get("__name__", ""))
    named = None if c.free else (home, c.base)
    for attribute in (*c.attributes, None):
        if isinstance(x, torch.nn.Module) and attribute is None and x.state_dict():
            return _held(path)
        if said := _of_value(x, path, owner, named):
            return said
        if attribute is None or not _is_open(x):
            return ""
        named = (x.__name__, attribute) if isinstance(x, ModuleType) else None
        held = vars(x).get(attribute) if not isinstance(x, torch.nn.Module) else getattr(x, attribute, None)
        x, path, owner = held, f"{path}.{attribute}", x
    return ""


def _of_value(x: object, path: str, owner: object, named: tuple[str, str] | None) -> str:
    if isinstance(x, PLAIN) and not isinstance(x, Enum):
        changes = _is_variable(*named) if named is not None else _is_of_host(owner)
        return f"`{path}` is {_short(x)}" if changes else ""
    if isinstance(x, (*CONTAINERS, torch.Tensor)) and _is_real(x):
        return _held(path)
    return ""


def _held(path: str) -> str:
    return f"`{path}` holds what it held when it was read"


def _short(x: object) -> str:
    text = repr(x)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 3] + "..."


def _is_real(x: object) -> bool:
    """No tensor without contents, which the call has made."""
    from torch._subclasses.fake_tensor import FakeTensor

    return not isinstance(x, FakeTensor)


def _is_open(x: object) -> bool:
    """Whether what an object of the host's, a module of its code, or a module of PyTorch holds is looked at."""
    return isinstance(x, torch.nn.Module) or _is_of_host(x) or (isinstance(x, ModuleType) and _is_host_module(x))


def _is_of_host(x: object) -> bool:
    if x is None or isinstance(x, (type, ModuleType)) or callable(x) or not hasattr(x, "__dict__"):
        return False
    module = sys.modules.get(type(x).__module__)
    return module is not None and _is_host_module(module)


def _is_host_module(module: ModuleType) -> bool:
    return is_host(getattr(module, "__file__", None) or "<built in>")


# ---- names that a module binds to something else than what is written there ------------------------------------------


def _is_variable(module: str, name: str) -> bool:
    """Whether the name is bound by a call at import, or anew by a function."""
    for _ in range(IMPORTS_FOLLOWED):
        of = sys.modules.get(module)
        if of is None or not _is_host_module(of):
            return False
        bound = _bindings(str(of.__file__))
        if name in bound.variable:
            return True
        if name not in bound.imported:
            return False
        level, source, name = bound.imported[name]
        module = _absolute(of, level, source)
    return False


def _absolute(of: ModuleType, level: int, source: str) -> str:
    if not level:
        return source
    package = of.__name__ if hasattr(of, "__path__") else of.__name__.rpartition(".")[0]
    for _ in range(level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{source}" if source else package


@dataclass(frozen=True, slots=True)
class Bindings:
    """Names of a module: those bound to what a call gave or by a function, (level, module, name) of those that are
    imported, and names and attributes whose object some function changes."""

    variable: frozenset[str] = frozenset()
    imported: Mapping[str, tuple[int, str, str]] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()


@cache
def _bindings(file: str) -> Bindings:
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return Bindings()
    variable, imported = set[str](), dict[str, tuple[int, str, str]]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            variable.update(node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.update({a.asname or a.name: (node.level, node.module or "", a.name) for a in node.names})
    for node, sure in _at_import(tree.body):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if not sure or any(isinstance(n, ast.Call) for n in ast.walk(node.value)):
                variable.update(n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
    changed = {name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for name in _changed(f)}
    return Bindings(frozenset(variable), imported, frozenset(changed))


def _changed(f: ast.FunctionDef) -> Iterator[str]:
    """`x` in `x[k] = v`, `del x[k]`, `x += v`, `x.append(v)`, `nonlocal x`, and `self.x = v` but where an object is
    made."""
    for node in ast.walk(f):
        match node:
            case ast.Subscript(value=of, ctx=ast.Store() | ast.Del()):
                yield from _last(of)
            case ast.AugAssign(target=of):
                yield from _last(of)
            case ast.Call(func=ast.Attribute(value=of, attr=method)) if method in CHANGING:
                yield from _last(of)
            case ast.Nonlocal(names=names):
                yield from names
            case ast.Attribute(attr=name, ctx=ast.Store()) if f.name != "__init__":
                yield name


def _last(of: ast.expr) -> Iterator[str]:
    if isinstance(of, ast.Name | ast.Attribute):
        yield of.id if isinstance(of, ast.Name) else of.attr


def _at_import(body: list[ast.stmt], sure: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements that run when the module is imported, and whether they surely do."""
    for node in body:
        yield node, sure
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            parts = [getattr(node, p, []) for p in ("body", "orelse", "finalbody")]
            for part in (*parts, *(h.body for h in getattr(node, "handlers", []))):
                yield from _at_import(part, False)

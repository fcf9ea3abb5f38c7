"""State that code of the host reads beside its arguments: globals and closures that may hold something else in
another process, or at another time.

FLAG["neg"]                  a dict, list or set
linear.weight                a tensor, or a module of PyTorch
OPTIONS.fast                 a number or text of an object of the host's own class
OPTIONS.is_fast()            an object that computes it from what some code changes
HOPPER = capability() >= 9   a number or text that a call or a branch gave when the module was imported, or that
                             `global` names in a function

A number that its module writes down (`BLOCK = 64`) is code, and so is what a function around the code has made, unless
the file changes something of that name.
"""

from __future__ import annotations

import ast
import dis
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MemberDescriptorType, ModuleType
from typing import NamedTuple

import numpy as np
import torch

from ...capture.places import HOST, place
from ...errors import TriliftError
from .numbers import isinstance_of

PLAIN = (bool, int, float, str, bytes)
CONTAINERS = (dict, list, set, bytearray)
GLOBAL, FREE = frozenset(["LOAD_GLOBAL", "LOAD_NAME"]), frozenset(["LOAD_DEREF", "LOAD_CLASSDEREF"])
ATTRIBUTE = frozenset(["LOAD_ATTR", "LOAD_METHOD"])
CHANGING = {
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard", "fill_", "copy_", "zero_", "appendleft", "popleft", "extendleft", "rotate",
}  # fmt: skip
# Modules of Python whose objects hold the same always, or nothing that a result depends on.
CONSTANT = {"abc", "ast", "datetime", "decimal", "enum", "fractions", "functools", "inspect", "ipaddress", "logging",
            "operator", "pathlib", "re", "string", "typing", "uuid", "builtins", "warnings", "zoneinfo"}  # fmt: skip
COMPUTED = object()
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

    def reads(self, frame: FrameType, files: Collection[str]) -> bool:
        """Whether the function that a frame begins is of these files, or of another one of the host's that such a
        function calls: PyTorch calls packages of its own, of which nobody asks."""
        file, caller = frame.f_code.co_filename, frame.f_back
        return file in files or (place(file) == HOST and caller is not None and caller.f_code in self.seen)

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
    """The sentences on all that the code of these files, and code that it calls, reads while `call` runs, until it ends
    or raises one of our errors. Raises what else it raises."""
    watch, found = Watch(), dict[str, None]()

    def see(frame: FrameType, event: str, arg: object) -> None:  # noqa: ARG001
        if event == "call" and watch.reads(frame, files):
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
    home = str(module.get("__name__", ""))
    x, path, changes = space[c.base], c.base, c.free or _is_variable(home, c.base)
    if not c.free and not isinstance(x, PLAIN) and _is_variable(home, c.base, rebound=True):
        return _held(path)
    for attribute in (*c.attributes, None):
        if isinstance(x, torch.nn.Module) and attribute is None and x.state_dict():
            return _held(path)
        if said := _of_value(x, path, changes, attribute):
            return said
        if attribute is None or not _is_open(x):
            return ""
        held = _attribute(x, attribute)
        if held is COMPUTED:
            return _held(path) if _may_change(x, attribute) else ""
        x, path, changes = held, f"{path}.{attribute}", _changes(x, attribute)
    return ""


def _of_value(x: object, path: str, changes: bool, attribute: str | None) -> str:
    """The sentence on an object itself, of which the code then loads an attribute, or not."""
    if isinstance(x, Enum) or isinstance_of(x):  # a number of ours has come from the arguments
        return ""
    if isinstance(x, PLAIN):
        return f"`{path}` is {_short(x)}" if changes else ""
    if isinstance(x, (*CONTAINERS, torch.Tensor)):
        return _held(path) if _is_real(x) else ""
    if isinstance(x, tuple | partial):
        parts = x if isinstance(x, tuple) else (*x.args, *x.keywords.values())
        return _held(path) if any(_has_state(e) for e in parts) else ""
    return _held(path) if _is_mutable(x, attribute) else ""


def _has_state(x: object) -> bool:
    return isinstance(x, CONTAINERS) or _is_mutable(x, None) or (_is_open(x) and _is_instance(x))


def _is_mutable(x: object, attribute: str | None) -> bool:
    """Whether an object of a class of Python's own or of NumPy's may hold something else at another time."""
    kind = type(x)
    if x is None or callable(x) or isinstance(x, (type, ModuleType)):
        return False
    if kind.__module__ == "_thread":  # locks let one call after the other run, unless they are asked
        return kind.__name__ not in ("lock", "RLock") or attribute == "locked"
    top = kind.__module__.partition(".")[0]
    if top == "numpy":
        return not isinstance(x, np.generic | np.dtype)
    return top in sys.stdlib_module_names and top not in CONSTANT


def _attribute(x: object, name: str) -> object:
    """The attribute as the object holds it; COMPUTED where code would run to find it."""
    if isinstance(x, ModuleType):
        return vars(x).get(name)
    if isinstance(x, torch.nn.Module):
        return getattr(x, name, None)
    held = inspect.getattr_static(x, name, COMPUTED)
    if isinstance(held, MemberDescriptorType):  # a slot
        return getattr(x, name, None)
    if isinstance(held, type) or not hasattr(type(held), "__get__"):
        return held
    return COMPUTED


def _is_instance(x: object) -> bool:
    return not isinstance(x, (type, FunctionType, ModuleType, *PLAIN))


def _changes(x: object, name: str) -> bool:
    """Whether a number or text under this attribute may be another one: of a module or a class where some code gives it
    another one, of any other object always."""
    if isinstance(x, ModuleType):
        return _is_variable(x.__name__, name)
    return name in _changed_beside(x) if isinstance(x, type) else True


def _may_change(x: object, name: str) -> bool:
    """Whether an object computes this attribute, or what a method returns, from something that may change: an object
    that holds something and is not frozen, a class of which some code changes something."""
    if _is_instance(x):
        frozen = getattr(getattr(x, "__dataclass_params__", None), "frozen", False)
        slots = any(isinstance(v, MemberDescriptorType) for k in type(x).__mro__ for v in vars(k).values())
        if frozen:
            return any(isinstance(v, CONTAINERS) for v in getattr(x, "__dict__", {}).values())
        if slots or getattr(x, "__dict__", None):
            return True
    kind = x if isinstance(x, type) else type(x)
    parts = [vars(k) for k in (*kind.__mro__, type(kind)) if _is_of(k)] + ([vars(x)] if hasattr(x, "__dict__") else [])
    held = {n: v for part in parts for n, v in part.items() if not n.startswith("__")}
    computes = any("__getattr__" in part or "__getattribute__" in part for part in parts)
    foreign = held.get(name) is not None and _is_of(type(held[name]))  # a descriptor of the host's own
    return (
        computes
        or foreign
        or bool(held.keys() & _changed_beside(x))
        or any(isinstance(v, CONTAINERS) for v in held.values())
    )


def _changed_beside(x: object) -> frozenset[str]:
    """Names that code of the file changes in which the class of an object, a class or a function is."""
    named = x if isinstance(x, (type, FunctionType)) else type(x)
    module = sys.modules.get(named.__module__)
    return _bindings(str(module.__file__)).changed if module is not None and _is_host_module(module) else frozenset()


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
    """Whether what a module, class, function or object of the host's holds is looked at, or a module of PyTorch."""
    if isinstance(x, ModuleType):
        return _is_host_module(x)
    if isinstance(x, Enum):
        return False
    return isinstance(x, torch.nn.Module) or _is_of(x if isinstance(x, (type, FunctionType)) else type(x))


def _is_of(x: type | FunctionType) -> bool:
    """Whether a class or a function is of the host's own."""
    module = sys.modules.get(x.__module__)
    return module is not None and _is_host_module(module)


def _is_host_module(module: ModuleType) -> bool:
    return place(str(getattr(module, "__file__", None) or "<built in>")) == HOST


# ---- names that a module binds to something else than what is written there ------------------------------------------


def _is_variable(module: str, name: str, rebound: bool = False) -> bool:
    """Whether the name is bound by a call at import, or anew by a function; with `rebound`, the latter."""
    for _ in range(IMPORTS_FOLLOWED):
        of = sys.modules.get(module)
        if of is None or not _is_host_module(of):
            return False
        bound = _bindings(str(of.__file__))
        if name in (bound.rebound if rebound else bound.variable):
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
    """Names of a module: those bound to what a call gave or by a function, those bound by a function, (level, module,
    name) of those that are imported, and names and attributes whose object some function changes."""

    variable: frozenset[str] = frozenset()
    rebound: frozenset[str] = frozenset()
    imported: Mapping[str, tuple[int, str, str]] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()


@cache
def _bindings(file: str) -> Bindings:
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return Bindings()
    variable, rebound, imported = set[str](), set[str](), dict[str, tuple[int, str, str]]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            rebound.update(node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.update({a.asname or a.name: (node.level, node.module or "", a.name) for a in node.names})
    for node, sure in _at_import(tree.body):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if not sure or any(isinstance(n, ast.Call) for n in ast.walk(node.value)):
                variable.update(n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
    changed = {name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for name in _changed(f)}
    return Bindings(frozenset(variable | rebound), frozenset(rebound), imported, frozenset(changed))


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

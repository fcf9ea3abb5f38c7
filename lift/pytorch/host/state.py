"""The numbers and texts that a host function keeps between calls: in globals, closures, defaults, objects.

A counter that a call moves on leads elsewhere in a later call: only the calls that were run are known. Caches and
tensors are not looked at: what is kept of a first call is compared by runs.
"""

from __future__ import annotations

import itertools
import warnings
from array import array
from collections import deque
from collections.abc import Container, Iterator, Mapping
from io import IOBase
from itertools import islice
from operator import length_hint
from types import BuiltinFunctionType, CellType, FunctionType, GeneratorType, ModuleType, SimpleNamespace
from typing import TypeAlias, cast

import numpy as np

from .numbers import isinstance_of
from .shims import host_modules

PLAIN = (bool, int, float, str, bytes, type(None))
STATELESS = (ModuleType, BuiltinFunctionType)  # looked at in their own place, or by nobody
LOOKED_AT_ELEMENTS = 64  # of a container
LOOKED_AT_DEPTH = 2  # containers in a container
Elements: TypeAlias = "dict[object, object] | list[object] | deque[object] | array[float]"


def kept(fn: object) -> dict[str, object]:
    """The numbers and texts that the host's own modules keep, by where they are: `COUNT`, `STATE['n']`, `Box.n`."""
    found: dict[str, object] = {}
    modules = host_modules(fn)
    hosts = {m.__name__ for m in modules}
    seen: set[int] = set()  # functions and classes, which have a name in each module that imports them
    for module in modules:
        for name, x in list(vars(module).items()):
            if type(x) in PLAIN:
                if not name.startswith("__"):
                    found[f"{module.__name__}:{name}"] = x
            elif type(x) not in STATELESS and id(x) not in seen and not name.startswith("__"):
                if isinstance(x, FunctionType | type):
                    seen.add(id(x))
                for path, v in _numbers(name, x, hosts):
                    found[f"{module.__name__}:{path}"] = v
    return found


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """The names whose numbers are others than before."""
    return [n.partition(":")[2] for n, v in after.items() if n in before and not _same(before[n], v)]


def _same(a: object, b: object) -> bool:
    """Whether two numbers or texts are of one type and equal: NaN and NaN are, 0.0 and -0.0 are not."""
    return type(a) is type(b) and (repr(a) == repr(b) if isinstance(a, float) else a == b)


def _numbers(path: str, x: object, hosts: Container[str]) -> Iterator[tuple[str, object]]:
    if type(x) is FunctionType:
        if x.__closure__ or x.__defaults__ or x.__dict__:
            yield from _of_function(path, x)
    elif (x if isinstance(x, type) else type(x)).__module__ in hosts or type(x) is SimpleNamespace:
        held = vars(x) if hasattr(x, "__dict__") else {}
        for n, v in list(held.items()):
            if not n.startswith("__"):
                yield from _inside(f"{path}.{n}", v)
    else:
        yield from _inside(path, x)


def _of_function(path: str, f: FunctionType) -> Iterator[tuple[str, object]]:
    names = f.__code__.co_freevars
    for n, cell in zip(names, f.__closure__ or (), strict=True):
        yield from _inside(f"{n} of {path}", _content(cell))
    for k, v in enumerate(f.__defaults__ or ()):
        yield from _inside(f"default {k} of {path}", v)
    for n, v in vars(f).items():
        yield from _inside(f"{path}.{n}", v)


def _content(cell: CellType) -> object:
    try:
        return cast(object, cell.cell_contents)
    except ValueError:  # it is empty
        return None


def _inside(path: str, x: object, depth: int = LOOKED_AT_DEPTH) -> Iterator[tuple[str, object]]:
    if _is_plain(x):
        yield path, x
    elif isinstance(x, np.ndarray) and x.size <= LOOKED_AT_ELEMENTS:
        yield path, x.tobytes()
    elif isinstance(x, dict | list | deque | array) and depth:
        yield from _elements(path, x, depth)
    elif isinstance(x, Iterator) and not isinstance(x, IOBase):
        yield path, _position(x)


def _position(x: object) -> object:
    """How far an iterator of Python's own has come: a generator, a counter, one over a list, one over others. Where it
    cannot be told, each look at it is another."""
    if isinstance(x, itertools.count):
        return repr(x)
    if isinstance(x, GeneratorType):
        frame = x.gi_frame
        plain = {n: v for n, v in frame.f_locals.items() if _is_plain(v)} if frame is not None else {}
        return f"{getattr(frame, 'f_lasti', 'ended')} {plain}", x.gi_yieldfrom and _position(x.gi_yieldfrom)
    if (n := length_hint(x, -1)) >= 0:
        return n
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            return _reduced(cast(tuple[object, ...], x.__reduce__())[1:])
    except TypeError:  # from Python 3.14 on
        return object()


def _reduced(x: object) -> object:
    """An iterator as pickle keeps it: the iterators in it by their positions, numbers, how long lists are."""
    if isinstance(x, tuple):
        return tuple(_reduced(e) for e in x)
    if isinstance(x, dict):
        return tuple((k, _reduced(v)) for k, v in x.items())
    if isinstance(x, Iterator):
        return _position(x)
    return x if _is_plain(x) else len(x) if isinstance(x, list) else id(x)


def _elements(path: str, x: Elements, depth: int) -> Iterator[tuple[str, object]]:
    parts = list(islice(x.items() if isinstance(x, dict) else enumerate(x), LOOKED_AT_ELEMENTS))
    for k, v in parts:
        if _is_plain(k):
            yield from _inside(f"{path}[{k!r}]", v, depth - 1)
    if not isinstance(x, dict):
        yield f"len({path})", len(x)


def _is_plain(x: object) -> bool:
    return type(x) in PLAIN and not isinstance_of(x)

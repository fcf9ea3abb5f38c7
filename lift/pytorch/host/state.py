"""The numbers and texts that a host function keeps between calls: in globals, closures, defaults, objects.

A counter that a call moves on leads elsewhere in a later call: only the calls that were run are known. Caches and
tensors are not looked at: what is kept of a first call is compared by runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from operator import length_hint
from types import CellType, FunctionType, GeneratorType, ModuleType
from typing import cast

from .numbers import isinstance_of
from .shims import host_modules

PLAIN = (bool, int, float, str, bytes, type(None))
LOOKED_AT_ELEMENTS = 64  # of a container


def kept(fn: object) -> dict[str, object]:
    """The numbers and texts that the host's own modules keep, by where they are: `COUNT`, `STATE['n']`, `Box.n`."""
    found: dict[str, object] = {}
    for module in host_modules(fn):
        for name, x in list(vars(module).items()):
            if not name.startswith("__"):
                found.update((f"{module.__name__}:{path}", v) for path, v in _numbers(name, x, module))
    return found


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """The names whose numbers are others than before."""
    return [n.partition(":")[2] for n, v in after.items() if n in before and not _same(before[n], v)]


def _same(a: object, b: object) -> bool:
    """Whether two numbers or texts are of one type and equal: NaN and NaN are, 0.0 and -0.0 are not."""
    return type(a) is type(b) and (repr(a) == repr(b) if isinstance(a, float) else a == b)


def _numbers(path: str, x: object, module: ModuleType) -> Iterator[tuple[str, object]]:
    if isinstance(x, FunctionType):
        yield from _of_function(path, x)
    elif isinstance(x, type) or getattr(type(x), "__module__", "") == module.__name__:
        held = vars(x) if hasattr(x, "__dict__") else {}
        for n, v in list(held.items()):
            if not n.startswith("__"):
                yield from _shallow(f"{path}.{n}", v)
    else:
        yield from _shallow(path, x)


def _of_function(path: str, f: FunctionType) -> Iterator[tuple[str, object]]:
    names = f.__code__.co_freevars
    for n, cell in zip(names, f.__closure__ or (), strict=True):
        yield from _shallow(f"{n} of {path}", _content(cell))
    for k, v in enumerate(f.__defaults__ or ()):
        yield from _shallow(f"default {k} of {path}", v)
    for n, v in vars(f).items():
        yield from _shallow(f"{path}.{n}", v)


def _content(cell: CellType) -> object:
    try:
        return cast(object, cell.cell_contents)
    except ValueError:  # it is empty
        return None


def _shallow(path: str, x: object) -> Iterator[tuple[str, object]]:
    if _is_plain(x):
        yield path, x
    elif isinstance(x, (dict, list)):
        yield from _elements(path, x)
    elif isinstance(x, Iterator):
        yield path, _position(x)


def _position(x: object) -> str:
    """How far an iterator of Python's own has come: a generator, a counter, one over a list."""
    if isinstance(x, itertools.count):
        return repr(x)
    if isinstance(x, GeneratorType):
        frame = x.gi_frame
        plain = {n: v for n, v in frame.f_locals.items() if _is_plain(v)} if frame is not None else {}
        return f"{getattr(frame, 'f_lasti', 'ended')} {plain} {_position(x.gi_yieldfrom)}"
    return str(length_hint(x, -1))


def _elements(path: str, x: dict[object, object] | list[object]) -> Iterator[tuple[str, object]]:
    parts = list(x.items() if isinstance(x, dict) else enumerate(x))[:LOOKED_AT_ELEMENTS]
    yield from ((f"{path}[{k!r}]", v) for k, v in parts if _is_plain(k) and _is_plain(v))
    if isinstance(x, list):
        yield f"len({path})", len(x)


def _is_plain(x: object) -> bool:
    return type(x) in PLAIN and not isinstance_of(x)

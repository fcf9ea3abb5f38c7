"""Integer arguments that are 1 at every call, which Triton makes constants of the kernel.

A kernel is lowered with an argument for each number that it gets: it is the kernel of all numbers. Where it is not that
of 1, as `lift.ttir.specialised` tells, and no call gives another number, the one with the constant is meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import reduce
from operator import getitem

from ..errors import Place
from ..runtime.session import table
from ..ttir.specialised import alike_at_one, at_one, parts, specialised
from .launches import Bound
from .places import host_place

Site = tuple[object, Place | None]  # a kernel's function, and the line of the host function that launches it
Argument = tuple[Site, str]
_ALWAYS: dict[int, tuple[object, frozenset[Argument]]] = table("capture.ones", {})  # by id of the case


def ones(bound: Bound) -> list[str]:
    """The arguments that are 1 in a launch, which Triton makes constants."""
    where = parts(bound.signature)
    return [n for n in specialised(bound.kernel, bound.signature) if _is_one(bound, where[n][0])]


def _is_one(bound: Bound, path: tuple[int, ...]) -> bool:
    value: object = reduce(getitem, path, [bound.args[n] for n in bound.signature])
    return type(value) is int and value == 1


def another(bound: Bound) -> str:
    """Which arguments of a launch are 1, so that Triton makes them constants and the kernel another one than that of
    `Launch.module`; empty where it is the same."""
    names = ones(bound)
    if alike_at_one(bound, names):
        return ""
    return f"{', '.join(names)} of {bound.kernel.fn.__name__} is 1, which makes it another kernel"


def meant(bound: Bound, always: Collection[Argument]) -> Bound:
    """The launch with constants for the arguments that are 1 in all launches of its line, where it is another kernel
    with them. `always`: these arguments."""
    names = [n for n in ones(bound) if (site(bound), n) in always]
    if alike_at_one(bound, names):
        return bound
    signature, constexprs = at_one(bound.signature, bound.constexprs, names)
    return replace(bound, signature=signature, constexprs=dict(constexprs))


def site(bound: Bound) -> Site:
    """Where a launch that is going on is made."""
    return bound.kernel.fn, host_place()


def always_one(case: object, launches: Iterable[tuple[Site, Bound]]) -> frozenset[Argument]:
    """The arguments that are 1 in each of these launches of a case, from now on known."""
    found: dict[Site, set[str]] = {}
    for at, b in launches:
        found[at] = found.get(at, set(parts(b.signature))) & set(ones(b))
    _ALWAYS[id(case)] = case, frozenset((at, n) for at, names in found.items() for n in names)
    return known_ones(case)


def is_known(case: object) -> bool:
    """Whether `always_one` was asked about a case."""
    return id(case) in _ALWAYS


def known_ones(case: object) -> frozenset[Argument]:
    """The arguments that `always_one` has found; none before it was asked."""
    return _ALWAYS.get(id(case), (case, frozenset[Argument]()))[1]

"""Tiles that are computed from indices and not read: causal masks, bands, biases of positions."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trilift.lift.language.infix import ATOM, Piece
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from .template import expression


def launch_numbers(element: Term) -> list[Term]:
    """The largest parts without axes that are neither constants nor products with one: arguments of the kernel."""
    if element.is_const:
        return []
    if not element.free and not (element.op == "mul" and any(a.is_const for a in element.args)):
        return [element]
    return list(dict.fromkeys(n for a in element.args for n in launch_numbers(a)))


def unbounded(element: Term) -> bool:
    """Whether an element may be minus infinity."""
    return any(s.is_const and s.attr == -math.inf for s in element.walk())


def values(element: Term, indices: Mapping[str, str], given: Mapping[Term, str]) -> str:
    """The tile as real numbers in Triton. `indices`: of each axis, broadcast to the tile; `given`: the numbers of the
    launch. Raises Unsupported; whether // of negative numbers is meant is for the proof of the file to say."""

    def leaf(t: Term) -> Piece | None:
        if t in given:
            return Piece(given[t])
        return Piece(indices[t.attr.name], rank=1) if t.op == "axis" else None

    found = expression(element, leaf, real=False)
    return found.text if element.type == T.REAL else f"{found.at(ATOM)}.to(tl.float32)"


def at_sizes(element: Term, sizes: Mapping[str, int]) -> Term:
    """The element where the axes have these sizes."""
    return T.substitute(element, {a: T.axis(T.Axis(a.name, T.const(sizes[a.name]))) for a in element.free})

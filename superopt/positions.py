"""Tiles that are computed from indices and not read: causal masks, bands, biases of positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lift import term as T
from lift.errors import Unsupported
from lift.term import Term

TEXTS = {
    "lt": "({0} < {1})", "le": "({0} <= {1})", "eq": "({0} == {1})", "ne": "({0} != {1})", "not": "(~{0})",
    "where": "tl.where({0}, {1}, {2})", "floordiv": "({0} // {1})", "mod": "({0} % {1})", "abs": "tl.abs({0})",
    "exp": "tl.exp({0})", "recip": "(1.0 / {0})", "to_real": "{0}.to(tl.float32)",
}  # fmt: skip
MANY = {"add": " + ", "mul": " * ", "and": " & ", "or": " | "}
EXTREMA = {"max": "tl.maximum({0}, {1})", "min": "tl.minimum({0}, {1})"}


def launch_numbers(element: Term) -> list[Term]:
    """The largest parts that no axis is in and that are no constants: arguments of the kernel."""
    if element.is_const:
        return []
    if not element.free:
        return [element]
    return list(dict.fromkeys(n for a in element.args for n in launch_numbers(a)))


def unbounded(element: Term) -> bool:
    """Whether an element may be minus infinity."""
    return any(s.is_const and s.attr == -math.inf for s in element.walk())


def values(element: Term, indices: Mapping[str, str], given: Mapping[Term, str]) -> str:
    """The tile as real numbers in Triton. `indices`: of each axis, broadcast to the tile; `given`: the numbers of the
    launch. Raises Unsupported; whether // of negative numbers is meant is for the proof of the file to say."""
    text = tile(element, indices, given)
    return text if element.type == T.REAL else f"{text}.to(tl.float32)"


def tile(element: Term, indices: Mapping[str, str], given: Mapping[Term, str]) -> str:
    """The tile in Triton, of the element's own type. Raises Unsupported."""
    if element in given:
        return given[element]
    if element.op == "axis":
        return indices[element.attr.name]
    if element.is_const:
        return _constant(element.attr)
    real = element.type == T.REAL
    args = [_constant(float(a.attr)) if real and _plain(a) else tile(a, indices, given) for a in element.args]
    if element.op in MANY:
        return f"({MANY[element.op].join(args)})"
    if element.op in EXTREMA:
        out = args[0]
        for a in args[1:]:
            out = EXTREMA[element.op].format(out, a)
        return out
    if element.op not in TEXTS:
        raise Unsupported(f"{element.op} of indices has no text in a kernel of the search")
    return TEXTS[element.op].format(*args)


def _plain(t: Term) -> bool:
    """Whether a term is an integer constant."""
    return t.is_const and type(t.attr) is int


def _constant(c: Any) -> str:
    if isinstance(c, float) and math.isinf(c):
        return 'float("inf")' if c > 0 else '-float("inf")'
    return f"({c!r})" if c < 0 else repr(c)


def at_sizes(element: Term, sizes: Mapping[str, int]) -> Term:
    """The element where the axes have these sizes."""
    return T.substitute(element, {a: T.axis(T.Axis(a.name, T.const(sizes[a.name]))) for a in element.free})

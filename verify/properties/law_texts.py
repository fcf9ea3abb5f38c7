"""Laws as equations over the names of the case: f(x + c) = f(x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..normal_form.enclosure import INF
from .records import Property

if TYPE_CHECKING:
    from .laws import Subject


def applied(s: Subject, p: Property, each: Callable[[str], str] = lambda x: x) -> str:
    """The output as a function of the inputs that change."""
    return f"{s.name}({', '.join(map(each, p.inputs))})"


def at(dim: int, what: str) -> str:
    """An index at one dimension: [:, i]."""
    return f"[{':, ' * dim}{what}]"


def slices(s: Subject, p: Property, span: str) -> str:
    what = span.format(s.fresh("i"))
    parts = ", ".join(x + at(p.positions[x], what) for x in p.inputs)
    return f"{applied(s, p)}{at(p.positions[p.output], what)} depends on {parts} alone"


def permuted(p: Property, s: Subject) -> str:
    order = s.fresh("p")
    left = applied(s, p, lambda x: x + at(p.positions[x], order))
    return f"{left} = {applied(s, p)}{at(p.positions[p.output], order) if p.kind == 'equivariant' else ''}"


def shifted(p: Property, s: Subject) -> str:
    (x,) = p.inputs
    c = s.fresh("c")
    tail = {0: "", 1: f" + {c}", -1: f" - {c}"}[int(p.degree or 0)]
    where = f" for {c} constant along dimension {p.positions[x]}" if x in p.positions else f" for a number {c}"
    return f"{applied(s, p, lambda x: f'{x} + {c}')} = {applied(s, p)}{tail}{where}"


def homogeneous(p: Property, s: Subject) -> str:
    c, k = s.fresh("c"), p.degree or 0
    factor = "" if k == 0 else f"{c} * " if k == 1 else f"{c} ** {f'({k:g})' if k < 0 or k % 1 else f'{k:g}'} * "
    return f"{applied(s, p, lambda x: f'{c} * {x}')} = {factor}{applied(s, p)} for {c} > 0"


def additive(p: Property, s: Subject) -> str:
    both, more = applied(s, p, lambda x: f"{x} + {x}'"), applied(s, p, lambda x: f"{x}'")
    return f"{both} = {applied(s, p)} + {more}"


def negated(p: Property, s: Subject) -> str:
    return f"{applied(s, p, '-{}'.format)} = {'-' if p.kind == 'odd' else ''}{applied(s, p)}"


def summed(p: Property, s: Subject) -> str:
    return f"sum({s.name}, {p.positions[p.output]}) = {p.value:g}"


def repeated(p: Property, s: Subject) -> str:
    return f"{s.name}({applied(s, p)}) = {applied(s, p)}"


def bounded(p: Property, s: Subject) -> str:
    low, high = (f"{x:g}" if abs(x) < INF else "" for x in p.bounds)
    return " <= ".join(x for x in (low, s.name, high) if x)


def monotone(p: Property, s: Subject) -> str:
    left, right = applied(s, p), applied(s, p, lambda x: f"{x}'")
    conditions = " and ".join(f"{x} <= {x}'" for x in p.inputs)
    return f"{conditions} implies {left} {'<=' if (p.degree or 1) > 0 else '>='} {right}"

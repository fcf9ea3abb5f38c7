"""A formula in its shortest known form: constants recovered, equality saturation by the laws, definitions recognised.

    align       bound axes take the names of the output's axes of the same size, so that laws need no renaming
    recover     0.18033688 * ... in base 2 becomes log2(e) / 8 and then 1 / 8 in base e (lift.terms.constants)
    saturate    lift.simplify.egraph, in rounds until nothing changes
    tidy        what does not depend on a sum's axis moves out of it

Every result is evaluated against its input on random float64 arrays and dropped if it differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import Unsupported
from ..language.alignment import align
from ..language.sample import differ
from ..terms import construct as T
from ..terms.constants import recover
from ..terms.spec import Formula
from ..terms.term import Term
from .egraph import DEFAULT, Limits, saturate
from .laws import LAWS, Law

SATURATION_ROUNDS = 3


@dataclass(frozen=True)
class Simplified:
    """`formula` simplified; why saturation stopped, per round; `note` when the result was dropped."""

    formula: Formula
    stop: str
    note: str
    start: Term
    fired: frozenset[str]

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """A smallest set of laws that gives the same formula, each with its condition. Found by leaving laws out."""
        wanted = [law for law in LAWS if law.name in self.fired]
        return tuple(_needed(self.start, self.formula.term, wanted))


def simplify(formula: Formula, limits: Limits = DEFAULT) -> Simplified:
    """The formula in its shortest known form. Never raises for a formula that evaluates; at worst nothing changes."""
    start = constants(align(formula.term, formula.axes))
    term, stops, fired = _rounds(start, LAWS, limits)
    stop, wrong = ", ".join(stops), _disagreement(formula, start, term)
    if wrong is None:
        return Simplified(replace(formula, term=term), stop, "", start, fired)
    return Simplified(formula, stop, f"dropped: {wrong}", formula.term, frozenset())


def _disagreement(formula: Formula, start: Term, term: Term) -> str | None:
    """Why the result is not trusted: it differs from the input on random numbers, or cannot be evaluated."""
    try:
        off = differ(formula.term, start, formula.axes, tolerance=1e-5)
        return f"a recovered constant is too far off, {off}" if off else differ(start, term, formula.axes)
    except Unsupported as e:
        return str(e)


def _rounds(t: Term, laws: Sequence[Law], limits: Limits) -> tuple[Term, list[str], frozenset[str]]:
    stops: list[str] = []
    fired: frozenset[str] = frozenset()
    for _ in range(SATURATION_ROUNDS):
        out = saturate(t, laws, limits)
        stops.append(out.stop)
        fired |= out.fired
        new = constants(tidy(out.term))
        if new is t:
            break
        t = new
    return t, stops, fired


def _needed(start: Term, goal: Term, laws: list[Law]) -> list[Law]:
    """Leave out halves, quarters, ... single laws as long as the result stays."""
    size = len(laws)
    while size:
        size = (size + 1) // 2 if size > 1 else 0
        at = 0
        while size and at < len(laws):
            fewer = laws[:at] + laws[at + size :]
            if _rounds(start, fewer, DEFAULT)[0] is goal:
                laws = fewer
            else:
                at += size
        if size == 1:
            break
    return laws


# ---- constants -------------------------------------------------------------------------------------------------------

LOG2_E, LN_2 = recover(1.4426950408889634)[0], recover(0.6931471805599453)[0]


def constants(t: Term) -> Term:
    """Base 2 to base e, then every real constant to the number that was meant."""
    return T.rewrite(T.rewrite(t, _base_e), _recover)


def _base_e(t: Term) -> Term | None:
    match t.op:
        case "exp2":
            return T.make("exp", _times(LN_2, t.args[0]))
        case "log2":
            return T.mul(LOG2_E, T.make("log", t.args[0]))
    return None


def _times(c: float, t: Term) -> Term:
    """c * t, distributed over sums, its constants recovered at once: log(2) * (log2(e) / 8 * a) -> a / 8."""
    if t.op == "add":
        return T.add(*(_times(c, a) for a in t.args))
    if t.op == "where":
        return T.where(t.args[0], _times(c, t.args[1]), _times(c, t.args[2]))
    if t.op == "amax":
        return T.fold("amax", t.attr, _times(c, t.args[0]))
    return _recover(T.mul(c, t)) or T.mul(c, t)


def _recover(t: Term) -> Term | None:
    if t.op == "const":
        return _meant(t)
    if t.op in ("mul", "add") and any(_meant(a) is not None for a in t.args):
        return T.make(t.op, *(_meant(a) or a for a in t.args))
    return None


def _meant(t: Term) -> Term | None:
    if t.op != "const" or t.type != T.REAL:
        return None
    value = recover(t.attr)[0]
    return T.const(value) if value != t.attr else None


# ---- form ------------------------------------------------------------------------------------------------------------


def tidy(t: Term) -> Term:
    """Factors that do not depend on a sum's axis stand before it, as signs before a mask; a - (b + c) is a - b - c."""
    forms = {"sum": _hoist, "add": _flat, "where": _signed}
    return T.rewrite(t, lambda s: forms[s.op](s) if s.op in forms else None)


def _hoist(t: Term) -> Term | None:
    body = t.args[0]
    masked = body.op == "where" and body.args[2] is T.const(0)
    product = body.args[1] if masked else body
    outside = [a for a in product.args if t.attr not in a.free] if product.op == "mul" else []
    inside = [a for a in product.args if a not in outside]
    if not outside or not inside:
        return None
    rest = T.where(body.args[0], T.mul(*inside), 0) if masked else T.mul(*inside)
    return T.mul(*outside, T.fold("sum", t.attr, rest))


def _signed(t: Term) -> Term | None:
    if t.args[1] is T.const(-1) and t.args[2] is T.const(0):
        return T.mul(-1, T.where(t.args[0], 1, 0))
    return None


def _flat(t: Term) -> Term | None:
    sums = [
        a
        for a in t.args
        if a.op == "mul" and len(a.args) == 2 and {b.op for b in a.args} == {"const", "add"} and T.const(-1) in a.args
    ]
    if not sums:
        return None
    inner = [T.mul(-1, b) for a in sums for s in a.args if s.op == "add" for b in s.args]
    return T.add(*(a for a in t.args if a not in sums), *inner)

"""Comparisons and choices: arith.cmpi, arith.cmpf, arith.select.

A comparison of a number with itself or with an infinity is decided where the number is finite whatever is read, by
`lift.terms.definedness`: x / y may be NaN. Integers stay within their ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...terms import construct as T
from ...terms.definedness import is_finite
from ...terms.domain import Ids, on_distinct
from ...terms.ranges import ALL
from ...ttir.ir import Op
from ..machine import settle
from ..registry import handles, signed, unsigned

if TYPE_CHECKING:
    from ..interpret import Run

ROWS_OF_PREDICATE = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


@handles("arith.cmpi")
def _cmpi(run: Run, op: Op, a: Any, b: Any) -> Any:
    predicate, t = op.attrs["predicate"], op.operands[0].type
    if t.element == "i1":
        return _compare_booleans(run, predicate, a, b)
    sign = unsigned if predicate[0] == "u" else signed
    row = predicate if predicate in ("eq", "ne") else predicate[1:]
    a, b = sign(run, a, t.bits), sign(run, b, t.bits)
    if isinstance(a, Ids) or isinstance(b, Ids):
        return settle(on_distinct(lambda x, y: compare(run, row, x, y), a, b), op.results[0].type)
    return run.domain.apply(row, a, b)


def compare(run: Run, row: str, a: T.Term, b: T.Term) -> T.Term:
    """A comparison of integer terms, decided by their ranges where possible: v < V for a bounded index."""
    if row in ("gt", "ge"):
        return compare(run, {"gt": "lt", "ge": "le"}[row], b, a)
    for x, y, f in ((a, b, lambda c: T.make(row, c, b)), (b, a, lambda c: T.make(row, a, c))):
        if x.op == "where" and y.op == "const" and all(c.op == "const" for c in x.args[1:]):
            return choose(x.args[0], f(x.args[1]), f(x.args[2]))
    (low_a, high_a), (low_b, high_b) = run.ranges.of(a), run.ranges.of(b)
    if ALL not in ((low_a, high_a), (low_b, high_b)):
        disjoint = high_a < low_b or high_b < low_a
        if row in ("eq", "ne") and disjoint:
            return T.const(row == "ne")
        if row in ("lt", "le"):
            if high_a < low_b or (row == "le" and high_a == low_b):
                return T.const(True)
            if low_a > high_b or (row == "lt" and low_a == high_b):
                return T.const(False)
    return T.make(row, a, b)


def choose(c: T.Term, yes: T.Term, no: T.Term) -> T.Term:
    """where(c, yes, no) of booleans: with constants it is c, ~c, c & yes, c | no."""
    match yes.attr if yes.is_const else None, no.attr if no.is_const else None:
        case (True, False):
            return c
        case (False, True):
            return T.make("not", c)
        case (None, False):
            return T.make("and", c, yes)
        case (True, None):
            return T.make("or", c, no)
    return T.where(c, yes, no)


def _compare_booleans(run: Run, predicate: str, a: Any, b: Any) -> Any:
    """eq and ne; the order of i1 has true = -1 when signed, 1 when unsigned."""
    if predicate in ("eq", "ne"):
        out = exclusive_or(a, b)
        return out if predicate == "ne" else run.domain.apply("not", out)
    if predicate[0] == "s":
        a, b = b, a
    a, b = (b, a) if predicate[1] == "g" else (a, b)
    strict, negated = predicate[2] == "t", run.domain.apply("not", a)
    return run.domain.apply("and" if strict else "or", negated, b)  # a < b is ~a & b; a <= b is ~a | b


def exclusive_or(a: Any, b: Any) -> Any:
    """a != b of booleans; with a known one it is the other or its negation."""
    if not (isinstance(a, Ids) or isinstance(b, Ids)):
        return np.not_equal(a, b)

    def term(x: T.Term, y: T.Term) -> T.Term:
        if x.is_const:
            x, y = y, x
        if y.is_const:
            return T.make("not", x) if y.attr else x
        return T.make("ne", x, y)

    return on_distinct(term, a, b)


_FLOAT_ROWS = {"eq": "eq", "ne": "ne", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le"}


@handles("arith.cmpf")
def _cmpf(run: Run, op: Op, a: Any, b: Any) -> Any:
    """Ordered predicates are false on NaN and unordered ones true. Terms tell them apart only in "ord" and "uno": the
    order of what may be no number is for a proof to refuse."""
    predicate, t = op.attrs["predicate"], op.results[0].type
    if predicate in ("true", "false"):
        return np.full(t.shape, predicate == "true")
    if isinstance(a, Ids) or isinstance(b, Ids):
        return settle(on_distinct(lambda x, y: _compare_reals(predicate, x, y), a, b), t)
    nan = np.isnan(a) | np.isnan(b)
    if predicate in ("ord", "uno"):
        return ~nan if predicate == "ord" else nan
    out = run.domain.apply({"one": "ne", "une": "ne"}.get(predicate, predicate[1:]), a, b)
    return out | nan if predicate[0] == "u" else out & ~nan


def _compare_reals(predicate: str, a: T.Term, b: T.Term) -> T.Term:
    if predicate in ("ord", "uno"):
        itself = [T.make("eq", x, x) for x in dict.fromkeys((a, b)) if not is_finite(x)]
        ordered = T.make("and", T.const(True), *itself)
        return ordered if predicate == "ord" else T.make("not", ordered)
    row = predicate[1:]
    if row in ("gt", "ge"):
        row, a, b = {"gt": "lt", "ge": "le"}[row], b, a
    if (known := _against_infinity(row, a, b)) is not None:
        return T.const(known)
    if a is b and is_finite(a) and not a.is_const:
        return T.const(row in ("eq", "le"))
    for x, y, f in ((a, b, lambda c: T.make(row, c, b)), (b, a, lambda c: T.make(row, a, c))):
        if x.op == "where" and y.op == "const" and all(c.op == "const" for c in x.args[1:]):
            return choose(x.args[0], f(x.args[1]), f(x.args[2]))
    return T.make(row, a, b)


def _against_infinity(row: str, a: T.Term, b: T.Term) -> bool | None:
    """A comparison of a finite term with an infinity."""
    for x, y in ((a, b), (b, a)):
        if y.is_const and abs(y.attr) == np.inf and is_finite(x):
            return row == "ne" if row in ("eq", "ne") else (y.attr > 0) == (y is b)
    return None


@handles("arith.select")
def _select(run: Run, op: Op, c: Any, a: Any, b: Any) -> Any:
    t = op.results[0].type
    if not any(isinstance(x, Ids) for x in (c, a, b)):
        return np.where(c, a, b)
    if t.element == "i1":
        return settle(on_distinct(lambda c, a, b: c if c.op == "undef" else choose_by(c, a, b), c, a, b), t)
    return settle(run.domain.apply("where", c, a, b), t)


def choose_by(c: T.Term, a: T.Term, b: T.Term) -> T.Term:
    return (a if c.attr else b) if c.is_const else choose(c, a, b)

"""Construction: the normal terms. `from ..terms import construct as T` gives the data of `lift.terms.term` too.

Construction normalises only what is true of all reals: n-ary `add` and `mul` are flat, sorted, with one constant; x - y
is x + -1*y; x / y is x * recip(y); comparisons are `lt`, `le`, `eq`, `ne`. Undefined values absorb: 0 * undef is undef.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..runtime.session import table
from .meanings import Domain, meaning
from .term import (
    BOOL,
    COMMUTATIVE,
    FOLDS,
    INT,
    LAZY,
    NAMED,
    NOTHING,
    OPERATIONS,
    OPERATORS,
    REAL,
    TERMS,
    UNBOUNDED,
    UNFOLD,
    UNIT,
    Axis,
    Operation,
    Term,
    TermLike,
    axis,
    const,
    fold,
    fresh_axis,
    node,
    pinned,
    read,
    reads,
    scalar,
    size,
    unbounded,
    undef,
)

__all__ = [
    "BOOL", "COMMUTATIVE", "CONSTRUCTION", "FINITE", "FOLDS", "INT", "LAZY", "NAMED", "NOTHING", "NUMBERS",
    "OPERATIONS", "OPERATORS", "REAL", "TERMS", "UNBOUNDED", "UNFOLD", "UNIT", "Axis", "Operation", "Term", "TermLike",
    "add", "axis", "const", "div", "fold", "fresh_axis", "is_whole", "make", "mul", "node", "pinned", "read", "reads",
    "rebuild", "recip", "rewrite", "scalar", "size", "sub", "substitute", "unbounded", "undef", "where",
]  # fmt: skip

_MADE: dict[tuple[str, tuple[Term, ...]], Term] = table("terms.made", {})  # what `make` was asked before
MADE_ENTRIES, FEW_ARGUMENTS = 400_000, 8  # entries, and arguments of one
# lift.terms.definedness fills both: whether a term is never NaN, and whether it is always finite
NUMBERS: list[Callable[[Term], bool]] = []
FINITE: list[Callable[[Term], bool]] = []

CONSTRUCTION = Domain("construction", missing="opaque", says="the term that a node is made as")
_RULES: dict[str, Callable[..., Term | None]] = CONSTRUCTION.rows  # None: the node as it is
CONSTRUCTION.derive(FOLDS, "a node that binds its axis")


def make(op: str, *args: TermLike, attr: Any = None) -> Term:
    """The normalised application of an elementwise operation of `lift.terms.ops` (or `read`, `fold` names with an
    attr)."""
    ts = tuple([a if type(a) is Term else const(a) for a in args])
    if attr is not None or len(ts) > FEW_ARGUMENTS:
        return _make(op, ts, attr)
    t = _MADE.get((op, ts))
    if t is None:
        t = _make(op, ts, None)
        if len(_MADE) > MADE_ENTRIES:
            _MADE.clear()
        _MADE[op, ts] = t
    return t


def _make(op: str, ts: tuple[Term, ...], attr: Any) -> Term:
    if op in FOLDS:
        return fold(op, attr, ts[0])
    if op in NAMED:
        return node(op, ts, attr)
    if op == "read":
        return read(attr, ts)
    if op in ("const", "size", "scalar", "axis", "undef"):
        raise ValueError(f"{op} is a leaf")
    if attr is None and ts and all(t.op == "const" for t in ts):
        v = OPERATIONS[op].on_numbers(*(t.attr for t in ts))
        if v is not None:
            return const(v)
    if op not in LAZY and (bad := next((t for t in ts if t.op == "undef"), None)) is not None:
        return undef(bad.attr, _result_type(op, ts))
    rule = _RULES.get(op)
    if rule is not None and (r := rule(op, *ts)) is not None:
        return r
    return node(op, ts, attr, _result_type(op, ts))


def _result_type(op: str, ts: tuple[Term, ...]) -> str:
    rule = OPERATIONS[op].type
    if rule != "same":
        return rule
    kinds = {t.type for t in (ts[1:] if op == "where" else ts)}
    return REAL if REAL in kinds else INT if INT in kinds else BOOL


def rebuild(t: Term, args: tuple[Term, ...]) -> Term:
    """The term with other arguments, normalised again; if no table has a row for its operation, the node is built as it
    stands."""
    if args == t.args:
        return t
    if t.op in OPERATIONS or t.op in FOLDS or t.op in NAMED:
        return make(t.op, *args, attr=t.attr)
    return node(t.op, args, t.attr, t.type)


def _nary(op: str, ts: tuple[Term, ...]) -> list[Term]:
    out: list[Term] = []
    for t in ts:
        if t.op == op:
            out.extend(t.args)
        else:
            out.append(t)
    return out


@meaning(CONSTRUCTION, "add")
def _add(_: str, *ts: Term) -> Term | None:
    """Flat, sorted, constants summed: a + 0 = a."""
    total: Any = 0
    rest: list[Term] = []
    for t in _nary("add", ts):
        if t.op == "const":
            total = total + t.attr
        else:
            rest.append(t)
    if isinstance(total, float) and math.isinf(total) and all(FINITE[0](t) for t in rest):
        return const(total)  # x - inf = -inf for finite x
    if len(rest) > 1 and all(t.type == INT for t in rest):
        rest = _like(rest)
    if not rest:
        return const(total)
    if total != 0:
        rest.append(const(total))
    if len(rest) == 1:
        return rest[0]
    args = tuple(sorted(rest, key=lambda t: t.id))
    return node("add", args, None, _result_type("add", args))


def _like(ts: list[Term]) -> list[Term]:
    """Integers: c * a + d * a = (c + d) * a. (Of reals this is a law, since a may be infinite.)"""
    count: dict[Term, int] = {}
    for t in ts:
        c = next((a.attr for a in t.args if a.op == "const"), 1) if t.op == "mul" else 1
        base = make("mul", *(a for a in t.args if a.op != "const")) if c != 1 else t
        count[base] = count.get(base, 0) + c
    return [base if c == 1 else mul(c, base) for base, c in count.items() if c != 0]


@meaning(CONSTRUCTION, "mul")
def _mul(_: str, *ts: Term) -> Term | None:
    """Flat, sorted, constants multiplied: 1 * a = a, and 0 * a = 0 when a is finite (masks first)."""
    factor: Any = 1
    rest: list[Term] = []
    for t in _nary("mul", ts):
        product = _product(factor, t.attr) if t.op == "const" else None
        if product is None:
            rest.append(t)
        else:
            factor = product
    if factor == 0 and all(FINITE[0](t) for t in rest):
        return const(0)
    if not rest:
        return const(factor)
    if factor != 1:
        rest.append(const(factor))
    if len(rest) == 1:
        return rest[0]
    args = tuple(sorted(rest, key=lambda t: t.id))
    return node("mul", args, None, _result_type("mul", args))


def _product(a: int | float, b: int | float) -> int | float | None:
    """The product of two numbers; None where a float is too large or too small for it."""
    try:
        out = a * b
    except OverflowError:  # an integer that is no float
        return None
    lost = isinstance(out, float) and ((out == 0 and a != 0 and b != 0) or (math.isinf(out) and not _infinite(a, b)))
    return None if lost else out


def _infinite(*numbers: int | float) -> bool:
    return any(isinstance(v, float) and math.isinf(v) for v in numbers)


@meaning(CONSTRUCTION, "max", "min", "and", "or")
def _lattice(op: str, *ts: Term) -> Term | None:
    """Flat, sorted, idempotent, with unit."""
    rest = {t.id: t for t in _nary(op, ts)}
    consts = [t.attr for t in rest.values() if t.op == "const"]
    out = [t for t in rest.values() if t.op != "const"]
    if consts:
        combine: dict[str, Callable[[list[Any]], Any]] = {"max": max, "min": min, "and": all, "or": any}
        c = combine[op](consts)
        dominant = {"max": math.inf, "min": -math.inf, "and": False, "or": True}[op]
        may_be_nan = op in ("max", "min") and any(t.type == REAL and not NUMBERS[0](t) for t in out)
        if c == dominant and not may_be_nan and not any(t.op == "undef" for t in out):
            return const(c)
        if op == "max" and c <= 0 and any(t.op == "abs" and NUMBERS[0](t) for t in out):
            c = UNIT[op]  # max(0, |a|) = |a|
        if c != UNIT[op] or may_be_nan or not out:
            out.append(const(c))
    if len(out) == 1:
        return out[0]
    args = tuple(sorted(out, key=lambda t: t.id))
    return node(op, args, None, _result_type(op, args))


@meaning(CONSTRUCTION, "where")
def _where(_: str, c: Term, a: Term, b: Term) -> Term | None:
    if c.op == "const":
        return a if c.attr else b
    if a is b:
        return a
    if c.op == "not":
        return make("where", c.args[0], b, a)
    return None


@meaning(CONSTRUCTION, "not")
def _not(_: str, a: Term) -> Term | None:
    match a.op:
        case "not":
            return a.args[0]
        case "eq" | "ne":
            return make("ne" if a.op == "eq" else "eq", *a.args)
        case "lt":
            return make("le", a.args[1], a.args[0])
        case "le":
            return make("lt", a.args[1], a.args[0])
    return None


@meaning(CONSTRUCTION, "eq", "ne")
def _eq(op: str, a: Term, b: Term) -> Term | None:
    if a is b and a.type != REAL:
        return const(op == "eq")
    if a.id > b.id:
        return node(op, (b, a), None, BOOL)
    return None


@meaning(CONSTRUCTION, "lt", "le")
def _lt(op: str, a: Term, b: Term) -> Term | None:
    if a is b and a.type != REAL:
        return const(op == "le")
    return None


@meaning(CONSTRUCTION, "recip")
def _recip(_: str, a: Term) -> Term | None:
    if a.op == "recip":
        return a.args[0]
    if a.op == "mul" and (c := next((t for t in a.args if t.op == "const"), None)) is not None and c.attr != 0:
        return mul(1 / c.attr, recip(mul(*(t for t in a.args if t is not c))))
    return None


@meaning(CONSTRUCTION, "argmax_of", "argmin_of")
def _argmax(op: str, *ts: Term) -> Term | None:
    """A last argument that cannot be first to win is dropped: argmax_of(a, -inf) = argmax_of(a)."""
    never = -math.inf if op == "argmax_of" else math.inf
    keep = len(ts)
    while keep > 1 and ts[keep - 1].op == "const" and ts[keep - 1].attr == never:
        keep -= 1
    if keep == 1:
        return const(0)
    return node(op, ts[:keep], None, INT) if keep < len(ts) else None


@meaning(CONSTRUCTION, "pick")
def _pick(_: str, index: Term, *ts: Term) -> Term | None:
    if index.op == "const" and 0 <= index.attr < len(ts):
        return ts[int(index.attr)]
    return ts[0] if ts and all(t is ts[0] for t in ts) else None


@meaning(CONSTRUCTION, "exp", "exp2")
def _exp(op: str, a: Term) -> Term | None:
    return const(0) if a.op == "const" and a.attr == -math.inf else None


@meaning(CONSTRUCTION, "given")
def _given(_: str, a: Term) -> Term | None:
    return a if a.op == "given" else None


@meaning(CONSTRUCTION, "abs")
def _abs(_: str, a: Term) -> Term | None:
    return a if a.op == "abs" else None


@meaning(CONSTRUCTION, "trunc", "floor", "ceil", "round")
def _rounded(_: str, a: Term) -> Term | None:
    """Integers are whole."""
    return a if a.type == INT else None


WHOLE = {"trunc", "floor", "ceil", "round", "to_int"}  # of any real
KEEP_WHOLE = {"add", "mul", "max", "min", "abs", "where"}  # of integers


def is_whole(t: Term) -> bool:
    """Whether a term has integers alone as values, as far as its form tells."""
    todo, seen = [t], {t}
    for s in todo:
        if s.type != REAL or s.op in WHOLE or (s.op == "const" and float(s.attr).is_integer()):
            continue
        if s.op not in KEEP_WHOLE:
            return False
        new = [a for a in s.args if a not in seen]
        seen.update(new)
        todo += new
    return True


WHOLE_QUOTIENT = {"floordiv": "floor", "mod": "floor", "truncdiv": "trunc", "truncmod": "trunc"}


@meaning(CONSTRUCTION, *WHOLE_QUOTIENT)
def _divided(op: str, a: Term, b: Term) -> Term | None:
    """Of reals the whole quotient, and what is left beside it: 2.5 % 1 = 0.5. The laws of `index` are of integers."""
    if is_whole(a) and is_whole(b):
        return None
    quotient = make(WHOLE_QUOTIENT[op], div(a, b))
    return quotient if op.endswith("div") else sub(a, mul(b, quotient))


def add(*ts: TermLike) -> Term:
    return make("add", *ts)


def mul(*ts: TermLike) -> Term:
    return make("mul", *ts)


def sub(a: TermLike, b: TermLike) -> Term:
    return add(a, mul(-1, b))


def recip(a: TermLike) -> Term:
    return make("recip", a)


def div(a: TermLike, b: TermLike) -> Term:
    return mul(a, recip(b))


def where(c: TermLike, a: TermLike, b: TermLike) -> Term:
    return make("where", c, a, b)


OPERATORS.update(add=add, sub=sub, mul=mul, div=div)  # a + b, a - b, a * b, a / b


# ---- traversals ------------------------------------------------------------------------------------------------------


def rewrite(t: Term, f: Callable[[Term], Term | None]) -> Term:
    """Bottom-up: every subterm with rewritten arguments is offered to f, which returns its replacement or None.
    Does not open binders: f sees bound axes as they are. Shared subterms are rewritten once, and so is what is left of
    a term that collapses: x -> -x makes x of --x, and not -x."""
    done: dict[int, Term] = {}
    for s in t.walk():
        args = tuple(done[a.id] for a in s.args)
        r = rebuild(s, args)
        collapsed = r.op != s.op and any(r is x for a in args for x in a.walk())
        done[s.id] = r if collapsed else f(r) or r
    return done[t.id]


def substitute(t: Term, axes: dict[Axis, Term]) -> Term:
    """Capture-free substitution of free axes by terms. A bound axis that a replacement mentions is renamed."""
    return _substitute(t, axes, {})


def _substitute(t: Term, axes: dict[Axis, Term], done: dict[int, Term]) -> Term:
    """`done`: what became of terms under these axes."""
    if not axes or not (t.free & axes.keys()):
        return t
    if t.id not in done:
        done[t.id] = _substituted(t, axes, done)
    return done[t.id]


def _substituted(t: Term, axes: dict[Axis, Term], done: dict[int, Term]) -> Term:
    if t.op == "axis":
        return axes.get(t.attr, t)
    if t.op in NAMED and t.attr is not None:
        return _substitute_named(t, axes)
    if t.op in FOLDS:
        inner = {a: r for a, r in axes.items() if a != t.attr}
        over: Axis = t.attr
        live = [r for a, r in inner.items() if a in t.args[0].free]
        if any(over in r.free for r in live):
            fresh = fresh_axis(over, {x.name for r in live for x in r.free} | {x.name for x in t.args[0].free})
            return fold(t.op, fresh, substitute(t.args[0], {**inner, over: axis(fresh)}))
        return fold(t.op, over, _substitute(t.args[0], inner, done if len(inner) == len(axes) else {}))
    return rebuild(t, tuple(_substitute(a, axes, done) for a in t.args))


def _substitute_named(t: Term, axes: dict[Axis, Term]) -> Term:
    """softmax(n, x[m, n]) may take another axis for n, but at n = 3 it is an element and no longer a softmax."""
    over = t.attr if NAMED[t.op] else axes.get(t.attr, axis(t.attr)).attr
    inner = {a: r for a, r in axes.items() if a != t.attr}
    free = frozenset().union(*(a.free for a in t.args)) - {t.attr}
    named = {x for a, r in inner.items() if a in free for x in r.free}
    taken = named | free if over != t.attr else named
    if not isinstance(over, Axis) or over in taken or over.size is not t.attr.size:
        return substitute(UNFOLD[t.op](t), axes)
    args = tuple(substitute(a, {**inner, t.attr: axis(over)} if over != t.attr else inner) for a in t.args)
    return node(t.op, args, over)

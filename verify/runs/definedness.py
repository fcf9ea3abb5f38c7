"""Where a formula over the reals is defined: a boolean term for every operation that is not total.

A condition holds for all values 0 <= a < size of its free axes; bound axes of the formula are free in it. Conditions
of a branch of `where` apply only where the branch is taken: `not c or d`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trilift.lift.language.unfolding import expand
from trilift.lift.terms import construct as T
from trilift.lift.terms.bits import FORMATS
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import FOLDS, Axis, Term

Shapes = Mapping[str, Sequence[Term]]

_lt, _le, _ne = (lambda a, b, op=op: T.make(op, a, b) for op in ("lt", "le", "ne"))
_within_one = lambda a: T.make("and", _le(-1, a), _le(a, 1))  # noqa: E731
_inside_one = lambda a: T.make("and", _lt(-1, a), _lt(a, 1))  # noqa: E731


def _power(a: Term, b: Term) -> Term:
    """a ** n for an integer n >= 0 is total; for n < 0 it needs a != 0; other exponents a positive base."""
    if b.is_const and isinstance(b.attr, int):
        return T.const(True) if b.attr >= 0 else _ne(a, 0)
    return _le(0, a) if b.is_const and b.attr > 0 else _lt(0, a)


def total(*args: Term) -> Term:
    """Defined for all arguments."""
    return T.const(True)


DEFINED = Domain("definedness", missing="error", says="for which arguments it is defined")
DEFINED.fill({
    "recip": lambda a: _lt(0, a.args[0]) if a.op == "sqrt" else _ne(a, 0),
    "sqrt": lambda a: _le(0, a),
    **dict.fromkeys(("log", "log2", "log10"), lambda a: _lt(0, a)),
    **dict.fromkeys(("asin", "acos"), _within_one),
    **dict.fromkeys(("atanh", "erfinv"), _inside_one),
    "acosh": lambda a: _le(1, a),
    "tan": lambda a: _ne(T.make("cos", a), 0),
    "lgamma": lambda a: T.make("or", _lt(0, a), _ne(a, T.make("floor", a))),
    "pow": _power,
    **dict.fromkeys(("floordiv", "mod", "truncdiv", "truncmod", "fmod"), lambda a, b: _ne(b, 0)),
    **dict.fromkeys(
        ("add", "mul", "abs", "sign", "exp", "exp2", "sin", "cos", "atan", "atan2", "sinh", "cosh", "tanh", "erf",
         "floor", "ceil", "trunc", "round", "asinh", "cbrt", "copysign", "to_int",
         "max", "min", "eq", "ne", "lt", "le", "argmax_of", "argmin_of", "pick", "and", "or", "not",
         "next_power_of_2", "bitand", "bitor", "bitxor", "shl", "shr", "random_bits", "random",
         "wrap8", "wrap16", "wrap32", *(f"{way}_{f}" for f in FORMATS for way in ("bits", "from_bits"))), total),
})  # fmt: skip
DEFINED.derive(("where",), "what its branches need, where they are taken")
OF_NON_EMPTY = {"amax", "amin", "argmax", "argmin"}
DEFINED.derive(FOLDS, "what its body needs for all of the axis; OF_NON_EMPTY an axis that is not empty")


def unfolded(t: Term) -> Term:
    """The term without known names: softmax, mean, ... are what they are defined as."""
    return expand(t)


def domain(formula: Formula, shapes: Shapes | None = None) -> list[Term]:
    """The conditions, each once. `shapes`: of the tensors, whose elements must be there; without it they are
    ignored."""
    taken = {a.name for a in formula.axes}
    found = _needs(unfolded(formula.term), (), taken, shapes or {}, set())
    return list(dict.fromkeys(c for c in found if c is not T.const(True)))


def _needs(
    t: Term, guards: tuple[Term, ...], taken: set[str], shapes: Shapes, seen: set[tuple[Term, ...]]
) -> Iterator[Term]:
    """The conditions of t under guards; `taken` are the names of axes in scope."""
    if (t, *guards) in seen or not t.args:
        return
    seen.add((t, *guards))
    if t.op == "where":
        condition, yes, no = t.args
        yield from _needs(condition, guards, taken, shapes, seen)
        yield from _needs(yes, (*guards, condition), taken, shapes, seen)
        yield from _needs(no, (*guards, T.make("not", condition)), taken, shapes, seen)
        return
    if t.op in FOLDS:
        if t.op in OF_NON_EMPTY:
            yield _under(guards, _lt(0, t.attr.size))
        over = T.fresh_axis(t.attr, taken)
        body = t.args[0] if over == t.attr else T.substitute(t.args[0], {t.attr: T.axis(over)})
        yield from _needs(body, guards, taken | {over.name}, shapes, seen)
        return
    if t.op in OPS and (needs := DEFINED[t.op]) is not total:
        yield _under(guards, needs(*t.args))
    if t.op == "read" and t.attr in shapes:
        for i, n in zip(t.args, shapes[t.attr], strict=True):
            yield _under(guards, _in_range(i, n))
    for a in t.args:
        if not (t.op == "recip" and a.op == "sqrt"):
            yield from _needs(a, guards, taken, shapes, seen)
        else:
            yield from _needs(a.args[0], guards, taken, shapes, seen)


def _in_range(index: Term, n: Term) -> Term:
    if index.op == "axis" and index.attr.size is n:
        return T.const(True)
    return T.make("and", _le(0, index), _lt(index, n))


def _under(guards: Sequence[Term], condition: Term) -> Term:
    return T.make("or", condition, *(T.make("not", g) for g in guards)) if guards else condition


def free_axes(condition: Term) -> list[Axis]:
    """The axes that a condition is for all values of."""
    return sorted(condition.free, key=lambda a: a.name)

"""Integer conditions in few operations, and their exact values.

`core` rewrites a term so that only these operations have a meaning left; everything else is a symbol, known by its
identity only (reads, folds, scalars, comparisons of reals, bit operations with symbols on both sides):

    add mul floordiv mod min max where next_power_of_2      on integers, floordiv and mod also by symbols
    and or not eq lt le                                     on booleans and integers
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

from trilift.lift.runtime.session import memo_up_to, table
from trilift.lift.terms import construct as T
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.ops import power_of_2
from trilift.lift.terms.term import BOOL, INT, Term

ARITHMETIC = frozenset({"add", "mul", "floordiv", "mod", "min", "max", "where", "next_power_of_2"})
LOGIC = frozenset({"and", "or", "not"})
RELATIONS = frozenset({"eq", "lt", "le"})
CORE = Domain("integer core", missing="opaque", says="the same integer or boolean in the operations above",
              types=(INT, BOOL, "same"))  # fmt: skip
INTEGER = Domain("integer value", missing="opaque", says="its value on integers, None where it is undefined",
                 types=(INT, BOOL, "same"))  # fmt: skip

_CORE: dict[int, Term] = table("conditions.core", {})
_DEFINED: dict[int, bool] = table("conditions.defined", {})
_LEAVES: dict[int, frozenset[Term]] = table("conditions.leaves", {})
_INTERPRETED: dict[int, bool] = table("conditions.interpreted", {})


def core(t: Term) -> Term:
    """The same integer or boolean in the operations above. Undefined values (a divisor 0) stay undetermined."""
    out = _CORE.get(t.id)
    if out is None:
        out = _CORE[t.id] = _core(t)
    return out


def interpreted(t: Term) -> bool:
    """Whether the head of a core term has a meaning; else the term is a constant or a symbol."""
    out = _INTERPRETED.get(t.id)
    if out is None:
        out = _INTERPRETED[t.id] = _has_meaning(t)
    return out


def _has_meaning(t: Term) -> bool:
    if t.type not in (INT, BOOL) or not t.args:
        return False
    if t.op in LOGIC:
        return all(a.type == BOOL for a in t.args)
    if t.op == "where":
        return t.args[0].type == BOOL and t.args[1].type == t.args[2].type == INT
    if t.op in ("floordiv", "mod") and t.args[1] is ZERO:
        return False
    return (t.op in RELATIONS or t.op in ARITHMETIC) and all(a.type == INT for a in t.args)


def leaves(t: Term) -> frozenset[Term]:
    """The symbols of a core term."""
    out = _LEAVES.get(t.id)
    if out is None:
        if interpreted(t):
            out = frozenset().union(*map(leaves, t.args))
        else:
            out = NOTHING if t.op == "const" else frozenset((t,))
        _LEAVES[t.id] = out
    return out


def defined(t: Term) -> bool:
    """Whether no undefined value occurs. Two occurrences of an undefined value need not be equal: of a condition with
    one nothing is known."""
    out = _DEFINED.get(t.id)
    if out is None:
        out = _DEFINED[t.id] = t.op != "undef" and all(map(defined, t.args))
    return out


def negation(t: Term) -> Term:
    """not t, of a core term."""
    if t.op == "const":
        return T.const(not t.attr)
    if t.op == "not":
        return t.args[0]
    if t.op in ("lt", "le") and interpreted(t):
        return T.make("le" if t.op == "lt" else "lt", t.args[1], t.args[0])
    return T.node("not", (t,), None, BOOL)


def value(t: Term, env: Mapping[Term, int]) -> int | bool | None:
    """The value of a core term for these values of its symbols; None where a divisor is 0."""
    memo: dict[int, int | bool | None] = {}
    for s in t.walk():
        if not interpreted(s):
            memo[s.id] = s.attr if s.op == "const" else env.get(s)
            continue
        memo[s.id] = evaluated(s.op, [memo[a.id] for a in s.args])
    return memo[t.id]


def evaluated(op: str, args: list[int | bool | None]) -> int | bool | None:
    """The value of a core operation on values."""
    if None in args and op not in LAZY:
        return None
    return INTEGER.rows[op](*args)  # type: ignore[no-any-return]


# ---- questions -------------------------------------------------------------------------------------------------------

TRUE = T.const(True)


def question(facts: Iterable[Term], goal: Term) -> list[Term]:
    """Core terms that contradict each other only if the facts imply the goal: the facts connected to the goal by
    symbols, and the goal's negation. Facts with undefined values are left out, and so is a goal with one."""
    facts = frozenset(facts)
    if not defined(goal):
        return list(_parts(facts))
    negated = list(_conjuncts(negation(core(goal))))
    if not negated:
        return list(_parts(facts))
    return [*_near(facts, frozenset().union(*map(leaves, negated))), *negated]


@memo_up_to(1024)
def _parts(facts: frozenset[Term]) -> tuple[Term, ...]:
    """Facts in core terms."""
    return tuple(sorted({p for f in facts if defined(f) for p in _conjuncts(core(f))}, key=lambda t: t.id))


@memo_up_to(8192)
def _near(facts: frozenset[Term], symbols: frozenset[Term]) -> tuple[Term, ...]:
    """The facts about these symbols, and about those connected to them."""
    return tuple(_connected(_parts(facts), symbols))


def _conjuncts(t: Term) -> Iterable[Term]:
    if t is TRUE:
        return ()
    return (p for a in t.args for p in _conjuncts(a)) if t.op == "and" else (t,)


def _connected(parts: Sequence[Term], symbols: frozenset[Term]) -> list[Term]:
    """Those that share symbols with the given ones, directly or through others. Those without symbols are kept."""
    kept: list[Term] = []
    rest = list(parts)
    while True:
        near = [p for p in rest if not leaves(p) or leaves(p) & symbols]
        if not near:
            return kept
        kept += near
        taken = set(near)
        rest = [p for p in rest if p not in taken]
        symbols = symbols.union(*map(leaves, near))


# ---- rewriting to the core -------------------------------------------------------------------------------------------

ZERO = T.const(0)
NOTHING: frozenset[Term] = frozenset()
Rule = Callable[..., Term | None]


def _core(t: Term) -> Term:
    if not t.args or t.type not in (INT, BOOL):
        return t
    rule: Rule | None = CORE.rows.get(t.op)
    if rule is None:
        return t
    if any(a.type not in (INT, BOOL) for a in t.args):
        return _compare_opaque(t) if t.op in ("lt", "le", "eq", "ne") else t
    out = rule(t, *map(core, t.args))
    return t if out is None else out


def _compare_opaque(t: Term) -> Term:
    """Comparisons of reals are symbols; a <= b is not (b < a), a != b is not (a = b)."""
    if t.op == "le":
        return T.node("not", (T.node("lt", (t.args[1], t.args[0]), None, BOOL),), None, BOOL)
    if t.op == "ne":
        return T.node("not", (T.node("eq", t.args, None, BOOL),), None, BOOL)
    return t


def _make(op: str, *args: T.TermLike) -> Term:
    """The normalised operation; of numbers exactly, whatever their length."""
    ts = tuple(map(T.const, args))
    if op in INTEGER.rows and op not in LAZY and all(t.type == INT and t.is_const for t in ts):
        v = INTEGER.rows[op](*(t.attr for t in ts))
        return T.node(op, ts, None, INT) if v is None else T.const(v)
    return T.make(op, *ts)


def _minus(a: Term, b: T.TermLike) -> Term:
    return _make("add", a, _make("mul", -1, b))


def _int(t: Term) -> Term:
    return T.where(t, 1, 0) if t.type == BOOL else t


def _arithmetic(t: Term, *args: Term) -> Term | None:
    if t.type == BOOL:  # numpy's: true + true is true
        return _make("and" if t.op in ("mul", "min") else "or", *args)
    return _make(t.op, *map(_int, args))


def _logic(t: Term, *args: Term) -> Term | None:
    return _make(t.op, *args) if all(a.type == BOOL for a in args) else None


def _where(t: Term, c: Term, a: Term, b: Term) -> Term | None:
    if c.type != BOOL:
        return None
    if t.type == BOOL:
        return _make("or", _make("and", c, a), _make("and", negation(c), b))
    return T.where(c, _int(a), _int(b))


def _relation(t: Term, a: Term, b: Term) -> Term | None:
    if a.type == b.type == BOOL and t.op in ("eq", "ne"):
        same = _make("or", _make("and", a, b), _make("and", negation(a), negation(b)))
        return same if t.op == "eq" else negation(same)
    if t.op == "ne":
        return negation(_make("eq", _int(a), _int(b)))
    return _make(t.op, _int(a), _int(b))


def _divide(t: Term, a: Term, b: Term) -> Term | None:
    """Floor division: a // -c = -a // c, and a % -c = -(-a % c)."""
    a, b = _int(a), _int(b)
    if b is ZERO:
        return None
    if b.op == "const" and b.attr < 0:
        other = _make(t.op, _make("mul", -1, a), -b.attr)
        return other if t.op == "floordiv" else _make("mul", -1, other)
    return _make(t.op, a, b)


def _truncdiv(t: Term, a: Term, b: Term) -> Term | None:
    """Towards 0: by the signs of both."""
    a, b = _int(a), _int(b)
    if b is ZERO:
        return None
    if b.op == "const" and b.attr < 0:
        return _make("mul", -1, core(_make("truncdiv", a, -b.attr)))
    below = _make("mul", -1, a)
    down, up = _make("floordiv", a, b), _make("mul", -1, _make("floordiv", below, b))
    positive = T.where(_make("le", 0, a), down, up)
    if b.op == "const":
        return positive
    opposite = _make("mul", -1, b)
    down, up = _make("mul", -1, _make("floordiv", a, opposite)), _make("floordiv", below, opposite)
    return T.where(_make("lt", 0, b), positive, T.where(_make("le", 0, a), down, up))


def _truncmod(t: Term, a: Term, b: Term) -> Term | None:
    quotient = _truncdiv(t, a, b)
    return None if quotient is None else _minus(_int(a), _make("mul", _int(b), quotient))


def _shift(t: Term, a: Term, b: Term) -> Term | None:
    if b.op != "const" or not 0 <= b.attr <= 64:
        return None
    return _make("mul", _int(a), 1 << b.attr) if t.op == "shl" else _make("floordiv", _int(a), 1 << b.attr)


def _bits(t: Term, a: Term, b: Term) -> Term | None:
    """With a constant: a | c = a + c - (a & c), a ^ c = a + c - 2 * (a & c)."""
    if a.op == "const":
        a, b = b, a
    if b.op != "const" or t.type == BOOL or abs(b.attr) >= 1 << 64:
        return None
    a, c = _int(a), int(b.attr)
    both = _masked(a, c) if c >= 0 else _minus(a, _masked(a, ~c))
    return both if t.op == "bitand" else _minus(_make("add", a, c), _make("mul", 1 if t.op == "bitor" else 2, both))


def _masked(a: Term, c: int) -> Term:
    """a & c for c >= 0: a run of ones from bit i up to bit j is a % 2**j - a % 2**i."""
    parts: list[Term] = []
    low = 0
    while c >> low:
        if c >> low & 1:
            high = low
            while c >> high & 1:
                high += 1
            parts += [_make("mod", a, 1 << high), _make("mul", -1, _make("mod", a, 1 << low))]
            low = high
        low += 1
    return _make("add", *parts) if parts else ZERO


def _wrap(bits: int) -> Rule:
    half = 1 << bits - 1
    return lambda t, a: _minus(_make("mod", _make("add", _int(a), half), 2 * half), half)


CORE.fill({
    "add": _arithmetic, "mul": _arithmetic, "min": _arithmetic, "max": _arithmetic,
    "where": _where,
    "and": _logic, "or": _logic,
    "not": lambda t, a: negation(a) if a.type == BOOL else None,
    "eq": _relation, "ne": _relation, "lt": _relation, "le": _relation,
    "floordiv": _divide, "mod": _divide, "truncdiv": _truncdiv, "truncmod": _truncmod,
    "next_power_of_2": lambda t, a: _make("next_power_of_2", _int(a)),
    "abs": lambda t, a: T.where(_make("le", 0, _int(a)), _int(a), _make("mul", -1, _int(a))),
    "sign": lambda t, a: T.where(_make("lt", 0, _int(a)), 1, T.where(_make("lt", _int(a), 0), -1, 0)),
    "shl": _shift, "shr": _shift, "bitand": _bits, "bitor": _bits, "bitxor": _bits,
    "wrap8": _wrap(8), "wrap16": _wrap(16), "wrap32": _wrap(32),
})  # fmt: skip


# ---- values ----------------------------------------------------------------------------------------------------------

INTEGER.fill({
    "add": lambda *xs: sum(xs),
    "mul": lambda *xs: reduce(lambda x, y: x * y, xs),
    "min": lambda *xs: min(xs),
    "max": lambda *xs: max(xs),
    "floordiv": lambda a, b: a // b if b else None,
    "mod": lambda a, b: a % b if b else None,
    "next_power_of_2": power_of_2,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "not": lambda a: not a,
    "where": lambda c, a, b: None if c is None else a if c else b,
    "and": lambda *xs: False if False in xs else None if None in xs else True,
    "or": lambda *xs: True if True in xs else None if None in xs else False,
})  # fmt: skip
LAZY = frozenset({"where", "and", "or"})  # may have a value though an argument has none
INTEGER.derive(CORE.rows, "the integer core")

"""Terms: the one language of the project, hash-consed.

A term is a scalar expression. A *spec* element is a term whose leaves are single elements `read(x, 3, 5)` of the case's
inputs; a *formula* is a term whose leaves are indexed by axes, `read(x, i, k)`, and which may bind axes:

    e ::= const(v) | size(N) | scalar(eps) | axis(i) | read(x, e...) | undef(label)
        | op(e...)                       an elementwise operation, a row of lift.terms.ops
        | fold(axis, e)                  sum, prod, amax, amin, argmax, argmin of e over the axis, which it binds
        | name(e...) | name(axis, e...)  a known name, a row of lift.language.definitions; mean binds its axis,
        softmax does not

A tensor is a term together with its free axes: named axes broadcast by name, as in xarray. Binding is lexical, and a
bound axis may have the name of a free one outside: softmax(x, n) is exp(x[m,n]) / sum(n, exp(x[m,n])).

Real numbers are the semantics. Constants are Python int, float (inf allowed) or bool. Construction normalises only what
is true of all reals: n-ary `add` and `mul` are flat, sorted, with one constant; x - y is x + -1*y; x / y is
x * recip(y); comparisons are `lt`, `le`, `eq`, `ne`. Undefined values absorb: 0 * undef is undef.

Terms are equal exactly when they are the same object (`is`); `t.id` is the key in `TERMS`, never used for another term,
and tiles of terms are numpy arrays of ids (int32, so that numpy raises OverflowError at the 2^31st term of a process):
a tile operation works on distinct ids and not on elements. Sessions own the tables (`lift.runtime.session`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from ..runtime.session import EndedSession, pin, table
from .meanings import Domain, meaning

REAL, INT, BOOL = "real", "int", "bool"
FOLDS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "argmax": "argmax_of", "argmin": "argmin_of"}
COMMUTATIVE = {"add", "mul", "max", "min", "and", "or"}  # n-ary, flat, sorted by id
# lift.language.definitions fills both: known name -> does it bind its axis (mean does, softmax does not), what it means
NAMED: dict[str, bool] = {}
UNFOLD: dict[str, Callable[[Term], Term]] = {}
# lift.terms.ops fills it with its rows
OPERATIONS: dict[str, Operation] = {}
LAZY = {"where", "and", "or", "pick", "argmax_of", "argmin_of"}  # may have a value though an argument has none
UNIT = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf, "and": True, "or": False}


class Operation(Protocol):
    """The part of an operation that construction needs: the type of its result, "same" for the widest of the
    arguments, and its value on numbers, None where it has none."""

    @property
    def type(self) -> str: ...

    def on_numbers(self, *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Axis:
    """A named axis; `size` is a term over dims (a constant while lifting at one shape)."""

    name: str
    size: Term

    def __repr__(self) -> str:
        return self.name


class Term:
    """One hash-consed node. `attr`: the value of a const, the name of a size, scalar, read or undef, the Axis of an
    axis or fold; None for operations that need none."""

    __slots__ = ("op", "args", "attr", "type", "id", "free")
    op: str
    args: tuple[Term, ...]
    attr: Any
    type: str
    id: int
    free: frozenset[Axis]  # free axes

    def __add__(self, o: TermLike) -> Term:
        return add(self, o)

    def __radd__(self, o: TermLike) -> Term:
        return add(o, self)

    def __sub__(self, o: TermLike) -> Term:
        return sub(self, o)

    def __rsub__(self, o: TermLike) -> Term:
        return sub(o, self)

    def __mul__(self, o: TermLike) -> Term:
        return mul(self, o)

    def __rmul__(self, o: TermLike) -> Term:
        return mul(o, self)

    def __truediv__(self, o: TermLike) -> Term:
        return div(self, o)

    def __rtruediv__(self, o: TermLike) -> Term:
        return div(o, self)

    def __neg__(self) -> Term:
        return mul(-1, self)

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    def __repr__(self) -> str:
        match self.op:
            case "const":
                return repr(self.attr)
            case "size" | "scalar":
                return str(self.attr)
            case "axis":
                return str(self.attr.name)
            case "undef":
                return f"undefined({self.attr})"
            case "read":
                return f"{self.attr}[{', '.join(map(repr, self.args))}]"
        head = f"{self.op}[{self.attr}]" if self.attr is not None else self.op
        return f"{head}({', '.join(map(repr, self.args))})"

    def walk(self) -> Iterator[Term]:
        """Every distinct subterm once, arguments first."""
        seen: set[int] = set()
        stack: list[tuple[Term, bool]] = [(self, False)]
        while stack:
            t, done = stack.pop()
            if done:
                yield t
            elif t.id not in seen:
                seen.add(t.id)
                stack.append((t, True))
                stack.extend((a, False) for a in reversed(t.args) if a.id not in seen)


NOTHING: frozenset[Axis] = frozenset()
TermLike = Term | int | float | bool
TERMS: dict[int, Term] = table("terms.by_id", {})
_TABLE: dict[tuple[Any, ...], Term] = table("terms.by_node", {})
_INTEGERS: dict[int, Term] = table("terms.integers", {})
_MADE: dict[tuple[str, tuple[Term, ...]], Term] = table("terms.made", {})  # what `make` was asked before
_ids = count()  # over all sessions: no id is used twice
MADE_ENTRIES, FEW_ARGUMENTS = 400_000, 8  # entries, and arguments of one


def _key(v: Any) -> Any:
    if isinstance(v, float):
        return ("f", "nan" if math.isnan(v) else v, math.copysign(1, v))
    return (type(v).__name__, v)


def node(op: str, args: tuple[Term, ...] = (), attr: Any = None, of_type: str = REAL) -> Term:
    """The hash-consed node, as it stands: no normalisation. Use `make` unless the node is known to be normal."""
    key = (op, of_type, None if attr is None else _key(attr), *[a.id for a in args])
    t = _TABLE.get(key)
    if t is None:
        _check_alive(args, attr)
        t = object.__new__(Term)
        t.op, t.args, t.attr, t.type, t.id = op, args, attr, of_type, next(_ids)
        free = NOTHING.union(*frees) if (frees := [a.free for a in args if a.free]) else NOTHING
        if op == "axis":
            free = frozenset((attr,))
        elif op in FOLDS or NAMED.get(op):
            free = free - {attr} | attr.size.free
        t.free = free
        TERMS[t.id] = t
        _TABLE[key] = t
    return t


def _check_alive(args: tuple[Term, ...], attr: Any) -> None:
    """Arguments of a session that has ended are strangers to the terms of this one."""
    for a in args:
        if a.id not in TERMS:
            raise EndedSession(f"{f'a term {a.op}(...)' if a.args else a} was made in a session that has ended")
    if type(attr) is Axis and attr.size.id not in TERMS:
        raise EndedSession(f"the size of the axis {attr} was made in a session that has ended")


def pinned(t: Term) -> Term:
    """The term, which with all its parts outlives every session: for the constants of modules."""
    for s in t.walk():
        if isinstance(s.attr, Axis):
            pinned(s.attr.size)
        pin(TERMS, s.id)
        pin(_TABLE, (s.op, s.type, None if s.attr is None else _key(s.attr), *[a.id for a in s.args]))
    return t


def const(v: TermLike) -> Term:
    """A constant: bool, int, or float. A float that is a whole number stays real but prints as the integer."""
    if isinstance(v, Term):
        return v
    if type(v) is int:
        t = _INTEGERS.get(v)
        if t is None:
            t = _INTEGERS[v] = node("const", (), v, INT)
        return t
    if isinstance(v, bool):
        return node("const", (), v, BOOL)
    if isinstance(v, int):
        return node("const", (), int(v), INT)
    v = float(v)
    if v.is_integer() and abs(v) < 2**53:
        return node("const", (), int(v), INT)  # 2 and 2.0 are the same number
    return node("const", (), v, REAL)


def size(name: str) -> Term:
    return node("size", (), name, INT)


def scalar(name: str, of_type: str = REAL) -> Term:
    return node("scalar", (), name, of_type)


def axis(a: Axis) -> Term:
    """The index along an axis, as an integer (iota)."""
    return node("axis", (), a, INT)


def read(tensor: str, index: Iterable[TermLike], of_type: str = REAL) -> Term:
    """x[index...]: one element of an input tensor; an index may itself be a read (a gather)."""
    return node("read", tuple(const(i) for i in index), tensor, of_type)


def undef(label: str, of_type: str = REAL) -> Term:
    """A value nobody defined: a masked lane without `other`, an uninitialised element. `label` says which."""
    return node("undef", (), label, of_type)


def fold(op: str, over: Axis, body: TermLike) -> Term:
    """sum, prod, amax, amin, argmax, argmin of `body` for `over` in 0..size-1. An empty sum is 0, empty amax -inf."""
    body = const(body)
    return node(op, (body,), over, INT if op.startswith("arg") else body.type)


for _v in (0, 1, -1, True, False, math.inf, -math.inf):
    pinned(const(_v))


# ---- smart constructors ----------------------------------------------------------------------------------------------

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
    if isinstance(total, float) and math.isinf(total) and not any(t.op == "undef" for t in rest):
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
    """Flat, sorted, constants multiplied: 1 * a = a, and 0 * a = 0 when a is defined (masks first)."""
    factor: Any = 1
    rest: list[Term] = []
    for t in _nary("mul", ts):
        if t.op == "const":
            factor = factor * t.attr
        else:
            rest.append(t)
    if factor == 0 and not any(t.op == "undef" for t in rest):
        return const(0)
    if not rest:
        return const(factor)
    if factor != 1:
        rest.append(const(factor))
    if len(rest) == 1:
        return rest[0]
    args = tuple(sorted(rest, key=lambda t: t.id))
    return node("mul", args, None, _result_type("mul", args))


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
        if c == dominant and not any(t.op == "undef" for t in out):
            return const(c)
        if op == "max" and c <= 0 and any(t.op == "abs" for t in out):
            c = UNIT[op]  # max(0, |a|) = |a|
        if c != UNIT[op] or not out:
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


@meaning(CONSTRUCTION, "abs")
def _abs(_: str, a: Term) -> Term | None:
    return a if a.op == "abs" else None


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


def fresh_axis(like: Axis, taken: set[str]) -> Axis:
    """An axis of the same size whose name is not taken: n, n', n'' ..."""
    name = like.name
    while name in taken:
        name += "'"
    return Axis(name, like.size)


def reads(t: Term) -> set[str]:
    """Names of the tensors that the term reads."""
    return {s.attr for s in t.walk() if s.op == "read"}

"""The numbers of the checker: terms as the certificate has them, polynomials over atoms, conditions.

    P ::= c1 m1 + c2 m2 + ...          m ::= a^k b^l ... exp(P)

Powers are whole or halves. Equal polynomials are one object. Conditions compare polynomials with 0.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import count
from struct import pack, unpack
from typing import Any

SINGLE = 2.0**-24  # relative difference below which two constants are one in single precision
SIMPLE = 1 << 16  # numerators of simple fractions are less; near a larger number there always is one


class NotChecked(Exception):
    """The checker cannot redo a step; the text says which."""


class Wrong(Exception):
    """The certificate contradicts itself or is incomplete."""


class Split(Exception):
    """A condition that the facts do not decide."""

    def __init__(self, literal: Formula) -> None:
        super().__init__("a case is undecided")
        self.literal = literal


# ---- the certificate's terms -----------------------------------------------------------------------------------------

Data = Any  # of JSON
FOLDS = ("sum", "prod", "amax", "amin", "argmax", "argmin")
PROGRAMS = ("pid0", "pid1", "pid2")
AxisKey = tuple[str, int]  # name, and id of the term of its size


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A term as the certificate has it. `attr` of an axis or fold is (name, size)."""

    op: str
    sort: str
    attr: Data
    args: tuple[Node, ...]
    id: int
    free: frozenset[AxisKey]

    @property
    def axis(self) -> AxisKey:
        """The key of an axis or of what a fold binds."""
        return self.attr[0], self.attr[1].id


def nodes(table: Sequence[Data]) -> list[Node]:
    """The terms of a certificate: rows [operation, sort, attribute, [numbers of arguments]]. Raises Wrong."""
    out: list[Node] = []
    for k, (op, sort, attr, numbers) in enumerate(table):
        if any(not 0 <= n < k for n in numbers):
            raise Wrong(f"term {k} is made of terms that come later")
        args = tuple(out[n] for n in numbers)
        free = frozenset[AxisKey]().union(*(a.free for a in args))
        if op == "axis" or op in FOLDS:
            attr = (attr[0], out[attr[1]])
            key = (attr[0], attr[1].id)
            free = (free | {key} if op == "axis" else free - {key}) | attr[1].free
        elif op == "size" and attr in PROGRAMS:
            free |= {(attr, -1)}
        elif op == "const" and isinstance(attr, str):
            attr = float(attr)
        out.append(Node(op, sort, attr, args, k, free))
    return out


# ---- polynomials -----------------------------------------------------------------------------------------------------

Number = Any  # Fraction or float: mypy has no type for what their sum is
Mono = tuple[tuple[tuple[int, Fraction], ...], int]  # powers of atoms, and the id of the exponent of exp
serial = count()


@dataclass(frozen=True, eq=False, slots=True)
class Atom:
    """A variable of polynomials. `kind`: sym, var, read, app, base (a polynomial), sum, max, arg. `vars`: the
    variables in it that are free."""

    id: int
    kind: str
    sort: str
    data: tuple[Data, ...]
    vars: frozenset[int]


@dataclass(frozen=True, eq=False, slots=True)
class Poly:
    """A polynomial; equal ones are one object. `vars`: of all its atoms."""

    id: int
    terms: Mapping[Mono, Number]
    vars: frozenset[int]
    whole: bool  # an integer

    @property
    def constant(self) -> Number | None:
        """The number that it is, if it is one."""
        if not self.terms:
            return Fraction(0)
        return self.terms.get(UNIT) if len(self.terms) == 1 else None

    def atoms(self) -> set[int]:
        """Its atoms, those of exponents too."""
        found = {a for m in self.terms for a, _ in m[0]}
        return found.union(*(POLYS[m[1]].atoms() for m in self.terms if m[1]))


UNIT: Mono = ((), 0)
ATOMS: dict[int, Atom] = {}
POLYS: dict[int, Poly] = {}
_atom_table: dict[tuple[object, ...], Atom] = {}
_poly_table: dict[frozenset[tuple[Mono, Number]], Poly] = {}


def atom(kind: str, sort: str, *data: object, variables: frozenset[int] = frozenset()) -> Atom:
    """The one atom with this content."""
    key = (kind, sort, *data)
    if key not in _atom_table:
        a = Atom(next(serial), kind, sort, data, variables)
        if kind == "var":
            a = Atom(a.id, kind, sort, data, frozenset((a.id,)))
        _atom_table[key] = ATOMS[a.id] = a
    return _atom_table[key]


def poly(terms: Mapping[Mono, Number]) -> Poly:
    """The one polynomial with these terms."""
    kept = {m: c for m, c in terms.items() if c}
    key = frozenset(kept.items())
    if key not in _poly_table:
        variables = frozenset[int]().union(
            *(ATOMS[a].vars for m in kept for a, _ in m[0]), *(POLYS[m[1]].vars for m in kept if m[1])
        )
        whole = all(_whole(m, c) for m, c in kept.items())
        p = Poly(len(POLYS), kept, variables, whole)
        _poly_table[key] = POLYS[p.id] = p
    return _poly_table[key]


def _whole(m: Mono, c: Number) -> bool:
    integer = isinstance(c, Fraction) and c.denominator == 1
    return integer and not m[1] and all(ATOMS[a].sort == "int" and k > 0 and k.denominator == 1 for a, k in m[0])


ZERO = poly({})
ONE = poly({UNIT: Fraction(1)})


class Infinity:
    """A value that polynomials do not have."""


INF, NINF = Infinity(), Infinity()
Value = Poly | Infinity


_floats: list[float] = []  # constants met so far, in order: one that is near stands for both


def number(c: int | float | Fraction) -> Poly:
    """A constant: a float that is near a simple fraction is that."""
    return poly({UNIT: _snapped(c)})


def _rounded(c: float) -> float:
    """In single precision; NaN beyond it."""
    try:
        return float(unpack("f", pack("f", c))[0])
    except OverflowError:
        return math.nan


def _snapped(c: Number) -> Number:
    if not isinstance(c, float):
        return Fraction(c)
    near = Fraction(c).limit_denominator(64)
    close = near and abs(near.numerator) < SIMPLE and abs(c - near) < SINGLE * abs(near)
    if close and (_rounded(c) != c or _rounded(float(near)) == c):
        return near
    at = bisect(_floats, c)
    for x in _floats[max(at - 1, 0) : at + 1]:
        if abs(c - x) < SINGLE * abs(x):
            return x
    _floats.insert(at, c)
    return c


def of(a: Atom, k: int | Fraction = 1) -> Poly:
    """A power of an atom."""
    return poly({(((a.id, Fraction(k)),), 0): Fraction(1)})


def add(*ps: Poly) -> Poly:
    """The sum."""
    if len(ps) == 1:
        return ps[0]
    total: dict[Mono, Number] = {}
    for p in ps:
        for m, c in p.terms.items():
            total[m] = _plus(total[m], c) if m in total else c
    return poly(total)


def _plus(a: Number, b: Number) -> Number:
    c = a + b
    if isinstance(c, float):
        return Fraction(0) if abs(c) < SINGLE * max(abs(a), abs(b)) else _snapped(c)
    return c


def scaled(p: Poly, c: int | Number) -> Poly:
    """c p."""
    return p if c == 1 else poly({m: _times(k, c) for m, k in p.terms.items()})


def _times(a: Number, b: Number) -> Number:
    c = a * b
    return _snapped(c) if isinstance(c, float) else c


def minus(p: Poly, q: Poly) -> Poly:
    """p - q."""
    return add(p, scaled(q, -1))


def mul(*ps: Poly) -> Poly:
    """The product; whole powers of sums are multiplied out."""
    out = ps[0]
    for p in ps[1:]:
        out = _product(out, p)
    return out


def _product(p: Poly, q: Poly) -> Poly:
    plain: dict[Mono, Number] = {}
    rest: list[Poly] = []
    for m, c in p.terms.items():
        for n, d in q.terms.items():
            key, sums = _merged(m, n)
            if sums:
                rest.append(mul(poly({key: _times(c, d)}), *sums))
            else:
                plain[key] = _plus(plain[key], _times(c, d)) if key in plain else _times(c, d)
    return add(poly(plain), *rest)


def _merged(m: Mono, n: Mono) -> tuple[Mono, list[Poly]]:
    """The product of two monomials, and sums to the whole powers that they get in it."""
    powers = dict(m[0])
    sums: list[Poly] = []
    for a, k in n[0]:
        powers[a] = powers.get(a, Fraction(0)) + k
    for a, k in list(powers.items()):
        if ATOMS[a].kind == "base" and k >= 1:
            sums += [ATOMS[a].data[0]] * math.floor(k)
            powers[a] = k - math.floor(k)
    exponent = m[1] if not n[1] else n[1] if not m[1] else add(POLYS[m[1]], POLYS[n[1]]).id
    return (tuple(sorted((a, k) for a, k in powers.items() if k)), exponent), sums


def exponential(p: Poly) -> Poly:
    """exp(p)."""
    return poly({((), p.id): Fraction(1)}) if p is not ZERO else ONE


def monomials(p: Poly) -> list[Poly]:
    """Its terms one by one."""
    return [poly({m: c}) for m, c in p.terms.items()]


def inverse(p: Poly) -> Poly:
    """1 / p, common factors apart. Raises NotChecked for 0."""
    if p is ZERO:
        raise NotChecked("a division by 0")
    outer, inner = primitive(p)
    ((factors, e), c) = next(iter(outer.terms.items()))
    flipped = poly({(tuple((a, -k) for a, k in factors), scaled(POLYS[e], -1).id): 1 / c})
    return flipped if inner is ONE else mul(flipped, _power_of_sum(inner, Fraction(-1)))


def _power_of_sum(p: Poly, k: Fraction) -> Poly:
    return of(atom("base", "real", p, variables=p.vars), k)


def primitive(p: Poly) -> tuple[Poly, Poly]:
    """(m, q) with p = m q for a monomial m: factors that all terms have in common."""
    items = list(p.terms.items())
    if len(items) == 1:
        return p, ONE
    powers = dict(items[0][0][0])
    for (factors, _), _c in items[1:]:
        other = dict(factors)
        powers = {a: min(k, other[a]) for a, k in powers.items() if a in other}
    same = {m[1] for m, _ in items}
    e = same.pop() if len(same) == 1 else 0
    c = min(items, key=lambda x: x[0])[1]
    m = poly({(tuple(sorted(powers.items())), e): c})
    flipped = poly({(tuple((a, -k) for a, k in sorted(powers.items())), scaled(POLYS[e], -1).id): 1 / c})
    return m, mul(p, flipped)


def root(p: Poly) -> Poly:
    """The square root of a polynomial that is not negative."""
    if p is ZERO:
        return ZERO
    if len(p.terms) == 1:
        ((factors, e), c) = next(iter(p.terms.items()))
        if c > 0 and all(k in (1, -1) for _, k in factors) and len(factors) <= 1:
            halves = tuple((a, k / 2) for a, k in factors)
            return poly({(halves, scaled(POLYS[e], Fraction(1, 2)).id): _root(c)})
    c = abs(min(p.terms.items(), key=lambda x: x[0])[1])
    return mul(number(_root(c)), _power_of_sum(scaled(p, 1 / c), Fraction(1, 2)))


def _root(c: Number) -> Number:
    exact = Fraction(math.isqrt(c.numerator), math.isqrt(c.denominator)) if isinstance(c, Fraction) else None
    return exact if exact is not None and exact * exact == c else _snapped(math.sqrt(c))


# ---- conditions ------------------------------------------------------------------------------------------------------

Formula = tuple[Data, ...]  # ("le", p) p <= 0, ("lt", p), ("eq", p), ("ne", p), ("and", ...), ("or", ...), ("true",)
TRUE, FALSE = ("true",), ("false",)


@cache
def le(p: Poly) -> Formula:
    """p <= 0; of integers with the greatest common divisor divided out."""
    c = p.constant
    if c is not None:
        return TRUE if c <= 0 else FALSE
    if p.whole:
        divisor = math.gcd(*(int(c) for m, c in p.terms.items() if m != UNIT))
        if divisor > 1:
            floor = -((-p.terms.get(UNIT, Fraction(0))) // divisor)
            rest = {m: c / divisor for m, c in p.terms.items() if m != UNIT}
            return ("le", poly({**rest, UNIT: Fraction(floor)}))
    return ("le", p)


def lt(p: Poly) -> Formula:
    """p < 0."""
    if p.whole:
        return le(add(p, ONE))
    c = p.constant
    return ("lt", p) if c is None else TRUE if c < 0 else FALSE


def eq(p: Poly) -> Formula:
    """p = 0."""
    c = p.constant
    if c is not None:
        return TRUE if c == 0 else FALSE
    leading = min(p.terms.items(), key=lambda x: x[0])[1]
    return ("eq", p if leading > 0 else scaled(p, -1))


def compared(sign: str, p: Poly) -> Formula:
    """p compared with 0: "le", "lt", "eq" or "ne"."""
    return le(p) if sign == "le" else lt(p) if sign == "lt" else eq(p) if sign == "eq" else negated(eq(p))


def conj(*fs: Formula) -> Formula:
    """All of them."""
    parts = dict.fromkeys(x for f in fs for x in (f[1:] if f[0] == "and" else (f,)) if x != TRUE)
    if FALSE in parts or any(negated(x) in parts for x in parts):
        return FALSE
    return TRUE if not parts else next(iter(parts)) if len(parts) == 1 else ("and", *parts)


def disj(*fs: Formula) -> Formula:
    """One of them."""
    return negated(conj(*(negated(f) for f in fs)))


@cache
def negated(f: Formula) -> Formula:
    """The opposite."""
    match f[0]:
        case "true":
            return FALSE
        case "false":
            return TRUE
        case "le":
            return lt(scaled(f[1], -1))
        case "lt":
            return ("le", scaled(f[1], -1))
        case "eq":
            return ("ne", f[1])
        case "ne":
            return ("eq", f[1])
        case "and":
            return ("or", *(negated(x) for x in f[1:]))
    return ("and", *(negated(x) for x in f[1:]))


def literals(f: Formula) -> Iterator[Formula]:
    """The comparisons in a condition."""
    if f[0] in ("and", "or"):
        for x in f[1:]:
            yield from literals(x)
    elif f[0] not in ("true", "false"):
        yield f


def polys(f: Formula) -> Iterator[Poly]:
    """The polynomials in a condition."""
    return (x[1] for x in literals(f))


def variables(f: Formula) -> frozenset[int]:
    """The variables of a condition."""
    return frozenset[int]().union(*(p.vars for p in polys(f)))


def within(p: Poly, n: Poly) -> Formula:
    """0 <= p < n of integers."""
    return conj(le(scaled(p, -1)), lt(minus(p, n)))


# ---- substitution ----------------------------------------------------------------------------------------------------


def put(p: Poly, values: Mapping[int, Poly]) -> Poly:
    """p with polynomials for variables."""
    if not p.vars & values.keys():
        return p
    out = []
    for (factors, e), c in p.terms.items():
        parts = [exponential(put(POLYS[e], values))] if e else []
        for a, k in factors:
            parts.append(power_of(_put_atom(ATOMS[a], values), k) if ATOMS[a].vars & values.keys() else of(ATOMS[a], k))
        out.append(scaled(mul(ONE, *parts), c))
    return add(ZERO, *out)


def power_of(p: Poly, k: Fraction) -> Poly:
    """p to a whole or half power."""
    if k.denominator == 2:
        return power_of(root(p), 2 * k)
    return mul(*[p if k > 0 else inverse(p)] * abs(int(k)))


def _put_atom(a: Atom, values: Mapping[int, Poly]) -> Poly:
    if a.kind == "var":
        return values.get(a.id, of(a))
    inner = lambda x: put(x, values) if isinstance(x, Poly) else x  # noqa: E731
    if a.kind == "base":
        return put(a.data[0], values)
    if a.kind in ("read", "app"):
        args = tuple(map(inner, a.data[1]))
        return of(atom(a.kind, a.sort, a.data[0], args, variables=variables_of(args)))
    name, families = a.data
    moved = []
    for bound, guards, body in families:
        kept = {v: q for v, q in values.items() if v not in bound}
        if any(q.vars & set(bound) for q in kept.values()):
            raise NotChecked("a variable is captured")
        moved.append((bound, put_formula(guards, kept), put(body, kept)))
    return of(fold_atom(a.kind, name, moved, a.sort))


def put_formula(f: Formula, values: Mapping[int, Poly]) -> Formula:
    """A condition with polynomials for variables."""
    match f[0]:
        case "and":
            return conj(*(put_formula(x, values) for x in f[1:]))
        case "or":
            return disj(*(put_formula(x, values) for x in f[1:]))
        case "true" | "false":
            return f
    p = put(f[1], values)
    return compared(f[0], p)


def variables_of(ps: Iterable[Poly]) -> frozenset[int]:
    return frozenset[int]().union(*(p.vars for p in ps))


Family = tuple[tuple[int, ...], Formula, Poly]  # bound variables, the condition on them, the body


def fold_atom(kind: str, name: str, families: Sequence[Family], sort: str) -> Atom:
    """A sum of one family, or the maximum of several."""
    free = frozenset[int]().union(*((b.vars | variables(g)) - set(vs) for vs, g, b in families))
    return atom(kind, sort, name, tuple(families), variables=free)


def variable() -> Atom:
    """A new integer variable."""
    return atom("var", "int", next(serial))


def text(p: Poly) -> str:
    """A polynomial for messages."""
    parts = []
    for (factors, e), c in p.terms.items():
        powers = [name(ATOMS[a]) + (f"^{k}" if k != 1 else "") for a, k in factors] + (
            [f"exp({text(POLYS[e])})"] if e else []
        )
        parts.append("*".join([*([] if c == 1 and powers else [str(c)]), *powers]))
    return " + ".join(parts) or "0"


def name(a: Atom) -> str:
    """An atom for messages."""
    if a.kind == "sym":
        return str(a.data[0])
    if a.kind == "var":
        return f"v{a.id}"
    if a.kind in ("read", "app"):
        return f"{a.data[0]}[{', '.join(map(text, a.data[1]))}]"
    if a.kind == "base":
        return f"({text(a.data[0])})"
    families = [f"{'/'.join(f'v{v}' for v in vs)}: {said(g)}: {text(b)}" for vs, g, b in a.data[1]]
    return f"{a.data[0]}[{'; '.join(families)}]"


def said(f: Formula) -> str:
    """A condition for messages."""
    if f[0] in ("and", "or"):
        return f"({f' {f[0]} '.join(map(said, f[1:]))})"
    return f[0] if f[0] in ("true", "false") else f"{text(f[1])} {f[0]} 0"

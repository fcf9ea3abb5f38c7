"""Polynomials over atoms: one normal form for integers and reals.

    P ::= c1 m1 + c2 m2 + ...          m ::= a^k b^l ... exp(e)

Atoms are terms in normal form; powers are integers or halves; e is a polynomial. Hash-consed: equal polynomials are the
same object. Coefficients are exact where the kernel's constants are short decimals; others are floats, compared to six
digits, as a constant in single precision can be.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect, insort
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from typing import Any, Protocol, TypeVar

from trilift.lift.errors import TriliftError
from trilift.lift.runtime.session import after_drop, pin, table
from trilift.lift.terms import construct as T
from trilift.lift.terms.constants import as_float32
from trilift.lift.terms.ops import SMALLEST
from trilift.lift.terms.term import Term

Number = Any  # int, Fraction or float: mypy has no type for what their sum is
Power = int | Fraction
Factors = tuple[tuple[int, Power], ...]  # (id of the atom, power), sorted by id
Monomial = tuple[Factors, int]  # and the id of the exponent polynomial
DIGITS = 6  # of a float coefficient
SINGLE_BITS, DOUBLE_BITS = 24, 51  # of a constant: of f32, and of f64 after a few roundings
SIMPLE = 2e5  # c d^2 of a number c that is taken for n / d: of those that are none, one in a hundred is near to one
LARGE = 600  # exp of a larger number is no float
HALF = Fraction(1, 2)


class Undecided(TriliftError):
    """The proof cannot go on: `what` is missing."""


_TABLE: dict[frozenset[tuple[Monomial, Number]], Poly] = table("poly.by_terms", {})
POLYS: dict[int, Poly] = table("poly.by_id", {})
_ids = count()  # over all sessions: no id is used twice


class Poly:
    """`terms`: monomial -> coefficient, none of them 0."""

    __slots__ = ("terms", "id", "_term", "_atoms")
    terms: dict[Monomial, Number]
    id: int
    _term: Term | None
    _atoms: frozenset[int] | None

    def __add__(self, o: Poly) -> Poly:
        return total(((1, self), (1, o)))

    def __sub__(self, o: Poly) -> Poly:
        return total(((1, self), (-1, o)))

    def __neg__(self) -> Poly:
        return scaled(self, -1)

    @property
    def constant(self) -> Number | None:
        """The number that this is, None if it is not one."""
        if not self.terms:
            return 0
        return self.terms.get(ONE_KEY) if len(self.terms) == 1 else None

    @property
    def term(self) -> Term:
        """The polynomial as a term, in normal form."""
        if self._term is None:
            self._term = T.add(*(as_term(m, c) for m, c in self.terms.items())) if self.terms else T.const(0)
        return self._term

    @property
    def atoms(self) -> frozenset[int]:
        """Ids of the atoms, exponents included."""
        if self._atoms is None:
            out: set[int] = set()
            for factors, e in self.terms:
                out |= {a for a, _ in factors}
                out |= POLYS[e].atoms if e else set()
            self._atoms = frozenset(out)
        return self._atoms

    def __repr__(self) -> str:
        return repr(self.term)


def poly(terms: dict[Monomial, Number]) -> Poly:
    """The hash-consed polynomial of non-zero coefficients."""
    key = frozenset(terms.items())
    p = _TABLE.get(key)
    if p is None:
        p = object.__new__(Poly)
        p.terms, p.id = terms, next(_ids)
        p._term = p._atoms = None
        POLYS[p.id] = p
        _TABLE[key] = p
    return p


def pinned(p: Poly) -> Poly:
    """The polynomial of pinned atoms, which outlives every session: for the constants of modules."""
    pin(POLYS, p.id)
    pin(_TABLE, frozenset(p.terms.items()))
    return p


ZERO = pinned(poly({}))  # id 0: the exponent of a monomial without exp
ONE_KEY: Monomial = ((), 0)
ONE = pinned(poly({ONE_KEY: 1}))


@after_drop
def _without_dropped_terms() -> None:
    """Polynomials that outlive a session may have made their term in it."""
    for p in POLYS.values():
        if p._term is not None and p._term.id not in T.TERMS:
            p._term = None


def number(c: Number) -> Poly:
    """A constant; infinities are atoms."""
    if isinstance(c, float) and math.isinf(c):
        return atom(T.const(c))
    c = tidy(c)
    return poly({ONE_KEY: c}) if c else ZERO


def tidy(c: Number) -> Number:
    """A float that single precision does not tell from a short decimal or a simple fraction is that number."""
    if isinstance(c, int):
        return c
    if isinstance(c, Fraction):
        return c.numerator if c.denominator == 1 else c
    if c == 0 or not math.isfinite(c):
        return c
    return _seen(c) if (found := simple(c)) is None else found


def simple(c: float) -> int | Fraction | None:
    """The short decimal, or the fraction like 1/3 or 5/7, that a float is in single precision."""
    short = float(f"{c:.{DIGITS}g}")
    if same_constant(Fraction(short), c) or abs(c) < 1e-300:
        f = Fraction(f"{c:.{DIGITS}g}")
        return f.numerator if f.denominator == 1 else f
    denominator = min(128, math.isqrt(int(SIMPLE / abs(c))))
    if denominator:
        f = Fraction(c).limit_denominator(denominator)
        if same_constant(f, c):
            return f
    return None


_PRECISION: dict[str, int] = table("poly.precision", {})  # the bits of constants
_BY_PRECISION: list[Callable[[], None]] = []  # they empty tables whose entries depend on them


class _Clearable(Protocol):
    def clear(self) -> None: ...


Entries = TypeVar("Entries", bound=_Clearable)


def by_precision(entries: Entries) -> Entries:
    """The table, which is emptied where constants become one that were two, or two that were one."""
    _BY_PRECISION.append(entries.clear)
    return entries


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Inside, two constants are one number where so many bits make them one."""
    before = _PRECISION.get("bits", SINGLE_BITS)
    _set_precision(bits)
    try:
        yield
    finally:
        _set_precision(before)


def _set_precision(bits: int) -> None:
    if bits != _PRECISION.get("bits", SINGLE_BITS):
        _PRECISION["bits"] = bits
        for empty in _BY_PRECISION:
            empty()


def same_constant(a: Number, b: Number) -> bool:
    """Whether two constants are one where it is rounded to the precision at hand: not two neighbours there. A number
    of f32 is one with the fractions that round to it: 3.1415927 is not 355 / 113, to which its neighbour is nearest."""
    if isinstance(a, Fraction) and isinstance(b, float):
        a, b = b, a
    if isinstance(a, float) and isinstance(b, Fraction) and _is_of_f32(a):
        return as_float32(float(b)) == a
    return a == b or vanishes_beside(a - b, max(abs(a), abs(b)))


def _is_of_f32(c: float) -> bool:
    return _PRECISION.get("bits", SINGLE_BITS) == SINGLE_BITS and as_float32(c) == c


def vanishes_beside(difference: Number, size: Number) -> bool:
    """Whether a difference of numbers, of which the larger has that size, is less than that of two neighbours, so that
    rounding one of them may have made it."""
    return bool(abs(difference) < 2.0 ** -_PRECISION.get("bits", SINGLE_BITS) * size)


_SEEN: list[float] = table("poly.constants", [])  # sorted


def _seen(c: float) -> float:
    """The first constant met that is c in single precision: f32 roundings of one number become one number."""
    k = bisect(_SEEN, c)
    for near in _SEEN[max(k - 1, 0) : k + 1]:
        if same_constant(near, c):
            return near
    insort(_SEEN, c)
    return c


def atom(t: Term, power: Power = 1) -> Poly:
    return poly({(((t.id, power),), 0): 1})


def total(parts: Iterable[tuple[Number, Poly]]) -> Poly:
    """The linear combination. Floats that differ in the last digits of single precision cancel."""
    out: dict[Monomial, Number] = {}
    for k, p in parts:
        for m, c in p.terms.items():
            old, more = out.get(m), times(k, c)
            out[m] = more if old is None else _sum(old, more)
    return poly({m: c for m, v in out.items() if (c := _settled(v))})


def times(c: Number, d: Number) -> Number:
    """c d. Raises Undecided where no float can hold it: exp(-400) exp(-400) is not 0."""
    if not c or not d:
        return 0
    return _held(lambda: c * d) if isinstance(c, float) or isinstance(d, float) else c * d


def _held(value: Callable[[], Number]) -> Number:
    """A number made of others that are not 0. Raises Undecided where it is too large or too small for a float."""
    try:
        v = value()
    except OverflowError:
        v = math.inf
    if isinstance(v, float) and not SMALLEST <= abs(v) < math.inf:
        raise Undecided("a constant is too large or too small for a float")
    return v


def _sum(a: Number, b: Number) -> Number:
    c = a + b
    if isinstance(c, float) and same_constant(a, -b):
        return 0
    return c


def _settled(c: Number) -> Number:
    if isinstance(c, float):
        return tidy(c)
    return c.numerator if isinstance(c, Fraction) and c.denominator == 1 else c


def scaled(p: Poly, c: Number) -> Poly:
    return total(((c, p),)) if c else ZERO


def vanishes(cs: Iterable[Number]) -> bool:
    """Whether numbers add up to 0; floats in single precision."""
    cs = list(cs)
    inexact = any(isinstance(c, float) for c in cs)
    rest = sum(cs)
    return rest == 0 or (inexact and vanishes_beside(rest, max(map(abs, cs))))


def quotient(c: Number, d: Number) -> Number:
    """c / d, exact where both are."""
    if c and (isinstance(c, float) or isinstance(d, float)):
        return tidy(_held(lambda: c / d))
    return tidy(Fraction(c) / Fraction(d))


def monomial(m: Monomial, c: Number = 1) -> Poly:
    return poly({m: c}) if c else ZERO


def exponential(e: Poly) -> Poly:
    """exp(e); the constant addend of e becomes a coefficient."""
    c = e.terms.get(ONE_KEY, 0)
    rest = poly({m: v for m, v in e.terms.items() if m != ONE_KEY}) if c else e
    if not c or abs(c) > LARGE:
        return poly({((), e.id): 1})
    return poly({((), rest.id): _settled(math.exp(float(c)))})


def as_term(m: Monomial, c: Number = 1) -> Term:
    """c * m as a term."""
    factors: list[Term] = [constant_term(c)]
    for a, k in m[0]:
        base = T.TERMS[a]
        whole, half = int(k), k != int(k)
        if half and k < 0:
            whole = int(k + Fraction(1, 2))
        one = base if k > 0 else T.node("recip", (base,))
        factors += [one] * abs(whole)
        if half:
            root = T.make("sqrt", base)
            factors.append(root if k > 0 else T.node("recip", (root,)))
    if m[1]:
        factors.append(T.make("exp", POLYS[m[1]].term))
    return T.mul(*factors)


def raised(c: Number, k: Power) -> Number:
    """c^k of a number that is not 0, exact where c and k are. Raises Undecided where no float can hold it."""
    if isinstance(c, float) or k != int(k):
        return _held(lambda: float(c) ** float(k))
    return Fraction(c) ** int(k)


def constant_term(c: Number) -> Term:
    """A number as a term: a fraction becomes a float, which `tidy` reads back, or a quotient where it is too small."""
    if not isinstance(c, Fraction):
        return T.const(c)
    if SMALLEST <= abs(c) <= sys.float_info.max:
        return T.const(float(c))
    return T.mul(T.const(c.numerator), T.node("recip", (T.const(c.denominator),)))


def substituted(p: Poly, images: dict[int, Term]) -> Any:
    """Helper of renaming: atoms replaced by atoms, exponents included."""
    if not (p.atoms & images.keys()):
        return p
    out: dict[Monomial, Number] = {}
    for (factors, e), c in p.terms.items():
        powers: dict[int, Power] = {}
        for a, k in factors:
            b = images[a].id if a in images else a
            powers[b] = powers.get(b, 0) + k
        key = (tuple(sorted((a, k) for a, k in powers.items() if k)), substituted(POLYS[e], images).id if e else 0)
        out[key] = out.get(key, 0) + c
    return poly({m: c for m, v in out.items() if (c := _settled(v))})


def product_with_exponential(factors: Factors, e: Poly, c: Number = 1) -> Poly:
    """c * factors * exp(e)."""
    factors = tuple((a, k) for a, k in factors if k)
    k = e.terms.get(ONE_KEY)
    if not k or abs(k) > LARGE:
        return poly({(factors, e.id): c}) if c else ZERO
    p = exponential(e)
    ((_, rest), d) = next(iter(p.terms.items()))
    return poly({(factors, rest): _settled(times(c, d))})


_STRUCTURAL: dict[int, Poly] = by_precision(table("poly.structural", {}))


def structural(t: Term) -> Poly:
    """The polynomial of a term in normal form, perhaps with variables renamed: its atoms stay as they are."""
    found = _STRUCTURAL.get(t.id)
    if found is None:
        found = _STRUCTURAL[t.id] = _structural(t)
    return found


def _structural(t: Term) -> Poly:
    if t.op == "const":
        return number(int(t.attr) if isinstance(t.attr, bool) else t.attr)
    if t.op == "add":
        return total((1, structural(s)) for s in t.args)
    if t.op == "mul":
        out: dict[int, Power] = {}
        e: Poly = ZERO
        c: Number = 1
        for s in t.args:
            p = structural(s)
            if len(p.terms) != 1:
                return atom(t)
            ((factors, f), d) = next(iter(p.terms.items()))
            c = times(c, d)
            e = e + POLYS[f]
            for b, j in factors:
                out[b] = out.get(b, 0) + j
        return product_with_exponential(tuple(sorted((b, k) for b, k in out.items() if k)), e, c)
    if t.op == "exp":
        return exponential(structural(t.args[0]))
    if t.op in ("recip", "sqrt"):
        inner = structural(t.args[0])
        k: Power = -1 if t.op == "recip" else HALF
        if t.op == "recip" and len(inner.terms) == 1:
            ((factors, e_), c_) = next(iter(inner.terms.items()))
            if c_ == 1 and not e_:
                return poly({(tuple((b, -j) for b, j in factors), 0): 1})
        return atom(t.args[0], k)
    return atom(t)

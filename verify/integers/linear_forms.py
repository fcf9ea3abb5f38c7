"""Integer terms as polynomials, conditions as rows and clauses, and what is known of their quotients, minima, choices.

A polynomial is constant + sum of coefficient * monomial. A monomial is an int: the id of a symbol or of a term with a
definition (a quotient, a minimum ...), or the negative number of a product of several of those.
A row (equal, polynomial) says polynomial = 0 or polynomial >= 0. A clause is a tuple of alternatives, each a
tuple of rows and clauses that hold together; one alternative holds. A boolean symbol is a number 0 or 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from math import gcd

from trilift.lift.runtime.session import memo, table
from trilift.lift.terms import construct as T
from trilift.lift.terms.meanings import Domain, meaning
from trilift.lift.terms.term import BOOL, TERMS, Term

from .conditions import CORE, interpreted, negation

_PRODUCTS: dict[int, tuple[int, ...]] = table("linear_forms.products", {})
_NUMBER: dict[tuple[int, ...], int] = table("linear_forms.numbers", {})
_numbers = count(-1, -1)  # over all sessions
TOO_LONG = 200  # monomials; longer polynomials are symbols


@dataclass(frozen=True, slots=True)
class Polynomial:
    constant: int
    terms: dict[int, int]

    def __add__(self, o: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for m, c in o.terms.items():
            if (s := terms.get(m, 0) + c) == 0:
                del terms[m]
            else:
                terms[m] = s
        return Polynomial(self.constant + o.constant, terms)

    def scaled(self, k: int) -> Polynomial:
        return Polynomial(k * self.constant, {m: k * c for m, c in self.terms.items()} if k else {})

    def __sub__(self, o: Polynomial) -> Polynomial:
        return self + o.scaled(-1)

    def plus(self, k: int) -> Polynomial:
        return Polynomial(self.constant + k, self.terms)

    def __mul__(self, o: Polynomial) -> Polynomial:
        out = self.scaled(o.constant)
        for m, c in o.terms.items():
            terms: dict[int, int] = {m: c * self.constant} if self.constant else {}
            for n, d in self.terms.items():
                p = product(m, n)
                terms[p] = terms.get(p, 0) + c * d
            out = out + Polynomial(0, terms)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    equal: bool
    polynomial: Polynomial


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    alternatives: tuple[tuple[Item, ...], ...]


Item = Row | Clause


def factors(m: int) -> tuple[int, ...]:
    """The ids whose product the monomial is."""
    return (m,) if m >= 0 else _PRODUCTS[m]


def product(*ms: int) -> int:
    """The monomial that is the product of these; of at least one."""
    ids = tuple(sorted(i for m in ms for i in factors(m)))
    if len(ids) == 1:
        return ids[0]
    if ids not in _NUMBER:
        _NUMBER[ids] = m = next(_numbers)
        _PRODUCTS[m] = ids
    return _NUMBER[ids]


def to_term(p: Polynomial) -> Term:
    """The polynomial as a term."""
    parts = [T.mul(c, *(TERMS[i] for i in factors(m))) for m, c in p.terms.items()]
    return T.add(*parts, p.constant)


def atom(t: Term) -> Polynomial:
    return Polynomial(0, {t.id: 1})


_POLYNOMIAL: dict[int, Polynomial] = table("linear_forms.polynomials", {})


def polynomial(t: Term) -> Polynomial:
    """Of a core integer term."""
    p = _POLYNOMIAL.get(t.id)
    if p is None:
        p = _POLYNOMIAL[t.id] = _polynomial(t)
    return p


def _polynomial(t: Term) -> Polynomial:
    if t.op == "const":
        return Polynomial(int(t.attr), {})
    if not interpreted(t):
        return atom(t)
    if t.op == "add":
        out = Polynomial(0, {})
        for a in t.args:
            out = out + polynomial(a)
        return out
    if t.op == "mul":
        out = Polynomial(1, {})
        for a in t.args:
            p = polynomial(a)
            if len(out.terms) * len(p.terms) > TOO_LONG:
                return atom(t)
            out = out * p
        return out
    if t.op in ("floordiv", "mod") and t.args[1].op == "const":
        whole, c = polynomial(t.args[0]), int(t.args[1].attr)
        q = _quotient(whole, c)
        return q if t.op == "floordiv" else whole - q.scaled(c)
    return atom(t)


def _quotient(a: Polynomial, c: int) -> Polynomial:
    """(c*q + r) // c = q + r // c, and (g*r + s) // (g*c) = (r + s // g) // c, for c > 0."""
    whole = Polynomial(a.constant // c, {m: k // c for m, k in a.terms.items() if k % c == 0})
    rest = Polynomial(a.constant % c, {m: k for m, k in a.terms.items() if k % c})
    if not rest.terms:
        return whole
    g = gcd(c, *rest.terms.values())
    rest = Polynomial(rest.constant // g, {m: k // g for m, k in rest.terms.items()})
    if c == g:
        return whole + rest
    return whole + atom(T.node("floordiv", (to_term(rest), T.const(c // g)), None, T.INT))


# ---- conditions ------------------------------------------------------------------------------------------------------

FALSE_ITEM = Row(False, Polynomial(-1, {}))


@memo
def items(t: Term) -> tuple[Item, ...]:
    """The rows of a core boolean."""
    if t.op == "const":
        return () if t.attr else (FALSE_ITEM,)
    if not interpreted(t):
        return (Row(False, atom(t).plus(-1)),)
    match t.op:
        case "and":
            return tuple(i for a in t.args for i in items(a))
        case "or":
            return (Clause(tuple(map(items, t.args))),)
        case "not":
            return _denied(t.args[0])
    low, high = map(polynomial, t.args)
    difference = high - low
    return (Row(t.op == "eq", difference.plus(-1) if t.op == "lt" else difference),)


def _denied(t: Term) -> tuple[Item, ...]:
    if not interpreted(t):
        return (Row(False, atom(t).scaled(-1)),)
    match t.op:
        case "and":
            return (Clause(tuple(items(negation(a)) for a in t.args)),)
        case "or":
            return tuple(i for a in t.args for i in items(negation(a)))
        case "eq":
            d = polynomial(t.args[0]) - polynomial(t.args[1])
            return (Clause(((at_least(d, 1),), (at_least(d.scaled(-1), 1),))),)
    return items(negation(t))


def at_least(p: Polynomial, k: int = 0) -> Row:
    return Row(False, p.plus(-k))


def equals(p: Polynomial, q: Polynomial) -> Row:
    return Row(True, p - q)


# ---- definitions -----------------------------------------------------------------------------------------------------


@memo
def definition(i: int) -> tuple[Item, ...]:
    """The known facts about the atom with this id, in terms of other atoms."""
    t = TERMS[i]
    if t.type == BOOL:
        return at_least(atom(t)), at_least(atom(t).scaled(-1), -1)
    if not interpreted(t):
        return ()
    known = LINEAR.get(t.op)
    return () if known is None else known(t)


LINEAR = Domain("linear form", missing="opaque", says="the rows and clauses that a number of its own meets",
                types=(T.INT, T.BOOL, "same"))  # fmt: skip
LINEAR.derive(("add", "mul"), "a polynomial")
LINEAR.derive(("and", "or", "not", "eq", "lt", "le"), "rows and clauses themselves: items")


@meaning(LINEAR, "min", "max")
def _extremum(t: Term) -> tuple[Item, ...]:
    sign = 1 if t.op == "max" else -1
    ps = [polynomial(a) for a in t.args]
    ordered = tuple(at_least((atom(t) - p).scaled(sign)) for p in ps)
    return (*ordered, Clause(tuple((equals(atom(t), p),) for p in ps)))


@meaning(LINEAR, "where")
def _choice(t: Term) -> tuple[Item, ...]:
    c, a, b = t.args
    first = (*items(c), equals(atom(t), polynomial(a)))
    return (Clause((first, (*items(negation(c)), equals(atom(t), polynomial(b))))),)


@meaning(LINEAR, "next_power_of_2")
def _power(t: Term) -> tuple[Item, ...]:
    """n <= p, and p = 0 of n <= 0, p = n = 1, or p <= 2n - 2 (p < 2n, both even)."""
    n, p = polynomial(t.args[0]), atom(t)
    none = at_least(n.scaled(-1)), equals(p, Polynomial(0, {}))
    one = equals(n, Polynomial(1, {})), equals(p, Polynomial(1, {}))
    large = at_least(n, 2), at_least(n.scaled(2) - p, 2), at_least(p, 2)
    return at_least(p), at_least(p - n), Clause((none, one, large))


@meaning(LINEAR, "floordiv", "mod")
def _division(t: Term) -> tuple[Item, ...]:
    """a = b*q + r with 0 <= r < b, or b < r <= 0, or b = 0."""
    if t.op == "mod":
        return definition(T.node("floordiv", t.args, None, T.INT).id)
    a, b = map(polynomial, t.args)
    if not b.terms:
        rest = a - atom(t).scaled(b.constant)
        return at_least(rest), at_least(rest.scaled(-1), 1 - b.constant)
    q, r = (atom(T.node(op, t.args, None, T.INT)) for op in ("floordiv", "mod"))
    split = equals(a, b * q + r)
    natural = at_least(a), at_least(q), at_least(a - q), at_least(a - r)
    signs = Clause((natural, (at_least(a.scaled(-1), 1), at_least(q.scaled(-1), 1))))
    positive = at_least(b, 1), split, at_least(r), at_least(b - r, 1), signs
    negative = at_least(b.scaled(-1), 1), split, at_least(r.scaled(-1)), at_least(r - b, 1)
    return (Clause((positive, negative, (Row(True, b),))),)


LINEAR.derive(CORE.rows, "the integer core")


@memo
def atoms_of(item: Item) -> frozenset[int]:
    """The atoms in a row or clause."""
    if isinstance(item, Row):
        return frozenset(i for m in item.polynomial.terms for i in factors(m))
    return frozenset(i for alternative in item.alternatives for part in alternative for i in atoms_of(part))


def closed(given: Iterable[Item]) -> list[Item]:
    """The items and the definitions of all atoms in them."""
    out = list(given)
    seen: set[int] = set()
    present: set[Item] = set()
    k = 0
    while k < len(out):
        for i in sorted(atoms_of(out[k]) - seen):
            seen.add(i)
            out += [d for d in definition(i) if d not in present]
            present.update(definition(i))
        k += 1
    return out

"""The expanded normal form of a term: a sum of  c * atoms^powers * exp(e) * 2^f,  like monomials merged.

Products are distributed, exp(a) * exp(b) is exp(a + b), and the reciprocal of a sum gives up the exponential that all
its addends share, so that rescaled sums lose their scale:

    (exp(x0 - m1) exp(m1 - m2) + exp(x1 - m2)) / (...)  =  (exp(x0) + exp(x1)) / (...)

It destroys the shape in which a value was computed, hence it is only the second attempt where a spec has no regular
shape: loops over tiles that rescale, recurrences, Welford updates. True of reals wherever the original is defined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..errors import NotLifted
from ..runtime import budget
from ..runtime.session import table
from . import construct as T
from .term import TERMS, Term

Factors = tuple[tuple[int, int], ...]  # (atom id, power), sorted
Monomial = tuple[Factors, int, int]  # factors, id of the exponent of e, id of the exponent of 2
Poly = dict[Monomial, float]
MONOMIALS = 20_000  # in one polynomial


def expand(t: Term, memo: Expansion | None = None) -> Term:
    """The normal form of the term. Raises NotLifted where it would have more than MONOMIALS."""
    return (memo or Expansion()).normal(t)


@dataclass
class Expansion:
    """Normal forms computed so far; share one over the elements of a spec."""

    polys: dict[int, Poly] = field(default_factory=dict)
    terms: dict[int, Term] = field(default_factory=dict)

    def normal(self, t: Term) -> Term:
        todo = [t]
        while todo:
            s = todo[-1]
            if new := [a for a in reversed(s.args) if a.id not in self.terms]:
                todo += new
                continue
            if s.id not in self.terms:
                self.terms[s.id] = to_term(self.poly(s))
            todo.pop()
        return self.terms[t.id]

    def poly(self, t: Term) -> Poly:
        if t.id not in self.polys:
            self.polys[t.id] = self._poly(t)
        return self.polys[t.id]

    def _poly(self, t: Term) -> Poly:
        match t.op:
            case "const":
                return (
                    {} if t.attr == 0 else atom(t) if t.type == T.BOOL or not math.isfinite(t.attr) else {ONE: t.attr}
                )
            case "add":
                return total(*(self.poly(a) for a in t.args))
            case "mul":
                out: Poly = {ONE: 1}
                for a in t.args:
                    out = product(out, self.poly(a))
                return out
            case "exp":
                return {((), self.normal(t.args[0]).id, ZERO): 1}
            case "exp2":
                return {((), ZERO, self.normal(t.args[0]).id): 1}
            case "recip":
                return self.reciprocal(self.poly(t.args[0]))
            case "max" | "min":
                return self.lattice(t)
        return atom(T.rebuild(t, tuple(self.normal(a) for a in t.args)) if t.args else t)

    def reciprocal(self, p: Poly) -> Poly:
        if not p:
            return atom(T.node("recip", (T.const(0),)))
        shared = common(p)
        inside = to_term(product(p, {inverse(shared): 1}))
        if inside.is_const:
            return {inverse(shared): 1 / inside.attr}
        return product({inverse(shared): 1}, {(((inside.id, -1),), ZERO, ZERO): 1})

    def lattice(self, t: Term) -> Poly:
        """max(a + c, b + c) = max(a, b) + c where all arguments share the addend c."""
        parts = [self.poly(a) for a in t.args]
        shared = {k: v for k, v in parts[0].items() if all(p.get(k) == v for p in parts[1:])}
        if not shared or any(not p for p in parts):
            return atom(T.make(t.op, *(to_term(p) for p in parts)))
        rest = [to_term({k: v for k, v in p.items() if k not in shared}) for p in parts]
        return total(shared, atom(T.make(t.op, *rest)))


ZERO = T.const(0).id
ONE: Monomial = ((), ZERO, ZERO)


def atom(t: Term) -> Poly:
    return {(((t.id, 1),), ZERO, ZERO): 1}


def total(*ps: Poly) -> Poly:
    out: Poly = {}
    for p in ps:
        for m, c in p.items():
            out[m] = out.get(m, 0) + c
    return {m: c for m, c in out.items() if not _gone(c)}


def _gone(c: float) -> bool:
    return abs(c) < 1e-13


def product(p: Poly, q: Poly) -> Poly:
    if len(p) * len(q) > MONOMIALS:
        raise NotLifted("the expanded form is too large", why=f"{len(p)} times {len(q)} monomials")
    budget.spend("product of monomials", len(p) * len(q))
    out: Poly = {}
    for m, c in p.items():
        for n, d in q.items():
            k = times(m, n)
            out[k] = out.get(k, 0) + c * d
    return {m: c for m, c in out.items() if not _gone(c)}


def times(m: Monomial, n: Monomial) -> Monomial:
    if m == ONE or n == ONE:
        return n if m == ONE else m
    powers = dict(m[0])
    for a, k in n[0]:
        powers[a] = powers.get(a, 0) + k
    return tuple(sorted((a, k) for a, k in powers.items() if k)), _sum(m[1], n[1]), _sum(m[2], n[2])


_SUMS: dict[tuple[int, int], int] = table("expansion.sums", {})


def _sum(a: int, b: int) -> int:
    if a == ZERO or b == ZERO:
        return a + b - ZERO
    key = (a, b) if a < b else (b, a)
    if key not in _SUMS:
        _SUMS[key] = to_term(total(_linear(TERMS[a]), _linear(TERMS[b]))).id
    return _SUMS[key]


def _linear(t: Term) -> Poly:
    """A normal term as a polynomial again, without opening its atoms."""
    out: list[Poly] = []
    for s in t.args if t.op == "add" else (t,):
        factors = s.args if s.op == "mul" else (s,)
        c = next((f.attr for f in factors if f.is_const), 1)
        powers: dict[int, int] = {}
        e = f2 = ZERO
        for f in factors:
            if f.op == "exp":
                e = _sum(e, f.args[0].id)
            elif f.op == "exp2":
                f2 = _sum(f2, f.args[0].id)
            elif not f.is_const:
                base, k = (f.args[0].id, -1) if f.op == "recip" else (f.id, 1)
                powers[base] = powers.get(base, 0) + k
        out.append({(tuple(sorted(powers.items())), e, f2): c})
    return total(*out)


def inverse(m: Monomial) -> Monomial:
    return tuple((a, -k) for a, k in m[0]), _negative(m[1]), _negative(m[2])


def _negative(e: int) -> int:
    return e if e == ZERO else to_term({m: -c for m, c in _linear(TERMS[e]).items()}).id


def common(p: Poly) -> Monomial:
    """The monomial that divides all: the least power of every atom, and the addends that all exponents share."""
    monomials = list(p)
    powers = [dict(m[0]) for m in monomials]
    atoms = sorted({a for q in powers for a in q})
    least = [(a, min(q.get(a, 0) for q in powers)) for a in atoms]
    return tuple((a, k) for a, k in least if k), _shared([m[1] for m in monomials]), _shared([m[2] for m in monomials])


def _shared(exponents: list[int]) -> int:
    if len(set(exponents)) == 1:
        return exponents[0]
    ps = [_linear(TERMS[e]) if e != ZERO else {} for e in exponents]
    return to_term({m: c for m, c in ps[0].items() if all(p.get(m) == c for p in ps[1:])}).id


def to_term(p: Poly) -> Term:
    """The polynomial as a term in normal form."""
    return T.add(*(_monomial(m, c) for m, c in p.items()))


def _monomial(m: Monomial, c: float) -> Term:
    factors: list[Term] = [T.const(c)]
    for a, k in m[0]:
        base = TERMS[a] if k > 0 else T.node("recip", (TERMS[a],))
        factors += [base] * abs(k)
    if m[1] != ZERO:
        factors.append(T.make("exp", TERMS[m[1]]))
    if m[2] != ZERO:
        factors.append(T.make("exp2", TERMS[m[2]]))
    return T.mul(*factors)

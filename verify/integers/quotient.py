"""Integer terms as polynomials over atoms, divided by one another: what offsets and inverses are computed with.

    p = q * n + r        p // n = q + r // n        p % n = r % n        (n != 0)
    0 <= r < n           r // n = 0                 r % n = r
    b > 0                (p // a) // b = p // (a * b)

An atom is a term that is not a sum, product or constant: a size, an axis, a read, a quotient, a minimum ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from trilift.lift.runtime.session import table
from trilift.lift.terms import construct as T
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.term import Term

Monomial = tuple[Term, ...]  # atoms sorted by id, with repetition
Poly = dict[Monomial, int]  # no zero coefficients
Ask = Callable[[Term], bool]  # does the goal follow from what is known?
REDUCED = Domain("reduction", missing="opaque", says="a shorter integer where the facts allow it",
                 types=(T.INT, T.BOOL, "same"))  # fmt: skip


def expand(t: Term) -> Poly:
    """The polynomial of an integer term; arguments of atoms are canonical (see `canonical`)."""
    found = _EXPANDED.get(t.id)
    if found is None:
        found = _EXPANDED[t.id] = _expand(t)
    return found


_EXPANDED: dict[int, Poly] = table("quotient.expanded", {})


def _expand(t: Term) -> Poly:
    match t.op:
        case "const":
            return {(): int(t.attr)} if t.attr else {}
        case "add":
            return plus(*(expand(a) for a in t.args))
        case "mul":
            out: Poly = {(): 1}
            for a in t.args:
                out = times(out, expand(a))
            return out
        case "shl" | "shr" | "bitand" if (same := _as_arithmetic(t)) is not None:
            return expand(same)
    atom = rebuild(t, tuple(canonical(a) if a.type == T.INT else a for a in t.args))
    return {(atom,): 1} if atom.op not in ("add", "mul", "const") else expand(atom)


def rebuild(t: Term, args: tuple[Term, ...]) -> Term:
    """T.rebuild, also for nodes without a row in lift.terms.ops."""
    return (
        T.rebuild(t, args) if t.op in OPS or t.op in T.FOLDS or t.op == "read" else T.node(t.op, args, t.attr, t.type)
    )


def _as_arithmetic(t: Term) -> Term | None:
    """x << k = x * 2^k, x >> k = x // 2^k, x & (2^k - 1) = x % 2^k."""
    for x, k in (t.args, t.args[::-1]):
        if not k.is_const or k.attr < 0 or (t.op != "bitand" and k is not t.args[1]):
            continue
        if t.op == "shl":
            return T.mul(x, 2**k.attr)
        if t.op == "shr":
            return T.make("floordiv", x, 2**k.attr)
        if k.attr & (k.attr + 1) == 0:
            return T.make("mod", x, k.attr + 1)
    return None


def to_term(p: Poly) -> Term:
    return T.add(*(T.mul(c, *m) for m, c in p.items())) if p else T.const(0)


def canonical(t: Term) -> Term:
    """The same integer with products multiplied out."""
    found = _CANONICAL.get(t.id)
    if found is None:
        found = _CANONICAL[t.id] = to_term(expand(t))
    return found


_CANONICAL: dict[int, Term] = table("quotient.canonical", {})


def plus(*ps: Poly) -> Poly:
    out: Poly = {}
    for p in ps:
        for m, c in p.items():
            out[m] = out.get(m, 0) + c
    return {m: c for m, c in out.items() if c}


def times(p: Poly, q: Poly) -> Poly:
    out: Poly = {}
    for m, c in p.items():
        for n, d in q.items():
            k = tuple(sorted((*m, *n), key=lambda t: t.id))
            out[k] = out.get(k, 0) + c * d
    return {m: c for m, c in out.items() if c}


def scale(p: Poly, c: int) -> Poly:
    return {m: c * d for m, d in p.items()} if c else {}


def minus(p: Poly, q: Poly) -> Poly:
    return plus(p, scale(q, -1))


def order(m: Monomial) -> tuple[int, tuple[int, ...]]:
    """Graded lexicographic: division makes monomials smaller."""
    return len(m), tuple(t.id for t in reversed(m))


def leading(p: Poly) -> tuple[Monomial, int]:
    m = max(p, key=order)
    return m, p[m]


def _ratio(m: Monomial, n: Monomial) -> Monomial | None:
    """m / n, if n divides m."""
    rest = list(m)
    for t in n:
        if t not in rest:
            return None
        rest.remove(t)
    return tuple(rest)


def divide(p: Poly, n: Poly) -> tuple[Poly, Poly]:
    """(q, r) with p = q * n + r identically; coefficients are divided towards zero, so that x - 1 stays x - 1."""
    head, c = leading(n)
    quotient: Poly = {}
    rest, done = dict(p), False
    seen: set[Monomial] = set()
    while not done:
        done = True
        for m in sorted(rest, key=order, reverse=True):
            if m in seen or (k := _ratio(m, head)) is None:
                continue
            seen.add(m)
            d = abs(rest[m]) // abs(c) * (1 if (rest[m] > 0) == (c > 0) else -1)
            if d:
                quotient = plus(quotient, {k: d})
                rest = minus(rest, times({k: d}, n))
                done = False
                break
    return quotient, rest


def atoms(p: Poly) -> set[Term]:
    return {t for m in p for t in m}


# ---- what equations between sizes say --------------------------------------------------------------------------------


def equalities(facts: Iterable[Term]) -> dict[Term, Term]:
    """size -> polynomial in sizes, from the facts `size = term`: replacing every key changes nothing where the facts
    hold."""
    out: dict[Term, Term] = {}
    for f in sorted(_conjuncts(facts), key=lambda t: t.id):
        if f.op != "eq" or f.args[0].type != T.INT or f.args[1].type != T.INT:
            continue
        a, b = (replace(x, out) for x in f.args)
        for size, value in ((a, b), (b, a)) if a.id > b.id else ((b, a), (a, b)):
            if size.op == "size" and all(t.op == "size" and t is not size for t in atoms(expand(value))):
                out = {k: replace(v, {size: value}) for k, v in out.items()} | {size: value}
                break
    return out


def _conjuncts(facts: Iterable[Term]) -> Iterable[Term]:
    for f in facts:
        yield from f.args if f.op == "and" else (f,)


def replace(t: Term, values: Mapping[Term, Term]) -> Term:
    """Replace sizes and free axes by terms, all at once. Values must not mention axes that t binds."""
    sizes = {k: v for k, v in values.items() if k.op == "size"}
    axes = {k.attr: v for k, v in values.items() if k.op == "axis"}
    aside = {k: T.size(f"{k.attr}\0") for k in sizes}  # a size in the value of an axis stays
    t = _replace_sizes(t, aside)
    t = T.substitute(t, axes)
    return _replace_sizes(t, {aside[k]: v for k, v in sizes.items()})


def _replace_sizes(t: Term, values: Mapping[Term, Term]) -> Term:
    return T.rewrite(t, values.get) if values else t


class Entailed:
    """The consequence of one fact by itself: p <= c gives p <= d for c <= d."""

    def __init__(self, facts: Iterable[Term]) -> None:
        self.most: dict[frozenset[tuple[Monomial, int]], int] = {}
        given = list(_conjuncts(facts))
        for f in given:
            self.add(f)
        for f in given:
            if f.op in ("lt", "le") and any(s.op in REDUCED.rows for s in f.walk()):
                self.add(reduce(f, self))

    def add(self, fact: Term) -> None:
        if (row := self.row(fact)) is not None:
            key, c = row
            self.most[key] = max(c, self.most.get(key, c))

    def row(self, t: Term) -> tuple[frozenset[tuple[Monomial, int]], int] | None:
        """(p, c) of p + c <= 0. Of integers only: i < x is not i + 1 <= x where x is a real."""
        if t.op not in ("lt", "le") or any(a.type != T.INT for a in t.args):
            return None
        p = minus(expand(t.args[0]), expand(t.args[1]))
        c = p.pop((), 0) + (t.op == "lt")
        return frozenset(p.items()), c

    def __call__(self, goal: Term) -> bool:
        if goal.is_const:
            return bool(goal.attr)
        row = self.row(goal)
        return row is not None and row[0] in self.most and row[1] <= self.most[row[0]]


# ---- quotients and remainders under facts ----------------------------------------------------------------------------


def between(x: Term, high: Term) -> Term:
    """0 <= x < high."""
    return T.make("and", T.make("le", 0, x), T.make("lt", x, high))


def reduce(t: Term, ask: Ask) -> Term:
    """An equal term with fewer quotients, remainders, minima and choices; `ask` proves the side conditions."""
    done: dict[int, Term] = {}
    for s in t.walk():
        if s.type != T.INT:
            args = tuple(done.get(a.id, a) for a in s.args)
            done[s.id] = rebuild(s, args) if s.op in _LOGIC else s
            continue
        r = rebuild(s, tuple(done.get(a.id, a) for a in s.args)) if s.args else s
        r = canonical(r)
        if r.op in REDUCED.rows:
            r = REDUCED.rows[r.op](r, ask)
        done[s.id] = _joined(r, ask) if r.op == "add" else r
    return canonical(done[t.id]) if t.type == T.INT else done[t.id]


def _joined(t: Term, ask: Ask) -> Term:
    """c * n * (x // n) + c * (x % n) = c * x, n != 0."""
    p = expand(t)
    for m, c in list(p.items()):
        for mod in (a for a in m if a.op == "mod"):
            x, n = mod.args
            rest: Poly = {_ratio(m, (mod,)) or (): c}
            whole = times(rest, times(expand(n), expand(T.make("floordiv", x, n))))
            if m in p and all(p.get(k) == d for k, d in whole.items()) and _nonzero(n, ask):
                p = plus(p, scale(whole, -1), {m: -c}, times(rest, expand(x)))
    return to_term(p)


_LOGIC = {"lt", "le", "eq", "ne", "and", "or", "not"}


def _nonzero(n: Term, ask: Ask) -> bool:
    return bool(n.attr) if n.is_const else ask(T.make("lt", 0, n)) or ask(T.make("ne", n, 0))


def _positive(n: Term, ask: Ask) -> bool:
    return bool(n.attr > 0) if n.is_const else ask(T.make("lt", 0, n))


def _floordiv(t: Term, ask: Ask) -> Term:
    a, n = t.args
    if n.is_const and n.attr == 1:
        return a
    if not expand(n) or not _nonzero(n, ask):
        return t
    q, r = _divide(expand(a), n)
    rest = to_term(r)
    if rest is T.const(0) or _fits(rest, n, ask):
        return to_term(q)
    if (k := _neighbour(rest, n, ask)) is not None:
        return T.add(to_term(q), k)
    return T.add(to_term(q), _nested(rest, n, ask))


def _divide(p: Poly, n: Term) -> tuple[Poly, Poly]:
    """Quotient and remainder; by a number, a constant remainder is not negative."""
    q, r = divide(p, expand(n))
    c = r.get((), 0)
    if n.is_const and n.attr > 0 and c < 0:
        q, r = plus(q, {(): -1}), plus(r, {(): int(n.attr)})
    return q, r


def _nested(a: Term, n: Term, ask: Ask) -> Term:
    """(x // b) // n = x // (b * n)."""
    if a.op == "floordiv" and _positive(n, ask) and _nonzero(a.args[1], ask):
        return T.make("floordiv", a.args[0], canonical(T.mul(a.args[1], n)))
    return T.make("floordiv", a, n)


def _mod(t: Term, ask: Ask) -> Term:
    a, n = t.args
    if n.is_const and n.attr == 1:
        return T.const(0)
    if not (p := expand(n)) or not _nonzero(n, ask):
        return t
    rest = to_term(_divide(expand(a), n)[1])
    if rest is T.const(0) or _fits(rest, n, ask):
        return rest
    if (k := _neighbour(rest, n, ask)) is not None:
        return T.sub(rest, T.mul(k, n))
    if rest.op == "mod" and _nonzero(rest.args[1], ask) and not divide(expand(rest.args[1]), p)[1]:
        return T.make("mod", rest.args[0], n)  # x % (k * n) % n = x % n
    return T.make("mod", rest, n)


def _neighbour(x: Term, n: Term, ask: Ask) -> int | None:
    """The quotient of x, if it is known to be -1 or 1."""
    return next((k for k in (-1, 1) if _fits(canonical(T.sub(x, T.mul(k, n))), n, ask)), None)


def _fits(x: Term, n: Term, ask: Ask) -> bool:
    return ask(T.make("le", 0, x)) and ask(T.make("lt", x, n))


def _trunc(to: str) -> Callable[[Term, Ask], Term]:
    """Division towards zero is floor division where nothing is negative."""

    def rule(t: Term, ask: Ask) -> Term:
        a, n = t.args
        if _positive(n, ask) and ask(T.make("le", 0, a)):
            t = T.make(to, a, n)
            return REDUCED.rows[to](t, ask) if t.op == to else t
        return t

    return rule


def _extremum(t: Term, ask: Ask) -> Term:
    """min(a, b) = a where a <= b."""
    args = list(t.args)
    for a in t.args:
        others = [b for b in args if b is not a]
        less = (lambda b, a=a: T.make("le", b, a)) if t.op == "min" else (lambda b, a=a: T.make("le", a, b))
        if any(ask(less(b)) for b in others):
            args.remove(a)
    return args[0] if len(args) == 1 else T.make(t.op, *args)


def _choice(t: Term, ask: Ask) -> Term:
    c, a, b = t.args
    return a if ask(c) else b if ask(T.make("not", c)) else t


REDUCED.fill({
    "floordiv": _floordiv,
    "mod": _mod,
    "truncdiv": _trunc("floordiv"),
    "truncmod": _trunc("mod"),
    "min": _extremum,
    "max": _extremum,
    "where": _choice,
})  # fmt: skip
REDUCED.derive(("add", "mul", "shl", "shr", "bitand"), "a polynomial: expand")
REDUCED.derive(_LOGIC, "its arguments are reduced")


def same(a: Term, b: Term, ask: Ask) -> bool:
    """Are two integer terms equal by x % n = x - n * (x // n), n != 0, and the laws of a ring?"""
    return not _without_mod(minus(expand(a), expand(b)), ask)


def _without_mod(p: Poly, ask: Ask) -> Poly:
    out: Poly = {}
    for m, c in p.items():
        q: Poly = {(): c}
        for t in m:
            if t.op == "mod" and _nonzero(t.args[1], ask):
                x, n = (_without_mod(expand(a), ask) for a in t.args)
                q = times(q, minus(x, times(n, expand(T.make("floordiv", to_term(x), to_term(n))))))
            else:
                q = times(q, {(t,): 1})
        out = plus(out, q)
    return out

"""Reasons why a polynomial is zero under facts. `zero` holds the order in which a proof tries them.

clear       P = Q / b is 0 if Q is, for b != 0
unify       atoms that are provably the same become one: reads at equal indices, folds of equal bodies over
            equivalent guards, functions of equal arguments
pointwise   sum_k c_k m sum[j: g_k] f(j) is 0 if at every j the c_k of the g_k that hold add up to 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from . import poly as P
from .algebra import ALL, INDICATORS, Algebra, Context, Facts, Split, Undecided, is_infinite
from .literals import integer_literal, is_integer
from .piecewise import condition, divided
from .poly import ONE, POLYS, ZERO, Monomial, Number, Poly, atom, structural
from .rules.fold import Fold, close, open_fold
from .rules.maximum import elements
from .rules.sum import sum_over
from .variables import bounds, flat, linear

DEEP = 12  # nested questions
FLAT = {"sum", "amax", "prod"}
SHALLOW = 2  # and those in which sums over rows are taken as one


def equal(a: Algebra, p: Poly, q: Poly, ctx: Context) -> bool:
    """Whether two normal forms are equal for all values that meet the facts. False: not shown."""
    if p is q:
        a.closed.names.append("identical")
        return True
    if is_infinite(p) or is_infinite(q):
        return False
    return a.zero(p - q, ctx)


def flattened(a: Algebra, p: Poly, ctx: Context) -> Poly:
    """p with one index for what a fold says of all rows and columns of a matrix."""

    def one(t: Term) -> Term | None:
        if t.op not in FLAT or t.attr.size is not ALL or t.args[0].op != t.op:
            return None
        g = flat(a, open_fold(a, t, ctx), ctx)
        return None if g is None else close(t.op, g)

    t = p.term
    try:
        new = T.rewrite(t, one)
        return a.normal(new, ctx) if new is not t else p
    except (Split, Undecided):
        return p


def is_product(p: Poly) -> bool:
    return any(len(factors) > 1 for factors, _ in p.terms)


def zero_where_pinned(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool:
    """Whether an index is 0 by what is known of its factors."""
    q = pinned(a, p, ctx, depth)
    return q is not p and (q is ZERO or a.implied(ctx, integer_literal("eq", q)))


def pinned(a: Algebra, p: Poly, ctx: Context, depth: int) -> Poly:
    """p with 0 or 1 in place of sizes, program ids, lanes and integer elements that can only be that, and with what
    facts say is equal to them in place of symbols."""
    t = p.term
    symbols = [
        s for s in t.walk() if s.type == T.INT and (s.op == "read" or (s.op in ("size", "axis") and s.free <= t.free))
    ]
    asked = [s for s in symbols if depth == 0 or s.op == "read"]
    only = {s: T.const(k) for s in asked for k in (0, 1)
            if a.implied(ctx, integer_literal("eq", atom(s) - P.number(k)))}  # fmt: skip
    only |= {s: e for s in symbols if s not in only and s.op != "read" and (e := _equal_to(s, ctx)) is not None}
    new = T.rewrite(t, only.get) if only else t
    try:
        return a.normal(new, ctx) if new is not t else p
    except Split:
        if depth == 0:
            raise
        return p


def _equal_to(s: Term, ctx: Context) -> Term | None:
    """The term that equals symbol s by one of the facts, over tensor elements and symbols that were made before s. None
    if no fact gives one."""
    for f in sorted(ctx.facts, key=lambda f: f.id):
        if f.op == "eq" and is_integer(f) and s in f.walk():
            found = linear_in(structural(f.args[0]) - structural(f.args[1]), s)
            k = found[0].constant if found else None
            if found and k in (1, -1):
                e = P.scaled(found[1], -k)
                if all(x.op == "read" or x.is_const or x.id < s.id for x in (T.TERMS[i] for i in e.atoms)):
                    return e.term
    return None


def linear_in(p: Poly, s: Term) -> tuple[Poly, Poly] | None:
    """(k, r) with p = k s + r, the atom s in neither."""
    k = {m: c for m, c in p.terms.items() if any(b == s.id for b, _ in m[0])}
    if any(dict(m[0])[s.id] != 1 for m in k):
        return None
    k_ = P.poly({(tuple(x for x in m[0] if x[0] != s.id), m[1]): c for m, c in k.items()})
    r = P.poly({m: c for m, c in p.terms.items() if m not in k})
    return None if any(s in T.TERMS[i].walk() for q in (k_, r) for i in q.atoms) else (k_, r)


def has_folds(p: Poly) -> bool:
    return any(T.TERMS[i].op in T.FOLDS for i in p.atoms)


def unified(a: Algebra, p: Poly, ctx: Context, depth: int) -> Poly:
    """p with one atom for all that are the same."""
    images: dict[int, Term] = {}
    groups: dict[tuple[object, ...], list[Term]] = {}
    for i in sorted(p.atoms):
        t = T.TERMS[i]
        groups.setdefault(_kind(t), []).append(t)
    for ts in groups.values():
        first: list[Term] = []
        for t in ts:
            found = next((f for f in first if same(a, f, t, ctx, depth + 1)), None)
            if found is None:
                first.append(t)
            else:
                images[t.id] = found
    p = renormal(a, P.substituted(p, images), ctx) if images else p
    return _exponents_unified(a, p, ctx, depth)


def _exponents_unified(a: Algebra, p: Poly, ctx: Context, depth: int) -> Poly:
    """p with one exponent for all with sums that are the same."""
    exponents = sorted({e for _, e in p.terms if _sums(POLYS[e])})
    images: dict[int, int] = {}
    for k, e in enumerate(exponents if depth <= DEEP else ()):
        for f in exponents[:k]:
            alike = f not in images and _fingerprint(POLYS[e]) == _fingerprint(POLYS[f])
            if alike and a.zero(POLYS[e] - POLYS[f], ctx, depth + 1):
                images[e] = f
                break
    return P.total((c, P.monomial((fs, images.get(e, e)))) for (fs, e), c in p.terms.items()) if images else p


def _sums(p: Poly) -> bool:
    return any(T.TERMS[i].op == "sum" for i in p.atoms)


def renormal(a: Algebra, p: Poly, ctx: Context) -> Poly:
    """Products of equal atoms combined again (indicators are idempotent)."""
    out = []
    for (factors, e), c in p.terms.items():
        q = P.product_with_exponential((), POLYS[e])
        for b, k in factors:
            q = a.product(q, atom(T.TERMS[b], 1 if k > 0 and T.TERMS[b].op in INDICATORS else k), ctx)
        out.append((c, q))
    return P.total(out)


def _kind(t: Term) -> tuple[object, ...]:
    if t.op in T.FOLDS or t.op == "max":
        return ("fold", "amax" if t.op == "max" else t.op, frozenset(T.reads(t)))
    return (t.op, t.attr, t.type, len(t.args) if t.op not in ("add", "mul") else frozenset(T.reads(t)))


def same(a: Algebra, s: Term, t: Term, ctx: Context, depth: int = 0) -> bool:
    """Whether two atoms are equal."""
    if s is t:
        return True
    if depth > DEEP or not s.args or not t.args:
        return False
    if s.op in ("amax", "max") and t.op in ("amax", "max"):
        return _same_maximum(a, s, t, ctx, depth)
    if s.op != t.op:
        return False
    if s.op == "sum":
        return _vanishes(a, [(1, open_fold(a, s, ctx, t.free)), (-1, open_fold(a, t, ctx, s.free))], ctx, depth)
    if s.op in T.FOLDS:
        fixed = s.op in ("argmax", "argmin")
        return _same_fold(a, open_fold(a, s, ctx, t.free), open_fold(a, t, ctx, s.free), ctx, depth, fixed)
    if s.type == T.INT and s.op not in ("read", "opaque"):
        return a.implied(ctx, T.make("eq", s, t))
    if s.op in ("add", "mul"):
        return a.zero(structural(s) - structural(t), ctx, depth + 1)
    if s.attr != t.attr or len(s.args) != len(t.args) or s.op == "opaque":
        return False
    return all(_same_argument(a, x, y, ctx, depth) for x, y in zip(s.args, t.args, strict=True))


def _same_argument(a: Algebra, x: Term, y: Term, ctx: Context, depth: int) -> bool:
    if x is y:
        return True
    if x.type == T.BOOL or y.type == T.BOOL:
        return x.type == y.type and a.implied(a.given(ctx, x), y) and a.implied(a.given(ctx, y), x)
    return a.zero(structural(x) - structural(y), ctx, depth + 1)


# ---- folds -----------------------------------------------------------------------------------------------------------


def aligned(
    a: Algebra, f: Fold, g: Fold, ctx: Context, depth: int, both: bool = False, fixed: bool = False
) -> Fold | None:
    """g with the variables of f so that the bodies are equal wherever g's guards (with `both`: and f's) hold. With
    `fixed` no variable is shifted: the value of the fold is one of its variable."""
    if len(g.variables) < len(f.variables):
        return _padded(a, f, g, ctx, depth, both)
    if len(f.variables) != len(g.variables):
        return None
    tries = [_renamed(g, f.variables, order) for order in permutations(g.variables)]
    for h in tries:
        if h.body is f.body:
            return h if fixed else _translated(a, f, h, ctx)
    if _fingerprint(f.body) != _fingerprint(g.body):
        return None
    if not fixed and (moved := _moved(a, f, g, ctx)) is not None:
        return moved
    for h in tries:
        here = a.given(ctx, *h.guards, *(f.guards if both else ()))
        if a.zero(f.body - h.body, here, depth + 1):
            return h
    return None


def _moved(a: Algebra, f: Fold, g: Fold, ctx: Context) -> Fold | None:
    """g with v - d for its variable v, where it then reads what f reads."""
    if len(f.variables) != 1:
        return None
    (v,), (g,) = f.variables, [_renamed(g, f.variables, g.variables)]
    for d in dict.fromkeys(_distances(f, g, v)):
        images = {v: (atom(T.axis(v)) - d).term}
        guards = [condition(a, T.substitute(x, images), ctx) for x in g.guards]
        flat = frozenset(y for x in guards for y in (x.args if x.op == "and" else (x,)) if y is not T.const(True))
        try:
            if a.normal(T.substitute(g.body.term, images), a.given(ctx, *flat)) is f.body:
                return Fold(f.variables, flat, f.body)
        except (Split, Undecided):
            continue
    return None


def _distances(f: Fold, g: Fold, v: Axis) -> Iterator[Poly]:
    """How far apart the elements are that two bodies read, in steps of the variable."""
    for s in _reads(f.body)[:2]:
        for t in _reads(g.body)[:4]:
            for x, y in zip(s.args, t.args, strict=True) if s.attr == t.attr else ():
                mine, theirs = linear(structural(x), v), linear(structural(y), v)
                if mine is None or theirs is None or mine[0] is ZERO or mine[0] is not theirs[0]:
                    continue
                d, left = divided(theirs[1] - mine[1], mine[0])
                if left is ZERO and d is not ZERO:
                    yield d


def _translated(a: Algebra, f: Fold, g: Fold, ctx: Context) -> Fold:
    """g where most of its upper bounds are those of f: sum[v: g(v)] 1 = sum[v: g(v - d)] 1."""
    if len(f.variables) != 1 or f.variables[0] in f.body.term.free or f.guards == g.guards:
        return g
    v = f.variables[0]
    (low, high, _), (low_, high_, _) = bounds(f, v), bounds(g, v)
    deltas = Counter(x - y for mine, theirs in ((low, low_), (high, high_)) for _, x in mine for _, y in theirs)
    if not deltas or deltas[ZERO] == max(deltas.values()):
        return g
    d = max(deltas, key=lambda d: (deltas[d], -d.id))
    guards = [condition(a, T.substitute(x, {v: (atom(T.axis(v)) - d).term}), ctx) for x in g.guards]
    flat = frozenset(y for x in guards for y in (x.args if x.op == "and" else (x,)) if y is not T.const(True))
    return Fold(g.variables, flat, g.body)


def _padded(a: Algebra, f: Fold, g: Fold, ctx: Context, depth: int, both: bool) -> Fold | None:
    """g with one more variable, which has one value: that of an axis in its guards."""
    extra = [v for v in f.variables if v not in f.body.term.free]
    if len(f.variables) != len(g.variables) + 1 or not extra or not g.variables:
        return None
    v = a.variable(ctx, f.variables, g.variables, *(x.free for x in (*f.guards, *g.guards, f.body.term, g.body.term)))
    axes = sorted({x for y in g.guards for x in y.free} - set(g.variables), key=lambda x: x.name)
    for x in axes:
        pin = integer_literal("eq", atom(T.axis(v)) - atom(T.axis(x)))
        h = aligned(a, f, Fold((*g.variables, v), g.guards | {pin}, g.body), ctx, depth, both, fixed=True)
        if h is not None and empty(a, a.given(ctx, *h.guards), [f.guards]):
            return h
    return None


def _fingerprint(p: Poly) -> frozenset[str]:
    return frozenset(n for i in p.atoms for n in map(str, T.reads(T.TERMS[i])))


def _renamed(g: Fold, variables: Sequence[Axis], order: Sequence[Axis]) -> Fold:
    images = {v: T.axis(w) for v, w in zip(order, variables, strict=True)}
    guards = frozenset(T.substitute(x, images) for x in g.guards)
    return Fold(tuple(variables), guards, structural(T.substitute(g.body.term, images)))


def _vanishes(a: Algebra, members: list[tuple[Number, Fold]], ctx: Context, depth: int) -> bool:
    """Whether sum_k c_k sum[j: g_k] f(j) is 0: at every j the c_k of the guards that hold add up to 0."""
    first = members[0][1]
    guards: dict[Facts, Number] = {first.guards: members[0][0]}
    for c, g in members[1:]:
        h = aligned(a, first, g, ctx, depth, both=len(members) == 2)
        if h is None:
            return False
        guards[h.guards] = guards.get(h.guards, 0) + c
    return cancels(a, {g: c for g, c in guards.items() if c}, ctx)


def cancels(a: Algebra, guards: dict[Facts, Number], ctx: Context) -> bool:
    """Whether the numbers of the guard sets that hold add up to 0 everywhere."""
    sets = list(guards)
    if len(sets) > 7:
        return False
    for k in range(1, len(sets) + 1):
        for chosen in combinations(sets, k):
            if P.vanishes(guards[g] for g in chosen):
                continue
            inside = a.given(ctx, *(x for g in chosen for x in g))
            if not empty(a, inside, [g for g in sets if g not in chosen]):
                return False
    return True


def empty(a: Algebra, inside: Context, outside: list[Facts]) -> bool:
    """Whether nothing meets `inside` and none of the guard sets `outside`."""
    if a.impossible(inside):
        return True
    for g in outside:
        missing = [x for x in g if not a.implied(inside, x)]
        if not missing:
            return True
    if not outside:
        return False
    nots = [
        T.make("or", *(T.make("not", x) for x in g)) if len(g) > 1 else T.make("not", next(iter(g))) for g in outside
    ]
    return a.impossible(a.given(inside, *nots))


def _same_fold(a: Algebra, f: Fold, g: Fold, ctx: Context, depth: int, fixed: bool) -> bool:
    h = aligned(a, f, g, ctx, depth, both=True, fixed=fixed)
    if h is None:
        return False
    here, there = a.given(ctx, *f.guards), a.given(ctx, *h.guards)
    return all(a.implied(here, x) for x in h.guards) and all(a.implied(there, x) for x in f.guards)


def _same_maximum(a: Algebra, s: Term, t: Term, ctx: Context, depth: int) -> bool:
    """Every element of one set is in the other."""
    left, right = elements(a, s, ctx, t.free), elements(a, t, ctx, s.free)
    return _covered(a, left, right, ctx, depth) and _covered(a, right, left, ctx, depth)


def _covered(a: Algebra, fs: list[Fold], gs: list[Fold], ctx: Context, depth: int) -> bool:
    for f in fs:
        inside = a.given(ctx, *f.guards)
        if a.impossible(inside):
            continue
        matching = [m for g in gs if (m := _where_equal(a, f, g, inside, depth)) is not None]
        if not matching or not (frozenset() in matching or empty(a, inside, matching)):
            return False
    return True


def _where_equal(a: Algebra, f: Fold, g: Fold, ctx: Context, depth: int) -> Facts | None:
    """Guards over the variables of f under which some element of g is the body of f."""
    if f.variables and not g.variables:
        values = matching(f, g.body)
        if values is None or not _is_element(a, f, values, g.body, ctx):
            return None
        return frozenset(integer_literal("eq", atom(T.axis(v)) - e) for v, e in values.items())
    if g.variables and not f.variables:
        values = matching(g, f.body)
        if values is None or not _is_element(a, g, values, f.body, ctx):
            return None
        images = {v: e.term for v, e in values.items()}
        guards = [condition(a, T.substitute(x, images), ctx) for x in g.guards]
        return frozenset(y for x in guards for y in (x.args if x.op == "and" else (x,)) if y is not T.const(True))
    h = aligned(a, f, g, ctx, depth, both=True)
    return None if h is None else h.guards


def _is_element(a: Algebra, f: Fold, values: dict[Axis, Poly], p: Poly, ctx: Context) -> bool:
    """Whether the body of f at these values is p."""
    try:
        return a.normal(T.substitute(f.body.term, {v: e.term for v, e in values.items()}), ctx) is p
    except (Split, Undecided):
        return False


# ---- denominators ----------------------------------------------------------------------------------------------------


def cleared(a: Algebra, p: Poly, ctx: Context) -> Poly:
    """p times its denominators."""
    for _ in range(8):
        least: dict[int, int] = {}
        for factors, _e in p.terms:
            for b, k in factors:
                if k <= -1:
                    least[b] = max(least.get(b, 0), int(-k // 1))
        if not least:
            return p
        b = max(least, key=lambda b: (size(b), b))
        p = multiplied(a, p, b, least[b], ctx)
        if p is ZERO:
            return p
    return p


def size(b: int) -> int:
    """Larger denominators first: they may contain the smaller ones."""
    return sum(1 for _ in T.TERMS[b].walk())


def multiplied(a: Algebra, p: Poly, b: int, k: int, ctx: Context) -> Poly:
    """p * b^k for an atom b that is not 0, written out where b is a sum."""
    t = T.TERMS[b]
    a.assume("nonzero", t, ctx)
    base = structural(t) if t.op in ("add", "mul") else atom(t)
    out: list[tuple[Number, Poly]] = []
    for (factors, e), c in p.terms.items():
        powers = dict(factors)
        left = powers.pop(b, 0) + k
        q = P.product_with_exponential(tuple(sorted(powers.items())), POLYS[e])
        whole = int(left // 1)
        for _ in range(whole):
            q = a.product(q, base, ctx)
        if left != whole:
            q = a.product(q, atom(t, left - whole), ctx)
        out.append((c, q))
    return P.total(out)


# ---- sums ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """The monomial c * cofactor * exp(exponent) * sum: the exponent is to move into the sum."""

    key: Monomial
    c: Number
    cofactor: Monomial
    sum: Term
    exponent: Poly = ZERO

    def opened(self, a: Algebra, ctx: Context, used: frozenset[Axis]) -> Fold:
        """The sum, with variables that nobody else has."""
        f = open_fold(a, self.sum, ctx, used)
        if self.exponent is ZERO:
            return f
        body = a.product(f.body, P.product_with_exponential((), self.exponent), a.given(ctx, *f.guards))
        return Fold(f.variables, f.guards, body)


def pointwise(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool:
    """Whether the monomials of p cancel in groups of sums with one cofactor and one body."""
    left = dict(p.terms)
    while left:
        groups: dict[Monomial, list[Part]] = {}
        for part in _parts(left):
            groups.setdefault(part.cofactor, []).append(part)
        done = next(filter(None, (_cancelling(a, g, left, ctx, depth) for g in _by_size(groups))), None)
        if not done:
            return False
        for key in done:
            del left[key]
    return True


def _by_size(groups: dict[Monomial, list[Part]]) -> list[list[Part]]:
    return sorted(groups.values(), key=len, reverse=True)


def _parts(terms: dict[Monomial, Number]) -> Iterator[Part]:
    for (factors, e), c in terms.items():
        for b, k in factors:
            if k == 1 and T.TERMS[b].op == "sum":
                others = tuple(x for x in factors if x[0] != b)
                yield Part((factors, e), c, (others, e), T.TERMS[b])
                if _sums(POLYS[e]):
                    yield Part((factors, e), c, (others, 0), T.TERMS[b], POLYS[e])


def _cancelling(
    a: Algebra, parts: list[Part], left: dict[Monomial, Number], ctx: Context, depth: int
) -> set[Monomial] | None:
    """Monomials among these that cancel, single elements cofactor * body(e) included."""
    used = frozenset[Axis]().union(*(P.as_term(k).free for k in left))
    folds = {(part.sum.id, part.exponent.id): part.opened(a, ctx, used) for part in parts}
    for lead in parts:
        f = folds[lead.sum.id, lead.exponent.id]
        guards: dict[Facts, Number] = {}
        keys: set[Monomial] = set()
        for part in parts:
            g = f if part is lead else aligned(a, f, folds[part.sum.id, part.exponent.id], ctx, depth)
            if g is not None and part.key not in keys:
                guards[g.guards] = guards.get(g.guards, 0) + part.c
                keys.add(part.key)
        for key, pin, c in _elements_of(a, f, lead.cofactor, left, keys, ctx):
            guards[pin] = guards.get(pin, 0) + c
            keys.add(key)
        guards = {g: c for g, c in guards.items() if c}
        if cancels(a, guards, ctx):
            return keys
        if lead.cofactor in left and lead.cofactor not in keys and f.body is ONE and len(f.variables) == 1:
            for x in sorted({x for k in left for x in P.as_term(k).free}, key=lambda x: x.name):
                pin = frozenset([integer_literal("eq", atom(T.axis(f.variables[0])) - atom(T.axis(x)))])
                if cancels(a, {**guards, pin: guards.get(pin, 0) + left[lead.cofactor]}, ctx):
                    return keys | {lead.cofactor}
    return None


def gathered(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool:
    """Whether m sum[g] f + m sum[g] h + .. = m sum[g] (f + h + ..) is 0 since f + h + .. is, for each cofactor m."""
    parts = list(_parts(p.terms))
    if depth > SHALLOW or len(parts) != len(p.terms) or {x.key for x in parts} != p.terms.keys():
        return False
    groups: dict[Monomial, list[Part]] = {}
    for part in parts:
        groups.setdefault(part.cofactor, []).append(part)
    return all(len(g) > 1 and _together(a, g, ctx, depth) for g in _by_size(groups))


def _together(a: Algebra, parts: list[Part], ctx: Context, depth: int) -> bool:
    """Whether the bodies of sums over the same values add up to 0."""
    used = frozenset[Axis]().union(*(P.as_term(part.key).free for part in parts))
    first, *others = (open_fold(a, part.sum, ctx, used) for part in parts)
    bodies = [(parts[0].c, first.body)]
    for part, g in zip(parts[1:], others, strict=True):
        if len(g.variables) != len(first.variables):
            return False
        tries = (_renamed(g, first.variables, order) for order in permutations(g.variables))
        h = next((h for h in tries if h.guards == first.guards), None)
        if h is None:
            return False
        bodies.append((part.c, h.body))
    return a.zero(P.total(bodies), a.given(ctx, *first.guards), depth + 1)


def _elements_of(
    a: Algebra, f: Fold, cofactor: Monomial, left: dict[Monomial, Number], taken: set[Monomial], ctx: Context
) -> Iterator[tuple[Monomial, Facts, Number]]:
    """Monomials c * cofactor * body(e) for some values e of the variables."""
    if len(f.body.terms) != 1:
        return
    for key, c in left.items():
        if key in taken:
            continue
        with a.collecting() as side_conditions:
            rest = _quotient(a, key, cofactor, ctx)
            values = matching(f, rest)
        if values is None:
            continue
        a.pending[-1].update(side_conditions)
        image = structural(T.substitute(f.body.term, {v: e.term for v, e in values.items()}))
        try:
            image = a.normal(image.term, ctx)
        except (Split, Undecided):
            continue
        if len(image.terms) == 1 and _same_monomial(a, next(iter(image.terms)), next(iter(rest.terms)), ctx):
            pins = frozenset(integer_literal("eq", atom(T.axis(v)) - e) for v, e in values.items())
            yield key, pins, P.quotient(c, next(iter(image.terms.values())))


def _quotient(a: Algebra, m: Monomial, cofactor: Monomial, ctx: Context) -> Poly:
    """r with m = cofactor r. Where powers only go down, no factor is divided by."""
    powers = dict(m[0])
    exact = all(0 < k <= powers.get(b, 0) or 0 > k >= powers.get(b, 0) for b, k in cofactor[0])
    exponential = P.product_with_exponential((), POLYS[m[1]] - POLYS[cofactor[1]])
    if exact:
        left = powers | {b: powers[b] - k for b, k in cofactor[0]}
        return a.product(exponential, P.monomial((tuple(sorted((b, k) for b, k in left.items() if k)), 0)), ctx)
    out = a.product(exponential, P.monomial((m[0], 0)), ctx)
    for b, k in cofactor[0]:
        out = a.product(out, atom(T.TERMS[b], -k), ctx)
    return out


def _same_monomial(a: Algebra, m: Monomial, n: Monomial, ctx: Context) -> bool:
    """Whether they are one, or have exponents that are the same for what is known of sums in them."""
    if m == n or m[0] != n[0]:
        return m == n
    e = POLYS[m[1]] - POLYS[n[1]]
    return _sums(e) and a.zero(e, ctx, DEEP - 2)


def matching(f: Fold, rest: Poly) -> dict[Axis, Poly] | None:
    """Values of the variables for which the body reads what `rest` reads."""
    values: dict[Axis, Poly] = {}
    reads = _reads(rest)
    for t in _reads(f.body):
        for r in reads:
            if r.attr != t.attr:
                continue
            for x, y in zip(t.args, r.args, strict=True):
                for v in f.variables:
                    kr = linear(structural(x), v)
                    if v in values or kr is None or kr[0] is ZERO or kr[1].term.free & set(f.variables):
                        continue
                    e, left = divided(structural(y) - kr[1], kr[0])
                    if left is ZERO and not any(x.name[0] == "%" for x in e.term.free):
                        values[v] = e
    return values if len(values) == len(f.variables) else None


def related(a: Algebra, p: Poly, ctx: Context, depth: int) -> Poly:
    """p with sum[U] f + sum[V] f in place of a sum[W] f that is shown to be that."""
    used = frozenset[Axis]().union(*(P.as_term(k).free for k in p.terms))
    sums = [T.TERMS[i] for i in sorted({b for fs, _ in p.terms for b, k in fs if k >= 1}) if T.TERMS[i].op == "sum"]
    folds = {t: open_fold(a, t, ctx, used) for t in sums}
    for whole in sums if len(sums) <= 8 else ():
        f = folds[whole]
        parts = [(t, h) for t in sums if t is not whole and (h := aligned(a, f, folds[t], ctx, depth)) is not None]
        for (s, g), (t, h) in combinations(parts, 2):
            if g.guards != h.guards and cancels(a, {f.guards: 1, g.guards: -1, h.guards: -1}, ctx):
                return _expanded(a, p, whole.id, atom(s) + atom(t), ctx)
        for pin, value in _end_elements(a, f, ctx):
            if cancels(a, {f.guards: 1, pin: -1}, ctx):
                return _expanded(a, p, whole.id, value, ctx)
            for s, g in parts:
                if cancels(a, {f.guards: 1, g.guards: -1, pin: -1}, ctx):
                    return _expanded(a, p, whole.id, atom(s) + value, ctx)
    return p


def _end_elements(a: Algebra, f: Fold, ctx: Context) -> Iterator[tuple[Facts, Poly]]:
    """The elements at the bounds of a variable, summed over the other variables."""
    for v in f.variables:
        low, high, _ = bounds(f, v)
        for _, end in (*high, *low):
            if end.term.free & set(f.variables):
                continue
            pinned = f.guards | {integer_literal("eq", atom(T.axis(v)) - end)}
            try:
                yield pinned, sum_over(a, Fold(f.variables, pinned, f.body), ctx)
            except (Split, Undecided):
                continue


def _expanded(a: Algebra, p: Poly, b: int, value: Poly, ctx: Context) -> Poly:
    """p with a polynomial for an atom."""
    out: list[tuple[Number, Poly]] = []
    for (factors, e), c in p.terms.items():
        power = next((k for x, k in factors if x == b), 0)
        if not isinstance(power, int) or power < 0:
            return p
        q = P.product_with_exponential(tuple(x for x in factors if x[0] != b), POLYS[e])
        for _ in range(power):
            q = a.product(q, value, ctx)
        out.append((c, q))
    return P.total(out)


def _reads(p: Poly) -> list[Term]:
    """The elements that p reads; if none, those that its folds read."""
    found = [T.TERMS[i] for i in sorted(p.atoms) if T.TERMS[i].op == "read"]
    return found or [s for i in sorted(p.atoms) for s in T.TERMS[i].walk() if s.op == "read"]


# ---- real conditions -------------------------------------------------------------------------------------------------


_TRUTHS: dict[str, Callable[[Term], Term]] = {
    "positive?": lambda q: T.make("lt", 0, q),
    "zero?": lambda q: T.make("eq", q, 0),
    "holds?": lambda c: c,
}


def by_signs(a: Algebra, p: Poly, ctx: Context, depth: int) -> bool:
    """Whether p is 0 for each truth value of one of its indicators."""
    found = _indicator(p)
    if found is None or depth > 4:
        return False
    literal = _TRUTHS[found.op](found.args[0])
    if is_integer(literal):
        return False
    for answer in (True, False):
        here = a.given(ctx, literal if answer else T.make("not", literal))
        values = {found: T.const(int(answer))}
        if answer and found.op != "holds?":  # not both q > 0 and q = 0
            other = "zero?" if found.op == "positive?" else "positive?"
            values[T.node(other, found.args, None, T.REAL)] = T.const(0)
        try:
            q = with_values(a, p, values, here)
            q = a.normal(q.term, here) if _has_root(q) else q  # which may be one of a square
            if answer and found.op == "zero?":
                q = _where_zero(a, q, found.args[0], here)
            if not a.zero(q, here, depth + 1):
                return False
        except (Split, Undecided):
            return False
    return True


def _has_root(p: Poly) -> bool:
    """Whether a root or a logarithm is among the factors of p."""
    factors = [(T.TERMS[b], k) for factors, _ in p.terms for b, k in factors]
    return any(not isinstance(k, int) or t.op == "log" for t, k in factors)


def _where_zero(a: Algebra, p: Poly, t: Term, ctx: Context) -> Poly:
    """p where a product is 0: other products of all its factors are 0."""
    factors = Counter(s for s in (t.args if t.op == "mul" else (t,)) if not s.is_const)
    if t.op == "add":
        return p

    def one(s: Term) -> Term | None:
        return T.const(0) if factors <= Counter(s.args if s.op == "mul" else (s,)) else None

    new = T.rewrite(p.term, one)
    return a.normal(new, ctx) if new is not p.term else p


def _indicator(p: Poly) -> Term | None:
    """An indicator of p, else one within its atoms, that is about no bound variable."""
    own = next((T.TERMS[i] for i in sorted(p.atoms) if T.TERMS[i].op in _TRUTHS), None)
    if own is not None:
        return own
    inner = (s for s in p.term.walk() if s.op in _TRUTHS and s.free <= p.term.free)
    return min(inner, key=lambda s: s.id, default=None)


def with_values(a: Algebra, p: Poly, values: dict[Term, Term], ctx: Context) -> Poly:
    """p with numbers for indicators."""
    ids = {t.id: v.attr for t, v in values.items()}
    out: dict[Monomial, Number] = {}
    for (factors, e), c in p.terms.items():
        if any(ids.get(b) == 0 for b, _ in factors):
            continue
        key = (tuple(x for x in factors if x[0] not in ids), e)
        out[key] = out.get(key, 0) + c
    q = P.total([(1, P.poly({m: c for m, c in out.items() if c}))])
    return a.normal(T.rewrite(q.term, values.get), ctx) if any(s in values for s in q.term.walk()) else q

"""The values of terms as polynomials, and whether two are equal under facts.

Choices are decided, or the case is split. Sums are linear and their variables start where they read; sums over one body
cancel if, at every value of the variable, the coefficients of those that include it add up to 0. Maxima are sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise, permutations
from typing import Protocol, TypeVar

from .decisions import Context, Reasoner, atoms_within, linear_in
from .identities import DEFINITIONS, Expression, defined
from .polynomials import (
    ATOMS,
    FALSE,
    FOLDS,
    INF,
    NINF,
    ONE,
    POLYS,
    SINGLE,
    TRUE,
    UNIT,
    ZERO,
    Atom,
    AxisKey,
    Data,
    Family,
    Formula,
    Mono,
    Node,
    NotChecked,
    Number,
    Poly,
    Split,
    Value,
    add,
    atom,
    compared,
    conj,
    disj,
    eq,
    exponential,
    fold_atom,
    inverse,
    le,
    literals,
    lt,
    minus,
    monomials,
    mul,
    negated,
    number,
    of,
    poly,
    polys,
    power_of,
    put,
    put_formula,
    root,
    scaled,
    variable,
    variables,
    variables_of,
    within,
)

CASES = 14  # nested case distinctions of one obligation
CHOICES = 3  # in one condition
DEPTH = 6  # nested questions whether two numbers are equal
POWERS = 4  # of denominators that are multiplied out
FEW_VALUES = 8  # values of a variable, over which a sum is written as its terms
GROUP = 12  # sums over one body that are looked at together
PAIRS = 64  # atoms of one kind that a new one is compared with


# ---- numbers ---------------------------------------------------------------------------------------------------------

T = TypeVar("T")


class Worldly(Protocol):
    """The meaning of loads and loop variables."""

    number: int

    def load(self, t: Node, env: Env, ctx: Context) -> Value:
        """The number that a term reads."""

    def address(self, name: str, o: Poly) -> Poly:
        """An address in bytes."""


Need = tuple[str, Poly]  # "nonzero", "nonneg", "positive": what an operation needs to be defined
Env = Mapping[AxisKey, Poly]


class Algebra(Reasoner):
    """The values of terms as polynomials, and whether two are equal. `needs`: what operations met so far need."""

    def __init__(self) -> None:
        super().__init__()
        self.needs: dict[Need, None] = {}
        self.memo: dict[tuple[object, ...], tuple[Value, tuple[Need, ...]]] = {}
        self.registry: dict[tuple[object, ...], list[Atom]] = {}
        self.same: dict[tuple[int, int, int], bool] = {}
        self.world: Worldly | None = None  # what loads and loop variables are
        self.depth = 0
        self.fixed: dict[str, Poly] = {}  # sizes that can only be one number

    # ---- evaluation

    def value(self, t: Node, env: Env, ctx: Context) -> Value:
        """A number: a polynomial, INF or NINF. Raises Split, NotChecked."""
        world = 0 if self.world is None else self.world.number
        key = (t.id, world, ctx.id, *((k, env[k].id) for k in sorted(t.free) if k in env))
        if key not in self.memo:
            before, self.needs = self.needs, {}
            try:
                found = self._value(t, env, ctx)
                self.memo[key] = found, tuple(self.needs)
            finally:
                self.needs = {**before, **self.needs}
        found, needs = self.memo[key]
        self.needs.update(dict.fromkeys(needs))
        return found

    def finite(self, t: Node, env: Env, ctx: Context) -> Poly:
        """A number that is not infinite."""
        p = self.value(t, env, ctx)
        if not isinstance(p, Poly):
            raise NotChecked("an infinite number is calculated with")
        return p

    def _value(self, t: Node, env: Env, ctx: Context) -> Value:
        match t.op:
            case "const":
                return self._constant(t.attr)
            case "size" | "scalar":
                return (
                    env[t.attr, -1] if (t.attr, -1) in env else self.fixed.get(t.attr, of(atom("sym", t.sort, t.attr)))
                )
            case "axis":
                return env[t.axis] if t.axis in env else of(atom("sym", "int", *t.axis))
            case "where":
                return self.value(t.args[1 if self.known(t.args[0], env, ctx) else 2], env, ctx)
            case "undef":
                raise NotChecked(f"an undefined value is used: {t.attr}")
            case "read" | "element" | "carry":
                return self._loaded(t, env, ctx)
            case "address":
                return self._address(t, env, ctx)
        if t.sort == "bool":
            return ONE if self.known(t, env, ctx) else ZERO
        if t.op in FOLDS:
            return self._fold(t, env, ctx)
        if t.op in ("max", "min") and t.sort == "real":
            return self._extreme(t, env, ctx)
        values = [self.value(a, env, ctx) for a in t.args]
        xs = [x for x in values if isinstance(x, Poly)]
        if len(xs) < len(values):
            return self._infinite(t.op, values)
        rule = RULES.get(t.op)
        return rule(self, ctx, *xs) if rule else self._opaque(t, xs, ctx)

    def _address(self, t: Node, env: Env, ctx: Context) -> Poly:
        if self.world is None:
            raise NotChecked("an address outside a launch")
        return self.world.address(t.attr, self.finite(t.args[0], env, ctx))

    def _loaded(self, t: Node, env: Env, ctx: Context) -> Value:
        if self.world is None:
            raise NotChecked(f"{t.op} outside a launch")
        return self.world.load(t, env, ctx)

    def _constant(self, c: Data) -> Value:
        if isinstance(c, float) and not math.isfinite(c):
            if math.isnan(c):
                raise NotChecked("NaN as a constant")
            return INF if c > 0 else NINF
        return number(int(c) if isinstance(c, bool) else c)

    def _infinite(self, op: str, xs: Sequence[Value]) -> Value:
        """-inf + x = -inf, exp(-inf) = 0, -(-inf) = inf; nothing else is known of infinite numbers."""
        kinds = {x for x in xs if not isinstance(x, Poly)}
        if len(kinds) == 1:
            (x,) = kinds
            if op == "add":
                return x
            if op in ("exp", "exp2") and x is NINF:
                return ZERO
            others = [c for y in xs if isinstance(y, Poly) and (c := y.constant)]  # neither unknown nor 0
            if op == "mul" and len(others) == len(xs) - 1:
                return x if math.prod(others) > 0 else INF if x is NINF else NINF
        raise NotChecked("an infinite number is calculated with")

    def _opaque(self, t: Node, xs: Sequence[Poly], ctx: Context) -> Poly:
        """A function of which only this is known: equal arguments give equal values."""
        a = atom("app", t.sort, t.op if t.attr is None else f"{t.op}.{t.attr}", tuple(xs), variables=variables_of(xs))
        p = of(self.unified(a, ctx))
        if t.sort == "real" and t.op not in TOTAL:
            self.needs["defined", p] = None
        return p

    def need(self, kind: str, p: Poly) -> None:
        """Note what an operation needs."""
        c = p.constant
        if c is None or not {"nonzero": c != 0, "nonneg": c >= 0, "positive": c > 0}[kind]:
            self.needs[kind, p] = None

    # ---- conditions

    def known(self, t: Node, env: Env, ctx: Context) -> bool:
        """Whether a condition holds. Raises Split where the facts do not say."""
        f = self.condition(t, env, ctx)
        answer = self.decided(ctx, f)
        if answer is None:
            raise Split(next(x for x in literals(f) if self.decided(ctx, x) is None))
        return answer

    def condition(self, t: Node, env: Env, ctx: Context) -> Formula:
        """A boolean term."""
        match t.op:
            case "const":
                return TRUE if t.attr else FALSE
            case "and":
                return self._conjunction(t.args, env, ctx)
            case "or":
                return negated(self._conjunction(t.args, env, ctx, opposite=True))
            case "not":
                return negated(self.condition(t.args[0], env, ctx))
            case "where":
                return self.condition(t.args[1 if self.known(t.args[0], env, ctx) else 2], env, ctx)
            case "le" | "lt" | "eq" | "ne":
                return self._comparison(t, env, ctx)
            case "read" | "element":
                return negated(eq(self.value_of_flag(t, env, ctx)))
        p = self._opaque(t, [self.finite(a, env, ctx) for a in t.args], ctx)
        return negated(eq(p))

    def fact(self, t: Node, env: Env, ctx: Context, depth: int = 0) -> Formula:
        """A condition, whatever the facts say of choices in it: (c and f where c) or (not c and f where not c)."""
        try:
            return self.condition(t, env, ctx)
        except Split as split:
            if depth >= CHOICES:
                raise
            literal = split.literal
        cases = ((f, self.given(ctx, f)) for f in (literal, negated(literal)))
        return disj(*(conj(f, self.fact(t, env, here, depth + 1)) for f, here in cases))

    def value_of_flag(self, t: Node, env: Env, ctx: Context) -> Poly:
        """The number in the memory of a boolean tensor."""
        p = self._loaded(t, env, ctx)
        if not isinstance(p, Poly):
            raise NotChecked("an infinite number is compared")
        return p

    def _conjunction(self, ts: Sequence[Node], env: Env, ctx: Context, opposite: bool = False) -> Formula:
        """Each condition is only looked at where those before it hold: a false one hides the others."""
        out: list[Formula] = []
        for t in ts:
            f = self.condition(t, env, ctx)
            f = negated(f) if opposite else f
            if f == FALSE:
                return FALSE
            out.append(f)
        return conj(*out)

    def _comparison(self, t: Node, env: Env, ctx: Context) -> Formula:
        if any(a.sort == "bool" for a in t.args):
            f, g = (self.condition(a, env, ctx) for a in t.args)
            same = disj(conj(f, g), conj(negated(f), negated(g)))
            return same if t.op == "eq" else negated(same)
        before, self.needs = self.needs, {}
        try:
            x, y = (self.value(a, env, ctx) for a in t.args)
            owed = dict(self.needs)
        finally:
            self.needs = before
        for kind, p in owed:
            if not self.met(kind, p, ctx):
                raise NotChecked(f"an operand of a comparison may be undefined ({kind})")
        if isinstance(x, Poly) and isinstance(y, Poly):
            return compared(t.op, minus(x, y))
        if x is y:
            return TRUE if t.op in ("le", "eq") else FALSE
        less = x is NINF or y is INF
        return {"le": TRUE if less else FALSE, "lt": TRUE if less else FALSE, "eq": FALSE, "ne": TRUE}[t.op]

    # ---- quotients of integers

    def quotient(self, p: Poly, d: Poly, ctx: Context) -> Poly:
        """p // d: multiples of d apart, 0 <= r < d gives 0; one division for two."""
        if d is ONE:
            return p
        if d is ZERO:
            raise NotChecked("a division by 0")
        whole, rest = _divided(p, d)
        if rest is ZERO:
            return whole
        for k in (0, -1, 1):
            r = minus(rest, scaled(d, k)) if k else rest
            if self.implied(ctx, within(r, d)):
                return add(whole, number(k))
        inner = self._inner_quotient(rest)
        if inner is not None and self.implied(ctx, conj(lt(scaled(d, -1)), lt(scaled(inner[1], -1)))):
            rest, d = inner[0], mul(inner[1], d)
        p = of(self.unified(atom("app", "int", "floordiv", (rest, d), variables=variables_of((rest, d))), ctx))
        return add(whole, p)

    def _inner_quotient(self, p: Poly) -> tuple[Poly, Poly] | None:
        """(x, b) of p = x // b."""
        if len(p.terms) != 1:
            return None
        ((factors, e), c) = next(iter(p.terms.items()))
        if c != 1 or e or len(factors) != 1 or factors[0][1] != 1:
            return None
        a = ATOMS[factors[0][0]]
        return (a.data[1][0], a.data[1][1]) if a.kind == "app" and a.data[0] == "floordiv" else None

    def toward_zero(self, p: Poly, d: Poly, ctx: Context) -> Poly:
        """p / d rounded to zero, of numbers whose signs are known."""
        for s in (1, -1):
            for r in (1, -1):
                x, y = scaled(p, s), scaled(d, r)
                if self.implied(ctx, le(scaled(x, -1))) and self.implied(ctx, lt(scaled(y, -1))):
                    return scaled(self.quotient(x, y, ctx), s * r)
        for q in (p, d):
            f = le(scaled(q, -1)) if q is p else lt(scaled(q, -1))
            if self.decided(ctx, f) is None:
                raise Split(f)
        raise NotChecked("a quotient by a number that may be 0")

    # ---- sums and maxima

    def _fold(self, t: Node, env: Env, ctx: Context) -> Value:
        v = variable()
        guards = TRUE
        if not (t.attr[1].op == "size" and t.attr[1].attr == "*"):
            n = self.finite(t.attr[1], env, ctx)
            guards = within(of(v), n)
        inner = {**env, t.axis: of(v)}
        families = list(self.by_cases(lambda here: self.value(t.args[0], inner, here), ctx, (v.id,), guards))
        self._discharge(v.id, families, ctx)
        match t.op:
            case "sum":
                return add(ZERO, *(self.sum((v.id,), g, self._number(b), ctx) for g, b in families))
            case "amax":
                low = [((v.id,), g, self._number(b)) for g, b in families if b is not NINF]
                return self._monotonous(low, ctx) or self.maximum(low, ctx)
            case "amin":
                flipped = [((v.id,), g, scaled(self._number(b), -1)) for g, b in families if b is not INF]
                return _opposite(self.maximum(flipped, ctx))
        if t.op.startswith("arg"):
            return self._argument(v.id, families, 1 if t.op == "argmax" else -1, ctx)
        low = [((v.id,), g, self._number(b)) for g, b in families]
        return of(self.unified(fold_atom("prod", t.op, low, t.sort), ctx))

    def _argument(self, v: int, families: Sequence[tuple[Formula, Value]], sign: int, ctx: Context) -> Value:
        """The first index of the maximum of sign * body; its variable starts where the body reads."""
        never = NINF if sign == 1 else INF
        low = [((v,), g, scaled(self._number(b), sign)) for g, b in families if b is not never]
        if len(low) == 1:
            e = self._sole(v, low[0][1])
            if e is not None and self.implied(ctx, put_formula(low[0][1], {v: e})):
                return e  # the only index
        c = (_offset(v, low[0][2], {v}) if low else None) or ZERO
        start = {v: minus(of(ATOMS[v]), c)}
        moved = [(vs, put_formula(g, start), put(b, start)) for vs, g, b in low]
        return minus(of(self.unified(fold_atom("arg", "argmax", moved, "int"), ctx)), c)

    def _discharge(self, v: int, families: Sequence[tuple[Formula, Value]], ctx: Context) -> None:
        """Needs of the body that are met wherever one of its conditions holds are no longer needs."""
        for kind, p in list(self.needs):
            if v in p.vars and all(self.met(kind, p, self.given(ctx, g)) for g, _ in families):
                del self.needs[kind, p]

    def _number(self, p: Value) -> Poly:
        if not isinstance(p, Poly):
            raise NotChecked("an infinite number in a sum")
        return p

    def by_cases(
        self, body: Callable[[Context], T], ctx: Context, bound: Sequence[int], guards: Formula, depth: int = 0
    ) -> Iterator[tuple[Formula, T]]:
        """A value under each answer to a question about bound variables."""
        here = self.given(ctx, guards)
        if guards == FALSE or self.impossible(here):
            return
        before = self.needs
        try:
            found = body(here)
        except Split as split:
            self.needs = before
            if not variables(split.literal) & set(bound):
                raise
            if depth >= CASES:
                raise NotChecked("too many cases in a sum") from None
            for f in (split.literal, negated(split.literal)):
                yield from self.by_cases(body, ctx, bound, conj(guards, f), depth + 1)
            return
        yield guards, found

    def sum(self, bound: tuple[int, ...], guards: Formula, p: Poly, ctx: Context) -> Poly:
        """The sum of p over the variables where the guards hold: linear in p, what is free of them outside."""
        out = []
        for (factors, e), c in p.terms.items():
            inner = [(a, k) for a, k in factors if ATOMS[a].vars & set(bound)]
            outer = [(a, k) for a, k in factors if not ATOMS[a].vars & set(bound)]
            exponents = monomials(POLYS[e])
            moving = add(ZERO, *(m for m in exponents if m.vars & set(bound)))
            fixed = minus(POLYS[e], moving)
            body = poly({(tuple(inner), moving.id): Fraction(1)})
            cofactor = poly({(tuple(outer), fixed.id): c})
            out.append(mul(cofactor, self._sum_of_one(bound, guards, body, ctx)))
        return add(ZERO, *out)

    def _sum_of_one(self, bound: tuple[int, ...], guards: Formula, body: Poly, ctx: Context) -> Poly:
        if body is ONE and len(bound) == 1 and (n := self._count(bound[0], guards, ctx)) is not None:
            return n
        ((factors, e), _) = next(iter(body.terms.items()))
        for a, k in factors:
            if ATOMS[a].kind == "sum" and k == 1:
                ((vs, g, b),) = ATOMS[a].data[1]
                names = {v: of(variable()) for v in vs}
                rest = poly({(tuple(x for x in factors if x[0] != a), e): Fraction(1)})
                fresh = tuple(next(iter(q.vars)) for q in names.values())
                product = mul(rest, put(b, names))
                return self.sum((*bound, *fresh), conj(guards, put_formula(g, names)), product, ctx)
        for v in bound:
            if (only := self._sole(v, guards)) is not None:
                others = tuple(w for w in bound if w != v)
                inner, held = put(body, {v: only}), put_formula(guards, {v: only})
                answer = self.decided(ctx, held) if not others else True
                if answer is None:
                    continue
                return self.sum(others, held, inner, ctx) if others else inner if answer else ZERO
        family = self.shifted((bound, guards, body), ctx)
        vs, g, b = family
        if b is ONE and len(vs) == 1 and (n := self._count(vs[0], g, ctx)) is not None:
            return n
        if self.impossible(self.given(ctx, g)):
            return ZERO
        for v in vs if len(vs) > 1 else ():
            if v not in b.vars and (values := self._few(v, g)) is not None:
                others = tuple(w for w in vs if w != v)
                return add(ZERO, *(self.sum(others, put_formula(g, {v: k}), b, ctx) for k in values))
        return of(self.unified(fold_atom("sum", "sum", [family], "real"), ctx))

    def _few(self, v: int, guards: Formula) -> list[Poly] | None:
        """The values between constant bounds of a variable, where they are few."""
        here = self.context(guards[1:] if guards[0] == "and" else (guards,))
        low, high = ([c for e in self.ends(v, here, lower=s) if (c := e.constant) is not None] for s in (True, False))
        if not low or not high or min(high) - max(low) >= FEW_VALUES:
            return None
        return [number(k) for k in range(int(max(low)), int(min(high)) + 1)]

    def _sole(self, v: int, guards: Formula) -> Poly | None:
        """The only value of a variable."""
        here = self.context(guards[1:] if guards[0] == "and" else (guards,))
        low, high = self.ends(v, here, lower=True), self.ends(v, here, lower=False)
        return next((e for e in low if e in high and v not in e.vars), None)

    def _count(self, v: int, guards: Formula, ctx: Context) -> Poly | None:
        """The number of integers between two bounds that are in order."""
        parts = list(guards[1:] if guards[0] == "and" else (guards,))
        for f in list(parts):
            others = [x for x in parts if x != f]
            if len(parts) > 2 and self.implied(self.given(ctx, *others), f):
                parts = others
        here = self.context(parts)
        if any(v not in variables(f) for f in here.facts):
            return None
        low, high = self.ends(v, here, lower=True), self.ends(v, here, lower=False)
        if len(here.facts) != 2 or len(low) != 1 or len(high) != 1:
            return None
        n = add(minus(high[0], low[0]), ONE)
        return n if self.implied(ctx, le(scaled(n, -1))) else None

    def shifted(self, family: Family, ctx: Context) -> Family:
        """The family with variables that start where what it reads does, and one for two that only occur together."""
        bound, guards, body = family
        for _ in range(len(bound)):
            found = self._joined(bound, guards, body, ctx)
            if found is None:
                break
            bound, guards, body = found
        for v in bound:
            if _backwards(v, body):
                image = {v: scaled(of(ATOMS[v]), -1)}
                guards, body = put_formula(guards, image), put(body, image)
            c = _offset(v, body, set(bound))
            if c is not None and c is not ZERO:
                image = {v: minus(of(ATOMS[v]), c)}
                guards, body = put_formula(guards, image), put(body, image)
        return bound, guards, body

    def _joined(self, bound: tuple[int, ...], guards: Formula, body: Poly, ctx: Context) -> Family | None:
        """c t + l for 0 <= l < c, where the body only speaks of that, as one variable."""
        for v in bound:
            for w in bound:
                if v == w:
                    continue
                c = _ratio(body, guards, v, w)
                if c is None or not self.implied(self.given(ctx, guards), within(of(ATOMS[w]), c)):
                    continue
                j = variable()
                low = {w: minus(of(j), mul(c, of(ATOMS[v])))}
                image = put(body, low)
                if image.vars & {v, w}:
                    continue
                t = of(atom("app", "int", "floordiv", (of(j), c), variables=of(j).vars | c.vars))
                rest = put_formula(guards, {v: t, w: minus(of(j), mul(c, t))})
                return (*(x for x in bound if x not in (v, w)), j.id), self._simpler(rest, t, of(j), ctx), image
        return self._determined(bound, guards, body, ctx)

    def _determined(self, bound: tuple[int, ...], guards: Formula, body: Poly, ctx: Context) -> Family | None:
        """The family without a variable of which the body does not speak and that the others determine."""
        here = self.given(ctx, guards)
        for v in bound:
            for p in polys(guards) if v not in body.vars and len(bound) > 1 else ():
                slope, rest = linear_in(p, v)
                c = None if slope is None else slope.constant
                if c is None or c <= 1:
                    continue
                t = self.quotient(scaled(rest, -1), number(c), here)
                others = [w for w in bound if w in t.vars and w != v]
                if v not in t.vars and len(others) == 1 and self.implied(here, eq(minus(of(ATOMS[v]), t))):
                    left = self._simpler(put_formula(guards, {v: t}), t, of(ATOMS[others[0]]), ctx)
                    return tuple(w for w in bound if w != v), left, body
        return None

    def _simpler(self, guards: Formula, t: Poly, j: Poly, ctx: Context) -> Formula:
        """The guards without the quotient t of the variable j, where 0 <= j and the others say as much."""
        parts = guards[1:] if guards[0] == "and" else (guards,)
        plain = [x for x in parts if not {a for p in polys(x) for a in p.atoms()} & t.atoms()]
        simple = conj(le(scaled(j, -1)), *plain)
        same = self.implied(self.given(ctx, guards), simple) and self.implied(self.given(ctx, simple), guards)
        return simple if same else guards

    def maximum(self, families: Sequence[tuple[tuple[int, ...], Formula, Value]], ctx: Context) -> Value:
        """The maximum of all elements, -inf of none. Raises Split or NotChecked where there may be none."""
        parts: list[Family] = []
        for vs, g, b in families:
            body = self._number(b)
            inner = _sole_maximum(body)
            if inner is None:
                e = self._sole(vs[0], g) if len(vs) == 1 else None
                if e is not None and self.implied(ctx, put_formula(g, {vs[0]: e})):
                    parts.append(((), TRUE, put(body, {vs[0]: e})))
                else:
                    parts.append(self.shifted((vs, g, body), ctx) if vs else (vs, g, body))
                continue
            for ws, h, c in inner.data[1]:
                names = {w: of(variable()) for w in ws}
                fresh = tuple(next(iter(q.vars)) for q in names.values())
                parts.append(self.shifted(((*vs, *fresh), conj(g, put_formula(h, names)), put(c, names)), ctx))
        parts = [f for f in parts if not self.impossible(self.given(ctx, f[1]))]
        if not parts:
            return NINF
        if not any(self.inhabited(f, ctx) for f in parts):
            self._ask_for_element(parts, ctx)
        kept = [f for k, f in enumerate(parts) if not any(self._below(f, g, ctx) for g in parts[:k] + parts[k + 1 :])]
        if len(kept) == 1 and not kept[0][0]:
            return kept[0][2]
        a = fold_atom("max", "max", sorted(kept or parts, key=lambda f: f[2].id), "real")
        return of(self.unified(a, ctx))

    def _monotonous(self, families: Sequence[Family], ctx: Context) -> Poly | None:
        """max(c exp(x)) = c exp(max(x)) of a positive c that is one for all elements; None of others."""
        if any(len(b.terms) != 1 for _, _, b in families):
            return None
        monos = [next(iter(b.terms.items())) for _, _, b in families]
        cofactors = {poly({(m[0], 0): c}) for m, c in monos}
        if len(cofactors) != 1 or not all(m[1] for m, _ in monos):
            return None
        (c,) = cofactors
        if c.vars & {v for vs, _, _ in families for v in vs} or self.sign(c, ctx) != "positive":
            return None
        top = self.maximum([(vs, g, POLYS[m[1]]) for (vs, g, _), (m, _) in zip(families, monos, strict=True)], ctx)
        return mul(c, exponential(self._number(top)))

    def _ask_for_element(self, parts: Sequence[Family], ctx: Context) -> None:
        """Raises Split for the condition that an element at the bounds is there."""
        for vs, g, _ in parts:
            if len(vs) != 1:
                continue
            for e in self._all_ends(vs[0], [g]):
                for f in literals(put_formula(g, {vs[0]: e})):
                    if self.decided(ctx, f) is None:
                        raise Split(f)
        raise NotChecked("a maximum may be over no elements")

    def _below(self, f: Family, g: Family, ctx: Context) -> bool:
        """Whether the single element f is less than the single element g."""
        return not f[0] and not g[0] and self.implied(ctx, lt(minus(f[2], g[2])))

    def inhabited(self, family: Family, ctx: Context) -> bool:
        """Whether some values of the variables meet the guards: those at the bounds are tried."""
        bound, guards, _ = family
        return self._inhabited(bound, guards, ctx)

    def _inhabited(self, bound: Sequence[int], guards: Formula, ctx: Context) -> bool:
        if not bound:
            return self.implied(ctx, guards)
        v, *rest = bound
        here = self.context(guards[1:] if guards[0] == "and" else (guards,))
        ends = [*self.ends(v, here, lower=True), *self.ends(v, here, lower=False), ZERO]
        return any(
            self._inhabited(rest, put_formula(guards, {v: e}), ctx) for e in dict.fromkeys(ends) if v not in e.vars
        )

    def _extreme(self, t: Node, env: Env, ctx: Context) -> Value:
        """max(x, y, ...) or min(x, y, ...) of reals, which may be infinite."""
        values = [self.value(a, env, ctx) for a in t.args]
        top, bottom = (INF, NINF) if t.op == "max" else (NINF, INF)
        if any(x is top for x in values):
            return top
        xs = [x for x in values if isinstance(x, Poly)]  # the others are the bottom
        if not xs:
            return bottom
        sign = 1 if t.op == "max" else -1
        found = self.maximum([((), TRUE, scaled(x, sign)) for x in xs], ctx)
        return found if sign == 1 else _opposite(found)

    # ---- atoms that are the same

    def unified(self, a: Atom, ctx: Context) -> Atom:
        """An atom that was met before and equals this one under the facts, else this one."""
        key = _shape(a)
        others = self.registry.setdefault(key, [])
        if a in others:
            return a
        for b in others[:PAIRS]:
            if self.alike(a, b, ctx):
                return b
        others.append(a)
        return a

    def alike(self, a: Atom, b: Atom, ctx: Context) -> bool:
        """Whether two atoms are equal under the facts."""
        key = (a.id, b.id, ctx.id)
        if key not in self.same:
            self.same[key] = False  # a question within its own answer
            self.depth += 1
            try:
                self.same[key] = self.depth <= DEPTH and self._alike(a, b, ctx)
            finally:
                self.depth -= 1
        return self.same[key]

    def _alike(self, a: Atom, b: Atom, ctx: Context) -> bool:
        if a.kind in ("app", "read"):
            pairs = zip(a.data[1], b.data[1], strict=True)
            return all(x is y or self.zero(minus(x, y), ctx) for x, y in pairs)
        if a.kind == "base":
            return self.zero(minus(a.data[0], b.data[0]), ctx)
        if a.kind == "sum":
            return self._same_sum(a.data[1][0], b.data[1][0], ctx)
        if a.kind == "max":
            return self._at_most(a, b, ctx) and self._at_most(b, a, ctx)
        if a.kind == "arg" and (self._is_first(a, b, ctx) or self._is_first(b, a, ctx)):
            return True
        if len(a.data[1]) != len(b.data[1]):
            return False
        return all(self._same_sum(f, g, ctx) for f, g in zip(a.data[1], b.data[1], strict=True))

    def _same_sum(self, f: Family, g: Family, ctx: Context) -> bool:
        for h in _renamings(f, g):
            if h[2] is f[2] or (self.depth <= 2 and _reads(h[2]) == _reads(f[2]) and self._same_body(f, h, ctx)):
                return self.implied(ctx, disj(negated(f[1]), h[1])) and self.implied(ctx, disj(negated(h[1]), f[1]))
        return False

    def _same_body(self, f: Family, h: Family, ctx: Context) -> bool:
        return self.zero(minus(f[2], h[2]), self.given(ctx, f[1], h[1]))

    def _at_most(self, a: Atom, b: Atom, ctx: Context) -> bool:
        """Whether each element of the maximum a is one of b, or of a maximum that is not above b by the facts."""
        if self._covered(a.data[1], b.data[1], ctx):
            return True
        lower = [f for c in self._maxima(ctx) if self.implied(ctx, le(minus(of(c), of(b)))) for f in c.data[1]]
        return bool(lower) and self._covered(a.data[1], [*b.data[1], *lower], ctx)

    def _is_first(self, a: Atom, b: Atom, ctx: Context) -> bool:
        """Whether the first index of the maximum of b is that of a, which has more elements: by the facts these are
        less than the maximum of b, or not above it and behind all elements of b."""
        fs, gs = a.data[1], b.data[1]
        if not self._maxima(ctx) or not self._covered(gs, fs, ctx):
            return False
        top = self._number(self.maximum(gs, ctx))
        for c in self._maxima(ctx):
            if self._covered(fs, [*gs, *c.data[1]], ctx):
                p = minus(of(c), top)
                if self.implied(ctx, lt(p)) or (self.implied(ctx, le(p)) and self._behind(c.data[1], gs, ctx)):
                    return True
        return False

    def _behind(self, fs: Sequence[Family], gs: Sequence[Family], ctx: Context) -> bool:
        """Whether every index of fs is greater than every one of gs."""
        for vs, g, _ in fs:
            for ws, h, _ in gs:
                if len(vs) != 1 or len(ws) != 1:
                    return False
                w = variable()
                both = self.given(ctx, g, put_formula(h, {ws[0]: of(w)}))
                if not self.implied(both, lt(minus(of(w), of(ATOMS[vs[0]])))):
                    return False
        return True

    def _maxima(self, ctx: Context) -> list[Atom]:
        """The maxima of which the facts speak."""
        found = {x for f in ctx.facts for p in polys(f) for x in p.atoms() if ATOMS[x].kind == "max"}
        return [ATOMS[x] for x in sorted(found)]

    def _covered(self, fs: Sequence[Family], gs: Sequence[Family], ctx: Context) -> bool:
        """Whether every element of fs is one of gs."""
        for f in fs:
            guards = [h[1] for g in gs for h in _renamings(f, g) if h[2] is f[2]]
            for g in gs:
                if f[0] and not g[0] and (values := _element(f, g[2])) is not None:
                    guards.append(conj(*(eq(minus(of(ATOMS[v]), e)) for v, e in values.items())))
                elif g[0] and not f[0] and (values := _element(g, f[2])) is not None:
                    guards.append(put_formula(g[1], values))
            if not guards or not self.implied(ctx, disj(negated(f[1]), *guards)):
                return False
        return True

    # ---- equality

    def zero(self, p: Poly, ctx: Context) -> bool:
        """Whether p = 0 wherever the facts hold and its operations are defined."""
        if p is ZERO:
            return True
        if p.constant is not None:
            return self.impossible(ctx)
        if all(_whole_atom(m) for m in p.terms):
            return self.implied(ctx, eq(p))
        p = self._cleared(p)
        if p is ZERO:
            return True
        p = self._without_sums(self._united(p, ctx), ctx)
        if p is ZERO:
            return True
        if (f := self._open_maximum(p, ctx)) is not None:
            raise Split(f)
        return self.implied(ctx, eq(p))

    def _cleared(self, p: Poly) -> Poly:
        """p times its denominators, which are not 0 where p is defined."""
        for _ in range(POWERS):
            least: dict[int, Fraction] = {}
            for factors, _e in p.terms:
                for a, k in factors:
                    if k < 0:
                        least[a] = min(least.get(a, Fraction(0)), k)
            if not least:
                return p
            a = max(least, key=lambda a: (_size(ATOMS[a]), a))
            p = mul(p, of(ATOMS[a], -least[a]))
        return p

    def _united(self, p: Poly, ctx: Context) -> Poly:
        """p with one atom for all that are equal."""
        first: dict[tuple[object, ...], list[int]] = {}
        images: dict[int, int] = {}
        for a in sorted({a for m in p.terms for a, _ in m[0]}):
            if ATOMS[a].kind in ("sym", "var"):
                continue
            others = first.setdefault(_shape(ATOMS[a]), [])
            same = next((b for b in others if self.alike(ATOMS[b], ATOMS[a], ctx)), None)
            if same is None:
                others.append(a)
            else:
                images[a] = same
        if not images:
            return p
        out = []
        for (factors, e), c in p.terms.items():
            powers = [of(ATOMS[images.get(a, a)], k) for a, k in factors]
            out.append(mul(poly({((), e): c}), *powers))
        return add(ZERO, *out)

    def _without_sums(self, p: Poly, ctx: Context) -> Poly:
        """p without groups of sums that cancel: c1 [g1(v)] + c2 [g2(v)] + ... = 0 for all v."""
        left = dict(p.terms)
        tried: set[Mono] = set()
        while True:
            start = next((m for m in left if m not in tried and any(ATOMS[a].kind == "sum" for a, _ in m[0])), None)
            if start is None:
                return poly(left)
            tried.add(start)
            for a, k in start[0]:
                if ATOMS[a].kind == "sum" and k == 1 and (gone := self._cancelling(start, a, left, ctx)):
                    left = {m: c for m, c in left.items() if m not in gone}
                    break

    def _cancelling(self, start: Mono, a: int, left: Mapping[Mono, Number], ctx: Context) -> set[Mono] | None:
        """Monomials with the same cofactor and sums over the same body, that cancel under the facts."""
        f = ATOMS[a].data[1][0]
        cofactor = (tuple(x for x in start[0] if x[0] != a), start[1])
        parts: list[tuple[Number, Formula]] = []
        gone: set[Mono] = set()
        for m, c in left.items():
            for b, k in m[0]:
                if ATOMS[b].kind != "sum" or k != 1 or (tuple(x for x in m[0] if x[0] != b), m[1]) != cofactor:
                    continue
                h = next((h for h in _renamings(f, ATOMS[b].data[1][0]) if h[2] is f[2]), None)
                if h is not None and m not in gone:
                    parts.append((c, h[1]))
                    gone.add(m)
            if m not in gone and (pinned := self._single(m, c, cofactor, f)) is not None:
                parts.append(pinned)
                gone.add(m)
        if self._cancel(parts, ctx):
            return gone
        if f[2] is ONE and len(f[0]) == 1 and cofactor in left:
            for e in self._all_ends(f[0][0], [g for _, g in parts]):
                pin = (left[cofactor], eq(minus(of(ATOMS[f[0][0]]), e)))
                if self._cancel([*parts, pin], ctx):
                    return gone | {cofactor}
        return None

    def _all_ends(self, v: int, guards: Sequence[Formula]) -> list[Poly]:
        """Bounds of a variable in conditions."""
        found = []
        for g in guards:
            here = self.context(g[1:] if g[0] == "and" else (g,))
            found += [*self.ends(v, here, lower=False), *self.ends(v, here, lower=True)]
        return list(dict.fromkeys(e for e in found if v not in e.vars))

    def _single(self, m: Mono, c: Number, cofactor: Mono, f: Family) -> tuple[Number, Formula] | None:
        """The monomial as one element of the sum: (c', v = e) where it is c' cofactor body(e)."""
        flipped = poly({(tuple((a, -k) for a, k in cofactor[0]), scaled(POLYS[cofactor[1]], -1).id): Fraction(1)})
        rest = mul(poly({m: Fraction(1)}), flipped)
        values = _element(f, rest)
        if values is None:
            return None
        return c, conj(*(eq(minus(of(ATOMS[v]), e)) for v, e in values.items()))

    def _cancel(self, parts: Sequence[tuple[Number, Formula]], ctx: Context) -> bool:
        """Whether the numbers whose conditions hold always add up to 0."""
        return 2 <= len(parts) <= GROUP and self._adds_up(parts, 0, ctx)

    def _adds_up(self, parts: Sequence[tuple[Number, Formula]], total: Number, ctx: Context) -> bool:
        """Whether the total and the numbers whose conditions hold are 0; cases that contradict each other are left."""
        if not parts:
            return bool(abs(total) <= SINGLE) or self.impossible(ctx)
        if len(parts) > 2 and self.impossible(ctx):
            return True
        (c, g), *rest = parts
        without, with_it = self.given(ctx, negated(g)), self.given(ctx, g)
        return self._adds_up(rest, total, without) and self._adds_up(rest, total + c, with_it)

    def _open_maximum(self, p: Poly, ctx: Context) -> Formula | None:
        """A comparison of two single elements of a maximum that is not decided."""
        for a in sorted(p.atoms()):
            if ATOMS[a].kind != "max":
                continue
            single = [b for vs, _, b in ATOMS[a].data[1] if not vs]
            for x, y in pairwise(single):
                f = lt(minus(x, y))
                if self.decided(ctx, f) is None:
                    return f
        return None

    # ---- signs

    def met(self, kind: str, p: Poly, ctx: Context) -> bool:
        """Whether p is "nonzero", "nonneg" or "positive" under the facts."""
        if kind == "defined":
            return False
        if kind == "nonneg":
            return self.sign(p, ctx) is not None
        if self.sign(p, ctx) == "positive":
            return True
        if kind == "nonzero":
            return self.sign(scaled(p, -1), ctx) == "positive" or self.implied(ctx, negated(eq(p)))
        return False

    def sign(self, p: Poly, ctx: Context) -> str | None:
        """ "positive", "nonneg", or None where neither is shown: by the signs of its terms, else by the facts."""
        signs = [self._sign_of_term(m, c, ctx) for m, c in p.terms.items()]
        if None not in signs:
            return "positive" if "positive" in signs else "nonneg"
        if self.implied(ctx, lt(scaled(p, -1))):
            return "positive"
        return "nonneg" if self.implied(ctx, le(scaled(p, -1))) else None

    def _sign_of_term(self, m: Mono, c: Number, ctx: Context) -> str | None:
        if c < 0:
            return None
        signs = [self._sign_of_power(ATOMS[a], k, ctx) for a, k in m[0]]
        return None if None in signs else "nonneg" if "nonneg" in signs else "positive"

    def _sign_of_power(self, a: Atom, k: Fraction, ctx: Context) -> str | None:
        inner = self._sign_of_atom(a, ctx)
        if k.denominator == 1 and k % 2 == 0:
            return "positive" if inner == "positive" or k < 0 else "nonneg"
        if k.denominator == 2:
            return "positive" if inner == "positive" or k < 0 else "nonneg"
        return "positive" if inner and k < 0 else inner

    def _sign_of_atom(self, a: Atom, ctx: Context) -> str | None:
        if a.kind == "base":
            return self.sign(a.data[0], ctx)
        if a.kind == "sum":
            vs, g, b = a.data[1][0]
            inner = self.sign(b, self.given(ctx, g))
            return "positive" if inner == "positive" and self._inhabited(vs, g, ctx) else inner and "nonneg"
        p = of(a)
        if self.implied(ctx, lt(scaled(p, -1))):
            return "positive"
        return "nonneg" if self.implied(ctx, le(scaled(p, -1))) else None


def _opposite(p: Value) -> Value:
    return scaled(p, -1) if isinstance(p, Poly) else INF if p is NINF else NINF


def _whole_atom(m: Mono) -> bool:
    return not m[1] and all(ATOMS[a].sort == "int" and k > 0 for a, k in m[0])


def _size(a: Atom) -> int:
    return 1 + len(atoms_within(a))


def _shape(a: Atom) -> tuple[object, ...]:
    """The things that equal atoms have in common."""
    if a.kind in ("app", "read"):
        return (a.kind, a.sort, a.data[0], len(a.data[1]))
    if a.kind == "base":
        return (a.kind,)
    return (a.kind, a.data[0])


def _reads(p: Poly) -> frozenset[str]:
    """The tensors that a polynomial reads."""
    every = {y for x in p.atoms() for y in (x, *atoms_within(ATOMS[x]))}
    return frozenset(ATOMS[x].data[0] for x in every if ATOMS[x].kind == "read")


def _renamings(f: Family, g: Family) -> Iterator[Family]:
    """g with the variables of f, in every order."""
    if len(f[0]) != len(g[0]):
        return
    for order in permutations(f[0]):
        names = {w: of(ATOMS[v]) for w, v in zip(g[0], order, strict=True)}
        yield f[0], put_formula(g[1], names), put(g[2], names)


def _sole_maximum(p: Poly) -> Atom | None:
    """The maximum that a polynomial is."""
    if len(p.terms) != 1:
        return None
    ((factors, e), c) = next(iter(p.terms.items()))
    found = ATOMS[factors[0][0]] if c == 1 and not e and len(factors) == 1 and factors[0][1] == 1 else None
    return found if found is not None and found.kind == "max" else None


def _indices(p: Poly) -> list[tuple[str, int, Poly]]:
    """The indices at which a polynomial reads tensors."""
    every = {y for x in p.atoms() for y in (x, *atoms_within(ATOMS[x]))}
    found = [(ATOMS[x].data[0], k, q) for x in every if ATOMS[x].kind == "read" for k, q in enumerate(ATOMS[x].data[1])]
    return sorted(found, key=lambda x: (x[0], x[1], len(x[2].terms), sorted(x[2].terms.items(), key=str)))


def _offset(v: int, body: Poly, bound: set[int]) -> Poly | None:
    """c where the body reads at s (v + c) + r and no term of r is a multiple of s: the first such read decides."""
    for _, _, q in _indices(body):
        slope, rest = linear_in(q, v)
        if slope is None or slope is ZERO or slope.vars or len(slope.terms) != 1:
            continue
        c, _ = _divided(poly({m: k for m, k in rest.terms.items() if not _of_monomial(m) & bound}), slope)
        return c
    return None


def _backwards(v: int, body: Poly) -> bool:
    """Whether the first read that decides goes down as the variable goes up."""
    for _, _, q in _indices(body):
        slope, _ = linear_in(q, v)
        if slope is not None and slope is not ZERO and not slope.vars and len(slope.terms) == 1:
            return bool(next(iter(slope.terms.values())) < 0)
    return False


def _of_monomial(m: Mono) -> frozenset[int]:
    return poly({m: Fraction(1)}).vars


def _ratio(body: Poly, guards: Formula, v: int, w: int) -> Poly | None:
    """c where the body reads at s (c v + w) + r; where it reads nothing, where the guards speak of that."""
    for q in [q for _, _, q in _indices(body)] or list(polys(guards)):
        (s, _), (t, _) = linear_in(q, v), linear_in(q, w)
        if s is None or t is None or s is ZERO or t is ZERO or len(t.terms) != 1 or s.vars or t.vars:
            continue
        c, rest = _divided(s, t)
        return c if rest is ZERO and c is not ONE else None
    return None


def _matched(f: Family, p: Poly) -> dict[int, Poly] | None:
    """Values of the variables for which the body reads what p reads."""
    values: dict[int, Poly] = {}
    for name, k, q in _indices(f[2]):
        for other, j, r in _indices(p):
            for v in f[0]:
                slope, rest = linear_in(q, v)
                if (name, k) != (other, j) or v in values or slope is None or slope is ZERO or rest.vars & set(f[0]):
                    continue
                e, left = _divided(minus(r, rest), slope)
                if left is ZERO:
                    values[v] = e
    return values if len(values) == len(f[0]) else None


def _element(f: Family, p: Poly) -> dict[int, Poly] | None:
    """Values of the variables for which the body is p."""
    values = _matched(f, p)
    return values if values is not None and put(f[2], values) is p else None


def _divided_by_sum(p: Poly, d: Poly) -> tuple[Poly, Poly]:
    """(q, r) with p = q d + r, by one term of d, where that leaves fewer terms than p has."""
    for m, c in d.terms.items():
        if m == UNIT:
            continue
        q, _ = _divided(p, poly({m: c}))
        r = minus(p, mul(q, d))
        if q is not ZERO and len(r.terms) < len(p.terms):
            return q, r
    return ZERO, p


def _divided(p: Poly, d: Poly) -> tuple[Poly, Poly]:
    """(q, r) with p = q d + r, for a d of one term; r has no term that is a multiple of it."""
    if len(d.terms) != 1:
        return _divided_by_sum(p, d)
    ((factors, e), c) = next(iter(d.terms.items()))
    quotient: dict[Mono, Number] = {}
    rest: dict[Mono, Number] = {}
    for m, k in p.terms.items():
        powers = dict(m[0])
        fits = m[1] == e and all(powers.get(a, 0) >= n for a, n in factors)
        whole, remainder = divmod(k, c) if isinstance(k, Fraction) and isinstance(c, Fraction) else (0, k)
        left = {**powers, **{a: powers.get(a, Fraction(0)) - n for a, n in factors}}
        if fits and whole and (m == UNIT or not remainder):
            quotient[tuple(sorted((a, n) for a, n in left.items() if n)), 0] = Fraction(whole)
            if remainder:
                rest[m] = remainder
        else:
            rest[m] = k
    return poly(quotient), poly(rest)


# ---- what operations mean --------------------------------------------------------------------------------------------


def _recip(a: Algebra, _: Context, p: Poly) -> Poly:
    a.need("nonzero", p)
    return inverse(p)


def _sqrt(a: Algebra, _: Context, p: Poly) -> Poly:
    a.need("nonneg", p)
    return root(p)


def _log(a: Algebra, ctx: Context, p: Poly) -> Poly:
    """log(c exp(e) q) = log(c) + e + log(q), for the largest e of the terms and c > 0."""
    a.need("positive", p)
    if p is ZERO:
        raise NotChecked("the logarithm of 0")
    e = reduce(_larger_exponent, (m[1] for m in p.terms))
    rest = mul(p, exponential(scaled(POLYS[e], -1)))
    c = abs(min(rest.terms.items(), key=lambda x: x[0])[1])
    outer = add(POLYS[e], number(math.log(c)) if c != 1 else ZERO)
    rest = scaled(rest, 1 / c)
    return outer if rest is ONE else add(outer, of(a.unified(_app("log", "real", rest), ctx)))


def _app(name: str, sort: str, *ps: Poly) -> Atom:
    return atom("app", sort, name, ps, variables=variables_of(ps))


def _larger_exponent(d: int, e: int) -> int:
    """The larger of two, by the sign of the first coefficient of their difference: the same when both are moved."""
    difference = minus(POLYS[e], POLYS[d]).terms
    return e if difference and difference[min(difference)] > 0 else d


def _exp(a: Algebra, ctx: Context, p: Poly) -> Poly:
    """exp(log(q) + r) = q exp(r), which is owed 0 < q by the logarithm."""
    for m, c in p.terms.items():
        if c == 1 and len(m[0]) == 1 and not m[1] and m[0][0][1] == 1:
            x = ATOMS[m[0][0][0]]
            if x.kind == "app" and x.data[0] == "log":
                return mul(x.data[1][0], _exp(a, ctx, minus(p, of(x))))
    c = p.terms.get(UNIT)
    if c is not None:
        return mul(number(math.exp(c)), exponential(minus(p, number(c)))) if abs(c) < 80 else exponential(p)
    return exponential(p)


def _pow(a: Algebra, ctx: Context, p: Poly, n: Poly) -> Poly:
    k = n.constant
    if k is None or not isinstance(k, Fraction) or k.denominator > 2 or abs(k) > 8:
        return of(a.unified(atom("app", "real", "pow", (p, n), variables=p.vars | n.vars), ctx))
    if k.denominator == 2:
        a.need("nonneg" if k > 0 else "positive", p)
    elif k < 0:
        a.need("nonzero", p)
    return ONE if k == 0 else power_of(p, k)


def _abs(a: Algebra, ctx: Context, p: Poly) -> Poly:
    for x in (p, scaled(p, -1)):
        if a.implied(ctx, le(scaled(x, -1))):
            return x
    if p.whole:
        raise Split(le(scaled(p, -1)))
    return a._number(a.maximum([((), TRUE, p), ((), TRUE, scaled(p, -1))], ctx))


def _whole_extreme(name: str) -> Callable[..., Poly]:
    """max or min of integers."""

    def rule(a: Algebra, ctx: Context, *ps: Poly) -> Poly:
        sign = 1 if name == "max" else -1
        kept = list(dict.fromkeys(ps))
        for p in list(kept):
            others = [q for q in kept if q is not p]
            if others and any(a.implied(ctx, le(scaled(minus(p, q), sign))) for q in others):
                kept.remove(p)
        if len(kept) == 1:
            return kept[0]
        return of(a.unified(atom("app", "int", name, tuple(kept), variables=variables_of(kept)), ctx))

    return rule


def _indicator(f: Callable[[Poly], Formula]) -> Callable[..., Poly]:
    """1 where the condition holds, else 0."""

    def rule(a: Algebra, ctx: Context, p: Poly) -> Poly:
        answer = a.decided(ctx, f(p))
        if answer is None:
            raise Split(f(p))
        return ONE if answer else ZERO

    return rule


def _bitxor(a: Algebra, ctx: Context, p: Poly, q: Poly) -> Poly:
    """~x = x ^ -1 = -1 - x."""
    for x, y in ((p, q), (q, p)):
        if x.constant == -1:
            return minus(x, y)
    return of(a.unified(atom("app", "int", "bitxor", (p, q), variables=p.vars | q.vars), ctx))


def _next_power(a: Algebra, ctx: Context, p: Poly) -> Poly:
    return of(a.unified(atom("app", "int", "next_power_of_2", (p,), variables=p.vars), ctx))


def _to_whole(bits: int) -> Callable[..., Poly]:
    """The number modulo 2^bits, where it fits the number itself."""

    def rule(a: Algebra, ctx: Context, p: Poly) -> Poly:
        if a.implied(ctx, fits(p, bits)):
            return p
        return of(a.unified(atom("app", "int", f"wrap{bits}", (p,), variables=p.vars), ctx))

    return rule


def fits(p: Poly, bits: int) -> Formula:
    """A number of two's complement."""
    half = number(1 << bits - 1)
    return conj(le(scaled(add(p, half), -1)), lt(minus(p, half)))


TOTAL = {
    "sin",
    "cos",
    "erf",
    "floor",
    "ceil",
    "trunc",
    "round",
    "sign",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "asinh",
    "cbrt",
    "random",
}  # functions that are defined of all real numbers
RULES: dict[str, Callable[..., Poly]] = {
    "add": lambda a, ctx, *ps: add(*ps),
    "mul": lambda a, ctx, *ps: mul(*ps),
    "recip": _recip,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "pow": _pow,
    "abs": _abs,
    "max": _whole_extreme("max"),
    "min": _whole_extreme("min"),
    "floordiv": lambda a, ctx, p, d: a.quotient(p, d, ctx),
    "truncdiv": lambda a, ctx, p, d: a.toward_zero(p, d, ctx),
    "next_power_of_2": _next_power,
    "bitxor": _bitxor,
    "positive?": _indicator(lambda p: lt(scaled(p, -1))),
    "zero?": _indicator(eq),
    "wrap8": _to_whole(8), "wrap16": _to_whole(16), "wrap32": _to_whole(32),
}  # fmt: skip


def _defined(variables: Sequence[str], meaning: Expression) -> Callable[..., Poly]:
    """The operation that a definition of the laws says."""

    def rule(a: Algebra, ctx: Context, *ps: Poly) -> Poly:
        given = dict(zip(variables, ps, strict=True))

        def number_of(x: Expression) -> Poly:
            if isinstance(x, tuple):
                return RULES[x[0]](a, ctx, *map(number_of, x[1]))
            return given[x] if isinstance(x, str) else number(x)

        return number_of(meaning)

    return rule


RULES |= {op: _defined(variables, meaning) for op, variables, meaning in map(defined, DEFINITIONS)}

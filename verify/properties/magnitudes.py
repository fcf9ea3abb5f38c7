"""Running error analysis: how far from its value a term may be when every operation on the way rounds.

    |computed - t| <= unit * r(t) * m(t)   to first order,   |t| <= m(t)

m(t) is a term again: t with absolute values in all places where a sum may cancel. It is the same or larger for every
order of summation and for every way to multiply out or to factor, so that it holds for other forms of the formula too:

    m(x) = |x|                      m(a + b) = m(a) + m(b)           m(a * b) = m(a) * m(b)
    m(sum a) = sum m(a)             m(max(a, b)) = max(m(a), m(b))   m(f(a)) = |f(a)| + |f'(a)| * m(a)

r(t) counts the roundings on the longest path: of a product the counts of its factors add up, of a sum of N terms there
are N more. Sources: Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4. A sum of squares is taken
to be well-conditioned; a variance may be computed as E[a^2] - E[a]^2, a softmax with any shift by a running maximum.

Jumps: where the argument of a floor, a comparison, a sign lies within its error of a jump, m has the height of the step
divided by unit * r, so that the tolerance is the step itself; for an index, m is infinite there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import Unsupported
from trilift.lift.language.definitions import DEFINITIONS
from trilift.lift.language.parse import pattern
from trilift.lift.language.unfolding import instantiate, unfold
from trilift.lift.runtime.session import memo
from trilift.lift.terms import construct as T
from trilift.lift.terms.bits import FORMATS
from trilift.lift.terms.meanings import Domain, meaning
from trilift.lift.terms.term import Axis, Term

FORMS = 2  # as many roundings as the formula has: the kernel may compute it in another form
COUNT = T.pinned(T.scalar("roundings of the whole formula", T.INT))
CONSTANT = 4  # a constant was recovered from a text that is off by 2e-7 at most, and is rounded


@dataclass(frozen=True, slots=True)
class Bound:
    """The magnitude of a term; it is exact where there are no roundings."""

    magnitude: Term
    roundings: Term

    @property
    def exact(self) -> bool:
        return self.roundings is ZERO


@dataclass(frozen=True, slots=True)
class Row:
    """One operation or definition f(a, b, c): `magnitude` over its arguments a, b, c, their magnitudes A, B, C, its own
    absolute value y, and the axis i; `relative`: the same where every argument has no more than a relative error (A is
    |a|). Roundings: `times` those of the arguments, `n` for each element of the axis, `plus` of its own."""

    magnitude: str
    relative: str = ""
    times: int = 1
    n: int = 0
    plus: int = 0
    why: str = ""


# Roundings of functions: 2 per unit in the last place. CUDA Math API, tables of maximum ulp errors; PTX ISA:
# ex2.approx 2 ulp, lg2.approx 2^-22, rcp.approx 1, div.full 2, sqrt.approx 1, rsqrt.approx 2^-22.4.
MAGNITUDE = Domain("magnitude", missing="error", error="the rounding error of {op} of a rounded number",
                   says="m and r of a term whose arguments are rounded: a Row, or a rule")  # fmt: skip
EXACT = Domain("exactness", missing="unbounded", says="whether a real is exact where its arguments are",
               types=(T.REAL, "same"))  # fmt: skip
POWER = Row("y * (1 + abs(b) * A / abs(a) + B * abs(log(abs(a))))", plus=16, why="8 ulp")
MAGNITUDE.fill({
    "exp": Row("y * (1 + A)", plus=6, why="2 ulp of ex2.approx, x * log2(e)"),
    "exp2": Row("y * (1 + A)", plus=6, why="2 ulp of ex2.approx"),
    "log": Row("A / abs(a) + y", "1 + y", plus=6, why="lg2.approx to 2**-22"),
    "log2": Row("A / abs(a) + y", "1 + y", plus=6, why="lg2.approx to 2**-22"),
    "log10": Row("A / abs(a) + y", "1 + y", plus=6, why="lg2.approx to 2**-22"),
    "sqrt": Row("A / y", "y", plus=2, why="1 ulp of sqrt.approx"),
    "cbrt": Row("A / (y * y) + y", "y", plus=4),
    "recip": Row("A / (a * a)", "y", plus=4, why="2 ulp of div.full"),
    "sin": Row("A", plus=4, why="2 ulp"),
    "cos": Row("1 + A", plus=4, why="2 ulp"),
    "tan": Row("A * (1 + y * y) + y", plus=8, why="4 ulp"),
    "asin": Row("A / sqrt(1 - a * a) + y", plus=8, why="4 ulp"),
    "acos": Row("A / sqrt(1 - a * a) + y", plus=8, why="4 ulp"),
    "atan": Row("A", plus=4, why="2 ulp"),
    "atan2": Row("(A * abs(b) + B * abs(a)) / (a * a + b * b) + y", plus=6, why="3 ulp"),
    "sinh": Row("cosh(a) * (1 + A)", plus=12),
    "cosh": Row("y * (1 + A)", plus=12),
    "tanh": Row("1 + A", "1", plus=14, why="of 1: (exp(2 x) - 1) / (exp(2 x) + 1) is as good"),
    "asinh": Row("1 + A", plus=12),
    "acosh": Row("1 + A / sqrt(a * a - 1) + y", plus=12),
    "atanh": Row("1 + A / (1 - a * a) + y", plus=12),
    "erf": Row("A", "y", times=2, plus=4, why="2 ulp"),
    "erfinv": Row("A * exp(y * y) + y", plus=8),
    # over an axis
    "sum": Row("sum(i, A)", n=1),
    "amax": Row("amax(i, A)"),
    "amin": Row("amax(i, A)"),
    # known names
    "sigmoid": Row("1 + y * A", plus=12, why="of 1: 1 - sigmoid(-x) is as good"),
    "silu": Row("A", times=2, plus=14, why="exp, addition, division"),
    "relu": Row("A"),
    "leaky_relu": Row("A * max(1, B)", plus=1),
    "elu": Row("A + B", plus=8),
    "softplus": Row("1 + A", plus=14, why="exp, addition, log"),
    "gelu": Row("A", times=2, plus=12, why="erf is 2 ulp off"),
    "gelu_tanh": Row("A", times=2, plus=24, why="tanh or sigmoid of a polynomial"),
    "quick_gelu": Row("A", times=2, plus=18),
    "mish": Row("A", times=2, plus=32),
    "softmax": Row("y * (1 + A + amax(i, A))", n=1, plus=24, why="exp of a difference, rescaled sums"),
    "log_softmax": Row("1 + A + amax(i, A)", n=1, plus=24),
    "logsumexp": Row("1 + amax(i, A)", n=1, plus=24),
    "cross_entropy": Row("1 + amax(i, A)", times=2, n=1, plus=24),
    "layer_norm": Row("(A + mean(i, A)) / sqrt(var(i, a) + eps) * (1 + mean(i, A * A) / (var(i, a) + eps))",
                      times=3, n=3, plus=12, why="mean(x**2) - mean(x)**2 is as good"),
    "rms_norm": Row("A / sqrt(mean(i, a * a) + eps) * (1 + mean(i, A * A) / (mean(i, a * a) + eps))", "y",
                    times=2, n=1, plus=12),
    "normalize": Row("A / sqrt(sum(i, a * a)) * (1 + sum(i, A * A) / sum(i, a * a))", "y", times=2, n=1, plus=12),
    "mean": Row("mean(i, A)", n=1, plus=5, why="division by the length"),
    "var": Row("mean(i, A * A)", times=4, n=3, plus=8, why="mean(x**2) - mean(x)**2 is as good"),
    "norm": Row("norm(i, A)", "y", n=1, plus=4),
})  # fmt: skip

# They select, or compute with integers.
EXACT.fill(dict.fromkeys(
    ("neg", "abs", "max", "min", "where", "fmod", "relu", "amax", "amin", "pick", "sign", "floor", "ceil",
     "trunc", "round", "to_int", "random", "random_bits", *(f"from_bits_{f}" for f in FORMATS)), True
))  # fmt: skip
WRAPS = {"wrap8", "wrap16", "wrap32"}
STEPS = {"floor": 1, "ceil": 1, "trunc": 1, "to_int": 1, "round": 1, "sign": 2}
WHOLE = {"floor", "ceil", "trunc", "round", "sign"}
ONE, ZERO, MINUS_ONE = T.const(1), T.const(0), T.const(-1)


@dataclass
class Magnitudes:
    """Bounds of the terms of one formula. `case`: what is known of its inputs' signs; `unit`: roundoff; `more`:
    roundings anywhere on the way, of narrower types."""

    case: Case
    unit: float
    more: int = 0
    known: dict[int, Bound] = field(default_factory=dict)
    used: dict[str, Row] = field(default_factory=dict)  # rows with roundings of their own, by name
    jumps: bool = False  # whether some argument may lie near a jump

    def bound(self, t: Term) -> Bound:
        """Of a term. Raises Unsupported for an operation without a row."""
        for s in t.walk():
            if s.id not in self.known:
                self.known[s.id] = self._bound(s)
        return self.known[t.id]

    def _bound(self, t: Term) -> Bound:
        bounds = [self.bound(a) for a in t.args]
        if not t.args:
            return self._leaf(t)
        if t.op == "read":
            return self._read(t, bounds)
        if all(b.exact for b in bounds) and (t.op in EXACT or t.type != T.REAL):
            return Bound(self.absolute(t), ZERO)
        if t.op in DEFINITIONS and t.op not in MAGNITUDE:
            return self.bound(unfold(t))
        meant: Row | Rule = MAGNITUDE[t.op]
        return self.row(t, bounds, meant) if isinstance(meant, Row) else meant(self, t, bounds)

    def _leaf(self, t: Term) -> Bound:
        """A constant may be rounded; infinities do not lose digits."""
        if t.op != "const" or t.type == T.BOOL:
            return Bound(self.absolute(t), ZERO)
        if isinstance(t.attr, float) and not math.isfinite(t.attr):
            return Bound(ZERO, ZERO)
        return Bound(self.absolute(t), ZERO if t.type == T.INT or _short(t.attr) else T.const(CONSTANT))

    def _read(self, t: Term, bounds: list[Bound]) -> Bound:
        """Nothing is known where rounding may carry an index over a jump: it may be any element."""
        if all(b.exact for b in bounds):
            return Bound(self.absolute(t), ZERO)
        near: list[Term] = []
        inside = dict.fromkeys(s for a in t.args for s in a.walk())
        for s in (s for s in inside if s.op in STEPS and s.args[0].op not in WHOLE and not self.bound(s).exact):
            if not s.free <= t.free:
                raise Unsupported(f"an index of {t.attr} that is computed with rounding")
            near.append(self.near(s))
        if not near:
            raise Unsupported(f"an index of {t.attr} that is computed with rounding")
        self.jumps = True
        return Bound(T.where(T.make("or", *near, False), math.inf, self.absolute(t)), ONE)

    def near(self, t: Term) -> Term:
        """Whether the argument of a step may lie beyond its jump."""
        a = t.args[0]
        if t.op == "round":
            distance = T.add(a, T.mul(-1, T.make("floor", a)), -0.5)
        else:
            distance = a if t.op == "sign" else T.sub(a, T.make("round", a))
        return self.within(T.make("abs", distance), self.bound(a))

    def row(self, t: Term, bounds: list[Bound], row: Row) -> Bound:
        """A row of the table at these arguments."""
        relative = all(b.magnitude is self.absolute(a) for a, b in zip(t.args, bounds, strict=True))
        terms = {"y": self.absolute(t)}
        names = DEFINITIONS[t.op].arguments if t.op in DEFINITIONS else "abc"[: len(t.args)]
        for name, a, b in zip(names, t.args, bounds, strict=True):
            terms |= {name: a, name.upper() if len(name) == 1 else name: b.magnitude if len(name) == 1 else a}
        axes = {} if t.attr is None else {"i": t.attr}
        meant = instantiate(_text(row.relative if relative and row.relative else row.magnitude), terms, axes)
        if row.plus or row.n:
            self.used[t.op] = row
        length = times(row.n, _length(t.attr)) if row.n else ZERO
        return Bound(self.tidy(meant), T.add(times(row.times, largest(bounds)), length, row.plus))

    # ---- absolute values

    def absolute(self, t: Term) -> Term:
        """|t|, without the bars where t is not negative."""
        if self.nonnegative(t):
            return t
        match t.op:
            case "const":
                return T.const(abs(t.attr))
            case "mul":
                return self.product([self.absolute(a) for a in t.args])
            case "recip":
                return T.recip(self.absolute(t.args[0]))
            case "where":
                return T.where(t.args[0], self.absolute(t.args[1]), self.absolute(t.args[2]))
            case "pow" if t.args[1].op == "const":
                return T.make("pow", self.absolute(t.args[0]), t.args[1])
        return t if t.type == T.BOOL else T.make("abs", t)

    def nonnegative(self, t: Term) -> bool:
        """Whether a term is seen to be no negative number: sizes, squares, exponentials and what is made of them."""
        rule: Callable[[Magnitudes, Term], bool] | None = NONNEGATIVE.get(t.op)
        return rule is not None and rule(self, t)

    def positive_input(self, name: str) -> bool:
        spec = self.case.tensors.get(name) or self.case.scalars.get(name)
        low = None if spec is None else spec.low
        return spec is not None and (
            spec.positive or spec.dtype[0] == "u" or (low is not None and low.op == "const" and low.attr >= 0)
        )

    def product(self, factors: list[Term]) -> Term:
        """Of magnitudes: |a| * |a| = a * a, sqrt(a) * sqrt(a) = a."""
        out: list[Term] = []
        flat = (g for f in factors for g in (f.args if f.op == "mul" else (f,)))
        for f, k in Counter(flat).items():
            root = f.args[0] if f.op == "recip" else f
            base = root.args[0] if root.op in ("abs", "sqrt") and k > 1 else None
            if base is None:
                out += [f] * k
                continue
            inverse = T.recip if f.op == "recip" else lambda g: g
            squares = [base, base] if root.op == "abs" else [base]
            out += [inverse(T.mul(*squares))] * (k // 2) + [f] * (k % 2)
        return T.mul(*out)

    def tidy(self, t: Term) -> Term:
        """Absolute values where they say something, squares without them."""

        def one(s: Term) -> Term | None:
            if s.op == "abs":
                return self.absolute(s.args[0])
            if s.op == "mul":
                return self.product(list(s.args))
            if s.op == "pow" and s.args[0].op == "abs" and s.args[1].op == "const" and s.args[1].attr % 2 == 0:
                return T.make("pow", s.args[0].args[0], s.args[1])
            return None

        return T.rewrite(t, one)

    # ---- jumps

    def jump(self, near: Term, step: Term) -> Term:
        """The addition to m where a jump of this height is near."""
        self.jumps = True
        return T.where(near, T.div(step, T.mul(self.unit, COUNT)), 0)

    def within(self, distance: Term, *bounds: Bound) -> Term:
        """Whether a distance is no more than the error of what it was computed from."""
        total = self.tidy(T.add(*(b.magnitude for b in bounds)))
        count = T.add(times(FORMS, largest(list(bounds))), self.more)
        return T.make("le", distance, T.mul(self.unit, count, total))

    def doubt(self, c: Term) -> Term:
        """Where rounding may turn a condition into its opposite."""
        bounds = [self.bound(a) for a in c.args]
        if all(b.exact for b in bounds):
            return T.const(False)
        match c.op:
            case "lt" | "le" | "eq" | "ne":
                return self.within(T.make("abs", T.sub(*c.args)), *bounds)
            case "and" | "or" | "not":
                return T.make("or", *(self.doubt(a) for a in c.args), False)
        raise Unsupported(f"the rounding error of {c.op} of a rounded number")


# ---- signs -----------------------------------------------------------------------------------------------------------

NONNEGATIVE = Domain("sign", missing="unbounded", says="whether it is seen to be no negative number",
                     types=(T.REAL, T.INT, "same"))  # fmt: skip


@meaning(NONNEGATIVE, "add", "min", "recip", "sum", "prod", "amax", "amin", "mean", "floordiv", "mod", "shr")
def _of_all(m: Magnitudes, t: Term) -> bool:
    """N - 1 too: sizes are at least 1."""
    if t.op == "add" and t.type == T.INT and not t.free and MINUS_ONE in t.args:
        return all(m.nonnegative(a) for a in t.args if a is not MINUS_ONE) and not T.reads(t)
    return all(map(m.nonnegative, t.args))


@meaning(NONNEGATIVE, "pow")
def _even_or_base(m: Magnitudes, t: Term) -> bool:
    even = t.args[1].op == "const" and t.args[1].attr % 2 == 0
    return even or m.nonnegative(t.args[0])


NONNEGATIVE.fill({
    **dict.fromkeys(("size", "axis", "exp", "exp2", "sqrt", "abs", "cosh", "random"), lambda m, t: True),
    **dict.fromkeys(("sigmoid", "softmax", "softplus", "relu", "var", "norm"), lambda m, t: True),
    **dict.fromkeys(("read", "scalar"), lambda m, t: m.positive_input(str(t.attr))),
    "const": lambda m, t: t.type == T.BOOL or bool(t.attr >= 0),
    "mul": lambda m, t: all(m.nonnegative(a) for a, k in Counter(t.args).items() if k % 2),
    "max": lambda m, t: any(map(m.nonnegative, t.args)),
    "where": lambda m, t: all(map(m.nonnegative, t.args[1:])),
})  # fmt: skip


# ---- rows with a rule of their own -----------------------------------------------------------------------------------


def _add(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    """One rounding for each addition."""
    return Bound(m.tidy(T.add(*(b.magnitude for b in bounds))), T.add(largest(bounds), len(bounds) - 1))


def _mul(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    """Roundings of the factors add up; powers of two cost none."""
    inexact = sum(not (a.op == "const" and _is_power_of_two(a.attr)) for a in t.args) - 1
    return Bound(m.product([b.magnitude for b in bounds]), T.add(max(inexact, 0), *(b.roundings for b in bounds)))


def _extremum(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    """Of numbers with errors: the largest error."""
    return Bound(T.make("max", *(b.magnitude for b in bounds)), largest(bounds))


def _first(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    return bounds[0]


def _pow(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    """a ** k is k - 1 products; with another constant exponent m(a ** k) = |k| |a| ** (k - 1) m(a)."""
    (a, e), (base, _) = t.args, bounds
    if e.op != "const":
        return m.row(t, bounds, POWER)
    k = e.attr
    if isinstance(k, int) and k > 1:
        return Bound(m.tidy(T.make("pow", base.magnitude, k)), T.add(times(k, base.roundings), k - 1))
    roundings = T.add(times(max(math.ceil(abs(k)), 1), base.roundings), POWER.plus)
    m.used["pow"] = POWER
    slope = m.absolute(t)
    if base.magnitude is not m.absolute(a):
        slope = T.mul(base.magnitude, T.make("pow", m.absolute(a), k - 1))
    return Bound(m.tidy(slope), roundings)


def _where(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    """Either branch where rounding may turn the condition."""
    c, a, b = t.args
    near, branches = m.doubt(c), bounds[1:]
    chosen = T.where(c, branches[0].magnitude, branches[1].magnitude)
    step = T.const(0) if near is T.const(False) else m.jump(near, T.add(*(x.magnitude for x in branches)))
    return Bound(T.add(chosen, step), largest([*bounds, Bound(ONE, ZERO if step is ZERO else ONE)]))


def _step(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    """Integers of reals: the neighbour where the argument is near a jump."""
    a, b = t.args[0], bounds[0]
    if a.op in WHOLE or a.type == T.INT:
        return b
    return Bound(T.add(m.absolute(t), m.jump(m.near(t), T.const(STEPS[t.op]))), b.roundings)


def _condition(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    """A condition as a value."""
    return Bound(T.add(T.where(t, 1, 0), m.jump(m.doubt(t), ONE)), largest(bounds))


def _prod(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    (b,) = bounds
    return Bound(T.fold("prod", t.attr, b.magnitude), T.mul(_length(t.attr), T.add(b.roundings, 1)))


def _position(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    """argmax: any position where more than one element is within its error of the largest."""
    (a,), (b,) = t.args, bounds
    best = T.fold("amax" if t.op == "argmax" else "amin", t.attr, a)
    error = T.fold("amax", t.attr, b.magnitude)
    close = m.within(T.make("abs", T.sub(a, best)), Bound(error, b.roundings))
    several = T.make("lt", 1, T.fold("sum", t.attr, T.where(close, 1, 0)))
    return Bound(T.add(t, m.jump(several, t.attr.size)), b.roundings)


def _lgamma(m: Magnitudes, t: Term, bounds: list[Bound]) -> Bound:
    if not bounds[0].exact:
        raise Unsupported("the rounding error of lgamma of a rounded number")
    return Bound(T.add(1, m.absolute(t)), T.const(16))


Rule = Callable[[Magnitudes, Term, list[Bound]], Bound]
MAGNITUDE.fill({
    "add": _add,
    "mul": _mul,
    "max": _extremum,
    "min": _extremum,
    "abs": _first,
    "neg": _first,
    "pow": _pow,
    "where": _where,
    **dict.fromkeys(STEPS, _step),
    **dict.fromkeys(WRAPS, _first),
    **dict.fromkeys(("lt", "le", "eq", "ne", "and", "or", "not"), _condition),
    "prod": _prod,
    "argmax": _position,
    "argmin": _position,
    "lgamma": _lgamma,
})  # fmt: skip


# ---- counts ----------------------------------------------------------------------------------------------------------


def largest(bounds: list[Bound]) -> Term:
    """A count that none of them exceeds: the largest coefficient of each product of sizes."""
    out: dict[Term, int] = {}
    for b in bounds:
        for monomial, c in _parts(b.roundings).items():
            out[monomial] = max(out.get(monomial, 0), c)
    return T.add(*(T.mul(c, monomial) for monomial, c in out.items()), 0)


def times(k: int, count: Term) -> Term:
    """k * count, multiplied out."""
    return T.add(*(T.mul(k * c, monomial) for monomial, c in _parts(count).items()), 0)


def _parts(count: Term) -> Mapping[Term, int]:
    out: dict[Term, int] = {}
    for t in count.args if count.op == "add" else (count,):
        if t.op == "const":
            base, c = ONE, t.attr
        else:
            c = next((a.attr for a in t.args if a.op == "const"), 1) if t.op == "mul" else 1
            base = T.mul(*(a for a in t.args if a.op != "const")) if t.op == "mul" else t
        if c > 0:  # sizes are not negative
            out[base] = out.get(base, 0) + c
    return out


def _length(a: Axis) -> Term:
    """The size of an axis as a count; one that is not the same everywhere is as long as it can be."""
    if any(s.op in ("axis", "read") for s in a.size.walk()):
        raise Unsupported(f"the rounding error of a sum whose length {a.size} is not the same everywhere")
    return a.size


@memo
def _text(text: str) -> Term:
    return pattern(text)


def _short(v: float) -> bool:
    """Whether float32 has this number."""
    return math.frexp(v)[0] * 2**24 % 1 == 0


def _is_power_of_two(v: float) -> bool:
    return v != 0 and math.isfinite(v) and abs(math.frexp(v)[0]) == 0.5

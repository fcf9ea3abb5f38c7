"""The identities of the normal form, as rows: what equals what, under which condition, and what is wrong without it.

The functions of this package apply them; a row names the function. Rows are texts of the language of formulas, so that
they can be read, printed (`trilift explain NAME`) and tried:

    a b c  real numbers       x y z  tensors of reals        N M p  integers of any sign       k s t  numbers
    i < N  j < M  r < N * M   bound variables                v      a bound variable that only guards restrict

A row less one of its conditions is a *twin*, and so is a form that one might write and that does not hold. A test draws
numbers for all of them: a row must hold, and the engine must show it; a twin must fail, and must not be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trilift.lift.language.parse import Scalars, tree
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from . import algebra, equality, literals, piecewise, variables
from .algebra import ALL, Algebra
from .rules import argmax, indicator, maximum, product, unrolling, whole_numbers
from .rules import sum as sums

N, M = T.pinned(T.size("N")), T.pinned(T.size("M"))
INTEGERS, REALS, NUMBERS = ("N", "M", "p"), ("a", "b", "c"), ("k", "s", "t")
TENSORS = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of an identity: `text` has to hold, `why` says how the identity fails without it."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Twin:
    """A form that does not hold, where `given` holds, and why."""

    left: str
    right: str
    why: str
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """left = right under the conditions. `apply`: the function of the normal form that uses it. `domain`: conditions
    outside of which a side is not defined, or the engine does not look. `wrong`: a form that one might write and that
    does not hold."""

    name: str
    left: str
    right: str
    source: str
    apply: Callable[..., Any]
    conditions: tuple[Condition, ...] = ()
    domain: tuple[str, ...] = ()
    wrong: Twin | None = None

    @property
    def given(self) -> tuple[str, ...]:
        return (*self.domain, *(c.text for c in self.conditions))

    @property
    def statement(self) -> str:
        """left = right, if condition and condition."""
        return f"{self.left} = {self.right}" + (f"   if {' and '.join(self.given)}" if self.given else "")

    @property
    def twins(self) -> Iterator[Twin]:
        """The row less each of its conditions, and the form that one might write."""
        for c in self.conditions:
            yield Twin(self.left, self.right, c.why, tuple(d for d in self.given if d != c.text))
        if self.wrong is not None:
            yield self.wrong

    @property
    def function(self) -> str:
        """Where it is applied: "rules.indicator.product"."""
        module = self.apply.__module__.partition("normal_form.")[2]
        return f"{module}.{self.apply.__qualname__}"

    def __str__(self) -> str:
        lines = [self.statement, f"applied by {self.function}; source: {self.source}"]
        lines += [f"not without {c.text}: {c.why}" for c in self.conditions]
        lines += [f"not {self.wrong.left} = {self.wrong.right}: {self.wrong.why}"] if self.wrong else []
        return "\n".join(lines)


def term(text: str, numbers: Mapping[str, float]) -> Term:
    """The term of one side or one condition, for these numbers k, s, t."""

    def name(word: str) -> Term | None:
        if word in numbers:
            return T.const(numbers[word])
        return T.size(word) if word in INTEGERS else T.read(word, [T.const(0)]) if word in REALS else None

    axes = {"i": Axis("i", N), "j": Axis("j", M), "r": Axis("r", T.mul(N, M)), "v": Axis("v", ALL)}
    return Scalars(text, name, axes.get, lambda x: T.REAL if x in TENSORS else None).read(tree(text))


# ---- rows ------------------------------------------------------------------------------------------------------------


def _row(
    name: str, left: str, right: str, source: str, apply: Callable[..., Any], *conditions: tuple[str, str],
    domain: tuple[str, ...] = (), wrong: tuple[str, str, str] | None = None,
) -> Identity:  # fmt: skip
    made = tuple(Condition(*c) for c in conditions)
    return Identity(name, left, right, source, apply, made, domain, Twin(*wrong, domain) if wrong else None)


def _is(condition: str) -> str:
    """An indicator: 1 where the condition holds, else 0."""
    return f"where({condition}, 1, 0)"


def _over(kind: str, low: str, high: str, body: str) -> str:
    """A fold over low <= v < high."""
    unit = {"sum": "0", "prod": "1"}.get(kind, "-inf")
    return f"{kind}(v, where(({low} <= v) & (v < {high}), {body}, {unit}))"


IVERSON = "Iverson brackets: Knuth 1992"
PRODUCTS = (
    _row("two-lower-bounds", f"{_is('a > s')} * {_is('a > t')}", _is("a > t"), IVERSON, indicator.product,
         ("s <= t", "the stronger bound is the larger one")),
    _row("two-upper-bounds", f"{_is('a < s')} * {_is('a < t')}", _is("a < s"), IVERSON, indicator.product,
         ("s <= t", "the stronger bound is the smaller one")),
    _row("interval", f"{_is('a > s')} * {_is('a < t')}", f"{_is('a > s')} + {_is('a < t')} - 1", IVERSON,
         indicator.product, ("s < t", "the sum is -1 between t and s, or at both")),
    _row("empty-interval", f"{_is('a > s')} * {_is('a < t')}", "0", IVERSON, indicator.product,
         ("s >= t", "there are numbers between s and t")),
    _row("point-in-a-half-line", f"{_is('a > s')} * {_is('a == t')}", _is("a == t"), IVERSON, indicator.product,
         ("s < t", "the point is outside")),
    _row("two-points", f"{_is('a == s')} * {_is('a == t')}", "0", IVERSON, indicator.product,
         ("s != t", "it is one point")),
    _row("power-of-an-indicator", f"{_is('a > s')} ** 2", _is("a > s"), IVERSON, Algebra._power,
         wrong=("a ** 2", "a", "a is not an indicator")),
    _row("value-under-its-indicator", f"{_is('a == s')} * a", f"{_is('a == s')} * s", IVERSON, Algebra._pinned,
         wrong=(f"{_is('a <= s')} * a", f"{_is('a <= s')} * s", "a is not s everywhere below s")),
)  # fmt: skip
CHOICES = (
    _row("choice-of-reals", "where(a > s, b, c)", f"{_is('a > s')} * b + {_is('a <= s')} * c", IVERSON,
         piecewise.choice,
         wrong=("where(a > s, b, c)", f"{_is('a > s')} * b + {_is('a < s')} * c", "at s the sum is 0")),
    _row("choice-that-is-a-maximum", "where(a < b, b, a)", "max(a, b)", "definition", piecewise._extremum,
         wrong=("where(a < b, a, b)", "max(a, b)", "that is the minimum")),
    _row("maximum-of-two", "max(a, b)", f"b + {_is('a - b > 0')} * (a - b)", "definition", maximum._larger,
         wrong=("max(a, b)", "b + (a - b)", "it is a")),
    _row("absolute-value", "abs(a)", "max(a, -a)", "definition", piecewise.absolute,
         wrong=("abs(a)", "a", "a may be negative")),
    _row("positive-factor-of-a-comparison", _is("a * exp(b) > 0"), _is("a > 0"), "ordered fields",
         piecewise.real_literal, wrong=(_is("a * b > 0"), _is("a > 0"), "b may be negative")),
    _row("below-a-minimum", _is("p < min(N, M)"), _is("(p < N) & (p < M)"), "lattices", piecewise._bounds,
         wrong=(_is("p < min(N, M)"), _is("(p < N) | (p < M)"), "that is below the maximum")),
    _row("common-divisor-of-a-comparison", _is("2 * p <= 2 * N + 1"), _is("p <= N"), "integers: Pugh 1991",
         literals.integer_literal, wrong=(_is("2 * p <= 2 * N - 1"), _is("p <= N"), "it is rounded down")),
)  # fmt: skip
POSITIVE = "// rounds down, and by a negative number the other way"
DIVISIONS = (
    _row("multiple-in-a-division", "(N * M + p) // N", "M + p // N", "Euclid", piecewise.floor_division,
         domain=("0 < N",), wrong=("(N * M + p) // N", "M + p", "p is divided too")),
    _row("quotient-of-a-remainder", "(N * M + p) // N", "M", "Euclid", piecewise.floor_division,
         ("0 <= p", "a negative number gives -1 more"), ("p < N", "a number of N or more gives 1 more")),
    _row("quotient-of-a-quotient", "p // N // M", "p // (N * M)", "Graham, Knuth, Patashnik 1994, 3.11",
         piecewise._nested, ("M > 0", POSITIVE), domain=("N > 0",)),
    _row("common-factor-of-a-quotient", "(N * M + p) // (N * 2)", "M // 2", "Graham, Knuth, Patashnik 1994, 3.11",
         piecewise._coarse, ("0 <= p", "a negative number may give 1 less"), ("p < N", "a larger one may give more")),
)  # fmt: skip
FUNCTIONS = (
    _row("exp-of-a-difference", "exp(a - b)", "exp(a) / exp(b)", "homomorphism", algebra.exponential,
         wrong=("exp(a * b)", "exp(a) * exp(b)", "that is exp of the sum")),
    _row("root-of-a-square", "sqrt(a * a)", "a", "definition", algebra.root_by_fact,
         ("a >= 0", "a root is not negative")),
    _row("root-of-a-square-of-a-sum", "sqrt(a * a + 2 * a * b + b * b)", "-a - b", "definition", algebra.root_by_fact,
         ("a + b <= 0", "a root is not negative")),
    _row("log-of-a-square", "log(a * a)", "2 * log(-a)", "homomorphism", algebra.logarithm,
         domain=("a < 0",), wrong=("log(a * a)", "log(-a)", "the square becomes a factor")),
    _row("root-of-a-product", "sqrt(a * exp(b))", "sqrt(a) * exp(b / 2)", "definition", Algebra._root,
         wrong=("sqrt(a * exp(b))", "sqrt(a) * exp(b)", "the root of exp(b) is exp(b / 2)")),
    _row("log-of-a-product", "log(a * exp(b))", "log(a) + b", "homomorphism", algebra.logarithm,
         wrong=("log(a + exp(b))", "log(a) + b", "it is a sum")),
    _row("exp-of-a-logarithm", "exp(2 * log(a) + b)", "a * a * exp(b)", "homomorphism", algebra.raised,
         domain=("a > 0",), wrong=("exp(2 * log(a))", "2 * a", "a factor becomes a power")),
    _row("factor-cancelled", "a * b / b", "a", "field", Algebra._power,
         wrong=("(a + b) / b", "a", "b does not divide the sum")),
    _row("ceiling-as-floor", "ceil(a)", "-floor(-a)", "duality", whole_numbers.rounded,
         wrong=("ceil(a)", "floor(-a)", "it has the other sign")),
    _row("whole-addend-of-a-floor", "floor(a + p)", "floor(a) + p", "Graham, Knuth, Patashnik 1994, 3.6",
         whole_numbers.rounded, wrong=("floor(a + b)", "floor(a) + b", "b is not whole")),
    _row("remainder-of-reals", "fmod(a, b)", "a - b * trunc(a / b)", "definition", whole_numbers.remainder,
         domain=("b > 0",), wrong=("fmod(a, b)", "a - b * floor(a / b)", "that has the sign of b")),
    _row("hyperbolic-tangent", "tanh(a)", "1 - 2 / (exp(2 * a) + 1)", "definition", algebra.raised,
         wrong=("tanh(a)", "1 - 2 / (exp(a) + 1)", "that is the tangent of a / 2")),
)  # fmt: skip
BOTH = "amax(i, x[i])", "amax(j, y[j])"
ANY = ("1 <= N",)  # the maximum of nothing is no number, and no index
SUMS = (
    _row("moves-out-of-a-sum", "sum(i, a * x[i])", "a * sum(i, x[i])", "distributive law", sums._sum_of,
         wrong=("sum(i, y[i] * x[i])", "y[0] * sum(i, x[i])", "y[i] changes with i")),
    _row("inner-sum-joins", "sum(i, x[i] * sum(j, z[i, j]))", "sum(j, sum(i, x[i] * z[i, j]))", "distributive law",
         sums._sum_of, wrong=("sum(i, x[i] * y[i])", "sum(i, x[i]) * sum(i, y[i])", "that has all pairs")),
    _row("sum-of-sums", "sum(i, x[i] + y[i])", "sum(i, x[i]) + sum(i, y[i])", "linearity", sums.sum_over,
         wrong=("sum(i, x[i] + a)", "sum(i, x[i]) + a", "a is added for each i")),
    _row("sum-of-what-does-not-change", "sum(i, a)", "N * a", "counting", sums._counted,
         ("0 <= N", "there are no N addends, but none")),
    _row("sum-with-one-value", "sum(i, where(i == p, x[i], 0))", "x[p]", "sifting", variables.pinned,
         ("0 <= p", "no i is p"), ("p < N", "no i is p")),
    _row("sum-that-is-shifted", "sum(i, x[i + p])", _over("sum", "p", "N + p", "x[v]"), "change of variables",
         variables.shifted, wrong=("sum(i, x[i + p])", _over("sum", "0", "N", "x[v]"), "other elements are read")),
    _row("windows-merge", "sum(j, sum(i, x[j * N + i]))", _over("sum", "0", "N * M", "x[v]"), "Euclid",
         variables.merged, ("0 < N", "two negative sizes have a positive product")),
    _row("sum-by-rows", "sum(r, z[r // N, r % N])", "sum(j, sum(i, z[j, i]))", "Euclid", sums.by_rows,
         ("0 < N", "two negative sizes have a positive product")),
    _row("adjacent-ranges", f"{_over('sum', '0', 'p', 'x[v]')} + {_over('sum', 'p', 'N', 'x[v]')}", "sum(i, x[i])",
         "additivity", equality.cancels, ("0 <= p", "elements before the first are in the second sum"),
         ("p <= N", "elements after the last are in the first sum")),
    _row("condition-of-an-inner-sum", "sum(i, x[i] * sum(j, where(i < p, z[i, j], 0)))",
         "sum(i, where(i < p, x[i] * sum(j, z[i, j]), 0))", IVERSON, sums._loosened,
         wrong=("sum(i, x[i] * sum(j, where(i < p, z[i, j], 0)))", "sum(i, x[i] * sum(j, z[i, j]))", "it is lost")),
    _row("few-values-opened", f"exp({_over('sum', 'p', 'p + 2', 'x[v]')})", "exp(x[p] + x[p + 1])", "definition",
         unrolling.unrolled,
         wrong=(f"exp({_over('sum', 'p', 'p + 2', 'x[v]')})", "exp(x[p] + x[p + 2])", "p + 2 is outside")),
    _row("products-of-sums", "sum(i, x[i]) * sum(j, y[j])", "sum(i, sum(j, x[i] * y[j]))", "distributive law",
         sums._sum_of, wrong=("sum(i, x[i]) * sum(i, y[i])", "sum(i, x[i] * y[i])", "pairs of two i are lost")),
)  # fmt: skip
EXTREMA = (
    _row("maximum-that-is-shifted", "amax(i, x[i] + a)", "amax(i, x[i]) + a", "translation", maximum._single,
         domain=ANY, wrong=("amax(i, x[i] + y[i])", "amax(i, x[i]) + amax(i, y[i])", "not at one i")),
    _row("maximum-that-is-scaled", "amax(i, k * x[i])", "k * amax(i, x[i])", "monotony", maximum._single,
         ("0 < k", "by a negative number it becomes a minimum"), domain=ANY),
    _row("addend-of-all-elements", f"max({BOTH[0]} + a, {BOTH[1]} + a)", f"max({', '.join(BOTH)}) + a",
         "translation", maximum._common, wrong=(f"max({BOTH[0]} + a, {BOTH[1]} + b)", f"max({', '.join(BOTH)}) + a",
         "the addends differ")),
    _row("factor-of-all-elements", f"max(k * {BOTH[0]}, k * {BOTH[1]})", f"k * max({', '.join(BOTH)})", "monotony",
         maximum._scaled_set, ("0 < k", "by a negative number it becomes a minimum")),
    _row("minimum-as-maximum", "amin(i, x[i])", "-amax(i, -x[i])", "duality", maximum.extremum,
         wrong=("amin(i, x[i])", "-amax(i, x[i])", "that is the least of -x")),
    _row("maximum-of-exponentials", "amax(i, exp(x[i]))", "exp(amax(i, x[i]))", "monotony", maximum._of_exponent,
         ("1 <= N", "over nothing one is -inf, the other exp(-inf) = 0")),
    _row("maximum-of-what-does-not-change", "amax(i, a)", "a", "idempotence", maximum.inhabited,
         ("1 <= N", "over nothing it is -inf")),
    _row("largest-of-numbers", f"max({BOTH[0]}, s, amax(j, t))", f"max({BOTH[0]}, t)", "lattices",
         maximum.extremum, ("s <= t", "s may be the largest"), domain=("1 <= M",)),
    _row("number-that-is-reached", "max(amax(i, x[i] ** 2), s)", "amax(i, x[i] ** 2)", "lattices", maximum._reaches,
         ("s <= 0", "all elements may be less"), ("1 <= N", "over nothing s is the largest")),
)  # fmt: skip
INDICES = (
    _row("index-that-is-shifted", "argmax(i, x[i + p])", f"{_over('argmax', 'p', 'N + p', 'x[v]')} - p",
         "change of variables", maximum.index_of_maximum, domain=ANY,
         wrong=("argmax(i, x[i + p])", _over("argmax", "p", "N + p", "x[v]"), "it starts at p")),
    _row("index-of-a-multiple", "argmax(i, k * x[i])", "argmax(i, x[i])", "monotony", maximum.index_of_maximum,
         ("0 < k", "it is the index of the minimum"), domain=ANY),
    _row("index-of-a-minimum", "argmin(i, x[i])", "argmax(i, -x[i])", "duality", maximum.index_of_maximum,
         domain=ANY, wrong=("argmin(i, x[i])", "argmax(i, x[i])", "that is the index of the maximum")),
    _row("index-in-a-part", "argmax(i, x[i])", _over("argmax", "0", "p", "x[v]"), "ours", argmax._is_at,
         ("p < N", "the first part is larger than the whole"),
         (f"{_over('amax', '0', 'p', 'x[v]')} >= {_over('amax', 'p', 'N', 'x[v]')}", "it may be in the rest"),
         domain=("1 <= p",)),
)  # fmt: skip
TAKEN = _over("prod", "0", "p + 1", "x[v]"), f"{_over('prod', '0', 'p', 'x[v]')} * x[p]"
FACTORS = (
    _row("product-of-products", "prod(i, x[i] * y[i])", "prod(i, x[i]) * prod(i, y[i])", "commutativity",
         product.product_over, wrong=("prod(i, x[i] + y[i])", "prod(i, x[i]) + prod(i, y[i])", "a sum does not split")),
    _row("product-of-exponentials", "prod(i, exp(x[i]))", "exp(sum(i, x[i]))", "homomorphism", product.product_over,
         wrong=("prod(i, exp(x[i]))", "exp(prod(i, x[i]))", "exponents are added")),
    _row("product-of-what-does-not-change", "prod(i, k)", "exp(N * log(k))", "homomorphism", product.product_over,
         ("0 <= N", "over nothing it is 1"), domain=("0 < k",)),
    _row("last-factor", *TAKEN, "definition", product._last, ("0 <= p", "p is not an element of the product")),
)  # fmt: skip
IDENTITIES = (*PRODUCTS, *CHOICES, *DIVISIONS, *FUNCTIONS, *SUMS, *EXTREMA, *INDICES, *FACTORS)

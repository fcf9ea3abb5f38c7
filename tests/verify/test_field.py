"""The field domain: its laws, and whole kernels tested in it, each with twins that must not pass."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from operators import FILES, cases

from trilift.lift.capture.run import capture
from trilift.lift.pytorch.read import read_case
from trilift.lift.runtime.budget import BUDGETS, count
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis
from trilift.verify.fields import identity_test
from trilift.verify.fields import residues as Z
from trilift.verify.fields.field import Field
from trilift.verify.fields.identity_test import check, equal_formulas, pair
from trilift.verify.fields.pairs import Modes, Redraw
from trilift.verify.fields.rational_constants import Constants, NoRoot, has_root, rational


def field(seed: int = 0, **modes: bool) -> Field:
    return Field(np.random.default_rng(seed), Modes(**modes))


def same(a: Any, b: Any) -> bool:
    return bool((a["p"] == b["p"]).all() and (a["p"] >= 0).all())


def corpus(stem: str, name: str) -> Any:
    path = next(f for f in FILES if f.stem == stem)
    return next(c for c in cases(path) if c.name == name)


# ---- residues --------------------------------------------------------------------------------------------------------


def test_residues_are_those_of_python() -> None:
    rng = np.random.default_rng(1)
    for m in (998244353, 2**49 - 81, 2**50 - 27):
        a, b = rng.integers(0, m, 500), rng.integers(0, m, 500)
        a[:3], b[:3] = m - 1, (m - 1, 0, 1)
        exact = [int(x) * int(y) % m for x, y in zip(a, b, strict=True)]
        assert Z.multiply(a, b, m).tolist() == exact
        assert Z.power(a[:20], 12345, m).tolist() == [pow(int(x), 12345, m) for x in a[:20]]
        left, right = a.reshape(20, 25), b.reshape(25, 20)
        product = (left.astype(object) @ right.astype(object)) % m
        assert (Z.matmul(left, right, m) == product.astype(np.int64)).all()
        assert Z.total(a, 0, m) == sum(map(int, a)) % m
    assert [n for n in range(60) if Z.is_prime(n)][-3:] == [47, 53, 59]
    assert not Z.is_prime(3215031751) and Z.is_prime(2**61 - 1)


def test_primes_and_root_of_unity() -> None:
    d = field()
    assert Z.is_prime(d.p) and Z.is_prime(d.q) and (d.p - 1) % d.q == 0
    assert d.omega != 1 and pow(d.omega, d.q, d.p) == 1


# ---- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_laws_of_the_domain(seed: int) -> None:
    d = field(seed)
    a, b, c = (d.draw((7,)) for _ in range(3))
    do = d.apply
    assert same(do("exp", do("add", a, b)), do("mul", do("exp", a), do("exp", b)))
    assert not same(do("exp", do("mul", a, b)), do("mul", do("exp", a), do("exp", b)))
    assert same(do("exp2", do("mul", a, math.log2(math.e))), do("exp", a))
    assert same(do("mul", do("div", a, b), b), a) and not same(do("div", a, b), do("div", b, a))
    assert same(do("mul", a, do("add", b, c)), do("add", do("mul", a, b), do("mul", a, c)))
    assert same(do("sub", a, a), d.reals(np.zeros(7)))
    assert same(do("tanh", a), do("div", do("expm1", do("add", a, a)), do("add", do("exp", do("add", a, a)), 1.0)))
    assert same(do("erf", do("neg", a)), do("neg", do("erf", a))) and same(do("abs", do("neg", a)), do("abs", a))
    assert not same(do("erf", a), do("erf", b)) and not same(do("erf", a), do("sin", a))
    assert same(do("pow", a, 3.0), do("mul", a, do("mul", a, a)))


@pytest.mark.parametrize("order", [False, True])
def test_laws_of_the_maximum(order: bool) -> None:
    d = field(order=order)
    a, b, c = (d.draw((9,)) for _ in range(3))
    top = lambda *xs: d.apply("max", *xs)  # noqa: E731
    assert same(top(top(a, b), c), top(c, top(b, a))) and same(top(a, a), a)
    assert same(top(top(a, b), a), top(a, b)) and same(top(a, -np.inf), a)
    assert same(d.fold("amax", np.stack([a, b, c]), 0), top(a, top(b, c)))
    assert not same(top(a, b), top(a, c)) and not same(top(a, top(b, c)), top(a, b))
    assert (top(a, np.inf)["v"] == np.inf).all()


def test_infinities_and_undefined_values() -> None:
    d = field()
    a = d.draw((3,))
    gone = d.apply("exp", d.apply("sub", -np.inf, a))
    assert same(gone, d.reals(np.zeros(3))) and same(d.apply("add", a, gone), a)
    assert (d.apply("mul", a, np.nan)["p"] < 0).all()
    assert same(d.apply("where", np.ones(3, bool), a, np.nan), a)
    with pytest.raises(Redraw):
        d.apply("recip", d.apply("sub", a, a))


def test_logarithm_is_one() -> None:
    d = field(logs=True)
    a, b = d.apply("exp", d.draw((4,))), d.draw((4,))
    log = lambda x: d.apply("log", x)  # noqa: E731
    x = d.draw((4,))
    assert (log(d.apply("exp", x))["q"] == x["q"]).all()
    assert (log(d.apply("mul", a, b))["q"] == d.apply("add", log(a), log(b))["q"]).all()
    assert not (log(b)["q"] == log(a)["q"]).any()


def test_constants_are_what_was_meant() -> None:
    assert [rational(float(np.float32(v))) for v in (0.1, 1 / 3, 0.044715)] == [
        rational(v) for v in (0.1, 1 / 3, 0.044715)
    ]
    assert rational(math.pi) is None and rational(math.sqrt(2)) is None
    rng, d = np.random.default_rng(0), field()
    n = next(k for k in range(2, 99) if has_root(k, d.p) and has_root(k, d.q) and math.isqrt(k) ** 2 != k)
    c = Constants(d.p, d.q, rng)
    root, inverse = c.pair(math.sqrt(n)), c.pair(1 / math.sqrt(n))
    assert root[0] * root[0] % d.p == n and root[0] * inverse[0] % d.p == 1 and root[1] * inverse[1] % d.q == 1
    assert c.pair(0.3712931) != c.pair(0.3712932)
    odd = next(k for k in (2, 3, 5, 7, 11, 13, 17, 19, 23) if not has_root(k, d.p))
    with pytest.raises(NoRoot):
        c.pair(math.sqrt(odd))


def test_fields_and_inputs_change_with_the_seed() -> None:
    first, again, other = field(3), field(3), field(4)
    x, y, z = (d.draw((50,)) for d in (first, again, other))
    assert (first.p, first.q, first.omega, first.key) == (again.p, again.q, again.omega, again.key)
    assert (x == y).sum() == 0 or (x["p"] == y["p"]).all()
    assert first.q != other.q and first.p != other.p and first.omega != other.omega and first.key != other.key
    assert not (x["p"] == z["p"]).any() and len(set(x["p"].tolist())) == 50
    assert (np.diff(np.diff(x["p"])) != 0).any(), "inputs that count up"


# ---- formulas --------------------------------------------------------------------------------------------------------

N = Axis("n", T.size("N"))
X = T.read("x", [T.axis(N)])
Y = T.read("y", [T.axis(N)])


def formula(t: T.Term) -> Formula:
    return Formula("out", (N,), t, "f32")


def test_formulas() -> None:
    exp = lambda t: T.make("exp", t)  # noqa: E731
    total, top = T.fold("sum", N, exp(X)), T.fold("amax", N, X)
    stable = exp(X - top) / T.fold("sum", N, exp(X - top))
    assert equal_formulas(formula(exp(X) / total), formula(stable)).tested
    assert equal_formulas(formula(exp(X) / total), formula(exp(X) / (total + 1))).equal is False
    assert equal_formulas(formula((X + Y) * (X - Y)), formula(X * X - Y * Y)).tested
    assert equal_formulas(formula((X + Y) * (X - Y)), formula(X * X + Y * Y)).equal is False
    log = T.make("log", total)
    shifted = T.make("log", T.fold("sum", N, exp(X - top))) + top
    assert equal_formulas(formula(X - log), formula(X - shifted)).tested
    assert equal_formulas(formula(X - log), formula(X - shifted - top)).equal is False


def test_choices_by_data() -> None:
    """Half of the samples see one branch: many samples are needed, and ties are among them."""
    choice = lambda c, a: formula(T.where(c, X, a))  # noqa: E731
    less, at_most = T.make("lt", X, Y), T.make("le", X, Y)
    found = equal_formulas(choice(less, Y), choice(T.make("not", T.make("le", Y, X)), Y))
    assert found.tested and found.samples > 20
    assert equal_formulas(choice(less, Y), choice(less, Y + 1)).equal is False
    assert equal_formulas(choice(less, Y * 2), choice(at_most, Y * 2)).reason.startswith("no two compared values")


# ---- kernels ---------------------------------------------------------------------------------------------------------


def against(stem: str, name: str, fn: Any = None, **more: Any) -> identity_test.FieldResult:
    c = corpus(stem, name)
    return check(c, read_case(c, fn).formulas, **more)


SIZES: dict[str, dict[str, Any]] = {  # several programs, tiles and masked lanes
    "softmax1": {"M": 3, "N": 5},
    "softmax2": {"M": 2, "N": 7},
    "matmul": {"M": 67, "K": 41, "N": 37},
    "matmul_split_k": {"M": 67, "K": 41, "N": 37},
    "layer_norm": {"M": 2, "N": 67, "eps": 0.25},
    "rms_norm": {"M": 3, "N": 37},
    "gather": {"M": 3, "N": 5, "K": 7},
}
KERNELS = [
    ("softmax", "softmax1"), ("softmax", "softmax2"), ("matmul", "matmul"), ("matmul", "matmul_split_k"),
    ("layer_norm", "layer_norm"), ("rms_norm", "rms_norm"), ("indexing", "gather"),
]  # fmt: skip


@pytest.mark.parametrize(("stem", "name"), KERNELS)
def test_kernels_pass(stem: str, name: str) -> None:
    found = against(stem, name, dims=SIZES[name])
    assert found.tested and found.bound <= 1e-9, found


def test_no_bound_is_printed_where_integers_were_drawn() -> None:
    """A kernel that is wrong at one other integer passes for certain."""
    (indexed,) = against("indexing", "gather", dims=SIZES["gather"]).outcomes
    assert indexed.tested and indexed.probability is None and "no bound" in indexed.limits
    (real,) = against("softmax", "softmax1", dims=SIZES["softmax1"]).outcomes
    assert real.probability == real.bound and "no bound" not in real.limits


def test_shapes_are_chosen() -> None:
    found = against("binary", "add")
    assert found.tested and found.outcomes[0].samples > 0
    assert against("binary", "add", lambda x, y: x + 2 * y).differs


def test_causal_attention() -> None:
    c = corpus("attention", "attention_causal")
    formulas = read_case(c).formulas
    assert check(c, formulas, target=1e-3, dims={"B": 1, "H": 1, "N": 67, "D": 4}).tested
    whole = corpus("attention", "attention").reference.fn
    unmasked = read_case(c, lambda q, k, v: whole(q, k, v)).formulas
    assert check(c, unmasked, dims={"B": 1, "H": 1, "N": 67, "D": 4}).differs


TWINS: list[tuple[str, str, Any]] = [
    ("softmax", "softmax1", lambda x: torch.exp(x) / (torch.exp(x).sum(-1, keepdim=True) + 1)),  # a term more
    ("softmax", "softmax1", lambda x: torch.softmax(x, 0)),  # the other axis
    ("softmax", "softmax2", lambda x: torch.softmax(x.flip(0), -1)),  # another row
    ("softmax", "softmax2", lambda x: torch.softmax(x * 1.0001, -1)),  # another scale
    ("matmul", "matmul", lambda a, b: a @ b - a[:, :1] * b[:1]),  # a product dropped
    ("rms_norm", "rms_norm", lambda x, w, eps: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)) * w),  # no eps
]


@pytest.mark.parametrize(("stem", "name", "twin"), TWINS)
def test_twins_are_rejected(stem: str, name: str, twin: Any) -> None:
    found = against(stem, name, twin, dims=SIZES[name])
    assert found.differs and not found.tested


def test_same_seed_same_result() -> None:
    one, two = (against("softmax", "softmax1", seed=5, dims=SIZES["softmax1"]) for _ in range(2))
    assert one.outcomes == two.outcomes


def test_a_sample_without_end_is_ended_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one sample of a long kernel takes as many steps as it likes; what is unfinished has no bound."""
    case = corpus("softmax", "softmax1")
    few = replace(BUDGETS, fields=replace(BUDGETS.fields, overrun_steps=10))
    monkeypatch.setattr(identity_test, "BUDGETS", few)
    (found,) = check(case, read_case(case).formulas, steps=10).outcomes
    assert found.equal is None
    assert found.reason.startswith("out of steps: the field test with its last samples may take 20 at ")


def test_a_difference_is_open_while_another_reading_is_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_shape(setup: Any, names: list[str], modes: Any, seed: list[int], target: float, meter: Any) -> Any:
        if seed[1] == 0:
            return {"out": identity_test.Outcome("out", False, 1, 1.0, "differs in the field")}
        count("operation", 1000)
        return {"out": identity_test.Outcome("out", None, reason="out of steps")}

    monkeypatch.setattr(identity_test, "_at_shape", at_shape)
    monkeypatch.setattr(identity_test, "MODES", identity_test.MODES[:2])
    (found,) = identity_test.sides(None, None, {}, ["out"], steps=10).outcomes  # type: ignore[arg-type]
    assert found.equal is None and found.reason == identity_test.UNFINISHED


def test_two_kernels() -> None:
    c = corpus("softmax", "softmax1")
    dims = {"M": 3, "N": 5}
    traces = [capture(corpus("softmax", n), dims) for n in ("softmax1", "softmax2", "log_softmax")]
    assert pair(c, traces[0], traces[1]).tested
    assert pair(c, traces[0], traces[2]).differs


def test_a_kernel_that_cannot_be_tested_says_why() -> None:
    c = corpus("choice", "argmax")
    found = check(c, read_case(c).formulas, dims={"M": 3, "N": 5})
    assert not found.tested and all(o.reason or o.bound > identity_test.MEANINGFUL for o in found.outcomes)


@pytest.mark.parametrize("second", ["sub", "mul", "max"])
def test_denominators_that_differ_are_told_apart(second: str) -> None:
    """1 / (a + b) + 1 / (a - b) has the denominator (a + b) (a - b): the degrees add up."""
    from trilift.verify.fields.error_bound import Weights

    d = Weights(Modes())
    a, b = d.draw((1,)), d.draw((1,))
    x, y = (d.apply("recip", d.apply(op, a, b)) for op in ("add", second))
    assert d.apply("add", x, x)["m"] == x["m"] == 1
    assert d.apply("add", x, y)["m"] == x["m"] + y["m"]


@pytest.mark.parametrize(("op", "part"), [("log2", "m"), ("log10", "m"), ("exp10", "e")])
def test_irrational_factors_have_a_degree(op: str, part: str) -> None:
    """log2(a) = log(a) / log(2), where log(2) is a random element."""
    from trilift.verify.fields.error_bound import Weights

    d = Weights(Modes())
    a = d.draw((1,))
    assert d.apply(op, a)[part] > d.apply("exp" if op == "exp10" else "log", a)[part]


def test_pi_is_no_fraction() -> None:
    """355 / 113 is within a rounding of float32's pi, which is not what it rounds to."""
    single = float(np.float32(math.pi))
    assert rational(single) is None
    assert rational(float(np.float32(355 / 113))) == Fraction(355, 113)

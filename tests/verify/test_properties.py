"""Laws of formulas: those of the operators hold on numbers, what is no law is not emitted, every trial can fail."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from formulas import closed, terms
from hypothesis import HealthCheck, given, settings
from operators import FILES, cases

from trilift.lift.cases.declaration import Case, make_case
from trilift.lift.language.evaluate import evaluate
from trilift.lift.language.parse import formula
from trilift.lift.pytorch.symbolic_tensor import type_of_name
from trilift.lift.replay.check import arguments, arrays
from trilift.lift.replay.reference import values
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term
from trilift.verify.properties import laws as module
from trilift.verify.properties.equations import scaled
from trilift.verify.properties.laws import KINDS, Property, check, properties
from trilift.verify.properties.symmetries import canonical
from trilift.verify.runs.goals import targets
from trilift.verify.runs.readings import holds

OPERATORS = [f for f in FILES if f.parent.name == "operators"]
EXACT = 1e-6
SIZES = ([2, 3, 4, 5, 3], [1, 4, 1, 3, 1], [4] * 9)


def made(text: str, where: str = "True", **specs: Any) -> tuple[Case, Formula]:
    """A case whose only output is the formula."""
    parameters = ", ".join(specs)
    c = make_case("f", eval(f"lambda {parameters}: None"), specs, where)
    dims = {n: c.dims(n) for n in c.tensors}
    return c, formula(text, dims, {n: type_of_name(s.dtype) for n, s in c.tensors.items()})


def laws(text: str, where: str = "True", **specs: Any) -> dict[str, list[Property]]:
    """The laws of a formula by kind."""
    c, f = made(text, where, **specs)
    out: dict[str, list[Property]] = {}
    for p in properties(c, [f]):
        out.setdefault(p.kind, []).append(p)
    return out


def numbers(c: Case, f: Formula, dims: Mapping[str, int | float]) -> Any:
    def call(args: Mapping[str, np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(evaluate(f.term, f.axes, args, dims)).astype(np.float64)

    return call


def shapes(c: Case) -> list[dict[str, int | float]]:
    """Small sizes, several of them 1, all the same."""
    from trilift.lift.cases.shapes import choose

    first = choose(c, 1, 5)[0]
    tried = ({**first, **dict(zip(c.names, sizes, strict=False))} for sizes in SIZES)
    return [d for d in tried if c.holds(d)] or [first]


# ---- the operators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", OPERATORS, ids=lambda f: f.stem)
def test_the_laws_of_the_operators_hold(path: Any) -> None:
    """On the reference itself, in float64."""
    wrong, tried = [], 0
    for c in cases(path):
        goal = targets(c)
        found = properties(c, list(goal.formulas.values()), goal.conditions)
        assert found or c.name == "zeros", c.name
        for dims in shapes(c):
            if not all(holds(x, dims) for x in goal.conditions):
                continue
            args = arguments(c, dims, 3)
            calls = {name: outputs(c, args, name) for name in goal.formulas}
            for p in found:
                deviation = check(p, calls[p.output], arrays(c, args), np.random.default_rng(11))
                tried += deviation is not None
                if deviation is not None and not deviation <= EXACT:
                    wrong.append((c.name, p.law, dict(dims), deviation))
    assert not wrong
    assert tried


def outputs(c: Case, args: Mapping[str, Any], name: str) -> Any:
    """An output of the reference as a function of the arrays."""
    import torch

    known: dict[tuple[bytes, ...], np.ndarray] = {}

    def call(given: Mapping[str, np.ndarray]) -> np.ndarray:
        key = tuple(x.tobytes() for x in given.values())
        if key not in known:
            mine = {n: torch.from_numpy(np.array(given[n])) if n in given else v for n, v in args.items()}
            assert c.reference.fn is not None
            found = values(c, c.reference.fn, mine)
            known[key] = found[name] if name in found else next(iter(found.values()))
        return known[key]

    return call


EMITTED = {
    "softmax1": {"shift", "sums", "bounded", "equivariant", "independent"},
    "logsumexp": {"shift", "invariant", "monotone"},
    "relu": {"homogeneous", "idempotent", "bounded", "monotone"},
    "attention": {"invariant", "additive", "shift", "even"},
    "attention_causal": {"causal", "additive"},
    "cumsum": {"causal", "additive"},
    "suffix_sum": {"anticausal"},
    "conv1d": {"causal"},
    "tril": {"additive", "idempotent"},
    "rms_norm": {"odd", "additive"},
    "layer_norm": {"shift", "odd", "even", "additive"},
    "variance": {"shift", "homogeneous", "even", "bounded"},
    "matmul": {"additive", "invariant", "equivariant", "independent"},
    "abs": {"idempotent", "even", "homogeneous"},
    "quantise_rows": {"homogeneous", "odd"},
    "one_hot": {"sums", "bounded"},
    "log_softmax": {"idempotent", "shift"},
    "embedding": {"additive", "independent", "equivariant"},
}
ABSENT = {
    "softmax1": {"additive", "homogeneous", "odd", "even", "causal", "idempotent", "monotone"},
    "attention": {"causal", "anticausal", "homogeneous", "idempotent", "bounded", "sums"},
    "attention_causal": {"anticausal"},
    "rms_norm": {"homogeneous", "shift", "sums", "monotone"},
    "layer_norm": {"homogeneous", "sums", "invariant"},
    "cumsum": {"anticausal", "invariant", "bounded", "idempotent"},
    "gelu": {"odd", "even", "homogeneous", "monotone", "additive", "idempotent", "bounded"},
    "silu": {"odd", "even", "homogeneous", "monotone", "additive", "idempotent", "bounded"},
    "exp": {"homogeneous", "additive", "shift", "odd"},
    "cross_entropy": {"additive", "homogeneous", "monotone"},
    "dropout": {"equivariant", "invariant", "shift"},
    "tril": {"equivariant", "invariant"},
    "argmax": {"shift", "invariant", "additive"},
}


@pytest.mark.parametrize("name", sorted({*EMITTED, *ABSENT}))
def test_kinds_of_laws(name: str) -> None:
    c = next(c for f in OPERATORS if name in f.read_text() for c in cases(f) if c.name == name)
    goal = targets(c)
    kinds = {p.kind for p in properties(c, list(goal.formulas.values()), goal.conditions)}
    assert kinds >= EMITTED.get(name, set())
    assert not kinds & ABSENT.get(name, set())


# ---- a formula, and one that is nearly the same ----------------------------------------------------------------------

MN = {"x": "f32[M,N]"}
TWINS: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "homogeneous": ("homogeneous", "x / sqrt(mean(x * x, -1))", "x / sqrt(mean(x * x, -1) + 0.001)", MN),
    "homogeneous of a maximum": ("homogeneous", "max(x, 0)", "max(x, 1)", MN),
    "odd": ("odd", "x * abs(x)", "x * abs(x - 1)", MN),
    "odd, by the prover": ("odd", "(exp(x) - exp(-x)) / (exp(x) + exp(-x))", "(exp(x) - exp(-x)) / (exp(x) + 1)", MN),
    "even": ("even", "cos(x) * x * x", "cos(x) * x * x * x * x * x + sin(x)", MN),
    "additive": ("additive", "x - mean(x, -1)", "x - mean(x, -1) + 1", MN),
    "shift": ("shift", "softmax(x, -1)", "softmax(x * x, -1)", MN),
    "shift by rows": ("shift", "amax(x, -1)", "amax(abs(x), -1)", MN),
    "sums": ("sums", "softmax(x, -1)", "exp(x) / (1 + sum(exp(x), -1))", MN),
    "sums to nothing": ("sums", "x - mean(x, -1)", "x - 0.99 * mean(x, -1)", MN),
    "idempotent": ("idempotent", "max(x, 0)", "max(x, 0) * 0.5", MN),
    "idempotent, clamped": ("idempotent", "min(max(x, -1), 1)", "min(max(x, -1), 1) + 1", MN),
    "bounded": ("bounded", "1 / (1 + exp(-x))", "x / (1 + exp(-x))", MN),
    "monotone": ("monotone", "max(x, 0) + exp(x)", "max(x, 0) - exp(x)", MN),
    "independent": ("independent", "y[m] = sum(n, x[m, n])", "y[m] = sum(n, sum(p, x[p, n]) * x[m, 0])",
                    {"x": "f32[M,M]"}),
    "equivariant": ("equivariant", "y[n] = x[n] * 2", "y[n] = x[n] * n", {"x": "f32[N]"}),
    "invariant": ("invariant", "y[] = sum(n, x[n])", "y[] = sum(n, x[n] * n)", {"x": "f32[N]"}),
    "causal": ("causal", "cumsum(x, -1)", "cumsum(x, -1) + mean(x, -1)", MN),
    "anticausal": ("anticausal", "sum(x, -1) - cumsum(x, -1)", "cumsum(x, -1) - sum(x * x, -1)", MN),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_a_law_and_its_twin(name: str) -> None:
    kind, right, wrong, specs = TWINS[name]
    assert kind in laws(right, **specs)
    assert kind not in laws(wrong, **specs)


N = T.size("N")
ROW, OVER = Axis("i", N), Axis("k", N)
i, k = T.axis(ROW), T.axis(OVER)


def guarded(guard: Term) -> dict[str, list[Property]]:
    """The laws of y[i] = sum(k, x[k] where the guard holds)."""
    c, _ = made("x", x="f32[N]")
    f = Formula("y", (ROW,), T.fold("sum", OVER, T.where(guard, T.read("x", [k]), 0)), "f32")
    out: dict[str, list[Property]] = {}
    for p in properties(c, [f]):
        out.setdefault(p.kind, []).append(p)
    return out


@pytest.mark.parametrize(
    ("guard", "kind"),
    [
        (T.make("le", k, i), "causal"),
        (T.make("lt", k, i), "causal"),
        (T.make("le", k, i + 1), None),
        (T.make("le", i, k), "anticausal"),
        (T.make("le", i - 1, k), None),
        (T.make("and", T.make("le", k, i), T.make("lt", i - 3, k)), "causal"),  # a sliding window
        (T.make("or", T.make("le", k, i), T.make("lt", k, 1)), "causal"),
        (T.make("or", T.make("le", k, i), T.make("lt", k, 2)), None),  # a prefix of two that all see
    ],
)
def test_causal_by_one_element(guard: Term, kind: str | None) -> None:
    assert {"causal", "anticausal"} & guarded(guard).keys() == ({kind} if kind else set())


def test_an_index_that_is_permuted_is_no_index() -> None:
    """Rows of w may not be permuted, since ids are numbers of rows; ids may."""
    found = laws("w[ids]", w="f32[V,D]", ids="i64[M] < V")
    moved = {tuple(p.positions.items()) for p in found["equivariant"]}
    assert moved == {(("ids", 0), ("out", 0)), (("w", 1), ("out", 1))}
    assert "invariant" not in found


def test_limits_of_inputs_are_kept() -> None:
    """What is positive is not negated or shifted, what lies between bounds is not scaled."""
    assert {"odd", "shift", "additive", "homogeneous"} & laws("x", x="f32[M,N] > 0").keys() == {"additive"}
    assert not {"odd", "shift", "additive", "homogeneous"} & laws("2 * x", x="f32[M,N] in (0, 1)").keys()
    assert laws("2 * x", x="f32[M,N] in (0, 1)")["bounded"][0].bounds == (0, 2)


def test_two_dimensions_of_one_input_are_not_permuted_apart() -> None:
    """x @ x.T permutes both of its axes with the rows of x: no law of one axis."""
    found = laws("x @ x.T", x="f32[M,K]")
    assert "equivariant" not in found and "independent" not in found
    assert [p.positions for p in found["invariant"]] == [{"x": 1}]


def test_what_replaces_an_element_is_not_replaced_again() -> None:
    """-x for x in exp(-x) is exp(x), whose x stays."""
    c, f = made("exp(-x)", x="f32[M,N]")
    t = scaled(canonical(f).term, ["x"], T.const(-1))
    assert t is T.make("exp", T.read("x", [T.axis(a) for a in canonical(f).axes]))


def test_laws_are_told_in_the_names_of_the_case() -> None:
    c, f = made("softmax(q @ k.T, -1) @ v", q="f32[M,D]", k="f32[N,D]", v="f32[N,E]")
    text = [p.law for p in properties(c, [f])]
    assert "f(k[p], v[p]) = f(k, v)" in text
    assert "f(v + v') = f(v) + f(v')" in text
    assert "f(q)[i] depends on q[i] alone" in text
    assert "f(k + c) = f(k) for c constant along dimension 0" in text
    assert text == [p.law for p in properties(c, [f])]


def test_an_output_in_place_of_an_input() -> None:
    """Positions of an input that is the output as well are those of both."""
    c, _ = made("x", x="f32[M,M]")
    a, b = (Axis(n, T.size("M")) for n in "ab")
    f = Formula("x", (a, b), T.read("x", [T.axis(b), T.axis(a)]), "f32", "x")
    assert not {"independent", "equivariant"} & {p.kind for p in properties(c, [f])}


def test_names_in_laws_are_no_names_of_the_case() -> None:
    c, f = made("p + i * c", p="f32[M]", i="f32[M]", c="f32")
    found = {q.kind: q.law for q in properties(c, [f])}
    assert found["equivariant"] == "f(p[p'], i[p']) = f(p, i)[p']"
    assert found["independent"] == "f(p, i)[i'] depends on p[i'], i[i'] alone"
    assert "p + c'" in found["shift"]


def test_the_maximum_of_nothing_has_no_bounds() -> None:
    """amax(k < N - 1, abs(x[k])) is minus infinity at N = 1."""
    c, _ = made("x", x="f32[N]")
    for size, expected in ((N, {"bounded"}), (N - 1, set())):
        over = Axis("k", size)
        f = Formula("y", (), T.fold("amax", over, T.make("abs", T.read("x", [T.axis(over)]))), "f32")
        assert {p.kind for p in properties(c, [f])} & {"bounded"} == expected


# ---- random formulas -------------------------------------------------------------------------------------------------

SPECS = {"x": "f32[M,N]", "y": "f32[M,N]", "z": "f32[N,M]", "w": "f32[N]", "s": "f32[M]", "u": "f32[K]",
         "h": "f32[M,K]", "g": "f32[K,N]", "eps": "f32 > 0"}  # fmt: skip
FOUND: Counter[str] = Counter()


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(terms(3).map(closed))
def test_what_is_decided_of_random_formulas_holds(f: Formula) -> None:
    """Without what numbers refute being left out before."""
    c, _ = made("x", **SPECS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Subject, "survives", lambda s, p: True)
        found = properties(c, [f], steps=500_000)
    for seed, dims in enumerate(({"M": 3, "N": 4, "K": 2, "eps": 0.5}, {"M": 4, "N": 4, "K": 1, "eps": 2.0})):
        args = arrays(c, arguments(c, dims, seed))
        for p in found:
            FOUND[p.kind] += 1
            deviation = check(p, numbers(c, f, dims), args, np.random.default_rng(seed))
            assert deviation is None or deviation <= EXACT, (p.law, f.term)


def test_random_formulas_had_laws() -> None:
    if not FOUND:  # the test above ran in another process
        test_what_is_decided_of_random_formulas_holds()
    assert len(FOUND) >= 6, FOUND


# ---- every trial can fail --------------------------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((4, 4))
LAWS: dict[str, tuple[Property, Any, Any]] = {
    "independent": (Property("independent", "out", "", ("x",), {"x": 0, "out": 0}), np.exp, lambda x: x - x.mean()),
    "equivariant": (Property("equivariant", "out", "", ("x",), {"x": 1, "out": 1}), np.exp, lambda x: x * np.arange(4)),
    "invariant": (Property("invariant", "out", "", ("x",), {"x": 1}), lambda x: x.sum(1), lambda x: x[:, 0]),
    "causal": (Property("causal", "out", "", ("x",), {"x": 1, "out": 1}), lambda x: x.cumsum(1), lambda x: x[:, ::-1]),
    "anticausal": (Property("anticausal", "out", "", ("x",), {"x": 1, "out": 1}), np.exp, lambda x: x.cumsum(1)),
    "shift": (Property("shift", "out", "", ("x",), {"x": 1}, 1), lambda x: x.max(1), lambda x: abs(x).max(1)),
    "additive": (Property("additive", "out", "", ("x",)), lambda x: x.sum(0), np.abs),
    "homogeneous": (Property("homogeneous", "out", "", ("x",), {}, 2), np.square, lambda x: x * x + 1e-3),
    "odd": (Property("odd", "out", "", ("x",)), np.sin, np.exp),
    "even": (Property("even", "out", "", ("x",)), np.cos, np.exp),
    "sums": (Property("sums", "out", "", (), {"out": 1}, value=1), lambda x: np.full((4, 4), 0.25), np.abs),
    "idempotent": (Property("idempotent", "out", "", ("x",)), lambda x: np.maximum(x, 0), np.sin),
    "bounded": (Property("bounded", "out", "", bounds=(0, math.inf)), np.abs, np.sin),
    "monotone": (Property("monotone", "out", "", ("x",), {}, 1), np.tanh, np.square),
}  # fmt: skip


def test_there_is_a_trial_for_each_kind() -> None:
    assert LAWS.keys() == KINDS.keys()
    assert all(k.name == name and k.change and k.relation for name, k in KINDS.items())


@pytest.mark.parametrize("kind", LAWS)
def test_a_trial_tells_right_from_wrong(kind: str) -> None:
    p, right, wrong = LAWS[kind]
    for f, holds_ in ((right, True), (wrong, False)):
        deviation = check(p, lambda args, f=f: f(args["x"]), {"x": X}, np.random.default_rng(1))
        assert deviation is not None
        assert (deviation <= EXACT) == holds_


def test_a_trial_of_one_slice_says_nothing() -> None:
    p = LAWS["equivariant"][0]
    assert check(p, lambda args: args["x"], {"x": X[:, :1]}, np.random.default_rng(1)) is None

"""What a case is proved against: the formulas of its reference, a text, another kernel; where they are defined."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trilift import case
from trilift.lift import Case, lift
from trilift.lift.cases.declaration import make_case
from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.language.parse import formula
from trilift.lift.printers.text import element_text
from trilift.lift.pytorch.read import Reading
from trilift.lift.replay.check import arguments, arrays
from trilift.lift.replay.reference import deviation, steady, values
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.verify.runs import readings
from trilift.verify.runs.goals import Targets, domain, in_order, matched, targets

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
from operators import FILES, SHAPES, cases, dims_of  # noqa: E402
from test_refute import RIGHT, norm, referenced, scale, softmax, softmax_kernel  # noqa: E402

SCALE, SOFTMAX, NORM, MATMUL = RIGHT
X = {"x": ["M", "N"]}


def with_reference(c: Case, fn: Callable[..., Any]) -> Case:
    return referenced(c.name, c.fn, {"x": "f32[M,N]"} if "M" in c.names else {"x": "f32[N]"}, fn)


# ---- references ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_formulas_of_references_are_what_they_compute(path: Path) -> None:
    """Every operator of the corpus, at a shape that reading did not see."""
    for c in cases(path):
        goal = targets(c, lifted=None)
        dims = dims_of(c, SHAPES[1])
        args = arguments(c, dims, 3)
        expected = values(c, goal.fn, args) if goal.fn else {}
        got = {n: readings.evaluated(f, arrays(c, args), dims) for n, f in goal.formulas.items()}
        for name, e in zip(got, expected.values(), strict=True):
            assert readings.worst(got[name], e, 1e-6) is None, (c.name, name)


def test_written_inputs_have_a_formula() -> None:
    def fn(x: Any) -> Any:
        softmax_kernel[(x.shape[0],)](x, x, x.shape[1], x.stride(0), BLOCK=64, OTHER=-float("inf"))
        return x.sum()

    def reference(x: Any) -> Any:
        x.copy_(x.softmax(-1))
        return x.sum()

    goal = targets(referenced("inside", fn, {"x": "f32[M,N]"}, reference))
    assert list(goal.formulas) == ["out", "x"]
    assert goal.formulas["x"].in_place == "x" and [a.name for a in goal.formulas["x"].axes] == ["m", "n"]


MISFITS: list[tuple[Callable[..., Any], str]] = [
    (lambda x: x.sum(-1), r"out of softmax has shape \[3, 5\], that of the reference is \[3\].*\[M\] at"),
    (lambda x: torch.cat([x, x]), r"has shape \[3, 5\], that of the reference is \[6, 5\]"),
    (lambda x: (x, x), "returns 2 tensors, the function 1"),
    (lambda x: x > 0, "out of softmax is f32, that of the reference is bool"),
]


@pytest.mark.parametrize("k", range(len(MISFITS)))
def test_a_reference_that_does_not_fit_is_told(k: int) -> None:
    fn, message = MISFITS[k]
    with pytest.raises(CaseError, match=message):
        targets(with_reference(softmax("softmax", 0.0), fn))


def test_an_operator_without_a_row_is_told_with_its_place() -> None:
    with pytest.raises(Unsupported) as told:
        targets(with_reference(SCALE, lambda x: torch.linalg.svdvals(x[:, None]).repeat(x.shape[0])))
    assert told.value.place is not None and told.value.place.file == __file__


def test_a_branch_on_a_size_of_1_is_a_condition() -> None:
    fn = lambda x: x * 2 if x.shape[0] > 1 else x  # noqa: E731
    goal = targets(with_reference(SOFTMAX, fn))
    assert [element_text(c) for c in goal.conditions] == ["1 < M"]
    assert targets(with_reference(SOFTMAX, lambda x: x * 2)).conditions == ()


def test_a_reading_that_is_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    right = readings.checked(SOFTMAX, SOFTMAX.reference.fn or len)
    (f,) = right.formulas
    wrong = Formula(f.name, f.axes, f.term + T.read("x", map(T.axis, f.axes)), f.dtype)
    monkeypatch.setattr("trilift.lift.pytorch.read.read_case", lambda *_: Reading((wrong,), ()))
    with pytest.raises(Unsupported, match="differs from what the reference computes"):
        targets(SOFTMAX)


def test_rounding_and_ties_are_no_difference() -> None:
    halves = with_reference(SOFTMAX, lambda x: x.to(torch.bfloat16).softmax(-1))
    assert targets(halves).formulas["out"].axes
    x = {"x": torch.zeros(2, 3, dtype=torch.float64)}
    fn = lambda x: x.argmax(-1)  # noqa: E731
    assert not steady(SOFTMAX, fn, x, values(SOFTMAX, fn, x), 0)["out"].all()
    x = {"x": torch.tensor([[0.0, 5.0, 1.0]], dtype=torch.float64)}
    assert steady(SOFTMAX, fn, x, values(SOFTMAX, fn, x), 0)["out"].all()


def test_deviation() -> None:
    nan, inf = float("nan"), float("inf")
    got, expected = np.array([1.0, nan, nan, inf, inf, 2.0]), np.array([1.0, nan, 1.0, inf, -inf, nan])
    assert list(deviation(got, expected)) == [0, 0, inf, 0, inf, 0]


# ---- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "out[m, n] = exp(x[m, n]) / sum(n, exp(x[m, n]))",
        "y[m, n] = softmax(n, x[m, n])",
        "softmax(x, -1)",
        "exp(x) / sum(exp(x), -1)",
    ],
)
def test_a_text_means_the_output(text: str) -> None:
    goal = targets(SOFTMAX, text=text)
    dims = {"M": 3, "N": 1}
    inputs = arrays(SOFTMAX, arguments(SOFTMAX, dims, 0))
    got = readings.evaluated(goal.formulas["out"], inputs, dims)
    assert goal.against == "text" and got == pytest.approx(np.ones((3, 1)))


def test_constants_of_the_case_have_their_numbers_in_a_text() -> None:
    goal = targets(NORM, against="out[m, n] = layer_norm(n, x[m, n], eps)")
    assert not any(t.op == "scalar" for t in goal.formulas["out"].term.walk())
    with pytest.raises(CaseError, match="epsilon is neither a dimension nor a scalar of case"):
        targets(NORM, text="out[m, n] = layer_norm(n, x[m, n], epsilon)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sum(x, -1)", "that of the text is"),
        ("x.T", "that of the text is"),
        ("a[m, n] = x[m, n]; b[m, n] = x[m, n]", "has no output a"),
        ("out[m, n] = y[m, n]", "cannot read the formula"),
    ],
)
def test_a_text_that_does_not_fit_is_told(text: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        targets(SOFTMAX, text=text)


# ---- another kernel --------------------------------------------------------------------------------------------------


def test_another_kernel_with_other_names() -> None:
    def fn(values: Any) -> Any:
        return SOFTMAX.fn(values)

    other = case(values="f32[A,B]", where="B <= 64")(fn)
    goal = targets(SOFTMAX, other=other)
    (f,) = goal.formulas.values()
    assert goal.also_prove is other and goal.against == "fn"
    assert {t.attr for t in f.term.walk() if t.op == "read"} == {"x"}
    assert [a.size for a in f.axes] == [T.size("M"), T.size("N")]
    assert [element_text(c) for c in goal.conditions] == ["N <= 64"]


def test_what_must_hold_for_signatures_to_agree() -> None:
    host = lambda a, b: a  # noqa: E731
    ours = case(a="f32[M,K]", b="f32[K,N]")(host)
    assert [element_text(c) for c in matched(ours, case(a="f32[M,64]", b="f32[64,N]")(host))[2]] == ["K == 64"] * 2
    assert [element_text(c) for c in matched(ours, case(a="f32[P,P]", b="f32[P,R]")(host))[2]] == ["K == M", "K == M"]
    assert matched(ours, case(a="f32[M,K]", b="f32[K,N]")(host))[2] == []


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"a": "f32[M]", "b": "f32[M,N]"}, r"a of <lambda> is f32\[M, K\] and a of <lambda> is f32\[M\]"),
        ({"a": "i32[M,K]", "b": "f32[K,N]"}, r"and a of <lambda> is i32\[M, K\]"),
        ({"a": "f32[M,K]", "b": 3}, "takes a, b and <lambda> takes a"),
        ({"a": "f16[M,K]", "b": "f32[K,N]"}, "a of <lambda> is f32 and a of <lambda> is f16"),
    ],
)
def test_signatures_that_do_not_fit_are_told(specs: dict[str, Any], message: str) -> None:
    host = lambda a, b: a  # noqa: E731
    with pytest.raises(CaseError, match=message):
        matched(case(a="f32[M,K]", b="f32[K,N]")(host), case(**specs)(host))


def test_a_function_and_the_lifted_formula() -> None:
    def twice(x: Any) -> Any:
        return x + x

    assert targets(SCALE, other=twice).against == "twice"
    lifted = lift(SCALE)
    goal = targets(SCALE, lifted, against="formula")
    assert goal.against == "formula" and goal.fn is None and element_text(goal.formulas["out"].term) == "2 * x[n]"
    bare = case(x="f32[N]")(scale("bare", bound=False).fn)
    assert targets(bare, lift(bare)).against == "formula"
    for options in ({}, {"against": "reference"}):
        with pytest.raises(CaseError, match="reference"):
            targets(bare, **options)


# ---- where a formula is defined --------------------------------------------------------------------------------------

DEFINED = [
    ("x[m, n] / x[m, 0]", {"0 != x[m, 0]", "0 < N"}),
    ("log(x[m, n]) + sqrt(x[m, n])", {"0 < x[m, n]", "0 <= x[m, n]"}),
    ("1 / sqrt(x[m, n])", {"0 < x[m, n]"}),
    ("where(0 < x[m, n], log(x[m, n]), 0)", {"(0 < x[m, n]) | (x[m, n] <= 0)"}),
    ("amax(n, x[m, n])", {"0 < N"}),
    ("softmax(n, x[m, n])", {"0 != sum(n, exp(x[m, n]))"}),
    ("exp(x[m, n]) * x[m, n]", set()),
    ("x[m, n] ** 3", set()),
    ("x[m, n + 1]", {"(0 <= n + 1) & (n + 1 < N)"}),
    ("sum(n, 1 / x[m, n])", {"0 != x[m, n]"}),
]


@pytest.mark.parametrize(("body", "expected"), DEFINED)
def test_domain(body: str, expected: set[str]) -> None:
    f = formula(f"out[m < M, n < N] = {body}", X)
    found = domain(f, {"x": (T.size("M"), T.size("N"))})
    plain = {T.substitute(c, {a: T.axis(T.Axis(a.name.rstrip("'"), a.size)) for a in c.free}) for c in found}
    assert plain == {formula(f"out[m < M, n < N] = {e}", X).term for e in expected}


def test_bound_axes_are_apart_from_those_outside() -> None:
    f = formula("out[m < M, n < N] = x[m, n] / sum(n, 1 / x[m, n])", X)
    inner = next(c for c in domain(f) if "sum" not in str(c))
    assert {a.name for a in inner.free} == {"m", "n'"}


def test_targets_know_the_shapes_of_the_case() -> None:
    goal: Targets = targets(SOFTMAX, text="out[m, n < N] = x[m, min(n + 1, N - 1)]")
    (inside,) = goal.domain("out", SOFTMAX)
    assert inside.op == "and"
    assert targets(norm("norm")).domain("out", NORM)


def test_a_function_gets_the_arguments_of_the_case_in_their_order() -> None:
    """Whatever it calls them: `def rsub(y, x)`."""
    found = make_case("less", lambda x, y: None, {"x": "f32[N]", "y": "f32[N]"})
    x, y = torch.tensor([1.0, 5.0]), torch.tensor([2.0, 3.0])

    def rsub(y: Any, x: Any) -> Any:
        return x - y

    def by_name(a: Any, *, y: Any) -> Any:
        return a - y

    assert in_order(found, rsub)(x=x, y=y).tolist() == (y - x).tolist()
    assert in_order(found, torch.sub)(x=x, y=y).tolist() == (x - y).tolist()
    assert in_order(found, by_name)(x=x, y=y).tolist() == (x - y).tolist()


@pytest.mark.parametrize(("ours", "theirs"), [("f16", "f32"), ("bf16", "f32"), ("f8e5m2", "f16"), ("f32", "f32")])
def test_a_wider_float_has_all_numbers_of_a_narrower_one(ours: str, theirs: str) -> None:
    host = lambda a, b: a  # noqa: E731
    first, second = (case(a=f"{t}[M,K]", b="f32[K,N]")(host) for t in (ours, theirs))
    assert matched(first, second)[2] == []

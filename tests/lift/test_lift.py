"""From case to checked formula, on what the pipeline must bear: strides, aliasing, tuning, cases that are wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from trilift.lift import CaseError, Lifted, NotLifted, Unsupported, lift
from trilift.lift.capture.case_files import load
from trilift.lift.errors import OutOfBounds
from trilift.lift.language.evaluate import NegativeSize, evaluate
from trilift.lift.printers.text import text
from trilift.lift.terms import construct as T

CASES = {c.name: c for c in load(str(Path(__file__).parents[1] / "kernels" / "kernels_lift.py"))}


@cache
def lifted(name: str) -> Lifted:
    return lift(CASES[name])


def formulas(name: str) -> dict[str, str]:
    case, outputs = CASES[name], lifted(name).outputs
    shapes = {n: case.dims(n) for n in case.tensors}
    return {o.name: text(o.formula, shapes) for o in outputs if o.formula}


def error(name: str) -> Exception | None:
    [output] = lifted(name).outputs
    return output.error


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("strided_view", {"out": "x * factor"}),
        ("in_place", {"out": "exp(x)"}),
        ("unreturned", {"x": "exp(x)"}),
        ("tuned", {"out": "-x"}),
        ("composed", {"out": "relu(2 * (x + 1)) - x"}),
        ("chunks", {"out": "sum(x, -1)"}),
    ],
)
def test_formulas(name: str, expected: dict[str, str]) -> None:
    assert formulas(name) == expected


def test_a_view_is_read_through_its_strides() -> None:
    assert formulas("every_other")["out"].startswith("3 * x[")


def test_an_input_that_is_written_says_so() -> None:
    assert [o.raw.in_place for n in ("in_place", "unreturned") for o in lifted(n).outputs if o.raw] == ["x", "x"]


def test_every_configuration_is_checked() -> None:
    assert {c.config for c in lifted("tuned").checks} == {0, 1, 2}


def test_a_configuration_that_computes_something_else_is_no_result() -> None:
    assert isinstance(error("badly_tuned"), NotLifted) and formulas("badly_tuned") == {}


def test_a_formula_that_holds_for_one_chunk_only_is_no_result() -> None:
    assert isinstance(error("only_the_last_chunk"), NotLifted) and formulas("only_the_last_chunk") == {}
    assert max(c.dims["N"] for c in lifted("chunks").checks) > 2 * 512


def test_a_formula_whose_axis_has_less_than_no_elements_is_for_some_sizes_only() -> None:
    padding = T.Axis("i", T.sub(32, T.size("S")))
    ones = T.fold("sum", padding, T.const(1))
    assert evaluate(ones, (), {}, {"S": 32}) == 0 and evaluate(ones, (), {}, {"S": 5}) == 27
    with pytest.raises(NegativeSize, match="-8 elements"):
        evaluate(ones, (), {}, {"S": 40})


def test_reads_beyond_a_tensor_are_found() -> None:
    assert isinstance(error("overrunning"), OutOfBounds)


def test_a_kernel_that_does_not_compile_is_named() -> None:
    e = error("uncompilable")
    assert isinstance(e, Unsupported) and "no_such_name" in str(e)


def test_an_argument_that_fits_nothing_is_named() -> None:
    relations = lifted("unrelated").relations
    assert isinstance(relations, Unsupported) and "factor" in str(relations)


@pytest.mark.parametrize("name", ["impossible"])
def test_shapes_that_cannot_be_are_an_error_of_the_case(name: str) -> None:
    with pytest.raises(CaseError, match="N"):
        lift(CASES[name])


def test_empty_tensors_end_clearly() -> None:
    """No elements: a formula of an empty tensor or an error, never a crash."""
    try:
        outcome = lift(CASES["nothing"])
    except CaseError:
        return
    assert all(o.formula is not None or o.error is not None for o in outcome.outputs)


@pytest.mark.parametrize("stage", ["raw", "simplified"])
def test_a_wrong_formula_is_never_a_result(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """The mutated twin: a stage that returns 1.001 times the formula is caught by the check after it."""
    from trilift.lift.simplify import saturation
    from trilift.lift.synthesis import top_down

    if stage == "raw":
        right = top_down.synthesise

        def wrong(*specs, **options):  # type: ignore[no-untyped-def]
            formula = right(*specs, **options)
            return replace(formula, term=formula.term * 1.001)

        monkeypatch.setattr(top_down, "synthesise", wrong)
    else:
        simple = saturation.simplify

        def wronger(formula):  # type: ignore[no-untyped-def]
            found = simple(formula)
            return replace(found, formula=replace(formula, term=formula.term * 1.001))

        monkeypatch.setattr(saturation, "simplify", wronger)
    [output] = lift(CASES["tuned"]).outputs
    assert output.formula is None and isinstance(output.error, NotLifted)
    assert "differs from what the kernel computes" in output.error.what


def test_same_seed_same_formula_and_stages_are_told() -> None:
    heard: list[str] = []
    again = lift(CASES["composed"], progress=heard.append)
    assert [o.formula for o in again.outputs] == [o.formula for o in lifted("composed").outputs]
    assert heard[:3] == ["capture", "lift", "check"] and "simplify" in heard
    assert set(again.seconds) == {"capture", "lift", "check", "simplify"}


def test_a_time_limit_within_the_compiler_is_no_fault_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton wraps what interrupts it: the kernel would be one that does not compile, for the rest of the process."""
    from trilift.lift.capture.run import capture
    from trilift.lift.ttir import lower

    case = CASES["chunks"]
    monkeypatch.setattr(lower, "_lowered", {})
    passes = lower._passes

    def interrupted(module: object) -> object:
        try:
            raise TimeoutError("1.0 s")
        except TimeoutError as e:
            raise RuntimeError(repr(e)) from None

    monkeypatch.setattr(lower, "_passes", interrupted)
    launch = capture(case, {"M": 3, "N": 5}).launches[0]
    with pytest.raises(TimeoutError):
        launch.module()
    monkeypatch.setattr(lower, "_passes", passes)
    assert capture(case, {"M": 3, "N": 5}).launches[0].module().entry is not None

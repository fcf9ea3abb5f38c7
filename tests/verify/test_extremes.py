"""Extremes and what else the normal form of folds knows: each kernel is proved, and its wrong twin is refuted."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from trilift import lift, verify
from trilift.lift.cases.declaration import Case
from trilift.lift.language.evaluate import evaluate
from trilift.lift.terms import construct as T
from trilift.verify.proof.prover import NEEDS

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_extremes as K  # noqa: E402


def proofs(c: Case, **options: bool) -> dict[str, verify.Proof]:
    return {p.claim.output: p for p in verify.prove(c, timeout=60, **options)}


@pytest.mark.parametrize("right", [right for right, _ in K.PAIRS], ids=lambda c: c.name)
def test_right_is_proved(right: Case) -> None:
    found = proofs(right, fallback=False)
    assert {p.verdict.value for p in found.values()} == {"PROVED"}, {n: p.reason for n, p in found.items()}


@pytest.mark.parametrize("wrong", [wrong for _, wrong in K.PAIRS], ids=lambda c: c.name)
def test_wrong_is_refuted(wrong: Case) -> None:
    found = proofs(wrong)
    assert "REFUTED" in {p.verdict.value for p in found.values()}, {n: p.reason for n, p in found.items()}


@pytest.mark.parametrize(("c", "conditions"), [(K.quantise, 0), (K.quantise_over, 1)])
def test_clamped_integers_need_no_condition(c: Case, conditions: int) -> None:
    """trunc(min(max(x, -127), 127)) fits in eight bits whatever x is. Its formula is compared with the kernel where it
    steps: 63.5 is rounded up or down by the last bit of a quotient."""
    found = verify.prove(c, lifted=lift.lift(c, 0), fallback=False)
    assert [p.verdict.value for p in found] == ["PROVED", "PROVED"], [p.reason for p in found]
    assert [sum("trunc" in clause.text for clause in p.contract) for p in found] == [conditions] * 2
    assert not any(clause.why == NEEDS["nonzero"] for p in found for clause in p.contract)  # 1e-8 or more


def test_every_output_that_is_wrong_is_refuted() -> None:
    """One whose proof is open stays open beside one that is wrong."""
    verdicts = {c.name: [p.verdict.value for p in proofs(c).values()] for c in (K.quantise_other, K.quantise_others)}
    assert verdicts == {"quantise_other": ["UNKNOWN", "REFUTED"], "quantise_others": ["REFUTED", "REFUTED"]}
    elements = [p.counterexample.output for p in proofs(K.quantise_others).values() if p.counterexample is not None]
    assert elements == ["out0", "out1"]


def test_a_formula_without_numbers_is_no_step() -> None:
    """0 / 0 where the kernel stores a number is not what the kernel computes."""
    from dataclasses import replace

    from trilift.lift.capture.run import capture
    from trilift.lift.errors import NotLifted
    from trilift.lift.replay.check import arguments, arrays, meets

    trace = capture(K.gate, {"M": 3, "N": 5})
    inputs = arrays(K.gate, arguments(K.gate, trace.dims, 0))
    right = next(o.formula for o in lift.lift(K.gate, 0).outputs)
    assert right is not None
    numbers = np.asarray(evaluate(right.term, right.axes, inputs, trace.dims))
    assert meets(right, "formula", numbers, trace, inputs).finite == 1
    x = T.read("x", [T.const(0), T.const(0)])
    nothing = T.node("add", (x, T.node("mul", (T.const(-1), x))))
    wrong = replace(right, term=T.add(right.term, T.node("mul", (nothing, T.node("recip", (nothing,))))))
    with pytest.raises(NotLifted):
        meets(wrong, "formula", numbers, trace, inputs)

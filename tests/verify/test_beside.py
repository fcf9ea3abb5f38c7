"""`verify.refutation.beside`: runs beside a proof, on the one table of inputs."""

from __future__ import annotations

import kernels_beside as kernels
import numpy as np
import pytest
import torch
from kernels_rows import MEANT, mistaken

from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.verify.audit import accumulation
from trilift.verify.audit.rules import nan_risk, overflow_risk
from trilift.verify.model.verdict import ELSEWHERE, Clause
from trilift.verify.refutation.beside import contradiction
from trilift.verify.refutation.search import Failure, Passed, Question, attempt
from trilift.verify.runs.adversary import FURTHER, SEARCHED, TABLE, arguments, row
from trilift.verify.runs.goals import Targets, targets
from trilift.verify.runs.input_table import HARD_LAYOUTS, LAYOUTS, ROWS, VALUES
from trilift.verify.runs.layouts import layout


@pytest.mark.parametrize("name", ("wrong_at_zero", "wrong_at_the_least"))
def test_a_run_takes_a_wrong_proof_back(name: str) -> None:
    case = getattr(kernels, name)
    shows = contradiction(case, targets(case), (), ())
    assert shows is not None and shows.left_out is None
    assert shows.found.output == "out" and shows.found.replay


@pytest.mark.parametrize("name", ("right_everywhere", "right_for_positives"))
def test_runs_say_nothing_against_a_right_one(name: str) -> None:
    case = getattr(kernels, name)
    assert contradiction(case, targets(case), (), ()) is None


def test_shapes_outside_of_the_contract_are_not_run() -> None:
    case, never = kernels.wrong_at_zero, T.make("lt", T.size("N"), 1)
    assert contradiction(case, targets(case), (Clause("shape", never, "N < 1"),), ()) is None


def test_what_a_clause_leaves_to_the_host_function_is_run_where_two_choices_meet() -> None:
    """With one element, as every other size would be 1 too, nothing is added to x."""
    clause = Clause("shape", T.make("lt", 1, T.size("K")), "1 < K", ELSEWHERE)
    case, right = kernels.wrong_where_two_choices_meet, kernels.right_where_two_choices_meet
    shows = contradiction(case, targets(case), (clause,), ())
    assert shows is not None and shows.left_out is clause
    assert shows.found.dims["K"] == 1 < shows.found.dims["N"]
    assert contradiction(right, targets(right), (clause,), ()) is None


def test_a_counterexample_stands_at_the_kernel_that_was_launched_there() -> None:
    clause = Clause("shape", T.make("lt", T.size("N"), 300), "N < 300", ELSEWHERE)
    case = kernels.wrong_in_another_kernel
    shows = contradiction(case, targets(case), (clause,), ())
    line = kernels.doubled_kernel.fn.__code__.co_firstlineno
    assert shows is not None and shows.found.place is not None
    assert shows.found.place.file == kernels.__file__ and abs(shows.found.place.line - line) <= 1


def test_a_large_shape_that_a_clause_leaves_out_is_run() -> None:
    clause = Clause("shape", T.make("le", T.size("N"), 100000), "N <= 100000", ELSEWHERE)
    case, right = kernels.wrong_beyond_many, kernels.right_beyond_many
    shows = contradiction(case, targets(case), (clause,), ())
    assert shows is not None and shows.left_out is clause and shows.found.dims["N"] > 100000
    assert contradiction(right, targets(right), (clause,), ()) is None


def test_a_clause_on_values_keeps_runs_out() -> None:
    case = kernels.wrong_at_zero
    assert contradiction(case, targets(case), (Clause("value", None, "x[n] != 0"),), ()) is None


def test_every_kind_of_the_table_can_be_drawn() -> None:
    for k, name in enumerate(TABLE):
        assert row(FURTHER + k).name == name
        x = arguments(kernels.wrong_at_zero, {"N": 9}, FURTHER + k)["x"]
        assert x.shape == (9,) and x.dtype == torch.float64


def test_every_row_is_used_or_says_why_not() -> None:
    ruled = (*nan_risk.KINDS, *overflow_risk.KINDS, *accumulation.KINDS, ROWS["shifted"], ROWS["shifted-narrow"])
    proved = {*SEARCHED, *TABLE}
    users = {"prove": proved, "audit": proved | {r.name for r in ruled}, "write": {*VALUES}}  # audits begin with proofs
    for name, r in ROWS.items():
        assert r.unused.keys() == {who for who, rows in users.items() if name not in rows}, name
        assert all((r.shows, r.words, *r.unused.values()))


def test_numbers_outside_of_the_limits_of_a_case_are_not_put_there() -> None:
    for seed in (*range(len(SEARCHED)), *range(FURTHER, FURTHER + len(TABLE))):
        args = arguments(kernels.limited, {"N": 40}, seed)
        assert bool((args["x"] >= 0).all() and (args["x"] < 1).all() and (args["y"] > 0).all())


@pytest.mark.parametrize("name", MEANT)
def test_a_row_shows_a_mistake_that_random_runs_do_not(name: str) -> None:
    case, dims = mistaken(name), {"M": 3, "N": 11}
    question = Question(
        case, Targets("reference", {"out": Formula("out", (), T.const(0.0), "f32")}, fn=case.reference.fn)
    )
    at = SEARCHED.index(name) if name in SEARCHED else FURTHER + TABLE.index(name)
    assert isinstance(attempt(question, dims, at, 0), Failure)
    for seed in range(0, 4 * len(SEARCHED), len(SEARCHED)):
        assert row(seed).name == "normal" and isinstance(attempt(question, dims, seed, 0), Passed)


@pytest.mark.parametrize("name", (*LAYOUTS, *HARD_LAYOUTS))
def test_a_layout_keeps_the_elements(name: str) -> None:
    x = torch.arange(24.0).reshape(2, 3, 2, 2)
    laid = layout(name)(x)
    assert laid.shape == x.shape
    assert name == "expanded" or np.array_equal(laid.numpy(), x.numpy())

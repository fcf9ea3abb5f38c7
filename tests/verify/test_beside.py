"""`verify.refutation.beside`: runs beside a proof, on the one table of inputs."""

from __future__ import annotations

import kernels_beside as kernels
import numpy as np
import pytest
import torch

from trilift.lift.terms import construct as T
from trilift.verify.model.verdict import Clause
from trilift.verify.refutation.beside import contradiction
from trilift.verify.runs.adversary import FURTHER, TABLE, arguments, kind
from trilift.verify.runs.goals import targets
from trilift.verify.runs.input_table import HARD_LAYOUTS, HARD_VALUES, LAYOUTS, VALUES
from trilift.verify.runs.layouts import layout


@pytest.mark.parametrize("name", ("wrong_at_zero", "wrong_at_the_least"))
def test_a_run_takes_a_wrong_proof_back(name: str) -> None:
    case = getattr(kernels, name)
    found = contradiction(case, targets(case), (), ())
    assert found is not None and found.output == "out" and found.replay


@pytest.mark.parametrize("name", ("right_everywhere", "right_for_positives"))
def test_runs_say_nothing_against_a_right_one(name: str) -> None:
    case = getattr(kernels, name)
    assert contradiction(case, targets(case), (), ()) is None


def test_shapes_outside_of_the_contract_are_not_run() -> None:
    case, never = kernels.wrong_at_zero, T.make("lt", T.size("N"), 1)
    assert contradiction(case, targets(case), (Clause("shape", never, "N < 1"),), ()) is None


def test_a_clause_on_values_keeps_runs_out() -> None:
    case = kernels.wrong_at_zero
    assert contradiction(case, targets(case), (Clause("value", None, "x[n] != 0"),), ()) is None


def test_every_kind_of_the_table_can_be_drawn() -> None:
    for k, name in enumerate(TABLE):
        assert kind(FURTHER + k) == name
        x = arguments(kernels.wrong_at_zero, {"N": 9}, FURTHER + k)["x"]
        assert x.shape == (9,) and x.dtype == torch.float64
    assert set(TABLE) <= {*VALUES, *HARD_VALUES}


@pytest.mark.parametrize("name", (*LAYOUTS, *HARD_LAYOUTS))
def test_a_layout_keeps_the_elements(name: str) -> None:
    x = torch.arange(24.0).reshape(2, 3, 2, 2)
    laid = layout(name)(x)
    assert laid.shape == x.shape
    assert name == "expanded" or np.array_equal(laid.numpy(), x.numpy())

"""Verdicts of combiners whose result depends on the order of elements: neither PROVED nor TESTED."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import kernels_combiners as K
from trilift.corpus.operators import reduce as reduction
from trilift.verify.model.verdict import Verdict
from trilift.verify.pipeline import prove
from trilift.verify.runs.observe import observe
from trilift.verify.runs.races import rebracketed


@pytest.mark.parametrize("name", ["decayed", "difference", "tree_mean", "last_of_ties"])
def test_a_combiner_that_is_not_associative_is_not_tested(name: str) -> None:
    (proof,) = prove(getattr(K, name))
    assert proof.verdict is Verdict.UNKNOWN
    assert "a combiner that is not associative and commutative" in proof.reason


def test_sums_and_maxima_are_in_no_order() -> None:
    run = observe(reduction.sum, {"M": 3, "N": 5}, 0)
    assert run is not None and rebracketed(run) == {}


def test_the_elements_that_change_are_named() -> None:
    run = observe(K.decayed, {}, 0)
    assert run is not None
    assert np.flatnonzero(rebracketed(run)["out"]).tolist() == list(range(2, 8))


def test_a_combiner_that_asks_which_of_two_equal_numbers_is_first_may_be_tested() -> None:
    (proof,) = prove(K.first_of_ties)
    assert proof.verdict is Verdict.TESTED, proof.reason

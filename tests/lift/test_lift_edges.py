"""A formula is tried where no tile is padded, on inputs of one sign, and beside the numbers of the code."""

from pathlib import Path

import numpy as np
import pytest

from trilift.lift import lift
from trilift.lift.capture.case_files import load
from trilift.lift.errors import NotLifted
from trilift.lift.language.evaluate import evaluate
from trilift.lift.pipeline import fixed
from trilift.lift.printers.all import text

CASES = {c.name: c for c in load(str(Path(__file__).parents[1] / "kernels" / "kernels_edges.py"))}
WHERE = {
    "wrong_largest_or_zero": "N = 16",
    "wrong_largest_or_zero_of_128": "N = 128",
    "wrong_at_one_size": "N = 777",
    "wrong_one_size_only": "",
}


@pytest.mark.parametrize("name", WHERE)
def test_a_formula_of_other_sizes_is_no_result(name: str) -> None:
    (out,) = lift(CASES[name]).outputs
    assert out.formula is None and isinstance(out.error, NotLifted)
    assert WHERE[name] in str(out.error.why)


def test_zeros_of_padded_lanes_that_are_always_there_are_in_the_formula() -> None:
    (out,) = lift(CASES["right_relu_of_largest"]).outputs
    assert out.formula is not None and text(out.formula) == "relu(amax(x, -1))"


def test_an_element_is_undefined_only_where_nobody_writes_it() -> None:
    (out,) = lift(CASES["rest_is_unset"]).outputs
    if (f := out.formula) is not None:  # or no formula, which says nothing false
        found = evaluate(f.term, f.axes, {"x": np.ones(128)}, {"N": 128})
        assert not np.isnan(found).any()


def test_a_size_that_the_case_fixes_needs_no_other() -> None:
    assert fixed(CASES["wrong_one_size_only"], [{"N": 2}]) == "N = 2"
    assert fixed(CASES["wrong_one_size_only"], [{"N": 2}, {"N": 3}]) == ""

"""Random inputs of terms."""

from __future__ import annotations

from trilift.lift.language import sample
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis


def test_an_index_that_is_below_zero_everywhere_needs_one_element() -> None:
    n = Axis("n", T.size("N"))
    shifted = T.read("x", (T.sub(T.axis(n), T.const(9)),))
    assert sample.inputs([shifted], {"N": 3})["x"].shape == (1,)
    assert sample.inputs([T.read("x", (T.axis(n),))], {"N": 3})["x"].shape == (3,)

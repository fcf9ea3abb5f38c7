"""Random inputs of terms."""

from __future__ import annotations

import pytest

from trilift.lift.errors import Unsupported
from trilift.lift.language import sample
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis


def test_an_index_that_is_below_zero_everywhere_needs_one_element() -> None:
    n = Axis("n", T.size("N"))
    shifted = T.read("x", (T.sub(T.axis(n), T.const(9)),))
    assert sample.inputs([shifted], {"N": 3})["x"].shape == (1,)
    assert sample.inputs([T.read("x", (T.axis(n),))], {"N": 3})["x"].shape == (3,)


def test_an_index_over_elements_of_the_tensor_itself_has_no_extent() -> None:
    """The rank of an element among those of its row, as where rows are sorted by counting."""
    n, m = Axis("n", T.size("N")), Axis("m", T.size("N"))
    x = T.read("x", (T.axis(n),))
    rank = T.fold("sum", m, T.where(T.make("lt", T.read("x", (T.axis(m),)), x), 1, 0))
    with pytest.raises(Unsupported, match="depend on its elements"):
        sample.inputs([T.read("x", (rank,))], {"N": 3})

"""Values of terms that are found in parts."""

from __future__ import annotations

import numpy as np
import pytest

from trilift.lift.language import evaluate as module
from trilift.lift.language.evaluate import NegativeSize, evaluate
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis

M, N = Axis("m", T.size("M")), Axis("n", T.size("N"))


def row_softmax() -> T.Term:
    """exp(x[m, n]) / sum over n of exp(x[m, n]) plus m, with the axis n also within the sum."""
    power = T.make("exp", T.read("x", (T.axis(M), T.axis(N))))
    return T.add(T.div(power, T.fold("sum", N, power)), T.axis(M))


@pytest.mark.parametrize("most", [1, 10, 100])
def test_parts_have_the_elements_of_the_whole(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dims, x = {"M": 7, "N": 5}, np.random.default_rng(0).normal(size=(7, 5))
    whole = evaluate(row_softmax(), (M, N), {"x": x}, dims)
    monkeypatch.setattr(module, "HELD_ELEMENTS", most)
    assert np.array_equal(evaluate(row_softmax(), (M, N), {"x": x}, dims), whole)
    assert np.allclose(whole.sum(1), 1 + 5 * np.arange(7))


def test_a_part_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    held = list[int]()
    real = module._Evaluation._hold
    monkeypatch.setattr(module, "HELD_ELEMENTS", 50)
    monkeypatch.setattr(
        module._Evaluation, "_hold", lambda self, v: (real(self, v), held.append(self.held_elements))[0]
    )
    evaluate(row_softmax(), (M, N), {"x": np.ones((7, 5))}, {"M": 7, "N": 5})
    assert held and max(held) <= 50


def test_an_axis_of_less_than_no_elements_is_refused() -> None:
    short = Axis("n", T.sub(T.size("N"), T.const(3)))
    with pytest.raises(NegativeSize, match="-1 elements at N = 2"):
        evaluate(T.axis(short), (short,), {}, {"N": 2})

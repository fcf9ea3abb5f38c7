"""Which elements stay when inputs change a little."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch

from trilift import case
from trilift.lift.replay import reference
from trilift.lift.replay.check import Check, Mismatch, compare


@case(x="f32[N] in (0, 1)", y="f32[N]")
def kept(x, y):
    return x, y


def test_a_small_change_stays_within_what_the_case_allows() -> None:
    """A reference that refuses other inputs, as a cross entropy does probabilities above 1."""
    seen = list[torch.Tensor]()

    def strict(x, y):
        if not bool(((x >= 0) & (x <= 1)).all()):
            raise RuntimeError("all elements should be between 0 and 1")
        seen.append(y)
        return x + (y > 0)

    args = {"x": torch.tensor([0.0, 0.5, 1.0]), "y": torch.tensor([0.0, 1.0, -1.0])}
    expected = {"out": strict(**args).numpy().astype(np.float64)}
    good = reference.steady(kept, strict, args, expected, 0)
    assert good["out"].tolist() == [False, True, True]
    assert any(not torch.equal(y.float(), args["y"]) for y in seen)


def test_rounding_of_nothing_is_no_difference() -> None:
    """Outputs that are all 0 but for rounding, as a loss over one class: 7e-19 against 9e-19."""
    trace = SimpleNamespace(dims={"N": 1}, launches=())
    zero = np.zeros(3)
    assert isinstance(compare("out", "raw", zero + 7e-19, zero + 9e-19, trace, 2e-6), Check)
    assert isinstance(compare("out", "raw", zero + 7e-9, zero + 9e-9, trace, 2e-6), Mismatch)

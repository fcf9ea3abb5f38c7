"""Which elements stay when inputs change a little."""

from __future__ import annotations

import numpy as np
import torch

from trilift import case
from trilift.lift.replay import reference


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

"""A size that PyTorch replaces by a number while it reads a reference: the reading stops, it does not assume it."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
import torch

from trilift.lift.errors import Unsupported
from trilift.lift.pytorch.read import reading
from trilift.lift.terms import construct as T

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "index": lambda x: x * operator.index(x.shape[0]),
    "range": lambda x: x * len(range(x.shape[0])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_number_in_place_of_a_size_is_refused(name: str) -> None:
    with pytest.raises(Unsupported, match="replaced by a number"):
        reading(FUNCTIONS[name], {"x": ("f32", (T.size("N"),))})

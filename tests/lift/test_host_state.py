"""Numbers that the host's modules keep: which of them a call has changed."""

import math

import pytest

from trilift.lift.pytorch.host.state import changed

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize(
    ("before", "after", "is_changed"),
    [
        (math.nan, math.nan, False),
        (float("nan"), -float("nan"), False),
        (0.0, -0.0, True),
        (1, True, True),
        (1, 1.0, True),
        (7, 8, True),
        ("a", "a", False),
        (2**70, 2**70, False),
    ],
)
def test_only_another_number_is_a_change(before: object, after: object, is_changed: bool) -> None:
    assert changed({"m:X": before}, {"m:X": after}) == (["X"] if is_changed else [])

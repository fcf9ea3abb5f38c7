"""Scaled rows, recurrences and scans: proved where they are right, never where they are not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from trilift.lift.cases.declaration import Case
from trilift.verify import prove

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_recurrent as K  # noqa: E402


def verdicts(c: Case) -> set[str]:
    return {p.verdict.value for p in prove(c, fallback=False, timeout=60)}


STEPS = "the configurations taken together run out of steps, and where N <= BLOCK the index of a store stays open"
OPEN = {K.blocks_in_a_row.name: STEPS}  # right, and not proved any more


def right(c: Case) -> Any:
    marks = [pytest.mark.xfail(reason=OPEN[c.name], strict=True)] if c.name in OPEN else []
    return pytest.param(c, id=c.name, marks=marks)


@pytest.mark.parametrize("c", map(right, K.RIGHT))
def test_proved(c: Case) -> None:
    assert verdicts(c) == {"PROVED"}


@pytest.mark.parametrize("c", K.WRONG, ids=lambda c: c.name)
def test_never_proved(c: Case) -> None:
    assert "PROVED" not in verdicts(c)

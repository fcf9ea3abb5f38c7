"""Scaled rows, recurrences and scans: proved where they are right, never where they are not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trilift.lift.cases.declaration import Case
from trilift.verify import prove

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_recurrent as K  # noqa: E402


def verdicts(c: Case) -> set[str]:
    return {p.verdict.value for p in prove(c, fallback=False, timeout=60)}


@pytest.mark.parametrize("c", K.RIGHT, ids=lambda c: c.name)
def test_proved(c: Case) -> None:
    assert verdicts(c) == {"PROVED"}


@pytest.mark.parametrize("c", K.WRONG, ids=lambda c: c.name)
def test_never_proved(c: Case) -> None:
    assert "PROVED" not in verdicts(c)

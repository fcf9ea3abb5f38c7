"""What memory holds after launches: proved where it is so, and never where it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trilift.lift.cases.declaration import Case
from trilift.verify import prove

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_memory as K  # noqa: E402


def verdicts(c: Case) -> set[str]:
    return {p.verdict.value for p in prove(c, fallback=False, timeout=20)}


@pytest.mark.parametrize("c", [*K.ATOMICS, *K.STORES, *K.LOADS], ids=lambda c: c.name)
def test_proved(c: Case) -> None:
    assert verdicts(c) == {"PROVED"}


@pytest.mark.parametrize("c", [*K.BAD_ATOMICS, *K.BAD_STORES, *K.BAD_LOADS], ids=lambda c: c.name)
def test_never_proved(c: Case) -> None:
    assert "PROVED" not in verdicts(c)

"""Every identity of the normal form holds, is applied, and fails without each of its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest
from identities_in_numbers import called, compared, shown

from trilift.verify.normal_form.identities import IDENTITIES, Identity, Twin

SAMPLES = 30
TWINS = [(row, twin) for row in IDENTITIES for twin in row.twins]
rows = pytest.mark.parametrize("row", IDENTITIES, ids=lambda row: row.name)
twins = pytest.mark.parametrize(("row", "twin"), TWINS, ids=lambda x: x.name if isinstance(x, Identity) else x.why)


@rows
def test_an_identity_holds(row: Identity) -> None:
    found = [*islice(compared(row.left, row.right, row.given), SAMPLES)]
    assert len(found) == SAMPLES and all(same for same, _ in found)


@rows
def test_an_identity_is_applied_by_the_function_that_it_names(row: Identity) -> None:
    _, numbers = next(compared(row.left, row.right, row.given))
    codes = called(lambda: shown(row.left, row.right, row.given, numbers))
    assert row.apply.__code__ in codes, row.function
    assert shown(row.left, row.right, row.given, numbers)


@twins
def test_a_twin_fails_and_is_not_shown(row: Identity, twin: Twin) -> None:
    """What does not hold must not be shown at the numbers where it fails."""
    numbers = next((n for same, n in compared(twin.left, twin.right, twin.given) if not same), None)
    assert numbers is not None, f"{row.name} holds without that: {twin}"
    assert not shown(twin.left, twin.right, twin.given, numbers)


def test_every_identity_has_a_name_and_a_twin() -> None:
    assert [name for name, n in Counter(row.name for row in IDENTITIES).items() if n > 1] == []
    assert [row.name for row in IDENTITIES if not [*row.twins]] == []


def test_the_list_is_golden(golden: Callable[[str, str], None]) -> None:
    golden("identities.txt", "\n\n".join(f"{row.name}\n{row}".replace("\n", "\n  ") for row in IDENTITIES) + "\n")

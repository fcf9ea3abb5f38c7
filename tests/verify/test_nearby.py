"""Numbers found near others meet all conditions; contradictions have none."""

from __future__ import annotations

import pytest

from trilift.lift.terms import construct as T
from trilift.verify.integers.conditions import question, value
from trilift.verify.integers.model_cache import Numbers, Pool
from trilift.verify.integers.model_search import nearby

M, N, K = (T.size(n) for n in "MNK")
P = T.size("pid0")
TILES = T.make("floordiv", T.add(M, 63), 64)
SIZES = [T.make("le", 1, n) for n in (M, N, K)]
pytestmark = pytest.mark.smoke


@pytest.mark.parametrize(
    ("facts", "goal"),
    [
        (SIZES, T.make("lt", M, 1 << 31)),
        ([*SIZES, T.make("le", 0, P), T.make("lt", P, TILES)], T.make("lt", T.mul(64, P), 1 << 31)),
        ([*SIZES, T.make("eq", M, T.add(N, 3))], T.make("lt", M, 40)),
        ([*SIZES, T.make("or", T.make("lt", M, N), T.make("lt", N, K))], T.make("lt", N, 5)),
        (SIZES, T.make("lt", T.mul(M, N, K), 1 << 20)),
        (SIZES, T.make("eq", T.make("min", M, N), T.make("max", M, K))),
    ],
)
def test_what_is_found_meets_all(facts: list[T.Term], goal: T.Term) -> None:
    literals = question(facts, goal)
    found = nearby(literals, Numbers({}, 1))
    assert found is not None and all(value(t, found) is True for t in literals)
    assert Pool().approached(literals, nearby)


@pytest.mark.parametrize(
    ("facts", "goal"),
    [
        (SIZES, T.make("le", 0, M)),
        ([*SIZES, T.make("le", 0, P), T.make("lt", P, TILES)], T.make("lt", T.mul(64, P), T.add(M, 63))),
        ([T.make("lt", M, N), T.make("lt", N, K)], T.make("lt", M, K)),
    ],
)
def test_a_contradiction_has_none(facts: list[T.Term], goal: T.Term) -> None:
    assert nearby(question(facts, goal), Numbers({}, 1)) is None


def test_boolean_symbols_are_turned() -> None:
    p = T.read("p", (M,), T.BOOL)
    literals = [T.make("le", 1, M), p, T.make("lt", 1, M)]
    found = nearby(literals, Numbers({}, 0))
    assert found is not None and found[p] == 1 and found[M] >= 2

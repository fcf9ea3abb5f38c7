"""Offsets that no lanes make equal."""

from __future__ import annotations

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis
from trilift.verify.memory.lane_order import distant

LANE, OTHER = (T.axis(Axis(n, T.const(1024))) for n in "ij")
N = T.size("N")


def at(constant: int, lane: T.Term, factor: int = 1) -> T.Term:
    return T.add(T.mul(N, 3), T.add(constant, T.mul(factor, lane)))


def test_blocks_beside_one_another_are_distant() -> None:
    assert distant(at(1024, LANE), at(0, OTHER)) and distant(at(0, LANE), at(1024, OTHER))
    assert not distant(at(2046, LANE, -1), at(0, OTHER))  # i = j = 1023
    assert distant(at(2 * 1024, LANE, -1), at(0, OTHER))


def test_blocks_that_meet_are_not() -> None:
    assert not distant(at(1023, LANE), at(0, OTHER))
    assert not distant(at(0, LANE), at(0, OTHER)) and not distant(at(0, LANE, 2), at(1024, OTHER))


def test_offsets_of_other_sizes_are_not_known() -> None:
    assert not distant(T.add(N, LANE), OTHER) and not distant(T.mul(LANE, N), T.add(1024, OTHER))
    assert not distant(T.add(1024, T.axis(Axis("k", N))), OTHER)

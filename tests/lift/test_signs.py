"""Terms as signed and unsigned integers of a width: the numbers that the bits are, for every interval."""

from __future__ import annotations

import math

import pytest

from trilift.lift.interpreter.registry import signed_term, unsigned_term
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.ranges import Interval, Ranges
from trilift.lift.terms.term import Term

x = T.read("x", (T.const(0),), T.INT)


def at(t: Term, v: int) -> object:
    return value(T.rewrite(t, {x: T.const(v)}.get), {})


def intervals(bits: int) -> list[Interval]:
    half, full = 1 << bits - 1, 1 << bits
    ends = (-full - 1, -half - 1, -half, -1, 0, half - 1, half, full - 1, full)
    return [(a, b) for a in ends for b in ends if a <= b]


@pytest.mark.smoke
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_bounded_term_is_the_number_of_its_bits(bits: int) -> None:
    half, full = 1 << bits - 1, 1 << bits
    for low, high in intervals(bits):
        ranges = Ranges({"x": (low, high)})
        signed, unsigned = signed_term(ranges, x, bits), unsigned_term(ranges, x, bits)
        for v in {int(low), int(low) + 1, -1, 0, 1, int(high) - 1, int(high)}:
            if low <= v <= high:
                assert at(signed, v) == (v + half) % full - half, (low, high, v)
                assert at(unsigned, v) == v % full, (low, high, v)


@pytest.mark.smoke
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_number_is_the_number_of_its_bits(bits: int) -> None:
    half, full = 1 << bits - 1, 1 << bits
    for v in (-full - 1, -half - 1, -half, -1, 0, half - 1, half, half + 72, full - 1, full + 5):
        assert signed_term(Ranges(), T.const(v), bits) is T.const((v + half) % full - half)
        assert unsigned_term(Ranges(), T.const(v), bits) is T.const(v % full)


@pytest.mark.smoke
def test_a_wide_term_without_bounds_is_taken_to_fit() -> None:
    ranges = Ranges({"x": (-math.inf, math.inf)})
    for bits in (32, 64):
        assert signed_term(ranges, x, bits) is x
        unsigned = unsigned_term(ranges, x, bits)
        assert [at(unsigned, v) for v in (-1, -(1 << bits - 1), 0, 1)] == [(1 << bits) - 1, 1 << bits - 1, 0, 1]
    assert unsigned_term(Ranges({"x": (0, math.inf)}), x, 32) is x

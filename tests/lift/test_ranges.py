"""Intervals of integer terms: each row of both tables contains what its operation gives for all numbers within."""

from __future__ import annotations

from itertools import product

import pytest

from trilift.lift.terms import construct as T
from trilift.lift.terms.machine_ranges import MORE, MachineRanges
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.ranges import ALL, RANGE, Interval, Ranges

INTERVALS: tuple[Interval, ...] = ((-7, 5), (0, 6), (1, 4), (3, 3), (0, 0), (-5, -2), (-3, 0), (7, 8))
FREE = {"random_bits", *(op for op in MORE if op.startswith("bits_"))}  # of a counter, of a float
ROWS = sorted({*RANGE.rows, *MORE} - FREE - {"where", "pick"})
UNDEFINED = {"shl": lambda a, b: b < 0, "shr": lambda a, b: b < 0}


def arity(op: str) -> int:
    return 2 if op in ("argmax_of", "argmin_of") or OPS[op].arity < 0 else OPS[op].arity


def of(rule, xs: tuple[Interval, ...]) -> Interval:
    return rule(*xs)


@pytest.mark.smoke
@pytest.mark.parametrize("op", ROWS)
def test_a_row_contains_its_values(op: str) -> None:
    rules = [table[op] for table in (RANGE.rows, MORE) if op in table]
    for xs in product(INTERVALS, repeat=arity(op)):
        values = {v for args in product(*(range(int(a), int(b) + 1) for a, b in xs))
                  if not (op in UNDEFINED and UNDEFINED[op](*args))
                  and (v := OPS[op].on_numbers(*args)) is not None}  # fmt: skip
        for low, high in (of(rule, xs) for rule in rules) if values else ():
            assert low <= min(values) and max(values) <= high, (op, xs)


@pytest.mark.smoke
def test_rows_are_not_wider_than_they_need() -> None:
    wide = {"add": (-6, 9), "mul": (-28, 20), "mod": (0, 3), "floordiv": (-7, 5), "min": (-7, 4)}
    for op, expected in wide.items():
        assert RANGE.rows[op]((-7, 5), (1, 4)) == expected
    assert RANGE.rows["bitor"]((0, 6), (1, 4)) == (0, 7)
    assert MORE["next_power_of_2"]((0, 5)) == (0, 9) and MORE["next_power_of_2"]((1, 5)) == (1, 9)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", [Ranges, MachineRanges])
def test_what_a_mask_says_is_so_for_what_meets_it(kind: type[Ranges]) -> None:
    x = T.read("x", (T.const(0),), T.INT)
    ranges = kind({"x": (-20, 20)})
    for c, d, op in product((-3, -2, 2, 3), range(-4, 5), ("lt", "le", "eq")):
        for side in (True, False):
            form = T.add(T.mul(c, x), d)
            mask = T.make(op, form, 1) if side else T.make(op, 1, form)
            if mask.is_const:
                continue
            low, high = ranges.facts(mask).get(x.id, ALL)
            holds = [v for v in range(-20, 21) if OPS[op].on_numbers(*((c * v + d, 1) if side else (1, c * v + d)))]
            assert not holds or (low <= min(holds) and max(holds) <= high), mask
            if op != "eq":
                assert (low == min(holds)) or (high == max(holds)), mask

"""Identities of the normal form at random numbers, and what the engine shows of them."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np
from random_terms import Numbers

from trilift.verify.integers.solver import Solver
from trilift.verify.loops.agreement import agree
from trilift.verify.normal_form.algebra import Algebra, Split, Undecided
from trilift.verify.normal_form.identities import INTEGERS, NUMBERS, REALS, term

GRID = (-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2)  # few numbers, so that two of them are often equal
DRAWS = 4000
Drawn = tuple["Instance", dict[str, float]]


class Instance(Numbers):
    """Values of integers, reals and tensors."""

    def _read(self, name: str, index: list[Any]) -> Any:
        return np.asarray(self.values[name]) if name in REALS else super()._read(name, index)


def drawn(seed: str, given: Sequence[str]) -> Iterator[Drawn]:
    """Random numbers at which the conditions hold, with those that stand in the texts as k, s and t."""
    rng = random.Random(seed)
    for _ in range(DRAWS):
        integers = {n: rng.randint(-3, 5) for n in INTEGERS}
        reals = {n: rng.choice(GRID) for n in REALS}
        numbers = {n: rng.choice(GRID) for n in NUMBERS}
        values: dict[str, Any] = {**integers, **reals}
        at = Instance(values, rng.randrange(1 << 30))
        if all(at.holds(term(g, numbers)) for g in given):
            yield at, numbers


def compared(left: str, right: str, given: Sequence[str], seed: str = "") -> Iterator[tuple[bool, dict[str, float]]]:
    """Whether both sides are equal, at numbers where both have a value."""
    for at, numbers in drawn(f"{left} {seed}", given):
        x, y = (at.of(term(side, numbers)) for side in (left, right))
        if not (math.isnan(x) or math.isnan(y)):
            yield near(x, y), numbers


def near(x: float, y: float) -> bool:
    return x == y or (math.isfinite(x) and math.isfinite(y) and abs(x - y) <= 1e-6 * max(1, abs(x), abs(y)))


def shown(left: str, right: str, given: Sequence[str], numbers: dict[str, float]) -> bool:
    """Whether the engine shows that both sides are equal where the conditions hold."""
    a = Algebra(Solver())
    ctx = a.context([])
    with a.collecting() as owed:
        try:
            for g in given:
                ctx = a.given(ctx, a.condition(term(g, numbers), ctx))
            same = agree(a, term(left, numbers), term(right, numbers), ctx)
        except (Undecided, Split):
            return False
    return same and all(kind != "finite" for kind, _, _ in owed)


def called(run: Callable[[], object]) -> set[CodeType]:
    """The code of all functions that are called."""
    out: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            out.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return out

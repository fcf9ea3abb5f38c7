"""Numbers that users give: amounts of seconds and days, seeds, sizes of memory."""

from __future__ import annotations

import math

import click

MOST = 1e9  # seconds: 31 years; what waits for longer is refused by the system
SEEDS = 1 << 63  # of NumPy and PyTorch, both
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def is_amount(x: float) -> bool:
    """Whether it is a number of seconds: above 0 and finite."""
    return 0 < x <= MOST


class Amount(click.FloatRange):
    """A number, neither NaN nor infinite."""

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)  # type: ignore[arg-type]
        if not math.isfinite(found) or found > MOST:
            self.fail(f"{value!r} is not a number up to {MOST:,.0f}", param, ctx)
        return found


class Seed(click.ParamType[int]):
    """A seed: a whole number that is not negative."""

    name = "integer"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found: int = click.INT.convert(value, param, ctx)  # type: ignore[arg-type]
        if not 0 <= found < SEEDS:
            self.fail(f"{value!r} is not a seed: a whole number from 0 to {SEEDS - 1}", param, ctx)
        return found


class Size(click.ParamType[int]):
    """Bytes, as 800M or 4G."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number, unit = str(value).strip().upper().removesuffix("B").removesuffix("I"), 1
        if number[-1:] in UNITS:
            number, unit = number[:-1], UNITS[number[-1]]
        try:
            size = int(float(number) * unit)
        except (ValueError, OverflowError):
            size = 0
        if size <= 0:
            self.fail(f"{value!r} is not a size, as 800M or 4G", param, ctx)
        return size


SECONDS = Amount(0, min_open=True)
DAYS = Amount(0)

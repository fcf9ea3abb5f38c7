"""How far a float of Python's may be from the real number that its term is, and which questions it still answers right.

    n / 48 > 3           one rounding of a quotient of integers: on the same side of 3 as the quotient
    n * 0.01 * 100 <= n  two roundings: false at n = 7, though 0.01 * 100 is 1

Terms are real numbers; a branch of host code or of a reference is taken by floats. Where rounding may take it the other
way it cannot be followed. Sizes are below 2^48, other integers as their type says; floats are IEEE's of 64 bits,
rounded to nearest; sqrt is rounded once, log2 and powers of 1/2 of integers are right to less than one unit in the last
place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

WHY = "rounding may decide it otherwise than real numbers do"


WIDE_BITS = 48
LARGEST = 2**1023  # of the integers that are taken as floats


class Rounding(IntEnum):
    """NONE: the float is the real. INTEGERS: it lies on the same side of every integer. ONCE: on the same side of 0.
    MORE: anywhere near."""

    NONE = 0
    INTEGERS = 1
    ONCE = 2
    MORE = 3


@dataclass(frozen=True, slots=True)
class Rounded:
    """A float or an integer. `whole`: it is an integer; `number`: itself, where it is the same at all sizes;
    `quotient`: a rounded quotient of integers, which lies on the same side of each multiple of 1/16; `wide`: an integer
    that may have more digits than a float."""

    rounding: Rounding = Rounding.NONE
    whole: bool = False
    number: float | None = None
    quotient: bool = False
    wide: bool = False

    @property
    def power_of_two(self) -> bool:
        return self.number is not None and math.isfinite(self.number) and abs(math.frexp(self.number)[0]) == 0.5

    @property
    def few(self) -> bool:
        """Whether it is a number of at most five binary digits: a product of an integer with it is exact."""
        return self.number is not None and math.isfinite(self.number) and (32 * math.frexp(self.number)[0]).is_integer()

    @property
    def short(self) -> bool:
        """Whether it is a number with few digits behind the point."""
        return self.number is not None and abs(self.number) < 2**32 and (16 * self.number).is_integer()


WHOLE = Rounded(whole=True)
WIDE = Rounded(whole=True, wide=True)
LOST = Rounded(Rounding.MORE)


def constant(v: float) -> Rounded:
    """A number of Python's; an integer may be larger than every float."""
    if isinstance(v, int) and abs(v) >= LARGEST:
        return Rounded(whole=True)
    return Rounded(whole=float(v).is_integer(), number=float(v))


def binary(name: str, a: Rounded, b: Rounded) -> Rounded:
    """The result of add, sub, mul, truediv or pow."""
    if a.wide or b.wide:
        return LOST
    if max(a.rounding, b.rounding) > Rounding.NONE:
        scaled = (name == "mul" and (a.power_of_two or b.power_of_two)) or (name == "truediv" and b.power_of_two)
        return Rounded(Rounding.ONCE) if scaled and max(a.rounding, b.rounding) <= Rounding.ONCE else LOST
    whole = a.whole and b.whole
    match name:
        case "add" | "sub":
            exact = whole or (a.whole and b.short) or (b.whole and a.short)
            return Rounded(whole=whole) if exact else Rounded(Rounding.ONCE)
        case "mul":
            if whole or a.power_of_two or b.power_of_two or (a.whole and b.few) or (b.whole and a.few):
                return Rounded(whole=whole)
            return Rounded(Rounding.ONCE) if a.number is not None or b.number is not None else LOST
        case "truediv":
            if b.power_of_two:
                return Rounded()
            return Rounded(Rounding.INTEGERS, quotient=True) if whole else Rounded(Rounding.ONCE)
        case "pow" if a.whole and b.number == 0.5:
            return Rounded(Rounding.INTEGERS)
    return LOST


def function(name: str, x: Rounded) -> Rounded:
    """The result of a function of `math`."""
    if name in ("fabs", "neg") and not x.wide:
        return x
    if x.rounding > Rounding.NONE or x.wide:
        return LOST
    if name in ("sqrt", "log2") and x.whole:
        return Rounded(Rounding.INTEGERS)
    return Rounded(Rounding.ONCE) if name in ("sqrt", "log", "log10", "log1p") else LOST


def compared(a: Rounded, b: Rounded) -> bool:
    """Whether a comparison of the two comes out as that of the real numbers."""
    for x, y in ((a, b), (b, a)):
        if x.rounding is Rounding.NONE and y.rounding is Rounding.NONE:
            return True
        if x.rounding is Rounding.INTEGERS and y.rounding is Rounding.NONE and (y.whole or (x.quotient and y.short)):
            return True
        if x.rounding <= Rounding.ONCE and y.number == 0:
            return True
    return False


def converted(x: Rounded) -> bool:
    """Whether its floor, its ceiling and the nearest integer are those of the real number."""
    return x.rounding <= Rounding.INTEGERS


def worse(a: Rounded, b: Rounded) -> Rounded:
    """One of the two, whichever it is: of min and max."""
    return Rounded(max(a.rounding, b.rounding), a.whole and b.whole, quotient=a.quotient and b.quotient,
                   wide=a.wide or b.wide)  # fmt: skip


def wide_names(limits: Mapping[str, tuple[float, float]], names: Collection[str]) -> frozenset[str]:
    """Those of the integer scalars of these names whose limits allow more digits than sizes have."""
    return frozenset(n for n, (low, high) in limits.items() if n in names and max(-low, high) >= 2**WIDE_BITS)

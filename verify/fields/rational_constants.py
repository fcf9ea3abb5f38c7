"""Constants of a program as elements of a field: what a rounded number was meant to be.

0.1f                1/10            a rational with few digits or a small denominator, up to a rounding of f32
1.4426950408 * c    c / ln2         a rational times a named irrational number: a random element for each name
0.22941573          sqrt(19)/19     a root of a rational: a root in the field, which has to have one
anything else       a random element for each number, the same for all that round to it in f32
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from trilift.lift.terms.constants import as_float32

Pair = tuple[int, int]


class NoRoot(Exception):
    """This field has no square root of `number`."""

    def __init__(self, number: int) -> None:
        self.number = number


ROUNDED = 2.0**-24  # relative error of one rounding to f32; neighbours there differ by more
DENOMINATOR = 1024
NAMED = {
    "ln2": math.log(2),
    "pi": math.pi,
    "sqrt(pi)": math.sqrt(math.pi),
    "sqrt(2pi)": math.sqrt(2 * math.pi),
    "ln10": math.log(10),
}


class Constants:
    """The elements of one field that stand for numbers."""

    def __init__(self, p: int, q: int, rng: np.random.Generator) -> None:
        self.p, self.q, self.rng = p, q, rng
        self.irrational: dict[str, Pair] = {}

    def pair(self, v: float) -> Pair:
        """The element of a finite number."""
        exact = rational(v)
        if exact is not None:
            return self.fraction(exact)
        for name, value in NAMED.items():
            for inverted in (False, True):
                ratio = rational(v * value if inverted else v / value, 64)
                if ratio is not None:
                    a, b = self.fraction(ratio), self.named(name)
                    b = (pow(b[0], -1, self.p), pow(b[1], -1, self.q)) if inverted else b
                    return a[0] * b[0] % self.p, a[1] * b[1] % self.q
        square = rational(v * v, 4096)
        if square is not None and min(square.numerator, square.denominator) <= 8:
            outer, inner = _square(square.numerator * square.denominator)
            a, b = (
                self.fraction(Fraction(outer, square.denominator)),
                self.named(f"sqrt({inner})") if inner > 1 else (1, 1),
            )
            sign = 1 if v > 0 else -1
            return sign * a[0] * b[0] % self.p, sign * a[1] * b[1] % self.q
        sign = 1 if v > 0 else -1
        b = self.named(repr(float(np.float32(abs(v)))))
        return sign * b[0] % self.p, sign * b[1] % self.q

    def fraction(self, f: Fraction) -> Pair:
        p, q = (f.numerator * pow(f.denominator, -1, m) % m for m in (self.p, self.q))
        return p, q

    def named(self, name: str) -> Pair:
        if name not in self.irrational:
            self.irrational[name] = self._element(name)
        return self.irrational[name]

    def _element(self, name: str) -> Pair:
        """sqrt(n) is a root of n, and so are the powers of sqrt(pi); others are random."""
        if name.startswith("sqrt(") and name[5:-1].isdigit():
            return self.root(int(name[5:-1]))
        if name in ("pi", "sqrt(2pi)"):
            a = self.named("sqrt(pi)")
            b = a if name == "pi" else self.named("sqrt(2)")
            return a[0] * b[0] % self.p, a[1] * b[1] % self.q
        return int(self.rng.integers(1, self.p)), int(self.rng.integers(1, self.q))

    def root(self, n: int) -> Pair:
        """n^((m + 1) / 4) modulo a prime m = 3 mod 4. Raises NoRoot."""
        if not all(has_root(n, m) for m in (self.p, self.q)):
            raise NoRoot(n)
        return pow(n, (self.p + 1) // 4, self.p), pow(n, (self.q + 1) // 4, self.q)


def has_root(n: int, m: int) -> bool:
    """Whether n is a square modulo an odd prime (Euler)."""
    return pow(n, (m - 1) // 2, m) == 1


@lru_cache(maxsize=1 << 16)
def rational(v: float, denominator: int = DENOMINATOR) -> Fraction | None:
    """The simple rational within a rounding of v: a whole number, few decimal digits, or a small denominator."""
    if v == 0 or (float(v).is_integer() and abs(v) < 1 << 24):
        return Fraction(int(v))
    near = Fraction(v).limit_denominator(denominator)
    neighbour = as_float32(v) == v != as_float32(float(near))  # 3.1415927 is not 355 / 113
    if (
        near
        and not neighbour
        and abs(float(near) - v)
        < ROUNDED * abs(v) * min(1.0, 1e3 / (near.denominator * max(1, near.denominator // 64)))
    ):
        return near
    if denominator != DENOMINATOR:
        return None
    inverse = 1 / v
    for number, inverted in (
        ((v, False), (inverse, True)) if math.isfinite(inverse) else ()
    ):  # digits that only a number in double precision can have
        decimal = f"{number:.14e}"
        if len(decimal.split("e")[0].replace(".", "").replace("-", "").strip("0")) <= 10:
            return 1 / Fraction(decimal) if inverted else Fraction(decimal)
    decimal = np.format_float_scientific(np.float32(v), unique=True)
    digits = decimal.split("e")[0].replace(".", "").replace("-", "").strip("0")
    if len(digits) <= 6:
        return Fraction(decimal)
    return Fraction(v) if float(v).is_integer() else None


def _square(n: int) -> tuple[int, int]:
    """n = outer^2 * inner with inner square-free."""
    outer, inner, f = 1, n, 2
    while f * f <= inner:
        while inner % (f * f) == 0:
            inner //= f * f
            outer *= f
        f += 1
    return outer, inner

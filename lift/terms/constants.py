"""Constants recovered: 0.7978845608 is sqrt(2 / pi), 0.18033688 is log2(e) / 8, float32's 0.3333333433 is 1 / 3.

A kernel holds constants as somebody typed them or as float32 rounded them. `recover` gives the number that was meant
and its text. The error allowed is 2e-7 relative, one rounding to float32, and none between two numbers that float32
has: 1.0000001 is not 1. The candidates are few enough (about 2,000 over six decades) that a random number meets one of
them with a probability below 1e-3."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import cache
from struct import Struct

from ..runtime.session import memo

CONSTANT_RELATIVE_ERROR = 2e-7
_FLOAT32 = Struct("f")

NAMED = ["pi", "e", "log(2)", "log2(e)", "log(10)", "log10(e)", "log10(2)", "sqrt(pi)", "1 / sqrt(pi)", "sqrt(2 / pi)",
         "sqrt(2 * pi)", "1 / sqrt(2 * pi)", "log(2 * pi)", "1 / pi", "pi ** 2", "log(pi)"]  # fmt: skip
_SCOPE = {"pi": math.pi, "e": math.e, "log": math.log, "log2": math.log2, "log10": math.log10, "sqrt": math.sqrt}
FACTORS = (
    [Fraction(1, 2**k) for k in range(11)]
    + [Fraction(2**k) for k in (1, 2, 3)]
    + [Fraction(3), Fraction(1, 3), Fraction(2, 3), Fraction(1, 6)]
)
HEAD_SIZES = (
    16,
    24,
    32,
    40,
    48,
    72,
    80,
    96,
    112,
    128,
    160,
    192,
    224,
    256,
    288,
    320,
    512,
)  # 1 / sqrt(d) scales a dot product


def number(text: str) -> float:
    """The value of a text of this module."""
    return float(eval(text, {"__builtins__": {}}, _SCOPE))  # only texts built below


def recover(v: float) -> tuple[float, str]:
    """The number that was meant and its text: 0.70710677 -> (0.7071067811865475, "1 / sqrt(2)")."""
    if not math.isfinite(v) or v == 0:
        return v, repr(v)
    value, text = _positive(abs(v))
    return (value, text) if v > 0 else (-value, f"-{text}" if _atomic(text) else f"-({text})")


def _atomic(text: str) -> bool:
    return not any(c in text for c in " ")


@memo
def _positive(v: float) -> tuple[float, str]:
    for find in (_decimal, _fraction, _known):
        if (found := find(v)) is not None:
            return found
    return v, repr(v)


def _decimal(v: float) -> tuple[float, str] | None:
    """A number of at most six digits, or the float32 nearest to one."""
    short = float(f"{v:.6g}")
    if abs(short - v) > 4e-16 * v and as_float32(short) != v:
        return None
    ratio = Fraction(short).limit_denominator(1024)
    if float(ratio) == short and ratio.numerator < 8 and _power_of_two(ratio.denominator):
        return short, str(ratio).replace("/", " / ")
    return short, repr(int(short)) if short.is_integer() and short < 1e15 else repr(short)


def _fraction(v: float) -> tuple[float, str] | None:
    """p / q: exact in float64 for q up to 65536, rounded to float32 for q up to 256."""
    for limit, near in ((65536, lambda f: abs(f - v) <= 4e-16 * v), (256, lambda f: as_float32(f) == v)):
        ratio = Fraction(v).limit_denominator(limit)
        if 0 < ratio.numerator <= 32 and near(float(ratio)):
            return float(ratio), str(ratio).replace("/", " / ")
    return None


def _known(v: float) -> tuple[float, str] | None:
    values, texts = _table()
    at = bisect_left(values, v)
    near = min((k for k in (at - 1, at) if 0 <= k < len(values)), key=lambda k: abs(values[k] - v))
    return (values[near], texts[near]) if abs(values[near] - v) <= _relative_error(values[near], v) * v else None


def _relative_error(meant: float, v: float) -> float:
    """The error with which v may stand for another number: none between two that float32 tells apart. A product
    of constants, as log(2) times float32's log2(e) / 8, may be off by their rounding."""
    return 0.0 if as_float32(meant) == meant and as_float32(v) == v else CONSTANT_RELATIVE_ERROR


@cache
def _table() -> tuple[list[float], list[str]]:
    """Sorted values and their texts; of two texts of one value 1 / sqrt(n) or the shorter one stays."""
    roots = [f"sqrt({n})" for n in (2, 3, 5, 6, 7, 10)] + [f"1 / sqrt({n})" for n in (2, 3, 5, 6, 7, 10, *HEAD_SIZES)]
    rows = [(times(base, f), number(times(base, f))) for base in NAMED + roots for f in FACTORS]
    rows += [(f"log2(e) / sqrt({n})", number(f"log2(e) / sqrt({n})")) for n in (2, 3, *HEAD_SIZES)]
    best: dict[str, tuple[str, float]] = {}
    for text, value in sorted(rows, key=lambda r: (not r[0].startswith("1 / sqrt"), len(r[0]), r[0])):
        best.setdefault(f"{value:.13g}", (text, value))
    ordered = sorted(best.values(), key=lambda r: r[1])
    return [value for _, value in ordered], [text for text, _ in ordered]


def times(base: str, f: Fraction) -> str:
    """The text of base * f, over one fraction bar."""
    up, down = f.numerator, f.denominator
    if base.startswith("1 / "):
        head, root = str(up), base[4:]
        return f"{head} / {root}" if down == 1 else f"{head} / ({down} * {root})"
    head = base if up == 1 else f"{up} * {base}"
    return head if down == 1 else f"{head} / {down}"


def _power_of_two(n: int) -> bool:
    return n & (n - 1) == 0


def as_float32(v: float) -> float:
    """The number of float32 that is nearest, an infinity beyond the largest."""
    try:
        return float(_FLOAT32.unpack(_FLOAT32.pack(v))[0])
    except OverflowError:
        return math.copysign(math.inf, v)


def near(v: float, relative: float) -> list[tuple[float, str]]:
    """The known constants that differ from v by at most that much, with their texts, and v's sign."""
    values, texts = _table()
    size, sign = abs(v), "-" if v < 0 else ""
    low, high = bisect_left(values, size * (1 - relative)), bisect_left(values, size * (1 + relative))
    return [(math.copysign(values[k], v), f"{sign}({texts[k]})" if sign else texts[k]) for k in range(low, high)]

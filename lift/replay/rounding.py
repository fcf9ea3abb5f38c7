"""Rounding to the float formats that kernels compute and store in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..terms.bits import from_bits, to_bits


@dataclass(frozen=True, slots=True)
class Format:
    """`digits`: of the significand, the leading one included; `low`: exponent of the smallest normal number."""

    digits: int
    low: int
    largest: float

    def ulp(self, x: Any) -> Any:
        """The distance of neighbours at |x|."""
        exponent = np.frexp(np.asarray(x, np.float64))[1] - 1
        return np.ldexp(1.0, np.maximum(exponent, self.low) - self.digits + 1)


FORMATS = {
    "f64": Format(53, -1022, 1.7976931348623157e308),
    "f32": Format(24, -126, 3.4028234663852886e38),
    "f16": Format(11, -14, 65504.0),
    "bf16": Format(8, -126, 3.3895313892515355e38),
    "f8e4m3fn": Format(4, -6, 448.0),
    "f8e5m2": Format(3, -14, 57344.0),
}
NARROW = FORMATS.keys() - {"f64", "f32"}
SATURATING = {"f8e4m3fn", "f8e5m2"}  # the machine's conversions to them


def nearest(x: Any, element: str) -> Any:
    """The numbers of a format nearest to reals, ties to even, infinite beyond the largest; 8-bit formats saturate.
    Other element types than known formats leave x as it is."""
    a = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        match element:
            case "f32":
                return a.astype(np.float32).astype(np.float64)
            case "f16":
                return a.astype(np.float16).astype(np.float64)
            case "bf16":
                return _brain(a)
        if element in SATURATING:
            largest = FORMATS[element].largest
            return from_bits(to_bits(np.clip(a, -largest, largest), element), element)
    return a


def _brain(a: np.ndarray) -> np.ndarray:
    """The upper half of float32, the lower half rounded away."""
    single = a.astype(np.float32)
    bits = single.view(np.uint32)
    up = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(single), np.nan, up.view(np.float32).astype(np.float64))

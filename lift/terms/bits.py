"""Bit patterns: what an element of memory is called, how wide it is, and the integer that a float's bits are.

A cell name is "f32", "bf16", "f8e4m3fn" ... or "i8" ... "i64": sign and boolean are how the bits are read, not what
they are.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..errors import Unsupported

_NATIVE = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
_TORCH = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz"}
_TORCH |= {"f8e5m2fnuz": "float8_e5m2fnuz"}
FORMATS = (*_NATIVE, *_TORCH)


@lru_cache(maxsize=256)
def cell_size(name: str) -> int:
    """Bytes of one cell."""
    digits = name.removeprefix("bf").removeprefix("f").removeprefix("i").split("e")[0]
    if not digits.isdigit() or int(digits) % 8 or name[0] not in "fbi":
        raise Unsupported(f"memory of element type {name}")
    return int(digits) // 8


def to_bits(x: np.ndarray, source: str) -> np.ndarray:
    """The integer of the same width with the bits of the float format `source`."""
    width = np.dtype(f"i{cell_size(source)}")
    if source[0] == "i":
        return x
    with np.errstate(all="ignore"):
        if source in _NATIVE:
            return np.ascontiguousarray(x.astype(_NATIVE[source])).view(width).reshape(x.shape)
    import torch

    narrow = torch.from_numpy(np.ascontiguousarray(x, np.float64)).to(getattr(torch, _TORCH[source]))
    out: np.ndarray = narrow.view(getattr(torch, f"int{8 * width.itemsize}")).numpy().reshape(x.shape)
    return out


def from_bits(x: np.ndarray, target: str) -> np.ndarray:
    """The float64 values of bit patterns of the float format `target`."""
    if target[0] == "i":
        return x
    if target in _NATIVE:
        return np.ascontiguousarray(x).view(_NATIVE[target]).astype(np.float64).reshape(x.shape)
    import torch

    bits = torch.from_numpy(np.ascontiguousarray(x))
    out: np.ndarray = bits.view(getattr(torch, _TORCH[target])).to(torch.float64).numpy().reshape(x.shape)
    return out

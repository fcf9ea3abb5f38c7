"""Arithmetic in float64 that says where it left the real numbers: what overflows is NaN.

x / (e + e) is 0 where e is larger than 10^308, and nothing in the 0 tells. Infinities that were there before stay
(masks of minus infinity), and so do those at poles (log 0, 1 / 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .domain import Float64

# What is infinite at single points: operations of PyTorch, and rows of lift.terms.ops (`where` only passes numbers on).
POLES = frozenset({"log", "log2", "log10", "log1p", "reciprocal", "rsqrt", "div", "atanh", "erfinv", "logit"})
POLES_OF_TERMS = frozenset({"log", "log2", "log1p", "recip", "rsqrt", "div", "atanh", "erfinv", "where"})


class WithoutOverflow(Float64):
    """`Float64` in which numbers that overflow are NaN, and what is made of them too."""

    def apply(self, op: str, *xs: Any) -> Any:
        out = super().apply(op, *xs)
        if op in POLES_OF_TERMS or np.asarray(out).dtype.kind != "f":
            return out
        arrays = [np.asarray(x) for x in xs]
        real = [a for a in arrays if a.dtype.kind == "f"]
        before = np.logical_or.reduce(np.broadcast_arrays(*map(np.isinf, real))) if real else False
        lost = np.isinf(out) & ~before
        if op in ("max", "min"):  # which ignore NaN
            lost = lost | np.logical_or.reduce(np.broadcast_arrays(*map(np.isnan, real)))
        return np.where(lost, np.nan, out)

    def fold(self, op: str, x: Any, axis: int) -> Any:
        out = super().fold(op, x, axis)
        if np.asarray(out).dtype.kind != "f" or not x.shape[axis]:
            return out
        lost = np.isinf(out) & ~np.isinf(x).any(axis=axis) | np.isnan(x).any(axis=axis)
        return np.where(lost, np.nan, out)


def without_overflow() -> Any:
    """A context in which PyTorch makes NaN of the results that overflow: those that are infinite even where every
    infinity among the arguments is replaced by NaN."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map

    def real(x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.is_floating_point()

    def finite(x: Any) -> Any:
        return torch.where(torch.isinf(x), torch.nan, x) if real(x) else x

    class Marked(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func.overloadpacket.__name__.rstrip("_") in POLES or not any(map(real, tree_leaves((args, kwargs)))):
                return func(*args, **kwargs)
            if any(isinstance(x, float) and np.isinf(x) for x in tree_leaves((args, kwargs))):
                return func(*args, **kwargs)  # a mask of minus infinity
            cleaned = tree_map(finite, (args, kwargs))
            out = func(*args, **kwargs)
            leaves = [x for x in tree_leaves(out) if real(x)]
            if any(torch.isinf(x).any() for x in leaves):
                again = filter(real, tree_leaves(func(*cleaned[0], **cleaned[1])))
                for x, y in zip(leaves, again, strict=True):
                    x[torch.isinf(x) & torch.isinf(y)] = torch.nan
            return out

    return Marked()

"""Notes integers that leave their dtype, and divisions by 0, in Triton's interpreter: part of `interpreter_server.py`,
which is a script.

A note may be about a masked lane. Without a note nothing wrapped: then clauses that integers fit exclude nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import triton.runtime.interpreter as interpreter
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

WRAPPED: list[str] = []  # where, since it was emptied
GROWING = (np.add, np.subtract, np.multiply, np.left_shift)
BY_ZERO = "divided by 0"
NEAR = 1 - 1e-9  # of the largest number of 64 bits, which float64 holds to 11 bits


class Fold(Protocol):
    """A reduction or scan of Triton's interpreter."""

    axis: int


class Tile(Protocol):
    """The operand of a fold."""

    handle: TensorHandle


def _leaves(exact: np.ndarray, dtype: np.dtype) -> bool:
    """Whether numbers, as float64, are none of an integer dtype."""
    info = np.iinfo(dtype)
    scale = NEAR if dtype.itemsize == 8 else 1.0
    return bool((~((exact >= info.min * scale) & (exact <= info.max * scale))).any())


def _whole(x: np.ndarray) -> bool:
    return x.dtype.kind in "iu"


def install() -> None:
    """Puts the notes into Triton's interpreter."""
    builder = InterpreterBuilder
    binary, unary, cast = builder.binary_op, builder.unary_op, builder.cast_impl

    def binary_op(self: InterpreterBuilder, lhs: TensorHandle, rhs: TensorHandle, op: np.ufunc) -> object:
        a, b = np.asarray(lhs.data), np.asarray(rhs.data)
        if op in GROWING and _whole(a) and _whole(b) and _leaves(_exact(op, a, b), a.dtype):
            WRAPPED.append(op.__name__)
        if op is np.fmod and _whole(b) and not b.all():
            WRAPPED.append(BY_ZERO)
        return binary(self, lhs, rhs, op)

    def unary_op(self: InterpreterBuilder, arg: TensorHandle, op: np.ufunc) -> object:
        x = np.asarray(arg.data)
        if _whole(x) and _leaves(-x.astype(float), x.dtype):
            WRAPPED.append(op.__name__)
        return unary(self, arg, op)

    def cast_impl(self: InterpreterBuilder, src: TensorHandle, kind: object) -> object:
        out = cast(self, src, kind)
        a, b = np.asarray(src.data), np.asarray(out.data)
        if _whole(b) and a.dtype.kind in "iuf" and _leaves(np.trunc(a.astype(float)), b.dtype):
            WRAPPED.append("cast")
        return out

    quotient = builder.create_idiv

    def create_idiv(self: InterpreterBuilder, lhs: TensorHandle, rhs: TensorHandle) -> object:
        if not np.asarray(rhs.data).all():
            WRAPPED.append(BY_ZERO)
        return quotient(self, lhs, rhs)

    builder.create_idiv = create_idiv
    builder.binary_op, builder.unary_op, builder.cast_impl = binary_op, unary_op, cast_impl
    interpreter.ReduceOps.sum = _folded(interpreter.ReduceOps.sum, np.sum)
    interpreter.ScanOps.cumsum = _folded(interpreter.ScanOps.cumsum, np.cumsum)


def _exact(op: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The result as float64."""
    if op is np.left_shift:
        return np.asarray(np.ldexp(a.astype(float), b.astype(int)))
    return np.asarray(op(a.astype(float), b.astype(float)))


def _folded(inner: Callable[[Fold, Tile], object], exact: Callable[..., np.ndarray]) -> Callable[[Fold, Tile], object]:
    """The same of sums of many."""

    def fold(self: Fold, given: Tile) -> object:
        x = np.asarray(given.handle.data)
        if _whole(x) and _leaves(exact(x.astype(float), axis=self.axis), x.dtype):
            WRAPPED.append(exact.__name__)
        return inner(self, given)

    return fold

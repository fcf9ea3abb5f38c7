"""Notes integers that leave their dtype in Triton's interpreter: part of `interpreter_server.py`, which is a script.

What is noted may lie in a masked lane. What is not noted did not happen: then clauses that integers fit exclude
nothing.
"""

from __future__ import annotations

import numpy as np
import triton.runtime.interpreter as interpreter

WRAPPED: list[str] = []  # where, since it was emptied
GROWING = (np.add, np.subtract, np.multiply, np.left_shift)
NEAR = 1 - 1e-9  # of the largest number of 64 bits, which float64 holds to 11 bits


def _leaves(exact: np.ndarray, dtype: np.dtype) -> bool:
    """Whether numbers, as float64, are none of an integer dtype."""
    info = np.iinfo(dtype)
    scale = NEAR if dtype.itemsize == 8 else 1.0
    return bool((~((exact >= info.min * scale) & (exact <= info.max * scale))).any())


def _whole(x: np.ndarray) -> bool:
    return x.dtype.kind in "iu"


def install() -> None:
    """Puts the notes into Triton's interpreter."""
    builder = interpreter.InterpreterBuilder
    binary, unary, cast = builder.binary_op, builder.unary_op, builder.cast_impl
    Handle = interpreter.TensorHandle

    def binary_op(self: object, lhs: Handle, rhs: Handle, op: np.ufunc) -> Handle:
        a, b = np.asarray(lhs.data), np.asarray(rhs.data)
        if op in GROWING and _whole(a) and _whole(b):
            exact = (
                np.ldexp(a.astype(float), b.astype(int))
                if op is np.left_shift
                else op(*(x.astype(float) for x in (a, b)))
            )
            if _leaves(exact, a.dtype):
                WRAPPED.append(op.__name__)
        return binary(self, lhs, rhs, op)

    def unary_op(self: object, arg: Handle, op: np.ufunc) -> Handle:
        x = np.asarray(arg.data)
        if _whole(x) and _leaves(-x.astype(float), x.dtype):
            WRAPPED.append(op.__name__)
        return unary(self, arg, op)

    def cast_impl(self: object, src: Handle, kind: object) -> Handle:
        out = cast(self, src, kind)
        a, b = np.asarray(src.data), np.asarray(out.data)
        if _whole(b) and a.dtype.kind in "iuf" and _leaves(np.trunc(a.astype(float)), b.dtype):
            WRAPPED.append("cast")
        return out

    builder.binary_op, builder.unary_op, builder.cast_impl = binary_op, unary_op, cast_impl
    for kind, name, exact in ((interpreter.ReduceOps, "sum", np.sum), (interpreter.ScanOps, "cumsum", np.cumsum)):
        _folded(kind, name, exact)


def _folded(kind: type, name: str, exact: object) -> None:
    """The same of sums of many."""
    inner = getattr(kind, name)

    def fold(self: object, given: object) -> object:
        x = np.asarray(given.handle.data)
        if _whole(x) and _leaves(exact(x.astype(float), axis=self.axis), x.dtype):
            WRAPPED.append(name)
        return inner(self, given)

    setattr(kind, name, fold)

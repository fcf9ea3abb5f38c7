"""Numbers that tensors of a narrow type are compared with: PyTorch rounds them to that type.

    x < 0.7    of bfloat16 is x < 0.69921875

Elsewhere rounding changes a result by a digit, here it decides. Of float32 too, which a kernel may compare in float64.
A scalar of Python is in float32 for both.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias

import torch

from ..terms import construct as T
from ..terms.term import Term
from .symbolic_tensor import SymbolicTensor, full
from .symbols import torch_dtype

COMPARED = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
COMPARING = {"hardshrink": 0, "threshold": 4}  # take such a number too; in a type of at least so many bytes
Site: TypeAlias = tuple[str, str, int]  # an operator, and where a function calls it

if TYPE_CHECKING:
    from torch._ops import OpOverload


def is_comparison(func: OpOverload, args: Sequence[object]) -> bool:
    """Whether an operator compares a tensor with a number of Python's."""
    return (
        _name(func) in (*COMPARED, *COMPARING)
        and len(args) > 1
        and isinstance(args[0], torch.Tensor)
        and type(args[1]) in (int, float)
    )


def compared_in(func: OpOverload, dtype: torch.dtype) -> torch.dtype | None:
    """The type in which a comparison with a number of Python's is made, where that has fewer digits than these."""
    least = COMPARING.get(_name(func), 0)
    own = torch.float32 if dtype.is_floating_point and dtype.itemsize < least else dtype
    return own if is_narrow(own) else None


def differs_by_device(func: OpOverload, args: Sequence[object]) -> str:
    """Why a comparison with a number has another result on a GPU than on a CPU; "" if it has not. F.threshold compares
    a narrow type in float32 on a CPU; on a GPU it rounds the number to that type (ActivationThresholdKernel.cu)."""
    x, number = args[0], args[1]
    if not isinstance(x, torch.Tensor) or not isinstance(number, int | float) or COMPARING.get(_name(func), 0) < 4:
        return ""
    if not is_narrow(x.dtype, 4) or rounded(number, x.dtype) == number:
        return ""
    return f"{_name(func)} of {x.dtype} by {number!r}: a GPU rounds the number to this type, a CPU does not"


def _name(func: OpOverload) -> str:
    return str(func._schema.name).split("::")[1].removesuffix("_")


def is_narrow(dtype: torch.dtype, least: int = 8) -> bool:
    """Whether it has fewer bytes than these: fewer digits than the numbers of Python, if nothing is given."""
    return bool(dtype.is_floating_point and dtype.itemsize < least)


def rounded(x: float, dtype: torch.dtype) -> float:
    """The number of the type nearest to x; x itself where that is infinite."""
    found = float(torch.tensor(x, dtype=torch.float64).to(dtype))
    return found if math.isfinite(found) else x


def site_of(func: OpOverload) -> Site:
    """An operator, and the line of the user's that calls it, two calls above."""
    from .textbook import is_user

    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return (str(func), *((frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)))


def is_rounded(x: object, beside: object, dtype: str | None) -> bool:
    """Whether a scalar, of which no more is known, is rounded where it is compared with a tensor of this type."""
    is_scalar = isinstance(x, Term) and x.type == T.REAL and not x.is_const
    return is_scalar and isinstance(beside, SymbolicTensor) and dtype is not None and is_narrow(torch_dtype(dtype), 4)


def narrowed(x: object, beside: object, dtype: str | None) -> object:
    """The operand of a comparison with another one, a tensor of this type: constants are rounded to it. A tensor
    without dimensions counts as a number beside one that has some."""
    if dtype is None or not isinstance(beside, SymbolicTensor) or not is_narrow(torch_dtype(dtype)):
        return x
    if isinstance(x, SymbolicTensor):
        t = x.at(()) if beside.shape and not x.shape and x.type == T.REAL else None
        return full((), _rounded(t, dtype), T.REAL) if t is not None else x
    if isinstance(x, Term):
        return _rounded(x, dtype)
    return rounded(x, torch_dtype(dtype)) if isinstance(x, int | float) and not isinstance(x, bool) else x


def _rounded(t: Term, dtype: str) -> Term:
    return T.const(rounded(float(t.attr), torch_dtype(dtype))) if t.is_const and t.type != T.BOOL else t

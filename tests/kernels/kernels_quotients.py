"""Quotients that are guarded against 0 / 0 in one way by the kernel and in another by its reference.

RIGHT   equal for all inputs, divisors of 0 included
WRONG   differ where the divisor is 0
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from trilift import case
from trilift.lift.cases.declaration import Case


@triton.jit
def quotients(X, Y, Out, n, FORM: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=0.0)
    y = tl.load(Y + i, mask=i < n, other=0.0)
    q = x / y
    if FORM == "no NaN":
        v = tl.where(q != q, 0.0, q)
    elif FORM == "finite or zero":
        v = tl.where(tl.abs(q) < float("inf"), q, 0.0)
    elif FORM == "divisor chosen":
        v = tl.where(y == 0.0, 0.0, x / tl.where(y == 0.0, 1.0, y))
    elif FORM == "divisor chosen alone":
        v = x / tl.where(y == 0.0, 1.0, y)
    elif FORM == "divisor at least":
        v = x / tl.maximum(tl.abs(y), 1e-6)
    elif FORM == "guarded by the sum":
        v = tl.where(x * x + y * y > 0.0, x / tl.where(x * x + y * y > 0.0, x * x + y * y, 1.0), 0.0)
    elif FORM == "zero by itself":
        v = tl.where(y == 0.0, x * (y / y), q)
    else:
        v = tl.where(y != 0.0, q, x)
    tl.store(Out + i, v, mask=i < n)


def of(form: str, reference: Callable[..., torch.Tensor]) -> Case:
    def run(x, y):
        out = torch.empty_like(x)
        quotients[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), FORM=form, B=64)
        return out

    found = case(x="f32[N]", y="f32[N]")(run)
    found.reference(reference)
    return found


def finite_or_zero(x, y):
    return torch.where(torch.isfinite(x / y), x / y, 0.0)


def norm(x, y):
    return torch.where(x * x + y * y > 0, x / (x * x + y * y), 0.0)


RIGHT = {
    "no NaN": of("no NaN", lambda x, y: torch.where(torch.isnan(x / y), 0.0, x / y)),
    "finite or zero": of("finite or zero", finite_or_zero),
    "divisor chosen": of("divisor chosen", lambda x, y: torch.where(y == 0, 0.0, x / y)),
    "divisor chosen alone": of("divisor chosen alone", lambda x, y: torch.where(y == 0, x, x / y)),
    "divisor at least": of("divisor at least", lambda x, y: x / y.abs().clamp(min=1e-6)),
    "guarded by the sum": of("guarded by the sum", norm),
    "numerator": of("numerator", lambda x, y: torch.where(y == 0, x, x / y)),
}
WITH_A_CLAUSE = {"finite or zero"}  # x / y with two conditions in one: the contract says y != 0
WRONG = {
    "no NaN for all zeros": of("no NaN", lambda x, y: torch.where(y == 0, 0.0, x / y)),
    "infinite or zero": of("finite or zero", lambda x, y: torch.where(torch.isnan(x / y), 0.0, x / y)),
    "divisor chosen against zero": of("divisor chosen alone", lambda x, y: torch.where(y == 0, 0.0, x / y)),
    "NaN against zero": of("zero by itself", lambda x, y: torch.where(y == 0, 0.0, x / y)),
    "unguarded": of("divisor chosen", lambda x, y: x / y),
}

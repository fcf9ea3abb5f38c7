"""Sums over rows of functions with pieces: each form with a reference that is equal, and with one that is not."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from trilift import case
from trilift.lift.cases.declaration import Case

LIMIT = 0.7


@triton.jit
def rows(X, Y, Out, stride, n, limit, FORM: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    acc = tl.zeros([B], tl.float32)
    for i in range(tl.cdiv(n, B)):
        c = i * B + tl.arange(0, B)
        x = tl.load(X + r * stride + c, mask=c < n, other=0.0)
        y = tl.load(Y + r * stride + c, mask=c < n, other=0.0)
        d = x - y
        a = tl.abs(d)
        if FORM == "huber":
            v = tl.where(a < limit, 0.5 * d * d, limit * (a - 0.5 * limit))
        elif FORM == "huber, border included":
            v = tl.where(a <= limit, 0.5 * d * d, limit * (a - 0.5 * limit))
        elif FORM == "huber, clamped":
            m = tl.minimum(a, limit)
            v = 0.5 * m * m + limit * (a - m)
        elif FORM == "huber, factor":
            v = tl.where(a < limit, d * d, limit * (a - 0.5 * limit))
        elif FORM == "huber, limit":
            v = tl.where(a < 2 * limit, 0.5 * d * d, limit * (a - 0.5 * limit))
        elif FORM == "soft":
            v = tl.where(x > limit, x - limit, tl.where(x < -limit, x + limit, 0.0)) + 0 * y
        elif FORM == "soft, one side":
            v = tl.where(x > limit, x - limit, tl.where(x < limit, x + limit, 0.0)) + 0 * y
        elif FORM == "hard":
            v = tl.where(a > limit, d, 0.0)
        elif FORM == "hard, border included":
            v = tl.where(a >= limit, d, 0.0)
        elif FORM == "clamped":
            v = tl.minimum(tl.maximum(x, -limit), limit) * y
        else:
            v = tl.minimum(tl.maximum(x, limit), -limit) * y
        acc += tl.where(c < n, v, 0.0)
    tl.store(Out + r, tl.sum(acc, 0))


def made(form: str, reference: Callable[..., torch.Tensor]) -> Case:
    def run(x, y):
        o = torch.empty(x.shape[0], device=x.device)
        rows[(x.shape[0],)](x, y, o, x.stride(0), x.shape[1], LIMIT, FORM=form, B=64)
        return o

    c = case(x="f32[R,C]", y="f32[R,C]", where="C < 2**30")(run)
    c.reference(reference)
    return c


def huber(x, y):
    return F.huber_loss(x, y, reduction="none", delta=LIMIT).sum(1)


def soft(x, y):
    return F.softshrink(x, LIMIT).sum(1)


def hard(x, y):
    return F.hardshrink(x - y, LIMIT).sum(1)


def clamped(x, y):
    return (torch.clamp(x, -LIMIT, LIMIT) * y).sum(1)


BORDER = "border included"
RIGHT = {"huber": huber, f"huber, {BORDER}": huber, "huber, clamped": huber, "soft": soft, "hard": hard}
RIGHT = {form: made(form, reference) for form, reference in (RIGHT | {"clamped": clamped}).items()}
WRONG = {"huber, factor": huber, "huber, limit": huber, "soft, one side": soft, f"hard, {BORDER}": hard}
WRONG = {form: made(form, reference) for form, reference in (WRONG | {"crossed": clamped}).items()}

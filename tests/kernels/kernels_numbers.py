"""Operations that tell NaN from numbers, on operands that may leave the numbers, each with a reference.

WRONG   differ from their reference somewhere: x / y at 0 / 0, log(x) at -1, a row of a mask without any
RIGHT   are equal to it for all inputs: what divides or is rooted cannot leave its domain
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trilift import case
from trilift.lift.cases.declaration import Case


@triton.jit
def elements(X, Y, Out, n, FORM: tl.constexpr, B: tl.constexpr):  # noqa: C901
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=1.0)
    y = tl.load(Y + i, mask=i < n, other=1.0)
    if FORM == "log guarded":
        v = tl.where(tl.log(x) > -float("inf"), tl.log(x), 0.0)
    elif FORM == "isnan of a root":
        v = tl.where(libdevice.isnan(tl.sqrt(x)), -1.0, tl.sqrt(x))
    elif FORM == "rsqrt equals itself":
        r = tl.rsqrt(x)
        v = tl.where(r == r, r, 0.0)
    elif FORM == "power":
        v = tl.maximum(libdevice.pow(x, y), -1.0)
    elif FORM == "fmod":
        v = tl.minimum(libdevice.fmod(x, y), 1.0)
    elif FORM == "acos":
        v = tl.maximum(libdevice.acos(x), 0.5)
    elif FORM == "difference":
        v = x / y - x / y
    elif FORM == "entropy":
        v = x * tl.log(x)
    elif FORM == "negated order":
        v = tl.where(not_less(x / y), x, y)
    elif FORM == "other isnan":
        v = tl.where(libdevice.isnan(y / x), 0.0, x / y)
    elif FORM == "clamp":
        v = tl.clamp(x / y, -1.0, 1.0)
    elif FORM == "isinf":
        v = tl.where(libdevice.isinf(1.0 / x), 7.0, 1.0 / x)
    elif FORM == "isfinite":
        v = tl.where(tl.abs(x / y) < float("inf"), x / y, 0.0)
    elif FORM == "quotient":
        v = x / y
    elif FORM == "relu":
        v = tl.maximum(x / y, 0.0)
    elif FORM == "relu of a root":
        v = tl.maximum(tl.sqrt(x), 0.0)
    elif FORM == "guarded relu":
        v = tl.maximum(tl.where(y == 0.0, 0.0, x / tl.where(y == 0.0, 1.0, y)), 0.0)
    elif FORM == "sigmoid":
        v = tl.maximum(1.0 / (1.0 + tl.exp(-x)), 0.5)
    elif FORM == "norm":
        v = tl.maximum(x / tl.sqrt(x * x + y * y + 1.0), 0.0)
    elif FORM == "softplus":
        v = tl.maximum(tl.log(1.0 + tl.exp(x)), y)
    elif FORM == "input":
        v = tl.where(x != x, 0.0, tl.where(libdevice.isinf(y), 1.0, y))
    else:
        v = tl.where(y == 0.0, 0.0, x / y)
    tl.store(Out + i, v, mask=i < n)


@triton.jit
def in_two_stores(X, Y, Out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=1.0)
    z = x / tl.load(Y + i, mask=i < n, other=1.0)
    tl.store(Out + i, x, mask=(i < n) & (z > 0))
    tl.store(Out + i, -x, mask=(i < n) & (z <= 0))


@triton.jit
def not_less(z):
    return (z < 1.0) == 0


@triton.jit
def rows(X, M, Out, n, FORM: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0)
    j = tl.arange(0, B)
    x = tl.load(X + r * n + j, mask=j < n, other=0.0)
    m = tl.load(M + r * n + j, mask=j < n, other=1).to(tl.float32)
    if FORM == "largest quotient":
        v = tl.max(tl.where(j < n, x / m, -float("inf")), 0)
    elif FORM == "largest logarithm":
        v = tl.max(tl.where(j < n, tl.log(m), -float("inf")), 0)
    elif FORM == "masked mean":
        c = tl.sum(tl.where(j < n, m, 0.0), 0)
        v = tl.maximum(tl.sum(tl.where(j < n, x * m, 0.0), 0) / c, 0.0)
    elif FORM == "deviation":
        mean = tl.sum(x, 0) / n
        d = tl.where(j < n, x - mean, 0.0)
        v = tl.sqrt(tl.sum(d * d, 0) / (n - 1))
        v = tl.where(v == v, v, 0.0)
    elif FORM == "guarded mean":
        c = tl.sum(tl.where(j < n, m, 0.0), 0)
        v = tl.where(c > 0, tl.maximum(tl.sum(tl.where(j < n, x * m, 0.0), 0) / c, 0.0), 0.0)
    else:  # the largest probability
        e = tl.where(j < n, tl.exp(x - tl.max(tl.where(j < n, x, -float("inf")), 0)), 0.0)
        v = tl.max(tl.where(j < n, e / tl.sum(e, 0), -float("inf")), 0)
    tl.store(Out + r, v)


def of_elements(form: str, reference: Callable[..., torch.Tensor]) -> Case:
    def run(x, y):
        out = torch.empty_like(x)
        elements[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), FORM=form, B=64)
        return out

    found = case(x="f32[N]", y="f32[N]")(run)
    found.reference(reference)
    return found


def of_rows(form: str, reference: Callable[..., torch.Tensor]) -> Case:
    def run(x, m):
        out = torch.empty(x.shape[0])
        rows[(x.shape[0],)](x, m, out, x.shape[1], FORM=form, B=32)
        return out

    found = case(x="f32[M,N]", m="i32[M,N] < 2", where="N <= 32")(run)
    found.reference(reference)
    return found


@case(x="f32[N]", y="f32[N]")
def two_stores(x, y):
    out = torch.empty_like(x)
    in_two_stores[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), B=64)
    return out


two_stores.reference(lambda x, y: torch.where(x / y > 0, x, -x))


def guarded_mean(x, m):
    c = m.sum(-1)
    return torch.where(c > 0, torch.relu((x * m).sum(-1) / c), 0.0)


WRONG = {
    "log guarded": of_elements("log guarded", lambda x, y: torch.log(x)),
    "isnan of a root": of_elements("isnan of a root", lambda x, y: torch.sqrt(x)),
    "rsqrt equals itself": of_elements("rsqrt equals itself", lambda x, y: torch.rsqrt(x)),
    "power": of_elements("power", lambda x, y: torch.clamp(torch.pow(x, y), min=-1)),
    "fmod": of_elements("fmod", lambda x, y: torch.clamp(torch.fmod(x, y), max=1)),
    "acos": of_elements("acos", lambda x, y: torch.clamp(torch.acos(x), min=0.5)),
    "difference": of_elements("difference", lambda x, y: torch.zeros_like(x)),
    "entropy": of_elements("entropy", lambda x, y: torch.xlogy(x, x)),
    "negated order": of_elements("negated order", lambda x, y: torch.where(x / y >= 1, x, y)),
    "other isnan": of_elements("other isnan", lambda x, y: torch.where(torch.isnan(1 / y), 0.0, x / y)),
    "guard of the numerator": of_elements("quotient guarded", lambda x, y: torch.where(y == 0, 0.0, x) / y),
    "isfinite of another": of_elements("isfinite", lambda x, y: torch.where(torch.isnan(x / y), 0.0, x / y)),
    "clamp": of_elements("clamp", lambda x, y: torch.clamp(x / y, -1, 1)),
    "isinf": of_elements("isinf", lambda x, y: 1 / x),
    "isfinite": of_elements("isfinite", lambda x, y: x / y),
    "nan_to_num": of_elements("quotient", lambda x, y: torch.nan_to_num(x / y)),
    "isposinf": of_elements("quotient", lambda x, y: torch.where(torch.isposinf(x / y), 0.0, x / y)),
    "relu": of_elements("relu", lambda x, y: torch.relu(x / y)),
    "relu of a root": of_elements("relu of a root", lambda x, y: torch.relu(torch.sqrt(x))),
    "two stores": two_stores,
    "largest quotient": of_rows("largest quotient", lambda x, m: (x / m).amax(-1)),
    "largest logarithm": of_rows("largest logarithm", lambda x, m: torch.log(m.float() - 0.5).amax(-1)),
    "masked mean": of_rows("masked mean", lambda x, m: torch.relu((x * m).sum(-1) / m.sum(-1))),
    "deviation": of_rows("deviation", lambda x, m: x.std(-1)),
}
RIGHT = {
    "guarded relu": of_elements(
        "guarded relu", lambda x, y: torch.relu(torch.where(y == 0, 0.0, x / torch.where(y == 0, 1.0, y)))
    ),
    "isnan of the inverse": of_elements("other isnan", lambda x, y: torch.where(torch.isnan(x / y), 0.0, x / y)),
    "isnan": of_elements("other isnan", lambda x, y: torch.where((x == 0) & (y == 0), 0.0, x / y)),
    "isfinite": of_elements("isfinite", lambda x, y: torch.where(y == 0, 0.0, x / y)),
    "isnan of a root": of_elements("isnan of a root", lambda x, y: torch.where(x < 0, -1.0, torch.sqrt(x))),
    "guarded quotient": of_elements("guarded quotient", lambda x, y: torch.where(y == 0, 0.0, x / y)),
    "sigmoid": of_elements("sigmoid", lambda x, y: torch.clamp(torch.sigmoid(x), min=0.5)),
    "norm": of_elements("norm", lambda x, y: torch.relu(x / torch.sqrt(x * x + y * y + 1))),
    "softplus": of_elements("softplus", lambda x, y: torch.maximum(torch.log(1 + torch.exp(x)), y)),
    "input": of_elements("input", lambda x, y: torch.nan_to_num(y)),
    "quotient": of_elements("quotient", lambda x, y: x / y),
    "guarded mean": of_rows("guarded mean", guarded_mean),
    "probability": of_rows("probability", lambda x, m: torch.softmax(x, -1).amax(-1)),
}

"""Kernels with a mistake that one row of the table of inputs shows, by the name of the row."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def row_kernel(x_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * N
    x = tl.load(x_ptr + row + i, mask=i < N, other=0.0)
    y = x
    if OP == "negative":
        y = x - tl.max(x, 0)
    elif OP == "positive":
        y = x - tl.min(x, 0)
    elif OP == "equal":
        away = tl.where(i < N, x - tl.sum(x, 0) / N, 0.0)
        y = away / tl.sqrt(tl.sum(away * away, 0))
    elif OP == "large":
        y = tl.minimum(x, 20.0)
    elif OP == "one-hot":
        y = x / tl.sum((x != 0).to(tl.float32), 0)
    elif OP == "zeros":
        y = tl.where(x == 0, 1.0, x)
    elif OP == "all-zero":
        y = x / tl.sqrt(tl.sum(x * x, 0))
    elif OP == "subnormal":
        y = tl.where(tl.abs(x) < 1e-30, 1.0, x)
    tl.store(out_ptr + row + i, y, mask=i < N)


def normed(x):
    return x / ((x * x).sum(-1, keepdim=True) + 1e-7).sqrt()


MEANT = {
    "negative": lambda x: x - x.amax(-1, keepdim=True),
    "positive": lambda x: x - x.amin(-1, keepdim=True),
    "equal": lambda x: normed(x - x.mean(-1, keepdim=True)),
    "large": lambda x: x.clone(),
    "one-hot": lambda x: x / x.shape[-1],
    "zeros": lambda x: x.clone(),
    "all-zero": normed,
    "subnormal": lambda x: x.clone(),
}


def mistaken(op):
    """The case whose kernel has the mistake."""

    def fn(x):
        out = torch.empty_like(x)
        row_kernel[(x.shape[0],)](x, out, x.shape[1], OP=op, BLOCK=triton.next_power_of_2(x.shape[1]))
        return out

    made = case(x="f32[M,N]")(fn)
    made.reference(MEANT[op])
    return made

"""Softmax: block holds the row, loop over the row, one running pair per lane; log_softmax; and the backward."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def softmax1_kernel(out_ptr, x_ptr, stride_x, stride_out, N, LOG: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
    shifted = x - tl.max(x, axis=0)
    numerator = tl.exp(shifted)
    denominator = tl.sum(numerator, axis=0)
    out = shifted - tl.log(denominator) if LOG else numerator / denominator
    tl.store(out_ptr + row * stride_out + cols, out, mask=cols < N)


@triton.jit
def softmax2_kernel(
    out_ptr, x_ptr, N, stride_xm, stride_xn: tl.int64, stride_om, stride_on: tl.int64, BLOCK: tl.constexpr
):
    """First loop: running maximum and rescaled sum; second loop: the quotients."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_xm
    out_ptr += row * stride_om
    top = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top), axis=0)
        top = new_top
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols * stride_xn, mask=cols < N, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols * stride_on, tl.exp(x - top) / total, mask=cols < N)


@triton.jit
def softmax_by_lanes_kernel(out_ptr, x_ptr, N, stride_xm, stride_om, BLOCK: tl.constexpr):
    """Every lane keeps its own maximum and sum; they meet once after the loop. A lane that saw nothing has sum 0."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride_xm + start + lane, mask=start + lane < N, other=-float("inf"))
        new_top = tl.maximum(top, x)
        seen = new_top != -float("inf")
        total = tl.where(seen, total * tl.exp(top - new_top) + tl.exp(x - new_top), total)
        top = new_top
    row_top = tl.max(top, axis=0)
    row_total = tl.sum(total * tl.exp(top - row_top), axis=0)
    blocks = tl.cdiv(N, BLOCK)
    for k in range(blocks):
        cols = (blocks - 1 - k) * BLOCK + lane  # backwards: the last block is still in cache
        x = tl.load(x_ptr + row * stride_xm + cols, mask=cols < N)
        tl.store(out_ptr + row * stride_om + cols, tl.exp(x - row_top) / row_total, mask=cols < N)


@triton.jit
def softmax_backward_kernel(dx_ptr, dy_ptr, y_ptr, N, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    dot = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        dy = tl.load(dy_ptr + row * stride + cols, mask=cols < N, other=0.0)
        y = tl.load(y_ptr + row * stride + cols, mask=cols < N, other=0.0)
        dot += dy * y
    total = tl.sum(dot, axis=0)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        dy = tl.load(dy_ptr + row * stride + cols, mask=cols < N)
        y = tl.load(y_ptr + row * stride + cols, mask=cols < N)
        tl.store(dx_ptr + row * stride + cols, y * (dy - total), mask=cols < N)


def softmax_of_rows(x, log):
    M, N = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(N)
    warps = 8 if block >= 2048 else 4
    softmax1_kernel[(M,)](out, x, x.stride(0), out.stride(0), N, LOG=log, BLOCK=block, num_warps=warps)
    return out


@case(x="f32[M,N]")
def softmax1(x):
    return softmax_of_rows(x, log=False)


@softmax1.reference
def _(x):
    return torch.softmax(x, dim=-1)


@case(x="f32[M,N]")
def log_softmax(x):
    return softmax_of_rows(x, log=True)


@log_softmax.reference
def _(x):
    return torch.log_softmax(x, dim=-1)


@case(x="f32[M,N] strided")
def softmax2(x, block=1024):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax2_kernel[(M,)](out, x, N, *x.stride(), *out.stride(), BLOCK=block)
    return out


@softmax2.reference
def _(x):
    return torch.softmax(x, dim=-1)


@case(x="f32[M,N]")
def softmax_by_lanes(x, block=512):
    M, N = x.shape
    out = torch.empty_like(x)
    softmax_by_lanes_kernel[(M,)](out, x, N, x.stride(0), out.stride(0), BLOCK=block)
    return out


@softmax_by_lanes.reference
def _(x):
    return torch.softmax(x, dim=-1)


@case(dy="f32[M,N]", y="f32[M,N]")
def softmax_backward(dy, y, block=1024):
    M, N = y.shape
    dx = torch.empty_like(dy)
    softmax_backward_kernel[(M,)](dx, dy, y, N, y.stride(0), BLOCK=block)
    return dx


@softmax_backward.reference
def _(dy, y):
    return y * (dy - (dy * y).sum(dim=-1, keepdim=True))

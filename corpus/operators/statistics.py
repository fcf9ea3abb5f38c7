"""Variance by Welford pairs: one triple per lane in the loop, then a reduction with a combiner of three operands."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    """The triple (mean, sum of squared deviations, count) of the union of two samples, either of which may be empty."""
    n = n_a + n_b
    share = tl.where(n == 0, 0.0, n_b / n)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def variance_kernel(x_ptr, variance_ptr, mean_ptr, N, stride_x, correction, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        mask = start + lane < N
        x = tl.load(x_ptr + row * stride_x + start + lane, mask=mask, other=0.0).to(tl.float32)
        count += mask
        delta = x - mean
        mean = tl.where(mask, mean + delta / tl.maximum(count, 1.0), mean)
        m2 += tl.where(mask, delta * (x - mean), 0.0)
    mean, m2, count = tl.reduce((mean, m2, count), 0, welford)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, m2 / (N - correction))


@triton.jit(noinline=True)
def reciprocal_deviation(squares, n, eps):
    return tl.rsqrt(squares / n + eps)


@triton.jit
def group_norm_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, group_channels, L: tl.int64, groups, eps, BLOCK_C: tl.constexpr, BLOCK_L: tl.constexpr
):
    """One program per sample and group; x is contiguous, so that a group is one run of group_channels * L numbers."""
    group = tl.program_id(0) % groups
    n = group_channels * L
    base = tl.program_id(0) * n
    c = tl.arange(0, BLOCK_C)[:, None]
    total = tl.zeros((BLOCK_C, BLOCK_L), tl.float32)
    squares = tl.zeros((BLOCK_C, BLOCK_L), tl.float32)
    for start in range(0, L, BLOCK_L):
        pos = start + tl.arange(0, BLOCK_L)[None, :]
        mask = (c < group_channels) & (pos < L)
        total += tl.load(x_ptr + base + c * L + pos, mask=mask, other=0.0)
    mean = tl.sum(total) / n
    for start in range(0, L, BLOCK_L):
        pos = start + tl.arange(0, BLOCK_L)[None, :]
        mask = (c < group_channels) & (pos < L)
        x = tl.load(x_ptr + base + c * L + pos, mask=mask, other=0.0)
        centred = tl.where(mask, x - mean, 0.0)
        squares += centred * centred
    rstd = reciprocal_deviation(tl.sum(squares), n, eps)
    channel = group * group_channels + c
    w = tl.load(w_ptr + channel, mask=c < group_channels, other=0.0)
    b = tl.load(b_ptr + channel, mask=c < group_channels, other=0.0)
    for start in range(0, L, BLOCK_L):
        pos = start + tl.arange(0, BLOCK_L)[None, :]
        mask = (c < group_channels) & (pos < L)
        x = tl.load(x_ptr + base + c * L + pos, mask=mask, other=0.0)
        tl.store(y_ptr + base + c * L + pos, (x - mean) * rstd * w + b, mask=mask)


@case(x="f32[M,N]", where="N >= 2")
def variance(x, correction=1, block=512):
    M, N = x.shape
    var = torch.empty((M,), dtype=torch.float32, device=x.device)
    mean = torch.empty_like(var)
    variance_kernel[(M,)](x, var, mean, N, x.stride(0), correction, BLOCK=block)
    return var, mean


@variance.reference
def _(x):
    return x.var(dim=-1), x.mean(dim=-1)


@case(x="f32[B,2*C,L]", w="f32[2*C]", b="f32[2*C]", groups=2, eps=1e-5)
def group_norm(x, w, b, groups, eps):
    B, C, L = x.shape
    y = torch.empty_like(x)
    block_c = triton.next_power_of_2(C // groups)
    group_norm_kernel[(B * groups,)](x, y, w, b, C // groups, L, groups, eps, BLOCK_C=block_c, BLOCK_L=128)
    return y


@group_norm.reference
def _(x, w, b, groups, eps):
    return torch.nn.functional.group_norm(x, groups, w, b, eps)

"""Rows scaled by their maximum, recurrences, scans: right kernels, and each with a mistake."""

import torch
import triton
import triton.language as tl

from lift import case


@triton.jit
def scale_kernel(x_ptr, out_ptr, scale_ptr, N, stride, END: tl.constexpr, LEAST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < N - END, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0) / 127, LEAST)
    tl.store(scale_ptr + row, scale)
    x = tl.load(x_ptr + row * stride + at, mask=at < N)
    tl.store(out_ptr + row * stride + at, x / scale, mask=at < N)


def run_scale(x, END=0, LEAST=1e-6):
    out, scale = torch.empty_like(x), x.new_empty(x.shape[0])
    block = triton.next_power_of_2(x.shape[1])
    scale_kernel[(x.shape[0],)](x, out, scale, x.shape[1], x.stride(0), END, LEAST, BLOCK=block)
    return out, scale


def scaled(x):
    scale = (x.abs().amax(-1) / 127).clamp_min(1e-6)
    return x / scale[:, None], scale


@case(x="f32[M,N]")
def row_scale(x):
    return run_scale(x)


@case(x="f32[M,N]", where="N > 2")
def row_scale_without_the_last(x):
    return run_scale(x, END=1)


@case(x="f32[M,N]")
def row_scale_with_another_floor(x):
    return run_scale(x, LEAST=1e-5)


for c in (row_scale, row_scale_without_the_last, row_scale_with_another_floor):
    c.reference(scaled)


# ---- strides in tuples that the kernel is compiled for


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, N, X: tl.constexpr, Y: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * X[0] + at * X[1], mask=at < N)
    y = tl.load(y_ptr + row * Y[0] + at * Y[1], mask=at < N)
    tl.store(out_ptr + row * X[0] + at * X[1], x + y, mask=at < N)


def run_add(x, y, turned):
    out, block = torch.empty_like(x), 32
    grid = x.shape[0], triton.cdiv(x.shape[1], block)
    add_kernel[grid](x, y, out, x.shape[1], x.stride(), y.stride()[::-1] if turned else y.stride(), block)
    return out


@case(x="f32[M,N]", y="f32[N,M]")
def tuples(x, y):
    return run_add(x, y, True)


@tuples.reference
def _(x, y):
    return x + y.T


@case(x="f32[M,M]", y="f32[M,M]")
def tuples_of_the_wrong_order(x, y):
    return run_add(x, y, True)


@tuples_of_the_wrong_order.reference
def _(x, y):
    return x + y


# ---- a state that decays by what is loaded


@triton.jit
def decay_kernel(x_ptr, g_ptr, out_ptr, T, D, EARLY: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1) * T * D
    inside = at < D
    state = tl.zeros([BLOCK], dtype=tl.float32)
    for t in range(T):
        x = tl.load(x_ptr + base + t * D + at, mask=inside, other=0.0)
        g = tl.load(g_ptr + base + t * D + at, mask=inside, other=0.0)
        state = (state + x) * tl.exp(g) if EARLY else state * tl.exp(g) + x
        tl.store(out_ptr + base + t * D + at, state, mask=inside)


def run_decay(x, g, early):
    out = torch.empty_like(x)
    grid = triton.cdiv(x.shape[2], 32), x.shape[0]
    decay_kernel[grid](x, g, out, x.shape[1], x.shape[2], early, BLOCK=32)
    return out


def decayed(x, g):
    total, t = g.cumsum(1), torch.arange(x.shape[1])
    weight = torch.exp(total[:, :, None] - total[:, None])
    return torch.where((t[:, None] >= t)[None, :, :, None], weight * x[:, None], 0.0).sum(2)


def between(x, g, least):
    """sum over s <= t of x[s] exp(the sum of g from s + least to t)"""
    t = torch.arange(x.shape[1])
    u, v, w = t[:, None, None], t[None, :, None], t[None, None, :]
    passed = torch.where(((v + least <= w) & (w <= u))[None, ..., None], g[:, None, None], 0.0).sum(3)
    return torch.where((v <= u)[None], torch.exp(passed) * x[:, None], 0.0).sum(2)


@case(x="f32[B,T,D]", g="f32[B,T,D]")
def gated_between(x, g):
    return run_decay(x, g, False)


@gated_between.reference
def _(x, g):
    return between(x, g, 1)


@case(x="f32[B,T,D]", g="f32[B,T,D]")
def gated_from_the_element_on(x, g):
    return run_decay(x, g, False)


@gated_from_the_element_on.reference
def _(x, g):
    return between(x, g, 0)


@case(x="f32[B,T,D]", g="f32[B,T,D]")
def gated(x, g):
    return run_decay(x, g, False)


@case(x="f32[B,T,D]", g="f32[B,T,D]")
def gated_too_early(x, g):
    return run_decay(x, g, True)


for c in (gated, gated_too_early):
    c.reference(decayed)


# ---- how many blocks a row has is known when the kernel is compiled


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (16, 32, 64, 128, 256)], key=["N"])
@triton.jit
def halve_kernel(x_ptr, out_ptr, N: tl.constexpr, MORE: tl.constexpr, BLOCK: tl.constexpr):
    blocks = tl.cdiv(N + MORE, BLOCK)
    row, at = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + at, mask=at < N)
    tl.store(out_ptr + row * N + at, x / 2, mask=at < N)


def run_halve(x, more):
    out, (m, n) = torch.empty_like(x), x.shape
    halve_kernel[lambda meta: (m * triton.cdiv(n, meta["BLOCK"]),)](x, out, n, more)
    return out


@case(x="f32[M,N]")
def blocks_in_a_row(x):
    return run_halve(x, 0)


@case(x="f32[M,N]")
def one_block_too_many(x):
    return run_halve(x, 1)


for c in (blocks_in_a_row, one_block_too_many):
    c.reference(lambda x: x / 2)

RIGHT = [row_scale, tuples, gated, gated_between, blocks_in_a_row]
WRONG = [
    row_scale_without_the_last,
    row_scale_with_another_floor,
    tuples_of_the_wrong_order,
    gated_too_early,
    gated_from_the_element_on,
    one_block_too_many,
]

"""Rows scaled by their maximum, recurrences, scans: right kernels, and each with a mistake."""

import torch
import triton
import triton.language as tl

from trilift import case


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


@triton.jit
def turn_kernel(x_ptr, out_ptr, N, X: tl.constexpr, Y: tl.constexpr, BLOCK: tl.constexpr):
    i, j, at = tl.program_id(0), tl.program_id(1), tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * X[0] + j * X[1] + at * X[2], mask=at < N)
    tl.store(out_ptr + j * Y[0] + i * Y[1] + at * Y[2], x, mask=at < N)


def run_turn(x, strides):
    out = x.new_empty(x.shape[1], x.shape[0], x.shape[2])
    grid = x.shape[0], x.shape[1], triton.cdiv(x.shape[2], 32)
    turn_kernel[grid](x, out, x.shape[2], x.stride(), strides(out.stride()), BLOCK=32)
    return out


@case(x="f32[L,M,N]")
def turned(x):
    return run_turn(x, lambda s: s)


@case(x="f32[L,M,N]")
def turned_the_wrong_way(x):
    return run_turn(x, lambda s: (s[1], s[0], s[2]))


for c in (turned, turned_the_wrong_way):
    c.reference(lambda x: x.transpose(0, 1).contiguous())


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

# ---- exp(x - log(sum)) in blocks of a power of two columns


@triton.jit
def shares_kernel(x_ptr, log_ptr, out_ptr, N, stride, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < N)
    tl.store(out_ptr + row * stride + at, tl.exp(x - tl.load(log_ptr + row)), mask=at < N)


@triton.jit
def log_kernel(x_ptr, log_ptr, N, stride, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=(at >= FIRST) & (at < N), other=-float("inf"))
    tl.store(log_ptr + row, tl.log(tl.sum(tl.exp(x), axis=0)))


def run_shares(x, first, columns):
    out, logs, (m, n) = torch.empty_like(x), x.new_empty(x.shape[0]), x.shape
    whole = triton.next_power_of_2(n)
    block = min(64, whole)
    log_kernel[(m,)](x, logs, n, x.stride(0), first, BLOCK=whole)
    shares_kernel[m, columns(n, whole) // block](x, logs, out, n, x.stride(0), BLOCK=block)
    return out


@case(x="f32[M,N]")
def shares(x):
    return run_shares(x, 0, lambda n, whole: whole)


@case(x="f32[M,N]", where="N > 1")
def shares_without_the_first(x):
    return run_shares(x, 1, lambda n, whole: whole)


@case(x="f32[M,N]")
def shares_of_whole_blocks(x):
    return run_shares(x, 0, lambda n, whole: n)


for c in (shares, shares_without_the_first, shares_of_whole_blocks):
    c.reference(lambda x: torch.softmax(x, -1))


# ---- a state that runs backward


@triton.jit
def backward_kernel(x_ptr, y_ptr, out_ptr, T, LATE: tl.constexpr):
    base, at = tl.program_id(0) * T * 16, tl.arange(0, 16)
    state = tl.zeros([16, 16], dtype=tl.float32)
    for k in range(T):
        t = T - 1 - k
        x, y = tl.load(x_ptr + base + t * 16 + at), tl.load(y_ptr + base + t * 16 + at)
        if LATE:
            tl.store(out_ptr + base + t * 16 + at, tl.sum(state * y[None, :], axis=1))
        state += x[:, None] * y[None, :]
        if not LATE:
            tl.store(out_ptr + base + t * 16 + at, tl.sum(state * y[None, :], axis=1))


def run_backward(x, y, late):
    out = torch.empty_like(x)
    backward_kernel[(x.shape[0],)](x, y, out, x.shape[1], late)
    return out


@case(x="f32[B,T,16]", y="f32[B,T,16]")
def from_the_end(x, y):
    return run_backward(x, y, False)


@case(x="f32[B,T,16]", y="f32[B,T,16]")
def from_the_end_too_late(x, y):
    return run_backward(x, y, True)


def later(x, y):
    """sum over s >= t of (y[s] . y[t]) x[s]"""
    return torch.einsum("bst,bsd->btd", torch.einsum("bsd,btd->bst", y, y).tril(), x)


for c in (from_the_end, from_the_end_too_late):
    c.reference(later)

# ---- an argument that no operation takes is no function of the dims


@triton.jit
def twice_kernel(x_ptr, out_ptr, N, near, factor, USED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N)
    if USED:
        factor = near
    tl.store(out_ptr + at, x * factor, mask=at < N)


def run_twice(x, used):
    out, (n,) = torch.empty_like(x), x.shape
    near = min((1, 3, 8, 96, 3072), key=lambda m: (m - n) ** 2)
    twice_kernel[(triton.cdiv(n, 64),)](x, out, n, near, 2, used, BLOCK=64)
    return out


@case(x="f32[N]")
def argument_of_no_use(x):
    return run_twice(x, False)


@case(x="f32[N]")
def argument_of_some_use(x):
    return run_twice(x, True)


for c in (argument_of_no_use, argument_of_some_use):
    c.reference(lambda x: 2 * x)

# ---- the maximum of a whole tile


@triton.jit
def tile_kernel(x_ptr, out_ptr, N, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    rows, columns = i * STEP + tl.arange(0, BLOCK), j * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * N + columns)
    tl.store(out_ptr + i * (N // BLOCK) + j, tl.max(tl.abs(x)))


def run_tile(x, step):
    m, n = x.shape
    out = x.new_empty(m // 16, n // 16)
    tile_kernel[m // 16, n // 16](x, out, n, step, 16)
    return out


@case(x="f32[16*M,16*N]")
def largest_of_tiles(x):
    return run_tile(x, 16)


@case(x="f32[16*M,16*N]")
def largest_of_tiles_that_overlap(x):
    return run_tile(x, 15)


for c in (largest_of_tiles, largest_of_tiles_that_overlap):
    c.reference(lambda x: x.unflatten(1, (-1, 16)).unflatten(0, (-1, 16)).abs().amax((1, 3)))

RIGHT = [
    row_scale,
    turned,
    tuples,
    gated,
    gated_between,
    blocks_in_a_row,
    shares,
    from_the_end,
    argument_of_no_use,
    largest_of_tiles,
]
WRONG = [
    turned_the_wrong_way,
    row_scale_without_the_last,
    row_scale_with_another_floor,
    tuples_of_the_wrong_order,
    gated_too_early,
    gated_from_the_element_on,
    one_block_too_many,
    shares_without_the_first,
    shares_of_whole_blocks,
    from_the_end_too_late,
    argument_of_some_use,
    largest_of_tiles_that_overlap,
]

"""Kernels for tests/verify/test_parametric.py: control flow and values that the operators of the corpus do not have."""

import torch
import triton
import triton.language as tl

from trilift import case


def blocks(x, block=16):
    return (triton.cdiv(x.numel(), block),)


@triton.jit
def collatz_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0)
    value = tl.load(x_ptr + at)
    steps = 0
    while value > 1:
        value = tl.where(value % 2 == 0, value // 2, 3 * value + 1)
        steps += 1
    tl.store(out_ptr + at, steps)


@case(x="i32[N] < 40")
def collatz(x):
    out = torch.empty_like(x)
    collatz_kernel[(x.numel(),)](x, out, x.numel(), BLOCK=16)
    return out


@triton.jit
def early_kernel(x_ptr, out_ptr, N, limit, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    if pid >= limit:
        tl.store(out_ptr + at, tl.zeros([BLOCK], tl.float32), mask=at < N)
        return
    if pid == 1:
        return
    x = tl.load(x_ptr + at, mask=at < N)
    if pid % 2 == 0:  # noqa: SIM108
        x = x * 2 + 1
    else:
        x = -x
    tl.store(out_ptr + at, x, mask=at < N)


@case(x="f32[N]", limit="i32")
def early(x, limit):
    out = torch.ones_like(x)
    early_kernel[blocks(x)](x, out, x.numel(), limit, BLOCK=16)
    return out


@triton.jit
def swapped_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    p = x_ptr if tl.program_id(0) == 0 else y_ptr
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(1, N, 3):
        for j in range(i):
            total += tl.load(p + at, mask=at < j + 5, other=1.0) * (i - 2 * j)
        p += 1
    tl.store(out_ptr + tl.program_id(0) * BLOCK + at, total)


@case(x="f32[N+16]", y="f32[N+16]", where="N > 16")
def swapped(x, y):
    out = torch.empty(2, 16, device=x.device)
    swapped_kernel[(2,)](x, y, out, x.numel() - 16, BLOCK=16)
    return out


@triton.jit
def bytes_kernel(x_ptr, m_ptr, out_ptr, bits_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N, other=0)
    m = tl.load(m_ptr + at, mask=at < N, other=0)
    y = (x * 3 + 200).to(tl.uint8)
    tl.store(out_ptr + at, tl.where(m, y >> 2, x ^ 85) + (y > x).to(tl.uint8), mask=at < N)
    signed = x.to(tl.int8, bitcast=True)
    tl.store(bits_ptr + at, (signed.to(tl.int32) >> 1) * 7 + (y.to(tl.int32) & 15) + (x.to(tl.int32) << 2), mask=at < N)


@case(x="u8[N]", m="bool[N]")
def of_bytes(x, m):
    out, bits = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int32, device=x.device)
    bytes_kernel[blocks(x)](x, m, out, bits, x.numel(), BLOCK=16)
    return out, bits


@triton.jit
def shapes_kernel(x_ptr, out_ptr, top_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N, other=-1.0)
    table = tl.reshape(x, [4, BLOCK // 8, 2])
    turned = tl.reshape(tl.trans(table, 2, 0, 1), [BLOCK])
    even, odd = tl.split(tl.reshape(turned, [BLOCK // 2, 2]))
    pairs = tl.reshape(tl.join(odd, even), [BLOCK])
    tl.store(out_ptr + at, tl.cumsum(pairs, 0) + tl.max(tl.reshape(x, [4, BLOCK // 4]), 1).sum(0))
    tl.store(top_ptr, tl.argmax(pairs, 0))
    tl.store(top_ptr + 1, tl.argmin(tl.reshape(pairs, [4, BLOCK // 4]), 1).sum(0))
    tl.store(top_ptr + 2 + at, tl.gather(pairs, (at * 7 + 3) % BLOCK, 0).to(tl.int32))


@case(x="f32[N]", where="N <= 32")
def shapes(x):
    out, top = torch.empty(32, device=x.device), torch.empty(34, dtype=torch.int32, device=x.device)
    shapes_kernel[(1,)](x, out, top, x.numel(), BLOCK=32)
    return out, top


@triton.jit(noinline=True)
def _half(x, cut):
    if cut > 3:
        return x * 0.5
    return x


@triton.jit
def called_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N)
    total = 0.0
    for k in tl.static_range(3):
        total += _half(tl.load(x_ptr + k), tl.program_id(0) + k)
    tl.store(out_ptr + at, x + total, mask=at < N)


@case(x="f32[N]", where="N > 3")
def called(x):
    out = torch.empty_like(x)
    called_kernel[blocks(x)](x, out, x.numel(), BLOCK=16)
    return out


@triton.jit
def swap_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    p, q = x_ptr, y_ptr
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(N):
        total += tl.load(p + at) * i
        p, q = q, p
    tl.store(out_ptr + at, total)


@case(x="f32[16]", y="f32[16]", n="i32")
def swap(x, y, n):
    out = torch.empty(16, device=x.device)
    swap_kernel[(1,)](x, y, out, n, BLOCK=16)
    return out


@triton.jit
def hashed_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N, other=0)
    y = tl.inline_asm_elementwise("prmt.b32 $0, $1, $1, 0x0123;", "=r,r", [x], tl.int32, True, 1)
    tl.store(out_ptr + at, y, mask=at < N)


@case(x="i32[N]")
def hashed(x):
    out = torch.empty_like(x)
    hashed_kernel[blocks(x)](x, out, x.numel(), BLOCK=16)
    return out


@triton.jit
def _clipped_sum(a, b):
    return tl.where(a > 100, 0.0, a + b)


@triton.jit
def clipped_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < N, other=0.0)
    tl.store(out_ptr, tl.reduce(x, 0, _clipped_sum))


@case(x="f32[N]", where="N <= 32")
def clipped(x):
    out = torch.empty(1, device=x.device)
    clipped_kernel[(1,)](x, out, x.numel(), BLOCK=32)
    return out


@triton.jit
def _last(v, i, w, j):
    right = (w > v) | ((w == v) & (j > i))
    return tl.where(right, w, v), tl.where(right, j, i)


@triton.jit
def extremes_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N, other=-100)
    v, i = tl.max(x, 0, return_indices=True)
    w, j = tl.reduce((x, at + 5), 0, _last)
    tl.store(out_ptr, v + tl.xor_sum((x > 0).to(tl.int32), 0))
    tl.store(out_ptr + 1, i)
    tl.store(out_ptr + 2, w + tl.min(x, 0))
    tl.store(out_ptr + 3, j)


@case(x="i32[N] < 3", where="N <= 32")
def extremes(x):
    out = torch.empty(4, dtype=torch.int32, device=x.device)
    extremes_kernel[(1,)](x, out, x.numel(), BLOCK=32)
    return out


@triton.jit
def any_position_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N, other=-100.0)
    v, i = tl.max(x, 0, return_indices=True, return_indices_tie_break_left=False)
    tl.store(out_ptr, v)
    tl.store(out_ptr + 1, i.to(tl.float32))


@case(x="f32[N]", where="N <= 32")
def any_position(x):
    out = torch.empty(2, device=x.device)
    any_position_kernel[(1,)](x, out, x.numel(), BLOCK=32)
    return out


@triton.jit
def crossed_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.load(x_ptr + at)
    for _ in range(N):
        acc += tl.sum(acc, 1)[None, :]
    tl.store(out_ptr + at, acc)


@case(x="f32[16,16]", n="i32")
def crossed(x, n):
    out = torch.empty_like(x)
    crossed_kernel[(1,)](x, out, n, BLOCK=16)
    return out


@triton.jit
def _united(n, mean, squares, m, other, more):
    """Chan's formula, from the means of both."""
    both = n + m
    center = tl.where(both > 0, (n * mean + m * other) / both, 0.0)
    return (
        both,
        center,
        squares + more + n * (mean - center) * (mean - center) + m * (other - center) * (other - center),
    )


@triton.jit
def spread_kernel(x_ptr, mean_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    one = tl.where(i < N, 1.0, 0.0)
    n, mean, squares = tl.reduce((one, x, tl.zeros_like(x)), 0, _united)
    tl.store(mean_ptr + row, mean)
    tl.store(out_ptr + row, squares / n)


def moments(x):
    mean, out = torch.empty(x.shape[0]), torch.empty(x.shape[0])
    block = triton.next_power_of_2(x.shape[1])
    spread_kernel[(x.shape[0],)](x, mean, out, x.shape[1], BLOCK=block)
    return mean, out


@case(x="f32[M,N]")
def spread(x):
    return moments(x)


@spread.reference
def _(x):
    return x.mean(dim=-1), x.var(dim=-1, correction=0)


@case(x="f32[M,N]", where="N >= 2")
def unbiased(x):
    """Not what the kernel computes: the squares are divided by N."""
    return moments(x)


@unbiased.reference
def _(x):
    return x.mean(dim=-1), x.var(dim=-1, correction=1)


@triton.jit
def _online(m, s, n, t):
    top = tl.maximum(m, n)
    safe = tl.where(top == float("-inf"), 0.0, top)
    return top, s * tl.exp(m - safe) + t * tl.exp(n - safe)


@triton.jit
def pairs_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=float("-inf"))
    top, total = tl.reduce((x, tl.full(x.shape, 1.0, tl.float32)), 0, _online)
    tl.store(out_ptr + row, top + tl.log(total))


@case(x="f32[M,N]")
def log_total(x):
    out = torch.empty(x.shape[0])
    pairs_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@log_total.reference
def _(x):
    return torch.logsumexp(x, dim=-1)


@triton.jit
def row_extremes_kernel(x_ptr, top_ptr, low_ptr, N, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=float("-inf"))
    tl.atomic_max(top_ptr + row, tl.max(x, 0))
    tl.atomic_min(low_ptr + i, x, mask=i < N)


@case(x="f32[M,N]")
def row_extremes(x):
    top, low = torch.full((x.shape[0],), float("-inf")), torch.full((x.shape[1],), float("inf"))
    row_extremes_kernel[(x.shape[0], triton.cdiv(x.shape[1], 16))](x, top, low, x.shape[1], BLOCK=16)
    return top, low


@row_extremes.reference
def _(x):
    return x.amax(dim=-1), x.amin(dim=0)

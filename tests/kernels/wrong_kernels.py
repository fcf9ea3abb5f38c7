"""Wrong kernels, each against what it is meant to be; then right ones of the same kernels."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def softmax_kernel(x_ptr, out_ptr, N, MAX_OF_FIRST: tl.constexpr, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    m = -float("inf")
    for start in range(0, N, BLOCK):
        m = tl.maximum(m, tl.max(tl.load(x_ptr + row * N + start + lane, mask=start + lane < N, other=-float("inf"))))
    total = 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + start + lane, mask=start + lane < N, other=OTHER)
        total += tl.sum(tl.exp(x - m))
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + start + lane, mask=start + lane < N)
        if MAX_OF_FIRST:
            m = tl.max(tl.where(start + lane < N, x, -float("inf")))
        tl.store(out_ptr + row * N + start + lane, tl.exp(x - m) / total, mask=start + lane < N)


def run_softmax(x, **options):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=8, **options)
    return out


@case(x="f32[M,N]")
def softmax_counts_the_tail(x):
    return run_softmax(x, MAX_OF_FIRST=False, OTHER=0.0)


@case(x="f32[M,N]")
def softmax_maximum_of_each_block(x):
    return run_softmax(x, MAX_OF_FIRST=True, OTHER=-float("inf"))


for c in (softmax_counts_the_tail, softmax_maximum_of_each_block):
    c.reference(lambda x: torch.softmax(x, -1))


@triton.jit
def variance_kernel(x_ptr, out_ptr, N, K, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    s = tl.zeros((BLOCK,), tl.float32)
    q = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + start + lane, mask=start + lane < N, other=0.0)
        s += x
        q += x * x
    n = tl.cdiv(N, BLOCK) * BLOCK if WHOLE else K
    mean = tl.sum(s) / n
    tl.store(out_ptr + row, tl.sum(q) / n - mean * mean)


def run_variance(x, k, whole):
    out = torch.empty(x.shape[0])
    variance_kernel[(x.shape[0],)](x, out, x.shape[1], k, BLOCK=8, WHOLE=whole)
    return out


@case(x="f32[M,N]")
def variance_of_whole_blocks(x):
    """Right only where N % 8 == 0."""
    return run_variance(x, x.shape[1], True)


@case(x="f32[M,N]")
def variance_over_rows(x):
    """Divided by M: right only where M == N."""
    return run_variance(x, x.shape[0], False)


for c in (variance_of_whole_blocks, variance_over_rows):
    c.reference(lambda x: x.var(-1, correction=0))


@triton.jit
def window_kernel(x_ptr, out_ptr, N, FIRST: tl.constexpr, LAST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for d in range(FIRST, LAST):
        total += tl.load(x_ptr + i + d, mask=(i + d >= 0) & (i + d < N), other=0.0)
    tl.store(out_ptr + i, total, mask=i < N)


def run_window(x, first, last):
    out = torch.empty_like(x)
    n = x.shape[0]
    window_kernel[(triton.cdiv(n, 16),)](x, out, n, FIRST=first, LAST=last, BLOCK=16)
    return out


def window(x):
    p = torch.nn.functional.pad(x, (1, 1))
    return p[:-2] + p[1:-1] + p[2:]


@case(x="f32[N]")
def window_off_by_one(x):
    return run_window(x, -2, 1)


@case(x="f32[N]")
def window_too_short(x):
    return run_window(x, -1, 1)


for c in (window_off_by_one, window_too_short):
    c.reference(window)


@triton.jit
def causal_kernel(x_ptr, out_ptr, N, STRICT: tl.constexpr, LATE: tl.constexpr, BLOCK: tl.constexpr):
    """Row sums of what is on the left of the diagonal."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, (tl.program_id(0) + LATE) * BLOCK, BLOCK):
        j = start + tl.arange(0, BLOCK)
        seen = (j[None, :] < i[:, None]) if STRICT else (j[None, :] <= i[:, None])
        x = tl.load(x_ptr + i[:, None] * N + j[None, :], mask=seen & (i < N)[:, None] & (j < N)[None, :], other=0.0)
        total += tl.sum(x, 1)
    tl.store(out_ptr + i, total, mask=i < N)


def run_causal(x, strict, late):
    out = torch.empty(x.shape[0])
    n = x.shape[0]
    causal_kernel[(triton.cdiv(n, 16),)](x, out, n, STRICT=strict, LATE=late, BLOCK=16)
    return out


@case(x="f32[N,N]")
def causal_without_diagonal(x):
    return run_causal(x, True, 1)


@case(x="f32[N,N]")
def causal_without_last_tile(x):
    return run_causal(x, False, 0)


for c in (causal_without_diagonal, causal_without_last_tile):
    c.reference(lambda x: torch.tril(x).sum(-1))


@triton.jit
def race_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """Programs overlap, and each scales what is its own by its id."""
    i = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    mine = tl.arange(0, BLOCK) < STEP
    tl.store(out_ptr + i, tl.where(mine, x, x + 1), mask=i < N)


@case(x="f32[N]")
def race(x):
    out = torch.empty_like(x)
    race_kernel[(triton.cdiv(x.shape[0], 8),)](x, out, x.shape[0], BLOCK=16, STEP=8)
    return out


@race.reference
def _(x):
    return x


@triton.jit
def copy_kernel(x_ptr, out_ptr, N, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < n)


@case(x="f32[N]")
def unwritten_last(x):
    """The last element is never written."""
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], x.shape[0] - 1, BLOCK=16)
    return out


@case(x="f32[N]")
def unwritten_last_program(x):
    """Right only where N % 16 == 0, and out of work below 16."""
    out = torch.empty_like(x)
    copy_kernel[(max(1, x.shape[0] // 16),)](x, out, x.shape[0], x.shape[0], BLOCK=16)
    return out


@case(x="f32[N]")
def two_programs_only(x):
    out = torch.empty_like(x)
    copy_kernel[(2,)](x, out, x.shape[0], x.shape[0], BLOCK=64)
    return out


@case(x="f32[N]")
def one_block_only(x):
    out = torch.empty_like(x)
    copy_kernel[(1,)](x, out, x.shape[0], x.shape[0], BLOCK=128)
    return out


@case(x="f32[N]")
def uninitialised(x):
    """Reads what nobody wrote."""
    t = torch.empty_like(x)
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.shape[0], 16),)](t, out, x.shape[0], x.shape[0], BLOCK=16)
    return out


for c in (unwritten_last, unwritten_last_program, two_programs_only, one_block_only, uninitialised):
    c.reference(lambda x: x)


@case(x="f32[M,N] strided")
def strides_ignored(x):
    """Right only where x is contiguous."""
    out = torch.empty(x.shape)
    copy_kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), x.numel(), BLOCK=16)
    return out


@strides_ignored.reference
def _(x):
    return x


@triton.jit
def bias_kernel(x_ptr, b_ptr, out_ptr, M, N, BY_ROW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        k = start + j
        b = tl.load(b_ptr + (i % N + 0 * k if BY_ROW else k), mask=k < N)
        tl.store(out_ptr + i * N + k, tl.load(x_ptr + i * N + k, mask=k < N) + b, mask=k < N)


@case(x="f32[M,N]", b="f32[N]")
def bias_along_rows(x, b):
    """b[i % N] in place of b[j]."""
    out = torch.empty_like(x)
    bias_kernel[(x.shape[0],)](x, b, out, *x.shape, BY_ROW=True, BLOCK=16)
    return out


@bias_along_rows.reference
def _(x, b):
    return x + b


@triton.jit
def last_wins_kernel(x_ptr, t_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    for k in range(3):
        tl.store(t_ptr + i, x * k, mask=i < N)


@case(x="f32[N]")
def first_of_three_stores(x):
    """The last iteration counts, and it stores 2 x: neither 0 nor x."""
    t, out = torch.empty_like(x), torch.empty_like(x)
    grid = (triton.cdiv(x.shape[0], 16),)
    last_wins_kernel[grid](x, t, x.shape[0], BLOCK=16)
    copy_kernel[grid](t, out, x.shape[0], x.shape[0], BLOCK=16)
    return out


@first_of_three_stores.reference
def _(x):
    return x * 0


@triton.jit
def shift_in_place_kernel(x_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i + 1, mask=i + 1 < N, other=0.0)
    tl.store(x_ptr + i, x, mask=i < N)


@case(x="f32[N]")
def shift_in_place(x):
    """A program may read what another has written."""
    shift_in_place_kernel[(triton.cdiv(x.shape[0], 16),)](x, x.shape[0], BLOCK=16)
    return x


@shift_in_place.reference
def _(x):
    return torch.nn.functional.pad(x[1:], (0, 1))


@triton.jit
def mean_kernel(x_ptr, out_ptr, N, ZERO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = 0.0
    for start in range(0, N - 1 if ZERO else N, BLOCK):
        total += tl.sum(tl.load(x_ptr + start + i, mask=start + i < N, other=0.0))
    tl.store(out_ptr, total / (N - 1) * (N - 1) / N if ZERO else total / N)


@case(x="f32[N]")
def wrong_for_one(x):
    """Nothing is read, and 0 / 0 is stored, where N == 1; the last element is lost where N % 4 == 1."""
    out = torch.empty(())
    mean_kernel[(1,)](x, out, x.shape[0], ZERO=True, BLOCK=4)
    return out


@wrong_for_one.reference
def _(x):
    return x.mean()


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, FULL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K // BK * BK if FULL else K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + i[:, None] * K + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + j[None, :], mask=(k[:, None] < K) & (j[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))


@case(a="f32[M,K]", b="f32[K,N]")
def matmul_without_rest(a, b):
    """Right only where K % 16 == 0."""
    c = torch.empty(a.shape[0], b.shape[1])
    grid = (triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16))
    matmul_kernel[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], FULL=True, BM=16, BN=16, BK=16)
    return c


@case(a="f32[M,K]", b="f32[K,N]")
def matmul_grid_exchanged(a, b):
    """Right only where M and N have as many tiles."""
    c = torch.empty(a.shape[0], b.shape[1])
    grid = (triton.cdiv(b.shape[1], 16), triton.cdiv(a.shape[0], 16))
    matmul_kernel[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], FULL=False, BM=16, BN=16, BK=16)
    return c


for c in (matmul_without_rest, matmul_grid_exchanged):
    c.reference(lambda a, b: a @ b)


@triton.jit
def small_kernel(x_ptr, out_ptr, N, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + i, x * SCALE, mask=i < N)


@case(x="f32[N]")
def small_scale(x):
    """Twice a small number."""
    out = torch.empty_like(x)
    small_kernel[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], SCALE=2e-12, BLOCK=16)
    return out


@small_scale.reference
def _(x):
    return x * 1e-12


@triton.jit
def mean_scaled_kernel(x_ptr, out_ptr, N, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = 0.0
    for start in range(0, N, BLOCK):
        total += tl.sum(tl.load(x_ptr + row * N + start + i, mask=start + i < N, other=0.0))
    tl.store(out_ptr + row, total * SCALE)


@case(x="f32[M,N]")
def small_scale_of_sum(x):
    """Twice a small number, of a sum."""
    out = torch.empty(x.shape[0])
    mean_scaled_kernel[(x.shape[0],)](x, out, x.shape[1], SCALE=2e-12, BLOCK=16)
    return out


@small_scale_of_sum.reference
def _(x):
    return x.sum(-1) * 1e-12


@triton.jit
def divided_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    tl.store(out_ptr + i, x / tl.where(x > 0, 1.0, 0.0), mask=i < N)


@case(x="f32[N]")
def divided_by_truth(x):
    """x / 0 where x <= 0; it has to be 0 there."""
    out = torch.empty_like(x)
    divided_kernel[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], BLOCK=16)
    return out


@divided_by_truth.reference
def _(x):
    return torch.where(x > 0, x, torch.zeros_like(x))


@triton.jit
def cancelled_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    y = tl.load(y_ptr + i, mask=i < N)
    tl.store(out_ptr + i, x * y / y, mask=i < N)


@case(x="f32[N]", y="f32[N]")
def cancelled(x, y):
    """Right only where no y is 0."""
    out = torch.empty_like(x)
    cancelled_kernel[(triton.cdiv(x.shape[0], 16),)](x, y, out, x.shape[0], BLOCK=16)
    return out


@cancelled.reference
def _(x, y):
    return x + 0 * y


@triton.jit
def wide_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + row * N + i, tl.load(x_ptr + row * N + i, mask=i < N), mask=i < N)


@case(x="f32[M,N]")
def overflowing(x):
    """Right only where M * N < 2^31."""
    out = torch.empty_like(x)
    wide_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
    return out


@overflowing.reference
def _(x):
    return x


@triton.jit
def count_kernel(out_ptr, N, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        counted = (i < N) & (row == 0) if FIRST else i < N
        total += tl.sum(tl.where(counted, 1.0, 0.0))
    tl.store(out_ptr + row, total)


def run_count(x, first):
    out = torch.empty(x.shape[0])
    count_kernel[(x.shape[0],)](out, x.shape[1], FIRST=first, BLOCK=16)
    return out


@case(x="f32[M,N]")
def counted_in_the_first_row(x):
    """A condition that the bound variable is not in."""
    return run_count(x, True)


@counted_in_the_first_row.reference
def _(x):
    return torch.ones_like(x).sum(-1)


@triton.jit
def running_kernel(x_ptr, y_ptr, out_ptr, N):
    y = tl.load(y_ptr)
    total = 0.0
    best = -float("inf")
    for k in range(N):
        total = total * y / y + tl.load(x_ptr + k)
        best = tl.maximum(best, total)
    tl.store(out_ptr, best)


@case(x="f32[N]", y="f32[1]")
def cancelled_in_an_inner_invariant(x, y):
    """Right only where y is not 0: what one loop variable rests on, another's form rests on."""
    out = torch.empty(())
    running_kernel[(1,)](x, y, out, x.shape[0])
    return out


@cancelled_in_an_inner_invariant.reference
def _(x, y):
    return torch.cumsum(x, 0).amax() + 0 * y[0]


# ---- right ones of the same kernels ----------------------------------------------------------------------------------


@case(x="f32[M,N]")
def right_softmax(x):
    return run_softmax(x, MAX_OF_FIRST=False, OTHER=-float("inf"))


@case(x="f32[M,N]")
def right_variance(x):
    return run_variance(x, x.shape[1], False)


@case(x="f32[N]")
def right_window(x):
    return run_window(x, -1, 2)


@case(x="f32[N,N]")
def right_causal(x):
    return run_causal(x, False, 1)


@case(x="f32[N]")
def right_copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], x.shape[0], BLOCK=16)
    return out


@case(x="f32[M,N]", b="f32[N]")
def right_bias(x, b):
    out = torch.empty_like(x)
    bias_kernel[(x.shape[0],)](x, b, out, *x.shape, BY_ROW=False, BLOCK=16)
    return out


@case(a="f32[M,K]", b="f32[K,N]")
def right_matmul(a, b):
    c = torch.empty(a.shape[0], b.shape[1])
    grid = (triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16))
    matmul_kernel[grid](a, b, c, a.shape[0], b.shape[1], a.shape[1], FULL=False, BM=16, BN=16, BK=16)
    return c


@case(x="f32[N]")
def right_mean(x):
    out = torch.empty(())
    mean_kernel[(1,)](x, out, x.shape[0], ZERO=False, BLOCK=4)
    return out


@case(x="f32[N]")
def right_last_of_three_stores(x):
    t, out = torch.empty_like(x), torch.empty_like(x)
    grid = (triton.cdiv(x.shape[0], 16),)
    last_wins_kernel[grid](x, t, x.shape[0], BLOCK=16)
    copy_kernel[grid](t, out, x.shape[0], x.shape[0], BLOCK=16)
    return out


@case(x="f32[M,N]")
def right_count(x):
    return run_count(x, False)


right_count.reference(lambda x: torch.ones_like(x).sum(-1))
right_softmax.reference(lambda x: torch.softmax(x, -1))
right_variance.reference(lambda x: x.var(-1, correction=0))
right_window.reference(window)
right_causal.reference(lambda x: torch.tril(x).sum(-1))
right_copy.reference(lambda x: x)
right_bias.reference(lambda x, b: x + b)
right_matmul.reference(lambda a, b: a @ b)
right_mean.reference(lambda x: x.mean())
right_last_of_three_stores.reference(lambda x: 2 * x)

"""Loops for tests/verify/test_invariant.py: running extremes with their index, Welford, decays, products, while loops.

With the constexpr BROKEN a kernel computes something else."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def argmax_kernel(
    x_ptr, out_ptr, N, LAST: tl.constexpr, LEAST: tl.constexpr, BROKEN: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    best = float("inf") if LEAST else -float("inf")
    at = 0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        other = float("inf") if LEAST else -float("inf")
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=other)
        if LEAST:
            value, index = tl.min(x, axis=0, return_indices=True)
            if value < best:
                best = value
                at = index + start
        elif LAST:
            value, index = tl.max(x, axis=0, return_indices=True)
            if value >= best:
                best = value
                at = index + start
        else:
            value, index = tl.max(x, axis=0, return_indices=True)
            if value > best:
                best = value
                at = index + (start + 1 if BROKEN else start)
    tl.store(out_ptr + row, at)


def run_argmax(x, **options):
    out = torch.empty(x.shape[0], dtype=torch.int64)
    argmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=32, **options)
    return out


@case(x="f32[M,N]")
def argmax_first(x, LAST=False, LEAST=False, BROKEN=False):
    return run_argmax(x, LAST=LAST, LEAST=LEAST, BROKEN=BROKEN)


@argmax_first.reference
def _(x):
    return torch.argmax(x, dim=-1)


@case(x="f32[M,N]")
def argmax_late(x):
    return run_argmax(x, LAST=False, LEAST=False, BROKEN=True)


@case(x="f32[M,N]")
def argmax_ties(x):
    return run_argmax(x, LAST=True, LEAST=False, BROKEN=False)


argmax_late.reference(lambda x: torch.argmax(x, dim=-1))
argmax_ties.reference(lambda x: torch.argmax(x, dim=-1))


@case(x="f32[M,N]")
def argmin_first(x):
    return run_argmax(x, LAST=False, LEAST=True, BROKEN=False)


@argmin_first.reference
def _(x):
    return torch.argmin(x, dim=-1)


@triton.jit
def argmax_each_kernel(x_ptr, out_ptr, N, LAST: tl.constexpr):
    """Element by element."""
    row = tl.program_id(0)
    best = -float("inf")
    at = 0
    for j in range(N):
        x = tl.load(x_ptr + row * N + j)
        if LAST:  # noqa: SIM108
            at = tl.where(x >= best, j, at)
        else:
            at = tl.where(x > best, j, at)
        best = tl.maximum(best, x)
    tl.store(out_ptr + row, at)


def run_argmax_each(x, last):
    out = torch.empty(x.shape[0], dtype=torch.int64)
    argmax_each_kernel[(x.shape[0],)](x, out, x.shape[1], LAST=last)
    return out


@case(x="f32[M,N]")
def argmax_each(x):
    return run_argmax_each(x, False)


@argmax_each.reference
def _(x):
    return torch.argmax(x, dim=-1)


@case(x="f32[M,N]")
def argmax_each_last(x):
    return run_argmax_each(x, True)


@argmax_each_last.reference
def _(x):
    return x.shape[1] - 1 - torch.argmax(torch.flip(x, (-1,)), dim=-1)


@triton.jit
def chunked_kernel(x_ptr, mean_ptr, var_ptr, N, COUNTED: tl.constexpr, BROKEN: tl.constexpr, BLOCK: tl.constexpr):
    """Chan: count, mean and squares of the rows so far joined with those of a block."""
    row = tl.program_id(0)
    count = 0.0
    mean = 0.0
    squares = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0)
        here = tl.sum(mask.to(tl.float32), axis=0) if COUNTED else tl.minimum(BLOCK, N - start).to(tl.float32)
        m = tl.sum(x, axis=0) / here
        d = tl.where(mask, x - m, 0.0)
        delta = m - mean
        both = count + here
        mean += delta * here / both
        squares += tl.sum(d * d, axis=0) + delta * delta * (here if BROKEN else count * here / both)
        count = both
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, squares / N)


def run_chunked(x, counted, broken=False):
    mean, var = torch.empty(x.shape[0]), torch.empty(x.shape[0])
    chunked_kernel[(x.shape[0],)](x, mean, var, x.shape[1], COUNTED=counted, BROKEN=broken, BLOCK=32)
    return mean, var


def moments(x):
    return x.mean(-1), x.var(-1, correction=0)


@case(x="f32[M,N]")
def chunked(x):
    return run_chunked(x, True)


chunked.reference(moments)


@case(x="f32[M,N]")
def chunked_minimum(x):
    return run_chunked(x, False)


chunked_minimum.reference(moments)


@case(x="f32[M,N]")
def chunked_broken(x):
    return run_chunked(x, True, broken=True)


chunked_broken.reference(moments)


@triton.jit
def each_kernel(x_ptr, mean_ptr, var_ptr, N, BROKEN: tl.constexpr):
    """Welford, element by element."""
    row = tl.program_id(0)
    mean = 0.0
    squares = 0.0
    for n in range(N):
        x = tl.load(x_ptr + row * N + n)
        d = x - mean
        mean += d / (n + 1)
        squares += d * d if BROKEN else d * (x - mean)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, squares / N)


def run_each(x, broken):
    mean, var = torch.empty(x.shape[0]), torch.empty(x.shape[0])
    each_kernel[(x.shape[0],)](x, mean, var, x.shape[1], BROKEN=broken)
    return mean, var


@case(x="f32[M,N]")
def welford(x):
    return run_each(x, False)


welford.reference(moments)


@case(x="f32[M,N]")
def welford_broken(x):
    return run_each(x, True)


welford_broken.reference(moments)


@triton.jit
def product_kernel(x_ptr, out_ptr, N, BROKEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.full((BLOCK,), 1.0, tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc *= tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0 if BROKEN else 1.0)
    tl.store(out_ptr + row, tl.reduce(acc, 0, times))


@triton.jit
def times(a, b):
    return a * b


def run_product(x, broken):
    out = torch.empty(x.shape[0])
    product_kernel[(x.shape[0],)](x, out, x.shape[1], BROKEN=broken, BLOCK=32)
    return out


@case(x="f32[M,N]")
def product(x):
    return run_product(x, False)


@product.reference
def _(x):
    return x.prod(-1)


@case(x="f32[M,N]")
def product_broken(x):
    return run_product(x, True)


product_broken.reference(lambda x: x.prod(-1))


@triton.jit
def decay_kernel(x_ptr, out_ptr, N, G: tl.constexpr):
    row = tl.program_id(0)
    h = 0.0
    for t in range(N):
        h = h * G + tl.load(x_ptr + row * N + t)
        tl.store(out_ptr + row * N + t, h)


def run_decay(x, g):
    out = torch.empty_like(x)
    decay_kernel[(x.shape[0],)](x, out, x.shape[1], G=g)
    return out


def decayed(x, g):
    t = torch.arange(x.shape[1])
    k = t[:, None] - t[None, :]
    weight = torch.where(k >= 0, torch.pow(g, k.clamp(min=0)), 0.0)
    return (weight[None] * x[:, None, :]).sum(-1)


@case(x="f32[M,N]")
def decay(x):
    return run_decay(x, 0.9)


decay.reference(lambda x: decayed(x, 0.9))


@case(x="f32[M,N]")
def decay_other(x):
    return run_decay(x, 0.8)


decay_other.reference(lambda x: decayed(x, 0.9))


@triton.jit
def gated_kernel(a_ptr, x_ptr, out_ptr, N, BROKEN: tl.constexpr):
    """h = a(t) h + x(t)."""
    row = tl.program_id(0)
    h = 0.0
    for t in range(N):
        a = tl.load(a_ptr + row * N + t)
        x = tl.load(x_ptr + row * N + t)
        h = a * (h + x) if BROKEN else a * h + x
    tl.store(out_ptr + row, h)


def run_gated(a, x, broken=False):
    out = torch.empty(x.shape[0])
    gated_kernel[(x.shape[0],)](a, x, out, x.shape[1], BROKEN=broken)
    return out


@case(a="f32[M,N]", x="f32[M,N]")
def gated(a, x):
    return run_gated(a, x)


@case(a="f32[M,N]", x="f32[M,N]")
def gated_broken(a, x):
    return run_gated(a, x, broken=True)


def gated_sum(a, x):
    t = torch.arange(x.shape[1])
    later = torch.where(t[None, :] > t[:, None], a[:, None, :], 1.0).prod(-1)
    return (later * x).sum(-1)


gated.reference(gated_sum)
gated_broken.reference(gated_sum)


@triton.jit
def linear_attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, N, D: tl.constexpr, E: tl.constexpr, BROKEN: tl.constexpr):
    """out(t) = q(t) S(t) with the state S(t) = S(t - 1) + k(t) v(t)."""
    d = tl.arange(0, D)
    e = tl.arange(0, E)
    state = tl.zeros((D, E), tl.float32)
    for t in range(N):
        k = tl.load(k_ptr + t * D + d)
        v = tl.load(v_ptr + t * E + e)
        q = tl.load(q_ptr + t * D + d)
        if BROKEN:
            tl.store(out_ptr + t * E + e, tl.sum(q[:, None] * state, axis=0))
        state += k[:, None] * v[None, :]
        if not BROKEN:
            tl.store(out_ptr + t * E + e, tl.sum(q[:, None] * state, axis=0))


def run_linear_attention(q, k, v, broken):
    out = torch.empty_like(v)
    linear_attention_kernel[(1,)](q, k, v, out, q.shape[0], D=16, E=16, BROKEN=broken)
    return out


@case(q="f32[N,16]", k="f32[N,16]", v="f32[N,16]")
def linear_attention(q, k, v):
    return run_linear_attention(q, k, v, False)


@case(q="f32[N,16]", k="f32[N,16]", v="f32[N,16]")
def linear_attention_broken(q, k, v):
    return run_linear_attention(q, k, v, True)


def causal(q, k, v):
    return torch.tril(q @ k.T) @ v


linear_attention.reference(causal)
linear_attention_broken.reference(causal)


@triton.jit
def while_kernel(x_ptr, out_ptr, N, BROKEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = 0
    total = 0.0
    while start < (N - BLOCK if BROKEN else N):
        cols = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0), axis=0)
        start += BLOCK
    tl.store(out_ptr + row, total)


def run_while(x, broken):
    out = torch.empty(x.shape[0])
    while_kernel[(x.shape[0],)](x, out, x.shape[1], BROKEN=broken, BLOCK=32)
    return out


@case(x="f32[M,N]")
def while_sum(x):
    return run_while(x, False)


@case(x="f32[M,N]")
def while_sum_broken(x):
    return run_while(x, True)


while_sum.reference(lambda x: x.sum(-1))
while_sum_broken.reference(lambda x: x.sum(-1))


@triton.jit
def previous_kernel(x_ptr, out_ptr, N, BROKEN: tl.constexpr):
    """sum of x(t) x(t - 1)."""
    row = tl.program_id(0)
    before = 0.0
    total = 0.0
    for t in range(N):
        x = tl.load(x_ptr + row * N + t)
        total += x * x if BROKEN else x * before
        before = x
    tl.store(out_ptr + row, total)


def run_previous(x, broken):
    out = torch.empty(x.shape[0])
    previous_kernel[(x.shape[0],)](x, out, x.shape[1], BROKEN=broken)
    return out


@case(x="f32[M,N]")
def previous(x):
    return run_previous(x, False)


@case(x="f32[M,N]")
def previous_broken(x):
    return run_previous(x, True)


def neighbours(x):
    return (x[:, 1:] * x[:, :-1]).sum(-1)


previous.reference(neighbours)
previous_broken.reference(neighbours)


@triton.jit
def nested_kernel(x_ptr, out_ptr, M, N, BROKEN: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of the maxima of the rows."""
    total = 0.0
    for row in range(M):
        top = -float("inf")
        for start in range(0, N - BLOCK if BROKEN else N, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
            top = tl.maximum(top, tl.max(x, axis=0))
        total += top
    tl.store(out_ptr, total)


def run_nested(x, broken):
    out = torch.empty(())
    nested_kernel[(1,)](x, out, *x.shape, BROKEN=broken, BLOCK=32)
    return out


@case(x="f32[M,N]")
def nested(x):
    return run_nested(x, False)


@case(x="f32[M,N]")
def nested_broken(x):
    return run_nested(x, True)


nested.reference(lambda x: x.amax(-1).sum())
nested_broken.reference(lambda x: x.amax(-1).sum())


@triton.jit
def triangle_kernel(x_ptr, out_ptr, N, BROKEN: tl.constexpr):
    """Program i sums the first i + 1 elements of row i."""
    row = tl.program_id(0)
    total = 0.0
    for j in range(row if BROKEN else row + 1):
        total += tl.load(x_ptr + row * N + j)
    tl.store(out_ptr + row, total)


def run_triangle(x, broken):
    out = torch.empty(x.shape[0])
    triangle_kernel[(x.shape[0],)](x, out, x.shape[1], BROKEN=broken)
    return out


@case(x="f32[N,N]")
def triangle(x):
    return run_triangle(x, False)


@case(x="f32[N,N]")
def triangle_broken(x):
    return run_triangle(x, True)


triangle.reference(lambda x: torch.tril(x).sum(-1))
triangle_broken.reference(lambda x: torch.tril(x).sum(-1))

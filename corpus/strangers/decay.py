"""Discounted returns, last step first: r[t] + g * (r[t+1] + g * (...)), by a scan of pairs over the flipped row."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def _compose(g1, r1, g2, r2):
    """First (g1, r1), then (g2, r2): y -> g2 * (g1 * y + r1) + r2."""
    return g2 * g1, g2 * r1 + r2


@triton.jit
def _returns(R, G, T, sb, st, gamma, W: tl.constexpr):
    b = tl.program_id(0)
    t = W - 1 - tl.arange(0, W)  # descending
    live = t < T
    r = tl.load(R + b * sb + t * st, live, 0.0)
    g = tl.where(live, gamma, 1.0)
    _, y = tl.associative_scan((g, r), 0, _compose)
    tl.store(G + b * T + t, y, live)


@triton.jit
def _flip(src, dst, rows, cols, TR: tl.constexpr, TC: tl.constexpr):
    """Walks the source from its last element backwards with steps of -1 and -cols."""
    r = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.program_id(1) * TC + tl.arange(0, TC)
    ok = (r < rows)[:, None] & (c < cols)[None, :]
    last = src + rows * cols - 1
    v = tl.load(last + r[:, None] * -cols + c[None, :] * -1, mask=ok)
    tl.store(dst + r[:, None] * cols + c[None, :], v, mask=ok)


@case(R="f32[B,T] strided", gamma=0.5)
def discounted_returns(R, gamma):
    B, T = R.shape
    G = torch.empty((B, T), dtype=R.dtype)
    _returns[(B,)](R, G, T, R.stride(0), R.stride(1), gamma, W=triton.next_power_of_2(T))
    return G


@discounted_returns.reference
def _(R, gamma):
    t = torch.arange(R.shape[1])
    ahead = t[None, :] - t[:, None]
    weights = torch.where(ahead >= 0, gamma ** ahead.clamp(min=0).to(R.dtype), 0.0)
    return R @ weights.T


@case(src="f32[A,B]")
def flip_both(src):
    A, B = src.shape
    dst = torch.empty_like(src)
    _flip[(triton.cdiv(A, 8), triton.cdiv(B, 32))](src, dst, A, B, TR=8, TC=32)
    return dst


@flip_both.reference
def _(src):
    return torch.flip(src, [0, 1])

"""Programs with what depends on indices alone."""

from __future__ import annotations

import torch

from trilift import case


@case(q="f16[G,M,D]", k="f16[G,M,D]", v="f16[G,M,D]")
def causal(q, k, v):
    i = torch.arange(q.shape[1], device=q.device)
    s = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    return torch.softmax(s.masked_fill(i[None, :] > i[:, None], float("-inf")), -1) @ v


@case(q="f16[M,D]", positions="f16[N,D]", v="f16[N,D]")
def biased(q, positions, v):
    i = torch.arange(q.shape[0], device=q.device)[:, None]
    j = torch.arange(v.shape[0], device=q.device)[None, :]
    return torch.softmax(q @ positions.T - 0.25 * (i - j).abs(), -1) @ v


@case(x="f16[M,N]", w="f16[N,K]")
def lower(x, w):
    return torch.tril(x, 1) @ w


@case(x="f32[M,N]", y="f32[M,N]")
def chosen(x, y):
    i = torch.arange(x.shape[1], device=x.device)
    return torch.where(i < x.shape[0], x, 2 * y) + torch.where(i > 3, x, 1.5)


@case(x="f16[M,N]", w="f16[N,K]")
def clipped(x, w):
    return torch.where(x < 0, 0.1 * x, x.clamp(max=2.0)) @ w


@case(q="f32[M,D]", k="f32[N,D]", v="f32[N,D]", weight="f32[M,N]")
def weighted(q, k, v, weight):
    s = torch.where(weight > 0.5, q @ k.T, float("-inf"))
    return torch.softmax(s, -1) @ v


@case(x="f32[M,N]")
def prefix(x):
    return torch.cumsum(x, -1)


@case(q="f16[G,M,D]", k="f16[G,M,D]", v="f16[G,M,D]")
def full(q, k, v):
    return torch.softmax(q @ k.transpose(1, 2), -1) @ v


@case(q="f16[G,M,D]", k="f16[G,M,D]", v="f16[G,M,D]")
def window(q, k, v):
    i = torch.arange(q.shape[1], device=q.device)
    far = (i[None, :] > i[:, None]) | (i[None, :] <= i[:, None] - 128)
    return torch.softmax((q @ k.transpose(1, 2)).masked_fill(far, float("-inf")), -1) @ v


@case(q="f16[M,D]", k="f16[N,D]", v="f16[N,D]", where="M <= N")
def late(q, k, v):
    m, n = q.shape[0], k.shape[0]
    i = torch.arange(m, device=q.device)[:, None] + (n - m)
    s = torch.where(torch.arange(n, device=q.device)[None, :] <= i, q @ k.T, float("-inf"))
    return torch.softmax(s, -1) @ v


@case(x="f16[M,N]", w="f16[N,K]")
def upper(x, w):
    return torch.triu(x, -3) @ w

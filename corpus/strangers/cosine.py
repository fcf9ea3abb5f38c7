"""Cosine similarity of rows with a while loop, and all squared distances between two sets of points."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trilift import case


@triton.jit
def cos_sim(u, v, res, n, STEP: tl.constexpr):
    me = tl.program_id(axis=0)
    u += me * n
    v += me * n
    uv, uu, vv = 0.0, 0.0, 0.0
    at = 0
    while at < n:
        j = at + tl.arange(0, STEP)
        a = tl.load(u + j, mask=j < n, other=0)
        b = tl.load(v + j, mask=j < n, other=0)
        uv += tl.sum(a * b)
        uu += tl.sum(a * a)
        vv += tl.sum(b * b)
        at += STEP
    tl.store(res + me, uv / libdevice.sqrt(uu * vv))


@triton.jit
def pairwise(p, q, dist, np_, nq, dim, TP: tl.constexpr, TQ: tl.constexpr):
    """|p|^2 - 2 p.q + |q|^2, one coordinate at a time: no dot, no reduction."""
    i = (tl.program_id(0) * TP + tl.arange(0, TP))[:, None]
    j = (tl.program_id(1) * TQ + tl.arange(0, TQ))[None, :]
    acc = tl.zeros((TP, TQ), tl.float32)
    for k in range(dim):
        a = tl.load(p + i * dim + k, mask=i < np_, other=0.0)
        b = tl.load(q + j * dim + k, mask=j < nq, other=0.0)
        acc += a * a - 2 * a * b + b * b
    tl.store(dist + i * nq + j, acc, mask=(i < np_) & (j < nq))


@case(u="f32[M,N]", v="f32[M,N]")
def cosine_similarity(u, v):
    res = u.new_empty(u.size(0))
    cos_sim[u.size(0),](u, v, res, u.size(1), STEP=256)
    return res


@cosine_similarity.reference
def _(u, v):
    return (u * v).sum(-1) / torch.sqrt((u * u).sum(-1) * (v * v).sum(-1))


@case(p="f32[P,K]", q="f32[Q,K]")
def squared_distances(p, q):
    dist = p.new_empty(len(p), len(q))
    pairwise[triton.cdiv(len(p), 16), triton.cdiv(len(q), 32)](p, q, dist, len(p), len(q), p.size(1), TP=16, TQ=32)
    return dist


@squared_distances.reference
def _(p, q):
    return (p[:, None] - q[None]).pow(2).sum(-1)

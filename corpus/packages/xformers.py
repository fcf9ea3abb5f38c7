"""xformers: norms, index operations and matrix products of tiles."""

from __future__ import annotations

import torch

from trilift import case

from ._setup import package

ops = package("xformers.ops.rmsnorm", "xformers")
adding = package("xformers.ops._triton.k_scaled_index_add", "xformers")
selecting = package("xformers.ops._triton.k_index_select_cat", "xformers")
tiles = package("xformers.ops._triton.tiled_matmul_kernels", "xformers")
EPS = 1e-6


def rms(x):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)


@case(x="f32[M,N]", w="f32[N]")
def rms_norm(x, w):
    return ops.rms_norm(x, w, EPS)


@rms_norm.reference
def _(x, w):
    return rms(x) * w


@case(x="f32[M,N]")
def rms_norm_no_weight(x):
    return ops.rms_norm(x, None, EPS)


@rms_norm_no_weight.reference
def _(x):
    return rms(x)


@case(x="f32[M,N]", y="f32[M,N]", w="f32[N]")
def rms_norm_add(x, y, w):
    """The sum is written into x."""
    x = x.clone()
    return ops.rms_norm_add(x, y, w, EPS), x


@rms_norm_add.reference
def _(x, y, w):
    return rms(x + y) * w, x + y


@case(x="f32[B,M,N]", s="f32[K,M,N]", i="i64[K] < B", where="K <= B")
def scaled_index_add(x, s, i):
    """Rows named twice are a race in the wrapper's kernel: its indices are to be distinct."""
    x = x.clone()
    adding.scaled_index_add_fwd(x, i, s, None, 0.5)
    return x


@case(x="f32[M,N]", i="i64[K] < M", where="K < M")
def index_select(x, i):
    return selecting.index_select_cat_fwd(x.new_empty(i.shape[0], x.shape[1]), x, i)


@index_select.reference
def _(x, i):
    return x.index_select(0, i)


@case(dy="f32[K,N]", i="i64[K] < M", x="f32[M,N]", where="K <= M")
def index_select_backward(dy, i, x):
    """Written, not added: a row named twice keeps one of its gradients."""
    dx = torch.zeros_like(x)
    selecting.index_select_cat_bwd(dx, i, dy)
    return dx


@case(a="f32[M,K]", b="f32[K,N]")
def tiled_matmul(a, b):
    c = a.new_empty(a.shape[0], b.shape[1])
    tiles._launch_triton_matmul([[a]], [[b]], [[c]], [a.shape[0]], [b.shape[1]], [a.shape[1]])
    return c


@tiled_matmul.reference
def _(a, b):
    return a @ b

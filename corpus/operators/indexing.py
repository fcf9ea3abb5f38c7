"""Rows by index: embedding and its backward, index_select, index_add by atomics, gather along rows, one-hot rows."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def embedding_kernel(w_ptr, ids_ptr, out_ptr, D, stride_w, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids_ptr + token)
    w = tl.load(w_ptr + row * stride_w + cols, mask=cols < D)
    tl.store(out_ptr + token * D + cols, w, mask=cols < D)


@triton.jit
def index_add_kernel(out_ptr, index_ptr, src_ptr, M, N, alpha, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out[index[m], n] += alpha * src[m, n]; several m may meet in one row."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    index = tl.load(index_ptr + rows, mask=rows < M, other=0).to(tl.int64)
    src = tl.load(src_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + index[:, None] * N + cols[None, :], alpha * src, mask=mask)


@triton.jit
def index_select_kernel(
    x_ptr,
    index_ptr,
    out_ptr,
    M,
    K: tl.int64,
    stride_xm,
    stride_xn,
    stride_om,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Columns of x by index."""
    tile, across = tl.program_id(0), tl.cdiv(K, BLOCK_K)
    rows = tile // across * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    picks = tile % across * BLOCK_K + tl.arange(0, BLOCK_K)[None, :]
    index = tl.load(index_ptr + picks, mask=picks < K, other=0).to(tl.int64)
    mask = (rows < M) & (picks < K)
    x = tl.load(x_ptr + rows * stride_xm + index * stride_xn, mask=mask)
    tl.store(out_ptr + rows * stride_om + picks, x, mask=mask)


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, N, K, BLOCK: tl.constexpr):
    """out[m, k] = x[m, index[m, k]]."""
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, K, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        index = tl.load(index_ptr + row * K + cols, mask=cols < K, other=0)
        x = tl.load(x_ptr + row * N + index, mask=cols < K, other=0.0)
        tl.store(out_ptr + row * K + cols, x, mask=cols < K)


@triton.jit
def one_hot_kernel(index_ptr, out_ptr, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    index = tl.load(index_ptr + row)
    cols = tl.arange(0, BLOCK)
    tl.store(out_ptr + row * V + cols, (cols == index).to(tl.int64), mask=cols < V)


@case(w="f32[V,D]", ids="i64[B,S] < V", where="D <= 65535 * 128")
def embedding(w, ids):
    D = w.shape[1]
    out = torch.empty((*ids.shape, D), dtype=w.dtype, device=w.device)
    embedding_kernel[(ids.numel(), triton.cdiv(D, 128))](w, ids, out, D, w.stride(0), BLOCK=128)
    return out


@embedding.reference
def _(w, ids):
    return torch.nn.functional.embedding(ids, w)


def add_rows(out, index, src, alpha):
    M, N = src.shape
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 64))
    index_add_kernel[grid](out, index, src, M, N, alpha, BLOCK_M=16, BLOCK_N=64)
    return out


@case(w="f32[V,D]", ids="i32[M] < V", dout="f32[M,D]", where="D <= 65535 * 64")
def embedding_backward(w, ids, dout):
    return add_rows(torch.zeros_like(w), ids, dout, 1.0)


@embedding_backward.reference
def _(w, ids, dout):
    return torch.zeros_like(w).index_add(0, ids, dout)


@case(x="f32[V,N]", index="i64[M] < V", src="f32[M,N]", alpha="f32", where="N <= 65535 * 64")
def index_add(x, index, src, alpha):
    return add_rows(x.clone(), index, src, alpha)


@index_add.reference
def _(x, index, src, alpha):
    return x.index_add(0, index, alpha * src)


@case(x="f32[M,N] strided", index="i32[K] < N")
def index_select(x, index):
    (M, _), K = x.shape, index.shape[0]
    out = torch.empty((M, K), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, 16) * triton.cdiv(K, 64),)
    index_select_kernel[grid](x, index, out, M, K, *x.stride(), out.stride(0), BLOCK_M=16, BLOCK_K=64)
    return out


@index_select.reference
def _(x, index):
    return torch.index_select(x, 1, index)


@case(x="f32[M,N]", index="i64[M,K] < N")
def gather(x, index):
    (M, N), K = x.shape, index.shape[1]
    out = torch.empty((M, K), dtype=x.dtype, device=x.device)
    gather_kernel[(M,)](x, index, out, N, K, BLOCK=256)
    return out


@gather.reference
def _(x, index):
    return torch.gather(x, 1, index)


@case(index="i64[M] < V", like="f32[V]")
def one_hot(index, like):
    (M,), V = index.shape, like.shape[0]
    out = torch.empty((M, V), dtype=torch.int64, device=index.device)
    one_hot_kernel[(M,)](index, out, V, BLOCK=triton.next_power_of_2(V))
    return out


@one_hot.reference
def _(index, like):
    return (index[:, None] == torch.arange(like.shape[0])).to(torch.int64)

# Written by trilift optimize corpus/mirage/gated_mlp.py::gated_mlp --at M=8,K=4096,N=4096 --seed 0 -o gated_mlp.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the function of the case
# 1 kernel, 20.24 us in the model at these sizes, roofline 15.64 us
import torch
import triton
import triton.language as tl
from torch.utils.flop_counter import register_flop_formula

try:
    from trilift import case
except ImportError:  # the kernels run without trilift
    case = None


@triton.jit
def kernel(
    x_ptr,
    v_ptr,
    w_ptr,
    out_ptr,
    K,
    M,
    N,
    stride_x_m,
    stride_x_k,
    stride_v_k,
    stride_v_n,
    stride_w_k,
    stride_w_n,
    stride_out_m,
    stride_out_n,
    BLOCK_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_n = tl.cdiv(N, BLOCK_N)
    n = (block % blocks_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = (block // blocks_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    v1 = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    v3 = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start_k in range(0, K, BLOCK_K):
        k = start_k + tl.arange(0, BLOCK_K)
        x_tile = tl.load(
            x_ptr + m[:, None] * stride_x_m + k[None, :].to(tl.int64) * stride_x_k,
            mask=(m[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        v_tile = tl.load(
            v_ptr + k[:, None].to(tl.int64) * stride_v_k + n[None, :] * stride_v_n,
            mask=(k[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        w_tile = tl.load(
            w_ptr + k[:, None].to(tl.int64) * stride_w_k + n[None, :] * stride_w_n,
            mask=(k[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        v1 = tl.dot(x_tile, v_tile, v1)
        v3 = tl.dot(x_tile, w_tile, v3)
    v4 = v3 * tl.sigmoid(v3)
    v5 = v1 * v4
    tl.store(
        out_ptr + m[:, None] * stride_out_m + n[None, :] * stride_out_n,
        v5.to(tl.float16),
        mask=(m[:, None] < M) & (n[None, :] < N),
    )


def gated_mlp(x, w, v, wrap=lambda kernel: kernel):
    """out[m, n] of x[m, k], v[k, n], w[k, n]."""
    assert x.dtype == torch.float16 and x.dim() == 2
    M, K = x.shape
    assert v.dtype == torch.float16 and v.dim() == 2
    assert v.shape[0] == K
    N = v.shape[1]
    assert w.dtype == torch.float16 and w.dim() == 2
    assert w.shape[0] == K
    assert w.shape[1] == N
    assert max(K, M, N) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    out = torch.empty((M, N), dtype=torch.float16, device=x.device)
    blocks = triton.cdiv(M, 16) * triton.cdiv(N, 32)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel)[(blocks,)](
        x,
        v,
        w,
        out,
        K,
        M,
        N,
        *x.stride(),
        *v.stride(),
        *w.stride(),
        *out.stride(),
        BLOCK_K=256,
        BLOCK_M=16,
        BLOCK_N=32,
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """gated_mlp as torch.ops.<namespace>.gated_mlp, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::gated_mlp", mutates_args=())
    def operator(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return gated_mlp(x, w, v, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, w, v):
        M = x.shape[0]
        N = v.shape[1]
        return torch.empty((M, N), dtype=torch.float16, device=x.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "gated_mlp"))
    def _(x, w, v, **_):
        M = x[0]
        K = x[1]
        N = v[1]
        return 2 * K * M * N + 2 * K * M * N

    return operator


def out_reference(v, w, x):
    """out[m, n] = sum(k, x[m, k] * v[k, n]) * silu(sum(k, x[m, k] * w[k, n]))"""
    return x @ v * torch.nn.functional.silu(x @ w)


if case is not None:

    @case(x="f16[M,K] strided", v="f16[K,N] strided", w="f16[K,N] strided")
    def gated_mlp_case(x, w, v):
        return gated_mlp(x, w, v)

    @gated_mlp_case.reference
    def _(x, w, v):
        return out_reference(v, w, x)

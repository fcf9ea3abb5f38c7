# Written by trilift optimize corpus/mirage/rms_norm_linear.py::rms_norm_linear_script --at M=16,K=4096,N=6144 --seed 0 -o rms_norm_linear_script.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the function of the case
# 1 kernel, 17.75 us in the model at these sizes, roofline 11.78 us
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
    w_ptr,
    x_ptr,
    out_ptr,
    K,
    N,
    M,
    stride_w_k,
    stride_w_n,
    stride_x_m,
    stride_x_k,
    stride_out_m,
    stride_out_n,
    factor,
    BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    m = (block % blocks_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (block // blocks_m).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    v1 = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    v4 = tl.zeros((BLOCK_M,), tl.float32)
    for start_k in range(0, K, BLOCK_K):
        k = start_k + tl.arange(0, BLOCK_K)
        w_tile = tl.load(
            w_ptr + n[:, None] * stride_w_n + k[None, :].to(tl.int64) * stride_w_k,
            mask=(n[:, None] < N) & (k[None, :] < K),
            other=0.0,
        )
        x_tile = tl.load(
            x_ptr + k[:, None].to(tl.int64) * stride_x_k + m[None, :] * stride_x_m,
            mask=(k[:, None] < K) & (m[None, :] < M),
            other=0.0,
        )
        x_tile_f32 = x_tile.to(tl.float32)
        v1 = tl.dot(w_tile, x_tile, v1)
        v2 = x_tile_f32 * x_tile_f32
        v3 = tl.sum(v2, axis=0)
        v4 += v3
    v5 = tl.sqrt(v4)
    v6 = v1 / v5[None, :]
    v7 = v6 * factor
    tl.store(
        out_ptr + n[:, None] * stride_out_n + m[None, :] * stride_out_m,
        v7.to(tl.float16),
        mask=(n[:, None] < N) & (m[None, :] < M),
    )


def rms_norm_linear_script(x, w, wrap=lambda kernel: kernel):
    """out[m, n] of w[k, n], x[m, k]."""
    assert w.dtype == torch.float16 and w.dim() == 2
    K, N = w.shape
    assert x.dtype == torch.float16 and x.dim() == 2
    M = x.shape[0]
    assert x.shape[1] == K
    assert max(K, N, M) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    out = torch.empty((M, N), dtype=torch.float16, device=x.device)
    blocks = triton.cdiv(N, 64) * triton.cdiv(M, 16)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel)[(blocks,)](
        w,
        x,
        out,
        K,
        N,
        M,
        *w.stride(),
        *x.stride(),
        *out.stride(),
        (K) ** 0.5,
        BLOCK_K=256,
        BLOCK_N=64,
        BLOCK_M=16,
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """rms_norm_linear_script as torch.ops.<namespace>.rms_norm_linear_script, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::rms_norm_linear_script", mutates_args=())
    def operator(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return rms_norm_linear_script(x, w, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, w):
        N = w.shape[1]
        M = x.shape[0]
        return torch.empty((M, N), dtype=torch.float16, device=x.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "rms_norm_linear_script"))
    def _(x, w, **_):
        K = w[0]
        N = w[1]
        M = x[0]
        return 2 * K * N * M

    return operator


def out_reference(w, x):
    """out[m, n] = sum(k, x[m, k] * w[k, n] / sqrt(sum(k, x[m, k] ** 2))) * K ** 0.5"""
    K = w.shape[0]
    return torch.einsum("mk,kn,m->mn", x, w, 1 / torch.sqrt((x**2).sum(1))) * K**0.5


if case is not None:

    @case(w="f16[K,N] strided", x="f16[M,K] strided")
    def rms_norm_linear_script_case(x, w):
        return rms_norm_linear_script(x, w)

    @rms_norm_linear_script_case.reference
    def _(x, w):
        return out_reference(w, x)

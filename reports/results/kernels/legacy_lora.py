# Written by trilift optimize corpus/legacy/lora.py::lora --at M=1024,K=1024,N=1024,R=1024 --seed 0 -o lora.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the reference of the case
# 2 kernels, 42.62 us in the model at these sizes, roofline 8.16 us
import torch
import triton
import triton.language as tl
from torch.utils.flop_counter import register_flop_formula

try:
    from trilift import case
except ImportError:  # the kernels run without trilift
    case = None


@triton.jit
def kernel0(
    a_ptr,
    b_ptr,
    w_ptr,
    part0_ptr,
    K,
    N,
    R,
    stride_a_k,
    stride_a_r,
    stride_b_r,
    stride_b_n,
    stride_w_k,
    stride_w_n,
    stride_part0_n,
    stride_part0_k,
    BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_n = tl.cdiv(N, BLOCK_N)
    n = (block % blocks_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = (block // blocks_n).to(tl.int64) * BLOCK_K + tl.arange(0, BLOCK_K)
    v1 = tl.zeros((BLOCK_K, BLOCK_N), tl.float32)
    for start_r in range(0, R, BLOCK_R):
        r = start_r + tl.arange(0, BLOCK_R)
        a_tile = tl.load(
            a_ptr + k[:, None] * stride_a_k + r[None, :].to(tl.int64) * stride_a_r,
            mask=(k[:, None] < K) & (r[None, :] < R),
            other=0.0,
        )
        b_tile = tl.load(
            b_ptr + r[:, None].to(tl.int64) * stride_b_r + n[None, :] * stride_b_n,
            mask=(r[:, None] < R) & (n[None, :] < N),
            other=0.0,
        )
        v1 = tl.dot(a_tile, b_tile, v1, input_precision="ieee")
    w_tile = tl.load(
        w_ptr + k[:, None] * stride_w_k + n[None, :] * stride_w_n, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0
    )
    v2 = w_tile + v1
    tl.store(
        part0_ptr + k[:, None] * stride_part0_k + n[None, :] * stride_part0_n,
        v2,
        mask=(k[:, None] < K) & (n[None, :] < N),
    )


@triton.jit
def kernel1(
    x_ptr,
    part0_ptr,
    out_ptr,
    K,
    M,
    N,
    stride_x_m,
    stride_x_k,
    stride_part0_n,
    stride_part0_k,
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
    for start_k in range(0, K, BLOCK_K):
        k = start_k + tl.arange(0, BLOCK_K)
        x_tile = tl.load(
            x_ptr + m[:, None] * stride_x_m + k[None, :].to(tl.int64) * stride_x_k,
            mask=(m[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        part0_tile = tl.load(
            part0_ptr + k[:, None].to(tl.int64) * stride_part0_k + n[None, :] * stride_part0_n,
            mask=(k[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        v1 = tl.dot(x_tile, part0_tile, v1, input_precision="ieee")
    tl.store(
        out_ptr + m[:, None] * stride_out_m + n[None, :] * stride_out_n, v1, mask=(m[:, None] < M) & (n[None, :] < N)
    )


def lora(x, w, a, b, wrap=lambda kernel: kernel):
    """out[m, n] of x[m, k], w[k, n], a[k, r], b[r, n]."""
    assert x.dtype == torch.float32 and x.dim() == 2
    M, K = x.shape
    assert w.dtype == torch.float32 and w.dim() == 2
    assert w.shape[0] == K
    N = w.shape[1]
    assert a.dtype == torch.float32 and a.dim() == 2
    assert a.shape[0] == K
    R = a.shape[1]
    assert b.dtype == torch.float32 and b.dim() == 2
    assert b.shape[0] == R
    assert b.shape[1] == N
    assert max(K, M, N, R) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    part0 = torch.empty((N, K), dtype=torch.float32, device=x.device)
    blocks = triton.cdiv(K, 64) * triton.cdiv(N, 128)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel0)[(blocks,)](
        a,
        b,
        w,
        part0,
        K,
        N,
        R,
        *a.stride(),
        *b.stride(),
        *w.stride(),
        *part0.stride(),
        BLOCK_K=64,
        BLOCK_N=128,
        BLOCK_R=64,
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(M, 64) * triton.cdiv(N, 128)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel1)[(blocks,)](
        x,
        part0,
        out,
        K,
        M,
        N,
        *x.stride(),
        *part0.stride(),
        *out.stride(),
        BLOCK_K=64,
        BLOCK_M=64,
        BLOCK_N=128,
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """lora as torch.ops.<namespace>.lora, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::lora", mutates_args=())
    def operator(x: torch.Tensor, w: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return lora(x, w, a, b, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, w, a, b):
        M = x.shape[0]
        N = w.shape[1]
        return torch.empty((M, N), dtype=torch.float32, device=x.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "lora"))
    def _(x, w, a, b, **_):
        M = x[0]
        K = x[1]
        N = w[1]
        R = a[1]
        return 2 * K * N * R + 2 * K * M * N

    return operator


def out_reference(a, b, w, x):
    """out[m, n] = sum(r, sum(k, x[m, k] * a[k, r]) * b[r, n]) + sum(k, x[m, k] * w[k, n])"""
    return x @ a @ b + x @ w


if case is not None:

    @case(x="f32[M,K] strided", w="f32[K,N] strided", a="f32[K,R] strided", b="f32[R,N] strided")
    def lora_case(x, w, a, b):
        return lora(x, w, a, b)

    @lora_case.reference
    def _(x, w, a, b):
        return out_reference(a, b, w, x)

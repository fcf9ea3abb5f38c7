# Written by trilift optimize corpus/mirage/lora.py::lora --at M=8,K=256,N=4096,R=16 --seed 0 -o lora.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the function of the case
# 1 kernel, 3.05 us in the model at these sizes, roofline 0.54 us
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
    w_ptr,
    a_ptr,
    b_ptr,
    out_ptr,
    K,
    M,
    N,
    R,
    stride_x_m,
    stride_x_k,
    stride_w_k,
    stride_w_n,
    stride_a_k,
    stride_a_r,
    stride_b_r,
    stride_b_n,
    stride_out_m,
    stride_out_n,
    BLOCK_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_n = tl.cdiv(N, BLOCK_N)
    n = (block % blocks_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = (block // blocks_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    k = tl.arange(0, BLOCK_K)
    r = tl.arange(0, BLOCK_R)
    x_tile = tl.load(
        x_ptr + m[:, None] * stride_x_m + k[None, :].to(tl.int64) * stride_x_k,
        mask=(m[:, None] < M) & (k[None, :] < K),
        other=0.0,
    )
    w_tile = tl.load(
        w_ptr + k[:, None].to(tl.int64) * stride_w_k + n[None, :] * stride_w_n,
        mask=(k[:, None] < K) & (n[None, :] < N),
        other=0.0,
    )
    a_tile = tl.load(
        a_ptr + k[:, None].to(tl.int64) * stride_a_k + r[None, :].to(tl.int64) * stride_a_r,
        mask=(k[:, None] < K) & (r[None, :] < R),
        other=0.0,
    )
    b_tile = tl.load(
        b_ptr + r[:, None].to(tl.int64) * stride_b_r + n[None, :] * stride_b_n,
        mask=(r[:, None] < R) & (n[None, :] < N),
        other=0.0,
    )
    v1 = tl.dot(x_tile, a_tile)
    v3 = tl.dot(x_tile, w_tile)
    v3 = tl.dot(v1.to(tl.float16), b_tile, v3)
    tl.store(
        out_ptr + m[:, None] * stride_out_m + n[None, :] * stride_out_n,
        v3.to(tl.float16),
        mask=(m[:, None] < M) & (n[None, :] < N),
    )


def lora(x, w, a, b, wrap=lambda kernel: kernel):
    """out[m, n] of x[m, k], w[k, n], a[k, r], b[r, n]."""
    assert x.dtype == torch.float16 and x.dim() == 2
    M, K = x.shape
    assert w.dtype == torch.float16 and w.dim() == 2
    assert w.shape[0] == K
    N = w.shape[1]
    assert a.dtype == torch.float16 and a.dim() == 2
    assert a.shape[0] == K
    R = a.shape[1]
    assert b.dtype == torch.float16 and b.dim() == 2
    assert b.shape[0] == R
    assert b.shape[1] == N
    assert max(K, M, N, R) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    out = torch.empty((M, N), dtype=torch.float16, device=x.device)
    blocks = triton.cdiv(M, 16) * triton.cdiv(N, 32)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel)[(blocks,)](
        x,
        w,
        a,
        b,
        out,
        K,
        M,
        N,
        R,
        *x.stride(),
        *w.stride(),
        *a.stride(),
        *b.stride(),
        *out.stride(),
        BLOCK_K=max(triton.next_power_of_2(K), 16),
        BLOCK_M=16,
        BLOCK_N=32,
        BLOCK_R=max(triton.next_power_of_2(R), 16),
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
        return torch.empty((M, N), dtype=torch.float16, device=x.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "lora"))
    def _(x, w, a, b, **_):
        M = x[0]
        K = x[1]
        N = w[1]
        R = a[1]
        return 2 * K * M * N + 2 * K * M * R + 2 * M * N * R

    return operator


def out_reference(a, b, w, x):
    """out[m, n] = sum(r, sum(k, x[m, k] * a[k, r]) * b[r, n]) + sum(k, x[m, k] * w[k, n])"""
    return x @ a @ b + x @ w


if case is not None:

    @case(x="f16[M,K] strided", w="f16[K,N] strided", a="f16[K,R] strided", b="f16[R,N] strided")
    def lora_case(x, w, a, b):
        return lora(x, w, a, b)

    @lora_case.reference
    def _(x, w, a, b):
        return out_reference(a, b, w, x)

# Written by trilift optimize corpus/legacy/attention_weights.py::attention_weights --at M=1024,K=1024,N=1024 --seed 0 -o attention_weights.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the reference of the case
# 1 kernel, 20.98 us in the model at these sizes, roofline 2.93 us
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
    s_ptr,
    v_ptr,
    out_ptr,
    K,
    N,
    M,
    stride_s_m,
    stride_s_k,
    stride_v_k,
    stride_v_n,
    stride_out_m,
    stride_out_n,
    BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    m = (block % blocks_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (block // blocks_m).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    m_top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    v2 = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    v4 = tl.zeros((BLOCK_M,), tl.float32)
    for start_k in range(0, K, BLOCK_K):
        k = start_k + tl.arange(0, BLOCK_K)
        s_tile = tl.load(
            s_ptr + m[:, None] * stride_s_m + k[None, :].to(tl.int64) * stride_s_k,
            mask=(m[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        v_tile = tl.load(
            v_ptr + k[:, None].to(tl.int64) * stride_v_k + n[None, :] * stride_v_n,
            mask=(k[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        s_tile_in = tl.where(k[None, :] < K, s_tile, -float("inf"))
        highest = tl.max(s_tile_in, axis=1)
        m_top_new = tl.maximum(m_top, highest)
        shrink = tl.exp(m_top - m_top_new)
        m_top = m_top_new
        s_tile_less = s_tile_in - m_top_new[:, None]
        v0 = tl.exp(s_tile_less)
        v2 = tl.dot(v0, v_tile, v2 * shrink[:, None], input_precision="ieee")
        v3 = tl.sum(v0, axis=1)
        v4 *= shrink
        v4 += v3
    v5 = v2 / v4[:, None]
    tl.store(
        out_ptr + m[:, None] * stride_out_m + n[None, :] * stride_out_n, v5, mask=(m[:, None] < M) & (n[None, :] < N)
    )


def attention_weights(s, v, wrap=lambda kernel: kernel):
    """out[m, n] of v[k, n], s[m, k]."""
    assert v.dtype == torch.float32 and v.dim() == 2
    K, N = v.shape
    assert s.dtype == torch.float32 and s.dim() == 2
    M = s.shape[0]
    assert s.shape[1] == K
    assert max(K, N, M) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    out = torch.empty((M, N), dtype=torch.float32, device=s.device)
    blocks = triton.cdiv(N, 64) * triton.cdiv(M, 128)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel)[(blocks,)](
        s,
        v,
        out,
        K,
        N,
        M,
        *s.stride(),
        *v.stride(),
        *out.stride(),
        BLOCK_K=64,
        BLOCK_N=64,
        BLOCK_M=128,
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """attention_weights as torch.ops.<namespace>.attention_weights, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::attention_weights", mutates_args=())
    def operator(s: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return attention_weights(s, v, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(s, v):
        N = v.shape[1]
        M = s.shape[0]
        return torch.empty((M, N), dtype=torch.float32, device=s.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "attention_weights"))
    def _(s, v, **_):
        K = v[0]
        N = v[1]
        M = s[0]
        return 2 * K * N * M

    return operator


def out_reference(s, v):
    """out[m, n] = sum(k, exp(s[m, k]) * v[k, n] / sum(k, exp(s[m, k])))"""
    t0 = torch.exp(s)
    return torch.einsum("mk,m,kn->mn", t0, 1 / t0.sum(1), v)


if case is not None:

    @case(v="f32[K,N] strided", s="f32[M,K] strided")
    def attention_weights_case(s, v):
        return attention_weights(s, v)

    @attention_weights_case.reference
    def _(s, v):
        return out_reference(s, v)

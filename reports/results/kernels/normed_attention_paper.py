# Written by trilift optimize corpus/mirage/normed_attention.py::normed_attention_paper --at G=16,M=256,D=64,N=4096 --seed 0 -o normed_attention_paper.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the function of the case
# 2 kernels, 19.33 us in the model at these sizes, roofline 5.44 us
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
    q_ptr,
    k_ptr,
    v_ptr,
    part0_ptr,
    part1_ptr,
    top_ptr,
    N,
    D,
    M,
    stride_q_g,
    stride_q_m,
    stride_q_d,
    stride_k_g,
    stride_k_d,
    stride_k_n,
    stride_v_g,
    stride_v_n,
    stride_v_d,
    stride_part0_n,
    stride_part0_g,
    stride_part0_m,
    stride_part1_n,
    stride_part1_g,
    stride_part1_m,
    stride_part1_d,
    stride_top_n,
    stride_top_g,
    stride_top_m,
    D_1,
    PARTS_N: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    m = (block % blocks_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    g = (block // blocks_m).to(tl.int64)
    part_n = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m_top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    v14 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    v12 = tl.zeros((BLOCK_M,), tl.float32)
    q_tile = tl.load(
        q_ptr + g * stride_q_g + m[:, None] * stride_q_m + d[None, :].to(tl.int64) * stride_q_d,
        mask=(m[:, None] < M) & (d[None, :] < D),
        other=0.0,
    )
    q_tile_f32 = q_tile.to(tl.float32)
    v0 = q_tile_f32 * q_tile_f32
    v1 = tl.sum(v0, axis=1)
    v2 = tl.sqrt(v1)
    v2_or_1 = tl.where(m < M, v2, 1.0)
    v3 = q_tile_f32 / v2_or_1[:, None]
    share_n = tl.cdiv(tl.cdiv(N, PARTS_N), BLOCK_N) * BLOCK_N
    for start_n in range(part_n * share_n, part_n * share_n + share_n, BLOCK_N):
        n = start_n + tl.arange(0, BLOCK_N)
        k_tile = tl.load(
            k_ptr + g * stride_k_g + d[:, None].to(tl.int64) * stride_k_d + n[None, :].to(tl.int64) * stride_k_n,
            mask=(d[:, None] < D) & (n[None, :] < N),
            other=0.0,
        )
        k_tile_f32 = k_tile.to(tl.float32)
        v_tile = tl.load(
            v_ptr + g * stride_v_g + d[:, None].to(tl.int64) * stride_v_d + n[None, :].to(tl.int64) * stride_v_n,
            mask=(d[:, None] < D) & (n[None, :] < N),
            other=0.0,
        )
        v4 = k_tile_f32 * k_tile_f32
        v5 = tl.sum(v4, axis=0)
        v6 = tl.sqrt(v5)
        v6_or_1 = tl.where(n < N, v6, 1.0)
        v7 = k_tile_f32 / v6_or_1[None, :]
        v3_in = tl.where(d[None, :] < D, v3, 0.0)
        v7_in = tl.where(d[:, None] < D, v7, 0.0)
        v8 = tl.dot(v3_in.to(tl.float16), v7_in.to(tl.float16))
        v9 = v8 * D_1
        v9_in = tl.where(n[None, :] < N, v9, -float("inf"))
        highest = tl.max(v9_in, axis=1)
        m_top_new = tl.maximum(m_top, highest)
        shift = tl.where(m_top_new == -float("inf"), 0.0, m_top_new)
        shrink = tl.exp(m_top - shift)
        m_top = m_top_new
        v9_less = v9_in - shift[:, None]
        v10 = tl.exp(v9_less)
        v11 = tl.sum(v10, axis=1)
        v14 = tl.dot(v10.to(tl.float16), tl.trans(v_tile), v14 * shrink[:, None])
        v12 *= shrink
        v12 += v11
    tl.store(part0_ptr + part_n * stride_part0_n + g * stride_part0_g + m * stride_part0_m, v12, mask=m < M)
    tl.store(
        part1_ptr
        + part_n * stride_part1_n
        + g * stride_part1_g
        + m[:, None] * stride_part1_m
        + d[None, :].to(tl.int64) * stride_part1_d,
        v14,
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(top_ptr + part_n * stride_top_n + g * stride_top_g + m * stride_top_m, m_top, mask=m < M)


@triton.jit
def kernel1(
    part1_ptr,
    part0_ptr,
    top_ptr,
    out_ptr,
    D,
    M,
    stride_part1_n,
    stride_part1_g,
    stride_part1_m,
    stride_part1_d,
    stride_part0_n,
    stride_part0_g,
    stride_part0_m,
    stride_top_n,
    stride_top_g,
    stride_top_m,
    stride_out_g,
    stride_out_m,
    stride_out_d,
    PARTS_N: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    m = (block % blocks_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    g = (block // blocks_m).to(tl.int64)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    part1_tile = tl.load(
        part1_ptr
        + g * stride_part1_g
        + n[:, None, None].to(tl.int64) * stride_part1_n
        + d[None, :, None].to(tl.int64) * stride_part1_d
        + m[None, None, :] * stride_part1_m,
        mask=(n[:, None, None] < PARTS_N) & (d[None, :, None] < D) & (m[None, None, :] < M),
        other=0.0,
    )
    part0_tile = tl.load(
        part0_ptr + g * stride_part0_g + n[:, None].to(tl.int64) * stride_part0_n + m[None, :] * stride_part0_m,
        mask=(n[:, None] < PARTS_N) & (m[None, :] < M),
        other=0.0,
    )
    top = tl.load(
        top_ptr + g * stride_top_g + n[:, None].to(tl.int64) * stride_top_n + m[None, :] * stride_top_m,
        mask=(n[:, None] < PARTS_N) & (m[None, :] < M),
        other=0.0,
    )
    top_in = tl.where(n[:, None] < PARTS_N, top, -float("inf"))
    highest = tl.max(top_in, axis=0)
    top_less = top_in - highest[None, :]
    weight = tl.exp(top_less)
    part1_tile_weighed = part1_tile * weight[:, None, :]
    part0_tile_weighed = part0_tile * weight
    v0 = tl.sum(part1_tile_weighed, axis=0)
    v1 = tl.sum(part0_tile_weighed, axis=0)
    v2 = v0 / v1[None, :]
    tl.store(
        out_ptr + g * stride_out_g + d[:, None].to(tl.int64) * stride_out_d + m[None, :] * stride_out_m,
        v2.to(tl.float16),
        mask=(d[:, None] < D) & (m[None, :] < M),
    )


def normed_attention_paper(q, k, v, wrap=lambda kernel: kernel):
    """out[g, m, d] of v[g, n, d], k[g, d, n], q[g, m, d]."""
    assert v.dtype == torch.float16 and v.dim() == 3
    G, N, D = v.shape
    assert k.dtype == torch.float16 and k.dim() == 3
    assert k.shape[0] == G
    assert k.shape[1] == D
    assert k.shape[2] == N
    assert q.dtype == torch.float16 and q.dim() == 3
    assert q.shape[0] == G
    M = q.shape[1]
    assert q.shape[2] == D
    assert max(N, G, D, M) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    PARTS_N = 4
    out = torch.empty((G, M, D), dtype=torch.float16, device=q.device)
    part0 = torch.empty((PARTS_N, G, M), dtype=torch.float32, device=q.device)
    part1 = torch.empty((PARTS_N, G, M, D), dtype=torch.float32, device=q.device)
    top = torch.empty((PARTS_N, G, M), dtype=torch.float32, device=q.device)
    blocks = G * triton.cdiv(M, 128)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel0)[(blocks, PARTS_N)](
        q,
        k,
        v,
        part0,
        part1,
        top,
        N,
        D,
        M,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *part0.stride(),
        *part1.stride(),
        *top.stride(),
        D,
        PARTS_N=PARTS_N,
        BLOCK_N=128,
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        BLOCK_M=128,
        num_warps=4,
        num_stages=3,
    )
    blocks = G * triton.cdiv(M, 16)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel1)[(blocks,)](
        part1,
        part0,
        top,
        out,
        D,
        M,
        *part1.stride(),
        *part0.stride(),
        *top.stride(),
        *out.stride(),
        PARTS_N=PARTS_N,
        BLOCK_N=triton.next_power_of_2(PARTS_N),
        BLOCK_D=triton.next_power_of_2(D),
        BLOCK_M=16,
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """normed_attention_paper as torch.ops.<namespace>.normed_attention_paper, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::normed_attention_paper", mutates_args=())
    def operator(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return normed_attention_paper(q, k, v, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(q, k, v):
        G = v.shape[0]
        D = v.shape[2]
        M = q.shape[1]
        return torch.empty((G, M, D), dtype=torch.float16, device=q.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "normed_attention_paper"))
    def _(q, k, v, **_):
        G = v[0]
        N = v[1]
        D = v[2]
        M = q[1]
        return 2 * N * G * D * M + 2 * N * G * D * M

    return operator


def out_reference(k, q, v):
    """out[g, m, d] = sum(n, v[g, n, d] * exp(sum(d, q[g, m, d] * k[g, d, n] / (sqrt(sum(d, q[g, m, d] ** 2)) *
    sqrt(sum(d, k[g, d, n] ** 2)))) * D) / sum(n, exp(sum(d, q[g, m, d] * k[g, d, n] / (sqrt(sum(d, q[g, m, d] ** 2)) *
    sqrt(sum(d, k[g, d, n] ** 2)))) * D)))"""
    D = k.shape[1]
    t0 = k.mT
    t1 = torch.exp(
        torch.einsum("gmd,gnd,gn,gm->gmn", q, t0, 1 / torch.sqrt((t0**2).sum(2)), 1 / torch.sqrt((q**2).sum(2))) * D
    )
    return torch.einsum("gnd,gmn,gm->gmd", v, t1, 1 / t1.sum(2))


if case is not None:

    @case(v="f16[G,N,D] strided", k="f16[G,D,N] strided", q="f16[G,M,D] strided")
    def normed_attention_paper_case(q, k, v):
        return normed_attention_paper(q, k, v)

    @normed_attention_paper_case.reference
    def _(q, k, v):
        return out_reference(k, q, v)

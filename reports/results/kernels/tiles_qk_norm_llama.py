# Written by trilift optimize corpus/trinity/qk_norm.py::qk_norm --at M=16,H=32,D=128,P=1008 --seed 0 -o qk_norm.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-22
# PROVED against its reference below, PROVED against the function of the case
# 4 kernels, 40.78 us in the model at these sizes, roofline 27.37 us
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
    wv_ptr,
    x_1_ptr,
    wk_ptr,
    wq_ptr,
    x_ptr,
    t0_ptr,
    t2_ptr,
    values_0_ptr,
    values_0_copy_ptr,
    M,
    I,
    D,
    size_j,
    stride_wv_i,
    stride_wv_h,
    stride_wv_d,
    stride_x_1_j,
    stride_x_1_i,
    stride_wk_i,
    stride_wk_h,
    stride_wk_d,
    stride_wq_i,
    stride_wq_h,
    stride_wq_d,
    stride_x_m,
    stride_x_i,
    stride_t0_h,
    stride_t0_j,
    stride_t0_d,
    stride_t2_m,
    stride_t2_h,
    stride_t2_d,
    stride_values_0_h,
    stride_values_0_j,
    stride_values_0_d,
    stride_values_0_copy_h,
    stride_values_0_copy_d,
    stride_values_0_copy_j,
    BLOCK_M: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_J: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    h = (block // blocks_d).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    j = tl.arange(0, BLOCK_J)
    v3 = tl.zeros((BLOCK_J, BLOCK_D), tl.float32)
    v6 = tl.zeros((BLOCK_J, BLOCK_D), tl.float32)
    v10 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start_i in range(0, I, BLOCK_I):
        i = start_i + tl.arange(0, BLOCK_I)
        wv_tile = tl.load(
            wv_ptr + h * stride_wv_h + i[:, None].to(tl.int64) * stride_wv_i + d[None, :] * stride_wv_d,
            mask=(i[:, None] < I) & (d[None, :] < D),
            other=0.0,
        )
        x_1_tile = tl.load(
            x_1_ptr + j[:, None].to(tl.int64) * stride_x_1_j + i[None, :].to(tl.int64) * stride_x_1_i,
            mask=(j[:, None] < size_j) & (i[None, :] < I),
            other=0.0,
        )
        wk_tile = tl.load(
            wk_ptr + h * stride_wk_h + i[:, None].to(tl.int64) * stride_wk_i + d[None, :] * stride_wk_d,
            mask=(i[:, None] < I) & (d[None, :] < D),
            other=0.0,
        )
        wq_tile = tl.load(
            wq_ptr + h * stride_wq_h + i[:, None].to(tl.int64) * stride_wq_i + d[None, :] * stride_wq_d,
            mask=(i[:, None] < I) & (d[None, :] < D),
            other=0.0,
        )
        x_tile = tl.load(
            x_ptr + m[:, None].to(tl.int64) * stride_x_m + i[None, :].to(tl.int64) * stride_x_i,
            mask=(m[:, None] < M) & (i[None, :] < I),
            other=0.0,
        )
        v3 = tl.dot(x_1_tile, wv_tile, v3)
        v6 = tl.dot(x_1_tile, wk_tile, v6)
        v10 = tl.dot(x_tile, wq_tile, v10)
    tl.store(
        t0_ptr + h * stride_t0_h + j[:, None].to(tl.int64) * stride_t0_j + d[None, :] * stride_t0_d,
        v6,
        mask=(j[:, None] < size_j) & (d[None, :] < D),
    )
    tl.store(
        t2_ptr + h * stride_t2_h + m[:, None].to(tl.int64) * stride_t2_m + d[None, :] * stride_t2_d,
        v10,
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        values_0_ptr
        + h * stride_values_0_h
        + j[:, None].to(tl.int64) * stride_values_0_j
        + d[None, :] * stride_values_0_d,
        v3.to(tl.float16),
        mask=(j[:, None] < size_j) & (d[None, :] < D),
    )
    tl.store(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + j[:, None].to(tl.int64) * stride_values_0_copy_j
        + d[None, :] * stride_values_0_copy_d,
        v3,
        mask=(j[:, None] < size_j) & (d[None, :] < D),
    )


@triton.jit
def kernel1(
    t0_ptr,
    t2_ptr,
    values_0_copy_ptr,
    keys_0_ptr,
    t10_ptr,
    t12_ptr,
    t4_ptr,
    top_ptr,
    M,
    D,
    size_j,
    stride_t0_h,
    stride_t0_j,
    stride_t0_d,
    stride_t2_m,
    stride_t2_h,
    stride_t2_d,
    stride_values_0_copy_h,
    stride_values_0_copy_d,
    stride_values_0_copy_j,
    stride_keys_0_h,
    stride_keys_0_j,
    stride_keys_0_d,
    stride_t10_m,
    stride_t10_h,
    stride_t10_d,
    stride_t12_h,
    stride_t12_m,
    stride_t4_h,
    stride_t4_m,
    stride_top_h,
    stride_top_m,
    factor,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_J: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    j = tl.arange(0, BLOCK_J)
    t0_tile = tl.load(
        t0_ptr + h * stride_t0_h + j[:, None].to(tl.int64) * stride_t0_j + d[None, :].to(tl.int64) * stride_t0_d,
        mask=(j[:, None] < size_j) & (d[None, :] < D),
        other=0.0,
    )
    t2_tile = tl.load(
        t2_ptr + h * stride_t2_h + d[:, None].to(tl.int64) * stride_t2_d + m[None, :].to(tl.int64) * stride_t2_m,
        mask=(d[:, None] < D) & (m[None, :] < M),
        other=0.0,
    )
    values_0_copy_tile = tl.load(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + j[:, None].to(tl.int64) * stride_values_0_copy_j
        + d[None, :].to(tl.int64) * stride_values_0_copy_d,
        mask=(j[:, None] < size_j) & (d[None, :] < D),
        other=0.0,
    )
    v1 = t0_tile * t0_tile
    v2 = tl.sum(v1, axis=1)
    v3 = v2 * factor
    v4 = tl.sqrt(v3)
    v4_or_1 = tl.where(j < size_j, v4, 1.0)
    v5 = t0_tile / v4_or_1[:, None]
    v7 = t2_tile * t2_tile
    v8 = tl.sum(v7, axis=0)
    v9 = v8 * factor
    v10 = tl.sqrt(v9)
    v5_in = tl.where(d[None, :] < D, v5, 0.0)
    v11 = tl.dot(v5_in, t2_tile, input_precision="ieee")
    v10_or_1 = tl.where(m < M, v10, 1.0)
    v12 = v11 / v10_or_1[None, :]
    v12_in = tl.where(j[:, None] < size_j, v12, -float("inf"))
    highest = tl.max(v12_in, axis=0)
    v12_less = v12_in - highest[None, :]
    v13 = tl.exp(v12_less)
    v16 = tl.sum(v13, axis=0)
    v15 = tl.dot(tl.trans(values_0_copy_tile), v13, input_precision="ieee")
    tl.store(
        keys_0_ptr
        + h * stride_keys_0_h
        + j[:, None].to(tl.int64) * stride_keys_0_j
        + d[None, :].to(tl.int64) * stride_keys_0_d,
        v5.to(tl.float16),
        mask=(j[:, None] < size_j) & (d[None, :] < D),
    )
    tl.store(
        t10_ptr + h * stride_t10_h + d[:, None].to(tl.int64) * stride_t10_d + m[None, :].to(tl.int64) * stride_t10_m,
        v15,
        mask=(d[:, None] < D) & (m[None, :] < M),
    )
    tl.store(t12_ptr + h * stride_t12_h + m.to(tl.int64) * stride_t12_m, v16, mask=m < M)
    tl.store(t4_ptr + h * stride_t4_h + m.to(tl.int64) * stride_t4_m, v10, mask=m < M)
    tl.store(top_ptr + h * stride_top_h + m.to(tl.int64) * stride_top_m, highest, mask=m < M)


@triton.jit
def kernel2(
    t2_ptr,
    t4_ptr,
    keys_ptr,
    values_ptr,
    t11_parts_ptr,
    t7_parts_ptr,
    top0_ptr,
    M,
    H,
    D,
    P,
    stride_t2_m,
    stride_t2_h,
    stride_t2_d,
    stride_t4_h,
    stride_t4_m,
    stride_keys_h,
    stride_keys_p,
    stride_keys_d,
    stride_values_h,
    stride_values_p,
    stride_values_d,
    stride_t11_parts_h,
    stride_t11_parts_p,
    stride_t11_parts_m,
    stride_t7_parts_m,
    stride_t7_parts_h,
    stride_t7_parts_p,
    stride_t7_parts_d,
    stride_top0_h,
    stride_top0_p,
    stride_top0_m,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    PARTS_P: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    block = tl.program_id(0)
    h = (block % H).to(tl.int64)
    m = (block // H).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    part_p = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    m_top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    v8 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    v10 = tl.zeros((BLOCK_M,), tl.float32)
    t2_tile = tl.load(
        t2_ptr + h * stride_t2_h + m[:, None] * stride_t2_m + d[None, :].to(tl.int64) * stride_t2_d,
        mask=(m[:, None] < M) & (d[None, :] < D),
        other=0.0,
    )
    t4_tile = tl.load(t4_ptr + h * stride_t4_h + m * stride_t4_m, mask=m < M, other=0.0)
    t4_tile_or_1 = tl.where(m < M, t4_tile, 1.0)
    v3 = t2_tile / t4_tile_or_1[:, None]
    share_p = tl.cdiv(tl.cdiv(P, PARTS_P), BLOCK_P) * BLOCK_P
    for start_p in range(part_p * share_p, part_p * share_p + share_p, BLOCK_P):
        p = start_p + tl.arange(0, BLOCK_P)
        keys_tile = tl.load(
            keys_ptr
            + h * stride_keys_h
            + d[:, None].to(tl.int64) * stride_keys_d
            + p[None, :].to(tl.int64) * stride_keys_p,
            mask=(d[:, None] < D) & (p[None, :] < P),
            other=0.0,
        )
        values_tile = tl.load(
            values_ptr
            + h * stride_values_h
            + d[:, None].to(tl.int64) * stride_values_d
            + p[None, :].to(tl.int64) * stride_values_p,
            mask=(d[:, None] < D) & (p[None, :] < P),
            other=0.0,
        )
        v3_in = tl.where(d[None, :] < D, v3, 0.0)
        v4 = tl.dot(v3_in, keys_tile.to(tl.float32), input_precision="tf32x3")
        v4_in = tl.where(p[None, :] < P, v4, -float("inf"))
        highest = tl.max(v4_in, axis=1)
        m_top_new = tl.maximum(m_top, highest)
        shift = tl.where(m_top_new == -float("inf"), 0.0, m_top_new)
        shrink = tl.exp(m_top - shift)
        m_top = m_top_new
        v4_less = v4_in - shift[:, None]
        v5 = tl.exp(v4_less)
        v9 = tl.sum(v5, axis=1)
        v8 = tl.dot(v5.to(tl.float16), tl.trans(values_tile), v8 * shrink[:, None])
        v10 *= shrink
        v10 += v9
    tl.store(
        t11_parts_ptr + h * stride_t11_parts_h + part_p * stride_t11_parts_p + m * stride_t11_parts_m, v10, mask=m < M
    )
    tl.store(
        t7_parts_ptr
        + h * stride_t7_parts_h
        + part_p * stride_t7_parts_p
        + m[:, None] * stride_t7_parts_m
        + d[None, :].to(tl.int64) * stride_t7_parts_d,
        v8,
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(top0_ptr + h * stride_top0_h + part_p * stride_top0_p + m * stride_top0_m, m_top, mask=m < M)


@triton.jit
def kernel3(
    t7_parts_ptr,
    top0_ptr,
    t11_parts_ptr,
    t10_ptr,
    top_ptr,
    t12_ptr,
    out_ptr,
    H,
    D,
    stride_t7_parts_m,
    stride_t7_parts_h,
    stride_t7_parts_p,
    stride_t7_parts_d,
    stride_top0_h,
    stride_top0_p,
    stride_top0_m,
    stride_t11_parts_h,
    stride_t11_parts_p,
    stride_t11_parts_m,
    stride_t10_m,
    stride_t10_h,
    stride_t10_d,
    stride_top_h,
    stride_top_m,
    stride_t12_h,
    stride_t12_m,
    stride_out_m,
    stride_out_h,
    stride_out_d,
    BLOCK_D: tl.constexpr,
    PARTS_P: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    block = block // blocks_d
    h = (block % H).to(tl.int64)
    m = (block // H).to(tl.int64)
    p = tl.arange(0, BLOCK_P)
    t7_parts_tile = tl.load(
        t7_parts_ptr
        + m * stride_t7_parts_m
        + h * stride_t7_parts_h
        + d[:, None] * stride_t7_parts_d
        + p[None, :].to(tl.int64) * stride_t7_parts_p,
        mask=(d[:, None] < D) & (p[None, :] < PARTS_P),
        other=0.0,
    )
    top0 = tl.load(
        top0_ptr + h * stride_top0_h + m * stride_top0_m + p.to(tl.int64) * stride_top0_p, mask=p < PARTS_P, other=0.0
    )
    t11_parts_tile = tl.load(
        t11_parts_ptr + h * stride_t11_parts_h + m * stride_t11_parts_m + p.to(tl.int64) * stride_t11_parts_p,
        mask=p < PARTS_P,
        other=0.0,
    )
    t10_tile = tl.load(t10_ptr + m * stride_t10_m + h * stride_t10_h + d * stride_t10_d, mask=d < D, other=0.0)
    top = tl.load(top_ptr + h * stride_top_h + m * stride_top_m)
    t12_tile = tl.load(t12_ptr + h * stride_t12_h + m * stride_t12_m)
    top0_in = tl.where(p < PARTS_P, top0, -float("inf"))
    highest = tl.max(top0_in, axis=0)
    top0_less = top0_in - highest
    weight = tl.exp(top0_less)
    t7_parts_tile_weighed = t7_parts_tile * weight[None, :]
    v1 = tl.sum(t7_parts_tile_weighed, axis=1)
    t11_parts_tile_weighed = t11_parts_tile * weight
    v3 = tl.sum(t11_parts_tile_weighed, axis=0)
    m_joined = tl.maximum(top, highest)
    highest_less = highest - m_joined
    weight0 = tl.exp(highest_less)
    top_less = top - m_joined
    weight1 = tl.exp(top_less)
    v3_weighed = v3 * weight0
    t12_tile_weighed = t12_tile * weight1
    v7 = v3_weighed + t12_tile_weighed
    v1_weighed = v1 * weight0
    t10_tile_weighed = t10_tile * weight1
    v5 = v1_weighed + t10_tile_weighed
    v8 = v5 / v7
    tl.store(out_ptr + m * stride_out_m + h * stride_out_h + d * stride_out_d, v8.to(tl.float16), mask=d < D)


def qk_norm(x, wq, wk, wv, keys, values, wrap=lambda kernel: kernel):
    """out[m, d + D * h], keys[h, P + j, d], values[h, P + j, d] of x[m, i], wq[i, d + D * h], keys[h, p, d], values[h, p, d], x[j, i], wv[i, d + D * h], wk[i, d + D * h]."""
    assert x.dtype == torch.float16 and x.dim() == 2
    M, I = x.shape
    assert wq.dtype == torch.float16 and wq.dim() == 2
    assert keys.dtype == torch.float16 and keys.dim() == 3
    H = keys.shape[0]
    D = keys.shape[2]
    assert values.dtype == torch.float16 and values.dim() == 3
    assert values.shape[0] == H
    assert values.shape[2] == D
    size_j = x.shape[0]
    assert x.shape[1] == I
    assert wv.dtype == torch.float16 and wv.dim() == 2
    assert wk.dtype == torch.float16 and wk.dim() == 2
    P = keys.shape[1] - M
    assert P >= 0
    assert I == D * H
    assert size_j == M
    assert wq.shape[0] == D * H
    assert wq.shape[1] == D * H
    assert values.shape[1] == M + P
    assert wv.shape[0] == D * H
    assert wv.shape[1] == D * H
    assert wk.shape[0] == D * H
    assert wk.shape[1] == D * H
    assert keys.is_contiguous()
    assert values.is_contiguous()
    assert max(M, I, H, D, P, size_j) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    PARTS_P = 4
    wq_ihd = wq.unflatten(1, (H, D))
    keys_hpd = keys.narrow(1, 0, P)
    values_hpd = values.narrow(1, 0, P)
    wv_ihd = wv.unflatten(1, (H, D))
    wk_ihd = wk.unflatten(1, (H, D))
    t0 = torch.empty((H, size_j, D), dtype=torch.float32, device=x.device)
    t2 = torch.empty((M, H, D), dtype=torch.float32, device=x.device)
    values_0_copy = torch.empty((H, D, size_j), dtype=torch.float32, device=x.device)
    t10 = torch.empty((M, H, D), dtype=torch.float32, device=x.device)
    t12 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    t4 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    t11_parts = torch.empty((H, PARTS_P, M), dtype=torch.float32, device=x.device)
    t7_parts = torch.empty((M, H, PARTS_P, D), dtype=torch.float32, device=x.device)
    out = torch.empty((M, D * H), dtype=torch.float16, device=x.device)
    top = torch.empty((H, M), dtype=torch.float32, device=x.device)
    top0 = torch.empty((H, PARTS_P, M), dtype=torch.float32, device=x.device)
    out_mhd = out.unflatten(1, (H, D))
    keys_hjd = keys.narrow(1, P, M)
    values_hjd = values.narrow(1, P, M)
    blocks = H * triton.cdiv(D, 32)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel0)[(blocks,)](
        wv_ihd,
        x,
        wk_ihd,
        wq_ihd,
        x,
        t0,
        t2,
        values_hjd,
        values_0_copy,
        M,
        I,
        D,
        size_j,
        *wv_ihd.stride(),
        *x.stride(),
        *wk_ihd.stride(),
        *wq_ihd.stride(),
        *x.stride(),
        *t0.stride(),
        *t2.stride(),
        *values_hjd.stride(),
        *values_0_copy.stride(),
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        BLOCK_I=256,
        BLOCK_D=32,
        BLOCK_J=max(triton.next_power_of_2(size_j), 16),
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel1)[(H,)](
        t0,
        t2,
        values_0_copy,
        keys_hjd,
        t10,
        t12,
        t4,
        top,
        M,
        D,
        size_j,
        *t0.stride(),
        *t2.stride(),
        *values_0_copy.stride(),
        *keys_hjd.stride(),
        *t10.stride(),
        *t12.stride(),
        *t4.stride(),
        *top.stride(),
        1 / D,
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        BLOCK_J=max(triton.next_power_of_2(size_j), 16),
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(M, 16) * H
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel2)[(blocks, PARTS_P)](
        t2,
        t4,
        keys_hpd,
        values_hpd,
        t11_parts,
        t7_parts,
        top0,
        M,
        H,
        D,
        P,
        *t2.stride(),
        *t4.stride(),
        *keys_hpd.stride(),
        *values_hpd.stride(),
        *t11_parts.stride(),
        *t7_parts.stride(),
        *top0.stride(),
        BLOCK_M=16,
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        PARTS_P=PARTS_P,
        BLOCK_P=128,
        num_warps=4,
        num_stages=3,
    )
    blocks = M * H * triton.cdiv(D, 128)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel3)[(blocks,)](
        t7_parts,
        top0,
        t11_parts,
        t10,
        top,
        t12,
        out_mhd,
        H,
        D,
        *t7_parts.stride(),
        *top0.stride(),
        *t11_parts.stride(),
        *t10.stride(),
        *top.stride(),
        *t12.stride(),
        *out_mhd.stride(),
        BLOCK_D=128,
        PARTS_P=PARTS_P,
        BLOCK_P=triton.next_power_of_2(PARTS_P),
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """qk_norm as torch.ops.<namespace>.qk_norm, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::qk_norm", mutates_args=("keys", "values"))
    def operator(
        x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        return qk_norm(x, wq, wk, wv, keys, values, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, wq, wk, wv, keys, values):
        M = x.shape[0]
        H = keys.shape[0]
        D = keys.shape[2]
        return torch.empty((M, D * H), dtype=torch.float16, device=x.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "qk_norm"))
    def _(x, wq, wk, wv, keys, values, **_):
        M = x[0]
        I = x[1]
        H = keys[0]
        D = keys[2]
        size_j = x[0]
        P = keys[1] - M
        return (
            2 * I * H * D * size_j
            + 2 * I * H * D * size_j
            + 2 * M * I * H * D
            + 2 * M * H * D * size_j
            + 2 * M * H * D * size_j
            + 2 * M * H * D * P
            + 2 * M * H * D * P
        )

    return operator


def out_reference(keys_hpd, values_hpd, wk_ihd, wq_ihd, wv_ihd, x):
    """out[m, h, d] = (sum(p, values_hpd[h, p, d] * exp(sum(d, sum(i, wq_ihd[i, h, d] * x[m, i]) * keys_hpd[h, p, d]) /
    sqrt(sum(d, sum(i, wq_ihd[i, h, d] * x[m, i]) ** 2) / D))) + sum(j, sum(i, wv_ihd[i, h, d] * x[j, i]) * exp(sum(d,
    sum(i, wk_ihd[i, h, d] * x[j, i]) * sum(i, wq_ihd[i, h, d] * x[m, i])) / (sqrt(sum(d, sum(i, wk_ihd[i, h, d] * x[j,
    i]) ** 2) / D) * sqrt(sum(d, sum(i, wq_ihd[i, h, d] * x[m, i]) ** 2) / D))))) / (sum(p, exp(sum(d, sum(i, wq_ihd[i,
    h, d] * x[m, i]) * keys_hpd[h, p, d]) / sqrt(sum(d, sum(i, wq_ihd[i, h, d] * x[m, i]) ** 2) / D))) + sum(j,
    exp(sum(d, sum(i, wk_ihd[i, h, d] * x[j, i]) * sum(i, wq_ihd[i, h, d] * x[m, i])) / (sqrt(sum(d, sum(i, wk_ihd[i, h,
    d] * x[j, i]) ** 2) / D) * sqrt(sum(d, sum(i, wq_ihd[i, h, d] * x[m, i]) ** 2) / D)))))"""
    D = keys_hpd.shape[2]
    t0 = torch.einsum("mi,ihd->mhd", x, wq_ihd)
    t1 = torch.sqrt((t0**2).sum(2) / D)
    t2 = torch.exp(torch.einsum("hpd,mhd->mhp", keys_hpd, t0) / t1[:, :, None])
    t3 = torch.einsum("ji,ihd->jhd", x, wk_ihd)
    t4 = torch.exp(torch.einsum("jhd,mhd->mjh", t3, t0) / (torch.sqrt((t3**2).sum(2) / D) * t1[:, None]))
    return (
        torch.einsum("hpd,mhp->mhd", values_hpd, t2)
        + torch.einsum("mjh,jhd->mhd", t4, torch.einsum("ji,ihd->jhd", x, wv_ihd))
    ) / (t2.sum(2) + t4.sum(1))[:, :, None]


def keys_0_reference(wk_ihd, x):
    """keys_0[h, j, d] = sum(i, wk_ihd[i, h, d] * x[j, i]) / sqrt(sum(d, sum(i, wk_ihd[i, h, d] * x[j, i]) ** 2) / D)"""
    D = wk_ihd.shape[2]
    t0 = torch.einsum("ij,ihd->hjd", x.T, wk_ihd)
    return t0 / torch.sqrt((t0**2).sum(2) / D)[:, :, None]


def values_0_reference(wv_ihd, x):
    """values_0[h, j, d] = sum(i, wv_ihd[i, h, d] * x[j, i])"""
    return torch.einsum("ij,ihd->hjd", x.T, wv_ihd)


if case is not None:

    @case(
        x="f16[M,D*H] strided",
        wq="f16[D*H,D*H] strided",
        keys="f16[H,M+P,D]",
        values="f16[H,M+P,D]",
        wv="f16[D*H,D*H] strided",
        wk="f16[D*H,D*H] strided",
    )
    def qk_norm_case(x, wq, wk, wv, keys, values):
        return qk_norm(x, wq, wk, wv, keys, values)

    @qk_norm_case.reference
    def _(x, wq, wk, wv, keys, values):
        M = x.shape[0]
        H = keys.shape[0]
        D = keys.shape[2]
        P = keys.shape[1] - M
        wq_ihd = wq.unflatten(1, (H, D))
        keys_hpd = keys.narrow(1, 0, P)
        values_hpd = values.narrow(1, 0, P)
        wv_ihd = wv.unflatten(1, (H, D))
        wk_ihd = wk.unflatten(1, (H, D))
        out = out_reference(keys_hpd, values_hpd, wk_ihd, wq_ihd, wv_ihd, x)
        keys_0 = keys_0_reference(wk_ihd, x)
        values_0 = values_0_reference(wv_ihd, x)
        out = out.reshape((M, D * H))
        keys.narrow(1, P, M).copy_(keys_0)
        values.narrow(1, P, M).copy_(values_0)
        return out

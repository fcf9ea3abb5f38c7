# Written by trilift optimize corpus/trinity/key_former.py::key_former --at M=16,H=71,D=64,P=1008 --seed 0 -o key_former.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-22
# PROVED against its reference below, PROVED against the function of the case
# 4 kernels, 54.24 us in the model at these sizes, roofline 33.78 us
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
    keys_0_parts_ptr,
    t0_parts_ptr,
    values_0_parts_ptr,
    M,
    J,
    D,
    size_i,
    stride_wv_j,
    stride_wv_h,
    stride_wv_d,
    stride_x_1_i,
    stride_x_1_j,
    stride_wk_j,
    stride_wk_h,
    stride_wk_d,
    stride_wq_j,
    stride_wq_h,
    stride_wq_d,
    stride_x_m,
    stride_x_j,
    stride_keys_0_parts_j,
    stride_keys_0_parts_h,
    stride_keys_0_parts_i,
    stride_keys_0_parts_d,
    stride_t0_parts_m,
    stride_t0_parts_j,
    stride_t0_parts_h,
    stride_t0_parts_d,
    stride_values_0_parts_j,
    stride_values_0_parts_h,
    stride_values_0_parts_i,
    stride_values_0_parts_d,
    BLOCK_M: tl.constexpr,
    PARTS_J: tl.constexpr,
    BLOCK_J: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    h = (block // blocks_d).to(tl.int64)
    part_j = tl.program_id(1).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    i = tl.arange(0, BLOCK_I)
    v3 = tl.zeros((BLOCK_I, BLOCK_D), tl.float32)
    v6 = tl.zeros((BLOCK_I, BLOCK_D), tl.float32)
    v10 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    share_j = tl.cdiv(tl.cdiv(J, PARTS_J), BLOCK_J) * BLOCK_J
    for start_j in range(part_j * share_j, part_j * share_j + share_j, BLOCK_J):
        j = start_j + tl.arange(0, BLOCK_J)
        wv_tile = tl.load(
            wv_ptr + h * stride_wv_h + j[:, None].to(tl.int64) * stride_wv_j + d[None, :] * stride_wv_d,
            mask=(j[:, None] < J) & (d[None, :] < D),
            other=0.0,
        )
        x_1_tile = tl.load(
            x_1_ptr + i[:, None].to(tl.int64) * stride_x_1_i + j[None, :].to(tl.int64) * stride_x_1_j,
            mask=(i[:, None] < size_i) & (j[None, :] < J),
            other=0.0,
        )
        wk_tile = tl.load(
            wk_ptr + h * stride_wk_h + j[:, None].to(tl.int64) * stride_wk_j + d[None, :] * stride_wk_d,
            mask=(j[:, None] < J) & (d[None, :] < D),
            other=0.0,
        )
        wq_tile = tl.load(
            wq_ptr + h * stride_wq_h + j[:, None].to(tl.int64) * stride_wq_j + d[None, :] * stride_wq_d,
            mask=(j[:, None] < J) & (d[None, :] < D),
            other=0.0,
        )
        x_tile = tl.load(
            x_ptr + m[:, None].to(tl.int64) * stride_x_m + j[None, :].to(tl.int64) * stride_x_j,
            mask=(m[:, None] < M) & (j[None, :] < J),
            other=0.0,
        )
        v3 = tl.dot(x_1_tile, wv_tile, v3)
        v6 = tl.dot(x_1_tile, wk_tile, v6)
        v10 = tl.dot(x_tile, wq_tile, v10)
    tl.store(
        keys_0_parts_ptr
        + part_j * stride_keys_0_parts_j
        + h * stride_keys_0_parts_h
        + i[:, None].to(tl.int64) * stride_keys_0_parts_i
        + d[None, :] * stride_keys_0_parts_d,
        v6,
        mask=(i[:, None] < size_i) & (d[None, :] < D),
    )
    tl.store(
        t0_parts_ptr
        + part_j * stride_t0_parts_j
        + h * stride_t0_parts_h
        + m[:, None].to(tl.int64) * stride_t0_parts_m
        + d[None, :] * stride_t0_parts_d,
        v10,
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        values_0_parts_ptr
        + part_j * stride_values_0_parts_j
        + h * stride_values_0_parts_h
        + i[:, None].to(tl.int64) * stride_values_0_parts_i
        + d[None, :] * stride_values_0_parts_d,
        v3,
        mask=(i[:, None] < size_i) & (d[None, :] < D),
    )


@triton.jit
def kernel1(
    t0_parts_ptr,
    keys_ptr,
    values_0_parts_ptr,
    keys_0_parts_ptr,
    noise_1_ptr,
    t4_ptr,
    keys_0_ptr,
    t2_ptr,
    t3_ptr,
    t7_ptr,
    t8_ptr,
    values_0_ptr,
    values_0_copy_ptr,
    top_ptr,
    top0_ptr,
    M,
    D,
    size_i,
    P,
    stride_t0_parts_m,
    stride_t0_parts_j,
    stride_t0_parts_h,
    stride_t0_parts_d,
    stride_keys_h,
    stride_keys_p,
    stride_keys_d,
    stride_values_0_parts_j,
    stride_values_0_parts_h,
    stride_values_0_parts_i,
    stride_values_0_parts_d,
    stride_keys_0_parts_j,
    stride_keys_0_parts_h,
    stride_keys_0_parts_i,
    stride_keys_0_parts_d,
    stride_noise_1_h,
    stride_noise_1_m,
    stride_noise_1_i,
    stride_t4_m,
    stride_t4_h,
    stride_t4_p,
    stride_keys_0_h,
    stride_keys_0_i,
    stride_keys_0_d,
    stride_t2_m,
    stride_t2_h,
    stride_t2_i,
    stride_t3_h,
    stride_t3_m,
    stride_t7_m,
    stride_t7_h,
    stride_t7_i,
    stride_t8_h,
    stride_t8_m,
    stride_values_0_h,
    stride_values_0_i,
    stride_values_0_d,
    stride_values_0_copy_h,
    stride_values_0_copy_i,
    stride_values_0_copy_d,
    stride_top_h,
    stride_top_m,
    stride_top0_h,
    stride_top0_m,
    BLOCK_M: tl.constexpr,
    PARTS_J: tl.constexpr,
    BLOCK_J: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    j = tl.arange(0, BLOCK_J)
    d = tl.arange(0, BLOCK_D)
    i = tl.arange(0, BLOCK_I)
    t0_parts_tile = tl.load(
        t0_parts_ptr
        + h * stride_t0_parts_h
        + m[:, None, None].to(tl.int64) * stride_t0_parts_m
        + j[None, :, None].to(tl.int64) * stride_t0_parts_j
        + d[None, None, :].to(tl.int64) * stride_t0_parts_d,
        mask=(m[:, None, None] < M) & (j[None, :, None] < PARTS_J) & (d[None, None, :] < D),
        other=0.0,
    )
    v5 = tl.sum(t0_parts_tile, axis=1)
    for start_p in range(0, P, BLOCK_P):
        p = start_p + tl.arange(0, BLOCK_P)
        keys_tile = tl.load(
            keys_ptr
            + h * stride_keys_h
            + d[:, None].to(tl.int64) * stride_keys_d
            + p[None, :].to(tl.int64) * stride_keys_p,
            mask=(d[:, None] < D) & (p[None, :] < P),
            other=0.0,
        )
        v15 = tl.dot(v5, keys_tile.to(tl.float32), input_precision="tf32x3")
        tl.store(
            t4_ptr + h * stride_t4_h + m[:, None].to(tl.int64) * stride_t4_m + p[None, :].to(tl.int64) * stride_t4_p,
            v15,
            mask=(m[:, None] < M) & (p[None, :] < P),
        )
    values_0_parts_tile = tl.load(
        values_0_parts_ptr
        + h * stride_values_0_parts_h
        + j[:, None, None].to(tl.int64) * stride_values_0_parts_j
        + d[None, :, None].to(tl.int64) * stride_values_0_parts_d
        + i[None, None, :].to(tl.int64) * stride_values_0_parts_i,
        mask=(j[:, None, None] < PARTS_J) & (d[None, :, None] < D) & (i[None, None, :] < size_i),
        other=0.0,
    )
    keys_0_parts_tile = tl.load(
        keys_0_parts_ptr
        + h * stride_keys_0_parts_h
        + j[:, None, None].to(tl.int64) * stride_keys_0_parts_j
        + d[None, :, None].to(tl.int64) * stride_keys_0_parts_d
        + i[None, None, :].to(tl.int64) * stride_keys_0_parts_i,
        mask=(j[:, None, None] < PARTS_J) & (d[None, :, None] < D) & (i[None, None, :] < size_i),
        other=0.0,
    )
    noise_1_tile = tl.load(
        noise_1_ptr
        + h * stride_noise_1_h
        + m[:, None].to(tl.int64) * stride_noise_1_m
        + i[None, :].to(tl.int64) * stride_noise_1_i,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
        other=0.0,
    )
    noise_1_tile_f32 = noise_1_tile.to(tl.float32)
    v1 = tl.sum(values_0_parts_tile, axis=0)
    v3 = tl.sum(keys_0_parts_tile, axis=0)
    v6 = tl.dot(v5, v3, input_precision="ieee")
    v8 = noise_1_tile_f32 + v6
    v9 = v8 * 0.6666666666666666
    v9_in = tl.where(i[None, :] < size_i, v9, -float("inf"))
    highest = tl.max(v9_in, axis=1)
    v6_in = tl.where(i[None, :] < size_i, v6, -float("inf"))
    highest0 = tl.max(v6_in, axis=1)
    v9_less = v9_in - highest[:, None]
    v10 = tl.exp(v9_less)
    v11 = tl.sum(v10, axis=1)
    v6_less = v6_in - highest0[:, None]
    v12 = tl.exp(v6_less)
    v13 = tl.sum(v12, axis=1)
    tl.store(
        keys_0_ptr
        + h * stride_keys_0_h
        + d[:, None].to(tl.int64) * stride_keys_0_d
        + i[None, :].to(tl.int64) * stride_keys_0_i,
        v3.to(tl.float16),
        mask=(d[:, None] < D) & (i[None, :] < size_i),
    )
    tl.store(
        t2_ptr + h * stride_t2_h + m[:, None].to(tl.int64) * stride_t2_m + i[None, :].to(tl.int64) * stride_t2_i,
        v10,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
    )
    tl.store(t3_ptr + h * stride_t3_h + m.to(tl.int64) * stride_t3_m, v11, mask=m < M)
    tl.store(
        t7_ptr + h * stride_t7_h + m[:, None].to(tl.int64) * stride_t7_m + i[None, :].to(tl.int64) * stride_t7_i,
        v12,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
    )
    tl.store(t8_ptr + h * stride_t8_h + m.to(tl.int64) * stride_t8_m, v13, mask=m < M)
    tl.store(
        values_0_ptr
        + h * stride_values_0_h
        + d[:, None].to(tl.int64) * stride_values_0_d
        + i[None, :].to(tl.int64) * stride_values_0_i,
        v1.to(tl.float16),
        mask=(d[:, None] < D) & (i[None, :] < size_i),
    )
    tl.store(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + d[:, None].to(tl.int64) * stride_values_0_copy_d
        + i[None, :].to(tl.int64) * stride_values_0_copy_i,
        v1,
        mask=(d[:, None] < D) & (i[None, :] < size_i),
    )
    tl.store(top_ptr + h * stride_top_h + m.to(tl.int64) * stride_top_m, highest, mask=m < M)
    tl.store(top0_ptr + h * stride_top0_h + m.to(tl.int64) * stride_top0_m, highest0, mask=m < M)


@triton.jit
def kernel2(
    noise_ptr,
    t4_ptr,
    t3_ptr,
    top_ptr,
    out1_0_ptr,
    t10_ptr,
    t6_ptr,
    t9_ptr,
    top1_ptr,
    top2_ptr,
    M,
    P,
    stride_noise_h,
    stride_noise_m,
    stride_noise_p,
    stride_t4_m,
    stride_t4_h,
    stride_t4_p,
    stride_t3_h,
    stride_t3_m,
    stride_top_h,
    stride_top_m,
    stride_out1_0_h,
    stride_out1_0_p,
    stride_t10_h,
    stride_t10_m,
    stride_t6_h,
    stride_t6_m,
    stride_t9_m,
    stride_t9_h,
    stride_t9_p,
    stride_top1_h,
    stride_top1_m,
    stride_top2_h,
    stride_top2_m,
    BLOCK_M: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    p = tl.arange(0, BLOCK_P)
    noise_tile = tl.load(
        noise_ptr
        + h * stride_noise_h
        + m[:, None].to(tl.int64) * stride_noise_m
        + p[None, :].to(tl.int64) * stride_noise_p,
        mask=(m[:, None] < M) & (p[None, :] < P),
        other=0.0,
    )
    noise_tile_f32 = noise_tile.to(tl.float32)
    t4_tile = tl.load(
        t4_ptr + h * stride_t4_h + m[:, None].to(tl.int64) * stride_t4_m + p[None, :].to(tl.int64) * stride_t4_p,
        mask=(m[:, None] < M) & (p[None, :] < P),
        other=0.0,
    )
    t3_tile = tl.load(t3_ptr + h * stride_t3_h + m.to(tl.int64) * stride_t3_m, mask=m < M, other=0.0)
    top = tl.load(top_ptr + h * stride_top_h + m.to(tl.int64) * stride_top_m, mask=m < M, other=0.0)
    v2 = noise_tile_f32 + t4_tile
    v3 = v2 * 0.6666666666666666
    v3_in = tl.where(p[None, :] < P, v3, -float("inf"))
    highest = tl.max(v3_in, axis=1)
    t4_tile_in = tl.where(p[None, :] < P, t4_tile, -float("inf"))
    highest0 = tl.max(t4_tile_in, axis=1)
    v3_less = v3_in - highest[:, None]
    v4 = tl.exp(v3_less)
    v5 = tl.sum(v4, axis=1)
    m_joined = tl.maximum(top, highest)
    highest_less = highest - m_joined
    weight0 = tl.exp(highest_less)
    t4_tile_less = t4_tile_in - highest0[:, None]
    v10 = tl.exp(t4_tile_less)
    v11 = tl.sum(v10, axis=1)
    top_less = top - m_joined
    weight = tl.exp(top_less)
    t3_tile_weighed = t3_tile * weight
    v5_weighed = v5 * weight0
    v7 = t3_tile_weighed + v5_weighed
    v4_weighed = v4 * weight0[:, None]
    v8 = v4_weighed / v7[:, None]
    v8_in = tl.where(m[:, None] < M, v8, 0.0)
    v9 = tl.sum(v8_in, axis=0)
    tl.store(out1_0_ptr + h * stride_out1_0_h + p.to(tl.int64) * stride_out1_0_p, v9.to(tl.float16), mask=p < P)
    tl.store(t10_ptr + h * stride_t10_h + m.to(tl.int64) * stride_t10_m, v11, mask=m < M)
    tl.store(t6_ptr + h * stride_t6_h + m.to(tl.int64) * stride_t6_m, v5, mask=m < M)
    tl.store(
        t9_ptr + h * stride_t9_h + m[:, None].to(tl.int64) * stride_t9_m + p[None, :].to(tl.int64) * stride_t9_p,
        v10,
        mask=(m[:, None] < M) & (p[None, :] < P),
    )
    tl.store(top1_ptr + h * stride_top1_h + m.to(tl.int64) * stride_top1_m, highest0, mask=m < M)
    tl.store(top2_ptr + h * stride_top2_h + m.to(tl.int64) * stride_top2_m, highest, mask=m < M)


@triton.jit
def kernel3(
    t8_ptr,
    top0_ptr,
    t10_ptr,
    top1_ptr,
    values_ptr,
    t9_ptr,
    t2_ptr,
    top_ptr,
    t3_ptr,
    t6_ptr,
    top2_ptr,
    values_0_copy_ptr,
    t7_ptr,
    out0_ptr,
    out1_1_ptr,
    M,
    D,
    size_i,
    P,
    stride_t8_h,
    stride_t8_m,
    stride_top0_h,
    stride_top0_m,
    stride_t10_h,
    stride_t10_m,
    stride_top1_h,
    stride_top1_m,
    stride_values_h,
    stride_values_p,
    stride_values_d,
    stride_t9_m,
    stride_t9_h,
    stride_t9_p,
    stride_t2_m,
    stride_t2_h,
    stride_t2_i,
    stride_top_h,
    stride_top_m,
    stride_t3_h,
    stride_t3_m,
    stride_t6_h,
    stride_t6_m,
    stride_top2_h,
    stride_top2_m,
    stride_values_0_copy_h,
    stride_values_0_copy_i,
    stride_values_0_copy_d,
    stride_t7_m,
    stride_t7_h,
    stride_t7_i,
    stride_out0_m,
    stride_out0_h,
    stride_out0_d,
    stride_out1_1_h,
    stride_out1_1_i,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    i = tl.arange(0, BLOCK_I)
    v7 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    t8_tile = tl.load(t8_ptr + h * stride_t8_h + m.to(tl.int64) * stride_t8_m, mask=m < M, other=0.0)
    top0 = tl.load(top0_ptr + h * stride_top0_h + m.to(tl.int64) * stride_top0_m, mask=m < M, other=0.0)
    t10_tile = tl.load(t10_ptr + h * stride_t10_h + m.to(tl.int64) * stride_t10_m, mask=m < M, other=0.0)
    top1 = tl.load(top1_ptr + h * stride_top1_h + m.to(tl.int64) * stride_top1_m, mask=m < M, other=0.0)
    m_joined = tl.maximum(top0, top1)
    top0_less = top0 - m_joined
    weight = tl.exp(top0_less)
    top1_less = top1 - m_joined
    weight0 = tl.exp(top1_less)
    t8_tile_weighed = t8_tile * weight
    t10_tile_weighed = t10_tile * weight0
    v4 = t8_tile_weighed + t10_tile_weighed
    for start_p in range(0, P, BLOCK_P):
        p = start_p + tl.arange(0, BLOCK_P)
        values_tile = tl.load(
            values_ptr
            + h * stride_values_h
            + p[:, None].to(tl.int64) * stride_values_p
            + d[None, :].to(tl.int64) * stride_values_d,
            mask=(p[:, None] < P) & (d[None, :] < D),
            other=0.0,
        )
        t9_tile = tl.load(
            t9_ptr + h * stride_t9_h + m[:, None].to(tl.int64) * stride_t9_m + p[None, :].to(tl.int64) * stride_t9_p,
            mask=(m[:, None] < M) & (p[None, :] < P),
            other=0.0,
        )
        t9_tile_weighed = t9_tile * weight0[:, None]
        v4_or_1 = tl.where(m < M, v4, 1.0)
        v5 = t9_tile_weighed / v4_or_1[:, None]
        v5_in = tl.where(p[None, :] < P, v5, 0.0)
        v7 = tl.dot(v5_in.to(tl.float16), values_tile, v7)
    t2_tile = tl.load(
        t2_ptr + h * stride_t2_h + m[:, None].to(tl.int64) * stride_t2_m + i[None, :].to(tl.int64) * stride_t2_i,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
        other=0.0,
    )
    top = tl.load(top_ptr + h * stride_top_h + m.to(tl.int64) * stride_top_m, mask=m < M, other=0.0)
    t3_tile = tl.load(t3_ptr + h * stride_t3_h + m.to(tl.int64) * stride_t3_m, mask=m < M, other=0.0)
    t6_tile = tl.load(t6_ptr + h * stride_t6_h + m.to(tl.int64) * stride_t6_m, mask=m < M, other=0.0)
    top2 = tl.load(top2_ptr + h * stride_top2_h + m.to(tl.int64) * stride_top2_m, mask=m < M, other=0.0)
    values_0_copy_tile = tl.load(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + i[:, None].to(tl.int64) * stride_values_0_copy_i
        + d[None, :].to(tl.int64) * stride_values_0_copy_d,
        mask=(i[:, None] < size_i) & (d[None, :] < D),
        other=0.0,
    )
    t7_tile = tl.load(
        t7_ptr + h * stride_t7_h + m[:, None].to(tl.int64) * stride_t7_m + i[None, :].to(tl.int64) * stride_t7_i,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
        other=0.0,
    )
    m_joined0 = tl.maximum(top, top2)
    top_less = top - m_joined0
    weight1 = tl.exp(top_less)
    t3_tile_weighed = t3_tile * weight1
    top2_less = top2 - m_joined0
    weight2 = tl.exp(top2_less)
    t6_tile_weighed = t6_tile * weight2
    v11 = t3_tile_weighed + t6_tile_weighed
    t2_tile_weighed = t2_tile * weight1[:, None]
    v12 = t2_tile_weighed / v11[:, None]
    v12_in = tl.where(m[:, None] < M, v12, 0.0)
    v13 = tl.sum(v12_in, axis=0)
    t7_tile_weighed = t7_tile * weight[:, None]
    v16 = t7_tile_weighed / v4[:, None]
    v18 = v7
    v16_in = tl.where(i[None, :] < size_i, v16, 0.0)
    v18 = tl.dot(v16_in, values_0_copy_tile, v18, input_precision="ieee")
    tl.store(
        out0_ptr
        + h * stride_out0_h
        + m[:, None].to(tl.int64) * stride_out0_m
        + d[None, :].to(tl.int64) * stride_out0_d,
        v18.to(tl.float16),
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(out1_1_ptr + h * stride_out1_1_h + i.to(tl.int64) * stride_out1_1_i, v13.to(tl.float16), mask=i < size_i)


def key_former(x, wq, wk, wv, keys, values, noise, wrap=lambda kernel: kernel):
    """out0[m, d + D * h], out1[h, p], out1[h, P + i], keys[h, P + i, d], values[h, P + i, d] of x[m, j], wq[j, d + D * h], x[i, j], wk[j, d + D * h], wv[j, d + D * h], values[h, p, d], keys[h, p, d], noise[h, m, p], noise[h, m, P + i]."""
    assert x.dtype == torch.float16 and x.dim() == 2
    M, J = x.shape
    assert wq.dtype == torch.float16 and wq.dim() == 2
    size_i = x.shape[0]
    assert x.shape[1] == J
    assert wk.dtype == torch.float16 and wk.dim() == 2
    assert wv.dtype == torch.float16 and wv.dim() == 2
    assert values.dtype == torch.float16 and values.dim() == 3
    H = values.shape[0]
    D = values.shape[2]
    assert keys.dtype == torch.float16 and keys.dim() == 3
    assert keys.shape[0] == H
    assert keys.shape[2] == D
    assert noise.dtype == torch.float16 and noise.dim() == 3
    assert noise.shape[0] == H
    assert noise.shape[1] == M
    P = values.shape[1] - M
    assert P >= 0
    assert J == D * H
    assert size_i == M
    assert wq.shape[0] == D * H
    assert wq.shape[1] == D * H
    assert wk.shape[0] == D * H
    assert wk.shape[1] == D * H
    assert wv.shape[0] == D * H
    assert wv.shape[1] == D * H
    assert keys.shape[1] == M + P
    assert noise.shape[2] == M + P
    assert keys.is_contiguous()
    assert values.is_contiguous()
    assert max(M, J, H, D, size_i, P) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    PARTS_J = 4
    wq_jhd = wq.unflatten(1, (H, D))
    wk_jhd = wk.unflatten(1, (H, D))
    wv_jhd = wv.unflatten(1, (H, D))
    values_hpd = values.narrow(1, 0, P)
    keys_hpd = keys.narrow(1, 0, P)
    noise_hmp = noise.narrow(2, 0, P)
    noise_hmi = noise.narrow(2, P, M)
    keys_0_parts = torch.empty((PARTS_J, H, size_i, D), dtype=torch.float32, device=x.device)
    t0_parts = torch.empty((M, PARTS_J, H, D), dtype=torch.float32, device=x.device)
    values_0_parts = torch.empty((PARTS_J, H, size_i, D), dtype=torch.float32, device=x.device)
    t2 = torch.empty((M, H, size_i), dtype=torch.float32, device=x.device)
    t3 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    t4 = torch.empty((M, H, P), dtype=torch.float32, device=x.device)
    t7 = torch.empty((M, H, size_i), dtype=torch.float32, device=x.device)
    t8 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    values_0_copy = torch.empty((H, size_i, D), dtype=torch.float32, device=x.device)
    out1 = torch.empty((H, M + P), dtype=torch.float16, device=x.device)
    t10 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    t6 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    t9 = torch.empty((M, H, P), dtype=torch.float32, device=x.device)
    out0 = torch.empty((M, D * H), dtype=torch.float16, device=x.device)
    top = torch.empty((H, M), dtype=torch.float32, device=x.device)
    top0 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    top1 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    top2 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    out0_mhd = out0.unflatten(1, (H, D))
    out1_hp = out1.narrow(1, 0, P)
    out1_hi = out1.narrow(1, P, M)
    keys_hid = keys.narrow(1, P, M)
    values_hid = values.narrow(1, P, M)
    blocks = H * triton.cdiv(D, 32)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel0)[(blocks, PARTS_J)](
        wv_jhd,
        x,
        wk_jhd,
        wq_jhd,
        x,
        keys_0_parts,
        t0_parts,
        values_0_parts,
        M,
        J,
        D,
        size_i,
        *wv_jhd.stride(),
        *x.stride(),
        *wk_jhd.stride(),
        *wq_jhd.stride(),
        *x.stride(),
        *keys_0_parts.stride(),
        *t0_parts.stride(),
        *values_0_parts.stride(),
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        PARTS_J=PARTS_J,
        BLOCK_J=128,
        BLOCK_D=32,
        BLOCK_I=max(triton.next_power_of_2(size_i), 16),
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel1)[(H,)](
        t0_parts,
        keys_hpd,
        values_0_parts,
        keys_0_parts,
        noise_hmi,
        t4,
        keys_hid,
        t2,
        t3,
        t7,
        t8,
        values_hid,
        values_0_copy,
        top,
        top0,
        M,
        D,
        size_i,
        P,
        *t0_parts.stride(),
        *keys_hpd.stride(),
        *values_0_parts.stride(),
        *keys_0_parts.stride(),
        *noise_hmi.stride(),
        *t4.stride(),
        *keys_hid.stride(),
        *t2.stride(),
        *t3.stride(),
        *t7.stride(),
        *t8.stride(),
        *values_hid.stride(),
        *values_0_copy.stride(),
        *top.stride(),
        *top0.stride(),
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        PARTS_J=PARTS_J,
        BLOCK_J=triton.next_power_of_2(PARTS_J),
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        BLOCK_I=max(triton.next_power_of_2(size_i), 16),
        BLOCK_P=256,
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel2)[(H,)](
        noise_hmp,
        t4,
        t3,
        top,
        out1_hp,
        t10,
        t6,
        t9,
        top1,
        top2,
        M,
        P,
        *noise_hmp.stride(),
        *t4.stride(),
        *t3.stride(),
        *top.stride(),
        *out1_hp.stride(),
        *t10.stride(),
        *t6.stride(),
        *t9.stride(),
        *top1.stride(),
        *top2.stride(),
        BLOCK_M=triton.next_power_of_2(M),
        BLOCK_P=triton.next_power_of_2(P),
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel3)[(H,)](
        t8,
        top0,
        t10,
        top1,
        values_hpd,
        t9,
        t2,
        top,
        t3,
        t6,
        top2,
        values_0_copy,
        t7,
        out0_mhd,
        out1_hi,
        M,
        D,
        size_i,
        P,
        *t8.stride(),
        *top0.stride(),
        *t10.stride(),
        *top1.stride(),
        *values_hpd.stride(),
        *t9.stride(),
        *t2.stride(),
        *top.stride(),
        *t3.stride(),
        *t6.stride(),
        *top2.stride(),
        *values_0_copy.stride(),
        *t7.stride(),
        *out0_mhd.stride(),
        *out1_hi.stride(),
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        BLOCK_I=max(triton.next_power_of_2(size_i), 16),
        BLOCK_P=256,
        num_warps=4,
        num_stages=3,
    )
    return out0, out1


def register(namespace="emitted"):
    """key_former as torch.ops.<namespace>.key_former, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::key_former", mutates_args=("keys", "values"))
    def operator(
        x: torch.Tensor,
        wq: torch.Tensor,
        wk: torch.Tensor,
        wv: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        noise: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return key_former(x, wq, wk, wv, keys, values, noise, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, wq, wk, wv, keys, values, noise):
        M = x.shape[0]
        H = values.shape[0]
        D = values.shape[2]
        P = values.shape[1] - M
        return torch.empty((M, D * H), dtype=torch.float16, device=x.device), torch.empty(
            (H, M + P), dtype=torch.float16, device=x.device
        )

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "key_former"))
    def _(x, wq, wk, wv, keys, values, noise, **_):
        M = x[0]
        J = x[1]
        size_i = x[0]
        H = values[0]
        D = values[2]
        P = values[1] - M
        return (
            2 * J * H * D * size_i
            + 2 * J * H * D * size_i
            + 2 * M * J * H * D
            + 2 * M * H * D * P
            + 2 * M * H * D * size_i
            + 2 * M * H * D * P
            + 2 * M * H * D * size_i
        )

    return operator


def out0_reference(keys_hpd, values_hpd, wk_jhd, wq_jhd, wv_jhd, x):
    """out0[m, h, d] = (sum(p, values_hpd[h, p, d] * exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d])))
    + sum(i, sum(j, wv_jhd[j, h, d] * x[i, j]) * exp(sum(d, sum(j, wk_jhd[j, h, d] * x[i, j]) * sum(j, wq_jhd[j, h, d] *
    x[m, j]))))) / (sum(p, exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]))) + sum(i, exp(sum(d,
    sum(j, wk_jhd[j, h, d] * x[i, j]) * sum(j, wq_jhd[j, h, d] * x[m, j])))))"""
    t0 = torch.einsum("mj,jhd->mhd", x, wq_jhd)
    t1 = torch.exp(torch.einsum("hpd,mhd->mhp", keys_hpd, t0))
    t2 = torch.exp(torch.einsum("ihd,mhd->mih", torch.einsum("ij,jhd->ihd", x, wk_jhd), t0))
    return (
        torch.einsum("hpd,mhp->mhd", values_hpd, t1)
        + torch.einsum("mih,ihd->mhd", t2, torch.einsum("ij,jhd->ihd", x, wv_jhd))
    ) / (t1.sum(2) + t2.sum(1))[:, :, None]


def out1_0_reference(keys_hpd, noise_hmi, noise_hmp, wk_jhd, wq_jhd, x):
    """out1_0[h, p] = sum(m, exp(2 * (sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]) + noise_hmp[h, m,
    p]) / 3) / (sum(p, exp(2 * (sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]) + noise_hmp[h, m, p]) /
    3)) + sum(i, exp(2 * (noise_hmi[h, m, i] + sum(d, sum(j, wk_jhd[j, h, d] * x[i, j]) * sum(j, wq_jhd[j, h, d] * x[m,
    j]))) / 3))))"""
    t0 = torch.einsum("jm,jhd->hmd", x.T, wq_jhd)
    t1 = torch.exp(2 * (t0 @ keys_hpd.mT + noise_hmp) / 3)
    return (
        t1
        / (t1.sum(2) + torch.exp(2 * (noise_hmi + t0 @ torch.einsum("ji,jhd->hdi", x.T, wk_jhd)) / 3).sum(2))[
            :, :, None
        ]
    ).sum(1)


def out1_1_reference(keys_hpd, noise_hmi, noise_hmp, wk_jhd, wq_jhd, x):
    """out1_1[h, i] = sum(m, exp(2 * (noise_hmi[h, m, i] + sum(d, sum(j, wk_jhd[j, h, d] * x[i, j]) * sum(j, wq_jhd[j,
    h, d] * x[m, j]))) / 3) / (sum(p, exp(2 * (sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]) +
    noise_hmp[h, m, p]) / 3)) + sum(i, exp(2 * (noise_hmi[h, m, i] + sum(d, sum(j, wk_jhd[j, h, d] * x[i, j]) * sum(j,
    wq_jhd[j, h, d] * x[m, j]))) / 3))))"""
    t0 = torch.einsum("jm,jhd->hmd", x.T, wq_jhd)
    t1 = torch.exp(2 * (noise_hmi + t0 @ torch.einsum("ji,jhd->hid", x.T, wk_jhd).mT) / 3)
    return (t1 / (torch.exp(2 * (t0 @ keys_hpd.mT + noise_hmp) / 3).sum(2) + t1.sum(2))[:, :, None]).sum(1)


def keys_0_reference(wk_jhd, x):
    """keys_0[h, i, d] = sum(j, wk_jhd[j, h, d] * x[i, j])"""
    return torch.einsum("ji,jhd->hid", x.T, wk_jhd)


def values_0_reference(wv_jhd, x):
    """values_0[h, i, d] = sum(j, wv_jhd[j, h, d] * x[i, j])"""
    return torch.einsum("ji,jhd->hid", x.T, wv_jhd)


if case is not None:

    @case(
        x="f16[M,D*H] strided",
        wq="f16[D*H,D*H] strided",
        wk="f16[D*H,D*H] strided",
        wv="f16[D*H,D*H] strided",
        values="f16[H,M+P,D]",
        keys="f16[H,M+P,D]",
        noise="f16[H,M,M+P] strided",
    )
    def key_former_case(x, wq, wk, wv, keys, values, noise):
        return key_former(x, wq, wk, wv, keys, values, noise)

    @key_former_case.reference
    def _(x, wq, wk, wv, keys, values, noise):
        M = x.shape[0]
        H = values.shape[0]
        D = values.shape[2]
        P = values.shape[1] - M
        wq_jhd = wq.unflatten(1, (H, D))
        wk_jhd = wk.unflatten(1, (H, D))
        wv_jhd = wv.unflatten(1, (H, D))
        values_hpd = values.narrow(1, 0, P)
        keys_hpd = keys.narrow(1, 0, P)
        noise_hmp = noise.narrow(2, 0, P)
        noise_hmi = noise.narrow(2, P, M)
        out0 = out0_reference(keys_hpd, values_hpd, wk_jhd, wq_jhd, wv_jhd, x)
        out1_0 = out1_0_reference(keys_hpd, noise_hmi, noise_hmp, wk_jhd, wq_jhd, x)
        out1_1 = out1_1_reference(keys_hpd, noise_hmi, noise_hmp, wk_jhd, wq_jhd, x)
        keys_0 = keys_0_reference(wk_jhd, x)
        values_0 = values_0_reference(wv_jhd, x)
        out0 = out0.reshape((M, D * H))
        out1 = out1_0.new_zeros((H, M + P))
        out1.narrow(1, 0, P).copy_(out1_0)
        out1.narrow(1, P, M).copy_(out1_1)
        keys.narrow(1, P, M).copy_(keys_0)
        values.narrow(1, P, M).copy_(values_0)
        return out0, out1

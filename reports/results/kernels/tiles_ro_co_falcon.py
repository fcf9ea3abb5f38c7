# Written by trilift optimize corpus/trinity/ro_co.py::ro_co --at M=16,H=71,D=64,P=1008 --seed 0 -o ro_co.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-22
# PROVED against its reference below, PROVED against the function of the case
# 4 kernels, 53.54 us in the model at these sizes, roofline 33.27 us
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
    t3_ptr,
    keys_0_ptr,
    t2_ptr,
    t6_ptr,
    values_0_ptr,
    values_0_copy_ptr,
    top_ptr,
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
    stride_t3_m,
    stride_t3_h,
    stride_t3_p,
    stride_keys_0_h,
    stride_keys_0_i,
    stride_keys_0_d,
    stride_t2_m,
    stride_t2_h,
    stride_t2_i,
    stride_t6_h,
    stride_t6_m,
    stride_values_0_h,
    stride_values_0_i,
    stride_values_0_d,
    stride_values_0_copy_h,
    stride_values_0_copy_i,
    stride_values_0_copy_d,
    stride_top_h,
    stride_top_m,
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
        v10 = tl.dot(v5, keys_tile.to(tl.float32), input_precision="tf32x3")
        tl.store(
            t3_ptr + h * stride_t3_h + m[:, None].to(tl.int64) * stride_t3_m + p[None, :].to(tl.int64) * stride_t3_p,
            v10,
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
    v1 = tl.sum(values_0_parts_tile, axis=0)
    v3 = tl.sum(keys_0_parts_tile, axis=0)
    v6 = tl.dot(v5, v3, input_precision="ieee")
    v6_in = tl.where(i[None, :] < size_i, v6, -float("inf"))
    highest = tl.max(v6_in, axis=1)
    v6_less = v6_in - highest[:, None]
    v7 = tl.exp(v6_less)
    v8 = tl.sum(v7, axis=1)
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
        v7,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
    )
    tl.store(t6_ptr + h * stride_t6_h + m.to(tl.int64) * stride_t6_m, v8, mask=m < M)
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


@triton.jit
def kernel2(
    t3_ptr,
    t6_ptr,
    top_ptr,
    out1_0_ptr,
    out2_0_ptr,
    t4_ptr,
    t5_ptr,
    top0_ptr,
    M,
    P,
    stride_t3_m,
    stride_t3_h,
    stride_t3_p,
    stride_t6_h,
    stride_t6_m,
    stride_top_h,
    stride_top_m,
    stride_out1_0_h,
    stride_out1_0_p,
    stride_out2_0_h,
    stride_out2_0_p,
    stride_t4_m,
    stride_t4_h,
    stride_t4_p,
    stride_t5_h,
    stride_t5_m,
    stride_top0_h,
    stride_top0_m,
    BLOCK_M: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    p = tl.arange(0, BLOCK_P)
    t3_tile = tl.load(
        t3_ptr + h * stride_t3_h + m[:, None].to(tl.int64) * stride_t3_m + p[None, :].to(tl.int64) * stride_t3_p,
        mask=(m[:, None] < M) & (p[None, :] < P),
        other=0.0,
    )
    t6_tile = tl.load(t6_ptr + h * stride_t6_h + m.to(tl.int64) * stride_t6_m, mask=m < M, other=0.0)
    top = tl.load(top_ptr + h * stride_top_h + m.to(tl.int64) * stride_top_m, mask=m < M, other=0.0)
    t3_tile_in = tl.where(p[None, :] < P, t3_tile, -float("inf"))
    highest = tl.max(t3_tile_in, axis=1)
    t3_tile_less = t3_tile_in - highest[:, None]
    v1 = tl.exp(t3_tile_less)
    v2 = tl.sum(v1, axis=1)
    m_joined = tl.maximum(top, highest)
    highest_less = highest - m_joined
    weight = tl.exp(highest_less)
    v2_weighed = v2 * weight
    top_less = top - m_joined
    weight0 = tl.exp(top_less)
    t6_tile_weighed = t6_tile * weight0
    v4 = v2_weighed + t6_tile_weighed
    v1_weighed = v1 * weight[:, None]
    v5 = v1_weighed / v4[:, None]
    v6 = v5 * v5
    v6_in = tl.where(m[:, None] < M, v6, 0.0)
    v7 = tl.sum(v6_in, axis=0)
    v5_in = tl.where(m[:, None] < M, v5, 0.0)
    v8 = tl.sum(v5_in, axis=0)
    tl.store(out1_0_ptr + h * stride_out1_0_h + p.to(tl.int64) * stride_out1_0_p, v8.to(tl.float16), mask=p < P)
    tl.store(out2_0_ptr + h * stride_out2_0_h + p.to(tl.int64) * stride_out2_0_p, v7.to(tl.float16), mask=p < P)
    tl.store(
        t4_ptr + h * stride_t4_h + m[:, None].to(tl.int64) * stride_t4_m + p[None, :].to(tl.int64) * stride_t4_p,
        v1,
        mask=(m[:, None] < M) & (p[None, :] < P),
    )
    tl.store(t5_ptr + h * stride_t5_h + m.to(tl.int64) * stride_t5_m, v2, mask=m < M)
    tl.store(top0_ptr + h * stride_top0_h + m.to(tl.int64) * stride_top0_m, highest, mask=m < M)


@triton.jit
def kernel3(
    t5_ptr,
    top0_ptr,
    t6_ptr,
    top_ptr,
    values_ptr,
    t4_ptr,
    t2_ptr,
    values_0_copy_ptr,
    out0_ptr,
    out1_1_ptr,
    out2_1_ptr,
    M,
    D,
    size_i,
    P,
    stride_t5_h,
    stride_t5_m,
    stride_top0_h,
    stride_top0_m,
    stride_t6_h,
    stride_t6_m,
    stride_top_h,
    stride_top_m,
    stride_values_h,
    stride_values_p,
    stride_values_d,
    stride_t4_m,
    stride_t4_h,
    stride_t4_p,
    stride_t2_m,
    stride_t2_h,
    stride_t2_i,
    stride_values_0_copy_h,
    stride_values_0_copy_i,
    stride_values_0_copy_d,
    stride_out0_m,
    stride_out0_h,
    stride_out0_d,
    stride_out1_1_h,
    stride_out1_1_i,
    stride_out2_1_h,
    stride_out2_1_i,
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
    t5_tile = tl.load(t5_ptr + h * stride_t5_h + m.to(tl.int64) * stride_t5_m, mask=m < M, other=0.0)
    top0 = tl.load(top0_ptr + h * stride_top0_h + m.to(tl.int64) * stride_top0_m, mask=m < M, other=0.0)
    t6_tile = tl.load(t6_ptr + h * stride_t6_h + m.to(tl.int64) * stride_t6_m, mask=m < M, other=0.0)
    top = tl.load(top_ptr + h * stride_top_h + m.to(tl.int64) * stride_top_m, mask=m < M, other=0.0)
    m_joined = tl.maximum(top0, top)
    top0_less = top0 - m_joined
    weight = tl.exp(top0_less)
    top_less = top - m_joined
    weight0 = tl.exp(top_less)
    t5_tile_weighed = t5_tile * weight
    t6_tile_weighed = t6_tile * weight0
    v4 = t5_tile_weighed + t6_tile_weighed
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
        t4_tile = tl.load(
            t4_ptr + h * stride_t4_h + m[:, None].to(tl.int64) * stride_t4_m + p[None, :].to(tl.int64) * stride_t4_p,
            mask=(m[:, None] < M) & (p[None, :] < P),
            other=0.0,
        )
        t4_tile_weighed = t4_tile * weight[:, None]
        v4_or_1 = tl.where(m < M, v4, 1.0)
        v5 = t4_tile_weighed / v4_or_1[:, None]
        v5_in = tl.where(p[None, :] < P, v5, 0.0)
        v7 = tl.dot(v5_in.to(tl.float16), values_tile, v7)
    t2_tile = tl.load(
        t2_ptr + h * stride_t2_h + m[:, None].to(tl.int64) * stride_t2_m + i[None, :].to(tl.int64) * stride_t2_i,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
        other=0.0,
    )
    values_0_copy_tile = tl.load(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + i[:, None].to(tl.int64) * stride_values_0_copy_i
        + d[None, :].to(tl.int64) * stride_values_0_copy_d,
        mask=(i[:, None] < size_i) & (d[None, :] < D),
        other=0.0,
    )
    t2_tile_weighed = t2_tile * weight0[:, None]
    v9 = t2_tile_weighed / v4[:, None]
    v10 = v9 * v9
    v10_in = tl.where(m[:, None] < M, v10, 0.0)
    v11 = tl.sum(v10_in, axis=0)
    v9_in = tl.where(m[:, None] < M, v9, 0.0)
    v12 = tl.sum(v9_in, axis=0)
    v15 = v7
    v9_in_1 = tl.where(i[None, :] < size_i, v9, 0.0)
    v15 = tl.dot(v9_in_1, values_0_copy_tile, v15, input_precision="ieee")
    tl.store(
        out0_ptr
        + h * stride_out0_h
        + m[:, None].to(tl.int64) * stride_out0_m
        + d[None, :].to(tl.int64) * stride_out0_d,
        v15.to(tl.float16),
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(out1_1_ptr + h * stride_out1_1_h + i.to(tl.int64) * stride_out1_1_i, v12.to(tl.float16), mask=i < size_i)
    tl.store(out2_1_ptr + h * stride_out2_1_h + i.to(tl.int64) * stride_out2_1_i, v11.to(tl.float16), mask=i < size_i)


def ro_co(x, wq, wk, wv, keys, values, wrap=lambda kernel: kernel):
    """out0[m, d + D * h], out1[h, p], out1[h, P + i], out2[h, p], out2[h, P + i], keys[h, P + i, d], values[h, P + i, d] of x[m, j], wq[j, d + D * h], x[i, j], wk[j, d + D * h], wv[j, d + D * h], values[h, p, d], keys[h, p, d]."""
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
    assert keys.is_contiguous()
    assert values.is_contiguous()
    assert max(M, J, H, D, size_i, P) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    PARTS_J = 4
    wq_jhd = wq.unflatten(1, (H, D))
    wk_jhd = wk.unflatten(1, (H, D))
    wv_jhd = wv.unflatten(1, (H, D))
    values_hpd = values.narrow(1, 0, P)
    keys_hpd = keys.narrow(1, 0, P)
    keys_0_parts = torch.empty((PARTS_J, H, size_i, D), dtype=torch.float32, device=x.device)
    t0_parts = torch.empty((M, PARTS_J, H, D), dtype=torch.float32, device=x.device)
    values_0_parts = torch.empty((PARTS_J, H, size_i, D), dtype=torch.float32, device=x.device)
    t2 = torch.empty((M, H, size_i), dtype=torch.float32, device=x.device)
    t3 = torch.empty((M, H, P), dtype=torch.float32, device=x.device)
    t6 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    values_0_copy = torch.empty((H, size_i, D), dtype=torch.float32, device=x.device)
    out1 = torch.empty((H, M + P), dtype=torch.float16, device=x.device)
    out2 = torch.empty((H, M + P), dtype=torch.float16, device=x.device)
    t4 = torch.empty((M, H, P), dtype=torch.float32, device=x.device)
    t5 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    out0 = torch.empty((M, D * H), dtype=torch.float16, device=x.device)
    top = torch.empty((H, M), dtype=torch.float32, device=x.device)
    top0 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    out0_mhd = out0.unflatten(1, (H, D))
    out1_hp = out1.narrow(1, 0, P)
    out1_hi = out1.narrow(1, P, M)
    out2_hp = out2.narrow(1, 0, P)
    out2_hi = out2.narrow(1, P, M)
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
        t3,
        keys_hid,
        t2,
        t6,
        values_hid,
        values_0_copy,
        top,
        M,
        D,
        size_i,
        P,
        *t0_parts.stride(),
        *keys_hpd.stride(),
        *values_0_parts.stride(),
        *keys_0_parts.stride(),
        *t3.stride(),
        *keys_hid.stride(),
        *t2.stride(),
        *t6.stride(),
        *values_hid.stride(),
        *values_0_copy.stride(),
        *top.stride(),
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
        t3,
        t6,
        top,
        out1_hp,
        out2_hp,
        t4,
        t5,
        top0,
        M,
        P,
        *t3.stride(),
        *t6.stride(),
        *top.stride(),
        *out1_hp.stride(),
        *out2_hp.stride(),
        *t4.stride(),
        *t5.stride(),
        *top0.stride(),
        BLOCK_M=triton.next_power_of_2(M),
        BLOCK_P=triton.next_power_of_2(P),
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel3)[(H,)](
        t5,
        top0,
        t6,
        top,
        values_hpd,
        t4,
        t2,
        values_0_copy,
        out0_mhd,
        out1_hi,
        out2_hi,
        M,
        D,
        size_i,
        P,
        *t5.stride(),
        *top0.stride(),
        *t6.stride(),
        *top.stride(),
        *values_hpd.stride(),
        *t4.stride(),
        *t2.stride(),
        *values_0_copy.stride(),
        *out0_mhd.stride(),
        *out1_hi.stride(),
        *out2_hi.stride(),
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        BLOCK_I=max(triton.next_power_of_2(size_i), 16),
        BLOCK_P=256,
        num_warps=4,
        num_stages=3,
    )
    return out0, out1, out2


def register(namespace="emitted"):
    """ro_co as torch.ops.<namespace>.ro_co, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::ro_co", mutates_args=("keys", "values"))
    def operator(
        x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return ro_co(x, wq, wk, wv, keys, values, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, wq, wk, wv, keys, values):
        M = x.shape[0]
        H = values.shape[0]
        D = values.shape[2]
        P = values.shape[1] - M
        return (
            torch.empty((M, D * H), dtype=torch.float16, device=x.device),
            torch.empty((H, M + P), dtype=torch.float16, device=x.device),
            torch.empty((H, M + P), dtype=torch.float16, device=x.device),
        )

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "ro_co"))
    def _(x, wq, wk, wv, keys, values, **_):
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


def out1_0_reference(keys_hpd, wk_jhd, wq_jhd, x):
    """out1_0[h, p] = sum(m, exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d])) / (sum(p, exp(sum(d,
    sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]))) + sum(i, exp(sum(d, sum(j, wk_jhd[j, h, d] * x[i, j]) *
    sum(j, wq_jhd[j, h, d] * x[m, j]))))))"""
    t0 = torch.einsum("mj,jhd->mhd", x, wq_jhd)
    t1 = torch.exp(torch.einsum("hpd,mhd->mhp", keys_hpd, t0))
    return (
        t1
        / (t1.sum(2) + torch.exp(torch.einsum("ihd,mhd->mih", torch.einsum("ij,jhd->ihd", x, wk_jhd), t0)).sum(1))[
            :, :, None
        ]
    ).sum(0)


def out1_1_reference(keys_hpd, wk_jhd, wq_jhd, x):
    """out1_1[h, i] = sum(m, exp(sum(d, sum(j, wk_jhd[j, h, d] * x[i, j]) * sum(j, wq_jhd[j, h, d] * x[m, j]))) /
    (sum(p, exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]))) + sum(i, exp(sum(d, sum(j, wk_jhd[j, h,
    d] * x[i, j]) * sum(j, wq_jhd[j, h, d] * x[m, j]))))))"""
    t0 = torch.einsum("mj,jhd->mhd", x, wq_jhd)
    t1 = torch.exp(torch.einsum("hid,mhd->mhi", torch.einsum("ji,jhd->hid", x.T, wk_jhd), t0))
    return (t1 / (torch.exp(torch.einsum("hpd,mhd->mhp", keys_hpd, t0)).sum(2) + t1.sum(2))[:, :, None]).sum(0)


def out2_0_reference(keys_hpd, wk_jhd, wq_jhd, x):
    """out2_0[h, p] = sum(m, exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d])) ** 2 / (sum(p,
    exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]))) + sum(i, exp(sum(d, sum(j, wk_jhd[j, h, d] *
    x[i, j]) * sum(j, wq_jhd[j, h, d] * x[m, j]))))) ** 2)"""
    t0 = torch.einsum("mj,jhd->mhd", x, wq_jhd)
    t1 = torch.exp(torch.einsum("hpd,mhd->mhp", keys_hpd, t0))
    t2 = t1.sum(2) + torch.exp(torch.einsum("ihd,mhd->mih", torch.einsum("ij,jhd->ihd", x, wk_jhd), t0)).sum(1)
    return (t1**2 / t2[:, :, None] ** 2).sum(0)


def out2_1_reference(keys_hpd, wk_jhd, wq_jhd, x):
    """out2_1[h, i] = sum(m, exp(sum(d, sum(j, wk_jhd[j, h, d] * x[i, j]) * sum(j, wq_jhd[j, h, d] * x[m, j]))) ** 2 /
    (sum(p, exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]))) + sum(i, exp(sum(d, sum(j, wk_jhd[j, h,
    d] * x[i, j]) * sum(j, wq_jhd[j, h, d] * x[m, j]))))) ** 2)"""
    t0 = torch.einsum("mj,jhd->mhd", x, wq_jhd)
    t1 = torch.exp(torch.einsum("hid,mhd->mhi", torch.einsum("ji,jhd->hid", x.T, wk_jhd), t0))
    t2 = torch.exp(torch.einsum("hpd,mhd->mhp", keys_hpd, t0)).sum(2) + t1.sum(2)
    return (t1**2 / t2[:, :, None] ** 2).sum(0)


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
    )
    def ro_co_case(x, wq, wk, wv, keys, values):
        return ro_co(x, wq, wk, wv, keys, values)

    @ro_co_case.reference
    def _(x, wq, wk, wv, keys, values):
        M = x.shape[0]
        H = values.shape[0]
        D = values.shape[2]
        P = values.shape[1] - M
        wq_jhd = wq.unflatten(1, (H, D))
        wk_jhd = wk.unflatten(1, (H, D))
        wv_jhd = wv.unflatten(1, (H, D))
        values_hpd = values.narrow(1, 0, P)
        keys_hpd = keys.narrow(1, 0, P)
        out0 = out0_reference(keys_hpd, values_hpd, wk_jhd, wq_jhd, wv_jhd, x)
        out1_0 = out1_0_reference(keys_hpd, wk_jhd, wq_jhd, x)
        out1_1 = out1_1_reference(keys_hpd, wk_jhd, wq_jhd, x)
        out2_0 = out2_0_reference(keys_hpd, wk_jhd, wq_jhd, x)
        out2_1 = out2_1_reference(keys_hpd, wk_jhd, wq_jhd, x)
        keys_0 = keys_0_reference(wk_jhd, x)
        values_0 = values_0_reference(wv_jhd, x)
        out0 = out0.reshape((M, D * H))
        out1 = out1_0.new_zeros((H, M + P))
        out1.narrow(1, 0, P).copy_(out1_0)
        out1.narrow(1, P, M).copy_(out1_1)
        out2 = out2_0.new_zeros((H, M + P))
        out2.narrow(1, 0, P).copy_(out2_0)
        out2.narrow(1, P, M).copy_(out2_1)
        keys.narrow(1, P, M).copy_(keys_0)
        values.narrow(1, P, M).copy_(values_0)
        return out0, out1, out2

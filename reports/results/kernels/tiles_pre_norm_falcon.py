# Written by trilift optimize corpus/trinity/pre_norm.py::pre_norm --at M=16,H=71,D=64,P=1008 --seed 0 -o pre_norm.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-22
# PROVED against its reference below, PROVED against the function of the case
# 5 kernels, 54.23 us in the model at these sizes, roofline 33.21 us
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
    x_ptr,
    t0_parts_ptr,
    M,
    J,
    D,
    stride_wv_j,
    stride_wv_h,
    stride_wv_d,
    stride_x_i,
    stride_x_j,
    stride_t0_parts_j,
    stride_t0_parts_h,
    stride_t0_parts_d,
    stride_t0_parts_i,
    BLOCK_I: tl.constexpr,
    PARTS_J: tl.constexpr,
    BLOCK_J: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    i = (block // blocks_d).to(tl.int64) * BLOCK_I + tl.arange(0, BLOCK_I)
    part_j = tl.program_id(1).to(tl.int64)
    h = tl.program_id(2).to(tl.int64)
    v3 = tl.zeros((BLOCK_D, BLOCK_I), tl.float32)
    share_j = tl.cdiv(tl.cdiv(J, PARTS_J), BLOCK_J) * BLOCK_J
    for start_j in range(part_j * share_j, part_j * share_j + share_j, BLOCK_J):
        j = start_j + tl.arange(0, BLOCK_J)
        wv_tile = tl.load(
            wv_ptr + h * stride_wv_h + d[:, None] * stride_wv_d + j[None, :].to(tl.int64) * stride_wv_j,
            mask=(d[:, None] < D) & (j[None, :] < J),
            other=0.0,
        )
        x_tile = tl.load(
            x_ptr + j[:, None].to(tl.int64) * stride_x_j + i[None, :] * stride_x_i,
            mask=(j[:, None] < J) & (i[None, :] < M),
            other=0.0,
        )
        v3 = tl.dot(wv_tile, x_tile, v3)
    tl.store(
        t0_parts_ptr
        + part_j * stride_t0_parts_j
        + h * stride_t0_parts_h
        + d[:, None] * stride_t0_parts_d
        + i[None, :] * stride_t0_parts_i,
        v3,
        mask=(d[:, None] < D) & (i[None, :] < M),
    )


@triton.jit
def kernel1(
    x_ptr,
    t1_parts_ptr,
    J,
    stride_x_i,
    stride_x_j,
    stride_t1_parts_i,
    stride_t1_parts_j,
    PARTS_J: tl.constexpr,
    BLOCK_J: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64)
    part_j = tl.program_id(1).to(tl.int64)
    v3 = 0.0
    share_j = tl.cdiv(tl.cdiv(J, PARTS_J), BLOCK_J) * BLOCK_J
    for start_j in range(part_j * share_j, part_j * share_j + share_j, BLOCK_J):
        j = start_j + tl.arange(0, BLOCK_J)
        x_tile = tl.load(x_ptr + i * stride_x_i + j.to(tl.int64) * stride_x_j, mask=j < J, other=0.0)
        x_tile_f32 = x_tile.to(tl.float32)
        v1 = x_tile_f32 * x_tile_f32
        v2 = tl.sum(v1, axis=0)
        v3 += v2
    tl.store(t1_parts_ptr + i * stride_t1_parts_i + part_j * stride_t1_parts_j, v3)


@triton.jit
def kernel2(
    wk_ptr,
    x_ptr,
    wq_ptr,
    x_1_ptr,
    t3_parts_ptr,
    t4_parts_ptr,
    M,
    J,
    size_m,
    D,
    stride_wk_j,
    stride_wk_h,
    stride_wk_d,
    stride_x_i,
    stride_x_j,
    stride_wq_j,
    stride_wq_h,
    stride_wq_d,
    stride_x_1_m,
    stride_x_1_j,
    stride_t3_parts_j,
    stride_t3_parts_h,
    stride_t3_parts_d,
    stride_t3_parts_i,
    stride_t4_parts_j,
    stride_t4_parts_h,
    stride_t4_parts_d,
    stride_t4_parts_m,
    BLOCK_I: tl.constexpr,
    PARTS_J: tl.constexpr,
    BLOCK_J: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    h = (block // blocks_d).to(tl.int64)
    part_j = tl.program_id(1).to(tl.int64)
    i = tl.arange(0, BLOCK_I)
    m = tl.arange(0, BLOCK_M)
    v3 = tl.zeros((BLOCK_D, BLOCK_I), tl.float32)
    v7 = tl.zeros((BLOCK_D, BLOCK_M), tl.float32)
    share_j = tl.cdiv(tl.cdiv(J, PARTS_J), BLOCK_J) * BLOCK_J
    for start_j in range(part_j * share_j, part_j * share_j + share_j, BLOCK_J):
        j = start_j + tl.arange(0, BLOCK_J)
        wk_tile = tl.load(
            wk_ptr + h * stride_wk_h + d[:, None] * stride_wk_d + j[None, :].to(tl.int64) * stride_wk_j,
            mask=(d[:, None] < D) & (j[None, :] < J),
            other=0.0,
        )
        x_tile = tl.load(
            x_ptr + j[:, None].to(tl.int64) * stride_x_j + i[None, :].to(tl.int64) * stride_x_i,
            mask=(j[:, None] < J) & (i[None, :] < M),
            other=0.0,
        )
        wq_tile = tl.load(
            wq_ptr + h * stride_wq_h + d[:, None] * stride_wq_d + j[None, :].to(tl.int64) * stride_wq_j,
            mask=(d[:, None] < D) & (j[None, :] < J),
            other=0.0,
        )
        x_1_tile = tl.load(
            x_1_ptr + j[:, None].to(tl.int64) * stride_x_1_j + m[None, :].to(tl.int64) * stride_x_1_m,
            mask=(j[:, None] < J) & (m[None, :] < size_m),
            other=0.0,
        )
        v3 = tl.dot(wk_tile, x_tile, v3)
        v7 = tl.dot(wq_tile, x_1_tile, v7)
    tl.store(
        t3_parts_ptr
        + part_j * stride_t3_parts_j
        + h * stride_t3_parts_h
        + d[:, None] * stride_t3_parts_d
        + i[None, :].to(tl.int64) * stride_t3_parts_i,
        v3,
        mask=(d[:, None] < D) & (i[None, :] < M),
    )
    tl.store(
        t4_parts_ptr
        + part_j * stride_t4_parts_j
        + h * stride_t4_parts_h
        + d[:, None] * stride_t4_parts_d
        + m[None, :].to(tl.int64) * stride_t4_parts_m,
        v7,
        mask=(d[:, None] < D) & (m[None, :] < size_m),
    )


@triton.jit
def kernel3(
    x_1_ptr,
    t5_parts_ptr,
    J,
    stride_x_1_m,
    stride_x_1_j,
    stride_t5_parts_j,
    stride_t5_parts_m,
    PARTS_J: tl.constexpr,
    BLOCK_J: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64)
    part_j = tl.program_id(1).to(tl.int64)
    v3 = 0.0
    share_j = tl.cdiv(tl.cdiv(J, PARTS_J), BLOCK_J) * BLOCK_J
    for start_j in range(part_j * share_j, part_j * share_j + share_j, BLOCK_J):
        j = start_j + tl.arange(0, BLOCK_J)
        x_1_tile = tl.load(x_1_ptr + m * stride_x_1_m + j.to(tl.int64) * stride_x_1_j, mask=j < J, other=0.0)
        x_1_tile_f32 = x_1_tile.to(tl.float32)
        v1 = x_1_tile_f32 * x_1_tile_f32
        v2 = tl.sum(v1, axis=0)
        v3 += v2
    tl.store(t5_parts_ptr + part_j * stride_t5_parts_j + m * stride_t5_parts_m, v3)


@triton.jit
def kernel4(
    t4_parts_ptr,
    t5_parts_ptr,
    keys_ptr,
    values_ptr,
    t0_parts_ptr,
    t1_parts_ptr,
    t3_parts_ptr,
    keys_0_ptr,
    out_ptr,
    values_0_ptr,
    M,
    size_m,
    D,
    P,
    stride_t4_parts_j,
    stride_t4_parts_h,
    stride_t4_parts_d,
    stride_t4_parts_m,
    stride_t5_parts_j,
    stride_t5_parts_m,
    stride_keys_h,
    stride_keys_p,
    stride_keys_d,
    stride_values_h,
    stride_values_p,
    stride_values_d,
    stride_t0_parts_j,
    stride_t0_parts_h,
    stride_t0_parts_d,
    stride_t0_parts_i,
    stride_t1_parts_i,
    stride_t1_parts_j,
    stride_t3_parts_j,
    stride_t3_parts_h,
    stride_t3_parts_d,
    stride_t3_parts_i,
    stride_keys_0_h,
    stride_keys_0_i,
    stride_keys_0_d,
    stride_out_m,
    stride_out_h,
    stride_out_d,
    stride_values_0_h,
    stride_values_0_i,
    stride_values_0_d,
    factor,
    BLOCK_I: tl.constexpr,
    PARTS_J: tl.constexpr,
    BLOCK_J: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK_I)
    j = tl.arange(0, BLOCK_J)
    m = tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    m_top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    v26 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    v28 = tl.zeros((BLOCK_M,), tl.float32)
    t4_parts_tile = tl.load(
        t4_parts_ptr
        + h * stride_t4_parts_h
        + j[:, None, None].to(tl.int64) * stride_t4_parts_j
        + m[None, :, None].to(tl.int64) * stride_t4_parts_m
        + d[None, None, :].to(tl.int64) * stride_t4_parts_d,
        mask=(j[:, None, None] < PARTS_J) & (m[None, :, None] < size_m) & (d[None, None, :] < D),
        other=0.0,
    )
    t5_parts_tile = tl.load(
        t5_parts_ptr + j[:, None].to(tl.int64) * stride_t5_parts_j + m[None, :].to(tl.int64) * stride_t5_parts_m,
        mask=(j[:, None] < PARTS_J) & (m[None, :] < size_m),
        other=0.0,
    )
    v7 = tl.sum(t4_parts_tile, axis=0)
    v9 = tl.sum(t5_parts_tile, axis=0)
    v14 = v9 * factor
    v15 = tl.sqrt(v14)
    v15_or_1 = tl.where(m < size_m, v15, 1.0)
    v16 = v7 / v15_or_1[:, None]
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
        values_tile = tl.load(
            values_ptr
            + h * stride_values_h
            + d[:, None].to(tl.int64) * stride_values_d
            + p[None, :].to(tl.int64) * stride_values_p,
            mask=(d[:, None] < D) & (p[None, :] < P),
            other=0.0,
        )
        v16_in = tl.where(d[None, :] < D, v16, 0.0)
        v22 = tl.dot(v16_in, keys_tile.to(tl.float32), input_precision="tf32x3")
        v22_in = tl.where(p[None, :] < P, v22, -float("inf"))
        highest = tl.max(v22_in, axis=1)
        m_top_new = tl.maximum(m_top, highest)
        shrink = tl.exp(m_top - m_top_new)
        m_top = m_top_new
        v22_less = v22_in - m_top_new[:, None]
        v23 = tl.exp(v22_less)
        v27 = tl.sum(v23, axis=1)
        v26 = tl.dot(v23.to(tl.float16), tl.trans(values_tile), v26 * shrink[:, None])
        v28 *= shrink
        v28 += v27
    t0_parts_tile = tl.load(
        t0_parts_ptr
        + h * stride_t0_parts_h
        + j[:, None, None].to(tl.int64) * stride_t0_parts_j
        + i[None, :, None].to(tl.int64) * stride_t0_parts_i
        + d[None, None, :].to(tl.int64) * stride_t0_parts_d,
        mask=(j[:, None, None] < PARTS_J) & (i[None, :, None] < M) & (d[None, None, :] < D),
        other=0.0,
    )
    t1_parts_tile = tl.load(
        t1_parts_ptr + j[:, None].to(tl.int64) * stride_t1_parts_j + i[None, :].to(tl.int64) * stride_t1_parts_i,
        mask=(j[:, None] < PARTS_J) & (i[None, :] < M),
        other=0.0,
    )
    t3_parts_tile = tl.load(
        t3_parts_ptr
        + h * stride_t3_parts_h
        + j[:, None, None].to(tl.int64) * stride_t3_parts_j
        + i[None, :, None].to(tl.int64) * stride_t3_parts_i
        + d[None, None, :].to(tl.int64) * stride_t3_parts_d,
        mask=(j[:, None, None] < PARTS_J) & (i[None, :, None] < M) & (d[None, None, :] < D),
        other=0.0,
    )
    v1 = tl.sum(t0_parts_tile, axis=0)
    v3 = tl.sum(t1_parts_tile, axis=0)
    v5 = tl.sum(t3_parts_tile, axis=0)
    v10 = v3 * factor
    v11 = tl.sqrt(v10)
    v11_or_1 = tl.where(i < M, v11, 1.0)
    v12 = v1 / v11_or_1[:, None]
    v11_or_1_1 = tl.where(i < M, v11, 1.0)
    v13 = v5 / v11_or_1_1[:, None]
    v16_in_1 = tl.where(d[None, :] < D, v16, 0.0)
    v13_in = tl.where(d[None, :] < D, v13, 0.0)
    v17 = tl.dot(v16_in_1, tl.trans(v13_in), input_precision="ieee")
    v17_in = tl.where(i[None, :] < M, v17, -float("inf"))
    highest0 = tl.max(v17_in, axis=1)
    v17_less = v17_in - highest0[:, None]
    v18 = tl.exp(v17_less)
    v20 = tl.sum(v18, axis=1)
    m_joined = tl.maximum(m_top, highest0)
    highest0_less = highest0 - m_joined
    weight = tl.exp(highest0_less)
    m_top_less = m_top - m_joined
    weight0 = tl.exp(m_top_less)
    v19 = tl.dot(v18, v12, input_precision="ieee")
    v20_weighed = v20 * weight
    v28_weighed = v28 * weight0
    v30 = v20_weighed + v28_weighed
    v19_weighed = v19 * weight[:, None]
    v26_weighed = v26 * weight0[:, None]
    v29 = v19_weighed + v26_weighed
    v31 = v29 / v30[:, None]
    tl.store(
        keys_0_ptr
        + h * stride_keys_0_h
        + i[:, None].to(tl.int64) * stride_keys_0_i
        + d[None, :].to(tl.int64) * stride_keys_0_d,
        v13.to(tl.float16),
        mask=(i[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        out_ptr + h * stride_out_h + m[:, None].to(tl.int64) * stride_out_m + d[None, :].to(tl.int64) * stride_out_d,
        v31.to(tl.float16),
        mask=(m[:, None] < size_m) & (d[None, :] < D),
    )
    tl.store(
        values_0_ptr
        + h * stride_values_0_h
        + i[:, None].to(tl.int64) * stride_values_0_i
        + d[None, :].to(tl.int64) * stride_values_0_d,
        v12.to(tl.float16),
        mask=(i[:, None] < M) & (d[None, :] < D),
    )


def pre_norm(x, wq, wk, wv, keys, values, wrap=lambda kernel: kernel):
    """out[m, d + D * h], keys[h, P + i, d], values[h, P + i, d] of x[i, j], x[m, j], wq[j, d + D * h], wk[j, d + D * h], wv[j, d + D * h], keys[h, p, d], values[h, p, d]."""
    assert x.dtype == torch.float16 and x.dim() == 2
    M, J = x.shape
    size_m = x.shape[0]
    assert x.shape[1] == J
    assert wq.dtype == torch.float16 and wq.dim() == 2
    assert wk.dtype == torch.float16 and wk.dim() == 2
    assert wv.dtype == torch.float16 and wv.dim() == 2
    assert keys.dtype == torch.float16 and keys.dim() == 3
    H = keys.shape[0]
    D = keys.shape[2]
    assert values.dtype == torch.float16 and values.dim() == 3
    assert values.shape[0] == H
    assert values.shape[2] == D
    P = keys.shape[1] - M
    assert P >= 0
    assert J == D * H
    assert size_m == M
    assert wq.shape[0] == D * H
    assert wq.shape[1] == D * H
    assert wk.shape[0] == D * H
    assert wk.shape[1] == D * H
    assert wv.shape[0] == D * H
    assert wv.shape[1] == D * H
    assert values.shape[1] == M + P
    assert keys.is_contiguous()
    assert values.is_contiguous()
    assert max(M, J, size_m, H, D, P) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    PARTS_J = 8
    wq_jhd = wq.unflatten(1, (H, D))
    wk_jhd = wk.unflatten(1, (H, D))
    wv_jhd = wv.unflatten(1, (H, D))
    keys_hpd = keys.narrow(1, 0, P)
    values_hpd = values.narrow(1, 0, P)
    t0_parts = torch.empty((PARTS_J, H, D, M), dtype=torch.float32, device=x.device)
    t1_parts = torch.empty((M, PARTS_J), dtype=torch.float32, device=x.device)
    t3_parts = torch.empty((PARTS_J, H, D, M), dtype=torch.float32, device=x.device)
    t4_parts = torch.empty((PARTS_J, H, D, size_m), dtype=torch.float32, device=x.device)
    t5_parts = torch.empty((PARTS_J, size_m), dtype=torch.float32, device=x.device)
    out = torch.empty((M, D * H), dtype=torch.float16, device=x.device)
    out_mhd = out.unflatten(1, (H, D))
    keys_hid = keys.narrow(1, P, M)
    values_hid = values.narrow(1, P, M)
    blocks = triton.cdiv(M, 16) * triton.cdiv(D, 64)
    assert blocks < 2**31, "more blocks than a grid has"
    assert H <= 65535, "more blocks than axis z of a grid has"
    wrap(kernel0)[(blocks, PARTS_J, H)](
        wv_jhd,
        x,
        t0_parts,
        M,
        J,
        D,
        *wv_jhd.stride(),
        *x.stride(),
        *t0_parts.stride(),
        BLOCK_I=16,
        PARTS_J=PARTS_J,
        BLOCK_J=128,
        BLOCK_D=64,
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel1)[(M, PARTS_J)](
        x, t1_parts, J, *x.stride(), *t1_parts.stride(), PARTS_J=PARTS_J, BLOCK_J=128, num_warps=4, num_stages=3
    )
    blocks = H * triton.cdiv(D, 64)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel2)[(blocks, PARTS_J)](
        wk_jhd,
        x,
        wq_jhd,
        x,
        t3_parts,
        t4_parts,
        M,
        J,
        size_m,
        D,
        *wk_jhd.stride(),
        *x.stride(),
        *wq_jhd.stride(),
        *x.stride(),
        *t3_parts.stride(),
        *t4_parts.stride(),
        BLOCK_I=max(triton.next_power_of_2(M), 16),
        PARTS_J=PARTS_J,
        BLOCK_J=64,
        BLOCK_M=max(triton.next_power_of_2(size_m), 16),
        BLOCK_D=64,
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel3)[(size_m, PARTS_J)](
        x, t5_parts, J, *x.stride(), *t5_parts.stride(), PARTS_J=PARTS_J, BLOCK_J=128, num_warps=4, num_stages=3
    )
    wrap(kernel4)[(H,)](
        t4_parts,
        t5_parts,
        keys_hpd,
        values_hpd,
        t0_parts,
        t1_parts,
        t3_parts,
        keys_hid,
        out_mhd,
        values_hid,
        M,
        size_m,
        D,
        P,
        *t4_parts.stride(),
        *t5_parts.stride(),
        *keys_hpd.stride(),
        *values_hpd.stride(),
        *t0_parts.stride(),
        *t1_parts.stride(),
        *t3_parts.stride(),
        *keys_hid.stride(),
        *out_mhd.stride(),
        *values_hid.stride(),
        1 / J,
        BLOCK_I=max(triton.next_power_of_2(M), 16),
        PARTS_J=PARTS_J,
        BLOCK_J=triton.next_power_of_2(PARTS_J),
        BLOCK_M=max(triton.next_power_of_2(size_m), 16),
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        BLOCK_P=128,
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """pre_norm as torch.ops.<namespace>.pre_norm, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::pre_norm", mutates_args=("keys", "values"))
    def operator(
        x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        return pre_norm(x, wq, wk, wv, keys, values, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, wq, wk, wv, keys, values):
        M = x.shape[0]
        H = keys.shape[0]
        D = keys.shape[2]
        return torch.empty((M, D * H), dtype=torch.float16, device=x.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "pre_norm"))
    def _(x, wq, wk, wv, keys, values, **_):
        M = x[0]
        J = x[1]
        size_m = x[0]
        H = keys[0]
        D = keys[2]
        P = keys[1] - M
        return (
            2 * M * J * H * D
            + 2 * M * J * H * D
            + 2 * J * size_m * H * D
            + 2 * size_m * H * D * P
            + 2 * size_m * H * D * P
            + 2 * M * size_m * H * D
            + 2 * M * size_m * H * D
        )

    return operator


def out_reference(keys_hpd, values_hpd, wk_jhd, wq_jhd, wv_jhd, x):
    """out[m, h, d] = (sum(p, values_hpd[h, p, d] * exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d]) /
    sqrt(sum(j, x[m, j] ** 2) / (D * H)))) + sum(i, sum(j, wv_jhd[j, h, d] * x[i, j]) * exp(sum(d, sum(j, wk_jhd[j, h,
    d] * x[i, j]) * sum(j, wq_jhd[j, h, d] * x[m, j])) / (sqrt(sum(j, x[i, j] ** 2) / (D * H)) * sqrt(sum(j, x[m, j] **
    2) / (D * H)))) / sqrt(sum(j, x[i, j] ** 2) / (D * H)))) / (sum(p, exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) *
    keys_hpd[h, p, d]) / sqrt(sum(j, x[m, j] ** 2) / (D * H)))) + sum(i, exp(sum(d, sum(j, wk_jhd[j, h, d] * x[i, j]) *
    sum(j, wq_jhd[j, h, d] * x[m, j])) / (sqrt(sum(j, x[i, j] ** 2) / (D * H)) * sqrt(sum(j, x[m, j] ** 2) / (D *
    H))))))"""
    D = keys_hpd.shape[2]
    H = keys_hpd.shape[0]
    t0 = torch.einsum("mj,jhd->mhd", x, wq_jhd)
    t1 = torch.sqrt((x**2).sum(1) / (D * H))
    t2 = torch.exp(torch.einsum("hpd,mhd->mhp", keys_hpd, t0) / t1[:, None, None])
    t3 = torch.sqrt((x**2).sum(1) / (D * H))
    t4 = torch.exp(
        torch.einsum("ihd,mhd->mih", torch.einsum("ij,jhd->ihd", x, wk_jhd), t0) / (t3[:, None] * t1[:, None, None])
    )
    return (
        torch.einsum("hpd,mhp->mhd", values_hpd, t2)
        + torch.einsum("ihd,i,mih->mhd", torch.einsum("ij,jhd->ihd", x, wv_jhd), 1 / t3, t4)
    ) / (t2.sum(2) + t4.sum(1))[:, :, None]


def keys_0_reference(wk_jhd, x):
    """keys_0[h, i, d] = sum(j, wk_jhd[j, h, d] * x[i, j]) / sqrt(sum(j, x[i, j] ** 2) / (D * H))"""
    D = wk_jhd.shape[2]
    H = wk_jhd.shape[1]
    t0 = x.T
    return torch.einsum("ji,jhd->hid", t0, wk_jhd) / torch.sqrt((t0**2).sum(0) / (D * H))[:, None]


def values_0_reference(wv_jhd, x):
    """values_0[h, i, d] = sum(j, wv_jhd[j, h, d] * x[i, j]) / sqrt(sum(j, x[i, j] ** 2) / (D * H))"""
    D = wv_jhd.shape[2]
    H = wv_jhd.shape[1]
    t0 = x.T
    return torch.einsum("ji,jhd->hid", t0, wv_jhd) / torch.sqrt((t0**2).sum(0) / (D * H))[:, None]


if case is not None:

    @case(
        x="f16[M,D*H] strided",
        wq="f16[D*H,D*H] strided",
        wk="f16[D*H,D*H] strided",
        wv="f16[D*H,D*H] strided",
        keys="f16[H,M+P,D]",
        values="f16[H,M+P,D]",
    )
    def pre_norm_case(x, wq, wk, wv, keys, values):
        return pre_norm(x, wq, wk, wv, keys, values)

    @pre_norm_case.reference
    def _(x, wq, wk, wv, keys, values):
        M = x.shape[0]
        H = keys.shape[0]
        D = keys.shape[2]
        P = keys.shape[1] - M
        wq_jhd = wq.unflatten(1, (H, D))
        wk_jhd = wk.unflatten(1, (H, D))
        wv_jhd = wv.unflatten(1, (H, D))
        keys_hpd = keys.narrow(1, 0, P)
        values_hpd = values.narrow(1, 0, P)
        out = out_reference(keys_hpd, values_hpd, wk_jhd, wq_jhd, wv_jhd, x)
        keys_0 = keys_0_reference(wk_jhd, x)
        values_0 = values_0_reference(wv_jhd, x)
        out = out.reshape((M, D * H))
        keys.narrow(1, P, M).copy_(keys_0)
        values.narrow(1, P, M).copy_(values_0)
        return out

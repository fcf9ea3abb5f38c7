# Written by trilift optimize corpus/trinity/vanilla.py::vanilla --at M=16,H=32,D=128,P=1008 --seed 0 -o vanilla.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-22
# PROVED against its reference below, PROVED against the function of the case
# 4 kernels, 40.45 us in the model at these sizes, roofline 27.37 us
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
    keys_0_ptr,
    t0_ptr,
    values_0_ptr,
    keys_0_copy_ptr,
    values_0_copy_ptr,
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
    stride_keys_0_h,
    stride_keys_0_i,
    stride_keys_0_d,
    stride_t0_m,
    stride_t0_h,
    stride_t0_d,
    stride_values_0_h,
    stride_values_0_i,
    stride_values_0_d,
    stride_keys_0_copy_h,
    stride_keys_0_copy_i,
    stride_keys_0_copy_d,
    stride_values_0_copy_h,
    stride_values_0_copy_d,
    stride_values_0_copy_i,
    BLOCK_M: tl.constexpr,
    BLOCK_J: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    h = (block // blocks_d).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    i = tl.arange(0, BLOCK_I)
    v3 = tl.zeros((BLOCK_I, BLOCK_D), tl.float32)
    v6 = tl.zeros((BLOCK_I, BLOCK_D), tl.float32)
    v10 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start_j in range(0, J, BLOCK_J):
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
        keys_0_ptr + h * stride_keys_0_h + i[:, None].to(tl.int64) * stride_keys_0_i + d[None, :] * stride_keys_0_d,
        v6.to(tl.float16),
        mask=(i[:, None] < size_i) & (d[None, :] < D),
    )
    tl.store(
        t0_ptr + h * stride_t0_h + m[:, None].to(tl.int64) * stride_t0_m + d[None, :] * stride_t0_d,
        v10,
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        values_0_ptr
        + h * stride_values_0_h
        + i[:, None].to(tl.int64) * stride_values_0_i
        + d[None, :] * stride_values_0_d,
        v3.to(tl.float16),
        mask=(i[:, None] < size_i) & (d[None, :] < D),
    )
    tl.store(
        keys_0_copy_ptr
        + h * stride_keys_0_copy_h
        + i[:, None].to(tl.int64) * stride_keys_0_copy_i
        + d[None, :] * stride_keys_0_copy_d,
        v6,
        mask=(i[:, None] < size_i) & (d[None, :] < D),
    )
    tl.store(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + i[:, None].to(tl.int64) * stride_values_0_copy_i
        + d[None, :] * stride_values_0_copy_d,
        v3,
        mask=(i[:, None] < size_i) & (d[None, :] < D),
    )


@triton.jit
def kernel1(
    keys_0_copy_ptr,
    t0_ptr,
    t2_ptr,
    t3_ptr,
    top_ptr,
    M,
    H,
    D,
    size_i,
    stride_keys_0_copy_h,
    stride_keys_0_copy_i,
    stride_keys_0_copy_d,
    stride_t0_m,
    stride_t0_h,
    stride_t0_d,
    stride_t2_m,
    stride_t2_h,
    stride_t2_i,
    stride_t3_h,
    stride_t3_m,
    stride_top_h,
    stride_top_m,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    block = tl.program_id(0)
    h = (block % H).to(tl.int64)
    m = (block // H).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    i = tl.arange(0, BLOCK_I)
    keys_0_copy_tile = tl.load(
        keys_0_copy_ptr
        + h * stride_keys_0_copy_h
        + d[:, None].to(tl.int64) * stride_keys_0_copy_d
        + i[None, :].to(tl.int64) * stride_keys_0_copy_i,
        mask=(d[:, None] < D) & (i[None, :] < size_i),
        other=0.0,
    )
    t0_tile = tl.load(
        t0_ptr + h * stride_t0_h + m[:, None] * stride_t0_m + d[None, :].to(tl.int64) * stride_t0_d,
        mask=(m[:, None] < M) & (d[None, :] < D),
        other=0.0,
    )
    v2 = tl.dot(t0_tile, keys_0_copy_tile, input_precision="ieee")
    v2_in = tl.where(i[None, :] < size_i, v2, -float("inf"))
    highest = tl.max(v2_in, axis=1)
    v2_less = v2_in - highest[:, None]
    v3 = tl.exp(v2_less)
    v4 = tl.sum(v3, axis=1)
    tl.store(
        t2_ptr + h * stride_t2_h + m[:, None] * stride_t2_m + i[None, :].to(tl.int64) * stride_t2_i,
        v3,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
    )
    tl.store(t3_ptr + h * stride_t3_h + m * stride_t3_m, v4, mask=m < M)
    tl.store(top_ptr + h * stride_top_h + m * stride_top_m, highest, mask=m < M)


@triton.jit
def kernel2(
    t0_ptr,
    keys_ptr,
    values_ptr,
    t6_parts_ptr,
    t9_parts_ptr,
    top0_ptr,
    M,
    H,
    D,
    P,
    stride_t0_m,
    stride_t0_h,
    stride_t0_d,
    stride_keys_h,
    stride_keys_p,
    stride_keys_d,
    stride_values_h,
    stride_values_p,
    stride_values_d,
    stride_t6_parts_h,
    stride_t6_parts_p,
    stride_t6_parts_m,
    stride_t9_parts_h,
    stride_t9_parts_d,
    stride_t9_parts_p,
    stride_t9_parts_m,
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
    v5 = tl.zeros((BLOCK_M,), tl.float32)
    v8 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    t0_tile = tl.load(
        t0_ptr + h * stride_t0_h + m[:, None] * stride_t0_m + d[None, :].to(tl.int64) * stride_t0_d,
        mask=(m[:, None] < M) & (d[None, :] < D),
        other=0.0,
    )
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
        v2 = tl.dot(t0_tile, keys_tile.to(tl.float32), input_precision="tf32x3")
        v2_in = tl.where(p[None, :] < P, v2, -float("inf"))
        highest = tl.max(v2_in, axis=1)
        m_top_new = tl.maximum(m_top, highest)
        shift = tl.where(m_top_new == -float("inf"), 0.0, m_top_new)
        shrink = tl.exp(m_top - shift)
        m_top = m_top_new
        v2_less = v2_in - shift[:, None]
        v3 = tl.exp(v2_less)
        v4 = tl.sum(v3, axis=1)
        v5 *= shrink
        v5 += v4
        v8 = tl.dot(v3.to(tl.float16), tl.trans(values_tile), v8 * shrink[:, None])
    tl.store(t6_parts_ptr + h * stride_t6_parts_h + part_p * stride_t6_parts_p + m * stride_t6_parts_m, v5, mask=m < M)
    tl.store(
        t9_parts_ptr
        + h * stride_t9_parts_h
        + part_p * stride_t9_parts_p
        + m[:, None] * stride_t9_parts_m
        + d[None, :].to(tl.int64) * stride_t9_parts_d,
        v8,
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(top0_ptr + h * stride_top0_h + part_p * stride_top0_p + m * stride_top0_m, m_top, mask=m < M)


@triton.jit
def kernel3(
    t6_parts_ptr,
    top0_ptr,
    t9_parts_ptr,
    t3_ptr,
    top_ptr,
    values_0_copy_ptr,
    t2_ptr,
    out_ptr,
    M,
    D,
    size_i,
    stride_t6_parts_h,
    stride_t6_parts_p,
    stride_t6_parts_m,
    stride_top0_h,
    stride_top0_p,
    stride_top0_m,
    stride_t9_parts_h,
    stride_t9_parts_d,
    stride_t9_parts_p,
    stride_t9_parts_m,
    stride_t3_h,
    stride_t3_m,
    stride_top_h,
    stride_top_m,
    stride_values_0_copy_h,
    stride_values_0_copy_d,
    stride_values_0_copy_i,
    stride_t2_m,
    stride_t2_h,
    stride_t2_i,
    stride_out_m,
    stride_out_h,
    stride_out_d,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_I: tl.constexpr,
    PARTS_P: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    m = (block // blocks_d).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    h = tl.program_id(2).to(tl.int64)
    i = tl.arange(0, BLOCK_I)
    p = tl.arange(0, BLOCK_P)
    t6_parts_tile = tl.load(
        t6_parts_ptr
        + h * stride_t6_parts_h
        + m[:, None] * stride_t6_parts_m
        + p[None, :].to(tl.int64) * stride_t6_parts_p,
        mask=(m[:, None] < M) & (p[None, :] < PARTS_P),
        other=0.0,
    )
    top0 = tl.load(
        top0_ptr + h * stride_top0_h + m[:, None] * stride_top0_m + p[None, :].to(tl.int64) * stride_top0_p,
        mask=(m[:, None] < M) & (p[None, :] < PARTS_P),
        other=0.0,
    )
    t9_parts_tile = tl.load(
        t9_parts_ptr
        + h * stride_t9_parts_h
        + m[:, None, None] * stride_t9_parts_m
        + d[None, :, None] * stride_t9_parts_d
        + p[None, None, :].to(tl.int64) * stride_t9_parts_p,
        mask=(m[:, None, None] < M) & (d[None, :, None] < D) & (p[None, None, :] < PARTS_P),
        other=0.0,
    )
    t3_tile = tl.load(t3_ptr + h * stride_t3_h + m * stride_t3_m, mask=m < M, other=0.0)
    top = tl.load(top_ptr + h * stride_top_h + m * stride_top_m, mask=m < M, other=0.0)
    values_0_copy_tile = tl.load(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + i[:, None].to(tl.int64) * stride_values_0_copy_i
        + d[None, :] * stride_values_0_copy_d,
        mask=(i[:, None] < size_i) & (d[None, :] < D),
        other=0.0,
    )
    t2_tile = tl.load(
        t2_ptr + h * stride_t2_h + m[:, None] * stride_t2_m + i[None, :].to(tl.int64) * stride_t2_i,
        mask=(m[:, None] < M) & (i[None, :] < size_i),
        other=0.0,
    )
    top0_in = tl.where(p[None, :] < PARTS_P, top0, -float("inf"))
    highest = tl.max(top0_in, axis=1)
    top0_less = top0_in - highest[:, None]
    weight = tl.exp(top0_less)
    t6_parts_tile_weighed = t6_parts_tile * weight
    v1 = tl.sum(t6_parts_tile_weighed, axis=1)
    t9_parts_tile_weighed = t9_parts_tile * weight[:, None, :]
    v3 = tl.sum(t9_parts_tile_weighed, axis=2)
    m_joined = tl.maximum(top, highest)
    top_less = top - m_joined
    weight0 = tl.exp(top_less)
    highest_less = highest - m_joined
    weight1 = tl.exp(highest_less)
    t3_tile_weighed = t3_tile * weight0
    v1_weighed = v1 * weight1
    v5 = t3_tile_weighed + v1_weighed
    t2_tile_weighed = t2_tile * weight0[:, None]
    v8 = t2_tile_weighed / v5[:, None]
    v3_weighed = v3 * weight1[:, None]
    v10 = v3_weighed / v5[:, None]
    v11 = v10
    v8_in = tl.where(i[None, :] < size_i, v8, 0.0)
    v11 = tl.dot(v8_in, values_0_copy_tile, v11, input_precision="ieee")
    tl.store(
        out_ptr + h * stride_out_h + m[:, None] * stride_out_m + d[None, :] * stride_out_d,
        v11.to(tl.float16),
        mask=(m[:, None] < M) & (d[None, :] < D),
    )


def vanilla(x, wq, wk, wv, keys, values, wrap=lambda kernel: kernel):
    """out[m, d + D * h], keys[h, P + i, d], values[h, P + i, d] of x[m, j], wq[j, d + D * h], x[i, j], wk[j, d + D * h], wv[j, d + D * h], values[h, p, d], keys[h, p, d]."""
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
    PARTS_P = 4
    wq_jhd = wq.unflatten(1, (H, D))
    wk_jhd = wk.unflatten(1, (H, D))
    wv_jhd = wv.unflatten(1, (H, D))
    values_hpd = values.narrow(1, 0, P)
    keys_hpd = keys.narrow(1, 0, P)
    t0 = torch.empty((M, H, D), dtype=torch.float32, device=x.device)
    keys_0_copy = torch.empty((H, size_i, D), dtype=torch.float32, device=x.device)
    values_0_copy = torch.empty((H, D, size_i), dtype=torch.float32, device=x.device)
    t2 = torch.empty((M, H, size_i), dtype=torch.float32, device=x.device)
    t3 = torch.empty((H, M), dtype=torch.float32, device=x.device)
    t6_parts = torch.empty((H, PARTS_P, M), dtype=torch.float32, device=x.device)
    t9_parts = torch.empty((H, D, PARTS_P, M), dtype=torch.float32, device=x.device)
    out = torch.empty((M, D * H), dtype=torch.float16, device=x.device)
    top = torch.empty((H, M), dtype=torch.float32, device=x.device)
    top0 = torch.empty((H, PARTS_P, M), dtype=torch.float32, device=x.device)
    out_mhd = out.unflatten(1, (H, D))
    keys_hid = keys.narrow(1, P, M)
    values_hid = values.narrow(1, P, M)
    blocks = H * triton.cdiv(D, 32)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel0)[(blocks,)](
        wv_jhd,
        x,
        wk_jhd,
        wq_jhd,
        x,
        keys_hid,
        t0,
        values_hid,
        keys_0_copy,
        values_0_copy,
        M,
        J,
        D,
        size_i,
        *wv_jhd.stride(),
        *x.stride(),
        *wk_jhd.stride(),
        *wq_jhd.stride(),
        *x.stride(),
        *keys_hid.stride(),
        *t0.stride(),
        *values_hid.stride(),
        *keys_0_copy.stride(),
        *values_0_copy.stride(),
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        BLOCK_J=256,
        BLOCK_D=32,
        BLOCK_I=max(triton.next_power_of_2(size_i), 16),
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(M, 16) * H
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel1)[(blocks,)](
        keys_0_copy,
        t0,
        t2,
        t3,
        top,
        M,
        H,
        D,
        size_i,
        *keys_0_copy.stride(),
        *t0.stride(),
        *t2.stride(),
        *t3.stride(),
        *top.stride(),
        BLOCK_M=16,
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        BLOCK_I=max(triton.next_power_of_2(size_i), 16),
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(M, 16) * H
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel2)[(blocks, PARTS_P)](
        t0,
        keys_hpd,
        values_hpd,
        t6_parts,
        t9_parts,
        top0,
        M,
        H,
        D,
        P,
        *t0.stride(),
        *keys_hpd.stride(),
        *values_hpd.stride(),
        *t6_parts.stride(),
        *t9_parts.stride(),
        *top0.stride(),
        BLOCK_M=16,
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        PARTS_P=PARTS_P,
        BLOCK_P=128,
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(M, 16) * triton.cdiv(D, 32)
    assert blocks < 2**31, "more blocks than a grid has"
    assert H <= 65535, "more blocks than axis z of a grid has"
    wrap(kernel3)[(blocks, 1, H)](
        t6_parts,
        top0,
        t9_parts,
        t3,
        top,
        values_0_copy,
        t2,
        out_mhd,
        M,
        D,
        size_i,
        *t6_parts.stride(),
        *top0.stride(),
        *t9_parts.stride(),
        *t3.stride(),
        *top.stride(),
        *values_0_copy.stride(),
        *t2.stride(),
        *out_mhd.stride(),
        BLOCK_M=16,
        BLOCK_D=32,
        BLOCK_I=max(triton.next_power_of_2(size_i), 16),
        PARTS_P=PARTS_P,
        BLOCK_P=triton.next_power_of_2(PARTS_P),
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """vanilla as torch.ops.<namespace>.vanilla, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::vanilla", mutates_args=("keys", "values"))
    def operator(
        x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        return vanilla(x, wq, wk, wv, keys, values, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, wq, wk, wv, keys, values):
        M = x.shape[0]
        H = values.shape[0]
        D = values.shape[2]
        return torch.empty((M, D * H), dtype=torch.float16, device=x.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "vanilla"))
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
            + 2 * M * H * D * size_i
            + 2 * M * H * D * P
            + 2 * M * H * D * P
            + 2 * M * H * D * size_i
        )

    return operator


def out_reference(keys_hpd, values_hpd, wk_jhd, wq_jhd, wv_jhd, x):
    """out[m, h, d] = (sum(p, values_hpd[h, p, d] * exp(sum(d, sum(j, wq_jhd[j, h, d] * x[m, j]) * keys_hpd[h, p, d])))
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
    def vanilla_case(x, wq, wk, wv, keys, values):
        return vanilla(x, wq, wk, wv, keys, values)

    @vanilla_case.reference
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
        out = out_reference(keys_hpd, values_hpd, wk_jhd, wq_jhd, wv_jhd, x)
        keys_0 = keys_0_reference(wk_jhd, x)
        values_0 = values_0_reference(wv_jhd, x)
        out = out.reshape((M, D * H))
        keys.narrow(1, P, M).copy_(keys_0)
        values.narrow(1, P, M).copy_(values_0)
        return out

# Written by trilift optimize corpus/trinity/pre_norm.py::pre_norm --at M=16,H=32,D=128,P=1008 --seed 0 -o pre_norm.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-22
# PROVED against its reference below, PROVED against the function of the case
# 4 kernels, 40.72 us in the model at these sizes, roofline 27.37 us
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
    wk_ptr,
    wq_ptr,
    x_1_ptr,
    keys_0_ptr,
    t6_ptr,
    values_0_ptr,
    keys_0_copy_ptr,
    values_0_copy_ptr,
    M,
    J,
    size_m,
    D,
    stride_wv_j,
    stride_wv_h,
    stride_wv_d,
    stride_x_i,
    stride_x_j,
    stride_wk_j,
    stride_wk_h,
    stride_wk_d,
    stride_wq_j,
    stride_wq_h,
    stride_wq_d,
    stride_x_1_m,
    stride_x_1_j,
    stride_keys_0_h,
    stride_keys_0_i,
    stride_keys_0_d,
    stride_t6_m,
    stride_t6_h,
    stride_t6_d,
    stride_values_0_h,
    stride_values_0_i,
    stride_values_0_d,
    stride_keys_0_copy_h,
    stride_keys_0_copy_i,
    stride_keys_0_copy_d,
    stride_values_0_copy_h,
    stride_values_0_copy_d,
    stride_values_0_copy_i,
    factor,
    BLOCK_I: tl.constexpr,
    BLOCK_J: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    h = (block // blocks_d).to(tl.int64)
    i = tl.arange(0, BLOCK_I)
    m = tl.arange(0, BLOCK_M)
    v3 = tl.zeros((BLOCK_I, BLOCK_D), tl.float32)
    v9 = tl.zeros((BLOCK_I, BLOCK_D), tl.float32)
    v13 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    v6 = tl.zeros((BLOCK_I,), tl.float32)
    v16 = tl.zeros((BLOCK_M,), tl.float32)
    for start_j in range(0, J, BLOCK_J):
        j = start_j + tl.arange(0, BLOCK_J)
        wv_tile = tl.load(
            wv_ptr + h * stride_wv_h + j[:, None].to(tl.int64) * stride_wv_j + d[None, :] * stride_wv_d,
            mask=(j[:, None] < J) & (d[None, :] < D),
            other=0.0,
        )
        x_tile = tl.load(
            x_ptr + i[:, None].to(tl.int64) * stride_x_i + j[None, :].to(tl.int64) * stride_x_j,
            mask=(i[:, None] < M) & (j[None, :] < J),
            other=0.0,
        )
        x_tile_f32 = x_tile.to(tl.float32)
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
        x_1_tile = tl.load(
            x_1_ptr + m[:, None].to(tl.int64) * stride_x_1_m + j[None, :].to(tl.int64) * stride_x_1_j,
            mask=(m[:, None] < size_m) & (j[None, :] < J),
            other=0.0,
        )
        x_1_tile_f32 = x_1_tile.to(tl.float32)
        v3 = tl.dot(x_tile, wv_tile, v3)
        v4 = x_tile_f32 * x_tile_f32
        v5 = tl.sum(v4, axis=1)
        v9 = tl.dot(x_tile, wk_tile, v9)
        v13 = tl.dot(x_1_tile, wq_tile, v13)
        v14 = x_1_tile_f32 * x_1_tile_f32
        v15 = tl.sum(v14, axis=1)
        v6 += v5
        v16 += v15
    v17 = v6 * factor
    v18 = tl.sqrt(v17)
    v19 = v3 / v18[:, None]
    v20 = v9 / v18[:, None]
    v21 = v16 * factor
    v22 = tl.sqrt(v21)
    v23 = v13 / v22[:, None]
    tl.store(
        keys_0_ptr + h * stride_keys_0_h + i[:, None].to(tl.int64) * stride_keys_0_i + d[None, :] * stride_keys_0_d,
        v20.to(tl.float16),
        mask=(i[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        t6_ptr + h * stride_t6_h + m[:, None].to(tl.int64) * stride_t6_m + d[None, :] * stride_t6_d,
        v23,
        mask=(m[:, None] < size_m) & (d[None, :] < D),
    )
    tl.store(
        values_0_ptr
        + h * stride_values_0_h
        + i[:, None].to(tl.int64) * stride_values_0_i
        + d[None, :] * stride_values_0_d,
        v19.to(tl.float16),
        mask=(i[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        keys_0_copy_ptr
        + h * stride_keys_0_copy_h
        + i[:, None].to(tl.int64) * stride_keys_0_copy_i
        + d[None, :] * stride_keys_0_copy_d,
        v20,
        mask=(i[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + i[:, None].to(tl.int64) * stride_values_0_copy_i
        + d[None, :] * stride_values_0_copy_d,
        v19,
        mask=(i[:, None] < M) & (d[None, :] < D),
    )


@triton.jit
def kernel1(
    t6_ptr,
    keys_0_copy_ptr,
    values_0_copy_ptr,
    t13_ptr,
    t9_ptr,
    top_ptr,
    M,
    size_m,
    H,
    D,
    stride_t6_m,
    stride_t6_h,
    stride_t6_d,
    stride_keys_0_copy_h,
    stride_keys_0_copy_i,
    stride_keys_0_copy_d,
    stride_values_0_copy_h,
    stride_values_0_copy_d,
    stride_values_0_copy_i,
    stride_t13_h,
    stride_t13_m,
    stride_t9_m,
    stride_t9_h,
    stride_t9_d,
    stride_top_h,
    stride_top_m,
    BLOCK_I: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    block = tl.program_id(0)
    h = (block % H).to(tl.int64)
    m = (block // H).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    i = tl.arange(0, BLOCK_I)
    d = tl.arange(0, BLOCK_D)
    t6_tile = tl.load(
        t6_ptr + h * stride_t6_h + m[:, None] * stride_t6_m + d[None, :].to(tl.int64) * stride_t6_d,
        mask=(m[:, None] < size_m) & (d[None, :] < D),
        other=0.0,
    )
    keys_0_copy_tile = tl.load(
        keys_0_copy_ptr
        + h * stride_keys_0_copy_h
        + i[:, None].to(tl.int64) * stride_keys_0_copy_i
        + d[None, :].to(tl.int64) * stride_keys_0_copy_d,
        mask=(i[:, None] < M) & (d[None, :] < D),
        other=0.0,
    )
    values_0_copy_tile = tl.load(
        values_0_copy_ptr
        + h * stride_values_0_copy_h
        + i[:, None].to(tl.int64) * stride_values_0_copy_i
        + d[None, :].to(tl.int64) * stride_values_0_copy_d,
        mask=(i[:, None] < M) & (d[None, :] < D),
        other=0.0,
    )
    v2 = tl.dot(t6_tile, tl.trans(keys_0_copy_tile), input_precision="ieee")
    v2_in = tl.where(i[None, :] < M, v2, -float("inf"))
    highest = tl.max(v2_in, axis=1)
    v2_less = v2_in - highest[:, None]
    v3 = tl.exp(v2_less)
    v6 = tl.sum(v3, axis=1)
    v5 = tl.dot(v3, values_0_copy_tile, input_precision="ieee")
    tl.store(t13_ptr + h * stride_t13_h + m * stride_t13_m, v6, mask=m < size_m)
    tl.store(
        t9_ptr + h * stride_t9_h + m[:, None] * stride_t9_m + d[None, :].to(tl.int64) * stride_t9_d,
        v5,
        mask=(m[:, None] < size_m) & (d[None, :] < D),
    )
    tl.store(top_ptr + h * stride_top_h + m * stride_top_m, highest, mask=m < size_m)


@triton.jit
def kernel2(
    t6_ptr,
    keys_ptr,
    values_ptr,
    t12_parts_ptr,
    t14_parts_ptr,
    top0_ptr,
    size_m,
    H,
    D,
    P,
    stride_t6_m,
    stride_t6_h,
    stride_t6_d,
    stride_keys_h,
    stride_keys_p,
    stride_keys_d,
    stride_values_h,
    stride_values_p,
    stride_values_d,
    stride_t12_parts_m,
    stride_t12_parts_h,
    stride_t12_parts_p,
    stride_t12_parts_d,
    stride_t14_parts_h,
    stride_t14_parts_p,
    stride_t14_parts_m,
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
    v6 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    v8 = tl.zeros((BLOCK_M,), tl.float32)
    t6_tile = tl.load(
        t6_ptr + h * stride_t6_h + m[:, None] * stride_t6_m + d[None, :].to(tl.int64) * stride_t6_d,
        mask=(m[:, None] < size_m) & (d[None, :] < D),
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
        v2 = tl.dot(t6_tile, keys_tile.to(tl.float32), input_precision="tf32x3")
        v2_in = tl.where(p[None, :] < P, v2, -float("inf"))
        highest = tl.max(v2_in, axis=1)
        m_top_new = tl.maximum(m_top, highest)
        shift = tl.where(m_top_new == -float("inf"), 0.0, m_top_new)
        shrink = tl.exp(m_top - shift)
        m_top = m_top_new
        v2_less = v2_in - shift[:, None]
        v3 = tl.exp(v2_less)
        v7 = tl.sum(v3, axis=1)
        v6 = tl.dot(v3.to(tl.float16), tl.trans(values_tile), v6 * shrink[:, None])
        v8 *= shrink
        v8 += v7
    tl.store(
        t12_parts_ptr
        + h * stride_t12_parts_h
        + part_p * stride_t12_parts_p
        + m[:, None] * stride_t12_parts_m
        + d[None, :].to(tl.int64) * stride_t12_parts_d,
        v6,
        mask=(m[:, None] < size_m) & (d[None, :] < D),
    )
    tl.store(
        t14_parts_ptr + h * stride_t14_parts_h + part_p * stride_t14_parts_p + m * stride_t14_parts_m,
        v8,
        mask=m < size_m,
    )
    tl.store(top0_ptr + h * stride_top0_h + part_p * stride_top0_p + m * stride_top0_m, m_top, mask=m < size_m)


@triton.jit
def kernel3(
    t12_parts_ptr,
    top0_ptr,
    t14_parts_ptr,
    t9_ptr,
    top_ptr,
    t13_ptr,
    out_ptr,
    H,
    D,
    stride_t12_parts_m,
    stride_t12_parts_h,
    stride_t12_parts_p,
    stride_t12_parts_d,
    stride_top0_h,
    stride_top0_p,
    stride_top0_m,
    stride_t14_parts_h,
    stride_t14_parts_p,
    stride_t14_parts_m,
    stride_t9_m,
    stride_t9_h,
    stride_t9_d,
    stride_top_h,
    stride_top_m,
    stride_t13_h,
    stride_t13_m,
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
    t12_parts_tile = tl.load(
        t12_parts_ptr
        + m * stride_t12_parts_m
        + h * stride_t12_parts_h
        + d[:, None] * stride_t12_parts_d
        + p[None, :].to(tl.int64) * stride_t12_parts_p,
        mask=(d[:, None] < D) & (p[None, :] < PARTS_P),
        other=0.0,
    )
    top0 = tl.load(
        top0_ptr + h * stride_top0_h + m * stride_top0_m + p.to(tl.int64) * stride_top0_p, mask=p < PARTS_P, other=0.0
    )
    t14_parts_tile = tl.load(
        t14_parts_ptr + h * stride_t14_parts_h + m * stride_t14_parts_m + p.to(tl.int64) * stride_t14_parts_p,
        mask=p < PARTS_P,
        other=0.0,
    )
    t9_tile = tl.load(t9_ptr + m * stride_t9_m + h * stride_t9_h + d * stride_t9_d, mask=d < D, other=0.0)
    top = tl.load(top_ptr + h * stride_top_h + m * stride_top_m)
    t13_tile = tl.load(t13_ptr + h * stride_t13_h + m * stride_t13_m)
    top0_in = tl.where(p < PARTS_P, top0, -float("inf"))
    highest = tl.max(top0_in, axis=0)
    top0_less = top0_in - highest
    weight = tl.exp(top0_less)
    t12_parts_tile_weighed = t12_parts_tile * weight[None, :]
    v1 = tl.sum(t12_parts_tile_weighed, axis=1)
    t14_parts_tile_weighed = t14_parts_tile * weight
    v3 = tl.sum(t14_parts_tile_weighed, axis=0)
    m_joined = tl.maximum(top, highest)
    top_less = top - m_joined
    weight0 = tl.exp(top_less)
    highest_less = highest - m_joined
    weight1 = tl.exp(highest_less)
    t13_tile_weighed = t13_tile * weight0
    v3_weighed = v3 * weight1
    v7 = t13_tile_weighed + v3_weighed
    t9_tile_weighed = t9_tile * weight0
    v1_weighed = v1 * weight1
    v5 = t9_tile_weighed + v1_weighed
    v8 = v5 / v7
    tl.store(out_ptr + m * stride_out_m + h * stride_out_h + d * stride_out_d, v8.to(tl.float16), mask=d < D)


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
    PARTS_P = 4
    wq_jhd = wq.unflatten(1, (H, D))
    wk_jhd = wk.unflatten(1, (H, D))
    wv_jhd = wv.unflatten(1, (H, D))
    keys_hpd = keys.narrow(1, 0, P)
    values_hpd = values.narrow(1, 0, P)
    t6 = torch.empty((size_m, H, D), dtype=torch.float32, device=x.device)
    keys_0_copy = torch.empty((H, M, D), dtype=torch.float32, device=x.device)
    values_0_copy = torch.empty((H, D, M), dtype=torch.float32, device=x.device)
    t13 = torch.empty((H, size_m), dtype=torch.float32, device=x.device)
    t9 = torch.empty((size_m, H, D), dtype=torch.float32, device=x.device)
    t12_parts = torch.empty((size_m, H, PARTS_P, D), dtype=torch.float32, device=x.device)
    t14_parts = torch.empty((H, PARTS_P, size_m), dtype=torch.float32, device=x.device)
    out = torch.empty((M, D * H), dtype=torch.float16, device=x.device)
    top = torch.empty((H, size_m), dtype=torch.float32, device=x.device)
    top0 = torch.empty((H, PARTS_P, size_m), dtype=torch.float32, device=x.device)
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
        t6,
        values_hid,
        keys_0_copy,
        values_0_copy,
        M,
        J,
        size_m,
        D,
        *wv_jhd.stride(),
        *x.stride(),
        *wk_jhd.stride(),
        *wq_jhd.stride(),
        *x.stride(),
        *keys_hid.stride(),
        *t6.stride(),
        *values_hid.stride(),
        *keys_0_copy.stride(),
        *values_0_copy.stride(),
        1 / J,
        BLOCK_I=max(triton.next_power_of_2(M), 16),
        BLOCK_J=256,
        BLOCK_M=max(triton.next_power_of_2(size_m), 16),
        BLOCK_D=32,
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(size_m, 16) * H
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel1)[(blocks,)](
        t6,
        keys_0_copy,
        values_0_copy,
        t13,
        t9,
        top,
        M,
        size_m,
        H,
        D,
        *t6.stride(),
        *keys_0_copy.stride(),
        *values_0_copy.stride(),
        *t13.stride(),
        *t9.stride(),
        *top.stride(),
        BLOCK_I=max(triton.next_power_of_2(M), 16),
        BLOCK_M=16,
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(size_m, 16) * H
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel2)[(blocks, PARTS_P)](
        t6,
        keys_hpd,
        values_hpd,
        t12_parts,
        t14_parts,
        top0,
        size_m,
        H,
        D,
        P,
        *t6.stride(),
        *keys_hpd.stride(),
        *values_hpd.stride(),
        *t12_parts.stride(),
        *t14_parts.stride(),
        *top0.stride(),
        BLOCK_M=16,
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        PARTS_P=PARTS_P,
        BLOCK_P=128,
        num_warps=4,
        num_stages=3,
    )
    blocks = size_m * H * triton.cdiv(D, 128)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel3)[(blocks,)](
        t12_parts,
        top0,
        t14_parts,
        t9,
        top,
        t13,
        out_mhd,
        H,
        D,
        *t12_parts.stride(),
        *top0.stride(),
        *t14_parts.stride(),
        *t9.stride(),
        *top.stride(),
        *t13.stride(),
        *out_mhd.stride(),
        BLOCK_D=128,
        PARTS_P=PARTS_P,
        BLOCK_P=triton.next_power_of_2(PARTS_P),
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
            + 2 * M * size_m * H * D
            + 2 * M * size_m * H * D
            + 2 * size_m * H * D * P
            + 2 * size_m * H * D * P
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

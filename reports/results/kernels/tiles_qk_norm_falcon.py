# Written by trilift optimize corpus/trinity/qk_norm.py::qk_norm --at M=16,H=71,D=64,P=1008 --seed 0 -o qk_norm.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-22
# PROVED against its reference below, PROVED against the function of the case
# 2 kernels, 43.40 us in the model at these sizes, roofline 33.21 us
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
    t0_parts_ptr,
    t2_parts_ptr,
    values_0_parts_ptr,
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
    stride_t0_parts_i,
    stride_t0_parts_h,
    stride_t0_parts_j,
    stride_t0_parts_d,
    stride_t2_parts_m,
    stride_t2_parts_i,
    stride_t2_parts_h,
    stride_t2_parts_d,
    stride_values_0_parts_i,
    stride_values_0_parts_h,
    stride_values_0_parts_j,
    stride_values_0_parts_d,
    BLOCK_M: tl.constexpr,
    PARTS_I: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_J: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_d = tl.cdiv(D, BLOCK_D)
    d = (block % blocks_d).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    h = (block // blocks_d).to(tl.int64)
    part_i = tl.program_id(1).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    j = tl.arange(0, BLOCK_J)
    v3 = tl.zeros((BLOCK_J, BLOCK_D), tl.float32)
    v6 = tl.zeros((BLOCK_J, BLOCK_D), tl.float32)
    v10 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    share_i = tl.cdiv(tl.cdiv(I, PARTS_I), BLOCK_I) * BLOCK_I
    for start_i in range(part_i * share_i, part_i * share_i + share_i, BLOCK_I):
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
        t0_parts_ptr
        + part_i * stride_t0_parts_i
        + h * stride_t0_parts_h
        + j[:, None].to(tl.int64) * stride_t0_parts_j
        + d[None, :] * stride_t0_parts_d,
        v6,
        mask=(j[:, None] < size_j) & (d[None, :] < D),
    )
    tl.store(
        t2_parts_ptr
        + part_i * stride_t2_parts_i
        + h * stride_t2_parts_h
        + m[:, None].to(tl.int64) * stride_t2_parts_m
        + d[None, :] * stride_t2_parts_d,
        v10,
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        values_0_parts_ptr
        + part_i * stride_values_0_parts_i
        + h * stride_values_0_parts_h
        + j[:, None].to(tl.int64) * stride_values_0_parts_j
        + d[None, :] * stride_values_0_parts_d,
        v3,
        mask=(j[:, None] < size_j) & (d[None, :] < D),
    )


@triton.jit
def kernel1(
    t2_parts_ptr,
    keys_ptr,
    values_ptr,
    values_0_parts_ptr,
    t0_parts_ptr,
    keys_0_ptr,
    out_ptr,
    values_0_ptr,
    M,
    D,
    P,
    size_j,
    stride_t2_parts_m,
    stride_t2_parts_i,
    stride_t2_parts_h,
    stride_t2_parts_d,
    stride_keys_h,
    stride_keys_p,
    stride_keys_d,
    stride_values_h,
    stride_values_p,
    stride_values_d,
    stride_values_0_parts_i,
    stride_values_0_parts_h,
    stride_values_0_parts_j,
    stride_values_0_parts_d,
    stride_t0_parts_i,
    stride_t0_parts_h,
    stride_t0_parts_j,
    stride_t0_parts_d,
    stride_keys_0_h,
    stride_keys_0_j,
    stride_keys_0_d,
    stride_out_m,
    stride_out_h,
    stride_out_d,
    stride_values_0_h,
    stride_values_0_j,
    stride_values_0_d,
    factor,
    BLOCK_M: tl.constexpr,
    PARTS_I: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_J: tl.constexpr,
):
    h = tl.program_id(0).to(tl.int64)
    m = tl.arange(0, BLOCK_M)
    i = tl.arange(0, BLOCK_I)
    d = tl.arange(0, BLOCK_D)
    j = tl.arange(0, BLOCK_J)
    m_top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    v25 = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    v27 = tl.zeros((BLOCK_M,), tl.float32)
    t2_parts_tile = tl.load(
        t2_parts_ptr
        + h * stride_t2_parts_h
        + m[:, None, None].to(tl.int64) * stride_t2_parts_m
        + i[None, :, None].to(tl.int64) * stride_t2_parts_i
        + d[None, None, :].to(tl.int64) * stride_t2_parts_d,
        mask=(m[:, None, None] < M) & (i[None, :, None] < PARTS_I) & (d[None, None, :] < D),
        other=0.0,
    )
    v5 = tl.sum(t2_parts_tile, axis=1)
    v11 = v5 * v5
    v12 = tl.sum(v11, axis=1)
    v13 = v12 * factor
    v14 = tl.sqrt(v13)
    v14_or_1 = tl.where(m < M, v14, 1.0)
    v15 = v5 / v14_or_1[:, None]
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
        v15_in = tl.where(d[None, :] < D, v15, 0.0)
        v21 = tl.dot(v15_in, keys_tile.to(tl.float32), input_precision="tf32x3")
        v21_in = tl.where(p[None, :] < P, v21, -float("inf"))
        highest = tl.max(v21_in, axis=1)
        m_top_new = tl.maximum(m_top, highest)
        shrink = tl.exp(m_top - m_top_new)
        m_top = m_top_new
        v21_less = v21_in - m_top_new[:, None]
        v22 = tl.exp(v21_less)
        v26 = tl.sum(v22, axis=1)
        v25 = tl.dot(v22.to(tl.float16), tl.trans(values_tile), v25 * shrink[:, None])
        v27 *= shrink
        v27 += v26
    values_0_parts_tile = tl.load(
        values_0_parts_ptr
        + h * stride_values_0_parts_h
        + i[:, None, None].to(tl.int64) * stride_values_0_parts_i
        + d[None, :, None].to(tl.int64) * stride_values_0_parts_d
        + j[None, None, :].to(tl.int64) * stride_values_0_parts_j,
        mask=(i[:, None, None] < PARTS_I) & (d[None, :, None] < D) & (j[None, None, :] < size_j),
        other=0.0,
    )
    t0_parts_tile = tl.load(
        t0_parts_ptr
        + h * stride_t0_parts_h
        + i[:, None, None].to(tl.int64) * stride_t0_parts_i
        + d[None, :, None].to(tl.int64) * stride_t0_parts_d
        + j[None, None, :].to(tl.int64) * stride_t0_parts_j,
        mask=(i[:, None, None] < PARTS_I) & (d[None, :, None] < D) & (j[None, None, :] < size_j),
        other=0.0,
    )
    v1 = tl.sum(values_0_parts_tile, axis=0)
    v3 = tl.sum(t0_parts_tile, axis=0)
    v6 = v3 * v3
    v7 = tl.sum(v6, axis=0)
    v8 = v7 * factor
    v9 = tl.sqrt(v8)
    v9_or_1 = tl.where(j < size_j, v9, 1.0)
    v10 = v3 / v9_or_1[None, :]
    v15_in_1 = tl.where(d[None, :] < D, v15, 0.0)
    v10_in = tl.where(d[:, None] < D, v10, 0.0)
    v16 = tl.dot(v15_in_1, v10_in, input_precision="ieee")
    v16_in = tl.where(j[None, :] < size_j, v16, -float("inf"))
    highest0 = tl.max(v16_in, axis=1)
    v16_less = v16_in - highest0[:, None]
    v17 = tl.exp(v16_less)
    v19 = tl.sum(v17, axis=1)
    m_joined = tl.maximum(m_top, highest0)
    highest0_less = highest0 - m_joined
    weight = tl.exp(highest0_less)
    m_top_less = m_top - m_joined
    weight0 = tl.exp(m_top_less)
    v18 = tl.dot(v17, tl.trans(v1), input_precision="ieee")
    v19_weighed = v19 * weight
    v27_weighed = v27 * weight0
    v29 = v19_weighed + v27_weighed
    v18_weighed = v18 * weight[:, None]
    v25_weighed = v25 * weight0[:, None]
    v28 = v18_weighed + v25_weighed
    v30 = v28 / v29[:, None]
    tl.store(
        keys_0_ptr
        + h * stride_keys_0_h
        + d[:, None].to(tl.int64) * stride_keys_0_d
        + j[None, :].to(tl.int64) * stride_keys_0_j,
        v10.to(tl.float16),
        mask=(d[:, None] < D) & (j[None, :] < size_j),
    )
    tl.store(
        out_ptr + h * stride_out_h + m[:, None].to(tl.int64) * stride_out_m + d[None, :].to(tl.int64) * stride_out_d,
        v30.to(tl.float16),
        mask=(m[:, None] < M) & (d[None, :] < D),
    )
    tl.store(
        values_0_ptr
        + h * stride_values_0_h
        + d[:, None].to(tl.int64) * stride_values_0_d
        + j[None, :].to(tl.int64) * stride_values_0_j,
        v1.to(tl.float16),
        mask=(d[:, None] < D) & (j[None, :] < size_j),
    )


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
    PARTS_I = 4
    wq_ihd = wq.unflatten(1, (H, D))
    keys_hpd = keys.narrow(1, 0, P)
    values_hpd = values.narrow(1, 0, P)
    wv_ihd = wv.unflatten(1, (H, D))
    wk_ihd = wk.unflatten(1, (H, D))
    t0_parts = torch.empty((PARTS_I, H, size_j, D), dtype=torch.float32, device=x.device)
    t2_parts = torch.empty((M, PARTS_I, H, D), dtype=torch.float32, device=x.device)
    values_0_parts = torch.empty((PARTS_I, H, size_j, D), dtype=torch.float32, device=x.device)
    out = torch.empty((M, D * H), dtype=torch.float16, device=x.device)
    out_mhd = out.unflatten(1, (H, D))
    keys_hjd = keys.narrow(1, P, M)
    values_hjd = values.narrow(1, P, M)
    blocks = H * triton.cdiv(D, 32)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel0)[(blocks, PARTS_I)](
        wv_ihd,
        x,
        wk_ihd,
        wq_ihd,
        x,
        t0_parts,
        t2_parts,
        values_0_parts,
        M,
        I,
        D,
        size_j,
        *wv_ihd.stride(),
        *x.stride(),
        *wk_ihd.stride(),
        *wq_ihd.stride(),
        *x.stride(),
        *t0_parts.stride(),
        *t2_parts.stride(),
        *values_0_parts.stride(),
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        PARTS_I=PARTS_I,
        BLOCK_I=128,
        BLOCK_D=32,
        BLOCK_J=max(triton.next_power_of_2(size_j), 16),
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel1)[(H,)](
        t2_parts,
        keys_hpd,
        values_hpd,
        values_0_parts,
        t0_parts,
        keys_hjd,
        out_mhd,
        values_hjd,
        M,
        D,
        P,
        size_j,
        *t2_parts.stride(),
        *keys_hpd.stride(),
        *values_hpd.stride(),
        *values_0_parts.stride(),
        *t0_parts.stride(),
        *keys_hjd.stride(),
        *out_mhd.stride(),
        *values_hjd.stride(),
        1 / D,
        BLOCK_M=max(triton.next_power_of_2(M), 16),
        PARTS_I=PARTS_I,
        BLOCK_I=triton.next_power_of_2(PARTS_I),
        BLOCK_D=max(triton.next_power_of_2(D), 16),
        BLOCK_P=128,
        BLOCK_J=max(triton.next_power_of_2(size_j), 16),
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
            + 2 * M * H * D * P
            + 2 * M * H * D * P
            + 2 * M * H * D * size_j
            + 2 * M * H * D * size_j
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

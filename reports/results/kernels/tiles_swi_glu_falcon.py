# Written by trilift optimize corpus/trinity/swi_glu.py::swi_glu --at M=16,N=4544,F=18176 --seed 0 -o swi_glu.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-22
# PROVED against its reference below, PROVED against the function of the case
# 5 kernels, 224.18 us in the model at these sizes, roofline 124.95 us
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
    o_ptr,
    wo_ptr,
    t0_parts_ptr,
    N,
    size_n_,
    M,
    stride_o_m,
    stride_o_n_,
    stride_wo_n_,
    stride_wo_n,
    stride_t0_parts_n,
    stride_t0_parts_n_,
    stride_t0_parts_m,
    BLOCK_N: tl.constexpr,
    PARTS_N_: tl.constexpr,
    BLOCK_N_: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    m = (block % blocks_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (block // blocks_m).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    part_n_ = tl.program_id(1).to(tl.int64)
    v3 = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    share_n_ = tl.cdiv(tl.cdiv(size_n_, PARTS_N_), BLOCK_N_) * BLOCK_N_
    for start_n_ in range(part_n_ * share_n_, part_n_ * share_n_ + share_n_, BLOCK_N_):
        n_ = start_n_ + tl.arange(0, BLOCK_N_)
        o_tile = tl.load(
            o_ptr + n_[:, None].to(tl.int64) * stride_o_n_ + m[None, :] * stride_o_m,
            mask=(n_[:, None] < size_n_) & (m[None, :] < M),
            other=0.0,
        )
        wo_tile = tl.load(
            wo_ptr + n[:, None] * stride_wo_n + n_[None, :].to(tl.int64) * stride_wo_n_,
            mask=(n[:, None] < N) & (n_[None, :] < size_n_),
            other=0.0,
        )
        v3 = tl.dot(wo_tile, o_tile, v3)
    tl.store(
        t0_parts_ptr + part_n_ * stride_t0_parts_n_ + n[:, None] * stride_t0_parts_n + m[None, :] * stride_t0_parts_m,
        v3,
        mask=(n[:, None] < N) & (m[None, :] < M),
    )


@triton.jit
def kernel1(
    t0_parts_ptr,
    x_ptr,
    t1_ptr,
    N,
    M,
    stride_t0_parts_n,
    stride_t0_parts_n_,
    stride_t0_parts_m,
    stride_x_m,
    stride_x_n,
    stride_t1_m,
    stride_t1_n,
    BLOCK_N: tl.constexpr,
    PARTS_N_: tl.constexpr,
    BLOCK_N_: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    m = (block % blocks_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (block // blocks_m).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    n_ = tl.arange(0, BLOCK_N_)
    t0_parts_tile = tl.load(
        t0_parts_ptr
        + n[:, None, None] * stride_t0_parts_n
        + n_[None, :, None].to(tl.int64) * stride_t0_parts_n_
        + m[None, None, :] * stride_t0_parts_m,
        mask=(n[:, None, None] < N) & (n_[None, :, None] < PARTS_N_) & (m[None, None, :] < M),
        other=0.0,
    )
    x_tile = tl.load(
        x_ptr + n[:, None] * stride_x_n + m[None, :] * stride_x_m, mask=(n[:, None] < N) & (m[None, :] < M), other=0.0
    )
    x_tile_f32 = x_tile.to(tl.float32)
    v1 = tl.sum(t0_parts_tile, axis=1)
    v3 = v1 + x_tile_f32
    tl.store(t1_ptr + n[:, None] * stride_t1_n + m[None, :] * stride_t1_m, v3, mask=(n[:, None] < N) & (m[None, :] < M))


@triton.jit
def kernel2(t1_ptr, t4_ptr, N, stride_t1_m, stride_t1_n, stride_t4_m, BLOCK_N: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    v3 = 0.0
    for start_n in range(0, N, BLOCK_N):
        n = start_n + tl.arange(0, BLOCK_N)
        t1_tile = tl.load(t1_ptr + m * stride_t1_m + n.to(tl.int64) * stride_t1_n, mask=n < N, other=0.0)
        v1 = t1_tile * t1_tile
        v2 = tl.sum(v1, axis=0)
        v3 += v2
    v4 = tl.sqrt(v3)
    tl.store(t4_ptr + m * stride_t4_m, v4)


@triton.jit
def kernel3(
    gate_ptr,
    t1_ptr,
    up_ptr,
    t2_ptr,
    t5_ptr,
    F,
    N,
    M,
    stride_gate_n,
    stride_gate_f,
    stride_t1_m,
    stride_t1_n,
    stride_up_n,
    stride_up_f,
    stride_t2_m,
    stride_t2_f,
    stride_t5_m,
    stride_t5_f,
    BLOCK_F: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    m = (block % blocks_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    f = (block // blocks_m).to(tl.int64) * BLOCK_F + tl.arange(0, BLOCK_F)
    v3 = tl.zeros((BLOCK_F, BLOCK_M), tl.float32)
    v6 = tl.zeros((BLOCK_F, BLOCK_M), tl.float32)
    for start_n in range(0, N, BLOCK_N):
        n = start_n + tl.arange(0, BLOCK_N)
        gate_tile = tl.load(
            gate_ptr + f[:, None] * stride_gate_f + n[None, :].to(tl.int64) * stride_gate_n,
            mask=(f[:, None] < F) & (n[None, :] < N),
            other=0.0,
        )
        t1_tile = tl.load(
            t1_ptr + n[:, None].to(tl.int64) * stride_t1_n + m[None, :] * stride_t1_m,
            mask=(n[:, None] < N) & (m[None, :] < M),
            other=0.0,
        )
        up_tile = tl.load(
            up_ptr + f[:, None] * stride_up_f + n[None, :].to(tl.int64) * stride_up_n,
            mask=(f[:, None] < F) & (n[None, :] < N),
            other=0.0,
        )
        v3 = tl.dot(gate_tile.to(tl.float32), t1_tile, v3, input_precision="tf32")
        v6 = tl.dot(up_tile.to(tl.float32), t1_tile, v6, input_precision="tf32")
    tl.store(t2_ptr + f[:, None] * stride_t2_f + m[None, :] * stride_t2_m, v3, mask=(f[:, None] < F) & (m[None, :] < M))
    tl.store(t5_ptr + f[:, None] * stride_t5_f + m[None, :] * stride_t5_m, v6, mask=(f[:, None] < F) & (m[None, :] < M))


@triton.jit
def kernel4(
    t4_ptr,
    down_ptr,
    t2_ptr,
    t5_ptr,
    out_ptr,
    F,
    N,
    M,
    stride_t4_m,
    stride_down_f,
    stride_down_n,
    stride_t2_m,
    stride_t2_f,
    stride_t5_m,
    stride_t5_f,
    stride_out_m,
    stride_out_n,
    factor,
    BLOCK_F: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    block = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    m = (block % blocks_m).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (block // blocks_m).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    v9 = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    t4_tile = tl.load(t4_ptr + m * stride_t4_m, mask=m < M, other=0.0)
    for start_f in range(0, F, BLOCK_F):
        f = start_f + tl.arange(0, BLOCK_F)
        down_tile = tl.load(
            down_ptr + f[:, None].to(tl.int64) * stride_down_f + n[None, :] * stride_down_n,
            mask=(f[:, None] < F) & (n[None, :] < N),
            other=0.0,
        )
        t2_tile = tl.load(
            t2_ptr + m[:, None] * stride_t2_m + f[None, :].to(tl.int64) * stride_t2_f,
            mask=(m[:, None] < M) & (f[None, :] < F),
            other=0.0,
        )
        t5_tile = tl.load(
            t5_ptr + m[:, None] * stride_t5_m + f[None, :].to(tl.int64) * stride_t5_f,
            mask=(m[:, None] < M) & (f[None, :] < F),
            other=0.0,
        )
        t4_tile_or_1 = tl.where(m < M, t4_tile, 1.0)
        v3 = t2_tile / t4_tile_or_1[:, None]
        v4 = v3 * factor
        v5 = v4 * tl.sigmoid(v4)
        v7 = v5 * t5_tile
        v7_in = tl.where(f[None, :] < F, v7, 0.0)
        v9 = tl.dot(v7_in, down_tile.to(tl.float32), v9, input_precision="tf32")
    t4_tile_or_1_1 = tl.where(m < M, t4_tile, 1.0)
    v10 = v9 / t4_tile_or_1_1[:, None]
    v11 = v10 * factor
    tl.store(
        out_ptr + m[:, None] * stride_out_m + n[None, :] * stride_out_n,
        v11.to(tl.float16),
        mask=(m[:, None] < M) & (n[None, :] < N),
    )


def swi_glu(o, wo, x, up, gate, down, wrap=lambda kernel: kernel):
    """out[m, n] of down[f, n], gate[n, f], o[m, n'], wo[n', n], x[m, n], up[n, f]."""
    assert down.dtype == torch.float16 and down.dim() == 2
    F, N = down.shape
    assert gate.dtype == torch.float16 and gate.dim() == 2
    assert gate.shape[0] == N
    assert gate.shape[1] == F
    assert o.dtype == torch.float16 and o.dim() == 2
    M, size_n_ = o.shape
    assert wo.dtype == torch.float16 and wo.dim() == 2
    assert wo.shape[0] == size_n_
    assert wo.shape[1] == N
    assert x.dtype == torch.float16 and x.dim() == 2
    assert x.shape[0] == M
    assert x.shape[1] == N
    assert up.dtype == torch.float16 and up.dim() == 2
    assert up.shape[0] == N
    assert up.shape[1] == F
    assert size_n_ == N
    assert max(F, N, size_n_, M) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    PARTS_N_ = 8
    t0_parts = torch.empty((N, PARTS_N_, M), dtype=torch.float32, device=o.device)
    t1 = torch.empty((M, N), dtype=torch.float32, device=o.device)
    t4 = torch.empty((M,), dtype=torch.float32, device=o.device)
    t2 = torch.empty((M, F), dtype=torch.float32, device=o.device)
    t5 = torch.empty((M, F), dtype=torch.float32, device=o.device)
    out = torch.empty((M, N), dtype=torch.float16, device=o.device)
    blocks = triton.cdiv(N, 64) * triton.cdiv(M, 16)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel0)[(blocks, PARTS_N_)](
        o,
        wo,
        t0_parts,
        N,
        size_n_,
        M,
        *o.stride(),
        *wo.stride(),
        *t0_parts.stride(),
        BLOCK_N=64,
        PARTS_N_=PARTS_N_,
        BLOCK_N_=128,
        BLOCK_M=16,
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(N, 16) * triton.cdiv(M, 16)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel1)[(blocks,)](
        t0_parts,
        x,
        t1,
        N,
        M,
        *t0_parts.stride(),
        *x.stride(),
        *t1.stride(),
        BLOCK_N=16,
        PARTS_N_=PARTS_N_,
        BLOCK_N_=triton.next_power_of_2(PARTS_N_),
        BLOCK_M=16,
        num_warps=4,
        num_stages=3,
    )
    wrap(kernel2)[(M,)](t1, t4, N, *t1.stride(), *t4.stride(), BLOCK_N=256, num_warps=4, num_stages=3)
    blocks = triton.cdiv(F, 32) * triton.cdiv(M, 16)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel3)[(blocks,)](
        gate,
        t1,
        up,
        t2,
        t5,
        F,
        N,
        M,
        *gate.stride(),
        *t1.stride(),
        *up.stride(),
        *t2.stride(),
        *t5.stride(),
        BLOCK_F=32,
        BLOCK_N=256,
        BLOCK_M=16,
        num_warps=4,
        num_stages=3,
    )
    blocks = triton.cdiv(N, 64) * triton.cdiv(M, 16)
    assert blocks < 2**31, "more blocks than a grid has"
    wrap(kernel4)[(blocks,)](
        t4,
        down,
        t2,
        t5,
        out,
        F,
        N,
        M,
        *t4.stride(),
        *down.stride(),
        *t2.stride(),
        *t5.stride(),
        *out.stride(),
        (N) ** 0.5,
        BLOCK_F=256,
        BLOCK_N=64,
        BLOCK_M=16,
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """swi_glu as torch.ops.<namespace>.swi_glu, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::swi_glu", mutates_args=())
    def operator(
        o: torch.Tensor, wo: torch.Tensor, x: torch.Tensor, up: torch.Tensor, gate: torch.Tensor, down: torch.Tensor
    ) -> torch.Tensor:
        return swi_glu(o, wo, x, up, gate, down, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(o, wo, x, up, gate, down):
        N = down.shape[1]
        M = o.shape[0]
        return torch.empty((M, N), dtype=torch.float16, device=o.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "swi_glu"))
    def _(o, wo, x, up, gate, down, **_):
        F = down[0]
        N = down[1]
        M = o[0]
        size_n_ = o[1]
        return 2 * N * size_n_ * M + 2 * F * N * M + 2 * F * N * M + 2 * F * N * M

    return operator


def out_reference(down, gate, o, up, wo, x):
    """out[m, n] = sum(f, silu(sum(n, gate[n, f] * (sum(n_, o[m, n_] * wo[n_, n]) + x[m, n]) / sqrt(sum(n, (sum(n_, o[m,
    n_] * wo[n_, n]) + x[m, n]) ** 2))) * N ** 0.5) * sum(n, up[n, f] * (sum(n_, o[m, n_] * wo[n_, n]) + x[m, n]) /
    sqrt(sum(n, (sum(n_, o[m, n_] * wo[n_, n]) + x[m, n]) ** 2))) * down[f, n]) * N ** 0.5"""
    N = down.shape[1]
    t0 = o @ wo + x
    t1 = torch.sqrt((t0**2).sum(1))
    t2 = 1 / t1
    t3 = N**0.5
    return (
        torch.einsum(
            "fn,mf,mf->mn",
            down,
            torch.einsum("mn,fn,m->mf", t0, up.T, t2),
            torch.nn.functional.silu(torch.einsum("mn,fn,m->mf", t0, gate.T, t2) * t3),
        )
        * t3
    )


if case is not None:

    @case(
        down="f16[F,N] strided",
        gate="f16[N,F] strided",
        o="f16[M,N] strided",
        wo="f16[N,N] strided",
        x="f16[M,N] strided",
        up="f16[N,F] strided",
    )
    def swi_glu_case(o, wo, x, up, gate, down):
        return swi_glu(o, wo, x, up, gate, down)

    @swi_glu_case.reference
    def _(o, wo, x, up, gate, down):
        return out_reference(down, gate, o, up, wo, x)

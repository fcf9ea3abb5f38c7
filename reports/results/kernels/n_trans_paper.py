# Written by trilift optimize corpus/mirage/n_trans.py::n_trans_paper --at M=8,K=4096 --seed 0 -o n_trans_paper.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the function of the case
# 1 kernel, 3.01 us in the model at these sizes, roofline 0.06 us
import torch
import triton
import triton.language as tl

try:
    from trilift import case
except ImportError:  # the kernels run without trilift
    case = None


@triton.jit
def kernel(
    x_ptr,
    h_ptr,
    a_ptr,
    out_ptr,
    K,
    stride_x_m,
    stride_x_k,
    stride_h_m,
    stride_h_k,
    stride_a_m,
    stride_a_k,
    stride_out_m,
    stride_out_k,
    BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, BLOCK_K)
    x_tile = tl.load(x_ptr + m * stride_x_m + k.to(tl.int64) * stride_x_k, mask=k < K, other=0.0)
    x_tile_f32 = x_tile.to(tl.float32)
    h_tile = tl.load(h_ptr + m * stride_h_m + k.to(tl.int64) * stride_h_k, mask=k < K, other=0.0)
    h_tile_f32 = h_tile.to(tl.float32)
    a_tile = tl.load(a_ptr + m * stride_a_m + k.to(tl.int64) * stride_a_k, mask=k < K, other=0.0)
    a_tile_f32 = a_tile.to(tl.float32)
    v0 = x_tile_f32 * -1.0
    v1 = h_tile_f32 + v0
    v3 = v1 * v1
    v4 = tl.sum(v3, axis=0)
    v5 = tl.sqrt(v4)
    v2 = a_tile_f32 * v1
    v6 = v2 / v5
    v7 = x_tile_f32 + v6
    v8 = v7 * v7
    v8_in = tl.where(k < K, v8, 0.0)
    v9 = tl.sum(v8_in, axis=0)
    v10 = tl.sqrt(v9)
    v11 = v7 / v10
    tl.store(out_ptr + m * stride_out_m + k.to(tl.int64) * stride_out_k, v11.to(tl.float16), mask=k < K)


def n_trans_paper(h, x, a, wrap=lambda kernel: kernel):
    """out[m, k] of x[m, k], a[m, k], h[m, k]."""
    assert x.dtype == torch.float16 and x.dim() == 2
    M, K = x.shape
    assert a.dtype == torch.float16 and a.dim() == 2
    assert a.shape[0] == M
    assert a.shape[1] == K
    assert h.dtype == torch.float16 and h.dim() == 2
    assert h.shape[0] == M
    assert h.shape[1] == K
    assert max(M, K) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    out = torch.empty((M, K), dtype=torch.float16, device=h.device)
    wrap(kernel)[(M,)](
        x,
        h,
        a,
        out,
        K,
        *x.stride(),
        *h.stride(),
        *a.stride(),
        *out.stride(),
        BLOCK_K=triton.next_power_of_2(K),
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """n_trans_paper as torch.ops.<namespace>.n_trans_paper, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::n_trans_paper", mutates_args=())
    def operator(h: torch.Tensor, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return n_trans_paper(h, x, a, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(h, x, a):
        M = x.shape[0]
        K = x.shape[1]
        return torch.empty((M, K), dtype=torch.float16, device=h.device)

    return operator


def out_reference(a, h, x):
    """out[m, k] = (a[m, k] * (h[m, k] - x[m, k]) / sqrt(sum(k, (h[m, k] - x[m, k]) ** 2)) + x[m, k]) / sqrt(sum(k,
    (a[m, k] * (h[m, k] - x[m, k]) / sqrt(sum(k, (h[m, k] - x[m, k]) ** 2)) + x[m, k]) ** 2))"""
    t0 = h - x
    t1 = a * t0 / torch.sqrt((t0**2).sum(1))[:, None] + x
    return t1 / torch.sqrt((t1**2).sum(1))[:, None]


if case is not None:

    @case(x="f16[M,K] strided", a="f16[M,K] strided", h="f16[M,K] strided")
    def n_trans_paper_case(h, x, a):
        return n_trans_paper(h, x, a)

    @n_trans_paper_case.reference
    def _(h, x, a):
        return out_reference(a, h, x)

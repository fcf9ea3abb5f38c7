# Written by trilift optimize corpus/legacy/packaged_gate.py::packaged_gate --at M=1024,N=1024 --seed 0 -o packaged_gate.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the reference of the case
# 1 kernel, 5.28 us in the model at these sizes, roofline 2.93 us
import torch
import triton
import triton.language as tl
from torch.utils.flop_counter import register_flop_formula

try:
    from trilift import case
except ImportError:  # the kernels run without trilift
    case = None


@triton.jit
def kernel(
    a_ptr,
    g_ptr,
    b_ptr,
    out_ptr,
    N,
    stride_a_m,
    stride_a_n,
    stride_g_n,
    stride_b_m,
    stride_b_n,
    stride_out_m,
    stride_out_n,
    factor,
    BLOCK_N: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK_N)
    a_tile = tl.load(a_ptr + m * stride_a_m + n.to(tl.int64) * stride_a_n, mask=n < N, other=0.0)
    g_tile = tl.load(g_ptr + n.to(tl.int64) * stride_g_n, mask=n < N, other=0.0)
    b_tile = tl.load(b_ptr + m * stride_b_m + n.to(tl.int64) * stride_b_n, mask=n < N, other=0.0)
    v0 = a_tile * tl.sigmoid(a_tile)
    v3 = v0 * v0
    v4 = b_tile * b_tile
    v5 = tl.sum(v3 * v4, axis=0)
    v6 = v5 * factor
    v7 = v6 + 1e-06
    v8 = tl.sqrt(v7)
    v1 = g_tile * b_tile
    v2 = v0 * v1
    v9 = v2 / v8
    tl.store(out_ptr + m * stride_out_m + n.to(tl.int64) * stride_out_n, v9, mask=n < N)


def packaged_gate(a, b, g, wrap=lambda kernel: kernel):
    """out[m, n] of g[n], b[m, n], a[m, n]."""
    assert g.dtype == torch.float32 and g.dim() == 1
    (N,) = g.shape
    assert b.dtype == torch.float32 and b.dim() == 2
    M = b.shape[0]
    assert b.shape[1] == N
    assert a.dtype == torch.float32 and a.dim() == 2
    assert a.shape[0] == M
    assert a.shape[1] == N
    assert max(N, M) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    out = torch.empty((M, N), dtype=torch.float32, device=a.device)
    wrap(kernel)[(M,)](
        a,
        g,
        b,
        out,
        N,
        *a.stride(),
        *g.stride(),
        *b.stride(),
        *out.stride(),
        1 / N,
        BLOCK_N=max(triton.next_power_of_2(N), 16),
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """packaged_gate as torch.ops.<namespace>.packaged_gate, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::packaged_gate", mutates_args=())
    def operator(a: torch.Tensor, b: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        return packaged_gate(a, b, g, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(a, b, g):
        N = g.shape[0]
        M = b.shape[0]
        return torch.empty((M, N), dtype=torch.float32, device=a.device)

    @register_flop_formula(getattr(getattr(torch.ops, namespace), "packaged_gate"))
    def _(a, b, g, **_):
        N = g[0]
        M = b[0]
        return 2 * N * M

    return operator


def out_reference(a, b, g):
    """out[m, n] = silu(a[m, n]) * b[m, n] * g[n] / sqrt(sum(n, silu(a[m, n]) ** 2 * b[m, n] ** 2) / N + 1e-06)"""
    N = a.shape[1]
    t0 = torch.nn.functional.silu(a)
    return t0 * b * g / torch.sqrt((t0**2 * b**2).sum(1) / N + 1e-06)[:, None]


if case is not None:

    @case(g="f32[N] strided", b="f32[M,N] strided", a="f32[M,N] strided")
    def packaged_gate_case(a, b, g):
        return packaged_gate(a, b, g)

    @packaged_gate_case.reference
    def _(a, b, g):
        return out_reference(a, b, g)

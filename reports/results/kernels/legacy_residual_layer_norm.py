# Written by trilift optimize corpus/legacy/residual_layer_norm.py::residual_layer_norm --at M=1024,N=1024 --seed 0 -o residual_layer_norm.py
# trilift 0.1.0, triton 3.9.0, torch 2.13.0+cpu, python 3.11.7, 2026-11-21
# PROVED against its reference below, PROVED against the reference of the case
# 1 kernel, 5.63 us in the model at these sizes, roofline 2.93 us
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
    r_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    N,
    stride_x_m,
    stride_x_n,
    stride_r_m,
    stride_r_n,
    stride_w_n,
    stride_b_n,
    stride_out_m,
    stride_out_n,
    factor,
    factor_1,
    BLOCK_N: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK_N)
    x_tile = tl.load(x_ptr + m * stride_x_m + n.to(tl.int64) * stride_x_n, mask=n < N, other=0.0)
    r_tile = tl.load(r_ptr + m * stride_r_m + n.to(tl.int64) * stride_r_n, mask=n < N, other=0.0)
    w_tile = tl.load(w_ptr + n.to(tl.int64) * stride_w_n, mask=n < N, other=0.0)
    b_tile = tl.load(b_ptr + n.to(tl.int64) * stride_b_n, mask=n < N, other=0.0)
    v0 = x_tile + r_tile
    v1 = tl.sum(v0, axis=0)
    v2 = v1 * factor
    v3 = v0 + v2
    v5 = v3 * v3
    v5_in = tl.where(n < N, v5, 0.0)
    v6 = tl.sum(v5_in, axis=0)
    v7 = v6 * factor_1
    v8 = v7 + 1e-05
    v9 = tl.sqrt(v8)
    v4 = w_tile * v3
    v10 = v4 / v9
    v11 = b_tile + v10
    tl.store(out_ptr + m * stride_out_m + n.to(tl.int64) * stride_out_n, v11, mask=n < N)


def residual_layer_norm(x, r, w, b, wrap=lambda kernel: kernel):
    """out[m, n] of b[n], w[n], x[m, n], r[m, n]."""
    assert b.dtype == torch.float32 and b.dim() == 1
    (N,) = b.shape
    assert w.dtype == torch.float32 and w.dim() == 1
    assert w.shape[0] == N
    assert x.dtype == torch.float32 and x.dim() == 2
    M = x.shape[0]
    assert x.shape[1] == N
    assert r.dtype == torch.float32 and r.dim() == 2
    assert r.shape[0] == M
    assert r.shape[1] == N
    assert max(N, M) <= 1073741824, "a size that has no 32 bits when it is rounded up"
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    wrap(kernel)[(M,)](
        x,
        r,
        w,
        b,
        out,
        N,
        *x.stride(),
        *r.stride(),
        *w.stride(),
        *b.stride(),
        *out.stride(),
        -1 / N,
        1 / N,
        BLOCK_N=triton.next_power_of_2(N),
        num_warps=4,
        num_stages=3,
    )
    return out


def register(namespace="emitted"):
    """residual_layer_norm as torch.ops.<namespace>.residual_layer_norm, with shapes for tracing and its flops."""

    @torch.library.triton_op(f"{namespace}::residual_layer_norm", mutates_args=())
    def operator(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return residual_layer_norm(x, r, w, b, wrap=torch.library.wrap_triton)

    @operator.register_fake
    def _(x, r, w, b):
        N = b.shape[0]
        M = x.shape[0]
        return torch.empty((M, N), dtype=torch.float32, device=x.device)

    return operator


def out_reference(b, r, w, x):
    """out[m, n] = (r[m, n] + x[m, n] - sum(n, r[m, n] + x[m, n]) / N) * w[n] / sqrt(sum(n, (r[m, n] + x[m, n] - sum(n,
    r[m, n] + x[m, n]) / N) ** 2) / N + 1e-05) + b[n]"""
    N = b.shape[0]
    t0 = r + x - ((r + x).sum(1) / N)[:, None]
    return t0 * w / torch.sqrt((t0**2).sum(1) / N + 1e-05)[:, None] + b


if case is not None:

    @case(b="f32[N] strided", w="f32[N] strided", x="f32[M,N] strided", r="f32[M,N] strided")
    def residual_layer_norm_case(x, r, w, b):
        return residual_layer_norm(x, r, w, b)

    @residual_layer_norm_case.reference
    def _(x, r, w, b):
        return out_reference(b, r, w, x)

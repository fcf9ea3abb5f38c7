"""rms_norm in two loops over the row, with a residual added in place, and backward (partial sums added by torch)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, N, eps, stride_xm, stride_xn: tl.int64, stride_ym, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + lane
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=0.0).to(tl.float32)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares) / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + lane
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + row * stride_ym + cols, (x * rstd).to(y_ptr.dtype.element_ty) * w, mask=cols < N)


@triton.jit
def add_rms_norm_kernel(x_ptr, residual_ptr, w_ptr, N, eps, BLOCK: tl.constexpr):
    """residual += x; x = rms_norm(residual) * w. The block holds the row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    residual = x + tl.load(residual_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(residual_ptr + row * N + cols, residual, mask=mask)
    variance = tl.sum(residual * residual, axis=0) / N
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(x_ptr + row * N + cols, residual * tl.rsqrt(variance + eps) * (1.0 + w), mask=mask)


@triton.jit
def rms_norm_backward_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, M, N, stride, rows_per_program, BLOCK: tl.constexpr
):
    program = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    first = program * rows_per_program
    last = min(first + rows_per_program, M)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(first, last):
        x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        m = dy * w
        dx = rstd * m - rstd * rstd * rstd * (tl.sum(m * x, axis=0) / N) * x
        dw += dy * (x * rstd)
        tl.store(dx_ptr + row * stride + cols, dx, mask=mask)
    tl.store(dw_ptr + program * N + cols, dw, mask=mask)


@case(x="f16[M,N] strided", w="f16[N]", eps=1e-6)
def rms_norm(x, w, eps, block=1024):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    rms_norm_kernel[(M,)](x, w, y, N, eps, *x.stride(), y.stride(0), BLOCK=block)
    return y


@rms_norm.reference
def _(x, w, eps):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * w


@case(x="f32[M,N]", residual="f32[M,N]", w="f32[N]", eps=1e-6)
def add_rms_norm(x, residual, w, eps):
    M, N = x.shape
    add_rms_norm_kernel[(M,)](x, residual, w, N, eps, BLOCK=triton.next_power_of_2(N))
    return x, residual


@add_rms_norm.reference
def _(x, residual, w, eps):
    h = residual.add_(x)
    return x.copy_(h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + eps) * (1 + w)), h


@case(dy="f32[M,N]", x="f32[M,N]", w="f32[N]", rstd="f32[M]")
def rms_norm_backward(dy, x, w, rstd, programs=2):
    M, N = x.shape
    dx = torch.empty_like(x)
    partial = torch.empty((programs, N), dtype=torch.float32, device=x.device)
    rms_norm_backward_kernel[(programs,)](
        dy, x, w, rstd, dx, partial, M, N, x.stride(0), triton.cdiv(M, programs), BLOCK=triton.next_power_of_2(N)
    )
    return dx, partial.sum(dim=0)


@rms_norm_backward.reference
def _(dy, x, w, rstd):
    r = rstd[:, None]
    m = dy * w
    dx = r * m - r**3 * (m * x).mean(dim=-1, keepdim=True) * x
    return dx, (dy * x * r).sum(dim=0)

"""layer_norm over rows of any length in three loops over blocks; its backward with partial sums in two kernels."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from trilift import case


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride_x, stride_y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_x
    y_ptr += row * stride_y
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(acc, axis=0) / N
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        centred = tl.where(cols < N, x - mean, 0.0)
        acc += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(acc, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < N)
        b = tl.load(b_ptr + cols, mask=cols < N)
        tl.store(y_ptr + cols, (x - mean) * rstd * w + b, mask=cols < N)


@triton.jit
def layer_norm_backward_kernel(
    dx_ptr,
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dw_partial_ptr,
    db_partial_ptr,
    M,
    N,
    stride,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Gradient of x for ROWS rows, and this program's share of the gradients of w and b as a row of partial sums."""
    program = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for row in range(program * ROWS, min(program * ROWS + ROWS, M)):
        x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(mask, (x - mean) * rstd, 0.0)
        wdy = w * dy
        c1 = tl.sum(normal * wdy, axis=0) / N
        c2 = tl.sum(wdy, axis=0) / N
        tl.store(dx_ptr + row * stride + cols, (wdy - (normal * c1 + c2)) * rstd, mask=mask)
        dw += dy * normal
        db += dy
    tl.store(dw_partial_ptr + program * N + cols, dw, mask=mask)
    tl.store(db_partial_ptr + program * N + cols, db, mask=mask)


@triton.jit
def add_partials_kernel(
    dw_partial_ptr, db_partial_ptr, dw_ptr, db_ptr, P, N, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr
):
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    db = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    for start in range(0, P, BLOCK_P):
        rows = start + tl.arange(0, BLOCK_P)
        mask = (rows[:, None] < P) & (cols[None, :] < N)
        offsets = rows[:, None] * N + cols[None, :]
        dw += tl.load(dw_partial_ptr + offsets, mask=mask, other=0.0)
        db += tl.load(db_partial_ptr + offsets, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_ptr + cols, tl.sum(db, axis=0), mask=cols < N)


@case(x="f32[M,N]", w="f32[N]", b="f32[N]", eps="f32 > 0")
def layer_norm(x, w, b, eps, block=1024):
    M, N = x.shape
    y = torch.empty_like(x)
    mean = torch.empty((M,), dtype=torch.float32, device=x.device)
    rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
    layer_norm_kernel[(M,)](x, y, w, b, mean, rstd, x.stride(0), y.stride(0), N, eps, BLOCK=block)
    return y


@layer_norm.reference
def _(x, w, b, eps):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(centred.pow(2).mean(dim=-1, keepdim=True) + eps) * w + b


@case(x="bf16[M,N]", w="bf16[N]", b="bf16[N]", eps=1e-5)
def layer_norm_stats(x, w, b, eps):
    """The result together with the mean and reciprocal deviation that the backward needs."""
    M, N = x.shape
    y = torch.empty_like(x)
    mean = torch.empty((M,), dtype=torch.float32, device=x.device)
    rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(N)
    layer_norm_kernel[(M,)](x, y, w, b, mean, rstd, x.stride(0), y.stride(0), N, eps, BLOCK=block)
    return {"y": y, "mean": mean, "rstd": rstd}


@layer_norm_stats.reference
def _(x, w, b, eps):
    x, w, b = x.float(), w.float(), b.float()
    rstd = torch.rsqrt(x.var(dim=-1, unbiased=False) + eps)
    return {"y": F.layer_norm(x, (x.shape[-1],), w, b, eps), "mean": x.mean(dim=-1), "rstd": rstd}


@case(dy="f32[M,N]", x="f32[M,N]", w="f32[N]", mean="f32[M]", rstd="f32[M]")
def layer_norm_backward(dy, x, w, mean, rstd, rows=4):
    M, N = x.shape
    programs = triton.cdiv(M, rows)
    dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
    dw_partial = torch.empty((programs, N), dtype=torch.float32, device=x.device)
    db_partial = torch.empty_like(dw_partial)
    layer_norm_backward_kernel[(programs,)](
        dx, dy, x, w, mean, rstd, dw_partial, db_partial, M, N, x.stride(0), rows, triton.next_power_of_2(N)
    )
    add_partials_kernel[(triton.cdiv(N, 64),)](dw_partial, db_partial, dw, db, programs, N, BLOCK_P=32, BLOCK_N=64)
    return {"dx": dx, "dw": dw, "db": db}


@layer_norm_backward.reference
def _(dy, x, w, mean, rstd):
    normal = (x - mean[:, None]) * rstd[:, None]
    wdy = w * dy
    along = normal * (normal * wdy).mean(dim=-1, keepdim=True)
    dx = (wdy - along - wdy.mean(dim=-1, keepdim=True)) * rstd[:, None]
    return {"dx": dx, "dw": (dy * normal).sum(dim=0), "db": dy.sum(dim=0)}

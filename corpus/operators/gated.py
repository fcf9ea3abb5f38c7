"""Gated units: silu_mul and gelu_mul of two tensors, swiglu of one packed tensor, backward of swiglu in place."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from trilift import case


@triton.jit
def silu_of(x):
    return x * tl.sigmoid(x)


@triton.jit
def gelu_of(x):
    return 0.5 * x * (1 + libdevice.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@triton.jit
def silu_mul_kernel(a_ptr, b_ptr, out_ptr, stride, N, BLOCK: tl.constexpr):
    """One program per row, the block holds the row."""
    row = tl.program_id(0).to(tl.int64) * stride
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    a = tl.load(a_ptr + row + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + row + cols, mask=mask, other=0)
    tl.store(out_ptr + row + cols, silu_of(a).to(b.dtype) * b, mask=mask)


@triton.jit
def gelu_mul_kernel(a_ptr, b_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    a = tl.load(a_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gelu_of(a) * b, mask=mask)


@triton.jit
def swiglu_kernel(x_ptr, out_ptr, stride_xm, stride_om, H: tl.int64, BLOCK: tl.constexpr):
    """x holds gate and value side by side: out[m, h] = silu(x[m, h]) * x[m, H + h]."""
    blocks = tl.cdiv(H, BLOCK)
    row, cols = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    mask = cols < H
    gate = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(x_ptr + row * stride_xm + H + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * stride_om + cols, silu_of(gate) * value, mask=mask)


@triton.jit
def swiglu_backward_kernel(dout_ptr, a_ptr, b_ptr, stride, N, BLOCK: tl.constexpr):
    """Overwrites a and b by their gradients."""
    row = tl.program_id(0).to(tl.int64) * stride
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    dout = tl.load(dout_ptr + row + cols, mask=mask, other=0)
    a = tl.load(a_ptr + row + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + row + cols, mask=mask, other=0)
    s = tl.sigmoid(a)
    da = dout * (s + a * s * (1 - s)) * b
    tl.store(a_ptr + row + cols, da, mask=mask)
    tl.store(b_ptr + row + cols, dout * a * s, mask=mask)


@case(a="f32[M,N]", b="f32[M,N]")
def silu_mul(a, b):
    M, N = a.shape
    out = torch.empty_like(a)
    silu_mul_kernel[(M,)](a, b, out, out.stride(0), N, BLOCK=triton.next_power_of_2(N), num_warps=8)
    return out


@silu_mul.reference
def _(a, b):
    return F.silu(a) * b


@case(a="f32[M,N]", b="f32[M,N]")
def gelu_mul(a, b):
    out = torch.empty_like(a)
    gelu_mul_kernel[lambda meta: (triton.cdiv(a.numel(), meta["BLOCK"]),)](a, b, out, a.numel(), BLOCK=1024)
    return out


@gelu_mul.reference
def _(a, b):
    return F.gelu(a, approximate="tanh") * b


@case(x="f32[M,2*H]")
def swiglu(x):
    M, H = x.shape[0], x.shape[1] // 2
    out = torch.empty((M, H), dtype=x.dtype, device=x.device)
    swiglu_kernel[(M * triton.cdiv(H, 512),)](x, out, x.stride(0), out.stride(0), H, BLOCK=512)
    return out


@swiglu.reference
def _(x):
    gate, value = x.chunk(2, dim=-1)
    return F.silu(gate) * value


@case(dout="f32[M,N]", a="f32[M,N]", b="f32[M,N]")
def swiglu_backward(dout, a, b):
    M, N = a.shape
    swiglu_backward_kernel[(M,)](dout, a, b, a.stride(0), N, BLOCK=triton.next_power_of_2(N), num_warps=8)
    return a, b


@swiglu_backward.reference
def _(dout, a, b):
    s = torch.sigmoid(a)
    da, db = dout * b * s * (1 + a * (1 - s)), dout * a * s
    return a.copy_(da), b.copy_(db)

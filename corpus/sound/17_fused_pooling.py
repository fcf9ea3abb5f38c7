# sound
"""The store is bounded by the number of outputs (pattern of ScalingIntelligence/KernelBench#147)."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def fused_relu_pool_kernel(x_ptr, out_ptr, bias, n_elements, BLOCK_SIZE: tl.constexpr):
    """out[i] = relu(bias + the larger of x[2 i] and x[2 i + 1])."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = 2 * offsets + 1 < n_elements
    even = tl.load(x_ptr + 2 * offsets, mask=mask, other=0.0)
    odd = tl.load(x_ptr + 2 * offsets + 1, mask=mask, other=0.0)
    y = tl.maximum(tl.maximum(even, odd) + bias, 0.0)
    tl.store(out_ptr + offsets, y, mask=mask)


@case(x="f32[2*N]", bias="f32", where="N < 2**40")
def fused_relu_pool(x, bias):
    n_elements = x.numel()
    out = torch.empty(n_elements // 2, dtype=x.dtype, device=x.device)
    fused_relu_pool_kernel[(triton.cdiv(n_elements, 256),)](x, out, bias, n_elements, BLOCK_SIZE=256)
    return out


@fused_relu_pool.reference
def _(x, bias):
    return torch.relu(torch.maximum(x[0::2], x[1::2]) + bias)

"""Dropout whose mask is made from a seed, so that the backward can make it again."""

import torch
import triton
import triton.language as tl

from trilift import case

M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85  # Philox4x32, Salmon et al. 2011


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n_elements, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets.to(tl.int32)) > p  # Philox of 32-bit words
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def philox(seed, offset):
    """First word of Philox4x32-10 for the counters (offset, 0, 0, 0), as unsigned numbers in int64."""
    low = 0xFFFFFFFF
    c0, c1, c2, c3 = offset, torch.zeros_like(offset), torch.zeros_like(offset), torch.zeros_like(offset)
    key = torch.zeros_like(offset) + seed
    k0, k1 = key & low, (key >> 32) & low
    for _ in range(10):
        (high0, low0), (high1, low1) = product(M0, c0), product(M1, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + W0) & low, (k1 + W1) & low
    return c0


def product(a, b):
    """High and low words of the 64-bit product of unsigned 32-bit numbers, without overflowing int64."""
    low = a * (b & 0xFFFF)
    high = a * (b >> 16) + (low >> 16)
    return high >> 16, ((high & 0xFFFF) << 16) | (low & 0xFFFF)


@case(x="f32[N]", p=0.25, seed="i32")
def dropout(x, p, seed):
    out = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, seed, BLOCK=1024)
    return out


@dropout.reference
def _(x, p, seed):
    bits = philox(seed, torch.arange(x.numel()))
    signed = torch.where(bits >= 2**31, bits - 2**32, bits)
    uniform = torch.where(signed < 0, -signed - 1, signed) * 4.6566127342e-10
    return torch.where(uniform > p, x / (1 - p), 0.0)

"""Offsets of 8 and 16 bits, which wrap before the address is formed. Each docstring says from where on the kernel is
wrong, by a run in Triton's interpreter."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rows_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int16) * BLOCK + tl.arange(0, BLOCK).to(tl.int16)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))


@case(x="f32[K,16]")
def rows(x):
    """K = 2049: rows from 2048 on are those of negative offsets."""
    out = torch.zeros_like(x)
    rows_kernel[(x.shape[0],)](x, out, BLOCK=16)
    return out


@rows.reference
def _(x):
    return 2 * x


@triton.jit
def loop_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offset = tl.arange(0, BLOCK).to(tl.int16)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(N):
        total += tl.load(x_ptr + row * N * BLOCK + offset)
        offset += BLOCK
    tl.store(out_ptr + row, tl.sum(total, 0))


@case(x="f32[M,N,16]")
def loop(x):
    """M = 1, N = 2049: the last offsets are negative."""
    out = torch.empty(x.shape[0])
    loop_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=16)
    return out


@loop.reference
def _(x):
    return x.sum((1, 2))


@triton.jit
def wide_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK).to(tl.int16)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))


@case(x="f32[65536]")
def always(x):
    """Half of the offsets are negative at every size."""
    out = torch.zeros_like(x)
    wide_kernel[(1,)](x, out, BLOCK=65536)
    return out


@always.reference
def _(x):
    return 2 * x


@triton.jit
def gather_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    narrow = ((i + 3).to(tl.int8) * 64 + (i + 3).to(tl.int8) * 64 + (i + 3).to(tl.int8) * 64).to(tl.int8)
    index = ((narrow + (i + 3).to(tl.int8) * 64) + i.to(tl.int8)).to(tl.int8)
    tl.store(out_ptr + i, tl.gather(tl.load(x_ptr + i), index, 0))


@case(x="f32[32]")
def gathered(x):
    """Right: the index is i + 256 (i + 3), which 8 bits hold as i."""
    out = torch.zeros_like(x)
    gather_kernel[(1,)](x, out, BLOCK=32)
    return out


@gathered.reference
def _(x):
    return x


@triton.jit
def table_kernel(x_ptr, i_ptr, out_ptr, N, BLOCK: tl.constexpr):
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.load(i_ptr + k, mask=k < N, other=0)
    tl.store(out_ptr + k, tl.load(x_ptr + 128 + i), mask=k < N)


@case(x="f32[256]", i="i8[N]")
def table(x, i):
    """Right for all inputs: an element of 8 bits is from -128 to 127."""
    out = torch.empty(i.shape[0])
    table_kernel[(triton.cdiv(i.shape[0], 16),)](x, i, out, i.shape[0], BLOCK=16)
    return out


@table.reference
def _(x, i):
    return x[i.long() + 128]

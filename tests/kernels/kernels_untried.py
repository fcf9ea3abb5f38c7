"""Kernels that are wrong at shapes that no small test meets, or in another order of programs or lanes."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def one_block(x_ptr, out_ptr, N, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + i, mask=i < N, other=0.0)
    if BLOCK == WRONG:
        x = x + x
    tl.store(out_ptr + r * N + i, x * 2, mask=i < N)


def rows(x, wrong):
    out = torch.empty_like(x)
    one_block[(x.shape[0],)](x, out, x.shape[1], WRONG=wrong, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@case(x="f32[M,N]")
def wrong_at_block_512(x):
    return rows(x, 512)


wrong_at_block_512.reference(lambda x: x * 2)


@case(x="f32[M,N]")
def wrong_at_block_2048(x):
    return rows(x, 2048)


wrong_at_block_2048.reference(lambda x: x * 2)


@triton.jit
def maybe_masked(x_ptr, out_ptr, N, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + i, tl.load(x_ptr + i) * 2)
    else:
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * 2, mask=i < N)


@case(x="f32[N]")
def wrong_at_multiples_of_32(x):
    out = torch.empty_like(x)
    maybe_masked[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), EVEN=x.numel() % 32 == 0, BLOCK=64)
    return out


wrong_at_multiples_of_32.reference(lambda x: x * 2)


@triton.jit
def shared_scratch(x_ptr, t_ptr, out_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + i, mask=i < N, other=0.0)
    tl.store(t_ptr + i, x, mask=i < N)
    tl.debug_barrier()
    y = tl.load(t_ptr + (N - 1 - i), mask=i < N, other=0.0)
    tl.store(out_ptr + r * N + i, y, mask=i < N)


@case(x="f32[M,N]")
def wrong_scratch_of_one_row(x):
    """All programs share the scratch."""
    out, scratch = torch.empty_like(x), torch.empty(x.shape[1])
    grid = (x.shape[0],)
    shared_scratch[grid](x, scratch, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


wrong_scratch_of_one_row.reference(lambda x: x.flip(-1))


@triton.jit
def every_second(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(out_ptr + i // 2, x, mask=i < N)


@case(x="f32[N]", where="N % 2 == 0")
def wrong_lanes_of_one_element(x):
    """Two lanes of one store: nobody says which of them is the last."""
    out = torch.empty(x.shape[0] // 2)
    every_second[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


wrong_lanes_of_one_element.reference(lambda x: x[1::2])

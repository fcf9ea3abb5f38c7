"""Cases for tests/lift/test_lift.py: what the pipeline must bear."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, N, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at * stride, mask=at < N)
    tl.store(out_ptr + at, x * factor, mask=at < N)


@triton.jit
def in_place_kernel(x_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.exp(tl.load(x_ptr + at, mask=at < N)), mask=at < N)


@triton.autotune([triton.Config({"BLOCK": b}) for b in (16, 32, 64)], key=["N"])
@triton.jit
def tuned_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, -tl.load(x_ptr + at, mask=at < N), mask=at < N)


@triton.autotune([triton.Config({"BLOCK": b}) for b in (16, 32)], key=["N"])
@triton.jit
def badly_tuned_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, BLOCK * tl.load(x_ptr + at, mask=at < N), mask=at < N)


@triton.jit
def overrunning_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


@triton.jit
def uncompilable_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + no_such_name, mask=at < N)  # noqa: F821


def blocks(x, block=16):
    return (triton.cdiv(x.numel(), block),)


def scaled(x, factor):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    scale_kernel[blocks(x)](x, out, factor, x.numel(), x.stride(0), BLOCK=16)
    return out


@case(x="f32[N] strided", factor="f32")
def strided_view(x, factor):
    return scaled(x, factor)


@case(x="f32[2*N]")
def every_other(x):
    return scaled(x[::2], 3.0)


@case(x="f32[N]")
def in_place(x):
    in_place_kernel[blocks(x)](x, x.numel(), BLOCK=16)
    return x


@case(x="f32[N]")
def unreturned(x):
    in_place_kernel[blocks(x)](x, x.numel(), BLOCK=16)


@case(x="f32[N]")
def tuned(x):
    out = torch.empty_like(x)
    tuned_kernel[lambda meta: blocks(x, meta["BLOCK"])](x, out, x.numel())
    return out


@case(x="f32[N]")
def badly_tuned(x):
    out = torch.empty_like(x)
    badly_tuned_kernel[lambda meta: blocks(x, meta["BLOCK"])](x, out, x.numel())
    return out


@case(x="f32[N]")
def overrunning(x):
    out = torch.empty_like(x)
    overrunning_kernel[blocks(x)](x, out, x.numel(), BLOCK=16)
    return out


@case(x="f32[N]")
def uncompilable(x):
    out = torch.empty_like(x)
    uncompilable_kernel[blocks(x)](x, out, x.numel(), BLOCK=16)
    return out


@case(x="f32[N]")
def unrelated(x):
    return scaled(x, float((x.numel() * 7919) % 101))


@case(x="f32[N]", where="N == 0")
def nothing(x):
    return scaled(x, 2.0)


@case(x="f32[N]", where="N < 0")
def impossible(x):
    return scaled(x, 2.0)


@case(x="f32[N]")
def composed(x):
    return torch.relu(scaled(x + 1, 2.0)) - x


@triton.jit
def summed_kernel(x_ptr, out_ptr, N, CHUNK: tl.constexpr, KEPT: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((CHUNK,), tl.float32)
    for start in range(0, N, CHUNK):
        at = start + tl.arange(0, CHUNK)
        x = tl.load(x_ptr + row * N + at, mask=at < N, other=0.0)
        total = total + x if KEPT else x
    tl.store(out_ptr + row, tl.sum(total, 0))


def row_sums(x, kept):
    out = x.new_empty(x.shape[0])
    summed_kernel[x.shape[:1]](x, out, x.shape[1], CHUNK=512, KEPT=kept)
    return out


@case(x="f32[M,N]")
def chunks(x):
    return row_sums(x, True)


@case(x="f32[M,N]")
def only_the_last_chunk(x):
    return row_sums(x, False)

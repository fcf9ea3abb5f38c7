"""Kernels whose lanes exchange elements through memory, and host functions that leave more than a result."""

from typing import Any

import torch
import triton
import triton.language as tl

from trilift import case

Tensor = torch.Tensor
TARGETS: dict[int, Tensor] = {}


# ---- scratch of one program ------------------------------------------------------------------------------------------


@triton.jit
def through_scratch(x_ptr, t_ptr, out_ptr, BLOCK: tl.constexpr, HOW: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + i)
    if HOW == "before":
        tl.debug_barrier()
    tl.store(t_ptr + row + i, x)
    if HOW == "between":
        tl.debug_barrier()
    if HOW == "sometimes":  # noqa: SIM102 - a constant, then a number of the launch
        if tl.program_id(0) == 0:
            tl.debug_barrier()
    if HOW == "both branches":
        if tl.program_id(0) == 0:
            tl.debug_barrier()
        else:
            tl.debug_barrier()
    if HOW == "atomic":
        tl.atomic_add(out_ptr + row + i, 0.0)
    if HOW == "own":
        tl.store(out_ptr + row + i, tl.load(t_ptr + row + i))
    else:
        tl.store(out_ptr + row + i, tl.load(t_ptr + row + (BLOCK - 1 - i)))


def reversed_by(x: Tensor, how: str) -> Tensor:
    t, out = torch.empty_like(x), torch.empty_like(x)
    through_scratch[(x.shape[0],)](x, t, out, BLOCK=128, HOW=how)
    return out


def scratch(how: str, flips: bool = True) -> Any:
    @case(x="f32[M,128]")
    def through(x):
        return reversed_by(x, how)

    through.reference(lambda x: x.flip(-1) if flips else x.clone())
    return through


wrong_no_barrier = scratch("none")
wrong_barrier_before = scratch("before")
wrong_barrier_in_one_branch = scratch("sometimes")
right_barrier = scratch("between")
right_barrier_in_both_branches = scratch("both branches")
right_own_lane = scratch("own", flips=False)


@triton.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, FLIP: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    at = BLOCK - 1 - i if FLIP else i
    tl.store(out_ptr + row + i, tl.load(x_ptr + row + at))


@case(x="f32[M,128]")
def right_two_launches(x):
    t, out = torch.empty_like(x), torch.empty_like(x)
    copy_kernel[(x.shape[0],)](x, t, BLOCK=128, FLIP=False)
    copy_kernel[(x.shape[0],)](t, out, BLOCK=128, FLIP=True)
    return out


right_two_launches.reference(lambda x: x.flip(-1))


@triton.jit
def transposed(x_ptr, t_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, BARRIER: tl.constexpr):
    base = tl.program_id(0) * A * B
    i, j = tl.arange(0, A), tl.arange(0, B)
    tl.store(t_ptr + base + i[:, None] * B + j[None, :], tl.load(x_ptr + base + i[:, None] * B + j[None, :]))
    if BARRIER:
        tl.debug_barrier()
    tl.store(out_ptr + base + j[:, None] * A + i[None, :], tl.load(t_ptr + base + i[None, :] * B + j[:, None]))


def transpose(barrier: bool) -> Any:
    @case(x="f32[M,16,32]")
    def transposed_tiles(x):
        t, out = torch.empty_like(x), torch.empty((x.shape[0], 32, 16))
        transposed[(x.shape[0],)](x, t, out, A=16, B=32, BARRIER=barrier)
        return out

    transposed_tiles.reference(lambda x: x.transpose(1, 2).contiguous())
    return transposed_tiles


wrong_transpose, right_transpose = transpose(False), transpose(True)


@triton.jit
def shifting(x_ptr, N, BLOCK: tl.constexpr, BARRIER: tl.constexpr):
    """x[i] = x[i + 1], tile by tile from the left."""
    row = tl.program_id(0).to(tl.int64) * N
    for k in range(0, N, BLOCK):
        i = k + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row + i + 1, mask=i + 1 < N, other=0.0)
        if BARRIER:
            tl.debug_barrier()
        tl.store(x_ptr + row + i, v, mask=i < N)


def shift(barrier: bool) -> Any:
    @case(x="f32[M,N]")
    def shifted(x):
        shifting[(x.shape[0],)](x, x.shape[1], BLOCK=64, BARRIER=barrier)
        return x

    shifted.reference(lambda x: x.copy_(torch.cat([x[:, 1:], torch.zeros_like(x[:, :1])], 1)))
    return shifted


wrong_shift, right_shift = shift(False), shift(True)


@triton.jit
def other_tile(x_ptr, t_ptr, out_ptr, N: tl.constexpr, BARRIER: tl.constexpr):
    """Stored as a row of 256, loaded as rows of 16."""
    base = tl.program_id(0) * N * N
    i, j = tl.arange(0, N * N), tl.arange(0, N)
    tl.store(t_ptr + base + i, 2 * tl.load(x_ptr + base + i))
    if BARRIER:
        tl.debug_barrier()
    at = base + j[:, None] * N + j[None, :]
    tl.store(out_ptr + at, tl.load(t_ptr + at))


def tile(barrier: bool) -> Any:
    @case(x="f32[M,16,16]")
    def tiled(x):
        t, out = torch.empty_like(x), torch.empty_like(x)
        other_tile[(x.shape[0],)](x, t, out, N=16, BARRIER=barrier)
        return out

    tiled.reference(lambda x: 2 * x)
    return tiled


wrong_other_tile, right_other_tile = tile(False), tile(True)


@triton.jit
def through_scalar(x_ptr, t_ptr, out_ptr, BLOCK: tl.constexpr, BARRIER: tl.constexpr):
    """One thread stores the sum, all threads load it."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + i)
    tl.store(t_ptr + row, tl.sum(x))
    if BARRIER:
        tl.debug_barrier()
    tl.store(out_ptr + row * BLOCK + i, x - tl.load(t_ptr + row))


def scalar(barrier: bool) -> Any:
    @case(x="f32[M,128]")
    def less_its_sum(x):
        t, out = torch.empty((x.shape[0],)), torch.empty_like(x)
        through_scalar[(x.shape[0],)](x, t, out, BLOCK=128, BARRIER=barrier)
        return out

    less_its_sum.reference(lambda x: x - x.sum(-1, keepdim=True))
    return less_its_sum


wrong_scalar, right_scalar = scalar(False), scalar(True)


@triton.jit
def softmax_in_place(x_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + i, mask=i < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(x_ptr + row + i, e / tl.sum(e), mask=i < N)


@case(x="f32[M,N]")
def right_softmax_in_place(x):
    softmax_in_place[(x.shape[0],)](x, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return x


right_softmax_in_place.reference(lambda x: x.copy_(torch.softmax(x, -1)))


@triton.jit
def rolled(x_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + row + i, tl.load(x_ptr + row + (i + 1) % BLOCK))


@case(x="f32[M,256]")
def wrong_roll_in_place(x):
    rolled[(x.shape[0],)](x, BLOCK=256)
    return x


wrong_roll_in_place.reference(lambda x: x.copy_(x.roll(-1, -1)))


# ---- the memory of the caller ----------------------------------------------------------------------------------------


@triton.jit
def doubled(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * 2, mask=i < N)


def double(x: Tensor, out: Tensor) -> Tensor:
    doubled[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


@case(x="f32[N]")
def wrong_in_place(x):
    return double(x, x)


@case(x="f32[N]")
def wrong_changes_its_input_too(x):
    out = double(x, torch.empty_like(x))
    double(x, x)
    return out


@case(x="f32[N]")
def wrong_zeroes_its_input(x):
    out = double(x, torch.empty_like(x))
    x.zero_()
    return out


@case(x="f32[N]")
def wrong_buffer_is_kept(x):
    return double(x, TARGETS.setdefault(x.numel(), torch.empty_like(x)))


@case(x="f32[N]")
def shares_its_outputs(x):
    out = double(x, torch.empty_like(x))
    return out, out


@case(x="f32[N]")
def right_in_place(x):
    return double(x, x)


for wrong in (wrong_in_place, wrong_changes_its_input_too, wrong_zeroes_its_input, wrong_buffer_is_kept):
    wrong.reference(lambda x: x * 2)
shares_its_outputs.reference(lambda x: (x * 2, x * 2))
right_in_place.reference(lambda x: x.mul_(2))

CONFIGS = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]
tuned_kernel = triton.autotune(CONFIGS, key=["N"])(doubled)
restored_kernel = triton.autotune(CONFIGS, key=["N"], restore_value=["out_ptr"])(doubled)


def tuned(kernel: Any, x: Tensor, out: Tensor) -> Tensor:
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


@case(x="f32[N]")
def wrong_tuned_in_place(x):
    return tuned(tuned_kernel, x, x)


@case(x="f32[N]")
def right_tuned_and_restored(x):
    return tuned(restored_kernel, x, x)


wrong_tuned_in_place.reference(lambda x: x.mul_(2))
right_tuned_and_restored.reference(lambda x: x.mul_(2))


# ---- tensor descriptors ----------------------------------------------------------------------------------------------


@triton.jit
def described(x_ptr, out_ptr, M, N, start, A: tl.constexpr, B: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr + start, (M, N), (N, 1), (A, B))
    out = tl.make_tensor_descriptor(out_ptr, (M, N), (N, 1), (A, B))
    i, j = tl.program_id(0) * A, tl.program_id(1) * B
    out.store([i, j], x.load([i, j]) * 2)


def through_descriptors(x: Tensor, rows: int, start: int) -> Tensor:
    M, N = x.shape
    out = torch.empty((rows, N))
    described[(triton.cdiv(rows, 8), triton.cdiv(N, 16))](x, out, rows, N, start, A=8, B=16)
    return out


def descriptors(where: str, skipped: bool = False) -> Any:
    @case(x="f32[M+1,N]", where=where)
    def through(x):
        M, N = x.shape
        return through_descriptors(x, M - 1, N if skipped else 0)

    through.reference(lambda x: 2 * (x[1:] if skipped else x[:-1]))
    return through


any_width = descriptors("M >= 1")
any_width_from_the_second_row = descriptors("M >= 1", skipped=True)
right_width = descriptors("M >= 1 and N % 4 == 0")


@triton.jit
def doubled_kernel(x, N, EACH: tl.constexpr, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) // EACH
    tl.store(x + i, 2 * tl.load(x + i, mask=i < N), mask=i < N)


@triton.jit
def counted_kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) % 4
    tl.store(x + i, tl.load(x + i) + 1)


@triton.jit
def columns_kernel(x, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] + 0 * tl.arange(0, 2)[None, :]
    tl.store(x + i, 2 * tl.load(x + i, mask=i < N), mask=i < N)


@triton.jit
def last_kernel(x, N, BLOCK: tl.constexpr):
    i = tl.minimum(tl.arange(0, BLOCK), N - 1)
    tl.store(x + i, 2 * tl.load(x + i))


@case(x="f32[N]")
def doubled_by_one_lane(x):
    doubled_kernel[(triton.cdiv(x.shape[0], 64),)](x, x.shape[0], EACH=1, BLOCK=64)
    return x


@case(x="f32[N]")
def doubled_by_two_lanes(x):
    doubled_kernel[(triton.cdiv(2 * x.shape[0], 64),)](x, x.shape[0], EACH=2, BLOCK=64)
    return x


@case(x="f32[4]")
def counted_by_sixteen_lanes(x):
    counted_kernel[(1,)](x, BLOCK=64)
    return x


@case(x="f32[N]", where="N <= 64")
def doubled_in_two_columns(x):
    columns_kernel[(1,)](x, x.shape[0], BLOCK=64)
    return x


@case(x="f32[N]", where="N <= 64")
def doubled_at_the_last(x):
    last_kernel[(1,)](x, x.shape[0], BLOCK=64)
    return x


for c in (doubled_by_one_lane, doubled_by_two_lanes, doubled_in_two_columns, doubled_at_the_last):
    c.reference(lambda x: x.mul_(2))
counted_by_sixteen_lanes.reference(lambda x: x.add_(1))


@triton.jit
def summed_kernel(x, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(3):
        total += tl.load(x + i, mask=i < N)
    tl.store(x + i, total, mask=i < N)


@case(x="f32[N]")
def summed_before_it_is_stored(x):
    summed_kernel[(triton.cdiv(x.shape[0], 64),)](x, x.shape[0], BLOCK=64)
    return x


summed_before_it_is_stored.reference(lambda x: x.mul_(3))

"""Kernels with one mistake each in what they do with memory, integers or calls, beside those that look like one."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from trilift import case

BLOCK = 16


def blocks(n):
    return (triton.cdiv(n, BLOCK),)


# ---- out-of-bounds ---------------------------------------------------------------------------------------------------


@triton.jit
def shift_kernel(x, y, n, BY: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if HOW == "no mask":
        v = tl.load(x + i)  # loads the tail
    elif HOW == "where after":
        v = tl.where(i < BY, 0.0, tl.load(x + i - BY, mask=i < n, other=0.0))  # loads what is before the first
    elif HOW == "where before":
        v = tl.load(x + tl.where(i < BY, 0, i - BY), mask=i < n, other=0.0)
        v = tl.where(i < BY, 0.0, v)
    else:
        v = tl.load(x + i - BY, mask=(i < n) & (i >= BY), other=0.0)
    tl.store(y + i, v, mask=i < n)


def shift(x, how, by=1):
    y = torch.empty_like(x)
    shift_kernel[blocks(x.numel())](x, y, x.numel(), BY=by, HOW=how, BLOCK=BLOCK)
    return y


@case(x="f32[N]", where="N < 2**30")
def tail_not_masked(x):
    return shift(x, "no mask", 0)


@case(x="f32[N]", where="N < 2**30")
def before_the_first(x):
    return shift(x, "where after")


@case(x="f32[N]", where="N < 2**30")
def pointer_is_clamped(x):
    return shift(x, "where before")


@case(x="f32[N]", where="N < 2**30")
def mask_on_both_ends(x):
    return shift(x, "mask")


@case(x="f32[16*N]", where="N < 2**20")
def sizes_are_multiples(x):
    return shift(x, "no mask", 0)


@triton.jit
def gather_kernel(x, index, y, n, rows, BELOW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.load(index + i, mask=i < n, other=0)
    if BELOW:
        v = tl.load(x + k, mask=(i < n) & (k >= 0) & (k < rows), other=0.0)
    else:
        v = tl.load(x + k, mask=i < n, other=0.0)  # loads any row
    tl.store(y + i, v, mask=i < n)


def gather(x, index, below):
    y = torch.empty(index.shape)
    gather_kernel[blocks(index.numel())](x, index, y, index.numel(), x.numel(), BELOW=below, BLOCK=BLOCK)
    return y


@case(x="f32[R]", index="i32[N] < R+1", where="R > 0 and N < 2**30 and R < 2**30")
def index_of_no_row(x, index):
    return gather(x, index, False)


@case(x="f32[R]", index="i32[N] < R", where="R > 0 and N < 2**30 and R < 2**30")
def index_of_a_row(x, index):
    return gather(x, index, False)


@case(x="f32[R]", index="i32[N] < R+1", where="R > 0 and N < 2**30 and R < 2**30")
def index_that_is_checked(x, index):
    return gather(x, index, True)


# ---- write-race ------------------------------------------------------------------------------------------------------


@triton.jit
def total_kernel(x, y, n, HOW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0)
    if HOW == "store":
        tl.store(y, total)  # each program its own sum
    elif HOW == "the same":
        tl.store(y, n.to(tl.float32))
    elif HOW == "first":
        tl.store(y, total, mask=tl.program_id(0) == 0)
    else:
        tl.atomic_add(y, total)


def total(x, how):
    y = torch.zeros(1)
    total_kernel[blocks(x.numel())](x, y, x.numel(), HOW=how, BLOCK=BLOCK)
    return y


@case(x="f32[N]", where="N > 0 and N < 2**30")
def sum_stored_by_all(x):
    return total(x, "store")


@case(x="f32[N]", where="N > 0 and N < 2**30")
def sum_added_by_all(x):
    return total(x, "add")


@case(x="f32[N]", where="N > 0 and N < 2**30")
def count_stored_by_all(x):
    return total(x, "the same")


@case(x="f32[N]", where="N > 0 and N < 2**30")
def sum_stored_by_one(x):
    return total(x, "first")


@triton.jit
def everywhere_kernel(x, y, n, MINE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    first = 0
    if MINE:
        first = tl.program_id(0) * BLOCK
    for start in range(first, first + BLOCK if MINE else n, BLOCK):
        i = start + at
        tl.store(y + i, tl.load(x + i, mask=i < n) + 1.0, mask=i < n)  # every program stores all


def everywhere(x, mine):
    y = torch.empty_like(x)
    everywhere_kernel[blocks(x.numel())](x, y, x.numel(), MINE=mine, BLOCK=BLOCK)
    return y


@case(x="f32[N]", where="N < 2**30")
def work_is_not_divided(x):
    return everywhere(x, False)


@case(x="f32[N]", where="N < 2**30")
def work_is_divided(x):
    return everywhere(x, True)


@triton.jit
def border_kernel(x, y, n, HOW: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(y + row * n + i, tl.zeros([BLOCK], tl.float32), mask=i < n)
    if HOW == "barrier":
        tl.debug_barrier()
    if HOW == "same tile":
        tl.store(y + row * n + i, tl.load(x + row * n + i, mask=i < n), mask=(i < n) & (i < 1))
    else:
        tl.store(y + row * n, tl.load(x + row * n))  # over the zeros


def border(x, how):
    y = torch.empty_like(x)
    border_kernel[(x.shape[0],)](x, y, x.shape[1], HOW=how, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


SMALL = "M * N < 2**30 and N > 0 and N <= 4096"


@case(x="f32[M,N]", where=SMALL)
def stored_twice(x):
    return border(x, "no barrier")


@case(x="f32[M,N]", where=SMALL)
def stored_twice_with_barrier(x):
    return border(x, "barrier")


@case(x="f32[M,N]", where=SMALL)
def stored_twice_by_one_thread(x):
    return border(x, "same tile")


@triton.jit
def statistics_kernel(x, y, mean, n, c, BLOCK: tl.constexpr):
    row, head = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=0.0)
    tl.store(mean + row, tl.sum(v, 0) / n)
    tl.store(y + (row * c + head) * n + i, v * head, mask=i < n)


@case(x="f32[M,N]", where="M * N < 2**28 and N > 0 and N <= 4096")
def mean_stored_by_every_head(x):
    m, n = x.shape
    y, mean = torch.empty(m, 3, n), torch.empty(m)
    statistics_kernel[(m, 3)](x, y, mean, n, 3, BLOCK=triton.next_power_of_2(n))
    return y, mean


@triton.jit
def scatter_kernel(x, index, y, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    k = tl.load(index + row).to(tl.int64)
    tl.store(y + k * n + i, tl.load(x + row * n + i, mask=i < n), mask=i < n)  # where the index says


def scatter(x, index, y):
    scatter_kernel[(x.shape[0],)](x, index, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


ROWS = "M > 0 and R > 0 and M < 2**20 and R < 2**20"


@case(x="f32[M,4]", index="i32[M] < R", y="f32[R,4]", where=ROWS)
def scattered(x, index, y):
    return scatter(x, index, y)


@case(x="f32[M,4]", index="i32[M] < R", y="f32[R,4]", where=ROWS)
def scattered_as_torch_does(x, index, y):
    return scatter(x, index, y)


@scattered_as_torch_does.reference
def _(x, index, y):
    return y.index_put_((index.long(),), x)


@case(x="f32[M,N]", index="i32[M] < 3", where="M < 2**20 and N > 0 and N <= 4096")
def gradient_not_added(x, index):
    return scatter(x, index, torch.zeros(3, x.shape[1]))


@gradient_not_added.reference
def _(x, index):
    return torch.zeros(3, x.shape[1], dtype=x.dtype).index_add(0, index.long(), x)


# ---- read-write-race -------------------------------------------------------------------------------------------------


@triton.jit
def neighbour_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n) + tl.load(x + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(y + i, v, mask=i < n)  # what the program before loads


@case(x="f32[N]", where="N < 2**30")
def neighbours_in_place(x):
    neighbour_kernel[blocks(x.numel())](x, x, x.numel(), BLOCK=BLOCK)
    return x


@case(x="f32[N]", where="N < 2**30")
def neighbours(x):
    y = torch.empty_like(x)
    neighbour_kernel[blocks(x.numel())](x, y, x.numel(), BLOCK=BLOCK)
    return y


@triton.jit
def double_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@case(x="f32[N]", where="N < 2**30")
def doubled_in_place(x):
    double_kernel[blocks(x.numel())](x, x.numel(), BLOCK=BLOCK)
    return x


@triton.jit
def grouped_kernel(x, y, rows, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    out = y + tl.program_id(0) * n + i
    for k in range(GROUP):
        row = tl.program_id(0) * GROUP + k
        v = tl.load(x + row * n + i, mask=(i < n) & (row < rows), other=0.0)
        tl.store(out, tl.load(out, mask=i < n) + v, mask=i < n)


@case(x="f32[M,N]", where="M > 0 and M * N < 2**28 and N <= 4096")
def added_by_its_own_program(x):
    m, n = x.shape
    y = torch.zeros(triton.cdiv(m, 4), n)
    grouped_kernel[(y.shape[0],)](x, y, m, n, GROUP=4, BLOCK=triton.next_power_of_2(n))
    return y


@triton.jit
def locked_kernel(x, y, lock, n, BARRIER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y + i, tl.load(y + i, mask=i < n) + v, mask=i < n)  # not all threads have stored
    if BARRIER:
        tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def locked(x, barrier):
    m, n = x.shape
    y, lock = torch.zeros(n), torch.zeros(1, dtype=torch.int32)
    locked_kernel[(m,)](x, y, lock, n, BARRIER=barrier, BLOCK=triton.next_power_of_2(n))
    return y


@case(x="f32[M,N]", where=SMALL)
def released_too_early(x):
    return locked(x, False)


@case(x="f32[M,N]", where=SMALL)
def released_after_the_barrier(x):
    return locked(x, True)


# ---- unwritten-output ------------------------------------------------------------------------------------------------


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@case(x="f32[N]", where="N > 15 and N < 2**30")
def grid_rounded_down(x):
    y = torch.empty_like(x)  # the tail is not written
    copy_kernel[(x.numel() // BLOCK,)](x, y, x.numel(), BLOCK=BLOCK)
    return y


@case(x="f32[N]", where="N > 15 and N < 2**30")
def grid_rounded_down_on_zeros(x):
    y = torch.zeros_like(x)
    copy_kernel[(x.numel() // BLOCK,)](x, y, x.numel(), BLOCK=BLOCK)
    return y


@case(x="f32[16*N]", where="N > 0 and N < 2**20")
def grid_without_a_rest(x):
    y = torch.empty_like(x)
    copy_kernel[(x.numel() // BLOCK,)](x, y, x.numel(), BLOCK=BLOCK)
    return y


@case(x="f32[N]", where="N > 0 and N < 2**30")
def padded_and_cut(x):
    y = torch.empty(triton.cdiv(x.numel(), BLOCK) * BLOCK)
    copy_kernel[blocks(x.numel())](x, y, x.numel(), BLOCK=BLOCK)
    return y[: x.numel()]


@triton.jit
def gram_kernel(x, y, n, LOWER: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    v = tl.load(x + i) * tl.load(x + j)
    if LOWER:
        tl.store(y + i * n + j, v, mask=j <= i)
    else:
        tl.store(y + i * n + j, tl.where(j <= i, v, 0.0))


@case(x="f32[N]", where="N < 2**15")
def upper_triangle_left_out(x):
    y = torch.empty(x.numel(), x.numel())  # half of it is written
    gram_kernel[(x.numel(), x.numel())](x, y, x.numel(), LOWER=True)
    return y


@case(x="f32[N]", where="N < 2**15")
def upper_triangle_of_zeros(x):
    y = torch.empty(x.numel(), x.numel())
    gram_kernel[(x.numel(), x.numel())](x, y, x.numel(), LOWER=False)
    return y


# ---- undefined-value -------------------------------------------------------------------------------------------------


@triton.jit
def row_sum_kernel(x, y, n, HOW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + tl.program_id(0) * n + i
    if HOW == "other":
        v = tl.load(at, mask=i < n, other=0.0)
    elif HOW == "where":
        v = tl.where(i < n, tl.load(at, mask=i < n), 0.0)
    elif HOW == "times":
        v = tl.load(at, mask=i < n) * (i < n).to(tl.float32)  # 0 times undefined
    else:
        v = tl.load(at, mask=i < n)  # lanes beyond the row are added
    tl.store(y + tl.program_id(0), tl.sum(v, 0))


def row_sum(x, how):
    y = torch.empty(x.shape[0])
    row_sum_kernel[(x.shape[0],)](x, y, x.shape[1], HOW=how, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@case(x="f32[M,N]", where=SMALL)
def masked_lanes_added(x):
    return row_sum(x, "undefined")


@case(x="f32[M,N]", where=SMALL)
def masked_lanes_times_zero(x):
    return row_sum(x, "times")


@case(x="f32[M,N]", where=SMALL)
def masked_lanes_are_zero(x):
    return row_sum(x, "other")


@case(x="f32[M,N]", where=SMALL)
def masked_lanes_replaced(x):
    return row_sum(x, "where")


@case(x="f32[N]", where="N < 2**30")
def masked_lanes_not_stored(x):
    y = torch.empty_like(x)
    copy_kernel[blocks(x.numel())](x, y, x.numel(), BLOCK=BLOCK)
    return y


@triton.jit
def add_kernel(x, scratch, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(scratch + i, mask=i < n)  # nobody wrote it
    tl.store(y + i, tl.load(x + i, mask=i < n) + s, mask=i < n)


def added(x, scratch):
    y = torch.empty_like(x)
    add_kernel[blocks(x.numel())](x, scratch, y, x.numel(), BLOCK=BLOCK)
    return y


@case(x="f32[N]", where="N < 2**30")
def scratch_not_written(x):
    return added(x, torch.empty_like(x))


@case(x="f32[N]", where="N < 2**30")
def scratch_written_before(x):
    scratch = torch.empty_like(x)
    copy_kernel[blocks(x.numel())](x, scratch, x.numel(), BLOCK=BLOCK)
    return added(x, scratch)


# ---- int32-overflow --------------------------------------------------------------------------------------------------


@triton.jit
def rows_kernel(x, y, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        at = row * n + i  # 32 bits
        tl.store(y + at, tl.load(x + at, mask=i < n) + 1.0, mask=i < n)


def rows(x, wide):
    y = torch.empty_like(x)
    rows_kernel[(x.shape[0],)](x, y, x.shape[1], WIDE=wide, BLOCK=1024)
    return y


@case(x="f32[M,N]", where="M < 2**20 and N < 2**20")
def offsets_in_32_bits(x):
    return rows(x, False)


@case(x="f32[M,N]", where="M < 2**20 and N < 2**20")
def offsets_in_64_bits(x):
    return rows(x, True)


@case(x="f32[M,N]", where="M * N < 2**31 and N < 2**30")
def large_tensors_excluded(x):
    return rows(x, False)


@case(x="f32[M,N]", where="N < 2**30")
def large_tensors_refused(x):
    assert x.numel() < 2**31
    return rows(x, False)


@triton.jit
def flat_kernel(x, y, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK if WIDE else tl.program_id(0) * BLOCK  # wraps
    i = start + tl.arange(0, BLOCK)
    tl.store(y + i, -tl.load(x + i, mask=i < n), mask=i < n)


def flat(x, wide):
    y = torch.empty_like(x)
    flat_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), WIDE=wide, BLOCK=1024)
    return y


@case(x="f16[N]")
def long_row_in_32_bits(x):
    return flat(x, False)


@case(x="f16[N]")
def long_row_in_64_bits(x):
    return flat(x, True)


# ---- broken-contract -------------------------------------------------------------------------------------------------


@triton.jit
def scale_kernel(x, y, n, row, column, USED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if USED:
        v = tl.load(x + tl.program_id(0) * row + i * column, mask=i < n)
    else:
        v = tl.load(x + tl.program_id(0) * n + i, mask=i < n)
    tl.store(y + tl.program_id(0) * n + i, 3 * v, mask=i < n)


def scale(x, used, block=None):
    m, n = x.shape
    y = torch.empty(m, n)
    block = block or triton.next_power_of_2(n)
    scale_kernel[(m,)](x, y, n, *x.stride(), USED=used, BLOCK=block)  # launched here
    return y


def tripled(x):
    return 3 * x


@case(x="f32[M,N] strided", where=SMALL)
def strides_ignored(x):
    return scale(x, False)


@case(x="f32[M,N] strided", where=SMALL)
def strides_used(x):
    return scale(x, True)


@case(x="f32[M,N] strided", where=SMALL)
def made_contiguous(x):
    return scale(x.contiguous(), False)


@case(x="f32[M,N]", where="M < 2**18 and N > 0 and N < 2**10")
def row_longer_than_the_block(x):
    return scale(x, True, BLOCK)


@case(x="f32[M,N]", where="M < 2**18 and N > 0 and N < 2**10")
def row_no_longer_than_the_block(x):
    assert x.shape[1] <= BLOCK
    return scale(x, True, BLOCK)


for c in (strides_ignored, strides_used, made_contiguous, row_longer_than_the_block, row_no_longer_than_the_block):
    c.reference(tripled)


@triton.jit
def plane_kernel(x, y, n, ROW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(1 - ROW) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(ROW).to(tl.int64) * n + i
    tl.store(y + at, tl.load(x + at, mask=i < n), mask=i < n)


@case(x="f32[M,N]", where="M < 2**22 and N < 2**14")
def rows_along_y(x):
    m, n = x.shape
    y = torch.empty_like(x)
    plane_kernel[(triton.cdiv(n, BLOCK), m)](x, y, n, ROW=1, BLOCK=BLOCK)  # rows along y
    return y


@case(x="f32[M,N]", where="M < 2**22 and N < 2**14")
def rows_along_x(x):
    m, n = x.shape
    y = torch.empty_like(x)
    plane_kernel[(m, triton.cdiv(n, BLOCK))](x, y, n, ROW=0, BLOCK=BLOCK)
    return y


@triton.jit
def columns_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(y + i, tl.load(x + tl.program_id(0) * n + i, mask=i < n), mask=i < n)


def columns(x, make):
    y = make(x.shape[1])  # without contents
    columns_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@case(x="f32[M,N]", where=SMALL)
def added_to_nothing(x):
    return columns(x, torch.empty)


@case(x="f32[M,N]", where=SMALL)
def added_to_zeros(x):
    return columns(x, torch.zeros)


CONFIGS = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]
tuned_double = triton.autotune(CONFIGS, ["n"])(double_kernel)
restored_double = triton.autotune(CONFIGS, ["n"], restore_value=["x"])(double_kernel)
tuned_copy = triton.autotune(CONFIGS, ["n"])(copy_kernel)
zeroed_total = triton.autotune(CONFIGS, ["n"], reset_to_zero=["y"])(total_kernel)


@case(x="f32[N]", where="N < 2**30")
def tuned_in_place(x):
    tuned_double[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel())  # runs several times
    return x


@case(x="f32[N]", where="N < 2**30")
def tuned_in_place_and_restored(x):
    restored_double[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel())
    return x


@case(x="f32[N]", where="N > 0 and N < 2**30")
def tuned_sum_set_to_zero(x):
    y = torch.zeros(1)
    zeroed_total[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel(), HOW="add")
    return y


@case(x="f32[N]", where="N < 2**30")
def tuned_with_its_own_grid(x):
    y = torch.empty_like(x)
    tuned_copy[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y


@case(x="f32[N]", where="N < 2**30")
def tuned_with_the_grid_of_one(x):
    y = torch.zeros_like(x)
    reversed_copy[(triton.cdiv(x.numel(), 32),)](x, y, x.numel())  # for blocks of 32
    return y


reversed_copy = triton.autotune(CONFIGS[::-1], ["n"])(copy_kernel)


@tuned_with_its_own_grid.reference
@tuned_with_the_grid_of_one.reference
def _(x):
    return x.clone()


# ---- wrong-result ----------------------------------------------------------------------------------------------------


@triton.jit
def last_kernel(x, y, n, END: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n - END, other=0.0)
    tl.store(y + tl.program_id(0), tl.sum(v, 0))  # the sum


def last(x, end):
    y = torch.empty(x.shape[0])
    last_kernel[(x.shape[0],)](x, y, x.shape[1], END=end, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@case(x="f32[M,N]", where=SMALL)
def last_column_left_out(x):
    return last(x, 1)


@case(x="f32[M,N]", where=SMALL)
def all_columns(x):
    return last(x, 0)


@last_column_left_out.reference
@all_columns.reference
def _(x):
    return x.sum(1)


# ---- 0 times infinity ------------------------------------------------------------------------------------------------


@triton.jit
def weights_kernel(x, lse, do, y, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row)
    top = tl.load(lse + row * n + i, mask=i < n, other=OTHER)
    d = tl.load(do + row * n + i, mask=i < n, other=0.0)
    tl.store(y + row, tl.sum(tl.exp(v - top) * d, 0))


def weights(x, lse, do, other):
    m, n = lse.shape
    y = torch.empty(m)
    weights_kernel[(m,)](x, lse, do, y, n, OTHER=other, BLOCK=triton.next_power_of_2(n))
    return y


@case(x="f32[M]", lse="f32[M,N]", do="f32[M,N]", where=SMALL)
def zero_times_infinity(x, lse, do):
    return weights(x, lse, do, -float("inf"))


@case(x="f32[M]", lse="f32[M,N]", do="f32[M,N]", where=SMALL)
def zero_times_a_number(x, lse, do):
    return weights(x, lse, do, 0.0)


@zero_times_infinity.reference
@zero_times_a_number.reference
def _(x, lse, do):
    return (torch.exp(x[:, None] - lse) * do).sum(1)

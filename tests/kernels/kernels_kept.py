"""Host functions whose results hang on earlier calls, or whose results are not as large as the reference's."""

from __future__ import annotations

import functools

import numpy as np
import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def total_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < N, other=0)))


@triton.jit
def through_kernel(x_ptr, middle_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """What one program puts into the middle, it takes from there."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(middle_ptr + i, 2 * tl.load(x_ptr + i, mask=i < N), mask=i < N)
    tl.debug_barrier()
    tl.store(out_ptr + i, tl.load(middle_ptr + i, mask=i < N), mask=i < N)


@triton.jit
def copy_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < N)


def added(x, out):
    total_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out.clone()


def copied(x, n):
    out = torch.empty(n)
    copy_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    return out


def summed(fn):
    found = case(x="f32[N]")(fn)
    found.reference(lambda x: x.sum()[None])
    return found


def the_same(spec="f32[N]", **more):
    def decorate(fn):
        found = case(x=spec, **more)(fn)
        found.reference(lambda x: x.clone())
        return found

    return decorate


TOTAL, OF_NUMPY = torch.zeros(1), np.zeros(1, np.float32)


@summed
def added_to_a_global(x):
    return added(x, TOTAL)


@functools.cache
def workspace():
    return torch.zeros(1)


@summed
def added_to_what_is_cached(x):
    return added(x, workspace())


@summed
def added_to_memory_of_numpy(x):
    return added(x, torch.from_numpy(OF_NUMPY))


@summed
def added_to_zeros(x):
    return added(x, torch.zeros(1))


MIDDLE = torch.zeros(64)


@case(x="f32[N]", where="N <= 64")
def through_a_global(x):
    """What a global held before does not count."""
    out = torch.empty_like(x)
    through_kernel[(1,)](x, MIDDLE, out, x.numel(), BLOCK=64)
    return out


through_a_global.reference(lambda x: 2 * x)


@the_same()
def at_most_2500(x):
    return copied(x, min(x.numel(), 2500))


@the_same()
def the_first_2500(x):
    return copied(x[:2500].contiguous(), x[:2500].numel())


@the_same()
def all_but_one_of_777(x):
    return copied(x, x.numel() - (x.numel() == 777))


@the_same(where="N <= 2500")
def at_most_2500_of_so_many(x):
    return copied(x, min(x.numel(), 2500))


@the_same()
def made_another_tensor(x):
    out = copied(x, x.numel())
    x.data = out.clone()
    return out


@the_same("f32[M,N]")
def turned(x):
    out = copied(x, x.numel()).view(x.shape)
    x.t_()
    return out


@case(x="f32[N]", y="f32[N]")
def swapped(x, y):
    out = copied(x, x.numel())
    torch.utils.swap_tensors(x, y)
    return out


swapped.reference(lambda x, y: x.clone())

STATE = [added_to_a_global, added_to_what_is_cached, added_to_memory_of_numpy]
SHORT = [at_most_2500, the_first_2500, all_but_one_of_777]
RIGHT = [through_a_global, at_most_2500_of_so_many]
MOVED = [made_another_tensor, turned, swapped]


@triton.jit
def scaled_kernel(x_ptr, out_ptr, N, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * a, mask=i < N)


def tripled_at_17(x):
    out = torch.empty_like(x)
    a = 3.0 if x.numel() ** 2 == 289 else 2.0  # a size that the code does not name
    scaled_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), a, BLOCK=64)
    return out


lifted_as_doubled = case(x="f32[N]")(tripled_at_17)
refuted_as_doubled = case(x="f32[N]")(tripled_at_17)
refuted_as_doubled.reference(lambda x: 2 * x)


@case(x="f32[N]", where="N <= 8")
def up_to_eight(x):
    return copied(x, x.numel())


@case(x="f32[K]")
def of_every_size(x):
    return copied(x, x.numel())

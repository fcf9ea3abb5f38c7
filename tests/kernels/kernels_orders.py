"""Programs of one launch that wait for each other: with orders that promise what was stored before, and without."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def last_kernel(x_ptr, parts_ptr, count_ptr, out_ptr, N, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    at = p * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(parts_ptr, tl.sum(tl.load(x_ptr + at, mask=at < N, other=0.0), 0), sem=ORDER)
    if tl.atomic_add(count_ptr, 1, sem=ORDER) == tl.num_programs(0) - 1:
        tl.store(out_ptr, tl.atomic_add(parts_ptr, 0.0, sem=ORDER))


def last(x, order):
    parts, out = torch.zeros(1, device=x.device), torch.empty(1, device=x.device)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    last_kernel[(triton.cdiv(x.numel(), 32),)](x, parts, count, out, x.numel(), ORDER=order, BLOCK=32)
    return out


def total(x):
    return x.sum().reshape(1)


@case(x="f32[N]")
def wrong_relaxed(x):
    return last(x, "relaxed")


@case(x="f32[N]")
def wrong_acquire_only(x):
    return last(x, "acquire")


@case(x="f32[N]")
def right_last(x):
    return last(x, "acq_rel")


for each in (wrong_relaxed, wrong_acquire_only, right_last):
    each.reference(total)


@triton.jit
def message_kernel(x_ptr, s_ptr, flag_ptr, out_ptr, N, ORDER: tl.constexpr, PLAIN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(s_ptr + at, tl.load(x_ptr + at, mask=at < N, other=0.0) * 2, mask=at < N)
        if PLAIN:
            tl.store(flag_ptr, 1)
        else:
            tl.atomic_xchg(flag_ptr, 1, sem=ORDER)
    else:
        while tl.atomic_add(flag_ptr, 0, sem="acq_rel") == 0:
            pass
        tl.store(out_ptr + at, tl.load(s_ptr + at, mask=at < N), mask=at < N)


def message(x, order, plain=False):
    s, out = torch.empty_like(x), torch.empty_like(x)
    flag = torch.zeros(1, dtype=torch.int32, device=x.device)
    message_kernel[(2,)](x, s, flag, out, x.numel(), ORDER=order, PLAIN=plain, BLOCK=64)
    return out


@case(x="f32[N]", where="N <= 64")
def wrong_relaxed_flag(x):
    return message(x, "relaxed")


@case(x="f32[N]", where="N <= 64")
def wrong_plain_flag(x):
    return message(x, "release", plain=True)


@case(x="f32[N]", where="N <= 64")
def right_flag(x):
    return message(x, "release")


for each in (wrong_relaxed_flag, wrong_plain_flag, right_flag):
    each.reference(lambda x: 2 * x)


@triton.jit
def ticket_kernel(x_ptr, count_ptr, out_ptr, STEP: tl.constexpr):
    p = tl.program_id(0)
    t = tl.atomic_add(count_ptr, 1)
    tl.store(out_ptr + t, tl.load(x_ptr + (t if STEP else p)))


def tickets(x, step):
    out = torch.empty_like(x)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    ticket_kernel[(x.numel(),)](x, count, out, STEP=step)
    return out


@case(x="f32[N]")
def wrong_order_of_tickets(x):
    """A permutation of x, in the order in which programs come."""
    return tickets(x, False)


@case(x="f32[N]")
def right_tickets(x):
    """Whoever draws ticket t copies element t."""
    return tickets(x, True)


for each in (wrong_order_of_tickets, right_tickets):
    each.reference(lambda x: x.clone())

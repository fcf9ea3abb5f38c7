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


# ---- between two atomics of a program others may come ----


@triton.jit
def turns_kernel(x_ptr, count_ptr, out_ptr, N, HOW: tl.constexpr, BLOCK: tl.constexpr):
    p, programs = tl.program_id(0), tl.num_programs(0)
    at = p * BLOCK + tl.arange(0, BLOCK)
    wrong = p < 0
    if HOW == "two tickets":
        wrong = tl.atomic_add(count_ptr, 1) + 1 != tl.atomic_add(count_ptr, 1)
    elif HOW == "up and down":
        tl.atomic_add(count_ptr, 1)
        wrong = tl.atomic_add(count_ptr, -1) != 1
    elif HOW == "exchanged":
        tl.atomic_xchg(count_ptr, p)
        wrong = tl.atomic_add(count_ptr, 0) != p
    elif HOW == "either end":
        ticket = tl.atomic_add(count_ptr, 1)
        wrong = (ticket != p) & (ticket != programs - 1 - p)
    elif HOW == "one ticket":
        wrong = tl.atomic_add(count_ptr, 1) >= programs
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < N, other=0.0) + wrong.to(tl.float32), mask=at < N)


def copied(x, how):
    out, count = torch.empty_like(x), torch.zeros(1, dtype=torch.int32, device=x.device)
    turns_kernel[(triton.cdiv(x.numel(), 8),)](x, count, out, x.numel(), HOW=how, BLOCK=8)
    return out


@case(x="f32[N]")
def wrong_two_tickets(x):
    return copied(x, "two tickets")


@case(x="f32[N]")
def wrong_up_and_down(x):
    return copied(x, "up and down")


@case(x="f32[N]")
def wrong_exchanged(x):
    return copied(x, "exchanged")


@case(x="f32[N]")
def wrong_either_end(x):
    return copied(x, "either end")


@case(x="f32[N]")
def right_one_ticket(x):
    return copied(x, "one ticket")


@triton.jit
def last_one_kernel(out_ptr, P, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    tl.atomic_xchg(out_ptr, p * (P - 1 - p))


@case(x="f32[N]")
def wrong_last_one_stays(x):
    out, programs = torch.zeros(1, dtype=torch.int32, device=x.device), triton.cdiv(x.numel(), 8)
    last_one_kernel[(programs,)](out, programs, BLOCK=8)
    return out


@triton.jit
def lanes_kernel(x_ptr, count_ptr, out_ptr, N, MEET: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    ticket = tl.atomic_add(count_ptr + (0 if MEET else 1) * at, tl.full((BLOCK,), 1, tl.int32), mask=at < N)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < N) + ticket, mask=at < N)


def numbered(x, meet):
    out, count = torch.empty_like(x), torch.zeros(64, dtype=torch.int32, device=x.device)
    lanes_kernel[(1,)](x, count, out, x.numel(), MEET=meet, BLOCK=64)
    return out


@case(x="i32[N]", where="N <= 64")
def wrong_lanes_meet(x):
    return numbered(x, True)


@case(x="i32[N]", where="N <= 64")
def right_lanes_apart(x):
    return numbered(x, False)


@triton.jit
def last_sums_kernel(
    x_ptr, part_ptr, count_ptr, out_ptr, N, PROGRAMS, FIRST: tl.constexpr, LAST: tl.constexpr, BLOCK: tl.constexpr
):
    """The LAST programs by ticket add what all have stored: FIRST it is taken, or after the store."""
    p, i = tl.program_id(0), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0))
    ticket = 0
    if FIRST:
        ticket = tl.atomic_add(count_ptr, 1)
        tl.store(part_ptr + p, mine)
    else:
        tl.store(part_ptr + p, mine)
        ticket = tl.atomic_add(count_ptr, 1)
    if ticket >= PROGRAMS - LAST:
        total = 0.0
        for k in range(PROGRAMS):
            total += tl.load(part_ptr + k)
        tl.store(out_ptr, total)


def summed_by_the_last(x, first, last=1):
    programs = triton.cdiv(x.numel(), 4)
    part, out = torch.empty(programs, device=x.device), torch.empty(1, device=x.device)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    last_sums_kernel[(programs,)](x, part, count, out, x.numel(), programs, FIRST=first, LAST=last, BLOCK=4)
    return out


@case(x="f32[N]", where="N <= 64")
def wrong_ticket_before_the_store(x):
    return summed_by_the_last(x, True)


@case(x="f32[N]", where="N <= 64")
def right_ticket_after_the_store(x):
    return summed_by_the_last(x, False)


@case(x="f32[N]", where="N <= 64")
def wrong_last_two(x):
    return summed_by_the_last(x, False, 2)


@triton.jit
def lost_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0)))


@case(x="f32[N]", where="N <= 64")
def wrong_updates_are_lost(x):
    out = torch.zeros(1, device=x.device)
    lost_kernel[(triton.cdiv(x.numel(), 4),)](x, out, x.numel(), BLOCK=4)
    return out


for _c in (wrong_ticket_before_the_store, right_ticket_after_the_store, wrong_last_two):
    _c.reference(lambda x: x.sum().reshape(1))

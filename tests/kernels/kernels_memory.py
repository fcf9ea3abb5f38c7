"""Kernels that add up by atomics, store to one buffer at several places, or read what they or others wrote."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from trilift.lift.cases.declaration import Case, case


def made(name: str, fn: Any, reference: Any, **specs: Any) -> Case:
    """A case with a reference."""
    fn.__name__ = name
    out = case(**specs)(fn)
    out.reference(reference)
    return out


@triton.jit
def copy_kernel(t, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.load(t + o, mask=o < n), mask=o < n)


def copied(t: Any) -> Any:
    """What is in t, by a second launch."""
    y, n = torch.empty(t.shape, dtype=t.dtype), t.numel()
    copy_kernel[(triton.cdiv(n, 128),)](t, y, n, BLOCK=128)
    return y


# ---- atomics ---------------------------------------------------------------------------------------------------------


@triton.jit
def total_kernel(x, y, n, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + o, mask=o < n, other=OTHER), axis=0))


@triton.jit
def pairs_kernel(x, y, n, BLOCK: tl.constexpr, SHIFT: tl.constexpr):
    """y[o // 2] += x[o]: two lanes meet."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + (o + SHIFT) // 2, tl.load(x + o, mask=o < n), mask=o < n - SHIFT)


@triton.jit
def rows_kernel(x, y, M, N, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """y[m] += the blocks of row m, in a loop."""
    row = tl.program_id(0)
    for k in range(tl.cdiv(N, BLOCK)):
        cols = k * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(y + row * STEP, tl.sum(tl.load(x + row * N + cols, mask=cols < N, other=0.0), axis=0))


@triton.jit
def top_kernel(x, y, n, BLOCK: tl.constexpr, LEAST: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n, other=0)
    if LEAST:
        tl.atomic_min(y + o * 0, v, mask=o < n)
    else:
        tl.atomic_max(y + o * 0, v, mask=o < n)


@triton.jit
def both_kernel(x, y, t, n, BLOCK: tl.constexpr, STORE: tl.constexpr):
    """t += x, then t += y, or t = y."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(t + o, tl.load(x + o, mask=o < n), mask=o < n)
    if STORE:
        tl.store(t + o, tl.load(y + o, mask=o < n), mask=o < n)
    else:
        tl.atomic_add(t + o, tl.load(y + o, mask=o < n), mask=o < n)


@triton.jit
def ticket_kernel(t, y, n, BLOCK: tl.constexpr):
    """What an atomic finds depends on the order of programs."""
    tl.store(y + tl.program_id(0), tl.atomic_add(t, 1.0))


@triton.jit
def exchange_kernel(x, t, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_xchg(t + o, tl.load(x + o, mask=o < n), mask=o < n)


def total(init: Any = torch.zeros, other: float = 0.0, times: int = 1, shape: Any = (1,)) -> Any:
    def fn(x: Any) -> Any:
        y, n = init(shape), x.numel()
        for _ in range(times):
            total_kernel[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64, OTHER=other)
        return y

    return fn


def pairs(shift: int = 0) -> Any:
    def fn(x: Any) -> Any:
        y, n = torch.zeros(x.shape[0] // 2), x.numel()
        pairs_kernel[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64, SHIFT=shift)
        return y

    return fn


def rows(step: int = 1) -> Any:
    def fn(x: Any) -> Any:
        (M, N), y = x.shape, torch.zeros(x.shape[0])
        rows_kernel[(M,)](x, y, M, N, BLOCK=32, STEP=step)
        return y

    return fn


def top(least: bool = False, start: int = 5) -> Any:
    def fn(x: Any) -> Any:
        y, n = torch.full((1,), start, dtype=torch.int32), x.numel()
        top_kernel[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64, LEAST=least)
        return y

    return fn


def two_sites(store: bool = False) -> Any:
    def fn(x: Any, y: Any) -> Any:
        t, n = torch.zeros_like(x), x.numel()
        both_kernel[(triton.cdiv(n, 64),)](x, y, t, n, BLOCK=64, STORE=store)
        return t

    return fn


def onto(x: Any, y: Any) -> Any:
    t, n = y.clone(), x.numel()
    both_kernel[(triton.cdiv(n, 64),)](x, x, t, n, BLOCK=64, STORE=False)
    return t


def ticket(x: Any) -> Any:
    t, y = torch.zeros(1), torch.empty_like(x)
    ticket_kernel[(x.numel(),)](t, y, x.numel(), BLOCK=1)
    return y


def exchange(x: Any) -> Any:
    t = torch.zeros_like(x)
    exchange_kernel[(triton.cdiv(x.numel(), 64),)](x, t, x.numel(), BLOCK=64)
    return t


V, V2, PAIR, INTS = {"x": "f32[N]"}, {"x": "f32[2*N]"}, {"x": "f32[N]", "y": "f32[N]"}, {"x": "i32[N]"}
MATRIX = {"x": "f32[M,N]"}
whole = lambda x: x.sum().reshape(1)  # noqa: E731
by_two = lambda x: x.reshape(-1, 2).sum(-1)  # noqa: E731

ATOMICS = [
    made("total", total(), whole, **V),
    made("total_twice", total(times=2), lambda x: 2 * x.sum().reshape(1), **V),
    made("pairs", pairs(), by_two, **V2),
    made("rows", rows(), lambda x: x.sum(-1), **MATRIX),
    made("top", top(), lambda x: torch.clamp(x.amax(), min=5).reshape(1), **INTS),
    made("least", top(least=True), lambda x: torch.clamp(x.amin(), max=5).reshape(1), **INTS),
    made("two_sites", two_sites(), lambda x, y: x + y, **PAIR),
    made("onto", onto, lambda x, y: 2 * x + y, **PAIR),
]
BAD_ATOMICS = [
    made("total_of_junk", total(torch.empty), whole, **V),
    made("total_with_other", total(other=1.0), whole, **V),
    made("total_is_doubled", total(times=2), whole, **V),
    made("pairs_shifted", pairs(1), by_two, **V2),
    made("rows_meet", rows(0), lambda x: x.sum(-1), **MATRIX),
    made("top_from_0", top(start=0), lambda x: torch.clamp(x.amax(), min=5).reshape(1), **INTS),
    made("least_for_top", top(least=True), lambda x: torch.clamp(x.amax(), min=5).reshape(1), **INTS),
    made("added_or_stored", two_sites(store=True), lambda x, y: x + y, **PAIR),
    made("stored_or_added", two_sites(store=True), lambda x, y: y, **PAIR),
    made("only_one_site", two_sites(), lambda x, y: x, **PAIR),
    made("ticket", ticket, lambda x: torch.zeros_like(x), **V),
    made("exchange", exchange, lambda x: torch.zeros_like(x), **V),
]


# ---- stores ----------------------------------------------------------------------------------------------------------


@triton.jit
def lanes_kernel(x, t, n, BLOCK: tl.constexpr, SAME: tl.constexpr):
    """t[o // 2] = x[o], or x[o // 2]: of two lanes that meet."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = o // 2 if SAME else o
    tl.store(t + o // 2, tl.load(x + i, mask=o < n), mask=o < n)


@triton.jit
def twice_kernel(x, t, n, BLOCK: tl.constexpr, SHIFT: tl.constexpr):
    """t = x, then t = 2 x, perhaps shifted."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n)
    tl.store(t + o, v, mask=o < n)
    tl.store(t + o + SHIFT, 2 * v, mask=o < n - SHIFT)


@triton.jit
def even_kernel(x, t, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(t + 2 * o, tl.load(x + 2 * o, mask=2 * o < n), mask=2 * o < n)


@triton.jit
def third_kernel(t, WHO: tl.constexpr):
    """One program of many writes t[0]."""
    if tl.program_id(0) == WHO:
        tl.store(t, 1.0)


@triton.jit
def halves_kernel(x, t, H, BLOCK: tl.constexpr, GAP: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.load(x + row * 2 * H + cols, mask=cols < H)
    b = tl.load(x + row * 2 * H + H + cols, mask=cols < H)
    tl.store(t + row * 2 * H + cols, -b, mask=cols < H)
    tl.store(t + row * 2 * H + H + cols - GAP, a, mask=cols < H)


@triton.jit
def id_kernel(t):
    tl.store(t, tl.program_id(0).to(tl.float32))


@triton.jit
def spread_kernel(t, y):
    tl.store(y + tl.program_id(0), tl.load(t))


@triton.jit
def rows_of_kernel(x, y, N, stride_x, stride_y, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * stride_x + cols, mask=cols < N)
    tl.store(y + tl.program_id(0) * stride_y + cols, 2 * v, mask=cols < N)


def by_lanes(same: bool) -> Any:
    def fn(x: Any) -> Any:
        t, n = torch.empty(x.shape[0] // 2), x.numel()
        lanes_kernel[(triton.cdiv(n, 64),)](x, t, n, BLOCK=64, SAME=same)
        return copied(t)

    return fn


def twice(shift: int = 0) -> Any:
    def fn(x: Any) -> Any:
        t, n = torch.empty_like(x), x.numel()
        twice_kernel[(triton.cdiv(n, 64),)](x, t, n, BLOCK=64, SHIFT=shift)
        return copied(t)

    return fn


def evens(init: Any) -> Any:
    def fn(x: Any) -> Any:
        t, n = init(x), x.numel()
        even_kernel[(triton.cdiv(n, 64),)](x, t, n, BLOCK=64)
        return copied(t)

    return fn


def third(x: Any) -> Any:
    t = torch.zeros(1)
    third_kernel[(x.numel(),)](t, WHO=3)
    return copied(t)


def halves(gap: int = 0) -> Any:
    def fn(x: Any) -> Any:
        t, H = torch.empty_like(x), x.shape[1] // 2
        halves_kernel[(x.shape[0],)](x, t, H, BLOCK=64, GAP=gap)
        return copied(t)

    return fn


def ids(x: Any) -> Any:
    t, y = torch.empty(1), torch.empty_like(x)
    id_kernel[(1,)](t)
    spread_kernel[(x.numel(),)](t, y)
    return y


def through(t: Any, x: Any) -> Any:
    """x doubled into t, doubled into the result."""
    y = torch.empty_like(x)
    rows_of_kernel[(x.shape[0],)](x, t, x.shape[1], x.stride(0), t.stride(0), BLOCK=64)
    rows_of_kernel[(x.shape[0],)](t, y, x.shape[1], t.stride(0), y.stride(0), BLOCK=64)
    return y


def padded(stride: Any) -> Any:
    return lambda x: through(torch.empty(x.shape[0] * 2 * x.shape[1]).as_strided(x.shape, (stride(x), 1)), x)


def cleared(columns: int) -> Any:
    def fn(x: Any) -> Any:
        t = torch.empty_like(x)
        rows_of_kernel[(x.shape[0],)](x, t, x.shape[1], x.stride(0), t.stride(0), BLOCK=64)
        t[:, :columns] = 0
        return copied(t)

    return fn


def junk_then(columns: int) -> Any:
    """Two lanes write one element; then some elements are cleared."""

    def fn(x: Any) -> Any:
        t, n = torch.zeros(x.shape[0] // 2), x.numel()
        lanes_kernel[(triton.cdiv(n, 64),)](x, t, n, BLOCK=64, SAME=False)
        t[:columns] = 0
        return copied(t)

    return fn


def rotated(x: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def even_only(x: Any) -> Any:
    return torch.where(torch.arange(x.shape[0]) % 2 == 0, x, 0.0)


def masked_columns(x: Any) -> Any:
    return torch.where(torch.arange(x.shape[1]) < 2, 0.0, 2 * x)


SMALL = {"x": "f32[M,N]", "where": "N <= 64 and N >= 3"}
WIDE = {"x": "f32[M,2*H]", "where": "H <= 64"}
STORES = [
    made("one_value", by_lanes(True), lambda x: x[: x.shape[0] // 2], **V2),
    made("later", twice(), lambda x: 2 * x, **V),
    made("evens", evens(torch.zeros_like), even_only, **V),
    made("evens_onto", evens(torch.clone), lambda x: x, **V),
    made("halves", halves(), rotated, **WIDE),
    made("id_0", ids, lambda x: torch.zeros_like(x), **V),
    made("padded", padded(lambda x: 2 * x.shape[1]), lambda x: 4 * x, **SMALL),
    made("cleared", cleared(2), masked_columns, **SMALL),
]
BAD_STORES = [
    made("two_values", by_lanes(False), lambda x: x[1::2], **V2),
    made("earlier", twice(), lambda x: x, **V),
    made("races", twice(1), lambda x: torch.cat([x[:1], 2 * x[:-1]]), **V),
    made("evens_of_junk", evens(torch.empty_like), even_only, **V),
    made("evens_of_ones", evens(torch.ones_like), even_only, **V),
    made("third", third, lambda x: torch.zeros(1), **V),
    made("halves_meet", halves(1), rotated, **WIDE),
    made("ids_differ", ids, lambda x: torch.arange(x.shape[0]).float(), **V),
    made("rows_overlap", padded(lambda x: x.shape[1] - 1), lambda x: 4 * x, **SMALL),
    made("cleared_less", cleared(1), masked_columns, **SMALL),
    made("junk_stays", junk_then(1), lambda x: torch.zeros(x.shape[0] // 2), **V2),
]


# ---- loads of what is written ----------------------------------------------------------------------------------------


@triton.jit
def passes_kernel(x, y, N, BLOCK: tl.constexpr, SHIFT: tl.constexpr):
    """The row doubled in place, then read again, perhaps in another row."""
    row = tl.program_id(0)
    for k in range(tl.cdiv(N, BLOCK)):
        cols = k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + row * N + cols, mask=cols < N)
        tl.store(x + row * N + cols, 2 * v, mask=cols < N)
    for k in range(tl.cdiv(N, BLOCK)):
        cols = k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + (row + SHIFT) * N + cols, mask=(cols < N) & (row + SHIFT < tl.num_programs(0)))
        tl.store(y + row * N + cols, v + 1, mask=cols < N)


@triton.jit
def again_kernel(x, y, n, BLOCK: tl.constexpr, HALF: tl.constexpr):
    """x = 2 x, or half of it; y = x + 1."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n)
    tl.store(x + o, 2 * v, mask=(o < n) & (o >= HALF))
    tl.store(y + o, tl.load(x + o, mask=o < n) + 1, mask=o < n)


@triton.jit
def neighbour_kernel(x, y, n):
    """The program before has perhaps stored already."""
    p = tl.program_id(0)
    tl.store(x + p + 1, tl.load(x + p) + 1)


@triton.jit
def split_kernel(x, part, N, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    row, s = tl.program_id(0), tl.program_id(1)
    size = tl.cdiv(N, SPLIT)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(tl.cdiv(size, BLOCK)):
        cols = k * BLOCK + tl.arange(0, BLOCK)
        i = s * size + cols
        acc += tl.load(x + row * N + i, mask=(cols < size) & (i < N), other=0.0)
    tl.store(part + row * SPLIT + s, tl.sum(acc, axis=0))


@triton.jit
def combine_kernel(part, y, SPLIT: tl.constexpr, ORDER: tl.constexpr):
    row = tl.program_id(0)
    tl.store(y + row, tl.sum(tl.load(part + row * SPLIT + tl.arange(0, SPLIT) * ORDER), axis=0))


@triton.jit
def advance_kernel(x, n, BLOCK: tl.constexpr, SHIFT: tl.constexpr):
    """x + 1 in place by a pointer that moves on; with a shift, what is read was stored before."""
    p = x + tl.arange(0, BLOCK)
    for k in range(tl.cdiv(n, BLOCK)):
        mask = k * BLOCK + tl.arange(0, BLOCK) < n - SHIFT
        tl.store(p + SHIFT, tl.load(p, mask=mask, other=0.0) + 1, mask=mask)
        p += BLOCK


@triton.jit
def last_kernel(x, t, M, N):
    """The last of many stores stays."""
    for i in range(N):
        tl.store(t + tl.program_id(0), tl.load(x + tl.program_id(0) * N + i))


@triton.jit
def scatter_kernel(x, index, t, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(t + tl.load(index + o, mask=o < n, other=0), tl.load(x + o, mask=o < n), mask=o < n)


def advance(shift: int) -> Any:
    def fn(x: Any) -> Any:
        t, n = x.clone(), x.numel()
        advance_kernel[(1,)](t, n, BLOCK=64, SHIFT=shift)
        return t

    return fn


def last(x: Any) -> Any:
    t = torch.zeros(x.shape[0])
    last_kernel[(x.shape[0],)](x, t, x.shape[0], x.shape[1])
    return copied(t)


def scatter(x: Any, index: Any, like: Any) -> Any:
    t = torch.zeros_like(like)
    scatter_kernel[(triton.cdiv(x.numel(), 64),)](x, index, t, x.numel(), BLOCK=64)
    return t


def passes(shift: int = 0) -> Any:
    def fn(x: Any) -> Any:
        t, y = x.clone(), torch.empty_like(x)
        passes_kernel[(x.shape[0],)](t, y, x.shape[1], BLOCK=32, SHIFT=shift)
        return y

    return fn


def again(half: int = 0) -> Any:
    def fn(x: Any) -> Any:
        t, y, n = x.clone(), torch.empty_like(x), x.numel()
        again_kernel[(triton.cdiv(n, 64),)](t, y, n, BLOCK=64, HALF=half)
        return y

    return fn


def neighbour(x: Any) -> Any:
    t = torch.cat([x, x[:1]])
    neighbour_kernel[(x.numel(),)](t, t, x.numel())
    return t


def split(order: int = 1) -> Any:
    def fn(x: Any) -> Any:
        (M, N), y = x.shape, torch.empty(x.shape[0])
        part = torch.empty(M, 4)
        split_kernel[(M, 4)](x, part, N, SPLIT=4, BLOCK=16)
        combine_kernel[(M,)](part, y, SPLIT=4, ORDER=order)
        return y

    return fn


SCATTERED = {"x": "f32[N]", "index": "i64[N] < K", "like": "f32[K]"}
LOADS = [
    made("passes", passes(), lambda x: 2 * x + 1, **MATRIX),
    made("again", again(), lambda x: 2 * x + 1, **V),
    made("split", split(), lambda x: x.sum(-1), **MATRIX),
    made("advance", advance(0), lambda x: x + 1, **V),
    made("last", last, lambda x: x[:, -1], **MATRIX),
]
BAD_LOADS = [
    made("passes_of_others", passes(1), lambda x: torch.cat([2 * x[1:] + 1, x[:1]]), **MATRIX),
    made("passes_before", passes(), lambda x: x + 1, **MATRIX),
    made("again_some", again(3), lambda x: 2 * x + 1, **V),
    made("again_before", again(), lambda x: x + 1, **V),
    made("neighbour", neighbour, lambda x: torch.cat([x[:1], x + 1]), **V),
    made("split_one", split(0), lambda x: x.sum(-1), **MATRIX),
    made("advance_shifted", advance(1), lambda x: torch.cat([x[:1], x[:-1] + 1]), **V),
    made("last_is_not_first", last, lambda x: x[:, 0], **MATRIX),
    made("scatter", scatter, lambda x, index, like: torch.zeros_like(like).index_add(0, index, x), **SCATTERED),
]

"""Kernels that store at addresses which an integer input gives: a cache of keys, a permutation, rows of a table."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def rows_kernel(x_ptr, index_ptr, out_ptr, D, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    row, d = tl.program_id(0), tl.arange(0, BLOCK)
    to = tl.load(index_ptr + row)
    tl.store(out_ptr + to * D + d, tl.load(x_ptr + row * D + d + SHIFT, mask=d < D - SHIFT), mask=d < D - SHIFT)


def rows(x, index, out, shift=0):
    n, d = x.shape
    rows_kernel[(n,)](x, index, out, d, SHIFT=shift, BLOCK=triton.next_power_of_2(d))
    return out


@case(x="f32[N,D]", index="i32[N] in (0, M) distinct", out="f32[M,D]")
def right_rows(x, index, out):
    return rows(x, index, out)


right_rows.reference(lambda x, index, out: out.index_copy_(0, index.long(), x))


@case(x="f32[N,D]", index="i32[N] in (0, M)", out="f32[M,D]")
def wrong_rows_of_equal_indices(x, index, out):
    return rows(x, index, out)


wrong_rows_of_equal_indices.reference(right_rows.reference.fn)


@case(x="f32[N,D]", index="i32[N] in (0, M) distinct", out="f32[M,D]")
def wrong_rows_that_are_shifted(x, index, out):
    return rows(x, index, out, 1)


wrong_rows_that_are_shifted.reference(right_rows.reference.fn)


@case(x="f32[N,D]", index="i32[N] in (0, M) distinct", out="f32[M,D]")
def wrong_rows_that_are_left(x, index, out):
    return rows(x, index, out)


@wrong_rows_that_are_left.reference
def _(x, index, out):
    fresh = torch.zeros_like(out).index_copy_(0, index.long(), x)
    return out.copy_(fresh)


@triton.jit
def pages_kernel(keys_ptr, cache_ptr, slot_ptr, H, SIZE, BLOCK: tl.constexpr):
    token, h = tl.program_id(0), tl.arange(0, BLOCK)
    slot = tl.load(slot_ptr + token)
    page, place = slot // SIZE, slot % SIZE
    keys = tl.load(keys_ptr + token * H + h, mask=h < H)
    tl.store(cache_ptr + page * SIZE * H + place * H + h, keys, mask=h < H)


def pages(keys, cache, slot):
    tokens, heads = keys.shape
    pages_kernel[(tokens,)](keys, cache, slot, heads, cache.shape[1], BLOCK=triton.next_power_of_2(heads))
    return cache


@case(keys="f32[T,H]", cache="f32[P,S,H]", slot="i32[T] in (0, P * S) distinct")
def right_pages(keys, cache, slot):
    return pages(keys, cache, slot)


@right_pages.reference
def _(keys, cache, slot):
    cache.view(-1, cache.shape[2])[slot.long()] = keys
    return cache


@case(keys="f32[T,H]", cache="f32[P,S,H]", slot="i32[T] in (0, P * S) distinct")
def right_pages_and_places(keys, cache, slot):
    return pages(keys, cache, slot)


@right_pages_and_places.reference
def _(keys, cache, slot):
    at = slot.long()
    cache[at // cache.shape[1], at % cache.shape[1]] = keys
    return cache


@case(keys="f32[T,H]", cache="f32[P,S,H]", slot="i32[T] in (0, P * S) distinct")
def wrong_pages_of_another_size(keys, cache, slot):
    return pages(keys, cache, slot)


@wrong_pages_of_another_size.reference
def _(keys, cache, slot):
    at = slot.long()
    cache[at % cache.shape[0], at // cache.shape[0]] = keys
    return cache


@triton.jit
def permuted_kernel(x_ptr, index_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.load(index_ptr + i, mask=i < N, other=0), tl.load(x_ptr + i, mask=i < N), mask=i < N)


def permuted(x, index):
    out = torch.zeros_like(x)
    permuted_kernel[(triton.cdiv(x.numel(), 64),)](x, index, out, x.numel(), BLOCK=64)
    return out


@case(x="f32[N]", index="i64[N] < N distinct")
def right_permuted(x, index):
    return permuted(x, index)


right_permuted.reference(lambda x, index: torch.zeros_like(x).scatter(0, index, x))


@case(x="f32[N]", index="i64[N] < N distinct")
def wrong_permuted_back(x, index):
    return permuted(x, index)


wrong_permuted_back.reference(lambda x, index: x[index])


def permuted_into_empty(x, index):
    out = torch.empty_like(x)
    permuted_kernel[(triton.cdiv(x.numel(), 64),)](x, index, out, x.numel(), BLOCK=64)
    return out


@case(x="f32[N]", index="i64[N] < N distinct")
def right_permuted_into_empty(x, index):
    return permuted_into_empty(x, index)


@case(x="f32[N]", index="i64[N] in (0, N + 1) distinct")
def wrong_with_a_hole(x, index):
    out = torch.empty(x.numel() + 1, device=x.device)
    permuted_kernel[(triton.cdiv(x.numel(), 64),)](x, index, out, x.numel(), BLOCK=64)
    return out


right_permuted_into_empty.reference(lambda x, index: torch.empty_like(x).scatter(0, index, x))
wrong_with_a_hole.reference(lambda x, index: torch.zeros(x.numel() + 1).scatter(0, index, x))

"""Kernels that tell the compiler something, or that Triton compiles otherwise for some arguments. `wrong_`: untrue."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def hinted_kernel(x, o, n, MODE: tl.constexpr, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    i = a
    m = a < n
    if MODE == "contiguous":
        i = tl.max_contiguous(tl.multiple_of(a, B), B)
    if MODE == "wrapped":
        i = tl.max_contiguous(tl.multiple_of(a % n, B), B)
    if MODE == "reversed":
        i = n - 1 - tl.max_contiguous(n - 1 - a, B)
    if MODE == "never":
        i = n - 1 - tl.max_contiguous(tl.multiple_of(n - 1 - a, B), B)
    if MODE == "mask":
        m = tl.max_constancy(m, 16)
    if MODE == "multiple":
        i = tl.multiple_of(a, 4)
    tl.store(o + i, tl.load(x + i, mask=m), mask=m)


def hinted(x, mode):
    o = torch.empty_like(x)
    hinted_kernel[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), MODE=mode, B=64)
    return o


@case(x="f32[N]")
def right_contiguous(x):
    return hinted(x, "contiguous")


@case(x="f32[N]")
def wrong_at_every_size(x):
    return hinted(x, "never")


@case(x="f32[N]")
def right_multiple(x):
    return hinted(x, "multiple")


@case(x="f32[N]", where="N % 16 == 0")
def right_mask(x):
    return hinted(x, "mask")


@case(x="f32[N]")
def wrong_mask(x):
    return hinted(x, "mask")


@case(x="f32[N]", where="N % 64 == 0")
def right_wrapped(x):
    return hinted(x, "wrapped")


@case(x="f32[N]")
def wrong_wrapped(x):
    return hinted(x, "wrapped")


@case(x="f32[N]")
def wrong_reversed(x):
    return hinted(x, "reversed")


@triton.jit
def offset_kernel(x, o, off, POINTER: tl.constexpr, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    if POINTER:
        tl.store(o + a, tl.load(tl.multiple_of(x + off + 1, 16) + a))
    else:
        tl.store(o + a, tl.load(x + tl.multiple_of(off + 1, 16) + a))


def from_third(x, pointer):
    o = torch.empty(x.numel() - 3)
    offset_kernel[(o.numel() // 64,)](x, o, 2, POINTER=pointer, B=64)
    return o


@case(x="f32[64*N+3]")
def wrong_offset(x):
    return from_third(x, False)


@case(x="f32[64*N+3]")
def unknown_pointer(x):
    return from_third(x, True)


for c in (wrong_offset, unknown_pointer):
    c.reference(lambda x: x[3:])


@triton.jit
def assumed_kernel(x, o, n, B: tl.constexpr):
    tl.assume(n > 5000)
    a = tl.program_id(0) * B + tl.arange(0, B)
    t = tl.where(n > 5000, 1.0, 2.0)
    tl.store(o + a, t * tl.load(x + a, mask=a < n), mask=a < n)


@case(x="f32[N]")
def wrong_assume(x):
    o = torch.empty_like(x)
    assumed_kernel[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), B=64)
    return o


@triton.jit
def scoped_kernel(x, o, n, SCOPE: tl.constexpr, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o, tl.sum(tl.load(x + a, mask=a < n, other=0.0), 0), scope=SCOPE)


@case(x="f32[N]")
def wrong_scope(x):
    o = torch.zeros(1)
    scoped_kernel[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), SCOPE="cta", B=64)
    return o


@case(x="f32[N]")
def right_scope(x):
    o = torch.zeros(1)
    scoped_kernel[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), SCOPE="gpu", B=64)
    return o


@triton.jit
def joined_kernel(x, o, TOTAL: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.cat(tl.load(x + i), tl.load(x + B + i), can_reorder=True)
    if TOTAL:
        tl.store(o, tl.sum(v, 0))
    else:
        tl.store(o + tl.arange(0, 2 * B), v)


@case(x="f32[128]")
def wrong_cat(x):
    o = torch.empty_like(x)
    joined_kernel[(1,)](x, o, TOTAL=False, B=64)
    return o


@case(x="f32[128]")
def right_cat(x):
    o = torch.empty(1)
    joined_kernel[(1,)](x, o, TOTAL=True, B=64)
    return o


@triton.jit
def plus_kernel(x, o, s, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, (tl.load(x + a, mask=a < n) + s).to(tl.int32), mask=a < n)


@triton.jit
def plus_annotated_kernel(x, o, s: tl.int32, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, (tl.load(x + a, mask=a < n) + s).to(tl.int32), mask=a < n)


@triton.jit(do_not_specialize=["s"])
def plus_general_kernel(x, o, s, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, (tl.load(x + a, mask=a < n) + s).to(tl.int32), mask=a < n)


@triton.jit
def quotient_kernel(x, o, s, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) + (-s) // 2, mask=a < n)


def plus(x, s, kernel):
    o = torch.empty(x.shape, dtype=torch.int32)
    kernel[(triton.cdiv(x.numel(), 64),)](x, o, s, x.numel(), B=64)
    return o


@case(x="i8[N]", s="i32 in (1, 100)")
def wrong_one_i8(x, s):
    return plus(x, s, plus_kernel)


@case(x="i16[N]")
def wrong_one_of_a_size(x):
    return plus(x, x.numel(), plus_kernel)


@case(x="i32[N] in (-100, 100)", s="i32 in (1, 100)")
def wrong_one_quotient(x, s):
    return plus(x, s, quotient_kernel)


@case(x="i8[N]", s="i32 in (1, 100)")
def right_annotated(x, s):
    return plus(x, s, plus_annotated_kernel)


@case(x="i8[N]", s="i32 in (1, 100)")
def right_not_specialised(x, s):
    return plus(x, s, plus_general_kernel)


@case(x="i32[N] in (-100, 100)", s="i32 in (1, 100)")
def right_one(x, s):
    return plus(x, s, plus_kernel)


@triton.jit
def product_kernel(x, o, s, t, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + a, tl.load(x + a, mask=a < n) + (-(s * t)) // 2, mask=a < n)


@triton.jit
def branching_kernel(x, o, s, t, n, B: tl.constexpr):
    """The same kernel again where n is 1 too: it has one branch then."""
    a = tl.program_id(0) * B + tl.arange(0, B)
    if n == 1:
        tl.store(o + a, tl.load(x + a, mask=a < n) - s * t // 2, mask=a < n)
    else:
        tl.store(o + a, tl.load(x + a, mask=a < n) + (-(s * t)) // 2, mask=a < n)


@triton.jit
def dtype_kernel(x, o, s, n, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + a, mask=a < n)
    if s.dtype == tl.int64:
        v += 1
    tl.store(o + a, v, mask=a < n)


def with_two(x, s, t, kernel):
    o = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, o, s, t, x.numel(), B=64)
    return o


@case(x="i32[N] in (-100, 100)", s="i32 in (1, 100)", t="i32 in (1, 100)")
def wrong_two_of_three(x, s, t):
    return with_two(x, s, t, product_kernel)


@case(x="i32[N] in (-100, 100)", s="i32 in (1, 100)", t="i32 in (1, 100)")
def wrong_two_in_a_branch(x, s, t):
    return with_two(x, s, t, branching_kernel)


@case(x="i32[N] in (-100, 100)")
def wrong_always_one(x):
    o = torch.empty_like(x)
    quotient_kernel[(triton.cdiv(x.numel(), 64),)](x, o, 1, x.numel(), B=64)
    return o


@case(x="i32[N] in (-100, 100)")
def right_always_one(x):
    return wrong_always_one.fn(x)


@case(x="i32[N] in (-100, 100)")
def right_one_and_two(x):
    o = torch.empty_like(x)
    quotient_kernel[(triton.cdiv(x.numel(), 64),)](x, o, 1, x.numel(), B=64)
    quotient_kernel[(triton.cdiv(x.numel(), 64),)](o, o, 2, x.numel(), B=64)
    return o


@case(x="i32[N] in (-100, 100)")
def right_one_and_two_in_turn(x):
    o = torch.empty_like(x)
    for given, s in ((x, 1), (o, 2)):
        quotient_kernel[(triton.cdiv(x.numel(), 64),)](given, o, s, x.numel(), B=64)
    return o


@case(x="i32[N] in (-100, 100)")
def wrong_one_until_5000(x):
    o, s = torch.empty_like(x), 1 if x.numel() < 5000 else 4
    quotient_kernel[(triton.cdiv(x.numel(), 64),)](x, o, s, x.numel(), B=64)
    return o


@case(x="i32[N] in (-100, 100)", s="i64")
def wrong_wide(x, s):
    return plus(x, s, dtype_kernel)


@case(x="i32[N] in (-100, 100)", s="i64 in (0, 100)")
def right_narrow(x, s):
    return plus(x, s, dtype_kernel)


wrong_two_of_three.reference(lambda x, s, t: x - s * t // 2)
wrong_two_in_a_branch.reference(lambda x, s, t: x - s * t // 2)
wrong_always_one.reference(lambda x: x)
right_always_one.reference(lambda x: x - 1)
right_one_and_two.reference(lambda x: x - 2)
right_one_and_two_in_turn.reference(lambda x: x - 2)
wrong_one_until_5000.reference(lambda x: x - 1)
for _c in (wrong_wide, right_narrow):
    _c.reference(lambda x, s: x.clone())
for _c in (
    right_contiguous,
    right_multiple,
    wrong_at_every_size,
    right_mask,
    wrong_mask,
    right_wrapped,
    wrong_wrapped,
    wrong_reversed,
):
    _c.reference(lambda x: x.clone())
wrong_assume.reference(lambda x: x * (1.0 if x.numel() > 5000 else 2.0))
wrong_cat.reference(lambda x: x.clone())
for _c in (right_scope, wrong_scope, right_cat):
    _c.reference(lambda x: x.sum().reshape(1))
for _c in (wrong_one_i8, right_annotated, right_not_specialised, right_one):
    _c.reference(lambda x, s: x.to(torch.int32) + s)
wrong_one_of_a_size.reference(lambda x: x.to(torch.int32) + x.numel())
wrong_one_quotient.reference(lambda x, s: x - s // 2)


@triton.jit
def recurrent_kernel(x, o, M, N, STAGES: tl.constexpr, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    m = a < N
    tl.store(o + a, tl.load(x + a, mask=m, other=0.0), mask=m)
    for i in tl.range(1, M, num_stages=STAGES):
        v = tl.load(o + (i - 1) * N + a, mask=m, other=0.0)
        u = tl.load(x + i * N + a, mask=m, other=0.0)
        tl.store(o + i * N + a, u + v, mask=m)


@case(x="f32[M,N]")
def wrong_pipeline(x):
    o = torch.empty_like(x)
    recurrent_kernel[(triton.cdiv(x.shape[1], 128),)](x, o, x.shape[0], x.shape[1], STAGES=3, B=128)
    return o


@triton.jit
def rows_kernel(x, o, M, N, B: tl.constexpr):
    a = tl.program_id(0) * B + tl.arange(0, B)
    for i in tl.range(0, M, num_stages=3):
        tl.store(o + i * N + a, 2 * tl.load(x + i * N + a, mask=a < N), mask=a < N)


@case(x="f32[M,N]")
def right_pipeline(x):
    o = torch.empty_like(x)
    rows_kernel[(triton.cdiv(x.shape[1], 128),)](x, o, x.shape[0], x.shape[1], B=128)
    return o


wrong_pipeline.reference(lambda x: x.cumsum(0))
right_pipeline.reference(lambda x: 2 * x)


@triton.jit
def grid_kernel(x, o, N, B: tl.constexpr):
    r = tl.program_id(1).to(tl.int64)
    a = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + r * N + a, tl.load(x + r * N + a, mask=a < N), mask=a < N)


@case(x="f32[M,N]")
def rows_along_y(x):
    o = torch.empty_like(x)
    grid_kernel[(triton.cdiv(x.shape[1], 32), x.shape[0])](x, o, x.shape[1], B=32)
    return o


@case(x="f32[M,N]", where="M < 1000")
def few_rows_along_y(x):
    o = torch.empty_like(x)
    grid_kernel[(triton.cdiv(x.shape[1], 32), x.shape[0])](x, o, x.shape[1], B=32)
    return o


rows_along_y.reference(lambda x: x.clone())
few_rows_along_y.reference(lambda x: x.clone())


@triton.jit
def one_wide_kernel(x, o, s, t, n, B: tl.constexpr):
    """The same kernel where both have 64 bits."""
    a = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + a, mask=a < n)
    if s.dtype != t.dtype:
        v += 1
    tl.store(o + a, v + 0 * (s + t > 0).to(tl.int32), mask=a < n)


@case(x="i32[N] in (-100, 100)", s="i64", t="i64")
def wrong_one_wide(x, s, t):
    return with_two(x, s, t, one_wide_kernel)


@triton.jit
def many_kernel(x, o, n, a, b, c, d, e, f, g, h, i, j, k, l, m, p, q, r, B: tl.constexpr):  # noqa: E741
    """As branching_kernel, with more arguments than pairs are looked at."""
    at = tl.program_id(0) * B + tl.arange(0, B)
    s = a + b + c + d + e + f + g + h + i + j + k + l + m + p
    if n == 1:
        tl.store(o + at, tl.load(x + at, mask=at < n) + s - q * r // 2, mask=at < n)
    else:
        tl.store(o + at, tl.load(x + at, mask=at < n) + s + (-(q * r)) // 2, mask=at < n)


@case(x="i32[N] in (-100, 100)", s="i32 in (1, 100)", t="i32 in (1, 100)")
def wrong_two_of_many(x, s, t):
    o = torch.empty_like(x)
    many_kernel[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), *[s] * 14, s, t, B=64)
    return o


wrong_one_wide.reference(lambda x, s, t: x.clone())
wrong_two_of_many.reference(lambda x, s, t: x + 14 * s - s * t // 2)

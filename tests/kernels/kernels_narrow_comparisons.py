"""Tensors of narrow types that are compared with numbers which these types do not hold."""

import math

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def compare_kernel(x_ptr, out_ptr, N, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    if WIDE:
        x = x.to(tl.float32)
    tl.store(out_ptr + i, tl.where(x >= 0.7, 1.0, 0.0), mask=i < N)


def compared(x, wide=False):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    compare_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), WIDE=wide, BLOCK=64)
    return out


@triton.jit
def fill_kernel(x_ptr, mask_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, tl.where(tl.load(mask_ptr + i, mask=i < N, other=0) != 0, -1e9, x), mask=i < N)


def filled(x, mask):
    out = torch.empty_like(x)
    fill_kernel[(triton.cdiv(x.numel(), 64),)](x, mask, out, x.numel(), BLOCK=64)
    return out


narrow = lambda x: (x >= 0.7).float()  # noqa: E731
wide = lambda x: (x.float() >= 0.7).float()  # noqa: E731

both_in_f16 = case(x="f16[N]")(lambda x: compared(x))
both_in_bf16 = case(x="bf16[N]")(lambda x: compared(x))
number_first = case(x="bf16[N]")(lambda x: compared(x))
number_in_a_tensor = case(x="bf16[N]")(lambda x: compared(x))
both_in_f32 = case(x="f32[N]")(lambda x: compared(x))
both_widened = case(x="bf16[N]")(lambda x: compared(x, wide=True))
kernel_widens = case(x="bf16[N]")(lambda x: compared(x, wide=True))
reference_widens = case(x="bf16[N]")(lambda x: compared(x))
for c in (both_in_f16, both_in_bf16, both_in_f32, kernel_widens):
    c.reference(narrow)
for c in (both_widened, reference_widens):
    c.reference(wide)
number_first.reference(lambda x: torch.where(0.7 <= x, 1.0, 0.0))  # noqa: SIM300
number_in_a_tensor.reference(lambda x: torch.where(x < torch.tensor(0.7), 0.0, 1.0))

with_a_number_of_f32 = case(x="f32[N]", mask="bool[N]")(filled)
with_a_number_of_f16 = case(x="f16[N]", mask="bool[N]")(filled)
for c in (with_a_number_of_f32, with_a_number_of_f16):
    c.reference(lambda x, mask: x.masked_fill(mask, -1e9))


@triton.jit
def compare_scalar_kernel(x_ptr, out_ptr, N, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, tl.where(x > s, 1.0, 0.0), mask=i < N)


def compared_with(x, s):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    compare_scalar_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), s, BLOCK=64)
    return out


of_a_scalar = case(x="bf16[N]", s="f32")(compared_with)
of_a_scalar.reference(lambda x, s: (x > s).float())


@triton.jit
def leaky_kernel(x_ptr, out_ptr, N, slope: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(out_ptr + i, tl.where(x > 0, x, x * slope), mask=i < N)


def leaky(x, slope):
    out = torch.empty_like(x)
    leaky_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), slope, BLOCK=64)
    return out


leaky_in_f16 = case(x="f16[N]")(lambda x: leaky(x, 0.01))
leaky_in_bf16 = case(x="bf16[N]")(lambda x: leaky(x, 0.01))
leaky_of_a_third = case(x="f16[N]")(lambda x: leaky(x, 1 / 3))
leaky_too_steep = case(x="bf16[N]")(lambda x: leaky(x, 0.02))
for c in (leaky_in_f16, leaky_in_bf16, leaky_too_steep):
    c.reference(lambda x: torch.nn.functional.leaky_relu(x))
leaky_of_a_third.reference(lambda x: torch.where(x > 0, x, x / 3))


@triton.jit
def shrink_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(out_ptr + i, tl.where(tl.abs(x) <= 0.7, 0.0, x), mask=i < N)


@case(x="f16[N]")
def shrunk(x):
    out = torch.empty_like(x)
    shrink_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


shrunk.reference(lambda x: torch.nn.functional.hardshrink(x, 0.7))


@triton.jit
def difference_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(out_ptr + i, tl.where(x - 0.1 >= 0, 1.0, 0.0), mask=i < N)


@case(x="f16[N]")
def by_a_difference(x):
    """At x = 0.0999755859375 the kernel's difference is 0. PyTorch's is 0 or -2.4e-5, as it rounds 0.1 first or not."""
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    difference_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


by_a_difference.reference(lambda x: (x - 0.1 >= 0).float())


@triton.jit
def times_kernel(x_ptr, s, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * s, mask=i < N)


def times(x, s):
    out = torch.empty_like(x)
    times_kernel[(triton.cdiv(x.numel(), 64),)](x, s, out, x.numel(), BLOCK=64)
    return out


@case(x="f64[N]")
def times_half(x):
    return times(x, 0.5)


@case(x="f64[N]", s="f32")
def times_scalar(x, s):
    return times(x, s)


@case(x="f32[N]")
def times_tenth_in_f32(x):
    return times(x, 0.1)


@case(x="f64[N]")
def times_tenth(x):
    """Triton makes 0.10000000149011612 of the argument."""
    return times(x, 0.1)


@triton.jit
def twice_kernel(x_ptr, s, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * (s * 2), mask=i < N)


@case(x="f64[N]")
def times_fifth(x):
    """Doubled in fp32, before it becomes a number in fp64."""
    out = torch.empty_like(x)
    twice_kernel[(triton.cdiv(x.numel(), 64),)](x, 0.1, out, x.numel(), BLOCK=64)
    return out


@case(x="f64[N]", where="1 <= N")
def times_quotient(x):
    return times(x, 1 / x.numel())


@case(x="f64[N]", s="f64")
def times_wide_scalar(x, s):
    return times(x, s)


for c in (times_scalar, times_wide_scalar):
    c.reference(lambda x, s: x * s)
for c in (times_tenth, times_tenth_in_f32):
    c.reference(lambda x: x * 0.1)
times_half.reference(lambda x: x * 0.5)
times_fifth.reference(lambda x: x * 0.2)
times_quotient.reference(lambda x: x / x.numel())


@triton.jit
def threshold_kernel(x_ptr, out_ptr, N, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(out_ptr + i, tl.where(x.to(tl.float32) > LIMIT, x, 0.0), mask=i < N)


def limited(x, limit):
    out = torch.empty_like(x)
    threshold_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), LIMIT=limit, BLOCK=64)
    return out


@case(x="bf16[N]")
def limited_at_half(x):
    return limited(x, 0.5)


@case(x="f32[N]")
def limited_at_tenth_in_f32(x):
    return limited(x, 0.1)


@case(x="bf16[N]")
def limited_at_tenth(x):
    """PyTorch rounds 0.1 to bfloat16 on a GPU, and compares in float32 on a CPU."""
    return limited(x, 0.1)


limited_at_half.reference(lambda x: torch.nn.functional.threshold(x, 0.5, 0.0))
for c in (limited_at_tenth, limited_at_tenth_in_f32):
    c.reference(lambda x: torch.nn.functional.threshold(x, 0.1, 0.0))


@triton.jit
def above_kernel(x_ptr, out_ptr, s, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) > s, mask=i < N)


def above(x, s):
    out = torch.empty(x.shape, dtype=torch.bool)
    above_kernel[(triton.cdiv(x.numel(), 64),)](x, out, s, x.numel(), BLOCK=64)
    return out


@case(x="f32[N]")
def above_passed_tenth(x):
    """x = float32(0.1): False against True, which compares in f64."""
    return above(x, 0.1)


above_passed_tenth.reference(lambda x: x.double() > 0.1)


@case(x="f32[N]")
def above_passed_tenth_in_f32(x):
    return above(x, 0.1)


above_passed_tenth_in_f32.reference(lambda x: x > 0.1)


@case(x="f32[N]", s="f64")
def above_wide_scalar(x, s):
    """x = float32(0.1), s = 0.1: False against True."""
    return above(x, s)


above_wide_scalar.reference(lambda x, s: x.double() > s)


@case(x="f32[N]", s="f32")
def above_scalar(x, s):
    return above(x, s)


above_scalar.reference(lambda x, s: x > s)


@case(x="f32[N]")
def above_mean(x):
    """N = 3, x = float32(1 / 3): False against True."""
    return above(x, 1 / x.numel())


above_mean.reference(lambda x: x.double() > 1 / x.numel())


@triton.jit
def above_narrowed_kernel(x_ptr, out_ptr, s, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(out_ptr + i, x > s.to(tl.float16).to(tl.float32), mask=i < N)


@case(x="f32[N]")
def above_narrowed(x):
    """x = 0.09998, between float16(0.1) and 0.1: True against False."""
    out = torch.empty(x.shape, dtype=torch.bool)
    above_narrowed_kernel[(triton.cdiv(x.numel(), 64),)](x, out, 0.1, x.numel(), BLOCK=64)
    return out


above_narrowed.reference(lambda x: x > 0.1)


@triton.jit
def keep_kernel(out_ptr, s):
    tl.store(out_ptr, s)


@triton.jit
def above_stored_kernel(x_ptr, limit_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) > tl.load(limit_ptr), mask=i < N)


@case(x="f32[N]")
def above_stored(x):
    """x = float32(0.1): False against True."""
    limit, out = torch.empty(1), torch.empty(x.shape, dtype=torch.bool)
    keep_kernel[(1,)](limit, 0.1)
    above_stored_kernel[(triton.cdiv(x.numel(), 64),)](x, limit, out, x.numel(), BLOCK=64)
    return out


above_stored.reference(lambda x: x.double() > 0.1)


@triton.jit
def mean_kernel(m_ptr, g_ptr, out_ptr, beta, step, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m, g = tl.load(m_ptr + i, mask=i < N), tl.load(g_ptr + i, mask=i < N)
    u = g
    if step > 1 and beta > 0:
        u = beta * m + (1 - beta) * g
    tl.store(out_ptr + i, tl.where(u > 0, u, 0.0), mask=i < N)


@case(m="f32[N]", g="f32[N]", step="i32")
def moving_mean(m, g, step):
    """A comparison after arithmetic: the digits of beta are those of a real number."""
    out = torch.empty_like(m)
    mean_kernel[(triton.cdiv(m.numel(), 64),)](m, g, out, 0.9, step, m.numel(), BLOCK=64)
    return out


moving_mean.reference(lambda m, g, step: torch.relu(0.9 * m + 0.1 * g if step > 1 else g))


@triton.jit(noinline=True)
def is_above(x, s):
    return x > s


@triton.jit
def decides_kernel(x_ptr, out_ptr, s, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    if OP == "floor":
        z = x * tl.floor(s)
    elif OP == "reduce":
        z = x > tl.max(tl.full((BLOCK,), s, tl.float32), 0)
    elif OP == "positive":
        z = x * (1 + (s > 0).to(tl.int32))
    elif OP == "negative":
        z = x > -s
    tl.store(out_ptr + i, z, mask=i < N)


@triton.jit
def called_kernel(x_ptr, out_ptr, s):
    i = tl.program_id(0)
    tl.store(out_ptr + i, is_above(tl.load(x_ptr + i), s))


def decides(x, s, op):
    out = torch.empty(x.shape, dtype=x.dtype if op in ("floor", "positive") else torch.bool)
    decides_kernel[(triton.cdiv(x.numel(), 64),)](x, out, s, x.numel(), OP=op, BLOCK=64)
    return out


@case(x="f32[N]")
def floor_of_passed(x):
    """x = 1: 3 against 2, for float32(2.99999999) is 3."""
    return decides(x, 2.99999999, "floor")


floor_of_passed.reference(lambda x: x * 2)


@case(x="f32[N]", s="f64")
def floor_of_scalar(x, s):
    """x = 1, s = 2.99999999: 3 against 2."""
    return decides(x, s, "floor")


floor_of_scalar.reference(lambda x, s: x * math.floor(s))


@case(x="f32[N]")
def passed_to_function(x):
    """x = float32(0.1): False against True."""
    out = torch.empty(x.shape, dtype=torch.bool)
    called_kernel[(x.numel(),)](x, out, 0.1)
    return out


passed_to_function.reference(lambda x: x.double() > 0.1)


@case(x="f32[N]")
def passed_through_reduction(x):
    """x = float32(0.1): False against True."""
    return decides(x, 0.1, "reduce")


passed_through_reduction.reference(lambda x: x.double() > 0.1)


@case(x="f32[N]")
def too_small_for_single(x):
    """x = 1: 1 against 2, for float32(1e-50) is 0."""
    return decides(x, 1e-50, "positive")


too_small_for_single.reference(lambda x: x * 2)


@case(x="f32[N]", s="f16")
def above_negative_half(x, s):
    return decides(x, s, "negative")


above_negative_half.reference(lambda x, s: x > -s)

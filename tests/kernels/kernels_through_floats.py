"""Integers that pass through floats: kernels, host functions and references in which they lose digits, and right ones
beside them. Each docstring of a wrong one has an input and what both give there."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def through_kernel(x_ptr, y_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):  # noqa: C901 - one op of many
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    x, y = tl.load(x_ptr + i, mask=m, other=0), tl.load(y_ptr + i, mask=m, other=0)
    if OP == "half":
        z = x.to(tl.float16).to(x.dtype)
    elif OP == "bfloat":
        z = x.to(tl.bfloat16).to(tl.int32)
    elif OP == "single":
        z = x.to(tl.float32).to(x.dtype)
    elif OP == "double":
        z = x.to(tl.float64).to(x.dtype)
    elif OP == "narrowed":
        z = x.to(tl.float32).to(tl.float16).to(tl.int32)
    elif OP == "less":
        z = (x.to(tl.float32) < y.to(tl.float32)).to(tl.int8)
    elif OP == "positive":
        z = (x.to(tl.float32) > 0).to(tl.int8)
    elif OP == "scaled":
        z = (x.to(tl.float32) / 255 * 255).to(tl.int32)
    elif OP == "doubled":
        z = (x.to(tl.float32) * 1.5 + x.to(tl.float32) * 0.5).to(tl.int32)
    elif OP == "sum":
        z = (x.to(tl.float32) + y.to(tl.float32)).to(tl.int32)
    elif OP == "product":
        z = (x.to(tl.float32) * y.to(tl.float32)).to(tl.int32)
    elif OP == "third":
        z = tl.floor(x.to(tl.float32) / 3).to(tl.int32)
    elif OP == "index":
        j = i.to(tl.float32).to(tl.int32)
        z = tl.load(x_ptr + j, mask=m & (j < N), other=0)
    elif OP == "real":
        z = x.to(tl.float32) * 0.1
    tl.store(out_ptr + i, z, mask=m)


def through(x, y, op, dtype, block=64):
    out = torch.empty(x.shape, dtype=dtype)
    through_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), OP=op, BLOCK=block)
    return out


@triton.jit
def count_kernel(x_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        j = k + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + j, mask=j < N, other=0)
        if OP == "count":
            total += (x > 0).to(tl.float32)
        else:
            total += x.to(tl.float32)
    tl.store(out_ptr + r, tl.sum(total))


@triton.jit
def narrow_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    tl.store(out_ptr + i, x, mask=i < N)


def counts(x, op):
    out = torch.empty(x.shape[0], dtype=torch.int32)
    count_kernel[(x.shape[0],)](x, out, x.shape[1], OP=op, BLOCK=64)
    return out


# ---- wrong ---------------------------------------------------------------------------------------------------------


@case(x="i16[N]")
def int16_through_half(x):
    """x = 2049: 2048 against 2049."""
    return through(x, x, "half", torch.int16)


int16_through_half.reference(lambda x: x.clone())


@case(x="i32[N]")
def int32_through_single(x):
    """x = 16777217: 16777216 against 16777217."""
    return through(x, x, "single", torch.int32)


int32_through_single.reference(lambda x: x.clone())


@case(x="i64[N]")
def int64_through_double(x):
    """x = 2^53 + 1: 2^53 against 2^53 + 1."""
    return through(x, x, "double", torch.int64)


int64_through_double.reference(lambda x: x.clone())


@case(x="i16[N]")
def int16_through_bfloat(x):
    """x = 257: 256 against 257."""
    return through(x, x, "bfloat", torch.int32)


int16_through_bfloat.reference(lambda x: x.to(torch.int32))


@case(x="i16[N]")
def int16_narrowed(x):
    """x = 4097: 4096 against 4097."""
    return through(x, x, "narrowed", torch.int32)


int16_narrowed.reference(lambda x: x.to(torch.int32))


@case(x="i32[N]", y="i32[N]")
def compared_in_single(x, y):
    """x = 16777216, y = 16777217: False against True."""
    return through(x, y, "less", torch.int8)


compared_in_single.reference(lambda x, y: (x < y).to(torch.int8))


@case(x="u8[N]")
def scaled_and_back(x):
    """Whether 255 (x / 255) is x after two roundings is not known."""
    return through(x, x, "scaled", torch.int32)


scaled_and_back.reference(lambda x: x.to(torch.int32))


@case(x="i16[N]", y="i16[N]")
def product_in_single(x, y):
    """x = y = 4097: 16785408 against 16785409."""
    return through(x, y, "product", torch.int32)


product_in_single.reference(lambda x, y: x.to(torch.int32) * y.to(torch.int32))


@case(x="i16[M,N]")
def sum_in_single(x):
    """Two elements of 2^14 for each of 1024 columns and one of 1: the 1 is lost."""
    return counts(x, "sum")


sum_in_single.reference(lambda x: x.sum(-1, dtype=torch.int32))


@case(x="i32[N]")
def half_between_launches(x):
    """x = 2049: 2048 against 2049."""
    between, out = torch.empty(x.shape, dtype=torch.float16), torch.empty(x.shape, dtype=torch.int32)
    for a, b in ((x, between), (between, out)):
        narrow_kernel[(triton.cdiv(x.numel(), 64),)](a, b, x.numel(), BLOCK=64)
    return out


half_between_launches.reference(lambda x: x.clone())


@case(x="i32[N]")
def host_through_half(x):
    """x = 2049: 2048 against 2049."""
    out, y = torch.empty(x.shape, dtype=torch.int32), x.to(torch.float16)
    narrow_kernel[(triton.cdiv(x.numel(), 64),)](y, out, x.numel(), BLOCK=64)
    return out


host_through_half.reference(lambda x: x.clone())


@case(x="i32[N]")
def reference_through_single(x):
    """x = 16777217: 16777217 against 16777216."""
    out = torch.empty_like(x)
    narrow_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


reference_through_single.reference(lambda x: x.float().to(torch.int32))


@case(x="i32[N]", y="i32[N]")
def reference_compares_in_single(x, y):
    """x = 16777216, y = 16777217: the reference says they are equal."""
    out = torch.empty(x.shape, dtype=torch.int8)
    equal_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out


reference_compares_in_single.reference(lambda x, y: (x.float() == y.float()).to(torch.int8))


@triton.jit
def equal_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i, mask=i < N, other=0), tl.load(y_ptr + i, mask=i < N, other=0)
    tl.store(out_ptr + i, (x == y).to(tl.int8), mask=i < N)


@case(x="i32[N]")
def third_by_a_quotient(x):
    """A quotient by 3 is rounded, on some machines to less than the whole number that it is."""
    return through(x, x, "third", torch.int32)


third_by_a_quotient.reference(lambda x: torch.div(x, 3, rounding_mode="floor"))


# ---- right ---------------------------------------------------------------------------------------------------------


@case(x="i8[N]")
def int8_through_half(x):
    return through(x, x, "half", torch.int8)


int8_through_half.reference(lambda x: x.clone())


@case(x="i16[N]")
def int16_through_single(x):
    return through(x, x, "single", torch.int16)


int16_through_single.reference(lambda x: x.clone())


@case(x="i32[N]")
def int32_through_double(x):
    return through(x, x, "double", torch.int32)


int32_through_double.reference(lambda x: x.clone())


@case(x="i32[N]")
def sign_in_single(x):
    return through(x, x, "positive", torch.int8)


sign_in_single.reference(lambda x: (x > 0).to(torch.int8))


@case(x="i16[N]")
def doubled_in_single(x):
    return through(x, x, "doubled", torch.int32)


doubled_in_single.reference(lambda x: x.to(torch.int32) * 2)


@case(x="i16[N]", y="i16[N]")
def sum_of_two_in_single(x, y):
    return through(x, y, "sum", torch.int32)


sum_of_two_in_single.reference(lambda x, y: x.to(torch.int32) + y.to(torch.int32))


@case(x="i32[N]")
def real_of_int32(x):
    return through(x, x, "real", torch.float32)


real_of_int32.reference(lambda x: x.float() * 0.1)


@case(x="f32[M,N]")
def count_in_single(x):
    """Right for fewer than 2^24 columns."""
    return counts(x, "count")


count_in_single.reference(lambda x: (x > 0).sum(-1, dtype=torch.int32))


@case(x="i32[N]")
def position_through_single(x):
    """Right for fewer than 2^24 elements."""
    return through(x, x, "index", torch.int32)


position_through_single.reference(lambda x: x.clone())


@case(x="u8[N]")
def reference_scales_and_back(x):
    """Whether 255 (x / 255) is x after two roundings is not known."""
    out = torch.empty(x.shape, dtype=torch.int32)
    narrow_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


reference_scales_and_back.reference(lambda x: (x / 255 * 255).to(torch.int32))


@triton.jit
def passed_kernel(x_ptr, y_ptr, out_ptr, s, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    x, y = tl.load(x_ptr + i, mask=m, other=0), tl.load(y_ptr + i, mask=m, other=0)
    if OP == "times":
        z = (x * s).to(tl.int32)
    elif OP == "alone":
        z = x + s.to(tl.int32)
    elif OP == "either":
        z = tl.where(y > 0, y, x.to(tl.float32)).to(tl.int32)
    elif OP == "either times":
        z = (tl.where(y > 0, y, x.to(tl.float32)) * s).to(tl.int32)
    elif OP == "either above":
        z = (tl.where(y > 0, y, x.to(tl.float32)) - s > 0).to(tl.int32)
    elif OP == "either against":
        z = (tl.maximum(x.to(tl.float32), y) > y).to(tl.int32)
    elif OP == "plus":
        z = (x.to(tl.float32) + s).to(tl.int32)
    elif OP == "narrowed":
        z = x + tl.full((BLOCK,), s, tl.float32).to(tl.float16).to(tl.int32)
    elif OP == "quotient":
        z = x + (s / 1.5).to(tl.int32)
    elif OP == "in eighths":
        z = ((x.to(tl.float32) * s).to(tl.float8e5).to(tl.float32) > 0).to(tl.int32)
    elif OP == "positive":
        z = (x.to(tl.float32) * s > 0).to(tl.int32)
    tl.store(out_ptr + i, z, mask=m)


def passed(x, y, s, op):
    out = torch.empty(x.shape, dtype=torch.int32)
    passed_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, s, x.numel(), OP=op, BLOCK=64)
    return out


@case(x="i32[N]")
def times_one_passed(x):
    """x = 16777217: 16777216 against 16777217."""
    return passed(x, x, 1.0, "times")


times_one_passed.reference(lambda x: x.clone())


@case(x="i8[N]", n="i32")
def integer_passed(x, n):
    """n = 16777217, x = 0: 16777216 against 16777217."""
    return passed(x, x, float(n), "alone")


integer_passed.reference(lambda x, n: x.to(torch.int32) + n)


@case(x="i32[N]", y="f32[N]")
def either_in_single(x, y):
    """y = 0, x = 16777217: 16777216 against 16777217."""
    return passed(x, y, 1.0, "either")


either_in_single.reference(lambda x, y: torch.where(y > 0, y.to(torch.int32), x))


@case(x="i32[N]", y="f32[N]")
def either_times_two(x, y):
    """y = 0, x = 16777217: 33554432 against 33554434."""
    return passed(x, y, 2.0, "either times")


either_times_two.reference(lambda x, y: torch.where(y > 0, (y * 2).to(torch.int32), x * 2))


@case(x="i32[N]", y="f32[N]")
def either_above(x, y):
    """y = 0, x = 16777217: 0 against 1."""
    return passed(x, y, 16777216.0, "either above")


either_above.reference(lambda x, y: (torch.where(y > 0, y.double(), x.double()) - 16777216 > 0).to(torch.int32))


@case(x="i16[N]", y="f32[N]")
def either_of_int16(x, y):
    return passed(x, y, 512.0, "either above")


either_of_int16.reference(lambda x, y: (torch.where(y > 0, y.double(), x.double()) - 512 > 0).to(torch.int32))


@case(x="i32[N]", y="f32[N]")
def either_against(x, y):
    """y = 16777216, x = 16777217: 0 against 1."""
    return passed(x, y, 0.0, "either against")


either_against.reference(lambda x, y: (torch.maximum(x.double(), y.double()) > y.double()).to(torch.int32))


@case(x="i32[N]")
def odd_sum_passed(x):
    """x = -2: 16777214 against 16777215, for 16777217 is passed as 16777216."""
    return passed(x, x, 16777217.0, "plus")


odd_sum_passed.reference(lambda x: x + 16777217)


@case(x="i32[N]")
def narrowed_passed(x):
    """x = 0: 2048 against 2049."""
    return passed(x, x, 2049.0, "narrowed")


narrowed_passed.reference(lambda x: x + 2049)


@case(x="i32[N]")
def quotient_of_passed(x):
    """x = 0: 11184809 against 11184808."""
    return passed(x, x, 16777213.0, "quotient")


quotient_of_passed.reference(lambda x: x + 11184808)


@case(x="i32[N]")
def reference_narrows(x):
    """x = 0: 2049 against 2048."""
    out = torch.empty_like(x)
    passed_kernel[(triton.cdiv(x.numel(), 64),)](x, x, out, 2049.0, x.numel(), OP="plus", BLOCK=64)
    return out


reference_narrows.reference(lambda x: x + torch.full((1,), 2049.0).half().to(torch.int32))


@case(x="i32[N]")
def sign_in_eighths(x):
    """x = 1: 0 against 1, for 2^-20 is 0 in float8e5."""
    return passed(x, x, 2.0**-20, "in eighths")


sign_in_eighths.reference(lambda x: (x > 0).to(torch.int32))


@case(x="i32[N]")
def sign_of_small_product(x):
    return passed(x, x, 1e-7, "positive")


sign_of_small_product.reference(lambda x: (x > 0).to(torch.int32))


@case(x="i32[N]")
def sign_of_tiny_product(x):
    """x = 1: 0 on a device that has no numbers below 2^-126, against 1."""
    return passed(x, x, 1e-40, "positive")


sign_of_tiny_product.reference(lambda x: (x > 0).to(torch.int32))


@case(x="i16[M]", y="f32[N]")
def ratio_passed(x, y):
    """Whether x times a rounded third is whole is not known."""
    return passed(x, x, y.shape[0] / 3, "times")


ratio_passed.reference(lambda x, y: (x * (y.shape[0] / 3)).to(torch.int32))


@case(x="i16[N]")
def times_two_passed(x):
    return passed(x, x, 2.0, "times")


times_two_passed.reference(lambda x: x.to(torch.int32) * 2)


@triton.jit
def chosen_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        j = k + tl.arange(0, BLOCK)
        total += tl.where((tl.load(x_ptr + j, mask=j < N, other=0) > 0), 1.0, 0.0)
    tl.store(out_ptr, tl.sum(total).to(tl.int64))


@triton.jit
def steps_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    total = 0.0
    for _ in range(N):
        total += 1.0
    tl.store(out_ptr, total.to(tl.int64))


def counted(x, kernel):
    out = torch.empty((), dtype=torch.int64)
    kernel[(1,)](x, out, x.shape[0], BLOCK=64)
    return out


@case(x="f32[N]")
def chosen_in_single(x):
    """x = 1, N = 64 (2^24 + 1): 2^30 against 2^30 + 64."""
    return counted(x, chosen_kernel)


chosen_in_single.reference(lambda x: (x > 0).sum())


@case(x="f32[N]")
def steps_in_single(x):
    """N = 2^24 + 1: 2^24 against 2^24 + 1."""
    return counted(x, steps_kernel)


steps_in_single.reference(lambda x: torch.tensor(x.shape[0]))


@case(x="f32[N]")
def reference_chooses_in_single(x):
    """Whether PyTorch's sum of more than 2^24 ones is right depends on its order."""
    out = torch.empty((), dtype=torch.int64)
    integers_kernel[(1,)](x, out, x.shape[0], BLOCK=64)
    return out


reference_chooses_in_single.reference(lambda x: torch.where(x > 0, 1.0, 0.0).sum().to(torch.int64))


@triton.jit
def integers_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int64)
    for k in range(0, N, BLOCK):
        j = k + tl.arange(0, BLOCK)
        total += (tl.load(x_ptr + j, mask=j < N, other=0) > 0).to(tl.int64)
    tl.store(out_ptr, tl.sum(total))


@case(x="i8[N]")
def limits_by_sign(x):
    """x = 0: -128 against 127. No float is rounded beyond the limits of i8."""
    out = torch.empty_like(x)
    sign_limits_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


@triton.jit
def sign_limits_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    tl.store(out_ptr + i, tl.where(x > 0, 127, -128).to(tl.int8), mask=i < N)


limits_by_sign.reference(lambda x: torch.full_like(x, 127))


@case(x="i32[M]", y="f32[N]")
def ratio_passed_of_int32(x, y):
    """N = 3, x = 2^31 - 2: float32 makes 2^31 of it, which every device converts in its own way."""
    return passed(x, x, y.shape[0] / 3, "times")


ratio_passed_of_int32.reference(lambda x, y: (x * (y.shape[0] / 3)).to(torch.int32))


@triton.jit
def floor_sign_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.floor(tl.load(x_ptr + i, mask=i < N, other=float("inf"))).to(tl.int32)
    tl.store(out_ptr + i, tl.where(x > 0, 127, -128).to(tl.int8), mask=i < N)


@case(x="f32[N]")
def limits_by_floor(x):
    """x = 0: -128 against 127. An infinity fits no integer, but in lanes that are not stored."""
    out = torch.empty(x.shape, dtype=torch.int8)
    floor_sign_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


limits_by_floor.reference(lambda x: torch.full_like(x, 127, dtype=torch.int8))

"""Integers as machines have them: kernels that compute in another width than their reference or host function, and
right ones beside them. Each docstring of a wrong one has an input and what both give there."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def integer_kernel(x_ptr, y_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):  # noqa: C901 - one op of many
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    x, y = tl.load(x_ptr + i, mask=m, other=1), tl.load(y_ptr + i, mask=m, other=1)
    u, v = x.to(tl.int32), y.to(tl.int32)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "and":
        z = x & y
    elif OP == "or":
        z = x | y
    elif OP == "xor":
        z = x ^ y
    elif OP == "min":
        z = tl.minimum(x, y)
    elif OP == "max":
        z = tl.maximum(x, y)
    elif OP == "div":
        z = x // y
    elif OP == "mod":
        z = x % y
    elif OP == "shl":
        z = x << y
    elif OP == "shr":
        z = x >> y
    elif OP == "neg":
        z = -x
    elif OP == "abs":
        z = tl.abs(x)
    elif OP == "not":
        z = ~x
    elif OP == "first":
        z = x
    elif OP == "less":
        z = (x < y).to(tl.int8)
    elif OP == "wide_sum":
        z = u + v
    elif OP == "wide_square":
        z = u * u
    elif OP == "wide_three":
        z = u - 3 * v
    elif OP == "wide_addcmul":
        z = u + u * v
    elif OP == "wide_shift":
        z = u << 9
    elif OP == "wide_not":
        z = ~u
    elif OP == "below_300":
        z = (u < 300).to(tl.int8)
    elif OP == "half":
        z = (u + v).to(tl.float32) * 0.5
    elif OP == "average":
        z = (u + v) // 2
    elif OP == "lcg":
        z = x * 1664525 + 1013904223
    tl.store(out_ptr + i, z, mask=m)


def run(x, y, op, dtype, block=64):
    out = torch.empty(x.shape, dtype=dtype)
    integer_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), OP=op, BLOCK=block)
    return out


@triton.jit
def row_kernel(x_ptr, y_ptr, out_ptr, N, SCAN: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + j, mask=j < N, other=0).to(tl.int32)
    y = tl.load(y_ptr + r * N + j, mask=j < N, other=0).to(tl.int32)
    if SCAN:
        tl.store(out_ptr + r * N + j, tl.cumsum(x, 0), mask=j < N)
    else:
        tl.store(out_ptr + r, tl.sum(x * y))


def run_rows(x, y, scan):
    out = torch.empty(x.shape if scan else x.shape[:1], dtype=torch.int32)
    row_kernel[(x.shape[0],)](x, y, out, x.shape[1], SCAN=scan, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


# ---- wrong, without a clause ---------------------------------------------------------------------------------------


@case(x="i16[N]")
def square_of_int16(x):
    """x = 30000: 900000000 against -5888."""
    return run(x, x, "wide_square", torch.int32)


square_of_int16.reference(lambda x: x.square().to(torch.int32))


@case(x="u8[N]", y="u8[N]")
def three_times_uint8(x, y):
    """x = 0, y = 1: -3 against 253."""
    return run(x, y, "wide_three", torch.int32)


three_times_uint8.reference(lambda x, y: torch.sub(x, y, alpha=3).to(torch.int32))


@case(x="i8[N]", y="i8[N]")
def product_and_sum_of_int8(x, y):
    """x = y = 100: 10100 against 116."""
    return run(x, y, "wide_addcmul", torch.int32)


product_and_sum_of_int8.reference(lambda x, y: torch.addcmul(x, x, y).to(torch.int32))


@case(x="i16[N]")
def shift_of_int16(x):
    """x = 64: 32768 against -32768."""
    return run(x, x, "wide_shift", torch.int32)


shift_of_int16.reference(lambda x: (x << 9).to(torch.int32))


@case(x="u8[N]")
def complement_of_uint8(x):
    """x = 3: -4 against 252."""
    return run(x, x, "wide_not", torch.int32)


complement_of_uint8.reference(lambda x: (~x).to(torch.int32))


@case(x="i8[N]")
def comparison_with_a_number_that_wraps(x):
    """x = 100: 1 against 0, for PyTorch makes 44 of 300."""
    return run(x, x, "below_300", torch.int8)


comparison_with_a_number_that_wraps.reference(lambda x: (x < 300).to(torch.int8))


@case(x="i8[N]", y="i8[N]")
def half_of_int8(x, y):
    """x = y = 100: 100 against -28."""
    return run(x, y, "half", torch.float32)


half_of_int8.reference(lambda x, y: (x + y).float() * 0.5)


@case(x="i8[M,N]", y="i8[M,N]", where="N <= 1024")
def dot_of_int8(x, y):
    """x = y = (100, 100): 20000 against 32."""
    return run_rows(x, y, False)


dot_of_int8.reference(lambda x, y: (x * y).sum(-1, dtype=torch.int8).to(torch.int32))


@case(x="i8[M,N]", where="N <= 1024")
def scan_of_int8(x):
    """x = (100, 100): 200 against -56."""
    return run_rows(x, x, True)


scan_of_int8.reference(lambda x: x.cumsum(-1, dtype=torch.int8).to(torch.int32))


@case(x="i16[N]", y="i16[N]")
def host_multiplies_int16(x, y):
    """x = y = 30000: -5888 against 900000000."""
    z = x * y
    return run(z, z, "first", torch.int32)


host_multiplies_int16.reference(lambda x, y: x.to(torch.int32) * y.to(torch.int32))


@case(x="i8[N]")
def host_takes_the_size_of_int8(x):
    """x = -128: -128 against 128."""
    z = x.abs()
    return run(z, z, "first", torch.int32)


host_takes_the_size_of_int8.reference(lambda x: x.to(torch.int32).abs())

# ---- wrong outside of a clause -------------------------------------------------------------------------------------


@case(x="i32[N]")
def negation_of_int32(x):
    """x = -2^31: 2^31 against -2^31."""
    return run(x.to(torch.int64), x, "neg", torch.int64)


negation_of_int32.reference(lambda x: (-x).to(torch.int64))


@case(x="f32[N]")
def positions_squared(x):
    """N = 46342: the last one is 2147488281 against -2147479015."""
    i = torch.arange(x.shape[0])
    return run(i, i, "mul", torch.int64)


positions_squared.reference(lambda x: (torch.arange(x.shape[0], dtype=torch.int32) ** 2).to(torch.int64))


@case(n="i32[B]")
def host_totals_in_int32(n):
    """n = (2^31 - 1, 1): -2^31 against 2^31."""
    z = n.cumsum(0, dtype=torch.int32)
    return run(z, z, "first", torch.int64)


host_totals_in_int32.reference(lambda n: n.cumsum(0))


@case(n="i64[B] < 4096")
def host_bytes_in_int32(n):
    """262144 times 4095: the total leaves 32 bits at 2 * 4095 * B."""
    z = torch.cumsum(n * 2, 0, dtype=torch.int32)
    return run(z, z, "first", torch.int64)


host_bytes_in_int32.reference(lambda n: (2 * n).cumsum(0))


@case(x="f32[N]")
def host_makes_uint8(x):
    """x = -1: 255 against -1."""
    z = x.to(torch.uint8)
    return run(z, z, "first", torch.int32)


host_makes_uint8.reference(lambda x: x.to(torch.int32))

# ---- another dtype -------------------------------------------------------------------------------------------------


@case(x="i8[N]", y="i8[N]")
def int32_for_int8(x, y):
    return run(x, y, "xor", torch.int32)


int32_for_int8.reference(lambda x, y: x ^ y)

# ---- right ---------------------------------------------------------------------------------------------------------


@case(x="i8[N]", y="i8[N]")
def sum_in_int8(x, y):
    return run(x, y, "add", torch.int8)


sum_in_int8.reference(lambda x, y: x + y)


@case(x="u8[N]", y="u8[N]")
def average_of_uint8(x, y):
    return run(x, y, "average", torch.uint8)


average_of_uint8.reference(lambda x, y: ((x.to(torch.int32) + y.to(torch.int32)) // 2).to(torch.uint8))


@case(x="i32[N]", y="i32[N]")
def exclusive_or_of_int32(x, y):
    return run(x, y, "xor", torch.int32)


exclusive_or_of_int32.reference(lambda x, y: x ^ y)


@case(x="i8[N]", y="i8[N]")
def wide_sum_of_int8(x, y):
    return run(x, y, "wide_sum", torch.int32)


wide_sum_of_int8.reference(lambda x, y: x.to(torch.int32) + y.to(torch.int32))


@case(x="i16[N]", y="i16[N]")
def host_adds_int16(x, y):
    z = x + y
    return run(z, z, "first", torch.int32)


host_adds_int16.reference(lambda x, y: (x + y).to(torch.int32))


@case(x="i32[N]")
def steps_of_a_generator(x):
    return run(x, x, "lcg", torch.int32)


steps_of_a_generator.reference(lambda x: x * 1664525 + 1013904223)


@case(x="i8[N]")
def negation_in_int8(x):
    return run(x, x, "neg", torch.int8)


negation_in_int8.reference(lambda x: -x)

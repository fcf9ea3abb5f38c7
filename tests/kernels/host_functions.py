"""Host functions that do something else where no small shape shows it, and right ones beside them."""

from __future__ import annotations

import collections
import contextvars
import enum
import fractions
import functools
import itertools
import math
import types

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def scaled_kernel(x_ptr, out_ptr, N, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, s * tl.load(x_ptr + i, mask=i < N), mask=i < N)


@triton.jit
def rows_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + r * N + i, 2 * tl.load(x_ptr + r * N + i, mask=i < N), mask=i < N)


@triton.jit
def repeated_kernel(x_ptr, out_ptr, s, length, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, s * tl.load(x_ptr + i % length, mask=i < N), mask=i < N)


@triton.heuristics({"EVEN": lambda a: a["N"] % 1000 == 0})
@triton.jit
def even_kernel(x_ptr, out_ptr, N, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))
    else:
        tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < N), mask=i < N)


def scale(x, s, grid=None):
    out = torch.empty_like(x)
    n = x.numel()
    scaled_kernel[(triton.cdiv(n, 64) if grid is None else grid,)](x, out, n, s, BLOCK=64)
    return out


def double(x):
    return 2 * x


def times(x, s):
    return s * x


def twice(x):
    return torch.cat((2 * x, 2 * x))


# ---- wrong beyond the shapes that are tried --------------------------------------------------------------------------


@case(x="f32[N]")
def grid_cap(x):
    return scale(x, 2.0, min(triton.cdiv(x.numel(), 64), 65535))


@case(x="f32[M,N]")
def block_cap(x):
    out = torch.empty_like(x)
    rows_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=min(triton.next_power_of_2(x.shape[1]), 65536))
    return out


@case(x="f32[N]")
def heuristic_of_a_thousand(x):
    out = torch.empty_like(x)
    even_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


@case(x="f32[N]")
def one_size(x):
    return scale(x, 3.0 if x.shape[0] == 4099 else 2.0)


@case(x="f32[N]")
def large_sizes(x):
    return scale(x, 3.0 if x.shape[0] > 1000000 else 2.0)


@case(x="f32[N]")
def no_launch_at_one_size(x):
    if x.shape[0] == 4099:
        return torch.empty_like(x)
    return scale(x, 2.0)


@case(x="f32[N]")
def grid_of_bit_length(x):
    n = x.numel()
    return scale(x, 2.0, triton.cdiv(n, 64) if n.bit_length() < 30 else 1)


@case(x="f32[N]")
def grid_of_isqrt(x):
    n = x.numel()
    return scale(x, 2.0, triton.cdiv(n, 64) + (0 if math.isqrt(n) < 100000 else -1))


@case(x="f32[N]")
def size_in_a_tensor(x):
    """The size itself, which PyTorch takes out of its symbol."""
    return scale(x, 3.0 if torch.tensor(x.shape[0]) == 77_003 else 2.0)


@case(x="f32[N]")
def size_of_a_list(x):
    return scale(x, 3.0 if torch.as_tensor(x.shape).tolist() == [77_003] else 2.0)


@case(x="f32[N]")
def product_in_a_tensor(x):
    return scale(x, 3.0 if int(torch.prod(torch.tensor([x.shape[0], 2]))) == 154_006 else 2.0)


@case(x="f32[N]")
def sizes_changed_in_a_tensor(x):
    return scale(x, 3.0 if torch.tensor([x.shape[0], 1]).add_(1).prod().item() == 154_008 else 2.0)


@case(x="f32[N]")
def sizes_changed_in_a_view(x):
    sizes = torch.tensor([x.shape[0], 1])
    first, _ = sizes
    first.add_(1)
    return scale(x, 3.0 if int(sizes.prod()) == 77_004 else 2.0)


@case(x="f32[N]")
def part_of_sizes_in_a_tensor(x):
    return scale(x, 3.0 if torch.tensor([x.shape[0], 1])[0].item() == 77_003 else 2.0)


@case(x="f32[N]")
def product_that_wraps(x):
    n = x.shape[0]
    return scale(x, 2.0 if torch.tensor([n, n, n, n]).prod().item() >= 0 else 3.0)


@case(x="f32[N]")
def truth_by_identity(x):
    """Python has one object True, and a stand-in for a truth is another."""
    return scale(x, 3.0 if (x.shape[0] == 77_003) is True else 2.0)


def tripled_where(large):
    return 3.0 if large is True else 2.0


@case(x="f32[N]")
def identity_in_a_helper(x):
    return scale(x, tripled_where(x.shape[0] == 77_003))


class Size(enum.IntEnum):
    LARGE = 77_003


@case(x="f32[N]")
def member_of_an_enumeration(x):
    return scale(x, 3.0 if x.shape[0] == Size.LARGE else 2.0)


@case(x="f32[N]")
def beside_a_fraction(x):
    """Another kind of number, which knows Python's own alone."""
    return scale(x, 3.0 if x.shape[0] == fractions.Fraction(77_003) else 2.0)


FACTORS = (2.0 if k < 100_000 else 3.0 for k in range(200_000))


@case(x="f32[N]")
def numbers_of_a_generator(x):
    return scale(x, next(FACTORS))


ROUND = itertools.cycle([2.0] * 99_999 + [3.0])


@case(x="f32[N]")
def numbers_in_a_circle(x):
    return scale(x, next(ROUND))


QUEUE = collections.deque([2.0] * 50 + [3.0])


@case(x="f32[N]")
def queue_that_turns(x):
    QUEUE.rotate(1)
    return scale(x, QUEUE[-1])


CALLS = types.SimpleNamespace(counted={"calls": [0]})


@case(x="f32[N]")
def calls_that_are_counted(x):
    CALLS.counted["calls"][0] += 1
    return scale(x, 3.0 if CALLS.counted["calls"][0] == 77_003 else 2.0)


@case(x="f32[N]")
def table_of_sizes(x):
    return scale(x, {4099: 3.0}.get(x.shape[0], 2.0))


@functools.lru_cache
def factor(n):
    return 3.0 if n > 1234567 else 2.0


@case(x="f32[N]")
def cached_factor(x):
    return scale(x, factor(x.shape[0]))


@case(x="f32[N]")
def doubled_up_to_a_limit(x):
    n, grid = x.numel(), 1
    while grid * 64 < n and grid < 1 << 16:
        grid *= 2
    return scale(x, 2.0, grid)


@case(x="f32[N]")
def narrow_size(x):
    n = x.numel()
    return scale(x, 2.0, triton.cdiv(n & 0xFFFFFF, 64))


@case(x="f32[N]", s="f32")
def clipped(x, s):
    return scale(x, min(s, 1.0))


@case(x="f32[N]", s="f32")
def absolute(x, s):
    return scale(x, abs(s))


@case(x="f32[N]", s="f32")
def default(x, s):
    return scale(x, s or 1.0)


@case(x="f32[N]", s="f32")
def rounded(x, s):
    return scale(x, round(s, 4))


@case(x="f32[N]", s="f32")
def root_of_square(x, s):
    return scale(x, (s * s) ** 0.5)


@case(x="f32[N]", s="f32")
def negative_only(x, s):
    return scale(x, s if s > -100.0 else 0.0)


def repeated(x, factor):
    """Twice, in tiles of the size of the result; that result and x are laid out anew."""
    out = torch.empty(x.shape[0] * 2, x.shape[1], device=x.device)
    n = out.numel()
    if n > 0:
        block = min(512, triton.next_power_of_2(n))
        row = x.reshape([x.shape[0], x.shape[1]])
        repeated_kernel[(triton.cdiv(n, block),)](row, out, factor, x.numel(), n, BLOCK=block)
    return out


@case(x="f32[M,N]")
def small_rows_of_seven(x):
    """The smallest sizes on the small side have rows of one element, of which PyTorch asks before."""
    rows = x.reshape([x.shape[0], x.shape[1]])
    few = rows.numel() < 50
    return repeated(rows, 3.0 if few and rows.shape[1] == 7 else 2.0)


@case(x="f32[N]")
def view_that_may_fail(x):
    """PyTorch raises where 211 does not divide N, which at N = 422 is not so."""
    try:
        rows = x.reshape(-1, 211).shape[1]
    except RuntimeError:
        rows = 1
    return scale(x, 2.0 if rows == 1 else 3.0)


@case(x="f32[N]")
def view_that_fails_at_once(x):
    """Wrong at N = 1009."""
    try:
        x.view(-1, 1009)
    except RuntimeError:
        return scale(x, 2.0)
    return scale(x, 3.0)


@case(x="f32[M,N] strided")
def view_of_any_strides(x):
    """Rows that are apart are a view in fours only where 4 divides N."""
    try:
        x.view(-1, 4)
    except (RuntimeError, ValueError):
        return scale(x.contiguous(), 2.0)
    return scale(x.contiguous(), 3.0)


@case(x="f32[N]")
def parts_that_are_counted(x):
    """PyTorch returns as many parts as there are: nine from N = 777 on."""
    return scale(x, 3.0 if len(x.split(97)) == 9 else 2.0)


@case(x="f32[N]")
def chunks_that_are_counted(x):
    """51 chunks of 13 at N = 653."""
    return scale(x, 3.0 if len(x.chunk(64)) == 51 else 2.0)


@case(x="f32[N]")
def view_that_changes_nothing(x):
    """Whether 4 divides N is asked, and is the same to the result."""
    try:
        x.view(-1, 4)
    except RuntimeError:
        return scale(x, 2.0)
    return scale(x, 2.0)


@case(x="f32[N]")
def power_of_a_remainder(x):
    """Wrong at N = 7, and where N is 7 more than a multiple of 1009."""
    return scale(x, 3.0 if pow(x.numel(), 3, 1009) == 343 else 2.0)


@case(x="f32[M,6,N]")
def view_of_groups(x):
    """PyTorch asks which sizes divide which, to find a shorter way to the same view."""
    return scale(x.reshape(x.shape[0], 2, -1).reshape(x.shape), 2.0)


@case(x="f32[N]")
def type_of_a_size(x):
    return scale(x, 3.0 if type(x.numel()) is int else 2.0)


@case(x="f32[N]")
def percentage(x):
    return scale(x, 2.0 if x.numel() * 0.01 * 100 <= x.numel() else 3.0)


@case(x="f32[N]")
def quotient_and_product(x):
    return scale(x, 2.0 if x.numel() / 49 * 49 == x.numel() else 3.0)


@case(x="f32[N]")
def part_of_a_size(x):
    return scale(x, 2.0 if int(x.numel() * 0.47) == x.numel() * 47 // 100 else 3.0)


@case(x="f32[N]", s="f32")
def large_and_back(x, s):
    return scale(x, s if (s + 1e8) - 1e8 == s else 2 * s)


@case(x="f32[N]", s="f32")
def one_less_and_more(x, s):
    return scale(x, s if 1 - (1 - s) == s else 2 * s)


@case(x="f32[N]", s="i64")
def third_of_a_wide_integer(x, s):
    return scale(x, float(s) if s < 0 or int(s / 3) == s // 3 else 2.0 * s)


WRONG = {  # the clause that excludes the wrong inputs, where there is one
    "grid_cap": "(N + 63) // 64 <= 65535",
    "block_cap": "next_power_of_2(N) <= 65536",
    "heuristic_of_a_thousand": "",
    "one_size": "",
    "type_of_a_size": "",
    "percentage": "",
    "quotient_and_product": "",
    "part_of_a_size": "",
    "large_and_back": "",
    "one_less_and_more": "",
    "third_of_a_wide_integer": "",
    "small_rows_of_seven": "",
    "length_of_a_short_range": "",
    "large_sizes": "N <= 1000000",
    "no_launch_at_one_size": "N != 4099",
    "grid_of_bit_length": "N <= 536870911",
    "grid_of_isqrt": "to_int(floor(sqrt(N))) < 100000",
    "size_in_a_tensor": "",
    "size_of_a_list": "",
    "product_in_a_tensor": "",
    "sizes_changed_in_a_tensor": "",
    "sizes_changed_in_a_view": "",
    "part_of_sizes_in_a_tensor": "",
    "product_that_wraps": "N**4 <= 9223372036854775807",
    "truth_by_identity": "",
    "identity_in_a_helper": "",
    "member_of_an_enumeration": "",
    "beside_a_fraction": "",
    "numbers_of_a_generator": "",
    "numbers_in_a_circle": "",
    "queue_that_turns": "",
    "calls_that_are_counted": "",
    "table_of_sizes": "",
    "cached_factor": "N <= 1234567",
    "doubled_up_to_a_limit": "N <= 4194304",
    "view_that_may_fail": "",
    "power_of_a_remainder": "",
    "view_that_fails_at_once": "",
    "view_of_any_strides": "",
    "parts_that_are_counted": "",
    "chunks_that_are_counted": "",
    "narrow_size": "(N + 63) // 64 == (N % 16777216 + 63) // 64",
    "clipped": "",
    "absolute": "",
    "default": "s != 0",
    "rounded": "",
    "root_of_square": "",
    "negative_only": "",
}


@case(x="f32[N]")
def length_of_a_short_range(x):
    """Some of the last 4095 elements are left out."""
    return scale(x, 2.0, len(range(0, x.numel() - 4095, 64)))


# ---- right -----------------------------------------------------------------------------------------------------------


@case(x="f32[N]")
def plain(x):
    return scale(x, 2.0)


@case(x="f32[M,N]")
def sizes_multiplied_in_a_tensor(x):
    return scale(x, 2.0, triton.cdiv(int(torch.prod(torch.tensor(x.shape))), 64))


@case(x="f32[M,N]")
def sizes_out_of_a_tensor(x):
    m, n = torch.as_tensor(x.shape)
    return scale(x, 2.0, triton.cdiv(int(m) * int(n), 64))


@case(x="f32[N]")
def ceiling(x):
    return scale(x, 2.0, math.ceil(x.numel() / 64))


@case(x="f32[N]")
def length_of_a_range(x):
    return scale(x, 2.0, len(range(0, x.numel(), 64)))


@case(x="f32[N]", s="f32")
def both_signs(x, s):
    return scale(x, s if s > 0 else -abs(s))


@case(x="f32[M,N]")
def padded_rows(x):
    M, N = x.size()
    out = x.new_empty(M, N)
    assert N <= 65536, "too long"
    rows_kernel[lambda meta: (M,)](x, out, N, BLOCK=1 << (N - 1).bit_length())
    return out


@case(x="f32[N]")
def warps_of_a_size(x):
    out = torch.empty_like(x)
    n = x.numel()
    warps = 8 if n > 100000 else 4
    scaled_kernel[(-(-n // 64),)](x, out, n, 2.0, BLOCK=64, num_warps=warps)
    return out


@case(x="f32[N]")
def nothing_for_small(x):
    n = max(x.shape[0], 1)
    return scale(x, 2.0, (n + 63) >> 6)


@case(x="f32[N]")
def written_as_a_slice(x):
    """The slice is the whole: PyTorch leaves it out where it knows the sizes, and not where they are symbols."""
    n = x.shape[0]
    out = torch.empty_like(x)
    out[: min(triton.next_power_of_2(n), n)] = scale(x, 2.0)
    return out


@case(x="f32[M,N]")
def tiles_of_the_result(x):
    return repeated(x, 2.0)


@case(x="f32[N]")
def type_of_a_root(x):
    return scale(x, 2.0 if type(math.sqrt(x.numel())) is float and type(x.numel()) is not float else 3.0)


@case(x="f32[N]")
def half_and_quotient(x):
    n = x.numel()
    part = math.ceil(n / 48) + int(n * 0.5) + int(math.sqrt(n))
    return scale(x, 2.0 if n / 48 > 3 or part >= 0 else 3.0)


@case(x="f32[N]", s="f32")
def a_sign(x, s):
    return scale(x, s if 1 - s > 0 else s * 1.0)


FACTOR = contextvars.ContextVar("factor", default=2.0)


@case(x="f32[N]")
def kept_in_a_context(x):
    s = FACTOR.get()
    if x.numel() == 2**41 + 1:
        FACTOR.set(3.0)  # of the call after this one
    return scale(x, s)


RIGHT = ("plain", "ceiling", "length_of_a_range", "both_signs", "padded_rows", "warps_of_a_size", "nothing_for_small",
         "tiles_of_the_result", "written_as_a_slice", "view_that_changes_nothing", "view_of_groups",
         "type_of_a_root", "half_and_quotient", "a_sign", "kept_in_a_context", "sizes_out_of_a_tensor")  # fmt: skip

for _name in (*WRONG, *RIGHT, "sizes_multiplied_in_a_tensor"):
    _case = globals()[_name]
    _twice = _name in ("small_rows_of_seven", "tiles_of_the_result")
    _case.reference(twice if _twice else times if "s" in _case.params else double)

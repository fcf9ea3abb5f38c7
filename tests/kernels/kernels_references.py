"""References whose results PyTorch takes from a type, does not determine, or returns in another order."""

import os
import random
import sys
import time
from types import FunctionType

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def norm_kernel(x, out, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + i, mask=i < N, other=0).to(tl.float32)
    tl.store(out + row * N + i, v / tl.sqrt(tl.sum(v * v) / N + eps), mask=i < N)


def normed(x, eps):
    out, n = torch.empty_like(x), x.shape[1]
    norm_kernel[(x.shape[0],)](x, out, n, eps, BLOCK=triton.next_power_of_2(n))
    return out


@case(x="f16[M,N]")
def eps_of_f16(x):
    return normed(x, 2**-10)


@case(x="f16[M,N]")
def eps_of_f32(x):
    return normed(x, 2**-23)


for c in (eps_of_f16, eps_of_f32):
    c.reference(lambda x: torch.nn.functional.rms_norm(x, (x.shape[1],)))


@triton.jit
def ends_kernel(x, out, N, TOP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N, other=0)
    v = tl.where(v != v, 0.0, v)
    v = tl.where(v == float("inf"), TOP, v)
    v = tl.where(v == -float("inf"), -TOP, v)
    tl.store(out + i, v, mask=i < N)


def ended(x, top):
    out, n = torch.empty_like(x), x.shape[0]
    ends_kernel[(triton.cdiv(n, 64),)](x, out, n, TOP=top, BLOCK=64)
    return out


@case(x="f16[N] any")
def ends_of_f16(x):
    return ended(x, 65504.0)


@case(x="f32[N] any")
def ends_of_f32(x):
    return ended(x, 3.4028234663852886e38)


@case(x="f32[N] any")
def other_ends(x):
    return ended(x, 1e38)


for c in (ends_of_f16, ends_of_f32, other_ends):
    c.reference(lambda x: torch.nan_to_num(x))


@triton.jit
def add_kernel(x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < N) + tl.load(y + i, mask=i < N), mask=i < N)


def added(x, y):
    out, n = torch.empty_like(x), x.shape[0]
    add_kernel[(triton.cdiv(n, 64),)](x, y, out, n, BLOCK=64)
    return out


@case(x="f32[N]", i="i64[N] < N")
def put(x, i):
    return added(torch.zeros_like(x).index_put_((i,), x), x)


@case(x="f32[N]", i="i64[N] < N")
def put_and_added(x, i):
    return added(torch.zeros_like(x).index_put_((i,), x, accumulate=True), x)


@case(x="f32[N]", i="i64[N] < N")
def put_one_number(x, i):
    return added(torch.zeros_like(x).scatter(0, i, 2.0), x)


put.reference(lambda x, i: torch.zeros_like(x).scatter(0, i, x) + x)
put_and_added.reference(lambda x, i: torch.zeros_like(x).scatter_add(0, i, x) + x)
put_one_number.reference(lambda x, i: torch.zeros_like(x).index_fill(0, i, 2.0) + x)


@case(x="f32[N]", y="f32[N]")
def by_key(x, y):
    return {"b": added(x, y), "a": added(x, x)}


@case(x="f32[N]", y="f32[N]")
def by_key_wrong(x, y):
    return {"b": added(x, x), "a": added(x, y)}


for c in (by_key, by_key_wrong):
    c.reference(lambda x, y: {"a": x + x, "b": x + y})


@triton.jit
def rows_kernel(i, w, out, D, pad, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    at = tl.load(i + row).to(tl.int64)
    v = tl.load(w + at * D + lane, mask=(lane < D) & (at != pad), other=0.0)
    tl.store(out + row * D + lane, v, mask=lane < D)


@case(i="i32[N] < V", w="f32[V,D]", pad="i32", where="D <= 64")
def padded_rows(i, w, pad):
    out = torch.empty((i.shape[0], w.shape[1]), device=w.device)
    rows_kernel[(i.shape[0],)](i, w, out, w.shape[1], pad, BLOCK=64)
    return out


# ---- questions to the world outside ----------------------------------------------------------------------------------


def _twice(x, y):
    return added(x, x)


OUTSIDE = {
    "asks_variable": lambda x, y: x * 3 if os.environ.get("TRILIFT_TEST_ASKED") else x * 2,
    "asks_threads": lambda x, y: x * (3 if torch.get_num_threads() > 999 else 2),
    "loses_time": lambda x, y: x * (3 if time.time() < 9 else 2),
    "loses_chance": lambda x, y: x * (3 if random.random() < -1 else 2),
    "loses_file": lambda x, y: x * (3 if os.path.exists("/no/such/file") else 2),
    "loses_identity": lambda x, y: x * (3 if id(y) == 7 else 2),
}
ASKING = {n: case(x="f32[N]", y="f32[N]")(FunctionType(_twice.__code__, globals(), n)) for n in OUTSIDE}
for n, c in ASKING.items():
    c.reference(OUTSIDE[n])
two_branches = case(x="f32[N]", s="i32")(lambda x, s: added(x, x if s > 0 else -x))
two_branches.reference(lambda x, s: 2 * x if s > 0 else 0 * x)

ON_GPU = {
    "is_cuda": lambda x: x.is_cuda,
    "is_cpu": lambda x: not x.is_cpu,
    "type": lambda x: x.device.type == "cuda",
    "text": lambda x: str(x.device).startswith("cuda"),
    "equal": lambda x: x.device == torch.device("cuda", 0) and x.device == torch.ones_like(x).device,
    "number": lambda x: x.get_device() == 0,
    "class": lambda x: isinstance(x.device, torch.device),
    "moved": lambda x: torch.ones(1, device="cuda").to("cuda:0").cuda().is_cuda,
    "available": lambda x: torch.cuda.is_available(),
    "made": lambda x: torch.ones(1, device=x.device).to(x.device).sum().new_ones(()).is_cuda,
}


def _of_device(asked, factor):
    found = case(x="f32[N]")(lambda x: added(x, x))
    found.reference(lambda x: x * (factor if asked(x) else 5 - factor))
    return found


told_on_gpu = {n: _of_device(f, 2) for n, f in ON_GPU.items()}
told_on_cpu = {n: _of_device(f, 3) for n, f in ON_GPU.items()}


@triton.jit
def bits_kernel(x, out, n, UP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x + i, mask=i < n).to(tl.uint32, bitcast=True)
    if UP:
        bits += 0x7FFF + ((bits >> 16) & 1)
    tl.store(out + i, (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True), mask=i < n)


def narrowed(x, up):
    out = torch.empty(x.shape, dtype=torch.bfloat16, device=x.device)
    bits_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), UP=up, BLOCK=64)
    return out


bits_rounded = case(x="f32[N]")(lambda x: narrowed(x, True))
bits_cut = case(x="f32[N]")(lambda x: narrowed(x, False))
for c in (bits_rounded, bits_cut):
    c.reference(lambda x: x.to(torch.bfloat16))


@triton.jit
def widened_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x + i, mask=i < n).to(tl.uint16, bitcast=True).to(tl.uint32)
    tl.store(out + i, (bits << 16).to(tl.float32, bitcast=True), mask=i < n)


@case(x="bf16[N]")
def bits_widened(x):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    widened_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


bits_widened.reference(lambda x: x.float())


@case(x="f32[N]", out="f32[N]")
def written_and_returned(x, out):
    return out.copy_(added(x, x))


@case(x="f32[N]", out="f32[N]")
def spoilt_beside(x, out):
    out.copy_(added(x, x))
    return added(x, x)


@case(x="f32[N]", y="f32[N]")
def right_destination(x, y):
    return y.copy_(added(x, x))


@case(x="f32[N]", y="f32[N]")
def wrong_destination(x, y):
    y[: x.numel() // 2].copy_(added(x, x)[: x.numel() // 2])
    return y


@case(x="f32[N]", y="f32[N]")
def read_by_the_reference(x, y):
    return y.copy_(added(x, y))


@case(x="f32[N]", y="f32[N]")
def returned_while_small(x, y):
    y.copy_(added(x, x))
    return y if x.numel() < 4 else y.clone()


for _c in (right_destination, wrong_destination, returned_while_small):
    _c.reference(lambda x, y: 2 * x)
read_by_the_reference.reference(lambda x, y: x + y)
written_and_returned.reference(lambda x, out: out.copy_(2 * x))
spoilt_beside.reference(lambda x, out: 2 * x)
number_beside = case(x="f32[N]")(lambda x: (added(x, x), 3))
number_beside.reference(lambda x: (2 * x, 3))
wrong_beside_a_number = case(x="f32[N]")(lambda x: (added(x, x), 3))
wrong_beside_a_number.reference(lambda x: {"n": 3, "y": 3 * x, "name": "y"})
that_exits = case(x="f32[N]")(lambda x: added(x, x))
that_exits.reference(lambda x: sys.exit(0))


@triton.jit
def least_kernel(x_ptr, out_ptr, N, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    tl.store(out_ptr + i, (tl.minimum(s, 0) - x).to(tl.int64), mask=i < N)


@case(x="i32[N] in (0, 1000)", s="i32")
def least_minus(x, s):
    out = torch.empty(x.shape, dtype=torch.int64, device=x.device)
    least_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), s, BLOCK=64)
    return out


least_minus.reference(lambda x, s: min(s, 0) - x.to(torch.int64))


@triton.jit
def times_kernel(x_ptr, out_ptr, N, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N, other=0.0) * s, mask=i < N)


def times(x, s):
    out = torch.empty_like(x)
    times_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), s, BLOCK=64)
    return out


# what is left of a half beside 1 is a half and not 0; only beyond 100,000 elements, or for large scalars
fraction_of_a_size = case(x="f32[N]")(lambda x: times(x, 0.0))
fraction_of_a_size.reference(lambda x: x * ((x.shape[0] // 100000) / 2 % 1))
fraction_by_divmod = case(x="f32[N]")(lambda x: times(x, 1.0))
fraction_by_divmod.reference(lambda x: x + divmod((x.shape[0] // 100000) / 2, 1.0)[1])
fraction_as_a_condition = case(x="f32[N]")(lambda x: times(x, 1.0))
fraction_as_a_condition.reference(lambda x: x * (1.0 if (x.shape[0] // 100000) / 2 % 1.0 == 0 else 3.0))
fraction_of_a_scalar = case(x="f32[N]", s="i32 > 0")(lambda x, s: times(x, 0.0))
fraction_of_a_scalar.reference(lambda x, s: x * ((s // 1000003) / 2 % 1))
half_of_the_parity = case(x="f32[N]")(lambda x: times(x, x.shape[0] % 2 * 0.5))
half_of_the_parity.reference(lambda x: x * (x.shape[0] / 2 % 1))

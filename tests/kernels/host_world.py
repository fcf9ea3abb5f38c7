"""Host functions that let a size slip into a text, ask the world outside, or keep a number between calls.

Each wrong one differs from its reference for one size, one answer, one layout, or in a later call. Right ones too.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from random import randint

import numpy as np
import torch
import triton
import triton.language as tl

from trilift import case
from trilift.lift.capture.cpu_memory import BY_DEFAULT, BY_NUMBER

from .host_functions import double, scale, scaled_kernel, times


@triton.jit
def pointed_kernel(x_ptr, s_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(s_ptr) * tl.load(x_ptr + i, mask=i < N), mask=i < N)


@triton.jit
def strided_kernel(x_ptr, out_ptr, N, sm, sn, om, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for j in range(0, N, BLOCK):
        i = j + tl.arange(0, BLOCK)
        tl.store(out_ptr + r * om + i, 2 * tl.load(x_ptr + r * sm + i * sn, mask=i < N), mask=i < N)


def pointed(x, s):
    out = torch.empty_like(x)
    n = x.numel()
    pointed_kernel[(triton.cdiv(n, 64),)](x, s, out, n, BLOCK=64)
    return out


def rows(x, sm, sn):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    strided_kernel[(M,)](x, out, N, sm, sn, N, BLOCK=64)
    return out


# ---- a size in a text, or taken by another library -------------------------------------------------------------------

F4099 = 3.0


@case(x="f32[N]")
def text_of_size(x):
    return scale(x, 3.0 if str(x.shape[0]) == "4099" else 2.0)


@case(x="f32[N]")
def text_of_shape(x):
    return scale(x, 3.0 if "4099" in str(tuple(x.shape)) else 2.0)


@case(x="f32[N]")
def formatted(x):
    return scale(x, 3.0 if f"{x.shape[0]:05d}" == "04099" else 2.0)


@case(x="f32[N]")
def name_with_size(x):
    return scale(x, globals().get(f"F{x.shape[0]}", 2.0))


@case(x="f32[N]", s="f32")
def rounded_by_format(x, s):
    return scale(x, float(f"{s:.6f}"))


@case(x="f32[N]")
def raised_at_one_size(x):
    if x.shape[0] > 10000:
        text = str(x.shape[0])
        if text == "10001":
            raise ValueError(text)
        return scale(x, 3.0)
    return scale(x, 2.0)


@case(x="f32[N]")
def caught_message(x):
    try:
        raise ValueError(f"{x.shape[0]}")
    except ValueError as error:
        return scale(x, 3.0 if "4099" in str(error) else 2.0)


@case(x="f32[N]")
def array_of_sizes(x):
    return scale(x, 3.0 if np.log2(x.shape[0]) > 14 else 2.0)


# ---- fitted and read -------------------------------------------------------------------------------------------------


@case(x="f32[N]", s="f32")
def clamped_far_below(x, s):
    return scale(x, max(-1e30, s))


@case(x="f32[N]")
def rare_remainder(x):
    n = x.shape[0]
    return scale(x, 2.0, triton.cdiv(n, 64) - (1 if (n * n * 31 + n) % 99991 == 17 else 0))


@case(x="f32[N]")
def tensor_of_a_size(x):
    return pointed(x, torch.tensor([3.0 if x.numel() > 100000 else 2.0]))


@case(x="f32[N]")
def array_of_a_size(x):
    return pointed(x, torch.from_numpy(np.array([3.0 if x.numel() > 100000 else 2.0], dtype=np.float32)))


# ---- the world outside -----------------------------------------------------------------------------------------------


@case(x="f32[N]")
def environment(x):
    return scale(x, 3.0 if os.environ.get("SCALE_BY_THREE") else 2.0)


@case(x="f32[N]")
def environment_has(x):
    return scale(x, 3.0 if "SCALE_BY_THREE" in os.environ else 2.0)


@case(x="f32[N]")
def capability(x):
    return scale(x, 3.0 if torch.cuda.get_device_capability()[0] >= 10 else 2.0)


@case(x="f32[N]")
def target(x):
    return scale(x, 3.0 if triton.runtime.driver.active.get_current_target().arch >= 100 else 2.0)


@case(x="f32[N]")
def multiprocessors(x):
    return scale(x, 3.0 if torch.cuda.get_device_properties(x.device).multi_processor_count > 100 else 2.0)


@case(x="f32[N]")
def unaligned(x):
    return scale(x, 3.0 if x.data_ptr() % 16 else 2.0)


@case(x="f32[N]")
def without_gradients(x):
    return scale(x, 2.0 if torch.is_grad_enabled() else 3.0)


@case(x="f32[N]")
def with_gradient(x):
    return scale(x, 3.0 if x.requires_grad else 2.0)


@case(x="f32[N]")
def tensor_cores(x):
    return scale(x, 3.0 if torch.backends.cuda.matmul.allow_tf32 else 2.0)


@case(x="f32[N]")
def chance(x):
    return scale(x, 3.0 if random.random() > 0.999999 else 2.0)


@case(x="f32[N]")
def chance_by_name(x):
    return scale(x, 3.0 if randint(0, 10**9) == 5 else 2.0)


@case(x="f32[N]")
def chance_of_numpy(x):
    return scale(x, 3.0 if np.random.rand() > 0.999999 else 2.0)


@case(x="f32[N]")
def seconds(x):
    return scale(x, 3.0 if time.time() > 4e9 else 2.0)


@case(x="f32[N]")
def flag_file(x):
    return scale(x, 3.0 if os.path.exists("/nowhere/flag") else 2.0)


@case(x="f32[N]")
def identity(x):
    return scale(x, 3.0 if id(x) % 1000003 == 7 else 2.0)


# ---- kept between calls ----------------------------------------------------------------------------------------------

CALLS = 0
STATE = {"calls": 0}
COUNTER = itertools.count()


class Kept:
    calls = 0


def ticking():
    calls = 0

    def tick():
        nonlocal calls
        calls += 1
        return calls

    return tick


tick = ticking()


@case(x="f32[N]")
def counted(x):
    global CALLS
    CALLS += 1
    return scale(x, 3.0 if CALLS > 1000 else 2.0)


@case(x="f32[N]")
def counted_in_a_table(x):
    STATE["calls"] += 1
    return scale(x, 3.0 if STATE["calls"] > 1000 else 2.0)


@case(x="f32[N]")
def counted_in_a_class(x):
    Kept.calls += 1
    return scale(x, 3.0 if Kept.calls > 1000 else 2.0)


@case(x="f32[N]")
def counted_in_a_closure(x):
    return scale(x, 3.0 if tick() > 1000 else 2.0)


@case(x="f32[N]")
def counted_by_an_iterator(x):
    return scale(x, 3.0 if next(COUNTER) > 1000 else 2.0)


# ---- layouts ---------------------------------------------------------------------------------------------------------


@case(x="f32[M,N] strided")
def other_if_contiguous(x):
    return rows(x, x.stride(0), 0 if x.is_contiguous() else x.stride(1))


@case(x="f32[M,N] strided")
def other_if_dense_rows(x):
    return rows(x, x.stride(0), 0 if x.stride(1) == 1 else x.stride(1))


@case(x="f32[M,N] strided")
def taken_as_contiguous(x):
    return rows(x, x.shape[1], 1)


@case(x="f32[N]")
def other_if_a_slice(x):
    return scale(x, 3.0 if x.storage_offset() else 2.0)


def asked_of(condition):
    """A host function that computes something else where an input is as `condition` says."""

    def asks(x):
        return scale(x, 3.0 if condition(x) else 2.0)

    return case(x="f32[N]")(asks)


other_in_a_storage = asked_of(lambda x: x.untyped_storage().nbytes() != x.numel() * 4)
other_if_a_parameter = asked_of(lambda x: isinstance(x, torch.nn.Parameter))
other_with_a_base = asked_of(lambda x: x._base is not None)
other_if_a_view = asked_of(lambda x: x._is_view())
other_if_changed = asked_of(lambda x: x._version > 3)
other_with_gradient = asked_of(lambda x: x.grad is not None)
other_if_no_leaf = asked_of(lambda x: not x.is_leaf)
other_in_inference = asked_of(lambda x: x.is_inference())
other_if_negative_bit = asked_of(lambda x: torch.is_neg(x))
other_on_second_device = asked_of(lambda x: x.get_device() == 1)
other_when_captured = asked_of(lambda x: torch.cuda.is_current_stream_capturing())
other_with_attribute = asked_of(lambda x: getattr(x, "scale", None) is not None)
other_if_shared = asked_of(lambda x: x.is_shared())
other_on_another_stream = asked_of(lambda x: torch.cuda.current_stream() != torch.cuda.default_stream())
other_with_tangent = asked_of(lambda x: torch.autograd.forward_ad.unpack_dual(x).tangent is not None)
other_if_its_memory_starts_before = asked_of(lambda x: x.untyped_storage().data_ptr() != x.data_ptr())
other_if_it_has = asked_of(lambda x: hasattr(x, "scale"))


# ---- memory on the CPU, launches that need not wait ------------------------------------------------------------------


def doubled_into(x, out, **options):
    scaled_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), 2.0, BLOCK=64, **options)
    return out


@case(x="f32[N]")
def made_on_cpu(x):
    return doubled_into(x, torch.empty(x.shape, dtype=x.dtype, device="cpu"))


@case(x="f32[N]")
def moved_to_cpu(x):
    return doubled_into(x.cpu(), torch.empty_like(x))


@case(x="f32[N]")
def sent_to_cpu(x):
    return doubled_into(x.to(torch.device("cpu")), torch.empty_like(x))


@case(x="f32[N]")
def sent_to_another_on_cpu(x):
    return doubled_into(x.to(torch.ones(1, device="cpu")), torch.empty_like(x))


@case(x="f32[N]")
def made_like_one_on_cpu(x):
    return doubled_into(x, torch.empty_like(x.cpu()).view(-1))


@case(x="f32[N]")
def made_by_default(x):
    return doubled_into(x, torch.empty(x.shape))


@case(x="f32[N]")
def made_on_another_gpu(x):
    return doubled_into(x, torch.empty(x.shape, device="cuda:1"))


@case(x="f32[N]")
def moved_to_another_gpu(x):
    return doubled_into(x, torch.empty_like(x).to(1))


@case(x="f32[N]")
def summed_by_default(x):
    return doubled_into(x, (torch.zeros(2 * x.numel()) + 1)[x.numel() :])


@case(x="f32[N]")
def other_on_older_devices(x):
    return scale(x, {9: 2.0}.get(torch.cuda.get_device_capability()[0], 3.0))


@torch.library.custom_op("trilift_tests::scaled_in_steps", mutates_args=())
def scaled_in_steps(x: torch.Tensor, width: int) -> torch.Tensor:
    out = torch.empty_like(x)
    if width == 1000:
        return out.zero_()
    scaled_kernel[(triton.cdiv(width, 64),)](x, out, width, 2.0, BLOCK=64)
    return out


@case(x="f32[N]")
def other_in_an_operator(x):
    return scaled_in_steps(x, x.numel())


@case(x="f32[N]")
def halves_before_it_is_done(x):
    return doubled_into(x * 0.5, torch.empty_like(x), launch_pdl=True) * 2


@case(x="f32[N]")
def starts_before_it_is_done(x):
    twice = doubled_into(x, torch.empty_like(x))
    return doubled_into(twice, torch.empty_like(x), launch_pdl=True) / 2


@case(x="f32[N]")
def cooperative(x):
    return doubled_into(x, torch.empty_like(x), launch_cooperative_grid=True)


# ---- numbers out of tensors ------------------------------------------------------------------------------------------


@triton.jit
def picked_kernel(x_ptr, t_ptr, out_ptr, V, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK
    k = tl.load(t_ptr + i)
    tl.store(out_ptr + i, tl.load(x_ptr + i * V + k) / n)


def picked(x, t, n):
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    picked_kernel[(x.shape[0],)](x, t, out, x.shape[1], n, BLOCK=1)
    return out


def mean_of_picked(x, t):
    return x.gather(1, t[:, None])[:, 0] / x.shape[0]


@case(x="f32[M,V]", t="i64[M] < V")
def counted_twice(x, t):
    return picked(x, t, (t != -100).sum().item() + (t >= 0).sum().item())


@case(x="f32[M,V]", t="i64[M] < V")
def count_without_the_first(x, t):
    seen = t != -100
    seen[0] = False
    return picked(x, t, seen.sum().item())


@case(x="f32[M,V]", t="i64[M] < V")
def greatest_where_four(x, t):
    return picked(x, t, t.max().item() + 1 if x.shape[1] == 4 else x.shape[0])


@case(x="f32[M,V]", t="i64[M] < V")
def sized_by_columns(x, t):
    return picked(x, t, (t < x.shape[1]).sum().item() * (1 if x.shape[1] < 100000 else 2))


@case(x="f32[M,V]", t="i64[M] < V")
def counted_once(x, t):
    seen = t != -100
    n = seen.sum().item()
    assert (t * seen).max() < x.shape[-1], f"{t.max()} is out of bounds"
    assert (t * seen).min() >= 0
    return picked(x, t, n)


# ---- references ------------------------------------------------------------------------------------------------------


def halves(x):
    return 2 * torch.tensor_split(x, 2)[0]


def one_remainder(x):
    return 2 * x if x.shape[0] % 4096 != 0 else 3 * x


@case(x="f32[N]")
def first_half(x):
    return scale(x[: x.numel() // 2 + 1].contiguous(), 2.0)


@case(x="f32[N]")
def every_remainder(x):
    return scale(x, 2.0)


WRONG = {  # the clause that excludes the wrong inputs, where there is one
    "text_of_size": "",
    "text_of_shape": "",
    "formatted": "",
    "name_with_size": "",
    "rounded_by_format": "",
    "raised_at_one_size": "",
    "caught_message": "",
    "array_of_sizes": "",
    "clamped_far_below": "",
    "rare_remainder": "(N + 31 * N ** 2) % 99991 != 17",
    "tensor_of_a_size": "",
    "array_of_a_size": "",
    "environment": "the environment variable SCALE_BY_THREE is not set",
    "environment_has": "the environment variable SCALE_BY_THREE is not set",
    "capability": "compute_capability // 10 < 10",
    "target": "compute_capability < 100",
    "multiprocessors": "multi_processor_count of the device is 4",
    "unaligned": "address(x) % 16 == 0",
    "without_gradients": "torch.is_grad_enabled()",
    "with_gradient": "~x.requires_grad",
    "tensor_cores": "torch.backends.cuda.matmul.allow_tf32 is False",
    "chance": "",
    "chance_by_name": "",
    "chance_of_numpy": "",
    "seconds": "",
    "flag_file": "",
    "identity": "",
    "counted": "",
    "counted_in_a_table": "",
    "counted_in_a_class": "",
    "counted_in_a_closure": "",
    "counted_by_an_iterator": "",
    "other_if_contiguous": "x is not contiguous",
    "other_if_dense_rows": "stride(x,1) != 1",
    "taken_as_contiguous": "",
    "other_if_a_slice": "the storage offset of x is 0",
    "other_in_a_storage": "the memory of x is as large as its elements need",
    "other_if_a_parameter": "x is not an nn.Parameter",
    "other_with_a_base": "x._base is None",
    "other_if_a_view": "~x._is_view()",
    "other_if_changed": "x._version is 0",
    "other_with_gradient": "x.grad is None",
    "other_if_no_leaf": "x.is_leaf",
    "other_in_inference": "~x.is_inference()",
    "other_if_negative_bit": "~x.is_neg()",
    "other_on_second_device": "x.get_device() is 0",
    "other_when_captured": "~torch.cuda.is_current_stream_capturing()",
    "other_with_attribute": "x has no attribute scale",
    "other_if_it_has": "x has no attribute scale",
    "other_on_older_devices": "compute_capability // 10 == 9",
    "other_in_an_operator": "N != 1000",
    "made_by_default": BY_DEFAULT,
    "summed_by_default": BY_DEFAULT,
    "made_on_another_gpu": BY_NUMBER.format("cuda:1"),
    "moved_to_another_gpu": BY_NUMBER.format("cuda:1"),
    "other_if_shared": "",
    "other_on_another_stream": "PyTorch's current stream is the default one",
    "other_with_tangent": "no input has a tangent of forward differentiation",
    "other_if_its_memory_starts_before": "the storage offset of x is 0",
    "counted_twice": "",
    "count_without_the_first": "",
    "greatest_where_four": "",
    "sized_by_columns": "V < 100000",
    "first_half": "2 * (N // 2) < N",
    "every_remainder": "N % 4096 != 0",
}


REFUSED = (  # at every size
    "made_on_cpu",
    "moved_to_cpu",
    "sent_to_cpu",
    "sent_to_another_on_cpu",
    "made_like_one_on_cpu",
    "halves_before_it_is_done",
    "starts_before_it_is_done",
    "cooperative",
)


# ---- right -----------------------------------------------------------------------------------------------------------


@case(x="f32[N]")
def sized_message(x):
    n = x.numel()
    assert n > 0, f"empty: {n}"
    if n > 1 << 24:
        raise ValueError(f"too long: {n} elements, {x.shape}")
    return scale(x, 2.0)


@case(x="f32[N]")
def warps_by_capability(x):
    out = torch.empty_like(x)
    warps = 8 if torch.cuda.get_device_capability()[0] >= 9 else 4
    pointed_kernel[(triton.cdiv(x.numel(), 64),)](x, torch.full((1,), 2.0), out, x.numel(), BLOCK=64, num_warps=warps)
    return out


@case(x="f32[N]")
def stages_by_alignment(x):
    out = torch.empty_like(x)
    stages = 2 if x.data_ptr() % 16 == 0 else 1
    pointed_kernel[(triton.cdiv(x.numel(), 64),)](x, torch.full((1,), 2.0), out, x.numel(), BLOCK=64, num_stages=stages)
    return out


@case(x="f32[N]")
def saved_if_gradients(x):
    if x.requires_grad and torch.is_grad_enabled():
        saved = x
        return scale(saved, 2.0)
    return scale(x, 2.0)


@case(x="f32[M,N] strided")
def any_strides(x):
    return rows(x, x.stride(0), x.stride(1))


@case(x="f32[M,N] strided")
def made_contiguous(x):
    x = x.contiguous()
    return rows(x, x.shape[1], 1)


@case(x="f32[N]", s="f32")
def steps_of_a_scalar(x, s):
    return scale(x, s if x.numel() < 4096 else s * 0.5 + s / 2)


@case(x="f32[N]")
def saved_if_leaf(x):
    saved = [x] if x.is_leaf or x.is_inference() or x._is_view() else []
    return scale(x, 1.0 + len([saved]))


@case(x="f32[N]")
def asked_of_what_it_makes(x):
    out = torch.empty_like(x)
    if hasattr(out, "scale") or isinstance(out, torch.nn.Parameter) or out.grad is not None or x.dim() != 1:
        return x
    return scale(x, 2.0)


@case(x="f32[N]")
def sent_there_and_back(x):
    factor = torch.full((1,), 2.0, device="cpu").to(x.device, non_blocking=True)
    return pointed(x.cpu().cuda(), factor)


@case(x="f32[N]")
def on_one_device(x):
    y = torch.empty_like(x)
    assert x.device == y.device and x.device.type == "cuda"
    if x.cpu().device.type == "cuda" or x.device == torch.device("cpu"):
        return x
    return doubled_into(x, torch.zeros(x.shape, device=y.device))


@case(x="f32[N]")
def default_is_the_gpu(x):
    with torch.device("cuda"):
        out = torch.empty(x.shape)
    return doubled_into(x, out)


@case(x="f32[N]")
def moved_to_the_gpu(x):
    return doubled_into(x, torch.zeros(x.shape).cuda())


@torch.library.custom_op("trilift_tests::scaled_whole", mutates_args=())
def scaled_whole(x: torch.Tensor, width: int, factor: float = 2.0) -> torch.Tensor:
    return scale(x[:width], factor)


@case(x="f32[N]")
def handed_on_if_overridden(x):
    if torch.overrides.has_torch_function_unary(x) or torch.overrides.has_torch_function((x,)):
        return x
    return scale(x, 2.0)


@case(x="f32[N]")
def by_an_operator(x):
    return scaled_whole(x, x.shape[0])


@case(x="f32[N]")
def counted_as_a_float(x):
    out, n = torch.empty_like(x), round(float(x.numel()))
    scaled_kernel[(triton.cdiv(n, 64),)](x, out, n, {8: 2.0, 9: 2.0, 10: 2.0}.get(major_version(), 2.0), BLOCK=64)
    return out


def major_version():
    return torch.cuda.get_device_capability()[0]


@case(x="f32[N]")
def first_need_not_wait(x):
    return doubled_into(x, torch.empty_like(x), launch_pdl=True)


@case(x="f32[N]")
def second_waits(x):
    twice = doubled_into(x, torch.empty_like(x), launch_pdl=True)
    return doubled_into(twice, torch.empty_like(x), launch_pdl=False) / 2


RIGHT = (
    "sent_there_and_back",
    "on_one_device",
    "by_an_operator",
    "handed_on_if_overridden",
    "counted_as_a_float",
    "default_is_the_gpu",
    "moved_to_the_gpu",
    "first_need_not_wait",
    "second_waits",
    "saved_if_leaf",
    "asked_of_what_it_makes",
    "sized_message",
    "warps_by_capability",
    "stages_by_alignment",
    "saved_if_gradients",
    "any_strides",
    "made_contiguous",
    "steps_of_a_scalar",
    "counted_once",
)

for _case in (globals()[n] for n in (*WRONG, *REFUSED, *RIGHT)):
    _case.reference(times if "s" in _case.params else double)
for _case in (c for c in (globals()[n] for n in (*WRONG, *REFUSED, *RIGHT)) if "t" in c.params):
    _case.reference(mean_of_picked)
first_half.reference(halves)
every_remainder.reference(one_remainder)


# ---- scalars that `where` keeps below one ----------------------------------------------------------------------------


@case(x="f32[N]", s="i32", where="s < 0")
def negative(x, s):
    return scale(x, s)


@case(x="f32[N]", s="i32", where="s == 0")
def zero(x, s):
    return scale(x, s)


@case(x="f32[N]", s="i32", where="s < 0")
def negative_as_positive(x, s):
    return scale(x, abs(s))


for _case in (negative, zero, negative_as_positive):
    _case.reference(times)

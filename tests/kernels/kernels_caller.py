"""Memory of the caller: strided inputs that are written, contents that autotuning zeroes before its first launch."""

import torch
import triton
import triton.language as tl

from trilift import case

CONFIGS = [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})]


@triton.jit
def fill_kernel(x_ptr, N, s0, s1, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i * s0 + j * s1, (i + j).to(tl.float32), mask=j < N)


def places(x):
    return torch.arange(x.shape[0])[:, None] + torch.arange(x.shape[1])[None, :]


@case(x="f32[M,N] strided")
def fill_strided(x):
    """Strides 2 and 1 would make x[0, 2] and x[1, 0] one element."""
    fill_kernel[(x.shape[0], triton.cdiv(x.shape[1], 32))](x, x.shape[1], x.stride(0), x.stride(1), BLOCK=32)
    return x


@fill_strided.reference
def _(x):
    return x.copy_(places(x))


@triton.jit
def copy_kernel(x_ptr, out_ptr, N, s0, s1, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i * N + j, tl.load(x_ptr + i * s0 + j * s1, mask=j < N), mask=j < N)


@case(x="f32[M,N] strided")
def copy_strided(x):
    out = torch.empty(x.shape, device=x.device)
    copy_kernel[(x.shape[0], triton.cdiv(x.shape[1], 32))](x, out, x.shape[1], x.stride(0), x.stride(1), BLOCK=32)
    return out


@copy_strided.reference
def _(x):
    return x.clone()


# ---- autotuning ------------------------------------------------------------------------------------------------------


@triton.jit
def add_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    old = tl.load(out_ptr + at, mask=at < N)
    tl.store(out_ptr + at, old + tl.load(x_ptr + at, mask=at < N), mask=at < N)


def hook(nargs, reset_only=False):
    nargs["out_ptr"].zero_()


zeroed = triton.autotune(CONFIGS, ["N"], reset_to_zero=["out_ptr"])(add_kernel)
restored = triton.autotune(CONFIGS, ["N"], restore_value=["out_ptr"])(add_kernel)
hooked = triton.autotune(CONFIGS, ["N"], pre_hook=hook)(add_kernel)


def launch(kernel, x, out):
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


@case(x="f32[N]", y="f32[N]")
def wrong_zeroed_input(x, y):
    return launch(zeroed, x, y)


@wrong_zeroed_input.reference
def _(x, y):
    return y.add_(x)


@case(x="f32[N]", y="f32[N]")
def wrong_hook(x, y):
    return launch(hooked, x, y)


@wrong_hook.reference
def _(x, y):
    return y.add_(x)


@case(x="f32[N]")
def wrong_zeroed_ones(x):
    return launch(zeroed, x, torch.ones_like(x))


@wrong_zeroed_ones.reference
def _(x):
    return x + 1


@case(x="f32[N]")
def wrong_zeroed_scratch(x):
    """The second launch finds what the first one left, and zeroes it if it tunes."""
    out = torch.zeros_like(x)
    launch(restored, x, out)
    return launch(zeroed, x, out)


@wrong_zeroed_scratch.reference
def _(x):
    return 2 * x


@case(x="f32[N]", y="f32[N]")
def right_restored_input(x, y):
    return launch(restored, x, y)


@right_restored_input.reference
def _(x, y):
    return y.add_(x)


@case(x="f32[N]")
def right_zeroed_zeros(x):
    return launch(zeroed, x, torch.zeros_like(x))


@right_zeroed_zeros.reference
def _(x):
    return x.clone()


@case(x="f32[N]", y="f32[N]")
def right_zeroed_by_host(x, y):
    return launch(zeroed, x, y.zero_())


@right_zeroed_by_host.reference
def _(x, y):
    return y.copy_(x)


def _sum_into(x, out):
    add_kernel[(triton.cdiv(x.shape[0], 64),)](x, out, x.shape[0], BLOCK=64)
    return out


@case(x="f32[N]", y="f32[N]")
def sum_in_place(x, y):
    return _sum_into(y, x)


@case(x="f32[N]", y="f32[N]")
def sum_of_a_copy(x, y):
    return _sum_into(y, x.clone())


@triton.jit
def double_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@case(x="f32[M,N]")
def view_of_what_it_changes(x):
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, x.numel(), BLOCK=64)
    return x.t()


@view_of_what_it_changes.reference
def _(x):
    return x.mul_(2).t()


@case(x="f32[N]", y="f32[2*N]")
def part_of_another_input(x, y):
    return _sum_into(x, y[: x.numel()])


@part_of_another_input.reference
def _(x, y):
    return x + y[: x.shape[0]]


@triton.jit
def nan_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.load(x + i, mask=(i < n) & (i % 2 == 0), other=float("nan"))
    tl.store(out + i, kept, mask=i < n)


@case(x="f32[N]")
def nan_on_purpose(x):
    out = torch.empty_like(x)
    nan_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out

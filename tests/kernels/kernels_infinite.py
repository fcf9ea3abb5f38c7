"""Kernels on inputs that may hold infinities and NaN, and kernels that distribute a quotient."""

import torch
import triton
import triton.language as tl

from trilift import case

BLOCK = 64


def elementwise(kernel, *inputs):
    """The output of a kernel that gets pointers to the inputs and to the output, the number of elements and BLOCK."""
    out = torch.empty_like(inputs[0])
    n = out.numel()
    kernel[(triton.cdiv(n, BLOCK),)](*inputs, out, n, BLOCK=BLOCK)
    return out


@triton.jit
def affine_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2 + 1, mask=i < n)


@case(x="f32[N] any")
def affine(x):
    return elementwise(affine_kernel, x)


@affine.reference
def _(x):
    return 1 + 2 * x


@triton.jit
def restored_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v + tl.load(y + i, mask=i < n) - v, mask=i < n)


@case(x="f32[N] any", y="f32[N] any")
def restored(x, y):
    return elementwise(restored_kernel, x, y)


@restored.reference
def _(x, y):
    return y.clone()


@triton.jit
def second_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(y + i, mask=i < n), mask=i < n)


@case(x="f32[N] any", y="f32[N] any")
def second_of_two(x, y):
    return elementwise(second_kernel, x, y)


@case(x="f32[N]", y="f32[N]")
def restored_finite(x, y):
    return elementwise(restored_kernel, x, y)


@restored_finite.reference
def _(x, y):
    return y.clone()


@triton.jit
def relu_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.maximum(tl.load(x + i, mask=i < n), 0), mask=i < n)


@case(x="f32[N] any")
def relu(x):
    return elementwise(relu_kernel, x)


@relu.reference
def _(x):
    return torch.relu(x)


@triton.jit
def clamped_kernel(x, out, n, ALL: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    v = tl.clamp(v, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL) if ALL else tl.clamp(v, -1.0, 1.0)
    tl.store(out + i, v, mask=i < n)


def clamped_case(name, keeps_nan):
    def clamped(x):
        out = torch.empty_like(x)
        clamped_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), ALL=keeps_nan, BLOCK=BLOCK)
        return out

    clamped.__name__ = clamped.__qualname__ = name
    found = case(x="f32[N] any")(clamped)
    found.reference(lambda x: torch.clamp(x, -1.0, 1.0))
    return found


clamped_with_nan = clamped_case("clamped_with_nan", True)
clamped_without_nan = clamped_case("clamped_without_nan", False)


@triton.jit
def without_nan_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(v != v, 0.0, v), mask=i < n)


@case(x="f32[N] any")
def without_nan(x):
    return elementwise(without_nan_kernel, x)


@without_nan.reference
def _(x):
    return torch.where(torch.isnan(x), 0.0, x)


@case(x="f32[N] any")
def without_infinities(x):
    return elementwise(without_nan_kernel, x)


@without_infinities.reference
def _(x):
    return torch.where(torch.isfinite(x), x, 0.0)


@triton.jit
def zero_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 0 * tl.load(x + i, mask=i < n), mask=i < n)


@case(x="f32[N] any")
def zero(x):
    return elementwise(zero_kernel, x)


@zero.reference
def _(x):
    return torch.zeros_like(x)


@triton.jit
def gated_kernel(x, g, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v, w = tl.load(x + i, mask=i < n), tl.load(g + i, mask=i < n)
    tl.store(out + i, v * w / (1 + tl.exp(-w)), mask=i < n)


@case(x="f32[N] any", g="f32[N] any")
def gated(x, g):
    return elementwise(gated_kernel, x, g)


@gated.reference
def _(x, g):
    return x * (g * torch.sigmoid(g))


@triton.jit
def row_sum_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(v, 0))


@case(x="f32[M,N] any")
def row_sum(x):
    out = torch.empty(x.shape[0])
    row_sum_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@row_sum.reference
def _(x):
    return x.sum(-1)


@triton.jit
def masked_by_product_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(v * (i > 0), 0))


@case(x="f32[M,N] any")
def masked_by_product(x):
    out = torch.empty(x.shape[0])
    masked_by_product_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@masked_by_product.reference
def _(x):
    return x[:, 1:].sum(-1)


@triton.jit
def factored_kernel(x, y, z, d, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    difference = tl.load(y + i, mask=m) - tl.load(z + i, mask=m)
    tl.store(out + i, tl.load(x + i, mask=m) / tl.load(d + i, mask=m) * difference, mask=m)


@case(x="f32[N]", y="f32[N]", z="f32[N]", d="f32[N]")
def factored(x, y, z, d):
    return elementwise(factored_kernel, x, y, z, d)


@factored.reference
def _(x, y, z, d):
    return x / d * y - x / d * z


@case(x="f32[N]", y="f32[N]", z="f32[N]", d="f32[N]")
def reordered(x, y, z, d):
    return elementwise(factored_kernel, x, y, z, d)


@reordered.reference
def _(x, y, z, d):
    return (y - z) * (x / d)


@case(x="f32[N]")
def second_is_none(x):
    return elementwise(affine_kernel, x), None


@second_is_none.reference
def _(x):
    return None, 1 + 2 * x


@case(x="f32[N]")
def second_is_none_too(x):
    return elementwise(affine_kernel, x), None


@second_is_none_too.reference
def _(x):
    return 1 + 2 * x, None


class Pointer:
    """An address and a dtype: all that Triton asks of a tensor."""

    def __init__(self, x, offset=0):
        self.dtype = x.dtype
        self.address = x.data_ptr() + offset * x.element_size()

    def data_ptr(self):
        return self.address


@case(x="f32[N]")
def through_pointers(x):
    out = torch.empty_like(x)
    n = out.numel()
    affine_kernel[(triton.cdiv(n, BLOCK),)](Pointer(x), Pointer(out), n, BLOCK=BLOCK)
    return out


@through_pointers.reference
def _(x):
    return 1 + 2 * x


@case(x="f32[N+1]")
def past_the_first(x):
    n = x.numel() - 1
    out = torch.empty(n)
    affine_kernel[(triton.cdiv(n, BLOCK),)](Pointer(x, 1), Pointer(out), n, BLOCK=BLOCK)
    return out


@past_the_first.reference
def _(x):
    return 1 + 2 * x[1:]


@case(x="f32[N+1]")
def at_the_first(x):
    n = x.numel() - 1
    out = torch.empty(n)
    affine_kernel[(triton.cdiv(n, BLOCK),)](Pointer(x), Pointer(out), n, BLOCK=BLOCK)
    return out


@at_the_first.reference
def _(x):
    return 1 + 2 * x[1:]


@triton.jit
def shifted_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i + 1, mask=i < n) * 2
    tl.debug_barrier()
    tl.store(x + i, v, mask=i < n)


@case(x="f32[N]", where="N >= 2")
def shifted_in_place(x):
    """Each program loads what the next one stores: at small sizes there is one program."""
    out, n = x.clone(), x.numel() - 1
    shifted_kernel[(triton.cdiv(n, BLOCK),)](out, n, BLOCK=BLOCK)
    return out


@shifted_in_place.reference
def _(x):
    return torch.cat([x[1:] * 2, x[-1:]])


@triton.jit
def halo_kernel(x, n, BLOCK: tl.constexpr):
    i, following = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), (tl.program_id(0) + 1) * BLOCK
    v = tl.load(x + i, mask=i < n, other=0.0)
    first = tl.load(x + following, mask=following < n, other=0.0)
    tl.debug_barrier()
    tl.store(x + i, v + first, mask=i < n)


@case(x="f32[N]")
def halo_in_place(x):
    """Each program loads the first element of the next tile of 1024."""
    out, n = x.clone(), x.numel()
    halo_kernel[(triton.cdiv(n, 1024),)](out, n, BLOCK=1024)
    return out


@halo_in_place.reference
def _(x):
    tiles = torch.nn.functional.pad(x, (0, -x.numel() % 1024 + 1024)).view(-1, 1024)
    return (tiles[:-1] + tiles[1:, :1]).flatten()[: x.numel()]


@triton.jit
def part_kernel(x, out, first, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + first + i, tl.load(x + first + i, mask=i < n) + 1, mask=i < n)


@case(x="f32[N]")
def in_parts(x):
    """A launch for every 2^24 elements."""
    out = torch.empty_like(x)
    for first in range(0, x.numel(), 1 << 24):
        n = min(1 << 24, x.numel() - first)
        part_kernel[(triton.cdiv(n, BLOCK),)](x, out, first, n, BLOCK=BLOCK)
    return out


@in_parts.reference
def _(x):
    return x + 1


FAR = 30_003  # an element that no run has


@triton.jit
def changed_far_kernel(x, out, n, BLOCK: tl.constexpr, NAN: tl.constexpr, FAR: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    is_changed = v != v if NAN else v == float("-inf")
    tl.store(out + i, tl.where(is_changed & (i == FAR), 7.0, v), mask=i < n)


def changed_far(x, NAN):
    out = torch.empty_like(x)
    changed_far_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK, NAN=NAN, FAR=FAR)
    return out


@triton.jit
def log_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.log(tl.load(x + i, mask=i < n, other=1)), mask=i < n)


@case(x="f32[N] any")
def nan_changed_far(x):
    return changed_far(x, NAN=True)


@nan_changed_far.reference
def _(x):
    return x.clone()


@case(x="f32[N] any")
def infinity_changed_far(x):
    return changed_far(x, NAN=False)


@infinity_changed_far.reference
def _(x):
    return x.clone()


@case(x="f32[N]")
def nan_of_memory_changed_far(x):
    return changed_far(elementwise(log_kernel, x), NAN=True)


@nan_of_memory_changed_far.reference
def _(x):
    return torch.log(x)


@case(x="f32[N]")
def infinity_of_memory_changed_far(x):
    return changed_far(elementwise(log_kernel, x), NAN=False)


@infinity_of_memory_changed_far.reference
def _(x):
    return torch.log(x)


@case(x="f32[N]")
def finite_not_changed(x):
    return changed_far(x, NAN=False)


@finite_not_changed.reference
def _(x):
    return x.clone()


@triton.jit
def bounded_log_kernel(x, out, n, BLOCK: tl.constexpr, LEAST: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.log(tl.load(x + i, mask=i < n, other=1))
    tl.store(out + i, tl.maximum(v, float("-inf")) if LEAST else tl.minimum(v, float("inf")), mask=i < n)


def bounded_log(x, least):
    out = torch.empty_like(x)
    bounded_log_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK, LEAST=least)
    return out


@case(x="f32[N]")
def log_and_no_least_number(x):
    return bounded_log(x, least=True)


@case(x="f32[N]")
def log_and_no_largest_number(x):
    return bounded_log(x, least=False)


for _case in (log_and_no_least_number, log_and_no_largest_number):
    _case.reference(lambda x: torch.log(x))


@triton.jit
def share_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x + i, mask=i < n, other=-10000.0))
    tl.store(out + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def no_share_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x + i, mask=i < n, other=-10000.0))
    tl.store(out + i, (e - e) / tl.sum(e - e, axis=0), mask=i < n)


@case(x="f32[N]")
def share(x):
    """Softmax, but for exp(-10000) of every padded lane; exp(-10001) is 0 in float64."""
    return elementwise(share_kernel, x)


@case(x="f32[N]")
def no_share(x):
    """0 / 0."""
    return elementwise(no_share_kernel, x)

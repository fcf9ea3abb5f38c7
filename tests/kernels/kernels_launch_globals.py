"""Host functions that change what a kernel reads beside its arguments: a global, or the function that it calls. A
launch is of the values that it finds; the twins say the values that come later."""

import launch_numbers
import torch
import triton
import triton.language as tl

from trilift import case

SCALE = tl.constexpr(2.0)
ALTERNATING = tl.constexpr(2.0)


@triton.jit
def doubled(v):
    return v * 2.0


@triton.jit
def fivefold(v):
    return v * 5.0


FORM = doubled


@triton.jit
def scaled_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * SCALE, mask=i < N)


@triton.jit
def formed_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, FORM(tl.load(x_ptr + i, mask=i < N)), mask=i < N)


@triton.jit
def alternating_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * ALTERNATING, mask=i < N)


def launched(kernel, x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 64),)](x, out, x.shape[0], BLOCK=64)
    return out


def scaled_for_once(x):
    """By three; the global is put back."""
    global SCALE
    before, SCALE = SCALE, tl.constexpr(3.0)
    try:
        return launched(scaled_kernel, x)
    finally:
        SCALE = before


def scaled_where_long(x):
    """By three where x is long, by two elsewhere."""
    global SCALE
    if x.shape[0] > 1000:
        SCALE = tl.constexpr(3.0)
    out = launched(scaled_kernel, x)
    SCALE = tl.constexpr(2.0)
    return out


def formed_before(x):
    """The function that the kernel calls is another one after the launch."""
    global FORM
    FORM = doubled
    out = launched(formed_kernel, x)
    FORM = fivefold
    return out


def alternating(x):
    """Triton raises an error at the second launch."""
    global ALTERNATING
    ALTERNATING = tl.constexpr(2.0)
    first = launched(alternating_kernel, x)
    ALTERNATING = tl.constexpr(3.0)
    return first, launched(alternating_kernel, x)


def claimed(fn, reference):
    found = case(x="f32[N]")(fn)
    found.reference(reference)
    return found


FOR_ONCE = claimed(scaled_for_once, lambda x: x * 3.0)
WRONG_FOR_ONCE = claimed(scaled_for_once, lambda x: x * 2.0)
WRONG_WHERE_LONG = claimed(scaled_where_long, lambda x: x * 2.0)
FORMED = claimed(formed_before, lambda x: x * 2.0)
WRONG_FORMED = claimed(formed_before, lambda x: x * 5.0)
ALTERNATED = claimed(alternating, lambda x: (x * 2.0, x * 3.0))


WRAPPED = tl.constexpr(launch_numbers.Numbers(2.0))
TABLE = {"of": {"factor": 2.0}}


@triton.constexpr_function
def looked_up(name):
    return TABLE[name]["factor"]


@triton.jit
def attribute_kernel(x_ptr, out_ptr, N, OF: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    if OF == "object":
        y = x * launch_numbers.OBJECT.factor
    elif OF == "class":
        y = x * launch_numbers.Derived.FACTOR
    elif OF == "constexpr":
        y = x * WRAPPED.value.factor
    tl.store(out_ptr + i, y, mask=i < N)


@triton.jit
def table_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * looked_up("of"), mask=i < N)


def by_attribute(x, of):
    out = torch.empty_like(x)
    attribute_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), OF=of, BLOCK=64)
    return out


def by_object(x):
    launch_numbers.OBJECT.factor = 2.0
    out = by_attribute(x, "object")
    launch_numbers.OBJECT.factor = 3.0
    return out


def by_class(x):
    launch_numbers.Base.FACTOR = 2.0
    out = by_attribute(x, "class")
    launch_numbers.Base.FACTOR = 3.0
    return out


def by_constexpr(x):
    global WRAPPED
    WRAPPED = tl.constexpr(launch_numbers.Numbers(2.0))
    out = by_attribute(x, "constexpr")
    WRAPPED = tl.constexpr(launch_numbers.Numbers(3.0))
    return out


def by_table(x):
    """The object that the kernel reads is itself another when the call ends."""
    TABLE["of"]["factor"] = 2.0
    out = torch.empty_like(x)
    table_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    TABLE["of"]["factor"] = 3.0
    return out


READ = [claimed(f, lambda x: x * 2.0) for f in (by_object, by_class, by_constexpr)]
READ_LATER = [claimed(f, lambda x: x * 3.0) for f in (by_object, by_class, by_constexpr)]
CHANGED_IN_PLACE = claimed(by_table, lambda x: x * 2.0)


@triton.constexpr_function
def of_module():
    module = launch_numbers
    return module.OBJECT.factor


@triton.jit
def module_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * of_module(), mask=i < N)


def by_module(x):
    launch_numbers.OBJECT.factor = 2.0
    out = launched(module_kernel, x)
    launch_numbers.OBJECT.factor = 3.0
    return out


@triton.jit
def argument_kernel(x_ptr, out_ptr, N, FACTORS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * FACTORS[0], mask=i < N)


def by_argument(x):
    factors, out = [2.0], torch.empty_like(x)
    argument_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), FACTORS=factors, BLOCK=64)
    factors[0] = 3.0
    return out


FACTOR = 2.0


def multiplied():
    @triton.jit
    def times(v, factor: tl.constexpr = FACTOR):
        return v * factor

    return times


DOUBLE = multiplied()
FACTOR = 3.0
TREBLE = multiplied()


@triton.jit
def default_kernel(x_ptr, out_ptr, N, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, F(tl.load(x_ptr + i, mask=i < N)), mask=i < N)


def by_default(x):
    """Two functions of one source: Triton compiles each with the default value that it was made with."""
    twice, thrice = torch.empty_like(x), torch.empty_like(x)
    for out, f in ((twice, DOUBLE), (thrice, TREBLE)):
        default_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), F=f, BLOCK=64)
    return twice, thrice


UNKNOWN = claimed(by_module, lambda x: x * 2.0)
ARGUMENT = claimed(by_argument, lambda x: x * 2.0)
IN_PLACE_LATER = [claimed(f, lambda x: x * 3.0) for f in (by_table, by_argument)]
DEFAULTS = claimed(by_default, lambda x: (x * 2.0, x * 3.0))
ONE_DEFAULT = claimed(by_default, lambda x: (x * 2.0, x * 2.0))

EARLY = tl.constexpr(2.0)
STEADY = tl.constexpr(2.0)


@triton.jit
def early_helper(v):
    return v * EARLY


@triton.jit
def early_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * EARLY, mask=i < N)


@triton.jit
def early_caller(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, early_helper(tl.load(x_ptr + i, mask=i < N)), mask=i < N)


@triton.jit
def steady_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * STEADY, mask=i < N)


NAMES = {early_kernel: "early", early_helper: "helper", steady_kernel: "steady"}  # Triton reads what is a key
EARLY = tl.constexpr(3.0)


def launched_by(kernel):
    def run(x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
        return out

    return run


READ_EARLY = [claimed(launched_by(k), lambda x: x * 3.0) for k in (early_kernel, early_caller)]
READ_STEADY = claimed(launched_by(steady_kernel), lambda x: x * 2.0)

"""The helpers of written tests, as a person would write them. Never imported: written.library copies the definitions
that a file needs, with the comments above them."""

# mypy: disable-error-code="no-any-return, misc"
from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, example, settings
from torch.utils._python_dispatch import TorchDispatchMode

from ...verify.runs.input_table import LAYOUTS, VALUES, masked, normal

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
NUMBER = 20

# derandomize: the same examples in every run, so that a failure is one of the code; nothing is kept between runs.
EXAMPLES = settings(
    max_examples=NUMBER,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
FEW = settings(EXAMPLES, max_examples=max(NUMBER // 5, 2))
LAWS = settings(EXAMPLES, max_examples=max(NUMBER // 10, 1))
ONE = settings(EXAMPLES, max_examples=1)


# ---- memory: every tensor lies in a larger buffer, whose other bytes nobody may write ----

MARGIN = 2048  # elements before and after a tensor, beside as many as it has
POISON = 0xFF  # in every byte: NaN in floating dtypes, -1 in integers
CANARY = 0xA5  # in every byte around results: what is computed of poison is no canary
CLEAR = 0x00


@dataclass
class Buffer:
    """The bytes of each element, which of them are the tensor's, the byte in all others; the addresses of the tensor's
    first byte and of the one after its last."""

    name: str
    data: torch.Tensor
    mine: torch.Tensor
    around: int
    first: int
    last: int


@dataclass
class Memory:
    """Buffers with margins. `poison`: the byte that fills the tensors."""

    poison: int = POISON
    buffers: list[Buffer] = field(default_factory=list)

    def place(
        self,
        name: str,
        shape: Sequence[int],
        stride: Sequence[int],
        dtype: torch.dtype,
        offset: int = 0,
        around: int = POISON,
    ) -> torch.Tensor:
        """A tensor of poison that starts `offset` elements later than an aligned address, and what is around it."""
        numel = int(np.prod(shape, dtype=np.int64))
        steps = [(n - 1) * s for n, s in zip(shape, stride, strict=True)]
        span = 1 + sum(steps) if numel else 0
        margin = -(-(MARGIN + span) // 64) * 64
        size = torch.empty((), dtype=dtype).element_size()
        length = 2 * margin + span + offset
        mine = torch.zeros(length, dtype=torch.bool, device=DEVICE)
        mine.as_strided(shape, stride, margin + offset).fill_(True)
        data = torch.full((length, size), around, dtype=torch.uint8, device=DEVICE)
        data[mine] = self.poison
        x = data.view(dtype).as_strided(shape, stride, margin + offset)
        self.buffers.append(Buffer(name, data, mine, around, x.data_ptr(), x.data_ptr() + span * size))
        return x

    def check(self) -> None:
        """Nothing was written around the tensors or in the gaps of strided ones."""
        for b in self.buffers:
            touched = ((b.data != b.around).any(-1) & ~b.mine).nonzero().flatten()
            first = int(b.mine.nonzero()[0]) if b.mine.any() else 0
            at = [int(k) - first for k in touched[:5]]
            assert not at, f"{b.name}: wrote elements {at}, outside the tensor"

    def check_reads(self, addresses: np.ndarray) -> None:
        """None of the addresses is in a margin."""
        least, most = (int(addresses.min()), int(addresses.max())) if addresses.size else (0, 0)
        for b in self.buffers:
            start, end = b.data.data_ptr(), b.data.data_ptr() + b.data.nbytes
            if most < start or least >= end or (least >= b.first and most < b.last):
                continue
            outside = (addresses < b.first) | (addresses >= b.last)
            at = (addresses[outside & (addresses >= start) & (addresses < end)].astype(np.int64) - b.first)[:5]
            elements = [int(k) for k in at // b.data.shape[-1]]
            assert not elements, f"{b.name}: reads elements {elements}, outside the tensor"


EMPTY = {
    torch.ops.aten.empty,
    torch.ops.aten.empty_like,
    torch.ops.aten.empty_strided,
    torch.ops.aten.new_empty,
    torch.ops.aten.new_empty_strided,
}


class Poisoned(TorchDispatchMode):
    """Inside, torch.empty and its like give poison within margins."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket not in EMPTY or result.device.type != DEVICE:
            return result
        name, of = "a tensor of torch.empty", (result.shape, result.stride())
        return self.memory.place(name, *of, result.dtype, around=CANARY)


def bits(x: torch.Tensor) -> torch.Tensor:
    """The bytes of the elements: NaN equals itself."""
    return x.new_empty(x.numel()).copy_(x.reshape(-1)).view(torch.uint8)


def same_bits(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype and torch.equal(bits(x), bits(y))


# ---- calls: sizes, a seed, and what the numbers and the memory are like ----


@dataclass(frozen=True)
class Call:
    """`sizes`: the dims, and the numbers passed. `values`: of VALUES. `layout`: of LAYOUTS, for tensors that may be
    strided; `layouts`: for those named, in spite of that. `given`: the numbers of tensors that no seed makes."""

    sizes: Mapping[str, Any]
    seed: int = 0
    values: str = "normal"
    layout: str = "contiguous"
    config: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)


# Here stand the definitions of verify/runs/input_table.py.


class Maker:
    """Makes the tensors of a call, each from its own stream of random numbers, in guarded memory."""

    def __init__(self, call: Call, memory: Memory) -> None:
        self.call, self.memory, self.made = call, memory, 0

    def tensor(self, name: str, values: torch.Tensor, dtype: torch.dtype, strided: bool = False) -> torch.Tensor:
        """The values in a tensor that lies as the call's layout says, where any strides are allowed; `offset` is one
        for every tensor."""
        if name in self.call.given:
            values = torch.as_tensor(self.call.given[name]).reshape(values.shape)
        free = strided or self.call.layout == "offset"
        layout = self.call.layout if free else "contiguous"
        strides = LAYOUTS[self.call.layouts.get(name, layout)](values.shape)
        x = self.memory.place(name, values.shape, strides, dtype, 1 if layout == "offset" else 0)
        if 0 in strides:
            x[:1].copy_(values[:1])
        else:
            x.copy_(values)
        return x

    def random(self) -> torch.Generator:
        self.made += 1
        return torch.Generator().manual_seed(1000 * self.call.seed + self.made)

    def reals(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, strided: bool = False, infinite: bool = False
    ) -> torch.Tensor:
        """Any reals; those that may be are minus infinity in part where the call says `masked`."""
        x = torch.randn(shape, generator=self.random(), dtype=torch.float64)
        x = VALUES.get(self.call.values, normal)(x)
        if infinite and self.call.values == "masked":
            x = masked(x, self.call.seed)
        return self.tensor(name, x, dtype, strided)

    def positive(self, name: str, shape: Sequence[int], dtype: torch.dtype, strided: bool = False) -> torch.Tensor:
        """Reals from 1/4 to 2."""
        return self.between(name, shape, dtype, 0.25, 2.0, strided)

    def between(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, low: float, high: float, strided: bool = False
    ) -> torch.Tensor:
        """Reals v with low <= v < high."""
        drawn = torch.rand(shape, generator=self.random(), dtype=torch.float64)
        if self.call.values == "equal" and drawn.numel():
            drawn = drawn.flatten()[0].expand(shape)
        return self.tensor(name, low + (high - low) * drawn, dtype, strided)

    def distinct(
        self, name: str, shape: Sequence[int], dtype: torch.dtype, low: int, high: int, strided: bool = False
    ) -> torch.Tensor:
        """Integers v with low <= v < high, of which no two are equal."""
        self.made += 1
        count = torch.Size(shape).numel()
        drawn = in_order(count, low, high, self.call.values, 1000 * self.call.seed + self.made)
        return self.tensor(name, drawn.reshape(tuple(shape)), dtype, strided)

    def integers(
        self,
        name: str,
        shape: Sequence[int],
        dtype: torch.dtype,
        low: int,
        high: int,
        strided: bool = False,
        bits: int = 0,
        nonzero: bool = False,
    ) -> torch.Tensor:
        """Integers v with low <= v < high; the last or the first of them where the values are equal or large. Those
        with `bits` have no limits: where the values are edges or whole, they have as many bits beside the sign."""
        generator = self.random()
        drawn = torch.randint(low, max(high, low + 1), tuple(shape), generator=generator)
        most = 2**bits - 1 if bits else max(high - 1, low)
        least = -(2**bits) if bits and low < 0 else low
        match self.call.values:
            case "equal":
                drawn = torch.full_like(drawn, high - 1)
            case "large":
                drawn = torch.full_like(drawn, low)
            case "edges":
                drawn = with_edges(drawn, least, most, generator)
            case "whole":
                drawn = in_turn(drawn, least, most, self.call.seed, self.made, generator)
        if nonzero:
            drawn = drawn.masked_fill(drawn == 0, 1)
        return self.tensor(name, drawn, dtype, strided)

    def booleans(self, name: str, shape: Sequence[int], strided: bool = False) -> torch.Tensor:
        drawn = torch.randint(0, 2, tuple(shape), generator=self.random()).bool()
        return self.tensor(name, drawn, torch.bool, strided)


def in_order(count: int, low: int, high: int, values: str, seed: int) -> torch.Tensor:
    """Integers of which no two are equal: the last or the first ones where the values are equal or large."""
    if values in ("equal", "large"):
        return torch.arange(count) + (high - count if values == "equal" else low)
    return torch.tensor(random.Random(seed).sample(range(low, high), count), dtype=torch.int64)


def with_edges(x: torch.Tensor, low: int, high: int, generator: torch.Generator) -> torch.Tensor:
    """About half of the elements replaced, by numbers at the edges of low <= v <= high or any between them."""
    ends = torch.tensor([v for v in (low, low + 1, -1, 0, 1, high - 1, high) if low <= v <= high])
    chosen = ends[torch.randint(len(ends), x.shape, generator=generator)]
    between = torch.randint(low, max(high, low + 1), x.shape, generator=generator)
    other = torch.where(torch.randint(2, x.shape, generator=generator) == 0, chosen, between)
    return torch.where(torch.randint(2, x.shape, generator=generator) == 0, x, other)


def in_turn(x: torch.Tensor, low: int, high: int, seed: int, number: int, generator: torch.Generator) -> torch.Tensor:
    """In place of the elements all of low <= v <= high, which go on in the next seed where there are more; of more than
    256 any. `number`: of the tensor, so that several do not have the same numbers at one seed."""
    if high - low > 255:
        return torch.randint(low, high, x.shape, generator=generator)
    order = low + torch.randperm(high - low + 1, generator=torch.Generator().manual_seed(number))
    first = seed * max(x.numel() - number + 1, 1)
    return order[(first + torch.arange(x.numel())) % len(order)].reshape(x.shape)


def examples(*calls: Call) -> Callable[[Any], Any]:
    """Calls that are always made, before those that are drawn."""

    def decorate(test: Any) -> Any:
        for call in reversed(calls):
            test = example(call)(test)
        return test

    return decorate


# ---- running the kernel ----


def tensors(result: Any, name: str = "out") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a host function returns: out, or out0, out1 ..., or by the keys of a dict."""
    if isinstance(result, torch.Tensor):
        yield name, result
    elif isinstance(result, dict):
        for key, value in result.items():
            yield from tensors(value, key)
    elif isinstance(result, (list, tuple)):
        found = [x for part in result for _, x in tensors(part)]
        for k, x in enumerate(found):
            yield (f"{name}{k}" if len(found) > 1 else name), x


def leaves(args: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors among arguments; element k of a list xs is xs<k>."""
    found: dict[str, torch.Tensor] = {}
    for name, value in args.items():
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, (list, tuple)):
            found |= leaves({f"{name}{k}": v for k, v in enumerate(value)})
    return found


@dataclass
class Expected:
    """The output in float64, or whole numbers, how far the kernel's may be from it (0.0: not at all), and its dtype.
    Without a value it is not compared."""

    value: torch.Tensor | None
    error: torch.Tensor | float
    dtype: torch.dtype

    @property
    def tolerance(self) -> torch.Tensor:
        """Infinite for elements that are not compared: the formula has no number there, or the dtype may have none."""
        assert self.value is not None
        if isinstance(self.error, float) and not self.error:
            return torch.zeros_like(self.value, dtype=torch.float64)
        around = self.error + stored(self.value, self.dtype)
        silent = ~(self.value.isfinite() & around.isfinite())
        if self.dtype.is_floating_point:
            silent |= self.value.abs() + around > torch.finfo(self.dtype).max / 2
        return torch.where(silent, torch.inf, around)


@dataclass(frozen=True)
class Kernel:
    """A function that returns the host function; how to make its arguments; its expected outputs; inputs it writes."""

    function: Callable[[], Callable[..., Any]]
    arguments: Callable[[Call, Memory], dict[str, Any]]
    expected: Callable[[Call], dict[str, Expected]] = lambda call: {}
    written: Sequence[str] = ()


def run(kernel: Kernel, call: Call, poison: int = POISON) -> dict[str, torch.Tensor]:
    """The outputs of one call, and the inputs that it writes, on the CPU. Fails where it writes outside of tensors or
    to another input."""
    memory = Memory(poison)
    args = kernel.arguments(call, memory)
    before = {name: x.clone() for name, x in leaves(args).items()}
    RUNNING.config, RUNNING.memory = call.config, memory
    with Poisoned(memory):
        result = kernel.function()(**args)
    if GPU:
        torch.cuda.synchronize()
    memory.check()
    for name, x in leaves(args).items():
        kept = name in kernel.written or same_bits(x, before[name])
        assert kept, f"the input {name} was changed"
    written = {name: leaves(args)[name] for name in kernel.written}
    taken, found = set(leaves(args)), {}
    for name, x in tensors(result):
        while name in taken:
            name += "_"
        taken.add(name)
        found[name] = x
    found |= written
    return {name: x.detach().cpu().clone() for name, x in found.items()}


def run_in_child(name: str, call: Call, poison: int = POISON) -> dict[str, torch.Tensor]:
    """`run` in a process of its own, of the Kernel of that name in this file: what may damage a process ends that one
    alone."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
        try:
            return child.submit(run_named, name, call, poison).result()
        except BrokenProcessPool:
            raise AssertionError("the call ended its process") from None


def run_named(name: str, call: Call, poison: int) -> dict[str, torch.Tensor]:
    return run(globals()[name], call, poison)


REFUSALS = (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError)  # that checks raise


def call_only(kernel: Kernel, call: Call) -> None:
    """The call, whatever it gives."""
    memory = Memory()
    args = kernel.arguments(call, memory)
    RUNNING.config, RUNNING.memory = call.config, memory
    with Poisoned(memory):
        kernel.function()(**args)


@dataclass
class Running:
    """The call that is made: which configuration the autotuners take, and its memory."""

    config: int = 0
    memory: Memory = field(default_factory=Memory)


RUNNING = Running()


# ---- comparison ----


class Philox:
    """Philox4x32 (Salmon et al. 2011) as Triton has it: of a seed and of up to four counters, one of four words, as a
    number in [0, 1) or as it is."""

    ROUND, KEY = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole

    def __getitem__(self, given: Sequence[Any]) -> torch.Tensor:
        numbers = [np.arange(i.stop) if isinstance(i, slice) else np.asarray(i) for i in given]
        seed, c0, c1, c2, c3, word, rounds = [*numbers, *map(np.asarray, (0, 0, 0, 0, 0, 10)[len(numbers) - 1 :])]
        half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
        k0, k1, c0, c1, c2, c3 = (x.astype(np.uint64) & mask for x in (seed, seed >> 32, c0, c1, c2, c3))
        for _ in range(int(rounds)):
            a, b = np.uint64(self.ROUND[0]) * c0, np.uint64(self.ROUND[1]) * c2
            c0, c1, c2, c3 = (b >> half) ^ c1 ^ k0, b & mask, (a >> half) ^ c3 ^ k1, a & mask
            k0, k1 = (k0 + np.uint64(self.KEY[0])) & mask, (k1 + np.uint64(self.KEY[1])) & mask
        words = np.choose(word, np.broadcast_arrays(c0, c1, c2, c3)).astype(np.uint32).view(np.int32)
        if self.whole:
            return torch.as_tensor(words).long()
        return (torch.as_tensor(np.where(words < 0, -words - 1, words)).float() * 4.6566127342e-10).double()


philox = Philox()
philox_words = Philox(whole=True)


def evaluated(formula: Callable[[], torch.Tensor], error: Callable[[], Any], dtype: torch.dtype) -> Expected:
    """A formula with its tolerance. The maximum of no elements is undefined, and so is an element of no elements."""
    try:
        return Expected(formula(), error(), dtype)
    except IndexError:
        return Expected(None, 0.0, dtype)


def exact(x: Any) -> Any:
    """Reals in float64, integers in int64: the numbers themselves, on the CPU."""
    if not isinstance(x, torch.Tensor) or x.dtype == torch.bool:
        return x.cpu() if isinstance(x, torch.Tensor) else x
    return x.cpu().double() if x.is_floating_point() else x.cpu().long()


def finite(x: torch.Tensor) -> torch.Tensor:
    """A number for minus infinity, beside which exponentials of the others are large."""
    masked = x == -torch.inf
    return torch.where(masked, x[~masked].min() - 20, x) if masked.any() else x


HALF_UNIT = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
    torch.float8_e4m3fn: 2.0**-4,
    torch.float8_e5m2: 2.0**-3,
}
SMALLEST = {torch.float16: 2.0**-25, torch.float8_e4m3fn: 2.0**-10, torch.float8_e5m2: 2.0**-17}
FLOOR = 2.0**-90  # of the largest element: lost where numbers on the way leave their dtype


def stored(expected: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The largest change by rounding to the output's dtype."""
    if not dtype.is_floating_point:
        return torch.zeros_like(expected, dtype=torch.float64)
    sizes = expected.double().abs()
    known = sizes[sizes.isfinite()]
    largest = max(1.0, float(known.max())) if known.numel() else 1.0
    return HALF_UNIT[dtype] * sizes + max(SMALLEST.get(dtype, 0.0), FLOOR * largest)


def wrong(got: torch.Tensor, expected: torch.Tensor, tolerance: torch.Tensor) -> torch.Tensor:
    """Which elements are further from the expected ones than the tolerance. NaN meets NaN, and infinity itself."""
    whole = not (got.is_floating_point() or expected.is_floating_point())
    if whole and not tolerance.any():
        return got.long() != expected.long()
    numbers, expected = got.double(), expected.double()
    near = (numbers - expected).abs() <= tolerance
    same = (numbers == expected) | (numbers.isnan() & expected.isnan())
    return ~(near | same | tolerance.isinf())


def assert_equal(name: str, got: torch.Tensor, wanted: Expected) -> None:
    """Every element within the tolerance; says which is worst."""
    assert got.dtype == wanted.dtype, f"{name} is {got.dtype}, not {wanted.dtype}"
    if wanted.value is None:
        return
    expected, tolerance = wanted.value, wanted.tolerance
    shapes = list(got.shape), list(expected.shape)
    assert shapes[0] == shapes[1], f"{name} has shape {shapes[0]}, not {shapes[1]}"
    bad = wrong(got, expected, tolerance)
    if bad.any():
        excess = ((got.double() - expected.double()).abs() / tolerance).nan_to_num(nan=torch.inf)
        worst = int(torch.where(bad, excess, -1.0).argmax())
        at = tuple(int(i) for i in np.unravel_index(worst, tuple(got.shape)))
        of = f"{int(bad.sum())} of {bad.numel()} elements are wrong"
        is_, should = got[at].item(), f"{expected[at].item():.9g} +- {tolerance[at]:.3g}"
        raise AssertionError(f"{name}{list(at)} is {is_:.9g}, not {should}; {of}")


def assert_rejects_controls(kernel: Kernel, *shapes: Mapping[str, Any]) -> None:
    """Wrong results of every output are rejected, at the first of the shapes that has some."""
    differing, rejected = set[str](), set[str]()
    for sizes in shapes:
        for kind in () if differing else ("normal", "positive", "ties"):
            found = judged(kernel, Call(sizes, values=kind))
            differing |= set(found)
            rejected |= {control for control in found if found[control]}
    assert differing, "no wrong result differs from the right one at these shapes"
    assert differing == rejected, f"would pass: {sorted(differing - rejected)}"


def judged(kernel: Kernel, call: Call) -> dict[str, bool]:
    """Of each wrong result that differs from the right one of a call, whether it is rejected."""
    copies = [exact(x) for x in leaves(kernel.arguments(call, Memory())).values()]
    found: dict[str, bool] = {}
    for name, expected in kernel.expected(call).items():
        if expected.value is None:
            continue
        for what, control in controls(expected.value, copies).items():
            if differs(control, expected):
                rounded = control.to(expected.dtype)
                found[f"{name}: {what}"] = bool(wrong(rounded, expected.value, expected.tolerance).any())
    return found


def controls(expected: torch.Tensor, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Results that are wrong: the comparison must reject each."""
    found = {"zeros": torch.zeros_like(expected)}
    for x in inputs:
        if x.shape == expected.shape:
            found[f"input {len(found)} copied"] = x.to(expected.dtype)
    if expected.dim() and expected.numel():
        dropped = expected.clone()
        dropped[..., dropped.shape[-1] // 2 :] = 0
        found["last tile dropped"] = dropped
        last = expected.clone()
        last[..., -1] = 0
        found["last element dropped"] = last
    for d in range(expected.dim()):
        found[f"rolled along dimension {d}"] = expected.roll(1, d)
    return found


def differs(control: torch.Tensor, expected: Expected) -> bool:
    """Whether some element of which something is said is off by a fifth of the largest: more than any rounding."""
    assert expected.value is not None
    said, numbers = expected.tolerance.isfinite(), expected.value.double()
    if not said.any():
        return False
    off = (control.double().nan_to_num() - numbers).abs()[said]
    return bool((off > numbers[said].abs().max() / 5).any())


# ---- laws: what a change of the inputs does to the outputs ----


def numbers_of(kernel: Kernel, call: Call) -> dict[str, torch.Tensor]:
    """The tensors of a call as exact numbers."""
    found = leaves(kernel.arguments(call, Memory()))
    return {name: exact(x) for name, x in found.items()}


def with_inputs(call: Call, **given: torch.Tensor) -> Call:
    """The call with other numbers in some tensors."""
    return replace(call, given={**call.given, **given})


def random_of(call: Call) -> torch.Generator:
    return torch.Generator().manual_seed(call.seed + 1)


def mixed(x: torch.Tensor, call: Call) -> torch.Tensor:
    """The same elements in another order: they meet the same limits."""
    return x.flatten()[torch.randperm(x.numel(), generator=random_of(call))].reshape(x.shape)


def mixed_but(x: torch.Tensor, call: Call, dim: int, start: int, length: int) -> torch.Tensor:
    """The slices from `start` on stay, `length` of them."""
    other = mixed(x, call)
    other.narrow(dim, start, length).copy_(x.narrow(dim, start, length))
    return other


def slice_of(call: Call, n: int) -> int:
    """The first slice, the last, or one between them."""
    return (0, n - 1, call.seed % n)[call.seed % 3]


def order_of(call: Call, n: int) -> torch.Tensor:
    return torch.randperm(n, generator=random_of(call))


def constants(x: torch.Tensor, call: Call, dim: int | None) -> torch.Tensor:
    """Eighths from -3 to 3, the same along a dimension; one number without it."""
    shape = [] if dim is None else [1 if d == dim else n for d, n in enumerate(x.shape)]
    return torch.randint(-24, 25, shape, generator=random_of(call)).double() / 8


@dataclass
class Seen:
    """An output in float64, with how far it may be from what it should be."""

    value: torch.Tensor
    tolerance: torch.Tensor

    def map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Seen:
        """Other elements."""
        return Seen(change(self.value), change(self.tolerance))

    def times(self, factor: float) -> Seen:
        return Seen(factor * self.value, abs(factor) * self.tolerance)  # the factor is not 0

    def plus(self, other: Any) -> Seen:
        if isinstance(other, Seen):
            return Seen(self.value + other.value, self.tolerance + other.tolerance)
        return Seen(self.value + other, self.tolerance)


def seen(kernel: Kernel, call: Call, name: str) -> Seen:
    """The kernel's result."""
    wanted, got = kernel.expected(call)[name], run(kernel, call)[name].double()
    if wanted.value is None:
        return Seen(got, torch.full_like(got, torch.inf))
    return Seen(got, wanted.tolerance.expand(got.shape))


def assert_law(left: Seen, right: Seen) -> None:
    """Both sides of an equation, each within its own tolerance."""
    assert left.value.shape == right.value.shape
    bad = wrong(left.value, right.value, left.tolerance + right.tolerance)
    one, two = left.value[bad][:1].tolist(), right.value[bad][:1].tolist()
    assert not bad.any(), f"{one} is not {two}; {int(bad.sum())} elements differ"

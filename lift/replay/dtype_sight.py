"""PyTorch functions that look at the dtype of their arguments: x.element_size(), torch.finfo(x.dtype), x.view(int32).

Functions are run in float64, as real numbers. One that does something else there is run in the dtypes of its case, and
what it gives is compared with the tolerance of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from ..capture.trace import Trace
from ..cases.declaration import Case, torch_dtype
from ..errors import Unsupported
from ..pytorch.aten.operators import bind
from ..pytorch.compared_numbers import Site, compared_in, differs_by_device, is_comparison, rounded, site_of
from ..ttir.ir import Op
from ..ttir.written_constants import is_rounded

Function: TypeAlias = Callable[..., Any]
Nested: TypeAlias = Any  # a number, a tensor, or a list of them
# Relative to the largest element: a few roundings of the dtype, in sums too.
TOLERANCE = {"f64": 0.0, "f32": 1e-4, "f16": 2e-2, "bf16": 1e-1}
COARSE = 0.3  # of formats with fewer digits
HALF_DIGIT = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24}  # relative: what rounding to the dtype may change
OVERFLOWS = "without overflow"  # in the error about a number that a narrow type does not hold
ROUNDINGS = 4  # of one constant, in one output
BITS = ("tt.bitcast", "arith.bitcast")
SAME_NUMBER = 1e-2  # relative difference of numbers that are computed from data, in float64 and in a narrow type
ENDLESS = 1e30  # finfo.max of the wide types: as good as infinity
MOVES = {
    "_to_copy", "to", "clone", "detach", "alias", "lift_fresh", "lift_fresh_copy", "copy_", "contiguous", "empty",
    "empty_like", "empty_strided", "new_empty",
}  # fmt: skip
Narrow: TypeAlias = Mapping[Site, Nested]  # a comparison -> the dtype to which PyTorch rounds its number


@dataclass(frozen=True, slots=True)
class Sight:
    """How a function runs in its own dtypes: whether that `differs` from float64, its `narrow` comparisons, and why
    PyTorch `refuses` a number in it, or has other results on another device."""

    differs: bool = False
    narrow: Narrow = field(default_factory=dict)
    refuses: str = ""
    by_device: bool = False


_SEEN: WeakKeyDictionary[Function, dict[tuple[str, ...], Sight]] = WeakKeyDictionary()

Log: TypeAlias = list[tuple[str, tuple[float, ...], tuple[tuple[int, ...], ...]]]


def each(v: Nested, f: Nested) -> Nested:
    """f on every tensor of an argument; lists and tuples of them are opened."""
    import torch

    if isinstance(v, (list, tuple)):
        return type(v)(each(e, f) for e in v)
    return f(v) if isinstance(v, torch.Tensor) else v


def unrounded(narrow: Narrow | None = None) -> Nested:
    """A context in which PyTorch makes float64 of every float type it is asked for: real numbers, as near as may be.
    `narrow`: comparisons whose number is one of a narrow type."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Unrounded(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Nested, types: Nested, args: Nested = (), kwargs: Nested = None) -> Nested:
            wide = {
                k: torch.float64 if isinstance(v, torch.dtype) and v.is_floating_point else v
                for k, v in (kwargs or {}).items()
            }
            if narrow and is_comparison(func, args) and (dtype := narrow.get(site_of(func))) is not None:
                args = (args[0], rounded(args[1], dtype), *args[2:])
            return func(*args, **wide)

    return Unrounded()


def widened(x: Nested) -> Nested:
    """A real tensor in float64; others as they are."""
    return x.double() if x.is_floating_point() else x


def narrow_comparisons(case: Case, fn: Function) -> Narrow:
    """The comparisons of a function with numbers that PyTorch rounds to f16, bf16 or fewer digits."""
    return _sight(case, fn).narrow


# ---- what a function does in its own dtypes and in float64 -----------------------------------------------------------


def sees_dtypes(case: Case, fn: Function) -> bool:
    """Whether the function does something else in float64 than in the dtypes of the case: other operators, numbers or
    shapes. False where it cannot be run in those."""
    return _sight(case, fn).differs


def refusal(case: Case, fn: Function) -> tuple[str, str]:
    """How PyTorch fails at a number that the dtypes of the case do not hold, and why; ("", "") if it does not. It
    refuses x.masked_fill(m, -1e9) of float16, and F.threshold(x, 0.1, 0) of it is not the same on a GPU."""
    sight = _sight(case, fn)
    raises, differs = "raises an error in the dtypes of the case", "has other results on a GPU than on a CPU"
    return (differs if sight.by_device else raises, sight.refuses) if sight.refuses else ("", "")


def _sight(case: Case, fn: Function) -> Sight:
    key = (case.name, *(s.dtype for s in case.tensors.values()))
    known = _SEEN.setdefault(fn, {})
    if key not in known:
        known[key] = Sight()  # for the runs that find it out
        known[key] = _looked(case, fn)
    return known[key]


def _looked(case: Case, fn: Function) -> Sight:
    import numpy as np

    from ..cases.shapes import choose

    if all(s.dtype == "f64" or not s.is_float for s in case.tensors.values()):
        return Sight()
    narrow: dict[Site, Nested] = {}
    try:
        dims = choose(case, 1)[0]
        sample = case.sample(dims, np.random.default_rng(0))
        own = _log(fn, sample, None, narrow)
    except Unsupported as e:
        return Sight(narrow=narrow, refuses=e.what, by_device=True)
    except (Exception, SystemExit) as e:  # the function refuses its own dtypes, on this device or at this shape
        return Sight(narrow=narrow, refuses=str(e) if OVERFLOWS in str(e) else "")
    try:
        wide = _log(fn, {name: each(v, widened) for name, v in sample.items()}, unrounded())
    except (Exception, SystemExit):  # it refuses float64
        return Sight(True, narrow)
    return Sight(len(own) != len(wide) or not all(map(_alike, own, wide)), narrow)


def _log(
    fn: Function,
    args: Mapping[str, Nested],
    precision: AbstractContextManager[object] | None,
    narrow: dict[Site, Nested] | None = None,
) -> Log:
    """The operators that a call makes, but for casts, with their numbers and the shapes of their results. `narrow`:
    takes the comparisons with a number of a narrow type; None for one that is made in several types."""
    from contextlib import nullcontext

    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    out: Log = []

    class Noting(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Nested, types: object, args: Nested = (), kwargs: Nested = None) -> Nested:
            result = func(*args, **(kwargs or {}))
            name = str(func._schema.name).split("::")[1]
            if narrow is not None and is_comparison(func, args):
                if why := differs_by_device(func, args):
                    raise Unsupported(why)
                site, dtype = site_of(func), compared_in(func, args[0].dtype)
                narrow[site] = dtype if narrow.get(site, dtype) == dtype else None
            if name not in MOVES:
                shapes = tuple(tuple(x.shape) for x in _leaves(result) if isinstance(x, torch.Tensor))
                out.append((name, (*_numbers(args), *_ends(name, func, args, kwargs or {})), shapes))
            return result

    given = {name: each(v, torch.clone) for name, v in args.items()}
    with torch.random.fork_rng(devices=[]), precision or nullcontext(), Noting():
        fn(**given)
    return out


def _leaves(x: Nested) -> Iterator[Nested]:
    if isinstance(x, list | tuple):
        for e in x:
            yield from _leaves(e)
    else:
        yield x


def _numbers(args: Nested) -> Iterator[float]:
    return (float(x) for x in _leaves(args) if isinstance(x, bool | int | float))


def _ends(name: str, func: Nested, args: Nested, kwargs: Mapping[str, Nested]) -> Iterator[float]:
    """The bits of the type of which nan_to_num takes the largest number for an infinity."""
    given = bind(func, args, kwargs)
    if name.removesuffix("_") == "nan_to_num" and None in (given.get("posinf"), given.get("neginf")):
        yield float(8 * args[0].element_size())


def _alike(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    (name, numbers, shapes), (other, others, theirs) = a, b
    if name != other or shapes != theirs or not isinstance(numbers, tuple) or not isinstance(others, tuple):
        return False
    return len(numbers) == len(others) and all(map(_near, numbers, others))


def _near(a: float, b: float) -> bool:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return True
    return abs(a - b) <= SAME_NUMBER * abs(b) or (min(abs(a), abs(b)) > ENDLESS and (a < 0) == (b < 0))


def as_declared(case: Case, args: Mapping[str, Nested]) -> dict[str, Nested]:
    """The arguments with real tensors in the dtypes of the case."""

    def cast(name: str, v: Nested) -> Nested:
        if isinstance(v, list | tuple):
            return type(v)(cast(f"{name}{k}", e) for k, e in enumerate(v))
        return v.to(torch_dtype(case.tensors[name].dtype)) if name in case.tensors else v

    return {name: cast(name, v) for name, v in args.items()}


def as_seen(case: Case, fn: Function | None, args: Mapping[str, Nested]) -> dict[str, Nested]:
    """The arguments in float64, with numbers that the dtypes of the case have if the function sees those."""
    if fn is None or not sees_dtypes(case, fn):
        return dict(args)
    return {name: each(v, widened) for name, v in as_declared(case, args).items()}


def tolerance(case: Case, fn: Function | None, least: float) -> float:
    """`least`, or the tolerance of the narrowest dtype of the case if the function is run in it."""
    if fn is None or not sees_dtypes(case, fn):
        return least
    return max([least, *(TOLERANCE.get(s.dtype, COARSE) for s in case.tensors.values() if s.is_float)])


def digits_of(trace: Trace, name: str) -> float:
    """The relative error to which an output is known: where a kernel takes numbers for their bits, which are those of
    rounded numbers, that of its dtype, or of a coarser one of an input; where a narrow type rounds a constant of the
    kernel, a few times that of this type; else 0."""
    refs = [trace.outputs[name], *trace.inputs.values()] if name in trace.outputs else []
    of_refs = max((HALF_DIGIT.get(ref.dtype, 0.0) for ref in refs), default=0.0)
    return max((_digits(op, of_refs) for e in trace.launches for op in e.module().walk()), default=0.0)


def _digits(op: Op, of_bits: float) -> float:
    if op.name in BITS:
        return of_bits if any(v.type.is_float for v in (*op.operands, *op.results)) else 0.0
    value = op.attrs.get("value") if op.name == "arith.constant" else None
    element = op.results[0].type.element if value is not None else ""
    return (
        ROUNDINGS * HALF_DIGIT.get(element, COARSE) if isinstance(value, float) and is_rounded(value, element) else 0.0
    )

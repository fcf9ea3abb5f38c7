"""Read a PyTorch function: its formulas, for every shape.

    read(fn, {"x": ("f32", (M, N))}) -> [Formula out = exp(x[m,n]) / sum[n](exp(x[m,n]))]

The function runs once on fake tensors whose sizes are symbolic (`make_fx`), autograd included; the graph's operators
are rows of `lift.pytorch.aten`. If a branch on sizes or a check of PyTorch assumes something of them, the assumption is
a condition of the reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases.shapes import choose
from ..errors import CaseError, TriliftError, Unsupported
from ..language.axis_names import letters, renamed
from ..runtime.recursion import deep
from ..terms import construct as T
from ..terms import index as I
from ..terms.machine_ranges import dtype_limits
from ..terms.ranges import Interval, dtype_interval
from ..terms.spec import Formula
from ..terms.term import Axis, Term
from .aten import operators
from .graph import outputs_of
from .machine_integers import Fits, Integers, Rounding
from .repeated_writes import Write, of_graph
from .roundings import wide_names
from .symbolic_tensor import SymbolicTensor, named, type_of_name
from .symbols import Symbols
from .tracing import REFUSALS, place_of_error, raised_at, traced

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from ..cases.declaration import Case

Spec = tuple[str, Sequence[Term | int]]  # dtype, dims


@dataclass(frozen=True, slots=True)
class Reading:
    """`formulas` hold for all sizes that meet `conditions`: what the function's branches and PyTorch's checks assumed.
    A branch of the function on a size being 0 or 1 is not seen: sizes are at least 2 while it is traced. `owed`: exact
    results of integer operators that must fit their dtype, for PyTorch's integers are machine integers. `roundings`: of
    real data to few digits, on which an integer or a truth value depends. `double`: whether it computes in f64.
    `repeated`: writes that may be several to one element, of which the last is taken."""

    formulas: tuple[Formula, ...]
    conditions: tuple[Term, ...]
    owed: tuple[Fits, ...] = ()
    roundings: tuple[Rounding, ...] = ()
    double: bool = False
    repeated: tuple[Write, ...] = ()


def read(
    fn: Callable[..., Any],
    specs: Mapping[str, Spec],
    scalars: Mapping[str, Any] | None = None,
    hints: Mapping[str, int | float] | None = None,
    indices: Iterable[str] = (),
) -> list[Formula]:
    """The formulas of what `fn(**inputs, **scalars)` returns, and of the inputs that it writes: see `reading`."""
    return list(reading(fn, specs, scalars, hints, indices).formulas)


def reading(
    fn: Callable[..., Any],
    specs: Mapping[str, Spec],
    scalars: Mapping[str, Any] | None = None,
    hints: Mapping[str, int | float] | None = None,
    indices: Iterable[str] = (),
    bounds: Mapping[str, Interval] | None = None,
    strided: bool = False,
) -> Reading:
    """Read `fn`, whose keyword arguments are named as in `specs` (tensors) and `scalars`.

    specs: name -> (dtype, dims), dims as terms over sizes. scalars: name -> a Python value, which is a constant, or a
    term `T.scalar(name)`, which stays symbolic. hints: numbers to trace at, where distinct primes do not suit.
    indices: integer tensors whose elements are at least 0 (others may count from the end where PyTorch allows it).
    bounds: intervals of integer tensors and scalars that are narrower than those of their dtypes.
    strided: whether some input may lie in memory in any way.
    Outputs are named out, or out0, out1 ..., or by their dict keys. Raises Unsupported for an operator without a row,
    with the line of `fn` that needed it, and CaseError when `fn` itself raises.
    """
    from .pretended_device import on_gpu
    from .python_functions import symbolic_numbers

    for multiple in (1, 2, 8):  # perhaps sizes have to be even, or multiples of 8
        symbols = Symbols(dict(hints or {}), multiple)
        symbols.wide = wide_names(bounds or {}, scalars or {})
        inputs = {name: symbols.fake(dtype, dims) for name, (dtype, dims) in specs.items()}
        inputs |= {name: symbols.number(v) if isinstance(v, Term) else v for name, v in (scalars or {}).items()}
        try:
            with symbols.asking(strided), symbolic_numbers(fn), on_gpu():
                graph, keys = traced(fn, inputs)
        except REFUSALS as e:
            refusal = e
            continue
        except (Exception, SystemExit) as e:
            if (place := raised_at(e)) is None or isinstance(e, TriliftError):
                raise
            raise CaseError(f"the function raised {type(e).__name__}", place, str(e)) from e
        with I.assuming(_intervals(specs, indices)), deep():
            return _interpreted(graph, specs, list(inputs), keys, symbols, _integers(specs, bounds or {}))
    message = (str(refusal).splitlines() or [type(refusal).__name__])[0]
    raise CaseError("the function cannot be traced", place_of_error(refusal), message) from refusal


def read_case(
    case: Case, fn: Callable[..., Any] | None = None, hints: Mapping[str, int | float] | None = None
) -> Reading:
    """The reading of a case's reference, or of another PyTorch function with the same parameters."""
    fn = fn or case.reference.fn
    if fn is None:
        raise CaseError(f"case {case.name} has no reference", case.place)
    specs = {name: (s.dtype, s.shape or ()) for name, s in case.tensors.items()}
    scalars = {name: T.size(name) if s.dtype[0] in "iu" else T.scalar(name) for name, s in case.scalars.items()}
    indices = [name for name, s in case.tensors.items() if s.low is not None and I.nonnegative(s.low)]

    @wraps(fn)
    def call(**flat: object) -> object:
        return fn(**{name: _nested(name, p, flat) for name, p in case.params.items()})

    strided = any(s.strided for s in case.tensors.values())
    try:
        return reading(call, specs, scalars, hints, indices, declared(case), strided)
    except CaseError as refused:
        if not isinstance(refused.__cause__, REFUSALS) or not _runs(case, fn):
            raise
        raise Unsupported("a function that PyTorch cannot trace for all sizes", refused.place, refused.why) from None


def _runs(case: Case, fn: Callable[..., object]) -> bool:
    """Whether the function returns at a shape that the case allows."""
    try:
        dims = choose(case, 1, 0)[0]
        fn(**case.sample(dims, np.random.default_rng(0)))
    except Exception:  # it may raise anything
        return False
    return True


def declared(case: Case) -> dict[str, Interval]:
    """The intervals of the integer inputs and scalars of a case: of their dtypes, within the limits that are numbers
    (and below an unknown number there is one that is not negative)."""
    out: dict[str, Interval] = {}
    for name, s in {**case.tensors, **case.scalars}.items():
        if type_of_name(s.dtype) != T.INT:
            continue
        low, high = dtype_limits(s.dtype)
        if s.low is not None:
            low = max(low, int(s.low.attr) if s.low.is_const else 0 if I.nonnegative(s.low) else low)
        if s.high is not None and s.high.is_const:
            high = min(high, int(s.high.attr) - 1)
        out[name] = (low, high)
    return out


def _integers(specs: Mapping[str, Spec], bounds: Mapping[str, Interval]) -> Integers:
    inputs = {n: dtype_limits(d) for n, (d, _) in specs.items() if type_of_name(d) == T.INT}
    return Integers(inputs | {n: b for n, b in bounds.items() if n in inputs}, bounds)


def _nested(name: str, param: Any, flat: Mapping[str, Any]) -> Any:
    """The argument for a parameter: lists of tensors arrive one by one, as <name>0, <name>1 ..."""
    if isinstance(param, list | tuple):
        return type(param)(_nested(f"{name}{k}", p, flat) for k, p in enumerate(param))
    return flat.get(name, param)


def _intervals(specs: Mapping[str, Spec], indices: Iterable[str]) -> dict[str, Interval]:
    """The interval of the elements of every integer tensor, by name: that of its dtype, and from 0 on for the names in
    `indices`."""
    known = {name: dtype_interval(dtype) for name, (dtype, _) in specs.items() if type_of_name(dtype) == T.INT}
    return known | {name: (max(known[name][0], 0), known[name][1]) for name in indices if name in known}


def _interpreted(
    graph: Any,
    specs: Mapping[str, Spec],
    names: list[str],
    keys: list[str],
    symbols: Symbols,
    integers: Integers,
) -> Reading:
    tensors = {name: named(name, dims, type_of_name(dtype)) for name, (dtype, dims) in specs.items()}
    outputs, written = outputs_of(graph, tensors, names, symbols, integers)
    formulas = [_formula(name, x, dtype) for name, (x, dtype) in zip(keys, outputs, strict=True) if x is not None]
    formulas += [_formula(name, x, specs[name][0], name) for name, x in written.items()]
    conditions = dict.fromkeys((*symbols.conditions(), *_squeezed(graph, symbols)))
    return Reading(
        tuple(formulas), tuple(conditions), tuple(integers.owed.values()), tuple(integers.roundings), _in_double(graph),
        of_graph(graph.graph, names),
    )  # fmt: skip


def _in_double(graph: GraphModule) -> bool:
    """Whether a tensor of the function is f64."""
    return any(str(getattr(n.meta.get("val"), "dtype", "")) == "torch.float64" for n in graph.graph.nodes)


def _squeezed(graph: GraphModule, symbols: Symbols) -> Iterator[Term]:
    """The conditions that what `squeeze` keeps is not 1: PyTorch may have asked earlier, where it makes no difference.
    Of sizes that are inputs' it asks anew."""
    for node in graph.graph.nodes:
        aten = node.op == "call_function" and hasattr(node.target, "_schema")
        if not aten or operators.packet(node.target) not in ("squeeze", "squeeze_copy"):
            continue
        shape = node.args[0].meta["val"].shape
        dims = node.args[1] if len(node.args) > 1 else range(len(shape))
        for d in [dims] if isinstance(dims, int) else dims:
            n = symbols.term(shape[d]) if len(shape) else T.const(1)
            if not n.is_const and n.op != "size":
                yield T.make("not", T.make("eq", n, 1))


def _formula(name: str, x: SymbolicTensor, dtype: str, in_place: str | None = None) -> Formula:
    """Output axes are named after the dims; each element function becomes a term over them."""
    names = letters(x.shape)
    axes = tuple(Axis(n, s) for n, s in zip(names, x.shape, strict=True))
    index = tuple(T.const(0) if a.size is T.const(1) else T.axis(a) for a in axes)
    return Formula(name, axes, renamed(x.at(index)), dtype, in_place)

"""Read a PyTorch function: its formulas, for every shape.

    read(fn, {"x": ("f32", (M, N))}) -> [Formula out = exp(x[m,n]) / sum[n](exp(x[m,n]))]

The function runs once on fake tensors whose sizes are symbolic (`make_fx`), autograd included; the graph's operators
are rows of `lift.aten`. What a branch on sizes or PyTorch's own checks assumed is a condition of the reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from . import aten
from . import index as I
from . import term as T
from .alias import Cell, View, view
from .errors import CaseError, Place, TriliftError, Unsupported
from .naming import letters, renamed
from .spec import Formula
from .stensor import STensor, deep, full, named, tensor
from .symbols import Symbols
from .term import Axis, Term

if TYPE_CHECKING:
    from .case import Case

Spec = tuple[str, Sequence[Term | int]]  # dtype, dims


@dataclass(frozen=True, slots=True)
class Reading:
    """`formulas` hold for all sizes that meet `conditions`: what the function's branches and PyTorch's checks assumed.
    A branch of the function on a size being 0 or 1 is not seen: sizes are at least 2 while it is traced."""

    formulas: tuple[Formula, ...]
    conditions: tuple[Term, ...]


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
) -> Reading:
    """Read `fn`, whose keyword arguments are named as in `specs` (tensors) and `scalars`.

    specs: name -> (dtype, dims), dims as terms over sizes. scalars: name -> a Python value, which is a constant, or a
    term `T.scalar(name)`, which stays symbolic. hints: numbers to trace at, where distinct primes do not suit.
    indices: integer tensors whose elements are at least 0 (others may count from the end where PyTorch allows it).
    Outputs are named out, or out0, out1 ..., or by their dict keys. Raises Unsupported for an operator without a row,
    with the line of `fn` that needed it, and CaseError when `fn` itself raises.
    """
    for multiple in (1, 2, 8):  # perhaps sizes have to be even, or multiples of 8
        symbols = Symbols(dict(hints or {}), multiple)
        inputs = {name: symbols.fake(dtype, dims) for name, (dtype, dims) in specs.items()}
        inputs |= {name: symbols.number(v) if isinstance(v, Term) else v for name, v in (scalars or {}).items()}
        try:
            graph, keys = _traced(fn, inputs)
        except REFUSALS as e:
            refusal = e
            continue
        with I.assuming(indices), deep():
            return _interpreted(graph, specs, list(inputs), keys, symbols)
    message = (str(refusal).splitlines() or [type(refusal).__name__])[0]
    raise CaseError("the function cannot be traced", _place_of(refusal), message) from refusal


def composed(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[STensor, ...]:
    """What an operator returns for symbolic tensors of constant shape, by PyTorch's decomposition of it."""
    from torch.utils._pytree import tree_flatten, tree_unflatten

    leaves, form = tree_flatten((tuple(args), dict(kwargs)))
    given = {f"a{k}": x for k, x in enumerate(leaves) if isinstance(x, STensor)}
    symbols = Symbols({})
    dtypes = {T.REAL: "f64", T.INT: "i64", T.BOOL: "bool"}
    fakes = {name: symbols.fake(dtypes[x.type], x.shape) for name, x in given.items()}

    def call(**tensors: Any) -> Any:
        own_args, own_kwargs = tree_unflatten([tensors.get(f"a{k}", x) for k, x in enumerate(leaves)], form)
        return func(*own_args, **own_kwargs)

    try:
        graph, _ = _traced(call, fakes)
    except REFUSALS as e:
        raise Unsupported(f"aten.{aten.packet(func)}") from e
    outputs, _ = _Interpretation(given, list(given), symbols).run(graph)
    return tuple(x for x, _ in outputs if x is not None)


REFUSALS = (RuntimeError, ValueError, TypeError, AttributeError, LookupError, AssertionError)


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
    call = lambda **flat: fn(**{name: _nested(name, p, flat) for name, p in case.params.items()})  # noqa: E731
    return reading(call, specs, scalars, hints, indices)


def _nested(name: str, param: Any, flat: Mapping[str, Any]) -> Any:
    """The argument for a parameter: lists of tensors arrive one by one, as <name>0, <name>1 ..."""
    if isinstance(param, list | tuple):
        return type(param)(_nested(f"{name}{k}", p, flat) for k, p in enumerate(param))
    return flat.get(name, param)


def _interpreted(graph: Any, specs: Mapping[str, Spec], names: list[str], keys: list[str], symbols: Symbols) -> Reading:
    tensors = {name: named(name, dims, aten.type_of_name(dtype)) for name, (dtype, dims) in specs.items()}
    outputs, written = _Interpretation(tensors, names, symbols).run(graph)
    formulas = [_formula(name, x, dtype) for name, (x, dtype) in zip(keys, outputs, strict=True) if x is not None]
    formulas += [_formula(name, x, specs[name][0], name) for name, x in written.items()]
    return Reading(tuple(formulas), symbols.conditions())


def _flat(out: Any, keys: list[str]) -> list[Any]:
    """The returned tensors in order; their names are appended to keys."""
    import torch

    if isinstance(out, torch.Tensor | int | float | torch.SymInt | torch.SymFloat):
        named_outputs = {"out": out}
    elif isinstance(out, Mapping):
        named_outputs = dict(out)
    else:
        named_outputs = {f"out{k}": x for k, x in enumerate(out or ())}
    keys.extend(named_outputs)
    return list(named_outputs.values())


def _formula(name: str, x: STensor, dtype: str, in_place: str | None = None) -> Formula:
    """Output axes are named after the dims; each element function becomes a term over them."""
    names = letters(x.shape)
    axes = tuple(Axis(n, s) for n, s in zip(names, x.shape, strict=True))
    index = tuple(T.const(0) if a.size is T.const(1) else T.axis(a) for a in axes)
    return Formula(name, axes, renamed(x.at(index)), dtype, in_place)


# ---- tracing --------------------------------------------------------------------------------------------------------
def _traced(fn: Callable[..., Any], inputs: dict[str, Any]) -> tuple[Any, list[str]]:
    """The graph of fn, autograd and decompositions done, and the names of its outputs."""
    from torch._dispatch.python import enable_python_dispatcher
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.traceback import preserve_node_meta

    keys: list[str] = []
    call = lambda *args: _flat(fn(**dict(zip(inputs, args, strict=True))), keys)  # noqa: E731
    with textbook(), _reported(), enable_python_dispatcher(), preserve_node_meta():
        graph = make_fx(call, _decompositions(), tracing_mode="fake")(*inputs.values())
    graph.graph.eliminate_dead_code(is_impure_node=lambda n: n.op in ("placeholder", "output") or _writes(n))
    return graph, keys


def _writes(node: Any) -> bool:
    return node.op == "call_function" and hasattr(node.target, "_schema") and node.target._schema.is_mutable


@contextmanager
def _reported() -> Iterator[None]:
    """PyTorch's own refusals while tracing are ours: the function branches on data, or an operator has no fake."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        yield
    except TriliftError:
        raise
    except (DataDependentOutputException, DynamicOutputShapeException) as e:
        raise Unsupported(
            f"aten.{aten.packet(e.func)}", _place_of(e), "its result depends on the values of a tensor"
        ) from e
    except GuardOnDataDependentSymNode as e:
        raise Unsupported("a branch on the values of a tensor", _place_of(e)) from e
    except NotImplementedError as e:
        raise Unsupported(str(e).splitlines()[0] if str(e) else "an operation", _place_of(e)) from e


def _place_of(e: BaseException) -> Place | None:
    """The innermost frame outside of PyTorch and this package."""
    import traceback

    frames = [f for f in traceback.extract_tb(e.__traceback__) if is_user(f.filename)]
    return Place(frames[-1].filename, frames[-1].lineno or 0) if frames else None


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions, for the operators that have no row of their own."""
    from torch._decomp import core_aten_decompositions

    return {f: d for f, d in core_aten_decompositions().items() if hasattr(f, "_schema") and not aten.has_row(f)}


def textbook() -> Any:
    from .textbook import Textbook

    return Textbook()


def is_user(file: str) -> bool:
    from .textbook import is_user

    return is_user(file)


# ---- interpretation -------------------------------------------------------------------------------------------------
class _Interpretation:
    """The graph walked on symbolic tensors. An operator without a row is an error only where its result is needed."""

    def __init__(self, tensors: Mapping[str, STensor], order: list[str], symbols: Symbols) -> None:
        self.order, self.symbols = order, symbols
        self.env: dict[Any, Any] = {}  # tensors are cells or views of cells, the rest is values
        self.original = tensors
        self.inputs = {name: Cell(x) for name, x in tensors.items()}

    def run(self, graph: Any) -> tuple[list[tuple[STensor | None, str]], dict[str, STensor]]:
        """(tensor, dtype) of each output, and the new contents of each input that is written."""
        names = iter(self.order)
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                self.env[node] = self._input(node, next(names))
            elif node.op == "get_attr":
                self.env[node] = Cell(constant(getattr(graph, node.target)))
            elif node.op == "call_function":
                self.env[node] = self._call(node)
            elif node.op == "output":
                outputs = [self._output(a) for a in node.args[0]]
        written = {n: c.value for n, c in self.inputs.items() if c.value is not self.original[n]}
        return outputs, written

    def _input(self, node: Any, name: str) -> Any:
        if name not in self.inputs:
            return self.symbols.term(node.meta["val"]) if "val" in node.meta else None
        return self.inputs[name]

    def _output(self, node: Any) -> tuple[STensor | None, str]:
        value = self._value(node)
        if value is None:
            return None, ""
        dtype = getattr(getattr(node, "meta", {}).get("val"), "dtype", None)
        return value if isinstance(value, STensor) else full((), value), dtype_name(dtype) if dtype else "f64"

    def _value(self, a: Any) -> Any:
        """An argument: nodes by their value, sizes by their term."""
        import torch
        from torch.fx import Node

        if isinstance(a, Node):
            return self._value(self.env[a])
        if isinstance(a, Cell | View):
            return a.value
        if isinstance(a, list | tuple):
            return [self._value(x) for x in a]
        return self.symbols.term(a) if isinstance(a, torch.SymInt | torch.SymFloat) else a

    def _call(self, node: Any) -> Any:
        import operator

        import torch

        fake = node.meta.get("val")
        numbers = torch.SymInt | torch.SymFloat | torch.SymBool | int | float
        if node.target is operator.getitem:
            return self.env[node.args[0]][node.args[1]]
        if not hasattr(node.target, "_schema") or isinstance(fake, numbers):
            return self._number(node, fake)
        if (target := _written_argument(node)) is not None:
            return self._write(node, fake, target)
        if _is_view(node.target):
            return self._view(node, fake)
        return _cells(self._apply(node, fake, node.args))

    def _apply(self, node: Any, fake: Any, args: Any) -> Any:
        """The operator's row, with PyTorch's own shapes; an operator without one gives tensors that raise."""
        values, kwargs = self._value(args), {k: self._value(v) for k, v in node.kwargs.items()}
        try:
            out = aten.apply(node.target, values, kwargs, len(fake) if isinstance(fake, list | tuple) else None)
        except Unsupported as e:
            return _later(e, node, fake, self.symbols)
        return _placed(out, node, fake, self.symbols)

    def _view(self, node: Any, fake: Any) -> Any:
        """Views of the first argument, which follow its contents."""
        base, rest = self.env[node.args[0]], node.args[1:]
        given = aten.bind(node.target, (None, *(self._value(a) for a in rest)), node.kwargs)
        del given["self"]
        name = aten.packet(node.target)
        if not isinstance(fake, list | tuple):
            return view(base, name, lambda x: self._apply(node, fake, (x, *rest)), given)
        look = lambda k: lambda x: self._apply(node, fake, (x, *rest))[k]  # noqa: E731
        return tuple(view(base, name, look(k), given, k) for k in range(len(fake)))

    def _write(self, node: Any, fake: Any, target: Any) -> Any:
        """An operator that writes its argument `target`, and returns it."""
        if not aten.packet(node.target).endswith("_") and node.target._overloadname != "out":
            raise Unsupported(f"aten.{aten.packet(node.target)}", place_of(node), "it writes an argument")
        self.env[target].write(self._apply(node, fake, node.args))
        return self.env[target]

    def _number(self, node: Any, fake: Any) -> Any:
        """A size, or x.item() as the element of x."""
        if getattr(node.target, "_schema", None) is not None and aten.packet(node.target) == "_local_scalar_dense":
            value = self._value(node.args[0]).at(())
            self.symbols.define(fake, value)
            return value
        return self.symbols.term(fake)


def _written_argument(node: Any) -> Any:
    """The node of the argument that the operator writes, or None."""
    arguments = node.target._schema.arguments
    given = aten.bind(node.target, node.args, node.kwargs)
    written = [given.get(a.name) for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    written = [n for n in written if n is not None]
    if len(written) > 1:
        raise Unsupported(f"aten.{aten.packet(node.target)}", place_of(node), "it writes several arguments")
    return written[0] if written else None


def _is_view(func: Any) -> bool:
    """The result shares the elements of the first argument."""
    returns = func._schema.returns
    return bool(returns) and returns[0].alias_info is not None and not returns[0].alias_info.is_write


def _cells(out: Any) -> Any:
    if isinstance(out, list | tuple):
        return tuple(map(_cells, out))
    return Cell(out) if isinstance(out, STensor) else out


def _placed(out: Any, node: Any, fake: Any, symbols: Symbols) -> Any:
    """The result with PyTorch's own shape, which knows what its checks assumed; errors get the node's place."""
    if isinstance(out, tuple | list):
        return tuple(_placed(o, node, f, symbols) for o, f in zip(out, fake, strict=False))
    if not isinstance(out, STensor) or fake is None:
        return out
    try:
        shape = tuple(I.normal(symbols.term(n)) for n in fake.shape)
    except Unsupported as e:
        raise Unsupported(f"aten.{aten.packet(node.target)}", place_of(node), e.what) from e

    def at(index: tuple[Term, ...]) -> Term:
        try:
            return out.at(index)
        except Unsupported as e:
            if e.place is None:
                e.place = place_of(node)
            raise

    return replace(out, shape=shape, at=at)


def _later(error: Unsupported, node: Any, fake: Any, symbols: Symbols) -> Any:
    """A tensor whose elements cannot be formed."""
    located = Unsupported(error.what, error.place or place_of(node), error.why, error.help)

    def at(_: tuple[Term, ...]) -> Term:
        raise located

    if isinstance(fake, tuple | list):
        return tuple(_later(located, node, f, symbols) for f in fake)
    if fake is None or not hasattr(fake, "shape"):
        raise located
    try:
        return tensor([symbols.term(n) for n in fake.shape], at, T.REAL)
    except Unsupported:
        raise located from error


def place_of(node: Any) -> Place | None:
    """The user's line that needed the operator."""
    import re

    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    user = [(f, int(n)) for f, n in frames if is_user(f)]
    return Place(*user[-1]) if user else None


def constant(value: Any) -> STensor:
    """A tensor of known numbers."""
    import torch

    with torch._C._DisableTorchDispatch():
        numbers, shape = value.detach().flatten().tolist(), tuple(value.shape)
    if len(set(numbers)) == 1:
        return full(shape, numbers[0], aten.type_of_name(dtype_name(value.dtype)))

    def at(index: tuple[Term, ...]) -> Term:
        position = I.linear(index, tuple(map(T.const, shape)))
        return T.make("pick", position, *numbers)

    return tensor(shape, at, aten.type_of_name(dtype_name(value.dtype)))


def dtype_name(dtype: Any) -> str:
    """torch.float32 -> "f32"."""
    text = str(dtype).removeprefix("torch.")
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i")):
        if text.startswith(long):
            return short + text.removeprefix(long)
    return text

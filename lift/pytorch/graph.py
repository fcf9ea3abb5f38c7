"""The graph of a traced function walked on symbolic tensors, by the rows of `lift.pytorch.aten`."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import Place, Unsupported
from ..terms import construct as T
from ..terms import index as I
from ..terms.exactness import Marks
from ..terms.term import Term
from . import exact_numbers
from .alias import Cell, View, view
from .aten import operators
from .exact_numbers import Nested
from .machine_integers import Integers, Rounding, is_conversion
from .symbolic_tensor import SymbolicTensor, cast, full, tensor, type_of_name
from .symbols import Symbols, dtype_name
from .tracing import REFUSALS, traced

if TYPE_CHECKING:
    import torch
    from torch._ops import OpOverload
    from torch.fx import Graph, Node

Output = tuple[SymbolicTensor | None, str]  # with its dtype


def outputs_of(
    graph: Graph,
    tensors: Mapping[str, SymbolicTensor],
    names: Sequence[str],
    symbols: Symbols,
    integers: Integers | None = None,
) -> tuple[list[Output], dict[str, SymbolicTensor]]:
    """The outputs, and the new contents of each input that is written. `names` are those of the graph's placeholders;
    `tensors` has those that are tensors, the others are numbers. `integers`: what is known of them; as elements are
    formed it takes down what they rest on. Without it integers are exact."""
    return _Interpretation(tensors, names, symbols, integers).run(graph)


def composed(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[SymbolicTensor, ...]:
    """The outputs of an operator for symbolic tensors of constant shape, computed by PyTorch's own decomposition of it.
    Raises Unsupported if PyTorch cannot trace the call."""
    from torch.utils._pytree import tree_flatten, tree_unflatten

    leaves, form = tree_flatten((tuple(args), dict(kwargs)))
    given = {f"a{k}": x for k, x in enumerate(leaves) if isinstance(x, SymbolicTensor)}
    symbols = Symbols({})
    dtypes = {T.REAL: "f64", T.INT: "i64", T.BOOL: "bool"}
    fakes = {name: symbols.fake(dtypes[x.type], x.shape) for name, x in given.items()}

    def call(**tensors: Any) -> Any:
        own_args, own_kwargs = tree_unflatten([tensors.get(f"a{k}", x) for k, x in enumerate(leaves)], form)
        return func(*own_args, **own_kwargs)

    try:
        graph, _ = traced(call, fakes)
    except REFUSALS as e:
        raise Unsupported(f"aten.{operators.packet(func)}") from e
    outputs, _ = outputs_of(graph, given, list(given), symbols)
    return tuple(x for x, _ in outputs if x is not None)


class _Interpretation:
    """The graph walked on symbolic tensors. An operator without a row is an error only where its result is needed."""

    def __init__(
        self,
        tensors: Mapping[str, SymbolicTensor],
        order: Sequence[str],
        symbols: Symbols,
        integers: Integers | None = None,
    ) -> None:
        self.order, self.symbols, self.integers = order, symbols, integers
        self.env: dict[Any, Any] = {}  # tensors are cells or views of cells, the rest is values
        self.original = tensors
        self.inputs = {name: Cell(x) for name, x in tensors.items()}
        self.exact: Marks = {}

    def run(self, graph: Graph) -> tuple[list[Output], dict[str, SymbolicTensor]]:
        """(tensor, dtype) of each output, and the new contents of each input that is written."""
        names = iter(self.order)
        if self.integers is not None:
            self.exact, rounding = exact_numbers.of_graph(graph)
            self.integers.roundings += map(_rounding, rounding)
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

    def _input(self, node: Node, name: str) -> Any:
        if name not in self.inputs:
            return self.symbols.term(node.meta["val"]) if "val" in node.meta else None
        return self.inputs[name]

    def _output(self, node: Node) -> Output:
        value = self._value(node)
        if value is None:
            return None, ""
        dtype = getattr(getattr(node, "meta", {}).get("val"), "dtype", None)
        if isinstance(value, str):
            raise Unsupported("an output that is a text")
        return value if isinstance(value, SymbolicTensor) else full((), value), dtype_name(dtype) if dtype else "f64"

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

    def _call(self, node: Node) -> Any:
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

    def _apply(self, node: Node, fake: Nested, args: Nested) -> Nested:
        """The operator's row, with PyTorch's own shapes; an operator without one gives tensors that raise."""
        values, kwargs = self._value(args), {k: self._value(v) for k, v in node.kwargs.items()}
        if operators.packet(node.target).removesuffix("_") == "nan_to_num":
            kwargs |= _ends_left_out(operators.bind(node.target, values, kwargs), fake.dtype)
        place = lambda: place_of(node)  # noqa: E731
        try:
            if self.integers is not None:
                name, dtypes = operators.packet(node.target), [*map(_dtype, node.args)]
                values = self.integers.operands(name, values, dtypes, place, kwargs)
                values = exact_numbers.operands(values, node, self.exact, self.integers, place)
            out = operators.apply(node.target, values, kwargs, len(fake) if isinstance(fake, list | tuple) else None)
            if self.integers is not None:
                again = lambda xs: operators.apply(node.target, xs, kwargs)  # noqa: E731
                out = exact_numbers.result(out, values, node, self.exact, self.integers, place, again)
        except Unsupported as e:
            return _later(e, node, fake, self.symbols)
        return self._machine(_placed(out, node, fake, self.symbols), node, fake)

    def _machine(self, out: Nested, node: Node, fake: Nested) -> Nested:
        """The result with integers in the width of PyTorch's dtype."""
        if isinstance(out, tuple | list):
            return tuple(self._machine(o, node, f) for o, f in zip(out, fake, strict=False))
        if self.integers is None or not isinstance(out, SymbolicTensor) or fake is None:
            return out
        was_real = is_conversion(operators.packet(node.target), [*map(_dtype, node.args)])
        return self.integers.machine(out, dtype_name(fake.dtype), lambda: place_of(node), was_real)

    def _view(self, node: Node, fake: Any) -> Any:
        """Views of the first argument, which follow its contents."""
        base, rest = self.env[node.args[0]], node.args[1:]
        given = operators.bind(node.target, (None, *(self._value(a) for a in rest)), node.kwargs)
        del given["self"]
        name = operators.packet(node.target)
        if not isinstance(fake, list | tuple):
            return view(base, name, lambda x: self._apply(node, fake, (x, *rest)), given)
        look = lambda k: lambda x: self._apply(node, fake, (x, *rest))[k]  # noqa: E731
        return tuple(view(base, name, look(k), given, k) for k in range(len(fake)))

    def _write(self, node: Node, fake: Any, target: Node) -> Any:
        """An operator that writes its argument `target`, and returns it."""
        if not operators.packet(node.target).endswith("_") and node.target._overloadname != "out":
            raise Unsupported(f"aten.{operators.packet(node.target)}", place_of(node), "it writes an argument")
        self.env[target].write(self._apply(node, fake, node.args))
        return self.env[target]

    def _number(self, node: Node, fake: Any) -> Any:
        """A size, or x.item() as the element of x."""
        if getattr(node.target, "_schema", None) is not None and operators.packet(node.target) == "_local_scalar_dense":
            value = self._value(node.args[0]).at(())
            self.symbols.define(fake, value)
            return value
        return self.symbols.term(fake)


def _ends_left_out(given: Mapping[str, Nested], dtype: torch.dtype) -> dict[str, Nested]:
    """The ends that nan_to_num(x, nan, posinf, neginf) takes where none are given: those of the dtype."""
    import torch

    limits = torch.finfo(dtype) if dtype.is_floating_point else None
    ends = {} if limits is None else {"posinf": limits.max, "neginf": limits.min}
    return {name: end for name, end in ends.items() if given.get(name) is None}


def _dtype(a: object) -> str | None:
    """The dtype of an argument that is a tensor."""
    dtype = getattr(getattr(a, "meta", {}).get("val"), "dtype", None)
    return None if dtype is None else dtype_name(dtype)


def _rounding(node: Node) -> Rounding:
    fake = node.meta["val"]
    first = fake[0] if isinstance(fake, list | tuple) else fake
    return dtype_name(first.dtype), place_of(node)


def _written_argument(node: Node) -> Node | None:
    """The node of the argument that the operator writes, or None."""
    arguments = node.target._schema.arguments
    given = operators.bind(node.target, node.args, node.kwargs)
    written = [given.get(a.name) for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    written = [n for n in written if n is not None]
    if len(written) > 1:
        raise Unsupported(f"aten.{operators.packet(node.target)}", place_of(node), "it writes several arguments")
    return written[0] if written else None


def _is_view(func: OpOverload) -> bool:
    """The result shares the elements of the first argument."""
    returns = func._schema.returns
    return bool(returns) and returns[0].alias_info is not None and not returns[0].alias_info.is_write


def _cells(out: Any) -> Any:
    if isinstance(out, list | tuple):
        return tuple(map(_cells, out))
    return Cell(out) if isinstance(out, SymbolicTensor) else out


def _placed(out: Any, node: Node, fake: Any, symbols: Symbols) -> Any:
    """The result with PyTorch's own type and shape, which tell what its checks assumed; errors get a place."""
    if isinstance(out, tuple | list):
        return tuple(_placed(o, node, f, symbols) for o, f in zip(out, fake, strict=False))
    if not isinstance(out, SymbolicTensor) or fake is None:
        return out
    try:
        shape = tuple(I.normal(symbols.term(n)) for n in fake.shape)
    except Unsupported as e:
        raise Unsupported(f"aten.{operators.packet(node.target)}", place_of(node), e.what) from e

    def at(index: tuple[Term, ...]) -> Term:
        try:
            return out.at(index)
        except Unsupported as e:
            if e.place is None:
                e.place = place_of(node)
            raise

    return cast(replace(out, shape=shape, at=at), type_of_name(dtype_name(fake.dtype)))


def _later(error: Unsupported, node: Node, fake: Any, symbols: Symbols) -> Any:
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


def place_of(node: Node) -> Place | None:
    """The user's line that needed the operator."""
    from .textbook import is_user

    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    user = [(f, int(n)) for f, n in frames if is_user(f)]
    return Place(*user[-1]) if user else None


def constant(value: Any) -> SymbolicTensor:
    """A tensor of known numbers."""
    import torch

    with torch._C._DisableTorchDispatch():
        numbers, shape = value.detach().flatten().tolist(), tuple(value.shape)
    if len(set(numbers)) == 1:
        return full(shape, numbers[0], type_of_name(dtype_name(value.dtype)))

    def at(index: tuple[Term, ...]) -> Term:
        position = I.linear(index, tuple(map(T.const, shape)))
        return T.make("pick", position, *numbers)

    return tensor(shape, at, type_of_name(dtype_name(value.dtype)))

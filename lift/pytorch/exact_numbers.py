"""PyTorch's float operators through which integers pass on their way to integers, truth values and indices.

    x.float().sum().to(int32)       x.float() < 3       (i / 2).floor()        torch.argmax(count.half(), -1)

`follow` adds one call to a `Flow` (`lift.terms.exactness`), the nodes of a graph or the operations of a host function.
Marks name the numbers that have to be exact: the result of a call (its tag), or an integer operand that is converted
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..terms import construct as T
from ..terms.exactness import DIGITS, Flow, Marks
from .symbolic_tensor import SymbolicTensor, number, tensor
from .symbols import dtype_name

if TYPE_CHECKING:
    from torch.fx import Graph, Node

    from ..errors import Place
    from .machine_integers import Integers

Nested: TypeAlias = Any  # an argument or result: a number, a tensor of PyTorch or of ours, or a list of them
Roots: TypeAlias = dict[Hashable, Hashable]  # view -> the tensor whose memory it has
DEFAULT = "f32"  # what an integer tensor becomes beside a number that is real


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOVES = _words(
    "clone contiguous detach alias lift_fresh lift_fresh_copy copy index index_select gather take_along_dim repeat "
    "repeat_interleave flip roll tril triu constant_pad_nd slice_scatter select_scatter index_put index_fill scatter "
    "masked_fill where cat stack maximum minimum fmax fmin amax amin clamp clip clamp_min clamp_max embedding fill "
    "relu relu6 masked_scatter scatter_reduce resize view reshape expand permute transpose unsqueeze squeeze slice "
    "select t max min topk sort cummax cummin nan_to_num zero lift new_full full full_like scalar_tensor"
)
INDEXING = _words("index index_select gather take_along_dim embedding repeat_interleave roll constant_pad_nd topk sort")
ZEROS = _words("zeros zeros_like new_zeros empty empty_like new_empty empty_strided zero")
ONES = _words("ones ones_like new_ones")
FILLED = _words("full full_like new_full scalar_tensor fill")
ROWS: Mapping[str, str] = {
    **dict.fromkeys(MOVES, "same"), "add": "add", "sub": "sub", "rsub": "sub", "mul": "mul", "neg": "neg", "abs": "abs",
    "div": "div", "divide": "div", "true_divide": "div", "sum": "sum", "cumsum": "sum", "mm": "product",
    "bmm": "product", "dot": "product", "mv": "product", "addmm": "product", "baddbmm": "product", "square": "square",
    "floor": "whole", "ceil": "whole", "trunc": "whole", "round": "whole", "fmod": "whole", "remainder": "whole",
    "floor_divide": "whole", "sign": "whole", "sgn": "whole",
}  # fmt: skip
COMPARISONS = _words("eq ne lt le gt ge")
STEPS = _words("floor ceil trunc")  # of a quotient of integers they are exact where the integers are
RANDOM = ("rand", "bernoulli", "normal", "uniform", "dropout", "native_dropout", "exponential", "multinomial")


@dataclass(frozen=True, slots=True)
class Given:
    """An argument of a call: a tensor of a dtype with its key, or a number, None where it varies (its dtype is then i64
    or f64). `position`: in the arguments of the call."""

    key: Hashable
    dtype: str | None
    position: int
    number: float | None = None

    @property
    def is_float(self) -> bool:
        return self.dtype is not None and self.dtype in DIGITS

    @property
    def is_tensor(self) -> bool:
        return self.key is not None


@dataclass(frozen=True, slots=True)
class Converted:
    """The mark of an integer argument that is converted to a float for a call."""

    tag: Hashable
    position: int


@dataclass(frozen=True, slots=True)
class Accumulated:
    """The mark of a call that adds up: its partial sums must be exact too."""

    tag: Hashable


def follow(
    flow: Flow, name: str, tag: Hashable, given: Sequence[Given], results: Sequence[tuple[Hashable, str]]
) -> None:
    """Adds one call: its results by key and dtype. `tag`: what is marked."""
    base = name.removesuffix("_") if not name.endswith("__") else name
    base = base.removesuffix("_copy") if base != "_to_copy" else base
    floats = [d for _, d in results if d in DIGITS]
    made = _converting(base, given, floats)
    keys = [_key(flow, tag, g, made) for g in given if _counts(base, g, made)]
    widest = max((str(g.dtype) for g in given if g.is_float and g.is_tensor), key=DIGITS.__getitem__, default="f16")
    for key, dtype in results:
        if dtype in DIGITS:
            if DIGITS[dtype] < DIGITS[widest]:
                flow.step(key, "narrow", [(tag, key)], DIGITS[dtype], tag)
                _result(flow, base, (tag, key), tag, keys, widest)
            else:
                _result(flow, base, key, tag, keys, dtype)
        else:
            _read(flow, base, keys)
    if ROWS.get(base) == "whole":
        _read(flow, base, keys)


def _converting(base: str, given: Sequence[Given], floats: Sequence[str]) -> str | None:
    """The float dtype in which the call computes, None where it computes in integers."""
    own = [g.dtype for g in given if g.is_float and g.is_tensor and g.dtype is not None]
    real = any(g.dtype == "f64" and not g.is_tensor for g in given)
    if floats or base not in COMPARISONS:
        return max((*floats, *own), key=DIGITS.__getitem__, default=None)
    return max(own, key=DIGITS.__getitem__, default=DEFAULT if real else None)


def _counts(base: str, g: Given, made: str | None) -> bool:
    """Whether the values of an argument are among those of the result."""
    if made is None:
        return False
    return g.is_float or not (base in INDEXING or (base == "where" and g.position == 0) or g.dtype == "bool")


def _key(flow: Flow, tag: Hashable, g: Given, made: str | None) -> Hashable:
    """The key of an argument as a float."""
    if g.is_float and g.is_tensor:
        return g.key
    key = Converted(tag, g.position)
    if g.number is not None:
        flow.number(key, g.number, DIGITS[made or DEFAULT], tag)
    elif g.is_float:
        flow.step(key, "data")
    else:
        flow.step(key, "convert", (), DIGITS[made or DEFAULT], key)
    return key


def _read(flow: Flow, base: str, keys: Sequence[Hashable]) -> None:
    """Floats that become integers or truth values."""
    if base in COMPARISONS and len(keys) == 2:
        flow.sink(keys[0], keys[1])
        flow.sink(keys[1], keys[0])
        return
    for k in keys:
        flow.sink(k)


def _result(flow: Flow, base: str, key: Hashable, tag: Hashable, keys: Sequence[Hashable], dtype: str) -> None:
    """How a float result is made."""
    digits, rule = DIGITS[dtype], ROWS.get(base, "opaque")
    if base in ZEROS or base in ONES:
        return flow.step(key, "same", number=float(base in ONES))
    if base.startswith(RANDOM):
        return flow.step(key, "data")
    if base == "arange":
        return flow.step(key, "convert", (), digits, tag)
    if base in FILLED:
        return flow.step(key, "same", keys[-1:])
    if base in ("_to_copy", "to"):
        return flow.step(key, "cast", keys, digits, tag)
    if rule == "sum":
        return flow.step(key, "add", [*keys[:1], *keys[:1]], digits, Accumulated(tag))
    if rule == "square":
        return flow.step(key, "mul", [keys[0], keys[0]], digits, tag)
    if rule == "product":
        *added, a, b = keys[:3] if base in ("addmm", "baddbmm") else keys[:2]
        return flow.step(key, "dot", [a, b, *added], digits, Accumulated(tag))
    if rule in ("neg", "abs"):
        return flow.step(key, rule, keys[:1], digits, tag)
    if rule in ("add", "sub", "mul", "div") and len(keys) != 2:
        rule = "opaque"
    return flow.step(key, rule, keys[::-1] if base == "rsub" else keys, digits, tag)


# ---- what is owed ----------------------------------------------------------------------------------------------------


def operands(
    values: Sequence[Nested], tag: Hashable, marks: Marks, integers: Integers, place: Callable[[], Place | None]
) -> list[Nested]:
    """The arguments of a call, of which integers that are converted to floats owe that they are exact there."""
    out = list(values)
    for k, x in enumerate(out):
        if (mark := Converted(tag, k)) in marks:
            out[k] = _each(x, partial(_exact, integers, marks[mark], place))
    return out


def result(
    out: Nested, values: Sequence[Nested], tag: Hashable, marks: Marks, integers: Integers,
    place: Callable[[], Place | None], again: Callable[[Sequence[Nested]], Nested],
) -> Nested:  # fmt: skip
    """The result of a call, which owes that it is exact; of sums the sum of absolute values owes it. `again`: the call
    with other arguments."""
    if (mark := Accumulated(tag)) in marks:
        sizes = again([_each(v, _absolute) for v in values])
        return integers.exact(out, marks[mark], place, sizes)
    if tag not in marks:
        return out
    return _each(out, lambda t: integers.exact(t, marks[tag], place))


def _exact(
    integers: Integers, bits: int | None, place: Callable[[], Place | None], x: SymbolicTensor
) -> SymbolicTensor:
    return integers.exact(x, bits, place)


def _absolute(x: SymbolicTensor) -> SymbolicTensor:
    return tensor(x.shape, lambda i: T.make("abs", number(x.at(i))), x.type)


def _each(x: Nested, f: Callable[[SymbolicTensor], SymbolicTensor]) -> Nested:
    """f of a tensor of numbers, or of each of several."""
    if isinstance(x, list | tuple):
        return type(x)(_each(e, f) for e in x)
    return f(x) if isinstance(x, SymbolicTensor) and x.type != T.BOOL else x


# ---- graphs ----------------------------------------------------------------------------------------------------------


def of_graph(graph: Graph) -> tuple[Marks, list[Node]]:
    """The marks of a traced function, by node; and the nodes that round to few digits, if something depends on it."""
    flow, roots = Flow(), Roots()
    for node in graph.graph.nodes:
        _node(flow, node, roots, graph)
    return flow.marks(), [tag for tag in called(flow.roundings()) if hasattr(tag, "meta")]


def called(tags: Iterable[Hashable]) -> Iterator[Nested]:
    """The calls that were marked."""
    yield from dict.fromkeys(t.tag if isinstance(t, Accumulated | Converted) else t for t in tags)


def _node(flow: Flow, node: Node, roots: Roots, graph: Graph) -> None:
    """Adds one node. `roots`: the tensor whose memory a view has."""
    import operator

    fake = node.meta.get("val")
    if node.op == "get_attr":
        _constants(flow, node, getattr(graph, str(node.target)))
    elif node.op == "placeholder":
        if _dtype(fake) in DIGITS:
            flow.step(node, "data")
    elif node.op != "call_function":
        return
    elif node.target is operator.getitem:
        if node.args[0] in roots:
            roots[node] = roots[node.args[0]]
        flow.step(node, "same", [(node.args[0], node.args[1])])
    elif hasattr(node.target, "_schema"):
        _call(flow, node, fake, roots)


def _call(flow: Flow, node: Node, fake: Nested, roots: Roots) -> None:
    """Adds one call of an operator: a view is its base, and what is written into a view is in its base too."""
    base = _root(node, roots)
    every = enumerate(fake) if isinstance(fake, list | tuple) else [(None, fake)]
    results: list[tuple[Hashable, str]] = [
        (node if k is None else (node, k), d) for k, f in every if (d := _dtype(f)) is not None
    ]
    if base is not None:
        roots[node] = base
        for key, d in results:
            if d in DIGITS:
                flow.step(key, "same", [base])
        if not _writes(node):
            return
        results = [*results, *((base, d) for _, d in results)]
    follow(flow, str(node.target._schema.name).split("::")[1], node, list(_arguments(node)), results)  # type: ignore[union-attr]


def _constants(flow: Flow, node: Node, value: Nested) -> None:
    """Adds a tensor of known numbers."""
    import torch

    if _dtype(value) not in DIGITS:
        return
    with torch._C._DisableTorchDispatch():
        numbers = set(value.detach().double().flatten().tolist())
    if len(numbers) == 1:
        flow.step(node, "same", number=numbers.pop())
    else:
        flow.step(node, "given")


def _writes(node: Node) -> bool:
    return any(a.alias_info is not None and a.alias_info.is_write for a in node.target._schema.arguments)  # type: ignore[union-attr]


def _root(node: Node, roots: Roots) -> Nested:
    """The tensor whose memory the result has; None for memory of its own."""
    returns = node.target._schema.returns  # type: ignore[union-attr]
    first = node.args[0] if node.args else None
    if not returns or returns[0].alias_info is None or not hasattr(first, "op"):
        return None
    return roots.get(first, first)


def _arguments(node: Node) -> Iterator[Given]:
    """The arguments by position, those inside of lists too."""
    import torch
    from torch.fx import Node as FxNode

    names = [a.name for a in node.target._schema.arguments]  # type: ignore[union-attr]
    every = [*enumerate(node.args), *((names.index(n), v) for n, v in node.kwargs.items() if n in names)]
    for k, a in every:
        for x in a if isinstance(a, list | tuple) else [a]:
            if isinstance(x, FxNode):
                value = x.meta.get("val")
                if (dtype := _dtype(value)) is not None:
                    yield Given(x, dtype, k)
                elif isinstance(value, torch.SymInt | torch.SymFloat):
                    yield Given(None, "f64" if isinstance(value, torch.SymFloat) else "i64", k)
            elif isinstance(x, int | float) and not isinstance(x, bool) and _is_number(node, names[k], k):
                yield Given(None, "i64" if isinstance(x, int) else "f64", k, float(x))
            elif isinstance(x, torch.SymInt | torch.SymFloat) and _is_number(node, names[k], k):
                yield Given(None, "i64" if isinstance(x, torch.SymInt) else "f64", k)


def _is_number(node: Node, name: str, position: int) -> bool:
    """Whether an argument is a number that is computed with (which may stand for a tensor), and no dimension,
    size or option."""
    kind = str(node.target._schema.arguments[position].type)  # type: ignore[union-attr]
    return "number" in kind or "Tensor" in kind or "Scalar" in name


def _dtype(x: Nested) -> str | None:
    """The dtype of a tensor."""
    import torch

    return dtype_name(x.dtype) if isinstance(x, torch.Tensor) else None

"""Writes of which PyTorch does not say which one stays: x[i] = v where an index occurs twice in i.

The meaning of these operators takes the last write to an element, as one thread does; PyTorch determines none (its
pages on index_put_, scatter_ and index_copy_). Whoever proves something of them says that no index occurs twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from ..capture.trace import TensorRef, TorchOp
from ..errors import Place
from .aten import operators

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from torch.fx import Graph, Node

LAST_STAYS = ("index_put", "_unsafe_index_put", "_index_put_impl", "index_copy", "scatter")
VALUES = ("values", "src", "source")
WIDENED = ("_to_copy", "view", "clone")  # operators that leave each index what it is, where the dtype is int64


class Write(NamedTuple):
    """An operator, the user's line, and the input that holds its indices, if it is one."""

    operator: str
    place: Place | None
    indices: str = ""


def of_graph(graph: Graph, names: Sequence[str]) -> tuple[Write, ...]:
    """Of a traced function. `names`: those of its inputs in order."""
    from .graph import place_of

    inputs = dict(zip((n for n in graph.nodes if n.op == "placeholder"), names, strict=False))
    calls = (n for n in graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema"))
    found = (Write(_name(n.target), place_of(n), inputs.get(_index(n), "")) for n in calls
             if _repeats(n.target, n.args, n.kwargs, _node))  # fmt: skip
    return tuple(dict.fromkeys(found))


def _index(call: Node) -> Node | None:
    """The tensor that holds the indices, as it was before it was made int64."""
    n = _only_index(operators.bind(call.target, call.args, call.kwargs))
    while n is not None and n.op == "call_function" and _name(n.target) in WIDENED:
        if str(getattr(n.meta.get("val"), "dtype", "")) != "torch.int64":
            return None
        n = n.args[0]
    return n


def _only_index(given: Mapping[str, object]) -> Node | None:
    indices = given.get("indices", given.get("index"))
    every = [i for i in (indices if isinstance(indices, list | tuple) else [indices]) if i is not None]
    return cast("Node", every[0]) if len(every) == 1 else None


def of_events(events: Iterable[object]) -> tuple[Write, ...]:
    """Of what a host function does between its launches."""
    calls = (e for e in events if isinstance(e, TorchOp))
    found = (Write(_name(e.func), e.host) for e in calls if _repeats(e.func, e.args, e.kwargs, _ref))
    return tuple(dict.fromkeys(found))


Look: TypeAlias = Callable[[object], tuple[bool, bool]]


def _repeats(func: OpOverload, args: Sequence[object], kwargs: Mapping[str, object], look: Look) -> bool:
    """`look`: whether an argument is a tensor of truth values, and whether it is one of a single element."""
    if _name(func) not in LAST_STAYS:
        return False
    given = operators.bind(func, args, kwargs)
    values = next((given[n] for n in VALUES if n in given), None)
    if given.get("accumulate") or given.get("reduce") is not None or values is None or look(values)[1]:
        return False
    indices = given.get("indices", given.get("index"))
    every = indices if isinstance(indices, list | tuple) else [indices]
    return not all(i is None or look(i)[0] for i in every)


def _name(func: OpOverload) -> str:
    name = operators.packet(func)
    return name.removesuffix("_")


def _node(x: object) -> tuple[bool, bool]:
    value = getattr(x, "meta", {}).get("val")
    shape = getattr(value, "shape", ())
    return str(getattr(value, "dtype", "")) == "torch.bool", all(isinstance(n, int) and n == 1 for n in shape)


def _ref(x: object) -> tuple[bool, bool]:
    return isinstance(x, TensorRef) and x.dtype == "bool", isinstance(x, TensorRef) and all(n == 1 for n in x.shape)


__all__ = ["Write", "of_events", "of_graph"]

"""Writes of which PyTorch does not say which one stays: x[i] = v where an index occurs twice in i.

The meaning of these operators takes the last write to an element, as one thread does; PyTorch determines none (its
pages on index_put_, scatter_ and index_copy_). Whoever proves something of them says that no index occurs twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..capture.trace import TensorRef, TorchOp
from ..errors import Place
from .aten import operators

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from torch.fx import Graph

LAST_STAYS = ("index_put", "_unsafe_index_put", "_index_put_impl", "index_copy", "scatter")
VALUES = ("values", "src", "source")
Write: TypeAlias = tuple[str, Place | None]  # an operator, and the user's line


def of_graph(graph: Graph) -> tuple[Write, ...]:
    """Of a traced function."""
    from .graph import place_of

    calls = (n for n in graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema"))
    found = ((_name(n.target), place_of(n)) for n in calls if _repeats(n.target, n.args, n.kwargs, _node))
    return tuple(dict.fromkeys(found))


def of_events(events: Iterable[object]) -> tuple[Write, ...]:
    """Of what a host function does between its launches."""
    calls = (e for e in events if isinstance(e, TorchOp))
    found = ((_name(e.func), e.host) for e in calls if _repeats(e.func, e.args, e.kwargs, _ref))
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

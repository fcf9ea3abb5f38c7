"""Tracing: a PyTorch function run once on fake tensors gives a graph of aten operators; refusals are said our way."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from ..capture.in_place import as_view
from ..capture.run import free_names
from ..errors import Place, TriliftError, Unsupported
from .aten import operators

if TYPE_CHECKING:
    from torch.fx import Graph

# what PyTorch and the function itself raise while it is traced
REFUSALS = (RuntimeError, ValueError, TypeError, AttributeError, LookupError, AssertionError)


def traced(fn: Callable[..., Any], inputs: dict[str, Any]) -> tuple[Any, list[str]]:
    """The graph of fn, autograd and decompositions done, and the names of its outputs."""
    import torch
    from torch._dispatch.python import enable_python_dispatcher
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.traceback import preserve_node_meta

    from .textbook import Textbook

    keys: list[str] = []
    taken = [n for n, x in inputs.items() if isinstance(x, torch.Tensor)]
    call = lambda *args: _flat(fn(**dict(zip(inputs, args, strict=True))), keys, taken)  # noqa: E731
    with Textbook(), _reported(), enable_python_dispatcher(), preserve_node_meta():
        graph = make_fx(call, _decompositions(), tracing_mode="fake")(*inputs.values())
    _only_views(graph.graph)
    graph.graph.eliminate_dead_code(is_impure_node=lambda n: n.op in ("placeholder", "output") or writes(n))
    return graph, keys


def _only_views(graph: Graph) -> None:
    """Puts views in the place of operators that give a tensor another shape: what follows uses the view."""
    from torch._ops import OpOverload
    from torch.fx import Node

    before = set()
    for node in graph.nodes:
        before.add(node)
        view = as_view(node.target) if isinstance(node.target, OpOverload) else node.target
        if view is not node.target and isinstance(given := node.args[0], Node):
            node.target = view
            given.replace_all_uses_with(node, delete_user_cb=lambda n: n not in before)


def writes(node: Any) -> bool:
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
            f"aten.{operators.packet(e.func)}", place_of_error(e), "its result depends on the values of a tensor"
        ) from e
    except GuardOnDataDependentSymNode as e:
        raise Unsupported("a branch on the values of a tensor", place_of_error(e)) from e
    except NotImplementedError as e:
        raise Unsupported(str(e).splitlines()[0] if str(e) else "an operation", place_of_error(e)) from e


def place_of_error(e: BaseException) -> Place | None:
    """The innermost frame outside of PyTorch and this package."""
    from .textbook import is_user

    frames = [f for f in traceback.extract_tb(e.__traceback__) if is_user(f.filename)]
    return Place(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def raised_at(e: BaseException) -> Place | None:
    """The line of the user's code that raised it; None if it was raised within what that line calls."""
    from .textbook import is_user

    frames = traceback.extract_tb(e.__traceback__)
    return place_of_error(e) if frames and is_user(frames[-1].filename) else None


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions, for the operators that have no row of their own."""
    from torch._decomp import core_aten_decompositions

    return {f: d for f, d in core_aten_decompositions().items() if hasattr(f, "_schema") and not operators.has_row(f)}


def _opened(out: Iterable[object]) -> Iterator[object]:
    """The parts of a result, those of lists and dicts within it too, in their order."""
    for x in out.values() if isinstance(out, Mapping) else out:
        if isinstance(x, list | tuple | Mapping):
            yield from _opened(x)
        else:
            yield x


def _flat(out: Any, keys: list[str], taken: Collection[str]) -> list[Any]:
    """The returned tensors in order; their names, none of those `taken`, are appended to keys. Numbers and texts beside
    tensors are left out, as `lift.capture.run.named_outputs` leaves them out."""
    import torch

    if isinstance(out, torch.Tensor | int | float | torch.SymInt | torch.SymFloat):
        named_outputs = {"out": out}
    elif isinstance(out, Mapping):
        named_outputs = {n: x for n, x in out.items() if isinstance(x, torch.Tensor | list | tuple | Mapping)} or dict(
            out
        )
    else:
        parts = [*_opened(out or ())]
        tensors = [x for x in parts if isinstance(x, torch.Tensor)]
        named_outputs = {f"out{k}": x for k, x in enumerate(tensors or parts)}
    keys.extend(free_names(named_outputs, taken))
    return list(named_outputs.values())

"""PyTorch's operators: one table, aten operator -> its meaning on symbolic tensors (`lift.pytorch.symbolic_tensor`),
for all shapes.

    TABLE["sum"](self, dim, keepdim)      a row; parameters are named as in PyTorch's schema
    apply(func, args, kwargs)             the row of an OpOverload; in-place and out= variants are the plain operator's
    meaning(func, args, kwargs, load)     the same row at concrete shapes, on arrays of a domain

`lift.pytorch.read` uses the table to read PyTorch functions, `lift.replay.execute` to run the torch operations
between launches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..capture.trace import TensorRef
from ..errors import Unsupported
from ..language.evaluate import evaluate
from ..terms import index as I
from ..terms import term as T
from ..terms.domain import SYMBOLIC, Float64, Ids, Symbolic
from . import aten_index, aten_nn, aten_pointwise, aten_reduce, aten_shape
from .symbolic_tensor import Rows, SymbolicTensor, cast, deep, expand, named, type_of_name

TABLE: Rows = Rows(aten_pointwise.ROWS | aten_reduce.ROWS | aten_shape.ROWS | aten_index.ROWS | aten_nn.ROWS)
CAST_FIRST = {"sum", "mean", "prod", "cumsum", "cumprod", "softmax", "log_softmax", "linalg_vector_norm", "norm"}
NO_MEANING = {"layout", "device", "pin_memory", "memory_format", "non_blocking", "requires_grad", "copy", "generator"}


def apply(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], pieces: int | None = None) -> Any:
    """What the OpOverload `func` returns: a SymbolicTensor or several. Tensors are SymbolicTensor; `pieces` says
    how many are returned where sizes do not. Raises Unsupported for an operator without a row."""
    name = packet(func)
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    meaning_of = TABLE.get(name) or TABLE.get(base)
    if meaning_of is None:
        raise Unsupported(f"aten.{name}")
    given = bind(func, args, kwargs)
    if given.get("dtype") is not None and base in CAST_FIRST:
        given["self"] = cast(given["self"], aten_shape.type_of(given.pop("dtype")))
    out = given.pop("out", None)
    if pieces is not None and "pieces" in _parameters(meaning_of):
        given["pieces"] = pieces
    result = _called(func, meaning_of, given)
    if isinstance(result, SymbolicTensor) and isinstance(out, SymbolicTensor):
        return cast(result, out.type)
    target = given.get("self") if base != name else None
    return (
        _stored(result, target) if isinstance(target, SymbolicTensor) and isinstance(result, SymbolicTensor) else result
    )


def packet(func: Any) -> str:
    """The operator's name without namespace and overload."""
    return str(func._schema.name).split("::")[1]


def has_row(func: Any) -> bool:
    """True when `apply` knows the operator."""
    name = packet(func)
    return name in TABLE or name.removesuffix("_") in TABLE


def bind(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of the schema, defaults left out."""
    names = [a.name for a in func._schema.arguments]
    return dict(zip(names, args, strict=False)) | dict(kwargs)


def _called(func: Any, meaning_of: Callable[..., Any], given: dict[str, Any]) -> Any:
    if "*" in _parameters(meaning_of):  # a function of elements takes its arguments in order
        return meaning_of(*(v for name, v in given.items() if name not in NO_MEANING))
    return meaning_of(**accepted(func, meaning_of, given))


def accepted(func: Any, meaning_of: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the row takes. Those without a meaning are dropped; any other must have its default value."""
    takes = _parameters(meaning_of)
    defaults = {a.name: a.default_value for a in func._schema.arguments if a.has_default_value()}
    out = {}
    for name, value in given.items():
        if name in takes:
            out[name] = value
        elif name not in NO_MEANING and value != defaults.get(name):
            raise Unsupported(f"aten.{packet(func)} with {name}={value}")
    for name, value in defaults.items():
        if name in takes and name not in out:
            out[name] = value
    return out


@cache
def _parameters(f: Callable[..., Any]) -> frozenset[str]:
    from inspect import signature

    return frozenset("*" if p.kind == p.VAR_POSITIONAL else p.name for p in signature(f).parameters.values())


def _stored(result: SymbolicTensor, into: SymbolicTensor) -> SymbolicTensor:
    """The result as the tensor that it is written into holds it."""
    return cast(result if result.shape == into.shape else expand(result, into.shape), into.type)


# ---- concrete shapes ------------------------------------------------------------------------------------------------
Array = np.ndarray | Ids


def meaning(
    func: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    load: Callable[[TensorRef], Array],
    domain: Float64 | Symbolic = SYMBOLIC,
    indices: Iterable[str] = (),
) -> tuple[Array, ...]:
    """The values that `func` returns, one array per returned tensor (for in-place variants: the new contents of self).

    `args` and `kwargs` as in `trace.TorchOp`, with TensorRef for tensors; `load` gives the contents of one as an array
    of the domain. `indices` names the case's inputs whose elements are known to be at least 0. A symbolic index becomes
    a read of the input, or a `pick` among an intermediate's elements. Raises Unsupported for an operator without a row.
    """
    inputs: dict[str, Array] = {}

    def lifted(x: Any) -> Any:
        if isinstance(x, TensorRef):
            array = load(x)
            name = whole_input(array) or f"@{len(inputs)}"
            inputs[name] = array
            return named(name, [T.const(n) for n in x.shape], type_of_name(x.dtype))
        if isinstance(x, list | tuple):
            return type(x)(map(lifted, x))
        return x.item() if isinstance(x, np.generic) else x

    kwargs = {k: v for k, v in kwargs.items() if k not in NO_MEANING}
    lifted_args, lifted_kwargs = lifted(tuple(args)), {k: lifted(v) for k, v in kwargs.items()}
    known = {name: (0, math.inf) for name, array in inputs.items() if _reads_only(array, set(indices))}
    with deep(), I.assuming(known):
        result = (
            apply(func, lifted_args, lifted_kwargs) if has_row(func) else by_parts(func, lifted_args, lifted_kwargs)
        )
        return tuple(values(r, inputs, domain) for r in (result if isinstance(result, tuple | list) else (result,)))


def by_parts(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[SymbolicTensor, ...]:
    """An operator without a row, at constant shapes, through PyTorch's own decomposition of it."""
    from .graph import composed

    return composed(func, args, kwargs)


def whole_input(array: Array) -> str | None:
    """x when the array is x itself: element (i, j) is x[i, j]."""
    if not isinstance(array, Ids) or not array.size or not array.ndim:
        return None
    first = T.TERMS[array.ids.flat[0]]
    if first.op != "read":
        return None
    whole = all(T.read(first.attr, i, first.type).id == t for i, t in np.ndenumerate(array.ids))
    return str(first.attr) if whole else None


def _reads_only(array: Array, names: set[str]) -> bool:
    """Every element is a number that is at least 0, or an element of one of the named tensors."""
    if not isinstance(array, Ids):
        numbers = np.asarray(array)
        return numbers.dtype.kind != "V" and bool((numbers >= 0).all())
    return all((t := T.TERMS[k]).op == "read" and t.attr in names for k in np.unique(array.ids))


def values(x: SymbolicTensor, inputs: Mapping[str, Array], domain: Float64 | Symbolic = SYMBOLIC) -> Array:
    """The elements of a tensor of concrete shape."""
    axes = tuple(T.Axis(f"@{k}", n) for k, n in enumerate(x.shape))
    index = tuple(T.const(0) if a.size is T.const(1) else T.axis(a) for a in axes)
    out: Array = evaluate(x.at(index), axes, inputs, {}, domain)
    if isinstance(out, np.ndarray) and out.dtype.kind != "V":
        out = out.astype({T.REAL: np.float64, T.INT: np.int64, T.BOOL: np.bool_}[x.type], copy=False)
    return out

"""PyTorch's operators: one table, aten operator -> its meaning on symbolic tensors (`lift.pytorch.symbolic_tensor`),
for all shapes.

    TABLE["sum"]                          a row: names, parameters as in PyTorch's schema, meaning
    apply(func, args, kwargs)             the row of an OpOverload; in-place and out= variants are the plain operator's

`lift.pytorch.read` uses the table to read PyTorch functions, `lift.pytorch.concrete` to run the torch operations
between launches. `tests/goldens/pytorch_table.txt` shows all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import Unsupported
from ..symbolic_tensor import SymbolicTensor, cast, expand
from . import convolution_rows, index_rows, network_rows, pointwise_rows, reduction_rows, shape_rows
from .operator_row import Row, table

PARTS = tuple(m.ROWS for m in (pointwise_rows, reduction_rows, shape_rows, index_rows, network_rows, convolution_rows))
TABLE: Mapping[str, Row] = table(*PARTS)
NO_MEANING = {"layout", "device", "pin_memory", "memory_format", "non_blocking", "requires_grad", "copy", "generator"}


def apply(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], pieces: int | None = None) -> Any:
    """Applies the OpOverload `func` and returns its result, one SymbolicTensor or several. Tensors among the arguments
    are SymbolicTensors; `pieces` gives the number of results if the sizes do not determine it. Raises Unsupported for
    an operator without a row."""
    name = packet(func)
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    row = TABLE.get(name) or TABLE.get(base)
    if row is None:
        raise Unsupported(f"aten.{name}")
    given = bind(func, args, kwargs)
    if row.cast_first and given.get("dtype") is not None:
        given["self"] = cast(given["self"], shape_rows.type_of(given.pop("dtype")))
    out = given.pop("out", None)
    if pieces is not None and "pieces" in row.defaults:
        given["pieces"] = pieces
    result = row(accepted(func, row, given))
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


def accepted(func: Any, row: Row, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the row takes. Those without a meaning are dropped; any other must have its default value."""
    takes = row.defaults
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


def _stored(result: SymbolicTensor, into: SymbolicTensor) -> SymbolicTensor:
    """The result as the tensor that it is written into holds it."""
    return cast(result if result.shape == into.shape else expand(result, into.shape), into.type)

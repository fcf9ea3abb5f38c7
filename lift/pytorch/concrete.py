"""PyTorch's operators at concrete shapes, on arrays of a domain: what the torch operations between launches give.

meaning(func, args, kwargs, load)     by the row, or PyTorch's own decomposition of an operator without one
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..capture.trace import TensorRef
from ..language.evaluate import evaluate
from ..runtime.recursion import deep
from ..terms import index as I
from ..terms import term as T
from ..terms.domain import SYMBOLIC, Float64, Ids, Symbolic
from .aten import operators
from .graph import composed
from .symbolic_tensor import SymbolicTensor, named, type_of_name

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

    kwargs = {k: v for k, v in kwargs.items() if k not in operators.NO_MEANING}
    lifted_args, lifted_kwargs = lifted(tuple(args)), {k: lifted(v) for k, v in kwargs.items()}
    known = {name: (0, math.inf) for name, array in inputs.items() if _reads_only(array, set(indices))}
    with deep(), I.assuming(known):
        run = operators.apply if operators.has_row(func) else composed
        result = run(func, lifted_args, lifted_kwargs)
        return tuple(values(r, inputs, domain) for r in (result if isinstance(result, tuple | list) else (result,)))


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

"""Operations of Triton IR on values of a field, or on weights of them, where they are not rows of `lift.terms.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trilift.lift.interpreter.registry import HANDLERS as LIFTED

from .pairs import NotTestable


def _real(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "Vf"


def _constant(run: Any, op: Any) -> Any:
    value = LIFTED["arith.constant"](run, op)
    if not op.results[0].type.is_float:
        return value
    return np.broadcast_to(run.domain.reals(np.asarray(op.attrs["value"])), op.results[0].type.shape)


def _from_integer(run: Any, op: Any, x: Any) -> Any:
    return run.domain.reals(LIFTED[op.name](run, op, x))


def _cmpf(run: Any, op: Any, a: Any, b: Any) -> Any:
    """Reals are never NaN."""
    predicate = op.attrs["predicate"]
    if predicate in ("true", "false", "ord", "uno"):
        return np.full(op.operands[0].type.shape, predicate in ("true", "ord"))
    return run.domain.apply(predicate[1:], a, b)


def _select(run: Any, op: object, c: Any, a: Any, b: Any) -> Any:
    return run.domain.where(c, a, b)


def _extreme(run: Any, op: Any, a: Any, b: Any) -> Any:
    return run.domain.apply("max" if op.name == "arith.maximumf" else "min", a, b)


def _to_integer(run: Any, op: Any, x: Any) -> Any:
    numbers = x["v"]
    if np.isnan(numbers).any():
        raise NotTestable(op.name, op.place, "an integer that depends on real data")
    return LIFTED[op.name](run, op, numbers)


def _bitcast(run: Any, op: Any, x: Any) -> Any:
    if _real(x) or op.results[0].type.is_float:
        if op.operands[0].type.element != op.results[0].type.element:
            raise NotTestable(op.name, op.place, "the bits of a real number")
        return x
    return LIFTED[op.name](run, op, x)


def _dot(run: Any, op: Any, a: Any, b: Any, c: Any) -> Any:
    """a @ b + c."""
    d = run.domain
    if not op.results[0].type.is_float:
        return LIFTED[op.name](run, op, a, b, c)
    return d.apply("add", d.matmul(d.reals(a), d.reals(b)), c)


def _scan(run: Any, op: Any, *xs: Any) -> list[Any]:
    """The region from element to element."""
    if not any(_real(x) for x in xs):
        known: list[Any] = LIFTED[op.name](run, op, *xs)
        return known
    axis, reverse = op.attrs["axis"], op.attrs.get("reverse", False)
    parts = [np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0) for x in xs]
    steps = [[x[0] for x in parts]]
    for k in range(1, parts[0].shape[0]):
        steps.append(run.region(op.regions[0], [*steps[-1], *(x[k] for x in parts)]))
    out = [np.moveaxis(np.stack([s[i] for s in steps]), 0, axis) for i in range(len(xs))]
    return [np.flip(x, axis) if reverse else x for x in out]


def _assembly(run: Any, op: Any, *xs: Any) -> list[Any]:
    out = LIFTED[op.name](run, op, *xs)
    return [run.domain.reals(x) if v.type.is_float else x for x, v in zip(out, op.results, strict=True)]


def _random(run: Any, op: Any, *xs: Any) -> Any:
    return run.domain.reals(LIFTED[op.name](run, op, *xs))


HANDLERS: dict[str, Callable[..., Any]] = {
    "arith.constant": _constant, "arith.sitofp": _from_integer, "arith.uitofp": _from_integer, "arith.cmpf": _cmpf,
    "arith.select": _select, "arith.maximumf": _extreme, "arith.minimumf": _extreme, "arith.fptosi": _to_integer,
    "arith.fptoui": _to_integer, "tt.bitcast": _bitcast, "arith.bitcast": _bitcast, "tt.dot": _dot, "tt.scan": _scan,
    "tt.elementwise_inline_asm": _assembly, "trilift.random": _random,
}  # fmt: skip

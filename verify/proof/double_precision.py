"""Constants that f64 tells apart and f32 does not.

A kernel of f32 holds 0.7071068 where its reference says 1 / sqrt(2): numbers that single precision makes one are one in
a proof. Where a tensor, a kernel or the reference computes in f64 they are two numbers, and `sin(x * 1.00000005)` is
not `sin(x)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Module

from ..model.configuration import Configuration, HostOp, View
from ..normal_form.poly import same_constant, simple

DOUBLE_RELATIVE_ERROR = 2.0**-48  # of constants: a few roundings to double precision


def in_double(configuration: Configuration) -> bool:
    """Whether tensors are f64, or a kernel has values of that type."""
    views = (*configuration.inputs.values(), *configuration.outputs.values())
    dtypes = {*(v.dtype for v in views), *(b.dtype for b in configuration.buffers)}
    launches = (e for e in configuration.events if not isinstance(e, HostOp))
    return "f64" in dtypes or any(e.module.computes_in_double for e in launches)


def mistaken(configuration: Configuration, formula: Formula) -> tuple[float, float] | None:
    """Two constants that single precision makes one, for which a test in a field takes the same number; None where
    there are none."""
    found = sorted({abs(float(c)) for c in _constants(configuration, formula) if np.isfinite(c)})
    taken = ((c, float(s)) for c in found if c and (s := simple(c)) is not None)
    return next((p for p in (*taken, *pairwise(found)) if same_constant(*p) and _differ(*p)), None)


def told_apart(configuration: Configuration, formula: Formula) -> str:
    """Numbers of which a proof in single precision makes one, where something computes in f64: "" if there are none."""
    pair = mistaken(configuration, formula)
    return "{!r} and {!r}".format(*pair) if pair is not None else rounded_operand(configuration)


def rounded_operand(configuration: Configuration) -> str:
    """An operand in f32 of a kernel that computes in f64; "" if its digits are known, or there is none."""
    launches = (e for e in configuration.events if not isinstance(e, HostOp))
    found = next((e.widened for e in launches if e.widened), "")
    return f"{found} and the number in f32 that Triton makes of it" if found else ""


def _differ(a: float, b: float) -> bool:
    return abs(a - b) > DOUBLE_RELATIVE_ERROR * max(a, b)


def _constants(configuration: Configuration, formula: Formula) -> Iterator[float]:
    """The reals that the formula, kernels and host operations hold."""
    yield from _reals([formula.term])
    for event in configuration.events:
        if isinstance(event, HostOp):
            yield from _reals(t for k, v in enumerate(event.outputs) for t in [event.values[k](_index(v))])
        else:
            yield from _reals(x for x in event.operands if isinstance(x, Term))
            yield from _floats(event.module)


def _index(view: View) -> tuple[Term, ...]:
    return tuple(T.axis(Axis(f"e{d}", n)) for d, n in enumerate(view.shape))


def _reals(terms: Iterable[Term]) -> Iterator[float]:
    return (float(s.attr) for t in terms for s in t.walk() if s.op == "const" and s.type == T.REAL)


def _floats(module: Module) -> Iterator[float]:
    for op in module.walk():
        if op.name == "arith.constant" and (value := np.asarray(op.attrs["value"])).dtype.kind == "f":
            yield from map(float, np.unique(value))

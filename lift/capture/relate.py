"""Launch arguments, grids, strides as terms over dims and scalars: fitted on several traces, one of which is held
back as a check.

A constexpr that fits nothing, a block size out of a table, say, is a number of its own: `size("BLOCK")`, which grids
may depend on. Any other value that fits nothing is an error that names it. Strides of inputs that are not contiguous
are names too: stride(x,0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Unsupported
from ..terms import term as T
from ..terms.fit import Number, fit, value
from ..terms.term import Term
from .trace import Descriptor, Launch, TensorRef, Trace

__all__ = ["Relation", "fit", "relate"]


@dataclass(frozen=True, slots=True)
class Relation:
    """`what` of launch number `launch` is `term` at every shape; `values` are the numbers seen. What: a parameter
    name, "grid[0]",
    "x.shape[1]", "x.stride(0)", "x.offset" (elements from the start of its buffer). `checked`: the term was found
    without the last trace and holds there. `free`: a constexpr that fits no expression; its term is its own name."""

    launch: int
    kernel: str
    what: str
    term: Term
    values: tuple[Number, ...]
    checked: bool
    free: bool = False


def relate(traces: Sequence[Trace]) -> list[Relation]:
    """One relation for every number of every launch, in order. Raises Unsupported if the launches are not the same at
    every shape, or a value fits nothing."""
    _same_launches(traces)
    strided = {n for t in traces for n, x in t.inputs.items() if x.strides != contiguous(x.shape)}
    environments = [_environment(t, strided) for t in traces]
    columns = zip(*(t.launches for t in traces), strict=True)
    return [r for k, column in enumerate(columns) for r in _Launch(k, column, environments).relations()]


def _same_launches(traces: Sequence[Trace]) -> None:
    kernels = [tuple(launch.kernel for launch in t.launches) for t in traces]
    for trace, names in zip(traces, kernels, strict=True):
        if names != kernels[0]:
            a, b = _at(traces[0].dims), _at(trace.dims)
            what = f"the launches depend on the shape: {len(kernels[0])} at {a}, {len(names)} at {b}"
            extra = sorted(set(names) ^ set(kernels[0]))
            place = trace.launches[0].host if trace.launches else None
            raise Unsupported(what, place, ", ".join(extra) and f"launched only at some shapes: {', '.join(extra)}")


def _at(dims: dict[str, Number]) -> str:
    return ", ".join(f"{n}={v}" for n, v in dims.items())


def _environment(trace: Trace, strided: Collection[str]) -> dict[str, Number]:
    """Dims, scalars, and the strides of inputs that are not contiguous at some shape."""
    out = dict(trace.dims)
    for name, x in trace.inputs.items():
        if name in strided:
            out |= {f"stride({name},{d})": s for d, s in enumerate(x.strides)}
    return out


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a dense row-major tensor."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))


class _Launch:
    """One launch at every shape. `known`: constexprs found so far, which other numbers may be simple functions of."""

    def __init__(self, index: int, launches: Sequence[Launch], environments: Sequence[dict[str, Number]]) -> None:
        self.index, self.launches = index, launches
        self.environments = [dict(e) for e in environments]
        self.known: list[Term] = []

    def relations(self) -> Iterator[Relation]:
        rows = [dict(_numbers(launch)) for launch in self.launches]
        names = [n for n in rows[0] if all(n in r for r in rows)]
        for what in sorted(names, key=lambda n: n not in self.launches[0].constexprs):
            yield self.relation(what, tuple(r[what] for r in rows))

    def relation(self, what: str, values: tuple[Number, ...]) -> Relation:
        constexpr = what in self.launches[0].constexprs
        term = fit(values, self.environments, tuple(self.known))
        if term is None and not constexpr:
            raise self.unfit(what, values)
        free = term is None
        if free:
            for e, v in zip(self.environments, values, strict=True):
                e[what] = v
        found = T.size(what) if term is None else term
        if constexpr and found.type == T.INT:
            self.known.append(found)
        return Relation(self.index, self.launches[0].kernel, what, found, values, self.checked(found, values), free)

    def checked(self, term: Term, values: tuple[Number, ...]) -> bool:
        return len(values) > 2 and fit(values[:-1], self.environments[:-1], tuple(self.known)) is term

    def unfit(self, what: str, values: tuple[Number, ...]) -> Unsupported:
        seen = "; ".join(f"{v} at {_at(e)}" for v, e in zip(values, self.environments, strict=True))
        launch = self.launches[0]
        said = f"{what} of {launch.kernel} is none of the functions of the case's dims that are tried"
        advice = "make the number it depends on a dim or a scalar of the case"
        return Unsupported(said, launch.host, f"it is {seen}", advice)


def _numbers(launch: Launch) -> Iterator[tuple[str, Number]]:
    """Every number of a launch by its name."""
    for name, v in launch.args.items():
        yield from _argument(name, v)
    for k, n in enumerate(launch.grid):
        yield f"grid[{k}]", n


def _argument(name: str, v: Any) -> Iterator[tuple[str, Number]]:
    if isinstance(v, (bool, int, float)):
        yield name, v
    elif isinstance(v, TensorRef):
        yield from ((f"{name}.shape[{k}]", n) for k, n in enumerate(v.shape))
        yield from ((f"{name}.stride({k})", s) for k, s in enumerate(v.strides) if v.shape[k] > 1)
        yield f"{name}.offset", (v.address - v.buffer.address) // v.itemsize
    elif isinstance(v, Descriptor):
        yield from _argument(f"{name}.base", v.base)
        numbers = {"shape": v.shape, "strides": v.strides, "block_shape": v.block_shape}
        yield from ((f"{name}.{part}[{k}]", n) for part, ns in numbers.items() for k, n in enumerate(ns))
    elif isinstance(v, tuple):
        for k, e in enumerate(v):
            yield from _argument(f"{name}[{k}]", e)


def holds(relation: Relation, trace: Trace) -> bool:
    """Whether the relation is right for another trace of the same case."""
    rows = dict(_numbers(trace.launches[relation.launch]))
    environment = {**{n: v for n, v in rows.items() if isinstance(v, int)}, **_environment(trace, trace.inputs)}
    return bool(value(relation.term, environment) == rows.get(relation.what))

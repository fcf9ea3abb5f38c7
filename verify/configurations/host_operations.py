"""Torch operations between launches, at every shape: the rows of `lift.pytorch.aten.operators` on reads of buffers.

Views and allocations are not events: tensors are addresses.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from trilift.lift.capture.recorder import UNINITIALISED
from trilift.lift.capture.trace import Launch, TensorRef, TorchOp, Trace
from trilift.lift.errors import Place, TriliftError, Unsupported
from trilift.lift.pytorch import exact_numbers
from trilift.lift.pytorch.aten import operators
from trilift.lift.pytorch.exact_numbers import Given
from trilift.lift.pytorch.host import term_of
from trilift.lift.pytorch.machine_integers import Fits, Integers, is_conversion
from trilift.lift.pytorch.symbolic_tensor import SymbolicTensor, cast, tensor, type_of_name
from trilift.lift.replay import storage, torch_ops
from trilift.lift.runtime.recursion import deep
from trilift.lift.terms import construct as T
from trilift.lift.terms.exactness import Marks
from trilift.lift.terms.machine_ranges import dtype_limits
from trilift.lift.terms.ranges import Interval
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.written_pointers import written

from ..model.configuration import HostOp, View
from ..model.program import Element
from .buffers import Buffers, Initial, contents, nothing

New = tuple[str, str, Initial]
LARGEST_CONSTANT = 4096  # elements of a tensor of known numbers


def event(column: Sequence[TorchOp], buffers: Buffers) -> HostOp | None:
    """One operation, seen in every trace: None for an allocation. Raises Unsupported, with the host's line,
    for an operator without a meaning."""
    first, name = column[0], operators.packet(column[0].func)
    refs = [[t.outputs[k] for t in column] for k in range(len(first.outputs))]
    written = list(zip(*([ref for _, ref in torch_ops.written_arguments(e)] for e in column), strict=True))
    known = [buffers.position(r, f"the result of {name}", first.host) is not None for r in refs]
    if not written and all(known):
        return None  # views
    if name in UNINITIALISED:
        for r in refs:
            fresh = buffers.fresh()
            buffers.view(r, fresh, first.host, (fresh, f"aten.{name}", nothing(fresh, r[0].dtype)))
        return None
    if any(not any(w[0].address == o.address for o in first.outputs) for w in written):
        raise Unsupported(f"aten.{name}", first.host, "it writes an argument that it does not return")
    integers = Integers(_intervals(buffers))
    values = formed(meaning(column, buffers, name, integers))
    fixed = not integers.owed and not written and not any(known)
    if fixed and all(v is not None for v in map(_fill, values)):
        for r, v in zip(refs, map(_fill, values), strict=True):
            buffers.view(r, name, first.host, (buffers.fresh(), f"aten.{name}", _always(v)))
        return None
    views = tuple(_result(r, buffers, name, first.host) for r in refs)
    elements = tuple(_element(v) for v in values)
    if len(elements) != len(views):
        raise Unsupported(f"aten.{name}", first.host, "the number of tensors that it returns changes")
    given = tuple(_given(column, buffers, name))
    return HostOp(f"aten.{name}", views, elements, first.host, tuple(integers.owed.values()), given,
                  partial(_exactly, column, buffers, name))  # fmt: skip


def _given(column: Sequence[TorchOp], buffers: Buffers, name: str) -> Iterator[Given]:
    """The arguments of an operation, those inside of lists too."""
    first = column[0]
    types = [str(a.type) for a in first.func._schema.arguments]
    for k in range(len(first.args)):
        joined = _refs_and_numbers([t.args[k] for t in column])
        for values in joined:
            x = values[0]
            if isinstance(x, TensorRef):
                view = buffers.view(values, name, first.host, constant(values, buffers, name, first.host))
                yield Given(view, x.dtype, k)
            elif isinstance(x, int | float) and not isinstance(x, bool) and "number" in types[k]:
                same = all(v == x for v in values)
                yield Given(None, "i64" if isinstance(x, int) else "f64", k, float(x) if same else None)


def _refs_and_numbers(values: exact_numbers.Nested) -> Iterator[exact_numbers.Nested]:
    """One argument of all traces, each element of a list by itself."""
    if isinstance(values[0], list | tuple):
        for part in zip(*values, strict=True):
            yield from _refs_and_numbers(part)
    else:
        yield values


def _exactly(column: Sequence[TorchOp], buffers: Buffers, name: str, marks: Marks, tag: Hashable) -> tuple[Fits, ...]:
    """The numbers of an operation that must be exact and owe it. Raises Unsupported for one that is not known to be."""
    integers = Integers(_intervals(buffers))
    for x in meaning(column, buffers, name, integers, marks, tag):
        with deep():
            x.at(tuple(T.axis(Axis(f"@{k}", n)) for k, n in enumerate(x.shape)))
    return tuple(integers.owed.values())


def _result(refs: Sequence[TensorRef], buffers: Buffers, name: str, place: Place | None) -> View:
    fresh = buffers.fresh()
    return buffers.view(refs, f"the result of {name}", place, (fresh, f"aten.{name}", nothing(fresh, refs[0].dtype)))


def _always(v: Term | None) -> Initial:
    return lambda o: v if v is not None else T.undef("nothing")


def _element(x: SymbolicTensor) -> Element:
    def element(index: Sequence[Term]) -> Term:
        with deep():
            return x.at(tuple(index))

    return element


def _fill(x: SymbolicTensor) -> Term | None:
    """The value that all elements have, if they have one that no index and no memory enters."""
    index = tuple(T.axis(Axis(f"@{k}", n)) for k, n in enumerate(x.shape))
    try:
        v = x.at(index)
    except TriliftError:
        return None
    return v if not v.free and not T.reads(v) else None


def formed(values: tuple[SymbolicTensor, ...]) -> tuple[SymbolicTensor, ...]:
    """The same tensors, each with one element formed for all indices, so that what its integers rest on is known. Where
    that cannot be formed no element can."""
    return tuple(map(_formed, values))


def _formed(x: SymbolicTensor) -> SymbolicTensor:
    try:
        with deep():
            x.at(tuple(T.axis(Axis(f"@{k}", n)) for k, n in enumerate(x.shape)))
    except TriliftError as error:
        stop = error

        def at(_: tuple[Term, ...]) -> Term:
            raise stop

        return tensor(x.shape, at, x.type)
    return x


def _intervals(buffers: Buffers) -> dict[str, Interval]:
    """The numbers in the buffers: those of the dtype, for whatever was written last."""
    return {b.name: dtype_limits(b.dtype) for b in buffers.every if type_of_name(b.dtype) == T.INT}


def meaning(
    column: Sequence[TorchOp], buffers: Buffers, name: str, integers: Integers, marks: Marks | None = None,
    tag: Hashable = None,
) -> tuple[SymbolicTensor, ...]:  # fmt: skip
    """The values of the outputs as symbolic tensors, in the dtypes that torch gave them: `integers` takes down what
    they rest on, and what `marks` says that the floats of `tag` owe."""
    import torch

    first = column[0]
    if torch.Tag.nondeterministic_seeded in first.func.tags:
        raise Unsupported(f"aten.{name}", first.host, "random numbers")
    args = [
        _joined([t.args[k] for t in column], buffers, f"{name}, argument {k}", first) for k in range(len(first.args))
    ]
    place = lambda: first.host  # noqa: E731
    dtypes = [x.dtype if isinstance(x, TensorRef) else None for x in first.args]
    args = integers.operands(name, args, dtypes, place, first.kwargs)
    args = exact_numbers.operands(args, tag, marks or {}, integers, place)
    kwargs = {
        k: _joined([t.kwargs[k] for t in column], buffers, f"{name}, {k}", first)
        for k in first.kwargs
        if k not in operators.NO_MEANING
    }
    try:
        with deep():
            out = operators.apply(first.func, args, kwargs, len(first.outputs))
            again = lambda xs: operators.apply(first.func, xs, kwargs)  # noqa: E731
            out = exact_numbers.result(out, args, tag, marks or {}, integers, place, again)
    except TriliftError as error:
        error.place = error.place or first.host
        raise
    results = out if isinstance(out, tuple | list) else (out,)
    was_real = is_conversion(name, dtypes)
    return tuple(
        integers.machine(cast(x, type_of_name(ref.dtype)), ref.dtype, place, was_real)
        for x, ref in zip(results, first.outputs, strict=True)
    )


def _joined(values: Sequence[Any], buffers: Buffers, what: str, op: TorchOp) -> Any:
    """One argument of all traces: tensors as SymbolicTensor, numbers as terms where they vary."""
    first = values[0]
    if isinstance(first, TensorRef):
        return contents(buffers.view(values, what, op.host, constant(values, buffers, what, op.host)))
    if isinstance(first, list | tuple):
        if len({len(v) for v in values}) > 1:
            raise Unsupported(f"the length of {what} depends on the shape", op.host)
        return [_joined(part, buffers, what, op) for part in zip(*values, strict=True)]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numbers and any(v != first or term_of(v) is not term_of(first) for v in values):
        return buffers.relations.term(values, what, op.host)
    if any(v != first for v in values):
        raise Unsupported(f"{what} depends on the shape", op.host)
    return first


def constant(refs: Sequence[TensorRef], buffers: Buffers, what: str, place: Place | None) -> New | None:
    """The numbers of a tensor that the host program holds, the same at every shape; of one that the host function
    writes, which keeps them from call to call, none are known. None for any other tensor."""
    if any(r.buffer.origin != "host" for r in refs):
        return None
    if refs[0].buffer.address in (r.buffer.address for e in buffers.relations.traces[0].events for r in written_by(e)):
        name = buffers.fresh()
        return name, "kept", left_by_a_call(name, refs[0].dtype)
    held = [_held(r, what, place) for r in refs]
    first = held[0]
    if all(h.size and (h == h[0]).all() and h[0] == first[0] for h in held):
        return buffers.fresh(), "host", _always(T.const(first[0].item()))
    if any(h.shape != first.shape or not np.array_equal(h, first) for h in held):
        raise Unsupported(f"{what} is a tensor of known numbers that depend on the shape", place)
    if first.size > LARGEST_CONSTANT:
        raise Unsupported(f"{what} is a tensor of {first.size} known numbers", place)
    numbers = [T.const(v.item()) for v in first]
    return buffers.fresh(), "host", lambda o: T.make("pick", o, *numbers)


def left_by_a_call(name: str, dtype: str) -> Initial:
    """The contents of a tensor that the host program holds and every call writes."""
    return lambda o: T.undef(f"what an earlier call left in {name}", type_of_name(dtype))


def written_by(event: Launch | TorchOp) -> Iterator[TensorRef]:
    """The tensors that an event may write."""
    if not isinstance(event, Launch):
        yield from (ref for _, ref in torch_ops.written_arguments(event))
        return
    to = written(event.module())
    yield from (x for k, x in enumerate(event.operands) if isinstance(x, TensorRef) and (to is None or k in to))


def _held(r: TensorRef, what: str, place: Place | None) -> np.ndarray:
    """The numbers of a tensor that the host program holds. Raises Unsupported where a reading knows none."""
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(r.buffer.tensor, FakeTensor):
        raise Unsupported(f"{what} is a tensor of numbers that are not known", place)
    return storage.storage_values(r)


def live(trace: Trace) -> list[bool]:
    """Of each act, whether an output, an input or a launch can see what it does."""
    seen = {r.buffer.address for r in (*trace.outputs.values(), *trace.inputs.values())}
    out = []
    for e in reversed(trace.acts):
        touched = _touched(e)
        needed = isinstance(e, Launch) or _is_allocation(e) or bool(seen & {r.buffer.address for r in touched[0]})
        if needed and not _is_allocation(e):
            seen |= {r.buffer.address for part in touched for r in part}
        out.append(needed)
    return out[::-1]


def _is_allocation(e: Launch | TorchOp) -> bool:
    return isinstance(e, TorchOp) and operators.packet(e.func) in UNINITIALISED


def _touched(e: Launch | TorchOp) -> tuple[list[TensorRef], list[TensorRef]]:
    """The buffers that it writes, and those that it reads."""
    if isinstance(e, Launch):
        refs = [x for x in e.operands if isinstance(x, TensorRef)]
        return refs, refs
    return [*e.outputs, *(r for _, r in torch_ops.written_arguments(e))], list(_refs((e.args, e.kwargs)))


def _refs(x: Any) -> Iterator[TensorRef]:
    yield from torch_ops.refs(x)

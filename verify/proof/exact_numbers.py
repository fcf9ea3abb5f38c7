"""The float operations of a configuration through which integers pass: of its kernels and its host operations
together, since a float that one writes another may read as an integer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from trilift.lift.interpreter import random_numbers
from trilift.lift.pytorch import exact_numbers
from trilift.lift.pytorch.machine_integers import Rounding
from trilift.lift.terms import construct as T
from trilift.lift.terms.exactness import DIGITS, Flow, Marks
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Op

from ..execution.integers_in_floats import follow
from ..model.configuration import Buffer, Configuration, HostOp, SymbolicLaunch, View
from ..model.verdict import Clause

if TYPE_CHECKING:
    from collections.abc import Hashable

    from trilift.lift.errors import Place


def exact_operations(configuration: Configuration) -> tuple[Marks, list[Rounding]]:
    """The operations that have to be exact, and in how many bits: those of kernels by `Op`, or (Op, operand); those of
    host operations by `HostOp`, as `lift.pytorch.exact_numbers` marks them. And the roundings to few digits on which an
    integer or a truth value depends."""
    flow = Flow()
    places: dict[Hashable, Place | None] = {}
    for b in configuration.buffers:
        if b.dtype in DIGITS:
            _initially(flow, b)
    for event in configuration.events:
        if isinstance(event, HostOp):
            _host(flow, event)
        else:
            _launch(flow, event, places)
    return flow.marks(), [*map(partial(_rounding, places), exact_numbers.called(flow.roundings()))]


def _rounding(places: Mapping[Hashable, Place | None], tag: Hashable) -> Rounding:
    if tag in places:  # a number that is passed
        return "f32", places[tag]
    if isinstance(tag, HostOp):
        return tag.outputs[0].dtype, tag.place
    if isinstance(tag, tuple):  # an operand of a product of f32, which is rounded first
        return "tf32", tag[0].place
    assert isinstance(tag, Op)
    return tag.results[0].type.element, tag.place


def rounding_clause(rounding: Rounding) -> Clause:
    """The precondition that rounding decides nothing: numbers are real in a proof."""
    dtype, place = rounding
    text = f"no integer, index or truth value depends on the rounding to {dtype}"
    return Clause("float", None, text, "the result", place)


def _initially(flow: Flow, b: Buffer) -> None:
    """Adds the first contents of a buffer of floats."""
    if b.origin.startswith("input:"):
        return flow.step(b, "data")
    first = b.initial(T.axis(Axis("@0", b.length)))
    if first.is_const:
        return flow.step(b, "same", number=float(first.attr))
    return None if first.op == "undef" else flow.step(b, "opaque")


def _launch(flow: Flow, event: SymbolicLaunch, places: dict[Hashable, Place | None]) -> None:
    """Adds a launch. `places`: takes where the host function makes it, for numbers that it narrows."""
    module = random_numbers.named(event.module)
    entry = module.entry.args
    arguments = [*zip(entry, event.operands, strict=True)]
    held = {v: x.buffer for v, x in arguments if isinstance(x, View)}
    narrowed = [entry[k] for k in event.narrowed]
    places.update((v, event.host) for v in narrowed)
    follow(flow, module, held, {v: x for v, x in arguments if isinstance(x, Term)}, narrowed)


def _host(flow: Flow, event: HostOp) -> None:
    given = [g if g.key is None else replace(g, key=_memory(g.key)) for g in event.given]
    results: list[tuple[Hashable, str]] = [(v.buffer, v.dtype) for v in event.outputs]
    exact_numbers.follow(flow, event.name.removeprefix("aten."), event, given, results)


def _memory(key: object) -> Hashable:
    return key.buffer if isinstance(key, View) else None

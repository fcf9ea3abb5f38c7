"""Slips in one operation: a wrong operand, a wrong operation, a wrong attribute.

A slip is a function (operation, editor) -> the variants it has there. An edit keeps the types of all values, so that
what comes out can be run; its key is the same whatever the block size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from trilift.lift.ttir.ir import Function, Op, Type, Value

from .editor import Editor, constant_of

ARITH = "arith."


@dataclass(frozen=True, slots=True)
class Variant:
    """One change: `edit` does it."""

    key: str
    text: str
    edit: Callable[[], object]


Slip = Callable[[Op, Editor], Iterator[Variant]]

DIVISIONS = ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")
SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
# Operations whose operands have slips of their own.
APART = (
    "scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition", "cf.br", "cf.cond_br", "tt.return", "tt.load",
    "tt.reduce", "tt.scan", "tt.reduce.return", "tt.scan.return", "arith.constant",
)  # fmt: skip


# ---- words -----------------------------------------------------------------------------------------------------------


def short(name: str) -> str:
    """addf of arith.addf."""
    return name.split(".")[-1]


def show(op: Op) -> str:
    """subi(%M, %first)."""
    return f"{short(op.name)}({', '.join(map(name_of, op.operands))})"


def name_of(v: Value) -> str:
    """A constant's number, the name of any other value."""
    number = constant_of(v)
    return v.name if number is None else "[...]" if isinstance(number, np.ndarray) else f"{number:g}"


# ---- operands --------------------------------------------------------------------------------------------------------


def put(op: Op, k: int, v: Value) -> None:
    op.operands[k] = v


def put_constant(e: Editor, op: Op, k: int, number: Any) -> None:
    put(op, k, e.constant(op, op.operands[k].type, number))


def put_moved(e: Editor, op: Op, k: int, delta: int) -> None:
    """Operand k plus delta."""
    v = op.operands[k]
    by = e.constant(op, v.type, abs(delta))
    put(op, k, e.before(op, "arith.addi" if delta > 0 else "arith.subi", (v, by), v.type, overflowFlags="none"))


def is_number(t: Type) -> bool:
    return t.is_float or (t.is_int and t.bits > 1)


def other_numbers(op: Op, k: int) -> Iterator[tuple[str, Any]]:
    """Constants that somebody could have written instead of operand k; divisors stay positive."""
    number, t = constant_of(op.operands[k]), op.operands[k].type
    if number is None or not is_number(t):
        return
    if not t.is_float:
        yield "+1", number + 1
        least = 0 if op.name in SHIFTS else 1 if op.name in DIVISIONS and k == 1 else -math.inf
        if np.min(number) - 1 >= least:
            yield "-1", number - 1
    elif isinstance(number, np.ndarray) or (math.isfinite(number) and number != 0):
        yield "*1.5", number * 1.5
    elif number == 0:
        yield "0 -> 1", 1.0
    elif not math.isnan(number):
        yield "inf -> 0", 0.0


def constant_changed(op: Op, e: Editor) -> Iterator[Variant]:
    for k, v in enumerate(op.operands if op.name not in APART else ()):
        for key, new in other_numbers(op, k):
            text = f"{name_of(v)} in {show(op)} becomes {'others' if isinstance(new, np.ndarray) else f'{new:g}'}"
            yield Variant(f"operand {k} {key}", text, partial(put_constant, e, op, k, new))


def parameters_in(op: Op, e: Editor, pointers: bool) -> Iterator[tuple[int, Value, Function]]:
    """Operands that are parameters of the function: pointers, or numbers."""
    f = e.function_of[op]
    for k, v in enumerate(op.operands if op.name != "scf.yield" else ()):
        if any(v is a for a in f.args) and (v.type.element == "ptr" if pointers else is_number(v.type)):
            yield k, v, f


def size_off_by_one(op: Op, e: Editor) -> Iterator[Variant]:
    for k, v, _ in parameters_in(op, e, pointers=False):
        for delta in (1, -1) if v.type.is_int else ():
            text = f"{v.name} in {show(op)} becomes {v.name} {delta:+}"
            yield Variant(f"operand {k} {delta:+}", text, partial(put_moved, e, op, k, delta))


def parameter_exchanged(pointers: bool) -> Slip:
    """A parameter becomes the next or the previous one of its type."""

    def variants(op: Op, e: Editor) -> Iterator[Variant]:
        for k, v, f in parameters_in(op, e, pointers):
            alike = [a for a in f.args if a.type.text == v.type.text]
            at = next(i for i, a in enumerate(alike) if a is v)
            for w in dict.fromkeys((alike[(at + 1) % len(alike)], alike[at - 1])):
                if w is not v:
                    text = f"{v.name} in {show(op)} becomes {w.name}"
                    yield Variant(f"operand {k} {w.name}", text, partial(put, op, k, w))

    return variants


def program_off_by_one(op: Op, e: Editor) -> Iterator[Variant]:
    for k, v in enumerate(op.operands):
        if isinstance(v.owner, Op) and v.owner.name == "tt.get_program_id":
            text = f"program id {v.owner.attrs['axis']} in {show(op)} becomes that of the next program"
            yield Variant(f"operand {k} +1", text, partial(put_moved, e, op, k, 1))


def operands_swapped(places: dict[str, tuple[int, int]]) -> Slip:
    def variants(op: Op, e: Editor) -> Iterator[Variant]:
        i, j = places[op.name]
        a, b = op.operands[i], op.operands[j]
        if a is not b and a.type.text == b.type.text:
            text = f"{show(op)} with {name_of(a)} and {name_of(b)} exchanged"
            yield Variant(f"{i} <-> {j}", text, partial(exchange, op, i, j))

    return variants


def exchange(op: Op, i: int, j: int) -> None:
    op.operands[i], op.operands[j] = op.operands[j], op.operands[i]


# ---- what the operation is -------------------------------------------------------------------------------------------


def renamed(op: Op, name: str) -> None:
    op.name = name if "." in name else ARITH + name


def operation_replaced(table: dict[str, tuple[str, ...]], combiner: bool = False) -> Slip:
    """Another operation of the same types."""

    def variants(op: Op, e: Editor) -> Iterator[Variant]:
        around = e.around(op)
        if combiner and (around is None or around.name not in ("tt.reduce", "tt.scan")):
            return
        for new in table[op.name.removeprefix(ARITH)]:
            if op.results[0].type.element != "i1" or new in ("andi", "ori", "xori"):
                yield Variant(new, f"{show(op)} becomes {short(new)}", partial(renamed, op, new))

    return variants


def comparison_changed(table: dict[str, str]) -> Slip:
    """s, u, o in front of a predicate stay."""

    def variants(op: Op, e: Editor) -> Iterator[Variant]:
        old = str(op.attrs["predicate"])
        core = old if old in ("eq", "ne") else old[1:]
        if core in table and (op.operands[0].type.element != "i1" or core in ("eq", "ne")):
            new = old[: len(old) - len(core)] + table[core]
            text = f"{old}({', '.join(map(name_of, op.operands))}) becomes {new}"
            yield Variant(core, text, partial(op.attrs.update, predicate=new))

    return variants


def sign_of_cast(table: dict[str, str]) -> Slip:
    def variants(op: Op, e: Editor) -> Iterator[Variant]:
        yield Variant("sign", f"{show(op)} becomes {short(table[op.name])}", partial(renamed, op, table[op.name]))

    return variants


def is_rescale(op: Op, e: Editor) -> bool:
    """A product inside a loop, one factor of which is a loop variable."""
    loop = e.enclosing(op, "scf.for")
    carried = loop.regions[0].blocks[0].args[1:] if loop is not None else []
    return op.name == "arith.mulf" and any(v is a for v in op.operands for a in carried)


def operation_dropped(rescale: bool) -> Slip:
    """The result is one of the operands."""

    def variants(op: Op, e: Editor) -> Iterator[Variant]:
        if len(op.results) != 1 or op.regions or is_rescale(op, e) is not rescale:
            return
        for k, v in enumerate(op.operands):
            if v.type.text == op.results[0].type.text and v not in op.operands[:k]:
                yield Variant(f"keeps {k}", f"{show(op)} becomes {name_of(v)}", partial(bypass, e, op, v))

    return variants


def bypass(e: Editor, op: Op, v: Value) -> None:
    """`v` in place of the result of `op`."""
    e.replace(op.results[0], v)
    e.remove(op)


def program_axis(op: Op, e: Editor) -> Iterator[Variant]:
    old = op.attrs["axis"]
    for new in {0: (1,), 1: (0, 2), 2: (1,)}.get(old, ()):
        yield Variant(f"axis {new}", f"{short(op.name)} {old} becomes {new}", partial(op.attrs.update, axis=new))


def reduced_axis(op: Op, e: Editor) -> Iterator[Variant]:
    """Any axis of a scan; of a reduction one as long as the right one."""
    shape, old = op.operands[0].type.shape, op.attrs["axis"]
    for new in range(len(shape)):
        if new != old and (op.name == "tt.scan" or shape[new] == shape[old]):
            text = f"{short(op.name)} over axis {old} becomes axis {new}"
            yield Variant(f"axis {new}", text, partial(op.attrs.update, axis=new))


def scan_reversed(op: Op, e: Editor) -> Iterator[Variant]:
    was = bool(op.attrs.get("reverse", False))
    text = f"scan from the {'start' if was else 'end'}"
    yield Variant("reverse", text, partial(op.attrs.update, reverse=not was))


def range_shifted(op: Op, e: Editor) -> Iterator[Variant]:
    a, b = op.attrs["start"], op.attrs["end"]
    text = f"arange({a}, {b}) becomes arange({a + 1}, {b + 1})"
    yield Variant("+1", text, partial(op.attrs.update, start=a + 1, end=b + 1))


def transposed(op: Op, e: Editor) -> Iterator[Variant]:
    """A square operand of a product transposed; the transposition of a square tensor left out."""
    if op.name == "tt.trans":
        order = list(op.attrs["order"])
        if op.operands[0].type.shape == op.results[0].type.shape and order != sorted(order):
            yield Variant("dropped", f"{show(op)} left out", partial(bypass, e, op, op.operands[0]))
        return
    for k, v in enumerate(op.operands[:2]):
        if v.type.shape[-1] == v.type.shape[-2]:
            yield Variant(f"operand {k}", f"{v.name} in {show(op)} transposed", partial(put_transposed, e, op, k))


def put_transposed(e: Editor, op: Op, k: int) -> None:
    v, rank = op.operands[k], len(op.operands[k].type.shape)
    put(op, k, e.before(op, "tt.trans", (v,), v.type, order=(*range(rank - 2), rank - 1, rank - 2)))


def accumulator_lost(op: Op, e: Editor) -> Iterator[Variant]:
    if constant_of(op.operands[2]) != 0:
        yield Variant("operand 2", f"{show(op)} starts from 0", partial(put_constant, e, op, 2, 0))


def extension_dropped(op: Op, e: Editor) -> Iterator[Variant]:
    """64-bit arithmetic on an extended i32 done in i32, and extended afterwards."""
    sources = [v.owner for v in op.operands if isinstance(v.owner, Op) and v.owner.name == "arith.extsi"]
    if op.results[0].type.element == "i64" and any(o.operands[0].type.element == "i32" for o in sources):
        yield Variant("i32", f"{show(op)} in i32", partial(narrow, e, op))


def narrow(e: Editor, op: Op) -> None:
    t = op.results[0].type
    low = replace(t, element="i32", text=t.text.replace("i64", "i32"))
    parts = [e.before(op, "arith.trunci", (v,), low) for v in op.operands]
    bypass(e, op, e.before(op, "arith.extsi", (e.before(op, op.name, parts, low, **op.attrs),), t))

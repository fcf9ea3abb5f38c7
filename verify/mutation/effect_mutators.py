"""Slips in memory and control flow: masks, stores, atomics, loops, conditions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from trilift.lift.ttir.ir import Op, Type, Value

from .editor import Editor, backward_slice
from .value_mutators import Slip, Variant, exchange, name_of, other_numbers, put, put_constant, short, show

# ---- memory ----------------------------------------------------------------------------------------------------------


def mask_of(op: Op) -> int | None:
    """Which operand is the mask."""
    if op.name == "tt.load":
        present = op.attrs.get("operandSegmentSizes", (1,) * len(op.operands))
        return 1 if len(present) > 1 and present[1] else None
    return 2 if len(op.operands) > 2 else None


def mask_dropped(op: Op, e: Editor) -> Iterator[Variant]:
    k = mask_of(op)
    if k is not None:
        text = f"{short(op.name)} at {op.operands[0].name} without the mask {op.operands[k].name}"
        yield Variant("dropped", text, partial(cut, op, k))


def cut(op: Op, k: int) -> None:
    """Operands from k on left out."""
    del op.operands[k:]
    if op.name == "tt.load":
        op.attrs["operandSegmentSizes"] = (1, int(k > 1), 0)


def other_changed(op: Op, e: Editor) -> Iterator[Variant]:
    if mask_of(op) is None or len(op.operands) < 3:
        return
    text = f"load with other={name_of(op.operands[2])}"
    yield Variant("dropped", f"{text} without it", partial(cut, op, 2))
    for key, new in other_numbers(op, 2):
        yield Variant(key, f"{text} {key}", partial(put_constant, e, op, 2, new))


def unused(op: Op, e: Editor) -> bool:
    return not any(e.is_used(r) for r in op.results)


def store_dropped(op: Op, e: Editor) -> Iterator[Variant]:
    if unused(op, e):
        yield Variant("dropped", f"no {short(op.name)} at {op.operands[0].name}", partial(e.remove, op))


def stored_twice(op: Op, e: Editor) -> Iterator[Variant]:
    """The same again one element further; an atomic operation again at the same place."""
    if op.name == "tt.store":
        yield Variant("+1", f"stored at {op.operands[0].name} + 1 as well", partial(store_further, e, op))
    elif unused(op, e):
        again = partial(e.after, op, op.name, op.operands, op.results[0].type, **op.attrs)
        yield Variant("again", f"{show(op)} twice", again)


def store_further(e: Editor, op: Op) -> None:
    pointer = op.operands[0]
    one = e.constant(op, offsets_of(pointer.type), 1)
    further = e.before(op, "tt.addptr", (pointer, one), pointer.type)
    e.after(op, "tt.store", (further, *op.operands[1:]), None, **op.attrs)


def offsets_of(t: Type) -> Type:
    """i32 in the shape of a pointer."""
    text = "tensor<" + "".join(f"{n}x" for n in t.shape) + "i32>" if t.shape else "i32"
    return Type("i32", t.shape, None, text)


def is_program_id(op: Op) -> bool:
    return op.name == "tt.get_program_id"


def stored_next_door(op: Op, e: Editor) -> Iterator[Variant]:
    """The address computed for the next program; value and mask stay."""
    for pid in filter(is_program_id, backward_slice(op.operands[0], is_program_id)):
        axis = pid.attrs["axis"]
        yield Variant(f"axis {axis}", f"stored where program id {axis} + 1 stores", partial(store_next, e, op, pid))


def store_next(e: Editor, op: Op, pid: Op) -> None:
    new: dict[Value, Value] = {}
    for o in backward_slice(op.operands[0], lambda o: o is pid):
        t, operands = o.results[0].type, [new.get(v, v) for v in o.operands]
        if o is pid:
            new[o.results[0]] = e.before(op, "arith.addi", (o.results[0], e.constant(op, t, 1)), t)
        else:
            new[o.results[0]] = e.before(op, o.name, operands, t, **o.attrs)
    put(op, 0, new[op.operands[0]])


def atomic_to_store(op: Op, e: Editor) -> Iterator[Variant]:
    if op.attrs["atomic_rmw_op"] in ("add", "fadd") and unused(op, e):
        yield Variant("store", f"{show(op)} becomes a store", partial(as_store, e, op))


def as_store(e: Editor, op: Op) -> None:
    e.before(op, "tt.store", op.operands, None)
    e.remove(op)


def atomic_replaced(table: dict[str, tuple[str, ...]]) -> Slip:
    def variants(op: Op, e: Editor) -> Iterator[Variant]:
        old = op.attrs["atomic_rmw_op"]
        for new in table.get(old, ()):
            yield Variant(new, f"atomic {old} becomes {new}", partial(op.attrs.update, atomic_rmw_op=new))

    return variants


# ---- control flow ----------------------------------------------------------------------------------------------------


def header(op: Op) -> str:
    low, high, step = map(name_of, op.operands[:3])
    return f"for {low} .. {high} by {step}"


def bound_moved(k: int, how: str, what: str) -> Slip:
    """A loop bound moved by one step."""

    def variants(op: Op, e: Editor) -> Iterator[Variant]:
        yield Variant(what, f"{header(op)}: {what}", partial(move_bound, e, op, k, how))

    return variants


def move_bound(e: Editor, op: Op, k: int, how: str) -> None:
    v = op.operands[k]
    put(op, k, e.before(op, how, (v, op.operands[2]), v.type, overflowFlags="none"))


step_doubled = bound_moved(2, "arith.addi", "two steps at once")


def initial_value(op: Op, e: Editor) -> Iterator[Variant]:
    """The start of a loop variable."""
    for k in range(3, len(op.operands)):
        for key, new in other_numbers(op, k):
            text = f"{op.results[k - 3].name} starts from {name_of(op.operands[k])} {key}"
            yield Variant(f"operand {k} {key}", text, partial(put_constant, e, op, k, new))


def not_carried(op: Op, e: Editor) -> Iterator[Variant]:
    """A loop variable that stays what it was."""
    around = e.around(op)
    own = e.block_of[op].args[1:] if around is not None and around.name == "scf.for" else []
    for k, (v, a) in enumerate(zip(op.operands, own, strict=False)):
        if v is not a:
            yield Variant(f"operand {k}", f"{a.name} stays what it was", partial(put, op, k, a))


def carried_crosswise(op: Op, e: Editor) -> Iterator[Variant]:
    """Two loop variables of one type exchanged, or two results of a branch."""
    for k in range(len(op.operands) - 1):
        a, b = op.operands[k : k + 2]
        if a is not b and a.type.text == b.type.text:
            yield Variant(f"{k} <-> {k + 1}", f"{a.name} and {b.name} exchanged", partial(exchange, op, k, k + 1))


def condition_changed(op: Op, e: Editor) -> Iterator[Variant]:
    name = op.operands[0].name
    yield Variant("negated", f"condition {name} negated", partial(negate, e, op))
    if op.name != "scf.condition":
        yield Variant("always", f"condition {name} taken as true", partial(put_constant, e, op, 0, True))


def negate(e: Editor, op: Op) -> None:
    v = op.operands[0]
    put(op, 0, e.before(op, "arith.xori", (v, e.constant(op, v.type, True)), v.type))

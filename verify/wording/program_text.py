"""A program as text: one line per loop variable, access, condition. The same program gives the same text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.term import COMMUTATIVE, Axis, Term

from ..execution.tile import generic, terms
from ..model.program import Carry, Loop, Program

SIGN = Domain("program text", missing="call", says="its sign between arguments in the text of a program")
SIGN.fill({"add": " + ", "mul": " * ", "and": " & ", "or": " | ", "lt": " < ", "le": " <= ", "eq": " = ", "ne": " != ",
           "floordiv": " // ", "mod": " % "})  # fmt: skip


def listing(program: Program) -> str:
    """The text, with a final newline."""
    return "\n".join(_lines(program)) + "\n"


def _lines(p: Program) -> Iterator[str]:
    yield f"program {p.module.entry.name} grid {', '.join(map(text, p.grid))}"
    for loop in p.loops:
        outer = "".join(f" in {o.counter.name}" for o in loop.outer)
        condition = f", while {text(loop.condition)}" if loop.condition else ""
        start = f"from {text(loop.lower)} by {text(loop.step)}{condition}{_under(loop.guard)}"
        yield f"loop {loop.counter.name}{outer}: trips {text(loop.trips)}, {start}"
        for c in loop.carries:
            yield from _carry(c)
    for a in p.accesses:
        value = "" if a.value is None else f" <- {text(a.value)}" if a.kind != "load" else ""
        yield f"{a.order} {a.kind} {text(a.pointer)}{value}{_for(a.lanes, a.loops)}{_under(a.guard)}"
    for r in p.arithmetic:
        yield f"{r.kind} {r.bits}: {text(r.term)}{_for(r.lanes, r.loops)}{_under(r.guard)}"
    for goal, op in p.asserts:
        yield f"{op.name}: {text(goal)}"
    for op in p.unsupported:
        yield f"unsupported {op.name}"


def _carry(c: Carry) -> Iterator[str]:
    lanes = terms(generic(c.type.shape))
    yield f"  {c.name}({', '.join(map(text, lanes))}): {text(c.init(lanes))}"
    yield f"    then {text(c.next(lanes))}"


def _for(lanes: Iterable[Axis], loops: Iterable[Loop]) -> str:
    axes = [*(loop.counter.name for loop in loops), *(f"{a.name} < {text(a.size)}" for a in lanes)]
    return f" for {', '.join(axes)}" if axes else ""


def _under(guard: Term) -> str:
    return "" if guard.is_const and guard.attr else f" if {text(guard)}"


def text(t: Term) -> str:
    """A term, its commutative arguments in the order of their texts."""
    if not t.args or t.op == "read":
        return f"{t.attr}[{', '.join(map(text, t.args))}]" if t.args else repr(t)
    parts = [text(a) for a in t.args]
    if t.op in COMMUTATIVE:
        parts.sort()
    if (sign := SIGN.rows.get(t.op)) is not None:
        return f"({sign.join(parts)})"
    if t.op == "pointer":
        return f"{t.attr} + {parts[0]}"
    head = t.attr.name if t.op == "carry" else t.op
    if isinstance(t.attr, Axis):
        parts.insert(0, f"{t.attr.name} < {text(t.attr.size)}")
    return f"{head}({', '.join(parts)})"

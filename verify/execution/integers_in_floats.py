"""The float operations of a kernel through which integers pass on their way to integers, truth values and indices.

    x.to(f32) ... .to(i32)        x.to(f32) < y.to(f32)        floor(x.to(f32))        argmax of counts in f32

`follow` adds the kernel to a `Flow`, whose numbers are SSA values and memory; `lift.terms.exactness` says which
operations have to be exact, and in how many bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

import numpy as np

from trilift.lift.interpreter.interpret import TERMINATORS
from trilift.lift.terms.exactness import DIGITS, SIZED, TF32_DIGITS, Flow
from trilift.lift.terms.term import INT, REAL, Term
from trilift.lift.ttir.ir import Block, Module, Op, Value
from trilift.lift.ttir.written_constants import is_step

MOVES = {
    "tt.splat", "tt.unsplat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.split", "tt.join",
    "tt.cat", "ttg.convert_layout", "tt.fp_to_fp", "arith.extf", "tt.clampf",
}  # fmt: skip
ROWS: Mapping[str, str] = {
    **dict.fromkeys(MOVES, "same"), "tt.fp_to_fp": "cast", "arith.truncf": "cast", "arith.addf": "add",
    "arith.subf": "sub", "arith.mulf": "mul", "arith.negf": "neg", "math.absf": "abs", "arith.divf": "div",
    "tt.precise_divf": "div",
    **dict.fromkeys(("arith.maxnumf", "arith.maximumf"), "max"), "arith.minnumf": "same", "arith.minimumf": "same",
    **dict.fromkeys(("math.floor", "math.ceil", "math.trunc", "math.roundeven", "math.round"), "whole"),
}  # fmt: skip
SOURCES = {"arith.sitofp": "convert", "arith.uitofp": "count", "trilift.random": "data", "ub.poison": "data"}
ROWS = {**ROWS, **SOURCES, "math.fma": "dot"}
SAME_POINTER = {
    "tt.addptr", "tt.splat", "tt.unsplat", "tt.broadcast", "tt.expand_dims", "tt.bitcast", "tt.reshape", "tt.trans",
    "tt.advance", "tt.gather",
}  # fmt: skip
FOLDS = {"tt.reduce", "tt.scan"}
REAL_DATA = {"scalar", "read", "undef", "opaque"}


def follow(
    flow: Flow,
    module: Module,
    held: Mapping[Value, Hashable],
    passed: Mapping[Value, Term],
    narrowed: Collection[Value] = (),
) -> None:
    """Adds the numbers of a kernel. `held`: the key of the memory behind each pointer argument; `passed`: the values of
    the others, of which those `narrowed` are rounded where they are passed."""
    _Kernel(flow, module, held, passed, narrowed).add()


class _Kernel:
    """One module on its way into a flow. `tags`: the operation that is marked, of those inside a reduction."""

    def __init__(
        self,
        flow: Flow,
        module: Module,
        held: Mapping[Value, Hashable],
        passed: Mapping[Value, Term],
        narrowed: Collection[Value],
    ) -> None:
        self.flow, self.module, self.held, self.passed, self.narrowed = flow, module, held, passed, narrowed
        self.ways = list(_ways(module))
        self.tags = {o: op for op in module.walk() if op.name in FOLDS for r in op.regions for o in r.walk()}
        self.places = self.pointers()

    def pointers(self) -> dict[Value, set[Hashable]]:
        """Pointer values and the memory that they may point to; any where that is not known."""
        found: dict[Value, set[Hashable]] = {v: {k} for v, k in self.held.items()}
        moved = [(r, v) for op in self.module.walk() if op.name in SAME_POINTER or op.name == "arith.select"
                 for r in op.results for v in op.operands if _is_pointer(r) and _is_pointer(v)]  # fmt: skip
        for op in self.module.walk():
            if op.name not in SAME_POINTER and op.name != "arith.select" and not op.regions:
                found |= {r: set(self.held.values()) for r in op.results if _is_pointer(r)}
        changed = True
        while changed:
            changed = False
            for to, source in (*moved, *((a, b) for a, b in self.ways if _is_pointer(a))):
                new = found.get(source, set()) - found.setdefault(to, set())
                changed = changed or bool(new)
                found[to] |= new
        return found

    def add(self) -> None:
        """Every way in which a float is made, and every place where one is read as something else."""
        for v in self.module.entry.args:
            if v.type.is_float:
                self.argument(v, self.passed.get(v))
        for to, source in self.ways:
            if to.type.is_float:
                self.flow.step(to, "same", [source])
        for op in self.module.walk():
            if op.name not in TERMINATORS and not _has_ways(op):
                self.operation(op)

    def argument(self, v: Value, passed: Term | None) -> None:
        """A number that the host function passes: real data, one that is known, an integer, or one made of sizes."""
        digits = DIGITS.get(v.type.element, 0)
        if v in self.narrowed:
            self.flow.step(("passed", v), "data")
            return self.flow.step(v, "narrow", [("passed", v)], digits, v)
        if passed is not None and passed.is_const:
            return self.flow.number(v, float(passed.attr), digits, v)
        of_data = passed is None or any(s.op in REAL_DATA and s.type == REAL for s in passed.walk())
        return self.flow.step(v, "data" if of_data or passed is None else _of_sizes(passed), (), digits, v)

    def operation(self, op: Op) -> None:
        """One operation: its results, and its operands where it reads numbers."""
        floats = [v for v in op.operands if v.type.is_float]
        for r in op.results:
            if r.type.is_float:
                self.result(op, r, floats)
        self.writes(op)
        if op.name in ("tt.store", "tt.load", "tt.atomic_rmw", "tt.atomic_cas") or not floats:
            return
        if op.name == "arith.cmpf":
            a, b = op.operands
            self.flow.sink(a, b)
            self.flow.sink(b, a)
        elif any(r.type.is_int for r in op.results) or ROWS.get(op.name) == "whole" or is_step(op):
            for v in floats:
                self.flow.sink(v)

    def writes(self, op: Op) -> None:
        """A store is a way to make what memory holds; sums of atomics are of unknown digits."""
        values = [v for v in op.operands[1:] if v.type.is_float]
        if op.name not in ("tt.store", "tt.atomic_rmw", "tt.atomic_cas") or not values:
            return
        added = op.name == "tt.atomic_rmw" and "add" in str(op.attrs.get("atomic_rmw_op", ""))
        for key in self.places.get(op.operands[0], ()):
            if added:
                self.flow.step(key, "atomic", values, tag=op)
            else:
                self.flow.step(key, "same", values)

    def result(self, op: Op, r: Value, floats: Sequence[Value]) -> None:
        """How one float is made."""
        digits, tag = DIGITS.get(r.type.element, 0), self.tags.get(op, op)
        step = lambda rule, inputs=(): self.flow.step(r, rule, inputs, digits, tag)  # noqa: E731
        match op.name:
            case "arith.constant":
                self.constant(op, r)
            case "tt.dot":
                self.dot(op, r)
            case "tt.load" | "tt.atomic_rmw" | "tt.atomic_cas":
                step("same", [*self.places.get(op.operands[0], ()), *(floats if op.name == "tt.load" else ())])
            case "arith.select":
                step("same", op.operands[1:])
            case "tt.gather":
                step("same", op.operands[:1])
            case "tt.bitcast" | "arith.bitcast" if floats:
                step("same", floats)
            case _ if op.name in ROWS:
                narrower = ROWS[op.name] == "cast" and digits < DIGITS.get(floats[0].type.element, 0)
                step("narrow" if narrower else ROWS[op.name], floats)
            case _:
                step("whole" if is_step(op) else "opaque" if floats else "bits", floats)

    def constant(self, op: Op, r: Value) -> None:
        value = op.attrs["value"]
        if isinstance(value, Term):
            return self.flow.step(r, _of_sizes(value), (), DIGITS.get(r.type.element, 0), op)
        numbers = np.unique(np.asarray(value, np.float64))
        if numbers.size > 1:
            return self.flow.step(r, "given")
        return self.flow.step(r, "same", number=float(numbers[0]))

    def dot(self, op: Op, r: Value) -> None:
        """The operands of a product in tf32 lose digits first."""
        of_type = op.operands[0].type.element
        rounded = of_type == "f32" and op.attrs.get("inputPrecision") == "tf32"
        digits = TF32_DIGITS if rounded else DIGITS.get(of_type, 0)
        parts = []
        for k, v in enumerate(op.operands[:2]):
            self.flow.step((op, k), "narrow" if rounded else "cast", [v], digits, (op, k))
            parts.append((op, k))
        self.flow.step(r, "dot", [*parts, *op.operands[2:3]], DIGITS.get(r.type.element, 0), op)


def _of_sizes(t: Term) -> str:
    """The rule of a number that the host function makes of sizes and integers."""
    if t.type == INT:
        return "convert"
    bounds = _exponents(t)
    return "sized" if bounds is not None and bounds[0] <= SIZED else "bits"


def _exponents(t: Term) -> tuple[int, int] | None:
    """(a, b), where the number is 0 or 2^-a <= |x| <= 2^b; None where that is not known."""
    if t.is_const:
        e = math.frexp(float(t.attr))[1]
        return (1 - e, e)
    if t.type == INT:
        return (0, 63)
    parts = [_exponents(a) for a in t.args]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts) or t.op not in ("mul", "recip", "sqrt", "neg", "abs"):
        return None
    least, most = (sum(p[k] for p in known) for k in (0, 1))
    if t.op == "sqrt":
        return (-(-least // 2), -(-most // 2))
    return (most, least) if t.op == "recip" else (least, most)


def _is_pointer(v: Value) -> bool:
    return v.type.element == "ptr"


def _has_ways(op: Op) -> bool:
    """Whether the results of an operation come out of its regions, or of a function."""
    return op.name in FOLDS or op.name.startswith("scf.") or op.name == "tt.call"


def _last(block: Block) -> Sequence[Value]:
    """The operands of the terminator of a block."""
    return block.ops[-1].operands if block.ops and block.ops[-1].name in TERMINATORS else ()


def _ways(module: Module) -> Iterator[tuple[Value, Value]]:
    """(value, another that it may be), through loops, branches, reductions and calls."""
    for op in module.walk():
        if op.name in _WAYS:
            yield from _WAYS[op.name](module, op)
    for f in module.functions.values():
        labels = {b.label: b for b in f.body.blocks}
        for block in f.body.blocks:
            for label, values in block.ops[-1].successors if block.ops else ():
                yield from zip(labels[label].args, values, strict=False)


Ways = Iterator[tuple[Value, Value]]


def _for(_: Module, op: Op) -> Ways:
    body = op.regions[0].blocks[0]
    for k, init in enumerate(op.operands[3:]):
        for source in (init, _last(body)[k]):
            yield body.args[k + 1], source
            yield op.results[k], source


def _while(_: Module, op: Op) -> Ways:
    before, after = (r.blocks[0] for r in op.regions)
    for k, init in enumerate(op.operands):
        yield before.args[k], init
        yield before.args[k], _last(after)[k]
    for k, passed in enumerate(_last(before)[1:]):
        yield after.args[k], passed
        yield op.results[k], passed


def _if(_: Module, op: Op) -> Ways:
    for region in op.regions:
        for block in region.blocks:
            yield from zip(op.results, _last(block), strict=False)


def _call(module: Module, op: Op) -> Ways:
    callee = module.functions[op.attrs["callee"].lstrip("@")]
    yield from zip(callee.args, op.operands, strict=False)
    for inner in callee.body.walk():
        if inner.name == "tt.return":
            yield from zip(op.results, inner.operands, strict=False)


def _fold(_: Module, op: Op) -> Ways:
    body, n = op.regions[0].blocks[0], len(op.operands)
    for k, (operand, out) in enumerate(zip(op.operands, _last(body), strict=False)):
        for source in (operand, out):
            yield body.args[k], source
            yield body.args[n + k], source
        yield op.results[k], out


_WAYS: Mapping[str, Callable[[Module, Op], Ways]] = {
    "scf.for": _for, "scf.while": _while, "scf.if": _if, "tt.call": _call, **dict.fromkeys(FOLDS, _fold),
}  # fmt: skip

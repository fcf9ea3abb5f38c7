"""Parametric execution: what one launch does, for every program, lane and iteration at once (`verify.model.program`).

Every SSA value becomes a tile, a function of lanes (`verify.execution.tile`). The body of a loop is walked once:

    for i in range(lo, hi, step): x = f(x)      x is carry(n) in the body, i is lo + n * step, and after it carry(trips)
                                                carry(0) = init, carry(n + 1) = next(carry(n)), which is f
    while c(x): x = f(y(x))                     the same with `trips` a symbol; the result is y(carry(trips))
    if c: A else: B                             A under path & c, B under path & ~c; results where(c, A, B)

The memory of an entry argument is named as the argument, without %. Pointer variables whose base does not change are
carried as their offsets, integers of 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from trilift.lift.errors import TriliftError, Unsupported
from trilift.lift.interpreter import random_numbers
from trilift.lift.interpreter.interpret import TERMINATORS
from trilift.lift.runtime.recursion import deep
from trilift.lift.terms import construct as T
from trilift.lift.terms.exactness import Marks
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Block, Function, Module, Op, Region, Type, Value, users

from ..model.program import PIDS, POINTER, Access, Arithmetic, Barrier, Carry, Loop, Program, pointer, term_type
from . import tile
from .bit_order import joined
from .elements import TRUTHS, Elements, TooLarge, certain, conditions, is_elementwise
from .hints import condition, hinted
from .indexing import Extent
from .intervals import Intervals
from .operations import HANDLERS, on_pointers
from .tile import Tile, at_offset, base, constant, generic, offset, pointwise, scalar, select, signed, terms

TRUE = T.const(True)
SERIAL = count()  # of values that nothing is known of


def execute(
    module: Module,
    operands: Sequence[Any],
    grid: tuple[Term, Term, Term],
    facts: Iterable[Term] = (),
    dtypes: Mapping[str, str] | None = None,
    exact: Marks | None = None,
) -> Program:
    """The program of a launch. `operands`: in the order of module.entry.args, a term for a number; what stands at a
    pointer is not looked at (but None is not known to be memory): its memory has the argument's name. `facts` hold at
    every launch and let signs be known. `dtypes` names the dtype of the memory of pointer arguments ("u8", "bool"): an
    integer read is a number of the dtype, without one the signed number (of 8 and 16 bits: any congruent to it).
    `exact`: float operations through which integers pass, and in how many bits they must fit
    (`verify.execution.integers_in_floats`).

    Raises Unsupported, with the place, where the control flow cannot be followed or the terms grow beyond bounds."""
    module = random_numbers.named(module)
    with deep():
        return Execution(module, operands, grid, facts, dtypes or {}, exact or {}).program()


class Execution:
    """One walk over a module. `env`: the tiles of SSA values; `path`: the condition under which the walk is here."""

    def __init__(
        self,
        module: Module,
        operands: Sequence[Any],
        grid: tuple[Term, Term, Term],
        facts: Iterable[Term],
        dtypes: Mapping[str, str],
        exact: Marks,
    ) -> None:
        self.module, self.grid, self.exact = module, grid, exact
        self.dtypes = {n.removeprefix("%"): d for n, d in dtypes.items() if d == "bool" or d[0] in "iu"}
        self.ranges = Intervals(facts, grid, {})
        self.elements = Elements(module, self.ranges)
        self.env: dict[Value, Tile] = {}
        self.path: Term = TRUE
        self.loops: tuple[Loop, ...] = ()
        self.order = self.folds = 0
        self.accesses: list[Access] = []
        self.barriers: list[Barrier] = []
        self.all_loops: list[Loop] = []
        self.arithmetic: dict[tuple[Any, ...], Arithmetic] = {}
        self.asserts: list[tuple[Term, Op]] = []
        self.unsupported: dict[Op, None] = {}
        self.bases = {_name(v): v.type for v in module.entry.args if v.type.element == "ptr"}
        self.present = {_name(v) for v, x in zip(module.entry.args, operands, strict=True) if x is not None}
        self.arguments = [_operand(v, x) for v, x in zip(module.entry.args, operands, strict=True)]

    def program(self) -> Program:
        self.oblige_arguments()
        self.call(self.module.entry, self.arguments)
        accesses, understood = joined(self.accesses, {n: t.pointee for n, t in self.bases.items() if t.pointee})
        return Program(
            self.module,
            self.grid,
            tuple(accesses),
            tuple(self.all_loops),
            tuple(self.arithmetic.values()),
            tuple(self.asserts),
            tuple(op for op in self.unsupported if op not in understood),
            tuple(self.barriers),
        )

    # ---- functions and blocks

    def call(self, function: Function, args: Sequence[Tile]) -> list[Tile]:
        """The results of a function, in its own scope."""
        outer, self.env = self.env, {}
        try:
            return self.graph(function.body, args)
        finally:
            self.env = outer

    def graph(self, body: Region, args: Sequence[Tile]) -> list[Tile]:
        """Run the blocks of an acyclic control-flow graph, each once, under the condition of reaching it."""
        outer = self.path
        arrivals: dict[str, list[tuple[Term, list[Tile]]]] = {body.blocks[0].label: [(TRUE, list(args))]}
        results: list[tuple[Term, list[Tile]]] = []
        for block in ordered(body):
            reached = arrivals.get(block.label, [])
            here = T.make("or", *(c for c, _ in reached)) if len(reached) > 1 else reached[0][0]
            self.path = T.make("and", outer, here)
            last = self.block(block, merged(reached, [v.type for v in block.args]))
            if last is None or not last.successors:
                results.append((here, [self.env[v] for v in last.operands] if last else []))
                continue
            for (label, values), c in zip(last.successors, self.branches(last), strict=True):
                arrivals.setdefault(label, []).append((T.make("and", here, c), [self.env[v] for v in values]))
        self.path = outer
        return merged(results, [x.type for x in results[0][1]]) if results else []

    def branches(self, last: Op) -> list[Term]:
        """The conditions of the successors of a terminator."""
        if last.name == "cf.br":
            return [TRUE]
        if last.name != "cf.cond_br":
            raise Unsupported(last.name, last.place)
        c = self.env[last.operands[0]].at()
        return [c, T.make("not", c)]

    def block(self, block: Block, args: Sequence[Tile]) -> Op | None:
        """Run a block; its terminator."""
        for value, x in zip(block.args, args, strict=True):
            self.env[value] = x
        for op in block.ops:
            if op.name in TERMINATORS:
                return op
            self.step(op)
        return None

    def region(self, region: Region, args: Sequence[Tile]) -> list[Tile]:
        """The operands of the terminator of a region, which has one block."""
        if not region.blocks:
            return []
        if len(region.blocks) > 1:
            raise Unsupported("a region of several blocks", region.blocks[0].ops[0].place)
        last = self.block(region.blocks[0], args)
        return [self.env[v] for v in last.operands] if last else []

    def under(self, condition: Term, region: Region) -> list[Tile]:
        """A region under a condition."""
        outer, self.path = self.path, T.make("and", self.path, condition)
        try:
            return self.region(region, ())
        finally:
            self.path = outer

    def pure_region(self, region: Region, args: Sequence[Tile]) -> list[Tile]:
        """A region without effects, that leaves no record."""
        kept = self.mark()
        try:
            return self.region(region, args)
        finally:
            self.rewind(kept)

    # ---- operations

    def step(self, op: Op) -> None:
        """Run one operation and bind its results."""
        try:
            out = self.result(op)
        except TriliftError as error:
            error.place = error.place or op.place
            raise
        if out is None and op.results:
            self.cannot(op)
            out = [Tile(v.type, self.opaque(op, term_type(v.type))) for v in op.results]
        results = [out] if isinstance(out, Tile) else out or []
        for value, x in zip(op.results, results, strict=True):
            self.env[value] = x
        self.oblige_exact(op, results)
        if hinted(op) and results:
            self.oblige("hint", op, condition(op, results[0], self.opaque(op, T.BOOL)), 1)

    def result(self, op: Op) -> Tile | list[Tile] | None:
        control = CONTROL.get(op.name)
        if control is not None:
            return control(self, op)
        xs = [self.env[v] for v in op.operands]
        handler = HANDLERS.get(op.name)
        if handler is not None:
            out = handler(self, op, *xs)
            self.oblige_fold(op, out)
            return out
        if any(term_type(v.type) == POINTER for v in (*op.operands, *op.results)):
            return on_pointers(self, op, *xs)
        if is_elementwise(op):
            return self.elementwise(op, xs)
        if any(r.blocks for r in op.regions) and any(_touches(o) for o in op.walk()):
            raise Unsupported(op.name, op.place)
        self.cannot(op)
        return None

    def elementwise(self, op: Op, xs: list[Tile]) -> list[Tile] | None:
        """The operation lane by lane."""
        together = _together(lambda *es: self.elements.apply(op, *es))
        out = [pointwise(v.type, together(k), *xs) for k, v in enumerate(op.results)]
        try:
            for x in out:
                x.at(self.generic_lanes(x.shape))
        except TooLarge:
            raise
        except Unsupported:
            return None
        for kind, of, bits in conditions(self.elements.run, op):
            self.oblige(kind, op, pointwise(op.results[0].type, of, *xs, out[0]), bits)
        return out

    # ---- records

    def oblige(self, kind: str, op: Op, x: Tile, bits: int) -> None:
        """Record an integer condition unless intervals alone show it."""
        axes = generic(x.shape)
        term = x.at(terms(axes))
        if (term.op == "undef" and kind not in TRUTHS) or certain(self.ranges, kind, term, bits):
            return
        key = (kind, term, self.path, bits)
        self.arithmetic.setdefault(key, Arithmetic(kind, op, axes, self.loops, self.path, term, bits))

    def oblige_fold(self, op: Op, out: Tile | list[Tile] | None) -> None:
        """Sums and products of integers may wrap."""
        if op.name not in ("tt.reduce", "tt.scan", "tt.dot") or out is None:
            return
        for x in out if isinstance(out, list) else [out]:
            if x.type.is_int and x.type.bits >= 32:
                self.oblige("wrap", op, x, x.type.bits)

    def oblige_exact(self, op: Op, results: Sequence[Tile]) -> None:
        """Floats that hold integers which are read as integers again; of sums the sums of absolute values, which no
        partial sum exceeds."""
        xs = [self.env[v] for v in op.operands]
        for k, x in enumerate(xs):
            if (op, k) in self.exact:
                self.oblige_digits(op, x, self.exact[op, k])
        if op not in self.exact:
            return
        if op.name in ("tt.reduce", "tt.scan", "tt.dot"):
            again = HANDLERS[op.name](self, op, *(pointwise(x.type, absolute, x) if x.type.is_float else x for x in xs))
            results = [again] if isinstance(again, Tile) else again or []
        for x in results:
            self.oblige_digits(op, x, self.exact[op] if results else None)

    def oblige_arguments(self) -> None:
        """Integers that the host function passes as floats, and that are read as integers again."""
        used = users(self.module.walk()) if self.exact else {}
        for v, x in zip(self.module.entry.args, self.arguments, strict=True):
            if v in self.exact and v in used:
                self.oblige_digits(used[v][0], x, self.exact[v])

    def oblige_digits(self, op: Op, x: Tile, bits: int | None) -> None:
        if x.type.is_float:
            self.oblige("exact" if bits is not None else "inexact", op, x, 1 + (bits or 0))

    def cannot(self, op: Op) -> None:
        """The operation has no meaning here."""
        self.unsupported.setdefault(op)

    def opaque(self, op: Op, of_type: str) -> Callable[[tile.Lanes], Term]:
        """Elements that nothing is known of, equal to none other: of this operation, program, iteration and lane."""
        counters, serial = [T.axis(o.counter) for o in self.loops], next(SERIAL)
        return lambda lanes: T.node("opaque", (*PIDS, *counters, *lanes), (op.name, serial), of_type)

    def fold_axis(self, size: Extent) -> Axis:
        self.folds += 1
        return Axis(f"r{self.folds - 1}", T.const(size))

    def access_axes(self, shape: Sequence[Extent]) -> tuple[Axis, ...]:
        return tuple(Axis(f"a{self.order}_{d}", T.const(n)) for d, n in enumerate(shape))

    def generic_lanes(self, shape: Sequence[Extent]) -> tile.Lanes:
        return terms(generic(shape))

    @property
    def lists(self) -> tuple[list[Any], ...]:
        """The records that grow."""
        return self.accesses, self.all_loops, self.asserts, self.barriers

    def mark(self) -> tuple[Any, ...]:
        return *(len(x) for x in self.lists), dict(self.arithmetic), dict(self.unsupported), self.order, self.folds

    def rewind(self, mark: tuple[Any, ...]) -> None:
        """Forget what was recorded since."""
        for x, n in zip(self.lists, mark, strict=False):
            del x[n:]
        self.arithmetic, self.unsupported, self.order, self.folds = mark[len(self.lists) :]


def _name(v: Value) -> str:
    return v.name.removeprefix("%")


def absolute(t: Term) -> Term:
    return T.make("abs", t)


def _operand(v: Value, x: Any) -> Tile:
    """A launch argument as a tile."""
    if v.type.element == "ptr":
        return constant(v.type, pointer(_name(v), 0))
    t = T.const(x)
    if t.is_const and isinstance(t.attr, bool) != (v.type.element == "i1"):
        t = T.const(bool(t.attr) if v.type.element == "i1" else int(t.attr))
    return constant(v.type, t)


def _touches(op: Op) -> bool:
    """Whether an operation may write memory."""
    return not op.results and op.name not in TERMINATORS


def _together(f: Callable[..., list[Term]]) -> Callable[[int], Callable[..., Term]]:
    """Several results of one application, made once per operands."""
    memo: dict[tuple[Term, ...], list[Term]] = {}

    def component(k: int) -> Callable[..., Term]:
        def g(*xs: Term) -> Term:
            if xs not in memo:
                memo[xs] = f(*xs)
            return memo[xs][k]

        return g

    return component


def ordered(body: Region) -> list[Block]:
    """The blocks that can be reached, each after all that lead to it. Raises Unsupported for a cycle."""
    labels = {b.label: b for b in body.blocks}
    out: list[Block] = []
    state: dict[str, int] = {}

    def visit(b: Block) -> None:
        if state.get(b.label) == 1:
            raise Unsupported("a loop of branches", b.ops[0].place if b.ops else None)
        if b.label in state:
            return
        state[b.label] = 1
        for label, _ in b.ops[-1].successors if b.ops else ():
            visit(labels[label])
        state[b.label] = 2
        out.append(b)

    visit(body.blocks[0])
    return out[::-1]


def merged(arrivals: list[tuple[Term, list[Tile]]], types: Sequence[Type]) -> list[Tile]:
    """Values that come from several places, each under its condition; the conditions exclude each other."""
    out = arrivals[-1][1]
    for c, values in arrivals[-2::-1]:
        out = [_chosen(t, c, a, b) for t, a, b in zip(types, values, out, strict=True)]
    return out


def _chosen(t: Type, c: Term, a: Tile, b: Tile) -> Tile:
    return a if a is b else pointwise(t, lambda x, y: select(c, x, y, t), a, b)


# ---- control flow ----------------------------------------------------------------------------------------------------


def _if(run: Execution, op: Op) -> list[Tile]:
    c = run.env[op.operands[0]].at()
    regions = [*op.regions, Region([])][:2]
    both = [run.under(k, r) for k, r in zip((c, T.make("not", c)), regions, strict=True)]
    return [_chosen(v.type, c, a, b) for v, a, b in zip(op.results, *both, strict=True)] if op.results else []


def _call(run: Execution, op: Op) -> list[Tile]:
    callee = run.module.functions[op.attrs["callee"].lstrip("@")]
    return run.call(callee, [run.env[v] for v in op.operands])


def _for(run: Execution, op: Op) -> list[Tile]:
    low, high, step = (signed(run.ranges, run.env[v]).at() for v in op.operands[:3])
    if step.is_const and step.attr <= 0:
        raise Unsupported("scf.for", op.place, "its step is not positive")
    t = scalar(op.operands[0].type)
    run.oblige("positive", op, constant(t, step), t.bits)
    if op.attrs.get("unsignedCmp"):
        for x in (low, high):
            run.oblige("unsigned", op, constant(t, x), t.bits - 1)
    trips = _trips(run, low, high, step)
    counter = Axis(f"n{len(run.all_loops)}", trips)
    n = T.axis(counter)
    loop = Loop(op, counter, trips, low, step, run.loops, run.path)
    run.all_loops.append(loop)
    induction = constant(t, T.add(low, T.mul(n, step)))
    run.oblige("wrap", op, constant(t, T.add(low, T.mul(trips, step))), t.bits)
    inits = [run.env[v] for v in op.operands[3:]]
    names = [_name(v) for v in op.regions[0].blocks[0].args[1:]]
    return _iterated(run, loop, names, inits, lambda carried: run.region(op.regions[0], [induction, *carried]))


def _trips(run: Execution, low: Term, high: Term, step: Term) -> Term:
    """max(0, ceil((high - low) / step)); the maximum is left out where it is known."""
    distance = T.sub(high, low)
    trips = T.make("floordiv", T.add(distance, T.sub(step, 1)), step)
    if step is T.const(1):
        trips = distance
    return trips if run.ranges.of(trips)[0] >= 0 else T.make("max", 0, trips)


Body = Callable[[list[Tile]], list[Tile]]


def _iterated(run: Execution, loop: Loop, names: Sequence[str], inits: list[Tile], body: Body) -> list[Tile]:
    """Walk the body once on carries; their values at trips. A pointer whose base changes is walked again as opaque."""
    known = [base(x) for x in inits]
    kept = run.mark()
    while True:
        after, yields = _walk(run, loop, names, inits, known, body)
        moved = [b is not None and b is not base(y) for b, y in zip(known, yields, strict=True)]
        if not any(moved):
            return after
        known = [None if m else b for m, b in zip(moved, known, strict=True)]
        run.rewind(kept)
        loop.carries.clear()


def _walk(
    run: Execution, loop: Loop, names: Sequence[str], inits: list[Tile], known: Sequence[Term | None], body: Body
) -> tuple[list[Tile], list[Tile]]:
    """(the carries at trips, what the body yields)."""
    yields: list[Tile] = []
    carries = [_carry(run, loop, k, names[k], x, known[k] is not None, yields) for k, x in enumerate(inits)]
    loop.carries.extend(carries)

    def at(n: Term) -> list[Tile]:
        return [_carried(c, x, base is not None, n) for c, x, base in zip(carries, inits, known, strict=True)]

    outer, run.loops = run.loops, (*run.loops, loop)
    try:
        yields.extend(body(at(T.axis(loop.counter))))
    finally:
        run.loops = outer
    return at(loop.trips), yields


def _carry(run: Execution, loop: Loop, k: int, name: str, init: Tile, is_offset: bool, yields: list[Tile]) -> Carry:
    """Loop variable k; `yields` are there when somebody asks for the next value."""
    if is_offset:
        t = replace(init.type, element="i64", pointee=None, text="i64")
        return Carry(loop, k, name, t, lambda i: offset(init.at(i)), lambda i: offset(yields[k].at(i)))
    if term_type(init.type) == POINTER:
        run.cannot(loop.op)
    return Carry(loop, k, name, init.type, init.at, lambda i: yields[k].at(i))


def _carried(c: Carry, init: Tile, is_offset: bool, n: Term) -> Tile:
    """The variable at iteration n as a tile."""
    if is_offset:
        return Tile(init.type, lambda i: at_offset(init.at(i), c.at(n, i)))
    return Tile(init.type, lambda i: c.at(n, i))


def _while(run: Execution, op: Op) -> list[Tile]:
    """The region `before` gives the condition and y; it runs once more than `after`: at trips, where it is false."""
    before, after = op.regions
    number = len(run.all_loops)
    trips = T.node("trips", (*PIDS, *(T.axis(o.counter) for o in run.loops)), next(SERIAL), T.INT)
    loop = Loop(op, Axis(f"n{number}", trips), trips, T.const(0), T.const(1), run.loops, run.path)
    run.all_loops.append(loop)
    inits = [run.env[v] for v in op.operands]
    names = [_name(v) for v in before.blocks[0].args]

    def body(carried: list[Tile]) -> list[Tile]:
        condition, *passed = run.region(before, carried)
        object.__setattr__(loop, "condition", condition.at())
        outer, run.path = run.path, T.make("and", run.path, condition.at())
        try:
            return run.region(after, passed)
        finally:
            run.path = outer

    return run.region(before, _iterated(run, loop, names, inits, body))[1:]


CONTROL: dict[str, Callable[[Execution, Op], list[Tile]]] = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "tt.call": _call,
}

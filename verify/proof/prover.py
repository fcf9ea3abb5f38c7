"""One configuration proved: every launch's loops, every access in bounds, every output element what its formula says.

{I} launch {I'}   for each launch in order; afterwards, for each claim,
    every store to the output:   value = formula[index of the store]        under its guard, for all programs
    every element is stored:     index range => some writer
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from trilift.lift.errors import Place, TriliftError, Unsupported
from trilift.lift.interpreter.machine import cell_of_dtype
from trilift.lift.pytorch.machine_integers import INEXACT, ROUNDED, Fits
from trilift.lift.runtime.budget import Meter
from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.bits import cell_size
from trilift.lift.terms.exactness import Marks
from trilift.lift.terms.machine_ranges import limits
from trilift.lift.terms.ring import is_wrapped, wrapped
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import users

from ..execution.parametric import execute
from ..integers.bounded_solver import BoundedSolver
from ..integers.logical_index import asking, decode
from ..integers.quotient import between, equalities
from ..integers.solver import Answers, DistinctElements, Solver
from ..loops.agreement import tells_nan
from ..loops.invariant import Loops, agree
from ..loops.program_symbols import Names
from ..memory.contents import Content, Memory, covers, dense, place
from ..memory.effects import accumulated, forwarded, left
from ..memory.element_position import joined, settled
from ..memory.lane_order import Order, in_pipeline, pairs
from ..memory.machine_integers import fitting
from ..memory.safety import assumed, in_bounds, never_fitting, nowrap, well_defined
from ..memory.sites import Site, context
from ..memory.stores import Found, Missing, Written, covered, injective, read_after_write, written
from ..model.configuration import Buffer, Configuration, HostOp, SymbolicLaunch, View
from ..model.program import PIDS, Access, Barrier
from ..model.verdict import NO_SHAPE, TOLD_APART, Clause, Condition, Invariant, aligned, overlap_free
from ..normal_form.algebra import Algebra, Context, SideConditions, Split, Undecided
from ..normal_form.numbers import met
from ..normal_form.poly import DOUBLE_BITS, SINGLE_BITS, precision
from ..wording.user_terms import shortened, words
from .double_precision import in_double, rounded_operand, told_apart
from .exact_numbers import exact_operations, rounding_clause
from .launch import Launched

Progress = Callable[[str], None]
NEEDS = {"nonzero": "a division", "nonneg": "a square root", "positive": "a logarithm or the root of a divisor",
         "holds": "an operation that is not defined elsewhere"}  # fmt: skip
MEANT = {"nonzero": "a divisor is not 0", "nonneg": "the argument of a root is not negative",
         "positive": "the argument of a logarithm is positive", "holds": "an operation is defined"}  # fmt: skip
STRENGTH = ("bounded", "finite", "positive", "nonneg", "nonzero", "holds")
GOALS: dict[str, Callable[[Term], Term]] = {
    "nonzero": lambda t: T.make("ne", t, 0), "nonneg": lambda t: T.make("le", 0, t),
    "positive": lambda t: T.make("lt", 0, t), "holds": lambda c: c,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """The proved conditions of one output in one configuration."""

    conditions: tuple[Condition, ...]
    invariants: tuple[Invariant, ...]
    contract: tuple[Clause, ...]


@dataclass
class Proving:
    """The proof of one configuration. `conditions` so far; claims add theirs. `answers`: of the solver, to other
    configurations of the case as well. `double`: whether the function of the formulas computes in f64."""

    configuration: Configuration
    meter: Meter
    progress: Progress = lambda stage: None
    invariants: bool = True
    answers: Answers = field(default_factory=Answers)
    double: bool = False
    memory: Memory = field(default_factory=Memory)
    launched: list[Launched] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    contract: list[Clause] = field(default_factory=list)
    writers: dict[Buffer, list[tuple[Launched, Site]]] = field(default_factory=dict)
    exact: Marks = field(default_factory=dict)  # operations on floats through which integers pass

    def __post_init__(self) -> None:
        inner = Solver(meter=self.meter, answers=self.answers)
        self.solver = BoundedSolver(
            bounds=bounds(self.configuration), inner=inner, distinct=rows_of_distinct(self.configuration)
        )
        self.algebra = Algebra(self.solver, strides=strides(self.configuration), meter=self.meter)
        self.memory.distinct = self.distinct
        self.buffers = {b.name: b for b in self.configuration.buffers}
        self.contract += self.configuration.clauses

    @property
    def vacuous(self) -> bool:
        """Whether no shape meets the preconditions of the configuration."""
        with precision(self.bits):
            return self.algebra.impossible(self.algebra.context(self.configuration.facts))

    @property
    def written(self) -> set[Buffer]:
        """The buffers that some event may write."""
        host = {v.buffer for e in self.configuration.events if isinstance(e, HostOp) for v in e.outputs}
        return host | {b for x in self.launched for b in x.written_to}

    # ---- events

    @cached_property
    def bits(self) -> int:
        """The bits that two constants share which are one."""
        return DOUBLE_BITS if self.double or in_double(self.configuration) else SINGLE_BITS

    def run(self) -> None:
        """All events in order. Raises what makes the whole configuration undecided."""
        with precision(self.bits):
            self._run()

    def _run(self) -> None:
        if self.vacuous:
            raise Undecided(f"{NO_SHAPE} and takes the path that was read through the host function")
        self.owe(self.configuration.owed, lambda t: flattened(t, self.configuration.inputs))
        self.exact, roundings = exact_operations(self.configuration)
        self.contract += map(rounding_clause, roundings)
        for k, event in enumerate(self.configuration.events):
            if isinstance(event, HostOp):
                owed = (*event.owed, *(event.exactly(self.exact, event) if self.exact else ()))
                self.owe(dict.fromkeys(owed), lambda t: self.memory.substituted(t, self.buffers))
                self.memory.host(event, self.buffers)
            else:
                self.progress(f"launch {k + 1} of {len(self.configuration.events)}: {event.kernel}")
                self.launch(event)

    @property
    def divisors(self) -> frozenset[Term]:
        """The sizes and scalars that the function divides by."""
        owed = (o.term for o in self.configuration.owed if o.is_divisor)
        return frozenset(T.make("ne", t, 0) for t in owed if t.op == "size")

    @property
    def nonzero(self) -> set[str]:
        """The inputs of which the function divides by every element."""
        return {str(o.term.attr) for o in self.configuration.owed if o.is_divisor and self.is_whole(o.term)}

    def is_whole(self, t: Term) -> bool:
        """Whether a term is any element of an input: x[m, n] for all m, n of its shape."""
        view = self.configuration.inputs.get(str(t.attr)) if t.op == "read" else None
        if view is None or any(i.op != "axis" for i in t.args) or len(set(t.args)) < len(t.args):
            return False
        return all(i.attr.size is n for i, n in zip(t.args, view.shape, strict=True))

    def owe(self, owed: Iterable[Fits], element: Callable[[Term], Term]) -> None:
        """Integers of PyTorch must fit their dtype: clauses where that is not certain. `element`: a term over elements
        of inputs and of what memory holds now."""

        def known(t: Term) -> Term:
            try:
                return element(t)
            except Undecided:
                return t  # the clause speaks of what memory holds there

        every = list(owed)
        for o in every:
            if o.is_rounded:
                facts, never = self.configuration.facts, T.const(False)
                self.conditions.append(Condition(INEXACT, facts, never, False, "none", 0.0, o.place, ROUNDED))
        found = [replace(o, term=known(o.term)) for o in every if not o.is_rounded]
        self.contract += fitting(found, self.configuration.facts, self.solver, self.configuration.inputs)

    def launch(self, event: SymbolicLaunch) -> None:
        """One launch: its accesses, their safety, and what memory holds afterwards."""
        dtypes = {a.name: x.dtype for a, x in zip(event.module.entry.args, event.operands, strict=True)
                  if isinstance(x, View)}  # fmt: skip
        program = execute(event.module, event.operands, event.grid, self.configuration.facts, dtypes, self.exact)
        for op in program.unsupported:
            if not op.results:
                raise Unsupported(op.name, op.place)
        facts = self.configuration.facts | frozenset(grid_facts(event.grid))
        loops = Loops(self.algebra, facts, names=Names(facts, self.solver, symbolic=self.configuration.together))
        loops.whiles = {x.trips.attr: x for x in program.loops if x.condition is not None}
        if not self.invariants:
            loops.closing = False
        found = Launched(event, program, loops)
        found.written_to = self.stored(found)
        loops.reads = self.reading(found)
        found.sites = tuple(s for a in program.accesses for s in found.located(self.resolved(a, found)))
        self.launched.append(found)
        self.safe(found)
        self.after(found)

    def stored(self, found: Launched) -> set[Buffer]:
        """The buffers that a launch may write."""
        pointers = [
            p for a in found.program.accesses if a.kind != "load" for p in a.pointer.walk() if p.op == "pointer"
        ]
        return {v.buffer for p in pointers if (v := found.views.get(str(p.attr).removeprefix("%"))) is not None}

    def reading(self, found: Launched) -> Callable[[Term], Term]:
        """A load's result: what memory held before the launch, or what the same program stored."""
        before = self.memory.copy()

        def reads(t: Term) -> Term:
            base, at, site = str(t.attr).partition("@")
            view = found.views.get(base.removeprefix("%"))
            if not at or view is None:
                return t
            o = T.add(view.offset, t.args[0])
            if view.buffer in found.written_to:
                seen = self.seen(found, int(site), view.buffer)
                if seen.writer is not None:
                    return as_number(self.forwarded(found, seen.writer, o))
            return as_number(before.at(view.buffer, o))

        return reads

    def seen(self, found: Launched, site: int, buffer: Buffer) -> Found:
        """The contents that a load reads in a buffer that the launch writes. Raises Undecided where that is not
        known."""
        key = site, buffer
        if key not in found.seen:
            found.seen[key] = Found("unknown", why="its address depends on what the launch writes")
            found.seen[key] = self.interference(found, site, buffer)
        if found.seen[key].kind == "unknown":
            load = next(a for a in found.program.accesses if a.site == site)
            raise Undecided(f"{buffer.name} is read and written by one launch", load.place, found.seen[key].why)
        return found.seen[key]

    def interference(self, found: Launched, site: int, buffer: Buffer) -> Found:
        """Whether a load finds what was there before the launch, or what one store of its program stored."""
        accesses = found.program.accesses
        loads = [s for a in accesses if a.site == site and a.kind == "load" and found.may_touch(a, buffer)
                 for s in found.located(self.address(a, found)) if s.buffer is buffer]  # fmt: skip
        stores = [s for a in accesses if a.kind != "load" and found.may_touch(a, buffer)
                  for s in found.located(self.address(a, found)) if s.buffer is buffer]  # fmt: skip
        view = self.views_of(buffer, stores)[0]
        inverses = [written(s, view, self.configuration.facts, self.solver) for s in stores]
        writers = [s if isinstance(w, Missing) else w for w, s in zip(inverses, stores, strict=True)]
        every = [read_after_write(x, writers, self.configuration.facts, self.solver) for x in loads]
        if any(x.kind != "initial" for x in every) and len(every) > 1:
            return Found("unknown", why=next(x.why for x in every if x.kind != "initial"))
        return every[0] if every else Found("initial")

    def forwarded(self, found: Launched, w: Written, o: Term) -> Term:
        """The value that the store left at element o."""
        access = w.site.access
        if access.op in found.forwarding:
            raise Undecided("circular dependency of a load on itself through memory", access.place)
        found.forwarding.add(access.op)
        try:
            assert access.value is not None
            content = found.plain(found.loops.resolved(access.value))
        finally:
            found.forwarding.discard(access.op)
        return forwarded(w, content, place(w.view, o)[0])

    def address(self, a: Access, found: Launched) -> Access:
        """The access without loop variables and loads, but for its value."""
        try:
            around = tuple(found.around(loop) for loop in a.loops)
            guard, pointer = (found.plain(found.loops.resolved(t)) for t in (a.guard, a.pointer))
            return replace(a, guard=guard, pointer=pointer, loops=around)
        except Undecided as stop:
            stop.place = stop.place or a.place
            raise

    def resolved(self, a: Access, found: Launched) -> Access:
        """The access without loop variables and loads."""
        out = self.address(a, found)
        if a.value is None or a.kind == "load":
            return out
        try:
            return replace(out, value=found.plain(found.loops.resolved(a.value)))
        except Undecided as stop:
            stop.place = stop.place or a.place
            raise

    def safe(self, found: Launched) -> None:
        """Every access in bounds, divisors not 0, what is assumed; that no integer wraps is part of the contract."""
        facts = found.loops.facts
        views = [*self.configuration.inputs.values(), *self.configuration.outputs.values()]
        for s in found.sites:
            named = found.named(s)
            inside = in_bounds(named, found.loops.known, self.solver, views) if named is not None else None
            if inside is None or not inside.holds:
                inside = in_bounds(s, facts, self.solver, views)
            self.conditions.append(inside)
        integers = []
        for a in found.program.arithmetic:
            around = tuple(found.around(loop) for loop in a.loops)
            guard, t = (found.plain(found.loops.resolved(t)) for t in (a.guard, a.term))
            t = self.from_aligned(t, found) if a.kind == "descriptor" else t
            integers.append(replace(a, loops=around, guard=guard, term=t))
        program = replace(found.program, arithmetic=tuple(integers))
        self.decided_by_numbers(found)
        self.conditions += well_defined(program, facts | self.divisors, self.solver, self.nonzero)
        conditions, clauses = assumed(program, facts, self.solver)
        self.conditions += conditions
        self.contract += clauses
        fitting = nowrap(program, facts, self.solver)
        self.conditions += never_fitting(program, fitting)
        self.contract += fitting
        self.in_order(found)

    def in_order(self, found: Launched) -> None:
        """Ask for the conditions under which lanes of one program may exchange values through memory."""
        touched = {s.buffer for s in found.sites if s.writes}
        self.conditions += in_pipeline(found.sites)
        sites = [s for s in found.sites if s.buffer in touched]
        if not any(True for _ in pairs(sites)):
            return
        barriers = [self.barrier(x, found) for x in found.program.barriers]
        raw = {a.order: a for a in found.program.accesses}
        views = [v for b in touched for v in self.views_of(b, sites)]
        module = found.program.module
        positions = {op: k for k, op in enumerate(module.walk())} if len(module.functions) == 1 else {}
        order = Order(
            barriers, raw, found.loops.facts, self.solver, users(module.walk()), found.views, positions, views
        )
        for x in order.checked(sites):
            if isinstance(x, Condition):
                self.conditions.append(x)
            else:
                self.contract.append(x)

    def barrier(self, x: Barrier, found: Launched) -> Barrier:
        """The barrier without loop variables and loads."""
        around = tuple(found.around(loop) for loop in x.loops)
        return replace(x, loops=around, guard=found.plain(found.loops.resolved(x.guard)))

    def decided_by_numbers(self, found: Launched) -> None:
        """Guards of stores compare numbers: of `if x / y > 0` and `if x / y <= 0` neither is executed where y is 0."""
        for s in found.sites:
            if s.writes and any(map(tells_nan, s.guard.walk())):
                around = context(s.grid, s.access.loops, s.access.lanes, T.const(True))
                self.agree(s.guard, s.guard, found.loops.facts | around)

    def from_aligned(self, t: Term, found: Launched) -> Term:
        """The condition of a descriptor, addresses counted from the start of each buffer: of inputs the contract says
        that it is aligned, what PyTorch allocates is."""
        inputs = {v.buffer: n for n, v in self.configuration.inputs.items()}

        def one(s: Term) -> Term | None:
            view = found.views.get(str(s.attr).removeprefix("%")) if s.op == "address" else None
            if view is None:
                return None
            if view.buffer in inputs:
                self.contract.append(aligned(inputs[view.buffer]))
            return T.mul(cell_size(cell_of_dtype(view.dtype)), T.add(view.offset, s.args[0]))

        return T.rewrite(t, one)

    def after(self, found: Launched) -> None:
        """The contents of what the launch wrote: claims about outputs look at the sites themselves."""
        by_buffer: dict[Buffer, list[Site]] = {}
        for s in found.sites:
            if s.writes:
                by_buffer.setdefault(s.buffer, []).append(s)
        before = self.memory.copy()
        for buffer, mine in by_buffer.items():
            self.writers.setdefault(buffer, []).extend((found, s) for s in mine)
            self.contract += [c for s in mine if (c := accumulated(s)) is not None]
            self.memory.contents[buffer] = found.left[buffer] = self.afterwards(buffer, mine, before)

    def afterwards(self, buffer: Buffer, mine: Sequence[Site], before: Memory) -> Content:
        """The contents of a buffer after these writes, worked out when somebody asks."""
        known: list[Content | Undecided] = []

        def content(o: Term) -> Term:
            if not known:
                known.append(self.written_by(buffer, mine, before))
            if isinstance(known[0], Undecided):
                raise Undecided(known[0].what, known[0].place, known[0].why)
            return known[0](o)

        return content

    def written_by(self, buffer: Buffer, mine: Sequence[Site], before: Memory) -> Content | Undecided:
        """The contents, by the first view through which they are known; or why they are not."""
        failure: Undecided | None = None
        for view in self.views_of(buffer, mine):

            def held(index: Sequence[Term], view: View = view) -> Term:
                return before.at(buffer, view.element(tuple(index)))

            try:
                return before.overlaid(view, left(mine, view, held, self.configuration.facts, self.solver, self.agree))
            except Undecided as stop:
                failure = failure or stop
        assert failure is not None
        return failure

    def agree(self, x: Term, y: Term, facts: frozenset[Term]) -> bool:
        """Whether two terms are equal. The assumptions become side conditions of every claim."""
        with self.algebra.collecting() as side_conditions:
            same = agree(self.algebra, x, y, self.algebra.context(facts))
        self.algebra.pending[0].update(side_conditions)
        return same

    def distinct(self, view: View) -> bool:
        """Whether two indices of a view are never at one element."""
        return injective(view, self.configuration.facts, self.solver).holds

    def apart(self, view: View) -> bool:
        """Whether each element of a view has a place of its own. A view that lies as an input of any strides has if the
        input's elements have: a clause."""
        if dense(view) or self.distinct(view):
            return True
        alike = [n for n, x in self.configuration.inputs.items() if lies_within(view, x)]
        if alike:
            self.contract.append(overlap_free(alike[0], "a kernel, which writes a tensor that lies as it does"))
        return bool(alike)

    def views_of(self, buffer: Buffer, mine: Sequence[Site]) -> list[View]:
        """The tensors whose index counts: outputs or inputs of the case, the operands, all elements in a row."""
        named = [*self.configuration.outputs.values(), *self.configuration.inputs.values(), *(s.view for s in mine)]
        row = View(buffer, T.const(0), (buffer.length,), (T.const(1),), buffer.dtype)
        return list(dict.fromkeys(v for v in (*named, row) if v.buffer is buffer))

    # ---- claims

    def claim(self, output: str, formula: Formula) -> Shown:
        """That an output equals its formula after all events. Raises Undecided with what is missing."""
        if self.bits != SINGLE_BITS and (operand := rounded_operand(self.configuration)):
            raise Undecided(TOLD_APART, None, operand)
        try:
            with precision(self.bits):
                return self._claim(output, formula)
        except Undecided as open_:
            if self.bits == SINGLE_BITS or not (told := told_apart(self.configuration, formula)):
                raise
            raise Undecided(TOLD_APART, None, told) from open_

    def _claim(self, output: str, formula: Formula) -> Shown:
        view = self.configuration.outputs.get(output) or self.configuration.inputs[output]
        target = flattened(formula.term, self.configuration.inputs)
        if self.solver.distinct:
            inside = frozenset(between(T.axis(a), a.size) for a in formula.axes)
            target = joined(target, asking(self.configuration.facts | inside, self.solver))
        self.same_shape(output, view, formula)
        with self.algebra.collecting() as side_conditions:
            conditions = self.equalities(output, view, formula, target)
        every_condition = {**self.algebra.pending[0], **side_conditions}
        kept = self.settled(every_condition)
        clauses = tuple(c for c in kept if isinstance(c, Clause))
        met = [c for c in kept if isinstance(c, Condition)]
        invariants = [i for x in self.launched for i in x.loops.invariants]
        inductive = [c for x in self.launched for c in x.loops.conditions]
        every = (*self.conditions, *inductive, *conditions, *met, *self.solver.answered)
        return Shown(tuple(c for c in every if c.holds or c not in self.solver.answered), tuple(invariants),
                     distinct((*self.contract, *clauses)))  # fmt: skip

    def same_shape(self, output: str, view: View, formula: Formula) -> None:
        """Raises Undecided unless the output has the shape of its formula wherever the configuration's facts hold."""
        sizes = [a.size for a in formula.axes]
        equal = (
            self.solver.equal_under(self.configuration.facts, n, m) for n, m in zip(view.shape, sizes, strict=False)
        )
        if len(view.shape) != len(sizes) or not all(equal):
            shapes = (", ".join(map(words, s)) for s in (view.shape, sizes))
            why = "its sizes are [{}], those of the formula [{}]".format(*shapes)
            raise Undecided(f"could not prove that {output} has the shape of its formula", None, why)

    def equalities(self, output: str, view: View, formula: Formula, target: Term) -> list[Condition]:
        """Each store's value, and that every element is stored."""
        mine = self.writers.get(view.buffer, [])
        last = [x for x in mine if x[0] is mine[-1][0]] if mine else []
        by_stores = last and all(s.access.kind == "store" for _, s in last) and self.apart(view)
        if not by_stores or self.redefined(view.buffer, last):
            return [self.content_equals(output, view, formula, target)]
        try:
            found = self.stores_equal(output, [s for _, s in last], view, formula, target)
        except Undecided:
            if len(last) == 1 and not last[0][1].access.loops:
                raise
            found = None  # what is stored first may be something else
        return [self.content_equals(output, view, formula, target)] if found is None else found

    def stores_equal(
        self, output: str, mine: Sequence[Site], view: View, formula: Formula, target: Term
    ) -> list[Condition] | None:
        """Every store stores what the formula says; None where they do not store every element."""
        out = []
        everyone: list[Written] = []
        for s in mine:
            out.append(self.store_equals(output, s, view, formula, target))
            w = written(s, view, self.configuration.facts, self.solver)
            if isinstance(w, Missing):
                raise Undecided(w.text, w.place)
            everyone.append(w)
        cover = covered(everyone, self.configuration.facts, self.solver)
        return [*out, cover] if cover.holds else None

    def redefined(self, buffer: Buffer, last: Sequence[tuple[Launched, Site]]) -> bool:
        """Whether a host operation writes the buffer after its last launch."""
        position = list(self.configuration.events).index(last[0][0].launch)
        later = self.configuration.events[position + 1 :]
        return any(isinstance(e, HostOp) and any(v.buffer is buffer for v in e.outputs) for e in later)

    def store_equals(self, output: str, site: Site, view: View, formula: Formula, target: Term) -> Condition:
        """value = formula[index] wherever the site stores: with names for what depends on the program id, else as it
        is."""
        launched = next(x for x in self.launched if any(s is site for s in x.sites))
        named = launched.named(site)
        if named is not None:
            try:
                return self.stored_equal(output, named, launched.loops.known, view, formula, target)
            except Undecided:
                pass
        return self.stored_equal(output, site, self.configuration.facts, view, formula, target)

    def stored_equal(
        self, output: str, site: Site, known: frozenset[Term], view: View, formula: Formula, target: Term
    ) -> Condition:
        facts = known | site.facts()
        index = decode(site.offset, view, self.solver.with_bounds(facts), self.solver)
        if index is None:
            raise Undecided(f"could not express the {site.text} as an index of {output}", site.place)
        right = T.substitute(target, dict(zip(formula.axes, index, strict=True)))
        right = settled(right, self.solver.distinct, asking(facts, self.solver))
        assert site.access.value is not None
        claim = f"the {site.text} writes the formula of {output}"
        value = as_held(site.access.value, right, view.dtype)
        return self.equal(f"{output} at the {site.text}", claim, value, right, facts, site.place)

    def content_equals(self, output: str, view: View, formula: Formula, target: Term) -> Condition:
        """The final contents of the buffer = formula, at every index."""
        fixed = equalities(self.configuration.facts)
        only = {a for a in formula.axes if fixed.get(a.size, a.size) is T.const(1)}
        index = tuple(T.const(0) if a in only else T.axis(a) for a in formula.axes)
        target = T.substitute(target, {a: T.const(0) for a in only})
        facts = self.configuration.facts | frozenset(
            f for a in formula.axes for f in (T.make("le", 0, T.axis(a)), T.make("lt", T.axis(a), a.size))
        )
        left = self.memory.at(view.buffer, view.element(index))
        claim = f"the final contents of {output} equal its formula"
        left = as_held(left, target, view.dtype)
        return self.equal(f"{output} at the end", claim, left, target, facts, None)

    def equal(
        self, what: str, claim: str, left: Term, right: Term, facts: Iterable[Term], place: Place | None
    ) -> Condition:
        """The condition `what`: left = right under the facts. Raises Undecided, with the `claim`, without a proof."""
        start = time.perf_counter()
        ctx = self.algebra.context(facts)
        try:
            with self.algebra.closed.listing() as by:
                holds = agree(self.algebra, left, right, ctx)
        except Undecided as stop:
            stop.place = stop.place or place
            raise
        if not holds:
            why = difference(self.algebra, left, right, ctx, self.configuration.inputs)
            raise Undecided(f"could not prove that {claim}", place, why)
        goal = T.node("eq", (left, right), None, T.BOOL)
        seconds = time.perf_counter() - start
        return Condition(what, ctx.facts, goal, True, "normal form", seconds, place, strategies=tuple(by))

    def settled(self, owed: SideConditions) -> list[Condition | Clause]:
        """Each assumption proved or a clause, those first that imply others: what clauses say is known of the rest."""
        found: dict[tuple[str, Term, int], Condition | Clause] = {}
        told: list[Term] = []
        for key in sorted(owed, key=lambda key: STRENGTH.index(key[0])):
            found[key] = c = self.discharged(key[0], key[1], self.algebra.given(owed[key], *told))
            if isinstance(c, Clause) and c.term is not None:
                told.append(c.term)
        return [found[key] for key in owed]

    def discharged(self, kind: str, t: Term, ctx: Context) -> Condition | Clause:
        """Proves an assumption that was used before; of divisors and roots it becomes part of the contract
        otherwise."""
        start = time.perf_counter()
        if kind == "bounded":
            why = "the elements of an input of `any` numbers were used as if they were finite"
            raise Undecided(why, why=shortened(words(t, self.configuration.inputs)))
        if kind == "finite":
            raise Undecided("a maximum may be over no elements", why=shortened(words(t, self.configuration.inputs)))
        goal = GOALS[kind](t)
        if not met(self.algebra, kind, t, ctx):
            return Clause("value", goal, words(goal, self.configuration.inputs), NEEDS[kind])
        return Condition(MEANT[kind], ctx.facts, goal, True, "normal form", time.perf_counter() - start)


def as_held(x: Term, formula: Term, dtype: str) -> Term:
    """The content of a cell of a dtype, as a number modulo 2^bits where the formula is one. They are the same: an
    integer that is stored is a number of the dtype, or it is owed that it fits."""
    if dtype[0] not in "iu" or not is_wrapped(formula, *limits(dtype)):
        return x
    return wrapped(x, *limits(dtype))


def lies_within(view: View, whole: View) -> bool:
    """Whether each dimension of a view is one of `whole`, with its stride and its size."""
    left = [*zip(whole.shape, whole.strides, strict=True)]
    for pair in zip(view.shape, view.strides, strict=True):
        if pair not in left:
            return False
        left.remove(pair)
    return True


def as_number(t: Term) -> Term:
    """A truth of a boolean tensor as the 0 or 1 that a kernel loads."""
    if t.type != T.BOOL:
        return t
    return T.node("read", t.args, t.attr, T.INT) if t.op == "read" else T.where(t, 1, 0)


def grid_facts(grid: Iterable[Term]) -> Iterable[Term]:
    """0 <= pid < grid."""
    for p, n in zip(PIDS, grid, strict=True):
        yield T.make("eq", p, 0) if n is T.const(1) else T.make("and", T.make("le", 0, p), T.make("lt", p, n))


def flattened(t: Term, inputs: Mapping[str, View]) -> Term:
    """x[i, j] as the element of x's buffer."""

    def one(s: Term) -> Term | None:
        if s.op != "read" or s.attr not in inputs:
            return None
        view = inputs[s.attr]
        element = T.node("read", (view.element(s.args),), s.attr, T.INT if s.type == T.BOOL else s.type)
        return T.make("ne", element, 0) if s.type == T.BOOL else element

    return T.rewrite(t, one)


def strides(configuration: Configuration) -> dict[str, frozenset[Term]]:
    """The steps between the rows of each tensor: its strides that are not numbers."""
    views = [*configuration.inputs.values(), *configuration.outputs.values()]
    views += [
        x for e in configuration.events if isinstance(e, SymbolicLaunch) for x in e.operands if isinstance(x, View)
    ]
    names = {v.buffer.name for v in views}
    return {n: frozenset(s for v in views if v.buffer.name == n for s in v.strides if not s.is_const) for n in names}


def bounds(configuration: Configuration) -> dict[str, tuple[Term | None, Term | None]]:
    """The bounds of elements of integer inputs: of the case, else of the dtype."""
    out: dict[str, tuple[Term | None, Term | None]] = {}
    for name, view in configuration.inputs.items():
        if view.dtype[0] in "iu" or view.dtype == "bool":
            bits = 1 if view.dtype == "bool" else int(view.dtype[1:])
            unsigned = view.dtype[0] in "ub"
            low, high = (0, 1 << bits) if unsigned else (-(1 << bits - 1), 1 << bits - 1)
            out[name] = (T.const(low), T.const(high))
    return out | dict(configuration.bounds)


def rows_of_distinct(configuration: Configuration) -> dict[str, DistinctElements]:
    """The inputs without two equal elements that lie in a row."""
    views = {n: configuration.inputs[n] for n in configuration.distinct}
    rows = {n: v for n, v in views.items() if len(v.shape) == 1 and v.strides == (T.const(1),) and covers(v)}
    limits = {n: configuration.bounds.get(n, (None, None)) for n in rows}
    return {n: _of_distinct(v.shape[0], *limits[n]) for n, v in rows.items()}


def _of_distinct(number: Term, low: Term | None, high: Term | None) -> DistinctElements:
    if low is None or high is None or I.normal(T.sub(T.sub(high, low), number)) is not T.const(0):
        return DistinctElements(number)
    return DistinctElements(number, low, high)


def difference(a: Algebra, left: Term, right: Term, ctx: Context, views: Mapping[str, View]) -> str:
    """Both normal forms, for the message."""
    try:
        x, y = a.normal(left, ctx), a.normal(right, ctx)
    except (Split, TriliftError):
        return ""
    return " against ".join(shortened(words(p.term, views)) for p in (x, y))


def distinct(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    return tuple({c.text: c for c in clauses}.values())

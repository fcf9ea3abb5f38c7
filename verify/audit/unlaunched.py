"""Certain facts about a kernel with unknown launches, at the argument values that are shown.

    an undefined value is stored     by program 0, which is part of every launch
    a product in an address wraps    32 bits hold less than 2^31
    a sum is held in a narrow type   the loop variable has it in every iteration

Each condition is met by numbers, and evaluated on them; what cannot be evaluated is not a finding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trilift.lift.errors import Place, TriliftError
from trilift.lift.runtime.budget import BUDGETS
from trilift.lift.terms import construct as T
from trilift.lift.terms.definedness import left_undefined_at
from trilift.lift.terms.term import FOLDS, Axis, Term
from trilift.lift.ttir.ir import Module, Op, Type, Value

from ..execution.parametric import execute
from ..integers.quotient import replace
from ..integers.solver import Solver
from ..memory.sites import conjuncts
from ..model.program import PIDS, Access, Arithmetic, Program
from .finding import Finding, Step

GRID = tuple(T.pinned(T.size(f"grid{k}")) for k in range(3))
WRAPS = 1 << 31
PARTS = 1000  # of one stored value that are looked at
NARROW = {"f16": ("float16", 11), "bf16": ("bfloat16", 8)}  # significant bits, the hidden one included
SAME = frozenset(
    ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "arith.addi", "arith.subi", "arith.muli",
     "arith.extsi", "arith.extui", "arith.index_cast")
)  # fmt: skip


def findings(module: Module) -> tuple[list[Finding], str]:
    """The findings of the kernel, and why part of it could not be examined ("" where it could)."""
    found = list(narrow_sums(module))
    try:
        program = execute(module, [_operand(v) for v in module.entry.args], (GRID[0], GRID[1], GRID[2]))
    except (TriliftError, RecursionError) as e:
        return found, e.what if isinstance(e, TriliftError) else "the terms are nested too deeply"
    return [*undefined_stores(program), *wrapping_products(program), *found], ""


def _operand(v: Value) -> Term | int:
    """A symbol for each number."""
    return 0 if v.type.element == "ptr" else symbol(v)


def symbol(v: Value) -> Term:
    """The symbol of a launch argument."""
    name = v.name.removeprefix("%")
    return T.size(name) if v.type.is_int and v.type.element != "i1" else T.scalar(name, _kind(v.type))


def _kind(t: Type) -> str:
    return T.BOOL if t.element == "i1" else T.REAL


def integers(program: Program) -> list[Value]:
    """The launch arguments that are integers."""
    return [v for v in program.module.entry.args if v.type.is_int and v.type.element != "i1"]


# ---- undefined values ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a value that decides it, and the condition under which it does."""

    term: Term
    conditions: tuple[Term, ...]
    bound: tuple[Axis, ...]


def undefined_stores(program: Program) -> Iterator[Finding]:
    """Loads whose lanes without a value are stored by the first program: one finding for each load."""
    solver, told = Solver(resources=BUDGETS.audit.question_resources), set[str]()
    for store in program.accesses:
        if store.kind != "store" or store.value is None:
            continue
        for part in _undefined(store.value):
            label = str(part.term.attr)
            place = left_undefined_at(label)
            if label in told or place is None:
                continue
            numbers = _witness(program, store, part, solver)
            if numbers is not None:
                told.add(label)
                yield _undefined_store(store, label, place, numbers)


def _undefined(value: Term) -> Iterator[_Part]:
    """The undefined parts of a value that make all of it undefined."""
    todo, seen = [_Part(value, (), ())], 0
    while todo and seen < PARTS:
        part, seen = todo.pop(), seen + 1
        t = part.term
        if t.op == "undef":
            yield part
        elif t.op == "where":
            todo.append(_Part(t.args[2], (*part.conditions, T.make("not", t.args[0])), part.bound))
            todo.append(_Part(t.args[1], (*part.conditions, t.args[0]), part.bound))
        elif t.op in FOLDS and t.attr not in part.bound:
            todo.append(_Part(t.args[0], part.conditions, (*part.bound, t.attr)))
        elif _strict(t):
            todo += [_Part(a, part.conditions, part.bound) for a in t.args if a.type == T.REAL]


def _strict(t: Term) -> bool:
    """Whether an undefined operand makes the result undefined: of a product, unless another factor may be a mask."""
    if t.op in ("read", "carry", "opaque", "pointer"):
        return False
    return t.op != "mul" or not any(s.op == "where" and s.args[1].is_const for a in t.args for s in a.walk())


def _witness(program: Program, store: Access, part: _Part, solver: Solver) -> dict[str, int] | None:
    """Numbers of the integer arguments at which program 0 stores that part."""
    arguments = [symbol(v) for v in integers(program)]
    loops = store.loops
    if not part.conditions or not _uses(_around(store, part), arguments) <= _uses(part.conditions[-1:], arguments):
        return None  # a host function may relate them to the arguments of the mask
    axes = [*store.lanes, *(o.counter for o in loops), *part.bound]
    facts = [T.make("eq", p, 0) for p in PIDS]
    facts += [c for s in arguments for c in (T.make("le", 1, s), T.make("lt", s, WRAPS))]
    facts += [c for a in axes for c in (T.make("le", 0, T.axis(a)), T.make("lt", T.axis(a), a.size))]
    facts += [store.guard, *part.conditions, *(o.guard for o in loops)]
    facts += [a.term for a in program.arithmetic if a.kind == "assume"]
    at_zero = {p: T.const(0) for p in PIDS}
    wanted = [replace(f, at_zero) for f in conjuncts(facts)]
    if any(w is T.const(False) or not _decidable(w, {*arguments, *map(T.axis, axes)}) for w in wanted):
        return None
    try:
        model = solver.model([w for w in wanted if w is not T.const(True)])
    except (TriliftError, RecursionError):
        return None
    if model is None:
        return None
    numbers: dict[Term, Term] = {s: T.const(model.get(repr(s), 1)) for s in arguments}
    numbers |= {T.axis(a): T.const(model.get(repr(T.axis(a)), 0)) for a in axes}
    if not all(replace(w, numbers) is T.const(True) for w in wanted):
        return None
    return {repr(s): int(numbers[s].attr) for s in arguments if s in _uses(part.conditions, arguments)}


def _around(store: Access, part: _Part) -> list[Term]:
    """The conditions of the store, besides the mask of the load."""
    return [store.guard, *part.conditions[:-1], *(t for o in store.loops for t in (o.guard, o.trips))]


def _uses(terms: Iterable[Term], arguments: Collection[Term]) -> set[Term]:
    """The arguments that the terms are about."""
    return {s for t in terms for s in t.walk() if s in arguments}


def _decidable(t: Term, known: set[Term]) -> bool:
    """Whether it is about integers that are known."""
    return all(s.args or s.is_const or s in known for s in t.walk()) and not any(
        s.op in ("read", "carry", "opaque", "undef", "pointer", "trips") for s in t.walk()
    )


def _undefined_store(store: Access, label: str, place: Place, numbers: Mapping[str, int]) -> Finding:
    is_load = label.startswith("masked load")
    return Finding(
        "undefined-value",
        ("the masked load has no `other`" if is_load else "the operation leaves lanes undefined")
        + ", and lanes without a value are stored",
        place,
        {**numbers, "program": "0, 0, 0"},
        "pass other= to the load, or mask the values that depend on it" if is_load else "mask what depends on them",
        steps=(Step(store.place, "the stored value depends on them"),),
    )


# ---- integers that wrap ----------------------------------------------------------------------------------------------


def wrapping_products(program: Program) -> Iterator[Finding]:
    """Products of a program id with an argument, in 32 bits, that are part of an address: one finding for all."""
    found: dict[Place | None, tuple[Arithmetic, dict[str, int]]] = {}
    for a in program.arithmetic:
        if a.kind != "wrap" or a.bits != 32 or a.op.name != "arith.muli" or a.op.place in found:
            continue
        numbers = _overflow(program, a)
        if numbers is not None and _in_address(program.module, a.op):
            found[a.op.place] = a, numbers
    if found:
        yield _wrapping(list(found.values()))


def _overflow(program: Program, a: Arithmetic) -> dict[str, int] | None:
    """A program id and an argument at which the product is 2^31 or more."""
    factors = a.term.args if a.term.op == "mul" else ()
    ids = [p for p in PIDS if any(p in f.walk() for f in factors)]
    arguments = [symbol(v) for v in integers(program) if v.type.bits == 32]
    strides = [f for f in factors if f in arguments]
    if len(ids) != 1 or len(strides) != 1:
        return None
    assumed = [x.term for x in program.arithmetic if x.kind == "assume"]
    held = {T.axis(x): T.const(0) for x in (*a.lanes, *(o.counter for o in a.loops))}
    for others in (1, 1 << 30):
        numbers = {s: T.const(others) for s in arguments} | held | {p: T.const(0) for p in PIDS}
        for exponent in range(16, 31):
            numbers |= {strides[0]: T.const(1 << exponent), ids[0]: T.const(1 << 31 - exponent)}
            value = replace(a.term, numbers)
            reached = [replace(g, numbers) for g in (a.guard, *(o.guard for o in a.loops), *assumed)]
            if value.is_const and value.attr >= WRAPS and all(g is T.const(True) for g in reached):
                return {repr(strides[0]): 1 << exponent, f"program_id({PIDS.index(ids[0])})": 1 << 31 - exponent}
    return None


def _in_address(module: Module, op: Op) -> bool:
    """Whether the result of an operation goes into a pointer by additions and products alone."""
    users: dict[Value, list[Op]] = {}
    for o in module.walk():
        for v in o.operands:
            users.setdefault(v, []).append(o)
    todo, seen = list(op.results), set[Value]()
    while todo:
        v = todo.pop()
        if v in seen:
            continue
        seen.add(v)
        for user in users.get(v, ()):
            if user.name == "tt.addptr" and v is user.operands[1]:
                return True
            if user.name in SAME:
                todo += user.results
    return False


def _wrapping(found: Sequence[tuple[Arithmetic, Mapping[str, int]]]) -> Finding:
    """At the first of them; the others are steps."""
    (a, numbers), *others = found
    return Finding(
        "int32-overflow",
        f"{_product(numbers)} is an int32 in an address, and wraps from 2^31 on",
        a.op.place,
        dict(numbers),
        "convert the program id with .to(tl.int64) before multiplying",
        steps=tuple(Step(o.op.place, f"so does {_product(n)}") for o, n in others),
    )


def _product(numbers: Mapping[str, int]) -> str:
    stride, program = numbers
    return f"{program} * {stride}"


# ---- narrow sums -----------------------------------------------------------------------------------------------------


def narrow_sums(module: Module) -> Iterator[Finding]:
    """Loop variables in 16 bits to which every iteration adds."""
    for op in module.walk():
        if op.name != "scf.for" or not op.regions or not op.regions[0].blocks:
            continue
        block = op.regions[0].blocks[0]
        last = block.ops[-1] if block.ops else None
        for carried, after in zip(block.args[1:], last.operands if last else (), strict=False):
            add = after.owner if isinstance(after.owner, Op) else None
            if carried.type.element in NARROW and add is not None and _adds(add, carried):
                yield _narrow_sum(carried, add)


def _adds(op: Op, carried: Value) -> bool:
    """Whether an operation adds to the loop variable: x + y, or a matrix product with it as accumulator."""
    if op.name == "arith.addf":
        return carried in op.operands
    return op.name == "tt.dot" and len(op.operands) > 2 and op.operands[2] is carried


def _narrow_sum(carried: Value, add: Op) -> Finding:
    dtype, bits = NARROW[carried.type.element]
    return Finding(
        "precision-loss",
        f"the loop adds up in {dtype}: a sum of {1 << bits} does not change when 1 is added",
        add.place,
        {},
        "make the accumulator float32 and convert the result",
    )

"""Philox random numbers as one operation: `random_bits(seed, offset)`, and `random(seed, offset)` in [0, 1).

Triton inlines tl.rand as ten rounds of integer operations (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"):

    c0, c1, c2, c3 = mulhi(B, c2) ^ c1 ^ k0,  B * c2,  mulhi(A, c0) ^ c3 ^ k1,  A * c0;    k0, k1 = k0 + KEY_A, k1 + KEY_B

A group of operations with this shape is run on random counters and keys; if it computes Philox it becomes one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import term as T
from .domain import FLOAT64, Ids, on_distinct
from .generator import KEY_A, KEY_B, ROUND_A, ROUND_B, philox, uniform
from .handlers import handles, typed
from .ir import Block, Function, Module, Op, Region, Value
from .memory import Memory

if TYPE_CHECKING:
    from .interpret import Run

MULTIPLIERS = {ROUND_A, ROUND_B}
SHAPE_OPS = {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape"}
UNIFORM_OPS = {
    "arith.mulf",
    "arith.sitofp",
    "arith.select",
    "arith.cmpi",
    "arith.xori",
    "arith.subi",
    "arith.muli",
    "tt.bitcast",
    *SHAPE_OPS,
}
SAMPLES = 16


def named(module: Module) -> Module:
    """The module with its Philox groups as operations `trilift.random_bits` and `trilift.random`; itself if it has none."""
    known = _named.get(id(module))
    if known is None:
        known = _named[id(module)] = (module, _named_module(module))
    return known[1]


_named: dict[int, tuple[Module, Module]] = {}


def _named_module(module: Module) -> Module:
    if not any(op.name == "tt.mulhiui" and _multiplier(op) for op in module.walk()):
        return module
    users = _users(module)
    found: dict[Value, Op] = {}
    for op in module.walk():
        if op.name in ("arith.xori", "arith.muli") and any(_outside(user) for user in users.get(op.results[0], ())):
            group = match(op.results[0])
            if group is not None:
                found[op.results[0]] = Op(
                    "trilift.random_bits", group.operands(), op.results, group.attrs(), frames=op.frames
                )
    for op in module.walk():
        if op.name == "arith.mulf" and (bits := _uniform_of(op.results[0], found)) is not None:
            source = found[bits]
            found[op.results[0]] = Op("trilift.random", source.operands, op.results, source.attrs, frames=op.frames)
    return _replaced(module, found) if found else module


# ---- the shape of a group -----------------------------------------------------------------------------------------------


def constant(v: Value) -> int | None:
    """The number of a constant value (of a tensor, if all elements are equal)."""
    op = v.owner
    while isinstance(op, Op) and op.name in SHAPE_OPS:
        op = op.operands[0].owner
    if not isinstance(op, Op) or op.name != "arith.constant" or isinstance(op.attrs["value"], np.ndarray | float):
        return None
    return int(op.attrs["value"]) & 0xFFFFFFFF


def _multiplier(op: Op) -> tuple[int, Value] | None:
    """(A or B, the other operand) of a product with a round constant."""
    a, b = op.operands
    for x, y in ((a, b), (b, a)):
        if (c := constant(x)) in MULTIPLIERS and c is not None:
            return c, y
    return None


def _outside(op: Op) -> bool:
    """Not a round: something that uses random bits."""
    if op.name == "arith.xori":
        return any(constant(v) == 0xFFFFFFFF for v in op.operands)
    return not (op.name in ("arith.muli", "tt.mulhiui") and _multiplier(op))


def _users(module: Module) -> dict[Value, list[Op]]:
    out: dict[Value, list[Op]] = {}
    for op in module.walk():
        for v in op.operands:
            out.setdefault(v, []).append(op)
        for _, passed in op.successors:
            for v in passed:
                out.setdefault(v, []).append(op)
    return out


@dataclass(slots=True)
class Group:
    """Backward from one output: the operations of the rounds, what they multiply first, and the keys they are mixed with."""

    output: Value
    ops: set[Op] = field(default_factory=set)
    counters: dict[int, Value] = field(default_factory=dict)  # by round constant: A takes c0, B takes c2
    mixed: list[Value] = field(default_factory=list)  # keys, and first values of c1 and c3
    rounds: int = 0
    word: int = 0
    keys: tuple[Value | None, Value | None] = (None, None)
    rest: tuple[Value | None, Value | None] = (None, None)  # c1, c3

    def attrs(self) -> dict[str, Any]:
        present = [v is not None for v in self.slots()]
        return {"word": self.word, "rounds": self.rounds, "present": tuple(present)}

    def slots(self) -> list[Value | None]:
        c1, c3 = self.rest
        return [*self.keys, self.counters.get(ROUND_A), c1, self.counters.get(ROUND_B), c3]

    def operands(self) -> list[Value]:
        return [v for v in self.slots() if v is not None]


def match(output: Value) -> Group | None:
    """The Philox group whose output this value is: shape first, then the numbers."""
    group = Group(output)
    depth = _collect(group, output, 0)
    if depth is None or not 4 <= depth <= 16:
        return None
    group.rounds, group.word = depth, _word(output)
    for keys, rest in _roles(group):
        group.keys, group.rest = keys, rest
        if _computes_philox(group):
            return group
    return None


def _word(output: Value) -> int:
    """Which of c0..c3 has this shape: mulhi(B, .) ^ ..., B * ., mulhi(A, .) ^ ..., A * ."""
    todo, op = [output], output.owner
    while todo:
        op = todo.pop().owner
        if isinstance(op, Op) and op.name == "arith.xori":
            todo.extend(op.operands)
        elif isinstance(op, Op) and op.name == "tt.mulhiui" and (found := _multiplier(op)):
            return 0 if found[0] == ROUND_B else 2
    found = _multiplier(output.owner) if isinstance(output.owner, Op) else None
    return 1 if found and found[0] == ROUND_B else 3


def _collect(group: Group, v: Value, depth: int) -> int | None:
    """Walk the rounds backwards; the number of rounds, None for something else."""
    op = v.owner
    if not isinstance(op, Op) or op in group.ops:
        return depth
    if op.name in ("arith.muli", "tt.mulhiui") and (found := _multiplier(op)):
        group.ops.add(op)
        multiplier, x = found
        if _is_round(x):
            return _collect(group, x, depth + 1)
        if group.counters.setdefault(multiplier, x) is not x:
            return None
        return depth + 1
    if op.name == "arith.xori":
        group.ops.add(op)
        deepest = 0
        for x in op.operands:
            below = _collect(group, x, depth)
            if below is None:
                return None
            deepest = max(deepest, below)
        return deepest
    if v not in group.mixed:
        group.mixed.append(v)
    return depth


def _is_round(v: Value) -> bool:
    """An exclusive or with a high product in it."""
    op = v.owner
    if not isinstance(op, Op):
        return False
    if op.name == "arith.xori":
        return any(_is_round(x) for x in op.operands)
    return op.name == "tt.mulhiui" and _multiplier(op) is not None


def _split_key(v: Value) -> tuple[Value, int]:
    """(base, constant) of a key base + constant."""
    op = v.owner
    while isinstance(op, Op) and op.name in SHAPE_OPS:
        v, op = op.operands[0], op.operands[0].owner
    if isinstance(op, Op) and op.name == "arith.addi":
        for x, y in (op.operands, op.operands[::-1]):
            if (c := constant(y)) is not None:
                return x, c
    return v, 0


def _roles(group: Group) -> Iterator[tuple[Any, Any]]:
    """Which mixed values are the first keys, and which the first c1 and c3: each key schedule starts at one of them."""
    schedules = ([i * KEY_A & 0xFFFFFFFF for i in range(16)], [i * KEY_B & 0xFFFFFFFF for i in range(16)])
    starts: list[list[Value]] = []
    covered: set[Value] = set()
    for schedule in schedules:
        found = []
        for v in group.mixed:
            base, c = _split_key(v)
            steps = {_split_key(w)[1] - c & 0xFFFFFFFF: w for w in group.mixed if _split_key(w)[0] is base}
            later = [steps[s] for s in schedule[1:] if s in steps]
            if len(later) >= 2 and -schedule[1] & 0xFFFFFFFF not in steps:
                found.append(v)
                covered |= {v, *later}
        starts.append(found)
    rest: list[Value | None] = [v for v in group.mixed if v not in covered]
    for k0 in starts[0]:
        for k1 in starts[1]:
            for c1, c3 in {0: [(None, None)], 1: [(rest[0], None), (None, rest[0])] if rest else []}.get(
                len(rest), [(rest[0], rest[1]), (rest[1], rest[0])] if len(rest) == 2 else []
            ):
                yield (k0, k1), (c1, c3)


def _computes_philox(group: Group) -> bool:
    """Run the group on random numbers and compare with the generator."""
    rng = np.random.default_rng(0)
    draw = lambda: rng.integers(-(2**31), 2**31, SAMPLES).astype(np.int32)  # noqa: E731
    values: dict[Value, Any] = {}
    slots: list[np.ndarray] = []
    for v in group.slots():
        known = None if v is None else constant(v)
        slots.append(
            np.zeros(SAMPLES, np.int32)
            if v is None
            else draw()
            if known is None
            else np.full(SAMPLES, known).astype(np.int32)
        )
        if v is not None and v not in values:
            values[v] = slots[-1]
        elif v is not None:
            slots[-1] = values[v]
    bases = {}
    for key in group.keys:
        assert key is not None
        base, c = _split_key(key)
        bases[base] = (values[key].astype(np.int64) - c).astype(np.int32)
    for v in group.mixed:
        base, c = _split_key(v)
        if v not in values and base in bases:
            values[v] = (bases[base].astype(np.int64) + c).astype(np.int32)
    with np.errstate(all="ignore"):
        got = _evaluate(group.output, group.ops, values)
    return got is not None and np.array_equal(got, philox(*slots, group.rounds)[group.word])


def _evaluate(output: Value, ops: set[Op], values: dict[Value, Any]) -> np.ndarray | None:
    """The output of a group of elementwise operations for given numbers of its leaves; None if a leaf is missing."""
    from .interpret import Run

    run = Run(Module({}, None, ""), FLOAT64, Memory(FLOAT64))  # type: ignore[arg-type]
    run.env = dict(values)

    def value(v: Value) -> bool:
        if v in run.env:
            return True
        op = v.owner
        if (c := constant(v)) is not None:
            run.env[v] = np.int64(c).astype(f"i{v.type.bits // 8}") if v.type.element != "i1" else np.bool_(c)
        elif isinstance(op, Op) and op.name == "arith.constant":
            run.env[v] = np.float64(op.attrs["value"])
        elif isinstance(op, Op) and op.name in SHAPE_OPS and value(op.operands[0]):
            run.env[v] = run.env[op.operands[0]]
        elif isinstance(op, Op) and op in ops and all(value(x) for x in op.operands):
            run.step(op)
        else:
            return False
        return True

    return np.asarray(run.env[output]) if value(output) else None


def _uniform_of(v: Value, found: dict[Value, Op]) -> Value | None:
    """The random bits that v makes a number in [0, 1) of, if it does."""
    ops: set[Op] = set()
    sources: set[Value] = set()
    todo = [v]
    while todo:
        x = todo.pop()
        op = x.owner
        if x in found:
            sources.add(x)
        elif isinstance(op, Op) and op.name in UNIFORM_OPS:
            ops.add(op)
            todo.extend(op.operands)
        elif not (isinstance(op, Op) and op.name == "arith.constant"):
            return None
    if len(sources) != 1:
        return None
    (bits,) = sources
    numbers = np.random.default_rng(1).integers(-(2**31), 2**31, SAMPLES).astype(np.int32)
    got = _evaluate(v, ops, {bits: numbers})
    return bits if got is not None and np.allclose(got, uniform(numbers), rtol=1e-12) else None


# ---- the rewritten module -----------------------------------------------------------------------------------------------


def _replaced(module: Module, found: dict[Value, Op]) -> Module:
    """A copy with the named operations; what only the groups used is gone."""
    rewrite: Callable[[Op], Op] = lambda op: found.get(op.results[0], op) if len(op.results) == 1 else op  # noqa: E731
    needed: set[Value] = set()
    blocks = [b for f in module.functions.values() for b in _blocks(f.body)]
    keep: set[Op] = set()
    changed = True
    while changed:
        changed = False
        for block in blocks:
            for op in block.ops:
                new = rewrite(op)
                if op not in keep and (not _pure(new) or any(r in needed for r in new.results)):
                    keep.add(op)
                    needed.update(new.operands, *(passed for _, passed in new.successors))
                    changed = True

    def copy(region: Region) -> Region:
        return Region(
            [Block(b.label, b.args, [operation(rewrite(op)) for op in b.ops if op in keep]) for b in region.blocks]
        )

    def operation(op: Op) -> Op:
        if not op.regions:
            return op
        return Op(op.name, op.operands, op.results, op.attrs, [copy(r) for r in op.regions], op.successors, op.frames)

    functions = {n: Function(f.name, f.args, f.results, copy(f.body), f.public) for n, f in module.functions.items()}
    return Module(functions, functions[module.entry.name], module.text)


def _blocks(region: Region) -> Iterator[Block]:
    for block in region.blocks:
        yield block
        for op in block.ops:
            for inner in op.regions:
                yield from _blocks(inner)


def _pure(op: Op) -> bool:
    return op.name.startswith(("arith.", "math.", "trilift.")) or op.name in SHAPE_OPS or op.name == "tt.mulhiui"


# ---- execution ----------------------------------------------------------------------------------------------------------


@handles("trilift.random_bits", "trilift.random")
def _random(run: Run, op: Op, *xs: Any) -> Any:
    """The generator's numbers in the float64 domain; on terms random(seed, offset, ...), whatever the numbers are."""
    given = iter(xs)
    slots = [next(given) if p else np.int32(0) for p in op.attrs["present"]]
    shape = op.results[0].type.shape
    if run.domain is FLOAT64:
        words = philox(*(np.asarray(s) for s in slots), op.attrs["rounds"])
        out = words[op.attrs["word"]]
        return np.broadcast_to(uniform(out) if op.name == "trilift.random" else out, shape)
    low, high, c0, *rest = slots
    seed = _seed(low, high)
    name = op.name.removeprefix("trilift.")
    numbers = [*rest, np.int32(op.attrs["word"]), np.int32(op.attrs["rounds"])]
    plain = not any(isinstance(x, Ids) or np.any(x) for x in numbers[:4]) and op.attrs["rounds"] == 10
    args = [seed, c0] if plain else [seed, c0, *numbers]
    out = run.domain.apply(name, *args)
    return typed(out.map(lambda a: np.broadcast_to(a, shape)), op)


def _seed(low: Any, high: Any) -> Any:
    """The 64-bit seed of two 32-bit keys."""
    if not (isinstance(low, Ids) or isinstance(high, Ids)):
        return (np.asarray(low).astype(np.int64) & 0xFFFFFFFF) | (np.asarray(high).astype(np.int64) << 32)
    return on_distinct(_seed_term, low, high)


def _seed_term(low: T.Term, high: T.Term) -> T.Term:
    """s for the halves bitand(s, 2^32 - 1) and bitand(s >> 32, 2^32 - 1)."""
    whole = [a for a in low.args if not a.is_const] if low.op == "bitand" else [low]
    if len(whole) == 1 and (high.is_const or any(whole[0] in x.walk() for x in (high,))):
        return whole[0]
    return T.add(low, T.mul(1 << 32, high))

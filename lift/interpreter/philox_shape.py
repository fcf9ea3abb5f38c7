"""The shape of inlined Philox: from one output backwards to keys and counters, confirmed by its numbers.

    c0, c1, c2, c3 = mulhi(B, c2) ^ c1 ^ k0,  B * c2,  mulhi(A, c0) ^ c3 ^ k1,  A * c0
    k0, k1 = k0 + KEY_A, k1 + KEY_B

(Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".) A group of operations that looks like these rounds
is run on random counters and keys; it is Philox if it computes what the generator does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from ..terms.domain import FLOAT64
from ..terms.philox_words import KEY_A, KEY_B, ROUND_A, ROUND_B, philox
from ..ttir.ir import Module, Op, Value
from .memory import Memory

MULTIPLIERS = {ROUND_A, ROUND_B}
SHAPE_OPS = {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape"}
SAMPLES = 16


def constant(v: Value) -> int | None:
    """The number of a constant value (of a tensor, if all elements are equal)."""
    op = v.owner
    while isinstance(op, Op) and op.name in SHAPE_OPS:
        op = op.operands[0].owner
    if not isinstance(op, Op) or op.name != "arith.constant" or isinstance(op.attrs["value"], np.ndarray | float):
        return None
    return int(op.attrs["value"]) & 0xFFFFFFFF


def multiplier(op: Op) -> tuple[int, Value] | None:
    """(A or B, the other operand) of a product with a round constant."""
    a, b = op.operands
    for x, y in ((a, b), (b, a)):
        if (c := constant(x)) in MULTIPLIERS and c is not None:
            return c, y
    return None


@dataclass(slots=True)
class Group:
    """Backward from one output: the operations of the rounds, what they multiply first, and the keys they are mixed
    with."""

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
        elif isinstance(op, Op) and op.name == "tt.mulhiui" and (found := multiplier(op)):
            return 0 if found[0] == ROUND_B else 2
    found = multiplier(output.owner) if isinstance(output.owner, Op) else None
    return 1 if found and found[0] == ROUND_B else 3


def _collect(group: Group, v: Value, depth: int) -> int | None:
    """Walk the rounds backwards; the number of rounds, None for something else."""
    op = v.owner
    if not isinstance(op, Op) or op in group.ops:
        return depth
    if op.name in ("arith.muli", "tt.mulhiui") and (found := multiplier(op)):
        group.ops.add(op)
        factor, x = found
        if _is_round(x):
            return _collect(group, x, depth + 1)
        if group.counters.setdefault(factor, x) is not x:
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
    return op.name == "tt.mulhiui" and multiplier(op) is not None


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
            for c1, c3 in permutations([*rest, None, None][: max(2, len(rest))], 2) if len(rest) <= 2 else ():
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
        got = evaluated(group.output, group.ops, values)
    return got is not None and np.array_equal(got, philox(slots, group.rounds)[group.word])


def evaluated(output: Value, ops: set[Op], values: dict[Value, Any]) -> np.ndarray | None:
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

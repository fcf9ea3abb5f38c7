"""Random numbers as one operation: `trilift.random_bits` and, in [0, 1), `trilift.random`, of a seed and an offset.

Triton inlines tl.rand as some hundred integer operations. `named` finds the groups that compute Philox
(lift.interpreter.philox_shape) and gives each its name; on terms they are uninterpreted functions, so that a formula
says random(seed, n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.session import table
from ..terms import construct as T
from ..terms.domain import Ids, Symbolic, on_distinct
from ..terms.philox_words import philox, uniform
from ..ttir.ir import Block, Function, Module, Op, Region, Value, users
from .philox_shape import SAMPLES, SHAPE_OPS, constant, evaluated, match, multiplier
from .registry import handles, typed

if TYPE_CHECKING:
    from .interpret import Run

UNIFORM_OPS = {
    "arith.mulf",
    "arith.sitofp",
    "arith.select",
    "arith.cmpi",
    "arith.xori",
    "arith.subi",
    "arith.muli",
    "tt.bitcast",
}
UNIFORM_OPS |= SHAPE_OPS


def named(module: Module) -> Module:
    """The module with its Philox groups as operations `trilift.random_bits` and `trilift.random`; itself if it has
    none."""
    known = _named.get(id(module))
    if known is None:
        known = _named[id(module)] = (module, _named_module(module))
    return known[1]


_named: dict[int, tuple[Module, Module]] = table("random_numbers.named", {})


def _named_module(module: Module) -> Module:
    if not any(op.name == "tt.mulhiui" and multiplier(op) for op in module.walk()):
        return module
    used = users(module.walk())
    found: dict[Value, Op] = {}
    for op in module.walk():
        if op.name in ("arith.xori", "arith.muli") and any(_outside(user) for user in used.get(op.results[0], ())):
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


def _outside(op: Op) -> bool:
    """Not a round: something that uses random bits."""
    if op.name == "arith.xori":
        return any(constant(v) == 0xFFFFFFFF for v in op.operands)
    return not (op.name in ("arith.muli", "tt.mulhiui") and multiplier(op))


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
    got = evaluated(v, ops, {bits: numbers})
    return bits if got is not None and np.allclose(got, uniform(numbers), rtol=1e-12) else None


# ---- the rewritten module --------------------------------------------------------------------------------------------


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


# ---- execution -------------------------------------------------------------------------------------------------------


@handles("trilift.random_bits", "trilift.random")
def _random(run: Run, op: Op, *xs: Any) -> Any:
    """The generator's numbers in the float64 domain; on terms random(seed, offset, ...), whatever the numbers are."""
    given = iter(xs)
    slots = [next(given) if p else np.int32(0) for p in op.attrs["present"]]
    shape = op.results[0].type.shape
    if not isinstance(run.domain, Symbolic):
        words = philox(slots, op.attrs["rounds"])
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

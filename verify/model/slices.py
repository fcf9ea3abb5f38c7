"""The operations on which a value of the IR may depend: operations backwards, through loops, branches and blocks."""

from __future__ import annotations

from collections.abc import Iterable

from trilift.lift.ttir.ir import Block, Module, Op, Value


def ancestors(values: Iterable[Value], parents: dict[Block, Op] | None = None) -> set[Op]:
    """Every operation that one of the values may depend on. A block's argument depends on all operands of what holds
    the block, and on what its blocks end with; without `parents` on nothing."""
    seen: set[Op] = set()
    todo, known = list(values), set()
    while todo:
        v = todo.pop()
        if v in known:
            continue
        known.add(v)
        op = v.owner if isinstance(v.owner, Op) else (parents or {}).get(v.owner) if v.owner is not None else None
        if op is None or op in seen:
            continue
        seen.add(op)
        todo += op.operands
        for region in op.regions:
            for block in region.blocks:
                todo += [x for last in block.ops[-1:] for x in last.operands]
    return seen


def parents(module: Module) -> dict[Block, Op]:
    """The operation that holds each block."""
    return {b: op for op in module.walk() for r in op.regions for b in r.blocks}

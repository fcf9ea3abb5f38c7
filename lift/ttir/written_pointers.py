"""Which pointers a kernel may write through, from its IR alone."""

from __future__ import annotations

from .ir import Module, Op, Value

WRITERS = {"tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_store", "tt.descriptor_reduce"}
SAME_POINTER = {"tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.bitcast", "tt.reshape", "tt.trans"}


def written(module: Module) -> frozenset[int] | None:
    """The positions in `module.entry.args` of the pointers that stores and atomics go to; None where one cannot be
    traced back to an argument (loop-carried, loaded, passed to a function), so that any memory may be written."""
    if len(module.functions) > 1:
        return None
    roots = [_root(op.operands[0]) for op in module.walk() if op.name in WRITERS]
    position = {id(v): k for k, v in enumerate(module.entry.args)}
    found = [position.get(id(v)) for v in roots]
    return None if None in found else frozenset(k for k in found if k is not None)


def _root(v: Value) -> Value:
    """The value whose address, moved, v is."""
    while isinstance(v.owner, Op) and v.owner.name in SAME_POINTER:
        v = v.owner.operands[0]
    return v

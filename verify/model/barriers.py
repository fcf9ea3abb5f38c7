"""The operations at which the threads of a program wait for one another, and see what the others stored.

tl.debug_barrier() is `gpu.barrier` up to Triton 3.6, `ttg.barrier all` from 3.7 on: bar.sync of PTX. A `ttg.barrier` of
shared memory alone does not order accesses to global memory.
"""

from __future__ import annotations

from trilift.lift.ttir.ir import Module, Op

BARRIERS = frozenset(("gpu.barrier", "ttg.barrier", "tt.debug_barrier", "ttg.debug_barrier"))
GLOBAL = 0b110  # the address spaces of ttg.barrier: reads of global memory, and writes


def joins_global_memory(op: Op) -> bool:
    """Whether what any thread of the program did to global memory before it comes before all that is after it."""
    spaces = op.attrs.get("addrSpace", GLOBAL)
    return op.name in BARRIERS and isinstance(spaces, int) and spaces & GLOBAL == GLOBAL


def pipelined(loop: Op) -> bool:
    """Whether Triton may load for later iterations of the loop before it stores for earlier ones: with num_stages of
    tl.range, or where loads feed tl.dot (then the launch's num_stages says so)."""
    stages = loop.attrs.get("tt.num_stages")
    if stages is not None:
        return int(stages) > 1
    return loop.name == "scf.for" and any(op.name == "tt.dot" for op in loop.walk())


def within_program(op: Op) -> bool:
    """Whether an atomic operation is atomic for the threads of one program only: scope .cta of PTX's atom."""
    return op.name.startswith("tt.atomic") and op.attrs.get("scope") == "cta"


def reorders(module: Module, op: Op) -> bool:
    """Whether the compiler may put the elements of the result in any order, tl.cat or a reshape that allows it, and
    they go anywhere but into reductions of all of them."""
    if op.name != "tt.cat" and not (op.name == "tt.reshape" and op.attrs.get("allow_reorder")):
        return False
    users = (o for o in module.walk() if op.results[0] in o.operands)
    reduced = all(o.name == "tt.reduce" and len(o.operands) == 1 for o in users)
    return len(op.results[0].type.shape) != 1 or not reduced

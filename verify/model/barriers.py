"""The operations at which the threads of a program wait for one another, and see what the others stored.

tl.debug_barrier() is `gpu.barrier` up to Triton 3.6, `ttg.barrier all` from 3.7 on: bar.sync of PTX. A `ttg.barrier` of
shared memory alone does not order accesses to global memory.
"""

from __future__ import annotations

from trilift.lift.ttir.ir import Op

BARRIERS = frozenset(("gpu.barrier", "ttg.barrier", "tt.debug_barrier", "ttg.debug_barrier"))
GLOBAL = 0b110  # the address spaces of ttg.barrier: reads of global memory, and writes


def joins_global_memory(op: Op) -> bool:
    """Whether what any thread of the program did to global memory before it comes before all that is after it."""
    spaces = op.attrs.get("addrSpace", GLOBAL)
    return op.name in BARRIERS and isinstance(spaces, int) and spaces & GLOBAL == GLOBAL

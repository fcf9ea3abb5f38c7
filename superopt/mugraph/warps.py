"""How many warps share the tiles of a block.

A thread has 255 registers of 32 bits at most; what does not fit is kept in memory, which costs more than the kernel
gains. The tiles that a kernel makes say how many threads it needs, and which tiles are too large; what the compiler did
with them says whether that sufficed (`superopt.accept.acceptance`), and `wider` gives a kernel more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from .graph import Kernel, MuGraph

FEWEST_WARPS, MOST_WARPS = 4, 16
MOST_PRODUCT_WARPS = 8
LANES = 32  # threads of a warp
PRODUCT_ROWS = 16  # of the result of a product, that a warp makes at a time
PRODUCT_ELEMENTS = 128  # of the results of products in one loop, of one thread: half of its registers
ROW_ELEMENTS = 16  # of the largest tile of a kernel without products, of one thread


def warps(k: Kernel) -> int:
    """A power of two, as few as hold the tiles of a kernel in registers."""
    elements = {o.out: math.prod(k.extent(d) for d in o.dims) for o in k.operators if o.op != "store"}
    products = [o for o in k.operators if o.op == "dot"]
    if not products:
        return _power(max(elements.values(), default=1) / ROW_ELEMENTS / LANES, MOST_WARPS)
    held = Counter[bool]()
    for o in products:
        held[o.inside] += elements[o.out]
    rows = min((k.extent(d) for o in products for d in o.dims if k.extent(d) > 1), default=1)
    return _power(max(held.values()) / PRODUCT_ELEMENTS / LANES, min(MOST_PRODUCT_WARPS, rows // PRODUCT_ROWS))


def _power(enough: float, most: int) -> int:
    return max(FEWEST_WARPS, min(most, 1 << math.ceil(math.log2(max(1.0, enough)))))


def wider(g: MuGraph, arranged: MuGraph, kernels: Collection[str]) -> MuGraph | None:
    """The µGraph with twice the warps that these kernels have as it was arranged; None where one may not have them."""
    now = {k.name: k.warps for k in arranged.kernels if k.name in kernels}
    if not now or 2 * max(now.values()) > MOST_WARPS:
        return None
    return replace(g, kernels=tuple(replace(k, warps=2 * now[k.name]) if k.name in now else k for k in g.kernels))

"""The µGraph as it is emitted: layouts, thread graphs, the order of operators, shared memory (Mirage, section 6).

The computed values do not change. The order of operators and that of the dimensions of tensors between kernels are
those
of the emitted file; which bytes a tile has and which of its dimensions is innermost is for the compiler to choose, so
that these say what a block needs, and bound it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..mugraph.cost import H200, Hardware
from ..mugraph.graph import Kernel, MuGraph
from ..mugraph.threads import operators
from ..mugraph.warps import warps
from .layouts import Layouts, laid_out, layouts
from .schedule import Schedule, arranged, given, scheduled
from .shared_memory import Memory, buffers, plan


@dataclass(frozen=True)
class Block:
    """One kernel: the order as `found`, the order that it has, its shared memory, the stages of its loop that fit."""

    found: Schedule
    schedule: Schedule
    memory: Memory
    stages: int

    @property
    def name(self) -> str:
        return self.schedule.kernel.name


@dataclass(frozen=True)
class Arrangement:
    """`graph` has the layouts, orders, thread graphs, warps and stages that were chosen."""

    graph: MuGraph
    layouts: Layouts
    blocks: tuple[Block, ...]

    def __str__(self) -> str:
        """A line for the layouts between kernels, where there are any, and lines for each kernel."""
        lines = [f"between kernels: {self.layouts}"] if self.layouts.orders else []
        return "\n".join([*lines, *(line for b in self.blocks for line in _told(b, self.layouts))])


def arrange(g: MuGraph, hardware: Hardware = H200) -> Arrangement:
    """The best arrangement of a µGraph. Raises Unsupported where a loop has no form that can run."""
    chosen = layouts(g, hardware)
    laid = laid_out(g, chosen)
    laid = replace(laid, kernels=tuple(replace(k, warps=max(k.warps, warps(k))) for k in laid.kernels))
    blocks = tuple(_block(laid, k, hardware.shared) for k in laid.kernels)
    kernels = tuple(replace(arranged(b.schedule), stages=b.stages) for b in blocks)
    return Arrangement(replace(laid, kernels=kernels), chosen, blocks)


def _block(g: MuGraph, k: Kernel, most: int) -> Block:
    """The kernel with as many stages, up to those that it has, as leave its tiles no more than `most` bytes."""
    for stages in range(k.stages, 0, -1):
        s = scheduled(replace(k, stages=stages))
        memory = plan(buffers(g, s))
        if memory.bytes <= most:
            return Block(given(k), s, memory, stages)
    return _block(g, k, plan(buffers(g, scheduled(k))).bytes)  # the compiler says that it is too much


# ---- what is told ----------------------------------------------------------------------------------------------------


def _told(b: Block, chosen: Layouts) -> Iterator[str]:
    s, m = b.schedule, b.memory
    loop = f", {s.barriers_in_loop} in the loop ({b.found.barriers_in_loop})" if s.kernel.loops else ""
    optimal = ", optimal" if m.exact else ""
    yield (
        f"{b.name}: {s.kernel.warps} warps, {s.barriers} barriers ({b.found.barriers} as found){loop}; "
        f"{m.bytes} bytes of shared memory{optimal}, best fit {m.best_fit}, bound {m.bound}"
    )
    tiles = ", ".join(f"{v} {d}" for (name, v), d in chosen.innermost.items() if name == b.name)
    if tiles:
        yield f"{b.name}: innermost {tiles}"


def record(a: Arrangement) -> dict[str, Any]:
    """The arrangement as plain data."""
    return {
        "tensors": {name: list(map(str, dims)) for name, dims in a.layouts.orders.items()},
        "layout_ns": {"chosen": round(a.layouts.cost, 3), "given": round(a.layouts.given, 3)},
        "kernels": [_block_record(b, a.layouts) for b in a.blocks],
    }


def _block_record(b: Block, chosen: Layouts) -> dict[str, Any]:
    m = b.memory
    rows: Sequence[tuple[Any, int]] = list(zip(m.buffers, m.offsets, strict=True))
    tiles = [{"tile": x.name, "offset": at, "bytes": x.size, "copies": x.copies} for x, at in rows]
    return {
        "kernel": b.name,
        "barriers": {"all": b.schedule.barriers, "loop": b.schedule.barriers_in_loop},
        "barriers_found": {"all": b.found.barriers, "loop": b.found.barriers_in_loop},
        "shared": {"bytes": m.bytes, "best_fit": m.best_fit, "bound": m.bound, "optimal": m.exact, "tiles": tiles},
        "threads": [[o.out for o in operators(u)] for u in b.schedule.units if len(operators(u)) > 1],
        "innermost": {v: str(d) for (name, v), d in chosen.innermost.items() if name == b.name},
        "stages": b.stages,
        "warps": b.schedule.kernel.warps,
    }

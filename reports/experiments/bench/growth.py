"""How the time of each stage grows with the block size and with the number of tiles."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trilift.lift.cases.declaration import Case, make_case

from . import kernels

SPECS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "scale": (kernels.scale, {"x": "f32[N]"}),
    "softmax": (kernels.softmax, {"x": "f32[M,N]"}),
    "matmul": (kernels.matmul, {"a": "f32[M,K]", "b": "f32[K,N]"}),
}
BLOCKS = {"scale": (16, 64, 256, 1024), "softmax": (16, 64, 256, 1024), "matmul": (16, 32, 64, 128)}
TILES = {"scale": (1, 2, 4, 8, 16), "matmul": (1, 8, 27, 64)}  # programs times loop steps
Row = tuple[str, ...]


def by_block() -> Iterator[Row]:
    """The same small shape under larger and larger blocks: what masked lanes cost."""
    shapes: Mapping[str, tuple[dict[str, int], dict[str, int]]] = {
        "scale": ({"N": 13}, {"N": 11}),
        "softmax": ({"M": 3, "N": 13}, {"M": 2, "N": 11}),
        "matmul": ({"M": 5, "N": 3, "K": 7}, {"M": 3, "N": 7, "K": 5}),
    }
    _row("scale", 16, 1, shapes["scale"])  # the first run pays for imports
    for name, blocks in BLOCKS.items():
        for block in blocks:
            yield _row(name, block, 1, shapes[name])


def by_tiles() -> Iterator[Row]:
    """The same block over more and more of the tensor: what elements cost."""
    for count in TILES["scale"]:
        yield _row("scale", 16, count, ({"N": 16 * count - 3}, {"N": 16 * count - 5}))
    for count in TILES["matmul"]:
        side = round(count ** (1 / 3)) * 16
        yield _row("matmul", 16, count, tuple({"M": side - d, "N": side - d - 1, "K": side - d - 2} for d in (1, 4)))


def _row(name: str, block: int, tiles: int, shapes: tuple[dict[str, int], ...]) -> Row:
    fn, specs = SPECS[name]
    case = make_case(name, fn, {**specs, "BLOCK": block})
    seconds = stages(case, shapes)
    dims = " ".join(f"{k}={v}" for k, v in shapes[0].items())
    return (name, str(block), str(tiles), dims, *(f"{s:.3f}" for s in seconds))


def stages(case: Case, shapes: tuple[dict[str, int], ...]) -> tuple[float, ...]:
    """Seconds of capture, spec, synthesis and simplify, over all shapes."""
    from trilift.lift.capture.run import capture
    from trilift.lift.replay.execute import spec
    from trilift.lift.simplify.saturation import simplify
    from trilift.lift.synthesis.top_down import synthesise

    traces, capturing = _timed(lambda: [capture(case, dims) for dims in shapes])
    specs, executing = _timed(lambda: [spec(t) for t in traces])
    formulas, finding = _timed(lambda: [synthesise(*of) for of in zip(*specs, strict=True)])
    _, simplifying = _timed(lambda: [simplify(f) for f in formulas])
    return capturing, executing, finding, simplifying


def _timed(f: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    value = f()
    return value, time.perf_counter() - start

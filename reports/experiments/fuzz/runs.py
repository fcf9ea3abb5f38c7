"""The runs of a program: sizes at the edges of tiles, scalars and values at those of their dtypes; and the server that
executes them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from .draws import Planned
from .grammar import Program, Stage

STYLES = ("edge", "random", "small", "zero", "edge", "top")
MANY_TILES = 4  # the run that has more than a few
SCALARS = {"i": (0, -1, 1, 2, -3, 7, 2**31 - 1, -(2**31), 100), "f": (0.0, -1.0, 1.0, 0.5, 2.5, -0.1234567)}
SERVER = Path(__file__).with_name("interpreter_server.py")


@dataclass(frozen=True, slots=True)
class Run:
    """Numbers of the sizes and scalars, and how the values of tensors are drawn."""

    numbers: dict[str, int | float]
    style: str
    seed: int

    def plain(self) -> Planned:
        return {"numbers": self.numbers, "style": self.style, "seed": self.seed}


def planned(p: Program, seed: int, count: int = 8) -> list[Run]:
    """Runs of a program: every size is 1, at and beside a tile, beyond several; the first run is small."""
    r = random.Random(seed)
    runs = []
    for k in range(count):
        numbers: dict[str, int | float] = {d: r.choice(pool(p, d)) if k else min(5, max(pool(p, d))) for d in p.sizes}
        if len(p.sizes) == 1 and k == MANY_TILES:
            numbers |= {d: 8 * max(s.schedule.block for s in p.stages) + 1 for d in p.sizes}
        numbers |= {n: r.choice(SCALARS[d[0]]) for n, d in p.scalars}
        runs.append(Run(numbers, STYLES[k % len(STYLES)], seed + k))
    return runs


def pool(p: Program, dim: str) -> tuple[int, ...]:
    """The sizes that one dimension may have: few where each takes a program of its own, which the interpreter runs one
    after the other."""
    rows = [s for s in p.stages if s.kind in ("row", "scan", "exchange") and s.dims[0] == dim]
    if rows:
        return (1, 2, 4, 7) if any(s.schedule.grid == "persistent" for s in rows) else (1, 2, 3)
    if any(s.kind == "dot" for s in p.stages):
        return (1, 15, 16, 17, 33)
    if any(tiled(s) == (dim, 8) for s in p.stages):
        return (1, 7, 8, 9, 17)
    b = max([s.schedule.block for s in p.stages], key=lambda x: (-x, p.name))
    more = {b, p.branch[1], p.branch[2]} if p.branch else {b}
    return tuple(sorted({1, 3, *(x for c in more for x in (max(c - 1, 1), c, c + 1)), 2 * b + 3}))


def long_run(p: Program, cap: int, seed: int) -> Run:
    """A run with more programs than the cap of one of its launches lets through."""
    numbers: dict[str, int | float] = dict.fromkeys([*p.sizes, *(n for n, _ in p.scalars)], 2)
    for s in p.stages:
        if s.schedule.cap == cap:
            size, wide = tiled(s)
            numbers[size] = cap * wide + 5
    return Run(numbers, "random", seed)


def tiled(s: Stage) -> tuple[str, int]:
    """The size that the first axis of the grid divides, and how many elements of it a program takes."""
    match s.kind:
        case "row" | "scan" | "exchange":
            return s.dims[0], 1
        case "dot":
            return s.dims[0], 16
        case "tile" if s.schedule.grid != "flat":
            return s.dims[0], 8
        case "atomic":
            return s.inner, s.schedule.block if s.index else 8
        case _:
            return s.dims[-1], s.schedule.block


def declared(p: Program) -> list[tuple[str, str, tuple[str, ...], str, bool]]:
    """The inputs of a program as `draws` takes them."""
    return [(i.name, i.dtype, i.dims, i.below, i.strided) for i in p.inputs]


class Answer(TypedDict):
    """Of each run its verdict, why, and what `wrapping` noted; `error`: why there are none."""

    runs: list[tuple[str, str, str]]
    error: str


class Server:
    """Triton's interpreter in a process of its own."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it and does not wait."""
        command = [sys.executable, str(SERVER)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        self.ready = False

    def ask(
        self,
        source: str,
        p: Program,
        runs: Sequence[Mapping[str, object]],
        first: bool = True,
        unused: Sequence[int] = (),
    ) -> Answer:
        """The answer of the server about the runs; with `first`, up to the first run that differs. `unused`: lines
        whose loads a compiled kernel does not make."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        if not self.ready:
            self.ready = self.process.stdout.readline() == "ready\n"
        inputs = declared(p)
        scalars = [n for n, _ in p.scalars]
        request = {"source": source, "name": p.name, "inputs": inputs, "scalars": scalars, "runs": runs,
                   "first": first, "unused": [*unused]}  # fmt: skip
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return cast(Answer, json.loads(line)) if line else {"runs": [], "error": "the interpreter ended"}

    def stop(self) -> None:
        """Ends it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

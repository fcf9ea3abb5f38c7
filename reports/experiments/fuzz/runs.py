"""The runs of a program: sizes at the edges of tiles, scalars and values at those of their dtypes; and the server that
executes them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from .grammar import Program, Stage

STYLES = ("edge", "random", "small", "zero", "edge", "top")
SCALARS = {"i": (0, -1, 1, 2, -3, 7, 2**31 - 1, -(2**31), 100), "f": (0.0, -1.0, 1.0, 0.5, 2.5, -0.1234567)}
SERVER = Path(__file__).with_name("interpreter_server.py")


@dataclass(frozen=True, slots=True)
class Run:
    """Numbers of the sizes and scalars, and how the values of tensors are drawn."""

    numbers: dict[str, int | float]
    style: str
    seed: int

    def plain(self) -> dict[str, object]:
        return {"numbers": self.numbers, "style": self.style, "seed": self.seed}


def planned(p: Program, seed: int, count: int = 12) -> list[Run]:
    """Runs of a program: every size is 1, at and beside a tile, beyond several; the first runs are small."""
    r = random.Random(seed)
    blocks = sorted({s.schedule.block for s in p.stages} | ({p.branch[1], p.branch[2]} if p.branch else set()))
    runs = []
    for k in range(count):
        b = r.choice(blocks)
        pool = (1, b - 1, b, b + 1, 2 * b + 3, 3) if k else (5,)
        numbers: dict[str, int | float] = {d: r.choice(pool) for d in p.sizes}
        if len(numbers) > 1 and k:
            few = [d for d in p.sizes if d != r.choice(p.sizes)]
            numbers |= {d: r.choice((1, 2, 3, 7, 8, 9, 17)) for d in few[:1]}
        if len(p.sizes) == 1 and k == 7:
            numbers |= dict.fromkeys(p.sizes, 20 * b + 1)
        numbers |= {n: r.choice(SCALARS[d[0]]) for n, d in p.scalars}
        runs.append(Run(numbers, STYLES[k % len(STYLES)], seed + k))
    return runs


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


class Answer(TypedDict):
    """Of each run its verdict and why; `error`: why there are none."""

    runs: list[tuple[str, str]]
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

    def ask(self, source: str, p: Program, runs: Sequence[dict[str, object]], first: bool = True) -> Answer:
        """The answer of the server about the runs; with `first`, up to the first run that differs."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        if not self.ready:
            self.ready = self.process.stdout.readline() == "ready\n"
        inputs = [[i.name, i.dtype, i.dims, i.below] for i in p.inputs]
        scalars = [n for n, _ in p.scalars]
        request = {"source": source, "name": p.name, "inputs": inputs, "scalars": scalars, "runs": runs, "first": first}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return cast(Answer, json.loads(line)) if line else {"runs": [], "error": "the interpreter ended"}

    def stop(self) -> None:
        """Ends it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

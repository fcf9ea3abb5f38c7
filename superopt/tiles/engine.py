"""The second engine: equality saturation of tile programs (Trinity), from a program to plans as µGraphs.

    program -> bodies (laws of values) -> e-graph of each (rules of loops) -> nests -> µGraphs with tiles, best first

Both passes of the extraction are bounded: so many bodies, kernels and nominal tiles. The programs that the e-graphs
represent are counted exactly."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from trilift.lift.errors import Unsupported
from trilift.lift.pipeline import Clock

from ..mugraph.cost import H200, Hardware, Model
from ..mugraph.graph import MuGraph, text
from ..program.program import FOLDS, Program
from ..search.stabilise import stabilised, unstable
from .analyses import Analyses, count
from .kernels import mugraph
from .nests import Extraction, Nests
from .rules import LOOPS, SEQUENCES, SPLITS, STARTS, Rule
from .saturate import Stage, staged
from .tile_bodies import bodies, looped, parted
from .tile_program import TileProgram, statements, stores

BODIES = 12
TILES = ((16, 4096), (64, 8192), (128, 16384))  # nominal: of an axis, and elements of a tile
SATURATION_ROUNDS = 40
NODES = 60_000  # of the e-graph of one body
PARTS = 16  # nominal
LONG = 512  # of an axis that may be in parts
MOVED_STORES = 5  # stores of a body that may change places


def rules_of(body: TileProgram) -> tuple[Rule, ...]:
    """The rules of loops; of sequences all where there are few stores, else only that starts come first."""
    few = sum(1 for _ in statements(body.body)) <= MOVED_STORES
    return (*LOOPS, *SPLITS, *(SEQUENCES if few else (SEQUENCES[0], *STARTS)))


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds`: the outer time limit; `plans`: that are kept; `kernels`: of a plan; `nodes`: of one e-graph."""

    seconds: float = 60.0
    plans: int = 10
    kernels: int = 4
    nodes: int = NODES


@dataclass
class Plan:
    """A µGraph with its seconds in the model, and the tile program that it is of; `steady`: a maximum is subtracted in
    each exponential, or there is none."""

    graph: MuGraph
    seconds: float
    nests: Nests
    body: TileProgram
    steady: bool


@dataclass
class Found:
    """`plans`, steady ones first, then by seconds; `nests`: by the number of kernels the best at nominal tiles, whether
    or not there is a µGraph for them; `bodies`, `classes`, `nodes`: of all e-graphs; `programs` that they represent;
    `whole`: all were saturated, and the time was enough; `late`: the time limit ended it; `candidates`: nests that were
    extracted; `refused`: why nests are not µGraphs; `clock`: seconds of each pass."""

    plans: list[Plan] = field(default_factory=list)
    nests: dict[int, tuple[Nests, TileProgram]] = field(default_factory=dict)
    bodies: int = 0
    classes: int = 0
    nodes: int = 0
    programs: int = 0
    whole: bool = True
    late: bool = False
    candidates: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    clock: Clock = field(default_factory=lambda: Clock(seconds={"saturate": 0.0, "extract": 0.0}))

    @property
    def seconds(self) -> float:
        return sum(self.clock.seconds.values())

    @property
    def said(self) -> str:
        """The contents of the e-graphs, and whether they are complete."""
        part = "" if self.whole else ", not saturated: a limit was reached"
        return f"{self.programs:.2g} tile programs in {self.bodies} e-graphs of {self.classes} classes{part}"


def search(
    program: Program, limits: Limits = Limits(), hardware: Hardware = H200, seed: int = 0,
    hear: Callable[[Found], None] = lambda found: None,
) -> Found:  # fmt: skip
    """The best plans of a program in the model. Raises Unsupported where nothing of it can be written."""
    if any(x.element is not None for x in program.inputs):
        raise Unsupported("a value computed from indices cannot be a tensor of a tile program")
    return _Search(program, limits, Model(program, hardware), seed, hear).run()


@dataclass
class _Search:
    program: Program
    limits: Limits
    model: Model
    seed: int
    hear: Callable[[Found], None]
    found: Found = field(default_factory=Found)
    plans: dict[str, Plan] = field(default_factory=dict)

    def run(self) -> Found:
        end = time.perf_counter() + self.limits.seconds
        with self.found.clock("saturate"):
            every = bodies(self.program, BODIES, self.seed, self.model.hardware)
            every = [x for b in every for x in (b, *(parted(b, a, PARTS) for a in self.long(b)))]
        for body in every:
            if time.perf_counter() > end:
                self.found.whole, self.found.late = False, True
                break
            self.body(body)
            self.hear(self.found)
        return self.found

    def long(self, body: TileProgram) -> list[str]:
        """The axes that may be in parts: folded, long, and of no output."""
        own = {a for o in body.outputs for a in body.tensors[o].axes}
        folds = {str(n.attr) for s in stores(body.body) for n in s.value.walk() if n.op in FOLDS}
        return [a for a, n in body.sizes.items() if a in folds - own and n >= LONG]

    def body(self, body: TileProgram) -> None:
        """The nests of one body."""
        with self.found.clock("saturate"):
            classes = staged(body, [Stage(rules_of(body), SATURATION_ROUNDS)], self.limits.nodes, looped=looped(body))
        f = self.found
        f.bodies, f.classes, f.nodes = f.bodies + 1, f.classes + len(classes.members), f.nodes + classes.nodes
        f.whole = f.whole and classes.whole
        with f.clock("extract"):
            f.programs += count(classes)
            known = Analyses(classes)
            for tile, room in TILES:
                extraction = Extraction(known, tile, room=room, hardware=self.model.hardware)
                for nests in extraction.best(self.limits.kernels):
                    self.keep(nests, body)
            f.plans = sorted(self.plans.values(), key=lambda p: (not p.steady, p.seconds))[: self.limits.plans]

    def keep(self, nests: Nests, body: TileProgram) -> None:
        self.found.candidates += 1
        known = self.found.nests.get(len(nests.kernels))
        if known is None or nests.seconds < known[0].seconds:
            self.found.nests[len(nests.kernels)] = nests, body
        try:
            graph, seconds = mugraph(nests, body, self.program, self.model)
        except Unsupported as e:
            self.found.refused[str(e)] = self.found.refused.get(str(e), 0) + 1
            return
        if (written := text(graph)) not in self.plans:
            self.plans[written] = Plan(graph, seconds, nests, body, not unstable(stabilised(graph)))

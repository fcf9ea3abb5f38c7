"""Searches measured in processes of their own, which import neither PyTorch nor Triton: seconds and memory are those of
the search. Plain data in, plain data out."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from trilift.superopt.mugraph.cost import Model
from trilift.superopt.mugraph.json import from_json, to_json
from trilift.superopt.program.abstract import LAWS, bits_of, tables, templates
from trilift.superopt.search.algorithm1 import TABLE2, enumerate_blocks
from trilift.superopt.search.algorithm1 import Limits as Enumerated
from trilift.superopt.search.best_first import Limits, Search, graphs, search
from trilift.superopt.search.verifier import verify
from trilift.superopt.tiles import engine as tiles
from trilift.superopt.tiles.text import text

Event = Callable[[Any], None]
STATES = 100_000_000  # of an enumeration, which a limit on seconds ends
PRUNING = {
    "exact laws": LAWS,
    "Table 2 as printed": TABLE2,
    "none": "",
}  # with side conditions on axes, without


def peak() -> float:
    """Megabytes that this process had at most."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def searched(program: str, seconds: float, seed: int, event: Event) -> dict[str, Any]:
    """The plans of a program (JSON of a µGraph) as µGraphs, best first, with what the search took; `bound`, `equal`: of
    the field test of the first one."""
    p = from_json(program).program
    found = search(p, Limits(seconds=seconds), seed=seed)
    memory = peak()
    plans = [{"graph": to_json(g), "seconds": x.seconds} for g, x in zip(graphs(found), found.plans, strict=True)]
    tested = verify(graphs(found)[0], templates(p), seed) if plans else None
    return {
        "values": len(found.universe.bits), "states": found.states, "candidates": found.candidates,
        "seconds": found.seconds, "memory": memory, "roofline": found.model.roofline, "excluded": found.excluded,
        "plans": plans, "bound": tested.bound if tested else None,
        "equal": bool(tested) and all(o.equal is True for o in tested.outcomes),  # type: ignore[union-attr]
    }  # fmt: skip


def saturated(program: str, seconds: float, seed: int, event: Event) -> dict[str, Any]:
    """Runs the engine of tile programs on a program (JSON of a µGraph) and returns JSON data: the size of its e-graphs
    and the seconds they took, the best µGraph, and for each number of kernels the seconds and the text of the best
    nests, whose tiles have nominal sizes."""
    p = from_json(program).program
    start = time.process_time()
    found = tiles.search(p, tiles.Limits(seconds), seed=seed, hear=lambda f: event(f.said))
    cpu = time.process_time() - start
    nests = [
        {
            "kernels": k,
            "seconds": n.seconds,
            "grids": [x.grid for x in n.kernels],
            "spilled": [sorted(x.spilled) for x in n.kernels],
            "text": text(n.program(body)),
        }
        for k, (n, body) in sorted(found.nests.items())
    ]
    best = found.plans[0] if found.plans else None
    return {
        "bodies": found.bodies, "classes": found.classes, "nodes": found.nodes, "programs": found.programs,
        "whole": found.whole, "saturating": found.clock.seconds["saturate"],
        "extracting": found.clock.seconds["extract"], "cpu": cpu, "memory": peak(),
        "candidates": found.candidates, "refused": found.refused, "nests": nests,
        "model": best.seconds if best else None, "kernels": len(best.graph.kernels) if best else None,
        "roofline": Model(p).roofline,
    }  # fmt: skip


def enumerated(program: str, pruning: str, seconds: float, seed: int, event: Event) -> dict[str, Any]:
    """Algorithm 1 with the roles of axes and the number of operators of the best single kernel of the same program, and
    a row of `PRUNING`; the seconds of its e-graph are not counted."""
    p = from_json(program).program
    found = search(p, Limits(kernels=1), seed=seed)
    body = found.plans[0].bodies[0]
    modes = Search(found.universe, found.model).blocks[body.made.signature].signature.by_axis
    limits = Enumerated(len(body.steps), STATES, seconds=seconds)
    table = tables(p, bits_of(p), laws) if (laws := PRUNING[pruning]) else None
    made = enumerate_blocks(p, modes, table, limits, seed)
    return {
        "roles": dict(modes), "operators": len(body.steps), "states": made.states, "tests": made.tests,
        "found": len(made.found), "seconds": made.seconds, "complete": made.complete, "memory": peak(),
    }  # fmt: skip

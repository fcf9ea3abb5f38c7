"""read-write-race: a program reads what another one writes in the same launch.

{p != q, p loads e, q stores something new to e}       the outputs change when the programs run backwards
acquire; store; release, with no barrier between       other threads of the program may not have stored yet
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trilift.lift.ttir.ir import Block, Module, Op, Value

from ...model.barriers import joins_global_memory
from ...runs.observe import Observation, Watched
from ...runs.races import Clash, at_once, backwards, clashes, in_other_turns, unwaited
from ..finding import Finding, Rule, Step
from ..report_helpers import example, number, replay, smallest

if TYPE_CHECKING:
    from ..evidence import Evidence


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each store that races with loads, at the smallest run."""
    found: dict[object, list[tuple[Observation, Finding]]] = {}
    for run in evidence.runs:
        for f in _of_run(run):
            found.setdefault(f.place, []).append((run, f))
    for seen in found.values():
        best = smallest([r for r, _ in seen])
        yield next(f for r, f in seen if r is best)
    yield from {f.place: f for f in _locks(evidence)}.values()


def _of_run(run: Observation) -> Iterator[Finding]:
    if run.outputs is None:
        return
    for page in run.launches:
        for c in clashes(page):
            if c.kind == "read" and (changed := backwards(run) or at_once(run)):
                yield _finding(run, page, c, next(iter(changed)))
        for c in unwaited(page):
            if c.kind == "read" and (turns := in_other_turns(run)):
                yield _finding(run, page, c, next(iter(turns.changed)))


def _finding(run: Observation, page: Watched, c: Clash, output: str) -> Finding:
    name, reader, writer = run.name(c.address), number(c.first.program), number(c.second.program)
    return Finding(
        "read-write-race",
        f"program {writer} stores to an element of `{name}` that program {reader} loads",
        c.second.op.place,
        example(run, c.second.program, other_program=reader),
        "write to another tensor, add with tl.atomic_add, or end the launch before the value is read",
        replay(run, why=f"`{output}` depends on the order of programs"),
        (
            Step(page.launch.host, f"{page.launch.kernel} is launched on a grid of {page.launch.grid}"),
            Step(c.first.op.place, f"program {reader} loads an element of `{name}`, {c.before:.6g} before the launch"),
            Step(
                c.second.op.place,
                f"program {writer} stores {c.after:.6g} there: `{output}` depends on which program runs first",
            ),
        ),
    )


# ---- locks -----------------------------------------------------------------------------------------------------------


def _locks(evidence: Evidence) -> Iterator[Finding]:
    """A lock that is taken in a loop of compare-and-swap and given back right after tiles were stored."""
    for launch in evidence.launches:
        for store, release in unguarded(launch.module()):
            yield Finding(
                "read-write-race",
                "the lock is released with no barrier after the store: other threads may not have stored yet",
                store.place,
                {},
                "put tl.debug_barrier() between the store and the release",
                "",
                (
                    Step(launch.host, f"{launch.kernel} is launched"),
                    Step(store.place, "the threads of the program store their lanes"),
                    Step(release.place, "one thread releases the lock, and the next program may load"),
                ),
            )


def unguarded(module: Module) -> Iterator[tuple[Op, Op]]:
    """(store, release): a tile is stored, then the word of a compare-and-swap loop is exchanged, with no barrier
    between."""
    spins = [op for op in module.walk() if op.name == "tt.atomic_cas" and not op.results[0].type.shape]
    words = {root(op.operands[0]) for op in spins}
    if not spins:
        return
    for block in _blocks(module):
        stores: list[Op] = []
        for op in block.ops:
            if joins_global_memory(op):
                stores = []
            elif op.name == "tt.store" and op.operands[0].type.shape:
                stores.append(op)
            elif (
                op.name == "tt.atomic_rmw" and op.attrs.get("atomic_rmw_op") == "exch" and root(op.operands[0]) in words
            ):
                yield from ((s, op) for s in stores)
                stores = []


def root(pointer: Value) -> Value:
    """The parameter that a pointer was computed from."""
    while isinstance(pointer.owner, Op) and pointer.owner.name in ("tt.addptr", "tt.splat", "tt.broadcast"):
        pointer = pointer.owner.operands[0]
    return pointer


def _blocks(module: Module) -> Iterator[Block]:
    yield from (b for f in module.functions.values() for b in f.body.blocks)
    yield from (b for op in module.walk() for r in op.regions for b in r.blocks)


RULE = Rule("read-write-race", "error", "A program reads what another one writes in the same launch.", check)

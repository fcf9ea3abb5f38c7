"""Rank-ordered enumeration of block graphs: what it finds is what the closure over values has, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from trilift.lift.errors import Unsupported
from trilift.superopt.mirage.judge import reference
from trilift.superopt.program.abstract import LAWS, bits_of, tables
from trilift.superopt.program.program import Program
from trilift.superopt.search.algorithm1 import TABLE2, Enumeration, Limits, Rank, Step, _Search, enumerate_blocks
from trilift.superopt.search.bodies import Block, Point, Signature
from trilift.superopt.search.bodies import Step as Way
from trilift.superopt.search.values import Edge, Universe, universe
from trilift.verify.fields.field import Field

SIZES = dict.fromkeys("BMKNRDE", 64)
TEXTS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "lora": ("X@W + (X@A)@B", {"X": ("M", "K"), "W": ("K", "N"), "A": ("K", "R"), "B": ("R", "N")}),
    "gated": ("silu(X@W1)*(X@W2)", {"X": ("M", "K"), "W1": ("K", "N"), "W2": ("K", "N")}),
    "gqa": (
        "(exp(Q@K)/sum(exp(Q@K), -1, keepdim=True))@V",
        {"Q": ("B", "M", "D"), "K": ("B", "D", "N"), "V": ("B", "N", "E")},
    ),
    "rmsnorm": ("(X/sqrt(mean(X**2, -1, keepdim=True)))@W", {"X": ("M", "K"), "W": ("K", "N")}),
}


@cache
def program(name: str) -> Program:
    text, inputs = TEXTS[name]
    names = {d for dims in inputs.values() for d in dims}
    return reference(text, inputs, {d: SIZES[d] for d in names}).program()


@cache
def closed(name: str) -> Universe:
    return universe(program(name))


def modes(name: str, loop: str = "") -> dict[str, str]:
    return {a: "loop" if a == loop else "whole" for a in program(name).reduced}


def found(name: str, operators: int, loop: str = "", laws: str | None = None) -> Enumeration:
    """All minimal graphs; without abstract expressions where there are no laws."""
    p = program(name)
    table = tables(p, bits_of(p), laws) if laws else None
    out = enumerate_blocks(p, modes(name, loop), table, Limits(operators, used=True))
    assert out.complete
    return out


# ---- the closure's derivations ---------------------------------------------------------------------------------------


def edges(u: Universe, graph: tuple[Step, ...]) -> frozenset[Edge]:
    """A graph as edges of the closure. Raises KeyError where one does not exist."""
    known = {e: v for v, ways in enumerate(u.ways) for e in ways}
    made: list[int] = []
    out = set()
    for s in graph:
        args = tuple(u.inputs[a] if isinstance(a, str) else made[a] for a in s.args)
        if s.kind in ("add", "mul", "dot"):
            args = tuple(sorted(args))
        e = Edge("sum" if s.kind == "accumulate" else s.kind, args, s.over)
        made.append(known[e])
        out.add(e)
    assert made[-1] == u.targets[0]
    return frozenset(out)


def derivations(name: str, operators: int, loop: str = "") -> set[frozenset[Edge]]:
    """All graphs with at most so many operators that the closure has under one signature."""
    u = closed(name)
    b = Block(u, Signature(tuple(modes(name, loop).items())))
    given = {(v, False) for v in u.inputs.values()}

    def grow(chosen: dict[Point, Way], wanted: frozenset[Point]) -> Iterator[dict[Point, Way]]:
        if len(chosen) + len(wanted) > operators:
            return
        if not wanted:
            yield chosen
            return
        p = min(wanted)
        for s in b.steps[p]:
            more = {**chosen, p: s}
            yield from grow(more, (wanted | {a for a in s.args if a not in given}) - set(more))

    ends = [(u.targets[0], after) for after in (False, True)]
    every = [c for e in ends for c in grow({}, frozenset([e])) if runs(c, given)]
    return {frozenset(s.edge for s in c.values()) for c in every}


def runs(chosen: dict[Point, Way], given: set[Point]) -> bool:
    """Whether the steps have an order."""
    done, left = set(given), dict(chosen)
    while ready := [p for p, s in left.items() if done.issuperset(s.args)]:
        done.update(ready)
        for p in ready:
            del left[p]
    return not left


WITHOUT_LAWS = [("lora", 4, 3), ("gated", 4, 1), ("gqa", 5, 2)]


@pytest.mark.parametrize(("name", "operators", "count"), WITHOUT_LAWS)
def test_nothing_is_lost(name: str, operators: int, count: int) -> None:
    """Every graph that computes the target is in the closure, and the closure has no other."""
    out = found(name, operators)
    graphs = {edges(closed(name), g) for g in out.found}
    assert len(graphs) == len(out.found) == count
    assert graphs == derivations(name, operators)


LOOPS = [("lora", 7, "k"), ("gated", 6, "k"), ("gqa", 9, "n"), ("rmsnorm", 9, "k")]


@pytest.mark.parametrize(("name", "operators", "loop"), LOOPS)
def test_nothing_is_lost_with_a_loop(name: str, operators: int, loop: str) -> None:
    """Pruned by the paper's laws, which say more than ours where a sum moves past a factor."""
    out = found(name, operators, loop, TABLE2)
    graphs = {edges(closed(name), g) for g in out.found}
    assert graphs and graphs == derivations(name, operators, loop)
    exact = found(name, operators, loop, LAWS)
    assert {edges(closed(name), g) for g in exact.found} == graphs
    assert exact.states < out.states


def test_a_closure_without_an_edge_is_noticed() -> None:
    (g, *_) = found("gated", 4).found
    u = replace(closed("gated"), ways=[dict(w) for w in closed("gated").ways])
    assert edges(u, g)
    edge = min(edges(u, g), key=repr)
    for w in u.ways:
        w.pop(edge, None)
    with pytest.raises(KeyError):
        edges(u, g)


# ---- the enumeration -------------------------------------------------------------------------------------------------


def test_the_graph_of_a_gated_layer() -> None:
    (g,) = found("gated", 4).found
    assert [s.kind.partition("[")[0] for s in g] == ["dot", "dot", "map:silu", "mul"]
    (silu,) = (s for s in g if s.kind.startswith("map"))
    first = g[int(silu.args[0])]
    assert set(first.args) == {"X", "W1"} and first.over == {"k0", "k1", "k2"}


def test_too_few_operators() -> None:
    assert found("gated", 3).found == [] and found("lora", 2).found == []


def test_abstract_expressions_prune() -> None:
    """Fewer states under the exact laws than under the paper's, fewer there than without laws; the same graphs."""
    p = program("lora")
    exact, literal, free = (
        enumerate_blocks(p, modes("lora"), t, Limits(4))
        for t in (tables(p, bits_of(p)), tables(p, bits_of(p), TABLE2), None)
    )
    assert exact.states * 3 < literal.states and literal.states * 3 < free.states
    assert set(exact.found) == set(literal.found) == set(free.found) and exact.tests <= literal.tests <= free.tests


def test_what_cannot_become_a_graph_is_left_out_without_loss() -> None:
    p = program("lora")
    every, used = (enumerate_blocks(p, modes("lora"), None, Limits(4, used=u)) for u in (False, True))
    assert set(every.found) == set(used.found) and used.states < every.states


def test_the_limit_on_states() -> None:
    out = enumerate_blocks(program("lora"), modes("lora"), None, Limits(6, states=1000))
    assert not out.complete and out.states == 1001


def test_the_same_twice() -> None:
    first, second = found("lora", 4), found("lora", 4)
    assert (first.found, first.states, first.tests) == (second.found, second.states, second.tests)


def searching(name: str, loop: str, operators: int, kind: type[_Search] = _Search) -> _Search:
    p = program(name)
    domain = Field(np.random.default_rng(0))
    return kind(p, modes(name, loop), tables(p, bits_of(p)), Limits(operators), domain)


def test_every_order_gives_the_same_graphs() -> None:
    """The rank meets each graph once and loses none: as many as there are sets of operators, in any order."""
    graphs = searching("rmsnorm", "k", 8).run().found
    assert len(graphs) == len(set(graphs)) == orderless(searching("rmsnorm", "k", 0), 8) == 2


def orderless(s: _Search, operators: int) -> int:
    """How many sets of operators compute the target, each of them used."""
    s.run()
    given = frozenset(range(s.given))
    seen, work, hits = {given}, [given], set()
    while work:
        here = work.pop()
        unused = here - given - {a for v in here - given for a in s.tensors[v].args}
        if len(unused) == 1 and s._is_target(*unused):
            hits.add(here)
        elif len(here) - len(given) < operators:
            new = {v for x in here for _, v in s._on(x)}
            new |= {v for x in here for y in here if x < y for _, v in s._of(x, y)}
            grown = {here | {v} for v in new - here} - seen
            seen |= grown
            work += grown
    return len(hits)


class SmallestFirst(_Search):
    """Ranks that compare the smaller input first."""

    def _candidates(self, graph: list[int], last: Rank, used: int, most: int) -> Iterator[tuple[Rank, int, int]]:
        def ascending(r: Rank) -> tuple[int, ...]:
            return (*sorted(i for i in r[:2] if i >= 0), r[2])

        for rank, v, now in super()._candidates(graph, (-1, -1, -1), used, most):
            if last[0] < 0 or ascending(rank) > ascending(last):
                yield rank, v, now


def test_the_smallest_input_first_would_lose_graphs() -> None:
    assert len(searching("rmsnorm", "k", 8, SmallestFirst).run().found) < 2


def test_what_it_does_not_enumerate() -> None:
    p = program("gated")
    with pytest.raises(Unsupported, match="several outputs"):
        enumerate_blocks(replace(p, outputs=(*p.outputs, *p.outputs)), modes("gated"), None)
    twice = reference("X@X", {"X": ("N", "N")}, {"N": 8}).program()
    with pytest.raises(Unsupported, match="read twice"):
        enumerate_blocks(twice, dict.fromkeys(twice.reduced, "whole"), None)

"""Thread graphs, the order of operators and the place of tiles in shared memory, against all there are."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

import mugraphs
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from mugraphs import IN, load, op

from trilift.superopt.accept.acceptance import accept
from trilift.superopt.arrange.schedule import Schedule, arranged, edges, given, scheduled, violations
from trilift.superopt.arrange.shared_memory import Buffer, best_fit, bound, buffers, overlaps, plan, top
from trilift.superopt.emit import codegen
from trilift.superopt.mugraph.graph import Kernel, MuGraph, Operator, ThreadGraph, text
from trilift.superopt.mugraph.json import from_json, to_json
from trilift.superopt.mugraph.threads import Unit, exchanged, fused, operators, sides
from trilift.superopt.program.abstract import templates
from trilift.superopt.search.stabilise import stabilised
from trilift.superopt.search.verifier import verify

GRAPHS = {
    "rms_norm_matmul": mugraphs.rms_norm_matmul,
    "lora": mugraphs.lora,
    "gated_mlp": mugraphs.gated_mlp,
    "normalised_transformer": mugraphs.normalised_transformer,
    "split_matmul": mugraphs.split_matmul,
    "sums_in_lanes": mugraphs.sums_in_lanes,
    "attention": lambda: stabilised(mugraphs.attention()),
}


def threads(k: Kernel) -> list[tuple[str, ...]]:
    return [tuple(o.out for o in u.operators) for u in fused(k) if isinstance(u, ThreadGraph)]


def ordered(g: MuGraph) -> MuGraph:
    return replace(g, kernels=tuple(arranged(scheduled(k)) for k in g.kernels))


def in_the_loop(g: MuGraph) -> MuGraph:
    """Accumulators by their flag too."""
    at = lambda o: replace(o, inside=o.inside or o.op == "accumulate")  # noqa: E731
    return replace(g, kernels=tuple(replace(k, operators=tuple(map(at, k.operators))) for k in g.kernels))


# ---- thread graphs ---------------------------------------------------------------------------------------------------


def test_thread_graphs_are_the_largest_there_are() -> None:
    assert threads(mugraphs.rms_norm_matmul().kernels[0]) == [("mean", "shifted", "rms")]
    assert threads(mugraphs.gated_mlp().kernels[0]) == [("gate", "y")]
    # y is read by its square and by the division after the sum: by two graphs
    assert threads(mugraphs.normalised_transformer().kernels[0]) == [("unit", "minus", "step", "scaled", "y")]
    assert threads(mugraphs.split_matmul().kernels[0]) == []


def chain(*more: Operator) -> Kernel:
    block = (load("x", "mk", IN), *more, op("acc", "accumulate", "b", "mk", "k"), op("y", "sum", "acc", "m", "k"))
    return Kernel("chain", {"m": "grid", "k": "loop"}, {"m": 16, "k": 32}, (*block, op("out", "store", "y", "m")))


A = op("a", "exp", "x", "mk", inside=IN)


def test_what_a_thread_graph_is_not() -> None:
    assert threads(chain(A, op("b", "mul", "a x", "mk", inside=IN))) == [("a", "b")]
    both = chain(A, op("s", "sqr", "a", "mk", inside=IN), op("b", "mul", "a s", "mk", inside=IN))
    assert threads(both) == [("a", "s", "b")]  # what reads a is one graph
    used = chain(A, op("s", "sum", "a", "m", "k", IN), op("b", "mul", "a s", "mk", inside=IN))
    assert threads(used) == []  # the sum reads it too
    narrow = chain(op("s", "sum", "x", "m", "k", IN), op("e", "exp", "s", "m", inside=IN),
                   op("b", "mul", "x e", "mk", inside=IN))  # fmt: skip
    assert threads(narrow) == []  # another tile
    outside = chain(op("c", "exp", "w", "mk"), op("b", "mul", "x c", "mk", inside=IN))
    outside = replace(outside, operators=(load("w", "mk"), *outside.operators))
    assert threads(outside) == []  # before the loop, and in it


@pytest.mark.parametrize("name", GRAPHS)
def test_thread_graphs_hold_every_operator_once(name: str) -> None:
    for k in GRAPHS[name]().kernels:
        units = fused(k)
        assert sorted((o.out, o.op) for u in units for o in operators(u)) == sorted((o.out, o.op) for o in k.operators)
        for t in (u for u in units if isinstance(u, ThreadGraph)):
            inner = {o.out for o in t.operators} - {*t.outputs}
            assert not any(inner & {*o.args} for o in k.operators if o not in t.operators)
            assert len({(o.dims, sides(k)[o]) for o in t.operators}) == 1


def test_thread_graphs_are_written_and_read() -> None:
    g = ordered(mugraphs.gated_mlp())
    (k,) = g.kernels
    assert k.threads == (("gate", "y"),)
    said = text(g)
    assert "thread 1: y[m, n] = mul(gate, right)" in said and "thread" not in text(mugraphs.gated_mlp())
    assert json.loads(to_json(g))["kernels"][0]["threads"] == [["gate", "y"]] and from_json(to_json(g)) == g
    before = json.loads(to_json(g))
    del before["kernels"][0]["threads"]
    assert from_json(json.dumps(before)).kernels[0].threads == ()


# ---- barriers --------------------------------------------------------------------------------------------------------

ELEMENTWISE, DIMS = ("exp", "sqr", "add", "mul"), ("mn", "m")


def kernels(seed: int, count: int) -> Kernel:
    """A kernel of random operators: what they compute does not matter here, but who reads what, and where."""
    draw = random.Random(seed)
    loop = draw.random() < 0.7
    made: list[Operator] = []
    for n in range(count):
        inside = loop and draw.random() < 0.6
        readable = [o for o in made if (o.inside or not _late(o, made)) if inside or not o.inside] if inside else [
            o for o in made if not o.inside]  # fmt: skip
        kind = draw.choice(["load", "dot", "sum", *ELEMENTWISE, *(["accumulate"] if loop else [])])
        if kind == "accumulate":
            readable = [o for o in made if o.inside]
        if kind == "load" or not readable:
            made.append(op(f"v{n}", "load", f"t{n}", draw.choice(DIMS), inside=inside))
            continue
        args = " ".join(draw.choice(readable).out for _ in range(2 if kind in ("dot", "add", "mul") else 1))
        running = kind == "accumulate"
        made.append(op(f"v{n}", kind, args, draw.choice(DIMS), "n" if running else "", not running and inside))
    modes = {"m": "grid", "n": "loop" if loop else "whole"}
    return Kernel("k", modes, {"m": draw.choice((16, 64)), "n": 32}, tuple(made))  # type: ignore[arg-type]


def _late(o: Operator, made: Sequence[Operator]) -> bool:
    """Whether a value is there only after the loop."""
    every = {x.out: x for x in made}
    return o.op == "accumulate" or any(_late(every[a], made) for a in o.args if a in every)


def orders(k: Kernel) -> Iterator[tuple[list[Unit], int]]:
    """All orders of the units, with where the loop begins and ends: sides one after the other."""
    units = fused(k)
    own = [[u for u in units if sides(k)[operators(u)[-1]] == side] for side in range(3)]
    from_ = edges(k, units)
    for parts in product(*(permutations(p) for p in own)):
        order = [u for p in parts for u in p]
        at = {u: n for n, u in enumerate(order)}
        if all(at[v] < at[u] for u in order for v, _ in from_[u]):
            yield order, len(own[0])


def fewest(k: Kernel) -> tuple[int, int]:
    """The fewest barriers in the loop and in all, over all orders and all places of barriers."""
    inside = total = 99
    from_ = edges(k, fused(k))
    for order, start in orders(k):
        end = start + sum(sides(k)[operators(u)[-1]] == 1 for u in order)
        for gaps in product((0, 1), repeat=max(len(order) - 1, 0)):
            depth = {u: sum(gaps[:n]) for n, u in enumerate(order)}
            if all(depth[v] + barrier <= depth[u] for u in order for v, barrier in from_[u]):
                inside = min(inside, sum(gaps[start : max(end - 1, start)]))
                total = min(total, sum(gaps))
    return inside, total


def test_no_order_has_fewer_barriers() -> None:
    saved = with_loop = 0
    for seed in range(150):
        k = kernels(seed, 3 + seed % 4)
        s, before = scheduled(k), given(k)
        assert not violations(s) and not violations(before), seed
        assert (s.barriers_in_loop, s.barriers) == fewest(k), seed
        assert s.barriers <= before.barriers and s.barriers_in_loop <= before.barriers_in_loop
        saved += s.barriers < before.barriers or s.barriers_in_loop < before.barriers_in_loop
        with_loop += s.barriers_in_loop > 0
    assert saved >= 5 and with_loop >= 15


def test_barriers_of_known_graphs() -> None:
    counts = {n: [(given(k).barriers_in_loop, scheduled(k).barriers_in_loop) for k in f().kernels]
              for n, f in GRAPHS.items()}  # fmt: skip
    assert counts["rms_norm_matmul"] == [(3, 2)]  # tiles are there; x g and the sum of squares are; both products
    assert counts["gated_mlp"] == [(1, 1)] and counts["attention"] == [(4, 3), (0, 0)]


def merged(s: Schedule) -> Iterator[Schedule]:
    """One barrier fewer, each of them."""
    for gone in range(1, s.barriers + 1):
        yield replace(s, depths=tuple(d - (d >= gone) for d in s.depths))


@pytest.mark.parametrize("name", GRAPHS)
def test_a_schedule_without_one_of_its_barriers_is_caught(name: str) -> None:
    for k in GRAPHS[name]().kernels:
        s = scheduled(k)
        assert violations(s) == []
        assert all(any("without a barrier" in v for v in violations(m)) for m in merged(s))
        assert all(exchanged(k)) and s.barriers == sum(1 for _ in merged(s))
        back = replace(s, units=s.units[::-1], depths=s.depths[::-1], sides=s.sides[::-1])
        assert any("before it is made" in v for v in violations(back))
        assert violations(replace(s, units=s.units[:-1], depths=s.depths[:-1], sides=s.sides[:-1]))


@pytest.mark.parametrize("name", GRAPHS)
def test_an_ordered_graph_computes_its_program(name: str) -> None:
    g = ordered(GRAPHS[name]())
    if name != "attention":  # a maximum has no field
        assert all(o.equal is True for o in verify(in_the_loop(g), templates(g.program)).outcomes)
    for k in g.kernels:
        assert scheduled(k).units == fused(k) and given(k).barriers == scheduled(k).barriers
        stores = [o.op == "store" for o in k.operators]
        assert stores == sorted(stores)


def test_emitted_statements_have_this_order() -> None:
    """The sum of squares comes before the product, so that one barrier serves both."""
    g = mugraphs.rms_norm_matmul()
    (k,) = g.kernels
    named = {o.out: o for o in k.operators if o.op != "store"}
    first = ["x", "g", "w", "xg", "p", "acc", "squares", "row", "total", "mean", "shifted", "rms", "y"]
    late = replace(g, kernels=(replace(k, operators=(*(named[n] for n in first), *k.stores)),))
    for graph, before, after in (
        (late, "acc = tl.dot", "row = tl.sum"),
        (ordered(late), "row = tl.sum", "acc = tl.dot"),
    ):
        text = codegen.source(graph, "f")
        assert 0 < text.index(before) < text.index(after)
    assert given(late.kernels[0]).barriers == 3 and scheduled(late.kernels[0]).barriers == 2


# ---- shared memory ---------------------------------------------------------------------------------------------------


@st.composite
def tiles(draw: st.DrawFn, most: int = 14) -> list[Buffer]:
    """Buffers of some units of 16 bytes, over 8 depths."""
    out = []
    for n in range(draw(st.integers(0, most))):
        first = draw(st.integers(0, 7))
        last = draw(st.integers(first, 7))
        out.append(Buffer(f"b{n}", 16 * draw(st.integers(1, 12)), first, last))
    return out


def smallest(bs: Sequence[Buffer]) -> int:
    """The smallest plan, over all offsets."""
    high = top(bs, best_fit(bs))
    best = high

    def place(offsets: list[int]) -> None:
        nonlocal best
        n = len(offsets)
        if n == len(bs):
            best = min(best, top(bs, offsets))
            return
        for x in range(0, best - bs[n].size, 16):
            if all(not bs[n].meets(b) or x >= y + b.size or y >= x + bs[n].size for b, y in zip(bs, offsets)):  # noqa: B905
                place([*offsets, x])

    place([])
    return best


@drawn(tiles())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_no_two_tiles_overlap(bs: list[Buffer]) -> None:
    m = plan(bs)
    assert overlaps(bs, m.offsets) == [] and overlaps(bs, best_fit(bs)) == []
    assert m.bound <= m.bytes <= m.best_fit and m.bytes == top(bs, m.offsets)
    assert all(x >= 0 and x % 16 == 0 for x in m.offsets)
    assert m.exact or len(bs) > 9


@drawn(tiles(5))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_small_plans_are_optimal(bs: list[Buffer]) -> None:
    m = plan(bs)
    assert m.exact and m.bytes == smallest(bs) >= bound(bs)


def test_best_fit_is_not_always_optimal() -> None:
    """Found among random buffers; the plan takes what no other goes below."""
    draw = random.Random(0)
    better = 0
    for _ in range(400):
        spans = [sorted(draw.choices(range(8), k=2)) for _ in range(8)]
        m = plan([Buffer(str(n), 16 * draw.randint(1, 12), a, b) for n, (a, b) in enumerate(spans)])
        assert m.exact
        better += m.bytes < m.best_fit
    assert better >= 20


def test_a_planner_that_forgets_is_caught() -> None:
    """Each of these planners takes some lifetime for shorter than it is."""
    bs = [Buffer(f"b{n}", 64 + 16 * n, n, n + 2) for n in range(6)]
    wrong = {
        "the last use": [replace(b, last=b.last - 1) for b in bs],
        "the first": [replace(b, first=b.last) for b in bs],
        "all": [replace(b, first=2 * n, last=2 * n) for n, b in enumerate(bs)],
        "half of the bytes": [replace(b, size=b.size // 32 * 16) for b in bs],
    }
    assert overlaps(bs, plan(bs).offsets) == []
    for what, seen in wrong.items():
        assert overlaps(bs, plan(seen).offsets), what
    assert overlaps(bs, [0] * len(bs)) == [(a.name, b.name) for n, a in enumerate(bs) for b in bs[n + 1 : n + 3]]


def test_tiles_of_known_graphs() -> None:
    g = mugraphs.rms_norm_matmul()
    found = {b.name: b for b in buffers(g, scheduled(g.kernels[0]))}
    assert {n: b.size for n, b in found.items()} == {"x": 2048, "g": 128, "w": 4096, "xg": 1024, "row": 256}
    assert found["x"].copies == 2 and found["xg"].copies == 1
    after = mugraphs.normalised_transformer()  # rows are loaded by the threads that use them
    sums = buffers(after, scheduled(after.kernels[0]))
    assert [b.name for b in sums] == ["hs", "ys"]


def test_what_the_loop_reads_in_every_turn_stays() -> None:
    g = stabilised(mugraphs.attention())
    s = scheduled(g.kernels[0])
    loop = [d for d, side in zip(s.depths, s.sides, strict=True) if side == 1]
    found = {b.name: b for b in buffers(g, s)}
    assert (found["q"].first, found["q"].last) == (0, max(loop))
    assert (found["k"].first, found["k"].last) == (min(loop), max(loop))
    assert found["p"].meets(found["row"]) and plan(list(found.values())).exact


@pytest.mark.parametrize("name", ["rms_norm_matmul", "gated_mlp", "attention"])
def test_the_compiler_needs_no_more(name: str) -> None:
    """What Triton takes for sm_90, beside the plan."""
    g = GRAPHS[name]()
    sizes = dict.fromkeys((a.upper() for a in g.program.sizes), 64) | {"E": 32}
    said = accept(codegen.source(ordered(g), "f"), only=("compiled",), sizes=sizes)
    planned = [plan(buffers(g, scheduled(k))).bytes for k in g.kernels]
    taken = [c.shared for c in said.compiled]
    assert len(taken) == len(planned) and all(0 < t <= p for t, p in zip(taken, planned, strict=True))
    assert planned[0] <= 1.25 * taken[0]

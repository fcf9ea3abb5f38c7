"""Blocks with several loops one after the other: phases, the field test, shared memory, texts, acceptance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import mugraphs
import pytest

from trilift.lift.errors import Unsupported
from trilift.lift.language.parse import formula
from trilift.superopt.accept.acceptance import accept
from trilift.superopt.accept.mutants import text_mutants
from trilift.superopt.arrange.arrangement import arrange
from trilift.superopt.arrange.drawing import svg
from trilift.superopt.arrange.schedule import given, scheduled, violations
from trilift.superopt.arrange.shared_memory import buffers, overlaps, plan
from trilift.superopt.emit import codegen
from trilift.superopt.jobs import emitted
from trilift.superopt.mugraph.cost import H200, Model, Shape, Traffic, Work
from trilift.superopt.mugraph.graph import Dim, Kernel, MuGraph, Operator, loops, phases
from trilift.superopt.mugraph.precision import precise
from trilift.superopt.program.program import Input, Part, Program, from_formulas, node, source
from trilift.superopt.search.stabilise import stabilised
from trilift.superopt.search.verifier import verify
from trilift.superopt.tiles.engine import Limits, search
from trilift.superopt.tiles.kernels import mugraph
from trilift.superopt.tiles.nests import Nest, Nests
from trilift.superopt.tiles.text import parse
from trilift.superopt.tiles.tile_program import statements

IN = True


def only(g: MuGraph, *changed: Operator, without: str = "") -> MuGraph:
    """The graph of one kernel, with operators in the place of those that make the same."""
    by_name = {o.out: o for o in changed}
    (k,) = g.kernels
    operators = tuple(by_name.get(o.out, o) for o in k.operators if o.out not in without.split())
    return replace(g, kernels=(replace(k, operators=operators),))


def more(g: MuGraph, *added: Operator) -> MuGraph:
    """The graph of one kernel with operators before the last two."""
    (k,) = g.kernels
    return replace(g, kernels=(replace(k, operators=(*k.operators[:-2], *added, *k.operators[-2:])),))


def right(g: MuGraph) -> bool:
    """Whether the field test finds that the graph is its program."""
    return all(o.equal is True for o in verify(g, {}).outcomes)


def operator(g: MuGraph, name: str) -> Operator:
    return next(o for o in g.kernels[0].operators if o.out == name and o.op != "store")


def names(k: Kernel) -> list[list[str]]:
    return [[o.out for o in phase] for phase in phases(k)]


# ---- phases ----------------------------------------------------------------------------------------------------------


def test_straight_code_and_loops_by_turns() -> None:
    (k,) = mugraphs.two_loops().kernels
    first, second = ["x", "w", "xw", "q"], ["k", "v", "z", "p", "pv", "row", "acc", "total"]
    assert names(k) == [[], first, [], second, ["y", "out"]]
    assert {loops(k)[o] for o in k.operators if o.out in first} == {"n"}
    assert names(mugraphs.normalised_transformer().kernels[0])[1:] == []


def test_what_stands_between_loops_is_made_there() -> None:
    g = mugraphs.two_loops()
    (k,) = g.kernels
    q, rms = mugraphs.op("root", "sqr", "q", "md"), replace(operator(g, "z"), args=("root", "k"))
    operators = tuple(rms if o.out == "z" else o for o in (*k.operators[:4], q, *k.operators[4:]))
    assert names(replace(k, operators=operators))[2] == ["root"]
    late = (*k.operators[:-1], mugraphs.op("square", "sqr", "q", "md"), k.operators[-1])
    assert names(replace(k, operators=late))[4] == ["y", "square", "out"]  # as late as it can be


def test_loops_run_in_the_order_in_which_they_need_each_other() -> None:
    (k,) = mugraphs.two_loops().kernels
    mixed = sorted(k.operators, key=lambda o: o.op != "load")
    assert [p[-1] for p in names(replace(k, operators=tuple(mixed)))[1::2]] == ["q", "total"]
    keys_first = sorted(k.operators, key=lambda o: o.out not in ("k", "v"))
    assert [{*p} & {"q", "acc"} for p in names(replace(k, operators=tuple(keys_first)))[1::2]] == [{"q"}, {"acc"}]


REFUSED: tuple[tuple[str, Callable[[MuGraph], MuGraph]], ...] = (
    ("in a loop within a loop: n, s", lambda g: only(g, replace(operator(g, "z"), args=("xw", "k")))),
    ("in a loop within a loop: n, s", lambda g: only(g, mugraphs.load("x", "ms", IN), mugraphs.load("w", "ns", IN))),
    ("needs a value of an iteration", lambda g: only(g, replace(operator(g, "y"), args=("pv", "total")))),
    ("needed in the loop that makes it", lambda g: only(g, replace(operator(g, "p"), args=("z", "total"), op="div"))),
    ("acc is needed in the loop that makes it", lambda g: only(g, replace(operator(g, "xw"), args=("x", "acc")))),
    ("circular dependency between loops: n, s", lambda g: more(
        g, mugraphs.op("again", "mul", "x total", "mn", inside=IN), mugraphs.op("part", "sum", "again", "m", "n", IN),
        mugraphs.op("rows", "accumulate", "part", "m", "n"))),
    ("no axis names the loop", lambda g: only(g, mugraphs.op("xw", "sqr", "w", "d", inside=IN),
                                             replace(operator(g, "w"), dims=frozenset(), inside=False))),
)  # fmt: skip


@pytest.mark.parametrize("why, change", REFUSED, ids=[f"{n} {w}" for n, (w, _) in enumerate(REFUSED)])
def test_loops_that_cannot_run_are_refused(why: str, change: Callable[[MuGraph], MuGraph]) -> None:
    wrong = change(mugraphs.two_loops())
    with pytest.raises(Unsupported, match=why):
        phases(wrong.kernels[0])
    assert not right(wrong)
    with pytest.raises(Unsupported):
        codegen.source(wrong, "wrong")


def test_two_axes_in_parts_are_refused() -> None:
    (k,) = (g := mugraphs.two_loops()).kernels
    both = replace(k, modes={**k.modes, "n": "split", "s": "split"})
    with pytest.raises(Unsupported, match="two axes in parts"):
        codegen.source(replace(g, kernels=(both,), parts={"n": 2, "s": 2}), "wrong")


# ---- the field test --------------------------------------------------------------------------------------------------


def test_two_loops_are_right_in_the_field() -> None:
    assert right(mugraphs.two_loops())


WRONG: tuple[tuple[str, Callable[[MuGraph], MuGraph]], ...] = (
    ("queries of the last turn", lambda g: only(g, replace(operator(g, "q"), op="sqr"))),
    ("queries summed over the other loop", lambda g: only(g, replace(operator(g, "q"), over=("s",)))),
    ("sum over the keys left out", lambda g: only(g, replace(operator(g, "total"), op="sqr", inside=False))),
    ("sums of the other loop", lambda g: only(g, replace(operator(g, "acc"), over=("n",)))),
    ("keys and values swapped", lambda g: only(g, replace(operator(g, "k"), args=("v",)))),
    ("loop n as blocks", lambda g: replace(g, kernels=(
        replace(g.kernels[0], modes={**g.kernels[0].modes, "n": "grid"}),))),
    ("weights not divided", lambda g: only(g, replace(operator(g, "y"), op="mul"))),
)  # fmt: skip


@pytest.mark.parametrize("what, change", WRONG, ids=[w for w, _ in WRONG])
def test_a_wrong_graph_is_found_in_the_field(what: str, change: Callable[[MuGraph], MuGraph]) -> None:
    assert not right(change(mugraphs.two_loops()))


def views(swapped: bool) -> MuGraph:
    """The sum of the old rows of a cache times the sum of the new ones; swapped, with one of them squared instead."""
    from trilift.lift.terms import construct as T

    p, i, h = T.size("P"), T.size("I"), T.size("H")
    shape, whole = (h, T.add(p, i)), Part(T.const(0), ("h",))
    old = Input("old", "cache", ("h", "p"), "f16", None, (whole, Part(T.const(0), ("p",))), shape)
    new = Input("new", "cache", ("h", "i"), "f16", None, (whole, Part(p, ("i",))), shape)
    sums = [node("sum", source(x.name, x.axes), attr=x.axes[1]) for x in (old, new)]
    value = node("mul", *sums)
    sizes, extents = {"h": 16, "p": 64, "i": 64}, {"h": h, "p": p, "i": i}
    program = Program((old, new), (("out", ("h",), value, "f16"),), sizes, extents)
    block = (
        mugraphs.load("old", "hp"), mugraphs.load("new", "hi"), mugraphs.op("a", "sum", "old", "h", "p"),
        mugraphs.op("b", "sum", "new", "h", "i"),
        mugraphs.op("y", "mul", "a a" if swapped else "a b", "h"), mugraphs.op("out", "store", "y", "h"),
    )  # fmt: skip
    k = Kernel("views", {"h": "grid", "p": "whole", "i": "whole"}, {"h": 16, "p": 64, "i": 64}, block)
    return MuGraph(program, (k,), {"out": mugraphs.tensor("out", "h")})


def test_two_views_of_a_tensor_are_drawn_apart() -> None:
    """Old and new rows have one shape in the test; they are not the same numbers."""
    assert right(views(False)) and not right(views(True))
    g = views(True)
    p = g.program
    same = replace(p, inputs=(p.inputs[0], replace(p.inputs[1], parts=p.inputs[0].parts[:1] + (
        Part(p.inputs[0].parts[1].start, ("i",)),))), extents={**p.extents, "i": p.extents["p"]})  # fmt: skip
    assert right(replace(g, program=same))


# ---- the arrangement -------------------------------------------------------------------------------------------------


def test_tiles_of_loops_share_memory() -> None:
    g = stabilised(mugraphs.two_loops())
    (k,) = g.kernels
    s = scheduled(k)
    assert not violations(s) and not violations(given(k)) and {*s.sides} == {1, 3, 4}
    first, second = (s.turns[side] for side in (1, 3))
    assert max(first) < min(second)
    found = buffers(g, s)
    m = plan(found)
    at = {b.name: range(x, x + b.size) for b, x in zip(found, m.offsets, strict=True)}
    assert not overlaps(found, m.offsets) and m.bytes < sum(b.size for b in found)
    shared = {(a, b) for a, b in combinations(at, 2) if at[a].start < at[b].stop and at[b].start < at[a].stop}
    assert any({"x", "w"}.intersection(pair) and {"k", "v"}.intersection(pair) for pair in shared)
    q = next(b for b in found if b.name == "q")  # every turn of the second loop reads it
    assert q.last == max(second) and all(b.meets(q) for b in found if b.name in ("k", "v"))


def test_loops_cost_their_own_turns_and_the_largest_memory() -> None:
    d = {a: Dim(a) for a in "mns"}
    program = from_formulas(
        [formula("out[m] = sum(n, x[m, n]) * sum(s, y[m, s])", {"x": ("M", "N"), "y": ("M", "S")})],
        {}, {"M": 16, "N": 4096, "S": 8192},
    )  # fmt: skip
    tiles = {frozenset({d["m"], d[a]}) for a in "ns"}
    assert len(tiles) == 2

    def shape(*axes: str) -> Shape:
        moved = [Traffic((d["m"], d[a]), 2) for a in axes] + [Traffic((d["m"],), 4, True)]
        work = [Work("sqr", frozenset({d["m"], d[a]}), a, frozenset({d["m"], d[a]})) for a in axes]
        return Shape((("m", "whole"), *((a, "loop") for a in axes)), tuple(moved), tuple(work))

    room = 16 * 256 * 2 * 3  # of three copies of one tile
    model = Model(program, replace(H200, shared=room))
    both = model.best(shape("n", "s"), {})
    assert both is not None and both.tiles["n"] == both.tiles["s"] == 256
    one, other = (model.best(shape(a), {}) for a in "ns")
    assert one is not None and other is not None
    assert both.seconds == pytest.approx(one.seconds + other.seconds - H200.launch, rel=0.05)
    small = Model(program, replace(H200, shared=room - 1)).best(shape("n", "s"), {})
    assert small is not None and max(small.tiles["n"], small.tiles["s"]) == 128


def test_every_loop_has_a_frame() -> None:
    page = svg(arrange(mugraphs.two_loops()).graph)
    assert page.count('<rect class="loop"') == 2
    assert "for tiles of n: 128 iterations" in page and "for tiles of s: 128 iterations" in page
    assert page.count("after the loop") == 1 and "between" not in page


# ---- texts -----------------------------------------------------------------------------------------------------------


def test_sums_start_before_their_own_loop() -> None:
    text = codegen.source(stabilised(mugraphs.two_loops()), "projected")
    lines = [line.strip() for line in text.splitlines()]
    first, second = (n for n, line in enumerate(lines) if line.startswith("for start_"))
    assert lines.index("q = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)") < first
    assert first < lines.index("acc = tl.zeros((BLOCK_M, BLOCK_E), tl.float32)") < second
    assert 'input_precision="tf32x3"' in text  # exp(q k) with the q that it computes
    assert precise(mugraphs.two_loops()) == {("projected_kernel", "z"): "tf32x3"}
    assert precise(mugraphs.attention(split=False)) == {} == precise(mugraphs.lora())


def swapped(text: str) -> str:
    """The second loop before the first one."""
    if "m_top = tl.full" not in text:
        return text
    head, mark, rest = text.partition("    q = tl.zeros")
    first, middle, second = rest.partition("    m_top = tl.full")
    loop, end, tail = second.partition("    y = acc")
    assert mark and middle and end
    return f"{head}{mark}{first.splitlines()[0]}\n{middle}{loop}    {first.partition(chr(10))[2].strip()}\n{end}{tail}"


def twins(text: str) -> Iterator[tuple[str, str]]:
    yield "loops swapped", swapped(text)
    started = "total = tl.zeros((BLOCK_M,), tl.float32)\n"
    yield "a sum goes on with the sum of another loop", text.replace(started, "total = tl.sum(q, axis=1)\n")
    yield "the first loop has one turn", re.sub(r"range\(0, N, (\w+)\)", r"range(0, \1, \1)", text)
    yield "the second loop runs over the columns of x", text.replace("range(0, S, BLOCK_S)", "range(0, N, BLOCK_S)")
    reset = "    q = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)\n"
    inner = "        n = start_n + tl.arange(0, BLOCK_N)\n"
    yield "queries start anew in every turn", text.replace(inner, f"{inner}    {reset}")


@pytest.mark.parametrize("n", range(5))
def test_a_wrong_text_is_rejected(n: int) -> None:
    graph = mugraphs.two_loops()
    text = codegen.source(graph if n == 1 else stabilised(graph), "projected")  # relative to a maximum, sums start anew
    what, wrong = list(twins(text))[n]
    assert wrong != text
    found = accept(wrong, only=("replayed", "rounded", "proved"), steps=3_000_000)
    assert not found.steps[-1].passed, what
    assert n == 3 or found.steps[-1].name in ("replayed", "rounded"), what  # few sizes tell N from S


def test_a_loop_cut_short_is_rejected() -> None:
    text = codegen.source(stabilised(mugraphs.two_loops()), "projected")
    cut = [t for m, t in text_mutants(text) if m.what == "loop cut short"]
    assert len(cut) == 2
    for wrong in cut:
        assert not accept(wrong, only=("replayed", "rounded"), steps=3_000_000).steps[-1].passed


# ---- tile programs to accepted files ---------------------------------------------------------------------------------

SHAPES = {"x": ("M", "N"), "w": ("N", "H", "D"), "k": ("H", "S", "D"), "v": ("H", "S", "D"), "l": ("H", "T", "D"),
          "u": ("H", "T", "D"), "c": ("S", "C"), "z": ("C", "H", "D")}  # fmt: skip
SIZES = {"M": 16, "N": 512, "H": 4, "D": 16, "S": 512, "T": 512, "C": 16}
Q = "sum(n, x[m, n] * w[n, h, e])"
E = f"exp(sum(e, {Q} * k[h, s, e]))"
PROJECTED = f"exp(sum(e, {Q} * sum(c, c[s, c] * z[c, h, e])))"
HEAD = """axes m = M, n = N, h = H, e = D, s = S, d = D, t = T, c = C
input x[m, n] f16, w[n, h, e] f16, k[h, s, e] f16, v[h, s, d] f16, l[h, t, e] f16, u[h, t, d] f16, c[s, c] f16, z[c, h, e] f16
output out[h, m, d] f16, r[h, m, s] f16
variable q[h, m, e] f32, p[h, m, s] f32, a[h, m, s] f32, o[h, m, d] f32, g[h, m] f32, b[h, m, t] f32, y[h, m, d] f32, f[h, s, e] f32
"""  # noqa: E501
QUERIES = """q[h, m, e] = 0
o[h, m, d] = 0
g[h, m] = 0
y[h, m, d] = 0
for n:
    q[h, m, e] = q[h, m, e] + sum(n, x[m, n] * w[n, h, e])
"""
ATTENTION = """for s:
    {keys}p[h, m, s] = sum(e, q[h, m, e] * {of})
    a[h, m, s] = exp(p[h, m, s])
    o[h, m, d] = o[h, m, d] + sum(s, a[h, m, s] * v[h, s, d])
    g[h, m] = g[h, m] + sum(s, a[h, m, s])
out[h, m, d] = o[h, m, d] / g[h, m]
"""
LINEAR = """for s:
    p[h, m, s] = sum(e, q[h, m, e] * k[h, s, e])
    o[h, m, d] = o[h, m, d] + sum(s, p[h, m, s] * v[h, s, d])
"""
WHOLE = LINEAR.replace("for s:\n", "").replace("    ", "").replace("o[h, m, d] + ", "")
PROGRAMS = {  # what it computes, the body of a block, its loops
    "projected queries": (
        (f"out[h, m, d] = sum(s, {E} * v[h, s, d]) / sum(s, {E})",),
        QUERIES + ATTENTION.format(keys="", of="k[h, s, e]"), "ns",
    ),
    "projected keys": (
        (f"out[h, m, d] = sum(s, {PROJECTED} * v[h, s, d]) / sum(s, {PROJECTED})",),
        QUERIES + ATTENTION.format(keys="f[h, s, e] = sum(c, c[s, c] * z[c, h, e])\n    ", of="f[h, s, e]"), "ns",
    ),
    "three loops": (
        (f"out[h, m, d] = sum(s, sum(e, {Q} * k[h, s, e]) * v[h, s, d])"
         f" + sum(t, sum(e, {Q} * l[h, t, e]) * u[h, t, d])",),
        QUERIES + LINEAR + LINEAR.replace("s", "t").replace("k[", "l[").replace("v[", "u[").replace("tum", "sum")
        .replace("o[", "y[").replace("p[", "b[") + "out[h, m, d] = o[h, m, d] + y[h, m, d]\n", "nst",
    ),
    "a loop and a whole tile": (
        (f"out[h, m, d] = sum(s, sum(e, {Q} * k[h, s, e]) * v[h, s, d])",),
        QUERIES + WHOLE + "out[h, m, d] = o[h, m, d]\n", "n",
    ),
    "a store in every turn": (
        (f"out[h, m, d] = sum(s, sum(e, {Q} * k[h, s, e]) * v[h, s, d])", f"r[h, m, s] = sum(e, {Q} * k[h, s, e])"),
        QUERIES + LINEAR + "    r[h, m, s] = p[h, m, s]\nout[h, m, d] = o[h, m, d]\n", "ns",
    ),
}  # fmt: skip
OVERFLOWING = ("projected queries", "three loops")


def made(name: str) -> MuGraph:
    """The µGraph of a kernel with a block for each h. Products of products are in f32: in f16 they overflow at inputs
    at which the result does not, and such a kernel is not accepted."""
    formulas, body, _ = PROGRAMS[name]
    dtype = "f32" if name in OVERFLOWING else "f16"
    read = {x: s for x, s in SHAPES.items() if any(f"{x}[" in f for f in formulas)}
    p = from_formulas([formula(f, read) for f in formulas], dict.fromkeys(SHAPES, dtype), SIZES)
    p = replace(p, outputs=tuple((n, a, v, dtype) for n, a, v, _ in p.outputs))
    head = HEAD if "r[" in body else HEAD.replace(", r[h, m, s] f16", "")
    b = parse((head + body).replace("f16", dtype), SIZES)
    tensors = {n: t for n, t in b.tensors.items() if t.role != "input" or n in read}
    b = replace(b, tensors={n: t for n, t in tensors.items() if n in ("out", *read) or f"{n}[" in body})
    axes = {a for x in b.tensors.values() for a in x.axes}
    b = replace(b, sizes={a: n for a, n in b.sizes.items() if a in axes})
    return mugraph(Nests((Nest(("h",), b.body, 0.0),)), b, p, Model(p))[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_with_loops_one_after_the_other_are_proved(name: str) -> None:
    g, (formulas, _, axes) = made(name), PROGRAMS[name]
    assert right(g) and [loops(k) for k in g.kernels] != [{}]
    arranged, text, _ = emitted(g, "found", (), 0)
    assert len(re.findall(r"^    for start_", text, re.M)) == len(axes)
    assert len(phases(arranged.graph.kernels[0])) == 2 * len(axes) + 1
    named = {n: SIZES[n] for f in formulas for x, s in SHAPES.items() if f"{x}[" in f for n in s}
    judged = accept(text, sizes=named, steps=5_000_000, timeout=180)
    assert judged.accepted and judged.verdict == "PROVED", str(judged)


def test_the_engine_finds_such_a_kernel() -> None:
    p = made("projected queries").program
    found = search(p, Limits(seconds=20.0))
    assert any(len(k.loops) == 2 for x in found.plans for k in x.graph.kernels)
    assert all(right(x.graph) for x in found.plans)


def test_loops_over_one_axis_are_one_or_refused() -> None:
    """Two sums over n are one loop; a sum over n of what a sum over n divides is none."""
    text = """axes m = M, n = N
input x[m, n] f16, w[n] f16
output out[m] f16
variable a[m] f32, b[m] f32
a[m] = 0
b[m] = 0
for n:
    a[m] = a[m] + sum(n, x[m, n])
for n:
    b[m] = b[m] + sum(n, {term})
out[m] = a[m] + b[m]
"""
    of = formula("out[m] = sum(n, x[m, n]) + sum(n, x[m, n] * w[n])", {"x": ("M", "N"), "w": ("N",)})
    sizes = {"M": 16, "N": 512}
    p = from_formulas([of], {}, sizes)

    def graph(term: str) -> MuGraph:
        b = parse(text.format(term=term), sizes)
        return mugraph(Nests((Nest((), b.body, 0.0),)), b, p, Model(p))[0]

    g = graph("x[m, n] * w[n]")
    assert g.kernels[0].loops == ("n",) and len(phases(g.kernels[0])) == 3 and right(g)
    with pytest.raises(Unsupported, match="is needed in the loop that makes it"):
        graph("x[m, n] / a[m]")


def test_an_output_that_another_kernel_loads_has_a_copy() -> None:
    text = """axes m = M, n = N
input x[m, n] f16
output r[m] f16, out[m, n] f16
r[m] = sum(n, x[m, n])
out[m, n] = x[m, n] / r[m]
"""
    shapes = {"x": ("M", "N")}
    formulas = ["r[m] = sum(n, x[m, n])", "out[m, n] = x[m, n] / sum(k, x[m, k])"]
    sizes = {"M": 16, "N": 512}
    p = from_formulas([formula(f, shapes) for f in formulas], {"x": "f16"}, sizes)
    b = parse(text, sizes)
    first, second = statements(b.body)
    g, _ = mugraph(Nests((Nest(("m",), first, 0.0), Nest(("m",), second, 0.0))), b, p, Model(p))
    assert [[o.out for o in k.stores] for k in g.kernels] == [["r", "r_copy"], ["out"]]
    assert g.tensors["r_copy"].dtype == "f32" and right(g)

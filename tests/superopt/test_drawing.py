"""µGraphs as SVG and as JSON."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations

import mugraphs
import pytest

from trilift.lift.errors import CaseError
from trilift.lift.terms import term as T
from trilift.reports.experiments.faults.mutated import mutated
from trilift.superopt.arrange.arrangement import arrange
from trilift.superopt.arrange.drawing import collapsed, svg
from trilift.superopt.mirage.judge import reference
from trilift.superopt.mugraph.graph import Dim, Kernel, MuGraph, Operator, Tensor, text
from trilift.superopt.mugraph.json import FORMAT, from_json, to_json
from trilift.superopt.program.program import Input, Program, node, source
from trilift.superopt.search.best_first import graphs, search
from trilift.superopt.search.stabilise import stabilised

SVG = "{http://www.w3.org/2000/svg}"
TEXTS: dict[str, tuple[str, dict[str, tuple[str, ...]], dict[str, int]]] = {
    "gqa": (
        "(exp(Q@K)/sum(exp(Q@K), -1, keepdim=True))@V",
        {"Q": ("B", "M", "D"), "K": ("B", "D", "N"), "V": ("B", "N", "E")},
        {"B": 2, "M": 256, "D": 64, "N": 4096, "E": 64},
    ),
    "rmsnorm": (
        "(X/sqrt(mean(X**2, -1, keepdim=True)))@W",
        {"X": ("M", "K"), "W": ("K", "N")},
        {"M": 2, "K": 4096, "N": 6144},
    ),
    "gated": (
        "silu(X@W1)*(X@W2)",
        {"X": ("M", "K"), "W1": ("K", "N"), "W2": ("K", "N")},
        {"M": 8, "K": 4096, "N": 4096},
    ),
}


@cache
def searched(name: str) -> list[MuGraph]:
    formula, inputs, dims = TEXTS[name]
    return graphs(search(reference(formula, inputs, dims).program()))


def split() -> MuGraph:
    """By hand: the sum over k in 4 parts, each in a loop; then the sum of the parts, and a function with a name that
    has to be escaped."""
    m, k, parts = Dim("m"), Dim("k"), Dim("k", True)
    x = source("x", ["m", "k"])
    bound = T.scalar("a0") * T.const(math.inf)
    out = node("map", node("sum", x, attr="k"), attr=bound)
    program = Program((Input("x", "x<&>", ("m", "k"), "f32"),), (("out", ("m",), out, "f32"),), {"m": 64, "k": 4096})
    first = Kernel("first", {"m": "grid", "k": "split"}, {"m": 16, "k": 128}, (
        Operator("x_tile", "load", ("x",), frozenset([m, k]), (), True),
        Operator("a", "accumulate", ("x_tile",), frozenset([m, k]), ("k",), True),
        Operator("b", "sum", ("a",), frozenset([m]), ("k",)),
        Operator("part", "store", ("b",), frozenset([m])),
    ))  # fmt: skip
    second = Kernel("second <&>", {"m": "grid", "k": "whole"}, {"m": 32, "k": 4096}, (
        Operator("part_tile", "load", ("part",), frozenset([m, parts])),
        Operator("c", "sum", ("part_tile",), frozenset([m]), ("k",)),
        Operator("d", "map:<script>", ("c",), frozenset([m])),
        Operator("out", "store", ("d",), frozenset([m])),
    ), 8, 2)  # fmt: skip
    tensors = {"part": Tensor("part", (parts, m), "f32"), "out": Tensor("out", (m,), "f32")}
    return MuGraph(program, (first, second), tensors, {"k": 4})


def every() -> Iterator[MuGraph]:
    yield split()
    for name in TEXTS:
        for g in searched(name)[:3]:
            yield g
            if (stable := stabilised(g)) is not g:
                yield stable


def arranged(g: MuGraph) -> MuGraph:
    return arrange(g).graph


def in_loop(o: Operator) -> bool:
    return o.inside or o.op.startswith("accumulate")


# ---- JSON ------------------------------------------------------------------------------------------------------------


def test_there_and_back() -> None:
    for g in every():
        written = to_json(g)
        back = from_json(written)
        assert back == g and text(back) == text(g)
        assert to_json(back) == written
        assert [n.attr for n in back.program.nodes] == [n.attr for n in g.program.nodes]
        assert all(a is b for a, b in zip(back.program.extents.values(), g.program.extents.values(), strict=True))


def test_what_differs_is_written_differently() -> None:
    g = split()
    first, second = g.kernels
    loads = tuple(replace(o, inside=False) for o in first.operators)
    for other in (
        replace(g, kernels=(first,)), replace(g, parts={"k": 8}), replace(g, kernels=(replace(first, warps=8), second)),
        replace(g, kernels=(replace(first, operators=loads), second)), replace(g, tensors={"part": g.tensors["part"]}),
        replace(g, program=replace(g.program, sizes={"m": 64, "k": 2048})),
    ):  # fmt: skip
        assert to_json(other) != to_json(g)
        assert from_json(to_json(other)) == other != g


def test_values_that_are_shared_stay_shared() -> None:
    """Ten squares of sums of themselves: a tree would have 2^10 of them."""
    v = source("x", ["m"])
    for _ in range(10):
        v = node("add", v, v)
    g = MuGraph(Program((Input("x", "x", ("m",)),), (("out", ("m",), v, "f16"),), {"m": 8}), (), {})
    assert len(json.loads(to_json(g))["program"]["nodes"]) == 11
    assert from_json(to_json(g)) == g


BROKEN = {
    "no JSON": (lambda d: "{", "not a µGraph"),
    "another format": (lambda d: {**d, "format": "x"}, "the format is not"),
    "a list": (lambda d: [d], "the format is not"),
    "no kernels": (lambda d: {k: v for k, v in d.items() if k != "kernels"}, "kernels"),
    "a field of tomorrow": (lambda d: {**d, "more": 1}, "MuGraph has no more"),
    "a dimension that is none": (
        lambda d: {**d, "tensors": {"t": {"name": "t", "dims": ["m/half"], "dtype": "f32"}}}, "m/half is not a dim"
    ),
    "a node from nowhere": (
        lambda d: {**d, "program": {**d["program"], "nodes": [{"op": "exp", "args": [3], "attr": None, "axes": []}]}},
        "IndexError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_text_that_is_no_graph(name: str) -> None:
    change, message = BROKEN[name]
    changed = change(json.loads(to_json(split())))
    with pytest.raises(CaseError) as e:
        from_json(changed if isinstance(changed, str) else json.dumps(changed))
    assert message in str(e.value)
    assert json.loads(to_json(split()))["format"] == FORMAT


def test_changed_bytes_are_a_clear_error_or_a_graph_that_can_be_written() -> None:
    whole = to_json(mugraphs.rms_norm_matmul()).encode()
    read = 0
    for seed in range(500):
        try:
            g = from_json(mutated([whole], seed).decode(errors="replace"))
        except CaseError:
            continue
        read += 1
        assert text(g) and from_json(to_json(g)) == g, f"seed {seed}"
    assert 10 < read < 400


# ---- SVG -------------------------------------------------------------------------------------------------------------


def drawn(g: MuGraph) -> ET.Element:
    return ET.fromstring(svg(g))


def texts(root: ET.Element) -> list[str]:
    return [t.text or "" for t in root.iter(f"{SVG}text")]


def rectangles(root: ET.Element, *kinds: str) -> list[tuple[float, float, float, float]]:
    """(left, top, right, bottom) of those of a class."""
    out = []
    for r in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(r.attrib[k]) for k in ("x", "y", "width", "height"))
        if r.attrib["class"] in kinds:
            out.append((x, y, x + w, y + h))
    return out


BOXES = ("operator", "dot", "fold", "memory")


def test_a_drawing_says_all() -> None:
    for g in every():
        said = "\n".join(texts(drawn(g)))
        for k in g.kernels:
            assert f"{k.name}: {g.blocks(k)} block" in said
            for o in k.operators:
                assert {"load": f"{o.out} = load {o.args[0]}", "store": f"store {o.args[0]} to {o.out}"}.get(
                    o.op, f"{o.out} = ") in said  # fmt: skip
        for name, t in g.memory.items():
            assert name in said and t.dtype in said


def test_the_texts_of_a_split_sum() -> None:
    said = texts(drawn(split()))
    for line in (
        "first: 16 blocks, 4 warps, 3 stages", "m: grid by 16 · k: 4 parts, loop by 128",
        "for tiles of k: 8 iterations", "a = accumulate(x_tile) over k", "b = sum(a) over k", "[k/parts 4, m 64] f32",
        "part_tile = load part", "[k/parts 4, m 32]", "second <&>: 2 blocks, 8 warps, 2 stages",
    ):  # fmt: skip
        assert line in said
    assert said.count("after the loop") == 1 and "before the loop" not in said


def test_functions_are_written_as_formulas() -> None:
    (g, *_) = searched("gated")
    said = "\n".join(texts(drawn(g)))
    assert re.search(r"v\d = silu\(v\d\)", said) and re.search(r"v\d = v\d \* v\d", said) and "map:" not in said
    (g, *_) = searched("rmsnorm")
    assert re.search(r"v\d = v\d / K", "\n".join(texts(drawn(g))))


def test_boxes_are_apart_and_within() -> None:
    for g in every():
        root = drawn(g)
        boxes, kernels = rectangles(root, *BOXES), rectangles(root, "kernel")
        for a, b in combinations(boxes, 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        x, y, width, height = map(float, root.attrib["viewBox"].split())
        assert all(x <= b[0] and b[2] <= x + width and y <= b[1] and b[3] <= y + height for b in boxes + kernels)
        assert len(kernels) == len(g.kernels)
        inside = [b for b in boxes if any(within(b, k) for k in kernels)]
        assert len(inside) == sum(len(k.operators) for k in g.kernels)


def within(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return b[0] <= a[0] and b[1] <= a[1] and a[2] <= b[2] and a[3] <= b[3]


def test_what_is_in_the_loop_is_in_its_frame() -> None:
    for g in every():
        root = drawn(g)
        frames = rectangles(root, "loop")
        assert len(frames) == sum(any(map(in_loop, k.operators)) for k in g.kernels)
        inside = [b for b in rectangles(root, *BOXES) if any(within(b, f) for f in frames)]
        assert len(inside) == sum(in_loop(o) for k in g.kernels for o in k.operators)


def test_every_argument_has_an_arrow() -> None:
    for g in every():
        arrows = [p for p in drawn(g).iter(f"{SVG}path") if "marker-end" in p.attrib]
        stores = sum(len(k.stores) for k in g.kernels)
        assert len(arrows) == stores + sum(len(set(o.args)) for k in g.kernels for o in k.operators)


def test_edges_that_pass_a_row_cross_no_box() -> None:
    seen = 0
    for g in every():
        root = drawn(g)
        boxes = rectangles(root, *BOXES)
        for p in root.iter(f"{SVG}path"):
            if line := re.fullmatch(r"M(\S+) (\S+) v(\S+)", p.attrib["d"]):
                x, y, _ = map(float, line.groups())
                seen += 1
                assert not [b for b in boxes if b[0] < x < b[2] and b[1] <= y < b[3]]
    assert seen > 5


def test_nothing_is_loaded_and_all_is_escaped() -> None:
    for g in every():
        page = svg(g)
        assert "<script" not in page.lower() and "href" not in page and "@import" not in page
        assert set(re.findall(r"url\(([^)]*)\)", page)) == {"#mu-arrow"}
        assert page.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http") == 0
    assert "map:&lt;script&gt;" in svg(split()) and "second &lt;&amp;&gt;" in svg(split())


def test_thread_graphs_are_boxes_of_several_lines() -> None:
    seen = 0
    for g in map(arranged, every()):
        root = drawn(g)
        said, threads = texts(root), rectangles(root, "thread")
        assert len(threads) == sum(len(k.threads) for k in g.kernels)
        lines = [line for k in g.kernels for names in k.threads for line in names]
        assert all(any(t.startswith(f"{name} = ") for t in said) for name in lines)
        for a, b in combinations(rectangles(root, *BOXES, "thread"), 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        for left, top, right, bottom in threads:
            inside = [t for t in root.iter(f"{SVG}text") if left < float(t.attrib["x"]) < right
                      and top < float(t.attrib["y"]) <= bottom]  # fmt: skip
            assert len(inside) >= 3
            seen += 1
        arrows = [p for p in root.iter(f"{SVG}path") if "marker-end" in p.attrib]
        kernels = [collapsed(k)[0] for k in g.kernels]
        stores = sum(len(k.stores) for k in kernels)
        assert len(arrows) == stores + sum(len(set(o.args)) for k in kernels for o in k.operators)
    assert seen >= 4 and not rectangles(drawn(split()), "thread")


def test_a_running_maximum_is_drawn_in_the_loop() -> None:
    """It is no operator of the loop by its flag, but what the loop uses."""
    stable = [s for g in searched("gqa") if (s := stabilised(g)) is not g]
    assert stable
    for g in stable:
        said = texts(drawn(g))
        assert "v0_less = v0 - m_top" in said and "m_top = accumulate_max(highest) over n" in said
        assert from_json(to_json(g)) == g


def test_the_title() -> None:
    for g, given, title in (
        (split(), "", "µGraph of 2 kernels"), (split(), "a <b>", "a <b>"), (searched("gated")[0], "", "µGraph"),
    ):  # fmt: skip
        found = ET.fromstring(svg(g, given)).find(f"{SVG}title")
        assert found is not None and found.text == title


def test_the_same_twice() -> None:
    assert svg(split()) == svg(split()) == svg(from_json(to_json(split())))

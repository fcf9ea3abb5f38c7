"""Layouts: the integer program against all choices, and what reaches the emitted kernels."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import mugraphs
import pytest

from trilift.lift.capture.case_files import load
from trilift.lift.language.parse import formula
from trilift.superopt.accept.acceptance import accept
from trilift.superopt.arrange.arrangement import arrange, record
from trilift.superopt.arrange.layouts import Key, Option, Pair, Problem, laid_out, layouts, problem, solve, turns
from trilift.superopt.arrange.schedule import violations
from trilift.superopt.emit import codegen
from trilift.superopt.mugraph.cost import H200, Model, Shape, Traffic, Work
from trilift.superopt.mugraph.graph import Dim, Kernel, MuGraph, Tensor
from trilift.superopt.program.program import from_formulas
from trilift.superopt.search.stabilise import stabilised
from trilift.superopt.search.unfused import unfused
from trilift.verify import prove

M, N, K, PARTS = Dim("m"), Dim("n"), Dim("k"), Dim("k", True)


def written(dtype: str = "f16") -> MuGraph:
    """(a @ b.T) @ c as it is written, the product in memory."""
    text = "out[m,j] = sum(n, sum(k, a[m,k] * b[n,k]) * c[n,j])"
    shapes = {"a": ("M", "K"), "b": ("N", "K"), "c": ("N", "J")}
    p = from_formulas(
        [formula(text, shapes, dtype=dtype)], dict.fromkeys(shapes, dtype), {"M": 64, "K": 128, "N": 256, "J": 64}
    )
    return unfused(p)[0]


GRAPHS = {
    "split_matmul": mugraphs.split_matmul,
    "attention": lambda: stabilised(mugraphs.attention()),
    "gated_mlp": mugraphs.gated_mlp,
    "written": written,
    "written in 32 bits": lambda: written("f32"),
}


def cheapest(p: Problem) -> float:
    """Over all choices; of those on which nothing depends, one after the other."""
    tied = {key for pair in p.pairs for key in (pair.first, pair.second)}
    free = [k for k in p.options if k not in tied]
    out = sum(min(p.costs.get((k, o), 0.0) for o in p.options[k]) for k in free)
    rest = replace(p, options={k: p.options[k] for k in p.options if k in tied})
    rest.costs = {(k, o): c for (k, o), c in p.costs.items() if k in tied}
    every = product(*rest.options.values())
    return out + min(rest.cost(dict(zip(rest.options, choice, strict=True))) for choice in every)


def problems(seed: int) -> Problem:
    """Six tiles of two or three dimensions, random costs."""
    draw = random.Random(seed)
    p = Problem()
    options: tuple[Option, ...] = ((M,), (N,), (K,))
    keys: list[Key] = [("tile", "k", str(n)) for n in range(6)]
    for key in keys:
        p.options[key] = options[: draw.choice((1, 2, 3))]
        for o in p.options[key]:
            p.add(key, o, draw.choice((0.0, 1.0, 5.0, 20.0)))
    for _ in range(8):
        a, b = draw.sample(keys, 2)
        these, those = ({draw.choice(p.options[k])} for k in (a, b))
        p.pairs.append(Pair(a, frozenset(these), b, frozenset(those), draw.choice((2.0, 7.0, 11.0))))
    return p


def test_no_choice_is_cheaper() -> None:
    paid = 0
    for seed in range(60):
        p = problems(seed)
        found = p.cost(solve(p))
        assert found == pytest.approx(cheapest(p), abs=1e-2), seed
        alone = {k: min(os, key=lambda o: p.costs.get((k, o), 0.0)) for k, os in p.options.items()}
        assert p.cost(alone) >= found - 1e-2
        paid += p.cost(alone) > found + 1e-2
    assert paid >= 10  # one tile after the other is not enough


@pytest.mark.parametrize("name", [n for n in GRAPHS if n != "attention"])
def test_no_layout_of_a_graph_is_cheaper(name: str) -> None:
    g = GRAPHS[name]()
    p = problem(g)
    found = layouts(g)
    assert found.cost == pytest.approx(cheapest(p), abs=1e-2) and found.cost <= found.given


def test_the_given_order_stays_where_none_is_better() -> None:
    g = mugraphs.split_matmul()
    assert layouts(g).orders == {"partial": g.tensors["partial"].dims} and layouts(g).cost == layouts(g).given
    assert layouts(mugraphs.rms_norm_matmul()).orders == {}  # inputs and outputs are the program's


def scattered() -> MuGraph:
    """The parts of a product innermost: every element that is stored is in a sector of its own."""
    g = mugraphs.split_matmul()
    return replace(g, tensors={**g.tensors, "partial": Tensor("partial", (M, N, PARTS), "f32")})


def test_parts_are_not_innermost() -> None:
    found = layouts(scattered())
    assert found.orders["partial"][-1] == N and found.cost < 0.9 * found.given
    moved = found.given - found.cost
    bytes_stored = 4096 * 4096 * 4 * 4  # of the parts: in sectors of which one element in eight is wanted
    assert moved > 6 * bytes_stored / H200.cache * 1e9


def test_what_is_laid_out_anew_is_proved(tmp_path: Path) -> None:
    g = arrange(scattered()).graph
    assert g.tensors["partial"].dims[-1] == N
    text = codegen.source(g, "product")
    created = next(line for line in text.splitlines() if line.strip().startswith("partial = torch.empty"))
    assert "N)" in created and "PARTS_K" in created
    path = tmp_path / "product.py"
    path.write_text(text)
    assert [p.verdict.value for p in prove(load(str(path))[0])] == ["PROVED"]
    wrong = text.replace("*partial.stride()", "partial.stride(1), partial.stride(0), partial.stride(2)", 1)
    said = accept(wrong, only=("replayed",), steps=1_000_000)
    assert wrong != text and not said.accepted and said.steps[-1].name == "replayed" and not said.steps[-1].passed
    assert accept(text, only=("replayed",), steps=1_000_000).steps[-1].passed


def test_operands_of_32_bits_are_wanted_along_the_sum() -> None:
    wide, narrow = problem(written("f32")), problem(written())
    axis = {d.axis for o in written().kernels[0].operators if o.op == "dot" for d in o.dims}
    assert len(wide.costs) > len(narrow.costs)
    more = {key for key in wide.costs if key not in narrow.costs}
    assert all(key[0] == "tile" for key, _ in more) and {o[0].axis for _, o in more} & axis


def test_turns_of_a_loop() -> None:
    assert [times(mugraphs.split_matmul(), k) for k in mugraphs.split_matmul().kernels] == [[4096 // 4 // 32], []]
    assert [times(mugraphs.split_row(), k) for k in mugraphs.split_row().kernels] == [[32], [4]]


def times(g: MuGraph, k: Kernel) -> list[int]:
    return [turns(g, k, a) for a in k.loops]


# ---- all of it -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_an_arrangement(name: str) -> None:
    g = GRAPHS[name]()
    a = arrange(g)
    assert [sorted(map(repr, k.operators)) for k in a.graph.kernels] == [
        sorted(map(repr, k.operators)) for k in g.kernels
    ]
    assert not any(violations(b.schedule) for b in a.blocks)
    again = arrange(a.graph)
    assert again.graph == a.graph and again.layouts.cost == again.layouts.given
    data = record(a)
    assert json.loads(json.dumps(data)) == data
    for b, k in zip(data["kernels"], g.kernels, strict=True):
        assert b["barriers"]["all"] <= b["barriers_found"]["all"]
        assert b["shared"]["bound"] <= b["shared"]["bytes"] <= b["shared"]["best_fit"]
        assert b["stages"] == k.stages and b["kernel"] in str(a)
    assert laid_out(g, a.layouts).tensors == a.graph.tensors


def test_a_loop_has_the_stages_that_fit() -> None:
    g = mugraphs.rms_norm_matmul()
    usual = arrange(g).blocks[0]
    assert usual.stages == 3
    less = arrange(g, replace(H200, shared=usual.memory.bytes - 1)).blocks[0]
    assert less.stages == 2 and less.memory.bytes < usual.memory.bytes
    assert "num_stages=2" in codegen.source(arrange(g, replace(H200, shared=usual.memory.bytes - 1)).graph, "f")
    assert arrange(g, replace(H200, shared=1)).blocks[0].stages == 3  # nothing fits: the compiler says so


def test_the_model_counts_the_operands_that_are_in_shared_memory() -> None:
    """A computed operand with the rows of an asynchronous product is in registers: larger tiles fit, and compile."""
    m, n, d = Dim("m"), Dim("n"), Dim("d")
    p = from_formulas(
        [formula("out[m,d] = sum(n, exp(s[m,n]) * v[n,d])", {"s": ("M", "N"), "v": ("N", "D")})],
        {}, {"M": 64, "N": 256, "D": 64},
    )  # fmt: skip
    moved = (Traffic((m, n), 4), Traffic((n, d), 2), Traffic((m, d), 2, True))
    modes = (("m", "whole"), ("n", "whole"), ("d", "whole"))
    work = Work("dot", frozenset({m, n, d}), None, frozenset({m, d}), made=(frozenset({m, n}),))
    used = 64 * 256 * 4 + 256 * 64 * 2
    both = replace(work, made=(frozenset({m, n}), frozenset({n, d})))
    for w, fits in ((work, True), (both, False)):
        model = Model(p, replace(H200, shared=used))
        assert (model.best(Shape(modes, moved, (w,)), {}) is not None) == fits

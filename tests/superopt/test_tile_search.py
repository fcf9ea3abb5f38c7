"""The engine of tile programs: bodies, nests, µGraphs; what it extracts does the same as the program."""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pytest

from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.language.parse import formula
from trilift.superopt.mugraph.cost import Model
from trilift.superopt.program.abstract import templates
from trilift.superopt.program.program import Program, from_formulas
from trilift.superopt.search.verifier import verify
from trilift.superopt.tiles.analyses import Analyses, count
from trilift.superopt.tiles.engine import Limits, rules_of, search
from trilift.superopt.tiles.kernels import mugraph
from trilift.superopt.tiles.nests import Extraction, Nest, Nests
from trilift.superopt.tiles.run import run
from trilift.superopt.tiles.saturate import Stage, staged
from trilift.superopt.tiles.text import parse, text
from trilift.superopt.tiles.tile_bodies import arranged, bodies, free, looped, parted, planes, stored, written
from trilift.superopt.tiles.tile_program import Loop, Store, TileProgram, check, statements, stores

ATTENTION = "out[g, m, d] = sum(n, exp(sum(e, q[g, m, e] * k[g, e, n])) * v[g, n, d] / sum(n, exp(sum(e, q[g, m, e] * k[g, e, n]))))"  # noqa: E501
SHAPES = {"q": ("G", "M", "D"), "k": ("G", "D", "N"), "v": ("G", "N", "D")}
LARGE = {"G": 16, "M": 256, "D": 64, "N": 4096}
NORMED = "out[m, n] = sum(k, x[m, k] / sqrt(sum(j, x[m, j] ** 2)) * w[k, n])"


def attention(sizes: dict[str, int]) -> Program:
    return from_formulas([formula(ATTENTION, SHAPES)], {}, sizes)


def normed(sizes: dict[str, int]) -> Program:
    return from_formulas([formula(NORMED, {"x": ("M", "K"), "w": ("K", "N")})], {}, sizes)


def small(p: TileProgram, most: int = 5) -> TileProgram:
    """The same program with axes of a few entries."""
    sizes = {a: min(n, most + k % 3) for k, (a, n) in enumerate(p.sizes.items())}
    return TileProgram(p.tensors, p.body, sizes, p.extents, p.parts)


def same(p: TileProgram, q: TileProgram, seed: int = 0) -> bool:
    """Whether two programs over the same inputs leave the same outputs, at tiles that do not divide."""
    rng = np.random.default_rng(seed)
    p, q = small(p), small(q)
    drawn = {n: rng.uniform(0.5, 1.5, [q.sizes[a] for a in t.axes]) for n, t in q.tensors.items()}
    given = {n: x.reshape([p.sizes[a] for a in p.tensors[n].axes]) for n, x in drawn.items() if n in p.tensors}
    given |= {n: np.zeros([p.sizes[a] for a in t.axes]) for n, t in p.tensors.items() if n not in given}
    tiles = {a: 1 + k % 3 for k, a in enumerate(q.sizes)}
    left, right = run(p, given, tiles), run(q, drawn, tiles)
    return all(np.allclose(left[o].ravel(), right[o].ravel(), rtol=1e-9) for o in p.outputs)


@pytest.mark.parametrize("program", [attention(LARGE), normed({"M": 16, "K": 4096, "N": 6144})])
def test_bodies_are_the_program_and_differ(program: Program) -> None:
    found = bodies(program, 6)
    assert len(found) > 1 and len({b.body for b in found}) == len(found)
    for b in found:
        check(b)
        assert same(written(program), b), text(b)


def test_the_quotient_stands_before_the_sum_and_after_it() -> None:
    """Of a norm and a product: one pass over x is enough where the division comes last."""
    after = {
        s.value.op
        for b in bodies(normed({"M": 16, "K": 4096, "N": 6144}), 6)
        for s in stores(b.body)
        if s.tensor == "out"
    }
    assert {"sum", "div"} <= after


def test_an_axis_in_parts_is_summed_in_two_steps() -> None:
    body = bodies(attention(LARGE), 2)[0]
    p = parted(body, "n", 4)
    assert p.sizes["n_parts"] == 4 and p.sizes["n"] == 1024 and p.parts == {"n_parts": "n"}
    late = [s.tensor for s in stores(p.body) if s.value.op == "sum" and s.value.attr == "n_parts"]
    assert len(late) == 2 and [s.tensor for s in stores(p.body)][-3:-1] == late
    with pytest.raises(CaseError, match="an output"):
        parted(body, "m", 4)


def nests(program: Program, kernels: int = 4) -> list[tuple[TileProgram, Nests]]:
    out = []
    for body in bodies(program, 2):
        classes = staged(body, [Stage(rules_of(body), 10)], 20_000, looped=looped(body))
        out += [(body, n) for n in Extraction(Analyses(classes), 64, room=8192).best(kernels)]
    return out


WEIGHTS = "out[g, n] = sum(m, exp(sum(e, q[g, m, e] * k[g, e, n])) / sum(n, exp(sum(e, q[g, m, e] * k[g, e, n]))))"


def test_a_block_loads_again_what_no_registers_hold() -> None:
    """What a key is worth to all queries: the sums of the exponentials are known when their tiles are gone."""
    sizes = {**LARGE, "M": 16}
    spilled = 0
    for body in bodies(from_formulas([formula(WEIGHTS, {n: SHAPES[n] for n in "qk"})], {}, sizes), 2):
        extraction = Extraction(Analyses(staged(body, [Stage(rules_of(body), 10)], 20_000, looped=looped(body))), 64)
        assert extraction.kernel(extraction.known.given.root) is None
        for n in extraction.best(4):
            assert same(body, n.program(body)), text(n.program(body))
            for k in n.kernels:
                assert all({*k.grid} <= {*body.tensors[t].axes} for t in k.spilled)
                assert _held(body, k) != bool(k.spilled)
            if any(k.spilled for k in n.kernels):
                spilled += 1
                assert len(n.kernels) == 1 and n.kernels[0].grid == ("g",) and len(n.kernels[0].spilled) == 1
                with pytest.raises(Unsupported, match="again from device memory"):
                    mugraph(n, body, attention(LARGE), Model(attention(LARGE)))
    assert spilled


@pytest.fixture(scope="module")
def found() -> list[tuple[TileProgram, Nests]]:
    return nests(attention(LARGE))


def test_what_is_extracted_is_the_program(found: list[tuple[TileProgram, Nests]]) -> None:
    assert len(found) >= 3
    for body, n in found:
        p = n.program(body)
        check(p)
        assert same(body, p), text(p)


def test_attention_becomes_one_kernel_with_one_loop_over_the_keys(found: list[tuple[TileProgram, Nests]]) -> None:
    one = next(n for _, n in found if len(n.kernels) == 1).kernels[0]
    assert {*one.grid} == {"g", "m", "d"}
    loops = [s for s in statements(one.body) if isinstance(s, Loop)]
    assert [s.axis for s in loops] == ["n"] and len(list(stores(loops[0].body))) == 4
    last = list(statements(one.body))[-1]
    assert isinstance(last, Store) and last.tensor == "out" and last.value.op == "div"


def test_what_is_loaded_after_a_loop_is_not_left_in_its_tiles() -> None:
    """The exponentials are stored tile by tile: their sum has to be in the same loop, or in another kernel."""
    for body, n in nests(attention(LARGE)):
        for kernel in n.kernels:
            assert _held(body, kernel)


def _held(p: TileProgram, kernel: Nest) -> bool:
    """Whether no statement of a block loads, outside of a loop, what the loop stored a tile of."""
    left: set[str] = set()
    for s in statements(kernel.body):
        loads = {str(n.attr) for one in stores(s) for n in one.value.walk() if n.op == "input"}
        if loads & left:
            return False
        if isinstance(s, Loop):
            left |= {x.tensor for x in stores(s.body) if s.axis in p.tensors[x.tensor].axes}
    return True


def test_that_check_can_fail(found: list[tuple[TileProgram, Nests]]) -> None:
    body = bodies(attention(LARGE), 2)[0]
    first, *rest = statements(body.body)
    moved = Nest((), TileProgram(body.tensors, Loop("n", first), body.sizes).body, 0.0)
    assert _held(body, moved)
    from trilift.superopt.tiles.tile_program import sequence

    assert not _held(body, Nest((), sequence([Loop("n", first), *rest]), 0.0))


def test_graphs_are_right_in_the_field_and_have_the_times_of_the_model(found: list[tuple[TileProgram, Nests]]) -> None:
    program = attention(LARGE)
    model = Model(program)
    made = 0
    for body, n in found:
        try:
            graph, seconds = mugraph(n, body, program, model)
        except Unsupported:
            continue
        made += 1
        assert seconds >= model.roofline
        tested = verify(graph, templates(program), 0)
        assert all(o.equal is True for o in tested.outcomes)
    assert made


def test_parts_of_the_keys_are_found_by_blocks_of_their_own() -> None:
    """Flash decoding: few rows, many keys."""
    program = from_formulas([formula(ATTENTION, SHAPES)], {}, {"G": 2, "M": 16, "D": 64, "N": 8192})
    best = search(program, Limits(seconds=60)).plans[0]
    assert best.graph.parts and len(best.graph.kernels) == 2
    assert {k.modes["n"] for k in best.graph.kernels} == {"split", "whole"}
    assert all(o.equal is True for o in verify(best.graph, templates(program), 0).outcomes)


def test_programs_are_counted_exactly() -> None:
    """Of one store with one axis to loop over there are two: with the loop and without."""
    p = parse("axes m = M\ninput x[m] f32\noutput o[m] f32\no[m] = exp(x[m])\n", {"M": 1000})
    classes = staged(p, [Stage(rules_of(p), 6)], looped=["m"])
    assert count(classes) == 2
    assert count(staged(p, [Stage(rules_of(p), 6)], looped=[])) == 1


def test_a_short_axis_is_of_blocks_and_not_of_loops() -> None:
    """Eight rows of a product fill no tile of 16: a block has them and no more."""
    gate = "out[m, n] = sum(k, x[m, k] * u[k, n]) * sum(k, x[m, k] * w[k, n])"
    shapes = {"x": ("M", "K"), "u": ("K", "N"), "w": ("K", "N")}
    program = from_formulas([formula(gate, shapes)], {}, {"M": 8, "K": 4096, "N": 4096})
    assert free(written(program)) == {"m", "n"} and looped(bodies(program, 1)[0]) == ["k"]
    best = search(program, Limits(seconds=30)).plans[0].graph
    assert [k.modes["m"] for k in best.kernels] == ["grid"] and best.kernels[0].tiles["m"] == 16


def test_an_axis_that_is_folded_is_not_free() -> None:
    assert free(written(attention(LARGE))) == {"g", "m", "d"}


CHAIN = """axes m = M, n = N
input x[m, n] f32
output y[m, n] f32
variable s[m] f32, t[m, n] f32
s[m] = sum(n, x[m, n])
t[m, n] = x[m, n] / s[m]
y[m, n] = t[m, n] * s[m]
"""


def test_a_kernel_is_any_number_of_statements_that_come_first() -> None:
    """No loop holds the first two statements together, and each number of kernels is one way to cut."""
    p = parse(CHAIN, {"M": 64, "N": 64})
    known = Analyses(staged(p, [Stage(rules_of(p), 6)], looped=[]))
    found = {len(n.kernels): n for n in Extraction(known, 16, room=8192).best(4)}
    assert {*found} == {1, 2, 3}
    for n in found.values():
        assert same(p, n.program(p))


def test_what_a_later_kernel_loads_is_written_by_one_block() -> None:
    """s has no n: where the quotient is in the kernel of the sum, blocks of n would all have s."""
    p = parse(CHAIN, {"M": 64, "N": 64})
    known = Analyses(staged(p, [Stage(rules_of(p), 6)], looped=[]))
    cuts = {tuple(sorted(known.written[a])): (a, b) for a, b in known.cuts[known.given.root]}
    first, rest = cuts["s", "t"]
    assert known.exposed[rest] == {"s", "t"}
    assert "n" not in known.free(first, known.exposed[rest])
    assert not known.parallel("n", first, frozenset({"s"})) and known.parallel("n", first)


def test_bodies_that_differ_in_names_and_order_store_the_same() -> None:
    body = bodies(attention(LARGE), 1)[0]
    numbers: dict[Hashable, int] = {}
    renamed = parse(text(body).replace("t1", "late"), LARGE)
    assert renamed.body != body.body
    assert stored(body, numbers) == stored(renamed, numbers)
    other = bodies(attention(LARGE), 2)[1]
    assert stored(body, numbers) != stored(other, numbers)


def test_arranging_leaves_what_a_program_does() -> None:
    for body in bodies(attention(LARGE), 3):
        assert same(body, arranged(body))
        sizes = {"g": 2, "m": 3, "d": 4, "e": 5, "n": 6}
        whole, parts = replace(body, sizes=sizes), replace(parted(body, "n", 2), sizes={**sizes, "n_parts": 2, "n": 3})
        rng = np.random.default_rng(0)
        drawn = {n: rng.uniform(0.5, 1.5, [whole.sizes[a] for a in t.axes]) for n, t in whole.tensors.items()}
        given = {n: drawn[n].reshape([parts.sizes[a] for a in t.axes]) for n, t in parts.tensors.items() if n in drawn}
        given |= {n: np.zeros([parts.sizes[a] for a in t.axes]) for n, t in parts.tensors.items() if n not in drawn}
        assert np.allclose(run(whole, drawn, {})["out"], run(parts, given, {})["out"], rtol=1e-9)


def test_planes_are_what_tiles_have_more_than_one_index_of() -> None:
    assert planes(bodies(attention(LARGE), 1)[0]) >= {"m", "n"} and "g" not in planes(bodies(attention(LARGE), 1)[0])


def test_a_limit_gives_a_part_that_is_said_to_be_one() -> None:
    found = search(attention(LARGE), Limits(seconds=30, nodes=100))
    assert not found.whole and "not saturated" in found.said


def test_drawn_programs_of_the_loops_are_the_body() -> None:
    body = bodies(normed({"M": 16, "K": 4096, "N": 6144}), 1)[0]
    classes = staged(body, [Stage(rules_of(body), 8)], 20_000)
    rng = random.Random(3)
    for _ in range(20):
        q = classes.drawn(rng, 14)
        assert same(body, q), text(q)


def test_a_row_is_divided_by_its_largest_element_in_one_kernel() -> None:
    absmax = formula("out[m, n] = x[m, n] / amax(j, abs(x[m, j]))", {"x": ("M", "N")})
    best = search(from_formulas([absmax], {}, {"M": 1024, "N": 512}), Limits()).plans[0].graph
    (k,) = best.kernels
    assert [o.op.partition(":")[0] for o in k.operators if o.op != "map"].count("max") == 1
    assert [o.op for o in k.operators].count("load") == 1 and k.modes["n"] == "whole"

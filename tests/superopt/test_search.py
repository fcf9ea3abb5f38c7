"""The search on the six programs of Mirage, and µGraphs that are not their programs."""

from __future__ import annotations

import random
from functools import cache

import pytest

from trilift.lift.errors import Unsupported
from trilift.lift.language.parse import formula
from trilift.superopt.accept.mutants import graph_mutants
from trilift.superopt.mugraph.cost import Model
from trilift.superopt.mugraph.graph import Kernel, MuGraph, text
from trilift.superopt.program.abstract import templates
from trilift.superopt.program.program import Program, from_formulas
from trilift.superopt.search.best_first import Found, graphs, search
from trilift.superopt.search.verifier import verify

ATTENTION = {"q": ("B", "M", "E"), "k": ("B", "E", "N"), "v": ("B", "N", "D")}
HEADS = {"B": 16, "M": 256, "D": 64, "E": 64, "N": 4096}
RMS = "{0} / sqrt(sum({1}, {0} ** 2) / {2})"
STEP = f"(x[m,k] + a[m,k] * ({RMS.format('h[m,k]', 'k', 'K')} + x[m,k]))"
PROGRAMS = {
    "rms_norm_matmul": (
        f"out[m,n] = sum(k, {RMS.format('x[m,k]', 'k', 'K')} * w[k,n])",
        {"x": ("M", "K"), "w": ("K", "N")},
        {"M": 16, "K": 4096, "N": 6144},
    ),
    "lora": (
        "out[m,n] = sum(k, x[m,k] * w[k,n]) + sum(r, sum(k, x[m,k] * a[k,r]) * b[r,n])",
        {"x": ("M", "K"), "w": ("K", "N"), "a": ("K", "R"), "b": ("R", "N")},
        {"M": 16, "K": 256, "N": 4096, "R": 16},
    ),
    "linear": (
        "out[b,s,n] = sum(k, x[b,s,k] * w[n,k])",
        {"x": ("B", "S", "K"), "w": ("N", "K")},
        {"B": 8, "S": 128, "K": 1024, "N": 512},
    ),
    "gated_mlp": (
        "out[m,n] = silu(sum(k, x[m,k] * u[k,n])) * sum(k, x[m,k] * v[k,n])",
        {"x": ("M", "K"), "u": ("K", "N"), "v": ("K", "N")},
        {"M": 8, "K": 4096, "N": 4096},
    ),
    "n_trans": (
        f"out[m,k] = {RMS.format(STEP, 'k', 'K')}",
        {"x": ("M", "K"), "h": ("M", "K"), "a": ("M", "K")},
        {"M": 8, "K": 4096},
    ),
    "attention": ("out[b,m,d] = sum(n, softmax(n, sum(e, q[b,m,e] * k[b,e,n])) * v[b,n,d])", ATTENTION, HEADS),
    "normed_attention": (
        f"out[b,m,d] = sum(n, softmax(n, sum(e, {RMS.format('q[b,m,e]', 'e', 'E')}"
        f" * ({RMS.format('k[b,e,n]', 'e', 'E')}))) * v[b,n,d])",
        ATTENTION,
        HEADS,
    ),
}


def program(name: str, **sizes: int) -> Program:
    out, inputs, usual = PROGRAMS[name]
    return from_formulas([formula(out, inputs, dtype="f16")], {}, {**usual, **sizes})


@cache
def found(name: str) -> Found:
    return search(program(name))


def best(name: str) -> MuGraph:
    return graphs(found(name))[0]


def operations(k: Kernel) -> list[tuple[str, bool]]:
    return [(o.op.partition(":")[0], o.inside) for o in k.operators]


def test_rms_norm_moves_behind_the_product() -> None:
    (k,) = best("rms_norm_matmul").kernels
    assert k.modes == {"k": "loop", "m": "grid", "n": "grid"}
    assert {("dot", True), ("accumulate", True), ("sqr", True), ("div", False)} <= set(operations(k))
    assert ("div", True) not in operations(k)


def test_lora_is_one_kernel_of_three_products() -> None:
    (k,) = best("lora").kernels
    assert [op for op, _ in operations(k)].count("dot") == 3


@pytest.mark.parametrize(("sizes", "whole"), [((8, 128), "s"), ((128, 8), "b"), ((64, 1), "b")])
def test_a_dimension_of_one_operand_of_a_product_is_one_block_each(sizes: tuple[int, int], whole: str) -> None:
    """The rows of a tile are of one of two dimensions, batch and sequence: of the other one a block has one entry."""
    (k,) = graphs(search(program("linear", B=sizes[0], S=sizes[1])))[0].kernels
    assert "dot" in dict(operations(k))
    assert k.tiles[whole] >= 16 and k.tiles[{"b": "s", "s": "b"}[whole]] == 1


def test_gated_mlp_is_one_kernel_with_one_loop() -> None:
    (k,) = best("gated_mlp").kernels
    assert [op for op, inside in operations(k) if inside].count("dot") == 2
    assert ("map", False) in operations(k)


def test_n_trans_is_one_kernel_with_whole_rows() -> None:
    (k,) = best("n_trans").kernels
    assert k.modes == {"m": "grid", "k": "whole"}


@pytest.mark.parametrize("name", ["attention", "normed_attention"])
def test_attention_is_split_over_the_keys(name: str) -> None:
    first, second = best(name).kernels
    assert first.modes["n"] == "split" and len(first.stores) == 2
    assert [op for op, _ in operations(second)] == ["load", "load", "sum", "sum", "div", "store"]
    assert "in 2 parts" in text(best(name)) or "in 4 parts" in text(best(name))


def test_attention_with_many_rows_is_one_kernel() -> None:
    (k,) = graphs(search(program("attention", B=128)))[0].kernels
    assert k.modes["n"] == "loop"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_best_graphs_compute_their_programs(name: str) -> None:
    p = program(name)
    for g in graphs(found(name))[:5]:
        result = verify(g, templates(p))
        assert all(o.equal is True for o in result.outcomes), (text(g), result)
        assert result.bound < 1e-9


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_plan_is_below_the_roofline(name: str) -> None:
    f = found(name)
    assert f.plans and all(p.seconds >= f.model.roofline for p in f.plans)
    assert f.excluded is not None and f.excluded >= f.plans[0].seconds


@pytest.mark.parametrize(("rows", "width"), [(8192, 64), (4096, 256), (4096, 64)])
def test_algebra_that_lowers_the_flops_is_not_excluded(rows: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """(q k) v = q (k v): a bound by the flops as written leaves out the best plans."""
    shapes = {"q": ("M", "E"), "k": ("N", "E"), "v": ("N", "D")}
    product = formula("out[m,d] = sum(n, sum(e, q[m,e] * k[n,e]) * v[n,d])", shapes, dtype="f16")
    p = from_formulas([product], {}, {"M": rows, "N": rows, "D": width, "E": width})
    bounded = search(p)
    monkeypatch.setattr(Model, "floor", 0.0)
    every = search(p)
    assert bounded.plans[0].seconds == every.plans[0].seconds
    assert bounded.plans[0].seconds < bounded.model.roofline or (rows, width) == (4096, 64)
    assert bounded.excluded is not None and bounded.excluded >= bounded.plans[0].seconds


# ---- wrong graphs ----------------------------------------------------------------------------------------------------


def test_changed_graphs_are_rejected() -> None:
    """Each is invalid or differs in the field: a sample of more than 300."""
    every = [(n, what, g) for n in PROGRAMS for best in graphs(found(n))[:4] for what, g in graph_mutants(best)]
    assert len(every) >= 300
    for name, what, mutant in random.Random(0).sample(every, 60):
        result = verify(mutant, templates(mutant.program))
        assert not any(o.equal is True for o in result.outcomes), (name, what)
        assert text(mutant) != text(best(name))


# ---- programs that cannot be searched --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("out[m] = prod(k, x[m,k])", "over an axis"),
        ("out[m] = sum(k, x[m,k] * x[m,0])", "not indexed by axes"),
        ("out[m,k] = where(x[m,k] < k, x[m,k], 0)", "both elements and indices"),
    ],
)
def test_what_is_no_program(out: str, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        from_formulas([formula(out, {"x": ("M", "K")})], {}, {"M": 8, "K": 8})


def test_two_views_of_one_tensor() -> None:
    p = from_formulas([formula("out[m,n] = sum(k, x[m,k] * x[n,k])", {"x": ("M", "K")})], {}, {"M": 64, "K": 64})
    assert {x.tensor for x in p.inputs} == {"x"} and len(p.inputs) == 2
    g = graphs(search(p))[0]
    assert all(o.equal is True for o in verify(g, templates(p)).outcomes)


def test_a_sum_of_a_product_is_a_product_of_a_sum() -> None:
    """Numbers and factors without the axis stand before a sum: the roofline counts what is needed, and no more."""
    said = "out[m,n] = sum(k, sum(l, x[m,l,k] * w[k,n]) / L)"
    p = from_formulas([formula(said, {"x": ("M", "L", "K"), "w": ("K", "N")})], {}, dict.fromkeys("MLKN", 256))
    assert repr(p.outputs[0][2]).startswith("scale") and repr(p.outputs[0][2]).count("sum[l](x)") == 1
    found = search(p)
    assert found.plans and found.plans[0].seconds >= found.model.roofline
    assert all(o.equal is True for o in verify(graphs(found)[0], templates(p)).outcomes)


def test_functions_whose_names_begin_alike_are_two_functions() -> None:
    from numpy.random import default_rng

    from trilift.verify.fields.field import Field

    d = Field(default_rng(0))
    x = d.draw((4,))
    assert (d.hashed("scale:a", x)["p"] != d.hashed("scale:ab", x)["p"]).all()
    assert (d.hashed("scale:a", x)["p"] == d.hashed("scale:a", x)["p"]).all()

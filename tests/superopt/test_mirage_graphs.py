"""µGraphs as Mirage saves them: read, executed, compared with the programs that they were found for."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilift.lift.errors import CaseError, Unsupported
from trilift.reports.experiments.superoptimizer.published import PROGRAMS, SAVED, norm
from trilift.superopt.mirage.execution import divided, joined, run
from trilift.superopt.mirage.judge import Judgement, graphs, judge, read, reference
from trilift.superopt.program.numpy_program import values
from trilift.verify.fields.field import Field

# ---- a graph of ours: x @ w / sqrt(mean(x^2)) in 4 blocks with 2 iterations ------------------------------------------

SMALL = {"M": 2, "K": 8, "N": 12}
SIZES = {"X": ("M", "K"), "W": ("K", "N")}


def tensor(guid: int, *dims: int) -> dict[str, Any]:
    return {"guid": guid, "dim": [*dims, 0, 0], "num_dims": len(dims), "data_type": 921}


def operator(op: str, inputs: list[Any], outputs: list[Any], **more: Any) -> dict[str, Any]:
    return {"op_type": op, "input_tensors": inputs, "output_tensors": outputs, **more}


def at(x: int = -1, y: int = -1, z: int = -1) -> dict[str, int]:
    return {"x": x, "y": y, "z": z}


def small() -> list[list[dict[str, Any]]]:
    x, w, o = tensor(1, 2, 8), tensor(2, 8, 12), tensor(3, 2, 12)
    a, b, c, d, e, f = (tensor(*t) for t in ((11, 2, 4), (12, 4, 3), (13, 2, 1), (14, 2, 3), (15, 2, 3), (16, 2, 3)))
    block = {"grid_dim": at(4, 1, 1), "forloop_range": 2, "operators": [
        operator("tb_input_op", [], [a], dtensor=x, input_map=at(), forloop_dim=1),
        operator("tb_input_op", [], [b], dtensor=w, input_map=at(1), forloop_dim=0),
        operator("tb_accum_red_ld_rms_op", [a], [c]),
        operator("tb_matmul_op", [a, b], [d]),
        operator("tb_accum_nored_op", [d], [e]),
        operator("tb_div_op", [e, c], [f]),
        operator("tb_output_op", [f], [], dtensor=o, output_map=at(1)),
    ]}  # fmt: skip
    return [[
        operator("kn_input_op", [], [x]), operator("kn_input_op", [], [w]),
        operator("kn_customized_op", [x, w], [o], bgraph=block), operator("kn_output_op", [o], []),
    ]]  # fmt: skip


def block(data: list[list[dict[str, Any]]]) -> dict[str, Any]:
    found: dict[str, Any] = data[0][2]["bgraph"]
    return found


def ours(change: Callable[[dict[str, Any]], None] = lambda b: None, text: str = norm("X") + "@W") -> Judgement:
    data = small()
    change(block(data))
    (found,) = judge(graphs(data), reference(text, SIZES, SMALL))
    return found


def test_a_graph_that_is_right() -> None:
    found = ours()
    assert found.verdict == "right"
    assert found.equal_in_field is True
    assert dict(found.field_dims) == {"M": 2, "K": 4, "N": 12}  # tiles of two rows of w, three columns stay


def changed(k: int, **to: Any) -> Callable[[dict[str, Any]], None]:
    return lambda b: b["operators"][k].update(to)


def swapped(b: dict[str, Any]) -> None:
    """Divides in the loop what the accumulator sums: the operators mix a value of the loop and one after it."""
    b["operators"][5]["input_tensors"][0] = b["operators"][3]["output_tensors"][0]


def wider(b: dict[str, Any]) -> None:
    """Says that the root has a column for each column of the tile."""
    b["operators"][2]["output_tensors"] = [tensor(13, 2, 3)]
    b["operators"][5]["input_tensors"] = [tensor(15, 2, 3), tensor(13, 2, 3)]


WRONG = {
    "the mean instead of its root": changed(2, op_type="tb_accum_red_ld_mean_op"),
    "the sum instead of the mean": changed(2, op_type="tb_accum_red_ld_sum_op"),
    "a product instead of the quotient": changed(5, op_type="tb_mul_op"),
}


@pytest.mark.parametrize("name", WRONG)
def test_its_wrong_twins(name: str) -> None:
    found = ours(WRONG[name])
    assert found.verdict == "wrong"
    assert found.equal_in_field is False
    c = found.counterexample
    assert c is not None and c.output == "out" and len(c.index) == 2
    assert str(c) == found.reason and abs(c.got - c.expected) > 1e-6


def test_the_counterexample_is_there() -> None:
    found = ours(WRONG["a product instead of the quotient"])
    c = found.counterexample
    assert c is not None
    rng = np.random.default_rng(c.seed)
    x, w = rng.uniform(-1, 1, (2, 8)), rng.uniform(-1, 1, (8, 12))
    root = np.sqrt((x**2).mean(-1, keepdims=True))
    assert np.isclose(c.expected, (x / root @ w)[c.index])
    assert np.isclose(c.got, (x @ w * root)[c.index])


def test_a_graph_for_another_program() -> None:
    assert ours(text="X@W").verdict == "wrong"
    found = ours(text="(X/sqrt(mean(X**2, -1, keepdim=True)))@W*2")
    assert found.verdict == "wrong" and found.counterexample is not None
    assert np.isclose(found.counterexample.expected, 2 * found.counterexample.got)


MALFORMED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a tile that does not divide": (changed(1, input_map=at(0)), "a tile 4x3 of a tensor 8x12"),
    "a map to nowhere": (changed(1, input_map=at(5)), "x is 5, the tensor has 2 dimensions"),
    "no grid": (lambda b: b.pop("grid_dim"), "no grid_dim"),
    "no iterations": (lambda b: b.update(forloop_range=0), "forloop_range is 0"),
    "a tensor from nowhere": (lambda b: b["operators"].pop(3), "the tensor 14 of shape (2, 3) is made by no operator"),
    "a tensor twice": (lambda b: b["operators"].insert(4, b["operators"][3]), "the tensor 14 is made twice"),
    "another name": (changed(3, op_type="matmul"), "op_type is 'matmul', not tb_<name>_op"),
    "a text as a size": (lambda b: b["grid_dim"].update(x="4"), "x is '4', not a whole number"),
    "nothing stored": (lambda b: b["operators"].pop(6), "does not store what the operator gives"),
    "no list": (lambda b: b.update(operators={}), "not a list"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_told_of(name: str) -> None:
    change, message = MALFORMED[name]
    data = small()
    change(block(data))
    with pytest.raises(CaseError) as e:
        graphs(data)
    assert message in str(e.value)
    assert "graph 0, operator 2, bgraph" in str(e.value) or name == "nothing stored"


def test_a_file_that_is_not_json(tmp_path: Path) -> None:
    path = tmp_path / "graphs.json"
    path.write_text("[[")
    with pytest.raises(CaseError, match=r"graphs\.json is not JSON"):
        read(path)
    path.write_text(json.dumps(small()))
    assert read(path) == graphs(small())


UNSUPPORTED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an operator that is not known": (changed(3, op_type="tb_concat_then_matmul_op"), "operator concat_then_matmul"),
    "too few arguments": (changed(3, input_tensors=[tensor(11, 2, 4)]), "matmul with 1 inputs"),
    "shapes that do not fit": (changed(3, input_tensors=[tensor(12, 4, 3), tensor(11, 2, 4)]), "matmul"),
    "a shape that is another": (wider, "the tensor 13 of shape (2, 3) gets the shape (2, 1)"),
    "in the loop and after it": (swapped, "a value of the loop and one that is made after it"),
    "blocks that store the same": (lambda b: b["grid_dim"].update(y=3), "all 3 blocks along y store the same tile"),
    "an output of every iteration": (changed(6, input_tensors=[tensor(14, 2, 3)]), "an output of every iteration"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_cannot_be_run_is_not_judged(name: str) -> None:
    change, reason = UNSUPPORTED[name]
    found = ours(change)
    assert found.verdict == "unsupported" and found.counterexample is None
    assert reason in found.reason


def test_another_interface() -> None:
    (found,) = judge(graphs(small()), reference("X@W", SIZES, {**SMALL, "N": 6}))
    assert found.verdict == "unsupported" and "the inputs differ" in found.reason


@pytest.mark.parametrize("maps", [(0, None, 1), (2, 0, None), (None, None, None), (1, 2, 0)])
def test_tiles_joined_are_the_tensor(maps: tuple[int | None, int | None, int | None]) -> None:
    x = np.arange(8 * 12 * 20).reshape(8, 12, 20)
    grid = (4, 2, 2)
    assert (joined(divided(x, maps, grid), maps, grid) == x).all()


def test_a_tile_is_where_the_map_says() -> None:
    x = np.arange(8 * 12).reshape(8, 12)
    tiles = divided(x, (1, None, 0), (3, 5, 2))
    assert tiles.shape == (3, 1, 2, 4, 4)
    assert (tiles[2, 0, 1] == x[4:8, 8:12]).all()


def test_groups_and_loops_are_summed() -> None:
    """The sum to 3 columns of 12 in 2 iterations; what is divided by x is joined along the rows."""
    x, o = tensor(1, 4, 12), tensor(2, 4, 3)
    a, b = tensor(11, 2, 6), tensor(12, 2, 3)
    body = {"grid_dim": at(2, 1, 1), "forloop_range": 2, "operators": [
        operator("tb_input_op", [], [a], dtensor=x, input_map=at(0), forloop_dim=1),
        operator("tb_accum_redtox_ld_sum_op", [a], [b]),
        operator("tb_output_op", [b], [], dtensor=o, output_map=at(0)),
    ]}  # fmt: skip
    (g,) = graphs([[operator("kn_input_op", [], [x]), operator("kn_customized_op", [x], [o], bgraph=body),
                    operator("kn_output_op", [o], [])]])  # fmt: skip
    data = np.random.default_rng(1).normal(size=(4, 12))
    (got,) = run(g, [data])
    assert np.allclose(got, data.reshape(4, 4, 3).sum(1))


def test_an_operator_between_kernels() -> None:
    data = small()
    o, y = data[0][3]["input_tensors"][0], tensor(4, 2, 12)
    data[0][3:] = [operator("kn_exp_op", [o], [y]), operator("kn_output_op", [y], [])]
    for text, verdict in ((f"exp({norm('X')}@W)", "right"), (f"{norm('X')}@W", "wrong")):
        (found,) = judge(graphs(data), reference(text, SIZES, SMALL))
        assert found.verdict == verdict


# ---- programs --------------------------------------------------------------------------------------------------------

TINY = {"B": 2, "M": 3, "K": 4, "D": 4, "N": 5, "R": 2}


def direct(name: str, t: dict[str, np.ndarray]) -> np.ndarray:
    def rms(x: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(x / np.sqrt((x**2).mean(axis, keepdims=True)))

    def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        e = np.exp(q @ k)
        return np.asarray(e / e.sum(-1, keepdims=True) @ v)

    match name:
        case "gqa":
            return attention(t["Q"], t["K"], t["V"])
        case "qknorm, script":
            return attention(rms(t["Q"]), t["K"], rms(t["V"]))
        case "qknorm, paper":
            return attention(rms(t["Q"]), rms(t["K"], 1), t["V"])
        case "rmsnorm":
            return np.asarray(rms(t["X"]) @ t["W"])
        case "lora":
            return np.asarray(t["X"] @ t["W"] + t["X"] @ t["A"] @ t["B"])
        case "gated":
            gate = t["X"] @ t["W1"]
            return np.asarray(gate / (1 + np.exp(-gate)) * (t["X"] @ t["W2"]))
    return rms(t["X"] + t["A"] * (rms(t["H"]) + t["X"]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_of_programs(name: str) -> None:
    """As numpy computes them from the paper's pseudocode; in the field outputs are defined."""
    r = PROGRAMS[name]()
    dims = {d: TINY[d] for d in r.dims}
    p = r.program(dims)
    shapes = {x.tensor: tuple(p.sizes[a] for a in x.axes) for x in p.inputs}
    rng = np.random.default_rng(2)
    t = {x: rng.normal(size=s) for x, s in shapes.items()}
    assert np.allclose(values(p, t, dims)["out"], direct(name, t))
    domain = Field(rng)
    out = values(p, {x: domain.draw(s) for x, s in shapes.items()}, dims, domain)["out"]
    assert out.shape == direct(name, t).shape and (np.maximum(out["p"], out["q"]) >= 0).all()


def test_a_tensor_of_another_shape() -> None:
    r = PROGRAMS["rmsnorm"]()
    dims = {d: TINY[d] for d in r.dims}
    with pytest.raises(Unsupported, match="the tensor X is not of the shape"):
        values(r.program(dims), {"X": np.zeros((1, 1)), "W": np.zeros((1, 1))}, dims)


def test_a_program_without_finite_values() -> None:
    with pytest.raises(Unsupported, match="no finite values"):
        judge(graphs(small()), reference("exp(exp(exp(X@W + 9)))", SIZES, SMALL))


# ---- what Mirage published -------------------------------------------------------------------------------------------

PUBLISHED = [
    ("gqa_bs1.json", "gqa", "right"), ("lora.json", "lora", "right"), ("rmsnorm_bs1.json", "rmsnorm", "right"),
    ("ntrans_bs1.json", "ntrans", "right"), ("qknorm_gqa_bs1.json", "qknorm, script", "wrong"),
    ("qknorm_gqa_bs1.json", "qknorm, paper", "wrong"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "name", "verdict"), PUBLISHED)
def test_published_graphs(file: str, name: str, verdict: str) -> None:
    if not (SAVED / file).exists():
        pytest.skip("the published µGraphs are not beside the project")
    found = judge(read(SAVED / file), PROGRAMS[name]())
    assert found and {j.verdict for j in found} == {verdict}
    assert {j.equal_in_field for j in found} == {verdict == "right"}


def test_a_published_graph_changed() -> None:
    """The first one with a quotient turned into a product."""
    path = SAVED / "gqa_bs1.json"
    if not path.exists():
        pytest.skip("the published µGraphs are not beside the project")
    data = copy.deepcopy(json.loads(path.read_text())[:1])
    for o in data[0][4]["bgraph"]["operators"]:
        o["op_type"] = o["op_type"].replace("tb_div", "tb_mul")
    (found,) = judge(graphs(data), PROGRAMS["gqa"]())
    assert found.verdict == "wrong" and found.equal_in_field is False

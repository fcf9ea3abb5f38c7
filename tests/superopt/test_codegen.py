"""Emitted kernels: proved as emitted, right in float64 and in their own precision, and wrong twins are rejected."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mugraphs
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from trilift.lift.capture.case_files import by_file, load
from trilift.lift.errors import Unsupported
from trilift.lift.language.definitions import named
from trilift.lift.terms import construct as T
from trilift.superopt.accept.acceptance import Acceptance, accept, compile_all
from trilift.superopt.emit import codegen
from trilift.superopt.mugraph.graph import MuGraph
from trilift.superopt.program.positions import values
from trilift.superopt.program.template import keeps_zero, numbers, tile_text
from trilift.superopt.search.stabilise import stabilised, unstable
from trilift.verify import prove

SEPARATE = {
    "rms_norm_matmul": mugraphs.rms_norm_matmul,
    "lora": mugraphs.lora,
    "gated_mlp": mugraphs.gated_mlp,
    "normalised_transformer": mugraphs.normalised_transformer,
    "split_matmul": mugraphs.split_matmul,
    "split_row": mugraphs.split_row,
    "sums_in_lanes": mugraphs.sums_in_lanes,
    "attention_parts": mugraphs.attention,
    "attention_stable": lambda: stabilised(mugraphs.attention(split=False)),
}


def emitted(graph: Callable[[], MuGraph], name: str = "kernel") -> str:
    return codegen.source(graph(), name)


def proved(text: str, tmp_path: Path) -> list[str]:
    file = tmp_path / "emitted.py"
    file.write_text(text)
    (case,) = load(str(file))
    return [p.verdict.value for p in prove(case)]


def numbers_of(text: str) -> Acceptance:
    """What the replays say."""
    return accept(text, only=("replayed", "rounded"), steps=2_000_000)


@pytest.mark.parametrize("name", SEPARATE)
def test_what_is_emitted_is_proved(name: str, tmp_path: Path) -> None:
    assert proved(emitted(SEPARATE[name], name), tmp_path) == ["PROVED"] * len(SEPARATE[name]().program.outputs)


def test_split_attention_holds_up_with_large_logits() -> None:
    text = emitted(lambda: stabilised(mugraphs.attention()))
    assert [s.passed for s in numbers_of(text).steps] == [True, True, True]


def test_exponentials_that_overflow_are_rejected() -> None:
    found = numbers_of(emitted(mugraphs.attention))
    assert not found.accepted and found.steps[-1].name == "rounded" and "large inputs" in found.steps[-1].text


TWINS = [
    ("dropped accumulator", mugraphs.rms_norm_matmul, "w, acc)", "w)"),
    ("wrong split factor", mugraphs.split_matmul, "tl.cdiv(K, PARTS_K)", "tl.cdiv(K, PARTS_K + 1)"),
    ("missing rescale", lambda: stabilised(mugraphs.attention()), "acc * shrink[:, None]", "acc"),
    ("weight of a part left out", lambda: stabilised(mugraphs.attention()), "totals * weight", "totals"),
    ("lanes summed that are not there", mugraphs.sums_in_lanes, "e_in = tl.where(k[None, :] < K, e, 0.0)", "e_in = e"),
    ("padded lanes", mugraphs.attention, "p_in = tl.where(n[None, :] < N, p, 0.0)", "p_in = p"),
    ("a mask that lets one row too many through", mugraphs.lora, "m[:, None] < M", "m[:, None] <= M"),
]  # fmt: skip


@pytest.mark.parametrize("what, graph, old, new", TWINS, ids=[t[0] for t in TWINS])
def test_a_wrong_twin_is_rejected(what: str, graph: Callable[[], MuGraph], old: str, new: str) -> None:
    text = emitted(graph)
    assert old in text
    found = numbers_of(text.replace(old, new))
    assert not found.accepted and found.steps[-1].name in ("replayed", "rounded")


def test_swapped_operands_are_refuted(tmp_path: Path) -> None:
    assert proved(emitted(lambda: mugraphs.gated_mlp(swapped=True)), tmp_path) == ["REFUTED"]


def test_acceptance_tells_what_each_step_said() -> None:
    found = accept(emitted(mugraphs.split_matmul), sizes={"M": 64, "N": 64, "K": 256}, steps=2_000_000)
    assert found.accepted, str(found)
    assert [s.name for s in found.steps] == ["loaded", "replayed", "rounded", "compiled", "proved"]
    assert found.verdict == "PROVED" and found.bound is None and found.contract
    assert [c.kernel for c in found.compiled] == ["split_kernel", "combine_kernel"]


def test_a_file_that_cannot_be_loaded_is_rejected() -> None:
    assert not accept("import nothing_of_this_name\n").accepted
    assert not accept("x = 1\n").accepted


def test_the_file_runs_without_trilift(tmp_path: Path) -> None:
    file = tmp_path / "emitted.py"
    file.write_text("import sys\nsys.modules['trilift'] = None\n" + emitted(mugraphs.lora) + "\nassert case is None\n")
    subprocess.run([sys.executable, str(file)], check=True, cwd=tmp_path, timeout=60)


def test_the_same_graph_gives_the_same_text() -> None:
    assert emitted(mugraphs.attention) == emitted(mugraphs.attention)


def test_names_do_not_collide() -> None:
    g = mugraphs.split_matmul()
    renamed = replace(
        g.program, inputs=tuple(replace(x, tensor={"x": "K", "w": "M"}[x.tensor]) for x in g.program.inputs)
    )
    text = codegen.source(replace(g, program=renamed), "product")
    assert "size_k" in text and "size_m" in text
    ast.parse(text)


def test_parameters_have_the_order_asked_for() -> None:
    assert "def product(w, x, wrap=" in codegen.source(mugraphs.split_matmul(), "product", parameters=("w", "x"))
    assert "def product(x, w, wrap=" in codegen.source(mugraphs.split_matmul(), "product")


def test_an_axis_that_blocks_share_must_be_stored() -> None:
    g = mugraphs.rms_norm_matmul()
    kernel = replace(g.kernels[0], modes={"m": "grid", "n": "grid", "k": "grid"}, tiles={"m": 16, "n": 32, "k": 32})
    with pytest.raises(Unsupported, match="store the same elements"):
        codegen.source(replace(g, kernels=(kernel,)), "wrong")


def test_what_is_made_in_a_loop_is_not_used_after_it() -> None:
    g = mugraphs.lora()
    operators = tuple(replace(o, args=("p", "xab")) if o.out == "y" else o for o in g.kernels[0].operators)
    with pytest.raises(Unsupported, match="after the loop"):
        codegen.source(replace(g, kernels=(replace(g.kernels[0], operators=operators),)), "wrong")


def test_the_operator_has_shapes_and_flops(tmp_path: Path) -> None:
    file = tmp_path / "emitted.py"
    file.write_text(emitted(mugraphs.rms_norm_matmul, "fused"))
    by_file(str(file)).register("emitted_in_a_test")
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:
        x, g, w = (torch.empty(*shape, dtype=torch.float16) for shape in ((5, 64), (64,), (64, 7)))
        assert torch.ops.emitted_in_a_test.fused(x, g, w).shape == (5, 7)
    assert counter.get_total_flops() == 2 * 5 * 7 * 64


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_tracing_sees_the_kernels_of_the_operator(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "emitted.py"
    file.write_text(emitted(mugraphs.rms_norm_matmul, "seen"))
    module = by_file(str(file))
    module.register(f"emitted_for_{mode}")
    inputs = [torch.empty(*shape, dtype=torch.float16) for shape in ((5, 64), (64,), (64, 7))]
    wrapped = lambda *xs: module.seen(*xs, wrap=torch.library.wrap_triton)  # noqa: E731
    within = [str(n.target) for n in make_fx(wrapped, tracing_mode=mode)(*inputs).graph.nodes]
    assert within.count("triton_kernel_wrapper_mutation") == 1
    operator = getattr(torch.ops, f"emitted_for_{mode}").seen
    called = [str(n.target) for n in make_fx(operator, tracing_mode=mode)(*inputs).graph.nodes]
    assert called.count(f"emitted_for_{mode}.seen.default") == 1


def test_axes_of_one_size_are_asserted_to_be(tmp_path: Path) -> None:
    sizes = {"m": T.size("M"), "k": T.size("K"), "n": T.size("K")}
    text = codegen.source(mugraphs.split_matmul(), "square", extents=sizes)
    assert "assert size_n == K" in text and 'w="f16[K,K] strided"' in text
    assert proved(text, tmp_path) == ["PROVED"]


def test_divisors_are_asserted_to_be_no_zeros(tmp_path: Path) -> None:
    text = codegen.source(mugraphs.divided(), "divided")
    for divisor in ("s", "N - 1"):
        assert f'assert {divisor} != 0, "a divisor is 0"' in text
    assert proved(text, tmp_path) == ["PROVED"]


def test_a_dim_means_what_it_means_in_the_case() -> None:
    text = codegen.source(mugraphs.lora(), "twice", extents={"k": T.mul(2, T.size("K"))})
    assert 'x="f16[M,2*K] strided"' in text and "M, size_k = x.shape" in text
    with pytest.raises(Unsupported, match="no axis has the size K"):  # of 1 / K
        codegen.source(mugraphs.rms_norm_matmul(), "twice", extents={"k": T.mul(2, T.size("K"))})


# ---- stabilised ------------------------------------------------------------------------------------------------------


def test_each_part_has_its_own_maximum() -> None:
    g = stabilised(mugraphs.attention())
    assert g.tensors["top"].dims == tuple(g.tensors["totals"].dims) and unstable(g) == ""


def test_a_graph_that_changes_with_the_maximum_stays_as_it_is() -> None:
    g = mugraphs.attention(split=False)
    operators = tuple(replace(o, op="mul") if o.op == "div" else o for o in g.kernels[0].operators)
    wrong = replace(g, kernels=(replace(g.kernels[0], operators=operators),))
    assert stabilised(wrong) is wrong and "changes when every exp(S)" in unstable(wrong)
    assert unstable(mugraphs.lora()) == ""


# ---- functions of elements -------------------------------------------------------------------------------------------


def test_templates_in_triton() -> None:
    a = T.scalar("a0")
    eps = T.add(a, T.div(1, T.size("K")))
    assert numbers(eps, 1) == [T.div(1, T.size("K"))]
    assert tile_text(eps, ["x"], {T.div(1, T.size("K")): "factor"}).text == "x + factor"
    assert tile_text(named("silu", a), ["x"], {}).text == "x * tl.sigmoid(x)"
    assert tile_text(named("relu", a), ["x"], {}).text == "tl.maximum(x, 0.0)"
    assert keeps_zero(named("silu", a)) and keeps_zero(named("relu", a)) and not keeps_zero(T.add(a, 1))
    with pytest.raises(Unsupported):
        tile_text(T.make("lgamma", a), ["x"], {})


def test_terms_of_indices_in_triton() -> None:
    i, j = (T.axis(T.Axis(n, T.size(n.upper()))) for n in "ij")
    at = {"i": "rows", "j": "columns"}
    band = T.make("and", T.make("le", j, i), T.make("lt", T.sub(i, j), T.size("W")))
    assert values(T.where(band, 0.0, -math.inf), at, {T.size("W"): "W"}) in (
        'tl.where((columns <= rows) & (rows - columns < W), 0.0, -float("inf"))',
        'tl.where((rows - columns < W) & (columns <= rows), 0.0, -float("inf"))',
    )
    assert values(T.make("mod", T.add(i, 1), 2), at, {}) == "((rows + 1) % 2).to(tl.float32)"
    assert values(T.where(T.make("ne", i, j), 1.0, 0.5), at, {}) == "tl.where(rows != columns, 1.0, 0.5)"


def test_launches_compile_for_sm_90(tmp_path: Path) -> None:
    file = tmp_path / "emitted.py"
    file.write_text(emitted(mugraphs.gated_mlp))
    (found,) = compile_all(str(file), {"M": 64, "N": 64, "K": 64})
    assert found.kernel == "gated_mlp_kernel" and 0 < found.shared < 227 * 1024

"""Maxima of several exponentials: attention to a cache and to new tokens, groups, sinks, and wrong twins of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mugraphs
import mugraphs_cached as C
import pytest
import torch

from trilift.lift.capture.case_files import load
from trilift.superopt.accept.acceptance import Acceptance, accept
from trilift.superopt.arrange.arrangement import arrange
from trilift.superopt.emit.codegen import source
from trilift.superopt.mugraph.degrees import Degrees
from trilift.superopt.mugraph.graph import MuGraph
from trilift.superopt.program.abstract import templates
from trilift.superopt.search.stabilise import stabilised, unstable
from trilift.superopt.search.verifier import verify
from trilift.verify import prove
from trilift.verify.mutation.emulation import emulated

GRAPHS: list[Callable[[], MuGraph]] = [
    C.cached, C.cached_split, C.cached_apart, C.with_importance, C.at_two_temperatures, C.with_sink, C.squared,
    C.two_keys, C.of_twice_the_scores,
]  # fmt: skip
SIZES = {"M": 16, "S": 256, "L": 16, "D": 64, "E": 64}


def emitted(g: MuGraph) -> str:
    return source(stabilised(g), "attended")


def numbers_of(text: str, steps: int = 2_000_000) -> Acceptance:
    found = accept(text, only=("replayed", "rounded"), steps=steps)
    assert "no run could be compared" not in found.steps[-1].text
    return found


def verdicts(text: str, folder: Path) -> set[str]:
    path = folder / "emitted.py"
    path.write_text(text)
    (case,) = load(str(path))
    return {p.verdict.value for p in prove(case, fallback=False, timeout=120)}


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.__name__)
def test_what_is_stabilised_is_proved_and_holds_up(graph: Callable[[], MuGraph], tmp_path: Path) -> None:
    g = graph()
    assert all(o.equal for o in verify(g, templates(g.program)).outcomes)
    assert unstable(g) == "no maximum is subtracted" and unstable(stabilised(g)) == ""
    text = emitted(g)
    assert [s.passed for s in numbers_of(text).steps] == [True, True, True]
    assert verdicts(text, tmp_path) == {"PROVED"}


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.__name__)
def test_without_maxima_large_scores_overflow(graph: Callable[[], MuGraph]) -> None:
    found = numbers_of(source(graph(), "attended"))
    assert not found.accepted and found.steps[-1].name == "rounded" and "large inputs" in found.steps[-1].text


@pytest.mark.parametrize("graph", [C.cached_split], ids=lambda g: g.__name__)
def test_what_is_arranged_is_accepted(graph: Callable[[], MuGraph]) -> None:
    judged = accept(source(arrange(stabilised(graph())).graph, "attended"), sizes=SIZES, steps=1_000_000, timeout=120)
    assert judged.accepted and judged.verdict == "PROVED", str(judged)


TWINS = [
    ("a factor left out", C.cached, "acc_s * weight[:, None]", "acc_s"),
    ("the other factor left out", C.cached, "row_l * weight0", "row_l"),
    ("the factors swapped", C.cached, "total_s * weight", "total_s * weight0"),
    ("one of two sums made relative to it", C.cached, "total_s_weighed + row_l_weighed", "total_s + row_l"),
    ("the maxima swapped", C.cached, "m_top_less = m_top - m_joined", "m_top_less = highest0 - m_joined"),
    ("the maximum of the wrong two", C.cached, "tl.maximum(m_top, highest0)", "tl.maximum(m_top, m_top)"),
    ("the minimum", C.cached, "tl.maximum(m_top, highest0)", "tl.minimum(m_top, highest0)"),
    ("the maximum of another kernel", C.cached_apart, "weight0 = tl.exp(top0_less)", "weight0 = tl.exp(top_less)"),
    ("the maximum of the parts left out", C.cached_split, "partial * weight[:, :, None]", "partial"),
    ("the tokens of the cache left out", C.cached_split, "acc_s * weight0[:, None]", "acc_s * weight1[:, None]"),
    ("scores relative to nothing", C.with_importance, "s_s_less = s_s - top[:, None]", "s_s_less = s_s"),
    ("the maximum of the other group", C.at_two_temperatures, "acc2 * shrink_1[", "acc2 * shrink["),
    ("the joined maxima do not run", C.two_keys, "acc *= shrink_2[:, None]", "acc *= 1.0"),
    ("a power of another degree", C.of_twice_the_scores, "twice_less - highest", "twice_less - 0 * highest"),
    ("the sink is relative to the scores", C.with_sink, "total * weight", "total"),
]  # fmt: skip


@pytest.mark.parametrize("what, graph, old, new", TWINS, ids=[t[0] for t in TWINS])
def test_a_wrong_twin_is_rejected(what: str, graph: Callable[[], MuGraph], old: str, new: str) -> None:
    text = emitted(graph())
    assert old in text
    found = numbers_of(text.replace(old, new))
    assert not found.accepted and found.steps[-1].name in ("replayed", "rounded")


PROOFS = [t for t in TWINS if t[0] in ("a factor left out", "the factors swapped", "the maxima swapped")]


@pytest.mark.parametrize("what, graph, old, new", PROOFS, ids=[t[0] for t in PROOFS])
def test_a_wrong_twin_is_not_proved(
    what: str, graph: Callable[[], MuGraph], old: str, new: str, tmp_path: Path
) -> None:
    assert not verdicts(emitted(graph()).replace(old, new), tmp_path) & {"PROVED", "TESTED"}


# ---- numbers by hand -------------------------------------------------------------------------------------------------


def inputs(old: float, new: float) -> dict[str, torch.Tensor]:
    """The scores are around these."""
    torch.manual_seed(0)
    xs = {n: torch.randn(*shape) for n, shape in (("q", (5, 8)), ("values", (40, 6)), ("new_values", (3, 6)))}
    xs["q"][:, 0] = 16
    xs["keys"], xs["new_keys"] = torch.randn(40, 8), torch.randn(3, 8)
    xs["keys"][:, 0], xs["new_keys"][:, 0] = old / 16, new / 16
    return {n: x.half() for n, x in xs.items()}


def softmax(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ keys.T, -1) @ values


@pytest.mark.parametrize("graph", [C.cached, C.cached_split, C.cached_apart], ids=lambda g: g.__name__)
@pytest.mark.parametrize("old, new", [(900, 900), (900, -900), (-900, 900), (-900, -900), (900, 1000), (0, 0)])
def test_scores_far_apart(graph: Callable[[], MuGraph], old: float, new: float, tmp_path: Path) -> None:
    path = tmp_path / "emitted.py"
    path.write_text(emitted(graph()))
    (case,) = load(str(path))
    xs = inputs(old, new)
    with emulated():
        found = case.fn(**xs)
    wide = {n: x.double() for n, x in xs.items()}
    both = torch.cat([wide["keys"], wide["new_keys"]]), torch.cat([wide["values"], wide["new_values"]])
    assert torch.allclose(found.double(), softmax(wide["q"], *both), rtol=0, atol=4e-3)


@pytest.mark.parametrize("sink", [-1000.0, 0.0, 1000.0])
def test_a_sink_may_be_larger_than_every_score(sink: float, tmp_path: Path) -> None:
    path = tmp_path / "emitted.py"
    path.write_text(emitted(C.with_sink()))
    (case,) = load(str(path))
    xs = {n: x for n, x in inputs(0, 0).items() if n in ("q", "keys", "values")}
    with emulated():
        found = case.fn(**xs, sink=torch.full((5,), sink, dtype=torch.float16))
    scores = torch.cat([xs["q"].double() @ xs["keys"].double().T, torch.full((5, 1), sink, dtype=torch.float64)], -1)
    expected = torch.softmax(scores, -1)[:, :-1] @ xs["values"].double()
    assert torch.allclose(found.double(), expected, rtol=0, atol=4e-3)


# ---- masks -----------------------------------------------------------------------------------------------------------


def test_rows_of_which_the_cache_has_nothing() -> None:
    g = stabilised(C.masked())
    assert unstable(g) == "" and sum(o.op == "or_zero" for k in g.kernels for o in k.operators) == 3
    assert [s.passed for s in numbers_of(source(g, "attended"), 6_000_000).steps] == [True, True, True]


def test_minus_infinity_less_minus_infinity_is_seen() -> None:
    text = emitted(C.masked())
    guard = 'shift = tl.where(highest == -float("inf"), 0.0, highest)'
    assert guard in text
    found = numbers_of(text.replace(guard, "shift = highest"))
    assert not found.accepted and "nan" in found.steps[-1].text


# ---- groups ----------------------------------------------------------------------------------------------------------


def groups(g: MuGraph) -> list[int]:
    """How many exponentials each group has."""
    d = Degrees(g)
    found = [d.group[e][0] for e in d.free]
    return sorted(map(found.count, {*found}))


def test_exponentials_that_are_added_are_of_one_group() -> None:
    assert groups(C.cached()) == [2] and groups(C.with_importance()) == [3]
    assert groups(C.at_two_temperatures()) == [1, 1]


def test_a_power_of_other_exponentials_has_that_power_of_the_factor() -> None:
    d = Degrees(C.of_twice_the_scores())
    assert {e[1]: n for e, (_, n) in d.group.items()} == {"p": 1, "r": 2} and groups(d.graph) == [2]
    (k,) = stabilised(d.graph).kernels
    assert [o.args for o in k.operators if o.op == "sub" and o.out.startswith("twice")] == [
        ("twice", "highest"),
        ("twice_less", "highest"),
    ]


def test_an_exponential_of_no_group_stays_and_is_told() -> None:
    g = stabilised(C.gated())
    assert "adds values of the degrees 1 and 0 in exp(S)" in unstable(g) and groups(C.gated()) == [1]
    ops = {o.out: o for o in g.kernels[0].operators}
    assert ops["x"].args == ("gate",) and ops["p"].args == ("s_less",)
    judged = accept(source(g, "gated"), only=("replayed", "rounded"), steps=4_000_000, stable=False)
    assert [(s.name, s.passed) for s in judged.steps] == [("loaded", True), ("replayed", True), ("rounded", True)]
    assert "# exp is not stabilised: more adds" in source(g, "gated")


def test_each_factor_is_made_once() -> None:
    (k,) = stabilised(C.cached()).kernels
    assert sum(o.op == "exp" for o in k.operators) == 4 and sum(o.op == "maximum" for o in k.operators) == 1


def test_tensors_know_which_maxima_are_lower() -> None:
    """An exponential that is divided by a sum of it and others needs no maximum of its own."""
    g = stabilised(C.with_importance())
    assert [o.op for o in g.kernels[1].operators].count("max") == 0
    assert g.tensors["top"].dims == mugraphs.tensor("top", "m").dims


def test_of_an_exponential_of_exponentials_the_outer_one_is_stabilised() -> None:
    g = stabilised(nested())
    assert unstable(g) and [o.args for o in g.kernels[0].operators if o.op == "exp"] == [("x",), ("inner_less",)]


def nested() -> MuGraph:
    """The softmax of exp(x), rows whole."""
    x = mugraphs.source("x", "mk")
    e = mugraphs.node("exp", mugraphs.node("exp", x))
    of = mugraphs.program({"x": "mk"}, "mk", mugraphs.node("div", e, mugraphs.node("sum", e, attr="k")))
    op, tensor = mugraphs.op, mugraphs.tensor
    block = (
        mugraphs.load("x", "mk"), op("inner", "exp", "x", "mk"), op("outer", "exp", "inner", "mk"),
        op("total", "sum", "outer", "m", "k"), op("y", "div", "outer total", "mk"), op("out", "store", "y", "mk"),
    )  # fmt: skip
    k = mugraphs.Kernel("nested_kernel", {"m": "grid", "k": "whole"}, {"m": 2, "k": 4096}, block)
    return MuGraph(of, (k,), {"out": tensor("out", "mk")})

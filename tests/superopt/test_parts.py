"""Programs on views of tensors, emitted: what is read and written in parts, what is refused, and wrong twins."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from trilift.lift.capture.case_files import by_file, load
from trilift.lift.cases.declaration import Case, make_case
from trilift.lift.errors import Unsupported
from trilift.lift.terms import construct as T
from trilift.superopt.accept import timing
from trilift.superopt.accept.acceptance import Acceptance, accept
from trilift.superopt.emit import codegen
from trilift.superopt.jobs import program_from, proved_same
from trilift.superopt.mugraph.graph import MuGraph
from trilift.superopt.mugraph.json import from_json, to_json
from trilift.superopt.program.program import Part, Program
from trilift.superopt.program.views import of_case
from trilift.superopt.search.stabilise import stabilised
from trilift.superopt.search.unfused import unfused
from trilift.verify import prove
from trilift.verify.refutation.search import search
from trilift.verify.runs.goals import targets

TRINITY = Path(__file__).parents[2] / "corpus" / "trinity"


def heads(x: Any, w: Any, scale: Any) -> Any:
    H = scale.shape[0]
    return (x @ w).view(x.shape[0], H, -1).transpose(0, 1) * scale[:, None, None]


def cached(keys: Any, new: Any) -> Any:
    P = keys.shape[1] - new.shape[0]
    keys[:, P:] = new.view(new.shape[0], keys.shape[0], -1).transpose(0, 1)
    return 2 * keys[:, :P]


def merged(x: Any, w: Any) -> Any:
    return (x @ w).transpose(0, 1).reshape(x.shape[1], -1)


def gated(x: Any, w: Any) -> Any:
    y, N = x @ w, w.shape[1] // 2
    return torch.nn.functional.silu(y[:, :N]) * y[:, N:]


def appended(x: Any, y: Any) -> Any:
    return torch.cat([2 * x, y * y])


def stored(x: Any, y: Any) -> None:
    x[x.shape[0] - y.shape[0] :] = 3 * y


def doubled(x: Any, y: Any) -> None:
    x[x.shape[0] - y.shape[0] :] = 2 * y


SPECS: dict[Callable[..., Any], dict[str, str]] = {
    heads: {"x": "f32[M,K]", "w": "f32[K,H*D]", "scale": "f32[H]"},
    cached: {"keys": "f16[H,P+M,D]", "new": "f16[M,H*D]"},
    merged: {"x": "f32[H,M,K]", "w": "f32[H,K,D]"},
    gated: {"x": "f16[M,K]", "w": "f16[K,2*N]"},
    appended: {"x": "f16[M,D]", "y": "f16[P,D]"},
    stored: {"x": "f16[P+M,D]", "y": "f16[M,D]"},
}


def of(fn: Callable[..., Any]) -> Case:
    return make_case(fn.__name__, fn, SPECS[fn])


def program(fn: Callable[..., Any]) -> Program:
    return of_case(of(fn), dict.fromkeys(of(fn).names, 64))


@cache
def emitted(fn: Callable[..., Any]) -> str:
    return written(program(fn), fn)


def written(p: Program, fn: Callable[..., Any]) -> str:
    """The file of a program as it is written."""
    return codegen.source(stabilised(unfused(p)[0]), fn.__name__, parameters=[*SPECS[fn]])


def numbers_of(text: str) -> Acceptance:
    return accept(text, only=("replayed", "rounded"), steps=2_000_000)


def loaded(text: str, tmp_path: Path) -> Case:
    file = tmp_path / "emitted.py"
    file.write_text(text)
    return load(str(file))[0]


# ---- what is emitted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", SPECS, ids=lambda f: f.__name__)
def test_a_program_on_views_computes_what_its_reference_does(fn: Callable[..., Any]) -> None:
    found = numbers_of(emitted(fn))
    assert [s.passed for s in found.steps] == [True, True, True], str(found)


@pytest.mark.parametrize("fn", SPECS, ids=lambda f: f.__name__)
def test_it_computes_what_the_case_does(fn: Callable[..., Any], tmp_path: Path) -> None:
    found = loaded(emitted(fn), tmp_path)
    goal = targets(found, other=of(fn).fn)
    assert {*goal.formulas} == {*targets(found).formulas}
    assert search(found, goal, steps=3_000_000).found is None


def test_a_file_on_views_is_accepted_and_proved() -> None:
    found = accept(emitted(appended), steps=2_000_000)
    assert found.accepted and found.verdict == "PROVED", str(found)


def test_views_are_of_the_tensors_themselves() -> None:
    text = emitted(cached)
    assert "P = keys.shape[1] - M" in text and "assert P >= 0" in text and "assert new.shape[1] == D * H" in text
    assert "new_mhd = new.unflatten(1, (H, D))" in text and "keys_hpd = keys.narrow(1, 0, P)" in text
    assert "keys_hmd = keys.narrow(1, P, M)" in text and '"keys",)' in text and "keys=" in text
    assert "size_n = w.shape[1] // 2" in emitted(gated) or "N = w.shape[1] // 2" in emitted(gated)
    assert "out_mhd = out.unflatten(1, (H, D))" in emitted(merged)
    ast.parse(text)


def test_a_host_function_checks_its_contract(tmp_path: Path) -> None:
    host = by_file(str(loaded(emitted(cached), tmp_path).place.file)).cached  # type: ignore[union-attr]
    good = torch.zeros(2, 7, 4, dtype=torch.float16), torch.zeros(3, 8, dtype=torch.float16)
    for keys, new in ((good[0][:, :2], good[1]), (good[0], good[1][:, :7]), (good[0].float(), good[1])):
        with pytest.raises(AssertionError):
            host(keys, new)


def test_the_operator_tells_what_it_mutates(tmp_path: Path) -> None:
    file = tmp_path / "emitted.py"
    file.write_text(emitted(cached))
    module = by_file(str(file))
    module.register("emitted_in_place")
    operator = torch.ops.emitted_in_place.cached
    assert "Tensor(a0!) keys, Tensor new" in str(operator.default._schema)
    given = [torch.empty(*shape, dtype=torch.float16) for shape in ((2, 7, 4), (3, 8))]
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert operator(*given).shape == (2, 4, 4)
    wrapped = lambda *xs: module.cached(*xs, wrap=torch.library.wrap_triton)  # noqa: E731
    within = [str(n.target) for n in make_fx(wrapped, tracing_mode="fake")(*given).graph.nodes]
    assert within.count("triton_kernel_wrapper_mutation") == 2


def test_flops_of_views_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "emitted.py"
    file.write_text(emitted(gated))
    by_file(str(file)).register("emitted_gated")
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:
        x, w = (torch.empty(*shape, dtype=torch.float16) for shape in ((5, 64), (64, 14)))
        assert torch.ops.emitted_gated.gated(x, w).shape == (5, 7)
    assert counter.get_total_flops() == 2 * 5 * 64 * 14


def test_nothing_but_what_is_written_is_an_operator_too(tmp_path: Path) -> None:
    file = tmp_path / "emitted.py"
    file.write_text(emitted(stored))
    by_file(str(file)).register("emitted_stored")
    with FakeTensorMode():
        assert torch.ops.emitted_stored.stored(*(torch.empty(n, 4, dtype=torch.float16) for n in (7, 3))) is None


@pytest.mark.parametrize("fn", SPECS, ids=lambda f: f.__name__)
def test_graphs_on_views_survive_json(fn: Callable[..., Any]) -> None:
    g = unfused(program(fn))[0]
    again = from_json(to_json(g))
    assert again == g and again.program.places == g.program.places
    assert codegen.source(again, "again") == codegen.source(g, "again")


@pytest.mark.parametrize("name", ["vanilla", "pre_norm", "qk_norm", "key_former", "ro_co", "swi_glu"])
def test_the_programs_of_trinity_are_emitted(name: str) -> None:
    (found,) = load(str(TRINITY / f"{name}.py"))
    p = of_case(found, dict.fromkeys(found.names, 16))
    text = codegen.source(unfused(p)[0], name, parameters=[*found.tensors])
    ast.parse(text)
    caches = [f'"{x}"' for x in ("keys", "values") if x in found.tensors]
    assert f"mutates_args=({', '.join(caches)})" in text


# ---- wrong twins -----------------------------------------------------------------------------------------------------

TWINS: list[tuple[str, Callable[..., Any], str, str]] = [
    ("stored one row early", cached, "keys_hmd = keys.narrow(1, P, M)", "keys_hmd = keys.narrow(1, P - 1, M)"),
    ("stored at the start", stored, "x.narrow(0, P, M)", "x.narrow(0, 0, M)"),
    ("read one row late", cached, "keys_hpd = keys.narrow(1, 0, P)", "keys_hpd = keys.narrow(1, 1, P)"),
    ("digits in the wrong order", cached, "new.unflatten(1, (H, D))", "new.unflatten(1, (D, H)).transpose(1, 2)"),
    ("heads merged the wrong way", merged, "out.unflatten(1, (H, D))", "out.unflatten(1, (D, H)).transpose(1, 2)"),
    ("swapped parts", gated, "w.narrow(1, 0, N)", "w.narrow(1, N, N)"),
    ("a store to a copy", stored, "x.narrow(0, P, M)\n", "x.narrow(0, P, M).clone()\n"),
    ("a piece left out", appended, "out.narrow(0, M, P)\n", "out.narrow(0, M, P).clone()\n"),
]  # fmt: skip


def host_changed(text: str, old: str, new: str) -> str:
    """The file with another host function and the same reference."""
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize("what, fn, old, new", TWINS, ids=[t[0] for t in TWINS])
def test_a_wrong_twin_is_rejected(what: str, fn: Callable[..., Any], old: str, new: str) -> None:
    found = numbers_of(host_changed(emitted(fn), old, new))
    assert not found.accepted and not found.steps[-1].passed


@pytest.mark.parametrize("what, fn, old, new", TWINS[1:4], ids=[t[0] for t in TWINS[1:4]])
def test_a_wrong_twin_is_refuted(what: str, fn: Callable[..., Any], old: str, new: str, tmp_path: Path) -> None:
    found = loaded(host_changed(emitted(fn), old, new), tmp_path)
    assert "REFUTED" in {p.verdict.value for p in prove(found, timeout=20.0)}


def test_memory_around_what_is_written_is_looked_at() -> None:
    row = "    x_md = x.narrow(0, P, M)\n"
    beyond = row + "    x.as_strided((1,), (1,), x.storage_offset() + 1).zero_()\n"  # between two elements
    found = accept(host_changed(emitted(stored), row, beyond), only=("rounded",), steps=2_000_000)
    assert not found.accepted and found.steps[-1].name == "rounded"


def shifted(parts: Sequence[Part], by: int) -> tuple[Part, ...]:
    return tuple(replace(x, start=T.add(x.start, by)) if x.start is not T.const(0) else x for x in parts)


def test_the_program_of_another_case_is_not_the_same(tmp_path: Path) -> None:
    """The file says of itself that it is right: what it was made from is wrong."""
    p = program(stored)
    (name, place), *_ = p.places.items()
    assert place.in_place
    assert proved_same(emitted(stored), make_case("doubled", doubled, SPECS[stored]), "function", 0, 20.0) == "REFUTED"
    early, late = (replace(p, places={name: replace(place, parts=shifted(place.parts, by))}) for by in (-1, 1))
    assert proved_same(written(early, stored), of(stored), "function", 0, 20.0) == "REFUTED"
    with pytest.raises(Unsupported, match="could not prove for all sizes"):
        written(late, stored)


# ---- what is refused -------------------------------------------------------------------------------------------------


def placed(p: Program, **changes: Any) -> Program:
    return replace(p, places={out: replace(x, **changes) for out, x in p.places.items()})


def test_what_is_overwritten_is_not_read() -> None:
    p = program(cached)
    start = tuple(replace(x, start=T.const(0)) for x in next(x for x in p.places.values()).parts)
    with pytest.raises(Unsupported, match="its overwritten elements are read"):
        written(placed(p, parts=start), cached)


def test_two_outputs_share_no_element() -> None:
    p = program(appended)
    first = next(iter(p.places.values()))
    both = {out: replace(x, parts=tuple(replace(q, start=T.const(0)) for q in x.parts)) for out, x in p.places.items()}
    with pytest.raises(Unsupported, match="may share an element of out"):
        written(replace(p, places=both), appended)
    wider = (*first.shape[:1], T.add(first.shape[1], 1))
    with pytest.raises(Unsupported, match="disagree on its shape"):
        written(replace(p, places={**p.places, "out_0": replace(first, shape=wider)}), appended)


def test_a_tensor_has_no_rest_that_nobody_writes() -> None:
    p = program(merged)
    wider = tuple(T.mul(2, n) for n in next(iter(p.places.values())).shape)
    with pytest.raises(Unsupported, match="the rest of .* is never written"):
        written(placed(p, shape=wider), merged)


def test_a_size_that_nothing_tells_is_refused() -> None:
    fn = lambda x, y: 2 * x[: x.shape[0] - y.shape[0]]  # noqa: E731
    p = of_case(make_case("half", fn, {"x": "f16[P+M,D]", "y": "f16[M,D]"}), {"M": 3, "P": 5, "D": 4})
    with pytest.raises(Unsupported, match="no tensor that the program reads determines the size"):
        codegen.source(unfused(p)[0], "half")


# ---- units -----------------------------------------------------------------------------------------------------------


def read(fn: Callable[..., Any], specs: dict[str, str]) -> Program:
    from trilift.superopt.jobs import formulas_of

    found = make_case("read", fn, specs)
    return program_from(found, formulas_of(found)[0], "function", dict.fromkeys(found.names, 8))


def test_a_leading_slice_is_no_whole_tensor() -> None:
    p = read(lambda x, y: x[: y.shape[0]] * y, {"x": "f16[P+M,D]", "y": "f16[P,D]"})
    x = next(x for x in p.inputs if x.tensor == "x")
    assert x.shape == (T.add(T.size("P"), T.size("M")), T.size("D")) and x.parts[0].start is T.const(0)
    plain = read(lambda x, y: x * y, {"x": "f16[P,D]", "y": "f16[P,D]"})
    assert not any(x.parts for x in plain.inputs) and not plain.places


def test_a_function_that_cannot_be_read_says_why() -> None:
    with pytest.raises(Unsupported, match="topk"):
        read(lambda x: x.topk(3).values, {"x": "f16[M,D]"})


def test_the_root_of_a_size_is_a_number_of_the_program() -> None:
    p = read(lambda x: x / math.sqrt(x.shape[-1]), {"x": "f16[M,D]"})
    assert [str(n.attr) for out in p.outputs for n in out[2].walk() if n.op == "scale"] == ["recip(sqrt(D))"]


def test_what_is_written_in_place_is_a_place() -> None:
    p = read(stored, SPECS[stored])
    assert [x.in_place for x in p.places.values()] == [True]
    with pytest.raises(Unsupported, match="its overwritten elements are read"):
        read(lambda x: x.mul_(2), {"x": "f16[M,D]"})


def test_equal_shapes_of_two_parts_are_two_inputs() -> None:
    """Of one packed weight: the field test would take one half for the other."""
    from trilift.superopt.program.abstract import templates
    from trilift.superopt.search.verifier import verify

    p = program(gated)
    left, right = (x for x in p.inputs if x.tensor == "w")
    g = unfused(p)[0]
    other = {left.name: right.name, right.name: left.name}
    kernels = tuple(
        replace(k, operators=tuple(replace(o, args=tuple(other.get(a, a) for a in o.args)) for o in k.operators))
        for k in g.kernels
    )
    named = templates(p)
    assert all(o.equal for o in verify(g, named).outcomes)
    assert any(o.equal is False for o in verify(MuGraph(p, kernels, g.tensors, g.parts), named).outcomes)


# ---- timing ----------------------------------------------------------------------------------------------------------


def test_what_is_written_in_place_is_timed_and_compared() -> None:
    of_stored = make_case("stored", stored, SPECS[stored])
    xs = timing.inputs(of_stored, {"P": 500, "M": 2, "D": 8}, "cpu")
    wanted = timing.wanted(of_stored, xs)
    assert len(wanted) == 1 and isinstance(wanted[0], timing.Written)
    forgotten = timing.measured(lambda x, y: None, timing.turns(xs, timing.Host()), wanted, timing.Host(), samples=3)
    assert not forgotten.right and forgotten.why == "its outputs differ"
    found = timing.measured(stored, timing.turns(xs, timing.Host()), wanted, timing.Host(), samples=3)
    assert found.right and found.cold is not None

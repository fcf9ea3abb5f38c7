"""The program as it is written, one kernel for each operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_search import PROGRAMS, program

from trilift.lift.cases.declaration import make_case
from trilift.lift.errors import Unsupported
from trilift.superopt.accept.acceptance import accept
from trilift.superopt.accept.mutants import graph_mutants
from trilift.superopt.emit.codegen import source
from trilift.superopt.jobs import formulas_of, program_from
from trilift.superopt.mugraph.graph import MuGraph
from trilift.superopt.program.abstract import templates
from trilift.superopt.search.stabilise import stabilised, unstable
from trilift.superopt.search.unfused import unfused
from trilift.superopt.search.verifier import Invalid, verify


def differs(g: MuGraph) -> bool:
    try:
        return any(o.equal is not True for o in verify(g, templates(g.program)).outcomes)
    except Invalid:
        return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_computes_the_program(name: str) -> None:
    p = program(name)
    g, seconds = unfused(p)
    result = verify(g, templates(p))
    assert all(o.equal is True for o in result.outcomes) and result.bound < 1e-9
    assert seconds > 0 and unstable(stabilised(g)) == ""
    assert len(g.kernels) >= sum(n.op == "sum" for n in p.nodes)


def test_a_changed_operator_is_seen() -> None:
    g, _ = unfused(program("rms_norm_matmul"))
    changed = [m for _, m in graph_mutants(g)]
    assert len(changed) > 10 and sum(map(differs, changed)) == len(changed)


def test_products_of_matrices_and_nothing_larger_than_them() -> None:
    g, _ = unfused(program("rms_norm_matmul"))
    assert "dot" in {o.op for k in g.kernels for o in k.operators}
    assert max(len(t.dims) for t in g.tensors.values()) == 2


def test_what_is_emitted_is_accepted() -> None:
    g = stabilised(unfused(program("gated_mlp"))[0])
    judged = accept(source(g, "gated_mlp"), sizes={"M": 16, "K": 64, "N": 64}, steps=1_000_000)
    assert judged.accepted, judged


def test_a_row_that_fits_into_no_block() -> None:
    with pytest.raises(Unsupported, match="no tiles of exp fit into the memory of a block: n = 100000"):
        unfused(program("attention", N=100_000))


ACCEPTED: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "int8 weights": (
        lambda x, w, s: (x @ w.to(torch.float16).T) * s,
        {"x": "f16[M,K]", "w": "i8[N,K]", "s": "f16[N]"},
    ),
    "uint8 and bf16": (lambda x, w: x * w.to(torch.bfloat16), {"x": "bf16[M,K]", "w": "u8[M,K]"}),
    "two int8": (lambda x, y: x.float() * y.float(), {"x": "i8[M,K]", "y": "i8[M,K]"}),
    "a scalar": (lambda x, s: x * s, {"x": "i8[M,K]", "s": "f32"}),
    "largest of a row": (lambda x: x / x.abs().amax(-1, keepdim=True), {"x": "f16[M,K]"}),
    "least of a product": (lambda x, w: (x @ w).amin(-1), {"x": "f16[M,K]", "w": "f16[K,N]"}),
    "a scalar in 16 bits": (lambda x, s: torch.softmax(x * s, -1), {"x": "f16[M,K]", "s": "f32"}),
}


def passes(text: str) -> bool:
    """Whether the replays find no difference."""
    return all(s.passed for s in accept(text, only=("replayed", "rounded"), steps=1_000_000).steps)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_emitted_holds_up_and_a_wrong_twin_does_not(name: str) -> None:
    fn, specs = ACCEPTED[name]
    found = make_case("kernel", fn, specs)
    sizes = dict.fromkeys(found.names, 32)
    text = source(stabilised(unfused(program_from(found, *formulas_of(found), sizes))[0]), "kernel")
    assert passes(text)
    stored = text.index("tl.store(")
    wrong = text[:stored] + text[stored:].replace("tl.store(out_ptr", "tl.store(1 + out_ptr", 1)
    assert wrong != text and not passes(wrong)


def test_wide_integers_are_refused() -> None:
    found = make_case("kernel", lambda x, w: x @ w.to(torch.float16).T, {"x": "f16[M,K]", "w": "i32[N,K]"})
    with pytest.raises(Unsupported, match="w is i32"):
        program_from(found, *formulas_of(found), dict.fromkeys(found.names, 32))


def test_lanes_beyond_a_row_are_below_all_of_its_elements() -> None:
    found = make_case("kernel", lambda x: x.amax(-1), {"x": "f32[M,K]"})
    p = program_from(found, *formulas_of(found), {"M": 32, "K": 32})
    text = source(unfused(p)[0], "kernel")
    assert passes(text) and 'float("inf")' in text
    assert not passes(text.replace('-float("inf")', "0.0"))

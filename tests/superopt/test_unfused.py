"""The program as it is written, one kernel for each operation."""

from __future__ import annotations

import pytest
from test_search import PROGRAMS, program

from trilift.lift.errors import Unsupported
from trilift.superopt.accept.acceptance import accept
from trilift.superopt.accept.mutants import graph_mutants
from trilift.superopt.emit.codegen import source
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

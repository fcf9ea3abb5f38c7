"""What a host function does beyond the shapes that are tried: read, and never PROVED without the clause that it needs.

Right by hand: each wrong one differs from its reference at an input that its docstring or its test on a size names.
"""

from __future__ import annotations

import pytest

from tests.kernels import host_functions
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import TriliftError
from trilift.lift.pytorch.host.host_run import read_host
from trilift.lift.terms import construct as T
from trilift.verify import prove
from trilift.verify.configurations.launches import REFUSED, configurations

RELATION = T.make("min", 512, T.make("next_power_of_2", T.mul(2, T.size("M"), T.size("N"))))


def texts(name):
    return [c.text for s in configurations(getattr(host_functions, name)) for c in s.clauses]


@pytest.mark.parametrize("name", host_functions.WRONG)
def test_no_wrong_host_function_is_proved_without_its_clause(name):
    clause = host_functions.WRONG[name]
    (proof,) = prove(getattr(host_functions, name), fallback=False)
    excluded = proof.verdict.value == "PROVED" and clause in [c.text for c in proof.contract]
    assert proof.verdict.value != "PROVED" or (clause and excluded), [c.text for c in proof.contract]


@pytest.mark.parametrize("name", host_functions.RIGHT)
def test_right_host_functions_stay_proved(name):
    (proof,) = prove(getattr(host_functions, name), fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason
    shapes = [c for c in proof.contract if c.kind == "shape" and c.why != REFUSED]
    assert not [c for c in shapes if "elsewhere" in c.why]


def test_a_product_of_sizes_in_a_tensor_is_followed_as_far_as_it_does_not_wrap():
    (proof,) = prove(host_functions.sizes_multiplied_in_a_tensor, fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason
    assert f"M * N <= {2**63 - 1}" in [c.text for c in proof.contract]


def test_a_path_without_other_sides_is_said_to_be_read():
    assert "the host function was read: 1 path" in texts("plain")
    assert not [t for t in texts("plain") if "found at" in t]


def test_what_cannot_be_followed_is_named_with_its_line():
    with pytest.raises(TriliftError) as error:
        configurations(host_functions.table_of_sizes)
    assert "N" in error.value.what and error.value.place.file.endswith("host_functions.py")


def test_launch_arguments_are_terms_of_the_sizes():
    case = host_functions.padded_rows
    run = read_host(case, choose(case, 3)[2])
    (launch,) = run.trace.launches
    assert str(launch.args["BLOCK"].term) == "next_power_of_2(N)"
    assert "le(N, 65536)" in [str(d.condition) for d in run.decisions if d.by == "host"]


def test_a_grid_names_its_block_sizes():
    """What a block size is of the dims is one fact, and not repeated in each term."""
    for s in configurations(host_functions.tiles_of_the_result):
        block, relation = T.size("BLOCK"), T.make("eq", T.size("BLOCK"), RELATION)
        (launch,) = s.events
        assert s.facts >= {relation} and not any(t.op == "next_power_of_2" for t in launch.grid[0].walk())
        assert block in launch.grid[0].walk() or T.make("eq", 1, block) in s.facts

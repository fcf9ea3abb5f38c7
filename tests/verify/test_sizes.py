"""Sizes: at the edges of blocks, where launches change, within the contract; each shape is one that can be called."""

from pathlib import Path

import numpy as np
import pytest
from sized import KERNELS, sized

from trilift.lift.capture.case_files import load
from trilift.lift.capture.run import capture, raised
from trilift.lift.cases.shapes import around, elements
from trilift.lift.language.case_spec import Reader
from trilift.lift.language.python_source import python_source
from trilift.lift.terms.fit import value
from trilift.verify.configurations.relations import places
from trilift.verify.properties.sizes import TENSOR_ELEMENTS, sizes

OPERATORS = Path(__file__).parents[2] / "corpus" / "operators"


def found(name, file=KERNELS):
    """The case and its sizes."""
    case, _, s = sized(name, file)
    return case, s


def operator(name):
    file, _, case = name.partition(".")
    return found(case, str(OPERATORS / f"{file}.py"))


@pytest.mark.parametrize("name", ["short_block", "refusing", "unit_stride", "whole_blocks", "either_block", "rows"])
def test_every_shape_is_accepted(name):
    case, s = found(name)
    assert s.first
    for d in s.first:
        assert case.holds(d) and raised(case, case.sample(d, np.random.default_rng(0))) is None
        assert elements(case, d) <= TENSOR_ELEMENTS and capture(case, d).launches
        assert not s.where or eval(s.where, {}, dict(d))


def test_one_less_all_one_more():
    _, s = operator("softmax.softmax2")
    assert {0, 1, 1023, 1024, 1025, 2048, 2049} <= set(s.values["N"])
    assert s.why["N"].startswith("BLOCK = 1024") and s.where == ""
    assert {1023, 1024, 1025, 2049} <= {d["N"] for d in s.first}
    assert set(s.values["M"]) == {0, 1, 2, 3}, "nothing is cut into blocks along M"


def test_where_next_power_of_2_changes():
    _, s = operator("softmax.softmax1")
    assert {1, 4, 5, 8, 9, 16, 17, 1024, 1025} <= set(s.values["N"])
    assert 0 not in s.values["N"], "a block of next_power_of_2(0) lanes cannot be compiled"
    assert 0 in s.values["M"] and any(d["M"] == 0 for d in s.first)


def test_a_contract_limits_the_sizes():
    for name in ("short_block", "refusing"):
        _, s = found(name)
        assert s.where == "N <= 64" and max(s.values["N"]) == 64 and 63 in s.values["N"]


def test_sizes_follow_where():
    _, s = found("whole_blocks")
    assert s.where == "N % 32 == 0" and all(n % 32 == 0 for n in s.values["N"]) and 64 in s.values["N"]


def test_an_extent_of_an_expression():
    _, s = found("even_rows")
    assert {0, 1, 5, 6} <= set(s.values["H"]), "6 * H is 30 and 36, around a block of 32"
    assert "along 6 * H" in s.why["H"]


def test_a_block_that_no_term_describes():
    _, s = found("either_block")
    assert {100, 101, 31, 32, 33} <= set(s.values["N"])


def test_blocks_along_a_product_of_dims():
    _, s = operator("masks.where")
    assert {1023, 1024, 1025} <= {d["M"] * d["N"] for d in s.first}


def test_scalars_and_lists():
    case, s = found("dense_only")
    assert set(s.values) == {"N", "k"} and {0, 4} <= set(s.values["k"]) and max(s.values["k"]) < 5
    assert all({"N", "k", "eps"} == set(d) for d in s.first)


def test_there_is_a_row_to_index():
    case, s = found("rows")
    assert 0 in s.values["M"] and 0 not in s.values["V"]


def test_without_a_proof():
    [case] = load(KERNELS, ["short_block"])
    s = sizes(case, (), (), 0)
    assert {63, 64, 65} <= set(s.values["N"]) and s.where == ""


def test_the_same_twice():
    [case] = load(KERNELS, ["whole_blocks"])
    assert sizes(case, (), (), 3) == sizes(case, (), (), 3)


@pytest.mark.parametrize(
    "text",
    [
        "N <= 1024 and D % 16 == 0",
        "cdiv(N, 64) * 3 - M >= 2 or not (N == M)",
        "next_power_of_2(2 * H + 1) == H * H",
        "max(N, M, K) < 4 and (N == 1 or M > 2)",
        "N * M // (K // 2) > 7",
        "eps * N > 0.5 and min(N, M) == 2",
        "(N < M) == (K < 3)",
    ],
)
def test_conditions_as_python(text):
    t = Reader("x", {"eps"}, None).boolean(text)
    for n in range(9):
        for m in range(1, 9):
            dims = {"N": n, "M": m, "K": 3 + m % 2, "H": n, "D": 16 * m + n, "eps": 0.3}
            assert eval(python_source(t), {}, dims) == value(t, dims)


def test_places_and_shapes_around():
    assert places(lambda n: n > 10, [1, 8, 64]) == [(10, 11)]
    assert places(lambda n: 0, [1, 8, 64]) == []
    [case] = load(KERNELS, ["whole_blocks"])
    assert around(case, {"N": 33}, {"N": 32}) is None and around(case, {"N": 64}, {"N": 32}) == {"N": 64}

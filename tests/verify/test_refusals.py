"""Calls that a contract excludes: what breaks it, whether the wrapper raises, whether the call is harmless."""

import numpy as np
import pytest
from sized import KERNELS, sized

from trilift.lift.capture.case_files import load
from trilift.lift.capture.run import raised
from trilift.verify.properties.refusals import refusals
from trilift.verify.properties.sizes import sizes
from trilift.verify.runs.layouts import LAYOUTS, laid


def found(name):
    """By clause."""
    case, proofs, s = sized(name)
    return {r.clause.text: r for r in refusals(case, proofs, s, 0)}


def test_a_row_longer_than_the_block():
    r = found("short_block")["N <= 64"]
    assert r.clause.kind == "shape" and r.dims["N"] == 65 and r.raises == "" and r.safe


def test_the_wrapper_refuses_it():
    r = found("refusing")["N <= 64"]
    assert r.dims["N"] == 65 and r.raises == "ValueError"


def test_an_access_out_of_bounds_is_not_safe():
    r = found("whole_blocks")["N % 32 == 0"]
    assert r.dims["N"] == 1 and r.raises == "" and not r.safe


def test_strides_that_are_not_looked_at():
    r = found("unit_stride")["stride(x,1) == 1"]
    assert r.layouts == {"x": "strided"} and r.raises == "" and r.safe
    assert found("short_block")["x is contiguous"].layouts == {"x": "strided"}


def test_a_wrapper_that_makes_it_contiguous_excludes_nothing():
    assert found("even_rows") == {}


def test_a_wrapper_that_refuses_strides():
    assert found("dense_only")["xs0 is contiguous"].raises == "RuntimeError"
    assert "xs1 is contiguous" not in found("dense_only"), "nobody reads it"


def test_indices_out_of_range():
    wild = found("rows")["0 <= ids < V"]
    assert wild.values["ids"] == wild.dims["V"] and wild.raises == "" and not wild.safe


def test_a_wrapper_that_looks_at_indices():
    [case] = load(KERNELS, ["rows_checked"])
    s = sizes(case, (), ())
    assert s.first, "its launches depend on data, and cannot be looked at"
    [r] = [r for r in refusals(case, (), s) if r.clause.kind == "value"]
    assert r.raises == "IndexError"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_keeps_the_elements(layout):
    [case] = load(KERNELS, ["unit_stride"])
    dims, rng = {"M": 3, "N": 4}, lambda: np.random.default_rng(0)
    x = laid(case, {"x": layout}).sample(dims, rng())["x"]
    dense = laid(case, {"x": layout}, dense=True).sample(dims, rng())["x"]
    assert x.equal(dense) and dense.is_contiguous() and not x.is_contiguous()
    assert (x.stride() == (0, 1)) == (layout == "expanded")


def test_raised_launches_nothing():
    [case] = load(KERNELS, ["refusing"])
    long, short = (case.sample({"M": 2, "N": n}, np.random.default_rng(0)) for n in (65, 64))
    assert isinstance(raised(case, long), ValueError) and raised(case, short) is None

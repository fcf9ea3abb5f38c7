"""`verify.configurations.last_strides`: tensors whose last stride is 1, where the host function asks for it."""

from __future__ import annotations

import kernels_last_strides as K
import pytest

from trilift.lift import lift
from trilift.lift.cases.declaration import Case, stride_terms, with_unit_strides
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import CaseError
from trilift.lift.terms import construct as T
from trilift.verify import prove
from trilift.verify.configurations.launches import configurations
from trilift.verify.runs.layouts import otherwise, strides


def texts(c: Case) -> list[str]:
    """The clauses of the contract that are about strides."""
    (proof,) = prove(c)
    assert proof.verdict.value == "PROVED"
    return [k.text for k in proof.contract if "stride" in k.text]


def test_both_ways_are_proved_without_a_clause() -> None:
    said = texts(K.made_dense)
    assert said == ["the strides of x may be any positive numbers", "M * stride(x,0) < 2^31"]
    assert [s.label for s in configurations(K.made_dense)] == ["", "stride(x,1) == 1"]


def test_each_set_of_tensors_is_read() -> None:
    found = configurations(K.made_dense_both)
    one = "stride(x,1) == 1", "stride(y,1) == 1"
    assert [s.label for s in found] == ["", *one, ", ".join(one)]
    assert not any(c.kind == "shape" for s in found for c in s.clauses)


def test_rows_are_refuted_where_a_stride_is_taken_for_dense() -> None:
    assert [p.verdict.value for p in prove(K.rows_taken_for_dense)] == ["REFUTED"]


def test_wrong_with_gaps_alone_is_refuted() -> None:
    assert [p.verdict.value for p in prove(K.gaps_are_left)] == ["REFUTED"]


def test_a_side_that_cannot_be_read_stays_a_clause(monkeypatch: pytest.MonkeyPatch) -> None:
    from trilift.verify.configurations import last_strides

    monkeypatch.setattr(last_strides, "MOST_TENSORS", 0)
    assert [c.text for s in configurations(K.made_dense) for c in s.clauses if c.kind == "shape"] == [
        "stride(x,1) != 1"
    ]


def test_rows_is_a_spec() -> None:
    spec = K.refused_rows.tensors["x"]
    assert spec.strided and spec.unit
    assert stride_terms("x", spec) == (T.size("stride(x,0)"), T.const(1))
    dims = choose(K.refused_rows, 1, 0)[0]
    drawn = strides(K.refused_rows, dims, 0)["x"]
    assert drawn[0] > dims["N"] and drawn[1] == 1
    assert all(strides(c, dims, 0)["x"][1] == 1 for c in otherwise(K.refused_rows))
    assert texts(K.refused_rows)[0] == "the strides of x may be any positive numbers, and its last stride is 1"


def test_a_host_function_that_refuses_gaps_gets_advice() -> None:
    with pytest.raises(CaseError) as error:
        lift(K.refused)
    assert error.value.help == 'it runs where the last stride of x is 1: write "rows" in place of "strided"'


def test_lists_of_tensors() -> None:
    from trilift import case

    found = case(xs=["f32[M,N] strided", "f32[N]"])(lambda xs: None)
    made = with_unit_strides(found, ["xs0"]).tensors
    assert made["xs0"].unit and not made["xs1"].unit

"""Stores through integer inputs without two equal elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.kernels import kernels_distinct as K
from trilift import write
from trilift.lift.cases.declaration import make_case
from trilift.lift.errors import CaseError
from trilift.verify.model.verdict import Verdict
from trilift.verify.pipeline import prove
from trilift.verify.runs.adversary import FURTHER, SEARCHED, TABLE, arguments
from trilift.verify.runs.goals import targets

RIGHT = sorted(n for n in vars(K) if n.startswith("right_"))
WRONG = sorted(n for n in vars(K) if n.startswith("wrong_"))


@pytest.mark.parametrize("name", RIGHT)
def test_a_store_to_elements_that_differ_is_proved(name: str) -> None:
    proofs = prove(getattr(K, name))
    assert {p.verdict for p in proofs} == {Verdict.PROVED}
    said = {"no two elements of index are equal", "no two elements of slot are equal"}
    assert all(said & {c.text for c in p.contract} for p in proofs)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_one_is_not(name: str) -> None:
    verdicts = {p.verdict for p in prove(getattr(K, name))}
    assert verdicts <= {Verdict.REFUTED, Verdict.UNKNOWN}
    assert name == "wrong_rows_of_equal_indices" or Verdict.REFUTED in verdicts


@pytest.mark.parametrize(("spec", "writes"), [
    ("i32[N] in (0, M) distinct", 0), ("i32[N] in (0, M)", 1), ("i32[N] in (-2, M) distinct", 1),
])  # fmt: skip
def test_pytorch_writes_once_where_no_index_occurs_twice(spec: str, writes: int) -> None:
    case = make_case("f", K.rows, {"x": "f32[N,D]", "index": spec, "out": "f32[M,D]"}, "M > 1")
    case.reference(lambda x, index, out: out.index_put_((index.long(),), x))
    assert len(targets(case).repeated) == writes


def test_every_draw_has_distinct_elements() -> None:
    case, dims = K.right_rows, {"N": 5, "D": 3, "M": 6}
    assert not case.holds({**dims, "M": 4})
    for seed in (*range(len(SEARCHED)), *range(FURTHER, FURTHER + len(TABLE))):
        index = arguments(case, dims, seed)["index"].numpy()
        assert len(np.unique(index)) == 5 and index.min() >= 0 and index.max() < 6


@pytest.mark.slow
def test_written_tests_draw_distinct_elements(tmp_path: Path) -> None:
    file = tmp_path / "test_rows.py"
    assert write(K.__file__, file, ["right_rows"]) == 0
    text = file.read_text(encoding="utf-8")
    assert 'make.distinct("index", (N,), torch.int32, 0, M)' in text and "assume(N <= M)" in text


@pytest.mark.parametrize("spec", ["f32[N] in (0, 1) distinct", "i32[N] distinct", "i32 in (0, 9) distinct"])
def test_only_integer_tensors_with_limits_are_distinct(spec: str) -> None:
    with pytest.raises(CaseError, match='"distinct" is for tensors of integers with limits'):
        make_case("f", lambda x: x, {"x": spec})

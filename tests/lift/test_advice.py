"""Advice about dims is found by runs on small inputs."""

from __future__ import annotations

from collections.abc import Mapping

from trilift.lift.cases.advice import TRIED_ELEMENTS, runs_somewhere, working_where
from trilift.lift.cases.declaration import Case, make_case
from trilift.lift.cases.shapes import elements

MANY = make_case("many", lambda x: x, {"x": "f32[A,B,C,D,32]"})
ONE = make_case("one", lambda x: x, {"x": "f32[N]"})


def test_no_run_has_large_inputs() -> None:
    seen: list[int] = []

    def runs(case: Case, dims: Mapping[str, int | float]) -> bool:
        seen.append(elements(case, dims))
        return False

    assert working_where(MANY, runs) is None and not runs_somewhere(MANY, runs)
    assert seen and max(seen) <= TRIED_ELEMENTS


def test_the_weakest_condition_is_said() -> None:
    assert working_where(ONE, lambda case, dims: dims["N"] % 8 == 0) == "N % 8 == 0"
    assert working_where(ONE, lambda case, dims: False) is None

"""A seeded sample of mutants before the prover itself: none is proved that an execution tells from the original."""

from __future__ import annotations

from itertools import islice

import pytest
from operators import FILES, cases

from trilift import verify
from trilift.lift.cases.declaration import Case
from trilift.verify.model.verdict import Proof
from trilift.verify.mutation.mutant_filter import Mutation
from trilift.verify.mutation.mutants import mutants
from trilift.verify.mutation.soundness_gate import FAILURES, Tried, examine

SAMPLE = {"softmax2": 8, "linear_plain": 6, "layer_norm": 6, "swiglu_backward": 6, "gather": 6, "cumsum": 6}


def prover(case: Case, launch: int, mutation: Mutation) -> tuple[Proof, ...]:
    return verify.prove(case, replace={launch: mutation}, timeout=6.0)


@pytest.mark.parametrize("name", SAMPLE)
def test_no_mutant_is_proved_wrongly(name: str) -> None:
    tried = Tried.of(next(c for f in FILES for c in cases(f) if c.name == name))
    launch = tried.first[0].trace.launches[0]
    found = [examine(prover, tried, 0, m) for m in islice(mutants(launch.module(), 5), SAMPLE[name])]
    assert tried.original == "PROVED"
    assert [(x.text, x.evidence) for x in found if x.outcome in FAILURES] == []
    assert any(x.execution == "killed" for x in found)

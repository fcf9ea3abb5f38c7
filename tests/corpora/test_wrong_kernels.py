"""None of the wrong kernels is proved, unless its contract excludes what it does wrong; the right ones are proved."""

from __future__ import annotations

import pytest
import wrong_kernels as K

from trilift import verify
from trilift.lift.cases.declaration import Case
from trilift.verify.model.verdict import Clause, Verdict

CASES = {name: c for name, c in vars(K).items() if isinstance(c, Case) and c.name == name}
WITH_CLAUSE = {  # what the contract has to exclude: the kind of the clause, and what it is about
    "divided_by_truth": ("value", "x"),
    "cancelled": ("value", "y"),
    "cancelled_in_an_inner_invariant": ("value", "y"),
    "overflowing": ("nowrap", "M"),
}
NOT_FOUND = {"right_last_of_three_stores"}  # right, and not proved: the last of several stores by one program


def about(clause: Clause) -> set[str]:
    return set() if clause.term is None else {str(s.attr) for s in clause.term.walk() if s.op in ("read", "size")}


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("right_")])
def test_wrong_kernel_is_not_proved(name: str) -> None:
    for p in verify.prove(CASES[name], fallback=False, timeout=5):
        if p.verdict is Verdict.PROVED:
            kind, what = WITH_CLAUSE[name]
            assert any(c.kind == kind and what in about(c) for c in p.contract)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("right_") and n not in NOT_FOUND])
def test_right_kernel_is_proved(name: str) -> None:
    proofs = verify.prove(CASES[name], fallback=False)
    assert [p.verdict for p in proofs] == [Verdict.PROVED] * len(proofs), proofs[0].reason


def test_a_clause_of_every_condition_of_the_table() -> None:
    """The kernels that are proved under a clause are proved: the table is not there for nothing."""
    for name in WITH_CLAUSE:
        assert all(p.verdict is Verdict.PROVED for p in verify.prove(CASES[name], fallback=False))

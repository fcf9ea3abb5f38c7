"""Contracts: found where a precondition is all that is missing, checked against what the host function lets through,
and never made of nothing; texts in the user's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kernels_contract as kernels
import pytest
from operators import ROOT, cases

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis
from trilift.verify import prove
from trilift.verify.configurations.launches import REFUSED
from trilift.verify.model.configuration import Buffer, View
from trilift.verify.model.verdict import Claim, Clause, Condition, Proof, proved, unknown
from trilift.verify.refutation import contract
from trilift.verify.wording import user_terms

M, N, K = T.size("M"), T.size("N"), T.size("K")
GOOD = (Condition("value", frozenset(), T.const(True), True, "linear", 0.0),)


def only(case: Any, **how: Any) -> Proof:
    (proof,) = prove(case, **how)
    return proof


def inferred(proof: Proof) -> list[str]:
    return [c.text for c in proof.contract if c.why in (contract.INFERRED, contract.REFUSED)]


@pytest.mark.parametrize(
    ("case", "clauses"),
    [
        (kernels.unchecked, ["N <= 128"]),
        (kernels.checked_badly, ["N <= 128"]),
        (kernels.matmul_without_masks, ["M % 16 == 0", "N % 32 == 0", "K % 16 == 0"]),
        (kernels.stride_ignored, ["stride(x,1) == 1"]),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_a_call_beyond_the_contract_refutes(case: Any, clauses: list[str]) -> None:
    proof = only(case)
    assert (proof.verdict.value, sorted(inferred(proof))) == ("REFUTED", sorted(clauses))
    dims = proof.counterexample.dims if proof.counterexample else {}
    assert case is kernels.stride_ignored or not all(
        contract._meets(c.term, dims) for c in proof.contract if c.kind == "shape"
    )


def test_a_contract_that_the_host_function_keeps_is_proved() -> None:
    proof = only(kernels.checked)
    [clause] = [c for c in proof.contract if c.kind == "shape"]
    assert (proof.verdict.value, clause.text, clause.why) == ("PROVED", "N <= 128", REFUSED)
    assert proof.conditions and all(c.holds for c in proof.conditions)


def test_without_fallback_nothing_is_inferred() -> None:
    assert only(kernels.unchecked, fallback=False).verdict.value == "UNKNOWN"


def test_what_is_wrong_everywhere_has_no_contract() -> None:
    proof = only(kernels.never_right)
    assert (proof.verdict.value, proof.contract) == ("REFUTED", ())


# ---- parts -----------------------------------------------------------------------------------------------------------


def outcome(monkeypatch: pytest.MonkeyPatch, sets: Sequence[Sequence[T.Term]], needed: set[T.Term], facts: Any) -> Any:
    """What is inferred where a proof needs just these clauses; the sets are given."""
    configuration = type("Setting", (), {"facts": frozenset(facts)})()
    claim = Claim("out", "formula")
    monkeypatch.setattr(contract, "candidates", lambda *_: iter([(contract.CONTRACTS[0], [*s]) for s in sets]))
    monkeypatch.setattr(contract, "beyond", lambda case, goal, found, seed: found)

    def under(clauses: Sequence[Clause], deadline: float) -> dict[str, Proof]:
        met = needed <= {c.term for c in clauses}
        return {"out": proved(claim, GOOD, (), tuple(clauses)) if met else unknown(claim, "no")}

    goal: Any = None
    return contract.infer(kernels.checked, goal, [configuration], under)


@pytest.mark.smoke
def test_clauses_that_are_not_needed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = (T.make("le", n, 64) for n in (M, N, K))
    found = outcome(monkeypatch, [[a], [a, b, c]], {b}, [])
    assert [x.term for x in found.clauses] == [b]
    assert outcome(monkeypatch, [[a], [a, c]], {b}, []) is None


@pytest.mark.smoke
def test_what_no_input_meets_is_no_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    small = T.make("le", N, 16)
    assert outcome(monkeypatch, [[small]], {small}, []) is not None
    assert outcome(monkeypatch, [[small]], {small}, [T.make("le", 17, N)]) is None


def test_a_kernel_that_fails_within_its_contract_is_not_proved() -> None:
    """The clauses leave in what fails."""
    claim = Claim("out", "reference")
    wide = contract.clause(T.make("le", N, 4096))
    found = contract.Inferred((wide,), {"out": proved(claim, GOOD, (), (wide,))})
    from trilift.verify.runs.goals import targets

    assert contract.beyond(kernels.unchecked, targets(kernels.unchecked), found) is None


@pytest.mark.smoke
def test_only_a_missing_precondition_is_looked_for() -> None:
    claim = Claim("out", "formula")
    assert contract.promising(unknown(claim, "why", cause="Undecided: a store"))
    assert not contract.promising(unknown(claim, "why", cause="Unsupported: tt.foo"))
    assert not contract.promising(proved(claim, GOOD, (), ()))


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_terms_are_words() -> None:
    i, lane = (T.axis(Axis(name, T.size("*"))) for name in ("%1", "a1_0"))
    pid = T.size("pid0")
    assert user_terms.words(T.make("le", 0, T.add(N, -1, T.mul(-1, i)))) == "i < N"
    assert user_terms.words(T.make("le", 0, T.add(127, T.mul(-1, i)))) == "i <= 127"
    assert user_terms.words(T.make("not", T.make("lt", lane, N))) == "N <= i"
    x = View(Buffer("x", "f32", T.mul(M, N), "", lambda o: o), T.const(0), (M, N), (N, T.const(1)), "f32")
    element = T.node("read", (T.add(T.mul(N, pid), i),), "x", T.REAL)
    assert user_terms.words(element, {"x": x}) == "x[pid0, i]"
    assert user_terms.words(T.make("ne", element, 0), {"x": x}) == "x[pid0, i] != 0"
    total = T.node("sum", (T.where(T.make("lt", i, N), element, 0),), i.attr, T.REAL)
    assert "*" not in user_terms.words(total, {"x": x}) and "%" not in user_terms.words(total, {"x": x})


@pytest.mark.smoke
def test_letters_are_free() -> None:
    i = T.axis(Axis("i", N))
    other = T.axis(Axis("%1", N))
    assert user_terms.words(T.make("lt", T.add(i, other), T.size("j"))) in ("i + k < j", "k + i < j")


@pytest.mark.smoke
def test_buffers_are_called_what_they_are() -> None:
    assert user_terms.called("the store of t0 at line 3, t0[4], t01", {"t0": "out"}) == (
        "the store of out at line 3, out[4], t01"
    )


def wraps(bound: T.Term, bits: int = 31) -> Clause:
    return Clause("nowrap", T.make("lt", bound, T.const(1 << bits)), f"{user_terms.words(bound)} < 2^{bits}")


@pytest.mark.smoke
def test_a_contract_is_short_and_in_order() -> None:
    seen, fits = Clause("config", None, "BLOCK is 16"), Clause("shape", T.make("le", N, 16), "N <= 16")
    long, short = wraps(T.mul(M, N)), wraps(N)
    ones = frozenset((M, N))
    assert user_terms.contract([seen, long, fits, short, long], ones=ones) == (fits, long, seen)
    assert user_terms.contract([short, long], ones=ones) == (long,)
    assert user_terms.contract([long, wraps(T.mul(M, N), 63)], ones=ones) == (long,)
    assert user_terms.contract([wraps(T.mul(M, N), 63), short], ones=ones) == (wraps(T.mul(M, N), 63), short)


@pytest.mark.smoke
def test_a_clause_about_wrapping_is_left_out_only_if_it_follows() -> None:
    long, short = wraps(T.mul(M, N)), wraps(N)
    assert user_terms.contract([long, short]) == (long, short)  # M may be 0
    both = [wraps(T.mul(M, N)), wraps(T.mul(2, N))]
    assert user_terms.contract(both, ones=frozenset((M, N))) == tuple(both)  # M may be 1
    assert user_terms.contract([wraps(T.add(N, 511)), wraps(N)], ones=frozenset((N,))) == (wraps(T.add(N, 511)),)


@pytest.mark.parametrize("name", ["layer_norm.py::layer_norm", "quantised.py::matmul_int4"])
def test_nothing_is_asked_of_data_that_is_not_divided_by(name: str) -> None:
    """A sum that is a factor on both sides may be 0."""
    file, _, case = name.partition("::")
    found = next(c for c in cases(ROOT / "corpus" / "operators" / file) if c.name == case)
    proof = only(found)
    assert proof.verdict.value == "PROVED"
    assert [c.text for c in proof.contract if c.kind == "value"] == []


def test_what_is_divided_by_is_asked() -> None:
    proof = only(kernels.quotient)
    assert proof.verdict.value == "PROVED"
    assert [c.kind for c in proof.contract if "y" in c.text and "!= 0" in c.text] == ["value"]

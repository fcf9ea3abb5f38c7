"""The proofs of a case from those of its parts: signs of integer scalars, the branches of a reference on sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trilift.lift.cases.declaration import Case
from trilift.lift.cases.parts import Part
from trilift.lift.terms import construct as T

from ..model.verdict import Clause, Counterexample, Proof, Verdict
from ..wording.user_terms import words
from .replay_script import replay_script

UNPROVED = "the proof, which does not hold elsewhere"
UNTRIED = "the test, which drew no such numbers"
UNSAID = ("config", "size")  # of the other signs: what was seen, and that sizes are at least 1


def joined(
    case: Case, first: Part, proofs: Sequence[Proof], rest: Sequence[tuple[Part, Sequence[Proof]]]
) -> tuple[Proof, ...]:
    """A proof of each output: REFUTED where it is wrong at some sign; else that of the first sign, usually of positive
    numbers, for the others too where it is proved there, and under the clause that excludes them where it is not."""
    others = [(s, {p.claim.output: p for p in found}) for s, found in rest]
    return tuple(_joined(case, first, p, [(s, found.get(p.claim.output)) for s, found in others]) for p in proofs)


def _joined(case: Case, first: Part, proof: Proof, others: Sequence[tuple[Part, Proof | None]]) -> Proof:
    for signs, found in ((first, proof), *others):
        if found is not None and found.verdict is Verdict.REFUTED:
            return _in_original(case, signs, found)
    if proof.verdict is Verdict.TESTED:
        return replace(proof, contract=(*proof.contract, *(_excluded(s, None, UNTRIED) for s, _ in others)))
    if proof.verdict is not Verdict.PROVED:
        return proof
    shown = [(s, p) for s, p in others if p is not None and p.verdict is Verdict.PROVED]
    kept = [_clause(c, first) for c in proof.contract if not _of_scalar(c, first)]
    more = [_clause(c, s) for s, p in shown for c in p.contract if c.kind not in UNSAID]
    limits = [_excluded(s, p) for s, p in others if p is None or p.verdict is not Verdict.PROVED]
    contract = {c.text: c for c in (*limits, *kept, *more)}
    return replace(
        proof,
        conditions=(*proof.conditions, *(c for _, p in shown for c in p.conditions)),
        contract=tuple(contract.values()),
        seconds=proof.seconds + sum(p.seconds for _, p in others if p is not None),
    )


def _in_original(case: Case, signs: Part, proof: Proof) -> Proof:
    """A refutation, whose numbers are those that the case gets."""
    if not signs.images or proof.counterexample is None:
        return proof
    found: Counterexample = replace(proof.counterexample, dims=signs.numbers(proof.counterexample.dims))
    return replace(proof, counterexample=replace(found, replay=replay_script(case, found, proof.claim.against)))


def _of_scalar(c: Clause, first: Part) -> bool:
    """Whether the clause says that a scalar of the case is at least 1: that is said of the signs that are open."""
    return c.kind == "size" and c.term is not None and str(c.term.args[1].attr) in first.case.scalars


def _clause(c: Clause, signs: Part) -> Clause:
    """A clause about the negative of a scalar, about the scalar."""
    if not signs.images:
        return c
    if c.term is None:
        data = None if c.data is None else signs.original(c.data)
        return replace(c, text=f"{c.text}{_turned(c.text, signs)} where {signs.label}", data=data)
    t = signs.original(c.term)
    return c if t is c.term else replace(c, term=t, text=words(t))


def _turned(text: str, signs: Part) -> str:
    """The names that stand for their negatives in the text of a clause about a part."""
    turned = (n for n, t in signs.images.items() if not t.is_const and re.search(rf"\b{re.escape(n)}\b", text))
    return "".join(f", with -{n} in place of {n}," for n in turned)


def _excluded(signs: Part, proof: Proof | None, why: str = UNPROVED) -> Clause:
    """The clause that excludes the sign, s != 0, 0 <= s, and what is open there."""
    parts = [T.make("eq", T.size(n), t) if t.is_const else T.make("lt", T.size(n), 0) for n, t in signs.images.items()]
    t = T.make("not", T.make("and", T.const(True), *parts))
    if proof is not None:
        turned = [n for n, t in signs.images.items() if not t.is_const]
        what = "".join(f", and with {n} in place of -{n}," for n in turned)
        why = f"the proof: where {signs.label}{what} it is open" + (f": {_line(proof.reason)}" if proof.reason else "")
    return Clause("shape", t, " or ".join(map(_otherwise, signs.images.items())), why)


def _line(reason: str) -> str:
    return next(iter(reason.splitlines()), "")


def _otherwise(image: tuple[str, T.Term]) -> str:
    name, t = image
    return f"{name} != {t.attr}" if t.is_const else f"0 <= {name}"


def everywhere(
    case: Case, conditions: Sequence[T.Term], other: Part, proofs: Sequence[Proof], rest: Sequence[Proof]
) -> tuple[Proof, ...]:
    """The proofs where `conditions` hold, and those of the `other` part, as one: REFUTED where it is wrong there,
    without the conditions where it is proved there too, else as they are."""
    elsewhere = {p.claim.output: p for p in rest}
    return tuple(_everywhere(case, conditions, other, p, elsewhere.get(p.claim.output)) for p in proofs)


def _everywhere(case: Case, conditions: Sequence[T.Term], other: Part, proof: Proof, rest: Proof | None) -> Proof:
    if proof.verdict is Verdict.REFUTED or rest is None:
        return proof
    if rest.verdict is Verdict.REFUTED:
        return _in_original(case, other, rest)
    if proof.verdict is not Verdict.PROVED or rest.verdict is not Verdict.PROVED:
        return proof
    kept = [c for c in proof.contract if c.term not in conditions]
    more = [_clause(c, other) for c in rest.contract if c.kind not in UNSAID]
    contract = {c.text: c for c in (*kept, *more)}
    return replace(
        proof,
        conditions=(*proof.conditions, *rest.conditions),
        contract=tuple(contract.values()),
        seconds=proof.seconds + rest.seconds,
    )

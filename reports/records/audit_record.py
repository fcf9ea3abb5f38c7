"""The results of an audit of a case, as its record: proofs first, then findings, then what could not be decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from trilift.lift import Case, Lifted
from trilift.lift.errors import CaseError, TriliftError

from ..base import explanations as rules
from . import entries, proof_record
from .entries import FindingStep, Record
from .options import Options, Proving

if TYPE_CHECKING:
    from trilift.verify.audit.examination import Audited
    from trilift.verify.audit.finding import Finding, Step


# Findings inside of the contract; broken-contract and int32-overflow are beyond it, the others are about rounding.
CONTRADICTING = frozenset(
    (
        "out-of-bounds",
        "write-race",
        "read-write-race",
        "missing-barrier",
        "unwritten-output",
        "undefined-value",
        "wrong-result",
    )
)


def audited(case: Case, lifted: Lifted | None, base: Record, options: Options, event: Callable[[Any], None]) -> Record:
    """The record with proofs and findings. Where nothing can be claimed of the outputs, their kernels are audited all
    the same."""
    from trilift.verify.audit.examination import audit

    proving = options.proving or Proving()
    against = proving.against or (proof_record.REFERENCE if case.reference else proof_record.FORMULA)
    trouble = proof_record.cannot(case, lifted, against)
    if isinstance(trouble, CaseError):
        return proof_record.wrong(base, trouble)
    try:
        found = audit(
            case,
            seed=options.seed,
            timeout=proving.timeout,
            lifted=lifted,
            against=against,
            progress=lambda stage: event(f"stage:{stage}"),
        )
    except CaseError as e:
        return proof_record.wrong(base, e)
    except TriliftError as e:
        return proof_record.stopped(base, against, e)
    except RecursionError:
        return proof_record.stopped(base, against, TriliftError(proof_record.NESTED, case.place))
    names = [o.name for o in lifted.outputs] if lifted is not None else []
    record = proof_record.merged(base, found.proofs, names, against, options)
    if not found.proofs and (reason := str(trouble or "") or next(iter(found.unknown), "")):
        record = {**record, **proof_record.undecided(against, reason)}
    return told(record, found)


def told(record: Record, found: Audited) -> Record:
    """The record with what the rules say. Where kernels were watched it replaces what lifting and proving say, who see
    less, unless nothing of it explains a refutation."""
    new = [finding(f) for f in found.findings]
    known = {f["rule"] for f in new}
    explained = found.watched and (record["verdict"] != "REFUTED" or any(f["level"] == "error" for f in new))
    kept = [] if explained else [f for f in record["findings"] if f["rule"] not in known]
    return doubted(
        {
            **record,
            "findings": [*new, *kept],
            "undecided": list(found.unknown),
            "seconds": {**record["seconds"], "audit": round(found.seconds, 4)},
        }
    )


def doubted(record: Record) -> Record:
    """Nothing is proved or tested of a kernel that was seen to go wrong inside of its contract. Errors beyond
    it, or with the numbers of a machine, are not a contradiction."""
    rules = sorted({f["rule"] for f in record["findings"]} & CONTRADICTING)
    if not rules or record["verdict"] not in ("PROVED", "TESTED"):
        return record
    reason = f"the kernel has the finding {', '.join(rules)}"
    claims: list[entries.Proof] = [{**p, "verdict": "UNKNOWN", "reason": reason} for p in record["proofs"]]
    return {**record, "verdict": "UNKNOWN", "bound": None, "reason": reason, "proofs": claims}


def finding(f: Finding) -> entries.Finding:
    """A finding as plain data; its replay script is written by whoever prints it."""
    place = f.place
    return {
        "rule": f.rule,
        "message": f.message,
        "file": place.file if place else "",
        "line": place.line if place else 0,
        "column": place.column if place else 0,
        "level": rules.described(f.rule).level,
        "counterexample": proof_record.jsonable(f.example),
        "hint": f.hint,
        "replay": None,
        "script": f.replay,
        "steps": steps(f.steps),
    }


def steps(found: Sequence[Step]) -> list[FindingStep]:
    """The steps of a finding as plain data."""
    nowhere: entries.Location = {"file": "", "line": 0, "column": 0}
    return [{**(proof_record.where(s.place) or nowhere), "text": s.text} for s in found]

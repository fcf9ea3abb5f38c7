"""What an audit found out about a case, as its record: proofs first, then findings, then what could not be decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lift import Case, Lifted
from lift.errors import CaseError, TriliftError

from . import proofs, rules
from .runner import Options, Proving, Record

if TYPE_CHECKING:
    from verify.audit import Audited
    from verify.finding import Finding, Step


def audited(case: Case, lifted: Lifted | None, base: Record, options: Options, event: Callable[[Any], None]) -> Record:
    """The record with proofs and findings. Where nothing can be claimed of the outputs, their kernels are audited all
    the same."""
    from verify.audit import audit

    proving = options.proving or Proving()
    against = proving.against or (proofs.REFERENCE if case.reference else proofs.FORMULA)
    trouble = proofs.cannot(case, lifted, against)
    if isinstance(trouble, CaseError):
        return proofs.wrong(base, trouble)
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
        return proofs.wrong(base, e)
    except TriliftError as e:
        return {**base, **proofs.undecided(against, proofs.told(e), e.place)}
    names = [o.name for o in lifted.outputs] if lifted is not None else []
    record = proofs.merged(base, found.proofs, names, against, options)
    if not found.proofs and (reason := str(trouble or "") or next(iter(found.unknown), "")):
        record = {**record, **proofs.undecided(against, reason)}
    return told(record, found)


def told(record: Record, found: Audited) -> Record:
    """The record with what the rules say; it replaces what lifting and proving say of the same rule, who see less."""
    new = [finding(f) for f in found.findings]
    replaced = {f["rule"] for f in new}
    return {
        **record,
        "findings": [*new, *(f for f in record["findings"] if f["rule"] not in replaced)],
        "undecided": list(found.unknown),
        "seconds": {**record["seconds"], "audit": round(found.seconds, 4)},
    }


def finding(f: Finding) -> Record:
    """A finding as plain data; its replay script is written by whoever prints it."""
    place = f.place
    return {
        "rule": f.rule,
        "message": f.message,
        "file": place.file if place else "",
        "line": place.line if place else 0,
        "column": place.column if place else 0,
        "level": rules.described(f.rule).level,
        "counterexample": proofs.jsonable(f.example),
        "hint": f.hint,
        "replay": None,
        "script": f.replay,
        "steps": steps(f.steps),
    }


def steps(found: Sequence[Step]) -> list[Record]:
    """The steps of a finding as plain data."""
    nowhere = {"file": "", "line": 0, "column": 0}
    return [{**(proofs.where(s.place) or nowhere), "text": s.text} for s in found]

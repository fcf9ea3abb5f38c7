"""Proofs as plain data: what `verify` found out about a case, for the entry of the JSON's "cases"."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from trilift.lift import Case, Lifted
from trilift.lift.errors import CaseError, Place, TriliftError

from . import conditions, entries, second_opinion
from .entries import Finding, KernelLocation, Location, Record, Verdict
from .error_record import error_of
from .options import Options, Proving

if TYPE_CHECKING:
    from trilift.verify.model.verdict import Clause, Counterexample, Proof
    from trilift.verify.pipeline import Examined

WORST = ("REFUTED", "UNKNOWN", "TESTED", "PROVED")  # of several outputs the first of these is the case's verdict
FORMULA, REFERENCE = "formula", "reference"
WHOLE = 2**53  # below, float64 holds every whole number
NESTED = "the terms are nested too deeply"
DOUBTED = "the kernel has the finding"  # the reason of a verdict that is worse for what was found


def proved(case: Case, lifted: Lifted | None, base: Record, options: Options, event: Callable[[Any], None]) -> Record:
    """The record with the proof of every output: against the reference if there is one, else the lifted formula."""
    from trilift.verify.pipeline import examine

    proving = options.proving or Proving()
    against = proving.against or (REFERENCE if case.reference else FORMULA)
    if (trouble := cannot(case, lifted, against)) is not None:
        return wrong(base, trouble) if isinstance(trouble, CaseError) else {**base, **undecided(against, str(trouble))}
    try:
        examined = examine(
            case,
            seed=options.seed,
            timeout=proving.timeout,
            against=against,
            progress=lambda stage: event(f"stage:{stage}"),
            lifted=lifted,
            invariants=proving.invariants,
        )
    except CaseError as e:
        return wrong(base, e)
    except TriliftError as e:
        return stopped(base, against, e)
    except RecursionError:
        return stopped(base, against, TriliftError(NESTED, case.place))
    names = [o.name for o in lifted.outputs] if lifted is not None else []
    record = merged(base, examined.proofs, names, against, options)
    if record["verdict"] == "PROVED" and (proving.certificate or proving.check):
        record = certified(record, case, examined, proving, event)
    return record


def certified(record: Record, case: Case, examined: Examined, proving: Proving, event: Callable[[str], None]) -> Record:
    """The record of a case that is PROVED; its certificate is written, to a file that ends in .json, else into the
    folder, and replayed where that is asked for. Each of the two gets the time of a stage: the verdict stays."""
    from trilift.verify.certificate import certificate

    event("stage:certificate")
    where = case.place.file if case.place else ""
    data = certificate(case.name, where, examined, case)
    text = json.dumps(data)
    if proving.certificate:
        certificate_file(proving.certificate, where, case.name).write_text(text, encoding="utf-8")
    if not proving.check:
        return record
    event("stage:check")
    found = second_opinion.opinion(json.loads(text), proving.timeout)
    if names := [n for n, s in case.tensors.items() if s.unbounded]:
        found = second_opinion.without(f"infinities and NaN in {' and '.join(names)} are not part of a certificate")
    return {**record, "checked": found}


def certificate_file(path: str, file: str, name: str) -> Path:
    """The file of a certificate: the path itself if it ends in .json, else one of the folder."""
    return Path(path) if path.endswith(".json") else Path(path) / f"{Path(file).stem}.{name}.json"


def cannot(case: Case, lifted: Lifted | None, against: str) -> TriliftError | None:
    """Why there is nothing to prove against."""
    if against == REFERENCE and not case.reference:
        return CaseError(
            f"case {case.name} has no reference", case.place, help="--against formula takes the lifted formula"
        )
    if against == FORMULA and (lifted is None or not any(o.formula for o in lifted.outputs)):
        if lifted is not None and not lifted.outputs:
            return CaseError(f"{case.name} returns no tensor and writes none of its inputs", case.place)
        return TriliftError(f"no formula was lifted from {case.name}")
    return None


def wrong(base: Record, e: CaseError) -> Record:
    """The record of a case, a reference or a formula that makes no sense."""
    reason = f"case: {e.what}"
    return {**base, "verdict": "UNKNOWN", "reason": reason, "errors": [*base["errors"], error_of(e)]}


def stopped(base: Record, against: str, e: TriliftError) -> Record:
    """The record of a case whose proof an error ended: what lifting has seen to differ is refuted all the same."""
    if base["verdict"] == "REFUTED" and against == REFERENCE:
        return {**base, "reason": f"{base['reason']}; the proof ended: {told(e)}"}
    return {**base, **undecided(against, told(e), e.place)}


def told(e: TriliftError) -> str:
    """The error and its reason, without the place."""
    return e.what + (f": {e.why}" if e.why else "")


def undecided(against: str, reason: str, place: Place | None = None) -> Verdict:
    """The fields of a case without a proof."""
    return {"verdict": "UNKNOWN", "against": kind(against), "reason": reason, "place": where(place), "proofs": []}


def kind(against: str) -> str:
    """ "reference" or "formula"; any other text is "text"."""
    return against if against in (REFERENCE, FORMULA) else "text"


def merged(base: Record, found: Sequence[Proof], outputs: Sequence[str], against: str, options: Options) -> Record:
    """The record of a case from the proofs of its outputs. Without a proof of every output it is not proved."""
    proofs = [plain(p, base, options) for p in found]
    told = [p["output"] for p in proofs]
    missing = [n for n in outputs if n not in told]
    first = min(proofs, key=lambda p: WORST.index(p["verdict"]), default=None)
    worst: entries.Proof | Verdict | None = first
    if worst is None or (missing and WORST.index(worst["verdict"]) > WORST.index("UNKNOWN")):
        worst = undecided(against, f"nothing was tried for {', '.join(missing) or 'any output'}")
    out: Record = {
        **base,
        "verdict": worst["verdict"],
        "against": worst["against"],
        "reason": worst["reason"],
        "place": worst["place"],
        "bound": bound(proofs) if worst["verdict"] == "TESTED" else None,
        "contract": list(dict.fromkeys(c["text"] for p in proofs for c in p["contract"])),
        "seconds": {**base["seconds"], "prove": round(sum(p["seconds"] for p in proofs), 4)},
        "proofs": proofs,
        "findings": [*base["findings"], *new_findings(base, proofs)],
        "explain": [*base["explain"], *(conditions.explain(found) if options.explain else [])],
    }
    return contradicted(out, differs=base["verdict"] == "REFUTED" and against == REFERENCE)


def contradicted(record: Record, differs: bool) -> Record:
    """A proof, and an input on which the kernel was seen to be wrong, cannot both be: then nothing is proved. If the
    kernel differs from the reference that it is compared with, it is refuted."""
    rules = sorted({f["rule"] for f in record["findings"]})
    if not rules or record["verdict"] == "REFUTED":
        return record
    reason = f"{DOUBTED} {', '.join(rules)}"
    word = "REFUTED" if differs else "UNKNOWN"
    kept = word == "UNKNOWN" and record["verdict"] == "UNKNOWN"
    doubted: list[entries.Proof] = [
        p if p["verdict"] in WORST[:2] else {**p, "verdict": "UNKNOWN", "reason": reason} for p in record["proofs"]
    ]
    return {**record, "verdict": word, "bound": None, "reason": record["reason"] if kept else reason, "proofs": doubted}


def bound(proofs: Iterable[entries.Proof]) -> float | None:
    """The probability that any of the outputs was wrongly accepted is at most the sum of theirs; None where an output
    was tested without one."""
    bounds = [p["bound"] for p in proofs if p["verdict"] == "TESTED"]
    known = [b for b in bounds if b is not None]
    return float(sum(known)) if len(known) == len(bounds) else None


def new_findings(base: Record, proofs: Sequence[entries.Proof]) -> list[Finding]:
    """A finding for each counterexample against a reference that lifting has not reported already."""
    known = {f["rule"] for f in base["findings"]}
    nowhere: KernelLocation = {"name": "", "file": "", "line": 0}
    last = (base.get("kernels") or [nowhere])[-1]  # where no statement is known to be wrong
    told = ((p, p["counterexample"]) for p in proofs if p["against"] == REFERENCE)
    found = [_finding(p, c, p["place"] or c["place"] or last) for p, c in told if c]
    return list({f["message"]: f for f in found if f["rule"] not in known}.values())


def _finding(p: entries.Proof, c: entries.Counterexample, place: Location | KernelLocation) -> Finding:
    return {
        "rule": "wrong-result" if c["output"] else "out-of-bounds",
        "message": difference(c, p["against"]),
        "file": place["file"],
        "line": place["line"],
        "counterexample": {**c["dims"], "element": c["element"], "got": c["got"], "expected": c["expected"]},
        "replay": c["replay"],
    }


def difference(c: entries.Counterexample, against: str) -> str:
    """ "out[3, 4] is 1.2, the reference gives 3.4", or what else went wrong."""
    if c["why"]:
        return str(c["why"])
    return f"{c['element']} is {_short(c['got'])}, {other(against)} gives {_short(c['expected'])}"


def other(against: str) -> str:
    """The other side of a claim, in words."""
    return {REFERENCE: "the reference", FORMULA: "the lifted formula", "text": "the formula"}.get(against, against)


def _short(x: float | str) -> str:
    """Six digits of a number, all of a whole one that float64 holds: 4055470001, 0.136465."""
    if isinstance(x, str):
        return x
    return str(int(x)) if abs(x) < WHOLE and x == int(x) else f"{x:.6g}"


# ---- one proof -------------------------------------------------------------------------------------------------------


def plain(proof: Proof, base: Record, options: Options) -> entries.Proof:
    """One proof as plain data; its conditions and its replay script are written where the options ask for them."""
    proving = options.proving or Proving()
    stem = f"{Path(base['file']).stem}-{base['name']}-{proof.claim.output}".strip("-").replace("/", "_")
    example = proof.counterexample
    return {
        "output": proof.claim.output,
        "against": proof.claim.against,
        "verdict": proof.verdict.value,
        "bound": proof.bound,
        "samples": proof.samples,
        "reason": reason(proof),
        "cause": conditions.cause(proof),
        "place": where(proof.place),
        "contract": contract(proof.contract, base["where"]),
        "counterexample": counterexample(example, _replay(example, proving, stem)) if example else None,
        "conditions": conditions.counted(proof.conditions),
        "strategies": conditions.strategies(proof),
        "smt": conditions.write(proof.conditions, Path(proving.smt_dir) / stem) if proving.smt_dir else None,
        "seconds": round(proof.seconds, 4),
        "details": jsonable(proof.details),
    }


def of_other(p: entries.Proof, case: Case) -> entries.Proof:
    """The proof of another case than the record's: in its own dims, under the conditions that it states itself."""
    own = scope(case)
    stated = contract((), own["where"])
    return {**p, "dims": own["dims"], "contract": [*stated, *(c for c in p["contract"] if c["kind"] != "case")]}


def reason(proof: Proof) -> str:
    """Why it is not proved; the counterexample of one that is refuted; nothing of one that is proved."""
    if proof.reason or proof.counterexample is None:
        return proof.reason
    c = counterexample(proof.counterexample, None)
    at = ", ".join(f"{k} = {v}" for k, v in c["dims"].items())
    edges = ", where integers are at the edges of their types" if proof.counterexample.edges else ""
    return difference(c, proof.claim.against) + (f" at {at}" if at else "") + edges


def where(place: Place | None) -> Location | None:
    """A place as plain data."""
    return {"file": place.file, "line": place.line, "column": place.column} if place else None


class Scope(TypedDict):
    """The subject of a proof."""

    dims: list[str]
    where: str


def scope(case: Case) -> Scope:
    """The subject of a proof of a case: its dims, and the case's own conditions on them."""
    return {"dims": list(case.names), "where": "" if case.written == "True" else case.written}


def contract(clauses: Sequence[Clause], where: str) -> list[entries.Clause]:
    """The preconditions, those that the case states first, each once."""
    own: entries.Clause = {"kind": "case", "text": where, "why": "", "place": None}
    stated = [own] if where else []
    by_text: dict[str, entries.Clause] = {}
    for c in [*stated, *map(clause, clauses)]:
        by_text.setdefault(c["text"], c)
    return list(by_text.values())


def clause(c: Clause) -> entries.Clause:
    """One line of the contract, with what needs it."""
    return {"kind": c.kind, "text": c.text, "why": c.why, "place": where(c.place)}


def counterexample(c: Counterexample, replay: str | None) -> entries.Counterexample:
    """The input on which the kernel is wrong, in the user's names."""
    return {
        "dims": {k: jsonable(v) for k, v in {**c.dims, **c.strides}.items()},
        "seed": c.seed,
        "config": c.config,
        "output": c.output,
        "index": list(c.index),
        "element": f"{c.output}[{', '.join(map(str, c.index))}]" if c.index else c.output,
        "why": c.why,
        "got": jsonable(c.got),
        "expected": jsonable(c.expected),
        "replay": replay,
        "place": where(c.place),
    }


def _replay(c: Counterexample, proving: Proving, stem: str) -> str | None:
    """Where its script was written, if it has one and somewhere was asked for."""
    if not (proving.replay and c.replay):
        return None
    path = Path(proving.replay) / f"{stem}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(c.replay)
    return str(path)


def jsonable(x: Any) -> Any:
    """The value as JSON: NaN and infinities become text."""
    if isinstance(x, Mapping):
        return {str(k): jsonable(v) for k, v in x.items()}
    if isinstance(x, list | tuple | set | frozenset):
        return [jsonable(v) for v in x]
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    return x if isinstance(x, str | int | float | bool) or x is None else str(x)

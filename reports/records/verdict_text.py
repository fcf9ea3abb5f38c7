"""The text of a proved case: its verdict, what it was compared with, its contract, or what is wrong or missing.

kernels.py::row_softmax: PROVED in 0.31 s
    out = softmax(x, -1), the lifted formula
    for all M, N with
      M * N < 2**31      needed by the address at line 14
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import draw, proof_record, second_opinion

Record = Mapping[str, Any]
SEEN, SIZE = "config", "size"  # kinds of clauses: what was seen of the host function, that sizes are at least 1
COLUMN, WIDTH = 60, 100  # characters of a clause that others are aligned to, and of one that is shown
MISSING = 3  # obligations that are not checked, that are shown
HELP = {
    "open": "trilift prove --explain lists the conditions shown and not shown",
    "late": "--timeout SECONDS allows more",
    "none": "trilift lift --explain shows the steps that succeeded",
}


def case(record: Record, drawn: Sequence[str] | None = None) -> str:
    """The output of `trilift prove` for one case. `drawn`: what `trilift audit` has found; then formulas are printed
    that no claim is about too."""
    seconds = record["seconds"]["prove"]
    where = draw.heading(record) if "==" not in record["name"] else record["name"]
    lines = [f"{where}: {second_opinion.word(record)}{_bound(record['bound'])} in {seconds:.2f} s"]
    for p in record["proofs"]:
        lines += draw.indented("\n".join(_proof(p, record)), "    ").splitlines()
    lines += [f"    {line}" for line in _missing(record)]
    lines += [f"    {line}" for line in _lifted(record)] if drawn is not None else []
    errors = list(errors_of(record))
    if (not record["proofs"] or _told_elsewhere(record)) and not record["findings"] and not errors:
        lines += draw.indented(_unknown(record, HELP["none"]), "    ").splitlines()
    for note in record["explain"]:
        lines += draw.indented(note["title"] + "\n" + draw.indented(note["text"], "  "), "  ").splitlines()
    shown = [draw.error(draw.finding(f)) for f in _findings(record)] if drawn is None else drawn
    lines += [*shown, *map(draw.error, errors)]
    return "\n".join(lines) + "\n"


def _missing(record: Record) -> Iterator[str]:
    """The first obligations that the checker does not show."""
    missing = record["checked"]["missing"] if "checked" in record else []
    yield from (_short(x) for x in missing[:MISSING])
    if len(missing) > MISSING:
        yield f"and {len(missing) - MISSING} more that the checker does not show"


def _lifted(record: Record) -> Iterator[str]:
    """The formula of each output that was not compared with it."""
    compared = {p["output"] for p in record["proofs"] if p["against"] == proof_record.FORMULA}
    for o in record["outputs"]:
        if o["text"] and o["name"] not in compared:
            yield from draw.indented(f"lifted: {o['name']} = {o['text']}", "").splitlines()


def _told_elsewhere(record: Record) -> bool:
    """The case's verdict is worse than that of each output: its own reason says why."""
    return record["verdict"] not in {p["verdict"] for p in record["proofs"]}


def _findings(record: Record) -> Iterator[Record]:
    """Those that no refuted output tells already."""
    told = any(p["verdict"] == "REFUTED" for p in record["proofs"])
    return (f for f in record["findings"] if not told or (f["rule"] != "wrong-result" and f["file"]))


def errors_of(record: Record) -> Iterator[Record]:
    """Errors of lifting, unless the proof did without: then only those that keep something from being checked."""
    for e in record["errors"]:
        if record["verdict"] not in ("PROVED", "TESTED") or e["kind"] in ("case", "internal"):
            yield e


def _bound(bound: float | None) -> str:
    return f", wrong at the sizes tried with probability at most {bound:.1e}," if bound is not None else ""


def _proof(p: Record, record: Record) -> Iterator[str]:
    """One output: what was shown of it, and under which conditions; or why not."""
    yield _claim(p, record)
    if p["verdict"] == "TESTED":
        yield f"  held on {p['samples']} random samples; not proved: {p['reason']}"
    if p["verdict"] == "REFUTED":
        yield from _refuted(p, p.get("dims", record["dims"]))
    if p["verdict"] == "UNKNOWN":
        yield draw.indented(_unknown(p, HELP["late" if p.get("cause") == "timeout" else "open"]), "  ")
    if p["verdict"] == "PROVED":
        yield from _contract(p, "for all", p.get("dims", record["dims"]))


def _contract(p: Record, head: str, dims_of: Sequence[str]) -> Iterator[str]:
    """The conditions that inputs have to meet, then what was seen of the host function, and not proved."""
    least = {c["text"] for c in p["contract"] if c["kind"] == SIZE}
    every = bool(dims_of) and least >= {f"1 <= {n}" for n in dims_of}
    said = {f"1 <= {n}" for n in dims_of} if every else set()
    clauses = [c for c in p["contract"] if c["kind"] != SEEN and not (c["kind"] == SIZE and c["text"] in said)]
    sizes = ", ".join(dims_of) + (" >= 1" if every else "")
    yield f"  {head} {sizes or 'inputs'}{' with' if clauses else ''}"
    width = max((len(c["text"]) for c in clauses if c["why"] and len(c["text"]) <= COLUMN), default=0)
    for c in clauses:
        yield f"    {_short(c['text']).ljust(width)}{_needed(c)}".rstrip()
    if seen := [c for c in p["contract"] if c["kind"] == SEEN]:
        yield "  seen at the shapes that were tried"
        yield from (f"    {_short(c['text'])}" for c in seen)


def _claim(p: Record, record: Record) -> str:
    """`out = softmax(x, -1), the lifted formula: PROVED`."""
    texts = {o["name"]: o["text"] for o in record["outputs"]}
    formula = texts.get(p["output"]) if p["against"] == proof_record.FORMULA else None
    what = proof_record.other(p["against"])
    sign = "=" if p["verdict"] in ("PROVED", "TESTED") else "!=" if p["verdict"] == "REFUTED" else "=?"
    said = f"{formula}, {what}" if formula and "\n" not in formula else what
    alone = len(record["proofs"]) == 1
    return f"{p['output']} {sign} {said}" + ("" if alone else f": {p['verdict']}{_bound(p['bound'])}")


def _short(text: str) -> str:
    """Long texts end early: --explain and the JSON have them in full."""
    return text if len(text) <= WIDTH else text[: WIDTH - 4] + " ..."


def _needed(c: Record) -> str:
    at = f" at line {c['place']['line']}" if c["place"] else ""
    return f"   needed by {c['why']}{at}" if c["why"] else ""


def _refuted(p: Record, dims_of: Sequence[str]) -> Iterator[str]:
    c = p["counterexample"]
    yield "  " + proof_record.difference(c, p["against"])
    dims = ", ".join(f"{k} = {v}" for k, v in c["dims"].items())
    config = f", autotune configuration {c['config']}" if c["config"] else ""
    yield f"    at {dims or 'every shape'}, seed {c['seed']}{config}"
    if c["replay"]:
        yield f"    replay: python {c['replay']}"
    if any(clause["kind"] not in ("case", SEEN, SIZE) for clause in p["contract"]):
        yield from _contract(
            {**p, "contract": [x for x in p["contract"] if x["kind"] != SEEN]},
            "it holds for all",
            dims_of,
        )


def _unknown(of: Record, help: str) -> str:
    """The reason drawn on the user's source."""
    place = of.get("place") or {}
    return draw.error({"kind": "unknown", "what": of["reason"], "help": help, **place})

"""The text of a proved case: its verdict, what it was compared with, its contract, or what is wrong or missing.

kernels.py::row_softmax: PROVED in 0.31 s
    out = softmax(x, -1), the lifted formula
      for all M, N >= 1 where integers do not wrap:
        M * N < 2^31      needed by integer arithmetic at line 14

Outputs with one verdict have one contract: the clauses of all, then those of single outputs.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from . import draw, proof_record, second_opinion

Record = Mapping[str, Any]
SEEN, SIZE = "config", "size"  # kinds of clauses: what was seen of the host function, that sizes are at least 1
WRAPS = "nowrap"  # the kind of a clause that keeps integer arithmetic in its range
LANE = re.compile(r"\b(l\d_(\w+))\b")
LETTERS = ("i", "j", "k", "p", "q", "r", *(f"i{k}" for k in range(100)))
NAME = re.compile(r"[A-Za-z_]\w*")
MEANINGS = (  # of the names in clauses about what each program and lane computes
    (re.compile(r"pid(\d)"), "{0} is each program along axis {1} of the grid"),
    (re.compile(r"l(\d)_(\w+)"), "{0} is each position in a block of {2} along its axis {1}"),
    (re.compile(r"n(\d+)"), "{0} is each iteration of loop {1}"),
    (re.compile(r"wrap(\d+)"), "{0}(x) is x as an integer of {1} bits"),
)
COLUMN, WIDTH = 60, 100  # characters of a clause that others are aligned to, and of a line
POWERS = {str(1 << n): f"2^{n}" for n in (31, 32, 63, 64)}
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
    took = f"{',' if record['bound'] is not None else ''} in {seconds:.2f} s" if seconds else ""
    lines = [f"{where}: {second_opinion.word(record)}{_bound(record['bound'])}{took}"]
    for proofs in _together(record):
        lines += draw.indented("\n".join(_proof(proofs, record)), "    ").splitlines()
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
    yield from missing[:MISSING]
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
    return f", wrong at the sizes and scalars tried with probability at most {bound:.1e}" if bound is not None else ""


def _together(record: Record) -> Iterator[list[Record]]:
    """The proofs, neighbours that share a contract taken together."""
    shared = lambda p: p["verdict"] == "PROVED" and (p["against"], _dims(p, record))  # noqa: E731
    for key, proofs in groupby(record["proofs"], shared):
        found = list(proofs)
        yield from [found] if key else [[p] for p in found]


def _dims(p: Record, record: Record) -> tuple[str, ...]:
    return tuple(p.get("dims", record["dims"]))


def _proof(proofs: Sequence[Record], record: Record) -> Iterator[str]:
    """Outputs, one or those of one contract: what was shown of them, and under which conditions; or why not."""
    yield from (_claim(p, record) for p in proofs)
    p = proofs[0]
    if p["verdict"] == "TESTED":
        samples = f"{p['samples']} random sample{'' if p['samples'] == 1 else 's'}"
        yield f"  held on {samples}; not proved: {p['reason']}"
        yield from _limits(p, "tried for", _dims(p, record))
    if p["verdict"] == "REFUTED":
        yield from _refuted(p, _dims(p, record))
    if p["verdict"] == "UNKNOWN":
        yield draw.indented(_unknown(p, HELP["late" if p.get("cause") == "timeout" else "open"]), "  ")
    if p["verdict"] == "PROVED":
        yield from _contract(proofs, "for all", _dims(p, record))


def _contract(proofs: Sequence[Record], head: str, dims_of: Sequence[str]) -> Iterator[str]:
    """The conditions that inputs have to meet, then what was seen of the host function, and not proved."""
    least = {c["text"] for c in proofs[0]["contract"] if c["kind"] == SIZE}
    every = bool(dims_of) and least >= {f"1 <= {n}" for n in dims_of}
    said = {f"1 <= {n}" for n in dims_of} if every else set()
    own = lambda c: c["kind"] != SEEN and not (c["kind"] == SIZE and c["text"] in said)  # noqa: E731
    clauses = list(_shared([(p["output"], [c for c in p["contract"] if own(c)]) for p in proofs]))
    sizes = ", ".join(dims_of) + (" >= 1" if every else "")
    yield f"  {head} {sizes or 'inputs'}{_with([c for _, c in clauses])}"
    width = max((len(_text(c, n)) for n, c in clauses if c["why"] and len(_text(c, n)) <= COLUMN), default=0)
    for name, c in clauses:
        text, why = _text(c, name), _needed(c)
        whole = f"{text.ljust(width)}{why and f'   {why}'}"
        yield from _wrapped(whole if not why or len(whole) <= WIDTH else text)
        yield from [f"      {why}"] if why and len(whole) > WIDTH else []
    if names := ", ".join(_names([_text(c, n) for n, c in clauses], dims_of)):
        yield from _wrapped(f"where {names}")
    if seen := list(_shared([(p["output"], [c for c in p["contract"] if c["kind"] == SEEN]) for p in proofs])):
        yield "  seen at the shapes that were tried"
        for name, c in seen:
            yield from _wrapped(_text(c, name))


def _shared(of: Sequence[tuple[str, Sequence[Record]]]) -> Iterator[tuple[str, Record]]:
    """The clauses that all outputs have, then those of single outputs, each with its output's name; "": of all."""
    key = lambda c: (c["text"], c["why"], str(c["place"]))  # noqa: E731
    every = set.intersection(*({key(c) for c in cs} for _, cs in of))
    yield from (("", c) for c in of[0][1] if key(c) in every)
    yield from ((n, c) for n, cs in of for c in cs if key(c) not in every)


def _with(clauses: Sequence[Record]) -> str:
    if not clauses:
        return ""
    return " where integers do not wrap:" if all(c["kind"] == WRAPS for c in clauses) else " with"


def _text(c: Record, output: str) -> str:
    """A clause as it is read: powers of two as such, a lane of a program as a position."""
    text = _positions(re.sub(r"\d{10,}", lambda n: POWERS.get(n[0], n[0]), c["text"]))
    return f"for {output}: {text}" if output else text


def _positions(text: str) -> str:
    """x[l0_64 + 64 * pid0] as x[i], where neither the lane nor its program occurs elsewhere; and where(i < N, x[i],
    undefined), which is there for all i that are, as x[i]."""
    free = (x for x in LETTERS if not re.search(rf"\b{x}\b", text))
    for lane, size in dict.fromkeys(LANE.findall(text)):
        found = set(re.findall(rf"\b{lane} \+ {size} \* (pid\d|n\d+)\b", text))
        whole = f"{lane} + {size} * {min(found, default='')}"
        places = text.count(whole)
        if len(found) == 1 and places == len(re.findall(rf"\b{lane}\b", text)) == text.count(min(found)):
            position = next(free)
            text = text.replace(whole, position)
            text = re.sub(rf"where\({position} < \w+, (\w+\[{position}\]), undefined\)", r"\1", text)
    return text


def _names(clauses: Sequence[str], dims_of: Sequence[str]) -> Iterator[str]:
    """The meanings of the names in clauses that are not the case's own."""
    used = sorted({n for c in clauses for n in NAME.findall(c)}.difference(dims_of))
    for pattern, meaning in MEANINGS:
        yield from (meaning.format(n, *m.groups()) for n in used if (m := pattern.fullmatch(n)))


def _wrapped(text: str) -> Iterator[str]:
    """A clause, whole, on as many lines as it takes."""
    lines = textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    yield from (f"    {line}" for line in lines)


def _claim(p: Record, record: Record) -> str:
    """`out = softmax(x, -1), the lifted formula: PROVED`."""
    texts = {o["name"]: o["text"] for o in record["outputs"]}
    formula = texts.get(p["output"]) if p["against"] == proof_record.FORMULA else None
    what = proof_record.other(p["against"])
    sign = "=" if p["verdict"] in ("PROVED", "TESTED") else "!=" if p["verdict"] == "REFUTED" else "=?"
    said = f"{formula}, {what}" if formula and "\n" not in formula else what
    alone = len(record["proofs"]) == 1
    return f"{p['output']} {sign} {said}" + ("" if alone else f": {p['verdict']}{_bound(p['bound'])}")


def _needed(c: Record) -> str:
    at = f" at line {c['place']['line']}" if c["place"] else ""
    return f"needed by {c['why']}{at}" if c["why"] else ""


def _refuted(p: Record, dims_of: Sequence[str]) -> Iterator[str]:
    c = p["counterexample"]
    yield "  " + proof_record.difference(c, p["against"])
    dims = ", ".join(f"{k} = {v}" for k, v in c["dims"].items())
    config = f", autotune configuration {c['config']}" if c["config"] else ""
    yield f"    at {dims or 'every shape'}, seed {c['seed']}{config}"
    if c["replay"]:
        yield f"    replay: python {c['replay']}"
    yield from _limits(p, "in real numbers it holds for all", dims_of, seen=True)


def _limits(p: Record, head: str, dims_of: Sequence[str], seen: bool = False) -> Iterator[str]:
    """The inputs that an output which is not proved was shown for, where these are not all. `seen`: with the paths of
    the host function that were followed."""
    if any(clause["kind"] not in ("case", SEEN, SIZE) for clause in p["contract"]):
        contract = [c for c in p["contract"] if seen or c["kind"] != SEEN]
        yield from _contract([{**p, "contract": contract}], head, dims_of)


def _unknown(of: Record, help: str) -> str:
    """The reason drawn on the user's source."""
    place = of.get("place") or {}
    return draw.error({"kind": "unknown", "what": of["reason"], "help": help, **place})

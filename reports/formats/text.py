"""`--format text`: each case as `trilift prove` prints it, its findings drawn on the source, and a line of totals.

error[undefined-value]: masked lane of `b` reaches the output
  --> matmul.py:31:17
   |  acc += tl.dot(a, b)
   |                   ^ at K = 33, BLOCK_K = 32
   = because: line 28: lane 1 of the last step is masked, and the load has no `other`
   = help: pass other=0.0 to the load at line 28
   = replay: python .trilift/replay/matmul-matmul-undefined-value.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..base import sources
from ..filters import ignores
from ..records import draw, findings, verdict_text
from ..records.findings import Record
from . import Document, Stream


def write(document: Document) -> str:
    """Cases in order, each followed by an empty line, then how many findings and verdicts there are."""
    return stream().whole(document)


def stream() -> Stream:
    return Stream(lambda record: f"{case(ignores.apart(record)[0])}\n", _rest)


def _rest(document: Document) -> str:
    """All that is known when the last case has ended."""
    cases, rows = document["cases"], document.get("kernels", ())
    unlaunched = kernels([ignores.apart(k)[0] for k in rows])
    return unlaunched + _comments([*cases, *rows]) + f"{total(cases, rows)}\n{incomplete(document)}"


def _comments(records: Sequence[Record]) -> str:
    """The comments that accept nothing."""
    about = [ignores.apart(r)[1] for r in records]
    lines = [finding(f) for r in about for f in findings.of(r)]
    if count := sum(len(r["suppressed"]) for r in about):
        lines.append(f"{count} accepted: {ignores.RULE}")
    return "".join(f"{line}\n" for line in lines) + "\n" * bool(lines)


def incomplete(document: Document) -> str:
    """A line that says so where the run was ended early; "" where it was not."""
    return f"incomplete: {document['incomplete']}; cases are missing\n" if "incomplete" in document else ""


def kernels(rows: Sequence[Record]) -> str:
    """The kernels that no case was seen to launch: where they stand, what is certain of them all the same."""
    rest = [k for k in rows if not k["cases"]]
    if not rest:
        return ""
    lines = [f"kernels: {len(rows)}; no case was seen to launch {len(rest)} of them"]
    for k in rest:
        why = "" if k["read"] == "ok" else f": not read: {draw.flat(k['read'])}"
        lines.append(f"    {sources.relative(k['file'])}:{k['line']} {k['name']}{why}")
    lines += [finding(f) for k in rest for f in findings.of(k)]
    return "\n".join(lines) + "\n\n"


def case(record: Record) -> str:
    """One case: verdict, formula, contract, findings, and what the rules could not decide."""
    drawn = [finding(f) for f in findings.of(record)]
    drawn += [draw.error({"kind": "undecided", "level": "note", "what": u}) for u in record.get("undecided", ())]
    accepted = findings.suppressed(record)
    drawn += [f"{len(accepted)} accepted: {', '.join(f['rule'] for f in accepted)}"] if accepted else []
    return verdict_text.case({**record, "file": sources.relative(record["file"])}, drawn)


def finding(f: Record) -> str:
    """A finding on its source line: the counterexample, how it comes about, what to do, how to see it."""
    example = findings.example(f)
    return draw.error(
        {
            **f,
            "kind": f["rule"],
            "what": f["message"],
            "why": f"at {example}" if example else "",
            "notes": [*_because(f)],
            "help": f["hint"],
            "replay": f["replay"],
        }
    )


def _because(f: Record) -> Iterator[tuple[str, str]]:
    """The steps, each with its line; with its file too where it is another one."""
    for s in f["steps"]:
        at = f"line {s['line']}" if s["file"] == f["file"] else f"{s['file']}:{s['line']}"
        yield "because", f"{at}: {s['text']}" if s.get("line") else s["text"]


def total(cases: Sequence[Record], kernels: Sequence[Record] = ()) -> str:
    """ "2 errors, 1 warning; 3 PROVED, 1 REFUTED"."""
    counts = Counter(c["verdict"] for c in cases)
    words = [f"{counts[w]} {w}" for w in ("PROVED", "TESTED", "REFUTED", "UNKNOWN") if counts[w]]
    return f"{findings.said([*cases, *kernels])}; {', '.join(words) or 'no case'}"

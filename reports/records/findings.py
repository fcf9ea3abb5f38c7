"""Findings of records as the formats take them: every field there, the worst first, each problem once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base import explanations, sources

Record = Mapping[str, Any]
LEVELS = ("error", "warning", "note")


def full(f: Record) -> dict[str, Any]:
    """A finding with all its fields, and its paths as others can follow them."""
    steps = [{"column": 0, **s, "file": sources.relative(s.get("file") or "")} for s in f.get("steps", ())]
    return {
        "column": 0,
        "level": f.get("level") or explanations.described(f["rule"]).level,
        "hint": "",
        "replay": None,
        "script": "",
        **f,
        "file": sources.relative(f["file"]),
        "steps": steps,
    }


def of(record: Record) -> list[dict[str, Any]]:
    """The findings of a case, the worst first."""
    return sorted(map(full, record["findings"]), key=lambda f: LEVELS.index(f["level"]))


def suppressed(record: Record) -> list[dict[str, Any]]:
    """Those that a baseline or a comment accepts; "suppression" has kind and justification, as in SARIF."""
    return [full(f) for f in record.get("suppressed", ())]


def problems(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Each problem once, the worst first, with the "cases" that show it: they may share a kernel."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in records:
        for f in (*of(record), *suppressed(record)):
            kind = (f.get("suppression") or {}).get("kind")
            key = (f["rule"], f["file"], f["line"], f["column"], f["message"], kind)
            found.setdefault(key, {**f, "cases": []})["cases"].append(name_of(record))
    return sorted(found.values(), key=lambda f: LEVELS.index(f["level"]))


def sources_of(document: Mapping[str, Any]) -> list[Record]:
    """All that may have findings: the cases, and kernels that no case launches."""
    return [*document["cases"], *document.get("kernels", ())]


def name_of(record: Record) -> str:
    """ "kernels.py::softmax": what one types to have the case alone."""
    return "::".join(filter(None, (sources.relative(record["file"]), record["name"])))


def place(f: Record) -> str:
    """ "kernels.py:31:17", without what is not known."""
    return ":".join(str(p) for p in (f["file"], f.get("line"), f.get("column")) if p)


def example(f: Record) -> str:
    """The counterexample in one line: "M = 3, N = 1025"."""
    return ", ".join(f"{k} = {value(v)}" for k, v in f["counterexample"].items())


def value(v: Any) -> str:
    """A number, text or tuple of a counterexample."""
    if isinstance(v, list | tuple):
        return f"({', '.join(map(value, v))})"
    return f"{v:.6g}" if isinstance(v, float) else str(v)


def counted(records: Iterable[Record]) -> dict[str, int]:
    """How many findings there are of each level."""
    counts = Counter(f["level"] for r in records for f in of(r))
    return {level: counts[level] for level in LEVELS if counts[level]}


def said(records: Sequence[Record]) -> str:
    """ "2 errors, 1 warning", or "no findings"."""
    return ", ".join(f"{n} {level}{'s' * (n != 1)}" for level, n in counted(records).items()) or "no findings"

"""reports/results/summary.json: of every experiment the numbers that its tables show, small enough for the repository.

    {"schema": 1, "experiments": {NAME: {"title", "versions", "counts", ...}}}

The data that it is made from is written to build/results by `make results`. To make it again from what lies there:

    python -m trilift.reports.experiments.summarise
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from .folders import SUMMARY

Data = Mapping[str, Any]
Summarise = Callable[[Data], dict[str, Any]]
SCHEMA = 1
SEARCH = ("name", "file", "batch", "for", "sizes")  # what says which search it was
FOUND = ("kernels", "model_us", "roofline_us", "structure", "emitted", "verdict", "bound", "same", "against_original",
         "classes", "nodes", "states", "candidates", "failed")  # fmt: skip


# ---- what is kept of the data of an experiment -----------------------------------------------------------------------


def verdicts(data: Data) -> dict[str, Any]:
    """The verdict of every case, by file, and how many there are of each."""
    return _cases(data["cases"], "name", "verdict")


def suites(data: Data) -> dict[str, Any]:
    """The outcome of the tests of every case, by file; how many cases have each outcome; and how many tests passed,
    failed as expected or were skipped."""
    tests = {k: sum(r[k] for r in data["cases"]) for k in ("passed", "xfailed", "skipped")}
    return {**_cases(data["cases"], "case", "outcome"), "tests": tests}


def _cases(rows: Iterable[Data], name: str, word: str) -> dict[str, Any]:
    by_file: dict[str, dict[str, str]] = defaultdict(dict)
    for r in rows:
        by_file[r["file"]][r[name]] = r[word]
    counts = Counter(w for of in by_file.values() for w in of.values())
    return {"counts": dict(counts), "cases": dict(by_file)}


def mutants(data: Data) -> dict[str, Any]:
    """How many mutants there are of each outcome, in all and by kind."""
    kind = "what" if data["mutants"] and "what" in data["mutants"][0] else "kind"
    return {"counts": _counted(data["mutants"], "outcome"), "by": _counted_by(data["mutants"], kind, "outcome")}


def scores(data: Data) -> dict[str, Any]:
    """Of the mutants that an execution tells from the original: what became of them under the tests that were written,
    and how many the usual tests tell."""
    told = [r for r in data["mutants"] if r["execution"] == "killed"]
    usual = {way: sum(bool(r[way]) for r in told) for way in ("allclose", "fixed")}
    return {
        "mutants": len(data["mutants"]), "counts": _counted(told, "written"), "usual": usual,
        "originals": _counted(data["originals"], "outcome"), "by": _counted_by(told, "kind", "written"),
    }  # fmt: skip


def kernels(data: Data) -> dict[str, Any]:
    """How far the kernels of each package were read."""
    return {"counts": _counted(data["kernels"], "stage"), "by": _counted_by(data["kernels"], "package", "stage")}


def searches(data: Data) -> dict[str, Any]:
    """Each search: what it was of, and what it found. Times are those of the model."""
    rows = [{k: r[k] for k in SEARCH if k in r} | _found(r.get("optimize", r)) for r in data["cases"]]
    emitted = [{k: r[k] for k in ("name", "for", "verdict", "same", "kernels", "model", "roofline")}
               for r in data.get("emitted", ())]  # fmt: skip
    return {"cases": rows, **({"emitted": emitted} if emitted else {})}


def _found(optimized: Data) -> dict[str, Any]:
    return {k: optimized[k] for k in FOUND if optimized.get(k) is not None}


def rules(data: Data) -> dict[str, Any]:
    """Of each rule how many programs were made, compared and different; of the forms how many are refuted."""
    tried = {r["name"]: [r[k] for k in ("drawn", "programs", "made", "compared", "wrong")] for r in data["rules"]}
    together = {k: v for k, v in data["together"].items() if k != "examples"}
    return {"columns": ["drawn", "programs", "made", "compared", "wrong"], "rules": tried, "together": together,
            "forms": {"refuted": sum(f["refuted"] for f in data["forms"]), "of": len(data["forms"])}}  # fmt: skip


def timings(data: Data) -> dict[str, Any]:
    """The medians of each function in microseconds; device and date."""
    found = data["timings"]
    rows = [{k: r[k] for k in ("case", "sizes", "function")} | _medians(r) for r in found["rows"]]
    return {"device": found["device"], "timed": found["date"], "cases": rows}


def _medians(row: Data) -> dict[str, float]:
    return {f"{k}_us": row[k]["median"] * 1e6 for k in ("cold", "warm") if row.get(k)}


def whole(data: Data) -> dict[str, Any]:
    """All of it: the data is a few tables."""
    return {k: v for k, v in data.items() if k not in ("title", "versions", "schema", "version")}


def _counted(rows: Iterable[Data], word: str) -> dict[str, int]:
    return dict(Counter(str(r[word]) for r in rows))


def _counted_by(rows: Iterable[Data], key: str, word: str) -> dict[str, dict[str, int]]:
    groups: dict[str, list[Data]] = defaultdict(list)
    for r in rows:
        groups[r[key]].append(r)
    return {name: _counted(of, word) for name, of in sorted(groups.items())}


# ---- the file --------------------------------------------------------------------------------------------------------


def entry(data: Data, summarise: Summarise, commit: str = "") -> dict[str, Any]:
    """The entry of an experiment in summary.json: its title, versions and numbers. `commit`: for data without a commit
    of its own."""
    versions = {**({"commit": commit} if commit else {}), **data["versions"]}
    return {"title": data["title"], "versions": versions, **rounded(summarise(data))}


def rounded(x: Any) -> Any:
    """The same data with six digits of every number."""
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [rounded(v) for v in x]
    return float(f"{x:.6g}") if isinstance(x, float) else x


def read(path: Path = SUMMARY) -> dict[str, Any]:
    """The experiments of a summary by name; none where there is no file."""
    found: dict[str, Any] = json.loads(path.read_text())["experiments"] if path.is_file() else {}
    return found


def update(path: Path, name: str, found: Data) -> None:
    """Puts the entry of one experiment into the file."""
    every = {**read(path), name: found}
    lines = [f"  {json.dumps(n)}: {_lines(every[n])}" for n in sorted(every)]
    body = ",\n".join(lines)
    path.write_text(f'{{\n "schema": {SCHEMA},\n "experiments": {{\n{body}\n }}\n}}\n')


def _lines(found: Data) -> str:
    """An entry with one line for each of its fields, and of a field with several rows for each row."""
    fields = [f"   {json.dumps(k)}: {_field(v)}" for k, v in found.items()]
    return "{\n" + ",\n".join(fields) + "\n  }"


def _field(v: Any) -> str:
    if isinstance(v, dict) and any(isinstance(x, dict | list) for x in v.values()):
        return "{\n" + ",\n".join(f"    {json.dumps(k)}: {_short(x)}" for k, x in v.items()) + "\n   }"
    if isinstance(v, list) and any(isinstance(x, dict | list) for x in v):
        return "[\n" + ",\n".join(f"    {_short(x)}" for x in v) + "\n   ]"
    return _short(v)


def _short(x: Any) -> str:
    return json.dumps(x, ensure_ascii=False)


# ---- what others ask -------------------------------------------------------------------------------------------------


def proved(name: str, path: Path = SUMMARY) -> list[str]:
    """The cases of a corpus that its last run PROVED, as file::name, in its order. Raises click.ClickException where
    the summary has no such run."""
    found = read(path).get(name)
    if found is None:
        raise click.ClickException(f"{path.name} has no run of {name}: trilift report {name} measures it")
    return [f"{file}::{case}" for file, of in found["cases"].items() for case, word in of.items() if word == "PROVED"]


def emitted(name: str, path: Path = SUMMARY) -> list[dict[str, Any]]:
    """The searches of a corpus; those with "emitted" have a file."""
    cases: list[dict[str, Any]] = read(path).get(name, {}).get("cases", [])
    return cases

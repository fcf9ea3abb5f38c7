"""`trilift corpus NAME`: a corpus run as users would run it, and its table."""

from __future__ import annotations

import json
import platform
import sysconfig
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import click

from ..base.fingerprint import ROOT
from ..base.progress import Progress
from ..base.targets import resolve
from ..commands import lift, prove
from ..commands.lift import document
from ..records.options import Options
from ..records.verdict_text import SEEN
from ..runner import dispatch
from . import paper

CORPUS = ROOT / "corpus"
OPTIMISED = ("mirage", "legacy", "trinity")  # corpora whose table is that of `trilift optimize`
VERSIONED = ("torch", "triton", "egglog", "numpy")
PACKAGES = ("liger-kernel", "flag-gems", "fla-core", "torchao", "gemlite", "attn-gym", "xformers")
Record = Mapping[str, Any]
COLUMNS = ("file", "cases", "lifted", "wrong", "undefined", "not lifted", "launches", "of lifted cases", "share", "s")
WORDS = ("PROVED", "TESTED", "REFUTED", "UNKNOWN")
PROVED = ("file", "cases", *WORDS, "launches lifted", "launches proved", "share", "prove s")


@dataclass(frozen=True, slots=True)
class Result:
    """A corpus that ran: title, tables as (heading, rows) whose first row names the columns, JSON data, exit code, and
    what a reader of the tables has to know; `files`: names and texts of what a report writes beside its page."""

    title: str
    tables: tuple[tuple[str, list[tuple[str, ...]]], ...]
    data: Any
    code: int
    notes: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()


def run(name: str, form: str, options: Options, quiet: bool) -> int:
    """Runs a corpus and prints it; returns the exit code."""
    result = measure(name, options, quiet)
    printer: dict[str, Callable[[Result], str]] = {"table": as_text, "md": as_markdown, "json": as_json}
    click.echo(printer[form](result))
    return result.code


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The result of one corpus. Raises click.UsageError for a name that is none."""
    if name == "sweep":
        from .sweep_table import sweep

        return sweep(options, quiet)
    if name in ("broken", "sound") and options.proving:
        from .expectations import measure as audited

        return audited(name, options, quiet)
    if name in OPTIMISED:
        measured: Result = import_module(f".{name}", __package__).measure(name, options, quiet)
        return measured
    folder = CORPUS / name
    if not folder.is_dir():
        known = sorted(p.name for p in CORPUS.iterdir() if p.is_dir() and p.name[0] not in "._") + ["sweep"]
        raise click.UsageError(f"no corpus is called {name}; there are {', '.join(known)}")
    with Progress(quiet) as progress:
        records = list(dispatch.records(resolve([str(folder)]), options, progress.hear))
        stage = prove if options.proving else lift
        progress.say(stage.summary(records))
    shown = (*(proofs(records, name) if options.proving else ()), *tables(records))
    return Result(f"corpus {name}", shown, document(records), stage.exit_code(records))


def proofs(records: Sequence[Record], name: str) -> tuple[tuple[str, list[tuple[str, ...]]], ...]:
    """Verdicts: beside the paper's for the operators, by file, by case, and what is missing by cause."""
    return (
        *((("the paper's operators", paper.table(records)),) if name == "operators" else ()),
        ("verdicts by file", [PROVED, *verdicts(records)]),
        ("UNKNOWN, by cause", [("cases", "cause"), *unknown(records)]),
        ("verdicts", [("case", "verdict", "against", "prove s", "contract, or why not"), *map(verdict_row, records)]),
    )


def verdicts(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """How many cases of each file have which verdict, and which share of the lifted launches belongs to a proof."""
    names = list(dict.fromkeys(r["file"] for r in records))
    rows = [_verdicts(Path(f).stem, [r for r in records if r["file"] == f]) for f in names]
    return [*rows, _verdicts("all", records)]


def _verdicts(name: str, records: Sequence[Record]) -> tuple[str, ...]:
    counts = Counter(r["verdict"] for r in records)
    lifted = sum(r["launches"] for r in records if r["lift"] == "ok")
    proved = sum(r["launches"] for r in records if r["lift"] == "ok" and r["verdict"] == "PROVED")
    share = f"{proved / lifted:.0%}" if lifted else "-"
    seconds = sum(r["seconds"]["prove"] for r in records)
    words = (str(counts[w]) for w in WORDS)
    return (name, str(len(records)), *words, str(lifted), str(proved), share, f"{seconds:.1f}")


def verdict_row(r: Record) -> tuple[str, ...]:
    """One case: its contract on one line if it is proved, its bound if it is tested, else the reason."""
    needed = dict.fromkeys(c["text"] for p in r["proofs"] for c in p["contract"] if c["kind"] != SEEN)
    said = {"PROVED": "; ".join(needed) or "every shape", "TESTED": f"at most {r['bound'] or 0:.1e}"}
    name, seconds = f"{Path(r['file']).stem}::{r['name']}", f"{r['seconds']['prove']:.2f}"
    return (
        name,
        r["verdict"],
        r["against"],
        seconds,
        _short(" ".join(str(said.get(r["verdict"], r["reason"])).split())),
    )


def unknown(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """How many cases are undecided for which cause, most frequent first."""
    counted = Counter(undecided(r) for r in records if r["verdict"] == "UNKNOWN")
    return [(str(n), what) for what, n in counted.most_common()]


def undecided(r: Record) -> str:
    """The kind of what is missing: of its first proof that is UNKNOWN, else of its first error."""
    kinds = [p["cause"] for p in r["proofs"] if p["verdict"] == "UNKNOWN" and p["cause"]]
    if kinds:
        return _short(kinds[0])
    return cause(r) if r["errors"] or r["findings"] else _short(r["reason"])


def tables(records: Sequence[Record]) -> tuple[tuple[str, list[tuple[str, ...]]], ...]:
    """Cases, totals by file, and what is unsupported by cause."""
    return (
        ("cases", [("case", "lifted", "s", "formula"), *map(case_row, records)]),
        (
            "files",
            [COLUMNS, *files(records)],
        ),
        ("not lifted, by cause", [("cases", "cause"), *causes(records)]),
    )


def case_row(r: Record) -> tuple[str, ...]:
    """One case: its formula on one line, or why it has none."""
    text = r["formula"]["text"].replace("\n", "; ") if r["formula"] else r["lift"].splitlines()[0]
    return f"{Path(r['file']).stem}::{r['name']}", state(r), f"{sum(r['seconds'].values()):.2f}", _short(text)


def files(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """Totals of each file, and of all."""
    names = list(dict.fromkeys(r["file"] for r in records))
    rows = [_total(Path(f).stem, [r for r in records if r["file"] == f]) for f in names]
    return [*rows, _total("all", records)]


def _total(name: str, records: Sequence[Record]) -> tuple[str, ...]:
    ok = [r for r in records if state(r) == "yes"]
    states = Counter(map(state, records))
    launches, lifted = (sum(r.get("launches", 0) for r in of) for of in (records, ok))
    seconds = sum(sum(r["seconds"].values()) for r in records)
    counts = (len(records), len(ok), states["wrong"], states["undefined"], states["no"], launches, lifted)
    return (name, *map(str, counts), f"{lifted / launches:.0%}" if launches else "-", f"{seconds:.1f}")


def state(r: Record) -> str:
    """yes: every output has a formula that is the kernel wherever checked. wrong: it is not what the reference says.
    undefined: the formula says that the kernel's outputs depend on values which nobody defined."""
    rules = {f["rule"] for f in r["findings"]}
    if r["lift"] != "ok":
        return "no"
    return "wrong" if "wrong-result" in rules else "undefined" if rules else "yes"


def causes(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """How many cases stop at each cause, most frequent first."""
    counted = Counter(cause(r) for r in records if r["lift"] != "ok")
    return [(str(n), what) for what, n in counted.most_common()]


def cause(r: Record) -> str:
    """The kind and what of its first error, without the place; a kernel that is wrong has findings instead."""
    told = [f"{e['kind']}: {e['what']}" for e in r["errors"]] + [f["rule"] for f in r["findings"]]
    return _short(told[0] if told else r["lift"])


def _short(text: str, limit: int = 110) -> str:
    text = text.replace(sysconfig.get_paths()["purelib"] + "/", "")
    return text if len(text) <= limit else text[: limit - 4] + " ..."


def versions() -> dict[str, str]:
    """What was used: date, machine, and the versions that matter."""
    out = {"date": date.today().isoformat(), "python": platform.python_version(), "machine": platform.machine()}
    for package in (*VERSIONED, *PACKAGES):
        try:
            out[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return out


def as_text(result: Result) -> str:
    """Aligned columns."""
    parts = list(result.notes)
    for heading, rows in result.tables:
        if len(rows) > 1:
            widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
            lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
            parts.append("\n".join([heading, *("  " + line for line in lines)]))
    return "\n\n".join(parts)


def as_markdown(result: Result) -> str:
    """A page with tables."""
    said = ", ".join(f"{k} {v}" for k, v in versions().items())
    parts = [f"# {result.title}", said, *result.notes]
    for heading, rows in result.tables:
        if len(rows) > 1:
            head, *body = ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows]
            parts += [f"## {heading}", "\n".join([head, "|" + " --- |" * len(rows[0]), *body])]
    return "\n\n".join(parts) + "\n"


def as_json(result: Result) -> str:
    """The data with versions and date."""
    return json.dumps({"title": result.title, "versions": versions(), **result.data}, indent=1)

"""A corpus run as users would run it: formulas and verdicts of its cases, in tables."""

from __future__ import annotations

import sysconfig
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ...base.progress import Progress
from ...base.targets import resolve
from ...commands import lift, prove
from ...commands.gathering import document, worst
from ...records.options import Options
from ...records.verdict_text import SEEN
from ...runner import dispatch
from ..experiment import Experiment, Result, Row, Table, by_name, tabled
from ..folders import CORPUS
from . import paper

Record = Mapping[str, Any]
WORDS = ("PROVED", "TESTED", "REFUTED", "UNKNOWN")
COLUMNS = {
    "the paper's operators": paper.HEAD,
    "verdicts by file": ("file", "cases", *WORDS, "launches lifted", "launches proved", "share", "prove s"),
    "UNKNOWN, by cause": ("cases", "cause"),
    "verdicts": ("case", "verdict", "against", "prove s", "contract, or why not"),
    "cases": ("case", "lifted", "s", "formula"),
    "files": ("file", "cases", "lifted", "wrong", "undefined", "not lifted", "launches", "of lifted cases", "share",
              "s"),
    "not lifted, by cause": ("cases", "cause"),
}  # fmt: skip


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The result of one corpus: lifted, and proved where the options ask for it. Raises click.UsageError where there
    is no such folder."""
    folder = CORPUS / name
    if not folder.is_dir():
        raise click.UsageError(f"no corpus is called {name}")
    with Progress(quiet) as progress:
        records = list(dispatch.records(resolve([str(folder)]), options, progress.hear))
        stage = prove if options.proving else lift
        progress.say(stage.summary(records))
    shown = (*(proofs(records, name) if options.proving else ()), *tables(records))
    notes = earlier(records)
    return Result(f"corpus {name}", shown, document(records), worst(map(stage.code, records)), notes)


def earlier(records: Sequence[Record]) -> tuple[str, ...]:
    """A note where some of the records were kept from a run before this one."""
    count = sum(bool(r.get("cached")) for r in records)
    return (f"{count} of {len(records)} cases are from an earlier run of the same sources and settings.",) * bool(count)


EXPERIMENTS = by_name(*(Experiment(n, measure, COLUMNS) for n in ("operators", "packages", "strangers")))


def proofs(records: Sequence[Record], name: str) -> tuple[Table, ...]:
    """Verdicts: beside the paper's for the operators, by file, by case, and what is missing by cause."""
    papers = {"the paper's operators": paper.table(records)} if name == "operators" else {}
    rows = {
        "verdicts by file": verdicts(records),
        "UNKNOWN, by cause": unknown(records),
        "verdicts": [verdict_row(r) for r in records],
    }
    return tabled(COLUMNS, papers | rows)


def verdicts(records: Sequence[Record]) -> list[Row]:
    """How many cases of each file have which verdict, and which share of the lifted launches belongs to a proof."""
    names = list(dict.fromkeys(r["file"] for r in records))
    rows = [_verdicts(Path(f).stem, [r for r in records if r["file"] == f]) for f in names]
    return [*rows, _verdicts("all", records)]


def _verdicts(name: str, records: Sequence[Record]) -> Row:
    counts = Counter(r["verdict"] for r in records)
    lifted = sum(r["launches"] for r in records if r["lift"] == "ok")
    proved = sum(r["launches"] for r in records if r["lift"] == "ok" and r["verdict"] == "PROVED")
    share = f"{proved / lifted:.0%}" if lifted else "-"
    seconds = sum(r["seconds"]["prove"] for r in records)
    words = (str(counts[w]) for w in WORDS)
    return (name, str(len(records)), *words, str(lifted), str(proved), share, f"{seconds:.1f}")


def verdict_row(r: Record) -> Row:
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


def unknown(records: Sequence[Record]) -> list[Row]:
    """How many cases are undecided for which cause, most frequent first."""
    counted = Counter(undecided(r) for r in records if r["verdict"] == "UNKNOWN")
    return [(str(n), what) for what, n in counted.most_common()]


def undecided(r: Record) -> str:
    """The kind of what is missing: of its first proof that is UNKNOWN, else of its first error."""
    kinds = [p["cause"] for p in r["proofs"] if p["verdict"] == "UNKNOWN" and p["cause"]]
    if kinds:
        return _short(kinds[0])
    return cause(r) if r["errors"] or r["findings"] else _short(r["reason"])


def tables(records: Sequence[Record]) -> tuple[Table, ...]:
    """Cases, totals by file, and what is unsupported by cause."""
    rows = {"cases": [case_row(r) for r in records], "files": files(records), "not lifted, by cause": causes(records)}
    return tabled(COLUMNS, rows)


def case_row(r: Record) -> Row:
    """One case: its formula on one line, or why it has none."""
    text = r["formula"]["text"].replace("\n", "; ") if r["formula"] else r["lift"].splitlines()[0]
    return f"{Path(r['file']).stem}::{r['name']}", state(r), f"{sum(r['seconds'].values()):.2f}", _short(text)


def files(records: Sequence[Record]) -> list[Row]:
    """Totals of each file, and of all."""
    names = list(dict.fromkeys(r["file"] for r in records))
    rows = [_total(Path(f).stem, [r for r in records if r["file"] == f]) for f in names]
    return [*rows, _total("all", records)]


def _total(name: str, records: Sequence[Record]) -> Row:
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


def causes(records: Sequence[Record]) -> list[Row]:
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

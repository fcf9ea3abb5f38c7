"""corpus/broken and corpus/sound: what an audit must find there, what it found, and the tables of both.

A file of corpus/broken says what is wrong in its first lines, `# expect: RULE at line L`; of corpus/sound nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...base.progress import Progress
from ...base.targets import Target, resolve
from ...commands import prove
from ...commands.gathering import document
from ...records.options import Options, Proving
from ...runner import dispatch
from ..experiment import Experiment, Result, Row, Table, by_name, tabled
from ..folders import CORPUS
from . import corpus
from .corpus import Record

BROKEN, SOUND = "broken", "sound"
EXPECT = re.compile(r"# expect: (?P<rule>[a-z0-9-]+) at line (?P<line>[0-9]+)")
FAULTY = {"case", "internal", "crash", "timeout", "memory"}  # errors after which nothing can be said of a file
COLUMNS = {
    "corpus/broken": ("rule", "expected", "caught", "missed", "extra", "s"),
    "corpus/broken, by file": ("file", "expected", "found", "caught", "extra", "verdict", "s"),
    "corpus/sound": ("files", "with false alarms", "false alarms", "PROVED", "not audited", "s"),
    "corpus/sound, by file": ("file", "false alarms", "undecided rules", "verdict", "s"),
}


@dataclass(frozen=True, slots=True)
class Site:
    """A rule and a line; `file` is "" for the file that is audited."""

    rule: str
    line: int
    file: str = ""

    def __str__(self) -> str:
        return f"{self.rule}@{self.file + ':' if self.file else ''}{self.line}"


@dataclass(frozen=True, slots=True)
class Judged:
    """One audited file. `seconds`: of its record, all stages; `trouble`: why nothing can be said of it, or ""."""

    path: str
    expected: tuple[Site, ...]
    found: tuple[Site, ...]
    verdict: str
    seconds: float
    trouble: str = ""
    undecided: int = 0

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def rule(self) -> str:
        """The first that is expected."""
        return self.expected[0].rule if self.expected else ""

    @property
    def caught(self) -> tuple[Site, ...]:
        """The expected findings that the audit reports, with the same rule at the same line."""
        return tuple(s for s in self.expected if s in self.found)

    @property
    def missed(self) -> tuple[Site, ...]:
        return tuple(s for s in self.expected if s not in self.found)

    @property
    def extra(self) -> tuple[Site, ...]:
        """The findings that the audit reports and the file does not expect."""
        return tuple(s for s in self.found if s not in self.expected)


def expectations(text: str) -> tuple[Site, ...]:
    """The findings that the first lines of a file announce, in order; () if the first line announces none."""
    out: list[Site] = []
    for line in text.splitlines():
        match = EXPECT.fullmatch(line.rstrip())
        if match is None:
            break
        out.append(Site(match["rule"], int(match["line"])))
    return tuple(out)


def measure(name: str, options: Options, quiet: bool) -> Result:
    """The audit of corpus/broken or of corpus/sound; without proofs they are a corpus as any other. The exit code is 0
    where all that was expected is found, and nothing where nothing is wrong."""
    if options.proving is None:
        return corpus.measure(name, options, quiet)
    files, records = judged(resolve([str(CORPUS / name)]), options, quiet)
    return Result(f"corpus {name}", tables(name, files), document(records), code(name, files))


EXPERIMENTS = by_name(*(Experiment(n, measure, {**corpus.COLUMNS, **COLUMNS}) for n in (BROKEN, SOUND)))


def judged(targets: Sequence[Target], options: Options, quiet: bool) -> tuple[list[Judged], list[Any]]:
    """Every file audited and compared with its first lines; and the records."""
    how = replace(options, audit=True, proving=options.proving or Proving())
    with Progress(quiet) as progress:
        records = list(dispatch.records(targets, how, progress.hear))
        progress.say(prove.summary(records))
    return [judge(r, Path(r["file"]).read_text()) for r in records], records


def judge(record: Record, text: str) -> Judged:
    """One record beside the file's text."""
    found = tuple(dict.fromkeys(_site(f, record["file"]) for f in record["findings"]))
    trouble = next((e["what"] for e in record["errors"] if e["kind"] in FAULTY), "")
    seconds, undecided = sum(record["seconds"].values()), len(record["undecided"])
    return Judged(record["file"], expectations(text), found, record["verdict"], seconds, trouble, undecided)


def _site(finding: Record, file: str) -> Site:
    inside = not finding["file"] or Path(finding["file"]).resolve() == Path(file).resolve()
    return Site(finding["rule"], finding["line"], "" if inside else Path(finding["file"]).name)


def code(name: str, files: Iterable[Judged]) -> int:
    """2 where a file could not be audited, 1 where something is missed, or found in a file without a bug, 3 without
    files, else 0."""
    every = list(files)
    if any(f.trouble for f in every):
        return 2
    wrong = any(f.missed or (name == SOUND and f.found) for f in every)
    return int(wrong) if every else 3


# ---- tables ----------------------------------------------------------------------------------------------------------


def tables(name: str, files: Sequence[Judged]) -> tuple[Table, ...]:
    """Totals, then every file."""
    return (sound if name == SOUND else broken)(files)


def broken(files: Sequence[Judged]) -> tuple[Table, ...]:
    """The tables of corpus/broken: the files and the caught ones in all and by rule, then every file."""
    return tabled(COLUMNS, {"corpus/broken": totals(files), "corpus/broken, by file": map(_broken_row, files)})


def totals(files: Sequence[Judged]) -> list[Row]:
    """Of each rule that is expected and of all: how many expectations are met, and what is found beside them."""
    rules = list(dict.fromkeys(s.rule for f in files for s in f.expected))
    return [*(_total(r, files, r) for r in rules), _total("all", files, "")]


def _total(name: str, files: Sequence[Judged], rule: str) -> Row:
    """An extra finding and its seconds count for the rule that its file expects first."""
    mine = [f for f in files if not rule or f.rule == rule]
    counts = [sum(not rule or s.rule == rule for f in files for s in of(f)) for of in (_expected, _caught, _missed)]
    extra = sum(len(f.extra) for f in mine)
    return (name, *map(str, (*counts, extra)), f"{sum(f.seconds for f in mine):.1f}")


def _expected(f: Judged) -> tuple[Site, ...]:
    return f.expected


def _caught(f: Judged) -> tuple[Site, ...]:
    return f.caught


def _missed(f: Judged) -> tuple[Site, ...]:
    return f.missed


def _broken_row(f: Judged) -> Row:
    caught = "yes" if not f.missed else f"{len(f.caught)} of {len(f.expected)}" if f.caught else "no"
    return (f.name, _listed(f.expected), f.trouble or _listed(f.found), caught, _listed(f.extra), *_end(f))


def sound(files: Sequence[Judged]) -> tuple[Table, ...]:
    """How many files are silent, then each. Whatever is found is a false alarm."""
    rows = [(f.name, f.trouble or _listed(f.found), str(f.undecided or "-"), *_end(f)) for f in files]
    return tabled(COLUMNS, {"corpus/sound": [silent(files)], "corpus/sound, by file": rows})


def silent(files: Sequence[Judged]) -> Row:
    """Totals of files in which nothing is wrong."""
    alarmed, alarms = sum(bool(f.found) for f in files), sum(len(f.found) for f in files)
    proved = sum(f.verdict == "PROVED" for f in files)
    counts = (len(files), alarmed, alarms, proved, sum(bool(f.trouble) for f in files))
    return (*map(str, counts), f"{sum(f.seconds for f in files):.1f}")


def _end(f: Judged) -> tuple[str, str]:
    return f.verdict, f"{f.seconds:.1f}"


def _listed(sites: Sequence[Site]) -> str:
    return ", ".join(map(str, sites)) or "-"

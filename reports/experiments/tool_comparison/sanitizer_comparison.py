"""`trilift report sanitizer-comparison`: corpus/broken and corpus/sound under trilift and under triton-viz's sanitizer.

Two readings of a broken file are shown for both tools: something is reported at a line that the file names, and
anything is reported at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...base.progress import Progress
from ...base.targets import resolve
from ...commands.gathering import document
from ...records.options import Options
from ..corpora import expectations
from ..corpora.expectations import BROKEN, SOUND, Judged
from ..experiment import Experiment, Result, Row, Table, by_name, tabled
from ..folders import CORPUS
from . import sanitizer
from .sanitizer import CRASH, LATE, REPORT, SILENT, UNSUPPORTED, Sanitized

UNREAD = (UNSUPPORTED, LATE, CRASH)  # nothing is known of such a file
Heard = Mapping[str, Sequence[Sanitized]]
OURS, THEIRS = ("trilift at the line", "trilift anything"), ("sanitizer at the line", "sanitizer anything")
COLUMNS = {
    "broken files, trilift and triton-viz's sanitizer": (
        "files that expect", "files", *OURS, *THEIRS, "silent", "could not run", "trilift s", "sanitizer s",
    ),
    "sound files, trilift and triton-viz's sanitizer": (
        "tool", "files", "with false alarms", "silent", "could not run", "s",
    ),
    "every file under triton-viz's sanitizer": ("file", "expected", "sanitizer", "shapes", "s", "what it raised"),
}  # fmt: skip
HOW = (
    "triton-sanitizer is run as its documentation says: `triton-sanitizer script.py` with CPU tensors, one process for "
    f"each file, {sanitizer.TIMEOUT:.0f} s for all its shapes: two small ones, a larger one, and "
    f"{sanitizer.EDGES} at the edges of blocks, until the first report. It looks for addresses outside the tensors of "
    "a launch, at the shapes that it is run at, and claims nothing about races, values or contracts; those files are "
    "listed so that the reader sees who covers what. Its addresses are unbounded integers, so that an offset which "
    "wraps in 32 bits stays inside. `could not run`: it raised at every shape, or ran out of time before one was done.",
    "`at the line`: a report at a line that the file's first comment names, for trilift under the rule that it names. "
    "Seconds are those of the runs, without the start of the process; trilift's are for lifting, proof and audit over "
    "all shapes.",
)


def measure(name: str, options: Options, quiet: bool) -> Result:
    """Both corpora under both tools. The exit code is that of the worse corpus of ours."""
    files, records = {}, []
    for corpus in (BROKEN, SOUND):
        files[corpus], found = expectations.judged(resolve([str(CORPUS / corpus)]), options, quiet)
        records += found
    notes, heard = sanitized({c: [f.path for f in of] for c, of in files.items()}, options, quiet)
    tables = [t for c, of in files.items() for t in expectations.tables(c, of)]
    shown = (*compared(files, heard), *tables) if heard else tuple(tables)
    codes = {expectations.code(c, of) for c, of in files.items()}
    worst = next(c for c in (2, 1, 3, 0) if c in codes)
    return Result(name, shown, {**document(records), "sanitizer": plain(files, heard)}, worst, notes)


EXPERIMENTS = by_name(Experiment("sanitizer-comparison", measure, {**COLUMNS, **expectations.COLUMNS}))


def sanitized(paths: Mapping[str, Sequence[str]], options: Options, quiet: bool) -> tuple[tuple[str, ...], Heard]:
    """(notes on how the sanitizer was run, its outcome for every file by corpus); if it is not installed, (a note that
    says so, {})."""
    with Progress(quiet) as progress:
        try:
            heard = {
                c: sanitizer.sanitize(of, options.jobs, options.seed, lambda f: progress.say(f"{f}: triton-sanitizer"))
                for c, of in paths.items()
            }
        except FileNotFoundError as e:
            progress.say(str(e))
            return (f"Without the columns of triton-viz's sanitizer. {e}.",), {}
    versions = next((s.versions for of in heard.values() for s in of if s.versions), {})
    used = ", ".join(f"{k} {v}" for k, v in versions.items())
    return (*HOW, f"The sanitizer's environment: {used}."), heard


def plain(files: Mapping[str, Sequence[Judged]], heard: Heard) -> list[dict[str, Any]]:
    """The sanitizer's outcomes as data for JSON, one entry for each file."""
    return [
        {"file": f.path, "corpus": c, **{k: v for k, v in asdict(s).items() if k != "versions"}}
        for c, of in heard.items()
        for f, s in zip(files[c], of, strict=True)
    ]


def compared(files: Mapping[str, Sequence[Judged]], heard: Heard) -> tuple[Table, ...]:
    """Both tools: broken files by rule, sound files, then all files."""
    broken, sound = (list(zip(files[c], heard[c], strict=True)) for c in (BROKEN, SOUND))
    rows = (by_rule(broken), false_alarms(sound), each(broken, sound))
    return tabled(COLUMNS, dict(zip(COLUMNS, rows, strict=True)))


Pairs = Sequence[tuple[Judged, Sanitized]]


def by_rule(pairs: Pairs) -> list[Row]:
    """One row for each expected rule: the files that expect it, how many of them each tool caught, and how many the
    sanitizer passed in silence or could not run."""
    rules = list(dict.fromkeys(f.rule for f, _ in pairs))
    rules.sort(key=lambda r: r != "out-of-bounds")  # what both look for
    return [*(_caught(r, [p for p in pairs if p[0].rule == r]) for r in rules), _caught("all", pairs)]


def _caught(name: str, pairs: Pairs) -> Row:
    counts = (
        len(pairs),
        sum(bool(f.caught) for f, _ in pairs),
        sum(bool(f.found) for f, _ in pairs),
        sum(at_the_line(f, s) for f, s in pairs),
        *_outcomes(pairs),
    )
    return (name, *map(str, counts), *_seconds(pairs))


def at_the_line(f: Judged, s: Sanitized) -> bool:
    """Whether the sanitizer's report is at a line that the file names."""
    return s.outcome == REPORT and s.line in {e.line for e in f.expected}


def _outcomes(pairs: Pairs) -> tuple[int, int, int]:
    """(files with a report, silent files, files that the sanitizer could not run)."""
    outcomes = [s.outcome for _, s in pairs]
    return outcomes.count(REPORT), outcomes.count(SILENT), sum(o in UNREAD for o in outcomes)


def _seconds(pairs: Pairs) -> tuple[str, str]:
    return f"{sum(f.seconds for f, _ in pairs):.1f}", f"{sum(s.seconds for _, s in pairs):.1f}"


def false_alarms(pairs: Pairs) -> list[Row]:
    """Of the files in which nothing is wrong: how many each tool reports something in."""
    reports, silences, unread = _outcomes(pairs)
    alarmed, silent = (sum(bool(f.found) is found for f, _ in pairs) for found in (True, False))
    ours, theirs = _seconds(pairs)
    return [
        ("trilift", *map(str, (len(pairs), alarmed, silent - _troubled(pairs), _troubled(pairs))), ours),
        ("triton-sanitizer", *map(str, (len(pairs), reports, silences, unread)), theirs),
    ]


def _troubled(pairs: Pairs) -> int:
    return sum(bool(f.trouble) and not f.found for f, _ in pairs)


def each(broken: Pairs, sound: Pairs) -> list[Row]:
    """One row for each file and what the sanitizer says of it."""
    return [_row(c, f, s) for c, of in ((BROKEN, broken), (SOUND, sound)) for f, s in of]


def _row(corpus: str, f: Judged, s: Sanitized) -> Row:
    expected = ", ".join(map(str, f.expected)) or "-"
    outcome = f"{s.outcome} at {s.line}" if s.line else s.outcome
    why = " ".join(s.why.split())[:100] or "-"
    return f"{corpus}/{f.name}", expected, outcome, f"{s.ran} of {s.shapes}", f"{s.seconds:.1f}", why

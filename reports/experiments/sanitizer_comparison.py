"""`trilift report audit`: the audit of corpus/broken and corpus/sound, and triton-viz's sanitizer on the same files.

Two readings of a broken file are shown for both tools: something is reported at a line that the file names, and
anything is reported at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..base.progress import Progress
from ..base.targets import resolve
from ..commands.lift import document
from ..records.options import Options
from . import corpus as corpora
from . import expectations, sanitizer
from .corpus import Result
from .expectations import BROKEN, SOUND, Judged, Rows
from .sanitizer import CRASH, LATE, REPORT, SILENT, UNSUPPORTED, Sanitized

UNREAD = (UNSUPPORTED, LATE, CRASH)  # nothing is known of such a file
Heard = Mapping[str, Sequence[Sanitized]]
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
        files[corpus], found = expectations.judged(resolve([str(corpora.CORPUS / corpus)]), options, quiet)
        records += found
    notes, heard = sanitized({c: [f.path for f in of] for c, of in files.items()}, options, quiet)
    tables = [t for c, of in files.items() for t in expectations.tables(c, of)]
    shown = (*beside(files, heard), *tables) if heard else tuple(tables)
    codes = {expectations.code(c, of) for c, of in files.items()}
    worst = next(c for c in (2, 1, 3, 0) if c in codes)
    return Result("audit", shown, {**document(records), "sanitizer": plain(files, heard)}, worst, notes)


def sanitized(paths: Mapping[str, Sequence[str]], options: Options, quiet: bool) -> tuple[tuple[str, ...], Heard]:
    """What the sanitizer says of every file, and how it was run; or why it was not."""
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
    """What the sanitizer said, as data."""
    return [
        {"file": f.path, "corpus": c, **{k: v for k, v in asdict(s).items() if k != "versions"}}
        for c, of in heard.items()
        for f, s in zip(files[c], of, strict=True)
    ]


def beside(files: Mapping[str, Sequence[Judged]], heard: Heard) -> tuple[tuple[str, Rows], ...]:
    """Side by side: broken files by rule, sound files, then all files."""
    broken, sound = (list(zip(files[c], heard[c], strict=True)) for c in (BROKEN, SOUND))
    return (
        ("broken files, beside triton-viz's sanitizer", by_rule(broken)),
        ("sound files, beside triton-viz's sanitizer", false_alarms(sound)),
        ("every file under triton-viz's sanitizer", each(broken, sound)),
    )


Pairs = Sequence[tuple[Judged, Sanitized]]


def by_rule(pairs: Pairs) -> Rows:
    """Of the files that expect each rule: how many each tool caught, and of how many the sanitizer says nothing."""
    rules = list(dict.fromkeys(f.rule for f, _ in pairs))
    rules.sort(key=lambda r: r != "out-of-bounds")  # what both look for
    ours, theirs = ("trilift at the line", "trilift anything"), ("sanitizer at the line", "sanitizer anything")
    head = ("files that expect", "files", *ours, *theirs, "silent", "could not run", "trilift s", "sanitizer s")
    return [head, *(_caught(r, [p for p in pairs if p[0].rule == r]) for r in rules), _caught("all", pairs)]


def _caught(name: str, pairs: Pairs) -> tuple[str, ...]:
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
    """Reports, silences, and files of which nothing is known."""
    outcomes = [s.outcome for _, s in pairs]
    return outcomes.count(REPORT), outcomes.count(SILENT), sum(o in UNREAD for o in outcomes)


def _seconds(pairs: Pairs) -> tuple[str, str]:
    return f"{sum(f.seconds for f, _ in pairs):.1f}", f"{sum(s.seconds for _, s in pairs):.1f}"


def false_alarms(pairs: Pairs) -> Rows:
    """Of the files in which nothing is wrong: how many each tool reports something in."""
    reports, silences, unread = _outcomes(pairs)
    alarmed, silent = (sum(bool(f.found) is found for f, _ in pairs) for found in (True, False))
    ours, theirs = _seconds(pairs)
    return [
        ("tool", "files", "with false alarms", "silent", "could not run", "s"),
        ("trilift", *map(str, (len(pairs), alarmed, silent - _troubled(pairs), _troubled(pairs))), ours),
        ("triton-sanitizer", *map(str, (len(pairs), reports, silences, unread)), theirs),
    ]


def _troubled(pairs: Pairs) -> int:
    return sum(bool(f.trouble) and not f.found for f, _ in pairs)


def each(broken: Pairs, sound: Pairs) -> Rows:
    """One row for each file and what the sanitizer says of it."""
    rows = [_row(c, f, s) for c, of in ((BROKEN, broken), (SOUND, sound)) for f, s in of]
    return [("file", "expected", "sanitizer", "shapes", "s", "what it raised"), *rows]


def _row(corpus: str, f: Judged, s: Sanitized) -> tuple[str, ...]:
    expected = ", ".join(map(str, f.expected)) or "-"
    outcome = f"{s.outcome} at {s.line}" if s.line else s.outcome
    why = " ".join(s.why.split())[:100] or "-"
    return f"{corpus}/{f.name}", expected, outcome, f"{s.ran} of {s.shapes}", f"{s.seconds:.1f}", why

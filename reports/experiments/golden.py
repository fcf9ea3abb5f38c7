"""The results of a corpus as text that must not change when the code is reorganised.

A paragraph holds the formula, verdict, contract and findings of one case:

    corpus/operators/softmax.py::softmax
      formula   softmax(x, -1)
      verdict   PROVED against the reference
      contract  M * N < 2**31

The text contains no seconds and no folders of this machine. Cases stand in the order of their files, and the clauses of
a contract, which is a set, in the order of the alphabet. To see how two runs differ:

    python -m trilift.reports.experiments.golden OLD.json NEW.json      data of `trilift corpus NAME --format json`
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

Data = Mapping[str, Any]
FOLDER = re.compile(
    r"[^\s'\"(]*/(?:site-packages/|trilift/(?=(?:lift|verify|superopt|reports)/)|(?=corpus/))|[^\s'\"(]*/trilift-\w+/"
)
SIZES = ("batch", "model", "for")  # of a program that is searched
FOUND = ("values", "states", "candidates", "plans", "kernels", "model_us", "roofline_us", "floor_us", "unfused_us",
         "structure", "field_equal", "field_bound", "verdict", "bound", "same", "against_original")  # fmt: skip
COUNTED = ("inputs", "outputs", "operators", "operators_as_written", "bytes", "roofline_us")
LOGGED = ("timeout", "memory", "crash", "internal")  # errors whose reason is the end of a log
WIDTH = 11
LONGEST_CHARACTERS = 4000  # of a line that is written whole
SHOWN_CHARACTERS = 400  # of a longer one, whose digest follows


def text(data: Data) -> str:
    """The golden text of a corpus's data, a paragraph for each case."""
    return "\n".join(f"{part}\n" for part in (data["title"], *paragraphs(data).values()))


def paragraphs(data: Data) -> dict[str, str]:
    """The paragraph of each case, by the case's name."""
    return {name(r): "\n".join([name(r), *lines(r)]) for r in data["cases"]}


def name(r: Data) -> str:
    """ "corpus/operators/softmax.py::softmax", with what distinguishes cases of one name."""
    at = "".join(f" {k} {r[k]}" for k in SIZES if k in r)
    return portable(f"{r['file']}::{r['name']}{at}")


def lines(r: Data) -> Iterator[str]:
    """The lines of a case below its name, each a word and a text: of a lifted or proved case, or else of a search."""
    said = _case(r) if "lift" in r else _search(r)
    for word, what in said:
        first, *more = map(_brief, portable(what).splitlines() or [""])
        yield f"  {word.ljust(WIDTH)} {first}".rstrip()
        yield from (f"  {' ' * WIDTH} {line}".rstrip() for line in more)


def portable(said: str) -> str:
    """The text without folders of this machine."""
    return FOLDER.sub("", said.replace(f"{Path.home()}{os.sep}", "~/"))


def _brief(line: str) -> str:
    if len(line) <= LONGEST_CHARACTERS:
        return line
    digest = hashlib.sha256(line.encode()).hexdigest()[:16]
    return f"{line[:SHOWN_CHARACTERS]} ... ({len(line)} characters, sha256 {digest})"


def _case(r: Data) -> Iterator[tuple[str, str]]:
    yield "formula", r["formula"]["text"] if r["formula"] else f"none: {r['lift']}"
    if r["formula"] and r["lift"] != "ok":
        yield "lift", r["lift"]
    bound = f", wrong with probability at most {r['bound']:.1e}" if r["bound"] is not None else ""
    yield "verdict", f"{r['verdict']} against the {r['against']}{bound}"
    if r["verdict"] != "PROVED" and r["reason"]:
        yield "reason", r["reason"]
    yield from (("contract", c) for c in sorted(r["contract"]))
    for p in r["proofs"]:
        yield from _proof(p, several=len(r["proofs"]) > 1)
    yield from (("finding", _finding(f)) for f in r["findings"])
    yield from (("error", _error(e)) for e in r["errors"])
    yield from (("undecided", u) for u in r["undecided"])


def _proof(p: Data, several: bool) -> Iterator[tuple[str, str]]:
    """Of several outputs each verdict; the input on which one is wrong."""
    if several:
        yield "output", f"{p['output']}: {p['verdict']} against the {p['against']}"
    if c := p["counterexample"]:
        values = f"{c['element']} is {_number(c['got'])}, not {_number(c['expected'])}" if c["element"] else c["why"]
        yield "wrong at", f"{_dims(c['dims'])}, seed {c['seed']}, configuration {c['config']}: {values}"


def _finding(f: Data) -> str:
    example = f" (at {_dims(f['counterexample'])})" if f["counterexample"] else ""
    return f"{f['rule']} at {f['file'] or 'no file'}:{f['line']}: {f['message']}{example}"


def _dims(values: Data) -> str:
    return ", ".join(f"{k} = {_number(v)}" for k, v in values.items()) or "every shape"


def _search(r: Data) -> Iterator[tuple[str, str]]:
    """Sizes and what was found; times are those of the model."""
    yield "sizes", _dims(r["sizes"])
    if counts := [f"{k} {_number(r[k])}" for k in COUNTED if k in r]:
        yield "counts", ", ".join(counts)
    o = r.get("optimize", {})
    yield from ((k, _number(o[k])) for k in FOUND if o.get(k) is not None)
    yield from (("contract", c) for c in sorted(o.get("contract", ())))


def _number(x: Any) -> str:
    return f"{x:.6g}" if isinstance(x, float) else str(x)


# ---- two runs --------------------------------------------------------------------------------------------------------


def differences(old: str, new: str) -> str:
    """The cases of two golden texts that differ, each with the lines that differ; "" where none does."""
    before, now = cases(old), cases(new)
    names = [n for n in dict.fromkeys((*before, *now)) if before.get(n) != now.get(n)]
    return "\n".join("\n".join([n, *_changes(before.get(n, []), now.get(n, []))]) for n in names)


def _changes(before: list[str], now: list[str]) -> list[str]:
    """The lines that are gone, after "-", and that are new, after "+"."""
    return [line for line in difflib.ndiff(before, now) if line[:1] in "+-"]


def cases(said: str) -> dict[str, list[str]]:
    """The lines of each case by its name: a case begins with a line that is not indented."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in said.splitlines():
        if line and not line.startswith(" "):
            name = line
        elif line:
            found.setdefault(name, []).append(line)
    return found


def read(path: Path) -> str:
    """The golden text of a file, which may hold data too."""
    said = path.read_text()
    return text(json.loads(said)) if path.suffix == ".json" else said


@click.command()
@click.argument("old", type=click.Path(exists=True, dir_okay=False))
@click.argument("new", type=click.Path(exists=True, dir_okay=False), required=False)
def main(old: str, new: str | None) -> None:
    """Print how NEW differs from OLD: data of `trilift corpus NAME --format json`, or golden texts. Without NEW, print
    the golden text of OLD. Exit code 1 where they differ."""
    if new is None:
        click.echo(read(Path(old)), nl=False)
        return
    found = differences(read(Path(old)), read(Path(new)))
    if found:
        click.echo(found)
    sys.exit(int(bool(found)))


if __name__ == "__main__":
    main()


def _error(e: Data) -> str:
    """An error; of a process that did not come back without what it wrote last, which has times and places in it."""
    return f"{e['kind']}: {e['what']}" + (f": {e['why']}" if e["why"] and e["kind"] not in LOGGED else "")

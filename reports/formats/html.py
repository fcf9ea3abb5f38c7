"""`--format html`: one page with everything in it: no script, no request, nothing that needs a network.

Verdicts and formulas, what each proof rests on, its contract, findings with how they come about, and the source of the
kernels with the findings in its margin. The page's policy allows one style sheet, by its hash, and nothing else. All
texts are escaped by Jinja; formulas are MathML, made from LaTeX.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from math_core import LatexError, LatexToMathML
from pygments import lex
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String

from ..base import explanations, sources
from ..records import findings, proof_record, second_opinion, verdict_text
from . import Document, unlaunched

Record = Mapping[str, Any]
HERE = Path(__file__).parent
STYLE = re.compile(r' style="[^"]*"')  # the page's own style sheet aligns the cells of cases
COLOURS = ((Comment, "c"), (Keyword, "k"), (String, "s"), (Number, "n"), (Name.Decorator, "d"), (Name.Builtin, "b"))
TICKED = re.compile(r"`([^`\n]+)`")
AROUND, WHOLE = 8, 120  # lines shown around a note, where the function has more lines than this
# Over the preconditions and over the conditions: only what is proved has a contract.
HEADS = {
    "PROVED": ("Contract", "Basis of the proof"),
    "REFUTED": ("Where it holds", "Shown"),
    "": ("Preconditions found so far, no contract", "Shown so far"),
}
LONG = 120  # characters of a formula in a table


def write(document: Document) -> str:
    """The page."""
    style = (HERE / "page.css").read_text()
    cases = document["cases"]
    policy = f"default-src 'none'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    page: str = _template().render(
        policy=policy,
        style=Markup(style),
        version=document["version"],
        incomplete=document.get("incomplete", ""),
        verdicts=_counted([c["verdict"] for c in cases], ("PROVED", "TESTED", "REFUTED", "UNKNOWN")),
        levels=list(findings.counted([*cases, *unlaunched(document)]).items()),
        files=list(_files(cases)),
        kernels=[_kernel(k, f"kernel-{n}") for n, k in enumerate(unlaunched(document), 1)],
    )
    return page


def _hash(style: str) -> str:
    """The source expression that allows one inline style sheet (CSP level 3)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    seconds = lambda s: f"{s:.2f} s" if s >= 0.005 else "< 0.01 s"  # noqa: E731
    environment.filters.update(value=findings.value, seconds=seconds, ticks=ticks, short=short)
    return environment.get_template("page.html.jinja")


def ticks(text: str) -> Markup:
    """The text with what stands between backticks as code."""
    return Markup(TICKED.sub(r"<code>\1</code>", html.escape(text)))


def short(text: str) -> str:
    """The beginning of a text that is too long for a table."""
    return text if len(text) <= LONG else text[: LONG - 2] + " …"


def _counted(words: Sequence[str], order: Sequence[str]) -> list[tuple[str, int]]:
    counts = Counter(words)
    return [(w, counts[w]) for w in order if counts[w]]


def _files(cases: Sequence[Record]) -> Iterator[Record]:
    """Cases and sources of each file, in order; anchors count through the page."""
    numbered = enumerate(cases, 1)
    for file, group in groupby(numbered, lambda pair: sources.relative(pair[1]["file"])):
        views = [_case(c, f"case-{n}") for n, c in group]
        yield {"file": file, "cases": views, "sources": list(_regions(views))}


# ---- one case --------------------------------------------------------------------------------------------------------


def _case(c: Record, anchor: str) -> dict[str, Any]:
    """The page's section of a case."""
    found = [_finding(f, f"{anchor}-finding-{n}") for n, f in enumerate(findings.of(c), 1)]
    return {
        **c,
        "anchor": anchor,
        "word": second_opinion.word(c),
        "missing": c["checked"]["missing"] if "checked" in c else [],
        "file": sources.relative(c["file"]),
        "formulas": [_formula(o) for o in c["outputs"] if o["text"]],
        "claims": [_claim(p, c) for p in c["proofs"]],
        "clauses": list(_clauses(c, seen=False)),
        "bounded": c["verdict"] != "REFUTED" or any(x["kind"] != "case" for x in _clauses(c, seen=False)),
        "seen": list(_clauses(c, seen=True)),
        "rows": obligations(c["proofs"]),
        "heads": HEADS.get(c["verdict"], HEADS[""]),
        "open_place": _at(c["place"], c),
        "findings": found,
        "suppressed": findings.suppressed(c),
        "errors": [
            {**e, "at": findings.place({**e, "file": sources.relative(e["file"])})} for e in verdict_text.errors_of(c)
        ],
        "undecided": c.get("undecided", ()),
        "kernels": c.get("kernels", ()),
    }


def _formula(o: Record) -> Record:
    return {"name": o["name"], "math": mathml(o["latex"]), "text": o["text"], "torch": o["torch"]}


@cache
def _converter() -> LatexToMathML:
    return LatexToMathML()


def mathml(latex: str | None) -> Markup | None:
    """A formula to be shown on lines of its own; None if it cannot be converted: then its text is shown."""
    try:
        found = _converter().convert_with_local_state(latex or "", displaystyle=True)
    except LatexError:
        return None
    return Markup(STYLE.sub("", found)) if latex else None


def _claim(p: Record, c: Record) -> Record:
    """One output, and what was shown of it."""
    example = p["counterexample"]
    return {
        **p,
        "other": proof_record.other(p["against"]),
        "sign": {"PROVED": "=", "TESTED": "=", "REFUTED": "≠"}.get(p["verdict"], "=?"),
        "at": _at(p["place"], c),
        "difference": proof_record.difference(example, p["against"]) if example else "",
    }


def _clauses(c: Record, seen: bool) -> Iterator[Record]:
    """The contract, each clause once: preconditions, or what was seen of the host function and not proved."""
    told = {x["text"]: x for p in c["proofs"] for x in p["contract"] if (x["kind"] == verdict_text.SEEN) == seen}
    for x in told.values():
        yield {**x, "at": _at(x["place"], c)}


def _at(place: Record | None, of: Record) -> str:
    """ "line 31" of the same file, "kernels.py:31" of another, "" where it is not known."""
    if not place or not place["line"]:
        return ""
    file = sources.relative(place["file"])
    return f"line {place['line']}" if file == sources.relative(of["file"]) else f"{file}:{place['line']}"


def obligations(found: Sequence[Record]) -> list[dict[str, Any]]:
    """A row for each kind of condition: how many there are, how many are open, what showed the others, seconds."""
    rows: dict[str, dict[str, Any]] = {}
    for row in (row for p in found for row in p["conditions"].get("kinds", ())):
        sum_ = rows.setdefault(
            row["kind"], {"kind": row["kind"], "count": 0, "open": 0, "by": Counter(), "seconds": 0.0}
        )
        sum_["by"].update(row["by"])
        for field in ("count", "open", "seconds"):
            sum_[field] += row[field]
    return list(rows.values())


def _finding(f: Record, anchor: str) -> dict[str, Any]:
    """A finding with its source line, the column of its caret, and what its rule is about."""
    text = sources.line(f["file"], f["line"])
    indent = len(text) - len(text.lstrip())
    caret = f["column"] - 1 - indent if f["column"] > indent else None
    return {
        **f,
        "anchor": anchor,
        "at": findings.place(f),
        "source": text.strip(),
        "caret": None if caret is None else " " * caret + "^",
        "summary": explanations.described(f["rule"]).summary,
        "steps": [{**s, "at": _at(s, f)} for s in f["steps"]],
    }


def _kernel(k: Record, anchor: str) -> Record:
    """A kernel that no case launches, with its source where something is found."""
    found = [_finding(f, f"{anchor}-finding-{n}") for n, f in enumerate(findings.of(k), 1)]
    view = {**k, "findings": found, "kernels": ()}
    return {**view, "file": sources.relative(k["file"]), "anchor": anchor, "sources": list(_regions([view]))}


# ---- sources ---------------------------------------------------------------------------------------------------------


def _regions(cases: Sequence[Record]) -> Iterator[Record]:
    """The functions that findings, their steps and kernels stand in, with notes in their margins."""
    notes = list({note[:-1]: note for note in reversed(list(_notes(cases)))}.values())[::-1]  # of alike the first
    wanted = [(k["file"], k["line"]) for c in cases for k in c["kernels"]] + [(n[0], n[1]) for n in notes]
    spans = dict.fromkeys(s for file, line in wanted if (s := _span(sources.relative(file), line)))
    for file, name, first, last in spans:
        here: dict[int, list[Record]] = {}
        for at, line, level, label, text, anchor in notes:
            if at == file and first <= line <= last:
                here.setdefault(line, []).append({"level": level, "label": label, "text": text, "anchor": anchor})
        yield {"file": file, "name": name, "noted": bool(here), "rows": list(_rows(file, first, last, here))}


Note = tuple[str, int, str, str, str, str]  # file, line, level, label, text, anchor


def _notes(cases: Sequence[Record]) -> Iterator[Note]:
    """The notes in the margin: the findings, and their steps with numbers."""
    for f in (f for c in cases for f in c["findings"]):
        example = findings.example(f)
        text = f["message"] + (f" (at {example})" if example else "")
        yield f["file"], f["line"], f["level"], f["rule"], text, f["anchor"]
        for n, s in enumerate(f["steps"], 1):
            yield s["file"], s["line"], "step", f"step {n}", s["text"], f["anchor"]


def _span(file: str, line: int) -> tuple[str, str, int, int] | None:
    """(file, function, first line, last line) around a line; some lines around it where it is in no function."""
    text = sources.lines(file)
    if not 0 < line <= len(text):
        return None
    function = sources.function(file, line)
    if function is None:
        return file, "", max(1, line - AROUND), min(len(text), line + AROUND)
    return file, function.name, function.first, function.last


def _rows(file: str, first: int, last: int, notes: Mapping[int, Sequence[Record]]) -> Iterator[Record]:
    """Lines with colours. A note may take the margin of the lines below it, up to the next one."""
    coloured = colours("\n".join(sources.lines(file)))
    shown = [n for n in range(first, last + 1) if last - first <= WHOLE or _near(n, first, notes)]
    starts = sorted({*(i for i, n in enumerate(shown) if n in notes), 0, len(shown)})
    spans = {a: b - a for a, b in pairwise(starts)}
    for i, n in enumerate(shown):
        gap = i > 0 and shown[i - 1] != n - 1
        code = coloured[n - 1] if n <= len(coloured) else Markup("")
        yield {"number": n, "code": code, "notes": notes.get(n, ()), "span": spans.get(i, 0), "gap": gap}


def _near(n: int, first: int, notes: Iterable[int]) -> bool:
    """Whether a line of a long function is shown: its head, and what is around a note."""
    return n < first + 4 or any(abs(n - at) <= AROUND for at in notes)


@cache
def colours(text: str) -> list[Markup]:
    """The lines of Python source as HTML, their tokens in spans."""
    out = [""]
    for kind, piece in lex(text, PythonLexer(stripnl=False, ensurenl=False)):
        mark = next((name for token, name in COLOURS if kind in token), "")
        for k, part in enumerate(piece.split("\n")):
            out += [""] if k else []
            safe = html.escape(part)
            out[-1] += f'<span class="{mark}">{safe}</span>' if mark and part.strip() else safe
    return [Markup(line) for line in out]

"""`trilift explain`: what the words in our output mean. Findings, errors, verdicts, the laws of the simplifier, the
identities of the prover's normal form, and the strategies that close the goals of a proof."""

from __future__ import annotations

import ast
import difflib
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trilift.lift.runtime.strategy import Strategy

FOLDER = Path(__file__).resolve().parents[2] / "verify" / "audit" / "rules"

FINDINGS = {
    "out-of-bounds": "A load or store outside its tensor.",
    "write-race": "Two programs write one element, and the order decides which value stays.",
    "read-write-race": "A program reads what another one writes in the same launch.",
    "missing-barrier": "Lanes of one program exchange elements of memory without a barrier.",
    "unwritten-output": "An element of an output that no program writes.",
    "undefined-value": "A masked lane without `other`, or uninitialised memory, reaches an output.",
    "int32-overflow": "An index or size computed in 32 bits wraps at some allowed shape.",
    "broken-contract": "The wrapper accepts a call that the kernel does not handle.",
    "wrong-result": "The kernel's result differs from its reference, at the input shown.",
    "overflow-risk": "exp or a square can overflow where the stable form does not.",
    "nan-risk": "0/0 or inf - inf for allowed inputs, e.g. a fully masked row.",
    "precision-loss": "A narrow accumulator, a truncated constant, or cancellation.",
    "ignore-comment": "A comment `# trilift: ignore[rule] reason` without rule or reason, or that matches no finding.",
}
ERRORS = {
    "unsupported": "An operation or construct that trilift does not support, with its place; exit code 4.",
    "not-lifted": "trilift read the kernel, but found no formula that agrees with it at every shape tried. A formula "
    "that fails a check is never printed; exit code 4.",
    "case": "The case itself is wrong: its shapes, its `where`, or its host function raised; exit code 2.",
    "timeout": "The case was not finished within --timeout seconds; exit code 4.",
    "memory": "The case needed more memory than --memory allows it; exit code 4.",
    "crash": "A signal ended the process that read the case, as when the compiler aborts; exit code 4.",
    "internal": "trilift itself failed; exit code 2. Please report it.",
}
VERDICTS = {
    "PROVED": "Holds for every input that meets the contract; every condition is discharged, with evidence.",
    "TESTED": "Held on n random field samples; the probability of a wrong accept is at most the printed number.",
    "REFUTED": "Fails on the input shown, which was replayed on the kernel itself.",
    "UNKNOWN": "Neither proved nor refuted: the reason says why.",
}
PAGES = {"findings": FINDINGS, "errors": ERRORS, "verdicts": VERDICTS}


def explain(name: str | None) -> str:
    """The page of one word, or the list of all. Exits 2 for a word that is none."""
    if name is None:
        lists: dict[str, Iterable[str]] = {"laws": laws(), "identities": identities(), "strategies": strategies()}
        named = [f"{title}\n  {', '.join(names)}" for title, names in lists.items()]
        return "\n\n".join([*(_list(title, page) for title, page in PAGES.items()), *named])
    if name in FINDINGS and (text := described(name).page).startswith("#"):
        return text.removeprefix("# ").rstrip()
    for page in PAGES.values():
        if name in page:
            return f"{name}\n  {page[name]}"
    if name in laws():
        return law(name)
    for table in (identities(), strategies()):
        if name in table:
            return f"{name}\n" + textwrap.indent(str(table[name]), "  ")
    known = [w for page in PAGES.values() for w in page] + [*laws(), *identities(), *strategies()]
    near = difflib.get_close_matches(name, known, 3)
    import click

    hint = f"did you mean {' or '.join(near)}?" if near else "`trilift explain` lists all words"
    raise click.UsageError(f"nothing is called {name}; {hint}")


@dataclass(frozen=True, slots=True)
class Described:
    """The description of an audit rule: `level` as in SARIF, `summary` one sentence, `page` Markdown."""

    name: str
    level: str
    summary: str
    page: str


@cache
def described(name: str) -> Described:
    """The description of a finding's rule; of an unknown name only the name."""
    found = declared().get(name)
    if found is None:
        summary = FINDINGS.get(name, name)
        return Described(name, "error", summary, summary + "\n")
    return found


@cache
def declared() -> dict[str, Described]:
    """The audit rules as their modules declare them, `RULE = Rule(name, level, summary, check)`: read and not imported,
    since a check imports what it runs."""
    return {r.name: r for path in sorted(FOLDER.glob("*.py")) for r in _declared(path)}


def _declared(path: Path) -> Iterator[Described]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.targets[0]) == "RULE":
            name, level, summary = (ast.literal_eval(a) for a in node.value.args[:3])
            page = path.with_suffix(".md")
            yield Described(name, level, summary, page.read_text() if page.exists() else summary + "\n")


def chosen(names: str | None, option: str) -> frozenset[str]:
    """The rules in a list with commas. Raises click.UsageError for a name that is none, with what it may be."""
    import click

    asked = [n.strip() for n in (names or "").split(",") if n.strip()]
    for name in asked:
        if name not in FINDINGS:
            near = difflib.get_close_matches(name, FINDINGS, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else "there are " + ", ".join(FINDINGS)
            raise click.UsageError(f"{option}: no rule is called {name}; {hint}")
    return frozenset(asked)


def _list(title: str, page: dict[str, str]) -> str:
    width = max(map(len, page))
    return "\n".join([title, *(f"  {w.ljust(width)}  {text}" for w, text in page.items())])


def laws() -> dict[str, object]:
    """The laws by name."""
    from trilift.lift.simplify.laws import LAWS

    return {row.name: row for row in LAWS}


def law(name: str) -> str:
    """name: left = right, if condition."""
    row = laws().get(name)
    return name if row is None else f"{name}\n  {row}"


def identities() -> dict[str, object]:
    """The identities of the normal form by name."""
    from trilift.verify.normal_form.identities import IDENTITIES

    return {row.name: row for row in IDENTITIES}


def strategies() -> dict[str, Strategy]:
    """The strategies by name, all kinds of goals in turn."""
    from trilift.lift.synthesis.top_down import SYNTHESIS
    from trilift.superopt.jobs import PLANS
    from trilift.verify.loops.agreement import AGREEMENT
    from trilift.verify.loops.invariant import STRATEGIES
    from trilift.verify.normal_form.zero import EQUALITY
    from trilift.verify.refutation.contract import CONTRACTS

    tables = (EQUALITY, AGREEMENT, STRATEGIES, CONTRACTS, SYNTHESIS, PLANS)
    return {row.name: row for rows in tables for row in rows}

"""Verification conditions, invariants and contracts for people: counted, explained, written as SMT-LIB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .entries import Step

if TYPE_CHECKING:
    from trilift.lift.terms.term import Term
    from trilift.verify.model.verdict import Condition, Invariant, Proof

INTEGERS = ("linear", "numbers", "z3")  # what decides integer conditions
GOAL_CHARACTERS = 200  # characters of a goal


def counted(conditions: Sequence[Condition]) -> dict[str, Any]:
    """How many there are, how many are open, number and seconds by what decided them, and the same for each kind."""
    by: dict[str, dict[str, Any]] = {}
    for c in conditions:
        row = by.setdefault(c.by if c.holds else "open", {"count": 0, "seconds": 0.0})
        row["count"] += 1
        row["seconds"] = round(row["seconds"] + c.seconds, 4)
    kinds = kinds_of(conditions)
    return {"count": len(conditions), "open": sum(not c.holds for c in conditions), "by": by, "kinds": kinds}


def kinds_of(conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """A row for each kind of condition: how many, how many are open, what decided the others, seconds."""
    rows: dict[str, dict[str, Any]] = {}
    for c in conditions:
        kind = c.kind or _head(c.what)
        row = rows.setdefault(kind, {"kind": kind, "count": 0, "open": 0, "by": {}, "seconds": 0.0})
        row["count"] += 1
        row["open"] += not c.holds
        row["by"] = {**row["by"], c.by: row["by"].get(c.by, 0) + 1} if c.holds else row["by"]
        row["seconds"] = round(row["seconds"] + c.seconds, 4)
    return list(rows.values())


def cause(proof: Proof) -> str:
    """The kind of what kept it from being proved, without names and places: what a table counts. Empty if proved."""
    if proof.verdict.value != "UNKNOWN":
        return ""
    if proof.cause:
        return proof.cause
    open_ = next((c for c in proof.conditions if not c.holds), None)
    return (open_.kind if open_ else "") or _head(open_.what if open_ else proof.reason)


def _head(text: str) -> str:
    """ "step of loop" of "step of loop at line 31: total"."""
    return text.split(":")[0].split(" at ")[0]


def explain(proofs: Sequence[Proof]) -> list[Step]:
    """Titled texts for each proof: its invariants, its conditions by what decided them, its contract."""
    steps: list[Step] = [
        {"title": f"{p.claim.output}: {title}", "text": text} for p in proofs for title, text in _steps(p)
    ]
    return [s for s in steps if s["text"]]


def _steps(p: Proof) -> Iterator[tuple[str, str]]:
    yield "loop invariants", "\n".join(map(invariant, p.invariants))
    for by in dict.fromkeys(_by(c) for c in p.conditions):
        group = [c for c in p.conditions if _by(c) == by]
        seconds = sum(c.seconds for c in group)
        yield f"{len(group)} conditions {by}, {seconds:.2f} s", "\n".join(_once(group))
    yield "contract", "\n".join(_clause(c) for c in p.contract)


def _once(group: Sequence[Condition]) -> Iterator[str]:
    """One line for each purpose: its goals, each once, and all its seconds."""
    by_what: dict[str, list[Condition]] = {}
    for c in group:
        by_what.setdefault(_what(c), []).append(c)
    for what, alike in by_what.items():
        goals = list(dict.fromkeys(_goal(c) for c in alike))
        times = f" x{len(alike)}" if len(alike) > 1 else ""
        seconds = sum(c.seconds for c in alike)
        by = _closers(alike)
        yield f"{what}: {_cut('; '.join(goals))}  [{seconds * 1000:.0f} ms{times}{f'; {by}' if by else ''}]"


def _closers(found: Iterable[Condition | Invariant]) -> str:
    """The strategies that closed them, each once."""
    return ", ".join(dict.fromkeys(name for x in found for name in x.strategies))


def strategies(proof: Proof) -> dict[str, dict[str, int]]:
    """For each kind of goal and each strategy, how many goals of the proof it closed or had a part in."""
    goals: dict[str, Sequence[Condition | Invariant]] = {"equality": proof.conditions, "invariant": proof.invariants}
    counts = {goal: Counter(name for x in found for name in x.strategies) for goal, found in goals.items()}
    if family := proof.details.get("contract"):
        counts["contract"] = Counter([family])
    return {goal: dict(names) for goal, names in counts.items() if names}


def _by(c: Condition) -> str:
    return f"by {c.by}" if c.holds else "open"


def invariant(i: Invariant) -> str:
    """ "line 17: total(n) = sum(j, ...) for n >= 1"."""
    at = f"line {i.place.line}: " if i.place else ""
    n = i.counter or "n"
    since = f"  for {n} >= {i.since}" if i.since else ""
    by = f"  [{_closers([i])}]" if i.strategies else ""
    return f"{at}{i.variable}({n}) = {shown(i.term)}{since}{by}"


def condition(c: Condition) -> str:
    """Its purpose, its goal, and the missing part if it is open."""
    return f"{_what(c)}: {_goal(c)}"


def _what(c: Condition) -> str:
    at = f" (line {c.place.line})" if c.place and f"line {c.place.line}" not in c.what else ""
    return c.what + at


def _goal(c: Condition) -> str:
    return shown(c.goal) + ("" if c.holds or not c.why else f": {c.why}")


def _clause(c: Any) -> str:
    at = f" at line {c.place.line}" if c.place else ""
    why = f"({c.why}){at}" if c.kind == "config" else f"needed by {c.why}{at}"
    return str(c.text) + (f"   {why}" if c.why else "")


def shown(t: Term) -> str:
    """A term in the language of formulas, shortened."""
    from trilift.verify.wording.user_terms import words

    return _cut(words(t))


def _cut(text: str) -> str:
    return text if len(text) <= GOAL_CHARACTERS else text[: GOAL_CHARACTERS - 4] + " ..."


def write(conditions: Sequence[Condition], folder: Path) -> str:
    """One .smt2 file for each condition about integers, unsatisfiable where it holds; returns the folder."""
    from trilift.verify.integers.solver import smt_lib

    folder.mkdir(parents=True, exist_ok=True)
    for k, c in enumerate(conditions):
        if text := c.smt or (smt_lib(c.what, c.facts, c.goal) if c.by in INTEGERS else ""):
            (folder / f"{k:04d}-{slug(c.what)}.smt2").write_text(text)
    return str(folder)


def slug(text: str) -> str:
    """The text as part of a file name."""
    return "-".join("".join(ch if ch.isalnum() else " " for ch in text).split())[:60]

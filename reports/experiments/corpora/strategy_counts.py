"""How many goals each strategy closes over corpora, and in how many cases: counted from the records of their proofs.

A strategy that closes no goal of any corpus is a candidate to be deleted; one that is needed by one case alone says so
in its row (`example`). `refute-by-numbers` never closes a goal: it ends one that cannot be closed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...base.explanations import strategies
from ...base.progress import Progress
from ...base.targets import resolve
from ...records.options import Options
from ...runner import dispatch
from .. import summary
from ..experiment import Experiment, Measure, Result, Row, by_name, tabled
from ..folders import CORPUS

Record = Mapping[str, Any]
HEADING = "goals closed by each strategy"
COLUMNS = {HEADING: ("goal", "strategy", "goals closed", "cases", "first case")}
NAME = "strategies"
COUNTED = ("operators",)  # the corpora that are counted, if no others are named
ALL = ("operators", "packages", "broken", "sound")


@dataclass(frozen=True, slots=True)
class Count:
    """`goals` that the strategy closed or had a part in, and in which `cases`."""

    goal: str
    strategy: str
    goals: int
    cases: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        return (self.goal, self.strategy, str(self.goals), str(len(self.cases)), next(iter(self.cases), ""))


def over(corpora: Sequence[str]) -> Measure:
    """How to count these corpora together, each once; "all" is all of them."""
    chosen = ALL if "all" in corpora else tuple(dict.fromkeys(corpora))

    def measure(name: str, options: Options, quiet: bool) -> Result:
        """The counts, of proofs that are made now."""
        with Progress(quiet) as progress:
            targets = resolve(str(CORPUS / c) for c in chosen)
            records = list(dispatch.records(targets, options, progress.hear))
        return result(", ".join(chosen), records)

    return measure


EXPERIMENTS = by_name(Experiment(NAME, over(COUNTED), COLUMNS, summary=summary.whole, over=over))


def result(name: str, records: Iterable[Record]) -> Result:
    """The table of records, and which strategies close nothing there."""
    found = counts(records)
    idle = ", ".join(c.strategy for c in found if not c.goals) or "none"
    data = [{"goal": c.goal, "strategy": c.strategy, "goals": c.goals, "cases": [*c.cases]} for c in found]
    shown = tabled(COLUMNS, {HEADING: [c.row for c in found]})
    note = f"Strategies that close nothing here: {idle}."
    return Result(f"strategies over {name}", shown, {"strategies": data}, 0, (note,))


def counts(records: Iterable[Record]) -> list[Count]:
    """A row for each strategy, those that close nothing included; of plans only where a record emitted a kernel."""
    goals, cases, emitted = Counter[str](), dict[str, list[str]](), False
    for record in records:
        mine, emitted = closed(record), emitted or "optimize" in record
        goals += mine
        for strategy in mine:
            cases.setdefault(strategy, []).append(record["name"])
    rows = {n: row.goal for n, row in strategies().items() if emitted or row.goal != "plan"}
    return [Count(goal, name, goals[name], tuple(cases.get(name, ()))) for name, goal in rows.items()]


def closed(record: Record) -> Counter[str]:
    """How many goals of one case each strategy closed."""
    return sum((Counter(names) for names in _counted(record)), Counter[str]())


def _counted(record: Record) -> Iterator[dict[str, int]]:
    if "optimize" in record:
        yield {record["optimize"]["engine"]: 1}
    for output in record.get("outputs", ()):
        yield output.get("strategies", {})
    for proof in record.get("proofs", ()):
        yield from proof.get("strategies", {}).values()

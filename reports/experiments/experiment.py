"""One measurement of ourselves: its name, what measures it, the columns of its tables, what a reader has to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from ..records.options import Options
from .summary import Summarise, verdicts

Row = tuple[str, ...]
Columns = Mapping[str, Row]  # heading of a table -> names of its columns
Texts = tuple[tuple[str, str], ...]  # (path, text) of files


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, the names of the columns, and a tuple of texts for each row."""

    heading: str
    columns: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a measurement: tables, data for JSON, exit code, and notes for a reader of the tables.

    `made`: paths and texts of what a report writes beside its raw data.
    """

    title: str
    tables: tuple[Table, ...]
    data: Mapping[str, Any]
    code: int
    notes: tuple[str, ...] = ()
    made: Texts = ()


Measure = Callable[[str, Options, bool], Result]  # (name, options, quiet)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One measurement. `columns`: of every table that it may have; `notes`: for a reader of its tables; `summary`: what
    summary.json keeps of its data; `over`: how to measure other corpora than the usual ones, None where there are
    none."""

    name: str
    measure: Measure
    columns: Columns
    notes: tuple[str, ...] = ()
    summary: Summarise = verdicts
    over: Callable[[Sequence[str]], Measure] | None = None

    def of(self, corpora: Sequence[str]) -> Experiment:
        """The experiment over these corpora, none: the usual ones. Raises click.UsageError where it has no choice."""
        if not corpora:
            return self
        if self.over is None:
            raise click.UsageError(f"--corpus: the report {self.name} has no choice of corpora")
        return replace(self, measure=self.over(corpora))

    def run(self, options: Options, quiet: bool) -> Result:
        """Measures now; the result has the notes of the experiment before its own."""
        return self.noted(self.measure(self.name, options, quiet))

    def noted(self, result: Result) -> Result:
        """A result with the notes of its experiment before its own."""
        return replace(result, notes=(*self.notes, *result.notes))


def tabled(columns: Columns, rows: Mapping[str, Iterable[Row]]) -> tuple[Table, ...]:
    """The tables of these rows, by heading. Raises KeyError for a heading that is not declared, ValueError for a row
    that does not fit its columns."""
    tables = tuple(Table(heading, columns[heading], tuple(found)) for heading, found in rows.items())
    for t in tables:
        if wrong := next((r for r in t.rows if len(r) != len(t.columns)), None):
            raise ValueError(f"{t.heading}: {wrong} does not fit {t.columns}")
    return tables


def by_name(*experiments: Experiment) -> dict[str, Experiment]:
    """The experiments of a module, as the registry looks for them."""
    return {e.name: e for e in experiments}

"""Which findings of an audit count: the rules asked for, less those that files, comments and a baseline accept."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import click

from ..base import configuration, explanations
from ..base.configuration import Configuration
from ..base.targets import Target
from ..records.entries import Row
from . import baseline, ignores

Step = Callable[[list[Row]], list[Row]]  # what is done to records before they are written


@dataclass(frozen=True, slots=True)
class Choice:
    """The choices of the command line and the configuration about findings. `known`: the baseline to read, `kept`: the
    one to write, "" for none; `whole`: the files all of whose cases are asked for."""

    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()
    by_file: Configuration = field(default_factory=Configuration)
    whole: Collection[str] = ()
    known: str = ""
    kept: str = ""
    new_only: bool = False


def checked(choice: Choice) -> Choice:
    """The choice. Raises click.UsageError for a baseline that cannot be read or written, before anything is run."""
    if choice.new_only and not choice.known:
        raise click.UsageError("--new-only needs --baseline FILE")
    if choice.known and choice.known != choice.kept:
        baseline.read(choice.known)
    folder = os.path.dirname(os.path.abspath(choice.kept))
    if choice.kept and (not os.access(folder, os.W_OK) or os.path.isdir(choice.kept)):
        raise click.UsageError(f"--write-baseline: cannot write {choice.kept}")
    return choice


def incomplete(choice: Choice) -> Choice:
    """The choice for a run that ended early: no comment is called unused and no baseline is written, since what they
    accept may be in a case that has not run."""
    if choice.kept:
        click.echo(f"{choice.kept} was not written: the run is incomplete", err=True)
    return replace(choice, whole=(), kept="")


def whole(targets: Sequence[Target]) -> list[str]:
    """The files all of whose cases are asked for."""
    return [t.file for t in targets if not t.cases and not t.only]


def steps(choice: Choice) -> list[Step]:
    """Applies the choices to the records, in order."""
    chosen = by_rule(choice.select, choice.ignore)
    out = [chosen, lambda found: [_of_file(r, choice.by_file) for r in found], lambda found: _comments(found, choice)]
    out += [chosen]
    if choice.kept:
        out.append(lambda found: _write(found, choice.kept))
    if choice.known or choice.kept:
        out.append(lambda found: [*map(_known(choice).applied, found)])
    return out


def one_by_one(choice: Choice) -> Callable[[Row], Row] | None:
    """The choices for records that are shown as they come, in their order: as `steps`, but for what is said about
    comments when all have ended. None with a baseline to write, which accepts everything if the run comes to its end.
    """
    if choice.kept:
        return None
    chosen, known = by_rule(choice.select, choice.ignore), _known(choice) if choice.known else None

    def shown(record: Row) -> Row:
        record = ignores.split(_of_file(chosen([record])[0], choice.by_file), set())
        return known.applied(record) if known else record

    return shown


def _of_file(record: Row, by_file: Configuration) -> Row:
    """Without what the configuration does not ask of the file that the finding is in, or the case."""
    if not by_file.per_file_ignores:
        return record
    of_case = by_file.ignored(record["file"])
    kept = [
        f for f in record["findings"] if f["rule"] not in of_case | (by_file.ignored(f["file"]) if f["file"] else set())
    ]
    return {**record, "findings": kept}


def _comments(found: list[Row], choice: Choice) -> list[Row]:
    """Applies ignore comments; a comment for a rule that was not selected does not count as unused."""
    active = {n for n in _names() if (not choice.select or n in choice.select) and n not in choice.ignore}
    return ignores.applied(found, _names(), choice.whole, active)


def comments(found: Sequence[Row]) -> list[Row]:
    """The records of some cases without what comments accept."""
    return ignores.applied(found, _names())


def _names() -> list[str]:
    return [n for n in explanations.FINDINGS if n != ignores.RULE]


def _write(found: list[Row], path: str) -> list[Row]:
    count = baseline.write(path, found)
    click.echo(f"{path}: {count} finding{'s' * (count != 1)}", err=True)
    return found


def _known(choice: Choice) -> baseline.Known:
    path = choice.known or choice.kept
    return baseline.Known(baseline.read(path), path, choice.new_only)


def configured(targets: Sequence[str]) -> Configuration:
    """The configuration of these targets. Raises click.UsageError."""
    return configuration.load(targets, explanations.FINDINGS)


def by_rule(select: Collection[str], ignore: Collection[str]) -> Step:
    """Keeps the findings of the selected rules, of all if none is named, but for those ignored."""

    def keep(records: list[Row]) -> list[Row]:
        return [{**r, "findings": [f for f in r["findings"] if wanted(f["rule"])]} for r in records]

    def wanted(rule: str) -> bool:
        return (not select or rule in select) and rule not in ignore

    return keep

"""The pytest plugin: every case of the files given is a test, and `assert_proved` is an assertion about one case.

    [tool.pytest.ini_options]
    trilift_files = ["kernels/*.py"]     # or pytest --trilift 'kernels/*.py'
    trilift_unknown = "xfail"            # what UNKNOWN is: xfail, fail or pass
    trilift_level = "error"              # what fails: findings of this level, error, warning or note, and worse ones
    trilift_timeout = 300                # outer time limit of a proof, in seconds

A case runs in a process of its own; what is unchanged comes from the cache. Nothing heavy is imported before that.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trilift.lift import Case
    from trilift.reports.records.entries import Row
    from trilift.reports.records.options import Options

UNKNOWN = ("xfail", "fail", "pass")
LEVELS = ("error", "warning", "note")
FILES: pytest.StashKey[frozenset[Path]] = pytest.StashKey()


# ---- the assertion ---------------------------------------------------------------------------------------------------


def assert_proved(
    case: Case,
    *,
    against: str | None = None,
    seed: int = 0,
    timeout: float = 300.0,
    tested: bool = False,
    level: str = "error",
) -> Row:
    """The record of a case that is PROVED, without findings of a level ("error", "warning", "note") or worse; `tested`
    lets TESTED do. `against`: "reference", "formula" or the text of a formula, by default the reference if there is
    one. Raises AssertionError with the verdict, what is missing or wrong, and the findings."""
    from trilift.lift.cases.declaration import Case

    if not isinstance(case, Case):
        raise TypeError(f"assert_proved takes a case, not {type(case).__name__}: decorate it with @case(...)")
    from trilift.reports.records.record import record

    file = case.place.file if case.place else ""
    found = accepted([record(case, options(timeout, seed, against), lambda _: None, file)])[0]
    words = ("PROVED", "TESTED") if tested else ("PROVED",)
    if found["verdict"] not in words or grave(found, level) or _broken(found):
        raise AssertionError(shown(found))
    return found


def options(timeout: float, seed: int = 0, against: str | None = None, cache: str = "") -> Options:
    """How a case is run."""
    from trilift.reports.commands import prove
    from trilift.reports.records.options import Proving

    return prove.options(timeout, Proving(against, timeout), seed=seed, cache=cache, audit=True)


def accepted(records: Iterable[Mapping[str, object]]) -> list[Row]:
    """The records without the findings that comments in the source accept."""
    from trilift.reports.filters import choice as accepted

    return accepted.comments([dict(r) for r in records])


def shown(record: Row) -> str:
    """The verdict and the findings, as the command line prints them."""
    from trilift.reports.formats.text import case

    return case(record).rstrip()


def grave(record: Row, level: str) -> bool:
    """Whether there are findings of the level or worse."""
    return any(LEVELS.index(f["level"]) <= LEVELS.index(level) for f in _findings(record))


def _findings(record: Row) -> list[Row]:
    from trilift.reports.records import findings

    return findings.of(record)


def _broken(record: Row) -> bool:
    return bool({e["kind"] for e in record["errors"]} & {"case", "internal"})


# ---- collection ------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer --trilift and the settings that start with trilift_."""
    group = parser.getgroup("trilift", "proofs of Triton kernels")
    group.addoption(
        "--trilift", action="append", default=[], metavar="GLOB", help="Files whose cases are tests, each proved."
    )
    parser.addini("trilift_files", "Files whose cases are tests: patterns.", "args", default=[])
    parser.addini("trilift_unknown", "Outcome of UNKNOWN: xfail, fail or pass.", default="xfail")
    parser.addini("trilift_level", "Lowest level that fails: error, warning or note.", default="error")
    parser.addini("trilift_timeout", "Outer time limit of a proof, in seconds.", default="300")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the files that the options name. Raises pytest.UsageError for a setting that is none of its words."""
    asked = frozenset(_found(config.getoption("--trilift"), config.invocation_params.dir, "--trilift"))
    named = frozenset(_found(config.getini("trilift_files"), config.rootpath))
    config.stash[FILES] = asked | named
    for name, words in (("trilift_unknown", UNKNOWN), ("trilift_level", LEVELS)):
        if config.getini(name) not in words:
            raise pytest.UsageError(f"{name} is one of {', '.join(words)}")
    _seconds(config)
    chosen = config.args_source is pytest.Config.ArgsSource.ARGS
    new = asked if chosen else asked | named
    roots = [Path(a.partition("::")[0]).absolute() for a in config.args]
    config.args += [str(f) for f in sorted(new) if not any(f.is_relative_to(r) for r in roots)]


def _found(patterns: list[str], folder: Path, option: str = "") -> Iterator[Path]:
    """The files that the patterns name. An option that names none is an error."""
    for pattern in patterns:
        files = [Path(f).absolute() for f in glob(str(folder / os.path.expanduser(pattern)), recursive=True)]
        files = [g for f in files for g in (f.rglob("*.py") if f.is_dir() else (f,)) if g.suffix in (".py", ".ttir")]
        if option and not files:
            raise pytest.UsageError(f"{option}: no Python or .ttir file is called {pattern}")
        yield from files


def _seconds(config: pytest.Config) -> float:
    from trilift.reports.base.numbers import is_amount

    text = config.getini("trilift_timeout")
    try:
        if is_amount(seconds := float(text)):
            return seconds
    except ValueError:
        pass
    raise pytest.UsageError(f"trilift_timeout is a number of seconds above 0, not {text!r}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The cases of a file that was asked for, beside the tests in it."""
    if file_path not in parent.config.stash[FILES] or _given(file_path, parent):
        return None
    return CaseFile.from_parent(parent, path=file_path)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """pytest takes a file that is given to it for tests, and would import it here."""
    if module_path not in parent.config.stash[FILES] or not _given(module_path, parent):
        return None
    return CaseFile.from_parent(parent, path=module_path)


def _given(path: Path, parent: pytest.Collector) -> bool:
    """Whether it is an argument and has no test's name."""
    tests = any(path.match(p) for p in parent.config.getini("python_files"))
    return path.suffix == ".py" and parent.session.isinitpath(path) and not tests


class CaseFile(pytest.File):
    """The cases of one file, read in another process, unless the cache knows their names."""

    def collect(self) -> Iterator[CaseItem]:
        """One item for each case of the file."""
        for name in self._names():
            yield CaseItem.from_parent(self, name=name)

    def options(self) -> Options:
        """How its cases are run."""
        from trilift.reports.runner import cache

        return options(_seconds(self.config), cache=cache.folder())

    def target(self, *names: str) -> Any:
        """The file and cases of it, as the command line takes them."""
        from trilift.reports.base.targets import Target

        return Target(os.path.relpath(self.path), names)

    def _names(self) -> list[str]:
        from trilift.reports.records import draw
        from trilift.reports.runner import listing

        found = listing.names(self.target(), self.options())
        if isinstance(found, dict):
            raise self.CollectError("\n".join(draw.error(e) for e in found["errors"]))
        return found


class CaseItem(pytest.Item):
    """One case. Fails if it is refuted or has grave findings; the others are warnings."""

    parent: CaseFile

    def runtest(self) -> None:
        """Prove and audit the case. Raises Failed with the report that the command line prints."""
        from trilift.reports.runner import dispatch

        (record,) = accepted(dispatch.records([self.parent.target(self.name)], self.parent.options()))
        if record["verdict"] == "REFUTED" or _broken(record) or grave(record, self.config.getini("trilift_level")):
            raise Failed(shown(record))
        for f in _findings(record):
            warnings.warn_explicit(f"{f['rule']}: {f['message']}", pytest.PytestWarning, f["file"], f["line"])
        if record["verdict"] == "UNKNOWN":
            self._unknown(record)

    def _unknown(self, record: Row) -> None:
        how = self.config.getini("trilift_unknown")
        if how == "fail":
            raise Failed(shown(record))
        if how == "xfail":
            pytest.xfail(f"UNKNOWN: {record['reason']}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report of a case that fails, without a traceback; pytest's own text for any other exception."""
        return str(excinfo.value) if isinstance(excinfo.value, Failed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """File and name: a case has no line here."""
        return self.path, None, self.name


class Failed(AssertionError):
    """The reason why a case fails, in words."""

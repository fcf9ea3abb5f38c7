"""`trilift report`: reports/results from runs made now. A page and its data per corpus, with versions and date."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from . import runner
from .corpora import Result, as_json, as_markdown, measure

RESULTS = Path(__file__).parent / "results"
NAMES = ("operators", "packages", "sweep", "strangers", "bench", "mutants", "audit", "kills", "written",
         "written-packages", "mirage", "legacy", "mugraphs", "tilerules",
         "tiles")  # fmt: skip
MUTANTS = 1050
KILLS = 600
SAMPLED = 42  # cases of packages whose tests are written and run


def regenerate(names: Sequence[str], options: runner.Options, quiet: bool, folder: Path = RESULTS) -> int:
    """Measures each and writes `<name>.md` and `<name>.json`; the largest exit code of them."""
    code = 0
    for name in names or NAMES:
        result = _measure(name)(name, options, quiet)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(portable(as_markdown(result)))
        (folder / f"{name}.json").write_text(portable(as_json(result)) + "\n")
        for path, text in result.files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(portable(text))
        click.echo(f"{folder / name}.md")
        code = max(code, result.code)
    return code


def portable(text: str) -> str:
    """The text with paths from the installed packages and from this folder on, the same on every machine."""
    for prefix in (sysconfig.get_paths()["purelib"], str(RESULTS.parent.parent)):
        text = text.replace(prefix + "/", "")
    return text


def _measure(name: str) -> Callable[[str, runner.Options, bool], Result]:
    if name == "bench":
        from .bench import measure as bench

        return bench
    if name == "mutants":
        return _mutants
    if name == "audit":
        from .beside import measure as audit

        return audit
    if name == "kills":
        return _kills
    if name in ("written", "written-packages"):
        return _written
    if name == "timed":
        from .timed import measure_or_read

        return measure_or_read
    if name == "mugraphs":
        from .mugraph_mutants import measure as changed

        return changed
    if name == "tiles":
        from .tiles import measure as saturated

        return saturated
    if name == "tilerules":
        from .tile_rules import measure as rules

        return rules
    return measure


def _mutants(name: str, options: runner.Options, quiet: bool) -> Result:
    """The soundness gate over the operators and one package."""
    from . import mutants

    targets = [str(RESULTS.parent.parent / "corpus" / t) for t in ("operators", "packages/liger.py")]
    return mutants.measure(name, targets, mutants.prover, MUTANTS, options.seed, options.jobs, quiet)


def _kills(name: str, options: runner.Options, quiet: bool) -> Result:
    """The tests written for the operators against mutants of them."""
    from . import kills

    targets = [str(RESULTS.parent.parent / "corpus" / "operators")]
    return kills.measure(name, targets, KILLS, options.seed, options.jobs, quiet)


def _written(name: str, options: runner.Options, quiet: bool) -> Result:
    """The tests written for all operators, or for some cases of each package, run as they are."""
    from . import suites

    corpus, count = ("packages", SAMPLED) if name == "written-packages" else ("operators", 0)
    how = suites.How(count, options.seed, options.jobs)
    return suites.measure(name, [str(RESULTS.parent.parent / "corpus" / corpus)], how, quiet)

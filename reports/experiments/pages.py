"""`trilift report`: reports/results from runs made now. A page and its data per corpus, with versions and date."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from ..base.fingerprint import ROOT
from ..records.options import Options
from .corpus import CORPUS, Result, as_json, as_markdown, measure

RESULTS = Path(__file__).resolve().parents[1] / "results"
NAMES = ("operators", "packages", "sweep", "strangers", "bench", "mutants", "audit", "kills", "written",
         "written-packages", "mirage", "legacy", "mugraphs", "tilerules",
         "tiles")  # fmt: skip
MUTANTS = 1050
KILLS = 500


def regenerate(names: Sequence[str], options: Options, quiet: bool, folder: Path = RESULTS) -> int:
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
    for prefix in (sysconfig.get_paths()["purelib"], str(ROOT)):
        text = text.replace(prefix + "/", "")
    return text


def _measure(name: str) -> Callable[[str, Options, bool], Result]:
    if name == "bench":
        from .bench import measure as bench

        return bench
    if name == "mutants":
        return _mutants
    if name == "audit":
        from .sanitizer_comparison import measure as audit

        return audit
    if name == "kills":
        return _kills
    if name in ("written", "written-packages"):
        return _written
    if name == "timed":
        from .gpu_times import measure_or_read

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


def _changed() -> list[str]:
    """What mutants are made of: the operators and one package."""
    return [str(CORPUS / t) for t in ("operators", "packages/liger.py")]


def _mutants(name: str, options: Options, quiet: bool) -> Result:
    """The soundness gate."""
    from . import mutants

    return mutants.measure(name, _changed(), mutants.prover, MUTANTS, options.seed, options.jobs, quiet)


def _kills(name: str, options: Options, quiet: bool) -> Result:
    """The tests written for kernels against the mutants of the soundness gate."""
    from . import mutation_score

    return mutation_score.measure(name, _changed(), KILLS, options.seed, options.jobs, quiet)


def _written(name: str, options: Options, quiet: bool) -> Result:
    """The tests written for all operators, or for the cases that the page of packages shows PROVED, run as they are."""
    from . import test_suites

    targets = proved_ones(RESULTS / "packages.json") if name == "written-packages" else [str(CORPUS / "operators")]
    return test_suites.measure(name, targets, test_suites.How(0, options.seed, options.jobs), quiet)


def proved_ones(page: Path) -> list[str]:
    """The targets of a page's data that were PROVED, in its order. Raises FileNotFoundError without the page."""
    cases = json.loads(page.read_text())["cases"]
    return [f"{ROOT / c['file']}::{c['name']}" for c in cases if c["verdict"] == "PROVED"]

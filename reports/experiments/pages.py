"""`trilift corpus` prints a table, `trilift report` writes reports/results from runs made now.

A page for each experiment and one summary.json of all are part of the repository; the data of each run goes to
build/results, which git ignores."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import click

from ..base.fingerprint import ROOT
from ..records.options import Options
from . import golden, registry, summary
from .experiment import Result, Texts
from .folders import GOLDENS, RAW, RESULTS
from .renderer import RENDERERS, as_golden, as_json, as_markdown


def show(name: str, form: str, options: Options, quiet: bool, check: bool = False) -> int:
    """Runs a corpus and prints it, or with `check` how it differs from its golden text; returns the exit code."""
    result = registry.corpus(name).run(options, quiet)
    if check:
        return differs(name, result)
    click.echo(RENDERERS[form](result))
    return result.code


def differs(name: str, result: Result, folder: Path = GOLDENS) -> int:
    """Prints how a result differs from the golden text of its corpus; 1 where it does. Raises click.ClickException
    where there is no such text."""
    path = folder / f"{name}.txt"
    if not path.is_file():
        raise click.ClickException(f"{name} has no golden text: trilift corpus {name} --format golden > {path}")
    found = golden.differences(path.read_text(), as_golden(result) + "\n")
    click.echo(found or f"{name}: as in {path.name}")
    return int(bool(found))


def regenerate(
    names: Sequence[str], options: Options, quiet: bool, folder: Path = RESULTS, raw: Path = RAW,
    corpora: Sequence[str] = (),
) -> int:  # fmt: skip
    """Measures each, over these corpora if there are any, writes its page, its data and its entry of summary.json; the
    largest exit code of them. Raises click.UsageError for one that has no choice of corpora, before anything is
    measured."""
    code = 0
    for experiment in [registry.find(n).of(corpora) for n in names or registry.USUAL]:
        name = experiment.name
        result = experiment.run(options, quiet)
        data = portable(as_json(result)) + "\n"
        _write(raw, ((f"{name}.json", data), *result.made))
        _write(folder, ((page(name), as_markdown(result)),))
        summary.update(folder / "summary.json", name, summary.entry(json.loads(data), experiment.summary))
        click.echo(f"{folder / page(name)}")
        code = max(code, result.code)
    return code


def _write(folder: Path, texts: Texts) -> None:
    for path, text in texts:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(portable(text))


def page(name: str) -> str:
    """The file of an experiment's page."""
    return f"{name.replace('-', '_')}.md"


def portable(text: str) -> str:
    """The text with paths from the installed packages and from this folder on, the same on every machine."""
    for prefix in (sysconfig.get_paths()["purelib"], str(ROOT)):
        text = text.replace(prefix + "/", "")
    return text

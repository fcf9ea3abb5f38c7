"""reports/results/summary.json, made again from the data of runs: `python -m trilift.reports.experiments.summarise`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from . import registry
from .folders import RAW, SUMMARY
from .summary import entry, update


def summarise(raw: Path, output: Path, commit: str = "") -> list[str]:
    """Puts the entry of each experiment whose data is in the folder `raw` into the summary, and returns their names.
    `commit`: of data that names none."""
    found = [n for n in registry.REPORTS if (raw / f"{n}.json").is_file()]
    for name in found:
        data = json.loads((raw / f"{name}.json").read_text())
        update(output, name, entry(data, registry.find(name).summary, commit))
    return found


@click.command()
@click.option("--raw", default=str(RAW), show_default=True, help="The folder of the data.")
@click.option("-o", "output", default=str(SUMMARY), show_default=True, help="The summary.")
@click.option("--commit", default="", help="Of data that names none.")
def main(raw: str, output: str, commit: str) -> None:
    """Make summary.json from the data in a folder; entries of other experiments stay."""
    names = summarise(Path(raw), Path(output), commit)
    click.echo(f"{output}: {', '.join(names) or 'no data in ' + raw}")


if __name__ == "__main__":
    main()

"""The command line. Nothing heavy is imported before a command runs.

Exit codes: 0 nothing wrong, 1 findings or REFUTED, 2 usage error or our crash, 3 nothing to check, 4 something unknown
or unsupported. Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click

VERSION = "0.1.0"
JOBS = os.cpu_count() or 1


class Main(click.Group):
    """Commands in the order of use, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="trilift")
def main() -> None:
    """Reads a Triton kernel and says what it computes.

    TARGET is file.py, file.py::case, module:case, a folder or a .ttir file.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # child processes end with us


def running(command: Any) -> Any:
    """The options of commands that run cases."""
    for option in reversed(
        (
            click.option("--seed", default=0, show_default=True, help="Of shapes and inputs."),
            click.option("--timeout", default=120.0, show_default=True, help="Seconds per case."),
            click.option(
                "-j", "--jobs", default=JOBS, show_default="the cores", type=click.IntRange(1), help="Processes."
            ),
            click.option("--allow-unknown", is_flag=True, help="Exit 0 where it would be 4."),
            click.option("-q", "--quiet", is_flag=True, help="No progress on stderr."),
        )
    ):
        command = option(command)
    return command


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--to",
    default="text",
    type=click.Choice(["text", "latex", "torch", "json"]),
    show_default=True,
    help="Output form.",
)
@click.option(
    "--explain", is_flag=True, help="Show the steps: launches, spec, decomposition, laws used, shapes checked."
)
@running
def lift(targets: tuple[str, ...], to: str, explain: bool, allow_unknown: bool, quiet: bool, **options: Any) -> None:
    """Print the formula of each output."""
    from . import lifting, runner
    from . import targets as of

    chosen = of.resolve(targets)
    code = lifting.lift(chosen, to, runner.Options(explain=explain, **options), quiet)
    raise SystemExit(0 if code == 4 and allow_unknown else code)


@main.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--format",
    "form",
    default="table",
    type=click.Choice(["table", "json", "md"]),
    show_default=True,
    help="Output form.",
)
@running
def corpus(name: str, form: str, allow_unknown: bool, quiet: bool, **options: Any) -> None:
    """Run a corpus and print its table: operators, packages or sweep."""
    from . import corpora, runner

    code = corpora.run(name, form, runner.Options(**options), quiet)
    raise SystemExit(0 if code == 4 and allow_unknown else code)


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@running
def report(names: tuple[str, ...], allow_unknown: bool, quiet: bool, **options: Any) -> None:
    """Regenerate reports/results from runs made now: all corpora and the benchmark, or those named."""
    from . import results, runner

    code = results.regenerate(names, runner.Options(**options), quiet)
    raise SystemExit(0 if code == 4 and allow_unknown else code)


@main.command()
@click.argument("name", required=False, metavar="[RULE]")
def explain(name: str | None) -> None:
    """Say what a finding, an error, a verdict or a law means; without RULE, list them."""
    from . import rules

    click.echo(rules.explain(name))


@main.command()
@click.argument("name", required=False, metavar="[OP]")
@click.option(
    "--format", "form", default="table", type=click.Choice(["table", "json"]), show_default=True, help="Output form."
)
def ops(name: str | None, form: str) -> None:
    """Print the table of operations: what each means, and what it is called in Triton IR, libdevice and PyTorch."""
    from . import optable

    click.echo(optable.show(name, form))


@main.command()
def doctor() -> None:
    """Check this installation: versions, a kernel captured, lowered and lifted, and the packages of the corpus."""
    from . import doctor as checks

    raise SystemExit(checks.run())


if __name__ == "__main__":
    main()

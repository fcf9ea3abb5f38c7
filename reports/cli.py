"""The command line. Nothing heavy is imported before a command runs.

Exit codes: 0 nothing wrong, 1 findings or REFUTED, 2 usage error, output that cannot be written or our crash, 3 nothing
to check, 4 something unknown or unsupported, 130 and 143 ended by a signal. Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

import click

from .base import standard_output
from .base.configuration import Configured, source
from .base.numbers import DAYS, SECONDS, Seed, Size
from .base.sources import split
from .base.version import VERSION

if TYPE_CHECKING:
    from .commands.gathering import Limits

JOBS = os.cpu_count() or 1
SLOW = ("lift", "prove", "audit", "equal", "write")  # commands that import PyTorch and Triton
HELP = {"-h", "--help"}


class Main(click.Group):
    """Commands in the order of use, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named; a target in its place is audited."""
        if self.is_target(args[0]):
            return "audit", self.commands["audit"], args
        return super().resolve_command(ctx, args)

    def is_target(self, word: str) -> bool:
        """Whether a word names a file, which `audit` takes, and not a command."""
        path = split(word)[0]
        return word not in self.commands and (os.path.lexists(path) or path.endswith((".py", ".ttir")))

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. If trilift itself fails, prints one line, or a traceback with --debug, and exits with 2."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as e:
            if isinstance(e, OSError) and e.filename == standard_output.NAME:
                raise
            if isinstance(e, OSError) and e.filename is not None and "--debug" not in sys.argv:
                click.echo(f"error: {e.filename}: {e.strerror}", err=True)
                raise SystemExit(2) from None
            if "--debug" in sys.argv:
                traceback.print_exc()
            last = traceback.extract_tb(e.__traceback__)[-1]
            click.echo(f"error: trilift itself failed: {type(e).__name__}: {e}", err=True)
            click.echo(f"  --> {last.filename}:{last.lineno}\n   = help: please report this", err=True)
            raise SystemExit(2) from None


@click.group(cls=Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="trilift")
def main() -> None:
    """Reads a Triton kernel, says what it computes and proves it for every shape.

    TARGET is file.py, file.py::case, module:case, a folder or a .ttir file. `trilift TARGET` audits it.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # child processes end with us


SEED = click.option("--seed", default=0, show_default=True, type=Seed(), help="Seed of shapes and inputs.")
TIMEOUT = click.option("--timeout", default=300.0, show_default=True, type=SECONDS, help="Seconds per case.")
PROOF_TIMEOUT = click.option(
    "--timeout",
    default=300.0,
    show_default=True,
    type=SECONDS,
    help="Seconds of the processor for a proof; its case is ended after twice as long, at least 15 s more.",
)
MANY = click.option("-j", "--jobs", default=JOBS, show_default="the cores", type=click.IntRange(1), help="Processes.")
ALLOW = click.option(
    "--allow-unknown", is_flag=True, help="Exit with 0 instead of 4 if something is unknown or unsupported."
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
LIFT_ONLY = click.option("--lift-only", is_flag=True, help="Do not prove.")
RECORDS = click.option(
    "--format",
    "form",
    default="text",
    type=click.Choice(["text", "json", "jsonl"]),
    show_default=True,
    help="Output form; of jsonl a line for each case as it ends.",
)
FORM = click.option(
    "--format", "form", default="text", type=click.Choice(["text", "json"]), show_default=True, help="Output form."
)
SMT_DIR = click.option("--smt-dir", metavar="DIR", help="Write each integer condition to this folder as SMT-LIB.")
CERTIFICATE = click.option(
    "--certificate", metavar="PATH", help="Write each proof as data: to FILE.json for one case, else to a folder."
)
CHECK = click.option("--check", is_flag=True, help="Replay each proof at once, as with --certificate.")
REPLAY = click.option("--replay", metavar="DIR", help="Write a script for each counterexample to this folder.")
AUDIT_REPLAY = click.option(
    "--replay", metavar="DIR", help="Folder for scripts that reproduce the findings.  [default: .trilift/replay]"
)
FORCE = click.option("--force", is_flag=True, help="Replace files that trilift did not write.")
DEBUG = click.option("--debug", is_flag=True, help="Show whole tracebacks of failures, and the steps of each stage.")
FAIL_FAST = click.option("--fail-fast", is_flag=True, help="End the run with the first failure.")
MAX_TIME = click.option(
    "--max-time", type=SECONDS, help="Seconds for the whole run, which then shows what it has found.  [default: none]"
)
MEMORY = click.option(
    "--memory", type=Size(), default=None, metavar="SIZE",
    help="Memory that a case may take, as 800M or 4G.  [default: the machine's, divided by the processes]",
)  # fmt: skip
CACHE_DIR = click.option(
    "--cache-dir", metavar="DIR", envvar="TRILIFT_CACHE_DIR", help="Folder of kept results.  [default: user's caches]"
)
NO_CACHE = click.option("--no-cache", is_flag=True, help="Do not use or keep results.")
CLUSTER = click.option(
    "--cluster", default="", metavar="ADDRESS", help="Run on the workers of this Dask scheduler, tcp://host:port."
)
PROOF_STEPS = click.option("--explain", is_flag=True, help="Show loop invariants, conditions and the whole contract.")


def options(*rows: Any) -> Any:
    """One decorator of several, in the order in which --help shows them."""

    def decorate(command: Any) -> Any:
        for option in reversed(rows):
            command = option(command)
        return command

    return decorate


running = options(SEED, TIMEOUT, MANY, ALLOW, QUIET)
ending = options(MAX_TIME, MEMORY, FAIL_FAST)
caching = options(CACHE_DIR, NO_CACHE)


def limits_of(max_time: float | None, fail_fast: bool) -> Limits:
    """When a run ends before its last case."""
    from .commands.gathering import Limits

    return Limits(max_time, fail_fast)


def kept(cache_dir: str | None, no_cache: bool) -> str:
    """The folder of kept results, "" for none."""
    from .runner import cache

    return "" if no_cache else cache_dir or cache.folder()


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--to",
    "--format",
    "to",
    default="text",
    type=click.Choice(["text", "latex", "torch", "json", "jsonl"]),
    show_default=True,
    help="Output form.",
)
@click.option(
    "--explain", is_flag=True, help="Show the steps: launches, spec, decomposition, laws used, shapes checked."
)
@options(running, ending)
def lift(
    targets: tuple[str, ...], to: str, explain: bool, allow_unknown: bool, quiet: bool, max_time: float | None,
    fail_fast: bool, **options: Any,
) -> None:  # fmt: skip
    """Print the formula of each output."""
    from .base import targets as of
    from .commands import lift as lifting
    from .records.options import Options

    chosen = of.resolve(targets)
    limits = limits_of(max_time, fail_fast)
    code = lifting.lift(chosen, to, Options(explain=explain, **options), quiet, limits)
    raise SystemExit(0 if code == 4 and allow_unknown else code)


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--against",
    metavar="WHAT",
    help="reference, formula (the lifted one) or the text of a formula.  [default: the reference if there is one, else "
    "the formula]",
)
@options(
    RECORDS,
    PROOF_STEPS,
    SMT_DIR,
    REPLAY,
    CERTIFICATE,
    CHECK,
    SEED,
    PROOF_TIMEOUT,
    ending,
    MANY,
    CLUSTER,
    caching,
    ALLOW,
    QUIET,
    DEBUG,
)
def prove(
    targets: tuple[str, ...], against: str | None, form: str, smt_dir: str | None, replay: str | None,
    certificate: str | None, check: bool, timeout: float, cache_dir: str | None, no_cache: bool, allow_unknown: bool,
    quiet: bool, max_time: float | None, fail_fast: bool, **options: Any,
) -> None:  # fmt: skip
    """Prove for every shape that each kernel equals its reference.

    Without a reference, the formula lifted from the kernel takes its place. Prints the verdict and its contract.
    """
    from .base import targets as of
    from .commands import prove as proving
    from .records.options import Proving

    chosen = of.resolve(targets)
    folders = proving.writable(smt_dir, "--smt-dir"), proving.writable(replay, "--replay")
    written = proving.certified(certificate)
    how = Proving(proving.checked(against), timeout, *folders, certificate=written, check=check or bool(written))
    options["cache"] = kept(cache_dir, no_cache)
    limits = limits_of(max_time, fail_fast)
    code = proving.prove(chosen, form, proving.options(timeout, how, **options), quiet, limits)
    raise SystemExit(0 if code == 4 and allow_unknown else code)


@main.command()
@click.argument(
    "files", nargs=-1, required=True, metavar="CERTIFICATE...", type=click.Path(exists=True, dir_okay=False)
)
@options(
    FORM,
    click.option("--against", metavar="CASE", help="Compare with file.py::case: its sources, and what it launches."),
)
def check(files: tuple[str, ...], form: str, against: str | None) -> None:
    """Replay proofs that `trilift prove --certificate` wrote.

    A second opinion: it shares no code with the prover. Exit code 0 only if every certificate is checked.
    """
    from .commands import check as checking

    raise SystemExit(checking.run(files, form, against))


@main.command()
@click.argument("first", metavar="TARGET")
@click.argument("second", metavar="TARGET")
@options(FORM, PROOF_STEPS, SMT_DIR, REPLAY, SEED, PROOF_TIMEOUT, ALLOW, QUIET)
def equal(
    first: str, second: str, form: str, smt_dir: str | None, replay: str | None, timeout: float,
    allow_unknown: bool, quiet: bool, **options: Any,
) -> None:  # fmt: skip
    """Prove for every shape that two kernels compute the same.

    One of the two may be a PyTorch function, given as module:function.
    """
    from .base import targets as of
    from .commands import prove as proving
    from .records.options import Proving

    pair = of.single(first), of.single(second)
    how = Proving(None, timeout, proving.writable(smt_dir, "--smt-dir"), proving.writable(replay, "--replay"))
    code = proving.equal(*pair, form, proving.options(timeout, how, **options), quiet)
    raise SystemExit(0 if code == 4 and allow_unknown else code)


@main.command(cls=Configured)
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option(
    "--format",
    "forms",
    multiple=True,
    metavar="FORMAT[=FILE]",
    help="text, concise, json, jsonl, sarif, github, junit or html; to stdout without FILE. May be given again.  "
    "[default: text]",
)
@click.option("--select", metavar="RULE,...", help="Check only these rules.")
@click.option("--ignore", metavar="RULE,...", help="Skip these rules.")
@click.option("--baseline", metavar="FILE", help="Accept the findings in this file.")
@click.option("--write-baseline", metavar="FILE", help="Write the findings to this file and accept them.")
@click.option("--new-only", is_flag=True, help="Hide the findings that the baseline accepts.")
@click.option("--cases-only", is_flag=True, help="Skip files and kernels without a case.")
@options(AUDIT_REPLAY, SEED, PROOF_TIMEOUT, ending, MANY, CLUSTER, caching, ALLOW, FORCE, QUIET, DEBUG)
@click.pass_obj
def audit(
    configuration: Any, /, targets: tuple[str, ...], forms: tuple[str, ...], select: str | None, ignore: str | None,
    baseline: str | None, write_baseline: str | None, new_only: bool, cases_only: bool, replay: str | None,
    timeout: float, cache_dir: str | None, no_cache: bool, allow_unknown: bool, force: bool, quiet: bool,
    max_time: float | None, fail_fast: bool, **options: Any,
) -> None:  # fmt: skip
    """Report formulas, verdicts, contracts and findings of kernels.

    Findings come with counterexamples. TARGET may be an installed package too. Kernels that no case launches are
    listed, and checked for defects that show without a launch. Options that are not given come from [tool.trilift] in
    the nearest pyproject.toml.
    """
    from .base import explanations, written_files
    from .base import targets as of
    from .commands import audit as auditing
    from .commands import prove as proving
    from .discovery import scan as scanning
    from .filters import choice as accepted
    from .records.options import Proving

    outputs = auditing.outputs(forms, force, source(configuration, "formats", "forms"))
    written_files.check("--write-baseline", write_baseline or "", force)
    chosen = of.resolve(targets, cases_only)
    if cases_only and not chosen:
        raise SystemExit(0)
    folder = proving.writable(replay, "--replay") and (replay or "")
    selected, ignored = explanations.chosen(select, "--select"), explanations.chosen(ignore, "--ignore")
    choice = accepted.Choice(
        selected, ignored, configuration, accepted.whole(chosen), baseline or "", write_baseline or "", new_only
    )
    accepted.checked(choice)
    steps = lambda complete: accepted.steps(choice if complete else accepted.incomplete(choice))  # noqa: E731
    options["cache"] = kept(cache_dir, no_cache)
    how = proving.options(timeout, Proving(timeout=timeout), audit=True, **options)
    scan = scanning.scan([] if cases_only else targets, how)
    limits = limits_of(max_time, fail_fast)
    filters = auditing.Filters(steps, accepted.one_by_one(choice))
    code = auditing.audit(chosen, outputs, how, quiet, filters, folder, scan, limits)
    raise SystemExit(0 if (code == 4 and allow_unknown) or (code == 3 and cases_only) else code)


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("-o", "--output", required=True, metavar="FILE", help="File for the tests; a folder for several files.")
@click.option(
    "--max-examples",
    "examples",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    help="Examples drawn for each test.",
)
@options(SEED, PROOF_TIMEOUT, MAX_TIME, MEMORY, MANY, caching, FORCE, QUIET)
def write(
    targets: tuple[str, ...], output: str, cache_dir: str | None, no_cache: bool, force: bool, quiet: bool,
    max_time: float | None, **options: Any,
) -> None:  # fmt: skip
    """Write property-based tests that run with or without a GPU.

    The file imports the kernel's own file, PyTorch, Triton, pytest and hypothesis, but not trilift.
    """
    from .base import targets as of
    from .commands import write as writing

    asked = writing.Asked(cache=kept(cache_dir, no_cache), **options)
    raise SystemExit(writing.write(of.resolve(targets), output, asked, quiet, force, max_time))


@main.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("-o", "--output", required=True, metavar="FILE", help="File for the kernel; a folder for several cases.")
@click.option(
    "--at",
    multiple=True,
    metavar="M=16,K=4096",
    help="Sizes at which plans are ranked.  [default: usual for a dim's use, else 1024]",
)
@click.option("--budget", default=60.0, show_default=True, type=SECONDS, help="Seconds for the search.")
@click.option("--kernels", default=5, show_default=True, type=click.IntRange(1), help="Most kernels in a plan.")
@click.option("--operators", default=11, show_default=True, type=click.IntRange(1), help="Most operators in a kernel.")
@click.option("--engine", default="mugraph", show_default=True, type=click.Choice(["mugraph", "tiles"]),
              help="µGraphs, best first, or tile programs by equality saturation.")  # fmt: skip
@click.option("--format", "form", default="text", type=click.Choice(["text", "json"]), show_default=True,
              help="Output form.")  # fmt: skip
@click.option("--anyway", is_flag=True, help="Write files that the model holds no faster than eager PyTorch.")
@options(SEED, PROOF_TIMEOUT, MEMORY, MANY, CLUSTER, caching, FORCE, QUIET)
def optimize(
    targets: tuple[str, ...], output: str, at: tuple[str, ...], cache_dir: str | None, no_cache: bool, quiet: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Write a faster kernel for each case, proved equal to it.

    The case may launch kernels or be plain PyTorch. Sizes only rank plans: the file is proved as written, for all sizes
    of its contract. Ctrl-C writes the best plan so far; the same command continues from there.
    """
    from .base import targets as of
    from .commands import optimize as optimizing

    asked = optimizing.Asked(sizes=optimizing.sizes(",".join(at)), cache=kept(cache_dir, no_cache), **options)
    raise SystemExit(optimizing.optimize(of.resolve(targets), output, asked, quiet))


@main.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--format",
    "form",
    default="table",
    type=click.Choice(["table", "json", "md", "golden"]),
    show_default=True,
    help="Output form.",
)
@click.option("--check", is_flag=True, help="Print the differences from the golden text; exit 1 if any.")
@LIFT_ONLY
@running
@CLUSTER
@caching
def corpus(
    name: str, form: str, check: bool, lift_only: bool, cache_dir: str | None, no_cache: bool, allow_unknown: bool,
    quiet: bool, timeout: float, **options: Any,
) -> None:  # fmt: skip
    """Print the table of a corpus.

    NAME is operators, packages, strangers, broken, sound, legacy, mirage, trinity or sweep.
    """
    from .commands import prove as proving
    from .experiments import pages
    from .records.options import Proving

    if options["cluster"] and name in ("legacy", "mirage", "trinity", "sweep"):
        raise click.UsageError(f"--cluster: corpus {name} is measured on this machine only")
    how = None if lift_only else Proving(timeout=timeout)
    chosen = proving.options(timeout, how, cache=kept(cache_dir, no_cache), **options)
    code = pages.show(name, form, chosen, quiet, check)
    raise SystemExit(0 if code == 4 and allow_unknown else code)


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--corpus",
    "corpora",
    multiple=True,
    metavar="NAME",
    type=click.Choice(["operators", "packages", "broken", "sound", "all"]),
    help="Of strategies: the corpus to count (operators, packages, broken, sound, all); repeatable.",
)
@click.option(
    "--keep", default="", metavar="DIR", help="Keep the results of cases here; a run that was stopped goes on there."
)
@LIFT_ONLY
@running
def report(
    names: tuple[str, ...], corpora: tuple[str, ...], keep: str, lift_only: bool, allow_unknown: bool, quiet: bool,
    timeout: float, **options: Any,
) -> None:  # fmt: skip
    """Run experiments and write their pages to reports/results.

    Without NAME, runs the usual ones. Updates summary.json beside the pages; raw data goes to build/results.
    """
    from .commands import prove as proving
    from .experiments import pages
    from .records.options import Proving

    how = None if lift_only else Proving(timeout=timeout)
    chosen = proving.options(timeout, how, cache=keep, **options)
    code = pages.regenerate(names, chosen, quiet, corpora=corpora)
    raise SystemExit(0 if code == 4 and allow_unknown else code)


@main.command()
@click.argument("name", required=False, metavar="[RULE]")
def explain(name: str | None) -> None:
    """Explain a finding, an error, a verdict or a law.

    Without RULE, lists them.
    """
    from .base import explanations

    click.echo(explanations.explain(name))


@main.command()
@click.argument("name", required=False, metavar="[OP]")
@click.option("--domains", is_flag=True, help="Print which analysis knows which operation instead.")
@click.option(
    "--format", "form", default="table", type=click.Choice(["table", "json"]), show_default=True, help="Output form."
)
def ops(name: str | None, domains: bool, form: str) -> None:
    """Print the table of operations.

    A row shows the meaning of an operation, and its names in Triton IR, libdevice and PyTorch.
    """
    from .commands import ops as optable

    click.echo(optable.show(name, form, domains))


@main.group(name="cache")
def cache_group() -> None:
    """Show or shrink the results that are kept."""


@cache_group.command()
@CACHE_DIR
def info(cache_dir: str | None) -> None:
    """Print where results are kept, how many, and how old."""
    from .commands import kept_results

    raise SystemExit(kept_results.info(kept(cache_dir, False)))


@cache_group.command()
@CACHE_DIR
@click.option("--days", default=60.0, show_default=True, type=DAYS, help="Age of what may stay.")
def prune(cache_dir: str | None, days: float) -> None:
    """Remove old results, and the oldest ones of a cache that is too large."""
    from .commands import kept_results

    raise SystemExit(kept_results.prune(kept(cache_dir, False), days))


@cache_group.command()
@CACHE_DIR
def clear(cache_dir: str | None) -> None:
    """Remove all results, and all inputs on which a case failed."""
    from .commands import kept_results

    raise SystemExit(kept_results.clear(kept(cache_dir, False)))


def run() -> None:
    """Runs the command line of this process: in a daemon, where one runs and the command is one that imports much."""
    given = sys.argv[1:]
    if given and (given[0] in SLOW or main.is_target(given[0])) and not {*given} & HELP:
        from .runner import daemon_client

        if (code := daemon_client.ask(given)) is not None:
            raise SystemExit(code)
    raise SystemExit(command(given))


def command(given: list[str]) -> int:
    """Runs one command in this process; returns its exit code. A SIGINT and an output that cannot be written are told
    in a line on stderr."""
    from .runner.stopping import Stopped, interruptible

    standard_output.guard()
    code: object = 0
    try:
        with interruptible():
            main.main(given, prog_name="trilift")
    except SystemExit as e:
        code = e.code or 0
    except Stopped as e:
        click.echo(e.why, err=True)
        code = e.code
    except OSError as e:
        if e.filename != standard_output.NAME:
            raise
        return standard_output.failed(e)
    return standard_output.finished(code if isinstance(code, int) else 1)


@main.command()
def start() -> None:
    """Start a process that keeps PyTorch and Triton imported.

    While it runs, `lift`, `prove`, `audit`, `equal` and `write` answer at once.
    """
    from .runner import daemon_client

    raise SystemExit(daemon_client.start(f"{__name__}:serve"))


def serve(path: str) -> None:
    """In the process that `trilift start` starts: runs the commands that come to a socket of this path."""
    from .runner import daemon

    daemon.serve(path, lambda args: sys.exit(command(args)))


@main.command()
def stop() -> None:
    """Stop the process that `trilift start` started."""
    from .runner import daemon_client

    raise SystemExit(daemon_client.stop())


@main.command()
def status() -> None:
    """Say whether that process runs."""
    from .runner import daemon_client

    raise SystemExit(daemon_client.status())


@main.command()
def doctor() -> None:
    """Check this installation.

    Prints versions and the packages of the corpus, and captures, lowers and lifts a kernel.
    """
    from .commands import doctor as checks

    raise SystemExit(checks.run())


if __name__ == "__main__":
    run()

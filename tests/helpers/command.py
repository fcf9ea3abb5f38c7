"""`trilift` as the tests of commands run it: one process serves all commands, whose cases are forks of it and see
stand-ins for the stages that take long."""

from __future__ import annotations

import importlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner

from trilift.lift.runtime import isolate
from trilift.reports import cli
from trilift.reports.commands import prove
from trilift.reports.runner import local

GRACE_SECONDS = 13.0  # for what is no stand-in


@dataclass(frozen=True)
class Done:
    """What a command did."""

    exit_code: int
    output: str
    stdout: str
    stderr: str


@contextmanager
def commands(
    folder: Path, stand_in: Callable[[], None], *first: str, environment: dict[str, str] | None = None
) -> Iterator[Callable[..., Done]]:
    """Runs `trilift FIRST ARGUMENTS` in the folder. `stand_in`: a function of a module that puts stand-ins into place,
    in the process that serves; `environment`: variables of that process."""
    make = multiprocessing.get_context("spawn")
    here, there = make.Pipe()
    process = make.Process(target=_serve, args=(there, folder, stand_in))
    with patch.dict(os.environ, environment or {}):
        process.start()
    there.close()

    def run(*args: str) -> Done:
        here.send((*first, *args))
        done: Done = here.recv()
        return done

    try:
        yield run
    finally:
        here.send(None)
        process.join(10)


def _serve(there: Connection, folder: Path, stand_in: Callable[[], None]) -> None:
    """The process has no threads: what other tests have started would be missing in a fork."""
    for module in isolate.PRELOAD:  # as the fork server has them
        importlib.import_module(module)
    stand_in()
    vars(local)["run_all"] = vars(prove)["run_all"] = partial(_forked, isolate.run_all)
    vars(local)["stream"] = partial(_forked, isolate.stream)
    vars(prove).update(GRACE_SECONDS=GRACE_SECONDS)
    os.chdir(folder)
    while (args := there.recv()) is not None:
        done = CliRunner().invoke(cli.main, args, catch_exceptions=False)
        there.send(Done(done.exit_code, done.output, done.stdout, done.stderr))


def _forked(
    run: Callable[..., Any], function: Any, tasks: Any, jobs: int, timeout: float, context: str, *rest: Any, **more: Any
) -> Any:
    return run(function, tasks, jobs, timeout, "fork", *rest, **more)

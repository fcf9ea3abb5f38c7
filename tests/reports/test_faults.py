"""Faults that are made by code: a sample of them ends well, and an end that is not well is counted."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trilift.reports.experiments import faults
from trilift.reports.experiments.faults import endings
from trilift.reports.experiments.faults.case_faults import CASES
from trilift.reports.experiments.faults.commands_under_limit import Running, alive, descendants, kill, output, wait
from trilift.reports.experiments.faults.endings import ends_in_child
from trilift.reports.experiments.faults.expectations_of_ends import incomplete, refused, rows
from trilift.reports.experiments.faults.fault import HANG, LOST, RIGHT, TRACEBACK, Ended, Fault, attempt
from trilift.reports.experiments.faults.fault_table import TIMES
from trilift.reports.experiments.faults.file_faults import FILES
from trilift.reports.experiments.faults.text_faults import TEXTS, ended_well, mutant

SEED = 0
NAMES = {f.name: f for f, _ in TIMES}


def document(incomplete: bool = False, **verdicts: str) -> str:
    cases = [{"name": n, "verdict": v, "errors": [{"kind": "crash"}] * (n == "bad")} for n, v in verdicts.items()]
    return json.dumps({"cases": cases} | ({"incomplete": "by SIGINT"} if incomplete else {}))


WHOLE = Ended(4, document(first="PROVED", bad="UNKNOWN", last="PROVED"))
SHORT = Ended(130, document(True, first="PROVED"))


def ending(ended: Ended, expected: Callable[[Ended], str]) -> Fault:
    return Fault("made up", lambda folder, seed: ended, expected)


# ---- how an attempt is judged ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "expected", "end"),
    [
        (WHOLE, rows("crash"), RIGHT),
        (WHOLE, rows("memory"), LOST),
        (Ended(0, document(first="PROVED", bad="UNKNOWN")), rows(), LOST),
        (Ended(1, document(first="PROVED", last="REFUTED")), rows(), LOST),
        (Ended(0, "no JSON"), rows(), LOST),
        (Ended(None, WHOLE.out), rows("crash"), HANG),
        (Ended(2, WHOLE.out, "Traceback (most recent call last)"), rows("crash"), TRACEBACK),
        (Ended(2, err="error: trilift itself failed: KeyError"), refused("KeyError"), TRACEBACK),
        (Ended(2, err="mine.json was not written by trilift"), refused("mine.json"), RIGHT),
        (Ended(0, err="mine.json was not written by trilift"), refused("mine.json"), LOST),
        (Ended(2, err="another word"), refused("mine.json"), LOST),
        (SHORT, incomplete(130), RIGHT),
        (SHORT, incomplete(143), LOST),
        (Ended(130, document(first="PROVED")), incomplete(130), LOST),
        (Ended(130, document(True)), incomplete(130), LOST),
    ],
)
def test_an_end_is_of_one_kind(ended: Ended, expected: Callable[[Ended], str], end: str, tmp_path: Path) -> None:
    assert attempt(ending(ended, expected), tmp_path, SEED).end == end


@pytest.mark.parametrize(("ended", "column"), [(Ended(None), 3), (Ended(1, err="Traceback (most recent call last)"), 4),
                                               (Ended(0), 5)])  # fmt: skip
def test_what_is_wrong_is_counted_and_fails(ended: Ended, column: int) -> None:
    found = faults.measured(((ending(WHOLE, rows()), 2), (ending(ended, rows()), 3)), SEED, quiet=True)
    good, bad = found.tables[0].rows
    assert good[1:] == ("2", "2", "0", "0", "0")
    assert bad[1:3] == ("3", "0") and bad[column] == "3" and bad[3:].count("0") == 2
    assert found.code == 1 and len(found.data["wrong"]) == 3
    assert faults.measured(((ending(WHOLE, rows()), 2),), SEED, quiet=True).code == 0


def test_a_call_that_raises_or_hangs_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(endings, "CALL_SECONDS", 1)

    def endless() -> None:
        while True:
            pass

    def wrong(folder: Path, text: bytes) -> None:
        raise KeyError(text)

    assert ends_in_child(endless) == endings.HUNG
    made = [Fault("", mutant(lambda: [b"x"], read), ended_well) for read in (wrong, lambda folder, text: endless())]
    assert [attempt(f, tmp_path, SEED).end for f in made] == [TRACEBACK, HANG]
    assert (
        attempt(Fault("", mutant(lambda: [b"x"], lambda folder, text: text), ended_well), tmp_path, SEED).end == RIGHT
    )


def test_a_command_that_hangs_has_no_exit_code_and_its_processes_are_found(tmp_path: Path) -> None:
    for name in ("out", "err"):
        output(tmp_path, name).touch()
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    process = subprocess.Popen([sys.executable, "-c", code])
    assert wait(lambda: len(descendants(process.pid)) == 1, 20)
    below = descendants(process.pid)
    assert Running(process, tmp_path).end(0.2).code is None
    process.kill()
    process.wait()
    assert alive(below) == below
    kill(below)
    assert wait(lambda: not alive(below), 10)


# ---- a sample --------------------------------------------------------------------------------------------------------


def test_every_fault_has_a_name_of_its_own_and_is_tried() -> None:
    assert len(NAMES) == len(TIMES) and all(count > 0 for _, count in TIMES)


@pytest.mark.parametrize("name", [f.name for f in TEXTS])
def test_a_sample_of_texts(name: str, tmp_path: Path) -> None:
    seeds = random.Random(SEED).sample(range(10_000), 3)
    assert [(s, a) for s in seeds if (a := attempt(NAMES[name], tmp_path, s)).end != RIGHT] == []


@pytest.mark.parametrize("fault", [CASES[0], FILES[-1]], ids=lambda f: f.name)
def test_a_sample_of_commands(fault: Fault, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    found = attempt(fault, folder, SEED)
    assert found.end == RIGHT, found.why

"""The prover as users run it: `trilift prove` and `trilift equal` in processes of their own, on kernels with loops."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import kernels_prove
import pytest

from trilift.lift.runtime.budget import GUARD_SECONDS, Guard
from trilift.verify import pipeline, prove
from trilift.verify.integers import solver
from trilift.verify.model.verdict import Claim, interrupted, unknown
from trilift.verify.refutation import contract

KERNELS = Path(kernels_prove.__file__)


def trilift(*args: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "trilift", *args, "-q"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=KERNELS.parents[2])
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any], Path]:
    """Exit code and records of one run over the file, and the folder with scripts and conditions."""
    folder = tmp_path_factory.mktemp("proofs")
    code, out = trilift("prove", str(KERNELS), "--format", "json", "--explain", "-j", "2", "--smt-dir",
                        str(folder / "smt"), "--replay", str(folder / "replay"))  # fmt: skip
    return code, {c["name"]: c for c in json.loads(out)["cases"]}, folder


def test_right_kernels_are_proved_and_the_wrong_one_is_refuted(ran: Any) -> None:
    code, cases, _ = ran
    assert {n: c["verdict"] for n, c in cases.items()} == {"online": "PROVED", "off": "REFUTED", "wide": "PROVED"}
    assert code == 1 and "M * N < 2^31" in cases["online"]["contract"]
    assert cases["off"]["findings"][0]["rule"] == "wrong-result"


def test_a_proof_has_its_evidence(ran: Any) -> None:
    (proof,) = ran[1]["online"]["proofs"]
    assert proof["conditions"]["open"] == 0
    assert {"normal form", "linear"} <= proof["conditions"]["by"].keys()
    told = {step["title"]: step["text"] for step in ran[1]["online"]["explain"]}
    invariants = told["out: loop invariants"]
    assert re.search(r"line \d+: top\(n\d\) = amax\(", invariants) and "sum(" in invariants


def test_texts_are_in_the_language_of_formulas(ran: Any) -> None:
    text = json.dumps([ran[1]["online"]["explain"], ran[1]["online"]["contract"], ran[1]["off"]["reason"]])
    assert not re.search(r"add\(|mul\(|le\(|%\d|< \*|\bt\d\b|~\d", text)


def test_conditions_are_refuted_by_a_solver_that_reads_them(ran: Any) -> None:
    files = sorted(Path(ran[1]["online"]["proofs"][0]["smt"]).iterdir())
    assert files and all(solver.contradiction(p.read_text(), 5.0) for p in files)


def test_the_counterexample_runs(ran: Any) -> None:
    (script,) = (ran[2] / "replay").iterdir()
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert "off" in script.name and "out" in done.stdout and done.returncode != 2, done.stderr


@pytest.mark.parametrize(
    ("first", "second", "code", "verdict"),
    [("online", "wide", 0, "PROVED"), ("online", "plain", 0, "PROVED"), ("off", "online", 1, "REFUTED")],
)
def test_two_kernels_are_compared(first: str, second: str, code: int, verdict: str) -> None:
    got, out = trilift("equal", f"{KERNELS}::{first}", f"{KERNELS}::{second}")
    assert (got, f": {verdict}" in out.splitlines()[0]) == (code, True), out


def test_without_invariants_loops_stay_open() -> None:
    case, plain = kernels_prove.online, kernels_prove.plain
    (proof,) = prove(case, other=plain, invariants=False, fallback=False)
    assert proof.verdict.value == "UNKNOWN" and "invariants" in proof.reason
    assert proof.place is not None and proof.place.file.endswith("kernels_prove.py")
    (proof,) = prove(case, other=plain, fallback=False)
    assert proof.verdict.value == "PROVED"


# ---- time ------------------------------------------------------------------------------------------------------------

SHORT = 1e-6  # seconds of the processor


def test_want_of_time_is_unknown_and_never_tested() -> None:
    (proof,) = prove(kernels_prove.online, other=kernels_prove.plain, timeout=SHORT)
    assert (proof.verdict.value, proof.cause) == ("UNKNOWN", "timeout")
    assert proof.reason == "time ran out after 1e-06 s, during the proof"


def test_an_input_that_fails_refutes_also_where_time_ran_out() -> None:
    (proof,) = prove(kernels_prove.off, timeout=SHORT)
    assert proof.verdict.value == "REFUTED"


def test_want_of_steps_may_be_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(pipeline.BUDGETS, proof=replace(pipeline.BUDGETS.proof, steps=10))
    monkeypatch.setattr(pipeline, "BUDGETS", few)
    (proof,) = prove(kernels_prove.online, other=kernels_prove.plain)
    assert (proof.verdict.value, proof.cause) == ("TESTED", "out-of-steps")


def test_time_that_ran_out_unseen_is_told() -> None:
    """Where the error was caught, a condition is open: that is not what the verdict rests on."""
    open_ = unknown(Claim("out", "formula"), "load in bounds: not shown", cause="Undecided: load in bounds")
    guard = Guard(30.0)
    assert interrupted(open_, guard) is open_
    guard.strike()
    late = interrupted(open_, guard)
    assert late.cause == "timeout" and interrupted(late, guard) is late
    assert late.reason == "time ran out after 30 s, during the proof; open then: load in bounds: not shown"


def test_time_that_ran_out_in_the_search_for_a_contract_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*args: Any) -> None:
        args[-1].guard.strike()

    monkeypatch.setattr(contract, "infer", late)
    (proof,) = prove(kernels_prove.online, other=kernels_prove.plain, invariants=False)
    assert (proof.verdict.value, proof.cause) == ("UNKNOWN", "timeout")
    assert proof.reason.startswith(
        f"time ran out after {GUARD_SECONDS:.0f} s, during the search for a contract; open then: "
    )

"""No clock decides what is found or proved: budgets count steps, and a clock is only an outer limit or a report.

The same command says the same on a machine that is many times slower. A number that limits something says in which
unit.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trilift.lift.runtime.budget import AuditBudget, Budgets, SearchBudget
from trilift.lift.runtime.isolate import run

ROOT = Path(__file__).parents[2]
PACKAGES = ("lift", "verify", "superopt")
NAMES = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
CLOCKS = {*NAMES, *(f"{n}_ns" for n in NAMES)}
GUARD = "the outer time limit, which says that it struck"
REPORTED = "seconds that are only reported"
READS_CLOCKS = {
    "lift/runtime/budget.py": GUARD,
    "lift/runtime/isolate.py": "the kill of a process that does not answer",
    "lift/pipeline.py": REPORTED,
    "verify/pipeline.py": REPORTED,
    "verify/audit/examination.py": REPORTED,
    "verify/fields/identity_test.py": REPORTED,
    "verify/integers/smt.py": REPORTED,
    "verify/integers/solver.py": REPORTED,
    "verify/loops/invariant.py": REPORTED,
    "verify/memory/lane_order.py": REPORTED,
    "verify/memory/safety.py": REPORTED,
    "verify/memory/stores.py": REPORTED,
    "verify/mutation/soundness_gate.py": REPORTED,
    "verify/proof/prover.py": REPORTED,
    "superopt/accept/acceptance.py": REPORTED,
    "superopt/accept/timing.py": "measures kernels on a device",
    "superopt/jobs.py": REPORTED,
    "superopt/optimize.py": REPORTED,
    "superopt/search/algorithm1.py": f"{GUARD}: of an experiment",
    "superopt/search/best_first.py": f"{GUARD}: of `trilift optimize --budget`",
    "superopt/tiles/engine.py": f"{GUARD}: of `trilift optimize --budget`",
}
COMPARED = {"lift/runtime/isolate.py", *(f for f, why in READS_CLOCKS.items() if GUARD in why)}
BARE_TIMES = {"SECONDS", "SLOWEST", "GRACE", "PATIENCE"}
BARE = {*BARE_TIMES, "LIMIT", "FEW", "MOST", "ELEMENTS", "ROUNDS", "TOGETHER", "TOLERANCE"}


def files() -> list[Path]:
    return [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]


def reads(tree: ast.AST) -> list[ast.Call]:
    """Calls of a clock or of a timer."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return [
        n
        for n in found
        if n.func.attr in ("setitimer", "alarm") or (n.func.attr in CLOCKS and ast.unparse(n.func.value) == "time")
    ]


def decides(tree: ast.AST) -> bool:
    """Whether a clock is compared with anything."""
    return any(reads(n) for n in ast.walk(tree) if isinstance(n, ast.Compare))


@pytest.mark.smoke
def test_clocks_are_read_only_where_a_reason_is_given() -> None:
    texts = {str(p.relative_to(ROOT)): p.read_text() for p in files()}
    found = {name: ast.parse(text) for name, text in texts.items() if "time." in text or "signal." in text}
    assert {name for name, tree in found.items() if reads(tree)} == READS_CLOCKS.keys()
    assert {name for name, tree in found.items() if decides(tree)} <= COMPARED


@pytest.mark.smoke
def test_a_clock_that_decides_would_be_seen() -> None:
    assert decides(ast.parse("import time\nif time.process_time() > end:\n    stop()"))
    assert not decides(ast.parse("import time\nstart = time.perf_counter()"))
    assert reads(ast.parse("signal.setitimer(signal.ITIMER_PROF, 1)"))


def constants(tree: ast.Module) -> Iterator[str]:
    """The names of numbers at the top of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            pairs = [(t, node.value) for t in node.targets]
            pairs += [p for t, v in pairs if isinstance(t, ast.Tuple) and isinstance(v, ast.Tuple)
                      for p in zip(t.elts, v.elts, strict=True)]  # fmt: skip
            yield from (t.id for t, v in pairs if isinstance(t, ast.Name) and is_number(v))


def is_number(node: ast.expr) -> bool:
    try:
        return isinstance(eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}}), int | float)
    except Exception:
        return False


@pytest.mark.smoke
def test_numbers_that_limit_something_say_in_which_unit() -> None:
    found = {(str(p.relative_to(ROOT)), n) for p in files() for n in constants(ast.parse(p.read_text())) if n in BARE}
    assert found == set()
    assert list(constants(ast.parse("SECONDS, LIMIT = 10.0, 1 << 14\nWORD = 'x'"))) == ["SECONDS", "LIMIT"]


# ---- the same on a slower machine ------------------------------------------------------------------------------------

SLOWER = 20


def slowed(factor: float) -> None:
    """Every clock of this process runs so many times faster, as on a machine that is so many times slower."""
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        real = getattr(time, name)
        begin = real()
        setattr(time, name, lambda real=real, begin=begin: begin + factor * (real() - begin))


def found(file: str, name: str, factor: float, event: Any) -> str:
    """All that is said of a case, but for seconds."""
    from trilift.lift import lift
    from trilift.lift.capture.case_files import load
    from trilift.reports.records.options import Options, Proving
    from trilift.reports.records.proof_record import plain
    from trilift.verify import pipeline
    from trilift.verify.audit import examination

    def small(budgets: Budgets) -> Budgets:
        """So that budgets end stages in this test."""
        return replace(budgets, search=SearchBudget(steps=500_000), audit=AuditBudget(watched_steps=500_000))

    for module in (pipeline, examination):
        module.BUDGETS = small(module.BUDGETS)
    slowed(factor)
    case = load(file, [name] if name else [])[0]
    said = examination.audit(case, lifted=lift(case), timeout=600.0)
    options = Options(proving=Proving())
    proofs = [plain(p, {"file": file, "name": name, "where": ""}, options) for p in said.proofs]
    findings = [(f.rule, str(f.place), f.message) for f in said.findings]
    return repr((without_seconds(proofs), findings, said.unknown, said.watched))


def without_seconds(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: without_seconds(v) for k, v in x.items() if k != "seconds"}
    return [without_seconds(v) for v in x] if isinstance(x, list | tuple) else x


CASES = (
    ("operators/softmax.py", "softmax1"),
    ("broken/42_truncated_constant.py", ""),
    ("operators/quantised.py", "quantise_rows"),
)


@pytest.mark.parametrize(("file", "name"), CASES)
def test_a_slower_machine_finds_the_same(file: str, name: str) -> None:
    path = str(ROOT / "corpus" / file)
    # from a fork server: egglog's threads, which this process may have, do not live on in a fork
    usual, slow = (run(found, path, name, factor, context="forkserver") for factor in (1, SLOWER))
    assert (usual.failure, slow.failure) == (None, None), usual.log + slow.log
    assert usual.value == slow.value

"""Programs of the fuzzer and mutants of them: what the prover says is kept.

`make fuzz` judges verdicts by execution. These are found in this process, where a defect that is planted is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trilift.lift.runtime import budget
from trilift.lift.runtime.session import Session
from trilift.reports.experiments.fuzz import prover
from trilift.reports.experiments.fuzz.mutate import mutants
from trilift.reports.experiments.fuzz.prover import LIMITS, Task
from trilift.reports.experiments.fuzz.random_programs import program
from trilift.reports.experiments.fuzz.reference import source

SEED, MUTANTS, SHOWN_CHARACTERS = 0, 2, 120
NUMBERS = [k for k in range(50) if k not in (0, 1, 4)]  # those took longest
QUICK = Task((), (), (), ((),), quick=True)  # no counterexample is looked for


@contextmanager
def small_budgets() -> Iterator[None]:
    """The fuzzer's budgets, and then those from before."""
    before = {
        (stage, name): getattr(getattr(budget.BUDGETS, stage), name) for stage, of in LIMITS.items() for name in of
    }
    prover.limit()
    try:
        yield
    finally:
        for (stage, name), steps in before.items():
            object.__setattr__(getattr(budget.BUDGETS, stage), name, steps)


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_a_generated_program_and_its_mutants(number: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    p = program(SEED, number)
    lines = []
    for k, m in enumerate([None, *mutants(p, SEED + number, MUTANTS)]):
        path = tmp_path / f"{k}.py"
        path.write_text(source(p, m.program if m else None))
        with small_budgets(), Session():
            told = prover.told(str(path), QUICK)
        lines += [
            f"{m.text if m else 'as it is'}: {told.verdict}",
            *(f"  {c[:SHOWN_CHARACTERS]}" for c in told.clauses),
        ]
    golden(f"generated/{SEED}_{number}.txt", "".join(f"{line}\n" for line in lines))

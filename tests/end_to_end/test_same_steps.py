"""Two processes do the same work: the same questions to z3 and the same steps, whatever the seed of Python's hashes and
wherever objects lie in memory. A proof that came to other questions in another process could end otherwise too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from trilift.lift.terms import construct as T

ROOT = Path(__file__).parents[2]

WORK = """
import hashlib, json, sys
from trilift.lift.capture import case_files
from trilift.reports.records.options import Options, Proving
from trilift.reports.records.record import record
from trilift.verify.integers import solver

digest, asked = hashlib.md5(), solver._asked

def counted(s, resources, meter=None):
    answer, used = asked(s, resources, meter)
    digest.update(f"{s.sexpr()} {answer} {used}".encode())
    return answer, used

solver._asked = counted
[case] = case_files.load(sys.argv[1], [sys.argv[2]])
found = record(case, Options(proving=Proving(), debug=True), lambda event: None, sys.argv[1])
print(json.dumps([found["verdict"], found["steps"], digest.hexdigest()]))
"""


def work(file: str, name: str, seed: int) -> list[object]:
    """Verdict, steps, and a digest of all questions to z3, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(ROOT / "corpus/operators" / file), name],
        cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_same_questions_in_every_process() -> None:
    first, second = (work("matmul.py", "matmul", seed) for seed in (1, 2))
    assert first == second
    assert first[0] == "PROVED" and first[1]


def test_a_set_of_terms_is_met_in_the_order_of_ids() -> None:
    terms = [T.make("exp", T.node("scalar", (), f"s{k}")) for k in range(5)]
    assert [hash(t) for t in terms] == [t.id for t in terms]

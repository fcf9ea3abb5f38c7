"""`trilift --help` is quick and imports nothing heavy; `from trilift import case` is the decorator, always."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

HEAVY = ("torch", "triton", "egglog", "numpy", "z3", "hypothesis")
pytestmark = pytest.mark.smoke


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_help_imports_nothing_heavy() -> None:
    code = f"""
import sys
from trilift.reports.cli import main
main(["--help"], standalone_mode=False)
print([m for m in {HEAVY} if m in sys.modules])
"""
    assert python(code).splitlines()[-1] == "[]"


def test_help_is_quick() -> None:
    """Less than 0.3 s; the best of a few, since other processes share the machine."""

    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "trilift", "--help"], capture_output=True, check=True)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.3


def test_lift_imports_nothing_heavy() -> None:
    assert python(f"import sys, trilift; print([m for m in {HEAVY} if m != 'numpy' and m in sys.modules])") == "[]"


@pytest.mark.parametrize(
    "before", ["", "import trilift.lift.cases.declaration;", "from trilift.lift.cases.declaration import Case;"]
)
def test_case_is_the_decorator(before: str) -> None:
    assert (
        python(f"{before}from trilift import case, lift; print(type(case).__name__, callable(lift))") == "function True"
    )

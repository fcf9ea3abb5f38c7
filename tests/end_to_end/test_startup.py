"""`trilift --help` is quick and imports nothing heavy; `from trilift import case` is the decorator, always."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval

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


def test_help_imports_few_packages() -> None:
    """`trilift --help` takes as long as what it imports: Python's own modules, click, and ours."""
    code = """
import sys
before = set(sys.modules)
from trilift.reports.cli import main
main(["--help"], standalone_mode=False)
found = (getattr(m, "__file__", None) or "" for n, m in sys.modules.items() if n not in before)
print(sorted({f.partition("site-packages/")[2].partition("/")[0] for f in found if "site-packages/" in f}))
"""
    assert set(literal_eval(python(code).splitlines()[-1])) <= {"click", "rich_click", "rich"}


def test_lift_imports_nothing_heavy() -> None:
    assert python(f"import sys, trilift; print([m for m in {HEAVY} if m != 'numpy' and m in sys.modules])") == "[]"


@pytest.mark.parametrize(
    "before", ["", "import trilift.lift.cases.declaration;", "from trilift.lift.cases.declaration import Case;"]
)
def test_case_is_the_decorator(before: str) -> None:
    assert (
        python(f"{before}from trilift import case, lift; print(type(case).__name__, callable(lift))") == "function True"
    )

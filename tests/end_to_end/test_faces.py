"""The public face of each sub-package: what its `__init__` says and re-exports, imported when it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ".".join(p.parent.relative_to(ROOT).parts)
    for package in ("lift", "verify", "superopt", "reports")
    for p in sorted((ROOT / package).rglob("__init__.py"))
    if "results" not in p.parts
]
FACES = [p for p in PACKAGES if "face(" in (ROOT / p.replace(".", "/") / "__init__.py").read_text()]
HEAVY = ("torch", "triton", "egglog", "z3", "hypothesis")

pytestmark = pytest.mark.smoke


def source(package: str) -> ast.Module:
    return ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is(package: str) -> None:
    assert ast.get_docstring(source(package))


def test_every_folder_has_a_face() -> None:
    """But those that register what they have, and are asked for it by the name of a row; and the checker, which
    imports nothing else of trilift."""
    folders = {p for p in PACKAGES if "." in p and not p.startswith("reports.experiments")}
    assert folders - set(FACES) == {
        "lift.checker", "lift.interpreter.handlers", "reports.formats", "verify.audit.rules",
        "verify.normal_form.rules",
    }  # fmt: skip


@pytest.mark.parametrize("package", FACES)
def test_a_name_is_what_its_module_defines(package: str) -> None:
    """And what type checkers are told: the two lists agree."""
    told = {
        a.asname: (node.module, a.name)
        for branch in ast.walk(source(package))
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for a in node.names
    }
    face = import_module(f"trilift.{package}")
    assert sorted(told) == face.__all__
    for name, (module, original) in told.items():
        assert getattr(face, name) is getattr(import_module(f"trilift.{package}.{module}"), original)


@pytest.mark.parametrize("package", FACES)
def test_a_face_is_small_and_hides_no_module(package: str) -> None:
    folder = ROOT / package.replace(".", "/")
    names = set(import_module(f"trilift.{package}").__all__)
    assert 0 < len(names) <= 10
    assert names.isdisjoint(p.stem for p in folder.iterdir())


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'trilift.lift.terms' has no attribute 'Terms'"):
        import_module("trilift.lift.terms").Terms  # noqa: B018


def test_a_face_imports_nothing_heavy() -> None:
    light = [p for p in FACES if p != "verify.normal_form"]  # which imports its families, so that no rule is missing
    lines = "".join(f"import trilift.{p}\n" for p in light)
    code = f"import sys\n{lines}print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

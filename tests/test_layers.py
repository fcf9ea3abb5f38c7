"""Imports go one way: lift < verify < superopt < reports; only tests, reports and the command line import corpus."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ["lift", "verify", "superopt", "reports"]
MAY_IMPORT = {layer: set(LAYERS[: i + 1]) for i, layer in enumerate(LAYERS)}
MAY_IMPORT["corpus"] = {"corpus", "lift"}
MAY_IMPORT["reports"] |= {"corpus"}
FILES = [p for layer in MAY_IMPORT for p in sorted((ROOT / layer).rglob("*.py"))]

pytestmark = pytest.mark.smoke


def imported(path: Path) -> set[str]:
    """The top-level packages that a file imports absolutely, wherever the import stands."""
    out = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            out |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            out.add(node.module.split(".")[0])
    return out


def test_every_import_goes_down() -> None:
    wrong = []
    for path in FILES:
        layer = path.relative_to(ROOT).parts[0]
        ours = imported(path) & set(MAY_IMPORT)
        wrong += [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(ours - MAY_IMPORT[layer])]
    assert wrong == []


def test_nobody_imports_the_tests() -> None:
    assert [p for p in FILES if "tests" in imported(p)] == []


def test_only_one_file_imports_z3() -> None:
    assert [p for p in FILES if "z3" in imported(p)] == [ROOT / "verify" / "solver.py"]


def test_an_import_up_would_be_seen(tmp_path: Path) -> None:
    up = tmp_path / "up.py"
    up.write_text("def f():\n    from verify.smt import check\n    import superopt.graph\n")
    assert imported(up) & set(LAYERS) - MAY_IMPORT["lift"] == {"verify", "superopt"}

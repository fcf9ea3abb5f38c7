"""The cases of corpus/operators and corpus/strangers: files, names, and shapes that lifting does not use."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(f for d in ("operators", "strangers") for f in (ROOT / "corpus" / d).glob("[!_]*.py"))
SHAPES = (  # partial blocks, long in another direction, several blocks
    {"B": 3, "H": 2, "G": 2, "M": 37, "N": 67, "K": 23, "D": 19, "V": 29},
    {"B": 1, "H": 3, "G": 5, "M": 13, "N": 131, "K": 71, "D": 5, "V": 17},
    {"B": 2, "H": 1, "G": 1, "M": 20, "N": 1031, "K": 39, "D": 17, "V": 1093, "L": 150, "T": 90},
)


def cases(path: Path) -> list[Any]:
    """The cases of a file."""
    from trilift.lift.cases.declaration import Case

    module = importlib.import_module(f"corpus.{path.parent.name}.{path.stem}")
    return [v for v in list(vars(module).values()) if isinstance(v, Case)]


def names(path: Path) -> list[str]:
    """The names of its cases, without importing it."""
    tree = ast.parse(path.read_text())
    return [f.name for f in tree.body if isinstance(f, ast.FunctionDef) and _is_case(f)]


def _is_case(f: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Call) and getattr(d.func, "id", "") == "case" for d in f.decorator_list)


def dims_of(c: Any, shape: dict[str, int]) -> dict[str, int | float]:
    """Numbers for all dims and scalars of a case."""
    out: dict[str, int | float] = {n: shape.get(n, 9 + k) for k, n in enumerate(c.names)}
    out |= {n: 0.5 if s.is_float else 7 for n, s in c.scalars.items()}
    assert c.holds(out), f"{c.name} does not hold at {out}"
    return out


def tensors(result: Any) -> list[Any]:
    """What a host function returned, in order."""
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    return list(result.values()) if isinstance(result, dict) else list(result)

"""Fixtures: golden texts with --update-golden, and marks that skip where the machine lacks what a test needs."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "goldens"
os.environ["TRILIFT_CACHE_DIR"] = tempfile.mkdtemp(prefix="trilift-tests-")  # no result of an earlier run counts


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is printed now to tests/golden")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """golden(name, text): text must equal tests/goldens/<name>; with --update-golden it becomes that file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run pytest with --update-golden"
        assert text == path.read_text()

    return compare


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marks = {"gpu": (_gpu, "needs a GPU"), "packages": (_packages, "needs the packages of `make packages`")}
    for name, (present, reason) in marks.items():
        marked = [i for i in items if i.get_closest_marker(name)]
        if marked and not present():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def _gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _packages() -> bool:
    return all(importlib.util.find_spec(p) for p in ("liger_kernel", "flag_gems", "fla"))

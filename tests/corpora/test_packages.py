"""The cases over packages: they load without the packages, there are enough, and each says what to install."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError

FOLDER = Path(__file__).parents[2] / "corpus" / "packages"
FILES = sorted(p for p in FOLDER.glob("*.py") if not p.name.startswith("_"))


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Case]]:
    """The cases by file, loaded as if no package were installed."""
    from trilift.corpus.packages import _setup
    from trilift.lift.capture.case_files import load

    def missing(name: str, extra: str) -> None:
        raise CaseError(f"{name} is not installed", help=f"pip install trilift[{extra}]")

    monkeypatch.setattr(_setup, "_module", missing)
    return {p.stem: load(str(p)) for p in FILES}


def test_cases_load_without_their_packages(cases: dict[str, list[Case]]) -> None:
    assert len(cases) >= 5
    assert sum(map(len, cases.values())) >= 150
    assert all(found for found in cases.values())


def test_names_are_unique_and_parameters_are_said(cases: dict[str, list[Case]]) -> None:
    for found in cases.values():
        names = [c.name for c in found]
        assert sorted(set(names)) == sorted(names)
        assert all(c.tensors for c in found)


def test_most_cases_have_a_reference(cases: dict[str, list[Case]]) -> None:
    every = [c for found in cases.values() for c in found]
    assert sum(bool(c.reference) for c in every) > 0.75 * len(every)


def test_a_missing_package_says_what_to_install() -> None:
    from trilift.corpus.packages._setup import package

    absent = package("no_such_package.ops", "fla")
    with pytest.raises(CaseError, match=r"no_such_package is not installed.*trilift\[fla\]"):
        absent.kernel  # noqa: B018


def test_gradients_are_those_of_autograd() -> None:
    import torch

    from trilift.corpus.packages._setup import gradients

    x, y = torch.arange(3.0), torch.ones(3)
    dx, dy = gradients(lambda x, y: x * x * y, torch.full((3,), 2.0), x, y)
    assert torch.equal(dx, 4 * x)
    assert torch.equal(dy, 2 * x * x)
    assert torch.equal(gradients(torch.sin, torch.ones(3), x), torch.cos(x))


@pytest.mark.packages
@pytest.mark.parametrize("name", ["rms_norm", "softmax", "swiglu", "cross_entropy"])
def test_a_wrapper_launches(name: str) -> None:
    if importlib.util.find_spec("liger_kernel") is None:
        pytest.skip("liger-kernel is not installed")
    from trilift.lift.capture.case_files import load
    from trilift.lift.capture.run import capture
    from trilift.lift.cases.shapes import choose

    (case,) = load(str(FOLDER / "liger.py"), (name,))
    trace = capture(case, choose(case, 1, 0)[0])
    assert len(trace.launches) == 1
    assert trace.outputs

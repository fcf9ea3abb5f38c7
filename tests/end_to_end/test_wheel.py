"""The built package, installed beside a project that uses the names of our folders for itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OUR_FOLDERS = ("lift", "verify", "superopt", "corpus", "reports")
PACKAGED = ("trilift", *OUR_FOLDERS, "pyproject.toml", "README.md")
KERNELS = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

@case(x="f32[N]")
def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y
"""
THEIR_TEST = """
import lift, verify, superopt, corpus.words, reports.plugin, tests

def test_names_are_ours():
    assert {m.MINE for m in (lift, verify, superopt, corpus.words, reports.plugin)} == {True}
"""


def command(*args: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        args, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel was installed, and nothing else."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in PACKAGED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
    command(*pip, "wheel", ".", "--no-deps", "--no-build-isolation", "-w", "wheels", folder=source)
    (wheel,) = (source / "wheels").glob("trilift-*.whl")
    command(*pip, "install", "--no-deps", "--no-compile", "--target", str(folder), str(wheel), folder=source)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of somebody else, with our names."""
    for name in (*OUR_FOLDERS, "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MINE = True\n")
    (tmp_path / "corpus" / "words.py").write_text("MINE = True\n")
    (tmp_path / "reports" / "plugin.py").write_text("MINE = True\n")
    (tmp_path / "tests" / "test_theirs.py").write_text(THEIR_TEST)
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def test_one_name_goes_into_site_packages(site: Path) -> None:
    names = {p.name for p in site.iterdir()} - {"bin"}
    assert {n for n in names if not n.endswith(".dist-info")} == {"trilift"} and len(names) == 2


def test_everything_that_is_read_at_run_time_is_packaged(site: Path) -> None:
    kinds = {".txt", ".css", ".jinja", ".json", ".md", ".typed"}
    ours = {p.relative_to(ROOT / "trilift") for p in (ROOT / "trilift").rglob("*") if p.suffix in kinds}
    for folder in OUR_FOLDERS:
        found = (p for p in (ROOT / folder).rglob("*") if p.suffix in kinds and "results" not in p.parts)
        ours |= {p.relative_to(ROOT) for p in found}
    assert ours and not {str(p) for p in ours if not (site / "trilift" / p).exists()}


def test_the_tests_of_a_project_with_our_names_run(site: Path, project: Path) -> None:
    said = command(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=project, PYTHONPATH=str(site))
    assert "1 passed" in said
    where = command(
        sys.executable, "-c", "import trilift; print(trilift.__file__)", folder=project, PYTHONPATH=str(site)
    )
    assert where.startswith(str(site))


def test_the_command_and_the_plugin_read_its_kernels(site: Path, project: Path) -> None:
    environment = {"PYTHONPATH": str(site), "TRILIFT_CACHE_DIR": str(project / "kept")}
    said = command(sys.executable, "-m", "trilift", "prove", "kernels.py", folder=project, **environment)
    assert "double: PROVED" in said
    said = command(sys.executable, "-m", "pytest", "-q", "--trilift", "kernels.py", folder=project, **environment)
    assert "2 passed" in said

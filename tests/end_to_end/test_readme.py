"""The README says what is true: its commands run, and print what it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    """(command, what it prints) for every `$ command` of a console block."""
    out = []
    for kind, text in BLOCKS:
        if kind == "console":
            parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
            out += list(zip(parts[::2], parts[1::2], strict=True))
    return out


EXAMPLES = examples()
MAKE = [c for c, _ in EXAMPLES if c.startswith("make ")]
TRILIFT = [(c, shown) for c, shown in EXAMPLES if c.startswith("trilift ")]


def needs_liger(command: str) -> bool:
    return "packages/liger" in command


def run(command: str, cwd: Path) -> str:
    arguments = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "trilift", *arguments], capture_output=True, text=True, cwd=cwd, timeout=100
    )
    return done.stdout


def same(shown: str, printed: str) -> bool:
    """Line by line, but for seconds; a line `...` stands for any lines."""
    shown, printed = (re.sub(r"in \d+\.\d+ s$", "in some s", text, flags=re.MULTILINE) for text in (shown, printed))
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\s*\n" for line in shown.strip().splitlines()
    )
    return re.fullmatch(pattern, printed.strip() + "\n") is not None


def test_there_are_commands_to_run() -> None:
    assert {"make demo", "make test"} <= set(MAKE) and len(TRILIFT) >= 3
    assert all(c.split()[0] in ("make", "trilift") for c, _ in EXAMPLES)


@pytest.mark.smoke
@pytest.mark.parametrize("command", MAKE)
def test_make_knows_the_target(command: str) -> None:
    done = subprocess.run([*command.split(), "-n"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("command", "shown"), TRILIFT, ids=[c for c, _ in TRILIFT])
def test_trilift_prints_what_is_shown(command: str, shown: str, tmp_path: Path) -> None:
    if needs_liger(command):
        pytest.importorskip("liger_kernel")
    for kind, text in BLOCKS:
        if kind == "python" and (name := re.match(r"# (\w+\.py)\n", text)):
            (tmp_path / name[1]).write_text(text)
    where = tmp_path if any((tmp_path / a.split("::")[0]).is_file() for a in shlex.split(command)) else ROOT
    assert same(shown, run(command, where)), run(command, where)


@pytest.mark.smoke
def test_files_named_are_there() -> None:
    named = set(re.findall(r"`((?:lift|verify|superopt|reports|corpus|tests)/[\w/.]*)`", README))
    assert [n for n in sorted(named) if not (ROOT / n).exists()] == []


@pytest.mark.smoke
def test_same_allows_only_what_the_dots_stand_for() -> None:
    assert same("a\n...\nc\n", "a\nb\nb\nc\n") and same("a\n...\nc\n", "a\nc\n")
    assert not same("a\nc\n", "a\nb\nc\n") and not same("a\n...\n", "b\n")
    assert same("PROVED in 0.8 s\n", "PROVED in 1.25 s\n") and not same("PROVED in 0.8 s\n", "UNKNOWN in 0.8 s\n")

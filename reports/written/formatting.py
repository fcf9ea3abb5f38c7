"""Python source as ruff formats it, with the imports that it uses."""

from __future__ import annotations

import subprocess

from ruff import find_ruff_bin

WIDTH = 120


def formatted(source: str) -> str:
    """The text without unused imports, sorted and formatted. Raises RuntimeError for what is no Python."""
    options = ["--isolated", "--quiet", "--target-version", "py311", "--line-length", str(WIDTH)]
    return _ruff(["format", *options, "-"], _ruff(["check", *options, "--fix-only", "--select", "F401,I", "-"], source))


def _ruff(command: list[str], source: str) -> str:
    done = subprocess.run([find_ruff_bin(), *command], input=source, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise RuntimeError(f"ruff {command[0]}: {done.stderr.strip()}")
    return done.stdout

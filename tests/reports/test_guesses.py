"""What newcomers write, and what they are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trilift.reports.cli import main

FILE = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)

{decorator}
def double(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 64),)](x, y, x.shape[0], BLOCK=64)
    return {result}
"""
GUESSES = {
    "@case": 'write @case(x="f32[N]")',
    '@case("f32[N]")': "write @case(x='f32[N]')",
    '@case(x="float32[N]")': "did you mean 'f32[N]'?",
    '@case(x="torch.bfloat16[N]")': "did you mean 'bf16[N]'?",
    '@case(x="fp16[N] strided")': "did you mean 'f16[N] strided'?",
    '@case(x="f32[..., N]")': "write a name for each dimension",
    '@case(x="f32[N]", where="N % 16 = 0")': "write == for equality",
    '@case(x="f32[N]", where=lambda N: N > 1)': "where is a text",
    '@case(x="f32[N]", where="Q <= 64")': "Q in where='Q <= 64' is neither a dimension nor a scalar",
    "@case(x=torch.ones(3))": "x is a tensor; a case says which tensors it stands for",
    '@case(y="f32[N]")': "no parameter is called y",
    '@case(x="f32[N]", reference=lambda x: x)': "@double.reference, then the function",
}


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def file(folder: Path, decorator: str = '@case(x="f32[N]")', result: str = "y") -> str:
    path = folder / "double.py"
    path.write_text(FILE.format(decorator=decorator, result=result))
    return str(path)


@pytest.mark.parametrize("decorator", GUESSES)
def test_a_wrong_case_is_told_what_to_write(decorator: str, tmp_path: Path) -> None:
    result = run("lift", "-q", file(tmp_path, decorator))
    assert result.exit_code == 2 and GUESSES[decorator] in result.output


def test_a_function_that_returns_nothing(tmp_path: Path) -> None:
    result = run("prove", "-q", "--no-cache", file(tmp_path, result="None"))
    assert result.exit_code == 2 and "double returns no tensor and writes none of its inputs" in result.output


def test_a_file_in_place_of_a_command_is_audited(tmp_path: Path) -> None:
    path = file(tmp_path)
    assert run(path, "--no-cache", "--format", "json").exit_code in (0, 1)
    assert "no such file" in run(str(tmp_path / "nothing.py")).output
    assert "No such command 'lit'" in run("lit").output


@pytest.mark.parametrize("name", ["tl.exp2", "tl.math.exp2", "torch.exp2", "exp2"])
def test_operations_are_found_as_users_write_them(name: str) -> None:
    assert [row["name"] for row in json.loads(run("ops", name, "--format", "json").output)] == ["exp2"]


def test_a_misspelled_operation() -> None:
    assert "did you mean exp" in run("ops", "tl.expp").output


def test_lift_takes_format(tmp_path: Path) -> None:
    assert json.loads(run("lift", "-q", "--format", "json", file(tmp_path)).output)["tool"] == "trilift"


HOSTILE = """
from trilift import case

@case(x="f32[N]")
def f(x):
    raise ValueError("\\x1b]0;title\\x07 \\x1b[31mred\\u202e")  # a comment with \x1b[31m
"""


@pytest.mark.parametrize(
    "words",
    [
        ("lift",),
        ("prove", "--no-cache"),
        *(("audit", "--no-cache", "--format", f) for f in ("text", "concise", "github")),
    ],
)
def test_a_terminal_obeys_nothing_of_the_user_s(words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "hostile.py"
    path.write_text(HOSTILE)
    result = run(*words, str(path))
    assert result.exit_code == 2 and "raised" in result.output
    assert not [c for c in result.output if not c.isprintable() and c not in "\n\t"]

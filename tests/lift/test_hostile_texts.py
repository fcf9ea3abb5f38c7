"""Malformed IR, launch descriptions, formulas and specifications end in an error of ours.

HOSTILE=2000 python -m pytest tests/lift/test_hostile_texts.py      more of each
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from trilift import case
from trilift.lift.capture.case_files import load
from trilift.lift.capture.run import capture
from trilift.lift.errors import CaseError
from trilift.lift.language.parse import formula
from trilift.lift.terms import construct as T
from trilift.lift.ttir import lower
from trilift.reports.experiments.faults.endings import ends_in_child, ends_well
from trilift.reports.experiments.faults.mutated import mutated

COUNT = int(os.environ.get("HOSTILE", "40"))


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.sum(v, 0) + tl.exp(v), mask=i < n)


@cache
def texts_of_ir() -> tuple[bytes, ...]:
    """The kernel as `trilift` reads it, generic and with the function that marks that form, and without."""
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    text = lower.text(scale_kernel, signature, {"BLOCK": 32}, {})
    pretty = "\n".join(line for line in text.splitlines() if "#loc" not in line or "module" in line)
    return text.encode(), pretty.encode()


DESCRIPTION = {"name": "scale", "inputs": {"x": "f32[N]"}, "outputs": {"y": "f32[N]"}, "args": ["x", "y", "N"],
               "grid": ["cdiv(N, 32)"], "where": "N <= 64"}  # fmt: skip
FORMULAS = (b"softmax(x * 2 ** 3, -1) + sum(y, 0, keepdim=True)", b"where(x > 0.5, x[:, None] @ w[k, ::2], -inf)")
DIMS = {"x": (T.size("M"), T.size("N")), "y": (T.size("M"), T.size("N")), "w": (T.size("N"), T.size("K")),
        "k": (T.size("K"),)}  # fmt: skip
SPECS = (b"f32[M, cdiv(N, 4) + 1] strided", b"i32[N] in (-5, 2 * N)", b"u8 < 256", b"f16[8, N] any rows")
WHERES = (b"N % 16 == 0 and (M <= 64 or not N < M)", b"next_power_of_2(N) <= 2 ** 10 * M // 3")


@pytest.mark.parametrize("group", range(8))
def test_ir(group: int, tmp_path: Path) -> None:
    path = tmp_path / "m.ttir"
    for seed in range(group, COUNT, 8):
        path.write_bytes(mutated(texts_of_ir(), seed))
        assert not (said := ends_in_child(lambda: lower.lower_file(path))), f"seed {seed}: {said}"


def test_launch_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "m.ttir"
    path.write_bytes(texts_of_ir()[1])
    given = [[], 3, "text", None, True, {**DESCRIPTION, "args": 5}, {**DESCRIPTION, "grid": []},
             {**DESCRIPTION, "grid": ["N"] * 4}, {**DESCRIPTION, "outputs": ["y"]}, {**DESCRIPTION, "inputs": "x"},
             {**DESCRIPTION, "inputs": {"x": {"a": 1}}}, {**DESCRIPTION, "name": "a b"}, {**DESCRIPTION, "where": 1},
             {**DESCRIPTION, "args": [{}]}, {**DESCRIPTION, "grid": ["1" * 30]}]  # fmt: skip
    texts = [*(json.dumps(g).encode() for g in given), b"[" * 100_000]
    texts += [mutated([json.dumps(DESCRIPTION).encode()], seed) for seed in range(COUNT)]
    for text in texts:
        path.with_suffix(".json").write_bytes(text)

        def run() -> None:
            (c,) = load(str(path))
            capture(c, dict.fromkeys(c.names, 3))

        assert not (said := ends_in_child(run)), f"{text[:200]!r}: {said}"


RAISES = """
class Silent(BaseException):
    def __str__(self):
        raise ValueError("no text")
raise Silent
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# -*- coding: nosuch -*-\n", "loading the file raised SyntaxError at m.py:0: unknown encoding: nosuch"),
        (RAISES, "raised Silent at m.py:5: its text is not known, for str() of it raises ValueError"),
        ("raise SystemExit(3)", "raised SystemExit at m.py:1: 3"),
    ],
)
def test_files_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("m.py").write_text(text)
    with pytest.raises(CaseError) as e:
        load("m.py")
    assert said in str(e.value).replace(f"{tmp_path}/", "")


def test_a_name_that_triton_cannot_keep(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"m\xff.py")
    path.write_text("")
    with pytest.raises(CaseError, match=r"cannot be read.*not UTF-8.*help: rename it"):
        load(str(path))


def test_formulas() -> None:
    for seed in range(5 * COUNT):
        text = mutated(FORMULAS, seed).decode(errors="replace")
        assert not (said := ends_well(lambda text=text: formula(text, DIMS))), f"{text[:200]!r}: {said}"


def test_specifications() -> None:
    for seed in range(5 * COUNT):
        spec, where = (mutated(texts, seed).decode(errors="replace") for texts in (SPECS, WHERES))

        def declare(spec: str = spec, where: str = where) -> None:
            def fn(x: torch.Tensor) -> torch.Tensor:
                return x

            case(x=spec)(fn)
            case(x="f32[M, N]", where=where)(fn)

        assert not (said := ends_well(declare)), f"{spec[:100]!r}, {where[:100]!r}: {said}"

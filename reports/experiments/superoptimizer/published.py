"""Figures that Mirage published in its paper and logs, and verdicts on the µGraphs that it saved.

The saved files do not belong to this project; they are looked for beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trilift.superopt.mirage.judge import Judgement, Reference

SAVED = Path(__file__).resolve().parents[4] / "shared" / "peers" / "mirage"


@dataclass(frozen=True, slots=True)
class Figures:
    """`search`: what it took; `speed`: times faster than the best of the other systems, on which GPU."""

    search: str
    speed: str


_USUAL = "up to 4 h for a program"
_NORM = "28 s, 183 s on one thread, more than 10 h without pruning (11 block operators)"
FIGURES: Mapping[str, Figures] = {
    "attention": Figures(_USUAL, "up to 2.2x"),
    "normed_attention_paper": Figures(_USUAL, "1.4x"),
    "normed_attention_script": Figures(_USUAL, "1.4x"),
    "rms_norm_linear_paper": Figures(_NORM, "1.5x A100, 1.9x H100"),
    "rms_norm_linear_script": Figures(_NORM, "1.5x A100, 1.9x H100"),
    "lora": Figures(_USUAL, "1.1x to 2.4x"),
    "gated_mlp": Figures("204,589 states, 942 tests, 14.9 s on 16 threads", "1.5x A100, 2.7x to 3.3x H100"),
    "n_trans_paper": Figures(_USUAL, "below TensorRT"),
    "n_trans_script": Figures(_USUAL, "below TensorRT"),
}


# ---- saved µGraphs ---------------------------------------------------------------------------------------------------


def norm(x: str, axis: int = -1) -> str:
    return f"({x}/sqrt(mean({x}**2, {axis}, keepdim=True)))"


def _attention(q: str, k: str, v: str) -> str:
    return f"(exp({q}@{k})/sum(exp({q}@{k}), -1, keepdim=True))@{v}"


_QKV = {"Q": ("B", "M", "D"), "K": ("B", "D", "N"), "V": ("B", "N", "D")}
_ROWS = {"H": ("B", "N"), "X": ("B", "N"), "A": ("B", "N")}
_LORA = {"X": ("M", "K"), "W": ("K", "N"), "A": ("K", "R"), "B": ("R", "N")}
_GATED = {"X": ("M", "K"), "W1": ("K", "N"), "W2": ("K", "N")}
_LINEAR = {"X": ("M", "K"), "W": ("K", "N")}
_KEYS = {"B": 2, "M": 256, "D": 64, "N": 4096}
_TEXTS: dict[str, tuple[str, Mapping[str, tuple[str, ...]], dict[str, int]]] = {
    "gqa": (_attention("Q", "K", "V"), _QKV, _KEYS),
    "qknorm, script": (_attention(norm("Q"), "K", norm("V")), _QKV, _KEYS),
    "qknorm, paper": (_attention(norm("Q"), norm("K", 1), "V"), _QKV, _KEYS),
    "rmsnorm": (norm("X") + "@W", _LINEAR, {"M": 2, "K": 4096, "N": 6144}),
    "lora": ("X@W + (X@A)@B", _LORA, {"M": 16, "K": 256, "N": 4096, "R": 16}),
    "gated": ("silu(X@W1)*(X@W2)", _GATED, {"M": 8, "K": 4096, "N": 4096}),
    "ntrans": (norm(f"(X + A*({norm('H')} + X))"), _ROWS, {"B": 8, "N": 4096}),
}
FILES = (
    ("gqa_bs1.json", "gqa"), ("lora.json", "lora"), ("rmsnorm_bs1.json", "rmsnorm"), ("ntrans_bs1.json", "ntrans"),
    ("qknorm_gqa_bs1.json", "qknorm, script"), ("qknorm_gqa_bs1.json", "qknorm, paper"),
)  # fmt: skip
HEAD = ("file", "program", "µGraphs", "right", "wrong", "unsupported", "equal in the field", "the first wrong one")


def program(name: str) -> Reference:
    """The reference that the µGraphs of a file should compute, at the sizes of the file."""
    from trilift.superopt.mirage.judge import reference

    text, inputs, dims = _TEXTS[name]
    return reference(text, inputs, dims)


PROGRAMS: Mapping[str, Callable[[], Reference]] = {name: partial(program, name) for name in _TEXTS}


def judged(folder: Path = SAVED, seed: int = 0) -> list[tuple[str, ...]]:
    """A row for each file that is there, and each program that it may be."""
    from trilift.superopt.mirage.judge import judge, read

    return [
        _row(file, name, judge(read(folder / file), program(name), seed))
        for file, name in FILES
        if (folder / file).exists()
    ]


def _row(file: str, name: str, found: list[Judgement]) -> tuple[str, ...]:
    counts = Counter(j.verdict for j in found)
    equal = sum(j.equal_in_field is True for j in found)
    wrong = next((f"µGraph {j.number}: {j.reason}" for j in found if j.verdict == "wrong"), "")
    numbers = (len(found), counts["right"], counts["wrong"], counts["unsupported"], equal)
    return (file, name, *map(str, numbers), wrong)

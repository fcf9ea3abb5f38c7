"""What host code reads beside its arguments, and the clauses that say so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum

import pytest
import torch
import triton
import triton.language as tl

from trilift import case
from trilift.lift.pytorch.host.global_state import read_in
from trilift.verify import prove

FLAGS = {"negative": False}
WRITTEN, LISTED = 64, ("a", "b")
CHOSEN = int(sys.maxsize > 0)
if sys.maxsize > 1:
    BRANCHED = "yes"
COUNT = 0
linear = torch.nn.Linear(1, 1)


class Options:
    def __init__(self) -> None:
        self.fast = True


class Kind(Enum):
    ONE = 1


OPTIONS = Options()


def counting() -> int:
    global COUNT
    COUNT += 1
    return COUNT


def kept_by_closure(change: bool) -> Callable[[], object]:
    calls: list[int] = []
    sizes = [1, 2]

    def changing() -> int:
        calls.append(1)
        return len(calls)

    return changing if change else lambda: sizes[0]


def with_own_list() -> int:
    calls = [1]
    return (lambda: calls[0])()


HELD = "holds what it held when it was read"
READS = {
    "a dict": (lambda: FLAGS["negative"], [f"`FLAGS` {HELD}"]),
    "a parameter": (lambda: linear.weight.detach()[0], [f"`linear.weight` {HELD}"]),
    "a module of PyTorch": (lambda: linear(torch.ones(1)), [f"`linear` {HELD}"]),
    "an object of the host's": (lambda: OPTIONS.fast, ["`OPTIONS.fast` is True"]),
    "what a call gave": (lambda: CHOSEN + 1, ["`CHOSEN` is 1"]),
    "what a branch gave": (lambda: BRANCHED, ["`BRANCHED` is 'yes'"]),
    "what a function binds": (counting, ["`COUNT` is 0"]),
    "a number that is written": (lambda: (WRITTEN, LISTED), []),
    "an enumeration": (lambda: Kind.ONE.value, []),
    "a library": (lambda: torch.float32, []),
    "a closure that is changed": (kept_by_closure(True), [f"`calls` {HELD}"]),
    "a closure that is not": (kept_by_closure(False), []),
    "a list of the same call": (with_own_list, []),
}


@pytest.mark.parametrize("kind", READS)
def test_what_code_reads_is_said(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "COUNT", 0)
    call, said = READS[kind]
    assert read_in(call, {__file__}) == said


def test_the_profile_is_put_back() -> None:
    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        read_in(lambda: 1 // 0, {__file__})
    assert sys.getprofile() is before


@triton.jit
def scale_kernel(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@case(x="f32[N]")
def flagged(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.shape[0], 64),)](x, y, x.shape[0], -1.0 if FLAGS["negative"] else 1.0, BLOCK=64)
    return y


@flagged.reference
def _(x: torch.Tensor) -> torch.Tensor:
    return x if OPTIONS.fast else x + 1


def test_a_proof_names_what_both_functions_read() -> None:
    (proof,) = prove(flagged)
    assert proof.verdict.value == "PROVED"
    assert {f"`FLAGS` {HELD}", "`OPTIONS.fast` is True"} <= {c.text for c in proof.contract}

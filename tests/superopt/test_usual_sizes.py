"""Sizes of dims that nobody gave follow from what the program uses them for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from trilift import case
from trilift.lift.errors import Unsupported
from trilift.superopt.jobs import formulas_of, program_from, sizes_of
from trilift.superopt.program.usual_sizes import ANY_SIZE, roles

sys.path[:0] = [str(Path(__file__).parents[1] / "kernels")]
import kernels_positions as K  # noqa: E402


@case(q="f16[B,H,M,D]", k="f16[B,H,N,D]", v="f16[B,H,N,D]")
def heads_first(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


@case(q="f16[B,M,H,D]", k="f16[B,N,H,D]", v="f16[B,N,H,D]")
def heads_last(q, k, v):
    scores = torch.einsum("bmhd,bnhd->bhmn", q, k)
    return torch.einsum("bhmn,bnhd->bmhd", torch.softmax(scores, -1), v)


@case(x="f16[B,S,K]", w="f16[K,N]")
def linear(x, w):
    return x @ w


@case(x="f16[M,K]", w="f16[K,N]")
def router(x, w):
    return torch.softmax(x @ w, -1)


@case(x="f16[M,N]")
def normed(x):
    return torch.softmax(torch.nn.functional.layer_norm(x, x.shape[-1:]), -1)


@case(q="f16[H,M,D]", k="f16[H,M,D]", v="f16[H,M,D]", where="M <= 512")
def short(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def found(c, **given: int) -> dict[str, int]:
    program = program_from(c, *formulas_of(c), sizes_of(c, given))
    return sizes_of(c, given, roles(c, program))


ATTENTION = {"B": 4, "H": 16, "M": 2048, "N": 2048, "D": 64}


@pytest.mark.parametrize(
    ("c", "sizes"),
    [
        (heads_first, ATTENTION),
        (heads_last, ATTENTION),
        (K.causal, {"G": 16, "M": 2048, "D": 64}),
        (K.biased, {"M": 2048, "N": 2048, "D": 64}),
        (linear, {"B": 16, "S": ANY_SIZE, "K": ANY_SIZE, "N": ANY_SIZE}),
        (router, dict.fromkeys("MKN", ANY_SIZE)),
        (normed, dict.fromkeys("MN", ANY_SIZE)),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_sizes_follow_use(c, sizes) -> None:
    assert found(c) == sizes


def test_given_sizes_stay() -> None:
    assert found(heads_first, H=3, D=80) == ATTENTION | {"H": 3, "D": 80}


def test_what_the_case_does_not_allow_is_not_taken() -> None:
    assert found(short) == {"H": 16, "M": 256, "D": 64}
    with pytest.raises(Unsupported, match="does not allow"):
        found(short, M=513)

"""Tile programs: text, checks, and what they do to their tensors."""

from __future__ import annotations

import numpy as np
import pytest

from trilift.lift.errors import CaseError
from trilift.lift.language.parse import formula
from trilift.superopt.program.program import from_formulas
from trilift.superopt.tiles.run import run
from trilift.superopt.tiles.text import parse, text
from trilift.superopt.tiles.tile_program import TileProgram, lowered, statements

MATMUL = """axes m = M, n = N, k = K
input x[m, k] f16, w[k, n] f16
output o[m, n] f16
variable c[m, n] f32
for m, n:
    c[m, n] = 0
    for k:
        c[m, n] = c[m, n] + sum(k, w[k, n] * x[m, k])
    o[m, n] = c[m, n]
"""
SOFTMAX = """axes m = M, n = N
input x[m, n] f32
output o[m, n] f32
variable top[m] f32, e[m, n] f32, s[m] f32
for m:
    top[m] = -inf
    for n:
        top[m] = max(top[m], amax(n, x[m, n]))
    s[m] = 0
    for n:
        e[m, n] = exp(x[m, n] - top[m])
        s[m] = s[m] + sum(n, e[m, n])
    for n:
        o[m, n] = e[m, n] / s[m]
"""
SIZES = {"M": 5, "N": 7, "K": 6}


def drawn(p: TileProgram, seed: int = 0) -> dict[str, np.ndarray]:
    """A value for each tensor, variables and outputs too: nothing is 0 before it is stored."""
    rng = np.random.default_rng(seed)
    return {t.name: rng.standard_normal([p.sizes[a] for a in t.axes]) for t in p.tensors.values()}


@pytest.mark.parametrize("source", [MATMUL, SOFTMAX])
def test_what_is_printed_is_read_again(source: str) -> None:
    p = parse(source, SIZES)
    again = text(p)
    assert parse(again, SIZES) == p and text(parse(again, SIZES)) == again
    assert again.splitlines()[:4] == source.splitlines()[:4]


@pytest.mark.parametrize("tile", [1, 2, 3, 8])
def test_loops_run_over_tiles_and_a_shorter_last_one(tile: int) -> None:
    for source, wanted in (
        (MATMUL, lambda xs: xs["x"] @ xs["w"]),
        (SOFTMAX, lambda xs: np.exp(xs["x"]) / np.exp(xs["x"]).sum(1, keepdims=True)),
    ):
        p = parse(source, SIZES)
        xs = drawn(p)
        found = run(p, xs, dict.fromkeys(p.sizes, tile))
        assert np.allclose(found["o"], wanted(xs)) and all(
            np.array_equal(found[n], xs[n]) for n in ("x", "w") if n in xs
        )


def test_a_sum_that_does_not_start_from_zero_is_another() -> None:
    wrong = parse(MATMUL.replace("    c[m, n] = 0\n", ""), SIZES)
    xs = drawn(wrong)
    found = run(wrong, xs, dict.fromkeys(wrong.sizes, 2))["o"]
    assert np.allclose(found, xs["c"] + xs["x"] @ xs["w"]) and not np.allclose(found, xs["x"] @ xs["w"])


def test_a_loop_in_a_loop_over_its_axis_is_over_tiles_of_the_tile() -> None:
    twice = parse(MATMUL.replace("for m, n:", "for m, n, m:"), SIZES)
    xs = drawn(twice)
    assert np.allclose(run(twice, xs, dict.fromkeys(twice.sizes, 2))["o"], xs["x"] @ xs["w"])


def test_a_program_is_lowered_to_a_store_for_each_operation() -> None:
    f = formula("out[m, n] = sum(k, x[m, k] * w[k, n]) / sum(k, x[m, k] ** 2)", {"x": ("M", "K"), "w": ("K", "N")})
    p = lowered(from_formulas([f], {}, SIZES))
    assert len(list(statements(p.body))) == 5 and p.outputs == ("out",)
    xs = drawn(p)
    wanted = xs["x"] @ xs["w"] / (xs["x"] ** 2).sum(1, keepdims=True)
    assert np.allclose(run(p, xs, {})["out"], wanted)
    assert parse(text(p), SIZES) == p


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("for m, n:", "for m, j:", "no axis j"),
        ("x[m, k] f16", "x[m, m] f16", "an axis twice"),
        ("variable c[m, n] f32", "variable d[m, n] f32", "c is not declared"),
        ("o[m, n] = c[m, n]", "x[m, k] = 1", "an input"),
        ("o[m, n] = c[m, n]", "c[m, n] = 1 + c[m, n]", "never stored"),
        ("o[m, n] = c[m, n]", "o[m, n] = c[n, m]", "line 9"),
        ("    o[m, n] = c[m, n]", "            o[m, n] = c[m, n]", "indented"),
        ("for k:", "for k:\n    for n:", "expected a statement"),
        ("k = K", "k = L", "unknown sizes"),
    ],
)
def test_what_is_no_tile_program(old: str, new: str, why: str) -> None:
    with pytest.raises(CaseError) as raised:
        parse(MATMUL.replace(old, new), SIZES)
    assert why in str(raised.value)

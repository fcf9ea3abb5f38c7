"""Loops that end where a mask closes every tile: what is read from masks, the share of turns, emitted bounds."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from trilift.lift.capture.case_files import load
from trilift.lift.language.evaluate import evaluate
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.superopt.mugraph.graph import MuGraph, Operator
from trilift.superopt.mugraph.reach import Bound, Reach, element, reach, reaches
from trilift.superopt.search.best_first import graphs, search
from trilift.verify import prove

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_positions as K  # noqa: E402
from test_positions import SIZES, best, emitted, program  # noqa: E402

LARGE = {"G": 16, "M": 4096, "N": 4096, "K": 4096, "D": 64}
M, N = (T.Axis(a, T.size(a.upper())) for a in "mn")
I, J = T.axis(M), T.axis(N)  # noqa: E741


def loop_of(g: MuGraph) -> Reach | None:
    """Of the kernel that reads the mask."""
    return next((r for k in g.kernels for r in reaches(g, k).values()), None)


@pytest.mark.parametrize(
    ("case", "least", "most"),
    [
        (K.causal, (), (Bound("m", 0),)),
        (K.window, (Bound("m", -127),), (Bound("m", 0),)),
        (K.late, (), (Bound("m", 0, ((-1, T.size("M")), (1, T.size("N")))),)),
        (K.lower, (), (Bound("m", 1),)),
        (K.upper, (Bound("m", -3),), ()),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_bounds_of_masks(case, least, most) -> None:
    sizes = LARGE if case in (K.lower, K.upper) else SIZES
    every = graphs(search(program(case, sizes)))
    assert Reach(least, most) in map(loop_of, every)


@pytest.mark.parametrize("case", [K.biased, K.weighted], ids=lambda c: c.name)
def test_no_mask_no_bound(case) -> None:
    """A bias closes nothing, and a mask of data is not known before it is read."""
    assert loop_of(best(case)) is None


def masked(t: Term, *after: Operator, data: str = "x") -> Reach:
    """The reach of a loop over n that adds up products with a mask, or what `after` makes of it."""
    usual = (
        Operator("v", "mul", ("mask", data), frozenset()),
        Operator("s", "sum", ("v",), frozenset(), ("n",)),
        Operator("total", "accumulate", ("s",), frozenset(), ("n",)),
    )
    p = program(K.lower, LARGE)
    return reach(after or usual, {"mask": t}, p, "n", frozenset({"m"}))


CLOSED = T.make("lt", I, J)  # of the right upper half


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (T.where(CLOSED, 0, 1), Reach((), (Bound("m", 0),))),
        (T.where(CLOSED, 1, 0), Reach((Bound("m", 1),), ())),
        (T.where(T.make("or", CLOSED, T.make("le", J, T.sub(I, 8))), 0, 1), Reach((Bound("m", -7),), (Bound("m", 0),))),
        (T.where(T.make("and", CLOSED, T.make("le", 8, J)), 0, 1), Reach()),
        (T.where(T.make("le", 8, J), 0, 1), Reach((), (Bound(None, 7),))),
        (T.where(CLOSED, 0, T.where(T.make("lt", J, 3), 0, 1)), Reach((Bound(None, 3),), (Bound("m", 0),))),
        (T.where(T.make("lt", I, T.mul(2, J)), 0, 1), Reach()),
        (T.where(T.make("lt", T.mul(2, I), J), 0, 1), Reach()),
        (T.where(CLOSED, 2, 1), Reach()),
    ],
)
def test_of_products(mask, expected) -> None:
    assert masked(mask) == expected


def test_every_sum_of_the_loop_counts() -> None:
    mask, other = T.where(CLOSED, 0, 1), ("x", "y")
    kept = [
        Operator("v", "mul", ("mask", "x"), frozenset()),
        Operator("a", "accumulate", ("v",), frozenset(), ("n",)),
        Operator("b", "accumulate", other[:1], frozenset(), ("n",)),
    ]
    assert masked(mask, *kept[:2])
    assert not masked(mask, *kept)


def test_zero_is_not_lowest() -> None:
    """A maximum changes by zeros; a sum of exponentials by exp(0)."""
    highest = Operator("top", "accumulate_max", ("mask",), frozenset(), ("n",))
    assert not masked(T.where(CLOSED, 0, 1), highest)
    assert masked(T.where(CLOSED, -np.inf, 1), highest)
    exps = [Operator("e", "exp", ("mask",), frozenset()), Operator("a", "accumulate", ("e",), frozenset(), ("n",))]
    assert not masked(T.where(CLOSED, 0, 1), *exps)
    assert masked(T.where(CLOSED, -np.inf, 1), *exps)


def test_what_is_closed_is_so() -> None:
    """On random masks: wherever a condition holds the element is minus infinity, or 0."""
    rng = np.random.default_rng(0)
    i, j = np.mgrid[:9, :9]
    found = 0
    for _ in range(300):
        t = random_mask(rng, 3)
        value = at(t, i, j)
        for kind, conditions in zip((-np.inf, 0.0), (lambda c: (c.lowest, c.zero))(element(t, {})), strict=True):
            for c in conditions:
                held = np.broadcast_to(at(c, i, j), value.shape).astype(bool)
                assert (value[held] == kind).all(), t
                found += held.any() and not held.all()
    assert found > 100


def random_mask(rng: np.random.Generator, depth: int) -> Term:
    if not depth:
        return T.const([-np.inf, 0.0, 1.0, 2.5][rng.integers(4)])
    a, b = random_mask(rng, depth - 1), random_mask(rng, depth - 1)
    kind = rng.integers(6)
    if kind < 3:
        one, other = (T.make(["lt", "le"][rng.integers(2)], T.add(I, int(rng.integers(-3, 4))), J) for _ in range(2))
        kinds = [one, T.make("and", one, other), T.make("or", one, other), T.make("not", one)]
        return T.where(kinds[rng.integers(4)], a, b)
    if kind == 3:
        return T.mul([0.5, 2, -1][rng.integers(3)], a)
    return T.add(a, b) if kind == 4 else T.make("max", a, b)


def at(t: Term, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    n = len(i)
    axes = {T.Axis("m", T.const(n)): 0, T.Axis("n", T.const(n)): 1}
    sized = T.substitute(t, {M: T.axis(T.Axis("m", T.const(n))), N: T.axis(T.Axis("n", T.const(n)))})
    with np.errstate(invalid="ignore"):
        return np.broadcast_to(np.asarray(evaluate(sized, list(axes), {}, {})), (n, n))


# ---- the model -------------------------------------------------------------------------------------------------------


def seconds(case, **sizes: int) -> float:
    return search(program(case, LARGE | sizes)).plans[0].seconds


def test_a_loop_costs_what_it_visits() -> None:
    """At 4096 keys: causal about half of all pairs, a window of 128 keys less than a tenth."""
    share = seconds(K.causal) / seconds(K.full)
    assert 0.5 < share < 0.75
    assert seconds(K.window) < 0.15 * seconds(K.full)


def test_the_longest_block_counts() -> None:
    """With one wave of blocks the last one, which visits all keys, takes as long as without a mask."""
    few = {"G": 1, "M": 2048}
    assert seconds(K.causal, **few) > 0.9 * seconds(K.full, **few)


# ---- emitted ---------------------------------------------------------------------------------------------------------


def loop_line(case) -> str:
    text = " ".join(emitted(case).split())
    return text[text.index("for start") : text.index("):", text.index("for start"))]


def test_loops_end_at_the_mask() -> None:
    assert "range(0, tl.minimum(M, first_m + BLOCK_M), BLOCK_M_" in loop_line(K.causal)
    assert "tl.maximum(0, first_m - 127)" in loop_line(K.window)
    assert "tl.minimum(N, first_m - M_1 + N_1 + BLOCK_M)" in loop_line(K.late)
    assert "range(0, M, BLOCK_M_" in loop_line(K.full)


@pytest.mark.slow
def test_a_loop_that_ends_too_early_is_refuted(tmp_path: Path) -> None:
    text = emitted(K.causal)
    wrong = text.replace("first_m + BLOCK_M)", "first_m)")
    assert wrong != text
    path = tmp_path / "early.py"
    path.write_text(wrong)
    assert {p.verdict.value for c in load(str(path)) for p in prove(c, timeout=60)} == {"REFUTED"}

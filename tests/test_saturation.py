"""The rules of tile programs: each on random programs, its twin too, and all of them together."""

from __future__ import annotations

import random

import pytest

from lift.parse import formula
from superopt.program import from_formulas
from superopt.saturate import Classes, saturated
from superopt.tile_program import Loop, TileProgram, lowered, statements, stores
from superopt.tile_rules import RULES, Rule
from superopt.tile_text import text
from superopt.tile_trials import Drawer, all_rules, differing, numbers, tiles_of, tried

SIZES = {"M": 4, "N": 3, "K": 5}


def normed() -> TileProgram:
    said = "out[m, n] = sum(k, x[m, k] * w[k, n] / sqrt(sum(k, x[m, k] ** 2)))"
    return lowered(from_formulas([formula(said, {"x": ("M", "K"), "w": ("K", "N")})], {}, SIZES))


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_rule_holds(rule: Rule) -> None:
    found = tried(rule, 2, most=120)
    assert found.wrong == 0, found.found and text(found.found.made)
    assert found.applied > 0


@pytest.mark.parametrize("name", ["commute", "commute at the end", "sink", "hoist", "tile"])
def test_its_twin_does_not(name: str) -> None:
    rule = next(r for r in RULES if r.name == name)
    assert tried(rule, 60, twin=True, most=200).wrong > 0, rule.why


def test_all_rules_together_hold() -> None:
    found = list(all_rules(6, RULES, seed=1))
    assert len(found) == 6 and not any(found), next(text(f.made) for f in found if f)


@pytest.fixture(scope="module")
def classes() -> Classes:
    return saturated(normed(), rounds=5, nodes=20_000)


def test_what_is_drawn_is_the_program(classes: Classes) -> None:
    import numpy as np

    p, rng = normed(), random.Random(0)
    xs = numbers(p, np.random.default_rng(0))
    made = [classes.drawn(rng, 14) for _ in range(30)]
    assert len({text(q) for q in made}) > 20
    for q in made:
        assert differing(p, q, xs, tiles_of(p, rng)) == "", text(q)


def test_the_division_moves_after_the_loop(classes: Classes) -> None:
    """A program of the e-graph sums x w over a loop, and divides after it (the paper's best for this program)."""
    rng = random.Random(1)
    assert any(divided_late(classes.drawn(rng, 18)) for _ in range(300))


def divided_late(p: TileProgram) -> bool:
    names = {t for t, x in p.tensors.items() if x.role == "input"}
    loops = [s for s in statements(p.body) if isinstance(s, Loop)]
    summed = [s for one in loops for s in stores(one) if s.value.op == "add" and not any(
        n.op == "div" for n in s.value.walk())]  # fmt: skip
    return bool(names) and any(s.tensor == "out" for s in summed)


def test_a_limit_is_told() -> None:
    found = saturated(normed(), rounds=8, nodes=300)
    assert not found.whole and found.nodes > 300
    assert saturated(Drawer(random.Random(0), 2).program(), (), 2).whole

"""The rules of tile programs: each on random programs, its twin too, and all of them together."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from trilift.lift.language.parse import formula
from trilift.lift.terms import term as T
from trilift.reports.experiments.superoptimizer import tile_rules
from trilift.reports.records.options import Options
from trilift.superopt.program.program import from_formulas, node
from trilift.superopt.tiles.draws import Drawer, around, loaded, numbers, tiles_of
from trilift.superopt.tiles.rules import RULES, Rule, Twin
from trilift.superopt.tiles.saturate import Classes, saturated
from trilift.superopt.tiles.text import text
from trilift.superopt.tiles.tile_program import Loop, Store, TileProgram, lowered, statements, stores
from trilift.superopt.tiles.trials import all_rules, differing, ill_typed, refuted, tried

SIZES = {"M": 4, "N": 3, "K": 5}


def normed() -> TileProgram:
    said = "out[m, n] = sum(k, x[m, k] * w[k, n] / sqrt(sum(k, x[m, k] ** 2)))"
    return lowered(from_formulas([formula(said, {"x": ("M", "K"), "w": ("K", "N")})], {}, SIZES))


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_rule_holds(rule: Rule) -> None:
    found = tried(rule, 4)
    assert found.wrong == 0, found.found and text(found.found.made)
    assert found.applied == 4
    assert found.made > 4 or rule.name == "nested to the right"  # of which both sides have one text


TWINS = [(r, t) for r in RULES for t in r.twins]


@pytest.mark.parametrize(("rule", "twin"), TWINS, ids=[f"{r.name}: {t.why}" for r, t in TWINS])
def test_a_twin_does_not(rule: Rule, twin: Twin) -> None:
    assert refuted(rule, twin, 60).wrong, twin.text


def test_what_has_a_condition_has_a_twin() -> None:
    """A rule of one term without conditions, and a law without one, are all that have no twin."""
    bare = {r.name for r in RULES if not r.twins}
    assert bare >= {"nested to the right", "tiles of tiles", "0 + a = a", "(Exp (Add a b)) = (Mul (Exp a) (Exp b))"}
    assert not any("set-" in r.text or "Lacks" in r.text for r in RULES if r.name in bare)
    assert any(t.kind == "published" for r in RULES for t in r.twins)


def test_a_sum_within_a_sum_over_one_axis_is_not_split() -> None:
    """sum(k, c[k] * sum(k, c[k])): the inner sum would be over a tile."""
    c = loaded("c")
    p = around(Store("r", node("sum", node("mul", c, node("sum", c, attr="k")), attr="k")))
    rule = next(r for r in RULES if r.name == "sum in a loop")
    assert not saturated(p, [rule], 2).applied


def test_what_is_ill_typed_is_wrong() -> None:
    p = around(Store("e", node("const", attr=T.const(1))))
    assert ill_typed(around(Store("e", loaded("g")))) and not ill_typed(p)
    assert not ill_typed(around(Store("p", loaded("g"))))


def test_all_rules_together_hold() -> None:
    found = list(all_rules(8, RULES, seed=1))
    assert not any(f.found for f in found), next(text(f.found.made) for f in found if f.found)
    assert sum(f.compared for f in found) > 8


def test_a_wrong_rule_among_others_is_found() -> None:
    """The rules with one that does not hold: a difference is found in 40 programs."""
    rule = next(r for r in RULES if r.name == "sum in a loop")
    wrong = replace(rule, text=rule.twins[0].text, looks=rule.twins[0].looks)
    assert any(f.found for f in all_rules(40, [r for r in RULES[:12] if r is not rule] + [wrong], seed=2))


def test_a_table_of_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says what is wrong, and what was not refuted."""
    rule = next(r for r in RULES if r.name == "sum in a loop")
    wrong = replace(rule, text=rule.twin, twins=())
    kept = replace(rule, twins=(replace(rule.twins[0], text=rule.text),))
    codes = []
    for r in (rule, wrong, kept):
        monkeypatch.setattr(tile_rules, "RULES", (r,))
        result = tile_rules.measured(Options(), True, tile_rules.Counts(3, 10, 4))
        codes.append(result.code)
        assert [t.heading for t in result.tables] == ["rules", "forms that do not hold", "all rules together"]
        assert result.data["together"]["programs"] == 4
    assert codes == [0, 1, 2]


@pytest.fixture(scope="module")
def classes() -> Classes:
    return saturated(normed(), rounds=5, nodes=20_000)


def test_what_is_drawn_is_the_program(classes: Classes) -> None:
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

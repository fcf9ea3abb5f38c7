"""Defects planted in the prover: where they are found, how they are planted, and a sample that tests must notice."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from trilift.lift.terms import term as T
from trilift.reports.experiments.defects import defect_page, suite_server, switch
from trilift.reports.experiments.defects.defect_page import COLUMNS, Outcome, result, share
from trilift.reports.experiments.defects.drawn import by_file, drawn
from trilift.reports.experiments.defects.sites import OPERATORS, Site, sites
from trilift.reports.experiments.defects.survivors import KINDS, SURVIVORS

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    ("refusal left out", "if x > 0:\n    return None\nreturn x", "if False:\n    return None\nreturn x"),
    ("refusal left out", "return None if x > 0 else x", "return x"),
    ("condition left out", "if x.ok:\n    return x\nreturn None", "if True:\n    return x\nreturn None"),
    ("condition left out", "return x if x.ok else None", "return x"),
    ("condition left out", "return not x.ok", "return True"),
    ("clause left out", "return x.a and x.b", "return x.b"),
    (
        "clause left out",
        "if x.a or not x.b:\n    return False\nreturn True",
        "if not x.b:\n    return False\nreturn True",
    ),
    ("comparison widened", "return x < 3", "return x <= 3"),
    ("comparison widened", "if not x < 3:\n    return None\nreturn x", "if not x <= 3:\n    return None\nreturn x"),
    ("comparison widened", "if len(x) != 1:\n    return None\nreturn x", "if len(x) < 1:\n    return None\nreturn x"),
    ("quantifier weakened", "return all(y.a for y in x)", "return any((y.a for y in x))"),
    ("quantifier weakened", "if any(x):\n    return None\nreturn x", "if all(x):\n    return None\nreturn x"),
    ("filter left out", "return [y for y in x if y.a]", "return [y for y in x if True]"),
    ("call left out", "owe(x)\nreturn x", "pass\nreturn x"),
    ("raise left out", "try:\n    f(x)\nfinally:\n    raise Undecided(x)", "try:\n    f(x)\nfinally:\n    pass"),
    ("False is True", "if f(x):\n    return True\nreturn False", "if f(x):\n    return True\nreturn True"),
    ("strict or not", "return T.make('lt', x, 0)", "return T.make('le', x, 0)"),
    ("conjunct left out", "return T.make('and', x.a, x.b)", "return T.make('and', x.b)"),
    ("conjunct left out", "return x.guards | {y}", "return x.guards"),
    ("off by one", "return x - 1", "return x"),
    ("off by one", "return T.sub(x, 1)", "return T.sub(x, 0)"),
    ("summand left out", "return x + y", "return x"),
    ("sign", "return x - y", "return x + y"),
    ("flag", "return f(x, signed=True)", "return f(x, signed=False)"),
]


def function(body: str) -> str:
    return "def f(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())


def changed(source: str, site: Site) -> str:
    """The source with this defect alone, planted for good."""
    tree = ast.unparse(switch.planted(source, [(0, site)]))
    return ast.unparse(_Settled().visit(ast.parse(tree)))


class _Settled(ast.NodeTransformer):
    """Takes the side of the defect of every choice."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return node.body if switch.NAME in ast.unparse(node.test) else node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        return node.body if switch.NAME in ast.unparse(node.test) else node


@pytest.mark.smoke
@pytest.mark.parametrize(("operator", "before", "after"), EXAMPLES)
def test_an_operator_breaks_a_condition(operator: str, before: str, after: str) -> None:
    found = [s for s in sites("m.py", function(before)) if s.operator == operator]
    assert ast.unparse(ast.parse(function(after))) in [changed(function(before), s) for s in found]


@pytest.mark.smoke
def test_every_operator_has_an_example() -> None:
    assert {e[0] for e in EXAMPLES} == OPERATORS.keys()


@pytest.mark.smoke
@pytest.mark.parametrize(
    "body",
    ["if x is None:\n    return None\nreturn x", "if x in cache:\n    return cache[x]\nreturn x",
     "raise_ = f'{x + 1}'\nreturn raise_", "return [*x][0]"],
)  # fmt: skip
def test_what_only_keeps_from_an_error_is_left_alone(body: str) -> None:
    assert sites("m.py", function(body)) == []


@pytest.mark.smoke
def test_a_defect_is_planted_behind_its_number() -> None:
    source = function("if x > 0 or x < -5:\n    return None\nreturn x - 1")
    found = list(enumerate(sites("m.py", source)))
    space: dict[str, Any] = {switch.NAME: switch.Switch()}
    exec(compile(switch.planted(source, found), "m.py", "exec"), space)
    f, on = space["f"], space[switch.NAME]
    values = lambda: [f(x) for x in (-6, -1, 0, 1)]  # noqa: E731
    right = values()
    assert right == [None, -2, -1, None]
    for number, site in found:
        on.on = number
        assert values() != right, site


@pytest.mark.smoke
def test_a_recorder_tells_what_a_defect_would_change() -> None:
    source = function("if x > 0 or x < -5:\n    return None\nreturn [y - 1 for y in [x] if y < 0]")
    found = list(enumerate(sites("m.py", source)))
    space: dict[str, Any] = {switch.NAME: switch.Switch(recorder=(recorder := switch.Recorder(len(found))))}
    exec(compile(switch.planted(source, found, recording=True), "m.py", "exec"), space)
    told = {x: (space["f"](x), recorder.take()) for x in (1, 0, -1, -6)}
    assert [s.source for _, s in found] == ["x > 0", "x < -5", "x > 0 or x < -5", "y - 1", "y < 0"]
    assert told == {
        1: (None, ([0, 1, 2], [0, 2])),
        0: ([], ([0, 1, 2, 4], [4])),
        -1: ([-2], ([0, 1, 2, 3, 4], [3])),
        -6: (None, ([0, 1, 2], [1, 2])),
    }


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("right", "changed", "truth", "same"),
    [(1, 1.0, False, False), (1, 2, True, True), ((1, "a"), (1, "a"), False, True), ([], None, True, True),
     (T.size("N"), T.size("N"), False, True), (object(), object(), False, False)],
)  # fmt: skip
def test_values_are_alike(right: object, changed: object, truth: bool, same: bool) -> None:
    assert switch.alike(right, changed, truth) == same


def test_a_seed_names_its_defects() -> None:
    few, many = drawn(60, 0), drawn(240, 0)
    assert [s.key for s in many[:60]] == [s.key for s in few]
    assert len({s.key for s in many}) == 240 and {s.key for s in drawn(60, 1)} != {s.key for s in few}
    assert {s.operator for s in many} == OPERATORS.keys()
    for file, of in by_file(many):
        compile(switch.planted((ROOT / file).read_text(), of), file, "exec")


@pytest.mark.smoke
def test_the_page_counts_what_matters() -> None:
    first, second, third, last = drawn(4, 0)
    found = [
        Outcome(first, "noticed", "t.py::a", 2),
        Outcome(second, "crash", "t.py::b", 1),
        Outcome(third, "survived", "", 3, "equivalent", "x is never negative"),
        Outcome(last, "survived", "", 1),
    ]
    made = result(found, "defects")
    tables = {t.heading: t.rows for t in made.tables}
    assert made.code == 1 and tables.keys() == COLUMNS.keys() and share(found) == 2 / 3
    assert [r[0] for r in tables["open"]] == [f"{last.file}:{last.line}"]
    assert tables["by folder"][-1] == ("all", "4", "1", "1", "0", "1", "1", "66.7 %")
    assert result(found[:3], "defects").code == 0 and result([], "defects").code == 3


@pytest.mark.smoke
def test_each_survivor_has_a_reason_and_is_a_defect() -> None:
    keys = {s.key for s in drawn(10_000, 0)}
    assert not SURVIVORS.keys() - keys, "the line of this defect has changed: read it again"
    assert all(kind in KINDS and len(why) > 10 for kind, why in SURVIVORS.values())


@pytest.mark.slow
def test_a_sample_is_noticed(tmp_path: Path) -> None:
    """Defects of linear arithmetic, under its own tests."""
    test = "tests/verify/test_linear.py"
    of = [s.key for s in drawn(240, 0) if s.file in ("verify/integers/linear.py", "verify/integers/linear_forms.py")]
    defect_page.serve(240, 0, [test], lambda text: None, tmp_path, 10.0, of=of)
    recorded = [json.loads(x) for x in (tmp_path / "recorded.jsonl").read_text().splitlines()]
    assert recorded and all(r["passed"] for r in recorded) and any(r["reached"] for r in recorded)
    tried = [json.loads(x) for x in (tmp_path / "tried.jsonl").read_text().splitlines()]
    assert {t["key"] for t in tried} == {*of}
    assert {t["test"].partition("::")[0] for t in tried if t["outcome"] in ("noticed", "crash")} == {test}


@pytest.mark.smoke
def test_tests_are_taken_up_to_a_ceiling() -> None:
    tests = [suite_server.Recorded(str(k), True, 3.0, ()) for k in range(5)]
    assert [r.test for r in suite_server.within(tests, 7.0)] == ["0", "1"]
    assert [r.test for r in suite_server.within(tests, 1.0)] == ["0"]


@pytest.mark.smoke
def test_a_fork_gives_its_lines_and_ends() -> None:
    assert list(suite_server.forked(lambda: iter(["a", "b"]), 60.0)) == ["a", "b"]
    assert list(suite_server.forked(_fails, 60.0)) == ["a"]


def _fails() -> Any:
    yield "a"
    raise ValueError

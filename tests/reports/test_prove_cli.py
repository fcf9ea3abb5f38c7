"""`trilift prove` and `trilift equal`: verdicts, contracts and exit codes, with a prover that says what it is told."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import Done, commands

from trilift import case as declared
from trilift.lift.errors import CaseError, Place, TriliftError, Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis
from trilift.reports.base import targets
from trilift.reports.commands import prove
from trilift.reports.records import conditions, proof_record, unfinished, verdict_text
from trilift.reports.records.options import Options
from trilift.verify.model import verdict as V
from trilift.verify.refutation.case_parts import UNTRIED

SOURCE = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def run(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y

def plain(x):
    return x + x
"""
NAMES = ("proved", "tested", "refuted", "unknown", "open", "hanging", "aborting", "raising", "odd", "nothing", "last")
WRONG = """
@case(x="f32[N]")
def wrong(x):
    return run(x)

@wrong.reference
def _(x):
    return 3 * x

@case(x="f32[N]")
def pair(x):
    return run(x), run(x)

@case(x="f32[N]")
def referenced(x):
    return run(x)

@referenced.reference
def _(x):
    return x + x
"""
N, n = T.size("N"), T.axis(Axis("n", T.size("T")))
PLACE = Place("cases.py", 8, 21)
FITS = V.Clause("nowrap", T.make("lt", N, T.const(2**31)), "N < 2**31", "the addresses", PLACE)


def condition(what: str, holds: bool = True, by: str = "linear", why: str = "") -> V.Condition:
    return V.Condition(
        what, frozenset(), T.make("lt", n, N), holds, by, 0.25, PLACE, why, "(check-sat)" if by == "z3" else ""
    )


def stand_in(case: Any, *, against: str | None = None, progress: Any = None, **_: Any) -> tuple[V.Proof, ...]:
    """A prover that says what the case's name asks for."""
    claim = V.Claim("out", against or "")
    good = (condition("store in bounds"), condition("value", by="normal form"), condition("coverage", by="z3"))
    bad = condition("step of loop at line 7: total", False, why="the guard is missing")
    example = V.Counterexample({"N": 3}, 7, 2, "out", (1,), 0.5, float("nan"), "print('replayed')\n")
    invariant = V.Invariant(PLACE, "total", T.mul(2, n), 1)
    by_name: dict[str, Callable[[], tuple[V.Proof, ...]]] = {
        "tested": lambda: (V.tested(claim, 40, 1e-9, "no closed form of `top`"),),
        "refuted": lambda: (V.refuted(claim, example),),
        "wrong": lambda: (V.proved(claim, good, (), ()),),
        "unknown": lambda: (V.unknown(claim, "not supported: tt.foo", PLACE),),
        "open": lambda: (V.proved(claim, (*good, bad), (), ()),),
        "hanging": lambda: time.sleep(60) or (),
        "aborting": lambda: os.abort(),
        "raising": lambda: 1 // 0,
        "odd": lambda: _raise(CaseError("cannot read the formula", why="of this case")),
        "refused": lambda: _raise(Unsupported("aten.foo", PLACE)),
        "nothing": lambda: (),
        "pair": lambda: (V.proved(V.Claim("out0", against or ""), good, (), ()),),
    }
    progress("prove")
    return by_name.get(case.name, lambda: (V.proved(claim, good, (invariant,), (FITS,)).taking(0.5),))()


def _raise(e: Exception) -> Any:
    raise e


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prove")
    cases = [f'\n@case(x="f32[N]")\ndef {name}(x):\n    return run(x)\n' for name in (*NAMES, "refused")]
    (path / "cases.py").write_text(SOURCE + "".join(cases) + WRONG)
    (path / "one.py").write_text(SOURCE + cases[0])
    (path / "empty.py").write_text("x = 1\n")
    (path / "raises.py").write_text("from trilift import case\nraise RuntimeError('no')\n@case()\ndef f():\n  ...\n")
    return path


def prepare() -> None:
    """The stand-ins, in the process that serves."""
    from trilift import verify
    from trilift.verify import pipeline

    pipeline.examine = lambda case, **how: SimpleNamespace(proofs=stand_in(case, **how))  # type: ignore[assignment]
    verify.equal = lambda a, b, **how: stand_in(a, against="b", **how)


@pytest.fixture(scope="module")
def trilift(folder: Path) -> Iterator[Callable[..., Done]]:
    """The command, run in the folder, which is this process's too."""
    with pytest.MonkeyPatch.context() as monkeypatch, commands(folder, prepare) as run:
        monkeypatch.chdir(folder)
        yield run


@pytest.fixture(scope="module")
def everything(trilift: Any) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code and records of one run over all cases."""
    done = trilift("prove", "-q", "cases.py", "--format", "json", "--timeout", "2", "-j", "2", "--replay", "scripts",
                   "--smt-dir", "smt", "--explain")  # fmt: skip
    return done.exit_code, {c["name"]: c for c in json.loads(done.output)["cases"]}


@pytest.mark.parametrize(
    ("name", "verdict", "code", "said"),
    [
        ("proved", "PROVED", 0, "PROVED"),
        ("tested", "TESTED", 0, "TESTED, wrong at the sizes and scalars tried with probability at most 1.0e-09"),
        ("refuted", "REFUTED", 1, "out[1] is 0.5, the lifted formula gives nan"),
        ("unknown", "UNKNOWN", 4, "not supported: tt.foo"),
        ("open", "UNKNOWN", 4, "the guard is missing"),
        ("refused", "UNKNOWN", 4, "aten.foo"),
        ("nothing", "UNKNOWN", 4, "nothing was tried for out"),
        ("pair", "UNKNOWN", 4, "nothing was tried for out1"),
        ("odd", "UNKNOWN", 2, "cannot read the formula"),
        ("hanging", "UNKNOWN", 4, "not finished in the time given"),
        ("aborting", "UNKNOWN", 4, "SIGABRT"),
        ("raising", "UNKNOWN", 2, "trilift itself failed"),
    ],
)
def test_a_case_says_its_verdict(everything: Any, name: str, verdict: str, code: int, said: str) -> None:
    record = everything[1][name]
    assert (record["verdict"], prove.code(record)) == (verdict, code)
    assert said in verdict_text.case(record)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["cases.py::proved"], 0, "PROVED"),
        (["cases.py::unknown", "--allow-unknown"], 0, "UNKNOWN"),
        (["cases.py::unknown", "cases.py::refuted"], 1, "REFUTED"),
        (["cases.py::nosuch"], 2, "has no case nosuch"),
        (["nosuch.py"], 2, "no such file"),
        (["raises.py"], 2, "loading the file raised RuntimeError"),
        (["empty.py"], 3, "nothing to check"),
        (["cases.py::proved", "--against", "reference"], 2, "has no reference"),
        (["cases.py::referenced", "--against", "reference"], 0, "out = the reference"),
        (["cases.py::referenced", "--against", "formula"], 0, "out = 2 * x, the lifted formula"),
        (["cases.py::proved", "--against", "softmax(x,"], 2, "--against: cannot read"),
        (["cases.py::proved", "--against", "import os"], 2, "--against: cannot read"),
        (["cases.py::proved", "--against", "2 * x"], 0, "PROVED"),
        (["cases.py::proved", "--timeout", "0"], 2, "--timeout"),
        (["cases.py::proved", "--format", "html"], 2, "--format"),
        (["cases.py::proved", "--smt-dir", "/dev/null/no"], 2, "--smt-dir: cannot make the folder"),
        ([], 2, "Missing argument"),
    ],
)
def test_exit_codes_and_messages(trilift: Any, args: list[str], code: int, said: str) -> None:
    done = trilift("prove", "-q", *args)
    assert (done.exit_code, said in done.output) == (code, True), done.output


def test_one_bad_case_harms_no_other(everything: Any) -> None:
    code, cases = everything
    assert list(cases)[: len(NAMES)] == list(NAMES) and code == 2
    assert {n for n in cases if cases[n]["verdict"] == "PROVED"} == {"proved", "last", "referenced"}
    assert all(cases[n]["formula"]["text"] == "2 * x" for n in ("hanging", "aborting", "raising"))


def test_json_has_the_fields(everything: Any) -> None:
    proved, tested, refuted = (everything[1][n] for n in ("proved", "tested", "refuted"))
    assert (proved["verdict"], proved["against"], proved["bound"], proved["reason"]) == ("PROVED", "formula", None, "")
    assert proved["contract"] == ["N < 2**31"] and proved["seconds"]["prove"] == 0.5
    assert proved["lift"] == "ok" and proved["blocks"] == {"BLOCK": 16}
    assert (tested["verdict"], tested["bound"]) == ("TESTED", 1e-9)
    example = refuted["proofs"][0]["counterexample"]
    assert (refuted["verdict"], example["dims"], example["index"], example["expected"]) == (
        "REFUTED", {"N": 3}, [1], "nan")  # fmt: skip


def test_text_is_golden(everything: Any, golden: Callable[[str, str], None]) -> None:
    names = ("proved", "tested", "refuted", "unknown", "open", "wrong", "odd", "pair", "refused", "nothing")
    said = [verdict_text.case({**everything[1][n], "explain": []}) for n in names]
    golden("prove.txt", "\n".join(said).replace(str(Path.cwd()), "DIR"))


def test_a_counterexample_is_replayed(everything: Any) -> None:
    path = everything[1]["refuted"]["proofs"][0]["counterexample"]["replay"]
    assert Path(path).read_text() == "print('replayed')\n" and Path(path).parent.name == "scripts"


def test_conditions_are_written(everything: Any) -> None:
    folder = Path(everything[1]["proved"]["proofs"][0]["smt"])
    assert sorted(p.name for p in folder.iterdir()) == ["0000-store-in-bounds.smt2", "0002-coverage.smt2"]


@pytest.mark.smoke
def test_written_conditions_are_the_conditions(tmp_path: Path) -> None:
    """Unsatisfiable with the fact that it follows from, satisfiable without."""
    from trilift.verify.integers import solver

    goal, fact = T.make("lt", n, T.add(N, 1)), T.make("lt", n, N)
    held = [V.Condition("in bounds", frozenset(facts), goal, True, "z3", 0.0) for facts in ([fact], [])]
    value = V.Condition("value", frozenset(), T.make("eq", T.make("read", n, attr="x"), 0.5), True, "normal form", 0.0)
    folder = Path(conditions.write([*held, value], tmp_path / "smt"))
    texts = [p.read_text() for p in sorted(folder.iterdir())]
    assert [solver.contradiction(t, 2.0) for t in texts] == [True, False]
    assert "; in bounds" in texts[0] and "is n" in texts[0]


def test_explain_tells_invariants_and_conditions(everything: Any) -> None:
    said = verdict_text.case(everything[1]["proved"])
    for line in (
        "line 8: total(n) = 2 * n  for n >= 1",
        "1 conditions by linear, 0.25 s",
        "store in bounds (line 8): n < N  [250 ms]",
        "N < 2**31   needed by the addresses at line 8",
    ):
        assert line in said, said


def test_a_kernel_seen_to_be_wrong_is_not_proved(everything: Any, trilift: Any) -> None:
    """The stand-in claims a proof of it."""
    case = everything[1]["wrong"]
    assert (case["verdict"], prove.code(case)) == ("REFUTED", 1)
    assert [f["rule"] for f in case["findings"]] == ["wrong-result"]
    assert "PROVED" not in json.dumps(case)
    formula = trilift("prove", "-q", "cases.py::wrong", "--format", "json", "--against", "formula").output
    assert "PROVED" not in formula


@pytest.mark.parametrize(
    ("pair", "code", "said"),
    [
        (["cases.py::proved", "cases.py::last"], 0, "cases.py::proved == cases.py::last: PROVED"),
        (["cases.py::proved", "cases.py::plain"], 0, "PROVED"),
        (["cases.py::plain", "cases.py::proved"], 0, "PROVED"),
        (["one.py", "torch:relu"], 0, "one.py == torch:relu: PROVED"),
        (["one.py", "torch.nn.functional:softmax"], 0, "PROVED"),
        (["cases.py::refuted", "cases.py::plain"], 1, "REFUTED"),
        (["cases.py::unknown", "cases.py::plain"], 4, "UNKNOWN"),
        (["cases.py::unknown", "cases.py::plain", "--allow-unknown"], 0, "UNKNOWN"),
        (["cases.py::raising", "cases.py::plain"], 2, "trilift itself failed"),
        (["cases.py::aborting", "cases.py::plain"], 4, "SIGABRT"),
        (["cases.py::odd", "cases.py::plain"], 2, "cannot read the formula"),
        (["cases.py::refused", "cases.py::plain"], 4, "aten.foo"),
        (["cases.py::plain", "torch:relu"], 2, "neither of the two is a case"),
        (["cases.py", "one.py"], 2, "name one of them"),
        (["cases.py::nosuch", "one.py"], 2, "no case or function nosuch"),
        (["raises.py::x", "one.py"], 2, "raised RuntimeError"),
        (["one.py", "nosuchmodule:f"], 2, "no module named nosuchmodule"),
        (["one.py", "torch:nosuch"], 2, "torch has no case or function nosuch"),
        (["one.py", "."], 2, "is a folder"),
        (["one.py"], 2, "Missing argument"),
    ],
)
def test_equal(trilift: Any, pair: list[str], code: int, said: str) -> None:
    done = trilift("equal", "-q", *pair)
    assert (done.exit_code, said in done.output) == (code, True), done.output


# ---- parts that need no process --------------------------------------------------------------------------------------


def merged(*found: V.Proof, base: dict[str, Any] | None = None, outputs: tuple[str, ...] = ("a",)) -> dict[str, Any]:
    base = base or {**unfinished.empty("f.py", "c", "", ""), "errors": []}
    return proof_record.merged(base, found, outputs, "formula", Options())


def one(word: str, output: str = "a") -> V.Proof:
    claim = V.Claim(output, "formula")
    example = V.Counterexample({}, 0, 0, output, (), 1.0, 2.0)
    return {
        "PROVED": V.proved(claim, (condition("value"),), (), ()),
        "TESTED": V.tested(claim, 5, 0.25, "why"),
        "REFUTED": V.refuted(claim, example),
        "UNKNOWN": V.unknown(claim, "why"),
    }[word]


@pytest.mark.smoke
@pytest.mark.parametrize("first", proof_record.WORST)
@pytest.mark.parametrize("second", proof_record.WORST)
def test_the_worst_output_is_the_case(first: str, second: str) -> None:
    record = merged(one(first), one(second, "b"), outputs=("a", "b"))
    assert record["verdict"] == min(first, second, key=proof_record.WORST.index)
    assert prove.code(record) == {"REFUTED": 1, "UNKNOWN": 4}.get(record["verdict"], 0)


@pytest.mark.smoke
def test_the_contract_says_what_the_case_says() -> None:
    base = {**unfinished.empty("f.py", "c", "", ""), "errors": [], "where": "N <= 64"}
    proof = V.proved(V.Claim("a", "formula"), (condition("value"),), (), (FITS, FITS))
    record = merged(proof, base=base)
    assert record["contract"] == ["N <= 64", "N < 2**31"]
    assert "for all inputs with\n        N <= 64\n        N < 2**31" in verdict_text.case(record)


@pytest.mark.smoke
def test_tested_says_what_was_not_tried() -> None:
    untried = V.Clause("shape", None, "0 <= s", UNTRIED)
    said = verdict_text.case(merged(replace(V.tested(V.Claim("a", "formula"), 1, 0.25, "why"), contract=(untried,))))
    assert "held on 1 random sample; not proved: why" in said
    assert f"tried for inputs with\n        0 <= s   needed by {UNTRIED}" in said


@pytest.mark.smoke
def test_an_access_out_of_bounds_is_no_number() -> None:
    claim = V.Claim("a", "reference")
    example = V.Counterexample({"N": 3}, 0, 0, "", (), float("nan"), float("nan"), why="access out of bounds: 1 byte")
    record = merged(V.refuted(claim, example))
    (finding,) = record["findings"]
    assert (finding["rule"], finding["message"]) == ("out-of-bounds", "access out of bounds: 1 byte")
    assert "access out of bounds: 1 byte" in verdict_text.case(record) and "nan" not in verdict_text.case(record)


@pytest.mark.smoke
def test_bounds_add_up_and_only_where_it_is_tested() -> None:
    assert merged(one("TESTED"), one("TESTED", "b"))["bound"] == 0.5
    assert merged(one("TESTED"), one("UNKNOWN", "b"))["bound"] is None
    assert merged(one("PROVED"))["bound"] is None
    assert merged(one("TESTED"), replace(one("TESTED", "b"), bound=None))["bound"] is None


@pytest.mark.smoke
def test_no_proof_is_unknown() -> None:
    assert merged()["verdict"] == merged(outputs=())["verdict"] == "UNKNOWN"
    assert merged(one("PROVED"), outputs=("a", "b"))["verdict"] == "UNKNOWN"


@pytest.mark.smoke
def test_a_proof_that_a_finding_contradicts_is_none() -> None:
    finding = {"rule": "undefined-value"}
    base = {**unfinished.empty("f.py", "c", "", ""), "errors": [], "findings": [finding]}
    record = merged(one("PROVED"), base=base)
    assert record["verdict"] == "UNKNOWN" and "undefined-value" in record["reason"] and prove.code(record) == 1


@pytest.mark.smoke
def test_only_what_was_not_proved_has_a_cause() -> None:
    opened = V.proved(V.Claim("a", "formula"), (condition("step of loop at line 3: x", False),), (), ())
    assert conditions.cause(opened) == "step of loop"
    assert conditions.cause(one("PROVED")) == ""
    assert conditions.cause(V.failed(V.Claim("a", "formula"), Unsupported("tt.foo", PLACE))) == "Unsupported: tt.foo"
    assert conditions.counted(opened.conditions) == {
        "count": 1, "open": 1, "by": {"open": {"count": 1, "seconds": 0.25}},
        "kinds": [{"kind": "step of loop", "count": 1, "open": 1, "by": {}, "seconds": 0.25}]}  # fmt: skip


@pytest.mark.smoke
def test_terms_of_proofs_are_printed() -> None:
    element = partial(T.node, of_type=T.REAL)
    read = element("read", (T.add(n, 1),), "x@3")
    assert conditions.shown(read) == "x[n + 1]"
    assert conditions.shown(T.node("pointer", (T.mul(2, n),), "x", "ptr")) == "x + 2 * n"
    steps = T.make("floordiv", N, T.const(64))
    assert conditions.shown(T.mul(64, T.size("s"), steps)) == "64 * s * (N // 64)"  # not 64 * s * N // 64
    loop = type("Carry", (), {"name": "acc", "__repr__": lambda self: "acc"})()
    assert conditions.shown(T.add(element("carry", (n, T.const(0)), loop), 1)) == "acc(n, 0) + 1"


@pytest.mark.smoke
def test_single_targets() -> None:
    assert targets.single("torch:relu") == targets.Named("torch", "relu", True)
    assert str(targets.single(__file__)) == __file__


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("got", "said"),
    [
        (4055470001.0, "4055470001"), (-3.0, "-3"), (0.1364651, "0.136465"), (2.0**60, "1.15292e+18"),
        (float("inf"), "inf"), (float("nan"), "nan"), ("nan", "nan"), (-0.0, "0"),
    ],
)  # fmt: skip
def test_whole_numbers_of_a_counterexample_keep_their_digits(got: Any, said: str) -> None:
    found = {"element": "y[0]", "got": got, "expected": 1.0, "why": ""}
    assert proof_record.difference(found, "reference") == f"y[0] is {said}, the reference gives 1"


def test_numbers_that_are_none_are_text() -> None:
    assert json.dumps(proof_record.jsonable({"a": (float("inf"), 1, None, N)})) == '{"a": ["inf", 1, null, "N"]}'


@pytest.mark.smoke
def test_an_unknown_without_a_proof_says_how_to_go_on() -> None:
    record = {**unfinished.empty("f.py", "c", "", ""), "errors": [], "reason": "no formula was lifted from c"}
    assert "= help: trilift lift --explain" in verdict_text.case(record)


def test_a_finding_without_a_statement_stands_at_the_last_kernel() -> None:
    example = {
        "output": "out",
        "dims": {"N": 1},
        "element": "out[0]",
        "got": 1.0,
        "expected": 2.0,
        "why": "",
        "replay": None,
        "place": None,
    }
    proof = {"place": None, "against": proof_record.REFERENCE, "counterexample": example}
    base = {
        "findings": [],
        "kernels": [{"name": "a", "file": "k.py", "line": 3}, {"name": "b", "file": "k.py", "line": 9}],
    }
    [found] = proof_record.new_findings(base, [proof])
    assert (found["rule"], found["file"], found["line"]) == ("wrong-result", "k.py", 9)
    [placed] = proof_record.new_findings(base, [{**proof, "place": {"file": "k.py", "line": 5}}])
    assert placed["line"] == 5
    launched = {**example, "place": {"file": "k.py", "line": 3}}
    [there] = proof_record.new_findings(base, [{**proof, "counterexample": launched}])
    assert there["line"] == 3  # the kernel that was launched at these sizes, not the last one that was lifted
    [nowhere] = proof_record.new_findings({"findings": []}, [proof])
    assert nowhere["file"] == ""


@pytest.mark.smoke
def test_what_was_seen_to_differ_is_refuted_though_the_proof_stops() -> None:
    stop = TriliftError("aten.view with dtype=torch.int8")
    seen = {**unfinished.empty("f.py", "c", "", ""), "verdict": "REFUTED", "reason": "it differs"}
    against_reference = proof_record.stopped(seen, proof_record.REFERENCE, stop)
    assert against_reference["verdict"] == "REFUTED" and stop.what in against_reference["reason"]
    assert proof_record.stopped(seen, proof_record.FORMULA, stop)["verdict"] == "UNKNOWN"
    unseen = {**seen, "verdict": "UNKNOWN"}
    assert proof_record.stopped(unseen, proof_record.REFERENCE, stop)["reason"] == stop.what


@pytest.mark.smoke
def test_terms_that_are_nested_too_deeply_are_no_fault_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*args: object, **options: object) -> None:
        raise RecursionError

    monkeypatch.setattr("trilift.verify.pipeline.examine", endless)
    made = declared(x="f32[N]")(lambda x: x)
    made.reference(lambda x: x)
    record = proof_record.proved(made, None, unfinished.empty("f.py", "c", "", ""), Options(), lambda stage: None)
    assert (record["verdict"], record["reason"]) == ("UNKNOWN", proof_record.NESTED)

"""Certificates: proofs of right kernels are checked; a certificate that says something false is not, whatever was
changed in it. The checker imports nothing of trilift."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from trilift.lift import checker
from trilift.lift.capture.case_files import load
from trilift.lift.capture.trace import Buffer, Descriptor, Launch, TensorRef, Trace
from trilift.lift.checker import claims, decisions
from trilift.lift.runtime.isolate import Outcome
from trilift.reports.cli import main
from trilift.reports.records import proof_record, second_opinion
from trilift.reports.records.options import Proving
from trilift.verify.certificate import origin
from trilift.verify.certificate.export import certificate
from trilift.verify.model.verdict import Verdict
from trilift.verify.pipeline import examine

KERNELS = Path(__file__).parents[1] / "kernels" / "kernels_certificates.py"
NAMES = ("shifted_relu", "two_launches", "row_sum", "gathered")


@cache
def cases():
    return {c.name: c for c in load(str(KERNELS))}


@cache
def proved(name):
    case = cases()[name]
    return json.dumps(certificate(name, str(KERNELS), examine(case, against="reference", fallback=False), case))


def fresh(name):
    """The only part of a certificate: a claim with what it is shown from."""
    (part,) = json.loads(proved(name))["parts"]
    return part


def whole(part, name="shifted_relu"):
    return {**json.loads(proved(name)), "parts": [part]}


def check(part, name="shifted_relu"):
    return checker.check(whole(part, name))


@pytest.mark.parametrize("name", (*NAMES, "first_maximum", "filled", "top_share"))
def test_right_kernels_are_checked(name):
    report = check(fresh(name))
    assert report.checked, [str(f) for f in report.failures]
    assert report.shown["stores"] and report.shown["coverage"] and report.shown["bounds"] and report.shown["integers"]


# ---- terms -----------------------------------------------------------------------------------------------------------


def put(c, op, sort="int", attr=None, args=()):
    """A new term, its number."""
    c["terms"].append([op, sort, attr, list(args)])
    return len(c["terms"]) - 1


def const(c, k):
    return put(c, "const", attr=k)


def plus(c, t, k):
    return put(c, "add", c["terms"][t][1], args=(t, const(c, k)))


def first(c, op, attr=None):
    return next(k for k, t in enumerate(c["terms"]) if t[0] == op and (attr is None or t[2] == attr))


def launch(c, k=0):
    return [e for e in c["configurations"][0]["events"] if e["kind"] == "launch"][k]


def store(c, k=0):
    return next(x for x in launch(c, k)["accesses"] if x["kind"] == "store")


def load_(c, k=0):
    return next(x for x in launch(c, k)["accesses"] if x["kind"] == "load")


def carry(c):
    return launch(c)["loops"][0]["carries"][-1]


def formula(c):
    return next(iter(c["formulas"].values()))


def moved(c, access, k):
    """The pointer k elements further."""
    op, sort, attr, (offset,) = c["terms"][access["pointer"]]
    access["pointer"] = put(c, op, sort, attr, (plus(c, offset, k),))


def substituted(c, t, old, new):
    """A copy of term t with `new` for `old`."""
    if t == old:
        return new
    op, sort, attr, args = c["terms"][t]
    kept = [substituted(c, a, old, new) for a in args]
    return t if kept == args else put(c, op, sort, attr, kept)


# ---- what is spoiled -------------------------------------------------------------------------------------------------

SPOILED = {}


def spoils(*names):
    def register(f):
        for name in names:
            SPOILED[f"{name}-{f.__name__}"] = (name, f)
        return f

    return register


@spoils(*NAMES)
def another_formula(c):
    formula(c)["term"] = plus(c, formula(c)["term"], 1)


@spoils(*NAMES)
def a_formula_twice_as_large(c):
    formula(c)["term"] = put(c, "mul", "real", args=(const(c, 2), formula(c)["term"]))


@spoils(*NAMES)
def no_formula(c):
    c["formulas"].clear()


@spoils(*NAMES)
def a_formula_of_another_name(c):
    c["formulas"] = {"elsewhere": formula(c)}


@spoils("shifted_relu", "two_launches", "gathered")
def a_store_without_mask(c):
    store(c)["guard"] = put(c, "const", "bool", True)


@spoils("shifted_relu", "two_launches", "gathered")
def a_load_without_mask(c):
    load_(c)["guard"] = put(c, "const", "bool", True)


@spoils("shifted_relu", "gathered")
def a_mask_that_is_too_narrow(c):
    less = plus(c, store(c)["guard"], 0)
    op, sort, attr, (i, n) = c["terms"][store(c)["guard"]]
    assert op == "lt" and less
    store(c)["guard"] = put(c, op, sort, attr, (plus(c, i, 1), n))


@spoils("shifted_relu", "gathered")
def a_mask_that_is_too_wide(c):
    op, sort, attr, (i, n) = c["terms"][store(c)["guard"]]
    store(c)["guard"] = put(c, op, sort, attr, (i, plus(c, n, 1)))


@spoils(*NAMES)
def no_store(c):
    launch(c)["accesses"] = [x for x in launch(c)["accesses"] if x["kind"] != "store"]


@spoils(*NAMES)
def another_value(c):
    store(c)["value"] = plus(c, store(c)["value"], 1)


@spoils("shifted_relu", "row_sum", "gathered")
def a_store_one_element_further(c):
    moved(c, store(c), 1)


@spoils(*NAMES)
def a_load_one_element_further(c):
    moved(c, load_(c), 1)


@spoils(*NAMES)
def a_grid_that_is_too_small(c):
    launch(c)["grid"][0] = plus(c, launch(c)["grid"][0], -1)


@spoils("row_sum")
def a_grid_that_is_too_large(c):
    launch(c)["grid"][0] = plus(c, launch(c)["grid"][0], 1)


@spoils(*NAMES)
def facts_that_contradict_each_other(c):
    n = first(c, "size", "N")
    fact = put(c, "lt", "bool", args=(n, const(c, 1)))
    c["configurations"][0]["facts"].append(fact)
    c["contract"].append({"kind": "size", "text": "N < 1", "term": fact, "configuration": None})


@spoils(*NAMES)
def a_fact_that_is_false(c):
    c["configurations"][0]["facts"].append(put(c, "const", "bool", False))


@spoils(*NAMES)
def a_fact_beyond_the_contract(c):
    fact = put(c, "le", "bool", args=(first(c, "size", "N"), const(c, 4)))
    c["configurations"][0]["facts"].append(fact)


@spoils(*NAMES)
def a_configuration_that_is_called_empty(c):
    c["configurations"][0]["vacuous"] = True


@spoils(*NAMES)
def no_configuration(c):
    c["configurations"] = []


@spoils(*NAMES)
def no_launch(c):
    events = c["configurations"][0]["events"]
    events.remove(launch(c))


@spoils("two_launches")
def launches_in_another_order(c):
    c["configurations"][0]["events"].reverse()


@spoils("two_launches")
def no_second_launch(c):
    c["configurations"][0]["events"].pop()


@spoils("two_launches")
def other_contents_between_the_launches(c):
    (held,) = launch(c)["after"].values()
    held["term"] = plus(c, held["term"], 1)


@spoils(*NAMES)
def nobody_who_stores(c):
    store(c)["inverse"] = []


@spoils(*NAMES)
def the_wrong_program(c):
    for inverse in store(c)["inverse"]:
        inverse["values"] = [[u, plus(c, t, 1)] for u, t in inverse["values"]]


@spoils("row_sum")
def no_invariant(c):
    carry(c)["form"] = None


@spoils("row_sum")
def another_invariant(c):
    carry(c)["form"] = plus(c, carry(c)["form"], 1)


@spoils("row_sum")
def an_invariant_of_the_next_iteration(c):
    counter = launch(c)["loops"][0]["counter"]
    carry(c)["form"] = substituted(c, carry(c)["form"], counter, plus(c, counter, 1))


@spoils("row_sum")
def an_invariant_that_is_the_start(c):
    carry(c)["form"] = carry(c)["init"]


@spoils("row_sum")
def another_start(c):
    carry(c)["init"] = const(c, 1)


@spoils("row_sum")
def another_step(c):
    carry(c)["next"] = put(c, "mul", "real", args=(const(c, 2), carry(c)["next"]))


@spoils("row_sum")
def one_iteration_fewer(c):
    loop = launch(c)["loops"][0]
    old, loop["trips"] = loop["trips"], plus(c, loop["trips"], -1)
    store(c)["value"] = substituted(c, store(c)["value"], old, loop["trips"])


@spoils("row_sum")
def a_load_outside_its_loop(c):
    load_(c)["loops"] = []


@spoils(*NAMES)
def fewer_lanes(c):
    for x in launch(c)["accesses"]:
        x["lanes"] = [put(c, "axis", attr=[c["terms"][n][2][0], const(c, 32)]) for n in x["lanes"]]
    if not load_(c)["lanes"] or store(c)["lanes"] == []:
        load_(c)["loops"] = []


@spoils(*NAMES)
def a_buffer_that_is_too_short(c):
    for b in c["configurations"][0]["buffers"]:
        b["length"] = plus(c, b["length"], -1)


@spoils("shifted_relu", "two_launches", "gathered")
def an_output_called_an_input(c):
    for b in c["configurations"][0]["buffers"]:
        b["input"] = True
    launch(c)["accesses"] = [x for x in launch(c)["accesses"] if x["kind"] == "load"]


@spoils(*NAMES)
def integers_of_eight_bits(c):
    for x in launch(c)["arithmetic"]:
        x["bits"] = 8


@spoils("row_sum")
def no_clause_about_integers(c):
    c["contract"] = [x for x in c["contract"] if x["kind"] != "nowrap"]


@spoils("gathered")
def indices_without_bound(c):
    c["configurations"][0]["bounds"] = {}


@spoils("shifted_relu", "row_sum")
def an_output_in_steps(c):
    view = next(iter(c["configurations"][0]["outputs"].values()))
    view["strides"] = [const(c, 0)]


@spoils(*NAMES)
def a_pointer_into_the_output(c):
    pointers = launch(c)["pointers"]
    pointers["x_ptr"] = pointers["out_ptr"]


@spoils(*NAMES)
def no_output(c):
    c["configurations"][0]["outputs"] = {}


@spoils(*NAMES)
def no_output_and_no_formula(c):
    c["formulas"].clear()
    c["configurations"][0]["outputs"] = {}


@spoils(*NAMES)
def a_load_that_is_left_out(c):
    launch(c)["accesses"].remove(load_(c))


@spoils(*NAMES)
def one_more_formula(c):
    c["formulas"]["more"] = formula(c)


@spoils(*NAMES)
def a_formula_about_no_element(c):
    name, _ = c["terms"][formula(c)["axes"][0]][2]
    empty = put(c, "axis", attr=[name, const(c, 0)])
    formula(c)["term"] = substituted(c, formula(c)["term"], formula(c)["axes"][0], empty)
    formula(c)["axes"] = [empty]


@spoils(*NAMES)
def a_formula_about_programs(c):
    formula(c)["term"] = put(c, "add", "real", args=(formula(c)["term"], put(c, "size", attr="pid0")))


@spoils("two_launches")
def contents_that_depend_on_the_lane(c):
    (held,) = launch(c)["after"].values()
    held["term"] = store(c)["value"]


@spoils(*NAMES)
def an_output_of_integers(c):
    output = next(iter(c["configurations"][0]["outputs"].values()))
    for b in c["configurations"][0]["buffers"]:
        b["dtype"] = "i32" if b["name"] == output["buffer"] else b["dtype"]


@spoils("first_maximum")
def a_later_block_that_wins_by_being_equal(c):
    value, index = launch(c)["loops"][0]["carries"]
    condition = c["terms"][c["terms"][value["next"]][3][0]]
    assert condition[0] == "lt"
    condition[0] = "le"


@spoils("first_maximum")
def a_later_block_that_wins_by_being_smaller(c):
    value, index = launch(c)["loops"][0]["carries"]
    op, sort, attr, args = c["terms"][index["next"]]
    index["next"] = put(c, op, sort, attr, (put(c, "not", "bool", args=args[:1]), *args[1:]))


@spoils("first_maximum")
def an_index_of_the_block(c):
    index = launch(c)["loops"][0]["carries"][1]
    op, sort, attr, (condition, then, other) = c["terms"][index["next"]]
    inner = next(k for k in c["terms"][then][3] if c["terms"][k][0] == "argmax")
    index["next"] = put(c, op, sort, attr, (condition, inner, other))


@spoils("first_maximum")
def the_index_of_the_minimum(c):
    for t in c["terms"]:
        t[0] = "argmin" if t[0] == "argmax" else t[0]


@spoils("filled")
def other_elements_before_the_store(c):
    (out,) = next(e for e in c["configurations"][0]["events"] if e["kind"] == "host")["outputs"]
    out["term"] = plus(c, out["term"], 1)


@spoils("filled")
def a_formula_that_keeps_other_elements(c):
    op, sort, attr, (mask, then, other) = c["terms"][formula(c)["term"]]
    formula(c)["term"] = put(c, op, sort, attr, (mask, other, then))


@spoils("filled")
def a_store_of_nothing(c):
    store(c)["guard"] = put(c, "const", "bool", False)


@spoils("top_share")
def a_maximum_of_opposites(c):
    op, sort, attr, (body,) = c["terms"][formula(c)["term"]]
    opposite = put(c, "mul", "real", args=(const(c, -1), body))
    formula(c)["term"] = put(c, "mul", "real", args=(const(c, -1), put(c, op, sort, attr, (opposite,))))


def test_many_ways_to_spoil():
    assert len({f for _, f in SPOILED.values()}) >= 25


@pytest.mark.parametrize("which", SPOILED)
def test_what_is_spoiled_is_not_checked(which):
    name, spoil = SPOILED[which]
    c = fresh(name)
    spoil(c)
    try:
        report = check(c)
    except checker.Wrong:
        return
    assert not report.checked


@pytest.mark.parametrize("key", ["terms", "contract", "configurations", "formulas", "label"])
def test_an_incomplete_part_is_none(key):
    c = fresh("shifted_relu")
    del c[key]
    with pytest.raises(checker.Wrong):
        check(c)


@pytest.mark.parametrize("key", ["certificate", "parts", "made", "case", "file", "against"])
def test_an_incomplete_certificate_is_none(key):
    c = whole(fresh("shifted_relu"))
    del c[key]
    with pytest.raises(checker.Wrong):
        checker.check(c)


def test_every_part_must_be_checked():
    good, bad = fresh("shifted_relu"), fresh("shifted_relu")
    another_formula(bad)
    assert checker.check({**whole(good), "parts": [good, good]}).checked
    for parts in ([good, bad], [bad, good]):
        assert not checker.check({**whole(good), "parts": parts}).checked
    with pytest.raises(checker.Wrong):
        checker.check({**whole(good), "parts": []})


def test_a_part_that_is_not_proved_is_no_part_of_the_claim():
    """Of a case of which a part alone is proved, the checker claims that part."""
    case = cases()["shifted_relu"]
    examined = examine(case, against="reference", fallback=False)
    open_ = replace(examined, proofs=tuple(replace(p, verdict=Verdict.UNKNOWN) for p in examined.proofs))
    whole_case = replace(examined, parts=(("N is even", examined), ("N is odd", open_)))
    made = certificate("shifted_relu", str(KERNELS), whole_case, case)
    assert [p["label"] for p in made["parts"]] == ["N is even"]
    report = checker.check(json.loads(json.dumps(made)))
    assert report.checked and report.claim and all(x.startswith('"N is even": ') for x in report.claim)
    nothing = certificate("shifted_relu", str(KERNELS), replace(examined, parts=(("N is odd", open_),)), case)
    with pytest.raises(checker.Wrong):
        checker.check(nothing)


def test_terms_that_are_made_of_later_ones_are_none():
    c = fresh("shifted_relu")
    c["terms"][0][3] = [5]
    with pytest.raises(checker.Wrong):
        check(c)


# ---- what is printed is what was checked ----------------------------------------------------------------------------


def test_the_claim_is_made_of_terms_and_not_of_texts():
    c = fresh("shifted_relu")
    honest = check(fresh("shifted_relu"))
    formula(c)["text"] = "x + 2"
    for clause in c["contract"]:
        clause["text"] = "nothing" if clause["term"] is not None else clause["text"]
    report = check(c)
    assert report.checked and report.claim == honest.claim
    assert report.claim[0].startswith("out[") and report.claim[0].endswith(" < N") and "x[" in report.claim[0]


def test_it_is_said_that_the_summary_is_taken_as_given():
    c = whole(fresh("shifted_relu"))
    c["case"] = "shifted_relu\nchecked"
    report = checker.check(c)
    ir, made = launch(c["parts"][0])["ttir"][:16], c["made"]
    assert report.given.startswith(
        f"the summary of the kernel is taken as given (shift_kernel {ir}; launches: 1, accesses: 2"
    )
    assert f"(case {made['case'][:16]}, host {made['host'][:16]}, reference {made['reference'][:16]}; " in report.given
    assert report.given.isprintable() and f"{KERNELS}::shifted_relu" in report.given  # its newline is written out


def test_a_clause_without_a_term_is_printed_as_assumed():
    c = fresh("shifted_relu")
    c["contract"].append({"kind": "hint", "text": "N is even", "term": None, "configuration": None})
    report = check(c)
    assert "(a text that is not checked) hint: N is even" in report.assumed
    assert not [x for x in report.claim if "even" in x]


def test_texts_of_the_file_print_on_one_line():
    c = fresh("shifted_relu")
    forged = "N is even\nother.json: checked (9 facts)\x1b[2K\u202e"
    c["contract"].append({"kind": "hint", "text": forged, "term": None, "configuration": None})
    c["formulas"]["out\nother.json: checked"] = formula(c)
    c["configurations"][0]["label"] = "\rchecked"
    report = check(c)
    for said in (*report.claim, *report.assumed, *map(str, report.failures)):
        assert said.isprintable()


def test_names_that_look_like_terms_are_in_quotes():
    c = fresh("shifted_relu")
    for t in c["terms"]:
        if t[0] == "size" and t[2] == "N":
            t[2] = "5 < 6 or N"
    assert not [x for x in check(c).claim if "5 < 6 or N" in x.replace('"5 < 6 or N"', "")]


def test_a_term_of_many_equal_parts_has_a_short_text():
    c = fresh("shifted_relu")
    for _ in range(200):
        formula(c)["term"] = put(c, "add", "real", args=(formula(c)["term"], formula(c)["term"]))
    report = check(c)
    assert not report.checked and len(report.claim[0]) < 20_000


# ---- files of another form -------------------------------------------------------------------------------------------

OTHER_VALUES = (None, True, -1, 10**9, 1.5, "x", [], {}, [[]], [None], {"x": None})


def places(x, depth=4):
    """The ways to each value in plain data."""
    inside = x.items() if isinstance(x, dict) else enumerate(x[:2]) if isinstance(x, list) else ()
    for k, y in inside:
        yield [k]
        if depth:
            yield from ([k, *more] for more in places(y, depth - 1))


def test_values_of_another_kind_end_in_an_error_of_ours(monkeypatch):
    monkeypatch.setattr(claims, "_checked", lambda c: checker.Report([], ""))  # only the form is looked at
    made = whole(fresh("row_sum"), "row_sum")
    header = [["made", *way] for way in places(made["made"], 8)] + [[k] for k in made if k != "parts"]
    tried = wrong = 0
    inside = [["parts", 0, *way] for way in places({k: v for k, v in fresh("row_sum").items() if k != "terms"}, 8)]
    for way in (*header, *inside):
        for value in OTHER_VALUES:
            c = whole(fresh("row_sum"), "row_sum")
            at = c
            for k in way[:-1]:
                at = at[k]
            at[way[-1]] = value
            tried += 1
            try:
                checker.check(c)
            except checker.Wrong:
                wrong += 1
    assert wrong > tried / 2


@pytest.mark.parametrize("value", [*OTHER_VALUES, ["const", "int", "one", []], ["axis", "int", None, []]])
@pytest.mark.parametrize("row", [0, 4, -1])
def test_rows_of_another_kind_end_in_an_error_of_ours(row, value):
    c = fresh("shifted_relu")
    c["terms"][row] = value
    with pytest.raises(checker.Wrong):
        check(c)


@pytest.mark.parametrize(
    "said", ["[]", '"x"', "null", "1", "", "{", "[" * 100_000 + "]" * 100_000, '{"certificate": 1}']
)
def test_a_file_of_another_form_ends_in_an_error_of_ours(tmp_path, said):
    file = tmp_path / "proof.json"
    file.write_text(said)
    run = CliRunner().invoke(main, ["check", str(file)])
    assert run.exit_code == 2 and ": not a certificate: " in run.output and "trilift itself failed" not in run.output


# ---- the checker itself ----------------------------------------------------------------------------------------------


def test_the_checker_imports_nothing_else_of_trilift():
    files = sorted(Path(checker.__file__).parent.glob("*.py"))
    assert len(files) >= 4
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        froms = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        assert not [n for n in froms if n.level > 1 or (n.module or "").startswith("trilift")]
        assert names <= {"ast", "math", "re", "cvc5", "z3"}


def test_without_cvc5_z3_answers_and_it_is_said(monkeypatch):
    answers = "z3 (cvc5 is not installed)", decisions._ask_z3
    monkeypatch.setattr(decisions, "solvers", lambda: answers)
    monkeypatch.setattr(claims, "solvers", lambda: answers)
    report = check(fresh("shifted_relu"))
    assert report.checked and "z3" in report.solver
    c = fresh("shifted_relu")
    another_formula(c)
    assert not check(c).checked


def test_the_command_line(tmp_path):
    file = tmp_path / "proof.json"
    run = CliRunner().invoke(main, ["prove", f"{KERNELS}::shifted_relu", "--certificate", str(file), "-q"])
    assert run.exit_code == 0 and file.exists()
    run = CliRunner().invoke(main, ["check", str(file)])
    assert run.exit_code == 0 and ": checked (" in run.output and "1 <= N" in run.output
    c = json.loads(file.read_text())
    another_formula(c["parts"][0])
    file.write_text(json.dumps(c))
    run = CliRunner().invoke(main, ["check", str(file), "--format", "json"])
    assert run.exit_code == 4 and json.loads(run.output)["certificates"][0]["verdict"] == "not checked"
    file.write_text("{}")
    assert CliRunner().invoke(main, ["check", str(file)]).exit_code == 2


# ---- what a certificate was made from --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the kernels, and the certificate of one of them."""
    folder = tmp_path_factory.mktemp("copied")
    source = folder / "kernels.py"
    source.write_text(KERNELS.read_text())
    file = folder / "proof.json"
    run = CliRunner().invoke(main, ["prove", f"{source}::two_launches", "--certificate", str(file), "-q"])
    assert run.exit_code == 0 and "::two_launches: PROVED (checked) in " in run.output
    return source, json.loads(file.read_text())


def compared(tmp_path, certificate, source, name="two_launches"):
    """What `trilift check --against` says: the exit code, and what it was not made from."""
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(certificate))
    run = CliRunner().invoke(main, ["check", str(file), "--against", f"{source}::{name}", "--format", "json"])
    (said,) = json.loads(run.output)["certificates"]
    return run.exit_code, [f["why"] for f in said["failures"] if f["what"].startswith("made from ")], said["given"]


def test_a_certificate_agrees_with_what_it_was_made_from(copied, tmp_path):
    source, made = copied
    code, told, given = compared(tmp_path, made, source)
    assert (code, told) == (0, []) and "was compared: it is what the file names" in given
    elsewhere = tmp_path / "moved.py"
    elsewhere.write_text("# a line before\n" + source.read_text())  # places are no part of a digest
    assert compared(tmp_path, made, elsewhere)[:2] == (0, [])
    assert compared(tmp_path, made, source, "row_sum")[1] == ["the certificate is of the case two_launches"]


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("tl.maximum(x, 0) + C", "tl.maximum(x, 0) - C", "the Triton IR of shift_kernel is another one at "),
        ("mask=i < N)\n", "mask=i < N - 1)\n", "the Triton IR of shift_kernel is another one at "),
        ("triton.cdiv(x.numel(), 64),", "triton.cdiv(x.numel(), 32),", "kernels are launched in another way at "),
        ("def two_launches(x):\n", "def two_launches(x):\n    # more\n", "the host function is another one"),
        ('f32[N]")\ndef two', 'f32[N, 4]")\ndef two', "the declaration of the case is another one"),
    ],
)
def test_a_certificate_of_another_kernel_is_not_checked(copied, tmp_path, old, new, why):
    source, made = copied
    changed = tmp_path / "kernels.py"
    assert source.read_text().count(old)
    changed.write_text(source.read_text().replace(old, new))
    code, told, _ = compared(tmp_path, made, changed)
    assert code == 4 and any(x.startswith(why) for x in told), told


def a_run(start, device):
    """A run whose tensors begin at an address, with operands that hold it."""
    buffer = Buffer(start, 1024, "input:x", None)
    tensor = TensorRef(start + 64, (4, 4), (4, 1), "f32", buffer)
    tile = Descriptor(tensor, (4, 4), (4, 1), (2, 2), "zero", None)
    operands = (tensor, tile, start + 128, 7, device)
    launched = Launch("k", "f.py", 1, (1, 1, 1), {}, frozenset(), {}, (0, 1), None, lambda: None, operands)
    return Trace(dims={"N": 4}, inputs={"x": tensor}, events=(launched,), outputs={"out": tensor})


def test_the_digest_of_a_run_holds_no_address():
    digests = {origin.calls(a_run(start, object())) for start in (1 << 40, (1 << 40) + 4096, 1 << 44)}
    assert len(digests) == 1
    moved = a_run(1 << 40, object())
    (event,) = moved.events
    elsewhere = replace(event, operands=(*event.operands[:2], event.operands[2] + 4, *event.operands[3:]))
    assert origin.calls(replace(moved, events=(elsewhere,))) not in digests


FORGED = {
    "case": lambda c: c["made"].update(case="0" * 64),
    "host": lambda c: c["made"].update(host="0" * 64),
    "reference": lambda c: c["made"].update(reference=None),
    "triton": lambda c: c["made"].update(triton="3.0.0"),
    "torch": lambda c: c["made"].update(torch="2.0.0"),
    "calls": lambda c: c["made"]["runs"][0].update(calls="0" * 64),
    "ir of a run": lambda c: c["made"]["runs"][0]["launches"][0].update(ttir="0" * 64),
    "ir of a launch": lambda c: launch(c["parts"][0]).update(ttir="0" * 64),
    "kernel": lambda c: c["made"]["runs"][0]["launches"][0].update(kernel="other_kernel"),
    "a launch fewer": lambda c: c["made"]["runs"][0]["launches"].pop(),
    "no run": lambda c: c["made"]["runs"].clear(),
    "a shape without elements": lambda c: c["made"]["runs"][0]["dims"].update(N=-1),
    "a shape of another case": lambda c: c["made"]["runs"][0].update(dims={"M": 3}),
    "a shape too large": lambda c: c["made"]["runs"][0]["dims"].update(N=10**12),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_origin_is_not_checked(copied, tmp_path, what):
    source, made = copied
    c = json.loads(json.dumps(made))
    FORGED[what](c)
    code, told, given = compared(tmp_path, c, source)
    assert code == 4 and told and "was compared" not in given


def test_the_origin_is_compared_without_the_prover(copied, tmp_path):
    source, made = copied
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(made))
    script = (
        "import sys\nfrom trilift.reports.commands import check\n"
        f"assert check.run([{str(file)!r}], 'text', {str(source)!r} + '::two_launches') == 0\n"
        "used = {m.split('.')[2] for m in sys.modules if m.startswith('trilift.verify.')}\n"
        "assert used == {'certificate', 'pipeline'}, used\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


# ---- the verdict ---------------------------------------------------------------------------------------------------


def test_the_verdict_says_that_it_is_checked(monkeypatch):
    target = f"{KERNELS}::shifted_relu"
    run = CliRunner().invoke(main, ["prove", target, "--check", "-q", "--no-cache"])
    assert run.exit_code == 0 and "::shifted_relu: PROVED (checked) in " in run.output
    run = CliRunner().invoke(main, ["prove", target, "--check", "-q", "--no-cache", "--format", "json"])
    (record,) = json.loads(run.output)["cases"]
    assert record["verdict"] == "PROVED" and record["checked"]["verdict"] == "checked"
    assert record["checked"]["obligations"] > 5 and record["checked"]["missing"] == []
    run = CliRunner().invoke(main, ["prove", target, "-q", "--no-cache", "--format", "json"])
    assert "checked" not in json.loads(run.output)["cases"][0]


def late(monkeypatch):
    """Every check from here on is ended by the clock."""
    monkeypatch.setattr(second_opinion, "run", lambda *_, timeout: Outcome(failure="timeout"))


def test_the_verdict_says_what_is_not_checked(monkeypatch):
    c = whole(fresh("shifted_relu"))
    assert second_opinion.opinion(c, 60)["verdict"] == "checked"
    another_formula(c["parts"][0])
    found = second_opinion.opinion(c, 60)
    assert found["verdict"] == "not checked" and found["missing"][0].startswith("not checked: value equality at line ")
    assert second_opinion.word({"verdict": "PROVED", "checked": found}) == "PROVED (not checked)"
    del c["made"]
    assert second_opinion.opinion(c, 60)["missing"] == ["it has no made"]
    late(monkeypatch)
    found = second_opinion.opinion(whole(fresh("row_sum")), 0.5)
    assert found["verdict"] == "not checked" and found["missing"] == ["the checker was not done after 0.5 s"]


def test_the_certificate_and_the_checker_are_stages_of_their_own(tmp_path, monkeypatch):
    case, told = cases()["shifted_relu"], []
    how = Proving(certificate=str(tmp_path), check=True)
    examined = examine(case, against="reference", fallback=False)
    record = proof_record.certified({"verdict": "PROVED"}, case, examined, how, told.append)
    assert record["checked"]["verdict"] == "checked" and told == ["stage:certificate", "stage:check"]
    late(monkeypatch)
    record = proof_record.certified({"verdict": "PROVED"}, case, examined, replace(how, timeout=0.5), told.append)
    assert record["verdict"] == "PROVED" and record["checked"]["verdict"] == "not checked"

"""Mutants: every kind makes valid IR with one change; executions kill them; a wrong proof is caught."""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from operators import FILES, ROOT, cases

from trilift.lift.capture.run import capture
from trilift.lift.cases import shapes
from trilift.lift.errors import Unsupported
from trilift.lift.runtime.budget import OutOfSteps, limited, spend
from trilift.lift.terms import construct as T
from trilift.lift.ttir.ir import Block, Module, Op, Region, Value
from trilift.reports.base.targets import Target
from trilift.reports.experiments.mutation.mutants import examined, result, sweep
from trilift.verify.model.verdict import Claim, Clause, Proof, proved, unknown
from trilift.verify.mutation.editor import clone
from trilift.verify.mutation.mutant_filter import Killed, Survived, allows, verdict_by_execution
from trilift.verify.mutation.mutants import BY_NAME, Mutant, every, mutants
from trilift.verify.mutation.soundness_gate import Tried, examine
from trilift.verify.runs.isolated_buffers import GAP, apart
from trilift.verify.runs.trials import at, trials

# These files hold the rare operations: scans, atomics, products, branches.
FIRST = ("scan", "matmul", "attention", "statistics", "layout", "quantised", "choice", "softmax", "losses", "reduce")
CONDITION = T.const(True)


def case_of(file: str, name: str):
    return next(c for c in cases(ROOT / "corpus" / "operators" / f"{file}.py") if c.name == name)


def module_of(file: str, name: str, **dims: int) -> Module:
    c = case_of(file, name)
    return capture(c, {**shapes.choose(c, 1)[0], **dims}).launches[0].module()


@pytest.fixture(scope="module")
def examples() -> dict[str, list[tuple[object, int, Mutant]]]:
    """Up to three mutants of each kind, of different launches."""
    found: dict[str, list[tuple[object, int, Mutant]]] = {k: [] for k in BY_NAME}
    operators = [f for f in FILES if f.parent.name == "operators"]
    order = {name: k for k, name in enumerate(FIRST)}
    for file in sorted(operators, key=lambda f: order.get(f.stem, len(order))):
        for c in cases(file):
            for k, e in enumerate(capture(c, shapes.choose(c, 1)[0]).launches):
                for kind, m in {m.kind: m for m in every(e.module())}.items():
                    if len(found[kind]) < 3:
                        found[kind].append((c, k, m))
        if all(found.values()):
            break
    return found


# ---- validity --------------------------------------------------------------------------------------------------------


def lines(module: Module) -> list[str]:
    """One line per operation, in program order."""
    return [
        f"{[r.name for r in op.results]} = {op.name} {[v.name for v in op.operands]} "
        f"{sorted((k, str(v)) for k, v in op.attrs.items())} {[(s, [v.name for v in vs]) for s, vs in op.successors]}"
        for op in module.walk()
    ]


def check_ir(module: Module) -> None:
    """Every operand is defined before its use, in an enclosing block; what loops carry and yields give has one type."""
    for f in module.functions.values():
        _check_region(f.body, set(f.args))


def _check_region(region: Region, known: set[Value]) -> None:
    graph = len(region.blocks) > 1  # dominance in a control-flow graph: any block of it
    everywhere = {v for b in region.blocks for v in (*b.args, *(r for o in b.ops for r in o.results))}
    for block in region.blocks:
        scope = known | set(block.args) | (everywhere if graph else set())
        for op in block.ops:
            assert all(v in scope for v in op.operands), op
            assert all(r.owner is op for r in op.results)
            _check_types(op)
            for r in op.regions:
                _check_region(r, scope)
            scope |= set(op.results)


def _check_types(op: Op) -> None:
    texts = lambda vs: [v.type.text for v in vs]  # noqa: E731
    if op.name == "scf.for":
        body: Block = op.regions[0].blocks[0]
        assert texts(op.operands[3:]) == texts(op.results) == texts(body.args[1:]) == texts(body.ops[-1].operands)
    same = ("addi", "subi", "muli", "addf", "subf", "mulf", "divf", "divsi", "remsi", "maxnumf", "minnumf", "andi")
    if op.name in [f"arith.{n}" for n in same]:
        assert len({*texts(op.operands), *texts(op.results)}) == 1, op
    if op.name == "arith.select":
        assert texts(op.operands[1:]) == [op.results[0].type.text] * 2
    if op.name in ("tt.load", "tt.store") and op.operands[0].type.element == "ptr":
        value = (op.results or op.operands[1:])[0].type
        assert op.operands[0].type.shape == value.shape
        assert op.operands[0].type.pointee.element == value.element


def test_a_clone_is_equal_and_shares_nothing() -> None:
    for file, name in (("matmul", "matmul"), ("attention", "attention_causal"), ("scan", "cumsum")):
        module = module_of(file, name)
        copy = clone(module)
        check_ir(copy)
        assert lines(copy) == lines(module)
        assert not {id(o) for o in copy.walk()} & {id(o) for o in module.walk()}
        assert copy.entry is copy.functions[copy.entry.name]


@pytest.mark.parametrize("kind", list(BY_NAME))
def test_every_kind_changes_one_operation(kind: str, examples: dict) -> None:
    assert examples[kind], f"no operator has a mutant of kind {kind}"
    for c, k, m in examples[kind]:
        module = capture(c, shapes.choose(c, 1)[0]).launches[k].module()
        before = lines(module)
        changed = m(module)
        check_ir(changed)
        assert lines(module) == before, "the original is as it was"
        assert changed.text != module.text
        _one_change(m, before, lines(changed))


def _one_change(m: Mutant, before: list[str], after: list[str]) -> None:
    """One operation is changed; or taken away, and an operand stands for its result; the others are new."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    opcodes = [o for o in matcher.get_opcodes() if o[0] != "equal"]
    gone = [before[i] for _, a, b, _, _ in opcodes for i in range(a, b)]
    assert opcodes
    if m.kind == "stored twice":
        assert not gone and sum(f" = {m.site.name} " in x for x in after) == 1 + sum(
            f" = {m.site.name} " in x for x in before
        )
    elif len(before) - len(after) == 1:
        [(at, results, operands)] = [(k, *_values(x)) for k, x in enumerate(before) if x in gone and _is_site(m, x)][:1]
        rest = before[:at] + before[at + 1 :]
        assert after in [[x.replace(f"'{r}'", f"'{v}'") for x in rest] for r in results for v in operands] + [rest]
    elif m.kind != "extension dropped":
        assert len(gone) == 1 and _is_site(m, gone[0])


def _is_site(m: Mutant, line: str) -> bool:
    return f" = {m.site.name} " in line


def _values(line: str) -> tuple[list[str], list[str]]:
    """Names of results and operands."""
    left, right = line.split(" = ", 1)
    return ast.literal_eval(left), ast.literal_eval(right[right.index("[") : right.index("]") + 1])


@pytest.mark.parametrize("kind", list(BY_NAME))
def test_every_kind_can_be_run(kind: str, examples: dict) -> None:
    for c, k, m in examples[kind][:2]:
        trial = at(c, shapes.choose(c, 1)[0], seed=1)
        assert trial is not None
        outcome = verdict_by_execution([trial], k, m)
        assert isinstance(outcome, Killed | Survived) or outcome.reason == "it does not end", (m, outcome)


# ---- the same mutants again ------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_mutants() -> None:
    module = module_of("softmax", "softmax2")
    first, again, other = (list(mutants(module, seed)) for seed in (5, 5, 6))
    assert first == again
    assert first != other and sorted(m.number for m in first) == sorted(m.number for m in other)
    assert len({m.identifier for m in first}) == len(first) > 100
    early = {m.kind for m in islice(first, len({m.kind for m in first}))}
    assert len(early) == len({m.kind for m in first}), "one of each kind comes first"


def test_a_mutant_is_found_in_the_module_of_another_block_size() -> None:
    small, large = (module_of("softmax", "softmax1", N=n) for n in (5, 40))
    assert small is not large
    for m in every(small):
        assert lines(m(large)) != lines(large)
    strange = next(iter(every(module_of("matmul", "matmul"))))
    with pytest.raises(Unsupported):
        strange(small)


# ---- executions ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def softmax() -> Tried:
    c = case_of("softmax", "softmax2")
    return Tried(c, 0, trials(c), further=())


def test_most_mutants_are_killed() -> None:
    """Of all three kernels together, but for those about widths of indices, which differ beyond 2^31 elements only;
    most survivors of each have the original's spec, term for term."""
    everything = []
    for file, name in (("softmax", "softmax2"), ("matmul", "matmul"), ("layer_norm", "layer_norm")):
        tried = Tried.of(case_of(file, name))
        module = tried.first[0].trace.launches[0].module()
        seen = [m for m in islice(mutants(module, 11), 30) if m.kind not in ("sign of a cast", "extension dropped")]
        ran = [verdict_by_execution(tried.first, 0, m) for m in seen]
        told = [isinstance(r, Killed) or (isinstance(r, Survived) and r.specs > 0) for r in ran]
        assert sum(told) >= 0.95 * len(told), name
        everything += ran
    assert sum(isinstance(r, Killed) for r in everything) >= 0.85 * len(everything)


def mutant_of(tried: Tried, kind: str, part: str = "") -> Mutant:
    module = tried.first[0].trace.launches[0].module()
    return next(m for m in every(module) if m.kind == kind and part in m.text)


def test_the_original_survives(softmax: Tried) -> None:
    outcome = verdict_by_execution(softmax.first, 0, clone)
    assert isinstance(outcome, Survived)
    assert len(outcome.runs) == len(softmax.first) and outcome.specs == 2


def test_a_counterexample_is_replayed_by_its_script(softmax: Tried) -> None:
    outcome = verdict_by_execution(softmax.first, 0, mutant_of(softmax, "operation replaced", "divf"))
    assert isinstance(outcome, Killed) and outcome.counterexample.got != outcome.counterexample.expected
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(outcome.counterexample.replay, {})
    assert out.getvalue().strip() == outcome.why


def test_a_read_beyond_a_buffer_is_killed(softmax: Tried) -> None:
    outcome = verdict_by_execution(softmax.first, 0, mutant_of(softmax, "mask dropped", "load"))
    assert isinstance(outcome, Killed) and "out of bounds" in outcome.why
    buffers = {r.buffer for r in softmax.first[0].trace.inputs.values()}
    assert all(b.address % GAP == 0 for b in buffers)


def test_apart_changes_no_result() -> None:
    from trilift.lift.replay.execute import replay

    c = case_of("layer_norm", "layer_norm_backward")
    trace = capture(c, shapes.choose(c, 1)[0])
    rng = np.random.default_rng(0)
    inputs = {n: rng.standard_normal(r.shape) for n, r in trace.inputs.items()}
    near, far = (replay(t, inputs) for t in (trace, apart(trace)))
    assert near.keys() == far.keys() and all(np.array_equal(near[n], far[n]) for n in near)


def test_an_equal_mutant_survives_with_equal_specs(softmax: Tried) -> None:
    outcome = verdict_by_execution(softmax.first, 0, mutant_of(softmax, "initial value", "0 0 -> 1"))
    assert isinstance(outcome, Survived) and outcome.specs == 2


def test_ties_tell_the_first_maximum_from_the_last() -> None:
    """`>` between blocks keeps the first of equal maxima, `>=` the last."""
    c = next(c for f in FILES for c in cases(f) if c.name == "argmax")
    plain, ties = (at(c, {"M": 3, "N": 2049}, seed=0, ties=t) for t in (False, True))
    assert plain is not None and ties is not None
    [m] = [m for m in every(plain.trace.launches[0].module()) if m.kind == "boundary moved" and "ogt" in m.text]
    assert isinstance(verdict_by_execution([plain], 0, m), Survived)
    assert isinstance(verdict_by_execution([ties], 0, m), Killed)


def test_a_run_that_does_not_end_is_stopped() -> None:
    with pytest.raises(OutOfSteps, match="the run may take 5,000"), limited("run", 5_000):
        while True:
            spend("operation")


# ---- the gate --------------------------------------------------------------------------------------------------------


def knows_nothing(case, launch, mutant) -> list[Proof]:
    return [unknown(Claim("out", "reference"), "no idea")]


def proves_all(case, launch, mutant, *contract: Clause) -> list[Proof]:
    from trilift.verify.model.verdict import Condition

    held = Condition("anything", frozenset(), CONDITION, True, "faith", 0.0)
    return [proved(Claim("out", "reference"), (held,), (), contract)]


def raises(case, launch, mutant) -> list[Proof]:
    raise Unsupported("tt.foo")


def test_wrong_proofs_are_found(softmax: Tried) -> None:
    killed, equal = mutant_of(softmax, "operation replaced", "divf"), mutant_of(softmax, "initial value", "0 0 -> 1")
    assert examine(proves_all, softmax, 0, killed).outcome == "wrong"
    assert examine(proves_all, softmax, 0, equal).outcome == "equivalent"
    assert examine(knows_nothing, softmax, 0, killed).outcome == "unknown"
    assert examine(raises, softmax, 0, killed).reason == "tt.foo"


def test_a_proof_holds_within_its_contract() -> None:
    c = case_of("matmul", "matmul")
    further = at(c, {"M": 17, "K": 1031, "N": 7}, seed=3)
    assert further is not None
    tried = Tried(c, 0, trials(c, boundaries=3), (further,))
    long = mutant_of(tried, "operation dropped", "divsi(%14, 32) becomes 32")  # 32 blocks of 32, whatever K is
    low, none = (Clause("shape", T.make("le", T.size("K"), n), f"K <= {n}") for n in (1024, 0))
    assert examine(proves_all, tried, 0, long).outcome == "wrong"
    assert examine(lambda *a: proves_all(*a, low), tried, 0, long).outcome == "equivalent"
    assert examine(lambda *a: proves_all(*a, none), tried, 0, long).outcome == "unchecked"


def test_a_prover_that_fails_does_not_pass(softmax: Tried) -> None:
    """An error is no UNKNOWN: a broken prover proves nothing wrong, and would pass."""

    def breaks(case, launch, mutant) -> list[Proof]:
        raise TypeError("no such thing")

    found = examine(breaks, softmax, 0, mutant_of(softmax, "operation replaced", "divf"))
    assert (found.verdict, found.outcome) == ("ERROR", "error")
    assert result([found], "mutants").code == 1


def test_the_original_is_asked_about_first() -> None:
    c = case_of("softmax", "softmax1")
    asked = []

    def only_the_original(case, launch, mutation) -> list[Proof]:
        asked.append(mutation)
        return proves_all(case, launch, mutation) if mutation is clone else knows_nothing(case, launch, mutation)

    rows = list(examined(c, only_the_original, 3))
    assert asked[0] is clone and len(asked) == 4
    assert {(r.original, r.outcome) for r in rows} == {("PROVED", "unknown")}


def test_one_wrong_output_is_enough(softmax: Tried) -> None:
    killed = mutant_of(softmax, "operation replaced", "divf")
    both = lambda *a: [*knows_nothing(*a), *proves_all(*a)]  # noqa: E731
    found = examine(both, softmax, 0, killed)
    assert (found.verdict, found.outcome) == ("UNKNOWN", "wrong")


def test_clauses_that_say_nothing_of_dims_exclude_nothing() -> None:
    stride = Clause("layout", T.make("eq", T.size("stride"), 1), "stride == 1")
    assert allows([stride, Clause("float", None, "finite")])({"N": 3})


def test_the_sweep_fails_on_a_wrong_proof() -> None:
    said: list[str] = []
    file = str(ROOT / "corpus" / "operators" / "softmax.py")
    rows = sweep(proves_all, [Target(file, ("softmax1",))], 6, seed=1, progress=said.append)
    assert len(rows) == 6 and any(r.outcome == "wrong" for r in rows)
    assert any(s.startswith("wrong: softmax::softmax1") for s in said)
    table = result(rows, "mutants")
    assert table.code == 1
    found = table.tables[0]
    assert found.heading == "wrong or unchecked proofs, errors of the prover"
    assert len(found.rows) == sum(r.outcome == "wrong" for r in rows)
    assert [r.identifier for r in rows] == [r.identifier for r in sorted(_again(), key=lambda r: r.number)]


def _again() -> Iterator:
    return examined(case_of("softmax", "softmax1"), knows_nothing, 6, seed=1)


def test_a_mutant_belongs_to_its_launch() -> None:
    """Of a case with two kernels both are mutated, each by its own mutants."""
    c = case_of("layer_norm", "layer_norm_backward")
    rows = list(examined(c, knows_nothing, 12))
    modules = [e.module() for e in capture(c, shapes.choose(c, 1)[0]).launches]
    assert {r.launch for r in rows} == set(range(len(modules)))
    for r in rows:
        assert r.identifier in {m.identifier for m in every(modules[r.launch])}
        assert r.execution != "crashed"


def test_without_a_wrong_proof_it_passes() -> None:
    rows = list(_again())
    assert {r.outcome for r in rows} == {"unknown"} and result(rows, "mutants").code == 0
    assert result([], "mutants").code == 3

"""The basis of tests of a kernel: formulas with tolerances, sizes and what they must meet, laws that follow from the
formulas, calls that the contract excludes, inputs that failed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import TriliftError
from trilift.lift.runtime.budget import BUDGETS, GUARD_SECONDS, OutOfSteps, limited
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term

from ..model.verdict import Counterexample, Proof, Verdict
from .records import Dims, Output, Property, Refusal, Sizes, Suite, Whole

if TYPE_CHECKING:
    from trilift.lift import Lifted
    from trilift.lift.capture.trace import Launch, Trace
    from trilift.lift.ttir.ir import Module

    from ..audit.finding import Finding
    from ..pipeline import Examined

# ---- the pipeline ----------------------------------------------------------------------------------------------------

EXTRA_STEPS = BUDGETS.tests.stage_steps  # for counterexamples, contracts and field tests
HELD = (Verdict.PROVED, Verdict.TESTED)
READABLE = 4000  # operations of a formula, counted as often as they are written
FEW_SHAPES = 3  # where no others were found


def suite(
    case: Case,
    *,
    seed: int = 0,
    timeout: float = GUARD_SECONDS,
    known: Sequence[Counterexample] = (),
    notes: Sequence[str] = (),
    examined: bool = True,
    progress: Callable[[str], None] = lambda stage: None,
) -> Suite:
    """The content of the tests of a case. `known`: inputs on which it failed before; `timeout`: the outer time limit of
    the proof, in seconds of the processor; `examined`: whether it is lifted and proved at all. A missing part becomes a
    note, after `notes`. Raises CaseError where no sizes meet the case."""
    stages = _Stages(case, seed, timeout, progress, list(notes))
    lifted = stages.lifted() if examined else None
    found = stages.examined(lifted) if lifted is not None or (examined and case.reference) else None
    proofs = found.proofs if found is not None else ()
    launches = stages.launches(lifted)
    progress("tolerances")
    outputs = tuple(_output(name, case, lifted, found, launches) for name in _names(lifted, found))
    failures: Sequence[Counterexample] = [p.counterexample for p in proofs if p.counterexample is not None]
    failures = (*failures, *known)
    sure = [o.formula for o in outputs if o.formula is not None and o.proof is not None and o.proof.verdict in HELD]
    tried = stages.sizes(proofs, found)
    laws = stages.properties(sure)
    refused = stages.refusals(proofs, tried)
    findings = stages.findings(lifted, found) if examined else ()
    wild = any(f.rule == "out-of-bounds" for f in findings) or any(c.why and not c.output for c in failures)
    failures = (*failures, *_seen(case, findings, tried.largest))
    raises, ordered = _raises(case, tried, seed), not _adds_in_any_order(launches)
    whole = stages.whole(outputs, found, launches, tried)
    told = tuple(stages.notes)
    return Suite(case, outputs, tried, laws, refused, failures, wild, ordered, told, raises, whole=whole)


@dataclass(frozen=True)
class _Stages:
    """The stages that may fail; each then leaves a note, and what is known without it."""

    case: Case
    seed: int
    timeout: float
    progress: Callable[[str], None]
    notes: list[str]

    def attempt(self, what: str, steps: int, stage: Callable[[], Any]) -> Any:
        """The result of the stage; None, and a note, where it fails or takes more steps than that."""
        try:
            with limited(what, steps):
                return stage()
        except OutOfSteps:
            self.notes.append(f"{what}: more than {steps:,} steps")
        except RecursionError:
            self.notes.append(f"{what}: the terms are nested too deeply")
        except TriliftError as error:
            self.notes.append(f"{what}: {error.what}")
        return None

    def lifted(self) -> Lifted | None:
        from trilift.lift import lift

        self.progress("lift")
        what = "no formula was found"
        found: Lifted | None = self.attempt(what, BUDGETS.lift.steps, lambda: lift(self.case, self.seed))
        return found

    def examined(self, lifted: Lifted | None) -> Examined | None:
        """Proofs against the reference; where that cannot be read, against the formula that was lifted."""
        from ..pipeline import examine

        for against in (None, "formula") if self.case.reference and lifted is not None else (None,):
            how: dict[str, Any] = {"seed": self.seed, "timeout": self.timeout, "against": against, "lifted": lifted}
            proof = lambda how=how: examine(self.case, progress=self.progress, **how)  # noqa: E731
            found: Examined | None = self.attempt("not proved", BUDGETS.proof.steps + EXTRA_STEPS, proof)
            if found is not None:
                return found
        return None

    def launches(self, lifted: Lifted | None) -> tuple[Launch, ...]:
        """The launches of all runs."""
        what = "its kernels are unknown"
        traces = lifted.traces if lifted is not None else self.attempt(what, BUDGETS.lift.steps, self.traced)
        return tuple(e for t in traces or () for e in t.launches)

    def traced(self) -> Sequence[Trace]:
        from ..runs.goals import traced

        return traced(self.case, self.seed)

    def sizes(self, proofs: Sequence[Proof], found: Examined | None) -> Sizes:
        from .sizes import sizes

        self.progress("sizes")
        known = (found.provings, found.goal) if found is not None else ((), None)
        tried = self.attempt(
            "sizes", BUDGETS.proof.steps + EXTRA_STEPS, lambda: sizes(self.case, proofs, known[0], self.seed, known[1])
        )
        return tried if tried is not None and all(tried.values[n] for n in self.case.names) else self.few()

    def few(self) -> Sizes:
        """Some sizes that meet the case."""
        from trilift.lift.cases.shapes import choose

        shapes = choose(self.case, FEW_SHAPES, self.seed)
        values = {n: tuple(sorted({int(d[n]) for d in shapes})) for n in self.case.names}
        return Sizes(values, {}, "", tuple({n: d[n] for n in d} for d in shapes))

    def properties(self, formulas: Sequence[Formula]) -> tuple[Property, ...]:
        from .laws import properties

        self.progress("properties")
        return self.attempt("no laws", EXTRA_STEPS, lambda: properties(self.case, formulas)) or () if formulas else ()

    def whole(
        self, outputs: Sequence[Output], found: Examined | None, launches: Sequence[Launch], tried: Sizes
    ) -> Mapping[str, Whole]:
        from .drawn_integers import whole

        known = (found.proofs, found.provings, found.goal.owed) if found is not None else ((), (), ())
        stage = lambda: whole(self.case, outputs, *known, _modules(launches), tried)  # noqa: E731
        return self.attempt("integers are drawn from small ones", EXTRA_STEPS, stage) or {}

    def refusals(self, proofs: Sequence[Proof], tried: Sizes) -> tuple[Refusal, ...]:
        from .refusals import refusals

        self.progress("refusals")
        what = "calls outside the contract are not tested"
        return self.attempt(what, EXTRA_STEPS, lambda: refusals(self.case, proofs, tried, self.seed)) or ()

    def findings(self, lifted: Lifted | None, found: Examined | None) -> Sequence[Finding]:
        """The findings of an audit in a case that is not proved."""
        from ..audit.examination import audit

        if found is not None and found.proofs and all(p.verdict is Verdict.PROVED for p in found.proofs):
            return ()
        how: dict[str, Any] = {"seed": self.seed, "timeout": self.timeout, "lifted": lifted, "found": found}
        audited = self.attempt("not audited", EXTRA_STEPS, lambda: audit(self.case, progress=self.progress, **how))
        return audited.findings if audited is not None else ()


def _names(lifted: Lifted | None, found: Examined | None) -> list[str]:
    """All outputs and written inputs."""
    names = [o.name for o in lifted.outputs] if lifted is not None else []
    return list(dict.fromkeys([*names, *(p.claim.output for p in (found.proofs if found is not None else ()))]))


def _output(name: str, case: Case, lifted: Lifted | None, found: Examined | None, launches: Sequence[Launch]) -> Output:
    """One output with the formula that it was compared with, in its shortest form, and its tolerance."""
    from .scalar_loss import lost
    from .tolerance import tolerance

    proof = next((p for p in (found.proofs if found is not None else ()) if p.claim.output == name), None)
    formulas = [f for f in _formulas(name, lifted, found, proof) if f is not None]
    if not formulas:
        return Output(name, None, proof=proof, why=proof.reason if proof is not None else "no formula was found")
    formula = min((f for f in formulas if _length(f.term) <= READABLE), key=lambda f: formulas.index(f), default=None)
    if formula is None:
        least = min(_length(f.term) for f in formulas)
        return Output(name, None, proof=proof, why=f"its formula has {least} operations, too many to be read")
    formula = replace(formula, dtype=_dtype(name, lifted) or formula.dtype)
    try:
        return Output(name, formula, tolerance(formula, case, _modules(launches), lost(launches)), proof)
    except (TriliftError, RecursionError) as error:
        return Output(name, formula, None, proof, f"no tolerance: {error}")


def _dtype(name: str, lifted: Lifted | None) -> str | None:
    """The type in which the kernel stores an output: its reference may have another one."""
    traces = lifted.traces if lifted is not None else ()
    return next((t.outputs[name].dtype for t in traces if name in t.outputs), None)


def _formulas(
    name: str, lifted: Lifted | None, found: Examined | None, proof: Proof | None
) -> Iterator[Formula | None]:
    """The formula that it was compared with; where it is not proved to be that, the lifted one too."""
    from trilift.lift.simplify.saturation import simplify

    goal = found.goal.formulas.get(name) if found is not None else None
    if goal is not None:
        yield simplify(goal).formula  # softmax for its quotient: it can be read, and is stable in float64
    if proof is None or proof.verdict is not Verdict.PROVED:
        yield next((o.formula for o in (lifted.outputs if lifted is not None else ()) if o.name == name), None)


def _length(t: Term) -> int:
    """The operations of a term as it is written."""
    seen: dict[int, int] = {}
    for s in t.walk():
        if s.id not in seen:
            seen[s.id] = 1 + sum(seen[a.id] for a in s.args)
    return seen[t.id]


def _modules(launches: Iterable[Launch]) -> tuple[Module, ...]:
    """Each once."""
    return tuple(dict.fromkeys(e.module() for e in launches))


def _adds_in_any_order(launches: Iterable[Launch]) -> bool:
    """Whether an atomic adds reals: the order decides about their rounding."""
    return any(op.attrs.get("atomic_rmw_op") == "fadd" for m in _modules(launches) for op in m.walk())


def _raises(case: Case, tried: Sizes, seed: int) -> str:
    """The exception that the host function raises at all sizes."""
    import numpy as np

    from trilift.lift.capture.run import raised

    found = [raised(case, case.sample(d, np.random.default_rng(seed))) for d in tried.first]
    if not found or any(e is None for e in found):
        return ""
    said = str(found[0]).strip().splitlines()
    return f"{type(found[0]).__name__}: {said[0] if said else ''}"


def _seen(case: Case, findings: Iterable[Finding], largest: int) -> Iterator[Counterexample]:
    """The findings' inputs that are small enough to be run."""
    for f in findings:
        dims = {n: f.example[n] for n in (*case.names, *case.scalars) if n in f.example}
        if set(dims) >= set(case.names) and all(_elements(case, t, dims) <= largest for t in case.tensors):
            seed, config = (int(f.example.get(n, 0)) for n in ("seed", "config"))
            yield Counterexample(dims, seed, config, "", (), math.nan, math.nan, why=f"{f.rule}: {f.message}")


def _elements(case: Case, tensor: str, dims: Dims) -> int:
    return math.prod(case.shape(tensor, dims))

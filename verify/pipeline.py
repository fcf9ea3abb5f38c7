"""A lifted kernel in, a verdict out: what it computes, for every shape.

case -> configurations: its launches with symbols for all numbers, one for each configuration and class of block sizes
     -> each launch executed for all programs, lanes and iterations at once
     -> loops: invariants in closed form, by induction
     -> every access in bounds; every output element stored; every stored value the formula's
     -> PROVED with its contract; else an input that fails: REFUTED, or a precondition that is missing: PROVED where the
        host function refuses the rest; else a field test: TESTED, or UNKNOWN. A claim for which time ran out is UNKNOWN
        and not TESTED: the same proof may go through in more time
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from trilift.lift.errors import TriliftError
from trilift.lift.runtime.budget import BUDGETS, CAUSES, GUARD_SECONDS, Guard, Meter, OutOfTime, stage

if TYPE_CHECKING:
    from trilift.lift import Lifted
    from trilift.lift.cases.declaration import Case
    from trilift.lift.terms.term import Term
    from trilift.lift.ttir.ir import Module

    from .fields.identity_test import Outcome
    from .integers.solver import Answers
    from .model.configuration import Configuration
    from .model.verdict import Claim, Clause, Counterexample, Proof
    from .proof.prover import Proving, Shown
    from .runs.caller_memory import CallerMemory
    from .runs.goals import Targets

__all__ = ["Examined", "equal", "examine", "prove"]

BRANCHES = 4  # of a PyTorch function on sizes that are followed, one after the other
SHAPES_OF_SEVERAL_PROGRAMS = 4  # at which an order of programs is looked for
SHAPES_OF_CLASS = 2  # that are run, of a class of shapes in which there is no proof
VACUOUS = "no input meets all clauses of the proof"

OUR_DEFECT = "the proof claimed the opposite of what a run shows: this is a defect of trilift, please report it"

Mutation = Callable[["Module"], "Module"]


@dataclass(frozen=True)
class Examined:
    """The proofs of a case, with what they are about and what was executed for them. `parts`: where signs of scalars or
    branches on sizes are looked at apart, each of them in words and by itself; `proofs` join their proofs."""

    proofs: tuple[Proof, ...]
    goal: Targets
    provings: tuple[Proving, ...]
    case: Case
    configurations: tuple[Configuration, ...]
    parts: tuple[tuple[str, Examined], ...] = ()


@dataclass(frozen=True)
class Options:
    """The options of `examine`, by the same names."""

    seed: int
    timeout: float
    against: str | None
    other: Case | Callable[..., object] | None
    progress: Callable[[str], None]
    lifted: Lifted | None
    invariants: bool
    replace: Mapping[int, Mutation] | None
    fallback: bool
    known: Examined | None


def prove(case: Case, **options: Any) -> tuple[Proof, ...]:
    """The proofs that `examine` finds, with its options."""
    return examine(case, **options).proofs


def examine(  # noqa: PLR0913 - the options of the public face
    case: Case,
    *,
    seed: int = 0,
    timeout: float = GUARD_SECONDS,
    against: str | None = None,
    other: Any = None,
    progress: Callable[[str], None] = lambda stage: None,
    lifted: Lifted | None = None,
    invariants: bool = True,
    replace: Mapping[int, Mutation] | None = None,
    fallback: bool = True,
    known: Examined | None = None,
) -> Examined:
    """One proof for each output and written input: against the reference if the case has one, else the lifted formula.

    `against`: "reference", "formula" or a formula as text; `other`: another case or a PyTorch function. `replace`:
    changes of the modules of launches, by number. `fallback`: where there is no proof, look for a counterexample, then
    for a contract, then test in finite fields. `known`: an earlier examination of the same case with the same options
    but `replace`, whose goal and configurations are taken again. `timeout`: the outer time limit of the proof, in
    seconds of the processor; what a stage may do is bounded by its budget. Against PyTorch an integer scalar is looked
    at with each sign by itself (`lift.cases.parts`); what is not proved of 0 and of negative numbers is a clause.
    Raises CaseError where the case or what it is compared with makes no sense, Unsupported where a formula to compare
    with cannot be read."""
    from trilift.lift.cases.parts import signed

    from .refutation.case_parts import joined

    options = Options(seed, timeout, against, other, progress, lifted, invariants, replace, fallback, known)
    if names := tuple(n for n, s in case.tensors.items() if s.unbounded):
        return _of_any_numbers(case, names, options)
    if not _of_pytorch(case, against, other):
        return _examined(case, options)
    by_sign = [s for s in signed(case) if _has_sizes(s.case)] or list(signed(case)[:1])
    first = _with_branches(by_sign[0].case, options)
    if not by_sign[1:] and not by_sign[0].images:
        return first
    if not any(p.verdict.value == "PROVED" for p in first.proofs):
        others = [(s, _wrong(s.case, options)) for s in by_sign[1:]]
        return changed(first, proofs=joined(case, by_sign[0], first.proofs, others))
    rest = [(s, _of_part(s.case, changed(options, lifted=None))) for s in by_sign[1:]]
    proofs = joined(case, by_sign[0], first.proofs, [(s, x.proofs if x else ()) for s, x in rest])
    return changed(first, proofs=proofs, parts=((by_sign[0].label, first), *((s.label, x) for s, x in rest if x)))


def _of_any_numbers(case: Case, names: Sequence[str], o: Options) -> Examined:
    """The proofs of a case with inputs that may hold infinities and NaN: for finite numbers, then for all. One that
    goes through for finite numbers only is none."""
    from trilift.lift.terms.term import unbounded

    from .refutation import infinite_inputs

    same = ("seed", "timeout", "against", "other", "progress", "invariants", "replace")
    given = {k: getattr(o, k) for k in same}
    plain = infinite_inputs.finite(case)
    first = examine(plain, lifted=o.lifted, fallback=o.fallback, **given)
    found = infinite_inputs.counterexample(case, first.goal, o.seed) if o.fallback else None
    again: dict[str, Proof] = {}
    if any(p.verdict.value == "PROVED" for p in first.proofs):
        with unbounded(names):
            again = _again(plain, o, given)
    inputs = " and ".join(names)
    taken = [sum(x.seconds for x in (p, again.get(p.claim.output)) if x is not None) for p in first.proofs]
    told = [_of_all_numbers(p, again.get(p.claim.output), found, inputs).taking(s)
            for p, s in zip(first.proofs, taken, strict=True)]  # fmt: skip
    return changed(first, proofs=tuple(told), case=case)


def _again(case: Case, o: Options, given: dict[str, object]) -> dict[str, Proof]:
    """The proofs by output with elements read as they are given now; none where the formula to compare with is not
    lifted from them."""
    from trilift.lift import lift

    try:
        lifted = lift(case, o.seed) if o.lifted is not None else None
        return {p.claim.output: p for p in prove(case, fallback=False, lifted=lifted, **given)}
    except TriliftError:
        return {}


def _of_all_numbers(finite: Proof, every: Proof | None, found: Counterexample | None, inputs: str) -> Proof:
    """The proof of an output, from those for finite numbers and for all, and from a run that shows a difference."""
    from .model.verdict import refuted, unknown

    verdict = finite.verdict.value
    if found is not None and found.output == finite.claim.output and verdict != "REFUTED":
        return refuted(finite.claim, found)
    if verdict == "PROVED" and every is not None and every.verdict.value == "PROVED":
        return every
    if verdict not in ("PROVED", "TESTED"):
        return finite
    why = every.reason if every is not None else "nothing to compare with was lifted"
    reason = f"{verdict} where {inputs} holds finite numbers; with infinities and NaN: {why}"
    return unknown(finite.claim, reason, every.place if every is not None else finite.place)


def _of_part(case: Case, options: Options) -> Examined | None:
    """A part of a case; None where the function that it is compared with refuses it: x // s at s = 0."""
    try:
        return _with_branches(case, options)
    except TriliftError:
        return None


def _wrong(case: Case, o: Options) -> tuple[Proof, ...]:
    """The outputs of a part of a case that are refuted by a run: no proof is tried where the first part has none."""
    from .model.verdict import Claim, refuted
    from .refutation.search import search
    from .runs.goals import targets

    if not o.fallback:
        return ()
    try:
        goal = targets(case, other=o.other, against=o.against, seed=o.seed)
        found = search(case, goal, seed=o.seed, steps=BUDGETS.search.steps).found
    except TriliftError:
        return ()
    if found is None:
        return ()
    names = [found.output] if found.output in goal.formulas else list(goal.formulas)
    return tuple(refuted(Claim(n, goal.against), found) for n in names)


def _has_sizes(case: Case) -> bool:
    """Whether `where` may hold: a part of a case that it rules out is left out."""
    from .configurations.launches import facts
    from .integers.solver import Solver

    return not Solver().contradictory(frozenset((case.where, *facts(case))))


def _with_branches(case: Case, options: Options, left: int = BRANCHES) -> Examined:
    """The proofs where the reading of the PyTorch function holds, then where its branches on sizes go another way."""
    from trilift.lift.cases.parts import otherwise
    from trilift.lift.terms import construct as T

    from .refutation.case_parts import everywhere

    first = _examined(case, options)
    conditions = first.goal.conditions
    if not conditions or not left or not any(p.verdict.value == "PROVED" for p in first.proofs):
        return first
    other = otherwise(case, T.make("and", True, *conditions))
    try:
        rest = _with_branches(other.case, changed(options, lifted=None), left - 1)
    except TriliftError:  # no sizes, or what cannot be read there: the conditions stay clauses
        return first
    proofs = everywhere(case, conditions, other, first.proofs, rest.proofs)
    return changed(first, proofs=proofs, parts=(("", first), ("another branch on sizes", rest)))


def _of_pytorch(case: Case, against: str | None, other: Any) -> bool:
    """Whether the case is compared with a PyTorch function, which may get any number."""
    from trilift.lift.cases.declaration import Case as Declared

    if against not in (None, "reference") or isinstance(other, Declared):
        return False
    return other is not None or bool(case.reference)


def _examined(case: Case, o: Options) -> Examined:
    """The proofs of a case whose integer scalars are positive."""
    from .integers.solver import Answers
    from .model.verdict import Claim, failed, interrupted
    from .runs.goals import targets

    start = time.perf_counter()
    o.progress("formulas")
    known = o.known if o.known is not None and o.known.case is case else None
    goal = known.goal if known else targets(case, o.lifted, other=o.other, against=o.against, seed=o.seed)
    claims: Mapping[str, Claim] = {name: Claim(name, goal.against) for name in (*goal.formulas, *goal.errors)}
    guard = Guard(o.timeout)
    with stage("proof", BUDGETS.proof.steps, guard=guard) as meter:
        given = known.configurations if known else ()
        attempt = _Attempt(
            case, goal, claims, o.seed, meter, o.progress, o.invariants, o.replace or {}, Answers(), (), given
        )
        attempt, proofs = _tried(attempt)
    goal, claims = attempt.goal, attempt.claims
    proofs = attempt.beside_runs(attempt.beside_zeros({name: interrupted(p, guard) for name, p in proofs.items()}))
    proofs |= {name: failed(claims[name], e) for name, e in goal.errors.items()}
    if o.fallback and any(p.verdict.value == "UNKNOWN" for p in proofs.values()):
        o.progress("counterexamples")
        proofs = attempt.decided(proofs)
    proofs = {n: _of_lifted(attempt.another_dtype(n, p)) for n, p in proofs.items()}
    seconds = time.perf_counter() - start
    taken = tuple(p.taking(seconds / len(proofs)) for p in proofs.values())
    return Examined(taken, goal, tuple(attempt.provings), case, tuple(attempt.configurations))


def equal(a: Case, b: Any, **options: Any) -> tuple[Proof, ...]:
    """Whether two kernels, or a kernel and a PyTorch function, compute the same: one proof for each output of `a`, and,
    if `b` is a kernel that is compared by what was lifted from it, the proof that it computes that. Options as for
    `prove`."""
    from trilift.lift import lift
    from trilift.lift.cases.declaration import Case

    proofs = prove(a, other=b, **options)
    if not isinstance(b, Case):
        return proofs
    mine = {k: v for k, v in options.items() if k not in ("lifted", "against")}
    theirs = prove(b, against="formula", lifted=lift(b, options.get("seed", 0)), **mine)
    proofs = tuple(_as_computed(p, theirs, a.params == b.params) for p in proofs)
    return (*proofs, *(changed(p, claim=changed(p.claim, output=f"{b.name}: {p.claim.output}")) for p in theirs))


def _as_computed(p: Proof, theirs: Sequence[Proof], alike: bool) -> Proof:
    """The proof; a refuted one keeps the inputs that it was shown for only where the other kernel is proved to compute
    its formula, and under that proof's conditions too. `alike`: one name is one size in both cases."""
    if p.verdict.value != "REFUTED" or not p.contract:
        return p
    more = [c for q in theirs for c in q.contract if c.kind not in ("config", "size")]
    proved = all(q.verdict.value == "PROVED" for q in theirs) and (alike or not more)
    known = {c.text: c for c in (*p.contract, *more)}
    return changed(p, contract=tuple(known.values()) if proved else ())


def _tried(attempt: _Attempt) -> tuple[_Attempt, dict[str, Proof]]:
    """Its proofs; where something is open, those of one configuration after the other if they go through."""
    proofs = attempt.every()
    if _open(proofs) and (apart := attempt.apart()) is not None:
        again = changed(attempt, configurations=apart)
        if not _open(found := again.every()):
            return again, found
    return attempt, proofs


def _open(proofs: Mapping[str, Proof]) -> bool:
    """Whether something is not proved."""
    return not all(p.verdict.value == "PROVED" for p in proofs.values())


def _beyond(contract: Sequence[Clause], found: Counterexample) -> tuple[Clause, ...]:
    """The contract if the counterexample may lie outside of it; else nothing: it does not hold."""
    from trilift.lift.terms.fit import value

    numbers = {**found.dims, **found.strides}
    inside = (c.kind in ("config", "distinct") if c.term is None else value(c.term, numbers) is True for c in contract)
    return () if all(inside) else tuple(contract)


def _of_lifted(p: Proof) -> Proof:
    """The proof; a lifted formula that is found wrong is a defect of its lifting, not of the kernel."""
    from .model.verdict import unknown
    from .runs.goals import FORMULA

    found = p.counterexample
    if found is None or p.claim.against != FORMULA or not (found.why == "" or found.why.startswith("shape ")):
        return p
    at = ", ".join(f"{n} = {v}" for n, v in found.dims.items()) or "every size"
    what = found.why or f"{p.claim.output} is {found.got:g} there, and the formula gives {found.expected:g}, in float64"
    return unknown(p.claim, f"the lifted formula differs from what the kernel computes at {at}: {what}")


def _told(p: Proof, more: str) -> Proof:
    """The proof with one more reason why it is none."""
    return p if more in p.reason else changed(p, reason=f"{p.reason}; {more}")


@dataclass
class _Attempt:
    """The proofs of one case in all its configurations."""

    case: Case
    goal: Targets
    claims: Mapping[str, Claim]
    seed: int
    meter: Meter
    progress: Callable[[str], None]
    invariants: bool
    replace: Mapping[int, Mutation]
    answers: Answers  # of the solver, in all configurations
    more: Sequence[Clause] = ()  # preconditions beside those of the case
    configurations: Sequence[Configuration] = ()  # of the case, where they are known already

    @cached_property
    def callers(self) -> CallerMemory:
        """The checks of the caller's memory, made at one small run."""
        from .runs.caller_memory import CallerMemory

        return CallerMemory(self.case, self.goal.fn, self.seed)

    def __post_init__(self) -> None:
        self.error: TriliftError | None = None
        self.open: dict[str, Configuration] = {}  # output -> the configuration in which it is not proved
        self.provings: list[Proving] = []
        try:
            self.run()
        except TriliftError as stop:
            self.error = stop
        except RecursionError:
            self.error = TriliftError("the terms are nested too deeply", self.case.place)
        if self.error is not None:
            self.watch(self.callers.written)

    def run(self) -> None:
        """Every configuration executed, its loops and accesses proved."""
        from .configurations.launches import configurations
        from .proof.prover import Proving

        if not self.configurations:
            self.progress("configurations")
            with self.meter.paused():
                self.configurations = configurations(self.case, self.seed)
        for k, found in enumerate(self.configurations):
            self.progress(f"configuration {k + 1} {found.label}".rstrip())
            configuration = self.restricted(self.mutated(found))
            together = Meter("proof of several configurations at once", BUDGETS.proof.together_steps, self.meter)
            meter = together if found.together else self.meter
            proving = Proving(configuration, meter, self.progress, self.invariants, self.answers, self.goal.double)
            if len(self.configurations) > 1 and proving.vacuous:
                continue  # no shape at which the formulas hold is in this class
            proving.run()
            self.provings.append(proving)
        written = {b for proving in self.provings for b in proving.written}
        self.watch([n for p in self.provings for n, v in p.configuration.inputs.items() if v.buffer in written])

    def watch(self, names: Iterable[str]) -> None:
        """The claims that these inputs, which something may write, keep their contents, where the reference says no
        more."""
        from .model.verdict import Claim
        from .runs.goals import with_inputs

        if self.goal.fn is None or self.goal.against == "text":
            return
        self.goal = with_inputs(self.goal, self.case, dict.fromkeys(names))
        self.claims = {
            n: self.claims.get(n) or Claim(n, self.goal.against) for n in (*self.goal.formulas, *self.claims)
        }

    def every(self) -> dict[str, Proof]:
        """The proof of each output that has a formula."""
        return {name: self.shown(name) for name in self.goal.formulas}

    def apart(self) -> list[Configuration] | None:
        """A configuration for each configuration, where several were taken together."""
        from .configurations.launches import configurations

        if not any(s.together for s in self.configurations):
            return None
        try:
            with self.meter.paused():
                return configurations(self.case, self.seed, together=False)
        except TriliftError:
            return None

    def mutated(self, configuration: Configuration) -> Configuration:
        """The configuration with some of its launches' modules changed."""
        from .model.configuration import SymbolicLaunch

        if not self.replace:
            return configuration
        events = list(configuration.events)
        launches = [k for k, e in enumerate(events) if isinstance(e, SymbolicLaunch)]
        for number, mutation in self.replace.items():
            if number >= len(launches):
                raise TriliftError(f"launch {number} is not made at every shape", self.case.place)
            event = events[launches[number]]
            assert isinstance(event, SymbolicLaunch)
            events[launches[number]] = changed(event, module=mutation(event.module))
        return changed(configuration, events=tuple(events))

    def restricted(self, configuration: Configuration) -> Configuration:
        """The configuration at the sizes where the target formulas hold."""
        from trilift.lift.terms import construct as T

        from .configurations.launches import facts
        from .integers.solver import Solver
        from .model.verdict import Clause
        from .wording.user_terms import words

        known = (T.make("and", True, self.case.where), *facts(self.case))
        clauses = [
            Clause("shape", c, words(c), f"the {self.goal.against}, which holds only there")
            for c in self.goal.conditions
            if not Solver().implies(known, c)
        ]
        clauses += self.more
        more = frozenset((*self.goal.conditions, *(c.term for c in clauses if c.term is not None)))
        every = (*configuration.clauses, *clauses)
        return changed(configuration, facts=configuration.facts | more, clauses=every, owed=self.goal.owed)

    def shown(self, output: str) -> Proof:
        """PROVED where every configuration shows it."""
        from .wording.user_terms import readable

        return readable(self._shown(output), self.configurations)

    def _shown(self, output: str) -> Proof:
        from .model.verdict import failed, proved, unknown

        claim = self.claims[output]
        if why := self.callers.wrong(output):
            return unknown(claim, why)
        if self.error is not None or not self.provings:
            return failed(
                claim, self.error or TriliftError("there is no configuration to prove it in", self.case.place)
            )
        found: list[Shown] = []
        for proving in self.provings:
            self.open[output] = proving.configuration
            try:
                found.append(proving.claim(output, self.goal.formulas[output]))
            except TriliftError as stop:
                proof = failed(claim, stop)
                label = f"{proving.configuration.label}: " if proving.configuration.label else ""
                return changed(proof, reason=label + proof.reason)
            except RecursionError:
                return failed(claim, TriliftError("the terms are nested too deeply", self.case.place))
        clauses = [c for s in found for c in s.contract]
        if self.vacuous(clauses):
            return unknown(claim, VACUOUS)
        return proved(
            claim,
            tuple(c for s in found for c in s.conditions),
            tuple(dict.fromkeys(i for s in found for i in s.invariants)),
            tuple({c.text: c for c in (*clauses, *self.callers.clauses(output))}.values()),
        )

    def vacuous(self, clauses: Sequence[Clause]) -> bool:
        """Whether a clause is false or several configurations exclude each other: nothing would be claimed."""
        from trilift.lift.terms import construct as T

        from .configurations.launches import facts
        from .integers.solver import Solver

        terms = {c.term for c in clauses if c.term is not None}
        if T.const(False) in terms:
            return True
        limits = [*self.limits(terms)]
        together = len(self.provings) > 1 or bool(limits)
        return together and Solver().contradictory((*facts(self.case), *terms, *limits))

    def limits(self, terms: Iterable[Term]) -> Iterator[Term]:
        """The limits that the case gives the elements of integer inputs which these terms are about."""
        from trilift.lift.terms import construct as T

        for r in dict.fromkeys(s for t in terms for s in t.walk() if s.op == "read" and s.type == T.INT):
            spec = self.case.tensors.get(str(r.attr))
            if spec is not None and spec.low is not None:
                yield T.make("le", spec.low, r)
            if spec is not None and spec.high is not None:
                yield T.make("lt", r, spec.high)

    def beside_zeros(self, proofs: dict[str, Proof]) -> dict[str, Proof]:
        """The proofs, of which none stays that a run on zeros contradicts. Where the contract speaks of values, it may
        keep the run out."""
        from .model.verdict import failed
        from .refutation.zeros import contradiction

        if self.replace:
            return proofs
        out = dict(proofs)
        for name, p in proofs.items():
            if p.verdict.value != "PROVED" or any(c.kind == "value" for c in p.contract):
                continue
            if told := contradiction(self.case, self.goal, name, self.seed):
                out[name] = failed(p.claim, TriliftError("a run contradicts the proof", self.case.place, told))
        return out

    def beside_runs(self, proofs: dict[str, Proof]) -> dict[str, Proof]:
        """The proofs; REFUTED where a run on an input of the table shows something else than was proved: a defect of
        this package, unless the contract leaves the input out since the host function takes another way there."""
        from .model.verdict import refuted
        from .refutation.beside import contradiction

        shown = {n: p for n, p in proofs.items() if p.verdict.value == "PROVED"}
        if self.replace or not shown:
            return proofs
        contract = [c for p in shown.values() for c in p.contract]
        shows = contradiction(self.case, self.goal, contract, proofs.keys() - shown.keys(), self.seed)
        if shows is None:
            return proofs
        found, beyond = shows.found, shows.left_out
        wrong = {n for n in shown if n == found.output} or set(shown)
        why = OUR_DEFECT if beyond is None else f"the host function takes another way where {beyond.text} is false"
        told = lambda p: changed(refuted(p.claim, found), contract=p.contract, reason=why)  # noqa: E731
        return {n: told(p) if n in wrong else p for n, p in proofs.items()}

    def decided(self, proofs: dict[str, Proof]) -> dict[str, Proof]:
        """The claims that are not proved: refuted by an input that fails, proved under a contract that the host
        function keeps, tested in finite fields unless a run on zeros says otherwise, or left unknown."""
        from trilift.lift.pytorch.machine_integers import INEXACT

        from .model.verdict import NO_SHAPE, Counterexample, interrupted
        from .refutation.search import Searched, search

        if self.replace:
            return proofs
        hints = self.unproved_shapes(proofs)
        tried = [*hints, *self.at_branches(proofs)]
        ended = Searched(self.in_failed_rows(proofs))
        if ended.found is None:
            ended = search(self.case, self.goal, tried, seed=self.seed, steps=BUDGETS.search.steps)
        found = ended.found or self.at_likely_inputs()
        names = [n for n, p in proofs.items() if p.verdict.value == "UNKNOWN"]
        guard = Guard(self.meter.guard.seconds if self.meter.guard else GUARD_SECONDS, "search for a contract")
        inferred = self.inferred(names, proofs, found, guard)
        if inferred is not None:
            found = found or inferred.counterexample
            proofs = inferred.told(proofs)
        if found is not None:
            return self.wrong(proofs, found)
        proofs = {n: p if inferred is not None else interrupted(p, guard) for n, p in proofs.items()}
        if unseen := ended.left or self.without_shape(proofs) or self.disorder(proofs, hints):
            return {n: _told(p, unseen) if p.verdict.value == "UNKNOWN" else p for n, p in proofs.items()}
        if self.racy or self.rounded or self.undefined:
            return proofs  # no order of lanes, and no run of ours means anything; numbers of a field are not rounded
        self.progress("finite fields")
        for outcome in self.field_test(proofs, hints):
            p = proofs[outcome.output]
            open_ = p.verdict.value == "UNKNOWN" and not p.reason.startswith((INEXACT, NO_SHAPE, VACUOUS))
            if not open_ or self.callers.misplaced:
                continue
            after = self.after_fields(outcome, p)
            if isinstance(after, Counterexample):
                return self.wrong(proofs, after)
            proofs[outcome.output] = after
        return proofs

    def after_fields(self, outcome: Outcome, p: Proof) -> Proof | Counterexample:
        """The claim after its test in finite fields, or a counterexample. No field has 0 / 0, an order with ties, or
        constants that differ by rounding: the test does not count where zeros or exact numbers contradict it."""
        from .model.verdict import tested
        from .refutation import ties, zeros

        apart = self.told_apart(outcome.output)
        believed = outcome.tested and not apart
        seen = (of.contradiction(self.case, self.goal, outcome.output, self.seed) for of in (zeros, ties))
        told = next(filter(None, seen), "") if believed else ""
        if told or not believed:
            found = ties.counterexample(self.case, self.goal, outcome.output, self.seed, apart)
            return found if found is not None else _told(p, told) if told else p
        found_ = tested(p.claim, outcome.samples, outcome.probability, p.reason + outcome.limits)
        return changed(found_, place=p.place, cause=p.cause if p.cause in CAUSES.values() else "")

    def in_failed_rows(self, proofs: Mapping[str, Proof]) -> Counterexample | None:
        """A counterexample in padded rows, where the proof failed with last strides of 1 that the case never draws."""
        from trilift.lift.cases.shapes import choose

        from .refutation.search import search_at
        from .runs.adversary import SEARCHED
        from .runs.layouts import laid

        for names in dict.fromkeys(c.rows for c in self.failed(proofs) if c.rows):
            case = laid(self.case, dict.fromkeys(names, "padded"))
            at, steps = (len(SEARCHED) * (self.seed + 1),), BUDGETS.search.rows_steps
            if (found := search_at(case, self.goal, choose(case, 3, self.seed), at, steps)) is not None:
                return found
        return None

    def at_likely_inputs(self) -> Counterexample | None:
        """A counterexample at sizes or on elements beside the numbers that the code has in it, at a size that grows, on
        other rows of the table of inputs, or with tensors in other layouts."""
        from trilift.lift.cases.likely_sizes import growing, likely, written
        from trilift.lift.cases.shapes import choose

        from .refutation.search import search_at
        from .runs.adversary import FURTHER, SEARCHED, TABLE
        from .runs.code_numbers import beside
        from .runs.layouts import otherwise

        like, goal = choose(self.case, 1, self.seed)[0], [f.term for f in self.goal.formulas.values()]
        normal, rows = (len(SEARCHED) * (self.seed + 1),), range(FURTHER, FURTHER + len(TABLE))
        drawn = [near] if (near := beside(self.case, written(self.case, goal))) is not None else []
        plans = (
            (self.case, likely(self.case, like, goal), normal, BUDGETS.search.likely_steps),
            (self.case, growing(self.case, like), normal, BUDGETS.search.growing_steps),
            *((near, choose(near, 3, self.seed), normal, BUDGETS.search.rows_steps) for near in drawn),
            (self.case, [like], rows, BUDGETS.search.rows_steps),
            *((laid, [like], normal, BUDGETS.search.rows_steps) for laid in otherwise(self.case)),
        )
        found = (search_at(case, self.goal, shapes, seeds, steps) for case, shapes, seeds, steps in plans)
        return next((f for f in found if f is not None), None)

    def told_apart(self, output: str) -> bool:
        """Whether constants that a field takes for one number are two in f64, in which something computes."""
        from .proof.double_precision import in_double, told_apart

        formula = self.goal.formulas[output]
        return any((self.goal.double or in_double(c)) and told_apart(c, formula) for c in self.configurations)

    @property
    def racy(self) -> bool:
        """Whether lanes of one program may meet in an order that nothing decides."""
        from .memory.lane_order import KIND

        return any(c.kind == KIND and not c.holds for p in self.provings for c in p.conditions)

    @property
    def undefined(self) -> bool:
        """Whether the kernel may do anything at some input: a tl.assume that is false, a tl.clamp from 1 to -1, a shift
        by -1."""
        from .memory.safety import undefines

        return any(undefines(c) and not c.holds for p in self.provings for c in p.conditions)

    @property
    def rounded(self) -> bool:
        """Whether integers pass through floats, where they may lose digits, and become integers again."""
        return any(p.exact for p in self.provings)

    def another_dtype(self, output: str, proof: Proof) -> Proof:
        """REFUTED where an output is a tensor of another integer type than that of the function; of another float type
        the contract says so."""
        from trilift.lift.cases.shapes import choose

        from .model.verdict import Clause, Counterexample, refuted, written_once
        from .proof.exact_numbers import rounding_clause

        why, rounded = self.goal.dtypes.get(output), self.goal.floats.get(output)
        more = (
            *map(rounding_clause, self.goal.roundings),
            *(written_once(w.operator, w.place) for w in self.goal.repeated),
        )
        proof = changed(proof, contract=(*proof.contract, *more))
        if rounded is not None:
            clause = Clause("float", None, f"{rounded}: real numbers are compared, not how they are stored")
            return changed(proof, contract=(*proof.contract, clause))
        if why is None or proof.verdict.value == "REFUTED":
            return proof
        dims = choose(self.case, 1, self.seed)[0]
        nan = float("nan")
        return refuted(proof.claim, Counterexample(dims, self.seed, 0, output, (), nan, nan, why=why))

    def wrong(self, proofs: dict[str, Proof], found: Counterexample) -> dict[str, Proof]:
        """REFUTED for the output of the counterexample, or for all where it is of none; then for others that are wrong
        too."""
        from .model.verdict import refuted
        from .refutation.search import search

        of = {found.output: found} if found.output in proofs else dict.fromkeys(proofs, found)
        while any(p.verdict.value == "UNKNOWN" for n, p in proofs.items() if n not in of):
            again = search(self.case, self.goal, seed=self.seed, steps=BUDGETS.search.steps, but=of).found
            if again is None or again.output not in proofs.keys() - of.keys():
                break
            of[again.output] = again
        return {
            n: changed(refuted(self.claims[n], of[n]), contract=_beyond(p.contract, of[n])) if n in of else p
            for n, p in proofs.items()
        }

    def inferred(
        self, names: Sequence[str], proofs: Mapping[str, Proof], known: Counterexample | None, guard: Guard
    ) -> Any:
        """A contract under which these outputs are proved, where a precondition may be all that is missing."""
        from .refutation.contract import infer, promising

        names = [n for n in names if n in self.goal.formulas]
        if not self.configurations or not names or not all(promising(proofs[n]) for n in names):
            return None
        self.progress("contract")

        def under(clauses: Sequence[Clause], meter: Meter) -> dict[str, Proof]:
            self.progress("contract: " + ", ".join(c.text for c in clauses))
            attempt = changed(self, more=clauses, meter=meter, progress=lambda stage: None)
            return {n: attempt.shown(n) for n in names}

        with stage("contract", BUDGETS.proof.contract_steps, guard=guard) as meter:
            return infer(self.case, self.goal, self.configurations, under, self.seed, known, meter)

    def unproved_shapes(self, proofs: Mapping[str, Proof]) -> list[dict[str, int | float]]:
        """Shapes of the classes in which the proof of some output failed: where a wrong kernel is wrong."""
        from .configurations.shape_classes import shapes

        found = (d for c in self.failed(proofs) for d in shapes(self.case, c, SHAPES_OF_CLASS, self.seed))
        return list({tuple(d.items()): d for d in found}.values())

    def without_shape(self, proofs: Mapping[str, Proof]) -> str:
        """A class in which the proof of some output failed and of which no shape was found; "" if there is none."""
        from .configurations.shape_classes import shapes

        unseen = (c for c in self.failed(proofs) if not shapes(self.case, c, 1, self.seed))
        return next((f"no shape was found {c.label or 'at which the host function does this'}" for c in unseen), "")

    def at_branches(self, proofs: Mapping[str, Proof]) -> list[dict[str, int | float]]:
        """Shapes on each side of the choices of the host function, where the proof of some output failed."""
        from trilift.lift.cases.shapes import choose

        from .configurations.shape_classes import at_branches

        failed = self.failed(proofs)
        small = choose(self.case, 1, self.seed)[0] if failed else {}
        return [d for c in failed for d in at_branches(self.case, c, small)]

    def failed(self, proofs: Mapping[str, Proof]) -> list[Configuration]:
        """The configurations in which the proof of some output failed."""
        return list(
            dict.fromkeys(self.open[n] for n, p in proofs.items() if p.verdict.value == "UNKNOWN" and n in self.open)
        )

    def disorder(self, proofs: Mapping[str, Proof], shapes: Sequence[Mapping[str, int | float]]) -> str:
        """A text about a result that depends on an order of programs or lanes, or on earlier calls: then a test of one
        is worthless; "" where no such result is seen."""
        from trilift.lift.cases.shapes import choose

        from .refutation.search import launched
        from .runs.races import unpromised
        from .runs.trials import blocks_of, fits

        if not _open(proofs):
            return ""
        if seen := self.callers.again or self.callers.remembered or next(iter(self.callers.kept.values()), ""):
            return seen
        small = choose(self.case, 2, self.seed)
        trace = launched(self.case, small[0], self.seed)
        blocks = blocks_of(trace) if trace is not None else []
        across = ({**small[0], n: 2 * b + 1} for b in reversed(blocks) for n in self.case.names)
        several = islice((d for d in across if fits(self.case, d)), SHAPES_OF_SEVERAL_PROGRAMS)
        return unpromised(self.case, [*small, *several, *shapes], self.seed)

    def field_test(self, proofs: Mapping[str, Proof], shapes: Sequence[Mapping[str, int | float]]) -> Sequence[Outcome]:
        """The outcomes of a field test of what is unknown, but for want of time; none where it cannot be run. `shapes`:
        further ones."""
        from .fields.identity_test import check
        from .runs.caller_memory import is_untouched

        late = CAUSES[OutOfTime]
        unknown = [n for n, p in proofs.items() if p.verdict.value == "UNKNOWN" and p.cause != late]
        formulas = [f for n in unknown if (f := self.goal.formulas.get(n)) is not None and not is_untouched(f)]
        try:
            steps = BUDGETS.fields.proof_steps
            found = check(self.case, formulas, seed=self.seed, steps=steps, more=shapes) if formulas else None
            return found.outcomes if found is not None else ()
        except (TriliftError, RecursionError):
            return ()

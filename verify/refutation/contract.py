"""The weakest simple precondition under which a proof succeeds, for a proof that fails without one.

    {P and C} kernel {output = formula}        C of a few clauses, each of which is needed

    c ::= e % b == 0 | e <= b | n == b | n >= 2 | n == m | stride(x, d) == 1 | stride(x, d) == that of a contiguous x

e and b come from the launches: cdiv(e, b) and min(e, b) in grids and loops, lanes b below a size n in masks.
trilift then runs inputs that do not meet C. If the host function accepts one and the result is wrong, the claim is
refuted; only if it refuses them is the claim proved under C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from typing import Any

from trilift.lift.capture.trace import Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, TriliftError
from trilift.lift.runtime.budget import BUDGETS, UNLIMITED, Meter, OutOfSteps, OutOfTime, stage
from trilift.lift.runtime.strategy import Strategy
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term

from ..execution.parametric import execute
from ..integers.quotient import canonical, expand, to_term
from ..integers.solver import Solver
from ..model.configuration import Configuration, SymbolicLaunch, View
from ..model.program import PIDS, Program
from ..model.verdict import Clause, Counterexample, Proof, Verdict
from ..runs.goals import Targets

Proofs = Mapping[str, Proof]
Under = Callable[[Sequence[Clause], Meter], Proofs]  # proofs under more preconditions, within steps

TRIES = 6  # sets of clauses; each of a set that works may then be left out
BEYOND, INSIDE = 8, 4  # runs outside of the contract, and in it
INFERRED = "the proof that was found; the kernel may need less"
REFUSED = "the proof; the host function refused all other inputs that were tried"
REFUSALS = 2  # of the host function, at least, before it is said to refuse


@dataclass(frozen=True, slots=True)
class Inferred:
    """The claims are proved under `clauses`. Outside of them the host function `refuses` every shape tried, or is
    refuted by `counterexample`, or neither."""

    clauses: tuple[Clause, ...]
    proofs: Proofs
    refuses: bool = False
    counterexample: Counterexample | None = None
    strategy: str = ""  # the row that gave the clauses

    def told(self, proofs: Proofs) -> dict[str, Proof]:
        """The proofs of the case: those under the clauses where the host function refuses the rest; else what was found
        out is a part of the reason, and for a claim that a counterexample refutes, its contract."""
        if self.refuses:
            return {**proofs, **{n: self._refused(p) for n, p in self.proofs.items()}}
        text = " and ".join(c.text for c in self.clauses)
        out = dict(proofs)
        for n, found in self.proofs.items():
            p = proofs[n]
            of_data = "; ".join(c.text for c in found.contract if c.kind == "value")
            reason = f"{p.reason}; proved for {text}" + (f", where {of_data}" if of_data else "")
            out[n] = replace(p, contract=found.contract, reason=reason, details=self._details(p))
        return out

    def _refused(self, p: Proof) -> Proof:
        mine = {c.text for c in self.clauses}
        contract = tuple(replace(c, why=REFUSED) if c.text in mine else c for c in p.contract)
        return replace(p, contract=contract, details=self._details(p))

    def _details(self, p: Proof) -> dict[str, Any]:
        return {**p.details, "contract": self.strategy}


def infer(
    case: Case,
    goal: Targets,
    configurations: Sequence[Configuration],
    under: Under,
    seed: int = 0,
    known: Counterexample | None = None,
    meter: Meter = UNLIMITED,
) -> Inferred | None:
    """The first set of clauses under which all claims are proved, with what cannot be left out of it; None if none is
    found before the steps are spent. `known`: an input on which a claim fails, which the clauses must exclude; `meter`:
    of all proofs that are tried, and of the questions whether a set of clauses can be met."""
    try:
        return _inferred(case, goal, configurations, under, seed, known, meter)
    except (OutOfSteps, OutOfTime):  # of a question between two proofs
        return None


def _inferred(
    case: Case, goal: Targets, configurations: Sequence[Configuration], under: Under, seed: int,
    known: Counterexample | None, meter: Meter,
) -> Inferred | None:  # fmt: skip
    def prove(clauses: Sequence[Clause]) -> Proofs | None:
        with stage("proof under clauses", BUDGETS.proof.clauses_steps, meter) as each:
            return _all_proved(under(clauses, each))

    for row, clauses in islice(_plausible(case, configurations, known, meter), TRIES):
        if meter.exhausted:
            return None
        proofs = prove(clauses)
        if proofs is None:
            continue
        for c in clauses[::-1] if len(clauses) > 1 else ():
            fewer = [x for x in clauses if x is not c]
            if fewer and not meter.exhausted and (found := prove(fewer)) is not None:
                clauses, proofs = fewer, found
        found_ = Inferred(tuple(clauses), proofs, strategy=row.name)
        return found_ if known is not None else beyond(case, goal, found_, seed)
    return None


def promising(proof: Proof) -> bool:
    """Whether the proof may lack a precondition only: it was not kept from going on by what is not supported."""
    return proof.verdict is Verdict.UNKNOWN and proof.cause.split(":")[0] in ("", "Undecided", "Undefined")


def _all_proved(proofs: Proofs) -> Proofs | None:
    return proofs if proofs and all(p.verdict is Verdict.PROVED for p in proofs.values()) else None


def _plausible(
    case: Case, configurations: Sequence[Configuration], known: Counterexample | None, meter: Meter
) -> Iterator[tuple[Strategy, list[Clause]]]:
    """Sets of clauses that some input meets, and that exclude the counterexample."""
    numbers = None if known is None else _numbers(case, known.dims, known.seed)
    for row, terms in candidates(case, configurations):
        excluded = numbers is None or not all(_meets(t, numbers) for t in terms)
        if excluded and any(satisfiable(s.facts, terms, meter) for s in configurations):
            yield row, [clause(t) for t in terms]


def satisfiable(facts: Iterable[Term], terms: Iterable[Term], meter: Meter) -> bool:
    """Whether the solver finds numbers that meet all of them. A contract that no numbers meet would claim nothing about
    the kernel."""
    return Solver(meter=meter).model([*facts, *terms]) is not None


def clause(t: Term) -> Clause:
    from ..wording.user_terms import words

    strides = any(s.op == "size" and str(s.attr).startswith("stride(") for s in t.walk())
    return Clause("layout" if strides else "shape", t, words(t), INFERRED)


# ---- candidates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Launches:
    """The material of clauses: the programs of a case in all its configurations, its tensors, its dims."""

    programs: Sequence[Program]
    configurations: Sequence[Configuration]
    dims: Sequence[Term]

    def even(self) -> list[Term]:
        return _distinct(_even(self.programs))

    def capped(self) -> list[Term]:
        return _distinct(_capped(self.programs))

    def fits(self) -> list[Term]:
        return _distinct(_fits(self.programs))

    def unit(self) -> list[Term]:
        return _distinct(_unit(self.configurations))

    def dense(self) -> list[Term]:
        return _distinct(_dense(self.configurations))

    def usual(self) -> list[Term]:
        return [*self.even(), *self.fits(), *self.unit()]

    def several(self) -> list[Term]:
        return [T.make("le", 2, n) for n in self.dims]

    def fixed(self) -> Iterator[list[Term]]:
        lanes = sorted({s.attr for p in self.programs for s in _lanes(p) if s.is_const})
        return ([T.make("eq", n, b)] for b in lanes for n in self.dims)

    def square(self) -> Iterator[list[Term]]:
        return ([T.make("eq", a, b)] for a, b in combinations(self.dims, 2))


def _row(name: str, attempt: Callable[[Launches], Iterable[list[Term]]], source: str, example: str) -> Strategy:
    return Strategy(name, "contract", attempt, source, example)


L = Launches
CONTRACTS = (  # each gives sets of clauses, the likely ones first
    _row("whole-tiles", lambda x: [L.even(x)], "cdiv(e, b) in grids and loops: e % b == 0", "a matmul without masks"),
    _row("under-a-cap", lambda x: [L.capped(x)], "min(e, b) in grids and loops: e <= b", "a grid of at most 65535"),
    _row("one-tile", lambda x: [L.fits(x)], "lanes below a size n: n <= b", "a softmax of one block without a check"),
    _row("unit-stride", lambda x: [L.unit(x)], "layout", "a kernel that is given no stride of its columns"),
    _row("contiguous", lambda x: [L.dense(x)], "layout", "a kernel that is given no strides"),
    _row("whole-one-and-unit", lambda x: [L.usual(x)], "the three together", "a matmul of one block without masks"),
    _row("two-or-more", lambda x: [L.several(x)], "sizes of 1 and 0", "a variance that divides by n - 1"),
    _row("fixed-size", L.fixed, "the extent of a tile", "corpus/operators: quantise_rows"),
    _row("square", L.square, "one size for two", "a matrix that is read by columns for rows"),
)


def candidates(case: Case, configurations: Sequence[Configuration]) -> Iterator[tuple[Strategy, list[Term]]]:
    """Sets of clauses, each new, with the row that gives it."""
    programs = [p for s in configurations for p in _programs(s)]
    launches = Launches(programs, configurations, [T.size(n) for n in case.names])
    seen: set[frozenset[Term]] = set()
    for row in CONTRACTS:
        for terms in row.attempt(launches):
            if terms and frozenset(terms) not in seen:
                seen.add(frozenset(terms))
                yield row, terms


def _distinct(terms: Iterable[Term]) -> list[Term]:
    return [t for t in dict.fromkeys(terms) if not t.is_const]


def _programs(configuration: Configuration) -> Iterator[Program]:
    for e in configuration.events:
        if isinstance(e, SymbolicLaunch):
            dtypes = {a.name: x.dtype for a, x in zip(e.module.entry.args, e.operands, strict=True)
                      if isinstance(x, View)}  # fmt: skip
            try:
                yield execute(e.module, e.operands, e.grid, configuration.facts, dtypes)
            except TriliftError:
                continue


def _even(programs: Iterable[Program]) -> Iterator[Term]:
    """e % b == 0 for each cdiv(e, b)."""
    for p in programs:
        for t in _subterms([*p.grid, *(loop.trips for loop in p.loops)]):
            if t.op == "floordiv" and t.args[1] is not T.const(1):
                e = canonical(T.sub(T.add(t.args[0], 1), t.args[1]))
                if _of_sizes(e) and _of_sizes(t.args[1]) and not e.is_const:
                    yield T.make("eq", T.make("mod", e, t.args[1]), 0)


def _capped(programs: Iterable[Program]) -> Iterator[Term]:
    """e <= b for each min(e, b), b a number."""
    for p in programs:
        for t in _subterms([*p.grid, *(loop.trips for loop in p.loops)]):
            if t.op == "min":
                yield from (T.make("le", e, b) for b in t.args if b.is_const for e in t.args if _of_sizes(e))


def _fits(programs: Iterable[Program]) -> Iterator[Term]:
    """n <= b where lanes 0 ... b - 1 are compared with n."""
    for p in programs:
        for t in _subterms(a.guard for a in p.accesses):
            if t.op not in ("lt", "le") or t.args[0].type != T.INT:
                continue
            rest = expand(T.sub(t.args[1], t.args[0]))
            lanes = [m for m, c in rest.items() if len(m) == 1 and m[0].op == "axis" and c == -1]
            if len(lanes) == 1:
                n = to_term({m: c for m, c in rest.items() if m != lanes[0]})
                n = n if t.op == "lt" else T.add(n, 1)
                if _of_sizes(n) and not n.is_const:
                    yield T.make("le", n, lanes[0][0].attr.size)


def _lanes(p: Program) -> Iterator[Term]:
    """The extents of the tiles that are loaded and stored."""
    return (axis.size for a in p.accesses for axis in a.lanes)


def _unit(configurations: Iterable[Configuration]) -> Iterator[Term]:
    """The last dimension of every tensor is dense."""
    for v in _strided(configurations):
        yield T.make("eq", v.strides[-1], 1)


def _dense(configurations: Iterable[Configuration]) -> Iterator[Term]:
    """Every tensor is contiguous."""
    for v in _strided(configurations):
        for d, s in enumerate(v.strides):
            yield T.make("eq", s, T.mul(1, *v.shape[d + 1 :]))


def _strided(configurations: Iterable[Configuration]) -> Iterator[View]:
    for s in configurations:
        yield from (v for v in s.inputs.values() if v.strides and all(x.op == "size" and
                    str(x.attr).startswith("stride(") for x in v.strides))  # fmt: skip


def _subterms(terms: Iterable[Term]) -> Iterator[Term]:
    return (s for t in terms for s in t.walk())


def _of_sizes(t: Term) -> bool:
    return t not in PIDS and not any(s in PIDS or s.op in ("axis", "read", "carry", "scalar") for s in t.walk())


# ---- what the host function lets through -----------------------------------------------------------------------------


def beyond(case: Case, goal: Targets, found: Inferred, seed: int = 0) -> Inferred | None:
    """Runs the case beyond the clauses and returns `found` with the result: a counterexample if such a run is wrong,
    else `refuses`, whether the host function refused at least REFUSALS of these inputs and accepted none. None if a run
    that meets the clauses fails."""
    from . import search

    question = search.Question(case, goal)
    refused = accepted = 0
    for dims in _runs(case, found.clauses, seed):
        try:
            numbers = _numbers(case, dims, seed)
        except CaseError:
            refused += not all(_meets(c.term, dims) for c in found.clauses)
            continue
        except TriliftError:
            accepted += 1
            continue
        outcome = search.attempt(question, dims, seed, 0)
        inside = all(_meets(c.term, numbers) for c in found.clauses)
        if isinstance(outcome, search.Failure):
            if inside:
                return None
            example = search.search(case, goal, hints=[dims], seed=seed, steps=BUDGETS.search.beyond_steps).found
            if example is not None:
                return replace(found, counterexample=example)
        accepted += not inside
    return replace(found, refuses=refused >= REFUSALS and not accepted)


def _runs(case: Case, clauses: Sequence[Clause], seed: int) -> list[dict[str, int | float]]:
    """A few shapes inside of the clauses, large ones first, then some that break a clause, small ones first; any shape
    for what is about strides, which are drawn."""
    from trilift.lift.capture.run import capture
    from trilift.lift.cases.shapes import choose

    from ..runs.trials import blocks_of, boundary_shapes, mixed_shapes

    base = choose(case, 2, seed)
    try:
        blocks = blocks_of(capture(case, base[0], seed=seed))
    except TriliftError:
        blocks = []
    shapes = chain(base, boundary_shapes(case, base[0], blocks), islice(mixed_shapes(case, base[0], blocks, seed), 200))
    tried = sorted(map(dict, shapes), key=lambda d: math.prod(map(float, d.values())))
    terms = [c.term for c in clauses]
    inside = [d for d in tried if all(_meets(t, d) for t in terms)]
    outside = [d for d in tried if not all(_meets(t, d) for t in terms)]
    return [*inside[: -INSIDE - 1 : -1], *outside[:BEYOND]]


def _meets(t: Term | None, numbers: Mapping[str, int | float]) -> bool:
    return t is None or value(t, numbers) is True


def _numbers(case: Case, dims: Mapping[str, int | float], seed: int) -> dict[str, int | float]:
    """Dims and drawn strides of a run. Raises CaseError where the host function refuses the dims."""
    from trilift.lift.capture.run import capture

    trace: Trace = capture(case, dims, seed=seed)
    strides = {f"stride({n},{d})": s for n, ref in trace.inputs.items() for d, s in enumerate(ref.strides)}
    return {**trace.dims, **strides}

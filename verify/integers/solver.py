"""Integer conditions: the only file that imports z3."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import z3

from trilift.lift.errors import Place
from trilift.lift.runtime import budget
from trilift.lift.runtime.budget import BUDGETS, Meter
from trilift.lift.runtime.session import table
from trilift.lift.terms import construct as T
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.term import BOOL, Term

from ..model.verdict import Condition
from . import linear
from .conditions import CORE, core, defined, interpreted, leaves, question, value
from .model_cache import Pool
from .model_search import nearby

Facts = frozenset[Term]

BOXES = (4, 16, 256, 1 << 12, 1 << 20, None)  # symbols of a model are looked for in -b..b first
FALSE = T.const(False)
UNDECIDED = "z3 does not decide it with the resources of one question"
LONGEST_MILLISECONDS = 1 << 30  # that z3 takes as a limit
INTERRUPTED = ("timeout", "canceled")  # what z3 says where a limit ended it, of resources too
WITHOUT_ROOTS = 2  # z3's older arithmetic, for powers: the newer one may take roots of ever larger bounds for ever
TRIES = 6  # of a non-linear question, each with other seeds and another order of assertions
FARTHEST_BITS = 256  # of a symbol of one: z3 does not count the digits of the ever larger bounds that it finds else
WITHIN = "within"  # the assumption that symbols are; what contradicts it alone is no answer


@dataclass
class Answers:
    """The questions asked before, by facts and goal and by the conditions that must contradict each other, and numbers
    that met conditions. It is true of all configurations of a case."""

    implied: dict[tuple[Facts, Term], tuple[bool, str]] = field(default_factory=dict)
    contradictory: dict[tuple[Term, ...], tuple[bool, str]] = field(default_factory=dict)
    pool: Pool = field(default_factory=Pool)


@dataclass(frozen=True, slots=True)
class DistinctElements:
    """Of an input without two equal elements: their number; `low`, `high`: they are all numbers low <= v < high, which
    are as many; None where some may be missing."""

    number: Term
    low: Term | None = None
    high: Term | None = None


@dataclass
class Solver:
    """Answers questions about integers; every answer that a proof relies on is recorded.

    `resources`: of one question, in z3's own count; `meter`: of the stage that asks, whose steps all questions share
    until it ends. `asked` counts questions by who answered: "cache", "linear", "z3". A question to z3 raises OutOfSteps
    once the stage has spent its steps, and OutOfTime where the outer time limit strikes. `distinct`: inputs without two
    equal elements; whoever asks makes use of it."""

    resources: int = BUDGETS.solver.resources
    meter: Meter | None = field(default=None, repr=False)
    records: list[Condition] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers, repr=False)
    distinct: Mapping[str, DistinctElements] = field(default_factory=dict)

    def implies(self, facts: Iterable[Term], goal: Term, what: str = "", place: Place | None = None) -> bool:
        """True only when every assignment of integers that meets the facts meets the goal."""
        start = time.perf_counter()
        given = frozenset(facts)
        holds, by = self._implies(given, goal)
        if what:
            why = "" if holds else UNDECIDED if by == "z3 unknown" else "not implied by the facts"
            seconds = time.perf_counter() - start
            self.records.append(Condition(what, given, goal, holds, by.split()[0], seconds, place, why))
        return holds

    def contradictory(self, facts: Iterable[Term]) -> bool:
        """True only when nothing meets all facts."""
        return self._implies(frozenset(facts), FALSE)[0]

    def equal_under(self, facts: Iterable[Term], a: Term, b: Term) -> bool:
        """True only when the integers a and b are equal wherever the facts hold."""
        return a is b or self._implies(frozenset(facts), T.make("eq", a, b))[0]

    def model(self, facts: Iterable[Term]) -> dict[str, int] | None:
        """Numbers for the symbols that meet all facts, small ones where possible; None if none was found. Keys are the
        names of sizes, scalars and axes, and the text of other symbols; booleans are 0 and 1."""
        given = sorted(facts, key=lambda t: t.id)
        if not all(map(defined, given)):
            return None
        found = _model([core(f) for f in given], self.resources, self.meter)
        return None if found is None else {repr(t): int(v) for t, v in found.items()}

    def _implies(self, facts: Facts, goal: Term) -> tuple[bool, str]:
        key = (facts, goal)
        known = self.answers.implied.get(key)
        if known is None:
            known = self.answers.implied[key] = self._decide(facts, goal)
            self._count(known[1])
        else:
            self._count("cache")
        return known

    def _count(self, by: str) -> None:
        self.asked[by] = self.asked.get(by, 0) + 1

    def _decide(self, facts: Facts, goal: Term) -> tuple[bool, str]:
        if goal in facts:
            return True, "linear"
        literals = question(facts, goal)
        key = tuple(literals)
        known = self.answers.contradictory.get(key)
        if known is None:
            known = self.answers.contradictory[key] = self._contradict(literals)
        return known

    def _contradict(self, literals: Sequence[Term]) -> tuple[bool, str]:
        if self.answers.pool.meets(literals):
            return False, "numbers"
        budget.count("linear question")
        if linear.contradictory(literals):
            return True, "linear"
        if self.answers.pool.approached(literals, nearby):
            return False, "numbers"
        answer = decided_by_z3(literals, self.resources, self.answers.pool, self.meter)
        return answer is True, "z3" if answer is not None else "z3 unknown"


# ---- z3 --------------------------------------------------------------------------------------------------------------

_EXPRESSION: dict[int, Any] = table("solver.expressions", {})
_AXIOMS: dict[int, tuple[Any, ...]] = table("solver.axioms", {})
_NUMBERS: dict[int, frozenset[Term]] = table("solver.numbers", {})


def _expression(t: Term) -> Any:
    """A core term in z3's language; division by a symbol is a number of its own, described by `_axioms`."""
    e = _EXPRESSION.get(t.id)
    if e is None:
        e = _EXPRESSION[t.id] = _translate(t)
    return e


def _translate(t: Term) -> Any:
    if t.op == "const":
        return z3.BoolVal(t.attr) if t.type == BOOL else z3.IntVal(t.attr)
    if not interpreted(t):
        return z3.Bool(f"b{t.id}") if t.type == BOOL else z3.Int(f"i{t.id}")
    if _own_number(t):
        return z3.Int(f"i{t.id}")
    return Z3.rows[t.op](*map(_expression, t.args))


def _own_number(t: Term) -> bool:
    return t.op == "next_power_of_2" or (t.op in ("floordiv", "mod") and t.args[1].op != "const")


Z3 = Domain("z3", missing="opaque", says="an expression of z3", types=(T.INT, BOOL, "same"))
Z3.fill({
    "add": lambda *xs: z3.Sum(*xs),
    "mul": lambda *xs: reduce(lambda x, y: x * y, xs),
    "floordiv": lambda a, b: a / b,  # b > 0 in core terms
    "mod": lambda a, b: a % b,
    "min": lambda *xs: reduce(lambda x, y: z3.If(x <= y, x, y), xs),
    "max": lambda *xs: reduce(lambda x, y: z3.If(x <= y, y, x), xs),
    "where": lambda c, a, b: z3.If(c, a, b),
    "and": lambda *xs: z3.And(*xs),
    "or": lambda *xs: z3.Or(*xs),
    "not": lambda x: z3.Not(x),
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
})  # fmt: skip
Z3.derive(("next_power_of_2",), "a number of its own, which _definition describes")
Z3.derive(CORE.rows, "the integer core")


def _axioms(t: Term) -> tuple[Any, ...]:
    """The facts about the numbers with definitions that occur in a core term."""
    out = _AXIOMS.get(t.id)
    if out is None:
        found = {k: e for a in t.args for k, e in _axioms(a)} if interpreted(t) else {}
        if interpreted(t) and _own_number(t):
            found[t.id if t.op == "next_power_of_2" else (t.args[0].id, t.args[1].id)] = _definition(t)
        out = _AXIOMS[t.id] = tuple(found.items())
    return out


def _definition(t: Term) -> Any:
    if t.op == "next_power_of_2":
        n, p = _expression(t.args[0]), _expression(t)
        large = z3.And(p <= 2 * n - 2, p % 2 == 0)
        parts = [p >= 0, p >= n, z3.If(n <= 0, p == 0, z3.If(n == 1, p == 1, large))]
        return z3.And(*parts, *(z3.Or(p < 1 << k, p % (1 << k) == 0) for k in range(2, 7)))
    a, b = map(_expression, t.args)
    q, r = map(_expression, _quotient_and_remainder(t))
    remainder = z3.Or(z3.And(r >= 0, r < b), z3.And(b < r, r <= 0))
    return z3.Or(b == 0, z3.And(a == b * q + r, remainder))


def _quotient_and_remainder(t: Term) -> tuple[Term, Term]:
    return T.node("floordiv", t.args, None, T.INT), T.node("mod", t.args, None, T.INT)


def decided_by_z3(
    literals: Sequence[Term], resources: int, pool: Pool | None = None, meter: Meter | None = None
) -> bool | None:
    """Whether z3 finds that the core terms contradict each other; None if it did not decide with these resources.
    Numbers that meet them go to the pool. Raises OutOfSteps, OutOfTime."""
    symbols = frozenset[Term]().union(*map(leaves, literals)) if pool is not None else frozenset[Term]()
    assertions = _assertions(literals)
    if not any(map(_nonlinear, literals)):
        return _check(z3.SimpleSolver(), assertions, resources, 0, symbols, pool, meter)[0]
    squares, left = any(map(_has_power, literals)), resources
    limits, assumed = ([], []) if squares else (_limits(literals), [z3.Bool(WITHIN)])
    for k in range(TRIES):
        order = list(assertions)
        random.Random(k).shuffle(order)
        solver = z3.SimpleSolver()
        if squares:
            solver.set("arith.solver", WITHOUT_ROOTS)
        answer, used = _check(solver, [*order, *limits], left // (TRIES - k), k, symbols, pool, meter, assumed)
        left = max(left - used, 0)
        if answer is not None:
            return answer
    return None


def _assertions(literals: Sequence[Term]) -> list[z3.BoolRef]:
    """Core terms in z3's language, with what describes the numbers of their own in them."""
    axioms = dict(pair for t in literals for pair in _axioms(t)).values()
    return [*map(_expression, literals), *axioms]


def _limits(literals: Sequence[Term]) -> list[z3.BoolRef]:
    """That the integers of core terms, those with definitions too, are within FARTHEST_BITS, where WITHIN holds."""
    numbers = frozenset[Term]().union(*map(_numbers_of, literals))
    far, within = 1 << FARTHEST_BITS, z3.Bool(WITHIN)
    own = map(_expression, sorted(numbers, key=lambda t: t.id))
    return [z3.Implies(within, z3.And(-far <= x, x <= far)) for x in own]


def _numbers_of(t: Term) -> frozenset[Term]:
    """The integers of a core term that are constants for z3."""
    out = _NUMBERS.get(t.id)
    if out is None:
        found = frozenset[Term]().union(*map(_numbers_of, t.args)) if interpreted(t) else frozenset[Term]()
        if t.type == T.INT and t.op != "const" and (not interpreted(t) or _own_number(t)):
            found |= {*_quotient_and_remainder(t)} if interpreted(t) and t.op != "next_power_of_2" else {t}
        out = _NUMBERS[t.id] = found
    return out


def _check(
    solver: Any, assertions: Sequence[Any], resources: int, seed: int, symbols: Iterable[Term], pool: Pool | None,
    meter: Meter | None, assumed: Sequence[z3.BoolRef] = (),
) -> tuple[bool | None, int]:  # fmt: skip
    """The answer, none where it needs what is assumed, and the resources that it took."""
    solver.set("random_seed", seed)
    solver.add(*assertions)
    answer, used = _asked(solver, resources, meter, assumed)
    if answer == z3.sat and pool is not None:
        pool.add(_numbers(solver.model(), symbols))
    contradictory = answer == z3.unsat and not (assumed and solver.unsat_core())
    return (True if contradictory else False if answer == z3.sat else None), used


def _asked(
    solver: Any, resources: int, meter: Meter | None = None, assumed: Sequence[z3.BoolRef] = ()
) -> tuple[Any, int]:
    """z3's answer within its own count of resources, and how many it took. Raises OutOfSteps where the steps of the
    stage are spent already, OutOfTime where the outer time limit strikes first."""
    if meter is not None and meter.going:
        meter.check("question about integers")
    guard = meter.guard if meter is not None else None
    solver.set("rlimit", max(1, resources))
    while True:
        if guard is not None:
            solver.set("timeout", min(LONGEST_MILLISECONDS, max(1, int(guard.left * 1000))))
        answer = solver.check(*assumed)
        used = _used(solver)
        budget.count("z3 resource", used)
        interrupted = answer == z3.unknown and solver.reason_unknown() in INTERRUPTED and used < resources
        if not interrupted or guard is None:
            return answer, used
        if not guard.left:
            raise guard.strike()  # else z3's clock, which others' work moves on too, went ahead of the guard's


_COUNTED = [0]  # resources of all questions so far: z3 counts for the process


def _used(solver: Any) -> int:
    """The resources since this was asked last."""
    before, _COUNTED[0] = _COUNTED[0], int(solver.statistics().get_key_value("rlimit count"))
    return _COUNTED[0] - before


def _has_power(t: Term) -> bool:
    """Whether a product has a factor twice."""
    return any(interpreted(s) and s.op == "mul" and len(set(s.args)) < len(s.args) for s in t.walk())


def _nonlinear(t: Term) -> bool:
    for s in t.walk():
        if interpreted(s) and (
            (s.op == "mul" and sum(a.op != "const" for a in s.args) > 1)
            or (s.op in ("floordiv", "mod") and s.args[1].op != "const")
        ):
            return True
    return False


def _model(literals: Sequence[Term], resources: int, meter: Meter | None) -> dict[Term, int] | None:
    symbols = sorted(frozenset().union(*map(leaves, literals)), key=lambda t: t.id)
    solver = z3.Solver()
    solver.add(*map(_expression, literals))
    solver.add(*dict(pair for t in literals for pair in _axioms(t)).values())
    solver.add(*(_expression(d) != 0 for t in literals for d in _divisors(t)))
    for box in BOXES:
        solver.push()
        if box is not None:
            solver.add(*(z3.And(-box <= _expression(s), _expression(s) <= box) for s in symbols if s.type != BOOL))
        if _asked(solver, resources // len(BOXES), meter)[0] == z3.sat:
            env = _numbers(solver.model(), symbols)
            if all(value(t, env) is True for t in literals):
                return env
        solver.pop()
    return None


def _divisors(t: Term) -> Iterable[Term]:
    return (s.args[1] for s in t.walk() if interpreted(s) and s.op in ("floordiv", "mod") and s.args[1].op != "const")


def _numbers(model: Any, symbols: Iterable[Term]) -> dict[Term, int]:
    out: dict[Term, int] = {}
    for s in symbols:
        v = model.eval(_expression(s), model_completion=True)
        out[s] = z3.is_true(v) if s.type == BOOL else v.as_long()
    return out


# ---- SMT-LIB as it is written ----------------------------------------------------------------------------------------


def contradiction(smt: str, seconds: float) -> bool:
    """True only when z3 finds that the assertions of an SMT-LIB text contradict each other, within the time given: for
    measurements of what z3 does alone."""
    solver = z3.Solver()
    solver.set("timeout", max(1, int(seconds * 1000)))
    solver.from_string(smt)
    return bool(solver.check() == z3.unsat)


def smt_lib(what: str, facts: Iterable[Term], goal: Term) -> str:
    """A question about integers as SMT-LIB 2, unsatisfiable only if the facts imply the goal; comments say what the
    symbols stand for. "" for a goal that is none about integers."""
    if not defined(goal):
        return ""
    literals = question(facts, goal)
    solver = z3.SimpleSolver()
    solver.add(*map(_expression, literals))
    solver.add(*dict(pair for t in literals for pair in _axioms(t)).values())
    symbols = sorted(frozenset().union(*map(leaves, literals)), key=lambda t: t.id)
    named = [f"; {_expression(s)} is {' '.join(repr(s).split())}" for s in symbols]
    return "\n".join([f"; {' '.join(what.split())}", *named, solver.to_smt2()])

"""Verdicts, and the evidence that they need. The only file that constructs PROVED.

PROVED   holds for every input that meets the contract; every condition discharged, evidence attached
TESTED   held on n random field samples; the probability of a wrong accept is at most `bound`
REFUTED  an input is shown on which it fails, and was replayed on the kernel itself
UNKNOWN  not decided: which condition, where, why
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from trilift.lift.errors import Place, TriliftError
from trilift.lift.runtime.budget import CAUSES, Guard, OutOfTime
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

NO_SHAPE = "no shape meets the preconditions"  # a reason
TOLD_APART = "constants that only f64 tells apart"  # another


class Verdict(Enum):
    PROVED = "PROVED"
    TESTED = "TESTED"
    REFUTED = "REFUTED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Condition:
    """One verification condition: `goal` under `facts`. `what` says in words what it is for ("step of loop at line 31:
    total", "store in bounds"), `holds` is True only if it was proved; `by` says how: "normal form", "linear", "z3",
    "evaluated". `smt`: the SMT-LIB text of what was asked, if it was asked of a solver. `kind`: what it is for without
    names and places ("store in bounds"), which tables count. `strategies`: the rows that closed it, where it is an
    equality."""

    what: str
    facts: frozenset[Term]
    goal: Term
    holds: bool
    by: str
    seconds: float
    place: Place | None = None
    why: str = ""  # of one that does not hold: what is missing
    smt: str = field(default="", repr=False)
    kind: str = ""
    strategies: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Invariant:
    """The closed form of a loop variable: `term` over the iteration number, which it calls `counter`, and lanes, from
    iteration `since` on. `strategies`: the rows that gave it."""

    place: Place | None
    variable: str
    term: Term
    since: int
    counter: str = ""
    strategies: tuple[str, ...] = field(default=(), compare=False, repr=False)


ELSEWHERE = "the host function, which behaves differently elsewhere"  # needs a clause that leaves its other ways out


@dataclass(frozen=True, slots=True)
class Clause:
    """One precondition of the contract. `kind`: "size" (1 <= N), "shape" (N <= BLOCK), "layout" (unit stride, no
    overlap), "nowrap", "value" (of index tensors, of divisors), "distinct" (no two equal elements), "assume", "hint",
    "clamp" and "assert" (of the kernel's tl.assume, tl.multiple_of, tl.clamp, tl.device_assert), "float" (a finite
    number stands for -inf), "config" (a block size). `data`: what a clause without a term bounds, over the elements of
    tensors."""

    kind: str
    term: Term | None
    text: str
    why: str = ""  # what needs it
    place: Place | None = None
    data: Term | None = None


def overlap_free(name: str, why: str) -> Clause:
    """That an input of any strides has no two elements at one place; it may where it is only read."""
    return Clause("layout", None, f"no two elements of {name} share memory", why)


def aligned(name: str) -> Clause:
    """That an input, of which a tensor descriptor is made, lies where one may begin."""
    return Clause("descriptor", None, f"the memory of {name} starts at a multiple of 16 bytes", "a tensor descriptor")


def distinct(name: str) -> Clause:
    """That an integer input has no two equal elements, as its specification says."""
    return Clause("distinct", None, f"no two elements of {name} are equal", "the case")


def written_once(operator: str, place: Place | None) -> Clause:
    """PyTorch's operator writes no element several times."""
    return Clause(
        "value", None, f"{operator} writes no element twice", "PyTorch, which does not say which write stays", place
    )


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An input on which the kernel itself, run in float64, gives something else: the worst element. `edges`: integer
    inputs are at the edges of their types. `strides`: {"stride(x,0)": 8, ...} of tensors that were laid out otherwise
    than the case draws them. `arguments`: of the host function, None where they are too large to be kept; `seed` alone
    makes those of a case beside the user's only with that case. `place`: of the kernel launched last there."""

    dims: Mapping[str, int | float]
    seed: int
    config: int
    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    replay: str = ""  # a script
    why: str = ""  # what went wrong where there is no element: an access out of bounds
    edges: bool = False
    strides: Mapping[str, int] = field(default_factory=dict)
    arguments: Mapping[str, object] | None = field(default=None, compare=False, repr=False)
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim about one output (or written input): that it equals `formula`."""

    output: str
    against: str  # "reference", "formula", "text", or the other kernel's name


@dataclass(frozen=True, slots=True)
class Proof:
    """The result for one claim. Use `proved`, `tested`, `refuted`, `unknown`, `failed`. `cause`: of one that
    is UNKNOWN the kind of obstacle, without the user's names and places, which tables count."""

    claim: Claim
    verdict: Verdict
    conditions: tuple[Condition, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    contract: tuple[Clause, ...] = ()
    bound: float | None = None
    samples: int = 0
    counterexample: Counterexample | None = None
    reason: str = ""
    place: Place | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    cause: str = ""

    def taking(self, seconds: float) -> Proof:
        return replace(self, seconds=seconds)


def proved(
    claim: Claim, conditions: tuple[Condition, ...], invariants: tuple[Invariant, ...], contract: tuple[Clause, ...]
) -> Proof:
    """PROVED if there are conditions, all hold and some shape may meet the contract, else UNKNOWN with the first
    condition that does not hold."""
    open_ = next((c for c in conditions if not c.holds), None)
    if not conditions:
        return unknown(claim, "no condition was formed")
    if open_ is not None:
        return Proof(claim, Verdict.UNKNOWN, conditions, invariants, contract, reason=f"{open_.what}: {open_.why}",
                     place=open_.place)  # fmt: skip
    if (never := next((c for c in contract if c.term is T.const(False)), None)) is not None:
        return Proof(claim, Verdict.UNKNOWN, conditions, invariants, contract, reason=f"{NO_SHAPE}: {never.text}",
                     place=never.place)  # fmt: skip
    return Proof(claim, Verdict.PROVED, conditions, invariants, contract)


def tested(claim: Claim, samples: int, bound: float | None, reason: str) -> Proof:
    """Held on `samples` random samples; `reason` says why there is no proof. No `bound` where integers were drawn."""
    return Proof(claim, Verdict.TESTED, bound=bound, samples=samples, reason=reason)


def refuted(claim: Claim, counterexample: Counterexample) -> Proof:
    """Fails on the counterexample, which was replayed."""
    return Proof(claim, Verdict.REFUTED, counterexample=counterexample)


def unknown(claim: Claim, reason: str, place: Place | None = None, cause: str = "") -> Proof:
    """Not decided."""
    return Proof(claim, Verdict.UNKNOWN, reason=reason, place=place, cause=cause)


def failed(claim: Claim, error: TriliftError) -> Proof:
    """Not decided, because of an error: its kind and what are the cause; "out-of-steps" where a budget was spent,
    "timeout" where the outer time limit struck."""
    reason = error.what + (f": {error.why}" if error.why else "")
    cause = CAUSES.get(type(error)) or f"{type(error).__name__}: {error.what}"
    return unknown(claim, reason, error.place, cause)


def interrupted(proof: Proof, guard: Guard) -> Proof:
    """The proof where the outer time limit has struck: what is open then was not decided, whatever else is said of it.
    Never "not provable"."""
    if not guard.struck or proof.verdict is not Verdict.UNKNOWN or proof.cause == CAUSES[OutOfTime]:
        return proof
    late = failed(proof.claim, guard.strike())
    return replace(proof, reason=f"{late.reason}; open then: {proof.reason}", cause=late.cause)

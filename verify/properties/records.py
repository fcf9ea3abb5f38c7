"""The records of what tests of a kernel rest on: tolerances, laws, sizes, calls that the contract excludes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trilift.lift.cases.declaration import Case
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term

from ..model.verdict import Clause, Counterexample, Proof

Dims = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|kernel - formula| <= unit * roundings * magnitude + half a unit of the output's dtype, to first order, for each
    element: the running error analysis of Higham (Accuracy and Stability of Numerical Algorithms, chapter 3).

    `magnitude`: a formula over the output's axes, what the error of one rounding is at most multiplied with; None where
    the output is exact (integers, copies, selections). `roundings`: how many there are on the longest path, a term over
    dims. `unit`: roundoff of the arithmetic (2**-24 of f32). `tf32`: how many products there are whose factors a GPU
    may round to 11 bits. `derivation`: the lines of the comment."""

    magnitude: Formula | None
    roundings: Term
    unit: float
    tf32: int = 0
    derivation: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """A law that the formula of `output` was proved to obey. `kind`: a row of properties.KINDS. `law`: the equation for
    a docstring. `inputs`: the tensors that are changed. `positions`: the dimension of the axis that it is about in each
    tensor that has it, the output among them; empty for a law about no axis. `degree`: of homogeneity, or the factor
    with which a shift comes out again (0: it vanishes), or 1 and -1 of what grows and falls. `value`: what the output
    sums to. `bounds`: between which numbers it lies."""

    kind: str
    output: str
    law: str
    inputs: tuple[str, ...] = ()
    positions: Mapping[str, int] = field(default_factory=dict)
    degree: float | None = None
    value: float | None = None
    bounds: tuple[float, float] = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes worth trying. `values`: by dim, in ascending order; `why`: by dim, what is at them, for a comment ("BLOCK =
    64: one less, all, one more, several blocks"). `where`: a Python expression over dims and scalars that all calls
    meet, "" for none. `first`: whole shapes that are always tried. `largest`: elements of the largest tensor."""

    values: Mapping[str, tuple[int, ...]]
    why: Mapping[str, str]
    where: str = ""
    first: tuple[Dims, ...] = ()
    largest: int = 20_000


@dataclass(frozen=True, slots=True)
class Whole:
    """The integers that an input without limits may have. `bits`: beside the sign, of those drawn beside small ones, 0
    for none; `nonzero`: whether it is a divisor."""

    bits: int = 0
    nonzero: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that the contract excludes. `clause`: the clause that it breaks; `dims`: the sizes; `layouts`: by tensor
    how it lies in memory where that is what breaks the clause ("strided", "transposed", "expanded"); `values`: by index
    tensor a number out of range. `raises`: name of the exception of the host function, "" where it accepts the call.
    `safe`: whether the call may be made (it was run with its accesses watched and none left its tensor)."""

    clause: Clause
    dims: Dims
    layouts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    raises: str = ""
    safe: bool = True


@dataclass(frozen=True, slots=True)
class Output:
    """One output or written input. `formula`: None where nothing is known of it, `why` says why."""

    name: str
    formula: Formula | None
    tolerance: Tolerance | None = None
    proof: Proof | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """All that the tests of one case say. `failures`: inputs on which it is known to be wrong; `unsafe`: whether a call
    may damage the process that makes it; `notes`: what is not tested and why, for the file's docstring. `raises`: what
    the host function raises at every size that was tried, "" where it returns. `whole`: by integer tensor without
    limits, of those that are not drawn from small integers alone."""

    case: Case
    outputs: tuple[Output, ...]
    sizes: Sizes
    properties: tuple[Property, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    failures: tuple[Counterexample, ...] = ()
    unsafe: bool = False
    deterministic: bool = True  # False where atomics add reals in any order
    notes: tuple[str, ...] = ()
    raises: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    whole: Mapping[str, Whole] = field(default_factory=dict)

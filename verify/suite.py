"""What tests of a kernel rest on: formulas with tolerances, sizes and what they must meet, laws that follow from the
formulas, calls that the contract excludes, inputs that failed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lift.case import Case
from lift.errors import CaseError, TriliftError
from lift.spec import Formula
from lift.term import Term

from .verdict import Clause, Counterexample, Proof, Verdict

if TYPE_CHECKING:
    from lift import Lifted
    from lift.ir import Module

    from . import Examined
    from .finding import Finding

Dims = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|kernel - formula| <= unit * roundings * magnitude + half a unit of the output's dtype, to first order, for each
    element: the running error analysis of Higham (Accuracy and Stability of Numerical Algorithms, chapter 3).

    `magnitude`: a formula over the output's axes, what the error of one rounding is at most multiplied with; None where
    the output is exact (integers, copies, selections). `roundings`: how many there are on the longest path, a term over
    dims. `unit`: roundoff of the arithmetic (2**-24 of f32), `tf32`: whether a GPU may round factors of products to 11
    bits. `derivation`: the lines of the comment."""

    magnitude: Formula | None
    roundings: Term
    unit: float
    tf32: bool = False
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
    may damage the process that makes it; `notes`: what is not tested and why, for the file's docstring."""

    case: Case
    outputs: tuple[Output, ...]
    sizes: Sizes
    properties: tuple[Property, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    failures: tuple[Counterexample, ...] = ()
    unsafe: bool = False
    deterministic: bool = True  # False where atomics add reals in any order
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


# ---- the pipeline ----------------------------------------------------------------------------------------------------


def suite(
    case: Case,
    *,
    seed: int = 0,
    timeout: float = 30.0,
    known: Sequence[Counterexample] = (),
    progress: Callable[[str], None] = lambda stage: None,
) -> Suite:
    """What the tests of a case say. `known`: inputs on which it failed before. What cannot be found out is a note, not
    an error; CaseError where the host function cannot be called at all."""
    from .properties import properties
    from .refusals import refusals
    from .sizes import sizes

    notes: list[str] = []
    lifted = _lifted(case, seed, notes, progress)
    found = _examined(case, lifted, seed, timeout, notes, progress)
    proofs = found.proofs if found is not None else ()
    modules = tuple(_modules(lifted))
    progress("tolerances")
    outputs = tuple(_output(name, case, found, proofs, modules) for name in _names(lifted, found))
    failures: Sequence[Counterexample] = [p.counterexample for p in proofs if p.counterexample is not None]
    failures = (*failures, *known)
    sure = [o.formula for o in outputs if o.formula is not None and o.proof is not None and o.proof.verdict in HELD]
    progress("sizes")
    tried = sizes(case, proofs, found.provings if found is not None else (), seed)
    progress("properties")
    laws = properties(case, sure) if sure else ()
    progress("refusals")
    refused = refusals(case, proofs, tried, seed)
    findings = _audited(case, found, lifted, seed, progress)
    wild = any(f.rule == "out-of-bounds" for f in findings) or any(c.why and not c.output for c in failures)
    failures = (*failures, *_seen(case, findings, tried.largest))
    return Suite(case, outputs, tried, laws, refused, failures, wild, not _adds_in_any_order(modules), tuple(notes))


HELD = (Verdict.PROVED, Verdict.TESTED)


def _lifted(case: Case, seed: int, notes: list[str], progress: Callable[[str], None]) -> Lifted | None:
    from lift import lift

    progress("lift")
    try:
        return lift(case, seed)
    except CaseError:
        raise
    except TriliftError as error:
        notes.append(f"no formula was found: {error}")
        return None


def _examined(
    case: Case, lifted: Lifted | None, seed: int, timeout: float, notes: list[str], progress: Callable[[str], None]
) -> Examined | None:
    """Proofs against the reference; where that cannot be read, against the formula that was lifted."""
    from . import examine

    for against in (None, "formula") if case.reference and lifted is not None else (None,):
        try:
            return examine(case, seed=seed, timeout=timeout, lifted=lifted, against=against, progress=progress)
        except CaseError:
            raise
        except TriliftError as error:
            notes.append(f"not proved: {error}")
    return None


def _names(lifted: Lifted | None, found: Examined | None) -> list[str]:
    """All outputs and written inputs."""
    names = [o.name for o in lifted.outputs] if lifted is not None else []
    return list(dict.fromkeys([*names, *(p.claim.output for p in (found.proofs if found is not None else ()))]))


def _output(
    name: str, case: Case, found: Examined | None, proofs: Iterable[Proof], modules: Sequence[Module]
) -> Output:
    """One output with the formula that it was compared with, in its shortest form, and its tolerance."""
    from lift.simplify import simplify

    from .tolerance import tolerance

    proof = next((p for p in proofs if p.claim.output == name), None)
    formula = found.goal.formulas.get(name) if found is not None else None
    if formula is None:
        return Output(name, None, proof=proof, why=proof.reason if proof is not None else "no formula was found")
    formula = simplify(formula).formula  # softmax for its quotient: it can be read, and is stable in float64
    try:
        return Output(name, formula, tolerance(formula, case, modules), proof)
    except TriliftError as error:
        return Output(name, formula, None, proof, f"no tolerance: {error}")


def _modules(lifted: Lifted | None) -> Iterable[Module]:
    """The modules of all launches of the runs, each once."""
    traces = lifted.traces if lifted is not None else ()
    return dict.fromkeys(e.module() for t in traces for e in t.launches)


def _adds_in_any_order(modules: Iterable[Module]) -> bool:
    """Whether an atomic adds reals: the order decides about their rounding."""
    return any(op.attrs.get("atomic_rmw_op") == "fadd" for m in modules for op in m.walk())


def _audited(
    case: Case, found: Examined | None, lifted: Lifted | None, seed: int, progress: Callable[[str], None]
) -> Sequence[Finding]:
    """What an audit finds in a case that is not proved."""
    from .audit import audit

    if found is not None and found.proofs and all(p.verdict is Verdict.PROVED for p in found.proofs):
        return ()
    return audit(case, seed=seed, lifted=lifted, found=found, progress=progress).findings


def _seen(case: Case, findings: Iterable[Finding], largest: int) -> Iterator[Counterexample]:
    """The findings' inputs that are small enough to be run."""
    for f in findings:
        dims = {n: f.example[n] for n in (*case.names, *case.scalars) if n in f.example}
        if set(dims) >= set(case.names) and all(_elements(case, t, dims) <= largest for t in case.tensors):
            seed, config = (int(f.example.get(n, 0)) for n in ("seed", "config"))
            yield Counterexample(dims, seed, config, "", (), math.nan, math.nan, why=f"{f.rule}: {f.message}")


def _elements(case: Case, tensor: str, dims: Dims) -> int:
    return math.prod(case.shape(tensor, dims))

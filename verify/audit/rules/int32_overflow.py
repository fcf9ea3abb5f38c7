"""int32-overflow: an index computed in 32 bits wraps around at sizes that the wrapper lets through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term

from ...runs.large import ELSEWHERE, MEMORY, Escape, Refused, Undecided, bases, elements, escape, nbytes, reaching
from ..finding import Finding, Rule, Step
from ..report_helpers import kind_of, noun

if TYPE_CHECKING:
    from trilift.lift.cases.declaration import Case

    from ...runs.trials import Dims
    from ..evidence import Evidence

INT32_BOUND = 1 << 31
BEYOND = (1.0, 1.01, 1.5)  # a bound need not be reached: a little further
SEARCH = 3  # sizes at which the kernel is run, for each bound


def check(evidence: Evidence) -> Iterator[Finding]:
    """A finding for each operation that is seen to wrap, at the smallest sizes found."""
    seen: set[object] = set()
    for sizes in _sizes(evidence):
        for dims in sizes:
            try:
                found = escape(evidence.case, dims)
            except Refused:
                continue
            except Undecided:
                break
            if found is not None:
                if found.wrap.op.place not in seen:
                    seen.add(found.wrap.op.place)
                    yield _finding(evidence.case, dims, found)
                break


def _sizes(evidence: Evidence) -> Iterator[list[dict[str, int | float]]]:
    """For each bound of the contract the sizes at which it is just exceeded; without a contract, or where it has a
    bound on data, those at which some tensor has more than 2^31 elements. Least memory first."""
    case = evidence.case
    bounds = {c.term for p in evidence.provings for c in p.contract if c.kind == "nowrap" and c.term is not None}
    starts = bases(case, evidence.seed)
    for term in sorted(bounds, key=lambda t: t.id):
        bound, limit = term.args
        yield [d for s in starts for d in _further(case, s, partial(_number, case, bound), _number(case, limit, s))]
    clauses = [c for p in evidence.provings for c in p.contract if c.kind == "nowrap"]
    if not evidence.provings or any(c.term is None for c in clauses):
        with suppress(Refused, Undecided):
            yield [d for s in starts for d in _further(case, s, partial(elements, case), INT32_BOUND + 1)]


def _further(case: Case, start: Dims, measure: Callable[[Dims], float], limit: float) -> list[dict[str, int | float]]:
    """Sizes that reach the limit, and some a little beyond."""
    found = reaching(case, start, measure, limit, MEMORY)[:SEARCH]
    grown = [
        {n: int(v * f) if n in case.names and v != start[n] else v for n, v in d.items()} for f in BEYOND for d in found
    ]
    return sorted(filter(case.holds, grown), key=lambda d: (nbytes(case, d).bit_length(), max(d.values())))


def _number(case: Case, t: Term, dims: Dims) -> float:
    """A term over sizes and the strides of dense tensors; 0 where it is about something else."""
    numbers = dict(dims)
    for name in case.tensors:
        step = 1
        for d, n in reversed(list(enumerate(case.shape(name, dims)))):
            numbers[f"stride({name},{d})"] = step
            step *= n
    got = value(t, numbers)
    return float(got) if got is not None else 0.0


def _finding(case: Case, dims: Dims, e: Escape) -> Finding:
    w = e.wrap
    sign = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.shli": "<<"}[w.op.name]
    written = f" {sign} ".join(map(str, w.operands))
    program = e.program[0] if e.program[1:] == (0, 0) else e.program
    kind = kind_of(e.access)
    what = "accesses the wrong element" if e.why == ELSEWHERE else "leaves its tensor"
    message = f"{written} = {w.exact} does not fit 32 bits and wraps to {w.wrapped}: {noun(e.access)} {what}"
    size = nbytes(case, dims) / 2**30
    return Finding(
        "int32-overflow",
        message,
        w.op.place,
        {**dims, "program": program, "exact": w.exact, "wrapped": w.wrapped},
        "compute the offset in 64 bits: cast one factor with .to(tl.int64) before multiplying, or refuse such sizes",
        _script(message, w.operands, sign, w.exact, dims),
        (
            Step(
                e.launch.place, f"{e.launch.kernel} is launched on a grid of {e.launch.grid}, inputs of {size:.1f} GiB"
            ),
            Step(w.op.place, f"in program {program}: {written} wraps to {w.wrapped}"),
            Step(e.access.place, f"the {kind} is {e.why}" if e.why else f"the {kind} is outside its tensor"),
        ),
    )


def _script(message: str, operands: tuple[int, ...], sign: str, exact: int, dims: Dims) -> str:
    """The arithmetic again, in numpy's 32-bit integers."""
    at = ", ".join(f"{k} = {v}" for k, v in dims.items())
    terms = f" {sign} ".join(f"np.int32({x})" for x in operands)
    return f'''"""At {at}: {message}."""

import sys

import numpy as np

with np.errstate(all="ignore"):
    wrapped = {terms}
print("{f" {sign} ".join(map(str, operands))} is {exact}, and in 32 bits", int(wrapped))
sys.exit(1 if int(wrapped) != {exact} else 0)
'''


RULE = Rule("int32-overflow", "warning", "An index computed in 32 bits wraps around at some allowed size.", check)

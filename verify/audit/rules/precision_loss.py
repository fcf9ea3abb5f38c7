"""precision-loss: the kernel gives away digits that its types could hold: narrow sums, cancellation, constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trilift.lift.errors import Place
from trilift.lift.interpreter.machine import cell
from trilift.lift.runtime.budget import BUDGETS
from trilift.lift.ttir.ir import Op

from ..accumulation import Accumulated, accumulated
from ..cancellation import Cancelled, cancelled
from ..finding import Finding, Rule, Step
from ..numerics import numerics
from ..truncated import Truncated, truncated

if TYPE_CHECKING:
    from ..evidence import Evidence


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings, one for each line."""
    seen: set[Place | None] = set()
    for found in _all(evidence):
        if found.place not in seen:
            seen.add(found.place)
            yield found


def _all(evidence: Evidence) -> Iterator[Finding]:
    yield from map(_of_constant, truncated(numerics(evidence, BUDGETS.audit.precision_steps)))
    yield from map(_of_difference, cancelled(numerics(evidence, BUDGETS.audit.precision_steps)))
    yield from map(_of_sum, accumulated(numerics(evidence, BUDGETS.audit.precision_steps)))


def _finding(found: Accumulated | Cancelled | Truncated, op: Op, message: str, what: str, hint: str) -> Finding:
    sample = found.sample
    element = f"{found.output}{list(found.index)}"
    numbers = {"element": element, "inputs": sample.kind.words, "got": found.got, "expected": found.expected}
    error = abs(found.got - found.expected) if found.got == found.got else abs(found.expected)
    tolerance = error / 2 / max(1.0, abs(found.expected))
    replay = sample.replay(found.output, found.index, found.got, found.expected, tolerance)
    steps = (Step(op.place, what), Step(None, f"{element} is {found.got:.9g}, its value is {found.expected:.9g}"))
    return Finding(RULE.name, message, op.place, {**sample.dims, **numbers}, hint, replay, steps)


SUMS = {"tt.reduce": "a reduction", "tt.dot": "a product of matrices", "tt.atomic_rmw": "an atomic sum"}


def _of_sum(found: Accumulated) -> Finding:
    op, element = found.op, f"{found.output}{list(found.index)}"
    v = op.operands[1] if op.name == "tt.atomic_rmw" else op.results[0]
    what = f"{SUMS.get(op.name, 'a sum')} is accumulated in {cell(v.type)}"
    message = (
        f"{what}: {element} is off by {found.ulps:.0f} units in its last place ({found.wide:.1f} with f32 sums), "
        f"{found.got:.6g} instead of {found.expected:.6g}, on {found.sample.kind.words}"
    )
    return _finding(found, op, message, what, "accumulate in float32, and convert the result once")


def _of_difference(found: Cancelled) -> Finding:
    (a, b), element = found.operands, f"{found.output}{list(found.index)}"
    sign = "+" if found.op.name == "arith.addf" else "-"
    what = f"{a:.9g} {sign} {b:.9g} is {found.result:.6g} after rounding, {found.right:.6g} without"
    message = (
        f"{what}: {element} is {found.got:.6g} instead of {found.expected:.6g}, on {found.sample.kind.words} "
        f"(their last digits change it by {found.noise:.1g})"
    )
    hint = "subtract before squaring or summing: mean((x - mean)^2) in two passes, or as Welford does; sum((x - y)^2)"
    return _finding(found, found.op, message, what, hint)


def _of_constant(found: Truncated) -> Finding:
    element = f"{found.output}{list(found.index)}"
    what = f"{found.value:.9g} stands for {found.words} = {found.meant:.12g}"
    message = f"{what}: {element} is {found.got:.9g} instead of {found.expected:.9g}"
    return _finding(found, found.op, message, what, f"write {found.meant!r}")


RULE = Rule(
    "precision-loss",
    "warning",
    "The result loses digits that its type could hold: a narrow accumulator, cancellation, a truncated constant.",
    check,
)

"""Sums in a narrow type: where a kernel has them, and what they lose against sums in f32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trilift.lift.interpreter.machine import cell
from trilift.lift.replay.rounded import Rounded
from trilift.lift.replay.rounding import FORMATS, NARROW
from trilift.lift.ttir.ir import Op, Value

from ..runs.input_table import ROWS, Inputs
from ..runs.trials import Dims, blocks_of, fits
from .numerics import Numerics, Sample, smallest

STEPS = 320  # of a sum, in blocks
BLOCK = 1024  # of the largest block that is filled so often
SUMMED_ELEMENTS = 400_000  # of the largest input of a run with long sums
ULPS = 8  # units in the last place of the output that are lost at least
TIMES = 8  # as much as sums in f32 lose
THEIRS = 4  # as much as the reference loses

KINDS = ROWS["tenths"], ROWS["unit"]
MOVES = {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "arith.select", "tt.unsplat"}


@dataclass(frozen=True, slots=True)
class Accumulated:
    """An element that differs by `ulps` units from its value, and by `wide` units if `op` sums in f32."""

    sample: Sample
    op: Op
    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    ulps: float
    wide: float


def accumulated(runs: Numerics) -> Iterator[Accumulated]:
    """The worst element at the first shape at which a narrow sum loses much, for each kind of inputs that shows it."""
    for dims in _shapes(runs):
        found = [f for f in (_at(runs, dims, kind) for kind in KINDS) if f is not None]
        if found:
            yield _small(runs, max(found, key=lambda f: f.ulps))
            return


def _shapes(runs: Numerics) -> Iterator[Dims]:
    """A small one, then long sums: one dim after the other, many blocks long. None without a narrow sum."""
    case = runs.evidence.case
    for small in runs.shapes(1):
        sample = runs.sample(small, KINDS[0], runs.evidence.seed)
        if sample is None or not narrow_sums(sample.operations(), bool(sample.case.reference)):
            return
        yield small
        ones = {**small, **dict.fromkeys(case.names, 1)}
        base = ones if fits(case, ones) else small
        many = [STEPS * b for b in blocks_of(sample.trace) if b <= BLOCK]
        for long in sorted({STEPS, *many, *((8 * STEPS,) if many else ())}):
            yield from ({**base, name: long} for name in case.names)


def _at(runs: Numerics, dims: Dims, kind: Inputs) -> Accumulated | None:
    sample = runs.sample(dims, kind, runs.evidence.seed, SUMMED_ELEMENTS)
    sums = [] if sample is None else narrow_sums(sample.operations(), bool(sample.case.reference))
    if sample is None or not sums or (worst := _worst(sample, sums)) is None:
        return None
    output, index, error, wide = worst
    assert sample.rounded is not None and sample.exact is not None
    op = _to_blame(sample, sums, output, index)
    got, expected = float(sample.rounded[output][index]), float(sample.exact[output][index])
    return Accumulated(sample, op, output, index, got, expected, error, wide)


def _small(runs: Numerics, found: Accumulated) -> Accumulated:
    """The same at smaller dims."""

    def again(dims: Dims) -> Accumulated | None:
        other = _at(runs, dims, found.sample.kind)
        return other if other is not None and other.op.place == found.op.place else None

    return smallest(runs.evidence.case, found, again, (1, 2, 3, 4, 64, 512))


def _worst(sample: Sample, sums: Sequence[Op]) -> tuple[str, tuple[int, ...], float, float] | None:
    """(output, index, units lost, units lost with f32 sums) of the element that loses most, if it is much."""
    if sample.exact is None or sample.rounded is None:
        return None
    if (wide := sample.run(Rounded(wide=frozenset(sums)))) is None:
        return None
    found = []
    for output, exact in sample.exact.items():
        dtype = sample.dtype(output)
        if dtype not in FORMATS or not exact.size or output not in sample.rounded:
            continue
        unit = FORMATS[dtype].ulp(np.maximum(np.abs(exact), _typical(exact)))
        lost, least = (np.abs(x[output] - exact) / unit for x in (sample.rounded, wide))
        theirs = _theirs(sample, output, exact, unit)
        with np.errstate(all="ignore"):
            much = (lost > ULPS) & (lost > TIMES * np.maximum(least, 0.5)) & (lost > THEIRS * max(theirs, 0.5))
        if much.any():
            index = np.unravel_index(int(np.argmax(np.where(much, lost, 0))), lost.shape)
            at = tuple(int(i) for i in index)
            found.append((output, at, float(lost[at]), float(least[at])))
    return max(found, key=lambda f: f[2], default=None)


def _typical(exact: np.ndarray) -> float:
    """The size of an ordinary element: errors of smaller ones are measured by it."""
    sizes = np.abs(exact[np.isfinite(exact)])
    return float(np.median(sizes)) if sizes.size else 0.0


def _theirs(sample: Sample, output: str, exact: np.ndarray, unit: np.ndarray) -> float:
    """The most that the reference loses in the case's own types: nothing without one, everything where it cannot be
    told."""
    if not sample.case.reference:
        return 0.0
    theirs = (sample.typed_reference or {}).get(output)
    if theirs is None or theirs.shape != exact.shape:
        return float("inf")
    return float(np.max(np.abs(theirs - exact) / unit))


def _to_blame(sample: Sample, sums: Sequence[Op], output: str, index: tuple[int, ...]) -> Op:
    """The sum that alone in f32 leaves the smallest error."""
    assert sample.exact is not None
    expected = sample.exact[output][index]

    def left(op: Op) -> float:
        values = sample.run(Rounded(wide=frozenset([op])))
        return float("inf") if values is None else float(abs(values[output][index] - expected))

    return min(sums, key=left) if len(sums) > 1 else sums[0]


# ---- in the IR -------------------------------------------------------------------------------------------------------


def narrow_sums(operations: Sequence[Op], widened: bool) -> list[Op]:
    """Reductions, products of matrices, atomics and additions carried from one iteration to the next in a narrow type,
    and, where asked for, narrow additions whose result is then `widened`."""
    users: dict[Value, list[Op]] = {}
    for op in operations:
        for v in op.operands:
            users.setdefault(v, []).append(op)
    carried = {x for op in operations if op.name in ("scf.for", "scf.while") for x in _carried(op, users)}
    return [op for op in operations if _sums(op, users, carried, widened)]


def _sums(op: Op, users: dict[Value, list[Op]], carried: set[Op], widened: bool) -> bool:
    if op.name == "tt.atomic_rmw":
        return op.attrs["atomic_rmw_op"] in ("fadd", "add") and _is_narrow(op.operands[1])
    if len(op.results) != 1 or not _is_narrow(op.results[0]):
        return False
    if op.name == "tt.reduce":
        names = {o.name for r in op.regions for o in r.walk()}
        return "arith.addf" in names
    if op.name == "tt.dot":
        return True
    return op.name == "arith.addf" and (op in carried or (widened and _is_widened(op.results[0], users)))


def _is_narrow(v: Value) -> bool:
    return v.type.is_float and cell(v.type) in NARROW


def _is_widened(v: Value, users: dict[Value, list[Op]]) -> bool:
    """Whether it is made a wider number by what uses it."""
    return any(
        u.name in ("arith.extf", "tt.fp_to_fp") or (u.name in MOVES and any(_is_widened(r, users) for r in u.results))
        for u in users.get(v, ())
    )


def _carried(loop: Op, users: dict[Value, list[Op]]) -> set[Op]:
    """Additions between a carried value and what the next iteration gets for it."""
    body = loop.regions[-1].blocks[0]
    last = body.ops[-1] if body.ops else None
    if last is None or last.name != "scf.yield":
        return set()
    first = len(body.args) - len(last.operands)
    found: set[Op] = set()
    for argument, result in zip(body.args[first:], last.operands, strict=True):
        if _is_narrow(argument):
            found |= {op for op in _from(argument, users) if op.name == "arith.addf"} & _to(result)
    return found


def _from(v: Value, users: dict[Value, list[Op]]) -> set[Op]:
    """The operations that need a value, as long as they stay narrow."""
    found: set[Op] = set()
    todo = [v]
    while todo:
        for op in users.get(todo.pop(), ()):
            if op not in found:
                found.add(op)
                todo += [r for r in op.results if _is_narrow(r)]
    return found


def _to(v: Value) -> set[Op]:
    """The operations that a value needs, as long as they are narrow."""
    found: set[Op] = set()
    todo = [v]
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, Op) and owner not in found:
            found.add(owner)
            todo += [x for x in owner.operands if _is_narrow(x)]
    return found

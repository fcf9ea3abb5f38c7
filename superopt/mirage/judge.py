"""Saved µGraphs judged: does each one compute the program that it was found for?

    right         the same numbers in float64, on random inputs at the sizes of the file
    wrong         other numbers: an index, what is there and what should be
    unsupported   it cannot be executed, with the reason

Beside the verdict, the same question in a finite field with a random root of unity (Mirage, section 5), at the smallest
sizes that the grid and the loops divide. Different entries there do not refute a µGraph that takes roots apart; equal
ones say that it is not the rounding of float64 that hides a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.language.parse import formula
from trilift.lift.terms.domain import Float64
from trilift.lift.terms.spec import Formula
from trilift.verify.fields.field import Field
from trilift.verify.fields.pairs import LOST, Redraw

from ..program.numpy_program import values
from ..program.program import Program, from_formulas
from .execution import run
from .graphs import Graph, graphs, read

__all__ = ["Counterexample", "Graph", "Judgement", "Reference", "graphs", "judge", "read", "reference"]

Verdict = Literal["right", "wrong", "unsupported"]
RELATIVE_ERROR = 1e-8  # of the largest entry: far above the rounding of float64, far below a wrong term
FIELDS = 8  # that may divide by zero before we give up


@dataclass(frozen=True)
class Reference:
    """The expected results of the µGraphs: formulas, the tensors in the order of the inputs of the file, the dims."""

    formulas: tuple[Formula, ...]
    tensors: tuple[str, ...]
    dims: dict[str, int]

    def program(self, dims: Mapping[str, int] | None = None) -> Program:
        """The program at these dims. Raises Unsupported."""
        return from_formulas(self.formulas, {}, dict(dims or self.dims))


def reference(text: str, inputs: Mapping[str, Sequence[str]], dims: Mapping[str, int]) -> Reference:
    """The reference of a formula (lift.language.parse); `inputs`: the dims of each tensor, in the order of the file."""
    shapes: dict[str, Sequence[str | int]] = {x: list(d) for x, d in inputs.items()}
    return Reference((formula(text, shapes, dtype="f16"),), tuple(inputs), dict(dims))


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The entry of an output that differs most; the inputs are those of the seed."""

    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    seed: int

    def __str__(self) -> str:
        at = ", ".join(map(str, self.index))
        return f"{self.output}[{at}] is {self.got:.6g}, should be {self.expected:.6g} (seed {self.seed})"


@dataclass(frozen=True, slots=True)
class Judgement:
    """`number`: of the µGraph in the file. `equal_in_field`: None where the field was not tried, with the reason in
    `field_reason`; `field_dims`: the dims there."""

    number: int
    verdict: Verdict
    reason: str = ""
    counterexample: Counterexample | None = None
    equal_in_field: bool | None = None
    field_reason: str = ""
    field_dims: tuple[tuple[str, int], ...] = ()


def judge(graphs: Sequence[Graph], reference: Reference, seed: int = 0) -> list[Judgement]:
    """One judgement for each µGraph. Raises Unsupported where the program itself cannot be evaluated."""
    rng = np.random.default_rng(seed)
    shapes = _shapes(reference, reference.dims)
    inputs = {x: rng.uniform(-1, 1, shape) for x, shape in shapes.items()}
    wanted = values(reference.program(), inputs, reference.dims)
    if not all(np.isfinite(w).all() for w in wanted.values()):
        raise Unsupported("the program has no finite values on random inputs")
    return [_judged(k, g, reference, inputs, wanted, seed) for k, g in enumerate(graphs)]


def _judged(
    number: int, g: Graph, r: Reference, inputs: dict[str, np.ndarray], wanted: dict[str, np.ndarray], seed: int
) -> Judgement:
    try:
        _same_interface(g, r, wanted)
        got = run(g, [inputs[x] for x in r.tensors])
    except (Unsupported, CaseError) as e:
        return Judgement(number, "unsupported", str(e))
    found = _difference(got, wanted, seed)
    equal, why, dims = _in_field(g, r, seed)
    verdict: Verdict = "wrong" if found else "right"
    return Judgement(number, verdict, str(found or ""), found, equal, why, tuple(dims.items()))


def _same_interface(g: Graph, r: Reference, wanted: Mapping[str, np.ndarray]) -> None:
    given, made = [t.shape for t in g.inputs], [t.shape for t in g.outputs]
    shapes = list(_shapes(r, r.dims).values())
    if given != shapes:
        raise CaseError("the inputs differ", why=f"{given} instead of {shapes}")
    if made != [w.shape for w in wanted.values()]:
        raise CaseError("the outputs differ", why=f"{made} instead of {[w.shape for w in wanted.values()]}")


def _shapes(r: Reference, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    p = r.program(dims)
    of = {x.tensor: tuple(p.sizes[a] for a in x.axes) for x in p.inputs}
    return {x: of[x] for x in r.tensors}


def _difference(got: Sequence[np.ndarray], wanted: Mapping[str, np.ndarray], seed: int) -> Counterexample | None:
    for g, (name, w) in zip(got, wanted.items(), strict=True):
        with np.errstate(all="ignore"):
            gap = np.abs(g - w) / max(float(np.abs(w).max(initial=0)), 1e-300)
        gap = np.where(np.isfinite(gap), gap, np.inf)
        at = np.unravel_index(int(np.argmax(gap)), gap.shape)
        if gap[at] > RELATIVE_ERROR:
            return Counterexample(name, tuple(map(int, at)), float(g[at]), float(w[at]), seed)
    return None


# ---- in the field ----------------------------------------------------------------------------------------------------


class Shapes(Float64):
    """Arrays without entries: only their shapes."""

    name = "shapes"

    def reals(self, x: Any) -> Any:
        return np.broadcast_to(np.float64(0), np.shape(x))

    def apply(self, op: str, *xs: Any) -> Any:
        return np.broadcast_to(np.float64(0), np.broadcast_shapes(*map(np.shape, xs)))

    def fold(self, op: str, x: Any, axis: int) -> Any:
        shape = list(x.shape)
        del shape[axis]
        return np.broadcast_to(np.float64(0), shape)

    def matmul(self, a: Any, b: Any) -> Any:
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"a product of {a.shape} and {b.shape}")
        front = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.broadcast_to(np.float64(0), (*front, a.shape[-2], b.shape[-1]))


def smaller(g: Graph, r: Reference) -> dict[str, int]:
    """Dims halved as long as the grid and the loops divide everything, and nothing of several entries gets one."""
    dims = dict(r.dims)
    for name in sorted(dims, key=lambda d: -dims[d]):
        while dims[name] % 2 == 0 and dims[name] > 2 and _runs(g, r, {**dims, name: dims[name] // 2}):
            dims[name] //= 2
    return dims


def _runs(g: Graph, r: Reference, dims: Mapping[str, int]) -> bool:
    shapes = _shapes(r, dims)
    try:
        run(g, [np.broadcast_to(np.float64(0), s) for s in shapes.values()], Shapes(), exact=False)
    except (CaseError, Unsupported):
        return False
    return True


def _in_field(g: Graph, r: Reference, seed: int) -> tuple[bool | None, str, dict[str, int]]:
    """Whether the entries are equal in a random field, or why it was not tried, and the dims."""
    dims = smaller(g, r)
    rng = np.random.default_rng(seed)
    for _ in range(FIELDS):
        domain = Field(rng)
        inputs = {x: domain.draw(s) for x, s in _shapes(r, dims).items()}
        try:
            wanted = values(r.program(dims), inputs, dims, domain)
            got = run(g, list(inputs.values()), domain, exact=False)
        except Redraw:
            continue
        except Unsupported as e:
            return None, str(e), dims
        return all(_same(x, y) for x, y in zip(got, wanted.values(), strict=True)), "", dims
    return None, "every random field divides by zero", dims


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    """Equal in all residues that both have."""
    both = [(x[k] != LOST) & (y[k] != LOST) for k in "pq"]
    return all(bool((x[k] == y[k])[b].all()) for k, b in zip("pq", both, strict=True)) and bool(
        (both[0] | both[1]).all()
    )

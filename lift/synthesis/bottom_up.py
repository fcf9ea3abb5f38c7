"""Synthesis without decomposition: whole formulas bottom-up, by size, kept if their pointwise values are new.

This is what remains of the synthesiser when top-down cuts are switched off; the benchmark measures what they are worth.
Leaves are the inputs over every assignment of axes of the right size and the spec's constants; operations are those
that the spec uses.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import NotLifted
from ..language.evaluate import evaluate
from ..runtime import budget
from ..runtime.budget import BUDGETS
from ..terms import construct as T
from ..terms.domain import SYMBOLIC, Ids, as_ids
from ..terms.fit import fit
from ..terms.ops import OPS
from ..terms.spec import Formula, Spec
from ..terms.term import COMMUTATIVE, FOLDS, TERMS, Axis, Term
from .output_axes import output_axes


def enumerate_formula(specs: Sequence[Spec], prune: bool = True) -> Formula:
    """The smallest formula with the specs' values. Raises NotLifted where the budget has no more candidates."""
    axes = output_axes([s.dims for s in specs], [s.ids.shape for s in specs])
    search = _Search(specs, axes, prune)
    for size in itertools.count(1):
        for t in search.level(size):
            if search.is_target(t):
                return Formula(specs[0].name, axes, t, specs[0].dtype, specs[0].in_place)
        if search.exhausted:
            raise NotLifted(
                "bottom-up enumeration found no formula", why=f"{search.tried} candidates up to size {size}"
            )
    raise AssertionError("unreachable")


class _Search:
    def __init__(self, specs: Sequence[Spec], axes: tuple[Axis, ...], prune: bool) -> None:
        self.specs, self.axes, self.prune = specs, axes, prune
        self.inputs = [{n: Ids(_named(n, s.inputs[n])) for n in s.inputs} for s in specs]
        self.levels: dict[int, list[Term]] = {}
        self.seen: set[tuple[str, bytes]] = set()
        self.tried, self.exhausted = 0, False
        used = {t.op for s in specs for i in np.unique(s.ids)[:50] for t in TERMS[i].walk()}
        self.ops = sorted(o for o in used if o in OPS)
        self.constants = {t for s in specs for i in np.unique(s.ids)[:50] for t in TERMS[i].walk() if t.is_const}

    def level(self, size: int) -> Iterator[Term]:
        """New formulas of exactly this size."""
        kept = self.levels[size] = []
        for t in self.leaves() if size == 1 else self.compound(size):
            self.tried += 1
            budget.spend("candidate")
            if self.tried > BUDGETS.lift.candidates:
                self.exhausted = True
                return
            if self.is_new(t):
                kept.append(t)
                yield t

    def leaves(self) -> Iterator[Term]:
        names = sorted(self.specs[0].dims)
        sizes = {n: T.size(n) for n in names if isinstance(self.specs[0].dims[n], int)}
        axes = [*self.axes, *(Axis(n.lower(), t) for n, t in sizes.items() if Axis(n.lower(), t) not in self.axes)]
        for name, shape in self.specs[0].inputs.items():
            fitting = [[a for a in axes if self.fits(a, name, d)] for d in range(len(shape))]
            for choice in itertools.product(*fitting):
                yield T.read(name, [T.axis(a) for a in choice])
        yield from sorted((c for c in self.constants if fit([c.attr], [{}])), key=repr)
        for t in sizes.values():
            yield T.recip(t)

    def fits(self, a: Axis, name: str, d: int) -> bool:
        return all(s.dims.get(a.size.attr) == s.inputs[name][d] for s in self.specs) if a.size.op == "size" else False

    def compound(self, size: int) -> Iterator[Term]:
        for op in self.ops:
            if op in COMMUTATIVE or OPS[op].arity == 2:
                for left in range(1, size - 1):
                    for a, b in itertools.product(self.levels[left], self.levels[size - 1 - left]):
                        if op not in COMMUTATIVE or a.id <= b.id:
                            yield T.make(op, a, b)
            elif OPS[op].arity == 1:
                yield from (T.make(op, a) for a in self.levels[size - 1])
        for fold, op in FOLDS.items():
            if op in self.ops:
                yield from (
                    T.fold(fold, a, t) for t in self.levels[size - 1] for a in sorted(t.free, key=lambda a: a.name)
                )

    def is_new(self, t: Term) -> bool:
        free = tuple(sorted(t.free, key=lambda a: a.name))
        key = (repr(free), b"".join(self.value(t, free, k).tobytes() for k in range(len(self.specs))))
        if self.prune and key in self.seen:
            return False
        self.seen.add(key)
        return True

    def value(self, t: Term, axes: tuple[Axis, ...], k: int) -> np.ndarray:
        return as_ids(evaluate(t, axes, self.inputs[k], self.specs[k].dims, SYMBOLIC))

    def is_target(self, t: Term) -> bool:
        if not t.free <= set(self.axes):
            return False
        return all(np.array_equal(self.value(t, self.axes, k), s.ids) for k, s in enumerate(self.specs))


def _named(name: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.array([T.read(name, i).id for i in np.ndindex(*shape)], np.int32).reshape(shape)

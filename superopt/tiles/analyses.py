"""Facts about the statements and values of an e-graph, whatever the tiles are: what each reads, writes and folds,
and where the program may be cut into kernels.

    exposed(t := e) = loads(e)   exposed(a; b) = exposed(a) + (exposed(b) - written(a))   exposed(for n: a) = exposed(a)

Sequences are nested to the right: what comes first in two kernels or more is not a class of its own where it is more
than
one statement. With c = a1; ...; ak; r in some form, *c before r* is the class of a1; ...; ak that is added for it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..program.abstract import Class
from ..program.program import Node
from .saturate import STATEMENTS, Classes, Member
from .tile_bodies import Axes, axes_of, planes
from .tile_program import is_product

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass
class Analyses:
    """`given`: an e-graph. `classes`: it, and what comes first in the ways to cut it; `cuts`: of what the program ends
    with the pairs of what comes first and the rest; no sum goes on in the rest that what comes first has started."""

    given: Classes
    classes: Classes = field(init=False)
    cuts: dict[Class, list[tuple[Class, Class]]] = field(init=False)

    def __post_init__(self) -> None:
        self.p = self.given.program
        self.axes: dict[Class, Axes] = axes_of(self.given)
        self.planes = planes(self.p)
        self.classes = self.given
        started = {c for c, written in self.written.items() if not written & self.exposed[c]}
        self.cuts, first = _cuts(self.given, started)
        self.classes = replace(self.given, members={**self.given.members, **first})
        del self.written, self.exposed  # they were of what is given alone

    @cached_property
    def written(self) -> dict[Class, Names]:
        """The tensors that a statement stores to."""
        return self.classes.fixed(lambda m, known: _own(m, known, lambda m: m.texts[:1]), Names.intersection)

    @cached_property
    def exposed(self) -> dict[Class, Names]:
        """The tensors of which a statement loads what they held before."""
        return self.classes.fixed(self._exposed, Names.intersection)

    @cached_property
    def loaded(self) -> dict[Class, Names]:
        """The tensors that some way to write a statement loads."""
        return self.classes.fixed(lambda m, known: _own(m, known, lambda m: self.loads(m.args[0])), Names.union)

    @cached_property
    def folded(self) -> dict[Class, Names]:
        """The axes that some way to write a statement folds over."""
        return self.classes.fixed(lambda m, known: _own(m, known, lambda m: self.folds(m.args[0])), Names.union)

    def _exposed(self, m: Member, known: dict[Class, Names]) -> Names | None:
        if m.op != "Seq" or any(a not in known for a in m.args):
            return _own(m, known, lambda m: self.loads(m.args[0]))
        return known[m.args[0]] | (known[m.args[1]] - self.written[m.args[0]])

    def loads(self, c: Class) -> Names:
        """The tensors that a value loads."""
        m = self.value(c)
        return frozenset({m.texts[0]}) if m.op == "Var" else NONE.union(*(self.loads(a) for a in m.args))

    def folds(self, c: Class) -> Names:
        """The axes that a value folds over."""
        m = self.value(c)
        own = m.texts[:1] if m.op in ("Sum", "Max") else ()
        return NONE.union(own, *(self.folds(a) for a in m.args))

    def value(self, c: Class) -> Member:
        """The one way to write a value: no rule of loops makes another, but for a step of a sum that goes on."""
        return self.classes.members[c][0]

    def node(self, c: Class) -> Node:
        m = self.value(c)
        return self.classes.node(m, [self.node(a) for a in m.args])

    def product(self, m: Member) -> tuple[Axes, Axes] | None:
        """The axes of the operands, where a sum is a product of matrices."""
        inner = self.value(m.args[0])
        if m.op != "Sum" or inner.op != "Mul":
            return None
        a, b = (self.axes[x] for x in inner.args)
        return (a, b) if is_product(m.texts[0], a, b) else None

    def parallel(self, n: str, body: Class, later: Names = NONE) -> bool:
        """Whether turns of a loop over n have nothing to do with each other, nor leave what is loaded `later` to one
        of them."""
        for t in self.written[body]:
            x = self.p.tensors[t]
            if n not in x.axes and (x.role == "output" or t in self.exposed[body] or t in later):
                return False
        return True

    def free(self, c: Class, later: Names = NONE) -> tuple[str, ...]:
        """The axes that are not looped over of which each block may have a part: nothing folds over them, and turns of
        a loop over one around the whole kernel have nothing to do with each other."""
        some = NONE.union(*(self.p.tensors[t].axes for t in self.written[c])) - self.classes.looped - self.folded[c]
        return tuple(a for a in self.p.sizes if a in some and self.parallel(a, c, later))


def _own(m: Member, known: dict[Class, Names], of_store: Callable[[Member], Iterable[str]]) -> Names | None:
    """The parts of a store, or of another statement; None where that is not known, and for values."""
    if m.op == "Store":
        return frozenset(of_store(m))
    if m.op not in STATEMENTS or any(a not in known for a in m.args):
        return None
    return NONE.union(*(known[a] for a in m.args))


def _cuts(
    classes: Classes, rests: set[Class]
) -> tuple[dict[Class, list[tuple[Class, Class]]], dict[Class, list[Member]]]:  # fmt: skip
    """Of each statement that the program ends with the ways to cut it, and the members of what comes first, arguments
    last. `rests`: what may be left."""
    after: dict[Class, dict[Class, None]] = {}
    order = list[Class]()

    def visit(c: Class) -> dict[Class, None]:
        if c not in after:
            after[c] = {}
            for m in classes.members[c]:
                if m.op == "Seq":
                    after[c] |= {m.args[1]: None, **visit(m.args[1])}
            order.append(c)
        return after[c]

    visit(classes.root)
    cuts: dict[Class, list[tuple[Class, Class]]] = defaultdict(list)
    members: dict[Class, list[Member]] = defaultdict(list)
    for c in reversed(order):
        for r in (r for r in after[c] if r in rests):
            cuts[c].append((first := f"{c} before {r}", r))
            for a, b in (m.args for m in classes.members[c] if m.op == "Seq"):
                members[first] += classes.members[a] if b == r else []
                members[first] += [Member("Seq", (), (a, f"{b} before {r}"))] if r in after[b] else []
    return cuts, members


def count(classes: Classes) -> int:
    """The number of programs in an e-graph that have no loop within a loop over its axis."""
    return _count(classes, classes.root, NONE, {})


def _count(classes: Classes, c: Class, loops: Names, known: dict[tuple[Class, Names], int]) -> int:
    if (c, loops) not in known:
        known[c, loops] = 0
        total = 0
        for m in classes.members[c]:
            if m.op == "Loop":
                if m.texts[0] not in loops:
                    total += _count(classes, m.args[0], loops | {m.texts[0]}, known)
            else:
                total += math.prod(_count(classes, a, loops, known) for a in m.args)
        known[c, loops] = total
    return known[c, loops]

"""Which axes of a formula are independent, and which may be permuted.

every index at dimension d of x is the axis i                 f(x)[i] depends on x[.., i, ..] alone
-----------------------------------------------------------------------------------------------------
... i, or an axis bound by a commutative fold, and no         f(x[.., p, ..])[i] = f(x)[p[i]]
such axis is used but as an index there, or compared
with another such axis
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trilift.lift.language.unfolding import expand
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import FOLDS, Axis, Term

Shapes = Mapping[str, Sequence[Term]]
Slot = tuple[str, int]  # a dimension of an input
COMMUTATIVE = {"sum", "prod", "amax", "amin"}


def canonical(f: Formula) -> Formula:
    """The formula without known names; its axes have names of their own, bound ones are named by their height, so that
    terms that differ in bound names are the same."""
    axes = tuple(Axis(f"{a.name}@{k}", a.size) for k, a in enumerate(f.axes))
    own = {T.axis(a): T.axis(b) for a, b in zip(f.axes, axes, strict=True)}
    return Formula(f.name, axes, exchanged(with_bound("&", expand(f.term)), own.get), f.dtype, f.in_place)


def exchanged(t: Term, value: Callable[[Term], Term | None]) -> Term:
    """The term with `value(s)` for its axes and elements s, where that is not None. The replacements are not replaced
    again, whatever the new term simplifies to."""
    done: dict[int, Term] = {}
    for s in t.walk():
        r = T.rebuild(s, tuple(done[a.id] for a in s.args))
        new = value(r if s.op == "read" else s) if s.op in ("axis", "read") else None
        done[s.id] = r if new is None else new
    return done[t.id]


def with_bound(mark: str, t: Term) -> Term:
    """The term with its bound axes named by height, after a mark that no free axis begins with."""
    done: dict[int, Term] = {}
    height: dict[int, int] = {}
    for s in t.walk():
        args = tuple(done[a.id] for a in s.args)
        height[s.id] = max((height[a.id] for a in s.args), default=0) + (s.op in FOLDS)
        if s.op in FOLDS:  # no fold within has this name, nor any more that of s
            old, over = T.axis(s.attr), Axis(f"{mark}{height[s.id]}", s.attr.size)
            done[s.id] = T.fold(s.op, over, exchanged(args[0], {old: T.axis(over)}.get))
        else:
            done[s.id] = T.rebuild(s, args)
    return done[t.id]


@dataclass(frozen=True, slots=True)
class Orbit:
    """Dimensions of inputs, and of the output, that may be permuted together."""

    slots: tuple[Slot, ...]
    outputs: tuple[int, ...]


def independent(f: Formula, axis: int, shapes: Shapes) -> dict[str, int]:
    """The inputs of which a slice of a canonical formula along one of its axes reads the same slice only, with the
    dimension that this is of."""
    a = f.axes[axis]
    out: dict[str, int] = {}
    for x in sorted(T.reads(f.term)):
        reads = [s for s in f.term.walk() if s.op == "read" and s.attr == x]
        dims = [d for d, n in enumerate(shapes[x]) if n is a.size and all(s.args[d] is T.axis(a) for s in reads)]
        if dims:
            out[x] = dims[0]
    return out


@dataclass
class _Partition:
    """Classes of axes and slots; those with a `spoiled` member cannot be permuted."""

    parent: dict[Axis | Slot, Axis | Slot] = field(default_factory=dict)
    spoiled: set[Axis | Slot] = field(default_factory=set)

    def root(self, x: Axis | Slot) -> Axis | Slot:
        while (up := self.parent.setdefault(x, x)) != x:
            x = up
        return x

    def join(self, x: Axis | Slot, y: Axis | Slot) -> None:
        self.parent[self.root(x)] = self.root(y)


def orbits(f: Formula, shapes: Shapes) -> list[Orbit]:
    """The axes that may be permuted together without changing, or permuting, the values of a canonical formula."""
    t = _apart(f.term, {}, {})
    p = _Partition()
    for a in f.axes:
        p.root(a)
    if t.op == "axis":
        p.spoiled.add(t.attr)
    for s in t.walk():
        _constrain(p, s, shapes)
    bad = {p.root(x) for x in p.spoiled}
    classes: dict[Axis | Slot, list[Axis | Slot]] = {}
    for x in list(p.parent):
        classes.setdefault(p.root(x), []).append(x)
    found = []
    for root, members in classes.items():
        slots = tuple(sorted(x for x in members if not isinstance(x, Axis)))
        if root not in bad and slots:
            found.append(Orbit(slots, tuple(k for k, a in enumerate(f.axes) if a in members)))
    return sorted(found, key=lambda o: (o.outputs, o.slots))


def _constrain(p: _Partition, s: Term, shapes: Shapes) -> None:
    """The requirements of one node on the axes in it."""
    if s.op in FOLDS:
        p.root(s.attr)
        if s.op not in COMMUTATIVE:
            p.spoiled.add(s.attr)
    if s.op == "read":
        for d, (i, n) in enumerate(zip(s.args, shapes[s.attr], strict=True)):
            if i.op == "axis" and i.attr.size is n:
                p.join(i.attr, (s.attr, d))
            else:
                p.spoiled |= {(s.attr, d)} | ({i.attr} if i.op == "axis" else set())
                p.root((s.attr, d))
        return
    axes = [i.attr for i in s.args if i.op == "axis"]
    if s.op in ("eq", "ne") and len(axes) == 2 and axes[0].size is axes[1].size:
        p.join(*axes)
        return
    p.spoiled.update(axes)
    for a in axes:
        p.root(a)


def _apart(t: Term, names: dict[Axis, Axis], done: dict[tuple[int, frozenset[tuple[Axis, Axis]]], Term]) -> Term:
    """The term with an axis of its own for every fold."""
    key = (t.id, frozenset((a, b) for a, b in names.items() if a in t.free))
    if key not in done:
        done[key] = _apart_node(t, names, done, len(done))
    return done[key]


def _apart_node(
    t: Term, names: dict[Axis, Axis], done: dict[tuple[int, frozenset[tuple[Axis, Axis]]], Term], number: int
) -> Term:
    if t.op == "axis":
        return T.axis(names.get(t.attr, t.attr))
    if t.op in FOLDS:
        over = Axis(f"%{number}.{len(names)}.{t.id}", t.attr.size)
        return T.fold(t.op, over, _apart(t.args[0], {**names, t.attr: over}, done))
    return T.node(t.op, tuple(_apart(a, names, done) for a in t.args), t.attr, t.type) if t.args else t

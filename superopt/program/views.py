"""Programs whose inputs and outputs are views of tensors: heads of a projection, the old and the new part of a cache.

    wq[n, D h + d]      wq.unflatten(1, (H, D))               axes n, h, d
    keys[h, P + j, d]   keys.narrow(1, P, M)                  axes h, j, d
    x[j, n]             x again, at another axis than x[m, n]

Uses of parts of an axis are taken apart first (superopt.program.splitting). An axis then gets the name of
another of its size wherever it can, so that what two outputs have in common is one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import Unsupported
from trilift.lift.language.python_source import python_source
from trilift.lift.pytorch.read import read_case
from trilift.lift.simplify.saturation import simplify
from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term

from .common_axes import Names
from .program import Input, Node, Part, Place, Program, Reader, extent, node, quotient
from .splitting import NONE, ONE, Piece, ordered, pieces

Span = tuple[Term, tuple[Axis, ...]]  # of a dimension: the first entry, and axes that count from there
OPTIONS = 64  # names tried for the axes of an output


def viewed(
    formulas: Sequence[Formula], dtypes: Mapping[str, str], shapes: Mapping[str, Sequence[Term]], sizes: dict[str, int],
    hoist: bool = True,
) -> Program:  # fmt: skip
    """The program of formulas over the same inputs; `shapes`: of the tensors, as terms over dims; `sizes` of the dims;
    `hoist`: (e / z) @ v as (e @ v) / z. An output in parts is as many outputs. Of an input that is written in place,
    what keeps its value is not an output. Raises Unsupported where an element is read at no digits of axes, or where
    one is read that is overwritten."""
    found = _Import(dict(dtypes), {x: tuple(map(I.normal, s)) for x, s in shapes.items()})
    parts = [(f, [p for p in pieces(f, hoist) if not _kept(f, p)]) for f in formulas]
    every = [(f, k, len(ps), p) for f, ps in parts for k, p in enumerate(ps)]
    for f, k, among, p in sorted(every, key=lambda row: -len(list(row[3].term.walk()))):
        found.add(f, k, among, p)
    return found.program([(f.name, k) for f, k, _, _ in every], sizes)


def of_case(case: Case, sizes: dict[str, int], hoist: bool = True) -> Program:
    """The program of a case's reference, or else of its function, in PyTorch. With `hoist`, of its formulas as they are
    read and as they are simplified those that have fewer values together. Raises TriliftError."""
    read = read_case(case, case.reference.fn or case.fn).formulas
    dtypes, shapes = {n: s.dtype for n, s in case.tensors.items()}, {n: case.dims(n) for n in case.tensors}
    forms = [read, tuple(simplify(f).formula for f in read)] if hoist else [read]
    return min((viewed(fs, dtypes, shapes, sizes, hoist) for fs in forms), key=lambda p: len(p.nodes))


def _kept(f: Formula, p: Piece) -> bool:
    """Whether a piece of an input that is written in place is what it was."""
    return f.in_place is not None and p.term is T.read(f.in_place, p.index, p.term.type)


# ---- views -----------------------------------------------------------------------------------------------------------


def spans(index: Sequence[Term]) -> tuple[Span, ...] | None:
    """The index of a tensor, by dimension; None where it is not one."""
    found = [_span(i) for i in index]
    axes = [a for s in found if s is not None for a in s[1]]
    return tuple(s for s in found if s is not None) if None not in found and len({*axes}) == len(axes) else None


def _span(i: Term) -> Span | None:
    """start + (.. (a A + b) B + c ..): axes as digits, the highest first."""
    if T.reads(i):
        return None
    i = I.normal(i)
    start, steps = NONE, {}
    for part in i.args if i.op == "add" else (i,):
        factors = part.args if part.op == "mul" else (part,)
        over = [x for x in factors if x.free]
        if not over:
            start = I.normal(start + part)
        elif len(over) > 1 or over[0].op != "axis" or over[0].attr in steps:
            return None
        else:
            steps[over[0].attr] = I.normal(T.mul(1, *(x for x in factors if x is not over[0])))
    digits: list[Axis] = []
    step = ONE
    while steps:
        a = next((a for a, s in steps.items() if s is step), None)
        if a is None:
            return None
        del steps[a]
        digits.insert(0, a)
        step = I.normal(step * a.size)
    return start, tuple(digits)


def length(s: Span) -> Term:
    """How many entries it has."""
    return I.normal(T.mul(1, *(a.size for a in s[1])))


def apart(one: Sequence[Span], other: Sequence[Span]) -> bool:
    """Whether it is certain that two parts of a tensor share no element."""
    before = lambda s, t: I.nonnegative(t[0] - s[0] - length(s))  # noqa: E731
    return any(before(s, t) or before(t, s) for s, t in zip(one, other, strict=True))


def whole(own: Sequence[Span], shape: Sequence[Term]) -> bool:
    """Whether the axes are the dimensions of the tensor."""
    return all(s[0] is NONE and len(s[1]) == 1 and length(s) is n for s, n in zip(own, shape, strict=True))


@dataclass(frozen=True, slots=True)
class View:
    """A tensor seen with more axes or fewer elements: by dimension the first entry, and the sizes of digits."""

    tensor: str
    starts: tuple[Term, ...]
    sizes: tuple[tuple[Term, ...], ...]

    def parts(self, axes: Sequence[str]) -> tuple[Part, ...]:
        """With these axes."""
        names = iter(axes)
        return tuple(Part(s, tuple(islice(names, len(n)))) for s, n in zip(self.starts, self.sizes, strict=True))

    def spans(self) -> tuple[Span, ...]:
        """With axes that have no names."""
        return tuple((s, tuple(Axis("", n) for n in ns)) for s, ns in zip(self.starts, self.sizes, strict=True))


def checked(program: Program, extents: Mapping[str, Term]) -> None:
    """Raises Unsupported unless it is certain, for all sizes, that views lie in their tensors, that no two outputs
    share an element, that no input has one that an output in place overwrites, and that what is made is whole."""
    if not program.places and not any(x.parts for x in program.inputs):
        return
    if unknown := [a for a in program.sizes if a not in extents]:
        raise Unsupported(f"the size of the axis {unknown[0]} is missing, in a program on parts of tensors")
    for x in program.views:
        if x.parts and not _inside(x, extents):
            raise Unsupported(f"could not prove for all sizes that {x.tensor} has every element of its part")
    taken = {*(x.tensor for x in program.inputs), *(out for out, *_ in program.outputs)}
    for k, (out, p) in enumerate(program.places.items()):
        own = _spans(p.parts, extents)
        others = [q for q in [*program.places.values()][k + 1 :] if q.tensor == p.tensor]
        if any((q.shape, q.in_place) != (p.shape, p.in_place) for q in others):
            raise Unsupported(f"two outputs are parts of {p.tensor} and disagree on its shape")
        if any(not apart(own, _spans(q.parts, extents)) for q in others):
            raise Unsupported(f"two outputs may share an element of {p.tensor}")
        if p.in_place:
            read = [x for x in program.read if x.tensor == p.tensor]
            if any(x.shape != p.shape or not apart(_spans(x.parts, extents), own) for x in read):
                raise Unsupported(f"{p.tensor} is written in place, but its overwritten elements are read")
        elif p.tensor in taken - {out}:
            raise Unsupported(f"two tensors are called {p.tensor}")
        elif [q.tensor for q in program.places.values()].count(p.tensor) == 1 and not _all(own, p.shape):
            raise Unsupported(f"the rest of {p.tensor} is never written")


def _all(own: Sequence[Span], shape: Sequence[Term]) -> bool:
    """Whether a part has every element of the tensor."""
    return all(s[0] is NONE and length(s) is I.normal(n) for s, n in zip(own, shape, strict=True))


def _spans(parts: Sequence[Part], extents: Mapping[str, Term]) -> tuple[Span, ...]:
    return tuple((I.normal(p.start), tuple(Axis(a, I.normal(extents[a])) for a in p.axes)) for p in parts)


def _inside(x: Input | Place, extents: Mapping[str, Term]) -> bool:
    """Whether the tensor has all elements of the part."""
    every = zip(_spans(x.parts, extents), x.shape, strict=True)
    return all(I.nonnegative(s[0]) and I.nonnegative(n - s[0] - length(s)) for s, n in every)


def expression(
    tensor: str, parts: Sequence[Part], shape: Sequence[Term], extents: Mapping[str, Term],
    text: Callable[[Term], str] = python_source,
) -> str:  # fmt: skip
    """The view in PyTorch, which shares the tensor's memory: keys.narrow(1, P, M), wq.unflatten(1, (H, D)). `text`: of
    a size, a term over dims."""
    out = tensor
    for d, (part, size) in reversed(list(enumerate(zip(parts, shape, strict=True)))):
        sizes = [extents[a] for a in part.axes]
        count = I.normal(T.mul(1, *sizes))
        if part.axes and count is not I.normal(size):
            out += f".narrow({d}, {text(part.start)}, {text(count)})"
        if not part.axes:
            out += f".select({d}, {text(part.start)})"
        elif len(sizes) > 1:
            out += f".unflatten({d}, ({', '.join(map(text, sizes))}))"
    return out


# ---- programs --------------------------------------------------------------------------------------------------------


@dataclass
class _Import:
    """Formulas read so far. `views`: of each stand-in for a tensor that the reader reads at axes."""

    dtypes: dict[str, str]
    shapes: dict[str, tuple[Term, ...]]
    views: dict[str, View] = field(default_factory=dict)
    outputs: dict[tuple[str, int], tuple[Formula, int, Piece, Node]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = _Reader({*self.shapes}, views=self.views)
        self.names = Names({*self.shapes})

    def add(self, f: Formula, k: int, among: int, p: Piece) -> None:
        """One piece of a formula, with those names for its axes with which it has the fewest values of its own."""
        term = T.rewrite(p.term, self._at_axes)
        known = {n for *_, v in self.outputs.values() for n in v.walk()}
        best: tuple[int, _Reader, dict[Axis, Axis], Node] | None = None
        for names in islice(self.names.options(p.axes), OPTIONS):
            reader, own = self.reader.copy(), self.names.named(term, names)
            for s in ordered(own):  # inputs are named in this order
                if s.op == "read":
                    reader.value(s)
            value = reader.value(own)
            more = sum(n not in known for n in value.walk())
            if best is None or more < best[0]:
                best = more, reader, names, value
        assert best is not None
        _, self.reader, names, value = best
        at = {a: T.axis(b) for a, b in names.items()}
        named = Piece(tuple(names[a] for a in p.axes), tuple(T.substitute(i, at) for i in p.index), term)
        if value.axes != {a.name for a in named.axes}:
            raise Unsupported("an output that lacks one of its axes")
        self.outputs[f.name, k] = f, among, named, value

    def _at_axes(self, t: Term) -> Term | None:
        """An element of a tensor as one of a view, at axes."""
        if t.op != "read":
            return None
        own = spans(t.args)
        if own is None:
            raise Unsupported(f"{_element(t)} is not indexed by axes or their digits")
        for s, n in zip(own, self.shapes[t.attr], strict=True):
            if not (I.nonnegative(s[0]) and I.nonnegative(n - s[0] - length(s))):
                raise Unsupported(f"whether the tensor {t.attr} has {_element(t)} is not certain for all sizes")
        view = View(t.attr, tuple(s for s, _ in own), tuple(tuple(I.normal(a.size) for a in ds) for _, ds in own))
        name = next((n for n, v in self.views.items() if v == view), f"{t.attr}#{len(self.views)}")
        self.views[name] = view
        return T.read(name, [T.axis(a) for _, ds in own for a in ds], t.type)

    def program(self, order: Sequence[tuple[str, int]], sizes: dict[str, int]) -> Program:
        """The outputs in this order."""
        inputs = tuple(self._input(view, axes, n) for (view, axes), n in self.reader.inputs.items())
        computed = tuple(
            Input(n, n, tuple(sorted(a.name for a in t.free)), "f32", t) for t, n in self.reader.computed.items()
        )
        taken = {*self.shapes, *(x.name for x in (*inputs, *computed))}
        outputs, places = [], {}
        for key in order:
            f, among, p, value = self.outputs[key]
            names = (f.name if k < 0 else f"{f.name}_{k}" for k in count(-1 if among == 1 else 0))
            name = next(n for n in names if n not in taken)
            taken.add(name)
            outputs.append((name, tuple(a.name for a in p.axes), value, f.dtype))
            own = spans(p.index)
            if own is None:
                raise Unsupported(f"{f.name} is not stored by axes or their digits")
            shape = tuple(I.normal(a.size) for a in f.axes)
            if f.in_place is not None or among > 1 or not whole(own, shape):
                places[name] = self._place(f, shape, own)
        numbers = {a: extent(size, sizes) for a, size in self.reader.axes.items()}
        return Program(inputs + computed, tuple(outputs), numbers, dict(self.reader.axes), places)

    def _input(self, name: str, axes: tuple[str, ...], own: str) -> Input:
        view = self.views[name]
        dtype = self.dtypes.get(view.tensor, "f16")
        shape = self.shapes[view.tensor]
        if whole(view.spans(), shape):
            return Input(own, view.tensor, axes, dtype)
        return Input(own, view.tensor, axes, dtype, parts=view.parts(axes), shape=shape)

    def _place(self, f: Formula, shape: tuple[Term, ...], own: tuple[Span, ...]) -> Place:
        parts = tuple(Part(s, tuple(a.name for a in axes)) for s, axes in own)
        for v, _ in self.reader.inputs if f.in_place is not None else ():
            if self.views[v].tensor == f.in_place and not apart(self.views[v].spans(), own):
                raise Unsupported(f"{f.in_place} is written in place, but its overwritten elements are read")
        return Place(f.in_place or f.name, shape, parts, f.in_place is not None)


@dataclass
class _Reader(Reader):
    """Terms over stand-ins to values. Inputs are named after the tensors; axes have their names already."""

    views: dict[str, View] = field(default_factory=dict)

    def _renamed(self, t: Term) -> tuple[Axis, Term]:
        return t.attr, t.args[0]

    def _name(self, tensor: str) -> str:
        return super()._name(self.views[tensor].tensor)

    def _quotient(self, above: Sequence[Node], below: Sequence[Node]) -> Node:
        return grouped(above, below)

    def copy(self) -> _Reader:
        """One that may be given up."""
        return _Reader(
            self.tensors, dict(self.inputs), dict(self.computed), dict(self.axes), dict(self.done), self.views
        )


def grouped(above: Sequence[Node], below: Sequence[Node]) -> Node:
    """The product of some values over that of others, those of the same axes first and those of fewer axes with those
    of more: an operation is on as few elements as can be, and what a sum is over is a product of matrices."""
    groups: dict[frozenset[str], tuple[list[Node], list[Node]]] = {}
    for v in above:
        groups.setdefault(v.axes, ([], []))[0].append(v)
    last: list[Node] = []
    for v in below:
        home = min((a for a in groups if v.axes <= a), key=_few, default=None)
        (last if home is None else groups[home][1]).append(v)
    parts: list[Node] = []
    for axes in sorted(groups, key=_few):
        value = _halved(*groups[axes])
        wider = min((a for a in groups if axes < a), key=_few, default=None)
        (parts if wider is None else groups[wider][0]).append(value)
    return quotient(parts, last)


def _few(axes: frozenset[str]) -> tuple[int, list[str]]:
    return len(axes), sorted(axes)


def _halved(above: list[Node], below: list[Node]) -> Node:
    """The quotient, as the square of one where it is."""
    counts = Counter(above), Counter(below)
    if any(k % 2 for c in counts for k in c.values()):
        return quotient(above, below)
    top, bottom = ([v for v, k in c.items() for _ in range(k // 2)] for c in counts)
    return node("sqr", _halved(top, bottom))


def _element(t: Term) -> str:
    """x[i, P + j], for messages."""
    from trilift.lift.printers.text import index_form

    _, _, said = index_form(Formula("out", (), t, "f32"), {}).partition(" = ")
    return said

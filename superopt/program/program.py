"""Tensor programs over named axes: what the search starts from.

    v ::= input(x) | add(v, v) | mul(v, v) | div(v, v) | exp(v) | sqr(v) | sqrt(v) | scale[c](v) | sum[k](v)
        | map[f](v...)

A value has a set of axes and broadcasts by name. The first eight and `sum` are the operators of Lax programs (Mirage,
section 5: multilinear, division, one exponential on each path); `map` is any other function of elements, which the
search never looks into (a keyed hash in the field tests). `scale` multiplies by a number of the program, 1/K or eps.

A formula becomes a program when every input is read at distinct axes; known names over an axis (softmax, mean) are
written out. exp(x) / sum(exp(x)) stands for all stabilised forms: they are equal over the reals, and what is emitted is
stabilised again. A value that depends on indices alone, a causal mask or a bias of positions, is an input that is
computed and not read; to add it is one function of elements:

    where(c, x, -inf) = x + where(c, 0, -inf)        where(c, x, y) = where(c, 1, 0) x + where(c, 0, 1) y"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import count

from trilift.lift.errors import Unsupported
from trilift.lift.language.definitions import DEFINITIONS
from trilift.lift.language.infix import operands
from trilift.lift.language.unfolding import unfold
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term

CONDITIONS = ("lt", "le", "eq", "ne", "and", "or", "not")
FOLDS = ("sum", "max")
LAX = ("input", "add", "mul", "div", "exp", "sqr", "sqrt", "scale", "sum")


@dataclass(frozen=True, slots=True)
class Node:
    """One value. `attr`: the name of an input, the axis of a sum, the number of a scale, the template of a map (a term
    over the scalars a0, a1 ... for the arguments). `axes`: those that it has."""

    op: str
    args: tuple[Node, ...]
    attr: str | Term | None
    axes: frozenset[str]

    def walk(self) -> Iterator[Node]:
        """Every distinct value once, arguments first."""
        seen: dict[Node, None] = {}
        _walk(self, seen)
        yield from seen

    def __repr__(self) -> str:
        if self.op == "input":
            return str(self.attr)
        head = self.op if self.attr is None else f"{self.op}[{self.attr}]"
        return f"{head}({', '.join(map(repr, self.args))})"


def _walk(n: Node, seen: dict[Node, None]) -> None:
    if n not in seen:
        for a in n.args:
            _walk(a, seen)
        seen[n] = None


def node(op: str, *args: Node, attr: str | Term | None = None) -> Node:
    """An operation with the axes that follow from its arguments'."""
    axes = frozenset[str]().union(*(a.axes for a in args))
    return Node(op, args, attr, axes - {attr} if op in FOLDS else axes)


def source(name: str, axes: Sequence[str]) -> Node:
    return Node("input", (), name, frozenset(axes))


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a dimension that is read or written: from `start`, as many entries as the axes have together, which
    are the digits of the entry's number, the first axis the highest; without axes the one entry at `start`. As PyTorch:
    narrow(dim, start, product of sizes).unflatten(dim, sizes)."""

    start: Term
    axes: tuple[str, ...]

    def index(self, axes: Mapping[str, T.Axis]) -> Term:
        """The entry at the axes."""
        number: Term = T.const(0)
        for a in self.axes:
            number = T.add(T.mul(number, axes[a].size), T.axis(axes[a]))
        return T.add(self.start, number)


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that the program reads: its axes in the order of its dimensions, outermost first. x @ x.T has two
    inputs, both of the tensor x. With `element` it is not a tensor in memory: a term over the axes says what it holds.
    `parts`: one for each dimension of the tensor, where the axes are not its dimensions, and then `shape`, its sizes as
    terms over dims."""

    name: str
    tensor: str
    axes: tuple[str, ...]
    dtype: str = "f16"
    element: Term | None = None
    parts: tuple[Part, ...] = ()
    shape: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where an output is that is not a tensor of its axes: in which tensor, of what shape, in what part of each of its
    dimensions. `in_place`: the tensor is an input; no other input is of elements that the output overwrites."""

    tensor: str
    shape: tuple[Term, ...]
    parts: tuple[Part, ...]
    in_place: bool = False


@dataclass(frozen=True)
class Program:
    """`sizes`: of each axis at which costs are counted; `extents`: the same as terms over dims, where they are known;
    `outputs`: name, axes in order, value, dtype; `places`: of outputs by name."""

    inputs: tuple[Input, ...]
    outputs: tuple[tuple[str, tuple[str, ...], Node, str], ...]
    sizes: dict[str, int] = field(hash=False)
    extents: dict[str, Term] = field(hash=False, default_factory=dict)
    places: dict[str, Place] = field(hash=False, default_factory=dict)

    @cached_property
    def read(self) -> tuple[Input, ...]:
        """The inputs that are in memory."""
        return tuple(x for x in self.inputs if x.element is None)

    def view(self, x: Input) -> str:
        """The tensor, and what of it the input is: the same for inputs that differ in the names of their axes alone."""
        parts = [[str(part.start), *(str(self.extents[a]) for a in part.axes)] for part in x.parts]
        return f"{x.tensor} {parts}" if parts else x.tensor

    @cached_property
    def views(self) -> tuple[Input | Place, ...]:
        """The parts of tensors in memory that are read and written."""
        return (*self.read, *self.places.values())

    @cached_property
    def reduced(self) -> tuple[str, ...]:
        """Axes that some sum is over."""
        sums = {str(n.attr) for _, _, v, _ in self.outputs for n in v.walk() if n.op == "sum"}
        return tuple(a for a in self.sizes if a in sums)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(dict.fromkeys(n for _, _, v, _ in self.outputs for n in v.walk()))


def from_formulas(formulas: Sequence[Formula], dtypes: dict[str, str], sizes: dict[str, int]) -> Program:
    """The program of formulas over the same inputs; `sizes` of the dims. Raises Unsupported where an input is not read
    at distinct axes, or a fold is not a sum."""
    reader = Reader({str(s.attr) for f in formulas for s in f.term.walk() if s.op == "read"})
    outputs = []
    for f in formulas:
        value = reader.value(f.term)
        if value.axes != {a.name for a in f.axes}:
            raise Unsupported("an output that lacks one of its axes")
        outputs.append((f.name, tuple(a.name for a in f.axes), value, f.dtype))
    inputs = tuple(Input(n, x, axes, dtypes.get(x, "f16")) for (x, axes), n in reader.inputs.items())
    inputs += tuple(Input(n, n, _axes(t), "f32", t) for t, n in reader.computed.items())
    numbers = {name: extent(size, sizes) for name, size in reader.axes.items()}
    return Program(inputs, tuple(outputs), numbers, dict(reader.axes))


def extent(size: Term, sizes: dict[str, int]) -> int:
    """The number of a size of dims. Raises Unsupported."""
    t = T.rewrite(size, lambda s: T.const(sizes[s.attr]) if s.op == "size" and s.attr in sizes else None)
    if not t.is_const:
        raise Unsupported(f"the size {size} is not a number")
    return int(t.attr)


@dataclass
class Reader:
    """Terms to values. `tensors`: those that are read; `inputs`: a name for each and the axes that it is read at,
    `computed`: one for each term over indices alone, `axes`: the size of each axis, in the order of appearance."""

    tensors: set[str]
    inputs: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    computed: dict[Term, str] = field(default_factory=dict)
    axes: dict[str, Term] = field(default_factory=dict)
    done: dict[int, Node] = field(default_factory=dict)

    def value(self, t: Term) -> Node:
        if t.id not in self.done:
            self.done[t.id] = self._value(t)
        return self.done[t.id]

    def _value(self, t: Term) -> Node:
        if t.op == "read":
            return self._read(t)
        if not _has_reads(t) and t.free:
            return self._computed(t)
        if t.op == "where" and not _has_reads(t.args[0]):
            return self._choice(*t.args)
        if t.op in DEFINITIONS and (DEFINITIONS[t.op].on_axis or not _has_reads(t)):
            return self.value(unfold(t))
        if t.op == "sum":
            over, body = self._renamed(t)
            self._axis(over)
            return _sum(over.name, self.value(body))
        if t.op in ("amax", "amin"):
            over, body = self._renamed(t)
            self._axis(over)
            return _largest(over.name, self.value(body), t.op == "amin")
        if t.op in T.FOLDS or (t.op in T.NAMED and DEFINITIONS[t.op].on_axis):
            raise Unsupported(f"the search does not support {t.op} over an axis")
        if t.op in ("add", "mul", "recip"):
            return self._add(t) if t.op == "add" else self._product(t)
        if t.op in ("exp", "sqrt"):
            return node(t.op, self.value(t.args[0]))
        return self._map(t)

    def _read(self, t: Term) -> Node:
        if any(a.op != "axis" for a in t.args) or len(set(t.args)) < len(t.args):
            raise Unsupported(f"{t} is not indexed by axes")
        for a in t.args:
            self._axis(a.attr)
        axes = tuple(a.attr.name for a in t.args)
        if (t.attr, axes) not in self.inputs:
            self.inputs[t.attr, axes] = self._name(t.attr)
        return source(self.inputs[t.attr, axes], axes)

    def _name(self, tensor: str) -> str:
        """For one more input of the tensor."""
        taken = {*self.inputs.values(), *(self.tensors - {tensor})}
        return next(n for n in (f"{tensor}_{k}" if k else tensor for k in count()) if n not in taken)

    def _computed(self, t: Term) -> Node:
        """The terms that depend on indices alone."""
        if t.type == T.BOOL or any(s.op in T.FOLDS or s.op == "undef" for s in t.walk()):
            raise Unsupported(f"the search does not support {t.op} of indices")
        for a in _axes(t):
            self._axis(next(x for x in t.free if x.name == a))
        if t not in self.computed:
            names = (f"positions_{k}" if k else "positions" for k in count(len(self.computed)))
            self.computed[t] = next(n for n in names if n not in self.tensors)
        return source(self.computed[t], _axes(t))

    def _choice(self, c: Term, x: Term, y: Term) -> Node:
        """where(c, x, y) for a condition on indices."""
        for v, lost, mask in ((x, y, T.where(c, 0.0, -math.inf)), (y, x, T.where(c, -math.inf, 0.0))):
            if lost.is_const and lost.attr == -math.inf:
                return self._placed(self.value(v), [self.value(mask)])
        parts = [(x, T.where(c, 1.0, 0.0)), (y, T.where(c, 0.0, 1.0))]
        kept = [node("mul", self.value(v), self.value(mask)) for v, mask in parts if _has_reads(v)]
        kept += [self.value(T.where(c, v, 0.0) if v is x else T.where(c, 0.0, v)) for v in (x, y) if _matters(v)]
        return balanced("add", kept)

    def _placed(self, x: Node, positions: Sequence[Node]) -> Node:
        """x + p, in one piece: exp(x + p) is never exp(x) exp(p), of which the product may be 0 times infinity."""
        for p in positions:
            x = self._mapped(T.add(T.scalar("a0"), T.scalar("a1")), [x, p])
        return x

    def _renamed(self, t: Term) -> tuple[T.Axis, Term]:
        """A fold with the name that its axis has where the same tensor was read before."""
        over, body = t.attr, t.args[0]
        taken = {a.name for a in body.free} - {over.name}
        for r in (s for s in body.walk() if s.op == "read"):
            for x, axes in self.inputs:
                for a, name in zip(r.args, axes, strict=False) if x == r.attr else ():
                    fits = a.op == "axis" and a.attr == over and self.axes.get(name) is over.size
                    if fits and name != over.name and name not in taken:
                        new = T.Axis(name, over.size)
                        return new, T.substitute(body, {over: T.axis(new)})
        return over, body

    def _axis(self, a: T.Axis) -> None:
        if self.axes.setdefault(a.name, a.size) is not a.size:
            raise Unsupported(f"two axes have the name {a.name}")

    def _add(self, t: Term) -> Node:
        numbers, rest = _split(operands(t))
        placed = [self.value(a) for a in rest if not _has_reads(a)]
        out = self._placed(balanced("add", [self.value(a) for a in rest if _has_reads(a)]), placed)
        return self._mapped(T.add(T.scalar("a0"), *numbers), [out]) if numbers else out

    def _product(self, t: Term) -> Node:
        """c * (a * b ...) / (d * e ...)"""
        numbers, rest = _split(operands(t) if t.op == "mul" else (t,))
        above = [a for a in rest if a.op != "recip"]
        below = [b for a in rest if a.op == "recip" for b in (operands(a.args[0]) if a.args[0].op == "mul" else a.args)]
        lower, divisors = _split(below)
        if not above and not divisors:
            raise Unsupported(f"{t} reads no tensor")
        out = self._quotient([self.value(a) for a in above], [self.value(b) for b in divisors])
        c = T.div(T.mul(*numbers) if numbers else T.const(1), T.mul(*lower) if lower else T.const(1))
        if out.op == "scale":
            assert isinstance(out.attr, Term)
            c, out = T.mul(c, out.attr), out.args[0]
        return out if c is T.const(1) else node("scale", out, attr=c)

    def _quotient(self, above: Sequence[Node], below: Sequence[Node]) -> Node:
        """The product of some values over that of others."""
        return quotient(above, below)

    def _map(self, t: Term) -> Node:
        """A function of elements: its arguments that read tensors become holes, below conditions too."""
        if t.op in ("pick", "axis", "undef") or t.type != T.REAL:
            raise Unsupported(f"the search does not support {t.op}")
        holes = list(dict.fromkeys(h for a in operands(t) for h in self._holes(a)))
        if not holes:
            raise Unsupported(f"{t} reads no tensor")
        named = {a: T.scalar(f"a{k}") for k, a in enumerate(holes)}
        template = T.node(t.op, tuple(_with_holes(a, named) for a in t.args), t.attr, t.type)
        return self._mapped(template, [self.value(a) for a in holes])

    def _holes(self, t: Term) -> list[Term]:
        """The numbers that a condition compares; of a number itself."""
        if not _has_reads(t):
            if t.free:
                raise Unsupported("the search does not support a function of both elements and indices")
            return []
        if t.type == T.BOOL and t.op in CONDITIONS:
            return [h for a in operands(t) for h in self._holes(a)]
        if t.type != T.REAL:
            raise Unsupported(f"the search does not support {t.op} of {t.type} elements")
        return [t]

    def _mapped(self, template: Term, args: Sequence[Node]) -> Node:
        return node("map", *args, attr=template)


def balanced(op: str, values: Sequence[Node]) -> Node:
    """The values added, or multiplied, in an order that is the same for the same values."""
    first, *rest = sorted(values, key=repr)
    return reduce(lambda out, v: node(op, out, v), rest, first)


def powers(factors: Sequence[Node]) -> Node:
    """The product of factors; equal ones as squares."""
    out: list[Node] = []
    for v, k in Counter(factors).items():
        out += [node("sqr", v)] * (k // 2) + [v] * (k % 2)
    return balanced("mul", out)


def quotient(above: Sequence[Node], below: Sequence[Node]) -> Node:
    """The product of some values over that of others, not both of none."""
    if not below:
        return powers(above)
    bottom = powers(below)
    return node("div", powers(above), bottom) if above else node("map", bottom, attr=T.div(1, T.scalar("a0")))


def _largest(over: str, body: Node, least: bool) -> Node:
    """The maximum, or the least, which is the maximum of what is negated."""
    if over not in body.axes:
        return body
    if not least:
        return node("max", body, attr=over)
    return node("scale", node("max", node("scale", body, attr=T.const(-1)), attr=over), attr=T.const(-1))


def _sum(over: str, body: Node) -> Node:
    """The sum, numbers and factors that lack the axis in front of it: so it has the fewest terms, and what it is a
    factor of, under another sum, is a product of matrices."""
    if body.op == "scale":
        return node("scale", _sum(over, body.args[0]), attr=body.attr)
    if body.op == "mul" and any(over in a.axes for a in body.args):
        left, right = sorted(body.args, key=lambda a: over not in a.axes)
        if over not in right.axes:
            return node("mul", _sum(over, left), right)
    return node("sum", body, attr=over)


def _has_reads(t: Term) -> bool:
    return any(s.op == "read" for s in t.walk())


def _with_holes(t: Term, named: dict[Term, Term]) -> Term:
    """The term with scalars for its holes, which are not looked into."""
    return named.get(t) or T.node(t.op, tuple(_with_holes(a, named) for a in t.args), t.attr, t.type)


def _split(terms: Sequence[Term]) -> tuple[list[Term], list[Term]]:
    """Those that are the same for all elements, and the others."""
    number = lambda a: not _has_reads(a) and not a.free  # noqa: E731
    return [a for a in terms if number(a)], [a for a in terms if not number(a)]


def _matters(t: Term) -> bool:
    """Whether a term is neither a read nor 0."""
    return not _has_reads(t) and not (t.is_const and t.attr == 0)


def _axes(t: Term) -> tuple[str, ...]:
    """The axes of a term over indices, in the order of their names."""
    return tuple(sorted(a.name for a in t.free))

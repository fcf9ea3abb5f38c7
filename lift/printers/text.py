"""Formulas as text. `softmax(x, -1)`, `x @ w.T`, `layer_norm(x, -1, eps) * w + b` where a tensor form exists, else
index notation: `out[i, j] = sum(k, x[i, k] * w[k, j] * v[i, k, j])`. `lift.language.parse` reads both back.

Tensor form is numpy's: dimensions are aligned at the end, dims are counted from the end, @ contracts the last two. One
convention differs: a reduced dimension stays with size 1, and those disappear from the final result, so that
`x - mean(x, -1)` says what it means.

The printer walks the term with a *frame*: which axis stands at which position, None for a position that is 1. A fold
puts its axis at a free position; several are tried and the shortest text wins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

from ..language.definitions import DEFINITIONS
from ..language.idioms import Cat, cat, certain_reads, chosen, one_hot, scan
from ..language.infix import ADD, ATOM, MATMUL, NEG, Piece, arithmetic, operands, operation
from ..language.unfolding import meaningful
from ..terms import construct as T
from ..terms.expansion import expand
from ..terms.spec import Formula
from ..terms.term import FOLDS, NAMED, Axis, Term, reads

Frame = tuple[Axis | None, ...]
Shapes = Mapping[str, Sequence[Term | None]]


class NoTensorForm(Exception):
    """This term has no text in tensor form in this frame."""


def text(formula: Formula, shapes: Shapes | None = None) -> str:
    """The formula in textbook form. `shapes`: the size of every dimension of the inputs; without it a dimension read
    along an axis is taken to be as long as that axis."""
    shapes = input_shapes(formula.term) if shapes is None else shapes
    term = meaningful(formula.term)
    forms = [f for frame in _frames(formula) if (f := _tensor_form(term, frame, shapes))]
    return min(forms, key=_length, default=None) or index_form(formula, shapes)


def input_shapes(*terms: Term) -> dict[str, list[Term | None]]:
    """Per input and dimension the size of the axis that reads it; None where several sizes or other indices do."""
    sizes: dict[str, list[set[Term | None]]] = {}
    for r in (s for t in terms for s in t.walk() if s.op == "read"):
        for found, i in zip(sizes.setdefault(r.attr, [set() for _ in r.args]), r.args, strict=True):
            found.add(i.attr.size if i.op == "axis" else None)
    return {x: [next(iter(found)) if len(found) == 1 else None for found in dims] for x, dims in sizes.items()}


def _length(form: str) -> int:
    return len(form) + 6 * form.count("None") + 4 * form.count(".permute") + form.count("@") * -2


def _frames(formula: Formula) -> Iterator[Frame]:
    """The output's axes with up to three positions of size 1 among them."""
    bound = {s.attr for s in formula.term.walk() if isinstance(s.attr, Axis) and s.op != "axis"} - set(formula.axes)
    for holes in range(min(len(bound), 3) + 1):
        n = len(formula.axes) + holes
        for places in combinations(range(n), holes):
            axes = iter(formula.axes)
            yield tuple(None if k in places else next(axes) for k in range(n))


def _tensor_form(t: Term, frame: Frame, shapes: Shapes) -> str | None:
    try:
        return _Tensors(shapes, certain_reads(t)).piece(t, frame).text
    except NoTensorForm:
        return None


class _Tensors:
    def __init__(self, shapes: Shapes, certain: set[int]) -> None:
        self.shapes, self.certain = shapes, certain
        self.memo: dict[tuple[int, Frame], Piece | None] = {}

    def piece(self, t: Term, frame: Frame) -> Piece:
        key = (t.id, frame)
        if key not in self.memo:
            try:
                self.memo[key] = self._piece(t, frame)
            except NoTensorForm:
                self.memo[key] = None
        if (out := self.memo[key]) is None:
            raise NoTensorForm
        return out

    def _piece(self, t: Term, frame: Frame) -> Piece:
        child = lambda a: self.piece(a, frame)  # noqa: E731
        if (out := arithmetic(t, child)) is not None:
            return out
        match t.op:
            case "size" | "scalar":
                return Piece(str(t.attr))
            case "axis":
                return placed(f"arange({size_text(t.attr)})", [t.attr], frame)
            case "read":
                return self._read(t, frame)
            case "undef":
                raise NoTensorForm
        if (chosen_at := one_hot(t)) is not None and (out := self._one_hot(*chosen_at, frame)) is not None:
            return out
        if (joined := cat(t)) is not None and (out := self._cat(joined, frame)) is not None:
            return out
        if t.op in FOLDS or (t.op in DEFINITIONS and t.attr is not None):
            return self._over(t, frame)
        return operation(t, child)

    def _one_hot(self, index: Term, over: Axis, frame: Frame) -> Piece | None:
        """one_hot(ids, V) where the axis is the last, one_hot(ids, V).T where it is the last but one."""
        for swapped in (False, True):
            order = (*frame[:-2], *frame[-1:], *frame[-2:-1]) if swapped else frame
            if order[-1:] != (over,):
                continue
            try:
                piece = self.piece(index, order[:-1])
            except NoTensorForm:
                continue
            if piece.rank == len(frame) - 1:
                name = f"one_hot({piece.text}, {size_text(over)})"
                return Piece(name + (".mT" if len(frame) > 2 else ".T") * swapped, ATOM, len(frame))
        return None

    def _cat(self, t: Cat, frame: Frame) -> Piece | None:
        """cat(a, b, dim), if both have all dimensions from there on and the sizes that the text tells."""
        if t.over not in frame:
            return None
        at = frame.index(t.over)
        self.certain |= certain_reads(t.a) | certain_reads(t.b)
        try:
            a, b = (self.piece(x, (*frame[:at], n, *frame[at + 1 :])) for x, n in ((t.a, t.first), (t.b, t.second)))
        except NoTensorForm:
            return None
        dim = at - len(frame)
        return Piece(f"cat({a.text}, {b.text}, {dim})", ATOM, a.rank) if a.rank == b.rank and a.rank >= -dim else None

    # ---- elements

    def _read(self, t: Term, frame: Frame) -> Piece:
        """x, x.T, x[:, 0], x[:, :K], w[ids]: at most one index that is neither an axis nor a number."""
        parts: list[str] = []
        axes: list[Axis] = []
        for i, length in zip(t.args, lengths(t, self.shapes), strict=True):
            span = slice_text(i, length, t.id in self.certain)
            inner = tuple(a for a in frame if a is not None and a in i.free)
            parts.append(span or (repr(i.attr) if i.op == "const" else self._index(i, inner)))
            axes += i.free if span else inner
        if sum(":" not in p and not p.isdigit() for p in parts) > 1 or (
            any(p.isdigit() for p in parts) and not all(":" in p or p.isdigit() for p in parts)
        ):
            raise NoTensorForm
        while parts and parts[-1] == ":":
            parts.pop()
        return placed(f"{t.attr}[{', '.join(parts)}]" if parts else str(t.attr), axes, frame)

    def _index(self, i: Term, axes: Frame) -> str:
        """An index array that has exactly these axes."""
        index = self.piece(i, axes)
        if not axes or index.rank != len(axes) or len(axes) != len(i.free):
            raise NoTensorForm
        return index.text

    # ---- folds

    def _over(self, t: Term, frame: Frame) -> Piece:
        if (found := scan(t)) is not None and found.over in frame:
            body, dim = self.piece(found.body, frame), frame.index(found.over) - len(frame)
            return Piece(f"{found.name}({body.text}, {dim})", ATOM, body.rank)
        products = list(self._products(t, frame)) if t.op == "sum" else []
        return min([*products, *self._reductions(t, frame)], key=lambda p: _length(p.text), default=None) or _fail()

    def _reductions(self, t: Term, frame: Frame) -> Iterator[Piece]:
        args = t.args
        if t.attr not in args[0].free:
            return
        used = set().union(*(a.free for a in args))
        for at in reversed(range(len(frame))):
            keeps = t.op in DEFINITIONS and not DEFINITIONS[t.op].binds
            if frame[at] != t.attr and (keeps or t.attr in frame or frame[at] in used):
                continue
            inner = (*frame[:at], t.attr, *frame[at + 1 :])
            try:
                pieces = [
                    self.piece(args[0], inner),
                    *(self.piece(a, (*frame[:at], *frame[at + 1 :])) for a in args[1:]),
                ]
            except NoTensorForm:
                continue
            dim = at - len(frame)
            if pieces[0].rank < -dim:
                continue  # the body does not have this dimension
            rest = "".join(f", {p.text}" for p in pieces[1:])
            yield _merged(t.op, pieces[0], dim, rest)

    def _products(self, t: Term, frame: Frame) -> Iterator[Piece]:
        """sum(k, a * b) as a @ b: a has the last row axis and k, b has k and the last axis."""
        k, body = t.attr, t.args[0]
        factors = operands(body) if body.op == "mul" else chosen(body) if self._inside(body) else []
        outer: Frame = tuple(None if a == k else a for a in frame)
        if len(outer) >= 2:
            yield from self._matmul(
                factors, (*outer[:-1], k), (*outer[:-2], k, outer[-1]), outer[-2], outer[-1], (2, 2, 0)
            )
        if outer:
            yield from self._matmul(factors, (*outer, k), (k,), outer[-1], None, (2, 1, -1))
            yield from self._matmul(factors, (k,), (*outer[:-1], k, outer[-1]), None, outer[-1], (1, 2, -1))
        else:
            yield from self._matmul(factors, (k,), (k,), None, None, (1, 1, -1))

    def _inside(self, t: Term) -> bool:
        """Every element read is there, whatever a mask says."""
        pairs = [
            (i, n) for r in t.walk() if r.op == "read" for i, n in zip(r.args, lengths(r, self.shapes), strict=True)
        ]
        return all(i.op == "axis" and n is i.attr.size for i, n in pairs)

    def _matmul(
        self,
        factors: list[Term],
        left: Frame,
        right: Frame,
        row: Axis | None,
        column: Axis | None,
        ranks: tuple[int, int, int],
    ) -> Iterator[Piece]:
        only_left = [f for f in factors if not set(f.free) <= set(right) or (row is not None and row in f.free)]
        only_right = [
            f
            for f in factors
            if f not in only_left and (not set(f.free) <= set(left) or (column is not None and column in f.free))
        ]
        either = [f for f in factors if f not in only_left and f not in only_right]
        if not only_left and len(either) > 1:
            only_left, either = either[:1], either[1:]
        a, b = (only_left + either, only_right) if only_right else (only_left, either)
        k = left[-1]
        if any(column is not None and column in f.free for f in a) or not all(
            any(k in f.free for f in side) for side in (a, b)
        ):
            return
        try:
            x, y = self.piece(T.mul(*a), left), self.piece(T.mul(*b), right)
        except NoTensorForm:
            return
        need = lambda p, n: p.rank == 1 if n == 1 else p.rank >= 2  # noqa: E731
        if need(x, ranks[0]) and need(y, ranks[1]):
            yield product(x, y, max(x.rank, y.rank) + ranks[2])


def _fail() -> Piece:
    raise NoTensorForm


def product(x: Piece, y: Piece, rank: int = 0) -> Piece:
    """x @ y."""
    return Piece(f"{x.text if x.binds == MATMUL else x.at(NEG)} @ {y.at(ATOM)}", MATMUL, rank)


def size_text(a: Axis) -> str:
    return number_text(a.size)


def number_text(t: Term) -> str:
    """A term over sizes and scalars alone."""

    def child(t: Term) -> Piece:
        return arithmetic(t, child) or (Piece(str(t.attr)) if t.op in ("size", "scalar") else operation(t, child))

    return child(t).text


def lengths(t: Term, shapes: Shapes) -> Sequence[Term | None]:
    """The sizes of the dimensions that a read indexes, None where unknown."""
    known = shapes.get(t.attr, ())
    return known if len(known) == len(t.args) else [None] * len(t.args)


def slice_text(i: Term, length: Term | None, certain: bool, number: Callable[[Term], str] = number_text) -> str | None:
    """An index that is an axis, or an axis and an offset, as a slice: ":", ":K", "H:", "1:N - 1"."""
    over, offset = _offset(i)
    if over is None or (not certain and over.size is not length):
        return None
    stop = expand(T.add(over.size, offset))
    last = "" if length is not None and same_size(stop, length) else number(stop)
    start = "" if offset is T.const(0) else number(offset)
    return None if start.startswith("-") or (start and not certain) else f"{start}:{last}"


def _offset(i: Term) -> tuple[Axis | None, Term]:
    axes = [a for a in i.args if a.op == "axis"] if i.op == "add" else [i] if i.op == "axis" else []
    rest = [a for a in i.args if a not in axes] if i.op == "add" else []
    if len(axes) != 1 or any(a.free or reads(a) for a in rest):
        return None, i
    return axes[0].attr, T.add(*rest) if rest else T.const(0)


def same_size(a: Term, b: Term) -> bool:
    """H + H is 2 * H."""
    return a is b or expand(T.sub(a, b)) is T.const(0)


def _merged(op: str, piece: Piece, dim: int, rest: str) -> Piece:
    """sum(sum(x, -1), -2) is sum(x, (-2, -1))."""
    return Piece(f"{op}({piece.text}, {dim}{rest})", ATOM, piece.rank)


def placed(name: str, axes: list[Axis], frame: Frame) -> Piece:
    """The array `name` with these axes, moved to their positions in the frame."""
    if len(set(axes)) != len(axes) or not set(axes) <= set(frame):
        raise NoTensorForm
    places = [frame.index(a) for a in axes]
    order = sorted(range(len(axes)), key=lambda k: places[k])
    name = permuted(name, order)
    if not places:
        return Piece(name)
    present = [p in places for p in range(min(places), len(frame))]
    index = [":" if here else "None" for here in present]
    while index and index[-1] == ":":
        index.pop()
    return Piece(f"{name}[{', '.join(index)}]" if index else name, ATOM, len(present))


def permuted(name: str, order: list[int]) -> str:
    n = len(order)
    if order == list(range(n)):
        return name
    if n == 2:
        return f"{name}.T"
    if order == [*range(n - 2), n - 1, n - 2]:
        return f"{name}.mT"
    return f"{name}.permute({', '.join(map(str, order))})"


# ---- index notation --------------------------------------------------------------------------------------------------


def index_form(formula: Formula, shapes: Shapes | None = None) -> str:
    """out[i, j] = ...: every element by its index. A size is written where no read tells it: sum(k < K, ...)."""
    shapes = input_shapes(formula.term) if shapes is None else shapes
    term = meaningful(formula.term)
    axes = ", ".join(_axis(a, term, shapes) for a in formula.axes)
    return f"{formula.name}{f'[{axes}]' if axes else ''} = {_elements(term, shapes).text}"


def element_text(t: Term) -> str:
    """One element, over axes by their names: what conditions, invariants and contracts are printed in."""
    return _elements(meaningful(t), input_shapes(t)).text


def name_of(a: Axis) -> str:
    return a.name.replace("'", "_")


def _axis(a: Axis, body: Term, shapes: Shapes) -> str:
    """The axis, with its size unless all reads with this index are of dimensions of that size."""
    lengths = list(_indexed(body, a.name, shapes))
    return name_of(a) if lengths and all(n is a.size for n in lengths) else f"{name_of(a)} < {size_text(a)}"


def _indexed(t: Term, name: str, shapes: Shapes) -> Iterator[Term | None]:
    """The sizes of the dimensions that the axis of this name indexes in t, outside of what binds the name again."""
    if t.op == "read":
        for i, n in zip(t.args, lengths(t, shapes), strict=True):
            if i.op == "axis" and i.attr.name == name:
                yield n
    if not (isinstance(t.attr, Axis) and t.attr.name == name and (t.op in FOLDS or NAMED.get(t.op))):
        for a in t.args:
            yield from _indexed(a, name, shapes)


def _elements(t: Term, shapes: Shapes) -> Piece:
    child = lambda a: _elements(a, shapes)  # noqa: E731
    if (out := arithmetic(t, child)) is not None:
        return out
    match t.op:
        case "size" | "scalar":
            return Piece(str(t.attr))
        case "axis":
            return Piece(name_of(t.attr))
        case "undef":
            return Piece("nan" if t.attr == "nan" else "undefined")
        case "read":
            name = str(t.attr).split("@")[0]  # x@3: what load 3 finds in x
            return Piece(f"{name}[{', '.join(child(i).text for i in t.args)}]" if t.args else f"{name}[()]")
        case "carry":  # a loop variable at an iteration
            return Piece(f"{t.attr.name}({', '.join(child(i).text for i in t.args)})")
        case "pointer":
            return Piece(f"{t.attr} + {child(t.args[0]).at(ADD)}", ADD)
    if isinstance(t.attr, Axis):
        binds = t.op in FOLDS or NAMED[t.op]
        over = _axis(t.attr, t.args[0], shapes) if binds else name_of(t.attr)
        return Piece(f"{t.op}({', '.join([over, *(child(a).text for a in t.args)])})")
    return operation(t, child)

"""PyTorch operators that move elements or make them: views, joining, rearranging, creation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Unsupported
from ...terms import construct as T
from ...terms import index as I
from ...terms import ring as residues
from ...terms.machine_ranges import limits
from ...terms.term import Term, TermLike
from ..symbolic_tensor import (
    ONE,
    Index,
    SymbolicTensor,
    along,
    cast,
    choose,
    expand,
    full,
    kind,
    number,
    permute,
    reshape,
    select,
    tensor,
    unsqueeze,
    wrapped,
)
from .elementwise import Operand, operand
from .operator_row import Row, Rows

ROWS = Rows(__name__)
Size = Sequence[TermLike]
ZERO = T.const(0)
FAR = 2**62  # larger than any size: "to the end"
NARROW_DTYPES = {"int8": "i8", "int16": "i16", "uint8": "u8", "uint16": "u16"}


def conj(*conditions: TermLike) -> Term:
    return T.make("and", True, True, *conditions)


# ---- the same elements ----------------------------------------------------------------------------------------------
SAME = "clone detach alias contiguous lift_fresh lift_fresh_copy lift positive _conj resolve_conj resolve_neg"
ROWS.add(Row(SAME, "self", lambda x: x), Row("zero", "self", lambda x: full(x.shape, T.const(0), x.type)))


@ROWS("_to_copy to")
def _to_copy(self: SymbolicTensor, dtype: Any = None) -> SymbolicTensor:
    if dtype is None:
        return self
    narrow = NARROW.get(str(dtype)) if self.type == T.INT else None
    return cast(self, type_of(dtype)) if narrow is None else tensor(self.shape, lambda i: narrow(self.at(i)), T.INT)


def _wrapping(low: int, high: int) -> Callable[[Term], Term]:
    """An integer as a narrow one: modulo 2^bits, unless it surely fits. Of wide ones `lift.pytorch.machine_integers`
    says that they must fit."""

    def wrap(t: Term) -> Term:
        least, greatest = I.interval(t)
        return t if low <= least and greatest < high else residues.wrapped(t, low, high)

    return wrap


NARROW = {f"torch.{n}": _wrapping(*limits(d)) for n, d in NARROW_DTYPES.items()}


def type_of(dtype: Any) -> str:
    """real, int or bool of a torch dtype; None is real."""
    if dtype is None or dtype.is_floating_point:
        return T.REAL
    if dtype.is_complex:
        raise Unsupported(f"dtype {dtype}")
    return T.BOOL if str(dtype) == "torch.bool" else T.INT


@ROWS("copy")
def _copy(self: SymbolicTensor, src: SymbolicTensor) -> SymbolicTensor:
    return cast(expand(src, self.shape), self.type)


@ROWS("fill")
def _fill(self: SymbolicTensor, value: Operand) -> SymbolicTensor:
    return cast(expand(operand(value), self.shape), self.type)


# ---- views ----------------------------------------------------------------------------------------------------------
ROWS.add(
    Row("view _unsafe_view view_copy _reshape_copy", "self, size", reshape, "torch.Tensor.view"),
    Row("reshape", "self, shape", reshape, "torch.reshape"),
    Row("_reshape_alias", "self, size, stride", lambda x, size, stride: reshape(x, size)),
    Row("permute permute_copy", "self, dims", permute, "torch.permute"),
    Row("unsqueeze unsqueeze_copy", "self, dim", unsqueeze, "torch.unsqueeze"),
    Row("t t_copy numpy_T", "self", lambda x: permute(x, range(x.rank)[::-1]), "torch.t"),
    Row("expand_as", "self, other", lambda x, other: expand(x, other.shape), "torch.Tensor.expand_as"),
    Row("select select_copy", "self, dim, index", select, "torch.select"),
)


@ROWS("flatten")
def _flatten(self: SymbolicTensor, start_dim: int = 0, end_dim: int = -1) -> SymbolicTensor:
    a, b = self.dim(start_dim), self.dim(end_dim)
    return reshape(self, (*self.shape[:a], I.numel(self.shape[a : b + 1]), *self.shape[b + 1 :]))


@ROWS("unflatten")
def _unflatten(self: SymbolicTensor, dim: int, sizes: Size) -> SymbolicTensor:
    d = self.dim(dim)
    return reshape(self, (*self.shape[:d], *sizes, *self.shape[d + 1 :]))


@ROWS("transpose transpose_copy swapdims", "torch.transpose")
def transpose(self: SymbolicTensor, dim0: int, dim1: int) -> SymbolicTensor:
    order = list(range(self.rank))
    if order:
        a, b = self.dim(dim0), self.dim(dim1)
        order[a], order[b] = order[b], order[a]
    return permute(self, order)


@ROWS("squeeze squeeze_copy")
def _squeeze(self: SymbolicTensor, dim: int | Sequence[int] | None = None) -> SymbolicTensor:
    dims = range(self.rank) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {self.dim(d) for d in dims if self.rank and self.shape[self.dim(d)] is ONE}
    keep = [d for d in range(self.rank) if d not in gone]
    place = {d: k for k, d in enumerate(keep)}

    def at(index: tuple[Term, ...]) -> Term:
        if len(index) != len(keep):
            raise Unsupported("squeeze of a size that is 1 here, and not everywhere")
        return self.at(tuple(index[place[d]] if d in place else ZERO for d in range(self.rank)))

    return tensor([self.shape[d] for d in keep], at, self.type)


@ROWS("expand expand_copy", "torch.Tensor.expand")
def _expand(self: SymbolicTensor, size: Size, implicit: bool = False) -> SymbolicTensor:
    sizes = [T.const(n) for n in size]
    new = len(sizes) - self.rank
    keep = lambda k, n: self.shape[k - new] if n.is_const and n.attr == -1 else n  # noqa: E731
    return expand(self, [keep(k, n) for k, n in enumerate(sizes)])


ROWS.add(
    Row("swapaxes", "self, axis0, axis1", transpose, "torch.swapaxes"),
    Row("broadcast_to", "self, size", _expand, "torch.broadcast_to"),
)


def span(size: Term, start: TermLike | None, end: TermLike | None) -> tuple[Term, Term]:
    """start and end of a slice, clamped to 0..size as PyTorch does."""
    first, last = (_clamped(e, size) for e in (start if start is not None else 0, end if end is not None else FAR))
    return first, last


def _clamped(e: TermLike, size: Term) -> Term:
    e = T.const(e)
    if e.is_const and e.attr >= FAR:
        return size
    e = wrapped(e, size)
    if _at_most(e, size):
        return e if I.nonnegative(e) else T.make("max", e, 0)
    if I.less(size, e + 1) is T.const(True):
        return size
    return T.make("min", T.make("max", e, 0) if not I.nonnegative(e) else e, size)


def _at_most(e: Term, size: Term) -> bool:
    """e <= size is certain; x // d is at most x."""
    if e is size or I.less(e, size + 1) is T.const(True):
        return True
    return e.op == "floordiv" and I.nonnegative(e.args[0]) and _at_most(e.args[0], size)


@ROWS("slice slice_copy")
def sliced(self: SymbolicTensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> SymbolicTensor:
    size = self.shape[self.dim(dim)]
    first, last = span(size, start, end)
    if first is ZERO and last is size and step == 1:
        return self
    length = I.normal(last - first) if step == 1 else I.floordiv(last - first + (step - 1), step)
    return along(
        self, dim, length if not length.is_const else max(length.attr, 0), lambda i: I.normal(first + i * step)
    )


@ROWS("narrow", "torch.narrow")
def _narrow(self: SymbolicTensor, dim: int, start: TermLike, length: TermLike) -> SymbolicTensor:
    return sliced(self, dim, start, T.const(start) + length)


@ROWS("split split_copy unsafe_split")
def _split(
    self: SymbolicTensor, split_size: Any, dim: int = 0, pieces: int | None = None
) -> tuple[SymbolicTensor, ...]:
    if isinstance(split_size, list | tuple):
        return _split_with_sizes(self, split_size, dim)
    total = self.shape[self.dim(dim)]
    size = T.const(split_size)
    count = I.floordiv(total + (size - 1), size)
    if pieces is None and not count.is_const:
        raise Unsupported("aten.split", why=f"the number of pieces depends on sizes: {count}")
    return tuple(sliced(self, dim, size * k, size * (k + 1)) for k in range(pieces or max(count.attr, 1)))


@ROWS("split_with_sizes split_with_sizes_copy unsafe_split_with_sizes")
def _split_with_sizes(self: SymbolicTensor, split_sizes: Size, dim: int = 0) -> tuple[SymbolicTensor, ...]:
    starts = [ZERO]
    for n in split_sizes:
        starts.append(I.normal(starts[-1] + n))
    return tuple(along(self, dim, n, shift(s)) for n, s in zip(split_sizes, starts[:-1], strict=True))


def shift(by: Term) -> Callable[[Term], Term]:
    """i -> i + by."""
    return lambda i: I.normal(i + by)


@ROWS("chunk unsafe_chunk")
def _chunk(self: SymbolicTensor, chunks: int, dim: int = 0, pieces: int | None = None) -> tuple[SymbolicTensor, ...]:
    return _split(self, I.floordiv(self.shape[self.dim(dim)] + (chunks - 1), chunks), dim, pieces)


@ROWS("unbind unbind_copy")
def _unbind(self: SymbolicTensor, dim: int = 0) -> tuple[SymbolicTensor, ...]:
    n = self.shape[self.dim(dim)]
    if not n.is_const:
        raise Unsupported("aten.unbind", why=f"the number of pieces depends on sizes: {n}")
    return tuple(select(self, dim, k) for k in range(n.attr))


@ROWS("diagonal diagonal_copy")
def _diagonal(self: SymbolicTensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> SymbolicTensor:
    a, b = self.dim(dim1), self.dim(dim2)
    rows, columns = self.shape[a], self.shape[b]
    below, above = max(-offset, 0), max(offset, 0)
    m, n = I.normal(rows - below), I.normal(columns - above)
    length = (
        m
        if m is n
        else T.make("max", T.make("min", m, n), 0)
        if not (m.is_const and n.is_const)
        else max(min(m.attr, n.attr), 0)
    )
    rest = [d for d in range(self.rank) if d not in (a, b)]

    def at(i: Index) -> Term:
        own = dict(zip(rest, i[:-1], strict=True)) | {a: I.normal(i[-1] + below), b: I.normal(i[-1] + above)}
        return self.at(tuple(own[d] for d in range(self.rank)))

    return tensor((*(self.shape[d] for d in rest), length), at, self.type)


@ROWS("unfold unfold_copy")
def _unfold(self: SymbolicTensor, dimension: int, size: int, step: int) -> SymbolicTensor:
    d = self.dim(dimension)
    windows = I.floordiv(self.shape[d] - size, step) + 1
    shape = (*self.shape[:d], windows, *self.shape[d + 1 :], T.const(size))
    return tensor(shape, lambda i: self.at((*i[:d], I.normal(i[d] * step + i[-1]), *i[d + 1 : -1])), self.type)


# ---- joining and rearranging ----------------------------------------------------------------------------------------
@ROWS("cat concat concatenate")
def _cat(tensors: Sequence[SymbolicTensor], dim: int = 0) -> SymbolicTensor:
    parts = [x for x in tensors if not (x.rank == 1 and x.shape[0] is ZERO)] or list(tensors[:1])
    d = parts[0].dim(dim)
    starts = [ZERO]
    for x in parts:
        starts.append(I.normal(starts[-1] + x.shape[d]))

    def at(i: Index) -> Term:
        out = None
        for x, start, end in reversed(list(zip(parts, starts[:-1], starts[1:], strict=True))):
            here = I.less(i[d], end)
            if here is T.const(False):
                continue
            own = number_of(x.at((*i[:d], I.normal(i[d] - start), *i[d + 1 :])), kind(parts))
            out = own if out is None else T.where(here, own, out)
        assert out is not None
        return out

    return tensor((*parts[0].shape[:d], starts[-1], *parts[0].shape[d + 1 :]), at, kind(parts))


def number_of(t: Term, of_type: str) -> Term:
    return t if of_type == T.BOOL else number(t)


@ROWS("stack")
def _stack(tensors: Sequence[SymbolicTensor], dim: int = 0) -> SymbolicTensor:
    d = dim % (tensors[0].rank + 1)
    return _cat([unsqueeze(x, d) for x in tensors], d)


@ROWS("constant_pad_nd pad")
def _pad(self: SymbolicTensor, pad: Sequence[Any], value: TermLike = 0) -> SymbolicTensor:
    """pad = (left, right) of the last dimension, then of the one before ..."""
    edges = {self.rank - 1 - k: (T.const(pad[2 * k]), T.const(pad[2 * k + 1])) for k in range(len(pad) // 2)}
    shape = [n + sum(edges[d], ZERO) if d in edges else n for d, n in enumerate(self.shape)]

    def at(i: Index) -> Term:
        own = tuple(I.normal(x - edges[d][0]) if d in edges else x for d, x in enumerate(i))
        low = (T.const(True) if edges[d][0] is ZERO else T.make("le", edges[d][0], i[d]) for d in edges)
        high = (I.less(own[d], self.shape[d]) for d in edges)
        return T.where(conj(*low, *high), self.at(own), value)

    return tensor(shape, at, self.type)


@ROWS("flip")
def _flip(self: SymbolicTensor, dims: Sequence[int]) -> SymbolicTensor:
    turned = {self.dim(d) for d in dims}
    turn = lambda d, x: I.normal(self.shape[d] - 1 - x) if d in turned else x  # noqa: E731
    return tensor(self.shape, lambda i: self.at(tuple(turn(d, x) for d, x in enumerate(i))), self.type)


@ROWS("roll")
def _roll(self: SymbolicTensor, shifts: Sequence[Any], dims: Sequence[int] = ()) -> SymbolicTensor:
    if not dims:
        flat = reshape(self, [I.numel(self.shape)])
        return reshape(_roll(flat, shifts, [0]), self.shape)
    out = self
    for s, d in zip(shifts, dims, strict=True):
        out = along(out, d, out.shape[out.dim(d)], _turn(out.shape[out.dim(d)], s))
    return out


def _turn(n: Term, by: TermLike) -> Callable[[Term], Term]:
    return lambda i: I.mod(i - by, n)


def _repeat(self: SymbolicTensor, repeats: Size) -> SymbolicTensor:
    times = [T.const(r) for r in repeats]
    times = [ONE] * (self.rank - len(times)) + times
    shape = [ONE] * (len(times) - self.rank) + list(self.shape)

    def at(i: Index) -> Term:
        own = (x if r is ONE else I.mod(x, n) for x, n, r in zip(i, shape, times, strict=True))
        return self.at(tuple(own)[len(times) - self.rank :])

    return tensor([n * r for n, r in zip(shape, times, strict=True)], at, self.type)


@ROWS("repeat_interleave")
def _repeat_interleave(
    self: SymbolicTensor, repeats: Any, dim: int | None = None, output_size: object = None
) -> SymbolicTensor:
    if isinstance(repeats, SymbolicTensor):
        raise Unsupported("aten.repeat_interleave", why="the repeats are a tensor")
    x = reshape(self, [I.numel(self.shape)]) if dim is None else self
    d = x.dim(dim or 0)
    return along(x, d, x.shape[d] * repeats, lambda i: I.floordiv(i, repeats))


def _triangle(x: SymbolicTensor, diagonal: int, keep: Callable[[Term, Term], Term]) -> SymbolicTensor:
    zero = T.const(False if x.type == T.BOOL else 0)
    on = lambda i: keep(i[-1], I.normal(i[-2] + diagonal))  # noqa: E731
    return tensor(x.shape, lambda i: choose(on(i), x.at(i), zero), x.type)


def _tril(self: SymbolicTensor, diagonal: int) -> SymbolicTensor:
    return _triangle(self, diagonal, lambda column, row: T.make("le", column, row))


def _triu(self: SymbolicTensor, diagonal: int) -> SymbolicTensor:
    return _triangle(self, diagonal, lambda column, row: T.make("le", row, column))


ROWS.add(
    Row("repeat", "self, repeats", _repeat, "torch.Tensor.repeat"),
    Row("tile", "self, dims", _repeat, "torch.tile"),
    Row("tril", "self, diagonal=0", _tril, "torch.tril"),
    Row("triu", "self, diagonal=0", _triu, "torch.triu"),
)


# ---- creation -------------------------------------------------------------------------------------------------------
@ROWS("full_like")
def full_like(self: SymbolicTensor, fill_value: TermLike, dtype: Any = None) -> SymbolicTensor:
    return cast(full(self.shape, fill_value), self.type if dtype is None else type_of(dtype))


def _new(size: Size, value: TermLike, dtype: Any) -> SymbolicTensor:
    """The same number everywhere, of the dtype or, without one, of PyTorch's default dtype."""
    return cast(full(size, value, T.INT), type_of(dtype))


def _like(like: SymbolicTensor, size: Size, value: TermLike, dtype: Any) -> SymbolicTensor:
    """The same number everywhere, of the dtype or, without one, of the type of `like`."""
    return full_like(full(size, 0, like.type), value, dtype)


def _full(size: Size, value: TermLike, dtype: Any) -> SymbolicTensor:
    x = full(size, value)
    return x if dtype is None else cast(x, type_of(dtype))


def _empty(size: Size, dtype: Any) -> SymbolicTensor:
    """Nobody has written these elements."""
    return full(size, T.undef("empty", type_of(dtype)), type_of(dtype))


def _empty_like(like: SymbolicTensor, size: Size, dtype: Any) -> SymbolicTensor:
    of_type = like.type if dtype is None else type_of(dtype)
    return full(size, T.undef("empty", of_type), of_type)


ROWS.add(
    Row("zeros", "size, dtype=None", lambda size, dtype: _new(size, 0, dtype), "torch.zeros"),
    Row("ones", "size, dtype=None", lambda size, dtype: _new(size, 1, dtype), "torch.ones"),
    Row("zeros_like", "self, dtype=None", lambda x, dtype: full_like(x, 0, dtype), "torch.zeros_like"),
    Row("ones_like", "self, dtype=None", lambda x, dtype: full_like(x, 1, dtype), "torch.ones_like"),
    Row("new_zeros", "self, size, dtype=None", lambda x, size, dtype: _like(x, size, 0, dtype), "torch.Tensor.new_zeros"),
    Row("new_ones", "self, size, dtype=None", lambda x, size, dtype: _like(x, size, 1, dtype), "torch.Tensor.new_ones"),
    Row("new_full", "self, size, fill_value, dtype=None", _like, "torch.Tensor.new_full"),
    Row("full", "size, fill_value, dtype=None", _full, "torch.full"),
    Row("scalar_tensor", "s, dtype=None", lambda s, dtype: _full((), s, dtype)),
    Row("empty", "size, dtype=None", _empty, "torch.empty"),
    Row("empty_strided", "size, stride, dtype=None", lambda size, stride, dtype: _empty(size, dtype), "torch.empty_strided"),
    Row("empty_permuted", "size, physical_layout, dtype=None", lambda size, layout, dtype: _empty(size, dtype)),
    Row("empty_like", "self, dtype=None", lambda x, dtype: _empty_like(x, x.shape, dtype), "torch.empty_like"),
    Row("new_empty", "self, size, dtype=None", _empty_like, "torch.Tensor.new_empty"),
    Row("new_empty_strided", "self, size, stride, dtype=None", lambda x, size, stride, dtype: _empty_like(x, size, dtype)),
)  # fmt: skip


@ROWS("arange")
def _arange(end: TermLike, start: TermLike = 0, step: TermLike = 1, dtype: Any = None) -> SymbolicTensor:
    start, step = T.const(start), T.const(step)
    length = I.normal(T.const(end) - start)
    if step is not ONE:
        up = step.is_const and step.attr > 0
        length = I.floordiv(length + (step - 1 if up else step + 1), step)
    of_type = T.INT if dtype is None else type_of(dtype)
    return tensor([length], lambda i: I.normal(start + i[0] * step), of_type)


@ROWS("linspace")
def _linspace(start: TermLike, end: TermLike, steps: TermLike, dtype: object = None) -> SymbolicTensor:
    step = (T.const(end) - T.const(start)) / (T.const(steps) - 1)
    return tensor([steps], lambda i: start + i[0] * step, T.REAL)


@ROWS("eye")
def _eye(n: TermLike, m: TermLike | None = None, dtype: Any = None) -> SymbolicTensor:
    ident = tensor([n, n if m is None else m], lambda i: T.make("eq", i[0], i[1]), T.BOOL)
    return cast(ident, type_of(dtype))


@ROWS("one_hot")
def _one_hot(self: SymbolicTensor, num_classes: TermLike = -1) -> SymbolicTensor:
    return tensor((*self.shape, num_classes), lambda i: T.where(T.make("eq", self.at(i[:-1]), i[-1]), 1, 0), T.INT)

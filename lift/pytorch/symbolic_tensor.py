"""Symbolic tensors: a shape of terms and the element at an index, exact for all shapes.

    SymbolicTensor(shape, at, type):   at((i, j)) is the term of element (i, j), where i and j are any integer terms

Every reduction has a bound axis of its own, so that no substitution can capture one; `lift.language.axis_names`
shortens names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count

from ..errors import Unsupported
from ..terms import construct as T
from ..terms import index as I
from ..terms.term import Axis, Term, TermLike

Index = tuple[Term, ...]
ONE, REST = T.const(1), T.const(-1)
_bound = count()


@dataclass(frozen=True, slots=True, eq=False)
class SymbolicTensor:
    """`shape`: one term per dimension. `at`: index terms to element term. `type`: real, int or bool."""

    shape: tuple[Term, ...]
    at: Callable[[Index], Term]
    type: str = T.REAL

    @property
    def rank(self) -> int:
        return len(self.shape)

    def dim(self, d: int) -> int:
        """The dimension meant by d, which may count from the end (a scalar counts as one dimension)."""
        n = max(self.rank, 1)
        if not -n <= d < n:
            raise Unsupported(f"dimension {d} of a tensor of rank {self.rank}")
        return d % n


def tensor(shape: Sequence[TermLike], at: Callable[[Index], TermLike], of_type: str = T.REAL) -> SymbolicTensor:
    """A symbolic tensor; elements are formed once per index."""

    @cache
    def element(index: Index) -> Term:
        return T.const(at(index))

    return SymbolicTensor(tuple(map(I.normal, shape)), element, of_type)


def named(name: str, shape: Sequence[TermLike], of_type: str = T.REAL) -> SymbolicTensor:
    """An input tensor: element i is read(name, i)."""
    return tensor(shape, lambda i: T.read(name, i, of_type), of_type)


def full(shape: Sequence[TermLike], value: TermLike, of_type: str | None = None) -> SymbolicTensor:
    """The same value everywhere."""
    v = T.const(value)
    return tensor(shape, lambda i: v, of_type or v.type)


def kind(xs: Sequence[SymbolicTensor]) -> str:
    """The widest type: bool < int < real."""
    types = {x.type for x in xs}
    return T.REAL if T.REAL in types else T.INT if T.INT in types else T.BOOL


def number(t: Term) -> Term:
    """A truth value as 0 or 1, a number as itself."""
    return T.where(t, 1, 0) if t.type == T.BOOL else t


def type_of_name(dtype: str) -> str:
    """real, int or bool of "f32", "bf16", "i64", "u8", "bool" ..."""
    return T.BOOL if dtype == "bool" else T.INT if dtype[0] in "iu" else T.REAL


def choose(c: Term, a: Term, b: Term) -> Term:
    """where, which on truth values is logic: where(c, a, False) = c & a."""
    if a.type == b.type == T.BOOL and a is not b:
        if b is T.const(False):
            return c if a is T.const(True) else T.make("and", c, a)
        if a is T.const(False):
            return choose(T.make("not", c), b, a)
        if a is T.const(True):
            return T.make("or", c, b)
    return T.where(c, a, b)


def truth(t: Term) -> Term:
    """A number as `is not 0`, a truth value as itself."""
    if t.op == "where" and t.args[1] is T.const(1) and t.args[2] is T.const(0):
        return t.args[0]
    return t if t.type == T.BOOL else T.make("ne", t, 0)


def cast(x: SymbolicTensor, of_type: str) -> SymbolicTensor:
    """Real numbers are the semantics: only bool, int and real differ."""
    if x.type == of_type:
        return x
    if of_type == T.BOOL:
        return tensor(x.shape, lambda i: truth(x.at(i)), of_type)
    if of_type == T.INT and x.type == T.REAL:
        return tensor(x.shape, lambda i: to_int(x.at(i)), of_type)
    return tensor(x.shape, lambda i: number(x.at(i)), of_type)


def to_int(t: Term) -> Term:
    """A real as an integer, towards zero; integers stay as they are."""
    from ..terms.ops import OPS

    return OPS["to_int"].on_terms(t)


# ---- broadcasting ---------------------------------------------------------------------------------------------------
def broadcast_shapes(*shapes: Sequence[Term]) -> tuple[Term, ...]:
    """Right aligned; a size that is 1 gives way. Two different sizes are equal, or PyTorch would have refused."""
    rank = max(map(len, shapes), default=0)
    out = [ONE] * rank
    for shape in shapes:
        for k, n in enumerate(shape, rank - len(shape)):
            if out[k] is ONE or (n.is_const and not out[k].is_const and n is not ONE):
                out[k] = n
    return tuple(out)


def aligned(x: SymbolicTensor, index: Index) -> Index:
    """The index of x that index of a broadcast result means."""
    own = index[len(index) - x.rank :]
    return tuple(T.const(0) if n is ONE else i for i, n in zip(own, x.shape, strict=True))


def expand(x: SymbolicTensor, shape: Sequence[Term]) -> SymbolicTensor:
    return tensor(shape, lambda i: x.at(aligned(x, i)), x.type)


def pointwise(f: Callable[..., TermLike], *xs: SymbolicTensor, of_type: str | None = None) -> SymbolicTensor:
    """f of the elements, with broadcasting."""
    shape = broadcast_shapes(*(x.shape for x in xs))
    return tensor(shape, lambda i: f(*(x.at(aligned(x, i)) for x in xs)), of_type or kind(xs))


# ---- reductions -----------------------------------------------------------------------------------------------------
def bound(size: Term) -> Axis:
    """An axis that no other term mentions."""
    return Axis(f"#{next(_bound)}", size)


def over(op: str, size: Term, body: Callable[[Term], TermLike]) -> Callable[[], Term]:
    """The fold of body(k) for 0 <= k < size; a single element needs no fold."""
    if size is ONE and op in ("sum", "prod", "amax", "amin"):
        return lambda: T.const(body(T.const(0)))
    axis = bound(size)
    return lambda: T.fold(op, axis, body(T.axis(axis)))


def put(index: Index, at: dict[int, Term]) -> Index:
    """The index with entries inserted at the given final positions."""
    rest = iter(index)
    return tuple(at[k] if k in at else next(rest) for k in range(len(index) + len(at)))


def reduce(op: str, x: SymbolicTensor, dims: Sequence[int] | None = None, keepdim: bool = False) -> SymbolicTensor:
    """sum, prod, amax, amin, argmax, argmin over dims (all when None or empty)."""
    over_dims = sorted({x.dim(d) for d in dims} if dims else range(x.rank)) if x.rank else []
    axes = {d: bound(x.shape[d]) for d in over_dims}
    position = {d: T.const(0) if x.shape[d] is ONE else T.axis(a) for d, a in axes.items()}
    if op.startswith("arg") and len(over_dims) != 1:
        return reduce(op, flatten(x), [0]) if x.rank else full((), 0)

    def at(index: Index) -> Term:
        outer = tuple(i for k, i in enumerate(index) if k not in axes) if keepdim else index
        out = number(x.at(put(outer, position)))
        for d, a in reversed(axes.items()):
            if x.shape[d] is not ONE:
                out = T.fold(op, a, out)
            elif op.startswith("arg"):
                out = T.const(0)
        return out

    shape = [ONE if k in axes else n for k, n in enumerate(x.shape) if keepdim or k not in axes]
    of_type = T.INT if op.startswith("arg") or x.type == T.BOOL else x.type
    return tensor(shape, at, of_type)


# ---- views ----------------------------------------------------------------------------------------------------------
def reshape(x: SymbolicTensor, shape: Sequence[TermLike]) -> SymbolicTensor:
    """Row-major order kept. One entry of shape may be -1."""
    sizes = tuple(map(I.normal, shape))
    known = tuple(n for n in sizes if n is not REST)
    if len(known) < len(sizes):
        rest = I.quotient(I.numel(x.shape), I.numel(known))
        sizes = tuple(rest if n is REST else n for n in sizes)
    if sizes == x.shape:
        return x
    groups = _groups(x.shape, sizes)

    def at(index: Index) -> Term:
        own: list[Term] = []
        for (a, b), (c, d) in groups:
            own.extend(I.unravel(I.linear(index[c:d], sizes[c:d]), x.shape[a:b]))
        return x.at(tuple(own))

    return tensor(sizes, at, x.type)


def _groups(old: tuple[Term, ...], new: tuple[Term, ...]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Consecutive ranges of both shapes with equal numbers of elements, as short as can be seen."""
    out = []
    a = c = 0
    for b in range(1, len(old) + 1):
        ends = [
            d
            for d in range(c, len(new) + 1)
            if I.numel(old[a:b]) is I.numel(new[c:d]) and I.numel(old[b:]) is I.numel(new[d:])
        ]
        if ends:
            out.append(((a, b), (c, ends[0])))
            a, c = b, ends[0]
    if (a, c) != (len(old), len(new)):
        out.append(((a, len(old)), (c, len(new))))
    return out


def flatten(x: SymbolicTensor) -> SymbolicTensor:
    return reshape(x, [I.numel(x.shape)])


def permute(x: SymbolicTensor, dims: Sequence[int]) -> SymbolicTensor:
    order = [x.dim(d) for d in dims]

    def at(index: Index) -> Term:
        own = [T.const(0)] * x.rank
        for k, d in enumerate(order):
            own[d] = index[k]
        return x.at(tuple(own))

    return tensor([x.shape[d] for d in order], at, x.type)


def along(x: SymbolicTensor, d: int, size: TermLike, f: Callable[[Term], Term]) -> SymbolicTensor:
    """The tensor with dimension d of another size, whose index is sent through f."""
    d = x.dim(d)
    shape = (*x.shape[:d], T.const(size), *x.shape[d + 1 :])
    return tensor(shape, lambda i: x.at((*i[:d], f(i[d]), *i[d + 1 :])), x.type)


def select(x: SymbolicTensor, d: int, k: TermLike) -> SymbolicTensor:
    """x with dimension d at index k, which may be negative."""
    d = x.dim(d)
    k = wrapped(k, x.shape[d])
    return tensor(x.shape[:d] + x.shape[d + 1 :], lambda i: x.at((*i[:d], k, *i[d:])), x.type)


def unsqueeze(x: SymbolicTensor, d: int) -> SymbolicTensor:
    d = d % (x.rank + 1)
    return tensor((*x.shape[:d], ONE, *x.shape[d:]), lambda i: x.at(i[:d] + i[d + 1 :]), x.type)


def wrapped(k: TermLike, size: Term) -> Term:
    """An index that may count from the end, as one from the start."""
    k = T.const(k)
    if I.nonnegative(k):
        return k
    if k.is_const:
        return I.normal(k + size)
    if not k.free and not T.reads(k) and I.nonnegative(-k - 1):
        return I.normal(k + size)
    return k

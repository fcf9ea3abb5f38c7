"""tt.reduce, tt.scan, tt.dot, tt.histogram as folds over one axis: their cost does not depend on its size.

reduce(x, o)[i] = fold(k, x[i, k])                  dot(a, b, c)[i, j] = c[i, j] + sum(k, a[i, k] * b[k, j])
scan(x, o)[i] = fold(k, x[k] if k <= i else unit)   histogram(x)[b] = sum(k, 1 if x[k] = b else 0)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trilift.lift.terms import construct as T
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Op, Type

from ..model.program import term_type
from .combiners import ARGUMENT, BITS, Extreme, Meaning, meaning
from .indexing import Extent
from .merge_laws import Affine, Join
from .tile import ZERO, Lanes, Tile, constant, moved, replaced, scalar, signed, with_lane

if TYPE_CHECKING:
    from .parametric import Execution

Results = list[Tile] | None  # None: the operation has no meaning here
LONGEST = 32  # elements of a chain: there is no fold of bits
_UNITS = {"sum": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}


def reduce(run: Execution, op: Op, *xs: Tile) -> Results:
    """One fold per operand, or the extreme value and where it is."""
    axis, found = op.attrs["axis"], _meaning(run, op)
    n = xs[0].shape[axis]
    if n == 1:
        return [_only(v.type, axis, x) for v, x in zip(op.results, xs, strict=True)]
    over = run.fold_axis(n)
    if isinstance(found, Extreme):
        return _extreme(run, op, found, xs, over)
    if found is not None and not isinstance(found, list):
        return _joined(run, op, found, xs, over, axis)
    if found is None or (any(f in BITS for f in found) and not _short(n)):
        return None
    return [_folded_tile(run, v.type, f, over, axis, x) for v, x, f in zip(op.results, xs, found, strict=True)]


def _joined(run: Execution, op: Op, found: Join, xs: tuple[Tile, ...], over: Axis, axis: int) -> Results:
    """The totals of a join. The order of the elements is not that of a reduction, so that maps are not composed."""
    if isinstance(found, Affine):
        return None
    unknown = [run.opaque(op, term_type(v.type)) for v in op.results]

    @functools.cache
    def totals(i: Lanes) -> list[Term]:
        at = [functools.partial(_at, x, i, axis) for x in xs]
        return found.totals(lambda name, body: folded(name, over, i, body), at, [u(i) for u in unknown])

    return _components(op, totals)


def _at(x: Tile, i: Lanes, axis: int, k: Term) -> Term:
    return x.at(with_lane(i, axis, k))


def _components(op: Op, every: Callable[[Lanes], list[Term]]) -> list[Tile]:
    """The results of an operation from the function that gives all of them."""

    def component(k: int) -> Callable[[Lanes], Term]:
        return lambda i: every(i)[k]

    return [Tile(v.type, component(k)) for k, v in enumerate(op.results)]


def _composed(
    found: Affine, xs: tuple[Tile, ...], over: Axis, axis: int, reverse: bool
) -> Callable[[Lanes], list[Term]]:
    """Maps 0..i composed: prod(k <= i, a_k) and sum(k <= i, b_k prod(k < j <= i, a_j)); in reverse, from i on."""
    factor, shift = xs[found.factor], xs[found.shift]
    inner = Axis(over.name + "j", over.size)
    before = lambda x, y, row: T.make(row, y, x) if reverse else T.make(row, x, y)  # noqa: E731

    def element(i: Lanes) -> list[Term]:
        last = i[axis]
        at = lambda x, k: x.at(replaced(i, axis, k))  # noqa: E731
        product = folded("prod", over, i, lambda k: T.where(before(k, last, "le"), at(factor, k), 1))

        def later(k: Term) -> Term:
            within = lambda j: T.make("and", before(k, j, "lt"), before(j, last, "le"))  # noqa: E731
            return folded("prod", inner, (*i, k), lambda j: T.where(within(j), at(factor, j), 1))

        mapped = lambda k: T.where(before(k, last, "le"), T.mul(at(shift, k), later(k)), 0)  # noqa: E731
        out = [product, product]
        out[found.shift] = folded("sum", over, i, mapped)
        return out

    return element


def _short(n: Extent) -> bool:
    return isinstance(n, int) and n <= LONGEST


def _only(of_type: Type, axis: int, x: Tile) -> Tile:
    """Of an axis of size 1."""
    return moved(of_type, x, lambda i: with_lane(i, axis, ZERO))


def _folded_tile(run: Execution, of_type: Type, fold: str, over: Axis, axis: int, x: Tile) -> Tile:
    n = x.shape[axis]
    if fold in BITS and isinstance(n, int):
        return Tile(of_type, lambda i: _chain(fold, [x.at(with_lane(i, axis, T.const(k))) for k in range(n)]))
    if x.whole is not None and fold in _UNITS:
        whole = _ordered(run, fold, x.whole)
        axes = [run.fold_axis(n) for n in whole.shape]
        return Tile(of_type, lambda i: _of_all(fold, axes, whole, i, ()))
    y = _ordered(run, fold, x)
    return Tile(of_type, lambda i: folded(fold, over, i, lambda k: y.at(with_lane(i, axis, k))))


def _of_all(fold: str, axes: Sequence[Axis], x: Tile, lanes: Lanes, first: Lanes) -> Term:
    """The fold of all elements of a tile, dimension by dimension."""
    if len(first) == len(axes):
        return x.at(first)
    if x.shape[len(first)] == 1:
        return _of_all(fold, axes, x, lanes, (*first, ZERO))
    return folded(fold, axes[len(first)], (*lanes, *first), lambda k: _of_all(fold, axes, x, lanes, (*first, k)))


def _chain(row: str, xs: list[Term]) -> Term:
    return functools.reduce(OPS[row].on_terms, xs)


def scan(run: Execution, op: Op, *xs: Tile) -> Results:
    """Prefix i is the fold of elements 0..i (from the end, in reverse)."""
    axis, found, reverse = op.attrs["axis"], _meaning(run, op), op.attrs.get("reverse", False)
    if isinstance(found, Affine):
        composed = functools.cache(_composed(found, xs, run.fold_axis(xs[0].shape[axis]), axis, reverse))
        return _components(op, composed)
    if not isinstance(found, list) or any(f not in _UNITS for f in found):
        return None
    over = run.fold_axis(xs[0].shape[axis])

    def prefix(f: str, x: Tile) -> Callable[[Lanes], Term]:
        def element(i: Lanes) -> Term:
            within = lambda k: T.make("le", i[axis], k) if reverse else T.make("le", k, i[axis])  # noqa: E731
            return folded(f, over, i, lambda k: T.where(within(k), x.at(replaced(i, axis, k)), _UNITS[f]))

        return element

    return [Tile(v.type, prefix(f, _ordered(run, f, x))) for v, x, f in zip(op.results, xs, found, strict=True)]


def folded(name: str, over: Axis, lanes: Lanes, body: Callable[[Term], Term]) -> Term:
    """The fold of body(k) for k along `over`, whose name yields to axes in the lanes."""
    taken = {a.name for lane in lanes for a in lane.free}
    over = T.fresh_axis(over, taken)
    element = body(T.axis(over))
    as_number = lambda: T.where(element, 1, 0)  # noqa: E731
    match name:
        case "any":
            return T.make("lt", 0, T.fold("amax", over, as_number()))
        case "all":
            return T.make("lt", 0, T.fold("amin", over, as_number()))
        case "parity":
            return T.make("eq", T.make("mod", T.fold("sum", over, as_number()), 2), 1)
    return T.fold(name, over, element)


def _ordered(run: Execution, fold: str, x: Tile) -> Tile:
    """Narrow integers that are compared are the signed numbers."""
    return signed(run.ranges, x) if fold in ARGUMENT else x


def _meaning(run: Execution, op: Op) -> Meaning | None:
    types = [scalar(v.type) for v in op.operands]

    def combine(a: list[Term], b: list[Term]) -> list[Term]:
        args = [constant(t, x) for t, x in zip(types * 2, [*a, *b], strict=True)]
        return [x.at() for x in run.pure_region(op.regions[0], args)]

    return meaning(types, combine, run.ranges)


def _extreme(run: Execution, op: Op, found: Extreme, xs: tuple[Tile, ...], over: Axis) -> Results:
    """(max(k, v[k]), index[argmax(k, v[k])]) where index[k] = k + c."""
    axis, n = op.attrs["axis"], xs[0].shape[op.attrs["axis"]]
    values, index = _ordered(run, found.fold, xs[0]), xs[1]
    last = found.ties == "last"

    def body(i: Lanes) -> Callable[[Term], Term]:
        return lambda k: values.at(with_lane(i, axis, T.sub(n - 1, k) if last else k))

    unknown = run.opaque(op, T.INT)

    def position(i: Lanes) -> Term:
        k = T.axis(T.fresh_axis(over, {a.name for lane in i for a in lane.free}))
        start = T.sub(index.at(with_lane(i, axis, k)), k)
        if found.ties == "any" or k.attr in start.free:
            return unknown(i)
        at = folded(ARGUMENT[found.fold], over, i, body(i))
        return T.add(start, T.sub(n - 1, at) if last else at)

    best = Tile(op.results[0].type, lambda i: folded(found.fold, over, i, body(i)))
    where = Tile(op.results[1].type, position)
    lanes = run.generic_lanes(where.shape)
    if where.at(lanes) is unknown(lanes):
        run.cannot(op)
    return [best, where]


def dot(run: Execution, op: Op, a: Tile, b: Tile, c: Tile) -> Results:
    """Reals are exact whatever inputPrecision says."""
    over = run.fold_axis(a.shape[-1])
    x, y = (signed(run.ranges, t) for t in (a, b))

    def element(lanes: Lanes) -> Term:
        *batch, i, j = lanes
        products = lambda k: T.mul(x.at((*batch, i, k)), y.at((*batch, k, j)))  # noqa: E731
        return T.add(c.at(lanes), folded("sum", over, lanes, products))

    return [Tile(op.results[0].type, element)]


def histogram(run: Execution, op: Op, x: Tile, mask: Tile | None = None) -> Results:
    """Element b is how many x are b; numbers outside the bins count nowhere."""
    over = run.fold_axis(x.shape[0])
    values = signed(run.ranges, x)

    def hit(b: Term, k: Term) -> Term:
        same = T.make("eq", values.at((k,)), b)
        return same if mask is None else T.make("and", mask.at((k,)), same)

    count = lambda lanes: folded("sum", over, lanes, lambda k: T.where(hit(lanes[0], k), 1, 0))  # noqa: E731
    return [Tile(op.results[0].type, count)]

"""Hints to the compiler, which believes them: tl.multiple_of, tl.max_contiguous, tl.max_constancy.

    contiguity C      x[i] = x[C (i // C)] + i % C           of each dimension (Triton's AxisInfo)
    constancy K       x[i] = x[K (i // K)]
    divisibility D    D divides the first element of each contiguous group; without a contiguity it divides x[i], or it
                      divides x[0] and x[i] = x[0] + i

A kernel with a hint that is false loads and stores other elements than it says. Of pointers nothing is shown here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Op, Type

from .tile import Lanes, Tile, replaced

ONE = T.const(1)
CONTIGUITY, CONSTANCY, DIVISIBILITY = HINTS = ("tt.contiguity", "tt.constancy", "tt.divisibility")


def hinted(op: Op) -> bool:
    """Whether the compiler was told something of the result."""
    return any(h in op.attrs for h in HINTS)


def condition(op: Op, x: Tile, unknown: Callable[[Lanes], Term]) -> Tile:
    """In each lane, whether what the compiler was told of the result is so; `unknown` of pointers."""
    of_type = Type("i1", x.type.shape, None, "i1")
    if x.type.element == "ptr" or not x.type.is_int:
        return Tile(of_type, unknown)
    return Tile(of_type, lambda lanes: T.make("and", T.const(True), *_held(op, x, lanes)), (x,))


def _held(op: Op, x: Tile, lanes: Lanes) -> Iterator[Term]:
    here = x.at(lanes)
    if not x.shape:
        yield from (_divides(n, here) for n in _sizes(op, DIVISIBILITY, 1))
        return
    contiguity = _sizes(op, CONTIGUITY, len(x.shape))
    for d, (lane, c) in enumerate(zip(lanes, contiguity, strict=True)):
        if c is not ONE:
            yield T.make("eq", here, T.add(_first(x, lanes, d, c), T.make("mod", lane, c)))
    for d, (_, k) in enumerate(zip(lanes, _sizes(op, CONSTANCY, len(x.shape)), strict=True)):
        if k is not ONE:
            yield T.make("eq", here, _first(x, lanes, d, k))
    for d, (lane, n) in enumerate(zip(lanes, _sizes(op, DIVISIBILITY, len(x.shape)), strict=True)):
        if n is not ONE and contiguity[d] is not ONE:
            yield _divides(n, _first(x, lanes, d, contiguity[d]))
        elif n is not ONE:
            start = x.at(replaced(lanes, d, T.const(0)))
            whole = T.make("and", _divides(n, start), T.make("eq", here, T.add(start, lane)))
            yield T.make("or", _divides(n, here), whole)


def _sizes(op: Op, hint: str, rank: int) -> Sequence[Term]:
    """The hint for each dimension, which may be a block size; one stands for all of them."""
    given = op.attrs.get(hint, 1)
    return list(map(T.const, given)) if isinstance(given, list | tuple) else [T.const(given)] * rank


def _first(x: Tile, lanes: Lanes, d: int, n: Term) -> Term:
    """The element at the start of the group of n."""
    return x.at(replaced(lanes, d, T.mul(n, T.make("floordiv", lanes[d], n))))


def _divides(n: Term, x: Term) -> Term:
    return T.make("eq", T.make("mod", x, n), 0)

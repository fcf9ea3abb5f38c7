"""Index arithmetic: what it says is certain holds for all sizes and indices, and what it rewrites keeps its value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Axis, Term

N, M = T.size("N"), T.size("M")
ROW, LANE = Axis("i", N), Axis("k", T.const(3))
i, k = T.axis(ROW), T.axis(LANE)
SIZES = range(1, 8)
SMALL = [T.const(0), T.const(1), T.const(3), N, N - 1, i, k, I.mod(N, 4), I.floordiv(N, 4), T.make("min", N, 3)]
TERMS = [
    *SMALL, I.mod(N, 4) + k, M * I.mod(N, 4), N - I.mod(N, 3), 3 - I.mod(N, 4), i - k, N - i, M * i, i * 3 + k,
    T.make("floordiv", i - 5, 3), T.make("floordiv", i, T.const(-2)), T.make("min", i - 2, N), T.make("max", i - 2, 1),
    T.where(T.make("lt", i, 2), i - 3, N), T.make("mod", i - 4, T.const(3)), I.mod(i, 3),
    I.floordiv(i * 3 + k, 3), T.mul(-1, I.mod(N, 4), M), N - M, T.mul(-2, i) + N, i * M - M,
]  # fmt: skip


def places(t: Term) -> Iterator[tuple[Term, dict[str, int]]]:
    """The term at each index, with sizes."""
    for n, m in product(SIZES, SIZES if "M" in {s.attr for s in t.walk()} else (1,)):
        for a, b in product(range(n) if ROW in t.free else (0,), range(3) if LANE in t.free else (0,)):
            yield T.substitute(t, {ROW: T.const(a), LANE: T.const(b)}), {"N": n, "M": m}


def values(t: Term) -> list[int | bool]:
    found = [value(s, dims) for s, dims in places(t)]
    assert None not in found
    return found  # type: ignore[return-value]


@pytest.mark.smoke
@pytest.mark.parametrize("a", TERMS, ids=repr)
def test_what_is_certain_holds_everywhere(a: Term) -> None:
    if I.nonnegative(a):
        assert min(values(a)) >= 0
    for b in SMALL:
        known = I.less(a, b)
        if known.is_const:
            assert {*values(T.node("lt", (a, b), None, T.BOOL))} == {known.attr}, (a, b)
        if I.below(a, b):
            assert all(values(T.node("lt", (a, b), None, T.BOOL))) and min(values(a)) >= 0, (a, b)


@pytest.mark.smoke
def test_a_term_with_an_unknown_name_has_no_value() -> None:
    unknown = T.size("Q")
    for t in (unknown, N + unknown, T.make("min", N, unknown), T.make("lt", unknown, N), T.node("nosuch", (N,), None)):
        assert value(t, {"N": 1}) is None


@pytest.mark.smoke
def test_the_usual_is_certain() -> None:
    assert I.less(i, N) is T.const(True) and I.less(N, i) is T.const(False) and I.below(i * 3 + k, 3 * N)
    assert I.less(I.mod(N, 4), 4) is T.const(True) and I.less(i - 1, N) is T.const(True)
    assert not I.less(I.mod(N, 4), 3).is_const and not I.less(2, I.mod(N, 4)).is_const
    assert not I.less(k, I.mod(N, 4)).is_const


@pytest.mark.smoke
@pytest.mark.parametrize("a", TERMS, ids=repr)
def test_quotients_and_remainders_keep_their_values(a: Term) -> None:
    for d in (T.const(2), T.const(3), N, M):
        for op, made in (("floordiv", I.floordiv(a, d)), ("mod", I.mod(a, d)), ("add", I.normal(a + d))):
            same = T.make("eq", T.node(op, (a, d), None, T.INT), made)
            assert all(values(same)), (op, a, d, made)


@pytest.mark.smoke
@pytest.mark.parametrize("shape", [(N, T.const(3)), (N, M), (T.const(3), N, T.const(2)), (M, N, T.const(3))], ids=repr)
def test_a_position_is_unravelled(shape: tuple[Term, ...]) -> None:
    axes = [Axis(f"a{d}", n) for d, n in enumerate(shape)]
    index = tuple(map(T.axis, axes))
    again = I.unravel(I.linear(index, shape), shape)
    for n, m in product((1, 2, 5), (1, 3)):
        sizes = [int(value(s, {"N": n, "M": m}) or 0) for s in shape]
        for at in product(*map(range, sizes)):
            numbers = {a: T.const(x) for a, x in zip(axes, at, strict=True)}
            assert [value(T.substitute(t, numbers), {"N": n, "M": m}) for t in again] == [*at]

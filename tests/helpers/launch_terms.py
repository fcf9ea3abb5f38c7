"""Accesses written by hand, for tests of stores and safety."""

from __future__ import annotations

from collections.abc import Sequence

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Op, Type
from trilift.verify.memory.sites import Site
from trilift.verify.model.configuration import Buffer, View
from trilift.verify.model.program import PIDS, Access, Loop, pointer

M, N, H = T.size("M"), T.size("N"), T.size("H")
PID, PID1, _ = PIDS
SIZES = frozenset(T.make("le", 1, n) for n in (M, N, H))
OP = Op("tt.store", [], [], {})


def lt(a: T.TermLike, b: T.TermLike) -> Term:
    return T.make("lt", a, b)


def le(a: T.TermLike, b: T.TermLike) -> Term:
    return T.make("le", a, b)


def both(*xs: Term) -> Term:
    return T.make("and", *xs)


def div(a: T.TermLike, b: T.TermLike) -> Term:
    return T.make("floordiv", a, b)


def mod(a: T.TermLike, b: T.TermLike) -> Term:
    return T.make("mod", a, b)


def cdiv(a: Term, b: T.TermLike) -> Term:
    return div(T.add(a, T.sub(b, 1)), b)


def buffer(length: T.TermLike, name: str = "y") -> Buffer:
    return Buffer(name, "f32", T.const(length), "aten.empty", lambda o: T.undef("empty"))


def contiguous(*shape: T.TermLike) -> View:
    sizes = tuple(T.const(n) for n in shape)
    strides = [T.const(1)]
    for n in sizes[:0:-1]:
        strides.insert(0, T.mul(strides[0], n))
    return View(buffer(T.mul(*sizes)), T.const(0), sizes, tuple(strides), "f32")


def strided(shape: Sequence[Term], strides: Sequence[T.TermLike]) -> View:
    return View(buffer(T.size("L")), T.const(0), tuple(shape), tuple(map(T.const, strides)), "f32")


def lanes(*sizes: int) -> tuple[tuple[Axis, ...], list[Term]]:
    axes = tuple(Axis(f"a{k}", T.const(n)) for k, n in enumerate(sizes))
    return axes, [T.axis(a) for a in axes]


def loop(name: str, trips: Term) -> Loop:
    return Loop(OP, Axis(name, trips), trips, T.const(0), T.const(1), (), T.const(True))


def site(  # noqa: PLR0913 - the parts of an access, most of them left out
    view: View, offset: Term, guard: Term, axes: Sequence[Axis] = (), grid: Sequence[T.TermLike] = (1, 1, 1),
    loops: Sequence[Loop] = (), kind: str = "store", order: int = 0, value: Term | None = None,
) -> Site:  # fmt: skip
    """An access at element `offset` of the view's buffer."""
    stored = value if value is not None else T.scalar("v")
    access = Access(kind, OP, tuple(axes), tuple(loops), guard, pointer("y", offset), stored, Type("f32"), order)
    p, q, r = map(T.const, grid)
    return Site(access, view, T.add(view.offset, offset), guard, (p, q, r))

"""Rewriting and substitution of terms."""

from __future__ import annotations

import time

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis

N = T.size("N")
A, B = Axis("i", N), Axis("j", N)
X, Y = T.read("x", (T.axis(A),)), T.read("y", (T.axis(A),))


def test_what_is_replaced_is_not_replaced_again() -> None:
    negative = {X: -X}.get
    assert T.rewrite(T.make("exp", -X), negative) is T.make("exp", X)
    assert T.rewrite(X - Y, {X: -X, Y: -Y}.get) is Y - X
    assert T.rewrite(X + X * Y, {X: Y, Y: X}.get) is Y + X * Y


def test_a_changed_argument_is_offered_with_its_parent() -> None:
    fold = {T.make("exp", Y): X}.get
    assert T.rewrite(T.make("log", T.make("exp", X)), lambda s: {X: Y}.get(s) or fold(s)) is T.make("log", X)


def test_an_axis_is_replaced_but_where_it_is_bound() -> None:
    inner = T.fold("sum", A, X)
    assert T.substitute(inner, {A: T.axis(B)}) is inner
    assert T.substitute(X + inner, {A: T.axis(B)}) is T.read("x", (T.axis(B),)) + inner


def test_a_bound_axis_that_the_replacement_mentions_is_renamed() -> None:
    both = T.read("z", (T.axis(A), T.axis(B)))
    got = T.substitute(T.fold("sum", B, both), {A: T.axis(B) + 1})
    [over] = [t.attr for t in got.walk() if t.op == "sum"]
    assert over.name != "j" and got.free == {B}
    assert got is T.fold("sum", over, T.read("z", (T.axis(B) + 1, T.axis(over))))


def test_shared_terms_are_substituted_once() -> None:
    t = X
    for _ in range(60):
        t = T.make("max", T.make("exp", t), T.make("log", t))
    start = time.process_time()
    got = T.substitute(T.fold("sum", B, t), {A: T.const(3)})
    assert not got.free and time.process_time() - start < 2.0  # 2**60 steps without

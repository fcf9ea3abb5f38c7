"""Numbers modulo a power of two: a residue is congruent, and a wrapped number is in its range."""

from __future__ import annotations

import random

import pytest

from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.ring import is_wrapped, residue, wrapped
from trilift.lift.terms.term import Term

x, y = (T.read(n, (T.const(0),), T.INT) for n in "xy")
VALUES = (-300, -129, -128, -5, -1, 0, 1, 2, 7, 127, 128, 255, 256, 70000)


def at(t: Term, a: int, b: int) -> int:
    found = value(T.rewrite(t, {x: T.const(a), y: T.const(b)}.get), {})
    assert isinstance(found, int), t
    return found


def drawn(rng: random.Random, depth: int) -> Term:
    if depth == 0:
        return rng.choice([x, y, T.const(rng.randint(-200, 200))])
    a, b = drawn(rng, depth - 1), drawn(rng, depth - 1)
    op = rng.choice(["add", "mul", "where", "mod", "mod", "wrap8", "wrap16", "floordiv", "max"])
    if op == "where":
        return T.where(T.make("lt", a, b), a, b)
    if op in ("mod", "floordiv"):
        return T.make(op, a, rng.choice([3, 64, 128, 256, 512, 768, 1 << 16]))
    return T.make(op, a) if OPS[op].arity == 1 else T.make(op, a, b)


@pytest.mark.smoke
@pytest.mark.parametrize("bits", [7, 8, 16])
def test_a_residue_is_congruent_and_a_wrapped_number_in_range(bits: int) -> None:
    rng, shorter = random.Random(bits), 0
    for _ in range(80):
        t = drawn(rng, 2)
        less = residue(t, bits)
        shorter += less is not t
        for low in (0, -(1 << bits - 1)):
            full = 1 << bits
            made = wrapped(t, low, low + full)
            for a, b in zip(VALUES, rng.sample(VALUES, len(VALUES)), strict=True):
                assert (at(less, a, b) - at(t, a, b)) % full == 0, (t, less, a, b)
                assert at(made, a, b) == (at(t, a, b) - low) % full + low, (t, made, a, b)
    assert shorter >= 5


@pytest.mark.smoke
def test_only_multiples_of_the_modulus_are_left_out() -> None:
    assert residue(T.make("mod", x, 512), 8) is x and residue(T.make("wrap16", x), 8) is x
    for kept in (T.make("mod", x, 3), T.make("mod", x, 128), T.make("wrap8", x)):
        assert residue(kept, 16) is kept or residue(kept, 8) is x
        assert residue(T.add(kept, y), 16) is T.add(kept, y)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_wrapped_number_is_known_as_one_of_its_width(bits: int) -> None:
    for low, high in ((0, 1 << bits), (-(1 << bits - 1), 1 << bits - 1)):
        assert is_wrapped(wrapped(x, low, high), low, high)
        assert not is_wrapped(wrapped(x, low, high), 2 * low, 2 * high)
        assert not is_wrapped(T.make("mod", x, 3), low, high) and not is_wrapped(x, low, high)

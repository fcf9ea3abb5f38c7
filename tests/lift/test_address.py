"""Addresses that depend on data: which element they mean, at every value of the index; none between two elements."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from trilift.lift.capture.trace import Buffer, TensorRef
from trilift.lift.errors import TriliftError, Unsupported
from trilift.lift.interpreter.address import gather, multi_index, reach
from trilift.lift.interpreter.memory import Memory
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import SYMBOLIC, Ids
from trilift.lift.terms.fit import value
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.term import Axis, Term

START = 64
V, W = Axis("v", T.const(9)), Axis("w", T.const(9))
v, w = T.read("index", [T.axis(V)], T.INT), T.read("other", [T.axis(W)], T.INT)
SHAPES = [((6,), (1,)), ((2, 3), (3, 1)), ((2, 3), (4, 1)), ((3, 2), (1, 3)), ((2, 3), (6, 2)), ((2, 1, 3), (3, 3, 1))]


def memory_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Memory, TensorRef]:
    """A buffer with an input in it, whose elements are reads; all around it is undefined."""
    memory = Memory(SYMBOLIC)
    size = 4 * (sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1)
    ref = TensorRef(START, shape, strides, "f32", Buffer(START, size, "input:x", None))
    ids = [T.read("x", index).id for index in product(*map(range, shape))]
    memory.define(ref, Ids(np.array(ids, np.int32).reshape(shape)))
    memory.buffers[START].input = ("x", ref)
    return memory, ref


def at(t: Term, x: int, y: int) -> Term:
    """The term where the two elements that were read are these numbers."""
    return T.rewrite(t, {v: T.const(x), w: T.const(y)}.get)


@pytest.mark.smoke
@pytest.mark.parametrize(("shape", "strides"), SHAPES, ids=str)
@pytest.mark.parametrize(
    ("c", "k", "d"), [(1, 0, 0), (3, 1, 0), (1, 1, 1), (2, 0, 1), (4, 1, 0), (-1, 0, 2), (6, 2, 0)]
)
def test_an_address_means_the_element_that_is_there(
    shape: tuple[int, ...], strides: tuple[int, ...], c: int, k: int, d: int
) -> None:
    memory, ref = memory_of(shape, strides)
    ranges = Ranges({"index": (0, 1), "other": (0, 2)})
    address = T.add(START + 4 * d, T.mul(4 * c, v), T.mul(4 * k, w))
    try:
        found = reach(memory, ranges, address, {}, 4, None)
        indices = multi_index(found, ref, ranges, {})
        element = gather(memory, ranges, found, {}, None)
    except TriliftError:
        return
    there = {int(a): i for i, a in np.ndenumerate(ref.addresses())}
    for x, y in product((0, 1), (0, 1, 2) if k else (0,)):
        place = START + 4 * (d + c * x + k * y)
        if place not in there:
            assert indices is None or not START <= place < START + memory.buffers[START].nbytes, (x, y, indices)
            continue
        assert indices is None or tuple(value(at(t, x, y), {}) for t in indices) == there[place], (x, y, indices)
        assert at(element, x, y) is T.read("x", list(there[place])), (x, y)


@pytest.mark.smoke
def test_every_cell_that_may_be_meant_is_a_candidate() -> None:
    memory, _ = memory_of((12,), (1,))
    ranges = Ranges({"index": (-5, 9)})
    for c, d in product((1, 2, 3, -2), (0, 1, 5)):
        found = reach(memory, ranges, T.add(START + 4 * d, T.mul(4 * c, v)), {}, 4, None)
        told = dict(found.candidates())
        for x in range(-5, 10):
            cell = d + c * x
            if 0 <= cell < 12:
                assert value(at(told[cell], x, 0), {}) is True
                assert not [k for k, t in told.items() if k != cell and value(at(t, x, 0), {})]


@pytest.mark.smoke
@pytest.mark.parametrize(
    "address", [T.add(START + 2, T.mul(4, v)), T.add(START, T.mul(2, v)), T.add(START, T.mul(6, v))]
)
def test_nothing_lies_between_two_elements(address: Term) -> None:
    memory, _ = memory_of((12,), (1,))
    with pytest.raises(Unsupported, match="between the elements"):
        reach(memory, Ranges({"index": (0, 3)}), address, {}, 4, None)

"""Memory: strides, aliases, element types, atomics, pointers as numbers, tensors without elements."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from test_interpret import first, run

from trilift.lift.capture.run import capture
from trilift.lift.capture.trace import Buffer, TensorRef
from trilift.lift.cases.declaration import case
from trilift.lift.errors import Unsupported
from trilift.lift.interpreter.memory import Memory
from trilift.lift.replay.execute import spec
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import SYMBOLIC
from trilift.lift.terms.term import TERMS


@triton.jit
def copy_kernel(x, out, N, sm, sn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out + row * N + i, tl.load(x + row * sm + i * sn, mask=i < N) + 1, mask=i < N)


def copied(x):
    out = torch.empty(x.shape)
    copy_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1), BLOCK=8)
    return out


@case(x="f32[M,N] strided")
def strided(x):
    return copied(x)


def test_strided_input():
    specs = run(strided, lambda x: x + 1, M=3, N=5)
    assert first(specs["out"]) is T.read("x", [0, 0]) + 1


@case(x="f32[M,N]")
def transposed(x):
    return copied(x.t())


def test_view_of_an_input():
    specs = run(transposed, lambda x: x.t() + 1, M=3, N=5)
    assert TERMS[specs["out"].ids[4, 2]] is T.read("x", [2, 4]) + 1


def test_no_elements():
    assert run(transposed, lambda x: x.t() + 1, M=0, N=5)["out"].ids.shape == (5, 0)


@triton.jit
def double_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@case(x="f32[N]", y="f32[N]")
def in_place(x, y):
    double_kernel[(1,)](x, x.numel(), BLOCK=8)
    double_kernel[(1,)](y[:2], 2, BLOCK=8)
    return x


def test_outputs_that_are_inputs():
    specs = run(in_place, lambda x, y: {"out": 2 * x, "y": torch.cat([2 * y[:2], y[2:]])}, N=5)
    assert specs["out"].in_place == "x" and specs["y"].in_place == "y"


@triton.jit
def lock_kernel(x, out, lock, n):
    i = tl.program_id(0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.atomic_add(lock + 1, 1)
    tl.store(out + seen, tl.load(x + i))
    tl.atomic_xchg(lock, 0)


@case(x="f32[N]")
def locked(x):
    out, lock = torch.empty_like(x), torch.zeros(2, dtype=torch.int32)
    lock_kernel[(x.numel(),)](x, out, lock, x.numel())
    return out


def test_locks_and_tickets_are_numbers():
    assert first(run(locked, lambda x: x, N=5)["out"]) is T.read("x", [0])


@triton.jit
def table_kernel(table, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0) * n + i, tl.load(x + i, mask=i < n), mask=i < n)


@case(x="f32[N]", y="f32[N]")
def pointers(x, y):
    out = torch.empty(2, x.numel())
    table_kernel[(2,)](torch.tensor([y.data_ptr(), x.data_ptr()]), out, x.numel(), BLOCK=8)
    return out


def test_pointers_stored_as_integers():
    run(pointers, lambda x, y: torch.stack([y, x]), N=5)


@triton.jit
def bool_kernel(m, x, out, flags, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    keep = tl.load(m + i, mask=i < n, other=0)
    v = tl.load(x + i, mask=keep & (i < n), other=-1.0)
    tl.store(out + i, v, mask=i < n)
    tl.store(flags + i, (v > 0) & keep, mask=i < n)


@case(m="bool[N]", x="f32[N]")
def booleans(m, x):
    out, flags = torch.empty_like(x), torch.empty_like(m)
    bool_kernel[(1,)](m, x, out, flags, x.numel(), BLOCK=8)
    return {"out": out, "flags": flags}


def test_masks_that_are_inputs():
    def want(m, x):
        v = torch.where(m, x, -1.0)
        return {"out": v, "flags": (v > 0) & m}

    specs = run(booleans, want, N=5)
    m, x = T.read("m", [0], T.BOOL), T.read("x", [0])
    assert first(specs["out"]) is T.where(m, x, -1)
    assert first(specs["flags"]) is T.make("and", m, T.make("lt", 0, T.where(m, x, -1)))


@triton.jit
def bytes_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    words = out.to(tl.pointer_type(tl.int32), bitcast=True)
    tl.store(words + i, i * 0x01010101)
    tl.store(x + i, tl.load(out + i).to(tl.float32))


@case(x="f32[4]")
def as_bytes(x):
    out = torch.empty(16, dtype=torch.uint8)
    bytes_kernel[(1,)](x, out, BLOCK=4)
    return out


def test_known_integers_are_seen_as_bytes():
    want = torch.arange(4).repeat_interleave(4)
    run(as_bytes, lambda x: {"out": want, "x": want[:4]})


@triton.jit
def halves_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x.to(tl.pointer_type(tl.int16), bitcast=True) + i))


@case(x="f32[4]")
def halves(x):
    out = torch.empty(8, dtype=torch.int16)
    halves_kernel[(1,)](x, out, BLOCK=8)
    return out


def test_parts_of_reals_are_unsupported():
    with pytest.raises(Unsupported, match="input:x holds f32 and is accessed as i16"):
        spec(capture(halves, {}))


@triton.jit(noinline=True)
def helper(v, k):
    if k > 2:
        return v * k
    return v - k


@triton.jit
def call_kernel(x, out):
    i = tl.program_id(0)
    tl.store(out + i, helper(tl.load(x + i), i))


@case(x="f32[N]")
def calls(x):
    out = torch.empty_like(x)
    call_kernel[(x.numel(),)](x, out)
    return out


def test_functions_are_called():
    k = torch.arange(5)
    run(calls, lambda x: torch.where(k > 2, x * k, x - k), N=5)


@triton.jit
def sort_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@case(x="f32[4]")
def sort(x):
    out = torch.empty_like(x)
    sort_kernel[(1,)](x, out, BLOCK=4)
    return out


def test_sorting_network():
    run(sort, lambda x: x.sort().values)


def test_a_larger_buffer_at_the_address_of_a_smaller_one_is_new():
    memory = Memory(SYMBOLIC)
    small = memory.allocate(Buffer(64, 16, "aten.empty", None), "f32")
    assert memory.allocate(Buffer(64, 8, "aten.empty", None), "f32") is small
    large = memory.allocate(Buffer(64, 32, "aten.zeros", None), "f32")
    assert large is not small and (large.nbytes, large.origin, len(large.data)) == (32, "aten.zeros", 8)
    assert memory.find(64 + 31) is large and memory.find(64 + 32) is None


def test_fresh_memory_is_undefined():
    memory = Memory(SYMBOLIC)
    buffer = Buffer(64, 16, "aten.empty", None)
    got = memory.fetch(TensorRef(64, (4,), (1,), "f32", buffer))
    assert {repr(t) for t in got.terms()} == {"undefined(aten.empty)"}
    memory.define(TensorRef(64, (2,), (2,), "f32", buffer), np.array([1.5, 2.5]))
    got = memory.fetch(TensorRef(64, (4,), (1,), "f32", buffer))
    assert [repr(t) for t in got.terms()] == ["1.5", "undefined(aten.empty)", "2.5", "undefined(aten.empty)"]

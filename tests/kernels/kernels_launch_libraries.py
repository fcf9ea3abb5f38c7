"""Host functions that change a library, or what looks like a part of one, while they launch: Triton compiles with what
it finds then. The twins say the values from before."""

import functools
from unittest import mock

import torch
import triton
import triton.language as tl
from kernels_launch_globals import launched
from triton.language.core import builtin

from trilift import case

NOT_A_NUMBER = tl.constexpr(float("nan"))
FACTORS = [2.0]
PLAIN = 2.0
FUNCTION = tl.exp


@functools.wraps(tl.exp)
def named_exp(x, _semantic=None):
    return tl.sin(x, _semantic=_semantic)


@builtin
def scaled(x, _semantic=None):
    return _semantic.mul(x, FACTORS[0], True)


@triton.jit
def exp_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < N)), mask=i < N)


@triton.jit
def function_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, FUNCTION(tl.load(x_ptr + i, mask=i < N)), mask=i < N)


@triton.jit
def builtin_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, scaled(tl.load(x_ptr + i, mask=i < N)), mask=i < N)


@triton.jit
def plain_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * PLAIN, mask=i < N)


@triton.jit
def nan_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N, other=NOT_A_NUMBER), mask=i < N)


def patched(x):
    with mock.patch.object(tl, "exp", tl.sin):
        return launched(exp_kernel, x)


def patched_for_large(x, s):
    with mock.patch.object(tl, "exp", tl.exp if s < 100 else tl.sin):
        return launched(exp_kernel, x)


def renamed(x):
    global FUNCTION
    FUNCTION = named_exp
    try:
        return launched(function_kernel, x)
    finally:
        FUNCTION = tl.exp


def own_builtin(x):
    FACTORS[0] = 3.0
    try:
        return launched(builtin_kernel, x)
    finally:
        FACTORS[0] = 2.0


def plain_twice(x):
    global PLAIN
    PLAIN = 2.0
    first = launched(plain_kernel, x)
    PLAIN = 3.0
    return first + launched(plain_kernel, x)


def copied(x):
    return launched(nan_kernel, x)


def claimed(fn, reference, **more):
    found = case(x="f32[N]", **more)(fn)
    found.reference(reference)
    return found


RIGHT = [claimed(f, torch.sin) for f in (patched, renamed)]
WRONG = [
    *(claimed(f, torch.exp) for f in (patched, renamed)),
    claimed(patched_for_large, lambda x, s: torch.exp(x), s="i32"),
    claimed(own_builtin, lambda x: x * 2.0),
]
TWICE = claimed(plain_twice, lambda x: x * 6.0)
COPIED = claimed(copied, lambda x: x)

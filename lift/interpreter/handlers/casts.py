"""Casts between number types: what the bits or the number become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...terms import construct as T
from ...terms.domain import Ids, on_distinct
from ...ttir.conversions import fits
from ...ttir.ir import Op
from ..machine import bitcast, cell, machine, settle
from ..memory import truth
from ..registry import handles, signed, typed, unsigned

if TYPE_CHECKING:
    from ..interpret import Run


@handles("arith.extf", "arith.truncf", "tt.fp_to_fp", "tt.ptr_to_int", "tt.int_to_ptr")
def _same_number(run: Run, op: Op, x: Any, *_: object) -> Any:
    """Floats are reals: a cast between float types is the identity. Pointers are their addresses."""
    return x


@handles("arith.extsi", "arith.index_cast")
def _extsi(run: Run, op: Op, x: Any) -> Any:
    t = op.operands[0].type
    if t.element == "i1":
        return typed(run.domain.apply("where", x, np.int8(-1), np.int8(0)), op)
    return typed(x if fits(op.operands[0], is_signed=True) else signed(run, x, t.bits), op)


@handles("arith.extui", "arith.index_castui", "arith.uitofp")
def _extui(run: Run, op: Op, x: Any) -> Any:
    t = op.operands[0].type
    if t.element == "i1":
        return typed(run.domain.apply("where", x, np.int8(1), np.int8(0)), op)
    is_number = isinstance(x, Ids) and fits(op.operands[0], is_signed=False)
    return typed(x if is_number else unsigned(run, x, t.bits), op)


@handles("arith.sitofp")
def _sitofp(run: Run, op: Op, x: Any) -> Any:
    return _extsi(run, op, x)


@handles("arith.trunci")
def _trunci(run: Run, op: Op, x: Any) -> Any:
    """The low bits. Terms stay: they are meant modulo 2^bits."""
    if op.results[0].type.element != "i1":
        return typed(x, op)
    if not isinstance(x, Ids):
        return (np.asarray(x) & 1) != 0

    def low_bit(t: T.Term) -> T.Term:
        low, high = run.ranges.of(t)
        return truth(t if low >= 0 and high <= 1 else T.make("mod", t, 2))

    return settle(on_distinct(low_bit, x), op.results[0].type)


@handles("arith.fptosi", "arith.fptoui")
def _fptosi(run: Run, op: Op, x: Any) -> Any:
    """Towards zero; numbers outside the integer type saturate, as the hardware's conversion does."""
    if isinstance(x, Ids):
        return typed(run.domain.apply("to_int", x), op)
    dtype = machine(op.results[0].type)
    if dtype.kind == "b":
        return np.trunc(x) != 0
    bits, low = dtype.itemsize * 8, op.name == "arith.fptosi"
    limits = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if low else (0.0, 2.0**bits)
    whole = np.trunc(np.nan_to_num(x, nan=0.0))
    inside = np.clip(whole, limits[0], np.nextafter(limits[1], 0))
    if np.any((whole < limits[0]) | (whole >= limits[1])):
        run.unfit(op)
    return inside.astype(dtype if low else f"u{dtype.itemsize}").astype(dtype)


@handles("tt.bitcast", "arith.bitcast")
def _bitcast(run: Run, op: Op, x: Any) -> Any:
    source, target = op.operands[0].type, op.results[0].type
    if source.element == "ptr" or source.element == target.element:
        return x
    if "i1" in (source.element, target.element):
        return (_extui if source.element == "i1" else _trunci)(run, op, x)
    return settle(bitcast(run.domain, x, cell(source), cell(target)), target)

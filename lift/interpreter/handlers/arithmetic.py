"""arith, math and elementwise tt operations that are not simply a row: constants, unsigned and bit operations,
library calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Unsupported
from ...terms import construct as T
from ...terms.domain import Ids, on_distinct
from ...ttir.ir import Op, Type
from ..machine import machine, settle, undefined
from ..registry import CHECKS, HANDLERS, ROW_OF_EXTERN, handles, signed, typed, unsigned
from .compare import exclusive_or

if TYPE_CHECKING:
    from ..interpret import Run


# ---- constants -------------------------------------------------------------------------------------------------------


@handles("arith.constant")
def _constant(run: Run, op: Op) -> Any:
    if op not in run.constants:
        t = op.results[0].type
        value, dtype = np.asarray(op.attrs["value"]), machine(t)
        if dtype.kind == "i":
            value = wrapped(value, dtype)
        run.constants[op] = np.broadcast_to(value.astype(dtype), t.shape)
    return run.constants[op]


def wrapped(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Python integers modulo 2^bits, as signed numbers."""
    half = 1 << (dtype.itemsize * 8 - 1)
    flat = [(int(v) + half) % (2 * half) - half for v in value.ravel()]
    return np.array(flat, dtype).reshape(value.shape)


@handles("ub.poison")
def _poison(run: Run, op: Op) -> Any:
    return undefined(run.domain, op.results[0].type.shape, op.results[0].type, f"poison at {op.place}")


# ---- integers --------------------------------------------------------------------------------------------------------

_UNSIGNED = {
    "divui": "floordiv",
    "remui": "mod",
    "shrui": "shr",
    "minui": "min",
    "maxui": "max",
    "ceildivui": "ceildiv",
}


def _unsigned_operation(run: Run, op: Op, *xs: Any) -> Any:
    """Numbers without sign, then back to the bits."""
    t = op.results[0].type
    xs = tuple(unsigned(run, x, t.bits) for x in xs)
    row = _UNSIGNED[op.name.removeprefix("arith.")]
    if row in ("floordiv", "mod") and not isinstance(xs[1], Ids):
        xs = (xs[0], np.where(xs[1] == 0, xs[1].dtype.type(1), xs[1]))  # only in lanes that are masked
    return typed(run.domain.apply(row, *xs), op)


HANDLERS |= {f"arith.{name}": _unsigned_operation for name in _UNSIGNED if name != "ceildivui"}


@handles("arith.divsi", "arith.remsi")
def _divide(run: Run, op: Op, a: Any, b: Any) -> Any:
    """Towards zero; of terms that are not negative it is floor division."""
    t = op.results[0].type
    rows = ("truncdiv", "floordiv") if op.name == "arith.divsi" else ("truncmod", "mod")
    a, b = signed(run, a, t.bits), signed(run, b, t.bits)
    if not (isinstance(a, Ids) or isinstance(b, Ids)):
        return typed(run.domain.apply(rows[0], a, b), op)
    natural = lambda x, y: run.ranges.of(x)[0] >= 0 and run.ranges.of(y)[0] >= 0  # noqa: E731
    return settle(on_distinct(lambda x, y: T.make(rows[natural(x, y)], x, y), a, b), t)


_BITS = {"andi": ("and", "bitand"), "ori": ("or", "bitor"), "xori": ("xor", "bitxor")}


@handles("arith.andi", "arith.ori", "arith.xori")
def _bits(run: Run, op: Op, a: Any, b: Any) -> Any:
    t, (logic, bits) = op.results[0].type, _BITS[op.name.removeprefix("arith.")]
    if t.element != "i1":
        return settle(run.domain.apply(bits, a, b), t)
    if logic == "xor":
        return settle(exclusive_or(a, b), t)
    if not (isinstance(a, Ids) or isinstance(b, Ids)):
        return run.domain.apply(logic, a, b)
    return settle(on_distinct(lambda x, y: _connect(logic, x, y), a, b), t)


def _connect(logic: str, a: T.Term, b: T.Term) -> T.Term:
    """A known false decides `and` also beside an undefined lane: hardware booleans have some value."""
    for x in (a, b):
        if x.is_const and x.attr == (logic == "or"):
            return x
    return T.make(logic, a, b)


@handles("tt.mulhiui")
def _mulhiui(run: Run, op: Op, a: Any, b: Any) -> Any:
    """The high half of the unsigned product."""
    bits = op.results[0].type.bits
    a, b = unsigned(run, a, bits), unsigned(run, b, bits)
    if isinstance(a, Ids) or isinstance(b, Ids):
        return typed(run.domain.apply("floordiv", run.domain.apply("mul", a, b), 1 << bits), op)
    if bits <= 32:
        return ((a.astype(np.uint64) * b) >> np.uint64(bits)).astype(a.dtype).view(f"i{bits // 8}")
    high = np.right_shift(np.multiply(a.astype(object), b.astype(object)), bits)
    return np.asarray(high).astype(np.uint64).view(np.int64)


# ---- reals -----------------------------------------------------------------------------------------------------------


@handles("tt.clampf")
def _clampf(run: Run, op: Op, x: Any, low: Any, high: Any) -> Any:
    """NaN of NaN with `propagate_nan`, else the lower bound."""
    if op.attrs.get("propagateNan") and not any(isinstance(v, Ids) for v in (x, low, high)):
        return np.minimum(np.maximum(x, low), high)
    return settle(run.domain.apply("min", run.domain.apply("max", x, low), high), op.results[0].type)


@handles("math.fma")
def _fma(run: Run, op: Op, a: Any, b: Any, c: Any) -> Any:
    return settle(run.domain.apply("add", run.domain.apply("mul", a, b), c), op.results[0].type)


@handles("arith.maximumf", "arith.minimumf")
def _maximumf(run: Run, op: Op, a: Any, b: Any) -> Any:
    """NaN if one is NaN, which only the float64 domain can see."""
    name = "max" if op.name == "arith.maximumf" else "min"
    if isinstance(a, Ids) or isinstance(b, Ids):
        return settle(run.domain.apply(name, a, b), op.results[0].type)
    return (np.maximum if name == "max" else np.minimum)(a, b)


# ---- library calls -----------------------------------------------------------------------------------------


def library_row(symbol: str) -> str | None:
    """The row of a libdevice function: __nv_tanhf and __nv_tanh are tanh."""
    name = symbol.removeprefix("__nv_")
    tries = (name, name[:-1]) if name[-1:] in "fd" else (name,)
    return next((ROW_OF_EXTERN[n] for n in tries if n in ROW_OF_EXTERN), None)


@handles("tt.extern_elementwise")
def _extern(run: Run, op: Op, *xs: Any) -> Any:
    row = library_row(op.attrs["symbol"])
    if row is None:
        raise Unsupported(_missing_extern(op) or op.name, op.place)
    return _cast(run, op, run.domain.apply(row, *xs))


def _cast(run: Run, op: Op, out: Any) -> Any:
    """Library predicates return i32: 1 for true."""
    t: Type = op.results[0].type
    boolean = out.dtype.kind == "b" if isinstance(out, np.ndarray | np.generic) else False
    if isinstance(out, Ids) and t.is_int and t.bits > 1:
        boolean = T.TERMS[out.ids.flat[0]].type == T.BOOL if out.size else False
    return typed(run.domain.apply("where", out, np.int8(1), np.int8(0)) if boolean and t.bits > 1 else out, op)


def _missing_extern(op: Op) -> str | None:
    return None if library_row(op.attrs["symbol"]) else f"library function {op.attrs['symbol']}"


CHECKS["tt.extern_elementwise"] = _missing_extern

"""arith, math and elementwise tt operations that are not simply a row: constants, comparisons, casts, unsigned and bit
operations, library calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import term as T
from .domain import Ids, on_distinct
from .errors import Unsupported
from .handlers import CHECKS, HANDLERS, ROW_OF_EXTERN, handles, signed, typed, unsigned
from .ir import Op, Type
from .machine import bitcast, cell, machine, settle, undefined
from .memory import truth
from .ranges import ALL

if TYPE_CHECKING:
    from .interpret import Run


# ---- constants ----------------------------------------------------------------------------------------------------------


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


# ---- comparisons --------------------------------------------------------------------------------------------------------

ROWS_OF_PREDICATE = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


@handles("arith.cmpi")
def _cmpi(run: Run, op: Op, a: Any, b: Any) -> Any:
    predicate, t = op.attrs["predicate"], op.operands[0].type
    if t.element == "i1":
        return _compare_booleans(run, predicate, a, b)
    sign = unsigned if predicate[0] == "u" else signed
    row = predicate if predicate in ("eq", "ne") else predicate[1:]
    a, b = sign(run, a, t.bits), sign(run, b, t.bits)
    if isinstance(a, Ids) or isinstance(b, Ids):
        return settle(on_distinct(lambda x, y: compare(run, row, x, y), a, b), op.results[0].type)
    return run.domain.apply(row, a, b)


def compare(run: Run, row: str, a: T.Term, b: T.Term) -> T.Term:
    """A comparison of integer terms, decided by their ranges where possible: v < V for a bounded index."""
    if row in ("gt", "ge"):
        return compare(run, {"gt": "lt", "ge": "le"}[row], b, a)
    for x, y, f in ((a, b, lambda c: T.make(row, c, b)), (b, a, lambda c: T.make(row, a, c))):
        if x.op == "where" and y.op == "const" and all(c.op == "const" for c in x.args[1:]):
            return choose(x.args[0], f(x.args[1]), f(x.args[2]))
    (low_a, high_a), (low_b, high_b) = run.ranges.of(a), run.ranges.of(b)
    if ALL not in ((low_a, high_a), (low_b, high_b)):
        disjoint = high_a < low_b or high_b < low_a
        if row in ("eq", "ne") and disjoint:
            return T.const(row == "ne")
        if row in ("lt", "le"):
            if high_a < low_b or (row == "le" and high_a == low_b):
                return T.const(True)
            if low_a > high_b or (row == "lt" and low_a == high_b):
                return T.const(False)
    return T.make(row, a, b)


def choose(c: T.Term, yes: T.Term, no: T.Term) -> T.Term:
    """where(c, yes, no) of booleans: with constants it is c, ~c, c & yes, c | no."""
    match yes.attr if yes.is_const else None, no.attr if no.is_const else None:
        case (True, False):
            return c
        case (False, True):
            return T.make("not", c)
        case (None, False):
            return T.make("and", c, yes)
        case (True, None):
            return T.make("or", c, no)
    return T.where(c, yes, no)


def _compare_booleans(run: Run, predicate: str, a: Any, b: Any) -> Any:
    """eq and ne; the order of i1 has true = -1 when signed, 1 when unsigned."""
    if predicate in ("eq", "ne"):
        out = exclusive_or(run, a, b)
        return out if predicate == "ne" else run.domain.apply("not", out)
    if predicate[0] == "s":
        a, b = b, a
    a, b = (b, a) if predicate[1] == "g" else (a, b)
    strict, negated = predicate[2] == "t", run.domain.apply("not", a)
    return run.domain.apply("and" if strict else "or", negated, b)  # a < b is ~a & b; a <= b is ~a | b


def exclusive_or(run: Run, a: Any, b: Any) -> Any:
    """a != b of booleans; with a known one it is the other or its negation."""
    if not (isinstance(a, Ids) or isinstance(b, Ids)):
        return np.not_equal(a, b)

    def term(x: T.Term, y: T.Term) -> T.Term:
        if x.is_const:
            x, y = y, x
        if y.is_const:
            return T.make("not", x) if y.attr else x
        return T.make("ne", x, y)

    return on_distinct(term, a, b)


_FLOAT_ROWS = {"eq": "eq", "ne": "ne", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le"}


@handles("arith.cmpf")
def _cmpf(run: Run, op: Op, a: Any, b: Any) -> Any:
    """Ordered predicates are false on NaN and unordered ones true; reals are never NaN."""
    predicate, t = op.attrs["predicate"], op.results[0].type
    if predicate in ("true", "false"):
        return np.full(t.shape, predicate == "true")
    if isinstance(a, Ids) or isinstance(b, Ids):
        return settle(on_distinct(lambda x, y: _compare_reals(predicate, x, y), a, b), t)
    nan = np.isnan(a) | np.isnan(b)
    if predicate in ("ord", "uno"):
        return ~nan if predicate == "ord" else nan
    out = run.domain.apply({"one": "ne", "une": "ne"}.get(predicate, predicate[1:]), a, b)
    return out | nan if predicate[0] == "u" else out & ~nan


def _compare_reals(predicate: str, a: T.Term, b: T.Term) -> T.Term:
    if predicate in ("ord", "uno"):
        return T.const(predicate == "ord")
    row = predicate[1:]
    if row in ("gt", "ge"):
        row, a, b = {"gt": "lt", "ge": "le"}[row], b, a
    if (known := _against_infinity(row, a, b)) is not None:
        return T.const(known)
    if a is b and a.op != "undef" and not a.is_const:
        return T.const(row in ("eq", "le"))
    for x, y, f in ((a, b, lambda c: T.make(row, c, b)), (b, a, lambda c: T.make(row, a, c))):
        if x.op == "where" and y.op == "const" and all(c.op == "const" for c in x.args[1:]):
            return choose(x.args[0], f(x.args[1]), f(x.args[2]))
    return T.make(row, a, b)


_FINITE = set(
    [
        "where",
        "add",
        "mul",
        "exp",
        "exp2",
        "abs",
        "tanh",
        "erf",
        "sin",
        "cos",
        "sqrt",
        "max",
        "min",
        "floor",
        "ceil",
        "trunc",
        "round",
    ]
)


_finite: dict[int, bool] = {}


def finite(t: T.Term) -> bool:
    """Whether a term is a real number whenever its inputs are: no infinity, no reciprocal, no logarithm in it."""
    if t.id not in _finite:
        for s in t.walk():
            values = s.args[1:] if s.op == "where" else s.args
            whole = s.op in _FINITE and all(_finite[a.id] for a in values)
            _finite[s.id] = abs(s.attr) != np.inf if s.is_const else s.op == "read" or whole
    return _finite[t.id]


def _against_infinity(row: str, a: T.Term, b: T.Term) -> bool | None:
    """A comparison of a finite term with an infinity."""
    for x, y in ((a, b), (b, a)):
        if y.is_const and abs(y.attr) == np.inf and finite(x):
            return row == "ne" if row in ("eq", "ne") else (y.attr > 0) == (y is b)
    return None


@handles("arith.select")
def _select(run: Run, op: Op, c: Any, a: Any, b: Any) -> Any:
    t = op.results[0].type
    if not any(isinstance(x, Ids) for x in (c, a, b)):
        return np.where(c, a, b)
    if t.element == "i1":
        return settle(on_distinct(lambda c, a, b: c if c.op == "undef" else choose_by(c, a, b), c, a, b), t)
    return settle(run.domain.apply("where", c, a, b), t)


def choose_by(c: T.Term, a: T.Term, b: T.Term) -> T.Term:
    return (a if c.attr else b) if c.is_const else choose(c, a, b)


# ---- casts --------------------------------------------------------------------------------------------------------------


@handles("arith.extf", "arith.truncf", "tt.fp_to_fp", "tt.ptr_to_int", "tt.int_to_ptr")
def _same_number(run: Run, op: Op, x: Any, *_: Any) -> Any:
    """Floats are reals: a cast between float types is the identity. Pointers are their addresses."""
    return x


@handles("arith.extsi", "arith.index_cast")
def _extsi(run: Run, op: Op, x: Any) -> Any:
    t = op.operands[0].type
    if t.element == "i1":
        return typed(run.domain.apply("where", x, np.int8(-1), np.int8(0)), op)
    return typed(signed(run, x, t.bits), op)


@handles("arith.extui", "arith.index_castui", "arith.uitofp")
def _extui(run: Run, op: Op, x: Any) -> Any:
    t = op.operands[0].type
    if t.element == "i1":
        return typed(run.domain.apply("where", x, np.int8(1), np.int8(0)), op)
    return typed(unsigned(run, x, t.bits), op)


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
    inside = np.clip(np.trunc(np.nan_to_num(x, nan=0.0)), limits[0], np.nextafter(limits[1], 0))
    return inside.astype(dtype if low else f"u{dtype.itemsize}").astype(dtype)


@handles("tt.bitcast", "arith.bitcast")
def _bitcast(run: Run, op: Op, x: Any) -> Any:
    source, target = op.operands[0].type, op.results[0].type
    if source.element == "ptr" or source.element == target.element:
        return x
    if "i1" in (source.element, target.element):
        return (_extui if source.element == "i1" else _trunci)(run, op, x)
    return settle(bitcast(run.domain, x, cell(source), cell(target)), target)


# ---- integers -----------------------------------------------------------------------------------------------------------

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
        return settle(exclusive_or(run, a, b), t)
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


# ---- reals --------------------------------------------------------------------------------------------------------------


@handles("tt.clampf")
def _clampf(run: Run, op: Op, x: Any, low: Any, high: Any) -> Any:
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

"""The operation table: one row per elementwise operation, with its meaning on numbers and on terms.

    name     what terms call it
    type     result type: real, int, bool, or "same" (the widest type of the arguments)
    numpy    meaning on numpy arrays: reals are float64, integers have their machine type and wrap
    term     meaning on terms, where it is not simply the node `name(args)`
    text, latex, torch   how it is printed; {0} {1} are the printed arguments, None: the printer has a rule of its own
    ttir     operations of Triton IR that mean exactly this
    extern   libdevice functions (names without __nv_ and without the f suffix)
    aten     PyTorch operators (overload packet names) that mean exactly this, elementwise with broadcasting

A missing row is the error Unsupported, never a silent skip. A new operation is one row here; tests/lift/test_ops.py runs
every row on numbers, on terms and on constants. Other stages register their meanings of an operation in domains
(`lift.terms.meanings`); `trilift ops --domains` shows which are missing.
"""

from __future__ import annotations

import math
import operator
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import construct as T
from .bits import FORMATS, cell_size, from_bits, to_bits
from .definedness import is_finite, sign_is_of_value
from .philox_words import random, random_bits


@dataclass(frozen=True, slots=True)
class Op:
    name: str
    arity: int  # -1: two or more, associative
    type: str
    numpy: Callable[..., Any]
    text: str | None = None
    latex: str | None = None
    torch: str | None = None
    term: Callable[..., T.Term] | None = None
    ttir: tuple[str, ...] = ()
    extern: tuple[str, ...] = ()
    aten: tuple[str, ...] = ()

    def on_terms(self, *args: T.TermLike) -> T.Term:
        """The operation as a term over argument terms."""
        return self.term(*map(T.const, args)) if self.term else T.make(self.name, *args)

    @property
    def rewritten(self) -> bool:
        """Whether terms never hold the operation, because it is built of others: sqrt and recip for rsqrt."""
        if self.term is None:
            return False
        xs = [T.scalar(f"x{k}") for k in range(3 if self.arity < 0 else self.arity)]
        return all(s.op != self.name for s in self.on_terms(*xs).walk())

    def on_numbers(self, *args: Any) -> Any:
        """The operation on Python numbers (exact integers), or None where it has no finite value to fold to."""
        if self.name in UNINTERPRETED:
            return None
        if self.name == "where" and all(type(a) is int for a in args[1:]):
            return args[1] if args[0] else args[2]
        if self.name in EXACT and all(type(a) is int for a in args):
            try:
                return EXACT[self.name](*args)
            except ZeroDivisionError:
                return None
        try:
            with np.errstate(all="ignore"):
                v = _chain(self.numpy, args) if self.arity < 0 and self.name not in ORDERED else self.numpy(*args)
        except (ZeroDivisionError, OverflowError, ValueError, TypeError):
            return None
        v = v.item() if isinstance(v, np.generic) else v
        if isinstance(v, float) and abs(v) < SMALLEST and _underflows(self.name, args):
            return None
        if not isinstance(v, float) or math.isfinite(v):
            return v
        return v if math.isinf(v) and any(isinstance(a, float) and math.isinf(a) for a in args) else None


SMALLEST = sys.float_info.min  # of the floats that have all their digits
NEVER_ZERO = frozenset(
    ("exp", "exp2", "exp10", "erfc", "pow", "mul", "div", "recip")
)  # of finite numbers but 0; exp of 0, too


def _underflows(name: str, args: Sequence[float]) -> bool:
    """Whether a result of almost 0 is too small for a float, and not 0: exp(-1000), 1e-200 * 1e-200."""
    finite = all(isinstance(a, int) or math.isfinite(a) for a in args)
    return name in NEVER_ZERO and finite and (name.startswith("exp") or all(args))


LONGEST = 4096  # bits of an integer that is formed: 2 ** 64 is, 2 ** 10 ** 9 stays a term


def _sum(*xs: int) -> int:
    return sum(xs)


def _product(*xs: int) -> int:
    return math.prod(xs)


def _power(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """x ** n; of integers too where n is negative."""
    whole = np.asarray(x).dtype.kind in "iu" and np.asarray(n).dtype.kind == "i"
    out: np.ndarray = np.power(np.asarray(x, np.float64) if whole and np.any(np.asarray(n) < 0) else x, n)
    return out


def _whole_power(x: int, n: int) -> int | None:
    return x**n if n >= 0 and n * max(x.bit_length(), 1) <= LONGEST else None


def _shifted_left(x: int, n: int) -> int | None:
    return x << n if n >= 0 and x.bit_length() + n <= LONGEST else None


def _shifted_right(x: int, n: int) -> int | None:
    return x >> n if n >= 0 else None


def _quotient_to_zero(a: int, b: int) -> int | None:
    return None if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def _remainder_to_zero(a: int, b: int) -> int | None:
    q = _quotient_to_zero(a, b)
    return None if q is None else a - q * b


# Integers as they are, without width: numpy's would wrap at 64 bits. None: no such number.
EXACT: dict[str, Callable[..., int | None]] = {
    "add": _sum, "mul": _product, "sub": operator.sub, "neg": operator.neg, "pow": _whole_power, "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0), "max": lambda *xs: max(xs), "min": lambda *xs: min(xs), "floordiv": operator.floordiv, "mod": operator.mod,
    "shl": _shifted_left, "shr": _shifted_right,
    "truncdiv": _quotient_to_zero, "truncmod": _remainder_to_zero, "bitand": operator.and_, "bitor": operator.or_,
    "bitxor": operator.xor, "wrap8": lambda a: _wrapped(a, 8), "wrap16": lambda a: _wrapped(a, 16),
    "wrap32": lambda a: _wrapped(a, 32),
}  # fmt: skip


def _wrapped(a: int, bits: int) -> int:
    """The number of two's complement that has the same last bits."""
    half = 1 << bits - 1
    return (a + half) % (1 << bits) - half


UNINTERPRETED = {"random", "random_bits"}  # stay terms when their arguments are numbers
ORDERED = {"argmax_of", "argmin_of", "pick", "random", "random_bits"}  # n-ary, but not a chain of binary operations


def _chain(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    out = args[0]
    for a in args[1:]:
        out = f(out, a)
    return out


def _position(find: Callable[..., Any], xs: tuple[Any, ...]) -> Any:
    return find(np.stack(np.broadcast_arrays(*xs)), axis=0)


def _pick(index: Any, xs: tuple[Any, ...]) -> Any:
    """Element `index` of xs; nan (for integers 0) where there is none."""
    index, *arrays = np.broadcast_arrays(index, *xs)
    stack = np.stack(arrays)
    inside = (index >= 0) & (index < len(xs))
    got = np.take_along_axis(stack, np.where(inside, index, 0).astype(np.int64)[None], 0)[0]
    return np.where(inside, got, np.nan if stack.dtype.kind == "f" else 0)


def _erf(x: Any) -> Any:
    return _vectorised(math.erf, x)


def _erfinv(x: float) -> float:
    return statistics.NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2) if abs(x) < 1 else math.copysign(math.inf, x)


def _from_bits(form: str, a: T.Term) -> T.Term:
    """Bits back to a real: the inverse of bits, and each branch of a choice by itself."""
    if a.op == f"bits_{form}":
        return a.args[0]
    if a.op == "where":
        return T.where(a.args[0], _from_bits(form, a.args[1]), _from_bits(form, a.args[2]))
    return T.make(f"from_bits_{form}", a)


def _bitxor(a: T.Term, b: T.Term) -> T.Term:
    """a ^ a = 0, a ^ 0 = a, and a ^ (p if c else 0) = (a ^ p if c else a): exchanges of sorting networks."""
    for x, y in ((a, b), (b, a)):
        if y.op == "where" and any(p is T.const(0) for p in y.args[1:]):
            return T.where(y.args[0], _bitxor(x, y.args[1]), _bitxor(x, y.args[2]))
    odd: dict[int, T.Term] = {}
    for t in (*_xor_args(a), *_xor_args(b)):
        if odd.pop(t.id, None) is None:
            odd[t.id] = t
    rest = sorted((t for t in odd.values() if t is not T.const(0)), key=lambda t: t.id)
    out = rest[0] if rest else T.const(0)
    for t in rest[1:]:
        out = T.make("bitxor", out, t)
    return out


def _xor_args(t: T.Term) -> list[T.Term]:
    return [a for s in t.args for a in _xor_args(s)] if t.op == "bitxor" else [t]


def _vectorised(f: Callable[[float], float], x: Any) -> Any:
    a = np.asarray(x, dtype=np.float64)
    return np.fromiter((f(v) for v in a.ravel()), np.float64, a.size).reshape(a.shape)


def _recip(x: Any) -> Any:
    return np.divide(1.0, x)


def _divide(a: Any, b: Any) -> Any:
    return np.divide(a, b)


def _trunc_divide(a: Any, b: Any) -> Any:
    """C division of integers: towards zero. Division by zero gives 0 (the lane must be masked)."""
    a, b = np.asarray(a), np.asarray(b)
    safe = np.where(b == 0, 1, b)
    q = np.floor_divide(a, safe)
    q = q + ((q * safe != a) & ((a < 0) != (safe < 0)))  # not by abs, which has no positive number for the least one
    return np.where(b == 0, 0, q).astype(np.result_type(a, b), copy=False)


def _trunc_remainder(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    return (a - _trunc_divide(a, b) * b).astype(np.result_type(a, b), copy=False)


def _floor_divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return np.floor_divide(a, b)


def _mod(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    return np.mod(a, b)


def power_of_2(n: int) -> int:
    """triton.next_power_of_2, for numbers of any size."""
    return 1 << (n - 1).bit_length() if n > 0 else 0


def _next_power_of_2(x: Any) -> Any:
    """triton.next_power_of_2: the smallest power of two that is not below x, and 0 for x <= 0."""
    if isinstance(x, int):
        return power_of_2(x)
    a = np.maximum(np.asarray(x), 0) - 1
    for s in (1, 2, 4, 8, 16, 32):
        a = a | (a >> s)
    return a + 1


def _unsigned(f: Callable[..., Any]) -> Callable[..., Any]:
    """The operation on the same bits read as unsigned integers."""

    def g(*args: Any) -> Any:
        xs = [np.asarray(a) for a in args]
        signed = xs[0].dtype
        if signed.kind != "i":
            return f(*xs)
        out = f(*(x.view(f"u{x.dtype.itemsize}") for x in map(np.ascontiguousarray, xs)))
        return out if out.dtype.kind == "b" else out.astype(signed)

    return g


def _on_integers(f: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The operation on bits, also where an integer is a float64 that came from a real number; NaN where it does not
    fit 64 bits."""

    def g(*args: np.ndarray) -> np.ndarray:
        if not any(np.asarray(a).dtype.kind == "f" for a in args):
            return f(*args)
        xs = [np.asarray(a) for a in args]
        good = [np.abs(x) < 2.0**63 if x.dtype.kind == "f" else True for x in xs]
        whole = [np.where(ok, x, 0).astype(np.int64) if ok is not True else x for ok, x in zip(good, xs, strict=True)]
        return np.where(np.logical_and.reduce(np.broadcast_arrays(*good)), f(*whole), np.nan)

    return g


def _maximum(a: Any, b: Any) -> Any:
    return np.fmax(a, b)


def _minimum(a: Any, b: Any) -> Any:
    return np.fmin(a, b)


def _row(name: str, arity: int, of_type: str, numpy: Callable[..., Any], text: str | None = None, latex: str | None = None,
         torch: str | None = None, **more: Any) -> Op:  # fmt: skip
    places = ", ".join(f"{{{i}}}" for i in range(max(arity, 1)))
    return Op(name, arity, of_type, numpy, text or f"{name}({places})", latex, torch, **more)


R, I, B, SAME = T.REAL, T.INT, T.BOOL, "same"  # noqa: E741
_fn = lambda name: rf"\operatorname{{{{{name}}}}}({{0}})"  # noqa: E731

ROWS = [
    # arithmetic
    _row("add", -1, SAME, np.add, None, None, None, ttir=("arith.addf", "arith.addi"), extern=("fadd_rn", "dadd_rn"), aten=()),
    _row("mul", -1, SAME, np.multiply, None, None, None, ttir=("arith.mulf", "arith.muli"), extern=("fmul_rn",), aten=("mul",)),
    _row("sub", 2, SAME, np.subtract, term=T.sub, ttir=("arith.subf", "arith.subi")),
    _row("neg", 1, SAME, np.negative, term=lambda a: T.mul(-1, a), ttir=("arith.negf",), aten=("neg",)),
    _row("recip", 1, R, _recip, "1 / {0}", r"\frac{{1}}{{{0}}}", "1 / {0}", aten=("reciprocal",)),
    _row("div", 2, R, _divide, term=T.div, ttir=("arith.divf", "tt.precise_divf"), extern=("fdiv_rn", "ddiv_rn", "fast_fdivide", "div_rn")),
    _row("pow", 2, R, _power, "{0} ** {1}", "{{{0}}}^{{{1}}}", "{0} ** {1}", extern=("pow", "powi", "fast_pow"), aten=()),
    _row("abs", 1, SAME, np.abs, "abs({0})", r"\lvert {0} \rvert", "torch.abs({0})", ttir=("math.absf", "math.absi"), extern=("fabs", "abs"), aten=("abs",)),
    _row("sign", 1, SAME, np.sign, "sign({0})", _fn("sign"), "torch.sign({0})", aten=("sign",)),
    # functions of a real
    _row("exp", 1, R, np.exp, "exp({0})", r"\exp({0})", "torch.exp({0})", ttir=("math.exp",), extern=("exp", "fast_exp"), aten=("exp",)),
    _row("exp2", 1, R, np.exp2, "exp2({0})", r"2^{{{0}}}", "torch.exp2({0})", ttir=("math.exp2",), extern=("exp2",), aten=("exp2",)),
    _row("expm1", 1, R, np.expm1, term=lambda a: T.make("exp", a) - 1, ttir=("math.expm1",), extern=("expm1",), aten=("expm1",)),
    _row("log", 1, R, np.log, "log({0})", r"\log({0})", "torch.log({0})", ttir=("math.log",), extern=("log", "fast_log"), aten=("log",)),
    _row("log2", 1, R, np.log2, "log2({0})", r"\log_2({0})", "torch.log2({0})", ttir=("math.log2",), extern=("log2", "fast_log2"), aten=("log2",)),
    _row("log1p", 1, R, np.log1p, term=lambda a: T.make("log", 1 + a), ttir=("math.log1p",), extern=("log1p",), aten=("log1p",)),
    _row("log10", 1, R, np.log10, "log10({0})", r"\log_{{10}}({0})", "torch.log10({0})", extern=("log10",), aten=("log10",)),
    _row("sqrt", 1, R, np.sqrt, "sqrt({0})", r"\sqrt{{{0}}}", "torch.sqrt({0})", ttir=("math.sqrt", "tt.precise_sqrt"), extern=("sqrt", "fsqrt_rn", "sqrt_rn"), aten=("sqrt",)),
    _row("rsqrt", 1, R, lambda x: 1 / np.sqrt(x), term=lambda a: T.recip(T.make("sqrt", a)), ttir=("math.rsqrt",), extern=("rsqrt",), aten=("rsqrt",)),
    _row("sin", 1, R, np.sin, "sin({0})", r"\sin({0})", "torch.sin({0})", ttir=("math.sin",), extern=("sin", "fast_sin"), aten=("sin",)),
    _row("cos", 1, R, np.cos, "cos({0})", r"\cos({0})", "torch.cos({0})", ttir=("math.cos",), extern=("cos", "fast_cos"), aten=("cos",)),
    _row("tan", 1, R, np.tan, "tan({0})", r"\tan({0})", "torch.tan({0})", ttir=("math.tan",), extern=("tan",), aten=("tan",)),
    _row("asin", 1, R, np.arcsin, "asin({0})", r"\arcsin({0})", "torch.asin({0})", extern=("asin",), aten=("asin",)),
    _row("acos", 1, R, np.arccos, "acos({0})", r"\arccos({0})", "torch.acos({0})", extern=("acos",), aten=("acos",)),
    _row("atan", 1, R, np.arctan, "atan({0})", r"\arctan({0})", "torch.atan({0})", extern=("atan",), aten=("atan",)),
    _row("atan2", 2, R, np.arctan2, "atan2({0}, {1})", r"\operatorname{{atan2}}({0}, {1})", "torch.atan2({0}, {1})", extern=("atan2",), aten=("atan2",)),
    _row("sinh", 1, R, np.sinh, "sinh({0})", r"\sinh({0})", "torch.sinh({0})", extern=("sinh",), aten=("sinh",)),
    _row("cosh", 1, R, np.cosh, "cosh({0})", r"\cosh({0})", "torch.cosh({0})", extern=("cosh",), aten=("cosh",)),
    _row("tanh", 1, R, np.tanh, "tanh({0})", r"\tanh({0})", "torch.tanh({0})", ttir=("math.tanh",), extern=("tanh", "fast_tanh"), aten=("tanh",)),
    _row("erf", 1, R, _erf, "erf({0})", _fn("erf"), "torch.erf({0})", ttir=("math.erf",), extern=("erf",), aten=("erf",)),
    _row("floor", 1, R, np.floor, "floor({0})", r"\lfloor {0} \rfloor", "torch.floor({0})", ttir=("math.floor",), extern=("floor",), aten=("floor",)),
    _row("ceil", 1, R, np.ceil, "ceil({0})", r"\lceil {0} \rceil", "torch.ceil({0})", ttir=("math.ceil",), extern=("ceil",), aten=("ceil",)),
    _row("trunc", 1, R, np.trunc, "trunc({0})", _fn("trunc"), "torch.trunc({0})", ttir=("math.trunc",), extern=("trunc",), aten=("trunc",)),
    _row("round", 1, R, np.rint, "round({0})", _fn("round"), "torch.round({0})", ttir=("math.roundeven",), extern=("rint", "nearbyint"), aten=("round",)),
    _row("asinh", 1, R, np.arcsinh, "asinh({0})", _fn("asinh"), "torch.asinh({0})", extern=("asinh",), aten=("asinh",)),
    _row("acosh", 1, R, np.arccosh, "acosh({0})", _fn("acosh"), "torch.acosh({0})", extern=("acosh",), aten=("acosh",)),
    _row("atanh", 1, R, np.arctanh, "atanh({0})", _fn("atanh"), "torch.atanh({0})", extern=("atanh",), aten=("atanh",)),
    _row("erfc", 1, R, lambda x: 1 - _erf(x), term=lambda a: 1 - T.make("erf", a), extern=("erfc",), aten=("erfc",)),
    _row("erfinv", 1, R, lambda x: _vectorised(_erfinv, x), "erfinv({0})", _fn("erfinv"), "torch.erfinv({0})", extern=("erfinv",), aten=("erfinv",)),
    _row("lgamma", 1, R, lambda x: _vectorised(math.lgamma, x), "lgamma({0})", _fn("lgamma"), "torch.lgamma({0})", extern=("lgamma",), aten=("lgamma",)),
    _row("cbrt", 1, R, np.cbrt, "cbrt({0})", r"\sqrt[3]{{{0}}}", "torch.sign({0}) * torch.abs({0}) ** (1 / 3)", ttir=("math.cbrt",), extern=("cbrt",)),
    _row("exp10", 1, R, lambda x: np.power(10.0, x), term=lambda a: T.make("exp", T.mul(math.log(10), a)), extern=("exp10", "fast_exp10")),
    _row("hypot", 2, R, np.hypot, term=lambda a, b: T.make("sqrt", T.add(T.mul(a, a), T.mul(b, b))), extern=("hypot",), aten=("hypot",)),
    _row("copysign", 2, R, np.copysign, term=lambda a, b: T.make("where", OPS["signbit"].on_terms(b), T.mul(-1, T.make("abs", a)), T.make("abs", a)), ttir=("math.copysign",), extern=("copysign",), aten=()),
    _row("fmod", 2, R, np.fmod, "fmod({0}, {1})", r"\operatorname{{fmod}}({0}, {1})", "torch.fmod({0}, {1})", ttir=("arith.remf",), extern=("fmod",), aten=("fmod",)),
    _row("round_away", 1, R, lambda x: np.trunc(x + np.copysign(0.5, x)), term=lambda a: T.mul(T.make("sign", a), T.make("floor", T.make("abs", a) + 0.5)), ttir=("math.round",), extern=("round",)),
    _row("isnan", 1, B, np.isnan, term=lambda a: T.const(False) if is_finite(a) else T.make("ne", a, a), extern=("isnan",)),  # NaN differs from itself
    _row("isinf", 1, B, np.isinf, term=lambda a: T.const(False) if is_finite(a) else T.make("eq", T.make("abs", a), math.inf), extern=("isinf",)),
    _row("isfinite", 1, B, np.isfinite, term=lambda a: T.const(True) if is_finite(a) else T.make("lt", T.make("abs", a), math.inf), extern=("finite", "isfinited")),
    _row("signbit", 1, B, np.signbit, "signbit({0})", _fn("signbit"), "torch.signbit({0})", term=lambda a: T.make("lt", a, 0) if sign_is_of_value(a) else T.make("signbit", a), extern=("signbit",), aten=("signbit",)),
    # order
    _row("max", -1, SAME, _maximum, "max({0}, {1})", r"\max({0}, {1})", "torch.maximum({0}, {1})", ttir=("arith.maxnumf", "arith.maximumf", "arith.maxsi"), extern=("fmax",), aten=("maximum",)),
    _row("min", -1, SAME, _minimum, "min({0}, {1})", r"\min({0}, {1})", "torch.minimum({0}, {1})", ttir=("arith.minnumf", "arith.minimumf", "arith.minsi"), extern=("fmin",), aten=("minimum",)),
    _row("eq", 2, B, np.equal, "{0} == {1}", "{0} = {1}", "({0} == {1})", aten=("eq",)),
    _row("ne", 2, B, np.not_equal, "{0} != {1}", r"{0} \ne {1}", "({0} != {1})", aten=("ne",)),
    _row("lt", 2, B, np.less, "{0} < {1}", "{0} < {1}", "({0} < {1})", aten=("lt",)),
    _row("le", 2, B, np.less_equal, "{0} <= {1}", r"{0} \le {1}", "({0} <= {1})", aten=("le",)),
    _row("gt", 2, B, np.greater, term=lambda a, b: T.make("lt", b, a), aten=("gt",)),
    _row("ge", 2, B, np.greater_equal, term=lambda a, b: T.make("le", b, a), aten=("ge",)),
    _row("argmax_of", -1, I, lambda *xs: _position(np.argmax, xs), "argmax_of({0})"),  # position of the first maximum of its arguments, in order
    _row("argmin_of", -1, I, lambda *xs: _position(np.argmin, xs), "argmin_of({0})"),
    _row("pick", -1, SAME, lambda index, *xs: _pick(index, xs), "pick({0})"),  # pick(k, x0, x1, ...) is xk
    # logic
    _row("and", -1, B, np.logical_and, "{0} & {1}", r"{0} \land {1}", "({0} & {1})", aten=("logical_and",)),
    _row("or", -1, B, np.logical_or, "{0} | {1}", r"{0} \lor {1}", "({0} | {1})", aten=("logical_or",)),
    _row("not", 1, B, np.logical_not, "~{0}", r"\lnot {0}", "(~{0})", aten=("logical_not",)),
    _row("where", 3, SAME, np.where, "where({0}, {1}, {2})", None, "torch.where({0}, {1}, {2})", ttir=("arith.select",), aten=()),
    # numbers that may be infinite or NaN: elements of `any` inputs, and which of these they are
    _row("given", 1, R, lambda x: x, "{0}", "{0}", "{0}"),
    _row("nan?", 1, B, np.isnan, "isnan({0})", _fn("isnan"), "torch.isnan({0})"),
    _row("plus_infinity?", 1, B, np.isposinf, "isposinf({0})", _fn("isposinf"), "torch.isposinf({0})"),
    _row("minus_infinity?", 1, B, np.isneginf, "isneginf({0})", _fn("isneginf"), "torch.isneginf({0})"),
    # integers
    _row("floordiv", 2, I, _floor_divide, "{0} // {1}", r"\lfloor {0} / {1} \rfloor", "({0} // {1})"),
    _row("mod", 2, I, _mod, "{0} % {1}", r"{0} \bmod {1}", "({0} % {1})", aten=()),
    _row("truncdiv", 2, I, _trunc_divide, "truncdiv({0}, {1})", r"\operatorname{{truncdiv}}({0}, {1})", "torch.div({0}, {1}, rounding_mode='trunc')", ttir=("arith.divsi",)),
    _row("truncmod", 2, I, _trunc_remainder, "truncmod({0}, {1})", r"\operatorname{{truncmod}}({0}, {1})", "torch.fmod({0}, {1})", ttir=("arith.remsi",)),
    _row("next_power_of_2", 1, I, _next_power_of_2, "next_power_of_2({0})", _fn("next\\_power\\_of\\_2"), "(1 << (({0}) - 1).bit_length() if ({0}) > 0 else 0)"),
    _row("bitand", 2, I, _on_integers(np.bitwise_and), "bitand({0}, {1})", r"{0} \mathbin{{\&}} {1}", "({0} & {1})", aten=()),
    _row("bitor", 2, I, _on_integers(np.bitwise_or), "bitor({0}, {1})", r"{0} \mathbin{{|}} {1}", "({0} | {1})", aten=()),
    _row("bitxor", 2, I, _on_integers(np.bitwise_xor), "bitxor({0}, {1})", r"{0} \oplus {1}", "({0} ^ {1})", term=_bitxor, aten=()),
    _row("shl", 2, I, _on_integers(np.left_shift), "{0} << {1}", r"{0} \ll {1}", "({0} << {1})", term=lambda a, b: a if b is T.const(0) else T.make("shl", a, b), ttir=("arith.shli",)),
    _row("shr", 2, I, _on_integers(np.right_shift), "{0} >> {1}", r"{0} \gg {1}", "({0} >> {1})", term=lambda a, b: a if b is T.const(0) else T.make("shr", a, b), ttir=("arith.shrsi",)),
    _row("to_int", 1, I, lambda x: np.trunc(x).astype(np.int64), "int({0})", _fn("int"), "{0}.to(torch.int64)", term=lambda a: a if a.type == T.INT else T.make("trunc", a)),
    _row("random_bits", -1, I, random_bits, "random_bits({0}, {1})", r"\operatorname{{random\_bits}}({0}, {1})"),  # 32 bits of a seed and an offset
    _row("random", -1, R, random, "random({0}, {1})", r"\operatorname{{random}}({0}, {1})"),  # uniform in [0, 1)
    _row("wrap8", 1, I, lambda x: np.asarray(x).astype(np.int8).astype(np.int64), "int8({0})", _fn("int8"), "{0}.to(torch.int8).long()"),
    _row("wrap16", 1, I, lambda x: np.asarray(x).astype(np.int16).astype(np.int64), "int16({0})", _fn("int16"), "{0}.to(torch.int16).long()"),
    _row("wrap32", 1, I, lambda x: np.asarray(x).astype(np.int32).astype(np.int64), "int32({0})", _fn("int32"), "{0}.to(torch.int32).long()"),
    *(_row(f"bits_{f}", 1, I, lambda x, f=f: to_bits(np.asarray(x, np.float64), f), f"bits_{f}({{0}})", _fn(f"bits_{{{{{f}}}}}")) for f in FORMATS),
    *(_row(f"from_bits_{f}", 1, R, lambda x, f=f: from_bits(np.asarray(x, f"i{cell_size(f)}"), f), f"from_bits_{f}({{0}})", _fn(f"bits_{{{{{f}}}}}^{{{{-1}}}}"),
           term=lambda a, f=f: _from_bits(f, a)) for f in FORMATS),
]  # fmt: skip

OPS: dict[str, Op] = {row.name: row for row in ROWS}
T.OPERATIONS.update(OPS)

"""PyTorch operators that act on elements or reduce dimensions: name -> meaning on symbolic tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..terms import term as T
from ..terms.ops import OPS
from ..terms.term import Term, TermLike
from .symbolic_tensor import Rows, SymbolicTensor, cast, choose, full, kind, number, pointwise, truth

ROWS = Rows()
Number = TermLike
Operand = SymbolicTensor | TermLike


def operand(x: Operand) -> SymbolicTensor:
    """A number is a tensor of rank 0."""
    return x if isinstance(x, SymbolicTensor) else full((), x)


def op(name: str) -> Callable[..., Term]:
    return OPS[name].on_terms


def numeric(f: Callable[..., TermLike]) -> Callable[..., Term]:
    """f with truth values taken as 0 and 1."""
    return lambda *ts: T.const(f(*map(number, ts)))


def elementwise(f: Callable[..., TermLike], *xs: Operand, type: str | None = None) -> SymbolicTensor:
    """f of the elements as numbers, with broadcasting. The result is at least an integer."""
    tensors = [operand(x) for x in xs]
    return pointwise(numeric(f), *tensors, type=type or (T.INT if kind(tensors) == T.BOOL else kind(tensors)))


def real(f: Callable[..., TermLike]) -> Callable[..., SymbolicTensor]:
    """The row of a real function."""
    return lambda self, *more: elementwise(f, self, *more, type=T.REAL)


# ---- functions of one number ----------------------------------------------------------------------------------------
exp, log, sqrt, tanh, erf = (op(name) for name in ("exp", "log", "sqrt", "tanh", "erf"))
maximum, minimum, where, absolute, floor, trunc = (op(n) for n in ("max", "min", "where", "abs", "floor", "trunc"))
gt, ge, lt, le, eq, ne = (op(name) for name in ("gt", "ge", "lt", "le", "eq", "ne"))


def sigmoid(x: Term) -> Term:
    return T.recip(1 + exp(-x))


def power(x: TermLike, n: TermLike) -> Term:
    """x ** n: small whole powers are products, halves are roots."""
    x, n = T.const(x), T.const(n)
    match n.attr if n.is_const else None:
        case int(k) if 0 < k <= 4:
            return T.mul(*[x] * k)
        case int(k) if -4 <= k < 0:
            return T.recip(T.mul(*[x] * -k))
        case 0:
            return T.const(1)
        case 0.5:
            return sqrt(x)
        case -0.5:
            return T.recip(sqrt(x))
        case float(k) if 2 * k == int(2 * k) and 0 < k < 4:
            return T.mul(*[x] * int(k), sqrt(x))
        case float(k) if 2 * k == int(2 * k) and -4 < k < 0:
            return T.recip(power(x, -k))
    return op("pow")(x, n)


def gelu(x: Term, approximate: str = "none") -> Term:
    if approximate == "tanh":
        return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def gelu_slope(x: Term, approximate: str = "none") -> Term:
    """d gelu / dx."""
    if approximate == "tanh":
        t = tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return 0.5 * (1 + erf(x * math.sqrt(0.5))) + x * exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


REAL_FUNCTIONS: dict[str, Callable[..., TermLike]] = {
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "log_sigmoid_forward": lambda x: -log(1 + exp(-x)),
    "mish": lambda x: x * tanh(log(1 + exp(x))),
    "hardsigmoid": lambda x: minimum(maximum(x + 3, 0), 6) / 6,
    "hardswish": lambda x: x * minimum(maximum(x + 3, 0), 6) / 6,
    "erfc": lambda x: 1 - erf(x),
    "logit": lambda x, eps=None: log(x / (1 - x)),
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "sinc": lambda x: where(eq(x, 0), 1, op("sin")(math.pi * x) / (math.pi * x)),
    "logaddexp": lambda x, y: log(exp(x) + exp(y)),
    "logaddexp2": lambda x, y: op("log2")(op("exp2")(x) + op("exp2")(y)),
    "angle": lambda x: where(lt(x, 0), math.pi, 0),
    "hypot": lambda x, y: sqrt(x * x + y * y),
    "xlogy": lambda x, y: where(eq(x, 0), 0, x * log(y)),
    "sigmoid_backward": lambda g, y: g * y * (1 - y),
    "tanh_backward": lambda g, y: g * (1 - y * y),
    "silu_backward": lambda g, x: g * sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    "logit_backward": lambda g, x: g / (x * (1 - x)),
    "hardswish_backward": lambda g, x: where(lt(x, -3), 0, where(le(x, 3), g * (x / 3 + 0.5), g)),
    "hardsigmoid_backward": lambda g, x: where(T.make("and", gt(x, -3), lt(x, 3)), g / 6, 0),
    "log_sigmoid_backward": lambda g, x: g * sigmoid(-x),
    "mish_backward": lambda g, x: g * (tanh(log(1 + exp(x))) + x * sigmoid(x) * (1 - power(tanh(log(1 + exp(x))), 2))),
    "sqrt": sqrt,
}  # fmt: skip
SAME_FUNCTIONS: dict[str, Callable[..., TermLike]] = {
    "relu": lambda x: maximum(x, 0),
    "sgn": op("sign"),
    "square": lambda x: x * x,
    "frac": lambda x: x - trunc(x),
    "positive": lambda x: x,
    "fmax": maximum,
    "fmin": minimum,
    "heaviside": lambda x, v: where(lt(x, 0), 0, where(eq(x, 0), v, 1)),
    "copysign": lambda x, y: where(lt(y, 0), -absolute(x), absolute(x)),
}
PREDICATES: dict[str, Callable[..., Term]] = {
    "isnan": lambda x: ne(x, x),
    "isinf": lambda x: eq(absolute(x), math.inf),
    "isfinite": lambda x: lt(absolute(x), math.inf),
    "isposinf": lambda x: eq(x, math.inf),
    "isneginf": lambda x: eq(x, -math.inf),
    "signbit": lambda x: lt(x, 0),
}
LOGIC = {"logical_and": "and", "logical_or": "or", "logical_xor": "ne", "logical_not": "not"}
BITWISE = {"bitwise_and": ("and", "bitand"), "bitwise_or": ("or", "bitor"), "bitwise_xor": ("ne", "bitxor")}
SHIFTS = {"bitwise_left_shift": "shl", "bitwise_right_shift": "shr", "__lshift__": "shl", "__rshift__": "shr"}


def _same(f: Callable[..., TermLike]) -> Callable[..., SymbolicTensor]:
    return lambda self, *more: elementwise(f, self, *more)


def predicate(f: Callable[..., TermLike]) -> Callable[..., SymbolicTensor]:
    return lambda self, *more: elementwise(f, self, *more, type=T.BOOL)


def _equality(name: str) -> Callable[..., SymbolicTensor]:
    """== and !=. A truth value compared with 0 or 1 is itself or its negation."""

    def compare(a: Term, b: Term) -> Term:
        if a.type == b.type == T.BOOL:
            return op(name)(a, b)
        for t, c in ((a, b), (b, a)):
            if t.type == T.BOOL and c.is_const and c.attr in (0, 1):
                return t if (c.attr == 1) == (name == "eq") else T.make("not", t)
        return op(name)(number(a), number(b))

    return lambda self, other: pointwise(compare, operand(self), operand(other), type=T.BOOL)


def logic(name: str) -> Callable[..., SymbolicTensor]:
    return lambda self, *more: pointwise(
        lambda *ts: op(name)(*map(truth, ts)), operand(self), *map(operand, more), type=T.BOOL
    )


def _bitwise(on_bool: str, on_int: str) -> Callable[..., SymbolicTensor]:
    def meaning(self: Operand, other: Operand) -> SymbolicTensor:
        xs = [operand(self), operand(other)]
        return logic(on_bool)(*xs) if kind(xs) == T.BOOL else elementwise(op(on_int), *xs, type=T.INT)

    return meaning


def _from_ops() -> None:
    """Every operator that a row of `lift.terms.ops` names, elementwise."""
    for row in OPS.values():
        for name in row.aten:
            of_type = {"same": _same, T.REAL: real, T.INT: _same, T.BOOL: predicate}[row.type]
            ROWS[name] = of_type(row.on_terms)


_from_ops()
ROWS.update({name: real(f) for name, f in REAL_FUNCTIONS.items()})
ROWS.update({name: _same(f) for name, f in SAME_FUNCTIONS.items()})
ROWS.update({name: predicate(f) for name, f in PREDICATES.items()})
ROWS.update({name: logic(f) for name, f in LOGIC.items()})
ROWS.update({name: _bitwise(*f) for name, f in BITWISE.items()})
ROWS.update({f"__{name[8:]}__": _bitwise(*f) for name, f in BITWISE.items()})
ROWS.update({name: _same(op(f)) for name, f in SHIFTS.items()})

ROWS["log_sigmoid_forward"] = lambda self: (real(REAL_FUNCTIONS["log_sigmoid_forward"])(self), full((0,), 0, T.REAL))
ROWS["log_sigmoid_backward"] = lambda grad_output, self, buffer: real(REAL_FUNCTIONS["log_sigmoid_backward"])(
    grad_output, self
)
ROWS["logit"] = lambda self, eps=None: real(lambda x: log(x / (1 - x)))(
    self if eps is None else ROWS["clamp"](self, eps, 1 - eps)
)


ROWS["eq"], ROWS["ne"] = _equality("eq"), _equality("ne")


@ROWS("add")
def _add(self: Operand, other: Operand, alpha: Number = 1) -> SymbolicTensor:
    xs = [operand(self), operand(other)]
    return logic("or")(*xs) if kind(xs) == T.BOOL else elementwise(lambda a, b: a + alpha * b, *xs)


@ROWS("sub")
def _sub(self: Operand, other: Operand, alpha: Number = 1) -> SymbolicTensor:
    return elementwise(lambda a, b: a - alpha * b, self, other)


@ROWS("rsub")
def _rsub(self: Operand, other: Operand, alpha: Number = 1) -> SymbolicTensor:
    return elementwise(lambda a, b: b - alpha * a, self, other)


@ROWS("mul")
def _mul(self: Operand, other: Operand) -> SymbolicTensor:
    xs = [operand(self), operand(other)]
    return logic("and")(*xs) if kind(xs) == T.BOOL else elementwise(T.mul, *xs)


@ROWS("div", "divide", "true_divide")
def _div(self: Operand, other: Operand, rounding_mode: str | None = None) -> SymbolicTensor:
    if rounding_mode is None:
        return real(T.div)(self, other)
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(lambda a, b: op(rounding_mode)(a / b))(self, other)
    return elementwise(op("floordiv" if rounding_mode == "floor" else "truncdiv"), self, other)


ROWS["floor_divide"] = lambda self, other: _div(self, other, "floor")


@ROWS("remainder")
def _remainder(self: Operand, other: Operand) -> SymbolicTensor:
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(lambda a, b: a - b * floor(a / b))(self, other)
    return elementwise(op("mod"), self, other)


@ROWS("fmod")
def _fmod(self: Operand, other: Operand) -> SymbolicTensor:
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(lambda a, b: a - b * trunc(a / b))(self, other)
    return elementwise(op("truncmod"), self, other)


ROWS["pow"] = lambda self, exponent: elementwise(power, self, exponent)
ROWS["bitwise_not"] = lambda self: logic("not")(self) if self.type == T.BOOL else elementwise(lambda a: -1 - a, self)


@ROWS("round")
def _round(self: SymbolicTensor, decimals: int = 0) -> SymbolicTensor:
    return elementwise(lambda a: op("round")(a * 10**decimals) / 10**decimals, self)


@ROWS("where")
def _where(condition: SymbolicTensor, self: Operand, other: Operand) -> SymbolicTensor:
    a, b = operand(self), operand(other)
    type = kind([a, b])
    return pointwise(lambda c, x, y: choose(truth(c), x, y), condition, cast(a, type), cast(b, type), type=type)


@ROWS("masked_fill")
def _masked_fill(self: SymbolicTensor, mask: SymbolicTensor, value: Operand) -> SymbolicTensor:
    return cast(_where(mask, value, self), self.type)


@ROWS("clamp", "clip")
def _clamp(self: SymbolicTensor, min: Operand | None = None, max: Operand | None = None) -> SymbolicTensor:
    out = self if min is None else elementwise(maximum, self, min)
    return out if max is None else elementwise(minimum, out, max)


ROWS["clamp_min"] = lambda self, min: _clamp(self, min)
ROWS["clamp_max"] = lambda self, max: _clamp(self, None, max)
ROWS["hardtanh"] = lambda self, min_val=-1, max_val=1: _clamp(self, min_val, max_val)
ROWS["relu6"] = lambda self: _clamp(self, 0, 6)
ROWS["gelu"] = lambda self, approximate="none": real(lambda x: gelu(x, approximate))(self)
ROWS["gelu_backward"] = lambda grad_output, self, approximate="none": real(lambda g, x: g * gelu_slope(x, approximate))(
    grad_output, self
)
ROWS["leaky_relu"] = lambda self, negative_slope=0.01: real(lambda x: where(gt(x, 0), x, negative_slope * x))(self)
ROWS["threshold"] = lambda self, threshold, value: elementwise(lambda x: where(gt(x, threshold), x, value), self)
ROWS["threshold_backward"] = lambda grad_output, self, threshold: real(lambda g, x: where(gt(x, threshold), g, 0))(
    grad_output, self
)
ROWS["hardtanh_backward"] = lambda grad_output, self, min_val, max_val: real(
    lambda g, x: where(T.make("and", gt(x, min_val), lt(x, max_val)), g, 0)
)(grad_output, self)


@ROWS("leaky_relu_backward")
def _leaky_relu_backward(
    grad_output: SymbolicTensor, self: SymbolicTensor, negative_slope: Number, self_is_result: bool
) -> SymbolicTensor:
    return real(lambda g, x: where(gt(x, 0), g, negative_slope * g))(grad_output, self)


@ROWS("elu")
def _elu(self: SymbolicTensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> SymbolicTensor:
    return real(lambda x: where(gt(x, 0), scale * x, T.mul(scale, alpha, exp(input_scale * x) - 1)))(self)


@ROWS("softplus")
def _softplus(self: SymbolicTensor, beta: Number = 1, threshold: Number = 20) -> SymbolicTensor:
    return real(lambda x: where(gt(x * beta, threshold), x, log(1 + exp(x * beta)) / T.const(beta)))(self)


@ROWS("softplus_backward")
def _softplus_backward(
    grad_output: SymbolicTensor, self: SymbolicTensor, beta: Number, threshold: Number
) -> SymbolicTensor:
    return real(lambda g, x: where(gt(x * beta, threshold), g, g * sigmoid(x * beta)))(grad_output, self)


@ROWS("lerp")
def _lerp(self: SymbolicTensor, end: SymbolicTensor, weight: Operand) -> SymbolicTensor:
    return real(lambda a, b, w: a + w * (b - a))(self, end, weight)


@ROWS("addcmul")
def _addcmul(
    self: SymbolicTensor, tensor1: SymbolicTensor, tensor2: SymbolicTensor, value: Number = 1
) -> SymbolicTensor:
    return elementwise(lambda a, b, c: a + T.mul(value, b, c), self, tensor1, tensor2)


@ROWS("addcdiv")
def _addcdiv(
    self: SymbolicTensor, tensor1: SymbolicTensor, tensor2: SymbolicTensor, value: Number = 1
) -> SymbolicTensor:
    return real(lambda a, b, c: a + value * b / c)(self, tensor1, tensor2)


@ROWS("nan_to_num")
def _nan_to_num(self: SymbolicTensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> SymbolicTensor:
    """Real numbers are the semantics: only the infinities, where a replacement is given, are replaced."""
    out = elementwise(lambda x: where(ne(x, x), nan or 0, x), self)
    for value, by in ((math.inf, posinf), (-math.inf, neginf)):
        if by is not None:
            out = elementwise(lambda x, value=value, by=by: where(eq(x, value), by, x), out)
    return out

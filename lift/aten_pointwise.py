"""PyTorch operators that act on elements or reduce dimensions: name -> meaning on symbolic tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from . import index as I
from . import term as T
from .ops import OPS
from .stensor import (
    Rows,
    STensor,
    bound,
    cast,
    choose,
    full,
    kind,
    number,
    pointwise,
    reduce,
    reshape,
    select,
    tensor,
    truth,
)
from .term import Term, TermLike

ROWS = Rows()
Number = TermLike
Operand = STensor | TermLike


def operand(x: Operand) -> STensor:
    """A number is a tensor of rank 0."""
    return x if isinstance(x, STensor) else full((), x)


def op(name: str) -> Callable[..., Term]:
    return OPS[name].on_terms


def numeric(f: Callable[..., TermLike]) -> Callable[..., Term]:
    """f with truth values taken as 0 and 1."""
    return lambda *ts: T.const(f(*map(number, ts)))


def elementwise(f: Callable[..., TermLike], *xs: Operand, type: str | None = None) -> STensor:
    """f of the elements as numbers, with broadcasting. The result is at least an integer."""
    tensors = [operand(x) for x in xs]
    return pointwise(numeric(f), *tensors, type=type or (T.INT if kind(tensors) == T.BOOL else kind(tensors)))


def real(f: Callable[..., TermLike]) -> Callable[..., STensor]:
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


def _same(f: Callable[..., TermLike]) -> Callable[..., STensor]:
    return lambda self, *more: elementwise(f, self, *more)


def _predicate(f: Callable[..., TermLike]) -> Callable[..., STensor]:
    return lambda self, *more: elementwise(f, self, *more, type=T.BOOL)


def _logic(name: str) -> Callable[..., STensor]:
    return lambda self, *more: pointwise(
        lambda *ts: op(name)(*map(truth, ts)), operand(self), *map(operand, more), type=T.BOOL
    )


def _bitwise(on_bool: str, on_int: str) -> Callable[..., STensor]:
    def meaning(self: Operand, other: Operand) -> STensor:
        xs = [operand(self), operand(other)]
        return _logic(on_bool)(*xs) if kind(xs) == T.BOOL else elementwise(op(on_int), *xs, type=T.INT)

    return meaning


def _from_ops() -> None:
    """Every operator that a row of `lift.ops` names, elementwise."""
    for row in OPS.values():
        for name in row.aten:
            of_type = {"same": _same, T.REAL: real, T.INT: _same, T.BOOL: _predicate}[row.type]
            ROWS[name] = of_type(row.on_terms)


_from_ops()
ROWS.update({name: real(f) for name, f in REAL_FUNCTIONS.items()})
ROWS.update({name: _same(f) for name, f in SAME_FUNCTIONS.items()})
ROWS.update({name: _predicate(f) for name, f in PREDICATES.items()})
ROWS.update({name: _logic(f) for name, f in LOGIC.items()})
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


@ROWS("add")
def _add(self: Operand, other: Operand, alpha: Number = 1) -> STensor:
    xs = [operand(self), operand(other)]
    return _logic("or")(*xs) if kind(xs) == T.BOOL else elementwise(lambda a, b: a + alpha * b, *xs)


@ROWS("sub")
def _sub(self: Operand, other: Operand, alpha: Number = 1) -> STensor:
    return elementwise(lambda a, b: a - alpha * b, self, other)


@ROWS("rsub")
def _rsub(self: Operand, other: Operand, alpha: Number = 1) -> STensor:
    return elementwise(lambda a, b: b - alpha * a, self, other)


@ROWS("mul")
def _mul(self: Operand, other: Operand) -> STensor:
    xs = [operand(self), operand(other)]
    return _logic("and")(*xs) if kind(xs) == T.BOOL else elementwise(T.mul, *xs)


@ROWS("div", "divide", "true_divide")
def _div(self: Operand, other: Operand, rounding_mode: str | None = None) -> STensor:
    if rounding_mode is None:
        return real(T.div)(self, other)
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(lambda a, b: op(rounding_mode)(a / b))(self, other)
    return elementwise(op("floordiv" if rounding_mode == "floor" else "truncdiv"), self, other)


ROWS["floor_divide"] = lambda self, other: _div(self, other, "floor")


@ROWS("remainder")
def _remainder(self: Operand, other: Operand) -> STensor:
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(lambda a, b: a - b * floor(a / b))(self, other)
    return elementwise(op("mod"), self, other)


@ROWS("fmod")
def _fmod(self: Operand, other: Operand) -> STensor:
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(lambda a, b: a - b * trunc(a / b))(self, other)
    return elementwise(op("truncmod"), self, other)


ROWS["pow"] = lambda self, exponent: elementwise(power, self, exponent)
ROWS["bitwise_not"] = lambda self: _logic("not")(self) if self.type == T.BOOL else elementwise(lambda a: -1 - a, self)


@ROWS("round")
def _round(self: STensor, decimals: int = 0) -> STensor:
    return elementwise(lambda a: op("round")(a * 10**decimals) / 10**decimals, self)


@ROWS("where")
def _where(condition: STensor, self: Operand, other: Operand) -> STensor:
    a, b = operand(self), operand(other)
    type = kind([a, b])
    return pointwise(lambda c, x, y: choose(truth(c), x, y), condition, cast(a, type), cast(b, type), type=type)


@ROWS("masked_fill")
def _masked_fill(self: STensor, mask: STensor, value: Operand) -> STensor:
    return cast(_where(mask, value, self), self.type)


@ROWS("clamp", "clip")
def _clamp(self: STensor, min: Operand | None = None, max: Operand | None = None) -> STensor:
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
def _leaky_relu_backward(grad_output: STensor, self: STensor, negative_slope: Number, self_is_result: bool) -> STensor:
    return real(lambda g, x: where(gt(x, 0), g, negative_slope * g))(grad_output, self)


@ROWS("elu")
def _elu(self: STensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> STensor:
    return real(lambda x: where(gt(x, 0), scale * x, T.mul(scale, alpha, exp(input_scale * x) - 1)))(self)


@ROWS("softplus")
def _softplus(self: STensor, beta: Number = 1, threshold: Number = 20) -> STensor:
    return real(lambda x: where(gt(x * beta, threshold), x, log(1 + exp(x * beta)) / T.const(beta)))(self)


@ROWS("softplus_backward")
def _softplus_backward(grad_output: STensor, self: STensor, beta: Number, threshold: Number) -> STensor:
    return real(lambda g, x: where(gt(x * beta, threshold), g, g * sigmoid(x * beta)))(grad_output, self)


@ROWS("lerp")
def _lerp(self: STensor, end: STensor, weight: Operand) -> STensor:
    return real(lambda a, b, w: a + w * (b - a))(self, end, weight)


@ROWS("addcmul")
def _addcmul(self: STensor, tensor1: STensor, tensor2: STensor, value: Number = 1) -> STensor:
    return elementwise(lambda a, b, c: a + T.mul(value, b, c), self, tensor1, tensor2)


@ROWS("addcdiv")
def _addcdiv(self: STensor, tensor1: STensor, tensor2: STensor, value: Number = 1) -> STensor:
    return real(lambda a, b, c: a + value * b / c)(self, tensor1, tensor2)


@ROWS("nan_to_num")
def _nan_to_num(self: STensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> STensor:
    """Real numbers are the semantics: only the infinities, where a replacement is given, are replaced."""
    out = elementwise(lambda x: where(ne(x, x), nan or 0, x), self)
    for value, by in ((math.inf, posinf), (-math.inf, neginf)):
        if by is not None:
            out = elementwise(lambda x, value=value, by=by: where(eq(x, value), by, x), out)
    return out


# ---- reductions -----------------------------------------------------------------------------------------------------
Dims = Sequence[int] | int | None


def dims_of(dim: Dims) -> list[int] | None:
    return None if dim is None else [dim] if isinstance(dim, int) else list(dim)


def count_of(x: STensor, dim: Dims) -> Term:
    """How many elements a reduction over dim takes together."""
    chosen = {x.dim(d) for d in dims_of(dim) or range(x.rank)} if x.rank else set()
    return I.numel(tuple(x.shape[d] for d in sorted(chosen)))


@ROWS("sum")
def _sum(self: STensor, dim: Dims = None, keepdim: bool = False) -> STensor:
    return reduce("sum", self, dims_of(dim), keepdim)


@ROWS("mean")
def _mean(self: STensor, dim: Dims = None, keepdim: bool = False) -> STensor:
    n = count_of(self, dim)
    return real(lambda s: s / n)(_sum(self, dim, keepdim))


@ROWS("prod")
def _prod(self: STensor, dim: Dims = None, keepdim: bool = False) -> STensor:
    return reduce("prod", self, dims_of(dim), keepdim)


@ROWS("amax")
def _amax(self: STensor, dim: Dims = None, keepdim: bool = False) -> STensor:
    return reduce("amax", self, dims_of(dim), keepdim)


@ROWS("amin")
def _amin(self: STensor, dim: Dims = None, keepdim: bool = False) -> STensor:
    return reduce("amin", self, dims_of(dim), keepdim)


@ROWS("argmax")
def _argmax(self: STensor, dim: int | None = None, keepdim: bool = False) -> STensor:
    return reduce("argmax", self, dims_of(dim), keepdim)


@ROWS("argmin")
def _argmin(self: STensor, dim: int | None = None, keepdim: bool = False) -> STensor:
    return reduce("argmin", self, dims_of(dim), keepdim)


def _extremum(op_name: str) -> Callable[..., Any]:
    def meaning(self: STensor, dim: int | None = None, keepdim: bool = False, other: STensor | None = None) -> Any:
        if other is not None:
            return elementwise(op(op_name), self, other)
        values = reduce(f"a{op_name}", self, dims_of(dim), keepdim)
        return values if dim is None else (values, reduce(f"arg{op_name}", self, [dim], keepdim))

    return meaning


ROWS["max"], ROWS["min"] = _extremum("max"), _extremum("min")


@ROWS("topk")
def _topk(self: STensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Only k = 1 is a fold."""
    from .errors import Unsupported

    if T.const(k) is not T.const(1):
        raise Unsupported("aten.topk", why=f"k = {k}: only k = 1 has a formula")
    return ROWS["max" if largest else "min"](self, dim, True)


@ROWS("any")
def _any(self: STensor, dim: Dims = None, keepdim: bool = False) -> STensor:
    return _predicate(lambda n: lt(0, n))(reduce("sum", cast(self, T.BOOL), dims_of(dim), keepdim))


@ROWS("all")
def _all(self: STensor, dim: Dims = None, keepdim: bool = False) -> STensor:
    return _predicate(lambda n: eq(n, 0))(reduce("sum", _logic("not")(self), dims_of(dim), keepdim))


ROWS["count_nonzero"] = lambda self, dim=None: reduce("sum", cast(self, T.BOOL), dims_of(dim))


@ROWS("var_mean")
def _var_mean(
    self: STensor, dim: Any = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    c = (1 if unbiased else 0) if correction is None else correction
    mean = _mean(self, dim, True)
    squares = elementwise(lambda x, m: (x - m) * (x - m), self, mean)
    n = count_of(self, dim) - T.const(c)
    n = maximum(n, 0) if n.is_const else n
    variance = real(lambda s: s / n)(_sum(squares, dim, keepdim))
    return variance, _mean(self, dim, keepdim)


def _moment(pick: Callable[[STensor, STensor], Any]) -> Callable[..., Any]:
    """A row of the variance v and the mean m."""

    def meaning(
        self: STensor, dim: Any = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False
    ) -> Any:
        return pick(*_var_mean(self, dim, unbiased, correction, keepdim))

    return meaning


ROWS["var"] = _moment(lambda v, m: v)
ROWS["std"] = _moment(lambda v, m: real(sqrt)(v))
ROWS["std_mean"] = _moment(lambda v, m: (real(sqrt)(v), m))


@ROWS("logsumexp")
def _logsumexp(self: STensor, dim: Dims, keepdim: bool = False) -> STensor:
    return real(log)(_sum(real(exp)(self), dim, keepdim))


@ROWS("linalg_vector_norm", "norm")
def _norm(self: STensor, ord: Number = 2, dim: Dims = None, keepdim: bool = False, p: Number | None = None) -> STensor:
    p = ord if p is None else p
    size = real(absolute)(self)
    match p.attr if isinstance(p, Term) else p:
        case math.inf:
            return _amax(size, dim, keepdim)
        case 0:
            return cast(_sum(cast(self, T.BOOL), dim, keepdim), T.REAL)
        case 1:
            return _sum(size, dim, keepdim)
        case 2:
            return real(sqrt)(_sum(real(lambda x: x * x)(self), dim, keepdim))
    return real(lambda s: power(s, 1 / T.const(p)))(_sum(real(lambda x: power(x, p))(size), dim, keepdim))


def _scan(fold: str, unit: Number) -> Callable[..., STensor]:
    """Prefix folds: element i takes the elements k <= i."""

    def meaning(self: STensor, dim: int) -> STensor:
        if self.rank == 0:
            return self
        d = self.dim(dim)
        axis = bound(self.shape[d])
        k = T.axis(axis)
        return tensor(
            self.shape,
            lambda i: T.fold(fold, axis, where(le(k, i[d]), number(self.at((*i[:d], k, *i[d + 1 :]))), unit)),
            T.INT if self.type == T.BOOL else self.type,
        )

    return meaning


ROWS["cumsum"], ROWS["cumprod"] = _scan("sum", 0), _scan("prod", 1)
ROWS["logcumsumexp"] = lambda self, dim: real(log)(ROWS["cumsum"](real(exp)(self), dim))


def _running(fold: str, worst: float) -> Callable[..., tuple[STensor, STensor]]:
    """Running extremum and, of several equal ones, the last position."""

    def meaning(self: STensor, dim: int) -> tuple[STensor, STensor]:
        values = _scan(fold, worst)(self, dim)
        if self.rank == 0:
            return values, full((), 0)
        d = self.dim(dim)
        axis = bound(self.shape[d])
        k = T.axis(axis)

        def position(i: tuple[Term, ...]) -> Term:
            equal = eq(self.at((*i[:d], k, *i[d + 1 :])), values.at(i))
            return T.fold("amax", axis, where(T.make("and", le(k, i[d]), equal), k, -1))

        return values, tensor(self.shape, position, T.INT)

    return meaning


ROWS["cummax"], ROWS["cummin"] = _running("amax", -math.inf), _running("amin", math.inf)


@ROWS("_softmax", "softmax")
def _softmax(self: STensor, dim: int, half_to_float: bool = False) -> STensor:
    e = real(exp)(self)
    return real(T.div)(e, _sum(e, dim, True))


@ROWS("_safe_softmax")
def _safe_softmax(self: STensor, dim: int) -> STensor:
    """A row of minus infinities gives zeros."""
    e = real(exp)(self)
    return real(lambda a, s: where(eq(s, 0), 0, a / s))(e, _sum(e, dim, True))


@ROWS("_log_softmax", "log_softmax")
def _log_softmax(self: STensor, dim: int, half_to_float: bool = False) -> STensor:
    return real(T.sub)(self, _logsumexp(self, dim, True))


@ROWS("_softmax_backward_data")
def _softmax_backward(grad_output: STensor, output: STensor, dim: int, input_dtype: Any = None) -> STensor:
    total = _sum(real(T.mul)(grad_output, output), dim, True)
    return real(lambda g, y, s: (g - s) * y)(grad_output, output, total)


@ROWS("_log_softmax_backward_data")
def _log_softmax_backward(grad_output: STensor, output: STensor, dim: int, input_dtype: Any = None) -> STensor:
    return real(lambda g, y, s: g - exp(y) * s)(grad_output, output, _sum(grad_output, dim, True))


def contraction(
    size: Term, shape: Sequence[Term], body: Callable[[tuple[Term, ...], Term], Term], type: str
) -> STensor:
    """sum over k < size of body(index, k)."""
    axis = bound(size)
    k = T.axis(axis) if size is not T.const(1) else T.const(0)
    fold = (lambda t: t) if size is T.const(1) else (lambda t: T.fold("sum", axis, t))
    return tensor(shape, lambda i: fold(body(i, k)), type)


@ROWS("mm", "bmm", "matmul", "linalg_matmul", "_int_mm")
def matmul(self: STensor, mat2: STensor | None = None, other: STensor | None = None) -> STensor:
    """sum over k of a[..., i, k] * b[..., k, j]; batch dimensions are equal, or broadcast."""
    from .stensor import broadcast_shapes

    a, b = self, mat2 if mat2 is not None else other
    assert b is not None
    if b.rank == 1:
        return select(matmul(a, reshape(b, (*b.shape, 1))), -1, 0)
    if a.rank == 1:
        return select(matmul(reshape(a, (1, *a.shape)), b), -2, 0)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])

    def left(i: tuple[Term, ...], sizes: Sequence[Term]) -> tuple[Term, ...]:
        own = i[len(i) - len(sizes) :]
        return tuple(T.const(0) if n is T.const(1) else x for x, n in zip(own, sizes, strict=True))

    def body(i: tuple[Term, ...], k: Term) -> Term:
        outer = i[:-2]
        return a.at((*left(outer, a.shape[:-2]), i[-2], k)) * b.at((*left(outer, b.shape[:-2]), k, i[-1]))

    return contraction(a.shape[-1], (*batch, a.shape[-2], b.shape[-1]), body, kind([a, b]))


def _added(self: STensor, product: STensor, beta: Number, alpha: Number) -> STensor:
    if T.const(beta) is T.const(0):
        return elementwise(lambda p: alpha * p, product)
    return elementwise(lambda c, p: beta * c + alpha * p, self, product)


ROWS["dot"] = ROWS["vdot"] = lambda self, tensor=None, other=None: matmul(self, tensor or other)
ROWS["mv"] = lambda self, vec: matmul(self, vec)
ROWS["addmm"] = lambda self, mat1, mat2, beta=1, alpha=1: _added(self, matmul(mat1, mat2), beta, alpha)
ROWS["baddbmm"] = lambda self, batch1, batch2, beta=1, alpha=1: _added(self, matmul(batch1, batch2), beta, alpha)
ROWS["addmv"] = lambda self, mat, vec, beta=1, alpha=1: _added(self, matmul(mat, vec), beta, alpha)
ROWS["linear"] = lambda input, weight, bias=None: _linear(input, weight, bias)


def _linear(input: STensor, weight: STensor, bias: STensor | None = None) -> STensor:
    from .stensor import permute

    out = matmul(input, permute(weight, [1, 0]))
    return out if bias is None else elementwise(T.add, out, bias)

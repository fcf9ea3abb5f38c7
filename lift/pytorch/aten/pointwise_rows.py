"""PyTorch operators that act on elements, with broadcasting."""

from __future__ import annotations

import math
from typing import Any

from ...terms import construct as T
from ...terms.definedness import is_finite
from ...terms.ops import OPS
from ..symbolic_tensor import SymbolicTensor, cast, choose, full, kind, pointwise, truth
from .elementwise import (
    Number,
    Operand,
    bitwise,
    elementwise,
    eq,
    equality,
    exp,
    floor,
    gelu,
    gelu_slope,
    gt,
    le,
    log,
    logic,
    lt,
    maximum,
    minimum,
    mish_slope,
    op,
    operand,
    power,
    predicate,
    real,
    same,
    sigmoid,
    sqrt,
    tanh,
    trunc,
    where,
)
from .operator_row import Row, Rows

ROWS = Rows(__name__)
NN = "torch.nn.functional."
LARGEST = 3.4028234663852886e38  # of single precision

# ---- operators that a row of lift.terms.ops names -------------------------------------------------------------------
BELOW = {
    "copysign", "eq", "erfc", "fmod", "hypot", "logical_and", "logical_not", "logical_or", "mul", "ne", "round", "signbit",
}  # fmt: skip
RESULT = {"same": same, T.REAL: real, T.INT: same, T.BOOL: predicate}

ROWS.add(
    *(
        Row(name, "self" if o.arity == 1 else "self, other", RESULT[o.type](o.on_terms))
        for o in OPS.values()
        for name in o.aten
        if name not in BELOW  # of other types, or of truth values, they are more than the operation
    )
)


# ---- operators whose meaning depends on types or options ------------------------------------------------------------
@ROWS("add", "torch.add")
def _add(self: Operand, other: Operand, alpha: Number = 1) -> SymbolicTensor:
    xs = [operand(self), operand(other)]
    return logic("or")(*xs) if kind(xs) == T.BOOL else elementwise(lambda a, b: a + alpha * b, *xs)


@ROWS("mul", "torch.mul")
def _mul(self: Operand, other: Operand) -> SymbolicTensor:
    xs = [operand(self), operand(other)]
    return logic("and")(*xs) if kind(xs) == T.BOOL else elementwise(T.mul, *xs)


@ROWS("div divide", "torch.div")
def divide(self: Operand, other: Operand, rounding_mode: str | None = None) -> SymbolicTensor:
    if rounding_mode is None:
        return real(T.div)(self, other)
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(lambda a, b: op(rounding_mode)(a / b))(self, other)
    return elementwise(op("floordiv" if rounding_mode == "floor" else "truncdiv"), self, other)


@ROWS("remainder", "torch.remainder")
def _remainder(self: Operand, other: Operand) -> SymbolicTensor:
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(lambda a, b: a - b * floor(a / b))(self, other)
    return elementwise(op("mod"), self, other)


@ROWS("fmod", "torch.fmod")
def _fmod(self: Operand, other: Operand) -> SymbolicTensor:
    if kind([operand(self), operand(other)]) == T.REAL:
        return real(op("fmod"))(self, other)
    return elementwise(op("truncmod"), self, other)


@ROWS("where", "torch.where")
def _where(condition: SymbolicTensor, self: Operand, other: Operand) -> SymbolicTensor:
    a, b = operand(self), operand(other)
    of_type = kind([a, b])
    return pointwise(
        lambda c, x, y: choose(truth(c), x, y), condition, cast(a, of_type), cast(b, of_type), of_type=of_type
    )


@ROWS("masked_fill", "torch.Tensor.masked_fill")
def _masked_fill(self: SymbolicTensor, mask: SymbolicTensor, value: Operand) -> SymbolicTensor:
    return cast(_where(mask, value, self), self.type)


@ROWS("logit", "torch.logit")
def _logit(self: SymbolicTensor, eps: Number | None = None) -> SymbolicTensor:
    return real(lambda x: log(x / (1 - x)))(self if eps is None else clamp(self, eps, 1 - eps))


@ROWS("clamp clip", "torch.clamp")
def clamp(self: SymbolicTensor, min: Operand | None = None, max: Operand | None = None) -> SymbolicTensor:
    out = self if min is None else elementwise(maximum, self, min)
    return out if max is None else elementwise(minimum, out, max)


@ROWS("nan_to_num", "torch.nan_to_num")
def _nan_to_num(self: SymbolicTensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> SymbolicTensor:
    """Infinities become the ends of single precision where no replacement is given."""
    top, bottom = LARGEST if posinf is None else posinf, -LARGEST if neginf is None else neginf

    def meaning(x: T.Term) -> T.Term:
        if is_finite(x):
            return x
        infinite = where(eq(x, math.inf), top, where(eq(x, -math.inf), bottom, x))
        return where(op("isnan")(x), nan or 0, infinite)

    return elementwise(meaning, self)


# ---- operators whose meaning is one expression ----------------------------------------------------------------------
ROWS.add(
    # real functions
    Row("sigmoid", "self", real(sigmoid), "torch.sigmoid"),
    Row("silu", "self", real(lambda x: x * sigmoid(x)), NN + "silu"),
    Row("mish", "self", real(lambda x: x * tanh(log(1 + exp(x)))), NN + "mish"),
    Row("gelu", "self, approximate='none'", lambda x, how: real(lambda t: gelu(t, how))(x), NN + "gelu"),
    Row("hardsigmoid", "self", real(lambda x: minimum(maximum(x + 3, 0), 6) / 6), NN + "hardsigmoid"),
    Row("hardswish", "self", real(lambda x: x * minimum(maximum(x + 3, 0), 6) / 6), NN + "hardswish"),
    Row("log_sigmoid_forward", "self", lambda x: (real(lambda t: -log(1 + exp(-t)))(x), full((0,), 0, T.REAL)), NN + "logsigmoid"),
    Row("leaky_relu", "self, negative_slope=0.01", real(lambda x, slope: where(gt(x, 0), x, slope * x)), NN + "leaky_relu"),
    Row("elu", "self, alpha=1, scale=1, input_scale=1", real(lambda x, alpha, scale, inner: where(gt(x, 0), scale * x, T.mul(scale, alpha, exp(inner * x) - 1))), NN + "elu"),
    Row("softplus", "self, beta=1, threshold=20", real(lambda x, beta, most: where(gt(x * beta, most), x, log(1 + exp(x * beta)) / beta)), NN + "softplus"),
    Row("erfc", "self", real(lambda x: 1 - op("erf")(x)), "torch.erfc"),
    Row("deg2rad", "self", real(lambda x: x * (math.pi / 180)), "torch.deg2rad"),
    Row("rad2deg", "self", real(lambda x: x * (180 / math.pi)), "torch.rad2deg"),
    Row("sinc", "self", real(lambda x: where(eq(x, 0), 1, op("sin")(math.pi * x) / (math.pi * x))), "torch.sinc"),
    Row("logaddexp", "self, other", real(lambda x, y: log(exp(x) + exp(y))), "torch.logaddexp"),
    Row("logaddexp2", "self, other", real(lambda x, y: op("log2")(op("exp2")(x) + op("exp2")(y))), "torch.logaddexp2"),
    Row("angle", "self", real(lambda x: where(lt(x, 0), math.pi, 0)), "torch.angle"),
    Row("hypot", "self, other", real(lambda x, y: sqrt(x * x + y * y)), "torch.hypot"),
    Row("xlogy", "self, other", real(lambda x, y: where(eq(x, 0), 0, x * log(y))), "torch.xlogy"),
    Row("lerp", "self, end, weight", real(lambda a, b, w: a + w * (b - a)), "torch.lerp"),
    # their gradients
    Row("sigmoid_backward", "grad_output, output", real(lambda g, y: g * y * (1 - y))),
    Row("tanh_backward", "grad_output, output", real(lambda g, y: g * (1 - y * y))),
    Row("silu_backward", "grad_output, self", real(lambda g, x: g * sigmoid(x) * (1 + x * (1 - sigmoid(x))))),
    Row("mish_backward", "grad_output, self", real(lambda g, x: g * mish_slope(x))),
    Row("gelu_backward", "grad_output, self, approximate='none'", lambda g, x, how: real(lambda a, t: a * gelu_slope(t, how))(g, x)),
    Row("hardsigmoid_backward", "grad_output, self", real(lambda g, x: where(T.make("and", gt(x, -3), lt(x, 3)), g / 6, 0))),
    Row("hardswish_backward", "grad_output, self", real(lambda g, x: where(le(x, -3), 0, where(lt(x, 3), g * (x / 3 + 0.5), g)))),
    Row("log_sigmoid_backward", "grad_output, self, buffer", lambda g, x, buffer: real(lambda a, t: a * sigmoid(-t))(g, x)),
    Row("leaky_relu_backward", "grad_output, self, negative_slope, self_is_result", real(lambda g, x, slope, result: where(gt(x, 0), g, slope * g))),
    Row("logit_backward", "grad_output, self", real(lambda g, x: g / (x * (1 - x)))),
    Row("threshold_backward", "grad_output, self, threshold", real(lambda g, x, least: where(gt(x, least), g, 0))),
    Row("hardtanh_backward", "grad_output, self, min_val, max_val", real(lambda g, x, low, high: where(T.make("and", gt(x, low), lt(x, high)), g, 0))),
    Row("softplus_backward", "grad_output, self, beta, threshold", real(lambda g, x, beta, most: where(gt(x * beta, most), g, g * sigmoid(x * beta)))),
    # functions that keep integers
    Row("relu", "self", same(lambda x: maximum(x, 0)), NN + "relu"),
    Row("relu6", "self", lambda x: clamp(x, 0, 6), NN + "relu6"),
    Row("hardtanh", "self, min_val=-1, max_val=1", lambda x, low, high: clamp(x, low, high), NN + "hardtanh"),
    Row("threshold", "self, threshold, value", lambda x, least, value: elementwise(lambda t: where(gt(t, least), t, value), x), NN + "threshold"),
    Row("sgn", "self", same(op("sign")), "torch.sgn"),
    Row("square", "self", same(lambda x: x * x), "torch.square"),
    Row("frac", "self", same(lambda x: x - trunc(x)), "torch.frac"),
    Row("fmax", "self, other", same(maximum), "torch.fmax"),
    Row("fmin", "self, other", same(minimum), "torch.fmin"),
    Row("heaviside", "self, values", same(lambda x, v: where(lt(x, 0), 0, where(eq(x, 0), v, 1))), "torch.heaviside"),
    Row("copysign", "self, other", same(op("copysign")), "torch.copysign"),
    Row("pow", "self, exponent", same(power), "torch.pow"),
    Row("sub", "self, other, alpha=1", lambda x, y, alpha: elementwise(lambda a, b: a - alpha * b, x, y), "torch.sub"),
    Row("rsub", "self, other, alpha=1", lambda x, y, alpha: elementwise(lambda a, b: b - alpha * a, x, y)),
    Row("true_divide", "self, other", real(T.div), "torch.true_divide"),
    Row("floor_divide", "self, other", lambda x, y: divide(x, y, "floor"), "torch.floor_divide"),
    Row("round", "self, decimals=0", lambda x, decimals: elementwise(lambda a: op("round")(a * 10**decimals) / 10**decimals, x), "torch.round"),
    Row("addcmul", "self, tensor1, tensor2, value=1", lambda x, y, z, value: elementwise(lambda a, b, c: a + T.mul(value, b, c), x, y, z), "torch.addcmul"),
    Row("addcdiv", "self, tensor1, tensor2, value=1", real(lambda x, y, z, value: x + value * y / z), "torch.addcdiv"),
    Row("clamp_min", "self, min", lambda x, low: clamp(x, low)),
    Row("clamp_max", "self, max", lambda x, high: clamp(x, None, high)),
    # predicates and logic
    Row("eq", "self, other", equality("eq"), "torch.eq"),
    Row("ne", "self, other", equality("ne"), "torch.ne"),
    Row("isnan", "self", predicate(op("isnan")), "torch.isnan"),
    Row("isinf", "self", predicate(op("isinf")), "torch.isinf"),
    Row("isfinite", "self", predicate(op("isfinite")), "torch.isfinite"),
    Row("isposinf", "self", predicate(lambda x: eq(x, math.inf)), "torch.isposinf"),
    Row("isneginf", "self", predicate(lambda x: eq(x, -math.inf)), "torch.isneginf"),
    Row("signbit", "self", predicate(op("signbit")), "torch.signbit"),
    Row("logical_and", "self, other", logic("and"), "torch.logical_and"),
    Row("logical_or", "self, other", logic("or"), "torch.logical_or"),
    Row("logical_xor", "self, other", logic("ne"), "torch.logical_xor"),
    Row("logical_not", "self", logic("not"), "torch.logical_not"),
    # bits
    Row("bitwise_and __and__", "self, other", bitwise("and", "bitand"), "torch.bitwise_and"),
    Row("bitwise_or __or__", "self, other", bitwise("or", "bitor"), "torch.bitwise_or"),
    Row("bitwise_xor __xor__", "self, other", bitwise("ne", "bitxor"), "torch.bitwise_xor"),
    Row("bitwise_left_shift __lshift__", "self, other", same(op("shl")), "torch.bitwise_left_shift"),
    Row("bitwise_right_shift __rshift__", "self, other", same(op("shr")), "torch.bitwise_right_shift"),
    Row("bitwise_not", "self", lambda x: logic("not")(x) if x.type == T.BOOL else elementwise(lambda a: -1 - a, x), "torch.bitwise_not"),
)  # fmt: skip

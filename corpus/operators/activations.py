"""relu, leaky_relu, square_relu, sigmoid, silu, gelu by erf and by tanh: a grid-stride loop, picked by a constant."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from trilift import case


@triton.jit
def sigmoid_of(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def gelu_by_erf(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_by_tanh(x):
    """tanh(u) = 2 sigmoid(2u) - 1, u = sqrt(2/pi) (x + 0.044715 x^3)."""
    u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + 2 * sigmoid_of(2 * u) - 1)


@triton.jit
def activation_kernel(x_ptr, y_ptr, n_elements, slope, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0).to(tl.int64) * BLOCK, n_elements, step):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n_elements
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        if ACTIVATION == "relu":
            y = tl.maximum(x, 0.0)
        elif ACTIVATION == "leaky_relu":
            y = tl.where(x > 0, x, slope * x)
        elif ACTIVATION == "square_relu":
            y = tl.maximum(x, 0.0)
            y = y * y
        elif ACTIVATION == "sigmoid":
            y = sigmoid_of(x)
        elif ACTIVATION == "silu":
            y = x * sigmoid_of(x)
        elif ACTIVATION == "gelu":
            y = gelu_by_erf(x)
        else:
            tl.static_assert(ACTIVATION == "gelu_tanh")
            y = gelu_by_tanh(x)
        tl.store(y_ptr + offsets, y, mask=mask)


def activation(x, name, slope=0.0, block=1024, programs=4):
    """The activation of that name on a contiguous tensor; a fixed number of programs shares the elements."""
    y = torch.empty_like(x)
    activation_kernel[(programs,)](x, y, x.numel(), slope, ACTIVATION=name, BLOCK=block)
    return y


@case(x="f32[M,N]")
def relu(x):
    return activation(x, "relu")


@relu.reference
def _(x):
    return torch.relu(x)


@case(x="f32[M,N]", slope="f32")
def leaky_relu(x, slope):
    return activation(x, "leaky_relu", slope)


@leaky_relu.reference
def _(x, slope):
    return torch.where(x > 0, x, slope * x)


@case(x="f32[M,N]")
def square_relu(x):
    return activation(x, "square_relu")


@square_relu.reference
def _(x):
    return torch.relu(x) ** 2


@case(x="f32[M,N]")
def sigmoid(x):
    return activation(x, "sigmoid")


@sigmoid.reference
def _(x):
    return torch.sigmoid(x)


@case(x="bf16[M,N]")
def silu(x):
    return activation(x, "silu")


@silu.reference
def _(x):
    return F.silu(x.float())


@case(x="f32[M,N]")
def gelu(x):
    return activation(x, "gelu")


@gelu.reference
def _(x):
    return F.gelu(x)


@case(x="f32[M,N]")
def gelu_tanh(x):
    return activation(x, "gelu_tanh")


@gelu_tanh.reference
def _(x):
    return F.gelu(x, approximate="tanh")

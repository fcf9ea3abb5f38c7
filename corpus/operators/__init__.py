"""Operators written the way shipped kernels are: masked tails, strides, arbitrary sizes, loops over blocks, autotuned tiles.

The paper's 33 are the cases add, sub, mul, div, cat, neg, reciprocal, zeros, exp, sin, cos, log, abs, rsqrt, tanh, sum, max,
matmul, relu, leaky_relu, square_relu, gelu, swiglu, sigmoid, silu, softmax1, softmax2, log_softmax, layer_norm, rms_norm,
gelu_mul, silu_mul and attention (arXiv 2412.20992, table of benchmarks). All other cases go beyond it.
"""

PAPER = (
    *(
        "add",
        "sub",
        "mul",
        "div",
        "cat",
        "neg",
        "reciprocal",
        "zeros",
        "exp",
        "sin",
        "cos",
        "log",
        "abs",
        "rsqrt",
        "tanh",
    ),
    *("sum", "max", "matmul", "relu", "leaky_relu", "square_relu", "gelu", "swiglu", "sigmoid", "silu"),
    *("softmax1", "softmax2", "log_softmax", "layer_norm", "rms_norm", "gelu_mul", "silu_mul", "attention"),
)

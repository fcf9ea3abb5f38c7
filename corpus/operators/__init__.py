"""Operators written the way shipped kernels are: masked tails, strides, arbitrary sizes, loops over blocks, autotuning.

PAPER names the 33 of arXiv 2412.20992 (softmax1: block holds the row, softmax2: loops over the row); all other cases
go beyond it.
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

"""Nothing times a quotient, a root or a logarithm: NaN where they are no numbers."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def vanishing(x_ptr, y_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    x, y = tl.load(x_ptr + i, mask=m, other=1), tl.load(y_ptr + i, mask=m, other=1)
    if OP == "number":
        z = x * 0
    elif OP == "quotient":
        z = x / y * 0
    elif OP == "root":
        z = tl.sqrt(x) * 0 + y
    elif OP == "logarithm":
        z = tl.log(x) * 0.0
    elif OP == "difference":
        z = x / y - x / y
    tl.store(out_ptr + i, z, mask=m)


def made(name, op, reference):
    """A case of the kernel with this operation."""

    def fn(x, y):
        out = torch.empty_like(x)
        vanishing[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), OP=op, BLOCK=64)
        return out

    fn.__name__ = name
    found = case(x="f32[N]", y="f32[N]")(fn)
    found.reference(reference)
    return found


right_number = made("right_number", "number", lambda x, y: torch.zeros_like(x))
right_quotient = made("right_quotient", "quotient", lambda x, y: x / y * 0)

wrong_quotient = made("wrong_quotient", "quotient", lambda x, y: torch.zeros_like(x))
wrong_number = made("wrong_number", "number", lambda x, y: x / y * 0)
wrong_root = made("wrong_root", "root", lambda x, y: y)
wrong_logarithm = made("wrong_logarithm", "logarithm", lambda x, y: torch.zeros_like(x))
wrong_difference = made("wrong_difference", "difference", lambda x, y: torch.zeros_like(x))

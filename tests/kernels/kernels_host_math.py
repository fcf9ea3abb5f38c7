"""Host functions that raise for some scalars: a logarithm, a root, a power, an overflow."""

import math

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def scaled_kernel(x_ptr, out_ptr, N, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < N) * s, mask=i < N)


def scaled(x, s):
    out = torch.empty_like(x)
    scaled_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), s, BLOCK=64)
    return out


def _case(host, reference):
    found = case(x="f32[N]", s="f32")(lambda x, s: scaled(x, host(s)))
    found.reference(lambda x, s: x * reference(torch.tensor(s)))
    return found


CASES = {
    "0 < s": _case(lambda s: math.log(s), torch.log),
    "0 < s + 1": _case(lambda s: math.log1p(s), torch.log1p),
    "0 <= s": _case(lambda s: math.sqrt(s), torch.sqrt),
    "s < 709.78": _case(lambda s: math.exp(s), torch.exp),
    "s != 0": _case(lambda s: s**-1, lambda s: 1 / s),
    "": _case(lambda s: s**2, lambda s: s * s),
}
POWER = _case(lambda s: s**0.5, torch.sqrt)

"""References that look at the dtype of their arguments, right and wrong."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def dtype_kernel(x_ptr, out_ptr, N, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    if OP == "bits":
        z = x.to(tl.int32, bitcast=True)
    elif OP == "double":
        z = x * 2
    elif OP == "four":
        z = x * 4
    elif OP == "eps":
        z = x + 1.1920928955078125e-07
    tl.store(out_ptr + i, z, mask=i < N)


def run(x, op, dtype):
    out = torch.empty(x.shape, dtype=dtype)
    dtype_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), OP=op, BLOCK=64)
    return out


@case(x="f32[N]")
def bits_of(x):
    return run(x, "bits", torch.int32)


bits_of.reference(lambda x: x.view(torch.int32))


@case(x="f16[N]")
def element_size(x):
    return run(x, "double", torch.float16)


element_size.reference(lambda x: x * x.element_size())


@case(x="f32[N]")
def element_size4(x):
    return run(x, "four", torch.float32)


element_size4.reference(lambda x: x * x.element_size())


@case(x="f16[N]")
def is_half(x):
    return run(x, "double", torch.float16)


is_half.reference(lambda x: x * 2 if x.dtype == torch.float16 else x * 3)


@case(x="f32[N]")
def finfo(x):
    return run(x, "eps", torch.float32)


finfo.reference(lambda x: x + torch.finfo(x.dtype).eps)


@case(x="f16[N]")
def to_same(x):
    return run(x, "double", torch.float16)


to_same.reference(lambda x: (x.float() * 2).to(x.dtype))


@case(x="f16[N]")
def result_type(x):
    return run(x, "double", torch.float16)


def _rt(x):
    return x * (2 if torch.result_type(x, 1.0) == torch.float16 else 5)


result_type.reference(_rt)


@case(x="f16[N]")
def wrong_half(x):
    return run(x, "double", torch.float16)


wrong_half.reference(lambda x: x * 3 if x.dtype == torch.float16 else x * 2)


@case(x="f16[N]")
def wrong_finfo(x):
    return run(x, "double", torch.float16)


wrong_finfo.reference(lambda x: x.clamp(max=torch.finfo(x.dtype).max) * 3)


@case(x="f32[N]")
def doubled(x):
    return run(x, "double", torch.float32)


@case(x="f32[N]")
def doubled_in_bfloat16(x):
    return run(x, "double", torch.bfloat16)


@case(x="i32[N]")
def doubled_int32(x):
    return run(x, "double", torch.int32)


@case(x="i32[N]")
def doubled_int64(x):
    return run(x, "double", torch.int64)

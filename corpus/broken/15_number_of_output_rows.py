# expect: out-of-bounds at line 29
"""The kernel takes the number of rows of the output and ignores it: tokens past it are written behind the output
(pattern of NVIDIA/TransformerEngine#3346).
"""

import triton
import triton.language as tl

from trilift import case


@triton.jit
def permute_kernel(
    x_ptr,
    row_id_map_ptr,
    out_ptr,
    num_out_tokens,
    hidden_size,
    stride_x,
    stride_out,
    BLOCK_SIZE: tl.constexpr,
):
    """Row i of the output is row row_id_map[i] of x, for the first num_out_tokens of the routed tokens."""
    pid = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < hidden_size
    row = tl.load(row_id_map_ptr + pid).to(tl.int64)
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0)
    tl.store(out_ptr + pid * stride_out + cols, x, mask=mask)


@case(
    x="f16[T,D]",
    row_id_map="i32[P+E] < T",
    out="f16[P,D]",
    where="P + E < 2**31 and D <= 65536",
)
def permute(x, row_id_map, out):
    num_out_tokens, D = out.shape
    grid = (row_id_map.shape[0], triton.cdiv(D, 128))
    permute_kernel[grid](x, row_id_map, out, num_out_tokens, D, x.stride(0), out.stride(0), BLOCK_SIZE=128)
    return out


@permute.reference
def _(x, row_id_map, out):
    return x[row_id_map[: out.shape[0]]]

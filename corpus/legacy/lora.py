"""A linear layer with a low-rank correction in three launches; the last one adds to what the first one wrote."""

import triton
import triton.language as tl

from trilift import case

from .swiglu import matmul


@triton.jit
def matmul_add_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (m[:, None] < M) & (n[None, :] < N)
    acc = tl.load(c_ptr + m[:, None] * stride_cm + n[None, :], mask=inside, other=0.0)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(
            b_ptr + k[:, None].to(tl.int64) * stride_bk + n[None, :],
            mask=(k[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        acc += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :], acc, mask=inside)


@case(
    x="f32[M,K]", w="f32[K,N]", a="f32[K,R]", b="f32[R,N]",
    where="N < 2**20 and R < 2**20 and M * K < 2**31 and K * N < 2**31 and K * R < 2**31 and R * N < 2**31",
)  # fmt: skip
def lora(x, w, a, b):
    out, low = matmul(x, w), matmul(x, a)
    (M, R), N = low.shape, b.shape[1]
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    matmul_add_kernel[grid](
        low, b, out, M, N, R, low.stride(0), b.stride(0), out.stride(0), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32
    )
    return out


@lora.reference
def _(x, w, a, b):
    return x @ w + (x @ a) @ b

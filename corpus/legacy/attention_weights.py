"""A softmax kernel, then a product by blocks: softmax(s) @ v in two launches."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def softmax_kernel(s_ptr, out_ptr, stride_s, stride_out, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + row * stride_s + n, mask=n < N, other=-float("inf")).to(tl.float32)
    e = tl.exp(s - tl.max(s, axis=0))
    tl.store(out_ptr + row * stride_out + n, e / tl.sum(e, axis=0), mask=n < N)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_bk, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(
            b_ptr + k[:, None].to(tl.int64) * stride_bk + n[None, :],
            mask=(k[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        acc += tl.dot(a, b)
    tl.store(out_ptr + m[:, None] * stride_om + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@case(s="f32[M,K]", v="f32[K,N]", where="K <= 65536 and N < 2**20 and M * K < 2**31 and K * N < 2**31")
def attention_weights(s, v):
    (M, K), N = s.shape, v.shape[1]
    weights, out = torch.empty_like(s), torch.empty((M, N), dtype=torch.float32, device=s.device)
    softmax_kernel[(M,)](s, weights, s.stride(0), weights.stride(0), K, BLOCK=triton.next_power_of_2(K))
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    matmul_kernel[grid](
        weights, v, out, M, N, K, weights.stride(0), v.stride(0), out.stride(0), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32
    )
    return out


@attention_weights.reference
def _(s, v):
    return torch.softmax(s, -1) @ v

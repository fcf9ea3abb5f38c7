"""SwiGLU in three launches: two products, then silu(a) * b."""

import torch
import triton
import triton.language as tl

from trilift import case

from .attention_weights import matmul_kernel


@triton.jit
def gate_kernel(a_ptr, b_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * tl.sigmoid(a) * b, mask=at < count)


def matmul(x, w):
    (M, K), N = x.shape, w.shape[1]
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    matmul_kernel[grid](x, w, out, M, N, K, x.stride(0), w.stride(0), out.stride(0), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    return out


@case(x="f32[M,K]", w="f32[K,N]", v="f32[K,N]", where="N < 2**20 and M * K < 2**31 and K * N < 2**31 and M * N < 2**31")
def swiglu(x, w, v):
    a, b = matmul(x, w), matmul(x, v)
    out = torch.empty_like(a)
    gate_kernel[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024)
    return out


@swiglu.reference
def _(x, w, v):
    return torch.nn.functional.silu(x @ w) * (x @ v)

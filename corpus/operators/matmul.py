"""Products of matrices: grouped program ids and autotuning, bias and relu, batched, split over K, from descriptors."""

import torch
import triton
import triton.language as tl

from trilift import case

CONFIGS = [
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8}, num_warps=4, num_stages=3),
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8}, num_warps=4, num_stages=4),
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 4}, num_warps=8, num_stages=3),
    triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 1}, num_warps=2, num_stages=5),
]


@triton.jit
def grouped(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """Tile (row, column) of a program: GROUP_M rows of tiles are walked by columns, the last group may be narrower."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = pid // per_group * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    return first_m + pid % per_group % rows, pid % per_group // rows


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M: tl.int64,
    N: tl.int64,
    K: tl.int64,
    stride_am: tl.int64,
    stride_ak: tl.int64,
    stride_bk: tl.int64,
    stride_bn: tl.int64,
    stride_cm: tl.int64,
    stride_cn: tl.int64,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """Rows and columns wrap around at the edges, so that only K needs a mask; what wraps is not stored."""
    pid_m, pid_n = grouped(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    cols = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=ks[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.heuristics(
    {
        "EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0,
        "HAS_BIAS": lambda args: args["bias_ptr"] is not None,
    }
)
@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    bias_ptr,
    y_ptr,
    M,
    N,
    K,
    stride_xm,
    stride_wn,
    stride_ym,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    RELU: tl.constexpr,
):
    """y = relu(x @ w.T + bias); w is stored as in nn.Linear, one row per output."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        x_ptrs = x_ptr + rows[:, None] * stride_xm + ks[None, :]
        w_ptrs = w_ptr + cols[None, :] * stride_wn + ks[:, None]
        if EVEN_K:
            x = tl.load(x_ptrs, mask=rows[:, None] < M, other=0.0)
            w = tl.load(w_ptrs, mask=cols[None, :] < N, other=0.0)
        else:
            x = tl.load(x_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
            w = tl.load(w_ptrs, mask=(cols[None, :] < N) & (ks[:, None] < K), other=0.0)
        acc += tl.dot(x, w)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + cols, mask=cols < N, other=0.0)[None, :]
    if RELU:
        acc = tl.maximum(acc, 0.0)
    tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def batched_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_ab,
    stride_am,
    stride_ak: tl.int64,
    stride_bb,
    stride_bk: tl.int64,
    stride_bn: tl.int64,
    stride_cb,
    stride_cm,
    stride_cn: tl.int64,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        ka = start + tl.arange(0, BLOCK_K)[None, :]
        kb = start + tl.arange(0, BLOCK_K)[:, None]
        a_mask = (rows < M) & (ka < K)
        b_mask = (kb < K) & (cols < N)
        a = tl.load(a_ptr + batch * stride_ab + rows * stride_am + ka * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + batch * stride_bb + kb * stride_bk + cols * stride_bn, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c_ptrs = c_ptr + batch * stride_cb + rows * stride_cm + cols * stride_cn
    tl.store(c_ptrs, acc, mask=(rows < M) & (cols < N))


@triton.autotune(configs=[triton.Config({"SPLIT_K": s}) for s in (2, 4, 8)], key=["K"], reset_to_zero=["c_ptr"])
@triton.jit
def split_k_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N: tl.int64,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
):
    """Program (m, n, s) takes every SPLIT_K-th block of K, and adds its share to c."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(tl.program_id(2) * BLOCK_K, K, SPLIT_K * BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc += tl.dot(a, b)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.atomic_add(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask, sem="relaxed")


@triton.jit
def descriptor_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Descriptors read zeros past the edges and store nothing there."""
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    col = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([k, col]), acc)
    c_desc.store([row, col], acc.to(c_ptr.dtype.element_ty))


@case(a="f16[M,K] strided", b="f16[K,N] strided")
def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)

    def grid(meta):
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride())
    return c


@matmul.reference
def _(a, b):
    return a.float() @ b.float()


def linear(x, w, bias, relu):
    (M, K), N = x.shape, w.shape[0]
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    strides = x.stride(0), w.stride(0), y.stride(0)
    linear_kernel[grid](x, w, bias, y, M, N, K, *strides, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, RELU=relu)
    return y


@case(x="f32[M,K]", w="f32[N,K]", bias="f32[N]", where="N <= 65535 * 64")
def linear_bias_relu(x, w, bias):
    return linear(x, w, bias, relu=True)


@linear_bias_relu.reference
def _(x, w, bias):
    return torch.relu(torch.nn.functional.linear(x, w, bias))


@case(x="f32[M,K]", w="f32[N,K]", where="N <= 65535 * 64")
def linear_plain(x, w):
    return linear(x, w, None, relu=False)


@linear_plain.reference
def _(x, w):
    return x @ w.T


@case(a="f32[B,M,K] strided", b="f32[B,K,N] strided", where="B <= 65535 and N <= 65535 * 64")
def bmm(a, b):
    (B, M, K), N = a.shape, b.shape[2]
    c = torch.empty((B, M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64), B)
    strides = (*a.stride(), *b.stride(), *c.stride())
    batched_kernel[grid](a, b, c, M, N, K, *strides, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return c


@bmm.reference
def _(a, b):
    return torch.bmm(a, b)


@case(a="f16[M,K]", b="f16[K,N]", where="N <= 65535 * 64")
def matmul_split_k(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.zeros((M, N), dtype=torch.float32, device=a.device)

    def grid(meta):
        return (triton.cdiv(M, 32), triton.cdiv(N, 64), meta["SPLIT_K"])

    split_k_kernel[grid](a, b, c, M, N, K, BLOCK_M=32, BLOCK_N=64, BLOCK_K=32)
    return c


@matmul_split_k.reference
def _(a, b):
    return a.float() @ b.float()


@case(a="f16[M,8*K]", b="f16[8*K,8*P]", where="8 * P <= 65535 * 64")
def matmul_descriptor(a, b):
    """Descriptors want rows of a multiple of 16 bytes."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    descriptor_kernel[grid](a, b, c, M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return c


@matmul_descriptor.reference
def _(a, b):
    return a.float() @ b.float()

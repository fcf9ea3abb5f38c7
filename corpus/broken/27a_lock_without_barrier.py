# expect: read-write-race at line 22
"""The lock is released before all threads have stored: no barrier between; pattern of meta-pytorch/tritonbench#1266."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def weight_gradient_kernel(dy_ptr, normal_ptr, dw_ptr, lock_ptr, N, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0.0)
    normal = tl.load(normal_ptr + row * N + cols, mask=mask, other=0.0)
    group = row % GROUPS
    dw = dw_ptr + group * N + cols
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    tl.store(dw, tl.load(dw, mask=mask, other=0.0) + dy * normal, mask=mask)
    tl.atomic_xchg(lock_ptr + group, 0)


def weight_gradient(dy, normal, groups=4):
    M, N = dy.shape
    dw = torch.zeros((groups, N), dtype=torch.float32, device=dy.device)
    lock = torch.zeros((groups,), dtype=torch.int32, device=dy.device)
    block = triton.next_power_of_2(N)
    weight_gradient_kernel[(M,)](dy, normal, dw, lock, N, GROUPS=groups, BLOCK=block)
    return dw.sum(dim=0)


@case(dy="f32[M,N]", normal="f32[M,N]", where="M < 2**31 and N <= 65536")
def gradient_of_weight(dy, normal):
    return weight_gradient(dy, normal)


@gradient_of_weight.reference
def _(dy, normal):
    return (dy * normal).sum(dim=0)

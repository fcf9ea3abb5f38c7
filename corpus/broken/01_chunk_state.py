# expect: int32-overflow at line 35
"""The offset of a chunk, chunk * CHUNK * stride, wraps in int32 on long sequences (pattern of
state-spaces/mamba#1015).
"""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def chunk_state_kernel(
    x_ptr,
    dt_ptr,
    states_ptr,
    seqlen,
    nheads,
    headdim,
    nchunks,
    stride_x_batch,
    stride_x_seqlen,
    stride_x_head,
    CHUNK: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """State of one chunk and head: the sum of dt * x over the tokens of the chunk."""
    pid_b = (tl.program_id(0) // nchunks).to(tl.int64)
    pid_c = tl.program_id(0) % nchunks
    pid_h = tl.program_id(1)
    offs_l = tl.arange(0, CHUNK)
    offs_p = tl.arange(0, BLOCK_P)
    x_ptr += pid_b * stride_x_batch + pid_h * stride_x_head
    x_ptr += pid_c * CHUNK * stride_x_seqlen
    dt_ptr += (pid_b * nheads + pid_h) * seqlen + pid_c * CHUNK
    valid = offs_l < seqlen - pid_c * CHUNK
    mask = valid[:, None] & (offs_p[None, :] < headdim)
    x = tl.load(x_ptr + offs_l[:, None] * stride_x_seqlen + offs_p[None, :], mask=mask, other=0.0).to(tl.float32)
    dt = tl.load(dt_ptr + offs_l, mask=valid, other=0.0)
    state = tl.sum(x * dt[:, None], axis=0)
    states_ptr += ((pid_b * nchunks + pid_c) * nheads + pid_h) * headdim
    tl.store(states_ptr + offs_p, state, mask=offs_p < headdim)


@case(x="f16[B,64*C,H,P]", dt="f32[B,H,64*C]", where="64 * B * C < 2**31 and H * P <= 65535")
def chunk_state(x, dt):
    B, L, H, P = x.shape
    chunks = triton.cdiv(L, 64)
    states = torch.empty((B, chunks, H, P), dtype=torch.float32, device=x.device)
    strides = x.stride(0), x.stride(1), x.stride(2)
    block = triton.next_power_of_2(P)
    chunk_state_kernel[(B * chunks, H)](x, dt, states, L, H, P, chunks, *strides, CHUNK=64, BLOCK_P=block)
    return states


@chunk_state.reference
def _(x, dt):
    weighted = x * dt.transpose(1, 2)[..., None]
    return weighted.unflatten(1, (-1, 64)).sum(2)

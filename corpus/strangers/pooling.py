"""Masked average over tokens as sentence encoders do it: 3-D tiles, reduced over the middle axis."""

import triton
import triton.language as tl

from trilift import case


@triton.jit
def pool(
    hidden, keep, out, n_batch, n_tok, n_dim, BB: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    bs = tl.program_id(1) * BB + tl.arange(0, BB)
    ds = tl.program_id(0) * BD + tl.arange(0, BD)
    num = tl.zeros((BB, BD), dtype=tl.float32)
    den = tl.zeros((BB,), dtype=tl.float32)
    for t0 in tl.range(0, n_tok, BT):
        ts = t0 + tl.arange(0, BT)
        bt = bs[:, None] * n_tok + ts[None, :]
        inside = (bs[:, None] < n_batch) & (ts[None, :] < n_tok)
        k = tl.load(keep + bt, mask=inside, other=0).to(tl.float32)
        cube = bt[:, :, None] * n_dim + ds[None, None, :]
        h = tl.load(hidden + cube, mask=inside[:, :, None] & (ds < n_dim)[None, None, :], other=0.0)
        num += tl.sum(h * k[:, :, None], axis=1)
        den += tl.sum(k, axis=1)
    den = tl.maximum(den, 1e-9)
    tl.store(
        out + bs[:, None] * n_dim + ds[None, :],
        num / den[:, None],
        mask=(bs < n_batch)[:, None] & (ds < n_dim)[None, :],
    )


@case(hidden="f32[B,T,D]", keep="i32[B,T] < 2")
def masked_mean(hidden, keep):
    B, T, D = hidden.shape
    out = hidden.new_empty(B, D)
    pool[triton.cdiv(D, 64), triton.cdiv(B, 2)](hidden, keep, out, B, T, D, BB=2, BT=16, BD=64)
    return out


@masked_mean.reference
def _(hidden, keep):
    k = keep[:, :, None].to(hidden.dtype)
    return (hidden * k).sum(1) / k.sum(1).clamp(min=1e-9)

"""One Jacobi step on a grid with fixed borders, and a table lookup with linear interpolation."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def jacobi(U, V, h, w, BH: tl.constexpr, BW: tl.constexpr):
    y = (tl.program_id(1) * BH + tl.arange(0, BH)).expand_dims(1)
    x = (tl.program_id(0) * BW + tl.arange(0, BW)).expand_dims(0)
    on_grid = (y < h) & (x < w)
    inner = (y > 0) & (y < h - 1) & (x > 0) & (x < w - 1)
    at = U + y * w + x
    centre = tl.load(at, mask=on_grid)
    around = tl.load(at - w, mask=inner, other=0.0) + tl.load(at + w, mask=inner, other=0.0)
    around += tl.load(at - 1, mask=inner, other=0.0) + tl.load(at + 1, mask=inner, other=0.0)
    tl.store(V + y * w + x, tl.where(inner, 0.25 * around, centre), mask=on_grid)


@triton.jit
def interp(table, at, frac, out, n, size, NB: tl.constexpr):
    e = tl.program_id(0) * NB + tl.arange(0, NB)
    if tl.program_id(0) * NB >= n:
        return
    i = tl.load(at + e, mask=e < n, other=0)
    f = tl.load(frac + e, mask=e < n, other=0.0)
    nxt = tl.minimum(i + 1, size - 1)
    lo, hi = tl.load(table + i), tl.load(table + nxt)
    tl.store(out + e, lo + f * (hi - lo), mask=e < n)


@case(U="f32[Y,X]", where="Y >= 3 and X >= 3")
def jacobi_step(U):
    h, w = U.shape
    V = torch.zeros_like(U)
    jacobi[(triton.cdiv(w, 64), triton.cdiv(h, 4))](U, V, h, w, 4, 64)
    return V


@jacobi_step.reference
def _(U):
    V = U.clone()
    V[1:-1, 1:-1] = 0.25 * (U[:-2, 1:-1] + U[2:, 1:-1] + U[1:-1, :-2] + U[1:-1, 2:])
    return V


@case(table="f32[S]", at="i32[N] < S", frac="f32[N] in (0, 1)")
def interpolate(table, at, frac):
    out = torch.empty_like(frac)
    interp[(triton.cdiv(len(at), 128),)](table, at, frac, out, len(at), len(table), NB=128)
    return out


@interpolate.reference
def _(table, at, frac):
    lo = table[at.long()]
    hi = table[torch.clamp(at.long() + 1, max=table.shape[0] - 1)]
    return lo + frac * (hi - lo)

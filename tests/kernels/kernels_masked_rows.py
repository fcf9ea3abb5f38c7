"""Online softmax where a tile, or a whole row, has no element that counts: windows, lengths, masks.

RIGHT   proved for all inputs, rows without an element included: zeros or NaN as the reference
WRONG   differ from their reference at a row or a tile without an element
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from trilift import case
from trilift.lift.cases.declaration import Case


@triton.jit
def window_kernel(
    Q, K, V, Out, scale, sqn, sqd, skn, skd, svn, svd, son, sod, N, W, D,
    FIRST: tl.constexpr, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Row i attends to the columns i - W < j <= i. The first tiles of a block may have no column for some rows."""
    block = tl.program_id(0)
    rows = block * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    mask = (rows[:, None] < N) & (d[None, :] < D)
    q = tl.load(Q + rows[:, None] * sqn + d[None, :] * sqd, mask=mask, other=0.0) * scale
    m = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    first = 0
    if FIRST == "window":
        first = tl.maximum(0, block * BM - W + 1) // BN * BN
    last = tl.minimum(N, (block + 1) * BM)
    for start in range(first, last, BN):
        cols = start + tl.arange(0, BN)
        k = tl.load(K + cols[None, :] * skn + d[:, None] * skd, mask=(cols[None, :] < N) & (d[:, None] < D), other=0.0)
        v = tl.load(V + cols[:, None] * svn + d[None, :] * svd, mask=(cols[:, None] < N) & (d[None, :] < D), other=0.0)
        s = tl.dot(q, k)
        keep = (cols[None, :] <= rows[:, None]) & (cols[None, :] > rows[:, None] - W) & (cols[None, :] < N)
        s = tl.where(keep, s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        safe = m_new if FORM == "unguarded" else tl.where(m_new == -float("inf"), 0.0, m_new)
        p = tl.exp(s - safe[:, None])
        shrink = tl.exp(m_new - safe) if FORM == "rescaled by the new" else tl.exp(m - safe)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p, v)
        m = m_new
    if FORM == "guarded":
        total = tl.where(total == 0.0, 1.0, total)
    tl.store(Out + rows[:, None] * son + d[None, :] * sod, acc / total[:, None], mask=mask)


@triton.jit
def rows_kernel(X, Lengths, Out, N, FORM: tl.constexpr, B: tl.constexpr):
    """The softmax of the first Lengths[row] elements, in two passes over tiles."""
    row = tl.program_id(0)
    n = tl.load(Lengths + row)
    m = -float("inf")
    total = 0.0
    for start in range(0, N, B):
        j = start + tl.arange(0, B)
        x = tl.load(X + row * N + j, mask=(j < n) & (j < N), other=-float("inf"))
        m_new = tl.maximum(m, tl.max(x, 0))
        safe = tl.where(m_new == -float("inf"), 0.0, m_new)
        total = total * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), 0)
        m = m_new
    for start in range(0, N, B):
        j = start + tl.arange(0, B)
        x = tl.load(X + row * N + j, mask=(j < n) & (j < N), other=-float("inf"))
        if FORM == "zero" or FORM == "zero against NaN":
            safe = tl.where(m == -float("inf"), 0.0, m)
            p = tl.exp(x - safe) / tl.where(total == 0.0, 1.0, total)
        else:
            p = tl.exp(x - m) / total
        tl.store(Out + row * N + j, p, mask=j < N)


@triton.jit
def band_kernel(X, Out, N, W, FORM: tl.constexpr, B: tl.constexpr):
    """The logarithm of the sum of exponentials of the elements row - W < j <= row: the first tiles may have none."""
    row = tl.program_id(0)
    m = -float("inf")
    total = 0.0
    for start in range(0, N, B):
        j = start + tl.arange(0, B)
        x = tl.load(X + row * N + j, mask=(j <= row) & (j > row - W) & (j < N), other=-float("inf"))
        m_new = tl.maximum(m, tl.max(x, 0))
        safe = m_new if FORM == "unguarded" else tl.where(m_new == -float("inf"), 0.0, m_new)
        shrink = tl.exp(m_new - safe) if FORM == "rescaled by the new" else tl.exp(m - safe)
        total = total * shrink + tl.sum(tl.exp(x - safe), 0)
        m = m_new
    if FORM == "zero":
        total = tl.where(total > 2.0, total, 1.0)
    tl.store(Out + row, m + tl.log(total))


@triton.jit
def mask_kernel(X, K, Out, N, FORM: tl.constexpr, B: tl.constexpr):
    """The softmax of the elements whose mask is not 0, in one tile."""
    row = tl.program_id(0)
    j = tl.arange(0, B)
    keep = tl.load(K + row * N + j, mask=j < N, other=0) != 0
    x = tl.load(X + row * N + j, mask=j < N, other=0.0)
    s = tl.where(keep, x, -float("inf"))
    m = tl.max(s, 0)
    if FORM == "difference is itself":
        e = tl.where(s - m == s - m, 1.0, 0.0)
    elif FORM == "zero times":
        e = s * 0.0
    elif FORM == "plus infinity":
        e = s + float("inf")
    elif FORM == "clamped":
        e = tl.maximum(s - m, -1.0)
    elif FORM == "maximum times":
        e = x * (tl.where(m == -float("inf"), m, 0.0) * 0.0)
    elif FORM == "inverse of the maximum":
        e = tl.where(j >= 0, 1.0 / tl.exp(m), 0.0)
    else:
        e = share(s, m, FORM)
    tl.store(Out + row * N + j, e, mask=j < N)


@triton.jit
def share(s, m, FORM: tl.constexpr):
    if FORM == "zero":
        m = tl.where(m == -float("inf"), 0.0, m)
    e = tl.exp(s - m)
    total = tl.sum(e, 0)
    if FORM == "zero":
        total = tl.where(total == 0.0, 1.0, total)
    return e / total


def of_window(form: str, bm: int = 32, bn: int = 32, first: str = "zero") -> Case:
    def run(q, k, v, scale, w):
        out = torch.empty_like(q)
        N, D = q.shape
        window_kernel[(triton.cdiv(N, bm),)](
            q, k, v, out, scale, *q.stride(), *k.stride(), *v.stride(), *out.stride(), N, w, D,
            FIRST=first, FORM=form, BM=bm, BN=bn, BD=triton.next_power_of_2(D),
        )  # fmt: skip
        return out

    def reference(q, k, v, scale, w):
        N, D = q.shape
        i, j = torch.arange(N)[:, None], torch.arange(N)[None, :]
        s = (q @ k.T) * scale
        s = s.masked_fill(~((j <= i) & (j > i - w)), -float("inf"))
        return torch.softmax(s, -1) @ v

    limits = "w >= 1 and w <= 1000000 and N <= 1000000 and D <= 128"
    found = case(q="f32[N,D]", k="f32[N,D]", v="f32[N,D]", scale="f32", w="i32", where=limits)(run)
    found.reference(reference)
    return found


def of_lengths(form: str) -> Case:
    def run(x, lengths):
        out = torch.empty_like(x)
        M, N = x.shape
        rows_kernel[(M,)](x, lengths, out, N, FORM=form, B=64)
        return out

    def reference(x, lengths):
        keep = torch.arange(x.shape[1])[None, :] < lengths[:, None]
        found = torch.softmax(x.masked_fill(~keep, -float("inf")), -1)
        return torch.where(keep, found, 0.0) if form in ("zero", "NaN against zero") else found

    found = case(x="f32[M,N]", lengths="i32[M] < N + 1", where="M * N < 2**31")(run)
    found.reference(reference)
    return found


def of_bands(form: str) -> Case:
    def run(x, w):
        N = x.shape[0]
        out = torch.empty(N)
        band_kernel[(N,)](x, out, N, w, FORM=form, B=64)
        return out

    def reference(x, w):
        i, j = torch.arange(x.shape[0])[:, None], torch.arange(x.shape[0])[None, :]
        return torch.logsumexp(x.masked_fill(~((j <= i) & (j > i - w)), -float("inf")), -1)

    found = case(x="f32[N,N]", w="i32", where="w >= 1 and w <= 1000000 and N * N < 2**31")(run)
    found.reference(reference)
    return found


def of_masks(form: str, reference: Callable[..., torch.Tensor] | None = None) -> Case:
    def run(x, keep):
        out = torch.empty_like(x)
        M, N = x.shape
        mask_kernel[(M,)](x, keep, out, N, FORM=form, B=64)
        return out

    def softmax(x, keep):
        found = torch.softmax(x.masked_fill(keep == 0, -float("inf")), -1)
        return torch.where(keep != 0, found, 0.0) if form == "zero" else found

    found = case(x="f32[M,N]", keep="i32[M,N] < 2", where="N <= 64 and M * N < 2**31")(run)
    found.reference(reference or softmax)
    return found


def clamped(x, keep):
    s = x.masked_fill(keep == 0, -float("inf"))
    return torch.clamp(s - s.amax(-1, keepdim=True), min=-1.0)


RIGHT = {
    "window": of_window("plain"),
    "window guarded": of_window("guarded"),
    "window of other blocks": of_window("plain", 64, 32),
    "window from its first tile": of_window("plain", 32, 32, "window"),
    "band": of_bands("plain"),
    "lengths": of_lengths("zero"),
    "lengths to NaN": of_lengths("nan"),
    "mask": of_masks("zero"),
    "mask to NaN": of_masks("nan"),
}
WRONG = {
    "window unguarded": of_window("unguarded"),
    "window rescaled": of_window("rescaled by the new"),
    "band unguarded": of_bands("unguarded"),
    "band rescaled": of_bands("rescaled by the new"),
    "band above a number": of_bands("zero"),
    "lengths, zero against NaN": of_lengths("zero against NaN"),
    "lengths, NaN against zero": of_lengths("NaN against zero"),
    "difference is itself": of_masks("difference is itself", lambda x, keep: torch.ones_like(x)),
    "zero times": of_masks("zero times", lambda x, keep: torch.zeros_like(x)),
    "plus infinity": of_masks("plus infinity", lambda x, keep: torch.full_like(x, float("inf"))),
    "clamped": of_masks("clamped", clamped),
    "maximum times": of_masks("maximum times", lambda x, keep: torch.zeros_like(x)),
}

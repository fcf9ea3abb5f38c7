"""G = alpha * X'X + beta * G, as BLAS would have it: pointer tiles that walk down both operands."""

import triton
import triton.language as tl

from trilift import case


@triton.jit
def _syrk(X, G, n, d, ldx, ldg, alpha, beta, TD: tl.constexpr, TN: tl.constexpr):
    i0 = tl.program_id(1) * TD
    j0 = tl.program_id(0) * TD
    ii = i0 + tl.arange(0, TD)
    jj = j0 + tl.arange(0, TD)
    rr = tl.arange(0, TN)
    # both operands are read as rows of X; the left one is transposed in registers
    P = X + (rr[:, None] * ldx + ii[None, :])
    Q = X + (rr[:, None] * ldx + jj[None, :])
    C = tl.zeros([TD, TD], dtype=tl.float32)
    left = n
    while left > 0:
        L = tl.load(P, mask=(rr < left)[:, None] & (ii < d)[None, :], other=0)
        R = tl.load(Q, mask=(rr < left)[:, None] & (jj < d)[None, :], other=0)
        C = tl.dot(tl.trans(L), R, acc=C)
        P += TN * ldx
        Q += TN * ldx
        left -= TN
    keep = (ii < d)[:, None] & (jj < d)[None, :]
    T = G + ii[:, None] * ldg + jj[None, :]
    tl.store(T, alpha * C + beta * tl.load(T, mask=keep), mask=keep)


@case(X="f32[n,d]", G="f32[d,d]", alpha="f32", beta="f32")
def gram(X, G, alpha, beta):
    n, d = X.shape
    T = triton.cdiv(d, 32)
    _syrk[(T, T)](X, G, n, d, X.stride(0), G.stride(0), alpha, beta, TD=32, TN=16)
    return G


@gram.reference
def _(X, G, alpha, beta):
    return G.copy_(alpha * (X.T @ X) + beta * G)

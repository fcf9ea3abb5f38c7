"""Extremes for tests/verify/test_extremes.py: of terms with a sign, of exponentials, of what is read nowhere; sums
of a few values in exp; rows in place by a program id of several dims.

With the constexpr BROKEN a kernel computes something else.
"""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def lanes_kernel(x_ptr, out_ptr, N, KIND: tl.constexpr, BROKEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
        if KIND == "abs":
            v = tl.where(x > -1, x, -x) if BROKEN else tl.abs(x)
        elif KIND == "relu":
            v = x * x if BROKEN else tl.where(x > 0, x, 0.0)
        elif KIND == "leaky":
            v = tl.where(x > 0, x, -0.5 * x if BROKEN else 0.5 * x)
        else:
            v = tl.where(cols < N, tl.abs(x) + 1, 3.0 if BROKEN else 0.0)
        top = tl.maximum(top, v)
    tl.store(out_ptr + row, tl.max(top, 0))


def lanes(kind, reference):
    """The right case and its wrong twin."""

    def made(broken):
        def top(x):
            out = torch.empty(x.shape[0])
            lanes_kernel[(x.shape[0],)](x, out, x.shape[1], KIND=kind, BROKEN=broken, BLOCK=32)
            return out

        top.__name__ = f"top_{kind}_broken" if broken else f"top_{kind}"
        c = case(x="f32[M,N]")(top)
        c.reference(reference)
        return c

    return made(False), made(True)


LANES = [
    lanes("abs", lambda x: x.abs().amax(1)),
    lanes("relu", lambda x: x.relu().amax(1)),
    lanes("leaky", lambda x: torch.nn.functional.leaky_relu(x, 0.5).amax(1).clamp(min=0)),
    lanes("above_one", lambda x: x.abs().amax(1) + 1),
]


@triton.jit
def quantise_kernel(x_ptr, q_ptr, scale_ptr, N, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    """Half away from zero; no scale is 0. 128 is no number of eight bits."""
    row = tl.program_id(0)
    top = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
        top = tl.maximum(top, tl.abs(x))
    scale = tl.maximum(tl.max(top, 0), 1e-8) / 127.0
    tl.store(scale_ptr + row, scale)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0) / scale
        x = tl.where(x >= 0, x + 0.5, x - 0.5)
        tl.store(q_ptr + row * N + cols, tl.clamp(x, -LIMIT, LIMIT).to(tl.int8), mask=cols < N)


@case(x="f32[M,N]")
def quantise(x):
    q, scale = torch.empty(x.shape, dtype=torch.int8), torch.empty(x.shape[0])
    quantise_kernel[(x.shape[0],)](x, q, scale, x.shape[1], LIMIT=127.0, BLOCK=32)
    return q, scale


@case(x="f32[M,N]")
def quantise_over(x):
    q, scale = torch.empty(x.shape, dtype=torch.int8), torch.empty(x.shape[0])
    quantise_kernel[(x.shape[0],)](x, q, scale, x.shape[1], LIMIT=128.0, BLOCK=32)
    return q, scale


@case(x="f32[M,N]")
def quantise_other(x):
    return quantise.fn(x)


@case(x="f32[M,N]")
def quantise_others(x):
    return quantise.fn(x)


def quantised(x):
    """The same, in a form that is not proved."""
    scale = x.abs().amax(1).clamp(min=1e-8) / 127
    y = x / scale[:, None]
    return (y.sign() * (y.abs() + 0.5).floor().clamp(max=127)).to(torch.int8), scale


@quantise_other.reference
def _(x):
    q, scale = quantised(x)
    return q, 2 * scale


@quantise_others.reference
def _(x):
    q, scale = quantised(x)
    return q // 2, 2 * scale


@triton.jit
def gate_kernel(x_ptr, out_ptr, N, BROKEN: tl.constexpr, BLOCK: tl.constexpr):
    """The largest probability: exp(0) / sum(exp(x - max))."""
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
    top = tl.load(x_ptr + row * N) if BROKEN else tl.max(x, axis=0)
    tl.store(out_ptr + row, 1 / tl.sum(tl.exp(x - top), axis=0))


def run_gate(x, broken):
    out = torch.empty(x.shape[0])
    gate_kernel[(x.shape[0],)](x, out, x.shape[1], BROKEN=broken, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@case(x="f32[M,N]")
def gate(x):
    return run_gate(x, False)


@case(x="f32[M,N]")
def gate_broken(x):
    return run_gate(x, True)


@gate.reference
def _(x):
    return torch.softmax(x, -1).amax(-1)


@triton.jit
def slopes_kernel(
    q_ptr, k_ptr, v_ptr, slope_ptr, out_ptr, S, BROKEN: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):
    """Causal attention with linear biases. Rows beyond the last read nothing, and have biases all the same."""
    h, block = tl.program_id(1), tl.program_id(0)
    rows, d = block * M + tl.arange(0, M), tl.arange(0, D)
    q = tl.load(q_ptr + (h * S + rows[:, None]) * D + d[None, :], mask=rows[:, None] < S, other=0.0)
    slope = tl.load(slope_ptr + h)
    top, total = tl.full([M], -float("inf"), tl.float32), tl.zeros([M], tl.float32)
    out = tl.zeros([M, D], tl.float32)
    for start in range(0, tl.minimum(S, (block + 1) * M), N):
        keys = start + tl.arange(0, N)
        k = tl.load(k_ptr + (h * S + keys[None, :]) * D + d[:, None], mask=keys[None, :] < S, other=0.0)
        v = tl.load(v_ptr + (h * S + keys[:, None]) * D + d[None, :], mask=keys[:, None] < S, other=0.0)
        apart = (rows[:, None] - keys[None, :] if BROKEN else keys[None, :] - rows[:, None]).to(tl.float32)
        s = tl.dot(q, k) + slope * apart
        s = tl.where((rows[:, None] >= keys[None, :]) & (keys[None, :] < S), s, -float("inf"))
        higher = tl.maximum(top, tl.max(s, 1))
        p, shrunk = tl.exp(s - higher[:, None]), tl.exp(top - higher)
        out = out * shrunk[:, None] + tl.dot(p, v)
        total = total * shrunk + tl.sum(p, 1)
        top = higher
    tl.store(out_ptr + (h * S + rows[:, None]) * D + d[None, :], out / total[:, None], mask=rows[:, None] < S)


def run_slopes(q, k, v, slope, broken):
    (H, S, D), out = q.shape, torch.empty_like(q)
    slopes_kernel[(triton.cdiv(S, 16), H)](q, k, v, slope, out, S, BROKEN=broken, M=16, N=32, D=D)
    return out


@case(q="f32[H,S,16]", k="f32[H,S,16]", v="f32[H,S,16]", slope="f32[H]")
def slopes(q, k, v, slope):
    return run_slopes(q, k, v, slope, False)


@case(q="f32[H,S,16]", k="f32[H,S,16]", v="f32[H,S,16]", slope="f32[H]")
def slopes_broken(q, k, v, slope):
    return run_slopes(q, k, v, slope, True)


@slopes.reference
def _(q, k, v, slope):
    i = torch.arange(q.shape[1])
    s = q @ k.mT + slope[:, None, None] * (i[None, :] - i[:, None])
    return torch.softmax(s.masked_fill(i[None, :] > i[:, None], -float("inf")), -1) @ v


@triton.jit
def short_kernel(x_ptr, w_ptr, out_ptr, L, BROKEN: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """silu of a causal convolution."""
    row = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.zeros((BLOCK,), tl.float32)
    for j in tl.static_range(WIDTH):
        from_ = at - (WIDTH - 1) + j
        x = tl.load(x_ptr + row * L + from_, mask=(from_ >= 0) & (from_ < L), other=0.0)
        y += x * tl.load(w_ptr + row * WIDTH + (WIDTH - 1 - j if BROKEN else j))
    tl.store(out_ptr + row * L + at, y * tl.sigmoid(y), mask=at < L)


def run_short(x, w, broken):
    (D, L), out = x.shape, torch.empty_like(x)
    short_kernel[(triton.cdiv(L, 32), D)](x, w, out, L, BROKEN=broken, WIDTH=4, BLOCK=32)
    return out


@case(x="f32[D,L]", w="f32[D,4]")
def short(x, w):
    return run_short(x, w, False)


@case(x="f32[D,L]", w="f32[D,4]")
def short_broken(x, w):
    return run_short(x, w, True)


@short.reference
def _(x, w):
    y = torch.nn.functional.conv1d(x[None], w[:, None], padding=3, groups=x.shape[0])[0, :, : x.shape[1]]
    return torch.nn.functional.silu(y)


@triton.jit
def pairs_kernel(x_ptr, cos_ptr, sin_ptr, S, H, D, BROKEN: tl.constexpr, BLOCK: tl.constexpr):
    """Even and odd elements of a row turned in place."""
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    at = x_ptr + row * 2 * D + 2 * j
    angle = (row // H) % S * D + j
    c, s = tl.load(cos_ptr + angle, mask=j < D), tl.load(sin_ptr + angle, mask=j < D)
    even, odd = tl.load(at, mask=j < D), tl.load(at + 1, mask=j < D)
    tl.store(at, even * c - odd * s, mask=j < D)
    if BROKEN:
        even = tl.load(at, mask=j < D)
    tl.store(at + 1, odd * c + even * s, mask=j < D)


def run_pairs(x, cos, sin, broken):
    B, S, H, D = x.shape
    pairs_kernel[(B * S * H,)](x, cos, sin, S, H, D // 2, BROKEN=broken, BLOCK=triton.next_power_of_2(D // 2))
    return x


@case(x="f32[B,S,H,2*D]", cos="f32[S,D]", sin="f32[S,D]")
def pairs(x, cos, sin):
    return run_pairs(x, cos, sin, False)


@case(x="f32[B,S,H,2*D]", cos="f32[S,D]", sin="f32[S,D]")
def pairs_broken(x, cos, sin):
    return run_pairs(x, cos, sin, True)


@pairs.reference
def _(x, cos, sin):
    even, odd, c, s = x[..., ::2], x[..., 1::2], cos[:, None], sin[:, None]
    return x.copy_(torch.stack([even * c - odd * s, odd * c + even * s], -1).flatten(-2))


OTHERS = [(gate, gate_broken), (slopes, slopes_broken), (short, short_broken), (pairs, pairs_broken)]
for right, wrong in OTHERS:
    wrong.reference(right.reference.fn)

PAIRS = [*LANES, *OTHERS]

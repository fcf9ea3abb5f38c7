"""Formulas for the tests of simplification and printing: written as kernels compute them, and random ones."""

# ruff: noqa: E501  one formula to a row
from __future__ import annotations

import math

from hypothesis import strategies as st

from trilift.lift.language.definitions import named
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term

M, N, K, D, B = (T.size(c) for c in "MNKDB")
m, n, k, d, b = Axis("m", M), Axis("n", N), Axis("k", K), Axis("d", D), Axis("b", B)
ORDER = (b, m, k, n, d)


def read(x: str, *axes: Axis | Term, of_type: str = T.REAL) -> Term:
    return T.read(x, [T.axis(a) if isinstance(a, Axis) else a for a in axes], of_type)


def total(over: Axis, body: Term) -> Term:
    return T.fold("sum", over, body)


def f(op: str, *args: T.TermLike) -> Term:
    return T.make(op, *args)


def formula(t: Term, *axes: Axis) -> Formula:
    last = sorted(t.free - set(ORDER), key=repr)
    return Formula("out", axes or (*(a for a in ORDER if a in t.free), *last), t, "f32")


x, w, c, eps = read("x", m, n), read("w", n), read("c", n), T.scalar("eps")
top = T.fold("amax", n, x)
shifted = f("exp", x - top)
mean = total(n, x) / N
centred = x - mean
scores = total(d, read("q", m, d) * read("k", n, d))
seen = T.where(f("le", T.axis(n), T.axis(m)), scores * 0.125, -math.inf)


def attention(s: Term, exp: str = "exp", top: Term | None = None) -> Term:
    """As a flash kernel ends: the weighted sum of rows over the sum of weights, the largest score subtracted."""
    e = f(exp, s - (T.fold("amax", n, s) if top is None else top))
    return total(n, e * read("v", n, d)) / total(n, e)


KERNELS: dict[str, tuple[Term, str]] = {
    "softmax": (shifted / total(n, shifted), "softmax(x, -1)"),
    "softmax base 2": (f("exp2", 1.44269504 * x - T.fold("amax", n, 1.44269504 * x)) / total(n, f("exp2", 1.44269504 * x - T.fold("amax", n, 1.44269504 * x))), "softmax(x, -1)"),
    "log_softmax": (x - top - f("log", total(n, shifted)), "log_softmax(x, -1)"),
    "log of softmax": (f("log", shifted / total(n, shifted)), "log_softmax(x, -1)"),
    "logsumexp": (top + f("log", total(n, shifted)), "logsumexp(x, -1)"),
    "rms_norm": (x / f("sqrt", total(n, x * x) / N + eps) * w, "rms_norm(x, -1, eps) * w"),
    "layer_norm": (centred / f("sqrt", total(n, centred * centred) / N + eps) * w + c, "layer_norm(x, -1, eps) * w + c"),
    "layer_norm by squares": (centred / f("sqrt", total(n, x * x) / N - mean * mean + eps) * w + c, "layer_norm(x, -1, eps) * w + c"),
    "gelu": (0.5 * x * (1 + f("erf", x * 0.7071067811865)), "gelu(x)"),
    "gelu distributed": (0.5 * x + 0.5 * x * f("erf", x * 0.70710678), "gelu(x)"),
    "gelu tanh": (0.5 * x * (1 + f("tanh", 0.79788456 * (x + 0.044715 * x * x * x))), "gelu_tanh(x)"),
    "silu": (x / (1 + f("exp", -x)), "silu(x)"),
    "silu_mul": (x / (1 + f("exp", -x)) * read("y", m, n), "silu(x) * y"),
    "sigmoid of exp": (f("exp", x) / (1 + f("exp", x)), "sigmoid(x)"),
    "relu": (T.where(f("lt", 0, x), x, 0), "relu(x)"),
    "leaky_relu": (T.where(f("lt", 0, x), x, 0.01 * x), "leaky_relu(x, 0.01)"),
    "square_relu": (f("max", x, 0) * f("max", x, 0), "relu(x) ** 2"),
    "tanh": (2 / (1 + f("exp", -2 * x)) - 1, "tanh(x)"),
    "matmul": (total(k, read("x", m, k) * read("w", k, n)), "x @ w"),
    "linear": (total(k, read("x", m, k) * read("w", n, k)) + c, "x @ w.T + c"),
    "batched matmul": (total(k, read("x", b, m, k) * read("w", b, k, n)), "x @ w"),
    "matrix times vector": (total(n, x * w), "x @ w"),
    "attention": (attention(scores * 0.125), "softmax(q @ k.T / 8, -1) @ v"),
    "attention base 2": (attention(scores * 0.18033688, "exp2"), "softmax(q @ k.T / 8, -1) @ v"),
    "attention, symbolic scale": (attention(scores / f("sqrt", D)), "softmax(q @ k.T / sqrt(D), -1) @ v"),
    "causal attention": (attention(seen), "softmax(where(arange(N) <= arange(M)[:, None], q @ k.T / 8, -inf), -1) @ v"),
    "softmax backward": (shifted / total(n, shifted) * (read("dy", m, n) - total(n, shifted / total(n, shifted) * read("dy", m, n))), "(dy - sum(dy * softmax(x, -1), -1)) * softmax(x, -1)"),
    "cross entropy": (top + f("log", total(n, shifted)) - T.read("x", [T.axis(m), read("y", m, of_type=T.INT)]), "cross_entropy(x, -1, y)"),
    "negative log likelihood": (-(T.read("x", [T.axis(m), read("y", m, of_type=T.INT)]) - top - f("log", total(n, shifted))), "cross_entropy(x, -1, y)"),
    "mean": (mean, "mean(x, -1)"),
    "variance": (total(n, x * x) / N - mean * mean, "var(x, -1)"),
    "column sum": (total(m, x), "sum(x, -2)"),
    "transpose": (read("x", n, m), "x.T"),
    "row scale": (x * read("s", m), "x * s[:, None]"),
    "cumulative sum": (total(Axis("j", N), T.where(f("le", T.axis(Axis("j", N)), T.axis(n)), read("x", m, Axis("j", N)), 0)), "cumsum(x, -1)"),
    "concatenation": (T.where(f("lt", T.axis(Axis("i", N + K)), N), read("x", m, Axis("i", N + K)), T.read("y", [T.axis(m), T.axis(Axis("i", N + K)) - N])), "cat(x[:, :N], y[:, :K], -1)"),
    "halves": (read("x", m, Axis("h", T.size("H"))) * T.read("x", [T.axis(m), T.axis(Axis("h", T.size("H"))) + T.size("H")]), "x[:, :H] * x[:, H:2 * H]"),
    "embedding": (T.read("w", [read("ids", m, of_type=T.INT), T.axis(n)]), "w[ids]"),
    "embedding backward": (total(m, T.where(f("eq", read("ids", m, of_type=T.INT), T.axis(k)), read("dy", m, n), 0)), "one_hot(ids, K).T @ dy"),
    "cross entropy backward": (T.where(f("eq", read("y", m, of_type=T.INT), T.axis(n)), shifted / total(n, shifted) - 1, shifted / total(n, shifted)), "softmax(x, -1) - one_hot(y, N)"),
    "top-1 weight": (f("exp", top - top) / total(n, shifted), "amax(softmax(x, -1), -1)"),
    "flip": (T.read("x", [T.axis(m), N - 1 - T.axis(n)]), "x[:, N - arange(N) - 1]"),
}  # fmt: skip


# ---- random terms ----------------------------------------------------------------------------------------------------

TENSORS = [
    read("x", m, n),
    read("y", m, n),
    read("z", n, m),
    read("w", n),
    read("s", m),
    read("u", k),
    read("h", m, k),
    read("g", k, n),
]
UNARY = ["exp", "tanh", "abs", "sigmoid", "silu", "relu", "sin", "floor"]


def _unary(op: str, a: Term) -> Term:
    return named(op, a) if op in ("sigmoid", "silu", "relu") else f(op, f("tanh", a)) if op == "exp" else f(op, a)


def _over(op: str, axis: Axis, a: Term) -> Term:
    return named(op, a, over=axis) if op in ("softmax", "mean", "logsumexp", "var") else T.fold(op, axis, a)


def terms(depth: int = 4) -> st.SearchStrategy[Term]:
    """Terms over m, n and k that are finite on inputs in -2..2."""
    leaves = st.one_of(
        st.sampled_from(TENSORS),
        st.sampled_from([2, -1, 0.5, 1.5, 0.7071067811865475]).map(T.const),
        st.just(T.scalar("eps")),
    )

    def grow(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
        axes = st.sampled_from([m, n, k])
        return st.one_of(
            st.builds(_unary, st.sampled_from(UNARY), inner),
            st.builds(f, st.sampled_from(["add", "mul", "max", "min"]), inner, inner),
            st.builds(lambda a, c: a / (1 + f("abs", c)), inner, inner),
            st.builds(lambda a: f("sqrt", 1 + a * a), inner),
            st.builds(lambda a, c, s, t: T.where(f("lt", a, c), s, t), inner, inner, inner, inner),
            st.builds(lambda a, c: T.where(f("le", T.axis(m), T.axis(n)), a, c), inner, inner),
            st.builds(
                _over, st.sampled_from(["sum", "amax", "amin", "mean", "softmax", "logsumexp", "var"]), axes, inner
            ),
            st.builds(lambda a, c: total(k, a * c), inner, inner),
            st.builds(lambda a, c: total(n, a * c), inner, inner),
        )

    return st.recursive(leaves, grow, max_leaves=depth * 2)


def closed(t: Term) -> Formula:
    """The term as a formula over all the axes that it has."""
    return formula(t, *(a for a in (m, n, k) if a in t.free))

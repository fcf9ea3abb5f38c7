"""Whole PyTorch functions: the formula that is read, as text, and what is said where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.pytorch import read
from trilift.lift.terms import construct as T
from trilift.lift.terms import index
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Axis, Term

B, D, H, K, L, M, N = (T.size(n) for n in "BDHKLMN")
X: dict[str, read.Spec] = {"x": ("f32", (M, N))}
VECTOR: read.Spec = ("f32", (N,))


def shown(t: Term) -> str:
    """The term as text, with the arguments of commutative operations in the order of their texts."""
    parts = [shown(a) for a in t.args]
    if t.op in T.COMMUTATIVE | {"eq", "ne"}:
        parts.sort()
    if t.op == "read":
        return f"{t.attr}[{', '.join(parts)}]"
    head = f"{t.op}[{t.attr}]" if t.attr is not None else t.op
    return f"{head}({', '.join(parts)})" if parts else repr(t)


def text(fn: Callable[..., Any], specs: dict[str, read.Spec], *args: Any, **kwargs: Any) -> list[str]:
    return [f"{f.name}{list(f.axes)} = {shown(f.term)}" for f in read.read(fn, specs, *args, **kwargs)]


def rope(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def causal(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def swiglu(x: Any) -> Any:
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


CENTRED = "add(mul(-1, recip(N), sum[n](x[m, n])), x[m, n])"
VARIANCE = f"mul(recip(N), sum[n](mul({CENTRED}, {CENTRED})))"
GOLDEN: list[tuple[Callable[..., Any], dict[str, read.Spec], str]] = [
    (lambda x: x.softmax(-1), X, "[m, n] = mul(exp(x[m, n]), recip(sum[n](exp(x[m, n]))))"),
    (lambda x: x.softmax(0), X, "[m, n] = mul(exp(x[m, n]), recip(sum[m](exp(x[m, n]))))"),
    (lambda x: F.relu(x), X, "[m, n] = max(0, x[m, n])"),
    (lambda x: x @ x.T, X, "[m, m'] = sum[n](mul(x[m', n], x[m, n]))"),
    (lambda x: x.view(x.shape[0], 1, -1).squeeze(1).t(), X, "[n, m] = x[m, n]"),
    (lambda x: x.flatten().view_as(x), X, "[m, n] = x[m, n]"),
    (lambda x: x.flip(1)[:, 1:], X, "[m, i] = x[m, add(-2, N, mul(-1, i))]"),
    (lambda x: x.tril(), X, "[m, n] = where(le(n, m), x[m, n], 0)"),
    (lambda x: x.argmax(1), X, "[m] = argmax[n](x[m, n])"),
    (lambda x: x.cumsum(1), X, "[m, n] = sum[n'](where(le(n', n), x[m, n'], 0))"),
    (
        lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w,
        {**X, "w": VECTOR},
        "[m, n] = mul(recip(sqrt(add(1e-06, mul(recip(N), sum[n](mul(x[m, n], x[m, n])))))), w[n], x[m, n])",
    ),
    (
        lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b),
        {**X, "w": VECTOR, "b": VECTOR},
        f"[m, n] = add(b[n], mul({CENTRED}, recip(sqrt(add(1e-05, {VARIANCE}))), w[n]))",
    ),
    (
        lambda x: F.gelu(x),
        X,
        "[m, n] = mul(0.5, add(1, erf(mul(0.7071067811865476, x[m, n]))), x[m, n])",
    ),
    (
        swiglu,
        {"x": ("f32", (M, T.mul(2, H)))},
        "[m, h] = mul(recip(add(1, exp(mul(-1, x[m, h])))), x[m, add(H, h)], x[m, h])",
    ),
    (
        rope,
        {"x": ("f32", (M, T.mul(2, D))), "cos": ("f32", (M, T.mul(2, D))), "sin": ("f32", (M, T.mul(2, D)))},
        "[m, i] = add(mul(cos[m, i], x[m, i]), "
        "mul(sin[m, i], where(lt(i, D), mul(-1, x[m, add(D, i)]), x[m, add(i, mul(-1, D))])))",
    ),
    (
        lambda x, w: F.conv1d(x, w),
        {"x": ("f32", (B, K, N)), "w": ("f32", (D, K, 3))},
        "[b, d, i] = sum[k](sum[j](mul(w[d, k, j], x[b, k, add(i, j)])))",
    ),
    (
        lambda x, i: F.embedding(i, x),
        {**X, "i": ("i64", (K,))},
        "[k, n] = x[i[k], n]",
    ),
    (
        lambda x, dy: (dy, x.softmax(-1))[1].mul(dy),
        {**X, "dy": X["x"]},
        "[m, n] = mul(dy[m, n], exp(x[m, n]), recip(sum[n](exp(x[m, n]))))",
    ),
]


@pytest.mark.parametrize("k", range(len(GOLDEN)))
def test_golden(k: int) -> None:
    fn, specs, expected = GOLDEN[k]
    (got,) = text(fn, specs)
    assert got == "out" + expected


def test_attention_is_read_as_in_the_textbook() -> None:
    specs: dict[str, read.Spec] = dict.fromkeys("qkv", ("f32", (B, H, L, D)))
    (f,) = read.read(causal, specs)
    folds = sorted(f"{t.op}[{t.attr}]" for t in f.term.walk() if t.op in T.FOLDS)
    assert [a.name for a in f.axes] == ["b", "h", "l", "d"]
    assert folds == ["sum[d]", "sum[l']", "sum[l']"]
    assert "where(lt(l, l'), -inf" in str(f.term)


def test_gradients() -> None:
    def gradient(x: Any, dy: Any) -> Any:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(x.softmax(-1), x, dy)

    (f,) = read.read(gradient, {**X, "dy": X["x"]})
    assert f.name == "out0"
    y = "exp(x[m, n]), recip(sum[n](exp(x[m, n])))"
    expected = f"mul(add(dy[m, n], mul(-1, sum[n](mul(dy[m, n], {y})))), {y})"
    assert shown(f.term) == expected


def test_symbolic_scalar() -> None:
    specs: dict[str, read.Spec] = {**X, "w": VECTOR}
    eps = T.scalar("eps")
    for fn in (lambda x, w, eps: F.layer_norm(x, (x.shape[-1],), w, None, eps), lambda x, w, eps: x * w + eps):
        (f,) = read.read(fn, specs, {"eps": eps})
        assert any(t is eps for t in f.term.walk())
    (f,) = read.read(lambda x, k: x * k + x.shape[1], X, {"k": T.size("k")})
    assert {t.attr for t in f.term.walk() if t.op == "size"} == {"k", "N"}


def test_outputs_and_writes() -> None:
    def both(x: Any) -> Any:
        x.add_(1)
        x[:, 0] = 0
        return {"twice": x * 2, "shape": x.shape[0]}

    twice, x = read.read(both, X)
    assert (twice.name, x.name, x.in_place) == ("twice", "x", "x")
    assert str(x.term) == "where(eq(0, n), 0, add(1, x[m, n]))"
    (shape,) = read.read(lambda x: {"shape": x.shape[0]}, X)
    assert shape.term is M and shape.axes == ()
    (f,) = read.read(lambda x: (x.clone().transpose(0, 1).mul_(2), None), X)
    assert (f.name, str(f.term)) == ("out0", "mul(2, x[m, n])")


def test_conditions_say_which_branch_was_read() -> None:
    r = read.reading(lambda x: x + 1 if x.shape[0] > 64 else x * 2, X)
    assert [str(c) for c in r.conditions] == ["lt(M, 65)"]
    assert read.reading(lambda x: x[:, :4], X).conditions != ()
    assert read.reading(lambda x: x.softmax(-1) @ x.T, X).conditions == ()
    (wide,) = read.read(lambda x: x + 1 if x.shape[0] > 64 else x * 2, X, hints={"M": 100})
    assert str(wide.term) == "add(1, x[m, n])"


def test_even_sizes_are_found() -> None:
    r = read.reading(lambda x: x.view(x.shape[0], 2, -1).sum(1), X)
    assert any("mod(N, 2)" in str(c) for c in r.conditions) or r.conditions
    assert str(r.formulas[0].axes[1].size) == "floordiv(N, 2)"


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (lambda x: x.sort(-1)[0], "aten.sort"),
        (lambda x: x[x > 0], "aten.index with a mask"),
        (lambda x: x + 1 if x.sum() > 0 else x, "values of a tensor"),
        (lambda x: torch.rand_like(x) * x, "aten.rand"),
        (lambda x: x.view(torch.int32), "aten.view"),
        (lambda x: x.nonzero(), "aten.nonzero"),
        (lambda x: torch.linalg.inv(x @ x.T), "aten"),
        (lambda x: x.topk(3)[0], "aten.topk"),
        (lambda x: torch.view_as_real(torch.complex(x, x) * 1j), "complex64"),
    ],
)
def test_what_is_not_supported_is_named_with_its_line(fn: Callable[..., Any], what: str) -> None:
    with pytest.raises(Unsupported, match=what) as error:
        read.read(fn, X)
    assert error.value.place is not None
    assert error.value.place.file.endswith("test_reader.py")


def test_an_unused_operator_is_no_error() -> None:
    assert read.read(lambda x: (x.sort(-1), x + 1)[1], X)


def test_a_function_that_raises() -> None:
    def wrong(x: Any) -> Any:
        return x @ x

    with pytest.raises(CaseError, match="cannot be traced") as error:
        read.read(wrong, X)
    assert error.value.place is not None and error.value.place.line == wrong.__code__.co_firstlineno + 1


def test_element_of_a_tensor_as_a_number() -> None:
    (f,) = read.read(lambda x, s: x * s.item(), {**X, "s": ("f32", ())})
    assert shown(f.term) == "mul(s[], x[m, n])"


def test_indices() -> None:
    specs: dict[str, read.Spec] = {**X, "i": ("i64", (K,))}
    assert str(read.read(lambda x, i: x[i], specs, indices=["i"])[0].term) == "x[i[k], n]"
    assert "where" in str(read.read(lambda x, i: x[i], specs)[0].term)


# ---- arithmetic of indices ------------------------------------------------------------------------------------------


def test_views_there_and_back() -> None:
    h, d, p = (T.axis(Axis(name, s)) for name, s in (("h", H), ("d", D), ("p", T.mul(H, D))))
    assert index.unravel(index.linear((h, d), (H, D)), (H, D)) == (h, d)
    assert index.linear(index.unravel(p, (H, D)), (H, D)) is p
    assert index.floordiv(h * D + d, D) is h and index.mod(h * D + d, D) is d
    assert index.less(d, D) is T.const(True) and index.less(d + D, D) is T.const(False)
    assert index.floordiv(T.mul(3, H) - 1, H) is T.const(2)


@pytest.mark.parametrize("f", [index.floordiv, index.mod])
def test_division_of_indices_is_that_of_integers(f: Callable[[Term, Term], Term]) -> None:
    from trilift.lift.language.evaluate import evaluate

    a, b = Axis("a", H), Axis("b", D)
    i, j = T.axis(a), T.axis(b)
    name = "floordiv" if f is index.floordiv else "mod"
    for t in (
        i * D + j,
        i * D + j + 1,
        i - j,
        i * 6 + j * 4 + 3,
        j + D * 2,
        H * D - i - 1,
        T.make("mod", i, 3) * 2 + 1,
    ):
        for d in (D, H, T.const(3), T.const(2), H * D):
            for dims in ({"H": 3, "D": 5}, {"H": 4, "D": 1}, {"H": 1, "D": 7}):
                got, want = (evaluate(e, (a, b), {}, dims) for e in (f(t, d), T.make(name, t, d)))
                assert (got == want).all(), (t, d)


FACTORS: dict[str, Callable[[Any], Any]] = {
    "math.sqrt": lambda n: 1 / math.sqrt(n),
    "imported sqrt": lambda n: sqrt(n),
    "numpy.sqrt": lambda n: np.sqrt(n),
    "math.log": lambda n: math.log(n),
    "math.log of base 3": lambda n: math.log(n, 3),
    "math.log2": lambda n: math.log2(n),
    "math.log10": lambda n: math.log10(n),
    "math.exp": lambda n: math.exp(-n / 100),
    "math.pow": lambda n: math.pow(n, -0.5),
    "math.isqrt": lambda n: math.isqrt(n),
    "math.prod": lambda n: math.prod((n, 2, n)),
    "float": lambda n: float(n) / 2,
    "int": lambda n: int(n * 0.375),
    "int of a quotient": lambda n: int(n / 3),
    "round": lambda n: round(n / 2),
    "divmod": lambda n: divmod(n, 4)[1],
    "isinstance": lambda n: 3 if isinstance(n, int) and not isinstance(n, float) else 5,
    "type": lambda n: 3 if type(n) is int else 5,
    "type of a root": lambda n: 3 if type(math.sqrt(n)) is float and isinstance(n / 2, float) else 5,
    "a tensor of a size": lambda n: torch.sqrt(torch.tensor(n)),
    "a tensor of a root": lambda n: torch.as_tensor(math.sqrt(n), dtype=torch.float32),
    "new_tensor": lambda n: torch.ones(1).new_tensor(n),
}


@pytest.mark.parametrize("name", FACTORS)
def test_functions_of_sizes_are_terms(name: str) -> None:
    """Their numbers are those of Python, at sizes at which they were not traced."""
    factor = FACTORS[name]
    got = read.reading(lambda x: x * factor(x.shape[0]), {"x": ("f32", (N,))})
    assert got.conditions == ()
    t = T.rewrite(got.formulas[0].term, lambda s: T.const(1) if s.op == "read" else None)
    for n in (2, 9, 10, 1000):
        assert value(t, {"N": n}) == pytest.approx(float(factor(n)), rel=1e-6), name


def test_functions_of_numbers_are_those_of_python_while_a_reference_is_read() -> None:
    def fn(x: Any) -> Any:
        assert math.sqrt(4) == 2 and math.log(8, 2) == 3 and math.pow(2, 3) == 8 and math.isqrt(10) == 3
        assert int("12") == 12 and int("1f", 16) == 31 and float("0.5") == 0.5 and divmod(7, 2) == (3, 1)
        three, text = 3, ""
        assert type(three) is int and type(text) is str and isinstance(three, int) and {int: "i"}[type(three)] == "i"
        assert torch.tensor([1.0, 2.0]).shape == (2,)
        return x

    before = math.sqrt, math.log
    assert read.read(fn, {"x": ("f32", (N,))})[0].term.op == "read"
    assert (math.sqrt, math.log) == before


ROUNDED: dict[str, Callable[[Any], Any]] = {
    "a percentage": lambda n: int(n * 0.47),
    "there and back": lambda n: 2 if n * 0.01 * 100 <= n else 3,
    "an integer against a float": lambda n: 2 if n >= n * 0.01 * 100 else 3,
    "a quotient times its divisor": lambda n: 2 if n / 7 * 7 == n else 3,
    "a root squared": lambda n: 2 if math.sqrt(n) * math.sqrt(n) <= n else 3,
    "a sum of products": lambda n: 2 if 0.1 * n + 0.2 * n <= 0.3 * n else 3,
    "a truth": lambda n: 3 if n * 0.1 * 10 - n else 2,
    "rounded up": lambda n: math.ceil(n * 0.1 * 10),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_questions_that_rounding_may_answer_are_refused(name: str) -> None:
    """The float is not the real number, and another branch is taken: at N = 7, 29, 4300 ..."""
    factor = ROUNDED[name]
    with pytest.raises(Unsupported, match="rounded number"):
        read.read(lambda x: x * factor(x.shape[0]), {"x": ("f32", (N,))})


def test_a_quotient_that_is_compared_with_an_integer_is_a_condition() -> None:
    got = read.reading(lambda x: x if x.shape[0] / 3 > 2 else 2 * x, {"x": ("f32", (N,))})
    (condition,) = got.conditions
    assert [bool(value(condition, {"N": n})) for n in (5, 6, 7)] == [False, False, True]

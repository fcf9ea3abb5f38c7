"""Formula -> pointwise specs at two shapes -> synthesis: the formula comes back."""

from __future__ import annotations

import numpy as np
import pytest

from trilift.lift.errors import NotLifted
from trilift.lift.language.evaluate import evaluate
from trilift.lift.runtime.budget import Budgets, LiftBudget
from trilift.lift.synthesis.instances import short
from trilift.lift.synthesis.top_down import synthesise
from trilift.lift.terms import construct as T
from trilift.lift.terms.construct import div, make, where
from trilift.lift.terms.domain import SYMBOLIC, Ids, as_ids
from trilift.lift.terms.spec import Spec
from trilift.lift.terms.term import Axis, Term, axis, fold, read, size

M, N, K = size("M"), size("N"), size("K")
m, n, k = Axis("m", M), Axis("n", N), Axis("k", K)
n1 = Axis("n'", N)
n8 = Axis("i", 8 * N)
A = {"M": 3, "N": 5, "K": 7, "N8": 40}
B = {"M": 4, "N": 7, "K": 6, "N8": 56}


def spec_of(term: Term, axes: tuple[Axis, ...], shapes: dict[str, str], dims: dict[str, int]) -> Spec:
    sizes = {name: tuple(dims[d] if d in dims else int(d) for d in s.split()) for name, s in shapes.items()}
    kinds = {t.attr: t.type for t in term.walk() if t.op == "read"}
    inputs = {
        name: Ids(np.array([read(name, i, kinds.get(name, T.REAL)).id for i in np.ndindex(*s)], np.int32).reshape(s))
        for name, s in sizes.items()
    }
    return Spec("out", as_ids(evaluate(term, axes, inputs, dims, SYMBOLIC)), dims, sizes, "f32")


def row(name: str, a: Axis = n) -> Term:
    return read(name, [axis(m), axis(a)])


def mean(t: Term) -> Term:
    return div(fold("sum", n, t), N)


x = row("x")
centred = x - mean(x)
gram = fold("sum", k, read("x", [axis(m), axis(k)]) * read("w", [axis(k), axis(n)]))
scores = fold("sum", k, read("q", [axis(m), axis(k)]) * read("key", [axis(n), axis(k)])) * T.recip(make("sqrt", K))
stable = make("exp", scores - fold("amax", n, scores))
causal = where(make("le", axis(n), axis(m)), make("exp", scores), 0)

CASES: dict[str, tuple[Term, tuple[Axis, ...], dict[str, str]]] = {
    "copy": (x, (m, n), {"x": "M N"}),
    "transpose": (read("x", [axis(n), axis(m)]), (m, n), {"x": "N M"}),
    "scalar sum": (fold("sum", m, fold("sum", n, x)), (), {"x": "M N"}),
    "softmax": (div(make("exp", x), fold("sum", n, make("exp", x))), (m, n), {"x": "M N"}),
    "stable softmax": (
        div(make("exp", x - fold("amax", n, x)), fold("sum", n, make("exp", x - fold("amax", n, x)))), (m, n), {"x": "M N"},  # noqa: E501
    ),
    "rms norm": (x * T.recip(make("sqrt", mean(x * x) + 1e-6)) * read("w", [axis(n)]), (m, n), {"x": "M N", "w": "N"}),
    "layer norm": (centred * T.recip(make("sqrt", mean(centred * centred) + 1e-5)), (m, n), {"x": "M N"}),
    "matmul": (gram, (m, n), {"x": "M K", "w": "K N"}),
    "matmul relu bias": (make("max", gram + read("b", [axis(n)]), 0), (m, n), {"x": "M K", "w": "K N", "b": "N"}),
    "attention": (
        div(fold("sum", n, stable * read("v", [axis(n), axis(k)])), fold("sum", n, stable)), (m, k),
        {"q": "M K", "key": "N K", "v": "N K"},
    ),
    "causal attention": (
        div(fold("sum", n, causal * read("v", [axis(n), axis(k)])), fold("sum", n, causal)), (m, k),
        {"q": "M K", "key": "N K", "v": "N K"},
    ),
    "cumsum": (fold("sum", n1, where(make("le", axis(n1), axis(n)), row("x", n1), 0)), (m, n), {"x": "M N"}),
    "gather": (read("w", [read("i", [axis(m)], T.INT), axis(n)]), (m, n), {"w": "K N", "i": "M"}),
    "one-hot": (where(make("eq", read("i", [axis(m)], T.INT), axis(n)), 1, 0), (m, n), {"i": "M"}),
    "scatter add": (
        fold("sum", m, where(make("eq", read("i", [axis(m)], T.INT), axis(k)), row("x"), 0)), (k, n), {"x": "M N", "i": "M"},  # noqa: E501
    ),
    "argmax": (fold("argmax", n, x), (m,), {"x": "M N"}),
    "flip": (read("x", [axis(m), N - 1 - axis(n)]), (m, n), {"x": "M N"}),
    "cat": (
        where(make("lt", axis(Axis("i", M + N)), M), read("a", [axis(Axis("i", M + N))]), read("b", [axis(Axis("i", M + N)) - M])),  # noqa: E501
        (Axis("i", M + N),), {"a": "M", "b": "N"},
    ),
    "causal convolution": (
        fold("sum", k, where(make("le", K - 1, axis(n) + axis(k)), read("x", [axis(n) + axis(k) - K + 1]) * read("w", [axis(k)]), 0)),  # noqa: E501
        (n,), {"x": "N", "w": "K"},
    ),
    "packed": (
        make("bitand", make("shr", read("p", [axis(m), make("floordiv", axis(n8), 8)], T.INT), make("mod", axis(n8), 8) * 4), 15),  # noqa: E501
        (m, n8), {"p": "M N"},
    ),
    "repeated": (read("x", [make("floordiv", axis(n8), 8)]), (n8,), {"x": "N"}),
    "first sixteen": (where(make("lt", axis(n8), 16), read("x", [axis(n8)]), 0), (n8,), {"x": "N8"}),
    "gram": (
        fold("sum", n, x * read("x", [axis(Axis("m'", M)), axis(n)])), (m, Axis("m'", M)), {"x": "M N"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_formula_comes_back(name: str) -> None:
    term, axes, shapes = CASES[name]
    specs = [spec_of(term, axes, shapes, d) for d in (A, B)]
    got = synthesise(*specs)
    rng = np.random.default_rng(0)
    dims = {"M": 5, "N": 6, "K": 4, "N8": 48}
    kinds = {t.attr: t.type for t in term.walk() if t.op == "read"}
    inputs = {
        a: rng.integers(0, 4, [dims[d] for d in s.split()]) if kinds.get(a) == T.INT else rng.normal(size=[dims[d] for d in s.split()])  # noqa: E501
        for a, s in shapes.items()
    }  # fmt: skip
    want = evaluate(term, axes, inputs, dims)
    assert np.allclose(evaluate(got.term, got.axes, inputs, dims), want, rtol=1e-6), got


def test_same_axis_for_the_same_dim() -> None:
    """The bound n of the sum has the name of the output axis n: softmax needs no renaming to be recognised."""
    term, axes, shapes = CASES["softmax"]
    assert synthesise(*(spec_of(term, axes, shapes, d) for d in (A, B))).term is term


def test_mutated_spec_is_not_lifted_to_the_same() -> None:
    """One element changed: no formula, or one that gives the changed element back; never the unchanged formula."""
    term, axes, shapes = CASES["softmax"]
    a, b = (spec_of(term, axes, shapes, d) for d in (A, B))
    ids = a.ids.copy()
    ids[1, 2] = ids[1, 3]
    try:
        got = synthesise(Spec(a.name, ids, a.dims, a.inputs, a.dtype), b)
    except NotLifted:
        return
    assert got.term is not term


def recurrence(dims: dict[str, int]) -> Spec:
    """h = h * exp(g[n]) + x[n], every h an output: a decayed prefix sum."""
    h, out = T.const(0), []
    for j in range(dims["N"]):
        h = h * make("exp", read("g", [j])) + read("x", [j])
        out.append(h.id)
    return Spec("out", np.array(out, np.int32), dims, {"g": (dims["N"],), "x": (dims["N"],)}, "f32")


def test_recurrence_becomes_a_sum_over_earlier_steps() -> None:
    got = synthesise(recurrence(A), recurrence(B))
    rng = np.random.default_rng(0)
    g, xs = rng.normal(size=9), rng.normal(size=9)
    h, want = 0.0, []
    for j in range(9):
        h = h * np.exp(g[j]) + xs[j]
        want.append(h)
    assert np.allclose(evaluate(got.term, got.axes, {"g": g, "x": xs}, {"M": 2, "N": 9, "K": 2}), want)


def online(dims: dict[str, int], tile: int = 2) -> Spec:
    """Softmax of each row as a loop over tiles computes it, with a running maximum and a rescaled sum."""
    rows = []
    for i in range(dims["M"]):
        xs = [read("x", [i, j]) for j in range(dims["N"])]
        m, total = T.const(float("-inf")), T.const(0)
        for s in range(0, len(xs), tile):
            new = make("max", m, *xs[s : s + tile])
            total = total * make("exp", m - new) + T.add(*(make("exp", v - new) for v in xs[s : s + tile]))
            m = new
        rows.append([div(make("exp", v - m), total).id for v in xs])
    return Spec("out", np.array(rows, np.int32), dims, {"x": (dims["M"], dims["N"])}, "f32")


def test_online_softmax_over_tiles() -> None:
    got = synthesise(online(A), online(B))
    assert got.term is CASES["softmax"][0]


def scatter(dims: dict[str, int]) -> Spec:
    """out = zeros; for m: out[i[m]] = x[m]: the last store wins."""
    ids = []
    for e in range(dims["K"]):
        t = T.const(0)
        for j in range(dims["M"]):
            t = where(make("eq", read("i", [j], T.INT), e), read("x", [j]), t)
        ids.append(t.id)
    return Spec("out", np.array(ids, np.int32), dims, {"i": (dims["M"],), "x": (dims["M"],)}, "f32")


def test_scatter_last_store_wins() -> None:
    got = synthesise(scatter(A), scatter(B))
    index, xs = np.array([1, 3, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0])
    value = evaluate(got.term, got.axes, {"i": index, "x": xs}, {"M": 4, "N": 1, "K": 5})
    assert value.tolist() == [4, 3, 0, 2, 0]


def test_bottom_up_alone_finds_small_formulas_and_gives_up_on_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trilift.lift.synthesis.bottom_up.BUDGETS", Budgets(lift=LiftBudget(candidates=1000)))
    for name in ("copy", "rms norm"):
        term, axes, shapes = CASES[name]
        specs = [spec_of(term, axes, shapes, d) for d in (A, B)]
        if name == "copy":
            assert synthesise(*specs, top_down=False).term is term
        else:
            with pytest.raises(NotLifted, match="bottom-up"):
                synthesise(*specs, top_down=False)


def test_reflected_index_is_piecewise_affine() -> None:
    """x[1], x[0], x[1] ... x[N-1], x[N-2]: the reflected index of a padding."""

    def padded(dims: dict[str, int]) -> Spec:
        last = dims["N"] - 1
        ids = [read("x", [last - abs(last - abs(i - 1))]).id for i in range(dims["N"] + 2)]
        return Spec("out", np.array(ids, np.int32), dims, {"x": (dims["N"],)}, "f32")

    got = synthesise(padded(A), padded(B))
    value = evaluate(got.term, got.axes, {"x": np.arange(9.0)}, {"M": 2, "N": 9, "K": 2})
    assert value.tolist() == [1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 7]


def test_a_term_whose_text_doubles_with_each_level_is_cut_off() -> None:
    x = T.read("x", (T.size("N"),))
    t = x
    for _ in range(60):
        t = T.make("where", T.make("lt", t, T.make("exp", t)), T.make("exp", t), t)
    assert short(t).startswith("where(lt(where(lt(...)") and len(short(t)) == 160
    assert short(T.make("exp", x)) == repr(T.make("exp", x))

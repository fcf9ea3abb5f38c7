"""Text, LaTeX and PyTorch source: golden texts, text read back, and generated functions run."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
import torch
from formulas import KERNELS, K, M, N, closed, f, formula, read, terms, total
from hypothesis import given, settings

from trilift.lift.language import sample
from trilift.lift.language.evaluate import evaluate
from trilift.lift.language.parse import formula as parse
from trilift.lift.language.python_source import python_source
from trilift.lift.printers.all import index_form, latex, text
from trilift.lift.printers.all import torch as torch_source
from trilift.lift.runtime.session import Session
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis

SHAPES = {"x": (M, N), "y": (M, N), "z": (N, M), "w": (N,), "s": (M,), "u": (K,), "h": (M, K), "g": (K, N)}
QUICK = settings(max_examples=150, deadline=None, derandomize=True)


def run(f: Formula, numbers: dict, arrays: dict) -> np.ndarray:
    """The printed PyTorch function on these inputs."""
    scope: dict = {}
    exec(torch_source(f, SHAPES if set(arrays) <= set(SHAPES) and _fits(arrays, numbers) else None), scope)
    given = {a: torch.tensor(x) for a, x in arrays.items()} | numbers
    function = scope[f.name]
    return np.asarray(function(**{name: given[name] for name in inspect.signature(function).parameters}))


def _fits(arrays: dict, numbers: dict) -> bool:
    return all(
        a.ndim == len(SHAPES[name])
        and all(numbers.get(s.attr) == length for s, length in zip(SHAPES[name], a.shape, strict=True))
        for name, a in arrays.items()
    )


def assert_torch_agrees(f: Formula) -> None:
    for seed in (0, 1):
        numbers = sample.dims([f.term], f.axes, seed)
        arrays = sample.inputs([f.term], numbers, seed)
        expected = evaluate(f.term, f.axes, arrays, numbers)
        got = run(f, numbers, arrays)
        assert got.shape == expected.shape, torch_source(f)
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9, err_msg=torch_source(f))


def assert_reads_back(f: Formula) -> None:
    types = {s.attr: s.type for s in f.term.walk() if s.op == "read" and s.type != T.REAL}
    shapes = {
        a: dims if None not in dims else tuple(T.size(f"{a.upper()}{p}") for p in range(len(dims)))
        for a, dims in _shapes(f).items()
    }
    for show in (text, index_form):
        printed = show(f, shapes)
        again = parse(printed, shapes, types, axes=None if printed.startswith("out") else f.axes)
        assert show(again, shapes) == printed
        assert sample.differ(f.term, again.term, f.axes, seeds=1) is None, printed


def _shapes(f: Formula) -> dict:
    from trilift.lift.printers.text import input_shapes

    return input_shapes(f.term)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_print_to_functions_that_run(name):
    assert_torch_agrees(formula(KERNELS[name][0]))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_read_back(name):
    assert_reads_back(formula(KERNELS[name][0]))


@QUICK
@given(terms())
def test_random_formulas_print_to_functions_that_run(t):
    assert_torch_agrees(closed(t))


@QUICK
@given(terms())
def test_random_formulas_read_back(t):
    assert_reads_back(closed(t))


@QUICK
@given(terms())
def test_random_formulas_have_latex(t):
    out = latex(closed(t))
    assert out.count("{") == out.count("}") and out.count(r"\left") == out.count(r"\right")


# ---- the order of operands -------------------------------------------------------------------------------------------


def axes_of_sizes() -> tuple[Axis, Axis, Axis]:
    return Axis("i", T.size("PI")), Axis("j", T.size("PJ")), Axis("l", T.size("PL"))


def parts(name: str, first: Sequence[int]) -> Formula:
    """The formula of this name, whose parts are made in the order `first`."""
    i, j, l = axes_of_sizes()  # noqa: E741
    one = lambda x, *over: read(x, *over)  # noqa: E731
    over = Axis("l", T.size("PJ"))  # another axis of the same name
    wide = [lambda: one("pa", i, j), lambda: one("pb", i, j), lambda: one("pc", j)]
    made = {
        "contraction": [lambda: one("pa", i, l), lambda: one("pb", l, j), lambda: one("pc", l)],
        "maximum": [*wide, lambda: T.const(3.5)],
        "condition": wide,
        "sizes": [lambda: T.size("PL") + 9, lambda: T.size("PI") * 2, lambda: T.size("PJ") + 5],
        "extents": [lambda: total(l, f("exp", T.axis(l))), lambda: total(over, f("exp", T.axis(over))), wide[0]],
    }[name]
    ts = {k: made[k]() for k in first}
    a, b, *_ = ts = [ts[k] for k in sorted(ts)]
    term = {
        "contraction": lambda: total(l, T.mul(*ts)),
        "maximum": lambda: f("max", *ts),
        "condition": lambda: T.where(f("and", f("lt", a, b), f("ne", b, ts[2]), f("lt", ts[2], 7.5)), a, 0),
        "sizes": lambda: read("pa", i, j) * f("min", *ts),
        "extents": lambda: T.mul(*ts),
    }[name]()
    return Formula("out", (i, j), term, "f32")


def printed(name: str, first: Sequence[int]) -> list[str]:
    """The formula by every printer."""
    with Session():
        made = parts(name, first)
        numbers = [python_source(s) for s in made.term.walk() if s.op == "min"]
        return [*(show(made) for show in (text, index_form, torch_source, latex)), *numbers]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "count"), [(n, 3) for n in ("contraction", "condition", "sizes", "extents")] + [("maximum", 4)]
)
def test_age_of_operands_does_not_show(name, count):
    known = printed(name, range(count))
    assert all(printed(name, first) == known for first in permutations(range(count)))


@pytest.mark.smoke
@pytest.mark.parametrize("op", ["truncdiv", "next_power_of_2"])
def test_python_of_sizes_keeps_sums_and_shifts_together(op):
    n, d = T.size("N"), T.size("D")
    for a in (T.add(n, 3), T.make("shl", n, T.const(2)), T.sub(n, T.mul(2, d))):
        t = T.make(op, a, d) if op == "truncdiv" else T.make(op, a)
        for numbers in ({"N": 5, "D": 4}, {"N": 3, "D": 7}):
            assert eval(python_source(t), numbers) == value(t, numbers)

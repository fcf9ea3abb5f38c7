"""Simplification: kernels to their textbook forms, the laws used, random terms unchanged in value, determinism and
limits."""

from __future__ import annotations

import math
import subprocess
import sys
import time

import pytest
from formulas import KERNELS, M, N, closed, formula, k, m, n, read, terms, total, x
from hypothesis import given, settings

from trilift.lift.language import sample
from trilift.lift.language.alignment import align
from trilift.lift.printers.all import text
from trilift.lift.simplify.egraph import Limits, saturate
from trilift.lift.simplify.saturation import constants, simplify
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_to_textbook_form(name):
    term, expected = KERNELS[name]
    out = simplify(formula(term))
    assert text(out.formula) == expected
    assert out.note == ""


@pytest.mark.parametrize("name", KERNELS)
def test_simplified_is_simple(name):
    once = simplify(formula(KERNELS[name][0])).formula
    assert simplify(once).formula == once


@settings(max_examples=60, deadline=None, derandomize=True)
@given(terms())
def test_random_terms_keep_their_value(t):
    f = closed(t)
    out = simplify(f)
    assert out.note == "", text(f)
    assert sample.differ(t, out.formula.term, f.axes, seeds=2, tolerance=1e-6) is None


@pytest.mark.parametrize(
    "name, laws",
    [
        ("softmax", {"softmax", "softmax-shift"}),
        ("rms_norm", {"mean", "rms_norm"}),
        ("gelu", {"gelu"}),
        ("matmul", set()),
        ("layer_norm by squares", {"mean", "var-of-squares", "layer_norm"}),
    ],
)
def test_laws_used_are_few(name, laws):
    assert {law.name for law in simplify(formula(KERNELS[name][0])).laws} == laws


def test_conditions_come_with_the_laws():
    shift = next(law for law in simplify(formula(KERNELS["softmax"][0])).laws if law.name == "softmax-shift")
    assert shift.condition == "c without i"


def test_condition_that_fails_stops_the_law():
    exp = T.make("exp", x - T.fold("amax", m, x))  # the maximum over m depends on n: no softmax over n
    out = simplify(formula(exp / total(n, exp))).formula.term
    assert "softmax[n](x[m, n])" not in repr(out)
    assert "amax[m]" in repr(out)


def test_mutant_of_softmax_is_no_softmax():
    exp = T.make("exp", x - T.fold("amax", n, x))
    out = simplify(formula(T.make("exp", x) / total(n, exp))).formula.term
    assert text(formula(out)) != "softmax(x, -1)"


def test_cancel_needs_nonzero():
    assert simplify(formula(x * T.recip(x))).formula.term is x * T.recip(x)
    e = T.make("exp", x)
    assert simplify(formula(e * T.recip(e), m, n)).formula.term is T.const(1)


def test_masked_read_stays_behind_its_mask():
    """x[m, n - 1] is outside at n = 0: neither simplification nor text may multiply by it unmasked."""
    inside, left = T.make("lt", 0, T.axis(n)), T.read("x", [T.axis(m), T.axis(n) - 1])
    t = total(n, T.where(inside, left * read("w", n), 0))
    out = simplify(formula(t))
    assert out.note == ""
    assert "@" not in text(out.formula, {"x": (M, N), "w": (N,)})
    defined = simplify(formula(total(n, T.where(inside, x * read("w", n), 0)))).formula
    assert sample.differ(t, simplify(formula(t)).formula.term, (m,)) is None and "where" in repr(defined.term)


def test_sqrt_of_square_is_abs():
    assert text(simplify(formula(T.make("sqrt", x * x))).formula) == "abs(x)"


def test_constant_size_is_a_mean_too():
    c = Axis("c", T.const(64))
    y = read("y", m, c)
    assert text(simplify(formula(total(c, y) * (1 / 64), m)).formula) == "mean(y, -1)"


def test_align_takes_the_output_axes():
    j = Axis("j", N)
    assert align(total(j, read("x", m, j)), (m, n)) is total(n, read("x", m, n))
    both = total(j, read("x", n, j))
    assert align(both, (n,)) is both


def test_align_does_not_capture():
    j, i = Axis("j", N), Axis("i", N)
    t = total(j, total(i, read("x", i, j) * read("x", j, i)))
    aligned = align(t, (n,))
    assert sample.differ(t, aligned, ()) is None
    assert len({s.attr for s in aligned.walk() if s.op == "sum"}) == 2


def test_constants_in_base_two():
    assert constants(T.make("exp2", x * 0.18033688)) is T.make("exp", x * 0.125)


def test_same_input_same_output():
    """In a fresh process, with terms made in another order."""
    code = """
import sys; sys.path[:0] = ["tests/helpers"]
from trilift.lift.terms import construct as T
for name in "zyxwv": T.read(name, [T.size(name.upper())])
from formulas import KERNELS, formula
from trilift.lift.printers.all import text
from trilift.lift.simplify.saturation import simplify
for name in ("softmax", "causal attention", "layer_norm", "softmax backward"):
    print(text(simplify(formula(KERNELS[name][0])).formula))
"""
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert runs[0].splitlines() == [
        KERNELS[name][1] for name in ("softmax", "causal attention", "layer_norm", "softmax backward")
    ]


def test_why_saturation_stopped():
    assert saturate(read("x", m, n)).stop == "saturated"
    term = KERNELS["causal attention"][0]
    assert saturate(term, limits=Limits(nodes=50)).stop == "nodes"
    assert saturate(term, limits=Limits(iterations=1)).stop == "iterations"


def test_quick():
    simplify(formula(x))  # loads egglog and the laws
    for name in ("softmax", "layer_norm", "attention", "causal attention"):
        started = time.perf_counter()
        simplify(formula(KERNELS[name][0]))
        assert time.perf_counter() - started < 1.0, name


def test_a_long_sum_ends():
    t = T.add(
        *(
            read("x", m, n) * T.read("w", [T.const(i)]) * T.make("exp", T.read("x", [T.axis(m), T.axis(n) + i]))
            for i in range(24)
        )
    )
    started = time.perf_counter()
    out = simplify(formula(t))
    assert out.note == "" and time.perf_counter() - started < 5


def test_infinities_are_safe():
    t = T.where(T.make("lt", T.axis(n), T.axis(m)), x, -math.inf)
    assert text(simplify(formula(T.fold("amax", n, t))).formula).startswith("amax(where(")
    assert M is not N and k is not n

"""Tolerances hold for float32, whatever the order of sums and the form of the formula, and are small enough to see a
wrong kernel."""

from __future__ import annotations

import importlib
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
from float32 import KINDS, TINY, allowed, case_of, dims, formulas, inputs, measured, outputs, run, single, source_of  # noqa: E402
from operators import ROOT, tensors  # noqa: E402

CASES = {
    "activations": "silu gelu_tanh",
    "binary": "sub div",
    "conv": "conv1d",
    "gated": "swiglu_backward",
    "layer_norm": "layer_norm layer_norm_stats layer_norm_backward",
    "losses": "cross_entropy cross_entropy_backward kl_div",
    "matmul": "matmul linear_bias_relu",
    "optimiser": "adamw",
    "quantised": "matmul_int8",
    "reduce": "sum logsumexp",
    "rms_norm": "add_rms_norm rms_norm_backward",
    "scan": "cumsum",
    "softmax": "softmax1 log_softmax softmax_backward",
    "statistics": "variance",
    "unary": "exp rsqrt tanh",
}


def names(table: Mapping[str, str]) -> list[str]:
    return [f"{file}::{case}" for file, found in table.items() for case in found.split()]


# ---- the formulas of operators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names(CASES))
def test_float32_is_within_tolerance(name: str) -> None:
    """For every kind of inputs, order of sums and form; and a thousandth of it would not do."""
    worst = {(o, kind): measured(name, o, kind).worst for o in outputs(name) for kind in KINDS}
    assert max(worst.values()) <= 1, worst
    assert max(worst.values()) > 1e-3, worst


WELL = {
    "activations": "silu gelu",
    "layer_norm": "layer_norm",
    "losses": "cross_entropy cross_entropy_backward kl_div",
    "matmul": "matmul",
    "reduce": "sum mean logsumexp",
    "rms_norm": "rms_norm",
    "scan": "cumsum",
    "softmax": "softmax1 log_softmax",
    "statistics": "variance",
}


@pytest.mark.parametrize("name", names(WELL))
def test_tolerance_is_small(name: str) -> None:
    """On normal inputs a wrong thousandth of the output is seen."""
    for output in outputs(name):
        m = measured(name, output, "normal", ())
        assert np.median(m.allowed) < 1e-3 * np.median(np.abs(m.exact))


MUTANTS = [  # a case, a row of the table, what is wrong with it
    ("softmax::softmax1", "softmax", {"magnitude": "y"}),
    ("softmax::log_softmax", "log_softmax", {"magnitude": "y"}),
    ("reduce::sum", "sum", {"n": 0, "plus": 1}),
    ("reduce::mean", "mean", {"n": 0, "plus": 1}),
    ("layer_norm::layer_norm", "layer_norm", {"magnitude": "y"}),
    ("layer_norm::layer_norm_stats", "var", {"magnitude": "y"}),
    ("unary::exp", "exp", {"magnitude": "y"}),
    ("gated::swiglu_backward", "sigmoid", {"magnitude": "y * (1 + A)"}),
    ("binary::div", "recip", {"relative": "y * y"}),
]


@pytest.mark.parametrize(("name", "row", "change"), MUTANTS)
def test_a_wrong_row_is_seen(name: str, row: str, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from trilift.verify.properties import magnitudes

    rows = magnitudes.MAGNITUDE.rows
    monkeypatch.setitem(rows, row, replace(rows[row], **change))
    kinds = ("normal", "large", "tiny", "equal", "far")
    assert any(measured(name, o, kind).worst > 1 for o in outputs(name) for kind in kinds)


def test_a_step_is_allowed_where_rounding_carries_over_it() -> None:
    """round(127 x / max) of halves: float32 may give either neighbour; elsewhere there is no doubt."""
    from trilift.lift.language.evaluate import evaluate
    from trilift.verify.properties.tolerance import tolerance

    c, f = case_of("quantised::quantise_rows"), formulas("quantised::quantise_rows")["q"]
    halves = (np.arange(126) + 0.5) / 127 * 0.7
    x = np.array([[0.7, *halves], [0.7, *(halves + 1e-4)]], np.float32).astype(np.float64)
    numbers = {"M": 2, "N": x.shape[1]}
    exact = run(source_of(f, c), {"x": x}, numbers)
    near = allowed(tolerance(f, c), c, {"x": x}, numbers, exact)
    got = evaluate(f.term, f.axes, {"x": x}, numbers, single("forward"))
    assert np.any(got != exact)
    assert np.all(np.abs(got - exact) <= near)
    assert np.all(near[0, 1:] > 1)
    assert np.all(near[1] < 0.01)


def test_an_index_that_rounding_may_change_is_not_compared() -> None:
    """x[floor(0.1 i)]: at i = 10, 20, ... it may be the element before."""
    from trilift.lift.language.evaluate import evaluate
    from trilift.lift.terms import construct as T
    from trilift.lift.terms.spec import Formula
    from trilift.verify.properties.tolerance import tolerance

    n = T.Axis("n", T.size("N"))
    index = T.make("to_int", T.make("floor", T.mul(0.1, T.axis(n))))
    t = tolerance(Formula("out", (n,), T.read("x", [index]), "f32"), case_of("reduce::sum"))
    assert t.magnitude is not None
    m = evaluate(t.magnitude.term, t.magnitude.axes, {"x": np.arange(9.0)}, {"K": 9, "N": 35})
    assert list(np.flatnonzero(np.isinf(m))) == [0, 10, 20, 30]


# ---- random terms ----------------------------------------------------------------------------------------------------


def rounded_numbers(numbers: Any, narrow: bool) -> Any:
    """The same numbers in float32 or float64; the elements of tensors are float32 numbers in both."""
    from random_terms import Numbers

    from trilift.lift.terms import construct as T

    class Rounded(Numbers):
        def _of(self, t: Any, env: Any, depth: int) -> Any:
            x = np.asarray(super()._of(t, env, depth))
            exact = t.type == T.INT or x.dtype.kind != "f"
            return x if exact or not (narrow or t.op == "read") else x.astype(np.float32).astype(np.float64)

    return Rounded({n: v + 1 for n, v in numbers.values.items()}, numbers.seed)  # sizes are at least 1


def error_and_tolerance(t: Any, numbers: Any) -> tuple[float, float] | None:
    """Of a random term, None where nothing can be said: no value, an error as large as the value."""
    from trilift.lift.errors import Unsupported
    from trilift.lift.terms import construct as T
    from trilift.verify.properties.magnitudes import COUNT, Magnitudes, times

    analysis = Magnitudes(case_of("reduce::sum"), 2.0**-24)
    try:
        found = analysis.bound(t)
    except Unsupported:
        return None
    whole = T.make("max", times(2, found.roundings), 1)
    magnitude = T.rewrite(found.magnitude, lambda s: whole if s is COUNT else None)
    wide, narrow = rounded_numbers(numbers, False), rounded_numbers(numbers, True)
    try:
        exact, m, count = wide.of(t), wide.of(magnitude), wide.of(whole)
        reliable = all(_relative(analysis.bound(s), s, wide) < 0.01 for s in _delicate(t))
        got = narrow.of(t)
    except (KeyError, ValueError, OverflowError):
        return None
    allowed = 2.0**-24 * count * m + TINY
    if not all(map(math.isfinite, (exact, got, allowed))) or not reliable or abs(exact) > 1e30:
        return None
    return abs(got - exact), allowed


def _delicate(t: Any) -> list[Any]:
    """Arguments that must be known well, without bound axes: of divisions, logarithms, roots."""
    return [s.args[0] for s in t.walk() if s.op in ("recip", "log", "sqrt", "pow") and not s.args[0].free]


def _relative(bound: Any, t: Any, numbers: Any) -> float:
    value = abs(numbers.of(t))
    return float(2.0**-23 * numbers.of(bound.roundings) * numbers.of(bound.magnitude) / value) if value else 1.0


def random_errors(seed: int, count: int) -> list[tuple[Any, float, float]]:
    """Terms with their errors in float32 and what is allowed."""
    from random_terms import Draw, Numbers

    rng, out = random.Random(seed), []
    for _ in range(count):
        t, numbers = Draw(rng).real((), 4), Numbers.drawn(rng)
        if (found := error_and_tolerance(t, numbers)) is not None:
            out.append((t, *found))
    return out


def test_random_terms() -> None:
    """Terms of all operations are within tolerance, and many need a hundredth of it."""
    found = random_errors(3, 500)
    for t, off, most in found:
        assert off <= most, t
    assert sum(most > TINY for _, _, most in found) > 150
    assert sum(off > 0.01 * most for _, off, most in found) > 60


@pytest.mark.parametrize("rule", ["add", "mul", "max"])
def test_a_wrong_rule_is_seen(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of the first argument for all."""
    from trilift.verify.properties import magnitudes

    monkeypatch.setitem(magnitudes.MAGNITUDE.rows, rule, lambda m, t, bounds: bounds[0])
    assert any(off > most for _, off, most in random_errors(3, 300))


def test_every_operation_has_a_row_or_says_so() -> None:
    from trilift.lift.errors import Unsupported
    from trilift.lift.terms import construct as T
    from trilift.lift.terms.ops import OPS
    from trilift.verify.properties.magnitudes import Magnitudes

    x, y = T.read("x", [0]), T.read("y", [0])
    rounded = [T.mul(x, y), T.mul(x, x), T.add(x, y)]
    for row in OPS.values():
        args = rounded[: max(row.arity, 2) if row.arity < 0 else row.arity]
        try:
            t = row.on_terms(*args)
            bound = Magnitudes(case_of("reduce::sum"), 2.0**-24).bound(t)
        except Unsupported as error:
            assert "rounded number" in str(error) and row.name not in ("add", "mul", "exp", "floor", "where")
        else:
            assert bound.roundings.type == T.INT


# ---- narrow types ----------------------------------------------------------------------------------------------------


LOST = [("optimiser", "adamw"), ("softmax", "softmax1")]


def modules(module: str, name: str) -> tuple[Any, Any]:
    from trilift.lift.capture.run import capture
    from trilift.lift.cases.shapes import choose

    c = getattr(importlib.import_module(module), name)
    return c, tuple(e.module() for e in capture(c, choose(c, 1, 0)[0]).launches)


def test_what_a_kernels_own_numbers_lose_counts() -> None:
    """adamw makes 1 - 0.999f of its arguments; a softmax has no numbers of its own."""
    from trilift.lift.capture.run import capture
    from trilift.lift.cases.shapes import choose
    from trilift.verify.properties.scalar_loss import lost
    from trilift.verify.properties.tolerance import tolerance

    cases = [getattr(importlib.import_module(f"trilift.corpus.operators.{m}"), n) for m, n in LOST]
    adamw, softmax = (lost(capture(c, choose(c, 1, 0)[0]).launches) for c in cases)
    error = abs(float(1 - np.float32(0.999)) / 0.001 - 1) * 2**24
    assert error <= adamw <= 1.1 * error
    assert softmax == 0
    (formula,) = formulas("softmax::softmax1").values()
    (without, with_it) = (tolerance(formula, cases[1], (), n).roundings for n in (0, adamw))
    assert repr(with_it) == repr(without + adamw)


def test_roundings_to_narrow_types_count() -> None:
    """Two rows are added in fp16, then in fp32: one rounding of 2**-11 more."""
    from trilift.lift.language.parse import formula
    from trilift.verify.properties.tolerance import narrowest, roundings_to_narrow, tolerance

    c, found = modules("trilift.corpus.broken.40_rows_added_in_half", "sums_of_bags")
    assert narrowest(found) == "f16"
    assert roundings_to_narrow(found) == 1
    f = formula("out[b, d] = sum(l, x[b, l, d])", {"x": ["B", "L", "D"]})
    (wide, narrow) = (tolerance(f, c, m).roundings for m in ((), found))
    assert repr(narrow) == repr(wide + 2**13)


def test_sums_in_narrow_types_take_their_unit() -> None:
    from trilift.lift.language.parse import formula
    from trilift.verify.audit.accumulation import narrow_sums
    from trilift.verify.properties.tolerance import tolerance

    c, found = modules("trilift.corpus.operators.layout", "zeros")
    assert not any(narrow_sums(list(m.walk()), False) for m in found)
    f = formula("sum(x, -1)", {"x": ["M", "N"]})
    assert tolerance(f, c, found).unit == 2.0**-24


def test_f32_kernels_have_no_narrow_roundings() -> None:
    from trilift.verify.properties.tolerance import narrowest, roundings_to_narrow

    _, found = modules("trilift.corpus.operators.softmax", "softmax1")
    assert narrowest(found) is None
    assert roundings_to_narrow(found) == 0


@pytest.mark.parametrize(("name", "expected"), [("matmul", False), ("linear_plain", True)])
def test_tf32_is_seen(name: str, expected: bool) -> None:
    """Products of f32 numbers may be made of their first bits; f16 numbers have no more."""
    from trilift.verify.properties.tolerance import tolerance

    c, found = modules("trilift.corpus.operators.matmul", name)
    (formula,) = formulas(f"matmul::{name}").values()
    assert (tolerance(formula, c, found).tf32 > 0) is expected
    assert not tolerance(formula, c).tf32


# ---- kernels ---------------------------------------------------------------------------------------------------------

KERNELS = {
    "softmax": "softmax2 log_softmax",
    "layer_norm": "layer_norm layer_norm_backward",
    "rms_norm": "rms_norm",
    "attention": "attention",
    "statistics": "group_norm",
    "losses": "cross_entropy",
    "matmul": "matmul linear_bias_relu",
    "scan": "cumsum",
}


def printed(name: str) -> dict[str, Any]:
    """What a test of the kernel would hold: its formulas and tolerances as source."""
    from trilift.lift.terms.fit import value
    from trilift.verify.properties.tolerance import tolerance

    c, found = modules(f"corpus.operators.{name.partition('::')[0]}", name.partition("::")[2])
    out = {}
    for n, f in formulas(name).items():
        t = tolerance(f, c, found)
        assert t.magnitude is not None
        scale = t.unit * float(value(t.roundings, dims(name)) or 0)
        out[n] = {"formula": source_of(f, c), "magnitude": source_of(t.magnitude, c), "scale": scale}
    return out


def errors(name: str, sources: dict[str, Any]) -> list[dict[str, Any]]:
    """In the child: the kernel's largest error in units of the tolerance, and that of zeros, for every kind."""
    import torch

    c, numbers, out = case_of(name), dims(name), []
    for kind in ("normal", "large", "equal"):
        args = c.sample(numbers, np.random.default_rng(0))
        for n, x in c.named(args).items():
            x.copy_(torch.from_numpy(inputs(name, kind)[n].copy()))
        values = {n: (x.double() if x.is_floating_point() else x).numpy().copy() for n, x in c.named(args).items()}
        for (o, source), got in zip(sources.items(), tensors(c.fn(**args)), strict=False):
            want, m = (run(source[k], values, numbers) for k in ("formula", "magnitude"))
            half = torch.finfo(got.dtype).eps / 2
            allowed = source["scale"] * m + half * np.abs(want) + torch.finfo(got.dtype).tiny + TINY
            known = np.isfinite(want) & np.isfinite(allowed) & (np.abs(want) < torch.finfo(got.dtype).max / 2)
            with np.errstate(all="ignore"):
                off, zero = (np.where(known, np.abs(x - want) / allowed, 0) for x in (got.double().numpy(), 0))
            worst, least = float(np.max(off, initial=0)), float(np.max(zero, initial=0))
            out.append({"case": name, "output": o, "kind": kind, "worst": worst, "zero": least, "known": known.mean()})
    return out


def test_kernels_in_the_interpreter(tmp_path: Path) -> None:
    """Real kernels are within tolerance for every kind of inputs; zeros are not on normal ones."""
    path = tmp_path / "sources.json"
    path.write_text(json.dumps({name: printed(name) for name in names(KERNELS)}))
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, str(path)]
    child = subprocess.run(command, env=env, capture_output=True, text=True, timeout=170)
    assert child.returncode == 0, child.stderr[-2000:]
    records = json.loads(child.stdout.splitlines()[-1])
    assert {r["case"] for r in records} == set(names(KERNELS))
    for r in records:
        assert r["worst"] <= 1, r
        if r["kind"] == "normal":
            assert r["zero"] > 50, r
            assert r["known"] == 1, r


if __name__ == "__main__":
    from interpreted import Configs

    Configs.install()
    every = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([r for name, sources in every.items() for r in errors(name, sources)]))

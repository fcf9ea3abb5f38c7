"""Formulas of the corpus in float32: several orders of summation, several forms, against float64 and the tolerance."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
from operators import dims_of  # noqa: E402

SHAPE = {"B": 2, "H": 2, "G": 2, "M": 7, "N": 100, "K": 64, "D": 12, "V": 50, "E": 6, "C": 3, "L": 20, "T": 30}
TINY = 2.0**-90  # underflow is no rounding
KINDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "large": lambda rng, shape: 1e3 * rng.standard_normal(shape),
    "tiny": lambda rng, shape: 1e-6 * rng.standard_normal(shape),
    "equal": lambda rng, shape: np.full(shape, 0.7),
    "far": lambda rng, shape: 30 + rng.standard_normal(shape),
}


def case_of(name: str) -> Any:
    file, _, case = name.partition("::")
    return getattr(importlib.import_module(f"trilift.corpus.operators.{file}"), case)


@functools.cache
def formulas(name: str) -> dict[str, Any]:
    """The references' formulas in their shortest form."""
    from trilift.lift.simplify.saturation import simplify
    from trilift.verify.runs.goals import targets

    found = targets(case_of(name)).formulas
    return {n: simplify(f).formula for n, f in found.items() if f.dtype[0] in "fb" or n == "q"}


def dims(name: str) -> dict[str, int | float]:
    return dims_of(case_of(name), SHAPE)


def inputs(name: str, kind: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays in float32 values; integers as the case draws them."""
    c, rng = case_of(name), np.random.default_rng(seed)
    out = {}
    for n, x in c.named(c.sample(dims(name), rng)).items():
        spec = c.tensors[n]
        free = x.is_floating_point() and spec.low is None
        drawn = KINDS[kind](rng, tuple(x.shape)).astype(np.float32).astype(np.float64) if free else x.numpy()
        out[n] = np.abs(drawn) + 2.0**-20 if free and spec.positive else drawn
    return out


# ---- in float32 ------------------------------------------------------------------------------------------------------


def single(order: str) -> Any:
    """The domain of float32: every operation rounds, sums are made in this order."""
    from trilift.lift.terms.domain import Float64
    from trilift.lift.terms.ops import OPS, ORDERED

    def down(x: Any) -> Any:
        a = np.asarray(x)
        return a.astype(np.float32) if a.dtype.kind == "f" else a

    class Single(Float64):
        def apply(self, op: str, *xs: Any) -> Any:
            xs = tuple(map(down, xs))
            if any(x.dtype == np.float32 for x in xs) and op not in ("where", "pick"):
                xs = tuple(x.astype(np.float32) if x.dtype.kind in "iu" and op != "pow" else x for x in xs)
            row = OPS[op]
            with np.errstate(all="ignore"):
                if row.arity >= 0 or op in ORDERED:
                    return down(row.numpy(*xs))
                xs = xs[::-1] if order == "backward" else xs
                return functools.reduce(lambda a, b: down(row.numpy(a, b)), xs)

        def fold(self, op: str, x: Any, axis: int) -> Any:
            x = down(x)
            if op not in ("sum", "prod") or x.dtype != np.float32 or order == "pairwise" or not x.shape[axis]:
                return down(super().fold(op, x, axis))
            x = np.flip(x, axis) if order == "backward" else x
            with np.errstate(all="ignore"):
                scan: Any = {"sum": np.cumsum, "prod": np.cumprod}[op]
                return scan(x, axis, dtype=np.float32).take(-1, axis)

    return Single()


def term(text: str, i: Any, **args: Any) -> Any:
    from trilift.lift.language.parse import pattern
    from trilift.lift.language.unfolding import instantiate

    return instantiate(pattern(text), args, {"i": i})


STABLE = {  # no overflow
    "softmax": "exp(a - amax(i, a)) / sum(i, exp(a - amax(i, a)))",
    "logsumexp": "amax(i, a) + log(sum(i, exp(a - amax(i, a))))",
    "log_softmax": "a - amax(i, a) - log(sum(i, exp(a - amax(i, a))))",
    "cross_entropy": "amax(i, a) + log(sum(i, exp(a - amax(i, a)))) - take(i, a, t)",
}
BASE2 = {  # scaled before the maximum is subtracted
    "softmax": "exp2(a * log2(e) - amax(i, a) * log2(e)) / sum(i, exp2(a * log2(e) - amax(i, a) * log2(e)))",
    "logsumexp": "(amax(i, a * log2(e)) + log2(sum(i, exp2(a * log2(e) - amax(i, a * log2(e)))))) * log(2)",
    "log_softmax": "a - (amax(i, a * log2(e)) + log2(sum(i, exp2(a * log2(e) - amax(i, a * log2(e)))))) * log(2)",
    "exp": "exp2(a * log2(e))",
    "sigmoid": "1 / (1 + exp2(-a * log2(e)))",
    "silu": "a / (1 + exp2(-a * log2(e)))",
}
ONE_PASS = {
    "var": "max(mean(i, a * a) - mean(i, a) * mean(i, a), 0)",
    "layer_norm": "(a - mean(i, a)) / sqrt(max(mean(i, a * a) - mean(i, a) * mean(i, a), 0) + eps)",
    "gelu_tanh": "a / (1 + exp(-2 * sqrt(2 / pi) * (a + 0.044715 * a * a * a)))",
    "tanh": "1 - 2 / (exp(2 * a) + 1)",
    "sigmoid": "1 - 1 / (1 + exp(a))",
    "mean": "sum(i, a / size(i))",
}


def another(t: Any, *tables: Mapping[str, str]) -> Any:
    """The term with names and functions in another form."""
    from trilift.lift.language.definitions import DEFINITIONS
    from trilift.lift.language.unfolding import unfold
    from trilift.lift.terms import construct as T

    every = {name: form for table in tables for name, form in table.items()}

    def one(s: Any) -> Any:
        if s.op in every:
            names = DEFINITIONS[s.op].arguments if s.op in DEFINITIONS else ("a",)
            return term(every[s.op], s.attr, **dict(zip(names, s.args, strict=True)))
        return another(unfold(s), *tables) if s.op in DEFINITIONS else None

    return T.rewrite(t, one)


def late(t: Any) -> Any:
    """Divisions after sums: sum(k, p[k] / z) = sum(k, p[k]) / z."""
    from trilift.lift.terms import construct as T

    def one(s: Any) -> Any:
        if s.op != "sum" or s.args[0].op != "mul":
            return None
        out = [a for a in s.args[0].args if s.attr not in a.free]
        return T.mul(T.fold("sum", s.attr, T.mul(*(a for a in s.args[0].args if a not in out))), *out) if out else None

    return T.rewrite(t, one)


FORMS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda t: another(t, STABLE),
    "base 2": lambda t: another(t, STABLE, BASE2),
    "one pass": lambda t: late(another(t, STABLE, ONE_PASS)),
}


# ---- what is compared ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """The exact value and the tolerance of each element, and values in float32."""

    exact: np.ndarray
    allowed: np.ndarray
    singles: dict[str, np.ndarray]

    @property
    def worst(self) -> float:
        """The largest error in units of what is allowed, where anything is."""
        return max(float(np.max(self._ratio(v), initial=0)) for v in self.singles.values())

    def _ratio(self, value: np.ndarray) -> np.ndarray:
        known = np.isfinite(self.exact) & np.isfinite(self.allowed) & (np.abs(self.exact) < 1e37)
        with np.errstate(all="ignore"):
            off = np.abs(value - self.exact) / self.allowed
        return np.where(known, np.where(np.isnan(off), np.inf, off), 0)


def run(source: str, values: Mapping[str, Any], numbers: Mapping[str, Any]) -> np.ndarray:
    """What a printed function gives in float64."""
    import torch

    space: dict[str, Any] = {}
    exec(source, space)
    f = next(v for v in space.values() if (inspect.isfunction(v) and v.__module__ is None) or _ours(v, source))
    wanted = inspect.signature(f).parameters
    args = {n: torch.from_numpy(np.ascontiguousarray(x)) for n, x in values.items() if n in wanted}
    return np.asarray(f(**args, **{n: v for n, v in numbers.items() if n in wanted}).numpy(), np.float64)


def _ours(v: Any, source: str) -> bool:
    return inspect.isfunction(v) and f"def {v.__name__}(" in source


def source_of(formula: Any, c: Any) -> str:
    from trilift.lift.printers.torch_source import torch_source

    return torch_source(formula, {n: c.dims(n) for n in c.tensors})


def allowed(tolerance: Any, c: Any, values: Mapping[str, Any], numbers: Mapping[str, Any], exact: Any) -> np.ndarray:
    """unit * roundings * magnitude + half a unit of the output."""
    from trilift.lift.terms.fit import value

    count = value(tolerance.roundings, numbers)
    m = run(source_of(tolerance.magnitude, c), values, numbers)
    return np.asarray(tolerance.unit * float(count) * m + 2.0**-24 * np.abs(exact) + TINY)


RUNS = (("plain", "forward"), ("base 2", "backward"), ("one pass", "pairwise"))


def measured(name: str, output: str, kind: str, runs: Sequence[tuple[str, str]] = RUNS) -> Any:
    """One output of a case, for inputs of a kind, in several forms and orders."""
    from trilift.lift.language.evaluate import evaluate
    from trilift.verify.properties.tolerance import tolerance

    c, f = case_of(name), formulas(name)[output]
    values, numbers = inputs(name, kind), dims(name)
    numbers = {n: float(np.float32(v)) if isinstance(v, float) else v for n, v in numbers.items()}
    exact = run(source_of(f, c), values, numbers)
    t = tolerance(f, c)
    assert t.magnitude is not None
    singles = {
        f"{form}, {order}": np.asarray(
            evaluate(FORMS[form](f.term), f.axes, values, numbers, single(order)), np.float64
        )
        for form, order in runs
    }
    return Measured(exact, allowed(t, c, values, numbers, exact), singles)


def outputs(name: str) -> list[str]:
    return list(formulas(name))

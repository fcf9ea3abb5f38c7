"""Formulas against their specs, and arrays of terms against each other, on numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import NotLifted
from ..language.evaluate import evaluate
from ..terms import term as T
from ..terms.domain import FLOAT64
from ..terms.skeleton import SYMMETRIC, order
from ..terms.spec import Formula, Spec
from ..terms.term import COMMUTATIVE, TERMS, Term


def check_on_samples(formula: Formula, spec: Spec, rounds: int = 2, elements: int = 100) -> None:
    """The formula at the spec's shape must have the values of the spec's terms on random inputs. Raises NotLifted.

    At most `elements` elements are compared, chosen at random; the kernel's own values, all of them, come later."""
    rng = np.random.default_rng(0)
    kinds = {t.attr: t.type for t in formula.term.walk() if t.op == "read"}
    places = np.sort(rng.permutation(spec.ids.size)[:elements])
    ids = spec.ids.ravel()[places]
    kinds |= {t.attr: t.type for i in ids for t in TERMS[i].walk() if t.op == "read"}
    for _ in range(rounds):
        inputs = {name: _sample(kinds.get(name, T.REAL), shape, rng) for name, shape in spec.inputs.items()}
        got = np.asarray(evaluate(formula.term, formula.axes, inputs, spec.dims))
        if got.shape != spec.ids.shape:
            raise NotLifted(f"the formula of {spec.name} has shape {list(got.shape)} instead of {list(spec.ids.shape)}")
        got, want = got.ravel()[places].astype(np.float64), values_at(ids, inputs, spec.dims)
        same = np.isclose(got, want, rtol=1e-5, atol=1e-8, equal_nan=True)
        if not same.all():
            k = int(np.argmin(same))
            element = [int(x) for x in np.unravel_index(places[k], spec.ids.shape)]
            raise NotLifted(
                f"the formula of {spec.name} does not reproduce element {element}",
                why=f"{got[k]:.6g} instead of {want[k]:.6g}, the value of {short(TERMS[ids[k]])}",
            )


def _sample(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if kind == T.INT:
        return rng.integers(0, 1 + max(shape, default=1), shape)
    return rng.integers(0, 2, shape).astype(bool) if kind == T.BOOL else rng.uniform(0.1, 2, shape)


def values_at(ids: np.ndarray, inputs: dict[str, np.ndarray], dims: Mapping[str, int | float]) -> np.ndarray:
    """Numbers of an array of terms over single elements of the inputs."""
    known: dict[int, int | float] = {}
    distinct, inverse = np.unique(ids, return_inverse=True)
    for i in distinct:
        for t in TERMS[i].walk():
            if t.id not in known:
                known[t.id] = _value(t, known, inputs, dims)
    return np.array([known[int(i)] for i in distinct], np.float64)[inverse].reshape(ids.shape)


def _value(
    t: Term, known: Mapping[int, int | float], inputs: dict[str, np.ndarray], dims: Mapping[str, int | float]
) -> int | float:
    number: int | float = np.nan
    if t.op == "const":
        number = t.attr
    elif t.op in ("size", "scalar"):
        number = dims[t.attr]
    elif t.op == "read":
        index = tuple(int(known[a.id]) for a in t.args)
        inside = all(0 <= k < n for k, n in zip(index, inputs[t.attr].shape, strict=True))
        number = inputs[t.attr][index].item() if inside else np.nan
    elif t.op != "undef":
        number = np.asarray(FLOAT64.apply(t.op, *(np.asarray(known[a.id]) for a in t.args))).item()
    return number


def same_numbers(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal up to rounding of constants: the same skeleton, coordinates within 3e-7 relative."""
    memo: dict[tuple[int, int], bool] = {}
    pairs = {(int(x), int(y)) for x, y in zip(a.ravel(), b.ravel(), strict=True) if x != y}
    return all(alike(TERMS[x], TERMS[y], memo) for x, y in pairs)


def alike(a: Term, b: Term, memo: dict[tuple[int, int], bool] | None = None) -> bool:
    """Equal terms but for the rounding of float constants (relative 3e-7: one f32 rounding)."""
    memo = {} if memo is None else memo
    key = (a.id, b.id)
    if a is b:
        return True
    if key not in memo:
        memo[key] = _alike(a, b, memo)
    return memo[key]


def _alike(a: Term, b: Term, memo: dict[tuple[int, int], bool]) -> bool:
    if a.op == "const" and b.op == "const":
        return a.type != T.BOOL and b.type != T.BOOL and bool(np.isclose(a.attr, b.attr, rtol=3e-7, atol=0))
    if a.op != b.op or a.attr != b.attr or len(a.args) != len(b.args):
        return False
    if a.op in COMMUTATIVE or a.op in SYMMETRIC:
        left, right = sorted(a.args, key=order), sorted(b.args, key=order)
    else:
        left, right = list(a.args), list(b.args)
    return all(alike(x, y, memo) for x, y in zip(left, right, strict=True))


SHOWN_PARTS = 400  # of a term, those that occur several times as often: more are not written out


def short(t: Term, limit: int = 160) -> str:
    """The text of a term, cut off. A term whose parts occur again and again is written to a few levels only: its whole
    text doubles with each."""
    s = repr(t) if _written_parts(t) <= SHOWN_PARTS else _beginning(t, 3)
    return s if len(s) <= limit else s[: limit - 3] + "..."


def _written_parts(t: Term) -> int:
    parts: dict[int, int] = {}
    for s in t.walk():
        parts[s.id] = 1 + sum(parts[a.id] for a in s.args)
    return parts[t.id]


def _beginning(t: Term, levels: int) -> str:
    if not t.args:
        return repr(t)
    inside = ", ".join(_beginning(a, levels - 1) for a in t.args) if levels else "..."
    head = str(t.attr) if t.op == "read" else t.op
    return f"{head}[{inside}]" if t.op == "read" else f"{head}({inside})"

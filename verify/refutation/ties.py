"""Kernel and reference on rational numbers, without rounding: at ties, too.

    where(0.5 <= x[0], x[0], 0)        at x[0] = 1/2: 1/2
    where(x[0] <= 0.5, 0, x[0])        at x[0] = 1/2: 0

A field test draws numbers of which no two are equal but by accident, and a run in float64 is not believed where a
comparison hangs on the last digit. Where all operations are rational, no digit is lost: elements of inputs are the
numbers that the two programs compare with, and what differs there is no identity.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product

import numpy as np
import torch

from trilift.lift.cases.declaration import Case, Spec, torch_dtype
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import TriliftError
from trilift.lift.language.evaluate import evaluate
from trilift.lift.replay.execute import spec
from trilift.lift.runtime.budget import BUDGETS, limited, spend
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import SYMBOLIC, Ids, as_ids
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.spec import Formula, input_elements
from trilift.lift.terms.term import Term

from ..fields.rational_constants import rational
from ..model.verdict import Counterexample
from ..runs.adversary import SEARCHED
from ..runs.code_numbers import allowed
from ..runs.given_arguments import given
from ..runs.goals import Targets
from ..runs.readings import holds
from ..runs.trials import Dims
from .replay_script import kept_arguments
from .search import Failure, Question, attempt, found_at, launched

Exact = Fraction | float | bool | None  # a float is an infinity; None: no number is known
Function = Callable[..., Exact]
Constant = Callable[[float | bool], Exact]  # the number that a constant of a term stands for
STEPS = {"lt", "le", "eq", "ne", "max", "min", "sign", "floor", "ceil", "trunc", "round", "round_away", "to_int"}
OUTPUT_ELEMENTS = 6  # of an output, of as many forms
READS = 24  # elements of inputs that one element may hang on
POINTS = 160  # at which an element is evaluated
SIZE = 400  # operations of an element
SMALL = 100  # an integer
DIGITS_MEANT, DIGITS_GIVEN = 6, 9  # that are printed of a number
APART = Fraction(1, 10_000)  # relative; values differ by more than rounding, where constants have all their digits

# ---- values ----------------------------------------------------------------------------------------------------------

RATIONAL = Domain(
    "rational value", missing="opaque", says="its exact value on rational numbers, None where there is none"
)


def _finite(f: Function) -> Function:
    """The operation on numbers alone: no infinity."""
    return lambda *xs: None if any(isinstance(x, float) for x in xs) else f(*xs)


def _away(x: Fraction) -> Fraction:
    return Fraction(math.floor(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1))


def _whole(f: Callable[..., int]) -> Function:
    return _finite(lambda *xs: Fraction(f(*xs)))


def _power(x: Fraction, y: Fraction) -> Fraction | None:
    return x ** int(y) if y == int(y) and abs(y) <= 8 and (x or y > 0) else None


RATIONAL.fill(
    {
        "add": _finite(lambda *xs: sum(xs, Fraction(0))),
        "mul": _finite(lambda *xs: math.prod(xs, start=Fraction(1))),
        "recip": _finite(lambda x: 1 / x if x else None),
        "pow": _finite(_power),
        "abs": abs,
        "sign": lambda x: Fraction((x > 0) - (x < 0)),
        "floor": _whole(math.floor),
        "ceil": _whole(math.ceil),
        "trunc": _whole(math.trunc),
        "to_int": _whole(math.trunc),
        "round": _whole(round),
        "round_away": _finite(_away),
        "max": max,
        "min": min,
        "eq": operator.eq,
        "ne": operator.ne,
        "lt": operator.lt,
        "le": operator.le,
        "not": operator.not_,
        "isnan": lambda x: False,
        "isinf": lambda x: isinstance(x, float),
        "isfinite": lambda x: not isinstance(x, float),
    }
)
LAZY = {"where", "and", "or"}


def value(t: Term, numbers: Mapping[Term, Exact], constant: Constant | None = None) -> Exact:
    """The exact value of a term for these values of the elements that it reads; None where an operation has no rational
    value, or is not defined. `constant`: the number that a constant stands for, if not the one that was meant."""
    memo: dict[int, Exact] = {}
    for s in t.walk():
        memo[s.id] = _value(s, [memo[a.id] for a in s.args], numbers, constant or meant)
    return memo[t.id]


def _value(s: Term, xs: Sequence[Exact], numbers: Mapping[Term, Exact], constant: Constant) -> Exact:
    if s.op == "const":
        return constant(s.attr)
    if s.op == "read":
        return numbers.get(s)
    if s.op in LAZY:
        return _lazy(s.op, xs)
    if s.op not in RATIONAL or any(x is None for x in xs):
        return None
    found: Exact = RATIONAL[s.op](*xs)
    return found


def _lazy(op: str, xs: Sequence[Exact]) -> Exact:
    """Where one argument decides, the others need no value."""
    if op == "where":
        return None if xs[0] is None else xs[1] if xs[0] else xs[2]
    ends = op == "or"
    return ends if any(x is ends for x in xs) else None if any(x is None for x in xs) else not ends


def meant(c: float | bool) -> Exact:
    """A constant before it was rounded: 1 / 10 for 0.1 of f32."""
    return rational(c) if isinstance(c, float) and math.isfinite(c) else exactly(c)


def exactly(c: float | bool) -> Exact:
    """A constant with all its digits."""
    if isinstance(c, bool):
        return c
    return Fraction(c) if math.isfinite(c) else None if math.isnan(c) else c


# ---- both sides ------------------------------------------------------------------------------------------------------


def contradiction(case: Case, goal: Targets, output: str, seed: int = 0) -> str:
    """The element that differs in exact arithmetic, against a test that this output is its formula; "" where none is
    seen."""
    found = _difference(case, goal, output, choose(case, 1, seed)[0], seed)
    return "" if found is None else found.text


def counterexample(case: Case, goal: Targets, output: str, seed: int = 0, apart: bool = False) -> Counterexample | None:
    """The same element, where kernel and target differ in a run on these numbers too. `apart`: constants with all
    their digits are tried as well, since something computes in f64."""
    dims = choose(case, 1, seed)[0]
    found = _difference(case, goal, output, dims, seed, apart)
    at = len(SEARCHED) * (seed + 1)
    args = kept_arguments(case, dims, at, goal.owed) if found is not None else None
    if found is None or args is None:
        return None
    if not all(is_held(v, case.tensors[str(t.attr)].dtype) for t, v in found.numbers.items()):
        return None
    tensors = case.named(args)
    for t, v in found.numbers.items():
        tensors[str(t.attr)][tuple(int(i.attr) for i in t.args)] = float(v)
    question = Question(given(case, args), goal, only=(output, found.index))
    result = attempt(question, dims, at, 0)
    if not isinstance(result, Failure):
        return None
    said = result.why or (found.text if goal.fn is not None else "")
    return found_at(question, dims, at, 0, replace(result, why=said))


def is_held(v: Fraction, dtype: str) -> bool:
    """Whether an element of this dtype may be the number."""
    try:
        x = float(torch.tensor(float(v), dtype=torch_dtype(dtype)))
    except (RuntimeError, OverflowError):  # 300 as an integer of 8 bits
        return False
    return math.isfinite(x) and Fraction(x) == v


@dataclass(frozen=True, slots=True)
class _Difference:
    """An element of an output that has two values for these numbers of the elements that it reads."""

    index: tuple[int, ...]
    numbers: Mapping[Term, Fraction]
    text: str


def _difference(
    case: Case, goal: Targets, output: str, dims: Dims, seed: int, apart: bool = False
) -> _Difference | None:
    try:
        with limited("exact values", BUDGETS.search.likely_steps):
            return next(_differences(case, goal, goal.formulas[output], dims, seed, apart), None)
    except (TriliftError, RecursionError):
        return None


def _differences(
    case: Case, goal: Targets, formula: Formula, dims: Dims, seed: int, apart: bool
) -> Iterator[_Difference]:
    trace = launched(case, dims, seed)
    if trace is None or not all(holds(c, dims) for c in goal.conditions):
        return
    found = next((s for s in spec(trace) if s.name == formula.name), None)
    if found is None:
        return
    elements = {n: Ids(input_elements(n, shape, formula.term)) for n, shape in found.inputs.items()}
    theirs = as_ids(evaluate(formula.term, formula.axes, elements, dims, SYMBOLIC))
    if theirs.shape != found.ids.shape:
        return
    draw = np.random.default_rng(seed)
    elements_of = list(islice(_pairs(found.ids, theirs), OUTPUT_ELEMENTS))
    with_digits = [(*e, exactly) for e in elements_of if apart and _are_told_apart(e[1], e[2])]
    for index, ours, other, constant in [*((*e, meant) for e in elements_of), *with_digits]:
        for numbers in _points(case, dims, ours, other, constant, draw):
            spend("symbolic element", 2)
            a, b = value(ours, numbers, constant), value(other, numbers, constant)
            if a is not None and b is not None and _differ(a, b, constant):
                digits = DIGITS_MEANT if constant is meant else DIGITS_GIVEN
                at = ", ".join(f"{t.attr}{[i.attr for i in t.args]} = {_text(v, digits)}" for t, v in numbers.items())
                text = f"{formula.name}{list(index)} is {_text(a)} and not {_text(b)} at {at}, in exact arithmetic"
                yield _Difference(index, numbers, text)


def _are_told_apart(a: Term, b: Term) -> bool:
    """Whether a constant of one element is one of the other that was rounded."""
    of = [{s.attr for s in t.walk() if s.op == "const" and type(s.attr) is float} for t in (a, b)]
    return any(x != y and meant(x) == meant(y) is not None for x, y in product(of[0] - of[1], of[1] - of[0]))


def _differ(a: Exact, b: Exact, constant: Constant) -> bool:
    """Whether two values differ; by more than rounding, where constants were rounded."""
    if constant is meant or not isinstance(a, Fraction) or not isinstance(b, Fraction):
        return a != b
    size: Fraction = max(Fraction(1), abs(a), abs(b))
    return abs(a - b) > APART * size


def _pairs(ours: np.ndarray, theirs: np.ndarray) -> Iterator[tuple[tuple[int, ...], Term, Term]]:
    """Elements that have steps, are other terms on both sides, and are short."""
    for index in np.ndindex(*ours.shape):
        a, b = T.TERMS[int(ours[index])], T.TERMS[int(theirs[index])]
        walked = {s.id: s for t in (a, b) for s in islice(t.walk(), SIZE + 1)}.values()
        if a is not b and len(walked) <= SIZE and any(s.op in STEPS for s in walked):
            yield index, a, b


def _points(
    case: Case, dims: Dims, a: Term, b: Term, constant: Constant, draw: np.random.Generator
) -> Iterator[Mapping[Term, Fraction]]:
    """Numbers for what the two elements read: those that they have in them, their negatives, 0, 1, 2 and -1; all where
    they are few, else some at random."""
    walked = {s.id: s for t in (a, b) for s in t.walk()}.values()
    reads = sorted((s for s in walked if s.op == "read"), key=repr)
    if not 0 < len(reads) <= READS or any(i.op != "const" for s in reads for i in s.args):
        return
    constants = [c for s in walked if s.op == "const" and isinstance(c := constant(s.attr), Fraction)]
    pool = sorted({n for c in (*constants, Fraction(0), Fraction(1), Fraction(2)) for n in (c, -c)})
    each = [[n for n in pool if _may_hold(case.tensors[s.attr], n, dims)] for s in reads]
    if not all(each):
        return
    if math.prod(map(len, each)) <= POINTS:
        yield from (dict(zip(reads, chosen, strict=True)) for chosen in product(*each))
        return
    for _ in range(POINTS):
        yield {s: ns[int(draw.integers(len(ns)))] for s, ns in zip(reads, each, strict=True)}


def _may_hold(s: Spec, n: Fraction, dims: Dims) -> bool:
    """Whether a tensor may hold a number: of integers a small one, with which nothing wraps."""
    return bool(allowed(s, [_number(n)], dims)) and (s.is_float or abs(n) <= SMALL)


def _number(n: Fraction) -> int | float:
    return int(n) if n.denominator == 1 else float(n)


def _text(x: Fraction | float | bool, digits: int = DIGITS_MEANT) -> str:
    return str(x) if isinstance(x, bool) else f"{float(x):.{digits}g}"

"""A reading of a PyTorch function that was compared with the function itself.

Sizes are at least 2 while a function is traced, and a branch on a size being 1 is not seen. The function is therefore
run in float64 with every few dims at 1; where its formula does not hold there, that is a condition of the reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, TriliftError, Unsupported
from trilift.lift.pytorch.machine_integers import Fits
from trilift.lift.pytorch.read import Reading
from trilift.lift.replay.dtype_sight import as_seen, tolerance
from trilift.lift.replay.reference import ACCURATE, Function, deviation, steady, values
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import FLOAT64, Float64
from trilift.lift.terms.fit import value
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term

from ..integers.solver import Solver
from .input_table import zeros
from .trials import Dims, fits

Arguments: TypeAlias = dict[str, Any]  # of the function: tensors, numbers, lists of them
WIDE_BITS = 31  # of integers of 64 bits that are drawn: numpy has no more, and products of two fit
MOST_EVALUATED_ELEMENTS = 1 << 27  # of a value within a formula: a gigabyte
ONES = 3  # dims at 1 together at most, except all


def checked(case: Case, fn: Function, seed: int = 0) -> Reading:
    """The reading of `fn`, with a condition for every set of dims that must not all be 1. Raises Unsupported where the
    reading fails, or is not what the function computes at a shape that meets its conditions."""
    from trilift.lift.cases.shapes import choose
    from trilift.lift.pytorch.read import read_case

    shapes = choose(case, 2, seed)
    reading = read_case(case, fn)
    if reading.conditions and Solver().contradictory((case.where, *reading.conditions)):  # traced at other sizes
        reading = read_case(case, fn, {n: v for n, v in shapes[0].items() if not isinstance(v, bool)})
    for dims in shapes:
        if (wrong := difference(case, fn, reading, dims, seed)) is not None:
            raise Unsupported(
                f"trilift's formula for the reference of {case.name} differs from what the reference computes",
                case.place,
                wrong,
            )
    different: list[frozenset[str]] = []
    for names in _subsets(case.names):
        dims = {**shapes[0], **dict.fromkeys(names, 1)}
        if any(d <= names for d in different) or not fits(case, dims):
            continue
        if difference(case, fn, reading, dims, seed) is not None:
            different.append(names)
    apart = (T.make("or", T.const(False), *(T.make("lt", 1, T.size(n)) for n in sorted(names))) for names in different)
    known = frozenset((case.where, *(T.make("le", 1, T.size(n)) for n in case.names)))
    conditions = (c for c in reading.conditions if not Solver().implies(known, c))
    return replace(reading, conditions=(*conditions, *apart))


def _subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    for k in dict.fromkeys((*range(1, min(ONES, len(names)) + 1), len(names))):
        yield from map(frozenset, combinations(names, k))


def difference(case: Case, fn: Function, reading: Reading, dims: Dims, seed: int) -> str | None:
    """Where the formulas are not what the function returns at these dims; None where they are, or need not be."""
    from trilift.lift.replay.check import arguments

    if not all(holds(c, dims) for c in reading.conditions):
        return None
    args = without_zeros(case, reading.owed, arguments(case, dims, seed))
    try:
        wrong = _deviation(case, fn, reading, dims, seed, args)
    except CaseError as error:
        return f"{error.what}: {error.why}" if error.why else error.what
    for given in (_extreme(case, reading, dims, seed), _with_zeros(case, reading, dims, seed)):
        if wrong is not None or given is None:
            continue
        try:
            wrong = _deviation(case, fn, reading, dims, seed, given)
        except TriliftError:
            continue  # numbers that the function refuses, such as indices that are too large
    return wrong


def _with_zeros(case: Case, reading: Reading, dims: Dims, seed: int) -> Arguments | None:
    """Arguments with zeros of either sign among their reals, where these have no limits; None where none may be 0, and
    at the shapes where some dims are 1, which are many."""
    from trilift.lift.replay.check import arguments

    given = without_zeros(case, reading.owed, arguments(case, dims, seed))
    free = [n for n, s in case.tensors.items() if s.is_float and s.low is None and not s.positive]
    if not free or any(dims[n] == 1 for n in case.names):
        return None
    for name, x in case.named(given).items():
        if name in free:
            x.copy_(zeros(x))
    return given


def _extreme(case: Case, reading: Reading, dims: Dims, seed: int) -> Arguments | None:
    """Arguments with integers at the edges of their types; None where there are no such integers, or those of the
    function do not fit their dtypes there."""
    from trilift.lift.cases.declaration import extreme
    from trilift.lift.replay.check import arguments, arrays

    given, rng = arguments(case, dims, seed), np.random.default_rng([seed, 3])
    free = [n for n, s in case.tensors.items() if s.dtype[0] in "iu" and s.low is None and s.high is None]
    for name, x in case.named(given).items():
        if name in free:
            extreme(x, case.tensors[name], rng, WIDE_BITS)
    given = without_zeros(case, reading.owed, given)
    return given if free and met(reading.owed, arrays(case, given), dims) else None


def without_zeros(case: Case, owed: Iterable[Fits], args: Arguments) -> Arguments:
    """The arguments, with 1 for 0 in the integers that the function divides by."""
    divisors = {str(s.attr) for o in owed if o.is_divisor for s in o.term.walk() if s.op == "read"}
    for name, x in case.named(args).items():
        if name in divisors and not x.is_floating_point():
            x.masked_fill_(x == 0, 1)
    return args


def met(owed: Iterable[Fits], inputs: Mapping[str, np.ndarray], dims: Dims) -> bool:
    """Whether these integers fit their dtypes on the inputs, as far as they can be evaluated."""
    from trilift.lift.language.evaluate import evaluate

    try:
        with np.errstate(all="ignore"):
            found = [
                (o, np.asarray(evaluate(o.term, tuple(o.term.free), inputs, dims))) for o in owed if not o.is_rounded
            ]
    except TriliftError:
        return False
    return all(bool(((x != 0) if o.is_divisor else (o.low <= x) & (x < o.high)).all()) for o, x in found)


def _deviation(case: Case, fn: Function, reading: Reading, dims: Dims, seed: int, args: Arguments) -> str | None:
    """Where the formulas are not what the function returns on these arguments."""
    from trilift.lift.replay.check import arrays

    args, allowed = as_seen(case, fn, args), tolerance(case, fn, ACCURATE)
    expected, inputs = values(case, fn, args), arrays(case, args)
    for f, name in zip(reading.formulas, named(reading.formulas, expected), strict=True):
        if name not in expected:
            continue  # an input that these arguments do not change
        got = evaluated(f, inputs, dims)
        if (index := worst(got, expected[name], allowed)) is None:
            continue
        if index and steady(case, fn, args, expected, seed)[name][index]:
            element = f"{name}{list(index)} is {expected[name][index]:.9g}, its formula {got[index]:.9g}"
            return f"{element} at {dict(dims)}"
        if not index:
            return f"{name} has shape {list(expected[name].shape)}, its formula {list(got.shape)} at {dict(dims)}"
    return None


def named(formulas: Sequence[Formula], expected: Mapping[str, object]) -> list[str]:
    """The name in `expected` of each formula: written inputs by name, outputs by position."""
    written = {f.in_place for f in formulas if f.in_place}
    outputs = [n for n in expected if n not in written]
    if len(outputs) < sum(not f.in_place for f in formulas):
        raise CaseError("the function returns a number where a tensor is needed")
    rest = iter(outputs)
    return [f.in_place or next(rest) for f in formulas]


def holds(condition: Term, dims: Dims) -> bool:
    """Whether a condition on dims is not false there."""
    from trilift.lift.terms.fit import value

    return value(condition, dims) is not False


def evaluated(f: Formula, inputs: Mapping[str, np.ndarray], dims: Dims, arithmetic: Float64 = FLOAT64) -> np.ndarray:
    """The array of a formula, booleans and integers as numbers. Raises Unsupported where a value within it is too large
    to be kept."""
    from trilift.lift.language.evaluate import evaluate

    if (n := _largest_value(f, dims)) > MOST_EVALUATED_ELEMENTS:
        raise Unsupported(f"a value within the formula of {f.name} has {n} elements at {dict(dims)}")
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(f.term, f.axes, inputs, dims, arithmetic)).astype(np.float64)


def _largest_value(f: Formula, dims: Dims) -> int:
    """The elements of the largest value within a formula, at least."""
    sizes = {a: value(a.size, dims) for s in f.term.walk() for a in s.free}
    known = {a: int(n) for a, n in sizes.items() if n is not None}
    return max((math.prod(known.get(a, 1) for a in s.free) for s in f.term.walk()), default=1)


def worst(got: np.ndarray, expected: np.ndarray, allowed: float) -> tuple[int, ...] | None:
    """The element that deviates most, relative to the largest; None if none by more than allowed, () for other
    shapes. Elements where `expected` is NaN do not differ; infinities must be equal."""
    if got.shape != expected.shape:
        return ()
    error = deviation(got, expected)
    if not error.size or error.max() <= allowed:
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))

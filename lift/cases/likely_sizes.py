"""Sizes and scalars at which a wrong kernel is often wrong: beside the numbers that its code and its case have in them.

A host function that could not be followed, or a claim without a proof, is run there before it is called TESTED:
`n < 5000`, `x[: 3 * 1000]`, `1 << 14`, `s or 1.0`, `s == int(s)`. It is run at sizes that grow, too: a grid of sqrt(n)
programs is too small from some size on that no code names. A lifted formula is tried beside these numbers as well.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise, zip_longest
from types import CodeType, FunctionType

from ..terms.fit import Number
from ..terms.term import Term
from .declaration import Case, Spec, held

Dims = dict[str, Number]
SMALLEST, LARGEST = 8, 1_000_000  # sizes: lower ones are met by other runs
SHAPES = 90
SCALARS = 40  # beside numbers of the code
LARGEST_SCALAR = 2.0**63
BESIDE = 2.0**-10  # relative
FUNCTIONS = 40  # that are looked at
MULTIPLES = (1, 2, 3, 4)  # of a number, in a loop of so many steps
GROWING = tuple(4**k + 1 for k in range(5, 11))  # sizes, up to a million
FACTOR = 100  # largest number of the code that is multiplied with others: so many tiles
REALS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 2.5, -2.5, 1e4, -1e4)  # with halves, which are rounded in many ways
INTEGERS = (0, 1, -1, 2, -2, 127, 128, -129, 255, 256, 32767, 32768, -32769, 65535, 65536)  # edges of narrow types too


def likely(case: Case, like: Mapping[str, Number], goal: Iterable[Term] = ()) -> list[Dims]:
    """Up to SHAPES assignments that the case allows, scalars first, then sizes from the smallest on and, in turn with
    them, scalars beside the numbers of the code; what is not looked at is as in `like`. `goal`: terms whose numbers
    are looked at too."""
    code = sorted({float(n) for n in written(case, goal) if abs(n) < LARGEST_SCALAR})
    rows = (_at_sizes(case, like, goal), islice(_beside_code(case, like, code), SCALARS))
    found = dict.fromkeys(tuple(sorted(d.items())) for d in (*_at_scalars(case, like), *_in_turn(*rows)))
    return list(islice((d for d in map(dict, found) if d != dict(like) and _allowed(case, d)), SHAPES))


def _in_turn(*rows: Iterable[Dims]) -> Iterator[Dims]:
    """One of each row, then the next of each."""
    for each in zip_longest(*rows):
        yield from (d for d in each if d is not None)


def beside(case: Case, like: Mapping[str, Number]) -> Iterator[Dims]:
    """Assignments that the case allows in which one size is a number of the code, beside it, or twice it: powers of
    two come last, as these are block sizes."""
    code = sorted(numbers(case), key=lambda n: (n & (n - 1) == 0, n))
    near = ({**like, n: v} for c in code for v in (c, c + 1, c - 1, 2 * c) for n in _whole(case))
    return (d for d in near if _allowed(case, d))


def growing(case: Case, like: Mapping[str, Number]) -> list[Dims]:
    """Assignments that the case allows in which one size grows and the others are as in `like`: all sizes in turn at
    each step."""
    return [d for v in GROWING for n in case.names if _allowed(case, d := {**like, n: v})]


def numbers(case: Case, goal: Iterable[Term] = ()) -> list[int]:
    """The integers of `written` that may be sizes."""
    whole = (int(n) for n in written(case, goal) if n == int(n))
    return sorted({n for n in whole if 2 <= n <= LARGEST})


def written(case: Case, goal: Iterable[Term] = ()) -> Iterator[float]:
    """The numbers that the code of the host function and of the reference, of what they name in the same file, `where`
    and the terms of `goal` have in them."""
    functions = [f for f in (case.fn, case.reference.fn) if f is not None]
    yield from (n for fn in functions for f in _functions(fn) for n in _constants(f.__code__))
    yield from (n for fn in functions for n in _globals(fn))
    terms = (*goal, *((case.where,) if case.where is not None else ()))
    yield from (t.attr for e in terms for t in e.walk() if t.is_const and math.isfinite(t.attr))


def _at_scalars(case: Case, like: Mapping[str, Number]) -> Iterator[Dims]:
    for name, s in case.scalars.items():
        if s.dtype != "bool":
            ends = (e.attr - k for e, k in ((s.low, 0), (s.high, 1)) if e is not None and e.is_const)
            drawn = [held(v, s.dtype) for v in REALS] if s.is_float else (*ends, *INTEGERS)
            yield from ({**like, name: v} for v in drawn if math.isfinite(v))


def _beside_code(case: Case, like: Mapping[str, Number], code: Sequence[float]) -> Iterator[Dims]:
    """Scalars beside the numbers of the code and between them: `s > 5` and `s >= 6` differ at 5.5."""
    whole = sorted({int(c) for c in code if c.is_integer()})
    shifts = [1 << c for c in whole if 0 < c < 63]
    between = ((a + b) / 2 for a, b in pairwise(code))
    reals = list(dict.fromkeys((*between, *code, *(c * (1 + BESIDE) for c in code), *(c * (1 - BESIDE) for c in code))))
    for name, s in case.scalars.items():
        if s.is_float:
            yield from ({**like, name: v} for v in (held(r, s.dtype) for r in reals) if math.isfinite(v))
        elif s.dtype != "bool":
            near = dict.fromkeys(v for c in (*whole, *shifts) if c > SMALLEST for v in (c, c + 1, c - 1))
            yield from ({**like, name: v} for v in near)


def _at_sizes(case: Case, like: Mapping[str, Number], goal: Iterable[Term]) -> Iterator[Dims]:
    code = numbers(case, goal)
    factors = {*MULTIPLES, *(n for n in code if n <= FACTOR)}
    found = {k * c for c in code for k in factors if SMALLEST <= k * c <= LARGEST}
    near = sorted({v for m in found for v in (m - 1, m, m + 1)})
    yield from ({**like, n: v} for v in near for n in _whole(case))


def _whole(case: Case) -> list[str]:
    """The names of dims and of integer scalars."""
    return [*case.names, *(n for n, s in case.scalars.items() if not s.is_float and s.dtype != "bool")]


def _allowed(case: Case, dims: Dims) -> bool:
    return case.holds(dims) and all(_within(s, dims[n]) for n, s in case.scalars.items() if s.is_float)


def _within(s: Spec, v: Number) -> bool:
    low, high = (None if e is None else float(e.attr) if e.is_const else v for e in (s.low, s.high))
    return (low is None or low <= v) and (high is None or v < high) and (v > 0 or not s.positive)


# ---- the code --------------------------------------------------------------------------------------------------------


def _functions(fn: object) -> list[FunctionType]:
    """The function and those of its file that it names, through decorators of Triton and of functools."""
    first = _plain(fn)
    found: dict[FunctionType, None] = {} if first is None else {first: None}
    for f in found.copy():
        todo = [f]
        while todo and len(found) < FUNCTIONS:
            named = (_plain(v) for v in _values(todo.pop()).values())
            new = [g for g in named if g and g not in found and g.__code__.co_filename == f.__code__.co_filename]
            found |= dict.fromkeys(new)
            todo += new
    return list(found)


def _plain(x: object) -> FunctionType | None:
    """The Python function in a kernel, an autotuner, a cache."""
    for _ in range(5):
        if isinstance(x, FunctionType):
            inner = inspect.unwrap(x)
            return inner if isinstance(inner, FunctionType) else x
        x = getattr(x, "fn", None) or getattr(x, "__wrapped__", None)
    return None


def _values(f: FunctionType) -> dict[str, object]:
    """The values of the globals that a function names, and of its closure."""
    names = [n for c in _codes(f.__code__) for n in c.co_names]
    cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=False)
    return {**{n: f.__globals__[n] for n in names if n in f.__globals__}, **{n: _content(c) for n, c in cells}}


def _content(cell: object) -> object:
    try:
        return cell.cell_contents  # type: ignore[attr-defined]
    except ValueError:  # it is empty
        return None


def _globals(fn: object) -> Iterator[float]:
    values = (v for f in _functions(fn) for v in (*_values(f).values(), *(f.__defaults__ or ())))
    return (v for v in values if isinstance(v, int | float) and math.isfinite(v))


def _constants(code: CodeType) -> Iterator[float]:
    """The numbers in a function's code, those in tuples and in functions within it too."""
    todo: list[object] = [c for x in _codes(code) for c in x.co_consts]
    while todo:
        x = todo.pop()
        if isinstance(x, tuple | frozenset):
            todo += x
        elif isinstance(x, int | float) and math.isfinite(x):
            yield x


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, CodeType):
            yield from _codes(c)

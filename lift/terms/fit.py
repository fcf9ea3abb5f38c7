"""Numbers as terms: which expression over dims and scalars has these values at these shapes?

Bottom-up enumeration by size with value pruning: two expressions with the same values in every environment are one,
and the first, hence the simplest, is kept. If the table does not hold a value, two of its entries are combined: value =
known * known, known + known.

    i ::= dim | c | i * i | i + i | i - i | i // i | cdiv(i, i) | min(i, i) | max(i, i) | next_power_of_2(i)
    r ::= scalar | i | r ** -0.5 | r ** 0.5 | 1 / r | 1 - r | 1 / (1 - r) | log(r) | r * r | c * r
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any, cast

import numpy as np

from ..runtime.session import memo_up_to, table
from . import construct as T
from .ops import power_of_2
from .term import Term

Number = int | float
Environment = Mapping[str, Number]
Values = tuple[Number, ...]
CONSTANTS = (2, 1, *(2**k for k in range(2, 18)), 3)
FIT_RELATIVE_ERROR = 2e-7  # relative: a Python double that went through an f32 argument
NAMED = (
    math.log2(math.e),
    math.log(2),
    1 / math.sqrt(2),
    math.sqrt(2 / math.pi),
)  # constants that floats are snapped to


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


# name, value, term, commutative
BINARY: list[tuple[str, Callable[[int, int], int], Callable[[Term, Term], Term], bool]] = [
    ("mul", lambda a, b: a * b, T.mul, True),
    ("floordiv", lambda a, b: a // b, lambda a, b: T.make("floordiv", a, b), False),
    ("cdiv", _cdiv, lambda a, b: T.make("floordiv", T.sub(T.add(a, b), 1), b), False),
    ("sub", lambda a, b: a - b, T.sub, False),
    ("add", lambda a, b: a + b, T.add, True),
    ("min", min, lambda a, b: T.make("min", a, b), True),
    ("max", max, lambda a, b: T.make("max", a, b), True),
]
MAKE = {op: make for op, _, make, _ in BINARY}
# the same on arrays of positive integers
ARRAYS: list[tuple[str, Callable[..., np.ndarray]]] = [
    ("mul", np.multiply),
    ("floordiv", np.floor_divide),
    ("cdiv", lambda a, b: -(-a // b)),
    ("sub", np.subtract),
    ("add", np.add),
    ("min", np.minimum),
    ("max", np.maximum),
]
# name, value, term: functions of a positive real
UNARY: list[tuple[str, Callable[[Any], Any], Callable[[Term], Term]]] = [
    ("itself", lambda x: x, lambda t: t),
    ("recip", lambda x: 1 / x, T.recip),
    ("rsqrt", lambda x: x**-0.5, lambda t: T.recip(T.make("sqrt", t))),
    ("sqrt", lambda x: x**0.5, lambda t: T.make("sqrt", t)),
    ("complement", lambda x: 1 - x, lambda t: T.sub(1, t)),
    ("odds", lambda x: 1 / (1 - x), lambda t: T.recip(T.sub(1, t))),
    ("square", lambda x: x * x, lambda t: T.mul(t, t)),
    ("log", np.log, lambda t: T.make("log", t)),
]


def fit(values: Sequence[Number], environments: Sequence[Environment], known: Sequence[Term] = ()) -> Term | None:
    """The simplest term over dims and scalars that has `values[k]` under `environments[k]`, for every k; None if
    there is none. Integers and booleans fit exactly, other numbers within 2e-7. A value that never changes is a
    constant. `known`: terms over the same names that count as simple (a launch's block sizes). The more the
    environments differ, the more the answer means."""
    first = values[0]
    if all(v == first for v in values):
        return T.const(first)
    names = tuple(sorted(environments[0]))
    rows = tuple(tuple(e[n] for n in names) for e in environments)
    integers = tuple(n for n in names if all(isinstance(e[n], int) for e in environments))  # 1 and 1.0 are equal keys
    table = _table(names, rows, integers, tuple(known))
    if all(isinstance(v, bool) for v in values):
        return table.boolean(tuple(map(bool, values)))
    if all(isinstance(v, int) or (math.isfinite(v) and v == int(v)) for v in values):
        found = table.integer(tuple(map(int, values)))
        if found is not None or all(isinstance(v, int) for v in values):
            return found
    if any(isinstance(v, int) and abs(v) > sys.float_info.max for v in values):
        return None
    return table.real(tuple(map(float, values)))


@memo_up_to(256)
def _table(
    names: tuple[str, ...], rows: tuple[Values, ...], _integers: tuple[str, ...], known: tuple[Term, ...]
) -> _Table:
    return _Table({n: tuple(r[k] for r in rows) for k, n in enumerate(names)}, known)


def _is_integer(column: Values) -> bool:
    return all(isinstance(v, int) for v in column)


class _Table:
    """Integer expressions by their values, simplest first: `how[values]` is a term, or (operation, values, values)."""

    def __init__(self, columns: dict[str, Values], known: tuple[Term, ...]) -> None:
        self.count = len(next(iter(columns.values()), ()))
        self.columns = columns
        self.how: dict[Values, Any] = {}
        for name, column in columns.items():
            if _is_integer(column):
                self.how.setdefault(column, T.size(name))
        for t in (t for t in known if not t.is_const):
            column = tuple(value(t, {n: c[k] for n, c in columns.items()}) for k in range(self.count))
            if all(v is not None for v in column) and _is_integer(column):
                self.how.setdefault(column, t)
        self.leaves = list(self.how)
        numbers = [t.attr for t in known if t.is_const and t.type == T.INT and t.attr > 0]
        self.constants = [(c,) * self.count for c in dict.fromkeys((*numbers, *CONSTANTS))]
        for c in self.constants:
            self.how.setdefault(c, T.const(c[0]))
        self.growth = self._grow()

    # ---- integers

    def integer(self, values: Values, depth: int = 1) -> Term | None:
        """The term of an integer column: from the table, as c * x + d, as one more operation on the table, as a
        product of parts."""
        while values not in self.how:
            if next(self.growth, None) is None:
                break
        else:
            return self.term(values)
        return self._affine(values) or self._operation(values) or self._middle(values) or self._product(values, depth)

    def term(self, values: Values) -> Term:
        how = self.how.get(values)
        if how is None:
            return T.const(values[0])
        if isinstance(how, Term):
            return how
        op, a, b = how
        return T.make(op, self.term(a)) if op == "next_power_of_2" else MAKE[op](self.term(a), self.term(b))

    def _grow(self) -> Iterator[int]:
        """Cost by cost: powers of two of leaves, leaf op leaf, leaf op constant, powers of two and leaves or
        constants."""
        yield self._powers(self.leaves)
        powers = [v for v in self.how if v not in self.constants and v not in self.leaves]
        yield self._combine(self.leaves, self.leaves)
        yield self._combine(self.leaves, self.constants)
        pairs = [v for v in self.how if v not in self.constants]
        yield self._volumes()
        yield self._combine(powers, [*self.leaves, *self.constants]) + self._powers(pairs)

    def _volumes(self) -> int:
        """Products of three and four leaves."""
        pairs = [tuple(map(operator.mul, a, b)) for a, b in combinations(self.leaves, 2)]
        return self._combine(pairs, self.leaves, BINARY[:1]) + self._combine(pairs, pairs, BINARY[:1])

    def _powers(self, sources: Sequence[Values]) -> int:
        for a in sources:
            self.how.setdefault(tuple(power_of_2(int(x)) for x in a), ("next_power_of_2", a, a))
        return len(self.how)

    def _combine(self, left: Sequence[Values], right: Sequence[Values], operations: Any = BINARY) -> int:
        """Every operation on every pair, in both orders; of positive numbers only, results only from 0 on."""
        for op, f, _, commutative in operations:
            for a, b in product(left, right):
                if op == "add" and a == b:
                    continue  # 2 * a
                for x, y in ((a, b),) if commutative else ((a, b), (b, a)):
                    if min(y) > 0 and min(x) > 0:
                        v = tuple(map(f, x, y))
                        if min(v) >= 0:
                            self.how.setdefault(v, (op, x, y))
        return len(self.how)

    @cached_property
    def rows(self) -> tuple[list[Values], np.ndarray]:
        """The positive, varying part of the full table, as tuples and as an array whose products fit in 64 bits."""
        rows = [v for v in self.how if min(v) > 0 and max(v) < 2**31 and len(set(v)) > 1]
        return rows, np.array(rows, np.int64).reshape(-1, self.count)

    def _operation(self, values: Values) -> Term | None:
        """table op leaf, table op constant, in both orders."""
        rows, array = self.rows
        if max(map(abs, values)) >= 2**63:
            return None
        target = np.array(values, np.int64)
        best: tuple[int, str, Values, Values] | None = None
        for (op, f), b in product(ARRAYS, [b for b in (*self.leaves, *self.constants) if max(map(abs, b)) < 2**63]):
            for swapped in (False, True):
                column = np.array(b, np.int64)
                found = f(column, array) if swapped else f(array, column)
                hit = _first(found == target)
                if hit is not None and min(b) > 0 and (best is None or hit < best[0]):
                    best = (hit, op, b, rows[hit]) if swapped else (hit, op, rows[hit], b)
        return None if best is None else MAKE[best[1]](self.term(best[2]), self.term(best[3]))

    def _middle(self, values: Values) -> Term | None:
        """x * y, x + y, x - y for x and y in the table, and c * x, x + c for any constant."""
        for k in self.rows[0]:
            if all(v % x == 0 for v, x in zip(values, k, strict=True)):
                q = tuple(v // x for v, x in zip(values, k, strict=True))
                if q in self.how or len(set(q)) == 1:
                    return T.mul(self.term(q), self.term(k))
        for k in self.rows[0]:
            d = tuple(v - x for v, x in zip(values, k, strict=True))
            if d in self.how or len(set(d)) == 1:
                return T.add(self.term(k), self.term(d))
            if (m := tuple(-x for x in d)) in self.how:
                return T.sub(self.term(k), self.term(m))
        return None

    def _product(self, values: Values, depth: int) -> Term | None:
        """leaf * expression, leaf * leaf * expression."""
        if depth == 0:
            return None
        pairs = [tuple(map(operator.mul, a, b)) for a, b in combinations(self.leaves, 2)]
        for k in [*reversed(pairs), *self.leaves]:
            if min(k) > 0 and max(k) > 1 and all(v % x == 0 for v, x in zip(values, k, strict=True)):
                rest = self.integer(tuple(v // x for v, x in zip(values, k, strict=True)), depth - 1)
                if rest is not None:
                    return T.mul(self.term(k), rest)
        return None

    def _affine(self, values: Values) -> Term | None:
        """c * leaf + d; needs three environments to mean anything."""
        for k in self.leaves if self.count >= 3 else ():
            dx, dv = k[1] - k[0], values[1] - values[0]
            if dx and dv and dv % dx == 0:
                c = dv // dx
                d = values[0] - c * k[0]
                if all(v == c * x + d for v, x in zip(values, k, strict=True)):
                    return T.add(T.mul(c, self.term(k)), d)
        return None

    # ---- booleans

    def boolean(self, values: tuple[bool, ...]) -> Term | None:
        """x % y == 0, x < y, x <= y, x == y over dims, known terms and constants; two dims before a dim and a
        constant."""
        sides = [*self.leaves, *self.constants]
        tests: list[tuple[Callable[[int, int], bool], Callable[[Term, Term], Term]]] = [
            (lambda a, b: b > 0 and a % b == 0, lambda a, b: T.make("eq", T.make("mod", a, b), 0)),
            (lambda a, b: a == b, lambda a, b: T.make("eq", a, b)),
            (lambda a, b: a <= b, lambda a, b: T.make("le", a, b)),
            (lambda a, b: a < b, lambda a, b: T.make("lt", a, b)),
        ]
        pairs = [(a, b) for a in sides for b in sides if a != b and (a in self.leaves or b in self.leaves)]
        for test, make in tests:
            for a, b in pairs:
                holds = tuple(map(test, a, b))
                if holds == values:
                    return make(self.term(a), self.term(b))
                if tuple(not h for h in holds) == values:
                    return T.make("not", make(self.term(a), self.term(b)))
        return None

    # ---- reals

    def real(self, values: Values) -> Term | None:
        """One function of a scalar, dim or product; then a product of two such; then a constant multiple."""
        target = np.array(values, np.float64)
        matrix, where = self.reals
        hit = _first(np.abs(matrix - target) <= FIT_RELATIVE_ERROR * np.abs(target))
        if hit is not None:
            return self._real_term(where[hit])
        if not target.all():
            return None
        with np.errstate(all="ignore"):
            ratio = target / matrix
            steady = np.abs(ratio - ratio[:, :1]) <= FIT_RELATIVE_ERROR * np.abs(ratio[:, :1])
        moving = np.abs(matrix - matrix[:, :1]).max(axis=1) > 0 if len(matrix) else np.zeros(0, bool)
        hit = _first(steady & moving[:, None])
        if hit is not None:
            return T.mul(_snap(float(ratio[hit].mean())), self._real_term(where[hit]))
        return self._real_product(ratio, matrix, where)

    def _real_product(self, ratio: np.ndarray, matrix: np.ndarray, where: list[tuple[int, int]]) -> Term | None:
        """scalar function * other function: the ratio of the target to one row is another row."""
        for k in range(min(len(where), 8 * (len(self.columns) + 1))):
            hit = _first(np.abs(matrix - ratio[k]) <= FIT_RELATIVE_ERROR * np.abs(ratio[k]))
            if hit is not None and np.isfinite(ratio[k]).all():
                return T.mul(self._real_term(where[k]), self._real_term(where[hit]))
        return None

    @cached_property
    def reals(self) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Every row of UNARY on every base; bases are scalars, dims, then integer expressions of two dims."""
        for _ in range(3):
            next(self.growth, None)
        columns = np.array(list(self.bases.values()), np.float64).reshape(-1, self.count)
        simple = sum(not _is_integer(c) for c in self.columns.values()) + len(self.leaves)
        order = [(u, b) for u in range(len(UNARY)) for b in range(min(simple, len(columns)))]
        order += [(u, b) for u in range(4) for b in range(simple, len(columns))]
        with np.errstate(all="ignore"):
            images = [f(columns) for _, f, _ in UNARY]
        matrix = np.array([images[u][b] for u, b in order]).reshape(-1, self.count)
        return np.nan_to_num(matrix, nan=np.inf), order

    @cached_property
    def bases(self) -> dict[Term | Values, Values]:
        """Scalars by their terms, then varying integer expressions by their values."""
        scalars: dict[Term | Values, Values] = {T.scalar(n): c for n, c in self.columns.items() if not _is_integer(c)}
        return scalars | {v: v for v in [v for v in self.how if len(set(v)) > 1][:1500]}

    def _real_term(self, where: tuple[int, int]) -> Term:
        u, b = where
        base = list(self.bases)[b]
        return UNARY[u][2](base if isinstance(base, Term) else self.term(base))


def _first(matches: np.ndarray) -> int | None:
    """The first row that matches everywhere."""
    hits = np.flatnonzero(matches.all(axis=1)) if len(matches) else np.zeros(0, int)
    return int(hits[0]) if len(hits) else None


def _snap(c: float) -> Number:
    """The constant meant by a float that went through f32: a small integer or fraction, a named one, else itself."""
    for n in (*NAMED, *(-x for x in NAMED), *(k / d for d in (1, 2, 4, 8, 3) for k in range(-16, 17) if k)):
        if abs(c - n) <= FIT_RELATIVE_ERROR * abs(n):
            return int(n) if float(n).is_integer() else n
    return c


Found = Number | None
Step = tuple[Callable[..., Found] | None, tuple[int, ...], object]  # applied to earlier values, by position; or a name
_PROGRAMS: dict[int, tuple[Step, ...]] = table("fit.programs", {})


def value(t: Term, environment: Environment) -> Any:
    """The number of a closed term over dims and scalars under an environment (exact for integers); None if
    undefined."""
    if t.op == "const":
        return t.attr
    program = _PROGRAMS.get(t.id)
    if program is None:
        program = _PROGRAMS[t.id] = tuple(_steps(t))
    found: list[Found] = []
    for apply, at, attr in program:
        if apply is not None:
            args = [found[k] for k in at]
            found.append(None if None in args else apply(*args))
        else:
            found.append(environment.get(cast(str, attr)) if at is NAME else cast(Found, attr))
    return found[-1]


NAME: tuple[int, ...] = (-1,)  # in place of arguments: the step looks a name up


def _steps(t: Term) -> Iterator[Step]:
    """Each distinct subterm once, arguments first. Not defined, None: other leaves, and operations without a row."""
    from .ops import OPS

    position: dict[int, int] = {}
    for k, s in enumerate(t.walk()):
        position[s.id] = k
        if s.op == "const":
            yield None, (), s.attr
        elif s.op in ("size", "scalar"):
            yield None, NAME, s.attr
        elif s.op in OPS:
            yield OPS[s.op].on_numbers, tuple(position[a.id] for a in s.args), None
        else:
            yield None, (), None

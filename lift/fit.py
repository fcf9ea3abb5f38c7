"""Numbers as terms: which expression over dims and scalars has these values at these shapes?

Bottom-up enumeration by size with value pruning: two expressions with the same values in every environment are one, and the
first, hence the simplest, is kept. What the table does not hold is met in the middle: value = known * known, known + known.

    i ::= dim | c | i * i | i + i | i - i | i // i | cdiv(i, i) | min(i, i) | max(i, i) | next_power_of_2(i)
    r ::= scalar | i | r ** -0.5 | r ** 0.5 | 1 / r | 1 - r | 1 / (1 - r) | log(r) | r * r | c * r
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from . import term as T
from .term import Term

Number = int | float
Environment = Mapping[str, Number]
Values = tuple[Number, ...]
CONSTANTS = (2, 1, *(2**k for k in range(2, 18)), 3)
TOLERANCE = 2e-7  # relative: a Python double that went through an f32 argument
NAMED = (
    math.log2(math.e),
    math.log(2),
    1 / math.sqrt(2),
    math.sqrt(2 / math.pi),
)  # constants that floats are snapped to


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _power_of_2(a: int) -> int:
    return 1 << max(a - 1, 0).bit_length()


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
    """The simplest term over dims and scalars that has `values[k]` under `environments[k]`, for every k; None if there is none.
    Integers and booleans fit exactly, other numbers within 2e-7. A value that never changes is a constant. `known`: terms over the same
    names that count as simple (a launch's block sizes). The more the environments differ, the more the answer means."""
    first = values[0]
    if all(v == first for v in values):
        return T.const(first)
    names = tuple(sorted(environments[0]))
    table = _table(names, tuple(tuple(e[n] for n in names) for e in environments), tuple(known))
    if all(isinstance(v, bool) for v in values):
        return table.boolean(tuple(map(bool, values)))
    if all(math.isfinite(v) and v == int(v) for v in values):
        return table.integer(tuple(map(int, values))) or table.real(tuple(map(float, values)))
    return table.real(tuple(map(float, values)))


@lru_cache(maxsize=256)
def _table(names: tuple[str, ...], rows: tuple[Values, ...], known: tuple[Term, ...]) -> _Table:
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
        self.dims = list(self.how)
        environments = [{n: c[k] for n, c in columns.items()} for k in range(self.count)]
        for t in (t for t in known if not t.is_const):
            column = tuple(value(t, e) for e in environments)
            if all(v is not None for v in column) and _is_integer(column):
                self.how.setdefault(column, t)
        self.leaves = list(self.how)
        numbers = [t.attr for t in known if t.is_const and t.type == T.INT and t.attr > 0]
        self.constants = [(c,) * self.count for c in dict.fromkeys((*numbers, *CONSTANTS))]
        for c in self.constants:
            self.how.setdefault(c, T.const(c[0]))
        self.growth = self._grow()
        self.reals: tuple[np.ndarray, list[tuple[int, int]]] | None = None

    # ---- integers

    def integer(self, values: Values) -> Term | None:
        """The term of an integer column: by the table, by a product or affine step over its simple part, by its deeper part."""
        for level in range(6):
            if values in self.how:
                return self.term(values)
            if level == 3 and (t := self._middle(values)) is not None:
                return t
            next(self.growth, None)
        return self.term(values) if values in self.how else self._middle(values)

    def term(self, values: Values) -> Term:
        how = self.how[values]
        if isinstance(how, Term):
            return how
        op, a, b = how
        if op == "next_power_of_2":
            return T.make(op, self.term(a))
        return next(make for name, _, make, _ in BINARY if name == op)(self.term(a), self.term(b))

    def _grow(self) -> Iterator[int]:
        """Level by level: powers of two of leaves, leaf op leaf, leaf op constant, the same over what those gave."""
        yield self._powers(self.leaves)
        powers = [v for v in self.how if self._op(v)]
        yield self._combine(self.leaves, self.leaves)
        yield self._combine(self.leaves, self.constants)
        pairs = [v for v in self.how if v not in self.constants]
        yield self._combine(powers, [*self.leaves, *self.constants]) + self._powers(pairs)
        yield self._combine(
            [v for v in self.how if self._op(v) in ("next_power_of_2", "min", "max", "cdiv")], self.constants
        )
        yield self._combine([v for v in pairs if self._op(v) in ("mul", "cdiv", "add", "sub", "min")], self.leaves)

    def _op(self, values: Values) -> str:
        how = self.how[values]
        return how[0] if isinstance(how, tuple) else ""

    def _powers(self, sources: Sequence[Values]) -> int:
        for a in sources:
            self.how.setdefault(tuple(_power_of_2(x) for x in a), ("next_power_of_2", a, a))
        return len(self.how)

    def _combine(self, left: Sequence[Values], right: Sequence[Values]) -> int:
        """Every operation on every pair, in both orders; division only by positive numbers, results only from 0 on."""
        for op, f, _, commutative in BINARY:
            for a in left:
                for b in right:
                    for x, y in ((a, b),) if commutative else ((a, b), (b, a)):
                        if min(y) > 0 and min(x) > 0:
                            v = tuple(map(f, x, y))
                            if min(v) >= 0 and v not in self.how:
                                self.how[v] = (op, x, y)
        return len(self.how)

    def _middle(self, values: Values) -> Term | None:
        """c * known, known + c, known * known, known + known, known - known; the affine c * known + d needs three environments."""
        known = [k for k in self.how if len(set(k)) > 1]
        if self.count >= 3 and (t := self._affine(values, [k for k in self.leaves if k in known])) is not None:
            return t
        for k in known:
            if min(k) > 0 and all(v % x == 0 for v, x in zip(values, k, strict=True)):
                q = tuple(v // x for v, x in zip(values, k, strict=True))
                if q in self.how or len(set(q)) == 1:
                    return T.mul(self._known(q), self.term(k))
        for k in known:
            d = tuple(v - x for v, x in zip(values, k, strict=True))
            if d in self.how or len(set(d)) == 1:
                return T.add(self.term(k), self._known(d))
            if (m := tuple(-x for x in d)) in self.how:
                return T.sub(self.term(k), self._known(m))
        return self._affine(values, known) if self.count >= 3 else None

    def _known(self, values: Values) -> Term:
        return self.term(values) if values in self.how else T.const(values[0])

    def _affine(self, values: Values, known: Sequence[Values]) -> Term | None:
        for k in known:
            dx, dv = k[1] - k[0], values[1] - values[0]
            if dx and dv % dx == 0:
                c = dv // dx
                d = values[0] - c * k[0]
                if all(v == c * x + d for v, x in zip(values, k, strict=True)):
                    return T.add(T.mul(c, self.term(k)), d)
        return None

    # ---- booleans

    def boolean(self, values: tuple[bool, ...]) -> Term | None:
        """x % y == 0, x < y, x <= y, x == y over dims, known terms and constants; two dims before a dim and a constant."""
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
        matrix, where = self._reals()
        hit = self._first(np.abs(matrix - target) <= TOLERANCE * np.abs(target))
        if hit is not None:
            return self._real_term(where[hit])
        if not target.all():
            return None
        with np.errstate(all="ignore"):
            ratio = target / matrix
            steady = np.abs(ratio - ratio[:, :1]) <= TOLERANCE * np.abs(ratio[:, :1])
        moving = np.abs(matrix - matrix[:, :1]).max(axis=1) > 0 if len(matrix) else np.zeros(0, bool)
        hit = self._first(steady & moving[:, None])
        if hit is not None:
            return T.mul(_snap(float(ratio[hit].mean())), self._real_term(where[hit]))
        return self._real_product(ratio, matrix, where)

    def _real_product(self, ratio: np.ndarray, matrix: np.ndarray, where: list[tuple[int, int]]) -> Term | None:
        """scalar function * other function: the ratio of the target to one row is another row."""
        for k in range(min(len(where), 8 * (len(self.columns) + 1))):
            hit = self._first(np.abs(matrix - ratio[k]) <= TOLERANCE * np.abs(ratio[k]))
            if hit is not None:
                return T.mul(self._real_term(where[k]), self._real_term(where[hit]))
        return None

    @staticmethod
    def _first(matches: np.ndarray) -> int | None:
        hits = np.flatnonzero(matches.all(axis=1)) if len(matches) else ()
        return int(hits[0]) if len(hits) else None

    def _reals(self) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Every row of UNARY on every base; bases are scalars, dims, then integer expressions of two dims."""
        if self.reals is None:
            for _ in range(3):
                next(self.growth, None)
            scalars = [(c, T.scalar(n)) for n, c in self.columns.items() if not _is_integer(c)]
            small = [v for v in self.how if len(set(v)) > 1][:1500]
            self.bases: list[Any] = [t for _, t in scalars] + small
            columns = np.array([c for c, _ in scalars] + small, np.float64).reshape(-1, self.count)
            simple = len(scalars) + len(self.leaves)
            order = [(u, b) for u in range(len(UNARY)) for b in range(simple)]
            order += [(u, b) for u in range(4) for b in range(simple, len(columns))]
            with np.errstate(all="ignore"):
                images = [f(columns) for _, f, _ in UNARY]
            matrix = np.array([images[u][b] for u, b in order]).reshape(-1, self.count)
            self.reals = (np.nan_to_num(matrix, nan=np.inf), order)
        return self.reals

    def _real_term(self, where: tuple[int, int]) -> Term:
        u, b = where
        base = self.bases[b]
        return UNARY[u][2](base if isinstance(base, Term) else self.term(base))


def _snap(c: float) -> Number:
    """The constant meant by a float that went through f32: a small integer or fraction, a named one, else itself."""
    for n in (*NAMED, *(-x for x in NAMED), *(k / d for d in (1, 2, 4, 8, 3) for k in range(-16, 17) if k)):
        if abs(c - n) <= TOLERANCE * abs(n):
            return int(n) if float(n).is_integer() else n
    return c


def value(t: Term, environment: Environment) -> Any:
    """The number of a closed term over dims and scalars under an environment (exact for integers); None if undefined."""
    from .ops import OPS

    if t.op == "const":
        return t.attr
    if t.op in ("size", "scalar"):
        return environment.get(t.attr)
    args = [value(a, environment) for a in t.args]
    return None if any(a is None for a in args) or t.op not in OPS else OPS[t.op].on_numbers(*args)

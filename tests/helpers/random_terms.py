"""Random terms, and their values at numbers: tensors are functions of all integers, folds are over a window of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term
from trilift.verify.normal_form.algebra import ALL

WINDOW = np.arange(-16, 30)  # values of a bound variable that only guards restrict
SIZES = ("N", "M", "p")
UNGUARDED = (("amin", math.inf), ("argmax", 0), ("argmin", 0))
Array = Any


@dataclass
class Numbers:
    """Values of sizes, free axes and tensors."""

    values: Mapping[str, int]
    seed: int
    cache: dict[tuple[str, int], Array] = field(default_factory=dict)

    @classmethod
    def drawn(cls, rng: random.Random) -> Numbers:
        n = rng.randint(1, 5)
        return cls({"N": n, "M": rng.randint(1, 4), "p": rng.randint(0, n - 1)}, rng.randrange(1 << 30))

    @property
    def facts(self) -> frozenset[Term]:
        n, m, p = map(T.size, SIZES)
        return frozenset([T.make("le", 1, n), T.make("le", 1, m), T.make("le", 0, p), T.make("lt", p, n)])

    def of(self, t: Term) -> float:
        """The value of a term without free axes; nan where it has none."""
        with np.errstate(all="ignore"):
            return float(np.asarray(self._of(t, {}, 0)).reshape(-1)[0])

    def holds(self, t: Term) -> bool:
        with np.errstate(all="ignore"):
            return bool(np.asarray(self._of(t, {}, 0)).reshape(-1)[0])

    def _of(self, t: Term, env: dict[Axis, Array], depth: int) -> Array:
        if t.op == "const":
            return np.asarray(float(t.attr) if isinstance(t.attr, bool) else t.attr)
        if t.op == "size":
            return np.asarray(self.values[str(t.attr)])
        if t.op == "axis":
            return env[t.attr]
        if t.op in T.FOLDS:
            return self._fold(t, env, depth)
        args = [self._of(s, env, depth) for s in t.args]
        if t.op == "read":
            return self._read(str(t.attr), args)
        return OPERATIONS[t.op](*args)

    def _fold(self, t: Term, env: dict[Axis, Array], depth: int) -> Array:
        a: Axis = t.attr
        values = WINDOW if a.size is ALL else np.arange(max(0, int(self._of(a.size, env, depth))))
        variable = values.reshape((-1, *[1] * depth))
        body = np.asarray(self._of(t.args[0], {**env, a: variable}, depth + 1), dtype=float)
        body = np.broadcast_to(body, np.broadcast_shapes(body.shape, variable.shape))
        match t.op:
            case "sum":
                return body.sum(0)
            case "prod":
                return body.prod(0)
            case "amax":
                return body.max(0, initial=-math.inf)
            case "argmax" | "argmin":
                return self._where_best(t.op, values, body)
        return body.min(0, initial=math.inf)

    def _where_best(self, kind: str, values: Array, body: Array) -> Array:
        """The index of the maximum or minimum; nan where there is nothing, or more than one up to rounding."""
        if not len(values):
            return np.asarray(math.nan)
        signed = body if kind == "argmax" else -body
        tied = (signed >= signed.max(0) - 1e-9 * (1 + abs(signed.max(0)))).sum(0) > 1
        return np.where(np.isnan(body).any(0) | np.isinf(body).all(0) | tied, math.nan, values[signed.argmax(0)])

    def _read(self, name: str, index: list[Array]) -> Array:
        """A number from -2 to 2 for each tensor and index, of no simple form."""
        mixed = np.asarray(self.seed % 100003 + sum(map(ord, name)) * 7919, dtype=np.int64)
        for k, i in enumerate(index):
            mixed = (mixed * 31 + (np.asarray(i, dtype=np.int64) + 1000) * (104729 + 2 * k)) % 1000003
            mixed = mixed * mixed % 1000003
        return mixed / 1000003 * 4 - 2


def _folded(f: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def apply(first: Array, *rest: Array) -> Array:
        for x in rest:
            first = f(first, x)
        return first

    return apply


def _compared(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """1, 0, or nan where an operand has no value."""
    return lambda x, y: np.where(np.isnan(x) | np.isnan(y), math.nan, f(x, y))


def _divided(x: Array, y: Array, f: Callable[[Array, Array], Array]) -> Array:
    return np.where(y == 0, math.nan, f(x, np.where(y == 0, 1, y)))


OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": _folded(lambda x, y: x + y),
    "mul": _folded(lambda x, y: x * y),
    "max": _folded(np.maximum),
    "min": _folded(np.minimum),
    "and": _folded(np.multiply),
    "or": _folded(lambda x, y: x + y - x * y),
    "not": lambda x: 1 - x,
    "lt": _compared(np.less),
    "le": _compared(np.less_equal),
    "eq": _compared(np.equal),
    "ne": _compared(np.not_equal),
    "where": lambda c, x, y: np.where(np.isnan(c), math.nan, np.where(c != 0, x, y)),
    "recip": lambda x: np.where(x == 0, math.nan, 1.0 / np.where(x == 0, 1, x)),
    "exp": np.exp,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "fmod": lambda x, y: _divided(x, y, np.fmod),
    "pow": lambda x, y: np.power(np.asarray(x, dtype=float), y),
    "floordiv": lambda x, y: _divided(x, y, lambda a, b: np.floor_divide(a, b)),
    "mod": lambda x, y: _divided(x, y, lambda a, b: np.mod(a, b)),
    "truncdiv": lambda x, y: _divided(x, y, lambda a, b: np.trunc(a / b)),
    "truncmod": lambda x, y: _divided(x, y, lambda a, b: np.fmod(a, b)),
    "positive?": lambda x: _compared(np.greater)(x, np.asarray(0)),
    "zero?": lambda x: _compared(np.equal)(x, np.asarray(0)),
    "holds?": lambda c: c * 1.0,
    "tanh": np.tanh,
}


# ---- random terms ----------------------------------------------------------------------------------------------------


@dataclass
class Draw:
    """Terms by chance."""

    rng: random.Random
    count: int = 0

    def integer(self, axes: tuple[Axis, ...], depth: int = 2) -> Term:
        pick = self.rng.random()
        if depth <= 0 or pick < 0.35:
            leaves = [*map(T.axis, axes), *map(T.axis, axes), *map(T.size, SIZES), T.const(self.rng.randint(-2, 3))]
            return self.rng.choice(leaves)
        x, y = self.integer(axes, depth - 1), self.integer(axes, depth - 1)
        if pick < 0.7:
            return T.add(x, T.mul(self.rng.choice((1, 1, -1, 2, 3)), y))
        if pick < 0.78:
            return T.mul(x, self.rng.choice((T.size("N"), T.size("M"), T.const(2))))
        divisor = self.rng.choice((T.const(2), T.const(3), T.size("N"), T.size("M"), T.mul(2, T.size("M"))))
        if pick < 0.94:
            return T.make(self.rng.choice(("floordiv", "mod", "truncdiv", "truncmod")), x, divisor)
        return T.make(self.rng.choice(("max", "min")), x, y)

    def condition(self, axes: tuple[Axis, ...], depth: int = 1) -> Term:
        pick = self.rng.random()
        if depth > 0 and pick < 0.3:
            xs = self.condition(axes, depth - 1), self.condition(axes, depth - 1)
            return T.make(self.rng.choice(("and", "or")), *xs)
        if depth > 0 and pick < 0.4:
            return T.make("not", self.condition(axes, depth - 1))
        op = self.rng.choice(("lt", "le", "lt", "le", "eq", "ne"))
        if pick < 0.55:
            return T.make(op, self.real(axes, 1), self.rng.choice((T.const(0), self.real(axes, 1))))
        return T.make(op, self.integer(axes, 1), self.integer(axes, 1))

    def real(self, axes: tuple[Axis, ...], depth: int = 3) -> Term:
        if depth <= 0:
            return self.leaf(axes)
        build = self.rng.choices(
            (self.leaf, self.sum_, self.product, self.quotient, self.function, self.choice, self.fold, self.extremum),
            (3, 4, 4, 2, 3, 3, 6 if len(axes) < 3 else 0, 2),
        )[0]
        return build(axes) if build == self.leaf else build(axes, depth - 1)  # type: ignore[call-arg]

    def leaf(self, axes: tuple[Axis, ...]) -> Term:
        pick = self.rng.random()
        if pick < 0.15:
            return T.const(self.rng.choice((1, 2, -1, 0.5, 0.25, 3)))
        if pick < 0.25:
            return self.integer(axes, 1)
        name, rank = self.rng.choice((("x", 1), ("y", 1), ("z", 2)))
        return T.read(name, [self.integer(axes, 1) for _ in range(rank)])

    def sum_(self, axes: tuple[Axis, ...], depth: int) -> Term:
        return T.add(self.real(axes, depth), T.mul(self.rng.choice((1, -1, 2)), self.real(axes, depth)))

    def product(self, axes: tuple[Axis, ...], depth: int) -> Term:
        return T.mul(self.real(axes, depth), self.real(axes, depth))

    def quotient(self, axes: tuple[Axis, ...], depth: int) -> Term:
        return T.div(self.real(axes, depth), self.real(axes, depth))

    def function(self, axes: tuple[Axis, ...], depth: int) -> Term:
        x = self.real(axes, depth)
        match self.rng.choice(("exp", "exp", "log", "sqrt", "abs", "square", "tanh", "pow")):
            case "square":
                return T.mul(x, x)
            case "pow":
                return T.make("pow", x, self.rng.choice((2, 3, -1, -2, 0.5, -0.5, 1.5)))
            case "log":
                return T.make("log", T.add(T.mul(x, x), self.rng.choice((0, 1))))
            case "sqrt":
                return T.make("sqrt", self.rng.choice((x, T.mul(x, x), T.make("exp", x))))
            case name:
                return T.make(name, x)

    def choice(self, axes: tuple[Axis, ...], depth: int) -> Term:
        return T.where(self.condition(axes), self.real(axes, depth), self.real(axes, depth))

    def extremum(self, axes: tuple[Axis, ...], depth: int) -> Term:
        return T.make(self.rng.choice(("max", "min")), self.real(axes, depth), self.real(axes, depth))

    def fold(self, axes: tuple[Axis, ...], depth: int) -> Term:
        self.count += 1
        size = self.rng.choice((T.size("N"), T.size("M"), T.const(3), T.add(T.size("p"), 1), T.size("p"), T.const(4)))
        a = Axis(f"{self.rng.choice('ij')}{self.count if self.rng.random() < 0.7 else ''}", size)
        if a in axes:
            a = Axis(f"k{self.count}", size)
        inner = (*axes, a)
        kind, unit = self.rng.choice((*[("sum", 0)] * 5, *[("amax", -math.inf)] * 2, *UNGUARDED, ("prod", 1)))
        body = self.real(inner, depth)
        if (kind, unit) in UNGUARDED:
            return T.fold(kind, a, body)
        guarded = self.rng.random() < 0.6
        return T.fold(kind, a, T.where(self.condition(inner), body, T.const(unit)) if guarded else body)


def mutated(t: Term, rng: random.Random) -> Term:
    """The term with one mistake: an index moved, a comparison changed, an operand left out."""
    inside = [s for s in t.walk() if s.op in CHANGES]
    if not inside:
        return t
    target = rng.choice(inside)
    new = CHANGES[target.op](target, rng)
    return T.rewrite(t, lambda s: new if s is target else None)


def _without(s: Term, rng: random.Random) -> Term:
    k = rng.randrange(len(s.args))
    return T.make(s.op, *(a for j, a in enumerate(s.args) if j != k)) if len(s.args) > 2 else s.args[1 - k]


def _resized(s: Term, by: int) -> Term:
    longer = Axis(s.attr.name, T.add(s.attr.size, by))
    return T.fold(s.op, longer, T.substitute(s.args[0], {s.attr: T.axis(longer)}))


CHANGES: dict[str, Callable[[Term, random.Random], Term]] = {
    "lt": lambda s, rng: T.make("le", *s.args),
    "le": lambda s, rng: T.make("lt", *s.args),
    "eq": lambda s, rng: T.make("le", *s.args),
    "add": _without,
    "mul": _without,
    "max": lambda s, rng: T.make("min", *s.args),
    "min": lambda s, rng: T.make("max", *s.args),
    "floordiv": lambda s, rng: T.make("truncdiv", *s.args),
    "truncdiv": lambda s, rng: T.make("floordiv", *s.args),
    "mod": lambda s, rng: T.make("truncmod", *s.args),
    "read": lambda s, rng: T.read(s.attr, [T.add(s.args[0], 1), *s.args[1:]]),
    "where": lambda s, rng: T.where(s.args[0], s.args[2], s.args[1]),
    "sum": lambda s, rng: _resized(s, rng.choice((1, -1))),
    "exp": lambda s, rng: s.args[0],
    "abs": lambda s, rng: s.args[0],
    "sqrt": lambda s, rng: s.args[0],
}

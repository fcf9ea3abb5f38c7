"""One kernel at several block sizes as one module whose numbers are terms in the block sizes.

    make_range 0..16, tensor<16xf32>   (B = 16)
    make_range 0..64, tensor<64xf32>   (B = 64)      ->   make_range 0..B, tensor<Bxf32>

Same operations in the same order on the same operands; numbers that differ must be c * B + d, or with a product or a
quotient of block sizes for B, at every one of them. In the result, entries of `Type.shape` and numbers among the
attributes (also in `Type`s among them) are `int | float | Term`; where nothing differs they stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from lift import term as T
from lift.ir import Block, Function, Module, Op, Region, Type, Value
from lift.term import Term

Combo = Mapping[str, int]  # a value for each block size
EXPONENTS = (1, -1, 2)
TOLERANCE = 2e-7  # of floats: constants are rounded to f32


class Different(Exception):
    """The modules differ in more than numbers, or a number is no simple function of the block sizes."""


def antiunify(modules: Sequence[Module], combos: Sequence[Combo], symbols: Mapping[str, Term]) -> Module:
    """The module that is modules[k] where each block size has its value in combos[k]. Raises Different."""
    return _Walk(combos, symbols).module(modules)


def skeleton(module: Module) -> tuple[Any, ...]:
    """What modules have to agree in: everything but numbers."""
    numbering: dict[int, int] = {}
    return tuple(_skeleton(f, numbering) for f in module.functions.values())


def _skeleton(f: Function, numbering: dict[int, int]) -> tuple[Any, ...]:
    def number(v: Value) -> int:
        return numbering.setdefault(id(v), len(numbering))

    def region(r: Region) -> tuple[Any, ...]:
        return tuple((b.label, tuple(map(number, b.args)), tuple(map(op, b.ops))) for b in r.blocks)

    def op(o: Op) -> tuple[Any, ...]:
        successors = tuple((label, tuple(map(number, vs))) for label, vs in o.successors)
        types = tuple(_kind(v.type) for v in o.results)
        return (o.name, tuple(map(number, o.operands)), tuple(map(number, o.results)), types,
                tuple(sorted(o.attrs)), successors, tuple(map(region, o.regions)))  # fmt: skip

    return region(f.body)


def _kind(t: Type) -> tuple[Any, ...]:
    return t.element, len(t.shape), _kind(t.pointee) if t.pointee else None


def extents(module: Module) -> Iterator[tuple[Term | int, ...]]:
    """The shapes of the module's tensors in which a term occurs."""
    shapes = (v.type.shape for op in module.walk() for v in op.results)
    yield from dict.fromkeys(s for s in shapes if any(isinstance(n, Term) for n in s))


class _Walk:
    """All modules in step. `values`: of the first module's values, the new ones."""

    def __init__(self, combos: Sequence[Combo], symbols: Mapping[str, Term]) -> None:
        self.combos, self.symbols = combos, symbols
        self.values: dict[int, Value] = {}
        self.known: dict[tuple[Any, ...], Any] = {}

    def module(self, modules: Sequence[Module]) -> Module:
        first = modules[0]
        if len({skeleton(m) for m in modules}) > 1:
            raise Different("the operations differ")
        parts = zip(*(m.functions.values() for m in modules), strict=True)
        functions = [self.function(fs) for fs in parts]
        names = dict(zip(first.functions, functions, strict=True))
        entry = functions[list(first.functions.values()).index(first.entry)]
        return Module(names, entry, first.text)

    def function(self, fs: Sequence[Function]) -> Function:
        results = [self.type(ts) for ts in zip(*(f.results for f in fs), strict=True)]
        body = self.region([f.body for f in fs])
        args = [self.value(vs) for vs in zip(*(f.args for f in fs), strict=True)]
        return Function(fs[0].name, args, results, body, fs[0].public)

    def region(self, rs: Sequence[Region]) -> Region:
        return Region([self.block(bs) for bs in zip(*(r.blocks for r in rs), strict=True)])

    def block(self, bs: Sequence[Block]) -> Block:
        out = Block(bs[0].label, [], [])
        out.args = [self.value(vs, out) for vs in zip(*(b.args for b in bs), strict=True)]
        out.ops = [self.op(ops) for ops in zip(*(b.ops for b in bs), strict=True)]
        return out

    def op(self, ops: Sequence[Op]) -> Op:
        first = ops[0]
        attrs = {k: self.joined([o.attrs[k] for o in ops], k) for k in first.attrs}
        out = Op(first.name, [], [], attrs, [], [], first.frames)
        out.operands = [self.value(vs) for vs in zip(*(o.operands for o in ops), strict=True)]
        out.results = [self.value(vs, out) for vs in zip(*(o.results for o in ops), strict=True)]
        out.successors = [
            (label, [self.value(vs) for vs in zip(*(o.successors[k][1] for o in ops), strict=True)])
            for k, (label, _) in enumerate(first.successors)
        ]
        out.regions = [self.region(rs) for rs in zip(*(o.regions for o in ops), strict=True)]
        return out

    def value(self, vs: Sequence[Value], owner: Op | Block | None = None) -> Value:
        """The new value; one that is used before it is defined learns its owner later."""
        first = vs[0]
        out = self.values.get(id(first))
        if out is None:
            out = self.values[id(first)] = Value(first.name, self.type([v.type for v in vs]), None, first.index)
        if owner is not None:
            out.owner = owner
        return out

    def type(self, ts: Sequence[Type]) -> Type:
        first = ts[0]
        if all(t == first for t in ts):
            return first
        if len({_kind(t) for t in ts}) > 1:
            raise Different(f"a type is {first.text} and {next(t.text for t in ts if t != first)}")
        shape: Any = tuple(self.number(ns, "an extent") for ns in zip(*(t.shape for t in ts), strict=True))
        pointee = None if first.pointee is None else self.type([t.pointee for t in ts if t.pointee is not None])
        return Type(first.element, shape, pointee, first.text)

    def joined(self, xs: Sequence[Any], what: str) -> Any:
        """One attribute of all modules."""
        first = xs[0]
        if len({type(x) for x in xs}) > 1 and not all(isinstance(x, int | float) for x in xs):
            raise Different(f"{what} is of several kinds")
        if isinstance(first, Type):
            return self.type(xs)
        if isinstance(first, np.ndarray):
            if any(x.shape != first.shape or not np.array_equal(x, first, equal_nan=x.dtype.kind == "f") for x in xs):
                raise Different(f"the elements of {what}")
            return first
        if isinstance(first, tuple | list):
            if len({len(x) for x in xs}) > 1:
                raise Different(f"the length of {what}")
            return type(first)(self.joined(part, what) for part in zip(*xs, strict=True))
        if isinstance(first, dict):
            if len({tuple(x) for x in xs}) > 1:
                raise Different(f"the entries of {what}")
            return {k: self.joined([x[k] for x in xs], what) for k in first}
        if isinstance(first, int | float) and not isinstance(first, bool):
            return self.number(xs, what)
        if any(x != first for x in xs):
            raise Different(f"{what} is {first} and {next(x for x in xs if x != first)}")
        return first

    # ---- numbers

    def number(self, values: Sequence[Any], what: str) -> Any:
        """The number, or a term that is values[k] at combos[k] for every k."""
        first = values[0]
        if all(v == first or (v != v and first != first) for v in values):
            return first
        key = tuple(values)
        if key not in self.known:
            self.known[key] = self.fitted(key)
        if self.known[key] is None:
            seen = ", ".join(f"{v} at {dict(c)}" for v, c in zip(values, self.combos, strict=True))
            raise Different(f"{what} is {seen}")
        return self.known[key]

    def fitted(self, values: tuple[Any, ...]) -> Term | None:
        if any(isinstance(v, bool) or (isinstance(v, float) and not np.isfinite(v)) for v in values):
            return None
        found = (self.affine(values, m) for m in self.monomials())
        return next((t for t in found if t is not None), None)

    def monomials(self) -> Iterator[dict[str, int]]:
        """Exponents: B; 1/B, B * B; products and quotients of two."""
        yield from ({p: e} for e in EXPONENTS for p in self.symbols)
        names = list(self.symbols)
        for (i, p), (j, q) in product(enumerate(names), repeat=2):
            if i < j:
                yield from ({p: a, q: b} for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)))

    def affine(self, values: tuple[Any, ...], exponents: Mapping[str, int]) -> Term | None:
        """c * monomial + d, exact where values are integers."""
        base = [_power(c, exponents) for c in self.combos]
        other = next((k for k, b in enumerate(base) if b != base[0]), None)
        if other is None:
            return None
        exact = all(float(v).is_integer() for v in values)
        v = [Fraction(x) for x in values]
        c = (v[other] - v[0]) / (base[other] - base[0])
        d = v[0] - c * base[0]
        if not exact and abs(float(d)) <= TOLERANCE * abs(float(v[0])):
            c, d = v[0] / base[0], Fraction(0)
        slack = Fraction(0) if exact else Fraction(TOLERANCE)
        if c == 0 or any(abs(c * b + d - x) > slack * abs(x) for b, x in zip(base, v, strict=True)):
            return None
        return self.term(exponents, c, d, exact)

    def term(self, exponents: Mapping[str, int], c: Fraction, d: Fraction, exact: bool) -> Term | None:
        above = [self.symbols[p] for p, e in exponents.items() for _ in range(max(e, 0))]
        below = [self.symbols[p] for p, e in exponents.items() for _ in range(max(-e, 0))]
        if exact:
            if d.denominator != 1:
                return None
            top, bottom = T.mul(c.numerator, *above), T.mul(c.denominator, *below)
            return T.add(top if bottom is T.const(1) else T.make("floordiv", top, bottom), d.numerator)
        factor = _near(c)
        return T.add(T.mul(factor, *above, *(T.recip(b) for b in below)), float(d))


def _power(combo: Combo, exponents: Mapping[str, int]) -> Fraction:
    out = Fraction(1)
    for p, e in exponents.items():
        out *= Fraction(combo[p]) ** e
    return out


def _near(c: Fraction) -> int | float:
    """The whole number that a factor is up to rounding, else itself."""
    return round(c) if round(c) and abs(c - round(c)) <= TOLERANCE * abs(c) else float(c)

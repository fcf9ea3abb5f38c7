"""One kernel at several block sizes as one module whose numbers are terms in the block sizes.

    make_range 0..16, tensor<16xf32>   (B = 16)
    make_range 0..64, tensor<64xf32>   (B = 64)      ->   make_range 0..B, tensor<Bxf32>

Same operations on the same operands, those with effects in the same order; numbers that differ must be c * B + d, or
with a product or a quotient of block sizes for B, or cdiv(B, C), at every one of them. In the result, entries of
`Type.shape` and numbers among the attributes (also in `Type`s among them) are `int | float | Term`; where nothing
differs they stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from trilift.lift.runtime.recursion import deep
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Block, Function, Module, Op, Region, Type, Value

Combo = Mapping[str, int]  # a value for each block size
EXPONENTS = (1, -1, 2)
F32_ERROR = 2e-7  # of floats: constants are rounded to f32


class Different(Exception):
    """The modules differ in more than numbers, or a number is not a simple function of the block sizes."""


def antiunify(modules: Sequence[Module], combos: Sequence[Combo], symbols: Mapping[str, Term]) -> Module:
    """The module that is modules[k] where each block size has its value in combos[k]. Raises Different."""
    with deep():
        return _Walk(modules, combos, symbols).module()


def instantiate(module: Module, numbers: Mapping[str, int | float]) -> Module:
    """The module with numbers for the block sizes in it."""
    with deep():
        return _Numbers(module, numbers).module()


def alike(a: Module, b: Module) -> bool:
    """Whether the modules differ in numbers only."""
    try:
        with deep():
            _Walk((a, b), ({}, {}), None).module()
    except Different:
        return False
    return True


def _kind(t: Type) -> tuple[Any, ...]:
    return t.element, len(t.shape), _kind(t.pointee) if t.pointee else None


def extents(module: Module) -> Iterator[tuple[Term | int, ...]]:
    """The shapes of the module's tensors in which a term occurs."""
    shapes = (v.type.shape for op in module.walk() for v in op.results)
    yield from dict.fromkeys(s for s in shapes if any(isinstance(n, Term) for n in s))


class _Walk:
    """All modules in step. Operations with effects, regions or successors are walked in order; other operations are
    formed
    where they are needed, once for every combination of what they are in each module: two operations that are one in
    some module, because their numbers agree there, stay two. `symbols` is None where numbers do not matter."""

    def __init__(self, modules: Sequence[Module], combos: Sequence[Combo], symbols: Mapping[str, Term] | None) -> None:
        self.modules, self.combos, self.symbols = modules, combos, symbols
        self.values: dict[tuple[int, ...], Value] = {}
        self.blocks: dict[int, Block] = {}  # of an old block, the new one
        self.depth: dict[int, int] = {}  # of a new block
        self.home: dict[int, Block] = {}  # of an old operation, its block
        self.known: dict[tuple[Any, ...], Any] = {}

    def module(self) -> Module:
        first = self.modules[0]
        if len({len(m.functions) for m in self.modules}) > 1:
            raise Different("the number of functions")
        for block in (b for m in self.modules for f in m.functions.values() for b in _blocks(f.body)):
            self.home.update((id(op), block) for op in block.ops)
        parts = zip(*(m.functions.values() for m in self.modules), strict=True)
        functions = [self.function(fs) for fs in parts]
        names = dict(zip(first.functions, functions, strict=True))
        entry = functions[list(first.functions.values()).index(first.entry)]
        return Module(names, entry, first.text)

    def function(self, fs: Sequence[Function]) -> Function:
        results = [self.type(ts) for ts in self.together([f.results for f in fs], "results")]
        body = self.region([f.body for f in fs], 0)
        args = [self.value(vs) for vs in self.together([f.args for f in fs], "arguments")]
        return Function(fs[0].name, args, results, body, fs[0].public)

    def together(self, parts: Sequence[Sequence[Any]], what: str) -> Iterator[tuple[Any, ...]]:
        """The k-th parts of all modules, for every k."""
        if len({len(p) for p in parts}) > 1:
            raise Different(f"the number of {what}")
        return zip(*parts, strict=True)

    def region(self, rs: Sequence[Region], depth: int) -> Region:
        columns = list(self.together([r.blocks for r in rs], "blocks"))
        new = [self.opened(bs, depth) for bs in columns]
        for bs, block in zip(columns, new, strict=True):
            for ops in self.together([[o for o in b.ops if _is_anchor(o)] for b in bs], "operations with effects"):
                block.ops.append(self.op(ops, depth))
        return Region(new)

    def opened(self, bs: Sequence[Block], depth: int) -> Block:
        out = Block(bs[0].label, [], [])
        self.depth[id(out)] = depth
        self.blocks.update((id(b), out) for b in bs)
        out.args = [self.defined(vs, out) for vs in self.together([b.args for b in bs], "block arguments")]
        return out

    def op(self, ops: Sequence[Op], depth: int) -> Op:
        first = ops[0]
        if len({(o.name, tuple(sorted(o.attrs)), len(o.successors)) for o in ops}) > 1:
            raise Different(f"{first.name} or {next((o.name for o in ops if o.name != first.name), first.name)}")
        attrs = {k: self.joined([o.attrs[k] for o in ops], k) for k in first.attrs}
        out = Op(first.name, [], [], attrs, [], [], first.frames)
        out.operands = [self.value(vs) for vs in self.together([o.operands for o in ops], "operands")]
        out.successors = [
            (label, [self.value(vs) for vs in self.together([o.successors[k][1] for o in ops], "block arguments")])
            for k, (label, _) in enumerate(first.successors)
        ]
        out.regions = [self.region(rs, depth + 1) for rs in self.together([o.regions for o in ops], "regions")]
        out.results = [self.defined(vs, out) for vs in self.together([o.results for o in ops], "results")]
        return out

    def defined(self, vs: Sequence[Value], owner: Op | Block) -> Value:
        """The new value for what an operation or block defines in all modules."""
        out = Value(vs[0].name, self.type([v.type for v in vs]), owner, vs[0].index)
        self.values[tuple(id(v) for v in vs)] = out
        return out

    def value(self, vs: Sequence[Value]) -> Value:
        """The new value for what is used in all modules; its operation goes to the innermost of their blocks."""
        key = tuple(id(v) for v in vs)
        if key not in self.values:
            owners = [v.owner for v in vs]
            ops = [o for o in owners if isinstance(o, Op) and not _is_anchor(o)]
            if len(ops) < len(owners) or len({v.index for v in vs}) > 1:
                raise Different(f"what {vs[0].name} is")
            homes = [self.blocks.get(id(self.home[id(o)])) for o in ops]
            block = max((b for b in homes if b is not None), key=lambda b: self.depth[id(b)], default=None)
            if block is None or None in homes:
                raise Different(f"where {vs[0].name} is defined")
            new = self.op(ops, self.depth[id(block)])
            ended = bool(block.ops) and _is_terminator(block.ops[-1])
            block.ops.insert(len(block.ops) - ended, new)
        return self.values[key]

    def type(self, ts: Sequence[Type]) -> Type:
        first = ts[0]
        if all(
            t is first or (t.element, t.shape, t.pointee) == (first.element, first.shape, first.pointee) for t in ts
        ):
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
        if isinstance(first, Term) or (isinstance(first, int | float) and not isinstance(first, bool)):
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
        if self.symbols is None:
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
        return next((t for t in found if t is not None), None) or self.quotient(values)

    def quotient(self, values: tuple[Any, ...]) -> Term | None:
        """A block size divided by another one, or by what is the same for all, rounded up or down."""
        names, symbols = list(self.combos[0]), self.symbols or {}
        if not all(type(v) is int for v in values):
            return None
        for p, q in product(symbols, names):
            pairs = [(c[p], c[q]) for c in self.combos]
            if p == q or any(type(n) is not int or n < 1 for pair in pairs for n in pair):
                continue
            if q not in symbols and len({b for _, b in pairs}) > 1:
                continue
            below = symbols[q] if q in symbols else T.const(pairs[0][1])
            for added in (-1, None):
                above = symbols[p] if added is None else T.add(symbols[p], below, added)
                if all(v == (a if added is None else a + b - 1) // b for v, (a, b) in zip(values, pairs, strict=True)):
                    return T.make("floordiv", above, below)
        return None

    def monomials(self) -> Iterator[dict[str, int]]:
        """Exponents: B; 1/B, B * B; products and quotients of two."""
        names = list(self.symbols or ())
        yield from ({p: e} for e in EXPONENTS for p in names)
        for (i, p), (j, q) in product(enumerate(names), repeat=2):
            if i < j:
                yield from ({p: a, q: b} for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)))

    def affine(self, values: tuple[Any, ...], exponents: Mapping[str, int]) -> Term | None:
        """c * monomial + d, exact where values are integers."""
        if any(e < 0 and c[p] == 0 for c in self.combos for p, e in exponents.items()):
            return None
        base = [_power(c, exponents) for c in self.combos]
        other = next((k for k, b in enumerate(base) if b != base[0]), None)
        if other is None:
            return None
        exact = all(float(v).is_integer() for v in values)
        v = [Fraction(x) for x in values]
        c = (v[other] - v[0]) / (base[other] - base[0])
        d = v[0] - c * base[0]
        if not exact and all(abs(v[0] / base[0] * b - x) <= F32_ERROR * abs(x) for b, x in zip(base, v, strict=True)):
            c, d = v[0] / base[0], Fraction(0)
        slack = Fraction(0) if exact else Fraction(F32_ERROR)
        if c == 0 or any(abs(c * b + d - x) > slack * abs(x) for b, x in zip(base, v, strict=True)):
            return None
        return self.term(exponents, c, d, exact)

    def term(self, exponents: Mapping[str, int], c: Fraction, d: Fraction, exact: bool) -> Term | None:
        symbols = self.symbols or {}
        above = [symbols[p] for p, e in exponents.items() for _ in range(max(e, 0))]
        below = [symbols[p] for p, e in exponents.items() for _ in range(max(-e, 0))]
        if exact:
            if d.denominator != 1:
                return None
            top, bottom = T.mul(c.numerator, *above), T.mul(c.denominator, *below)
            return T.add(top if bottom is T.const(1) else T.make("floordiv", top, bottom), d.numerator)
        factor = _near(c)
        return T.add(T.mul(factor, *above, *(T.recip(b) for b in below)), float(d))


class _Numbers(_Walk):
    """One module with its terms evaluated."""

    def __init__(self, module: Module, numbers: Mapping[str, int | float]) -> None:
        super().__init__([module], [{}], None)
        self.numbers = numbers

    def number(self, values: Sequence[Any], what: str) -> Any:
        return value(values[0], self.numbers) if isinstance(values[0], Term) else values[0]

    def type(self, ts: Sequence[Type]) -> Type:
        t = ts[0]
        shape: Any = tuple(self.number([n], "an extent") for n in t.shape)
        return Type(t.element, shape, self.type([t.pointee]) if t.pointee else None, t.text)


def _blocks(region: Region) -> Iterator[Block]:
    for block in region.blocks:
        yield block
        for op in block.ops:
            for inner in op.regions:
                yield from _blocks(inner)


PURE = ("arith.", "math.")
PURE_OPS = {
    "tt.make_range", "tt.splat", "tt.expand_dims", "tt.broadcast", "tt.addptr", "tt.trans", "tt.reshape", "tt.bitcast",
    "tt.get_program_id", "tt.get_num_programs", "tt.cat", "tt.join", "tt.split", "tt.fp_to_fp", "tt.int_to_ptr",
    "tt.ptr_to_int", "tt.clampf", "tt.mulhiui", "tt.precise_sqrt", "tt.precise_divf", "ub.poison", "tt.unsplat",
}  # fmt: skip  # what may be formed anywhere: the same operands give the same results


def _is_anchor(op: Op) -> bool:
    return bool(op.regions or op.successors) or not (op.name in PURE_OPS or op.name.startswith(PURE))


def _is_terminator(op: Op) -> bool:
    return bool(op.successors) or op.name.endswith((".yield", ".return", ".condition", ".br"))


def _power(combo: Combo, exponents: Mapping[str, int]) -> Fraction:
    out = Fraction(1)
    for p, e in exponents.items():
        out *= Fraction(combo[p]) ** e
    return out


def _near(c: Fraction) -> int | float:
    """The whole number that a factor is up to rounding, else itself."""
    return round(c) if round(c) and abs(c - round(c)) <= F32_ERROR * abs(c) else float(c)

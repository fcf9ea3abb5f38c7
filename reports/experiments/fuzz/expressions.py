"""Random expressions of a dtype over the tensors, sizes and scalars of a program."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from .grammar import BITS, FLOATS, HALVES, INTEGERS, Expr, Input, limits

Dims = tuple[str, ...]
ARITHMETIC = ("add", "sub", "mul")
INT_OPS = (*ARITHMETIC, *ARITHMETIC, "min", "max", "and", "or", "xor", "shl", "shr", "quo", "rem", "neg", "abs",
           "where", "cast", "not")  # fmt: skip
REAL_OPS = (*ARITHMETIC, *ARITHMETIC, "div", "guarded", "fmin", "fmax", "pmin", "pmax", "exp", "log", "sqrt", "rsqrt",
            "neg", "abs", "where", "cast", "floor", "sin")  # fmt: skip
HALF_OPS = ("cast", "cast", "where", "neg", "abs")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, 16777217.0)


@dataclass
class Draw:
    """The values that expressions may read. `here`: the dimensions of their lanes; `made`: the tensors that earlier
    stages wrote, as (tensor, dims, dtype); `reduced`: the values of a row; `table`: the tensor that is read at places
    that an input holds."""

    r: random.Random
    inputs: list[Input] = field(default_factory=list)
    scalars: list[tuple[str, str]] = field(default_factory=list)
    made: list[tuple[str, Dims, str]] = field(default_factory=list)
    here: Dims = ()
    reduced: list[tuple[str, str]] = field(default_factory=list)
    table: str = ""

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.r.random() < p

    def dtype(self) -> str:
        return self.r.choice((*INTEGERS, "i32", "f32", "f32", "f32", "f32", "f16", "bf16", "f64"))

    def full(self, dtype: str, depth: int) -> Expr:
        """An expression that reads an element for each lane."""
        for _ in range(20):
            e = self.expr(dtype, depth)
            if any(x.op == "gather" or (x.op == "load" and len(x.value[1]) == len(self.here)) for x in e.walk()):  # type: ignore[index]
                return e
        return self.cast(self.load(self.here), dtype)

    def containing(self, dtype: str, depth: int) -> Expr:
        """An expression that uses what was reduced."""
        for _ in range(20):
            e = self.expr(dtype, depth)
            if any(x.op == "reduced" for x in e.walk()):
                return e
        name, kind = self.r.choice(self.reduced)
        return self.cast(Expr("reduced", kind, (), name), dtype)

    def expr(self, dtype: str, depth: int) -> Expr:
        if depth <= 0 or self.chance(0.1):
            return self.leaf(dtype)
        if dtype == "bool":
            return self.boolean(depth)
        ops = INT_OPS if dtype in INTEGERS else HALF_OPS if dtype in HALVES else REAL_OPS
        return self.operation(self.r.choice(ops), dtype, depth - 1)

    def operation(self, op: str, dtype: str, depth: int) -> Expr:
        match op:
            case "cast":
                return self.narrowed(dtype, depth)
            case "where":
                return Expr(
                    "where", dtype, (self.expr("bool", depth), self.expr(dtype, depth), self.right(dtype, depth))
                )
            case "neg" | "abs" | "not" | "floor" | "sin":
                return Expr(op, dtype, (self.expr(dtype, depth),))
            case "exp":
                return Expr("exp", dtype, (Expr("fmin", dtype, (self.expr(dtype, depth), self.constant(dtype, 2.0))),))
            case "log" | "sqrt" | "rsqrt":
                return Expr(op, dtype, (self.domain(op, self.expr(dtype, depth)),))
            case "shl" | "shr":
                by = self.r.choice((0, 1, 2, 3, BITS[dtype] // 2, BITS[dtype] - 1))
                return Expr(op, dtype, (self.expr(dtype, depth), self.constant(dtype, by)))
            case "quo" | "rem":
                return Expr(op, dtype, (self.expr(dtype, depth), self.divisor(dtype, depth)))
            case "guarded":
                return self.guarded(dtype, depth)
            case _:
                return self.mixed(op, dtype, depth)

    def mixed(self, op: str, dtype: str, depth: int) -> Expr:
        """Two operands, sometimes of two dtypes."""
        left = self.expr(dtype, depth)
        narrower = [d for d in INTEGERS if d[0] == "i" and dtype[0] == "i" and BITS[d] < BITS[dtype]]
        if op in ARITHMETIC and narrower and self.chance(0.25):
            return Expr(op, dtype, (left, self.expr(self.r.choice(narrower), depth)))
        return Expr(op, dtype, (left, self.right(dtype, depth)))

    def divisor(self, dtype: str, depth: int) -> Expr:
        """A divisor that is positive."""
        if self.chance(0.5):
            return self.constant(dtype, self.r.choice((1, 2, 3, 7, 8)))
        return Expr("max", dtype, (self.expr(dtype, depth), self.constant(dtype, 1)))

    def domain(self, op: str, e: Expr) -> Expr:
        """An operand in the domain of a root or logarithm; sometimes not."""
        if self.chance(0.4):
            return e
        least = Expr("abs", e.dtype, (e,))
        return least if op == "sqrt" else Expr("add", e.dtype, (least, self.constant(e.dtype, 1.0)))

    def guarded(self, dtype: str, depth: int) -> Expr:
        """A quotient with one of the usual guards, or a wrong one."""
        q = Expr("div", dtype, (self.expr(dtype, depth), self.expr(dtype, depth)))
        guard = self.r.choice(("isnan", "isinf", "lt", "zero"))
        if guard == "zero":
            zero = Expr("eq", "bool", (q.args[1], self.constant(dtype, 0.0)))
            return Expr("where", dtype, (Expr("not", "bool", (zero,)), q, self.constant(dtype, 0.0)))
        inner = Expr(guard, "bool", (q, self.constant(dtype, float("inf"))) if guard == "lt" else (q,))
        inner = inner if guard == "lt" else Expr("not", "bool", (inner,))
        return Expr("where", dtype, (inner, q, self.constant(dtype, self.r.choice(REALS))))

    def boolean(self, depth: int) -> Expr:
        pick = self.r.random()
        if pick < 0.2 and depth > 1:
            return Expr(self.r.choice(("and", "or", "xor")), "bool", (self.boolean(depth - 1), self.boolean(depth - 1)))
        if pick < 0.3:
            return self.leaf("bool")
        dtype = self.r.choice((*INTEGERS, "i32", "f32", "f32"))
        if pick < 0.4 and dtype == "f32":
            return Expr(self.r.choice(("isnan", "isinf")), "bool", (self.expr(dtype, depth - 1),))
        return Expr(self.r.choice(COMPARISONS), "bool", (self.expr(dtype, depth - 1), self.right(dtype, depth - 1)))

    def narrowed(self, dtype: str, depth: int) -> Expr:
        """A cast from another dtype; a real number is clipped before it becomes an integer."""
        source = self.r.choice([d for d in (*INTEGERS, "f32", "f64", "bool") if d != dtype])
        e = self.expr(source, depth)
        if source in FLOATS and dtype in INTEGERS:
            low = 0.0 if dtype[0] == "u" else -100.0
            e = Expr(
                "pmin", source, (Expr("pmax", source, (e, self.constant(source, low))), self.constant(source, 100.0))
            )
        return self.cast(e, dtype)

    def cast(self, e: Expr, dtype: str) -> Expr:
        return e if e.dtype == dtype else Expr("cast", dtype, (e,))

    def constant(self, dtype: str, v: float) -> Expr:
        return Expr("const", dtype, (), float(v) if dtype in FLOATS else int(v))

    def right(self, dtype: str, depth: int) -> Expr:
        """A right operand: also a number, a size or a scalar."""
        if self.chance(0.6) or dtype == "bool":
            return self.expr(dtype, depth)
        if dtype in ("i32", "i64", "f32") and self.chance(0.25):
            return Expr("size", dtype, (), self.r.choice(self.here))
        if dtype in ("i32", "f32") and self.chance(0.25):
            name = f"s{dtype[0]}"
            if (name, dtype) not in self.scalars:
                self.scalars.append((name, dtype))
            return Expr("scalar", dtype, (), name)
        if dtype in FLOATS:
            return self.constant(dtype, self.r.choice(REALS))
        low, high = limits(dtype)
        v = self.r.choice((0, 1, 2, 3, 5, 7, -1, -3, 100, 2**24 + 1, high, low, high - 1))
        return self.constant(dtype, min(max(v, low), high))

    def leaf(self, dtype: str) -> Expr:
        if self.reduced and self.chance(0.5):
            name, kind = self.r.choice(self.reduced)
            return self.safe(Expr("reduced", kind, (), name), dtype)
        if dtype == "i32" and self.chance(0.1):
            return Expr("index", "i32", (), self.r.choice(self.here))
        if self.table and self.chance(0.6):
            kind = next(i.dtype for i in self.inputs if i.name == self.table)
            index = next(i for i in self.inputs if i.name == "index")
            at = Expr("load", index.dtype, (), (index.name, index.dims))
            return self.safe(Expr("gather", kind, (at,), self.table), dtype)
        return self.safe(self.load(self.shape(), dtype), dtype)

    def safe(self, e: Expr, dtype: str) -> Expr:
        """The leaf in a dtype; a real number is clipped before it becomes an integer."""
        if e.dtype in FLOATS and dtype in INTEGERS:
            f = self.cast(e, "f32")
            low = 0.0 if dtype[0] == "u" else -100.0
            f = Expr("pmin", "f32", (Expr("pmax", "f32", (f, self.constant("f32", low))), self.constant("f32", 100.0)))
            return self.cast(f, dtype)
        if dtype == "bool" and e.dtype != "bool":
            return Expr("gt", "bool", (e, self.constant(e.dtype, 0)))
        return self.cast(e, dtype)

    def shape(self) -> Dims:
        """Which dimensions a tensor has that is read."""
        if len(self.here) < 2 or self.chance(0.6):
            return self.here
        return self.r.choice((self.here[:1], self.here[1:], self.here[::-1]))

    def load(self, dims: Dims, dtype: str = "") -> Expr:
        """An element of what an earlier stage wrote, of an input, or of a new one."""
        known = [(n, d) for n, e, d in self.made if e == dims]
        if known and self.chance(0.85):
            name, kind = self.r.choice(known)
            return Expr("load", kind, (), (name, dims))
        fitting = [i for i in self.inputs if i.dims == dims and not i.below and (not dtype or i.dtype == dtype)]
        if not fitting or (self.chance(0.15) and len(self.inputs) < 4):
            kind = dtype or self.r.choice((*INTEGERS, "f32", "f32", "f32", "f16", "bf16", "f64"))
            strided = len(dims) == 2 and self.chance(0.2)
            fitting = [Input("xyzwuvpqgh"[len(self.inputs) % 10], kind, dims, strided=strided)]
            if fitting[0].name in {i.name for i in self.inputs}:
                fitting = [replace(fitting[0], name=f"x{len(self.inputs)}")]
            self.inputs += fitting
        i = self.r.choice(fitting)
        return Expr("load", i.dtype, (), (i.name, dims))

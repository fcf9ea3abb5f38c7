"""Random programs: each is a function of one random generator, so that a seed names it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .grammar import BITS, FLOATS, INTEGERS, Expr, Input, Program, Reduction, Schedule, Stage, limits

Dims = tuple[str, ...]
ARITHMETIC = ("add", "sub", "mul")
INT_OPS = (*ARITHMETIC, *ARITHMETIC, "min", "max", "and", "or", "xor", "shl", "shr", "quo", "rem", "neg", "abs",
           "where", "cast", "not")  # fmt: skip
REAL_OPS = (*ARITHMETIC, *ARITHMETIC, "div", "guarded", "fmin", "fmax", "pmin", "pmax", "exp", "log", "sqrt", "rsqrt",
            "neg", "abs", "where", "cast", "floor", "sin")  # fmt: skip
HALF_OPS = ("cast", "cast", "where", "neg", "abs")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5)
BLOCKS = (16, 32, 64)
KINDS = ("map",) * 5 + ("tile", "row", "row", "row", "scan", "dot", "gather", "atomic")


def program(seed: int, number: int) -> Program:
    """The program of that number."""
    r = random.Random(seed * 1_000_003 + number)
    return _Draw(r).program(f"fuzz_{seed}_{number}")


def pruned(p: Program) -> Program:
    """The program without inputs, scalars and stages that nothing reads; an input that alone names a size stays."""
    stages = list(p.stages)
    if not p.every:
        for k in reversed(range(len(stages) - 1)):
            if not any(reads(s, stages[k].output) for s in stages[k + 1 :]):
                del stages[k]
    needed = {d for s in stages for d in (*s.dims, s.inner, *(d for _, dims, _ in s.loads() for d in dims)) if d}
    inputs = [i for i in p.inputs if any(reads(s, i.name) for s in stages)]
    for i in p.inputs:
        lacking = needed | {j.below for j in inputs if j.below} - {""}
        if i not in inputs and set(i.dims) & (lacking - {d for j in inputs for d in j.dims}):
            inputs.append(i)
    scalars = tuple(x for x in p.scalars if any(x[0] in s.names("scalar") for s in stages))
    sizes = {d for i in inputs for d in i.dims}
    branch = p.branch if p.branch and p.branch[0] in sizes else None
    return replace(p, inputs=tuple(inputs), scalars=scalars, stages=tuple(stages), branch=branch)


def reads(s: Stage, tensor: str) -> bool:
    """Whether a stage reads a tensor."""
    return s.index == tensor or any(
        e.op == "load" and e.value[0] == tensor or e.op == "gather" and e.value == tensor  # type: ignore[index]
        for x in s.exprs()
        for e in x.walk()
    )


@dataclass
class _Draw:
    r: random.Random

    def __post_init__(self) -> None:
        self.inputs: list[Input] = []
        self.scalars: list[tuple[str, str]] = []
        self.made: list[tuple[str, Dims, str]] = []  # (tensor, dims, dtype) of earlier stages
        self.here: Dims = ()  # the dimensions of the lanes of an expression
        self.reduced: list[tuple[str, str]] = []
        self.table = ""

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def program(self, name: str) -> Program:
        kind = self.r.choice(KINDS)
        count = self.r.choice((1, 1, 1, 1, 2, 2, 3))
        stages = [self.stage(kind, 0)]
        for k in range(1, count):
            stages.append(self.stage(self.following(stages[-1]), k, stages[-1].dims))
        branch = ("N", self.r.choice((20, 33, 64)), self.r.choice(BLOCKS)) if self.chance(0.1) else None
        sizes = {d for i in self.inputs for d in i.dims}
        branch = branch if "N" in sizes else None
        return pruned(Program(name, tuple(self.inputs), tuple(self.scalars), tuple(stages), self.chance(0.15), branch))

    def following(self, before: Stage) -> str:
        """The kind of a stage that reads what the one before wrote."""
        return self.r.choice(("tile", "row", "scan") if before.dims == ("M", "N") else ("map",))

    def stage(self, kind: str, k: int, dims: Dims | None = None) -> Stage:
        self.reduced = []
        made: dict[str, Callable[[str, Dims], Stage]] = {
            "map": self.map, "gather": self.gather, "tile": self.tile, "row": self.row, "scan": self.scan,
            "dot": self.dot, "atomic": self.atomic,
        }  # fmt: skip
        stage = made[kind](f"t{k}", dims or (("N",) if kind in ("map", "gather") else ("M", "N")))
        self.made.append((stage.output, stage.dims, stage.dtype))
        return stage

    # ---- kinds of stages

    def schedule(self, *grids: str, width: Sequence[str] = ("const",)) -> Schedule:
        other = self.r.choice(("", "0", "1"))
        return Schedule(self.r.choice(BLOCKS), self.r.choice(width), self.r.choice(grids or ("cdiv",)), other=other)

    def map(self, output: str, dims: Dims) -> Stage:
        self.here = dims
        width = ("const", "const", "const", "heuristic") if dims == ("N",) else ("const",)
        schedule = self.schedule("cdiv", "cdiv", "lambda", "persistent", width=width)
        return Stage("map", output, dims, self.full(self.dtype(), 3), schedule=schedule)

    def gather(self, output: str, dims: Dims) -> Stage:
        self.table = "table"
        self.inputs.append(Input("table", self.r.choice((*INTEGERS, "f32", "f32")), ("V",)))
        self.inputs.append(Input("index", self.r.choice(("i32", "i64")), dims, "V"))
        stage = self.map(output, dims)
        self.table = ""
        return stage

    def tile(self, output: str, dims: Dims) -> Stage:
        self.here = dims
        return Stage("tile", output, dims, self.full(self.dtype(), 3), schedule=self.schedule("cdiv", "flat"))

    def row(self, output: str, dims: Dims) -> Stage:
        form = self.r.choice(("block", "block", "scalar", "vector"))
        schedule = replace(self.schedule("cdiv", "cdiv", "persistent"), form=form)
        schedule = replace(schedule, width="power") if form == "block" else schedule
        self.here = dims
        reductions = tuple(self.reduction(f"s{k}_{output}", form) for k in range(self.r.choice((1, 1, 2))))
        wide = self.chance(0.5)
        self.here = dims if wide else dims[:1]
        self.reduced = [(x.name, "i32" if x.op == "argmax" else x.expr.dtype) for x in reductions]
        e = self.full(self.dtype(), 2) if wide else self.containing(self.dtype(), 2)
        return Stage("row", output, self.here, e, reductions, schedule, dims[1])

    def reduction(self, name: str, form: str) -> Reduction:
        op = self.r.choice(("sum", "sum", "sum", "max", "min", *(["argmax"] if form == "block" else [])))
        dtype = self.r.choice(("i32", "i32", "i64", "f32", "f32", "f32"))
        return Reduction(name, op, self.full(dtype, 1))

    def scan(self, output: str, dims: Dims) -> Stage:
        form = self.r.choice(("block", "scalar"))
        schedule = replace(self.schedule("cdiv"), form=form, width="power" if form == "block" else "const")
        self.here = dims
        r = Reduction(f"c_{output}", "sum", self.full(self.r.choice(("i32", "i64", "f32")), 1))
        self.reduced = [(r.name, r.expr.dtype)]
        return Stage("scan", output, dims, self.containing(self.dtype(), 2), (r,), schedule, dims[1])

    def dot(self, output: str, dims: Dims) -> Stage:
        dtype, total = self.r.choice((("f32", "f32"), ("f32", "f32"), ("f16", "f32"), ("i8", "i32")))
        a, b = Input("a", dtype, ("M", "K")), Input("b", dtype, ("K", "N"))
        self.inputs += [a, b]
        loads = tuple(Expr("load", dtype, (), (i.name, i.dims)) for i in (a, b))
        self.here, self.reduced = dims, [("d", total)]
        r = Reduction("d", "sum", Expr("mul", total, loads))
        return Stage("dot", output, dims, self.containing(self.dtype(), 1), (r,), self.schedule(), "K")

    def atomic(self, output: str, dims: Dims) -> Stage:
        dtype = self.r.choice(("i32", "i32", "i64", "f32"))
        if self.chance(0.5):
            self.here = ("N",)
            self.inputs += [Input("place", "i32", ("N",), "V"), Input("bins", "f32", ("V",))]
            return Stage("atomic", output, ("V",), self.full(dtype, 1), schedule=self.schedule(), inner="N", index="place")
        self.here = ("M", "N")
        return Stage("atomic", output, ("N",), self.full(dtype, 1), schedule=self.schedule(), inner="M")

    # ---- expressions

    def dtype(self) -> str:
        return self.r.choice((*INTEGERS, "i32", "f32", "f32", "f32", "f32", "f16"))

    def full(self, dtype: str, depth: int) -> Expr:
        """An expression that reads an element for each lane."""
        for _ in range(20):
            e = self.expr(dtype, depth)
            if any(x.op == "gather" or x.op == "load" and len(x.value[1]) == len(self.here) for x in e.walk()):  # type: ignore[index]
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
        ops = INT_OPS if dtype in INTEGERS else HALF_OPS if dtype == "f16" else REAL_OPS
        return self.operation(self.r.choice(ops), dtype, depth - 1)

    def operation(self, op: str, dtype: str, depth: int) -> Expr:
        match op:
            case "cast":
                return self.narrowed(dtype, depth)
            case "where":
                return Expr("where", dtype, (self.expr("bool", depth), self.expr(dtype, depth), self.right(dtype, depth)))
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
        source = self.r.choice([d for d in (*INTEGERS, "f32", "bool") if d != dtype])
        e = self.expr(source, depth)
        if source in FLOATS and dtype in INTEGERS:
            low = 0.0 if dtype[0] == "u" else -100.0
            e = Expr("pmin", source, (Expr("pmax", source, (e, self.constant(source, low))), self.constant(source, 100.0)))
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
        v = self.r.choice((0, 1, 2, 3, 5, 7, -1, -3, 100, high, low, high - 1))
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
        if not fitting or self.chance(0.15) and len(self.inputs) < 4:
            kind = dtype or self.r.choice((*INTEGERS, "f32", "f32", "f16"))
            fitting = [Input("xyzwuvpqgh"[len(self.inputs) % 10], kind, dims)]
            if fitting[0].name in {i.name for i in self.inputs}:
                fitting = [replace(fitting[0], name=f"x{len(self.inputs)}")]
            self.inputs += fitting
        i = self.r.choice(fitting)
        return Expr("load", i.dtype, (), (i.name, dims))

"""Random programs: each is a function of one random generator, so that a seed names it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from .expressions import Dims, Draw
from .grammar import INTEGERS, Expr, Input, Program, Reduction, Schedule, Stage

BLOCKS = (16, 32, 64)
KINDS = ("map",) * 5 + ("tile", "row", "row", "row", "scan", "dot", "gather", "atomic", "online", "exchange")


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
        (e.op == "load" and e.value[0] == tensor) or (e.op == "gather" and e.value == tensor)  # type: ignore[index]
        for x in s.exprs()
        for e in x.walk()
    )


class _Draw(Draw):
    """Programs and their stages."""

    def program(self, name: str) -> Program:
        kind = self.r.choice(KINDS)
        count = self.r.choice((1, 1, 1, 1, 1, 1, 1, 2, 2, 3))
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
            "dot": self.dot, "atomic": self.atomic, "online": self.online, "exchange": self.exchange,
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
        width = ("const", "const", "const", "heuristic", "tuned") if dims == ("N",) else ("const",)
        schedule = self.schedule("cdiv", "cdiv", "lambda", "persistent", width=width)
        schedule = replace(schedule, grid="lambda") if schedule.width == "tuned" else schedule
        return Stage("map", output, dims, self.full(self.dtype(), self.r.choice((1, 2, 2, 3))), schedule=schedule)

    def gather(self, output: str, dims: Dims) -> Stage:
        self.table = "table"
        self.inputs.append(Input("table", self.r.choice((*INTEGERS, "f32", "f32")), ("V",)))
        self.inputs.append(Input("index", self.r.choice(("i32", "i64")), dims, "V"))
        stage = self.map(output, dims)
        self.table = ""
        return stage

    def tile(self, output: str, dims: Dims) -> Stage:
        self.here = dims
        return Stage(
            "tile",
            output,
            dims,
            self.full(self.dtype(), self.r.choice((1, 2, 2, 3))),
            schedule=self.schedule("cdiv", "flat"),
        )

    def row(self, output: str, dims: Dims) -> Stage:
        form = self.r.choice(("block", "block", "scalar", "vector"))
        schedule = replace(self.schedule("cdiv", "cdiv", "persistent"), form=form)
        schedule = replace(schedule, width="power") if form == "block" else schedule
        self.here = dims
        reductions = tuple(self.reduction(f"s{k}_{output}", form) for k in range(self.r.choice((1, 1, 2))))
        wide = self.chance(0.5)
        self.here = dims if wide else dims[:1]
        self.reduced = [(x.name, "i32" if x.op in ("argmax", "argmin") else x.expr.dtype) for x in reductions]
        e = self.full(self.dtype(), 2) if wide else self.containing(self.dtype(), 2)
        return Stage("row", output, self.here, e, reductions, schedule, dims[1])

    def reduction(self, name: str, form: str) -> Reduction:
        op = self.r.choice(("sum", "sum", "sum", "max", "min", *(["argmax", "argmin"] if form == "block" else [])))
        dtype = self.r.choice(("i32", "i32", "i64", "f32", "f32", "f32"))
        return Reduction(name, op, self.full(dtype, 1))

    def scan(self, output: str, dims: Dims) -> Stage:
        form = self.r.choice(("block", "scalar"))
        schedule = replace(self.schedule("cdiv"), form=form, width="power" if form == "block" else "const")
        self.here = dims
        r = Reduction(f"c_{output}", "sum", self.full(self.r.choice(("i32", "i64", "f32")), 1))
        self.reduced = [(r.name, r.expr.dtype)]
        return Stage("scan", output, dims, self.containing(self.dtype(), 2), (r,), schedule, dims[1])

    def online(self, output: str, dims: Dims) -> Stage:
        """A softmax of rows, or the logarithm of its divisor."""
        form = self.r.choice(("online", "online", "block"))
        width = "power" if form == "block" else "const"
        schedule = replace(self.schedule("cdiv", "persistent"), form=form, width=width)
        self.here = dims
        x = self.load(dims, "f32")
        x = self.r.choice((x, Expr("mul", "f32", (x, self.constant("f32", 0.5))), Expr("abs", "f32", (x,))))
        top, total = (Expr("reduced", "f32", (), f"{n}_{output}") for n in "ml")
        power = Expr("exp", "f32", (Expr("sub", "f32", (x, top)),))
        reductions = (Reduction(f"m_{output}", "max", x), Reduction(f"l_{output}", "sum", power))
        if self.chance(0.5):
            return Stage("row", output, dims, Expr("div", "f32", (power, total)), reductions, schedule, dims[1])
        e = Expr("add", "f32", (top, Expr("log", "f32", (total,))))
        return Stage("row", output, dims[:1], e, reductions, schedule, dims[1])

    def exchange(self, output: str, dims: Dims) -> Stage:
        self.here = dims
        schedule = replace(self.schedule("cdiv"), width="power")
        return Stage("exchange", output, dims, self.full(self.dtype(), 1), schedule=schedule, inner=dims[1])

    def dot(self, output: str, dims: Dims) -> Stage:
        dtype, total = self.r.choice((("f32", "f32"), ("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32")))
        a, b = Input("a", dtype, ("M", "K")), Input("b", dtype, ("K", "N"))
        self.inputs += [a, b]
        loads = tuple(Expr("load", dtype, (), (i.name, i.dims)) for i in (a, b))
        self.here, self.reduced = dims, [("d", total)]
        r = Reduction("d", "sum", Expr("mul", total, loads))
        schedule = replace(self.schedule(), other=self.r.choice(("", "0")))  # 1 * 1 is added otherwise
        return Stage("dot", output, dims, self.containing(self.dtype(), 1), (r,), schedule, "K")

    def atomic(self, output: str, dims: Dims) -> Stage:
        dtype = self.r.choice(("i32", "i32", "i64", "f32"))
        if self.chance(0.5):
            self.here = ("N",)
            self.inputs += [Input("place", "i32", ("N",), "V"), Input("bins", "f32", ("V",))]
            return Stage(
                "atomic", output, ("V",), self.full(dtype, 1), schedule=self.schedule(), inner="N", index="place"
            )
        self.here = ("M", "N")
        return Stage("atomic", output, ("N",), self.full(dtype, 1), schedule=self.schedule(), inner="M")

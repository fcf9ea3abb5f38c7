"""The typed programs of the fuzzer as data. A kernel and its PyTorch reference are two renderings of the same data.

    program ::= input* scalar* stage*                      each stage is one launch, whose output later stages read
    stage   ::= map | tile | row | scan | dot | atomic | exchange, with an expression and a schedule
    e       ::= load | index | constant | size | scalar | reduced | op(e, ...)

Every expression has a dtype, and an operation of two dtypes promotes as Triton does; the reference says that promotion
with `.to`. Weak leaves (constants, sizes, scalars) take the dtype of the operand beside them and stand on the right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

INTEGERS = ("i8", "i16", "i32", "i64", "u8")
FLOATS = ("f16", "bf16", "f32", "f64")
HALVES = ("f16", "bf16")
DTYPES = (*INTEGERS, *FLOATS, "bool")
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "bool": 1}
LONG = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "f16": "float16",
        "bf16": "bfloat16", "f32": "float32", "f64": "float64", "bool": "bool"}  # fmt: skip
WEAK = ("const", "size", "scalar")
LEAVES = ("load", "index", "reduced", *WEAK)


def limits(dtype: str) -> tuple[int, int]:
    """The least and the largest number of an integer dtype."""
    bits = BITS[dtype]
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def promoted(a: str, b: str) -> str:
    """The dtype of an operation on two dtypes in Triton (triton.language.semantic: computation_type_impl)."""
    for wide in FLOATS[::-1]:
        if wide in (a, b):
            return wide
    if a[0] == b[0]:
        return max(a, b, key=BITS.__getitem__)
    unsigned, signed = (a, b) if a[0] == "u" else (b, a)
    return unsigned if BITS[unsigned] >= BITS[signed] else signed


@dataclass(frozen=True, slots=True)
class Op:
    """How an operation is written in a kernel and in a reference; `result`: "same" as its operands, "bool", or "cast";
    `kinds`: of its operands, any of i (integers), f (floats), b (bool)."""

    kernel: str
    reference: str
    arity: int = 2
    kinds: str = "if"
    result: str = "same"


def _infix(sign: str, kinds: str = "if", result: str = "same") -> Op:
    return Op(f"({{0}} {sign} {{1}})", f"({{0}} {sign} {{1}})", 2, kinds, result)


def _call(name: str, arity: int = 1, kinds: str = "f", reference: str = "") -> Op:
    args = ", ".join(f"{{{k}}}" for k in range(arity))
    return Op(f"tl.{name}({args})", f"torch.{reference or name}({args})", arity, kinds)


_NAN = "propagate_nan=tl.PropagateNan.ALL"
OPS = {
    "add": _infix("+"), "sub": _infix("-"), "mul": _infix("*"),
    "div": _infix("/", "f"),
    "quo": Op("({0} // {1})", "torch.div({0}, {1}, rounding_mode='trunc')", 2, "i"),
    "rem": Op("({0} % {1})", "torch.fmod({0}, {1})", 2, "i"),
    "min": _call("minimum", 2, "i"), "max": _call("maximum", 2, "i"),
    "fmin": _call("minimum", 2, "f", "fmin"), "fmax": _call("maximum", 2, "f", "fmax"),
    "pmin": Op(f"tl.minimum({{0}}, {{1}}, {_NAN})", "torch.minimum({0}, {1})", 2, "f"),
    "pmax": Op(f"tl.maximum({{0}}, {{1}}, {_NAN})", "torch.maximum({0}, {1})", 2, "f"),
    "neg": Op("(-{0})", "(-{0})", 1), "abs": _call("abs", 1, "if"),
    "and": _infix("&", "ib"), "or": _infix("|", "ib"), "xor": _infix("^", "ib"),
    "not": Op("(~{0})", "(~{0})", 1, "ib"),
    "shl": _infix("<<", "i"), "shr": _infix(">>", "i"),
    "lt": _infix("<", "if", "bool"), "le": _infix("<=", "if", "bool"), "gt": _infix(">", "if", "bool"),
    "ge": _infix(">=", "if", "bool"), "eq": _infix("==", "if", "bool"), "ne": _infix("!=", "if", "bool"),
    "isnan": Op("({0} != {0})", "torch.isnan({0})", 1, "f", "bool"),
    "isinf": Op("(tl.abs({0}) == float('inf'))", "torch.isinf({0})", 1, "f", "bool"),
    "where": Op("tl.where({0}, {1}, {2})", "torch.where({0}, {1}, {2})", 3, "if"),
    "cast": Op("{0}.to(tl.{d})", "{0}.to(torch.{d})", 1, "ifb", "cast"),
    "exp": _call("exp"), "log": _call("log"), "sqrt": _call("sqrt"), "rsqrt": _call("rsqrt"),
    "floor": _call("floor"), "sin": _call("sin"),
}  # fmt: skip
BOTH_TENSORS = ("min", "max", "fmin", "fmax", "pmin", "pmax")  # of the reference: no numbers


@dataclass(frozen=True, slots=True)
class Expr:
    """An operation on expressions. `value`: of a constant the number; of a load (tensor, its dims); of an index its
    axis; of other leaves their name."""

    op: str
    dtype: str
    args: tuple[Expr, ...] = ()
    value: object = None

    def walk(self) -> Iterator[Expr]:
        """This expression and all below it, from the top."""
        yield self
        for a in self.args:
            yield from a.walk()

    def at(self, path: tuple[int, ...]) -> Expr:
        """The expression below at a path of argument numbers."""
        return self if not path else self.args[path[0]].at(path[1:])

    def put(self, path: tuple[int, ...], new: Expr) -> Expr:
        """The same with another expression at a path."""
        if not path:
            return new
        k = path[0]
        return replace(self, args=(*self.args[:k], self.args[k].put(path[1:], new), *self.args[k + 1 :]))

    def paths(self) -> Iterator[tuple[int, ...]]:
        """The paths of all expressions in it, from the top."""
        yield ()
        for k, a in enumerate(self.args):
            yield from ((k, *p) for p in a.paths())


@dataclass(frozen=True, slots=True)
class Reduction:
    """One value of each row: `op` (sum, max, min, argmax, argmin) of an expression, in its dtype."""

    name: str
    op: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a stage runs. The values of all fields after `other` are those of a right kernel unless a mutant changed
    them.

    block, width   the tile: a constant, what an autotuner chooses (`tuned`), or a power of two (`power`) that covers a
                   row
    grid           "cdiv", "lambda", "persistent" (a loop over tiles), "flat" (one axis for two)
    form           of rows: "block", "scalar" or "vector" accumulators of a loop, "online" for a rescaled sum
    other          what masked loads give: "" for nothing
    """

    block: int = 32
    width: str = "const"
    grid: str = "cdiv"
    form: str = "block"
    other: str = ""
    less: str = "<"  # of the masks
    bound: int = 0  # added to the size in the masks
    shift: int = 0  # added to the index
    load_mask: bool = True
    store_mask: bool = True
    selected: bool = True  # masked lanes are taken out of reductions
    identity: str = ""  # instead of the identity of a reduction
    start: int = 0  # of loops
    stop: int = 0  # added to the end of loops
    step: int = 0  # added to the step of loops
    cells: int = 0  # added to the number of programs
    cap: int = 0  # the most programs
    widest: int = 0  # the widest tile
    swapped: bool = False  # the axes of the output
    carry: bool = True  # of scans; the rescaling of online sums; the barrier of an exchange
    fixed: bool = False  # the grid of a tuned kernel does not ask which tile was chosen
    dense: bool = False  # strides of inputs are taken for those of contiguous tensors
    relaxed: bool = False  # a store where an atomic addition is due


@dataclass(frozen=True, slots=True)
class Stage:
    """One launch. `dims`: of its output; `axis`: what a row is reduced over."""

    kind: str
    output: str
    dims: tuple[str, ...]
    expr: Expr
    reductions: tuple[Reduction, ...] = ()
    schedule: Schedule = field(default_factory=Schedule)
    inner: str = ""  # the dimension that rows, scans and dots run over
    index: str = ""  # of atomics: the tensor of places

    @property
    def dtype(self) -> str:
        """Of the output."""
        return self.expr.dtype

    def exprs(self) -> tuple[Expr, ...]:
        """All expressions, the reduced ones first."""
        return (*(r.expr for r in self.reductions), self.expr)

    def with_expr(self, k: int, e: Expr) -> Stage:
        """The same with the k-th of `exprs` changed."""
        if k == len(self.reductions):
            return replace(self, expr=e)
        changed = (*self.reductions[:k], replace(self.reductions[k], expr=e), *self.reductions[k + 1 :])
        return replace(self, reductions=changed)

    def loads(self) -> tuple[tuple[str, tuple[str, ...], str], ...]:
        """(tensor, dims, dtype) of what it reads, each once."""
        found = {(*e.value, e.dtype): None for x in self.exprs() for e in x.walk() if e.op == "load"}  # type: ignore[misc]
        return tuple(found)

    def names(self, op: str) -> tuple[str, ...]:
        """The sizes or scalars that its expressions use, each once."""
        return tuple(dict.fromkeys(str(e.value) for x in self.exprs() for e in x.walk() if e.op == op))


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor of the case; `below`: its values v are 0 <= v < below; `strided`: of any positive strides."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    below: str = ""
    strided: bool = False

    @property
    def spec(self) -> str:
        """As a case says it."""
        return (
            f"{self.dtype}[{','.join(self.dims)}]"
            + (f" < {self.below}" if self.below else "")
            + " strided" * self.strided
        )


@dataclass(frozen=True, slots=True)
class Program:
    """Inputs, scalars as (name, dtype), stages. `branch`: (size, limit, block): the host function takes another block
    from that size on."""

    name: str
    inputs: tuple[Input, ...]
    scalars: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    every: bool = False  # the outputs of all stages are returned
    branch: tuple[str, int, int] | None = None

    def put(self, k: int, stage: Stage) -> Program:
        """The same with another stage k."""
        return replace(self, stages=(*self.stages[:k], stage, *self.stages[k + 1 :]))

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of its dimensions."""
        named = [d for i in self.inputs for d in (*i.dims, i.below)]
        return tuple(dict.fromkeys(d for d in named if d and not d.isdigit()))


def features(program: Program) -> tuple[str, ...]:
    """The features that a program uses, each once: dtypes, operations, kinds of stages, forms of schedules."""
    found: list[str] = [f"input {i.dtype}" for i in program.inputs] + ["strided"] * any(
        i.strided for i in program.inputs
    )
    found += [f"scalar {d}" for _, d in program.scalars]
    found += [f"{len(program.stages)} launches"] + ["host branch"] * (program.branch is not None)
    for s in program.stages:
        found += [f"stage {s.kind}", f"output {s.dtype}", f"grid {s.schedule.grid}", f"tile {s.schedule.width}"]
        found += [f"form {s.schedule.form}"] * (s.kind in ("row", "scan")) + [f"reduce {r.op}" for r in s.reductions]
        for e in (e for x in s.exprs() for e in x.walk()):
            found.append(e.op if e.op in LEAVES else f"op {e.op}")
            found += [f"arithmetic {e.dtype}"] * (e.op in ("add", "sub", "mul"))
    return tuple(dict.fromkeys(found))


FAULTS = tuple(f.name for f in fields(Schedule))[5:]

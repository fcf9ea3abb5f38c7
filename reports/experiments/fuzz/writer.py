"""The parts that kernels of all kinds are written from: expressions, lanes, masks, loads and stores, and the launch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from .grammar import FLOATS, LONG, OPS, Expr, Reduction, Stage, limits

Dims = tuple[str, ...]
TUNED = (16, 64)  # tiles of an autotuner
TILE = {1: ("BLOCK",), 2: ("BLOCK_M", "BLOCK")}


def number(v: object, dtype: str) -> str:
    """A constant as source."""
    if isinstance(v, float) and v in (float("inf"), float("-inf")):
        return f"float('{v}')"
    return repr(float(v)) if dtype in FLOATS else repr(v)  # type: ignore[arg-type]


def written(e: Expr, leaf: Mapping[tuple[str, object], str]) -> str:
    """An expression in Triton's language; `leaf`: the variables by operation and value."""
    if e.op == "const":
        return number(e.value, e.dtype)
    if e.op in ("size", "scalar"):
        return str(e.value)
    if not e.args:
        return leaf[e.op, e.value]
    args = [written(a, leaf) for a in e.args]
    if e.op == "gather":
        mask = ", mask=" + leaf["mask", ""] if leaf["mask", ""] else ""
        return f"tl.load({e.value}_ptr + {args[0]}{mask})"
    return OPS[e.op].kernel.format(*args, d=LONG[e.dtype])


def gathered(stage: Stage) -> tuple[str, ...]:
    """The tensors that are read at places that others hold."""
    return tuple(dict.fromkeys(str(e.value) for x in stage.exprs() for e in x.walk() if e.op == "gather"))


def identity(r: Reduction) -> str:
    """The neutral value of a reduction, as source text."""
    if r.op == "sum":
        return "0.0" if r.expr.dtype in FLOATS else "0"
    if r.expr.dtype in FLOATS:
        return "float('-inf')" if r.op in ("max", "argmax") else "float('inf')"
    return str(limits(r.expr.dtype)[0 if r.op in ("max", "argmax") else 1])


@dataclass
class Writer:
    """Lines of one kernel. `leaf`: variables of what was read."""

    stage: Stage
    name: str
    block: str
    lines: list[str] = field(default_factory=list)
    leaf: dict[tuple[str, object], str] = field(default_factory=dict)
    indent: str = "    "
    meta: dict[str, str] = field(default_factory=dict)
    grid: list[str] = field(default_factory=list)
    zeroed: bool = False
    scratch: bool = False  # the kernel takes a buffer besides
    heuristic: bool = False
    tuned: bool = False
    strided: frozenset[str] = frozenset()  # inputs
    vector: Dims = ()  # the dimensions that have lanes

    # ---- text

    def say(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def loop(self, head: str) -> None:
        self.say(head)
        self.indent += "    "

    def end(self) -> None:
        self.indent = self.indent[4:]

    def sizes(self) -> tuple[str, ...]:
        """The sizes that the kernel takes."""
        named = [d for _, dims, _ in self.stage.loads() for d in dims]
        found = [*self.stage.dims, self.stage.inner, *named, *self.stage.names("size")]
        return tuple(dict.fromkeys(d for d in found if d and not d.isdigit()))

    def strides(self) -> dict[str, str]:
        """The strides that the kernel takes, and what the host function gives for them."""
        mine = [t for t in self.tensors() if t in self.strided]
        dense = self.stage.schedule.dense
        return {f"{t}_s{k}": (f"{t}.shape[1]" if k == 0 else "1") if dense else f"{t}.stride({k})"
                for t in mine for k in (0, 1)}  # fmt: skip

    def tensors(self) -> tuple[str, ...]:
        """The tensors that the kernel takes."""
        found = [*(t for t, _, _ in self.stage.loads()), *gathered(self.stage), self.stage.index]
        return tuple(dict.fromkeys(t for t in found if t))

    def source(self) -> str:
        pointers = [f"{t}_ptr" for t in (*self.tensors(), *["scratch"] * self.scratch, "out")]
        constants = [f"{n}: tl.constexpr" for n in (*self.meta, *(["EVEN"] if self.heuristic else []))]
        args = ", ".join([*pointers, *self.sizes(), *self.strides(), *self.stage.names("scalar"), *constants])
        head = ["@triton.jit", f"def {self.name}({args}):"]
        if self.tuned:
            configs = ", ".join(f'triton.Config({{"BLOCK": {b}}})' for b in TUNED)
            head.insert(0, f'@triton.autotune(configs=[{configs}], key=["N"])')
        if self.heuristic:
            head.insert(0, '@triton.heuristics({"EVEN": lambda a: a["N"] % a["BLOCK"] == 0})')
        return "\n".join([*head, *self.lines]) + "\n"

    def call(self) -> str:
        s, sched = self.stage, self.stage.schedule
        cells = [c + (f" + {sched.cells}" if sched.cells else "") for c in self.grid]
        cells[0] = f"min({cells[0]}, {sched.cap})" if sched.cap else cells[0]
        grid = f"({', '.join(cells)},)" if len(cells) == 1 else f"({', '.join(cells)})"
        if sched.grid == "lambda" and not sched.fixed:
            grid = "lambda meta: " + grid.replace(self.meta["BLOCK"], 'meta["BLOCK"]')
        made = "torch.zeros" if self.zeroed else "torch.empty"
        shape = ", ".join(s.dims) + ("," if len(s.dims) == 1 else "")
        scratch = ["scratch"] * self.scratch
        meta = {k: v for k, v in self.meta.items() if not (self.tuned and k == "BLOCK")}
        numbers = [*self.sizes(), *self.strides().values(), *s.names("scalar"), *(f"{k}={v}" for k, v in meta.items())]
        args = ", ".join([*self.tensors(), *scratch, s.output, *numbers])
        buffers = [f"{b} = {made}(({shape}), dtype=torch.{LONG[s.dtype]})" for b in (*scratch, s.output)]
        return "\n    ".join([*buffers, f"{self.name}[{grid}]({args})"])

    # ---- parts of kernels

    def width(self, size: str) -> str:
        """The tile of the host code that covers or divides a size."""
        s = self.stage.schedule
        if s.width != "power":
            return self.block or str(s.block)
        wide = f"triton.next_power_of_2({size})"
        return f"min({wide}, {s.widest})" if s.widest else wide

    def lanes(self, dim: str, start: str, block: str, axis: str = "") -> None:
        """The lanes of one dimension, and their mask."""
        s, lane = self.stage.schedule, dim.lower()
        shift = f" + {s.shift}" if s.shift else ""
        arange = f"tl.arange(0, {block}){axis}"
        self.say(f"{lane} = {start + ' + ' if start else ''}{arange}{shift}")
        bound = f"{dim} + {s.bound}" if s.bound else dim
        if self.heuristic:
            self.say("if EVEN:")
            self.say(f"    in_{lane} = {lane} >= 0")
            self.say("else:")
            self.say(f"    in_{lane} = {lane} {s.less} {bound}")
        else:
            self.say(f"in_{lane} = {lane} {s.less} {bound}")
        self.leaf["index", dim] = lane

    def mask(self, dims: Iterable[str]) -> str:
        """The condition that lanes lie in the tensor; "" where there are no lanes."""
        return " & ".join(f"in_{d.lower()}" for d in dict.fromkeys(dims) if d in self.vector)

    def place(self, dims: Dims, tensor: str = "") -> str:
        """The offset of an element in a tensor, which is contiguous unless it is one of `strided`."""
        if not dims:
            return "0"
        if tensor in self.strided:
            return " + ".join(f"({self.leaf['index', d]}) * {tensor}_s{k}" for k, d in enumerate(dims))
        out = self.leaf["index", dims[0]]
        for d in dims[1:]:
            out = f"({out}) * {d} + {self.leaf['index', d]}"
        return out

    def load(self, only: Iterable[Expr] = ()) -> None:
        """Reads what expressions need and what was not read yet."""
        s = self.stage.schedule
        self.leaf["mask", ""] = self.mask(self.vector)
        for e in (x for top in only for x in top.walk() if x.op == "load"):
            if (e.op, e.value) in self.leaf:
                continue
            tensor, dims = cast(tuple[str, Dims], e.value)
            mask = self.mask(dims) if s.load_mask else ""
            other = f", other={s.other}" if mask and s.other and e.dtype != "bool" else ""
            name = "_".join([tensor, *(d.lower() for d in dims)])
            self.say(
                f"{name} = tl.load({tensor}_ptr + {self.place(dims, tensor)}{f', mask={mask}' if mask else ''}{other})"
            )
            self.leaf[e.op, e.value] = name

    def expr(self, e: Expr) -> str:
        return written(e, self.leaf)

    def store(self, value: str, dims: Dims) -> None:
        """Writes the output."""
        s = self.stage.schedule
        mask = self.mask(dims) if s.store_mask else ""
        place = self.place(dims[::-1] if s.swapped else dims)
        self.say(f"tl.store(out_ptr + {place}, {value}{f', mask={mask}' if mask else ''})")

    def reducible(self, r: Reduction, dims: Iterable[str]) -> str:
        """The expression of a reduction, with its identity where lanes lie outside."""
        s, mask = self.stage.schedule, self.mask(dims)
        if not s.selected or not mask:
            return self.expr(r.expr)
        return f"tl.where({mask}, {self.expr(r.expr)}, {s.identity or identity(r)})"

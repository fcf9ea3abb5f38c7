"""A stage as a Triton kernel and the host code that launches it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .grammar import FLOATS, LONG, OPS, Expr, Reduction, Stage, limits

Dims = tuple[str, ...]
TILE = {1: ("BLOCK",), 2: ("BLOCK_M", "BLOCK")}


@dataclass(frozen=True, slots=True)
class Kernel:
    """Source of a kernel, and the line of the host function that calls it."""

    source: str
    call: str


def kernel(stage: Stage, number: int, scalars: Iterable[str] = (), block: str = "") -> Kernel:
    """The kernel k<number> of a stage. `block`: a variable of the host function that holds the tile."""
    w = _Writer(stage, f"k{number}", block)
    KINDS[stage.kind](w)
    return Kernel(w.source(), w.call())


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
    """What does not change a reduction."""
    if r.op == "sum":
        return "0.0" if r.expr.dtype in FLOATS else "0"
    if r.expr.dtype in FLOATS:
        return "float('-inf')" if r.op in ("max", "argmax") else "float('inf')"
    return str(limits(r.expr.dtype)[0 if r.op in ("max", "argmax") else 1])


@dataclass
class _Writer:
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
    heuristic: bool = False
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

    def tensors(self) -> tuple[str, ...]:
        """The tensors that the kernel takes."""
        found = [*(t for t, _, _ in self.stage.loads()), *gathered(self.stage), self.stage.index]
        return tuple(dict.fromkeys(t for t in found if t))

    def source(self) -> str:
        pointers = [f"{t}_ptr" for t in (*self.tensors(), "out")]
        constants = [f"{n}: tl.constexpr" for n in (*self.meta, *(["EVEN"] if self.heuristic else []))]
        args = ", ".join([*pointers, *self.sizes(), *self.stage.names("scalar"), *constants])
        head = ["@triton.jit", f"def {self.name}({args}):"]
        if self.heuristic:
            head.insert(0, '@triton.heuristics({"EVEN": lambda a: a["N"] % a["BLOCK"] == 0})')
        return "\n".join([*head, *self.lines]) + "\n"

    def call(self) -> str:
        s, sched = self.stage, self.stage.schedule
        cells = [c + (f" + {sched.cells}" if sched.cells else "") for c in self.grid]
        cells[0] = f"min({cells[0]}, {sched.cap})" if sched.cap else cells[0]
        grid = f"({', '.join(cells)},)" if len(cells) == 1 else f"({', '.join(cells)})"
        if sched.grid == "lambda":
            grid = "lambda meta: " + grid.replace(self.meta["BLOCK"], 'meta["BLOCK"]')
        made = "torch.zeros" if self.zeroed else "torch.empty"
        shape = ", ".join(s.dims) + ("," if len(s.dims) == 1 else "")
        args = [*self.tensors(), s.output, *self.sizes(), *s.names("scalar"), *(f"{k}={v}" for k, v in self.meta.items())]
        return f"{s.output} = {made}(({shape}), dtype=torch.{LONG[s.dtype]})\n    {self.name}[{grid}]({', '.join(args)})"

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

    def place(self, dims: Dims) -> str:
        """The offset of an element in a contiguous tensor."""
        if not dims:
            return "0"
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
            tensor, dims = e.value  # type: ignore[misc]
            mask = self.mask(dims) if s.load_mask else ""
            other = f", other={s.other}" if mask and s.other and e.dtype != "bool" else ""
            name = "_".join([tensor, *(d.lower() for d in dims)])
            self.say(f"{name} = tl.load({tensor}_ptr + {self.place(dims)}{f', mask={mask}' if mask else ''}{other})")
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


# ---- kinds -----------------------------------------------------------------------------------------------------------


def _map(w: _Writer) -> None:
    """out[n] = e, in tiles of one dimension."""
    (dim,) = w.stage.dims
    s = w.stage.schedule
    w.vector, w.meta["BLOCK"], w.heuristic = (dim,), w.width(dim), s.width == "heuristic" and dim == "N"
    tiles = f"triton.cdiv({dim}, {w.meta['BLOCK']})"
    w.grid = [f"min({tiles}, 4)" if s.grid == "persistent" else tiles if s.width != "power" else "1"]
    start = "tl.program_id(0) * BLOCK"
    if s.grid == "persistent":
        w.loop(f"for t in range(tl.program_id(0), tl.cdiv({dim}, BLOCK){_plus(s.stop)}, tl.num_programs(0){_plus(s.step)}):")
        start = "t * BLOCK"
    w.lanes(dim, start, "BLOCK")
    w.load([w.stage.expr])
    w.store(w.expr(w.stage.expr), (dim,))


def _tile(w: _Writer) -> None:
    """out[m, n] = e, in tiles of two dimensions."""
    m, n = w.stage.dims
    s = w.stage.schedule
    w.vector, w.meta = (m, n), {"BLOCK_M": "8", "BLOCK": w.block or str(s.block)}
    rows, columns = f"triton.cdiv({m}, 8)", f"triton.cdiv({n}, {w.meta['BLOCK']})"
    if s.grid == "flat":
        w.grid = [f"{rows} * {columns}"]
        w.say(f"across = tl.cdiv({n}, BLOCK){_plus(s.step)}")
        starts = "tl.program_id(0) // across * BLOCK_M", "tl.program_id(0) % across * BLOCK"
    else:
        w.grid = [rows, columns]
        starts = "tl.program_id(0) * BLOCK_M", "tl.program_id(1) * BLOCK"
    w.lanes(m, starts[0], "BLOCK_M", "[:, None]")
    w.lanes(n, starts[1], "BLOCK", "[None, :]")
    w.load([w.stage.expr])
    w.store(w.expr(w.stage.expr), (m, n))


def _plus(k: int) -> str:
    return f" + {k}" if k else ""


def _rows(w: _Writer) -> tuple[str, str]:
    """One program for each row; the row and what it runs over."""
    row, inner = w.stage.dims[0], w.stage.inner
    s = w.stage.schedule
    w.leaf["index", row], w.vector, w.grid = "r", (inner,), [row]
    if s.grid == "persistent":
        w.grid = [f"min({row}, 3)"]
        w.loop(f"for r in range(tl.program_id(0), {row}{_plus(s.stop)}, tl.num_programs(0){_plus(s.step)}):")
    else:
        w.say("r = tl.program_id(0)")
    return row, inner


def _row(w: _Writer) -> None:
    """Reductions of each row, then an expression of them for the row or for each of its elements."""
    _, inner = _rows(w)
    s, st = w.stage.schedule, w.stage
    wide = len(st.dims) == 2
    if s.form == "block":
        w.meta["BLOCK"] = w.width(inner)
        w.lanes(inner, "", "BLOCK")
        w.load(st.exprs())
        for r in st.reductions:
            w.say(f"{r.name} = {_reduced(r, w.reducible(r, (inner,)))}")
            w.leaf["reduced", r.name] = r.name
        w.store(w.expr(st.expr), st.dims)
        return
    w.meta["BLOCK"] = w.block or str(s.block)
    for r in st.reductions:
        shape = "(BLOCK,)" if s.form == "vector" else "()"
        w.say(f"{r.name} = tl.full({shape}, {s.identity or identity(r)}, tl.{LONG[r.expr.dtype]})")
    w.vector = (inner,)
    kept = dict(w.leaf)
    _loop(w, inner)
    w.load(r.expr for r in st.reductions)
    for r in st.reductions:
        value = w.reducible(r, (inner,))
        value = value if s.form == "vector" else _reduced(r, value)
        w.say(f"{r.name} = {_joined(r, value)}")
    w.end()
    w.leaf = kept
    for r in st.reductions:
        if s.form == "vector":
            w.say(f"{r.name} = {_reduced(r, r.name)}")
        w.leaf["reduced", r.name] = r.name
    if wide:
        _loop(w, inner)
    w.load([st.expr])
    w.store(w.expr(st.expr), st.dims)


def _loop(w: _Writer, inner: str) -> None:
    s = w.stage.schedule
    w.loop(f"for start in range({s.start}, {inner}{_plus(s.stop)}, BLOCK{_plus(s.step)}):")
    w.lanes(inner, "start", "BLOCK")


def _reduced(r: Reduction, value: str) -> str:
    """A tile to one number."""
    told = f"tl.{r.op}({value}, 0)"
    return told if r.op == "argmax" else f"{told}.to(tl.{LONG[r.expr.dtype]})"


def _joined(r: Reduction, value: str) -> str:
    """An accumulator with one more value."""
    return {"sum": f"{r.name} + {value}", "max": f"tl.maximum({r.name}, {value})",
            "min": f"tl.minimum({r.name}, {value})"}[r.op]  # fmt: skip


def _scan(w: _Writer) -> None:
    """Running sums of each row, then an expression of them for each element."""
    _, inner = _rows(w)
    s, st = w.stage.schedule, w.stage
    (r,) = st.reductions
    kind = LONG[r.expr.dtype]
    if s.form == "block":
        w.meta["BLOCK"] = w.width(inner)
        w.lanes(inner, "", "BLOCK")
    else:
        w.meta["BLOCK"] = w.block or str(s.block)
        w.say(f"carry = tl.full((), 0, tl.{kind})")
        _loop(w, inner)
    w.load(st.exprs())
    w.say(f"v = {w.reducible(r, (inner,))}")
    carried = " + carry" if s.form != "block" and s.carry else ""
    w.say(f"{r.name} = tl.cumsum(v, 0).to(tl.{kind}){carried}")
    if s.form != "block":
        w.say(f"carry += tl.sum(v, 0).to(tl.{kind})")
    w.leaf["reduced", r.name] = r.name
    w.store(w.expr(st.expr), st.dims)


def _dot(w: _Writer) -> None:
    """A matrix product in tiles, then an expression of it."""
    st, s = w.stage, w.stage.schedule
    (m, n), k, (r,) = st.dims, st.inner, st.reductions
    a, b = r.expr.args
    w.meta = {"BLOCK_M": "16", "BLOCK": "16", "BLOCK_K": "16"}
    w.vector, w.grid = (m, n, k), [f"triton.cdiv({m}, 16)", f"triton.cdiv({n}, 16)"]
    w.lanes(m, "tl.program_id(0) * BLOCK_M", "BLOCK_M", "[:, None]")
    w.lanes(n, "tl.program_id(1) * BLOCK", "BLOCK", "[None, :]")
    w.say(f"{r.name} = tl.zeros((BLOCK_M, BLOCK), tl.{LONG[r.expr.dtype]})")
    kl = k.lower()
    w.loop(f"for start in range({s.start}, {k}{_plus(s.stop)}, BLOCK_K{_plus(s.step)}):")
    w.say(f"{kl} = start + tl.arange(0, BLOCK_K)")
    bound = f"{k} - start" if False else k
    other = s.other or ("0.0" if a.dtype in FLOATS else "0")
    for e, axis, name in ((a, "[None, :]", "a"), (b, "[:, None]", "b")):
        w.leaf["index", k] = f"{kl}{axis}"
        tensor, dims = e.value  # type: ignore[misc]
        outer = m if name == "a" else n
        told = f"in_{outer.lower()} & ({kl}{axis} {s.less} {bound})" if s.selected else f"in_{outer.lower()}"
        w.say(f"{name} = tl.load({tensor}_ptr + {w.place(dims)}, mask={told}, other={other})")
    precise = ", input_precision='ieee'" if a.dtype == "f32" else ""
    w.say(f"{r.name} = tl.dot(a, b, {r.name}, out_dtype=tl.{LONG[r.expr.dtype]}{precise})")
    w.end()
    w.leaf["reduced", r.name] = r.name
    w.vector = (m, n)
    w.load([st.expr])
    w.store(w.expr(st.expr), st.dims)


def _atomic(w: _Writer) -> None:
    """out[index[n]] += e, or the sums of columns."""
    st, s = w.stage, w.stage.schedule
    w.zeroed = True
    add = "tl.store" if s.relaxed else "tl.atomic_add"
    if st.index:
        w.vector, w.meta["BLOCK"] = (st.inner,), w.block or str(s.block)
        w.grid = [f"triton.cdiv({st.inner}, {w.meta['BLOCK']})"]
        w.lanes(st.inner, "tl.program_id(0) * BLOCK", "BLOCK")
        w.say(f"place = tl.load({st.index}_ptr + {st.inner.lower()}, mask=in_{st.inner.lower()}, other=0)")
        w.load([st.expr])
        mask = w.mask((st.inner,)) if s.store_mask else ""
        w.say(f"{add}(out_ptr + place, {w.expr(st.expr)}{f', mask={mask}' if mask else ''})")
        return
    m, n = st.inner, st.dims[0]
    w.vector, w.meta = (m, n), {"BLOCK_M": "8", "BLOCK": w.block or str(s.block)}
    w.grid = [f"triton.cdiv({m}, 8)", f"triton.cdiv({n}, {w.meta['BLOCK']})"]
    w.lanes(m, "tl.program_id(0) * BLOCK_M", "BLOCK_M", "[:, None]")
    w.lanes(n, "tl.program_id(1) * BLOCK", "BLOCK", "[None, :]")
    w.load([st.expr])
    w.say(f"part = tl.sum({w.reducible(Reduction('', 'sum', st.expr), (m, n))}, 0).to(tl.{LONG[st.dtype]})")
    w.say(f"at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)")
    w.say(f"{add}(out_ptr + at, part{', mask=at < ' + n if s.store_mask else ''})")


KINDS = {"map": _map, "tile": _tile, "row": _row, "scan": _scan, "dot": _dot, "atomic": _atomic}

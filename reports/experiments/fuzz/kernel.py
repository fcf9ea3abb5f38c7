"""A stage as a Triton kernel and the host code that launches it: one function for each kind of stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from .grammar import FLOATS, LONG, Reduction, Stage
from .writer import Writer, identity


@dataclass(frozen=True, slots=True)
class Kernel:
    """Source of a kernel, and the line of the host function that calls it."""

    source: str
    call: str


def kernel(stage: Stage, number: int, block: str = "", strided: Iterable[str] = ()) -> Kernel:
    """The kernel k<number> of a stage. `block`: a variable of the host function that holds the tile; `strided`: the
    inputs that may have any strides."""
    w = Writer(stage, f"k{number}", block, strided=frozenset(strided))
    KINDS[stage.kind](w)
    return Kernel(w.source(), w.call())


# ---- kinds -----------------------------------------------------------------------------------------------------------


def _map(w: Writer) -> None:
    """out[n] = e, in tiles of one dimension."""
    (dim,) = w.stage.dims
    s = w.stage.schedule
    w.vector, w.meta["BLOCK"], w.heuristic = (dim,), w.width(dim), s.width == "heuristic" and dim == "N"
    w.tuned = s.width == "tuned"
    tiles = f"triton.cdiv({dim}, {w.meta['BLOCK']})"
    w.grid = [f"min({tiles}, 4)" if s.grid == "persistent" else tiles if s.width != "power" else "1"]
    start = "tl.program_id(0) * BLOCK"
    if s.grid == "persistent":
        ends = f"tl.cdiv({dim}, BLOCK){_plus(s.stop)}, tl.num_programs(0){_plus(s.step)}"
        w.loop(f"for t in range(tl.program_id(0), {ends}):")
        start = "t * BLOCK"
    w.lanes(dim, start, "BLOCK")
    w.load([w.stage.expr])
    w.store(w.expr(w.stage.expr), (dim,))


def _tile(w: Writer) -> None:
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


def _rows(w: Writer) -> tuple[str, str]:
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


def _row(w: Writer) -> None:
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
    (_online if s.form == "online" else _accumulated)(w, inner)
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


def _accumulated(w: Writer, inner: str) -> None:
    for r in w.stage.reductions:
        value = w.reducible(r, (inner,))
        value = value if w.stage.schedule.form == "vector" else _reduced(r, value)
        w.say(f"{r.name} = {_joined(r, value)}")


def _online(w: Writer, inner: str) -> None:
    """A maximum, and a sum of exponentials that is rescaled when the maximum grows."""
    top, total = w.stage.reductions
    w.say(f"new = {_joined(top, _reduced(top, w.reducible(top, (inner,))))}")
    w.leaf["reduced", top.name] = "new"
    scaled = f"{total.name} * tl.exp({top.name} - new)" if w.stage.schedule.carry else total.name
    w.say(f"{total.name} = {scaled} + {_reduced(total, w.reducible(total, (inner,)))}")
    w.say(f"{top.name} = new")


def _exchange(w: Writer) -> None:
    """The elements of each row in reverse, through memory."""
    _, inner = _rows(w)
    w.scratch, lane = True, inner.lower()
    w.meta["BLOCK"] = w.width(inner)
    w.lanes(inner, "", "BLOCK")
    w.load([w.stage.expr])
    w.say(f"tl.store(scratch_ptr + {w.place(w.stage.dims)}, {w.expr(w.stage.expr)}, mask=in_{lane})")
    if w.stage.schedule.carry:
        w.say("tl.debug_barrier()")
    back = f"{w.leaf['index', w.stage.dims[0]]} * {inner} + ({inner} - 1 - {lane})"
    w.say(f"back = tl.load(scratch_ptr + {back}, mask=in_{lane})")
    w.store("back", w.stage.dims)


def _loop(w: Writer, inner: str) -> None:
    s = w.stage.schedule
    w.loop(f"for start in range({s.start}, {inner}{_plus(s.stop)}, BLOCK{_plus(s.step)}):")
    w.lanes(inner, "start", "BLOCK")


def _reduced(r: Reduction, value: str) -> str:
    """A tile to one number."""
    told = f"tl.{r.op}({value}, 0)"
    return told if r.op in ("argmax", "argmin") else f"{told}.to(tl.{LONG[r.expr.dtype]})"


def _joined(r: Reduction, value: str) -> str:
    """An accumulator with one more value."""
    return {"sum": f"{r.name} + {value}", "max": f"tl.maximum({r.name}, {value})",
            "min": f"tl.minimum({r.name}, {value})"}[r.op]  # fmt: skip


def _scan(w: Writer) -> None:
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


def _dot(w: Writer) -> None:
    """A matrix product in tiles, then an expression of it."""
    st, s = w.stage, w.stage.schedule
    (m, n), k, (r,) = st.dims, st.inner, st.reductions
    a, b = r.expr.args
    w.meta = {"BLOCK_M": "16", "BLOCK": "16", "BLOCK_K": "32" if a.dtype == "i8" else "16"}
    w.vector, w.grid = (m, n, k), [f"triton.cdiv({m}, 16)", f"triton.cdiv({n}, 16)"]
    w.lanes(m, "tl.program_id(0) * BLOCK_M", "BLOCK_M", "[:, None]")
    w.lanes(n, "tl.program_id(1) * BLOCK", "BLOCK", "[None, :]")
    w.say(f"{r.name} = tl.zeros((BLOCK_M, BLOCK), tl.{LONG[r.expr.dtype]})")
    kl = k.lower()
    w.loop(f"for start in range({s.start}, {k}{_plus(s.stop)}, BLOCK_K{_plus(s.step)}):")
    w.say(f"{kl} = start + tl.arange(0, BLOCK_K)")
    other = s.other or ("0.0" if a.dtype in FLOATS else "0")
    for e, axis, name in ((a, "[None, :]", "a"), (b, "[:, None]", "b")):
        w.leaf["index", k] = f"{kl}{axis}"
        tensor, dims = cast(tuple[str, tuple[str, ...]], e.value)
        outer = m if name == "a" else n
        told = f"in_{outer.lower()} & ({kl}{axis} {s.less} {k})" if s.selected else f"in_{outer.lower()}"
        w.say(f"{name} = tl.load({tensor}_ptr + {w.place(dims, tensor)}, mask={told}, other={other})")
    precise = ", input_precision='ieee'" if a.dtype == "f32" else ""
    w.say(f"{r.name} = tl.dot(a, b, {r.name}, out_dtype=tl.{LONG[r.expr.dtype]}{precise})")
    w.end()
    w.leaf["reduced", r.name] = r.name
    w.vector = (m, n)
    w.load([st.expr])
    w.store(w.expr(st.expr), st.dims)


def _atomic(w: Writer) -> None:
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
    w.say("at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)")
    w.say(f"{add}(out_ptr + at, part{', mask=at < ' + n if s.store_mask else ''})")


KINDS = {"map": _map, "tile": _tile, "row": _row, "scan": _scan, "dot": _dot, "atomic": _atomic, "exchange": _exchange}

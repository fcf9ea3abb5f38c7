"""Loads, stores and atomic operations of a program: one record per site and per memory that its pointer may mean.

The cells of parameter p have the element type that its pointer has in the kernel's signature; an access of another type
of the same width sees their bits (bits_f32, from_bits_f32).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lift.errors import Unsupported
from trilift.lift.interpreter.handlers.load import segments
from trilift.lift.interpreter.machine import cell
from trilift.lift.interpreter.memory import truth
from trilift.lift.interpreter.registry import signed_term, unsigned_term
from trilift.lift.terms import construct as T
from trilift.lift.terms.bits import cell_size
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.ranges import Interval, dtype_interval
from trilift.lift.terms.term import Term
from trilift.lift.ttir.conversions import fits
from trilift.lift.ttir.ir import Op, Type, Value

from ..model.barriers import within_program
from ..model.program import Access, term_type
from .tile import Lanes, Tile, alternatives, constant, scalar, terms

if TYPE_CHECKING:
    from .parametric import Execution

KINDS = {
    "add": "add", "fadd": "add", "max": "max", "min": "min", "umax": "umax", "umin": "umin", "and": "bitand",
    "or": "bitor", "xor": "bitxor", "exch": "exchange",
}  # fmt: skip
TRUE = T.const(True)


# ---- the cells -------------------------------------------------------------------------------------------------------


def interval(dtype: str | None, t: Type) -> Interval:
    """The numbers that a read of integer cells may give: of the dtype, or of any dtype with these cells."""
    if dtype is not None:
        return exact(dtype)
    if t.bits == 1:
        return 0, 1
    return (-(1 << t.bits - 1), (1 << t.bits) - 1) if t.is_int and t.bits <= 16 else dtype_interval("i64")


def exact(dtype: str) -> Interval:
    """All numbers of an integer dtype, also of wide ones."""
    if dtype == "bool":
        return 0, 1
    bits = int(dtype[1:])
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def cell_type(run: Execution, base: str) -> Type:
    """The element type of the memory of a parameter."""
    found = run.bases[base].pointee
    assert found is not None
    return found


def same_width(run: Execution, base: str, t: Type) -> bool:
    return cell_size(cell(cell_type(run, base))) == cell_size(cell(t))


def read(run: Execution, p: Term, t: Type, site: int) -> Term | None:
    """The element of type t that a pointer shows, None where that is not known."""
    if p.op == "where":
        yes, no = (read(run, q, t, site) for q in p.args[1:])
        return None if yes is None or no is None else T.where(p.args[0], yes, no)
    if p.op != "pointer" or not same_width(run, p.attr, t):
        return None
    of, name = cell_type(run, p.attr), f"{p.attr}@{site}"
    found = T.read(name, p.args, T.REAL if of.is_float else T.INT)
    if not of.is_float:
        dtype = run.dtypes.get(p.attr)
        run.ranges.inputs[name] = interval(dtype, of)
        if dtype in ("u32", "u64"):  # the signed number of the same bits
            half = 1 << of.bits - 1
            found = T.where(T.make("lt", found, half), found, T.sub(found, 2 * half))
    return from_cell(found, of, t)


def from_cell(x: Term, of: Type, t: Type) -> Term:
    """The value that an access of type t sees in a cell of type `of`."""
    source, target = cell(of), cell(t)
    if source != target:
        if source[0] != "i":
            x = OPS[f"bits_{source}"].on_terms(x)
        if target[0] != "i":
            x = OPS[f"from_bits_{target}"].on_terms(x)
    return truth(x) if t.element == "i1" else x


def to_cell(run: Execution, base: str, x: Term, t: Type, v: Value | None = None) -> Term:
    """The number that a cell of a parameter holds after x of type t was stored, as the value v of the kernel."""
    of = cell_type(run, base)
    if t.element == "i1":
        x = T.where(x, 1, 0)
    x = from_cell(x, t, Type(cell(of)))
    if not of.is_int or of.bits == 1:
        return x
    is_unsigned = run.dtypes.get(base) is not None and interval(run.dtypes.get(base), of)[0] >= 0
    if v is not None and fits(v, not is_unsigned):
        return x
    if is_unsigned:
        return unsigned_term(run.ranges, x, of.bits)
    return signed_term(run.ranges, x, of.bits) if of.bits <= 16 else x


# ---- the operations --------------------------------------------------------------------------------------------------


def load(run: Execution, op: Op, *xs: Tile) -> Tile:
    """where(mask, read, other); poison in masked lanes without `other`."""
    pointer, mask, other = (*segments(op, xs), None, None)[:3]
    of_type, t = op.results[0].type, scalar(op.results[0].type)
    label = f"masked load at {op.place}" if op.place else f"masked load {run.order}"
    default = other or constant(of_type, T.undef(label, term_type(t)))
    site, unknown = run.order, run.opaque(op, term_type(t))

    def element(lanes: Lanes) -> Term:
        found = read(run, pointer.at(lanes), t, site)
        if found is None:
            return unknown(lanes)
        return found if mask is None else T.where(mask.at(lanes), found, default.at(lanes))

    out = Tile(of_type, element)
    _record(run, op, "load", pointer, mask, out, t, site)
    return out


def store(run: Execution, op: Op, pointer: Tile, value: Tile, mask: Tile | None = None) -> None:
    _record(run, op, "store", pointer, mask, value, scalar(op.operands[1].type), -1)


def atomic_rmw(run: Execution, op: Op, pointer: Tile, value: Tile, mask: Tile | None = None) -> Tile:
    """Its result depends on the order of programs and lanes, so it is unknown."""
    name, t = op.attrs["atomic_rmw_op"], scalar(op.operands[1].type)
    _between_programs(op)
    _record(run, op, KINDS.get(name, name), pointer, mask, value, t, run.order)
    return Tile(op.results[0].type, run.opaque(op, term_type(t)))


def atomic_cas(run: Execution, op: Op, pointer: Tile, expected: Tile, value: Tile) -> Tile:
    """The value recorded is the node cas(expected, new)."""
    t = scalar(op.operands[1].type)
    _between_programs(op)
    pair = lambda i: T.node("cas", (expected.at(i), value.at(i)), None, term_type(t))  # noqa: E731
    _record(run, op, "cas", pointer, None, Tile(op.operands[1].type, pair), t, run.order)
    return Tile(op.results[0].type, run.opaque(op, term_type(t)))


def _between_programs(op: Op) -> None:
    """Raises Unsupported of an operation that is atomic within one program only: others lose what they add."""
    if within_program(op):
        raise Unsupported("an atomic operation of scope cta", op.place, "it is atomic within one program only")


def _record(
    run: Execution, op: Op, kind: str, pointer: Tile, mask: Tile | None, value: Tile, t: Type, site: int
) -> None:
    """One access per alternative of the pointer."""
    axes = run.access_axes(pointer.shape)
    lanes = terms(axes)
    live = run.path if mask is None else T.make("and", run.path, mask.at(lanes if mask.shape else ()))
    content = value.at(lanes if value.shape else ())
    for condition, p in alternatives(pointer.at(lanes)):
        guard = T.make("and", live, condition)
        if guard is not T.const(False):
            new = _content(run, op, kind, p, content, t)
            run.accesses.append(Access(kind, op, axes, run.loops, guard, p, new, t, run.order, site))
        run.order += 1


def _content(run: Execution, op: Op, kind: str, p: Term, x: Term, t: Type) -> Term:
    """The value in terms of the cells. Only loads and stores may see the bits of another type."""
    if p.op != "pointer" or not same_width(run, p.attr, t):
        run.cannot(op)
        return x
    if kind == "load":
        return x
    of = cell_type(run, p.attr)
    if kind == "store":
        return to_cell(run, p.attr, x, t, op.operands[1])
    if cell(of) != cell(t) or kind not in (*KINDS.values(), "cas"):
        run.cannot(op)
    return x


def width(t: Type | None) -> int:
    """Bytes of a cell of this element type."""
    return 0 if t is None else cell_size(cell(t))

"""Semantic mutants of a program: the kernels and the host function are those of other data, the reference stays."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .grammar import BITS, FLOATS, INTEGERS, OPS, WEAK, Expr, Program, Reduction, Schedule, Stage, limits
from .kernel import kernel

SWAPS = {
    "add": "sub", "sub": "add", "min": "max", "max": "min", "fmin": "fmax", "fmax": "fmin", "pmin": "fmin",
    "pmax": "fmax", "and": "or", "or": "and", "xor": "or", "shl": "shr", "shr": "shl", "lt": "le", "le": "lt",
    "gt": "ge", "ge": "gt", "eq": "ge", "ne": "lt", "quo": "shr", "rem": "and", "isnan": "isinf", "isinf": "isnan",
    "mul": "add",
}  # fmt: skip
UNDONE = ("neg", "abs", "not", "floor")  # operations that are left out
TURNED = ("sub", "div", "quo", "rem", "shl", "shr", "lt", "le", "gt", "ge")
GUARDS = {"max": 1, "fmin": 2.0, "pmin": 100.0, "pmax": -100.0}
TURNED_REDUCTIONS = {"max": "min", "min": "max", "argmax": "argmin", "argmin": "argmax"}
WRAPPING = ("add", "sub", "mul", "neg", "abs", "shl")
WIDER = {"i8": "i16", "i16": "i32", "i32": "i64", "u8": "i16"}
NARROWER = {"i64": "i32", "i32": "i16", "i16": "i8", "u8": "i8", "f32": "f16"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed program: of which kind the change is, and what it is."""

    kind: str
    text: str
    program: Program


def mutants(p: Program, seed: int, count: int) -> list[Mutant]:
    """`count` mutants, of as many kinds as there are."""
    r = random.Random(seed)
    found = list(every(p))
    r.shuffle(found)
    seen: dict[str, int] = {}
    ranked: list[tuple[int, int, Mutant]] = []
    for m in found:
        seen[m.kind] = seen.get(m.kind, 0) + 1
        ranked.append((seen[m.kind], len(ranked), m))
    return [m for _, _, m in sorted(ranked)[:count]]


def every(p: Program) -> Iterator[Mutant]:
    """All mutants."""
    for k, s in enumerate(p.stages):
        for kind, text, changed in (*_schedules(s), *_reductions(s), *_expressions(s)):
            strided = [i.name for i in p.inputs if i.strided]
            if changed != s and kernel(changed, k, "", strided) != kernel(s, k, "", strided):
                yield Mutant(kind, f"launch {k}: {text}", p.put(k, changed))


# ---- schedules -------------------------------------------------------------------------------------------------------


def _schedules(s: Stage) -> Iterator[tuple[str, str, Stage]]:
    for kind, changes in _faults(s):
        text = ", ".join(f"{k} = {v}" for k, v in changes.items())
        yield kind, text, replace(s, schedule=replace(s.schedule, **changes))  # type: ignore[arg-type]


def _faults(s: Stage) -> Iterator[tuple[str, Mapping[str, object]]]:
    """(kind, changed fields) that matter for such a stage."""
    sched: Schedule = s.schedule
    yield "mask", {"less": "<="}
    yield from (("mask", {"bound": k}) for k in (-1, 1))
    yield "dropped mask", {"load_mask": False}
    yield "dropped mask", {"store_mask": False}
    if s.kind != "dot":
        yield from (("index", {"shift": k}) for k in (-1, 1))
    if not (s.kind in ("row", "scan") and sched.grid == "persistent"):
        yield "grid", {"cells": -1}
    yield from (("capped grid", {"cap": k}) for k in (1, 7, 300))
    loops = sched.grid == "persistent" or s.kind == "dot" or (s.kind in ("row", "scan") and sched.form != "block")
    if loops:
        yield from (("loop", {"stop": k}) for k in (-1, -sched.block))
        yield "loop", {"step": 1}
    if s.kind == "dot" or (s.kind in ("row", "scan") and sched.form != "block"):
        yield from (("loop", {"start": k}) for k in (1, sched.block))
    if s.kind in ("row", "scan", "dot", "atomic"):
        yield "lanes not selected", {"selected": False}
        yield "lanes not selected", {"selected": False, "other": "1"}
        yield "lanes not selected", {"selected": False, "other": "0"}
    if any(x.op in ("max", "min", "argmax", "argmin") for x in s.reductions):
        yield "identity", {"identity": "0"}
    yield from _more_faults(s)


def _more_faults(s: Stage) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The same of tiles, axes, carried values and layouts."""
    sched: Schedule = s.schedule
    if sched.width == "power":
        yield from (("capped tile", {"widest": k}) for k in (16, 1024))
    if len(s.dims) == 2 and s.kind in ("tile", "row", "scan", "dot"):
        yield "axes", {"swapped": True}
    if s.kind == "tile" and sched.grid == "flat":
        yield "grid", {"step": 1}
    if (s.kind == "scan" and sched.form != "block") or sched.form == "online" or s.kind == "exchange":
        yield "carry", {"carry": False}
    if sched.width == "tuned":
        yield "tuned grid", {"fixed": True}
    yield "layout", {"dense": True}
    if s.kind == "atomic":
        yield "not atomic", {"relaxed": True}


# ---- reductions ------------------------------------------------------------------------------------------------------


def _reductions(s: Stage) -> Iterator[tuple[str, str, Stage]]:
    if s.kind not in ("row", "scan"):
        return
    for k, r in enumerate(s.reductions):
        if r.op in TURNED_REDUCTIONS:
            yield "reduction", f"{r.op} turned", _with(s, k, replace(r, op=TURNED_REDUCTIONS[r.op]))
        if r.op == "sum":
            for table in (NARROWER, WIDER):
                if wide := table.get(r.expr.dtype):
                    e = Expr("cast", wide, (r.expr,))
                    yield "accumulator", f"in {wide}", _retyped(_with(s, k, replace(r, expr=e)), r.name, wide)


def _with(s: Stage, k: int, r: Reduction) -> Stage:
    return replace(s, reductions=(*s.reductions[:k], r, *s.reductions[k + 1 :]))


def _retyped(s: Stage, name: str, dtype: str) -> Stage:
    """The stage where a reduced value has another dtype, and is cast back where it is used."""
    e = s.expr
    for path in list(e.paths()):
        at = e.at(path)
        if at.op == "reduced" and at.value == name:
            e = e.put(path, Expr("cast", at.dtype, (replace(at, dtype=dtype),)))
            break
    return replace(s, expr=e)


# ---- expressions -----------------------------------------------------------------------------------------------------


def _expressions(s: Stage) -> Iterator[tuple[str, str, Stage]]:
    for k, top in enumerate(s.exprs()):
        if s.kind == "dot" and k == 0:
            continue
        for path in top.paths():
            for kind, text, new in _changed(top.at(path)):
                if new.dtype == top.at(path).dtype or (path and top.at(path[:-1]).op == "cast"):
                    yield kind, text, s.with_expr(k, top.put(path, new))


def _changed(e: Expr) -> Iterator[tuple[str, str, Expr]]:
    """(kind, text, expression) of the changes at its top."""
    for change in (_other_operation, _left_out, _other_branch, _other_width, _constants, _other_cast, _moved_cast):
        yield from change(e)
    if e.op in ("quo", "shr") and e.dtype[0] == "i":
        yield "rounding", "down", _floored(e)


def _other_operation(e: Expr) -> Iterator[tuple[str, str, Expr]]:
    if other := SWAPS.get(e.op):
        wrong = (other == "shr" and e.op == "quo") or (other == "and" and e.op == "rem")
        if not wrong or e.args[1].op == "const":
            yield "operation", f"{e.op} is {other}", replace(e, op=other)
    if e.op in TURNED and e.args[1].op not in WEAK and e.args[0].dtype == e.args[1].dtype:
        yield "operands", f"{e.op} turned", replace(e, args=e.args[::-1])


def _left_out(e: Expr) -> Iterator[tuple[str, str, Expr]]:
    if e.op in UNDONE:
        yield "operation", f"{e.op} left out", e.args[0]
    if e.op in GUARDS and e.args[1].op == "const" and e.args[1].value == GUARDS[e.op]:
        yield "dropped guard", f"{e.op} left out", e.args[0]


def _other_branch(e: Expr) -> Iterator[tuple[str, str, Expr]]:
    if e.op == "where":
        yield from (("branch", f"always {k}", e.args[k]) for k in (1, 2) if e.args[k].op != "const")
        if e.args[2].op not in WEAK:
            yield "branch", "branches turned", replace(e, args=(e.args[0], e.args[2], e.args[1]))


def _other_cast(e: Expr) -> Iterator[tuple[str, str, Expr]]:
    if e.op == "cast" and e.dtype in INTEGERS and e.args[0].dtype in INTEGERS:
        for between in ("i8", "i16", "u8"):
            if between not in (e.dtype, e.args[0].dtype):
                yield "cast", f"through {between}", replace(e, args=(Expr("cast", between, e.args),))


def _moved_cast(e: Expr) -> Iterator[tuple[str, str, Expr]]:
    """A wider operation than that of the reference: before a cast to a wider dtype, or before a comparison."""
    inner = e.args[0] if e.args else e
    if inner.op not in WRAPPING or inner.dtype not in WIDER:
        return
    if e.op == "cast" and e.dtype != "bool" and BITS[e.dtype] > BITS[inner.dtype]:
        wide = "i64" if e.dtype in FLOATS else e.dtype
        yield "moved cast", f"{inner.op} in {wide}", _cast(_in_width(inner, wide), e.dtype)
    if e.op in ("lt", "le", "gt", "ge", "eq", "ne", "quo", "rem", "min", "max", "shr"):
        right = e.args[1] if e.args[1].op in WEAK else _cast(e.args[1], "i64")
        changed = replace(e, args=(_in_width(inner, "i64"), replace(right, dtype="i64")))
        yield (
            "moved cast",
            f"{e.op} in i64",
            changed if e.dtype == "bool" else _cast(replace(changed, dtype="i64"), e.dtype),
        )


def _cast(e: Expr, dtype: str) -> Expr:
    return e if e.dtype == dtype else Expr("cast", dtype, (e,))


def _in_width(e: Expr, dtype: str) -> Expr:
    """The operation with its operands in another dtype; numbers stay as they are."""
    args = tuple(replace(a, dtype=dtype) if a.op in WEAK else _cast(a, dtype) for a in e.args)
    return replace(e, dtype=dtype, args=args)


def _other_width(e: Expr) -> Iterator[tuple[str, str, Expr]]:
    """The same in another width, and cast back."""
    if e.op not in (*WRAPPING, "shr") or e.dtype not in (*WIDER, *NARROWER):
        return
    for table in (WIDER, NARROWER):
        if (other := table.get(e.dtype)) and not (e.op in ("shl", "shr") and BITS[other] < BITS[e.dtype]):
            new = _in_width(e, other)
            if all(a.op != "const" or _fits(a.value, other) for a in new.args):
                yield "width", f"{e.op} in {other}", _cast(new, e.dtype)


def _fits(v: object, dtype: str) -> bool:
    return dtype in FLOATS or limits(dtype)[0] <= v <= limits(dtype)[1]  # type: ignore[operator]


def _constants(e: Expr) -> Iterator[tuple[str, str, Expr]]:
    if e.op != "const":
        return
    for new in (e.value + 1, e.value - 1, -e.value):  # type: ignore[operator]
        if new != e.value and _fits(new, e.dtype) and e.value not in (float("inf"), float("-inf")):
            yield "constant", f"{e.value} is {new}", replace(e, value=new)


def _floored(e: Expr) -> Expr:
    """A quotient that rounds down instead of to zero (and a shift that rounds to zero), for divisors that are
    constants."""
    a, b = e.args
    if b.op != "const" or b.value in (0, 1):
        return e
    if e.op == "shr":
        power = 2 ** int(b.value)  # type: ignore[call-overload]
        return e if not _fits(power, e.dtype) else Expr("quo", e.dtype, (a, replace(b, value=power)))
    rest = Expr("rem", e.dtype, (a, b))
    below = Expr("cast", e.dtype, (Expr("lt", "bool", (rest, replace(b, value=0))),))
    return Expr("sub", e.dtype, (e, below))


assert set(SWAPS) | set(UNDONE) | set(TURNED) | set(GUARDS) <= set(OPS)

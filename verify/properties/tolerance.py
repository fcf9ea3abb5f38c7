"""How far a kernel may be from its formula: the magnitude of one rounding and how many there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from trilift.lift.cases.declaration import Case
from trilift.lift.interpreter.machine import cell
from trilift.lift.printers.text import size_text
from trilift.lift.replay.rounded import COMPUTING
from trilift.lift.replay.rounding import FORMATS, NARROW
from trilift.lift.simplify.saturation import simplify
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Module, Op, Value

from ..audit.accumulation import MOVES, narrow_sums
from .magnitudes import COUNT, FORMS, Magnitudes, Row, times
from .records import Tolerance

STORES = {"tt.store", "tt.descriptor_store"}


def unit_of(element: str) -> float:
    """The roundoff of a format: half the distance from 1 to the next number."""
    return float(2.0 ** -FORMATS[element].digits)


def tolerance(formula: Formula, case: Case, modules: Sequence[Module] = (), lost: int = 0) -> Tolerance:
    """An upper bound of |kernel - formula|, by running error analysis (`verify.properties.magnitudes`). `modules`: the
    kernels of the launches, for the types in which they compute; `lost`: how many roundings their own numbers are
    off by. Raises Unsupported for an operation that it has no row for."""
    modules = tuple(modules)
    element = _arithmetic(formula, case, modules)
    narrow, casts = narrowest(modules), roundings_to_narrow(modules)
    sums = narrow is not None and any(narrow_sums(list(m.walk()), False) for m in modules)
    unit = unit_of(narrow if narrow is not None and sums else element)
    more = 0 if narrow is None or sums else casts * round(unit_of(narrow) / unit)
    analysis = Magnitudes(case, unit, more)
    shortest = simplify(formula).formula
    found = analysis.bound(shortest.term)
    if found.exact and not casts and not _narrows(formula, case):
        return Tolerance(None, T.const(0), unit, derivation=("exact: nothing is rounded",))
    lines = _lines(analysis, element, found.roundings)
    if sums:
        lines += (f"sums are computed in {narrow}: {_power(unit)} for {_power(unit_of(element))}",)
    elif more:
        lines += (f"and {casts} to {narrow} on the way, as much as {more} of {element}",)
    forms = FORMS * (2 if element == "f64" else 1)  # the formula is computed in float64 too
    count = T.add(times(forms, found.roundings), more)
    if lost:
        lines += (f"and {lost} that the kernel's own numbers lose, as 1 - 0.999f does, before a tensor is read",)
        count = T.add(count, lost)
    whole = T.make("max", count, 1) if count.op == "const" else count
    term = T.rewrite(found.magnitude, lambda s: whole if s is COUNT else None)
    named = replace(shortest, name=f"{formula.name}_magnitude", term=term)
    return Tolerance(named, whole, unit, sum(map(_tf32_products, modules)), lines)


def _arithmetic(formula: Formula, case: Case, modules: Sequence[Module]) -> str:
    """f64 where all real inputs are and no kernel rounds to f32; else f32: narrower types are cast to it."""
    types = [case.tensors[n].dtype for n in T.reads(formula.term) if n in case.tensors and case.tensors[n].is_float]
    single = any(_rounds(op) and cell(v.type) == "f32" for m in modules for op in m.walk() for v in op.results)
    return "f64" if all(t == "f64" for t in types or (formula.dtype,)) and not single else "f32"


def _narrows(formula: Formula, case: Case) -> bool:
    """Whether an exact value may need more digits than the output has."""
    if formula.dtype not in FORMATS:
        return False
    digits = [FORMATS[case.tensors[n].dtype].digits for n in T.reads(formula.term)
              if n in case.tensors and case.tensors[n].dtype in FORMATS]  # fmt: skip
    return any(d > FORMATS[formula.dtype].digits for d in digits)


def _lines(analysis: Magnitudes, element: str, roundings: Term) -> tuple[str, ...]:
    """The derivation, for a comment."""
    functions = [_roundings_of(name, row) for name, row in analysis.used.items()]
    jump = "if rounding may move an argument across a jump, the tolerance allows the jump"
    return (
        f"each operation in {element} has a relative error of {_power(unit_of(element))}: Higham, chapter 3",
        "magnitude: the formula with absolute values wherever a sum may cancel",
        *(["roundings: " + "; ".join(functions)] if functions else []),
        f"{_said(roundings)} on the longest path, taken {FORMS} times: other forms of the formula are as good",
        *([jump] if analysis.jumps else []),
    )


def _roundings_of(name: str, row: Row) -> str:
    parts = [f"{row.n} for each term"] if row.n else []
    parts += [str(row.plus)] if row.plus else []
    return f"{name} " + " and ".join(parts) + (f" ({row.why})" if row.why else "")


def _said(count: Term) -> str:
    """A count as text: 2 * N + 24."""
    return size_text(Axis("", count))


def _power(unit: float) -> str:
    return f"2**{round(math.log2(unit))}"


# ---- in the IR -------------------------------------------------------------------------------------------------------


def narrowest(modules: Sequence[Module]) -> str | None:
    """The coarsest format narrower than f32 to which a kernel rounds."""
    found = {cell(v.type) for m in modules for op in m.walk() if _rounds(op) for v in op.results}
    return min(found & NARROW, key=lambda f: FORMATS[f].digits, default=None)


def roundings_to_narrow(modules: Sequence[Module]) -> int:
    """How many on the longest path of the kernels, one after the other. A rounding of a single kernel only at its store
    is not counted: that is the output's own rounding."""
    kernels: dict[str, list[Module]] = {}
    for m in modules:
        kernels.setdefault(m.entry.name, []).append(m)
    return sum(max(_longest(m, len(kernels) > 1) for m in found) for found in kernels.values())


def _longest(module: Module, stored: bool) -> int:
    """Roundings to narrow types on the longest path from loads to stores; loops are walked once."""
    depth: dict[Value, int] = {}
    users: dict[Value, list[Op]] = {}
    operations = list(module.walk())
    for op in operations:
        for v in op.operands:
            users.setdefault(v, []).append(op)
    for op in operations:
        here = max((depth.get(v, 0) for v in op.operands), default=0)
        narrow = _rounds(op) and any(cell(v.type) in NARROW for v in op.results)
        here += narrow and (stored or not all(_only_stored(v, users) for v in op.results))
        inner = [v for region in op.regions for block in region.blocks for v in block.args]
        depth |= dict.fromkeys((*op.results, *inner), here)
    return max(depth.values(), default=0)


def _only_stored(v: Value, users: dict[Value, list[Op]]) -> bool:
    """Whether nothing is computed from it."""
    return all(
        u.name in STORES or (u.name in MOVES and all(_only_stored(r, users) for r in u.results))
        for u in users.get(v, ())
    )


def _rounds(op: Op) -> bool:
    """Whether a result is a float that may have been rounded."""
    if not any(v.type.is_float for v in op.results) or op.name in ("arith.constant", "arith.select", "arith.negf"):
        return False
    return op.name.startswith(("arith.", "math.")) or op.name in COMPUTING


def _tf32_products(module: Module) -> int:
    """How many products of matrices in f32 a GPU may round to TF32."""
    return sum(
        op.name == "tt.dot" and op.operands[0].type.element == "f32" and op.attrs.get("inputPrecision") == "tf32"
        for op in module.walk()
    )

"""Numbers of Python as Triton passes them to a kernel: floats as fp32 or as the annotated type, integers for a
parameter of one bit by their lowest bit.

    x * s    of a tensor in fp64 is x * float32(s)            x > s    of one in fp32 is x > float32(s)

Which of them reach fp64, and by which operations, is not looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trilift.lift.cases.declaration import Spec
from trilift.lift.errors import Place, Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.lift.ttir import written_constants
from trilift.lift.ttir.ir import Module
from trilift.lift.ttir.written_constants import rounded_arguments

from ..model.configuration import View


@dataclass(frozen=True)
class Passed:
    """The operands of a launch as its parameters have them. `unknown`: the position of one that is another number in
    fp64 than is known, None if there is none; `narrowed`: those that may lose digits on which a truth value hangs."""

    operands: tuple[Term | View, ...]
    unknown: int | None
    narrowed: frozenset[int]


def as_passed(module: Module, operands: Sequence[Term | View], scalars: Mapping[str, Spec]) -> Passed:
    """The operands of a launch, of which those are rounded whose rounding decides."""
    out = list(operands)
    narrowed = set()
    unknown = None
    roundings = rounded_arguments(module)
    for k in sorted(roundings):
        x = operands[k]
        if not isinstance(x, Term) or x.type != T.REAL:
            continue
        if x.is_const:
            out[k] = T.const(written_constants.as_passed(float(x.attr), k, roundings))
        elif not _is_held(x, roundings[k].element, scalars):
            unknown = k if module.computes_in_double else unknown
            narrowed.add(k)
    return Passed(tuple(out), unknown, frozenset(narrowed))


def truths(module: Module, operands: Sequence[Term | View], place: Place | None) -> list[Term | View]:
    """The operands with a truth value for each 0 and 1 that a parameter of one bit gets. Raises Unsupported where it
    gets another integer."""
    found = list(operands)
    for k, (v, x) in enumerate(zip(module.entry.args, operands, strict=False)):
        if v.type.element != "i1" or v.type.shape or not isinstance(x, Term) or x.type != T.INT:
            continue
        if not x.is_const or x.attr not in (0, 1):
            name, help = (
                v.name.removeprefix("%"),
                f"pass a bool: {x.attr if x.is_const else 'an integer'} has more bits",
            )
            raise Unsupported(f"{name} of {module.entry.name} is one bit of an integer", place, help)
        found[k] = T.const(bool(x.attr))
    return found


def _is_held(x: Term, element: str, scalars: Mapping[str, Spec]) -> bool:
    """Whether a number is a scalar that is declared in this type or one that it includes, or its negative."""
    if x.op in ("neg", "abs") or (x.op == "mul" and x.args[0].is_const and abs(x.args[0].attr) == 1):
        return _is_held(x.args[-1], element, scalars)
    dtype = scalars[str(x.attr)].dtype if x.op == "scalar" and x.attr in scalars else ""
    return dtype == element or dtype.startswith("f8") or (element == "f32" and dtype in ("f16", "bf16"))

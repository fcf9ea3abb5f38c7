"""Numbers that Triton passes as fp32 to a kernel that computes in fp64: x * s of a tensor in fp64 is x * float32(s).

Which of them reach fp64, and by which operations, is not looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trilift.lift.cases.declaration import Spec
from trilift.lift.terms import construct as T
from trilift.lift.terms.constants import as_float32
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Module

from ..model.configuration import View


def as_passed(
    module: Module, operands: Sequence[Term | View], scalars: Mapping[str, Spec]
) -> tuple[list[Term | View], int | None]:
    """The operands of a launch with such numbers as fp32 has them, and which is another number than is known."""
    out, unknown = list(operands), None
    if not module.computes_in_double:
        return out, None
    for k, (x, argument) in enumerate(zip(operands, module.entry.args, strict=False)):
        if not isinstance(x, Term) or x.type != T.REAL or argument.type.element != "f32":
            continue
        if x.is_const:
            out[k] = T.const(as_float32(float(x.attr)))
        elif x.op != "scalar" or x.attr not in scalars or scalars[str(x.attr)].dtype != "f32":
            unknown = k
    return out, unknown

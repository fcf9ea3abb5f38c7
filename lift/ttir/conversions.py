"""Floats that a kernel converts to integers: whoever executes the conversion owes that the number fits."""

from __future__ import annotations

from .ir import Op, Value

CONVERSION = {True: "arith.fptosi", False: "arith.fptoui"}  # of floats to signed and to unsigned integers
SPREADS = ("tt.splat", "tt.broadcast")  # operations that repeat a value
MOVES = {*SPREADS, "tt.expand_dims", "tt.reshape", "tt.trans"}


def fits(v: Value, is_signed: bool) -> bool:
    """Whether v is a float converted to a signed or unsigned integer of its own width, perhaps moved since."""
    op = v.owner
    while isinstance(op, Op) and op.name in MOVES:
        op = op.operands[0].owner
    return isinstance(op, Op) and op.name == CONVERSION[is_signed] and op.results[0].type.bits == v.type.bits > 1

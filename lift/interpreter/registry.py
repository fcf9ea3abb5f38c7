"""The table from operation names of Triton IR to what executes them, and the elementwise rule for rows of
`lift.terms.ops`.

@handles("tt.expand_dims")
def _(run, op, x): ...            operand values in, result value out (a list for several results, None for none)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Unsupported
from ..terms.construct import make
from ..terms.domain import Ids, on_distinct
from ..terms.ops import ROWS
from ..terms.ranges import Ranges
from ..terms.ring import wrapped
from ..terms.term import Term
from ..ttir.ir import Op
from .machine import converted, settle

if TYPE_CHECKING:
    from .interpret import Run

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}
CHECKS: dict[str, Callable[[Op], str | None]] = {}  # what is missing of an operation that has a handler for some cases
ROW_OF_TTIR = {name: row.name for row in ROWS for name in row.ttir}
ROW_OF_EXTERN = {name: row.name for row in ROWS for name in row.extern}
RING = {"add", "sub", "mul", "neg", "where"}  # right modulo 2^bits, whatever the sign
BOOLEAN = {"add": "ne", "sub": "ne", "mul": "and"}  # arithmetic modulo 2


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for operations."""

    def put(f: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = f
        return f

    return put


def row_of(op: Op) -> str | None:
    """The row of `lift.terms.ops` that an operation means, by its name."""
    return ROW_OF_TTIR.get(op.name)


def elementwise(run: Run, op: Op, *xs: Any) -> Any:
    """An operation that is a row. Raises Unsupported for one that is not."""
    row = row_of(op)
    if row is None:
        raise Unsupported(op.name, op.place)
    t = op.results[0].type
    if t.element == "i1":
        row = BOOLEAN.get(row, row)
    elif t.is_int and row not in RING:
        xs = tuple(signed(run, x, t.bits) for x in xs)
    return settle(run.domain.apply(row, *xs), t)


def signed(run: Run, x: Any, bits: int) -> Any:
    """The two's complement number of an integer value. Wide terms of unbounded range are taken not to wrap: that is
    proved elsewhere."""
    return on_distinct(lambda t: signed_term(run.ranges, t, bits), x) if isinstance(x, Ids) else x


def signed_term(ranges: Ranges, t: Term, bits: int) -> Term:
    """t, or its remainder in -2^(bits-1) .. 2^(bits-1) - 1 where its range leaves these."""
    low, high = ranges.of(t)
    if (-(1 << bits - 1) <= low and high < 1 << bits - 1) or bits == 64:
        return t
    if bits == 32 and (ranges.exact or math.inf in (-low, high)):
        return t
    return wrapped(t, -(1 << bits - 1), 1 << bits - 1)


def unsigned(run: Run, x: Any, bits: int) -> Any:
    """The number 0 <= n < 2^bits with the same bits; numpy values become arrays of the unsigned type."""
    if not isinstance(x, Ids):
        a = np.asarray(x)
        return a.view(f"u{a.dtype.itemsize}") if a.dtype.kind == "i" else a
    return on_distinct(lambda t: unsigned_term(run.ranges, t, bits), x)


def unsigned_term(ranges: Ranges, t: Term, bits: int) -> Term:
    low, high = ranges.of(t)
    wide = bits > 16 and (ranges.exact or math.inf in (-low, high))
    if low >= 0 and (high < 1 << bits or wide):
        return t
    if not wide:
        return wrapped(t, 0, 1 << bits)
    return make("where", make("lt", t, 0), t + (1 << bits), t)


def typed(x: Any, op: Op) -> Any:
    """A numpy result as the machine type of the operation's result; known terms as numbers."""
    t = op.results[0].type
    return settle(x, t) if isinstance(x, Ids) else converted(x, t)

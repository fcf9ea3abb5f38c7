"""Elementwise operations on single elements: the meaning that `lift` gives them, and what must hold for it.

Integers are exact. Of 32 and 64 bits a term is the signed number, as long as the recorded conditions hold; of 8 and 16
bits it is congruent to the number modulo 2^bits, and whoever cares for the sign normalises it
(`lift.interpreter.registry`).

    wrap      addi subi muli shli absi trunci, folds: -2^(bits-1) <= result < 2^(bits-1)      divisor   divsi ...: != 0
    unsigned  fptoui: 0 <= result < 2^bits              shift    shli shrsi shrui by a term: 0 <= amount < bits
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from trilift.lift.errors import Unsupported
from trilift.lift.interpreter import registry
from trilift.lift.interpreter.handlers.compare import compare
from trilift.lift.interpreter.interpret import Run
from trilift.lift.interpreter.machine import settle
from trilift.lift.interpreter.memory import Memory
from trilift.lift.interpreter.registry import BOOLEAN, RING, row_of, signed_term
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import SYMBOLIC, Ids, as_ids
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Module, Op, Value

from .indexing import divided
from .tile import scalar

BEYOND_BITS = 200  # of an integer that fits no type, for an infinity or NaN
ELEMENT_OPERATIONS = 30_000  # applications of operations to elements, in one program
FAMILIES = ("arith.", "math.", "trilift.")
OTHERS = {"tt.fp_to_fp", "tt.clampf", "tt.mulhiui", "tt.extern_elementwise", "tt.elementwise_inline_asm", "tt.bitcast"}
UNSIGNED = {"arith.divui", "arith.remui", "arith.shrui", "arith.minui", "arith.maxui", "arith.ceildivui", "tt.mulhiui"}


def is_elementwise(op: Op) -> bool:
    """Whether `lift` has a meaning for the operation, one element at a time."""
    check = registry.CHECKS.get(op.name)
    if check is not None and check(op):
        return False
    if row_of(op) is not None:
        return True
    return op.name in registry.HANDLERS and (op.name in OTHERS or op.name.startswith(FAMILIES))


class TooLarge(Unsupported):
    """The terms of a program do not end within a sensible number: reductions of reductions, many times."""


class Elements:
    """Applies elementwise operations to terms; `ranges` decide what a sign or comparison is where they can."""

    def __init__(self, module: Module, ranges: Ranges) -> None:
        self.ranges = ranges
        self.run = Run(module, SYMBOLIC, Memory(SYMBOLIC), ranges)
        self.scalars: dict[Op, Op] = {}
        self.applied = 0

    def apply(self, op: Op, *xs: Term) -> list[Term]:
        """The results for one element of every operand. Raises Unsupported."""
        self.applied += 1
        if self.applied > ELEMENT_OPERATIONS:
            raise TooLarge("a kernel whose elements refer to too many others", op.place)
        if op.name in registry.HANDLERS:
            out = self._handled(op, xs)
            if op.name in UNSIGNED:
                out = [as_signed(self.ranges, t, op.results[0].type.bits) for t in out]
        else:
            out = [self._row(op, xs)]
        return [plain(self.ranges, t) for t in out]

    def _row(self, op: Op, xs: tuple[Term, ...]) -> Term:
        """The rule of `lift.interpreter.registry.elementwise`."""
        row, t = row_of(op), op.results[0].type
        if row is None:
            raise Unsupported(op.name, op.place)
        if t.element == "i1":
            row = BOOLEAN.get(row, row)
        elif t.is_int and row not in RING:  # x << k: the bits of x that count are the low ones
            kept = 1 if row == "shl" else 0
            xs = (*xs[:kept], *(signed_term(self.ranges, x, t.bits) for x in xs[kept:]))
        return OPS[row].on_terms(*xs)

    def _handled(self, op: Op, xs: tuple[Term, ...]) -> list[Term]:
        """The handler of `lift`, on arrays of one element."""
        one = self.scalars.get(op)
        if one is None:
            one = self.scalars[op] = single(op)
        values = [settle(Ids(np.array(x.id, np.int32)), v.type) for x, v in zip(xs, one.operands, strict=True)]
        with np.errstate(all="ignore"):
            out = registry.HANDLERS[op.name](self.run, one, *values)
        return [T.TERMS[int(np.asarray(as_ids(x)))] for x in (out if isinstance(out, list) else [out])]


def single(op: Op) -> Op:
    """The operation on scalars."""
    values = lambda vs: [Value(v.name, scalar(v.type), v.owner) for v in vs]  # noqa: E731
    return Op(op.name, values(op.operands), values(op.results), op.attrs, frames=op.frames)


def as_signed(ranges: Ranges, t: Term, bits: int) -> Term:
    """The signed number with the bits of an unsigned one; of 8 and 16 bits any congruent term will do."""
    high = ranges.of(t)[1]
    if bits <= 16 or high < 1 << (bits - 1):
        return t
    return T.where(T.make("lt", t, 1 << (bits - 1)), t, T.sub(t, 1 << bits))


def plain(ranges: Ranges, t: Term) -> Term:
    """Shifts by constants and masks of low bits as products, quotients and remainders, which is what they are:

    a << k = 2^k * a        a >> k = a // 2^k        a & (2^k - 1) = a % 2^k        (d * q + r) // d = q  for 0 <= r < d
    """
    if t.op not in ("shl", "shr", "bitand", "floordiv", "mod"):
        return t
    a, k = sorted(t.args, key=lambda s: s.is_const) if t.op == "bitand" else t.args
    if not k.is_const or a.is_const or not isinstance(k.attr, int) or k.attr <= 0:
        return t
    match t.op:
        case "floordiv" | "mod":
            return divided(a, k.attr, ranges)[t.op == "mod"]
        case "bitand":
            return divided(a, k.attr + 1, ranges)[1] if k.attr & (k.attr + 1) == 0 else t
    if k.attr >= 64:
        return t
    return T.mul(1 << k.attr, a) if t.op == "shl" else divided(a, 1 << k.attr, ranges)[0]


# ---- what must hold ------------------------------------------------------------------------------------------------

Condition = tuple[str, Callable[..., Term], int]  # kind, the term of operand and result elements, bits


def conditions(run: Run, op: Op) -> Iterator[Condition]:
    """The conditions under which the result of an integer operation is exact. The functions take the elements of the
    operands, then of the result."""
    if not op.results:
        return
    t, name = op.results[0].type, op.name.partition(".")[2]
    second: Callable[..., Term] = lambda *xs: signed_term(run.ranges, xs[1], t.bits)  # noqa: E731
    if t.is_int and t.bits >= 32:
        if name in ("addi", "subi", "muli", "shli", "absi") or (name in ("trunci", "index_cast") and _narrows(op)):
            yield "wrap", lambda *xs: xs[-1], t.bits
        if name == "divsi":  # only a / -1 can leave the range
            yield "wrap", lambda a, b, q: T.where(compare(run, "eq", b, T.const(-1)), q, 0), t.bits
    if name in ("fptosi", "fptoui") and t.bits > 1:
        half = 1 << t.bits - 1 if name == "fptoui" else 0  # 0 <= x < 2^n where x - 2^(n - 1) is signed
        yield "wrap", lambda x, result: T.sub(_truncated(x, result), half), t.bits
    if op.name == "tt.clampf":
        yield "clamp", lambda x, low, high, _: T.make("le", low, high), 1
    if name in ("divsi", "divui", "remsi", "remui", "ceildivsi", "floordivsi", "ceildivui"):
        yield "divisor", second, t.bits
    if name in ("shli", "shrsi", "shrui"):
        yield "shift", second, t.bits


def _truncated(x: Term, result: Term) -> Term:
    """The integer that a number becomes, without the limits of a type: of a constant the machine's result has them."""
    if not x.is_const:
        return result
    return T.const(int(x.attr)) if math.isfinite(x.attr) else T.const(1 << BEYOND_BITS)


def _narrows(op: Op) -> bool:
    return op.operands[0].type.bits > op.results[0].type.bits


TRUTHS = ("assume", "descriptor", "hint", "clamp", "assert")  # kinds of obligations whose terms are conditions


def certain(ranges: Ranges, kind: str, term: Term, bits: int) -> bool:
    """Whether the intervals alone show that the condition holds."""
    if kind in TRUTHS:
        return term is T.const(True)
    low, high = ranges.of(term)
    limits: dict[str, Callable[[], bool]] = {
        "wrap": lambda: -(1 << bits - 1) <= low and high < 1 << bits - 1,
        "unsigned": lambda: low >= 0 and high < 1 << bits,
        "shift": lambda: low >= 0 and high < bits,
        "divisor": lambda: low > 0 or high < 0,
        "positive": lambda: low > 0,
        "exact": lambda: -(1 << bits - 1) <= low and high <= 1 << bits - 1,
        "inexact": lambda: False,
    }
    return limits[kind]()

"""Terms as Triton expressions: functions of elements, the text of a template over a0, a1 ..., and of indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce

from trilift.lift.language.definitions import DEFINITIONS
from trilift.lift.language.infix import ADD, AND, ATOM, COMPARE, FACTOR, MUL, NEG, OR, Piece, negative, operands
from trilift.lift.language.unfolding import unfold
from trilift.lift.terms import construct as T
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.term import FOLDS, Term

Leaf = Callable[[Term], "Piece | None"]
Form = Callable[[Term, list[Piece]], Piece]
TRITON = Domain("Triton source", missing="error", error="the search cannot write {op} in a kernel",
                says="its expression in Triton")  # fmt: skip


def _call(template: str) -> Form:
    return lambda t, args: Piece(template.format(*(a.text for a in args)))


def _folded(template: str) -> Form:
    return lambda t, args: Piece(reduce(template.format, (a.text for a in args)))


def _compared(sign: str) -> Form:
    return lambda t, args: Piece(f" {sign} ".join(a.at(COMPARE + 1) for a in args), COMPARE)


def _divided(sign: str) -> Form:
    return lambda t, args: Piece(f"{args[0].at(MUL)} {sign} {args[1].at(FACTOR)}", MUL)


def _joined(sign: str, level: float) -> Form:
    return lambda t, args: Piece(f" {sign} ".join(a.at(level) for a in args), level)


def _product_of(template: str) -> Form:
    return lambda t, args: Piece(template.format(args[0].at(ATOM)), MUL)


TRITON.fill({
    "exp": _call("tl.exp({0})"), "exp2": _call("tl.exp2({0})"), "log": _call("tl.log({0})"),
    "log2": _call("tl.log2({0})"), "sqrt": _call("tl.sqrt({0})"), "sin": _call("tl.sin({0})"),
    "cos": _call("tl.cos({0})"), "erf": _call("tl.erf({0})"), "floor": _call("tl.floor({0})"),
    "ceil": _call("tl.ceil({0})"), "abs": _call("tl.abs({0})"), "where": _call("tl.where({0}, {1}, {2})"),
    "tanh": _call("libdevice.tanh({0})"), "sigmoid": _call("tl.sigmoid({0})"),
    "silu": _product_of("{0} * tl.sigmoid({0})"),  # exp(-a) may overflow
    "quick_gelu": _product_of("{0} * tl.sigmoid(1.702 * {0})"),
    "max": _folded("tl.maximum({0}, {1})"), "min": _folded("tl.minimum({0}, {1})"),
    "lt": _compared("<"), "le": _compared("<="), "eq": _compared("=="), "ne": _compared("!="),
    "floordiv": _divided("//"), "mod": _divided("%"), "and": _joined("&", AND), "or": _joined("|", OR),
    "not": lambda t, args: Piece(f"~{args[0].at(ATOM)}", NEG),
    "to_real": lambda t, args: Piece(f"{args[0].at(ATOM)}.to(tl.float32)"),
})  # fmt: skip
TRITON.derive(("add", "mul", "recip"), "sums, products and quotients: expression")
TRITON.derive(FOLDS, "a reduction of a tile: superopt.emit")


def numbers(template: Term, holes: int) -> list[Term]:
    """The largest parts of a template that are numbers of the launch: no constants, no argument in them."""
    out: dict[Term, None] = {}

    def visit(t: Term) -> None:
        if _is_number(t, holes):
            out.setdefault(t)
        else:
            for a in t.args:
                visit(a)

    visit(template)
    return list(out)


def _is_number(t: Term, holes: int) -> bool:
    mine = {f"a{k}" for k in range(holes)}
    leaves = [s for s in t.walk() if s.op in ("scalar", "size")]
    return bool(leaves) and not any(s.op == "scalar" and s.attr in mine for s in leaves)


def tile_text(template: Term, args: list[str], given: Mapping[Term, str]) -> Piece:
    """The template in Triton, with these texts for its arguments and these for its numbers. Raises Unsupported."""
    holes = {f"a{k}": a for k, a in enumerate(args)}

    def leaf(t: Term) -> Piece | None:
        if t in given:
            return Piece(given[t])
        return Piece(holes[str(t.attr)], rank=1) if t.op == "scalar" and t.attr in holes else None

    return expression(template, leaf, real=True)


def expression(t: Term, leaf: Leaf, real: bool) -> Piece:
    """A term in Triton. `leaf`: what stands for a part of it, of rank 0 for numbers, None where its arguments are to be
    printed; `real`: whether constants are real numbers even among integers. Raises Unsupported."""

    def piece(t: Term, real: bool = real) -> Piece:
        if (found := leaf(t)) is not None:
            return found
        if t.is_const:
            return _constant(t.attr, real)
        if t.op in DEFINITIONS and not DEFINITIONS[t.op].on_axis and t.op not in TRITON:
            return piece(unfold(t))
        real = real or any(a.type == T.REAL for a in t.args)
        if t.op == "add":
            return _sum(t, real)
        if t.op in ("mul", "recip"):
            return _product(t, real)
        args = [piece(a, real and a.type != T.BOOL) for a in operands(t)]
        form: Form = TRITON[t.op]
        return form(t, args)

    def _sum(t: Term, real: bool) -> Piece:
        out = ""
        for a in sorted(operands(t), key=lambda a: (a.is_const, _number(leaf(a)), negative(a) is not None)):
            minus = negative(a)
            sign = " - " if minus is not None else " + "
            text = piece(a if minus is None else minus, real).at(ADD + (minus is not None))
            out += (sign if out else "-" * (minus is not None)) + text
        return Piece(out, ADD)

    def _product(t: Term, real: bool) -> Piece:
        factors = sorted(operands(t), key=lambda a: not a.is_const) if t.op == "mul" else [t]
        above = [piece(a, real) for a in factors if a.op != "recip"]
        below = [piece(a.args[0], real).at(ATOM) for a in factors if a.op == "recip"]
        first = " * ".join(a.at(FACTOR if k else MUL) for k, a in enumerate(above))
        return Piece(" / ".join([first or "1.0", *below]), MUL)

    return piece(t)


def _number(found: Piece | None) -> bool:
    return found is not None and not found.rank


def _constant(c: float | int | bool, real: bool) -> Piece:
    if isinstance(c, float) and math.isinf(c):
        return Piece('float("inf")') if c > 0 else Piece('-float("inf")', NEG)
    return Piece(repr(float(c) if real and not isinstance(c, bool) else c), NEG if c < 0 else ATOM)


def keeps_zero(template: Term) -> bool:
    """Whether a function of one argument is certainly 0 at 0."""
    at_zero = T.rewrite(template, lambda s: T.const(0) if s.op == "scalar" and s.attr == "a0" else None)
    while at_zero.op in DEFINITIONS and not DEFINITIONS[at_zero.op].on_axis:
        at_zero = unfold(at_zero)
    return at_zero is T.const(0) or (at_zero.is_const and at_zero.attr == 0)

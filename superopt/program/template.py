"""Terms as Triton expressions: functions of elements, the text of a template over a0, a1 ..., and of indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from trilift.lift.errors import Unsupported
from trilift.lift.language.definitions import DEFINITIONS
from trilift.lift.language.infix import ADD, AND, ATOM, COMPARE, FACTOR, MUL, NEG, OR, Piece, negative
from trilift.lift.language.unfolding import unfold
from trilift.lift.terms import term as T
from trilift.lift.terms.term import Term

Leaf = Callable[[Term], "Piece | None"]
CALLS = {
    "exp": "tl.exp({0})", "exp2": "tl.exp2({0})", "log": "tl.log({0})", "log2": "tl.log2({0})", "sqrt": "tl.sqrt({0})",
    "sin": "tl.sin({0})", "cos": "tl.cos({0})", "erf": "tl.erf({0})", "floor": "tl.floor({0})", "ceil": "tl.ceil({0})",
    "abs": "tl.abs({0})", "where": "tl.where({0}, {1}, {2})", "sigmoid": "tl.sigmoid({0})",
    "tanh": "libdevice.tanh({0})", }  # fmt: skip
FOLDED = {"max": "tl.maximum({0}, {1})", "min": "tl.minimum({0}, {1})"}
# exp(-a) may overflow
NAMED = {"silu": "{0} * tl.sigmoid({0})", "quick_gelu": "{0} * tl.sigmoid(1.702 * {0})"}
COMPARISONS = {"lt": "{0} < {1}", "le": "{0} <= {1}", "eq": "{0} == {1}", "ne": "{0} != {1}"}
DIVISIONS = {"floordiv": "{0} // {1}", "mod": "{0} % {1}"}
LOGIC = {"and": (" & ", AND), "or": (" | ", OR)}


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
        if t.op in DEFINITIONS and not DEFINITIONS[t.op].on_axis and t.op not in NAMED and t.op not in CALLS:
            return piece(unfold(t))
        real = real or any(a.type == T.REAL for a in t.args)
        if t.op == "add":
            return _sum(t, real)
        if t.op in ("mul", "recip"):
            return _product(t, real)
        args = [piece(a, real and a.type != T.BOOL) for a in t.args]
        if t.op in NAMED:
            return Piece(NAMED[t.op].format(args[0].at(ATOM)), MUL)
        if t.op in CALLS:
            return Piece(CALLS[t.op].format(*(a.text for a in args)))
        if t.op in FOLDED:
            out = args[0].text
            for a in args[1:]:
                out = FOLDED[t.op].format(out, a.text)
            return Piece(out)
        if t.op in COMPARISONS:
            return Piece(COMPARISONS[t.op].format(*(a.at(COMPARE + 1) for a in args)), COMPARE)
        if t.op in DIVISIONS:
            return Piece(DIVISIONS[t.op].format(args[0].at(MUL), args[1].at(FACTOR)), MUL)
        if t.op in LOGIC:
            between, level = LOGIC[t.op]
            return Piece(between.join(a.at(level) for a in args), level)
        if t.op == "to_real":
            return Piece(f"{args[0].at(ATOM)}.to(tl.float32)")
        if t.op == "not":
            return Piece(f"~{args[0].at(ATOM)}", NEG)
        raise Unsupported(f"the search cannot write {t.op} in a kernel")

    def _sum(t: Term, real: bool) -> Piece:
        out = ""
        for a in sorted(t.args, key=lambda a: (a.is_const, _number(leaf(a)), negative(a) is not None)):
            minus = negative(a)
            sign = " - " if minus is not None else " + "
            text = piece(a if minus is None else minus, real).at(ADD + (minus is not None))
            out += (sign if out else "-" * (minus is not None)) + text
        return Piece(out, ADD)

    def _product(t: Term, real: bool) -> Piece:
        factors = t.args if t.op == "mul" else (t,)
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
    return at_zero is T.const(0) or at_zero.is_const and at_zero.attr == 0

"""Functions of elements as Triton expressions: the text of a template over a0, a1 ..."""

from __future__ import annotations

from collections.abc import Mapping

from lift import term as T
from lift.definitions import DEFINITIONS, unfold
from lift.errors import Unsupported
from lift.infix import ADD, ATOM, COMPARE, MUL, NEG, Piece, negative
from lift.term import Term

CALLS = {
    "exp": "tl.exp({0})", "exp2": "tl.exp2({0})", "log": "tl.log({0})", "log2": "tl.log2({0})", "sqrt": "tl.sqrt({0})",
    "sin": "tl.sin({0})", "cos": "tl.cos({0})", "erf": "tl.erf({0})", "floor": "tl.floor({0})", "ceil": "tl.ceil({0})",
    "abs": "tl.abs({0})", "where": "tl.where({0}, {1}, {2})", "sigmoid": "tl.sigmoid({0})",
    "tanh": "libdevice.tanh({0})",
}  # fmt: skip
FOLDED = {"max": "tl.maximum({0}, {1})", "min": "tl.minimum({0}, {1})"}
# exp(-a) may overflow
NAMED = {"silu": "{0} * tl.sigmoid({0})", "quick_gelu": "{0} * tl.sigmoid(1.702 * {0})"}
COMPARISONS = {"lt": "{0} < {1}", "le": "{0} <= {1}", "eq": "{0} == {1}", "ne": "{0} != {1}"}


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

    def piece(t: Term) -> Piece:
        if t in given:
            return Piece(given[t])
        if t.op == "scalar" and t.attr in holes:
            return Piece(holes[str(t.attr)])
        if t.op == "const":
            return _constant(t)
        if t.op == "add":
            return _sum(t)
        if t.op in ("mul", "recip"):
            return _product(t)
        if t.op in NAMED:
            return Piece(NAMED[t.op].format(piece(t.args[0]).at(ATOM)), MUL)
        if t.op in CALLS:
            return Piece(CALLS[t.op].format(*(piece(a).text for a in t.args)))
        if t.op in FOLDED:
            out = piece(t.args[0]).text
            for a in t.args[1:]:
                out = FOLDED[t.op].format(out, piece(a).text)
            return Piece(out)
        if t.op in COMPARISONS:
            return Piece(COMPARISONS[t.op].format(*(piece(a).at(COMPARE + 1) for a in t.args)), COMPARE)
        if t.op in DEFINITIONS and not DEFINITIONS[t.op].on_axis:
            return piece(unfold(t))
        raise Unsupported(f"{t.op} has no text in a kernel of the search")

    def _sum(t: Term) -> Piece:
        out = ""
        for a in sorted(t.args, key=lambda a: (a.is_const, a in given, negative(a) is not None)):
            minus = negative(a)
            sign = " - " if minus is not None else " + "
            text = piece(a if minus is None else minus).at(ADD + (minus is not None))
            out += (sign if out else "-" * (minus is not None)) + text
        return Piece(out, ADD)

    def _product(t: Term) -> Piece:
        factors = t.args if t.op == "mul" else (t,)
        above = [piece(a).at(MUL) for a in factors if a.op != "recip"]
        below = [piece(a.args[0]).at(ATOM) for a in factors if a.op == "recip"]
        return Piece(" / ".join([" * ".join(above) or "1.0", *below]), MUL)

    return piece(template)


def _constant(t: Term) -> Piece:
    if t.attr in (float("inf"), float("-inf")):
        return Piece(f'float("{t.attr}")')
    return Piece(repr(t.attr if isinstance(t.attr, bool) else float(t.attr)), NEG if t.attr < 0 else ATOM)


def keeps_zero(template: Term) -> bool:
    """Whether a function of one argument is certainly 0 at 0."""
    at_zero = T.rewrite(template, lambda s: T.const(0) if s.op == "scalar" and s.attr == "a0" else None)
    while at_zero.op in DEFINITIONS and not DEFINITIONS[at_zero.op].on_axis:
        at_zero = unfold(at_zero)
    return at_zero is T.const(0) or at_zero.is_const and at_zero.attr == 0

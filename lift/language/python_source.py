"""Terms over sizes and scalars as Python: expressions of arithmetic and builtins alone, as they stand in an `if`."""

from __future__ import annotations

from ..errors import Unsupported
from ..terms.term import Term
from .infix import COMPARE, PRECEDENCE, Piece, arithmetic, operation

NOT, AND, OR = COMPARE - 0.25, COMPARE - 0.5, COMPARE - 0.75  # Python's `and` binds more loosely than comparisons
TURNED = {"lt": ">", "le": ">="}
CALLS = {"max": "max({all})", "min": "min({all})", "abs": "abs({0})", "where": "({1} if {0} else {2})",
         "next_power_of_2": "(1 << max({0} - 1, 0).bit_length())",
         "truncdiv": "({0} // {1} if ({0} < 0) == ({1} < 0) else -(-({0}) // {1}))",
         "sqrt": "({0}) ** 0.5"}  # fmt: skip


def python_source(t: Term) -> str:
    """The text of a number or condition. Raises Unsupported for what has no such text."""
    return _piece(t).text


def _piece(t: Term) -> Piece:
    match t.op:
        case "size" | "scalar":
            return Piece(str(t.attr))
        case "and" | "or":
            level = AND if t.op == "and" else OR
            return Piece(f" {t.op} ".join(_piece(a).at(level + 0.1) for a in _settled(t)), level)
        case "not":
            return Piece(f"not {_piece(t.args[0]).at(NOT)}", NOT)
        case "lt" | "le" if t.args[0].is_const:
            left, right = (_piece(a).at(COMPARE + 1) for a in t.args)
            return Piece(f"{right} {TURNED[t.op]} {left}", COMPARE)
    if (out := arithmetic(t, _piece, _number)) is not None:
        return out
    if t.op in PRECEDENCE:
        return operation(t, _piece)
    if t.op not in CALLS:
        raise Unsupported(f"{t.op} in Python")
    texts = [_piece(a).at(COMPARE + 1) for a in t.args]
    return Piece(CALLS[t.op].format(*texts, all=", ".join(texts)))


def _settled(t: Term) -> list[Term]:
    """The operands in an order that does not depend on which terms were made first."""
    return sorted(t.args, key=lambda a: (len(repr(a)), repr(a)))


def _number(v: float | int) -> str:
    return 'float("inf")' if v == float("inf") else repr(v)

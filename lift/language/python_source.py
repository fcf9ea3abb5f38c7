"""Terms over sizes and scalars as Python: expressions of arithmetic and builtins alone, as they stand in an `if`."""

from __future__ import annotations

from collections.abc import Callable

from ..terms.meanings import Domain
from ..terms.term import Term
from .infix import ATOM, COMPARE, Piece, arithmetic, operands, operation, order

NOT, AND, OR = COMPARE - 0.25, COMPARE - 0.5, COMPARE - 0.75  # Python's `and` binds more loosely than comparisons
TURNED = {"lt": ">", "le": ">="}
PYTHON = Domain("Python source", missing="error", error="{op} in Python", says="its expression of arithmetic, builtins")


def python_source(t: Term) -> str:
    """The text of a number or condition. Raises Unsupported for what has no such text."""
    return _piece(t).text


def _piece(t: Term) -> Piece:
    found: Piece = PYTHON[t.op](t)
    return found


def _logic(level: float) -> Callable[[Term], Piece]:
    return lambda t: Piece(f" {t.op} ".join(_piece(a).at(level + 0.1) for a in _settled(t)), level)


def _comparison(t: Term) -> Piece:
    """The constant stands on the right."""
    if not t.args[0].is_const:
        return operation(t, _piece)
    left, right = (_piece(a).at(COMPARE + 1) for a in t.args)
    return Piece(f"{right} {TURNED[t.op]} {left}", COMPARE)


def _call(template: str, binds: float = COMPARE + 1) -> Callable[[Term], Piece]:
    """`binds`: how tightly an argument must bind where it stands in the template."""

    def piece(t: Term) -> Piece:
        texts = [_piece(a).at(binds) for a in operands(t)]
        return Piece(template.format(*texts, all=", ".join(texts)))

    return piece


def _settled(t: Term) -> list[Term]:
    """The operands in an order that does not depend on which terms were made first."""
    return sorted(t.args, key=lambda a: (len(repr(a)), order(a)))


def _number(v: float | int) -> str:
    return 'float("inf")' if v == float("inf") else repr(v)


PYTHON.fill({
    **dict.fromkeys(("pow", "floordiv", "mod", "shl", "shr", "eq", "ne"), lambda t: operation(t, _piece)),
    **dict.fromkeys(("size", "scalar"), lambda t: Piece(str(t.attr))),
    **dict.fromkeys(("const", "add", "mul", "recip"), lambda t: arithmetic(t, _piece, _number)),
    **dict.fromkeys(("lt", "le"), _comparison),
    "and": _logic(AND), "or": _logic(OR), "not": lambda t: Piece(f"not {_piece(t.args[0]).at(NOT)}", NOT),
    "max": _call("max({all})"), "min": _call("min({all})"), "abs": _call("abs({0})"),
    "where": _call("({1} if {0} else {2})"), "sqrt": _call("({0}) ** 0.5"),
    "next_power_of_2": _call("(1 << ({0} - 1).bit_length() if {0} > 0 else 0)", ATOM),
    "truncdiv": _call("({0} // {1} if ({0} < 0) == ({1} < 0) else -(-{0} // {1}))", ATOM),
})  # fmt: skip

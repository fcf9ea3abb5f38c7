"""Arithmetic as people write it: signs, quotients, powers and recovered constants, for every printer of text.

A printer gives `Piece`s for its leaves; here they become `a * b / c - d ** 2`. Precedences are Python's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..runtime.session import memo_up_to
from ..terms import construct as T
from ..terms.constants import recover
from ..terms.meanings import Domain
from ..terms.ops import OPS
from ..terms.term import COMMUTATIVE, FOLDS, Axis, Term

ATOM, POW, NEG, MUL, MATMUL, ADD, AND, OR, COMPARE = 9, 8, 7, 6, 5.9, 5, 4, 3, 2  # @ may begin a product, not end one
REMAINDER = 5.95  # a % b * c: may begin a product, but -a % b is another number than -(a % b)
FACTOR = MUL + 0.5  # behind a factor: a * (b // c) is not a * b // c
INFIX = Domain("infix text", missing="call", says="how tightly its sign binds, as in Python")
INFIX.fill({"pow": POW, "floordiv": MUL, "mod": MUL, "shl": ADD - 0.5, "shr": ADD - 0.5,
            "and": AND, "or": OR, "not": NEG, "eq": COMPARE, "ne": COMPARE, "lt": COMPARE, "le": COMPARE})  # fmt: skip
INFIX.derive(("add", "mul", "recip"), "sums, products and quotients: arithmetic")
INFIX.derive(FOLDS, "a form of its own: the printer")
PRECEDENCE: dict[str, float] = INFIX.rows
SYMMETRIC = {*COMMUTATIVE, "eq", "ne"}  # of which the order of arguments means nothing


@dataclass(frozen=True, slots=True)
class Piece:
    """Printed text, how tightly it binds, and the number of dimensions of the array it stands for (0 for scalars)."""

    text: str
    binds: float = ATOM
    rank: int = 0

    def at(self, level: float) -> str:
        """The text where only what binds at least as tightly as `level` may stand."""
        return self.text if self.binds >= level else f"({self.text})"


Child = Callable[[Term], Piece]
Number = Callable[[float | int], str]


def number(v: float | int) -> str:
    """The text of a positive number, a recovered constant by its name: `log2(e) / 8`."""
    return "inf" if v == float("inf") else recover(v)[1] if isinstance(v, float) else repr(v)


def order(t: Term) -> tuple[object, ...]:
    """Where an operand stands: more axes first, then by axes and the tensors it reads, then the shorter, numbers at
    the end. It depends on the structure alone, never on which term was made first."""
    names = sorted(T.reads(t))
    return (
        t.op == "const",
        -len(t.free),
        names[:1] == [],
        sorted(a.name for a in t.free),
        names[:1],
        len(spelling(t)),
        spelling(t),
        spelling(t, sizes=True),
    )


def operands(t: Term) -> list[Term]:
    """The arguments as they are printed: where any order means the same, in the one of `order`."""
    return sorted(t.args, key=order) if t.op in SYMMETRIC else list(t.args)


def in_order(t: Term, among: Callable[[Term], Sequence[Term]] = operands) -> Iterator[Term]:
    """Every distinct subterm once, arguments first and these in the order in which they are printed."""
    seen: set[Term] = set()
    stack: list[tuple[Term, bool]] = [(t, False)]
    while stack:
        s, done = stack.pop()
        if done:
            yield s
        elif s not in seen:
            seen.add(s)
            stack.append((s, True))
            stack.extend((a, False) for a in reversed(among(s)) if a not in seen)


@memo_up_to(100_000)
def spelling(t: Term, sizes: bool = False) -> str:
    """The term as a text that depends neither on the order in which terms were made nor on how a quotient is nested;
    with the `sizes` of its axes, no two terms have the same."""
    if t.op in ("mul", "recip"):
        return f"mul({', '.join(sorted(_factors(t, sizes)))})"
    args = [spelling(a, sizes) for a in t.args]
    size = f" < {spelling(t.attr.size, sizes)}" if sizes and isinstance(t.attr, Axis) else ""
    return f"{t.op}[{t.attr!r}{size}]({', '.join(sorted(args) if t.op in SYMMETRIC else args)})"


def _factors(t: Term, sizes: bool, below: bool = False) -> list[str]:
    if t.op == "mul":
        return [f for a in t.args for f in _factors(a, sizes, below)]
    if t.op == "recip":
        return _factors(t.args[0], sizes, not below)
    return [f"/{spelling(t, sizes)}" if below else spelling(t, sizes)]


def arithmetic(t: Term, child: Child, number: Number = number) -> Piece | None:
    """The piece of a sum, product, quotient or number; None if t is none of these."""
    match t.op:
        case "const":
            return _constant(t, number)
        case "add":
            return _sum(t, child)
        case "mul" | "recip":
            return _product(t, child, number)
    return None


def _constant(t: Term, number: Number) -> Piece:
    if isinstance(t.attr, bool):
        return Piece(repr(t.attr))
    text = number(abs(t.attr))
    if re.fullmatch(r"\d+ / \d+", text) and len(short := repr(recover(abs(t.attr))[0])) <= 5:
        text = short  # 0.25 stands alone, x / 4 in a product
    atom = " " not in text
    if t.attr < 0:
        return Piece(f"-{text}" if atom else f"-({text})", NEG)
    return Piece(text, ATOM if atom else MUL)


def negative(t: Term) -> Term | None:
    """a, if t is written -a."""
    if t.op == "const" and not isinstance(t.attr, bool) and t.attr < 0:
        return T.const(-t.attr)
    if t.op == "mul" and any(a.op == "const" and a.attr < 0 for a in t.args):
        return T.mul(-1, t)
    return None


def _sum(t: Term, child: Child) -> Piece:
    args = sorted(t.args, key=lambda a: (negative(a) is not None, *order(negative(a) or a)))
    out, rank = "", 0
    for a in args:
        minus = negative(a)
        piece = child(a if minus is None else minus)
        rank = max(rank, piece.rank)
        sign = " - " if minus is not None else " + "
        level = ADD if minus is None else MUL if piece.binds == REMAINDER and not out else MATMUL
        out += (sign if out else "-" if minus is not None else "") + piece.at(level)
    return Piece(out, ADD, rank)


def split(t: Term) -> tuple[float | int, list[Term], list[Term]]:
    """Number, numerator and denominator of a product."""
    value: float | int = 1
    up: list[Term] = []
    down: list[Term] = []
    for a in t.args if t.op == "mul" else (t,):
        if a.op == "const":
            value = a.attr
        elif a.op == "recip":
            down += a.args[0].args if a.args[0].op == "mul" else a.args
        else:
            up.append(a)
    return value, up, down


def _product(t: Term, child: Child, number: Number) -> Piece:
    value, up, down = split(t)
    pieces, rank = _powers(up, child)
    below, rank_below = _powers(down, child)
    head, tail = number_parts(number(abs(value)))
    if head != "1" or not pieces:
        pieces = [Piece(head, ATOM), *pieces]
    if tail:
        below = [Piece(tail, ATOM if _is_atom(tail) else MUL), *below]
    out = (
        pieces[0].text
        if len(pieces) == 1 and not below
        else " * ".join(p.at(FACTOR if k else MATMUL) for k, p in enumerate(pieces))
    )
    begins = REMAINDER if pieces[0].binds == REMAINDER else MUL
    binds = pieces[0].binds if len(pieces) == 1 and not below else begins
    if below:
        bottom = (
            below[0].at(POW)
            if len(below) == 1
            else "(" + " * ".join(p.at(FACTOR if k else REMAINDER) for k, p in enumerate(below)) + ")"
        )
        out = f"{out} / {bottom}"
    if value < 0:
        return Piece(f"-{Piece(out, binds).at(MUL)}", min(binds, NEG) if binds > MUL else MUL, max(rank, rank_below))
    return Piece(out, binds, max(rank, rank_below))


def _is_atom(text: str) -> bool:
    return " " not in text or (text.startswith("(") and text.endswith(")") and text.count("(") == 1)


def number_parts(text: str) -> tuple[str, str]:
    """The text above and below the bar: "1 / 8" -> ("1", "8")."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "/" and depth == 0:
            return text[: k - 1], text[k + 2 :].removeprefix("(").removesuffix(")") if text[k + 2] == "(" else text[
                k + 2 :
            ]
    return text, ""


def _powers(factors: Sequence[Term], child: Child) -> tuple[list[Piece], int]:
    counts = Counter(factors)
    out: list[Piece] = []
    for f in sorted(counts, key=order):
        piece = child(f)
        n = counts[f]
        out.append(piece if n == 1 else Piece(f"{piece.at(ATOM)} ** {n}", POW, piece.rank))
    return out, max((p.rank for p in out), default=0)


def operation(t: Term, child: Child) -> Piece:
    """A row of lift.terms.ops by its text, or a known name without an axis."""
    pieces = [child(a) for a in operands(t)]
    rank = max((p.rank for p in pieces), default=0)
    if t.op not in PRECEDENCE:
        return Piece(f"{t.op}({', '.join(p.text for p in pieces)})", ATOM, rank)
    level = PRECEDENCE[t.op]
    if t.op == "pow":
        return Piece(f"{pieces[0].at(ATOM)} ** {pieces[1].at(NEG)}", POW, rank)
    if t.op == "not":
        return Piece(f"~{pieces[0].at(NEG)}", NEG, rank)
    text = OPS[t.op].text or ""
    symbol = text.replace("{0}", "").replace("{1}", "")
    tight = level + 1 if level != MUL else MUL + 1
    binds = REMAINDER if level == MUL else level
    first = binds if OPS[t.op].arity < 0 or level == MUL else tight
    return Piece(symbol.join(p.at(first if k == 0 else tight) for k, p in enumerate(pieces)), binds, rank)

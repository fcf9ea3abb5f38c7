"""The laws that the checker uses, as data: tests prove each row, and show that its wrong twin is false.

A law says `left = right`, for all numbers that meet `given`. Letters tell the kinds: p q d k n are integers, A B are
finite sets of integers, f g functions from integers to reals, c x y z reals. The left side of a definition is an
operation of which its right side is the meaning: the algebra reads it from here. Of the others `by` names the function
that uses them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Law:
    """One law. `wrong`: a right side that is false; "": the law is false without `given`. `source`: a theorem, or how
    it follows. `by`: the function of `algebra` or `polynomials` that uses it, "" for a definition."""

    name: str
    left: str
    right: str
    given: str = ""
    source: str = ""
    wrong: str = ""
    by: str = ""


LN2, LN10 = "0.6931471805599453", "2.302585092994046"
EXP = "Rudin, Principles of Mathematical Analysis, Theorem 8.6"
LOG = "Rudin, Principles of Mathematical Analysis, (8.36) to (8.40)"
FINITE = "induction over the elements of A"
ORDER = "the definition of the maximum of a finite set"

DEFINITIONS = (
    Law("tanh", "tanh(x)", "1 - 2 * recip(exp(2 * x) + 1)", "", "sinh / cosh", "1 - 2 * recip(exp(x) + 1)"),
    Law("exp2", "exp2(x)", f"exp({LN2} * x)", "", EXP, "exp(x)"),
    Law("log2", "log2(x)", f"log(x) * recip({LN2})", "x > 0", LOG),
    Law("log10", "log10(x)", f"log(x) * recip({LN10})", "x > 0", LOG),
    Law("remainder", "mod(p, d)", "p - d * floordiv(p, d)", "d != 0", "Knuth, TAOCP 1, 1.2.4"),
    Law("remainder to zero", "truncmod(p, d)", "p - d * truncdiv(p, d)", "d != 0", "ISO C 6.5.5"),
)  # fmt: skip

PROCEDURES = (
    Law("exp of a sum", "exp(x + y)", "exp(x) * exp(y)", "", EXP, "exp(x) + exp(y)", "exponential"),
    Law("exp of log", "exp(log(x) + y)", "x * exp(y)", "x > 0", LOG, by="_exp"),
    Law("log of a product", "log(c * exp(y) * x)", "log(c) + y + log(x)", "c > 0 and x > 0", LOG, by="_log"),
    Law("product of roots", "sqrt(x) * sqrt(x)", "x", "x >= 0", "the definition of the root", by="power_of"),
    Law("inverse", "x * recip(x)", "1", "x != 0", "field axiom", by="inverse"),
    Law("complement", "bitxor(p, -1)", "-1 - p", "", "two's complement", "1 - p", "_bitxor"),
    Law("quotient of a multiple", "floordiv(p + d * k, d)", "floordiv(p, d) + k", "d != 0", "Knuth, TAOCP 1, 1.2.4",
        by="quotient"),
    Law("quotient of a remainder", "floordiv(p, d)", "0", "0 <= p < d", "Knuth, TAOCP 1, 1.2.4", by="quotient"),
    Law("quotient of a quotient", "floordiv(floordiv(p, d), k)", "floordiv(p, d * k)", "d > 0 and k > 0",
        "Knuth, TAOCP 1, 1.2.4, exercise 35", by="_inner_quotient"),
    Law("quotient to zero", "truncdiv(p, d)", "-floordiv(-p, d)", "p <= 0 and d > 0", "ISO C 6.5.5", by="toward_zero"),
    Law("sum of a multiple", "sum(c * f(i) for i in A)", "c * sum(f(i) for i in A)", "", FINITE, "sum(f(i) for i in A)",
        "sum"),
    Law("sum of a sum", "sum(f(i) + g(i) for i in A)", "sum(f(i) for i in A) + sum(g(i) for i in A)", "", FINITE,
        "sum(f(i) for i in A)", "sum"),
    Law("sum of ones", "sum(1 for i in range(p, q))", "q - p", "p <= q", FINITE, by="_count"),
    Law("sum in two parts", "sum(f(i) for i in A | B)", "sum(f(i) for i in A) + sum(f(i) for i in B)", "not A & B",
        FINITE, by="_cancel"),
    Law("sum over blocks", "sum(f(i) for k in range(0, n) for i in A if d * k <= i < d * k + d)",
        "sum(f(i) for i in A if 0 <= i < n * d)", "d > 0 and n >= 0", "each i is in the block i // d only",
        "sum(f(i) for i in A)", "_determined"),
    Law("sum over few", "sum(f(i) for k in range(0, 3) for i in A if k <= i)",
        "sum(f(i) for i in A if 0 <= i) + sum(f(i) for i in A if 1 <= i) + sum(f(i) for i in A if 2 <= i)", "", FINITE,
        "3 * sum(f(i) for i in A if 0 <= i)", "_few"),
    Law("sum from elsewhere", "sum(f(i + d) for i in A)", "sum(f(i) for i in {j + d for j in A})", "", FINITE,
        "sum(f(i) for i in A)", "shifted"),
    Law("maximum in two parts", "maximum(f, A | B)", "max(maximum(f, A), maximum(f, B))", "A and B", ORDER,
        "maximum(f, A)", "_covered"),
    Law("maximum of exponentials", "maximum(lambda i: c * exp(f(i)), A)", "c * exp(maximum(f, A))", "A and c > 0",
        "c exp is increasing for c > 0", by="_monotonous"),
    Law("a part below", "maximum(f, A | B)", "maximum(f, A)", "A and B and maximum(f, B) <= maximum(f, A)", ORDER,
        by="_at_most"),
    Law("index of a part above", "first(f, A | B)", "first(f, A)", "A and B and maximum(f, B) < maximum(f, A)",
        "no element of B is a maximum of the union", by="_is_first"),
    Law("index of a part before", "first(f, A | B)", "first(f, A)",
        "A and B and maximum(f, B) <= maximum(f, A) and max(A) < min(B)", "a maximum in B has an earlier one in A",
        by="_is_first"),
    Law("index from elsewhere", "first(lambda i: f(i + d), A)", "first(f, {j + d for j in A}) - d", "A", ORDER,
        "first(f, {j + d for j in A})", "_argument"),
    Law("index of the minimum", "first_minimum(f, A)", "first(lambda i: -f(i), A)", "A", ORDER, "first(f, A)",
        "_argument"),
)  # fmt: skip

Expression = tuple[str, tuple["Expression", ...]] | str | int | float  # operation and operands; a variable; a number
SIGNS = {ast.Add: "add", ast.Mult: "mul"}


def defined(law: Law) -> tuple[str, tuple[str, ...], Expression]:
    """(operation, its variables, the meaning) of a definition."""
    match read(law.left):
        case (op, variables) if isinstance(op, str):
            return op, tuple(map(str, variables)), read(law.right)
    raise ValueError(f"no definition: {law.left}")


def read(said: str) -> Expression:
    """The term of a text: sums, products, differences, applications."""
    return _expression(ast.parse(said, mode="eval").body)


def _expression(x: ast.expr) -> Expression:
    match x:
        case ast.Constant(value=int() | float() as c):
            return c
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id=op), args=args):
            return op, _several(args)
        case ast.BinOp(left=p, op=ast.Sub(), right=q):
            return "add", (_expression(p), ("mul", (-1, _expression(q))))
        case ast.BinOp(left=p, op=ast.Add() | ast.Mult() as sign, right=q):
            return SIGNS[type(sign)], _several([p, q])
    raise ValueError(f"not understood: {ast.dump(x)}")


def _several(xs: Sequence[ast.expr]) -> tuple[Expression, ...]:
    return tuple(map(_expression, xs))

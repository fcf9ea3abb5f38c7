"""Text to terms. The grammar is that of Python expressions, read with `ast`:

    x[i, k] * w[k, j]      elements of tensors            sum(k, e)  amax(k, e)  softmax(n, e)    folds and names over an axis
    -a, a / b, a ** 2      arithmetic                     a < b, a == b, p & q, ~p                conditions
    exp(a), where(p, a, b) rows of lift.ops               pi, inf, size(k)                        constants

`pattern` reads the laws' language, where a name is a variable and i, j, k are axes; lift.text reads whole formulas.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import cache

from . import term as T
from .definitions import DEFINITIONS
from .errors import CaseError
from .ops import OPS
from .term import FOLDS, Axis, Term

CONSTANTS = {"pi": math.pi, "inf": math.inf, "e": math.e}
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.FloorDiv: "floordiv", ast.Mod: "mod",
          ast.BitAnd: "and", ast.BitOr: "or", ast.LShift: "shl", ast.RShift: "shr"}  # fmt: skip
COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
UNARY = {ast.USub: "neg", ast.Not: "not", ast.Invert: "not"}


def bad(text: str, node: ast.AST, why: str) -> CaseError:
    return CaseError(f"cannot read the formula {text!r}", why=f"{why}: {ast.unparse(node)!r}")


def tree(text: str) -> ast.expr:
    """The syntax tree of one expression. Raises CaseError."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as e:
        raise CaseError(f"cannot read the formula {text!r}", why=e.msg) from None


class Scalars:
    """Scalar expressions. `name(id)` gives the term of a bare name or None, `axis(id)` the axis of that name or None, and
    `tensor(id)` the element type of a tensor or None."""

    def __init__(self, text: str, name: Callable[[str], Term | None], axis: Callable[[str], Axis | None], tensor: Callable[[str], str | None]) -> None:
        self.text, self.name, self.axis, self.tensor = text, name, axis, tensor

    def read(self, e: ast.expr) -> Term:
        match e:
            case ast.Constant(value=bool() | int() | float() as v):
                return T.const(v)
            case ast.Name(id=name):
                return self._name(e, name)
            case ast.UnaryOp(op=op, operand=a) if type(op) in UNARY:
                return OPS[UNARY[type(op)]].on_terms(self.read(a))
            case ast.BinOp(left=a, op=op, right=b) if type(op) in BINARY:
                return self._binary(BINARY[type(op)], self.read(a), self.read(b))
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in COMPARE:
                return OPS[COMPARE[type(op)]].on_terms(self.read(a), self.read(b))
            case ast.Subscript(value=ast.Name(id=x), slice=index) if self.tensor(x):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return T.read(x, [self.read(i) for i in parts], self.tensor(x) or T.REAL)
            case ast.Call(func=ast.Name(id=f), args=args):
                return self._call(e, f, args)
        raise bad(self.text, e, "not part of the language")

    def _name(self, e: ast.expr, name: str) -> Term:
        if (t := self.name(name)) is not None:
            return t
        if (a := self.axis(name)) is not None:
            return T.axis(a)
        if name in CONSTANTS:
            return T.const(CONSTANTS[name])
        raise bad(self.text, e, "unknown name")

    def _binary(self, op: str, a: Term, b: Term) -> Term:
        if op == "pow" and b.op == "const" and b.attr in (2, 3, 4):
            return T.mul(*([a] * b.attr))
        return OPS[op].on_terms(a, b)

    def _call(self, e: ast.Call, f: str, args: list[ast.expr]) -> Term:
        if f == "size" and len(args) == 1 and isinstance(args[0], ast.Name) and (over := self.axis(args[0].id)):
            return over.size
        if f in FOLDS or (f in DEFINITIONS and DEFINITIONS[f].on_axis):
            over = self.axis(args[0].id) if args and isinstance(args[0], ast.Name) else None
            if over is None:
                raise bad(self.text, e, "the first argument must be an axis")
            return self._over(e, f, over, args[1:])
        if f in DEFINITIONS or f in OPS:
            ts = [self.read(a) for a in args]
            return T.node(f, tuple(ts)) if f in DEFINITIONS else OPS[f].on_terms(*ts)
        raise bad(self.text, e, "unknown function")

    def _over(self, e: ast.Call, f: str, over: Axis, args: list[ast.expr]) -> Term:
        ts = [self.read(a) for a in args] + [self.read(k.value) for k in e.keywords]
        if len(ts) != (1 if f in FOLDS else len(DEFINITIONS[f].arguments)):
            raise bad(self.text, e, "wrong number of arguments")
        return T.make(f, *ts, attr=over)


@cache
def pattern_axis(name: str) -> Axis:
    return Axis(name, T.size(name))


@cache
def pattern(text: str) -> Term:
    """A law's side: i, j, k are axes, p, q, r conditions, every other name a real variable (a `scalar` node)."""
    axis = lambda s: pattern_axis(s) if s in ("i", "j", "k") else None  # noqa: E731
    name = lambda s: None if s in CONSTANTS or axis(s) else T.scalar(s, T.BOOL if s in "pqr" else T.REAL)  # noqa: E731
    return Scalars(text, name, axis, lambda s: None).read(tree(text))

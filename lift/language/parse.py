"""Text to terms. The grammar is that of Python expressions, read with `ast`:

    x[i, k] * w[k, j]      elements of tensors            sum(k, e)  softmax(n, e)     folds and names over an axis
    -a, a / b, a ** 2      arithmetic                     a < b, a == b, p & q, ~p                conditions
    exp(a), where(p, a, b) rows of lift.terms.ops         pi, inf, size(k)                        constants

`pattern` reads the laws' language, where a name is a variable and i, j, k are axes. `formula` reads what
lift.printers.text prints: `out[i, j] = sum(k, x[i, k] * w[k, j])` in index notation, `softmax(x, -1) @ v` in tensor
form (lift.language.positional has its rules)."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..errors import CaseError
from ..runtime.session import memo
from ..terms import construct as T
from ..terms.ops import OPS
from ..terms.spec import Formula
from ..terms.term import FOLDS, Axis, Term
from . import positional as A
from .definitions import DEFINITIONS
from .idioms import SCANS
from .positional import Array

CONSTANTS = {"pi": math.pi, "inf": math.inf, "e": math.e}
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.FloorDiv: "floordiv",
          ast.Mod: "mod", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl",
          ast.RShift: "shr"}  # fmt: skip
ON_BITS = {"and": "bitand", "or": "bitor", "xor": "bitxor"}  # of truths, and of integers
COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
PREFIX = {name: fold for fold, (name, _) in SCANS.items()}
UNARY = {ast.USub: "neg", ast.Not: "not", ast.Invert: "invert"}


DEEPEST_LEVELS = 200  # of a formula's syntax tree
LARGEST = 2.0**1023  # of a number in a formula: beyond it no float is near


def bad(text: str, node: ast.AST, why: str) -> CaseError:
    return CaseError(f"cannot read the formula {text!r}", why=f"{why}: {ast.unparse(node)!r}")


def tree(text: str) -> ast.expr:
    """The syntax tree of one expression. Raises CaseError."""
    try:
        read = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as e:
        raise CaseError(f"cannot read the formula {text!r}", why=e.msg) from None
    except (RecursionError, MemoryError):
        raise CaseError("cannot read the formula", why="it is nested too deeply for Python's parser") from None
    if _levels(read) > DEEPEST_LEVELS:
        raise CaseError("cannot read the formula", why=f"it is nested more than {DEEPEST_LEVELS} levels deep")
    return read


def _levels(read: ast.expr) -> int:
    """The number of levels of a syntax tree, at most one above DEEPEST_LEVELS."""
    level: list[ast.AST] = [read]
    count = 0
    while level and count <= DEEPEST_LEVELS:
        level = [child for e in level for child in ast.iter_child_nodes(e)]
        count += 1
    return count


def number(text: str, e: ast.expr, v: bool | int | float) -> Term:
    """A number of the text. Raises CaseError for one beyond the floats."""
    if abs(v) > LARGEST:
        raise bad(text, e, "the number is too large")
    return T.const(v)


def unary(text: str, e: ast.expr, op: str, t: Term) -> Term:
    """-t, not t, ~t: of an integer ~t is -1 - t. Raises CaseError for ~ of a real."""
    if op != "invert" or t.type == T.BOOL:
        return OPS["not" if op == "invert" else op].on_terms(t)
    if t.type == T.REAL:
        raise bad(text, e, "~ is of truths and of integers")
    return T.sub(-1, t)


def arguments(text: str, e: ast.Call, f: str, count: int) -> None:
    """Raises CaseError where a function of a row of OPS or DEFINITIONS has no such number of arguments; the axis of a
    definition is none."""
    wanted = len(DEFINITIONS[f].arguments) if f in DEFINITIONS else OPS[f].arity
    if count != wanted and not (wanted < 0 and count >= 2):
        raise bad(text, e, "wrong number of arguments")


class Scalars:
    """Scalar expressions. `name(id)` gives the term of a bare name or None, `axis(id)` the axis of that name or None,
    and `tensor(id)` the element type of a tensor or None."""

    def __init__(
        self,
        text: str,
        name: Callable[[str], Term | None],
        axis: Callable[[str], Axis | None],
        tensor: Callable[[str], str | None],
    ) -> None:
        self.text, self.name, self.axis, self.tensor = text, name, axis, tensor
        self.ranks: dict[str, int] = {}  # of the tensors whose dimensions are known

    def read(self, e: ast.expr) -> Term:
        match e:
            case ast.Constant(value=bool() | int() | float() as v):
                return number(self.text, e, v)
            case ast.Name(id=name):
                return self._name(e, name)
            case ast.UnaryOp(op=op, operand=a) if type(op) in UNARY:
                return unary(self.text, e, UNARY[type(op)], self.read(a))
            case ast.BinOp(left=a, op=op, right=b) if type(op) in BINARY:
                return self._binary(e, BINARY[type(op)], self.read(a), self.read(b))
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in COMPARE:
                return OPS[COMPARE[type(op)]].on_terms(self.read(a), self.read(b))
            case ast.Subscript(value=ast.Name(id=x), slice=index) if self.tensor(x):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                if self.ranks.get(x, len(parts)) != len(parts):
                    raise bad(self.text, e, f"{x} has {self.ranks[x]} dimensions")
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

    def _binary(self, e: ast.expr, op: str, a: Term, b: Term) -> Term:
        return binary(self.text, e, op, a, b)

    def _call(self, e: ast.Call, f: str, args: list[ast.expr]) -> Term:
        if f == "size" and len(args) == 1 and isinstance(args[0], ast.Name) and (over := self.axis(args[0].id)):
            return over.size
        if f in FOLDS or (f in DEFINITIONS and DEFINITIONS[f].on_axis):
            over = self.axis(args[0].id) if args and isinstance(args[0], ast.Name) else None
            if over is None:
                raise bad(self.text, e, "the first argument must be an axis")
            return self._over(e, f, over, args[1:])
        if f in DEFINITIONS or f in OPS:
            arguments(self.text, e, f, len(args))
            ts = [self.read(a) for a in args]
            return T.node(f, tuple(ts)) if f in DEFINITIONS else OPS[f].on_terms(*ts)
        raise bad(self.text, e, "unknown function")

    def _over(self, e: ast.Call, f: str, over: Axis, args: list[ast.expr]) -> Term:
        ts = [self.read(a) for a in args] + [self.read(k.value) for k in e.keywords]
        if len(ts) != (1 if f in FOLDS else len(DEFINITIONS[f].arguments)):
            raise bad(self.text, e, "wrong number of arguments")
        return T.make(f, *ts, attr=over)


@memo
def pattern_axis(name: str) -> Axis:
    return Axis(name, T.size(name))


@memo
def pattern(text: str) -> Term:
    """A law's side: i, j, k are axes, p, q, r conditions, t an index, every other name a real variable (a `scalar`
    node)."""
    axis = lambda s: pattern_axis(s) if s in ("i", "j", "k") else None  # noqa: E731
    kind = {"t": T.INT, "p": T.BOOL, "q": T.BOOL, "r": T.BOOL}
    name = lambda s: None if s in CONSTANTS or axis(s) else T.scalar(s, kind.get(s, T.REAL))  # noqa: E731
    return Scalars(text, name, axis, lambda s: None).read(tree(text))


# ---- formulas --------------------------------------------------------------------------------------------------------

Dims = Sequence[str | int | Term]


@dataclass(frozen=True, slots=True)
class _Given:
    """Names that a formula may use: tensors with their sizes and types, `names` of sizes; `known` raises for others."""

    sizes: Mapping[str, Sequence[Term]]
    types: Mapping[str, str]
    names: set[str]
    known: Callable[[str], None]


def formula(
    text: str,
    inputs: Mapping[str, Dims],
    types: Mapping[str, str] | None = None,
    axes: Sequence[Axis] | None = None,
    dtype: str = "f32",
    known: Callable[[str], None] = lambda name: None,
) -> Formula:
    """The formula of a text. `inputs`: the dimensions of each tensor ("M", 64, "2 * H"); `types`: those that are not
    real ("int", "bool"); `axes`: the output's, where the text does not tell them (a constant); `known`: raises for a
    name of no size and no scalar. Raises CaseError."""
    sizes = {x: [dimension(d) for d in dims] for x, dims in inputs.items()}
    names = {s.attr for dims in sizes.values() for d in dims for s in d.walk() if s.op == "size"} | {
        s.attr for a in axes or () for s in a.size.walk() if s.op == "size"}  # fmt: skip
    try:
        given = _Given(sizes, types or {}, names, known)
        if (at := _equals(text)) >= 0:
            return _Indexed(text, given).formula(text[:at], text[at + 1 :], dtype)
        return _Tensors(text, given).formula(axes, dtype)
    except RecursionError:
        raise CaseError("cannot read the formula", why="its parentheses are nested too deeply") from None


def dimension(d: str | int | Term) -> Term:
    """A size: "2 * H", 64."""
    if isinstance(d, Term | int):
        return T.const(d)
    return Scalars(d, T.size, lambda s: None, lambda s: None).read(tree(d))


def _bare(name: str, sizes: set[str]) -> Term:
    """A size if some dimension mentions it or it is written in capitals, else a scalar."""
    return T.size(name) if name in sizes or name.isupper() else T.scalar(name)


def _equals(text: str) -> int:
    """Where `out[i, j] =` ends, -1 in tensor form."""
    m = re.match(r"\s*\w+\s*(\[[^\[\]=]*\])?\s*=(?!=)", text)
    return m.end() - 1 if m else -1


class _Indexed(Scalars):
    """Index notation. The size of an axis is that of the dimension it indexes, unless it is written: `sum(k < K,
    ...)`."""

    def __init__(self, text: str, given: _Given) -> None:
        self.sizes, self.names, self.known = given.sizes, given.names, given.known
        self.scope: dict[str, Axis] = {}
        of_type = lambda s: given.types.get(s, T.REAL) if s in given.sizes else None  # noqa: E731
        super().__init__(text, self._bare, self.scope.get, of_type)
        self.ranks = {x: len(dims) for x, dims in given.sizes.items()}

    def _bare(self, name: str) -> Term | None:
        if name in self.scope or name in CONSTANTS:
            return None
        self.known(name)
        return _bare(name, self.names)

    def formula(self, head: str, body: str, dtype: str) -> Formula:
        name, _, index = head.strip().rstrip("]").partition("[")
        value = tree(body)
        axes = tuple(self._axis(e, value) for e in _elements(tree(f"[{index}]")))
        self.scope |= {a.name: a for a in axes}
        return Formula(name.strip(), axes, self.read(value), dtype)

    def _axis(self, e: ast.expr, body: ast.expr) -> Axis:
        match e:
            case ast.Name(id=name):
                if (size := self._size(name, body)) is None:
                    raise bad(self.text, e, "the size of this axis is unknown")
                return Axis(name, size)
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Lt()], comparators=[size]):
                return Axis(name, self.read(size))
        raise bad(self.text, e, "not an axis")

    def _size(self, name: str, e: ast.AST) -> Term | None:
        """The dimension that `name` indexes in e, where e does not bind the name again."""
        match e:
            case (
                ast.Call(args=[ast.Name(id=other), *_]) | ast.Call(args=[ast.Compare(left=ast.Name(id=other)), *_])
            ) if other == name and self._binder(e):
                return None
            case ast.Subscript(value=ast.Name(id=x), slice=index) if x in self.sizes:
                for i, n in zip(_elements(index), self.sizes[x], strict=False):
                    if isinstance(i, ast.Name) and i.id == name:
                        return n
        return next((s for c in ast.iter_child_nodes(e) if (s := self._size(name, c)) is not None), None)

    def _binder(self, e: ast.Call) -> bool:
        f = getattr(e.func, "id", "")
        return f in FOLDS or (f in DEFINITIONS and DEFINITIONS[f].binds)

    def _call(self, e: ast.Call, f: str, args: list[ast.expr]) -> Term:
        if not (args and self._binder(e)):
            return super()._call(e, f, args)
        inner = self._axis(args[0], ast.List(args[1:]))
        name = inner.name
        outside, self.scope[name] = self.scope.get(name), inner
        out = self._over(e, f, inner, args[1:])
        if outside is None:
            del self.scope[name]
        else:
            self.scope[name] = outside
        return out


def _elements(e: ast.expr) -> list[ast.expr]:
    return list(e.elts) if isinstance(e, ast.Tuple | ast.List) else [e]


class _Tensors:
    """Tensor form."""

    def __init__(self, text: str, given: _Given) -> None:
        self.text, self.sizes, self.types = text, given.sizes, given.types
        self.names, self.known = given.names, given.known

    def formula(self, axes: Sequence[Axis] | None, dtype: str) -> Formula:
        from .alignment import align

        x = self.read(tree(self.text))
        have = [A.new_axis(a.size) if a is A.ONE else a for a in x.dims if a is not None]
        wanted = list(axes) if axes is not None else _named(have)
        have = wanted[: len(wanted) - len(have)] + have
        term = A.rename(x.term, {a: b for a, b in zip(have, wanted, strict=True) if a != b})
        return Formula("out", tuple(wanted), align(term, wanted, rename=True), dtype)

    def read(self, e: ast.expr) -> Array:
        match e:
            case ast.Name(id=x) if x in self.sizes:
                return A.tensor(x, self.sizes[x], self.types.get(x, T.REAL))
            case ast.Constant(value=bool() | int() | float() as v):
                return Array(number(self.text, e, v))
            case ast.Name(id=name):
                return Array(self._number(name))
            case ast.UnaryOp(op=op, operand=a) if type(op) in UNARY:
                return A.apply(partial(unary, self.text, e, UNARY[type(op)]), self.read(a))
            case ast.BinOp(left=a, op=ast.MatMult(), right=b):
                return self._product(e, self.read(a), self.read(b))
            case ast.BinOp(left=a, op=op, right=b) if type(op) in BINARY:
                name = BINARY[type(op)]
                return A.apply(lambda x, y: binary(self.text, e, name, x, y), self.read(a), self.read(b))
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in COMPARE:
                return A.apply(OPS[COMPARE[type(op)]].on_terms, self.read(a), self.read(b))
            case ast.Attribute(value=a, attr="T" | "mT"):
                return self._transposed(e, self.read(a))
            case ast.Call(func=ast.Attribute(value=a, attr="permute"), args=order):
                return self._permuted(e, self.read(a), order)
            case ast.Subscript(value=a, slice=index):
                return self._indexed(e, self.read(a), [self._part(i) for i in _elements(index)])
            case ast.Call(func=ast.Name(id=f), args=args):
                return self._call(e, f, args)
        raise bad(self.text, e, "not part of the language")

    def _number(self, name: str) -> Term:
        if name in CONSTANTS:
            return T.const(CONSTANTS[name])
        self.known(name)
        return _bare(name, self.names)

    def _product(self, e: ast.expr, x: Array, y: Array) -> Array:
        if not x.dims or not y.dims:
            raise bad(self.text, e, "@ is of vectors and matrices, not of numbers")
        return A.matmul(x, y)

    def _transposed(self, e: ast.expr, x: Array) -> Array:
        rank = len(x.dims)
        if rank < 2:
            raise bad(self.text, e, "not a matrix")
        return A.permute(x, [*range(rank - 2), rank - 1, rank - 2])

    def _permuted(self, e: ast.expr, x: Array, order: Sequence[ast.expr]) -> Array:
        places = [self._axis(e, p, x) for p in order]
        if sorted(places) != list(range(len(x.dims))):
            raise bad(self.text, e, "not an order of the dimensions")
        return A.permute(x, places)

    def _indexed(self, e: ast.expr, x: Array, parts: Sequence[Array | slice | int | None]) -> Array:
        if sum(p is not None for p in parts) > len(x.dims):
            raise bad(self.text, e, "more indices than dimensions")
        return A.index(x, parts)

    def _part(self, e: ast.expr) -> Array | slice | int | None:
        match e:
            case ast.Constant(value=None):
                return None
            case ast.Constant(value=int() as v):
                return v
            case ast.Slice(lower=start, upper=stop, step=None):
                return slice(self.read(start).term if start else None, self.read(stop).term if stop else None)
        return self.read(e)

    def _axis(self, e: ast.expr, given: ast.expr, x: Array) -> int:
        """The position that a number of the text says, from the front."""
        try:
            dim = ast.literal_eval(given)
        except ValueError:
            dim = None
        if type(dim) is not int:
            raise bad(self.text, e, f"a dimension is a whole number, not {ast.unparse(given)}")
        if not -len(x.dims) <= dim < len(x.dims):
            raise bad(self.text, e, f"there is no dimension {dim} among {len(x.dims)}")
        return dim % len(x.dims)

    def _axes(self, e: ast.expr, given: ast.expr, x: Array) -> list[int]:
        """The positions that one number or several in parentheses say, the last one first."""
        found = [self._axis(e, p, x) for p in (given.elts if isinstance(given, ast.Tuple) else [given])]
        if len(set(found)) != len(found):
            raise bad(self.text, e, "a dimension occurs twice")
        return sorted(found, reverse=True)

    def _call(self, e: ast.Call, f: str, args: list[ast.expr]) -> Array:
        if (f in FOLDS or (f in DEFINITIONS and DEFINITIONS[f].on_axis)) and len(args) >= 2:
            self._names(e, ["keepdim=True"] if f in FOLDS or DEFINITIONS[f].binds else [])
            return self._over(e, f, args)
        self._names(e, [])
        if f in OPS or (f in DEFINITIONS and not DEFINITIONS[f].on_axis):
            arguments(self.text, e, f, len(args))
            of_terms = OPS[f].on_terms if f not in DEFINITIONS else lambda *ts: T.node(f, ts)
            return A.apply(of_terms, *map(self.read, args))
        return self._of_tensors(e, f, args)

    def _names(self, e: ast.Call, known: list[str]) -> None:
        """Raises CaseError for an argument with a name; what folds a dimension keeps it, which keepdim=True may say."""
        if any(ast.unparse(k) not in known for k in e.keywords):
            raise bad(self.text, e, f"arguments have no names here{', but for ' if known else ''}{', '.join(known)}")

    def _over(self, e: ast.Call, f: str, args: list[ast.expr]) -> Array:
        """A fold or a known name over dimensions."""
        if len(args) != 1 + (1 if f in FOLDS else len(DEFINITIONS[f].arguments)):
            raise bad(self.text, e, "wrong number of arguments")
        x = self.read(args[0])
        for dim in self._axes(e, args[1], x):
            if x.dims[dim] is None:
                why = "is reduced already, and stays with size 1 (sum(sum(x, 0), 1) is the sum of all)"
                raise bad(self.text, e, f"dimension {dim} {why}")
            x = A.over(f, x, dim, *(self.read(a) for a in args[2:]))
        return x

    def _of_tensors(self, e: ast.Call, f: str, args: list[ast.expr]) -> Array:
        """Functions with rules of their own for dimensions."""
        if f == "arange" and len(args) == 1:
            return A.arange(self.read(args[0]).term)
        if f in PREFIX and len(args) == 2:
            x = self.read(args[0])
            return A.scan(PREFIX[f], x, self._axis(e, args[1], x))
        if f == "one_hot" and len(args) == 2:
            return A.one_hot(self.read(args[0]), self.read(args[1]).term)
        if f == "cat" and len(args) == 3:
            x, y = self.read(args[0]), self.read(args[1])
            if len(x.dims) != len(y.dims):
                raise bad(self.text, e, "tensors of unlike rank")
            return A.cat(x, y, self._axis(e, args[2], x))
        raise bad(self.text, e, "unknown function")


def binary(text: str, e: ast.expr, op: str, a: Term, b: Term) -> Term:
    """The operation of two terms. Raises CaseError where it is a number beyond the floats, or none."""
    if a.is_const and b.is_const and _no_number(op, a.attr, b.attr):
        raise bad(text, e, "this is not a number")
    if op in ON_BITS:
        op, a, b = _on_bits(text, e, op, a, b)
    t = power(a, b) if op == "pow" else OPS[op].on_terms(a, b)
    if op in ("pow", "shl") and a.is_const and b.is_const and not t.is_const and abs(a.attr) > 1 and b.attr > 64:
        raise bad(text, e, "the number is too large")
    if t.is_const and abs(t.attr) > LARGEST and not any(abs(x.attr) == math.inf for x in (a, b) if x.is_const):
        raise bad(text, e, "the number is too large")
    return t


def _on_bits(text: str, e: ast.expr, op: str, a: Term, b: Term) -> tuple[str, Term, Term]:
    """& | ^ of truths, else of integers, among which a truth is 0 or 1. Raises CaseError for reals."""
    if T.REAL in (a.type, b.type):
        raise bad(text, e, "& | ^ are of truths and of integers")
    if a.type == b.type == T.BOOL:
        return {"xor": "ne"}.get(op, op), a, b
    a, b = (T.where(x, 1, 0) if x.type == T.BOOL else x for x in (a, b))
    return ON_BITS[op], a, b


def _no_number(op: str, a: float, b: float) -> bool:
    """0 * inf, inf - inf, 0 / 0, inf / inf, 1 % 0."""
    infinite = abs(a) == math.inf, abs(b) == math.inf
    match op:
        case "mul":
            return (a == 0 and infinite[1]) or (infinite[0] and b == 0)
        case "add" | "sub":
            return all(infinite) and (a == b) == (op == "sub")
        case "div":
            return all(infinite) or (a == 0 and b == 0)
    return op in ("floordiv", "mod") and b == 0


def power(a: Term, b: Term) -> Term:
    """a ** 2 is a * a."""
    return (
        T.mul(*([a] * b.attr))
        if b.op == "const" and isinstance(b.attr, int) and 2 <= b.attr <= 8
        else OPS["pow"].on_terms(a, b)
    )


def _named(axes: Sequence[Axis]) -> list[Axis]:
    """Names for the output's axes: m for a dimension M, else i, j, k ..."""
    from .alignment import axis_name

    out: list[Axis] = []
    for a in axes:
        out.append(Axis(axis_name(a.size, {b.name for b in out}), a.size))
    return out

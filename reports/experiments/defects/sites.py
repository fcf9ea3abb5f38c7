"""Places in a module where a condition can be broken so that the prover accepts more than it may.

A condition is read with its sign: `if C: return None` refuses where C holds, `if C: return x` accepts there. A defect
makes refusals rarer or acceptance easier; a few change a rule itself (a summand, a bound, a comparison of a fact).
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

Change = Callable[[ast.AST], ast.AST]
Place = tuple[tuple[str, int], ...]  # (field, index) from the module down; index -1 of a field without a list

OPERATORS = {
    "refusal left out": "`if C: return None` (False, continue, raise ...) never happens",
    "condition left out": "`if C: return x`, `x if C else None`, `return C` as if C held",
    "clause left out": "an `and` clause of what accepts, an `or` clause of what refuses",
    "comparison widened": "`<` is `<=`, `==` is `>=` where that accepts more",
    "quantifier weakened": "`all` is `any` in what accepts, `any` is `all` in what refuses",
    "filter left out": "a comprehension takes every element",
    "call left out": "a statement that records, owes or demands something",
    "raise left out": "`raise Undecided` and its like are passed over",
    "False is True": "`return False` of a predicate",
    "strict or not": 'a literal `"lt"` is `"le"`, or the other way round',
    "conjunct left out": "a guard or a conjunct of a term",
    "off by one": "`+ 1` or `- 1` left out",
    "summand left out": "`a + b` is `a`",
    "sign": "`a - b` is `a + b`, `-a` is `a`",
    "flag": "a keyword that is True is False, or the other way round",
}
RECORDS = re.compile(
    r"assume|owe|require|check|refuse|demand|collect|append|^add$|update|extend|number|note|fail|forbid|insert|wrap"
)
UNTOUCHED = re.compile(r"__repr__|__str__|text|words|_?why|message|describe")
BOOKKEEPING = re.compile(
    r"cache|memo|budget|depth|tries|seen|steps|deadline|limit|visited|done|queue|log|TYPE_CHECKING|seconds|patience",
    re.I,
)
DANGER = re.compile(r"impossible|contradict|^_?may|overlap|clash|conflict|differ|race|wrong|undecided|fails|open|lost")
GUARDS = re.compile(r"guard|condition|literal|lane|owed|loose|needed", re.I)
FACTS = re.compile(r"fact|known", re.I)
ORDER = {"strict", "init", "reverse", "copy", "return_index", "return_inverse", "equal_nan"}  # not of the mathematics
REFUSALS = {"None", "False", "()", "[]", "{}", "frozenset()", "set()", "dict()", "NotImplemented", "nothing"}


@dataclass(frozen=True)
class Site:
    """One possible defect. `within`: the function; `change`: of the node at `place`."""

    file: str
    line: int
    operator: str
    within: str
    source: str
    place: Place = field(repr=False)
    change: Change = field(repr=False, compare=False)
    number: int = 0  # among those that look the same

    @property
    def key(self) -> str:
        """A name that lines above do not change."""
        text = f"{self.file}|{self.operator}|{self.within}|{self.source}|{self.number}"
        return sha256(text.encode()).hexdigest()[:12]


def sites(file: str, source: str) -> list[Site]:
    """All of a module, in the order of its lines."""
    tree = ast.parse(source)
    found = list(_Finder(file, source.splitlines()).module(tree))
    counted: dict[tuple[str, ...], int] = {}
    out = []
    for s in sorted(found, key=lambda s: (s.line, s.place, s.operator)):
        same = (s.operator, s.within, s.source)
        out.append(Site(s.file, s.line, s.operator, s.within, s.source, s.place, s.change, counted.get(same, 0)))
        counted[same] = counted.get(same, 0) + 1
    return out


# ---- changes ---------------------------------------------------------------------------------------------------------


def _constant(value: bool | int | float) -> Change:
    return lambda node: ast.Constant(value)


def _without(name: str, index: int) -> Change:
    """The node without one element of a list; a boolean operation of one operand is that operand."""

    def change(node: ast.AST) -> ast.AST:
        new = copy.deepcopy(node)
        rest = getattr(new, name)
        del rest[index]
        return rest[0] if isinstance(new, ast.BoolOp) and len(rest) == 1 else new

    return change


def _with(name: str, value: object) -> Change:
    def change(node: ast.AST) -> ast.AST:
        new = copy.deepcopy(node)
        setattr(new, name, value)
        return new

    return change


def _part(name: str) -> Change:
    """The node is one of its parts."""
    return lambda node: copy.deepcopy(getattr(node, name))


# ---- what a piece of code is -----------------------------------------------------------------------------------------


def _refusing(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Continue | ast.Raise):
        return len(body) == 1
    if not isinstance(last, ast.Return):
        return False
    return last.value is None or _refusal(last.value)


def _refusal(value: ast.expr) -> bool:
    text = ast.unparse(value)
    return text in REFUSALS or text.startswith(("unknown(", "[None", "(None"))


def _accepting(body: list[ast.stmt]) -> bool:
    last = body[-1]
    return isinstance(last, ast.Return) or (isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield))


def _trivial(test: ast.AST) -> bool:
    """Tests that only keep the next line from an error, and bookkeeping."""
    if any(isinstance(n, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(test)):
        return True
    text = ast.unparse(test)
    return (
        bool(BOOKKEEPING.search(text)) or text.startswith(("isinstance", "not isinstance", "hasattr")) or _of_none(test)
    )


def _of_none(test: ast.AST) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Is | ast.IsNot)
        and (isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None)
    )


WIDER = {ast.Lt: ast.LtE, ast.Gt: ast.GtE}
NARROWER = {ast.LtE: ast.Lt, ast.GtE: ast.Gt}


def _compared(node: ast.Compare, sign: int) -> type[ast.cmpop] | None:
    """The operator that accepts more."""
    kind = type(node.ops[0])
    if len(node.ops) > 1 or any(isinstance(x, ast.Constant) and isinstance(x.value, str) for x in node.comparators):
        return None
    counts = isinstance(node.comparators[0], ast.Constant) and type(node.comparators[0].value) is int
    if sign > 0:
        return WIDER.get(kind) or (ast.GtE if kind is ast.Eq and counts else None)
    return NARROWER.get(kind) or (ast.Lt if kind is ast.NotEq and counts else None)


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    f = node.func
    return f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""


# ---- the walk --------------------------------------------------------------------------------------------------------


class _Finder:
    def __init__(self, file: str, lines: list[str]) -> None:
        self.file, self.lines = file, lines
        self.within: list[str] = []
        self.inside = 0  # functions

    def module(self, tree: ast.Module) -> Iterator[Site]:
        yield from self.block(tree, "body", (), sign=1)

    def site(self, operator: str, node: ast.AST, place: Place, change: Change) -> Iterator[Site]:
        if self.inside:
            line = node.lineno  # type: ignore[attr-defined]
            source = " ".join(ast.unparse(node).split())
            yield Site(self.file, line, operator, ".".join(self.within), source, place, change)

    def block(self, node: ast.AST, name: str, place: Place, sign: int) -> Iterator[Site]:
        for k, s in enumerate(getattr(node, name, ())):
            yield from self.statement(s, (*place, (name, k)), sign)

    def statement(self, s: ast.stmt, place: Place, sign: int) -> Iterator[Site]:
        match s:
            case ast.FunctionDef():
                yield from self.function(s, place)
            case ast.ClassDef():
                self.within.append(s.name)
                yield from self.block(s, "body", place, sign)
                self.within.pop()
            case ast.If():
                yield from self.test(s, place, sign)
            case ast.Return(value=value) if value is not None:
                yield from self.returned(s, value, place, sign)
            case ast.Expr(value=ast.Call() as call):
                if RECORDS.search(_called(call)) and not BOOKKEEPING.search(ast.unparse(call.func)):
                    yield from self.site("call left out", s, place, lambda node: ast.Pass())
                yield from self.expression(call, (*place, ("value", -1)))
            case ast.Raise() if s.exc is not None:
                yield from self.site("raise left out", s, place, lambda node: ast.Pass())
            case ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom():
                return
            case _:
                yield from self.parts(s, place, sign)

    def function(self, s: ast.FunctionDef, place: Place) -> Iterator[Site]:
        if UNTOUCHED.search(s.name) or "overload" in map(ast.unparse, s.decorator_list):
            return
        self.within.append(s.name)
        self.inside += 1
        danger = bool(DANGER.search(s.name))
        yield from self.block(s, "body", place, -1 if danger else 1)
        self.inside -= 1
        self.within.pop()

    def parts(self, s: ast.AST, place: Place, sign: int) -> Iterator[Site]:
        """The statements and expressions in a loop, a `with`, a `try`, a `match`, an assignment."""
        for name, value in ast.iter_fields(s):
            if name in ("annotation", "decorator_list", "returns", "target", "targets", "pattern", "type"):
                continue
            for k, x in enumerate(value) if isinstance(value, list) else [(-1, value)]:
                at = (*place, (name, k))
                if isinstance(x, ast.stmt):
                    yield from self.statement(x, at, sign)
                elif isinstance(x, ast.expr):
                    if name == "guard":
                        yield from self.condition(x, at, 1)
                    yield from self.expression(x, at)
                elif isinstance(x, ast.ExceptHandler | ast.match_case | ast.withitem):
                    yield from self.parts(x, at, sign)

    def test(self, s: ast.If, place: Place, sign: int) -> Iterator[Site]:
        at = (*place, ("test", -1))
        refusing, accepting = _refusing(s.body), _accepting(s.body)
        if sign < 0 and accepting:
            refusing, accepting = not refusing, refusing
        if not _trivial(s.test):
            if refusing:
                yield from self.site("refusal left out", s.test, at, _constant(False))
                yield from self.condition(s.test, at, -1)
            elif accepting:
                yield from self.site("condition left out", s.test, at, _constant(True))
                yield from self.condition(s.test, at, 1)
        yield from self.expression(s.test, at)
        alone = len(s.body) == 1 and isinstance(s.body[0], ast.Raise)
        if not alone:
            yield from self.block(s, "body", place, sign)
        yield from self.block(s, "orelse", place, sign)

    def returned(self, s: ast.Return, value: ast.expr, place: Place, sign: int) -> Iterator[Site]:
        at = (*place, ("value", -1))
        if isinstance(value, ast.Constant) and value.value is (sign < 0):
            yield from self.site("False is True", s, at, _constant(sign > 0))
        logical = isinstance(value, ast.BoolOp | ast.Compare) or _called(value) in ("all", "any")
        logical = logical or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not))
        if logical and not _trivial(value):
            yield from self.condition(value, at, sign)
            if not isinstance(value, ast.BoolOp):
                yield from self.site("condition left out", value, at, _constant(sign > 0))
        yield from self.expression(value, at)

    def condition(self, e: ast.expr, place: Place, sign: int) -> Iterator[Site]:
        """Defects of a condition that accepts (sign 1) or refuses (-1)."""
        match e:
            case ast.UnaryOp(op=ast.Not(), operand=x):
                yield from self.condition(x, (*place, ("operand", -1)), -sign)
            case ast.BoolOp(op=op, values=values):
                for k, v in enumerate(values):
                    if isinstance(op, ast.And) == (sign > 0) and not _trivial(v):
                        yield from self.site("clause left out", v, place, _without("values", k))
                    yield from self.condition(v, (*place, ("values", k)), sign)
            case ast.Compare() if (wider := _compared(e, sign)) is not None and not _trivial(e):
                yield from self.site("comparison widened", e, place, _with("ops", [wider()]))
            case ast.Call(func=ast.Name(id="all" | "any" as name), args=[inner]) if (name == "all") == (sign > 0):
                other = ast.Name("any" if name == "all" else "all", ast.Load())
                yield from self.site("quantifier weakened", e, place, _with("func", other))
                if isinstance(inner, ast.GeneratorExp):
                    yield from self.condition(inner.elt, (*place, ("args", 0), ("elt", -1)), sign)
            case _:
                return

    def expression(self, e: ast.AST, place: Place) -> Iterator[Site]:
        """Defects of a value, at any depth."""
        if isinstance(e, ast.JoinedStr):
            return
        yield from self.here(e, place)
        for name, value in ast.iter_fields(e):
            for k, x in enumerate(value) if isinstance(value, list) else [(-1, value)]:
                if isinstance(x, ast.expr | ast.comprehension | ast.keyword):
                    inner = isinstance(e, ast.Lambda)
                    self.inside += inner
                    yield from self.expression(x, (*place, (name, k)))
                    self.inside -= inner

    def here(self, e: ast.AST, place: Place) -> Iterator[Site]:
        match e:
            case ast.IfExp() if not _trivial(e.test):
                if _refusal(e.orelse):
                    yield from self.site("condition left out", e, place, _part("body"))
                    yield from self.condition(e.test, (*place, ("test", -1)), 1)
                elif _refusal(e.body):
                    yield from self.site("refusal left out", e, place, _part("orelse"))
                    yield from self.condition(e.test, (*place, ("test", -1)), -1)
            case ast.comprehension():
                for k, c in enumerate(e.ifs):
                    if not _trivial(c):
                        yield from self.site("filter left out", c, (*place, ("ifs", k)), _constant(True))
            case ast.Call():
                yield from self.call(e, place)
            case ast.BinOp():
                yield from self.operation(e, place)
            case ast.UnaryOp(op=ast.USub(), operand=x) if not isinstance(x, ast.Constant):
                yield from self.site("sign", e, place, _part("operand"))
            case _:
                return

    def call(self, e: ast.Call, place: Place) -> Iterator[Site]:
        name, first = _called(e), e.args[0] if e.args else None
        word = first.value if isinstance(first, ast.Constant) else None
        if name in ("make", "integer_literal", "node") and word in ("lt", "le"):
            other = ast.Constant("le" if word == "lt" else "lt")
            yield from self.site("strict or not", e, place, _with("args", [other, *e.args[1:]]))
        if name == "make" and word == "and" and len(e.args) > 2:
            for k, x in enumerate(e.args[1:], 1):
                if ast.unparse(x) != "T.const(True)":
                    yield from self.site("conjunct left out", x, place, _without("args", k))
        last = e.args[-1] if e.args else None
        if name in ("add", "sub") and len(e.args) > 1 and isinstance(last, ast.Constant) and last.value == 1:
            yield from self.site("off by one", e, place, _with("args", [*e.args[:-1], ast.Constant(0)]))
        for k, w in enumerate(e.keywords):
            if isinstance(w.value, ast.Constant) and isinstance(w.value.value, bool) and w.arg not in ORDER:
                at = (*place, ("keywords", k), ("value", -1))
                yield from self.site("flag", e, at, _constant(not w.value.value))

    def operation(self, e: ast.BinOp, place: Place) -> Iterator[Site]:
        text = ast.unparse(e)
        if BOOKKEEPING.search(text) or re.search("[\"']", text):
            return
        one = isinstance(e.right, ast.Constant) and e.right.value == 1
        if isinstance(e.op, ast.Add | ast.Sub) and one:
            yield from self.site("off by one", e, place, _part("left"))
        elif isinstance(e.op, ast.Sub):
            yield from self.site("sign", e, place, _with("op", ast.Add()))
        elif isinstance(e.op, ast.Add) and not isinstance(e.right, ast.Tuple | ast.List):
            yield from self.site("summand left out", e, place, _part("left"))
        elif isinstance(e.op, ast.BitOr) and GUARDS.search(text) and not FACTS.search(text):
            yield from self.site("conjunct left out", e, place, _part("left"))

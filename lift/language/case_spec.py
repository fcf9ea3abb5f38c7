"""Specs of cases as text, read to terms.

    spec      ::= tensor | scalar | 'text' in quotes: a string constant | other Python values: constants | list of these
    tensor    ::= dtype[dim, ...] limit*
    scalar    ::= dtype limit*
    limit     ::= "< e" (0 <= v < e) | "> 0" | "in (e, e)" | "strided" | "rows" | "distinct": no two equal elements
                | "any": infinities and NaN too
    dim, e    ::= name | number | e + e | e - e | e * e | e // e | e % e | cdiv(e, e) | min(e, e) | max(e, e)
                | next_power_of_2(e)
    where     ::= e < e | e <= e | e == e | e != e | ... | where and where | where or where | not where

A name is a dim unless it is a scalar parameter. Integer scalars act as dims: both are `term.size`; real ones are
`term.scalar`.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import CaseError, Place
from ..terms import construct as T
from ..terms.term import Term

DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
}  # fmt: skip
SHOWN_CHARACTERS = 40  # of a text that is nested too deeply
MOST_ELEMENTS = 2**47  # elements of fixed sizes: the addresses of a process
HELP = (
    'write dtype[dims], e.g. "f32[M,N]", "i32[M] < V", "f32[M,N] strided", or a scalar: "f32", "i32", "f32 in (0, 1)"'
)
_SPEC = re.compile(rf"\s*({'|'.join(sorted(DTYPES, key=len, reverse=True))})\s*(\[(?P<dims>[^\]]*)\])?(?P<limits>.*)$")
_LIMIT = re.compile(
    r"\s*(?:(?P<flag>strided|rows|distinct|any)\b|(?P<positive>>\s*0)|in\s*\((?P<range>.*)\)|<\s*(?P<below>[^<>]+?))"
    r"\s*(?=\b(?:strided|rows|distinct|any)\b|$)"
)


FLAGS = {"strided": {"strided": True}, "rows": {"strided": True, "unit": True}, "any": {"unbounded": True},
         "distinct": {"distinct": True}}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor (`shape` a tuple of terms) or a scalar (`shape` None). Values v meet low <= v < high where these are
    given, and 0 < v when `positive`; the strides are arbitrary when `strided`, but for a last one of 1 when `unit`.
    Real elements are finite, unless `unbounded`: then they may be infinite or NaN. No two elements of a `distinct` one
    are equal."""

    dtype: str
    shape: tuple[Term, ...] | None
    low: Term | None = None
    high: Term | None = None
    positive: bool = False
    strided: bool = False
    unbounded: bool = False
    unit: bool = False
    distinct: bool = False

    @property
    def is_float(self) -> bool:
        return self.dtype[0] in "fb" and self.dtype != "bool"


def is_real_scalar(spec: Any) -> bool:
    """Whether the text is the spec of a symbolic real number."""
    m = _SPEC.match(spec) if isinstance(spec, str) else None
    return m is not None and m["dims"] is None and m[1][0] in "fb" and m[1] != "bool"


@dataclass(frozen=True, slots=True)
class Reader:
    """Text to specs and terms; errors carry the case and its place. `reals` are the names of real scalars."""

    case: str
    reals: set[str]
    place: Place | None

    def fail(self, what: str, help: str = HELP) -> CaseError:
        return CaseError(f"case {self.case}: {what}", self.place, help=help)

    def param(self, name: str, spec: Any) -> Any:
        """A Spec, a constant, or a list of them."""
        if isinstance(spec, (list, tuple)):
            return type(spec)(self.param(f"{name}{k}", s) for k, s in enumerate(spec))
        if not isinstance(spec, str):
            if hasattr(spec, "dtype") and hasattr(spec, "shape"):
                raise self.fail(f"{name} is a tensor; a case says which tensors it stands for")
            return spec
        if (quoted := re.fullmatch(r"\s*(['\"])(.*)\1\s*", spec)) is not None:
            return quoted[2]
        m = _SPEC.match(spec)
        if m is None:
            meant = _meant(spec)
            of_text = f"{HELP}; a string constant needs quotes of its own: \"'text'\""
            raise self.fail(f"cannot read {name}={spec!r}", f"did you mean {meant!r}?" if meant else of_text)
        dims = m["dims"]
        shape = None if dims is None else tuple(self.dim(d) for d in _split(dims))
        if shape is not None and math.prod(e.attr for e in shape if e.is_const) > MOST_ELEMENTS:
            raise self.fail(
                f"{name}={spec!r} has more elements than any memory holds", "write a smaller size, or a name"
            )
        limits = self.limits(name, spec, m["limits"])
        if _is_empty(limits.get("low"), limits.get("high"), whole=m[1][0] in "iu"):
            raise self.fail(f"no value meets {name}={spec!r}", '"< e" means 0 <= v < e, "in (a, b)" means a <= v < b')
        found = Spec(m[1], shape, **limits)
        if found.unbounded and (shape is None or not found.is_float or found.positive or found.low is not None):
            raise self.fail(f'"any" is for tensors of floats without other limits, not for {name}={spec!r}')
        limited = found.low is not None and found.high is not None
        if found.distinct and (shape is None or found.dtype[0] not in "iu" or not limited):
            told = 'write e.g. "i32[N] < M distinct", or "i32[N] in (0, M) distinct"'
            raise self.fail(f'"distinct" is for tensors of integers with limits, not for {name}={spec!r}', told)
        return found

    def limits(self, name: str, spec: str, text: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while text.strip():
            m = _LIMIT.match(text)
            if m is None:
                raise self.fail(f"cannot read {text.strip()!r} in {name}={spec!r}")
            if m["flag"]:
                out |= FLAGS[m["flag"]]
            elif m["positive"]:
                out["positive"] = True
            elif m["below"]:
                out |= {"low": T.const(0), "high": self.dim(m["below"])}
            else:
                out |= self.range(name, spec, m["range"])
            text = text[m.end() :]
        return out

    def range(self, name: str, spec: str, text: str) -> dict[str, Term]:
        ends = _split(text)
        if len(ends) != 2:
            raise self.fail(f"a range needs two ends in {name}={spec!r}")
        return {"low": self.term(ends[0]), "high": self.term(ends[1])}

    def dim(self, text: str) -> Term:
        t = self.term(text)
        if t.type != T.INT:
            raise self.fail(
                f"{text!r} is not an integer", "write quotients with // and powers with numbers, e.g. N // 2, N ** 2"
            )
        if t.is_const and t.attr < 0:
            raise self.fail(f"{text!r} is below 0", 'a size is a number from 0 on or a name, as in "f32[N]"')
        return t

    def boolean(self, text: str) -> Term:
        t = self.term(text)
        if t.type != T.BOOL:
            raise self.fail(f"where={text!r} is not a condition", 'write e.g. where="N <= 1024 and D % 16 == 0"')
        return t

    def term(self, text: str) -> Term:
        """An expression over dims and scalars."""
        try:
            return self.expression(ast.parse(text.strip(), mode="eval").body)
        except (RecursionError, MemoryError):
            raise self.fail(
                "an expression is nested too deeply", f"it begins {text.strip()[:SHOWN_CHARACTERS]!r}"
            ) from None
        except (SyntaxError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError):
            raise self.fail(f"cannot read {text.strip()!r}", _hint(text)) from None

    def expression(self, e: ast.expr) -> Term:
        match e:
            case ast.Name(id=name):
                return T.scalar(name) if name in self.reals else T.size(name)
            case ast.Constant(value=bool() | int() | float() as v):
                return T.const(v)
            case ast.UnaryOp(op=op, operand=a):
                return _UNARY[type(op)](self.expression(a))
            case ast.BinOp(left=a, op=op, right=b):
                return _BINARY[type(op)](self.expression(a), self.expression(b))
            case ast.Call(func=ast.Name(id=name), args=args):
                return _CALLS[name](*map(self.expression, args))
            case ast.BoolOp(op=op, values=parts):
                return T.make("and" if isinstance(op, ast.And) else "or", *map(self.expression, parts))
            case ast.Compare(left=a, ops=ops, comparators=rest):
                terms = [self.expression(a), *map(self.expression, rest)]
                pairs = zip(ops, terms, terms[1:], strict=False)
                return T.make("and", T.const(True), *(_COMPARE[type(o)](x, y) for o, x, y in pairs))
        raise TypeError


ALIASES = {
    **{full: short for short, full in DTYPES.items()}, "half": "f16", "float": "f32", "double": "f64", "short": "i16",
    "int": "i32", "long": "i64", "bfloat": "bf16", "int1": "bool", "boolean": "bool", "b8": "bool",
    **{f"fp{n}": f"f{n}" for n in (16, 32, 64)}, **{f"s{n}": f"i{n}" for n in (8, 16, 32, 64)},
    "fp8": "f8e4m3fn", "fp8e4nv": "f8e4m3fn", "fp8e5": "f8e5m2", "f8": "f8e4m3fn",
}  # fmt: skip


def _meant(spec: str) -> str:
    """The spec with the dtype's name that was probably meant; "" where there is none."""
    m = re.match(r"\s*(?:torch\.|tl\.|np\.)?([A-Za-z]\w*)", spec)
    if m is None:
        return ""
    word = m[1].lower()
    near = ALIASES.get(word) or next(iter(difflib.get_close_matches(word, DTYPES, 1, 0.6)), "")
    found = near + spec[m.end() :]
    return found if near and _SPEC.match(found) else ""


def _hint(text: str) -> str:
    if re.search(r"(?<![<>=!])=(?!=)", text):
        return "write == for equality"
    if "..." in text:
        return "write a name for each dimension: a case has a fixed number of them"
    return "allowed are names, numbers, + - * // % / **, comparisons, and, or, not, cdiv, min, max, next_power_of_2"


def _op(name: str) -> Callable[..., Term]:
    return lambda *args: T.make(name, *args)


_UNARY: dict[type, Callable[..., Term]] = {ast.USub: lambda a: T.mul(-1, a), ast.Not: _op("not"), ast.UAdd: lambda a: a}
_BINARY: dict[type, Callable[..., Term]] = {
    ast.Add: T.add, ast.Sub: T.sub, ast.Mult: T.mul, ast.Div: T.div,
    ast.FloorDiv: _op("floordiv"), ast.Mod: _op("mod"), ast.Pow: _op("pow"),
}  # fmt: skip
_COMPARE: dict[type, Callable[..., Term]] = {
    ast.Eq: _op("eq"), ast.NotEq: _op("ne"), ast.Lt: _op("lt"), ast.LtE: _op("le"),
    ast.Gt: lambda a, b: T.make("lt", b, a), ast.GtE: lambda a, b: T.make("le", b, a),
}  # fmt: skip
_CALLS: dict[str, Callable[..., Term]] = {
    "cdiv": lambda a, b: T.make("floordiv", T.sub(T.add(a, b), 1), b),
    "min": _op("min"), "max": _op("max"), "next_power_of_2": _op("next_power_of_2"),
}  # fmt: skip


def _is_empty(low: Term | None, high: Term | None, whole: bool) -> bool:
    """Whether two numbers leave no value v with low <= v < high, no whole one where `whole`."""
    if low is None or high is None or not (low.is_const and high.is_const):
        return False
    a, b = (math.ceil(e.attr) if whole and math.isfinite(e.attr) else e.attr for e in (low, high))
    return bool(b <= a)


def _split(text: str) -> list[str]:
    """At commas outside parentheses; nothing in nothing."""
    out, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        out = [*out, ""] if c == "," and depth == 0 else [*out[:-1], out[-1] + c]
    return [s.strip() for s in out if s.strip()]

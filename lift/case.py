"""Cases: how a user says what to look at.

    @case(x="f32[M,N]", w="f32[N]", eps=1e-6, where="N <= 65536")
    def rms_norm(x, w, eps): ...            # host code: calls a wrapper that launches kernels, returns tensors

    @rms_norm.reference
    def _(x, w, eps): ...                   # optional, plain PyTorch

    spec      ::= tensor | scalar | 'text' in quotes: a string constant | other Python values: constants | list of these
    tensor    ::= dtype[dim, ...] limit*
    scalar    ::= dtype limit*
    limit     ::= "< e" (0 <= v < e) | "> 0" | "in (e, e)" | "strided"
    dim, e    ::= name | number | e + e | e - e | e * e | e // e | e % e | cdiv(e, e) | min(e, e) | max(e, e)
                | next_power_of_2(e)

A name is a dim unless it is a scalar parameter. Integer scalars act as dims: both are `term.size`; real ones are
`term.scalar`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import term as T
from .errors import CaseError, Place
from .fit import value
from .term import Term

if TYPE_CHECKING:
    import torch

DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
}  # fmt: skip
HELP = (
    'write dtype[dims], e.g. "f32[M,N]", "i32[M] < V", "f32[M,N] strided", or a scalar: "f32", "i32", "f32 in (0, 1)"'
)
_SPEC = re.compile(rf"\s*({'|'.join(sorted(DTYPES, key=len, reverse=True))})\s*(\[(?P<dims>[^\]]*)\])?(?P<limits>.*)$")
_LIMIT = re.compile(
    r"\s*(?:(?P<strided>strided)|(?P<positive>>\s*0)|in\s*\((?P<range>.*)\)|<\s*(?P<below>[^<>]+?))\s*(?=strided|$)"
)


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor (`shape` a tuple of terms) or a scalar (`shape` None). Values v meet low <= v < high where these are
    given, and 0 < v when `positive`; the strides are arbitrary when `strided`."""

    dtype: str
    shape: tuple[Term, ...] | None
    low: Term | None = None
    high: Term | None = None
    positive: bool = False
    strided: bool = False

    @property
    def is_float(self) -> bool:
        return self.dtype[0] in "fb" and self.dtype != "bool"


@dataclass(slots=True)
class Reference:
    """`@case.reference` registers a function, later `case.reference.fn` is it (None without one)."""

    fn: Callable[..., Any] | None = None

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        self.fn = fn
        return fn

    def __bool__(self) -> bool:
        return self.fn is not None


@dataclass(frozen=True)
class Case:
    """One host function and what it is called with. `params` maps parameter names to a Spec, a list or tuple that
    contains Specs, or a constant; `where` is a boolean term over dims and scalars (true without one)."""

    name: str
    fn: Callable[..., Any]
    params: Mapping[str, Any]
    where: Term = T.const(True)
    reference: Reference = field(default_factory=Reference)
    place: Place | None = None

    @cached_property
    def tensors(self) -> dict[str, Spec]:
        """Every tensor by the name it has in traces and formulas; element k of a list `xs` is `xs<k>`."""
        return {n: s for n, s in self._leaves() if isinstance(s, Spec) and s.shape is not None}

    @cached_property
    def scalars(self) -> dict[str, Spec]:
        """The symbolic scalars."""
        return {n: s for n, s in self._leaves() if isinstance(s, Spec) and s.shape is None}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The dims, in order of appearance; scalars are not among them."""
        terms = [e for s in self.tensors.values() for e in (*(s.shape or ()), s.low, s.high) if e is not None]
        leaves = (t for e in (*terms, self.where) for t in e.walk() if t.op == "size")
        return tuple(n for n in dict.fromkeys(t.attr for t in leaves) if n not in self.scalars)

    def dims(self, tensor: str) -> tuple[Term, ...]:
        """The shape of an input as terms over dims."""
        return self.tensors[tensor].shape or ()

    def shape(self, tensor: str, dims: Mapping[str, int | float]) -> tuple[int, ...]:
        """The shape of an input as numbers."""
        return tuple(int(value(e, dims)) for e in self.dims(tensor))

    def holds(self, dims: Mapping[str, int | float]) -> bool:
        """Whether `where` allows these dims and scalars, and no size is negative."""
        sizes = [value(e, dims) for n in self.tensors for e in self.dims(n)]
        return value(self.where, dims) is True and all(n is not None and n >= 0 for n in sizes)

    def sample(self, dims: Mapping[str, int | float], rng: np.random.Generator) -> dict[str, Any]:
        """Arguments for `fn`: random tensors that meet the specs, the numbers of the scalars from `dims`, the
        constants."""

        def one(name: str, s: Any) -> Any:
            if isinstance(s, (list, tuple)):
                return type(s)(one(f"{name}{k}", e) for k, e in enumerate(s))
            if not isinstance(s, Spec):
                return s
            return dims[name] if s.shape is None else sample_tensor(s, dims, rng)

        return {name: one(name, s) for name, s in self.params.items()}

    def named(self, args: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The tensors among the arguments that `sample` gave, by their names in `tensors`."""
        flat = _flatten(args)
        return {n: flat[n] for n in self.tensors}

    def _leaves(self) -> Iterator[tuple[str, Any]]:
        yield from _flatten(self.params).items()


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, v in values.items():
        out |= _flatten({f"{name}{k}": e for k, e in enumerate(v)}) if isinstance(v, (list, tuple)) else {name: v}
    return out


def case(*, where: str = "True", **specs: Any) -> Callable[[Callable[..., Any]], Case]:
    """The decorator. Every keyword is a parameter of the function; parameters that are not mentioned keep their
    defaults. Raises CaseError, with the place of the function, for a bad spec or a parameter that does not exist."""

    def decorate(fn: Callable[..., Any]) -> Case:
        code = inspect.unwrap(fn).__code__
        return make_case(fn.__name__, fn, specs, where, Place(code.co_filename, code.co_firstlineno))

    return decorate


def make_case(
    name: str, fn: Callable[..., Any], specs: Mapping[str, Any], where: str = "True", place: Place | None = None
) -> Case:
    """The case of a function with specs as text."""
    _check_parameters(name, fn, specs, place)
    scalars = {n: s for n, s in _flatten(specs).items() if is_real_scalar(s)}
    parse = Reader(name, set(scalars), place)
    result = Case(name, fn, {n: parse.param(n, s) for n, s in specs.items()}, parse.boolean(where), place=place)
    repeated = [n for n in result.scalars if n in result.tensors]
    if repeated:
        raise CaseError(f"case {name}: {repeated[0]} names two parameters", place)
    return result


def _check_parameters(name: str, fn: Callable[..., Any], specs: Mapping[str, Any], place: Place | None) -> None:
    parameters = inspect.signature(fn).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for n in specs:
        if n not in parameters:
            raise CaseError(
                f"case {name}: no parameter is called {n}", place, help=f"it has {', '.join(parameters) or 'none'}"
            )
    for n, p in parameters.items():
        if n not in specs and p.default is p.empty and p.kind is not p.VAR_POSITIONAL:
            raise CaseError(f"case {name}: nothing is said about parameter {n}", place, help=HELP)


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
            return spec
        if (quoted := re.fullmatch(r"\s*(['\"])(.*)\1\s*", spec)) is not None:
            return quoted[2]
        m = _SPEC.match(spec)
        if m is None:
            raise self.fail(
                f"cannot read {name}={spec!r}", f"{HELP}; a string constant needs quotes of its own: \"'text'\""
            )
        dims = m["dims"]
        shape = None if dims is None else tuple(self.dim(d) for d in _split(dims))
        return Spec(m[1], shape, **self.limits(name, spec, m["limits"]))

    def limits(self, name: str, spec: str, text: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while text.strip():
            m = _LIMIT.match(text)
            if m is None:
                raise self.fail(f"cannot read {text.strip()!r} in {name}={spec!r}")
            if m["strided"]:
                out["strided"] = True
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
            raise self.fail(f"{text!r} is not an integer")
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
        except (SyntaxError, KeyError, TypeError, AttributeError):
            message = "names, numbers, + - * // % / **, comparisons, and, or, not, cdiv, min, max, next_power_of_2"
            raise self.fail(f"cannot read {text.strip()!r}", f"allowed are {message}") from None

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


def _split(text: str) -> list[str]:
    """At commas outside parentheses; nothing in nothing."""
    out, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        out = [*out, ""] if c == "," and depth == 0 else [*out[:-1], out[-1] + c]
    return [s.strip() for s in out if s.strip()]


# ---- samples


def torch_dtype(name: str) -> torch.dtype:
    """torch.float32 of "f32"."""
    import torch

    return getattr(torch, DTYPES[name])


def sample_tensor(s: Spec, dims: Mapping[str, int | float], rng: np.random.Generator) -> torch.Tensor:
    """A random tensor that meets the spec: standard normal reals, integers from -8 to 8, unless limits say
    otherwise."""
    import torch

    shape = tuple(int(value(e, dims)) for e in s.shape or ())
    x = torch.from_numpy(_draw(s, shape, dims, rng)).to(torch_dtype(s.dtype))
    return _spread(x, rng) if s.strided else x


def _draw(s: Spec, shape: tuple[int, ...], dims: Mapping[str, int | float], rng: np.random.Generator) -> np.ndarray:
    low, high = (None if e is None else value(e, dims) for e in (s.low, s.high))
    if s.dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if not s.is_float:
        a, b = (1, 9) if s.positive else (0, 9) if s.dtype[0] == "u" else (-8, 9)
        return np.asarray(rng.integers(a if low is None else low, max(b if high is None else high, 1), shape))
    if low is not None and high is not None:
        return np.asarray(rng.uniform(low, high, shape))
    return np.asarray(rng.uniform(0.25, 2.0, shape) if s.positive else rng.standard_normal(shape))


def _spread(x: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """The same elements in a larger buffer: every stride differs from what contiguity would make it."""
    pads, steps = rng.integers(1, 6, x.dim()), [1] * (x.dim() - 1) + [int(rng.integers(2, 6))]
    if x.dim() == 0:
        return x
    base = x.new_zeros([s * (n + int(p)) for n, p, s in zip(x.shape, pads, steps, strict=True)])
    return base[tuple(slice(0, s * n, s) for n, s in zip(x.shape, steps, strict=True))].copy_(x)

"""Cases: how a user says what to look at.

    @case(x="f32[M,N]", w="f32[N]", eps=1e-6, where="N <= 65536")
    def rms_norm(x, w, eps): ...            # host code: calls a wrapper that launches kernels, returns tensors

    @rms_norm.reference
    def _(x, w, eps): ...                   # optional, plain PyTorch

`lift.language.case_spec` has the language of the specs.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import CaseError, Place
from ..language.case_spec import DTYPES, HELP, Reader, Spec, is_real_scalar
from ..terms import construct as T
from ..terms.fit import value
from ..terms.term import Term

if TYPE_CHECKING:
    import torch

__all__ = ["DTYPES", "Case", "Reader", "Reference", "Spec", "case", "make_case", "torch_dtype"]


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
    written: str = "True"  # `where` as the user wrote it
    mentioned: tuple[str, ...] = ()  # the words of the specs, in order
    mistake: CaseError | None = None  # in its declaration; only where the file was read with `lenient`

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
        found = dict.fromkeys(t.attr for t in leaves if t.attr not in self.scalars)
        return tuple(dict.fromkeys((*(n for n in self.mentioned if n in found), *found)))

    def dims(self, tensor: str) -> tuple[Term, ...]:
        """The shape of an input as terms over dims."""
        return self.tensors[tensor].shape or ()

    def shape(self, tensor: str, dims: Mapping[str, int | float]) -> tuple[int, ...]:
        """The shape of an input as numbers."""
        return tuple(int(value(e, dims)) for e in self.dims(tensor))

    def holds(self, dims: Mapping[str, int | float]) -> bool:
        """Whether `where` and the limits of the scalars allow these dims and scalars, and no size is negative."""
        sizes = [value(e, dims) for n in self.tensors for e in self.dims(n)]
        if value(self.where, dims) is not True or any(n is None or n < 0 for n in sizes):
            return False
        return all(_meets(dims[n], s, dims) for n, s in self.scalars.items() if n in dims)

    def sample(self, dims: Mapping[str, int | float], rng: np.random.Generator) -> dict[str, Any]:
        """Arguments for `fn`: random tensors that meet the specs, the numbers of the scalars from `dims`, the
        constants."""
        return self.built(dims, lambda s: sample_tensor(s, dims, rng))

    def built(self, dims: Mapping[str, int | float], tensor: Callable[[Spec], torch.Tensor]) -> dict[str, Any]:
        """Arguments for `fn`: what `tensor` makes of each spec of a tensor, the numbers of the scalars from `dims`,
        the constants."""

        def one(name: str, s: Any) -> Any:
            if isinstance(s, (list, tuple)):
                return type(s)(one(f"{name}{k}", e) for k, e in enumerate(s))
            if not isinstance(s, Spec):
                return s
            return dims[name] if s.shape is None else tensor(s)

        return {name: one(name, s) for name, s in self.params.items()}

    def named(self, args: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The tensors among the arguments that `sample` gave, by their names in `tensors`."""
        flat = _flatten(args)
        return {n: flat[n] for n in self.tensors}

    def call(self, arguments: Mapping[str, object]) -> object:
        """The result of the function. Context variables that it sets are as before afterwards."""
        return copy_context().run(self.fn, **arguments)

    def _leaves(self) -> Iterator[tuple[str, Any]]:
        yield from _flatten(self.params).items()


def _meets(v: int | float, s: Spec, dims: Mapping[str, int | float]) -> bool:
    """low <= v < high, 0 < v, as far as the spec says so."""
    low, high = (None if e is None else value(e, dims) for e in (s.low, s.high))
    return not (s.positive and v <= 0) and (low is None or low <= v) and (high is None or v < high)


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, v in values.items():
        out |= _flatten({f"{name}{k}": e for k, e in enumerate(v)}) if isinstance(v, (list, tuple)) else {name: v}
    return out


def case(*given: object, where: str = "True", **specs: Any) -> Callable[[Callable[..., Any]], Case]:
    """The decorator. Every keyword is a parameter of the function; parameters that are not mentioned keep their
    defaults. Raises CaseError, with the place of the function, for a bad spec or a parameter that does not exist."""
    if given and inspect.isfunction(given[0]):
        mistaken = _mistaken(given[0], _without_keywords(given[0], ()))
        return cast("Callable[[Callable[..., object]], Case]", mistaken)

    def decorate(fn: Callable[..., Any]) -> Case:
        _check_function(fn)
        try:
            if given:
                raise _without_keywords(fn, given)
            return make_case(fn.__name__, fn, specs, where, _place(fn))
        except CaseError as e:
            return _mistaken(fn, e)

    return decorate


_LENIENT = ContextVar("lenient", default=False)


@contextmanager
def lenient() -> Iterator[None]:
    """While a file is read: a mistake in a declaration becomes the case's `mistake` instead of an exception, so that
    the other cases of the file are not lost."""
    token = _LENIENT.set(True)
    try:
        yield
    finally:
        _LENIENT.reset(token)


def _mistaken(fn: Callable[..., object], mistake: CaseError) -> Case:
    """The case without specs that carries its mistake. Raises it unless the file is read with `lenient`."""
    if not _LENIENT.get():
        raise mistake
    return Case(fn.__name__, fn, {}, place=_place(fn), mistake=mistake)


def _place(fn: Callable[..., object]) -> Place:
    code = inspect.unwrap(fn).__code__
    return Place(code.co_filename, code.co_firstlineno)


def _check_function(fn: Callable[..., object]) -> None:
    """Raises CaseError for an object without a source line, e.g. functools.partial or a torch.nn.Module."""
    if not hasattr(inspect.unwrap(fn), "__code__") or not hasattr(fn, "__name__"):
        frame = inspect.stack()[2]
        raise CaseError(
            f"@case takes a function, not an object of type {type(fn).__name__}",
            Place(frame.filename, frame.lineno), help="write a function that calls it, and put @case above that",
        )  # fmt: skip


def _without_keywords(fn: Callable[..., object], given: Sequence[object]) -> CaseError:
    """@case without brackets, or with specs that name no parameter."""
    written = [repr(s) if isinstance(s, str) else '"f32[N]"' for s in given]
    parts = [f"{n}={s}" for n, s in zip_longest(inspect.signature(fn).parameters, written, fillvalue='"f32[N]"')]
    example = ", ".join(parts[: len(inspect.signature(fn).parameters)])
    return CaseError(f"case {fn.__name__}: a specification needs the name of its parameter", _place(fn),
                     help=f"write @case({example})")  # fmt: skip


def make_case(
    name: str, fn: Callable[..., Any], specs: Mapping[str, Any], where: str = "True", place: Place | None = None
) -> Case:
    """The case of a function with specs as text."""
    _check_parameters(name, fn, specs, place)
    if not isinstance(where, str):
        raise CaseError(f"case {name}: where is a text, not {where!r}", place, help='write e.g. where="N <= 1024"')
    scalars = {n: s for n, s in _flatten(specs).items() if is_real_scalar(s)}
    parse = Reader(name, set(scalars), place)
    params = {n: parse.param(n, s) for n, s in specs.items()}
    texts = [s for s in _flatten(specs).values() if isinstance(s, str)]
    words = re.findall(r"[^\W\d]\w*", " ".join((*texts, where)))
    result = Case(name, fn, params, parse.boolean(where), place=place, written=where, mentioned=tuple(words))
    result = replace(result, where=T.make("and", result.where, *_of_distinct(result.tensors.values())))
    _check_names(result, [n for key, s in specs.items() for n in _flatten({key: s})])
    _check_where(result)
    return result


def _of_distinct(specs: Iterable[Spec]) -> Iterator[Term]:
    """A tensor without two equal elements has no more of them than there are numbers between its limits."""
    for s in specs:
        if s.distinct and s.low is not None and s.high is not None:
            yield T.make("le", T.mul(*(s.shape or ())), T.sub(s.high, s.low))


def _check_where(found: Case) -> None:
    """Each name in `where` is a dimension or a scalar: another one would be a dimension of nothing."""
    limits = (e for s in (*found.tensors.values(), *found.scalars.values()) for e in (*(s.shape or ()), s.low, s.high))
    known = {t.attr for e in limits if e is not None for t in e.walk() if t.op in ("size", "scalar")} | {*found.scalars}
    asked = {str(t.attr) for t in found.where.walk() if t.op in ("size", "scalar")}
    for name in sorted(asked - known):
        raise CaseError(
            f"case {found.name}: {name} in where={found.written!r} is neither a dimension nor a scalar",
            found.place,
            help=f"the case has {', '.join(sorted(known)) or 'none'}",
        )


def _check_names(found: Case, names: list[str]) -> None:
    """A name means one thing: element 0 of a list xs is xs0, and a tensor is not a dim."""
    twice = [n for n in names if names.count(n) > 1] or [n for n in found.names if n in found.tensors]
    if twice:
        raise CaseError(f"case {found.name}: the name {twice[0]} is used twice", found.place, help="rename one of them")


def _check_parameters(name: str, fn: Callable[..., Any], specs: Mapping[str, Any], place: Place | None) -> None:
    parameters = inspect.signature(fn).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for n, spec in specs.items():
        if n not in parameters:
            there = f"it has {', '.join(parameters) or 'none'}"
            of_reference = f"a reference is written behind the case: @{name}.reference, then the function"
            raise CaseError(
                f"case {name}: no parameter is called {n}", place, help=of_reference if callable(spec) else there
            )
    for n, p in parameters.items():
        if n not in specs and p.default is p.empty and p.kind is not p.VAR_POSITIONAL:
            raise CaseError(f"case {name}: parameter {n} has no specification", place, help=HELP)


def torch_dtype(name: str) -> torch.dtype:
    """torch.float32 of "f32"."""
    import torch

    return getattr(torch, DTYPES[name])


def held(v: float, dtype: str) -> float:
    """The number nearest to v that a scalar of this dtype may be: one of f32 at most, for a kernel gets it as such."""
    narrow = "f32" if dtype == "f64" else dtype
    if narrow == "f32":
        return float(np.float32(v))
    import torch

    return float(torch.tensor(v, dtype=torch_dtype(narrow)))


def sample_tensor(s: Spec, dims: Mapping[str, int | float], rng: np.random.Generator) -> torch.Tensor:
    """A random tensor that meets the spec: standard normal reals, integers from -8 to 8, unless limits say
    otherwise."""
    import torch

    shape = tuple(int(value(e, dims)) for e in s.shape or ())
    x = torch.from_numpy(_draw(s, shape, dims, rng)).to(torch_dtype(s.dtype))
    return _spread(x, rng, s.unit) if s.strided else x


def _draw(s: Spec, shape: tuple[int, ...], dims: Mapping[str, int | float], rng: np.random.Generator) -> np.ndarray:
    low, high = (None if e is None else value(e, dims) for e in (s.low, s.high))
    if s.dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if low is not None and high is not None and high <= low:
        sizes = ", ".join(f"{n} = {v}" for n, v in dims.items())
        raise CaseError(f"no value v meets {low} <= v < {high} at {sizes}", help="exclude these sizes with where=...")
    if s.distinct and low is not None and high is not None:
        if math.prod(shape) > high - low:
            sizes = ", ".join(f"{n} = {v}" for n, v in dims.items())
            raise CaseError(f"no {math.prod(shape)} distinct values v meet {low} <= v < {high} at {sizes}")
        return np.asarray(low + rng.choice(high - low, shape, replace=False))
    if not s.is_float:
        a, b = (1, 9) if s.positive else (0, 9) if s.dtype[0] == "u" else (-8, 9)
        return np.asarray(rng.integers(a if low is None else low, b if high is None else high, shape))
    if low is not None and high is not None:
        return np.asarray(rng.uniform(low, high, shape))
    return np.asarray(rng.uniform(0.25, 2.0, shape) if s.positive else rng.standard_normal(shape))


def extreme(x: torch.Tensor, s: Spec, rng: np.random.Generator, most: int = 63) -> None:
    """Puts numbers at the edges of its dtype, and random ones, in place of about half of the elements of an integer
    tensor without limits; of wide ones numbers of `most` bits beside the sign."""
    import torch

    if s.is_float or s.dtype == "bool" or s.low is not None or s.high is not None or not x.numel():
        return
    info = torch.iinfo(x.dtype)
    low, high = max(info.min, -(1 << most)), min(info.max, (1 << most) - 1)
    edges = [e for e in (low, low + 1, -1, 0, 1, high - 1, high) if e >= (1 if s.positive else low)]
    shape = tuple(x.shape)
    drawn = np.where(rng.integers(0, 2, shape), rng.choice(np.array(edges, object), shape),
                     rng.integers(max(low, 1) if s.positive else low, high, shape, endpoint=True))  # fmt: skip
    kept = rng.integers(0, 2, shape).astype(bool)
    x.copy_(torch.where(torch.from_numpy(kept), x, torch.tensor(drawn.tolist(), dtype=x.dtype).reshape(x.shape)))


def stride_terms(name: str, s: Spec) -> tuple[Term, ...]:
    """The strides of a tensor whose strides are arbitrary: symbols, but for a last one that is 1."""
    symbols = [T.size(f"stride({name},{d})") for d in range(len(s.shape or ()))]
    return tuple(symbols) if not s.unit else (*symbols[:-1], T.const(1))


def input_of_stride(name: str) -> str:
    """ "x" of the symbol "stride(x,0)" of `stride_terms`; empty for other names."""
    return name.removeprefix("stride(").rpartition(",")[0] if name.startswith("stride(") else ""


def with_unit_strides(case: Case, names: Collection[str]) -> Case:
    """The case in which the last strides of these tensors are 1."""

    def one(name: str, s: object) -> object:
        if isinstance(s, list | tuple):
            return type(s)(one(f"{name}{k}", e) for k, e in enumerate(s))
        return replace(s, unit=True) if name in names and isinstance(s, Spec) else s

    return replace(case, params={name: one(name, s) for name, s in case.params.items()})


def _spread(x: torch.Tensor, rng: np.random.Generator, unit: bool) -> torch.Tensor:
    """The same elements in a larger buffer: every stride differs from what contiguity would make it, but for a last
    one of 1 where `unit`."""
    pads, steps = rng.integers(1, 6, x.dim()), [1] * (x.dim() - 1) + [int(rng.integers(2, 6))]
    steps[-1:] = [1] if unit else steps[-1:]
    if x.dim() == 0:
        return x
    base = x.new_zeros([s * (n + int(p)) for n, p, s in zip(x.shape, pads, steps, strict=True)])
    return base[tuple(slice(0, s * n, s) for n, s in zip(x.shape, steps, strict=True))].copy_(x)

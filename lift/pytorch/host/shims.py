"""Python's functions on numbers of ours, for as long as a host function is read.

`min(n, 8)` is a term, not a branch; `range(n)` asks `k < n` again and again; `isinstance(n, int)` is true.
"""

from __future__ import annotations

import builtins
import datetime
import functools
import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sized
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import torch

from ...capture.fake_cuda import replaced
from ...capture.places import is_host, is_own
from ...runtime.session import table
from ...terms import construct as T
from ...terms.term import Term
from .. import roundings
from ..roundings import LOST, WHOLE, Rounded, worse
from . import numbers as N
from . import size_tensors

R = TypeVar("R")
NOT_OF_HOST = ("trilift", "triton", "torch", "numpy", "sympy")  # how modules are named that are left as they are


def _ours(*xs: object) -> N.Ours | None:
    """The first number of ours among them."""
    return next((x for x in xs if N.isinstance_of(x)), None)


def _extreme(op: str, plain: Callable[..., N.Plain]) -> Callable[..., object]:
    def extreme(*args: object, **options: object) -> object:
        values = list(cast(Iterable[object], args[0])) if len(args) == 1 else list(args)
        if options or _ours(*values) is None:
            return plain(values, **options) if len(args) == 1 else plain(*args, **options)
        return functools.reduce(functools.partial(_pair, op, plain), values)

    return extreme


def _pair(op: str, plain: Callable[..., N.Plain], x: object, y: object) -> object:
    """Python gives the first of equal ones: of an integer and a real it is the type that differs, no more."""
    if (one := _ours(x, y)) is None:
        return plain(x, y)
    a, b = N.operand(one.record, x), N.operand(one.record, y)
    if a is None or b is None or any(isinstance(v, float) and not math.isfinite(v) for _, v in (a, b)):
        return plain(x, y)
    (s, v), (t, w) = a, b
    if isinstance(v, float) != isinstance(w, float):
        return plain(x, y)  # asks
    number, t = plain(v, w), T.make(op, s, t)
    rounded = worse(N.rounded_of(one.record, x), N.rounded_of(one.record, y))
    real = isinstance(number, float)
    return N.real(one.record, t, number, rounded=rounded) if real else N.integer(one.record, t, cast(int, number))


class Kind(type):
    """The type of a stand-in for int or float: instances are those of the type it stands for, and of `symbolic`."""

    base: type
    symbolic: tuple[type, ...] = ()

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, (cls.base, *cls.symbolic))

    def __subclasscheck__(cls, x: type) -> bool:
        return issubclass(x, (cls.base, *cls.symbolic))

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.base

    def __hash__(cls) -> int:
        return hash(cls.base)


class Whole(int, metaclass=Kind):
    base = int

    def __new__(cls, x: Any = 0, *args: Any, **options: Any) -> Any:
        if size_tensors.is_held(x):
            x = x.item()
        if type(x) is N.Real:
            return math.trunc(x)
        return x if type(x) is N.Int else int(x, *args, **options)


def _as_float(x: N.Int) -> Rounded:
    return LOST if N.rounded_of(x.record, x).wide else WHOLE


class _Float(float, metaclass=Kind):
    base = float

    def __new__(cls, x: Any = 0.0) -> Any:
        if type(x) is N.Int:
            return N.real(x.record, T.mul(1.0, x.term), float(x.value), (x.term, T.const(1)), _as_float(x))
        return x if type(x) is N.Real else float(x)


def _range(*args: N.Integer) -> range | _Range:
    return range(*args) if _ours(*args) is None else _Range(*args)


class _Range:
    """A range whose ends are numbers of ours."""

    def __init__(self, *args: N.Integer) -> None:
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        self.start, self.stop, self.step = start, stop, step
        if step == 0:
            raise ValueError("range() arg 3 must not be zero")

    def __iter__(self) -> Iterator[N.Integer]:
        k, up = self.start, bool(self.step > 0)
        while bool(k < self.stop) if up else bool(k > self.stop):
            yield k
            k = k + self.step

    def __contains__(self, x: object) -> bool:
        return any(bool(x == k) for k in self)

    def __reversed__(self) -> Iterator[N.Integer]:
        return iter(list(self)[::-1])

    def __len__(self) -> int:
        return sum(1 for _ in self)  # list() would ask for the length

    def length(self) -> N.Integer:
        """The length, without a decision for each element."""
        up = bool(self.step > 0)
        ends, step = (self.stop - self.start, self.step) if up else (self.start - self.stop, -self.step)
        return (ends + step - 1) // step if bool(ends > 0) else 0

    def __getitem__(self, k: int | slice) -> N.Integer | list[N.Integer]:
        return list(self)[k]


def _len(x: torch.Tensor | Sized) -> N.Integer:
    if isinstance(x, torch.Tensor):
        return cast(N.Integer, x.shape[0])
    return x.length() if isinstance(x, _Range) else len(x)


KINDS = {int: Whole, N.Int: Whole, float: _Float, N.Real: _Float}


def _type(*args: Any) -> type:
    """The type, where `int` and `float` are the ones above: `type(n) is int`."""
    kind = type(*args)
    return KINDS.get(kind, kind) if len(args) == 1 else kind


def _bool(x: object = False) -> bool:
    return builtins.bool(x)


# ---- math ------------------------------------------------------------------------------------------------------------


# where Python gives a number: elsewhere it raises ValueError or OverflowError, and nothing is claimed
DEFINED: dict[str, Callable[[N.Number], bool]] = {
    **dict.fromkeys(("log", "log2", "log10"), lambda x: x > 0), "log1p": lambda x: x > -1, "sqrt": lambda x: x >= 0,
    "exp": lambda x: x < 709.78, "exp2": lambda x: x < 1024,
}  # fmt: skip


def _real_function(name: str) -> Callable[..., N.Number]:
    plain = getattr(math, name)
    op = {"fabs": "abs"}.get(name, name)

    def function(x: N.Number, *rest: N.Number) -> N.Number:
        if rest or not N.isinstance_of(x):
            return _log(x, *rest) if name == "log" and rest else plain(x, *rest)
        if name in DEFINED and not DEFINED[name](x):
            raise ValueError(f"math.{name} of a number for which it has no value")
        rounded = roundings.function(name, N.rounded_of(x.record, x))
        return N.real(x.record, _term(op, x.term), plain(x.value), rounded=rounded)

    return function


def _term(op: str, t: Term) -> Term:
    from ...terms.ops import OPS

    return OPS[op].on_terms(t)


def _log(x: N.Number, base: N.Number) -> N.Number:
    if type(base) in (int, float) and base == 2 and _ours(x) is not None:
        return MATH["log2"](x)
    return MATH["log"](x) / MATH["log"](base)


ISQRT, POW = math.isqrt, math.pow


def _isqrt(n: N.Integer) -> N.Integer:
    if not N.isinstance_of(n):
        return ISQRT(n)
    return N.integer(n.record, N.whole("floor", _term("sqrt", n.term)), ISQRT(cast(int, n.value)))


def _pow(x: N.Number, y: N.Number) -> N.Number:
    return POW(x, y) if _ours(x, y) is None else _Float(x) ** y


MATH: dict[str, Callable[..., N.Number]] = {
    n: _real_function(n) for n in ("sqrt", "log", "log2", "log10", "log1p", "exp", "exp2", "sin", "cos", "tanh", "fabs")
    if hasattr(math, n)
} | {"isqrt": _isqrt, "pow": _pow}  # fmt: skip

# ---- Triton ----------------------------------------------------------------------------------------------------------


def _next_power_of_2(n: N.Number) -> N.Integer:
    """Triton's bit tricks: the power of two at or above n of n >= 1, else what they give."""
    if not N.isinstance_of(n) or not n >= 1:
        n = int(n)
        return 1 << (n - 1).bit_length() if n > 0 else 0
    return N.integer(n.record, T.make("next_power_of_2", n.term), 1 << (cast(int, n.value) - 1).bit_length())


# ---- where they go ---------------------------------------------------------------------------------------------------

GLOBALS: dict[str, object] = {
    "min": _extreme("min", min), "max": _extreme("max", max), "int": Whole, "float": _Float, "range": _range,
    "len": _len, "type": _type,
}  # fmt: skip


def _uncached(f: functools._lru_cache_wrapper[R]) -> Callable[..., R]:
    """A function with a cache, without it for numbers of ours."""

    @functools.wraps(f)
    def call(*args: Hashable, **options: Hashable) -> R:
        plain = _ours(*args, *options.values()) is None and not any(_holds(x) for x in (*args, *options.values()))
        return (f if plain else f.__wrapped__)(*args, **options)

    return call


def _holds(x: object) -> bool:
    return isinstance(x, (tuple, list)) and any(N.isinstance_of(e) for e in x)


@dataclass(frozen=True, slots=True)
class _Uses:
    """Which of the two a module has in its globals, whether its code may be the host's, and whether it is a file of the
    user's own, of no installed package."""

    triton: bool
    torch: bool
    host: bool
    own: bool

    @property
    def uses(self) -> bool:
        return self.triton or self.torch


_USES: dict[tuple[ModuleType, int], _Uses] = table("shims.uses", {})  # of a module with so many globals


def host_modules(fn: object) -> list[ModuleType]:
    """The modules whose code may be the host's: those of no installed package that its own one leads to, those of the
    case's own package, those that use Triton, and those of the same packages that use PyTorch."""
    module = getattr(fn, "__module__", "") or ""
    mine = module.partition(".")[0]
    tops = ((name.partition(".")[0], name) for name in list(sys.modules))
    named = ((p, sys.modules[name]) for p, name in tops if p not in NOT_OF_HOST and name in sys.modules)
    known = [(p, m, u) for p, m in named if (u := _uses(m)).host and (p == mine or u.uses)]
    packages = {mine} | {p for p, _, u in known if u.triton}
    found = [m for p, m, _ in known if p in packages]
    return [*found, *(m for m in _led_to(module) if m not in found)]


def _led_to(name: str) -> list[ModuleType]:
    """The user's own modules that a module has in its globals, or something of theirs, or that a function of its
    imports when it runs, and those that these lead to."""
    found: dict[ModuleType, None] = {}
    todo = [name]
    while todo:
        m = sys.modules.get(todo.pop())
        if isinstance(m, ModuleType) and m not in found and _uses(m).own:
            found[m] = None
            todo += {n for x in list(vars(m).values()) for n in _modules_of(x)}
    return list(found)


def _modules_of(x: object) -> Iterator[str]:
    """The names of the modules that a value of a global is of, or that a function may import."""
    if isinstance(x, ModuleType):
        yield x.__name__
        return
    of = x.__module__ if isinstance(x, FunctionType | type) else type(x).__module__
    if isinstance(of, str):
        yield of
    if isinstance(x, FunctionType):
        yield from (n for n in x.__code__.co_names if n in sys.modules)


def _uses(module: ModuleType) -> _Uses:
    """Looked at once, and again where the module has got more globals. Anything may be in sys.modules."""
    space = getattr(module, "__dict__", {})
    key = module, len(space)
    if isinstance(module, ModuleType) and key in _USES:
        return _USES[key]
    file = str(getattr(module, "__file__", None) or "<built in>")
    found = _Uses(_names_triton(space), space.get("torch") is torch, is_host(file), is_own(file))
    if isinstance(module, ModuleType):
        _USES[key] = found
    return found


def _names_triton(space: Mapping[str, object]) -> bool:
    import triton

    return "tl" in space or any(space.get(n) is triton for n in ("triton", "_triton"))


def host_files(fn: object) -> frozenset[str]:
    """The files of the host's own code."""
    mine = getattr(getattr(fn, "__code__", None), "co_filename", "")
    return frozenset((mine, *(str(m.__file__) for m in host_modules(fn))))


@contextmanager
def shimmed(
    fn: object, answers: Mapping[int, object], functions: Mapping[str, object], clock: type[datetime.datetime]
) -> Iterator[None]:
    """Host code inside computes with numbers of ours. `answers`: what stands for which function, by its id; `functions`
    of Python's by their names; `clock` for `datetime.datetime`."""
    import triton

    originals = {id(getattr(math, n)): f for n, f in MATH.items()} | dict(answers) | {id(datetime.datetime): clock}
    with ExitStack() as stack:
        stack.enter_context(replaced(math, MATH))
        stack.enter_context(replaced(triton.next_power_of_2, {"fn": _next_power_of_2}))
        stack.enter_context(replaced(datetime, {"datetime": clock}))
        for module in host_modules(fn):
            space = vars(module)
            new = {n: f for n, f in {**GLOBALS, **functions}.items() if n not in space}
            for n, x in list(space.items()):
                if id(x) in originals:
                    new[n] = originals[id(x)]
                elif isinstance(x, functools._lru_cache_wrapper):
                    new[n] = _uncached(x)
            stack.enter_context(replaced(module, new))
        yield

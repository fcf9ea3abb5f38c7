"""Sizes and scalars on both sides: PyTorch's symbolic integers and floats, and our terms."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..cases.declaration import DTYPES
from ..errors import Place, Unsupported
from ..terms import construct as T
from ..terms import index as I
from ..terms.term import Term
from . import roundings
from .roundings import Rounded

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeGuard

COMPARED: dict[str, Callable[[Term, Term], Term]] = {
    "eq": lambda a, b: T.make("eq", a, b), "ne": lambda a, b: T.make("ne", a, b),
    "lt": lambda a, b: T.make("lt", a, b), "le": lambda a, b: T.make("le", a, b),
    "gt": lambda a, b: T.make("lt", b, a), "ge": lambda a, b: T.make("le", b, a),
}  # fmt: skip
PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67)


IN_MEMORY = ("stride", "is_contiguous", "storage_offset", "data_ptr", "as_strided")


@contextmanager
def in_any_memory() -> Iterator[None]:
    """The context in which a function that asks how its inputs lie in memory is refused: they may lie in any way."""
    import torch

    from ..capture.fake_cuda import replaced

    with replaced(torch.Tensor, {name: _refused(getattr(torch.Tensor, name), name) for name in IN_MEMORY}):
        yield


def _refused(plain: Callable[..., object], name: str) -> Callable[..., object]:
    """The method, which the function itself may not call."""
    from .textbook import is_user

    def asked(*args: object, **options: object) -> object:
        if is_user(sys._getframe(1).f_code.co_filename):
            raise Unsupported(f"Tensor.{name} of an input that may have any strides")
        return plain(*args, **options)

    return asked


class Symbols:
    """One symbol per dim or scalar name, in one shape environment. `hints` are the numbers to trace at; other sizes are
    primes times `multiple`."""

    def __init__(self, hints: dict[str, int | float], multiple: int = 1) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.env = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.env, allow_non_fake_inputs=True)
        self.hints, self.multiple = hints, multiple
        self.asked: dict[Term, None] = {}  # answers to the function's own comparisons, as conditions
        self.made: dict[str, Any] = {}
        self.terms: dict[Any, Term] = {}  # sympy symbol -> term
        self.wide: frozenset[str] = frozenset()  # integer scalars that may have more digits than a float
        self.rounded: dict[object, Rounded] = {}  # PyTorch's expression -> how it was made

    @contextmanager
    def asking(self, strided: bool = False) -> Iterator[None]:
        """The context in which the function's own comparisons of sizes and scalars are noted: PyTorch's guards leave
        out those that it has asked itself before, such as whether a size is 1. `strided`: the inputs may lie in memory
        in any way, and a function that asks how is refused."""
        import torch

        from ..capture.fake_cuda import replaced

        noted = {f"__{op}__": self._noted(getattr(torch.SymInt, f"__{op}__"), make) for op, make in COMPARED.items()}
        ways = {f"__{r}{op}__": (op, bool(r)) for op in ("add", "sub", "mul", "truediv", "pow") for r in ("", "r")}
        with ExitStack() as stack:
            for kind in (torch.SymInt, torch.SymFloat):
                own = {n: self._rounding(getattr(kind, n), *way) for n, way in ways.items() if hasattr(kind, n)}
                stack.enter_context(replaced(kind, own))
            asked = {f"__{op}__": self._compared(getattr(torch.SymFloat, f"__{op}__")) for op in COMPARED}
            asked["__bool__"] = self._compared(torch.SymFloat.__bool__)
            stack.enter_context(replaced(torch.SymFloat, asked))
            stack.enter_context(replaced(torch.SymInt, noted))
            if strided:
                stack.enter_context(in_any_memory())
            yield

    def _rounding(
        self, plain: Callable[[object, object], object], op: str, reflected: bool
    ) -> Callable[[object, object], object]:
        """The arithmetic of the function itself, which remembers how its floats are rounded."""
        from .textbook import is_user

        def made(a: object, b: object) -> object:
            found = plain(a, b)
            node = getattr(found, "node", None)
            if node is not None and is_user(sys._getframe(1).f_code.co_filename):
                left, right = (b, a) if reflected else (a, b)
                self.rounded[node.expr] = roundings.binary(op, self.rounding(left), self.rounding(right))
            return found

        return made

    def _compared(self, plain: Callable[..., object]) -> Callable[..., object]:
        """A question that the function itself asks of a float. Raises Unsupported where rounding may answer it."""
        from .textbook import is_user

        def compared(a: object, b: object = 0) -> object:
            by = sys._getframe(1)
            if is_user(by.f_code.co_filename):
                self._followed(a, b, by)
            return plain(a) if plain.__name__ == "__bool__" else plain(a, b)

        return compared

    def _followed(self, a: object, b: object, by: FrameType) -> None:
        """Raises Unsupported where rounding may decide a comparison of the two, which the function of a frame makes."""
        if not roundings.compared(self.rounding(a), self.rounding(b)):
            place = Place(by.f_code.co_filename, by.f_lineno)
            raise Unsupported("a comparison of rounded numbers", place, roundings.WHY)

    def rounding(self, v: object) -> Rounded:
        """How far a SymInt, SymFloat or number of Python's may be from its term."""
        return self._rounded(getattr(getattr(v, "node", None), "expr", v))

    def _rounded(self, e: object) -> Rounded:
        """The same of PyTorch's expression: what the function made of it, else as PyTorch makes it."""
        import sympy  # type: ignore[import-untyped]

        if e in self.rounded:
            return self.rounded[e]
        if isinstance(e, (int, float, sympy.Number)):
            return roundings.constant(float(e))
        if getattr(e, "is_integer", False):
            terms = (self.terms.get(s) for s in getattr(e, "free_symbols", ()))
            return roundings.WIDE if any(t is not None and t.attr in self.wide for t in terms) else roundings.WHOLE
        if isinstance(e, sympy.Symbol):
            return Rounded()
        args = [self._rounded(a) for a in getattr(e, "args", ())]
        match type(e).__name__:
            case "ToFloat":
                return roundings.LOST if args[0].wide else roundings.WHOLE
            case "IntTrueDiv" | "FloatTrueDiv":
                return roundings.binary("truediv", *args)
            case "OpaqueUnaryFn_sqrt" | "OpaqueUnaryFn_log2" as name:
                return roundings.function(name.removeprefix("OpaqueUnaryFn_"), *args)
            case "Mul" if len(args) == 2:
                return roundings.binary("mul", *args)
        return roundings.LOST

    def _noted(
        self, plain: Callable[[object, object], object], make: Callable[[Term, Term], Term]
    ) -> Callable[[object, object], object]:
        from .textbook import is_user

        def compared(a: object, b: object) -> object:
            found, by = plain(a, b), sys._getframe(1)
            if found is NotImplemented or not is_user(by.f_code.co_filename):
                return found
            self._followed(a, b, by)
            t, holds = make(self.term(a), self.term(b)), bool(found)
            self.asked[t if holds else T.make("not", t)] = None
            return holds

        return compared

    # -- ours to theirs

    def number(self, t: Term | int) -> Any:
        """The SymInt or SymFloat of a term."""
        t = T.const(t)
        match t.op:
            case "const":
                return t.attr
            case "size":
                return self._symbol(t, is_float=False)
            case "scalar":
                return self._symbol(t, is_float=t.type == T.REAL)
        return on_symbols(t.op)(*(self.number(a) for a in t.args))

    def _symbol(self, t: Term, is_float: bool) -> Any:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        if t.attr not in self.made:
            source = ConstantSource(t.attr)
            hint = self.hints.get(t.attr, 0.37 if is_float else self._prime())
            if is_float:
                symbol = self.env.create_unspecified_symbol(float(hint), source, DimDynamic.DYNAMIC)
                self.made[t.attr] = self.env.create_symfloatnode(symbol, hint=float(hint), source=source)
            else:
                symbol = self.env.create_symbol(int(hint), source, DimDynamic.DYNAMIC)
                self.made[t.attr] = self.env.create_symintnode(symbol, hint=int(hint), source=source)
            self.terms[symbol] = t
        return self.made[t.attr]

    def _prime(self) -> int:
        used = {*self.hints.values(), *(int(n.node.hint if hasattr(n, "node") else n) for n in self.made.values())}
        return next(p * self.multiple for p in PRIMES if p * self.multiple not in used)

    def fake(self, dtype: str, dims: Sequence[Term | int]) -> Any:
        """A contiguous fake tensor with symbolic sizes."""
        import torch

        sizes = [self.number(d) for d in dims]
        with self.mode:
            return torch.empty(sizes, dtype=torch_dtype(dtype))

    # -- theirs to ours

    def term(self, v: Any) -> Term:
        """The term of a SymInt, SymFloat or number."""
        expr = getattr(getattr(v, "node", None), "expr", v)
        return self._of(expr)

    def define(self, v: Any, t: Term) -> None:
        """The symbol that stands for x.item() means the element t."""
        self.terms[v.node.expr] = t

    def _of(self, e: Any) -> Term:
        import sympy  # type: ignore[import-untyped]

        if isinstance(e, bool | int | float):
            return T.const(e)
        if e in self.terms:
            return self.terms[e]
        if isinstance(e, sympy.Integer):
            return T.const(int(e))
        if isinstance(e, sympy.Number):
            return T.const(float(e))
        if e in (sympy.true, sympy.false):
            return T.const(bool(e))
        if isinstance(e, sympy.Symbol):
            raise Unsupported("a size that depends on the values of a tensor")
        f = FROM_SYMPY.get(type(e).__name__)
        if f is None:
            raise Unsupported(f"size expression {e}", why=type(e).__name__)
        if type(e).__name__ in CONVERSIONS and not roundings.converted(self._rounded(e.args[0])):
            raise Unsupported("an integer made of a rounded number", why=roundings.WHY)
        return f(*map(self._of, e.args))

    def conditions(self) -> tuple[Term, ...]:
        """The conditions that tracing assumed of sizes and scalars and that may fail, as boolean terms. Raises
        Unsupported if PyTorch replaced a size or scalar by a number."""
        terms = {self._of(g.expr): g for g in self.env.guards if not of_layout(g)}
        for t, guard in terms.items():
            if t.op == "eq" and any(a.is_const for a in t.args) and any(a.op in ("size", "scalar") for a in t.args):
                raise Unsupported("a size or scalar that PyTorch replaced by a number", why=f"{t}{_line(guard)}")
        found = {_as_less(t): t for t, guard in terms.items() if _of_user(guard) or not _benign(t, guard)}
        asked = {_as_less(t): t for t in self.asked}
        return tuple(t for t in {**asked, **found}.values() if not t.is_const)


def _as_less(t: Term) -> Term:
    """a <= 4 as a < 5, of integers."""
    if t.op != "le" or any(a.type != T.INT for a in t.args):
        return t
    a, b = t.args
    return T.make("lt", a, T.add(b, 1)) if b.is_const else T.make("lt", T.sub(a, 1), b) if a.is_const else t


LAYOUT = re.compile(r"in (conv|\w*(contiguous|stride|channels_last|memory_format)\w*)\)")


def of_layout(guard: ShapeGuard) -> bool:
    """PyTorch asked in order to choose how a result lies in memory, not what it is."""
    return LAYOUT.search(str(guard.sloc)) is not None


def of_view(t: Term, guard: ShapeGuard) -> bool:
    """PyTorch asked whether one size divides another, to find a shorter way to a view."""
    return any(s.op in REMAINDERS for s in t.walk()) and RESHAPE.search(str(guard.sloc)) is not None


def _of_user(guard: ShapeGuard) -> bool:
    """Whether the function itself asked, not PyTorch on its behalf."""
    from .textbook import is_user

    frame = getattr(guard.sloc, "framework_loc", None)
    return frame is not None and is_user(str(getattr(frame, "filename", frame)))


RESHAPE = re.compile(r"in _reshape_view_helper(_core_alg)?\)")


def _benign(t: Term, guard: ShapeGuard) -> bool:
    """PyTorch asks of every size whether it is 0 or 1, to broadcast: formulas hold there too. Where it asks whether one
    size divides another, the formula may hold there only, unless it looks for a shorter way to the same view."""
    if t.op != "ne" or not any(a.is_const and a.attr in (0, 1) for a in t.args):
        return False
    return not any(s.op in REMAINDERS for s in t.walk()) or RESHAPE.search(str(guard.sloc)) is not None


REMAINDERS = ("mod", "truncmod", "bitand")


def torch_dtype(name: str) -> Any:
    """ "f32" -> torch.float32. Raises Unsupported for complex numbers and other types that formulas do not have."""
    import torch

    if name not in DTYPES:
        raise Unsupported(f"a tensor of {name}")
    return getattr(torch, DTYPES[name])


def dtype_name(dtype: Any) -> str:
    """torch.float32 -> "f32"."""
    long = str(dtype).removeprefix("torch.")
    return next((short for short, name in DTYPES.items() if name == long), long)


def _power(x: Term, n: Term) -> Term:
    from .aten.elementwise import power

    return power(x, n)


def _op(name: str) -> Callable[..., Term]:
    from ..terms.ops import OPS

    return lambda *ts: OPS[name].on_terms(*ts)


FROM_SYMPY: dict[str, Callable[..., Term]] = {
    "Add": lambda *ts: I.normal(T.add(*ts)),
    "Mul": lambda *ts: I.normal(T.mul(*ts)) if all(t.type == T.INT for t in ts) else T.mul(*ts),
    "Pow": _power,
    "FloatPow": _power,
    "PowByNatural": _power,
    "FloorDiv": I.floordiv,
    "CleanDiv": I.quotient,
    "Mod": I.mod,
    "PythonMod": I.mod,
    "IntTrueDiv": T.div,
    "FloatTrueDiv": T.div,
    "ToFloat": lambda t: t,
    "Max": lambda *ts: T.make("max", *ts),
    "Min": lambda *ts: T.make("min", *ts),
    "Abs": lambda t: T.make("abs", t),
    "CeilToInt": lambda t: T.make("ceil", t),
    "FloorToInt": lambda t: T.make("floor", t),
    "TruncToInt": lambda t: T.make("trunc", t),
    "OpaqueUnaryFn_sqrt": lambda t: T.make("sqrt", t),
    "OpaqueUnaryFn_exp": lambda t: T.make("exp", t),
    "OpaqueUnaryFn_log": lambda t: T.make("log", t),
    "OpaqueUnaryFn_log2": lambda t: T.make("log2", t),
    "OpaqueUnaryFn_sin": lambda t: T.make("sin", t),
    "OpaqueUnaryFn_cos": lambda t: T.make("cos", t),
    "OpaqueUnaryFn_tanh": lambda t: T.make("tanh", t),
    "RoundToInt": lambda t: T.make("round", t),
    "Equality": lambda a, b: T.make("eq", a, b),
    "Unequality": lambda a, b: T.make("ne", a, b),
    "StrictLessThan": I.less,
    "StrictGreaterThan": lambda a, b: I.less(b, a),
    "LessThan": lambda a, b: I.less(a, b + 1) if a.type == b.type == T.INT else T.make("le", a, b),
    "GreaterThan": lambda a, b: I.less(b, a + 1) if a.type == b.type == T.INT else T.make("le", b, a),
    "And": lambda *ts: T.make("and", *ts),
    "Or": lambda *ts: T.make("or", *ts),
    "Not": lambda t: T.make("not", t),
    "Piecewise": lambda *ts: _piecewise(ts),
    "ExprCondPair": lambda value, condition: T.where(condition, value, 0),
}


CONVERSIONS = ("CeilToInt", "FloorToInt", "TruncToInt", "RoundToInt")


def _piecewise(pairs: tuple[Term, ...]) -> Term:
    raise Unsupported("a size that is defined by cases", why=str(pairs))


def on_symbols(op: str) -> Callable[..., Any]:
    """Arithmetic of dims as Python does it on symbolic integers."""
    import functools
    import operator

    chains = {"add": operator.add, "mul": operator.mul}
    if op in chains:
        return lambda *xs: functools.reduce(chains[op], xs)
    if op in ("max", "min"):
        import torch

        return lambda *xs: functools.reduce(torch.sym_max if op == "max" else torch.sym_min, xs)
    divisions: dict[str, Callable[..., Any]] = {"floordiv": operator.floordiv, "mod": operator.mod}
    if op not in divisions:
        raise Unsupported(f"a dim with {op}")
    return divisions[op]


def _line(guard: ShapeGuard) -> str:
    """Where in the function PyTorch asked, as far as it says; "" for a line of PyTorch's own."""
    import torch

    found = re.search(r"([^\s(]+):(\d+) in ", str(guard.sloc))
    own = found is not None and os.path.exists(os.path.join(os.path.dirname(torch.__file__), found[1]))
    return f", at line {found[2]}" if found and not own else ""

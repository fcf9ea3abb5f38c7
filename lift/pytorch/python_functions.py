"""Python's and NumPy's functions on PyTorch's symbolic numbers, for as long as a reference is traced.

x / math.sqrt(x.shape[-1])    a factor 1 / sqrt(N), where Python's own function would ask PyTorch for the number
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import cast

import torch

from ..capture import texts
from ..capture.fake_cuda import replaced
from ..capture.places import host_place
from ..errors import Unsupported
from .host.shims import Kind, host_modules

Function = Callable[..., object]


def is_symbolic(*xs: object) -> bool:
    """Whether one of them is a symbolic integer or float."""
    return any(isinstance(x, (torch.SymInt, torch.SymFloat)) for x in xs)


# ---- math ------------------------------------------------------------------------------------------------------------


def _of_torch(name: str) -> Function:
    return cast(Function, getattr(torch, f"_sym_{name}"))


def _log(x: object, base: float = math.e) -> object:
    """log2 of x, and the logarithm of 2 to the base: PyTorch has log2 alone."""
    if base == 2:
        return torch._sym_log2(x)
    return torch._sym_log2(x) * (math.log(2) if base == math.e else math.log(2, base))


ON_SYMBOLS: dict[str, Function] = {n: _of_torch(n) for n in ("sqrt", "sin", "cos", "tanh", "log2")} | {
    "log": _log,
    "log10": lambda x: _log(x, 10),
    "exp": lambda x: 2.0 ** (torch.sym_float(x) * math.log2(math.e)),
    "pow": lambda x, y: torch.sym_float(x) ** torch.sym_float(y),
    "isqrt": lambda n: math.floor(torch._sym_sqrt(n)),
    "fabs": lambda x: torch.sym_float(abs(x)),
}


def _either(plain: Function, on_symbols: Function) -> Function:
    """The function, or the other one where an argument is symbolic."""

    def function(*args: object, **options: object) -> object:
        return on_symbols(*args) if is_symbolic(*args) and not options else plain(*args, **options)

    return function


MATH = {n: _either(getattr(math, n), f) for n, f in ON_SYMBOLS.items()}

# ---- the types -------------------------------------------------------------------------------------------------------


class _Int(int, metaclass=Kind):
    base, symbolic = int, (torch.SymInt,)

    def __new__(cls, *args: object) -> int:  # type: ignore[misc]
        one = args[0] if len(args) == 1 and is_symbolic(args[0]) else None
        return cast(int, int(*args) if one is None else torch.sym_int(one))  # type: ignore[call-overload, arg-type]


class _Float(float, metaclass=Kind):
    base, symbolic = float, (torch.SymFloat,)

    def __new__(cls, *args: object) -> float:  # type: ignore[misc]
        return cast(float, torch.sym_float(*args) if is_symbolic(*args) else float(*args))  # type: ignore[arg-type]


KINDS = {int: _Int, torch.SymInt: _Int, float: _Float, torch.SymFloat: _Float, torch.SymBool: bool}


def _type(*args: object) -> type:
    """The type, where `int` and `float` are the ones above: `type(n) is int`."""
    plain = type(*args)  # type: ignore[call-overload]
    return KINDS.get(plain, plain) if len(args) == 1 else plain


GLOBALS: dict[str, object] = {
    "int": _Int, "float": _Float, "type": _type, "divmod": _either(divmod, lambda a, b: (a // b, a % b)),
}  # fmt: skip

# ---- remainders ------------------------------------------------------------------------------------------------------


def _remainder(a: object, b: object) -> object:
    """a % b of floats, exact in Python. PyTorch reads its symbol of remainders as an integer: x % 1.0 as 0."""
    x, y = torch.sym_float(a), torch.sym_float(b)  # type: ignore[arg-type]
    return x - y * torch.sym_float(math.floor(x / y))  # type: ignore[arg-type]


def _remainders(kind: type) -> dict[str, Function]:
    """The methods of % of symbolic integers or floats."""

    def of(plain: Function, reflected: bool) -> Function:
        def remainder(a: object, b: object) -> object:
            if not any(isinstance(x, float | torch.SymFloat) for x in (a, b)):
                return plain(a, b)
            return _remainder(b, a) if reflected else _remainder(a, b)

        return remainder

    return {n: of(getattr(kind, n), n == "__rmod__") for n in ("__mod__", "__rmod__") if hasattr(kind, n)}


# ---- texts -----------------------------------------------------------------------------------------------------------


def _texts() -> list[tuple[type, dict[str, object]]]:
    """The methods by which numbers and tensors become texts; they refuse where the function may compute with a text,
    which says how PyTorch spells a symbol, and not which number or elements it stands for."""
    from torch.fx.experimental.sym_node import SymNode

    return [
        (SymNode, {"str": _refusing(SymNode.str, "a size or a scalar")}),
        (torch.Tensor, {n: _refusing(getattr(torch.Tensor, n), "a tensor") for n in ("__repr__", "__format__")}),
    ]


def _refusing(plain: Function, what: str) -> Function:
    def text(*args: object, **options: object) -> object:
        if texts.is_of_host():
            raise Unsupported(f"{what} that becomes a text", host_place())
        return plain(*args, **options)

    return text


# ---- where they go ---------------------------------------------------------------------------------------------------


@contextmanager
def symbolic_numbers(fn: Function) -> Iterator[None]:
    """The context in which the modules of `fn` compute with symbolic numbers as with Python's. NumPy calls the method
    of the function's name."""
    originals = {id(getattr(math, n)): f for n, f in MATH.items()}
    methods = {n: f for n, f in ON_SYMBOLS.items() if n not in ("pow", "isqrt", "fabs")}
    with ExitStack() as stack:
        stack.enter_context(replaced(math, MATH))
        for owner, methods_of_texts in _texts():
            stack.enter_context(replaced(owner, methods_of_texts))
        for kind in (torch.SymInt, torch.SymFloat):
            stack.enter_context(replaced(kind, {n: f for n, f in methods.items() if not hasattr(kind, n)}))
            stack.enter_context(replaced(kind, _remainders(kind)))
        for module in host_modules(fn):
            space = vars(module)
            new: dict[str, object] = {n: f for n, f in GLOBALS.items() if n not in space}
            new |= {n: originals[id(x)] for n, x in list(space.items()) if id(x) in originals}
            stack.enter_context(replaced(module, new))
        yield

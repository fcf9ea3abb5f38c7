"""Integers of PyTorch's tensors as machines have them: what a result is in the width of its dtype.

    8, 16 bits    the number wraps: int8(x + y), (x + y) % 256
    32, 64 bits   the number is exact and must fit: an obligation, which becomes a clause of the contract

A real that becomes an integer must fit in every width: what the conversion gives for others differs between devices.
https://docs.pytorch.org/docs/stable/tensor_attributes.html has the promotion of types; the dtype of a result is
PyTorch's own here. The shifts are those of ATen (BinaryShiftOpsKernels.cpp): an amount outside of the width gives 0, or
the sign.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from ..errors import Place
from ..terms import term as T
from ..terms.exactness import DIGITS
from ..terms.machine_ranges import MachineRanges, limits
from ..terms.ranges import Interval
from ..terms.ring import wrapped
from ..terms.term import Term
from .compared_numbers import COMPARED, COMPARING, is_rounded, narrowed
from .symbolic_tensor import SymbolicTensor, cast, tensor, type_of_name

NARROW_BITS = 16  # integers of so many bits or fewer wrap, wider ones must fit

LEFT, RIGHT = {"bitwise_left_shift", "__lshift__"}, {"bitwise_right_shift", "__rshift__"}
# Operators that convert a number to the type of the tensor beside it, and depend on more than its residue.
CONVERTED = {
    "eq", "ne", "lt", "le", "gt", "ge", "floor_divide", "remainder", "fmod",
    "bitwise_and", "__and__", "bitwise_or", "__or__", "bitwise_xor", "__xor__",
}  # fmt: skip
QUOTIENTS = {"floor_divide", "remainder", "fmod"}
CASTS = {"_to_copy", "to"}  # what they give is converted as any result is
COPIES = CASTS | {"copy"}
INEXACT = "an integer that is computed with rounded floats"
ROUNDED = "its float is rounded before it becomes an integer, an index or a truth value, and rounding is not modelled"
CHOOSING = {"where", "maximum", "minimum", "fmax", "fmin", "clamp", "clip", "clamp_min", "clamp_max"}


@dataclass(frozen=True, slots=True)
class Fits:
    """low <= term < high wherever the axes of the term are in their range: else the reading is not what PyTorch
    computes. `term` is an exact result over elements of tensors. Where low = high = 0 it is a divisor of integers, and
    is not 0: PyTorch raises an error else, or gives any number."""

    term: Term
    low: int
    high: int
    place: Place | None = None

    @property
    def is_divisor(self) -> bool:
        return self.low == self.high == 0

    @property
    def is_rounded(self) -> bool:
        """Whether it is an integer that is computed with rounded floats: nothing is known to keep it right."""
        return self.low == self.high == 1


Rounding: typing.TypeAlias = tuple[str, Place | None]  # the dtype of the result, and where


@dataclass
class Integers:
    """The known ranges of the integers of one function. `owed`: conditions that the elements formed so far rest on.
    `roundings`: of real data to few digits, on which an integer or a truth value depends."""

    inputs: Mapping[str, Interval] = field(default_factory=dict)
    scalars: Mapping[str, Interval] = field(default_factory=dict)
    owed: dict[tuple[Term, int, int], Fits] = field(default_factory=dict)
    roundings: list[Rounding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ranges = MachineRanges(self.inputs, self.scalars)

    def within(self, t: Term, low: int, high: int) -> bool:
        """Whether low <= t < high is certain."""
        least, greatest = self.ranges.of(t)
        return low <= least and greatest < high

    def owe(self, t: Term, low: int, high: int, place: Callable[[], Place | None]) -> None:
        """Records low <= t < high unless it is certain."""
        if not self.within(t, low, high) and (t, low, high) not in self.owed:
            self.owed[t, low, high] = Fits(t, low, high, place())

    def number(self, t: Term, dtype: str, place: Callable[[], Place | None], was_real: bool = False) -> Term:
        """An exact result as a number of an integer dtype. `was_real`: it is converted from a float, and must fit."""
        low, high = limits(dtype)
        if self.within(t, low, high) or (t, low, high) in self.owed:
            return t
        if not was_real and (high - low).bit_length() - 1 <= NARROW_BITS:
            return wrapped(t, low, high)
        self.owe(t, low, high, place)
        return t

    def machine(
        self, x: SymbolicTensor, dtype: str, place: Callable[[], Place | None], was_real: bool = False
    ) -> SymbolicTensor:
        """A tensor of exact results in a dtype; reals and truth values stay."""
        if x.type != T.INT or type_of_name(dtype) != T.INT:
            return x
        return tensor(x.shape, lambda i: self.number(x.at(i), dtype, place, was_real), T.INT)

    # ---- integers in floats

    def exact(
        self,
        x: SymbolicTensor,
        bits: int | None,
        place: Callable[[], Place | None],
        sizes: SymbolicTensor | None = None,
    ) -> SymbolicTensor:
        """A tensor of floats that hold integers which are read as integers again: its elements, or those of `sizes`,
        owe that they are less than 2^bits; None: floats of so few digits are never known to be right."""
        asked = sizes or x

        def at(i: tuple[Term, ...]) -> Term:
            t = asked.at(i)
            if bits is None:
                self.owed.setdefault((t, 1, 1), Fits(t, 1, 1, place()))
            else:
                self.owe(t, -(1 << bits), 1 << bits, place)
            return x.at(i)

        return tensor(x.shape, at, x.type)

    # ---- operands

    def operands(
        self,
        name: str,
        given: Sequence[object],
        dtypes: Sequence[str | None],
        place: Callable[[], Place | None],
        options: Mapping[str, object],
    ) -> list[object]:
        """The arguments of an operator as it takes them. `dtypes`: of those that are tensors; `options`: arguments by
        name."""
        base, args = name.removesuffix("_") if not name.endswith("__") else name, list(given)
        if args and options.get("dtype") is not None and base not in CASTS:
            args[0] = self._converted(args[0], options["dtype"], place)
        if base in COMPARED and len(args) == 2:
            args = [self._compared(args[k], args[1 - k], [*dtypes, None, None][1 - k], place) for k in (0, 1)]
            for k in (0, 1):
                self._narrowed(args, k, [*dtypes, None, None][1 - k], place)
        if COMPARING.get(base) and dtypes[0] != "f64":  # in float32 at least
            args[1] = narrowed(args[1], args[0], "f32")
        dtype = common([d for a, d in zip(args, dtypes, strict=False) if not _is_number(a)] or dtypes)
        if dtype is None or len(args) < 2:
            return args
        if base in LEFT | RIGHT:
            return [*self._shifted(base in LEFT, args[0], args[1], dtype, place), *args[2:]]
        if base in CONVERTED or (base in ("div", "divide") and options.get("rounding_mode")):
            args[:2] = [self._scalar(a, dtype, place) for a in args[:2]]
        if base in QUOTIENTS or (base in ("div", "divide") and options.get("rounding_mode")):
            args[1] = self._divisor(args[1], place)
        if base in CONVERTED | CHOOSING:
            args = [self.machine(a, dtype, place) if _is_number(a) else a for a in args]
        return args

    def _compared(self, x: object, y: object, dtype: str | None, place: Callable[[], Place | None]) -> object:
        """Integers that are compared with floats, which makes floats of them first: x == 16777217.0 is true for
        16777216. Beside a number to which no other integer is rounded they need no condition."""
        if not isinstance(x, SymbolicTensor) or x.type != T.INT:
            return x
        real = y.type == T.REAL if isinstance(y, SymbolicTensor | Term) else isinstance(y, float)
        bits = DIGITS.get(dtype or "f32", DIGITS["f32"])
        if not real or (isinstance(y, float) and abs(y) < 1 << (bits - 1)):
            return x
        return self.exact(x, bits, place)

    def _narrowed(self, args: list[object], k: int, dtype: str | None, place: Callable[[], Place | None]) -> None:
        """Rounds a number that is compared with a tensor of a narrow type; of a scalar the contract says so."""
        if is_rounded(args[k], args[1 - k], dtype):
            self.roundings.append((str(dtype), place()))
        args[k] = narrowed(args[k], args[1 - k], dtype)

    def _converted(self, x: object, result: object, place: Callable[[], Place | None]) -> object:
        """A real tensor that is made integer before the operation, sum(x, dtype=int32): each element must fit."""
        from .symbols import dtype_name

        if not isinstance(x, SymbolicTensor) or x.type != T.REAL or type_of_name(dtype_name(result)) != T.INT:
            return x
        return self.machine(cast(x, T.INT), dtype_name(result), place, was_real=True)

    def _scalar(self, a: object, dtype: str, place: Callable[[], Place | None]) -> object:
        """A number as the operator converts it."""
        if isinstance(a, bool) or not isinstance(a, int | Term) or T.const(a).type != T.INT:
            return a
        t, (low, high) = T.const(a), limits(dtype)
        return wrapped(t, low, high) if t.is_const else self.number(t, dtype, place)

    def _divisor(self, y: object, place: Callable[[], Place | None]) -> object:
        """The divisor of a quotient of integers, which owes that it is not 0."""
        if isinstance(y, SymbolicTensor):
            return tensor(y.shape, lambda i: self._not_zero(y.at(i), place), y.type)
        return self._not_zero(T.const(y), place) if isinstance(y, int | Term) and not isinstance(y, bool) else y

    def _not_zero(self, t: Term, place: Callable[[], Place | None]) -> Term:
        low, high = self.ranges.of(t)
        if not t.is_const and t.type == T.INT and low <= 0 <= high and not _is_guarded(t):
            self.owed.setdefault((t, 0, 0), Fits(t, 0, 0, place()))
        return t

    def _shifted(
        self, left: bool, x: object, k: object, dtype: str, place: Callable[[], Place | None]
    ) -> tuple[object, object]:
        """x << k and x >> k for 0 <= k < bits, a condition that is owed where k is not a constant."""
        low, high = limits(dtype)
        bits = (high - low).bit_length() - 1
        x = self._scalar(x, dtype, place)
        if isinstance(k, SymbolicTensor):
            amount = k.at

            def at(i: tuple[Term, ...]) -> Term:
                self.owe(amount(i), 0, bits, place)
                return amount(i)

            return x, tensor(k.shape, at, k.type)
        amount_term = T.const(typing.cast(int | Term, k))
        if not amount_term.is_const:
            self.owe(amount_term, 0, bits, place)
            return x, k
        if 0 <= int(amount_term.attr) < bits:
            return x, k
        return (_zero(x), 0) if left or not low else (x, bits - 1)


def is_conversion(name: str, dtypes: Sequence[str | None]) -> bool:
    """Whether an operator copies floats: `dtypes` are those of its arguments, of which it copies the last."""
    copied = [d for d in dtypes if d is not None][-1:]
    return name.removesuffix("_") in COPIES and any(type_of_name(d) == T.REAL for d in copied)


def _is_guarded(t: Term) -> bool:
    """where(y == 0, c, y) for c that is not 0: never 0."""
    if t.op != "where" or t.args[0].op != "eq":
        return False
    c, a, y = t.args
    return a.is_const and a.attr != 0 and set(c.args) == {T.const(0), y}


def _is_number(a: object) -> TypeGuard[SymbolicTensor]:
    """A tensor of rank 0: beside others it is converted to their dtype, as a number is."""
    return isinstance(a, SymbolicTensor) and not a.rank


def _zero(x: object) -> SymbolicTensor | int:
    return tensor(x.shape, lambda i: T.const(0), T.INT) if isinstance(x, SymbolicTensor) else 0


def common(dtypes: Sequence[str | None]) -> str | None:
    """The integer dtype to which operands of these dtypes are promoted; None where one is real or all are bool."""
    import torch

    from .symbols import dtype_name, torch_dtype

    found = [torch_dtype(d) for d in dtypes if d is not None]
    if not found:
        return None
    try:
        out = found[0]
        for d in found[1:]:
            out = torch.promote_types(out, d)
    except RuntimeError:
        return None
    name = dtype_name(out)
    return name if name[0] in "iu" and name[1:].isdigit() else None

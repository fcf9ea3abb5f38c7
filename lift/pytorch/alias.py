"""Tensors that share elements while a graph is walked: writing through a view changes its base, and its other views.

z = x.clone(); z[:, 0] = 0; return z        select(z) is a view; writing it writes select_scatter(z, ..) to z
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import Unsupported
from ..terms import term as T
from .aten.index_rows import diagonal_scatter, select_scatter, slice_scatter
from .aten.shape_rows import transpose
from .symbolic_tensor import SymbolicTensor, permute, reshape


class Cell:
    """A tensor of its own."""

    def __init__(self, value: SymbolicTensor) -> None:
        self.value = value

    def write(self, value: SymbolicTensor) -> None:
        self.value = value


class View:
    """`look` makes the view from the base's contents; `put` the base's new contents from the old and the view's."""

    def __init__(
        self,
        base: Cell | View,
        look: Callable[[SymbolicTensor], SymbolicTensor],
        put: Callable[[SymbolicTensor, SymbolicTensor], SymbolicTensor] | None,
        name: str,
    ) -> None:
        self.base, self.look, self.put, self.name = base, look, put, name
        self.seen: SymbolicTensor | None = None
        self.made: SymbolicTensor | None = None

    @property
    def value(self) -> SymbolicTensor:
        now = self.base.value
        if self.made is None or now is not self.seen:
            self.seen, self.made = now, self.look(now)
        return self.made

    def write(self, value: SymbolicTensor) -> None:
        if self.put is None:
            raise Unsupported(f"writing through aten.{self.name}")
        self.base.write(self.put(self.base.value, value))


Arguments = Mapping[str, Any]


def _same_order(base: SymbolicTensor, new: SymbolicTensor, given: Arguments, piece: int) -> SymbolicTensor:
    return reshape(new, base.shape)


def _unpermuted(base: SymbolicTensor, new: SymbolicTensor, given: Arguments, piece: int) -> SymbolicTensor:
    order = [base.dim(d) for d in given["dims"]]
    return permute(new, [order.index(d) for d in range(base.rank)])


def _transposed(base: SymbolicTensor, new: SymbolicTensor, given: Arguments, piece: int) -> SymbolicTensor:
    return transpose(new, given["dim0"], given["dim1"])


def _scattered(
    scatter: Callable[..., SymbolicTensor],
) -> Callable[[SymbolicTensor, SymbolicTensor, Arguments, int], SymbolicTensor]:
    return lambda base, new, given, piece: scatter(base, new, **given)


def _piece(base: SymbolicTensor, new: SymbolicTensor, given: Arguments, piece: int) -> SymbolicTensor:
    size = given.get("split_size", given.get("split_sizes"))
    d = given.get("dim", 0)
    start = sum(size[:piece], T.const(0)) if isinstance(size, Sequence) else T.const(size) * piece
    return slice_scatter(base, new, d, start, start + new.shape[new.dim(d)])


def _slot(base: SymbolicTensor, new: SymbolicTensor, given: Arguments, piece: int) -> SymbolicTensor:
    return select_scatter(base, new, given.get("dim", 0), piece)


# how each view is written through
INVERSE: dict[str, Callable[[SymbolicTensor, SymbolicTensor, Arguments, int], SymbolicTensor]] = {
    **dict.fromkeys(("view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "flatten", "unflatten"), _same_order),
    **dict.fromkeys(("detach", "alias", "lift_fresh", "contiguous", "view_as"), _same_order),
    "permute": _unpermuted,
    "transpose": _transposed,
    "t": lambda base, new, given, piece: permute(new, range(base.rank)[::-1]),
    "select": _scattered(select_scatter),
    "slice": _scattered(slice_scatter),
    "diagonal": _scattered(diagonal_scatter),
    "split": _piece,
    "split_with_sizes": _piece,
    "unbind": _slot,
}


def view(
    base: Cell | View, name: str, look: Callable[[SymbolicTensor], SymbolicTensor], given: Arguments, piece: int = 0
) -> View:
    """The view that operator `name` makes of base; of several, number `piece`. `given`: its arguments without self."""
    inverse = INVERSE.get(name)
    put = None if inverse is None else (lambda old, new: inverse(old, new, given, piece))
    return View(base, look, put, name)

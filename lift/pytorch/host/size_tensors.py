"""Sizes that the host function puts into a tensor, multiplies or adds there, and takes out again:
`int(torch.prod(torch.tensor(x.shape[:-2])))`.

The tensor holds this run's numbers, and remembers ours. Any other use of it, or of a view of it, sees those numbers
alone, and may change them: the record says that they are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import TypeGuard, cast

import torch

from . import numbers as N

MAKERS = (torch.tensor, torch.as_tensor)
FOLDS = {torch.prod: mul, torch.Tensor.prod: mul, torch.sum: add, torch.Tensor.sum: add}
TAKEN_OUT = (torch.Tensor.item, torch.Tensor.__int__, torch.Tensor.__index__)
SHAPE = (torch.Tensor.dim, torch.Tensor.numel, torch.Tensor.__len__)
LARGEST = 2**63 - 1  # of PyTorch's integers
HELD = "_trilift_sizes"


@dataclass(eq=False)
class Memory:
    """All sizes that lie in one piece of memory; none once it has been used otherwise."""

    numbers: Sequence[N.Integer]


@dataclass(frozen=True)
class Held:
    """The sizes in a tensor, and the memory that it shares."""

    numbers: tuple[N.Integer, ...]
    memory: Memory


def is_held(x: object) -> TypeGuard[torch.Tensor]:
    """Whether it is a tensor that holds sizes."""
    return isinstance(x, torch.Tensor) and hasattr(x, HELD) and bool(_held(x).memory.numbers)


def run(func: Callable[..., object], args: tuple[object, ...], options: Mapping[str, object]) -> object:
    """The result of PyTorch's function, with our numbers; NotImplemented where they do not matter, or are lost."""
    if func in MAKERS and len(args) == 1 and not options and _are_integers(args[0]):
        plain = [n.value if N.isinstance_of(n) else n for n in args[0]]
        return _holding(func(plain), tuple(args[0]))
    if not args or not is_held(args[0]):
        lose_in((*args, *options.values()))
        return NotImplemented
    if func in SHAPE:
        return NotImplemented
    known = NotImplemented if options else _known(func, args[0], args[1:])
    if known is NotImplemented:
        lose(args[0])
    return known


def _known(func: Callable[..., object], x: torch.Tensor, rest: tuple[object, ...]) -> object:
    held = _held(x)
    if func is torch.Tensor.unbind and rest == (0,):
        parts = cast(Iterable[torch.Tensor], _used(func, x, 0))
        return tuple(_holding(p, (n,), held.memory) for p, n in zip(parts, held.numbers, strict=True))
    if rest:
        return NotImplemented
    if func in FOLDS and _is_below(total := reduce(FOLDS[func], held.numbers), held.numbers):
        return _holding(_used(func, x), (total,))
    if func in TAKEN_OUT and len(held.numbers) == 1:
        _used(func, x)
        return held.numbers[0]
    return NotImplemented


def _is_below(total: N.Integer, numbers: tuple[N.Integer, ...]) -> bool:
    """Whether it does not wrap: one of our numbers does not."""
    return len(numbers) == 1 or bool(total <= LARGEST)


def _used(func: Callable[..., object], x: torch.Tensor, *rest: object) -> object:
    """The function's own result; the use is one that is followed."""
    held = _held(x)
    delattr(x, HELD)
    try:
        return func(x, *rest)
    finally:
        setattr(x, HELD, held)


def lose_in(xs: Iterable[object]) -> None:
    """Another use of the tensors among them, and in containers there."""
    for x in xs:
        if is_held(x):
            lose(x)
        elif isinstance(x, tuple | list):
            lose_in(x)


def lose(x: torch.Tensor) -> None:
    """Another use of a tensor that holds sizes: it may change them, or compute with them."""
    memory = _held(x).memory
    numbers, memory.numbers = memory.numbers, ()
    for n in numbers:
        if N.isinstance_of(n):
            n.record.lose(n.term, n.value)


def _holding(x: object, numbers: tuple[N.Integer, ...], memory: Memory | None = None) -> object:
    setattr(x, HELD, Held(numbers, memory or Memory(numbers)))
    return x


def _held(x: torch.Tensor) -> Held:
    return cast(Held, getattr(x, HELD))


def _are_integers(x: object) -> TypeGuard[Sequence[N.Integer]]:
    numbers = list(x) if isinstance(x, tuple | list) else []
    return any(type(n) is N.Int for n in numbers) and all(type(n) in (int, N.Int) for n in numbers)

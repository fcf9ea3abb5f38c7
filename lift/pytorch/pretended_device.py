"""Tensors that claim to be on the GPU, when a reference asks: it is computed on the CPU, and compared with a kernel.

x.is_cuda, x.device.type == "cuda"     true
torch.arange(n, device=x.device)       where the computation is
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

from ..capture.fake_cuda import replaced
from .textbook import is_user

CLAIMED = torch.device("cuda", 0)
ANSWERS: dict[str, object] = {"is_cuda": True, "is_cpu": False}


class Place(str):
    """A device that PyTorch takes for the CPU, and the reference for the GPU."""

    __slots__ = ()
    type, index = CLAIMED.type, CLAIMED.index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) or other in (CLAIMED, str(CLAIMED))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(CLAIMED)

    def __str__(self) -> str:
        return str(CLAIMED)

    def __repr__(self) -> str:
        return repr(CLAIMED)

    def __format__(self, spec: str) -> str:
        return format(str(CLAIMED), spec)


HERE = Place("cpu")


def _for_user(plain: Callable[[torch.Tensor], object], claimed: object) -> property:
    """A property with the answer `claimed` where the reference's own code asks."""
    return property(lambda x: claimed if is_user(sys._getframe(1).f_code.co_filename) else plain(x))


def _is_available(plain: Callable[[], object]) -> Callable[[], object]:
    return lambda: True if is_user(sys._getframe(1).f_code.co_filename) else plain()


def _device_number(plain: Callable[..., object]) -> Callable[..., object]:
    return lambda x: CLAIMED.index if is_user(sys._getframe(1).f_code.co_filename) else plain(x)


def _kind(plain: Callable[..., object]) -> Callable[..., object]:
    """x.type() names the device; with a dtype it converts."""

    def kind(x: torch.Tensor, *args: object, **options: object) -> object:
        found = plain(x, *args, **options)
        if isinstance(found, str) and is_user(sys._getframe(1).f_code.co_filename):
            return found.replace("torch.", f"torch.{CLAIMED.type}.", 1)
        return found

    return kind


@contextmanager
def on_gpu() -> Iterator[None]:
    """The context in which a reference is told so."""
    from torch._subclasses.fake_tensor import FakeTensor

    own = FakeTensor.device.fget
    answers = {n: _for_user(getattr(torch.Tensor, n).__get__, claimed) for n, claimed in ANSWERS.items()}
    answers["device"] = _for_user(torch.Tensor.device.__get__, HERE)
    methods = {"get_device": _device_number(torch.Tensor.get_device), "type": _kind(torch.Tensor.type)}
    with ExitStack() as stack:
        stack.enter_context(replaced(torch.Tensor, {**answers, **methods}))
        stack.enter_context(replaced(torch.cuda, {"is_available": _is_available(torch.cuda.is_available)}))
        stack.enter_context(replaced(FakeTensor, {"device": _for_user(own, HERE)}))
        yield

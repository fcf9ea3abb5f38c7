"""Tensors that claim to be on the GPU, when a reference asks: it is computed on the CPU, and compared with a kernel.

x.is_cuda, x.device.type == "cuda"     true
torch.arange(n, device=x.device)       on the CPU, where the computation is
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch

from ..capture.fake_cuda import CUDA, Requests, replaced
from .textbook import is_user

ANSWERS: dict[str, object] = {"is_cuda": True, "is_cpu": False}


def _for_user(plain: Callable[[torch.Tensor], object], claimed: object) -> property:
    """A property with the answer `claimed` where the reference's own code asks."""
    return property(lambda x: claimed if is_user(sys._getframe(1).f_code.co_filename) else plain(x))


def _is_available(plain: Callable[[], object]) -> Callable[[], object]:
    return lambda: True if is_user(sys._getframe(1).f_code.co_filename) else plain()


def _device_number(plain: Callable[..., object]) -> Callable[..., object]:
    return lambda x: CUDA.index if is_user(sys._getframe(1).f_code.co_filename) else plain(x)


def _kind(plain: Callable[..., object]) -> Callable[..., object]:
    """x.type() names the device; with a dtype it converts."""

    def kind(x: torch.Tensor, *args: object, **options: object) -> object:
        found = plain(x, *args, **options)
        if isinstance(found, str) and is_user(sys._getframe(1).f_code.co_filename):
            return found.replace("torch.", f"torch.{CUDA.type}.", 1)
        return found

    return kind


@contextmanager
def on_gpu() -> Iterator[None]:
    """The context in which a reference is told so."""
    from torch._subclasses.fake_tensor import FakeTensor

    own = FakeTensor.device.fget
    answers = {n: _for_user(getattr(torch.Tensor, n).__get__, claimed) for n, claimed in ANSWERS.items()}
    answers["device"] = _for_user(torch.Tensor.device.__get__, CUDA)
    methods = {"get_device": _device_number(torch.Tensor.get_device), "type": _kind(torch.Tensor.type)}
    with Requests(), ExitStack() as stack:
        stack.enter_context(replaced(torch.Tensor, {**answers, **methods}))
        stack.enter_context(replaced(torch.cuda, {"is_available": _is_available(torch.cuda.is_available)}))
        stack.enter_context(replaced(FakeTensor, {"device": _for_user(own, CUDA)}))
        yield

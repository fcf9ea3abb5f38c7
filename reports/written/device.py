"""A GPU that is not there, as a person would pretend it. Never imported: written.library copies from it."""

# mypy: disable-error-code="attr-defined, no-any-return, misc"
from __future__ import annotations

import contextlib
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
from torch.overrides import TorchFunctionMode

from .helpers import GPU

# ---- host functions that ask for a GPU, where there is none ----


def without_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """The host function, with CPU tensors that say that they are on a GPU."""

    def call(**args: Any) -> Any:
        with pretended_gpu():
            return function(**args)

    return function if GPU else call


class Anything:
    """A stream, an event, a driver: numbers are asked of it, and it does nothing."""

    NUMBERS: ClassVar[dict[str, Any]] = {
        "major": 9,
        "multi_processor_count": 4,
        "multiprocessor_count": 4,
        "max_shared_mem": 232448,
        "shared_memory_per_block_optin": 232448,
        "max_num_regs": 65536,
        "warp_size": 32,
        "warpSize": 32,
        "arch": 90,
        "max_threads_per_multi_processor": 2048,
        "total_memory": 80 << 30,
        "L2_cache_size": 50 << 20,
        "backend": "cuda",
        "name": "NVIDIA H100",
        "gcnArchName": "",
        "type": "cuda",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.NUMBERS.get(name, self)

    def __getitem__(self, name: str) -> Any:
        return self.NUMBERS.get(name, 0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __index__(self) -> int:
        return 0


class Claimed(TorchFunctionMode):
    """CPU tensors say that they are on cuda:0, and what is asked of a GPU is asked of the CPU."""

    ANSWERS: ClassVar[dict[str, Any]] = {"device": torch.device("cuda", 0), "is_cuda": True, "is_cpu": False}
    GETTERS: ClassVar[dict[Any, str]] = {getattr(torch.Tensor, name).__get__: name for name in ANSWERS}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if name == "__get__" and func in self.GETTERS and not args[0].is_meta:
            return self.ANSWERS[self.GETTERS[func]]
        if name in ("cuda", "pin_memory"):
            return args[0]
        if name == "get_device":
            return 0
        if name in ("to", "type", "copy_"):
            args = tuple(map(self.on_cpu, args))
        if "device" in kwargs:
            kwargs["device"] = self.on_cpu(kwargs["device"])
        return func(*args, **kwargs)

    def on_cpu(self, x: Any) -> Any:
        numbered = isinstance(x, int) and not isinstance(x, bool)
        named = isinstance(x, (str, torch.device)) and str(x).startswith("cuda")
        return "cpu" if numbered or named else x


def with_modes(engine: Callable[..., Any]) -> Callable[..., Any]:
    """Autograd calls its functions without modes."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with Claimed():
            return engine(*args, **kwargs)

    return run


@contextlib.contextmanager
def pretended_gpu() -> Iterator[None]:
    import triton

    def always(value: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: value

    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "set_device": None,
        "synchronize": None,
        "_lazy_init": None,
        "get_device_capability": (9, 0),
        "get_device_name": "NVIDIA H100",
        "is_bf16_supported": True,
        "get_device_properties": Anything(),
        "current_stream": Anything(),
        "default_stream": Anything(),
        "is_current_stream_capturing": False,
    }
    contexts = ("Stream", "Event", "stream", "device", "device_of", "_DeviceGuard")
    driver = Anything()
    driver.get_current_target = lambda: triton.backends.compiler.GPUTarget("cuda", 90, 32)
    driver.get_active_torch_device = lambda: Claimed.ANSWERS["device"]
    driver.get_device_interface = lambda: torch.cuda
    driver.get_current_device = driver.get_current_stream = lambda *args: 0
    engine = with_modes(torch.autograd._engine_run_backward)
    with contextlib.ExitStack() as stack:
        patch = unittest.mock.patch.object
        for name, value in answers.items():
            stack.enter_context(patch(torch.cuda, name, always(value)))
        for name in contexts:
            stack.enter_context(patch(torch.cuda, name, Anything))
        stack.enter_context(patch(torch.version, "cuda", "12.8"))
        stack.enter_context(patch(torch.autograd, "_engine_run_backward", engine))
        stack.enter_context(patch(torch.accelerator, "current_accelerator", always(Claimed.ANSWERS["device"])))
        stack.enter_context(patch(triton.runtime.driver, "_active", driver))
        stack.enter_context(Claimed())
        yield

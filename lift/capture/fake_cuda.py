"""A pretended CUDA device, so that the host code of GPU kernels runs on CPU tensors.

Inside `pretend()` torch.cuda answers as one H100 with few multiprocessors would, tensors say that they are on cuda:0,
factories and moves that name a cuda device give CPU tensors, and Triton's driver is one that describes the device and
launches nothing. All of it is undone on the way out. The device's numbers are fixed, so that grids which depend on
them are the same everywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..runtime.session import table
from . import streams

CAPABILITY = (9, 0)
MULTIPROCESSORS = 4  # few, so that persistent kernels give each program several tiles at small shapes
SHARED_MEMORY = 232448
Options = Mapping[str, object]
CUDA = torch.device("cuda", 0)
_DEVICE, _IS_CUDA, _IS_CPU = (getattr(torch.Tensor, n).__get__ for n in ("device", "is_cuda", "is_cpu"))
_TO_CUDA = {"cuda", "pin_memory"}
_MISSING = object()


class _Nothing:
    """A context that changes nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *exception: Any) -> None: ...


# a name for each time that the number of multiprocessors was asked for
COUNTED: list[str] = table("fake_cuda.counted", [])


class _Properties(SimpleNamespace):
    """Numbers of the device as PyTorch gives them."""

    def __getattribute__(self, name: str) -> Any:
        if name == "multi_processor_count":
            COUNTED.append(name)
        return super().__getattribute__(name)


class _Numbers(dict[str, int]):
    """The same as Triton's driver gives them."""

    def __getitem__(self, name: str) -> int:
        if name == "multiprocessor_count":
            COUNTED.append(name)
        return super().__getitem__(name)


PROPERTIES = _Properties(
    name="NVIDIA H100 80GB HBM3", major=CAPABILITY[0], minor=CAPABILITY[1], multi_processor_count=MULTIPROCESSORS,
    total_memory=80 << 30, shared_memory_per_block=49152, shared_memory_per_block_optin=SHARED_MEMORY,
    shared_memory_per_multiprocessor=233472, regs_per_multiprocessor=65536, warp_size=32, L2_cache_size=50 << 20,
    max_threads_per_multi_processor=2048, max_threads_per_block=1024, gcnArchName="", is_integrated=0,
    is_multi_gpu_board=0,
    uuid="0",
)  # fmt: skip


class _Utils:
    def get_device_properties(self, device: int) -> dict[str, int]:
        return _Numbers({"max_shared_mem": SHARED_MEMORY, "max_num_regs": 65536, "warpSize": 32,
                         "multiprocessor_count": MULTIPROCESSORS, "sm_clock_rate": 1980000,
                         "mem_clock_rate": 2619000, "mem_bus_width": 5120})  # fmt: skip


class Driver:
    """Triton's driver of the pretended device."""

    utils = _Utils()
    launcher_cls = None

    def is_active(self) -> bool:
        return True

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 10 * CAPABILITY[0] + CAPABILITY[1], 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None: ...

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return CAPABILITY

    def get_active_torch_device(self) -> torch.device:
        return CUDA

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Any:
        return lambda f, **options: [1.0, 1.0, 1.0]

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1)

    def clear_cache(self, cache: Any) -> None: ...


class Requests(TorchFunctionMode):  # type: ignore[misc]
    """Requests for cuda become requests for the CPU."""

    def __torch_function__(
        self, func: Callable[..., object], types: object, args: tuple[object, ...] = (), kwargs: Options | None = None
    ) -> object:
        options = dict(kwargs or {})
        match getattr(func, "__name__", ""):
            case "cuda" | "pin_memory":
                return args[0]
            case "to" | "type" | "copy_":
                args = tuple(_cpu(a) for a in args)
        if "device" in options:
            options["device"] = _cpu(options["device"])
        if options.get("pin_memory"):
            options["pin_memory"] = False
        return func(*args, **options)


class _Redirect(Requests):
    """CPU tensors that claim to be on cuda:0, too."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Options | None = None
    ) -> Any:
        match getattr(func, "__name__", ""):
            case "__get__" if func in (_DEVICE, _IS_CUDA, _IS_CPU):
                found = func(*args)
                return found if args[0].is_meta else {_DEVICE: CUDA, _IS_CUDA: True, _IS_CPU: False}[func]
            case "get_device":
                return 0
            case "is_pinned":
                return False
            case "is_shared":
                return True  # what PyTorch says of all memory on a GPU
        return super().__torch_function__(func, types, args, kwargs)


def _cpu(device: Any) -> Any:
    if isinstance(device, int) and not isinstance(device, bool):
        return "cpu"
    return "cpu" if isinstance(device, (str, torch.device)) and str(device).startswith("cuda") else device


def _backward(engine: Any) -> Any:
    """The autograd engine is entered from inside a torch function, where function modes are off: Function.backward
    needs them."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with _Redirect():
            return engine(*args, **kwargs)

    return run


def _always(value: Any) -> Any:
    return lambda *args, **kwargs: value


def _is_overridden(*given: object) -> bool:
    """Whether a tensor of a class of its own is among the arguments: the functions that watch a run are not its own."""
    from torch._subclasses.fake_tensor import FakeTensor

    plain = (torch.Tensor, torch.nn.Parameter, FakeTensor)
    every = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    return any(isinstance(x, torch.Tensor) and type(x) not in plain for x in every)


def _answers() -> list[tuple[Any, dict[str, Any]]]:
    """The replacements: (where, {name: replacement})."""
    nothing = dict.fromkeys(("device", "device_of", "_DeviceGuard"), _Nothing)
    ordered = {
        "Stream": streams.Stream, "ExternalStream": streams.Stream, "Event": streams.Event, "stream": streams.Chosen,
        "current_stream": streams.current, "default_stream": streams.default, "set_stream": streams.choose,
        "synchronize": streams.synchronize,
    }  # fmt: skip
    constants = {
        "is_available": True, "device_count": 1, "current_device": 0, "set_device": None,
        "get_device_name": PROPERTIES.name, "get_device_properties": PROPERTIES, "get_device_capability": CAPABILITY,
        "is_bf16_supported": True, "empty_cache": None,
        "is_current_stream_capturing": False, "mem_get_info": (80 << 30, 80 << 30), "get_arch_list": ["sm_90"],
        "memory_allocated": 0, "max_memory_allocated": 0, "_lazy_init": None, "is_initialized": True,
        "manual_seed": None,
        "manual_seed_all": None, "_exchange_device": 0, "_maybe_exchange_device": 0,
    }  # fmt: skip
    accelerator = {"current_accelerator": CUDA, "is_available": True, "device_count": 1, "current_device_index": 0}
    waiting = {n: ordered[n] for n in ("current_stream", "set_stream", "synchronize")}
    generators = {"default_generators": (torch.Generator(),), "get_rng_state": lambda *a, **k: torch.get_rng_state()}
    return [
        (torch.cuda, {**nothing, **ordered, **{n: _always(v) for n, v in constants.items()}, **generators}),
        (torch.accelerator, {**{n: _always(v) for n, v in accelerator.items()}, **waiting}),
        (torch.version, {"cuda": "12.8"}),
        (
            torch.overrides,
            dict.fromkeys(("has_torch_function", "has_torch_function_variadic"), _is_overridden)
            | {"has_torch_function_unary": lambda x: _is_overridden((x,))},
        ),
        (torch, {"compile": _uncompiled}),
        (torch.autograd, {"_engine_run_backward": _backward(torch.autograd._engine_run_backward)}),
        (torch._C, {"_cuda_getCurrentRawStream": _always(0), "_cuda_getDevice": _always(0)}),
    ]


@contextmanager
def replaced(where: Any, values: dict[str, Any]) -> Iterator[None]:
    """Attributes set on the way in and put back on the way out."""
    before = {n: vars(where).get(n, _MISSING) for n in values}
    for n, v in values.items():
        setattr(where, n, v)
    try:
        yield
    finally:
        for n, v in before.items():
            delattr(where, n) if v is _MISSING else setattr(where, n, v)


@contextmanager
def pretend() -> Iterator[None]:
    """The pretended device, for as long as the context lasts."""
    os.environ.setdefault(
        "TRITON_DEFAULT_FP_FUSION", "1"
    )  # silences a warning of triton 3.9; TTIR does not depend on it
    import triton

    with ExitStack() as stack:
        for where, values in _answers():
            stack.enter_context(replaced(where, values))
        stack.enter_context(replaced(triton.runtime.driver, {"_active": Driver()}))
        stack.enter_context(_eager())
        stack.enter_context(_forgotten())
        stack.enter_context(_Redirect())
        yield


@contextmanager
def _forgotten() -> Iterator[None]:
    """Clears torch's memory of whether this machine can run Triton, inside and afterwards."""
    from torch.utils import _triton

    caches = [f.cache_clear for f in vars(_triton).values() if hasattr(f, "cache_clear")]
    for clear in caches:
        clear()
    try:
        yield
    finally:
        for clear in caches:
            clear()


def _eager() -> Any:
    """Functions that are compiled already run as they are written. Without torch._dynamo there are none."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


def _uncompiled(function: Any = None, **options: object) -> Any:
    """torch.compile, which leaves functions as they are."""
    return function if function is not None else lambda f: f

"""A GPU that is not there, as a person would pretend it. Never imported: written.library copies from it."""

# mypy: disable-error-code="attr-defined, no-any-return, misc"
from __future__ import annotations

import contextlib
import ctypes
import hashlib
import inspect
import textwrap
import types
import unittest.mock
from collections.abc import Callable, Iterator, Mapping, Sequence
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
        "shared_memory_per_multiprocessor": 233472,
        "shared_memory_per_block": 49152,
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


class Launched:
    """The rest of a launch, as a compiled kernel: kernel[grid](...) with the arguments that are not constants."""

    def __init__(self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.kernel = kernel
        self.given = dict(zip(kernel.arg_names, args, strict=False)) | dict(kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(Anything(), name)

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., Any]:
        names = [p.name for p in self.kernel.params if not p.is_constexpr]

        def launch(*args: Any) -> Any:
            return self.kernel.run(**{**self.given, **dict(zip(names, args, strict=False)), "grid": grid})

        return launch


def as_tensor(x: Any) -> Any:
    """An object with an address and a dtype, as the tensor that begins there."""
    import triton

    if isinstance(x, (torch.Tensor, triton.runtime.jit.TensorWrapper)):
        return x
    if not (hasattr(x, "data_ptr") and isinstance(getattr(x, "dtype", None), torch.dtype)):
        return x
    first = (ctypes.c_uint8 * x.dtype.itemsize).from_address(x.data_ptr())
    return torch.frombuffer(first, dtype=x.dtype)


def as_compiled() -> dict[str, Any]:
    """Attributes of compiled functions that the interpreter's functions lack."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import KernelParam

    interpret = InterpretedFunction.run

    def signature(kernel: Any) -> inspect.Signature:
        return inspect.signature(kernel.fn)

    def params(kernel: Any) -> list[Any]:
        parameters = signature(kernel).parameters.values()
        return [KernelParam(k, p, False, False) for k, p in enumerate(parameters)]

    def run(kernel: Any, *args: Any, **kwargs: Any) -> Launched:
        given = {name: as_tensor(value) for name, value in kwargs.items()}
        interpret(kernel, *map(as_tensor, args), **given)
        return Launched(kernel, args, kwargs)

    def source(kernel: Any) -> str:
        text = textwrap.dedent(inspect.getsource(kernel.fn))
        return vars(kernel).get("_src", text[text.index("def ") :])

    def update(kernel: Any, text: str) -> None:
        kernel._src = text
        kernel.rewriter._prepare_source = lambda lines: text
        kernel.rewritten_fn = {}  # others may be made of the same function

    def cache_key(kernel: Any) -> str:
        return hashlib.sha256(source(kernel).encode()).hexdigest()

    def globals_of(kernel: Any) -> dict[str, Any]:
        return kernel.fn.__globals__

    def line(kernel: Any) -> int:
        lines, first = inspect.getsourcelines(kernel.fn)
        return first + next(k for k, text in enumerate(lines) if text.lstrip().startswith("def "))

    asked: dict[str, Callable[[Any], Any]] = {
        "file_name": lambda kernel: inspect.getsourcefile(kernel.fn),
        "def_file_line_number": line,
        "signature": signature,
        "params": params,
        "src": source,
        "cache_key": cache_key,
        "__globals__": globals_of,
    }
    return {name: property(get) for name, get in asked.items()} | {"run": run, "_unsafe_update_src": update}


@contextlib.contextmanager
def pretended_gpu() -> Iterator[None]:
    import triton
    from triton.runtime.interpreter import InterpretedFunction

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
        "get_device_properties": types.SimpleNamespace(**Anything.NUMBERS),
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
        for module in (triton, triton.runtime, triton.runtime.jit):
            stack.enter_context(patch(module, "JITFunction", InterpretedFunction))
        for name, value in as_compiled().items():
            stack.enter_context(patch(InterpretedFunction, name, value, create=True))
        if hasattr(triton.runtime.jit, "get_jit_fn_file_line"):  # of Triton up to 3.8, for compiled functions only
            place = lambda kernel: (kernel.file_name, kernel.def_file_line_number)  # noqa: E731
            stack.enter_context(patch(triton.runtime.jit, "get_jit_fn_file_line", place))
        stack.enter_context(Claimed())
        yield

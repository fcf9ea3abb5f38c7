"""The kernels in the modules of a package: found by importing every module, not by knowing the package."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from .usage import callees, usage

# backends of accelerators that Triton's NVIDIA target does not compile for; kernels there are counted apart
OTHER_HARDWARE = [
    "._aipu",
    "._amd",
    "._arm",
    "._ascend",
    "._cambricon",
    "._enflame",
    "._hygon",
    "._iluvatar",
    "._kunlunxin",
    "._metax",
    "._mthreads",
    "._spacemit",
    "._sunrise",
    "._thead",
    "._tsingmicro",
    ".triton_ascend",
    ".ascend",
    ".npu",
    ".tilelang",
    ".rocm",
    ".amd",
]
STAGES = ("guess", "parse", "start", "done", "crash")  # of kernels; other results are counted apart


@dataclass
class Result:
    """The outcome of one kernel. `cause` is "" when it parsed and can start; `ran`: how one program on zeros ended."""

    package: str
    kernel: str
    place: str
    cause: str = ""
    detail: str = ""
    stage: str = "guess"  # the stage that failed: guess, parse, start; or "done"
    ran: str = ""
    operations: int = 0
    attempts: int = 0
    seconds: float = 0.0
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    """A kernel object found in a package's module."""

    package: str
    name: str
    place: str
    kernel: Any


def discover(package: str) -> tuple[list[Found], list[Result]]:
    """The kernels of a package, and what is counted apart: helpers, other hardware, modules that do not import."""
    apart: list[Result] = []
    modules = list(_modules(package, apart))
    objects: dict[str, tuple[str, Any]] = {}
    for module in modules:
        for name, value in list(vars(module).items()):
            if (fn := _kernel(value)) is not None and fn.fn.__module__.startswith(package):
                code = fn.fn.__code__
                place = f"{_short(code.co_filename)}:{fn.starting_line_number}"
                known = objects.get(place)
                if known is None or known[1] is fn or _wraps(value, known[1]):
                    objects[place] = (name, value)
    called = {id(helper) for _, value in objects.values() for helper, _ in callees(_kernel(value))}
    found = []
    for place, (name, value) in sorted(objects.items()):
        fn = _kernel(value)
        kind = _kind(fn, value, called)
        if kind == "kernel":
            found.append(Found(package, name, place, value))
        else:
            apart.append(Result(package, name, place, stage=kind))
    return found, apart


def _modules(package: str, apart: list[Result]) -> Iterator[Any]:
    try:
        root = importlib.import_module(package)
    except BaseException as error:
        apart.append(Result(package, package, "", stage="import", cause=f"{type(error).__name__}: {error}"[:200]))
        return
    for info in pkgutil.walk_packages(root.__path__, package + ".", onerror=lambda name: None):
        if "__main__" in info.name or any(part in info.name + "." for part in (".tests.", ".benchmarks.")):
            continue
        try:
            with redirect_stdout(sys.stderr):
                importlib.import_module(info.name)
        except BaseException as error:
            apart.append(Result(package, info.name, "", stage="import", cause=f"{type(error).__name__}: {error}"[:200]))
    for name, module in sorted(sys.modules.items()):
        if module is not None and (name == package or name.startswith(package + ".")):
            yield module


def _kernel(value: Any) -> Any:
    """The JITFunction inside a module's attribute, or None."""
    from triton.runtime.jit import JITFunction, KernelInterface

    if not isinstance(value, KernelInterface):
        return None
    while not isinstance(value, JITFunction):
        value = getattr(value, "fn", None)
        if value is None:
            return None
    return value


def _wraps(value: Any, inner: Any) -> bool:
    while value is not inner and hasattr(value, "fn"):
        value = value.fn
    return value is inner


def _kind(fn: Any, value: Any, called: set[int]) -> str:
    if type(fn).__name__.startswith("Gluon"):
        return "gluon"
    if any(part in "." + fn.fn.__module__ for part in OTHER_HARDWARE):
        return "other hardware"
    if not usage(fn).stores or (value is fn and id(fn) in called):
        return "helper"
    return "kernel"


def _short(file: str) -> str:
    return file.rpartition("site-packages/")[2]

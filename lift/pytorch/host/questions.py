"""The questions of a host function to the world outside of its arguments, one row each.

a truth, a number      a symbol: both answers are tried, and where they lead to other launches the contract says which
another answer         printed in the contract, as it was given
chance, time, files    no answer is worth anything: what rests on it is not followed
"""

from __future__ import annotations

import contextlib
import datetime
import os
import pathlib
import platform
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from ...capture.fake_cuda import CAPABILITY, PROPERTIES, Driver, replaced
from ...capture.places import is_ours
from ...terms import construct as T
from . import numbers as N

if TYPE_CHECKING:
    from .record import Record

Answer = Callable[..., object]
BETWEEN = ("<frozen", *(str(m.__file__) for m in (os, random, platform, pathlib, contextlib)))
VERSION = "compute_capability"  # 90 for 9.0


@dataclass(frozen=True, slots=True)
class Question:
    """`names` are attributes of `where`. `kind`: "truth" (a symbol), "said" (printed with its answer), "chance" (the
    answer may be another one in each call), "taken" (`prefix` says what the answer takes for granted)."""

    where: object
    names: str
    kind: str
    prefix: str = ""


# ---- the table -------------------------------------------------------------------------------------------------------

QUESTIONS = (
    Question(torch, "is_grad_enabled is_autocast_enabled are_deterministic_algorithms_enabled", "truth", "torch."),
    Question(torch, "is_inference_mode_enabled", "truth", "torch."),
    Question(torch.cuda, "is_current_stream_capturing", "truth", "torch.cuda."),
    Question(torch.compiler, "is_compiling is_dynamo_compiling", "truth", "torch.compiler."),
    Question(torch.jit, "is_scripting is_tracing", "truth", "torch.jit."),
    Question(torch, "get_float32_matmul_precision get_default_dtype get_num_threads", "said", "torch."),
    Question(torch.cuda, "get_device_name device_count get_arch_list current_device", "said", "torch.cuda."),
    Question(torch.cuda, "default_stream", "taken", "PyTorch's current stream is the default one"),
    Question(torch.autograd.forward_ad, "unpack_dual", "taken", "no input has a tangent of forward differentiation"),
    Question(torch.cuda, "mem_get_info memory_allocated max_memory_allocated", "chance", "torch.cuda."),
    Question(torch.distributed, "is_available is_initialized get_rank get_world_size", "said", "torch.distributed."),
    Question(platform, "node machine system release processor python_version platform", "said", "platform."),
    Question(socket, "gethostname", "said", "socket."),
    Question(os, "cpu_count getcwd", "said", "os."),
    Question(os, "getpid getppid urandom listdir stat", "chance", "os."),
    Question(threading, "get_ident get_native_id", "chance", "threading."),
    Question(os.path, "exists isfile isdir getmtime getsize", "chance", "os.path."),
    Question(pathlib.Path, "exists is_file is_dir read_text read_bytes open stat", "chance", "pathlib.Path."),
    Question(subprocess, "run check_output Popen call check_call getoutput", "chance", "subprocess."),
    Question(time, "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time", "chance", "time."),
    Question(time, "localtime gmtime ctime strftime", "chance", "time."),
    Question(random, "random randint randrange uniform choice choices sample shuffle getrandbits", "chance", "random."),
    Question(random.Random, "random randint randrange uniform choice choices sample shuffle getrandbits", "chance",
             "random.Random."),
    Question(secrets, "randbelow randbits choice token_bytes token_hex", "chance", "secrets."),
    Question(uuid, "uuid1 uuid4", "chance", "uuid."),
    Question(np.random, "rand randn random randint uniform normal choice permutation default_rng", "chance",
             "numpy.random."),
    Question(torch, "initial_seed seed", "chance", "torch."),
    Question(torch.random, "initial_seed seed", "chance", "torch.random."),
    Question(torch.cuda, "initial_seed seed", "chance", "torch.cuda."),
)  # fmt: skip
SAID_BY_CASES = (
    "shape dtype device layout ndim itemsize nbytes numel nelement dim ndimension size stride element_size type "
    "is_contiguous storage_offset data_ptr requires_grad is_cuda is_cpu is_meta is_floating_point is_complex is_signed "
    "is_sparse is_sparse_csr is_quantized is_nested is_mkldnn is_xla is_xpu is_mps is_mtia is_ipu is_maia is_vulkan "
    "is_pinned is_same_size is_nonzero equal allclose item tolist __len__ __hash__ __contains__ __bool__ __int__ "
    "__float__ __index__ __repr__ __str__ __format__ __iter__ "
    "_has_symbolic_sizes_strides"
)  # what a case says of an input, what has its row elsewhere, and contents, which are refused
KNOWN = frozenset(SAID_BY_CASES.split())
MEMORY = "the memory of {} is as large as its elements need"
STORED = dict.fromkeys(("untyped_storage", "storage", "_typed_storage"), MEMORY)
ADDRESSES = ("_cdata", "__cuda_array_interface__", "__dlpack__")
KINDS = (torch.nn.Parameter, torch.nn.parameter.Buffer)  # tensors that are told by a mark
FLAGS = (
    (type(torch.backends.cuda.matmul), "torch.backends.cuda.matmul"),
    (type(torch.backends.cudnn), "torch.backends.cudnn"),
)


class _Clock(datetime.datetime):
    """`datetime.datetime`, whose present is not known."""


# ---- asked by the host function --------------------------------------------------------------------------------------


def asks(record: Record) -> bool:
    """Whether the host's own code asks, and not a library within it."""
    frame = sys._getframe(2)
    while frame is not None and _between(frame.f_code):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_code.co_filename in record.files


def _between(code: CodeType) -> bool:
    """Whether the code only hands on what host code asks."""
    return code.co_filename.startswith(BETWEEN) or (is_ours(code.co_filename) and code.co_name == "__torch_function__")


def answers(record: Record) -> list[tuple[object, dict[str, Answer]]]:
    """Of each place, the functions that note that they were asked, for as long as a host function is read."""
    from torch._subclasses.fake_tensor import FakeTensor

    out: list[tuple[object, dict[str, Answer]]] = [
        (q.where, {n: answer_of(q, n, record) for n in q.names.split() if hasattr(q.where, n)}) for q in QUESTIONS
    ]
    out += [
        (kind, {how: _flag(getattr(kind, how), name, record)})
        for kind, name in FLAGS
        for how in ("__getattribute__", "__getattr__")
        if hasattr(kind, how)
    ]
    out += [(type(kind), {"__instancecheck__": _kind(kind, record)}) for kind in KINDS]
    out.append((FakeTensor, {"__getattr__": _missing(record)}))
    out.append((torch.UntypedStorage, {"data_ptr": _start(record)}))
    out.append((type(os.environ), of_variables(record)))
    out.append((torch.cuda, {"get_device_capability": _capability(record), "get_device_properties": _device(record)}))
    out.append((Driver, {"get_current_target": _target(record), "get_device_capability": _capability(record)}))
    out.append((type(Driver.utils), {"get_device_properties": _numbers(record)}))
    return out


def by_identity(found: list[tuple[object, dict[str, Answer]]]) -> dict[int, Answer]:
    """The same answers for modules that import the functions by name."""
    modules = (w for w in found if not isinstance(w[0], type))
    return {id(vars(where)[n]): f for where, values in modules for n, f in values.items() if n in vars(where)}


def install(stack: ExitStack, record: Record) -> dict[int, Answer]:
    """Replaces them for as long as the stack is open; returns what takes the place of which function, by its id."""
    found = answers(record)
    known = by_identity(found)
    for where, values in found:
        stack.enter_context(replaced(where, values))
    return known


def of_variables(record: Record) -> dict[str, Answer]:
    """The methods of `os.environ` that tell a variable."""
    return {"__getitem__": _variable(record), "__contains__": _variable_set(record)}


def answer_of(q: Question, name: str, record: Record) -> Answer:
    """The function that answers one question, and notes that it was asked."""
    plain = getattr(q.where, name)
    what = f"{q.prefix}{name}()"

    def answer(*args: object, **options: object) -> object:
        if not asks(record):
            return plain(*args, **options)
        if q.kind == "truth":
            return truth(record, what, bool(plain(*args, **options)))
        if q.kind == "chance":
            record.chance(what)
            return plain(*args, **options)
        found = plain(*args, **options)
        record.ask(q.prefix if q.kind == "taken" else f"{what} is {found}")
        return found

    return answer


# ---- of an input -----------------------------------------------------------------------------------------------------


def property_of(func: object) -> str:
    """The name of the property of a tensor that is read; empty for any other function."""
    return (
        getattr(getattr(func, "__self__", None), "__name__", "") if getattr(func, "__name__", "") == "__get__" else ""
    )


def of_input(record: Record, func: object, x: object, found: object) -> object:
    """The answer to host code that asks something of an input which no case says, noted."""
    asked = property_of(func)
    name = asked or getattr(func, "__name__", "")
    of = record.named(x) if isinstance(x, torch.Tensor) and name not in KNOWN else ""
    if not of or not (asked or _tells(found)):
        return found
    what = f"{of}.{name}" + ("" if asked else "()")
    if name in ADDRESSES:
        record.chance(what)
    elif name in STORED:
        record.ask(STORED[name].format(of))
    elif isinstance(found, bool):
        return truth(record, what, found)
    elif not isinstance(found, torch.Tensor):
        record.ask(f"{what} is {found}")
    return found


def _tells(found: object) -> bool:
    """Whether it is an answer, and not the result of a computation."""
    return isinstance(found, (bool, int, float, str, torch.UntypedStorage, torch.TypedStorage))


def _kind(kind: type, record: Record) -> Answer:
    plain: Answer = type(kind).__instancecheck__

    def answer(cls: type, x: object) -> bool:
        found = bool(plain(cls, x))
        if id(x) in record.inputs and asks(record):
            record.ask(f"{record.inputs[id(x)]} is {'' if found else 'not '}an nn.{cls.__name__}")
        return found

    return answer


def _start(record: Record) -> Answer:
    """Where the memory of an input starts, which is where the input starts."""
    plain = torch.UntypedStorage.data_ptr

    def answer(self: torch.UntypedStorage) -> object:
        of = record.addresses.get(int(self._cdata))
        if of is None or not asks(record):
            return plain(self)
        record.ask(f"the storage offset of {of} is 0")
        name = f"address({of})"
        return N.integer(record, T.size(name), int(record.dims[name]))

    return answer


def _missing(record: Record) -> Answer:
    """Of an attribute that a tensor does not have."""

    def answer(self: torch.Tensor, name: str) -> object:
        if id(self) in record.inputs and asks(record):
            record.ask(f"{record.inputs[id(self)]} has no attribute {name}")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    return answer


def truth(record: Record, what: str, now: bool) -> object:
    """A truth of which both sides are tried."""
    return N.truth(record, T.scalar(what, T.BOOL), bool(record.outside(what, now)))


def version(record: Record) -> N.Integer:
    """The compute capability as a number: 90 for 9.0."""
    now = record.outside(VERSION, 10 * CAPABILITY[0] + CAPABILITY[1])
    return N.integer(record, T.size(VERSION), int(now))


def _capability(record: Record) -> Answer:
    def answer(*_: object, **__: object) -> object:
        if not asks(record):
            return CAPABILITY
        whole = version(record)
        return whole // 10, whole % 10

    return answer


class _Device:
    """The properties of the device, each of which is noted."""

    def __init__(self, record: Record) -> None:
        self.record = record

    def __getattr__(self, name: str) -> object:
        if name in ("major", "minor"):
            whole = version(self.record)
            return whole // 10 if name == "major" else whole % 10
        found = getattr(PROPERTIES, name)
        self.record.ask(f"{name} of the device is {found}")
        return found


def _device(record: Record) -> Answer:
    return lambda *_, **__: _Device(record) if asks(record) else PROPERTIES


def _target(record: Record) -> Answer:
    plain = Driver.get_current_target

    def answer(self: Driver) -> object:
        found = plain(self)
        return type(found)(found.backend, version(record), found.warp_size) if asks(record) else found

    return answer


class _Numbers(dict[str, int]):
    """The properties of the device as Triton gives them, each of which is noted."""

    record: Record

    def __getitem__(self, name: str) -> int:
        found = super().__getitem__(name)
        self.record.ask(f"{name} of the device is {found}")
        return found

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        return self[name] if name in self else default  # noqa: SIM401  dict.get does not ask __getitem__


def _numbers(record: Record) -> Answer:
    plain: Answer = type(Driver.utils).get_device_properties

    def answer(self: object, device: int) -> object:
        found = plain(self, device)
        if not asks(record):
            return found
        out = _Numbers(cast(dict[str, int], found))
        out.record = record
        return out

    return answer


def _flag(plain: Answer, name: str, record: Record) -> Answer:
    def answer(self: object, n: str) -> object:
        found = plain(self, n)
        if isinstance(found, (bool, int, str)) and not n.startswith("_") and asks(record):
            record.ask(f"{name}.{n} is {found}")
        return found

    return answer


def _variable(record: Record) -> Answer:
    plain: Answer = type(os.environ).__getitem__

    def answer(self: object, name: str) -> object:
        if not asks(record):
            return plain(self, name)
        try:
            found = plain(self, name)
        except KeyError:
            record.ask(f"the environment variable {name} is not set")
            raise
        record.ask(f"the environment variable {name} is {found!r}")
        return found

    return answer


def _variable_set(record: Record) -> Answer:
    plain: Answer = type(os.environ).__contains__

    def answer(self: object, name: object) -> bool:
        found = bool(plain(self, name))
        if asks(record):
            record.ask(f"the environment variable {name} is {'' if found else 'not '}set")
        return found

    return answer


def unknowns(record: Record) -> dict[str, object]:
    """Python's own functions whose answers may differ in each call or process."""

    def identity(x: object) -> int:
        record.chance("id()")
        return id(x)

    def hashed(x: object) -> int:
        if isinstance(x, (str, bytes)) and not N.isinstance_of(x):
            record.chance("hash() of a text")
        return hash(x)

    plain: Answer = open

    def opened(*args: object, **options: object) -> object:
        record.chance("a file")
        return plain(*args, **options)

    return {"id": identity, "hash": hashed, "open": opened}


def clock(record: Record) -> type[datetime.datetime]:
    """`datetime.datetime` that notes when it is asked for the present."""

    plain: Answer = datetime.datetime.now

    def now(*args: object, **options: object) -> object:
        record.chance("the time")
        return plain(*args, **options)

    return type("datetime", (_Clock,), {n: staticmethod(now) for n in ("now", "utcnow", "today")})

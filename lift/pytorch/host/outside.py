"""Calls of the host function that leave what is known: functions whose answer may be another one in another process.

The table of questions gives the functions of the outside world whose answers are read. No such table is complete: what
host code calls in any module that is neither known to compute from its arguments alone nor in that table is noted, and
the contract takes its answer for granted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from ...capture.places import HOST, OUTSIDE, PURE, place
from .global_state import Watch

if TYPE_CHECKING:
    from .record import Record

KNOWN = frozenset(
    [
        "os.getenv",
        "os.fspath",
        "inspect.signature",
        "decimal.Decimal",
        "_thread.allocate_lock",
        "multiprocessing.context.Lock",
        "multiprocessing.context.RLock",
    ]
)  # they ask what has a row, or take turns
LOOK_UP = frozenset(["builtins.globals"])  # of whatever name
LOCKS = ("_thread.lock.", "_thread.RLock.")
STATEFUL = frozenset(
    ["torch", "torch._C", "torch.cuda", "torch.utils._triton", "torch.backends", "torch.distributed", "torch.xpu"]
)
STATE = ("get_", "is_", "are_", "has_")  # how PyTorch's functions begin that tell its state
OF_ARGUMENTS = frozenset(
    [
        "is_tensor",
        "is_storage",
        "is_floating_point",
        "is_complex",
        "is_nonzero",
        "is_same_size",
        "is_signed",
        "is_conj",
        "is_neg",
        "is_inference",
        "is_contiguous",
        "is_pinned",
        "is_tensor_like",
        "is_tensor_method_or_property",
        "get_device",
        "is_coalesced",
        "is_set_to",
        "is_distributed",
        "is_vulkan_available",
        "is_sparse",
        "is_shared",
        "is_leaf",
        "get_overridable_functions",
        "is_in_onnx_export",
    ]
)  # ... and those of them that tell something of their arguments


@contextmanager
def watched(record: Record) -> Iterator[None]:
    """Notes such calls of host code, and what it reads that may change, for as long as it runs."""
    state = Watch()

    def see(frame: FrameType, event: str, arg: object) -> None:  # at each call and return: it has to be fast
        if event == "call":
            if state.reads(frame, record.files):
                for said in state.notes(frame):
                    record.ask(said)
            elif place(frame.f_code.co_filename) == OUTSIDE and (by := frame.f_back) is not None and _is_host(by):
                _note(record, str(frame.f_globals.get("__name__", "")), frame.f_code.co_name)
        elif event == "c_call" and _is_host(frame):
            _note(record, *_of_builtin(arg))

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(before)


def _is_host(frame: FrameType) -> bool:
    return place(frame.f_code.co_filename) == HOST


def _of_builtin(function: object) -> tuple[str, str]:
    """The module and the name of a function that is not written in Python; of a method, the module of its class."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None)
    if isinstance(module, str):
        return module, name
    kind = owner if isinstance(owner, type) else type(owner)
    return kind.__module__, f"{kind.__name__}.{name}"


def _note(record: Record, module: str, name: str) -> None:
    top, whole = module.partition(".")[0].lstrip("_"), f"{module}.{name}"
    pure = top in PURE and whole not in LOOK_UP and not (module in STATEFUL and _of_state(name))
    if not pure and whole not in KNOWN and not whole.startswith(LOCKS):
        record.ask(f"{whole.removeprefix('_')}() gives what it gave when it was read")


def _of_state(name: str) -> bool:
    return name.startswith(STATE) and name not in OF_ARGUMENTS

"""One reading of a host function."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch

from ...capture import launches as L
from ...capture import streams
from ...capture.constant_arguments import known_ones, meant
from ...capture.fake_cuda import CUDA, pretend, replaced
from ...capture.places import is_host
from ...capture.recorder import known_of
from ...capture.run import named_outputs
from ...capture.trace import Trace
from ...cases.declaration import Case, stride_terms, torch_dtype
from ...errors import TooManyLaunches, TriliftError
from ...language.case_spec import Spec
from ...runtime import budget
from ...terms import construct as T
from ...terms import index as I
from ...terms.machine_ranges import dtype_limits
from ...terms.term import Term
from ..roundings import wide_names
from ..tracing import place_of_error
from . import questions
from .events import Events, Launching, Seen
from .outside import watched
from .record import Copied, Decision, Note, Record
from .shims import host_files, shimmed
from .state import changed, kept

OURS = (TypeError, AttributeError, LookupError, NameError, RecursionError)  # may come from numbers that are symbols


@dataclass(frozen=True, slots=True)
class HostRun:
    """`trace`: None where the host function raised, or could not be followed. `decisions`: what holds on this path, in
    order. `texts`: numbers that became text. `raised`: what the host function raised. `refused`: what could not
    be followed, and where."""

    dims: dict[str, int | float]
    trace: Trace | None
    decisions: tuple[Decision, ...]
    asked: tuple[Note, ...]
    lost: tuple[Note, ...]
    texts: tuple[Note, ...] = ()
    raised: BaseException | None = None
    refused: Note | None = None
    endless: bool = False  # refused for more launches than are followed
    sizes: frozenset[Term] = frozenset()  # of tensors, and strides
    copies: tuple[Copied, ...] = ()  # which are none where an input lies otherwise

    @property
    def refuses(self) -> bool:
        """Whether the host function itself refuses the inputs of this path, as far as no text decides it."""
        return self.raises and not any(d.by == "text" for d in self.decisions)

    @property
    def raises(self) -> bool:
        """Whether the host function itself raised."""
        return self.raised is not None and _by_host(self.raised)


def _wide(case: Case) -> frozenset[str]:
    """The integer scalars that may have more digits than a float."""
    limits = {}
    for n, s in case.scalars.items():
        if not s.is_float:
            least, most = dtype_limits(s.dtype)
            low, high = (e.attr if e is not None and e.is_const else d for e, d in ((s.low, least), (s.high, most)))
            limits[n] = (low, high)
    return wide_names(limits, case.scalars)


def read_host(case: Case, dims: Mapping[str, int | float], config: int = 0) -> HostRun:
    """The host function run once, at these dims, on tensors without contents."""
    budget.count("capture")
    record = Record({**_strides(case, dims), **_addresses(case), **dims})
    dims = record.dims
    record.files = host_files(case.fn)
    record.wide = _wide(case)
    events = Events(record, known_of(case.fn))
    trace, raised, refused, endless = None, None, None, False
    before = kept(case.fn)
    try:
        with _reading(case, record, events, config):
            arguments = {n: _argument(n, s, record) for n, s in case.params.items()}
            tensors = case.named(arguments)
            inputs = {n: events.input(n, t) for n, t in tensors.items()}
            events.limits = {
                events.key(t): x for n, t in tensors.items() if (x := _limits(case.tensors[n])) is not None
            }
            record.addresses = {events.key(t): n for n, t in tensors.items()}
            record.inputs = {id(t): n for n, t in tensors.items()}
            with events.recording():
                with watched(record):
                    result = case.call(arguments)
                record.catch_up()
            outputs = events.returned(named_outputs(result, case.tensors))
            trace = Trace(dict(dims), inputs, tuple(events.events), outputs, events.configs)
    except TriliftError as error:
        refused = Note(error.what, error.place or place_of_error(error))
        endless = isinstance(error, TooManyLaunches)
    except (Exception, SystemExit) as error:
        if not _by_host(error) and _follows(error):
            refused = Note(f"{type(error).__name__}: {_first(error)}", place_of_error(error))
        else:
            raised = error
    if host_files(case.fn) != record.files:  # it imported modules, in which numbers of ours are no numbers yet
        return read_host(case, dims, config)
    for name in changed(before, kept(case.fn)):
        record.lost.append(Note(f"`{name}`, which each call changes", case.place))
    return HostRun(
        dict(dims),
        trace,
        tuple(record.decisions),
        tuple(record.asked),
        tuple(record.lost),
        tuple(record.texts),
        raised,
        refused,
        endless,
        frozenset(record.sizes),
        tuple(record.copies.values()),
    )


def _strides(case: Case, dims: Mapping[str, int | float]) -> dict[str, int]:
    """Numbers for the strides of strided inputs, further apart than their elements need."""
    out: dict[str, int] = {}
    for name, s in case.tensors.items():
        step = 1 if s.unit else 3
        for d, n in reversed(list(enumerate(case.shape(name, dims)))) if s.strided else ():
            out[f"stride({name},{d})"] = step
            step *= n + 2
    return out


def _limits(s: Spec) -> tuple[Term, Term] | None:
    """The least and the greatest element of an integer input with both limits."""
    if s.is_float or s.low is None or s.high is None:
        return None
    return s.low, I.normal(T.sub(s.high, 1))


def _addresses(case: Case) -> dict[str, int]:
    """Numbers for the addresses of the inputs, as an allocator gives them."""
    return {f"address({n})": (k + 1) << 20 for k, n in enumerate(case.tensors)}


def _first(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")


def _by_host(error: BaseException) -> bool:
    """Whether host code itself raised it, and not something that it called."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and is_host(frames[-1].filename) and not isinstance(error, OURS)


def _follows(error: BaseException) -> bool:
    """Whether it is PyTorch that does not follow, and not the host function that raises."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    return isinstance(
        error,
        (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode, NotImplementedError),
    )


@contextmanager
def _reading(case: Case, record: Record, events: Events, config: int) -> Iterator[None]:
    from torch._subclasses.fake_tensor import FakeTensor
    from triton.runtime.autotuner import Autotuner, Heuristics
    from triton.runtime.jit import JITFunction, KernelInterface

    walk = Launching(lambda b: events.launch(meant(b, known_ones(case))), config, record)
    run = lambda self, *args, **kwargs: walk.launch(self, args, kwargs)  # noqa: E731
    item = lambda self, grid: lambda *args, **kwargs: walk.launch(self, args, {**kwargs, "grid": grid})  # noqa: E731
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(streams.running())
        stack.enter_context(pretend())
        stack.enter_context(L._bare())
        for kind in (JITFunction, Autotuner, Heuristics):
            stack.enter_context(replaced(kind, {"run": run}))
        stack.enter_context(replaced(KernelInterface, {"__getitem__": item}))
        known = questions.install(stack, record)
        stack.enter_context(replaced(torch.autograd, {"_engine_run_backward": _backward(record)}))
        L._active.append(walk)
        stack.callback(L._active.pop)
        stack.enter_context(shimmed(case.fn, known, questions.unknowns(record), questions.clock(record)))
        stack.enter_context(replaced(FakeTensor, {"device": _device_seen(events)}))
        stack.enter_context(record.mode)
        stack.enter_context(Seen(record))
        yield


def _device_seen(events: Events) -> property:
    """Where host code finds a tensor without contents: on the GPU, unless it moved the tensor away. PyTorch itself, in
    which no function mode is on, finds it on the CPU."""
    from torch._subclasses.fake_tensor import FakeTensor

    own = FakeTensor.device.fget

    def device(t: torch.Tensor) -> torch.device:
        found: torch.device = own(t)
        by_host = found.type == "cpu" and torch._C._len_torch_function_stack() > 0
        return CUDA if by_host and not events.on_cpu.has(t) else found

    return property(device)


def _backward(record: Record) -> Callable[..., object]:
    engine = torch.autograd._engine_run_backward

    def run(*args: object, **kwargs: object) -> object:
        with Seen(record):
            return engine(*args, **kwargs)

    return run


def _argument(name: str, s: object, record: Record) -> object:
    if isinstance(s, list | tuple):
        return type(s)(_argument(f"{name}{k}", e, record) for k, e in enumerate(s))
    if not isinstance(s, Spec):
        return s
    if s.shape is None:
        kind = T.BOOL if s.dtype == "bool" else T.REAL if s.is_float else T.INT
        return record.size(T.size(name) if kind == T.INT else T.scalar(name, kind))
    sizes = [record.theirs(e) for e in s.shape]
    if not s.strided or not sizes:
        return torch.empty(sizes, dtype=torch_dtype(s.dtype))
    strides = [record.theirs(t) for t in stride_terms(name, s)]
    return torch.empty_strided(sizes, strides, dtype=torch_dtype(s.dtype))

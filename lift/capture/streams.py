"""The order of work on CUDA streams: what is done on two of them has none, unless one waits for the other.

    happened(e) on s     s knows all that was done on s before, and what s waited for (vector clocks: Fidge, Mattern)
    t.wait_stream(s)     t knows what s knows; e.record(s), t.wait_event(e) the same; synchronize: all streams do
    copied(m)            a copy from or to memory m of the CPU with non_blocking=True is work that the host waits for
                         by synchronize alone: m must not be written before, and not be used where the copy writes it

PyTorch makes its streams with cudaStreamNonBlocking, so that the default stream waits for nobody (CUDA C++ Programming
Guide, section on the default stream). Two pieces of work without an order are refused, whether or not they touch the
same memory; so is work of another stream that the stream of the caller has not waited for when the function returns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from ..errors import Place, Unsupported
from ..runtime.session import table

HELP = "let the other stream wait: `stream.wait_stream(other)`, or an event"
WAIT = "wait for it: `torch.cuda.synchronize()`, or copy without non_blocking=True"
Clock = dict[int, int]  # of each stream how much of its work is known to be done


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that the host does not wait for, as piece of work number `count` of a stream. `writes`: the memory of the
    CPU, which it reads else."""

    writes: bool
    stream: int
    count: int


class Streams:
    """The streams of one run of a host function. `fault`: the first work without an order, None where there is none."""

    def __init__(self) -> None:
        self.clocks: defaultdict[int, Clock] = defaultdict(dict, {0: {}})
        self.host: Clock = {}  # what the host has waited for: all that follows comes after it
        self.current = 0
        self.fault: Unsupported | None = None
        self.kept: list[Stream] = []  # so that no other stream gets its number
        self.copies: dict[int, Copy] = {}  # by the memory of the CPU

    def copied(self, memory: int, writes: bool) -> None:
        """A copy with non_blocking=True between the GPU and memory of the CPU."""
        own = self.clocks[self.current]
        own[self.current] = own.get(self.current, 0) + 1
        self.copies[memory] = Copy(writes, self.current, own[self.current])

    def used(self, memory: int, is_written: bool, place: Place | None) -> None:
        """Memory of the CPU is read or written by the host, or returned."""
        copy = self.copies.get(memory)
        if copy is None or self.host.get(copy.stream, 0) >= copy.count or not (copy.writes or is_written):
            return
        does = "writes" if copy.writes else "reads"
        self._refuse(f"host code uses memory that a copy with non_blocking=True still {does}", place, WAIT)

    def waited(self) -> None:
        """The host waits for the current stream: a copy to the CPU does."""
        _merge(self.host, self.clocks[self.current])

    def happened(self, place: Place | None) -> None:
        """A launch, or an operation of torch, on the current stream."""
        own = self.clocks[self.current]
        _merge(own, self.host)
        for other, clock in [*self.clocks.items()]:
            if other != self.current and own.get(other, 0) < clock.get(other, 0):
                self._refuse("work on two CUDA streams, of which neither waits for the other", place)
        own[self.current] = own.get(self.current, 0) + 1

    def ended(self) -> None:
        """The function returned: raises Unsupported where work had no order, or the caller's stream has not waited."""
        own = {**self.clocks[self.current]}
        _merge(own, self.host)
        if any(own.get(s, 0) < clock.get(s, 0) for s, clock in self.clocks.items()):
            self._refuse("the caller's CUDA stream does not wait for work on another stream", None)
        if self.fault is not None:
            raise self.fault

    def _refuse(self, what: str, place: Place | None, help: str = HELP) -> None:
        self.fault = self.fault or Unsupported(what, place, help=help)


def _merge(into: Clock, clock: Clock) -> None:
    for s, n in clock.items():
        into[s] = max(into.get(s, 0), n)


_RUNS: list[Streams] = table("streams.runs", [])


def now() -> Streams:
    """Those of the run that goes on; of nobody, outside one."""
    return _RUNS[-1] if _RUNS else Streams()


@contextmanager
def running() -> Iterator[Streams]:
    """Streams of one run of a host function."""
    _RUNS.append(Streams())
    try:
        yield _RUNS[-1]
    finally:
        _RUNS.pop()


class Stream:
    """torch.cuda.Stream; `number` 0 is the default stream."""

    cuda_stream = 0

    def __init__(self, *_: object, **__: object) -> None:
        self.number = id(self)
        self._before: list[int] = []
        now().kept.append(self)

    @property
    def clock(self) -> Clock:
        return now().clocks[self.number]

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", 0)

    def __enter__(self) -> Stream:
        self._before.append(now().current)
        now().current = self.number
        return self

    def __exit__(self, *_: object) -> None:
        now().current = self._before.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.number == self.number

    def __hash__(self) -> int:
        return self.number

    def wait_stream(self, other: Stream) -> None:
        _merge(self.clock, other.clock)

    def wait_event(self, event: Event) -> None:
        _merge(self.clock, event.clock)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        _merge(now().host, self.clock)

    def query(self) -> bool:
        return True


class Default(Stream):
    """The stream that is current, or the default one, without a new number."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self._before = []


class Event:
    """torch.cuda.Event: what its stream had done when it was recorded."""

    cuda_event = 0

    def __init__(self, *_: object, **__: object) -> None:
        self.clock: Clock = {}

    def record(self, stream: Stream | None = None) -> None:
        self.clock = {**(stream or current()).clock}

    def wait(self, stream: Stream | None = None) -> None:
        (stream or current()).wait_event(self)

    def synchronize(self) -> None:
        _merge(now().host, self.clock)

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: object) -> float:
        return 1.0


class Chosen:
    """torch.cuda.stream(s): the current stream inside; of None nothing changes."""

    def __init__(self, stream: Stream | None = None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *_: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*_)


def current(_: object = None) -> Stream:
    """torch.cuda.current_stream()."""
    return Default(now().current)


def default(_: object = None) -> Stream:
    """torch.cuda.default_stream()."""
    return Default()


def choose(stream: Stream | None) -> None:
    """torch.cuda.set_stream(s)."""
    if stream is not None:
        now().current = stream.number


def synchronize(_: object = None) -> None:
    """torch.cuda.synchronize(): the host waits for all streams."""
    for clock in now().clocks.values():
        _merge(now().host, clock)

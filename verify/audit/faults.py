"""Faults: elements that are wrong because an operation lost a number, which nan-risk and overflow-risk report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..runs.input_table import Inputs
from ..runs.trials import Dims
from .fault_origin import Event
from .numerics import Numerics, Sample, smallest

Find = Callable[[Numerics, Dims, Inputs], Iterator["Fault"]]


@dataclass(frozen=True, slots=True)
class Fault:
    """An element that is wrong because of an event. `expected`: its value, NaN if none is known."""

    sample: Sample
    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    event: Event

    @property
    def known(self) -> bool:
        """Whether its value is."""
        return not np.isnan(self.expected)

    @property
    def element(self) -> str:
        """out[3, 5]"""
        return f"{self.output}{list(self.index)}"

    @property
    def example(self) -> dict[str, object]:
        """The numbers of a finding: where, on which inputs, what it is and should be."""
        where: dict[str, object] = {**self.sample.dims, "program": self.event.program, "element": self.element}
        values = {"got": self.got, **({"expected": self.expected} if self.known else {})}
        return {**where, "inputs": self.sample.kind.words, **values}


def faults(runs: Numerics, shapes: Iterable[Dims], kinds: Sequence[Inputs], find: Find) -> Iterator[Fault]:
    """One fault for each place: of the first shape and kind of inputs that shows it, at its smallest shape."""
    seen = set()
    for dims in shapes:
        for kind in kinds:
            for fault in find(runs, dims, kind):
                if fault.event.op.place not in seen:
                    seen.add(fault.event.op.place)
                    yield _smallest(runs, fault, find)


def _smallest(runs: Numerics, fault: Fault, find: Find) -> Fault:
    """The fault of the same place at the smallest shape that shows it."""
    place, kind = fault.event.op.place, fault.sample.kind
    again = lambda dims: next((f for f in find(runs, dims, kind) if f.event.op.place == place), None)  # noqa: E731
    return smallest(runs.evidence.case, fault, again)

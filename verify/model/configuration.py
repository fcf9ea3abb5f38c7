"""A case with symbols for its numbers: what the launches of its host function are at every shape.

Memory is a set of buffers, each a row of elements 0 <= o < length of one dtype. A view says where the element with
logical index (i, j, ...) is: at offset + i * strides[0] + j * strides[1] + ...
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from trilift.lift.errors import Place
from trilift.lift.pytorch.exact_numbers import Given
from trilift.lift.pytorch.machine_integers import Fits
from trilift.lift.terms import construct as T
from trilift.lift.terms.exactness import Marks
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Module

from .program import Element
from .verdict import Clause


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """One storage. `initial(o)` is element o before anything is launched: read(x, o) for the buffer of input x,
    undef for torch.empty, 0 for torch.zeros. Identity is equality: two buffers never overlap."""

    name: str  # the input's name, or t0, t1 ... for what the host function made
    dtype: str
    length: Term
    origin: str  # "input:x", "aten.empty", ...
    initial: Callable[[Term], Term]


@dataclass(frozen=True, slots=True)
class View:
    """A tensor: element (i, j, ...) is element offset + i*strides[0] + j*strides[1] + ... of the buffer."""

    buffer: Buffer
    offset: Term
    shape: tuple[Term, ...]
    strides: tuple[Term, ...]
    dtype: str

    def element(self, index: tuple[Term, ...]) -> Term:
        """The offset of a logical index."""
        return T.add(self.offset, *(T.mul(i, s) for i, s in zip(index, self.strides, strict=True)))


@dataclass(frozen=True, eq=False, slots=True)
class SymbolicLaunch:
    """One launch at every shape. `operands`: in the order of module.entry.args, a View for a pointer, else a term.
    `module` may be one of several that differ only in block sizes: see Configuration.blocks. `widened`: an operand that
    is rounded to fp32, where the kernel computes in fp64; "" if there is none. `narrowed`: the positions of operands
    that are rounded to fp32 and compared."""

    kernel: str
    module: Module
    operands: tuple[Term | View, ...]
    grid: tuple[Term, Term, Term]
    host: Place | None
    widened: str = ""
    narrowed: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class HostOp:
    """A torch operation between launches: `values[k](index)` is what outputs[k] holds at a logical index afterwards, as
    a term over read(buffer name, o), the contents of buffers before it. `owed`: integers that must fit their dtype,
    over the same contents. `given`: its arguments, with views as the keys of tensors; `exactly(marks, tag)`: what its
    floats owe where `tag` is marked."""

    name: str
    outputs: tuple[View, ...]
    values: tuple[Element, ...]
    place: Place | None
    owed: tuple[Fits, ...] = ()
    given: tuple[Given, ...] = ()
    exactly: Callable[[Marks, Hashable], tuple[Fits, ...]] = lambda marks, tag: ()


Event = SymbolicLaunch | HostOp


@dataclass(frozen=True, eq=False, slots=True)
class Configuration:
    """`facts` hold at every shape the case allows: sizes at least 1, `where`, what is known of scalars and of block
    sizes. `bounds`: index tensor -> (low, high), its elements v meet low <= v < high. `clauses`: what the relations
    between shapes and launch arguments rest on, for the contract. `owed`: integers of the function that the kernel is
    compared with, over the elements of inputs, that must fit their dtype. `runs`: a shape for each set of constants
    that the host function was seen to compile its kernels for, and on each path of it. `rows`: the tensors whose last
    stride is 1 here, though the case draws gaps. `distinct`: inputs without two equal elements."""

    facts: frozenset[Term]
    buffers: tuple[Buffer, ...]
    events: tuple[Event, ...]
    inputs: Mapping[str, View]
    outputs: Mapping[str, View]
    bounds: Mapping[str, tuple[Term, Term]] = field(default_factory=dict)
    clauses: tuple[Clause, ...] = ()
    label: str = ""  # which autotune configuration, which class of block sizes
    together: bool = False  # several configurations, with symbols for their numbers
    owed: tuple[Fits, ...] = ()
    runs: tuple[Mapping[str, int | float], ...] = ()
    rows: tuple[str, ...] = ()
    distinct: frozenset[str] = frozenset()

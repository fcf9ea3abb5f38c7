"""The typed IR: one Triton module after lowering, as Python objects. `lift.ttir.reader` parses it,
`lift.interpreter.interpret` walks it.

The part of MLIR's grammar that is kept:

    module ::= function*            function ::= name, region            region ::= block+
    block  ::= ^label(values): op*  op ::= results = name(operands) {attributes} [successors] (regions)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..errors import Place


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar, tensor, pointer or descriptor type. `element` is "f32", "bf16", "f8E4M3FN", "i1", "i32", "index" or,
    for pointers, "ptr" with `pointee` the element pointed to; `shape` is () for scalars. `text` is MLIR's spelling."""

    element: str
    shape: tuple[int, ...] = ()
    pointee: Type | None = None
    text: str = ""

    @property
    def is_float(self) -> bool:
        return self.element[0] == "f" or self.element == "bf16"

    @property
    def is_int(self) -> bool:
        return self.element == "index" or (self.element[0] == "i" and self.element[1:].isdigit())

    @property
    def bits(self) -> int:
        """Width of one element; 64 for pointers, descriptors and index."""
        if self.element in ("ptr", "tensordesc", "index"):
            return 64
        digits = "".join(c for c in self.element.removeprefix("bf") if c.isdigit() or c == "E").split("E")[0]
        return int(digits)


@dataclass(eq=False, slots=True)
class Value:
    """One SSA value. Identity is equality."""

    name: str
    type: Type
    owner: Op | Block | None = None
    index: int = 0

    def __repr__(self) -> str:
        return f"{self.name}: {self.type.text}"


@dataclass(eq=False, slots=True)
class Op:
    name: str  # "tt.load"
    operands: list[Value]
    results: list[Value]
    attrs: dict[str, Any]
    regions: list[Region] = field(default_factory=list)
    successors: list[tuple[str, list[Value]]] = field(default_factory=list)  # label, block arguments
    frames: tuple[Place, ...] = ()  # innermost first

    @property
    def place(self) -> Place | None:
        """The place in the user's file: the outermost frame is the kernel, the innermost may be a library function."""
        user = [p for p in self.frames if "/triton/language/" not in p.file]
        return next(iter(user or self.frames), None)

    def walk(self) -> Iterator[Op]:
        yield self
        for region in self.regions:
            yield from region.walk()


@dataclass(eq=False, slots=True)
class Block:
    label: str
    args: list[Value]
    ops: list[Op]


@dataclass(eq=False, slots=True)
class Region:
    blocks: list[Block]

    def walk(self) -> Iterator[Op]:
        for block in self.blocks:
            for op in block.ops:
                yield from op.walk()


@dataclass(eq=False, slots=True)
class Function:
    name: str
    args: list[Value]
    results: list[Type]
    body: Region
    public: bool


@dataclass(eq=False, slots=True)
class Module:
    """`entry` is the kernel; the others are noinline functions (tt.call)."""

    functions: dict[str, Function]
    entry: Function
    text: str  # the MLIR text that was parsed

    def walk(self) -> Iterator[Op]:
        for f in self.functions.values():
            yield from f.body.walk()

    @property
    def computes_in_double(self) -> bool:
        """Whether some value is f64."""
        return any(v.type.is_float and v.type.element == "f64" for op in self.walk() for v in op.results)


def users(ops: Iterable[Op]) -> dict[Value, list[Op]]:
    """The operations that use a value, or pass it on to a block."""
    out: dict[Value, list[Op]] = {}
    for op in ops:
        for v in chain(op.operands, *(passed for _, passed in op.successors)):
            out.setdefault(v, []).append(op)
    return out

"""The axes of an output: which size each has, under all dims that were seen, and how it is called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..errors import NotLifted
from ..terms import term as T
from ..terms.term import Axis, Term
from .quantities import Dims, Quantities


def output_axes(
    dims: Sequence[Dims], shapes: Sequence[tuple[int, ...]], inputs: Iterable[str] = ()
) -> tuple[Axis, ...]:
    """Axes of an output that has these shapes under these dims; their names are none of the inputs'. Raises NotLifted
    for a size that no expression of the dims gives."""
    quantities, names = Quantities(tuple(dims)), {*dims[0], *inputs}
    axes: list[Axis] = []
    for sizes in zip(*shapes, strict=True):
        size = quantities.size(sizes)
        if size is None:
            numbers = ", ".join(map(str, sizes))
            raise NotLifted(f"an output size ({numbers}) fits no expression of {quantities.names()}")
        axes.append(new_axis(size, axes, names))
    return tuple(axes)


def new_axis(size: Term, taken: Sequence[Axis], names: Collection[str]) -> Axis:
    """Named after its size: N gives n, a second one n'; other sizes give i, j, k ... A name in `names` stays with the
    dim or input that has it."""
    base = size.attr.lower() if size.op == "size" else ""
    if not base or base in names:
        base = "ijkrstuvw"[min(8, sum(a.name[0] in "ijkrstuvw" for a in taken))]
    return T.fresh_axis(Axis(base, size), {a.name for a in taken})

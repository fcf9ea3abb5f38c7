"""The conditions of tensor descriptors, put into the IR as assertions.

The base of `tl.make_tensor_descriptor` is at a multiple of 16 bytes, and so are its strides, but for the last, which is
1. Triton refuses other numbers that it knows when it compiles (`_check_tensor_descriptor_alignment_static`); numbers of
a launch it takes as they come, and the device traps or reads something else. The pass that turns descriptors into
pointers forgets all that: it is written down before, as `tt.assert` with a message that starts with MARK.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triton.language.core import constexpr, tensor
    from triton.language.semantic import TritonSemantic

MARK = "trilift: tensor descriptor: "
ALIGNED = 16  # bytes


@contextmanager
def asserted() -> Iterator[None]:
    """Kernels that are lowered inside have the conditions of their descriptors as assertions."""
    from triton.language import semantic

    owner = getattr(semantic, "TritonSemantic", None)
    made = getattr(owner, "make_tensor_descriptor", None)
    if owner is None or made is None:  # before Triton 3.5
        yield
        return

    def checked(
        self: TritonSemantic,
        base: tensor,
        shape: Sequence[tensor],
        strides: Sequence[tensor | constexpr],
        *rest: object,
        **more: object,
    ) -> object:
        out = made(self, base, shape, strides, *rest, **more)
        _assert(self, base, strides)
        return out

    owner.make_tensor_descriptor = checked
    try:
        yield
    finally:
        owner.make_tensor_descriptor = made


def _assert(semantic: TritonSemantic, base: tensor, strides: Sequence[tensor | constexpr]) -> None:
    from triton import language as tl

    size = base.dtype.element_ty.primitive_bitwidth // 8
    numbers = [("the base", semantic.cast(base, tl.int64))]
    for stride in strides[:-1]:
        given = semantic.cast(semantic.to_tensor(stride), tl.int64)
        numbers.append(("a stride", semantic.mul(given, semantic.to_tensor(size), False)))
    for what, number in numbers:
        rest = semantic.and_(number, semantic.to_tensor(ALIGNED - 1))
        aligned = semantic.equal(rest, semantic.to_tensor(0))
        semantic.builder.create_assert(aligned.handle, f"{MARK}{what} is a multiple of {ALIGNED} bytes")

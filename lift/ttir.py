"""MLIR generic form, as Triton prints it, to `lift.ir`: types, attributes, regions, source places."""

from __future__ import annotations

from .ir import Module

SENTINEL = "__force_generic__"


def parse(text: str) -> Module:
    """The module in `text` (MLIR generic form with locations). Raises Unsupported at what the grammar does not know."""
    raise NotImplementedError

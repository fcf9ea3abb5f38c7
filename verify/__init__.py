"""A lifted kernel in, a verdict out: what it computes, for every shape. `pipeline` is the whole way."""

from __future__ import annotations

from .pipeline import Examined, equal, examine, prove

__all__ = ["Examined", "equal", "examine", "prove"]

"""Launch arguments, grids and strides as terms over dims and scalars: fitted on some traces, checked on others."""

from __future__ import annotations

from .fit import fit

__all__ = ["fit"]

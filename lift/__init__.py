"""A Triton kernel in, its formula out: `from trilift import lift`, then `lift(case)`. `pipeline` is the whole way."""

from __future__ import annotations

if __name__ == "lift":
    raise ImportError("the package is called trilift: write `from trilift import case`")

import sys
from types import ModuleType
from typing import Any

from .cases.declaration import Case, case
from .errors import CaseError, NotLifted, TriliftError, Unsupported
from .pipeline import Lifted, lift

__all__ = ["Case", "CaseError", "Lifted", "NotLifted", "TriliftError", "Unsupported", "case", "lift"]


class _Stage(ModuleType):
    """This package, which can be called: `trilift.lift` is the stage and its function."""

    def __call__(self, *arguments: Any, **options: Any) -> Lifted:
        return lift(*arguments, **options)


sys.modules[__name__].__class__ = _Stage

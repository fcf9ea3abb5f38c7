"""What the case files of this folder share: packages imported at first use, and gradients of their wrappers.

A package is imported inside a case's host function, while the launch recorder is active: several of them look for a device
as soon as they are imported. A package that is not installed makes its own cases fail, with what to install.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import torch

from lift.errors import CaseError


class Package:
    """A module that is imported when an attribute is first asked for. `extra` is what pip installs it by, `prepare` runs before."""

    def __init__(self, name: str, extra: str, prepare: Callable[[], None] = lambda: None) -> None:
        self._name, self._extra, self._prepare = name, extra, prepare

    def __getattr__(self, attribute: str) -> Any:
        self._prepare()
        return getattr(_module(self._name, self._extra), attribute)


def _module(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or name).split(".")[0]
        raise CaseError(f"{missing} is not installed", why=f"{name} needs it", help=f"pip install trilift[{extra}]") from None


def gradients(f: Callable[..., Any], cotangents: Any, *inputs: torch.Tensor) -> Any:
    """Vector-Jacobian product: the gradients of `f(*inputs)` with respect to each input, for the cotangent of each output."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    found = torch.autograd.grad(f(*leaves), leaves, cotangents)
    return found[0] if len(found) == 1 else found


def environment(**variables: str) -> Callable[[], None]:
    """A `prepare` that sets environment variables which the package reads when it is imported."""
    return lambda: os.environ.update(variables)

"""What these case files share: packages, and gradients of their wrappers.

The files are loaded on the pretended device, which several packages look for when they are imported. A package that is
not installed makes its own cases fail, with what to install.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import torch

from trilift.lift.errors import CaseError


def package(
    name: str, extra: str, before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None
) -> Any:
    """A module, imported now, or else when an attribute is asked for, so that a missing one is an error of the cases
    that need it. `extra` is what pip installs it by; `before` runs before the import, `after` when it is there."""
    later = Later(name, extra, before, after)
    return vars(later).get("_module", later)


class Later:
    """A module that could not be imported, and is tried again when it is needed."""

    def __init__(self, name: str, extra: str, before: Callable[[], None], after: Callable[[], None]) -> None:
        self._name, self._extra, self._before, self._after = name, extra, before, after
        with contextlib.suppress(Exception):
            self._load()

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._load(), attribute)

    def _load(self) -> Any:
        if "_module" not in vars(self):
            self._before()
            self._module = _module(self._name, self._extra)
            self._after()
        return self._module


def _module(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or name).split(".")[0]
        help = f"pip install trilift[{extra}], or `make packages` for what must be installed without its pins"
        raise CaseError(f"{missing} is not installed", why=f"{name} needs it", help=help) from None


def gradients(f: Callable[..., Any], cotangents: Any, *inputs: torch.Tensor) -> Any:
    """Vector-Jacobian product: the gradients of `f(*inputs)` for each input, given the cotangent of each output."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    found = torch.autograd.grad(f(*leaves), leaves, cotangents)
    return found[0] if len(found) == 1 else found

"""The public face of a package: names that are imported from its modules when they are first asked for.

__all__, __getattr__ = face(__name__, {"run": "capture raised", "trace": "Launch Trace"})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def face(package: str, names: Mapping[str, str]) -> tuple[list[str], Callable[[str], object]]:
    """`__all__` and `__getattr__` of a package. `names`: module to the names that it gives. The package's `__getattr__`
    raises AttributeError for any other name."""
    module_of = {name: module for module, given in names.items() for name in given.split()}

    def get(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{module_of[name]}", package), name)

    return sorted(module_of), get

"""trilift: what a Triton kernel computes, proved for every shape.

    from trilift import audit, case, equal, lift, optimize, prove, write

    @case(x="f32[M,N]")
    def softmax(x): ...

    print(lift(softmax).outputs[0].formula)   # the formula of each output
    print(prove(softmax))                     # one Proof for each output

Nothing heavy (PyTorch, Triton, egglog, z3) is imported before one of these is called.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, the import of which takes longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from .api import audit, equal, optimize, prove, write
    from .lift import CaseError, NotLifted, TriliftError, Unsupported, case
    from .lift.pipeline import lift

__all__ = [
    "CaseError", "NotLifted", "TriliftError", "Unsupported", "__version__",
    "audit", "case", "equal", "lift", "optimize", "prove", "write",
]  # fmt: skip
_IN_API = ("audit", "equal", "optimize", "prove", "write")


def __getattr__(name: str) -> Any:
    """A name of `__all__`, imported at its first use. `lift` is the package of that name, which can be
    called."""
    from importlib import import_module

    if name in _IN_API:
        return getattr(import_module(".api", __name__), name)
    if name == "__version__":
        return import_module(".reports.base.version", __name__).VERSION
    if name == "lift":
        return import_module(".lift", __name__)
    if name in __all__:
        return getattr(import_module(".lift", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

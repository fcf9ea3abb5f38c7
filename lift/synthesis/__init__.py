"""A formula from pointwise specs: top-down decomposition, and enumeration for what remains.

In: the `Spec` of one output at several shapes. Out: the `Formula` that all of them are instances of, or NotLifted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .bottom_up import enumerate_formula as enumerate_formula
    from .instances import check_on_samples as check_on_samples
    from .output_axes import new_axis as new_axis
    from .top_down import synthesise as synthesise

__all__, __getattr__ = face(
    __name__,
    {
        "bottom_up": "enumerate_formula",
        "instances": "check_on_samples",
        "output_axes": "new_axis",
        "top_down": "synthesise",
    },
)

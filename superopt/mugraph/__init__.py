"""µGraphs: kernels that exchange tensors, their blocks and threads (Mirage, section 2).

The data between search and emission, with its JSON, its cost in a model of the GPU, and what its values need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .cost import H200 as H200
    from .cost import Hardware as Hardware
    from .cost import Model as Model
    from .graph import Dim as Dim
    from .graph import Kernel as Kernel
    from .graph import MuGraph as MuGraph
    from .graph import Operator as Operator
    from .graph import Tensor as Tensor
    from .json import from_json as from_json
    from .json import to_json as to_json

__all__, __getattr__ = face(
    __name__,
    {
        "cost": "H200 Hardware Model",
        "graph": "Dim Kernel MuGraph Operator Tensor",
        "json": "from_json to_json",
    },
)

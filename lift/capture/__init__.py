"""Recording of host functions: their kernel launches and torch operations, while they run on CPU tensors.

In: a case, and numbers for its dims. Out: a `Trace`, the events in order, on views of buffers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .case_files import by_file as by_file
    from .case_files import load as load
    from .run import capture as capture
    from .run import named_outputs as named_outputs
    from .run import raised as raised
    from .trace import Buffer as Buffer
    from .trace import Launch as Launch
    from .trace import TensorRef as TensorRef
    from .trace import TorchOp as TorchOp
    from .trace import Trace as Trace

__all__, __getattr__ = face(
    __name__,
    {
        "case_files": "by_file load",
        "run": "capture named_outputs raised",
        "trace": "Buffer Launch TensorRef TorchOp Trace",
    },
)

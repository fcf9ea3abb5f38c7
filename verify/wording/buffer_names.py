"""The name of a buffer in messages: the user's name for it."""

from __future__ import annotations

from trilift.lift.capture.trace import TensorRef, Trace


def tensor_name(trace: Trace, address: int) -> str:
    """The tensor that holds the byte: an input's or output's name, else the parameter of the first kernel it is passed
    to, else "a tensor of the host function"."""
    holds = lambda r: r.buffer.address <= address < r.buffer.address + r.buffer.nbytes  # noqa: E731
    for name, ref in (*trace.inputs.items(), *trace.outputs.items()):
        if holds(ref):
            return name
    for e in trace.launches:
        for name, x in e.args.items():
            if isinstance(x, TensorRef) and holds(x):
                return name
    return "a tensor of the host function"

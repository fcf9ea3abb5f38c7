"""Settings of cases against fresh captures: what the terms say at a shape that no term was found at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from operators import FILES, cases

from lift import term as T
from lift.capture import capture
from lift.evaluate import evaluate
from lift.fit import value
from lift.shapes import varied
from lift.stensor import deep
from lift.trace import Launch, TensorRef, TorchOp, Trace
from verify.antiunify import antiunify, instantiate
from verify.launches import settings
from verify.relations import agrees, environment
from verify.setting import HostOp, Setting, SymbolicLaunch, View

SAMPLE = {
    "relu", "attention_causal", "attention_decode", "add", "histogram", "dropout", "silu_mul", "embedding", "cat", "pad",
    "cross_entropy", "kl_div", "masked_fill", "linear_plain", "matmul", "matmul_descriptor", "max_pool", "adamw", "rope",
    "rms_norm_backward", "softmax1", "gram", "jacobi_step", "discounted_returns",
}  # fmt: skip


def fresh(c: Any, count: int = 2) -> list[Trace]:
    return [capture(c, d) for d in varied(c, count, seed=77, most=20_000)]


def numbers(c: Any, s: Setting, trace: Trace) -> dict[str, Any]:
    """Dims, scalars, strides, and the block sizes by their relations."""
    out: dict[str, Any] = dict(environment(c, trace))
    for _ in range(3):
        for f in s.facts:
            if f.op == "eq" and len(f.args) == 2:
                for a, b in (f.args, f.args[::-1]):
                    if a.op == "size" and a.attr not in out and (v := value(b, out)) is not None:
                        out[a.attr] = v
    for launch in trace.launches:
        out |= {n: v for n, v in launch.args.items() if n not in out and isinstance(v, int)}
    return out


def holding(c: Any, found: list[Setting], trace: Trace) -> list[tuple[Setting, dict[str, Any]]]:
    pairs = [(s, numbers(c, s, trace)) for s in found]
    return [(s, n) for s, n in pairs if all(value(f, n) is True for f in s.facts)]


def same_view(view: View, ref: TensorRef, n: dict[str, Any]) -> bool:
    def number(t: T.Term) -> Any:
        return value(t, n)

    strides = zip(view.strides, ref.strides, ref.shape, strict=True)
    start, rest = divmod(ref.address - ref.buffer.address, ref.itemsize)
    strided = any(s.op == "size" and str(s.attr).startswith("stride(") for s in view.buffer.length.walk())
    return (
        (number(view.offset), rest) == (start, 0)
        and tuple(map(number, view.shape)) == ref.shape
        and all(number(s) == k for s, k, size in strides if size > 1)
        and (strided or number(view.buffer.length) * ref.itemsize == ref.buffer.nbytes)
        and view.dtype == ref.dtype
    )


def check_launch(e: SymbolicLaunch, launch: Launch, n: dict[str, Any]) -> None:
    assert e.kernel == launch.kernel
    assert tuple(value(g, n) for g in e.grid) == launch.grid
    assert len(e.operands) == len(launch.operands) == len(e.module.entry.args)
    for x, seen in zip(e.operands, launch.operands, strict=True):
        if isinstance(seen, TensorRef):
            assert isinstance(x, View) and same_view(x, seen, n)
        else:
            assert isinstance(x, T.Term) and agrees(x, n, seen)
    same = instantiate(e.module, n), launch.module()
    antiunify(same, [{}, {}], {})  # raises Different where a number differs


def check_host(e: HostOp, op: TorchOp, n: dict[str, Any], held: dict[str, torch.Tensor]) -> None:
    """Random contents of all buffers through torch and through the terms."""
    tensors = {v.buffer.name: v for v in e.outputs}

    def view(v: View) -> torch.Tensor:
        flat = held[v.buffer.name]
        return flat.as_strided([value(s, n) for s in v.shape], [value(s, n) for s in v.strides], value(v.offset, n))

    arrays = {name: flat.numpy().copy() for name, flat in held.items()}
    for out, element in zip(e.outputs, e.values, strict=True):
        axes = tuple(T.Axis(f"k{d}", size) for d, size in enumerate(out.shape))
        with deep():
            term = element(tuple(T.axis(a) for a in axes))
        expected = evaluate(term, axes, arrays, n)
        held["expected"] = torch.from_numpy(np.array(expected))
    assert tensors and view is not None


def by_name(name: str) -> Any:
    return next(c for f in FILES for c in cases(f) if c.name == name)


@pytest.mark.parametrize("name", sorted(SAMPLE))
def test_terms_at_a_fresh_shape(name: str) -> None:
    c = by_name(name)
    found = settings(c, configs=1)
    checked = 0
    for trace in fresh(c):
        for s, n in holding(c, found, trace):
            seen = [e for e in trace.events if isinstance(e, Launch)]
            mine = [e for e in s.events if isinstance(e, SymbolicLaunch)]
            for e, launch in zip(mine, seen, strict=True):
                check_launch(e, launch, n)
            assert all(same_view(s.outputs[k], ref, n) for k, ref in trace.outputs.items())
            assert all(same_view(s.inputs[k], ref, n) for k, ref in trace.inputs.items())
            checked += 1
    assert checked

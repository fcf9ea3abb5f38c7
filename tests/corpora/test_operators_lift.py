"""Every operator of the corpus lifts, and its formula is the kernel at shapes of several blocks, where lifting saw one.

The kernel runs in float64; the formula is evaluated, and its printed PyTorch source is executed.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
from operators import FILES, SHAPES, cases, dims_of, names  # noqa: E402

LONG = SHAPES[-1]
NOT_IN_PYTORCH = {"dropout"}  # random numbers by seed and offset


@pytest.mark.parametrize("name", [f"{f.parent.name}/{f.stem}::{n}" for f in FILES for n in names(f)])
def test_formula_is_the_kernel(name: str) -> None:
    from trilift.lift import lift
    from trilift.lift.capture.run import capture
    from trilift.lift.errors import Unsupported
    from trilift.lift.language.evaluate import evaluate
    from trilift.lift.printers.torch_source import torch_source
    from trilift.lift.replay import check

    stem, case = name.split("::")
    c = next(x for f in FILES if f"{f.parent.name}/{f.stem}" == stem for x in cases(f) if x.name == case)
    lifted = lift(c)
    assert not [str(o.error) for o in lifted.outputs if o.error]
    assert not lifted.mismatches
    dims = dims_of(c, LONG)
    args = check.arguments(c, dims, seed=1)
    inputs = check.arrays(c, args)
    values = check.run_kernel(capture(c, dims), inputs).values
    shapes = {n: c.dims(n) for n in c.tensors}
    for o in lifted.outputs:
        expected = np.asarray(values[o.name], np.float64)
        assert close(evaluate(o.formula.term, o.formula.axes, inputs, dims), expected)
        if c.name in NOT_IN_PYTORCH:
            with pytest.raises(Unsupported, match="PyTorch"):
                torch_source(o.formula, shapes)
        else:
            source = torch_source(o.formula, shapes)
            assert close(executed(source, c.named(args) | dims), expected), source


def executed(source: str, values: dict[str, Any]) -> Any:
    """The result of the one function that the source defines; its parameters are named as in `values`."""
    scope: dict[str, Any] = {}
    exec(source, scope)
    fn = [v for v in scope.values() if inspect.isfunction(v)][-1]
    return fn(**{n: values[n] for n in inspect.signature(fn).parameters}).numpy()


def close(got: Any, expected: np.ndarray) -> bool:
    """Equal up to the f32 rounding of a kernel's constants."""
    got = np.asarray(got, np.float64)
    return got.shape == expected.shape and bool(np.allclose(got, expected, rtol=1e-5, atol=1e-5))

"""Which inputs may be minus infinity: the formula, which has an exponential or a maximum of them, then is a number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trilift.lift.cases.declaration import Spec
from trilift.verify.properties.records import Dims, Suite

if TYPE_CHECKING:
    import torch

    from .case_section import Compared

OPS = {"exp", "exp2", "max", "amax", "softmax", "log_softmax", "logsumexp", "cross_entropy"}
SHAPES = 3  # of those always tried
SEEDS = 3


def infinite(suite: Suite, compared: Sequence[Compared]) -> tuple[str, ...]:
    """The names of these inputs, () without any. Decided by computing with minus infinity, at some shapes."""
    found = [c for c in compared if c.output.formula is not None]
    if not any(t.op in OPS for c in found if c.output.formula is not None for t in c.output.formula.term.walk()):
        return ()
    reals = [n for n, s in suite.case.tensors.items() if _is_real(s)]
    alone = tuple(n for n in reals if _has_numbers(suite, found, (n,)))
    return alone if len(alone) < 2 or _has_numbers(suite, found, alone) else alone[:1]


def _is_real(s: Spec) -> bool:
    """Whether any real will do."""
    return s.is_float and not s.positive and s.low is None and s.high is None


def _has_numbers(suite: Suite, compared: Sequence[Compared], names: tuple[str, ...]) -> bool:
    """Whether no output is NaN, and each has finite elements beside those that change with these inputs."""
    shapes = sorted((d for d in suite.sizes.first if min(d.values(), default=1) > 0), key=lambda d: sum(d.values()))
    try:
        pairs = [p for d in shapes[-SHAPES:] for seed in range(SEEDS) for p in _values(suite, compared, names, d, seed)]
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        return False
    sound = all(not y.isnan().any() and bool(y.isfinite().any()) for _, y in pairs if y.is_floating_point())
    return bool(pairs) and sound and any(not x.equal(y) for x, y in pairs)


def _values(
    suite: Suite, compared: Sequence[Compared], names: tuple[str, ...], dims: Dims, seed: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The outputs without and with minus infinity in the inputs."""
    import numpy as np
    import torch

    from ...verify.runs.input_table import masked
    from .helpers import exact

    given = suite.case.named(suite.case.sample(dims, np.random.default_rng(seed)))
    plain = {n: exact(x) for n, x in given.items()}
    other = {n: masked(x, seed) if n in names else x for n, x in plain.items()}
    for c in compared:
        scope: dict[str, Any] = {"torch": torch, "math": math}
        exec(c.formula.source, scope)
        numbers = {n: dims[n] for n in c.formula.numbers}
        one, two = (
            torch.as_tensor(scope[c.formula.name](*(x[n] for n in c.formula.inputs), **numbers)) for x in (plain, other)
        )
        yield one, two

"""Arguments at which the numbers of an emitted file must hold up.

Equal elements, zeros, and numbers of very different sizes: each tensor in turn is made as large, as small or as uneven
as its type and the outputs allow. An intermediate that is narrowed to 16 bits overflows or underflows there although
the result is an ordinary number, as (x g) / |x| does at x = 30000, g = 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from trilift.lift.cases.declaration import Case
from trilift.lift.language.case_spec import Spec

if TYPE_CHECKING:
    import torch

Dims = Mapping[str, int | float]
Arguments = dict[str, Any]
Holds = Callable[[float], bool]  # of the largest element of the outputs
EXPONENTS = (14, 11, 8, 5, 2)  # of the factors 2 ** k that are tried for a tensor; the first that is possible is taken
UNEVEN_SHARE = 8  # one of so many elements is made larger
SMALLEST_OUTPUT = 2.0**-10  # f16 has all its digits there


@dataclass(frozen=True, slots=True)
class Change:
    """A way to change a tensor: `factor(k, shape, rng)` is what it is multiplied with."""

    name: str
    sign: int
    uneven: bool = False

    def applied(self, x: torch.Tensor, k: int, rng: np.random.Generator) -> torch.Tensor:
        """x with all or some elements multiplied by 2 ** (sign k)."""
        import torch

        chosen = rng.integers(0, UNEVEN_SHARE, tuple(x.shape)) == 0 if self.uneven else np.True_
        return x * torch.from_numpy(np.where(chosen, 2.0 ** (self.sign * k), 1.0)).to(x.dtype)

    def possible(self, largest: float, limit: float) -> bool:
        """Whether the outputs still are numbers that their type has."""
        return largest <= limit if self.sign > 0 else largest >= SMALLEST_OUTPUT


CHANGES = (Change("largest", 1), Change("outlier", 1, uneven=True), Change("smallest", -1))
EXTREME = frozenset(c.name for c in CHANGES)  # kinds at which arithmetic in 32 bits may fail as well
LARGE = (4, 3, 2, 1)  # doublings of all tensors: products of two of them are still numbers in 16 bits


def trial_inputs(case: Case, dims: Dims, seed: int) -> Iterator[tuple[str, Arguments]]:
    """Arguments of each kind, with its name."""
    import torch

    def made(change: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
        args = case.sample(dims, np.random.default_rng([seed, 11]))
        return {n: change(x) if real(x) else x for n, x in args.items()}

    yield "random", made(lambda x: x)
    yield "tiny", made(lambda x: x * 1e-2)
    yield "equal", made(lambda x: torch.full_like(x, float(x.flatten()[0]) if x.numel() else 0.0))
    yield "zero", made(torch.zeros_like)
    yield from (("large", args) for args in islice(enlarged(case, made), 1))
    free = [n for n, s in case.params.items() if isinstance(s, Spec) and _free(s)]
    for change in CHANGES:
        for names in dict.fromkeys((tuple(free), tuple(reversed(free)))):
            yield change.name, changed(case, made(lambda x: x), names, change, seed)


def enlarged(case: Case, made: Callable[..., Arguments]) -> Iterator[Arguments]:
    """All tensors larger, by as much as the outputs allow."""
    import torch

    for k in LARGE:
        args = made(lambda x, k=k: x * 2.0**k)
        tensors = [x for x in args.values() if real(x)]
        if all(bool(torch.isfinite(x).all()) for x in tensors):
            limit = min((float(torch.finfo(x.dtype).max) for x in tensors), default=0.0)
            if _largest_output(case, args) <= limit:
                yield args


def changed(case: Case, args: Arguments, names: Sequence[str], change: Change, seed: int) -> Arguments:
    """The arguments with these tensors changed, each as much as those before it leave possible."""
    import torch

    for n in names:
        limit = float(torch.finfo(args[n].dtype).max)
        for k in EXPONENTS:
            tried = {**args, n: change.applied(args[n], k, np.random.default_rng([seed, 13]))}
            if torch.isfinite(tried[n]).all() and change.possible(_largest_output(case, tried), limit):
                args = tried
                break
    return args


def _largest_output(case: Case, args: Arguments) -> float:
    """The largest element of what the reference returns or changes."""
    import torch

    exact, left = results(case, case.reference.fn, converted(args, torch.float64))
    before = case.named(args)
    written = [x for n, x in left.items() if not torch.equal(x, before[n].to(x.dtype))]
    return max((float(e.abs().max()) for e in (*exact, *written) if e.numel()), default=0.0)


def _free(s: Spec) -> bool:
    """Whether its elements may be any real numbers of a sign."""
    return bool(s.shape) and s.is_float and s.low is None and s.high is None


def real(x: object) -> TypeGuard[torch.Tensor]:
    """Whether it is a tensor of floating-point numbers."""
    import torch

    return isinstance(x, torch.Tensor) and x.is_floating_point()


def results(
    case: Case, fn: Callable[..., object] | None, args: Mapping[str, Any]
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """The outputs of a function for these arguments, and the tensors among them as it leaves them."""
    assert fn is not None
    returned = fn(**args)
    outputs = [] if returned is None else list(returned) if isinstance(returned, (tuple, list)) else [returned]
    return outputs, case.named(args)


def converted(args: Mapping[str, Any], dtype: torch.dtype) -> Arguments:
    """Copies of the arguments, the real ones of this type."""
    import torch

    def copied(x: torch.Tensor) -> torch.Tensor:
        return x.to(dtype, copy=True) if x.is_floating_point() else x.clone()

    return {n: copied(x) if isinstance(x, torch.Tensor) else x for n, x in args.items()}

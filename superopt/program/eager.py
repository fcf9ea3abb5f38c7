"""The operators that eager PyTorch runs for a function: each that moves or computes, with its bytes and flops.

The function is called once on tensors without elements; views move nothing. An operator that no one knows the flops
of counts its bytes alone, so that the numbers are the least that eager PyTorch does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trilift.lift.cases.declaration import Case, torch_dtype
from trilift.lift.language.case_spec import Spec
from trilift.lift.language.evaluate import number

if TYPE_CHECKING:
    import torch
    from torch._ops import OpOverload


@dataclass(frozen=True, slots=True)
class EagerOperator:
    """One call: `moved` bytes that it reads and writes, each once, and floating-point operations of its products."""

    name: str
    moved: int
    flops: int


def eager_operators(
    case: Case, fn: Callable[..., object], dims: Mapping[str, int | float]
) -> tuple[EagerOperator, ...]:
    """The operators in the order of their calls. Raises whatever the function raises for tensors without elements."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    found: list[EagerOperator] = []

    class Listening(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self,
            f: OpOverload,
            types: object,
            args: tuple[object, ...] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:
            named = kwargs or {}
            out = f(*args, **named)
            if not f.is_view and f.namespace == "aten":
                count = flop_registry.get(f.overloadpacket)
                flops = int(count(*args, **named, out_val=out)) if count else 0
                found.append(EagerOperator(str(f.overloadpacket), _bytes((args, named, out)), flops))
            return out

    attention = torch.nn.functional.scaled_dot_product_attention
    one = (torch.rms_norm, torch.nn.functional.rms_norm, attention)  # kernels of PyTorch's own on a GPU

    class Together(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, f: Callable[..., object], types: object, args: tuple[object, ...] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:  # fmt: skip
            start, named = len(found), kwargs or {}
            out = f(*args, **named)
            if f in one:
                flops = _attention_flops(*args, **named) if f is attention else sum(o.flops for o in found[start:])
                found[start:] = [EagerOperator(f.__name__, _bytes((args, named, out)), flops)]
            return out

    with FakeTensorMode(), Listening(), Together(), torch.no_grad():
        args = case.built(dims, lambda s: _without_elements(s, dims))
        found.clear()
        fn(**args)
    return tuple(o for o in found if o.moved)


def _without_elements(s: Spec, dims: Mapping[str, int | float]) -> torch.Tensor:
    import torch

    return torch.empty(tuple(number(e, dims) for e in s.shape or ()), dtype=torch_dtype(s.dtype))


def _attention_flops(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: object, is_causal: object = False, **__: object
) -> int:
    """Of both products of an attention; of a causal one, of half of the scores."""
    from torch.utils.flop_counter import sdpa_flop_count

    return int(sdpa_flop_count(query.shape, key.shape, value.shape)) // (1 + bool(is_causal))


def _bytes(values: object) -> int:
    """Of all tensors among the arguments and results of an operator; of an expanded one, what is stored."""
    import torch
    from torch.utils._pytree import tree_leaves

    every = {id(x): x for x in tree_leaves(values) if isinstance(x, torch.Tensor)}
    return sum(min(x.numel() * x.element_size(), x.untyped_storage().nbytes()) for x in every.values())

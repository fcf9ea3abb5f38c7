"""Where a tensor lies, of the tensors that a host function puts on the CPU by name.

All tensors of a run are on the CPU and claim to be on cuda:0. One that `device="cpu"` makes or that `.cpu()` gives is
on the CPU of the user's machine too: a kernel cannot be given it. One that is made without a device is there unless
`torch.set_default_device` says otherwise, which a file of kernels rarely does for itself: that is assumed, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch

CPU = torch.device("cpu")
ANSWERS: dict[object, object] = {
    torch.Tensor.device.__get__: CPU,
    torch.Tensor.is_cuda.__get__: False,
    torch.Tensor.is_cpu.__get__: True,
    torch.Tensor.get_device: -1,
}  # of a tensor on the CPU
METHODS = {"cpu": "cpu", "cuda": "cuda", "pin_memory": "cuda"}  # a kernel reads pinned memory
MOVES = (*METHODS, "to")  # those that give a copy, of a tensor that is somewhere else
UNFINISHED = ("cpu", "cuda", "to", "copy_", "_foreach_copy_")  # copies that take non_blocking
FACTORIES = (
    torch.empty, torch.zeros, torch.ones, torch.full, torch.arange, torch.range, torch.tensor, torch.rand, torch.randn,
    torch.randint, torch.randperm, torch.eye, torch.linspace, torch.logspace, torch.empty_strided, torch.scalar_tensor,
    torch.from_numpy, torch.as_tensor,
)  # fmt: skip
BY_NUMBER = "the GPU is {}, as the host function names it"
BY_DEFAULT = "the GPU is PyTorch's default device: the host function makes a tensor without a device"


def wanted(name: str, args: tuple[object, ...], options: Mapping[str, object]) -> str:
    """The kind of device that a call of PyTorch's names, "cpu" or "cuda"; empty where it names none."""
    if options.get("pin_memory"):
        return "cuda"
    given = [options.get("device"), *(args[1:2] if name == "to" else ())]
    found = next((str(d) for d in given if isinstance(d, (str, torch.device))), "")
    return METHODS.get(name) or found.partition(":")[0]


def named_gpu(name: str, args: tuple[object, ...], options: Mapping[str, object]) -> str:
    """cuda:1, of a call that names a GPU by its number; empty where it names none. Of a tensor's own device the number
    is 0 here."""
    given = [options.get("device"), *(args[1:2] if name in ("to", "cuda") else ())]
    for d in given:
        index = d.index if isinstance(d, torch.device) and d.type == "cuda" else d
        if isinstance(index, int) and not isinstance(index, bool) and index > 0:
            return f"cuda:{index}"
        if isinstance(d, str) and d.startswith("cuda:"):
            return d
    return ""


def is_unfinished(name: str, args: tuple[object, ...], options: Mapping[str, object]) -> bool:
    """Whether a call copies with non_blocking=True, so that the host does not wait."""
    flags = [a for a in args[1:] if isinstance(a, bool)]
    return name in UNFINISHED and bool(options.get("non_blocking", flags[0] if flags else False))


def copies(
    name: str, args: tuple[object, ...], options: Mapping[str, object], result: object
) -> Iterator[tuple[object, object]]:
    """The source and the target of each copy of a call that takes non_blocking."""
    given = (*args[1:], options.get("other"), options.get("src"))
    if name == "copy_":
        yield given[0], result
    elif name == "_foreach_copy_":
        yield from zip(_tensors(given[0]), _tensors(args[0]), strict=False)
    elif name in UNFINISHED:
        yield args[0], result


def is_by_default(func: object, args: tuple[object, ...]) -> bool:
    """Whether a call that names no device makes a tensor where PyTorch's default device is, which is the CPU now."""
    return func in FACTORIES and not isinstance(next(iter(args), None), torch.Tensor) and _default() == "cpu"


def _default() -> str:
    return str(torch.get_default_device().type)


def _tensors(x: object) -> Iterator[torch.Tensor]:
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for e in x:
            yield from _tensors(e)


class OnCPU:
    """The storages on the CPU, by the key that `key` gives for a tensor. The tensors are kept, so that no other storage
    gets the same key."""

    def __init__(self, key: Callable[[torch.Tensor], int]) -> None:
        self.key, self.kept = key, dict[int, torch.Tensor]()

    def has(self, t: torch.Tensor) -> bool:
        return bool(self.kept) and t.layout is torch.strided and self.key(t) in self.kept

    def moved(self, name: str, device: str, given: object, result: object) -> object:
        """The result of a call that names a device: a copy, where a tensor on one is moved to the other."""
        if not isinstance(result, torch.Tensor) or result.layout is not torch.strided:
            return result
        moves = name in MOVES and isinstance(given, torch.Tensor) and self.has(given) != (device == "cpu")
        if moves and self.key(given) == self.key(result):
            result = result.clone()
        if device == "cpu":
            self.put(result)
        else:
            self.leave(result)
        return result

    def leave(self, result: object) -> None:
        """The tensor is somewhere else from now on."""
        if isinstance(result, torch.Tensor) and result.layout is torch.strided:
            self.kept.pop(self.key(result), None)

    def put(self, t: torch.Tensor) -> None:
        """The tensor is there from now on."""
        self.kept[self.key(t)] = t

    def follow(self, args: tuple[object, ...], results: tuple[torch.Tensor, ...]) -> None:
        """The results of an operation are where its first tensor is."""
        first = next(_tensors(args), None) if self.kept else None
        if first is not None and self.has(first) and (first.ndim or all(map(self.has, _tensors(args)))):
            self.kept.update((self.key(t), t) for t in results if t.layout is torch.strided)

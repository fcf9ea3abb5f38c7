"""Inputs of a run, drawn from its seed: part of `interpreter_server.py`, which is a script, and of `prover`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import torch

INTEGERS = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8}
POISON = 0x5B  # each byte of memory that nobody wrote
REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, 100.0, -100.0, 0.25, -0.0)


class Planned(TypedDict, total=False):
    """A run: numbers of sizes and scalars, how values are drawn; `values` and `strides`: those of tensors that are
    given."""

    numbers: dict[str, int | float]
    style: str
    seed: int
    values: dict[str, list[object]]
    strides: dict[str, list[int]]


Declared = tuple[
    str, str, Sequence[str], str, bool
]  # name, dtype, dims, what its values are below, whether it has any strides


def values(dtype: str, shape: tuple[int, ...], below: int | None, style: str, rng: np.random.Generator) -> torch.Tensor:
    """An input: "zero", "small" numbers, "edge"s of the dtype, its "top", or "random"."""
    if below is not None:
        return torch.from_numpy(np.asarray(rng.integers(0, below, shape))).to(INTEGERS[dtype])
    if dtype == "bool":
        return torch.from_numpy(np.asarray(rng.integers(0, 2, shape))).to(torch.bool)
    if dtype not in INTEGERS:
        drawn = {"zero": np.zeros(shape), "edge": rng.choice(REALS, shape), "top": np.full(shape, 2.0),
                 "small": rng.integers(-8, 9, shape) / 4, "random": rng.standard_normal(shape)}[style]  # fmt: skip
        return torch.from_numpy(np.asarray(drawn, np.float64))
    info = torch.iinfo(INTEGERS[dtype])
    low, high = info.min, info.max
    edges = np.array([low, low + 1, high, high - 1, 0, 1, 2, high // 2, high // 2 + 1, max(low, -1)], object)
    drawn = {"zero": lambda: np.zeros(shape, np.int64), "edge": lambda: rng.choice(edges, shape).astype(np.int64),
             "top": lambda: np.full(shape, high), "small": lambda: rng.integers(max(low, -3), 4, shape),
             "random": lambda: rng.integers(low, high, shape, endpoint=True)}[style]()  # fmt: skip
    return torch.from_numpy(np.asarray(drawn)).to(INTEGERS[dtype])


def tensors(inputs: Sequence[Declared], run: Planned) -> dict[str, torch.Tensor]:
    """The tensors of one run; `values` of the run are those that are given."""
    rng = np.random.default_rng(run["seed"])
    given, numbers = run.get("values", {}), run["numbers"]
    size = lambda d: int(d) if d.isdigit() else int(numbers[d])  # noqa: E731
    found = {}
    for name, dtype, dims, below, strided in inputs:
        shape = tuple(map(size, dims))
        if name in given:
            kind = INTEGERS.get(dtype, torch.bool if dtype == "bool" else torch.float64)
            found[name] = laid(torch.tensor(given[name], dtype=kind).reshape(shape), run.get("strides", {}).get(name))
            continue
        found[name] = values(dtype, shape, size(below) if below else None, run["style"], rng)
        if strided:
            found[name] = spread(found[name], run["seed"])
    return found


def gap(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Memory of so many elements that nobody wrote."""
    if dtype == torch.bool:
        return torch.ones(count, dtype=dtype)
    return torch.full((count * dtype.itemsize,), POISON, dtype=torch.uint8).view(dtype)


def laid(x: torch.Tensor, strides: Sequence[int] | None) -> torch.Tensor:
    """The same elements with these strides, in memory that ends with the last of them."""
    if strides is None or x.numel() == 0:
        return x
    last = sum((n - 1) * s for n, s in zip(x.shape, strides, strict=True))
    return torch.as_strided(gap(last + 1, x.dtype), x.shape, strides).copy_(x)


def spread(x: torch.Tensor, seed: int) -> torch.Tensor:
    """The same elements with other strides: dense, in padded rows, in every other column, or by columns."""
    rows, columns = x.shape
    shape, pick = [
        ((rows, columns), lambda t: t),
        ((rows, columns + 3), lambda t: t[:, :columns]),
        ((rows, 2 * columns), lambda t: t[:, ::2]),
        ((columns, rows), lambda t: t.T),
    ][seed % 4]
    out: torch.Tensor = pick(gap(shape[0] * shape[1], x.dtype).reshape(shape))
    return out.copy_(x)

"""One semantics of machine integers: readings of PyTorch's operators against PyTorch, the interpreter of kernels
against Triton's, for all pairs of 8 bits, and at the edges and random numbers of 16, 32 and 64."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kernels_integers
import numpy as np
import pytest
import torch
from triton.runtime.interpreter import InterpreterBuilder

from trilift.lift.capture.run import capture
from trilift.lift.cases.declaration import DTYPES, make_case, torch_dtype
from trilift.lift.language.evaluate import evaluate
from trilift.lift.pytorch.machine_integers import Fits, Integers
from trilift.lift.pytorch.read import Reading, reading
from trilift.lift.replay.check import run_kernel
from trilift.lift.terms import construct as T
from trilift.lift.terms.machine_ranges import MachineRanges, limits

N = T.size("N")
NARROW, WIDE = ("i8", "u8"), ("i16", "i32", "i64")
NUMBERS = 6  # random ones beside the edges

# ---- PyTorch -------------------------------------------------------------------------------------------------------

BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "alpha": lambda x, y: torch.add(x, y, alpha=3), "addcmul": lambda x, y: torch.addcmul(x, x, y, value=5),
    "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y,
    "min": lambda x, y: torch.minimum(x, y), "max": lambda x, y: torch.maximum(x, y),
    "less": lambda x, y: x < y, "equal": lambda x, y: x == y,
    "sum > 0": lambda x, y: x + y > 0, "sum // 3": lambda x, y: (x + y) // 3, "chain": lambda x, y: (x * y - x) * 7 + y,
    "where": lambda x, y: torch.where(x > y, x - y, y * 2),
}  # fmt: skip
DIVIDING: dict[str, Callable[..., Any]] = {
    "floor": lambda x, y: x // y, "mod": lambda x, y: x % y, "fmod": lambda x, y: torch.fmod(x, y),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}  # fmt: skip
SHIFTING: dict[str, Callable[..., Any]] = {"shl": lambda x, y: x << y, "shr": lambda x, y: x >> y}
UNARY: dict[str, Callable[..., Any]] = {
    "neg": lambda x: -x, "abs": lambda x: x.abs(), "not": lambda x: ~x, "sign": lambda x: x.sign(),
    "square": lambda x: x.square(),
    "div 300": lambda x: torch.div(x, 300, rounding_mode="floor"),
    "cube": lambda x: x**3, "plus 300": lambda x: x + 300, "300 minus": lambda x: 300 - x,
    "below 300": lambda x: x < 300,
    "is 261": lambda x: x == 261, "mod 300": lambda x: x % 300, "shl 9": lambda x: x << 9, "shr 9": lambda x: x >> 9,
    "shl 40": lambda x: x << 40, "shr 70": lambda x: x >> 70, "clamp": lambda x: (x + 100).clamp(3, 50),
    "cumsum": lambda x: x.cumsum(0, dtype=x.dtype), "total": lambda x: x.sum(dtype=x.dtype) + x,
}  # fmt: skip


def numbers(dtype: str, seed: int = 0) -> list[int]:
    """All numbers of 8 bits; the edges and some others of wider ones."""
    low, high = limits(dtype)
    if dtype in NARROW:
        return list(range(low, high))
    rng = np.random.default_rng(seed)
    edges = [low, low + 1, -1, 0, 1, high - 2, high - 1, 300, 1 << (int(dtype[1:]) // 2)]
    return [*edges, *(int(v) for v in rng.integers(low, high - 1, NUMBERS, endpoint=True))]


def pairs(dtype: str) -> tuple[list[int], list[int]]:
    every = numbers(dtype)
    return [a for a in every for _ in every], [b for _ in every for b in every]


def read_as(fn: Callable[..., Any], dtype: str, *names: str) -> Reading:
    return reading(fn, dict.fromkeys(names, (dtype, (N,))))


def folded(t: T.Term, given: dict[str, int]) -> Any:
    """The value of a term over elements: constants are folded exactly."""
    value = T.rewrite(t, lambda s: T.const(given[s.attr]) if s.op == "read" else None)
    assert value.is_const, value
    return value.attr


def held(o: Fits, value: int) -> bool:
    return value != 0 if o.is_divisor else o.low <= value < o.high


def agree(fn: Callable[..., Any], dtype: str, *columns: list[int]) -> int:
    """The formula is what PyTorch computes wherever what is owed holds; how often that was."""
    names = ("x", "y")[: len(columns)]
    found = read_as(fn, dtype, *names)
    tensors = [torch.tensor(c, dtype=torch_dtype(dtype)) for c in columns]
    expected = fn(**dict(zip(names, tensors, strict=True))).long().tolist()
    formula = found.formulas[0].term
    compared = 0
    for k, e in enumerate(expected):
        given = {n: c[k] for n, c in zip(names, columns, strict=True)}
        if all(held(o, folded(o.term, given)) for o in found.owed):
            compared += 1
            assert int(folded(formula, given)) == e, (given, formula)
    return compared


def agree_everywhere(fn: Callable[..., Any], dtype: str, *columns: list[int]) -> None:
    """The formula is what PyTorch computes on all these numbers, and nothing is owed."""
    names = ("x", "y")[: len(columns)]
    found = read_as(fn, dtype, *names)
    arrays = {n: np.array(c, np.int64) for n, c in zip(names, columns, strict=True)}
    tensors = {n: torch.from_numpy(a).to(torch_dtype(dtype)) for n, a in arrays.items()}
    got = evaluate(found.formulas[0].term, found.formulas[0].axes, arrays, {"N": len(columns[0])})
    assert all(o.is_divisor for o in found.owed) and np.array_equal(
        np.asarray(got).astype(np.int64), fn(**tensors).long().numpy()
    )


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_integers_wrap_for_all_pairs(dtype: str) -> None:
    x, y = pairs(dtype)
    for fn in BINARY.values():
        agree_everywhere(fn, dtype, x, y)
    low, high = limits(dtype)
    divided = [(a, b) for a, b in zip(x, y, strict=True) if b and (a, b) != (low, -1)]
    for fn in DIVIDING.values():
        agree_everywhere(fn, dtype, *map(list, zip(*divided, strict=True)))
    for fn in UNARY.values():
        agree_everywhere(fn, dtype, list(range(low, high)))


@pytest.mark.parametrize("dtype", WIDE)
def test_wider_integers_are_exact_where_what_is_owed_holds(dtype: str) -> None:
    x, y = pairs(dtype)
    low, _ = limits(dtype)
    divided = [(a, b) for a, b in zip(x, y, strict=True) if b and (a, b) != (low, -1)]
    for fn in BINARY.values():
        assert agree(fn, dtype, x, y)
    for fn in DIVIDING.values():
        assert agree(fn, dtype, *map(list, zip(*divided, strict=True))) == len(divided)
    for name, fn in UNARY.items():
        if name not in ("cumsum", "total"):
            assert agree(fn, dtype, numbers(dtype))


@pytest.mark.parametrize("dtype", (*NARROW, *WIDE))
def test_shifts_owe_an_amount_within_the_width(dtype: str) -> None:
    amounts = [k for k in (-1, 0, 1, 7, 8, 15, 31, 33) if limits(dtype)[0] <= k]
    x, y = ([a for a in numbers(dtype)[::5] for _ in amounts], [k for _ in numbers(dtype)[::5] for k in amounts])
    for fn in SHIFTING.values():
        assert agree(fn, dtype, x, y)
        assert read_as(fn, dtype, "x", "y").owed[0].low == 0


@pytest.mark.parametrize("source", (*NARROW, *WIDE))
@pytest.mark.parametrize("target", (*NARROW, *WIDE, "bool"))
def test_casts_between_all_types(source: str, target: str) -> None:
    assert agree(lambda x: x.to(torch_dtype(target)), source, numbers(source))


def test_a_real_must_fit() -> None:
    (owed,) = reading(lambda x: x.to(torch.int8), {"x": ("f32", (N,))}).owed
    assert (owed.low, owed.high) == (-128, 128)


def test_intervals_hold() -> None:
    """Every interval of the table contains what the operation gives, at the corners and within."""
    ranges = MachineRanges({"x": (-7, 5), "y": (-3, 6), "z": (2, 4)})
    reads = {n: T.read(n, (T.const(0),), T.INT) for n in "xyz"}
    for op, names in {"bitand": "xy", "bitor": "xy", "bitxor": "xy", "floordiv": "xz", "mod": "xz", "truncdiv": "xz",
                      "truncmod": "xz", "shr": "xz", "abs": "x", "sign": "x", "mul": "xy"}.items():  # fmt: skip
        t = T.make(op, *(reads[n] for n in names))
        low, high = ranges.of(t)
        spans = [range(int(ranges.of(reads[n])[0]), int(ranges.of(reads[n])[1]) + 1) for n in names]
        for values in np.stack(np.meshgrid(*spans), -1).reshape(-1, len(spans)).tolist():
            assert low <= folded(t, dict(zip(names, values, strict=True))) <= high, (op, values)


def test_a_range_that_just_fits_needs_nothing_and_one_beyond_wraps() -> None:
    """At both ends of i8 and u8: x, and x + 1, x - 1, -x, which leave the dtype for one x."""
    x, nowhere = T.read("x", (T.const(0),), T.INT), lambda: None
    for dtype, inside, outside in [
        ("i8", (x, T.sub(-1, x)), (T.add(x, 1), T.sub(x, 1), T.mul(-1, x))),
        ("u8", (x, T.sub(255, x)), (T.add(x, 1), T.sub(x, 1), T.mul(-1, x))),
    ]:
        low, high = limits(dtype)
        integers = Integers({"x": (low, high - 1)})
        assert all(integers.within(t, low, high) and integers.number(t, dtype, nowhere) is t for t in inside)
        for t in outside:
            assert not integers.within(t, low, high)
            made = integers.number(t, dtype, nowhere)
            for v in (low, low + 1, 0, high - 2, high - 1):
                assert folded(made, {"x": v}) == (folded(t, {"x": v}) - low) % 256 + low, (dtype, t, v)
    wide = Integers({"x": (-(1 << 31), (1 << 31) - 1)})
    assert wide.number(T.add(x, 1), "i32", nowhere) is T.add(x, 1) and [f.high for f in wide.owed.values()] == [1 << 31]


# ---- Triton --------------------------------------------------------------------------------------------------------

KERNEL = (
    "add",
    "sub",
    "mul",
    "and",
    "or",
    "xor",
    "min",
    "max",
    "neg",
    "abs",
    "not",
    "less",
    "div",
    "mod",
    "shl",
    "shr",
)
SCRIPT = """
import sys, numpy as np, torch, kernels_integers as k
given = np.load(sys.argv[1])
out = {}
for key in given.files:
    if not key.endswith(".x"):
        continue
    op, source, target = key[:-2].split(".")
    x, y = (torch.from_numpy(given[f"{key[:-2]}.{n}"]) for n in "xy")
    block = 1 << (len(x) - 1).bit_length()
    out[key[:-2]] = k.run(x, y, op, getattr(torch, target), block).numpy()
np.savez(sys.argv[2], **out)
"""
# Triton's own interpreter raises at ~x of an unsigned x before 3.9
INVERTS_UNSIGNED = "unsignedinteger" in inspect.getsource(InterpreterBuilder.get_all_ones_value)


def questions() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """op.source.target -> operands: arithmetic in one type, casts between two."""
    out = {}
    types = (*NARROW, *WIDE)
    for dtype in types:
        x, y = (np.array(c, DTYPES[dtype]) for c in pairs(dtype))
        low, bits = limits(dtype)[0], int(dtype[1:])
        for op in KERNEL:
            if op == "not" and dtype.startswith("u") and not INVERTS_UNSIGNED:
                continue
            kept = np.ones(len(x), bool)
            if op in ("div", "mod"):
                kept = (y != 0) & ~((x == low) & (y.astype(np.int64) == -1))
            if op in ("shl", "shr"):
                kept = (y >= 0) & (y.astype(np.int64) < bits)
            target = "int8" if op == "less" else DTYPES[dtype]
            out[f"{op}.{DTYPES[dtype]}.{target}"] = x[kept], y[kept]
        every = np.array(numbers(dtype), DTYPES[dtype])
        for target in types:
            out[f"first.{DTYPES[dtype]}.{DTYPES[target]}"] = every, every
    return out


def test_kernels_compute_what_triton_s_interpreter_does(tmp_path: Path) -> None:
    asked = questions()
    np.savez(tmp_path / "in.npz", **{f"{k}.{n}": v for k, xy in asked.items() for n, v in zip("xy", xy, strict=True)})
    folder = str(Path(kernels_integers.__file__).parent)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": folder}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "in.npz"), str(tmp_path / "out.npz")]
    subprocess.run(command, check=True, env=environment, timeout=600)
    theirs = np.load(tmp_path / "out.npz")
    short = {long: name for name, long in DTYPES.items()}
    for key, (x, y) in asked.items():
        op, source, target = key.split(".")
        block = 1 << (len(x) - 1).bit_length()
        fn = lambda x, y, op=op, target=target, block=block: kernels_integers.run(  # noqa: E731
            x, y, op, getattr(torch, target), block
        )
        case = make_case(op, fn, {"x": f"{short[source]}[N]", "y": f"{short[source]}[N]"})
        ours = run_kernel(capture(case, {"N": len(x)}), {"x": x, "y": y}).value("out")
        assert np.array_equal(ours.astype(np.int64), theirs[key].astype(np.int64)), key

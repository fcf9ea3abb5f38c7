"""Runs case files in Triton's own interpreter and compares them with their references: a script of its own, which
imports nothing of ours, and answers one line of JSON with another.

    {"source", "name", "inputs": [[name, dtype, dims, below]], "scalars": [name], "runs": [{"numbers", "style", "seed"}]}
    -> {"runs": [["same"|"differs"|"error"|"skipped", detail]], "error": ...}

Every request runs in a forked child, as a wrong kernel may do anything. Accesses must lie in a tensor, masked lanes
without a value and memory that was not written hold poison, and programs of one launch must not meet.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import tempfile
import types
import warnings
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton
import triton.language as tl
import triton.runtime.interpreter as interpreter

LIMIT = 10.0  # seconds of the processor for one request
POISON = 0x5B
TRACKED = 40_000  # elements of a launch whose programs are told apart
INTEGERS = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8}
REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, 100.0, -100.0, 0.25, -0.0)
EMPTY, ZEROS = torch.empty, torch.zeros


class Wrong(Exception):
    """What a kernel must not do."""


# ---- memory ----------------------------------------------------------------------------------------------------------


class Memory:
    """The tensors that a kernel may touch, and which program wrote what."""

    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []
        self.program: Any = None
        self.written: dict[int, tuple[Any, Any]] = {}
        self.read: dict[int, Any] = {}

    def add(self, x: torch.Tensor) -> torch.Tensor:
        self.kept.append(x)
        return x

    def launch(self) -> None:
        self.written, self.read = {}, {}

    def check(self, addresses: np.ndarray, size: int, what: str) -> None:
        found = sorted((t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()) for t in self.kept if t.numel())
        starts, ends = (np.array([f[k] for f in found] or [0], np.uint64) for k in (0, 1))
        at = np.searchsorted(starts, addresses, "right").astype(np.int64) - 1
        if (at < 0).any() or (addresses + np.uint64(size) > ends[np.maximum(at, 0)]).any():
            raise Wrong(f"{what} out of bounds")

    def stored(self, addresses: np.ndarray, values: np.ndarray) -> None:
        me = interpreter.interpreter_builder.grid_idx
        for a, v in zip(addresses.tolist(), values.tolist(), strict=True):
            if (a in self.written and self.written[a][0] != me and self.written[a][1] != v) or self.read.get(a, me) != me:
                raise Wrong("programs meet at a store")
            if len(self.written) < TRACKED:
                self.written[a] = (me, v)

    def loaded(self, addresses: np.ndarray) -> None:
        me = interpreter.interpreter_builder.grid_idx
        for a in addresses.tolist():
            if a in self.written and self.written[a][0] != me:
                raise Wrong("programs meet at a load")
            if len(self.read) < TRACKED:
                self.read[a] = me


MEMORY = Memory()


class Guarded:
    """Triton's interpreter of accesses, with checks."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def load(self, pointers: np.ndarray, mask: np.ndarray, other: np.ndarray, dtype: Any) -> np.ndarray:
        seen = np.asarray(pointers)[np.asarray(mask)].ravel()
        MEMORY.check(seen, np.dtype(dtype).itemsize, "load")
        MEMORY.loaded(seen)
        return self.inner.load(pointers, mask, other, dtype)

    def store(self, pointers: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Any:
        chosen = np.asarray(mask)
        seen = np.asarray(pointers)[chosen].ravel()
        MEMORY.check(seen, values.dtype.itemsize, "store")
        MEMORY.stored(seen, np.broadcast_to(values, chosen.shape)[chosen].ravel())
        return self.inner.store(pointers, values, mask)

    def atomic_rmw(self, op: Any, pointers: np.ndarray, values: np.ndarray, mask: np.ndarray, sem: Any) -> Any:
        MEMORY.check(np.asarray(pointers)[np.asarray(mask)].ravel(), values.dtype.itemsize, "atomic")
        return self.inner.atomic_rmw(op, pointers, values, mask, sem)


def install() -> None:
    """Puts the checks into Triton's interpreter, and poison into what was never written."""
    interpreter._interpreter = Guarded(interpreter._interpreter)
    load, call = interpreter.InterpreterBuilder.create_masked_load, interpreter.GridExecutor.__call__

    def poisoned(self: Any, ptrs: Any, mask: Any, other: Any, *policy: Any) -> Any:
        if other is None and not np.all(mask.data):
            dtype = interpreter._get_np_dtype(ptrs.get_element_ty())
            raw = np.full((*ptrs.data.shape, np.dtype(dtype).itemsize), POISON, np.uint8)
            data = np.ones(ptrs.data.shape, bool) if dtype == np.bool_ else raw.view(dtype)[..., 0]
            other = interpreter.TensorHandle(data, ptrs.get_element_ty())
        return load(self, ptrs, mask, other, *policy)

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        MEMORY.launch()
        return call(self, *args, **kwargs)

    interpreter.InterpreterBuilder.create_masked_load = poisoned
    interpreter.GridExecutor.__call__ = launched
    torch.empty = lambda *a, **k: MEMORY.add(poison(EMPTY(*a, **k)))
    torch.zeros = lambda *a, **k: MEMORY.add(ZEROS(*a, **k))


def poison(x: torch.Tensor) -> torch.Tensor:
    """The same memory, with bytes that nobody would write."""
    if x.dtype != torch.bool and x.numel():
        x.view(torch.uint8).fill_(POISON)
    return x


# ---- inputs ----------------------------------------------------------------------------------------------------------


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


def arguments(request: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """The arguments of one run."""
    rng = np.random.default_rng(run["seed"])
    given = run.get("values", {})
    numbers = run["numbers"]
    size = lambda d: int(d) if d.isdigit() else int(numbers[d])  # noqa: E731
    args: dict[str, Any] = {}
    for name, dtype, dims, below in request["inputs"]:
        shape = tuple(map(size, dims))
        if name in given:
            kind = INTEGERS.get(dtype, torch.bool if dtype == "bool" else torch.float64)
            args[name] = torch.tensor(given[name], dtype=kind).reshape(shape)
        else:
            args[name] = values(dtype, shape, size(below) if below else None, run["style"], rng)
    return args | {s: numbers[s] for s in request["scalars"]}


# ---- runs ------------------------------------------------------------------------------------------------------------


def compared(got: Any, expected: Any) -> str:
    """How two results differ, "" where they do not."""
    both = [tuple(x) if isinstance(x, (tuple, list)) else (x,) for x in (got, expected)]
    for k, (a, b) in enumerate(zip(*both, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {k} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        if a.numel() == 0:
            continue
        if a.dtype.is_floating_point:
            finite = b[torch.isfinite(b)].abs()
            scale = 1.0 + (float(finite.max()) if finite.numel() else 0.0)
            wrong = ~torch.isclose(a, b, rtol=1e-9, atol=1e-10 * scale, equal_nan=True)
        else:
            wrong = a != b
        if wrong.any():
            i = tuple(int(j) for j in wrong.nonzero()[0])
            return f"output {k} at {list(i)}: {a[i].item()}, not {b[i].item()}"
    return ""


def one(case: tuple[Any, Any], request: dict[str, Any], run: dict[str, Any]) -> tuple[str, str]:
    """What became of one run."""
    args = arguments(request, run)
    copies = [{k: v.clone() if torch.is_tensor(v) else v for k, v in args.items()} for _ in range(2)]
    try:
        expected = case[1](*copies[1].values())
    except (RuntimeError, IndexError, ValueError, ZeroDivisionError) as e:
        return "skipped", f"the reference raises {type(e).__name__}: {str(e)[:100]}"
    except Exception as e:
        return "error", f"the reference raises {type(e).__name__}: {str(e)[:100]}"
    MEMORY.kept.clear()
    MEMORY.kept += [v for v in copies[0].values() if torch.is_tensor(v)]
    try:
        got = case[0](*copies[0].values())
    except Exception as e:
        while e.__cause__ is not None:
            e = e.__cause__  # type: ignore[assignment]
        return ("differs" if isinstance(e, Wrong) else "error"), f"{type(e).__name__}: {str(e)[:300]}"
    told = compared(got, expected)
    changed = [k for k, v in args.items() if torch.is_tensor(v) and not torch.equal(v, copies[0][k])]
    return ("differs", told or f"{changed} changed") if told or changed else ("same", "")


def loaded(source: str, name: str, folder: str) -> tuple[Any, Any]:
    """Host function and reference of a case file."""
    found: dict[str, Any] = {}

    def case(**specs: Any) -> Any:
        def decorate(fn: Any) -> Any:
            found[fn.__name__] = fn
            return types.SimpleNamespace(reference=lambda f: found.setdefault(fn.__name__ + " reference", f))

        return decorate

    sys.modules["trilift"] = types.ModuleType("trilift")
    sys.modules["trilift"].case = case  # type: ignore[attr-defined]
    path = os.path.join(folder, "fuzzed.py")
    with open(path, "w") as f:
        f.write(source)
    spec = importlib.util.spec_from_file_location("fuzzed", path)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return found[name], found[name + " reference"]


def answer(request: dict[str, Any], folder: str) -> dict[str, Any]:
    """All runs of a request."""
    try:
        case = loaded(request["source"], request["name"], folder)
    except Exception as e:
        return {"runs": [], "error": f"{type(e).__name__}: {e}"}
    runs = []
    for run in request["runs"]:
        runs.append(one(case, request, run))
        if request.get("first") and runs[-1][0] == "differs":
            break
    return {"runs": runs, "error": ""}


def isolated(line: str, folder: str) -> str:
    """The answer to a line, from a child with a limit of time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        with os.fdopen(writing, "w") as f:
            f.write(json.dumps(answer(json.loads(line), folder)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as f:
        text = f.read()
    _, status = os.waitpid(child, 0)
    return text or json.dumps({"runs": [], "error": f"ended by {status}"})


def main() -> None:
    """Answers until the input ends."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    torch.set_num_threads(1)
    install()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    triton.runtime.jit.mangle_type(torch.zeros(1), False)  # imports what the first launch needs
    assert tl is not None
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            print(isolated(line, folder), file=out, flush=True)


if __name__ == "__main__":
    main()

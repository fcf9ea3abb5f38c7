"""Runs case files in Triton's own interpreter and compares them with their references: a script of its own, which
imports nothing of ours, and answers one line of JSON with another.

    {"source", "name", "inputs": [[name, dtype, dims, below, strided]], "scalars": [name],
     "runs": [{"numbers", "style", "seed"}], "first", "unused"}
    -> {"runs": [["same"|"differs"|"error"|"skipped", detail, where an integer of the kernel wrapped]], "error": ...}

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
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton
import triton.language as tl
import wrapping  # type: ignore[import-not-found]  # beside this script
from draws import tensors  # type: ignore[import-not-found]
from memory import MEMORY, Wrong, install  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from .draws import Planned


class Request(TypedDict):
    """A case file and its runs."""

    source: str
    name: str
    inputs: list[tuple[str, str, list[str], str, bool]]
    scalars: list[str]
    runs: list[Planned]
    first: bool
    unused: list[int]  # lines whose loads a compiled kernel does not make


class Answer(TypedDict):
    """Of each run its verdict and why; `error`: why there are none."""

    runs: list[tuple[str, str, str]]
    error: str


Arguments: TypeAlias = dict[str, torch.Tensor | int | float]
Results: TypeAlias = torch.Tensor | tuple[torch.Tensor, ...] | list[torch.Tensor]
Runnable = Callable[..., Results]  # a host function, a reference
LIMIT = 40.0  # seconds of the processor for one request


# ---- runs ------------------------------------------------------------------------------------------------------------


def compared(got: Results, expected: Results) -> str:
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


def one(case: tuple[Runnable, Runnable], request: Request, run: Planned) -> tuple[str, str]:
    """The verdict on one run, and why."""
    args: Arguments = {**tensors(request["inputs"], run), **{s: run["numbers"][s] for s in request["scalars"]}}
    copies = [{k: copied(v) for k, v in args.items()} for _ in range(2)]
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


def copied(x: torch.Tensor | int | float) -> torch.Tensor | int | float:
    """A copy with the same strides and a storage of its own."""
    if not isinstance(x, torch.Tensor):
        return x
    storage = torch.as_strided(x, (x.untyped_storage().size() // x.element_size(),), (1,), 0).clone()
    return torch.as_strided(storage, x.shape, x.stride(), x.storage_offset())


class Tuned:
    """An autotuner whose choice changes with the run: bit 0 of its number chooses for launches 0, 2, ..., bit 1 for
    launches 1, 3, ..., so that four runs have each pair."""

    run, launches = 0, 0

    def __init__(self, fn: object, configs: list[triton.Config]) -> None:
        self.fn, self.configs = fn, configs

    def __getitem__(self, grid: object) -> Callable[..., object]:
        chosen = self.configs[(Tuned.run >> Tuned.launches % 2) % len(self.configs)].kwargs
        Tuned.launches += 1
        return lambda *args, **more: self.fn[grid](*args, **more, **chosen)  # type: ignore[index]


def loaded(source: str, name: str, folder: str) -> tuple[Runnable, Runnable]:
    """Host function and reference of a case file."""
    found: dict[str, Runnable] = {}

    def case(**specs: object) -> Callable[[Runnable], types.SimpleNamespace]:
        def decorate(fn: Runnable) -> types.SimpleNamespace:
            found[fn.__name__] = fn
            return types.SimpleNamespace(reference=lambda f: found.setdefault(fn.__name__ + " reference", f))

        return decorate

    sys.modules["trilift"] = types.ModuleType("trilift")
    sys.modules["trilift"].case = case  # type: ignore[attr-defined]
    path = MEMORY.file = os.path.join(folder, "fuzzed.py")
    with open(path, "w") as f:
        f.write(source)
    spec = importlib.util.spec_from_file_location("fuzzed", path)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return found[name], found[name + " reference"]


def answer(request: Request, folder: str) -> Answer:
    """All runs of a request."""
    try:
        case = loaded(request["source"], request["name"], folder)
    except Exception as e:
        return {"runs": [], "error": f"{type(e).__name__}: {e}"}
    runs: list[tuple[str, str, str]] = []
    MEMORY.unused = frozenset(request["unused"])
    for number, run in enumerate(request["runs"]):
        Tuned.run, Tuned.launches = number, 0
        wrapping.WRAPPED.clear()
        runs.append((*one(case, request, run), ", ".join(dict.fromkeys(wrapping.WRAPPED))))
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
            f.write(json.dumps(answer(cast(Request, json.loads(line)), folder)))
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
    triton.autotune = lambda configs, key: lambda fn: Tuned(fn, configs)
    install()
    wrapping.install()
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

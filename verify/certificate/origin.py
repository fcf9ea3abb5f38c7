"""The things that a proof was made of, as digests: Triton IR of launches, the functions of the case, the case itself.

    made_of(case, shapes, wanted)    what the host function launches at these shapes, so that the wanted is among it
    differences(certificate, case)   what is another now

Nothing of the prover is needed: the case is run as `lift.capture` runs it, and Triton lowers its kernels.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, product
from typing import TypedDict

from trilift.lift.capture.run import capture
from trilift.lift.capture.trace import Buffer, Descriptor, Launch, TensorRef, Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.cases.shapes import elements
from trilift.lift.errors import TriliftError

Dims = Mapping[str, int | float]
SHAPES = 12  # at which the host function is run
TRIED = 100  # runs with other autotuning configurations, for the Triton IR that no run has had yet
CERTIFIED_ELEMENTS = 200_000  # of the largest input of a run that a certificate names
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in the text of an object
LOCATION = re.compile(r' loc\((?:[^()"]|"[^"]*"|\([^()]*\))*\)')


class LaunchDigest(TypedDict):
    """A launch: the kernel, and the digest of its Triton IR."""

    kernel: str
    ttir: str


class RunDigest(TypedDict):
    """A run at a shape, in an autotuning configuration. `calls`: the digest of all that it does."""

    dims: dict[str, int | float]
    tuned: int
    calls: str
    launches: list[LaunchDigest]


class Made(TypedDict):
    """The digests of a case, and the versions that lowered its kernels."""

    triton: str
    torch: str
    case: str
    host: str
    reference: str | None
    runs: list[RunDigest]


def digest(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def of_ir(text: str) -> str:
    """The digest of Triton IR without the places of its operations: a file may be moved."""
    lines = (LOCATION.sub("", line) for line in text.split("\n") if not line.startswith("#loc"))
    return digest("\n".join(lines))


def made_of(case: Case, shapes: Iterable[Dims], wanted: Iterable[str] = ()) -> Made:
    """The digests of a case: of its declaration and functions, and of what it launches at these shapes. `wanted`:
    digests of Triton IR that other autotuning configurations are run for, where the first has another."""
    return {
        "triton": _version("triton"), "torch": _version("torch"), "case": digest(declaration(case)),
        "host": digest(source(case.fn)), "reference": digest(source(case.reference.fn)) if case.reference else None,
        "runs": _runs(case, [*islice(shapes, SHAPES)], set(wanted)),
    }  # fmt: skip


def differences(made: Made, launched: Iterable[LaunchDigest], case: Case) -> list[str]:
    """The things that are others now than when a certificate was made, in words. `launched`: its launches, whose Triton
    IR must be that of some run."""
    now = made_of(case, [])
    same = {
        "the declaration of the case": made["case"] == now["case"],
        "the host function": made["host"] == now["host"],
        "the reference": made["reference"] == now["reference"],
        "the version of triton": made["triton"] == now["triton"],
        "the version of torch": made["torch"] == now["torch"],
    }
    told = [f"{what} is another one" for what, agrees in same.items() if not agrees]
    told += [x for then in made["runs"] for x in _of_run(then, case)]
    seen = {x["ttir"] for r in made["runs"] for x in r["launches"]}
    missing = [x["kernel"] for x in launched if x["ttir"] not in seen]
    told += [f"the Triton IR of {k} is in none of the runs that the file names" for k in missing]
    return list(dict.fromkeys(told))


def declaration(case: Case) -> str:
    """The case as text: its parameters and its condition."""
    params = (f"{n}: {s!r}" for n, s in case.params.items())
    return "\n".join([case.name, *params, case.written])


def source(fn: Callable[..., object] | None) -> str:
    """The text of a function; of one without a text its name."""
    if fn is None:
        return ""
    try:
        return inspect.getsource(inspect.unwrap(fn))
    except (OSError, TypeError):
        return f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', repr(type(fn)))}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


# ---- runs ------------------------------------------------------------------------------------------------------------


def _runs(case: Case, shapes: Sequence[Dims], wanted: set[str]) -> list[RunDigest]:
    out: list[RunDigest] = []
    configurations = 1
    for dims in shapes:
        if (trace := _traced(case, dims, 0)) is not None:
            configurations = max(configurations, trace.configs)
            out.append(_run(trace, 0))
    left = wanted - {x["ttir"] for r in out for x in r["launches"]}
    for dims, tuned in islice(product(shapes, range(1, configurations)), TRIED):
        if not left:
            break
        trace = _traced(case, dims, tuned)
        if trace is not None and (found := left & {x["ttir"] for x in launches(trace)}):
            out.append(_run(trace, tuned))
            left -= found
    return out


def _run(trace: Trace, tuned: int) -> RunDigest:
    return {"dims": trace.dims, "tuned": tuned, "calls": calls(trace), "launches": launches(trace)}


def _of_run(then: RunDigest, case: Case) -> list[str]:
    where = ", ".join(f"{n} = {v}" for n, v in then["dims"].items()) or "every shape"
    if not is_shape(case, then["dims"]):
        return [f"the case does not have the shape {where}"]
    trace = _traced(case, then["dims"], then["tuned"])
    if trace is None:
        return [f"the host function raises an error at {where}"]
    now = launches(trace)
    if [x["kernel"] for x in now] != [x["kernel"] for x in then["launches"]]:
        return [f"other kernels are launched at {where}"]
    pairs = zip(now, then["launches"], strict=True)
    told = [f"the Triton IR of {x['kernel']} is another one at {where}" for x, y in pairs if x["ttir"] != y["ttir"]]
    return told + ([f"kernels are launched in another way at {where}"] if calls(trace) != then["calls"] else [])


def is_shape(case: Case, dims: Dims) -> bool:
    """Whether these are all numbers of the case, within its limits, and of few elements."""
    return (
        {*case.names, *case.scalars} == dims.keys() and case.holds(dims) and elements(case, dims) <= CERTIFIED_ELEMENTS
    )


def _traced(case: Case, dims: Dims, tuned: int) -> Trace | None:
    try:
        return capture(case, dims, tuned)
    except TriliftError:
        return None


def launches(trace: Trace) -> list[LaunchDigest]:
    """Each launch: the kernel, and the digest of its Triton IR."""
    return [{"kernel": x.kernel, "ttir": of_ir(x.module().text)} for x in trace.launches]


def calls(trace: Trace) -> str:
    """The digest of all that a run does: grids and operands of launches, torch operations, outputs. No address is in
    it: tensors, and numbers that point into one, are told as places in buffers."""
    buffers: dict[int, Buffer] = {}  # by address, in the order in which they are met

    def place(address: int, buffer: Buffer) -> str:
        buffers.setdefault(buffer.address, buffer)
        return f"buffer {[*buffers].index(buffer.address)} + {address - buffer.address}"

    def told(x: object) -> object:
        if isinstance(x, TensorRef):
            return f"{place(x.address, x.buffer)} {x.dtype} {x.shape} {x.strides}"
        if isinstance(x, Descriptor):
            return ["descriptor", *(told(getattr(x, f.name)) for f in fields(x))]
        if isinstance(x, tuple | list):
            return [told(y) for y in x]
        if type(x) is int:
            for b in buffers.values():
                if b.address <= x < b.address + b.nbytes:
                    return place(x, b)
        return ADDRESS.sub("", repr(x))

    said: list[object] = [[n, told(x)] for n, x in trace.inputs.items()]
    for e in trace.events:
        what: Sequence[object] = [e.kernel, e.grid] if isinstance(e, Launch) else [str(e.func)]
        parts = e.operands if isinstance(e, Launch) else (e.args, [*e.kwargs.items()], e.outputs)
        said.append([*what, told(parts)])
    said += [[n, told(x)] for n, x in trace.outputs.items()]
    return digest(repr(said))


__all__ = ["differences", "is_shape", "made_of", "of_ir"]

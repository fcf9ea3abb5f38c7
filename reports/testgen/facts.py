"""The facts about a case that a printer needs beside its suite: from its kernels and a run of its host function."""

from __future__ import annotations

import keyword
import linecache
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trilift.lift.capture.trace import Descriptor, Launch, Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.ttir.ir import Module

from .language import uses

MOVES = ("arith.extf", "arith.truncf", "arith.constant", "arith.select", "arith.bitcast")
OTHERWISE = {"powi": "pow", "isnand": "isnan", "isinfd": "isinf", "finite": "finitef", "fast_exp": "fast_expf",
             "fast_log": "fast_logf", "fast_divide": "fast_dividef", "fmaf_rn": "fma_rn"}  # fmt: skip
ROUNDING = re.compile(r"[fd](add|sub|mul|div|rcp|sqrt)_r[nzdu]")
MULTIPLIES = ("arith.mulf", "arith.divf", "math.", "tt.extern_elementwise")
COMPUTES = ("arith.", "math.", "tt.dot", "tt.reduce", "tt.scan", "tt.atomic_rmw", "tt.extern_elementwise")


@dataclass(frozen=True, slots=True)
class Facts:
    """`dtypes`: of outputs and inputs, as case files write them. `configs`: how many an autotuner has at most.
    `libdevice`: its functions by the names that Triton gives them. `narrow`: whether bf16 or fp8 occurs, `raw`: whether
    a kernel computes in it, which the interpreter does on its bits. `written`: the inputs that a call changes.
    `floats`: whether a launch is given real numbers. `aligned`: whether tensors must begin at multiples of 16 bytes.
    `uses`: what of the language the interpreter does not have (`written.language`). `counts`: whether the host function
    asks how many multiprocessors there are, of which a machine without a GPU has none. `short`: whether a kernel
    multiplies in f16 or fp8, where squares of small numbers are 0 and those of large ones infinite."""

    dtypes: Mapping[str, str]
    configs: int = 1
    libdevice: tuple[str, ...] = ()
    narrow: bool = False
    raw: bool = False
    written: tuple[str, ...] = ()
    floats: bool = False
    aligned: bool = False
    uses: tuple[str, ...] = ()
    counts: bool = False
    short: bool = False


def facts(case: Case, seed: int = 0, shapes: Sequence[Mapping[str, Any]] = ()) -> Facts:
    """From a small run, and of the kernels that it does not launch from runs at these shapes; what is not known without
    a run where there is none."""
    from trilift.lift.capture.fake_cuda import COUNTED
    from trilift.lift.capture.run import capture
    from trilift.lift.cases.shapes import choose
    from trilift.lift.errors import TriliftError

    COUNTED.clear()
    try:
        trace = capture(case, choose(case, 1, seed)[0], seed=seed)
        first = list(dict.fromkeys(e.module() for e in trace.launches))
    except TriliftError:
        return Facts({n: s.dtype for n, s in case.tensors.items()}, written=tuple(case.tensors))
    launches, configs = _launches(case, trace, shapes, seed)
    modules = list(dict.fromkeys([*first, *(e.module() for e in launches)]))
    launches = [*trace.launches, *launches]
    dtypes = {n: ref.dtype for n, ref in {**trace.inputs, **trace.outputs}.items()}
    names = tuple(sorted({n for m in modules for n in _libdevice(m)}))
    narrow = any(_is_narrow(d) for d in dtypes.values()) or any(_narrow_values(m) for m in modules)
    returned = {id(ref.buffer) for ref in trace.outputs.values()}
    written = tuple(n for n, ref in trace.inputs.items() if id(ref.buffer) in returned or n in _stored_to(trace))
    floats = any(type(v) is float for e in launches for v in e.operands)
    raw, aligned = any(map(_computes_in_narrow, modules)), any(map(_may_have_descriptors, launches))
    short = any(map(_multiplies_in_short_range, modules))
    return Facts(dtypes, configs, names, narrow, raw, written, floats, aligned, uses(modules), bool(COUNTED), short)


def _launches(case: Case, trace: Trace, shapes: Sequence[Mapping[str, Any]], seed: int) -> tuple[list[Launch], int]:
    """A launch of each kernel that runs at these shapes and not in the trace; how many configurations there are."""
    from trilift.lift.capture.run import capture
    from trilift.lift.errors import TriliftError

    known, configs = {(e.file, e.kernel) for e in trace.launches}, trace.configs
    found: list[Launch] = []
    for dims in shapes:
        with suppress(TriliftError):
            other = capture(case, dims, seed=seed)
            for e in other.launches:
                if (e.file, e.kernel) not in known and e.module():
                    known.add((e.file, e.kernel))
                    found.append(e)
            configs = max(configs, other.configs)
    return found, configs


def _stored_to(trace: Trace) -> set[str]:
    """The inputs that the launches store to, as far as the kernels tell."""
    from trilift.lift.capture.trace import TensorRef
    from trilift.lift.ttir.written_pointers import written

    found: set[str] = set()
    for e in trace.launches:
        places = written(e.module())
        refs = [v for k, v in enumerate(e.operands) if isinstance(v, TensorRef) and places is not None and k in places]
        found |= {n for n, ref in trace.inputs.items() if any(ref.buffer is r.buffer for r in refs)}
    return found


def _libdevice(module: Module) -> Iterable[str]:
    """`tanh` of `__nv_tanhf`, `div_rn` of `__nv_fdiv_rn`."""
    for op in module.walk():
        if op.name == "tt.extern_elementwise":
            reals = [v.type.element for v in (*op.results, *op.operands) if v.type.is_float]
            symbol = str(op.attrs["symbol"]).removeprefix("__nv_")
            name = symbol.removesuffix("f") if "f64" not in reals else symbol
            yield name[1:] if ROUNDING.fullmatch(name) else OTHERWISE.get(name, name)


def _may_have_descriptors(launch: Launch) -> bool:
    """Whether the kernel is given tensor descriptors, or its file makes some: TTIR has pointers in their place."""
    given = any(isinstance(v, Descriptor) for v in launch.args.values())
    return given or any("tensor_descriptor" in line for line in linecache.getlines(launch.file))


def _is_narrow(element: str) -> bool:
    return element == "bf16" or element.startswith("f8")


def _narrow_values(module: Module) -> bool:
    return any(v.type.is_float and _is_narrow(v.type.element) for op in module.walk() for v in op.results)


def _multiplies_in_short_range(module: Module) -> bool:
    """Whether a product, a quotient or a function is rounded to a type whose numbers end at 65504, or below that."""
    return any(
        op.name.startswith(MULTIPLIES)
        and any(v.type.is_float and v.type.element.startswith(("f16", "f8")) for v in op.results)
        for op in module.walk()
    )


def _computes_in_narrow(module: Module) -> bool:
    """Whether an operation other than a cast works on bf16 or fp8."""
    return any(
        op.name.startswith(COMPUTES)
        and op.name not in MOVES
        and any(v.type.is_float and _is_narrow(v.type.element) for v in (*op.operands, *op.results))
        for op in module.walk()
    )


def identifier(text: str) -> str:
    """The text as a name."""
    name = "".join(c if c.isalnum() else "_" for c in text)
    return f"{name}_" if keyword.iskeyword(name) or not name.isidentifier() else name

"""One run of a case's host function on CPU tensors that claim to be on a GPU: what it launches and what torch does in
between.

Nothing is launched. Torch operations are recorded below autograd, so a backward pass is seen as the operations it is
made of. Host code that reads the contents of a tensor which depends on an input or a kernel is refused: its path
would depend on data.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product, takewhile
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..cases.advice import runs_somewhere, working_where
from ..cases.declaration import Case, with_unit_strides
from ..errors import CaseError, NoLaunch, Place, TriliftError, Unsupported, text_of
from ..runtime import budget
from ..runtime.isolate import INTERPRETED
from ..runtime.session import table
from ..terms import construct as T
from ..terms.fit import value
from . import streams
from .constant_arguments import Site, always_one, another, is_known, known_ones, meant, site
from .fake_cuda import pretend
from .launches import Bound, intercepted
from .places import is_host
from .recorder import Recorder, tensors_of
from .trace import Trace

PLACE = ("address", "shape", "strides")  # of an argument, which the caller finds as they were
SHAPES = 3  # at which arguments are always 1
LEAST = (8, 32, 128, 512, 2048)  # sizes, where a host function launches nothing for smaller ones
LARGE_ELEMENTS = 1 << 24  # of the largest input there


def capture(case: Case, dims: Mapping[str, int | float], config: int = 0, seed: int = 0) -> Trace:
    """The trace of one run at these dims and scalars, on the inputs that `case.sample` gives for `seed`. `config`:
    which autotune configuration, for every autotuner, modulo how many it has; one that pruning rejects is replaced by
    the next. There may be no launch. Raises CaseError if the host function raises, Unsupported if its path depends on
    tensor data."""
    trace = _captured(case, dims, config, seed)
    if trace.another and not is_known(case) and always_one(case, _launches(case)):
        return _captured(case, dims, config, seed)
    return trace


def _captured(case: Case, dims: Mapping[str, int | float], config: int, seed: int) -> Trace:
    """The trace, with constants for the arguments that are known to be always 1."""
    budget.count("capture")
    arguments = case.sample(dims, np.random.default_rng(seed))
    tensors = case.named(arguments)
    samples = {n: to_numpy(t) for n, t in tensors.items()}
    bounds = _bounds(case, dims)
    recorder = Recorder(dims)
    inputs = {n: recorder.input(n, t, bounds.get(n)) for n, t in tensors.items()}
    places = {n: _place(t) for n, t in tensors.items()}
    others = dict[str, None]()

    def launch(bound: Bound) -> None:
        bound = meant(bound, known_ones(case))
        others[another(bound)] = None
        recorder.launch(bound)

    launching = intercepted(launch, config)
    with torch.random.fork_rng(devices=[]), streams.running(), pretend(), launching, recorder.recording():
        torch.default_generator.manual_seed(seed)
        result = _run(case, dims, arguments)
        outputs = recorder.returned(named_outputs(result, case.tensors))
    if moved := next((n for n, t in tensors.items() if _place(t) != places[n]), ""):
        why = f"its {' or '.join(PLACE)} is not what it was"
        raise Unsupported(f"the host function makes another tensor of its argument {moved}", case.place, why)
    return Trace(
        dict(dims),
        inputs,
        tuple(recorder.events),
        outputs,
        recorder.configs,
        bounds=_bounds(case, dims),
        samples=samples,
        absent=absent(result),
        another="; ".join(filter(None, others)),
    )


def _launches(case: Case) -> list[tuple[Site, Bound]]:
    """The launches of the host function at the first shapes."""
    from ..cases.shapes import choose

    found: list[tuple[Site, Bound]] = []
    with suppress(CaseError), pretend():
        for dims in choose(case, SHAPES, 0):
            arguments = case.sample(dims, np.random.default_rng(0))
            _failure(case, arguments, lambda b: found.append((site(b), b)))
    return found


def _place(t: torch.Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return t.data_ptr(), tuple(t.shape), tuple(t.stride())


def launching(case: Case, count: int, seed: int = 0) -> tuple[Trace, ...]:
    """Runs at so many shapes of `choose`, each of which launches a kernel: where small ones do not, larger ones. Raises
    CaseError where none are found, and what `capture` raises."""
    from ..cases.shapes import choose, elements

    def runs(inner: Case) -> tuple[Trace, ...]:
        shapes = choose(inner, count, seed)
        if inner is not case and any(elements(case, dims) > LARGE_ELEMENTS for dims in shapes):
            return ()
        found = (capture(case, dims, seed=seed) for dims in shapes)
        return tuple(takewhile(lambda t: t.launches, found))

    if len(small := runs(case)) == count:
        return small
    for least, names in product(LEAST, (case.names, *((n,) for n in case.names))):
        large = (T.make("le", least, T.size(n)) for n in names)
        with suppress(CaseError):
            if len(found := runs(replace(case, where=T.make("and", True, case.where, *large)))) == count:
                return found
    raise _no_launch(case)


def _no_launch(case: Case) -> NoLaunch:
    """Said where a whole case launches nothing."""
    interpreted = os.environ.get(INTERPRETED, "0") not in ("0", "")
    advice = f"unset {INTERPRETED}" if interpreted else "call the wrapper that launches it"
    return NoLaunch(f"case {case.name} launches no kernel", case.place, help=advice)


def _bounds(case: Case, dims: Mapping[str, int | float]) -> dict[str, int]:
    limits = {n: (s.low, s.high) for n, s in case.tensors.items() if not s.is_float}
    given = {n: (low, high) for n, (low, high) in limits.items() if low is not None and high is not None}
    return {n: int(value(high, dims)) for n, (low, high) in given.items() if value(low, dims) >= 0}


def _run(case: Case, dims: Mapping[str, int | float], arguments: Mapping[str, object]) -> object:
    try:
        return case.call(arguments)
    except (TriliftError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        at = ", ".join(f"{k}={v}" for k, v in dims.items())
        why = f"{type(error).__name__}: {_first_line(error)}"
        raise CaseError(f"wrapper raised at {at}", _line(error) or case.place, why, _advice(case, dims)) from error


_ADVICE: dict[int, tuple[Case, str]] = table("capture.advice", {})  # by id of the case


def _advice(case: Case, dims: Mapping[str, int | float]) -> str:
    """Advice for a case whose wrapper raises at these dims: the wrapper is run at many shapes, once."""
    free = [n for n, s in case.tensors.items() if s.strided and not s.unit]
    if free and _survives(with_unit_strides(case, free), dims):
        return f'it runs where the last stride of {" and ".join(free)} is 1: write "rows" in place of "strided"'
    if id(case) not in _ADVICE:
        condition = working_where(case, _survives)
        excluded = "exclude unsupported shapes with where=" if runs_somewhere(case, _survives) else ""
        _ADVICE[id(case)] = case, f'it runs with where="{condition}"' if condition else excluded
    return _ADVICE[id(case)][1]


def raised(case: Case, arguments: Mapping[str, object]) -> BaseException | None:
    """The exception that the host function raises on these arguments, on the pretended device and with nothing
    launched; None where it returns."""
    with pretend():
        return _failure(case, arguments)


def _survives(case: Case, dims: Mapping[str, int | float]) -> bool:
    """Whether the host function returns at these dims; called while another capture is going on."""
    return _failure(case, case.sample(dims, np.random.default_rng(0))) is None


def _failure(
    case: Case, arguments: Mapping[str, object], launch: Callable[[Bound], None] = lambda bound: None
) -> BaseException | None:
    try:
        with torch.random.fork_rng(devices=[]), _disable_current_modes(), intercepted(launch):
            case.call(arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None


def _first_line(error: BaseException) -> str:
    return next((line for line in text_of(error).splitlines() if line.strip()), "")


def _line(error: BaseException) -> Place | None:
    """The innermost line of host code, not of torch or of Triton."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_host(f.filename)]
    return Place(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def to_numpy(t: torch.Tensor) -> np.ndarray:
    """A copy of the contents; floats that numpy does not know become float32."""
    narrow = t.is_floating_point() and t.dtype not in (torch.float32, torch.float64, torch.float16)
    copied: np.ndarray = (t.detach().float() if narrow else t.detach().clone()).numpy()
    return copied


def absent(result: object) -> tuple[bool, ...]:
    """Of a tuple or list, which elements are None."""
    return tuple(x is None for x in result) if isinstance(result, tuple | list) else ()


def named_outputs(result: Any, taken: Collection[str] = ()) -> dict[str, torch.Tensor]:
    """The tensors of a result: `out` for one, out0, out1 ... for several, dict keys where there are some. Others are
    ignored. `taken`: the names of inputs; an output of such a name is called `out_`."""
    found = _named(result)
    return dict(zip(free_names(found, taken), found.values(), strict=True))


def free_names(names: Iterable[str], taken: Collection[str]) -> list[str]:
    """The names, those that are taken with underscores behind them."""
    used, out = set(taken), []
    for n in names:
        while n in used:
            n += "_"
        used.add(n)
        out.append(n)
    return out


def _named(result: object) -> dict[str, torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return {"out": result}
    if isinstance(result, dict):
        flat = [(k, n, t) for k, v in result.items() for n, t in _named(v).items()]
        return {f"{k}{n[3:]}" if n.startswith("out") else f"{k}_{n}": t for k, n, t in flat}
    tensors = list(tensors_of(result))
    return dict(zip(["out"] if len(tensors) == 1 else [f"out{k}" for k in range(len(tensors))], tensors, strict=True))

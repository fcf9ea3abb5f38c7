"""A script that shows a counterexample again: the user's file, PyTorch and Triton's interpreter, on stored inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
from typing import Any

from trilift.lift.cases.declaration import DTYPES, Case
from trilift.lift.pytorch.machine_integers import Fits

from ..model.verdict import Counterexample
from ..runs.adversary import arguments, row
from ..runs.layouts import strides
from ..runs.readings import Arguments, without_zeros
from ..runs.trials import Dims

LARGEST = 20_000  # numbers written into a script


@dataclass(frozen=True)
class Stored:
    """Arguments in the case's own types that no seed makes again, what they are in `words`, and the error of the
    element that is still accepted, relative to max(1, |expected|). `interpreted`: whether Triton's interpreter can be
    trusted with the kernel's types. The package runs the kernel with rounding."""

    args: Mapping[str, Any]
    words: str
    tolerance: float
    interpreted: bool = True


def replay_script(
    case: Case,
    found: Counterexample,
    against: str = "reference",
    stored: Stored | None = None,
    owed: Iterable[Fits] = (),
) -> str:
    """A Python program that imports the case's file, calls its host function in Triton's interpreter, and prints the
    element; where the interpreter cannot show it (masked lanes are 0 there, bounds are not checked), the package runs
    the kernel. Exit code 1 if it fails again, 0 if not, 2 if it cannot be run. "" for a case without a file, and for
    stored arguments that are too large. `owed`: of integers that the function divides by, which are not 0."""
    if case.place is None or not case.place.file.endswith(".py"):
        return ""
    args = stored.args if stored is not None else found.arguments
    if args is None:
        args = kept_arguments(case, found.dims, found.seed, owed)
    if (stored is not None and numbers_in(case, dict(stored.args)) > LARGEST) or (
        args is None and type(case) is not Case
    ):
        return ""
    given = None if args is None else {n: _written(case, n, v) for n, v in args.items()}
    path = Path(case.place.file).resolve()
    at = ", ".join(f"{k} = {v}" for k, v in found.dims.items())
    numbers = {
        "FILE": str(path),
        "NAME": case.fn.__name__,
        "CASE": case.name,
        "DIMS": dict(found.dims),
        "SEED": found.seed,
        "CONFIG": found.config,
        "OUTPUT": found.output,
        "INDEX": tuple(found.index),
        "EXPECTED": found.expected,
        "AGAINST": against,
        "UNDEFINED": bool(found.why) and math.isnan(found.got) and found.expected == 0,
        "TOLERANCE": _tolerance(case, found) if stored is None else stored.tolerance,
        "ROUNDED": stored is not None,
        "INTERPRETED": _interpreted(case) if stored is None else stored.interpreted,
    }
    constants = "\n".join(f"{k} = {_literal(v)}" for k, v in numbers.items())
    element = f"{found.output}{list(found.index)}" if found.output else "a memory access"
    words = row(found.seed).words if stored is None else stored.words
    head = f'"""{case.name}: {element} is wrong at {at}, on {words}."""\n'
    inputs = f"ARGUMENTS = {pformat(given, width=110, compact=True)}" if given is not None else "ARGUMENTS = None"
    return f"{head}{IMPORTS}\n{constants}\nWHY = {found.why!r}\n{inputs}\n{PROGRAM}"


def kept_arguments(case: Case, dims: Dims, seed: int, owed: Iterable[Fits] = ()) -> dict[str, object] | None:
    """The arguments that a seed draws, with the strides of the case; None where they are more than LARGEST numbers.
    `owed`: of integers that the function divides by, which are not 0."""
    args = without_zeros(case, owed, arguments(case, dims, seed))
    if numbers_in(case, args) > LARGEST:
        return None
    placed = strides(case, dims, seed)
    return {n: _placed(n, v, placed) for n, v in args.items()}


def _placed(name: str, v: object, placed: Mapping[str, tuple[int, ...]]) -> object:
    """A tensor, or each of a list of them, with the strides of its name; converted to float64, tensors lose them."""
    import torch

    if isinstance(v, list | tuple):
        return type(v)(_placed(f"{name}{k}", e, placed) for k, e in enumerate(v))
    if not isinstance(v, torch.Tensor) or v.stride() == placed.get(name, v.stride()):
        return v
    once = v[tuple(slice(0, 1) if s == 0 else slice(None) for s in placed[name])]
    return v.new_empty_strided(once.shape, placed[name]).copy_(once).expand(v.shape)


def numbers_in(case: Case, args: Arguments) -> int:
    """How many numbers the tensors hold; one for a tensor of one number throughout."""
    return sum(1 if _is_constant(x) else x.numel() for x in case.named(args).values())


def _interpreted(case: Case) -> bool:
    """Whether Triton's interpreter computes what the kernel does: of bf16 and fp8 it takes the bits for the number."""
    return not any(s.dtype == "bf16" or s.dtype.startswith("f8") for s in case.tensors.values())


def _tolerance(case: Case, found: Counterexample) -> float:
    """Relative, of what the interpreter computes in the case's own dtypes; 0 for numbers that are whole, of a case of
    integers."""
    if not any(s.is_float for s in case.tensors.values()) and found.got.is_integer() and found.expected.is_integer():
        return 0.0
    narrow = {"f16": 4e-3, "bf16": 3e-2, "f8e4m3fn": 0.3, "f8e5m2": 0.5}
    return max([1e-3, *(narrow.get(s.dtype, 0.0) for s in case.tensors.values())])


def _literal(v: Any) -> str:
    if isinstance(v, Mapping):
        return "{" + ", ".join(f"{k!r}: {_literal(e)}" for k, e in v.items()) + "}"
    if isinstance(v, float) and not math.isfinite(v):
        return f'float("{v}")'
    return repr(v)


def _written(case: Case, name: str, v: Any) -> Any:
    """An argument as literals: a tensor as its numbers, shape, strides, and the dtype that the case asks for."""
    if isinstance(v, list | tuple):
        return type(v)(_written(case, f"{name}{k}", e) for k, e in enumerate(v))
    if not hasattr(v, "stride"):
        return v if isinstance(v, bool | int | float | str | None) else None
    dtype = DTYPES[case.tensors[name].dtype]
    numbers = v.flatten()[:1].tolist() if _is_constant(v) else v.flatten().tolist()
    return {"tensor": numbers, "shape": tuple(v.shape), "strides": tuple(v.stride()), "dtype": dtype}


def _is_constant(x: Any) -> bool:
    """Whether all elements of a tensor of some size are equal: one number stands for all."""
    return bool(x.numel() > 16 and (x == x.flatten()[0]).all())


IMPORTS = """
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"
nan, inf = float("nan"), float("inf")
"""

PROGRAM = '''

def loaded():
    """The module of the file, within its package; `trilift.case` without the package keeps the function."""
    import importlib.util
    import types

    try:
        import trilift  # noqa: F401
    except ImportError:
        stub = types.ModuleType("trilift")

        def case(**specs):
            def keep(fn):
                reference = types.SimpleNamespace(fn=None)
                keep = lambda f: setattr(reference, "fn", f) or f  # noqa: E731
                return types.SimpleNamespace(fn=fn, reference=keep, params=specs)
            return keep

        stub.case = case
        sys.modules["trilift"] = stub
    folder, parts = os.path.dirname(FILE), [os.path.splitext(os.path.basename(FILE))[0]]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        parts.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(".".join(parts), FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def built(v):
    """The argument that literals stand for."""
    import torch

    if isinstance(v, (list, tuple)):
        return type(v)(map(built, v))
    if not isinstance(v, dict) or "tensor" not in v:
        return v
    x = torch.tensor(v["tensor"])
    x = (x.expand(v["shape"]) if len(v["tensor"]) == 1 else x.reshape(v["shape"])).to(getattr(torch, v["dtype"]))
    once = x[tuple(slice(0, 1) if s == 0 else slice(None) for s in v["strides"])]
    return torch.empty_strided(once.shape, v["strides"], dtype=x.dtype).copy_(once).expand(v["shape"])


def interpreted():
    """The element as Triton's interpreter computes it; unwritten memory is NaN."""
    import torch
    from triton.runtime.autotuner import Autotuner

    def run(tuner, *args, **kwargs):
        tuner.nargs = dict(zip(tuner.arg_names, args))
        return tuner.fn.run(*args, **kwargs, **tuner.configs[CONFIG % len(tuner.configs)].all_kwargs())

    Autotuner.run = run
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    given = {name: built(v) for name, v in ARGUMENTS.items()}
    found = next(v for v in vars(loaded()).values() if getattr(getattr(v, "fn", None), "__name__", "") == NAME)
    returned = found.fn(**given)
    values = returned if isinstance(returned, dict) else {}
    if isinstance(returned, torch.Tensor):
        values = {"out": returned}
    elif isinstance(returned, (list, tuple)):
        tensors = [x for x in returned if isinstance(x, torch.Tensor)]
        values = {"out" if len(tensors) == 1 else f"out{k}": x for k, x in enumerate(tensors)}
    known = {name: x for name, x in given.items() if isinstance(x, torch.Tensor)}
    for name, x in values.items():
        while name in known:
            name += "_"
        known[name] = x
    return float({**given, **known}[OUTPUT][INDEX])


def executed():
    """The element, or the error, from trilift's own run of the kernel."""
    os.environ["TRITON_INTERPRET"] = "0"
    from trilift.lift.capture.case_files import load

    [case] = load(FILE, [CASE])
    if ROUNDED:
        from trilift.verify.audit.numerics import again

        return again(case, DIMS, SEED, {name: built(v) for name, v in ARGUMENTS.items()}, OUTPUT, INDEX)
    from trilift.verify.runs.given_arguments import given

    case = given(case, ARGUMENTS and {name: built(v) for name, v in ARGUMENTS.items()})
    if not OUTPUT:
        from trilift.verify.refutation.replayed_memory import faults

        return faults(case, DIMS, SEED, CONFIG)
    from trilift.verify.refutation.search import once

    return once(case, DIMS, SEED, CONFIG, OUTPUT, INDEX)


def wrong(got):
    """An element that nothing defines is wrong where it is NaN, as undefined memory is."""
    return got != got if UNDEFINED else not abs(got - EXPECTED) <= TOLERANCE * max(1.0, abs(EXPECTED))


def heading(how):
    print(f"{CASE} at {', '.join(f'{k} = {v}' for k, v in DIMS.items())}, {how}:")


def report(got, how):
    heading(how)
    right = WHY if UNDEFINED else f"the {AGAINST} gives {EXPECTED:.9g}"
    print(f"  {OUTPUT}{list(INDEX)} is {got:.9g}{': ' if UNDEFINED else ', '}{right}")


def main():
    trouble = ""
    if not INTERPRETED and "--float64" not in sys.argv:
        trouble = "Triton's interpreter computes with the bits of narrow types as if they were integers"
    elif OUTPUT and ARGUMENTS is not None and "--float64" not in sys.argv:
        try:
            got = interpreted()
        except Exception as error:
            trouble = f"Triton's interpreter cannot run it: {type(error).__name__}: {error}"
        else:
            report(got, "in Triton's interpreter")
            if wrong(got):
                return 1
            why = "it rounds differently" if ROUNDED else "masked lanes are 0 there, and bounds are not checked"
            trouble = f"Triton's interpreter does not reproduce it: {why}"
    if trouble:
        print(trouble)
        sys.stdout.flush()
        import subprocess

        env = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        return subprocess.run([sys.executable, os.path.abspath(__file__), "--float64"], env=env).returncode
    os.environ["TRITON_INTERPRET"] = "0"
    try:
        got = executed()
    except ImportError as error:
        print(f"trilift is needed to run the kernel: {error}")
        return 2
    except Exception as error:
        print(f"{CASE}: it cannot be run: {type(error).__name__}: {error}")
        return 2
    if isinstance(got, list):
        heading("in float64")
        for line in got or ["no order of its accesses changes it"]:
            print(f"  {line}")
        return 1 if got else 0
    if isinstance(got, str):
        print(f"{CASE}: {got}")
        return 1
    report(got, "with every result rounded to its type" if ROUNDED else "in float64")
    return 1 if wrong(got) else 0


sys.exit(main())
'''

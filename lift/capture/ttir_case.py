"""A case from a `.ttir` file and a description of its launch; no user code runs.

The description is the JSON file NAME.json beside NAME.ttir, or the comment lines `// trilift: {...}` at the top of
the file:

    {"inputs":  {"x": "f32[M,N]", "eps": "f32"},      specs as in `lift.language.case_spec`
     "outputs": {"out": "f32[M,N]"},                  new tensors: empty, or of zeros with "f32[M,N] zeros"
     "args":    ["out", "x", "N", "stride(x, 0)", "eps"],   one for each argument of the kernel: a tensor, a scalar,
     an expression
     "grid":    ["M", "cdiv(N, 64)"],
     "where":   "N <= 65536",                         optional, as is "name"
     "num_warps": 4}                                  any other key is a launch option
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases.declaration import Case, make_case, torch_dtype
from ..errors import CaseError, Place
from ..language.case_spec import Reader, Spec, is_real_scalar
from ..terms.fit import value
from .launches import grid_of

KEYS = {"name", "inputs", "outputs", "args", "grid", "where"}
_STRIDE = re.compile(r"stride\(\s*(\w+)\s*,\s*(\d+)\s*\)")
HELP = 'give "inputs", "outputs", "args", "grid" in NAME.json beside it, or in lines "// trilift: {...}" at its top'


@dataclass(frozen=True)
class Meant:
    """A condition on the value of a key."""

    words: str
    holds: Callable[[object], bool]


def _is_list(x: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(x, list) and all(isinstance(e, kinds) for e in x)


def _is_object(x: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(x, dict) and all(n.isidentifier() and isinstance(v, kinds) for n, v in x.items())


MEANT = {
    "name": Meant("a name", lambda x: isinstance(x, str) and x.isidentifier()),
    "inputs": Meant("an object of specifications", lambda x: _is_object(x, (object,))),
    "outputs": Meant('an object like {"y": "f32[N]"}', lambda x: _is_object(x, (str,))),
    "args": Meant("a list of names and numbers", lambda x: _is_list(x, (str, int, float))),
    "grid": Meant("a list of one to three numbers or expressions",
                  lambda x: isinstance(x, list) and 1 <= len(x) <= 3 and _is_list(x, (str, int))),
    "where": Meant("a condition", lambda x: isinstance(x, str)),
}  # fmt: skip


def load(path: str | Path) -> Case:
    """The case of a `.ttir` file. Raises CaseError if there is no description or it lacks something."""
    path = Path(path)
    place = Place(str(path), 1)
    description = _description(path, place)
    for key in ("inputs", "args", "grid"):
        if key not in description:
            raise CaseError(f'the launch description of {path.name} has no "{key}"', place, help=HELP)
    for key, meant in MEANT.items():
        if key in description and not meant.holds(description[key]):
            raise CaseError(f'"{key}" of {path.name} is not {meant.words}', place, help=HELP)
    launcher = _Launcher(path, description, place)
    name = description.get("name", path.stem)
    return make_case(name, launcher, description["inputs"], description.get("where", "True"), place)


def _description(path: Path, place: Place) -> dict[str, Any]:
    sidecar = path.with_suffix(".json")
    lines = [s.strip() for s in path.read_text(errors="replace").splitlines()]
    header = "\n".join(s.partition("trilift:")[2] for s in lines if s.startswith("//") and "trilift:" in s)
    if not sidecar.exists() and not header:
        raise CaseError(f"{path.name} has no launch description", place, help=HELP)
    try:
        found = json.loads(sidecar.read_bytes().decode() if sidecar.exists() else header)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        where = Place(str(sidecar), line) if sidecar.exists() else place
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise CaseError("the launch description is not JSON", where, why) from error
    if not isinstance(found, dict):
        raise CaseError(f"the launch description of {path.name} is not a JSON object", place, help=HELP)
    return found


@dataclass(frozen=True)
class _Launcher:
    """The host function of such a case: allocates the outputs, launches once, returns the outputs."""

    path: Path
    description: Mapping[str, Any]
    place: Place

    def __call__(self, **given: Any) -> dict[str, Any]:
        from ..ttir.lower import lower_file
        from .recorder import active

        recorder = active()
        tensors = {
            **given,
            **{n: self.output(n, s, recorder.dims) for n, s in self.description.get("outputs", {}).items()},
        }
        module = lower_file(self.path)
        parameters = [a.name.removeprefix("%") for a in module.entry.args]
        if len(parameters) != len(self.description["args"]):
            why = f"{len(self.description['args'])} are given, the kernel takes {', '.join(parameters)}"
            raise CaseError(f'"args" of {self.path.name} do not fit the kernel', self.place, why)
        args = [self.argument(a, tensors, recorder.dims) for a in self.description["args"]]
        grid = [int(self.number(g, tensors, recorder.dims)) for g in self.description["grid"]]
        options = {k: v for k, v in self.description.items() if k not in KEYS}
        named = dict(zip(parameters, args, strict=True))
        recorder.launch_module(module, self.place, named, grid_of(grid), options)
        return {n: tensors[n] for n in self.description.get("outputs", {})}

    def output(self, name: str, text: str, dims: Mapping[str, int | float]) -> Any:
        import torch

        spec = self.reader.param(name, text.removesuffix("zeros"))
        if not isinstance(spec, Spec) or spec.shape is None:
            raise CaseError(f"output {name}={text!r} is not a tensor", self.place, help=HELP)
        make = torch.zeros if text.endswith("zeros") else torch.empty
        return make([int(value(e, dims)) for e in spec.shape], dtype=torch_dtype(spec.dtype))

    def argument(self, a: Any, tensors: Mapping[str, Any], dims: Mapping[str, int | float]) -> Any:
        return tensors[a] if isinstance(a, str) and a in tensors else self.number(a, tensors, dims)

    def number(self, a: Any, tensors: Mapping[str, Any], dims: Mapping[str, int | float]) -> Any:
        """A number as it is; text is an expression over dims, scalars and stride(x, 0)."""
        if not isinstance(a, str):
            return a
        strided = {n: t.stride() for n, t in tensors.items() if hasattr(t, "stride")}
        strides = {f"stride_{n}_{k}": s for n, ss in strided.items() for k, s in enumerate(ss)}
        found = value(self.reader.term(_STRIDE.sub(r"stride_\1_\2", a)), {**dims, **strides})
        if found is None:
            raise CaseError(
                f"{a!r} of {self.path.name} uses an unknown name", self.place, f"dims are {', '.join(dims)}"
            )
        return found

    @property
    def reader(self) -> Reader:
        return Reader(
            self.path.stem, {n for n, s in self.description["inputs"].items() if is_real_scalar(s)}, self.place
        )

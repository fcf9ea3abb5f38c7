"""The one form of a row in the table of PyTorch's operators: names, parameters, meaning.

    Row("mm bmm", "self, mat2", matmul)               a meaning that is one expression
    @ROWS("div divide")                               a meaning that is a function: its parameters are the row's
    def divide(self, other, rounding_mode=None): ...

Names are those of `torch.ops.aten`, without overload. Parameters are named as in PyTorch's schema: an overload's
arguments are matched by name, and handed to the meaning in the order of the row.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, Final, TypeVar

from ...errors import Unsupported
from ..symbolic_tensor import SymbolicTensor

Result = SymbolicTensor | tuple[SymbolicTensor | None, ...]
Meaning = Callable[..., Result]  # tensors arrive as SymbolicTensor, numbers as Python numbers or terms
F = TypeVar("F", bound=Meaning)
REQUIRED: Final = object()  # stands for the default of a parameter without one


@dataclass(frozen=True, slots=True)
class Row:
    """The meaning of operators. `names` and `parameters` are texts, "mm bmm" and "self, dim=None"; `source` is the
    PyTorch function whose documentation states the formula; with `cast_first` a given dtype is that of `self`, not of
    the result."""

    names: str
    parameters: str
    meaning: Meaning
    source: str = ""
    cast_first: bool = False

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Parameter to default, in order; REQUIRED where there is none."""
        return _defaults(self.parameters)

    def __call__(self, given: Mapping[str, Any]) -> Result:
        """The meaning of arguments, which are given by name. Raises Unsupported where a required one is missing."""
        arguments = {name: given.get(name, default) for name, default in self.defaults.items()}
        if missing := [name for name, value in arguments.items() if value is REQUIRED]:
            raise Unsupported(f"aten.{self.names.split()[0]} without {', '.join(missing)}")
        return self.meaning(*arguments.values())


@cache
def _defaults(parameters: str) -> Mapping[str, Any]:
    arguments = ast.parse(f"lambda {parameters}: 0", mode="eval").body.args  # type: ignore[attr-defined]
    defaults = [ast.literal_eval(d) for d in arguments.defaults]
    names = [a.arg for a in arguments.args]
    return dict(zip(names, [REQUIRED] * (len(names) - len(defaults)) + defaults, strict=True))


class Rows:
    """The rows of one module."""

    def __init__(self, module: str) -> None:
        self.module = module.rpartition(".")[2]
        self.rows: list[Row] = []

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __call__(self, names: str, source: str = "", cast_first: bool = False) -> Callable[[F], F]:
        """Adds the decorated function as a row, whose parameters are those of the function."""

        def put(f: F) -> F:
            self.add(Row(names, parameters_of(f), f, source, cast_first))
            return f

        return put

    def add(self, *rows: Row) -> None:
        """Adds rows that are single expressions."""
        self.rows.extend(rows)


def parameters_of(f: Callable[..., Any]) -> str:
    """The parameters of a function as the text of a row: "self, dim=None"."""
    parameters = signature(f).parameters.values()
    return ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)


def table(*parts: Rows) -> dict[str, Row]:
    """Operator name to its row. Raises ValueError for a name with two rows."""
    out: dict[str, Row] = {}
    for row in (row for part in parts for row in part):
        for name in row.names.split():
            if name in out:
                raise ValueError(f"operator {name} has two rows")
            out[name] = row
    return out

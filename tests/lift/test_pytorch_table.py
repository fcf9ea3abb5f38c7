"""The table of PyTorch's operators: what it holds, and that its parameters are those of PyTorch's own schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from trilift.lift.errors import Unsupported
from trilift.lift.pytorch.aten.operator_row import REQUIRED, Row, Rows, parameters_of, table
from trilift.lift.pytorch.aten.operators import PARTS, TABLE
from trilift.lift.pytorch.symbolic_tensor import named
from trilift.lift.terms import construct as T

pytestmark = pytest.mark.smoke

# (operator, parameter) that is not in PyTorch's schema, and why
NOT_IN_SCHEMA = {
    (name, "pieces"): "how many tensors are returned, which PyTorch finds from sizes that are symbolic here"
    for name in ("chunk", "split", "split_copy", "unsafe_chunk", "unsafe_split")
}
# (operator, parameter) whose default is another one than PyTorch's, and why
ONE_FOR_ALL = "a number stands for one number per dimension"
OTHER_DEFAULT = {
    ("amax", "dim"): "None and [] both mean all dimensions",
    ("amin", "dim"): "None and [] both mean all dimensions",
    ("pad", "value"): "None means 0",
    **{(f"avg_pool{n}d", "padding"): ONE_FOR_ALL for n in (1, 2, 3)},
    **{(f"max_pool{n}d_with_indices", p): ONE_FOR_ALL for n in (1, 2, 3) for p in ("padding", "dilation")},
}


def schemas(name: str) -> Iterator[Any]:
    """The schemas of all overloads of an operator, and of its in-place variant."""
    for packet in filter(None, (getattr(torch.ops.aten, n, None) for n in (name, f"{name}_"))):
        yield from (getattr(packet, overload)._schema for overload in packet.overloads())


def test_the_table(golden: Callable[[str, str], None]) -> None:
    rows = {name: (part.module, row) for part in PARTS for row in part for name in row.names.split()}
    lines = [f"{name}({row.parameters})  {module}" for name, (module, row) in sorted(rows.items())]
    assert rows.keys() == TABLE.keys()
    golden("pytorch_table.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("name", TABLE)
def test_the_parameters_are_those_of_the_schema(name: str) -> None:
    known = {argument.name for schema in schemas(name) for argument in schema.arguments}
    assert known, f"aten.{name} is no operator"
    own = {p for p in TABLE[name].defaults if (name, p) not in NOT_IN_SCHEMA}
    assert own - known == set()


@pytest.mark.parametrize("name", TABLE)
def test_the_defaults_are_those_of_the_schema(name: str) -> None:
    arguments = [a for schema in schemas(name) for a in schema.arguments if a.has_default_value()]
    for parameter, default in TABLE[name].defaults.items():
        theirs = [a.default_value for a in arguments if a.name == parameter]
        if default is not REQUIRED and theirs and (name, parameter) not in OTHER_DEFAULT:
            assert default in theirs or list(default) in theirs, parameter


@pytest.mark.parametrize(("name", "parameter"), [*NOT_IN_SCHEMA, *OTHER_DEFAULT])
def test_an_exception_is_needed(name: str, parameter: str) -> None:
    """An exception that is not needed any more would hide a mistake."""
    known = [a.default_value for schema in schemas(name) for a in schema.arguments if a.name == parameter]
    assert TABLE[name].defaults[parameter] not in known


@pytest.mark.parametrize("row", [row for part in PARTS for row in part if row.source], ids=lambda row: row.names)
def test_the_source_is_a_documented_function(row: Row) -> None:
    found: Any = torch
    for part in row.source.split(".")[1:]:
        found = getattr(found, part)
    assert found.__doc__


def test_a_second_row_is_an_error() -> None:
    rows = Rows("a.rows")
    rows.add(Row("exp", "self", lambda x: x), Row("log exp", "self", lambda x: x))
    with pytest.raises(ValueError, match="operator exp has two rows"):
        table(rows)


def test_both_forms_give_the_same_row() -> None:
    rows = Rows("a.rows")

    @rows("narrow", "torch.narrow")
    def narrow(self: Any, dim: int, start: int = 0) -> Any:
        return self, dim, start

    rows.add(Row("narrow", "self, dim, start=0", narrow, "torch.narrow"))
    assert len(set(rows)) == 1
    assert parameters_of(narrow) == "self, dim, start=0"


def test_arguments_are_matched_by_name() -> None:
    row = Row("sub", "self, other, alpha=1", lambda x, y, alpha: (x, y, alpha))
    x = named("x", ())
    assert row({"other": 2, "self": x}) == (x, 2, 1)
    with pytest.raises(Unsupported, match=r"aten\.sub without other"):
        row({"self": x})
    assert TABLE["mul"]({"self": x, "other": 2}).at(()) is T.mul(2, T.read("x", ()))  # type: ignore[union-attr]

"""`trilift ops`: the operation table as a table."""

from __future__ import annotations

import difflib
import json
import re

import click

from trilift.lift.terms.ops import OPS, Op

PREFIX = re.compile(
    r"^(?:triton\.language|tl)\.(?:math\.|extra\.\w*\.?)?|^(?:torch|math|libdevice)\."
)  # as users write


def show(name: str | None, form: str, domains: bool = False) -> str:
    """All rows, or those whose name or any of whose spellings is `name`. `domains`: of every stage, whether it has a
    meaning of the operation. Raises UsageError where no operation has the name."""
    short = PREFIX.sub("", name) if name is not None else None
    found = [op for op in OPS.values() if name is None or {name, short} & spellings(op)]
    if not found and form != "json":
        near = difflib.get_close_matches(str(short), sorted({s for op in OPS.values() for s in spellings(op)}), 3)
        raise click.UsageError(
            f"no operation is called {name}" + (f"; did you mean {' or '.join(near)}?" if near else "")
        )
    if domains:
        return _domains(found, form, name is None)
    return json.dumps([row(op) for op in found], indent=1) if form == "json" else table([row(op) for op in found])


def _domains(found: list[Op], form: str, every: bool) -> str:
    from . import operation_matrix as matrix

    if form == "json":
        return json.dumps(matrix.matrix_data(found), indent=1)
    return matrix.matrix_text() if every else "\n\n".join(map(matrix.operation_text, found))


def spellings(op: Op) -> set[str]:
    """Every name that the operation has somewhere."""
    return {op.name, *op.ttir, *op.extern, *(f"__nv_{e}f" for e in op.extern), *op.aten}


def row(op: Op) -> dict[str, object]:
    """One row as plain data."""
    fields = ("name", "arity", "type", "text", "ttir", "extern", "aten")
    return {f: list(v) if isinstance(v := getattr(op, f), tuple) else v for f in fields}


def table(rows: list[dict[str, object]]) -> str:
    """Aligned columns with a heading."""
    heads = ("operation", "text", "type", "Triton IR", "libdevice", "PyTorch")
    keys = ("name", "text", "type", "ttir", "extern", "aten")
    cells = [heads, *(tuple(_cell(r[k]) for k in keys) for r in rows)]
    widths = [max(len(c[i]) for c in cells) for i in range(len(heads))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return "" if value is None else str(value)

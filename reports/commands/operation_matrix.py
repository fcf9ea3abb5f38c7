"""Operations x domains: which operation has which meaning, and what it is where it has none.

A domain that is declared in a module of `MODULES` is a column; tests/lift/test_meanings.py finds a module that is left
out. The columns of `lift.terms.ops.Op` itself that a printer asks for are columns too."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from trilift.lift.terms.meanings import DOMAINS, Domain
from trilift.lift.terms.ops import OPS, Op
from trilift.lift.terms.term import FOLDS

MODULES = (
    "lift.terms.construct",
    "lift.terms.ranges",
    "lift.language.infix",
    "lift.language.python_source",
    "lift.printers.latex",
    "lift.printers.torch_source",
    "verify.integers.conditions",
    "verify.integers.linear_forms",
    "verify.integers.quotient",
    "verify.integers.solver",
    "verify.integers.smt",
    "verify.normal_form.algebra",
    "verify.normal_form.enclosure",
    "verify.execution.combiners",
    "verify.wording.program_text",
    "verify.proof.smt_baseline",
    "lift.terms.definedness",
    "lift.terms.extended",
    "verify.fields.op_rows",
    "verify.fields.error_bound",
    "verify.refutation.ties",
    "verify.properties.homogeneity",
    "verify.properties.magnitudes",
    "superopt.program.template",
)
REGISTERING = ("verify.normal_form.equality",)  # imports all rules of the normal form
LETTERS = {"row": "R", "derived": "d", "refused": "-"} | {m: m[0] for m in ("error", "opaque", "unbounded", "call")}
WORDS = {
    "row": "has a meaning",
    "derived": "another step rewrites it first",
    "refused": "not asked for, and must not have a meaning",
    "error": "missing: an error that names it",
    "opaque": "missing: a function that is equal only to itself",
    "unbounded": "missing: nothing is known of its value",
    "call": "missing: printed as a call of its name",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of the matrix of operations and domains. `state`: "row", "derived", "refused", or how the domain treats
    a missing meaning (a key of WORDS); `why`: the step that derives the meaning, or the reason of the refusal."""

    operation: str
    domain: str
    state: str
    why: str = ""


def domains() -> dict[str, Domain]:
    """All domains, in the order of `MODULES`."""
    for module in REGISTERING:
        importlib.import_module(f"trilift.{module}")
    found = [v for m in MODULES for v in vars(importlib.import_module(f"trilift.{m}")).values()]
    return {d.name: d for d in found if isinstance(d, Domain) and DOMAINS.get(d.name) is d}


def cell(op: str, domain: Domain) -> Cell:
    """The entry of an operation or a fold in one domain."""
    if op in domain.rows or (domain.column and getattr(OPS.get(op), domain.column, None) is not None):
        return Cell(op, domain.name, "row")
    if op in domain.refused:
        return Cell(op, domain.name, "refused", domain.refused[op])
    if op in domain.derived:
        return Cell(op, domain.name, "derived", domain.derived[op])
    if domain.of_terms and op in OPS and OPS[op].rewritten:
        return Cell(op, domain.name, "derived", "terms are built of other operations")
    if op in OPS and OPS[op].type not in domain.types:
        return Cell(op, domain.name, "refused", f"its value is {OPS[op].type}")
    return Cell(op, domain.name, domain.missing)


def cells(op: str) -> list[Cell]:
    """The entries of an operation in all domains, in the order of `domains`."""
    return [cell(op, d) for d in domains().values()]


def missing(op: str) -> dict[str, str]:
    """The domains without a meaning of the operation, with what it is there."""
    return {c.domain: c.state for c in cells(op) if c.state not in ("row", "derived", "refused")}


def operations() -> list[str]:
    """The rows of the matrix: operations, then folds."""
    return [*OPS, *FOLDS]


def matrix_text() -> str:
    """Operations x domains, one letter a cell, with what the letters and the columns mean."""
    found = list(domains().values())
    table = {op: cells(op) for op in operations()}
    used = {c.state for row in table.values() for c in row}
    return "\n".join([
        *(f"{LETTERS[w]}  {WORDS[w]}" for w in LETTERS if w in used), "",
        *_legend(found), "",
        *(f"{op:20}{'  '.join(LETTERS[c.state] for c in row)}".rstrip() for op, row in table.items()),
    ])  # fmt: skip


def _legend(found: list[Domain]) -> Iterator[str]:
    """The name of each column, above the column."""
    for k, d in enumerate(found):
        lines = "|  " * k
        yield f"{'':20}{lines}{d.name}: {d.says}"


def operation_text(op: Op) -> str:
    """One operation: a line for each domain."""
    rows = [(c.domain, WORDS[c.state] + (f" ({c.why})" if c.why else "")) for c in cells(op.name)]
    width = max(len(name) for name, _ in rows)
    return "\n".join([f"{op.name}:", *(f"  {name:{width}}  {text}" for name, text in rows)])


def matrix_data(ops: list[Op]) -> dict[str, dict[str, str]]:
    """The states by operation and domain, as plain data."""
    return {op.name: {c.domain: c.state for c in cells(op.name)} for op in ops}

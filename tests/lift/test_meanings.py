"""The registry of meanings: operations x domains, what is missing, and each meaning on numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from trilift.lift.errors import Unsupported
from trilift.lift.language.definitions import DEFINITIONS
from trilift.lift.terms.meanings import DOMAINS, Domain, meaning
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.term import FOLDS
from trilift.reports.commands import operation_matrix as matrix

ROOT = Path(__file__).parents[2]
NAMES = {*OPS, *FOLDS, *DEFINITIONS, "const", "size", "scalar", "axis", "read", "undef"}
NAMES |= {"positive?", "zero?", "holds?", "to_real"}  # nodes of one stage alone


def declares(path: Path) -> bool:
    return any(
        isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and ast.unparse(n.value.func) == "Domain"
        for n in ast.parse(path.read_text()).body
    )


def test_operations_and_domains(golden: Callable[[str, str], None]) -> None:
    golden("operations.txt", matrix.matrix_text() + "\n")


def test_every_module_with_a_domain_is_a_column() -> None:
    found = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in ("lift", "verify", "superopt", "reports")
        for path in (ROOT / package).rglob("*.py")
        if "results" not in path.parts and declares(path)
    }
    assert found == set(matrix.MODULES)


def test_every_meaning_is_of_something_that_exists() -> None:
    """A misspelled name would never be asked for."""
    for d in matrix.domains().values():
        assert {*d.rows, *d.derived, *d.refused} <= NAMES, d.name


def test_every_missing_meaning_has_its_policy() -> None:
    for op in matrix.operations():
        for c in matrix.cells(op):
            d = DOMAINS[c.domain]
            assert (c.state == "row") == (op in d.rows or bool(d.column and op in OPS and getattr(OPS[op], d.column)))
            assert c.state in ("row", "derived", "refused") or c.state == d.missing
            assert c.state not in ("derived", "refused") or c.why


@pytest.fixture
def domain() -> Domain:
    d = Domain("of a test", missing="error", says="nothing")
    yield d
    del DOMAINS[d.name]


def test_a_missing_meaning_is_an_error_that_names_operation_and_domain(domain: Domain) -> None:
    with pytest.raises(Unsupported, match=r"^exp has no meaning in domain of a test$"):
        domain["exp"]
    assert domain.get("exp") is None and "exp" not in domain


def test_an_operation_has_one_meaning_in_a_domain(domain: Domain) -> None:
    assert meaning(domain, "exp", "log")(abs) is abs and domain["exp"] is domain["log"] is abs
    with pytest.raises(ValueError, match="exp has two meanings"):
        domain.put("exp", abs)
    domain.refused["floor"] = "it jumps"
    with pytest.raises(ValueError, match="floor must have no meaning in domain of a test: it jumps"):
        domain.fill({"floor": abs})
    with pytest.raises(ValueError, match="declared twice"):
        Domain("of a test", missing="opaque", says="again")

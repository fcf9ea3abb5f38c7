"""The registry of meanings: operations x domains, what is missing, and each meaning on numbers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from trilift.lift.errors import Unsupported
from trilift.lift.language.definitions import DEFINITIONS
from trilift.lift.language.evaluate import evaluate
from trilift.lift.language.infix import Piece
from trilift.lift.language.python_source import python_source
from trilift.lift.printers.latex import latex
from trilift.lift.printers.text import text
from trilift.lift.printers.torch_source import torch_source
from trilift.lift.terms import construct as T
from trilift.lift.terms.meanings import DOMAINS, Domain, meaning
from trilift.lift.terms.ops import OPS, Op
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import FOLDS
from trilift.reports.commands import operation_matrix as matrix
from trilift.superopt.program.template import expression
from trilift.verify.fields.field import Field
from trilift.verify.integers.solver import Solver
from trilift.verify.normal_form.algebra import Algebra
from trilift.verify.normal_form.enclosure import Enclosure
from trilift.verify.properties import homogeneity
from trilift.verify.properties.magnitudes import Magnitudes
from trilift.verify.runs.definedness import domain as defined_where

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


# ---- a new operation -------------------------------------------------------------------------------------------------


@pytest.fixture
def sinpi(monkeypatch: pytest.MonkeyPatch) -> Op:
    """sin(pi x): one row, and no stage has heard of it."""
    row = Op("sinpi", 1, T.REAL, lambda x: np.sin(np.pi * np.asarray(x)), "sinpi({0})")
    monkeypatch.setitem(OPS, row.name, row)
    monkeypatch.setitem(T.OPERATIONS, row.name, row)
    return row


def test_a_new_operation_is_one_row(sinpi: Op) -> None:
    """Numbers, terms and text are there at once."""
    t = T.make("sinpi", T.read("x", ()))
    assert t.type == T.REAL and T.make("sinpi", 0.5) is T.const(1.0)
    assert evaluate(t, (), {"x": np.asarray(0.5)}, {}).item() == 1.0
    assert text(Formula("out", (), t, "f32")) == "sinpi(x)"


MISSING = {
    "construction": "opaque", "infix text": "call", "Python source": "error", "LaTeX": "call",
    "PyTorch source": "error", "PyTorch numbers": "error", "normal form": "opaque", "interval": "unbounded",
    "order value": "opaque", "program text": "call", "definedness": "error", "field": "opaque",
    "rational value": "opaque", "extended reals": "unbounded",
    "field symmetry": "opaque", "field error": "opaque", "degree": "opaque", "parity": "opaque",
    "linearity": "opaque", "slope": "opaque", "magnitude": "error", "exactness": "unbounded",
    "sign": "unbounded", "Triton source": "error",
    "SMT baseline": "error",
}  # fmt: skip


def test_the_matrix_says_what_a_new_operation_lacks(sinpi: Op) -> None:
    """Domains of integers are not asked for it."""
    assert matrix.missing("sinpi") == MISSING
    assert {"range", "z3", "SMT-LIB"} & MISSING.keys() == set()
    lines = matrix.operation_text(sinpi).splitlines()
    assert "  definedness      missing: an error that names it" in lines
    assert "  z3               not asked for, and must not have a meaning (its value is real)" in lines


X = T.read("x", ())


def test_what_an_operation_lacks_is_as_its_domain_says(sinpi: Op) -> None:
    """No stage takes a missing meaning for a meaning."""
    t = T.make("sinpi", X)
    assert Enclosure({}, {}).of(t) == (-math.inf, math.inf)
    assert [homogeneity.found(way, t, {"x"}) for way in homogeneity.WAYS] == [None, None, None]
    assert homogeneity.slope(t, {"x"}, Enclosure({}, {})) is None
    algebra = Algebra(Solver())
    assert algebra.normal(t, algebra.context(())).term is t
    assert latex(Formula("y", (), t, "f32")) == r"y = \operatorname{sinpi}(x)"
    field = Field(np.random.default_rng(0))
    a, b = field.draw((1,)), field.draw((1,))
    assert (field.apply("sinpi", a)["p"] == field.apply("sinpi", a)["p"]).all()
    assert not (field.apply("sinpi", a)["p"] == field.apply("sinpi", b)["p"]).any()


ERRORS = {
    "Python source": (lambda t: python_source(T.make("sinpi", T.scalar("s"))), "sinpi in Python"),
    "PyTorch source": (lambda t: torch_source(Formula("y", (), t, "f32")), "sinpi in PyTorch"),
    "definedness": (lambda t: defined_where(Formula("y", (), t, "f32")), "sinpi has no meaning in domain definedness"),
    "magnitude": (lambda t: Magnitudes(SimpleNamespace(tensors={}, scalars={}), 2.0**-24).bound(t),
                  "the rounding error of sinpi of a rounded number"),
    "Triton source": (lambda t: expression(t, lambda s: Piece("x") if s is X else None, real=True),
                      "the search cannot write sinpi in a kernel"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_a_domain_without_a_default_names_what_is_missing(name: str, sinpi: Op) -> None:
    ask, said = ERRORS[name]
    with pytest.raises(Unsupported) as error:
        ask(T.make("sinpi", X))
    assert error.value.what == said and MISSING[name] == "error"

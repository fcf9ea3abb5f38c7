"""Constants are one only where the type of the tensors makes them one."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from trilift import equal, prove
from trilift.lift.capture.case_files import load
from trilift.verify.normal_form import poly

CASES = {c.name: c for c in load(str(Path(__file__).parents[1] / "kernels" / "kernels_constants.py"))}


@pytest.mark.parametrize("name", sorted(n for n in CASES if n.startswith("wrong_")))
def test_constants_that_the_type_tells_apart(name: str) -> None:
    (proof,) = prove(CASES[name])
    assert proof.verdict.value != "PROVED"


@pytest.mark.parametrize("name", sorted(n for n in CASES if n.startswith("right_")))
def test_constants_that_the_type_makes_one(name: str) -> None:
    (proof,) = prove(CASES[name])
    assert proof.verdict.value == "PROVED", proof.reason


@pytest.mark.smoke
def test_neighbours_in_single_precision_are_two_numbers() -> None:
    rng = np.random.default_rng(0)
    powers = 2.0 ** np.arange(-100, 100)
    for c in [*np.exp(rng.uniform(-40, 40, 400)).astype(np.float32), *np.nextafter(np.float32(powers), np.float32(0))]:
        beside = np.nextafter(c, np.float32(np.inf))
        assert not poly.same_constant(float(c), float(beside)) and not poly.same_constant(-float(beside), -float(c))
        assert poly.same_constant(float(c), float(c) * (1 + 2.0**-26)) and not poly.same_constant(0.0, float(c))


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("number", "meant"), [(np.float32(0.1), Fraction(1, 10)), (np.float32(1 / 3), Fraction(1, 3)), (1.00000005, 1)]
)
def test_what_a_constant_of_single_precision_means(number: float, meant: Fraction) -> None:
    assert poly.simple(float(number)) == meant
    assert poly.simple(float(np.nextafter(np.float32(number), np.float32(2)))) != meant


def test_integers_that_the_reference_makes_floats_of() -> None:
    """x == 16777217.0 is true for 16777216 in PyTorch."""
    (proof,) = prove(CASES["compared"])
    assert proof.verdict.value == "PROVED"
    assert any("x[n] < 16777216" in c.text for c in proof.contract)


def test_another_kernel_that_computes_in_double() -> None:
    """Two kernels are one only where each is proved to compute the formula."""
    proofs = equal(CASES["right_floor"], CASES["wrong_widened_floor"])
    assert any(p.verdict.value != "PROVED" for p in proofs)  # that the other kernel computes the formula lifted from it


@pytest.mark.smoke
def test_a_precision_holds_inside_only() -> None:
    near = 1 + 2.0**-30
    assert poly.same_constant(1.0, near)
    with poly.precision(poly.DOUBLE_BITS):
        assert not poly.same_constant(1.0, near) and poly.same_constant(1.0, 1 + 2.0**-52)
        with poly.precision(poly.SINGLE_BITS):
            assert poly.same_constant(1.0, near)
        assert not poly.same_constant(1.0, near)
    assert poly.same_constant(1.0, near)

"""exp of a large negative number is not 0, though no float is as small."""

from __future__ import annotations

import math

import pytest

from tests.kernels import kernels_pads as kernels
from trilift.lift.terms import construct as T
from trilift.lift.terms.ops import OPS
from trilift.verify import prove
from trilift.verify.normal_form import poly as P
from trilift.verify.normal_form.algebra import Undecided


@pytest.mark.parametrize("name", ["padded_by_1000", "product_of_two"])
def test_a_small_exponential_is_not_left_out(name: str) -> None:
    (proof,) = prove(getattr(kernels, name), fallback=False)
    assert proof.verdict.value == "UNKNOWN"


def test_an_exponential_of_minus_infinity_is() -> None:
    (proof,) = prove(kernels.padded_by_infinity)
    assert proof.verdict.value == "PROVED", proof.reason


SMALL = [("exp", -1000.0), ("exp2", -2000), ("erfc", 40.0), ("mul", 1e-200, 1e-200), ("div", 1e-300, 1e300)]


@pytest.mark.parametrize(("op", "args"), [(op, args) for op, *args in SMALL])
def test_what_no_float_holds_is_not_folded(op: str, args: list[float]) -> None:
    assert OPS[op].on_numbers(*args) is None


ZEROS = [("exp", -math.inf), ("mul", 0.0, 1e-200), ("pow", 0.0, 2), ("recip", math.inf), ("log", 1.0)]


@pytest.mark.parametrize(("op", "args"), [(op, args) for op, *args in ZEROS])
def test_a_zero_that_is_one_is_folded(op: str, args: list[float]) -> None:
    assert OPS[op].on_numbers(*args) == 0


def test_coefficients_do_not_vanish() -> None:
    small = math.exp(-400.5)
    for lost in (lambda: P.times(small, small), lambda: P.quotient(small, 1e200), lambda: P.raised(small, 3)):
        with pytest.raises(Undecided):
            lost()
    assert P.times(0, small) == P.times(0.0, 2) == 0
    tiny = P.constant_term(P.Fraction(1, 10**400))
    assert tiny is not T.const(0) and P.structural(tiny) is not P.ZERO

"""Constants of narrow floats as they were written."""

from __future__ import annotations

import pytest

from trilift.lift.ttir.reader import parse
from trilift.lift.ttir.written_constants import decimal, is_rounded


@pytest.mark.parametrize(
    ("value", "element", "written"),
    [
        (0.0999755859375, "f16", 0.1),
        (-0.300048828125, "f16", -0.3),
        (0.10009765625, "bf16", 0.1),
        (0.010009765625, "bf16", 0.01),
        (0.375, "f16", 0.375),  # exact in few bits
        (2.0**-10, "f16", 2.0**-10),
        (65504.0, "f16", 65504.0),
        (0.10000000149011612, "f32", 0.10000000149011612),  # wide types keep theirs
        (float("-inf"), "f16", float("-inf")),
    ],
)
def test_the_shortest_decimal_that_rounds_to_a_constant(value: float, element: str, written: float) -> None:
    assert decimal(value, element) == written
    assert is_rounded(value, element) == (value != written)


def test_a_constant_that_numbers_are_compared_with_stays() -> None:
    function = """"builtin.module"() ({
"tt.func"() <{function_type = (f16) -> (), sym_name = "f", sym_visibility = "public"}> ({
^bb0(%x: f16):
%a = "arith.constant"() <{value = 9.997550e-02 : f16}> : () -> f16
%b = "arith.constant"() <{value = 2.998050e-01 : f16}> : () -> f16
%p = "arith.mulf"(%x, %a) <{fastmath = #arith.fastmath<none>}> : (f16, f16) -> f16
%q = "arith.cmpf"(%x, %b) <{fastmath = #arith.fastmath<none>, predicate = 2 : i64}> : (f16, f16) -> i1
"tt.return"() : () -> ()
}) : () -> ()
}) : () -> ()"""
    a, b = (op.attrs["value"] for op in parse(function).walk() if op.name == "arith.constant")
    assert (a, b) == (0.1, 0.2998046875)

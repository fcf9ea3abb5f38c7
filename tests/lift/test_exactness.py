"""`lift.terms.exactness`: which operations must be exact, in how many bits."""

from __future__ import annotations

from trilift.lift.terms.exactness import Flow


def test_a_conversion_that_becomes_an_integer_again_is_marked() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 11, "half")
    flow.sink("x")
    assert flow.marks() == {"half": 11}


def test_real_data_are_not_marked() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("scale", "data")
    flow.step("y", "mul", ("x", "scale"), 24, "product")
    flow.sink("y")
    assert flow.marks() == {}


def test_halves_take_a_digit() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("half", "same", number=0.5)
    flow.step("y", "add", ("x", "half"), 24, "sum")
    flow.sink("y")
    assert flow.marks() == {"single": 24, "sum": 23}


def test_a_quotient_by_three_is_never_exact() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("three", "same", number=3.0)
    flow.step("y", "div", ("x", "three"), 24, "quotient")
    flow.sink("y")
    assert flow.marks() == {"quotient": None}


def test_a_comparison_with_zero_needs_no_digits() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("zero", "same", number=0.0)
    flow.sink("x", "zero")
    assert flow.marks() == {}


def test_a_difference_compared_with_zero_does() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "x")
    flow.step("y", "convert", (), 24, "y")
    flow.step("d", "sub", ("x", "y"), 24, "difference")
    flow.step("zero", "same", number=0.0)
    flow.sink("d", "zero")
    assert flow.marks() == {"x": 24, "y": 24, "difference": 24}


def test_a_sum_in_a_loop_ends_and_is_marked() -> None:
    flow = Flow()
    flow.step("zero", "same", number=0.0)
    flow.step("x", "convert", (), 24, "single")
    flow.step("total", "same", ("zero",))
    flow.step("total", "same", ("next",))
    flow.step("next", "add", ("total", "x"), 24, "sum")
    flow.sink("total")
    assert flow.marks() == {"single": 24, "sum": 24}


def test_halving_in_a_loop_is_never_exact() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("half", "same", number=0.5)
    flow.step("y", "same", ("x",))
    flow.step("y", "same", ("z",))
    flow.step("z", "mul", ("y", "half"), 24, "product")
    flow.sink("y")
    assert flow.marks()["product"] is None


def test_unknown_digits_may_be_compared_with_real_data() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("unit", "same", number=0.1)
    flow.step("y", "mul", ("x", "unit"), 24, "product")
    flow.step("p", "data")
    flow.sink("y", "p")
    assert flow.marks() == {}


def test_a_sum_of_chosen_ones_is_a_count() -> None:
    flow = Flow()
    flow.step("one", "same", number=1.0)
    flow.step("zero", "same", number=0.0)
    flow.step("chosen", "same", ("one", "zero"))
    flow.step("total", "same", ("zero",))
    flow.step("total", "add", ("total", "chosen"), 24, "sum")
    flow.sink("total")
    assert flow.marks() == {"sum": 24}


def test_one_constant_is_no_count() -> None:
    flow = Flow()
    flow.step("third", "same", number=1 / 3)
    flow.step("same", "same", ("third", "third"))
    flow.sink("same")
    assert flow.marks() == {}


def test_what_is_computed_of_a_constant_must_fit_its_digits() -> None:
    flow = Flow()
    flow.step("one", "same", number=1.0)
    flow.step("total", "add", ("one", "one"), 24, "sum")
    flow.step("s", "same", number=4097.0)
    flow.step("square", "mul", ("s", "s"), 24, "product")
    flow.sink("total")
    flow.sink("square")
    assert flow.marks() == {"sum": 24, "product": 24}


def test_a_sum_of_atomics_is_of_unknown_digits() -> None:
    flow = Flow()
    flow.step("one", "same", number=1.0)
    flow.step("memory", "same", number=0.0)
    flow.step("memory", "atomic", ("one",), 24, "atomic")
    flow.sink("memory")
    assert flow.marks() == {"atomic": None}


def test_a_product_with_a_tiny_number_may_lose_its_sign() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("tiny", "same", number=1e-39)
    flow.step("half", "same", number=0.5)
    flow.step("zero", "same", number=0.0)
    for name, factor in (("small", "tiny"), ("halved", "half")):
        flow.step(name, "mul", ("x", factor), 24, name)
        flow.sink(name, "zero")
    assert flow.marks() == {"small": None}


def test_a_constant_that_is_narrowed_is_rounded() -> None:
    flow = Flow()
    flow.step("x", "data")
    for name, number in (("tenth", 0.1), ("half", 0.5)):
        flow.step(name, "same", number=number)
        flow.step(name + " narrowed", "narrow", (name,), 11, name)
        flow.sink("x", name + " narrowed")
        flow.sink(name + " narrowed", "x")
    assert list(flow.roundings()) == ["tenth"]


def test_an_integer_beside_real_data_is_marked() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("y", "data")
    flow.step("either", "same", ("x", "y"))
    flow.sink("either")
    assert flow.marks() == {"single": 24}


def test_an_integer_beside_real_data_keeps_its_sign() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("y", "data")
    flow.step("either", "same", ("x", "y"))
    flow.step("zero", "same", number=0.0)
    flow.sink("either", "zero")
    assert flow.marks() == {}


def test_a_number_of_unknown_digits_may_be_compared_with_an_infinity() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("scale", "same", number=0.05)
    flow.step("y", "mul", ("x", "scale"), 24, "product")
    flow.step("infinity", "same", number=float("inf"))
    flow.sink("y", "infinity")
    assert flow.marks() == {}
    flow.sink("x", "infinity")
    assert flow.marks() == {"single": 24}


def test_a_count_by_atomics_is_zero_or_not() -> None:
    flow = Flow()
    flow.step("zero", "same", number=0.0)
    flow.step("count", "count", (), 24, "count")
    flow.step("memory", "same", ("zero",))
    flow.step("memory", "atomic", ("count",), 24, "atomic")
    flow.sink("memory", "zero")
    assert flow.marks() == {}


def test_a_product_with_a_size_keeps_its_sign() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("mean", "sized", (), 24, "mean")
    flow.step("y", "mul", ("x", "mean"), 24, "product")
    flow.step("zero", "same", number=0.0)
    flow.sink("y", "zero")
    assert flow.marks() == {}
    flow.sink("y")
    assert flow.marks() == {"product": None}


def test_an_integer_beside_real_data_is_followed_through_arithmetic() -> None:
    flow = Flow()
    flow.step("x", "convert", (), 24, "single")
    flow.step("y", "data")
    flow.step("either", "same", ("x", "y"))
    flow.step("two", "same", number=2.0)
    flow.step("twice", "mul", ("either", "two"), 24, "product")
    flow.sink("twice")
    assert flow.marks() == {"product": 24, "single": 24}


def test_a_constant_beside_real_data_asks_for_nothing() -> None:
    flow = Flow()
    flow.step("y", "data")
    flow.step("least", "same", number=-1.0)
    flow.step("most", "same", number=1.0)
    flow.step("between", "same", ("y", "least", "most"))
    flow.step("scale", "same", number=127.0)
    flow.step("scaled", "mul", ("between", "scale"), 24, "product")
    flow.sink("scaled")
    assert flow.marks() == {}

"""Formulas that mean nothing: each is an error that shows the part, never a guess and never a long computation."""

import pytest

from trilift.lift.errors import CaseError
from trilift.lift.language.parse import formula
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value

INPUTS = {"x": ["M", "N"], "v": ["N"]}
WRONG = [
    ("softmax(x, 3)", "there is no dimension 3"),
    ("softmax(x, -3)", "there is no dimension -3"),
    ("sum(v, 7)", "there is no dimension 7"),
    ("cumsum(x, 2)", "there is no dimension 2"),
    ("cat(x, x, 2)", "there is no dimension 2"),
    ("sum(x, (0, -2))", "occurs twice"),
    ("softmax(x, 1.5)", "a whole number, not 1.5"),
    ("softmax(x, M)", "a whole number, not M"),
    ("softmax(x, True)", "a whole number, not True"),
    ("softmax(x, dim=1)", "no names"),
    ("sum(x, 1, keepdim=False)", "but for keepdim=True"),
    ("softmax(x, 1, keepdim=True)", "no names"),
    ("exp(x, x)", "wrong number of arguments"),
    ("relu()", "wrong number of arguments"),
    ("max(x)", "wrong number of arguments"),
    ("x.permute(0, 2)", "there is no dimension 2"),
    ("x.permute(0, 0)", "not an order"),
    ("v.T", "not a matrix"),
    ("x[0, 0, 0]", "more indices than dimensions"),
    ("x**(10**400)", "too large"),
    ("2**(10**10)", "too large"),
    ("x * 1e999", "too large"),
    ("out[i, j] = exp(x[i, j], 2)", "wrong number of arguments"),
    ("out[i] = x[i]", "x has 2 dimensions"),
    ("~x", "of truths and of integers"),
    ("out[i, j] = x[i, j] * 2 ** (10 ** 10)", "too large"),
    ("x @ 1", "not of numbers"),
    ("sum(sum(x, 0), 0)", "reduced already"),
    ("x + 0 * inf", "not a number"),
    ("x + 0 / 0", "not a number"),
    ("x * (inf - inf)", "not a number"),
    ("x + 1 % 0", "not a number"),
]
RIGHT = ["softmax(x, 1)", "softmax(x, -2)", "sum(x, (0, 1))", "x.permute(1, 0)", "x * 2**64", "max(x, 0)", "x ** 100",
         "out[i, j] = exp(x[i, j])", "x * inf", "x[:, 0]", "2.5 ** 10 * x", "layer_norm(x, -1, eps)",
         "sum(x, 1, keepdim=True)"]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_a_formula_without_a_meaning_is_an_error(text, why):
    with pytest.raises(CaseError) as caught:
        formula(text, INPUTS)
    assert why in str(caught.value) and "cannot read the formula" in str(caught.value)


@pytest.mark.parametrize("text", RIGHT)
def test_a_formula_with_a_meaning_is_read(text):
    assert formula(text, INPUTS).term is not None


@pytest.mark.parametrize("signs", [300, 3000, 300_000])
def test_a_formula_that_is_nested_too_deeply_is_an_error(signs):
    with pytest.raises(CaseError, match="cannot read the formula"):
        formula("(" * 150 + "x" + ")" * 150 + "+ " + "-" * signs + "x", INPUTS)


def test_the_complement_of_an_integer_is_an_integer():
    assert formula("v * ~0", INPUTS).term is formula("v * -1", INPUTS).term
    assert formula("where(~(v < 0), v, 0)", INPUTS).term is formula("where(not (v < 0), v, 0)", INPUTS).term


@pytest.mark.parametrize(
    "text", ["x & 3", "x | y", "x ^ y", "(x & y) | (x > 2)", "(x > 2) ^ (y > 2)", "(x > 1) & (y > 1)"]
)
def test_operators_on_bits_are_those_of_python(text):
    """Of two truths a truth, else of integers."""
    t = formula(text, {"x": ("N",), "y": ("N",)}, {"x": "int", "y": "int"}).term
    for x in range(8):
        for y in range(8):
            put = {"x": T.const(x), "y": T.const(y)}
            got = T.rewrite(t, lambda s, put=put: put[s.attr] if s.op == "read" else None)
            assert value(got, {}) == eval(text, {"x": x, "y": y})


def test_operators_on_bits_of_reals_are_an_error():
    with pytest.raises(CaseError, match="cannot read the formula"):
        formula("x & 3", {"x": ("N",)})


def test_a_new_dimension_is_one_of_the_result_and_a_reduced_one_is_not():
    sizes = lambda text: [str(a.size) for a in formula(text, INPUTS).axes]  # noqa: E731
    assert sizes("v[:, None]") == ["N", "1"] and sizes("v[None]") == ["1", "N"]
    assert sizes("sum(x, 1)") == ["M"] and sizes("sum(x, 0)[:, :, None]") == ["N", "1"]
    assert sizes("x[:, None] / sum(x[:, None], -2)") == ["M", "N"]


def test_a_name_that_vanishes_is_asked_for():
    names = []
    formula("v + 0 * foo", INPUTS, known=names.append)
    formula("out[i] = v[i] + 0 * bar", INPUTS, known=names.append)
    assert names == ["foo", "bar"]

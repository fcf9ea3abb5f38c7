"""Every row of the operation table through every domain on one random input, and on exact Python numbers."""

import numpy as np
import pytest

from trilift.lift.interpreter.registry import ROW_OF_EXTERN, ROW_OF_TTIR
from trilift.lift.language.evaluate import evaluate
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import FLOAT64, SYMBOLIC, Ids
from trilift.lift.terms.ops import OPS, ROWS, UNINTERPRETED

N = 8
REALS = {
    "acosh": (1.1, 3.0),
    "lgamma": (0.5, 3.0),
    "copysign": (-2.0, 2.0),
    "round_away": (-3.0, 3.0),
    "pow": (0.2, 2.0),
}
INTEGER = {
    "truncdiv",
    "truncmod",
    "floordiv",
    "mod",
    "bitand",
    "bitor",
    "bitxor",
    "shl",
    "shr",
    "wrap8",
    "wrap16",
    "wrap32",
}
INTEGER |= {"next_power_of_2", "random", "random_bits", *(name for name in OPS if name.startswith("from_bits"))}
BOOLEAN = {"and", "or", "not"}


def arguments(name: str, arity: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random arguments in the domain of a row."""
    count = 3 if arity < 0 else arity
    if name in BOOLEAN:
        return [rng.integers(0, 2, N).astype(np.bool_) for _ in range(count)]
    if name in INTEGER:
        low, high = (1, 7) if name in ("shl", "shr", "random", "random_bits") else (1, 100)
        return [rng.integers(low, high, N) for _ in range(2 if arity < 0 else count)]
    reals = [rng.uniform(*REALS.get(name, (0.1, 0.9)), N) for _ in range(count)]
    if name == "where":
        reals[0] = rng.integers(0, 2, N).astype(np.bool_)
    if name == "pick":
        reals[0] = rng.integers(0, count - 1, N)
    return reals


def leaves(xs: list[np.ndarray]) -> tuple[list[Ids], dict[str, np.ndarray]]:
    """Arrays of reads of inputs x0, x1 ... and the inputs."""
    kinds = {"f": T.REAL, "i": T.INT, "b": T.BOOL}
    reads = [[T.read(f"x{k}", [i], kinds[x.dtype.kind]).id for i in range(N)] for k, x in enumerate(xs)]
    return [Ids(np.array(r, np.int32)) for r in reads], {f"x{k}": x for k, x in enumerate(xs)}


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_the_domains_agree(name):
    xs = arguments(name, OPS[name].arity, np.random.default_rng(1))
    want = FLOAT64.apply(name, *xs)
    ids, inputs = leaves(xs)
    terms = SYMBOLIC.apply(name, *ids)
    got = [evaluate(t, (), inputs, {}).item() for t in terms.terms()]
    np.testing.assert_allclose(np.array(got, np.float64), np.asarray(want, np.float64), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_constants_fold_to_the_same_numbers(name):
    xs = arguments(name, OPS[name].arity, np.random.default_rng(2))
    want = FLOAT64.apply(name, *xs)
    for k in range(N):
        t = OPS[name].on_terms(*(x[k].item() for x in xs))
        assert name not in UNINTERPRETED or t.op == name
        got = evaluate(t, (), {}, {}).item()
        assert got == pytest.approx(np.asarray(want)[k].item(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.type != "same"])
def test_the_type_of_a_row_is_the_type_of_its_numbers(name):
    xs = arguments(name, OPS[name].arity, np.random.default_rng(3))
    kind = np.asarray(FLOAT64.apply(name, *xs)).dtype.kind
    assert {"real": kind == "f", "int": kind == "i", "bool": kind == "b"}[OPS[name].type]


def test_no_operation_means_two_rows():
    for column in ("ttir", "extern", "aten"):
        names = [n for row in ROWS for n in getattr(row, column)]
        assert len(names) == len(set(names)), column
    assert ROW_OF_TTIR["math.exp"] == "exp" and ROW_OF_EXTERN["tanh"] == "tanh"


def test_integers_of_formulas_do_not_wrap():
    """100 as an 8-bit input, and an 8-bit cast, are integers once they are in a formula."""
    i = T.Axis("i", T.size("N"))
    x = T.read("x", (T.axis(i),), T.INT)
    array = np.array([100, -3], np.int8)
    for term in (T.mul(3, x), T.mul(3, T.make("wrap8", x))):
        assert evaluate(term, (i,), {"x": array}, {"N": 2}).tolist() == [300, -9]


def test_a_negative_power_of_an_integer_is_a_fraction() -> None:
    found = FLOAT64.apply("pow", np.array([2, 3, -2], np.int8), np.array([-1, 2, -2], np.int8))
    assert found.tolist() == [0.5, 9.0, 0.25]
    assert FLOAT64.apply("pow", np.array([2], np.int32), np.array([3], np.int32)).dtype == np.int32


@pytest.mark.parametrize(("op", "expected"), [("sum", 0), ("amax", -np.inf), ("argmax", np.nan), ("argmin", np.nan)])
def test_a_fold_of_nothing(op: str, expected: float) -> None:
    np.testing.assert_array_equal(FLOAT64.fold(op, np.zeros((2, 0)), -1), [expected, expected])

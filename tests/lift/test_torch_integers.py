"""Printed PyTorch of integer operations: every operation on sizes, tensors and both, run against lift's evaluator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from trilift.lift.language.evaluate import evaluate
from trilift.lift.printers.all import torch as torch_source
from trilift.lift.terms import construct as T
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import FOLDS, Axis, Term

N, M = T.size("N"), T.size("M")
I = Axis("i", N)  # noqa: E741
POWER = T.make("next_power_of_2", N)
DIMS = [{"N": 5, "M": 3}, {"N": 8, "M": 200}, {"N": 1, "M": 1}]
BYTES = np.array([5, -128, 100, 127, -1, 7, 64, -77], np.int8)
INPUTS: dict[str, np.ndarray] = {"b": BYTES, "w": 1000 * BYTES.astype(np.int64), "r": np.linspace(-40.5, 90.5, 8)}
ROLES: dict[str, Callable[[], Term]] = {
    "size": lambda: M, "sum": lambda: M + N, "shifted": lambda: T.make("shl", M, 2), "power": lambda: POWER,
    "large": lambda: 400 * M, "axis": lambda: T.axis(I), "bytes": lambda: T.read("b", (T.axis(I),), T.INT),
    "words": lambda: T.read("w", (T.axis(I),), T.INT),
    "least": lambda: T.make("max", T.read("b", (T.axis(I),), T.INT), 3),
    "rounded": lambda: T.make("trunc", T.read("r", (T.axis(I),))),
}  # fmt: skip
WHOLE = ["add", "mul", "sub", "neg", "abs", "sign", "max", "min", "floordiv", "mod", "truncdiv", "truncmod",
         "next_power_of_2", "bitand", "bitor", "bitxor", "shl", "shr", "wrap8", "wrap16", "wrap32",
         "eq", "ne", "lt", "le", "where"]  # fmt: skip
DIVISIONS, SHIFTS = ("floordiv", "mod", "truncdiv", "truncmod"), ("shl", "shr")


def printed(t: Term, axes: tuple[Axis, ...], dims: dict[str, int]) -> tuple[np.ndarray, np.ndarray, str]:
    """What the printed function returns, what the evaluator gives, and the text."""
    arrays = {n: x[: dims["N"]] for n, x in INPUTS.items()}
    f = Formula("y", axes, t, {T.INT: "i64", T.BOOL: "bool"}.get(t.type, "f32"))
    source = torch_source(f, dict.fromkeys(arrays, (N,)))
    scope: dict[str, Any] = {}
    exec(source, scope)
    given: dict[str, Any] = {n: torch.tensor(x) for n, x in arrays.items()} | dims
    try:
        got = scope["y"](**{n: given[n] for n in inspect.signature(scope["y"]).parameters})
    except Exception as error:
        raise AssertionError(source) from error
    return np.asarray(got), evaluate(t, axes, arrays, dims), source


def assert_agrees(t: Term, axes: tuple[Axis, ...] = (I,)) -> None:
    for dims in DIMS:
        got, right, source = printed(t, axes, dims)
        assert got.shape == right.shape, source
        np.testing.assert_allclose(got.astype(np.float64), right.astype(np.float64), rtol=1e-12, err_msg=source)


def operation(op: str, *args: Term) -> Term:
    """The operation where it has a value: no division by zero, shifts by 0 to 7."""
    if op in DIVISIONS:
        args = (args[0], T.where(T.make("eq", args[1], 0), 1, args[1]))
    if op in SHIFTS:
        args = (args[0], T.make("mod", args[1], 8))
    if op == "where":
        args = (T.make("lt", args[0], args[1]), *args)
    return OPS[op].on_terms(*args)


@pytest.mark.parametrize("op", WHOLE)
def test_an_operation_of_integers_in_every_role(op: str) -> None:
    """A size is a Python number, an element a tensor: the same operation on either, and on one of each."""
    count = 1 if OPS[op].arity == 1 else 2
    roles = [
        r for r in ROLES if op != "next_power_of_2" or r != "rounded"
    ]  # which the evaluator has for integers alone
    for names in product(roles, repeat=count):
        assert_agrees(operation(op, *(ROLES[n]() for n in names)))


@pytest.mark.parametrize("op", WHOLE)
def test_what_is_computed_of_bytes_does_not_wrap(op: str) -> None:
    """The results are added to a number that has more bits."""
    count = 1 if OPS[op].arity == 1 else 2
    if OPS[op].type == T.BOOL:
        pytest.skip("a truth value")
    for names in product(("bytes", "least", "size", "axis"), repeat=count):
        assert_agrees(300 * operation(op, *(ROLES[n]() for n in names)) + 1)


def test_no_operation_of_integers_is_left_out() -> None:
    """Every row with an integer result that PyTorch has; `to_int` is trunc in terms."""
    known = {n for n, row in OPS.items() if row.type == T.INT and row.torch is not None and n not in FOLDS}
    assert known - set(WHOLE) <= {"to_int"}


SIZES = {
    "next power of two": POWER, "of a sum": T.make("next_power_of_2", N + 3), "cdiv": T.make("floordiv", N + 3, 4),
    "choice": T.where(T.make("lt", N, M), 2, N), "bits": T.make("bitor", N, 2),
    "towards zero": T.make("truncdiv", N + 3, 2),
    "remainder": T.make("truncmod", N, 3) + 1, "wrapped": T.make("wrap8", N), "shifted": T.make("shl", N, 1),
    "least": T.make("min", N, M, 7), "most": T.make("max", N, M), "halved": T.make("shr", N + 2, 1),
    "distance": T.make("abs", N - M) + 1,
    "not": T.where(T.make("not", T.make("lt", N, M)), 2, 3),
    "and": T.where(T.make("and", T.make("lt", 0, N), T.make("lt", M, 4)), 2, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_a_size_of_an_axis_is_python(name: str) -> None:
    """Where it is the length of an output, of a fold and of an arange, and a factor."""
    j = Axis("j", SIZES[name])
    element = T.read("r", (T.make("min", T.axis(j), N - 1),))
    assert_agrees(T.axis(j) + M, (j,))
    assert_agrees(element * 2, (j,))
    for fold in ("sum", "amax", "argmax"):
        assert_agrees(T.node(fold, (element,), j), ())
    assert_agrees(T.fold("sum", j, T.read("r", (T.axis(I),))))
    assert_agrees(T.read("r", (T.axis(I),)) * SIZES[name])


def test_a_rounded_real_is_an_index() -> None:
    j = Axis("j", M)
    index = T.make("trunc", T.read("r", (T.make("min", T.axis(j), N - 1),)))
    assert_agrees(T.read("r", (T.make("max", T.make("min", index, N - 1), 0),)), (j,))

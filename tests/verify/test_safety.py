"""Accesses in bounds, divisors, integers that do not wrap; each with a kernel that goes wrong."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from launch_terms import (
    OP,
    PID,
    PID1,
    SIZES,
    M,
    N,
    both,
    cdiv,
    contiguous,
    div,
    lanes,
    le,
    loop,
    lt,
    mod,
    site,
    strided,
)

from trilift.lift.terms import term as T
from trilift.verify.integers.logical_index import asking
from trilift.verify.integers.solver import Solver
from trilift.verify.memory.safety import GOALS, contained, fits, in_bounds, nowrap, well_defined
from trilift.verify.memory.sites import Site
from trilift.verify.model.program import Arithmetic

S0, S1 = T.size("s0"), T.size("s1")
TRUE = T.const(True)


def block(less: Any = lt, shift: int = 0, masked: bool = True) -> Site:
    axes, (a,) = lanes(64)
    o = PID * 64 + a + shift
    return site(contiguous(N), o, less(o, N) if masked else TRUE, axes, (cdiv(N, 64), 1, 1), kind="load")


def tile(rows: bool = True, columns: bool = True, swap: bool = False) -> Site:
    axes, (a, b) = lanes(64, 32)
    i, j = PID * 64 + a, PID1 * 32 + b
    guard = both(*([lt(i, M)] * rows + [lt(j, N)] * columns), TRUE)
    o = i * S1 + j * S0 if swap else i * S0 + j * S1
    view = strided((M, N), (S0, S1))
    return site(view, o, guard, axes, (cdiv(M, 64), cdiv(N, 32), 1), kind="load")


STRIDED = SIZES | {le(0, S0), le(0, S1), lt((M - 1) * S0 + (N - 1) * S1, T.size("L"))}


def columns(less: Any = lt) -> Site:
    axes, (a,) = lanes(64)
    turns = loop("n0", cdiv(N, 64))
    j = T.axis(turns.counter) * 64 + a
    return site(contiguous(M, N), PID * N + j, less(j, N), axes, (M, 1, 1), [turns], kind="load")


@pytest.mark.parametrize("access", [block(), tile(), columns()], ids=["block", "tile", "columns"])
def test_in_bounds(access: Site) -> None:
    c = in_bounds(access, STRIDED, Solver())
    assert c.holds and c.why == ""


BAD = [
    block(le),
    block(shift=-1),
    block(masked=False),
    tile(rows=False),
    tile(columns=False),
    tile(swap=True),
    columns(le),
]


@pytest.mark.parametrize("access", BAD, ids=range(len(BAD)))
def test_out_of_bounds(access: Site) -> None:
    c = in_bounds(access, STRIDED, Solver())
    assert not c.holds and "could not prove" in c.why


def test_why_names_the_index_and_numbers() -> None:
    c = in_bounds(block(le), SIZES, Solver())
    assert "< N" in c.why and "N = 1" in c.why, c.why
    assert c.what == "load of y in bounds"


def test_a_view_must_be_in_its_buffer() -> None:
    assert not in_bounds(tile(), SIZES, Solver()).holds


def test_a_view_is_in_its_buffer_at_both_ends() -> None:
    ask, view = asking(SIZES | {le(5, N)}, Solver()), contiguous(N)
    assert contained(view, ask) and contained(replace(view, offset=T.const(2), shape=(N - 2,)), ask)
    for wrong in (
        replace(view, offset=T.const(-1)),
        replace(view, offset=4 - N),
        replace(view, offset=T.const(1)),
        replace(view, shape=(N + 1,)),
        replace(view, strides=(T.const(2),)),
        replace(view, strides=(T.const(-1),), offset=N - 1, shape=(N + 1,)),
    ):
        assert not contained(wrong, ask), wrong


# ---- integer arithmetic ----------------------------------------------------------------------------------------------


def program(*arithmetic: Arithmetic, grid: tuple[T.Term, ...]) -> Any:
    return SimpleNamespace(arithmetic=arithmetic, grid=grid)


def wrap(term: T.Term, axes: Any = (), guard: T.Term = TRUE, bits: int = 32, kind: str = "wrap") -> Arithmetic:
    return Arithmetic(kind, OP, tuple(axes), (), guard, term, bits)


def test_sizes_that_keep_offsets_small() -> None:
    axes, (a,) = lanes(64)
    grid = (cdiv(M, 64), T.const(1), T.const(1))
    i = PID * 64 + a
    facts = SIZES | {le(1, S0)}
    clauses = nowrap(program(wrap(PID * 64), wrap(i, axes), wrap(i * S0, axes, lt(i, M)), grid=grid), facts, Solver())
    assert [c.kind for c in clauses] == ["nowrap"] * len(clauses)
    assert "M * s0 < 2^31" in {c.text for c in clauses}, [c.text for c in clauses]
    assert all(not (s.op == "size" and s.attr == "pid0") for c in clauses for s in c.term.walk())  # type: ignore[union-attr]


def test_what_fits_needs_no_clause() -> None:
    grid = (cdiv(M, 64), T.const(1), T.const(1))
    assert nowrap(program(wrap(PID * 64), grid=grid), SIZES | {lt(M, 1000)}, Solver()) == []
    assert nowrap(program(wrap(PID * 64), grid=grid), SIZES, Solver()) != []


def test_a_product_of_data_has_no_clause_over_sizes() -> None:
    grid = (M, T.const(1), T.const(1))
    (c,) = nowrap(program(wrap(T.read("x", [PID], T.INT) * 4), grid=grid), SIZES, Solver())
    assert c.term is None


@pytest.mark.parametrize("bits", [1, 3, 8])
def test_goals_are_the_ranges_of_integers(bits: int) -> None:
    near = range(-(1 << bits) - 2, (1 << bits) + 3)
    inside = lambda goal: [v for v in near if goal(T.const(v)) is TRUE]  # noqa: E731
    assert inside(lambda t: fits(t, bits)) == [*range(-(1 << bits - 1), 1 << bits - 1)]
    told = {name: inside(lambda t, goal=goal: goal(t, bits)) for name, (_, goal) in GOALS.items()}
    assert told["wrap"] == inside(lambda t: fits(t, bits)) and told["unsigned"] == [*range(1 << bits)]
    assert told["shift"] == [v for v in range(bits) if v in near] and told["divisor"] == [v for v in near if v]
    assert told["positive"] == [v for v in near if v > 0]


def test_a_clause_of_wide_integers_does_not_replace_one_of_narrow_integers() -> None:
    grid = (cdiv(M, 64), T.const(1), T.const(1))
    both_widths = program(wrap(PID * 64), wrap(PID * 128, bits=64), wrap(PID * 32), grid=grid)
    clauses = nowrap(both_widths, SIZES, Solver())
    assert [c.text.endswith("< 2^31") for c in clauses].count(True) == 1, [c.text for c in clauses]
    (narrow,) = (c for c in clauses if c.text.endswith("< 2^31"))
    assert narrow.text == nowrap(program(wrap(PID * 64), grid=grid), SIZES, Solver())[0].text


def test_divisors() -> None:
    grid = (M, T.const(1), T.const(1))
    good = program(wrap(cdiv(N, 32), kind="divisor"), grid=grid)
    bad = program(wrap(div(N, 32), kind="divisor"), grid=grid)
    assert all(c.holds for c in well_defined(good, SIZES, Solver()))
    assert not any(c.holds for c in well_defined(bad, SIZES, Solver()))
    assert well_defined(program(wrap(mod(N, 3), kind="positive"), grid=grid), SIZES, Solver())[0].holds is False

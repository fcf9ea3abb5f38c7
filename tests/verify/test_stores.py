"""Which elements a launch writes, and who does; each with a kernel that does not."""

from __future__ import annotations

import pytest
from launch_terms import PID, PID1, SIZES, H, M, N, both, cdiv, contiguous, div, lanes, le, loop, lt, mod, site, strided

from trilift.lift.terms import construct as T
from trilift.verify.integers.logical_index import decode
from trilift.verify.integers.solver import Solver
from trilift.verify.memory.sites import Site
from trilift.verify.memory.stores import Missing, Written, covered, read_after_write, sole_writers, written
from trilift.verify.model.configuration import View

S0, S1 = T.size("s0"), T.size("s1")


def writers(view: View, *sites: Site, facts: frozenset[T.Term] = SIZES) -> list[Written]:
    found = [written(s, view, facts, Solver()) for s in sites]
    return [w for w in found if isinstance(w, Written)]


def proved(view: View, *sites: Site, facts: frozenset[T.Term] = SIZES) -> bool:
    """Every element is written, by one program."""
    found = writers(view, *sites, facts=facts)
    if len(found) < len(sites):
        return False
    conditions = [covered(found, facts, Solver()), *sole_writers(found, facts, Solver())]
    return all(c.holds for c in conditions)


def blocks(short: int = 0, width: int = 64, less=lt) -> tuple[View, Site]:
    axes, (a,) = lanes(width)
    o = PID * 64 + a
    view = contiguous(N)
    return view, site(view, o, less(o, N), axes, (cdiv(N, 64) - short, 1, 1))


def tiles(swap: bool = False, second: int = 32) -> tuple[View, Site]:
    axes, (a, b) = lanes(64, second)
    i, j = PID * 64 + a, PID1 * 32 + b
    view = contiguous(M, N)
    o = j * N + i if swap else i * N + j
    return view, site(view, o, both(lt(i, M), lt(j, N)), axes, (cdiv(M, 64), cdiv(N, 32), 1))


def flat(short: int = 0) -> tuple[View, Site]:
    axes, (a,) = lanes(64)
    o = PID * 64 + a
    view = contiguous(M, N)
    return view, site(view, o, lt(o, M * N), axes, (cdiv(M * N, 64) - short, 1, 1))


def rows(step: int = 64, reverse: bool = False) -> tuple[View, Site]:
    axes, (a,) = lanes(64)
    columns = loop("n0", cdiv(N, 64))
    n = T.axis(columns.counter)
    j = (cdiv(N, 64) - 1 - n if reverse else n) * step + a
    view = contiguous(M, N)
    return view, site(view, PID * N + j, lt(j, N), axes, (M, 1, 1), [columns])


def stride_loop(programs: int = 16) -> tuple[View, Site]:
    axes, (a,) = lanes(64)
    turns = loop("n0", cdiv(N, 64 * 16))
    o = PID * 64 + T.axis(turns.counter) * (64 * 16) + a
    view = contiguous(N)
    return view, site(view, o, lt(o, N), axes, (programs, 1, 1), [turns])


def matmul(short: int = 0, divisor: int = 32) -> tuple[View, Site]:
    axes, (a, b) = lanes(64, 32)
    n = cdiv(N, divisor)
    i, j = div(PID, n) * 64 + a, mod(PID, n) * 32 + b
    view = contiguous(M, N)
    grid = cdiv(M, 64) * cdiv(N, 32) - short
    return view, site(view, i * N + j, both(lt(i, M), lt(j, N)), axes, (grid, 1, 1))


GOOD = [blocks(), tiles(), flat(), rows(), rows(reverse=True), stride_loop(), matmul()]
BAD = [blocks(short=1), blocks(width=32), blocks(less=le), tiles(swap=True), tiles(second=16), tiles(second=64),
       flat(short=1), rows(step=128), stride_loop(15), matmul(short=1), matmul(divisor=16)]  # fmt: skip


@pytest.mark.parametrize("case", GOOD, ids=["blocks", "tiles", "flat", "rows", "reversed", "stride loop", "matmul"])
def test_all_elements_are_written_once(case: tuple[View, Site]) -> None:
    assert proved(case[0], case[1])


@pytest.mark.parametrize("case", BAD, ids=range(len(BAD)))
def test_mutants_are_not_proved(case: tuple[View, Site]) -> None:
    assert not proved(case[0], case[1])


def halves(shift: T.Term, less=lt) -> tuple[View, Site, Site]:
    axes, (a,) = lanes(64)
    view = contiguous(M, H * 2)
    row = PID * H * 2
    low, high = (site(view, row + a + d, less(a, H), axes, (M, 1, 1)) for d in (T.const(0), shift))
    return view, low, high


def test_two_stores_cover_halves() -> None:
    facts = SIZES | {le(H, 64)}
    assert proved(*halves(H), facts=facts)
    assert not proved(*halves(H), facts=SIZES)
    assert not proved(*halves(H - 1), facts=facts)
    assert not proved(*halves(H, le), facts=facts)


def test_a_block_that_is_too_small_says_what_is_missing() -> None:
    axes, (a,) = lanes(64)
    view = contiguous(M, N)
    (w,) = writers(view, site(view, PID * N + a, lt(a, N), axes, (M, 1, 1)))
    j = T.axis(w.index[1])
    assert w.condition == (lt(j, 64),)
    assert not covered([w], SIZES, Solver()).holds
    assert covered([w], SIZES | {le(N, 64)}, Solver()).holds


def test_interleaved_stores() -> None:
    axes, (a,) = lanes(64)
    view = contiguous(128)
    even, odd = (site(view, a * 2 + d, T.const(True), axes) for d in (0, 1))
    assert proved(view, even, odd)
    assert not proved(view, even)


def test_any_strides() -> None:
    axes, (a, b) = lanes(64, 32)
    i, j = PID * 64 + a, PID1 * 32 + b
    view = strided((M, N), (S0, S1))
    facts = SIZES | site(view, i, both(lt(i, M), lt(j, N)), axes, (cdiv(M, 64), cdiv(N, 32), 1)).facts()
    assert decode(i * S0 + j * S1, view, facts, Solver()) == (i, j)
    assert decode(i * S1 + j * S0, view, facts, Solver()) is None
    equal = strided((M, N), (N, 1))
    assert decode(i * S0 + j, equal, facts | {T.make("eq", S0, N)}, Solver()) == (i, j)
    assert decode(i * S0 + j, equal, facts, Solver()) is None


def test_two_programs_for_one_element() -> None:
    axes, (a,) = lanes(64)
    view = contiguous(N)
    s = site(view, a, lt(a, N), axes, (M, 1, 1))
    facts = SIZES | {le(N, 64)}
    (w,) = writers(view, s, facts=facts)
    assert covered([w], facts, Solver()).holds
    assert not all(c.holds for c in sole_writers([w], facts, Solver()))


def test_grouped_programs() -> None:
    """The order of program ids that keeps a group of rows in the cache."""
    w = grouped(8)
    assert isinstance(w, Written) and w.condition == () and w.sole
    for mutant in (grouped(8, short=1), grouped(8, clip=False), grouped(8, step=7)):
        assert not (isinstance(mutant, Written) and mutant.condition == () and mutant.sole)


def grouped(group: int, short: int = 0, clip: bool = True, step: int = 8) -> Written | Missing:
    axes, (a, b) = lanes(64, 32)
    m, n = cdiv(M, 64), cdiv(N, 32)
    first = div(PID, n * group) * step
    size = T.make("min", m - first, group) if clip else T.const(group)
    inside = mod(PID, n * group)
    i, j = (first + mod(inside, size)) * 64 + a, div(inside, size) * 32 + b
    view = contiguous(M, N)
    return written(
        site(view, i * N + j, both(lt(i, M), lt(j, N)), axes, (m * n - short, 1, 1)),
        view,
        SIZES,
        Solver(resources=40_000_000),
    )


# ---- loads of what is written ----------------------------------------------------------------------------------------


def in_place(order: int, shift: int = 0, row: T.Term = PID) -> str:
    axes, (a,) = lanes(64)
    view = contiguous(M, N)
    store = site(view, PID * N + a, lt(a, N), axes, (M, 1, 1), order=1)
    (w,) = writers(view, store, facts=SIZES | {le(N, 64)})
    guard = both(lt(a + shift, N), lt(row, M))
    load = site(view, row * N + a + shift, guard, axes, (M, 1, 1), kind="load", order=order)
    return read_after_write(load, [w], SIZES | {le(N, 64)}, Solver()).kind


def test_loads_in_place() -> None:
    assert in_place(order=0) == "initial"
    assert in_place(order=0, shift=1) == "initial"
    assert in_place(order=2) == "stored"
    assert in_place(order=0, row=PID + 1) == "unknown"
    assert in_place(order=2, row=PID + 1) == "unknown"


def two_passes(same: bool) -> str:
    """for n: x[n] = f(x[n]); for m: g(x[m]), or both in one loop with x[n - 1]."""
    axes, (a,) = lanes(64)
    view = contiguous(M, N)
    first, second = loop("n0", cdiv(N, 64)), loop("n1", cdiv(N, 64))
    j, k = (T.axis(x.counter) * 64 + a for x in (first, second))
    store = site(view, PID * N + j, lt(j, N), axes, (M, 1, 1), [first], order=0)
    (w,) = writers(view, store)
    if same:
        load = site(view, PID * N + j, lt(j, N), axes, (M, 1, 1), [first], kind="load", order=-1)
    else:
        load = site(view, PID * N + k, lt(k, N), axes, (M, 1, 1), [second], kind="load", order=2)
    return read_after_write(load, [w], SIZES, Solver()).kind


def test_loads_in_loops() -> None:
    assert two_passes(same=True) == "initial"
    assert two_passes(same=False) == "stored"

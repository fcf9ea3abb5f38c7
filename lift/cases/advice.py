"""The `where` that a case may lack: conditions on its dims under which a host function that raised does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..errors import TriliftError
from ..terms import construct as T
from ..terms.term import Term
from .declaration import Case
from .shapes import choose, elements

# what is written, what it means; weaker ones first
CONDITIONS: list[tuple[str, Callable[[Term], Term]]] = [
    ("{n} >= 16", lambda n: T.make("le", 16, n)),
    ("{n} % 2 == 0", lambda n: T.make("eq", T.make("mod", n, 2), 0)),
    ("next_power_of_2({n}) == {n}", lambda n: T.make("eq", T.make("next_power_of_2", n), n)),
    ("{n} % 8 == 0", lambda n: T.make("eq", T.make("mod", n, 8), 0)),
    ("{n} % 16 == 0", lambda n: T.make("eq", T.make("mod", n, 16), 0)),
    ("{n} % 64 == 0", lambda n: T.make("eq", T.make("mod", n, 64), 0)),
    ("{n} % 128 == 0", lambda n: T.make("eq", T.make("mod", n, 128), 0)),
]

TRIED_SHAPES = 5
TRIED_ELEMENTS = 1 << 20  # of the largest input of a run that is made for advice only


def working_where(case: Case, runs: Callable[[Case, Mapping[str, int | float]], bool]) -> str | None:
    """The text of a condition under which `runs(case, dims)`, on as few dims as it takes; None if none was found."""

    def works(names: Sequence[str], condition: Callable[[Term], Term]) -> bool:
        narrower = _narrowed(case, names, condition)
        dims = _chosen(narrower)
        return bool(dims) and all(runs(narrower, d) for d in dims)

    for text, condition in CONDITIONS:
        names = list(case.names)
        if names and works(names, condition):
            for n in case.names:
                fewer = [m for m in names if m != n]
                if fewer and works(fewer, condition):
                    names = fewer
            return " and ".join(text.format(n=n) for n in names)
    return None


def runs_somewhere(case: Case, runs: Callable[[Case, Mapping[str, int | float]], bool]) -> bool:
    """Whether `runs(case, dims)` at some dims, so that the shape is why it does not at others."""
    narrower = (_narrowed(case, case.names, condition) for _, condition in CONDITIONS)
    return any(runs(c, dims) for c in (case, *narrower) for dims in _chosen(c))


def _narrowed(case: Case, names: Sequence[str], condition: Callable[[Term], Term]) -> Case:
    return replace(case, where=T.make("and", case.where, *(condition(T.size(n)) for n in names)))


def _chosen(case: Case) -> Sequence[Mapping[str, int | float]]:
    """Dims of a case at which its inputs are small, none where its condition allows none."""
    try:
        return [d for d in choose(case, TRIED_SHAPES) if elements(case, d) <= TRIED_ELEMENTS]
    except TriliftError:
        return ()

"""Where the host function takes another path: a condition on the dims that holds at just these shapes.

c ::= a | not a | a and a | a or a | n >= 2 for all dims n        a ::= p <= k | n % k == 0 | n <= m | n == m
p ::= n | n * m | the product of all dims
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from operator import and_, or_

from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import Number, value
from trilift.lift.terms.term import Term

Row = int  # bit k: whether a condition holds at shapes[k]
POWERS = tuple(2**p for p in range(1, 8))


def separating(inside: Sequence[bool], shapes: Sequence[Mapping[str, Number]], names: Sequence[str]) -> Term | None:
    """The simplest condition that is true at shapes[k] where inside[k], and at no other; None if none is."""
    want, every = _row(inside), _row([True] * len(shapes))
    found: dict[Row, Term] = {}
    for t, row in _atoms(shapes, names):
        found.setdefault(row, t)
        found.setdefault(every ^ row, T.make("not", t))
        if want in found:
            return found[want]
    return found.get(want) or _pair(want, found)


def _row(holds: Iterable[bool]) -> Row:
    return sum(1 << k for k, x in enumerate(holds) if x)


def _pair(want: Row, found: Mapping[Row, Term]) -> Term | None:
    weaker = [(r, t) for r, t in found.items() if want & ~r == 0]
    stronger = [(r, t) for r, t in found.items() if r & ~want == 0]
    for op, rows, join in (("and", weaker, and_), ("or", stronger, or_)):
        for (a, s), (b, t) in combinations(rows, 2):
            if join(a, b) == want:
                return T.make(op, s, t)
    return None


def _atoms(shapes: Sequence[Mapping[str, Number]], names: Sequence[str]) -> Iterator[tuple[Term, Row]]:
    """Conditions, the simple ones first, with the shapes at which they hold."""
    sizes = [T.size(n) for n in names]
    if not sizes:
        return
    at = lambda t: (t, _row(value(t, s) is True for s in shapes))  # noqa: E731
    for n in sizes:
        yield at(T.make("le", n, 1))
    yield at(T.make("and", True, *(T.make("le", 2, n) for n in sizes)))
    pairs = list(combinations(sizes, 2))
    products = [T.mul(a, b) for a, b in pairs] + [T.mul(1, *sizes)] * (len(sizes) > 2)
    for p in (*sizes, *products):
        numbers = [int(value(p, s)) for s in shapes]
        yield from ((T.make("le", p, k), _row(n <= k for n in numbers)) for k in _between(sorted(set(numbers))))
    yield from (at(T.make("eq", T.make("mod", n, k), 0)) for n in sizes for k in POWERS)
    yield from (at(T.make(op, *ends)) for op in ("le", "eq") for a, b in pairs for ends in ((a, b), (b, a)))


def _between(seen: Sequence[int]) -> Iterator[int]:
    """A round number k with a <= k < b for every two neighbours a, b: a multiple of the highest power of two."""
    for a, b in pairwise(seen):
        power = 1 << ((b - a).bit_length())
        while (k := (b - 1) // power * power) < a:
            power //= 2
        yield k

"""Where the host function takes another path: a condition on the dims that holds at just these shapes.

c ::= a | not a | a and a | a or a | n >= 2 for all dims n        a ::= p <= k | n % k == 0 | n <= m | n == m
p ::= n | n * m | the product of all dims
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise

from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import Number, value
from trilift.lift.terms.term import Term

Row = tuple[bool, ...]
POWERS = tuple(2**p for p in range(1, 8))


def separating(inside: Sequence[bool], shapes: Sequence[Mapping[str, Number]], names: Sequence[str]) -> Term | None:
    """The simplest condition that is true at shapes[k] where inside[k], and at no other; None if none is."""
    want = tuple(inside)
    found: dict[Row, Term] = {}
    for t in _atoms(shapes, names):
        row = tuple(value(t, s) is True for s in shapes)
        found.setdefault(row, t)
        found.setdefault(tuple(not x for x in row), T.make("not", t))
        if want in found:
            return found[want]
    return found.get(want) or _pair(want, found)


def _pair(want: Row, found: Mapping[Row, Term]) -> Term | None:
    weaker = [(r, t) for r, t in found.items() if all(x or not w for x, w in zip(r, want, strict=True))]
    stronger = [(r, t) for r, t in found.items() if all(w or not x for x, w in zip(r, want, strict=True))]
    for op, rows, join in (("and", weaker, _both), ("or", stronger, _either)):
        for (a, s), (b, t) in combinations(rows, 2):
            if join(a, b) == want:
                return T.make(op, s, t)
    return None


def _both(a: Row, b: Row) -> Row:
    return tuple(x and y for x, y in zip(a, b, strict=True))


def _either(a: Row, b: Row) -> Row:
    return tuple(x or y for x, y in zip(a, b, strict=True))


def _atoms(shapes: Sequence[Mapping[str, Number]], names: Sequence[str]) -> Iterator[Term]:
    sizes = [T.size(n) for n in names]
    if not sizes:
        return
    for n in sizes:
        yield T.make("le", n, 1)
    yield T.make("and", True, *(T.make("le", 2, n) for n in sizes))
    pairs = list(combinations(sizes, 2))
    products = [T.mul(a, b) for a, b in pairs] + [T.mul(1, *sizes)] * (len(sizes) > 2)
    for p in (*sizes, *products):
        yield from (T.make("le", p, k) for k in _between(sorted({int(value(p, s)) for s in shapes})))
    yield from (T.make("eq", T.make("mod", n, k), 0) for n in sizes for k in POWERS)
    yield from (T.make(op, *ends) for op in ("le", "eq") for a, b in pairs for ends in ((a, b), (b, a)))


def _between(seen: Sequence[int]) -> Iterator[int]:
    """A round number k with a <= k < b for every two neighbours a, b: a multiple of the highest power of two."""
    for a, b in pairwise(seen):
        power = 1 << ((b - a).bit_length())
        while (k := (b - 1) // power * power) < a:
            power //= 2
        yield k

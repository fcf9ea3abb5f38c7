"""Alternatives of the terms that numbers were read as: terms that fit all that was seen too, and shapes that tell
them apart.

A grid of cdiv(M, 16) beside a block size B = max(16, 2^k >= D) is cdiv(M, B) wherever D is at most 16. A term that was
found at such shapes alone may be wrong at the others: it has to be asked at M = 17, D = 17. The alternatives of a
term are the terms with one part put in the place of another, as in mutation testing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, product

from trilift.lift.cases.declaration import Case
from trilift.lift.cases.shapes import around, elements
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import Number, value
from trilift.lift.terms.term import INT, Term

from .relations import Environment, Relations, agrees

SIZES = (17, 33, 65, 2, 129, 257)  # of dims that are tried, one or two at a time: beyond usual blocks
COMPARED_ALTERNATIVES = 4000  # alternatives of one term that are compared with what was seen


def apart(relations: Relations, like: Mapping[str, Number], limit: int) -> Iterator[dict[str, Number]]:
    """Shapes, inputs of `limit` elements at most, at which a term that was found and an alternative of it differ, as
    few as will do; the other dims are those of `like` where they may be."""
    case, blocks = relations.case, symbols(relations)
    numbers = (t for t in relations.known if t.is_const and t.type == INT)
    parts = list(dict.fromkeys([*map(T.size, case.names), *blocks, *numbers, T.const(1)]))
    chosen: list[dict[str, Number]] = []
    for term in dict.fromkeys(r.term for r in relations.found if r.term.args):
        for alternative in alternatives(term, parts, relations.environments):
            if not any(_differ(term, alternative, d, blocks) for d in chosen):
                found = _telling(term, alternative, case, like, blocks, limit)
                if found is not None:
                    chosen.append(found)
                    yield found


def symbols(relations: Relations) -> dict[Term, Term]:
    """The symbols of block sizes that are terms themselves, in the order in which they were found."""
    return {symbol: term for term, symbol in relations.blocks.items() if isinstance(term, Term)}


def alternatives(term: Term, parts: Sequence[Term], seen: Sequence[Environment]) -> Iterator[Term]:
    """The terms with one of `parts` in the place of a part of the term, that have the term's values wherever both were
    seen."""
    places = [s for s in term.walk() if s is not term]
    pairs = ((s, p) for s, p in product(places, parts) if s is not p)
    made = dict.fromkeys(T.rewrite(term, {s: p}.get) for s, p in islice(pairs, COMPARED_ALTERNATIVES))
    numbers = [value(term, e) for e in seen]
    for t in made:
        if t is not term and all(v is None or agrees(t, e, v) for e, v in zip(seen, numbers, strict=True)):
            yield t


def _telling(
    term: Term, alternative: Term, case: Case, like: Mapping[str, Number], blocks: Mapping[Term, Term], limit: int
) -> dict[str, Number] | None:
    """A shape at which the terms differ, with one or two dims of the terms moved."""
    names = [n for n in case.names if n in _dims(term, blocks) | _dims(alternative, blocks)]
    for count in (1, 2):
        for group in combinations(names, count):
            for sizes in product(SIZES, repeat=count):
                near = {**like, **dict(zip(group, sizes, strict=True))}
                if _differ(term, alternative, near, blocks):
                    found = around(case, dict(zip(group, sizes, strict=True)), like)
                    if (
                        found is not None
                        and elements(case, found) <= limit
                        and _differ(term, alternative, found, blocks)
                    ):
                        return found
    return None


def _dims(t: Term, blocks: Mapping[Term, Term]) -> set[str]:
    """The dims that a term depends on."""
    sizes = {s for s in t.walk() if s.op == "size"}
    return {n for s in sizes for n in (_dims(blocks[s], blocks) if s in blocks else {str(s.attr)})}


def _differ(a: Term, b: Term, dims: Mapping[str, Number], blocks: Mapping[Term, Term]) -> bool:
    """Whether both have a value at these dims, and not the same one."""
    numbers = dict(dims)
    for symbol, term in blocks.items():
        if (v := value(term, numbers)) is not None:
            numbers[str(symbol.attr)] = v
    x = value(a, numbers)
    return x is not None and value(b, numbers) is not None and not agrees(b, numbers, x)

"""Numbers that meet conditions, looked for near numbers that almost do: one symbol after the other is moved to where a
condition that does not hold begins to.

Found numbers are checked; others may still exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trilift.lift.terms import term as T
from trilift.lift.terms.term import Term

from .conditions import interpreted, leaves
from .model_cache import Numbers

LOST = 6  # conditions that do not hold at first, at most
MOVES = 2  # of one symbol
TRIES = 160  # sets of numbers that one search looks at
FAR = (1, 4, 16, 64, 1 << 9, 1 << 12, 1 << 20, 1 << 32, 1 << 64)  # steps where a condition does not change at once
RELATIONS = {"le": 0, "lt": 1, "eq": 0}  # b - a is at least this


def nearby(literals: Sequence[Term], start: Numbers) -> dict[Term, int] | None:
    """Values of all symbols at which every core term holds."""
    broken = [t for t in literals if start.value(t) is not True]
    if len(broken) > LOST:
        return None
    symbols = frozenset[Term]().union(*map(leaves, literals))
    search = _Search(literals, {s: int(start.value(s) or 0) for s in symbols})
    while broken and (found := search.best(broken)) is not None:
        broken, symbol, search.env[symbol] = found
        search.moves[symbol] = search.moves.get(symbol, 0) + 1
    return search.env if all(search.numbers().value(t) is True for t in literals) else None


@dataclass
class _Search:
    literals: Sequence[Term]
    env: dict[Term, int]
    moves: dict[Term, int] = field(default_factory=dict)
    left: int = TRIES

    def numbers(self, s: Term | None = None, v: int = 0) -> Numbers:
        """The numbers, one of them changed."""
        self.left -= 1
        return Numbers(self.env if s is None else {**self.env, s: v}, 0)

    def best(self, broken: Sequence[Term]) -> tuple[list[Term], Term, int] | None:
        """The move for the last condition that does not hold, after which fewest do not: those, the symbol, its
        value."""
        out: tuple[list[Term], Term, int] | None = None
        wanted = broken[-1]
        for s in sorted(leaves(wanted), key=lambda t: t.id):
            if self.moves.get(s, 0) >= MOVES:
                continue
            mine = [t for t in self.literals if s in leaves(t)]
            others = [t for t in broken if s not in leaves(t)]
            for v in self.values(wanted, s):
                if self.left <= 0:
                    return None
                now = self.numbers(s, v)
                after = others + [t for t in mine if now.value(t) is not True]
                if wanted not in after and (out is None or len(after) < len(out[0])):
                    out = after, s, v
        return out

    def values(self, t: Term, s: Term) -> Iterator[int]:
        """Values of the symbol at which the condition may hold."""
        v = self.env[s]
        if s.type == T.BOOL:
            yield 1 - v
        elif t.op in RELATIONS and interpreted(t):
            yield from self.crossings(t, s)
        elif t.op in ("and", "or"):
            for a in t.args:
                if s in leaves(a):
                    yield from self.values(a, s)
        elif t.op == "not":
            yield from (v + 1, v - 1)

    def crossings(self, t: Term, s: Term) -> Iterator[int]:
        """Where b - a begins to be large enough: at once if it is linear in the symbol, else in longer and longer
        steps."""
        v, least = self.env[s], RELATIONS[t.op]
        here, next_ = self.gap(t, s, v), self.gap(t, s, v + 1)
        if here is None or next_ is None:
            return
        if slope := next_ - here:
            k = -(-(least - here) // abs(slope))
            yield v + k if slope > 0 else v - k
            return
        for sign in (1, -1):
            steps = (v + sign * k for k in FAR)
            yield from [w for w in steps if (g := self.gap(t, s, w)) is not None and g >= least][:1]

    def gap(self, t: Term, s: Term, v: int) -> int | None:
        """b - a where the symbol is v."""
        now = self.numbers(s, v)
        low, high = (now.value(a) for a in t.args)
        return None if low is None or high is None else high - low

"""Numbers for a case's dims and scalars: small and telling apart for lifting, then larger ones that cross block
sizes, for checks; at last each dim beyond the largest block that the kernel has.

Small distinct primes where `where` allows them, else the smallest numbers it allows. Among assignments that meet
`where` a clear one is taken: dims that are equal, that did not change since an earlier assignment, or that keep the
same distance or sum cannot be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations, islice, product

import numpy as np

from ..errors import CaseError
from ..language.case_spec import Spec
from ..terms import construct as T
from ..terms.fit import value
from ..terms.term import Term
from .declaration import Case, held
from .parts import may_be_less_than_one

Dims = dict[str, int | float]
SMALL = (3, 5, 7, 11, 2, 13, 17, 19)  # tried first
OTHER = (4, 6, 8, 9, 10, 12, 14, 15, 16, 1, 18, 20, 24, 32, 48, 64, 80, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192)
BELOW_ONE = (0, -3, -5, -7, -11, -2, -1, -13, -17, -64, -100, -128, -1000)  # of integer scalars that may not be larger
POWERS_OF_TWO = (8, 16, 4, 32)  # for one dim each
WHERE_NUMBERS = 8  # of `where`, beside which scalars are drawn
LARGE = (67, 131, 37, 83, 23, 19, 101, 53, 257, 17, 13, 11, 7, 521, 1031, 2053)
ROUND = (64, 128, 96, 80, 48, 144, 160, 192, 256, 32, 320, 384, 640, 24, 16, 8, 1024, 2048)
LONG = (2053, 1031, 521, 257, 2048, 1024, 640, 512, 384, 256, 192, 128)
RUN_INPUT_ELEMENTS = 100_000  # of the largest input of a run
CROSSING_INPUT_ELEMENTS = 8000  # of the largest input where every dim should be beyond a block
LARGEST_TRIED = 1_000_000  # of the numbers of `where`
NODES = 20_000  # of the search for a first assignment
LENGTHS, SHORTER = ((11, 17), 9), ((5, 9), 6)  # powers of two of a long dim, and of the others at most; where no such
# assignment is small enough, the second ones
DRAWS = 1000  # of a scalar, until it is another one
STARTS = 100  # assignments that meet `where`, the best of which is improved one dim at a time
PRIMES = {p for p in range(2, 2100) if all(p % d for d in range(2, math.isqrt(p) + 1))}


def choose(case: Case, count: int, seed: int = 0) -> list[Dims]:
    """`count` assignments of numbers to the case's dims and scalars that meet `where`: two small ones, then larger
    ones. Raises CaseError if none is found."""
    rng = np.random.default_rng(seed)
    chosen: list[Dims] = []
    for k in range(count):
        chosen.append(_assignment(case, chosen, k, rng))
    return chosen


def another(case: Case, earlier: Sequence[Dims], seed: int = 0) -> Dims:
    """One more small assignment, unlike the earlier ones."""
    return _assignment(case, list(earlier), 1, np.random.default_rng([seed, len(earlier)]))


def around(case: Case, fixed: Mapping[str, int | float], like: Mapping[str, int | float]) -> Dims | None:
    """A small assignment that meets `where`, with some numbers fixed and the others those of `like` where they may be;
    None if none is found."""
    near = {**like, **fixed}
    search = _Search(case, {n: near[n] for n, s in case.scalars.items() if _is_drawn(s)})
    pools: dict[str, Sequence[int]] = {
        n: (int(fixed[n]),) if n in fixed else (int(like[n]), *SMALL, *OTHER) for n in search.names
    }
    best = search.best(pools, lambda d: elements(case, d) / 60 + 20 * sum(d[n] != near[n] for n in search.names))
    return None if best is None else {n: best[n] for n in (*case.names, *case.scalars)}


def beyond(case: Case, block: int, seen: Sequence[Dims], like: Dims) -> Iterator[Dims]:
    """For each dim that no assignment seen has beyond the block: one where it is, by two blocks and a bit if `where`
    and RUN_INPUT_ELEMENTS let it, and where the others are small as in `like`."""
    for n in case.names:
        if max(d[n] for d in seen) <= block:
            tried = (around(case, {n: v}, like) for v in (2 * block + 3, block + 1, 2 * block, 4 * block))
            found = next((d for d in tried if d is not None and elements(case, d) <= RUN_INPUT_ELEMENTS), None)
            if found is not None:
                yield found


def of_small_scalars(case: Case, like: Dims) -> Iterator[Dims]:
    """One integer scalar each at a number that elements of index tensors have too, as of a padding index."""
    whole = [n for n, s in case.scalars.items() if not _is_drawn(s)]
    for n, v in product(whole, (1, 2, 0)):
        found = around(case, {n: v}, like)
        if found is not None and elements(case, found) <= RUN_INPUT_ELEMENTS:
            yield found


def unpadded(case: Case, like: Dims) -> Iterator[Dims]:
    """Sizes that are powers of two, so that no tile has lanes beyond the elements: all of them, or one each."""
    powers = {n: POWERS_OF_TWO[k % len(POWERS_OF_TWO)] for k, n in enumerate(case.names)}
    for fixed in (powers, *({n: v} for n, v in powers.items() if len(powers) > 1)):
        found = around(case, fixed, like)
        if found is not None and elements(case, found) <= RUN_INPUT_ELEMENTS:
            yield found
            if len(fixed) == len(powers):
                return


def _assignment(case: Case, earlier: Sequence[Dims], k: int, rng: np.random.Generator) -> Dims:
    for about in (*[None] * 5, *_about(case)):
        scalars = {n: _draw(s, earlier, n, rng, about) for n, s in case.scalars.items() if _is_drawn(s)}
        search = _Search(case, scalars)
        small = _wanted(search, earlier, 0)
        best = search.best(*_wanted(search, earlier, k)) or search.best(*small) or search.best(search.told(), small[1])
        if best is not None:
            return {n: best[n] for n in (*case.names, *case.scalars)}
    asked, numbers = "its tensors can have", ""
    if case.written != "True":
        asked, numbers = f"meet where={case.written!r}", " and the numbers of `where`"
    what = f"case {case.name}: no sizes of {', '.join(search.names)} were found that {asked}"
    why = f"small numbers, multiples, powers of two up to 8192{numbers} were tried"
    raise CaseError(what, case.place, why, "write a dim that depends on others as an expression, e.g. 2*H")


def _is_drawn(s: Spec) -> bool:
    return s.is_float or s.dtype == "bool"


def _about(case: Case) -> list[tuple[float, float]]:
    """Where scalars are drawn that `where` keeps from 0.1 to 0.9: beside its numbers, s > 17.25."""
    if not any(s.is_float for s in case.scalars.values()):
        return []
    found = dict.fromkeys(float(t.attr) for t in case.where.walk() if t.is_const and math.isfinite(t.attr))
    return [side for c in list(found)[:WHERE_NUMBERS] for side in ((c, c + 1), (c - 1, c))]


def _draw(
    s: Spec, earlier: Sequence[Dims], name: str, rng: np.random.Generator, about: tuple[float, float] | None = None
) -> float | bool:
    """A number with few digits, another one each time where its dtype has others; it is exact in that and in f32, so
    that it comes back as it was passed. `about`: between which numbers, where the case allows them."""
    if s.dtype == "bool":
        return len(earlier) % 2 == 0
    low, high = (None if e is None else value(e, {}) for e in (s.low, s.high))
    a, b = (0.1, 0.9) if low is None else (low, low + 1.0 if high is None else high)
    if about is not None and (low is None or low <= about[0]) and (high is None or about[1] <= high):
        a, b = about
    found = a
    for _ in range(DRAWS):
        v = held(round(a + (b - a) * float(rng.uniform(0.05, 0.95)), 4), s.dtype)
        if a <= v < b or s.dtype in ("f32", "f64"):
            found = v
            if all(v != d[name] for d in earlier):
                return v
    return found


def _wanted(
    search: _Search, earlier: Sequence[Dims], k: int
) -> tuple[dict[str, Sequence[int]], Callable[[Dims], float]]:
    """Candidates for each dim and what to minimise. k = 2: every dim beyond a block as far as the budget allows; from
    3 on, one dim after the other very long and the rest small."""
    case, names = search.case, search.names
    small: dict[str, Sequence[int]] = dict.fromkeys(names, SMALL + OTHER)
    if k == 2:
        return dict.fromkeys(names, LARGE + SMALL + ROUND + OTHER), lambda d: _shortage(search, d) + _blur(d, earlier)
    if k > 2 and names:
        long = names[(k - 3) % len(names)]
        return {
            **small,
            long: LONG + LARGE + ROUND,
        }, lambda d: _blur(d, earlier) + elements(case, d) / 200 - 300 * math.log(d[long])
    return small, lambda d: _blur(d, earlier) + elements(case, d) / 60 + math.prod(abs(d[n]) for n in names) / 40


def _shortage(search: _Search, d: Dims) -> float:
    """Every dim should cross a block of 64, and none needs more than 131; the budget comes first."""
    over = 1000 * max(0.0, math.log(max(elements(search.case, d), 1) / CROSSING_INPUT_ELEMENTS))
    only = 2053 if len(search.names) == 1 else 131
    return over - 40 * sum(math.log(max(1, min(d[n], only))) for n in search.names)


def elements(case: Case, d: Mapping[str, int | float]) -> int:
    """How many the largest input has."""
    return max((math.prod(case.shape(n, d)) for n in case.tensors), default=0)


def _blur(d: Dims, earlier: Sequence[Dims]) -> float:
    """How badly these numbers tell dims, their sums and products apart. (N // 2 is (N - 1) / 2 for odd N: parities
    have to change.)"""
    dims = {n: v for n, v in d.items() if isinstance(v, int) and not isinstance(v, bool)}
    pairs = list(combinations(dims, 2))
    equal = sum(dims[a] == dims[b] for a, b in pairs)
    stale = sum(v in (e[n] for e in earlier) for n, v in dims.items())
    parallel = sum(d[a] - d[b] == e[a] - e[b] for a, b in pairs for e in earlier)
    parallel += 3 * sum(d[a] * e[b] == e[a] * d[b] for a, b in pairs for e in earlier)
    same = sum(f(d[a], d[b]) == f(e[a], e[b]) for a, b in pairs for e in earlier for f in (_sum, _product))
    chance = sum(f(d[a], d[b]) == v for a, b in pairs for v in dims.values() for f in (_sum, _product))
    unusual = sum(v not in PRIMES for v in dims.values()) + sum(15 + 150 * (v < 2) for v in dims.values() if v <= 2)
    parity = sum(all((v - e[n]) % 2 == 0 for e in earlier) for n, v in dims.items()) if earlier else 0
    full = sum(v > 2 and v & (v - 1) == 0 for v in dims.values())  # fills its block: no masked lane
    return 20 * full + 40 * parity + 200 * equal + 300 * stale + 6 * parallel + 6 * same + 2 * chance + 4 * unusual


def _sum(a: float, b: float) -> float:
    return a + b


def _product(a: float, b: float) -> float:
    return a * b


class _Search:
    """Assignments that meet `where`: dims in order, each condition checked as soon as its names have numbers."""

    def __init__(self, case: Case, scalars: Mapping[str, float]) -> None:
        self.case, self.scalars = case, dict(scalars)
        integers = [n for n, s in case.scalars.items() if not _is_drawn(s)]
        self.below = {n for n in integers if not _may_be_positive(case, n)}
        self.conditions = [(t, _names(t)) for t in _conjuncts(case, self.below)]
        entangled = [n for t, names in self.conditions if len(names) > 1 for n in sorted(names - self.scalars.keys())]
        self.names = list(dict.fromkeys((*entangled, *case.names, *integers)))

    def best(self, candidates: Mapping[str, Sequence[int]], badness: Callable[[Dims], float]) -> Dims | None:
        """The least bad assignment found: the best of some, improved one dim at a time."""
        for width in (6, 14, 40):
            pools = {n: self.pool(n, candidates[n], width) for n in self.names}
            found = list(islice(self.assignments(pools), STARTS))
            if found:
                wide = {n: self.pool(n, candidates[n], max(20, width)) for n in self.names}
                return self.improved(min(found, key=badness), wide, badness)
        return None

    def improved(self, d: Dims, pools: Mapping[str, Sequence[int]], badness: Callable[[Dims], float]) -> Dims:
        """Descent in one dim at a time, and in two that a condition ties together, until nothing gets better."""
        tied = {p for _, names in self.conditions for p in combinations(sorted(names - self.scalars.keys()), 2)}
        for _ in range(6):
            before = d
            for group in [*((n,) for n in self.names), *sorted(tied)]:
                moves = ({**d, **dict(zip(group, v, strict=True))} for v in product(*(pools[n] for n in group)))
                d = min([d, *(e for e in moves if self.allows(e))], key=badness)
            if d == before:
                break
        return d

    def allows(self, d: Dims) -> bool:
        return all(value(t, d) is True for t, _ in self.conditions) and self.case.holds(d)

    def pool(self, name: str, candidates: Sequence[int], width: int) -> list[int]:
        """The first numbers that the conditions on this dim alone allow."""
        alone = [t for t, names in self.conditions if names - self.scalars.keys() == {name}]
        tried = BELOW_ONE if name in self.below else candidates
        allowed = (v for v in dict.fromkeys(tried) if all(value(t, {**self.scalars, name: v}) is True for t in alone))
        return [v for _, v in zip(range(width), allowed, strict=False)]

    def told(self) -> dict[str, Sequence[int]]:
        """Sizes at and beside the numbers of the conditions, and others."""
        terms = [s.attr for t, _ in self.conditions for s in t.walk() if s.is_const and abs(s.attr) <= LARGEST_TRIED]
        beside = sorted({int(n) + d for n in terms for d in (-1, 0, 1) if n + d >= 1})
        return dict.fromkeys(self.names, (*SMALL, *OTHER, *beside))

    def assignments(self, pools: Mapping[str, Sequence[int]]) -> Iterator[Dims]:
        """Depth first, NODES partial ones at most."""
        budget = [NODES]

        def extend(k: int, d: Dims) -> Iterator[Dims]:
            budget[0] -= 1
            if k == len(self.names):
                yield from [d] * self.case.holds(d)
                return
            name = self.names[k]
            ready = d.keys() | {name}
            due = [t for t, names in self.conditions if name in names and names <= ready]
            for v in pools[name]:
                e = {**d, name: v}
                if budget[0] > 0 and all(value(t, e) is True for t in due):
                    yield from extend(k + 1, e)

        yield from extend(0, dict(self.scalars))


def _names(t: Term) -> set[str]:
    return {s.attr for s in t.walk() if s.op in ("size", "scalar")}


def _may_be_positive(case: Case, name: str) -> bool:
    """Whether an integer scalar may be at least 1, as far as conditions on it alone say."""
    alone = [t for t in _where(case) if _names(t) == {name}]
    free = may_be_less_than_one(case.scalars[name])
    return not free or any(all(value(t, {name: v}) is True for t in alone) for v in (*SMALL, *OTHER))


def _where(case: Case) -> list[Term]:
    return list(case.where.args) if case.where.op == "and" else [case.where]


def _conjuncts(case: Case, below: Collection[str] = ()) -> list[Term]:
    """`where` in its parts, the limits of integer scalars, and positive bounds of index tensors. `below`: the integer
    scalars that `where` keeps below 1; others are drawn from 1 on."""
    out = _where(case)
    for n, s in case.scalars.items():
        if not _is_drawn(s) and n not in below:
            out += [T.make("le", s.low or T.const(1), T.size(n))]
            out += [T.make("lt", T.size(n), s.high)] if s.high is not None else []
    return out + [T.make("le", 1, s.high) for s in case.tensors.values() if s.high is not None and not s.is_float]


def varied(
    case: Case, count: int, seed: int = 0, earlier: Sequence[Dims] = (), most: int = RUN_INPUT_ELEMENTS
) -> Iterator[Dims]:
    """Up to `count` random assignments that meet `where`, unlike each other and the earlier ones: sizes from 1 on, at
    and beside powers of two, one dim far beyond any block; the largest input has at most `most` elements,
    a fifth of that in most of them."""
    rng = np.random.default_rng([seed, 7])
    seen = [dict(e) for e in earlier]
    for k in range(count):
        scalars = {n: _draw(s, seen, n, rng) for n, s in case.scalars.items() if _is_drawn(s)}
        search = _Search(case, scalars)
        limit = most if k % 6 == 2 else most / 5
        for lengths in (LENGTHS, SHORTER):
            pools = {
                n: search.pool(n, _random(rng, k, j, len(search.names), *lengths), 12)
                for j, n in enumerate(search.names)
            }
            pools = {n: p or search.pool(n, SMALL + OTHER + ROUND, 12) for n, p in pools.items()}
            if (d := _light(search, pools, limit, seen)) is not None:
                seen.append({n: d[n] for n in (*case.names, *case.scalars)})
                yield seen[-1]
                break


def _light(
    search: _Search, pools: Mapping[str, Sequence[int]], limit: float, seen: Sequence[Mapping[str, int | float]]
) -> Dims | None:
    """The first assignment, of a few, whose inputs have at most `limit` elements and that is none of those seen."""
    case = search.case
    for d in islice(search.assignments(pools), 200):
        if elements(case, d) <= limit and math.prod(d[n] for n in case.names) <= 100 * limit and d not in seen:
            return d
    return None


def _random(rng: np.random.Generator, k: int, j: int, dims: int, lengths: tuple[int, int], size: int) -> list[int]:
    """Candidates for dim j of assignment k, in random order; each of the first ones, one for each dim, and
    every third one after them has one dim that is very long: powers of two from 2^lengths[0] to 2^lengths[1]. The
    others are below 2^size."""
    turn = k if k < dims else (k // 3) % max(dims, 1) if k % 3 == 2 else None  # whose turn it is to be long
    if turn is None and k % 6 == 4:  # full blocks in every dim
        return [int(v) for v in rng.permutation([64, 128, 192, 256, 384])] + [32, 16, 8, 512, 1024]
    long = turn == j
    beside = turn is not None and not long  # the others are short then
    powers = [2**p for p in (range(*lengths) if long else range(2) if beside else range(size + 1))]
    near = [v for p in powers for v in (p, p - 1, p + 1, 3 * p // 2, 3 * p) if v > 0]
    most = 3 if beside else size
    ordinary = [int(2**x) for x in rng.uniform(*lengths, 12) if long] or [int(2**x) for x in rng.uniform(0, most, 30)]
    return [int(v) for v in rng.permutation([*near, *ordinary, *ordinary])]

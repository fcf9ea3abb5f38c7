"""Upper bounds of integer terms without program ids, lanes and counters: what they are at most, over the sizes.

    e <= B, q >= 0          p = q * e + r          x % n <= n - 1, min(a, b) <= a, n > 0
    ---------------------------------------
    p <= q * B + r

Every step is an inequality whose side condition was proved, so that a bound is one wherever the facts hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from .quotient import Ask, Poly, atoms, divide, expand, minus, plus, reduce, scale, times, to_term

Bound = tuple[Poly, Poly]  # (e, B): e <= B
DEPTH = 16
TRIES = 200  # steps that one search may take

Has = Callable[[Term], bool]


def upper(t: Term, variable: Has, facts: Iterable[Term], ask: Ask) -> Term | None:
    """A term that is at least t wherever the facts hold, without atoms that `variable` says must go."""
    bounds = list(_from_facts(facts, variable))
    budget = [TRIES]
    found = _upper(expand(t), variable, bounds, ask, DEPTH, budget)
    return None if found is None else to_term(found)


def bounded(goal: Term, ask: Ask) -> bool:
    """Whether a < b or a <= b with products of unknown numbers is shown by `at_most`."""
    if goal.op not in ("lt", "le") or any(a.type != T.INT for a in goal.args):
        return False
    gap = minus(expand(goal.args[0]), expand(goal.args[1]))
    if not any(len(m) > 1 for m in gap):
        return False
    return at_most(T.add(goal.args[0], int(goal.op == "lt")), goal.args[1], ask)


def at_most(a: Term, b: Term, ask: Ask) -> bool:
    """a <= b, shown by bounding factors of products by terms that they are known to be less than."""
    gap = reduce(T.sub(a, b), ask)
    alternatives = sorted({t for m in expand(gap) for t in m}, key=lambda t: t.id)
    return _not_positive(expand(gap), alternatives, ask, DEPTH, [TRIES])


def _not_positive(p: Poly, alternatives: Sequence[Term], ask: Ask, depth: int, budget: list[int]) -> bool:
    if not any(len(m) > 1 for m in p):
        return ask(T.make("le", to_term(p), 0))
    if depth == 0:
        return False
    for t in sorted({t for m, c in p.items() if len(m) > 1 and c > 0 for t in m}, key=lambda t: -t.id):
        for top in _tops(t, alternatives, ask):
            q, r = divide(p, {(t,): 1})
            if budget[0] <= 0:
                return False
            budget[0] -= 1
            if _positive(q, ask) and _not_positive(
                plus(times(q, expand(top)), r), alternatives, ask, depth - 1, budget
            ):
                return True
    return False


def _tops(t: Term, alternatives: Sequence[Term], ask: Ask) -> Iterator[Term]:
    """Terms that t does not exceed."""
    if t.op == "min":
        yield from t.args
    if t.op in ("floordiv", "mod"):
        yield from (T.sub(n, 1) for n in alternatives if n is not t and n.op != "const" and ask(T.make("lt", t, n)))


def _from_facts(facts: Iterable[Term], variable: Has) -> Iterator[Bound]:
    """a < b and a <= b as e <= B, e with variables and B without where possible."""
    found: list[Bound] = []
    for f in sorted(facts, key=lambda t: t.id):
        if f.op not in ("lt", "le", "eq") or any(a.type != T.INT for a in f.args):
            continue
        gap = minus(expand(f.args[0]), expand(f.args[1]))
        for p in (gap, scale(gap, -1)) if f.op == "eq" else (gap,):
            left = {m: c for m, c in p.items() if any(map(variable, m))}
            right = minus({(): -1 if f.op == "lt" else 0}, {m: c for m, c in p.items() if m not in left})
            if left:
                found.append((left, {m: c for m, c in right.items() if c}))
    yield from sorted(found, key=lambda b: -len(b[0]))


def _upper(p: Poly, variable: Has, bounds: Sequence[Bound], ask: Ask, depth: int, budget: list[int]) -> Poly | None:
    left = sorted({t for t in atoms(p) if variable(t)}, key=lambda t: -t.id)
    if not left:
        return p
    for e, b in [*bounds, *(x for t in left for x in _of_atom(t, variable, bounds, ask, depth))]:
        if depth == 0 or budget[0] <= 0:
            return None
        q, r = divide(p, e)
        if not q or any(map(variable, atoms(q))) or not _positive(q, ask):
            continue
        budget[0] -= 1
        found = _upper(plus(times(q, b), r), variable, bounds, ask, depth - 1, budget)
        if found is not None:
            return found
    return None


def _of_atom(t: Term, variable: Has, bounds: Sequence[Bound], ask: Ask, depth: int) -> Iterator[Bound]:
    """t <= B and -t <= B, of what t is."""
    p: Poly = {(t,): 1}
    if t.op in ("mod", "floordiv") and not ask(T.make("lt", 0, t.args[1])):
        return
    if t.op == "mod":
        yield p, minus(expand(t.args[1]), {(): 1})
        yield scale(p, -1), {}
    if t.op == "floordiv":
        n = expand(t.args[1])
        yield times(p, n), expand(t.args[0])
        top = _upper(expand(t.args[0]), variable, bounds, ask, depth - 1, [20]) if depth else None
        if top is not None and not any(map(variable, atoms(n))):
            yield p, expand(T.make("floordiv", to_term(top), t.args[1]))
        if ask(T.make("le", 0, t.args[0])):
            yield scale(p, -1), {}
    if t.op in ("min", "max"):
        for a in t.args:
            yield (p if t.op == "min" else scale(p, -1)), (expand(a) if t.op == "min" else scale(expand(a), -1))
        if t.op == "min" and all(ask(T.make("le", 0, a)) for a in t.args):
            yield scale(p, -1), {}


def _positive(q: Poly, ask: Ask) -> bool:
    """Is it at least 0?"""
    if all(c > 0 and all(ask(T.make("le", 0, t)) for t in m) for m, c in q.items()):
        return True
    return bool(q) and any(m for m in q) and ask(T.make("le", 0, to_term(q)))

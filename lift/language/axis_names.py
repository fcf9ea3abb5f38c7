"""Short names for axes: after their dims, in lower case; bound axes take the lowest name not free in their body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..terms import construct as T
from ..terms.term import FOLDS, Axis, Term


def candidates(size: Term) -> Iterator[str]:
    """N gives n, n', n'' ...; a number or an expression gives i, j, k, l, i', j' ..."""
    bases = [size.attr.lower()] if size.op == "size" else list("ijkl")
    suffix = ""
    while True:
        yield from (b + suffix for b in bases)
        suffix += "'"


def lowest(size: Term, taken: set[str]) -> str:
    """The first candidate that is not taken."""
    return next(n for n in candidates(size) if n not in taken)


def letters(shape: Sequence[Term]) -> list[str]:
    """Distinct names for the axes of a tensor."""
    out: list[str] = []
    for n in shape:
        out.append(lowest(n, set(out)))
    return out


def renamed(t: Term) -> Term:
    """The term with every bound axis named `lowest`, from the outside in. Free axes keep their names."""
    memo: dict[tuple[int, frozenset[tuple[Axis, Axis]]], Term] = {}

    def go(t: Term, env: dict[Axis, Axis]) -> Term:
        live = {a: b for a, b in env.items() if a in t.free}
        key = (t.id, frozenset(live.items()))
        if key not in memo:
            memo[key] = step(t, live)
        return memo[key]

    def step(t: Term, env: dict[Axis, Axis]) -> Term:
        if t.op == "axis":
            return T.axis(env.get(t.attr, t.attr))
        if t.op in FOLDS:
            body = t.args[0]
            free = {env.get(a, a).name for a in body.free - {t.attr}}
            short = Axis(lowest(t.attr.size, free), t.attr.size)
            return T.fold(t.op, short, go(body, {**env, t.attr: short}))
        return T.rebuild(t, tuple(go(a, env) for a in t.args))

    return go(t, {})

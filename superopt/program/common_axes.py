"""Names of the axes of several formulas: one name has one size, and an axis has a name that others of its size have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, product

from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.term import Axis, Term

from .splitting import in_order


@dataclass
class Names:
    """Names of axes: one name has one size."""

    taken: set[str]
    known: dict[Term, list[str]] = field(default_factory=dict)

    def of(self, size: Term, others: set[str]) -> str:
        """The first name for an axis of this size that is not among the others."""
        names = self.known.setdefault(size, [])
        if (found := next((n for n in names if n not in others), None)) is not None:
            return found
        wish = [size.attr.lower()] if size.op == "size" and len(size.attr) == 1 else []
        letters = (f"{c}{k or ''}" for k in count() for c in "ijklpqrstuvwabcdefghmnoxyz")
        names.append(next(n for n in (*wish, *islice(letters, len(self.taken) + 1)) if n not in self.taken))
        self.taken.add(names[-1])
        return names[-1]

    def options(self, axes: Sequence[Axis]) -> Iterator[dict[Axis, Axis]]:
        """Names for the axes of an output: all known ones, in every order."""
        sizes = [I.normal(a.size) for a in axes]
        for k, n in enumerate(sizes):
            self.of(n, {*self.known.get(n, ())[: sizes[:k].count(n)]})
        for names in product(*(self.known[n] for n in sizes)):
            if len({*names}) == len(names):
                yield {a: Axis(x, n) for a, x, n in zip(axes, names, sizes, strict=True)}

    def named(self, t: Term, names: Mapping[Axis, Axis]) -> Term:
        """The term with these names of its free axes, and those of bound axes as few as can be."""
        done: dict[tuple[int, frozenset[tuple[Axis, Axis]]], Term] = {}

        def go(t: Term, env: dict[Axis, Axis]) -> Term:
            env = {a: b for a, b in env.items() if a in t.free}
            key = t.id, frozenset(env.items())
            if key not in done:
                done[key] = step(t, env)
            return done[key]

        def step(t: Term, env: dict[Axis, Axis]) -> Term:
            if t.op == "axis":
                return T.axis(env[t.attr])
            if t.op not in T.FOLDS:
                made = {a: go(a, env) for a in in_order(t)}
                return T.rebuild(t, tuple(made[a] for a in t.args))
            free = {env[a].name for a in t.args[0].free - {t.attr}}
            size = I.normal(t.attr.size)
            return T.fold(t.op, over := Axis(self.of(size, free), size), go(t.args[0], {**env, t.attr: over}))

        return go(t, dict(names))

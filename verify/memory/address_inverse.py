"""Who writes an element: equations between an index and program ids, lanes and counters, solved.

    a * x + b * y + c = L, a > b > 0          x = (L - c) // a, y = (L - c) % a // b
    x // n = q, x % n = r                     x = q * n + r
    idx[x] = v, distinct elements             x = the position of v in idx
    nothing said about x                      x = 0; the last iteration, for a counter

A solution is a guess. `stores` proves that it is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..integers.quotient import (
    Ask,
    Poly,
    canonical,
    expand,
    leading,
    minus,
    order,
    plus,
    rebuild,
    reduce,
    scale,
    times,
    to_term,
)
from .element_position import DistinctInputs, known, position


@dataclass
class System:
    """`sizes`: unknown -> number of its values. `distinct`: inputs without two equal elements. `known`: what terms in
    unknowns are, found so far; `positions`: what is known of those of elements, and `found`: that there are such."""

    sizes: Mapping[Term, Term]
    ask: Ask
    distinct: DistinctInputs = field(default_factory=dict)
    known: dict[Term, Term] = field(default_factory=dict)
    open: list[tuple[Term, Term]] = field(default_factory=list)  # term in unknowns = value
    free: set[Term] = field(default_factory=set)  # unknowns that no equation determines
    positions: set[Term] = field(default_factory=set)
    found: list[Term] = field(default_factory=list)

    def require(self, t: Term, value: Term) -> None:
        self.open.append((canonical(t), value))

    def solve(self) -> dict[Term, Term] | None:
        """unknown -> value for every unknown; None where an equation is not linear in digits."""
        self.free = set(self.sizes)
        while True:
            while self._step() or self._compose() or self._locate() or self._assume_half():
                pass
            rest = [u for u in self.sizes if u not in self.known]
            if self.open:
                return None
            if not rest:
                return {u: self.known[u] for u in self.sizes}
            self.known[rest[0]] = self._default(rest[0])

    def value(self, t: Term) -> Term:
        """The term with what is known put in."""
        return reduce(_rewrite(t, self.known), self.ask)

    def has_unknown(self, t: Term) -> bool:
        return any(s in self.sizes for s in t.walk())

    def _step(self) -> bool:
        """Solve one equation."""
        for k, (t, value) in enumerate(self.open):
            p = expand(reduce(_rewrite(t, {k: v for k, v in self.known.items() if k is not t}), self.ask))
            digits = self._digits(p)
            if digits is None:
                continue
            if digits and (found := self._read_off(digits, value)) is None:
                continue
            del self.open[k]
            if digits:
                self._learn(found or {})
            return True
        return False

    def _learn(self, found: Mapping[Term, Term]) -> None:
        """Also under the name that a node has once its arguments are known: x % min(n, 8) as x % 3."""
        self.known.update(found)
        self.free -= found.keys()
        for t, v in list(self.known.items()):
            if t.args and any(map(self.has_unknown, t.args)):
                now = rebuild(t, tuple(self.value(a) for a in t.args))
                if now.op == t.op and self.has_unknown(now):
                    self.known.setdefault(now, v)

    def _digits(self, p: Poly) -> dict[Term | None, Poly] | None:
        """node -> coefficient; the part without unknowns is under None. None if p is not linear in nodes."""
        out: dict[Term | None, Poly] = {}
        for m, c in p.items():
            nodes = [t for t in m if self.has_unknown(t)]
            if len(nodes) > 1:
                return None
            node = nodes[0] if nodes else None
            rest = tuple(t for t in m if t is not node)
            out[node] = plus(out.get(node, {}), {rest: c})
        return out if set(out) - {None} else {}

    def _read_off(self, digits: Mapping[Term | None, Poly], value: Term) -> dict[Term, Term] | None:
        """Mixed radix, most significant digit first; a digit that counts down is size - 1 - one that counts up."""
        rest = minus(expand(value), digits.get(None, {}))
        places: list[tuple[Poly, Term, Term | None]] = []
        for node, c in digits.items():
            if node is None:
                continue
            if leading(c)[1] > 0:
                places.append((c, node, None))
            elif (last := self._last(node)) is None:
                return None
            else:
                places.append((scale(c, -1), node, last))
                rest = minus(rest, times(c, expand(last)))
        places.sort(key=lambda p: (order(leading(p[0])[0])[0], abs(leading(p[0])[1])), reverse=True)
        out: dict[Term, Term] = {}
        left = to_term(rest)
        for c, node, last in places:
            digit = reduce(T.make("floordiv", left, to_term(c)), self.ask)
            left = reduce(T.make("mod", left, to_term(c)), self.ask)
            out[node] = digit if last is None else canonical(T.sub(last, digit))
        return out

    def _last(self, node: Term) -> Term | None:
        size = self.sizes.get(node) or (node.args[1] if node.op == "mod" else None)
        if size is None or self.has_unknown(size := self.value(size)):
            return None
        return T.sub(size, 1)

    def _compose(self) -> bool:
        """x // n = q and x % n = r are known: x = q * n + r."""
        for t, r in list(self.known.items()):
            if t.op != "mod":
                continue
            x, n = t.args
            q = self._quotient(x, n)
            size = self.value(n)
            if x in self.known or q is None or self.has_unknown(size) or not self.has_unknown(x):
                continue
            value = reduce(T.add(T.mul(q, size), r), self.ask)
            self._learn({x: value})
            if x not in self.sizes:
                self.require(x, value)
            return True
        return False

    def _locate(self) -> bool:
        """An element of an input is known: its index is the position of that number."""
        for t, v in list(self.known.items()):
            if t.op != "read" or t.attr not in self.distinct or t.args[0] in self.known or not self.has_unknown(t):
                continue
            x, elements = t.args[0], self.distinct[str(t.attr)]
            p = position(t, v, elements.number)
            self.positions |= known(p, t, v, elements)
            self.found += [T.make("le", 0, p)] if T.make("le", 0, p) not in self.found else []
            self._learn({x: p})
            if x not in self.sizes:
                self.require(x, p)
            return True
        return False

    def _quotient(self, x: Term, n: Term) -> Term | None:
        for t in (T.make("floordiv", x, n), reduce(T.make("floordiv", x, n), self.ask)):
            if t in self.known:
                return self.known[t]
        return None

    def _assume_half(self) -> bool:
        """Only the quotient of x matters: its remainder is 0. Only its remainder does: its quotient is 0."""
        for t in list(self.known):
            if t.op not in ("floordiv", "mod") or t.args[0] in self.known or not self.has_unknown(t.args[0]):
                continue
            other = T.make("mod" if t.op == "floordiv" else "floordiv", *t.args)
            if other not in self.known and not any(other in set(s.walk()) for s, _ in self.open):
                self._learn({other: T.const(0)})
                return True
        return False

    def _default(self, u: Term) -> Term:
        """0, or the last iteration."""
        last = self._last(u) if u.op == "axis" else None
        return T.const(0) if last is None or self.sizes[u].is_const else last


def _rewrite(t: Term, known: Mapping[Term, Term]) -> Term:
    """Largest known subterms first."""
    done: dict[int, Term] = {}

    def go(s: Term) -> Term:
        if s.id not in done:
            done[s.id] = known[s] if s in known else rebuild(s, tuple(go(a) for a in s.args)) if s.args else s
        return done[s.id]

    return go(t)

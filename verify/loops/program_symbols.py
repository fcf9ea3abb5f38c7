"""Names for what a program computes from its id alone, in proofs about values.

    pid_m = first + (pid % (G * n)) % size     a name q with 0 <= q < size, proved once from the definition

A statement that holds for every q with these facts holds for the q of each program: the questions become linear. Where
accesses go is asked of the definitions themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..integers.logical_index import asking
from ..integers.quotient import replace
from ..integers.solver import Solver
from ..memory.stores import holds
from ..model.program import PIDS
from ..normal_form.algebra import Undecided

DIVISIONS = {"floordiv", "mod", "truncdiv", "truncmod"}
EXTREMA = {"min": "le", "max": "ge"}


def factors(t: Term) -> Counter[Term]:
    return Counter(t.args if t.op == "mul" else (t,))


@dataclass
class Names:
    """`definitions`: name -> term over program ids; `facts` about the names, each proved of the definitions."""

    known: frozenset[Term]
    solver: Solver
    definitions: dict[Term, Term] = field(default_factory=dict)
    facts: set[Term] = field(default_factory=set)
    named: dict[Term, Term] = field(default_factory=dict)
    memo: dict[int, Term] = field(default_factory=dict)
    local: dict[int, bool] = field(default_factory=dict)
    symbolic: bool = False  # block sizes of several configurations are symbols: extrema of quotients are too hard then

    def replaced(self, t: Term) -> Term:
        """The term with names."""
        done = self.memo.get(t.id)
        if done is None:
            args = tuple(self.replaced(a) for a in t.args)
            done = T.rebuild(t, args) if args != t.args else t
            done = self.memo[t.id] = self.name(done) if self.nameable(done) else done
        return done

    def plain(self, t: Term) -> Term:
        """The term with definitions in place of names."""
        return replace(t, self.definitions) if self.definitions else t

    def nameable(self, t: Term) -> bool:
        """Whether a term gets a name: a division of integers over program ids and sizes by a term that is not a
        constant, or an extremum that contains such a name."""
        if t.type != T.INT or t.free or not self.is_local(t):
            return False
        if t.op in EXTREMA:  # of the others every argument is a case
            return any(s in self.definitions for s in t.walk())
        return t.op in DIVISIONS and not t.args[1].is_const

    def is_local(self, t: Term) -> bool:
        """Whether a term mentions a program id or a name, and nothing but integers of a program."""
        if t.id not in self.local:
            if t.op == "size":
                self.local[t.id] = t in PIDS or t in self.definitions
            else:
                whole = all(s.type == T.INT and s.op not in ("read", "carry", "opaque") for s in t.walk())
                self.local[t.id] = whole and any(self.is_local(a) for a in t.args)
        return self.local[t.id]

    def name(self, t: Term) -> Term:
        """The name of a term; a new one with what can be proved of it."""
        if t not in self.named:
            if self.symbolic and t.op in EXTREMA:
                raise Undecided("program ids are grouped by symbols")
            q = T.size(f"q{len(self.named)}")
            self.named[t] = q
            self.definitions[q] = self.plain(t)
            self.facts |= {g for g in self.candidates(q, t) if self.proved(g)}
        return self.named[t]

    def candidates(self, q: Term, t: Term) -> Iterable[Term]:
        """The bounds of q = t that are worth a proof, as boolean terms."""
        yield T.make("le", 0, q)
        if t.op in ("mod", "truncmod"):
            yield T.make("lt", q, t.args[1])
        elif t.op in ("floordiv", "truncdiv"):
            yield T.make("le", q, t.args[0])
            yield from (T.make("lt", q, n) for n in self.quotients(*t.args))
        elif t.op == "min":
            yield from (T.make("le", q, a) for a in t.args)
            yield T.make("le", 1, q)
        else:
            yield from (T.make("le", a, q) for a in t.args)

    def quotients(self, x: Term, divisor: Term) -> Iterable[Term]:
        """n where x < n d is known: x // d < n."""
        for f in sorted({*self.known, *self.facts}, key=lambda f: f.id):
            for part in f.args if f.op == "and" else (f,):
                if part.op == "lt" and part.args[0] is x:
                    rest = factors(part.args[1])
                    if not factors(divisor) - rest:
                        yield T.mul(*(rest - factors(divisor)).elements())

    def proved(self, goal: Term) -> bool:
        """Whether the definitions meet a condition on names."""
        return holds(self.plain(goal), asking(self.known, self.solver))

"""Degrees of values in the exponentials of a µGraph, and which of these must be multiplied by one factor.

Where an exponential is multiplied by t, a value is multiplied by t to its degree in it.

    exp: 1    mul, dot: sum of degrees    div: difference    add: they must agree    sum, accumulate, scale: the same

Exponentials whose degrees agree only together form a group, which has one t: in a / (a + b) the group is {a, b}. One
may have a power of it, as exp(2 S) beside exp(S): in c / (a + b)^2 that is 2 for c. In a group where every output has
degree 0, t may be anything that does not depend on an axis over which values of other degrees are summed. The
exponentials of other groups are `fixed`: t is 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .graph import Kernel, MuGraph, Operator

SAME = ("sum", "accumulate", "load", "store")
Exp = tuple[str, str]  # kernel, value
Degree = Mapping[Exp, int]  # in each group, by one of its exponentials; none is 0


def plus(a: Degree, b: Degree, times: int = 1) -> Degree:
    """a + times b."""
    every = {e: a.get(e, 0) + times * b.get(e, 0) for e in {**a, **b}}
    return {e: n for e, n in every.items() if n}


def plain(k: Kernel) -> list[Operator]:
    """The exponentials from which no maximum is subtracted yet."""
    less = {o.out for o in k.operators if o.op == "sub"}
    return [o for o in k.operators if o.op == "exp" and o.args[0] not in less]


class _Clash(Exception):
    """Degrees that must be 0 and are not, and what says so; in one group they may be 0 `together`."""

    def __init__(self, degree: Degree, why: str, together: bool = False) -> None:
        super().__init__(why)
        self.degree, self.why, self.together = degree, why, together

    @property
    def powers(self) -> Degree:
        """With what powers of one factor the groups are of degree 0 together, if there are such."""
        if not self.together or len(self.degree) < 2:
            return {}
        if sum(self.degree.values()) == 0:
            return dict.fromkeys(self.degree, 1)
        (a, m), (b, n), *more = self.degree.items()
        if more or m * n > 0 or max(abs(m), abs(n)) % min(abs(m), abs(n)):
            return {}
        return {a: max(1, abs(n) // abs(m)), b: max(1, abs(m) // abs(n))}


@dataclass
class Degrees:
    """`of`: the degree of every value of each kernel; `stored`: of tensors between kernels; `group`: one exponential of
    the group of each, and its own power of the factor; `fixed`: those of no group, and why."""

    graph: MuGraph
    fixed: dict[Exp, str] = field(default_factory=dict)
    of: dict[Exp, Degree] = field(default_factory=dict)
    stored: dict[str, Degree] = field(default_factory=dict)
    group: dict[Exp, tuple[Exp, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.group = {e: (e, 1) for k in self.graph.kernels for o in plain(k) for e in [(k.name, o.out)]}
        while (clash := self._measured()) is not None:
            if powers := clash.powers:
                first = min(powers)
                joined = {e: (first, powers[g] * n) for e, (g, n) in self.group.items() if g in powers}
                self.group |= joined
            else:
                self.fix(clash.degree, clash.why)

    @property
    def free(self) -> set[Exp]:
        """The exponentials that have a group."""
        return {*self.group} - {*self.fixed}

    def fix(self, groups: Degree | Sequence[Exp], why: str) -> None:
        """All exponentials of these groups are as they are written."""
        self.fixed |= {e: why for e, (g, _) in self.group.items() if g in groups and e not in self.fixed}

    def _measured(self) -> _Clash | None:
        """Degrees of all values; what disagrees."""
        self.of, self.stored = {}, {}
        try:
            for k in self.graph.kernels:
                for o in k.operators:
                    self._operator(k, o)
            for name, *_ in self.graph.program.outputs:
                if d := self.stored[name]:
                    raise _Clash(d, f"{name} changes when every exp(S) is multiplied by a number", True)
        except _Clash as clash:
            return clash
        return None

    def _operator(self, k: Kernel, o: Operator) -> None:
        args = [self.stored.get(a, {}) if o.op == "load" else self.of[k.name, a] for a in o.args]
        d = degree(o, args)
        e = k.name, o.out
        if o.op == "store":
            self.stored[o.out] = d
        elif e in self.free and o.op == "exp":
            self.of[e] = dict([self.group[e]])
        else:
            self.of[e] = d


def degree(o: Operator, args: Sequence[Degree]) -> Degree:
    """The degree of an operator's result but an exponential's own."""
    if o.op in ("mul", "dot"):
        return plus(args[0], args[1])
    if o.op == "div":
        return plus(args[0], args[1], -1)
    if o.op == "sqr":
        return plus(args[0], args[0])
    if o.op == "add":
        if difference := plus(args[0], args[1], -1):
            a, b = (sum(d.values()) for d in args)
            raise _Clash(difference, f"{o.out} adds values of the degrees {a} and {b} in exp(S)", True)
        return args[0]
    if o.op in SAME or o.op.startswith("scale"):
        return args[0]
    for d in args:
        if d and o.op == "exp":
            raise _Clash(d, "an exponential of exponentials")
        if d:
            raise _Clash(d, f"{o.op.partition(':')[0]} of a value that grows with exp(S)")
    return {}

"""Terms that a printer says in one word: a fold over a prefix is a scan, a choice by position is a concatenation."""

from __future__ import annotations

from dataclasses import dataclass

from ..terms import construct as T
from ..terms.expansion import expand
from ..terms.term import Axis, Term

SCANS = {
    "sum": ("cumsum", 0),
    "prod": ("cumprod", 1),
    "amax": ("cummax", -float("inf")),
    "amin": ("cummin", float("inf")),
}


@dataclass(frozen=True, slots=True)
class Scan:
    """sum(k, where(k <= n, a[k], 0)) is cumsum over n of a[n]."""

    name: str
    over: Axis
    body: Term


@dataclass(frozen=True, slots=True)
class Cat:
    """where(n < S, a[n], b[n - S]) over n < S + R is a over `first`, of size S, and then b over `second`, of size R."""

    over: Axis
    first: Axis
    a: Term
    second: Axis
    b: Term


def scan(t: Term) -> Scan | None:
    if t.op not in SCANS or t.args[0].op != "where":
        return None
    name, unit = SCANS[t.op]
    p, a, rest = t.args[0].args
    if p.op != "le" or rest is not T.const(unit) or any(s.op != "axis" for s in p.args):
        return None
    k, n = (s.attr for s in p.args)
    if k != t.attr or n == k or n.size is not k.size or k not in a.free or n in a.free:
        return None
    return Scan(name, n, T.substitute(a, {k: T.axis(n)}))


def cat(t: Term) -> Cat | None:
    if t.op != "where" or t.args[0].op != "lt" or t.args[0].args[0].op != "axis":
        return None
    p, a, b = t.args
    n, split = p.args[0].attr, p.args[1]
    if split.free or T.reads(split) or n not in a.free or n not in b.free:
        return None
    rest = expand(T.sub(n.size, split))
    first, second = Axis(f"{n.name}0", split), Axis(f"{n.name}1", rest)
    a, b = T.substitute(a, {n: T.axis(first)}), T.substitute(b, {n: T.axis(second) + split})
    if a.free - {first} != b.free - {second} or (rest.op == "const" and rest.attr <= 0):
        return None
    return Cat(n, first, _settled(a), second, _settled(b))


def _settled(t: Term) -> Term:
    """Indices in normal form: n + S - S is n."""
    return T.rewrite(t, lambda s: T.read(s.attr, map(expand, s.args), s.type) if s.op == "read" else None)


def one_hot(t: Term) -> tuple[Term, Axis] | None:
    """where(index == v, 1, 0) as (index, v)."""
    if t.op != "where" or t.args[1] is not T.const(1) or t.args[2] is not T.const(0) or t.args[0].op != "eq":
        return None
    for v, index in (t.args[0].args, t.args[0].args[::-1]):
        if v.op == "axis" and index.op == "read" and v.attr not in index.free:
            return index, v.attr
    return None


def chosen(t: Term) -> list[Term]:
    """where(p, a, 0) as the factors where(p, 1, 0) and a."""
    if t.op != "where" or t.args[2] is not T.const(0) or t.args[1].op == "const":
        return []
    return [T.where(t.args[0], 1, 0), *(t.args[1].args if t.args[1].op == "mul" else (t.args[1],))]


def certain_reads(t: Term) -> set[int]:
    """Ids of the reads that are not in a branch of a `where`: their indices are inside."""
    out: set[int] = set()
    stack, seen = [t], set()
    while stack:
        s = stack.pop()
        if s.id in seen:
            continue
        seen.add(s.id)
        out |= {s.id} if s.op == "read" else set()
        stack += s.args[:1] if s.op == "where" else s.args
    return out

"""Sizes of dims that nobody gave: what is usual for what they are used for, as in layers of language models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trilift.lift.cases.declaration import Case
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from .program import Program

ANY_SIZE = 1024


@dataclass(frozen=True, slots=True)
class Role:
    """A use of a dim, and its usual size."""

    name: str
    size: int


HEAD = Role("features of a head", 64)  # GPT-2 has 64, Llama 128
BATCH = Role("batch", 4)
HEADS = Role("heads, or a batch", 16)
LENGTH = Role("length of a sequence", 2048)


def roles(case: Case, program: Program) -> dict[str, Role]:
    """The roles of dims that have one. In attention a product is summed over a head's features below an exponential,
    and the exponential times another tensor over a sequence; dimensions before the last two are heads and a batch."""
    shapes = [tuple(s.shape or ()) for s in case.tensors.values()]
    many = [s for s in shapes if len(s) > 2]
    features, keys, rows = _attention(program)
    place = -2 if any(s[-3] in keys for s in many) else -3
    heads = [s[place] for s in many]
    found = [
        (features, HEAD),
        (keys, LENGTH),
        (heads, HEADS),
        ((d for s in many for d in s[:-3]), BATCH),
        (rows, LENGTH),
    ]
    out: dict[str, Role] = {}
    for dims, role in found:
        for name in _names(dims):
            out.setdefault(name, role)
    return out


def _attention(program: Program) -> tuple[list[Term], list[Term], list[Term]]:
    """The extents of features, keys, and what else scores have."""
    features: dict[Term, None] = {}
    keys: dict[Term, None] = {}
    rows: dict[Term, None] = {}
    extent = program.extents
    for n in (n for n in program.nodes if n.op == "exp"):
        within = {str(s.attr) for s in n.walk() if s.op == "sum"} - n.axes
        users = [m for m in program.nodes if m.op == "sum" and m.axes - n.axes and n in m.walk()]
        over = {str(m.attr) for m in users} & n.axes
        if within and over:
            features |= dict.fromkeys(extent[a] for a in sorted(within) if a in extent)
            keys |= dict.fromkeys(extent[a] for a in sorted(over) if a in extent)
            rows |= dict.fromkeys(extent[a] for a in sorted(n.axes - over) if a in extent)
    return [*features], [*keys], [*rows]


def _names(dims: Iterable[Term]) -> Iterator[str]:
    """Of dims that are one size."""
    for d in dims:
        if isinstance(d, T.Term) and d.op == "size":
            yield str(d.attr)

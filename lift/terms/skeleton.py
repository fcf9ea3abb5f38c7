"""Skeletons: what two terms have in common when the numbers in them are forgotten.

    x[3, 5] * w[5, 2]   has skeleton  mul(x[., .], w[., .])   and coordinates  (3, 5, 5, 2)

An n-ary sum forgets how many addends of a kind it has, and of their coordinates keeps those on which all agree, so that
the element x[0,0]*w[0,1] + x[0,1]*w[1,1] of a matrix product has the coordinates (0, ?, ?, 1), whatever K is.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from ..errors import NotLifted
from ..runtime.session import table
from .term import COMMUTATIVE, Term

Skeleton = tuple[Any, ...]
MOST_COORDINATES = 20_000  # of a term: a recurrence doubles them with each step
COLLAPSE = {"add", "max", "min", "and", "or"}  # a sum of one kind looks like its addend: sum over one element
SYMMETRIC = {"eq", "ne"}

_MEMO: dict[int, tuple[int, tuple[Any, ...]]] = table("skeleton.skeletons", {})
_ORDER: dict[int, tuple[Any, ...]] = table("skeleton.orders", {})
_NAMES: dict[Skeleton, int] = table("skeleton.numbers", {})
_numbers = count()  # over all sessions


def _intern(s: Skeleton) -> int:
    found = _NAMES.get(s)
    if found is None:
        found = _NAMES[s] = next(_numbers)
    return found


def skeleton(t: Term) -> int:
    """A number that two terms share exactly when they have the same skeleton."""
    return _both(t)[0]


def coordinates(t: Term) -> tuple[Any, ...]:
    """The forgotten numbers, in an order fixed by the skeleton; None where the addends of a sum disagree."""
    return _both(t)[1]


def _both(t: Term) -> tuple[int, tuple[Any, ...]]:
    found = _MEMO.get(t.id)
    if found is None:
        stack = [t]
        while stack:
            if missing := [a for a in stack[-1].args if a.id not in _MEMO]:
                stack.extend(missing)
            else:
                s = stack.pop()
                found = _compute(s)
                if len(found[1]) > MOST_COORDINATES:
                    raise NotLifted("an element is a term whose parts occur again and again, as in a long recurrence",
                                    why=f"written out it has more than {MOST_COORDINATES} numbers")  # fmt: skip
                _MEMO[s.id] = found
        assert found is not None
    return found


def _compute(t: Term) -> tuple[int, tuple[Any, ...]]:
    if t.op == "const":
        return _intern(("const", "bool" if t.type == "bool" else "number")), (t.attr,)
    if t.op in COMMUTATIVE:
        return _nary(t)
    args = sorted(t.args, key=order) if t.op in SYMMETRIC else t.args
    parts = [_both(a) for a in args]
    if t.op in ("argmax_of", "argmin_of", "pick"):
        return _ordered(t, parts)
    return _intern((t.op, t.attr, *(p[0] for p in parts))), tuple(c for p in parts for c in p[1])


def origins(t: Term) -> tuple[tuple[str, int] | None, ...]:
    """For each coordinate the tensor and dimension that it indexes, None for other numbers."""
    if t.op == "const":
        return (None,)
    if t.op == "read":
        parts = [((t.attr, d),) if a.op == "const" else origins(a) for d, a in enumerate(t.args)]
        return tuple(o for p in parts for o in p)
    if t.op in COMMUTATIVE:
        kinds = by_kind(t.args).values()
        return tuple(o for ms in kinds for m in ms[: 2 if t.op == "mul" and len(ms) == 2 else 1] for o in origins(m))
    args = sorted(t.args, key=order) if t.op in SYMMETRIC else t.args
    if t.op in ("argmax_of", "argmin_of", "pick"):
        args = list({_both(a)[0]: a for a in reversed(t.args)}.values())[::-1]
    return tuple(o for a in args for o in origins(a))


def _ordered(t: Term, parts: list[tuple[int, tuple[Any, ...]]]) -> tuple[int, tuple[Any, ...]]:
    kinds = tuple(dict.fromkeys(p[0] for p in parts))
    return _intern((t.op, t.attr, *kinds)), tuple(c for k in kinds for c in _agreed([p[1] for p in parts if p[0] == k]))


def _nary(t: Term) -> tuple[int, tuple[Any, ...]]:
    kinds = by_kind(t.args)
    names: list[Any] = []
    coords: list[Any] = []
    for kind, members in kinds.items():
        if t.op == "mul" and len(members) == 2:  # x * y: two factors of a kind stay two
            names += [kind, kind]
            for m in sorted(members, key=order):
                coords += _both(m)[1]
        else:
            names.append(kind)
            coords += _agreed([_both(m)[1] for m in members])
    if t.op == "mul" and any(a.is_const and a.attr < 0 for a in t.args):
        names.append("negative")  # x - y: two kinds of addends, not a sum of two with coefficients 1 and -1
    if len(names) == 1 and t.op in COLLAPSE:
        return names[0], tuple(coords)
    return _intern((t.op, *names)), tuple(coords)


def _agreed(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(column[0] if all(c == column[0] for c in column) else None for column in zip(*rows, strict=True))


def order(t: Term) -> tuple[Any, ...]:
    """A sort key that depends on the term's structure only, not on when it was made."""
    found = _ORDER.get(t.id)
    if found is None:
        s, c = _both(t)
        found = _ORDER[t.id] = (s, tuple((v is not None, v if v is not None else 0) for v in c), t.id)
    return found


def by_kind(args: tuple[Term, ...]) -> dict[int, list[Term]]:
    """The arguments by skeleton, kinds in increasing order."""
    kinds: dict[int, list[Term]] = {}
    for a in args:
        kinds.setdefault(_both(a)[0], []).append(a)
    return dict(sorted(kinds.items()))

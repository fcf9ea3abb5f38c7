"""Names of bound axes: after the axes of the output of the same size, else after their sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ..terms import construct as T
from ..terms.term import FOLDS, NAMED, Axis, Term


def align(t: Term, axes: Sequence[Axis], rename: bool = False) -> Term:
    """Bound axes named after the first axis of the same size that the body does not use: sum(k, x[m, k]) -> sum(n,
    x[m, n]). With `rename`, the others too get a name by their size: k for K, else the first free letter."""
    return _align(t, list(axes), rename)


def _align(t: Term, pool: list[Axis], rename: bool) -> Term:
    if not t.args:
        return t
    if t.op not in FOLDS and not NAMED.get(t.op):
        return T.rebuild(t, tuple(_align(a, pool, rename) for a in t.args))
    over, args = t.attr, t.args
    used = set().union(*(a.free for a in args)) - {over}
    best = next((a for a in pool if a.size is over.size and a not in used), None)
    if best is None:
        best = _new_name(over, {a.name for a in pool}, rename)
        pool.append(best)
    if best != over:
        args = tuple(T.substitute(a, {over: T.axis(best)}) for a in args)
    return T.make(t.op, *(_align(a, pool, rename) for a in args), attr=best)


def _new_name(over: Axis, taken: set[str], rename: bool) -> Axis:
    if not rename:
        return over if over.name not in taken else T.fresh_axis(over, taken)
    return Axis(axis_name(over.size, taken), over.size)


def axis_name(size: Term, taken: set[str]) -> str:
    """n for a size N, else the first of i, j, k ... that is not taken."""
    wish = str(size.attr).lower() if size.op == "size" else ""
    letters = "ijklmnopqrstuvwxyzabcdefgh"
    return wish if len(wish) == 1 and wish not in taken else next(n for n in letters if n not in taken)

"""Numbers modulo 2^bits. Sums, products and choices of them depend on residues only:

wrap(wrap(a) + b) = wrap(a + b)                            wrap(wrap(a) * b) = wrap(a * b)
wrap(where(c, wrap(a), b)) = wrap(where(c, a, b))
"""

from __future__ import annotations

from . import construct as T
from .term import Term

WRAPS = {"wrap8": 8, "wrap16": 16, "wrap32": 32}
RING = {"add", "mul", "where", "sum", "prod"}


def wrapped(t: Term, low: int, high: int) -> Term:
    """The number of low .. high - 1 = low + 2^bits - 1 that is t modulo 2^bits."""
    bits = (high - low).bit_length() - 1
    inner = residue(t, bits)
    if inner.is_const:
        return T.const((int(inner.attr) - low) % (high - low) + low)
    if low == 0:
        return T.make("mod", inner, high)
    if f"wrap{bits}" in WRAPS:
        return T.make(f"wrap{bits}", inner)
    return T.add(T.make("mod", T.sub(inner, low), high - low), low)


def is_wrapped(t: Term, low: int, high: int) -> bool:
    """Whether t is what `wrapped` makes of a term that may leave low .. high - 1."""
    if low == 0:
        return t.op == "mod" and t.args[1] is T.const(high)
    return WRAPS.get(t.op) == (high - low).bit_length() - 1


def residue(t: Term, bits: int) -> Term:
    """A term that is t modulo 2^bits, without wraps of as many bits or more where they do not count."""
    if t.type != T.INT:
        return t
    if WRAPS.get(t.op, 0) >= bits or (t.op == "mod" and _is_multiple(t.args[1], bits)):
        return residue(t.args[0], bits)
    if t.op not in RING or not any(s.op in WRAPS or s.op == "mod" for s in t.walk()):
        return t
    if t.op in T.FOLDS:
        return T.fold(t.op, t.attr, residue(t.args[0], bits))
    kept = 1 if t.op == "where" else 0
    return T.rebuild(t, (*t.args[:kept], *(residue(a, bits) for a in t.args[kept:])))


def _is_multiple(m: Term, bits: int) -> bool:
    return m.is_const and isinstance(m.attr, int) and m.attr > 0 and m.attr % (1 << bits) == 0

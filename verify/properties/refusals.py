"""Calls that the contract excludes, each the smallest found that breaks one clause and nothing else, and what becomes
of it: the host function raises, or accepts it, and the kernel stays within its tensors, or does not.

    N <= BLOCK           sizes beyond the clause
    x is contiguous      the same elements at other strides, where the result is then another one
    0 <= ids < V         V
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import TriliftError
from trilift.lift.terms import term as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term

from ..configurations.relations import ROW, places
from ..model.verdict import Clause, Proof
from ..runs.adversary import SEARCHED
from ..runs.layouts import LAYOUTS, fits, laid
from ..runs.observe import differing, observe
from .records import Dims, Refusal, Sizes

REFUSED_ELEMENTS = 300_000  # of the largest input of a call that the contract excludes
NEAR = range(1, 20)  # sizes that are tried together
COMBINED_DIMS = 2  # dims that are
SPEC = "the declaration of the case"


def refusals(case: Case, proofs: Sequence[Proof], sizes: Sizes, seed: int = 0) -> tuple[Refusal, ...]:
    """One for each clause that a call of modest size can break. `sizes`: those of the case; what they do not meet is
    one of several alternatives, and no clause of all calls."""
    base, at = usual(case, sizes, seed), len(SEARCHED) * seed  # random numbers
    if base is None:
        return ()
    return (*_sizes(case, proofs, sizes, base, at), *_layouts(case, proofs, base, at), *_indices(case, base, at))


def usual(case: Case, sizes: Sizes, seed: int) -> Dims | None:
    """A small shape that the case allows, with no dim at 1 where that may be."""
    from trilift.lift.cases.shapes import choose

    tried = [d for d in sizes.first if all(d[n] > 1 for n in case.names)]
    try:
        return tried[0] if tried else choose(case, 1, seed)[0]
    except TriliftError:
        return None


# ---- sizes -----------------------------------------------------------------------------------------------------------


def _sizes(case: Case, proofs: Sequence[Proof], sizes: Sizes, base: Dims, seed: int) -> Iterator[Refusal]:
    clauses = [c for c in _clauses(case, proofs) if c.term is not None]
    clauses = [c for c in clauses if all(value(c.term, d) is not False for d in sizes.first if c.term is not None)]
    for c in clauses:
        others = [o.term for o in clauses if o is not c and o.term is not None]
        for dims in _breaking(case, c, others, base):
            yield _outcome(replace(case, where=T.const(True)), Refusal(c, dims), seed)
            break


def _clauses(case: Case, proofs: Sequence[Proof]) -> list[Clause]:
    """The parts of `where`, and what else is said about sizes alone."""
    from ..wording.user_terms import words
    from .preconditions import conjuncts

    known = {*case.names, *case.scalars}
    mine = [Clause("shape", t, words(t), SPEC, case.place) for t in conjuncts(case.where)]
    more = [c for p in proofs for c in p.contract if c.kind in ("shape", "value", "assume") and c.term is not None]
    leaves = ("size", "scalar", "read", "axis", "carry")
    about = [c for c in (*mine, *more) if c.term is not None and not c.term.is_const
             and all(s.op in leaves[:2] and s.attr in known for s in c.term.walk() if s.op in leaves)]  # fmt: skip
    return list({c.term: c for c in reversed(about)}.values())[::-1]


def _breaking(case: Case, clause: Clause, others: Sequence[Term], base: Dims) -> list[Dims]:
    """Shapes that break the clause and no other one, the smallest first."""
    from trilift.lift.cases.shapes import elements

    anywhere = replace(case, where=T.const(True))
    t = clause.term
    assert t is not None
    names = [n for n in (*case.names, *case.scalars) if any(s.op == "size" and s.attr == n for s in t.walk())]
    ones = {**base, **dict.fromkeys(case.names, 1)}
    found: list[Dims] = [
        {**like, n: v}
        for n, like in product(names, (base, ones))
        for pair in places(lambda v, n=n, like=like: value(t, {**like, n: v}), ROW)  # type: ignore[misc]
        for v in pair
    ]
    if len(names) <= COMBINED_DIMS:
        found += [{**base, **dict(zip(names, v, strict=True))} for v in product(NEAR, repeat=len(names))]
    broken = [d for d in found if value(t, d) is False and anywhere.holds(d) and elements(case, d) <= REFUSED_ELEMENTS]
    alone = [d for d in broken if all(value(o, d) is not False for o in others)]
    return sorted(alone, key=lambda d: (elements(case, d), sum(d.values()), sorted(d.items())))


# ---- layouts ---------------------------------------------------------------------------------------------------------


def _layouts(case: Case, proofs: Sequence[Proof], base: Dims, seed: int) -> Iterator[Refusal]:
    """For every tensor how it may not lie: not otherwise than the contract says, and where the case does not say that
    it is strided, perhaps not otherwise than densely."""
    written = _written(case, base, seed)
    tensors = case.named(case.sample(base, np.random.default_rng(seed)))
    for name, s in case.tensors.items():
        clauses = _about_strides(proofs, name)
        dense = Clause("layout", None, f"{name} is contiguous", SPEC, case.place)
        found = []
        for layout in LAYOUTS:
            if not fits(layout, tensors[name]) or (layout == "expanded" and name in written):
                continue
            strides = {f"stride({name},{d})": n for d, n in enumerate(LAYOUTS[layout][1](tensors[name]).stride())}
            broken = [c for c in clauses if c.term is not None and value(c.term, {**base, **strides}) is False]
            if broken or not s.strided:
                found.append(_laid(case, Refusal((*broken, dense)[0], base, {name: layout}), seed))
        told = [r for r in found if r is not None]
        yield from sorted(told, key=lambda r: not r.raises and not r.safe)[:1]


def _about_strides(proofs: Sequence[Proof], name: str) -> list[Clause]:
    """The conditions of contracts on the strides of one tensor alone."""
    clauses = [c for p in proofs for c in p.contract if c.kind == "layout" and c.term is not None]
    strides = [{s.attr for s in c.term.walk() if _is_stride(s)} for c in clauses if c.term is not None]
    return [c for c, used in zip(clauses, strides, strict=True) if used and all(_of(n, name) for n in used)]


def _is_stride(t: Term) -> bool:
    return t.op == "size" and str(t.attr).startswith("stride(")


def _of(stride: object, name: str) -> bool:
    return str(stride).startswith(f"stride({name},")


def _laid(case: Case, refusal: Refusal, seed: int) -> Refusal | None:
    """The outcome; None where the kernel gives what it gives for the same elements in the usual order, or where that
    cannot be seen."""
    other, mine = laid(case, refusal.layouts, dense=True), laid(case, refusal.layouts)
    told = _outcome(mine, refusal, seed)
    if told.raises:
        return told
    a, b = observe(mine, refusal.dims, seed), observe(other, refusal.dims, seed)
    if a is None or b is None:
        return None
    return told if a.trouble is not None or differing(a.outputs, b.outputs) else None


def _written(case: Case, dims: Dims, seed: int) -> set[str]:
    seen = observe(case, dims, seed)
    return set() if seen is None or seen.outputs is None else {n for n in seen.outputs if n in case.tensors}


# ---- indices ---------------------------------------------------------------------------------------------------------


def _indices(case: Case, base: Dims, seed: int) -> Iterator[Refusal]:
    """For every index tensor the first number that is too large."""
    from ..wording.user_terms import words

    for name, s in case.tensors.items():
        if s.is_float or s.dtype == "bool" or s.high is None or not (high := value(s.high, base)):
            continue
        clause = Clause("value", None, f"{words(s.low or T.const(0))} <= {name} < {words(s.high)}", SPEC, case.place)
        refusal = Refusal(clause, base, values={name: int(high)})
        yield _outcome(laid(case, {}, refusal.values), refusal, seed)


# ---- what becomes of a call ------------------------------------------------------------------------------------------


def _outcome(case: Case, refusal: Refusal, seed: int) -> Refusal:
    """The refusal with what the host function raises; where it returns, with whether the kernel was seen to stay within
    its tensors."""
    from trilift.lift.capture.run import raised

    try:
        error = raised(case, case.sample(refusal.dims, np.random.default_rng(seed)))
    except TriliftError as found:
        error = found
    if error is not None:
        return replace(refusal, raises=type(error).__name__)
    seen = observe(case, refusal.dims, seed)
    return replace(refusal, safe=seen is not None and seen.trouble is None and seen.outputs is not None)

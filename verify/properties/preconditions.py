"""The sizes at which a case is what it is proved to be: what the case says, the limits of indices, the contract."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from trilift.lift.cases.declaration import Case
from trilift.lift.language.python_source import python_source
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term

from ..configurations.shape_classes import definitions, with_symbols
from ..model.verdict import Clause, Proof, Verdict
from ..proof.prover import Proving

SMALL = (1, 2, 3)


def allowed(case: Case, proofs: Sequence[Proof], provings: Sequence[Proving]) -> tuple[Term, list[Term]]:
    """The condition on sizes and scalars under which the case is what it is proved to be, and the parts of it that are
    worth saying: `where`, the limits of indices, and the contract."""
    known = {*case.names, *case.scalars}
    parts = [*conjuncts(case.where), *contract(case, proofs, provings), *limits(case)]
    parts = [p for p in dict.fromkeys(parts) if {s.attr for s in p.walk() if s.op in ("size", "scalar")} <= known]
    return T.make("and", T.const(True), *parts), parts


def contract(case: Case, proofs: Sequence[Proof], provings: Sequence[Proving]) -> list[Term]:
    """The clauses about sizes: those of some configuration, and those that the proofs were found with."""
    configurations = [{c: t for c in p.contract if (t := about_sizes(case, c, p)) is not None} for p in provings]
    alternatives = list(dict.fromkeys(frozenset(s.values()) for s in configurations))
    mine = {c.text for p in provings for c in p.contract}
    out = [t for p in proofs for c in found_with(p, mine) if (t := about_sizes(case, c, None)) is not None]
    return [*out, *_either(case, alternatives)]


def found_with(proof: Proof, configurations: Iterable[str]) -> list[Clause]:
    """The preconditions that were found with the proof, or without which the claim is refuted; `configurations`: the
    texts of other clauses."""
    from ..audit.evidence import usual

    more = [c for c in proof.contract if c.text not in set(configurations)]
    return {Verdict.PROVED: more, Verdict.REFUTED: [c for c in more if usual(c)]}.get(proof.verdict, [])


def _either(case: Case, alternatives: Sequence[frozenset[Term]]) -> list[Term]:
    """Their common conditions, and one of the rests; nothing where some rest always holds."""
    from ..integers.solver import Solver

    if not alternatives:
        return []
    common = frozenset.intersection(*alternatives)
    rests = [T.make("and", T.const(True), *sorted(a - common, key=repr)) for a in alternatives]
    either = T.make("or", T.const(False), *rests)
    sizes = [T.make("le", 0, T.size(n)) for n in case.names]
    always = either.is_const or Solver().implies([*sizes, case.where, *common], either)
    return sorted(common, key=repr) if always else [*sorted(common, key=repr), either]


def about_sizes(case: Case, clause: Clause, proving: Proving | None) -> Term | None:
    """The clause as a condition on sizes and scalars; None where it is about something else, or about numbers that are
    too large to be tried, or that sizes are at least 1: written tests try the size 0 where the call allows it."""
    if clause.term is None or clause.kind in ("nowrap", "float", "size"):
        return None
    known = {*case.names, *case.scalars}
    meant = definitions(proving.configuration.facts, known) if proving is not None else {}
    t = with_symbols(clause.term, meant)
    leaves = [s for s in t.walk() if s.op in ("size", "scalar", "read", "axis", "carry")]
    return t if all(s.op in ("size", "scalar") and s.attr in known for s in leaves) and not t.is_const else None


def limits(case: Case) -> Iterator[Term]:
    """No size is negative; where an index tensor has elements, there is something that they may be."""
    for s in case.tensors.values():
        for n in s.shape or ():
            yield from [T.make("le", 0, n)] * (n.op not in ("size", "const"))
        if not s.is_float and s.high is not None and not (s.high.is_const or s.dtype == "bool"):
            empty = (T.make("eq", n, 0) for n in s.shape or () if not n.is_const)
            yield T.make("or", T.make("lt", s.low or T.const(0), s.high), *empty)


def conjuncts(t: Term) -> tuple[Term, ...]:
    return () if t.is_const else t.args if t.op == "and" else (t,)


def printed(parts: Iterable[Term], case: Case, values: Mapping[str, Sequence[int]]) -> str:
    """The conditions that some of these sizes, or others not far from them, do not meet, as Python. Raises Unsupported
    for what has no such text."""
    from ..wording.user_terms import tidied

    beyond = {n: (*v, *(f * v[-1] + 1 for f in (1, 2) if v)) for n, v in values.items()}
    around = {n: (*v, *SMALL) for n, v in beyond.items()}
    kinds = {**dict.fromkeys(limits(case), values), **dict.fromkeys(conjuncts(case.where), around)}
    kept = [tidied(p) for p in parts if not _always(p, kinds.get(p, beyond))]
    return python_source(T.make("and", T.const(True), *kept)) if kept else ""


def _always(t: Term, values: Mapping[str, Sequence[int]]) -> bool:
    """Whether all these sizes meet a condition."""
    names = sorted({str(s.attr) for s in t.walk() if s.op in ("size", "scalar")})
    if any(n not in values for n in names) or math.prod(len(values[n]) for n in names) > 5000:
        return False
    return all(value(t, dict(zip(names, v, strict=True))) is True for v in product(*(values[n] for n in names)))

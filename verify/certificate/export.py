"""A proof as data, for a checker that shares no code with the prover (`lift.checker`).

The data say what a case is about: formulas and contract of the claim, and of each configuration the summary of its
launches. They hold no list of obligations: the checker makes its own. The rest are hints of the prover (closed forms of
loop variables, who writes an element, contents between launches), which the checker proves again.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from trilift.lift.cases.declaration import Case, input_of_stride
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import CaseError, Place
from trilift.lift.language.unfolding import expand
from trilift.lift.printers.text import text
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term

from ..loops.invariant import Closed
from ..memory.safety import fits_words
from ..memory.sites import Site
from ..memory.stores import Missing, index_axes, written
from ..model.configuration import Buffer, HostOp, SymbolicLaunch, View
from ..model.program import PIDS, Access, Arithmetic, Carry, Loop
from ..model.verdict import Clause, Proof
from ..normal_form.algebra import Undecided
from ..pipeline import Examined
from ..proof.launch import Launched
from ..proof.prover import Proving
from ..wording.user_terms import words
from . import origin

VERSION = 2
UNLIKE_SHAPES = 4  # at which the host function is run too
Data = dict[str, object]


class Terms:
    """The table of terms: each once, arguments first."""

    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self.numbers: dict[tuple[int, str], int] = {}
        self.reading: dict[int, bool] = {}  # terms by id: whether a tensor is read in them
        self.carries: dict[Carry, str] = {}

    def put(self, t: Term, mode: str = "") -> int:
        """The number of a term. `mode`: "formula", where a tensor is read at its logical index."""
        for s in t.walk():
            if self._key(s, mode) not in self.numbers:
                args = [self.numbers[self._key(a, mode)] for a in s.args]
                row = [_operation(s, mode), s.type, self._attribute(s), args]
                self.numbers[self._key(s, mode)] = len(self.rows)
                self.rows.append(row)
        return self.numbers[self._key(t, mode)]

    def _key(self, t: Term, mode: str) -> tuple[int, str]:
        if t.id not in self.reading:
            self.reading[t.id] = t.op == "read" or any(self._key(a, mode)[1] or self.reading[a.id] for a in t.args)
        return t.id, mode if self.reading[t.id] else ""

    def all(self, ts: Iterable[Term]) -> list[int]:
        """The numbers of terms."""
        return [self.put(t) for t in ts]

    def axes(self, axes: Iterable[Axis]) -> list[int]:
        """The numbers of axes, as indices."""
        return [self.put(T.axis(a)) for a in axes]

    def _attribute(self, t: Term) -> object:
        a = t.attr
        if isinstance(a, Axis):
            return [a.name, self.put(a.size)]
        if isinstance(a, Carry):
            return self.carries[a]
        if isinstance(a, float):
            return repr(a) if not math.isfinite(a) else a
        return a if a is None or isinstance(a, bool | int | str) else str(a)


def _operation(t: Term, mode: str) -> str:
    return "element" if t.op == "read" and mode == "formula" else t.op


def certificate(name: str, file: str, examined: Examined, case: Case | None = None) -> Data:
    """The certificate of a case whose proofs are all PROVED; `case` as it was declared."""
    case = case or examined.case
    every = [x for x in _parts(examined) if all(p.verdict.value == "PROVED" for p in x[1].proofs)]
    return {
        "certificate": VERSION,
        "case": name,
        "file": file,
        "against": examined.goal.against,
        "made": origin.made_of(case, _shapes_of(case, every), _launched(every)),
        "parts": [part(label, x, case) for label, x in every],
    }


def _parts(examined: Examined, label: str = "") -> Iterator[tuple[str, Examined]]:
    """The parts of a case that were looked at by themselves."""
    if not examined.parts:
        yield label, examined
    for said, x in examined.parts:
        yield from _parts(x, "; ".join(filter(None, (label, said))))


def _shapes_of(case: Case, parts: Iterable[tuple[str, Examined]]) -> list[Mapping[str, int | float]]:
    """One for each set of constants that the configurations have, and some unlike these."""
    found = [dict(d) for _, x in parts for c in x.configurations for d in c.runs]
    with contextlib.suppress(CaseError):
        found += choose(case, UNLIKE_SHAPES, 0)
    return [d for k, d in enumerate(found) if origin.is_shape(case, d) and d not in found[:k]]


def _launched(parts: Iterable[tuple[str, Examined]]) -> set[str]:
    """The digests of the Triton IR of all launches."""
    events = [e for _, x in parts for p in x.provings for e in p.configuration.events]
    return {origin.of_ir(e.module.text) for e in events if isinstance(e, SymbolicLaunch)}


def part(label: str, examined: Examined, case: Case) -> Data:
    """One part of a case: the claim, and the configurations that it is shown in."""
    terms = Terms()
    for p in examined.provings:
        p.solver.inner.meter = None  # the proof is over
    return {
        "label": label,
        "formulas": {n: formula(f, terms) for n, f in examined.goal.formulas.items()},
        "configurations": [configuration(k, p, terms) for k, p in enumerate(examined.provings)],
        "contract": [*contract(examined.proofs, examined.provings, terms), *_finite_inputs(case)],
        "terms": terms.rows,
    }


def _finite_inputs(case: Case) -> list[Data]:
    """A clause that no proof for infinities and NaN is written down."""
    names = [n for n, s in case.tensors.items() if s.unbounded]
    text = f"the elements of {' and '.join(names)} are finite: that a case is proved for others is not checked"
    return [{"kind": "config", "text": text, "term": None, "configuration": None}] if names else []


def formula(f: Formula, terms: Terms) -> Data:
    """A formula: its text, and its term with known names unfolded."""
    return {"text": _text(f), "axes": terms.axes(f.axes), "term": terms.put(expand(f.term), "formula")}


def _text(f: Formula) -> str:
    try:
        return text(f)
    except Exception:  # an operation that has no text
        return repr(f.term)


def contract(proofs: Sequence[Proof], provings: Sequence[Proving], terms: Terms) -> list[Data]:
    """The clauses of the contract."""
    clauses: dict[str, Clause] = {c.text: c for p in proofs for c in p.contract}
    out = []
    for c in clauses.values():
        known = layout(c, provings) if c.kind == "layout" and c.term is None else c.term
        known = known if known is not None and not _of_data(known) else None
        owner = next((k for k, p in enumerate(provings) if c.text not in _texts(provings, but=k)), None)
        everywhere = c.kind == "nowrap" or all(c.text in {x.text for x in p.contract} for p in provings)
        where = None if everywhere else owner
        row: Data = {"kind": c.kind, "text": c.text, "term": None if known is None else terms.put(known)}
        row["configuration"] = where
        if c.term is None and c.kind == "nowrap" and (found := _arithmetic(c, provings)) is not None:
            row["arithmetic"] = found
        out.append(row)
    told = {row["term"] for row in out}
    facts = {f: [k for k, q in enumerate(provings) if f in q.configuration.facts] for p in provings for f in _facts(p)}
    for f, found_in in facts.items():
        if terms.put(f) not in told and _of_case(f, provings):
            for k in [None] if len(found_in) == len(provings) else found_in:
                out.append({"kind": "case", "text": words(f), "term": terms.put(f), "configuration": k})
    return out


def _facts(p: Proving) -> list[Term]:
    return sorted(p.configuration.facts, key=repr)


def _of_case(f: Term, provings: Sequence[Proving]) -> bool:
    """Whether a fact speaks of sizes, scalars and strides of the case only."""
    own = {s for p in provings for t in _shapes(p) for s in t.walk()}
    return all(s in own or s.op == "scalar" for s in f.walk() if s.op in ("size", "scalar", "axis", "read"))


def _shapes(p: Proving) -> list[Term]:
    views = [*p.configuration.inputs.values(), *p.configuration.outputs.values()]
    return [x for v in views for x in (v.offset, *v.shape, *v.strides)]


def layout(c: Clause, provings: Sequence[Proving]) -> Term | None:
    """The facts about the strides of the tensor that a clause names."""
    facts = {f for p in provings for f in p.configuration.facts if _strides(f) and _strides(f) <= set(_named(c.text))}
    return T.make("and", True, *sorted(facts, key=repr)) if facts else None


def _strides(f: Term) -> set[str]:
    return {x for s in f.walk() if s.op == "size" and (x := input_of_stride(str(s.attr)))}


def _named(said: str) -> list[str]:
    return said.split()


def _texts(provings: Sequence[Proving], but: int) -> set[str]:
    return {c.text for k, p in enumerate(provings) if k != but for c in p.contract}


def _of_data(t: Term) -> bool:
    return any(s.op in ("carry", "undef") for s in t.walk()) or not _is_closed(t)


def _is_closed(t: Term) -> bool:
    """Whether a condition is one of the case, and not of each program, lane or iteration."""
    return not any(s.op == "axis" for s in t.walk()) and not any(s in PIDS for s in t.walk())


def _arithmetic(c: Clause, provings: Sequence[Proving]) -> list[int] | None:
    """[configuration, event, number] of the operation that a clause without term speaks of."""
    for k, p in enumerate(provings):
        for found in p.launched:
            for n, a in enumerate(found.program.arithmetic):
                if a.kind == "wrap" and a.op.place == c.place and fits_words(resolved(a.term, found), a.bits) == c.text:
                    return [k, list(p.configuration.events).index(found.launch), n]
    return None


def resolved(t: Term, found: Launched) -> Term:
    """A term without loop variables and loads, where that is known."""
    try:
        return found.plain(found.loops.resolved(t))
    except Undecided:
        return t


# ---- configurations --------------------------------------------------------------------------------------------------


def configuration(number: int, p: Proving, terms: Terms) -> Data:
    """One configuration: its facts, memory and events."""
    c = p.configuration
    launched = {found.launch: found for found in p.launched}
    bounds = {n: terms.all([x for x in b if x is not None]) for n, b in p.solver.bounds.items() if None not in b}
    return {
        "number": number,
        "label": c.label,
        "vacuous": p.vacuous,
        "facts": terms.all(sorted(c.facts, key=repr)),
        "example": p.solver.inner.model(c.facts) or {},
        "bounds": {p.configuration.inputs[n].buffer.name: b for n, b in bounds.items() if n in c.inputs},
        "buffers": [buffer(b, terms) for b in c.buffers],
        "inputs": {n: view(v, terms) for n, v in c.inputs.items()},
        "outputs": {n: view(v, terms) for n, v in c.outputs.items()},
        "events": [
            host(e, terms) if isinstance(e, HostOp) else launch(e, launched[e], p, terms)
            for e in c.events
            if isinstance(e, HostOp) or e in launched
        ],
    }


def buffer(b: Buffer, terms: Terms) -> Data:
    """A buffer, and its elements before the first launch."""
    o = Axis("o~", b.length)
    given = b.origin.startswith("input:")
    out: Data = {"name": b.name, "dtype": b.dtype, "length": terms.put(b.length), "input": given}
    return out if given else {**out, "axis": terms.put(T.axis(o)), "initial": terms.put(b.initial(T.axis(o)))}


def view(v: View, terms: Terms) -> Data:
    """A tensor in a buffer."""
    return {
        "buffer": v.buffer.name, "offset": terms.put(v.offset), "shape": terms.all(v.shape),
        "strides": terms.all(v.strides), "dtype": v.dtype,
    }  # fmt: skip


def host(e: HostOp, terms: Terms) -> Data:
    """A torch operation: what its outputs hold."""
    outputs = []
    for v, value in zip(e.outputs, e.values, strict=True):
        axes = [Axis(f"h{d}", n) for d, n in enumerate(v.shape)]
        term = terms.put(value(tuple(map(T.axis, axes))))
        outputs.append({"view": view(v, terms), "axes": terms.axes(axes), "term": term})
    return {"kind": "host", "name": e.name, "outputs": outputs}


def launch(e: SymbolicLaunch, found: Launched, p: Proving, terms: Terms) -> Data:
    """A launch: its grid, loops, accesses and integer arithmetic."""
    program = found.program
    for k, x in enumerate(program.loops):
        terms.carries |= {c: f"{k}.{i}" for i, c in enumerate(x.carries)}
    position = {id(x): k for k, x in enumerate(program.loops)}
    stores = {id(s.access.op): s for s in found.sites if s.writes}
    return {
        "kind": "launch",
        "kernel": e.kernel,
        "ttir": origin.of_ir(e.module.text),
        "grid": terms.all(e.grid),
        "pointers": {n: view(v, terms) for n, v in found.views.items()},
        "loops": [loop(x, found, position, terms) for x in program.loops],
        "accesses": [access(a, stores.get(id(a.op)), position, p, terms) for a in program.accesses],
        "arithmetic": [arithmetic(a, position, terms) for a in program.arithmetic],
        "after": after(found, p, terms),
    }


def loop(x: Loop, found: Launched, position: Mapping[int, int], terms: Terms) -> Data:
    """A loop, and the closed forms of its variables where the prover has them."""
    return {
        "counter": terms.put(T.axis(x.counter)),
        "trips": terms.put(x.trips),
        "guard": terms.put(x.guard),
        "line": _line(x.op.place),
        "outer": terms.axes([o.counter for o in x.outer]),
        "outer_loops": [position[id(o)] for o in x.outer],
        "while": x.condition is not None,
        "carries": [carry(c, found, terms) for c in x.carries],
    }


def carry(c: Carry, found: Launched, terms: Terms) -> Data:
    """A loop variable."""
    closed: Closed | None = found.loops.found.get(c)
    lanes = closed.lanes if closed else tuple(Axis(f"lane{d}", T.const(n)) for d, n in enumerate(c.type.shape))
    index = [T.axis(a) for a in lanes]
    return {
        "name": c.name,
        "lanes": terms.axes(lanes),
        "init": terms.put(c.init(index)),
        "next": terms.put(c.next(index)),
        "form": terms.put(found.plain(closed.form)) if closed else None,
    }


def access(a: Access, site: Site | None, position: Mapping[int, int], p: Proving, terms: Terms) -> Data:
    """A load, store or atomic operation."""
    return {
        "kind": a.kind,
        "order": a.order,
        "line": _line(a.place),
        "lanes": terms.axes(a.lanes),
        "loops": [position[id(x)] for x in a.loops],
        "guard": terms.put(a.guard),
        "pointer": terms.put(a.pointer),
        "value": None if a.value is None else terms.put(a.value),
        "inverse": [] if site is None else inverses(site, p, terms),
    }


def inverses(site: Site, p: Proving, terms: Terms) -> list[Data]:
    """The program, iteration and lane that store an element, by the first tensor of which that is known."""
    for v in p.views_of(site.buffer, [site]):
        found = written(site, v, p.configuration.facts, p.solver)
        if isinstance(found, Missing):
            continue
        index = index_axes(v)
        renamed = {a: T.axis(b) for a, b in zip(found.index, index, strict=True)}
        values = [[terms.put(u), terms.put(T.substitute(w, renamed))] for u, w in found.inverse.items()]
        return [{"index": terms.axes(index), "values": values}]
    return []


def after(found: Launched, p: Proving, terms: Terms) -> Data:
    """The contents of buffers that the launch wrote, where they are known."""
    out: Data = {}
    for b, content in found.left.items():
        views = p.views_of(b, [s for s in found.sites if s.buffer is b])
        for v in views[:1]:
            axes = tuple(Axis(f"index{d}", n) for d, n in enumerate(v.shape))
            try:
                term = content(v.element(tuple(map(T.axis, axes))))
            except Undecided:
                continue
            out[b.name] = {"view": view(v, terms), "axes": terms.axes(axes), "term": terms.put(term)}
    return out


def arithmetic(a: Arithmetic, position: Mapping[int, int], terms: Terms) -> Data:
    """An integer operation that must have its value."""
    return {
        "kind": a.kind,
        "bits": a.bits,
        "line": _line(a.op.place),
        "lanes": terms.axes(a.lanes),
        "loops": [position[id(x)] for x in a.loops],
        "guard": terms.put(a.guard),
        "term": terms.put(a.term),
    }


def _line(place: Place | None) -> int:
    return place.line if place else 0


__all__ = ["certificate"]

"""Where a kernel's shapes have edges: at multiples of its blocks, and where something that follows from sizes jumps.

grid or loop of cdiv(e, b)          lanes 0 ... b - 1 below e          edges of e at multiples of b
BLOCK = next_power_of_2(e)          a clause N <= 1024                 jumps of a term
program id // g                                                        groups of g programs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trilift.lift.capture.trace import Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..configurations.shape_classes import definitions, over, with_symbols
from ..integers.quotient import canonical, expand, to_term
from ..model.program import Program
from ..proof.prover import Proving
from ..runs.trials import blocks_of

COMPARISONS = ("lt", "le", "eq", "ne")


@dataclass(frozen=True, slots=True)
class Edge:
    """`extent`, a size over dims, is cut into blocks of `block`, which the kernel calls `name` ("" where it has no name
    for it)."""

    extent: Term
    block: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Jump:
    """A number or condition over dims that changes at some sizes; `text` says what it is."""

    term: Term
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """`programs`, a number over dims, are numbered in groups of `size`, a number over dims too."""

    programs: Term
    size: Term


def edges(case: Case, provings: Sequence[Proving], traces: Sequence[Trace]) -> list[Edge]:
    """The edges of all launches; where none was executed with symbols, every block at every dim: what it has at all
    shapes, else powers of two. `traces`: runs, one for each autotune configuration, and at other shapes."""
    names = block_names(traces)
    known = {*case.names, *case.scalars}
    if any(p.launched for p in provings):
        found = [e for p in provings for e in _of_configuration(p, traces, names, known) if over(e.extent, known)]
    else:
        fixed = [b for b in names if all(b in block_names(t for t in traces if t.dims == d.dims) for d in traces)]
        powers = sorted({b for t in traces for b in blocks_of(t) if b & (b - 1) == 0})
        blocks = sorted(fixed) or powers
        found = [Edge(T.size(n), b, names.get(b, "")) for n in case.names for b in blocks]
    return list(dict.fromkeys(found))


def jumps(case: Case, provings: Sequence[Proving], conditions: Iterable[Term]) -> list[Jump]:
    """Block sizes that follow from dims, the ends of what the number of programs or iterations is limited by, and the
    comparisons in conditions."""
    known = {*case.names, *case.scalars}
    out = [
        Jump(t, f"{name} = {_words(t)}")
        for p in provings
        for name, t in definitions(p.configuration.facts, known).items()
        if not t.is_const
    ]
    counts = [t for p in provings for x in p.launched for t in (*x.program.grid, *(n.trips for n in x.program.loops))]
    limits = [T.make("le", *s.args) for t in counts for s in t.walk() if s.op in ("min", "max") and len(s.args) == 2]
    parts = [s for c in conditions for s in c.walk() if s.op in COMPARISONS and s.args[0].type == T.INT]
    return list(dict.fromkeys([*out, *(Jump(s, _words(s)) for s in (*limits, *parts) if over(s, known))]))


def groups(case: Case, provings: Sequence[Proving]) -> list[Group]:
    """The groups that program ids are divided into."""
    known = {*case.names, *case.scalars}
    meant = [(p, definitions(p.configuration.facts, known)) for p in provings]
    found = [_resolved(g, of) for p, of in meant for launched in p.launched for g in _grouped(launched.program)]
    return list(dict.fromkeys(g for g in found if over(g.programs, known) and over(g.size, known)))


def _grouped(program: Program) -> Iterator[Group]:
    """(grid[k], g) for each pid_k // g in what is accessed."""
    programs = {T.size(f"pid{k}"): count for k, count in enumerate(program.grid)}
    for t in (s for a in program.accesses for of in (a.guard, a.pointer) for s in of.walk()):
        if t.op in ("floordiv", "truncdiv") and t.args[0] in programs:
            yield Group(programs[t.args[0]], t.args[1])


def _resolved(g: Group, meant: Mapping[str, Term]) -> Group:
    """Replaces the symbols that are not dims."""
    return Group(with_symbols(g.programs, meant), with_symbols(g.size, meant))


def block_names(traces: Iterable[Trace]) -> dict[int, str]:
    """Of each number among the compile-time arguments the parameters that have it."""
    found: dict[int, list[str]] = {}
    for t in traces:
        for e in t.launches:
            for n, v in e.args.items():
                if n in e.constexprs and type(v) is int and v > 1 and n not in found.setdefault(v, []):
                    found[v].append(n)
    return {v: ", ".join(names) if len(names) < 3 else "" for v, names in found.items()}


def _of_configuration(
    proving: Proving, traces: Sequence[Trace], names: Mapping[int, str], known: set[str]
) -> Iterator[Edge]:
    """Of every launch that was executed with symbols for its numbers."""
    fixed = definitions(proving.configuration.facts, known)
    for found in proving.launched:
        for extent, block in (*_divided(found.program), *_compared(found.program)):
            if block.is_const:
                yield from [Edge(extent, int(block.attr), names.get(int(block.attr), ""))] * (block.attr > 1)
            elif block.op == "size" and _picked(fixed.get(str(block.attr))):
                yield from (Edge(extent, v, str(block.attr)) for v in _chosen(str(block.attr), traces))


def _picked(meaning: Term | None) -> bool:
    """Whether a block size is one of a few numbers: nothing says how it follows from dims, or a test on them does."""
    return meaning is None or meaning.op == "where"


def _chosen(symbol: str, traces: Sequence[Trace]) -> list[int]:
    """The numbers of a compile-time parameter of which it is not known how it follows from dims."""
    name = symbol.split(".")[0]
    values = {v for t in traces for e in t.launches for n, v in e.args.items() if n == name and type(v) is int}
    return sorted(v for v in values if v > 1)


def unexplained(case: Case, provings: Sequence[Proving]) -> bool:
    """Whether some block size is chosen in a way that no term describes."""
    known = {*case.names, *case.scalars}
    return not any(p.launched for p in provings) or any(
        block.op == "size" and str(block.attr) not in definitions(p.configuration.facts, known)
        for p in provings
        for found in p.launched
        for _, block in (*_divided(found.program), *_compared(found.program))
    )


def _divided(program: Program) -> Iterator[tuple[Term, Term]]:
    """(e, b) for each cdiv(e, b) of a grid and of the loops."""
    for t in (s for e in (*program.grid, *(loop.trips for loop in program.loops)) for s in e.walk()):
        if t.op == "floordiv" and (t.args[1].is_const or t.args[1].op == "size"):
            yield canonical(T.sub(T.add(t.args[0], 1), t.args[1])), t.args[1]


def _compared(program: Program) -> Iterator[tuple[Term, Term]]:
    """(e, b) where lanes 0 ... b - 1, moved by whatever depends on the program, are compared with e."""
    for t in (s for a in program.accesses for s in a.guard.walk()):
        if t.op not in ("lt", "le") or t.args[0].type != T.INT:
            continue
        rest = expand(T.sub(t.args[1], t.args[0]))
        lanes = [m[0].attr for m, c in rest.items() if len(m) == 1 and m[0].op == "axis" and c == -1]
        fixed = {m: c for m, c in rest.items() if all(s.op == "size" and not str(s.attr).startswith("pid") for s in m)}
        extent = T.add(to_term(fixed), int(t.op == "le"))
        if not extent.is_const:
            yield from ((extent, axis.size) for axis in lanes)


def _words(t: Term) -> str:
    from ..wording.user_terms import words

    return words(t)

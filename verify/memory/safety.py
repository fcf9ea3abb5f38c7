"""The safety conditions of a kernel: every access inside its buffer, no divisor 0, no integer that wraps, and
whatever it assumes.

An access is asked about under its own path and mask and the ranges of program ids, lanes and counters, nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace as with_fields

from trilift.lift.errors import Place
from trilift.lift.pytorch.machine_integers import INEXACT, ROUNDED
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term
from trilift.lift.ttir.conversions import CONVERSION

from ..integers.bounded_solver import BoundedSolver
from ..integers.bounds import upper
from ..integers.logical_index import asking, quotients, rewritten, split
from ..integers.quotient import Ask, atoms, between, canonical, equalities, expand, minus, reduce, replace, to_term
from ..integers.solver import Facts, Solver
from ..model.configuration import View
from ..model.program import PIDS, Arithmetic, Program
from ..model.verdict import Clause, Condition
from ..normal_form.enclosure import Enclosure
from ..wording.user_terms import words
from .sites import Site, arithmetic_facts, conjuncts, moved
from .stores import holds


def in_bounds(site: Site, facts: Facts, solver: Solver, views: Iterable[View] = ()) -> Condition:
    """0 <= offset < length, whenever the access is executed. `views`: others of its buffer that may say where it is."""
    start = time.monotonic()
    what, known = f"{site.text} in bounds", facts | site.facts()
    goal = between(site.offset, site.buffer.length)
    ask = asking(known, solver, what)
    equal = equalities(facts)
    tried = dict.fromkeys(v for v in (site.view, *views) if v.buffer is site.buffer)
    ok = any(split(site.offset, v, ask, equal) and contained(v, ask) for v in tried)
    by = "index" if ok else "offset"
    ok = ok or (holds(T.make("le", 0, site.offset), ask) and holds(T.make("lt", site.offset, site.buffer.length), ask))
    condition = Condition(what, known, goal, ok, by, time.monotonic() - start, site.place)
    return condition if ok else with_fields(condition, why=_why_outside(site, known, equal, ask, solver))


def contained(view: View, ask: Ask) -> bool:
    """All elements of the view are in its buffer, if it has any."""
    counted = list(zip(view.shape, view.strides, strict=True))
    if not all(ask(T.make("le", 0, s)) for _, s in counted):
        return False
    last = T.add(view.offset, *(T.mul(T.sub(n, 1), s) for n, s in counted))
    return ask(T.make("le", 0, view.offset)) and ask(T.make("lt", canonical(last), canonical(view.buffer.length)))


def _why_outside(site: Site, known: Facts, equal: Mapping[Term, Term], ask: Ask, solver: Solver) -> str:
    """The index that leaves its range, else the offset; and numbers for which it does, if some were found."""
    found = quotients(site.offset, site.view, ask, dict(equal))
    view = rewritten(site.view, dict(equal))
    literals = [T.make("le", 0, site.offset), T.make("lt", site.offset, site.buffer.length)]
    if found is not None:
        index = [to_term(q) for q in found]
        literals = [g for x, n in zip(index, view.shape, strict=True) for g in (T.make("le", 0, x), T.make("lt", x, n))]
    missing = next((g for g in literals if not holds(g, ask)), None)
    if missing is None:
        return "could not prove that the tensor lies inside its buffer"
    text = f"could not prove {words(missing)}"
    model = solver.model(known | {T.make("not", missing)})
    return text if model is None else f"{text}; it fails at {numbers(model)}"


def numbers(model: Mapping[str, int]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in sorted(model.items()))


# ---- integer arithmetic ----------------------------------------------------------------------------------------------


ARITHMETIC = "integer arithmetic"  # what needs a clause about wrapping
SHIFT = "a shift is less than the width"
GOALS: dict[str, tuple[str, Callable[[Term, int], Term]]] = {
    "divisor": ("a divisor is not 0", lambda t, bits: T.make("ne", t, 0)),
    "positive": ("the step of a loop is positive", lambda t, bits: T.make("lt", 0, t)),
    "unsigned": ("an unsigned number is not negative", lambda t, bits: between(t, T.const(1 << bits))),
    "shift": (SHIFT, lambda t, bits: between(t, T.const(bits))),
    "wrap": ("integers do not wrap", lambda t, bits: fits(t, bits)),
    "inexact": (INEXACT, lambda t, bits: T.const(False)),
}
IN_FLOATS = "an integer that passes through a float"
SIZES = {"wrap": ARITHMETIC, "exact": IN_FLOATS}  # kinds that bound a number, and what needs them


def fits(t: Term, bits: int) -> Term:
    """t is a number of two's complement."""
    half = 1 << bits - 1
    return T.make("and", T.make("le", -half, t), T.make("lt", t, half))


def fits_words(t: Term, bits: int) -> str:
    """The same as text: of x - 128 in 8 bits, 0 <= x < 256."""
    half, (rest, moved) = 1 << bits - 1, _offset(t)
    return f"{-half - moved} <= {words(rest)} < {half - moved}"


def _offset(t: Term) -> tuple[Term, int]:
    """x and c of the sum x + c."""
    c = expand(t).get((), 0)
    return (T.sub(t, c), int(c)) if c == int(c) else (t, 0)


OF_KERNEL = "the kernel's "  # before the name of something that the kernel is undefined without
ASSUMED = {
    "assume": ("tl.assume", "a tl.assume of the kernel"),
    "descriptor": ("tensor descriptor", "a tensor descriptor, whose base and strides are multiples of 16 bytes"),
    "hint": ("hint to the compiler", "a hint to the compiler"),
    "clamp": ("lower and upper bound of tl.clamp", "a tl.clamp, which is undefined otherwise"),
    "assert": ("tl.device_assert", "a launch with debug=True, which stops otherwise"),
}
STATED = {  # where it is not shown: the words that whoever reads the verdict is told, and why
    "hint": ("the {} is true", "the compiler, which believes it"),
    "clamp": ("the {} are in order", "tl.clamp, which is undefined otherwise"),
    "assert": ("the {} holds", "a launch with debug=True, which stops otherwise"),
}


def _of_kernel(name: str, place: Place | None) -> str:
    return f"{OF_KERNEL}{name}{f' at line {place.line}' if place else ''}"


def undefines(c: Condition) -> bool:
    """Whether the kernel may do anything where the condition is false: a result that no run of ours foretells."""
    return c.what == SHIFT or c.what.startswith(OF_KERNEL)


def well_defined(program: Program, facts: Facts, solver: Solver, nonzero: Collection[str] = ()) -> list[Condition]:
    """One condition for each integer operation that has a meaning for some operands only; wrapping is `nowrap`'s.
    `nonzero`: inputs whose elements the contract keeps from being 0."""
    out = []
    for a in program.arithmetic:
        if a.kind in (*SIZES, *ASSUMED):
            continue
        start, (what, goal) = time.monotonic(), GOALS[a.kind]
        known, wanted = facts | arithmetic_facts(a, program.grid), goal(a.term, a.bits)
        ok = holds(wanted, asking(known, solver, what))
        ok = ok or (a.kind == "divisor" and _never_zero(a.term, known, solver, nonzero))
        seconds, why = time.monotonic() - start, ROUNDED if a.kind == "inexact" else words(wanted)
        out.append(Condition(what, known, wanted, ok, "linear", seconds, a.op.place, "" if ok else why))
    return out


def _never_zero(t: Term, known: Facts, solver: Solver, nonzero: Collection[str]) -> bool:
    """Whether a divisor is an element of inputs that are not 0, or of each choice a number that is not."""
    if t.op == "where":
        c, x, y = t.args
        branches = ((x, known | {c}), (y, known | {T.make("not", c)}))
        return all(_never_zero(s, here, solver, nonzero) for s, here in branches)
    if t.op == "read":
        return t.attr in nonzero
    return holds(T.make("ne", t, 0), asking(known, solver))


def assumed(program: Program, facts: Facts, solver: Solver) -> tuple[list[Condition], list[Clause]]:
    """tl.assume(c): a false c makes the whole kernel undefined. c holds at every place that reaches it, or at the sizes
    that a clause names; a condition that is not shown where neither is so, or where no size meets the clauses. One of
    STATED that is not shown is a clause of its own."""
    conditions, clauses = [], dict[Term, Clause]()
    for a in program.arithmetic:
        if a.kind not in ASSUMED:
            continue
        name, why_needed = ASSUMED[a.kind]
        start, what = time.monotonic(), _of_kernel(name, a.op.place)
        known = facts | arithmetic_facts(a, program.grid)
        open_ = [g for g in conjuncts([a.term]) if not holds(g, asking(known, solver, what))]
        needed = [_over_sizes(g, a, program, facts, solver) for g in open_]
        new = {c: Clause(a.kind, c, words(c), why_needed, a.op.place) for c in needed if c is not None}
        never = False
        shown = a.kind != "hint" and T.const(False) in needed  # to be wrong everywhere
        if a.kind in STATED and not shown and not {None, T.const(False)}.isdisjoint(needed):
            text, whom = STATED[a.kind]
            new[a.term] = Clause(a.kind, None, text.format(what.removeprefix(OF_KERNEL)), whom, a.op.place)
            never = _is_never_true(a, program, facts, solver)
            needed = [None] if never else []
        stated = {c for c, clause in (clauses | new).items() if clause.term is not None}
        ok = None not in needed and not (new and solver.contradictory(facts | stated))
        clauses |= new if ok else {}
        seconds = time.monotonic() - start
        goal = T.make("or", a.term, *(opposed(c) for c, clause in new.items() if clause.term is not None))
        why = "" if ok else f"could not prove {words(T.make('and', T.const(True), *open_))}"
        if never:
            whatever = "false, whatever the sizes are"
            why = f"it is {whatever}" if T.const(False) in open_ else f"{why}; the first program shows it {whatever}"
        conditions.append(Condition(what, known, goal, ok, "linear", seconds, a.op.place, why))
    return conditions, list(clauses.values())


def _is_never_true(a: Arithmetic, program: Program, facts: Facts, solver: Solver) -> bool:
    """Whether it is false in the first program, in each lane 0 or each lane 1, whatever the sizes are."""
    from .sites import unknowns

    for lane in (0, 1):
        at = {u: T.const(0 if u in PIDS else lane) for u in unknowns(program.grid, (), a.lanes)}
        reached = moved(arithmetic_facts(a, program.grid), at)
        if all(solver.implies(facts, r) for r in reached) and solver.contradictory(facts | {replace(a.term, at)}):
            return True
    return False


def opposed(c: Term) -> Term:
    return T.make("not", c)


def _over_sizes(goal: Term, a: Arithmetic, program: Program, facts: Facts, solver: Solver) -> Term | None:
    """A condition over the sizes that implies the goal wherever it is reached: x < y where x - y is at most b < 0."""
    local = _local(a, program)
    if not local(goal):
        return goal if all(s.type != T.REAL for s in goal.walk()) else None
    if goal.op not in ("lt", "le") or any(s.type != T.INT for s in goal.args):
        return None
    known = facts | arithmetic_facts(a, program.grid)
    ask = asking(known, solver)
    bound = upper(reduce(replace(T.sub(*goal.args), equalities(facts)), ask), local, known, ask)
    return None if bound is None else T.make(goal.op, bound, 0)


def nowrap(program: Program, facts: Facts, solver: Solver) -> list[Clause]:
    """Conditions on the sizes under which no integer of the kernel wraps; those that follow from others are left out.
    A clause without term could not be stated over the sizes."""
    found: dict[tuple[Term, int], Clause] = {}
    open_: list[Clause] = []
    for a in program.arithmetic:
        if a.kind not in SIZES:
            continue
        for bound in _wrapping(a, program, facts, solver):
            if bound is None:
                known, limit = facts | arithmetic_facts(a, program.grid), 1 << (a.bits - 1)
                met = None if may_fit(a.term, (-limit, limit), known, solver) else T.const(False)
                open_.append(Clause("nowrap", met, fits_words(a.term, a.bits), SIZES[a.kind], a.op.place))
            else:
                found.setdefault((bound, a.bits), below(bound, a.bits, a.op.place, SIZES[a.kind]))
    return [*largest(found, facts, solver), *open_]


def never_fitting(program: Program, clauses: Iterable[Clause]) -> list[Condition]:
    """A condition that fails for each conversion of a float to an integer whose clause is false: the integer fits at no
    size, so that the result is undefined (llvm.org/docs/LangRef.html, fptosi, fptoui). A sum that wraps is defined."""
    places = {a.op.place for a in program.arithmetic if a.op.name in CONVERSION.values()}
    false = (c for c in clauses if c.term is T.const(False) and c.place in places)
    return [
        Condition(_of_kernel("conversion to an integer", c.place), frozenset(), T.const(False), False, "linear", 0.0,
                  c.place, f"could not prove {c.text}")
        for c in false
    ]  # fmt: skip


def may_fit(t: Term, within: tuple[int, int], known: Facts, solver: Solver) -> bool:
    """Whether some element lies in low <= t < high, as far as the limits of inputs tell: of i32[N] in (3000, 4000) none
    is below 2048."""
    if t.is_const:
        return bool(within[0] <= t.attr < within[1])
    for condition, x in _alternatives(t):
        here = known | {condition}
        if x.type != T.INT or all(s.op != "read" for s in x.walk()) or solver.contradictory(here):
            continue
        ask = asking(here, solver)
        if ask(T.make("lt", x, within[0])) or ask(T.make("le", within[1], x)):
            return False
    return True


def _alternatives(t: Term) -> list[tuple[Term, Term]]:
    """The values of a choice, with the condition of each; of another term itself."""
    if t.op != "where":
        return [(T.const(True), t)]
    condition, a, b = t.args
    return [(condition, a), (T.make("not", condition), b)]


def below(bound: Term, bits: int, place: Place | None, why: str = ARITHMETIC) -> Clause:
    """The clause that a term over the sizes is less than 2^(bits - 1)."""
    limit = T.const(1 << bits - 1)
    return Clause("nowrap", T.make("lt", bound, limit), f"{words(bound)} < 2^{bits - 1}", why, place)


def _wrapping(a: Arithmetic, program: Program, facts: Facts, solver: Solver) -> list[Term | None]:
    """Terms over the sizes that must be less than 2^(bits - 1); None for one that was not found."""
    known = facts | arithmetic_facts(a, program.grid)
    ask = asking(known, solver)
    equal = equalities(facts) | {p: T.const(0) for p, n in zip(PIDS, program.grid, strict=True) if n is T.const(1)}
    t = reduce(replace(a.term, equal), ask)
    local = _local(a, program)
    limit = 1 << a.bits - 1
    out: list[Term | None] = []
    for x, top in ((t, T.const(limit)), (T.mul(-1, t), T.const(limit + 1))):
        if ask(T.make("lt", x, top)):
            continue
        bound = upper(x, local, known, ask)
        if bound is None and _enclosure(x, solver).of(x)[1] < top.attr:  # trunc(min(x, 127))
            continue
        if bound is None:
            out.append(None)
        elif not asking(facts, solver)(T.make("lt", bound, limit)):
            out.append(without_negative(bound, ask))
    return [None] if None in out else out


def _enclosure(t: Term, solver: Solver) -> Enclosure:
    """Intervals under what is known of the elements of integer inputs."""
    known: dict[int, tuple[float, float]] = {}
    bounds = solver.bounds if isinstance(solver, BoundedSolver) else {}
    for s in t.walk():
        low, high = bounds.get(str(s.attr), (None, None)) if s.op == "read" else (None, None)
        if low is not None and high is not None and low.is_const and high.is_const:
            known[s.id] = (float(low.attr), float(high.attr - 1))
    return Enclosure({}, {}, known)


def _local(a: Arithmetic, program: Program) -> Callable[[Term], bool]:
    """Does a term speak of one program, lane or iteration, or of data?"""
    from .sites import unknowns

    names = set(unknowns(program.grid, a.loops, a.lanes))
    return lambda t: any(s in names or s.op in ("axis", "read", "carry", "opaque", "undef") for s in t.walk())


def without_negative(bound: Term, ask: Ask) -> Term:
    """A simpler bound: summands that are never positive left out."""
    p = expand(bound)
    kept = {m: c for m, c in p.items() if c > 0 or not all(ask(T.make("le", 0, t)) for t in m)}
    return to_term(kept)


def largest(found: Mapping[tuple[Term, int], Clause], facts: Facts, solver: Solver) -> list[Clause]:
    """Clauses that no other implies: bound b of n bits follows from c of m <= n bits if b <= c. They are asked, and
    come, by their summands, then by their subterms, then as the program has them."""
    ask = asking(facts, solver)
    kept: list[tuple[Term, int]] = []
    for key in sorted(found, key=lambda k: (-len(expand(k[0])), sum(1 for _ in k[0].walk()))):
        if any(_below(key, k, ask) for k in kept):
            continue
        kept = [k for k in kept if not _below(k, key, ask)] + [key]
    return [found[k] for k in kept]


def _below(key: tuple[Term, int], other: tuple[Term, int], ask: Ask) -> bool:
    if other[1] > key[1]:
        return False
    gap = minus(expand(other[0]), expand(key[0]))
    apart = all(c >= 0 for c in gap.values()) and all(ask(T.make("le", 0, t)) for t in atoms(gap))
    return apart or ask(T.make("le", key[0], other[0]))


def all_in_bounds(sites: Sequence[Site], facts: Facts, solver: Solver, views: Iterable[View] = ()) -> list[Condition]:
    """`in_bounds` of every load, store and atomic."""
    views = tuple(views)
    return [in_bounds(s, facts, solver, views) for s in sites]

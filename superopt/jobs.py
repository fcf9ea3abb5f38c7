"""The work units of an optimisation: plain data in, plain data out, so that any process may run them and a store keep
what they say.

    cases     a file     -> the names of its cases, with the dims of each
    read      a case     -> the program that it computes, and where the program is from
    search    a program  -> plans as µGraphs, in the order in which they are checked, and how far the search went
    unfused   a program  -> the µGraph of the program as it is written
    original  a case     -> the verdict of its own kernels
    check     a µGraph   -> its Triton file, what acceptance says of it, its verdict against the case
    time      a file     -> how long it takes on a device, and whether it is right there

A unit may be run again, or twice: the same data give the same answer, but for what runs out of time. Such an answer is
not `settled`, and nobody keeps it."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trilift.lift.capture.case_files import load, load_all
from trilift.lift.cases.declaration import Case
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import NoLaunch, NotLifted, TriliftError, Unsupported
from trilift.lift.pytorch.read import read_case
from trilift.lift.runtime.budget import CAUSES, GUARDED, OutOfTime
from trilift.lift.runtime.strategy import Strategy
from trilift.lift.simplify.saturation import simplify
from trilift.lift.terms import index as I
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term
from trilift.verify.runs.trials import fits

from .accept.acceptance import Acceptance, accept, scalars
from .arrange.arrangement import Arrangement, arrange, record
from .emit.codegen import source
from .emit.contract import TORCH
from .mugraph.cost import Hardware, Model, suited
from .mugraph.graph import MuGraph, text
from .mugraph.json import from_json, to_json
from .mugraph.precision import precise
from .mugraph.warps import wider
from .program.abstract import templates
from .program.eager import eager_operators
from .program.program import Program, from_formulas
from .program.usual_sizes import ANY_SIZE, LENGTH, Role, roles
from .program.views import of_case, viewed
from .search.best_first import Limits, Reached, graphs
from .search.best_first import search as best_first
from .search.stabilise import stabilised, unstable
from .search.verifier import Invalid, verify
from .tiles import engine

NO_ROLES: Mapping[str, Role] = MappingProxyType({})
Answer = dict[str, Any]
Event = Callable[[Any], None]  # hears stages as texts, and Reached as data, while a unit runs


@dataclass(frozen=True, slots=True)
class Unit:
    """`kind`: a row of `UNITS`; `file`: the user's, that it loads, "" for none; `seconds` after which it is stuck."""

    kind: str
    arguments: Mapping[str, Any]
    file: str = ""
    seconds: float = field(default=120.0, compare=False)


def answer(unit: Unit, event: Event = lambda said: None) -> Answer:
    """The answer of a unit, made now. An error raised on purpose is an answer too: {"error": its kind, "text"}."""
    given = {"file": unit.file, **unit.arguments} if unit.file else dict(unit.arguments)
    try:
        return UNITS[unit.kind](**given, event=event)
    except TriliftError as e:
        return failed(e)


def failed(e: TriliftError) -> Answer:
    """The answer that is an error; an error of the user's file is not kept."""
    return {"error": type(e).__name__, "text": str(e), "settled": isinstance(e, Unsupported | NotLifted)}


# ---- reading ---------------------------------------------------------------------------------------------------------


def cases(file: str, names: Sequence[str], event: Event) -> Answer:
    """{"cases": {name: dims}} of those named, of all without names."""
    return {"cases": {c.name: list(c.names) for c in load_all(file, names)}}


def read(file: str, name: str, sizes: Mapping[str, int], seed: int, event: Event) -> Answer:
    """{"program", "against", "sizes", "usual", "parameters", "eager"}: the program at sizes of the case, as JSON; what
    the dims are used for whose sizes are the usual ones for that; what eager PyTorch runs for it there, None where that
    is not known."""
    case = load(file, [name])[0]
    chosen = sizes_of(case, sizes)
    small_enough(case, seed)
    formulas, against = formulas_of(case, seed)
    program = program_from(case, formulas, against, chosen)
    used_for = roles(case, program)
    own = sizes_of(case, sizes, used_for)
    if own != chosen:
        chosen, program = own, program_from(case, formulas, against, own)
    data = to_json(MuGraph(program, (), {}))
    eager = _eager(case, against, scalars(case, seed) | chosen)
    usual = {n: r.name for n, r in used_for.items() if n not in sizes and chosen[n] == r.size}
    return {"program": data, "against": against, "sizes": chosen, "usual": usual, "parameters": list(case.tensors),
            "eager": eager}  # fmt: skip


def _eager(case: Case, against: str, dims: Mapping[str, int | float]) -> list[dict[str, str | int]] | None:
    """The operators of the PyTorch function that the program is read from, as data."""
    fn = {"reference": case.reference.fn, "function": case.fn}.get(against)
    if fn is None:
        return None
    try:
        return [asdict(o) for o in eager_operators(case, fn, dims)]
    except Exception:  # a function may look at elements, which tensors of this kind have not
        return None


def sizes_of(case: Case, given: Mapping[str, int], of: Mapping[str, Role] = NO_ROLES) -> dict[str, int]:
    """A size for each dim at which plans are ranked: given, or usual for its role, or one for all others. Raises
    Unsupported where the case does not allow them."""
    if unknown := [n for n in given if n not in case.names]:
        raise Unsupported(f"{case.name} has no size {unknown[0]}", help=f"it has {', '.join(case.names)}")
    for most in (LENGTH.size, ANY_SIZE, 256, 64, 16, 4, 1):
        usual = {n: min(of[n].size if n in of else ANY_SIZE, most) for n in case.names}
        sizes = {n: given.get(n, size) for n, size in usual.items()}
        if case.holds(sizes):
            return sizes
    raise Unsupported(
        f"the case {case.name} does not allow the sizes", case.place, help="choose others with --at M=16,K=4096"
    )


def small_enough(case: Case, seed: int) -> None:
    """Raises Unsupported where what is emitted could not be replayed: the case is about large tensors only."""
    dims = choose(case, 1, seed)[0]
    if fits(case, dims):
        return
    n = max(math.prod(case.shape(t, dims)) for t in case.tensors)
    name = max(case.tensors, key=lambda t: math.prod(case.shape(t, dims)))
    raise Unsupported(
        f"{name} of {case.name} has at least {n} elements: too many to replay the emitted kernel", case.place,
        help="name the sizes, f16[M,K] instead of f16[16,4096], and pass numbers with --at; the file handles all sizes",
    )  # fmt: skip


def formulas_of(case: Case, seed: int = 0) -> tuple[Sequence[Formula], str]:
    """The formulas of the case, and their source: reference, function or formula. Raises TriliftError."""
    if case.reference.fn is not None:
        return [simplify(f).formula for f in read_case(case).formulas], "reference"
    try:
        return [simplify(f).formula for f in read_case(case, case.fn).formulas], "function"
    except Exception as e:  # it launches kernels, or raises: lift says where
        refused = e
    from trilift.lift import lift

    try:
        lifted = lift(case, seed)
    except NoLaunch:
        if isinstance(refused, TriliftError):
            raise refused from None  # it is a PyTorch function
        raise
    return [o.formula for o in lifted.outputs if o.formula is not None], "formula"


def program_from(case: Case, formulas: Sequence[Formula], against: str, sizes: dict[str, int]) -> Program:
    """The program of what a case computes: on tensors where all that is read and made are tensors, else on views.
    Raises TriliftError."""
    found = _read_as(case, formulas, against, sizes)
    for x in found.read:
        if x.dtype not in TORCH:
            raise Unsupported(f"{x.tensor} is {x.dtype}", case.place, f"kernels are written for {', '.join(TORCH)}")
    return found


def _read_as(case: Case, formulas: Sequence[Formula], against: str, sizes: dict[str, int]) -> Program:
    dtypes, shapes = {n: s.dtype for n, s in case.tensors.items()}, {n: case.dims(n) for n in case.tensors}
    try:
        found = from_formulas(formulas, dtypes, sizes)
        if whole(found, shapes) and all(f.in_place is None for f in formulas):
            return found
        refused = None
    except Unsupported as why:
        refused = why
    try:
        return viewed(formulas, dtypes, shapes, sizes) if against == "formula" else of_case(case, sizes)
    except Unsupported as why:
        raise refused or why from None


def whole(program: Program, shapes: Mapping[str, Sequence[Term]]) -> bool:
    """Whether every tensor is read at axes that are its dimensions, not at the first entries of one."""
    size = lambda a: I.normal(program.extents[a])  # noqa: E731
    return all([*map(size, x.axes)] == [*map(I.normal, shapes[x.tensor])] for x in program.read)


def program_of(data: str) -> Program:
    """The program of a text that `read` gave."""
    return from_json(data).program


# ---- plans -----------------------------------------------------------------------------------------------------------


def search(program: str, limits: Mapping[str, Any], hardware: Mapping[str, Any], seed: int, event: Event) -> Answer:
    """{"plans": [{"graph", "seconds"}], ...}: those with a maximum under each exponential first, then by seconds. Where
    the program is too large to search there are no plans, and "note" says so."""
    asked, p = Limits(**limits), program_of(program)
    largest = any(n.op == "max" for n in p.nodes)  # has no value in a finite field
    engine = "tiles" if largest and asked.engine == "mugraph" else asked.engine
    found: Answer = strategy(engine).attempt(p, asked, suited(Hardware(**hardware), p), seed, event)
    return found


def _best_first(p: Program, limits: Limits, device: Hardware, seed: int, event: Event) -> Answer:
    """Kernels chosen from the outputs down, best first under admissible bounds."""
    start = time.perf_counter()
    hear = lambda reached: event(asdict(reached))  # noqa: E731
    try:
        found = best_first(p, limits, device, seed, hear)
    except Unsupported as e:
        reached = Reached(0, 0, None, Model(p, device).roofline)
        return _searched(reached, 0, time.perf_counter() - start, None, f"not searched: {e}")
    steady = [(g, x.seconds, bool(unstable(stabilised(g)))) for x, g in zip(found.plans, graphs(found), strict=True)]
    plans = [{"graph": to_json(g), "seconds": seconds} for g, seconds, _ in sorted(steady, key=lambda row: row[2])]
    best = min((x.seconds for x in found.plans), default=None)
    reached = Reached(found.states, found.candidates, best, found.model.roofline)
    note = _guarded(limits.seconds) if found.late else ""
    out = _searched(reached, len(found.universe.bits), found.seconds, found.excluded, note)
    return {**out, "plans": plans, "settled": not found.late}


def _saturated(p: Program, limits: Limits, device: Hardware, seed: int, event: Event) -> Answer:
    """Equality saturation of tile programs, and an extraction: `values` are e-classes, `states` e-nodes."""
    roofline = Model(p, device).roofline

    def reached(f: engine.Found) -> Reached:
        return Reached(f.nodes, f.candidates, min((x.seconds for x in f.plans), default=None), roofline)

    try:
        asked = engine.Limits(limits.seconds, limits.keep, limits.kernels)
        found = engine.search(p, asked, device, seed, lambda f: event(asdict(reached(f))))
    except Unsupported as e:
        return _searched(Reached(0, 0, None, roofline), 0, 0.0, None, f"not searched: {e}")
    plans = [{"graph": to_json(x.graph), "seconds": x.seconds} for x in found.plans]
    note = f"{found.said}; {_guarded(limits.seconds)}" if found.late else found.said
    out = _searched(reached(found), found.classes, found.seconds, None, note)
    return {**out, "plans": plans, "settled": not found.late}


def _guarded(seconds: float) -> str:
    return f"{GUARDED} after {seconds:g} s, during the search"


def _searched(reached: Reached, values: int, seconds: float, excluded: float | None, note: str = "") -> Answer:
    return {**asdict(reached), "values": values, "seconds": seconds, "excluded": excluded, "note": note, "plans": []}


def unfused(program: str, hardware: Mapping[str, Any], event: Event) -> Answer:
    """{"graph", "seconds"}, as one of the plans."""
    p = program_of(program)
    device = suited(Hardware(**hardware), p)
    found: Answer = strategy("unfused").attempt(p, Limits(), device, 0, event)
    return {**found["plans"][0]}


def _unfused(p: Program, limits: Limits, device: Hardware, seed: int, event: Event) -> Answer:
    """A kernel for each operation of the program as it is written: the plan where no other was accepted."""
    from .search.unfused import unfused as written

    graph, seconds = written(p, device)
    out = _searched(Reached(1, 1, seconds, Model(p, device).roofline), 0, 0.0, None)
    return {**out, "plans": [{"graph": to_json(graph), "seconds": seconds}], "settled": True}


def _row(name: str, attempt: Callable[..., Answer], source: str, example: str) -> Strategy:
    return Strategy(name, "plan", attempt, source, example)


PLANS = (
    _row("mugraph", _best_first, "Mirage, sections 4 and 5", "corpus/mirage: gated_mlp"),
    _row("tiles", _saturated, "Trinity, sections 4 and 5", "corpus/trinity: vanilla"),
    _row("unfused", _unfused, "ours", "a program for which the search found no plan within its limits"),
)


def strategy(name: str) -> Strategy:
    """The row of that name."""
    return next(row for row in PLANS if row.name == name)


# ---- verdicts --------------------------------------------------------------------------------------------------------


def original(file: str, name: str, seed: int, timeout: float, event: Event) -> Answer:
    """{"verdict"} of the case's own kernels."""
    said, settled = decision(load(file, [name])[0], seed, timeout)
    return {"verdict": said, "settled": settled}


def check(  # noqa: PLR0913 - a request has these keys
    file: str, name: str, against: str, graph: str, parameters: Sequence[str], sizes: Mapping[str, int], seed: int,
    timeout: float, event: Event,
) -> Answer:  # fmt: skip
    """{"graph", "text", "arrangement", "source", "bound", "acceptance", "same", "unstable"}: the µGraph stabilised
    and arranged, its file, its verdict against the case where it is accepted, and why exponentials may overflow;
    {"note"} where there is no such file. Where its numbers do not hold up in 16 bits, operands are taken in 32; where
    its values do not fit into registers, more warps share them."""
    start = from_json(graph)
    g: MuGraph | None = start
    while g is not None:
        event("emit")
        try:
            arranged, written, bound = emitted(g, name, parameters, seed)
        except TriliftError as e:
            return {"note": f"not emitted: {e}; {text(start).splitlines()[0]}"}
        event("accept")
        steady = arranged.graph
        judged = accept(written, sizes=sizes, timeout=timeout, seed=seed, stable=not unstable(steady))
        g = _mended(g, steady, judged)
    same, settled = "", _decided(judged)
    if judged.accepted:
        event("prove it against the input")
        same, settled = compared(written, load(file, [name])[0], against, seed, timeout)
    return {
        "graph": to_json(steady), "text": text(steady), "source": written, "bound": bound,
        "arrangement": {"text": str(arranged), **record(arranged)}, "acceptance": asdict(judged), "same": same,
        "unstable": unstable(steady), "settled": settled,
    }  # fmt: skip


def _mended(g: MuGraph, arranged: MuGraph, judged: Acceptance) -> MuGraph | None:
    """The µGraph with what a rejection asks for: operands in 32 bits, or more warps; None where nothing helps, or
    nothing is asked for."""
    last = judged.steps[-1]
    if last.name == "rounded" and not last.passed:
        more = replace(arranged, wide=True)
        return replace(g, wide=True) if {*precise(arranged)} != {*precise(more)} else None
    return wider(g, arranged, {c.kernel for c in judged.compiled if c.spilled})


def emitted(g: MuGraph, name: str, parameters: Sequence[str], seed: int) -> tuple[Arrangement, str, float]:
    """A µGraph with its maxima as it is arranged, its file and the bound of its field test. Raises Unsupported,
    Invalid."""
    named, arranged = templates(g.program), arrange(stabilised(g))
    tested = verify(g, named, seed)
    if any(o.equal is False for o in tested.outcomes):
        raise Invalid("it differs from the program in the field")
    return arranged, source(arranged.graph, name, named, g.program.extents, parameters=parameters), tested.bound


def proved_same(written: str, case: Case, against: str, seed: int, timeout: float) -> str:
    """The verdict of `compared`."""
    return compared(written, case, against, seed, timeout)[0]


def compared(written: str, case: Case, against: str, seed: int, timeout: float) -> tuple[str, bool]:
    """The decision about an emitted file against what the search started from: what the file says of itself was printed
    from the program, and nobody else compares the program with the case."""
    other = {"reference": case.reference.fn, "function": case.fn}.get(against, case)
    with tempfile.TemporaryDirectory(prefix="trilift-") as folder:
        path = Path(folder) / "emitted.py"
        path.write_text(written)
        return decision(load(str(path))[0], seed, timeout, other)


def proved(case: Case, seed: int, timeout: float, other: Any = None) -> str:
    """The verdict of `decision`."""
    return decision(case, seed, timeout, other)[0]


def decision(case: Case, seed: int, timeout: float, other: Any = None) -> tuple[str, bool]:
    """The worst verdict of the case's outputs: against `other`, its reference, or else the lifted formulas; and whether
    the same question gives it again, since the outer time limit ended no proof."""
    from trilift.verify import prove

    try:
        proofs = prove(case, seed=seed, timeout=timeout, other=other)
    except TriliftError as error:
        return "UNKNOWN", not isinstance(error, OutOfTime)
    verdicts = {p.verdict.value for p in proofs}
    worst = next((v for v in ("REFUTED", "UNKNOWN", "TESTED", "PROVED") if v in verdicts), "UNKNOWN")
    return worst, not any(p.cause == CAUSES[OutOfTime] for p in proofs)


def _decided(judged: Acceptance) -> bool:
    """Whether a rejection has nothing to do with time."""
    last = judged.steps[-1]
    return last.passed or not any(word in last.text for word in (GUARDED, "timeout"))


def time_on(source: str, name: str, sizes: Mapping[str, int], seed: int, device: str, event: Event) -> Answer:
    """The measurement of `superopt.accept.timing` for an emitted file on a device, as a record. A timing is of one
    moment: nobody keeps it."""
    from .accept import timing

    event("time")
    with tempfile.TemporaryDirectory(prefix="trilift-") as folder:
        path = Path(folder) / "emitted.py"
        path.write_text(source)
        case = load(str(path))[0]
        there = timing.device(device)
        xs = timing.inputs(case, sizes, device, seed)
        found = timing.measured(case.fn, timing.turns(xs, there), timing.wanted(case, xs), there)
    return {**found.record(), "settled": False}


UNITS: dict[str, Callable[..., Answer]] = {
    "cases": cases, "read": read, "search": search, "unfused": unfused, "original": original, "check": check,
    "time": time_on,
}  # fmt: skip

"""From a kernel, or a PyTorch function, to a faster kernel that is proved the same.

    case -> formulas -> program -> plans, best first -> µGraph -> stabilised -> Triton file -> accepted or not

The formulas are those of the case's reference, else of its host function if that launches nothing, else the lifted
ones. What is emitted is read, proved and replayed as any other file (`superopt.accept`); the first plan whose file is
accepted is the result. A case that launches kernels is proved against the same formulas, so that both kernels are
shown to be one function. Sizes only rank: the file is for all sizes of its contract."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lift.case import Case
from lift.errors import TriliftError, Unsupported
from lift.load import load
from lift.reader import read_case
from lift.simplify import simplify
from lift.spec import Formula

from .abstract import templates
from .accept import Acceptance, accept
from .codegen import source
from .cost import H200, Hardware
from .mugraph import MuGraph, text
from .program import Program, from_formulas
from .search import Found, Limits, graphs, search
from .stabilise import stabilised, unstable
from .verifier import Invalid, verify

SIZE = 1024  # of a dim that nobody gave a size
TRIES = 4  # files that are emitted and checked
Say = Callable[[str], None]
USUAL = Limits()


@dataclass(frozen=True)
class Emitted:
    """A file that was emitted for the µGraph `graph`; `seconds` per call in the model, `bound` of its field test."""

    graph: MuGraph
    source: str
    seconds: float
    bound: float
    acceptance: Acceptance


@dataclass
class Optimised:
    """`best`: the result, None where nothing was accepted; `original`: the verdict of the case's own kernels against
    the same formulas, "" without kernels; `tried`: all files with what became of them; `notes`: plans that were not
    emitted, and why."""

    case: Case
    against: str
    program: Program
    sizes: dict[str, int]
    found: Found
    original: str = ""
    best: Emitted | None = None
    tried: list[Emitted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def sizes_of(case: Case, given: Mapping[str, int]) -> dict[str, int]:
    """A size for each dim at which plans are ranked. Raises Unsupported where the case does not allow them."""
    if unknown := [n for n in given if n not in case.names]:
        raise Unsupported(f"{case.name} has no size {unknown[0]}", help=f"it has {', '.join(case.names)}")
    for usual in (SIZE, 256, 64, 16, 4, 1):
        sizes = {n: given.get(n, usual) for n in case.names}
        if case.holds(sizes):
            return sizes
    raise Unsupported(
        f"the case {case.name} does not allow the sizes", case.place, help="--at M=16,K=4096 gives others"
    )


def formulas_of(case: Case, seed: int = 0) -> tuple[Sequence[Formula], str]:
    """What the case computes, and where that is from: reference, function or formula. Raises TriliftError."""
    if case.reference.fn is not None:
        return [simplify(f).formula for f in read_case(case).formulas], "reference"
    try:
        return [simplify(f).formula for f in read_case(case, case.fn).formulas], "function"
    except TriliftError:
        pass
    from lift import lift

    lifted = lift(case, seed)
    return [o.formula for o in lifted.outputs if o.formula is not None], "formula"


def optimise(
    case: Case, sizes: Mapping[str, int] | None = None, limits: Limits = USUAL, hardware: Hardware = H200,
    seed: int = 0, timeout: float = 60.0, header: Sequence[str] = (), say: Say = lambda text: None,
) -> Optimised:  # fmt: skip
    """The fastest accepted kernel in the model. Raises Unsupported, CaseError where there is no program to search."""
    start = time.perf_counter()
    chosen = sizes_of(case, sizes or {})
    formulas, against = formulas_of(case, seed)
    dtypes = {n: s.dtype for n, s in case.tensors.items()}
    program = from_formulas(formulas, dtypes, chosen)
    say("search")
    found = search(program, limits, hardware, seed)
    out = Optimised(case, against, program, chosen, found)
    if against != "function":
        say("prove the original")
        out.original = proved(case, seed, timeout)
    plans = [(g, stabilised(g), p.seconds) for p, g in zip(found.plans, graphs(found), strict=True)]
    for graph, steady, seconds in sorted(plans, key=lambda row: bool(unstable(row[1]))):  # those with a maximum first
        if len(out.tried) >= TRIES:
            out.notes.append(f"{len(found.plans)} plans were found, {TRIES} were emitted")
            break
        say(f"check plan {len(out.tried) + 1} of {min(TRIES, len(found.plans))}")
        emitted = _emitted(graph, steady, seconds, header, seed, timeout, out)
        if emitted is None:
            continue
        out.tried.append(emitted)
        if emitted.acceptance.accepted:
            say("prove it against the input")
            said = proved_same(emitted.source, case, against, seed, timeout)
            if said in ("PROVED", "TESTED"):
                out.best = emitted
                break
            out.notes.append(f"accepted by itself, and {said} against the {against} of the case")
    out.seconds = time.perf_counter() - start
    return out


def proved_same(written: str, case: Case, against: str, seed: int, timeout: float) -> str:
    """The verdict of an emitted file against what the search started from: what the file says of itself was printed
    from the program, and nobody else compares the program with the case."""
    other = {"reference": case.reference.fn, "function": case.fn}.get(against, case)
    with tempfile.TemporaryDirectory(prefix="trilift-") as folder:
        path = Path(folder) / "emitted.py"
        path.write_text(written)
        return proved(load(str(path))[0], seed, timeout, other)


def proved(case: Case, seed: int, timeout: float, other: Any = None) -> str:
    """The worst verdict of the case's outputs: against `other`, its reference, or else the lifted formulas."""
    from verify import prove

    try:
        verdicts = {p.verdict.value for p in prove(case, seed=seed, timeout=timeout, other=other)}
    except TriliftError:
        return "UNKNOWN"
    return next((v for v in ("REFUTED", "UNKNOWN", "TESTED", "PROVED") if v in verdicts), "UNKNOWN")


def _emitted(
    graph: MuGraph, steady: MuGraph, seconds: float, header: Sequence[str], seed: int, timeout: float, out: Optimised
) -> Emitted | None:
    """The file of a µGraph that passes the field test, with its maxima; None, with a note, where there is none."""
    named = templates(graph.program)
    try:
        tested = verify(graph, named, seed)
        if any(o.equal is False for o in tested.outcomes):
            raise Invalid("it differs from the program in the field")
        order = list(out.case.tensors)
        written = source(steady, out.case.name, named, graph.program.extents, header, order)
    except TriliftError as error:
        out.notes.append(f"not emitted: {error}; {text(graph).splitlines()[0]}")
        return None
    stable = not unstable(steady)
    judged = accept(written, sizes=out.sizes, timeout=timeout, seed=seed, stable=stable)
    return Emitted(steady, written, seconds, tested.bound, judged)

"""From a kernel, or a PyTorch function, to a faster kernel that is proved the same.

    case -> formulas -> program -> plans, best first -> µGraph -> stabilised -> Triton file -> accepted or not

The formulas are those of the case's reference, else of its host function if that launches nothing, else the lifted
ones. An emitted file is read, proved and replayed as any other file (`superopt.accept.acceptance`); the first plan
whose file is accepted is the result, or the fastest of the first few where there is a device to time them. A case
that launches kernels is proved against the same formulas, so that both kernels are shown to be one function. Where
no plan was found in time the program as it is written is the only one. Sizes only rank: the file is for all sizes of
its contract.

Each step is a work unit (`superopt.jobs`). Whoever runs them may run several at a time, elsewhere, or take what a
store has: plans are judged in their order, so that the result is the same."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, TriliftError, Unsupported

from .accept.acceptance import Acceptance, Compiled, Step
from .jobs import Answer, Event, Unit, answer, program_of
from .mugraph.cost import H200, Hardware, Model, eager_seconds, suited
from .mugraph.graph import MuGraph
from .mugraph.json import from_json
from .program.eager import EagerOperator
from .program.program import Program
from .search.best_first import Limits

TRIES = 4  # files that are emitted and checked
FINALISTS = 3  # of those accepted, that are timed where there is a device
GRACE_SECONDS = 120.0  # seconds of a unit beside what it was given
Say = Callable[[str], None]
Ask = Callable[[Unit, Event], "Future[Answer]"]
USUAL = Limits()
MICRO = 1e6


@dataclass(frozen=True)
class Question:
    """The case `name` of a file, and how to optimise it; `timeout`: seconds for a proof; `device`: on which finalists
    are timed, "" for none."""

    file: str
    name: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    limits: Limits = USUAL
    hardware: Hardware = H200
    seed: int = 0
    timeout: float = 60.0
    device: str = ""


@dataclass(frozen=True)
class Searched:
    """How a search went: `values` of its closure, `states` looked at, `candidates`, the kernels derived; seconds in the
    model of the `best` plan and of the `roofline`; `excluded`: every plan that was not looked at takes longer, None
    where the search ended early; `plans`: how many were kept; `engine`: of `superopt.search.best_first.Limits`. Of
    tile programs, `values` are e-classes and `states` e-nodes."""

    values: int
    states: int
    candidates: int
    seconds: float
    best: float | None
    roofline: float
    excluded: float | None
    plans: int
    hardware: str
    engine: str = "mugraph"


@dataclass(frozen=True)
class Emitted:
    """A file that was emitted for a µGraph, whose `text` a person can read; `seconds` per call in the model, `bound` of
    its field test; `same`: its verdict against the case, "" where it was not accepted; `arrangement`: barriers,
    shared memory and layouts, plain data with a "text"; `unstable`: why its exponentials may overflow, "" where none
    does; `timed`: what a device says of it (`superopt.accept.timing.Measured`), empty without one."""

    data: str
    text: str
    source: str
    seconds: float
    bound: float
    acceptance: Acceptance
    same: str = ""
    arrangement: Answer = field(default_factory=dict)
    unstable: str = ""
    timed: Answer = field(default_factory=dict)

    @cached_property
    def graph(self) -> MuGraph:
        return from_json(self.data)

    @property
    def accepted(self) -> bool:
        return self.acceptance.accepted and self.same in ("PROVED", "TESTED")

    @property
    def verdict(self) -> str:
        """PROVED only where it is proved both by itself and against the case."""
        return self.same if self.acceptance.verdict == "PROVED" else self.acceptance.verdict

    @property
    def right(self) -> bool:
        """Whether the device computed what it should."""
        return bool(self.timed.get("right"))

    @property
    def why(self) -> str:
        """Why it was not timed."""
        return str(self.timed.get("why") or self.timed.get("text", ""))

    @property
    def measured(self) -> float:
        """Seconds per call on the device, the cache cold."""
        return float(self.timed["cold"]["median"])


@dataclass
class Optimised:
    """`best`: the result, None where nothing was accepted; `eager`: the least seconds in the model, and operators, of
    the PyTorch function it was read from, None where these are not known; `original`: the verdict of the case's own
    kernels against the same formulas, "" without kernels; `usual`: what dims are used for that nobody gave a size, and
    that have the usual one for it; `tried`: all files with what became of them; `notes`: plans
    that were not emitted, and why; `interrupted`: it ended early, with the best until then."""

    name: str
    against: str
    data: str
    sizes: dict[str, int]
    found: Searched
    usual: dict[str, str] = field(default_factory=dict)
    original: str = ""
    best: Emitted | None = None
    tried: list[Emitted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    eager: tuple[float, int] | None = None

    @property
    def yours(self) -> bool:
        """Whether the PyTorch function that was given is at least as fast as the best file, in the model."""
        known = self.against == "function" and self.eager is not None and self.best is not None
        return known and not self.best.timed and self.best.seconds >= self.eager[0]  # type: ignore[union-attr,index]

    @cached_property
    def program(self) -> Program:
        return program_of(self.data)


class Failed(Exception):
    """A unit that did not come back: its process died, or took too long."""


class Broken(Exception):
    """A unit that raised what nobody meant to raise."""


ERRORS: dict[str, type[Exception]] = {
    "Failed": Failed, "Broken": Broken, "Unsupported": Unsupported, "NotLifted": Unsupported,
}  # fmt: skip


def here(unit: Unit, event: Event) -> Future[Answer]:
    """The answer of a unit, made in this process."""
    out: Future[Answer] = Future()
    out.set_result(answer(unit, event))
    return out


def optimise(
    case: Case, sizes: Mapping[str, int] | None = None, limits: Limits = USUAL, hardware: Hardware = H200,
    seed: int = 0, timeout: float = 60.0, say: Say = lambda text: None,
) -> Optimised:  # fmt: skip
    """The fastest accepted kernel in the model, all in this process; the case is read from its file. Raises
    Unsupported, CaseError where there is no program to search."""
    if case.place is None:
        raise CaseError(f"{case.name} is not defined in a file")
    return optimised(Question(case.place.file, case.name, sizes or {}, limits, hardware, seed, timeout), say=say)


def optimised(question: Question, ask: Ask = here, ahead: int = 1, say: Say = lambda text: None) -> Optimised:
    """The fastest accepted kernel in the model; `ahead`: how many plans are checked at a time. Raises Unsupported,
    CaseError where there is no program to search, Failed or Broken where a unit did not come back, CancelledError where
    the units were cancelled before plans were known."""
    return _Optimisation(question, ask, ahead, say).run()


@dataclass
class _Optimisation:
    question: Question
    ask: Ask
    ahead: int
    say: Say
    line: str = ""  # how far the search went

    def run(self) -> Optimised:
        q, start = self.question, time.perf_counter()
        self.say("read")
        read = self.unit("read", q.file, q.timeout, name=q.name, sizes=dict(q.sizes), seed=q.seed)
        program = said(read.result())
        self.say("search")
        data = {"program": program["program"], "hardware": asdict(q.hardware)}
        searching = self.unit("search", "", q.limits.seconds, limits=asdict(q.limits), seed=q.seed, **data)
        proving = None
        if program["against"] != "function":
            proving = self.unit("original", q.file, 2 * q.timeout, name=q.name, seed=q.seed, timeout=q.timeout)
        found = said(self.ended(searching.result(), program["program"]))
        self.line = reached(found)
        out = Optimised(
            q.name, program["against"], program["program"], program["sizes"], _searched(found, q), program["usual"]
        )
        out.notes += [found["note"]] if found["note"] else []
        if (rows := program["eager"]) is not None:
            device = suited(q.hardware, out.program)
            out.eager = eager_seconds([EagerOperator(**r) for r in rows], device), len(rows)
        try:
            if proving is not None:
                self.say("prove the original")
                out.original = _verdict(proving.result(), out)
            self.judge(out, found["plans"], program)
            if out.best is None:
                self.judge(out, self.written(data, out), program)
        except CancelledError:
            out.interrupted = True
        out.seconds = time.perf_counter() - start
        return out

    def unit(self, kind: str, file: str, seconds: float, **arguments: Any) -> Future[Answer]:
        return self.ask(Unit(kind, arguments, file, seconds + GRACE_SECONDS), self.hear)

    def hear(self, event: Any) -> None:
        """The progress of a unit while it runs: how far the search is, or what is done to the best plan."""
        if isinstance(event, dict):
            self.line = reached(event)
        self.say(f"search: {self.line}" if isinstance(event, dict) else f"{event}; {self.line}")

    def ended(self, found: Answer, program: str) -> Answer:
        """The result of a search: nothing, where its process died or was late."""
        if found.get("error") != "Failed":
            return found
        read = program_of(program)
        roofline = Model(read, suited(self.question.hardware, read)).roofline
        none = dict.fromkeys(("values", "states", "candidates"), 0)
        rest = {"best": None, "roofline": roofline, "excluded": None, "plans": [], "note": found["text"]}
        return {**none, "seconds": self.question.limits.seconds, **rest}

    def written(self, data: Mapping[str, Any], out: Optimised) -> list[Answer]:
        """The program as it is written, as the only plan."""
        none = "no plan was accepted" if out.tried else "no plan was found within the limits"
        made = self.unit("unfused", "", GRACE_SECONDS, **data).result()
        if "error" in made:
            out.notes.append(f"{none}, and the unfused program failed: {made['text']}")
            return []
        out.notes.append(f"{none}: this is the unfused program")
        return [made]

    def judge(self, out: Optimised, plans: Sequence[Answer], program: Answer) -> None:
        """The first of the plans, in their order, whose file is accepted."""
        rest, waiting = iter(enumerate(plans)), deque[tuple[Answer, Future[Answer]]]()
        accepted: list[Emitted] = []
        most = len(out.tried) + TRIES
        try:
            while True:
                self.fill(waiting, rest, most - len(out.tried), program)
                if not waiting:
                    break
                plan, future = waiting.popleft()
                emitted = _emitted(future.result(), plan, out)
                if emitted is None:
                    continue
                out.tried.append(emitted)
                accepted += [emitted] if emitted.accepted else []
                if len(accepted) >= (FINALISTS if self.question.device else 1):
                    break
            if not accepted and next(rest, None) is not None:
                out.notes.append(f"{len(plans)} plans were found, {TRIES} were emitted")
            out.best = self.fastest(accepted, out, program)
            if out.best is not None and out.best.unstable:
                out.notes.append(f"exp is not stabilised: {out.best.unstable}")
        except CancelledError:
            out.best = accepted[0] if accepted else self.so_far(waiting, out)
            raise
        finally:
            for _, future in waiting:
                future.cancel()

    def fastest(self, accepted: Sequence[Emitted], out: Optimised, program: Answer) -> Emitted | None:
        """The first of the finalists in the model; with a device the fastest there of those that are right there."""
        q = self.question
        if not q.device or not accepted:
            return accepted[0] if accepted else None
        self.say(f"time {len(accepted)} finalists")
        given = {"name": q.name, "sizes": program["sizes"], "seed": q.seed, "device": q.device}
        asked = [self.unit("time", "", q.timeout, source=e.source, **given) for e in accepted]
        timed = [replace(e, timed=f.result()) for e, f in zip(accepted, asked, strict=True)]
        out.tried[:] = [next((t for t in timed if t.source == e.source), e) for e in out.tried]
        for number, e in enumerate(timed):
            if not e.right:
                out.notes.append(f"finalist {number + 1} is rejected: {e.why} on the device")
        return min((e for e in timed if e.right), key=lambda e: e.measured, default=None)

    def fill(
        self, waiting: deque[tuple[Answer, Future[Answer]]], rest: Iterator[tuple[int, Answer]], left: int,
        program: Answer,
    ) -> None:  # fmt: skip
        """Asks for checks of the next plans, never of more than are left to try."""
        q = self.question
        while len(waiting) < min(self.ahead, left) and (row := next(rest, None)) is not None:
            number, plan = row
            self.say(f"check plan {number + 1}; {self.line}")
            check = self.unit(
                "check", q.file, 3 * q.timeout, name=q.name, against=program["against"], graph=plan["graph"],
                parameters=program["parameters"], sizes=program["sizes"], seed=q.seed, timeout=q.timeout,
            )  # fmt: skip
            waiting.append((plan, check))

    def so_far(self, waiting: deque[tuple[Answer, Future[Answer]]], out: Optimised) -> Emitted | None:
        """The first that is accepted of those whose check is over."""
        done = [(plan, f) for plan, f in waiting if f.done() and not f.cancelled() and f.exception() is None]
        found = (_emitted(f.result(), plan, out) for plan, f in done)
        return next((e for e in found if e is not None and e.accepted), None)


def said(a: Answer) -> Answer:
    """The answer, if it is none of the errors. Raises Unsupported, CaseError, Failed or Broken."""
    if "error" in a:
        raise ERRORS.get(a["error"], CaseError)(a["text"])
    return a


def reached(event: Mapping[str, Any]) -> str:
    """One line about how far a search is."""
    best, roofline = event["best"], event["roofline"] * MICRO
    line = f"{event['states']} states, {event['candidates']} candidates"
    if best is None:
        return f"{line}, no plan yet, roofline {roofline:.2f} us"
    return f"{line}, best {best * MICRO:.2f} us, {best / event['roofline']:.1f} times the roofline"


def _searched(found: Answer, q: Question) -> Searched:
    names = ("values", "states", "candidates", "seconds", "best", "roofline", "excluded")
    return Searched(**{n: found[n] for n in names}, plans=len(found["plans"]), hardware=q.hardware.name,
                    engine=q.limits.engine)  # fmt: skip


def _verdict(a: Answer, out: Optimised) -> str:
    if "error" in a:
        out.notes.append(f"the original was not proved: {a['text']}")
        return "UNKNOWN"
    return str(a["verdict"])


def _emitted(a: Answer, plan: Answer, out: Optimised) -> Emitted | None:
    """The result of a check; None, with a note, where there is no file."""
    if "error" in a or "note" in a:
        out.notes.append(a.get("note") or f"not checked: {a['text']}")
        return None
    judged = dict(a["acceptance"])
    judged["steps"] = tuple(Step(**s) for s in judged["steps"])
    judged["compiled"] = tuple(Compiled(**c) for c in judged["compiled"])
    judged["contract"] = tuple(judged["contract"])
    acceptance = Acceptance(**judged)
    if acceptance.accepted and a["same"] not in ("PROVED", "TESTED"):
        out.notes.append(f"accepted by itself, but {a['same']} against the {out.against} of the case")
    return Emitted(
        a["graph"], a["text"], a["source"], plan["seconds"], a["bound"], acceptance, a["same"], a["arrangement"],
        a["unstable"],
    )  # fmt: skip


__all__ = ["Broken", "Emitted", "Failed", "Optimised", "Question", "Searched", "TriliftError", "optimise", "optimised"]

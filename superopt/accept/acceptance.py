"""Acceptance of an emitted file: it compiles for sm_90, is proved as it stands, and its numbers hold up.

    replayed   in float64 on inputs that are made to be difficult, at sizes around the edges of tiles, memory poisoned
    rounded    every result rounded to its type, beside the float64 reference
    compiled   every launch through Triton's compiler, no GPU; shared memory within what a block may have, and all
               that a thread computes in its registers
    proved     lifted by our own front end and proved equal to its reference: PROVED, or TESTED with its bound

The cheap steps come first. A file that fails any of these is never shown as a result."""

from __future__ import annotations

import io
import math
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trilift.lift.capture.case_files import load
from trilift.lift.cases.declaration import Case
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import TriliftError, Unsupported
from trilift.lift.runtime import isolate
from trilift.lift.runtime.budget import BUDGETS, Meter, count

from ..emit.codegen import LARGEST
from .trial_inputs import EXTREME, Arguments, Dims, converted, results, trial_inputs

if TYPE_CHECKING:
    import torch

    from trilift.verify.model.verdict import Clause

NEEDED_KINDS = ("shape", "value")  # of clauses without which the emitted file may raise or differ
STEPS = ("loaded", "replayed", "rounded", "compiled", "proved")
SHARED = 227 * 1024  # bytes that a block of sm_90 may have
RUNS = 40  # of the replay in float64
RELATIVE_ERRORS = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 2e-3, "float64": 1e-6}  # of the largest element
SURE_SHARE = 1 / 4  # of the error that is allowed: where arithmetic in 32 bits stays below it, so must the file
RUN_ELEMENTS = 200_000  # product of the dims of a run


@dataclass(frozen=True)
class Step:
    """The result of one step: whether it passed, and why."""

    name: str
    passed: bool
    text: str
    seconds: float


@dataclass(frozen=True)
class Acceptance:
    """The steps in order, up to the first that fails; `verdict` and `bound` are the proof's."""

    steps: tuple[Step, ...]
    verdict: str = ""
    bound: float | None = None
    contract: tuple[str, ...] = ()
    compiled: tuple[Compiled, ...] = field(default=())

    @property
    def accepted(self) -> bool:
        return tuple(s.name for s in self.steps if s.passed) == STEPS

    @property
    def seconds(self) -> float:
        return sum(s.seconds for s in self.steps)

    def __str__(self) -> str:
        lines = [f"{s.name}: {s.text} ({s.seconds:.1f} s)" for s in self.steps]
        return "\n".join([*lines, "accepted" if self.accepted else "rejected"])


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kernel for sm_90: bytes of shared memory of a block, of its cubin, warps; of a thread the registers, and
    the bytes that do not fit into them and are `spilled` to memory."""

    kernel: str
    shared: int
    cubin: int
    warps: int
    registers: int
    spilled: int


def accept(
    source: str,
    *,
    sizes: Dims | None = None,
    timeout: float = 60.0,
    seed: int = 0,
    only: Sequence[str] = STEPS,
    stable: bool = True,
    steps: int = BUDGETS.optimise.replay_steps,
) -> Acceptance:
    """The results of the steps for the file with this text; all of them must let it pass. `sizes`: dims at which
    kernels are compiled, 64 by default; `timeout`: the outer time limit of the proof, in seconds; `steps`: of each
    replay; `stable`: numbers must hold up where exp
    overflows too."""
    with tempfile.TemporaryDirectory(prefix="trilift-") as folder:
        path = Path(folder) / "emitted.py"
        path.write_text(source)
        return _Acceptor(path, sizes, timeout, seed, stable, steps).through(only)


@dataclass
class _Acceptor:
    path: Path
    sizes: Dims | None
    timeout: float
    seed: int
    stable: bool
    steps: int
    compiled: tuple[Compiled, ...] = ()
    verdict: str = ""
    bound: float | None = None
    contract: tuple[str, ...] = ()

    def through(self, only: Sequence[str]) -> Acceptance:
        """These steps until one fails."""
        done: list[Step] = []
        every = self.loading, self.replaying, self.rounding, self.compiling, self.proving
        for name, step in zip(STEPS, every, strict=True):
            if name not in only and name != STEPS[0]:
                continue
            start = time.perf_counter()
            try:
                text, passed = step(), True
            except (_Rejected, TriliftError) as why:
                text, passed = str(why), False
            except Exception as error:  # a kernel may do anything: what cannot be run is not accepted
                text, passed = f"{type(error).__name__}: {error}", False
            done.append(Step(name, passed, text, time.perf_counter() - start))
            if not passed:
                break
        return Acceptance(tuple(done), self.verdict, self.bound, self.contract, self.compiled)

    def loading(self) -> str:
        cases = load(str(self.path))
        if len(cases) != 1 or not cases[0].reference:
            raise _Rejected("the file has no case with a reference, or several")
        self.case = cases[0]
        return self.case.name

    def compiling(self) -> str:
        dims = scalars(self.case, self.seed) | dict.fromkeys(self.case.names, 64) | dict(self.sizes or {})
        task = str(self.path), dims, self.seed
        context = "fork" if parent_process() else "forkserver"  # a child has imported the compiler already
        outcome = isolate.run(compile_all, *task, timeout=self.timeout, context=context)
        if outcome.failure:
            raise _Rejected(f"{outcome.failure}: {outcome.log.strip().splitlines()[-1] if outcome.log.strip() else ''}")
        self.compiled = outcome.value
        for c in self.compiled:
            if c.shared > SHARED:
                raise _Rejected(f"{c.kernel} needs {c.shared} bytes of shared memory, a block has {SHARED}")
            if c.spilled:
                raise _Rejected(f"{c.kernel} spills {c.spilled} bytes of each thread to memory, with {c.warps} warps")
        return ", ".join(
            f"{c.kernel}: {c.registers} registers, {c.shared} bytes shared, {c.cubin} of code" for c in self.compiled
        )

    def proving(self) -> str:
        from trilift.verify import prove

        proofs = prove(self.case, seed=self.seed, timeout=self.timeout)
        if not proofs:
            raise _Rejected("nothing was proved")
        for p in proofs:
            if p.verdict.value not in ("PROVED", "TESTED"):
                found = p.counterexample
                why = f"{found.output}{list(found.index)} is {found.got:.6g}, not {found.expected:.6g}" if found else ""
                raise _Rejected(f"{p.claim.output}: {p.verdict.value} {why or p.reason}")
        tested = [p.bound for p in proofs if p.verdict.value == "TESTED"]
        bounds = [b for b in tested if b is not None]
        self.bound = min(1.0, sum(bounds)) if bounds and len(bounds) == len(tested) else None
        self.verdict = "PROVED" if all(p.verdict.value == "PROVED" for p in proofs) else "TESTED"
        self.contract = tuple(dict.fromkeys(c.text for p in proofs for c in p.contract))
        every = (c for p in proofs for c in p.contract if c.kind in NEEDED_KINDS)
        needed = dict.fromkeys(c.text for c in every if not _is_asserted(c))
        where = f" where {'; '.join(needed)}" if needed else ""
        chance = f", wrong with probability at most {self.bound:.2g}" if self.bound is not None else ""
        return f"{self.verdict}{chance}{where}"

    def replaying(self) -> str:
        from trilift.verify.refutation.search import Failure, Passed, Question, attempt, runs
        from trilift.verify.runs.goals import targets

        question = Question(self.case, targets(self.case, None, against="reference", seed=self.seed))
        meter, ran, compared = Meter("replay", self.steps), 0, 0
        for dims, seed, config in islice(runs(self.case, (), self.seed, None), RUNS):
            if compared and meter.exhausted:
                break
            found = attempt(question, dims, seed, config)
            if isinstance(found, Failure):
                at = ", ".join(f"{k} = {v}" for k, v in dims.items())
                what = found.why or f"{found.output}{list(found.index)} is {found.got:.6g}, not {found.expected:.6g}"
                raise _Rejected(f"{what} at {at}")
            if isinstance(found, Passed):
                ran, compared = ran + 1, compared + found.compared
        if not compared:
            raise _Rejected("no run could be compared")
        return f"{compared} elements of {ran} runs"

    def rounding(self) -> str:
        meter, ran, worst = Meter("rounding", self.steps), 0, 0.0
        for dims in shapes(self.case, self.seed):
            for kind, args in trial_inputs(self.case, dims, self.seed):
                if ran and meter.exhausted:
                    break
                count("comparison")
                error = self.compared(kind, args, dims)
                if error is not None:
                    worst, ran = max(worst, error), ran + 1
        return f"largest error {worst:.2g} of the largest element, {ran} runs"

    def compared(self, kind: str, args: Arguments, dims: Dims) -> float | None:
        """The largest error of a run, in parts of the largest element. Of inputs it is about what either the file or
        its reference writes; memory around them keeps its bytes. None at extreme inputs where the reference cannot be
        run in 32 bits: no element is sure."""
        import torch

        from trilift.verify.mutation.emulation import emulated

        reference, given = self.case.reference.fn, self.case.named(args)
        exact, written = results(self.case, reference, converted(args, torch.float64))
        single, single_written = exact, written
        if not self.stable or kind in EXTREME:
            try:
                single, single_written = results(self.case, reference, converted(args, torch.float32))
            except RuntimeError:  # its text has a tensor of 64 bits, which a product takes with no other
                if self.stable:
                    return None
                raise
        before, around = {n: x.clone() for n, x in given.items()}, {n: _around(x) for n, x in given.items()}
        with poisoned(), emulated():
            got, given = results(self.case, self.case.fn, args)
        worst = [self.error(kind, g, e, _sure(g, e, s), dims) for g, e, s in zip(got, exact, single, strict=True)]
        for n, x in given.items():
            if not torch.equal(_around(x), around[n]):
                raise _Rejected(f"{kind} inputs: memory around {n} is overwritten")
            e, s, was = written[n], single_written[n], before[n]
            touched = (x != was) | (e != was)
            if touched.any():
                worst.append(self.error(kind, x, e, touched & _sure(x, e, s), dims))
        return max(worst, default=0.0)

    def error(self, kind: str, g: torch.Tensor, e: torch.Tensor, sure: torch.Tensor, dims: Dims) -> float:
        """The largest of g, in parts of the largest element of e, of elements that are `sure` to be numbers."""
        import torch

        scale = float(e[sure].abs().max()) if sure.any() else 0.0
        error = torch.where(sure, (g.double() - e).abs(), 0.0)
        error = (error - torch.finfo(g.dtype).smallest_normal * torch.finfo(g.dtype).eps).clamp(min=0)  # subnormals
        error = torch.where(torch.isnan(error), torch.inf, error) / (scale or 1.0)
        worst = float(error.max()) if error.numel() else 0.0
        if worst > RELATIVE_ERRORS[_dtype(g)]:
            at = [int(i) for i in np.unravel_index(int(error.argmax()), tuple(g.shape))]
            where = ", ".join(f"{k} = {v}" for k, v in dims.items())
            raise _Rejected(f"{kind} inputs: element {at} is {float(g[tuple(at)]):.6g}, not "
                            f"{float(e[tuple(at)]):.6g}, at {where}")  # fmt: skip
        return worst


class _Rejected(Exception):
    pass


def _is_asserted(clause: Clause) -> bool:
    """Whether the emitted file asserts it: that a size still fits in 32 bits after rounding up."""
    term = clause.term
    return term is not None and term.op == "le" and term.args[1].is_const and term.args[1].attr == LARGEST


def _sure(g: torch.Tensor, e: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """The elements of the exact result e that are numbers in the type of g, and that s has right: what the reference
    gives in 32 bits where the kernel may fail as it does, else e itself."""
    import torch

    held = torch.isfinite(e) & (e.abs() <= torch.finfo(g.dtype).max)
    scale = float(e[held].abs().max()) if held.any() else 0.0
    allowed = SURE_SHARE * RELATIVE_ERRORS[_dtype(g)] * (scale or 1.0)
    return held & ((s.double() - e).abs() <= allowed)


def _dtype(x: torch.Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


# ---- inputs ----------------------------------------------------------------------------------------------------------


def scalars(case: Case, seed: int) -> dict[str, Any]:
    """Numbers for the symbolic scalars of a case."""
    return {n: v for n, v in choose(case, 1, seed)[0].items() if n in case.scalars}


def shapes(case: Case, seed: int) -> Iterator[dict[str, Any]]:
    """Dims that no tile divides, small ones, ones, then some that are larger than a tile."""
    rng, given = np.random.default_rng([seed, 7]), scalars(case, seed)
    for low, high in ((3, 14), (1, 2), (17, 67)):
        for _ in range(50):
            dims = {n: int(rng.integers(*((low, high) if rng.random() < 0.7 else (1, 6)))) for n in case.names}
            if math.prod(dims.values()) < RUN_ELEMENTS and case.holds(given | dims):
                yield given | dims
                break


def _around(x: torch.Tensor) -> torch.Tensor:
    """The bytes of its storage that are not its elements'."""
    import torch

    copied = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).clone()
    copied.as_strided(x.shape, x.stride(), x.storage_offset()).zero_()
    return copied.view(torch.uint8)


@contextmanager
def poisoned() -> Iterator[None]:
    """torch.empty holds NaN inside."""
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.utils.deterministic.fill_uninitialized_memory = before[1]


# ---- compilation -----------------------------------------------------------------------------------------------------


def compile_all(path: str, dims: Dims, seed: int = 0, *_: Any) -> tuple[Compiled, ...]:
    """Every launch of the file's case at these dims, compiled for sm_90 as Triton specialises it. Raises what Triton
    raises."""
    import triton
    from triton.backends.compiler import GPUTarget

    from trilift.lift.capture.fake_cuda import Driver, replaced
    from trilift.lift.capture.launches import Bound, executed

    case = load(path)[0]
    bounds: list[Bound] = []
    with replaced(triton.runtime.driver, {"_active": Driver()}), executed(bounds.append):
        args = case.sample(dims, np.random.default_rng(seed))
        case.fn(**{n: x.contiguous() if hasattr(x, "contiguous") else x for n, x in args.items()})
    target = GPUTarget("cuda", 90, 32)
    found: dict[str, Compiled] = {}
    for b in bounds:
        with assembled() as log:
            built = triton.compile(_specialised(b), target=target, options=b.options)
        warps = int(built.metadata.num_warps)
        name = str(b.kernel.fn.__name__)
        shared, code = int(built.metadata.shared), len(built.asm["cubin"])
        found[name] = Compiled(name, shared, code, warps, *registers(log.getvalue()))
    return tuple(found.values())


@contextmanager
def assembled() -> Iterator[io.StringIO]:
    """The text of the assembler of Triton's compiler, which runs inside for each kernel anew."""
    from triton import knobs

    log = io.StringIO()
    with knobs.nvidia.scope(), knobs.compilation.scope(), redirect_stdout(log):
        knobs.nvidia.dump_ptxas_log = knobs.compilation.always_compile = True
        yield log


def registers(log: str) -> tuple[int, int]:
    """The registers of a thread, and the bytes that it keeps in memory for want of more. Raises Unsupported where the
    assembler does not say."""
    used, spilled = re.search(r"Used (\d+) registers", log), re.search(r"(\d+) bytes spill stores", log)
    if not used or not spilled:
        raise Unsupported("the assembler does not say how many registers a thread has")
    return int(used[1]), int(spilled[1])


def _specialised(b: Any) -> Any:
    """The source with what Triton knows of the arguments: numbers that are 1, and what 16 divides."""
    from triton.compiler import ASTSource

    signature, constants, attributes = dict(b.signature), dict(b.constexprs), {}
    for k, (name, kind) in enumerate(signature.items()):
        v = b.args[name]
        if isinstance(kind, str) and kind.startswith("*"):
            attributes[k,] = [["tt.divisibility", 16]]
        elif kind in ("i32", "i64") and v == 1:
            signature[name] = "constexpr"
            constants[k,] = 1
        elif kind in ("i32", "i64") and v % 16 == 0:
            attributes[k,] = [["tt.divisibility", 16]]
    return ASTSource(b.kernel, signature, constants, attributes)

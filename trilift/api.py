"""The names of `from trilift import ...` besides the decorator `case` and `lift`: one function for each thing to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .lift import Case, Lifted
    from .superopt.optimize import Optimised
    from .verify.audit.examination import Audited
    from .verify.model.verdict import Proof

Progress = Callable[[str], None]


def _quiet(stage: str) -> None:
    """Ignores the name of each stage."""


def prove(
    case: Case,
    *,
    against: str | None = None,
    seed: int = 0,
    timeout: float = 300.0,
    lifted: Lifted | None = None,
    progress: Progress = _quiet,
) -> tuple[Proof, ...]:
    """One Proof for each output and written input of the case: its verdict, contract and counterexample.

    `against`: "reference", "formula" (what was lifted) or the text of a formula; by default the case's reference if it
    has one, else the lifted formula. `lifted`: the result of `lift(case)`, where it is known already. `timeout` is in
    seconds of processor time. Raises CaseError where the case or what it is compared with makes no sense."""
    from .lift.pipeline import lift
    from .verify.pipeline import prove

    if lifted is None and (against == "formula" or (against is None and not case.reference)):
        lifted = lift(case, seed)
    return prove(case, against=against, seed=seed, timeout=timeout, lifted=lifted, progress=progress)


def equal(
    first: Case, second: Case | Callable[..., Any], *, seed: int = 0, timeout: float = 300.0
) -> tuple[Proof, ...]:
    """Whether two kernels, or a kernel and a PyTorch function, compute the same: one Proof for each output.

    Raises CaseError where the parameters of the two do not fit together."""
    from .verify.pipeline import equal

    return equal(first, second, seed=seed, timeout=timeout)


def audit(case: Case, *, against: str | None = None, seed: int = 0, timeout: float = 300.0) -> Audited:
    """The proofs of the case, the findings of every audit rule with their counterexamples, and what stays undecided.

    `timeout` is in seconds of processor time. Raises CaseError where the case makes no sense."""
    from .lift.pipeline import lift
    from .verify.audit.examination import audit

    return audit(case, seed=seed, timeout=timeout, lifted=lift(case, seed), against=against)


def write(
    file: str | PathLike[str],
    output: str | PathLike[str],
    cases: Sequence[str] = (),
    *,
    seed: int = 0,
    examples: int = 20,
    timeout: float = 300.0,
) -> int:
    """Writes property-based tests of the cases of a file, or of those named, to `output`: one pytest file.

    `examples`: how many hypothesis draws for each test. Returns the exit code of `trilift write`: 0, 2 for a case that
    cannot be called, 3 where the file has no case."""
    from .reports.base.targets import Target
    from .reports.commands.write import Asked, write

    target = Target(fspath(file), tuple(cases))
    return write([target], fspath(output), Asked(seed, examples, timeout), quiet=True)


def optimize(
    file: str | PathLike[str],
    name: str,
    *,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    timeout: float = 60.0,
) -> Optimised:
    """A faster kernel for a case of a file: the plans found, and the first emitted file that was compiled, proved and
    replayed.

    `sizes`: the values of dims at which plans are ranked (1024 by default); the file is for all sizes of its contract.
    `timeout`: seconds for each proof. Raises `trilift.superopt.optimize.Failed` where nothing can be done."""
    from .superopt.optimize import Question, optimised

    return optimised(Question(fspath(file), name, dict(sizes or {}), seed=seed, timeout=timeout))

"""The results of an audit: findings that are true, each with the smallest input on which it can be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trilift.lift.errors import Place

if TYPE_CHECKING:
    from .evidence import Evidence

LEVELS = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of how it comes about: what happens at a place, in the numbers of the counterexample."""

    place: Place | None
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a kernel or with how its wrapper calls it. `message` in the user's names; `place` the line
    to change; `example`: the counterexample as names and numbers, dims first, then what else is needed to see it
    (program, index, config ...); `hint`: what to do; `replay`: a Python program that shows it again, "" where there is
    none; `steps`: how it comes about, in order."""

    rule: str
    message: str
    place: Place | None
    example: Mapping[str, Any] = field(default_factory=dict)
    hint: str = ""
    replay: str = field(default="", repr=False)
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One audit rule: `check` gives its findings from what is known of a case. Each is shown by an execution or an
    exact evaluation; what cannot be decided is not a finding. `level`: of SARIF. `summary`: one sentence for lists."""

    name: str
    level: str
    summary: str
    check: Callable[[Evidence], Iterable[Finding]]

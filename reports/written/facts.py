"""What a printer must know of a case beside its suite: what one run of its host function shows."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass

from lift.case import Case
from lift.trace import Trace


@dataclass(frozen=True, slots=True)
class Facts:
    """`dtypes`: of outputs and inputs, as case files write them. `configs`: how many an autotuner has at most."""

    dtypes: Mapping[str, str]
    configs: int = 1


def facts(case: Case, seed: int = 0) -> Facts:
    """From one small run. Raises CaseError, Unsupported."""
    from lift.capture import capture
    from lift.shapes import choose

    trace: Trace = capture(case, choose(case, 1, seed)[0], seed=seed)
    return Facts({n: ref.dtype for n, ref in {**trace.inputs, **trace.outputs}.items()}, trace.configs)


def identifier(text: str) -> str:
    """The text as a name."""
    name = "".join(c if c.isalnum() else "_" for c in text)
    return f"{name}_" if keyword.iskeyword(name) or not name.isidentifier() else name

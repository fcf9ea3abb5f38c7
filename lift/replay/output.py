"""One output's way through the stages: spec, formula as found, simplified formula, or the error that stopped it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..capture.trace import Trace
from ..errors import NotLifted, TriliftError, Unsupported
from ..runtime.strategy import Closers
from ..terms.spec import Formula, Spec

if TYPE_CHECKING:
    from ..capture.relate import Relation
    from ..simplify.saturation import Simplified


@dataclass(frozen=True, slots=True)
class Output:
    """`spec` is at the first shape, `raw` the formula as found, `simplified` the shortest one with the laws used
    on the way. `error` says why a stage gave nothing. `strategies`: the rows of the synthesis that found `raw`."""

    name: str
    spec: Spec | None = None
    raw: Formula | None = None
    simplified: Simplified | None = None
    error: TriliftError | None = None
    strategies: tuple[str, ...] = ()

    @property
    def formula(self) -> Formula | None:
        """The simplified formula."""
        return self.simplified.formula if self.simplified else None

    def then(self, stage: Callable[[Output], Output]) -> Output:
        """The next stage, unless an earlier one failed. A failing one takes the formulas along: none goes unchecked."""
        if self.error is not None:
            return self
        try:
            return stage(self)
        except TriliftError as e:
            return Output(self.name, self.spec, error=e)
        except RecursionError:
            return Output(self.name, self.spec, error=NotLifted(f"the terms of {self.name} are nested too deeply"))


Outputs = tuple[Output, ...]
LARGE = 20_000  # elements of outputs, as terms


def related(traces: Sequence[Trace]) -> tuple[Relation, ...] | Unsupported:
    """The numbers of the launches as terms over dims. Formulas do not need them: their error ends nothing."""
    from ..capture.relate import relate

    try:
        return tuple(relate(traces))
    except Unsupported as e:
        return e


def synthesised(traces: Sequence[Trace], options: Mapping[str, bool], others: Sequence[Trace] = ()) -> Outputs:
    """The formula of each output, and of each input that changes, from its specs at the shapes of the traces. Of the
    other traces only the outputs' shapes are used."""
    from .execute import spec

    if sum(math.prod(t.shape) for t in traces[-1].outputs.values()) > LARGE:
        return tuple(Output(n, error=NotLifted(f"{n} is too large at this shape")) for n in traces[-1].outputs)
    errors: list[TriliftError] = []
    by_name: dict[str, list[Spec]] = {}
    for trace in traces:
        for found in spec(trace, errors):
            by_name.setdefault(found.name, []).append(found)

    def one(name: str) -> Output:
        specs = by_name.get(name, [])
        if len(specs) == len(traces):
            seen = [(t.dims, ref.shape) for t in others if (ref := {**t.inputs, **t.outputs}.get(name))]
            return Output(name, specs[0]).then(lambda o: _decomposed(o, specs, seen, options))
        return Output(name, error=errors[0] if errors else NotLifted(f"{name} is written only at some shapes"))

    return tuple(map(one, dict.fromkeys([*traces[0].outputs, *by_name])))


def _decomposed(o: Output, specs: Sequence[Spec], seen: Any, options: Mapping[str, bool]) -> Output:
    from ..synthesis.top_down import synthesise

    closers = Closers()
    raw = synthesise(*specs, seen=seen, closers=closers, **options)
    return replace(o, raw=raw, strategies=tuple(closers.names))


def undecided(outputs: Outputs) -> bool:
    """Whether some output has a spec and no formula yet: more shapes may tell."""
    return any(isinstance(o.error, NotLifted) and o.spec is not None for o in outputs)


def either(first: Outputs, second: Outputs) -> Outputs:
    """Each output from the first attempt that has it, else as the first left it."""
    later = {o.name: o for o in second if o.error is None}
    return tuple(later.get(o.name, o) if o.error else o for o in first)


def simplified(outputs: Outputs) -> Outputs:
    """Every formula simplified."""
    from ..simplify.saturation import simplify

    return tuple(o.then(lambda o: replace(o, simplified=simplify(o.raw) if o.raw else None)) for o in outputs)

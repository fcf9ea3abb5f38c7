"""`--explain`: the steps from launches to formula, as titled texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from trilift.lift import Lifted, Unsupported
from trilift.lift.capture.trace import Launch, TensorRef
from trilift.lift.printers.text import text
from trilift.lift.replay.output import Output
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import TERMS, Term

from .entries import Step

WIDTH = 150  # characters of one spec element


def explain(lifted: Lifted) -> list[Step]:
    """Launches, relations, and for each output its spec, its formula as found, the laws used and the checks."""
    steps: list[Step] = [{"title": title, "text": text} for title, text in _steps(lifted)]
    return [s for s in steps if s["text"]]


def _steps(lifted: Lifted) -> Iterator[tuple[str, str]]:
    first = lifted.traces[0]
    yield f"launches at {_dims(first.dims)}", "\n".join(_launch(k, e) for k, e in enumerate(first.launches))
    yield "related to the dims", _relations(lifted.relations)
    for o in lifted.outputs:
        yield from _output(lifted, o)


def _output(lifted: Lifted, o: Output) -> Iterator[tuple[str, str]]:
    if o.spec is not None:
        yield f"{o.name}: spec, {o.spec.ids.size} elements of which", "\n".join(_elements(o))
    if o.raw is not None:
        by = f"\nby {', '.join(dict.fromkeys(o.strategies))}" if o.strategies else ""
        yield f"{o.name}: decomposed", text(o.raw) + by
    if o.simplified is not None:
        yield f"{o.name}: laws used", "\n".join(f"{law.name}: {law}" for law in o.simplified.laws)
        yield f"{o.name}: simplified", text(o.simplified.formula)
    yield f"{o.name}: checked", "\n".join(_check(c) for c in lifted.checks if c.output == o.name)


def _dims(dims: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in dims.items()) or "no dims"


def _launch(k: int, launch: Launch) -> str:
    args = ", ".join(f"{n}={_value(v)}" for n, v in launch.args.items())
    which, of = launch.config
    config = f", autotune configuration {which} of {of}" if of > 1 else ""
    return f"{k}: {launch.kernel}[grid {launch.grid}]({args}){config}"


def _value(v: Any) -> str:
    if isinstance(v, TensorRef):
        return f"{v.dtype}{list(v.shape)}"
    return repr(v)


def _relations(relations: Any) -> str:
    """Numbers that depend on the shape, one a line; those that are the same at every shape are left out."""
    if isinstance(relations, Unsupported):
        return f"{relations}"
    rows = (r for r in relations if (r.term.op != "const" or r.free) and ".s" not in r.what)
    return "\n".join(f"{r.launch}: {r.what} = {_term(r.term)}" for r in rows)


def _term(t: Term) -> str:
    return text(Formula("", (), t, "")).removeprefix("= ").removeprefix(" = ")


def _elements(o: Output) -> list[str]:
    """A few elements of the spec: the first, the second and the last."""
    assert o.spec is not None
    ids = o.spec.ids
    chosen = dict.fromkeys(k for k in (0, 1, ids.size - 1) if 0 <= k < ids.size)
    return [f"{o.name}{_index(ids, k)} = {_short(_term(TERMS[int(ids.ravel()[k])]))}" for k in chosen]


def _index(ids: np.ndarray, k: int) -> str:
    return "[" + ", ".join(str(int(i)) for i in np.unravel_index(k, ids.shape)) + "]"


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 4] + " ..."


def _check(c: Any) -> str:
    against = {"raw": "as found, against the kernel", "formula": "simplified, against the kernel"}
    what = against.get(c.what, "the kernel against the reference")
    config = f", configuration {c.config}" if c.config else ""
    return f"{what} at {_dims(c.dims)}{config}: relative error {c.error:.1e}, {c.finite:.0%} finite"

"""How the arguments of a case are drawn: a function from a call to arguments, and a strategy for calls."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from trilift.lift.cases.declaration import Case, Spec
from trilift.lift.errors import Unsupported
from trilift.lift.language.python_source import python_source
from trilift.lift.terms.term import Term
from trilift.verify.model.verdict import Clause
from trilift.verify.properties.records import Suite, Whole
from trilift.verify.runs.input_table import ENDS, ROWS, VALUES
from trilift.verify.runs.layouts import OF_ROWS

from .facts import Facts
from .formulas import docstring, dtype, wrapped

EXACT = "eighths"  # values that only some laws ask for
OF_UNLIKE_SIZE = ("large", "tiny")
EDGES, WHOLE = "edges", "whole"  # values that integers without limits have
LAYOUTS = ("contiguous", "offset", "padded", "gaps", "transposed")
REALS, POSITIVES = (0.5, -1.25, 2.0), (0.5, 1.0, 1.75)
INTEGERS = (0, 1, 7, 1234)


def sizes_line(case: Case, names: Iterable[str], source: str) -> list[str]:
    """`M, N = source["M"], source["N"]`, or nothing."""
    wanted = [n for n in (*case.names, *case.scalars) if n in set(names)]
    right = ", ".join(f'{source}["{n}"]' for n in wanted)
    return [f"{', '.join(wanted)} = {right}"] if wanted else []


def arguments(suite: Suite, name: str, infinite: Collection[str] = ()) -> str:
    """The function that makes the arguments of a call; `infinite`: the inputs that may be minus infinity."""
    case = suite.case
    body = [f'"{n}": {_argument(suite, n, s, infinite)},' for n, s in case.params.items()]
    used = {t.attr for line in _terms(case) for t in line.walk() if t.op in ("size", "scalar")} | set(case.scalars)
    made = ["make = Maker(call, memory)"] if case.tensors else []
    lines = [*sizes_line(case, used, "call.sizes"), *made, "return {", *body, "}"]
    head = f"def {name}(call: Call, memory: Memory) -> dict[str, Any]:"
    return "\n".join([head, docstring([f"Arguments of {case.name}."], 4), *(f"    {line}" for line in lines)])


def _terms(case: Case) -> Iterator[Term]:
    for s in case.tensors.values():
        yield from (e for e in (*(s.shape or ()), s.low, s.high) if e is not None)


def _argument(suite: Suite, name: str, s: Any, infinite: Collection[str]) -> str:
    if isinstance(s, list | tuple):
        inner = ", ".join(_argument(suite, f"{name}{k}", e, infinite) for k, e in enumerate(s))
        return f"[{inner}]" if isinstance(s, list) else f"({inner}{',' * (len(s) == 1)})"
    if not isinstance(s, Spec):
        return literal(s)
    return name if s.shape is None else _tensor(name, s, name in infinite, suite.whole.get(name, Whole()))


def literal(v: Any) -> str:
    """A constant as Python."""
    import torch

    if isinstance(v, torch.dtype | torch.device):
        return str(v) if isinstance(v, torch.dtype) else repr(str(v))
    if isinstance(v, float) and v in (float("inf"), float("-inf")):
        return f'float("{v}")'
    if not isinstance(v, bool | int | float | str | None):
        raise Unsupported(f"a constant of type {type(v).__name__} in a written test")
    return repr(v)


def _tensor(name: str, s: Spec, infinite: bool, whole: Whole) -> str:
    """The call that makes one tensor."""
    sizes = [python_source(e) for e in s.shape or ()]
    shape = f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
    ends = [python_source(e) for e in (s.low, s.high) if e is not None]
    strided = ["strided=True"] * s.strided + ["infinite=True"] * infinite
    strided += [f"bits={whole.bits}"] * (whole.bits > 0) + ["nonzero=True"] * whole.nonzero
    if s.dtype == "bool":
        method, more = "booleans", []
    elif s.distinct:
        method, more = "distinct", [dtype(s.dtype), *ends]
    elif not s.is_float:
        low, high = (1, 9) if s.positive else (0, 9) if s.dtype[0] == "u" else (-8, 9)
        method, more = "integers", [dtype(s.dtype), *(ends if len(ends) == 2 else [str(low), str(high)])]
    elif len(ends) == 2:
        method, more = "between", [dtype(s.dtype), *ends]
    else:
        method, more = "positive" if s.positive else "reals", [dtype(s.dtype)]
    return f"make.{method}({', '.join([repr(name), shape, *more, *strided])})"


# ---- the strategy ----------------------------------------------------------------------------------------------------


def strategy(suite: Suite, facts: Facts, name: str) -> str:
    """The strategy of calls that meet the contract."""
    case = suite.case
    lines = [*_drawn_sizes(suite)]
    conditions = [suite.sizes.where] if suite.sizes.where else []
    lines += [f"assume({c})" for c in dict.fromkeys([*_limits(case), *conditions, *_small(suite)]) if c]
    numbers = "{" + ", ".join(f'"{n}": {n}' for n in (*case.names, *case.scalars)) + "}"
    fields = [
        f"sizes={numbers}",
        "seed=draw(st.integers(0, 999))",
        f"values=draw(st.sampled_from({list(values(suite, facts))}))",
    ]
    if case.tensors:
        fields.append(f"layout=draw(st.sampled_from({list(layouts(suite, facts))}))")
    if facts.configs > 1:
        fields.append(f"config=draw(st.integers(0, {facts.configs - 1}))")
    doc = docstring([f"Calls of {case.name} at the sizes where something changes."], 4)
    head = ["@st.composite", f"def {name}(draw: st.DrawFn) -> Call:", doc]
    return "\n".join([*head, *(f"    {line}" for line in lines), f"    return Call({', '.join(fields)})"])


def _drawn_sizes(suite: Suite) -> Iterator[str]:
    """The dims, and the numbers that are passed."""
    for n in (*suite.case.names, *suite.case.scalars):
        if why := suite.sizes.why.get(n):
            yield from (f"# {line}" for line in wrapped(why, 82))
        offered = suite.sizes.values.get(n)
        chosen = list(offered) if offered else scalars(suite.case.scalars[n])
        yield f"{n} = draw(st.sampled_from({chosen}))"


def scalars(s: Spec) -> list[Any]:
    """Numbers that a scalar may be, as far as its limits are numbers; reals that f32 has."""
    low, high = (None if e is None or not e.is_const else e.attr for e in (s.low, s.high))
    if s.dtype == "bool":
        return [False, True]
    if not s.is_float:
        found = [v for v in INTEGERS if (low is None or low <= v) and (high is None or v < high)]
        ends = [v for v in (low, None if high is None else high - 1) if v is not None]
        return [v for v in dict.fromkeys([*found, *map(int, ends)]) if v > 0 or not s.positive]
    if low is not None and high is not None:
        reals = [low + (high - low) * f for f in (0.25, 0.5, 0.875)]
    elif low is not None:
        reals = [low + v for v in POSITIVES]
    else:
        reals = [high - v for v in POSITIVES] if high is not None else list(POSITIVES if s.positive else REALS)
    return [struct.unpack("f", struct.pack("f", v))[0] for v in reals]


def _limits(case: Case) -> Iterator[str]:
    """Conditions that limit scalars by dims."""
    for n, s in case.scalars.items():
        low, high = (None if e is None or e.is_const else python_source(e) for e in (s.low, s.high))
        yield from [f"{low} <= {n}"] * (low is not None)
        yield from [f"{n} < {high}"] * (high is not None)


def _small(suite: Suite) -> list[str]:
    """Conditions that keep tensors small."""
    products = []
    for s in suite.case.tensors.values():
        factors = [python_source(e) for e in s.shape or ()]
        products.append(" * ".join(f"({f})" if " " in f else f for f in factors))
    found = [p for p in dict.fromkeys(products) if p and not p.isdecimal()]
    if not found:
        return []
    most = f"max({', '.join(found)})" if len(found) > 1 else found[0]
    return [f"{most} <= {suite.sizes.largest:_}"]


def values(suite: Suite, facts: Facts) -> tuple[str, ...]:
    """The kinds of values that the case can have, and of which its kernels can multiply two."""
    reals = any(s.is_float for s in suite.case.tensors.values())
    left_out = (EXACT, *(OF_UNLIKE_SIZE if facts.short else ()))
    known = (n for n in VALUES if n not in left_out and (n == "normal" or reals or ROWS[n].integers in ENDS))
    return (*known, *((EDGES, WHOLE) if any(w.bits for w in suite.whole.values()) else ()))


def layouts(suite: Suite, facts: Facts) -> tuple[str, ...]:
    """The layouts that the contract allows at every size."""
    found = tuple(layout for layout in LAYOUTS if layout != "offset" or not facts.aligned)
    if any(s.unit for s in suite.case.tensors.values()):
        found = tuple(layout for layout in found if layout in OF_ROWS)
    if not any(s.strided for s in suite.case.tensors.values()):
        return tuple(layout for layout in found if layout in LAYOUTS[:2])
    clauses = [c for o in suite.outputs if o.proof is not None for c in o.proof.contract]
    return tuple(layout for layout in found if all(_allows(c, layout, suite.case) for c in clauses))


def _allows(clause: Clause, layout: str, case: Case) -> bool:
    """Whether a clause about strides holds of a layout: only that the last stride is 1 is read, others allow none but
    contiguous ones."""
    if clause.kind != "layout" or clause.term is None or layout in ("contiguous", "offset"):
        return True
    last = {f"stride({n},{len(s.shape or ()) - 1})" for n, s in case.tensors.items()}
    t = clause.term
    unit = t.op == "eq" and {a.attr for a in t.args} & {1} and {a.attr for a in t.args} & last
    return bool(unit) and layout == "padded"

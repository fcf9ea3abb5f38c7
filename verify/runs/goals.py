"""The goal of a case's proof: for each output, and each input that is written, a formula and where it comes
from: the reference, the lifted formula, a text, or another kernel."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any

from trilift.lift import Lifted
from trilift.lift.capture.trace import TensorRef, Trace
from trilift.lift.cases.declaration import DTYPES, Case, Spec, torch_dtype
from trilift.lift.errors import CaseError, TriliftError, Unsupported
from trilift.lift.pytorch.machine_integers import Fits, Rounding
from trilift.lift.pytorch.read import Reading
from trilift.lift.pytorch.repeated_writes import Write
from trilift.lift.pytorch.symbolic_tensor import type_of_name
from trilift.lift.replay.check import by_output
from trilift.lift.replay.dtype_sight import refusal
from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import FOLDS, NAMED, Axis, Term, reads

from .caller_memory import returned_inputs, untouched
from .definedness import domain, unfolded
from .readings import checked, holds

__all__ = ["Targets", "domain", "targets", "unfolded"]

REFERENCE, FORMULA, TEXT = "reference", "formula", "text"


@dataclass(frozen=True, slots=True)
class Targets:
    """`formulas`: by the name of an output or written input; they hold where `conditions` do. `against`: "reference",
    "formula", "text", or the other case's or function's name. `fn`: the PyTorch function they were read from, if any.
    `also_prove`: the kernel that must be shown to compute these formulas too, before the two are equal. `errors`:
    outputs without a formula. `owed`: integers of the function that must fit their dtype, for else its results are not
    those of the formulas. `dtypes`: outputs whose integer dtype is not the function's, with both in words; `floats`:
    the same of float dtypes, which formulas over the reals do not tell apart. `roundings`: of the function to few
    digits, on which an integer or a truth value depends. `double`: whether the function, or the other
    kernel, computes in f64. `repeated`: its writes that may be several to one element, of which the last is taken.
    `destinations`: inputs that the host function returns, and whose contents the PyTorch function does not read."""

    against: str
    formulas: Mapping[str, Formula]
    conditions: tuple[Term, ...] = ()
    fn: Callable[..., Any] | None = None
    also_prove: Case | None = None
    errors: Mapping[str, TriliftError] = field(default_factory=dict)
    owed: tuple[Fits, ...] = ()
    dtypes: Mapping[str, str] = field(default_factory=dict)
    floats: Mapping[str, str] = field(default_factory=dict)
    roundings: tuple[Rounding, ...] = ()
    double: bool = False
    repeated: tuple[Write, ...] = ()
    destinations: frozenset[str] = frozenset()

    def domain(self, output: str, case: Case) -> list[Term]:
        """Where the formula of an output is defined over the reals."""
        return domain(self.formulas[output], {n: case.dims(n) for n in case.tensors})


def targets(
    case: Case,
    lifted: Lifted | None = None,
    text: str | None = None,
    other: Case | Callable[..., Any] | None = None,
    against: str | None = None,
    seed: int = 0,
) -> Targets:
    """The formulas to prove. A `text` first, then `other`: a kernel's case or a PyTorch function; else the reference if
    there is one, or what `against` says. Raises CaseError where outputs, shapes or dtypes do not fit, where the
    function raises or there is nothing to prove against, and Unsupported for what cannot be read."""
    traces = lifted.traces if lifted is not None else traced(case, seed)
    if against not in (None, REFERENCE, FORMULA):
        text = text or against
    if text is not None:
        found = _of_text(case, text, lifted, traces)
    elif isinstance(other, Case):
        found = _of_case(case, other, traces, seed)
    elif other is not None:
        found = _of_function(case, in_order(case, other), getattr(other, "__name__", "function"), traces, seed)
    elif against == FORMULA or not (case.reference or against == REFERENCE):
        found = _of_lifted(case, lifted)
    elif case.reference.fn is None:
        raise CaseError(f"case {case.name} has no reference", case.place)
    else:
        found = _of_function(case, case.reference.fn, REFERENCE, traces, seed)
    if text is None and (found.fn is not None or found.also_prove is not None):
        returned = [returned_inputs(t) for t in traces]
        found = replace(found, destinations=_destinations(found, set.intersection(*map(set, returned))))
        found = with_inputs(found, case, [x for each in returned for x in each])
    for name, formula in found.formulas.items():
        fits(case, name, formula, traces, found)
    if found.fn is None and found.also_prove is None:
        return found  # what was lifted has the kernel's own dtypes, and a text has none
    return replace(found, dtypes=_dtypes(found, traces[0], False), floats=_dtypes(found, traces[0], True))


def _dtypes(found: Targets, trace: Trace, real: bool) -> dict[str, str]:
    """Outputs whose dtype is another than the function's: floats, or else integers and booleans."""
    out = {}
    for name, formula in found.formulas.items():
        ref = trace.outputs.get(name)
        if ref is None or formula.in_place or (T.REAL in map(type_of_name, (ref.dtype, formula.dtype))) != real:
            continue
        if ref.dtype != formula.dtype:
            ours, theirs = DTYPES.get(ref.dtype, ref.dtype), DTYPES.get(formula.dtype, formula.dtype)
            whose = "the reference" if found.against == REFERENCE else found.against
            out[name] = f"{name} is {ours}, {whose}'s {theirs}"
    return out


def with_inputs(found: Targets, case: Case, names: Iterable[str]) -> Targets:
    """The goal with the claim that these inputs keep their contents, where nothing else is said of them and they are
    not where a result goes."""
    said = (*found.formulas, *found.errors, *found.destinations)
    more = {n: untouched(case, n) for n in names if n not in said}
    return replace(found, formulas={**found.formulas, **more}) if more else found


def _destinations(found: Targets, returned: Iterable[str]) -> frozenset[str]:
    """The inputs among those that are always returned into which a result is written: the PyTorch function makes a new
    tensor and does not read what they hold."""
    if found.fn is None or found.errors:
        return frozenset()
    read = {n for f in found.formulas.values() for n in reads(f.term)} | set(found.formulas)
    return frozenset(n for n in returned if n not in read)


def traced(case: Case, seed: int = 0) -> tuple[Trace, ...]:
    """Two small runs. Raises CaseError, Unsupported."""
    from trilift.lift.capture.run import launching

    return launching(case, 2, seed)


def tensor(trace: Trace, name: str) -> TensorRef | None:
    """The output of that name, or the input."""
    return trace.outputs.get(name) or trace.inputs.get(name)


def fits(case: Case, name: str, formula: Formula, traces: Sequence[Trace], found: Targets) -> None:
    """Raises CaseError unless the output has the formula's shape at every run and a dtype of its kind."""
    from trilift.lift.language.evaluate import number

    for trace in traces:
        ref = tensor(trace, name)
        if ref is None:
            raise CaseError(
                f"case {case.name} has no output {name}", case.place, help=f"it has {', '.join(trace.outputs)}"
            )
        if not all(holds(c, trace.dims) for c in found.conditions):
            continue
        shape = tuple(number(a.size, trace.dims) for a in formula.axes)
        if shape != ref.shape:
            sizes = ", ".join(str(a.size) for a in formula.axes)
            what = f"{name} of {case.name} has shape {list(ref.shape)}, that of the {found.against} is {list(shape)}"
            raise CaseError(what, case.place, why=f"[{sizes}] at {dict(trace.dims)}")
        if (type_of_name(ref.dtype) == T.REAL) != (type_of_name(formula.dtype) == T.REAL) and (
            found.fn or found.also_prove
        ) is not None:
            what = f"{name} of {case.name} is {ref.dtype}, that of the {found.against} is {formula.dtype}"
            raise CaseError(what, case.place)


# ---- from PyTorch ----------------------------------------------------------------------------------------------------


def in_order(case: Case, fn: Callable[..., object]) -> Callable[..., object]:
    """The function, called with the arguments of the case in the order of the case's function, whatever their names
    are; those that it takes by name alone by their names."""
    named = _named_alone(fn)
    order = [n for n in inspect.signature(case.fn).parameters if n in case.params and n not in named]

    @wraps(fn, updated=())
    def call(**arguments: object) -> object:
        rest = {n: v for n, v in arguments.items() if n not in order}
        return fn(*(arguments[n] for n in order), **rest)

    return call


def _named_alone(fn: Callable[..., object]) -> frozenset[str]:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # a function of PyTorch's in C
        return frozenset()
    return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def _of_function(case: Case, fn: Callable[..., Any], name: str, traces: Sequence[Trace], seed: int) -> Targets:
    what, why = refusal(case, fn)
    if what:
        raise CaseError(f"the {name} of {case.name} {what}", case.place, why)
    reading = checked(case, fn, seed)
    found = _by_output(case, reading, name, traces[0])
    written = {f.in_place for f in reading.formulas}
    repeated = tuple(w for w in reading.repeated if w.indices in written or not _is_apart(case, w.indices))
    return Targets(name, *found, fn, owed=reading.owed, roundings=reading.roundings, double=reading.double,
                   repeated=repeated)  # fmt: skip


def _is_apart(case: Case, name: str) -> bool:
    """Whether no index occurs twice in an input: a negative one may be another that counts from the start."""
    s = case.tensors.get(name)
    return s is not None and s.distinct and s.low is not None and I.nonnegative(s.low)


def _by_output(case: Case, reading: Reading, name: str, trace: Trace) -> tuple[dict[str, Formula], tuple[Term, ...]]:
    """The formulas under the names that the host function gives its outputs, in their order."""
    outputs = [f for f in reading.formulas if f.in_place is None]
    if len(outputs) != len(trace.outputs):
        what = f"the {name} of {case.name} returns {len(outputs)} tensors, the function {len(trace.outputs)}"
        raise CaseError(what, case.place)
    paired = by_output({f.name: f for f in outputs}, [*trace.outputs])
    found = {n: replace(f, name=n) for n, f in paired.items()}
    return found | {f.in_place: f for f in reading.formulas if f.in_place}, reading.conditions


# ---- from what was lifted --------------------------------------------------------------------------------------------


def _of_lifted(case: Case, lifted: Lifted | None) -> Targets:
    if lifted is None:
        raise CaseError(f"case {case.name} has no reference and was not lifted", case.place)
    found = {o.name: o.formula for o in lifted.outputs if o.formula is not None}
    errors = {o.name: o.error for o in lifted.outputs if o.error is not None}
    if not found:
        nothing = Unsupported(f"{case.name} returns no tensor and writes none of its inputs", case.place)
        raise next(iter(errors.values()), nothing)
    return Targets(FORMULA, found, errors=errors)


# ---- from text -------------------------------------------------------------------------------------------------------


def _of_text(case: Case, text: str, lifted: Lifted | None, traces: Sequence[Trace]) -> Targets:
    """One formula a line, or separated by `;`: `y[m, n] = x[m, n] * w[n]`, or tensor form, which names no output."""
    parts = [p for p in re.split(r"[;\n]", text) if p.strip()]
    found: dict[str, Formula] = {}
    for part in parts:
        f = _meant(case, _parsed(case, part, lifted, traces))
        name = (
            f.name if f.name in traces[0].outputs or f.name in case.tensors or len(parts) > 1 else _only(case, traces)
        )
        found[name] = replace(f, name=name, in_place=name if name not in traces[0].outputs else None)
    if not found:
        raise CaseError("there is no formula in the text")
    return Targets(TEXT, found)


def _only(case: Case, traces: Sequence[Trace]) -> str:
    if len(traces[0].outputs) != 1:
        names = ", ".join(traces[0].outputs)
        raise CaseError(f"{case.name} has several outputs: {names}", case.place, help="write name[i, ...] = ...")
    return next(iter(traces[0].outputs))


def _parsed(case: Case, text: str, lifted: Lifted | None, traces: Sequence[Trace]) -> Formula:
    from trilift.lift.language.parse import CONSTANTS, formula

    for name in CONSTANTS.keys() & {*case.names, *case.params}:
        if re.search(rf"\b{name}\b", text):
            raise CaseError(f"{name} is a number in formulas: give the parameter {name} another name", case.place)
    dims = {n: case.dims(n) for n in case.tensors}
    types = {n: type_of_name(s.dtype) for n, s in case.tensors.items()}
    known = partial(_check_known, case)
    f = formula(text, dims, types, known=known)
    wanted = next((o.formula for o in lifted.outputs if o.formula is not None), None) if lifted is not None else None
    ref = next(iter(traces[0].outputs.values()), None)
    if ref is None or wanted is None or len(f.axes) >= len(ref.shape) or f.name != "out":
        return f
    tail = wanted.axes[len(wanted.axes) - len(f.axes) :]
    if any(a.size is not b.size for a, b in zip(f.axes, tail, strict=True)):
        return f
    return formula(text, dims, types, wanted.axes, known=known)  # fewer dimensions: broadcast, as PyTorch does


def _check_known(case: Case, name: str) -> None:
    if name not in {*case.names, *case.scalars, *_constants(case)}:
        raise CaseError(f"{name} is neither a dimension nor a scalar of case {case.name}", case.place)


def _constants(case: Case) -> dict[str, bool | int | float]:
    return {n: v for n, v in case.params.items() if isinstance(v, (bool, int, float)) and not isinstance(v, Spec)}


def _meant(case: Case, f: Formula) -> Formula:
    """Names that the text leaves to the case: integer scalars are sizes, constants are their numbers."""
    constants = _constants(case)

    def meaning(t: Term) -> Term:
        _check_known(case, str(t.attr))
        if t.attr in constants:
            return T.const(constants[t.attr])
        s = case.scalars.get(t.attr)
        return T.scalar(t.attr) if s is not None and s.is_float else T.size(t.attr)

    return transported(f, {}, meaning)


# ---- from another kernel ---------------------------------------------------------------------------------------------


def _of_case(case: Case, other: Case, traces: Sequence[Trace], seed: int) -> Targets:
    """The other's lifted formulas, in this case's names."""
    from trilift.lift import lift

    tensors, numbers, conditions = matched(case, other)
    lifted = lift(other, seed)
    theirs = _of_lifted(other, lifted)
    outputs = [f for f in theirs.formulas.values() if f.in_place is None or f.name not in other.tensors]
    names = list(traces[0].outputs)
    if len(outputs) + len(theirs.errors) != len(names):
        what = f"{case.name} returns {len(names)} tensors, {other.name} {len(outputs) + len(theirs.errors)}"
        raise CaseError(what, case.place)
    order = _output_names(other, theirs)
    same = set(order) == set(names)
    rename = {a: (a if same else b) for a, b in zip(order, names, strict=True)} | tensors
    formulas = {}
    for n, f in theirs.formulas.items():
        ours = transported(f, tensors, lambda t: numbers[t.attr])
        formulas[rename[n]] = replace(ours, name=rename[n], in_place=tensors.get(f.in_place or ""))
    for x, n in ((tensors[x], rename[n]) for t in lifted.traces for x, n in returned_inputs(t).items()):
        if x not in formulas and n in formulas:  # the result is the input, which the caller still holds
            formulas[x] = replace(formulas[n], name=x, in_place=x)
    errors = {rename.get(n, n): e for n, e in theirs.errors.items()}
    double = any(e.module().computes_in_double for t in lifted.traces for e in t.launches)
    return Targets(other.name, formulas, tuple(conditions), also_prove=other, errors=errors, double=double)


def _output_names(other: Case, theirs: Targets) -> list[str]:
    return [n for n in (*theirs.formulas, *theirs.errors) if n not in other.tensors]


def matched(case: Case, other: Case) -> tuple[dict[str, str], dict[str, Term], list[Term]]:
    """The other's tensors and numbers in this case's names, and what must hold for the signatures to agree. By name
    where both have the same names, else by position. Raises CaseError."""
    pairs = _pairs(case, other)
    tensors = {theirs: ours for ours, theirs in pairs if theirs in other.tensors}
    numbers: dict[str, Term] = {}
    for ours, theirs in pairs:
        if theirs in other.scalars:
            numbers[theirs] = T.scalar(ours) if case.scalars[ours].is_float else T.size(ours)
    conditions = [c for theirs, ours in tensors.items() for c in _same_dims(case, ours, other, theirs, numbers)]
    if missing := [n for n in other.names if n not in numbers]:
        raise CaseError(
            f"the sizes {', '.join(missing)} of {other.name} have no counterpart in {case.name}", case.place
        )
    for ours, theirs in pairs:
        _same_limits(case, ours, other, theirs, numbers)
    more = _moved(other.where, {}, lambda t: numbers[t.attr], {})
    return tensors, numbers, [c for c in (*conditions, more) if c is not T.const(True)]


def _pairs(case: Case, other: Case) -> list[tuple[str, str]]:
    """(ours, theirs) of tensors and scalars, each of one kind."""
    ours, theirs = ({**c.tensors, **c.scalars} for c in (case, other))
    kind = lambda s: (s.shape is None, type_of_name(s.dtype), len(s.shape or ()))  # noqa: E731
    if set(ours) == set(theirs):
        pairs = [(n, n) for n in ours]
    elif len(ours) == len(theirs):
        pairs = list(zip(_in_order(case, ours), _in_order(other, theirs), strict=True))
    else:
        what = f"{case.name} takes {', '.join(ours)} and {other.name} takes {', '.join(theirs)}"
        raise CaseError(what, case.place, help="both need the same tensors and symbolic scalars")
    for a, b in pairs:
        if kind(ours[a]) != kind(theirs[b]):
            what = f"{a} of {case.name} is {_shown(ours[a])} and {b} of {other.name} is {_shown(theirs[b])}"
            raise CaseError(what, case.place)
    return pairs


def _same_limits(case: Case, ours: str, other: Case, theirs: str, numbers: Mapping[str, Term]) -> None:
    """Raises CaseError where the other kernel is read on fewer values than this one is called with."""
    a, b = {**case.tensors, **case.scalars}[ours], {**other.tensors, **other.scalars}[theirs]
    moved = lambda t: _moved(t, {}, lambda s: numbers[s.attr], {})  # noqa: E731
    limited = any(x is not None and (y is None or y is not moved(x)) for x, y in ((b.low, a.low), (b.high, a.high)))
    what = f"{ours} of {case.name} is {a.dtype} and {theirs} of {other.name} is {b.dtype}"
    if a.dtype != b.dtype and not a.is_float:  # what wraps in one does not in the other
        raise CaseError(what, case.place, help="give both cases the same dtypes")
    if a.is_float and not _holds_all(b.dtype, a.dtype):
        raise CaseError(what, case.place, help="give the case of the narrower dtype first, or both the same dtypes")
    if limited or (b.positive and not a.positive) or (a.unbounded and not b.unbounded):
        what = f"{ours} of {case.name} may have values that {theirs} of {other.name} may not have"
        raise CaseError(what, case.place, help="give both cases the same limits and `any`")


def _holds_all(dtype: str, of: str) -> bool:
    """Whether a float dtype has each number of another one; of 8 bits all that are longer have those."""
    import torch

    wide, narrow = torch_dtype(dtype), torch_dtype(of)
    if min(wide.itemsize, narrow.itemsize) == 1:  # which PyTorch does not promote
        return bool(wide == narrow or wide.itemsize > narrow.itemsize)
    return bool(torch.promote_types(wide, narrow) == wide)


def _in_order(case: Case, names: Mapping[str, Spec]) -> list[str]:
    return [n for n, _ in case._leaves() if n in names]


def _shown(s: Spec) -> str:
    return s.dtype if s.shape is None else f"{s.dtype}[{', '.join(map(str, s.shape))}]"


def _same_dims(case: Case, ours: str, other: Case, theirs: str, numbers: dict[str, Term]) -> list[Term]:
    """Binds the other's sizes by the shape of ours; other dims become conditions."""
    conditions = []
    for a, b in zip(case.dims(ours), other.dims(theirs), strict=True):
        if b.op == "size" and b.attr not in numbers:
            numbers[b.attr] = a
        elif b.op == "mul" and (c := _multiple(b)) is not None and c[1].attr not in numbers:
            numbers[c[1].attr] = T.make("floordiv", a, c[0])
    for a, b in zip(case.dims(ours), other.dims(theirs), strict=True):
        if all(t.attr in numbers for t in b.walk() if t.op == "size"):
            condition = T.make("eq", a, _moved(b, {}, lambda t: numbers[t.attr], {}))
            conditions += [] if condition is T.const(True) else [condition]
    return conditions


def _multiple(t: Term) -> tuple[Term, Term] | None:
    """(c, N) of c * N."""
    match sorted(t.args, key=lambda a: not a.is_const):
        case [c, n] if c.is_const and n.op == "size":
            return c, n
    return None


# ---- other names for inputs and numbers ------------------------------------------------------------------------------

Meaning = Callable[[Term], Term]


def transported(f: Formula, tensors: Mapping[str, str], meaning: Meaning) -> Formula:
    """The formula with other names for tensors, and a meaning for every size and scalar, those of axes too."""
    memo: dict[Term, Term] = {}
    axes = tuple(_axis(a, tensors, meaning, memo) for a in f.axes)
    return replace(f, axes=axes, term=_moved(f.term, tensors, meaning, memo))


def _axis(a: Axis, tensors: Mapping[str, str], meaning: Meaning, memo: dict[Term, Term]) -> Axis:
    return Axis(a.name, _moved(a.size, tensors, meaning, memo))


def _moved(t: Term, tensors: Mapping[str, str], meaning: Meaning, memo: dict[Term, Term]) -> Term:
    if t not in memo:
        memo[t] = _moved_node(t, tensors, meaning, memo)
    return memo[t]


def _moved_node(t: Term, tensors: Mapping[str, str], meaning: Meaning, memo: dict[Term, Term]) -> Term:
    args = tuple(_moved(a, tensors, meaning, memo) for a in t.args)
    match t.op:
        case "size" | "scalar":
            return meaning(t)
        case "axis":
            return T.axis(_axis(t.attr, tensors, meaning, memo))
        case "read":
            return T.read(tensors.get(t.attr, t.attr), args, t.type)
    if isinstance(t.attr, Axis):
        over = _axis(t.attr, tensors, meaning, memo)
        return T.node(t.op, args, over) if t.op in NAMED else T.fold(t.op, over, args[0])
    assert t.op not in FOLDS
    return T.make(t.op, *args, attr=t.attr) if args else t

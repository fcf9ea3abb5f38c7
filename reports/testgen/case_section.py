"""The part of a file that is about one case: formulas, arguments, tests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.language.python_source import python_source
from trilift.lift.printers.text import index_form
from trilift.verify.properties.records import Output, Suite

from . import arguments, formulas, library
from .facts import Facts, identifier
from .formulas import Function, docstring, dtype

UNSAID = ("config",)  # clauses about what was seen at the shapes that were tried
LOCAL = ("call", "memory", "make", "draw", "st", "assume", "given", "Maker")  # beside numbers in functions of a case
CALLED = (
    "torch",
    "math",
    "exact",
    "leaves",
    "evaluated",
    "Memory",
    "Call",
    "Expected",
    "RUNNING",
)  # beside tensors too
LONG = 1500  # characters of a formula that are not said in words again


@dataclass(frozen=True, slots=True)
class Compared:
    """An output with its formula, and the tolerance where the formula is not met exactly, as functions of the file."""

    output: Output
    dtype: str
    formula: Function
    tolerance: Function | None


def check_names(case: Case) -> None:
    """Raises CaseError for names that the functions of a file cannot have beside their own."""
    numbers = {*case.names, *case.scalars}
    for name in (
        n for n in (*case.names, *case.scalars, *case.tensors) if n in CALLED or (n in LOCAL and n in numbers)
    ):
        why = f"case {case.name}: {name} is a name that its tests use for something else"
        raise CaseError(why, case.place, help="rename it")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the functions of a case."""

    case: str

    @property
    def stem(self) -> str:
        """A name for each case with which no test begins: pytest takes what begins with test."""
        name = identifier(self.case)
        return f"case_{name}" if name.startswith("test") else name

    @property
    def fn(self) -> str:
        """The host function, which is loaded after the tests are defined."""
        return f"lambda: kernels.{self.case}.fn"

    @property
    def kernel(self) -> str:
        """In capitals, unless another name may be the same in capitals."""
        taken = not self.stem.islower() or self.stem.upper() in library.defined()
        return f"{self.stem}_kernel" if taken else self.stem.upper()

    @property
    def arguments(self) -> str:
        return f"{self.stem}_arguments"

    @property
    def calls(self) -> str:
        return f"{self.stem}_calls"

    @property
    def expected(self) -> str:
        return f"{self.stem}_expected"

    @property
    def masked(self) -> str:
        return self.test("takes_minus_infinity")

    def test(self, what: str) -> str:
        return f"test_{self.stem}_{what}"


@dataclass(frozen=True, slots=True)
class Part:
    """All that is printed of one case."""

    suite: Suite
    facts: Facts
    names: Names
    compared: tuple[Compared, ...]
    infinite: tuple[str, ...] = ()  # the inputs that may be minus infinity
    apart: bool = False  # whether the inputs that failed have a test of their own

    @property
    def written(self) -> tuple[str, ...]:
        """The inputs that it writes."""
        known = {o.name for o in self.suite.outputs}
        return tuple(n for n in self.suite.case.tensors if n in known or n in self.facts.written)

    @property
    def run(self) -> str:
        """The call of a helper that runs the kernel, without its closing parenthesis."""
        return f"run_in_child({self.names.kernel!r}, call" if self.suite.unsafe else f"run({self.names.kernel}, call"

    @property
    def kernel(self) -> str:
        """The definition of the case's Kernel."""
        expected = [self.names.expected] if self.compared else []
        written = [f"written={list(self.written)}"] if self.written else []
        return f"{self.names.kernel} = Kernel({', '.join([self.names.fn, self.names.arguments, *expected, *written])})"


def part(suite: Suite, facts: Facts) -> Part:
    """A case with its functions."""
    names = Names(suite.case.name)
    found = [c for o in suite.outputs if (c := _compared(o, suite, facts, names)) is not None]
    return Part(suite, facts, names, tuple(found))


def _compared(o: Output, suite: Suite, facts: Facts, names: Names) -> Compared | None:
    if not formulas.printable(o.formula) or o.tolerance is None or o.formula is None:
        return None
    tail = "" if len(suite.outputs) == 1 else f"_{identifier(o.name)}"
    case = suite.case
    try:
        formula = formulas.function(f"{names.stem}_formula{tail}", o.formula, case)
        magnitude = o.tolerance.magnitude
        bound = None
        if magnitude is not None:
            doc = "The largest factor by which one rounding error grows."
            bound = formulas.function(f"{names.stem}_magnitude{tail}", magnitude, case, doc)
        return Compared(o, facts.dtypes[o.name], formula, bound)
    except (Unsupported, KeyError):
        return None


def source(p: Part) -> Iterator[str]:
    """The definitions and tests of one case."""
    from . import law_tests, plain_tests, refused_calls

    yield f"# ---- {p.suite.case.name} ----"
    for c in p.compared:
        yield c.formula.source
        if c.tolerance is not None:
            yield c.tolerance.source
            yield _tolerance(c)
    yield arguments.arguments(p.suite, p.names.arguments, p.infinite)
    if p.compared:
        yield _expected(p)
    yield p.kernel
    yield arguments.strategy(p.suite, p.facts, p.names.calls)
    if p.suite.raises:
        yield plain_tests.raises(p)
        return
    yield from plain_tests.tests(p)
    yield from law_tests.tests(p)
    yield from refused_calls.tests(p)


def _tolerance(c: Compared) -> str:
    """The bound of the error, with its derivation."""
    t, magnitude = c.output.tolerance, c.tolerance
    assert t is not None and magnitude is not None
    name = magnitude.name.replace("_magnitude", "_tolerance")
    roundings = python_source(t.roundings)
    given = {s.attr for s in t.roundings.walk() if s.op in ("size", "scalar")}
    numbers = list(dict.fromkeys([*magnitude.numbers, *sorted(given)]))
    head = ", ".join([*magnitude.inputs, *(["*", *numbers] if numbers else [])])
    lines = [f"def {name}({head}):", docstring([f"How far {c.output.name} may be from its formula."], 4)]
    lines += [f"    # {line}" for text in t.derivation for line in formulas.wrapped(text, 82)]
    factor = unit_text(t.unit) if roundings == "1" else f"{unit_text(t.unit)} * {_factor(roundings)}"
    if t.tf32:
        lines += [f"    rounding = {factor}", "    if GPU:  # both factors of a product are rounded to TF32"]
        lines.append(f"        rounding += {unit_text(t.tf32 * 2.0**-9)}")
        factor = "rounding"
    lines.append(f"    return {factor} * {magnitude.call()}")
    return "\n".join(lines)


def _factor(source: str) -> str:
    """An expression as a factor."""
    return source if re.fullmatch(r"[\w.]+", source) else f"({source})"


def unit_text(unit: float) -> str:
    """2.0**-24 of 5.96e-08."""
    mantissa, exponent = math.frexp(unit)
    return f"2.0**{exponent - 1}" if mantissa == 0.5 else repr(unit)


def _expected(p: Part) -> str:
    """The function that says what every output is to be, with its tolerance."""
    used, lines, entries = set(), [], []
    for c in p.compared:
        used |= {
            *c.formula.inputs,
            *c.formula.numbers,
            *((*c.tolerance.inputs, *c.tolerance.numbers) if c.tolerance else ()),
        }
        if c.output.tolerance is not None and c.tolerance is not None:
            used |= {s.attr for s in c.output.tolerance.roundings.walk() if s.op in ("size", "scalar")}
    case = p.suite.case
    tensors = [n for n in case.tensors if n in used]
    lines += arguments.sizes_line(case, used, "call.sizes")
    if tensors:
        lines.append(f"given = leaves({p.names.arguments}(call, Memory()))")
        lines.append(f"{', '.join(tensors)} = {', '.join(f'exact(given[{n!r}])' for n in tensors)}")
    for c in p.compared:
        entries.append(
            f"{c.output.name!r}: evaluated(lambda: {c.formula.call()}, lambda: {_bound(c, p)}, {dtype(c.dtype)}),"
        )
    doc = docstring(["Every output in float64, with its tolerance and its dtype."], 4)
    head = f"def {p.names.expected}(call: Call) -> dict[str, Expected]:"
    return "\n".join([head, doc, *(f"    {line}" for line in [*lines, "return {", *entries, "}"])])


def _bound(c: Compared, p: Part) -> str:
    if c.tolerance is None or c.output.tolerance is None:
        return "0.0"
    given = {s.attr for s in c.output.tolerance.roundings.walk() if s.op in ("size", "scalar")}
    numbers = tuple(dict.fromkeys([*c.tolerance.numbers, *sorted(given)]))
    bound = replace(c.tolerance, name=c.tolerance.name.replace("_magnitude", "_tolerance"), numbers=numbers)
    return bound.call(p.infinite)


def summary(p: Part) -> list[str]:
    """The case's part of the file's docstring: formulas, contract, what is not tested."""
    lines = [f"{p.suite.case.name}, {_verdict(o)}: {statement(o, p.suite)}" for o in p.suite.outputs]
    proofs = [o.proof for o in p.suite.outputs if o.proof is not None]
    clauses = [c.text for proof in proofs for c in proof.contract if c.kind not in UNSAID]
    told = list(dict.fromkeys([*([p.suite.case.written] if p.suite.case.written != "True" else []), *clauses]))
    contract = [f"{p.suite.case.name} holds where: {'; '.join(told)}"] if told else []
    notes = [f"{p.suite.case.name}: {note}" for note in (*p.suite.notes, *_without(p))]
    return [*lines, *contract, *notes]


def _verdict(o: Output) -> str:
    return o.proof.verdict.value if o.proof is not None else "not proved"


def _without(p: Part) -> Iterator[str]:
    """Why an output with a formula is not compared with it."""
    compared = {c.output.name for c in p.compared}
    for o in p.suite.outputs:
        if o.formula is not None and o.name not in compared:
            yield f"{o.name} is not compared with its formula: {o.why or 'PyTorch has no such operation'}"


def statement(o: Output, suite: Suite) -> str:
    """The formula in index notation, or why there is none."""
    if o.formula is None:
        return f"{o.name}: {o.why}"
    text = index_form(o.formula, {n: suite.case.dims(n) for n in suite.case.tensors})
    return text if len(text) <= LONG else f"{o.name}: a formula of {len(text)} characters"

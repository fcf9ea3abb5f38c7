"""The tests of one case that need no law: formula, controls, memory, the same bits again, inputs that failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trilift.lift.cases.declaration import torch_dtype
from trilift.verify.model.verdict import Counterexample, Verdict

from .arguments import EDGES, WHOLE, values
from .formulas import docstring
from .stand_ins import lacking

if TYPE_CHECKING:
    from trilift.verify.properties.records import Dims, Suite

    from .case_section import Part

EQUALS = "equals_its_formula"
LITERALS = 300  # numbers written into a file for one call
MASKED = 4  # shapes
BYTES = 256  # numbers of an 8-bit type
MOST_SEEDS = 8  # of calls in which they are tried


def tests(p: Part) -> Iterator[str]:
    """The source of each."""
    if p.compared:
        yield _equals(p)
        yield from [_failed(p)] if p.apart else []
        yield _controls(p)
    if p.infinite:
        yield _infinite(p)
    if p.suite.deterministic:
        yield _again(p)
    elif not p.compared:
        yield _inside(p)


def function(
    p: Part,
    what: str,
    doc: str,
    body: list[str],
    settings: str = "EXAMPLES",
    always: int = 0,
    marks: tuple[str, ...] = (),
    more: Sequence[str] | None = None,
) -> str:
    """A test of calls that are drawn, after those that are always made: some sizes, and `more`, by default those that
    failed."""
    calls = [f"Call({sizes_text(d)})" for d in p.suite.sizes.first[: min(always, 1) if p.suite.unsafe else always]]
    calls += more if more is not None else failed_calls(p) if always else []
    settings = "ONE" if p.suite.unsafe else settings  # each call in a process of its own takes seconds
    head = [*marks, *skipped(p), f"@{settings}", f"@given({p.names.calls}())"]
    head += [f"@examples({', '.join(calls)})"] if calls else []
    lines = [*head, f"def {p.names.test(what)}(call: Call) -> None:", docstring([doc], 4), *(f"    {b}" for b in body)]
    return "\n".join(lines)


def each_row(p: Part) -> list[str]:
    """A call with each other row of the values table, at a shape whose padded lanes would show: one that is lost in a
    maximum of normal numbers wins among negative ones. None where a call takes a process of its own."""
    others = [v for v in values(p.suite, p.facts) if v != "normal"]
    shape = uneven(p.suite)
    if p.suite.unsafe or shape is None or not others:
        return []
    return [f"*(Call({sizes_text(shape)}, values=v) for v in {others})", *_whole_types(p)]


def _whole_types(p: Part) -> list[str]:
    """Calls in which integers have all numbers of a small type, and twice those of others, where most elements are."""
    free = [n for n, w in p.suite.whole.items() if w.bits]
    least = lambda d: min(math.prod(p.suite.case.shape(n, d)) for n in free)  # noqa: E731
    largest = max((d for d in p.suite.sizes.first if free), key=least, default=None)
    if largest is None or not least(largest):
        return []
    seeds = min(max(-(-BYTES // max(least(largest) - len(p.suite.case.tensors), 1)), 2), MOST_SEEDS)
    kinds = ((WHOLE, seeds), (EDGES, 2))
    return [f'*(Call({sizes_text(largest)}, seed=s, values="{v}") for s in range({n}))' for v, n in kinds]


def uneven(suite: Suite) -> Dims | None:
    """Of the shapes that are always tried the smallest without powers of two among its dims, and divided by
    as small ones as possible, so that no block ends where a row does; None without a shape that has elements."""

    def order(dims: Dims) -> tuple[int, int, int]:
        sizes = [int(dims[n]) for n in suite.case.names]
        return sum(v & (v - 1) == 0 for v in sizes), sum(v & -v for v in sizes), sum(sizes)

    return min((d for d in suite.sizes.first if all(d[n] for n in suite.case.names)), key=order, default=None)


def skipped(p: Part) -> list[str]:
    """The mark of a test that Triton's interpreter cannot run."""
    return [f"@pytest.mark.skipif(not GPU, reason={why!r})"] if (why := lacking(p.facts)) else []


def sizes_text(dims: Mapping[str, Any]) -> str:
    """Sizes as a literal."""
    return "{" + ", ".join(f'"{n}": {v!r}' for n, v in dims.items()) + "}"


def _equals(p: Part) -> str:
    body = [f"found = {p.run})", f"for name, expected in {p.names.expected}(call).items():"]
    body.append("    assert_equal(name, found[name], expected)")
    doc = "It computes its formula, at every element, and writes nothing else."
    marks = () if p.apart else _known_wrong(p)
    more = [*each_row(p), *([] if p.apart else failed_calls(p))]
    return function(p, EQUALS, doc, body, always=20, marks=marks, more=more)


def _failed(p: Part) -> str:
    """Where it is known to be wrong; elsewhere it is compared as any other."""
    calls = ", ".join(failed_calls(p))
    body = [f"for call in [{calls}]:", f"    found = {p.run})"]
    body += [f"    for name, expected in {p.names.expected}(call).items():"]
    body += ["        assert_equal(name, found[name], expected)"]
    doc = docstring(["Its formula at inputs that failed."], 4)
    head = [*_known_wrong(p), f"def {p.names.test(f'{EQUALS}_where_it_failed')}() -> None:", doc]
    return "\n".join([*head, *(f"    {b}" for b in body)])


def _infinite(p: Part) -> str:
    """Each way of masking at the shapes that are always tried, then calls that are drawn."""
    first = [d for d in p.suite.sizes.first if min(d.values(), default=1) > 0][-MASKED:]
    calls = [f"Call({sizes_text(d)}, seed={k})" for d in first for k in range(3)]
    body = ['call = replace(call, values="masked")', f"found = {p.run})"]
    body += [
        f"for name, expected in {p.names.expected}(call).items():",
        "    assert_equal(name, found[name], expected)",
    ]
    doc = docstring([f"Elements of {', '.join(p.infinite)} may be minus infinity."], 4)
    head = ["@FEW", f"@given({p.names.calls}())", f"@examples({', '.join(calls)})"]
    lines = [*head, f"def {p.names.masked}(call: Call) -> None:", doc]
    return "\n".join([*lines, *(f"    {b}" for b in body)])


def _known_wrong(p: Part) -> tuple[str, ...]:
    """The mark of a test that shows a bug: strict, so that it fails once the bug is gone."""
    if (reason := wrong(p)) is None:
        return ()
    return (f"@pytest.mark.xfail(strict=True, reason={reason!r})",)


def wrong(p: Part) -> str | None:
    """The known defect of the case, or None."""
    for o in p.suite.outputs:
        if o.proof is not None and o.proof.verdict is Verdict.REFUTED and (c := o.proof.counterexample) is not None:
            at = ", ".join(f"{n} = {v}" for n, v in c.dims.items())
            what = f"{c.output}{list(c.index)} is {c.got:.6g}, not {c.expected:.6g}" if c.output else c.why
            return f"{what}, at {at}"
    return None


def raises(p: Part) -> str:
    """The only test of a host function that raises at every size."""
    reason = f"it raises {p.suite.raises}"
    mark = f"@pytest.mark.xfail(strict=True, reason={reason!r})"
    body = [f"call_only({p.names.kernel}, call)"]
    return function(
        p, "can_be_called", "It accepts every call that its case allows.", body, "FEW", always=2, marks=(mark,)
    )


def _controls(p: Part) -> str:
    """At the largest shape; where nothing differs there, such as products that underflow, at a small one."""
    shapes = list(dict.fromkeys(sizes_text(d) for d in _control_shapes(p)))
    body = [f"assert_rejects_controls({p.names.kernel}, {', '.join(shapes)})"]
    doc = "The tolerance is tight enough to reject wrong results."
    head = f"def {p.names.test('rejects_wrong_results')}() -> None:"
    return "\n".join([head, docstring([doc], 4), *(f"    {b}" for b in body)])


def _control_shapes(p: Part) -> Iterator[Mapping[str, Any]]:
    names = p.suite.case.names
    first = [d for d in p.suite.sizes.first if all(d.get(n) != 0 for n in names)]  # nothing is never wrong
    if not first:
        yield {n: v[-1] for n, v in p.suite.sizes.values.items()}
        return
    size = lambda d: sum(d.values())  # noqa: E731
    yield max(first, key=size)
    yield min([d for d in first if all(d.get(n) != 1 for n in names)] or first, key=size)


def _again(p: Part) -> str:
    body = [f"first = {p.run})", f"again = {p.run}, poison=CLEAR)", "for name, x in first.items():"]
    body.append('    assert same_bits(x, again[name]), f"{name} depends on memory or chance"')
    doc = "Every element of the outputs is written, twice with the same bits."
    return function(p, "writes_everything_and_repeats", doc, body, "FEW", always=2, marks=_memory(p))


def _inside(p: Part) -> str:
    body = [f"assert {p.run}), 'no output'"]
    doc = "It stays within its tensors, and changes no input."
    return function(p, "stays_within_its_tensors", doc, body, "FEW", always=2, marks=_memory(p))


def _memory(p: Part) -> tuple[str, ...]:
    """Of a kernel that is known to be wrong, the memory may be wrong too."""
    reason = wrong(p) or next((f.why for f in p.suite.failures if f.why), None)
    return (f"@pytest.mark.xfail(reason={reason!r})",) if reason else ()


# ---- inputs that failed ----------------------------------------------------------------------------------------------


def failed_calls(p: Part) -> list[str]:
    """Those of all counterexamples that can be written."""
    return [c for f in p.suite.failures if (c := failed_call(p, f))]


def failed_call(p: Part, found: Counterexample) -> str:
    """The call of a counterexample with its tensors as literals, "" where they are too large."""
    from trilift.verify.runs.adversary import arguments
    from trilift.verify.runs.given_arguments import given

    case = given(p.suite.case, found.arguments)
    args = case.named(arguments(case, found.dims, found.seed))
    if sum(x.numel() for x in args.values()) > LITERALS:
        return ""
    typed = {n: x.to(torch_dtype(case.tensors[n].dtype)) for n, x in args.items()}
    texts = ", ".join(f'"{n}": {_numbers(x.double() if x.is_floating_point() else x)}' for n, x in typed.items())
    free = [s.unit for s in case.tensors.values() if s.strided]
    layout = f', layout="{"padded" if any(free) else "gaps"}"' if free else ""
    config = f", config={found.config}" if p.facts.configs > 1 else ""
    return f"Call({sizes_text(found.dims)}{layout}{config}, given={{{texts}}})"


def _numbers(x: Any) -> str:
    """Nested lists; empty ones would lose their shape."""
    return repr(x.tolist()).replace("nan", "math.nan").replace("inf", "math.inf")

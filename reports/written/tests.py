"""The tests of one case that need no law: formula, controls, memory, the same bits again, inputs that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .formulas import docstring

if TYPE_CHECKING:
    from .cases import Part


def tests(p: Part) -> Iterator[str]:
    """The source of each."""
    if p.compared:
        yield _equals(p)
        yield _controls(p)
    yield _again(p)


def function(p: Part, what: str, doc: str, body: list[str], settings: str = "EXAMPLES", always: int = 0) -> str:
    first = [f"Call({sizes_text(d)})" for d in p.suite.sizes.first[:always]]
    head = [f"@{settings}", f"@given({p.names.calls}())"]
    head += [f"@examples({', '.join(first)})"] if first else []
    lines = [*head, f"def {p.names.test(what)}(call: Call) -> None:", docstring([doc], 4), *(f"    {b}" for b in body)]
    return "\n".join(lines)


def sizes_text(dims: object) -> str:
    assert hasattr(dims, "items")
    return "{" + ", ".join(f'"{n}": {v!r}' for n, v in dims.items()) + "}"


def _equals(p: Part) -> str:
    body = [f"found = run({p.names.kernel}, call)", f"for name, expected in {p.names.expected}(call).items():"]
    body.append("    assert_equal(name, found[name], expected)")
    doc = "It computes its formula, at every element, and writes nothing else."
    return function(p, "equals_its_formula", doc, body, always=20)


def _controls(p: Part) -> str:
    case = p.suite.case
    first = p.suite.sizes.first
    dims = max(first, key=lambda d: sum(d.values())) if first else {n: v[-1] for n, v in p.suite.sizes.values.items()}
    body = [f"call = Call({sizes_text(dims)})"]
    copies = f"leaves({p.names.arguments}(call, Memory())).values()" if case.tensors else "[]"
    body += [f"assert_rejects_controls({p.names.expected}(call), {copies})"]
    doc = "The tolerance is worth something: results that are wrong are rejected."
    head = f"def {p.names.test('rejects_wrong_results')}() -> None:"
    return "\n".join([head, docstring([doc], 4), *(f"    {b}" for b in body)])


def _again(p: Part) -> str:
    if not p.suite.deterministic:
        return ""
    body = [
        f"first = run({p.names.kernel}, call)",
        f"again = run({p.names.kernel}, call, poison=CLEAR)",
        "for name, x in first.items():",
    ]
    body.append('    assert same_bits(x, again[name]), f"{name} depends on memory that nobody wrote, or on chance"')
    doc = "Twice the same bits, whatever memory held before: every element of the outputs is written."
    return function(p, "writes_everything_and_repeats", doc, body, "FEW", always=2)

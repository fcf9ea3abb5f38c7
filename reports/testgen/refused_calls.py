"""One test for each call that the contract excludes: it raises, or is reported."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trilift.verify.properties.records import Refusal

from .facts import identifier
from .formulas import docstring
from .plain_tests import sizes_text, skipped

if TYPE_CHECKING:
    from .case_section import Part


def tests(p: Part) -> Iterator[str]:
    """The source of each."""
    taken: list[str] = []
    for r in p.suite.refusals:
        yield _test(p, r, taken)


def _test(p: Part, r: Refusal, taken: list[str]) -> str:
    name = f"refuses_{_what(r)}"
    name = next(n for k in range(1, 99) if (n := name if k == 1 else f"{name}_{k}") not in taken)
    taken.append(name)
    call = f"call = Call({sizes_text(r.dims)}{_layouts(r)})"
    body = [call, *_values(p, r), f"with {_raises(r)}:", f"    call_only({p.names.kernel}, call)"]
    accepted = f"the host function accepts calls without: {r.clause.text}"
    marks: list[str] = [] if r.raises else skipped(p)
    if not r.raises and r.safe:
        marks += [f"@pytest.mark.xfail(strict=True, reason={accepted!r})"]
    elif not r.raises:
        body = [f"pytest.xfail({accepted + '; this one is not made: it was not seen to stay within its tensors'!r})"]
    doc = f"The contract excludes it: {r.clause.text}."
    head = [*marks, f"def {p.names.test(name)}() -> None:", docstring([doc], 4)]
    return "\n".join([*head, *(f"    {line}" for line in body)])


def _what(r: Refusal) -> str:
    """The defect of the call, as a name."""
    if r.layouts:
        return "_".join(f"{layout}_{identifier(n)}" for n, layout in r.layouts.items())
    if r.values:
        return "_".join(f"{identifier(n)}_out_of_range" for n in r.values)
    return "_".join(identifier(f"{n}_{v}".replace("-", "minus")) for n, v in r.dims.items())


def _layouts(r: Refusal) -> str:
    rows = ", ".join(f'"{n}": "{layout}"' for n, layout in r.layouts.items())
    return f", layouts={{{rows}}}" if rows else ""


def _values(p: Part, r: Refusal) -> list[str]:
    """Index tensors that begin with a number out of range."""
    lines = [f"x = numbers_of({p.names.kernel}, call)"] if r.values else []
    for n, v in r.values.items():
        lines += [f'x["{n}"].view(-1)[0] = {v}', f'call = with_inputs(call, {n}=x["{n}"])']
    return lines


def _raises(r: Refusal) -> str:
    """An exception of Python by its name, another one as any that a check raises."""
    known = getattr(builtins, r.raises, None)
    return f"pytest.raises({r.raises if isinstance(known, type) and known is not Exception else 'REFUSALS'})"

"""One test for each law that the formulas were proved to obey: a row says how the inputs change and what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trilift.verify.properties.records import Property

from .arguments import EXACT
from .facts import identifier
from .formulas import docstring
from .plain_tests import sizes_text, skipped

if TYPE_CHECKING:
    from .case_section import Part

Lines = list[str]
HEAD, TAIL = "seen({kernel}, call, {output!r})", "seen({kernel}, other, {output!r})"


@dataclass(frozen=True, slots=True)
class Row:
    """`name`: of the test. `lines`: its statements. `exact`: the change needs numbers that it does not round."""

    name: str
    lines: Callable[[Property, str], Lines]
    exact: bool = False


def tests(p: Part) -> Iterator[str]:
    """The source of each."""
    taken: list[str] = []
    known = {c.output.name for c in p.compared}
    for law in () if p.suite.unsafe else p.suite.properties:
        narrow = any(p.facts.dtypes[x].startswith("f8") for x in law.inputs)
        if law.kind in ROWS and law.output in known and not (narrow and ROWS[law.kind].exact):
            yield _test(p, law, ROWS[law.kind], taken)


def _test(p: Part, law: Property, row: Row, taken: list[str]) -> str:
    several = [identifier(law.output)] if len(p.suite.outputs) > 1 else []
    stem = "_".join([*several, row.name, *map(identifier, law.inputs)])
    name = next(n for k in range(1, 99) if (n := stem if k == 1 else f"{stem}_{k}") not in taken)
    taken.append(name)
    first = p.suite.sizes.first
    small = min((d for d in first if min(d.values(), default=1) > 1), key=lambda d: sum(d.values()), default=None)
    head = [*skipped(p), "@LAWS", f"@given({p.names.calls}())"]
    if small is not None:
        head.append(f"@examples(Call({sizes_text(small)}, seed=5))")
    body = (
        ["assume(min(call.sizes.values(), default=1) > 0)"] if p.suite.case.names and not p.suite.case.scalars else []
    )
    if p.suite.case.names and p.suite.case.scalars:
        dims = ", ".join(f'call.sizes["{n}"]' for n in p.suite.case.names)
        body = [f"assume(min({dims}) > 0)"] if len(p.suite.case.names) > 1 else [f"assume({dims} > 0)"]
    if row.exact:
        body.append(f'call = replace(call, values="{EXACT}")')
    body += row.lines(law, p.names.kernel)

    lines = [*head, f"def {p.names.test(name)}(call: Call) -> None:", docstring([f"{law.law}."], 4)]
    return "\n".join([*lines, *(f"    {line}" for line in body)])


def _given(law: Property, change: Callable[[str, int], str]) -> Lines:
    """`other`: the call with each input changed."""
    return [f"other = with_inputs(call, {', '.join(f'{x}={change(x, law.positions.get(x, 0))}' for x in law.inputs)})"]


def _x(x: str) -> str:
    return f'x["{x}"]'


def _length(law: Property) -> Lines:
    x = law.inputs[0]
    return [f"n = {_x(x)}.shape[{law.positions[x]}]"]


def _numbers(kernel: str) -> str:
    return f"x = numbers_of({kernel}, call)"


def _sides(law: Property, kernel: str, left: str = "", right: str = "") -> Lines:
    """The equation between the output of the other call and that of the first."""
    one, two = (f.format(kernel=kernel, output=law.output) for f in (TAIL, HEAD))
    return [f"assert_law({one}{left}, {two}{right})"]


def _independent(law: Property, kernel: str) -> Lines:
    here = f".map(lambda y: y.select({law.positions[law.output]}, i))"
    given = _given(law, lambda x, d: f"mixed_but({_x(x)}, call, {d}, i, 1)")
    return [_numbers(kernel), *_length(law), "i = slice_of(call, n)", *given, *_sides(law, kernel, here, here)]


def _causal(law: Property, kernel: str) -> Lines:
    start, length = ("0", "i + 1") if law.kind == "causal" else ("i", "n - i")
    here = f".map(lambda y: y.narrow({law.positions[law.output]}, {start}, {length}))"
    given = _given(law, lambda x, d: f"mixed_but({_x(x)}, call, {d}, {start}, {length})")
    return [_numbers(kernel), *_length(law), "i = slice_of(call, n)", *given, *_sides(law, kernel, here, here)]


def _permuted(law: Property, kernel: str) -> Lines:
    given = _given(law, lambda x, d: f"{_x(x)}.index_select({d}, order)")
    there = f".map(lambda y: y.index_select({law.positions[law.output]}, order))" if law.kind == "equivariant" else ""
    return [_numbers(kernel), *_length(law), "order = order_of(call, n)", *given, *_sides(law, kernel, "", there)]


def _shifted(law: Property, kernel: str) -> Lines:
    (x,) = law.inputs
    dim = law.positions.get(x)
    lines = [_numbers(kernel), f"c = constants({_x(x)}, call, {dim})", *_given(law, lambda x, d: f"{_x(x)} + c")]
    if not law.degree:
        return [*lines, *_sides(law, kernel)]
    moved = f"{law.degree:g} * c" if law.degree != 1 else "c"
    if dim is not None and law.output not in law.positions:
        moved = f"{law.degree:g} * c.squeeze({dim})" if law.degree != 1 else f"c.squeeze({dim})"
    return [*lines, *_sides(law, kernel, "", f".plus({moved})")]


def _homogeneous(law: Property, kernel: str) -> Lines:
    lines = [_numbers(kernel), "c = (0.25, 0.5, 2.0, 4.0)[call.seed % 4]", *_given(law, lambda x, d: f"c * {_x(x)}")]
    power = "" if not law.degree else ".times(c)" if law.degree == 1 else f".times(c**{law.degree:g})"
    return [*lines, *_sides(law, kernel, "", power)]


def _parity(law: Property, kernel: str) -> Lines:
    sign = ".times(-1)" if law.kind == "odd" else ""
    return [_numbers(kernel), *_given(law, lambda x, d: f"-{_x(x)}"), *_sides(law, kernel, "", sign)]


def _additive(law: Property, kernel: str) -> Lines:
    more = ", ".join(f"{x}=mixed({_x(x)}, call)" for x in law.inputs)
    both = ", ".join(f"{x}={_x(x)} + mixed({_x(x)}, call)" for x in law.inputs)
    lines = [_numbers(kernel), f"more, other = with_inputs(call, {more}), with_inputs(call, {both})"]
    return [*lines, *_sides(law, kernel, "", f".plus(seen({kernel}, more, {law.output!r}))")]


def _sums(law: Property, kernel: str) -> Lines:
    d = law.positions[law.output]
    out = f"total = {HEAD.format(kernel=kernel, output=law.output)}.map(lambda y: y.sum({d}))"
    return [out, f"assert_law(total, Seen(torch.full_like(total.value, {law.value!r}), torch.zeros_like(total.value)))"]


def _idempotent(law: Property, kernel: str) -> Lines:
    (x,) = law.inputs
    first = f"first = {HEAD.format(kernel=kernel, output=law.output)}"
    given = f"other = with_inputs(call, {x}=first.value)"
    return [first, given, f"assert_law({TAIL.format(kernel=kernel, output=law.output)}, first)"]


def _bounded(law: Property, kernel: str) -> Lines:
    low, high = law.bounds
    lines = [f"out = {HEAD.format(kernel=kernel, output=law.output)}"]
    if low > -float("inf"):
        lines.append(f"assert (out.value >= {low!r} - out.tolerance).all()")
    if high < float("inf"):
        lines.append(f"assert (out.value <= {high!r} + out.tolerance).all()")
    return lines


def _monotone(law: Property, kernel: str) -> Lines:
    given = _given(law, lambda x, d: f"torch.maximum({_x(x)}, mixed({_x(x)}, call))")
    one, two = (f.format(kernel=kernel, output=law.output) for f in (HEAD, TAIL))
    sides = "low, high" if (law.degree or 1) > 0 else "high, low"
    return [_numbers(kernel), *given, f"{sides} = {one}, {two}",
            "assert not (low.value > high.value + low.tolerance + high.tolerance).any()"]  # fmt: skip


ROWS: dict[str, Row] = {
    "independent": Row("depends_slice_by_slice_on", _independent),
    "equivariant": Row("is_permuted_with", _permuted),
    "invariant": Row("does_not_depend_on_the_order_of", _permuted),
    "causal": Row("does_not_look_ahead_in", _causal),
    "anticausal": Row("does_not_look_back_in", _causal),
    "shift": Row("under_a_shift_of", _shifted, exact=True),
    "additive": Row("is_additive_in", _additive, exact=True),
    "homogeneous": Row("scales_with", _homogeneous, exact=True),
    "odd": Row("is_odd_in", _parity),
    "even": Row("is_even_in", _parity),
    "sums": Row("has_a_fixed_sum", _sums),
    "idempotent": Row("again_changes_nothing_of", _idempotent),
    "bounded": Row("stays_within_bounds", _bounded),
    "monotone": Row("is_monotone_in", _monotone),
}

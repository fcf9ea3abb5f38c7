"""The kernel of one launch as a function of its compile-time parameters that change with the shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import gcd
from typing import Any

from trilift.lift.capture.launches import Bound
from trilift.lift.capture.recorder import lowered
from trilift.lift.capture.trace import Launch
from trilift.lift.errors import Place, Unsupported
from trilift.lift.runtime.budget import BUDGETS
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Module

from ..integers.quotient import expand
from .branching import compared, decides
from .relations import JUMPS, Relations

Combo = dict[str, Any]
LONGER = 4  # times as many operations as in a trace


@dataclass(frozen=True, slots=True)
class Parameter:
    """A compile-time integer that changes with the shape. `symbol` stands for it; `relation` is its term, if one was
    found."""

    name: str
    symbol: Term
    relation: Term | None
    values: tuple[int | float, ...]  # in the traces
    power: bool  # a power of two in all of them
    real: bool = False
    decides: bool = False  # which operations there are, as far as the kernel's source tells
    compared: tuple[int, ...] = ()  # what the kernel's tests compare with
    tuned: bool = False  # autotuning chooses it: `values` are all that there are
    step: int = 1  # all its values are multiples


@dataclass(frozen=True, slots=True)
class Choice:
    """A compile-time truth or word that changes with the shape; `relation` for truths."""

    name: str
    values: tuple[Any, ...]
    relation: Term | None


@dataclass(frozen=True, eq=False, slots=True)
class Family:
    """One launch's kernel at all block sizes."""

    launches: Sequence[Launch]
    parameters: tuple[Parameter, ...] = ()
    choices: tuple[Choice, ...] = ()
    following: tuple[Parameter, ...] = ()  # have the symbol of one of `parameters`, or a function of theirs
    lowered: dict[tuple[Any, ...], Module | None] = field(default_factory=dict)
    unrolled: set[tuple[object, ...]] = field(default_factory=set)  # values that are left out: the kernel is too long

    @property
    def first(self) -> Launch:
        return self.launches[0]

    @property
    def place(self) -> Place | None:
        return self.first.host

    @property
    def base(self) -> Module:
        return self.first.module()

    @property
    def bound(self) -> Bound | None:
        """The bound arguments of the first launch; None where it is of Triton IR."""
        return _bound(self.first)

    def seen(self) -> list[Combo]:
        """The values in the traces."""
        names = [x.name for xs in (self.parameters, self.choices) for x in xs]
        rows = dict.fromkeys(tuple(argument(launch, n) for n in names) for launch in self.launches)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def options(self) -> list[Combo]:
        """The choices of autotuning: the values of its parameters in each configuration."""
        names = [p.name for p in self.parameters if p.tuned]
        rows = dict.fromkeys(tuple(argument(launch, n) for n in names) for launch in self.launches)
        return [dict(zip(names, row, strict=True)) for row in rows] if names else []

    def module(self, combo: Combo) -> Module | None:
        """The kernel at these values, None where Triton does not compile it, or where it is too long."""
        key = tuple(combo.items())
        if key not in self.lowered:
            try:
                self.lowered[key] = self.at(self.complete(combo))
            except Unsupported:
                self.lowered[key] = None
            if self.is_unrolled(self.lowered[key]):
                self.lowered[key] = None
                self.unrolled.add(key)
        return self.lowered[key]

    def is_unrolled(self, module: Module | None) -> bool:
        """Whether it is long, and several times as long as in the traces: `tl.static_range` makes it so."""
        count, seen = (0 if m is None else sum(1 for _ in m.walk()) for m in (module, self.base))
        return count > max(BUDGETS.proof.unrolled_operations, LONGER * seen)

    def complete(self, combo: Combo) -> Combo:
        """With the values that follow."""
        if not self.following:
            return combo
        numbers = _numbers(self.parameters, combo)
        return {**combo, **{p.name: value(p.relation or p.symbol, numbers) for p in self.following}}

    def whole(self, combo: Combo) -> Combo:
        """Tuples in place of their parts."""
        out: Combo = {}
        for name, v in combo.items():
            base, part, position = name.partition("[")
            if part:
                parts = list(out.get(base, self.first.args[base]))
                parts[int(position[:-1])] = v
                out[base] = type(self.first.args[base])(parts)
            else:
                out[name] = v
        return out

    def at(self, combo: Combo) -> Module:
        bound = _bound(self.first)
        if bound is None or not combo:
            return self.base
        names = list(bound.signature)
        constexprs = {**bound.constexprs, **{(names.index(n),): v for n, v in self.whole(combo).items()}}
        return lowered(replace(bound, constexprs=constexprs))


def argument(launch: Launch, name: str) -> Any:
    """The argument of the launch: for `x`, for the part `x[1]` of a tuple."""
    base, part, position = name.partition("[")
    return launch.args[base][int(position[:-1])] if part else launch.args[base]


def _names(column: Sequence[Launch]) -> Iterator[str]:
    """The compile-time parameters, tuples of one length by their parts."""
    first = column[0]
    for name in (n for n in first.args if n in first.constexprs):
        values = [launch.args[name] for launch in column]
        if all(isinstance(v, tuple) and len(v) == len(values[0]) for v in values) and len(set(values)) > 1:
            yield from (f"{name}[{k}]" for k in range(len(values[0])))
        else:
            yield name


def _bound(launch: Launch) -> Bound | None:
    """The bound arguments of a launch of a JIT function; None for a launch of Triton IR."""
    arguments = launch.module.args if isinstance(launch.module, partial) else ()
    return arguments[0] if arguments and isinstance(arguments[0], Bound) else None


def reads_beside(launch: Launch) -> tuple[str, ...]:
    """The source of a launch's kernel and of what it calls, with the globals that it reads."""
    bound = _bound(launch)
    return bound.scope.own if bound is not None else ()


def family(column: Sequence[Launch], relations: Relations) -> Family:
    """The launch's compile-time parameters related to the dims; their symbols are known to `relations` from here on."""
    first = column[0]
    bounds = [_bound(launch) for launch in column]
    if any(b is not None and b.signature != bounds[0].signature for b in bounds if bounds[0]):
        raise Unsupported(f"the argument types of {first.kernel} depend on the shape", first.host)
    parameters: list[Parameter] = []
    choices: list[Choice] = []
    for name in _names(column):
        values = [argument(launch, name) for launch in column]
        what = f"{name} of {first.kernel}"
        if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            if all(v == values[0] for v in values) and relations.term(values, what, first.host).is_const:
                relations.known.append(T.const(int(values[0])))
            elif any(v != values[0] for v in values) and _is_tuned(column, values):
                parameters.append(_option(name, values, relations))
            else:
                parameters.append(_parameter(name, values, what, column, relations))
        elif all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            if any(v != values[0] for v in values) or not relations.term(values, what, first.host).is_const:
                term = relations.term(values, what, first.host)
                parameters.append(
                    Parameter(name, term, None, tuple(dict.fromkeys(relations.of_runs(values))), False, real=True)
                )
        elif any(repr(v) != repr(values[0]) for v in values) and _is_tuned(column, values):
            distinct = {repr(v): v for v in values}
            choices.append(Choice(name, tuple(distinct.values()), None))
        elif any(repr(v) != repr(values[0]) for v in values):
            choices.append(_choice(name, values, what, first, relations))
    free, following = _apart(parameters)
    return Family(column[: len(relations.run)], tuple(free), tuple(choices), tuple(following))


def _apart(parameters: Sequence[Parameter]) -> tuple[list[Parameter], list[Parameter]]:
    """Those that vary, and those that follow from them."""
    free: list[Parameter] = []
    following: list[Parameter] = []
    for p in sorted(parameters, key=lambda p: p.relation is not None):
        numbers = _numbers(free, {q.name: 1 for q in free})
        sizes = {s.attr for s in (p.relation or p.symbol).walk() if s.op == "size"}
        follows = not p.real and not p.tuned and bool(sizes) and sizes <= numbers.keys()
        (following if follows else free).append(p)
    return [p for p in parameters if p in free], following


def _numbers(parameters: Sequence[Parameter], combo: Combo) -> dict[str, Any]:
    """The sizes that the values of parameters say: n of n or of k * n."""
    out: dict[str, Any] = {}
    for p in parameters:
        if p.symbol.op == "size":
            out[p.symbol.attr] = combo[p.name]
        elif p.symbol.op == "mul" and len(p.symbol.args) == 2 and {a.op for a in p.symbol.args} == {"const", "size"}:
            size, factor = sorted(p.symbol.args, key=lambda a: a.op, reverse=True)
            out.setdefault(size.attr, int(combo[p.name]) // int(factor.attr))
    return out


def _is_tuned(column: Sequence[Launch], values: Sequence[Any]) -> bool:
    """Whether the value follows from the autotune configuration alone."""
    seen: dict[int, Any] = {}
    return all(repr(seen.setdefault(c.config[0], v)) == repr(v) for c, v in zip(column, values, strict=True))


def _option(name: str, values: Sequence[int], relations: Relations) -> Parameter:
    distinct = tuple(dict.fromkeys(values))
    return Parameter(name, relations.option(name, values), None, distinct, False, tuned=True)


def _padded(values: Sequence[int], column: Sequence[Launch], relations: Relations) -> Term | None:
    """next_power_of_2(n) of an integer argument n that is not a size itself, if it has these values."""
    for k, first in enumerate(column[0].operands):
        numbers = [c.operands[k] for c in column]
        if not isinstance(first, int) or any(type(n) is not int or n < 1 for n in numbers):
            continue
        if all(v == 1 << (n - 1).bit_length() for v, n in zip(values, numbers, strict=True)):
            n = relations.maybe(numbers, "the extent of a block size", column[0].host)
            padded = None if n is None or n.is_const else T.make("next_power_of_2", n)
            return relations.computed(padded, values)
    return None


def _parameter(
    name: str, values: Sequence[int], what: str, column: Sequence[Launch], relations: Relations
) -> Parameter:
    """A polynomial in dims stands for itself; anything else gets a symbol."""
    first = column[0]
    term = _padded(values, column, relations) or relations.maybe(values, what, first.host)
    distinct = tuple(dict.fromkeys(relations.of_runs(values)))
    power = all(v > 0 and int(v) & (int(v) - 1) == 0 for v in values)
    bound = _bound(first)
    tested = bound is None or decides(bound.kernel, name.partition("[")[0])
    near = sorted({c + d for c in compared(bound.kernel) for d in (-1, 0, 1)}) if bound and tested else []
    itself = term is not None and not any(s.op in JUMPS for s in term.walk())
    symbol = term if term is not None and itself else relations.block(name, term, values)
    relation = None if itself else term
    step = gcd(*expand(symbol).values()) or 1 if itself else 1
    return Parameter(name, symbol, relation, distinct, power, decides=tested, compared=tuple(near), step=step)


def _choice(name: str, values: Sequence[Any], what: str, first: Launch, relations: Relations) -> Choice:
    if all(isinstance(v, bool) for v in values):
        return Choice(name, (True, False), relations.maybe(values, what, first.host))
    distinct = {repr(v): v for v in values}
    if any(isinstance(v, int | float | tuple) for v in values):
        raise Unsupported(f"{what} depends on the shape", first.host, f"it is {', '.join(distinct)}")
    return Choice(name, tuple(distinct.values()), None)

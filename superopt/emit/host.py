"""The names in the host function of a µGraph, and the lines in which it makes views of tensors.

wq_jhd = wq.unflatten(1, (H, D))      kernels read wq_jhd[j, h, d]
keys_hmd = keys.narrow(1, P, M)       and store keys_hmd[h, m, d], in place"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trilift.lift.errors import Unsupported
from trilift.lift.language.python_source import python_source
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..mugraph.graph import MuGraph
from ..program.positions import launch_numbers
from ..program.program import Input, Part, Place, Program
from ..program.template import numbers
from ..program.views import expression
from .contract import Contract, dims_of, parameters_of
from .kernel_names import Names
from .registration import WRAP


@dataclass(frozen=True)
class Host:
    """`tensors` and `scalars`: parameters in order; sizes of axes, their parts, `numbers` of templates as texts;
    `views`: what kernels are given of each input and output."""

    tensors: tuple[str, ...]
    scalars: tuple[str, ...]
    sizes: dict[str, str]
    parts: dict[str, str]
    numbers: dict[Term, str]
    views: dict[str, str]
    contract: Contract
    divisors: dict[str, tuple[str, ...]]  # of the text of each number, what it divides by

    def extents(self, program: Program) -> dict[str, Term]:
        """The size of each axis in the reference and the case."""
        return {a: self.contract.extents.get(a, T.size(self.sizes[a])) for a in program.sizes}

    def dimensions(self, program: Program, tensor: str) -> str:
        """The shape of a parameter in the case."""
        x = next(x for x in program.views if x.tensor == tensor and (isinstance(x, Input) or x.in_place))
        sizes = self.extents(program)
        shape = [sizes[a] for a in x.axes] if isinstance(x, Input) and not x.parts else x.shape
        return ",".join(re.sub(r"\s", "", python_source(n)) for n in shape)

    def shape(self, place: Place) -> str:
        """Of the tensor that an output is a part of."""
        each = [self.contract.text(n) for n in place.shape]
        return f"({', '.join(each)}{',' * (len(each) == 1)})"

    def view(self, tensor: str, parts: Sequence[Part], shape: Sequence[Term]) -> str:
        return expression(tensor, parts, shape, self.contract.extents, self.contract.text)

    def inputs(self, program: Program) -> list[str]:
        """Views that are read."""
        return [f"{self.views[x.name]} = {self.view(x.tensor, x.parts, x.shape)}" for x in program.read if x.parts]

    def outputs(self, program: Program) -> list[str]:
        """Views that are written."""
        return [f"{self.views[out]} = {self.view(p.tensor, p.parts, p.shape)}" for out, p in program.places.items()]

    # ---- the reference

    def reference(self, program: Program, values: Sequence[str]) -> list[str]:
        """Lines of the reference; `values`: a call for each output. All are computed before one is stored in place."""
        places, named = program.places, dict(zip((out for out, *_ in program.outputs), values, strict=True))
        if not places and not any(x.parts for x in program.read):
            return [f"return {', '.join(values)}"]
        lines = [*self.inputs(program), *(f"{out} = {value}" for out, value in named.items())]
        returned: dict[str, None] = {}
        for out in named:
            place = places.get(out)
            if place is not None and not place.in_place and place.tensor not in returned:
                lines += self._joined(place, {o: p for o, p in places.items() if p.tensor == place.tensor})
            if place is None or not place.in_place:
                returned.setdefault(place.tensor if place is not None else out)
        lines += [self._stored(p, out) for out, p in places.items() if p.in_place]
        lines += [f"return {', '.join(returned)}"] if returned else []
        return [*self.contract.definitions(" ".join(lines)), *lines]

    def _joined(self, place: Place, pieces: Mapping[str, Place]) -> list[str]:
        """A tensor of its pieces."""
        first = next(iter(pieces))
        if len(pieces) == 1:
            return [f"{place.tensor} = {first}.reshape({self.shape(place)})"]
        stored = [self._stored(p, out) for out, p in pieces.items()]
        return [f"{place.tensor} = {first}.new_zeros({self.shape(place)})", *stored]

    def _stored(self, place: Place, value: str) -> str:
        return f"{self.view(place.tensor, place.parts, place.shape)}.copy_({value})"


# ---- names -----------------------------------------------------------------------------------------------------------


def host_of(
    g: MuGraph, name: str, found: Mapping[str, Term], extents: Mapping[str, Term], parameters: Sequence[str]
) -> Host:
    """The host function of this name; `found`: templates; `parameters`: tensors in the order wanted. Raises
    Unsupported."""
    names = Names()
    names.taken |= {name, f"{name}_case", "register", "register_flop_formula", WRAP, *(k.name for k in g.kernels)}
    given = parameters_of(g.program)
    tensors = tuple(dict.fromkeys([*(p for p in parameters if p in given), *given]))
    written = [p.tensor for p in g.program.places.values()]
    for x in (*tensors, *written, *g.memory):
        if not x.isidentifier():
            raise Unsupported(f"{x} is not a valid parameter name")
    names.taken |= {*tensors, *written, *g.memory}
    sizes = {a: names.new(*_wishes(a, extents)) for a in g.program.sizes}
    contract = Contract(g.program, sizes, _dims(g.program, sizes, extents, names), extents)
    parts = {a: names.new(f"PARTS_{a.upper()}") for a in g.parts}
    scalars, values, divisors = _numbers(g, found, contract)
    views = {x.name: names.new(_view(x.tensor, x.axes)) if x.parts else x.tensor for x in g.program.read}
    for out, axes, *_ in g.program.outputs:
        place = g.program.places.get(out)
        views[out] = out if place is None else names.new(_view(place.tensor, axes))
    return Host(tensors, scalars, sizes, parts, values, views, contract, divisors)


def _numbers(
    g: MuGraph, found: Mapping[str, Term], of: Contract
) -> tuple[tuple[str, ...], dict[Term, str], dict[str, tuple[str, ...]]]:
    """The scalars of templates, the text of each of their numbers, and of each text what it divides by."""
    known = {T.size(n): of.sizes[a] for a in of.sizes if a not in of.extents for n in (a, of.sizes[a])}
    known |= {T.size(d): n for d, n in of.dims.items() if n in of.told}
    known |= {e: of.sizes[a] for a, e in reversed(list(of.extents.items()))}
    values: dict[Term, str] = {}
    divisors: dict[str, tuple[str, ...]] = {}
    scalars: dict[str, None] = {}
    elements = [x.element for x in g.program.inputs if x.element is not None]
    for every in [*(numbers(t, 8) for t in found.values()), *map(launch_numbers, elements)]:
        for number in every:
            for s in number.walk():
                if s.op == "size" and s not in known:
                    raise Unsupported(f"no axis has the size {s}")
                if s.op == "scalar":
                    scalars.setdefault(str(s.attr))
            here = T.rewrite(number, lambda s: T.size(known[s]) if s in known else None)
            values[number] = python_source(here)
            divisors[values[number]] = tuple(dict.fromkeys(map(python_source, _divisors(here))))
    return tuple(scalars), values, divisors


def _divisors(t: Term) -> list[Term]:
    """The divisors in a number of the host function that may be 0 without rounding: sizes and scalars, of products each
    factor."""
    found = [s.args[-1] for s in t.walk() if s.op in ("recip", "floordiv", "mod", "truncdiv", "truncmod")]
    factors = [f for d in found for f in (d.args if d.op == "mul" else (d,))]
    return [f for f in factors if f.op == "scalar" or (f.type == T.INT and not f.is_const)]


def _dims(program: Program, sizes: Mapping[str, str], extents: Mapping[str, Term], names: Names) -> dict[str, str]:
    """The host's name of each dim: that of an axis of its size, of one that is a dimension if there is one."""
    read = {a for x in program.read if not x.parts for a in x.axes}
    first = sorted(extents.items(), key=lambda row: row[0] not in read)
    known = {e: sizes[a] for a, e in reversed(first)}
    return {d: known.get(T.size(d)) or names.new(d, f"size_{d}") for d in dims_of(program, extents)}


def _view(tensor: str, axes: Sequence[str]) -> str:
    """keys_hpd, of which kernels read keys_hpd[h, p, d]."""
    return f"{tensor}_{''.join(axes)}" if axes else f"{tensor}_entry"


def _wishes(a: str, extents: Mapping[str, Term]) -> tuple[str, ...]:
    """Names for the size of an axis: the dim that it is, else one that is not another dim."""
    size = extents.get(a)
    if size is not None and size.op == "size":
        return str(size.attr), f"size_{a}"
    dims = {str(s.attr) for e in extents.values() for s in e.walk() if s.op == "size"}
    return (f"size_{a}",) if a.upper() in dims else (a.upper(), f"size_{a}")

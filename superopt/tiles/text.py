"""Tile programs as text: declarations, then statements; a store is a formula in index notation.

    axes m = M, k = K
    input x[m, k] f16, w[k] f16
    output o[m] f32
    variable c[m] f32
    for m:
        c[m] = 0
        for k:
            c[m] = c[m] + sum(k, w[k] * x[m, k])
        o[m] = c[m]

An index is always the tensor's axis: which tile of it is meant is told by the loops around."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.language.parse import dimension, formula
from trilift.lift.printers.text import index_form, number_text
from trilift.lift.terms import term as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term

from ..program.formulas import term_of
from ..program.program import Node, Reader, extent, node
from .tile_program import Loop, Role, Seq, Statement, Store, Tensor, TileProgram, check, sequence, statements

INDENT = "    "
DECLARED = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*(\w+)?\s*$")
STORED = re.compile(r"(\w+)\s*(?:\[([^\]]*)\])?\s*=(?!=)(.*)$")
ROLES: tuple[Role, ...] = ("input", "output", "variable")


# ---- printing --------------------------------------------------------------------------------------------------------


def text(p: TileProgram) -> str:
    """The program as a text that `parse` reads."""
    axes = {a: Axis(a, p.extents.get(a) or T.size(a.upper())) for a in p.sizes}
    lines = [f"axes {', '.join(f'{a} = {number_text(x.size)}' for a, x in axes.items())}"]
    for role in ROLES:
        own = [f"{t.name}[{', '.join(t.axes)}] {t.dtype}" for t in p.tensors.values() if t.role == role]
        lines += [f"{role} {', '.join(own)}"] if own else []
    return "\n".join([*lines, *_lines(p, p.body, axes, 0)]) + "\n"


def _lines(p: TileProgram, s: Statement, axes: Mapping[str, Axis], depth: int) -> Iterator[str]:
    if isinstance(s, Seq):
        for one in statements(s):
            yield from _lines(p, one, axes, depth)
    elif isinstance(s, Loop):
        yield f"{INDENT * depth}for {s.axis}:"
        yield from _lines(p, s.body, axes, depth + 1)
    else:
        t = p.tensors[s.tensor]
        held = {x.name: T.read(x.name, [T.axis(axes[a]) for a in x.axes]) for x in p.tensors.values()}
        value = term_of(s.value, axes, held)
        shapes = {x.name: [axes[a].size for a in x.axes] for x in p.tensors.values()}
        _, _, said = index_form(Formula("out", (), value, t.dtype), shapes).partition(" = ")
        yield f"{INDENT * depth}{_element(t)} = {said}"


# ---- parsing ---------------------------------------------------------------------------------------------------------


def parse(text: str, sizes: Mapping[str, int]) -> TileProgram:
    """The program of a text at these sizes of dims. Raises CaseError, with the line."""
    lines = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.split("#")[0].strip()]
    return _Parser([(k, line.split("#")[0].rstrip()) for k, line in lines], sizes).program()


@dataclass
class _Parser:
    lines: list[tuple[int, str]]
    dims: Mapping[str, int]
    axes: dict[str, Axis] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def program(self) -> TileProgram:
        while self.lines and self.lines[0][1].split()[0] in ("axes", *ROLES):
            self.declare(*self.lines.pop(0))
        body = self.block(0)
        if self.lines:
            raise _bad(*self.lines[0], "it is indented further than the line above")
        p = TileProgram(self.tensors, body, self.sizes(), {a: x.size for a, x in self.axes.items()})
        check(p)
        return p

    def sizes(self) -> dict[str, int]:
        try:
            return {a: extent(x.size, dict(self.dims)) for a, x in self.axes.items()}
        except Unsupported as e:
            raise CaseError("a tile program at unknown sizes", why=str(e)) from None

    def declare(self, number: int, line: str) -> None:
        what, _, rest = line.partition(" ")
        for part in re.split(r",(?![^\[]*\])", rest):
            if what == "axes":
                name, _, size = part.partition("=")
                self.axes[name.strip()] = Axis(name.strip(), dimension(size.strip()))
                continue
            m = DECLARED.match(part)
            if m is None:
                raise _bad(number, line, "expected a tensor declaration like x[m, k] f16")
            axes = tuple(a.strip() for a in (m[2] or "").split(",") if a.strip())
            if m[1] in self.tensors:
                raise _bad(number, line, f"{m[1]} is declared twice")
            if unknown := [a for a in axes if a not in self.axes]:
                raise _bad(number, line, f"there is no axis {unknown[0]}")
            if len(set(axes)) < len(axes):
                raise _bad(number, line, f"{m[1]} has an axis twice")
            role = next(r for r in ROLES if r == what)
            self.tensors[m[1]] = Tensor(m[1], axes, role, m[3] or "f32")

    def block(self, depth: int) -> Statement:
        found: list[Statement] = []
        while self.lines and _depth(self.lines[0][1]) == depth:
            number, line = self.lines.pop(0)
            found.append(self.statement(number, line.strip(), depth))
        if not found:
            raise _bad(*(self.lines[0] if self.lines else (0, "")), "expected a statement here")
        return sequence(found)

    def statement(self, number: int, line: str, depth: int) -> Statement:
        if line.startswith("for "):
            axes = [a.strip() for a in line.removeprefix("for ").rstrip(":").split(",")]
            if unknown := [a for a in axes if a not in self.axes]:
                raise _bad(number, line, f"there is no axis {unknown[0]}")
            body = self.block(depth + 1)
            for a in reversed(axes):
                body = Loop(a, body)
            return body
        m = STORED.match(line)
        if m is None or m[1] not in self.tensors:
            raise _bad(number, line, f"{m[1]} is not declared" if m else "expected a store x[m, k] = ...")
        t = self.tensors[m[1]]
        if tuple(a.strip() for a in (m[2] or "").split(",") if a.strip()) != t.axes:
            raise _bad(number, line, f"it is stored as {_element(t)}")
        return Store(t.name, self.value(number, line, m[3], t))

    def value(self, number: int, line: str, said: str, t: Tensor) -> Node:
        shapes = {x.name: [self.axes[a].size for a in x.axes] for x in self.tensors.values()}
        at = ", ".join(f"{a} < {number_text(self.axes[a].size)}" for a in t.axes)
        try:
            term = formula(f"out{f'[{at}]' if at else ''} = {said}", shapes).term
            return _Values(self.axes, self.tensors).value(term)
        except (CaseError, Unsupported) as e:
            raise _bad(number, line, str(e)) from None


class _Values(Reader):
    """Terms to values, with the axes that are declared."""

    def __init__(self, axes: Mapping[str, Axis], tensors: Mapping[str, Tensor]) -> None:
        super().__init__(set(tensors), axes={a: x.size for a, x in axes.items()})
        self.declared = tensors

    def _value(self, t: Term) -> Node:
        if not t.free and not any(s.op == "read" for s in t.walk()):
            return node("const", attr=t)
        if t.op == "amax":
            return node("max", self.value(t.args[0]), attr=t.attr.name)
        return super()._value(t)

    def _read(self, t: Term) -> Node:
        own = self.declared[str(t.attr)].axes
        if [a.op == "axis" and a.attr.name for a in t.args] != list(own):
            raise Unsupported(f"{t.attr} is loaded at other axes than {', '.join(own)}")
        return super()._read(t)

    def _renamed(self, t: Term) -> tuple[Axis, Term]:
        return t.attr, t.args[0]


def _element(t: Tensor) -> str:
    """The tensor at its axes."""
    return f"{t.name}[{', '.join(t.axes)}]" if t.axes else t.name


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip())) // len(INDENT)


def _bad(number: int, line: str, why: str) -> CaseError:
    return CaseError(f"cannot read line {number} of a tile program: {line.strip()!r}", why=why)

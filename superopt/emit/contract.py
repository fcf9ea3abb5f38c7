"""The contract of an emitted host function: sizes read off their shapes, and asserts of all that these must be
to each other.

    M, K = x.shape                    an axis, or a dim, that is a dimension
    P = keys.shape[1] - M             the one dim that is not known of a dimension of P + M
    assert w.shape[1] == H * D        what is known already"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trilift.lift.errors import Unsupported
from trilift.lift.language.python_source import python_source
from trilift.lift.terms import construct as T
from trilift.lift.terms import index as I
from trilift.lift.terms.term import Term

from ..program.program import Input, Program

TORCH = {"f16": "torch.float16", "bf16": "torch.bfloat16", "f32": "torch.float32", "f64": "torch.float64"}
TORCH |= {"i8": "torch.int8", "u8": "torch.uint8"}


def parameters_of(program: Program) -> dict[str, str]:
    """The tensors that the host function is given, with their dtypes: those that are read, and written in place."""
    dtypes = {out: dtype for out, _, _, dtype in program.outputs}
    found = {x.tensor: x.dtype for x in reversed(program.read)}
    written = {p.tensor: dtypes[out] for out, p in program.places.items() if p.in_place}
    return {t: {**written, **found}[t] for t in dict.fromkeys([*(x.tensor for x in program.read), *written])}


def written_in_place(program: Program) -> tuple[str, ...]:
    """The inputs that are outputs too, of which no two elements may be at one place."""
    return tuple(dict.fromkeys(p.tensor for p in program.places.values() if p.in_place))


def dims_of(program: Program, extents: Mapping[str, Term]) -> tuple[str, ...]:
    """The dims that sizes of axes, views and places are made of, in the order of appearance."""
    views = [(x.shape, x.parts) for x in program.views]
    terms = [*extents.values(), *(t for shape, parts in views for t in (*shape, *(p.start for p in parts)))]
    return tuple(dict.fromkeys(str(s.attr) for t in terms for s in t.walk() if s.op == "size"))


@dataclass
class Contract:
    """`sizes`, `dims`: the host's name for the size of each axis, and for each dim; `extents`: sizes of axes as terms
    over dims. `lines`: of the host function; `told`: what each size is, as a term over sizes and entries of shapes.
    Raises Unsupported for a size that nothing tells."""

    program: Program
    sizes: Mapping[str, str]
    dims: Mapping[str, str]
    extents: Mapping[str, Term]
    lines: list[str] = field(default_factory=list)
    told: dict[str, Term] = field(default_factory=dict)
    equations: list[tuple[Term, Term]] = field(default_factory=list)  # of an entry of a shape

    def __post_init__(self) -> None:
        self._shapes()
        self._solved()
        self._relations()
        self.lines += [f"assert {python_source(a)} == {python_source(b)}" for a, b in self.equations]
        self.lines += [f"assert {t}.is_contiguous()" for t in written_in_place(self.program)]

    def named(self, t: Term) -> Term:
        """A term over dims as one over the host's names."""
        return T.rewrite(t, lambda s: T.size(self.dims[str(s.attr)]) if s.op == "size" else None)

    def text(self, t: Term) -> str:
        return python_source(self.named(t))

    def definitions(self, used: str, shape: str = ".shape") -> list[str]:
        """Lines that define the sizes which a text uses; `shape`: how a tensor's shape is written behind its name."""
        words, lines = {*re.findall(r"\w+", used)}, list[str]()
        for name, t in reversed(self.told.items()):
            if name in words:
                text = python_source(t)
                words |= {*re.findall(r"\w+", text)}
                lines.insert(0, f"{name} = {text.replace('.shape[', f'{shape}[')}")
        return lines

    # ---- shapes

    def _shapes(self) -> None:
        seen: set[str] = set()
        dtypes = parameters_of(self.program)
        for x in (x for x in self.program.views if isinstance(x, Input) or x.in_place):
            plain = isinstance(x, Input) and not x.parts
            axes = x.axes if isinstance(x, Input) else ()
            shape = [T.size(self.sizes[a]) for a in axes] if plain else [self.named(n) for n in x.shape]
            if x.tensor not in seen:
                dtype = TORCH[dtypes[x.tensor]]
                self.lines.append(f"assert {x.tensor}.dtype == {dtype} and {x.tensor}.dim() == {len(shape)}")
            if plain or x.tensor not in seen:
                self._shape(x.tensor, shape)
            seen.add(x.tensor)

    def _shape(self, tensor: str, shape: Sequence[Term]) -> None:
        """Its entries: sizes that become known, or that are compared, and equations."""
        names = [str(n.attr) for n in shape if n.op == "size"]
        if shape and len({*names} - {*self.told}) == len(shape):
            self.lines.append(f"{', '.join(names)}{',' * (len(names) == 1)} = {tensor}.shape")
            self.told |= {n: _entry(tensor, d) for d, n in enumerate(names)}
            return
        for d, n in enumerate(shape):
            if n.op != "size":
                self.equations.append((_entry(tensor, d), n))
            elif str(n.attr) in self.told:
                self.lines.append(f"assert {tensor}.shape[{d}] == {n.attr}")
            else:
                self._define(str(n.attr), _entry(tensor, d))

    def _define(self, name: str, t: Term) -> None:
        self.told[name] = t
        self.lines.append(f"{name} = {python_source(t)}")

    # ---- dims that no shape is

    def _solved(self) -> None:
        """Dims from equations with one that is not known."""
        own = {a: T.size(n) for a, n in self.sizes.items() if n in self.told}
        axes = [(size, self.named(self.extents[a])) for a, size in own.items() if a in self.extents]
        wanted = [n for _, n in self.equations] + [self.named(e) for a, e in self.extents.items() if a not in own]
        wanted += [self.named(p.start) for x in self.program.read for p in x.parts]
        wanted += [self.named(t) for p in self.program.places.values() for t in (*p.shape, *(q.start for q in p.parts))]
        while missing := [n for t in wanted for n in _names(t) if n not in self.told]:
            found = next((s for e in (*self.equations, *axes) if (s := self._solution(*e)) is not None), None)
            if found is None:
                axis = next((a for a, e in self.extents.items() if missing[0] in _names(self.named(e))), None)
                what = f"the size of the axis {axis}" if axis else f"the size {missing[0]}"
                raise Unsupported(f"no tensor that the program reads determines {what}")
            name, t, exact = found
            self._define(name, t)
            if exact:
                self.equations = [(a, b) for a, b in self.equations if a not in t.walk()]
            if t.op == "add":
                self.lines.append(f"assert {name} >= 0")

    def _solution(self, entry: Term, t: Term) -> tuple[str, Term, bool] | None:
        """entry = t for the one name of t that is not known, where t is linear in it, and whether that is all that the
        equation says."""
        unknown = [n for n in _names(t) if n not in self.told]
        if len(unknown) != 1:
            return None
        (name,) = unknown
        rest = _with(t, name, 0)
        factor = I.normal(_with(t, name, 1) - rest)
        if I.normal(factor * T.size(name) + rest) is not I.normal(t):
            return None
        exact = factor is T.const(1)
        above = T.sub(entry, rest)
        return name, above if exact else T.make("floordiv", above, factor), exact

    # ---- axes

    def _relations(self) -> None:
        """Sizes of axes that no shape of a tensor is, and asserts about those that are not dims of their own: two axes
        of one size, an axis of 2 * H."""
        if unread := [a for a, n in self.sizes.items() if n not in self.told and a not in self.extents]:
            raise Unsupported(f"no tensor that is read has the axis {unread[0]}")
        for a, e in self.extents.items():
            size = self.named(e)
            if not {*_names(size)} <= {*self.told}:
                continue
            if self.sizes[a] not in self.told:
                self._define(self.sizes[a], size)
            elif size is not T.size(self.sizes[a]):
                self.lines.append(f"assert {self.sizes[a]} == {python_source(size)}")


def _entry(tensor: str, d: int) -> Term:
    return T.size(f"{tensor}.shape[{d}]")


def _names(t: Term) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(s.attr) for s in t.walk() if s.op == "size"))


def _with(t: Term, name: str, value: int) -> Term:
    return I.normal(T.rewrite(t, lambda s: T.const(value) if s.op == "size" and s.attr == name else None))

"""The record of one reading of a host function: its symbols, the decisions that Python made, what was lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import torch

from ...capture.places import host_place
from ...capture.texts import purpose
from ...errors import Place, Unsupported
from ...terms import construct as T
from ...terms.term import Term
from ..roundings import LOST
from ..symbols import Symbols, of_layout, of_view
from . import numbers as N

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensorMode

    Symbol: TypeAlias = torch.SymInt | torch.SymFloat  # PyTorch's numbers

P = TypeVar("P", bound=N.Plain)


@dataclass(frozen=True, slots=True)
class Decision:
    """`condition` holds on this path: the host function asked at `place`. `by`: "host" for a test of Python's, "torch"
    for one of PyTorch's own, "layout" where it lays out memory, "value" where the number was taken out, by PyTorch too,
    and any other number may lead elsewhere, "text" where it was taken out for a text."""

    condition: Term
    place: Place | None
    by: str = "host"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the host function did, and where."""

    what: str
    place: Place | None


ELSEWHERE_BITS = 44  # of the addresses within one storage


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy of an input or of a part of it, which `call` makes or not, as the input lies in memory. `address`: of the
    buffer in the trace of this path, where it is a copy."""

    of: str
    call: str
    address: int
    place: Place | None


@dataclass(eq=False)
class Record:
    """`dims`: the numbers that this run has for dims and scalars."""

    dims: dict[str, int | float]
    decisions: list[Decision] = field(default_factory=list)
    lost: list[Note] = field(default_factory=list)
    texts: list[Note] = field(default_factory=list)  # numbers that became text
    asked: list[Note] = field(default_factory=list)
    opaque: dict[int, Symbol] = field(default_factory=dict)  # id of a term -> PyTorch's symbol for it
    made: dict[int, Symbol] = field(default_factory=dict)
    of: dict[object, N.Number] = field(default_factory=dict)  # PyTorch's expression -> our number
    wide: frozenset[str] = frozenset()  # integer scalars that may have more digits than a float
    files: frozenset[str] = frozenset()  # of the host's own code
    addresses: dict[int, str] = field(default_factory=dict)  # of an input's storage, the input's name
    inputs: dict[int, str] = field(default_factory=dict)  # of an input's tensor, by its id, the input's name
    others: dict[int, int] = field(default_factory=dict)  # of another storage, the number of its block of addresses
    seen: set[Term] = field(default_factory=set)
    world: set[str] = field(default_factory=set)  # names of numbers that are outside of its arguments
    guards: int = 0  # of PyTorch's that were read
    counted: set[int] = field(default_factory=set)  # places of guards by which PyTorch took a number out
    sizes: set[Term] = field(default_factory=set)  # of tensors, and their strides
    inside: str = ""  # the function of PyTorch's that runs
    copies: dict[int, Copied] = field(default_factory=dict)  # by storage

    def __post_init__(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.symbols = Symbols(dict(self.dims))
        self.symbols.env = ShapeEnv(specialize_zero_one=False, duck_shape=False)
        self._hear_numbers()
        self.symbols.mode = FakeTensorMode(shape_env=self.symbols.env, allow_non_fake_inputs=True)

    @property
    def mode(self) -> FakeTensorMode:
        return self.symbols.mode

    def _hear_numbers(self) -> None:
        """PyTorch evaluates a number, and no truth, where it counts with it, as how many parts `split` returns."""
        from sympy import Expr  # type: ignore[import-untyped]
        from torch.fx.experimental.symbolic_shapes import uninteresting_files

        uninteresting_files().add(__file__)  # a guard is told with the function that asked, which is not this one
        env = self.symbols.env
        evaluate = env.evaluate_expr

        def evaluated(expr: object, *args: object, **options: object) -> object:
            before = len(env.guards)
            found: object = evaluate(expr, *args, **options)
            if isinstance(expr, Expr):  # a symbol is a Boolean of SymPy's, too
                self.counted.update(range(before, len(env.guards)))
            return found

        env.evaluate_expr = evaluated

    # ---- ours to theirs

    def symbol(self, t: Term, v: N.Plain) -> Symbol:
        """PyTorch's number for a term."""
        if t.id not in self.made:
            self.made[t.id] = self._symbol(t, v)
        return self.made[t.id]

    def _symbol(self, t: Term, v: N.Plain) -> Symbol:
        if t.op in ("add", "mul", "floordiv", "mod") and t.type == T.INT:
            from ...terms.fit import value
            from ..symbols import on_symbols

            parts = [a.attr if a.is_const else self.symbol(a, value(a, self.dims)) for a in t.args]
            if all(a.is_const or value(a, self.dims) is not None for a in t.args):
                return on_symbols(t.op)(*parts)
        return self._fresh(t, v)

    def _fresh(self, t: Term, v: N.Plain) -> Symbol:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        env, source = self.symbols.env, ConstantSource(f"n{t.id}")
        if isinstance(v, float):
            symbol = env.create_unspecified_symbol(v, source, DimDynamic.DYNAMIC)
            made = env.create_symfloatnode(symbol, hint=v, source=source)
        else:
            positive = None if v < 0 or t.op != "size" else True
            symbol = env.create_symbol(int(v), source, DimDynamic.DYNAMIC, positive=positive)
            made = env.create_symintnode(symbol, hint=int(v), source=source)
        self.symbols.terms[symbol] = t
        return made

    def size(self, t: Term) -> N.Number:
        """The number of ours for a term over dims and scalars."""
        from ...terms.fit import value

        v = value(t, self.dims)
        if t.is_const:
            return cast(N.Number, t.attr)
        if t.type == T.BOOL:
            return N.truth(self, t, bool(v))
        return N.real(self, t, float(v)) if t.type == T.REAL else N.integer(self, t, int(v))

    def theirs(self, t: Term) -> Symbol | N.Plain:
        """PyTorch's number for a term over dims and scalars."""
        from ...terms.fit import value

        return t.attr if t.is_const else self.symbol(t, value(t, self.dims))

    # ---- theirs to ours

    def number(self, x: Symbol | torch.SymBool) -> N.Number:
        """Our number for a SymInt, SymFloat or SymBool of PyTorch's."""
        if type(x) is torch.SymBool:
            return bool(x)
        expr = x.node.expr
        if expr not in self.of:
            self.of[expr] = self._number(x, expr)
        return self.of[expr]

    def _number(self, x: Symbol, expr: object) -> N.Number:
        hint = x.node.hint
        t = self.term(expr)
        if hint is None:
            raise Unsupported("a size that depends on the values of a tensor", host_place())
        if type(x) is torch.SymFloat:
            return N.real(self, t, float(hint), rounded=N.EXACT if t.op in ("scalar", "size") else LOST)
        return N.integer(self, t, int(hint))

    def term(self, expr: object) -> Term:
        """Raises Unsupported where PyTorch's expression has no term."""
        return self.symbols._of(expr)

    # ---- what happened

    def decide(self, t: Term, v: bool) -> bool:
        """Python asks whether t holds, which is v."""
        self.catch_up()
        self._note(t, v, host_place(), "host")
        return v

    def lose(self, t: Term, v: P, by: str = "value") -> P:
        """The number of a term, taken out: nobody sees what becomes of it. One of the world alone, such as a compute
        capability that is looked up in a table, is a branch, since other machines have few others."""
        self.catch_up()
        if by == "value" and (symbols := _symbols(t)) and symbols <= self.world:
            self._note(T.make("eq", t, v), True, host_place(), "host")
        elif self._note(T.make("eq", t, v), True, host_place(), by):
            (self.texts if by == "text" else self.lost).append(Note(f"{t} where it cannot be followed", host_place()))
        return v

    def spell(self, t: Term, v: P) -> P:
        """The number of a term, taken out for a text."""
        match purpose():
            case "message":
                self.texts.append(Note(f"{t} where it cannot be followed", host_place()))
            case "value":
                self.lose(t, v, "text")
        return v

    def _note(self, t: Term, v: bool, place: Place | None, by: str) -> bool:
        condition = t if v else T.make("not", t)
        if condition.is_const or condition in self.seen:
            return False
        self.seen.add(condition)
        self.decisions.append(Decision(condition, place, by))
        return True

    def catch_up(self, failed: bool = False) -> None:
        """PyTorch's guards since the last time. Where its function `failed`, each may be why: they count as the host's
        own, which may go on from there."""
        guards = self.symbols.env.guards
        for place, g in enumerate(guards[self.guards :], self.guards):
            self.guards += 1
            try:
                t = self.term(g.expr)
            except Unsupported as error:
                self.lost.append(Note(f"{error.what}, which it asks of a size", host_place()))
                continue
            if place not in self.counted:
                layout = "layout" if of_layout(g) or of_view(t, g) else "torch"
                self._note(t, True, host_place(), "host" if failed else layout)
            elif self._note(t, True, host_place(), "value"):
                self.lost.append(Note(f"a number that PyTorch counts with, as {t}", host_place()))
        self.guards = len(guards)

    def elsewhere(self, storage: int) -> int:
        """The address of a storage of the host function's own."""
        return self.others.setdefault(storage, 1 + len(self.others)) << ELSEWHERE_BITS

    def ask(self, what: str) -> None:
        """The host function looks at something outside of its arguments."""
        note = Note(what, host_place())
        if note not in self.asked:
            self.asked.append(note)

    def copied(self, t: torch.Tensor, copy: torch.Tensor, address: int) -> None:
        """PyTorch has copied a tensor where it might have returned it as it is."""
        key = int(t.untyped_storage()._cdata)
        of = self.copies[key].of if key in self.copies else self.addresses.get(key)
        if of:
            self.copies[int(copy.untyped_storage()._cdata)] = Copied(of, self.inside, address, host_place())

    def named(self, t: torch.Tensor) -> str:
        """The input that the tensor is, or is a view of; empty for any other."""
        if id(t) in self.inputs:
            return self.inputs[id(t)]
        of = self.addresses.get(int(t.untyped_storage()._cdata)) if t.layout is torch.strided else None
        return f"a view of {of}" if of else ""

    def outside(self, name: str, now: int) -> int | float:
        """The number or truth of this name outside of its arguments: as it is now, unless this run is elsewhere."""
        self.world.add(name)
        return self.dims.setdefault(name, now)

    def chance(self, what: str) -> None:
        """The host function asks for what no other call needs to get."""
        note = Note(what, host_place())
        if note not in self.lost:
            self.lost.append(note)


def _symbols(t: Term) -> set[str]:
    return {str(s.attr) for s in t.walk() if s.op in ("size", "scalar")}

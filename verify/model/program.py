"""The effects of one kernel launch, for every program, lane and iteration at once: the end of parametric execution.

Nothing is unrolled and no lane has a number. Symbols: program ids are sizes `pid0`, `pid1`, `pid2`; the lanes of an
access and the iterations of a loop are axes; sizes, strides and scalars are the terms that the launch passes.

Terms of this stage, beside those of `lift.terms.term`:

    pointer[p](o)            element o of the memory that parameter p points to (o counts elements, from p itself)
    read[p@k](o)             what load site k finds at element o of p, before anybody asks which store was last
    carry[c](n, outer.., lanes..)   loop variable c at the start of iteration n, in the iterations `outer` of the loops
                             around it, outermost first; at n = trips it is the loop's result
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trilift.lift.errors import Place
from trilift.lift.terms import term as T
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Module, Op, Type

POINTER = "ptr"  # the type of pointer terms

Element = Callable[[Sequence[Term]], Term]  # lanes -> the element: a tensor as a function of its indices


@dataclass(frozen=True, eq=False, slots=True)
class Loop:
    """One scf.for or scf.while. Iteration n = axis(counter), 0 <= n < trips; the induction variable is
    lower + n * step. `guard` is the path condition under which the loop is reached, over the counters of `outer`.
    A while loop has the `condition` of iteration n over axis(counter) and its trips are a symbol of their own."""

    op: Op
    counter: Axis  # its size is `trips`
    trips: Term
    lower: Term
    step: Term
    outer: tuple[Loop, ...]
    guard: Term
    carries: list[Carry] = field(default_factory=list)
    condition: Term | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Carry:
    """One loop variable. `init(lanes)` before the first iteration; `next(lanes)` after iteration axis(counter), as a
    term over carry nodes of this loop at axis(counter). Both also over the counters of the loops around."""

    loop: Loop
    index: int
    name: str
    type: Type
    init: Element
    next: Element

    def __repr__(self) -> str:
        return self.name

    def at(self, n: Term, lanes: Sequence[Term] = ()) -> Term:
        """The variable at the start of iteration n."""
        outer = tuple(T.axis(o.counter) for o in self.loop.outer)
        return T.node("carry", (n, *outer, *lanes), self, term_type(self.type))


@dataclass(frozen=True, eq=False, slots=True)
class Access:
    """One load, store or atomic operation: for every program, every iteration of `loops` and all `lanes`, if `guard`
    (path conditions and mask), the element that `pointer` says. `order` numbers the sites of one program's body in
    program order. `value`: what is stored or combined; for a load the term of its result. `site`: the k of
    read[p@k]."""

    kind: str  # "load", "store", or the atomic's row: "add", "max", "exchange", "cas" ...
    op: Op
    lanes: tuple[Axis, ...]
    loops: tuple[Loop, ...]
    guard: Term
    pointer: Term
    value: Term | None
    type: Type  # of one element
    order: int
    site: int = -1

    @property
    def place(self) -> Place | None:
        return self.op.place


@dataclass(frozen=True, eq=False, slots=True)
class Barrier:
    """One tl.debug_barrier(): if `guard`, in every iteration of `loops`, after the accesses with a smaller order than
    `order` and before all others."""

    op: Op
    loops: tuple[Loop, ...]
    guard: Term
    order: int


@dataclass(frozen=True, eq=False, slots=True)
class Arithmetic:
    """An integer operation whose result must fit `bits` (two's complement), under the guard, for all lanes and
    iterations; `term` is the exact result. `kind`: "wrap", or "divisor" for a term that must not be 0; "positive": > 0
    (a loop's step), "unsigned": 0 <= term < 2^bits, "shift": 0 <= term < bits, "assume": the condition `term` of
    tl.assume, without which the kernel means nothing; "descriptor": the same of tl.make_tensor_descriptor; "exact":
    `term`, an integer in a float, is less than 2^(bits - 1), and "inexact": its rounding is not known."""

    kind: str
    op: Op
    lanes: tuple[Axis, ...]
    loops: tuple[Loop, ...]
    guard: Term
    term: Term
    bits: int


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """`grid`: number of programs along each axis, as terms; 0 <= pid_k < grid_k. `unsupported`: operations without a
    meaning here, each of which made its results opaque; nothing may be concluded about what depends on them."""

    module: Module
    grid: tuple[Term, Term, Term]
    accesses: tuple[Access, ...]
    loops: tuple[Loop, ...]
    arithmetic: tuple[Arithmetic, ...]
    asserts: tuple[tuple[Term, Op], ...] = ()  # tl.device_assert, compiled away unless debugging: condition and place
    unsupported: tuple[Op, ...] = ()
    barriers: tuple[Barrier, ...] = ()


PIDS = tuple(T.pinned(T.size(f"pid{k}")) for k in range(3))


def pointer(base: str, offset: T.TermLike) -> Term:
    """Element `offset` of what parameter `base` points to."""
    return T.node("pointer", (T.const(offset),), base, POINTER)


def term_type(t: Type) -> str:
    """The type of the term of one element."""
    return POINTER if t.element == "ptr" else T.BOOL if t.element == "i1" else T.INT if t.is_int else T.REAL

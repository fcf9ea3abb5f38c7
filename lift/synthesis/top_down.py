"""From pointwise specs to a formula: top-down decomposition, with bottom-up enumeration for what remains.

The same output is given at several shapes; all are decomposed together, so that every guess (which coordinate a sum
runs over, what a number is) must hold at all of them. A problem is an array of terms per shape over common axes, cut
by its head:

    f(a, b) everywhere      f(A, B), and the argument arrays are problems of their own
    x[.] everywhere         x[I, J ...], coordinate arrays are problems
    sum of addends          addends by kind: one of a kind is an addend, several are a fold over a new axis, which is a
                            coordinate of the addends; where not all are there, the fold is guarded
    numbers                 affine in the axes, else enumerated; truth values: comparisons of such expressions
    different heads         what the commonest says, if it says the others too; else where(guard, A, B)

Elements that do not matter (behind a guard) have id -1. The result is compared with the specs on random inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any

import numpy as np

from ..errors import NotLifted
from ..language.evaluate import evaluate
from ..runtime import budget
from ..runtime.strategy import Closers, Strategy
from ..terms import construct as T
from ..terms.domain import SYMBOLIC, Ids, as_ids
from ..terms.expansion import Expansion
from ..terms.skeleton import SYMMETRIC, by_kind, order, skeleton
from ..terms.spec import Formula, Spec, input_elements
from ..terms.term import COMMUTATIVE, FOLDS, TERMS, UNIT, Axis, Term
from .arrays import Arrays, choose_single, depth, layers, map_ids, map_terms, numbers_of, without_constant_axes
from .bottom_up import enumerate_formula
from .instances import check_on_samples, same_numbers, short
from .numbering import Choice, choices
from .output_axes import new_axis, output_axes
from .quantities import Dims, Quantities

Form = tuple[Sequence[Spec], Expansion | None] | None  # specs, with what made them; None: not another form
FOLD_OF = {v: k for k, v in FOLDS.items()} | {"and": "amin", "or": "amax"}
ORDERED = {"argmax_of": "argmax", "argmin_of": "argmin"}


def synthesise(
    *specs: Spec,
    top_down: bool = True,
    prune: bool = True,
    seen: Sequence[tuple[Dims, tuple[int, ...]]] = (),
    closers: Closers | None = None,
) -> Formula:
    """The formula that the specs of one output, at different shapes, are instances of.

    First on the terms as the kernel computes them, then on their expanded normal form (lift.terms.expansion), in
    which rescaled sums and recurrences become regular. Raises NotLifted where neither gives a formula; `why` says
    which part resisted. `seen`: dims and the output's shape of further runs, which have no spec. `closers`: is given
    the names of the rows that found it.
    """
    if not top_down:
        return enumerate_formula(specs, prune)
    trouble: list[NotLifted] = []
    forms, closers = Forms(specs), closers or Closers()
    for row in FORMS:
        form = row.attempt(forms)
        if form is None:
            continue
        attempt, normal = form
        cuts = Closers()
        try:
            found = _checked(_decompose(attempt, seen, prune, normal, cuts), specs)
        except NotLifted as e:
            trouble.append(e)
        else:
            closers.names += [row.name, *cuts.names]
            return found
    raise trouble[0]


@dataclass
class Forms:
    """The specs in the forms that are tried."""

    specs: Sequence[Spec]
    normal: Expansion = field(default_factory=Expansion)

    def __post_init__(self) -> None:
        self.few = [thinned(s) for s in self.specs]

    @property
    def more(self) -> bool:
        """Whether few elements are not all."""
        return any(a is not b for a, b in zip(self.few, self.specs, strict=True))

    def few_computed(self) -> Form:
        """A part of the elements, as the kernel computes them."""
        return self.few, None

    def few_expanded(self) -> Form:
        """A part of the elements, in expanded normal form."""
        return self.expanded(self.few)

    def all_computed(self) -> Form:
        """All elements, as the kernel computes them."""
        return (self.specs, None) if self.more else None

    def all_expanded(self) -> Form:
        """All elements, in expanded normal form."""
        return self.expanded(self.specs) if self.more else None

    def expanded(self, specs: Sequence[Spec]) -> Form:
        try:
            return [expanded(s, self.normal) for s in specs], self.normal
        except NotLifted:  # too large
            return None


THINNED_ELEMENTS = 160  # of an output, which usually say it all


def thinned(spec: Spec) -> Spec:
    """The spec with at most about THINNED_ELEMENTS: along each axis the first, the last and some between."""
    if spec.ids.size <= THINNED_ELEMENTS:
        return spec
    keep = max(3, int(THINNED_ELEMENTS ** (1 / spec.ids.ndim)))
    ids = np.full_like(spec.ids, -1)
    places = np.ix_(*(sorted({0, min(1, n - 1), n - 1, *range(0, n, -(-n // keep))}) for n in spec.ids.shape))
    ids[places] = spec.ids[places]
    return replace(spec, ids=ids)


def _checked(formula: Formula, specs: Sequence[Spec]) -> Formula:
    for spec in specs:
        check_on_samples(formula, spec)
    return formula


def expanded(spec: Spec, memo: Expansion | None = None) -> Spec:
    """The same spec with every element in expanded normal form."""
    memo = memo or Expansion()
    return replace(spec, ids=_normalised(spec.ids, memo))


def _normalised(ids: np.ndarray, normal: Expansion) -> np.ndarray:
    return map_ids(ids, lambda i: normal.normal(TERMS[i]).id)


def _decompose(
    specs: Sequence[Spec],
    seen: Sequence[tuple[Dims, tuple[int, ...]]],
    prune: bool,
    normal: Expansion | None = None,
    closers: Closers | None = None,
) -> Formula:
    first = specs[0]
    shapes = {name: tuple(s.inputs[name] for s in specs) for name in first.inputs}
    work = _Synthesis(tuple(s.dims for s in specs), shapes, prune, normal, closers or Closers())
    runs = [*((s.dims, s.ids.shape) for s in specs), *seen]
    axes = output_axes([d for d, _ in runs], [s for _, s in runs], first.inputs)
    term = work.solve(axes, tuple(s.ids for s in specs))
    return Formula(first.name, axes, term, first.dtype, first.in_place)


class Unlike(NotLifted):
    """Elements of several kinds: said only where no other attempt says more."""


@dataclass
class Problem:
    """Elements over axes, at every shape, and what is known of their terms."""

    axes: tuple[Axis, ...]
    ids: Arrays
    terms: list[Term]

    def __post_init__(self) -> None:
        self.heads = {t.op for t in self.terms}
        self.kinds = {skeleton(t) for t in self.terms}
        single = len(self.heads) == 1 and self.terms[0].op not in COMMUTATIVE
        self.only = self.terms[0].op if single else ""  # the head of all, where the order of arguments counts
        self.nested = self.only == "where" and max(depth(t) for t in self.terms) > 1
        alike = len({(t.attr, t.type, len(t.args)) for t in self.terms}) == 1
        self.uniform = single and self.only not in ORDERED and self.only != "pick" and not self.nested and alike


@dataclass
class _Synthesis:
    dims: tuple[Dims, ...]
    inputs: dict[str, tuple[tuple[int, ...], ...]]
    prune: bool = True
    normal: Expansion | None = None
    closers: Closers = field(default_factory=Closers)
    memo: dict[tuple[tuple[Axis, ...], bytes], Term] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.quantities = Quantities(self.dims, self.prune)

    # ---- axes -------------------------------------------------------------------------------------------------------

    def new_axis(self, size: Term, taken: Sequence[Axis]) -> Axis:
        return new_axis(size, taken, {*self.dims[0], *self.inputs})

    def sizes(self, axes: tuple[Axis, ...]) -> list[tuple[int, ...]]:
        from ..language.evaluate import number

        return [tuple(number(a.size, d) for a in axes) for d in self.dims]

    # ---- the cut ----------------------------------------------------------------------------------------------------

    def solve(self, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """The term over `axes` whose elements are `ids`, at every shape."""
        axes, ids = without_constant_axes(axes, ids)
        key = (axes, b"".join(a.tobytes() for a in ids))
        if key not in self.memo:
            budget.spend("cut")
            budget.spend("element of a cut", sum(a.size for a in ids))
            self.memo[key] = self._solve(axes, ids)
        return self.memo[key]

    def _solve(self, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        distinct = {int(i) for a in ids for i in np.unique(a) if i >= 0}
        if not distinct:
            return T.const(0)
        terms = [TERMS[i] for i in sorted(distinct)]
        if all(t.op == "const" for t in terms):
            return self.numbers(axes, ids, terms)
        p = Problem(axes, ids, terms)
        if not p.uniform:
            return self.first(CUTS, p, mixed=len(p.kinds) == 2)
        found = self.pointwise(terms[0], axes, ids)  # no frame more than it needs: terms may be deep
        self.closers.names.append(POINTWISE.name)
        return found

    def first(self, rows: Sequence[Strategy], goal: Any, mixed: bool) -> Term:
        """The formula of the first row that succeeds; a row returns None if it does not handle the goal. If elements
        are of two kinds (`mixed`) and the formula contains a guard, later rows are tried too, until one succeeds
        without a guard, and the shortest formula is returned: a guard for the whole may be shorter than guards for the
        parts. Raises NotLifted if no row succeeds."""
        trouble: NotLifted | None = None
        best: Term | None = None
        for row in rows:
            mark = len(self.closers.names)
            try:
                t: Term | None = row.attempt(self, goal)
            except NotLifted as e:
                del self.closers.names[mark:]
                trouble = e if trouble is None or isinstance(trouble, Unlike) else trouble
                continue
            if t is None:
                continue
            self.closers.names.append(row.name)
            if not mixed or not any(s.op == "where" for s in t.walk()):
                return best if best is not None and _length(best) <= _length(t) else t
            best = t if best is None or _length(t) < _length(best) else best
        if best is not None:
            return best
        assert trouble is not None
        raise trouble

    def pointwise(self, head: Term, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """f(a, b) everywhere: f of the argument arrays. Symmetric operations have their arguments ordered by kind."""
        arrange: Callable[[Term], Sequence[Term]] = lambda t: t.args  # noqa: E731
        if head.op in SYMMETRIC:
            arrange = lambda t: sorted(t.args, key=order)  # noqa: E731
        parts = [map_terms(ids, partial(lambda k, t: arrange(t)[k], k)) for k in range(len(head.args))]
        args = tuple(self.solve(axes, p) for p in parts)
        return T.node("read", args, head.attr, head.type) if head.op == "read" else T.rebuild(head, args)

    def extrapolated(self, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """The term of the elements of the commonest kind, if it gives the others back too: sums over one element."""
        count: dict[int, int] = {}
        for a in ids:
            for i, n in zip(*np.unique(a[a >= 0], return_counts=True), strict=True):
                k = skeleton(TERMS[i])
                count[k] = count.get(k, 0) + int(n)
        kind = max(count, key=lambda k: (count[k], -k))
        if count[kind] < 0.5 * sum(count.values()):
            raise Unlike("no form is shared by half of the elements")
        mine = tuple(map_ids(a, lambda i: i if skeleton(TERMS[i]) == kind else -1) for a in ids)
        self.seen_everywhere(mine)
        term = self.solve(axes, mine)
        for k, a in enumerate(ids):
            got = self.evaluated(term, axes, k)
            if not same_numbers(got[a >= 0], a[a >= 0]):
                raise Unlike("the most common form of an element does not reproduce the others")
        return term

    @staticmethod
    def seen_everywhere(ids: Arrays) -> None:
        """Raises NotLifted where at some shape no element matters."""
        if any((a < 0).all() for a in ids):
            raise NotLifted("one form of element occurs only at some of the shapes")

    def evaluated(self, term: Term, axes: tuple[Axis, ...], k: int) -> np.ndarray:
        """The term's elements at shape k, as ids."""
        inputs = {
            name: Ids(input_elements(name, shapes[k], term))
            for name, shapes in self.inputs.items()
            if name in T.reads(term)
        }
        got = as_ids(evaluate(term, axes, inputs, self.dims[k], SYMBOLIC))
        return got if self.normal is None else _normalised(got, self.normal)

    def split(self, axes: tuple[Axis, ...], ids: Arrays, terms: list[Term]) -> Term:
        """Elements of different kinds: where(guard, first kind, the others)."""
        kinds = list(dict.fromkeys(skeleton(t) for t in terms))
        if len(kinds) == 1:
            kinds = list(dict.fromkeys(t.id for t in terms))
            same: Callable[[int, int], bool] = lambda i, kind: i == kind  # noqa: E731
        else:
            same = lambda i, kind: skeleton(TERMS[i]) == kind  # noqa: E731
        if not 2 <= len(kinds) <= 6:
            raise NotLifted("elements have nothing in common", why=f"{short(terms[0])} and {short(terms[-1])}")
        trouble: NotLifted | None = None
        for kind in kinds:
            mine = tuple(map_ids(a, partial(lambda k, i: i if same(i, k) else -1, kind)) for a in ids)
            rest = tuple(map_ids(a, partial(lambda k, i: -1 if same(i, k) else i, kind)) for a in ids)
            try:
                guard = self.quantities.guard(axes, [m >= 0 for m in mine], [a >= 0 for a in ids])
                return T.where(guard, self.solve(axes, mine), self.solve(axes, rest))
            except NotLifted as e:
                trouble = trouble or e
        assert trouble is not None
        raise trouble

    def numbers(self, axes: tuple[Axis, ...], ids: Arrays, terms: list[Term]) -> Term:
        """Known numbers as a function of the indices and sizes."""
        care = [a >= 0 for a in ids]
        values = [numbers_of(a) for a in ids]
        if all(t.type == T.BOOL for t in terms):
            return self.quantities.guard(axes, [v == 1 for v in values], care)
        constant = [np.unique(v[c]) for v, c in zip(values, care, strict=True)]
        if all(len(v) <= 1 for v in constant):
            return self.quantities.constant([v[0].item() if len(v) else None for v in constant])
        if (found := self.quantities.index(axes, values, care)) is not None:
            return found
        if len(terms) <= 4 and not self.quantities.affine_only:
            return self.split(axes, ids, terms)
        few = np.concatenate([v[c] for v, c in zip(values, care, strict=True)])[:8].tolist()
        raise NotLifted("numbers fit no expression of the indices", why=f"{few} ... over {axes}")

    # ---- sums, products, maxima -------------------------------------------------------------------------------------

    def nary(self, op: str, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """Arguments by kind, see the head of this file. An element with another head is a sum of one."""
        kinds: dict[int, list[dict[int, list[Term]]]] = {}
        for s, a in enumerate(ids):
            for i in np.unique(a):
                if i < 0:
                    continue
                t = TERMS[i]
                unit = t.op == "const" and t.attr == UNIT[op]
                for kind, members in by_kind(t.args if t.op == op else () if unit else (t,)).items():
                    kinds.setdefault(kind, [{} for _ in ids])[s][int(i)] = members
        parts = [self.part(op, axes, ids, members) for _, members in sorted(kinds.items())]
        return T.make(op, *parts) if parts else T.const(UNIT[op])

    def part(self, op: str, axes: tuple[Axis, ...], ids: Arrays, members: list[dict[int, list[Term]]]) -> Term:
        """The arguments of one kind: `members[s][id]` are those of the element `id` at shape s."""
        if not all(members):
            raise NotLifted(
                "one form of addend occurs only at some of the shapes",
                why=short(next(iter(next(m for m in members if m).values()))[0]),
            )
        counts = [
            np.array([len(m.get(int(i), ())) for i in a.ravel()]).reshape(a.shape)
            for a, m in zip(ids, members, strict=True)
        ]
        care = [a >= 0 for a in ids]
        taps = _as_many(counts, care)
        if op == "mul" and taps:
            return T.mul(*untangled(self.each(taps, axes, ids, members)))
        if all((c[k] <= 1).all() for c, k in zip(counts, care, strict=True)):
            body = self.solve(axes, tuple(choose_single(a, m) for a, m in zip(ids, members, strict=True)))
            guard = self.quantities.guard(axes, [c == 1 for c in counts], care)
            return T.where(guard, body, UNIT[op])
        return self.window(op, taps, axes, ids, members) if taps else self.fold(op, axes, ids, members)

    def window(
        self, op: str, taps: int, axes: tuple[Axis, ...], ids: Arrays, members: list[dict[int, list[Term]]]
    ) -> Term:
        """As many addends everywhere, whatever the sizes: a fold if its indices are affine (the taps of a convolution),
        else addend by addend (the neighbours in a stencil)."""
        return self.first(WINDOWS, (op, taps, axes, ids, members), mixed=False)

    def simply(self, attempt: Callable[[], Term]) -> Term:
        """The attempt with affine indices only."""
        usual = self.quantities
        self.quantities = replace(usual, affine_only=True)
        try:
            return attempt()
        finally:
            self.quantities = usual

    def each(self, count: int, axes: tuple[Axis, ...], ids: Arrays, members: list[dict[int, list[Term]]]) -> list[Term]:
        """As many arguments of one kind everywhere: one by one, in the order of their coordinates."""
        ranked = [{i: sorted(ts, key=order) for i, ts in m.items()} for m in members]
        parts = [
            tuple(choose_single(a, {i: [ts[k]] for i, ts in m.items()}) for a, m in zip(ids, ranked, strict=True))
            for k in range(count)
        ]
        return [self.solve(axes, p) for p in parts]

    def fold(self, op: str, axes: tuple[Axis, ...], ids: Arrays, members: list[dict[int, list[Term]]]) -> Term:
        """A fold over new axes, chosen among the coordinates of the addends; the first that can be solved is taken."""
        trouble: NotLifted | None = None
        for choice in choices(members, self.quantities.size, self.inputs):
            try:
                return self.fold_over(op, axes, ids, choice)
            except NotLifted as e:
                trouble = trouble or e
        raise trouble or NotLifted(
            "no index found for a sum",
            why=f"its addends look like {short(next(iter(next(m for m in members if m).values()))[0])}",
        )

    def fold_over(self, op: str, axes: tuple[Axis, ...], ids: Arrays, choice: Choice) -> Term:
        over: list[Axis] = []
        for size in choice.sizes:
            over.append(self.new_axis(size, [*axes, *over]))
        inner = (*axes, *over)
        shapes = self.sizes(inner)
        bodies, present = [], []
        for s, a in enumerate(ids):
            body = np.full(shapes[s], -1, np.int32)
            flat = body.reshape(a.size, -1)
            for position, i in enumerate(a.ravel()):
                for place, member in choice.places[s].get(int(i), ()):
                    flat[position, place] = member.id
            bodies.append(body)
            present.append(body >= 0)
        care = [
            np.broadcast_to((a >= 0).reshape(a.shape + (1,) * len(over)), b.shape)
            for a, b in zip(ids, bodies, strict=True)
        ]
        guard = self.quantities.guard(inner, present, care)
        term = T.where(guard, self.solve(inner, tuple(bodies)), UNIT[op])
        for axis in reversed(over):
            term = self.bind(FOLD_OF[op], axis, term)
        return term

    def bind(self, op: str, over: Axis, body: Term) -> Term:
        """The fold, its axis renamed to the first name of its kind that is not free in the body."""
        base = Axis(over.name.rstrip("'"), over.size)
        plain = T.fresh_axis(base, {a.name for a in body.free if a != over})
        return T.fold(op, plain, T.substitute(body, {over: T.axis(plain)}))

    def ordered(self, op: str, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """argmax_of(v0, v1, ...) and pick(index, v0, v1, ...): the arguments are numbered by position."""
        skip = 1 if op == "pick" else 0
        self.seen_everywhere(ids)
        longest = [max(len(TERMS[i].args) for i in np.unique(a) if i >= 0) - skip for a in ids]
        size = self.quantities.size(longest)
        if size is None:
            raise NotLifted(f"{op} over {longest} elements: the length fits no expression of {self.quantities.names()}")
        over = self.new_axis(size, axes)
        bodies = []
        for a, n in zip(ids, longest, strict=True):
            body = np.full((*a.shape, n), -1, np.int32)
            for position, i in enumerate(a.ravel()):
                args = TERMS[i].args[skip:] if i >= 0 else ()
                body.reshape(a.size, n)[position, : len(args)] = [t.id for t in args]
            bodies.append(body)
        inner = self.solve((*axes, over), tuple(bodies))
        if op == "pick":
            index = self.solve(axes, map_terms(ids, lambda t: t.args[0]))
            return T.substitute(inner, {over: index})
        return self.bind(ORDERED[op], over, inner)

    def cascade(self, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """where(c_k, v_k, ... where(c_0, v_0, base)): the last k whose condition holds decides. These are stores at
        indices that are data."""
        self.seen_everywhere(ids)
        depths = [{depth(TERMS[i]) for i in np.unique(a) if i >= 0} for a in ids]
        size = self.quantities.size([max(d) for d in depths])
        if size is None or any(len(d) > 1 for d in depths):
            raise NotLifted(f"{depths} consecutive stores fit no expression of {self.quantities.names()}")
        over = self.new_axis(size, axes)
        stores = [layers(a, max(d)) for a, d in zip(ids, depths, strict=True)]
        condition = self.solve((*axes, over), tuple(c for c, _, _ in stores))
        stored = self.solve((*axes, over), tuple(v for _, v, _ in stores))
        base = self.solve(axes, tuple(b for _, _, b in stores))
        last = self.bind("amax", over, T.where(condition, T.axis(over), -1))
        return T.where(T.make("le", 0, last), T.substitute(stored, {over: last}), base)


def untangled(factors: list[Term]) -> list[Term]:
    """x[max(i, j)] * x[min(i, j)] = x[i] * x[j]: factors of one kind were ordered by their coordinates."""
    if len(factors) == 2 and factors[0].op == factors[1].op == "read":
        a, b = (list(f.args) for f in factors)
        differ = [k for k in range(len(a)) if a[k] is not b[k]]
        if len(differ) == 1 and {a[differ[0]].op, b[differ[0]].op} == {"max", "min"}:
            k = differ[0]
            if a[k].args == b[k].args and len(a[k].args) == 2:
                a[k], b[k] = a[k].args
                return [T.rebuild(factors[0], tuple(a)), T.rebuild(factors[1], tuple(b))]
    return factors


def _as_many(counts: Sequence[np.ndarray], care: Sequence[np.ndarray]) -> int:
    """How many arguments of the kind every element has, if as many at every shape (x * y, x * x * x), else 0."""
    seen = {int(n) for c, k in zip(counts, care, strict=True) for n in np.unique(c[k])}
    return seen.pop() if len(seen) == 1 and seen <= set(range(1, 9)) and len(counts) > 1 else 0


def _length(t: Term) -> int:
    return sum(1 for _ in t.walk())


# ---- the cuts, in the order in which they are tried ------------------------------------------------------------------

S = _Synthesis


def _extrapolated(work: S, p: Problem) -> Term | None:
    """The term of the commonest kind of element, if it says the others too."""
    return work.extrapolated(p.axes, p.ids) if len(p.kinds) > 1 else None


def _nary(op: str) -> Callable[[S, Problem], Term | None]:
    """Arguments by kind: several of one kind are a fold over a new axis."""

    @wraps(_nary)
    def attempt(work: S, p: Problem) -> Term | None:
        fits = len(p.heads) == 1 or op != "mul" or p.heads <= {"mul", "read", "const"}
        return work.nary(op, p.axes, p.ids) if op in p.heads and fits else None

    return attempt


def _ordered(work: S, p: Problem) -> Term | None:
    """Arguments by position: the index of an extreme, the element at an index."""
    return work.ordered(p.only, p.axes, p.ids) if p.only in ORDERED or p.only == "pick" else None


def _cascade(work: S, p: Problem) -> Term | None:
    """Of nested choices the last one whose condition holds."""
    return work.cascade(p.axes, p.ids) if p.nested else None


def _pointwise(work: S, p: Problem) -> Term | None:
    """f(a, b) everywhere: f of what the arguments are."""
    return work.pointwise(p.terms[0], p.axes, p.ids) if p.nested else None


def _split(work: S, p: Problem) -> Term | None:
    """Elements of different kinds: where(guard, first kind, the others)."""
    return work.split(p.axes, p.ids, p.terms)


Window = tuple[str, int, tuple[Axis, ...], Arrays, list[dict[int, list[Term]]]]  # what `window` is called with


def _affine_fold(work: S, w: Window) -> Term:
    """A fold with affine indices."""
    op, _, axes, ids, members = w
    return work.simply(lambda: work.fold(op, axes, ids, members))


def _one_by_one(work: S, w: Window) -> Term:
    """Addend by addend."""
    op, taps, axes, ids, members = w
    return T.make(op, *work.each(taps, axes, ids, members))


def _any_fold(work: S, w: Window) -> Term:
    """A fold with any indices."""
    op, _, axes, ids, members = w
    return work.fold(op, axes, ids, members)


def _row(name: str, attempt: Callable[..., Term | Form], source: str, example: str) -> Strategy:
    return Strategy(name, "synthesis", attempt, source, example)


POINTWISE = _row("same-operation", _pointwise, "Feser, Chaudhuri, Dillig 2015", "an elementwise kernel")
CUTS = (
    _row("commonest-kind", _extrapolated, "ours", "corpus/operators: attention_causal"),
    _row("addends", _nary("add"), "anti-unification: Plotkin 1970", "matmul"),
    _row("maxima", _nary("max"), "anti-unification", "amax over a row"),
    _row("minima", _nary("min"), "anti-unification", "amin over a row"),
    _row("conjunctions", _nary("and"), "anti-unification", "all over a row"),
    _row("disjunctions", _nary("or"), "anti-unification", "any over a row"),
    _row("factors", _nary("mul"), "anti-unification", "prod over a row"),
    _row("by-position", _ordered, "ours", "argmax over a row"),
    _row("cascade", _cascade, "ours", "stores at indices that are data"),
    POINTWISE,
    _row("guards", _split, "decision trees: Alur, Radhakrishna, Udupa 2017", "triu, a causal mask"),
)
FORMS = (
    _row("few-elements", Forms.few_computed, "ours", "softmax of a small row"),
    _row("few-expanded", Forms.few_expanded, "ours", "the online softmax, whose sums are rescaled"),
    _row("all-elements", Forms.all_computed, "ours", "a matrix with a diagonal that few elements show"),
    _row("all-expanded", Forms.all_expanded, "ours", "a recurrence over a large output"),
)
WINDOWS = (
    _row("affine-fold", _affine_fold, "ours", "corpus/operators: max_pool"),
    _row("one-by-one", _one_by_one, "ours", "the neighbours in a stencil"),
    _row("any-fold", _any_fold, "ours", "a window whose indices are not affine"),
)
SYNTHESIS = (*FORMS, *CUTS, *WINDOWS)

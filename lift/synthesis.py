"""From pointwise specs to a formula: top-down decomposition, with bottom-up enumeration for what remains.

The same output is given at several shapes; all are decomposed together, so that every guess (which coordinate a sum runs over,
what a number is) must hold at all of them. A problem is an array of terms per shape over common axes; it is cut by its head:

    f(a, b) everywhere                 f(A, B), and the argument arrays are problems of their own
    x[.] everywhere                    x[I, J ...], coordinate arrays are problems
    sum of addends                     addends by kind: one of a kind is an addend, several are a fold over a new axis, which is
                                       a coordinate of the addends; where not all are there, the fold is guarded
    numbers                            affine in the axes, else enumerated; truth values: comparisons of such expressions
    different heads                    where(guard, A, B), the guard enumerated

Elements that do not matter (behind a guard) have id -1. The result is evaluated on terms and must give the specs back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from . import term as T
from .domain import FLOAT64, SYMBOLIC, Ids, as_ids
from .enumeration import Points, find_integer, find_quasi_affine, find_predicate, points
from .errors import NotLifted
from .evaluate import evaluate
from .fit import fit
from .normal import Expansion
from .skeleton import SYMMETRIC, by_kind, coordinates, order, skeleton
from .spec import Formula, Spec
from .term import COMMUTATIVE, FOLDS, TERMS, UNIT, Axis, Term

Dims = dict[str, int | float]
FOLD_OF = {v: k for k, v in FOLDS.items()} | {"and": "amin", "or": "amax"}
ORDERED = {"argmax_of": "argmax", "argmin_of": "argmin"}


def synthesise(*specs: Spec, top_down: bool = True, prune: bool = True) -> Formula:
    """The formula that the specs of one output, at different shapes, are instances of.

    First on the terms as the kernel computes them, then on their expanded normal form (lift.normal), in which rescaled sums and
    recurrences become regular. Raises NotLifted where neither gives a formula; `why` says which part resisted.
    """
    if not top_down:
        from .blind import enumerate_formula

        return enumerate_formula(specs, prune)
    try:
        return _checked(_decompose(specs, prune), specs)
    except NotLifted as trouble:
        try:
            normal = Expansion()
            return _checked(_decompose(tuple(expanded(s, normal) for s in specs), prune, normal), specs)
        except NotLifted:
            raise trouble from None


def _checked(formula: Formula, specs: Sequence[Spec]) -> Formula:
    for spec in specs:
        check_on_samples(formula, spec)
    return formula


def output_axes(dims: Sequence[Dims], shapes: Sequence[tuple[int, ...]]) -> tuple[Axis, ...]:
    """Axes of an output that has these shapes under these dims."""
    return _Synthesis(tuple(dims), {}).output_axes(shapes)


def expanded(spec: Spec, memo: Expansion | None = None) -> Spec:
    """The same spec with every element in expanded normal form."""
    memo = memo or Expansion()
    return replace(spec, ids=_map_ids(spec.ids, lambda i: memo.normal(TERMS[i]).id))


def _decompose(specs: Sequence[Spec], prune: bool, normal: Expansion | None = None) -> Formula:
    first = specs[0]
    shapes = {name: tuple(s.inputs[name] for s in specs) for name in first.inputs}
    work = _Synthesis(tuple(s.dims for s in specs), shapes, prune, normal)
    axes = work.output_axes([s.ids.shape for s in specs])
    term = work.solve(axes, tuple(s.ids for s in specs))
    formula = Formula(first.name, axes, term, first.dtype, first.in_place)
    return formula


def check_on_samples(formula: Formula, spec: Spec, rounds: int = 2, elements: int = 100) -> None:
    """The formula at the spec's shape must have the values of the spec's terms on random inputs. Raises NotLifted.

    At most `elements` elements are compared (chosen at random; the kernel's own values, all of them, are compared later)."""
    rng = np.random.default_rng(0)
    kinds = {t.attr: t.type for t in formula.term.walk() if t.op == "read"}
    places = np.sort(rng.permutation(spec.ids.size)[:elements])
    ids = spec.ids.ravel()[places]
    kinds |= {t.attr: t.type for i in ids for t in TERMS[i].walk() if t.op == "read"}
    for _ in range(rounds):
        inputs = {name: _sample(kinds.get(name, T.REAL), shape, rng) for name, shape in spec.inputs.items()}
        got = np.asarray(evaluate(formula.term, formula.axes, inputs, spec.dims))
        if got.shape != spec.ids.shape:
            raise NotLifted(f"the formula of {spec.name} has shape {list(got.shape)} instead of {list(spec.ids.shape)}")
        got, want = got.ravel()[places], values_at(ids, inputs, spec.dims)
        same = np.isclose(got, want, rtol=1e-5, atol=1e-8, equal_nan=True)
        if not same.all():
            k = int(np.argmin(same))
            raise NotLifted(
                f"the formula of {spec.name} does not give element {[int(x) for x in np.unravel_index(places[k], spec.ids.shape)]} back",
                why=f"{got[k]:.6g} instead of {want[k]:.6g}, the value of {_short(TERMS[ids[k]])}",
            )


def _sample(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if kind == T.INT:
        return rng.integers(0, 1 + max(shape, default=1), shape)
    return rng.integers(0, 2, shape).astype(bool) if kind == T.BOOL else rng.uniform(0.1, 2, shape)


def values_at(ids: np.ndarray, inputs: dict[str, np.ndarray], dims: Dims) -> np.ndarray:
    """Numbers of an array of terms over single elements of the inputs."""
    known: dict[int, float] = {}
    distinct, inverse = np.unique(ids, return_inverse=True)
    for i in distinct:
        for t in TERMS[i].walk():
            if t.id not in known:
                known[t.id] = _value(t, known, inputs, dims)
    return np.array([known[int(i)] for i in distinct], np.float64)[inverse].reshape(ids.shape)


def _value(t: Term, known: dict[int, float], inputs: dict[str, np.ndarray], dims: Dims) -> float:
    if t.op == "const":
        return t.attr
    if t.op in ("size", "scalar"):
        return dims[t.attr]
    if t.op == "read":
        index = tuple(int(known[a.id]) for a in t.args)
        inside = all(0 <= k < n for k, n in zip(index, inputs[t.attr].shape, strict=True))
        return inputs[t.attr][index].item() if inside else np.nan
    return np.nan if t.op == "undef" else FLOAT64.apply(t.op, *(np.asarray(known[a.id]) for a in t.args)).item()


def _same_numbers(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal up to rounding of constants: the same skeleton, coordinates within 3e-7 relative."""
    memo: dict[tuple[int, int], bool] = {}
    pairs = {(int(x), int(y)) for x, y in zip(a.ravel(), b.ravel(), strict=True) if x != y}
    return all(alike(TERMS[x], TERMS[y], memo) for x, y in pairs)


def alike(a: Term, b: Term, memo: dict[tuple[int, int], bool] | None = None) -> bool:
    """Equal terms but for the rounding of float constants (relative 3e-7: one f32 rounding)."""
    memo = {} if memo is None else memo
    key = (a.id, b.id)
    if a is b:
        return True
    if key not in memo:
        memo[key] = _alike(a, b, memo)
    return memo[key]


def _alike(a: Term, b: Term, memo: dict[tuple[int, int], bool]) -> bool:
    if a.op == "const" and b.op == "const":
        return a.type != T.BOOL and b.type != T.BOOL and bool(np.isclose(a.attr, b.attr, rtol=3e-7, atol=0))
    if a.op != b.op or a.attr != b.attr or len(a.args) != len(b.args):
        return False
    if a.op in COMMUTATIVE or a.op in SYMMETRIC:
        left, right = sorted(a.args, key=order), sorted(b.args, key=order)
    else:
        left, right = list(a.args), list(b.args)
    return all(alike(x, y, memo) for x, y in zip(left, right, strict=True))


def _elements(name: str, shape: tuple[int, ...], like: Term) -> np.ndarray:
    kind = next((t.type for t in like.walk() if t.op == "read" and t.attr == name), T.REAL)
    out = [T.read(name, index, kind).id for index in np.ndindex(*shape)]
    return np.array(out, np.int32).reshape(shape)


def _short(t: Term, limit: int = 160) -> str:
    s = repr(t)
    return s if len(s) <= limit else s[: limit - 3] + "..."


Arrays = tuple[np.ndarray, ...]  # one array of term ids per shape, -1 where the element does not matter


@dataclass
class _Synthesis:
    dims: tuple[Dims, ...]
    inputs: dict[str, tuple[tuple[int, ...], ...]]
    prune: bool = True
    normal: Expansion | None = None
    memo: dict[tuple[tuple[Axis, ...], bytes], Term] = field(default_factory=dict)

    # ---- axes -------------------------------------------------------------------------------------------------------

    def size_term(self, sizes: Sequence[int]) -> Term | None:
        return fit([int(s) for s in sizes], list(self.dims))

    def output_axes(self, shapes: Sequence[tuple[int, ...]]) -> tuple[Axis, ...]:
        """Axes named after their size: N gives n, a second one n'; other sizes give i, j, k ..."""
        axes: list[Axis] = []
        for sizes in zip(*shapes, strict=True):
            size = self.size_term(sizes)
            if size is None:
                raise NotLifted(
                    f"an output dimension of size {', '.join(map(str, sizes))} fits no expression of {self._names()}"
                )
            axes.append(self.new_axis(size, axes))
        return tuple(axes)

    def _names(self) -> str:
        return ", ".join(self.dims[0])

    def new_axis(self, size: Term, taken: Sequence[Axis]) -> Axis:
        base = size.attr.lower() if size.op == "size" else "ijkrstuvw"[min(8, sum(a.size.op != "size" for a in taken))]
        return T.fresh_axis(Axis(base, size), {a.name for a in taken})

    def sizes(self, axes: tuple[Axis, ...]) -> list[tuple[int, ...]]:
        from .evaluate import _number

        return [tuple(_number(a.size, d) for a in axes) for d in self.dims]

    # ---- the cut ----------------------------------------------------------------------------------------------------

    def solve(self, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """The term over `axes` whose elements are `ids`, at every shape."""
        axes, ids = _without_constant_axes(axes, ids)
        key = (axes, b"".join(a.tobytes() for a in ids))
        if key not in self.memo:
            self.memo[key] = self._solve(axes, ids)
        return self.memo[key]

    def _solve(self, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        distinct = {int(i) for a in ids for i in np.unique(a) if i >= 0}
        if not distinct:
            return T.const(0)
        terms = [TERMS[i] for i in sorted(distinct)]
        if all(t.op == "const" for t in terms):
            return self.numbers(axes, ids, terms)
        heads = {t.op for t in terms}
        attempts: list[Callable[[], Term]] = []
        kinds = {skeleton(t) for t in terms}
        if len(kinds) > 1:
            attempts.append(lambda: self.extrapolated(axes, ids))
        for op in ("add", "max", "min", "and", "or", "mul"):
            if op in heads and (len(heads) == 1 or op != "mul" or heads <= {"mul", "read", "const"}):
                attempts.append(lambda op=op: self.nary(op, axes, ids))
        if len(heads) == 1 and (op := next(iter(heads))) not in COMMUTATIVE:
            same = len({(t.attr, t.type, len(t.args)) for t in terms}) == 1
            if op in ORDERED or op == "pick":
                attempts.append(lambda: self.ordered(op, axes, ids))
            elif op == "where" and max(_depth(t) for t in terms) > 1:
                attempts.append(lambda: self.cascade(axes, ids))
                attempts.append(lambda: self.pointwise(terms[0], axes, ids))
            elif same:
                return self.pointwise(terms[0], axes, ids)
        attempts.append(lambda: self.split(axes, ids, terms))
        return self.first(attempts, mixed=len(kinds) == 2)

    def first(self, attempts: Sequence[Callable[[], Term]], mixed: bool) -> Term:
        """The first attempt that succeeds. Where elements are of two kinds and guards were needed for their parts, the last
        attempt (one guard for the whole) is taken instead if it is shorter."""
        trouble: NotLifted | None = None
        best: Term | None = None
        for attempt in attempts:
            try:
                t = attempt()
            except NotLifted as e:
                trouble = trouble or e
                continue
            if not mixed or not any(s.op == "where" for s in t.walk()):
                return best if best is not None and _length(best) <= _length(t) else t
            best = t if best is None or _length(t) < _length(best) else best
        if best is not None:
            return best
        assert trouble is not None
        raise trouble

    def pointwise(self, head: Term, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """f(a, b) everywhere: f of the argument arrays. Symmetric operations have their arguments ordered by kind."""
        arrange = (lambda t: sorted(t.args, key=order)) if head.op in SYMMETRIC else (lambda t: t.args)
        parts = [_map(ids, lambda t, k=k: arrange(t)[k]) for k in range(len(head.args))]
        args = tuple(self.solve(axes, p) for p in parts)
        return T.node("read", args, head.attr, head.type) if head.op == "read" else T.rebuild(head, args)

    def extrapolated(self, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """The term of the elements of the commonest kind, if it gives the others back too: a sum over one element, a last tile."""
        count: dict[int, int] = {}
        for a in ids:
            for i, n in zip(*np.unique(a[a >= 0], return_counts=True), strict=True):
                count[k] = count.get(k := skeleton(TERMS[i]), 0) + int(n)
        kind = max(count, key=lambda k: (count[k], -k))
        if count[kind] < 0.5 * sum(count.values()):
            raise NotLifted("no kind of element is common")
        mine = tuple(_map_ids(a, lambda i: i if skeleton(TERMS[i]) == kind else -1) for a in ids)
        self.seen_everywhere(mine)
        term = self.solve(axes, mine)
        for k, a in enumerate(ids):
            got = self.evaluated(term, axes, k)
            if not _same_numbers(got[a >= 0], a[a >= 0]):
                raise NotLifted("the commonest kind of element does not say what the others are")
        return term

    @staticmethod
    def seen_everywhere(ids: Arrays) -> None:
        """Raises NotLifted where at some shape no element matters."""
        if any((a < 0).all() for a in ids):
            raise NotLifted("a kind of element occurs at some of the shapes only")

    def evaluated(self, term: Term, axes: tuple[Axis, ...], k: int) -> np.ndarray:
        """The term's elements at shape k, as ids."""
        inputs = {
            name: Ids(_elements(name, shapes[k], term)) for name, shapes in self.inputs.items() if name in T.reads(term)
        }
        got = as_ids(evaluate(term, axes, inputs, self.dims[k], SYMBOLIC))
        return got if self.normal is None else _map_ids(got, lambda i: self.normal.normal(TERMS[i]).id)

    # ---- sums, products, maxima ---------------------------------------------------------------------------------------

    def nary(self, op: str, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """Arguments by kind; see the head of this file. An element with another head is the operation of one argument."""
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
                "a kind of addend occurs at some of the shapes only",
                why=_short(next(iter(next(m for m in members if m).values()))[0]),
            )
        counts = [
            np.array([len(m.get(int(i), ())) for i in a.ravel()]).reshape(a.shape)
            for a, m in zip(ids, members, strict=True)
        ]
        care = [a >= 0 for a in ids]
        if op == "mul" and (power := _power(counts, care)):
            return self.product(power, axes, ids, members)
        if all((c[k] <= 1).all() for c, k in zip(counts, care, strict=True)):
            body = self.solve(axes, tuple(_choose(a, m) for a, m in zip(ids, members, strict=True)))
            guard = self.guard(axes, [c == 1 for c in counts], care)
            return T.where(guard, body, UNIT[op])
        return self.fold(op, axes, ids, members)

    def product(self, count: int, axes: tuple[Axis, ...], ids: Arrays, members: list[dict[int, list[Term]]]) -> Term:
        """x * y of one kind everywhere: factor by factor, in the order of their coordinates."""
        ranked = [{i: sorted(ts, key=order) for i, ts in m.items()} for m in members]
        parts = [
            tuple(_choose(a, {i: [ts[k]] for i, ts in m.items()}) for a, m in zip(ids, ranked, strict=True))
            for k in range(count)
        ]
        return T.mul(*(self.solve(axes, p) for p in parts))

    def fold(self, op: str, axes: tuple[Axis, ...], ids: Arrays, members: list[dict[int, list[Term]]]) -> Term:
        """A fold over new axes, chosen among the coordinates of the addends; the first choice that can be solved is taken."""
        trouble: NotLifted | None = None
        for choice in self.choices(members):
            try:
                return self.fold_over(op, axes, ids, choice)
            except NotLifted as e:
                trouble = trouble or e
        raise trouble or NotLifted(
            "no index found for a sum",
            why=f"its addends look like {_short(next(iter(next(m for m in members if m).values()))[0])}",
        )

    def fold_over(self, op: str, axes: tuple[Axis, ...], ids: Arrays, choice: _Choice) -> Term:
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
        guard = self.guard(inner, present, care)
        term = T.where(guard, self.solve(inner, tuple(bodies)), UNIT[op])
        for axis in reversed(over):
            term = self.bind(FOLD_OF[op], axis, term)
        return term

    def bind(self, op: str, over: Axis, body: Term) -> Term:
        """The fold, its axis renamed to the first name of its kind that is not free in the body."""
        base = Axis(over.name.rstrip("'"), over.size)
        plain = T.fresh_axis(base, {a.name for a in body.free if a != over})
        return T.fold(op, plain, T.substitute(body, {over: T.axis(plain)}))

    def choices(self, members: list[dict[int, list[Term]]]) -> Iterator[_Choice]:
        """Ways to number the addends: by one coordinate, by rank, by two or three coordinates. Unguarded ones first."""
        rows = [{i: [(m, coordinates(m)) for m in ts] for i, ts in shape.items()} for shape in members]
        lists = [ms for shape in rows for ms in shape.values()]
        varying = [p for p in range(len(lists[0][0][1])) if any(len({c[p] for _, c in ms}) > 1 for ms in lists)]
        varying = [
            p
            for p in varying
            if all(isinstance(c[p], int) and not isinstance(c[p], bool) and c[p] >= 0 for ms in lists for _, c in ms)
        ]
        single = [p for p in varying if all(len({c[p] for _, c in ms}) == len(ms) for ms in lists)]
        guarded: list[_Choice] = []
        for p in single:
            choice, full = self.by_coordinates((p,), rows)
            if choice and full:
                yield choice
            elif choice:
                guarded.append(choice)
        for q in _pairs(varying):
            if not set(q) & set(single) and all(
                len({tuple(c[p] for p in q) for _, c in ms}) == len(ms) for ms in lists
            ):
                choice, full = self.by_coordinates(q, rows)
                if choice and full:
                    yield choice
                elif choice:
                    guarded.append(choice)
        for q in _pairs(varying):
            if (choice := self.by_ranks(q, rows)) is not None:
                yield choice
        if (ranked := self.by_rank(rows)) is not None:
            yield ranked
        yield from sorted(guarded, key=lambda c: c.waste)

    def by_coordinates(
        self, p: tuple[int, ...], rows: list[dict[int, list[tuple[Term, tuple]]]]
    ) -> tuple[_Choice | None, bool]:
        """Number addends by the coordinates p; full if every element has every combination exactly once."""
        sizes = [tuple(1 + max(c[k] for ms in shape.values() for _, c in ms) for k in p) for shape in rows]
        terms = [self.size_term([s[k] for s in sizes]) for k in range(len(p))]
        if any(t is None for t in terms):
            return None, False
        places = [
            {i: [(int(np.ravel_multi_index([c[k] for k in p], n)), m) for m, c in ms] for i, ms in shape.items()}
            for shape, n in zip(rows, sizes, strict=True)
        ]
        cells = [int(np.prod(n)) for n in sizes]
        full = all(len(ms) == n for shape, n in zip(rows, cells, strict=True) for ms in shape.values())
        waste = sum(n - len(ms) for shape, n in zip(rows, cells, strict=True) for ms in shape.values())
        return _Choice(tuple(t for t in terms if t is not None), places, waste), full

    def by_ranks(self, p: tuple[int, ...], rows: list[dict[int, list[tuple[Term, tuple]]]]) -> _Choice | None:
        """Number addends by the ranks of the coordinates p among the element's own: the channels of a group, the taps of a window."""
        sizes: list[tuple[int, ...]] = []
        places: list[dict[int, list[tuple[int, Term]]]] = []
        for shape in rows:
            values = {i: [sorted({c[k] for _, c in ms}) for k in p] for i, ms in shape.items()}
            lengths = {tuple(len(v) for v in vs) for vs in values.values()}
            if len(lengths) != 1 or any(len(ms) != np.prod(next(iter(lengths))) for ms in shape.values()):
                return None
            n = next(iter(lengths))
            place = lambda i, c: int(
                np.ravel_multi_index([v.index(c[k]) for v, k in zip(values[i], p, strict=True)], n)
            )  # noqa: B023, E731
            places.append({i: [(place(i, c), m) for m, c in ms] for i, ms in shape.items()})
            sizes.append(n)
            if any(len({q for q, _ in ps}) != len(ps) for ps in places[-1].values()):
                return None
        terms = [self.size_term([n[k] for n in sizes]) for k in range(len(p))]
        return None if any(t is None for t in terms) else _Choice(tuple(t for t in terms if t is not None), places, 0)

    def by_rank(self, rows: list[dict[int, list[tuple[Term, tuple]]]]) -> _Choice | None:
        """Number addends 0, 1, ... in the order of their coordinates: every element of a shape has as many."""
        counts = [{len(ms) for ms in shape.values()} for shape in rows]
        if any(len(c) != 1 for c in counts):
            return None
        size = self.size_term([next(iter(c)) for c in counts])
        if size is None:
            return None
        places = [
            {i: list(enumerate(sorted((m for m, _ in ms), key=order))) for i, ms in shape.items()} for shape in rows
        ]
        return _Choice((size,), places, 0)

    def ordered(self, op: str, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """argmax_of(v0, v1, ...) and pick(index, v0, v1, ...): the arguments are numbered by position."""
        skip = 1 if op == "pick" else 0
        self.seen_everywhere(ids)
        longest = [max(len(TERMS[i].args) for i in np.unique(a) if i >= 0) - skip for a in ids]
        size = self.size_term(longest)
        if size is None:
            raise NotLifted(f"{op} over {longest} elements: the length fits no expression of {self._names()}")
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
            index = self.solve(axes, _map(ids, lambda t: t.args[0]))
            return T.substitute(inner, {over: index})
        return self.bind(ORDERED[op], over, inner)

    def cascade(self, axes: tuple[Axis, ...], ids: Arrays) -> Term:
        """where(c_k, v_k, ... where(c_0, v_0, base)): the last k whose condition holds decides. Stores at indices that are data."""
        self.seen_everywhere(ids)
        depth = [max(_depth(TERMS[i]) for i in np.unique(a) if i >= 0) for a in ids]
        size = self.size_term(depth)
        if size is None or any(
            _depth(TERMS[i]) != n for a, n in zip(ids, depth, strict=True) for i in np.unique(a) if i >= 0
        ):
            raise NotLifted(f"{depth} stores in turn fit no expression of {self._names()}")
        over = self.new_axis(size, axes)
        layers = [_map_rows(a, lambda t: _layers(t), n) for a, n in zip(ids, depth, strict=True)]
        condition = self.solve((*axes, over), tuple(c for c, _, _ in layers))
        stored = self.solve((*axes, over), tuple(v for _, v, _ in layers))
        base = self.solve(axes, tuple(b for _, _, b in layers))
        last = self.bind("amax", over, T.where(condition, T.axis(over), -1))
        return T.where(T.make("le", 0, last), T.substitute(stored, {over: last}), base)

    # ---- guards, numbers ----------------------------------------------------------------------------------------------

    def guard(self, axes: tuple[Axis, ...], truth: Sequence[np.ndarray], care: Sequence[np.ndarray]) -> Term:
        """The condition on indices that holds exactly where `truth` does, wherever `care` does."""
        wanted = np.concatenate([t[c] for t, c in zip(truth, care, strict=True)])
        if wanted.all():
            return T.const(True)
        found = find_predicate(self.points(axes, care), wanted, self.prune)
        if found is None:
            raise NotLifted(
                "no condition on the indices found",
                why=f"true at {int(wanted.sum())} of {wanted.size} points over {axes}",
            )
        return found

    def points(self, axes: tuple[Axis, ...], care: Sequence[np.ndarray]) -> Points:
        return points(axes, self.dims, care)

    def split(self, axes: tuple[Axis, ...], ids: Arrays, terms: list[Term]) -> Term:
        """Elements of different kinds: where(guard, first kind, the others)."""
        kinds = list(dict.fromkeys(skeleton(t) for t in terms))
        if len(kinds) == 1:
            kinds = list(dict.fromkeys(t.id for t in terms))
            key: Callable[[int], int] = lambda i: i  # noqa: E731
        else:
            key = lambda i: skeleton(TERMS[i])  # noqa: E731
        if not 2 <= len(kinds) <= 6:
            raise NotLifted("elements have nothing in common", why=f"{_short(terms[0])} and {_short(terms[-1])}")
        trouble: NotLifted | None = None
        for kind in kinds:
            mine = tuple(_map_ids(a, lambda i: i if key(i) == kind else -1) for a in ids)
            rest = tuple(_map_ids(a, lambda i: i if key(i) != kind else -1) for a in ids)
            try:
                guard = self.guard(axes, [m >= 0 for m in mine], [a >= 0 for a in ids])
                return T.where(guard, self.solve(axes, mine), self.solve(axes, rest))
            except NotLifted as e:
                trouble = trouble or e
        assert trouble is not None
        raise trouble

    def numbers(self, axes: tuple[Axis, ...], ids: Arrays, terms: list[Term]) -> Term:
        """Known numbers as a function of the indices and sizes."""
        care = [a >= 0 for a in ids]
        if all(t.type == T.BOOL for t in terms):
            return self.guard(axes, [_values(a) == 1 for a in ids], care)
        values = [_values(a) for a in ids]
        constant = [np.unique(v[c]) for v, c in zip(values, care, strict=True)]
        if all(len(v) <= 1 for v in constant):
            return self.constant([v[0] if len(v) else None for v in constant])
        if (t := self.affine(axes, values, care)) is not None:
            return t
        wanted = np.concatenate([v[c] for v, c in zip(values, care, strict=True)])
        if np.array_equal(wanted, np.round(wanted)) and np.isfinite(wanted).all():
            where, whole = self.points(axes, care), wanted.astype(np.int64)
            found = find_quasi_affine(where, whole) or find_integer(where, whole, prune=self.prune)
            if found is not None:
                return found
        if (wanted > 0).all() and (
            t := self.affine(axes, [np.log(np.where(v > 0, v, 1)) for v in values], care)
        ) is not None:
            return T.make("exp", t)
        if len(terms) <= 4:
            return self.split(axes, ids, terms)
        raise NotLifted("numbers fit no expression of the indices", why=f"{wanted[:8].tolist()} ... over {axes}")

    def constant(self, values: Sequence[float | None]) -> Term:
        """One number per shape (None: not seen at that shape)."""
        seen = [(v, d) for v, d in zip(values, self.dims, strict=True) if v is not None]
        numbers = [v.item() if hasattr(v, "item") else v for v, _ in seen]
        if len(set(numbers)) == 1 and not np.isfinite(numbers[0]):
            return T.const(numbers[0])
        rounded = [int(v) if float(v).is_integer() else v for v in numbers]
        if all(v < 0 for v in rounded) and len(set(rounded)) > 1:
            return T.mul(-1, self.constant([None if v is None else -v for v in values]))
        found = fit(rounded, [d for _, d in seen]) or _near_scalar(numbers, [d for _, d in seen])
        if found is None:
            raise NotLifted(f"{numbers} fits no expression of {self._names()}")
        return found

    def affine(self, axes: tuple[Axis, ...], values: Sequence[np.ndarray], care: Sequence[np.ndarray]) -> Term | None:
        """c + sum of c_a * index_a, the coefficients being expressions of the sizes."""
        solutions = [_affine(v, c) for v, c in zip(values, care, strict=True)]
        if any(s is None for s in solutions):
            return None
        whole = all(np.array_equal(v[c], np.round(v[c])) for v, c in zip(values, care, strict=True))
        if whole and any(x is not None and not x.is_integer() for s in solutions if s is not None for x in s):
            return None  # i / 2 on even i is i // 2
        total = T.const(0)
        try:
            for k, column in enumerate(zip(*(s for s in solutions if s is not None), strict=True)):
                c = self.constant(column)
                total = total + (c if k == 0 else c * T.axis(axes[k - 1]))
        except NotLifted:
            return None
        return total


@dataclass(frozen=True, slots=True)
class _Choice:
    """New axes of the given sizes; `places[shape][element id]` numbers that element's addends (row-major over the axes)."""

    sizes: tuple[Term, ...]
    places: list[dict[int, list[tuple[int, Term]]]]
    waste: int


def _near_scalar(values: Sequence[float], dims: Sequence[Dims]) -> Term | None:
    """c * s, 1 + c * s or c * s - 1 for a scalar s and a plain number c: 1 - 0.01 * lr."""
    for name in (n for n, v in dims[0].items() if isinstance(v, float)):
        for base in (0, 1, -1):
            c = [(v - base) / d[name] if d[name] else np.nan for v, d in zip(values, dims, strict=True)]
            if len(c) > 1 and np.allclose(c, c[0], rtol=1e-5, atol=0) and (nice := float(f"{c[0]:.6g}")):
                return T.add(base, T.mul(nice, T.scalar(name)))
    return None


def _affine(v: np.ndarray, care: np.ndarray) -> list[float | None] | None:
    """[c0, c1, ...] with v = c0 + c1*i1 + ... wherever care holds; None for the coefficient of an axis that does not vary."""
    index = np.array(np.nonzero(care))
    wanted = v[care].astype(np.float64)
    if not np.isfinite(wanted).all() or wanted.size == 0:
        return None
    varies = [bool((row != row[0]).any()) for row in index]
    matrix = np.column_stack([np.ones(wanted.size), *(row for row, d in zip(index, varies, strict=True) if d)])
    solution = np.linalg.lstsq(matrix, wanted, rcond=None)[0]
    solution = np.where(np.abs(solution - np.round(solution)) < 1e-9, np.round(solution), solution)
    if not np.allclose(matrix @ solution, wanted, rtol=1e-9, atol=1e-12):
        return None
    it = iter(solution[1:])
    return [float(solution[0]), *(float(next(it)) if d else None for d in varies)]


def _without_constant_axes(axes: tuple[Axis, ...], ids: Arrays) -> tuple[tuple[Axis, ...], Arrays]:
    """Without the axes along which no element changes, at any shape (unknown elements agree with all)."""
    keep = list(range(len(axes)))
    for d in reversed(range(len(axes))):
        position = keep.index(d)
        squeezed = [_squeeze(a, position) for a in ids]
        if all(s is not None for s in squeezed):
            ids = tuple(s for s in squeezed if s is not None)
            keep.remove(d)
    return tuple(axes[d] for d in keep), ids


def _squeeze(a: np.ndarray, d: int) -> np.ndarray | None:
    if a.shape[d] == 0:
        return None
    top = a.max(axis=d)
    return top if ((a == np.expand_dims(top, d)) | (a < 0)).all() else None


def _map(ids: Arrays, f: Callable[[Term], Term]) -> Arrays:
    return tuple(_map_ids(a, lambda i: f(TERMS[i]).id) for a in ids)


def _map_ids(a: np.ndarray, f: Callable[[int], int]) -> np.ndarray:
    distinct, inverse = np.unique(a, return_inverse=True)
    return np.array([f(int(i)) if i >= 0 else -1 for i in distinct], np.int32)[inverse].reshape(a.shape)


def _depth(t: Term) -> int:
    """How many conditions of one kind follow each other in the else branches of t."""
    n, kind = 0, None
    while t.op == "where" and (kind is None or skeleton(t.args[0]) == kind):
        n, kind, t = n + 1, skeleton(t.args[0]), t.args[2]
    return n


def _layers(t: Term) -> tuple[list[Term], list[Term], Term]:
    """Conditions and values, innermost (earliest) first, and what is under them."""
    conditions: list[Term] = []
    values: list[Term] = []
    for _ in range(_depth(t)):
        conditions.append(t.args[0])
        values.append(t.args[1])
        t = t.args[2]
    return conditions[::-1], values[::-1], t


def _map_rows(
    a: np.ndarray, f: Callable[[Term], tuple[list[Term], list[Term], Term]], n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    distinct, inverse = np.unique(a, return_inverse=True)
    rows = [f(TERMS[i]) if i >= 0 else None for i in distinct]
    conditions = np.array([[t.id for t in r[0]] if r else [-1] * n for r in rows], np.int32)
    values = np.array([[t.id for t in r[1]] if r else [-1] * n for r in rows], np.int32)
    base = np.array([r[2].id if r else -1 for r in rows], np.int32)
    k = inverse.ravel()
    return conditions[k].reshape(*a.shape, n), values[k].reshape(*a.shape, n), base[k].reshape(a.shape)


def _length(t: Term) -> int:
    return sum(1 for _ in t.walk())


def _choose(a: np.ndarray, members: dict[int, list[Term]]) -> np.ndarray:
    """The single member of each element, -1 where there is none."""
    return _map_ids(a, lambda i: members[i][0].id if members.get(i) else -1)


def _values(a: np.ndarray) -> np.ndarray:
    distinct, inverse = np.unique(a, return_inverse=True)
    return np.array([TERMS[i].attr if i >= 0 else 0 for i in distinct], np.float64)[inverse].reshape(a.shape)


def _power(counts: Sequence[np.ndarray], care: Sequence[np.ndarray]) -> int:
    """How many factors of the kind every element has, if as many at every shape (x * y, x * x * x), else 0."""
    seen = {int(n) for c, k in zip(counts, care, strict=True) for n in np.unique(c[k])}
    return seen.pop() if len(seen) == 1 and seen <= set(range(1, 9)) and len(counts) > 1 else 0


def _pairs(varying: list[int]) -> Iterator[tuple[int, ...]]:
    few = varying[:8]
    for i, p in enumerate(few):
        for q in few[i + 1 :]:
            yield (p, q)
    for i, p in enumerate(few):
        for j, q in enumerate(few[i + 1 :], i + 1):
            for r in few[j + 1 :]:
                yield (p, q, r)

"""Closed forms of loop variables, guessed from one symbolic iteration and proved by induction.

    {F(1) = next(0, init)}      {1 <= n < trips, X = F(n)}  next(n, X) = F(n + 1)
    ------------------------------------------------------------------------------ loop
    {0 < n <= trips}  the variable at the start of iteration n is F(n);  at n = 0 it is init

The guess, from next(n, X) with X unknown and the other variables in closed form:

    free of X           the value of the last iteration
    X + b(n)            init + sum[t < n] b(t)
    max(X, f(n))        max(init, amax[t < n] f(t))
    a(n) X + b(n)       (init E(0) + sum[t < n] b(t) E(t+1)) / E(n)  for an integrating factor a(n) = E(n) / E(n+1):
                        exp(u) for a(n) = exp(u(n) - u(n+1)), the online softmax; a denominator, the running mean
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial as partial_

from trilift.lift.errors import Place
from trilift.lift.runtime.strategy import Closers, Strategy, first
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Axis, Term

from ..integers.quotient import canonical
from ..model.program import PIDS, POINTER, Carry, Loop
from ..model.verdict import Condition, Invariant
from ..normal_form import poly as P
from ..normal_form.algebra import ALL, Algebra, Context, SideConditions, Split, Undecided, Undefined, is_infinite
from ..normal_form.equality import equal, multiplied, unified
from ..normal_form.literals import integer_literal, opposite
from ..normal_form.piecewise import condition
from ..normal_form.poly import ONE, POLYS, ZERO, Poly, atom, structural
from ..normal_form.rules.fold import UNIT
from ..normal_form.rules.maximum import elements, maximum_in
from ..normal_form.variables import linear
from .agreement import agree, equal_sizes
from .program_symbols import Names
from .recurrences import Step, decayed, deviations, index_of_extreme

Cases = list[tuple[tuple[Term, ...], Poly]]
Leaves = list[tuple[tuple[Term, ...], Term]]  # cases that do not depend on the iteration, each with its form
Rows = Sequence[Strategy]
UNROLLED = 8  # iterations of a loop of known length that are executed where no closed form is found


@dataclass(frozen=True, slots=True)
class Closed:
    """The variable at the start of iteration n >= 1, over axis(counter), `lanes` and the counters around."""

    carry: Carry
    lanes: tuple[Axis, ...]
    init: Term
    form: Term

    def at(self, args: Sequence[Term]) -> Term:
        """The value for the arguments of a carry node."""
        loop = self.carry.loop
        outer = [o.counter for o in loop.outer]
        n = args[0]
        images = dict(zip([*outer, *self.lanes], args[1:], strict=True))
        first = T.substitute(self.init, images)
        if n is T.const(0):
            return first
        if same_index(T.substitute(self.form, {loop.counter: T.const(0), **images}), first):
            return T.substitute(self.form, {loop.counter: n, **images})
        later = T.substitute(self.form, {loop.counter: n, **images})
        return chosen(T.make("le", 1, n), later, first)


def same_index(x: Term, y: Term) -> bool:
    """Whether two integers, or two places of a tensor, are the same polynomial."""
    if x.op == y.op == "pointer":
        return x.attr == y.attr and same_index(x.args[0], y.args[0])
    if any(s.op == "undef" for t in (x, y) for s in t.walk()):
        return False
    return x is y or (x.type == y.type == T.INT and canonical(x) is canonical(y))


def _initial(carry: Carry, args: Sequence[Term]) -> Term:
    """The variable before the first iteration, for the arguments of a carry node."""
    outer = [o.counter for o in carry.loop.outer]
    images = dict(zip(outer, args[1:], strict=False))
    return T.substitute(carry.init(args[1 + len(outer) :]), images)


def chosen(c: Term, x: Term, y: Term) -> Term:
    """where(c, x, y), pointers by their offsets."""
    if x.op == "pointer" and y.op == "pointer" and x.attr == y.attr:
        return T.node("pointer", (T.where(c, x.args[0], y.args[0]),), x.attr, POINTER)
    return T.where(c, x, y)


@dataclass
class Loops:
    """The loops of one program. `facts` hold throughout; `conditions` and `invariants` are what was proved."""

    algebra: Algebra
    facts: frozenset[Term]
    reads: Callable[[Term], Term] = lambda t: t  # a load's result as contents of memory
    closing: bool = True  # False: no invariant is looked for, loops stay open
    found: dict[Carry, Closed] = field(default_factory=dict)
    failed: dict[Carry, Undecided] = field(default_factory=dict)
    active: list[Carry] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    invariants: list[Invariant] = field(default_factory=list)
    memo: dict[int, Term] = field(default_factory=dict)
    whiles: Mapping[object, Loop] = field(default_factory=dict)  # while loops by the attribute of their trips
    lengths: dict[Loop, Term] = field(default_factory=dict)  # and what their trips are
    names: Names | None = None  # for what depends on the program id alone

    # ---- terms without carries

    def resolved(self, t: Term, own: dict[Term, Term] | None = None) -> Term:
        """The term with closed forms in place of loop variables and contents in place of loads."""
        memo = self.memo if own is None else {}
        return self._resolved(self.named(t), own or {}, memo)

    def named(self, t: Term) -> Term:
        """The term with names for what depends on the program id alone."""
        return t if self.names is None else self.names.replaced(t)

    @property
    def known(self) -> frozenset[Term]:
        """The facts, those about names included."""
        return self.facts if self.names is None else self.facts | self.names.facts

    def _resolved(self, t: Term, own: dict[Term, Term], memo: dict[int, Term]) -> Term:
        done = memo.get(t.id)
        if done is not None:
            return done
        if t in own:
            out = own[t]
        elif t.op == "carry":
            args = tuple(self._resolved(s, own, memo) for s in t.args)
            at = self.named(_initial(t.attr, args)) if args[0] is T.const(0) else self.closed(t.attr).at(args)
            out = self._resolved(at, {}, self.memo)
        elif t.op == "trips":
            out = self._length(t)
            if out is t:
                return t  # not known yet
        else:
            args = tuple(self._resolved(s, own, memo) for s in t.args)
            out = (
                t if args == t.args else T.rebuild(t, args) if t.op != "pointer" else T.node(t.op, args, t.attr, t.type)
            )
            if out.op == "read":
                out = self.reads(out)
        memo[t.id] = out
        return out

    def closed(self, carry: Carry) -> Closed:
        """The closed form of a loop variable. Raises Undecided where none is found and proved."""
        if carry in self.found:
            return self.found[carry]
        if carry in self.failed:
            raise self.failed[carry]
        if not self.closing:
            raise Undecided("the search for invariants is off", carry.loop.op.place)
        if carry in self.active:
            raise Undecided(f"circular dependency between loop variables through {carry.name}", carry.loop.op.place)
        self.active.append(carry)
        try:
            found = Derivation(self, carry).closed()
        except (Undecided, Split) as stop:
            why = (
                stop.what + (f": {stop.why}" if stop.why else "")
                if isinstance(stop, Undecided)
                else f"undecided: {stop}"
            )
            failure = Undecided(f"no invariant found for {carry.name}", carry.loop.op.place, why)
            self.failed[carry] = failure
            raise failure from None
        finally:
            self.active.pop()
        return found

    def _length(self, t: Term) -> Term:
        """The number of iterations of a while loop; the symbol itself where that is not known."""
        loop = self.whiles.get(t.attr)
        if loop is None or any(c.loop is loop for c in self.active):
            return t
        if loop not in self.lengths:
            self.lengths[loop] = loop.trips
            try:
                self.lengths[loop] = self._first_failure(loop)
            except (Undecided, Split):
                return t
            finally:
                self.memo.clear()
        outer = [o.counter for o in loop.outer]
        return T.substitute(self.lengths[loop], dict(zip(outer, t.args[len(PIDS) :], strict=True)))

    def _first_failure(self, loop: Loop) -> Term:
        """max(0, (r + k) // k) for a condition 0 <= r - k n of iteration n: it holds before, and fails there."""
        assert loop.condition is not None
        a, n = self.algebra, T.axis(loop.counter)
        base = a.context([*self.known, *self.range_facts(loop.outer), self.resolved(loop.guard)])
        found = self.resolved(loop.condition)
        at_zero = condition(a, T.substitute(found, {loop.counter: T.const(0)}), base)
        later = condition(a, found, a.given(base, T.make("le", 1, n)))
        kr = linear(structural(later.args[1]), loop.counter) if later.op == "le" and later.args[0].is_const else None
        k = kr[0].constant if kr else None
        if kr is None or not isinstance(k, int) or k >= 0 or integer_literal("le", kr[1]) is not at_zero:
            raise Undecided("the end of a while loop", loop.op.place)
        last = T.make("floordiv", T.add(kr[1].term, -k), T.const(-k))
        trips = last if a.implied(base, T.make("le", 0, last)) else T.make("max", 0, last)
        before = a.given(base, T.make("le", 0, n), T.make("lt", n, trips))
        for what, ctx, goal in (
            ("the loop goes on", before, later),
            ("the loop ends", base, T.make("not", T.substitute(later, {loop.counter: trips}))),
        ):
            if not a.implied(ctx, goal):
                raise Undecided("the end of a while loop", loop.op.place)
            self.conditions.append(Condition(what, ctx.facts, goal, True, "z3", 0.0, loop.op.place))
        return trips

    def range_facts(self, loops: Iterable[Loop]) -> list[Term]:
        """0 <= n < trips of the loops."""
        out = []
        for loop in loops:
            n = T.axis(loop.counter)
            out += [T.make("le", 0, n), T.make("lt", n, self.resolved(loop.trips)), self.resolved(loop.guard)]
            if loop.condition is not None:
                out.append(self.resolved(loop.condition))
        return out


@dataclass
class Derivation:
    """The closed form of one variable."""

    loops: Loops
    carry: Carry

    def __post_init__(self) -> None:
        loop, shape = self.carry.loop, self.carry.type.shape
        self.a = self.loops.algebra
        self.n = T.axis(loop.counter)
        self.lanes = tuple(
            Axis(f"{self.carry.name}.{loop.counter.name}.{self.carry.index}.{k}", T.const(s))
            for k, s in enumerate(shape)
        )
        self.place: Place | None = loop.op.place
        lanes = [f for v in self.lanes for f in (T.make("le", 0, T.axis(v)), T.make("lt", T.axis(v), v.size))]
        self.trips = self.loops.resolved(loop.trips)
        around = self.loops.range_facts(loop.outer)
        self.init = self.loops.resolved(self.carry.init([T.axis(v) for v in self.lanes]))
        self.raw = self.loops.named(self.carry.next([T.axis(v) for v in self.lanes]))
        self.base = self.a.context([*self.loops.known, *around, self.loops.resolved(loop.guard), *lanes])
        zeros = [T.const(0) if v.size is T.const(1) else T.axis(v) for v in self.lanes]  # the only lane is lane 0
        self.nodes = {self.carry.at(self.n, x) for x in ([T.axis(v) for v in self.lanes], zeros)}
        self.pointee = self.init.attr if self.init.op == "pointer" else None
        kind = T.INT if self.carry.type.is_int or self.pointee is not None else T.REAL
        if self.carry.type.element == "i1":
            kind = T.INT
        self.x = T.scalar(f"{self.carry.name}~{loop.counter.name}.{self.carry.index}", kind)
        self.side_conditions: SideConditions = {}  # by the proof of the form that is shown
        self.used = Closers()  # the rows that gave a form

    def closed(self) -> Closed:
        """Guess, then prove. Cases that are not shown are undefined in the form, if another case is shown."""
        if self.carry.type.element == "ptr" and self.pointee is None:
            raise Undecided("a pointer into an unknown tensor")
        failure: Undecided | None = None
        partial: tuple[Leaves, list[str], SideConditions] | None = None
        fewest = math.inf  # cases that are not shown, of all attempts
        tried: list[Leaves] = []
        for attempt in self._attempts():
            try:
                with self.a.collecting(), self.used.listing() as by:  # a guess needs no side conditions
                    leaves = [(path, self._tidied(path, form)) for path, form in attempt()]
                if leaves in tried:
                    continue
                tried.append(leaves)
            except Split as split:
                failure = failure or Undecided("a case of its update is undecided", why=str(split))
                continue
            except Undecided as stop:
                failure = failure or stop
                continue
            shown = self._shown(leaves)
            if all(error is None for error in shown):
                return self._taken(leaves, by)
            failure = failure or next(e for e in shown if e is not None)
            if (open_ := sum(error is not None for error in shown)) < min(fewest, len(shown)):
                shorter = [(path, T.undef(f"the unproved part of {self.carry.name}", self.x.type) if error else form)
                           for (path, form), error in zip(leaves, shown, strict=True)]  # fmt: skip
                partial, fewest = (shorter, by, self.side_conditions), open_
                if all(error is None or form.op == "undef" for (_, form), error in zip(leaves, shown, strict=True)):
                    break  # what is left rests on variables that have no form there
        if partial is not None:
            leaves, by, self.side_conditions = partial
            return self._taken(leaves, by)
        raise failure or Undecided("no invariant template matches this update")

    def _attempts(self) -> Iterable[Callable[[], Leaves]]:
        """Ways to guess, the usual one first: n >= 1, n < trips, n >= 0; a first iteration of its own; ..."""
        for rows in INVARIANTS:
            yield partial_(self._guess, rows)
            yield partial_(self._guess, rows, bounded=True)
            if rows[-1] is USUAL[-1]:
                yield partial_(self._guess, rows, early=True)
        yield partial_(self.used.attempt, FEW_TURNS, self)

    def _shown(self, leaves: Leaves) -> list[Undecided | None]:
        """Each case proved, or why not."""
        out: list[Undecided | None] = []
        found = self._closed(leaves)
        before, self.side_conditions = dict(self.loops.found), {}
        for path, _ in leaves:
            self.loops.found[self.carry] = found
            try:
                with self.a.collecting() as side_conditions:
                    self.prove(found, path)
                self.side_conditions |= side_conditions
                out.append(None)
            except Split as split:
                out.append(Undecided("undecided", why=str(split)))
            except Undecided as stop:
                out.append(stop)
            finally:
                del self.loops.found[self.carry]
                self.loops.memo.clear()
        if any(out):  # what was proved of other variables may rest on a form that is not shown
            self.loops.found = before
        return out

    def _closed(self, leaves: Leaves) -> Closed:
        *cases, (path, out) = leaves
        if not self._exhaustive(leaves) or any(form.op == "undef" for _, form in leaves):
            cases, out = leaves, T.undef(self.carry.name, self.x.type)
        for path, form in reversed(cases):
            out = T.where(T.make("and", T.const(True), *path), form, out)
        return Closed(self.carry, self.lanes, self.init, self._wrapped(out))

    def _exhaustive(self, leaves: Leaves) -> bool:
        """Whether one of the cases holds wherever the loop has an iteration."""
        others = [T.make("not", T.make("and", T.const(True), *path)) for path, _ in leaves]
        return self.a.impossible(self.a.given(self.base, T.make("le", 1, self.trips), *others))

    def _taken(self, leaves: Leaves, by: Sequence[str]) -> Closed:
        self.a.pending[0].update(self.side_conditions)  # of the whole proof, whoever asked for the form
        found = self.loops.found[self.carry] = self._closed(leaves)
        self.loops.invariants.append(
            Invariant(self.place, self.carry.name, self._value(found.form), 1, self.carry.loop.counter.name, tuple(by))
        )
        return found

    def _tidied(self, path: tuple[Term, ...], form: Term) -> Term:
        """The form in normal form for n >= 1, where it has one without cases."""
        try:
            return self.a.normal(form, self.a.given(self.base, T.make("le", 1, self.n), *path)).term
        except (Split, Undecided):
            return form

    def _wrapped(self, form: Term) -> Term:
        return form if self.pointee is None else T.node("pointer", (form,), self.pointee, POINTER)

    def _value(self, t: Term) -> Term:
        """A value of the variable as a number: the offset of a pointer."""
        if self.pointee is None:
            return t
        if t.op != "pointer" or t.attr != self.pointee:
            raise Undecided("the pointer moves to another tensor")
        return t.args[0]

    # ---- the guess

    def _guess(self, rows: Rows, bounded: bool = False, early: bool = False) -> Leaves:
        """`bounded`: for n < trips, which may not hold at n + 1. `early`: for n = 0 too, where a condition counts that
        later iterations imply."""
        later = self.a.given(self.base, T.make("le", 0 if early else 1, self.n))
        if bounded:
            later = self.a.given(later, T.make("lt", self.n, self.trips))
        only: Leaves | None = self.used.attempt(ONCE, self, later)
        if only is not None:
            return only
        own = {x: self._wrapped(self.x) for x in self.nodes}
        step = self._value(self.loops.resolved(self.raw, own))
        if any(s.op == "carry" for s in step.walk()):
            raise Undecided("it depends on other lanes of itself")
        return self._by_cases(step, later, rows)

    def _once(self, later: Context) -> Leaves | None:
        """The value after iteration 0, where there is no other one."""
        alone = self.a.impossible(self.a.given(later, T.make("lt", self.n, self.trips)))
        return [((), self._first())] if alone else None

    def _first(self) -> Term:
        """The value after iteration 0."""
        return self._value(self.loops.resolved(T.substitute(self.raw, {self.carry.loop.counter: T.const(0)})))

    def _by_cases(self, step: Term, ctx: Context, rows: Rows, path: tuple[Term, ...] = ()) -> Leaves:
        """Cases that do not depend on n are cases of the whole closed form; the others guard what is added."""
        if self.a.impossible(ctx):
            return []
        mine = lambda literal: self.carry.loop.counter in literal.free  # noqa: E731
        try:
            return [(path, self._form(rows, self.a.cases(step, ctx, mine), ctx))]
        except Split as split:
            if len(path) > 5:
                raise Undecided("too many cases", why=repr(split.literal)) from None
            literal = split.literal
        except Undefined as stop:
            if not path:
                raise
            return [(path, T.undef(stop.what, self.x.type))]
        answers = (literal, T.make("not", literal))
        found = [leaf for x in answers for leaf in self._by_cases(step, self.a.given(ctx, x), rows, (*path, x))]
        if not path and found and all(form.op == "undef" for _, form in found):
            raise Undecided("no case of its update is defined", why=str(found[0][1].attr))
        return found

    def _form(self, rows: Rows, cases: Cases, ctx: Context) -> Term:
        """The closed form from the first row that knows the step. Raises Undecided if no row does."""
        found: Term | None = first(self.used, rows, self, cases, self._value(self.init), ctx)
        if found is None:
            raise Undecided("no invariant template matches this update", why="; ".join(repr(p) for _, p in cases)[:400])
        return found

    def _unchanged(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """X: what it was before the loop."""
        return init if all(p is atom(self.x) for _, p in cases) else None

    def _last(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """f(n) without X: the value of the last iteration."""
        if len(cases) == 1 and not mentions(cases[0][1], self.x):
            return T.substitute(cases[0][1].term, {self.carry.loop.counter: self.n - 1})
        return None

    def _after_first(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """A sum whose first addend is unlike the others."""
        steps = self._steps(cases)
        if steps is None or any(a is not ONE for _, a, _ in steps):
            return None
        return T.add(self._first(), self._over("sum", [(ls, b.term) for ls, _, b in steps], start=1))

    def _deviations(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """A sum of squared deviations from means that change with it."""
        steps = self._steps(cases)
        if steps is None or any(a is not ONE for _, a, _ in steps):
            return None
        others = [c for c in self.carry.loop.carries if c is not self.carry and c in self.loops.found]
        means = [f.at([self.n, *(T.axis(v) for v in self.lanes)]) for c in others
                 if (f := self.loops.found[c]).form.type == T.REAL and len(f.lanes) == len(self.lanes)]  # fmt: skip
        means = [m for m in means if any(s.op == "recip" for s in m.walk())]

        def before(t: Term) -> Term:
            return T.substitute(t, {self.carry.loop.counter: self.n - 1})

        tries = deviations(steps, means, before, init, self._over)
        return next((t for t in tries if self._starts(t, ctx)), None)

    def _index(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """The index of a running maximum."""
        changing = [(literals, p) for literals, p in cases if p is not atom(self.x)]
        if len(changing) != 1:
            return None
        literals, p = changing[0]
        found = index_of_extreme(self.a, p, self.x, self.a.given(ctx, *literals))
        return next((t for t in found if self._starts(t, ctx)), None)

    def _minimum(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """min(X, f) = -max(-X, -f)."""
        if self.x.type != T.REAL:
            return None
        y = T.scalar(f"-{self.x.attr}")
        flipped = []
        for literals, p in cases:
            turned = T.rewrite(T.rewrite(p.term, {self.x: T.mul(-1, y)}.get), {y: self.x}.get)
            negative = T.mul(-1, turned)
            flipped.append((literals, self.a.normal(negative, self.a.given(ctx, *literals))))
        found = self._maximum(flipped, T.mul(-1, init), ctx)
        return None if found is None else T.mul(-1, found)

    def _steps(self, cases: Cases) -> list[Step] | None:
        """(a, b) of a X + b by cases."""
        found = [(literals, affine(p, self.x)) for literals, p in cases]
        return None if any(ab is None for _, ab in found) else [(literals, *ab) for literals, ab in found if ab]

    def _over(self, kind: str, cases: list[tuple[tuple[Term, ...], Term]], start: int = 0) -> Term:
        """fold[start <= t < n] of the cases' terms, each under its literals."""
        t, unit = Axis(f"{self.carry.loop.counter.name}'", ALL), UNIT[kind]
        at = {self.carry.loop.counter: T.axis(t)}
        parts = []
        for literals, term in cases:
            if term is not T.const(unit):
                guard = T.make("and", T.const(True), *literals)
                parts.append(T.where(T.substitute(guard, at), T.substitute(term, at), T.const(unit)))
        if not parts:
            return T.const(unit)
        body = T.make(T.FOLDS[kind], *parts) if len(parts) > 1 else parts[0]
        passed = T.make("and", T.make("le", start, T.axis(t)), T.make("lt", T.axis(t), self.n))
        return T.fold(kind, t, T.where(passed, body, T.const(unit)))

    def _maximum(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """max(X, f): the elements of the maximum without X."""
        out = []
        for literals, p in cases:
            rest = self._without(p, self.a.given(ctx, *literals))
            if rest is None:
                return None
            out.append((literals, rest))
        return T.make("max", init, self._over("amax", out))

    def _without(self, p: Poly, ctx: Context, depth: int = 0) -> Term | None:
        """f of p = max(X, f)."""
        if p is atom(self.x):
            return T.const(-float("inf"))
        found = maximum_in(p)
        if found is not None and p is atom(T.TERMS[found[0]]):
            t = T.TERMS[found[0]]
            parts = t.args if t.op == "max" else (t,)
            rest = [s for s in parts if s is not self.x]
            if len(rest) == len(parts) or any(self.x in s.walk() for s in rest):
                return None
            return T.make("max", *rest) if len(rest) > 1 else rest[0]
        d = p - atom(self.x)  # max(X, f) = X + [f - X > 0] (f - X), or f + [X - f > 0] (X - f)
        for t in (T.TERMS[j] for j in p.atoms if T.TERMS[j].op == "positive?"):
            q = structural(t.args[0])
            k = _coefficient(q, self.x)
            if isinstance(k, (int, Fraction)) and k:  # q = -k (f - X), as indicators have no positive factors
                f = P.scaled(q - P.scaled(atom(self.x), k), P.tidy(Fraction(-1) / k))
                grows = self.a.product(atom(t), f - atom(self.x), ctx=self.base)
                if (k < 0 and d is grows) or (k > 0 and p is f - grows):
                    return None if mentions(f, self.x) else f.term
        return self._with_signs(p, ctx, depth)

    def _with_signs(self, p: Poly, ctx: Context, depth: int) -> Term | None:
        """f of p = max(X, f) where f has cases by the sign of t: g + [t > 0] (f - g), as in |t| = -t + [t > 0] 2 t."""
        signs = (T.TERMS[j] for j in p.atoms if T.TERMS[j].op == "positive?")
        sign = next((s for s in signs if self.x not in s.walk()), None)
        if sign is None or depth >= 3:
            return None
        grows = T.make("lt", 0, sign.args[0])
        parts = []
        for value, literal in ((T.const(1), grows), (T.const(0), opposite(grows))):
            here = self.a.given(ctx, literal)
            found = self.a.normal(T.rewrite(p.term, {sign: value}.get), here)
            parts.append(self._without(found, here, depth + 1))
        f, g = parts
        if f is None or g is None or any(T.const(-float("inf")) is x for x in parts):
            return None
        return T.add(g, T.mul(sign, T.sub(f, g)))

    def _added(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """X + b: a sum."""
        parts = self._steps(cases)
        if parts is None or any(a is not ONE for _, a, _ in parts):
            return None
        return self._sum(init, [(literals, b) for literals, _, b in parts])

    def _with_factor(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """a X + b: a sum, rescaled by an integrating factor."""
        parts = self._steps(cases)
        for literals, a, _ in parts or ():
            if a is ONE:
                continue
            here = self.a.given(ctx, *literals)
            for factor in self._factors(a, here):
                found = self._rescaled(parts or [], factor, ctx)
                if found is not None:
                    return found
        return None

    def _decayed(self, cases: Cases, init: Term, ctx: Context) -> Term | None:
        """a X + b: a sum under products of the factors."""
        parts = self._steps(cases)
        return None if parts is None else decayed(init, parts, self.n, self.carry.loop.counter, self._over)

    def _sum(self, init: Term, parts: list[tuple[tuple[Term, ...], Poly]]) -> Term:
        if len(parts) == 1 and self.carry.loop.counter not in parts[0][1].term.free:
            return T.add(init, T.mul(self.n, parts[0][1].term))
        return T.add(init, self._over("sum", [(ls, b.term) for ls, b in parts]))

    def _factors(self, a: Poly, ctx: Context) -> Iterable[Poly]:
        """E with a(n) = E(n) / E(n+1)."""
        if len(a.terms) == 1:
            ((factors, e), c) = next(iter(a.terms.items()))
            if not factors and e and abs(c - 1) < 1e-9:
                monomials = list(POLYS[e].terms.items())
                tries = [P.monomial(m, k) for m, k in monomials] + [P.poly({m: k for m, k in monomials if k > 0})]
                for u in tries:
                    if u is not ZERO and self._shift_matches(POLYS[e], u, ctx):
                        yield P.exponential(u)
        if len(a.terms) == 1:
            ((factors, e), c) = next(iter(a.terms.items()))
            if not factors and c > 0:
                yield self._decay(POLYS[e], c)
        for (factors, _), _c in a.terms.items():
            for b, k in factors:
                if k == -1:
                    d = structural(T.TERMS[b])
                    try:
                        before = self.a.normal(T.substitute(d.term, {self.carry.loop.counter: self.n - 1}), ctx)
                        if equal(self.a, self.a.product(a, d, ctx), before, ctx):
                            yield before
                    except (Split, Undecided):
                        continue

    def _decay(self, e: Poly, c: P.Number) -> Poly:
        """exp(-sum[t < n] e(t) - n log(c)) for a(n) = c exp(e(n))."""
        passed = self._over("sum", [((), e.term)])
        exponent = T.sub(T.mul(-1, passed), T.mul(self.n, math.log(c)))
        return self.a.normal(T.make("exp", exponent), self.base)

    def _shift_matches(self, e: Poly, u: Poly, ctx: Context) -> bool:
        """e = u(n) - u(n+1)."""
        try:
            after = self.a.normal(T.substitute(u.term, {self.carry.loop.counter: self.n + 1}), ctx)
        except (Split, Undecided):
            return False
        return equal(self.a, e, u - after, ctx)

    def _rescaled(self, parts: list[tuple[tuple[Term, ...], Poly, Poly]], factor: Poly, ctx: Context) -> Term | None:
        """(sum[t < n] b(t) E(t+1)) / E(n), with the start as a first addend where it does not fit the sum."""
        added = [x for literals, _, b in parts for x in self._addends(literals, b, factor, ctx)]
        if len(added) > 1:
            added = self._one_addend(added, ctx)
        total = self._over("sum", added)
        form = self._after_elements(T.mul(total, T.recip(factor.term)) if factor.terms else total, factor, ctx)
        if self._starts(form, ctx):
            return form
        one = {self.carry.loop.counter: T.const(1)}
        start = T.mul(self._first(), T.substitute(factor.term, one))
        later = self._over("sum", added, start=1)
        return self._after_elements(T.mul(T.add(start, later), T.recip(factor.term)), factor, ctx)

    def _addends(self, literals: tuple[Term, ...], b: Poly, factor: Poly, ctx: Context) -> Leaves:
        """b E(n + 1) by cases of the factor that depend on n; Split on others."""
        counter = self.carry.loop.counter
        here = self.a.given(ctx, *literals)
        out = []
        after = T.substitute(factor.term, {counter: self.n + 1})
        for more, p in self.a.cases(after, here, lambda literal: counter in literal.free):
            inside = self.a.given(here, *more)
            out.append(((*literals, *more), unified(self.a, self._scaled_by(b, p, inside), inside, 0).term))
        return out

    def _one_addend(self, added: Leaves, ctx: Context) -> Leaves:
        """The addend of one case that is that of all others: where a tile has no element, its sum is 0."""
        for g in dict.fromkeys(t for _, t in added if t is not T.const(0)):
            try:
                if all(self._agree(g, h, self.a.given(ctx, *literals)) for literals, h in added if h is not g):
                    return [((), g)]
            except Undecided:
                continue
        return added

    def _after_elements(self, form: Term, factor: Poly, ctx: Context) -> Term:
        """0 as long as a maximum in the factor is over nothing, then the form: the state (-inf, 0, 0) of an online
        softmax before the first element that counts."""
        maxima = [T.TERMS[i] for i in sorted(factor.atoms) if T.TERMS[i].op in ("amax", "max")]
        some = [T.make("lt", -math.inf, t) for t in maxima if not self._is_over_some(t, ctx)]
        return T.where(T.make("and", T.const(True), *some), form, 0)

    def _is_over_some(self, t: Term, ctx: Context) -> bool:
        """Whether a maximum is certainly over something."""
        try:
            return self.a.nonempty(t, ctx)
        except Split:
            return False

    def _scaled_by(self, b: Poly, factor: Poly, ctx: Context) -> Poly:
        """b * factor, where b may have the factor as a denominator."""
        for i in sorted({i for fs, _ in b.terms for i, k in fs if k < 0}):
            if len(factor.terms) > 1 and structural(T.TERMS[i]) is factor:
                return multiplied(self.a, b, i, 1, ctx)
        return self.a.product(b, factor, ctx)

    def _starts(self, form: Term, ctx: Context) -> bool:
        """Whether F(1) is the value after iteration 0."""
        ctx = self.a.given(ctx, T.make("le", 1, self.trips))
        at_one = T.substitute(form, {self.carry.loop.counter: T.const(1)})
        try:
            return self._agree(at_one, self._first(), ctx)
        except Undecided:
            return False

    def _unrolled(self) -> Leaves:
        """where(n == 1, F1, where(n == 2, F2, ...)) for a loop of known length."""
        trips = self.a.normal(self.trips, self.base).constant
        if not isinstance(trips, int) or trips > UNROLLED:
            raise Undecided("no invariant template matches this update")
        values = [self._first()]
        for k in range(1, trips):
            here = {self.carry.loop.counter: T.const(k)}
            own = {T.substitute(x, here): self._wrapped(values[-1]) for x in self.nodes}
            raw = T.substitute(self.raw, {self.carry.loop.counter: T.const(k)})
            values.append(self._value(self.loops.resolved(raw, own)))
        out = values[-1] if values else self._value(self.init)
        for k in range(trips - 1, 0, -1):
            out = T.where(T.make("eq", self.n, k), values[k - 1], out)
        return [((), out)]

    # ---- the proof

    def prove(self, found: Closed, path: tuple[Term, ...]) -> None:
        """Entry and step in one case. Raises Undecided where one is not shown."""
        counter = self.carry.loop.counter
        form = self._value(found.form)
        entry = self.a.given(self.base, T.make("le", 1, self.trips), *path)
        self._condition("entry", T.substitute(form, {counter: T.const(1)}), self._first(), entry)
        step = self.a.given(self.base, T.make("le", 1, self.n), T.make("lt", self.n, self.trips), *path)
        if not self.a.impossible(step):
            after = self._value(self.loops.resolved(self.raw))
            self._condition("step", T.substitute(form, {counter: self.n + 1}), after, step)

    def _condition(self, which: str, left: Term, right: Term, ctx: Context) -> None:
        start = time.perf_counter()
        what = f"{which} of the loop: {self.carry.name}"
        with self.a.closed.listing() as by:
            shown = self._agree(left, right, ctx)
        if not shown:
            raise Undecided(f"could not prove the {which} of the loop", why=f"{left!r} equals {right!r}"[:600])
        goal = T.node("eq", (left, right), None, T.BOOL)
        seconds = time.perf_counter() - start
        self.loops.conditions.append(
            Condition(what, ctx.facts, goal, True, "normal form", seconds, self.place, strategies=tuple(by))
        )

    def _agree(self, left: Term, right: Term, ctx: Context) -> bool:
        return agree(self.a, left, right, ctx)


def _row(name: str, attempt: Callable[..., Term | Leaves | None], source: str, example: str) -> Strategy:
    return Strategy(name, "invariant", attempt, source, example)


D = Derivation
KNOWN = (
    _row("unchanged", D._unchanged, "loop-invariant code", "a pointer that a loop only reads from"),
    _row("last-value", D._last, "forward substitution", "the mask of the last tile"),
)
USUAL = (
    _row("running-maximum", D._maximum, "fold over a semilattice", "m of the online softmax"),
    _row("running-minimum", D._minimum, "min x = -max -x", "amin over tiles"),
    _row("index-of-an-extreme", D._index, "ours", "argmax over tiles"),
    _row("sum", D._added, "summation of a recurrence", "acc of a tiled matmul; a pointer that advances"),
    _row("rescaled-sum", D._with_factor, "integrating factor: Milakov, Gimelshein 2018", "l of the online softmax"),
    _row("decayed-sum", D._decayed, "linear recurrence of first order", "the state of a linear attention"),
)
AFTER_FIRST = (_row("sum-after-the-first", D._after_first, "loop peeling", "a sum that its first tile starts"),)
DEVIATIONS = (_row("sum-of-deviations", D._deviations, "Welford 1962; Chan, Golub, LeVeque 1983", "M2 of layer_norm"),)
INVARIANTS: tuple[Rows, ...] = tuple((*KNOWN, *rows) for rows in (USUAL, AFTER_FIRST, DEVIATIONS))
ONCE = _row("one-iteration", D._once, "ours", "a loop over tiles where the row fits into one")
FEW_TURNS = _row("unrolled", D._unrolled, "bounded loop unrolling", "a loop of 4 steps without a closed form")
STRATEGIES = (*KNOWN, *USUAL, *AFTER_FIRST, *DEVIATIONS, ONCE, FEW_TURNS)


def mentions(p: Poly, x: Term) -> bool:
    """Whether x occurs anywhere in p."""
    return any(s is x for s in p.term.walk())


def affine(p: Poly, x: Term) -> tuple[Poly, Poly] | None:
    """(a, b) with p = a x + b, x in neither."""
    if is_infinite(p):
        return None
    a: dict[P.Monomial, P.Number] = {}
    b: dict[P.Monomial, P.Number] = {}
    for (factors, e), c in p.terms.items():
        mine = [k for i, k in factors if i == x.id]
        others = tuple(f for f in factors if f[0] != x.id)
        if any(x in T.TERMS[i].walk() for i, _ in others) or (e and x in POLYS[e].term.walk()):
            return None
        if not mine:
            b[(factors, e)] = c
        elif mine[0] == 1:
            a[(others, e)] = c
        else:
            return None
    return P.poly(a), P.poly(b)


def _coefficient(q: Poly, x: Term) -> P.Number | None:
    return q.terms.get((((x.id, 1),), 0))


__all__ = ["ALL", "INVARIANTS", "Closed", "Loops", "agree", "condition", "elements", "equal_sizes"]

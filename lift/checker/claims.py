"""The claim of a certificate, and the obligations that follow from its summary of the launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TypeVar

from .algebra import CASES, Algebra, Env, Need, Worldly
from .decisions import Context, atoms_within, solvers
from .polynomials import (
    ATOMS,
    FALSE,
    ONE,
    TRUE,
    UNIT,
    ZERO,
    AxisKey,
    Data,
    Formula,
    Node,
    NotChecked,
    Poly,
    Split,
    Value,
    Wrong,
    add,
    atom,
    conj,
    disj,
    eq,
    le,
    literals,
    lt,
    minus,
    mul,
    negated,
    nodes,
    number,
    of,
    polys,
    put,
    put_formula,
    scaled,
    serial,
    text,
    variable,
    variables,
    within,
)
from .structure import validate
from .wording import equation, escaped, named, shown, subterms

VERSION = 2
SHOWN = 16  # digits of a digest in a sentence
V = TypeVar("V")


# ---- what a certificate is about -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """A tensor in a buffer: element (i, j, ...) is at offset + i strides[0] + j strides[1] + ..."""

    buffer: str
    offset: Poly
    shape: tuple[Poly, ...]
    strides: tuple[Poly, ...]

    def element(self, index: Sequence[Poly]) -> Poly:
        """Where an index is."""
        return add(self.offset, *(mul(i, s) for i, s in zip(index, self.strides, strict=True)))


Content = Callable[[Poly, Context], Value]  # element number -> the number there


@dataclass(frozen=True, slots=True)
class Failure:
    """An obligation that is not shown, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"not checked: {self.what}" + (f": {self.why}" if self.why else "")


@dataclass
class Report:
    """The result of a certificate. `shown`: how many obligations of each kind; `assumed`: what else the
    claim rests on."""

    claim: list[str]
    solver: str
    shown: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    given: str = ""  # what is taken as it is
    questions: int = 0
    by_z3: int = 0  # questions that the solver does not know, and z3 does

    @property
    def answered(self) -> str:
        """The solvers, as text."""
        return self.solver + (f", z3 where it is unknown: {self.by_z3}" if self.by_z3 else "")

    @property
    def checked(self) -> bool:
        """Whether everything was shown."""
        return not self.failures and sum(self.shown.values()) > 0


class World:
    """One launch: what loads and loop variables are. `contents`: of buffers before it; `written`: by it."""

    def __init__(self, configuration: Configured, launch: Data) -> None:
        self.c, self.launch, self.a = configuration, launch, configuration.a
        self.number = next(serial)
        table = configuration.nodes
        self.pointers = {n: configuration.view(v) for n, v in launch["pointers"].items()}
        self.contents = dict(configuration.contents)
        self.carries: dict[str, Data] = {}
        for k, loop in enumerate(launch["loops"]):
            for i, carry in enumerate(loop["carries"]):
                self.carries[f"{k}.{i}"] = {**carry, "loop": loop, "name": carry["name"]}
        self.grid = [table[n] for n in launch["grid"]]
        self.written = configuration.written(launch)

    # ---- loads and loop variables

    def load(self, t: Node, env: Env, ctx: Context) -> Value:
        """An element of the reference's input, of memory before the launch, or a loop variable."""
        if t.op == "element":
            of = self.c.inputs[t.attr]
            return self.c.initial(of.buffer, of.element([self.a.finite(i, env, ctx) for i in t.args]), ctx)
        if t.op == "carry":
            return self.carried(t, env, ctx, self.a.value)
        o = self.a.finite(t.args[0], env, ctx)
        base, at, _ = t.attr.partition("@")
        if not at:
            return self.c.initial(base, o, ctx)
        view = self.pointers.get(base)
        if view is None:
            raise NotChecked(f"a load through {base}, which points into no tensor")
        if view.buffer in self.written:
            self.c.interferes(self, view.buffer)
        return self.contents[view.buffer](add(view.offset, o), ctx)

    def carried(self, t: Node, env: Env, ctx: Context, value: Callable[[Node, Env, Context], V]) -> V:
        """A loop variable at the start of an iteration: its closed form, before the first one its start."""
        carry = self.carries[t.attr]
        table = self.c.nodes
        n, *others = (self.a.finite(x, env, ctx) for x in t.args)
        keys = [*(table[x].axis for x in carry["loop"]["outer"]), *(table[x].axis for x in carry["lanes"])]
        if len(keys) != len(others):
            raise Wrong(f"loop variable {carry['name']} with another number of indices")
        inner = dict(zip(keys, others, strict=True)) | {k: v for k, v in env.items() if k[1] == -1}
        init = table[carry["init"]]
        if n is ZERO:
            return value(init, inner, ctx)
        if carry["form"] is None:
            raise NotChecked(f"no closed form of loop variable {carry['name']}")
        form, counter = table[carry["form"]], table[carry["loop"]["counter"]].axis
        answer = self.a.decided(ctx, le(minus(ONE, n)))
        if answer is None:
            if value(form, {**inner, counter: ZERO}, ctx) != value(init, inner, ctx):
                raise Split(le(minus(ONE, n)))
            answer = True
        return value(form, {**inner, counter: n}, ctx) if answer else value(init, inner, ctx)

    def pointer(self, t: Node, env: Env, ctx: Context) -> tuple[str, Poly]:
        """Parameter and offset of a pointer."""
        if t.op == "pointer":
            return t.attr, self.a.finite(t.args[0], env, ctx)
        if t.op == "where":
            return self.pointer(t.args[1 if self.a.known(t.args[0], env, ctx) else 2], env, ctx)
        if t.op == "carry":
            return self.carried(t, env, ctx, self.pointer)
        raise NotChecked(f"a pointer made by {t.op}")

    def address(self, name: str, o: Poly) -> Poly:
        """An address in bytes: tensors start at multiples of 16."""
        told = "the memory of every tensor starts at a multiple of 16 bytes"
        if told not in self.c.report.assumed:
            self.c.report.assumed.append(told)
        digits = "".join(x for x in self.launch["pointers"][name]["dtype"] if x.isdigit())[:2]
        start = of(atom("sym", "int", f"start of {self.pointers[name].buffer}"))
        return add(scaled(start, 16), scaled(add(self.pointers[name].offset, o), max(int(digits or 8) // 8, 1)))

    def place(self, access: Data, env: Env, ctx: Context) -> tuple[View, Poly]:
        """The tensor and the element of its buffer that an access is to."""
        name, o = self.pointer(self.c.nodes[access["pointer"]], env, ctx)
        view = self.pointers.get(name)
        if view is None:
            raise NotChecked(f"an access through {name}, which points into no tensor")
        return view, add(view.offset, o)

    # ---- when something is executed

    def running(self, site: Data, env: Env, ctx: Context, masked: bool = True) -> Context:
        """The facts when an access or an operation is executed: ranges of programs, iterations and lanes, the mask."""
        table, a = self.c.nodes, self.a
        for k, n in enumerate(self.grid):
            ctx = a.given(ctx, within(_program(k, env), a.finite(n, {}, ctx)))
        for k in site["loops"]:
            loop = self.launch["loops"][k]
            counter = table[loop["counter"]]
            ctx = a.given(ctx, self.holds(table[loop["guard"]], env, ctx))
            ctx = a.given(ctx, within(a.finite(counter, env, ctx), a.finite(table[loop["trips"]], env, ctx)))
        for n in site["lanes"]:
            lane = table[n]
            ctx = a.given(ctx, within(a.finite(lane, env, ctx), a.finite(lane.attr[1], env, ctx)))
        return a.given(ctx, self.holds(table[site["guard"]], env, ctx)) if masked else ctx

    def holds(self, t: Node, env: Env, ctx: Context) -> Formula:
        """A guard as a fact."""
        return self.a.fact(t, env, ctx)

    def locals(self, site: Data) -> frozenset[int]:
        """The symbols of programs, iterations and lanes."""
        table = self.c.nodes
        found = [table[self.launch["loops"][k]["counter"]] for k in site["loops"]] + [table[n] for n in site["lanes"]]
        names = [of(atom("sym", "int", *t.axis)) for t in found] + [_program(k, {}) for k in range(3)]
        return frozenset(x for p in names for x in p.atoms())


def _program(k: int, env: Env) -> Poly:
    return env.get((f"pid{k}", -1), of(atom("sym", "int", f"pid{k}")))


def _pointers(t: Node, event: Data, table: Sequence[Node]) -> Iterator[str]:
    """The parameters that a pointer may come from."""
    if t.op == "pointer":
        yield t.attr
    elif t.op == "where":
        for x in t.args[1:]:
            yield from _pointers(x, event, table)
    elif t.op == "carry":
        loop, k = map(int, t.attr.split("."))
        yield from _pointers(table[event["loops"][loop]["carries"][k]["init"]], event, table)
    else:
        raise NotChecked(f"a pointer made by {t.op}")


class Configured:
    """One configuration of a certificate: its launches one after the other, and its outputs at the end."""

    def __init__(self, certificate: Data, data: Data, report: Report) -> None:
        self.certificate, self.data, self.report = certificate, data, report
        self.nodes: list[Node] = certificate["nodes"]
        self.a = Algebra()
        self.contents: dict[str, Content] = {}
        self.proved: dict[str, str] = {}  # output -> by which launch
        self.apart: dict[tuple[int, str], str | None] = {}
        self.label = f"{data['label']}: " if data["label"] else ""

    # ---- reading

    def number(self, n: int, env: Env | None = None) -> Poly:
        """A term without conditions."""
        return self.a.finite(self.nodes[n], env or {}, self.ctx)

    def view(self, v: Data) -> View:
        """A tensor."""
        shape, strides = (tuple(self.number(n) for n in v[k]) for k in ("shape", "strides"))
        return View(v["buffer"], self.number(v["offset"]), shape, strides)

    def initial(self, buffer: str, o: Poly, ctx: Context) -> Value:
        """Element o of a buffer before the first launch."""
        data = self.buffers[buffer]
        if data["input"]:
            sort = "int" if _whole(data["dtype"]) else "real"
            return of(self.a.unified(atom("read", sort, buffer, (o,), variables=o.vars), ctx))
        start = self.nodes[data["initial"]]
        return self.a.value(start, {self.nodes[data["axis"]].axis: o}, ctx)

    # ---- obligations

    def attempt(self, kind: str, what: str, goal: Callable[[Context], bool], ctx: Context) -> bool:
        """Whether a goal is shown, in all cases; if not, the report gets a failure."""
        try:
            held, why = self.cases(goal, ctx, 0), ""
        except NotChecked as stop:
            held, why = False, str(stop)
        except Split as split:
            held, why = False, f"too many cases: {split}"
        except RecursionError:
            held, why = False, "the terms are nested too deeply"
        if held:
            self.report.shown[kind] = self.report.shown.get(kind, 0) + 1
        else:
            self.report.failures.append(Failure(f"{self.label}{what}", why))
        return held

    def cases(self, goal: Callable[[Context], bool], ctx: Context, depth: int) -> bool:
        """The goal where its conditions are decided."""
        try:
            return goal(ctx)
        except Split as split:
            if depth >= CASES:
                raise
            literal = split.literal
        for f in (literal, negated(literal)):
            here = self.a.given(ctx, f)
            if not self.a.impossible(here) and not self.cases(goal, here, depth + 1):
                return False
        return True

    def run(self) -> None:
        """Everything."""
        self.ctx = self.a.none
        self.buffers = {b["name"]: b for b in self.data["buffers"]}
        for name, (low, high) in self.data["bounds"].items():
            self.a.bounds[name] = (self.number(low), self.number(high))
            self.report.assumed.append(f"{shown(self.nodes[low])} <= {named(name)} < {shown(self.nodes[high])}")
        facts = [self.a.fact(self.nodes[n], {}, self.a.none) for n in self.data["facts"]]
        self.contracts()
        self.ctx = self.a.context((*facts, *self.clauses))
        if self.data["vacuous"]:
            self.attempt("facts", "no shape is in this configuration", self.a.impossible, self.ctx)
            return
        self.stated(facts)
        self.ones()
        every = self.a.given(self.ctx, *self.widths)
        if not self.example(every) and not self.a.satisfiable(every):
            self.report.failures.append(Failure(f"{self.label}the facts may contradict each other", ""))
        self.inputs = {n: self.view(v) for n, v in self.data["inputs"].items()}
        self.outputs = {n: self.view(v) for n, v in self.data["outputs"].items()}
        for name, view in self.inputs.items():
            self.attempt("shapes", f"{name} ends with its last element", partial(self.ends, view), self.ctx)
        self.contents = {n: self._start(n) for n in self.buffers}
        for k, event in enumerate(self.data["events"]):
            if event["kind"] == "launch":
                Launch(self, k, event).run()
            else:
                self.host(event)
        self.results()

    def ends(self, view: View, ctx: Context) -> bool:
        """The buffer of an input has no element behind the last one of the tensor."""
        last = view.element([minus(n, ONE) for n in view.shape])
        length = self.number(self.buffers[view.buffer]["length"])
        return self.a.implied(ctx, le(minus(length, add(last, ONE))))

    def _start(self, name: str) -> Content:
        return lambda o, ctx: self.initial(name, o, ctx)

    def contracts(self) -> None:
        """The conditions of the contract, as facts."""
        self.clauses: list[Formula] = []
        self.widths: list[Formula] = []  # what only says that integers fit
        for clause in self.certificate["contract"]:
            if clause["term"] is not None and clause["configuration"] in (None, self.data["number"]):
                found = self.widths if clause["kind"] == "nowrap" else self.clauses
                found.append(self.a.fact(self.nodes[clause["term"]], {}, self.a.none))

    def holds(self, f: Formula, ctx: Context) -> bool:
        return self.a.implied(ctx, f)

    def stated(self, facts: Sequence[Formula]) -> None:
        """Facts about the sizes of the case follow from the contract; those about numbers of the launches are told."""
        names = {x for v in self.views() for p in (v.offset, *v.shape, *v.strides) for x in p.atoms()}
        names |= {atom("sym", t.sort, t.attr).id for t in self.nodes if t.op == "scalar"}
        contract = self.a.context(self.clauses)
        for n, f in zip(self.data["facts"], facts, strict=True):
            inside = {x for p in polys(f) for x in p.atoms()}
            every = inside | {y for x in inside for y in atoms_within(ATOMS[x])}
            if all(ATOMS[x].kind != "sym" or x in names for x in every):
                self.attempt(
                    "facts",
                    f"{shown(self.nodes[n])} is part of the contract",
                    partial(self.holds, f),
                    contract,
                )
            else:
                self.report.assumed.append(f"{self.label}{shown(self.nodes[n])}")

    def ones(self) -> None:
        """Sizes that can only be one number are that number from here on."""
        sizes = {x for v in self.views() for p in v.shape for x in p.atoms()}
        for f in self.ctx.facts:
            name, k = _pinned(f)
            if name:
                self.a.fixed[name] = number(k)
        for x in sorted(sizes):
            if ATOMS[x].kind == "sym" and self.a.implied(self.ctx, eq(minus(of(ATOMS[x]), ONE))):
                self.a.fixed[ATOMS[x].data[0]] = ONE
        self.a.memo.clear()

    def views(self) -> list[View]:
        """The tensors of the case."""
        return [self.view(v) for v in (*self.data["inputs"].values(), *self.data["outputs"].values())]

    def example(self, ctx: Context) -> bool:
        """Whether the numbers of the certificate meet the facts."""
        values = {atom("sym", "int", n).id: number(v) for n, v in self.data["example"].items()}
        for f in ctx.facts:
            names = {x for p in polys(f) for x in p.atoms()}
            pins = [eq(minus(of(ATOMS[x]), values[x])) for x in values]
            if not self.a.implied(self.a.context(pins), f):
                return False
            if not names:
                return False
        return bool(values)

    # ---- memory

    def host(self, event: Data) -> None:
        """A torch operation: the summary says what its outputs hold."""
        before = dict(self.contents)
        for out in event["outputs"]:
            view = self.view(out["view"])
            self.contents[view.buffer] = self.overlay(view, out["axes"], out["term"], before, HostWorld(self, before))

    def overlay(
        self, view: View, axes: Sequence[int], term: int, before: Mapping[str, Content], world: Worldly
    ) -> Content:
        """The contents of a buffer that holds a term in a view."""
        keys = [self.nodes[n].axis for n in axes]

        def content(o: Poly, ctx: Context) -> Value:
            index, inside = self.decoded(view, o, ctx)
            answer = self.a.decided(ctx, inside)
            if answer is None:
                raise Split(next(x for x in literals(inside) if self.a.decided(ctx, x) is None))
            if not answer:
                return before[view.buffer](o, ctx)
            with self.inside(world):
                return self.a.value(self.nodes[term], dict(zip(keys, index, strict=True)), ctx)

        return content

    @contextmanager
    def inside(self, world: Worldly) -> Iterator[None]:
        """Loads are those of this world."""
        before, self.a.world = self.a.world, world
        try:
            yield
        finally:
            self.a.world = before

    def decoded(self, view: View, o: Poly, ctx: Context) -> tuple[list[Poly], Formula]:
        """The index of element o, and the condition that it is in the view."""
        index = [ZERO] * len(view.shape)
        rest = minus(o, view.offset)
        conditions: list[Formula] = []
        order = self.order(view, ctx)
        if self.dense(view, order):
            for d in reversed(order[1:]):
                whole = self.a.quotient(rest, view.shape[d], ctx)
                index[d] = minus(rest, mul(whole, view.shape[d]))
                conditions.append(lt(scaled(view.shape[d], -1)))
                rest = whole
            if order:
                index[order[0]] = rest
            return index, conj(*conditions, within(rest, view.shape[order[0]]) if order else eq(rest))
        for d in order:
            s = view.strides[d]
            index[d] = rest if s is ONE else self.a.quotient(rest, s, ctx)
            rest = minus(rest, mul(index[d], s))
            conditions.append(within(index[d], view.shape[d]))
        return index, conj(*conditions, eq(rest))

    def dense(self, view: View, order: Sequence[int]) -> bool:
        """Whether the elements lie behind one another, in this order of dimensions."""
        step = ONE
        for d in reversed(order):
            if view.strides[d] is not step:
                return False
            step = mul(step, view.shape[d])
        return True

    def order(self, view: View, ctx: Context) -> list[int]:
        """Dimensions from the largest stride, each as large as all that follows. Raises NotChecked."""
        left = [d for d, n in enumerate(view.shape) if n is not ONE]
        out: list[int] = []
        step = ONE
        while left:
            d = next((d for d in left if view.strides[d] is step), None)
            if d is None:
                d = next((d for d in left if self.a.implied(ctx, le(minus(step, view.strides[d])))), None)
            if d is None:
                raise NotChecked("two indices of a tensor may be one element")
            left.remove(d)
            out.insert(0, d)
            step = mul(view.strides[d], view.shape[d])
        return out

    def interferes(self, world: World, buffer: str) -> None:
        """Raises NotChecked where a load may meet a store of its launch."""
        key = (id(world), buffer)
        if key not in self.apart:
            self.apart[key] = None  # while it is looked at
            self.apart[key] = Launch.meeting(self, world, buffer)
        if (why := self.apart[key]) is not None:
            raise NotChecked(why)

    # ---- the end

    def results(self) -> None:
        """Every output, and every input that is written, equals its formula."""
        written = {e for event in self.data["events"] for e in self.written(event)}
        formulas = self.certificate["formulas"]
        tensors = {**self.outputs, **self.inputs}
        for name in formulas:
            if name not in tensors:
                self.report.failures.append(Failure(f"{self.label}{name}", "nothing is compared with its formula"))
        for name, view in tensors.items():
            formula = formulas.get(name)
            if formula is None:
                if name in self.outputs or view.buffer in written:
                    self.report.failures.append(Failure(f"{self.label}{name}", "the claim has no formula for it"))
                continue
            self.attempt("shapes", f"shape of {name}", partial(self.shaped, view, formula), self.ctx)
            if name in self.proved:
                continue
            self.attempt("contents", f"{name} at the end", partial(self.final, view, formula), self.ctx)

    def shaped(self, view: View, formula: Data, ctx: Context) -> bool:
        """The formula is about every index of the tensor; a formula with fractions needs a tensor of such."""
        sizes = [self.a.finite(self.nodes[n].attr[1], {}, ctx) for n in formula["axes"]]
        if len(sizes) != len(view.shape):
            raise NotChecked("the formula has another number of indices")
        if _whole(self.buffers[view.buffer]["dtype"]) and self.nodes[formula["term"]].sort == "real":
            raise NotChecked("the formula is a real number, the tensor holds integers")
        return all(self.a.implied(ctx, eq(minus(m, n))) for m, n in zip(sizes, view.shape, strict=True))

    def written(self, event: Data) -> set[str]:
        """The buffers that an event may write."""
        if event["kind"] == "host":
            return {out["view"]["buffer"] for out in event["outputs"]}
        return {b for x in event["accesses"] if x["kind"] != "load" for b in self.buffers_of(x, event)}

    def buffers_of(self, access: Data, event: Data) -> set[str]:
        """The buffers that an access may be to. Raises NotChecked for a pointer into no tensor."""
        names = set(_pointers(self.nodes[access["pointer"]], event, self.nodes))
        if not names <= event["pointers"].keys():
            raise NotChecked("a pointer into no tensor")
        return {event["pointers"][n]["buffer"] for n in names}

    def final(self, view: View, formula: Data, ctx: Context) -> bool:
        """The contents at every index are the formula."""
        axes = [self.nodes[n] for n in formula["axes"]]
        for t in axes:
            ctx = self.a.given(ctx, within(self.a.finite(t, {}, ctx), self.a.finite(t.attr[1], {}, ctx)))
        ones = {t.axis: ZERO for t in axes if self.a.finite(t.attr[1], {}, ctx) is ONE}
        index = [self.a.finite(t, ones, ctx) for t in axes]
        held = self.contents[view.buffer]
        return self.equal(lambda c: held(view.element(index), c), lambda c: self.of_formula(formula, index, c), ctx)

    def of_formula(self, formula: Data, index: Sequence[Poly], ctx: Context) -> Value:
        """The formula at an index."""
        keys = [self.nodes[n].axis for n in formula["axes"]]
        with self.inside(ReferenceWorld(self)):
            return self.a.value(self.nodes[formula["term"]], dict(zip(keys, index, strict=True)), ctx)

    def equal(self, left: Callable[[Context], Value], right: Callable[[Context], Value], ctx: Context) -> bool:
        """Whether two numbers are equal, and are undefined in the same cases."""
        a = self.a
        a.needs = {}
        x, mine = left(ctx), dict(a.needs)
        a.needs = {}
        y, theirs = right(ctx), dict(a.needs)
        if not isinstance(x, Poly) or not isinstance(y, Poly):
            return x is y
        if not a.zero(minus(x, y), ctx):
            raise NotChecked(f"{text(x)} against {text(y)}"[:600])
        for needs, others in ((mine, theirs), (theirs, mine)):
            for kind, p in needs:
                if not self.owed(kind, p, others, ctx):
                    raise NotChecked(f"only one side needs that an operand is {kind}")
        return True

    def owed(self, kind: str, p: Poly, others: Mapping[Need, None], ctx: Context) -> bool:
        """Whether a need is met, or is one of the other side too."""
        if (kind, p) in others or self.a.met(kind, p, ctx):
            return True
        return any(k == kind and self.a.zero(minus(p, q), ctx) for k, q in others)


class Elsewhere:
    """A world without addresses."""

    def address(self, name: str, _: Poly) -> Poly:
        """Raises NotChecked."""
        raise NotChecked(f"the address of {name} outside a launch")


class ReferenceWorld(Elsewhere):
    """The world of a formula: the inputs of the case as they are before anything is launched."""

    number = -1  # one for all: the inputs are always the same

    def __init__(self, configured: Configured) -> None:
        self.c = configured

    def load(self, t: Node, env: Env, ctx: Context) -> Value:
        """An element of an input."""
        if t.op != "element":
            raise NotChecked(f"{t.op} in a formula")
        view = self.c.inputs[t.attr]
        index = [self.c.a.finite(i, env, ctx) for i in t.args]
        return self.c.initial(view.buffer, view.element(index), ctx)


class HostWorld(Elsewhere):
    """The world of a torch operation: the buffers before it."""

    def __init__(self, configured: Configured, before: Mapping[str, Content]) -> None:
        self.c, self.before = configured, before
        self.number = next(serial)

    def load(self, t: Node, env: Env, ctx: Context) -> Value:
        """An element of a buffer."""
        if t.op != "read":
            raise NotChecked(f"{t.op} in a torch operation")
        return self.before[t.attr](self.c.a.finite(t.args[0], env, ctx), ctx)


class Launch:
    """The obligations of one launch."""

    def __init__(self, configured: Configured, position: int, event: Data) -> None:
        self.c, self.a, self.position, self.event = configured, configured.a, position, event
        self.world = World(configured, event)
        self.nodes = configured.nodes

    def run(self) -> None:
        """Loops, bounds, integers, stores; then memory is what the launch left."""
        c, ctx = self.c, self.c.ctx
        with c.inside(self.world):
            for k, n in enumerate(self.world.grid):
                c.attempt("grid", f"grid axis {k}", partial(self.is_size, n), ctx)
            self.c.attempt("loads", "what is read has a load", lambda ctx: self.loaded(), ctx)
            for carry in self.world.carries.values():
                if carry["form"] is not None:
                    self.loop(carry)
            for access in self.event["accesses"]:
                what = f"{access['kind']} at line {access['line']} in bounds"
                c.attempt("bounds", what, partial(self.bounded, access), ctx)
            for k, operation in enumerate(self.event["arithmetic"]):
                self.arithmetic(k, operation)
            self.stores()

    # ---- loads

    def loaded(self) -> bool:
        """Every element of memory that the summary uses comes from one of its loads, which are looked at for bounds."""
        table, event = self.nodes, self.event
        accesses, loops = event["accesses"], event["loops"]
        known = {name for x in accesses if x["kind"] == "load" for name in self.reads(x)}
        atomics = [x for x in accesses if x["kind"] not in ("load", "store")]
        known_bases = {n for x in atomics for n in _pointers(table[x["pointer"]], event, table)}
        used = [*event["grid"], *(n for x in accesses for n in (x["guard"], x["pointer"]))]
        used += [x["value"] for x in accesses if x["kind"] != "load" and x["value"] is not None]
        used += [n for x in loops for n in (x["trips"], x["guard"])]
        used += [n for x in loops for c in x["carries"] for n in (c["init"], c["next"])]
        used += [n for x in event["arithmetic"] for n in (x["guard"], x["term"])]
        for x in subterms(table[n] for n in used):
            if x.op == "read" and x.attr not in known and x.attr.partition("@")[0] not in known_bases:
                raise NotChecked(f"{x.attr} is used, and no load of the summary reads it")
        return True

    def reads(self, access: Data) -> set[str]:
        """The elements that a load reads: of its value, the elements at the offsets of its pointer."""
        if access["value"] is None:
            return set()
        parts = list(subterms([self.nodes[access["pointer"]]]))
        direct = {(t.attr, t.args[0].id) for t in parts if t.op == "pointer"}
        carried = any(t.op == "carry" and t.sort == "ptr" for t in parts)
        bases = set(_pointers(self.nodes[access["pointer"]], self.event, self.nodes)) if carried else set()
        values = [x for x in subterms([self.nodes[access["value"]]]) if x.op == "read"]
        named_by = [(x, x.attr.partition("@")[0]) for x in values]
        return {x.attr for x, base in named_by if base in bases or (base, x.args[0].id) in direct}

    # ---- loops

    def loop(self, carry: Data) -> None:
        """A closed form holds after the first iteration, and each iteration keeps it."""
        loop = carry["loop"]
        counter = self.nodes[loop["counter"]].axis
        site = {"loops": loop["outer_loops"], "lanes": carry["lanes"], "guard": loop["guard"]}
        n = of(atom("sym", "int", *counter))
        pairs = (("entry", ZERO, ONE), ("step", n, add(n, ONE)))
        for which, now, then in pairs:

            def goal(ctx: Context, now: Poly = now, then: Poly = then) -> bool:
                here = self.world.running(site, {}, ctx)
                trips = self.a.finite(self.nodes[loop["trips"]], {}, here)
                bounds = [le(minus(ONE, now)), lt(minus(now, trips))] if now is not ZERO else [le(minus(ONE, trips))]
                here = self.a.given(here, *bounds)
                if self.a.impossible(here):
                    return True
                return self.c.equal(
                    lambda x: self.carried(carry["form"], {counter: then}, x),
                    lambda x: self.carried(carry["next"], {counter: now}, x),
                    here,
                )

            self.c.attempt("loops", f"{which} of the loop at line {loop['line']}: {carry['name']}", goal, self.c.ctx)

    def carried(self, n: int, env: Env, ctx: Context) -> Value:
        """A value of a loop variable as a number: of a pointer its offset."""
        t = self.nodes[n]
        if t.sort == "ptr":
            return self.world.pointer(t, env, ctx)[1]
        return self.a.value(t, env, ctx)

    # ---- safety

    def is_size(self, n: Node, ctx: Context) -> bool:
        """0 <= n."""
        return self.a.implied(ctx, le(scaled(self.a.finite(n, {}, ctx), -1)))

    def bounded(self, access: Data, ctx: Context) -> bool:
        """0 <= offset < length."""
        here = self.world.running(access, {}, ctx)
        if self.a.impossible(here):
            return True
        view, o = self.world.place(access, {}, here)
        length = self.c.number(self.c.buffers[view.buffer]["length"])
        names = self.world.locals(access)
        return self.a.least(o, here, names) and self.a.least(minus(minus(length, o), ONE), here, names)

    def arithmetic(self, k: int, operation: Data) -> None:
        """An integer operation has its value: it fits its width, its divisor is not 0."""
        what = f"{operation['kind']} of {operation['bits']} bits at line {operation['line']}"
        for clause in self.c.certificate["contract"]:
            if clause.get("arithmetic") == [self.c.data["number"], self.position, k]:
                meant = shown(self.nodes[operation["term"]])
                self.c.report.assumed.append(f"{self.c.label}{what} has its value: {meant}")
                return
        self.c.attempt("integers", what, lambda ctx: self.exact(operation, ctx), self.c.ctx)

    def exact(self, operation: Data, ctx: Context) -> bool:
        """The condition of an integer operation."""
        here = self.world.running(operation, {}, ctx)
        if self.a.impossible(here):
            return True
        kind, bits = operation["kind"], operation["bits"]
        here = self.a.given(here, *self.c.widths) if kind in ("wrap", "exact") else here
        if kind in ("assume", "descriptor", "hint", "clamp", "assert"):
            return self.a.known(self.nodes[operation["term"]], {}, here)
        p = self.a.finite(self.nodes[operation["term"]], {}, here)
        names = self.world.locals(operation)

        def between(low: int, high: int) -> bool:
            above = self.a.least(minus(p, number(low)), here, names)
            return above and self.a.least(minus(number(high - 1), p), here, names)

        match kind:
            case "wrap" | "exact":
                return between(-(1 << bits - 1), 1 << bits - 1)
            case "unsigned":
                return between(0, 1 << bits)
            case "shift":
                return between(0, bits)
            case "positive":
                return self.a.least(minus(p, ONE), here, names)
            case "divisor":
                return self.a.implied(here, negated(eq(p))) or self.a.least(minus(p, ONE), here, names)
        raise NotChecked(f"a condition of kind {kind}")

    # ---- stores

    def stores(self) -> None:
        """For each buffer that is written: every store stores what the claim says, and every element has one."""
        c = self.c
        before = dict(c.contents)
        for buffer in sorted(self.world.written):
            writes = [x for x in self.event["accesses"] if x["kind"] != "load"]
            mine = [x for x in writes if buffer in c.buffers_of(x, self.event)]
            if any(len(c.buffers_of(x, self.event)) > 1 for x in mine):
                raise NotChecked("a store that is not to one tensor")
            if all(x["kind"] == "add" for x in mine):
                c.contents[buffer] = self.accumulated(mine, before[buffer])
                continue
            if any(x["kind"] != "store" for x in mine):
                kinds = sorted({x["kind"] for x in mine})
                c.report.failures.append(
                    Failure(f"{c.label}contents of {buffer}", f"atomic operations ({', '.join(kinds)})")
                )
                c.contents[buffer] = _unknown(buffer)
                continue
            c.contents[buffer] = self.after(buffer, mine, before)

    def accumulated(self, mine: Sequence[Data], before: Content) -> Content:
        """The contents after atomic additions: what was there, and the sum of what all executions add."""

        def content(o: Poly, ctx: Context) -> Value:
            with self.c.inside(self.world):
                held = before(o, ctx)
                if not isinstance(held, Poly):
                    raise NotChecked("an infinite number is calculated with")
                return add(held, *(self.added(x, o, ctx) for x in mine))

        return content

    def added(self, x: Data, o: Poly, ctx: Context) -> Poly:
        """The sum of what the executions of an atomic addition add to element o."""
        a, table = self.a, self.nodes
        axes = [table[self.event["loops"][k]["counter"]] for k in x["loops"]] + [table[n] for n in x["lanes"]]
        env: dict[AxisKey, Poly] = {t.axis: of(variable()) for t in axes}
        for k, n in enumerate(self.world.grid):
            env[f"pid{k}", -1] = ZERO if a.finite(n, {}, ctx) is ONE else of(variable())
        bound = [next(iter(p.vars)) for p in env.values() if p is not ZERO]

        def body(here: Context) -> tuple[Formula, Poly]:
            inside = self.world.running(x, env, here)
            met = a.given(inside, eq(minus(self.world.place(x, env, inside)[1], o)))
            guards = conj(*(f for f in met.facts if f not in ctx.facts))
            return guards, ZERO if a.impossible(met) else a.finite(table[x["value"]], env, met)

        total = ZERO
        for _, (guards, value) in a.by_cases(body, ctx, bound, TRUE):
            if value is not ZERO:
                total = add(total, self.summed(x, env, bound, guards, value, o, ctx))
        return total

    def summed(
        self, x: Data, env: Env, bound: Sequence[int], guards: Formula, value: Poly, o: Poly, ctx: Context
    ) -> Poly:
        """The sum over programs, iterations and lanes, of which the element may determine some."""
        a = self.a
        for index, inverse in self.inverses(x, o, ctx):
            keys = [self.nodes[n].axis for n in inverse["index"]]
            for unknown, term in inverse["values"]:
                t = self.nodes[unknown]
                v = next(iter(env[(t.attr, -1) if t.op == "size" else t.axis].vars), None)
                w = a.finite(self.nodes[term], dict(zip(keys, index, strict=True)), ctx)
                if v is not None and v in bound and a.implied(a.given(ctx, guards), eq(minus(of(ATOMS[v]), w))):
                    guards, value = put_formula(guards, {v: w}), put(value, {v: w})
                    bound = [b for b in bound if b != v]
        free = [f for f in (guards[1:] if guards[0] == "and" else (guards,)) if not variables(f) & set(bound)]
        for f in free:
            answer = a.decided(ctx, f)
            if answer is None:
                raise Split(next(y for y in literals(f) if a.decided(ctx, y) is None))
            if not answer:
                return ZERO
        rest = conj(*(f for f in (guards[1:] if guards[0] == "and" else (guards,)) if f not in free))
        return a.sum(tuple(bound), rest, value, ctx) if bound else value

    def inverses(self, x: Data, o: Poly, ctx: Context) -> Iterator[tuple[Sequence[Poly], Data]]:
        """Who writes element o, by the certificate, and the index that this is said of."""
        c = self.c
        buffers = c.buffers_of(x, self.event)
        views = [v for v in (*c.outputs.values(), *c.inputs.values()) if v.buffer in buffers]
        for inverse in x["inverse"]:
            for v in views:
                if len(inverse["index"]) == len(v.shape):
                    yield c.decoded(v, o, ctx)[0], inverse
            if len(inverse["index"]) == 1:
                yield [o], inverse

    def target(self, buffer: str) -> tuple[str, View, Data, bool] | None:
        """(name, view, axes and term, whether it is the formula of an output) of the contents after this launch."""
        c = self.c
        later = c.data["events"][self.position + 1 :]
        last = all(buffer not in c.written(e) for e in later)
        names = [n for n, v in {**c.outputs, **c.inputs}.items() if v.buffer == buffer]
        if last and len(names) == 1 and names[0] in c.certificate["formulas"]:
            name = names[0]
            return name, {**c.outputs, **c.inputs}[name], c.certificate["formulas"][name], True
        hint = self.event["after"].get(buffer)
        return None if hint is None else (buffer, c.view(hint["view"]), hint, False)

    def after(self, buffer: str, mine: Sequence[Data], before: Mapping[str, Content]) -> Content:
        """The contents of a buffer after its stores."""
        c = self.c
        found = self.target(buffer)
        if found is None:
            c.report.failures.append(Failure(f"{c.label}contents of {buffer}", "the certificate does not say them"))
            return _unknown(buffer)
        name, view, term, final = found
        for x in mine:
            what = f"value equality at line {x['line']}: {name}"
            c.attempt("stores", what, partial(self.stored, x, view, term, final), c.ctx)
        held = before[buffer]
        covered = partial(self.covered, mine, view, term, final, held)
        c.attempt("coverage", f"every element of {name} is stored, or is there before", covered, c.ctx)
        if final:
            c.proved[name] = buffer  # or the report says that it is not
        world = ReferenceWorld(c) if final else self.world
        return c.overlay(view, term["axes"], term["term"], before, world)

    def stored(self, x: Data, view: View, term: Data, final: bool, ctx: Context) -> bool:
        """The value is what the claim says of the element, wherever the store is executed."""
        here = self.world.running(x, {}, ctx)
        if self.a.impossible(here):
            return True
        _, o = self.world.place(x, {}, here)
        index, inside = self.c.decoded(view, o, here)
        if not self.a.implied(here, inside):
            raise NotChecked("could not prove that the store is inside the tensor")
        return self.c.equal(
            lambda ctx: self.a.value(self.nodes[x["value"]], {}, ctx),
            lambda ctx: self.expected(term, index, final, ctx),
            here,
        )

    def expected(self, term: Data, index: Sequence[Poly], final: bool, ctx: Context) -> Value:
        """The formula, or the contents that the certificate states, at an index."""
        if final:
            return self.c.of_formula(term, index, ctx)
        keys = [self.nodes[n].axis for n in term["axes"]]
        return self.a.value(self.nodes[term["term"]], dict(zip(keys, index, strict=True)), ctx)

    def covered(self, mine: Sequence[Data], view: View, term: Data, final: bool, held: Content, ctx: Context) -> bool:
        """Every index has a program, iteration and lane that store it; else what the buffer held is what is stored."""
        axes = [self.nodes[n] for n in term["axes"]]
        index = [of(atom("sym", "int", f"index{d}", -1)) for d in range(len(axes))]
        here = self.a.given(ctx, *(within(i, n) for i, n in zip(index, view.shape, strict=True)))
        conditions = []
        for x in mine:
            for inverse in x["inverse"]:
                if len(inverse["index"]) == len(index):
                    conditions.append(self.writer(x, inverse, view, index, here))
        if conditions and self.a.implied(here, disj(*conditions)):
            return True
        rest = self.a.given(here, negated(disj(*conditions)))
        return self.c.equal(
            lambda x: held(view.element(index), x), lambda x: self.expected(term, index, final, x), rest
        )

    def writer(self, x: Data, inverse: Data, view: View, index: Sequence[Poly], ctx: Context) -> Formula:
        """The condition that the execution of a store that the certificate names stores the element."""
        keys = [self.nodes[n].axis for n in inverse["index"]]
        given = dict(zip(keys, index, strict=True))
        env: dict[AxisKey, Poly] = {}
        for unknown, term in inverse["values"]:
            t = self.nodes[unknown]
            env[(t.attr, -1) if t.op == "size" else t.axis] = self.a.finite(self.nodes[term], given, ctx)
        conditions: list[Formula] = []
        for k, n in enumerate(self.world.grid):
            p = env.get((f"pid{k}", -1), ZERO)
            env[f"pid{k}", -1] = p
            conditions.append(within(p, self.a.finite(n, {}, ctx)))
        for k in x["loops"]:
            loop = self.event["loops"][k]
            counter = self.nodes[loop["counter"]]
            if counter.axis not in env:
                raise NotChecked("the certificate names no iteration that stores an element")
            conditions.append(within(env[counter.axis], self.a.finite(self.nodes[loop["trips"]], env, ctx)))
            conditions.append(self.a.condition(self.nodes[loop["guard"]], env, ctx))
        for n in x["lanes"]:
            lane = self.nodes[n]
            env.setdefault(lane.axis, ZERO)
            conditions.append(within(env[lane.axis], self.a.finite(lane.attr[1], env, ctx)))
        ranges = conj(*conditions)
        if ranges == FALSE:
            return FALSE
        here = self.a.given(ctx, ranges)
        guard = self.a.condition(self.nodes[x["guard"]], env, here)
        _, o = self.world.place(x, env, self.a.given(here, guard))
        return conj(ranges, guard, eq(minus(o, view.element(index))))

    # ---- loads and stores of one launch

    @staticmethod
    def meeting(c: Configured, world: World, buffer: str) -> str | None:
        """Why a load of the launch may meet a store to the same buffer; None if it meets none but its own lane's later
        one."""
        accesses = [x for x in world.launch["accesses"] if buffer in c.buffers_of(x, world.launch)]
        loads = [x for x in accesses if x["kind"] == "load"]
        stores = [x for x in accesses if x["kind"] != "load"]
        for x in loads:
            for s in stores:
                if not _in_order(c, world, x, s, buffer):
                    return f"the load at line {x['line']} may meet the store at line {s['line']}"
        return None


def _in_order(c: Configured, world: World, x: Data, s: Data, buffer: str) -> bool:
    """Whether a store that meets a load is a later one of the same lane and program."""
    table, a = c.nodes, c.a
    keys = [table[world.launch["loops"][k]["counter"]].axis for k in s["loops"]] + [table[n].axis for n in s["lanes"]]
    other: dict[AxisKey, Poly] = {k: of(variable()) for k in keys}
    other |= {(f"pid{k}", -1): of(variable()) for k in range(3)}

    def goal(ctx: Context) -> bool:
        here = world.running(s, other, world.running(x, {}, ctx))
        if a.impossible(here):
            return True
        (_, o), (_, p) = world.place(x, {}, here), world.place(s, other, here)
        if a.implied(here, negated(eq(minus(o, p)))):
            return True
        if x["order"] >= s["order"] or x["loops"] != s["loops"] or len(x["lanes"]) != len(s["lanes"]):
            return False
        views = [v for v in (*c.outputs.values(), *c.inputs.values(), *world.pointers.values()) if v.buffer == buffer]
        (mine, _), (theirs, _) = c.decoded(views[0], o, here), c.decoded(views[0], p, here)
        met = a.given(here, *(eq(minus(i, j)) for i, j in zip(mine, theirs, strict=True)))
        pairs = [(_program(k, {}), other[f"pid{k}", -1]) for k in range(3)]
        pairs += [
            (a.finite(table[m], {}, here), other[table[n].axis]) for m, n in zip(x["lanes"], s["lanes"], strict=True)
        ]
        pairs += [
            (
                a.finite(table[world.launch["loops"][k]["counter"]], {}, here),
                other[table[world.launch["loops"][k]["counter"]].axis],
            )
            for k in s["loops"]
        ]
        return all(a.implied(met, eq(minus(i, j))) for i, j in pairs)

    try:
        return c.cases(goal, c.ctx, 0)
    except (NotChecked, Split):
        return False


def _pinned(f: Formula) -> tuple[str, Fraction]:
    """(n, c) of a fact n = c about a size; ("", 0) of others."""
    terms = dict(f[1].terms) if f[0] == "eq" and f[1].whole else {}
    c = Fraction(terms.pop(UNIT, 0))
    if len(terms) == 1:
        ((factors, _), k) = next(iter(terms.items()))
        only = ATOMS[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 and abs(k) == 1 else None
        if only is not None and only.kind == "sym" and len(only.data) == 1:
            return str(only.data[0]), -c / k
    return "", Fraction(0)


def _whole(dtype: str) -> bool:
    """Whether a dtype holds integers (or truth values)."""
    return dtype[0] not in "fb" or dtype == "bool"


def _unknown(buffer: str) -> Content:
    def content(o: Poly, ctx: Context) -> Value:  # noqa: ARG001
        raise NotChecked(f"the contents of {buffer} are not known")

    return content


CRASHES = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def check(certificate: Data) -> Report:
    """Replays a certificate (the object that its JSON is). Raises Wrong where it is none."""
    validate(certificate, VERSION)
    report = Report([], solvers()[0], given=_given(certificate))
    for part in certificate["parts"]:
        try:
            _add(report, part["label"], _checked({**part, "nodes": nodes(part["terms"])}))
        except CRASHES as e:
            raise Wrong(f"the certificate is not complete: {type(e).__name__} {e}") from e
    report.claim, report.assumed = [*map(escaped, report.claim)], [*map(escaped, report.assumed)]
    report.failures = [Failure(escaped(f.what), escaped(f.why)) for f in report.failures]
    return report


def _add(report: Report, label: str, part: Report) -> None:
    """The report with that of a part: each must be checked."""
    before = f"{named(label)}: " if label else ""
    if not part.checked and not part.failures:
        part.failures.append(Failure("nothing was shown", ""))
    report.claim += [before + x for x in part.claim]
    report.assumed += [before + x for x in part.assumed]
    report.failures += [Failure(before + f.what, f.why) for f in part.failures]
    report.questions += part.questions
    report.by_z3 += part.by_z3
    for kind, n in part.shown.items():
        report.shown[kind] = report.shown.get(kind, 0) + n


def _where(c: Data, labels: Mapping[int, str]) -> str:
    """The configuration that a clause is of."""
    if c["configuration"] is None:
        return ""
    if c["configuration"] not in labels:
        raise Wrong("a clause is of a configuration that there is not")
    return f" (where {labels[c['configuration']] or c['configuration']})"


def _closed(what: str, t: Node, axes: Sequence[Node] = ()) -> None:
    """Raises Wrong for a term that speaks of programs, lanes or iterations, or whose axes are none or not distinct."""
    if any(a.op != "axis" for a in axes) or len({a.axis for a in axes}) < len(axes):
        raise Wrong(f"{what}: its axes are not distinct axes")
    if not t.free <= {a.axis for a in axes}:
        raise Wrong(f"{what} speaks of programs, lanes or iterations")


def _all_closed(certificate: Data) -> None:
    """Raises Wrong where a formula, a condition or contents depend on which program or lane looks at them."""
    table = certificate["nodes"]
    parts = [(f"the formula of {n}", f["term"], f["axes"]) for n, f in certificate["formulas"].items()]
    parts += [("a clause", c["term"], []) for c in certificate["contract"] if c["term"] is not None]
    for c in certificate["configurations"]:
        parts += [("a fact", n, []) for n in c["facts"]]
        parts += [(f"buffer {b['name']}", b["initial"], [b["axis"]]) for b in c["buffers"] if not b["input"]]
        for event in c["events"]:
            outs = event["outputs"] if event["kind"] == "host" else event["after"].values()
            parts += [("the contents of a buffer", out["term"], out["axes"]) for out in outs]
    for what, term, axes in parts:
        _closed(what, table[term], [table[n] for n in axes])


def _claimed(certificate: Data, report: Report) -> None:
    """The claim, made of the terms that are checked; clauses without a term are assumed."""
    table = certificate["nodes"]
    labels = {c["number"]: c["label"] for c in certificate["configurations"]}
    for n, f in certificate["formulas"].items():
        report.claim.append(equation(n, [table[a] for a in f["axes"]], table[f["term"]]))
    for c in certificate["contract"]:
        if c["term"] is not None:
            report.claim.append(shown(table[c["term"]]) + _where(c, labels))
        elif "arithmetic" not in c:  # that operation is printed itself
            report.assumed.append(f"(a text that is not checked) {named(c['kind'])}: {c['text']}{_where(c, labels)}")


def _given(certificate: Data) -> str:
    """A sentence that no checker of the file alone can do without: the summary is taken as given, and of what."""
    events = [e for p in certificate["parts"] for c in p["configurations"] for e in c["events"]]
    launches = [e for e in events if e["kind"] == "launch"]
    kernels = ", ".join(dict.fromkeys(f"{named(e['kernel'])} {_short(e['ttir'])}" for e in launches)) or "no kernel"
    accesses, integers = (sum(len(e[k]) for e in launches) for k in ("accesses", "arithmetic"))
    source = f"{certificate['file']}::{certificate['case']}"
    made = certificate["made"]
    digests = ", ".join(f"{k} {_short(made[k])}" for k in ("case", "host", "reference") if made[k])
    return escaped(
        f"the summary of the kernel is taken as given ({kernels}; launches: {len(launches)}, accesses: {accesses}, "
        f"integer operations: {integers}); the file says that trilift made it from {source} ({digests}; triton "
        f"{made['triton']}, torch {made['torch']}), which --against {source} compares"
    )


def _short(digest: str) -> str:
    return digest[:SHOWN]


def _checked(certificate: Data) -> Report:
    report = Report([], solvers()[0])
    _all_closed(certificate)
    _claimed(certificate, report)
    for data in certificate["configurations"]:
        configured = Configured(certificate, data, report)
        try:
            configured.run()
        except NotChecked as stop:
            report.failures.append(Failure(f"{configured.label}configuration", str(stop)))
        except Split as split:
            report.failures.append(Failure(f"{configured.label}configuration", str(split)))
        report.questions += configured.a.asked
        report.by_z3 += configured.a.by_z3
    if not certificate["formulas"]:
        report.failures.append(Failure("claim", "it names no output"))
    if all(c["vacuous"] for c in certificate["configurations"]):
        report.failures.append(Failure("configurations", "there is none that compares an output"))
    return report

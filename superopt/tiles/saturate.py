"""Equality saturation of tile programs: all programs that the rules make of one, as an e-graph.

saturated(p)          the classes of equal statements and values, after so many rounds
Classes.drawn(...)    a program of them, at random
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from trilift.lift.simplify.egraph import bindings
from trilift.lift.terms import term as T
from trilift.lift.terms.term import Term

from ..program.abstract import FORMS, Class, function, lacking
from ..program.program import Node, node, source
from .rules import FACTS, FUNCTIONS, PUT, RULES, Rule
from .tile_program import Loop, Seq, Statement, Store, TileProgram, joined

X = TypeVar("X")
NODES = 100_000  # of an e-graph
SATURATION_ROUNDS = 8
LANGUAGE = """
(sort Names (Set String))
(datatype E (Var String) (Const String) (Add E E) (Mul E E) (Div E E) (Exp E) (Sum String E) (Max String E)
  (Fun String E) (Fun2 String E E) (Fun3 String E E E))
(datatype S (Store String E) (Loop String S) (Seq S S))
(constructor Put (String E S) S :unextractable)
(constructor In (String E E) E :unextractable)
(relation Lacks (E String))
(relation Bit (String))
(relation Looped (String))
(function Having (String) Names :no-merge)
(function Reads (E) Names :merge (set-intersect old new))
(function Folds (E) Names :merge (set-intersect old new))
(function R (S) Names :merge (set-intersect old new))
(function W (S) Names :merge (set-intersect old new))
(function F (S) Names :merge (set-intersect old new))
(ruleset facts)
(rule ((= e (Const c)) (Bit i)) ((Lacks e i)) :ruleset facts)
(rule ((= e (Var x))) ((set (Reads e) (set-of x)) (set (Folds e) (set-empty))) :ruleset facts)
(rule ((= e (Const c))) ((set (Reads e) (set-empty)) (set (Folds e) (set-empty))) :ruleset facts)
(rule ((= s (Store t e)) (= r (Reads e)) (= f (Folds e)))
  ((set (R s) r) (set (W s) (set-of t)) (set (F s) f)) :ruleset facts)
(rule ((= s (Loop n a)) (= r (R a)) (= w (W a)) (= f (F a)))
  ((set (R s) r) (set (W s) w) (set (F s) f)) :ruleset facts)
(rule ((= s (Seq a b)) (= ra (R a)) (= wa (W a)) (= fa (F a)) (= rb (R b)) (= wb (W b)) (= fb (F b)))
  ((set (R s) (set-union ra rb)) (set (W s) (set-union wa wb)) (set (F s) (set-union fa fb))) :ruleset facts)
"""
VALUES = ("Var", "Const", "Add", "Mul", "Div", "Exp", "Sum", "Max", "Fun", "Fun2", "Fun3")
STATEMENTS = ("Store", "Loop", "Seq")
TEXTS = {"Var": 1, "Const": 1, "Sum": 1, "Max": 1, "Fun": 1, "Fun2": 1, "Fun3": 1, "Store": 1, "Loop": 1}


@dataclass(frozen=True)
class Member:
    """One way to be of a class: `texts`: names of tensors, axes, functions; `args`: classes."""

    op: str
    texts: tuple[str, ...]
    args: tuple[Class, ...]


@dataclass
class Classes:
    """An e-graph: the members of each class that is below the program; `whole`: nothing was left to find; `nodes` of
    the whole e-graph; `looped`: the axes that the rules make loops over."""

    program: TileProgram
    members: dict[Class, list[Member]]
    root: Class
    functions: dict[str, tuple[str, Term | None]]
    constants: dict[str, Term]
    whole: bool
    nodes: int
    applied: bool  # some rule
    looped: frozenset[str]

    @cached_property
    def depth(self) -> dict[Class, int]:
        """The least depth of a term of each class."""
        deep = lambda m, known: 1 + max((known[a] for a in m.args), default=0)  # noqa: E731
        return self.fixed(lambda m, known: deep(m, known) if all(a in known for a in m.args) else None, min)

    def fixed(self, f: Callable[[Member, dict[Class, X]], X | None], join: Callable[[X, X], X]) -> dict[Class, X]:
        """Of each class what its members have together, by a fixed point: f is of a member by what is known of its
        arguments, None where that is not enough."""
        out: dict[Class, X] = {}
        changed = True
        while changed:
            changed = False
            for c, members in reversed(self.members.items()):
                for m in members:
                    found = f(m, out)
                    if found is not None and (c not in out or (found := join(out[c], found)) != out[c]):
                        out[c], changed = found, True
        return out

    def drawn(self, rng: random.Random, most: int = 24) -> TileProgram:
        """A program at random, of a depth that is not much above the least possible beyond `most`."""
        return replace(self.program, body=_flat(self._statement(self.root, rng, most)))

    def _pick(self, c: Class, rng: random.Random, left: int) -> Member:
        """A member that can be finished at this depth; the shallowest where none can."""
        deep = lambda m: 1 + max((self.depth[a] for a in m.args), default=0)  # noqa: E731
        known = [m for m in self.members[c] if all(a in self.depth for a in m.args)]
        fit = [m for m in known if deep(m) <= left]
        return rng.choice(fit) if fit else min(known, key=deep)

    def _statement(self, c: Class, rng: random.Random, left: int) -> Statement:
        m = self._pick(c, rng, left)
        if m.op == "Store":
            return Store(m.texts[0], self._value(m.args[0], rng, left - 1))
        parts = [self._statement(a, rng, left - 1) for a in m.args]
        return Loop(m.texts[0], parts[0]) if m.op == "Loop" else Seq(parts[0], parts[1])

    def _value(self, c: Class, rng: random.Random, left: int) -> Node:
        m = self._pick(c, rng, left)
        return self.node(m, [self._value(a, rng, left - 1) for a in m.args])

    def node(self, m: Member, args: Sequence[Node]) -> Node:
        """The value of a member of these arguments."""
        if m.op == "Var":
            return source(m.texts[0], self.program.tensors[m.texts[0]].axes)
        if m.op == "Const":
            return node("const", attr=self.constants[m.texts[0]])
        if m.op in ("Sum", "Max"):
            return node(m.op.lower(), *args, attr=m.texts[0])
        if m.op.startswith("Fun"):
            op, attr = self.functions[m.texts[0]]
            return node(op, *args, attr=attr)
        return node(m.op.lower(), *args)


def _flat(s: Statement) -> Statement:
    """The statement with its sequences nested to the right."""
    if isinstance(s, Seq):
        return joined(_flat(s.first), _flat(s.rest))
    return Loop(s.axis, _flat(s.body)) if isinstance(s, Loop) else s


# ---- saturation ------------------------------------------------------------------------------------------------------


def saturated(
    p: TileProgram,
    rules: Sequence[Rule] = RULES,
    rounds: int = SATURATION_ROUNDS,
    nodes: int = NODES,
    twins: bool = False,
) -> Classes:
    """The e-graph after so many rounds, or when it has so many nodes, which is said (`whole`). `twins`: with the forms
    that do not hold in place of the rules."""
    return staged(p, [Stage(tuple(rules), rounds)], nodes, twins)


@dataclass(frozen=True, slots=True)
class Stage:
    """Rules that are applied together, for so many rounds or until nothing is new."""

    rules: tuple[Rule, ...]
    rounds: int


def staged(
    p: TileProgram,
    stages: Sequence[Stage],
    nodes: int = NODES,
    twins: bool = False,
    looped: Sequence[str] | None = None,
) -> Classes:
    """The e-graph after the stages, one after the other: what makes others apply comes first, and what it alone makes
    grow rests after it. `whole`: nothing was left to find in any of them. `looped`: the axes that are looped over, all
    without it."""
    words = Words(p)
    root = words.statement(p.body)
    over = p.sizes if looped is None else looped
    lines = declarations(p, over)
    for k, stage in enumerate(stages):
        laws = [r.twin if twins and r.twin else r.text for r in stage.rules]
        lines += [
            f"(ruleset stage{k})",
            *(text.replace(":ruleset rules", f":ruleset stage{k}") for text in (PUT, *laws)),
        ]
    graph = bindings().EGraph()
    graph.run_program(*graph.parse_program("\n".join([*lines, f"(let $root {root})"])))
    run_rules(graph, "facts")
    applied, whole = False, True
    found = _serialised(graph)
    for k, stage in enumerate(stages):
        ended = False
        for _ in range(stage.rounds):
            ended = not run_rules(graph, f"stage{k}")
            run_rules(graph, "facts")
            applied = applied or not ended
            found = _serialised(graph)
            if ended or len(found["nodes"]) > nodes:
                break
        whole = whole and ended
    return _exported(found, words, whole, applied, frozenset(over))


def declarations(p: TileProgram, looped: Iterable[str]) -> list[str]:
    """The language of an e-graph, with what is known of the tensors and axes of a program, some of them looped over."""
    return [LANGUAGE, FACTS, *_facts(p), *(f'(Looped "{a}")' for a in looped), *_sets()]


def run_rules(graph: Any, rules: str) -> bool:
    """One round of the rules, or all that the facts tell; whether anything is new."""
    schedule = "(saturate facts)" if rules == "facts" else f"(run {rules})"
    out = graph.run_program(*graph.parse_program(f"(run-schedule {schedule})"))
    return any(getattr(r, "report", None) is not None and r.report.updated for r in out)


def _serialised(graph: Any) -> dict[str, dict[str, Any]]:
    out = graph.serialize([], max_functions=None, max_calls_per_function=None, include_temporary_functions=True)
    found: dict[str, dict[str, Any]] = json.loads(out.to_json())
    return found


def _sets() -> list[str]:
    """The reads and folds of a value, by its form."""
    out = lacking(FORMS, ["Sum", "Max"], "facts")
    for form in FORMS:
        args = [a for a in form.strip("()").split()[1:] if a != "f"]
        for name in ("Reads", "Folds"):
            given = " ".join(f"(= s{a} ({name} {a}))" for a in args)
            union = f"s{args[0]}"
            for a in args[1:]:
                union = f"(set-union {union} s{a})"
            out.append(f"(rule ((= e {form}) {given}) ((set ({name} e) {union})) :ruleset facts)")
    for fold in ("Sum", "Max"):
        out.append(f"(rule ((= e ({fold} i a)) (= r (Reads a))) ((set (Reads e) r)) :ruleset facts)")
        out.append(
            f"(rule ((= e ({fold} i a)) (= f (Folds a))) ((set (Folds e) (set-union f (set-of i)))) :ruleset facts)"
        )
    return out


def _facts(p: TileProgram) -> list[str]:
    out = []
    for a in p.sizes:
        having = [f'"{t.name}"' for t in p.tensors.values() if a in t.axes]
        names = f"(set-of {' '.join(having)})" if having else "(set-empty)"
        out += [f'(Bit "{a}")', f'(set (Having "{a}") {names})']
        out += [f'(Lacks (Var "{t.name}") "{a}")' for t in p.tensors.values() if a not in t.axes]
    return out


@dataclass
class Words:
    """A tile program in the language of the e-graph. `functions`: what its names of functions mean."""

    program: TileProgram
    functions: dict[str, tuple[str, Term | None]] = field(default_factory=lambda: dict(FUNCTIONS))
    constants: dict[str, Term] = field(default_factory=lambda: {"0": T.const(0), "-inf": T.const(-math.inf)})

    def statement(self, s: Statement) -> str:
        if isinstance(s, Store):
            return f"(Store {json.dumps(s.tensor)} {self.value(s.value)})"
        if isinstance(s, Loop):
            return f"(Loop {json.dumps(s.axis)} {self.statement(s.body)})"
        return f"(Seq {self.statement(s.first)} {self.statement(s.rest)})"

    def value(self, n: Node) -> str:
        args = " ".join(self.value(a) for a in n.args)
        if n.op == "input":
            return f"(Var {json.dumps(n.attr)})"
        if n.op == "const":
            assert isinstance(n.attr, Term)
            name = str(n.attr.attr) if n.attr.is_const and n.attr.attr in (0, -math.inf) else f"#{len(self.constants)}"
            name = next((k for k, t in self.constants.items() if t is n.attr), name)
            self.constants.setdefault("0" if name in ("0", "0.0") else name, n.attr)
            return f'(Const "{"0" if name == "0.0" else name}")'
        if n.op in ("sum", "max"):
            return f"({n.op.capitalize()} {json.dumps(n.attr)} {args})"
        if n.op in ("add", "mul", "div", "exp"):
            return f"({n.op.capitalize()} {args})"
        name = next((k for k, (_, t) in FUNCTIONS.items() if t is n.attr), None) or function(n)
        self.functions.setdefault(name, (n.op, n.attr if isinstance(n.attr, Term) else None))
        return f"({('Fun', 'Fun2', 'Fun3')[len(n.args) - 1]} {json.dumps(name)} {args})"


def _exported(
    found: dict[str, dict[str, Any]], words: Words, whole: bool, applied: bool, looped: frozenset[str]
) -> Classes:  # fmt: skip
    """The nodes below the program."""
    nodes = found["nodes"]
    every: dict[Class, list[Member]] = defaultdict(list)
    text = {str(n["eclass"]): json.loads(n["op"]) for n in nodes.values() if str(n["op"]).startswith('"')}
    for n in nodes.values():
        op, children = str(n["op"]), [str(nodes[k]["eclass"]) for k in n["children"]]
        if op in VALUES or op in STATEMENTS:
            count = TEXTS.get(op, 0)
            every[str(n["eclass"])].append(
                Member(op, tuple(text[c] for c in children[:count]), tuple(children[count:]))
            )
    root = next(c for c, data in found["class_data"].items() if data.get("let") == "$root")
    members: dict[Class, list[Member]] = {}
    stack = [root]
    while stack:
        c = stack.pop()
        if c not in members:
            members[c] = every[c]
            stack += [a for m in every[c] for a in m.args]
    return Classes(words.program, members, root, words.functions, words.constants, whole, len(nodes), applied, looped)

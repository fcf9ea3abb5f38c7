"""Terms and laws in egglog: one constructor per operation, + * max min & | made binary, leaves opaque.

    (Num 0.5)  (Inf) (NegInf)  (Leaf 7)  (Size "n")     numbers, elements, sizes of axes
    (f_add a b)  (f_exp a)  (f_sum "n" a)               operations, folds and names over an axis
    (Lacks a "n")  (Positive a)  (NonNegative a)        facts: a does not depend on n; the signs that conditions ask for

Rules come from the rows of lift.simplify.laws. Each law has a ruleset of its own, so that a run may use any subset
of them.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

from ..language.definitions import DEFINITIONS
from ..language.idioms import certain_reads
from ..language.infix import number, spelling
from ..language.parse import pattern
from ..language.unfolding import unfold
from ..runtime import budget
from ..runtime.session import table
from ..terms import construct as T
from ..terms.ops import OPS
from ..terms.term import COMMUTATIVE, FOLDS, NAMED, Axis, Term
from .laws import FACTS, LAWS, Law

SIGNS = {"> 0": "Positive", ">= 0": "NonNegative", "!= 0": "NonZero"}
NUMBERS = {"u", "v"}  # pattern variables that stand for a number
COST = {"where": 2, "recip": 2, "sum": 3, "amax": 3, "amin": 3, "prod": 3, "exp": 2, "log": 2, "take": 40}

CORE = """
(relation Price (f64 i64))
(ruleset price)
(rule ((Price v c) (= n (Num v))) ((set-cost (Num v) c)) :ruleset price)
(ruleset core)
(rewrite (f_add a (Num 0.0)) a :subsume :ruleset core)
(rewrite (f_add (Num 0.0) a) a :subsume :ruleset core)
(rewrite (f_mul a (Num 1.0)) a :subsume :ruleset core)
(rewrite (f_mul (Num 1.0) a) a :subsume :ruleset core)
(rewrite (f_mul a (Num 0.0)) (Num 0.0) :subsume :ruleset core)
(rewrite (f_mul (Num 0.0) a) (Num 0.0) :subsume :ruleset core)
(rewrite (f_add (Num u) (Num v)) (Num (+ u v)) :subsume :ruleset core)
(rewrite (f_mul (Num u) (Num v)) (Num (* u v)) :subsume :ruleset core)
(rewrite (f_recip (Num u)) (Num (/ 1.0 u)) :ruleset core :when ((!= u 0.0)))
(rewrite (f_exp (Num 0.0)) (Num 1.0) :subsume :ruleset core)
(rewrite (f_log (Num 1.0)) (Num 0.0) :subsume :ruleset core)
(rewrite (f_recip (f_recip a)) a :subsume :ruleset core)
(rewrite (f_where p a a) a :subsume :ruleset core)
(rule ((= a (Num u)) (> u 0.0)) ((Positive a)) :ruleset core)
(rule ((= a (Num u)) (>= u 0.0)) ((NonNegative a)) :ruleset core)
(rule ((= a (Num u)) (!= u 0.0)) ((NonZero a)) :ruleset core)
(rule ((Positive a)) ((NonNegative a) (NonZero a)) :ruleset core)
(rule ((= c (f_mul a b)) (NonZero a) (NonZero b)) ((NonZero c)) :ruleset core)
"""


def _arity(op: str) -> int:
    return 2 if OPS[op].arity < 0 else OPS[op].arity


ELEMENTWISE = [name for name, row in OPS.items() if row.term is None and (row.arity > 0 or name in COMMUTATIVE)]


def _declarations() -> str:
    """The datatype: (f_op T ...) with the cost of one node, names as cheap as a node can be."""
    rows = [f"(f_{op} {'T ' * _arity(op)}:cost {COST.get(op, 1)})" for op in ELEMENTWISE]
    rows += [f"(f_{op} String T :cost {COST.get(op, 3)})" for op in FOLDS]
    rows += [
        f"(f_{d.name} {'String ' * d.on_axis}{'T ' * len(d.arguments)}:cost {COST.get(d.name, 1)})"
        for d in DEFINITIONS.values()
    ]
    facts = " ".join(f"(relation {s} (T))" for s in SIGNS.values())
    leaves = "(Num f64) (Leaf i64) (Inf) (NegInf) (Size String)"
    return f"""
(with-dynamic-cost (datatype T {leaves} {" ".join(rows)}))
(relation Lacks (T String))
(relation AnAxis (String))
(relation Defined (T))
{facts}"""


def _lacks() -> list[str]:
    """An operation lacks what its arguments lack, a fold the axis that it binds; it is defined where they are."""
    out = [
        "(rule ((= t (Num u))) ((Defined t)) :ruleset core)",
        "(rule ((= t (Size s))) ((Defined t)) :ruleset core)",
        "(rule ((= t (Num u)) (AnAxis i)) ((Lacks t i)) :ruleset core)",
        "(rule ((= t (Size s)) (AnAxis i)) ((Lacks t i)) :ruleset core)",
    ]
    for head, names, axis in _shapes():
        given = " ".join(f"(Lacks {a} i)" for a in names)
        out.append(f"(rule ((= t {head}) {given}) ((Lacks t i)) :ruleset core)")
        defined = " ".join(f"(Defined {a})" for a in names)
        out.append(f"(rule ((= t {head}) {defined}) ((Defined t)) :ruleset core)")
        if axis:
            others = " ".join(f"(Lacks {a} j)" for a in names[1:])
            out.append(f"(rule ((= t {head}) {others}) ((Lacks t j)) :ruleset core)")
    return out


def _shapes() -> Iterable[tuple[str, list[str], bool]]:
    for op in ELEMENTWISE:
        names = [f"a{k}" for k in range(_arity(op))]
        yield f"(f_{op} {' '.join(names)})", names, False
    for op in FOLDS:
        yield f"(f_{op} j a0)", ["a0"], True
    for d in DEFINITIONS.values():
        names = [f"a{k}" for k in range(len(d.arguments))]
        yield f"(f_{d.name} {'j ' * d.on_axis}{' '.join(names)})", names, d.binds


def _reorder() -> list[str]:
    out = [f"(rewrite (f_{op} a b) (f_{op} b a) :ruleset core)" for op in sorted(COMMUTATIVE)]
    regroup = "(rewrite (f_{0} a (f_{0} b c)) (f_{0} (f_{0} a b) c) :ruleset regroup)"
    return out + [regroup.format(op) for op in ("add", "mul")]


# ---- patterns --------------------------------------------------------------------------------------------------------


def _number(t: Term) -> str | None:
    """An egglog f64 expression, when the pattern is arithmetic on numbers alone."""
    if t.op == "const" and math.isfinite(t.attr):
        return repr(float(t.attr))
    if t.op == "scalar" and t.attr in NUMBERS:
        return str(t.attr)
    parts = [_number(a) for a in t.args]
    if t.op in ("add", "mul") and None not in parts:
        out = parts[0]
        for p in parts[1:]:
            out = f"({'+' if t.op == 'add' else '*'} {out} {p})"
        return out
    return None


def show(t: Term) -> str:
    """A pattern as an egglog expression."""
    if (u := _number(t)) is not None:
        return f"(Num {u})"
    match t.op:
        case "const":
            return "(Inf)" if t.attr > 0 else "(NegInf)"
        case "scalar":
            return str(t.attr)
        case "size":
            return f"(Size {t.attr})"
    over = [t.attr.name] if isinstance(t.attr, Axis) else []
    return _nested(t.op, over + [show(a) for a in t.args])


def _nested(op: str, args: Sequence[str]) -> str:
    if op in COMMUTATIVE:
        out = args[-1]
        for a in reversed(args[:-1]):
            out = f"(f_{op} {a} {out})"
        return out
    return f"(f_{op} {' '.join(args)})"


def conditions(text: str) -> list[str]:
    """`c without i, a > 0` as egglog facts."""
    return [_condition(c.strip()) for c in text.split(",") if c.strip()]


def _condition(text: str) -> str:
    if m := re.fullmatch(r"(\w+) without (\w)", text):
        return f"(Lacks {m[1]} {m[2]})"
    if text.endswith(" defined"):
        return f"(Defined {text.removesuffix(' defined')})"
    body, sign = re.fullmatch(r"(.+?) (>=?|!=) 0", text).groups()  # type: ignore[union-attr]
    return f"({SIGNS[sign + ' 0']} {show(pattern(body))})"


def rule(law: Law, name: str) -> str:
    when = f" :when ({' '.join(conditions(law.condition))})" if law.condition else ""
    left, right = show(pattern(law.left)), show(pattern(law.right))
    word = "birewrite" if law.arrow == "=" else "rewrite"
    return f"(ruleset {name})\n({word} {left} {right} :ruleset {name}{when})"


def _fact(derived: str, given: str) -> str:
    head = _condition(derived)
    body, sign = re.fullmatch(r"\((\w+) (.*)\)", head).group(2, 1)  # type: ignore[union-attr]
    return f"(rule ((= t {body}) {' '.join(conditions(given))}) (({sign} t)) :ruleset core)"


def law_ruleset(law: Law) -> str:
    return f"law{LAWS.index(law)}"


# ---- the program -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """Rules as text, which match where all operations of one of `sides` are, and may make those of `made`."""

    text: str
    sides: tuple[frozenset[str], ...]
    made: frozenset[str] = frozenset()
    law: str = ""  # its ruleset

    def applies(self, ops: frozenset[str]) -> bool:
        return any(side <= ops for side in self.sides)


@cache
def rows() -> tuple[Row, ...]:
    """All rules beside the core, in order."""
    plain = [*_lacks(), *_reorder(), *(_fact(*row) for row in FACTS)]
    return (*(Row(text, (operations(text),)) for text in plain), *map(_law_row, LAWS))


def _law_row(law: Law) -> Row:
    left, right = operations(show(pattern(law.left))), operations(show(pattern(law.right)))
    name = law_ruleset(law)
    return Row(rule(law, name), (left, right) if law.arrow == "=" else (left,), left | right, name)


def operations(text: str) -> frozenset[str]:
    """The operations that occur in an egglog text."""
    return frozenset(re.findall(r"\(f_(\w+)", text))


def reachable(ops: frozenset[str]) -> frozenset[str]:
    """The operations that the laws may make of these."""
    while True:
        more = ops.union(*(r.made for r in rows() if r.applies(ops)))
        if more == ops:
            return ops
        ops = more


def program(ops: frozenset[str] | None = None) -> str:
    """The egglog program before any term: all of it, or the rules that can match where these operations are."""
    rules = [r.text for r in rows() if ops is None or r.applies(ops)]
    return "\n".join([_declarations(), CORE, "(ruleset regroup)", *rules])


# ---- terms -----------------------------------------------------------------------------------------------------------


@dataclass
class Coder:
    """Terms to egglog and back. Integer expressions other than sums and products of sizes stay opaque, as leaves."""

    root: Term
    leaves: list[Term] = field(default_factory=list)
    axes: dict[str, Axis] = field(default_factory=dict)
    _known: dict[int, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def encode(self, t: Term) -> str:
        """The name of the global that holds t; its definition and those of its subterms go to `lines`."""
        if t.id not in self._known:
            text = self._encode(t)
            self._known[t.id] = f"$t{len(self._known)}"
            self.lines.append(f"(let {self._known[t.id]} {text})")
        return self._known[t.id]

    def _encode(self, t: Term) -> str:
        if t.op == "const" and t.type != T.BOOL and (t.type == T.REAL or abs(t.attr) < 2**53):
            return show(t)
        if self._opaque(t):
            self.leaves.append(t)
            return f"(Leaf {len(self.leaves) - 1})"
        if isinstance(t.attr, Axis):
            return self._over(t)
        args = sorted(t.args, key=spelling) if t.op in COMMUTATIVE else t.args
        return _nested(t.op, [self.encode(a) for a in args])

    def _over(self, t: Term) -> str:
        if self.axes.setdefault(t.attr.name, t.attr) != t.attr:
            raise ValueError(f"two axes have the name {t.attr.name}")
        return f'(f_{t.op} "{t.attr.name}" {" ".join(self.encode(a) for a in t.args)})'

    def _opaque(self, t: Term) -> bool:
        if t.op in FOLDS or t.op in NAMED:
            return t.op.startswith("arg")
        if t.op not in ELEMENTWISE or t.attr is not None or len(t.args) < _arity(t.op):
            return True
        if t.type == T.INT:
            return t.op not in ("add", "mul")
        return t.type == T.BOOL and not any(a.type == T.REAL for a in t.args) and t.op not in ("and", "or", "not")

    def facts(self) -> list[str]:
        """The axes that the leaves lack, and the sizes of the axes: mean(n, a) is found with a size N and with a size
        64."""
        for a in list(self.axes.values()):
            self.lines += [
                f'(union (Size "{a.name}") {self.encode(a.size)})',
                f'(f_recip (Size "{a.name}"))',
                f'(AnAxis "{a.name}")',
            ]
        self._takes()
        out = [
            f'(Lacks (Leaf {k}) "{a}")'
            for k, t in enumerate(self.leaves)
            for a, axis in self.axes.items()
            if axis not in t.free
        ]
        certain = certain_reads(self.root)
        safe = lambda s: s.op != "undef" and (s.op != "read" or s.id in certain)  # noqa: E731
        sure = [k for k, t in enumerate(self.leaves) if all(map(safe, t.walk()))]
        out += [f"(Defined (Leaf {k}))" for k in sure]
        positive = [f"(Positive (Leaf {k}))" for k, t in enumerate(self.leaves) if t.op == "size"]
        return self.lines + out + positive

    def _takes(self) -> None:
        """x[m, y[m]] is x[m, n] at n = y[m]."""
        found = [t for t in self.leaves if t.op == "read"]
        for a, b in ((a, b) for a in found for b in found if a is not b and a.attr == b.attr):
            odd = [(i, j) for i, j in zip(a.args, b.args, strict=True) if i is not j]
            if (
                len(odd) == 1
                and odd[0][0].op == "axis"
                and (i := odd[0][0].attr) in self.axes.values()
                and i not in b.free
            ):
                self.lines.append(
                    f'(union (f_take "{i.name}" {self.encode(a)} {self.encode(odd[0][1])}) {self.encode(b)})'
                )

    def decode(self, dag: Any, root: int) -> Term:
        """The term of an extracted egglog term."""
        done: dict[int, Any] = {}
        for k in range(dag.size()):
            done[k] = self._decode(dag.get(k), done)
            if k == root:
                break
        out: Term = done[root]
        return out

    def _decode(self, node: Any, done: dict[int, Any]) -> Any:
        if type(node).__name__ == "TermLit":
            return node.value.value
        args = [done[a] for a in node.args]
        match node.name:
            case "Num":
                return T.const(args[0])
            case "Inf" | "NegInf":
                return T.const(math.inf if node.name == "Inf" else -math.inf)
            case "Leaf":
                return self.leaves[args[0]]
            case "Size":
                return self.axes[args[0]].size
        op = node.name[2:]
        if args and isinstance(args[0], str):
            t = T.make(op, *args[1:], attr=self.axes[args[0]])
            return unfold(t) if op == "take" else t
        return T.make(op, *args)


# ---- runs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    iterations: int = 16
    nodes: int = 8_000
    patience: int = 4  # iterations without a cheaper term, once there are `enough` nodes
    enough: int = 1_500
    operands: int = 10  # longer sums and products are not regrouped


DEFAULT = Limits()


@dataclass(frozen=True, slots=True)
class Outcome:
    term: Term
    cost: int
    stop: str  # saturated, settled (no cheaper term for a while), iterations or nodes
    fired: frozenset[str]  # names of the laws that matched
    nodes: int


@cache
def bindings() -> Any:
    """egglog's extension module, without the package around it, whose own language takes 0.2 s to import. It starts a
    thread: a process that forks must not have loaded it."""
    package = importlib.util.find_spec("egglog")
    spec = PathFinder.find_spec("egglog.bindings", package.submodule_search_locations if package else None)
    if spec is None or spec.loader is None:
        raise ImportError("egglog is not installed")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class Engine:
    """An e-graph without terms, and the operations whose rules it has."""

    graph: Any
    ops: frozenset[str]

    @property
    def laws(self) -> frozenset[str]:
        """The rulesets of its laws."""
        return frozenset(r.law for r in rows() if r.law and r.applies(self.ops))


_engines: list[Engine] = table("egraph.engines", [])
_runs = iter(range(10**9))


def _engine(ops: frozenset[str]) -> Engine:
    """One with the rules for these operations: a rule that cannot match changes nothing, but takes long to declare."""
    found = next((e for e in _engines if ops <= e.ops), None)
    if found is None:
        every = reachable(ops.union(*(e.ops for e in _engines)))
        graph = bindings().EGraph()
        graph.run_program(*graph.parse_program(program(every)))
        found = Engine(graph, every)
        _engines[:] = [found]
    return found


def saturate(t: Term, laws: Sequence[Law] = LAWS, limits: Limits = DEFAULT) -> Outcome:
    """Equality saturation of t under `laws`: the cheapest equal term and why it stopped."""
    coder, rules = Coder(t), f"run{next(_runs)}"
    root, given = coder.encode(t), coder.facts()
    engine = _engine(operations("\n".join(given)))
    graph, known = engine.graph, engine.laws
    do: Callable[[str], list[Any]] = lambda text: graph.run_program(*graph.parse_program(text))  # noqa: E731
    do("(push)")
    try:
        short = all(len(s.args) <= limits.operands for s in t.walk())
        parts = ["core", *(["regroup"] if short else []), *(r for law in laws if (r := law_ruleset(law)) in known)]
        do("\n".join([f"(unstable-combined-ruleset {rules} {' '.join(parts)})", *given]))
        stop, fired, nodes = _run(do, rules, root, limits)
        _price_numbers(do)
        best = do(f"(extract {root})")[0]
        return Outcome(coder.decode(best.termdag, best.term), best.cost, stop, fired, nodes)
    finally:
        do("(pop)")


def _run(do: Callable[[str], list[Any]], rules: str, root: str, limits: Limits) -> tuple[str, frozenset[str], int]:
    fired: set[str] = set()
    nodes, costs = 0, []
    for _ in range(limits.iterations):
        report, sizes, best = do(f"(run-schedule (run {rules})) (print-size) (extract {root})")
        fired |= {
            _law_name(text)
            for text, count in report.report.num_matches_per_rule.items()
            if count and ":ruleset law" in text
        }
        nodes = sum(int(n) for n in re.findall(r"\(f_\w+ (\d+)\)", str(sizes)))
        budget.spend("node", nodes)
        costs.append(best.cost)
        stop = _stop(report.report.updated, nodes, costs, limits)
        if stop:
            return stop, frozenset(fired), nodes
    return "iterations", frozenset(fired), nodes


def _price_numbers(do: Callable[[str], list[Any]]) -> None:
    """A number that nobody would write costs more than the operation that makes it from two that somebody would."""
    table = do("(print-function Num 100000)")[0]
    values = {table.termdag.get(table.termdag.get(row[0]).args[0]).value.value for row in table.terms}
    costs = [(v, len(number(abs(v))) // 3) for v in sorted(values)]
    do("\n".join([*(f"(Price {v!r} {cost})" for v, cost in costs if cost > 1), "(run-schedule (run price))"]))


def _law_name(text: str) -> str:
    return LAWS[int(re.search(r":ruleset law(\d+)", text)[1])].name  # type: ignore[index]


def _stop(updated: bool, nodes: int, costs: list[int], limits: Limits) -> str:
    if not updated:
        return "saturated"
    if nodes > limits.nodes:
        return "nodes"
    if nodes > limits.enough and len(costs) > limits.patience and costs[-1] == costs[-1 - limits.patience]:
        return "settled"
    return ""

"""Abstract expressions: what a value computes, up to laws that every program obeys (Mirage, tables 1 and 2).

    e ::= Var x | Add e e | Mul e e | Div e e | Exp e | Fun f e | Fun2 f e e | Fun3 f e e e | Sum bit e

A reduced axis is split into bits, named axes of extent 2, and a sum over it is a sum over each of them, so that a block
may sum some of the bits, a loop others, a second kernel the rest. The laws of table 2 are exact here: a sum moves past
a factor or divisor only where that does not have the bit (`Lacks`). The target is saturated once; what the search may
form are the classes below it, and whether an operation on two values is one of these is a look-up (`Tables`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from trilift.lift.errors import Unsupported
from trilift.lift.language.infix import spelling
from trilift.lift.simplify.egraph import bindings
from trilift.lift.terms.term import Term

from .program import Node, Program

Bits = frozenset[str]
Class = str

DATATYPE = """
(datatype E (Var String) (Add E E) (Mul E E) (Div E E) (Exp E) (Sum String E)
  (Fun String E) (Fun2 String E E) (Fun3 String E E E))
(relation Lacks (E String))
(relation Bit (String))
(ruleset laws)
"""
LAWS = """
(Add a b) = (Add b a)
(Mul a b) = (Mul b a)
(Add a (Add b c)) = (Add (Add a b) c)
(Mul a (Mul b c)) = (Mul (Mul a b) c)
(Add (Mul a c) (Mul b c)) = (Mul (Add a b) c)
(Add (Div a c) (Div b c)) = (Div (Add a b) c)
(Mul a (Div b c)) = (Div (Mul a b) c)
(Div (Div a b) c) = (Div a (Mul b c))
(Exp (Add a b)) = (Mul (Exp a) (Exp b))
(Sum i (Sum j a)) = (Sum j (Sum i a))
(Sum i (Add a b)) = (Add (Sum i a) (Sum i b))
(Sum i (Mul a b)) = (Mul (Sum i a) b) if (Lacks b i)
(Sum i (Div a b)) = (Div (Sum i a) b) if (Lacks b i)
"""
FORMS = ["(Add a b)", "(Mul a b)", "(Div a b)", "(Exp a)", "(Fun f a)", "(Fun2 f a b)", "(Fun3 f a b c)"]
EGRAPH_NODES = 200_000  # nodes of the e-graph


def bits_of(program: Program, parts: int = 3) -> dict[str, tuple[str, ...]]:
    """The bits of each axis, outermost first: `parts` of a reduced one, one of any other."""
    return {a: tuple(f"{a}{k}" for k in range(parts if a in program.reduced else 1)) for a in program.sizes}


@dataclass(frozen=True)
class Tables:
    """The classes below the targets, as look-ups. `unary[op, c]`, `sums[bit, c]`: the class of the operation on class
    c; `binary[c]`: (op, class of the other argument, whether c is the left one, result); `ternary`: by all."""

    leaves: dict[str, Class]
    targets: tuple[Class, ...]
    unary: dict[tuple[str, Class], Class]
    binary: dict[Class, list[tuple[str, Class, bool, Class]]]
    ternary: dict[tuple[str, Class, Class, Class], Class]
    sums: dict[tuple[str, Class], Class]
    nodes: int = field(default=0, compare=False)

    @cached_property
    def classes(self) -> frozenset[Class]:
        seen = {*self.leaves.values(), *self.targets, *self.unary.values(), *self.sums.values(), *self.ternary.values()}
        return frozenset(seen.union(r for rows in self.binary.values() for *_, r in rows))

    def total(self, over: Bits, c: Class) -> Class | None:
        """The class of the sum over all these bits."""
        at: Class | None = c
        for b in sorted(over):
            at = self.sums.get((b, at)) if at is not None else None
        return at


def function(n: Node) -> str:
    """The name of the function that a value applies to its arguments."""
    return f"{n.op}:{spelling(n.attr)}" if isinstance(n.attr, Term) else n.op


def templates(program: Program) -> dict[str, Term]:
    """The functions of a program by these names."""
    return {function(n): n.attr for n in program.nodes if isinstance(n.attr, Term)}


def tables(program: Program, bits: dict[str, tuple[str, ...]], laws: str = LAWS) -> Tables:
    """The classes below the program's outputs, saturated under the laws. Raises Unsupported where they are too many."""
    lines: list[str] = []
    names: dict[Node, str] = {}
    for n in program.nodes:
        names[n] = f"$v{len(names)}"
        lines.append(f"(let {names[n]} {_expression(n, names, bits)})")
    graph = bindings().EGraph()
    graph.run_program(
        *graph.parse_program(
            "\n".join([DATATYPE, *law_rules(laws), *lacking(FORMS, ["Sum"]), *_facts(program, bits), *lines])
        )
    )
    while True:
        graph.run_program(*graph.parse_program("(run-schedule (repeat 2 (run laws)))"))
        before = graph.serialize([], max_functions=None, max_calls_per_function=None, include_temporary_functions=True)
        found = json.loads(before.to_json())
        if len(found["nodes"]) > EGRAPH_NODES:
            raise Unsupported(f"more than {EGRAPH_NODES} ways to write the parts of the program")
        if not _changed(graph):
            break
    roots = [names[v] for _, _, v, _ in program.outputs]
    return _exported(found, roots)


def _changed(graph: object) -> bool:
    """Whether one more step adds anything."""
    out = graph.run_program(*graph.parse_program("(run-schedule (run laws))"))  # type: ignore[attr-defined]
    return any(getattr(r, "report", None) is not None and r.report.updated for r in out)


def _expression(n: Node, names: dict[Node, str], bits: dict[str, tuple[str, ...]]) -> str:
    args = " ".join(names[a] for a in n.args)
    if n.op == "input":
        return f'(Var "{n.attr}")'
    if n.op == "sum":
        out = args
        for b in reversed(bits[str(n.attr)]):
            out = f'(Sum "{b}" {out})'
        return out
    if n.op in ("add", "mul", "div", "exp"):
        return f"({n.op.capitalize()} {args})"
    if len(n.args) > 3:
        raise Unsupported(f"a function of {len(n.args)} tensors")
    head = ("Fun", "Fun2", "Fun3")[len(n.args) - 1]
    return f"({head} {json.dumps(function(n))} {args})"


def law_rules(laws: str, ruleset: str = "laws") -> list[str]:
    """Lines of laws as rules of egglog, one each."""
    out = []
    for line in laws.strip().splitlines():
        law, _, condition = line.partition(" if ")
        left, right = law.split(" = ")
        when = f" :when ({condition})" if condition else ""
        symmetric = left.startswith(("(Add a b)", "(Mul a b)", "(Sum i (Sum"))
        out.append(f"({'rewrite' if symmetric else 'birewrite'} {left} {right}{when} :ruleset {ruleset})")
    return out


def lacking(forms: Sequence[str], folds: Sequence[str], ruleset: str = "laws") -> list[str]:
    """Which axes a value lacks, by its form."""
    out = []
    for form in forms:
        given = " ".join(f"(Lacks {a} i)" for a in form.strip("()").split()[1:] if a != "f")
        out.append(f"(rule ((= e {form}) {given}) ((Lacks e i)) :ruleset {ruleset})")
    for fold in folds:
        out.append(f"(rule ((= e ({fold} i a)) (Bit i)) ((Lacks e i)) :ruleset {ruleset})")
        out.append(f"(rule ((= e ({fold} j a)) (Lacks a i)) ((Lacks e i)) :ruleset {ruleset})")
    return out


def _facts(program: Program, bits: dict[str, tuple[str, ...]]) -> list[str]:
    every = {b: a for a, bs in bits.items() for b in bs}
    out = [f'(Bit "{b}")' for b in every]
    for x in program.inputs:
        out += [f'(Lacks (Var "{x.name}") "{b}")' for b, a in every.items() if a not in x.axes]
    return out


def _exported(found: dict[str, dict[str, dict[str, object]]], roots: Sequence[str]) -> Tables:
    """The tables of what is below the roots."""
    nodes = found["nodes"]
    members: dict[Class, list[tuple[str, list[str]]]] = defaultdict(list)
    text: dict[str, str] = {}
    names: dict[str, Class] = {}
    for n in nodes.values():
        c, op = str(n["eclass"]), str(n["op"])
        if op.startswith('"'):
            text[c] = json.loads(op)
        elif op in ("Var", "Add", "Mul", "Div", "Exp", "Sum", "Fun", "Fun2", "Fun3"):
            members[c].append((op, [str(nodes[k]["eclass"]) for k in n["children"]]))  # type: ignore[attr-defined]
    for c, data in found["class_data"].items():
        if "let" in data:
            names[str(data["let"])] = c
    out = Tables({}, tuple(names[r] for r in roots), {}, defaultdict(list), {}, {}, len(nodes))
    stack, seen = list(out.targets), set(out.targets)
    while stack:
        c = stack.pop()
        for op, args in members[c]:
            below = [a for a in args if a in members]
            _entered(out, c, op, [text.get(a, a) for a in args])
            stack += [a for a in dict.fromkeys(below) if a not in seen]
            seen.update(below)
    return out


def _entered(out: Tables, c: Class, op: str, args: list[str]) -> None:
    if op == "Var":
        out.leaves[args[0]] = c
    elif op == "Exp":
        out.unary["exp", args[0]] = c
    elif op == "Sum":
        out.sums[args[0], args[1]] = c
    elif op == "Fun":
        out.unary[args[0], args[1]] = c
    elif op == "Fun3":
        out.ternary[args[0], args[1], args[2], args[3]] = c
    else:
        name, left, right = (args[0], *args[1:]) if op == "Fun2" else (op.lower(), *args)
        out.binary[left].append((name, right, True, c))
        if left != right:
            out.binary[right].append((name, left, False, c))

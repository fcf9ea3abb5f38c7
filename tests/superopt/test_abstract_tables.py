"""The tables of abstract expressions against plain rewriting: every expression that the laws make equal to a target,
and every part of one, is found by look-ups; small expressions that are no part of one are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from trilift.superopt.program.abstract import LAWS, Bits, Class, Tables, tables
from trilift.superopt.program.program import Input, Node, Program, node, source

Expression = tuple[Any, ...]  # ("Add", e, e), ("Sum", bit, e), ("Var", name) ...
Law = tuple[Expression, Expression, tuple[str, str] | None]
HEADS = {"Add", "Mul", "Div", "Exp", "Sum", "Fun", "Var"}

# ---- laws as pairs of patterns ---------------------------------------------------------------------------------------


def pattern(text: str) -> Expression | str:
    """(Mul a (Div b c)) as a tuple, a variable as its name."""
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()

    def read() -> Expression | str:
        token = tokens.pop(0)
        if token != "(":
            return token
        out = []
        while tokens[0] != ")":
            out.append(read())
        tokens.pop(0)
        return tuple(out)

    return read()


def laws(text: str = LAWS) -> list[Law]:
    """In both directions; the condition as (variable, variable for a bit)."""
    out: list[Law] = []
    for line in text.strip().splitlines():
        law, _, condition = line.partition(" if ")
        left, right = map(pattern, law.split(" = "))
        assert isinstance(left, tuple) and isinstance(right, tuple)
        given = condition.strip("()").split()[1:] if condition else []
        when = (given[0], given[1]) if given else None
        out += [(left, right, when), (right, left, when)]
    return out


def match(p: Expression | str, e: Expression | str, found: dict[str, Any]) -> bool:
    if isinstance(p, str):
        return bool(found.setdefault(p, e) == e)
    return (
        isinstance(e, tuple)
        and len(p) == len(e)
        and p[0] == e[0]
        and all(match(x, y, found) for x, y in zip(p[1:], e[1:], strict=True))
    )


def filled(p: Expression | str, found: dict[str, Any]) -> Any:
    return found[p] if isinstance(p, str) else (p[0], *(filled(x, found) for x in p[1:]))


class Rewriting:
    """All expressions that are equal to a target, of at most `size` operators."""

    def __init__(self, program: Program, bits: dict[str, tuple[str, ...]], size: int, text: str = LAWS) -> None:
        self.of = {x.name: frozenset(b for a in x.axes for b in bits[a]) for x in program.inputs}
        self.laws = laws(text)
        (target,) = (expression(v, bits) for _, _, v, _ in program.outputs)
        self.equal = {target}
        work = [target]
        while work:
            for e in self.steps(work.pop()):
                if e not in self.equal and operators(e) <= size:
                    self.equal.add(e)
                    work.append(e)

    def bits(self, e: Expression) -> Bits:
        if e[0] == "Var":
            return self.of[e[1]]
        below = frozenset[str]().union(*(self.bits(a) for a in e[1:] if isinstance(a, tuple)))
        return below - {e[1]} if e[0] == "Sum" else below

    def steps(self, e: Expression) -> Iterator[Expression]:
        """One law at one place."""
        for left, right, when in self.laws:
            found: dict[str, Any] = {}
            if match(left, e, found) and (when is None or found[when[1]] not in self.bits(found[when[0]])):
                yield filled(right, found)
        for k, a in enumerate(e):
            if isinstance(a, tuple):
                yield from ((*e[:k], b, *e[k + 1 :]) for b in self.steps(a))

    @property
    def parts(self) -> set[Expression]:
        out: set[Expression] = set()
        stack = list(self.equal)
        while stack:
            e = stack.pop()
            if e not in out:
                out.add(e)
                stack += [a for a in e[1:] if isinstance(a, tuple)]
        return out


def operators(e: Expression) -> int:
    return int(e[0] != "Var") + sum(operators(a) for a in e[1:] if isinstance(a, tuple))


def expression(n: Node, bits: dict[str, tuple[str, ...]]) -> Expression:
    args = [expression(a, bits) for a in n.args]
    if n.op == "input":
        return ("Var", n.attr)
    if n.op == "sum":
        (out,) = args
        for b in reversed(bits[str(n.attr)]):
            out = ("Sum", b, out)
        return out
    return (n.op.capitalize(), *args) if n.op.capitalize() in HEADS else ("Fun", n.op, *args)


# ---- look-ups --------------------------------------------------------------------------------------------------------


def looked_up(t: Tables, e: Expression) -> Class | None:
    """The class of an expression, from its leaves up; None where a look-up fails, so that the search prunes it."""
    if e[0] == "Var":
        return t.leaves.get(e[1])
    below = [looked_up(t, a) for a in e[1:] if isinstance(a, tuple)]
    if None in below:
        return None
    c = below[0] or ""
    if e[0] == "Sum":
        return t.sums.get((e[1], c))
    if e[0] in ("Exp", "Fun"):
        return t.unary.get(("exp" if e[0] == "Exp" else e[1], c))
    name = e[0].lower()
    forwards = {r for op, other, left, r in t.binary.get(c, ()) if (op, other, left) == (name, below[1], True)}
    backwards = {r for op, other, left, r in t.binary.get(below[1] or "", ()) if (op, other, left) == (name, c, False)}
    assert forwards == backwards or c == below[1]
    return next(iter(forwards), None)


# ---- targets ---------------------------------------------------------------------------------------------------------

a, b, c = source("a", ["m", "k"]), source("b", ["k", "n"]), source("c", ["m"])
x, y, s = source("x", ["k"]), source("y", ["k"]), source("s", [])
INPUTS = {"a": ("m", "k"), "b": ("k", "n"), "c": ("m",), "x": ("k",), "y": ("k",), "s": ()}


def total(v: Node) -> Node:
    return node("sum", v, attr="k")


TARGETS: dict[str, tuple[Node, int, int]] = {  # the target, the bits of k, the most operators of what it is equal to
    "product": (total(node("mul", a, b)), 2, 7),
    "quotient in a sum": (total(node("mul", node("div", a, c), b)), 1, 7),
    "quotient of a sum": (node("div", total(node("mul", a, b)), c), 1, 7),
    "sum of sums": (total(node("add", x, y)), 2, 8),
    "factor": (node("add", node("mul", x, s), node("mul", y, s)), 1, 7),
    "common divisor": (node("add", node("div", x, s), node("div", y, s)), 1, 7),
    "nested quotients": (node("div", node("div", x, y), s), 1, 7),
    "exponentials": (node("mul", node("exp", x), node("exp", node("add", y, s))), 1, 7),
    "softmax": (node("div", node("exp", x), total(node("exp", x))), 1, 7),
    "function": (node("div", x, node("sqrt", total(node("sqr", x)))), 2, 8),
    "three factors": (node("mul", node("mul", x, y), s), 1, 5),
    "attention": (node("div", total(node("mul", node("exp", node("add", x, s)), y)), total(node("exp", x))), 1, 9),
    "norm": (total(node("mul", node("div", a, node("sqrt", total(node("sqr", x)))), b)), 1, 9),
    "two products": (total(node("add", node("mul", a, b), node("mul", a, node("mul", b, s)))), 1, 8),
}


def program(v: Node) -> Program:
    names = [str(n.attr) for n in v.walk() if n.op == "input"]
    inputs = tuple(Input(n, n, INPUTS[n]) for n in names)
    return Program(inputs, (("out", tuple(sorted(v.axes)), v, "f32"),), dict.fromkeys("mkn", 8))


def prepared(name: str) -> tuple[Program, dict[str, tuple[str, ...]], int]:
    v, parts, size = TARGETS[name]
    return program(v), {"m": ("m0",), "n": ("n0",), "k": tuple(f"k{i}" for i in range(parts))}, size


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_that_the_laws_entail_is_pruned(name: str) -> None:
    """All equal expressions have the target's class, and all parts of them have a class."""
    p, bits, size = prepared(name)
    t = tables(p, bits)
    r = Rewriting(p, bits, size)
    assert {looked_up(t, e) for e in r.equal} == {t.targets[0]}
    assert [e for e in r.parts if looked_up(t, e) is None] == []


def small(p: Program, bits: dict[str, tuple[str, ...]], r: Rewriting) -> set[Expression]:
    """All expressions of at most three operators over the inputs, with the functions of the target."""
    heads = {e[0] for e in r.parts}
    functions = {e[1] for e in r.parts if e[0] == "Fun"}
    levels: list[set[Expression]] = [{("Var", i.name) for i in p.inputs}]
    for n in range(1, 4):
        new: set[Expression] = set()
        for e in levels[n - 1]:
            new |= {("Fun", f, e) for f in functions} | ({("Exp", e)} if "Exp" in heads else set())
            new |= {("Sum", b, e) for b in r.bits(e)}
        for k in range(n):
            pairs = product(levels[k], levels[n - 1 - k])
            new |= {(h, e, f) for e, f in pairs for h in ("Add", "Mul", "Div") if h in heads}
        levels.append(new)
    return set().union(*levels)


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_no_part_is_pruned(name: str) -> None:
    """Expressions of at most three operators that have a class are parts of what is equal to the target."""
    p, bits, size = prepared(name)
    t = tables(p, bits)
    r = Rewriting(p, bits, size)
    parts = r.parts
    every = small(p, bits, r)
    kept = {e for e in every if looked_up(t, e) is not None}
    assert kept == {e for e in every if e in parts}
    assert len(kept) < len(every)


CHANGES: list[tuple[str, Callable[[str], str], str]] = [
    ("product", lambda text: text.replace("(Mul a b) = (Mul b a)\n", ""), "no commutative product"),
    ("exponentials", lambda text: text.replace("(Exp (Add a b)) = (Mul (Exp a) (Exp b))\n", ""), "no law of exp"),
    (
        "quotient in a sum",
        lambda text: text.replace("(Sum i (Div a b)) = (Div (Sum i a) b) if (Lacks b i)\n", ""),
        "no sum of quotients",
    ),
]


@pytest.mark.parametrize(("name", "change", "what"), CHANGES, ids=[c[2] for c in CHANGES])
def test_a_law_that_is_missing_is_noticed(name: str, change: Callable[[str], str], what: str) -> None:
    p, bits, size = prepared(name)
    assert change(LAWS) != LAWS
    t = tables(p, bits, change(LAWS))
    assert [e for e in Rewriting(p, bits, size).parts if looked_up(t, e) is None]


def test_a_sum_does_not_move_past_what_has_its_axis() -> None:
    """sum(a b) is not sum(a) b where b has the axis: with the condition left out the tables would keep it."""
    p, bits, _ = prepared("product")
    wrong = ("Mul", ("Sum", "k0", ("Var", "a")), ("Var", "b"))
    assert looked_up(tables(p, bits), wrong) is None
    loose = "\n".join(law.partition(" if ")[0] for law in LAWS.splitlines())
    assert looked_up(tables(p, bits, loose), wrong) is not None

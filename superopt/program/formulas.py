"""A program as formulas, and as PyTorch functions that a person can read: what an emitted kernel is proved against."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace

from trilift.lift.printers.torch_source import torch_source
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term

from .program import Input, Node, Program

FOLDED = {"sum": "sum", "max": "amax"}
ELEMENTWISE: dict[str, Callable[..., Term]] = {"add": T.add, "mul": T.mul, "div": T.div, "sqr": lambda a: T.mul(a, a)}


def formulas(program: Program, sizes: Mapping[str, Term]) -> tuple[Formula, ...]:
    """One formula for each output; `sizes`: of each axis, as a term over dims."""
    axes = {a: T.Axis(a, sizes[a]) for a in program.sizes}
    inputs = {x.name: _element(x, axes) for x in program.inputs}
    return tuple(
        Formula(name, tuple(axes[a] for a in own), term_of(v, axes, inputs), d) for name, own, v, d in program.outputs
    )


def term_of(value: Node, axes: Mapping[str, T.Axis], inputs: Mapping[str, Term]) -> Term:
    """An element of a value; `inputs`: of each input by its name."""
    done: dict[Node, Term] = {}
    for n in value.walk():
        args = [done[a] for a in n.args]
        if n.op == "input":
            done[n] = inputs[str(n.attr)]
        elif n.op in FOLDED:
            done[n] = T.fold(FOLDED[n.op], axes[str(n.attr)], args[0])
        elif n.op == "const":
            assert isinstance(n.attr, Term)
            done[n] = n.attr
        elif n.op == "scale":
            assert isinstance(n.attr, Term)
            done[n] = T.mul(n.attr, args[0])
        elif n.op == "map":
            assert isinstance(n.attr, Term)
            done[n] = filled(n.attr, args)
        else:
            done[n] = ELEMENTWISE[n.op](*args) if n.op in ELEMENTWISE else T.make(n.op, *args)
    return done[value]


def _element(x: Input, axes: Mapping[str, T.Axis]) -> Term:
    """An element of an input, at the axes."""
    if x.element is None:
        return T.read(x.tensor, [p.index(axes) for p in x.parts] or [T.axis(axes[a]) for a in x.axes])
    return T.substitute(x.element, {a: T.axis(axes[a.name]) for a in x.element.free})


def filled(template: Term, args: list[Term]) -> Term:
    """The template with terms for a0, a1 ..."""
    holes = {f"a{k}": a for k, a in enumerate(args)}
    return T.rewrite(template, lambda s: holes.get(s.attr) if s.op == "scalar" else None)


def seen(program: Program, views: Mapping[str, str]) -> Program:
    """The program as if its views were tensors, inputs by the names given."""
    inputs = (replace(x, tensor=views.get(x.name, x.tensor), parts=(), shape=()) for x in program.inputs)
    return replace(program, inputs=tuple(inputs), places={})


def reference(program: Program, sizes: Mapping[str, Term]) -> tuple[list[str], list[str], list[tuple[str, list[str]]]]:
    """PyTorch for the outputs: lines of imports, functions, and the name and parameters of each."""
    shapes = {x.tensor: x.shape or tuple(sizes[a] for a in x.axes) for x in program.read}
    imports: dict[str, None] = {}
    bodies, calls = [], []
    for f in formulas(program, sizes):
        head, _, body = torch_source(replace(f, term=_powers(f.term)), shapes).partition("def ")
        imports |= dict.fromkeys(line for line in head.splitlines() if line.strip() and line != "import torch")
        signature = re.match(r"(\w+)\(([^)]*)\)", body)
        assert signature is not None
        name = f"{f.name}_reference"
        bodies.append(_wrapped(f"def {name}{body.removeprefix(signature[1])}"))
        calls.append((name, [p.strip() for p in signature[2].split(",") if p.strip() != "*"]))
    return list(imports), bodies, calls


def _powers(t: Term) -> Term:
    """Roots of sizes as powers, which Python has without math."""

    def power(s: Term) -> Term | None:
        return T.node("pow", (s.args[0], T.const(0.5))) if s.op == "sqrt" and not T.reads(s) else None

    return T.rewrite(t, power)


def _wrapped(function: str) -> str:
    """The function with its docstring in lines of at most 120 columns."""
    lines = []
    for line in function.splitlines():
        long = len(line) > 120 and line.startswith('    """')
        lines += textwrap.wrap(line, 120, subsequent_indent="    ") if long else [line]
    return "\n".join(lines) + "\n"

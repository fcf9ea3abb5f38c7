"""µGraphs and emitted files with one thing changed: what the field test, executions and the prover must reject.

A mutant may compute the same after all; whoever counts them has to find that out by an execution of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..mugraph.graph import Kernel, Mode, MuGraph, Operator

OTHER: dict[Mode, Mode] = {"loop": "grid", "whole": "loop", "split": "loop", "grid": "loop"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """The change, and its place."""

    what: str
    where: str


# ---- µGraphs ---------------------------------------------------------------------------------------------------------


def graph_mutants(g: MuGraph) -> Iterator[tuple[Mutant, MuGraph]]:
    """The graph with one operator, one reduction or the mode of one reduced axis changed."""
    for i, k in enumerate(g.kernels):
        for j, o in enumerate(k.operators):
            for what, new in _changed(k, o):
                operators = (*k.operators[:j], *new, *k.operators[j + 1 :])
                yield Mutant(what, f"{o.out} of {k.name}"), _with(g, i, replace(k, operators=operators))
        for a, mode in k.modes.items():
            if a in g.program.reduced:
                modes = {**k.modes, a: OTHER[mode]}
                yield Mutant(f"mode {mode} as {OTHER[mode]}", f"{a} of {k.name}"), _with(g, i, replace(k, modes=modes))


def _with(g: MuGraph, i: int, k: Kernel) -> MuGraph:
    return replace(g, kernels=(*g.kernels[:i], k, *g.kernels[i + 1 :]))


Changed = Iterator[tuple[str, tuple[Operator, ...]]]  # what was done, and the operators in place of the one


def _changed(k: Kernel, o: Operator) -> Changed:
    yield from _folds_changed(k, o)
    yield from _function_changed(o)
    yield from _access_changed(k, o)


def _folds_changed(k: Kernel, o: Operator) -> Changed:
    twice = replace(o, op="add", args=(o.args[0], o.args[0]))
    if o.op == "accumulate":
        yield "accumulator dropped", (twice,)
        yield "accumulated twice", (o, replace(o, args=(o.out,)), replace(o, op="add", args=(o.out, o.out)))
    if o.op == "sum":
        yield "sum dropped", (replace(o, op="sqr"),)
    if o.op in ("sum", "accumulate"):
        for a in k.modes:
            if a not in o.over:
                yield f"{o.op} over another axis", (replace(o, over=(a,)),)


def _function_changed(o: Operator) -> Changed:
    if o.op == "div":
        yield "operands swapped", (replace(o, args=o.args[::-1]),)
        yield "division dropped", (replace(o, op="mul"),)
    if o.op == "dot":
        yield "product of one operand", (replace(o, args=(o.args[0], o.args[0])),)
        yield "product over nothing", (replace(o, over=()),)
    if o.op in ("exp", "sqrt", "sqr") or o.op.startswith(("scale", "map")):
        yield "function dropped", (replace(o, op="add", args=(o.args[0], o.args[0])),)
    if o.op in ("add", "mul"):
        yield "another function", (replace(o, op="mul" if o.op == "add" else "add"),)


def _access_changed(k: Kernel, o: Operator) -> Changed:
    if o.op == "load":
        for other in k.loads:
            if other.args != o.args:
                yield "another tensor", (replace(o, args=other.args),)
                break
    if o.op == "store":
        made = [x for x in k.operators if x.op not in ("load", "store") and x.out != o.args[0] and x.dims == o.dims]
        if made:
            yield "another value stored", (replace(o, args=(made[-1].out,)),)


# ---- emitted files ---------------------------------------------------------------------------------------------------

ROWS: tuple[tuple[str, str, str], ...] = (  # what, where, by what
    ("dropped accumulator", r"(\w+) = tl\.dot\((.*), \1\)$", r"\1 = tl.dot(\2)"),
    ("dropped accumulator", r"^(\s+\w+) \+= ", r"\1 = "),
    ("missing rescale", r" \* shrink(_\d+)?(\[[^\]]*\])?", ""),
    ("missing rescale", r"^(\s+)(\w+) \*= shrink.*$", r"\1\2 = \2"),
    ("missing weight of a part", r" \* weight(\[[^\]]*\])?", ""),
    ("mask dropped", r"^(\s+)mask=(.*),$", r"\1mask=(\2) == (\2),"),
    ("mask dropped", r", mask=[^,]*?(, other=0\.0)?\)$", ")"),
    ("mask of one more", r"(mask=.*?) < (\w+)", r"\1 <= \2"),
    ("padded lanes kept", r"tl\.where\([^,]*(?:\[[^\]]*\])?[^,]*, ([^,()]+), 0\.0\)", r"\1"),
    ("padded lanes kept", r'tl\.where\([^,]*(?:\[[^\]]*\])?[^,]*, ([^,()]+), -float\("inf"\)\)', r"\1"),
    ("swapped operands", r"= (\w+(?:\[[^\]]*\])?) / (\w+(?:\[[^\]]*\])?)$", r"= \2 / \1"),
    ("swapped operands", r"= (\w+(?:\[[^\]]*\])?) - (\w+(?:\[[^\]]*\])?)$", r"= \2 - \1"),
    ("wrong split factor", r"tl\.cdiv\((\w+), (PARTS_\w+)\)", r"tl.cdiv(\1, \2 + 1)"),
    ("wrong reduction axis", r"tl\.sum\((.*), axis=0\)", r"tl.sum(\1, axis=1)"),
    ("wrong reduction axis", r"tl\.sum\((.*), axis=1\)", r"tl.sum(\1, axis=0)"),
    ("wrong imap", r"\((\w+) % (blocks_\w+)\)", r"(\1 // \2)"),
    ("wrong imap", r"tl\.program_id\(1\)", "tl.program_id(0)"),
    ("wrong imap", r"\.to\(tl\.int64\) \* (BLOCK_\w+)", r".to(tl.int64) * \1 * 2"),
    ("wrong number of blocks", r"triton\.cdiv\((\w+), (\d+)\)", r"(\1 // \2)"),
    ("wrong number of parts", r"^(    PARTS_\w+) = (\d+)$", r"\1 = \2 + 1"),
    ("loop cut short", r"for (\w+) in range\((.*), ([^,]+), (\w+)\):", r"for \1 in range(\2, \3 - \4, \4):"),
    ("another function", r"tl\.exp\(", "tl.exp2("),
    ("another function", r"tl\.sqrt\(", "tl.rsqrt("),
    ("another function", r"tl\.sigmoid\(", "tl.exp("),
    ("another function", r"tl\.max\(", "tl.min("),
    ("another function", r"tl\.maximum\(", "tl.minimum("),
    ("another operand", r"(\w+_f32) \* \1", r"\1 * 2"),
    ("scale dropped", r"= (\w+) \* (?:factor|[A-Z])\w*$", r"= \1"),
    ("another stride", r"(stride_\w+)_(\w) ", r"\1_\2 * 2 "),
)  # fmt: skip


def text_mutants(source: str) -> Iterator[tuple[Mutant, str]]:
    """An emitted file with one place of a kernel or of the host function changed; its reference stays as it is."""
    head, mark, rest = source.partition("\ndef register(")
    lines = head.split("\n")
    seen = {source}
    for what, pattern, by in ROWS:
        for n, line in enumerate(lines):
            for m in re.finditer(pattern, line):
                new = line[: m.start()] + m.expand(by) + line[m.end() :]
                text = "\n".join([*lines[:n], new, *lines[n + 1 :]]) + mark + rest
                if text not in seen:
                    seen.add(text)
                    yield Mutant(what, f"line {n + 1}: {line.strip()}"), text


__all__ = ["Mutant", "graph_mutants", "text_mutants"]

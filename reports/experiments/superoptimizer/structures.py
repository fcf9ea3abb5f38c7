"""Structures of the best µGraphs of Mirage's programs (OSDI 2025, section 8.2), as predicates over a graph's kernels,
modes and operators.

A reduced axis is in parts if each block takes a part of it (`grid` or `split`): the blocks store one entry for each
part, and another kernel sums these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trilift.superopt.mugraph.graph import GRIDS, Kernel, MuGraph, Operator


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure in words (`text`), and the test whether a graph has it (`holds`)."""

    text: str
    holds: Callable[[MuGraph], bool]


def operators(k: Kernel, op: str, inside: bool | None = None) -> list[Operator]:
    """Those of one name, in the loop, after it, or both."""
    return [o for o in k.operators if o.op == op and inside in (None, o.inside)]


def below(k: Kernel, o: Operator) -> list[Operator]:
    """All operators of the kernel that one depends on."""
    made = {x.out: x for x in k.operators if x.op != "store"}
    found: dict[str, Operator] = {}
    todo = [*o.args]
    while todo:
        x = made.get(todo.pop())
        if x is not None and x.out not in found:
            found[x.out] = x
            todo += x.args
    return list(found.values())


def single(g: MuGraph) -> Kernel | None:
    """The only kernel."""
    return g.kernels[0] if len(g.kernels) == 1 else None


def divided_last(g: MuGraph) -> bool:
    """The product and the sum of squares are accumulated in one loop, and divided after it."""
    k = single(g)
    if k is None or not k.loops or operators(k, "div", inside=True):
        return False
    for o in operators(k, "div", inside=False):
        kinds = [{x.op for x in below(k, Operator("", "", (a,), frozenset()))} for a in o.args]
        if {"dot", "accumulate"} <= kinds[0] and {"sqr", "accumulate", "sqrt"} <= kinds[1] and "dot" not in kinds[1]:
            return True
    return False


def three_products(g: MuGraph) -> bool:
    """x w + (x a) b in one kernel, the low rank never in memory."""
    k = single(g)
    return k is not None and len(operators(k, "dot")) == 3 and len(k.stores) == 1


def gated_after(g: MuGraph) -> bool:
    """Both products in one loop over the same tile of x, gate and product after it."""
    k = single(g)
    if k is None or not k.loops or len(operators(k, "dot", inside=True)) != 2:
        return False
    first, second = operators(k, "dot", inside=True)
    gates = [o for o in k.operators if o.op.startswith("map:") and not o.inside]
    return bool({*first.args} & {*second.args}) and len(gates) == 1 and len(operators(k, "mul", inside=False)) == 1


def whole_rows(g: MuGraph) -> bool:
    """One kernel whose blocks hold rows as they are: no loop, and every axis that is summed in one tile."""
    k = single(g)
    return k is not None and not k.loops and all(k.modes[a] == "whole" for a in g.program.reduced)


def keys_in_parts(g: MuGraph) -> bool:
    """The kernel of the exponentials takes a part of the axis that they are summed over, another one sums the parts;
    the exponentials are never in memory."""
    found = [(n, k, a) for n, k in enumerate(g.kernels) for o in operators(k, "exp") for a in _summed(k, o)]
    return any(
        k.modes[a] in GRIDS and _stored_in_parts(g, k, a) and any(_sums(later, a) for later in g.kernels[n + 1 :])
        for n, k, a in found
    )


def norms_inside(g: MuGraph) -> bool:
    """Keys in parts, and every root in the kernel of the exponentials it is below, or of their product with values."""
    kernels = [k for k in g.kernels if any(_summed(k, o) for o in operators(k, "exp"))]
    others = [k for k in g.kernels if k not in kernels]
    return keys_in_parts(g) and all(operators(k, "sqrt") for k in kernels) and not any(
        operators(k, "sqrt") for k in others
    )  # fmt: skip


def _summed(k: Kernel, exp: Operator) -> list[str]:
    """The axes that a product or sum of these exponentials is over."""
    after = [o for o in k.operators if o.op in ("sum", "dot", "accumulate") and exp in below(k, o)]
    return list(dict.fromkeys(a for o in after for a in o.over))


def _stored_in_parts(g: MuGraph, k: Kernel, axis: str) -> bool:
    stored = [d for o in k.stores for d in g.memory[o.out].dims if d.axis == axis]
    return bool(stored) and all(d.parts for d in stored)


def _sums(k: Kernel, axis: str) -> bool:
    return any(axis in o.over for o in operators(k, "sum"))


KEYS = Structure("two kernels: attention over a part of the keys, then the sum of the parts", keys_in_parts)
NORMS = Structure("the same, the norms in the kernel of the exponentials", norms_inside)
DIVIDED = Structure("one kernel: x w and the sum of squares in one loop, the division after it", divided_last)
ROWS = Structure("one kernel: a row per block, no loop", whole_rows)
BEST: dict[str, Structure] = {
    "attention": KEYS, "normed_attention_paper": NORMS, "normed_attention_script": NORMS,
    "rms_norm_linear_paper": DIVIDED, "rms_norm_linear_script": DIVIDED,
    "lora": Structure("one kernel: three products, x a stays in the block", three_products),
    "gated_mlp": Structure("one kernel: two products in one loop, silu and product after it", gated_after),
    "n_trans_paper": ROWS, "n_trans_script": ROWS,
}  # fmt: skip

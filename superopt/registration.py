"""An emitted host function as an operator of PyTorch: torch.compile sees its kernels, tracing its shapes, counters its
flops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .mugraph import MuGraph

WRAP = "wrap"  # the host function's parameter: what a kernel is wrapped in before it is launched


def registration(
    g: MuGraph, name: str, params: Sequence[str], scalars: Sequence[str], sizes: Mapping[str, str], empty: Sequence[str]
) -> str:
    """A function that registers it. `params`: tensors; `sizes`: the name of the size of each axis; `empty`: expressions
    that make the outputs."""
    typed = [*(f"{p}: torch.Tensor" for p in params), *(f"{s}: float" for s in scalars)]
    given = ", ".join([*params, *scalars])
    wrapped = f"{given}, {WRAP}=torch.library.wrap_triton"
    result = "torch.Tensor" if len(empty) == 1 else f"tuple[{', '.join(['torch.Tensor'] * len(empty))}]"
    lines = [
        'def register(namespace="emitted"):',
        f'    """{name} as torch.ops.<namespace>.{name}, with shapes for tracing and its flops."""',
        "",
        f'    @torch.library.triton_op(f"{{namespace}}::{name}", mutates_args=())',
        f"    def operator({', '.join(typed)}) -> {result}:",
        f"        return {name}({wrapped})",
        "",
        "    @operator.register_fake",
        f"    def _({given}):",
        *(f"        {line}" for line in _sizes(g, sizes, ".shape", " ".join(empty))),
        f"        return {', '.join(empty)}",
    ]
    if flops := flop_formula(g, sizes):
        lines += [
            "",
            f"    @register_flop_formula(getattr(getattr(torch.ops, namespace), {name!r}))",
            f"    def _({', '.join([*params, *scalars, '**_'])}):",
            *(f"        {line}" for line in _sizes(g, sizes, "", flops)),
            f"        return {flops}",
        ]
    return "\n".join([*lines, "", "    return operator"])


def flop_formula(g: MuGraph, sizes: Mapping[str, str]) -> str:
    """2 M N K for each product of tiles, as PyTorch counts; "" where there is none."""
    out = []
    for k in g.kernels:
        for o in k.operators:
            if o.op == "dot":
                axes = [a for a in k.modes if a in {d.axis for d in o.dims} | {*o.over}]
                out.append(" * ".join(["2", *(sizes[a] for a in axes)]))
    return " + ".join(out)


def _sizes(g: MuGraph, sizes: Mapping[str, str], shape: str, used: str) -> list[str]:
    """The sizes that a text uses, read off shapes."""
    words = {*re.findall(r"\w+", used)}
    found: dict[str, str] = {}
    for x in g.program.read:
        for d, a in enumerate(x.axes):
            if sizes[a] in words:
                found.setdefault(sizes[a], f"{sizes[a]} = {x.tensor}{shape}[{d}]")
    return list(found.values())

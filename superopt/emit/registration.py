"""An emitted host function as an operator of PyTorch: torch.compile sees its kernels, tracing its shapes, counters its
flops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..mugraph.graph import MuGraph
from .contract import Contract

WRAP = "wrap"  # the host function's parameter: what a kernel is wrapped in before it is launched


def registration(
    g: MuGraph, name: str, params: Sequence[str], scalars: Sequence[str], contract: Contract, empty: Sequence[str]
) -> str:
    """A function that registers it. `params`: tensors; `contract`: has the sizes of axes; `empty`: expressions that
    make what is returned."""
    typed = [*(f"{p}: torch.Tensor" for p in params), *(f"{s}: float" for s in scalars)]
    given = ", ".join([*params, *scalars])
    wrapped = f"{given}, {WRAP}=torch.library.wrap_triton"
    many = f"tuple[{', '.join(['torch.Tensor'] * len(empty))}]" if empty else "None"
    result = "torch.Tensor" if len(empty) == 1 else many
    written = tuple(dict.fromkeys(p.tensor for p in g.program.places.values() if p.in_place))
    mutated = str(written).replace("'", '"')
    lines = [
        'def register(namespace="emitted"):',
        f'    """{name} as torch.ops.<namespace>.{name}, with shapes for tracing and its flops."""',
        "",
        f'    @torch.library.triton_op(f"{{namespace}}::{name}", mutates_args={mutated})',
        f"    def operator({', '.join(typed)}) -> {result}:",
        f"        return {name}({wrapped})",
        "",
        "    @operator.register_fake",
        f"    def _({given}):",
        *(f"        {line}" for line in contract.definitions(" ".join(empty))),
        f"        return {', '.join(empty)}".rstrip(),
    ]
    if flops := flop_formula(g, contract.sizes):
        lines += [
            "",
            f"    @register_flop_formula(getattr(getattr(torch.ops, namespace), {name!r}))",
            f"    def _({', '.join([*params, *scalars, '**_'])}):",
            *(f"        {line}" for line in contract.definitions(flops, "")),
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

"""A stage as PyTorch, with every promotion said by `.to`, and the whole case file of a program."""

from __future__ import annotations

import re
from typing import cast

from .grammar import BOTH_TENSORS, LONG, OPS, WEAK, Expr, Program, Reduction, Stage, promoted
from .kernel import kernel
from .writer import number

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\nfrom trilift import case\n"
CAST = "{0}.to(torch.{1})"


def source(right: Program, wrong: Program | None = None, precise: bool = False) -> str:
    """The case file: kernels and host function of `wrong`, by default those of `right`, whose reference it has.
    `precise`: all floats have 64 bits, because rounding does not count as a difference."""
    text = "\n\n".join([HEAD, *_host(wrong or right), _reference(right)])
    return re.sub(r"\b(tl|torch)\.b?float(16|32)\b", r"\1.float64", text) if precise else text


def host(p: Program) -> str:
    """The host function."""
    return _host(p)[-1]


def _host(p: Program) -> list[str]:
    block = "block" if p.branch else ""
    strided = [i.name for i in p.inputs if i.strided]
    made = [kernel(s, k, block, strided) for k, s in enumerate(p.stages)]
    args = ", ".join([*(i.name for i in p.inputs), *(n for n, _ in p.scalars)])
    specs = ", ".join([*(f'{i.name}="{i.spec}"' for i in p.inputs), *(f'{n}="{d}"' for n, d in p.scalars)])
    lines = [f"@case({specs})", f"def {p.name}({args}):", *_sizes(p)]
    if p.branch:
        size, limit, other = p.branch
        lines.append(f"    block = {other} if {size} >= {limit} else {p.stages[0].schedule.block}")
    lines += [f"    {k.call}" for k in made]
    return [*(k.source for k in made), "\n".join([*lines, f"    return {_returned(p)}"]) + "\n"]


def _returned(p: Program) -> str:
    return ", ".join(s.output for s in (p.stages if p.every else p.stages[-1:]))


def _sizes(p: Program) -> list[str]:
    """The lines that name the sizes: each is that of a dimension of an input."""
    found: dict[str, str] = {}
    for i in p.inputs:
        for k, d in enumerate(i.dims):
            if not d.isdigit():
                found.setdefault(d, f"    {d} = {i.name}.shape[{k}]")
    return list(found.values())


def _reference(p: Program) -> str:
    args = ", ".join([*(i.name for i in p.inputs), *(n for n, _ in p.scalars)])
    lines = [f"@{p.name}.reference", f"def _({args}):", *_sizes(p)]
    for s in p.stages:
        lines += [f"    {line}" for line in STAGES.get(s.kind, _plain)(s)]
    return "\n".join([*lines, f"    return {_returned(p)}"]) + "\n"


# ---- stages ----------------------------------------------------------------------------------------------------------


def _plain(s: Stage) -> list[str]:
    return [f"{s.output} = {written(s.expr, s.dims)}"]


def _row(s: Stage) -> list[str]:
    frame = (s.dims[0], s.inner)
    lines = [f"{r.name} = {_reduced(r, frame)}" for r in s.reductions]
    told = written(s.expr, frame)
    return [*lines, f"{s.output} = {told}" + ("[:, 0]" if len(s.dims) == 1 else "")]


def _reduced(r: Reduction, frame: tuple[str, ...]) -> str:
    value = written(r.expr, frame)
    match r.op:
        case "sum":
            return f"{value}.sum(-1, keepdim=True, dtype=torch.{LONG[r.expr.dtype]})"
        case "argmax" | "argmin":
            return f"{value}.{r.op}(-1, keepdim=True).to(torch.int32)"
        case _:
            return f"{value}.a{r.op}(-1, keepdim=True)"


def _scan(s: Stage) -> list[str]:
    (r,) = s.reductions
    kind = LONG[r.expr.dtype]
    return [f"{r.name} = torch.cumsum({written(r.expr, s.dims)}, -1, dtype=torch.{kind})", *_plain(s)]


def _dot(s: Stage) -> list[str]:
    (r,) = s.reductions
    a, b = r.expr.args
    kind = LONG[r.expr.dtype]
    left = CAST.format(written(a, (s.dims[0], s.inner)), kind)
    right = CAST.format(written(b, (s.inner, s.dims[1])), kind)
    return [f"{r.name} = {left} @ {right}", *_plain(s)]


def _atomic(s: Stage) -> list[str]:
    kind = LONG[s.dtype]
    if not s.index:
        return [f"{s.output} = {written(s.expr, (s.inner, s.dims[0]))}.sum(0, dtype=torch.{kind})"]
    zeros = f"torch.zeros({s.dims[0]}, dtype=torch.{kind})"
    return [f"{s.output} = {zeros}.index_add(0, {s.index}.to(torch.int64), {written(s.expr, (s.inner,))})"]


def _exchange(s: Stage) -> list[str]:
    return [f"{s.output} = {written(s.expr, s.dims)}.flip(-1)"]


STAGES = {"exchange": _exchange, "row": _row, "scan": _scan, "dot": _dot, "atomic": _atomic}


# ---- expressions -----------------------------------------------------------------------------------------------------


def written(e: Expr, frame: tuple[str, ...]) -> str:
    """An expression in PyTorch, whose shape is, or broadcasts to, that of the frame."""
    if e.op in WEAK:
        return number(e.value, e.dtype) if e.op == "const" else str(e.value)
    if e.op == "reduced":
        return str(e.value)
    if e.op == "index":
        lanes = f"torch.arange({e.value}, dtype=torch.int32)"
        return lanes if e.value == frame[-1] else f"{lanes}[:, None]"
    if e.op == "load":
        tensor, dims = cast(tuple[str, tuple[str, ...]], e.value)
        if len(dims) == 2:
            return tensor if dims == frame else f"{tensor}.T"
        return tensor if dims == frame[-1:] else f"{tensor}[:, None]"
    if e.op == "gather":
        return f"{e.value}[{written(e.args[0], frame)}.to(torch.int64)]"
    return OPS[e.op].reference.format(*_operands(e, frame), d=LONG[e.dtype])


def _operands(e: Expr, frame: tuple[str, ...]) -> list[str]:
    """The operands in one dtype."""
    values = e.args[1:] if e.op == "where" else e.args
    if len(values) < 2:
        return [written(a, frame) for a in e.args]
    firm = [a for a in values if a.op not in WEAK]
    common = firm[0].dtype if len(firm) == 1 else promoted(values[0].dtype, values[1].dtype)
    said = []
    for a in values:
        text = written(a, frame)
        if a.op in WEAK and e.op in BOTH_TENSORS:
            text = f"torch.full_like({written(firm[0], frame)}, {text})"
        said.append(text if a.op in WEAK or a.dtype == common else CAST.format(text, LONG[common]))
    return [written(e.args[0], frame), *said] if e.op == "where" else said

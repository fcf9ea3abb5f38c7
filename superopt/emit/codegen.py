"""µGraph -> one Python file: Triton kernels, the host function whose asserts are the contract, and a case of trilift.

    source(g, "rms_norm_matmul")    x, w -> kernels -> out;   trilift prove FILE proves what was emitted

Sizes are arguments: tiles are masked at the edges, strides may be any, offsets have 64 bits. Products are of 16-bit
operands where all inputs are, sums in 32 bits."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from ruff import find_ruff_bin

from trilift.lift.language.python_source import python_source
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..mugraph.graph import Kernel, MuGraph, Tensor
from ..mugraph.precision import BYTES
from ..program.abstract import templates
from ..program.formulas import reference, seen
from ..program.program import Part
from ..program.views import checked
from ..search.stabilise import unstable
from .block import Block
from .contract import TORCH, parameters_of, written_in_place
from .host import Host, host_of
from .kernel_names import Signature
from .registration import WRAP, registration

LARGEST = 2**30  # of a size: a tile beyond it, and the rounded share of a part, still have 32 bits
WIDTH = 120
IMPORTS = {
    "tl.": "import triton.language as tl",
    "register_flop_formula": "from torch.utils.flop_counter import register_flop_formula",
    "libdevice.": "from triton.language.extra import libdevice",
}
GUARD = [
    "try:",
    "    from trilift import case",
    "except ImportError:  # the kernels run without trilift",
    "    case = None",
]


def source(
    g: MuGraph,
    name: str,
    names: Mapping[str, Term] | None = None,
    extents: Mapping[str, Term] | None = None,
    header: Sequence[str] = (),
    parameters: Sequence[str] = (),
) -> str:
    """The file. `names`: the templates of functions, by operator; `extents`: the size of each axis as a term over dims,
    where these are not the axes themselves; `header`: lines of the comment at the top, to which why exp is not
    stabilised is added; `parameters`: tensors in the order of the host function's parameters. Raises Unsupported for a
    graph that has no such form."""
    sizes = g.program.extents if extents is None else extents
    checked(g.program, sizes)
    found = {**templates(g.program), **(names or {})}
    host = host_of(g, name, found, sizes, parameters)
    blocks = [Block(g, k, found, host.sizes, host.parts, host.numbers).source() for k in g.kernels]
    imports, functions, calls = reference(seen(g.program, host.views), host.extents(g.program))
    why = unstable(g)
    told = [*header, *([f"exp is not stabilised: {why}"] if why else [])]
    kernels = [_kernel(k, s) for k, s in zip(g.kernels, blocks, strict=True)]
    host_text = _launcher(g, name, host, blocks)
    operator = registration(g, name, host.tensors, host.scalars, host.contract, [*_made(g, host).values()])
    body = "\n\n\n".join([*kernels, host_text, operator, *functions])
    lines = [*(f"# {line}".rstrip() for line in told), "", *imports, "import torch", "import triton"]
    lines += [line for word, line in IMPORTS.items() if word in body]
    lines += ["", *GUARD, "", "", body, "", "", *_case(g, name, host, calls)]
    return formatted("\n".join(lines).lstrip("\n") + "\n")


def formatted(python: str) -> str:
    """The text as ruff formats it."""
    command = [find_ruff_bin(), "format", "--isolated", "--line-length", str(WIDTH), "-"]
    done = subprocess.run(command, input=python, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"ruff: {done.stderr.strip()}\n{python}")
    return done.stdout


# ---- texts -----------------------------------------------------------------------------------------------------------


def _kernel(k: Kernel, s: Signature) -> str:
    params = [*(p for p, _ in s.params), *(f"{b}: tl.constexpr" for b, _ in s.blocks)]
    return "\n".join(["@triton.jit", f"def {k.name}({', '.join(params)}):", *s.lines])


def _launcher(g: MuGraph, name: str, host: Host, blocks: Sequence[Signature]) -> str:
    params = [*host.tensors, *host.scalars, f"{WRAP}=lambda kernel: kernel"]
    lines = [f"def {name}({', '.join(params)}):", f'    """{_doc(g)}"""']
    lines += [f"    {line}" for line in host.contract.lines]
    sizes = list(host.sizes.values())
    largest = f"max({', '.join(sizes)})" if len(sizes) > 1 else sizes[0]
    lines.append(f'    assert {largest} <= {LARGEST}, "a size that does not fit in 32 bits after rounding up"')
    given = dict.fromkeys(d for s in blocks for _, value in s.params for d in host.divisors.get(value, ()))
    lines += [f'    assert {d} != 0, "a divisor is 0"' for d in given]
    lines += [f"    {p} = {g.parts[a]}" for a, p in host.parts.items()]
    lines += [f"    {line}" for line in host.inputs(g.program)]
    lines += [f"    {x} = {made}" for x, made in _made(g, host, between=True).items()]
    lines += [f"    {line}" for line in host.outputs(g.program)]
    for k, s in zip(g.kernels, blocks, strict=True):
        lines += [f"    {line}" for line in _launch(g, k, s, host)]
    returned = ", ".join(_made(g, host))
    return "\n".join([*lines, f"    return {returned}" if returned else ""])


def _doc(g: MuGraph) -> str:
    axes = {a: T.Axis(a, T.size(a.upper())) for a in g.program.sizes}
    places = [(out, own, g.program.places.get(out)) for out, own, *_ in g.program.outputs]
    shapes = [_indexed(p.tensor if p else out, p.parts if p else (), own, axes) for out, own, p in places]
    read = [_indexed(x.tensor, x.parts, x.axes, axes) for x in g.program.read]
    return f"{', '.join(shapes)} of {', '.join(read)}."


def _indexed(tensor: str, parts: Sequence[Part], own: Sequence[str], axes: Mapping[str, T.Axis]) -> str:
    """keys[h, P + m, d]"""
    letter = lambda s: T.size(s.attr.name) if s.op == "axis" else None  # noqa: E731
    each = [python_source(T.rewrite(p.index(axes), letter)) for p in parts] or own
    return f"{tensor}[{', '.join(each)}]"


def _made(g: MuGraph, host: Host, between: bool = False) -> dict[str, str]:
    """The tensors that the host function makes, with how: those that it returns, or `between` those that only kernels
    see too, in the order of the graph."""
    device = f"device={host.tensors[0]}.device"
    places = {out: g.program.places.get(out) for out, *_ in g.program.outputs}
    out: dict[str, str] = {}
    for name in g.tensors if between else places:
        t, place = g.tensors[name], places.get(name)
        if place is None:
            out[name] = f"torch.empty({_extent(host, t)}, dtype={TORCH[t.dtype]}, {device})"
        elif not place.in_place:
            out[place.tensor] = f"torch.empty({host.shape(place)}, dtype={TORCH[t.dtype]}, {device})"
    return out


def _extent(host: Host, t: Tensor) -> str:
    each = [host.parts[d.axis] if d.parts else host.sizes[d.axis] for d in t.dims]
    return f"({', '.join(each)}{',' * (len(each) == 1)})"


def _launch(g: MuGraph, k: Kernel, s: Signature, host: Host) -> list[str]:
    arguments = _arguments(g, host, [value for _, value in s.params])
    given = [f"{b}={value}" for b, value in s.blocks]
    out, grid = [], [" * ".join(axes) or "1" for axes in s.grid]
    if len(s.grid[0]) > 1:
        out += [f"blocks = {grid[0]}", 'assert blocks < 2**31, "the grid has too many blocks"']
        grid[0] = "blocks"
    if s.grid[2]:
        out.append(f'assert {grid[2]} <= 65535, "axis z of the grid has too many blocks"')
    while grid[-1] == "1" and len(grid) > 1:
        grid.pop()
    launched = f"{', '.join(grid)}{',' * (len(grid) == 1)}"
    options = [f"num_warps={k.warps}", f"num_stages={k.stages}"]
    return [*out, f"{WRAP}({k.name})[({launched})]({', '.join([*arguments, *given, *options])})"]


def _arguments(g: MuGraph, host: Host, values: Sequence[str]) -> list[str]:
    """The texts of arguments; all strides of a tensor as *x.stride()."""
    out = []
    for value in values:
        tensor, _, rest = value.removeprefix("@").partition(".")
        stored = g.memory.get(tensor) if value.startswith("@") else None
        if stored is None:
            out.append(value)
            continue
        name = host.views.get(tensor, tensor)
        every = [f"@{tensor}.stride({k})" for k in range(len(stored.dims))]
        if not rest or not set(every) <= {*values}:
            out.append(f"{name}.{rest}" if rest else name)
        elif value == every[0]:
            out.append(f"*{name}.stride()")
    return out


def _case(g: MuGraph, name: str, host: Host, calls: Sequence[tuple[str, list[str]]]) -> list[str]:
    """The case and its reference, where trilift is there."""
    found, dense = parameters_of(g.program), written_in_place(g.program)
    specs = [f'{x}="{d}[{host.dimensions(g.program, x)}]{"" if x in dense else " strided"}"' for x, d in found.items()]
    texts = [*specs, *(f'{s}="f32"' for s in host.scalars)]
    params = ", ".join([*host.tensors, *host.scalars])
    lines = ["if case is not None:", "", f"    @case({', '.join(texts)})", f"    def {name}_case({params}):"]
    lines += [f"        return {name}({params})", "", f"    @{name}_case.reference", f"    def _({params}):"]
    integers = {host.views[x.name]: x.dtype for x in g.program.read if x.dtype in BYTES}
    real = next((f"{x}.dtype" for x, d in found.items() if d not in BYTES), TORCH["f32"])
    casts = dict.fromkeys(integers, f".to({real})")  # products of integers would wrap, and PyTorch mixes no types
    values = [f"{f}({', '.join(_passed(p, host) + casts.get(p, '') for p in ps)})" for f, ps in calls]
    return [*lines, *(f"        {line}" for line in host.reference(g.program, values))]


def _passed(p: str, host: Host) -> str:
    return p if p in {*host.tensors, *host.views.values()} else f"{p}={host.contract.dims.get(p, p)}"


__all__ = ["formatted", "source"]

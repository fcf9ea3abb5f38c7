"""µGraph -> one Python file: Triton kernels, the host function whose asserts are the contract, and a case of trilift.

    source(g, "rms_norm_matmul")    x, w -> kernels -> out;   trilift prove FILE proves what was emitted

Sizes are arguments: tiles are masked at the edges, strides may be any, offsets have 64 bits. Products are of 16-bit
operands where all inputs are, sums in 32 bits."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ruff import find_ruff_bin

from lift import term as T
from lift.errors import Unsupported
from lift.python_source import python_source
from lift.term import Term

from .abstract import templates
from .block import Block
from .mugraph import Kernel, MuGraph, Tensor
from .positions import launch_numbers
from .program import Program
from .reference import reference
from .registration import WRAP, registration
from .stabilise import unstable
from .template import numbers
from .tiles import Names, Signature

LARGEST = 2**30  # of a size: a tile beyond it, and the rounded share of a part, still have 32 bits
WIDTH = 120
IMPORTS = {
    "tl.": "import triton.language as tl",
    "register_flop_formula": "from torch.utils.flop_counter import register_flop_formula",
    "libdevice.": "from triton.language.extra import libdevice",
}
GUARD = [
    "try:",
    "    from lift import case",
    "except ImportError:  # the kernels run without trilift",
    "    case = None",
]
TORCH = {"f16": "torch.float16", "bf16": "torch.bfloat16", "f32": "torch.float32", "f64": "torch.float64"}


@dataclass(frozen=True)
class Host:
    """What the host function calls things: `tensors` and `scalars` in order, sizes of axes, their parts, `numbers` of
    templates as texts."""

    tensors: tuple[str, ...]
    scalars: tuple[str, ...]
    sizes: dict[str, str]
    parts: dict[str, str]
    numbers: dict[Term, str]
    names: Names


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
    if g.program.places or any(x.parts for x in g.program.inputs):
        raise Unsupported("no file is written of a program on parts of tensors")
    found = {**templates(g.program), **(names or {})}
    host = _host(g, name, found, extents or {}, parameters)
    blocks = [Block(g, k, found, host.sizes, host.parts, host.numbers).source() for k in g.kernels]
    imports, functions, calls = reference(g.program, _sizes(g.program, host, extents or {}))
    why = unstable(g)
    told = [*header, *([f"exp is not stabilised: {why}"] if why else [])]
    kernels = [_kernel(k, s) for k, s in zip(g.kernels, blocks, strict=True)]
    host_text = _launcher(g, name, host, blocks, extents or {})
    empty = [_empty(g, host, g.tensors[out], host.tensors[0]) for out, *_ in g.program.outputs]
    operator = registration(g, name, host.tensors, host.scalars, host.sizes, empty)
    body = "\n\n\n".join([*kernels, host_text, operator, *functions])
    lines = [*(f"# {line}".rstrip() for line in told), "", *imports, "import torch", "import triton"]
    lines += [line for word, line in IMPORTS.items() if word in body]
    lines += ["", *GUARD, "", "", body, "", "", *_case(g, name, host, calls, extents or {})]
    return formatted("\n".join(lines).lstrip("\n") + "\n")


def formatted(python: str) -> str:
    """The text as ruff formats it."""
    command = [find_ruff_bin(), "format", "--isolated", "--line-length", str(WIDTH), "-"]
    done = subprocess.run(command, input=python, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"ruff: {done.stderr.strip()}\n{python}")
    return done.stdout


# ---- names of the host -----------------------------------------------------------------------------------------------


def _host(
    g: MuGraph, name: str, found: Mapping[str, Term], extents: Mapping[str, Term], parameters: Sequence[str]
) -> Host:
    names = Names()
    names.taken |= {name, f"{name}_case", "register", "register_flop_formula", WRAP, *(k.name for k in g.kernels)}
    read = dict.fromkeys(x.tensor for x in g.program.read)
    tensors = tuple(dict.fromkeys([*(p for p in parameters if p in read), *read]))
    for x in (*tensors, *g.memory):
        if not x.isidentifier():
            raise Unsupported(f"{x} is no name of a parameter")
    names.taken |= {*tensors, *g.memory}
    sizes = {a: names.new(*_wishes(a, extents)) for a in g.program.sizes}
    parts = {a: names.new(f"PARTS_{a.upper()}") for a in g.parts}
    known = {T.size(n): sizes[a] for a in sizes if a not in extents for n in (a, sizes[a])}
    known |= {e: sizes[a] for a, e in reversed(list(extents.items()))}
    values: dict[Term, str] = {}
    scalars: dict[str, None] = {}
    elements = [x.element for x in g.program.inputs if x.element is not None]
    for every in [*(numbers(t, 8) for t in found.values()), *map(launch_numbers, elements)]:
        for number in every:
            for s in number.walk():
                if s.op == "size" and s not in known:
                    raise Unsupported(f"no axis has the size {s}")
                if s.op == "scalar":
                    scalars.setdefault(str(s.attr))
            values[number] = python_source(T.rewrite(number, lambda s: T.size(known[s]) if s in known else None))
    return Host(tensors, tuple(scalars), sizes, parts, values, names)


def _wishes(a: str, extents: Mapping[str, Term]) -> tuple[str, ...]:
    """Names for the size of an axis: the dim that it is, else one that is no other dim."""
    size = extents.get(a)
    if size is not None and size.op == "size":
        return str(size.attr), f"size_{a}"
    dims = {str(s.attr) for e in extents.values() for s in e.walk() if s.op == "size"}
    return (f"size_{a}",) if a.upper() in dims else (a.upper(), f"size_{a}")


def _sizes(program: Program, host: Host, extents: Mapping[str, Term]) -> dict[str, Term]:
    """The size of each axis in the reference and the case."""
    return {a: extents.get(a, T.size(host.sizes[a])) for a in program.sizes}


# ---- texts -----------------------------------------------------------------------------------------------------------


def _kernel(k: Kernel, s: Signature) -> str:
    params = [*(p for p, _ in s.params), *(f"{b}: tl.constexpr" for b, _ in s.blocks)]
    return "\n".join(["@triton.jit", f"def {k.name}({', '.join(params)}):", *s.lines])


def _launcher(g: MuGraph, name: str, host: Host, blocks: Sequence[Signature], extents: Mapping[str, Term]) -> str:
    params = [*host.tensors, *host.scalars, f"{WRAP}=lambda kernel: kernel"]
    lines = [f"def {name}({', '.join(params)}):", f'    """{_doc(g)}"""']
    lines += [f"    {line}" for line in _shapes(g.program, host)]
    lines += [f"    {line}" for line in _relations(g.program, host, extents)]
    sizes = list(host.sizes.values())
    largest = f"max({', '.join(sizes)})" if len(sizes) > 1 else sizes[0]
    lines.append(f'    assert {largest} <= {LARGEST}, "a size that has no 32 bits when it is rounded up"')
    lines += [f"    {p} = {g.parts[a]}" for a, p in host.parts.items()]
    first = host.tensors[0]
    outputs = [out for out, *_ in g.program.outputs]
    lines += [f"    {t.name} = {_empty(g, host, t, first)}" for t in g.tensors.values()]
    for k, s in zip(g.kernels, blocks, strict=True):
        lines += [f"    {line}" for line in _launch(g, k, s, host)]
    return "\n".join([*lines, f"    return {', '.join(outputs)}"])


def _doc(g: MuGraph) -> str:
    shapes = [f"{out}[{', '.join(axes)}]" for out, axes, *_ in g.program.outputs]
    read = [f"{x.tensor}[{', '.join(x.axes)}]" for x in g.program.read]
    return f"{', '.join(shapes)} of {', '.join(read)}."


def _shapes(program: Program, host: Host) -> list[str]:
    """The sizes, read off the inputs' shapes, and asserts that these agree."""
    known: set[str] = set()
    seen: set[str] = set()
    out = []
    for x in program.read:
        own = [host.sizes[a] for a in x.axes]
        if x.tensor not in seen:
            out.append(f"assert {x.tensor}.dtype == {TORCH[x.dtype]} and {x.tensor}.dim() == {len(own)}")
        seen.add(x.tensor)
        if known.isdisjoint(own):
            out.append(f"{', '.join(own)}{',' * (len(own) == 1)} = {x.tensor}.shape")
        else:
            for d, s in enumerate(own):
                out.append(f"assert {x.tensor}.shape[{d}] == {s}" if s in known else f"{s} = {x.tensor}.shape[{d}]")
                known.add(s)
        known |= {*own}
    return out


def _relations(program: Program, host: Host, extents: Mapping[str, Term]) -> list[str]:
    """Sizes that no shape of an input is, and asserts about those that are no dims of their own: two axes of one size,
    an axis of 2 * H. Raises Unsupported for a size that nothing tells."""
    read = {a for x in program.read for a in x.axes}
    known = {str(e.attr): host.sizes[a] for a, e in reversed(list(extents.items())) if e.op == "size" and a in read}
    if unread := [a for a in program.sizes if a not in read and a not in extents]:
        raise Unsupported(f"no tensor that is read has the axis {unread[0]}")
    out = []
    for a, e in extents.items():
        names = {str(s.attr) for s in e.walk() if s.op == "size"}
        if not names <= {*known}:
            if a not in read:
                raise Unsupported(f"no tensor that is read tells the size of the axis {a}")
            continue
        renamed = python_source(T.rewrite(e, lambda s: T.size(known[str(s.attr)]) if s.op == "size" else None))
        if a not in read:
            out.append(f"{host.sizes[a]} = {renamed}")
        elif known.get(str(e.attr)) != host.sizes[a]:
            out.append(f"assert {host.sizes[a]} == {renamed}")
    return out


def _extent(host: Host, t: Tensor) -> str:
    each = [host.parts[d.axis] if d.parts else host.sizes[d.axis] for d in t.dims]
    return f"({', '.join(each)}{',' * (len(each) == 1)})"


def _empty(g: MuGraph, host: Host, t: Tensor, like: str) -> str:
    return f"torch.empty({_extent(host, t)}, dtype={TORCH[t.dtype]}, device={like}.device)"


def _launch(g: MuGraph, k: Kernel, s: Signature, host: Host) -> list[str]:
    arguments = _arguments(g, [value for _, value in s.params])
    given = [f"{b}={value}" for b, value in s.blocks]
    out, grid = [], [" * ".join(axes) or "1" for axes in s.grid]
    if len(s.grid[0]) > 1:
        out += [f"blocks = {grid[0]}", 'assert blocks < 2**31, "more blocks than a grid has"']
        grid[0] = "blocks"
    if s.grid[2]:
        out.append(f'assert {grid[2]} <= 65535, "more blocks than axis z of a grid has"')
    while grid[-1] == "1" and len(grid) > 1:
        grid.pop()
    launched = f"{', '.join(grid)}{',' * (len(grid) == 1)}"
    options = [f"num_warps={k.warps}", f"num_stages={k.stages}"]
    return [*out, f"{WRAP}({k.name})[({launched})]({', '.join([*arguments, *given, *options])})"]


def _arguments(g: MuGraph, values: Sequence[str]) -> list[str]:
    """The texts of arguments; all strides of a tensor as *x.stride()."""
    out = []
    for value in values:
        tensor, _, rest = value.removeprefix("@").partition(".")
        stored = g.memory.get(tensor) if value.startswith("@") else None
        if stored is None:
            out.append(value)
            continue
        found = g.input(tensor)
        name = found.tensor if found is not None else tensor
        every = [f"@{tensor}.stride({k})" for k in range(len(stored.dims))]
        if not rest or not set(every) <= {*values}:
            out.append(f"{name}.{rest}" if rest else name)
        elif value == every[0]:
            out.append(f"*{name}.stride()")
    return out


def _case(
    g: MuGraph, name: str, host: Host, calls: Sequence[tuple[str, list[str]]], extents: Mapping[str, Term]
) -> list[str]:
    """The case and its reference, where trilift is there."""
    sizes = _sizes(g.program, host, extents)
    specs: dict[str, str] = {}
    for x in g.program.read:
        shape = ",".join(re.sub(r"\s", "", python_source(sizes[a])) for a in x.axes)
        specs.setdefault(x.tensor, f'{x.tensor}="{x.dtype}[{shape}] strided"')
    texts = [*specs.values(), *(f'{s}="f32"' for s in host.scalars)]
    params = ", ".join([*host.tensors, *host.scalars])
    returned = ", ".join(f"{f}({', '.join(_passed(p, host) for p in ps)})" for f, ps in calls)
    lines = ["if case is not None:", "", f"    @case({', '.join(texts)})", f"    def {name}_case({params}):"]
    lines += [f"        return {name}({params})", "", f"    @{name}_case.reference", f"    def _({params}):"]
    return [*lines, f"        return {returned}"]


def _passed(p: str, host: Host) -> str:
    return p if p in host.tensors else f"{p}={p}"


__all__ = ["formatted", "source"]

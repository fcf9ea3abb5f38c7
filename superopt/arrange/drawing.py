"""A µGraph as one SVG: kernels below each other, tensors in device memory between them; in each kernel its operators in
rows, those of a loop in a frame. Nothing is loaded from elsewhere; every text is escaped.

    tensors that kernel 0 reads
    [kernel 0: blocks, modes | before the loop | (loop) | after it ]
    tensors that it stores, and what else kernel 1 reads
    [kernel 1 ...]

A thread graph is one box with a line for each of its operators. An edge that passes a row has a place of its own in it,
so that it crosses no box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape

from trilift.lift.errors import Unsupported
from trilift.lift.printers.text import element_text
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..mugraph.graph import Dim, Kernel, MuGraph, Operator, ThreadGraph, loops
from ..mugraph.threads import fused, sides
from ..program.abstract import templates
from ..program.formulas import filled
from .layouts import turns

LETTER, LINE = 6.7, 15.0  # width of a letter and height of a line, in pixels at a size of 11
PADDING, GAP, ROW = 8.0, 18.0, 30.0  # within boxes, between boxes of a row, between rows
STYLE = """
.mu text { font: 11px ui-monospace, monospace; fill: #1d2733 }
.mu .halo { stroke: #f6f8fa; stroke-width: 4px; paint-order: stroke }
.mu .name { font-weight: bold }
.mu .faint { fill: #5b6b7c }
.mu .kernel { fill: #f6f8fa; stroke: #8595a8 }
.mu .loop { fill: #e7f0fb; stroke: #7aa5d6; stroke-dasharray: 4 3 }
.mu .operator { fill: #fff; stroke: #5b6b7c }
.mu .dot { fill: #fdf0d5; stroke: #c78f1d }
.mu .fold { fill: #e6f4e6; stroke: #4d9150 }
.mu .thread { fill: #e2f3f3; stroke: #3d8c8c }
.mu .memory { fill: #efe6f7; stroke: #8a63b0 }
.mu .edge { fill: none; stroke: #66788c }
.mu marker path { fill: #66788c }
"""
CLASSES = {
    "dot": "dot",
    "sum": "fold",
    "accumulate": "fold",
    "max": "fold",
    "accumulate_max": "fold",
    "load": "memory",
    "store": "memory",
    "thread": "thread",
}
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def svg(g: MuGraph, title: str = "") -> str:
    """The drawing, a whole SVG document."""
    drawing = _Drawing(g)
    drawing.lay()
    width, height = drawing.width + 2 * GAP, drawing.y + GAP
    usual = f"µGraph of {len(g.kernels)} kernels" if len(g.kernels) > 1 else "µGraph"
    name = escape(title or usual)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mu" viewBox="{-width / 2:.0f} 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">'
    )
    arrow = (
        '<defs><marker id="mu-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )
    parts = [f"<title>{name}</title>", f"<style>{STYLE}</style>", arrow, *drawing.frames, *drawing.edges]
    return "\n".join([head, *parts, *drawing.boxes, "</svg>\n"])


@dataclass
class Box:
    """A box with lines of text, or the place where an edge passes a row; `x` is its middle, `y` its top, `least` what
    it is high at least."""

    lines: Sequence[str]
    kind: str
    x: float = 0.0
    y: float = 0.0
    least: float = 0.0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * LETTER + 2 * PADDING if self.lines else 1.0

    @property
    def height(self) -> float:
        return max(max(2, len(self.lines)) * LINE + PADDING, self.least)

    @property
    def drawn(self) -> str:
        if self.kind == "pass":
            return f'<path class="edge" d="M{self.x:.1f} {self.y:.1f} v{self.height:.1f}"/>'
        left = self.x - self.width / 2
        rounded = 9 if self.kind == "memory" else 3
        out = [f'<g><rect class="{self.kind}" x="{left:.1f}" y="{self.y:.1f}" width="{self.width:.1f}" '
               f'height="{self.height:.1f}" rx="{rounded}"/>']  # fmt: skip
        for k, line in enumerate(self.lines):
            style = "faint" if k and k == len(self.lines) - 1 else "name"
            out.append(_text(self.x, self.y + PADDING / 2 + (k + 0.75) * LINE, line, style))
        return "".join(out) + "</g>"


Key = tuple[str, str]  # ("memory", tensor), ("value", name) or ("stored", tensor)


@dataclass
class _Drawing:
    graph: MuGraph
    y: float = GAP
    width: float = 0.0
    frames: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)

    def lay(self) -> None:
        """Places everything, from the top."""
        above: dict[str, Box] = {}
        stores: dict[str, Box] = {}
        for k in self.graph.kernels:
            read = {o.args[0] for o in k.loads} - set(stores)
            above = self.memories([*stores, *sorted(read)], stores)
            stores = self.kernel(k, above)
        self.memories(list(stores), stores)

    def memories(self, names: list[str], stores: dict[str, Box]) -> dict[str, Box]:
        """A row of tensors, with edges from the operators that store them."""
        out = {name: Box(self.memory(name), "memory") for name in names}
        self.row(list(out.values()))
        for name, b in stores.items():
            self.edge(b, out[name])
        self.y += ROW
        return out

    def kernel(self, k: Kernel, above: dict[str, Box]) -> dict[str, Box]:
        """Draws a kernel below the tensors that it reads; the operators that store, by tensor."""
        layout = Layout(self.graph, *collapsed(k))
        top, widest = self.y, max(map(len, self.header(k))) * LETTER
        self.y += 2 * LINE + GAP
        at: dict[Key, Box] = {("memory", name): b for name, b in above.items()}
        spans: dict[int, tuple[float, float]] = {}
        for r, (stage, operators) in enumerate(layout.rows):
            if layout.looped and stage not in spans:
                spans[stage] = self.y, self.y
                self.y += LINE + 4
            widest = max(widest, self.operators(layout, operators, layout.passing[r], at))
            if layout.looped:
                spans[stage] = spans[stage][0], self.y
            self.y += ROW
        self.y -= ROW - GAP
        left = -widest / 2 - GAP
        self.frame(left, top, -2 * left, self.y - top, "kernel")
        self.texts(left + PADDING, top, self.header(k))
        for stage, (start, end) in spans.items():
            if stage % 2:
                self.frame(left + GAP / 2, start, -2 * left - GAP, end - start + GAP / 2, "loop")
            self.texts(left + GAP, start - 2, [self.stage(layout, stage)], "faint")
        self.y += ROW
        return {name: b for (kind, name), b in at.items() if kind == "stored"}

    def operators(self, layout: Layout, operators: list[Operator], passing: list[Key], at: dict[Key, Box]) -> float:
        """Draws a row of operators, and edges that pass it; how wide it is. `at`: where values come from."""
        items: list[tuple[Box, list[Key], Key]] = [
            (Box(layout.label(o), CLASSES.get(o.op, "operator")), sources(o), made(o)) for o in operators
        ]
        items += [(Box((), "pass"), [key], key) for key in passing if key in at]
        items.sort(key=lambda item: sum(at[a].x for a in item[1]) / max(len(item[1]), 1))
        self.row([b for b, _, _ in items])
        for b, keys, _ in items:
            for a in dict.fromkeys(keys):
                self.edge(at[a], b)
        at |= {key: b for b, _, key in items}
        return self.span([b for b, _, _ in items])

    def row(self, boxes: list[Box]) -> None:
        """Boxes beside each other, centred, below what is there."""
        x = -self.span(boxes) / 2
        for b in boxes:
            b.x, b.y = x + b.width / 2, self.y
            x += b.width + GAP
        tallest = max((b.height for b in boxes), default=2 * LINE + PADDING)
        for b in boxes:
            b.least = tallest if b.kind == "pass" else 0.0
        self.boxes += [b.drawn for b in boxes]
        self.width = max(self.width, self.span(boxes) + 2 * GAP)
        self.y += tallest

    def span(self, boxes: Sequence[Box]) -> float:
        return sum(b.width for b in boxes) + GAP * max(len(boxes) - 1, 0)

    def edge(self, a: Box, b: Box) -> None:
        x, y, u, v = a.x, a.y + a.height, b.x, b.y
        bend = (v - y) / 2
        arrow = "" if b.kind == "pass" else ' marker-end="url(#mu-arrow)"'
        path = f"M{x:.1f} {y:.1f} C{x:.1f} {y + bend:.1f} {u:.1f} {v - bend:.1f} {u:.1f} {v:.1f}"
        self.edges.append(f'<path class="edge" d="{path}"{arrow}/>')

    def frame(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        self.width = max(self.width, width)
        self.frames.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5"/>'
        )

    def texts(self, x: float, y: float, lines: Sequence[str], kind: str = "name") -> None:
        """Lines of text, the first one of this kind."""
        for n, line in enumerate(lines):
            self.boxes.append(_text(x, y + (n + 1) * LINE, line, "faint halo" if n else f"{kind} halo", "start"))

    # ---- texts

    def memory(self, name: str) -> list[str]:
        t = self.graph.memory[name]
        return [name, f"[{', '.join(f'{d} {self.graph.extent(d)}' for d in t.dims)}] {t.dtype}"]

    def header(self, k: Kernel) -> list[str]:
        n = self.graph.blocks(k)
        first = f"{k.name}: {n} block{'s' if n > 1 else ''}, {k.warps} warps, {k.stages} stages"
        return [first, " · ".join(self.mode(k, a) for a in k.modes)]

    def mode(self, k: Kernel, a: str) -> str:
        mode, tile = k.modes[a], k.tiles[a]
        if mode == "split":
            return f"{a}: {self.graph.parts[a]} parts, loop by {tile}"
        return f"{a}: whole" if mode == "whole" else f"{a}: {mode} by {tile}"

    def stage(self, layout: Layout, stage: int) -> str:
        if stage % 2 == 0:
            last = 2 * len({*layout.loops.values()})
            return "before the loop" if stage == 0 else "after the loop" if stage == last else "between the loops"
        a = next(layout.loops[o] for o, s in layout.stages.items() if s == stage)
        n = turns(self.graph, layout.kernel, a)
        return f"for tiles of {a}: {n} iteration{'s' if n > 1 else ''}"


@dataclass
class Layout:
    """The rows of a kernel: an operator is below its arguments, a load just above its first use. `threads`: thread
    graphs, each one operator of the kernel, by what they make."""

    graph: MuGraph
    kernel: Kernel
    threads: dict[str, ThreadGraph] = field(default_factory=dict)

    @property
    def looped(self) -> bool:
        return bool(self.loops)

    @cached_property
    def loops(self) -> dict[Operator, str]:
        return loops(self.kernel)

    @cached_property
    def stages(self) -> dict[Operator, int]:
        return sides(self.kernel)

    @cached_property
    def rows(self) -> list[tuple[int, list[Operator]]]:
        """(stage, operators) of each row."""
        at: dict[int, tuple[int, int]] = {}
        place: dict[str, int] = {}
        operators = list(enumerate(self.kernel.operators))
        for k, o in operators:
            stage = self.stages[o]
            below = [at[place[a]][1] + 1 for a in o.args if o.op != "load" and at[place[a]][0] == stage]
            at[k] = stage, max(below, default=0)
            if o.op != "store":
                place[o.out] = k
        for k, o in reversed(operators):
            if o.op == "load":
                uses = [at[u][1] for u, p in operators if o.out in p.args and p.op != "load" and at[u][0] == at[k][0]]
                at[k] = at[k][0], max(min(uses, default=1) - 1, 0)
        last = max((row for stage, row in at.values() if stage == max(self.stages.values())), default=0)
        places = {k: ((s, last) if self.kernel.operators[k].op == "store" else (s, r)) for k, (s, r) in at.items()}
        order = sorted(set(places.values()))
        return [(p[0], [o for k, o in operators if places[k] == p]) for p in order]

    @cached_property
    def passing(self) -> list[list[Key]]:
        """The values from above each row that are used below it."""
        last: dict[Key, int] = {}
        first: dict[Key, int] = {}
        for r, (_, operators) in enumerate(self.rows):
            for o in operators:
                first[made(o)] = r
                last |= dict.fromkeys(sources(o), r)
        return [[k for k, end in last.items() if first.get(k, -1) < r < end] for r in range(len(self.rows))]

    def label(self, o: Operator) -> list[str]:
        tile = ", ".join(f"{d} {self.extent(d)}" for d in sorted(o.dims, key=repr))
        members = self.threads[o.out].operators if o.op == "thread" else (o,)
        return [*map(self.formula, members), f"[{tile}]"]

    def extent(self, d: Dim) -> int:
        return self.graph.parts[d.axis] if d.parts else self.kernel.tiles[d.axis]

    def formula(self, o: Operator) -> str:
        over = f" over {', '.join(o.over)}" if o.over else ""
        if o.op == "load":
            return f"{o.out} = load {o.args[0]}"
        if o.op == "store":
            return f"store {o.args[0]} to {o.out}"
        if o.op in INFIX and len(o.args) == 2:
            return f"{o.out} = {o.args[0]} {INFIX[o.op]} {o.args[1]}"
        return f"{o.out} = {self.function(o)}{over}"

    def function(self, o: Operator) -> str:
        """A function of the program as its formula, any other operator by its name."""
        template = templates(self.graph.program).get(o.op)
        if template is not None:
            try:
                return element_text(self.applied(template, o))
            except Unsupported:
                pass
        return f"{o.op}({', '.join(o.args)})"

    def applied(self, template: Term, o: Operator) -> Term:
        args = [T.scalar(a) for a in o.args]
        return T.mul(template, args[0]) if o.op.startswith("scale:") else filled(template, args)


def collapsed(k: Kernel) -> tuple[Kernel, dict[str, ThreadGraph]]:
    """The kernel with an operator "thread" for each of its thread graphs, and these by what they make."""
    units = [u for u in fused(k) if isinstance(u, ThreadGraph)] if k.threads else []
    threads = {u.outputs[0]: u for u in units if tuple(o.out for o in u.operators) in k.threads}
    inner = {o for t in threads.values() for o in t.operators}
    operators = [o for o in k.operators if o not in inner or o.out in threads]
    joined = [replace(o, op="thread", args=threads[o.out].args) if o in inner else o for o in operators]
    return replace(k, operators=tuple(joined)), threads


def sources(o: Operator) -> list[Key]:
    """The operands of an operator."""
    return [("memory" if o.op == "load" else "value", a) for a in o.args]


def made(o: Operator) -> Key:
    """Its results."""
    return ("stored" if o.op == "store" else "value"), o.out


def _text(x: float, y: float, text: str, kind: str, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'

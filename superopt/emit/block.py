"""The block of a kernel as Triton text: one statement for each operator, tiles masked at the edges.

Every value knows its dimensions in one order, which of its padded lanes are certainly 0, and from which element types
it comes. Before a sum over an axis whose padded lanes may hold anything (exp(0) = 1, 0 / 0) they are set to 0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trilift.lift.errors import Unsupported
from trilift.lift.language.infix import MUL

from ..mugraph.graph import RUNNING, Dim, Operator, Tensor, loops, phases
from ..mugraph.precision import BYTES, HALF, precise
from ..mugraph.reach import Bound, reaches
from ..program import positions
from ..program.template import keeps_zero, tile_text
from .kernel_names import Signature, Tiles

TRITON = {"f16": "tl.float16", "bf16": "tl.bfloat16", "f32": "tl.float32", "f64": "tl.float64"}
LOWEST = '-float("inf")'
BINARY = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}"}
BINARY |= {"maximum": "tl.maximum({0}, {1})"}
UNARY = {"exp": "tl.exp({0})", "sqrt": "tl.sqrt({0})", "sqr": "{0} * {0}", "rsqrt": "tl.rsqrt({0})"}
UNARY |= {"or_zero": f"tl.where({{0}} == {LOWEST}, 0.0, {{0}})"}  # -inf - -inf is no number


@dataclass(frozen=True)
class Value:
    """`text`: a variable; `dims`: of the tile, outermost first; `zero`, `low`, `ones`: whose padded lanes are 0, -inf,
    1; `finite`: no padded lane holds inf or NaN; `raw`: the variable before it was widened, and its type; `origin`: the
    element types of the inputs that it comes from."""

    text: str
    dims: tuple[Dim, ...]
    zero: frozenset[Dim] = frozenset()
    finite: bool = False
    raw: tuple[str, str] | None = None
    origin: frozenset[str] = frozenset()
    low: frozenset[Dim] = frozenset()
    ones: frozenset[Dim] = frozenset()


class Block(Tiles):
    """The text of one kernel, for which the arguments are those of `Tiles`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.uses = Counter(a for o in self.k.operators for a in o.args)
        self.elementwise_uses = Counter(a for o in self.k.operators for a in o.args if o.op not in ("dot", "load"))
        self.values: dict[str, Value] = {}
        self.cleaned: dict[tuple[str, frozenset[Dim]], Value] = {}
        self.shrink: dict[str, Value] = {}
        self.running: dict[str, Value] = {}
        self.lines: list[str] = []
        self.depth = 1
        self.loop = loops(self.k)
        self.reach = reaches(self.g, self.k)
        self.first: dict[str, str] = {}  # index of a block's tile, for axes that bound a loop
        self.precise = {o: how for (kernel, o), how in precise(self.g).items() if kernel == self.k.name}

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, wish: str) -> str:
        return self.names.new(wish)

    def source(self) -> Signature:
        self._grid()
        for a in self.k.modes:
            if self.k.modes[a] == "whole":
                self.write(f"{self.index[a]} = tl.arange(0, {self.tile[a]})")
        straight, *rest = phases(self.k)
        for inside, after in zip(rest[::2], rest[1::2], strict=True):
            self._accumulators(inside)
            self._straight(straight)
            self._loop(inside)
            straight = after
        self._straight(straight)
        used = {w for line in self.lines for w in re.findall(r"\w+", line)}
        params = tuple(p for p in self.params if p[0] in used)
        return Signature(self.k.name, params, tuple(self.blocks), self._counts(), tuple(self.lines))

    def _grid(self) -> None:
        """The index of the block along each grid axis."""
        for k, axes in enumerate(self._places()):
            if len(axes) < 2:
                for a in axes:
                    self._indexed(a, f"tl.program_id({k})")
                continue
            block = self.fresh("block")
            self.write(f"{block} = tl.program_id({k})")
            for a in reversed(axes[1:]):
                count = self.extent(self._only(a))
                if a in self.tile:
                    blocks = self.fresh(f"blocks_{a}")
                    self.write(f"{blocks} = tl.cdiv({count}, {self.tile[a]})")
                    count = blocks
                self._indexed(a, f"({block} % {count})")
                if a != axes[1]:
                    self.write(f"{block} = {block} // {count}")
            self._indexed(axes[0], f"({block} // {count})")

    def _indexed(self, a: str, block: str) -> None:
        if self.k.modes[a] == "split":
            self.part = self.fresh(f"part_{a}")
            self.write(f"{self.part} = {block}.to(tl.int64)")
            return
        first = f"{block}.to(tl.int64)"
        if a not in self.tile:
            self.write(f"{self.index[a]} = {first}")
            self.first[a] = self.index[a]
            return
        first += f" * {self.tile[a]}"
        if any(a == b.axis for r in self.reach.values() for b in (*r.least, *r.most)):
            self.first[a] = self.fresh(f"first_{a}")
            self.write(f"{self.first[a]} = {first}")
            first = self.first[a]
        self.write(f"{self.index[a]} = {first} + tl.arange(0, {self.tile[a]})")

    def _straight(self, operators: Sequence[Operator]) -> None:
        for o in operators:
            self.operator(o)

    def _loop(self, inside: Sequence[Operator]) -> None:
        a = self.loop[inside[0]]
        tile = self.tile.get(a, "1")
        start = self.fresh(f"start_{a}")
        extent = self.extent(self._only(a)) if self.k.modes[a] == "loop" else self.size[a]
        if self.k.modes[a] == "split":
            share = self.fresh(f"share_{a}")
            parts = self.kernel_parts[a]
            self.write(f"{share} = tl.cdiv(tl.cdiv({extent}, {parts}), {tile}) * {tile}")
            bounds = f"{self.part} * {share}, {self.part} * {share} + {share}, {tile}"
        else:
            bounds = f"{self._least(a)}, {self._most(a, extent)}, {tile}"
        self.write(f"for {start} in range({bounds}):")
        self.depth += 1
        lanes = f" + tl.arange(0, {tile})" if a in self.tile else ""
        self.write(f"{self.index[a]} = {start}{lanes}")
        self._straight(inside)
        self.depth -= 1
        self.cleaned.clear()
        self.values |= self.running

    def _least(self, a: str) -> str:
        """The first index of the loop that a mask leaves open in a row of the block."""
        out = "0"
        for b in self.reach[a].least if a in self.reach else ():
            if (least := self._bound(b, b.constant)) is not None:
                out = f"tl.maximum({out}, {least})"
        return out

    def _most(self, a: str, extent: str) -> str:
        """The end of the indices that a mask leaves open in the rows of the block."""
        out = extent
        for b in self.reach[a].most if a in self.reach else ():
            if (most := self._bound(b, b.constant + 1 - (b.axis in self.tile))) is not None:
                beyond = f" + {self.tile[b.axis]}" if b.axis in self.tile else ""
                out = f"tl.minimum({out}, {most}{beyond})"
        return out

    def _bound(self, b: Bound, constant: int) -> str | None:
        """The bound at the first index of the block's tile; None where the kernel lacks a number of it."""
        out = "0" if b.axis is None else self.first[b.axis]
        for n, t in b.terms:
            if t not in self.given:
                return None
            factor = f"{abs(n)} * " if abs(n) != 1 else ""
            out += f" {'+' if n > 0 else '-'} {factor}{self.given[t]}"
        return f"{out} {'+' if constant > 0 else '-'} {abs(constant)}" if constant else out

    def _accumulators(self, inside: Sequence[Operator]) -> None:
        for o in inside:
            if o.op in RUNNING:
                dims = self.sorted(o.dims)
                name = self.fresh(o.out)
                self.write(f"{name} = {self._filled(dims, '0.0' if o.op == 'accumulate' else LOWEST)}")
                self.values[o.out] = Value(name, dims)

    def _filled(self, dims: tuple[Dim, ...], number: str) -> str:
        if not dims:
            return number
        shape = ", ".join(self.tile[d.axis] for d in dims) + "," * (len(dims) == 1)
        zero = f"tl.zeros(({shape}), tl.float32)"
        return zero if number == "0.0" else f"tl.full(({shape}), {number}, tl.float32)"

    # ---- operators

    def operator(self, o: Operator) -> None:
        if o.out in self.deferred:
            return
        if o.op == "load":
            self._load(o)
        elif o.op == "store":
            self._store(o)
        elif o.op == "sum":
            self._sum(o)
        elif o.op == "dot":
            self._assigned(o, *self._dot(o))
        elif o.op == "accumulate":
            self._accumulate(o)
        elif o.op == "max":
            self._max(o)
        elif o.op == "accumulate_max":
            self._accumulate_max(o)
        else:
            self._elementwise(o)

    @property
    def masked(self) -> bool:
        """Whether a whole tile may be minus infinity."""
        elements = [self.element(self.tensor(o)) for o in self.k.loads]
        functions = [self.templates.get(o.op) for o in self.k.operators]
        return any(e is not None and positions.unbounded(e) for e in [*elements, *functions])

    @property
    def deferred(self) -> set[str]:
        """Products that are made where they are added: acc = tl.dot(a, b, acc)."""
        if not hasattr(self, "_deferred"):
            self._deferred: set[str] = set()
            for o in self.k.operators:
                if o.op in ("accumulate", "add"):
                    self._deferred |= {a for a in o.args if a in self.ops and self._fuses(a, o)}
        return self._deferred

    def _fuses(self, a: str, into: Operator) -> bool:
        """Whether the value is a sum or product that only `into` uses, and of its shape."""
        made = self.ops[a]
        if self.uses[a] != 1 or self.sorted(made.dims) != self.sorted(into.dims):
            return False
        if self.loop.get(made) != self.loop.get(into):
            return False
        if made.op == "dot":
            return None not in self.dot_dims(made)
        return made.op == "add" and into.op == "accumulate" and any(self._fuses(x, made) for x in made.args)

    def _accumulate(self, o: Operator) -> None:
        acc = self.values[o.out]
        scaled = acc.text
        if len(o.args) > 1:
            shrink = self.shaped(self.shrink[o.args[1]], acc.dims)
            scaled = f"{acc.text} * {shrink}"
            if not self._is_product(o.args[0]):
                self.write(f"{acc.text} *= {shrink}")
                scaled = acc.text
        self._added(acc.text, scaled, o.args[0], o)
        origin = self._origin(o.args[0])
        zero = frozenset(d for d in acc.dims if d.axis in o.over)
        self.values[o.out] = Value(acc.text, acc.dims, zero, False, None, origin)

    def _origin(self, a: str) -> frozenset[str]:
        if a in self.values:
            return self.values[a].origin
        return frozenset[str]().union(*(self._origin(x) for x in self.ops[a].args))

    def _is_product(self, a: str) -> bool:
        return a in self.deferred and self.ops[a].op == "dot"

    def _added(self, acc: str, before: str, a: str, into: Operator) -> None:
        """acc = before + a, products as tl.dot(x, y, before)."""
        if self._is_product(a):
            self.write(f"{acc} = {self._dot(self.ops[a], before)[0]}")
        elif a in self.deferred:
            for x in self.ops[a].args:
                self._added(acc, acc, x, into)
        else:
            dims = self.sorted(into.dims)
            v = self.values[a]
            over = [d for d in v.dims if d.axis in into.over]
            self.write(f"{acc} += {self.shaped(self.clean(v, over), dims)}")

    def _load(self, o: Operator) -> None:
        t = self.tensor(o)
        dims = self.sorted(t.dims)
        if (element := self.element(t)) is not None:
            name = self.fresh(o.out)
            indices = {d.axis: self._index(d, dims) for d in t.dims}
            self.write(f"{name} = {positions.values(element, indices, self.given)}")
            self.values[o.out] = Value(name, dims, finite=not positions.unbounded(element))
            return
        mask = self._mask(dims)
        rest = f", mask={mask}, other=0.0" if mask else ""
        name = self.fresh(o.out)
        self.write(f"{name} = tl.load({self._address(t, dims)}{rest})")
        raw = name, t.dtype
        is_input = self.g.input(t.name) is not None
        if t.dtype in (*HALF, *BYTES) and self.elementwise_uses[o.out]:
            name = self.fresh(f"{o.out}_f32")
            self.write(f"{name} = {raw[0]}.to(tl.float32)")
        counts = t.dtype in HALF or (is_input and t.dtype not in BYTES)
        origin = frozenset({t.dtype}) if counts else frozenset[str]()
        self.values[o.out] = Value(name, dims, frozenset(dims), True, raw, origin)

    def _address(self, t: Tensor, dims: tuple[Dim, ...]) -> str:
        out = [self.pointers[t.name]]
        scalars = [d for d in t.dims if self.scalar(d)]
        for d in (*scalars, *dims):
            out.append(f"{self._index(d, dims)} * {self.strides[t.name, d]}")
        return " + ".join(out)

    def _index(self, d: Dim, dims: tuple[Dim, ...]) -> str:
        if self.k.modes[d.axis] == "split" and d.parts:
            return self.part
        index = self.index[d.axis]
        if d not in dims:
            return index if self.k.modes[d.axis] in ("grid",) else f"{index}.to(tl.int64)"
        at = f"{index}{_slot(d, dims)}"
        return at if self.k.modes[d.axis] == "grid" else f"{at}.to(tl.int64)"

    def _mask(self, dims: Sequence[Dim], of: tuple[Dim, ...] | None = None) -> str:
        """The lanes within the tensor along these dimensions."""
        of = tuple(dims) if of is None else of
        each = [f"{self.index[d.axis]}{_slot(d, of)} < {self.extent(d)}" for d in dims]
        return each[0] if len(each) == 1 else " & ".join(f"({e})" for e in each)

    def _store(self, o: Operator) -> None:
        t, v = self.tensor(o), self.values[o.args[0]]
        dims = self.sorted(t.dims)
        mask = self._mask(dims)
        rest = f", mask={mask}" if mask else ""
        value = self.shaped(v, dims)
        cast = "" if t.dtype == "f32" else f".to({TRITON[t.dtype]})"
        if cast and not value.isidentifier():
            value = f"({value})"
        self.write(f"tl.store({self._address(t, dims)}, {value}{cast}{rest})")

    def shaped(self, v: Value, dims: tuple[Dim, ...]) -> str:
        """The value's text broadcast to dimensions."""
        if set(v.dims) - {*dims}:
            raise Unsupported(f"a value over {v.dims} where one over {dims} is meant")
        if not v.dims or v.dims == dims:
            return v.text
        slots = ", ".join(":" if d in v.dims else "None" for d in dims)
        return f"{v.text}[{slots}]"

    def clean(self, v: Value, over: Iterable[Dim]) -> Value:
        """The value with 0 in the lanes beyond the tensor."""
        dirty = [d for d in v.dims if d in over and d not in v.zero]
        if not dirty:
            return v
        key = v.text, frozenset(dirty)
        if key not in self.cleaned:
            name = self.fresh(f"{v.text}_in")
            self.write(f"{name} = tl.where({self._mask(dirty, v.dims)}, {v.text}, 0.0)")
            self.cleaned[key] = Value(name, v.dims, v.zero | {*dirty}, v.finite, None, v.origin)
        return self.cleaned[key]

    def divisor(self, v: Value, inside: bool) -> Value:
        """The value with 1 for the 0 of lanes beyond the tensor: 0 / 0 must not reach a maximum or a product, nor, from
        inside of a loop, what the loop keeps."""
        beyond = [d for d in v.dims if d in v.zero or (inside and d not in v.ones)]
        if not beyond:
            return v
        name = self.fresh(f"{v.text}_or_1")
        self.write(f"{name} = tl.where({self._mask(beyond, v.dims)}, {v.text}, 1.0)")
        return Value(name, v.dims, finite=v.finite, origin=v.origin, ones=frozenset(beyond))

    def _max(self, o: Operator) -> None:
        """The maximum over the tile; from here on the lanes beyond the tensor are -inf, of which exp is 0."""
        v = self.values[o.args[0]]
        over = [d for d in v.dims if d.axis in o.over]
        if over:
            name = self.fresh(f"{v.text}_in")
            self.write(f"{name} = tl.where({self._mask(over, v.dims)}, {v.text}, {LOWEST})")
            v = self.values[o.args[0]] = Value(name, v.dims, v.zero - {*over}, False, None, v.origin, frozenset(over))
        text, left = v.text, list(v.dims)
        for d in over:
            text = f"tl.max({text}, axis={left.index(d)})"
            left.remove(d)
        self._assigned(o, text, frozenset(), False, v.origin)

    def _accumulate_max(self, o: Operator) -> None:
        """The maximum so far, and what sums relative to the one before are multiplied by. A part, or a masked tile,
        may have no element: its maximum stays -inf, and -inf - -inf must not be taken."""
        top, tile = self.values[o.out], self.values[o.args[0]]
        higher = self.fresh(f"{o.out}_new")
        self.write(f"{higher} = tl.maximum({top.text}, {tile.text})")
        shift = higher
        if self.k.modes[o.over[0]] == "split" or self.masked:
            shift = self.fresh("shift")
            self.write(f"{shift} = tl.where({higher} == {LOWEST}, 0.0, {higher})")
        shrink = self.fresh("shrink")
        self.write(f"{shrink} = tl.exp({top.text} - {shift})")
        self.write(f"{top.text} = {higher}")
        self.shrink[o.out] = Value(shrink, top.dims)
        self.running[o.out] = top
        self.values[o.out] = Value(shift, top.dims, origin=tile.origin)

    def _sum(self, o: Operator) -> None:
        v = self.values[o.args[0]]
        over = [d for d in v.dims if d.axis in o.over]
        v = self.clean(v, over)
        text, left = v.text, list(v.dims)
        for d in over:
            text = f"tl.sum({text}, axis={left.index(d)})"
            left.remove(d)
        self._assigned(o, text, v.zero - {*over}, v.finite, v.origin)

    def _assigned(
        self,
        o: Operator,
        text: str,
        zero: frozenset[Dim],
        finite: bool,
        origin: frozenset[str],
        low: frozenset[Dim] = frozenset(),
    ) -> None:
        name = self.fresh(o.out)
        self.write(f"{name} = {text}")
        self.values[o.out] = Value(name, self.sorted(o.dims), zero, finite, None, origin, low)

    def _dot(self, o: Operator, acc: str = "") -> tuple[str, frozenset[Dim], bool, frozenset[str]]:
        rows, cols, over = self.dot_dims(o)
        left, right = (self.values[a] for a in o.args)
        left = left if over in right.zero and left.finite else self.clean(left, [over])
        right = right if over in left.zero and right.finite else self.clean(right, [over])
        if rows is not None and cols is not None and self.rank[cols] < self.rank[rows]:
            left, right, rows, cols = right, left, cols, rows
        finite, origin = left.finite and right.finite, left.origin | right.origin
        zero = (left.zero | right.zero) - {over} if finite else frozenset[Dim]()
        dims = self.sorted(o.dims)
        if rows is None or cols is None:
            whole = self.sorted({*left.dims, *right.dims})
            text = f"tl.sum({self.shaped(left, whole)} * {self.shaped(right, whole)}, axis={whole.index(over)})"
            return text, zero & {*dims}, finite, origin
        half = _dot_type(origin)
        kind = "f32" if o.out in self.precise else half
        a = self._operand(left, kind, (rows, over))
        b = self._operand(right, kind, (over, cols))
        precision = "ieee" if half == "f32" else self.precise.get(o.out, "")
        more = (f", {acc}" if acc else "") + ("" if kind in HALF else f', input_precision="{precision}"')
        return f"tl.dot({a}, {b}{more})", zero, finite, origin

    def _operand(self, v: Value, kind: str, order: tuple[Dim, Dim]) -> str:
        if v.raw is not None and v.raw[1] == kind:
            text = v.raw[0]
        else:
            wide = v.raw is None or v.raw != (v.text, v.raw[1])
            text = v.text if kind == "f32" and wide else f"{v.text}.to({TRITON[kind]})"
        return text if v.dims == order else f"tl.trans({text})"

    def _elementwise(self, o: Operator) -> None:
        args = [self.values[a] for a in o.args if a not in self.deferred]
        dims = self.sorted(o.dims)
        late = [a for a in o.args if a in self.deferred]
        origin = frozenset[str]().union(*(self._origin(a) for a in o.args))
        if late:
            self._sum_of_products(o, late, args, origin)
            return
        if o.op == "div":
            args[1] = self.divisor(args[1], o.inside)
        texts = [self.shaped(v, dims) for v in args]
        if o.op in BINARY:
            text = BINARY[o.op].format(*texts)
        elif o.op in UNARY:
            text = UNARY[o.op].format(*texts)
        elif o.op in self.templates:
            text = self._template(o, texts)
        else:
            raise Unsupported(f"{o.op} is not an operator of a block")
        zero = frozenset(d for d in dims if self._keeps_zero(o, args, d))
        finite = all(v.finite for v in args) and o.op in ("add", "mul", "sqr")
        finite = finite or (o.op.startswith("scale") and args[0].finite)
        finite = finite or (o.op == "div" and args[0].finite and args[1].ones >= {*dims})
        self._assigned(o, text, zero, finite, origin, args[0].low if o.op in ("sub",) else frozenset())

    def _template(self, o: Operator, texts: list[str]) -> str:
        template = self.templates[o.op]
        if o.op.startswith("scale"):
            return f"{texts[0]} * {tile_text(template, [], self.given).at(MUL + 0.5)}"
        return tile_text(template, texts, self.given).text

    def _keeps_zero(self, o: Operator, args: Sequence[Value], d: Dim) -> bool:
        zeros = [d in v.zero for v in args]
        if o.op == "exp":
            return d in args[0].low
        if o.op == "mul":
            return any((z and args[1 - k].finite) or all(zeros) for k, z in enumerate(zeros))
        if o.op == "div":
            return zeros[0] and d in args[1].ones
        if o.op in ("add", "sqrt", "sqr") or o.op.startswith("scale"):
            return all(zeros)
        if o.op.startswith("map") and len(args) == 1:
            return all(zeros) and keeps_zero(self.templates[o.op])
        return False

    def _sum_of_products(self, o: Operator, late: list[str], args: list[Value], origin: frozenset[str]) -> None:
        dims = self.sorted(o.dims)
        name = self.fresh(o.out)
        start = args and args[0].dims == dims  # a sum of products starts from a whole tile
        self.write(f"{name} = {args[0].text if start else self._dot(self.ops[late.pop(0)])[0]}")
        for a in late:
            self.write(f"{name} = {self._dot(self.ops[a], name)[0]}")
        if args and not start:
            self.write(f"{name} += {self.shaped(args[0], dims)}")
        self.values[o.out] = Value(name, dims, frozenset(), False, None, origin)


def _slot(d: Dim, dims: tuple[Dim, ...]) -> str:
    if len(dims) < 2:
        return ""
    return f"[{', '.join(':' if x == d else 'None' for x in dims)}]"


def _dot_type(origin: frozenset[str]) -> str:
    """The type of the operands of a product of values that come from these types."""
    return next(iter(origin)) if len(origin) == 1 and origin <= {*HALF} else "f32"

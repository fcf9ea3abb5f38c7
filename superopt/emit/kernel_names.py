"""The tiles of a kernel: the order of their dimensions, the names of sizes, strides and indices, the grid."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, permutations

from trilift.lift.errors import Unsupported
from trilift.lift.terms.term import Term

from ..mugraph.graph import Dim, Kernel, MuGraph, Operator, Tensor
from ..program.positions import launch_numbers
from ..program.template import numbers

TAKEN = {"tl", "triton", "torch", "libdevice", "case", "range", "float", "min", "max", *keyword.kwlist}

ROWS = 64  # of the first operand that wgmma takes


@dataclass
class Names:
    """Identifiers that are not taken yet."""

    taken: set[str] = field(default_factory=lambda: set(TAKEN))

    def new(self, *wishes: str) -> str:
        """The first wish that is free, else the last one with a number."""
        wishes = tuple("".join(c if c.isalnum() else "_" for c in w) for w in wishes)
        wishes = tuple(f"v{w}" if w[:1].isdigit() or not w else w for w in wishes)
        numbered = (f"{wishes[-1]}_{k}" for k in count(1))
        out = next(w for w in chain(wishes, numbered) if w not in self.taken)
        self.taken.add(out)
        return out


@dataclass(frozen=True)
class Signature:
    """Parameters of the kernel and the host's expression for each, in order; `blocks`: constexprs and their texts."""

    name: str
    params: tuple[tuple[str, str], ...]
    blocks: tuple[tuple[str, str], ...]
    grid: tuple[list[str], list[str], list[str]]
    lines: tuple[str, ...]


class Tiles:
    """The tiles of one kernel. `sizes`: the host's name for the size of each axis, `parts` for the number of its parts;
    `scalars`: the host's text for each number of a template."""

    def __init__(
        self,
        g: MuGraph,
        k: Kernel,
        names: Mapping[str, Term],
        sizes: Mapping[str, str],
        parts: Mapping[str, str],
        scalars: Mapping[Term, str],
    ) -> None:
        self.g, self.k, self.templates = g, k, names
        self.ops = {o.out: o for o in k.operators if o.op != "store"}
        self.host_sizes, self.host_parts, self.host_scalars = sizes, parts, scalars
        self.names = Names({*TAKEN, k.name, *sizes.values(), *parts.values()})
        self._checked()
        self.dims = tuple(dict.fromkeys(d for d in self._dims() if not self.scalar(d)))
        self.rank = self._ranked()
        self._named()

    # ---- dimensions

    def _dims(self) -> Iterable[Dim]:
        for a in self.k.modes:
            for o in self.k.operators:
                yield from sorted((d for d in self._of(o) if d.axis == a), key=repr)

    def _of(self, o: Operator) -> frozenset[Dim]:
        if o.op in ("load", "store"):
            return frozenset(self.tensor(o).dims)
        return o.dims

    def tensor(self, o: Operator) -> Tensor:
        return self.g.memory[o.args[0] if o.op == "load" else o.out]

    def scalar(self, d: Dim) -> bool:
        """Whether a block, or an iteration, has one index of the dimension."""
        mode = self.k.modes[d.axis]
        if mode == "split":
            return d.parts or self.k.tiles[d.axis] == 1
        return mode != "whole" and self.k.tiles[d.axis] == 1

    def _checked(self) -> None:
        for a, mode in self.k.modes.items():
            both = {d for o in self.k.operators for d in self._of(o) if d.axis == a}
            if mode != "split" and len(both) > 1:
                raise Unsupported(f"the axis {a} whole and in parts in one kernel")
        if sum(m == "split" for m in self.k.modes.values()) > 1:
            raise Unsupported("two axes in parts in one kernel")
        for o in self.k.loads:
            if not o.inside and any(self.k.turns(d) for d in o.dims):
                raise Unsupported(f"{o.out} is a tile of a loop, but is loaded outside it")
        for o in self.k.stores:
            missing = [a for a in self.k.grid if a not in {d.axis for d in self.tensor(o).dims}]
            if missing:
                raise Unsupported(f"blocks along {missing[0]} store the same elements of {o.out}")

    def _ranked(self) -> dict[Dim, int]:
        """The order of dimensions in all tiles: the one in which the fewest operands of products are transposed, what
        is computed is the first operand, which stays in registers, and that one has the rows that wgmma takes."""
        if len(self.dims) > 7:
            raise Unsupported(f"{len(self.dims)} axes in the tiles of one kernel")
        dots = [self.dot_dims(o) for o in self.k.operators if o.op == "dot"]
        dots = [d for d in dots if None not in d]
        loads = {o.out for o in self.k.loads}
        operands = [o.args for o in self.k.operators if o.op == "dot" and None not in self.dot_dims(o)]

        def cost(order: Sequence[Dim]) -> float:
            at = {d: k for k, d in enumerate(order)}
            out = 0.0
            for (rows, cols, over), args in zip(dots, operands, strict=True):
                assert rows is not None and cols is not None
                left, right = (rows, cols) if at[rows] < at[cols] else (cols, rows)
                of = dict(zip((rows, cols), args, strict=True))
                out += (at[left] > at[over]) * (0.5 if of[left] in loads else 1)
                out += (at[over] > at[right]) * (0.5 if of[right] in loads else 1)
                out += 0.2 * (of[right] not in loads)
                out += 0.1 * (self.k.tiles[left.axis] < ROWS <= self.k.tiles[right.axis])
            return out

        best = min(permutations(self.dims), key=cost)
        return {d: k for k, d in enumerate(best)}

    def dot_dims(self, o: Operator) -> tuple[Dim | None, Dim | None, Dim]:
        """The dimension that only the first operand has, only the second, and the one that is summed."""
        sets = [frozenset(d for d in self._result(a) if not self.scalar(d)) for a in o.args]
        over = [d for d in sets[0] & sets[1] if d.axis in o.over]
        if len(sets) != 2 or len(over) != 1 or sets[0] & sets[1] - {*over} or any(len(s) > 2 for s in sets):
            raise Unsupported("a product of tiles that are not matrices")
        rest = [next(iter(s - {*over}), None) for s in sets]
        return rest[0], rest[1], over[0]

    def _result(self, name: str) -> frozenset[Dim]:
        return self._of(self.ops[name])

    def sorted(self, dims: Iterable[Dim]) -> tuple[Dim, ...]:
        return tuple(sorted((d for d in dims if not self.scalar(d)), key=lambda d: self.rank[d]))

    def element(self, t: Tensor) -> Term | None:
        """The value of an element of a tensor, where it is computed and not read."""
        found = self.g.input(t.name)
        return None if found is None else found.element

    def _numbers(self, o: Operator) -> list[Term]:
        """The numbers of the launch that an operator needs."""
        element = self.element(self.tensor(o)) if o.op == "load" else None
        if element is not None:
            return launch_numbers(element)
        return numbers(self.templates[o.op], len(o.args)) if o.op in self.templates else []

    # ---- names

    def _named(self) -> None:
        self.pointers, self.strides, self.params = {}, {}, []
        every = [self.tensor(o) for o in (*self.k.loads, *self.k.stores)]
        tensors = dict.fromkeys(x.name for x in every if self.element(x) is None)
        for t in tensors:
            self.pointers[t] = self.names.new(f"{t}_ptr")
            self.params.append((self.pointers[t], f"@{t}"))
        self.size, self.tile, self.index, self.kernel_parts = {}, {}, {}, {}
        for a in self.k.modes:
            if any(d.axis == a and not d.parts for d in self._dims()):
                self.size[a] = self.host_sizes[a]
                self.params.append((self.size[a], self.host_sizes[a]))
        for t in tensors:
            for position, d in enumerate(self.g.memory[t].dims):
                name = self.names.new(f"stride_{t}_{d.axis}")
                self.strides[t, d] = name
                self.params.append((name, f"@{t}.stride({position})"))
        self.given: dict[Term, str] = {}
        for o in self.k.operators:
            for number in self._numbers(o):
                if number not in self.given:
                    host = self.host_scalars[number]
                    self.given[number] = self.names.new(host if host.isidentifier() else "factor")
                    self.params.append((self.given[number], host))
        blocks: list[tuple[str, str]] = []
        for a, mode in self.k.modes.items():
            if any(d.axis == a and d.parts for d in self._dims()) or mode == "split":
                self.kernel_parts[a] = self.host_parts[a]
                blocks.append((self.host_parts[a], self.host_parts[a]))
            self.index[a] = self.names.new(a, f"at_{a}")
            if mode == "whole" or self.k.tiles[a] > 1:
                self.tile[a] = self.names.new(f"BLOCK_{a.upper()}", f"TILE_{a.upper()}")
                blocks.append((self.tile[a], self._tile_text(a)))
        self.blocks = blocks

    def _tile_text(self, a: str) -> str:
        if self.k.modes[a] != "whole":
            return str(self.k.tiles[a])
        least = 16 if any(o.op == "dot" and self._in_dot(o, a) for o in self.k.operators) else 1
        extent = self.host_sizes[a] if a in self.size else self.host_parts[a]
        power = f"triton.next_power_of_2({extent})"
        return f"max({power}, {least})" if least > 1 else power

    def _in_dot(self, o: Operator, a: str) -> bool:
        return any(d.axis == a for x in o.args for d in self._result(x))

    def extent(self, d: Dim) -> str:
        return self.kernel_parts[d.axis] if d.parts else self.size[d.axis]

    # ---- the grid

    def _places(self) -> tuple[list[str], list[str], list[str]]:
        """The axes along x, y and z of the grid, the last one of each fastest: parts along y, indices without tiles
        along z where two axes or more are tiled."""
        others = [a for a in self.k.grid if self.k.modes[a] != "split"]
        split = [a for a in self.k.grid if self.k.modes[a] == "split"]
        tiled = [a for a in others if a in self.tile]
        if len(tiled) < 2:
            return (others, split, []) if others else (split, [], [])
        return tiled, split, [a for a in others if a not in self.tile]

    def _counts(self) -> tuple[list[str], list[str], list[str]]:
        """On the host, the number of blocks along each axis: the factors of x, y and z."""
        x, y, z = ([self._count(a) for a in axes] for axes in self._places())
        return x, y, z

    def _count(self, a: str) -> str:
        if self.k.modes[a] == "split":
            return self.host_parts[a]
        extent = self.host_sizes[a] if a in self.size else self.host_parts[a]
        return f"triton.cdiv({extent}, {self.k.tiles[a]})" if a in self.tile else extent

    def _only(self, a: str) -> Dim:
        return Dim(a, a not in self.size)

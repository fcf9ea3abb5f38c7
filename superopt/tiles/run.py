"""The effect of a tile program on its tensors, at any sizes of axes and tiles, as numbers or in a finite field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trilift.lift.terms.domain import FLOAT64, Float64
from trilift.lift.terms.term import Term

from ..program.program import Node
from ..search.verifier import elementwise, template
from .tile_program import Loop, Seq, Statement, Store, TileProgram, statements

Span = tuple[int, int]  # from, to


def run(
    p: TileProgram, tensors: Mapping[str, Any], tiles: Mapping[str, int], domain: Float64 = FLOAT64
) -> dict[str, Any]:
    """All tensors after the program. `tensors`: arrays of the domain, each as large as its axes say, for every tensor:
    what a variable holds at first is for the caller to say; `tiles`: lanes of a tile of each axis that has a loop, the
    last tile of a loop may have fewer."""
    held = {n: np.array(x) for n, x in tensors.items()}
    _Run(p, held, tiles, domain).statement(p.body, {a: (0, n) for a, n in p.sizes.items()})
    return held


class _Run:
    def __init__(self, p: TileProgram, held: dict[str, Any], tiles: Mapping[str, int], domain: Float64) -> None:
        self.p, self.held, self.tiles, self.domain = p, held, tiles, domain
        self.order = list(p.sizes)

    def statement(self, s: Statement, at: Mapping[str, Span]) -> None:
        if isinstance(s, Seq):
            for one in statements(s):
                self.statement(one, at)
        elif isinstance(s, Loop):
            start, stop = at[s.axis]
            for k in range(start, stop, self.tiles[s.axis]):
                self.statement(s.body, {**at, s.axis: (k, min(k + self.tiles[s.axis], stop))})
        else:
            self.store(s, at)

    def store(self, s: Store, at: Mapping[str, Span]) -> None:
        own = self.p.tensors[s.tensor].axes
        lanes = [at[a][1] - at[a][0] if a in own else 1 for a in self.order]
        value = np.broadcast_to(self.value(s.value, at, {}), lanes)
        ordered = [a for a in self.order if a in own]
        tile = value.reshape([at[a][1] - at[a][0] for a in ordered]).transpose([ordered.index(a) for a in own])
        self.held[s.tensor][tuple(slice(*at[a]) for a in own)] = tile

    def value(self, n: Node, at: Mapping[str, Span], done: dict[Node, Any]) -> Any:
        """An array over all axes, of extent 1 along those that it lacks."""
        for m in n.walk():
            done[m] = self._value(m, at, [done[a] for a in m.args])
        return done[n]

    def _value(self, n: Node, at: Mapping[str, Span], args: list[Any]) -> Any:
        if n.op == "input":
            own = self.p.tensors[str(n.attr)].axes
            tile = self.held[str(n.attr)][tuple(slice(*at[a]) for a in own)]
            ordered = [a for a in self.order if a in own]
            return tile.transpose([own.index(a) for a in ordered]).reshape(
                [at[a][1] - at[a][0] if a in own else 1 for a in self.order]
            )
        if n.op == "const":
            assert isinstance(n.attr, Term)
            return np.asarray(template(self.domain, n.attr, [])).reshape([1] * len(self.order))
        if n.op in ("sum", "max"):
            return self._fold(n, at, args[0])
        return elementwise(self.domain, n.op, n.attr, args)

    def _fold(self, n: Node, at: Mapping[str, Span], x: Any) -> Any:
        axis = self.order.index(str(n.attr))
        start, stop = at[str(n.attr)]
        shape = [stop - start if k == axis else e for k, e in enumerate(x.shape)]
        out = self.domain.fold("sum" if n.op == "sum" else "amax", np.broadcast_to(x, shape), axis)
        return np.expand_dims(out, axis)

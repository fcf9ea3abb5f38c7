"""Accesses to one element that no atomic puts in an order, in one run of a launch whose programs wait for each other.

    C[p][q]     the last step of program q that program p knows to be done (Lamport 1978, Mattern 1989)
    release     of an atomic at a:   L[a] = max(L[a], C[p])
    acquire     of an atomic at a:   C[p] = max(C[p], L[a])
    ordered     an access of q in its step k before one of p, if k <= C[p][q]

One run says so of every order in which the atomics come as they did. A compare and swap that fails acquires nothing
here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .observe import Touch, Watched

RELEASES, ACQUIRES = ("acq_rel", "release"), ("acq_rel", "acquire")


class Order:
    """Which accesses of a launch come before which."""

    def __init__(self, page: Watched) -> None:
        programs = {p: k for k, p in enumerate(dict.fromkeys(t.program for t in page.touches))}
        self.known = list(np.eye(len(programs), dtype=np.int64))
        self.released: dict[int, np.ndarray] = {}
        self.steps: dict[Touch, tuple[int, np.ndarray]] = {}
        for t in page.touches:
            p = programs[t.program]
            self.steps[t] = p, self.known[p]
            if t.kind == "atomic":
                self._meet(t, p)

    def _meet(self, t: Touch, p: int) -> None:
        sem = t.op.attrs.get("sem", "acq_rel")
        mine, places = self.known[p].copy(), [int(a) for a in np.unique(t.addresses)]
        for a in places if sem in ACQUIRES else ():
            mine = np.maximum(mine, self.released.get(a, mine))
        for a in places if sem in RELEASES else ():
            self.released[a] = np.maximum(self.released.get(a, mine), mine)
        mine = mine.copy()
        mine[p] += sem in RELEASES
        self.known[p] = mine

    def is_before(self, first: Touch, second: Touch) -> bool:
        """Whether it is known to; of two accesses in the order of the run."""
        (q, then), (p, known) = self.steps[first], self.steps[second]
        return p == q or bool(then[q] <= known[q])


def concurrent(order: Order, mine: list[tuple[Touch, int]]) -> Iterator[tuple[Touch, int, Touch, int]]:
    """The pairs of plain accesses to one element, one of them a store, that nothing orders, with their lanes."""
    plain = [(t, k) for t, k in mine if t.kind != "atomic"]
    for i, (first, k) in enumerate(plain):
        for second, n in plain[i + 1 :]:
            if "store" in (first.kind, second.kind) and not order.is_before(first, second):
                yield first, k, second, n

"""Programs of one launch that take turns: at each access to memory another one may go on, as on a GPU.

Whole programs one after the other say little about a kernel that uses what an atomic tells it: between two atomics of
one program those of others may come.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial

from trilift.lift.interpreter.interpret import Run
from trilift.lift.ttir.ir import Op

from .observe import TOUCHING, Program

PROGRAMS_AT_ONCE = 8  # that take turns; those of larger launches do so in groups, whose programs are drawn


class _Ended(BaseException):
    """Another program has failed."""


class Turns:
    """Whose turn it is, of programs in threads of which one runs at a time. The draws are those of a seed."""

    def __init__(self, bodies: Sequence[Callable[[], None]], draws: random.Random) -> None:
        self.draws = draws
        self.signs = [threading.Semaphore(0) for _ in bodies]
        self.alive = list(range(len(bodies)))
        self.failure: BaseException | None = None
        self.now = 0
        self.threads = [threading.Thread(target=self._run, args=(k, f), daemon=True) for k, f in enumerate(bodies)]

    def run(self) -> None:
        """All bodies to their ends. Raises what one of them raises."""
        for t in self.threads:
            t.start()
        self._wake(self.draws.choice(self.alive))
        for t in self.threads:
            t.join()
        if self.failure is not None:
            raise self.failure

    def pass_on(self) -> None:
        """The turn goes to any program, maybe to the same one."""
        me, other = self.now, self.draws.choice(self.alive)
        if other != me:
            self._wake(other)
            self.signs[me].acquire()
        if self.failure is not None:
            raise _Ended

    def _run(self, me: int, body: Callable[[], None]) -> None:
        self.signs[me].acquire()
        try:
            if self.failure is None:
                body()
        except _Ended:
            pass
        except BaseException as error:
            self.failure = error
        self.alive.remove(me)
        if self.alive:
            self._wake(self.draws.choice(self.alive))

    def _wake(self, k: int) -> None:
        self.now = k
        self.signs[k].release()


class InTurns(Run):
    """A launch whose programs take turns: each lets others go on before it touches memory. `seed`: of whose turn it
    is."""

    seed = 0
    turns: Turns

    def every(self, programs: Sequence[Program], args: Sequence[object]) -> None:
        draws = random.Random(self.seed)
        for group in _groups(list(programs), draws):
            runs = [copy(self) for _ in group]
            turns = Turns([partial(r.one, p, args) for r, p in zip(runs, group, strict=True)], draws)
            for r in runs:
                r.turns = turns
            turns.run()

    def result(self, op: Op) -> object:
        if op.name in TOUCHING:
            self.turns.pass_on()
        return super().result(op)


def in_turns(seed: int) -> type[InTurns]:
    """The kind of run with this seed."""
    return type("InTurns", (InTurns,), {"seed": seed})


def _groups(programs: list[Program], draws: random.Random) -> Iterator[list[Program]]:
    draws.shuffle(programs)
    for k in range(0, len(programs), PROGRAMS_AT_ONCE):
        yield programs[k : k + PROGRAMS_AT_ONCE]

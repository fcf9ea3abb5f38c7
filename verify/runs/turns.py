"""Programs of one launch that take turns: at each access to memory another one may go on, as on a GPU.

Whole programs one after the other say little about a kernel that uses what an atomic tells it: between two atomics of
one program those of others may come.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial

from trilift.lift.interpreter.interpret import Run
from trilift.lift.ttir.ir import Module, Op

from .observe import TOUCHING, Program

PROGRAMS_AT_ONCE = 8  # that take turns; those of larger launches do so in groups, whose programs are drawn
PATIENT_ACCESSES = 256  # accesses of the others, while one waits


class _Ended(BaseException):
    """Another program has failed."""


class Turns:
    """Whose turn it is, of programs in threads of which one runs at a time. The draws are those of a seed. `late`: a
    program that waits before an operation, when it first comes there, until the others are done; or until they have
    gone on for long, for they may wait for it."""

    def __init__(
        self, bodies: Sequence[Callable[[], None]], draws: random.Random, late: int = -1, before: Op | None = None
    ) -> None:
        self.draws, self.late, self.before = draws, late, before
        self.patience = 0  # accesses of the others for which the late one still waits
        self.signs = [threading.Semaphore(0) for _ in bodies]
        self.alive = list(range(len(bodies)))
        self.failure: BaseException | None = None
        self.now = 0
        self.threads = [threading.Thread(target=self._run, args=(k, f), daemon=True) for k, f in enumerate(bodies)]

    def run(self) -> None:
        """All bodies to their ends. Raises what one of them raises."""
        for t in self.threads:
            t.start()
        self._wake(self._next())
        for t in self.threads:
            t.join()
        if self.failure is not None:
            raise self.failure

    def pass_on(self, op: Op) -> None:
        """Before an operation the turn goes to any program, maybe to the same one."""
        me = self.now
        if me == self.late and op is self.before:
            self.patience, self.before = PATIENT_ACCESSES, None
        other = self._next()
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
            self._wake(self._next())

    def _next(self) -> int:
        self.patience -= 1
        others = [k for k in self.alive if k != self.late]
        return self.draws.choice(others if self.patience >= 0 and others else self.alive)

    def _wake(self, k: int) -> None:
        self.now = k
        self.signs[k].release()


class InTurns(Run):
    """A launch whose programs take turns: each lets others go on before it touches memory. `seed`: of whose turn it
    is. `late_at`: the number of the operation before which one of them waits for the others, -1 for none."""

    seed, late_at = 0, -1
    turns: Turns

    def every(self, programs: Iterable[Program], args: Sequence[object]) -> None:
        draws = random.Random(self.seed)
        before = dict(enumerate(touching(self.module))).get(self.late_at)
        for group in _groups(list(programs), draws):
            runs = [copy(self) for _ in group]
            late = draws.randrange(len(group)) if before is not None else -1
            turns = Turns([partial(r.one, p, args) for r, p in zip(runs, group, strict=True)], draws, late, before)
            for r in runs:
                r.turns = turns
            turns.run()

    def result(self, op: Op) -> object:
        if op.name in TOUCHING:
            self.turns.pass_on(op)
        return super().result(op)


def in_turns(seed: int, late_at: int = -1) -> type[InTurns]:
    """The kind of run with this seed."""
    return type("InTurns", (InTurns,), {"seed": seed, "late_at": late_at})


def touching(module: Module) -> list[Op]:
    """The operations of a kernel that touch memory."""
    return [op for op in module.walk() if op.name in TOUCHING]


def _groups(programs: list[Program], draws: random.Random) -> Iterator[list[Program]]:
    draws.shuffle(programs)
    for k in range(0, len(programs), PROGRAMS_AT_ONCE):
        yield programs[k : k + PROGRAMS_AT_ONCE]

"""Objects of a host's own that hold a number which other code changes, each read in another way."""

from __future__ import annotations

import array
import collections
import dataclasses
import decimal
import enum
import functools
import inspect
import threading
import types

import numpy as np
import torch

LOCAL, ARRAY, DEQUE = threading.local(), array.array("d", [1.0]), collections.deque([1.0])
CHAIN, SPACE, NUMBERS = collections.ChainMap({"s": 1.0}), types.SimpleNamespace(s=1.0), np.array([1.0])
LOCK, PAIR = threading.Lock(), ({"s": 1.0}, 2)
LOCAL.s = 1.0


class Slotted:
    __slots__ = ("s",)

    def __init__(self):
        self.s = 1.0

    @property
    def scale(self):
        return self.s


class Named:
    s = 1.0
    width = 64


class Kind(type):
    @property
    def scale(cls):
        return cls.s


class Known(metaclass=Kind):
    s = 1.0


class Looked:
    numbers = (1.0,)

    def __get__(self, of, kind=None):
        return self.numbers[0]


class Looking:
    scale = Looked()


class Answering:
    def __getattr__(self, name):
        return 1.0


class Mode(enum.Enum):
    FAST = 1


@dataclasses.dataclass(slots=True)
class Options:
    s: float = 1.0


@dataclasses.dataclass(frozen=True)
class Fixed:
    s: float = 1.0

    def scale(self):
        return 1.0


def function():
    pass


function.s = 1.0
SLOTTED, OPTIONS, FIXED, ANSWERING, LOOKING = Slotted(), Options(), Fixed(), Answering(), Looking()
BOUND = functools.partial(getattr, SPACE, "s")
HOOK = lambda: 1.0  # noqa: E731


def closed():
    c = 1.0

    def get():
        return c

    def put(v):
        nonlocal c
        c = v

    return get, put


GET, PUT = closed()


def put(v):
    global HOOK
    Named.s, Known.s, HOOK = v, v, lambda: v


HELD = "`{}` holds what it held when it was read"
READS = {  # what the host function computes with -> the sentence on it, "" where it is the same always
    "of a thread": (lambda: LOCAL.s, HELD.format("LOCAL")),
    "of an array": (lambda: ARRAY[0], HELD.format("ARRAY")),
    "of a queue": (lambda: DEQUE[0], HELD.format("DEQUE")),
    "of several dictionaries": (lambda: CHAIN["s"], HELD.format("CHAIN")),
    "of a namespace": (lambda: SPACE.s, HELD.format("SPACE")),
    "of NumPy": (lambda: float(NUMBERS[0]), HELD.format("NUMBERS")),
    "of a tuple": (lambda: PAIR[0]["s"], HELD.format("PAIR")),
    "a slot": (lambda: SLOTTED.s, "`SLOTTED.s` is 1.0"),
    "a slot, by a property": (lambda: SLOTTED.scale, HELD.format("SLOTTED")),
    "a slot of a dataclass": (lambda: OPTIONS.s, "`OPTIONS.s` is 1.0"),
    "of a class": (lambda: Named.s, "`Named.s` is 1.0"),
    "of a class, by its class": (lambda: Known.scale, HELD.format("Known")),
    "of a function": (lambda: function.s, "`function.s` is 1.0"),
    "a descriptor": (lambda: LOOKING.scale, HELD.format("LOOKING")),
    "an attribute that code makes": (lambda: ANSWERING.s, HELD.format("ANSWERING")),
    "arguments that are bound": (lambda: BOUND(), HELD.format("BOUND")),
    "a closure": (lambda: GET(), "`c` is 1.0"),
    "a function that is replaced": (lambda: HOOK(), HELD.format("HOOK")),
    "a lock that is asked": (lambda: 2.0 if LOCK.locked() else 1.0, HELD.format("LOCK")),
    "a context": (lambda: float(decimal.getcontext().prec), "decimal.getcontext() gives what it gave when it was read"),
    "the stack": (lambda: float(len(inspect.stack())), "inspect.stack() gives what it gave when it was read"),
    "the type of numbers": (lambda: float(torch.tensor(1.5).itemsize), "torch.get_default_dtype() is torch.float32"),
    "the type of an empty tensor": (lambda: torch.empty(3).itemsize, "torch.get_default_dtype() is torch.float32"),
    "a constant of a class": (lambda: Named.width, ""),
    "a constant among several": (lambda: Mode.FAST.value, ""),
    "a frozen dataclass": (lambda: FIXED.scale(), ""),
    "a type that is given": (lambda: torch.tensor(1.5, dtype=torch.float32).element_size(), ""),
    "a lock that is taken": (lambda: LOCK.acquire(False) and LOCK.release(), ""),
}  # fmt: skip

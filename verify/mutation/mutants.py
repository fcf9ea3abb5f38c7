"""Mutants: a kernel's IR with one change that somebody could have made by mistake.

    mutants(module, seed)    every possible one, the kinds in turn
    mutant(module)           the changed copy, of this or of another block size's module

A mutant is found again by name, not by object: by the operation's name, its lines, its number among those alike, and
the key of the change. Lowering the same kernel with another block size keeps these.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TypeVar

from trilift.lift.errors import Place, Unsupported
from trilift.lift.ttir.ir import Module, Op

from .editor import Editor, clone
from .mutators import KINDS

X = TypeVar("X")
BY_NAME = {k.name: k for k in KINDS}


@dataclass(frozen=True, slots=True)
class Site:
    """An operation: its name, the lines and columns of its frames, and which of those alike it is in program order."""

    name: str
    at: tuple[tuple[int, int], ...]
    ordinal: int


@dataclass(frozen=True, slots=True)
class Mutant:
    """`number` counts the mutants of the module it was enumerated from; `text` says what is changed."""

    number: int
    kind: str
    site: Site
    key: str
    text: str
    place: Place | None

    def __call__(self, module: Module) -> Module:
        """A changed copy. Raises Unsupported where the module has no such place or the change does not apply."""
        editor = Editor(clone(module, f"mutant {self.identifier}"))
        op = next((o for site, o in sites(editor.module) if site == self.site), None)
        options = BY_NAME[self.kind].variants(op, editor) if op is not None else []
        chosen = next((v for v in options if v.key == self.key), None)
        if chosen is None:
            raise Unsupported(f"the mutant {self.identifier}", self.place, "this module has no such operation")
        chosen.edit()
        return editor.module

    @property
    def identifier(self) -> str:
        """The name that distinguishes it from the others of its kernel."""
        lines = "<".join(f"{line}:{column}" for line, column in self.site.at)
        return f"{self.kind}/{self.site.name}@{lines}#{self.site.ordinal}/{self.key}"


def every(module: Module) -> list[Mutant]:
    """All mutants of a module in program order."""
    editor = Editor(module)
    found = (
        (kind.name, site, v, op) for site, op in sites(module) for kind in KINDS for v in kind.variants(op, editor)
    )
    return [
        Mutant(number, kind, site, v.key, _said(op, v.text), op.place)
        for number, (kind, site, v, op) in enumerate(found)
    ]


def mutants(module: Module, seed: int = 0) -> Iterator[Mutant]:
    """All mutants: one of each kind, then a second of each, and so on; which ones come first depends on the seed."""
    by_kind: dict[str, list[Mutant]] = {}
    for m in every(module):
        by_kind.setdefault(m.kind, []).append(m)
    rng = random.Random(seed)
    for group in by_kind.values():
        rng.shuffle(group)
    return in_turn(by_kind.values())


def in_turn(groups: Iterable[Iterable[X]]) -> Iterator[X]:
    """The first of each group, then the second of each ..."""
    return (x for x in chain.from_iterable(zip_longest(*groups)) if x is not None)


def sites(module: Module) -> Iterator[tuple[Site, Op]]:
    """Every operation with what it is found by."""
    seen: dict[tuple[str, tuple[tuple[int, int], ...]], int] = {}
    for op in module.walk():
        key = op.name, tuple((f.line, f.column) for f in op.frames)
        seen[key] = seen.get(key, -1) + 1
        yield Site(*key, seen[key]), op


def _said(op: Op, text: str) -> str:
    return f"line {op.place.line}: {text}" if op.place else text

"""Kernels at every block size (first: at the one block size that all shapes have)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lift.errors import Unsupported
from lift.ir import Module
from lift.trace import Launch

from .relations import Relations
from .setting import Setting


@dataclass(frozen=True, eq=False, slots=True)
class Family:
    base: Module


def family(column: Sequence[Launch], relations: Relations) -> Family:
    modules = {id(launch.module()): launch.module() for launch in column}
    if len(modules) > 1:
        raise Unsupported(f"the block sizes of {column[0].kernel} depend on the shape", column[0].host)
    return Family(next(iter(modules.values())))


def settings(base: Setting, families: Sequence[Family], exhaustive: bool) -> Iterator[Setting]:
    yield base

"""The audit rules: one module and one page each, found by looking at this folder.

A module defines RULE; its page `<module>.md` says what the rule does, why it is bad, an example, and what to do
instead.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from ..finding import Rule


@cache
def rules() -> dict[str, Rule]:
    """All rules by name, what breaks memory first, numerics last."""
    modules = (importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__))
    found = [m.RULE for m in modules]
    return {r.name: r for r in sorted(found, key=lambda r: ORDER.index(r.name))}


def page(name: str) -> str:
    """The Markdown page of a rule. Raises KeyError for a name that is none."""
    module = rules()[name].check.__module__.rpartition(".")[2]
    return (Path(__file__).parent / f"{module}.md").read_text()


ORDER = (
    "out-of-bounds",
    "write-race",
    "read-write-race",
    "missing-barrier",
    "unwritten-output",
    "undefined-value",
    "int32-overflow",
    "broken-contract",
    "wrong-result",
    "overflow-risk",
    "nan-risk",
    "precision-loss",
)

"""Suites of one file's cases in, the source of a pytest file out.

suites, facts -> a part for each case: formulas, arguments, strategy, tests
              -> the helpers that the parts name, and what the interpreter needs
              -> one text, formatted by ruff
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from verify.suite import Suite

from ..targets import mentions_case
from . import library
from .cases import part, source, summary
from .facts import Facts, identifier
from .formatting import formatted
from .formulas import docstring
from .standing import STAND_IN, installed

__all__ = ["Printed", "assembled", "printed", "skipped", "written"]

IMPORTS = (  # beside those of the helpers; what a file does not use is taken out of it
    "import importlib", "import math", "import os", "import sys", "import types", "import pytest",
    "from pathlib import Path", "from hypothesis import assume, given", "from hypothesis import strategies as st",
)  # fmt: skip
ENVIRONMENT = 'if not GPU:\n    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported'


@dataclass(frozen=True, slots=True)
class Printed:
    """The tests of one case: plain data, which passes between processes. `summary`: lines of the file's docstring."""

    case: str
    summary: tuple[str, ...]
    sources: tuple[str, ...]
    facts: Facts = Facts({})


def printed(suite: Suite, facts: Facts) -> Printed:
    """The tests of one case."""
    p = part(suite, facts)
    return Printed(suite.case.name, tuple(summary(p)), tuple(text for text in source(p) if text), facts)


def skipped(case: str, reason: str) -> Printed:
    """A case of which nothing can be tested."""
    name, why = identifier(case), f"nothing can be tested: {reason}"
    test = f"def test_{name}() -> None:\n{docstring([why], 4)}\n    pytest.skip({why!r})"
    return Printed(case, (f"{case}: {why}",), (f"# ---- {case} ----", test))


def written(suites: Sequence[tuple[Suite, Facts]], *more: Any) -> str:
    """The file of the tests of some cases; further arguments as for `assembled`."""
    return assembled([printed(*s) for s in suites], *more)


def assembled(
    parts: Sequence[Printed], target: str, output: str, command: str, version: str, examples: int = 20
) -> str:
    """The file of the tests of some cases of the file `target`, as it is to stand at the path `output`: what the tests
    need while they are defined, the tests, then what they call, and what is about the machine."""
    code = "\n\n\n".join(text for p in parts for text in p.sources)
    machine = _interpreted(parts)
    helpers = library.needed("\n".join([ENVIRONMENT, code, *machine]))
    before = library.first("\n".join([ENVIRONMENT, code]), helpers)
    constants = [h.source if h.name != "NUMBER" else f"{h.name} = {examples}" for h in before if h.is_constant]
    top = ["\n".join([*constants, ENVIRONMENT]), *(h.source for h in before if not h.is_constant)]
    module = _module(target, output)
    heads = [_head(parts, target, command, version), "from __future__ import annotations"]
    imports = "\n".join([library.imports(), *IMPORTS])
    after = _sections([h for h in helpers if h not in before])
    text = [*heads, imports, *top, code, *after, *machine, *module]
    return formatted("\n\n\n".join(text) + "\n")


def _sections(found: Sequence[library.Helper]) -> Iterator[str]:
    """Helpers under their headings."""
    heading = ""
    for (above, constant), group in groupby(found, lambda h: (h.heading, h.is_constant)):
        if above != heading:
            heading = above
            yield heading
        sources = [h.source for h in group]
        yield from ["\n".join(sources)] if constant else sources


def _head(parts: Sequence[Printed], target: str, command: str, version: str) -> str:
    lines = [f"Property-based tests of {', '.join(p.case for p in parts)} in {Path(target).name}."]
    lines += [text for p in parts for line in p.summary for text in ("", line)]
    return docstring([*lines, "", f"Written by trilift {version}: {command}"], 0)


def _module(target: str, output: str) -> list[str]:
    """The user's module."""
    path = Path(target).resolve()
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    relative = os.path.relpath(folder, Path(output).resolve().parent)
    return [
        "# ---- the kernels ----",
        f"sys.path.insert(0, str((Path(__file__).parent / {relative!r}).resolve()))",
        *_stand_in(target),
        f"kernels = importlib.import_module({'.'.join(names)!r})",
    ]


def _stand_in(target: str) -> list[str]:
    """Where the file says its cases with trilift, which need not be installed."""
    return [STAND_IN] if mentions_case(Path(target)) else []


def _interpreted(parts: Sequence[Printed]) -> list[str]:
    """What the interpreter lacks, and its installation."""
    code = installed([p.facts for p in parts])
    if not code:
        return []
    found = library.needed(code, library.INTERPRETER)
    heading = library.helpers(library.INTERPRETER)[0].heading
    return [heading, *(h.source for h in found), code, "if not GPU:\n    complete_interpreter()"]

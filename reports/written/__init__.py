"""Suites of one file's cases in, the source of a pytest file out.

suites, facts -> a part for each case: formulas, arguments, strategy, tests
              -> the helpers that the parts name, and what the interpreter needs
              -> one text, formatted by ruff
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from verify.suite import Suite

from ..targets import mentions_case
from . import library
from .cases import Part, part, source, statement
from .facts import Facts
from .formatting import formatted
from .formulas import docstring
from .standing import STAND_IN, installed

__all__ = ["written"]

IMPORTS = (  # beside those of the helpers; what a file does not use is taken out of it
    "import importlib", "import math", "import os", "import sys", "import types", "import pytest",
    "from pathlib import Path", "from hypothesis import assume, given", "from hypothesis import strategies as st",
)  # fmt: skip


def written(
    suites: Sequence[tuple[Suite, Facts]], target: str, output: str, command: str, version: str, examples: int = 20
) -> str:
    """The file of the tests of some cases of the file `target`, as it is to stand at the path `output`."""
    parts = [part(suite, facts) for suite, facts in suites]
    tests = [text for p in parts for text in source(p) if text]
    code = "\n\n\n".join(tests)
    sections: list[str] = []
    heading = ""
    for h in library.needed("\n".join([code, *_interpreted(parts)])):
        if h.heading != heading:
            sections.append(h.heading)
            heading = h.heading
        sections.append(f"{h.name} = {examples}" if h.name == "NUMBER" else h.source)
    environment, module = _setup(target, output)
    top = [_head(parts, target, command, version), "from __future__ import annotations"]
    imports = "\n".join([library.imports(), *IMPORTS])
    return formatted(
        "\n\n".join([*top, imports, *_split(sections, [*environment, *_interpreted(parts), *module]), code]) + "\n"
    )


def _split(sections: list[str], setup: list[str]) -> list[str]:
    """The user's module is loaded after the helpers and before what is about it."""
    k = next((k for k, s in enumerate(sections) if s.startswith("# ----")), len(sections))
    return [*sections[:k], setup[0], *sections[k:], *setup[1:]]


def _head(parts: Sequence[Part], target: str, command: str, version: str) -> str:
    lines = [f"Property-based tests of {', '.join(p.suite.case.name for p in parts)} in {Path(target).name}."]
    for p in parts:
        for o in p.suite.outputs:
            verdict = o.proof.verdict.value if o.proof is not None else "not proved"
            lines += ["", f"{p.suite.case.name}, {verdict}: {statement(o, p.suite)}"]
    lines += ["", f"Written by trilift {version}: {command}"]
    return docstring(lines, 0)


def _setup(target: str, output: str) -> tuple[list[str], list[str]]:
    """The interpreter where there is no GPU; the user's module."""
    path = Path(target).resolve()
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    relative = os.path.relpath(folder, Path(output).resolve().parent)
    environment = 'if not GPU:\n    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported'
    module = [
        "# ---- the kernels ----",
        f"sys.path.insert(0, str((Path(__file__).parent / {relative!r}).resolve()))",
        *_stand_in(target),
        f"kernels = importlib.import_module({'.'.join(names)!r})",
    ]
    return [environment], module


def _stand_in(target: str) -> list[str]:
    """Where the file says its cases with trilift, which need not be installed."""
    return [STAND_IN] if mentions_case(Path(target)) else []


def _interpreted(parts: Sequence[Part]) -> list[str]:
    """What the interpreter lacks, and its installation."""
    code = installed([p.facts for p in parts])
    if not code:
        return []
    found = library.needed(code, library.INTERPRETER)
    heading = library.helpers(library.INTERPRETER)[0].heading
    return [heading, *(h.source for h in found), code, "if not GPU:\n    complete_interpreter()"]

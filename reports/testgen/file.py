"""Suites of one file's cases in, the source of a pytest file out.

suites, facts -> a part for each case: formulas, arguments, strategy, tests
              -> the helpers that the parts name, and what the interpreter needs
              -> one text, formatted by ruff
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from trilift.verify.properties.records import Suite

from ..base.targets import mentions_case
from . import library
from .case_section import Part, part, source, summary
from .facts import Facts, identifier
from .formatting import formatted
from .formulas import docstring
from .infinity import infinite
from .plain_tests import EQUALS, failed_calls, wrong
from .probe import failing
from .stand_ins import STAND_IN, installed, lacking

__all__ = ["Printed", "assembled", "complete", "printed", "skipped", "written"]

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
    kernel: str = ""  # the name of its Kernel
    sizes: Mapping[str, Any] = field(default_factory=dict)  # of a call that should be possible
    pretended: bool = False  # whether it asks for a GPU
    lacking: str = ""  # why it does not run without one
    tried: str = ""  # the name of a test that the kernel may fail
    plain: Printed | None = None  # the same without that test

    @property
    def texts(self) -> Iterator[str]:
        """The sources, with what they need where there is no GPU."""
        host = f"kernels.{self.case}.fn"
        mark = f"@pytest.mark.skipif(not GPU, reason={self.lacking!r})"
        for text in self.sources:
            shown = text.replace(f"lambda: {host}", f"lambda: without_gpu({host})") if self.pretended else text
            yield f"{mark}\n{shown}" if self.lacking and re.search(r"^def test_", text, re.MULTILINE) else shown


def printed(suite: Suite, facts: Facts) -> Printed:
    """The tests of one case."""
    p = part(suite, facts)
    runs = not (suite.raises or suite.unsafe or lacking(facts))
    plain = _printed(p)
    if runs and wrong(p) is None and (names := infinite(suite, p.compared)):
        return replace(_printed(replace(p, infinite=names)), tried=p.names.masked, plain=plain)
    if runs and wrong(p) is not None and p.compared and failed_calls(p):
        return replace(_printed(replace(p, apart=True)), tried=p.names.test(EQUALS), plain=plain)
    return plain


def _printed(p: Part) -> Printed:
    suite, facts = p.suite, p.facts
    texts = tuple(text for text in source(p) if text)
    sizes = next((d for d in suite.sizes.first if min(d.values(), default=1) > 0), {})
    called: dict[str, Any] = (
        {} if suite.raises or suite.unsafe or lacking(facts) else {"kernel": p.names.kernel, "sizes": dict(sizes)}
    )
    return Printed(suite.case.name, tuple(summary(p)), texts, facts, pretended=facts.counts, **called)


def skipped(case: str, reason: str) -> Printed:
    """A case that cannot be tested."""
    name, why = identifier(case), f"nothing can be tested: {reason}"
    test = f"def test_{name}() -> None:\n{docstring([why], 4)}\n    pytest.skip({why!r})"
    return Printed(case, (f"{case}: {why}",), (f"# ---- {case} ----", test))


def written(suites: Sequence[tuple[Suite, Facts]], *more: Any) -> str:
    """The file of the tests of some cases; further arguments as for `assembled`."""
    return assembled([printed(*s) for s in suites], *more)


def complete(parts: Sequence[Printed], target: str, output: str, *more: Any) -> str:
    """`assembled`, with what the cases need that do not run without a GPU, or the reason why they do not."""
    text = assembled(parts, target, output, *more)
    for change in (_pretending, _left_out):
        calls = {p.kernel: p.sizes for p in parts if p.kernel and not p.lacking}
        told = failing(text, output, calls) if calls else {}
        if not told:
            break
        parts = [change(p, told) if p.kernel in told or "" in told else p for p in parts]
        text = assembled(parts, target, output, *more)
    tests = [p.tried for p in parts if p.tried]
    if refuted := failing(text, output, {}, tests) if tests else {}:
        parts = [_plain(p) if p.tried in refuted or "" in refuted else p for p in parts]
        text = assembled(parts, target, output, *more)
    return text


def _plain(p: Printed) -> Printed:
    """Without minus infinity, which the kernel does not take as its formula does; with the inputs that failed among all
    others."""
    return replace(p.plain, pretended=p.pretended, lacking=p.lacking) if p.plain is not None else p


def _pretending(p: Printed, _told: Mapping[str, str]) -> Printed:
    return replace(p, pretended=True)


def _left_out(p: Printed, told: Mapping[str, str]) -> Printed:
    why = told.get(p.kernel, told.get("", ""))
    return replace(p, lacking=f"it does not run in Triton's interpreter: {why}")


def assembled(
    parts: Sequence[Printed], target: str, output: str, command: str, version: str, examples: int = 20
) -> str:
    """The file of the tests of some cases of the file `target`, as it is to stand at the path `output`: what the tests
    need while they are defined, the tests, then what they call, and what is about the machine."""
    code = "\n\n\n".join(text for p in parts for text in p.texts)
    machine = _interpreted(parts)
    helpers = library.needed("\n".join([ENVIRONMENT, code, *machine]))
    before = library.first("\n".join([ENVIRONMENT, code]), helpers)
    constants = [h.source if h.name != "NUMBER" else f"{h.name} = {examples}" for h in before if h.is_constant]
    top = ["\n".join([*constants, ENVIRONMENT]), *(h.source for h in before if not h.is_constant)]
    pretended = any(p.pretended for p in parts)
    device = library.needed("pretended_gpu, without_gpu", library.DEVICE) if pretended else []
    module = [*_sections(device), *_module(target, output, pretended)]
    heads = [_head(parts, target, command, version), "from __future__ import annotations"]
    imports = "\n".join([*library.imports(), *IMPORTS])
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


def _module(target: str, output: str, pretended: bool) -> list[str]:
    """The user's module."""
    path = Path(target).resolve()
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    relative = os.path.relpath(folder, Path(output).resolve().parent)
    context = "contextlib.nullcontext() if GPU else pretended_gpu()"
    load = f"kernels = importlib.import_module({'.'.join(names)!r})"
    return [
        "# ---- the kernels ----",
        f"sys.path.insert(0, str((Path(__file__).parent / {relative!r}).resolve()))",
        *_stand_in(target),
        f"with {context}:\n    {load}" if pretended else load,
    ]


def _stand_in(target: str) -> list[str]:
    """Where the file says its cases with trilift, which need not be installed."""
    return [STAND_IN] if mentions_case(Path(target)) else []


def _interpreted(parts: Sequence[Printed]) -> list[str]:
    """The functions that the interpreter lacks, and their installation."""
    code = installed([p.facts for p in parts])
    found = library.needed(code, library.INTERPRETER)
    heading = library.helpers(library.INTERPRETER)[0].heading
    return [heading, *(h.source for h in found), code, "if not GPU:\n    complete_interpreter()"]

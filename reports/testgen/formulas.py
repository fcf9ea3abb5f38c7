"""Formulas, magnitudes and tolerances as functions of a written test."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trilift.lift.cases.declaration import DTYPES, Case
from trilift.lift.errors import Unsupported
from trilift.lift.printers.torch_source import torch_source
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula

WIDTH = 88
RANDOM = {"random": "philox", "random_bits": "philox_words"}  # what the helpers have for these operations


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a file: its name, the tensors it takes in order, the numbers it takes by name, its text."""

    name: str
    inputs: tuple[str, ...]
    numbers: tuple[str, ...]
    source: str

    def call(self, infinite: Sequence[str] = ()) -> str:
        """The call, where tensors and numbers have their own names; `infinite`: those that may be minus infinity."""
        inputs = [f"finite({n})" if n in infinite else n for n in self.inputs]
        return f"{self.name}({', '.join([*inputs, *(f'{n}={n}' for n in self.numbers)])})"


def function(name: str, formula: Formula, case: Case, doc: str = "") -> Function:
    """The formula as a PyTorch function of tensors in float64. Raises Unsupported for what PyTorch does not have."""
    shapes = {n: case.dims(n) for n in case.tensors}
    lines = torch_source(replace(_generated(formula), name="formula_of_output"), shapes).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("def "))
    head = re.fullmatch(r"def \w+\((.*)\):", lines[start])
    assert head is not None
    inputs, star, numbers = head[1].partition("*")
    words = [w for w in _words(inputs) if w not in RANDOM.values()], _words(numbers)
    given = ", ".join([*words[0], *([f"{star}, {', '.join(words[1])}"] if star else [])])
    code = _qualified([line[4:] for line in lines[start + 2 :]], lines[:start])
    code = [re.sub(r"(?<![\w.)\]])(\w+) != \1(?![\w.(\[])", r"torch.isnan(\1)", line) for line in code]
    said = lines[start + 1].strip().removeprefix('"""').removesuffix('"""').replace("formula_of_output", formula.name)
    text = f"def {name}({given}):\n{docstring([doc or said], 4)}\n" + textwrap.indent("\n".join(code), "    ")
    return Function(name, tuple(words[0]), tuple(words[1]), text.rstrip())


def _words(text: str) -> list[str]:
    return [w.strip() for w in text.split(",") if w.strip()]


def _generated(formula: Formula) -> Formula:
    """Random numbers as elements of what generates them."""
    put = lambda t: T.read(RANDOM[t.op], t.args) if t.op in RANDOM else None  # noqa: E731
    return replace(formula, term=T.rewrite(formula.term, put))


def _qualified(lines: Sequence[str], before: Sequence[str]) -> list[str]:
    """math.sqrt of sqrt, where the text imports it: names of the file may be those of functions."""
    imported = [line.removeprefix("from math import ") for line in before if line.startswith("from math import ")]
    if not imported:
        return list(lines)
    names = "|".join(sorted(imported[0].split(", "), key=len, reverse=True))
    return [re.sub(rf"(?<![\w.\"'])({names})(?!\w)", r"math.\1", line) for line in lines]


def docstring(lines: Iterable[str], indent: int) -> str:
    """A docstring of paragraphs, wrapped."""
    pad = " " * indent
    wrapped = [w for line in lines for w in (textwrap.wrap(line, WIDTH - indent, break_long_words=False) or [""])]
    text = f"\n{pad}".join(wrapped).replace("\\", "\\\\").replace('"""', "'''")
    last = f"\n{pad}" if len(wrapped) > 1 else ""
    return f'{pad}"""{text}{last}"""'


def dtype(name: str) -> str:
    """torch.float32 of f32, and of float32."""
    return f"torch.{DTYPES.get(name, name)}"


def printable(formula: Formula | None) -> bool:
    """Whether PyTorch has all of it, and nothing in it is undefined."""
    if formula is None or any(t.op == "undef" for t in formula.term.walk()):
        return False
    try:
        torch_source(_generated(formula))
    except Unsupported:
        return False
    return True


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a comment."""
    return textwrap.wrap(text, width, break_long_words=False)

"""The kernels in files, folders and installed packages, found by reading the source: nothing is imported or run.

A kernel is a function under `triton.jit` that returns nothing and that no other such function calls: Triton launches
no other.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function that Triton compiles: its lines from the first decorator on, and the line of its `def`."""

    file: str
    name: str
    first: int
    line: int
    last: int

    def has(self, file: str, line: int) -> bool:
        """Whether a place is in it."""
        return self.first <= line <= self.last and os.path.realpath(file) == os.path.realpath(self.file)


@dataclass(frozen=True, slots=True)
class _Jit:
    """A function under jit; the functions of its own file and of others that it calls or passes on, by name."""

    kernel: Kernel
    returns: bool
    own: frozenset[str]
    others: frozenset[str]


def kernels(files: Iterable[str]) -> list[Kernel]:
    """The kernels of the files, in order; a file that cannot be parsed has none (`trouble` says why)."""
    found = [j for f in files for j in _read(f)[0]]
    own = {(j.kernel.file, name) for j in found for name in j.own if name != j.kernel.name}
    others = {name for j in found for name in j.others}
    called = [j.kernel.name in others or (j.kernel.file, j.kernel.name) in own for j in found]
    return [j.kernel for j, inner in zip(found, called, strict=True) if not j.returns and not inner]


def trouble(file: str) -> tuple[str, int] | None:
    """Why a file cannot be parsed, and the line."""
    return _read(file)[1]


@cache
def _read(file: str) -> tuple[tuple[_Jit, ...], tuple[str, int] | None]:
    """The functions under jit of a file, or why it cannot be read."""
    try:
        text = Path(file).read_bytes()
        if b"jit" not in text:
            return (), None
        tree = ast.parse(text)
    except SyntaxError as e:
        return (), (f"{e.msg}", e.lineno or 0)
    except (OSError, ValueError, RecursionError) as e:
        return (), (str(e), 0)
    aliases = _aliases(tree)
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    return tuple(_jit(file, f, aliases) for f in functions if any(_is_jit(d, aliases) for d in f.decorator_list)), None


def _aliases(tree: ast.AST) -> dict[str, str]:
    """The modules behind the names that a file imports: tr -> triton, jit -> triton.jit."""
    out: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out |= {a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                    for a in node.names}  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            out |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return out


def _is_jit(decorator: ast.expr, aliases: dict[str, str]) -> bool:
    """@triton.jit or @triton.jit(...), under any name."""
    name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
    head, dot, rest = name.partition(".")
    return f"{aliases.get(head, head)}{dot}{rest}" in ("triton.jit", "triton.runtime.jit.jit", "triton.runtime.jit")


def _jit(file: str, f: ast.FunctionDef, aliases: dict[str, str]) -> _Jit:
    first = min([f.lineno, *(d.lineno for d in f.decorator_list)])
    used = [ast.unparse(e) for n in ast.walk(f) if isinstance(n, ast.Call) for e in _named(n)]
    foreign = [aliases[h] + u.removeprefix(h) for u in used if (h := u.partition(".")[0]) in aliases]
    others = {u.rpartition(".")[2] for u in foreign if not u.startswith("triton.")}
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(f))
    kernel = Kernel(file, f.name, first, f.lineno, f.end_lineno or f.lineno)
    return _Jit(kernel, returns, frozenset(u for u in used if u.partition(".")[0] not in aliases), frozenset(others))


def _named(call: ast.Call) -> Iterator[ast.expr]:
    """The functions that are called, and those passed by name: a combine function of a reduction."""
    candidates = [call.func, *call.args, *(k.value for k in call.keywords)]
    yield from (e for e in candidates if isinstance(e, ast.Name | ast.Attribute))

"""Parts of Triton's language that the kernels of a case use and its interpreter lacks or handles differently."""

from __future__ import annotations

import ast
import gc
import linecache
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from trilift.lift.errors import Place
from trilift.lift.ttir.ir import Module, Op

TENSOR = ("to", "dtype", "type")  # attributes of the number of a loop
LEAST = {f"arith.{name}" for name in ("minnumf", "maxnumf", "minimumf", "maximumf", "minsi", "maxsi", "minui", "maxui")}


def uses(modules: Sequence[Module]) -> tuple[str, ...]:
    """unnamed: a function is in a file that does not name the language. not, and: of tensors. attribute: of a constant,
    or of the number of a loop. truth: a comparison of numbers is broadcast. least: Python's min or max of blocks."""
    operations = [op for m in modules for op in m.walk()]
    places = {p for op in operations for p in op.frames}
    files = {p.file for p in places}
    least = {p for op in operations if op.name in LEAST and op.results[0].type.shape for p in op.frames}
    nodes = [
        *(n for f in files for n in _computed(f, _lines(places, f), _connects)),
        *(n for f in files for n in _computed(f, _lines(least, f), _takes_the_least)),
    ]
    spaces = [names for f in files for names in _modules(f)]
    functions = [fn for names in spaces for fn in _functions(names)]
    spaces += [fn.fn.__globals__ for fn in functions]  # what returns what it is given leaves no operation
    found = {
        "unnamed": any(map(_lacks_language, spaces)),
        "not": any(isinstance(n, ast.UnaryOp) for n in nodes),
        "and": any(isinstance(n, ast.BoolOp) for n in nodes),
        "attribute": any(_asks_a_number(_tree(fn.src)) for fn in functions),
        "truth": any(map(_broadcasts_truth, operations)),
        "least": any(isinstance(n, ast.Call) for n in nodes),
    }
    return tuple(name for name, used in found.items() if used)


def _modules(file: str) -> list[dict[str, Any]]:
    """The names of the modules that were made of a file: imported, or where jitted functions of it have their names."""
    from triton.runtime.jit import JITFunction

    imported = [vars(m) for m in list(sys.modules.values()) if getattr(m, "__file__", None) == file]
    jitted = [x.fn for x in gc.get_objects() if type(x) is JITFunction]
    made = [fn.__globals__ for fn in jitted if fn.__code__.co_filename == file]
    return list({id(names): names for names in (*imported, *made)}.values())


def _lacks_language(names: Mapping[str, Any]) -> bool:
    """Whether a module does not name Triton's language."""
    import triton.language as tl

    return all(v is not tl and v is not tl.core for v in names.values())


def _lines(places: Collection[Place], file: str) -> frozenset[int]:
    return frozenset(p.line for p in places if p.file == file)


def _computed(file: str, lines: frozenset[int], wanted: Callable[[ast.AST], bool]) -> Iterator[ast.AST]:
    """The operations wanted from these lines of a file: what belongs to compile-time conditions leaves no operation
    there."""
    for node in ast.walk(_tree("".join(linecache.getlines(file)))):
        if isinstance(node, ast.expr) and wanted(node):
            spanned = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            yield from [node] if lines.intersection(spanned) else []


def _connects(node: ast.AST) -> bool:
    """`not`, `and`, `or`."""
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _takes_the_least(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max")


def _functions(names: Mapping[str, Any]) -> Iterator[Any]:
    """The jitted functions of a module, those it imports among them."""
    from triton.runtime.jit import JITFunction, KernelInterface

    from trilift.lift.ttir.lower import jit_function

    found = [jit_function(value) for value in list(names.values()) if isinstance(value, KernelInterface)]
    yield from (fn for fn in found if type(fn) is JITFunction)


@cache
def _tree(source: str) -> ast.Module:
    """The text as Python; nothing of what is none."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module([], [])


def _asks_a_number(tree: ast.Module) -> bool:
    nodes = list(ast.walk(tree))
    numbers = {n.target.id for n in nodes if isinstance(n, ast.For) and isinstance(n.target, ast.Name)}
    asked = [n for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)]
    of = {n.value.id for n in asked if isinstance(n.value, ast.Name) and n.attr in TENSOR}
    return bool(numbers & of) or any(n.attr == "value" for n in asked)


def _broadcasts_truth(op: Op) -> bool:
    return op.name == "tt.splat" and op.operands[0].type.element == "i1"

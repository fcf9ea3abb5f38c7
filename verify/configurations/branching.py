"""Does a compile-time parameter decide, in the kernel's source, which operations there are?

`if BLOCK > 64:`, `a if BLOCK > 64 else b`, `tl.static_range(BLOCK)`: a parameter that reaches one of these, also
through assignments and calls, may make a kernel different at values that nobody looked at.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from typing import Any

TESTS = (ast.If, ast.IfExp, ast.While)
UNROLLED = "static_range"


def decides(kernel: Any, name: str) -> bool:
    """Whether anything computed from the parameter is tested, unrolled, or passed to a function that tests."""
    tree = _tree(kernel)
    if tree is None:
        return True
    known = _reached(tree, name)
    tests = (n.test for n in ast.walk(tree) if isinstance(n, TESTS))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    given = [c for c in calls if any(_names(a) & known for a in (*c.args, *(k.value for k in c.keywords)))]
    return any(_names(t) & known for t in tests) or any(_called(c) == UNROLLED or _tests(kernel, c) for c in given)


def compared(kernel: Any) -> set[int]:
    """The integers that the kernel's tests mention."""
    tree = _tree(kernel)
    tests = [n.test for n in ast.walk(tree) if isinstance(n, TESTS)] if tree is not None else []
    nodes = (n for t in tests for n in ast.walk(t))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is int and n.value > 0}


def _tree(kernel: Any) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent("".join(kernel.raw_src)))
    except (AttributeError, SyntaxError):
        return None


def _reached(tree: ast.AST, name: str) -> set[str]:
    """The parameter and every name that is assigned from it."""
    known, before = {name}, 0
    while len(known) > before:
        before = len(known)
        for targets, source in _assignments(tree):
            if _names(source) & known:
                known |= targets
    return known


def _assignments(tree: ast.AST) -> Iterator[tuple[set[str], ast.AST]]:
    for n in ast.walk(tree):
        if isinstance(n, ast.Assign):
            yield set().union(*map(_names, n.targets)), n.value
        elif isinstance(n, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and n.value is not None:
            yield _names(n.target), n.value


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _tests(kernel: Any, call: ast.Call) -> bool:
    """Whether a function of the user's that is called has tests or unrolled loops of its own; Triton's own have them
    for dtypes and axes, and what they do with sizes shows in the operations."""
    function = kernel.fn.__globals__.get(_called(call)) if isinstance(call.func, ast.Name) else None
    if function is None or not hasattr(function, "raw_src"):
        return False
    tree = _tree(function)
    nodes = list(ast.walk(tree)) if tree is not None else []
    unrolled = any(isinstance(n, ast.Call) and (_called(n) == UNROLLED or _tests(function, n)) for n in nodes)
    return tree is None or unrolled or any(isinstance(n, TESTS) for n in nodes)

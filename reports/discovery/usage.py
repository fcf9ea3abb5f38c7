"""How a kernel's source uses its parameters: as pointers, flags, sizes, dtypes. Read from the AST, helpers followed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

LOADS = {
    "load",
    "store",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "atomic_xchg",
    "atomic_cas",
    "atomic_and",
    "atomic_or",
}
STORES = LOADS - {"load"} | {"atomic_xor", "store_tensor_descriptor"}
BASES = {"make_block_ptr", "make_tensor_descriptor", "_experimental_make_tensor_descriptor"}
SHAPES = {
    "arange",
    "zeros",
    "full",
    "make_block_ptr",
    "make_tensor_descriptor",
    "reshape",
    "view",
    "broadcast_to",
    "static_range",
}


@dataclass
class Usage:
    """The uses of names in the source: pointers; tested as flags; used in shapes, as dtypes; compared with."""

    pointers: set[str] = field(default_factory=set)
    flags: set[str] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    integers: set[str] = field(default_factory=set)  # read in offsets and by integer arithmetic; pointers: to integers
    descriptors: dict[str, int] = field(default_factory=dict)  # host tensor descriptors, with their rank
    tuples: set[str] = field(default_factory=set)
    literals: dict[str, list[Any]] = field(default_factory=dict)
    sources: dict[str, set[str]] = field(default_factory=dict)  # name -> the names its assignments read
    stores: bool = False

    def origins(self, names: set[str]) -> set[str]:
        """`names` and all that they are computed from."""
        out, todo = set(), list(names)
        while todo:
            name = todo.pop()
            if name not in out:
                out.add(name)
                todo.extend(self.sources.get(name, ()))
        return out


@cache
def usage(fn: Any) -> Usage:
    """Usage of the parameters of the JITFunction `fn`, through the helpers it calls."""
    out = Usage()
    tree = ast.parse(fn.src)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _call(fn, node, out)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            _assign(node, out)
        elif isinstance(node, (ast.If, ast.IfExp)):
            out.flags |= set(_conditions(node.test))
        elif isinstance(node, ast.Compare):
            _compare(node, out)
        elif isinstance(node, ast.Subscript):
            _subscript(node, out)
    _spread(tree, out)
    _integers(fn, tree, out)
    return out


def callees(fn: Any) -> Iterator[tuple[Any, ast.Call]]:
    """The JITFunctions that `fn` calls, with the calls."""
    for node in ast.walk(ast.parse(fn.src)):
        if isinstance(node, ast.Call) and (found := _resolve(fn, node.func)) is not None:
            yield found, node


def _resolve(fn: Any, func: ast.expr) -> Any:
    """The JITFunction that the expression `func` names, in the globals of `fn`."""
    from triton.runtime.jit import JITFunction

    path: list[str] = []
    while isinstance(func, ast.Attribute):
        path.append(func.attr)
        func = func.value
    if not isinstance(func, ast.Name):
        return None
    found = fn.fn.__globals__.get(func.id)
    for name in reversed(path):
        found = getattr(found, name, None)
    library = getattr(found, "module", "").startswith("triton.language")
    return found if isinstance(found, JITFunction) and found is not fn and not library else None


def _call(fn: Any, node: ast.Call, out: Usage) -> None:
    name = _called(node)
    arguments = [*node.args, *(k.value for k in node.keywords)]
    if name == "len":
        out.tuples |= set(names(node))
    if _descriptor(node, name, out):
        return
    if name in LOADS | BASES | STORES and arguments:
        out.stores |= name in STORES
        base = next((k.value for k in node.keywords if k.arg in ("base", "pointer")), arguments[0])
        out.pointers |= set(_leftmost(base))
    if name in SHAPES:
        out.sizes |= {n for a in arguments for n in names(a)}
    for k in node.keywords:
        if k.arg in ("dtype", "out_dtype"):
            out.dtypes |= set(names(k.value))
    if name in ("to", "cast", "zeros", "full"):
        out.dtypes |= {n for a in node.args[-1:] if isinstance(a, ast.Name) for n in names(a)}
    if (helper := _resolve(fn, node.func)) is not None:
        _helper(helper, node, out)


def _called(node: ast.Call) -> str:
    """The last name of what is called: "load" for tl.load."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _descriptor(node: ast.Call, name: str, out: Usage) -> bool:
    """`desc.load([i, j])` makes desc a descriptor of rank 2."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    access = name in LOADS | STORES | {"gather", "scatter"} and isinstance(owner, ast.Name) and owner.id != "tl"
    if not access or not node.args or not isinstance(node.args[0], (ast.List, ast.Tuple)):
        return False
    out.descriptors[owner.id] = len(node.args[0].elts)  # type: ignore[union-attr]
    out.stores |= name in STORES
    return True


def _subscript(node: ast.Subscript, out: Usage) -> None:
    """`x[0]` makes x a tuple."""
    if isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        out.tuples.add(node.value.id)


def _helper(helper: Any, node: ast.Call, out: Usage) -> None:
    inner = usage(helper)
    out.stores |= inner.stores
    bound = [*zip(helper.arg_names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
    for parameter, value in bound:
        used = set(names(value))
        out.pointers |= set(_leftmost(value)) if parameter in inner.pointers else set()
        out.flags |= used if parameter in inner.flags else set()
        out.sizes |= used if parameter in inner.sizes else set()
        out.dtypes |= used if parameter in inner.dtypes else set()
        out.tuples |= {value.id} if parameter in inner.tuples and isinstance(value, ast.Name) else set()
        if parameter in inner.descriptors and isinstance(value, ast.Name):
            out.descriptors[value.id] = inner.descriptors[parameter]
        if parameter in inner.literals:
            for n in used:
                out.literals.setdefault(n, []).extend(inner.literals[parameter])


def _assign(node: ast.Assign | ast.AugAssign | ast.AnnAssign, out: Usage) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if node.value is not None:
        for name in (n for t in targets for n in names(t)):
            out.sources.setdefault(name, set()).update(names(node.value))


def _conditions(test: ast.expr) -> Iterator[str]:
    """Names that a condition tests for truth: `a`, `not a`, `a and b`."""
    if isinstance(test, ast.Name):
        yield test.id
    elif isinstance(test, ast.UnaryOp):
        yield from _conditions(test.operand)
    elif isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _conditions(value)


def _compare(node: ast.Compare, out: Usage) -> None:
    for side, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        values = other.elts if isinstance(other, (ast.Tuple, ast.List)) else [other]
        if isinstance(side, ast.Name):
            out.literals.setdefault(side.id, []).extend(v.value for v in values if isinstance(v, ast.Constant))


def _leftmost(node: ast.expr) -> Iterator[str]:
    """The name a pointer expression starts with: `p + i`, `p[0]` start with p, `i + p` if p is named as a pointer."""
    if isinstance(node, ast.BinOp):
        yield from _leftmost(node.left)
        yield from (n for n in names(node.right) if re.search(r"(ptrs?|pointers?)$", n, re.I))
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Call):
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        yield from (
            (n for a in node.args[:1] for n in _leftmost(a)) if not isinstance(inner, ast.BinOp) else _leftmost(inner)
        )
        if inner is not None:
            yield from _leftmost(inner)
    elif isinstance(node, (ast.Subscript, ast.Attribute)):
        yield from _leftmost(node.value)
    elif isinstance(node, ast.IfExp):
        yield from _leftmost(node.body)


def names(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _spread(tree: ast.AST, out: Usage) -> None:
    """A name assigned to a pointer's name is a pointer: `p = x_ptr + i` makes x_ptr one. To a fixed point."""
    assigns = [n for n in ast.walk(tree) if isinstance(n, (ast.Assign, ast.AugAssign)) and n.value is not None]
    before = -1
    while before != len(out.pointers):
        before = len(out.pointers)
        for node in assigns:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(node, ast.Assign) and any(n in out.pointers for t in targets for n in names(t)):
                out.pointers |= set(_leftmost(node.value))


_INTEGER_ONLY = (ast.Mod, ast.FloorDiv, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)


def _integers(fn: Any, tree: ast.AST, out: Usage) -> None:
    """The names that must be integers: offsets, range bounds, operands of integer arithmetic, and what they are made
    of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, _INTEGER_ONLY):
            _mark(node, out)
        elif isinstance(node, ast.Call):
            _integers_of_call(fn, node, out)
    assigns = [n for n in ast.walk(tree) if isinstance(n, (ast.Assign, ast.AugAssign)) and n.value is not None]
    before = -1
    while before != len(out.integers):
        before = len(out.integers)
        for node in assigns:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(n in out.pointers for t in targets for n in names(t)):
                _mark_offsets(node.value, out, isinstance(node, ast.AugAssign))
            elif any(n in out.integers for t in targets for n in names(t)):
                _mark(node.value, out)


def _integers_of_call(fn: Any, node: ast.Call, out: Usage) -> None:
    name = _called(node)
    if name in ("range", "arange", "histogram"):
        for a in node.args:
            _mark(a, out)
    if name in LOADS | STORES and node.args:
        _mark_offsets(node.args[0], out)
    if (helper := _resolve(fn, node.func)) is not None:
        inner = usage(helper)
        for parameter, value in zip(helper.arg_names, node.args, strict=False):
            if parameter in inner.integers:
                _mark(value, out)


def _mark_offsets(node: ast.expr, out: Usage, whole: bool = False) -> None:
    if whole:
        _mark(node, out)
    elif isinstance(node, ast.BinOp):
        _mark_offsets(node.left, out)
        _mark(node.right, out)
    elif isinstance(node, ast.Call) and node.args:
        _mark_offsets(node.args[0], out)
        for argument in node.args[1:]:
            _mark(argument, out)


def _mark(node: ast.expr, out: Usage) -> None:
    """Mark the names whose values an integer expression is made of; comparisons and conversions of pointers end it."""
    if isinstance(node, ast.Name):
        out.integers.add(node.id)
    elif isinstance(node, ast.BinOp):
        _mark(node.left, out)
        _mark(node.right, out)
    elif isinstance(node, ast.UnaryOp):
        _mark(node.operand, out)
    elif isinstance(node, ast.Subscript):
        _mark(node.value, out)
    elif isinstance(node, ast.IfExp):
        _mark(node.body, out)
        _mark(node.orelse, out)
    elif isinstance(node, ast.Call):
        name = _called(node)
        if name == "load" and node.args:
            out.integers |= set(_leftmost(node.args[0]))
        elif name in ("to", "cast") and isinstance(node.func, ast.Attribute):
            _mark(node.func.value if name == "to" else node.args[0], out)
        elif name in ("where", "minimum", "maximum", "min", "max", "sum", "reshape", "expand_dims", "cumsum"):
            for a in node.args:
                _mark(a, out)

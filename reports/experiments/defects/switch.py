"""Modules that hold their defects beside the right code, each behind a switch: one process can then try them all.

    if n <= 0: return None   -->   if False if __defect__.on == 7 else n <= 0: return None

An import hook compiles the sources so; no file is written. While tests are recorded, `on` equals nothing and notes what
it is compared with.
"""

from __future__ import annotations

import ast
import copy
import mmap
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from .drawn import by_file
from .sites import Place, Site

NAME = "__defect__"


class Recorder:
    """Equal to nothing; keeps which numbers it was compared with, in forked children too."""

    def __init__(self, size: int) -> None:
        self.seen = mmap.mmap(-1, max(1, size))

    def __eq__(self, number: object) -> bool:
        assert isinstance(number, int)
        self.seen[number] = 1
        return False

    __hash__ = None  # type: ignore[assignment]

    def take(self) -> list[int]:
        """The numbers since the last time."""
        found = [k for k, x in enumerate(self.seen[:]) if x]
        self.seen[:] = bytes(len(self.seen))
        return found


class Switch:
    """`on`: the number of the defect that is planted, -1 for none."""

    on: int | Recorder = -1


SWITCH = Switch()


# ---- sources ---------------------------------------------------------------------------------------------------------


def planted(source: str, defects: Iterable[tuple[int, Site]]) -> ast.Module:
    """The module with all these defects, each behind its number."""
    tree = ast.parse(source)
    places: dict[Place, list[tuple[int, Site]]] = {}
    for number, site in defects:
        places.setdefault(site.place, []).append((number, site))
    for place in sorted(places, key=len, reverse=True):
        _plant(tree, place, places[place])
    return ast.fix_missing_locations(tree)


def _plant(tree: ast.Module, place: Place, defects: Sequence[tuple[int, Site]]) -> None:
    """Replaces the node at a place; what lies deeper was replaced before."""
    holder: ast.AST = tree
    for step in place[:-1]:
        holder = _at(holder, step)
    node = _at(holder, place[-1])
    new = node
    for number, site in defects:
        changed = ast.copy_location(site.change(copy.deepcopy(node)), node)
        new = ast.copy_location(_choice(number, changed, new), node)
    name, k = place[-1]
    if k < 0:
        setattr(holder, name, new)
    else:
        getattr(holder, name)[k] = new


def _at(node: ast.AST, step: tuple[str, int]) -> ast.AST:
    name, k = step
    value = getattr(node, name)
    found: ast.AST = value if k < 0 else value[k]
    return found


def _choice(number: int, changed: ast.AST, node: ast.AST) -> ast.AST:
    on = ast.Attribute(ast.Name(NAME, ast.Load()), "on", ast.Load())
    test = ast.Compare(on, [ast.Eq()], [ast.Constant(number)])
    if isinstance(node, ast.stmt):
        if isinstance(changed, ast.stmt):
            return ast.If(test, [changed], [node])
        assert isinstance(changed, ast.expr)
        return ast.If(test, [ast.Return(changed)], [node])
    assert isinstance(node, ast.expr) and isinstance(changed, ast.expr)
    return ast.IfExp(test, changed, node)


# ---- the import hook -------------------------------------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """Compiles a module with its defects, past every cache of bytecode."""

    def __init__(self, name: str, path: str, defects: Sequence[tuple[int, Site]]) -> None:
        super().__init__(name, path)
        self.defects = defects

    def get_code(self, fullname: str) -> CodeType:
        tree = planted(Path(self.path).read_text(), self.defects)
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, NAME, SWITCH)
        super().exec_module(module)


class _Hook(MetaPathFinder):
    def __init__(self, files: Mapping[str, Sequence[tuple[int, Site]]]) -> None:
        self.modules = {"trilift." + f.removesuffix(".py").replace("/", "."): d for f, d in files.items()}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.modules:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self.modules[fullname])
        return spec


def install(found: Sequence[Site]) -> None:
    """Modules that are imported from now on hold these defects. Raises RuntimeError where one was imported before."""
    hook = _Hook(dict(by_file(found)))
    if early := [m for m in hook.modules if m in sys.modules]:
        raise RuntimeError(f"imported before its defects were planted: {', '.join(early)}")
    sys.meta_path.insert(0, hook)

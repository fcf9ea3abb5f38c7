"""Modules that hold their defects beside the right code, each behind a switch: one process can then try them all.

    if n <= 0: return None   -->   if False if __defect__.on == 7 else n <= 0: return None

An import hook compiles the sources so; no file is written. While tests are recorded, the right code runs, and the value
that the defect would have is compared with it:

    if n <= 0: return None   -->   if __defect__.recorder.value(7, n <= 0, lambda: False, True): return None
"""

from __future__ import annotations

import ast
import copy
import mmap
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeVar

from .drawn import by_file
from .sites import Place, Site

NAME = "__defect__"
REACHED, DIFFERS = 1, 2
COMPARED = 1000
PLAIN = (int, float, str, bytes, tuple, list, dict, set, frozenset, Fraction)
Right = TypeVar("Right")


class Recorder:
    """Keeps which defects were reached, and which of them would have changed a value there; in forked children too.

    The changed value is computed after the right one, at most COMPARED times in one test, and not within another.
    """

    def __init__(self, size: int) -> None:
        self.seen = mmap.mmap(-1, max(1, size))
        self.compared: dict[int, int] = {}
        self.compares, self.busy = True, False

    def statement(self, number: int) -> bool:
        """False: the right statement runs. Its defect is another statement, which differs."""
        self.seen[number] = DIFFERS
        return False

    def value(self, number: int, right: Right, changed: Callable[[], object], truth: bool) -> Right:
        """`right`. `truth`: only whether the value is true matters."""
        if self.seen[number] == DIFFERS:
            return right
        self.seen[number] = REACHED
        if self.compares and not self.busy and self.compared.get(number, 0) < COMPARED:
            self.compared[number] = self.compared.get(number, 0) + 1
            self.busy = True
            try:
                same = alike(right, changed(), truth)
            except Exception:
                same = False
            finally:
                self.busy = False
            self.seen[number] = REACHED if same else DIFFERS
        return right

    def take(self) -> tuple[list[int], list[int]]:
        """The numbers that were reached since the last time, and those of them that differ."""
        seen = self.seen[:]
        self.seen[:] = bytes(len(self.seen))
        self.compared.clear()
        return [k for k, x in enumerate(seen) if x], [k for k, x in enumerate(seen) if x == DIFFERS]


def alike(a: object, b: object, truth: bool) -> bool:
    """Whether two values are the same. Terms are by identity; `==` of other objects may do more than compare."""
    if a is b:
        return True
    if truth:
        return bool(a) == bool(b)
    return type(a) is type(b) and isinstance(a, PLAIN) and a == b


@dataclass
class Switch:
    """`on`: the number of the defect that is planted, -1 for none; `recorder`: of modules that were compiled for it."""

    on: int = -1
    recorder: Recorder = field(default_factory=lambda: Recorder(0))


SWITCH = Switch()


Either = Callable[[int, ast.AST, ast.AST, Place], ast.AST]
NOT_IN_A_LAMBDA = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


# ---- sources ---------------------------------------------------------------------------------------------------------


def planted(source: str, defects: Iterable[tuple[int, Site]], recording: bool = False) -> ast.Module:
    """The module with all these defects, each behind its number, or compared with the right code."""
    tree = ast.parse(source)
    places: dict[Place, list[tuple[int, Site]]] = {}
    for number, site in defects:
        places.setdefault(site.place, []).append((number, site))
    for place in sorted(places, key=len, reverse=True):
        _plant(tree, place, places[place], _comparison if recording else _choice)
    return ast.fix_missing_locations(tree)


def _plant(tree: ast.Module, place: Place, defects: Sequence[tuple[int, Site]], either: Either) -> None:
    """Replaces the node at a place; what lies deeper was replaced before."""
    holder: ast.AST = tree
    for step in place[:-1]:
        holder = _at(holder, step)
    node = _at(holder, place[-1])
    new = node
    for number, site in defects:
        changed = ast.copy_location(site.change(copy.deepcopy(node)), node)
        new = ast.copy_location(either(number, changed, new, place), node)
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


def _choice(number: int, changed: ast.AST, node: ast.AST, place: Place) -> ast.AST:
    on = ast.Attribute(ast.Name(NAME, ast.Load()), "on", ast.Load())
    test = ast.Compare(on, [ast.Eq()], [ast.Constant(number)])
    if isinstance(node, ast.stmt):
        if isinstance(changed, ast.stmt):
            return ast.If(test, [changed], [node])
        assert isinstance(changed, ast.expr)
        return ast.If(test, [ast.Return(changed)], [node])
    assert isinstance(node, ast.expr) and isinstance(changed, ast.expr)
    return ast.IfExp(test, changed, node)


def _comparison(number: int, changed: ast.AST, node: ast.AST, place: Place) -> ast.AST:
    recorder = f"{NAME}.recorder"
    apart = isinstance(node, ast.stmt) or any(isinstance(n, NOT_IN_A_LAMBDA) for n in ast.walk(changed))
    if apart:
        test = ast.parse(f"{recorder}.statement({number})", mode="eval").body
        if isinstance(node, ast.stmt):
            return ast.If(test, [ast.Pass()], [node])
        assert isinstance(node, ast.expr)
        return ast.IfExp(test, ast.Constant(None), node)
    assert isinstance(node, ast.expr) and isinstance(changed, ast.expr)
    call = ast.parse(f"{recorder}.value({number}, right, lambda: changed, {_truth(place)})", mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.args[2], ast.Lambda)
    call.args[1], call.args[2].body = node, changed
    return call


def _truth(place: Place) -> bool:
    """Whether what stands there is only asked whether it is true."""
    names = [name for name, _ in place]
    while names and names[-1] in ("operand", "values"):
        names.pop()
    return bool(names) and names[-1] in ("test", "ifs", "guard")


# ---- the import hook -------------------------------------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """Compiles a module with its defects, past every cache of bytecode."""

    def __init__(self, name: str, path: str, defects: Sequence[tuple[int, Site]], recording: bool) -> None:
        super().__init__(name, path)
        self.defects, self.recording = defects, recording

    def get_code(self, fullname: str) -> CodeType:
        tree = planted(Path(self.path).read_text(), self.defects, self.recording)
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, NAME, SWITCH)
        super().exec_module(module)


class _Hook(MetaPathFinder):
    def __init__(self, files: Mapping[str, Sequence[tuple[int, Site]]], recording: bool) -> None:
        self.recording = recording
        self.modules = {"trilift." + f.removesuffix(".py").replace("/", "."): d for f, d in files.items()}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.modules:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self.modules[fullname], self.recording)
        return spec


def install(found: Sequence[Site], recording: bool = False) -> None:
    """Modules that are imported from now on hold these defects. Raises RuntimeError where one was imported before."""
    SWITCH.recorder = Recorder(len(found))
    hook = _Hook(dict(by_file(found)), recording)
    if early := [m for m in hook.modules if m in sys.modules]:
        raise RuntimeError(f"imported before its defects were planted: {', '.join(early)}")
    sys.meta_path.insert(0, hook)

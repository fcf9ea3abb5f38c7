"""The cases of a file, which is run as a script would be, on the pretended device."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..cases.declaration import Case, lenient
from ..errors import CaseError, Place, text_of
from ..runtime.files import unreadable


def load(file: str, names: Sequence[str] = ()) -> list[Case]:
    """The cases of a Python file in its order, or the one of a `.ttir` file, or those named. Raises CaseError if the
    file cannot be read, raises, lacks a name or declares one of these cases wrongly."""
    found = load_all(file, names)
    for c in found:
        if c.mistake is not None:
            raise c.mistake
    return found


def load_all(file: str, names: Sequence[str] = ()) -> list[Case]:
    """As `load`, and a case that is declared wrongly is among them with its `mistake`."""
    if trouble := unreadable(Path(file)):
        raise CaseError(f"{file} cannot be read: {trouble}")
    cases = {c.name: c for c in (_ttir(file) if file.endswith(".ttir") else _python(file))}
    for name in names:
        if name not in cases:
            raise CaseError(f"{file} has no case {name}", help=f"it has {', '.join(cases) or 'none'}")
    return [cases[n] for n in names or cases]


def _python(file: str) -> list[Case]:
    with lenient():
        return _cases(by_file(file))


def find(where: str, name: str = "", is_module: bool = False) -> Any:
    """The case or function of that name in a file or an importable module; without a name, the only case of the file.
    Raises CaseError if there is none."""
    if is_module:
        return _attribute(by_name(where), where, name)
    if not name or where.endswith(".ttir"):
        cases = load(where)
        if len(cases) != 1:
            some = ", ".join(c.name for c in cases) or "none"
            raise CaseError(f"{where} has {len(cases)} cases; name one of them", help=f"it has {some}")
        return cases[0]
    return _attribute(by_file(where), where, name)


def _attribute(module: ModuleType, where: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Case) and not callable(found):
        raise CaseError(f"{where} has no case or function {name}")
    return found


def by_name(name: str) -> ModuleType:
    """A module that can be imported. Raises CaseError if that raises."""
    from .fake_cuda import pretend

    try:
        with pretend():
            return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        raise CaseError(f"importing {name} raised {type(e).__name__}", why=text_of(e)) from e


def _ttir(file: str) -> list[Case]:
    from . import ttir_case

    return [ttir_case.load(file)]


def _cases(module: ModuleType) -> list[Case]:
    """Those that the file itself defines, not those it imports. Raises CaseError for two of one name."""
    _check_names(str(module.__file__))
    values = {id(v): v for v in vars(module).values() if isinstance(v, Case)}
    return [c for c in values.values() if c.fn.__module__ == module.__name__]


def _check_names(file: str) -> None:
    """Python keeps the last one of what has one name. Raises CaseError for a case that another takes its name from, and
    for one that stands in a class, where nobody looks for it."""
    lines: dict[str, int] = {}
    for f in ast.parse(Path(file).read_bytes()).body:
        _check_class(f, file)
        is_case = isinstance(f, ast.FunctionDef) and any(_is_case(d) for d in f.decorator_list)
        if taken := next((n for n in _bound(f) if n in lines), None):
            what = f"two cases are named {taken}, at lines {lines[taken]} and {f.lineno}"
            lost = f"the name of case {taken} of line {lines[taken]} is given to something else"
            help = "give each case a name of its own" if is_case else "give it another name, such as _ to a reference"
            raise CaseError(what if is_case else lost, Place(file, f.lineno), help=help)
        lines |= {n: f.lineno for n in _bound(f) if is_case}


def _check_class(f: ast.stmt, file: str) -> None:
    for inner in f.body if isinstance(f, ast.ClassDef) else ():
        if isinstance(inner, ast.FunctionDef) and any(map(_is_case, inner.decorator_list)):
            what = f"the case {inner.name} stands in a class, where it is not found"
            raise CaseError(what, Place(file, inner.lineno), help="put it at the top level of the file")


def _bound(f: ast.stmt) -> list[str]:
    """The names that a statement gives to something."""
    if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [f.name]
    targets = f.targets if isinstance(f, ast.Assign) else []
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _is_case(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else None
    return getattr(called, "id", getattr(called, "attr", "")) == "case"


def by_file(file: str) -> ModuleType:
    """The module of a Python file, run now. Raises CaseError if that raises."""
    from .fake_cuda import pretend
    from .import_order import first

    if not _is_utf8(os.path.abspath(file)):
        why = "its name or that of a folder is not UTF-8, which Triton needs"
        raise CaseError(f"{file} cannot be read", why=why, help="rename it")
    name, folder = _dotted(Path(file).resolve())
    installed = first(str(folder))
    if "." not in name and installed.elsewhere(name):
        name = f"_{name}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CaseError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with pretend():
            spec.loader.exec_module(module)
    except (CaseError, KeyboardInterrupt):
        raise
    except BaseException as e:
        raise CaseError(f"loading the file raised {type(e).__name__}", _place(file, e), why=_why(e)) from e
    return module


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _dotted(path: Path) -> tuple[str, Path]:
    """The module's name within the packages it lies in, and the folder that the outermost is imported from."""
    parts, folder = [path.stem if path.stem not in sys.modules else f"_{path.stem}"], path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def _why(e: BaseException) -> str:
    """The text of the exception; of an encoding that is unknown, without the line 0 that Python names."""
    return e.msg if isinstance(e, SyntaxError) and (e.lineno or 0) <= 0 else text_of(e)


def _place(file: str, e: BaseException) -> Place:
    """The innermost line of the file itself."""
    if isinstance(e, SyntaxError) and e.filename:
        return Place(e.filename, max(0, e.lineno or 0), max(0, e.offset or 0))
    frames = [f for f in traceback.extract_tb(e.__traceback__) if os.path.abspath(f.filename) == os.path.abspath(file)]
    return Place(file, (frames[-1].lineno if frames else 0) or 0)

"""The order of the architecture: imports go down between packages, and down between the folders of each package.

    lift < verify < superopt < reports; `corpus` imports the public face only; only reports and tests import it

Imports inside functions count; imports for type checkers alone do not: they can close no circle at run time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = {
    "lift": (
        "errors", "checker", "runtime", "terms", "language", "simplify", "cases", "ttir", "capture", "interpreter",
        "pytorch",
        "printers", "synthesis", "replay", "pipeline",
    ),
    "verify": (
        "model", "integers", "normal_form", "execution", "wording", "memory", "loops", "proof", "configurations",
        "runs", "fields", "refutation", "pipeline", "certificate", "mutation", "audit", "properties",
    ),
    "superopt": ("program", "mugraph", "mirage", "search", "tiles", "arrange", "emit", "accept", "jobs", "optimize"),
    "reports": (
        "base", "records", "testgen", "runner", "filters", "formats", "discovery", "commands", "experiments", "cli",
    ),
}  # fmt: skip
ORDER = [f"{package}.{part}" for package, parts in LAYERS.items() for part in parts]
PUBLIC = {"trilift", "trilift.lift", "trilift.lift.errors"}  # what cases may import

pytestmark = pytest.mark.smoke


@cache
def files(package: str) -> list[Path]:
    return [p for p in sorted((ROOT / package).rglob("*.py")) if "results" not in p.parts]


tree = cache(ast.parse)  # by the text of a file, which several tests read


def module(path: Path) -> str:
    """The dotted name without `trilift.`, of a package that of its __init__."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(p) for package in (*LAYERS, "corpus") for p in files(package)}


def imported(source: str, where: str, is_package: bool = False) -> Iterator[str]:
    """Our modules that the file imports, without `trilift.`, wherever the import stands but under TYPE_CHECKING."""
    for node in _running(tree(source)):
        if isinstance(node, ast.Import):
            yield from (_ours(a.name) for a in node.names if a.name.startswith("trilift."))
        elif isinstance(node, ast.ImportFrom):
            base = _ours(node.module or "")
            if node.level:
                up = where.split(".")[: len(where.split(".")) - node.level + is_package]
                base = ".".join([*up, *filter(None, [node.module])])
            elif not (node.module or "").startswith("trilift"):
                continue
            for a in node.names:
                yield f"{base}.{a.name}".strip(".") if f"{base}.{a.name}".strip(".") in MODULES else base


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that run: an import is a statement, so expressions need no visit."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from _running(child)


def _ours(name: str) -> str:
    return name.removeprefix("trilift").lstrip(".")


def part(name: str) -> str:
    """package.folder of a module; a package itself is its highest part."""
    pieces = name.split(".")
    return ".".join(pieces[:2]) if len(pieces) > 1 else f"{name}.{LAYERS[name][-1]}"


def upward(source: str, where: str, is_package: bool = False) -> list[str]:
    """The imports of a file that do not go down: to a later folder of its package, or to a later package."""
    own = part(where) if "." in where else f"{where}.{LAYERS[where][-1]}"
    found = (name for name in imported(source, where, is_package) if name and name.split(".")[0] in LAYERS)
    return [name for name in found if ORDER.index(part(name)) > ORDER.index(own)]


@pytest.mark.parametrize("package", LAYERS)
def test_every_folder_has_its_place(package: str) -> None:
    found = {module(p).split(".")[1] for p in files(package) if "." in module(p)}
    assert found == set(LAYERS[package])


@pytest.mark.parametrize("package", LAYERS)
def test_every_import_goes_down(package: str) -> None:
    wrong = {}
    for path in files(package):
        if found := upward(path.read_text(), module(path), path.name == "__init__.py"):
            wrong[module(path)] = found
    assert wrong == {}


def test_the_corpus_imports_the_public_face_only() -> None:
    outside = {
        (module(p), name)
        for p in files("corpus")
        for name in imported(p.read_text(), module(p), p.name == "__init__.py")
        if f"trilift.{name}".rstrip(".") not in PUBLIC and not name.startswith("corpus")
    }
    assert outside == set()


def test_only_reports_imports_the_corpus() -> None:
    for package in ("lift", "verify", "superopt"):
        for p in files(package):
            assert not [n for n in imported(p.read_text(), module(p)) if n.startswith("corpus")], p


def test_nobody_imports_the_tests() -> None:
    for package in LAYERS:
        for p in files(package):
            names = {n.module for n in ast.walk(tree(p.read_text())) if isinstance(n, ast.ImportFrom)}
            assert not [n for n in names if n and n.split(".")[0] == "tests"], p


def test_only_the_solver_and_the_checker_import_z3() -> None:
    found = [
        p
        for package in LAYERS
        for p in files(package)
        for n in ast.walk(tree(p.read_text()))
        if isinstance(n, ast.Import) and any(a.name.split(".")[0] == "z3" for a in n.names)
    ]
    assert found == [ROOT / "lift" / "checker" / "decisions.py", ROOT / "verify" / "integers" / "solver.py"]


def test_an_import_up_would_be_seen() -> None:
    up = "def f():\n    from trilift.verify.integers.smt import smtlib\n    from ..replay.check import Check\n"
    assert upward(up, "lift.terms.up") == ["verify.integers.smt", "lift.replay.check"]
    assert upward("from trilift.superopt import mugraph\nfrom ..integers import smt\n", "verify.loops.up") == [
        "superopt.mugraph"
    ]
    assert upward("if TYPE_CHECKING:\n    from ..replay.check import Check\n", "lift.terms.up") == []


def test_a_folder_holds_at_most_twenty_files() -> None:
    folders = {p.parent for package in LAYERS for p in files(package)}
    large = {str(f.relative_to(ROOT)): n for f in folders if (n := len(list(f.glob("*.py"))) - 1) > 20}
    assert large == {}


def circles(edges: Mapping[str, Iterable[str]]) -> set[frozenset[str]]:
    """The sets of modules that reach one another (the strongly connected components of more than one module)."""
    reached = {name: _reached(edges, name) for name in edges}
    return {
        frozenset({name, *(b for b in reached[name] if name in reached[b])}) for name in edges if name in reached[name]
    }


def _reached(edges: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen: set[str] = set()
    ahead = list(edges[start])
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead.extend(edges.get(name, ()))
    return seen


def edges(package: str) -> dict[str, set[str]]:
    """Module to the modules of the same package that it imports, anywhere but for type checkers."""
    found = {}
    for path in files(package):
        names = imported(path.read_text(), module(path), path.name == "__init__.py")
        found[module(path)] = {n for n in names if n.split(".")[0] == package and n != module(path)}
    return found


@pytest.mark.parametrize("package", LAYERS)
def test_no_import_circle_between_files(package: str) -> None:
    found = {" ".join(sorted(m.removeprefix(f"{package}.") for m in circle)) for circle in circles(edges(package))}
    assert found == set()


def test_a_circle_would_be_seen() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["d"]}) == {frozenset("bc"), frozenset("d")}
    assert circles({"a": ["b", "c"], "b": ["c"], "c": []}) == set()


def private_imports(source: str) -> list[str]:
    """The private names that a file takes from another module of ours."""
    return [
        a.name
        for node in ast.walk(tree(source))
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("trilift"))
        for a in node.names
        if a.name.startswith("_") and not a.name.startswith("__")
    ]


@pytest.mark.parametrize("package", LAYERS)
def test_nobody_imports_a_private_name(package: str) -> None:
    found = {f"{module(p)} {name}" for p in files(package) for name in private_imports(p.read_text())}
    assert found == set()


def test_a_private_import_would_be_seen() -> None:
    assert private_imports("from .a import b, _c\nfrom x import _y\nfrom trilift.lift import _d as d\n") == ["_c", "_d"]


def test_no_basename_twice_in_a_package() -> None:
    for package in LAYERS:
        names = [p.stem for p in files(package) if p.stem not in ("__init__", "__main__")]
        assert sorted({n for n in names if names.count(n) > 1}) == [], package

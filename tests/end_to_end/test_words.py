"""The voice of texts: no message, docstring or page has an idiom that a reader has to decode."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("lift", "verify", "superopt", "reports", "trilift")
PAGES = ("README.md", "CHANGELOG.md", "BUGS_FOUND.md", "docs", "verify/audit/rules")

BANNED = {
    "is no": r"(?<!\bthere )\bis no (?!longer\b|more than\b|less than\b)",  # "`x` is not a dimension"
    "are no": r"(?<!\bthere )\bare no (?!longer\b|more than\b|less than\b)",
    "tells nothing": r"\b(?:tells?|says?) nothing\b",
    "is not told": r"\b(?:is|are) not (?:told|said)\b",
    "nothing is said": r"\bnothing is (?:said|told)\b",
    "is not shown to be": r"\bnot shown to be\b",
    "of which nothing": r"\bof which nothing\b",
    "since today": r"\bsince today\b",
    "is not seen to be": r"\bnot seen to be\b",
    "Reported is": r"\b(?:Reported|Shown) (?:is|are)\b",
    "What ...": r"(?:\A|[.!:]\s+)What [^.?!]*(?:[.!]|\Z)",  # a subject; a question ends in "?"
}


def sources(package: str) -> list[Path]:
    found = (p for p in (ROOT / package).rglob("*.py") if "results" not in p.parts)
    return sorted(p for p in found if not any(parent.is_symlink() for parent in p.parents))


def texts(path: Path) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """(line, text) of the docstrings of a file, and of its other strings; the fields of an f-string read as {}."""
    docstrings: list[tuple[int, str]] = []
    strings: list[tuple[int, str]] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.append((node.lineno, node.value.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append((node.lineno, node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
            strings.append((node.lineno, "".join(map(str, parts))))
            for v in node.values:
                if isinstance(v, ast.FormattedValue):
                    visit(v.value)
        else:
            for child in ast.iter_child_nodes(node):
                visit(child)

    visit(ast.parse(path.read_text()))
    return docstrings, strings


def banned(path: Path, found: list[tuple[int, str]]) -> Iterator[str]:
    for line, text in found:
        for part in (" ".join(p.split()) for p in re.split(r"\n\s*\n", text)):
            for name in BANNED:
                if (hit := re.search(BANNED[name], part)) is not None:
                    yield f"{path.relative_to(ROOT)}:{line}: {name!r} in {part[max(0, hit.start() - 40) :][:100]!r}"


@pytest.mark.smoke
@pytest.mark.parametrize("package", PACKAGES)
def test_messages_and_docstrings_are_plain(package: str) -> None:
    found = [line for p in sources(package) for part in texts(p) for line in banned(p, part)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_plain(page: str) -> None:
    files = sorted((ROOT / page).rglob("*.md")) if (ROOT / page).is_dir() else [ROOT / page]
    found = [line for p in files if p.exists() for line in banned(p, [(1, p.read_text())])]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x is no dim of f", "is no"),
        ("x is no longer used", None),
        ("Reported is a store of two programs", "Reported is"),
        ("What a program stores.", "What ..."),
        ("Reads. What it finds is unknown.", "What ..."),
        ("What does it find?", None),
        ("What remains of", "What ..."),
        ("out is not shown to be the formula", "is not shown to be"),
        ("could not prove that out equals the formula", None),
    ],
)
def test_the_patterns(text: str, name: str | None) -> None:
    found = Counter(n for n, pattern in BANNED.items() if re.search(pattern, text))
    assert list(found) == ([name] if name else [])

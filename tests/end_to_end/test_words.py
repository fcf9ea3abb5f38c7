"""The voice of texts: idioms that a reader has to decode are in no message, and in ever fewer docstrings."""

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
    "What ...": r"(?:\A|[.!:]\s+)What [^.?!]*(?:[.!]|\Z)",  # a subject; a question ends in "?"
}

# Docstrings and lines of pages that still have such an idiom. A number may only fall: lower it when you mend one.
DOCSTRINGS = {"lift": 24, "verify": 22, "superopt": 1, "reports": 62, "trilift": 0}
MARKDOWN = dict.fromkeys(PAGES, 0)
EXPERIMENTS = 4  # messages of reports/experiments


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


def settled(found: list[str], allowed: int, what: str) -> None:
    """Fails where there are more than allowed, and where the allowance was not lowered with them."""
    assert len(found) <= allowed, f"{what}: {len(found)} instead of {allowed}\n" + "\n".join(found)
    assert len(found) == allowed, f"{what}: only {len(found)} are left of {allowed}: lower the number in this file"


@pytest.mark.smoke
@pytest.mark.parametrize("package", PACKAGES)
def test_messages_are_plain(package: str) -> None:
    found = {p: list(banned(p, texts(p)[1])) for p in sources(package)}
    experiments = [line for p, lines in found.items() if "experiments" in p.parts for line in lines]
    others = [line for p, lines in found.items() if "experiments" not in p.parts for line in lines]
    settled(others, 0, f"messages of {package}")
    settled(experiments, EXPERIMENTS if package == "reports" else 0, "messages of reports/experiments")


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_become_plain(package: str) -> None:
    settled([line for p in sources(package) for line in banned(p, texts(p)[0])], DOCSTRINGS[package], package)


@pytest.mark.parametrize("page", PAGES)
def test_pages_become_plain(page: str) -> None:
    files = sorted((ROOT / page).rglob("*.md")) if (ROOT / page).is_dir() else [ROOT / page]
    settled([line for p in files if p.exists() for line in banned(p, [(1, p.read_text())])], MARKDOWN[page], page)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x is no dim of f", "is no"),
        ("x is no longer used", None),
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

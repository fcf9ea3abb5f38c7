"""The README and docs say what is true: their commands run, and print what the pages show."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "tools"))
import links
from examples import ROOT, Example, examples, files, pages, printed, same
from layers import PICTURE as LAYERS
from layers import drawn

README = ROOT / "README.md"
EXAMPLES = [e for page in pages() for e in examples(page)]
MAKE = sorted({e.command for e in EXAMPLES if e.command.startswith("make ")})
RUN = [pytest.param(e, id=str(e), marks=[pytest.mark.slow] * e.slow) for e in EXAMPLES if e.command not in MAKE]
PROSE = [*pages(), *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "BUGS_FOUND.md"))]
BY_VERSION = ("stages.py", "assembly.py")
NAMED = re.compile(r"`((?:lift|verify|superopt|reports|corpus|tests|docs)/[\w/.-]*[\w/])`")


def test_there_are_commands_to_run() -> None:
    assert {"make demo", "make test"} <= set(MAKE) and len(RUN) >= 20
    assert {e.command.split()[0] for e in EXAMPLES} <= {"make", "trilift", "python", "pytest"}


@pytest.mark.smoke
@pytest.mark.parametrize("command", MAKE)
def test_make_knows_the_target(command: str) -> None:
    done = subprocess.run([*command.split(), "-n"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", RUN)
def test_a_command_prints_what_is_shown(example: Example) -> None:
    if any(f in example.command for f in BY_VERSION) and not version("triton").startswith("3.9"):
        pytest.skip("the Triton IR that is shown, or a place in it, is that of triton 3.9")
    text = printed(example)
    assert same(example.shown, text), text


@pytest.mark.smoke
@pytest.mark.parametrize("page", PROSE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_named_are_there(page: Path) -> None:
    assert [n for n in sorted(set(NAMED.findall(page.read_text()))) if not (ROOT / n).exists()] == []
    assert [link for link in links.broken(page) if "reference/" not in link] == []  # some of these are generated


@pytest.mark.smoke
def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 150


@pytest.mark.smoke
def test_numbers_of_the_readme_are_those_of_the_result_pages() -> None:
    rows = re.findall(r"^\|(.*)\[\w+\]\((reports/results/[\w-]+\.md)\) \|$", README.read_text(), re.MULTILINE)
    assert len(rows) >= 9
    for row, page in rows:
        what, result, *_ = row.split("|")
        there = set(re.findall(r"\d+(?:\.\d+)?", (ROOT / page).read_text()))
        counts = set(re.findall(r"(?<![\w.])\d{2,}(?:\.\d+)?(?= |%|,|$)", what.strip("() ") + " " + result))
        assert counts <= there, (page, counts - there)


@pytest.mark.smoke
def test_a_file_is_shown_once() -> None:
    """A page may show files of the same name as another page: then both are the same."""
    shown = [(page, name, text) for page in pages() for name, text in files(page).items() if name.endswith(".py")]
    for page, name, text in shown:
        assert {t for p, n, t in shown if n == name} == {text}, f"{name} on {page.name} differs from another page's"


@pytest.mark.smoke
def test_the_picture_of_the_layers_is_that_of_the_table() -> None:
    assert LAYERS.read_text() == drawn(), "run `make picture`"


@pytest.mark.smoke
def test_pictures_ask_no_other_host() -> None:
    for svg in (ROOT / "docs" / "pictures").glob("*.svg"):
        assert not re.search(r"(?:href|src|url)\s*[=(]\s*[\"']?https?:", svg.read_text()), svg


@pytest.mark.smoke
def test_same_allows_only_what_the_dots_stand_for() -> None:
    assert same("a\n...\nc\n", "a\nb\nb\nc\n") and same("a\n...\nc\n", "a\nc\n")
    assert not same("a\nc\n", "a\nb\nc\n") and not same("a\n...\n", "b\n")
    assert same("PROVED in 0.8 s\n", "PROVED in 1.25 s\n") and not same("PROVED in 0.8 s\n", "UNKNOWN in 0.8 s\n")
    assert same("proved: PROVED (1.1 s)\n", "proved: PROVED (2.3 s)\n")
    assert not same("one [2 ms]\n", "two [2 ms]\n")


@pytest.mark.smoke
def test_files_of_a_page_and_of_those_it_names(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("```python\n# a.py\nx = 1\n```\n")
    (tmp_path / "two.md").write_text(
        "<!-- files: one.md -->\n\n??? note\n\n    ```python\n    # b.py\n    y = 2\n    ```\n"
    )
    assert files(tmp_path / "two.md") == {"a.py": "# a.py\nx = 1\n", "b.py": "# b.py\ny = 2\n"}


@pytest.mark.smoke
def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<a href='b.html#there'></a><h1 id='here'></h1><script src='https://x.y/z.js'></script>"
    )
    (tmp_path / "b.html").write_text("<h1 id='there'></h1><a href='a.html#gone'></a><a href='c.html'></a>")
    found = list(links.problems(tmp_path))
    assert [f for f in found if "a.html#gone" in f] and [f for f in found if "c.html" in f]
    assert [f for f in found if "asks another host" in f] and len(found) == 3


def test_names_on_the_command_line_are_known() -> None:
    """Options that prose mentions exist: `--name` within backticks beside a command's name."""
    from click import Group

    from trilift.reports.cli import main

    assert isinstance(main, Group)
    known = {o for c in main.commands.values() for p in c.params for o in (*p.opts, *p.secondary_opts)}
    known |= {"--trilift", "--nworkers", "--update-golden", "--version", "--check", "--help"}
    for page in PROSE:
        for line in re.findall(r"`([^`\n]*--[a-z][^`\n]*)`", page.read_text()):
            assert {w for w in shlex.split(line.replace("'", "")) if w.startswith("--")} <= known, (page.name, line)

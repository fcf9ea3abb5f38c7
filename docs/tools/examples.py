"""The commands that the README and docs show, with what they print; the files that they are run on.

A block ```console holds commands after `$ ` and what each prints; a line `...` stands for any lines. A block ```python
or ```toml whose first line is `# name.py` is a file. The files of a page are there for its commands, beside those of
the pages that it names with `<!-- files: page.md -->`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
CACHE = tempfile.TemporaryDirectory(prefix="trilift-examples-")  # what is shown was run now, and shared by commands
FILE = re.compile(r"# ([\w/]+\.(?:py|toml))\n")


@dataclass(frozen=True, slots=True)
class Example:
    """One command of a page, and what the page says that it prints. `slow`: the page marks it as slow."""

    page: str
    command: str
    shown: str
    slow: bool = False

    def __str__(self) -> str:
        return f"{self.page}: {self.command}"


def pages() -> list[Path]:
    """The README and the pages that are written by hand."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def examples(page: Path) -> list[Example]:
    """The commands of a page, in order. A block after `<!-- slow -->` is slow."""
    text = page.read_text()
    out = []
    for block in BLOCK.finditer(text):
        if block[2] == "console":
            slow = text[: block.start()].rstrip().endswith("<!-- slow -->")
            parts = re.split(r"^\$ (.*)\n", _unindented(block), flags=re.MULTILINE)[1:]
            name = page.relative_to(ROOT).as_posix()
            out += [Example(name, c, s, slow) for c, s in zip(parts[::2], parts[1::2], strict=True)]
    return out


def files(page: Path) -> dict[str, str]:
    """name -> text of the files that a page shows, and of those of the pages that it names."""
    text = page.read_text()
    found: dict[str, str] = {}
    for named in re.findall(r"<!-- files: (\S+) -->", text):
        found |= files(page.parent / named)
    for block in BLOCK.finditer(text):
        if block[2] != "console" and (name := FILE.match(body := _unindented(block))):
            found[name[1]] = body
    return found


def _unindented(block: re.Match[str]) -> str:
    return re.sub(rf"^{block[1]}", "", block[3], flags=re.MULTILINE)


def same(shown: str, printed: str) -> bool:
    """Line by line, but for seconds; a line `...` stands for any lines."""
    shown, printed = (_timeless(text) for text in (shown, printed))
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line) + r"\s*\n" for line in shown.strip().splitlines()
    )
    return re.fullmatch(pattern, printed.strip() + "\n") is not None


def _timeless(text: str) -> str:
    text = re.sub(r"(in|,) \d+\.\d+ ?s$", r"\1 some s", text, flags=re.MULTILINE)
    text = re.sub(r"\(\d+\.\d+ s\)", "(some s)", text)
    return re.sub(r"\[\d+ ms\b", "[some ms", text)


# ---- running ---------------------------------------------------------------------------------------------------------


def printed(example: Example) -> str:
    """What the command prints now; on stderr too where it ends with exit code 2. Equal commands run once."""
    page = ROOT / example.page
    made = {name: e.command for e in examples(page) if (name := _output(e.command))}
    named = {a.partition("::")[0] for a in shlex.split(example.command)}
    present = files(page)
    before = tuple((n, made[n]) for n in sorted(named & made.keys()) if made[n] != example.command)
    inside = named & (present.keys() | made.keys())
    return _run(example.command, tuple(sorted(present.items())) if inside else (), before)


def _output(command: str) -> str:
    """The file that a command writes, "" for one that writes none."""
    words = shlex.split(command)
    return words[words.index("-o") + 1] if "-o" in words else ""


@cache
def _run(command: str, present: tuple[tuple[str, str], ...], before: tuple[tuple[str, str], ...]) -> str:
    folder = Path(_folder(present).name) if present else ROOT
    for name, earlier in before:
        if not (folder / name).exists():
            _called(earlier, folder)
    done = _called(command, folder)
    return done.stdout + (done.stderr if done.returncode == 2 else "")


@cache
def _folder(present: tuple[tuple[str, str], ...]) -> tempfile.TemporaryDirectory[str]:
    """A folder with these files, for all commands that are run on them."""
    folder = tempfile.TemporaryDirectory(prefix="trilift-examples-")
    for name, text in present:
        (Path(folder.name) / name).parent.mkdir(parents=True, exist_ok=True)
        (Path(folder.name) / name).write_text(text)
    return folder


def _called(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    module = [sys.executable, *(() if program == "python" else ("-m", program))]
    environment = os.environ | {"COLUMNS": "100", "TRILIFT_CACHE_DIR": CACHE.name}
    return subprocess.run(
        [*module, *arguments], capture_output=True, text=True, cwd=folder, env=environment, timeout=300
    )

"""Draws docs/pictures/finding.svg: what `trilift audit` prints of the kernel in the tutorial "Fix a finding", as it is
run now.

Needs trilift, and nothing that trilift does not install.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from examples import ROOT, files
from rich import _export_format
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COMMAND = ("audit", "-q", "--no-cache", "row_max.py")
PICTURE = ROOT / "docs" / "pictures" / "finding.svg"
WIDTH = 104
COLOURS = {
    r"^error\[[\w-]+\]|^\d+ errors?": "bold red",
    r"\bUNKNOWN\b": "bold yellow",
    r"\bPROVED\b": "bold green",
    r"^ *--> .*$": "bright_blue",
    r"^ *\|": "bright_blue",
    r"= (help|because|replay):": "bold cyan",
    r"^\$ .*$": "bold white",
}


def printed() -> str:
    """What the command prints in a folder that holds the tutorial's kernel."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files(ROOT / "docs" / "tutorials" / "fix-a-finding.md").items():
            (Path(folder) / name).write_text(text)
        command = [sys.executable, "-m", "trilift", *COMMAND]
        return subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout


def drawn(text: str) -> str:
    """The text as an SVG that asks no other host for a font."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in text.splitlines():
        styled = Text(line)
        for pattern, style in COLOURS.items():
            styled.highlight_regex(pattern, style)
        console.print(styled, soft_wrap=False)
    form = re.sub(r"@font-face \{\{.*?\}\}\n", "", _export_format.CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="trilift", theme=MONOKAI, code_format=form, unique_id="trilift")


if __name__ == "__main__":
    shown = "$ trilift audit row_max.py\n" + printed()
    PICTURE.write_text("\n".join(line.rstrip() for line in drawn(shown).splitlines()) + "\n")
    print(PICTURE.relative_to(ROOT))

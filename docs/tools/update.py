"""Runs the commands of the README and docs, and writes what they print now where the page shows something else.

python docs/tools/update.py [PAGE ...]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from examples import Example, examples, pages, printed, same


def updated(page: Path) -> int:
    """Rewrites one page; how many outputs changed. Lines `...` are kept where they still stand for what is printed."""
    changed = 0
    for example in examples(page):
        if example.command.startswith("make ") or same(example.shown, text := printed(example)):
            continue
        page.write_text(_with(page.read_text(), example, text))
        changed += 1
        print(f"{example}: changed")
    return changed


def _with(page: str, example: Example, text: str) -> str:
    """The page with another output for the command, indented as the command is."""
    start = re.search(rf"^( *)\$ {re.escape(example.command)}\n", page, re.MULTILINE)
    assert start is not None
    indent = start[1]
    body = "".join(f"{indent}{line}".rstrip() + "\n" for line in text.rstrip().splitlines())
    end = re.compile(rf"^{indent}(?:```|\$ )", re.MULTILINE).search(page, start.end())
    assert end is not None
    blank = "\n" if page[end.start() :].lstrip().startswith("$ ") else ""
    return page[: start.end()] + body + blank + page[end.start() :]


if __name__ == "__main__":
    chosen = [Path(p).resolve() for p in sys.argv[1:]] or pages()
    print(f"{sum(updated(page) for page in chosen)} outputs changed of {sum(len(examples(p)) for p in chosen)}")

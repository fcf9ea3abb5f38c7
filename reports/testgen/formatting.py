"""Python source that `ruff format` leaves as it is, at its own line length and at longer ones, with the imports that it
uses.

    f(            ->  f(               a bracket that was opened over lines gets a trailing comma, which keeps it open
        a, b              a,
    )                     b,
                      )
    x = (         ->  x = (            what may have none, and would be one line at another length, is marked
        a + b             a + b
    )                 )  # fmt: skip
    f("a b")      ->  f(               a string that is longer than a line is said in parts
                          "a "
                          "b",
                      )
"""

from __future__ import annotations

import ast
import difflib
import io
import keyword
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from ruff import find_ruff_bin

WIDTH, LONGER = 88, (100, 120)
OPTIONS = ("--isolated", "--quiet", "--target-version", "py311")
FORMATTING_ROUNDS = 6
PART = 72  # characters of a part of a string
SPACE = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT}
Edit = tuple[int, int, str]  # line, column, what is put there


def formatted(source: str) -> str:
    """The text without unused imports, sorted and formatted. Raises RuntimeError for text that is not Python."""
    text = at_width(_ruff(["check", *OPTIONS, "--fix-only", "--select", "F401,I,SIM300", "-"], source), WIDTH)
    text = at_width(_in_parts(text), WIDTH)
    for _ in range(FORMATTING_ROUNDS):
        found = at_width(_edited(text, _commas(text)), WIDTH)
        found = found if found != text else at_width(_edited(text, _marks(text)), WIDTH)
        if found == text:
            break
        text = found
    return text


def at_width(source: str, width: int) -> str:
    """The text as ruff formats it in lines of that length."""
    return _ruff(["format", *OPTIONS, "--line-length", str(width), "-"], source)


def _ruff(command: list[str], source: str) -> str:
    done = subprocess.run([find_ruff_bin(), *command], input=source, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise RuntimeError(f"ruff {command[0]}: {done.stderr.strip()}")
    return done.stdout


def _edited(text: str, edits: Iterator[Edit]) -> str:
    lines = text.split("\n")
    for line, column, more in sorted(set(edits), reverse=True):
        lines[line - 1] = lines[line - 1][:column] + more + lines[line - 1][column:]
    return "\n".join(lines)


# ---- strings ---------------------------------------------------------------------------------------------------------


def _in_parts(text: str) -> str:
    """The text with its strings within brackets in parts, where they are longer than any line."""
    lines, depth, found = text.split("\n"), 0, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        elif token.type == tokenize.STRING and depth and token.end[1] >= LONGER[-1] and token.string[0] in "\"'":
            found += [token] * (token.start[0] == token.end[0])
    for token in reversed(found):
        row, (first, last) = token.start[0] - 1, (token.start[1], token.end[1])
        parts = " ".join(map(repr, _parts(ast.literal_eval(token.string))))
        lines[row] = lines[row][:first] + parts + lines[row][last:]
    return "\n".join(lines)


def _parts(said: str) -> Iterator[str]:
    """Pieces that end with a space, of about the same number of characters."""
    while len(said) > PART and (end := said.rfind(" ", 0, PART) + 1 or said.find(" ") + 1):
        yield said[:end]
        said = said[end:]
    yield said


# ---- commas ----------------------------------------------------------------------------------------------------------


@dataclass
class _Bracket:
    """An open bracket. `before`: the token before it; `opened`: whether a line ends after it."""

    token: tokenize.TokenInfo
    before: tokenize.TokenInfo | None
    opened: bool = False
    commas: int = 0
    loops: bool = False  # a comprehension

    @property
    def takes_comma(self) -> bool:
        """Whether a trailing comma changes nothing of what it means."""
        named = self.before is not None and _is_operand(self.before)
        if self.loops or (self.token.string == "[" and named):
            return False
        return self.commas > 0 or named or self.token.string != "("


def _is_operand(token: tokenize.TokenInfo) -> bool:
    """Whether a bracket after it is that of a call or an index."""
    name = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
    return name or token.string in (")", "]", "import") or token.type == tokenize.STRING


def _commas(text: str) -> Iterator[Edit]:
    """A comma for each bracket that was opened over lines and has none."""
    stack: list[_Bracket] = []
    last: tokenize.TokenInfo | None = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in SPACE:
            if stack and last is stack[-1].token:
                stack[-1].opened = True
            continue
        if token.string in ("(", "[", "{") and token.type == tokenize.OP:
            stack.append(_Bracket(token, last))
        elif token.string in (")", "]", "}") and token.type == tokenize.OP:
            found = stack.pop()
            if last is not None and found.opened and last.string != "," and last is not found.token:
                yield from [(*last.end, ",")] * found.takes_comma
        elif stack and token.string == ",":
            stack[-1].commas += 1
        elif stack and token.string == "for" and token.type == tokenize.NAME:
            stack[-1].loops = True
        last = token


# ---- marks -----------------------------------------------------------------------------------------------------------


def _marks(text: str) -> Iterator[Edit]:
    """A mark for each statement that has other lines at another length."""
    ends = {k: end for first, end in _statements(ast.parse(text)) for k in range(first, end + 1)}
    lines = text.split("\n")
    for width in LONGER:
        other = at_width(text, width).split("\n")
        for tag, low, high, _, _ in difflib.SequenceMatcher(None, lines, other, autojunk=False).get_opcodes():
            for k in range(low + 1, high + 1) if tag != "equal" else ():
                end = ends.get(k)
                if end is not None and "# fmt: skip" not in lines[end - 1]:
                    yield end, len(lines[end - 1]), "  # fmt: skip"


def _statements(node: ast.AST) -> Iterator[tuple[int, int]]:
    """First and last line of every simple statement, of every decorator, and of the head of every other one."""
    for inner in ast.iter_child_nodes(node):
        body = getattr(inner, "body", None)
        if isinstance(inner, ast.stmt):
            yield from ((d.lineno, d.end_lineno or d.lineno) for d in getattr(inner, "decorator_list", []))
            last = body[0].lineno - 1 if isinstance(body, list) and body else inner.end_lineno or inner.lineno
            yield inner.lineno, last
        yield from _statements(inner)

"""Terms of a certificate as text: what the checker prints is made of what it checked, never taken from the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from .polynomials import FOLDS, Node

SIGNS = {"add": " + ", "mul": " * ", "le": " <= ", "lt": " < ", "eq": " == ", "ne": " != ", "and": " and ",
         "or": " or ", "floordiv": " // ", "mod": " % "}  # fmt: skip
SYMBOLS = ("size", "scalar")
PLAIN = re.compile(r"[\w~@%'.]+|stride\(\w+, ?\d+\)")
LONG = 60  # characters from which on a term that occurs twice gets a name


def escaped(said: object) -> str:
    """The text with control characters, and others that do not print, as escapes: one line, without effects."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(said))


def named(name: object) -> str:
    """A name of the file; in quotes where it could be taken for more than a name."""
    plain = isinstance(name, str) and PLAIN.fullmatch(name)
    return str(name) if plain else '"' + escaped(name).replace("\\", "\\\\").replace('"', '\\"') + '"'


def shown(t: Node) -> str:
    """A term as text: large parts that occur several times are named after it."""
    return Wording(t).text()


def equation(name: str, axes: Sequence[Node], t: Node) -> str:
    """The claim about an output: `out[i] = x[i] + 1 for i < N`."""
    words = Wording(t, axes)
    index = ", ".join(words.axis(a) for a in axes)
    ranges = ", ".join(f"{words.axis(a)} < {shown(a.attr[1])}" for a in axes)
    return f"{named(name)}[{index}] = {words.text()}" + (f" for {ranges}" if axes else "")


class Wording:
    """The text of one term. Arguments have lower numbers than what is made of them, so nothing is recursive."""

    def __init__(self, t: Node, axes: Sequence[Node] = ()) -> None:
        self.top = t
        self.nodes = subterms([t, *axes])
        self.uses = Counter(a.id for x in self.nodes for a in x.args)
        self.names = Counter(name for name, _ in {x.axis for x in self.nodes if x.op == "axis" or x.op in FOLDS})
        self.names.update({x.attr for x in self.nodes if x.op in SYMBOLS})

    def text(self) -> str:
        """The whole text."""
        said: dict[int, str] = {}
        told: list[str] = []
        for x in self.nodes:
            line = self.one(x, [(a, said[a.id]) for a in x.args])
            if len(line) > LONG and self.uses[x.id] > 1 and x is not self.top:
                told.append(f"$t{x.id} := {line}")
                line = f"$t{x.id}"
            said[x.id] = line
        within = {t.split(" := ")[0]: t for t in told}
        used = _needed(said[self.top.id], within)
        return said[self.top.id] + (f", where {'; '.join(t for t in told if t in used)}" if used else "")

    def one(self, x: Node, args: Sequence[tuple[Node, str]]) -> str:
        """A term, of the texts of its arguments."""
        parts = [said for _, said in args]
        if x.op in SYMBOLS:
            return named(x.attr)
        if x.op == "const":
            return escaped(x.attr)
        if x.op == "axis":
            return self.axis(x)
        if x.op in ("element", "read"):
            return f"{named(x.attr)}[{', '.join(parts)}]"
        if x.op in SIGNS:
            return SIGNS[x.op].join(f"({said})" if a.op in SIGNS and a.args else said for a, said in args)
        if x.op in FOLDS:
            return f"{x.op}({self.axis(x)} < {shown(x.attr[1])}: {', '.join(parts)})"
        more = [] if x.attr is None else [named(x.attr)]
        return f"{named(x.op)}({', '.join([*more, *parts])})"

    def axis(self, x: Node) -> str:
        """The name of an index; with a number where two things of the term have one name."""
        name = x.axis[0]
        return named(name) + (f"#{x.axis[1]}" if self.names[name] > 1 else "")


def subterms(tops: Iterable[Node]) -> list[Node]:
    """The terms in these, arguments first."""
    found: dict[int, Node] = {}
    left = list(tops)
    while left:
        x = left.pop()
        if x.id not in found:
            found[x.id] = x
            left += x.args
    return [found[k] for k in sorted(found)]


def _needed(said: str, names: dict[str, str]) -> set[str]:
    """The definitions that a text needs, and those that they need."""
    found: set[str] = set()
    left = [said]
    while left:
        for word in re.findall(r"\$t\d+\b", left.pop()):
            if word in names and names[word] not in found:
                found.add(names[word])
                left.append(names[word])
    return found

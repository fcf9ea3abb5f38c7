"""The output formats of an audit: each writes the JSON document of the records, `{"schema", "version", "cases"}`, as
one text. The same document gives the same bytes; nothing but the sources that it names is read."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..records.findings import Record

Document = Mapping[str, Any]
Writer = Callable[[Document], str]


@dataclass(frozen=True, slots=True)
class Stream:
    """A format that is written while cases end: the text of one record, in their order, then all the rest of the
    document. Findings about comments are in the rest: they are known when all cases have ended."""

    case: Callable[[Record], str]
    rest: Callable[[Document], str]

    def whole(self, document: Document) -> str:
        """The text of a document that is there."""
        return "".join(map(self.case, document["cases"])) + self.rest(document)


def _write(module: str, document: Document) -> str:
    """The document as written by the format's own module, which is imported now."""
    writer: Writer = importlib.import_module(f".{module}", __package__).write
    return writer(document)


def unlaunched(document: Document) -> list[Any]:
    """The kernels that no case launches."""
    return [k for k in document.get("kernels", ()) if not k["cases"]]


NAMES = ("text", "concise", "json", "jsonl", "sarif", "github", "junit", "html")
STREAMED = ("text", "concise", "jsonl", "github")
FORMATS: dict[str, Writer] = {name: partial(_write, name) for name in NAMES}


def stream(name: str) -> Stream:
    """A format of STREAMED, at its beginning."""
    begun: Stream = importlib.import_module(f".{name}", __package__).stream()
    return begun

"""The output formats of an audit: each writes the JSON document of the records, `{"schema", "version", "cases"}`, as
one text. The same document gives the same bytes; nothing but the sources that it names is read."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Document = Mapping[str, Any]
Writer = Callable[[Document], str]


def _write(module: str, document: Document) -> str:
    """The document as written by the format's own module, which is imported now."""
    writer: Writer = importlib.import_module(f".{module}", __package__).write
    return writer(document)


def unlaunched(document: Document) -> list[Any]:
    """The kernels that no case launches."""
    return [k for k in document.get("kernels", ()) if not k["cases"]]


NAMES = ("text", "concise", "json", "jsonl", "sarif", "github", "junit", "html")
FORMATS: dict[str, Writer] = {name: partial(_write, name) for name in NAMES}

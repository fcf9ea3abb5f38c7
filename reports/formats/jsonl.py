"""`--format jsonl`: a line of JSON for each case, then for each kernel that no case launches."""

from __future__ import annotations

import json
from collections.abc import Mapping

from . import Document, unlaunched


def line(row: Mapping[str, object]) -> str:
    """One object on a line."""
    return json.dumps(row, separators=(",", ":"))


def write(document: Document) -> str:
    """The lines; a last one says so where the run was ended early."""
    rows = [*document["cases"], *unlaunched(document)]
    end = [{"incomplete": document["incomplete"]}] if "incomplete" in document else []
    return "".join(f"{line(r)}\n" for r in [*rows, *end])

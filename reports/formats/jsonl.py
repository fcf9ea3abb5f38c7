"""`--format jsonl`: a line of JSON for each case, then for each kernel that no case launches, then one of the findings
about comments where there are any: {"comments": {"findings": [], "suppressed": []}}."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..filters import ignores
from . import Document, Stream, unlaunched


def line(row: Mapping[str, object]) -> str:
    """One object on a line."""
    return json.dumps(row, separators=(",", ":"))


def write(document: Document) -> str:
    """The lines; a last one says so where the run was ended early."""
    return stream().whole(document)


def stream() -> Stream:
    return Stream(lambda record: f"{line(ignores.apart(record)[0])}\n", _rest)


def _rest(document: Document) -> str:
    rows = [ignores.apart(k)[0] for k in unlaunched(document)]
    about = [ignores.apart(r)[1] for r in (*document["cases"], *document.get("kernels", ()))]
    comments = {k: [f for r in about for f in r[k]] for k in ("findings", "suppressed")}
    ends = [{"comments": comments}] if any(comments.values()) else []
    ends += [{"incomplete": document["incomplete"]}] if "incomplete" in document else []
    return "".join(f"{line(r)}\n" for r in [*rows, *ends])

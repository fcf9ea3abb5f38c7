"""`--format json`: the document as it is. schema.json beside this file describes it; fields are only ever added."""

from __future__ import annotations

import json

from . import Document


def write(document: Document) -> str:
    """The document, indented."""
    return json.dumps(document, indent=1) + "\n"

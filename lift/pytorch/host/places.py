"""Whose code a file is: the host's, which is read; of the outside world; or neither, since it is of its arguments."""

from __future__ import annotations

import os
import re
import sysconfig
from functools import cache

from ...capture.recorder import is_host
from .questions import OURS

PURE = frozenset(
    [
        "abc",
        "array",
        "ast",
        "bisect",
        "builtins",
        "cmath",
        "collections",
        "contextlib",
        "copy",
        "copyreg",
        "dataclasses",
        "einops",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "importlib",
        "io",
        "itertools",
        "json",
        "keyword",
        "logging",
        "math",
        "ntpath",
        "numbers",
        "numpy",
        "operator",
        "packaging",
        "pathlib",
        "posixpath",
        "re",
        "reprlib",
        "string",
        "struct",
        "sympy",
        "textwrap",
        "tokenize",
        "torch",
        "traceback",
        "triton",
        "trilift",
        "types",
        "typing",
        "typing_extensions",
        "unicodedata",
        "uuid",
        "warnings",
        "weakref",
        "zlib",
    ]
)  # modules whose functions compute from their arguments, have rows in the table of questions, or only say something
STANDARD = sysconfig.get_path("stdlib") + os.sep
PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\](\w+)")
HOST, OUTSIDE, NEITHER = "host", "outside", "neither"


@cache
def place(file: str) -> str:
    """Whose code the file is. Packages but PyTorch and Triton are host code, and are read as such."""
    if file.startswith("<"):
        return NEITHER
    if not is_host(file):
        return NEITHER if file.startswith(OURS) else OUTSIDE
    if package := PACKAGES.search(file):
        return NEITHER if package[1] in PURE else HOST
    return OUTSIDE if file.startswith(STANDARD) else HOST

"""Whose code a file is: the host's, which is read; of the outside world; or neither, since it is of its arguments."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from functools import cache
from importlib.util import find_spec
from types import FrameType

import numpy as np
import torch

from ..errors import Place

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
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep  # the folder trilift/
_CORPUS = os.path.join(_ROOT, "corpus") + os.sep  # which is read as anybody's code
_LIBRARIES = (torch.__file__, np.__file__, getattr(find_spec("triton"), "origin", None) or torch.__file__)
_QUIET = tuple(os.path.dirname(file) + os.sep for file in _LIBRARIES)
HOST, OUTSIDE, NEITHER = "host", "outside", "neither"


@cache
def place(file: str) -> str:
    """Whose code the file is. Packages but PyTorch and Triton are host code, and are read as such."""
    if file.startswith("<"):
        return NEITHER
    if not is_host(file):
        return NEITHER if is_ours(file) else OUTSIDE
    if package := PACKAGES.search(file):
        return NEITHER if package[1] in PURE else HOST
    return OUTSIDE if file.startswith(STANDARD) else HOST


@cache
def is_own(file: str) -> bool:
    """Whether it is Python code of the user's own, of no installed package."""
    return place(file) == HOST and PACKAGES.search(file) is None and file.endswith(".py")


def is_ours(file: str) -> bool:
    """Whether the file is of this project."""
    return file.startswith(_ROOT) and not file.startswith(_CORPUS)


def is_host(file: str) -> bool:
    return not file.startswith(_QUIET) and not file.startswith("<") and not is_ours(file)


def host_place(ours: str = "") -> Place | None:
    """The innermost line of host code that is running, outside of the folder `ours`."""
    frame = host_frame(ours)
    return Place(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None


def host_frame(ours: str = "") -> FrameType | None:
    """The innermost frame of host code, outside of the folder `ours`."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if place(frame.f_code.co_filename) == HOST and not (ours and frame.f_code.co_filename.startswith(ours)):
            return frame
        frame = frame.f_back
    return None

"""Texts with numbers in them that lead nowhere: the message of an error that is raised, a line that is printed."""

from __future__ import annotations

import ast
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from types import FrameType, ModuleType

import torch

from .places import PACKAGES, STANDARD, host_frame, is_host, is_ours

_TORCH = os.path.dirname(torch.__file__)
HANDING_ON = frozenset(  # files of PyTorch whose functions make a text of a number or a tensor for whoever called them
    os.path.join(_TORCH, *parts)
    for parts in (("__init__.py",), ("_tensor.py",), ("overrides.py",), ("fx", "experimental", "sym_node.py"))
)
Span = tuple[int, int, int, int]  # first line, first column, last line, last column


def purpose() -> str:
    """The use of a text that the host code makes now: "message" in a `raise` and in the message of an `assert`,
    which counts for nothing if the error leaves the host function; "output" in a call of `print`, a logger or
    `warnings` whose result is dropped; "value" for all else."""
    frame = host_frame()
    span = None if frame is None else _running(frame)
    if frame is None or span is None:
        return "value"
    messages, outputs = _spans(frame.f_code.co_filename)
    if any(_within(span, s) for s in messages):
        return "message"
    return "output" if any(_within(span, s) and _goes_out(name, frame) for s, name in outputs) else "value"


def is_of_host() -> bool:
    """Whether it is host code that makes a text now, and not PyTorch, and may compute with it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _hands_on(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and is_host(frame.f_code.co_filename) and purpose() == "value"


def _hands_on(file: str) -> bool:
    return _is_standard(file) or is_ours(file) or file in HANDING_ON


def _is_standard(file: str) -> bool:
    """Whether it is of Python's own library, or of no file."""
    return file.startswith("<") or (file.startswith(STANDARD) and PACKAGES.search(file) is None)


def _running(frame: FrameType) -> Span | None:
    """The place of the instruction that the frame is at."""
    places = list(frame.f_code.co_positions())
    first, last, left, right = places[frame.f_lasti // 2] if frame.f_lasti >= 0 else (None,) * 4
    if first is None or last is None or left is None or right is None:
        return None
    return first, left, last, right


def _within(a: Span, b: Span) -> bool:
    return b[:2] <= a[:2] and a[2:] <= b[2:]


@cache
def _spans(file: str) -> tuple[tuple[Span, ...], tuple[tuple[Span, str], ...]]:
    """The places of messages, and those of calls whose results are dropped with what they call: `print`, `log.info`."""
    try:
        with open(file, encoding="utf-8") as f:
            tree = ast.parse(f.read())
    except (OSError, SyntaxError, ValueError):
        return (), ()
    return tuple(_messages(tree)), tuple(_calls(tree))


def _messages(tree: ast.AST) -> Iterator[Span]:
    for node in ast.walk(tree):
        part = node.exc if isinstance(node, ast.Raise) else node.msg if isinstance(node, ast.Assert) else None
        if part is not None:
            yield _span(part)


def _calls(tree: ast.AST) -> Iterator[tuple[Span, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            of = node.value.func
            name = of.value if isinstance(of, ast.Attribute) else of
            if isinstance(name, ast.Name):
                yield _span(node), name.id


def _span(node: ast.expr | ast.stmt) -> Span:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _goes_out(name: str, frame: FrameType) -> bool:
    """Whether the name is that of `print`, of a logger, or of the modules `logging` and `warnings`."""
    known = frame.f_locals.get(name, frame.f_globals.get(name, print if name == "print" else None))
    return known is print or isinstance(known, logging.Logger) or _is_module(known) or known is warnings.warn


def _is_module(x: object) -> bool:
    return isinstance(x, ModuleType) and x in (logging, warnings)

"""Files with two good cases, between which there may be one that is at fault."""

from __future__ import annotations

from pathlib import Path

NAME = "cases.py"
HEAD = """
import ctypes, os, sys, time
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def run(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y
"""
CASE = """
@case(x="f32[N]")
def {name}(x):
    {body}
    return run(x)
"""
GO = "go"  # a file: the case that waits for it goes on
WAITS = f"while not os.path.exists({GO!r}): time.sleep(0.1)"


def case(name: str, body: str = "pass") -> str:
    return CASE.format(name=name, body=body)


def text(body: str = "", name: str = "bad") -> str:
    """The text of a file; the case at fault does what `body` says before it launches its kernel."""
    return HEAD + case("first") + (case(name, body) if body else "") + case("last")


def put(folder: Path, body: str = "", name: str = NAME) -> str:
    """Writes such a file; its name."""
    (folder / name).write_text(text(body))
    return name

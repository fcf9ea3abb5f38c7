"""`trilift doctor`: whether this installation can do its work, with what to do where it cannot."""

from __future__ import annotations

import importlib.metadata as metadata
import platform
import sys

import click

REQUIRED = ("torch", "triton", "egglog", "z3-solver", "numpy", "hypothesis", "click", "rich")
OPTIONAL = ("liger-kernel", "flag-gems", "fla-core", "torchao", "gemlite", "attn-gym", "xformers")
TRITON = ((3, 6), (3, 10))  # from, below

KERNEL = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

@case(x="f32[N]")
def doctor(x):
    y = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y
"""


def run() -> int:
    """Prints one line per check; 0 if all that is required works, else 2."""
    good = [_python(), *(_installed(p, True) for p in REQUIRED), _triton(), _tested(), _lifts()]
    for package in OPTIONAL:
        _installed(package, False)
    return 0 if all(good) else 2


def _say(good: bool | None, what: str, advice: str = "") -> bool:
    mark = {True: "ok  ", False: "FAIL", None: "-   "}[good]
    click.echo(f"{mark} {what}" + (f"  ({advice})" if advice and good is not True else ""))
    return bool(good)


def _python() -> bool:
    return _say(sys.version_info >= (3, 11), f"python {platform.python_version()}", "3.11 or later is needed")


def _installed(package: str, required: bool) -> bool:
    try:
        return _say(True, f"{package} {metadata.version(package)}")
    except metadata.PackageNotFoundError:
        advice = f"pip install {package}" if required else "optional: make packages"
        return _say(False if required else None, f"{package} is not installed", advice)


def _triton() -> bool:
    try:
        version = tuple(int(p) for p in metadata.version("triton").split(".")[:2])
    except metadata.PackageNotFoundError:
        return False
    low, high = TRITON
    return _say(
        low <= version < high,
        f"triton {low[0]}.{low[1]} to {high[0]}.{high[1] - 1}",
        "IR of other versions is not read",
    )


def _tested() -> bool:
    """Whether these versions were tried together; others may work as well."""
    from ..base.tested_versions import tested, words

    try:
        found = {n: metadata.version(n) for n in ("torch", "triton")}
    except metadata.PackageNotFoundError:
        return False
    if tested(platform.python_version(), **found):
        return _say(True, f"these versions were tested together ({words()})")
    _say(None, "these versions were not tested together", f"tested: {words()}")
    return True


def _lifts() -> bool:
    """A small kernel from source to formula."""
    import tempfile
    from pathlib import Path

    from ..base.targets import Target
    from ..records.options import Options
    from ..runner import dispatch

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "doctor.py"
        file.write_text(KERNEL)
        found = list(dispatch.records([Target(str(file))], Options()))
    good = bool(found) and found[0]["lift"] == "ok"
    formula = found[0]["formula"] if good else None
    text = formula["text"] if formula else found[0]["lift"] if found else "no case found"
    return _say(
        good,
        f"a kernel captured, lowered and lifted: {text}",
        "" if good else "run `trilift lift` on one of your files",
    )

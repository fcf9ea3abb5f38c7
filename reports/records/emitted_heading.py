"""The comment at the top of an emitted file."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from importlib import metadata

from ..base.version import VERSION


def heading(command: str, verdicts: tuple[str, str, str], kernels: int, model: float, roofline: float) -> str:
    """The comment at the top of an emitted file: how it was made, by what, and what is proved of it. `verdicts`: by
    itself, against the case, and against what of the case; times of the model in seconds."""
    own, same, against = verdicts
    lines = [
        f"Written by trilift optimize {command}",
        f"trilift {VERSION}, {versions()}",
        f"{own} against its reference below, and where its asserts hold {same} against the {against} of the case",
        f"{kernels} kernel{'s' * (kernels != 1)}, {model * 1e6:.2f} us in the model at these sizes, "
        f"roofline {roofline * 1e6:.2f} us",
    ]
    return "".join(f"# {' '.join(line.split())}\n" for line in lines)


def versions(packages: Sequence[str] = ("triton", "torch")) -> str:
    """The versions that made a file, and the date."""
    said = [f"{p} {metadata.version(p)}" for p in packages]
    return ", ".join([*said, f"python {platform.python_version()}", date.today().isoformat()])

"""Files that trilift writes: it replaces none that it did not write, and leaves none half written.

Every file says by itself who wrote it: a JSON document and a SARIF log name their tool, written tests and kernels have
a line in their heading, an HTML page its generator. Formats without a place for that get a last line.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

import click

MARK = "written by trilift"
OURS = re.compile(
    r"(?im:^[\W_]*(?:debug::)?written by trilift\b)"  # at the beginning of a line: prose may say so elsewhere
    r"|\"(?:tool|name)\": ?\"trilift\""
    r"|<testsuites name=\"trilift "
    r"|<meta name=\"generator\" content=\"trilift"
)
LAST_LINES = {"text": f"# {MARK}\n", "concise": f"# {MARK}\n", "github": f"::debug::{MARK}\n"}  # of files, by format
LOOKED_AT_BYTES = 64 << 20  # a larger file is not ours


def refused(path: str) -> str:
    """Why a file may not be replaced; "" where it may: it is not there, is empty, a device, or ours."""
    file = Path(path)
    try:
        if not file.is_file() or not (size := file.stat().st_size):
            return ""
        if size <= LOOKED_AT_BYTES and OURS.search(file.read_text(encoding="utf-8", errors="replace")):
            return ""
    except OSError as e:
        return f"cannot read {path}: {e.strerror}"
    return f"{path} was not written by trilift and is not replaced; --force replaces it"


def check(option: str, path: str, force: bool = False) -> None:
    """Raises click.UsageError where the file may not be replaced."""
    if not force and (why := refused(path)):
        raise click.UsageError(f"{option}: {why}")


def replace(path: str | Path, text: str) -> None:
    """Writes the file as a whole: another process sees the old text or the new one. Raises OSError with its name."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a terminal, /dev/null, a pipe
        target.write_text(text, encoding="utf-8")
        return
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as f:
            f.write(text)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException as e:
        os.unlink(name)
        if isinstance(e, OSError) and e.filename is None:  # no space left
            raise OSError(e.errno, e.strerror, str(path)) from None
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

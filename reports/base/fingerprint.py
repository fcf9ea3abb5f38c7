"""The dependencies of a result, as hashes: files, variables of the environment, our own source, what is installed, how
it was asked for."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import sysconfig
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from .outside_reads import READS, VARIABLE

OURS = ("trilift", "lift", "verify", "superopt", "reports")
ROOT = Path(__file__).resolve().parents[2]
SOURCE = (".py", ".json", ".ttir", ".txt", ".md")  # whose contents are read; of other large files size and time count
SMALL_BYTES = 1 << 20
MACHINE = {"/proc", "/sys", "/dev", "/etc", os.path.expanduser("~/.triton")}
IRRELEVANT = ("TRITON_CACHE", "TRITON_HOME", "TRITON_DUMP", "TRITON_INTERPRET", "TRITON_PRINT")


def of_text(*parts: str) -> str:
    """The hash of some texts, order and boundaries included."""
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode(errors="surrogateescape")
        h.update(len(data).to_bytes(8, "little") + data)
    return h.hexdigest()


def of_file(path: str | Path) -> str | None:
    """The hash of a file's content; of a large one that has no source, that of its size and time; None where there is
    none. `$NAME` is a variable of the environment."""
    if str(path).startswith(VARIABLE):
        value = os.environ.get(str(path).removeprefix(VARIABLE))
        return None if value is None else of_text(value)
    try:
        found = os.stat(path)
        is_small = found.st_size <= SMALL_BYTES or str(path).endswith(SOURCE)
        if not is_small or not stat.S_ISREG(found.st_mode):
            return f"{found.st_size}:{found.st_mtime_ns}"
        with open(path, "rb") as f:
            return hashlib.blake2b(f.read(), digest_size=16).hexdigest()
    except OSError:
        return None


def changed_since(paths: Iterable[str], since: int) -> bool:
    """Whether a file was written since that time, in nanoseconds. One that is not there was not, nor is a variable of
    the environment: whether they are the same later their hashes tell."""
    for path in paths:
        with suppress(OSError):
            if os.stat(path).st_mtime_ns >= since:
                return True
    return False


@cache
def environment() -> str:
    """The hash of Python, of our own source, of the distributions that are installed and of Triton's settings."""
    settings = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("TRITON_") and not _irrelevant(k))
    return of_text(sys.version, os.environ.get("PYTHONPATH", ""), *settings, *_installed(), *own_source())


def _irrelevant(name: str) -> bool:
    return name.startswith(IRRELEVANT)


def _installed() -> list[str]:
    """The names of distributions with their versions, as their folders are called."""
    names: set[str] = set()
    for folder in dict.fromkeys(sys.path):
        try:
            names |= {n for n in os.listdir(folder or ".") if n.endswith((".dist-info", ".egg-info"))}
        except OSError:
            continue
    return sorted(names)


def own_source() -> list[str]:
    """Our files with their hashes."""
    paths = sorted(p for name in OURS for p in (ROOT / name).rglob("*.py"))
    return [f"{p.relative_to(ROOT)}={of_file(p)}" for p in paths]


def watched() -> frozenset[str]:
    """The names of the modules that are there now, for `loaded`, which also tells what is read from now on."""
    READS.watch()
    return frozenset(sys.modules)


def loaded(before: Collection[str]) -> list[str]:
    """The files of modules that were imported since `before`, the names in sys.modules then: local source and packages,
    without the standard library and without more of the packages that were there already (those `environment` has).
    And what was read since `watched`: other files, `$NAME` for a variable of the environment."""
    roots = {name.partition(".")[0] for name in before}
    fresh = [m for n, m in list(sys.modules.items()) if n not in before and n.partition(".")[0] not in roots]
    modules = _outside_library(str(f) for m in fresh if (f := getattr(m, "__file__", None)))
    missing = {p for p in READS.missing() if p in _outside_library([p]) and "site-packages" not in p}
    return sorted(modules | missing | {p for p in READS.read if not _is_known(p, roots)})


def _is_known(path: str, roots: Collection[str]) -> bool:
    """Whether what was read is in `environment`, or the machine's."""
    if path.startswith(VARIABLE):
        return False
    inside = path.rpartition("site-packages" + os.sep)[2] if "site-packages" in path else ""
    ours = {str(ROOT / name) for name in OURS}
    return (
        path.endswith(".pyc")
        or inside.partition(os.sep)[0].removesuffix(".py") in roots
        or _below(path, MACHINE | ours)
        or path not in _outside_library([path])
    )


def _outside_library(files: Iterable[str]) -> set[str]:
    """Those that are not part of Python itself."""
    paths = {sysconfig.get_path(n) for n in ("stdlib", "platstdlib")}
    sites = {sysconfig.get_path(n) for n in ("purelib", "platlib")}
    resolved = {os.path.abspath(f) for f in files}
    return {f for f in resolved if not _below(f, paths) or _below(f, sites) or "site-packages" in f}


def _below(file: str, folders: Iterable[str]) -> bool:
    return any(file.startswith(folder + os.sep) for folder in folders)

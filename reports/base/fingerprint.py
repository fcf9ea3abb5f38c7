"""The dependencies of a result, as hashes: files, our own source, what is installed, how it was asked for."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import sysconfig
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

OURS = ("trilift", "lift", "verify", "superopt", "reports")
ROOT = Path(__file__).resolve().parents[2]
SOURCE = (".py", ".json", ".ttir", ".txt", ".md")  # whose contents are read; of others size and time count
IRRELEVANT = ("TRITON_CACHE", "TRITON_HOME", "TRITON_DUMP", "TRITON_INTERPRET", "TRITON_PRINT")


def of_text(*parts: str) -> str:
    """The hash of some texts, order and boundaries included."""
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode(errors="surrogateescape")
        h.update(len(data).to_bytes(8, "little") + data)
    return h.hexdigest()


def of_file(path: str | Path) -> str | None:
    """The hash of a file's content; of size and time where it is not a source; None where there is none."""
    try:
        found = os.stat(path)
        if not str(path).endswith(SOURCE) or not stat.S_ISREG(found.st_mode):
            return f"{found.st_size}:{found.st_mtime_ns}"
        with open(path, "rb") as f:
            return hashlib.blake2b(f.read(), digest_size=16).hexdigest()
    except OSError:
        return None


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


def loaded(before: Collection[str]) -> list[str]:
    """The files of modules that were imported since `before`, the names in sys.modules then: local source and packages,
    without the standard library and without more of the packages that were there already (those `environment` has)."""
    roots = {name.partition(".")[0] for name in before}
    fresh = [m for n, m in list(sys.modules.items()) if n not in before and n.partition(".")[0] not in roots]
    return sorted(_outside_library(str(f) for m in fresh if (f := getattr(m, "__file__", None))))


def _outside_library(files: Iterable[str]) -> set[str]:
    """Those that are not part of Python itself."""
    paths = {sysconfig.get_path(n) for n in ("stdlib", "platstdlib")}
    sites = {sysconfig.get_path(n) for n in ("purelib", "platlib")}
    resolved = {os.path.abspath(f) for f in files}
    return {f for f in resolved if not _below(f, paths) or _below(f, sites) or "site-packages" in f}


def _below(file: str, folders: Iterable[str]) -> bool:
    return any(file.startswith(folder + os.sep) for folder in folders)

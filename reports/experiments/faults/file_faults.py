"""Files that cannot be read, folders of results that cannot be used."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...runner import store
from .case_texts import put
from .commands_under_limit import output, run
from .expectations_of_ends import refused, rows
from .fault import Ended, Fault, Make

LARGEST_BYTES = 12_000  # that a file may have: less than a store of results
MINE = "my own text\n"
FORM = ("--format", "json", "-j", "1")
PROVE = ("prove", *FORM)
Damage = Callable[[Path], None]


def beside(name: str, put_it: Damage) -> Make:
    """Lifts a folder with a good file and another one."""

    def make(folder: Path, seed: int) -> Ended:
        put(folder)
        put_it(folder / name)
        return run(folder, "lift", *FORM, ".")

    return make


def latin(path: Path) -> None:
    path.write_bytes("# Grüße\nfrom trilift import case\n".encode("latin-1"))


def kept(damage: Damage) -> Make:
    """Proves a file twice, with a damage to the file of results between the runs."""

    def make(folder: Path, seed: int) -> Ended:
        name = put(folder)
        first = run(folder, *PROVE, name)
        damage(output(folder, "kept") / store.NAME)
        second = run(folder, *PROVE, name)
        return second if first.code == 0 else first

    return make


def overwritten(path: Path) -> None:
    path.write_bytes(b"other bytes" * 999)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def no_folder(folder: Path, seed: int) -> Ended:
    """The folder of results is below a file."""
    output(folder, "kept").write_text(MINE)
    return run(folder, *PROVE, put(folder))


def full(folder: Path, seed: int) -> Ended:
    """No file may grow, as on a disk that is full."""
    most = (LARGEST_BYTES, LARGEST_BYTES)
    return run(folder, *PROVE, "-q", put(folder), limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, most))


def over(folder: Path, seed: int) -> Ended:
    """Writes a report over a file of the user's, which has to stay as it was."""
    mine = folder / "mine.json"
    mine.write_text(MINE)
    ended = run(folder, "audit", put(folder), "--format", f"json={mine.name}")
    return ended if mine.read_text() == MINE else replace(ended, code=0)


FILES = (
    Fault("a FIFO called x.py in a folder", beside("x.py", os.mkfifo), rows(word="lift")),
    Fault(
        "a broken symbolic link in a folder", beside("x.py", lambda p: p.symlink_to("nowhere.py")), rows(word="lift")
    ),
    Fault("a link to itself in a folder", beside("x.py", lambda p: p.symlink_to("x.py")), rows(word="lift")),
    Fault("a link to its own folder", beside("x", lambda p: p.symlink_to(".")), rows(word="lift")),
    Fault("a file in Latin-1 that does not say so", beside("x.py", latin), rows(word="lift")),
    Fault("a folder of results that cannot be written", no_folder, rows()),
    Fault("a folder of results on a full disk", full, rows()),
    Fault("a file of results of other bytes", kept(overwritten), rows()),
    Fault("a file of results cut in half", kept(truncated), rows()),
    Fault("a report over a file of the user's", over, refused("mine.json", "--force")),
)

"""Files that trilift writes: a user's file is not replaced, and none is left half written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from trilift.lift.runtime.files import unreadable
from trilift.reports.base import fingerprint, sources, written_files
from trilift.reports.cli import main
from trilift.reports.filters import ignores
from trilift.reports.formats import FORMATS
from trilift.reports.records.entries import Row

KERNEL = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2.0, mask=i < n)

@case(x="f32[N]")
def double(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 64),)](x, y, x.shape[0], BLOCK=64)
    return y
"""
MINE = "# my own notes on tests written by trilift, with `from trilift import case`\n"


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words), catch_exceptions=False)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "{kernel}", "--format", "html={mine}"),
        ("audit", "{kernel}", "--write-baseline", "{mine}"),
        ("write", "{kernel}", "-o", "{mine}"),
        ("optimize", "{kernel}", "-o", "{mine}"),
    ],
    ids=lambda words: words[0] + words[2],
)
def test_a_file_of_the_user_s_is_not_replaced(words: tuple[str, ...], tmp_path: Path) -> None:
    kernel, mine = tmp_path / "kernel.py", tmp_path / "mine.py"
    kernel.write_text(KERNEL)
    mine.write_text(MINE)
    code, said = run(*(w.format(kernel=kernel, mine=mine) for w in words))
    assert code == 2 and "was not written by trilift" in said and "--force" in said
    assert mine.read_text() == MINE


def document() -> Row:
    return {"schema": 1, "tool": "trilift", "version": "0.1.0", "cases": [], "kernels": []}


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_who_wrote_it(form: str, tmp_path: Path) -> None:
    path = tmp_path / "report"
    text = FORMATS[form](document()) + written_files.LAST_LINES.get(form, "")
    written_files.replace(path, text)
    assert written_files.refused(str(path)) == ""


def test_only_files_with_the_mark_are_ours(tmp_path: Path) -> None:
    path = tmp_path / "f"
    assert written_files.refused(str(path)) == ""  # it is not there
    path.touch()
    assert written_files.refused(str(path)) == ""
    path.write_text(MINE)
    assert "was not written by trilift" in written_files.refused(str(path))
    with pytest.raises(click.UsageError, match="-o: .* is not replaced"):
        written_files.check("-o", str(path))
    written_files.check("-o", str(path), force=True)
    assert written_files.refused(os.devnull) == ""


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, link = tmp_path / "f", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    written_files.replace(link, "new")
    assert link.is_symlink() and path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o640
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        written_files.replace(path, "newer")
    assert path.read_text() == "new" and sorted(p.name for p in tmp_path.iterdir()) == ["f", "link"]


def test_a_folder_with_things_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing")
    (tmp_path / "around.py").symlink_to(tmp_path / "around.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    code, said = run("lift", "-q", str(tmp_path))
    assert code == 2 and "x * 2" in said.replace("2 * x", "x * 2")
    for name, why in {"pipe": "not a regular file", "gone": "a link to nothing", "around": "leads to itself"}.items():
        assert any(f"{name}.py cannot be read" in line and why in line for line in said.splitlines()), said


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(pipe := str(tmp_path / "pipe.py"))
    assert sources.lines(pipe) == [] and ignores.comments(pipe) == () and fingerprint.of_file(pipe) is not None


def test_what_may_be_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    assert unreadable(tmp_path / "f") == "" and unreadable(tmp_path) == "it is a folder"
    assert unreadable(tmp_path / "g") == "No such file or directory"

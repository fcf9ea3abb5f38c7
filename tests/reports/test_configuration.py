"""[tool.trilift]: found upwards from the target, checked key by key."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from trilift.reports.base import configuration
from trilift.reports.base.configuration import Configuration
from trilift.reports.cli import main

RULES = ("out-of-bounds", "write-race", "precision-loss")
pytestmark = pytest.mark.smoke
FULL = """
[tool.trilift]
targets = ["kernels", "more.py"]
select = ["out-of-bounds"]
ignore = ["precision-loss"]
timeout = 60
jobs = 4
allow-unknown = true
cache = "there"
formats = ["text", "sarif=a.sarif"]

[tool.trilift.per-file-ignores]
"kernels/old_*.py" = ["write-race"]
"vendor/**/*.py" = ["out-of-bounds"]
"tests" = ["precision-loss"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kernels" / "deep").mkdir(parents=True)
    (tmp_path / "kernels" / "deep" / "k.py").write_text("")
    return tmp_path


def write(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text)


def load(*targets: str) -> Configuration:
    return configuration.load(targets, RULES)


def test_everything_is_read(project: Path) -> None:
    write(project, FULL)
    found = load(str(project / "kernels" / "deep" / "k.py") + "::case")
    assert found.file == str(project / "pyproject.toml")
    assert (found.targets, found.select, found.ignore) == (("kernels", "more.py"), RULES[:1], RULES[2:])
    assert (found.timeout, found.jobs, found.allow_unknown, found.cache) == (60.0, 4, True, "there")
    assert found.formats == ("text", "sarif=a.sarif")


@pytest.mark.parametrize(
    ("file", "rules"),
    [
        ("kernels/old_a.py", {"write-race"}),
        ("kernels/deep/old_a.py", set()),
        ("kernels/new.py", set()),
        ("vendor/a.py", {"out-of-bounds"}),
        ("vendor/b/c/a.py", {"out-of-bounds"}),
        ("vendored/a.py", set()),
        ("tests/a/b.py", {"precision-loss"}),
        ("../kernels/old_a.py", set()),
    ],
)
def test_rules_by_file(project: Path, file: str, rules: set[str]) -> None:
    write(project, FULL)
    assert load(str(project)).ignored(str(project / file)) == rules


def test_the_nearest_file_with_the_table_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "[tool.trilift]\njobs = 1\n")
    (project / "kernels" / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    assert load(str(project / "kernels" / "deep")).jobs == 1
    (project / "kernels" / "pyproject.toml").write_text("[tool.trilift]\njobs = 2\n")
    assert load(str(project / "kernels" / "deep")).jobs == 2
    assert load(str(project)).jobs == 1
    monkeypatch.chdir(project / "kernels")
    assert load().jobs == load("no.such.module:case").jobs == 2


def test_without_a_table_nothing_is_said(project: Path) -> None:
    write(project, "[tool.other]\n")
    assert load(str(project)).jobs is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tiemout = 3", "has no key tiemout; did you mean timeout?"),
        ("zzz = 3", "has no key zzz; there are targets, select"),
        ("allow_unknown = true", "has no key allow_unknown; did you mean allow-unknown?"),
        ('timeout = "ten"', "timeout is a number of seconds above 0, not 'ten'"),
        ("timeout = 0", "timeout is a number of seconds"),
        ("timeout = inf", "timeout is a number of seconds above 0, not inf"),
        ("timeout = nan", "timeout is a number of seconds above 0, not nan"),
        ("timeout = true", "timeout is a number of seconds"),
        ("jobs = 1.5", "jobs is a whole number above 0, not 1.5"),
        ("jobs = -1", "jobs is a whole number"),
        ('allow-unknown = "yes"', "allow-unknown is true or false"),
        ('targets = "kernels"', "targets is a list of texts, not 'kernels'"),
        ("formats = [1]", "formats is a list of texts"),
        ("cache = 1", "cache is true, false or a folder"),
        ('select = ["out-of-bound"]', "select: no rule is called out-of-bound; did you mean out-of-bounds?"),
        ('per-file-ignores = ["a"]', "per-file-ignores is a table of patterns"),
        ('per-file-ignores = { "a.py" = "write-race" }', "per-file-ignores is a table of patterns"),
        ('per-file-ignores = { "a.py" = ["races"] }', "per-file-ignores: no rule is called races"),
    ],
)
def test_what_means_nothing_is_named(project: Path, text: str, said: str) -> None:
    write(project, f"[tool.trilift]\n{text}\n")
    with pytest.raises(click.UsageError) as e:
        load(str(project))
    assert said in e.value.message and str(project / "pyproject.toml") in e.value.message


@pytest.mark.parametrize(("text", "said"), [("[tool", "cannot read"), ("tool.trilift = 3", "not a table")])
def test_a_file_that_is_not_toml(project: Path, text: str, said: str) -> None:
    write(project, text)
    with pytest.raises(click.UsageError, match=said):
        load(str(project))


@pytest.mark.parametrize(
    ("formats", "said"),
    [
        ('["sarf=x"]', "no format is called sarf; did you mean sarif?"),
        ('["text", "json"]', "only one format can go to stdout"),
        ('["json="]', "names no file"),
        ('["json=absent/x"]', "cannot write"),
    ],
)
def test_an_error_of_a_format_names_where_it_was_given(
    project: Path, monkeypatch: pytest.MonkeyPatch, formats: str, said: str
) -> None:
    write(project, f"[tool.trilift]\nformats = {formats}\n")
    monkeypatch.chdir(project)
    done = CliRunner().invoke(main, ["audit", "kernels"])
    place = f"Error: {project / 'pyproject.toml'}: [tool.trilift] formats: "
    assert done.exit_code == 2 and place in done.output and said in done.output and "--format" not in done.output
    done = CliRunner().invoke(main, ["audit", "kernels", "--format", "sarf=x"])
    assert done.exit_code == 2 and "Error: --format: no format is called sarf" in done.output

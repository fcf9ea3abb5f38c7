"""The GitHub Action and the pre-commit hook: what they declare, and their shell steps run here."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from trilift.reports import cli

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return loaded


def step(action: dict[str, Any], name: str) -> dict[str, Any]:
    return next(s for s in action["runs"]["steps"] if s.get("name") == name)


def test_it_is_a_composite_action(action: dict[str, Any]) -> None:
    assert action["runs"]["using"] == "composite" and {"name", "description"} <= action.keys()
    for s in action["runs"]["steps"]:
        assert ("uses" in s) != ("run" in s)
        assert "run" not in s or s["shell"] == "bash"
        assert "uses" not in s or re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", s["uses"])


def test_every_input_is_declared_and_used(action: dict[str, Any]) -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", yaml.safe_dump(action["runs"])))
    assert used == action["inputs"].keys()
    assert all(i["description"] and isinstance(i["default"], str) for i in action["inputs"].values())


def test_no_input_is_part_of_a_script(action: dict[str, Any]) -> None:
    """What a caller passes is data in the environment: it cannot become shell code."""
    assert not [s for s in action["runs"]["steps"] if "${{" in s.get("run", "")]


def test_steps_that_are_named_are_there(action: dict[str, Any]) -> None:
    named = set(re.findall(r"steps\.([\w-]+)\.", yaml.safe_dump(action)))
    assert named <= {s.get("id") for s in action["runs"]["steps"]}
    written = set(re.findall(r'echo "([\w-]+)=', step(action, "Audit")["run"]))
    assert set(re.findall(r"steps\.audit\.outputs\.([\w-]+)", yaml.safe_dump(action))) <= written


FAKE = """#!/bin/bash
printf '%s\\n' "$@" > "$SEEN"
for a in "$@"; do case "$a" in sarif=*) echo '{}' > "${a#sarif=}";; esac; done
exit "$FAKE_CODE"
"""


def audit(action: dict[str, Any], path: Path, code: int = 0, **inputs: str) -> tuple[list[str], dict[str, str]]:
    """(the arguments that trilift got, the outputs of the step)."""
    (path / "bin").mkdir(exist_ok=True)
    (path / "bin" / "trilift").write_text(FAKE)
    (path / "bin" / "trilift").chmod(stat.S_IRWXU)
    values = {n: i["default"] for n, i in action["inputs"].items()} | inputs
    given = step(action, "Audit")["env"].items()
    env = {k: values[m[1]] for k, v in given if (m := re.search(r"inputs\.([\w-]+)", v))}
    env |= {"PATH": f"{path / 'bin'}:{os.environ['PATH']}", "GITHUB_OUTPUT": str(path / "out"), "FAKE_CODE": str(code)}
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step(action, "Audit")["run"]]
    subprocess.run(script, cwd=path, env=env | {"SEEN": str(path / "seen")}, check=True, timeout=30)
    outputs = dict(line.split("=", 1) for line in (path / "out").read_text().splitlines())
    return (path / "seen").read_text().splitlines(), outputs


def test_the_audit_step(action: dict[str, Any], tmp_path: Path) -> None:
    seen, outputs = audit(action, tmp_path, 1, targets="kernels more.py", args="--allow-unknown -j 2")
    said = ["--format", "github", "--format", "sarif=trilift.sarif", "--allow-unknown", "-j", "2"]
    assert seen == ["audit", "--quiet", *said, "kernels", "more.py"]
    assert outputs == {"exit-code": "1", "sarif": "trilift.sarif"}


def test_without_targets_and_report(action: dict[str, Any], tmp_path: Path) -> None:
    seen, outputs = audit(action, tmp_path, 4, sarif="")
    assert (seen, outputs) == (["audit", "--quiet", "--format", "github"], {"exit-code": "4"})


def test_an_input_is_no_code(action: dict[str, Any], tmp_path: Path) -> None:
    seen, _ = audit(action, tmp_path, targets="$(touch bad) `touch bad` ; touch bad", sarif='a" "b.sarif')
    assert not (tmp_path / "bad").exists() and 'sarif=a" "b.sarif' in seen


@pytest.mark.parametrize("code", [0, 1, 4])
def test_the_last_step_ends_as_the_audit_did(action: dict[str, Any], code: int) -> None:
    script = ["bash", "-e", "-c", step(action, "Exit code")["run"]]
    assert subprocess.run(script, env={"CODE": str(code)}, timeout=30).returncode == code


def test_the_arguments_mean_something_to_the_command(
    action: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, _ = audit(action, tmp_path, targets="")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trilift.sarif").unlink(missing_ok=True)  # of the command that stands in
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(cli.main, [*seen, str(tmp_path / "empty")])
    assert done.exit_code == 3, done.output


def test_the_hook(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language", "files"} <= hook.keys()
    assert re.search(hook["files"], "a/b.py") and re.search(hook["files"], "k.ttir")
    assert not re.search(hook["files"], "a.pyi") and not re.search(hook["files"], "README.md")
    program, *arguments = shlex.split(hook["entry"])
    (tmp_path / "setup.py").write_text("raise RuntimeError('no case: is not to be run')\n")
    done = CliRunner().invoke(cli.main, [*arguments, str(tmp_path / "setup.py")])
    assert program == "trilift" and done.exit_code == 0, done.output
